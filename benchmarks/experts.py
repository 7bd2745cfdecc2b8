"""Experts with limits: `experts` against Algorithm 1 and `anytime` on the simplex, up to 10,000 experts; docs/experts.md has the tables.

The problem is `experts`: a tenth of the experts never violate, the others are cheaper and violate at random, or, against an adversary that
looks at the weights, whenever they have most of the weight. Every policy is told what it needs and nothing else: Algorithm 1 the horizon
and a Lipschitz constant (with AdaHedge the range of costs), the others nothing. Microseconds are those of a policy's own round, without the
stream, on prepared feedback. The growth with T is played on the engine jax.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np

import bridle
from bridle.core import Feedback
from bridle.policies.common import constants_from
from parts.toy import size, target

SIZES, ROUNDS, SEEDS = size((10, 100, 1_000, 10_000), (10,)), size(4_000, 40), size(3, 1)
HORIZONS, GROWING, REPEATS = size((1_000, 10_000, 100_000), (20, 40)), 100, size(3, 1)
BEGIN, END = "<!-- measured by benchmarks/experts.py -->", "<!-- end of what benchmarks/experts.py measured -->"
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "`experts`": ("experts", {}),
    "`experts`, `drop=False`": ("experts", {"drop": False}),
    "`sinha2024`": ("sinha2024", {}),
    "`sinha2024`, AdaHedge": ("sinha2024", {"learner": "adahedge"}),
    "`anytime`": ("anytime", {}),
    "`anytime`, entropy": ("anytime-entropy", {}),
}
GROWN = ("`experts`", "`experts`, `drop=False`", "`sinha2024`", "`anytime`")
KINDS = {"at random": 0, "spiteful": 1}
SLOW = {("`anytime`, entropy", "spiteful", 10_000): 1}
"""Games of which fewer seeds are played: a round takes ten milliseconds."""


def made(label: str, problem: bridle.Problem) -> Any:
    """The policy, told what it needs. By ranges, Algorithm 1 with AdaHedge is told 1 / sqrt(2) of the largest."""
    name, settings = POLICIES[label]
    if settings.get("learner") == "adahedge":
        settings = {**settings, "lipschitz": problem.constants["spread"] / sqrt(2.0)}
    return bridle.policy_for(name, problem, **settings)


def pace(policy: Any, problem: bridle.Problem) -> float:
    """Microseconds of the processor for one decision and one update, the median of several times 20."""
    rng, N, record = np.random.default_rng(0), problem.domain.dim, policy.record
    state, careless = record.init(problem.domain.center()), 1.0 * (problem.constants["feasible"] == 0.0)
    spent = []
    for _ in range(size(7, 1)):
        rounds = [(rng.random(N), careless * rng.random(N) * (rng.random(N) < 0.05)) for _ in range(20)]
        began = time.process_time()
        for f, c in rounds:
            x = record.decide(state)
            state = record.update(state, Feedback(x, float(f @ x), f, np.array([c @ x]), c[None]))
        spent.append((time.process_time() - began) / 20.0)
    return 1e6 * statistics.median(spent)


def games(label: str, kind: str, dim: int, horizon: int, seeds: int, engine: str) -> dict[str, float]:
    """Medians over seeds; the largest share of the policy's own bound, where it has one."""
    regrets, violations, shares = [], [], []
    for seed in range(seeds):
        problem = bridle.problem("experts", horizon=horizon, seed=seed, dim=dim, adaptive=KINDS[kind])
        trace = bridle.play(made(label, problem), problem, engine=engine)
        regrets.append(float(bridle.regret(trace)))
        violations.append(float(bridle.ccv(trace)))
        bound = trace.policy.bound({**problem.constants, **constants_from(trace.state)}, horizon)
        shares += [violations[-1] / float(bound.ccv)] if bound.ccv is not None and label.startswith("`experts`") else []
    found = {"regret": statistics.median(regrets), "ccv": statistics.median(violations)}
    return found | ({"of bound": max(shares)} if shares else {})


