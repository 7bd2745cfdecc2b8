"""Measured growth of regret and violation with T, up to 10^5 or 10^6, beside the theorem's: the table of docs/exponents.md.

Every policy plays every problem of the list at every horizon, each game made for its horizon. Of each policy and each of regret and
violation (in the sense of its own theorem) the table shows the problem on which it came closest to its bound at the longest horizon: there
the theorem has most to say. Nothing is picked by hand. Runs resume: the rows are kept in benchmarks/exponents/.

    python benchmarks/exponents.py                      every policy
    python benchmarks/exponents.py sarkar2025 yu2026    these; of the others the figures of exponents.json stay
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

from bridle import policies
from bridle.comparisons.analysis import exponent
from bridle.comparisons.rows import BOUND_OF_METRIC
from bridle.comparisons.run import compare
from parts.toy import size, target

HORIZONS = size((1_000, 3_162, 10_000, 31_623, 100_000), (20, 30, 40))
SHORT = size((300, 1_000, 3_000), (4, 5, 6))
PROBLEMS = size(
    ("minimax", "regret-seeking", "violation-seeking", "halfspaces", "fixed-constraints", "fixed", "late-constraint"), ("fixed",)
)
SEEDS, ENGINE = size(3, 1), size("jax", "python")
TENS = (1_000, 10_000, 100_000)
FAR = size({"halfspaces:dim=5": (*TENS, 1_000_000), "regret-seeking:dim=5": TENS}, {"fixed:dim=2": (20, 30, 40)})
LONG: dict[str, dict[str, tuple[int, ...]]] = {
    **dict.fromkeys(("sarkar2025", "yu2026", "dynamic", "optimistic", "wang2025", "wang2025-squared", "bandit2"), FAR),
    "bandit1": size({"regret-seeking:dim=5": TENS}, {"fixed:dim=2": (20, 30, 40)}),
    "yi2021-dynamic": size({"fixed:dim=5": (*TENS, 1_000_000), "regret-seeking:dim=5": TENS}, {"fixed:dim=2": (20, 30, 40)}),
    "experts": size({"experts:adaptive=1": (*TENS, 1_000_000)}, {"experts:adaptive=1": (20, 30, 40)}),
}
"""Policies of the frontier, five seeds each, and where they play for how long, up to 10^6 rounds.

