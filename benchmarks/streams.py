"""Ten streams, S1 to S10, and what `anytime`, Algorithm 1, guo2022, neely2017 and plain gradient descent make of them: docs/anytime.md.

Every policy plays every stream at T = 20,000 (S1, where d = T, at 900) for a few seeds, through `bridle.compare`; the table shows medians
over the seeds. Algorithm 1 plays with the theorem's constants, with preset practice, and with a preset and a lambda tuned in hindsight for
each stream: of the grid below the one with the least CCV among those whose regret is at most what Theorem 1 promises, 2GD(sqrt(T) + 1), or
the one with the least regret where there is none. Nobody can choose it so in advance. Runs resume: rows are kept in benchmarks/streams/.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import bridle
from bridle import policies
from bridle.comparisons.run import compare
from bridle.game.play import unplayed
from bridle.policies._sinha2024 import theorem1
from bridle.solvers.hindsight import total_cost
from parts.toy import size, target

LAMBDAS = size((0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), (0.1,))
"""Tried for the tuned column, with V = 1 and with V = lambda (preset practice): the theorem's, 1/(2 sqrt(T)), is 0.0035 at T = 20,000."""


class Stream(NamedTuple):
    """Its number, the problem, what it does in a few words, how long it is, and how many seeds: one where nothing is drawn."""

    name: str
    problem: str
    what: str
    horizon: int = 20_000
    seeds: int = 5


STREAMS = (
    Stream("S1", "lower-bound", "no policy can do better than sqrt(T)/4; d = T", 900),
    Stream("S2", "scattered:dim=2", "random costs and halfspaces"),
    Stream("S3", "pull-out", "the cost pulls out of random halfspaces"),
    Stream("S4", "tempting:dim=2", "what is cheapest is forbidden", seeds=1),
    Stream("S5", "rare-constraint", "a constraint every 7 rounds", seeds=1),
    Stream("S6", "late-temptation", "nothing forbidden until T/2", seeds=1),
    Stream("S7", "uphill", "one dimension, the cheap side forbidden", seeds=1),
    Stream("S8", "scales", "gradients over six powers of ten"),
    Stream("S9", "noisy", "errors in the constraint's value; nothing is feasible"),
    Stream("S10", "contradiction", "nothing is feasible after T/2"),
)
ANYTIME, THEORY, PRACTICE, TUNED = "anytime", "sinha2024", "sinha2024 preset=practice", "sinha2024 tuned"
COLUMNS = {
    ANYTIME: "`anytime`", THEORY: "Algorithm 1", PRACTICE: "Algorithm 1, practice", TUNED: "Algorithm 1, tuned in hindsight",
    "guo2022": "`guo2022`", "neely2017": "`neely2017`", "ogd": "`ogd`",
}  # fmt: skip
TRIED = tuple(f"sinha2024:preset={preset}:lam={lam}" for preset in ("theory", "practice") for lam in LAMBDAS)
PLAYED = (ANYTIME, THEORY, "sinha2024:preset=practice", *TRIED, "guo2022", "neely2017", "ogd")

FOLDER = target(Path(__file__).with_name("streams"))
BEGIN, COSTS, END = "<!-- measured by benchmarks/streams.py -->", "<!-- timed by benchmarks/streams.py -->", "<!-- end -->"


def games(streams: Any = STREAMS, folder: Any = FOLDER, engine: str = size("jax", "python")) -> dict[str, list[dict[str, Any]]]:
    """Of every stream the rows of all its games."""
    return {
        stream.name: compare([stream.problem], PLAYED, [stream.horizon], stream.seeds, folder, engine=engine, jobs=1) for stream in streams
    }