def measure() -> dict[str, Any]:
    table, paces, growth = [], [], []
    for dim in SIZES:
        for label in POLICIES:
            paces.append({"N": dim, "policy": label, "us": pace(made(label, problem_of(dim)), problem_of(dim))})
            for kind in KINDS:
                seeds = SLOW.get((label, kind, dim), SEEDS)
                table.append({"N": dim, "policy": label, "kind": kind, **games(label, kind, dim, ROUNDS, seeds, "python")})
                print(table[-1], file=sys.stderr, flush=True)
    for label in GROWN:
        for kind in KINDS:
            for T in HORIZONS:
                growth.append({"T": T, "policy": label, "kind": kind, **games(label, kind, GROWING, T, REPEATS, "jax")})
                print(growth[-1], file=sys.stderr, flush=True)
    return {"rounds": ROUNDS, "seeds": SEEDS, "games": table, "pace": paces, "growth": growth, "growing": {"N": GROWING, "seeds": REPEATS}}


def problem_of(dim: int) -> bridle.Problem:
    return bridle.problem("experts", horizon=ROUNDS, dim=dim)


def markdown(found: dict[str, Any]) -> str:
    """The tables of the page."""
    parts = []
    sizes = sorted({row["N"] for row in found["games"]})
    for kind in KINDS:
        lines = [f"| {kind}: CCV (regret) | " + " | ".join(f"N = {N:,}" for N in sizes) + " |", "|---" * (len(sizes) + 1) + "|"]
        for label in POLICIES:
            rows = {row["N"]: row for row in found["games"] if row["policy"] == label and row["kind"] == kind}
            lines.append(f"| {label} | " + " | ".join(f"{rows[N]['ccv']:.1f} ({rows[N]['regret']:.0f})" for N in sizes) + " |")
        parts.append("\n".join(lines))
    lines = ["| microseconds a round | " + " | ".join(f"N = {N:,}" for N in sizes) + " |", "|---" * (len(sizes) + 1) + "|"]
    for label in POLICIES:
        paces = {row["N"]: row["us"] for row in found["pace"] if row["policy"] == label}
        lines.append(f"| {label} | " + " | ".join(f"{paces[N]:.0f}" for N in sizes) + " |")
    parts.append("\n".join(lines))
    horizons = sorted({row["T"] for row in found["growth"]})
    title = f"N = {found['growing']['N']}: CCV (regret)"
    lines = [f"| {title} | " + " | ".join(f"T = {T:,}" for T in horizons) + " | exponent of the CCV |", "|---" * (len(horizons) + 2) + "|"]
    for kind in KINDS:
        for label in GROWN:
            rows = {row["T"]: row for row in found["growth"] if row["policy"] == label and row["kind"] == kind}
            slope = log(max(rows[horizons[-1]]["ccv"], 1e-9) / max(rows[horizons[-2]]["ccv"], 1e-9)) / log(horizons[-1] / horizons[-2])
            cells = [f"{rows[T]['ccv']:.1f} ({rows[T]['regret']:.0f})" for T in horizons]
            lines.append(f"| {label}, {kind} | " + " | ".join(cells) + f" | {slope:.2f} |")
    parts.append("\n".join(lines))
    shares = [row["of bound"] for row in (*found["games"], *found["growth"]) if "of bound" in row]
    parts.append(f"The largest share of its violation bound that `experts` came to in these games is {max(shares):.2f}.")
    return "\n\n".join(parts)


def main() -> None:
    warnings.simplefilter("ignore")
    found = measure()
    target(Path(__file__).with_name("experts.json")).write_text(json.dumps(found, indent=1) + "\n")
    page = target(Path(__file__).parent.parent / "docs" / "experts.md")
    text = page.read_text()
    page.write_text(f"{text[: text.index(BEGIN) + len(BEGIN)]}\n{markdown(found)}\n{text[text.index(END) :]}")
    print(markdown(found))


if __name__ == "__main__":
    main()
