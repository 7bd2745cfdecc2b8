"""What one round of Algorithm 1 costs on each path, as ratios to a hand-inlined NumPy loop on the same stream in the same run.

Linear costs and constraints, d = 30, L2 ball, preset practice. Repeats are interleaved; the table shows the median and the spread of the
ratios. Every path is checked to end at the same decision before anything is timed.
"""

from __future__ import annotations

import platform
import statistics
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import bridle

D, ROUNDS, RUNS, REPEATS = 30, 20_000, 256, 5


def plain_numpy(problem, policy) -> np.ndarray:
    """Algorithm 1 as one would write it in a notebook: no records, no checks, no totals."""
    record = policy.record
    lam, beta, V, diameter = record.potential.lam, record.beta, record.V, record.learner.diameter
    x, Q, S = np.zeros(D), 0.0, 0.0
    for block in _blocks(problem):
        for c, a, b in zip(block.cost.a, block.constraints[0].a, block.constraints[0].b, strict=True):
            g = a @ x + b
            if g > 0.0:
                Q += beta * g
                p = V * beta * c + lam * np.exp(lam * Q) * beta * a
            else:
                p = V * beta * c
            S += p @ p
            x = x - diameter / np.sqrt(2.0 * S) * p
            n = np.sqrt(x @ x)
            if n > 1.0:
                x = x / n
    return x


def _blocks(problem):
    from bridle.adversaries import deal_blocks

    return deal_blocks(problem.adversary, problem.seed, problem.horizon, D)


def session(problem, policy, **settings) -> np.ndarray:
    """Decide and observe, with every check on the input; `settings` are the session's own, such as certify=False."""
    driven = bridle.Session(policy, **settings)
    for block in _blocks(problem):
        for c, a, b in zip(block.cost.a, block.constraints[0].a, block.constraints[0].b, strict=True):
            x = driven.decide()
            driven.observe(f=float(c @ x), df=c, g=float(a @ x + b), dg=a)
    return driven.decide()


def main() -> None:
    problem = bridle.problem("halfspaces", horizon=ROUNDS, dim=D)
    policy = bridle.policy_for("sinha2024", problem, preset="practice")
    sweep = bridle.policy_for("sinha2024", problem, lam=list(np.geomspace(1e-4, 1e-1, RUNS)))

    def engine(name, which=policy):
        return lambda: which.decide(bridle.play(which, problem, engine=name).state)

    paths = {
        "NumPy loop, inlined by hand": (lambda: plain_numpy(problem, policy), 1),
        "play, engine python": (engine("python"), 1),
        "Session.decide + observe": (lambda: session(problem, policy), 1),
        "Session.decide + observe, certify=False": (lambda: session(problem, policy, certify=False), 1),
        "play, engine jax": (engine("jax"), 1),
        f"play, engine jax, {RUNS} runs at once": (engine("jax", sweep), RUNS),
    }
    ends = [run() for run, runs in paths.values() if runs == 1]  # also warms every path up
    for end in ends[1:]:
        assert np.abs(end - ends[0]).max() < 1e-10, "the paths do not compute the same decisions"
    times: dict[str, list[float]] = {name: [] for name in paths}
    for _ in range(REPEATS):
        for name, (run, runs) in paths.items():
            begun = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - begun) / (ROUNDS * runs))
    base = times["NumPy loop, inlined by hand"]
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    table = Table(title=f"Algorithm 1, d = {D}, T = {ROUNDS:,}, {machine}, {REPEATS} interleaved repeats")
    for column in ("path", "us per run and round", "ratio to NumPy", "spread"):
        table.add_column(column, justify="left" if column == "path" else "right")
    for name, spent in times.items():
        ratios = [mine / theirs for mine, theirs in zip(spent, base, strict=True)]
        table.add_row(
            name, f"{1e6 * statistics.median(spent):.3g}", f"{statistics.median(ratios):.3g}", f"{min(ratios):.3g} - {max(ratios):.3g}"
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
