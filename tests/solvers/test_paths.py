"""Paths in hindsight: against another solver, against every path of a grid, and at lengths whose answer is known."""

from __future__ import annotations

from itertools import product

import cvxpy as cp
import numpy as np
import pytest

import bridle
from bridle.core import Round
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.solvers.hindsight import best_fixed
from bridle.solvers.paths import best_path, length_of, path_costs
from helpers.cvxpy_reference import inside
from helpers.instances import make_domain


def stream(kind, rounds, domain, seed):
    """Costs that turn around, and a halfspace in each round that holds the middle of the domain."""
    dim, middle = domain.dim, np.asarray(domain.center())
    rng = np.random.default_rng([seed, 7])
    a = rng.standard_normal((rounds, dim)) + 2.0 * np.sin(np.arange(rounds) / 3.0)[:, None]
    if kind == "affine":
        cost = AffineFunction(a, rng.standard_normal(rounds))
    else:
        cost = RoundQuadratic(rng.uniform(0.5, 2.0, rounds), 0.5 * rng.standard_normal((rounds, dim)), 0.3 * a, np.zeros(rounds))
    n = rng.standard_normal((rounds, dim))
    return lambda: [Round(cost, (AffineFunction(n, -0.1 - n @ middle),))]


def reference(blocks, domain, length):
    """The same program by cvxpy."""
    [block] = blocks()
    cost, rounds = block.cost, len(block.cost.a if isinstance(block.cost, AffineFunction) else block.cost.curvature)
    u, terms, limits = cp.Variable((rounds, domain.dim)), [], []
    for t in range(rounds):
        if isinstance(cost, AffineFunction):
            terms.append(cost.a[t] @ u[t] + cost.b[t])
        else:
            terms.append(0.5 * cost.curvature[t] * cp.sum_squares(u[t] - cost.c[t]) + cost.a[t] @ u[t] + cost.b[t])
        limits += inside(domain, u[t]) + [c.a[t] @ u[t] + c.b[t] <= 0 for c in block.constraints]
    moves = cp.sum(cp.norm(u[1:] - u[:-1], axis=1))
    problem = cp.Problem(cp.Minimize(sum(terms)), [*limits, moves <= length])
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("kind", ["affine", "quadratic"])
@pytest.mark.parametrize("place", ["ball", "box", "simplex", "l1"])
def test_the_best_path_is_that_of_another_solver(kind, place):
    domain = make_domain(place, 2, 1.0, np.random.default_rng(3))
    for length in (0.3, 1.5):
        blocks = stream(kind, 12, domain, seed=5)
        best = best_path(blocks, domain, length)
        exact = reference(blocks, domain, length)
        scale = abs(exact) + 1.0
        assert best.cost == pytest.approx(exact, abs=2e-5 * scale)
        assert best.lower <= exact + 1e-6 * scale
        assert best.lower <= best.cost
        assert best.length <= length * (1.0 + 1e-5)
        assert best.length == pytest.approx(length_of(best.path))
        assert best.violation <= 1e-5
        assert all(domain.contains(u) for u in best.path)


def test_no_path_on_a_grid_is_better_and_the_best_of_them_is_close():
    """All paths of 5 rounds over 9 places, d = 1: brute force."""
    places, rounds = np.linspace(-1.0, 1.0, 9), 5
    for seed in range(4):
        rng = np.random.default_rng(seed)
        a, limit = rng.standard_normal(rounds), rng.uniform(-0.5, 1.0, rounds)
        blocks = [Round(AffineFunction(a[:, None], np.zeros(rounds)), (AffineFunction(np.ones((rounds, 1)), -limit),))]
        paths = np.array(list(product(places, repeat=rounds)))
        moved, fine = np.abs(np.diff(paths, axis=1)).sum(axis=1), (paths <= limit).all(axis=1)
        for length in (0.0, 0.5, 1.25, 3.0):
            best = best_path(lambda blocks=blocks: blocks, bridle.Box(-1.0, 1.0, dim=1), length)
            grid = (paths[fine & (moved <= length + 1e-12)] @ a).min()
            assert best.lower <= grid + 1e-9
            assert grid <= best.cost + 0.25 * np.abs(a).sum()  # what is lost by rounding down to a place
        assert best.cost == pytest.approx(best.lower, abs=1e-6)


@pytest.mark.slow
def test_no_move_is_the_best_fixed_action_and_free_moves_each_rounds_own():
    domain = bridle.Ball(2)
    blocks = stream("quadratic", 10, domain, seed=2)
    still = best_fixed(blocks, domain)
    assert best_path(blocks, domain, 0.0).cost == pytest.approx(still.cost, abs=1e-5 * abs(still.cost) + 1e-5)
    [block] = blocks()
    free = best_path(blocks, domain, 100.0)
    alone = [best_fixed(lambda t=t: [part(block, t)], domain).cost for t in range(10)]
    assert free.cost == pytest.approx(sum(alone), abs=1e-4)
    costs = [best_path(blocks, domain, length).cost for length in (0.0, 0.5, 1.0, 4.0)]
    assert costs == sorted(costs, reverse=True)


