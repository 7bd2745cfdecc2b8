"""What a round costs where a program is solved each round: guo2022 (one affine constraint) against the same program through cvxpy.

Linear costs and one half-space a round, d = 30, L2 ball and box. cvxpy with Clarabel, once as a problem with parameters that is compiled
ahead of time and once built anew each round, at its default tolerances; fewer rounds, since it is slow. Every path's decisions are
compared before anything is timed; repeats are interleaved, and the table shows medians.
"""

from __future__ import annotations

import platform
import statistics
import time
import warnings
from collections.abc import Callable

import cvxpy as cp
import numpy as np
from rich.console import Console
from rich.table import Table

import bridle
from bridle.adversaries import deal_blocks

D, ROUNDS, CVXPY_ROUNDS, REPEATS = 30, 10_000, 100, 5


def inside(domain, x) -> list:
    return [cp.norm(x - domain.middle) <= domain.radius] if hasattr(domain, "radius") else [x >= domain.low, x <= domain.high]


def rebuilt(domain) -> Callable[..., np.ndarray]:
    def solve(v, a, b, price):
        x = cp.Variable(D)
        cp.Problem(cp.Minimize(cp.sum_squares(x - v) + price * cp.pos(a @ x - b)), inside(domain, x)).solve(solver="CLARABEL")
        return x.value

    return solve


def parametrised(domain) -> Callable[..., np.ndarray]:
    x, centre, row, level = cp.Variable(D), cp.Parameter(D), cp.Parameter(D), cp.Parameter()
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - centre) + cp.pos(row @ x - level)), inside(domain, x))

    def solve(v, a, b, price):
        centre.value, row.value, level.value = v, price * a, price * b
        problem.solve(solver="CLARABEL")
        return x.value

    return solve


def through_cvxpy(problem, solve: Callable[..., np.ndarray], rounds: int) -> np.ndarray:
    """The policy written around a solver, as one would."""
    domain = problem.domain
    G, size = problem.constants["lipschitz"], domain.diameter()
    x, Q, t, decisions = domain.center(), 0.0, 0, []
    for block in deal_blocks(problem.adversary, problem.seed, problem.horizon, D):
        for c, a, b in zip(block.cost.a, block.constraints[0].a, block.constraints[0].b, strict=True):
            t += 1
            decisions.append(x)
            if t > rounds:
                return np.array(decisions)
            alpha, Q = G / (2**0.5 * size) * t**0.5, max(Q, t**0.5)
            x = solve(x - c / (2 * alpha), a, -b, Q * t / alpha)
            Q += t * max(0.0, float(a @ x + b)) / (G * size)
    return np.array(decisions)


def main() -> None:
    warnings.simplefilter("ignore")  # cvxpy says when Clarabel stopped short of its tolerances
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    table = Table(title=f"guo2022, d = {D}, one half-space a round, {machine}, {REPEATS} interleaved repeats")
    for column in ("path", "domain", "us a round", "cvxpy (parameters) / this", "spread"):
        table.add_column(column, justify="left" if column in ("path", "domain") else "right")
    for name, domain in (("ball", bridle.Ball(D)), ("box", bridle.Box(-1.0, 1.0, dim=D))):
        problem = bridle.problem("halfspaces", horizon=ROUNDS, domain=domain)
        guo, sinha = (bridle.policy_for(which, problem) for which in ("guo2022", "sinha2024"))
        small = bridle.play(guo, problem, horizon=CVXPY_ROUNDS, keep="decisions").decisions
        compiled, anew = parametrised(domain), rebuilt(domain)
        for solve in (compiled, anew):
            gap = np.abs(through_cvxpy(problem, solve, CVXPY_ROUNDS)[:CVXPY_ROUNDS] - small).max()
            assert gap < 1e-4 * domain.diameter(), f"the paths differ by {gap:.2g}"
        ends = [bridle.play(guo, problem, engine=engine).state.x for engine in ("python", "jax")]  # also warms them up
        assert np.abs(ends[0] - ends[1]).max() < 1e-9
        bridle.play(sinha, problem, engine="jax")
        paths: dict[str, tuple[Callable[[], object], int]] = {
            "cvxpy, parameters": (lambda p=problem, s=compiled: through_cvxpy(p, s, CVXPY_ROUNDS), CVXPY_ROUNDS),
            "cvxpy, built anew": (lambda p=problem, s=anew: through_cvxpy(p, s, CVXPY_ROUNDS), CVXPY_ROUNDS),
        }
        for label, policy in (("guo2022", guo), ("sinha2024", sinha)):
            for engine in ("python", "jax"):
                paths[f"{label}, engine {engine}"] = (lambda p=problem, w=policy, e=engine: bridle.play(w, p, engine=e), ROUNDS)
        times: dict[str, list[float]] = {label: [] for label in paths}
        for _ in range(REPEATS):
            for label, (run, rounds) in paths.items():
                begun = time.perf_counter()
                run()
                times[label].append(1e6 * (time.perf_counter() - begun) / rounds)
        base = times["cvxpy, parameters"]
        for label, spent in times.items():
            ratios = [theirs / mine for mine, theirs in zip(spent, base, strict=True)]
            spread = f"{min(ratios):.3g} - {max(ratios):.3g}"
            table.add_row(label, name, f"{statistics.median(spent):.3g}", f"{statistics.median(ratios):.3g}", spread)
        for engine in ("python", "jax"):
            ratio = statistics.median(
                a / b for a, b in zip(times[f"guo2022, engine {engine}"], times[f"sinha2024, engine {engine}"], strict=True)
            )
            table.add_row(f"guo2022 / sinha2024, engine {engine}", name, "", f"{ratio:.3g} x slower", "")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
