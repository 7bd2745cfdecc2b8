"""What a round costs where a program is solved each round, against the same program through cvxpy.

First guo2022 with linear costs and one half-space a round, d = 30, L2 ball and box: whole games, and of the Python engine the program
alone. Then programs with several constraints: half-spaces, which go to DAQP, and quadratics, which are dualised. cvxpy with Clarabel, as a
problem with parameters that is compiled ahead of time (and for guo2022 built anew each round as well), at its default tolerances; fewer
rounds, since it is slow. Every path's decisions are compared before anything is timed; repeats are interleaved; the tables show medians.
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
from bridle.policies import proximal
from bridle.problems.dealing import deal_blocks
from bridle.solvers import function_prox, hinge_prox
from parts.toy import size

D, ROUNDS, CVXPY_ROUNDS, REPEATS = size((30, 10_000, 100, 5), (4, 20, 2, 3))
DOMAINS = (("ball", bridle.Ball(D)), ("box", bridle.Box(-1.0, 1.0, dim=D)))


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


def steps_of(policy, problem) -> list[tuple]:
    """What every proximal step of a game is given."""
    seen: list[tuple] = []
    step = proximal.hinge

    def noted(*given):
        seen.append(given)
        return step(*given)

    proximal.hinge = noted
    try:
        bridle.play(policy, problem)
    finally:
        proximal.hinge = step
    return seen


def every(solve: Callable[..., object], given: list[tuple]) -> Callable[[], None]:
    def run() -> None:
        for numbers in given:
            solve(*numbers)

    return run


def measured(paths: dict[str, tuple[Callable[[], object], int]], base: str, name: str, table: Table) -> dict[str, list[float]]:
    """Microseconds a round of every path, `base` being the one that the others are compared with."""
    times: dict[str, list[float]] = {label: [] for label in paths}
    for _ in range(REPEATS):
        for label, (run, rounds) in paths.items():
            begun = time.perf_counter()
            run()
            times[label].append(1e6 * (time.perf_counter() - begun) / rounds)
    for label, spent in times.items():
        ratios = [theirs / mine for mine, theirs in zip(spent, times[base], strict=True)]
        spread = f"{min(ratios):.3g} - {max(ratios):.3g}"
        table.add_row(label, name, f"{statistics.median(spent):.3g}", f"{statistics.median(ratios):.3g}", spread)
    return times


def tabled(title: str) -> Table:
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    table = Table(title=f"{title}, d = {D}, {machine}, {REPEATS} interleaved repeats")
    for column in ("path", "domain", "us a round", "cvxpy (parameters) / this", "spread"):
        table.add_column(column, justify="left" if column in ("path", "domain") else "right")
    return table


def games() -> Table:
    table = tabled("guo2022, one half-space a round")
    for name, domain in DOMAINS:
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
            "guo2022, the program alone": (every(proximal.hinge, steps_of(guo, problem)), ROUNDS),
        }
        for label, policy in (("guo2022", guo), ("sinha2024", sinha)):
            for engine in ("python", "jax"):
                paths[f"{label}, engine {engine}"] = (lambda p=problem, w=policy, e=engine: bridle.play(w, p, engine=e), ROUNDS)
        times = measured(paths, "cvxpy, parameters", name, table)
        for engine in ("python", "jax"):
            ratio = statistics.median(
                a / b for a, b in zip(times[f"guo2022, engine {engine}"], times[f"sinha2024, engine {engine}"], strict=True)
            )
            table.add_row(f"guo2022 / sinha2024, engine {engine}", name, "", f"{ratio:.3g} x slower", "")
    return table


def several() -> Table:
    """|x - v|^2 + sum_i p_i g_i(x)^+ for k = 3 half-spaces, and for k = 2 quadratics with one curvature matrix each."""
    rng = np.random.default_rng(0)
    table = tabled("several constraints")
    roots = rng.standard_normal((2, D, D)) / D**0.5
    forms = [root.T @ root for root in roots]
    for name, domain in DOMAINS:
        far = domain.diameter() / D**0.5
        x, v = cp.Variable(D), cp.Parameter(D)
        A, b = cp.Parameter((3, D)), cp.Parameter(3)
        rows = cp.Problem(cp.Minimize(cp.sum_squares(x - v) + cp.sum(cp.pos(A @ x - b))), inside(domain, x))
        centres, levels, prices = cp.Parameter((2, D)), cp.Parameter(2), np.array([3.0, 1.0])
        bowls = [0.5 * cp.sum_squares(root @ x - centre) - level for root, centre, level in zip(roots, centres, levels, strict=True)]
        bent = cp.Problem(
            cp.Minimize(cp.sum_squares(x - v) + sum(p * cp.pos(g) for p, g in zip(prices, bowls, strict=True))), inside(domain, x)
        )

        def by_rows(at, matrix, level, problem=rows, x=x, v=v, A=A, b=b):
            v.value, A.value, b.value = at, matrix, level
            problem.solve(solver="CLARABEL")
            return x.value

        def by_bowls(at, middles, level, problem=bent, x=x, v=v, centres=centres, levels=levels):
            v.value, levels.value = at, level
            centres.value = np.array([root @ z for root, z in zip(roots, middles, strict=True)])
            problem.solve(solver="CLARABEL")
            return x.value

        def ours(at, middles, level, domain=domain, prices=prices):
            functions = [
                bridle.functions.QuadraticForm(P, -P @ z, 0.5 * z @ P @ z - e) for P, z, e in zip(forms, middles, level, strict=True)
            ]
            return function_prox.hinges_of(domain, at, functions, prices, 1.0)

        def steps(at, matrix, level, domain=domain):
            return hinge_prox.hinges(domain, at, matrix, level, np.ones(3), 1.0)

        flat = [(far * rng.standard_normal(D), rng.standard_normal((3, D)), rng.uniform(-0.2, 0.2, 3)) for _ in range(CVXPY_ROUNDS)]
        round_ = [
            (far * rng.standard_normal(D), 0.3 * far * rng.standard_normal((2, D)), rng.uniform(0.05, 0.2, 2)) for _ in range(CVXPY_ROUNDS)
        ]
        for mine, theirs, given in ((steps, by_rows, flat), (ours, by_bowls, round_)):
            gap = max(float(np.abs(mine(*numbers) - theirs(*numbers)).max()) for numbers in given)
            assert gap < 1e-3 * domain.diameter(), f"the paths differ by {gap:.2g}"
        for label, mine, theirs, given in (("3 half-spaces", steps, by_rows, flat), ("2 quadratics", ours, by_bowls, round_)):
            paths = {
                f"{label}, {who}": (every(solve, given), CVXPY_ROUNDS) for who, solve in (("cvxpy, parameters", theirs), ("bridle", mine))
            }
            measured(paths, f"{label}, cvxpy, parameters", name, table)
    return table


def main() -> None:
    warnings.simplefilter("ignore")  # cvxpy says when Clarabel stopped short of its tolerances
    for table in (games(), several()):
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