def measure(played: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """For each stream and column: medians over the seeds, bounds, and why there is none."""
    found = []
    for name, rows in played.items():
        labels = dict.fromkeys(row["label"] for row in rows)
        each = {label: _together(name, [row for row in rows if row["label"] == label]) for label in labels}
        swept = [row for label, row in each.items() if label.startswith("sinha2024")]
        found += [each[column] if column != TUNED else {**_tuned(swept), "policy": TUNED} for column in COLUMNS]
    return found


def _together(stream: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The games of one policy on one stream, one for each seed."""
    first = rows[0]
    G, D, benchmark = _known(first)
    facts: dict[str, Any] = {"stream": stream, "problem": first["problem_label"], "policy": first["label"], "horizon": first["horizon"]}
    facts |= {"dim": first["dim"], "seeds": [row["seed"] for row in rows], "does_not_apply": first["does_not_apply"]}
    if any(row["does_not_apply"] for row in rows):
        return facts | dict.fromkeys(("regret", "ccv", "regret_bound", "ccv_bound")) | {"regret_why": "", "bound_why": ""}
    # Where no action is feasible, regret is against the one that comes closest.
    regrets = [row["cost"] - benchmark(row["seed"]) if row["regret"] is None else row["regret"] for row in rows]
    facts |= {"regrets": regrets, "ccvs": [row["ccv"] for row in rows], "soft": median(row["soft_violation"] for row in rows)}
    facts |= {"regret": median(regrets), "ccv": median(facts["ccvs"]), "regret_why": first["regret_why"], "promise": _promise(first, G, D)}
    for what in ("regret", "ccv"):
        bounds = [row[f"{what}_bound"] for row in rows]
        pairs = zip(facts[f"{what}s"], bounds, strict=True)
        facts[f"{what}_bound"] = None if None in bounds else median(bounds)
        facts[f"{what}_holds"] = None if None in bounds else all(value <= bound for value, bound in pairs)
    return facts | {"bound_why": first["bound_why"] or "", "warnings": first["warnings"]}


def _known(row: dict[str, Any]) -> tuple[float, float, Any]:
    """G and D of a row's problem, and what its benchmark, the action that comes closest to feasible, costs with a seed."""

    def made(seed: int) -> Any:
        return bridle.problem(row["problem"], row["horizon"], seed, **json.loads(row["problem_settings"]))

    def benchmark(seed: int) -> float:
        problem = made(seed)
        return total_cost(unplayed(problem).blocks, problem.constants["benchmark"])

    known = made(row["seed"]).constants
    return known["lipschitz"], known["diameter"], benchmark


def _promise(row: dict[str, Any], G: float, D: float) -> float:
    """What Theorem 1 promises of regret."""
    return float(theorem1(G, D, row["horizon"], row["horizon"]).regret)


def _tuned(swept: list[dict[str, Any]]) -> dict[str, Any]:
    """The setting with the least CCV among those that keep the theorem's promise on regret, else with the least regret."""
    kept = [row for row in swept if row["regret"] is not None and row["regret"] <= row["promise"]]
    best = min(kept, key=lambda row: row["ccv"]) if kept else min(swept, key=lambda row: row["regret"])
    return {**best, "setting": best["policy"].removeprefix("sinha2024").strip() or "preset=theory"}


VARIANTS = {
    "`sinha2024` (Algorithm 1)": ("sinha2024", {}),
    "`anytime`, 20 cuts": (ANYTIME, {}),
    "`anytime`, `cuts=0`": (ANYTIME, {"cuts": 0}),
    "`anytime`, `halfspace=False`": (ANYTIME, {"halfspace": False}),
    "`guo2022`": ("guo2022", {}),
    "`neely2017`": ("neely2017", {}),
    "`ogd`": ("ogd", {}),
}


def costs(rounds: int = size(3_072, 20), repeats: int = size(21, 1)) -> dict[str, dict[str, float]]:
    """How many times that of Algorithm 1 a round costs on each engine (d = 30, random halfspaces): the median of the ratios within one of
    several interleaved repeats, so that other work of the machine weighs on both."""
    problem = bridle.problem("halfspaces", horizon=rounds, dim=30)
    made = {name: bridle.policy_for(policy, problem, **given) for name, (policy, given) in VARIANTS.items()}
    found: dict[str, dict[str, float]] = {name: {} for name in made}
    for engine in ("python", "jax"):
        paces = [[bridle.play(policy, problem, engine=engine).pace for policy in made.values()] for _ in range(repeats)]
        for i, name in enumerate(made):
            found[name][engine] = round(median(pace[i] / pace[0] for pace in paces), 2)
    return found


def costs_markdown(found: dict[str, dict[str, float]]) -> str:
    """The table of what a round costs."""
    lines = ["| policy | python | jax |", "|---" * 3 + "|"]
    return "\n".join(lines + [f"| {name} | {times['python']:.2f} | {times['jax']:.2f} |" for name, times in found.items()])


def ratios(found: list[dict[str, Any]]) -> dict[str, float]:
    """For each stream, how many times the CCV of `anytime` that of Algorithm 1 with the theorem's constants is."""
    ccv = {(row["stream"], row["policy"]): row["ccv"] for row in found}
    return {row["stream"]: _over(ccv[row["stream"], THEORY], row["ccv"]) for row in found if row["policy"] == ANYTIME}


def _over(a: float, b: float) -> float:
    return a / b if b > 0.0 else 1.0 if a == 0.0 else float("inf")


def markdown(found: list[dict[str, Any]]) -> str:
    """The table of the documentation, and why something is missing in it."""
    lines = ["| stream | | " + " | ".join(COLUMNS.values()) + " |", "|---" * (2 + len(COLUMNS)) + "|"]
    times = ratios(found)
    for stream in STREAMS:
        rows = {row["policy"]: row for row in found if row["stream"] == stream.name}
        one = rows[ANYTIME]
        head = f"**{stream.name}** `{stream.problem.partition(':')[0]}`, d = {one['dim']}, T = {one['horizon']:,}"
        lines.append(f"| {head} | regret | " + " | ".join(_cell(rows[column], "regret") for column in COLUMNS) + " |")
        lines.append(f"| {stream.what} | CCV | " + " | ".join(_cell(rows[column], "ccv") for column in COLUMNS) + " |")
    told = ", ".join(f"{name} {_figure(value)}" for name, value in times.items())
    lines += [
        "",
        f"CCV of Algorithm 1 with the theorem's constants over that of `anytime`: {told}; median {_figure(median(times.values()))}.",
        "",
    ]
    tuned = ", ".join(f"{row['stream']} {row['setting'].removeprefix('preset=')}" for row in found if row["policy"] == TUNED)
    lines += [f"The settings found best in hindsight: {tuned}.", "", "Where a figure or a bound is missing:", ""]
    return "\n".join(lines + [f"- {text}: {', '.join(who)}" for text, who in _reasons(found).items()])


def _cell(row: dict[str, Any], what: str) -> str:
    if row["does_not_apply"]:
        return "-"
    bound = row[f"{what}_bound"]
    star = "\\*" if what == "regret" and row["regret_why"] else ""
    return _figure(row[what]) + star + (f" / {_figure(bound)}" if bound is not None else "")


def _reasons(found: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Why something is missing, and for which policies on which streams."""
    told: dict[str, dict[str, list[str]]] = {}
    for row in found:
        for text in _why(row):
            told.setdefault(text, {}).setdefault(COLUMNS[row["policy"]], []).append(row["stream"])
    return {text: [f"{policy} on {_streams(streams)}" for policy, streams in who.items()] for text, who in told.items()}


def _why(row: dict[str, Any]) -> list[str]:
    if row["does_not_apply"]:
        return [f"does not apply: {row['does_not_apply']}"]
    item = policies.entry(row["policy"].partition(" ")[0])
    texts = (
        [f"\\* regret is against the action that comes closest, because {row['regret_why'].partition(':')[0]}"] if row["regret_why"] else []
    )
    if row["regret_bound"] is None or (row["ccv_bound"] is None and row["bound_why"]):
        return [*texts, "no bound: " + re.sub(r" = [\d.e+]+", "", row["bound_why"])]
    if row["ccv_bound"] is None:
        texts.append("no bound on CCV: " + ("it ignores constraints" if item.violation == "-" else "its theorem is about soft violation"))
    return texts


def _streams(names: list[str]) -> str:
    return "all streams" if len(names) == len(STREAMS) else " ".join(names)


def _figure(value: float) -> str:
    if value == float("inf"):
        return "infinite"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main() -> None:
    played = games(size(STREAMS, tuple(stream._replace(horizon=30, seeds=1) for stream in STREAMS)))
    found = {"games": measure(played), "costs": costs()}
    figures = target(Path(__file__).with_name("streams.json"))
    figures.write_text(json.dumps(found, indent=1) + "\n")
    page = target(Path(__file__).parent.parent / "docs" / "anytime.md")
    text = page.read_text()
    for begin, table in ((BEGIN, markdown(found["games"])), (COSTS, costs_markdown(found["costs"]))):
        start = text.index(begin) + len(begin)
        text = f"{text[:start]}\n{table}\n{text[text.index(END, start) :]}"
        sys.stdout.write(f"{table}\n\n")
    page.write_text(text)
    sys.stdout.write(f"written to {page} and {figures}\n")


if __name__ == "__main__":
    main()