Against an adversary that adapts, each game has a best action of its own to be found afterwards: those games are shorter."""
LONG_SEEDS, LONG_ENGINE = size(5, 1), size("compiled", "python")

SLOW = {
    "steiner": ("nested-bodies",),
    "banditq": (),
    "rate": (),
    "vaze2025": ("halfspaces", "violation-seeking", "fixed"),
    "vaze2025-strong": ("halfspaces:modulus=1.0", "violation-seeking:modulus=1.0"),
}
"""Policies that the common problems do not suit: some solve programs every round, banditq lives on the simplex with a reward an arm,
rate bounds no sum."""

FOLDER = target(Path(__file__).with_name("exponents"))
BEGIN, END = "<!-- measured by benchmarks/exponents.py -->", "<!-- end -->"


def games(chosen: list[str]) -> list[dict[str, Any]]:
    """The rows of all games of these policies: compiled where that can be, the rest shorter and on the Python engine."""
    rows: list[dict[str, Any]] = []
    common = [name for name in chosen if name not in SLOW and name not in LONG]
    for strong in (False, True):
        names = [name for name in common if policies.entry(name).curved == strong]
        names = [name for name in names if policies.entry(name).domains != ("simplex",)]
        sweep = {"modulus": [1.0]} if strong else {}
        if names:
            rows += compare(PROBLEMS, names, HORIZONS, SEEDS, FOLDER, sweep={"dim": [5], **sweep}, engine=ENGINE)
    mixtures = [name for name in common if policies.entry(name).domains == ("simplex",)]
    if mixtures:
        rows += compare(PROBLEMS, mixtures, HORIZONS, SEEDS, FOLDER, sweep={"dim": [5], "domain": ["simplex"]}, engine=ENGINE)
    for name in [name for name in LONG if name in chosen]:
        for place, horizons in LONG[name].items():
            rows += compare((place,), [name], horizons, LONG_SEEDS, FOLDER, engine=LONG_ENGINE)
    for name, places in SLOW.items():
        if places and name in chosen:
            rows += compare(places, [name], SHORT, LONG_SEEDS if name.startswith("vaze2025") else SEEDS, FOLDER, sweep={"dim": [2]})
    return [row for row in rows if row["does_not_apply"] is None]


def measure(rows: list[dict[str, Any]], chosen: list[str]) -> list[dict[str, Any]]:
    """For each policy and quantity, the problem where it came closest to its bound, with the exponents there."""
    found = []
    for name in chosen:
        native, limit = BOUND_OF_METRIC[policies.entry(name).metric]
        for what, bound in (("regret", "regret_bound"), (native, limit)):
            best: dict[str, Any] | None = None
            for place in dict.fromkeys(row["problem"] for row in rows):
                mine = [row for row in rows if row["policy"] == name and row["problem"] == place]
                horizons = sorted({row["horizon"] for row in mine})
                curve = [_medians(mine, T, what, bound) for T in horizons]
                if len(horizons) < 3 or None in curve[-1] or curve[-1][1] == 0.0:  # (a bound of 0 leaves nothing to measure)
                    continue
                share = curve[-1][0] / curve[-1][1]
                if best is None or share > best["share"]:
                    measured = exponent(horizons, [value for value, _ in curve], since=horizons[0])
                    theorem = exponent(horizons, [value for _, value in curve], since=horizons[0])
                    best = {"policy": name, "quantity": what, "problem": place, "horizons": horizons, "share": share}
                    best |= {"measured": measured, "bound": theorem, "values": [value for value, _ in curve]}
            if best is not None:
                found.append(best)
    return found


def _medians(rows: list[dict[str, Any]], T: int, what: str, bound: str) -> tuple[Any, Any]:
    here = [row for row in rows if row["horizon"] == T]
    if any(row[what] is None or row[bound] is None for row in here):
        return None, None
    return median(row[what] for row in here), median(row[bound] for row in here)


def markdown(found: list[dict[str, Any]]) -> str:
    """The table of the documentation."""
    lines = [
        "| policy | quantity | theorem | exponent of the bound | measured exponent | share of the bound | problem | T |",
        "|---" * 8 + "|",
    ]
    for row in found:
        item = policies.entry(row["policy"])
        order = item.regret if row["quantity"] == "regret" else item.violation
        measured = "at most 0" if row["measured"] is None and row["values"][-1] <= 0.0 else _figure(row["measured"])
        T = f"{row['horizons'][0]:,} to {row['horizons'][-1]:,}"
        cells = [f"`{row['policy']}`", row["quantity"].replace("_", " "), order, _figure(row["bound"]), measured]
        lines.append("| " + " | ".join([*cells, f"{row['share']:.3f}", row["problem"], T]) + " |")
    return "\n".join(lines)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 2) + 0.0:.2f}"  # (no -0.00)


def main() -> None:
    figures = target(Path(__file__).with_name("exponents.json"))
    chosen = [name for name in policies.names() if name in sys.argv[1:]] or list(policies.names())
    kept = json.loads(figures.read_text()) if sys.argv[1:] else []
    fresh = measure(games(chosen), chosen)
    rows = [row for row in kept if row["policy"] not in chosen] + fresh
    found = sorted(rows, key=lambda row: policies.names().index(row["policy"]))
    figures.write_text(json.dumps(found, indent=1) + "\n")
    page = target(Path(__file__).parent.parent / "docs" / "exponents.md")
    text = page.read_text()
    head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    page.write_text(f"{head}\n{markdown(found)}\n{tail}")
    sys.stdout.write(markdown(found) + f"\n\nwritten to {page} and {figures}\n")


if __name__ == "__main__":
    main()
