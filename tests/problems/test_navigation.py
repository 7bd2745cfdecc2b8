"""The robot: the energy is that of its way, the halfspaces keep it clear of discs, and the constants are attained by attacks on them."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest

import bridle
from bridle import records
from bridle.problems import _navigation as navigation
from helpers.pinned_streams import figures

ROBOTS = [{}, {"waypoints": 1, "constraints": 1}, {"waypoints": 3, "wind": 8.0, "slater": 0.0, "constraints": 2}]
LAPS = 40 * navigation.LAPS


def sides(lap: bridle.Round, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Beside which waypoint each obstacle of a lap lies, and on which side it is passed."""
    rows = -lap.constraints[0].A.reshape(-1, n, 2)
    beside = np.argmax(np.abs(rows).sum(axis=2), axis=1)
    assert (np.count_nonzero(np.abs(rows).sum(axis=2), axis=1) == 1).all()
    return beside, rows[np.arange(len(rows)), beside]


@pytest.mark.parametrize("given", ROBOTS, ids=str)
def test_the_energy_is_the_squared_length_of_the_legs_and_what_the_wind_adds(given):
    problem = bridle.problem("navigation", horizon=100, seed=3, **given)
    n, rng = given.get("waypoints", 6), np.random.default_rng(0)
    laps, calm = problem.adversary.replay(0, 100), problem.adversary.stream.a
    for t in (0, 49, 50, 99):
        lap, x = records.take(laps, float(t)), rng.uniform(problem.domain.low, problem.domain.high)
        way = np.vstack([[0.0, 0.0], x.reshape(n, 2), [1.0, 0.0]])
        legs = float((np.diff(way, axis=0) ** 2).sum())
        wind = lap.cost.a - calm
        assert lap.cost.value(x) == pytest.approx(0.5 * (n + 1) * legs + float(wind @ x), rel=1e-12)
        assert np.abs(wind).max() <= given.get("wind", 1.0) / n
    straight = np.stack([np.arange(1, n + 1) / (n + 1), np.zeros(n)], axis=1).reshape(-1)
    assert 0.5 * straight @ problem.adversary.stream.P @ straight + calm @ straight + 0.5 * (n + 1) == pytest.approx(0.5)


@pytest.mark.parametrize("given", ROBOTS, ids=str)
def test_who_keeps_the_limits_keeps_clear_of_every_obstacle(given):
    """Discs of any radius that touch the halfspace's edge: a waypoint with g <= 0 is outside, by as much as it has to spare."""
    problem = bridle.problem("navigation", horizon=100, seed=5, **given)
    n, rng, outside = given.get("waypoints", 6), np.random.default_rng(1), 0
    laps, route = problem.adversary.replay(0, 100), problem.adversary.stream.route
    for t in range(100):
        lap = records.take(laps, float(t))
        beside, across = sides(lap, n)
        np.testing.assert_allclose(np.linalg.norm(across, axis=1), 1.0, rtol=1e-12)
        at_route = -lap.constraints[0].value(route.reshape(-1))
        assert (at_route >= given.get("slater", 0.02) - 1e-12).all()
        assert (at_route <= given.get("slater", 0.02) + navigation.ROOM + 1e-12).all()
        x = rng.uniform(problem.domain.low, problem.domain.high)
        g = lap.constraints[0].value(x)
        for obstacle, (j, u) in enumerate(zip(beside, across, strict=True)):
            r = rng.uniform(0.01, 0.3)
            centre = route[j] - (at_route[obstacle] + r) * u  # it touches the edge, on the other side of the free route
            clear = float(np.linalg.norm(x.reshape(n, 2)[j] - centre)) - r
            assert clear >= -g[obstacle] - 1e-12
            outside += g[obstacle] <= 0.0
    assert outside >= 10, "some of these ways keep the limits"


