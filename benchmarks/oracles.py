"""What a linear minimisation costs beside a projection, and what policies make of each: spectrahedra, paths, matchings, spanning trees.

Two tables for docs/explanation/projection-free.md and `oracles.json`. Times are the processor's, on one thread. The first table has the
operations on the same points, interleaved: projections as the domain does them, and as mixtures of vertices where it has at most 100
coordinates. The second plays the same games by policies that project, that minimise linear functions, and that weigh all actions at once.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np

import bridle
from parts.toy import size, target

SIZES = size(
    {"Spectrahedron": (10, 50, 100, 200), "Paths": (5, 10, 15), "Matchings": (5, 10, 20), "SpanningTrees": (6, 10)},
    {"Spectrahedron": (3,), "Paths": (3,), "Matchings": (3,), "SpanningTrees": (4,)},
)
REPEATS, MOST_COORDINATES = size(5, 1), 100
ROUNDS, SEEDS = size(300, 12), size(2, 1)
GAMES = size((("Spectrahedron", 50), ("Paths", 10), ("Matchings", 10), ("SpanningTrees", 6)), (("Spectrahedron", 3), ("Paths", 3)))
PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "projection-free.md"


def make(kind: str, n: int):
    """A domain of a size: n x n matrices, a grid of n x n nodes, n x n pairs, the complete graph of n nodes."""
    if kind == "Paths":
        down = [((i, j), (i + 1, j)) for i in range(n - 1) for j in range(n)]
        right = [((i, j), (i, j + 1)) for i in range(n) for j in range(n - 1)]
        return bridle.Paths(down + right, (0, 0), (n - 1, n - 1))
    if kind == "SpanningTrees":
        return bridle.SpanningTrees(list(combinations(range(n), 2)))
    return bridle.Spectrahedron(n) if kind == "Spectrahedron" else bridle.Matchings(n)


def operations() -> list[dict[str, object]]:
    """Microseconds of each operation, the median over points a gradient step away from points of the set."""
    found = []
    for kind, sizes in SIZES.items():
        for n in sizes:
            domain, rng = make(kind, n), np.random.default_rng(n)
            tasks: dict[str, Callable[[np.ndarray], object]] = {"linear": domain.linear_argmin, "project": domain.project}
            if hasattr(domain, "mixture") and domain.dim <= MOST_COORDINATES:
                tasks["mixture"] = domain.mixture
            spent: dict[str, list[float]] = {name: [] for name in tasks}
            for _ in range(REPEATS):
                inside = 0.5 * (domain.center() + domain.linear_argmin(rng.standard_normal(domain.dim)))
                step = rng.standard_normal(domain.dim)
                point = inside + 0.1 * domain.diameter() * step / np.linalg.norm(step)
                for name, task in tasks.items():
                    start = time.process_time()
                    task(point)
                    spent[name].append(1e6 * (time.process_time() - start))
            row = {"domain": kind, "size": n, "dim": domain.dim}
            found.append(row | {name: round(statistics.median(times), 1) for name, times in spent.items()})
            print(found[-1], flush=True)
    return found


def policies(domain, horizon: int) -> dict[str, object]:
    """The policies of the second table by what they do in a round."""
    told = {"horizon": horizon, "lipschitz": 1.0, "preset": "practice"}
    chosen = {
        "wang2025, 1 linear minimisation": bridle.policy("wang2025", domain, **told),
        "wang2025-squared, 1 linear minimisation": bridle.policy("wang2025-squared", domain, horizon=horizon, preset="practice"),
        "sinha2024, 1 projection": bridle.policy("sinha2024", domain, **told),
        "anytime, 1 projection": bridle.policy("anytime", domain),
    }
    if not isinstance(domain, type(bridle.Matchings(2))):
        learner = bridle.AdaFTRL(domain, geometry="entropy")
        chosen["sinha2024 with AdaFTRL by entropy"] = bridle.policy("sinha2024", domain, learner=learner, **told)
    return chosen


def games() -> list[dict[str, object]]:
    """Regret and violation of each policy, the median over seeds of the same streams, and microseconds a round."""
    found = []
    for kind, n in GAMES:
        domain = make(kind, n)
        for name, policy in policies(domain, ROUNDS).items():
            streams = [bridle.problem("halfspaces", horizon=ROUNDS, seed=seed, domain=domain) for seed in range(SEEDS)]
            bridle.play(policy, streams[0], horizon=3)  # what is imported on the way is not counted
            start = time.process_time()
            traces = [bridle.play(policy, stream) for stream in streams]
            spent = 1e6 * (time.process_time() - start) / (ROUNDS * SEEDS)
            figures = {
                "regret": statistics.median(
                    float(bridle.regret(trace, comparator=stream.constants["feasible"]))
                    for trace, stream in zip(traces, streams, strict=True)
                ),
                "ccv": statistics.median(float(bridle.ccv(trace)) for trace in traces),
                "microseconds": spent,
            }
            found.append({"domain": kind, "size": n, "policy": name} | {key: round(value, 1) for key, value in figures.items()})
            print(found[-1], flush=True)
    return found


def tables(steps: list[dict[str, object]], played: list[dict[str, object]]) -> tuple[str, str]:
    """Both tables in Markdown."""
    lines = [
        "| domain | d | linear minimisation, us | projection, us | times as much | as a mixture, us | times as much |",
        "|---" * 7 + "|",
    ]
    for row in steps:
        mixture = row.get("mixture")
        more = ["-", "-"] if mixture is None else [f"{mixture:g}", f"{mixture / row['linear']:.1f}"]
        lines.append(
            f"| `{row['domain']}`, {row['size']} | {row['dim']} | {row['linear']:g} | {row['project']:g} "
            f"| {row['project'] / row['linear']:.1f} | {' | '.join(more)} |"
        )
    other = ["| domain | policy | regret | CCV | us a round | times `wang2025` |", "|---" * 6 + "|"]
    base = 1.0
    for row in played:
        if row["policy"].startswith("wang2025,"):
            base = row["microseconds"]
        name, _, does = row["policy"].partition(", ")
        cost = f"`{name}`, {does}" if does else name.replace("sinha2024", "`sinha2024`")
        other.append(
            f"| `{row['domain']}`, {row['size']} | {cost} | {row['regret']:g} | {row['ccv']:g} | {row['microseconds']:g} "
            f"| {row['microseconds'] / base:.1f} |"
        )
    return "\n".join(lines), "\n".join(other)


def main() -> None:
    warnings.simplefilter("ignore")
    steps, played = operations(), games()
    first, second = tables(steps, played)
    print(first, second, sep="\n\n")
    facts = {"machine": platform.machine(), "python": platform.python_version(), "rounds": ROUNDS, "seeds": SEEDS}
    target(Path(__file__).with_name("oracles.json")).write_text(json.dumps(facts | {"operations": steps, "games": played}, indent=1) + "\n")
    page = target(PAGE)
    if not page.is_file():
        return
    text = page.read_text()
    for start, table in (("| domain | d |", first), ("| domain | policy |", second)):
        at = text.index(start)
        text = text[:at] + table + text[text.index("\n\n", at) :]
    page.write_text(text)


if __name__ == "__main__":
    main()
