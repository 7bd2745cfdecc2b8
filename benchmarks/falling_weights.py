"""`yu2026` beside `soft` and `neely2017`, `sarkar2025` beside `sinha2024` and `anytime`: docs/explanation/falling-weights.md.

Limits on average: every policy is told the same true constants, as far as it takes them (`soft` plays told nothing too). Regret is against
the action that the limit leaves. Hard limits: CCV on streams that an action satisfies. Medians over five seeds, one where nothing is drawn,
through `bridle.compare`; runs resume, the rows are kept in benchmarks/falling-weights/.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bridle.comparisons.analysis import exponent
from bridle.comparisons.run import compare
from parts.toy import size, target

HORIZONS = size((1_000, 10_000, 100_000, 1_000_000), (20, 30, 40, 50))
SHORTER, ENGINE = HORIZONS[:3], size("compiled", "python")
FOLDER = target(Path(__file__).with_name("falling-weights"))
BEGIN, END = "<!-- measured by benchmarks/falling_weights.py: {} -->", "<!-- end of {} -->"


class Place(NamedTuple):
    """A problem, what it does in a few words, the true constants, the cost a round of the action that the limit leaves, and seeds."""

    problem: str
    what: str
    lipschitz: float
    bound: float  # of g without errors
    noise: float  # the largest error; its standard deviation is that over sqrt(3)
    cost: float
    seeds: int = size(5, 1)

    def policies(self) -> dict[str, str]:
        """Every policy as it plays here, by the words of its column."""
        known = f"lipschitz={self.lipschitz}:bound={self.bound}:noise={self.noise / 3**0.5:.6g}"
        whole = f"lipschitz={self.lipschitz}:bound={self.bound + self.noise}"
        return {
            "`soft`, told nothing": "soft",
            "`soft`": f"soft:{known}",
            "`neely2017`": f"neely2017:{whole}",
            "`yu2026`": f"yu2026:{known}",
        }


AVERAGE = (
    Place("tangent:noise=0", "one action, no price, exact values", 1.3, 0.845, 0.0, 0.3, 1),
    Place("tangent", "one action, no price, errors up to 0.5", 1.3, 0.845, 0.5, 0.3),
    Place("noisy", "a halfspace, room to spare, errors up to 1", 1.0, 1.3, 1.0, 0.3),
)
HARD = {"halfspaces": "random halfspaces, room to spare"}
ALONE = {
    "`sinha2024`, told T": "sinha2024",
    "`sarkar2025`": "sarkar2025",
    "`anytime`, no halfspaces": "anytime:halfspace=0",
    "`anytime`": "anytime",
}


def on_average() -> list[dict[str, Any]]:
    """For every place and policy: regret and violation at every horizon, and the violation's exponent."""
    found = []
    for place in AVERAGE:
        for column, spec in place.policies().items():
            rows = compare((place.problem,), (spec,), HORIZONS, place.seeds, FOLDER, sweep={"dim": [5]}, engine=ENGINE, jobs=1)
            of = {T: [row for row in rows if row["horizon"] == T] for T in HORIZONS}
            violation = [median(row["soft_violation"] for row in of[T]) for T in HORIZONS]
            regret = [median(row["cost"] - place.cost * T for row in of[T]) for T in HORIZONS]
            found.append({"where": place.what, "policy": column, "regret": regret, "violation": violation, "horizons": list(HORIZONS)})
    return found


def hard() -> list[dict[str, Any]]:
    """For every stream and policy: regret and CCV at every horizon."""
    found = []
    for problem, what in HARD.items():
        for column, spec in ALONE.items():
            rows = compare((problem,), (spec,), SHORTER, size(5, 1), FOLDER, sweep={"dim": [5]}, engine=ENGINE, jobs=1)
            of = {T: [row for row in rows if row["horizon"] == T] for T in SHORTER}
            violation, regret = ([median(row[key] for row in of[T]) for T in SHORTER] for key in ("ccv", "regret"))
            found.append({"where": what, "policy": column, "regret": regret, "violation": violation, "horizons": list(SHORTER)})
    return found


def markdown(found: list[dict[str, Any]], word: str) -> str:
    """A table: one line for each place and policy."""
    heads = [f"T = {T:,}" for T in found[0]["horizons"]]
    lines = [
        "| stream | policy | " + " | ".join(f"{word}, {head}" for head in heads) + " | exponent | regret at the last |",
        "|---" * (len(heads) + 4) + "|",
    ]
    for row in found:
        grown = exponent(row["horizons"], row["violation"], since=row["horizons"][0])
        cells = [f"{value:,.0f}" for value in row["violation"]]
        lines.append(
            "| "
            + " | ".join([row["where"], row["policy"], *cells, "-" if grown is None else f"{grown:.2f}", f"{row['regret'][-1]:,.0f}"])
            + " |"
        )
    return "\n".join(lines)


def main() -> None:
    """Play, and put the tables into the page."""
    figures, page = (
        target(Path(__file__).with_suffix(".json")),
        target(Path(__file__).parents[1] / "docs" / "explanation" / "falling-weights.md"),
    )
    found = {"average": on_average(), "hard": hard()}
    figures.write_text(json.dumps(found, indent=1) + "\n")
    text = page.read_text()
    for part, word in (("average", "violation"), ("hard", "CCV")):
        begin, end = BEGIN.format(part), END.format(part)
        text = text[: text.index(begin) + len(begin)] + "\n" + markdown(found[part], word) + "\n" + text[text.index(end) :]
    page.write_text(text)
    sys.stdout.write(f"written to {page} and {figures}\n")


if __name__ == "__main__":
    main()