@pytest.mark.parametrize("given", ROBOTS, ids=str)
def test_the_constants_of_the_robot_are_nearly_attained(given):
    problem = bridle.problem("navigation", horizon=10, seed=2, **given)
    known, laps, n = problem.constants, problem.adversary.replay(0, LAPS), given.get("waypoints", 6)
    turns = np.array(list(itertools.product((0, 1), repeat=2)))
    corners = [np.where((np.arange(2 * n) // 2 + turns[i][np.arange(2 * n) % 2]) % 2 == 0, problem.domain.low, problem.domain.high)
               for i in range(4)]  # fmt: skip
    steepest = max(np.linalg.norm(laps.cost.P[0] @ x + laps.cost.a, axis=1).max() for x in corners)
    assert 0.85 * known["lipschitz"] <= max(1.0, steepest) <= known["lipschitz"]
    ends = itertools.product(*zip(problem.domain.low[:2], problem.domain.high[:2], strict=True))
    values = [laps.constraints[0].value(np.tile(end, n)[None]) for end in ends]
    assert 0.95 * known["bound"] <= max(np.abs(value).max() for value in values) <= known["bound"] * (1.0 + 1e-12)
    assert np.linalg.eigvalsh(laps.cost.P[0])[0] == pytest.approx(known["modulus"], rel=1e-9)
    room = -laps.constraints[0].value(known["feasible"][None]).max()
    assert (known["slater"] or 0.0) <= room + 1e-12 <= (known["slater"] or 0.0) + 0.01


def test_the_straight_way_is_blocked_and_the_best_one_costs_more():
    """The best way in hindsight, by another solver; the straight one is cheaper and runs into what is there."""
    problem = bridle.problem("navigation", horizon=200, seed=2)
    trace = bridle.play(bridle.policy("anytime", problem.domain), problem)
    laps, x = problem.adversary.replay(0, 200), cp.Variable(12)
    root = np.linalg.cholesky(laps.cost.P.sum(axis=0))
    cost = cp.sum_squares(root.T @ x) / 2 + laps.cost.a.sum(axis=0) @ x + laps.cost.b.sum()
    holds = [laps.constraints[0].A.reshape(-1, 12) @ x + laps.constraints[0].b.reshape(-1) <= 0]
    program = cp.Problem(cp.Minimize(cost), [*holds, x >= problem.domain.low, x <= problem.domain.high])
    program.solve(solver=cp.CLARABEL)
    best = bridle.best_action(trace)
    assert best.cost == pytest.approx(program.value, rel=1e-7)
    free = problem.constants["feasible"]
    straight = np.stack([free[0::2], np.zeros(6)], axis=1).reshape(-1)
    costs = {name: float(np.sum(records.widen(laps, 1).cost.value(way[None]))) for name, way in (("free", free), ("straight", straight))}
    assert costs["straight"] < best.cost <= costs["free"]
    assert laps.constraints[0].value(straight[None]).max() > 0.15


def test_the_free_route_goes_to_one_side_and_obstacles_lie_on_the_other():
    for seed in range(6):
        problem = bridle.problem("navigation", horizon=50, seed=seed, waypoints=5)
        laps, side = problem.adversary, problem.adversary.stream.side
        assert (side * problem.constants["feasible"][1::2] > 0.0).all()
        assert navigation.BEND[0] <= abs(problem.constants["feasible"][5]) <= navigation.BEND[1]
        _, across = sides(records.take(laps.replay(0, 50), 7.0), 5)
        assert (side * across[:, 1] >= np.cos(navigation.LEAN) - 1e-12).all()
    assert {bridle.problem("navigation", horizon=5, seed=seed).adversary.stream.side for seed in range(6)} == {-1.0, 1.0}


def test_the_laps_of_a_seed_are_these():
    constants, first, later = figures("navigation", 0, 60)
    assert constants == pytest.approx([47.27049819919396, 1.04671635835745, 1.386435849366132, 0.02], rel=1e-12)
    assert first == pytest.approx([1.705407957636, 0.202096426997, 0.36744756159, 0.224068356631], rel=1e-10)
    assert later == pytest.approx([1.548799277485, -0.099438241796, -0.207695840822, 0.38707131782], rel=1e-10)


@pytest.mark.parametrize("slater", [0.0, 0.1, 0.45])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_largest_value_is_that_of_all_corners_and_sides(n, seed, slater):
    """By brute force over where a waypoint is, on which side an obstacle is passed, and how much room it leaves."""
    problem = bridle.problem("navigation", horizon=5, seed=seed, waypoints=n, slater=slater)
    turned = np.linspace(-navigation.LEAN, navigation.LEAN, 2001)
    across = np.stack([np.sin(turned), problem.adversary.stream.side * np.cos(turned)], axis=1)
    largest = 0.0
    for q in problem.constants["feasible"].reshape(n, 2):
        for corner in itertools.product((0.0, 1.0), (-0.5, 0.5)):
            for gap in (slater, slater + 0.1):
                largest = max(largest, float(np.abs(across @ (q - np.array(corner)) - gap).max()))
    assert largest == pytest.approx(problem.constants["bound"], rel=1e-5)
    assert problem.constants["bound"] >= largest - 1e-12


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_longest_slope_is_that_of_every_entry_at_its_worst_corner(n):
    problem = bridle.problem("navigation", horizon=5, seed=1, waypoints=n, wind=2.0)
    corners = np.array(list(itertools.product(*zip(problem.domain.low, problem.domain.high, strict=True))))
    way = np.concatenate([np.zeros((len(corners), 1, 2)), corners.reshape(-1, n, 2), np.tile([[[1.0, 0.0]]], (len(corners), 1, 1))], axis=1)
    slopes = (n + 1) * (2.0 * way[:, 1:-1] - way[:, :-2] - way[:, 2:]).reshape(-1, 2 * n)
    assert problem.constants["lipschitz"] == pytest.approx(np.linalg.norm(np.abs(slopes).max(axis=0) + 2.0 / n), rel=1e-12)


def test_no_room_to_spare_is_no_slater_point():
    assert bridle.problem("navigation", horizon=5, slater=0.0).constants["slater"] is None
    assert bridle.problem("navigation", horizon=5, slater=0.5).constants["slater"] == 0.5
    assert bridle.problem("navigation", horizon=5).constants["feasible"].shape == (12,)
    assert bridle.problem("navigation", horizon=5).constants["time_varying"]