def part(block, t):
    """One round of a block."""
    cost, limit = block.cost, block.constraints[0]
    return Round(RoundQuadratic(*(np.asarray(leaf)[t : t + 1] for leaf in cost)), (AffineFunction(limit.a[t : t + 1], limit.b[t : t + 1]),))


def test_regret_against_a_path_is_the_sum_round_by_round():
    problem = bridle.problem("halfspaces", horizon=50, seed=3, dim=3)
    trace = bridle.play(bridle.policy("anytime", problem.domain), problem, keep="decisions")
    path = 0.3 * np.random.default_rng(0).standard_normal((50, 3))
    at: list[float] = []
    for block in trace.blocks():
        rows, levels = np.asarray(block.cost.a), np.broadcast_to(np.ravel(block.cost.b), len(block.cost.a))
        at += ((rows * path[len(at) : len(at) + len(rows)]).sum(axis=1) + levels).tolist()
    assert bridle.regret(trace, comparator=path) == pytest.approx(float(trace.totals.cost) - sum(at), abs=1e-9)
    assert bridle.regret(trace, comparator=trace.decisions) == pytest.approx(0.0, abs=1e-9)
    rounds, curve = bridle.regret_curve(trace, comparator=path)
    assert curve[-1] == pytest.approx(bridle.regret(trace, comparator=path), abs=1e-9)
    assert curve[0] == pytest.approx(trace.curve.cost[0] - sum(at[: int(rounds[0])]), abs=1e-9)
    fixed = np.array([0.1, -0.2, 0.3])
    assert bridle.regret(trace, comparator=np.tile(fixed, (50, 1))) == pytest.approx(bridle.regret(trace, comparator=fixed), abs=1e-9)
    for wrong in (path[:49], path[:, :2], np.full((50, 3), np.nan)):
        with pytest.raises(bridle.InputError, match="comparator must"):
            bridle.regret(trace, comparator=wrong)


@pytest.mark.slow
def test_dynamic_regret_is_against_the_best_path():
    trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "halfspaces", horizon=30)
    best = bridle.best_path(trace, 0.7)
    assert bridle.dynamic_regret(trace, 0.7) == pytest.approx(bridle.regret(trace, comparator=best.path), abs=1e-9)
    assert bridle.dynamic_regret(trace, 0.0) == pytest.approx(bridle.regret(trace), abs=1e-4)
    several = bridle.play(bridle.policy("adagrad", bridle.Ball(2)), "halfspaces", horizon=20, seed=[0, 1])
    for run in range(2):
        assert bridle.dynamic_regret(several, 1.0)[run] == pytest.approx(
            float(several.totals.cost[run]) - bridle.best_path(several, 1.0, run).cost
        )
    with pytest.raises(bridle.InputError, match="length must be 0 or above"):
        bridle.dynamic_regret(trace, -1.0)


def test_where_no_path_is_allowed_the_error_says_so():
    limits = AffineFunction(np.array([[1.0], [-1.0]]), np.array([0.5, 0.5]))  # x <= -1/2, then x >= 1/2: it must move by 1
    costs = AffineFunction(np.ones((2, 1)), np.zeros(2))
    blocks, domain = (lambda: [Round(costs, (limits,))]), bridle.Box(-1.0, 1.0, dim=1)
    assert best_path(blocks, domain, 1.0).path[:, 0] == pytest.approx([-0.5, 0.5], abs=1e-7)
    with pytest.raises(bridle.NoComparator, match="no path of that length"):
        best_path(blocks, domain, 0.9)
    with pytest.raises(bridle.NoComparator, match="2000 at most"):
        best_path(lambda: [Round(AffineFunction(np.ones((300, 100)), np.zeros(300)), ())], bridle.Ball(100), 1.0)


def test_functions_without_a_time_axis_come_one_by_one():
    def blocks():
        return [
            Round(bridle.Callable(lambda x, t=t: float((x[0] - t) ** 2), lambda x, t=t: np.array([2.0 * (x[0] - t)])), ())
            for t in (0.0, 1.0)
        ]

    assert path_costs(blocks, [[0.5], [0.5]]).tolist() == [0.25, 0.25]
    best = best_path(blocks, bridle.Box(-1.0, 2.0, dim=1), 0.5)  # from 1/4 to 3/4
    assert best.path[:, 0] == pytest.approx([0.25, 0.75], abs=1e-3)
    assert best.cost == pytest.approx(0.125, abs=1e-5)
