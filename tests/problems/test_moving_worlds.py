"""Worlds that move: rounds, constants and what is best in each, computed by other means."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle import records
from bridle.game.metrics import against_the_known_path
from bridle.game.summary import summary
from bridle.problems._moving import PLACES, MovingWorld, rounds_of
from bridle.problems.instance import begin, random_action, random_directions
from bridle.solvers.hindsight import best_fixed

NAMES = ("drifting-optimum", "jumping-limits", "seasonal-limits")
PERIODS = {"drifting-optimum": 60, "jumping-limits": 15, "seasonal-limits": 20}


def played(name, policy="anytime", horizon=40, **given):
    problem = bridle.problem(name, horizon=horizon, dim=3, **{"period": PERIODS[name], **given})
    return problem, bridle.play(bridle.policy_for(policy, problem), problem)


@pytest.mark.parametrize("domain", ["ball", "box", "simplex", "l1"])
@pytest.mark.parametrize("modulus", [0.0, 1.5])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.covering(2)
def test_the_path_is_that_of_each_rounds_program(name, modulus, domain):
    problem, trace = played(name, horizon=20, modulus=modulus, domain=domain, seed=2, period=PERIODS[name] // 2)
    rounds = records.join(list(trace.blocks()))
    programs = [best_fixed(lambda i=i: [records.cut(rounds, i, i + 1)], problem.domain) for i in range(20)]
    assert problem.constants["path_cost"] == pytest.approx(sum(program.cost for program in programs), abs=1e-5)
    found = bridle.best_path(trace)
    assert found.length == pytest.approx(problem.constants["path"], rel=1e-9, abs=1e-9)
    assert bridle.path_length(found.path) == found.length
    if modulus:
        moves = np.diff([program.x for program in programs], axis=0)
        assert problem.constants["path"] == pytest.approx(np.linalg.norm(moves, axis=1).sum(), abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_games_are_measured_against_the_best_of_each_round(name):
    problem, trace = played(name)
    facts = summary(trace)
    expected = float(trace.totals.cost) - problem.constants["path_cost"]
    assert facts["dynamic_regret"] == pytest.approx(expected, rel=1e-12)
    assert (facts["path_length"], facts["dynamic_why"]) == (problem.constants["path"], "")
    assert bridle.dynamic_regret(trace) == pytest.approx(bridle.regret(trace, bridle.best_path(trace).path), abs=1e-9)
    shorter = bridle.play(trace.policy, problem, horizon=30)
    assert against_the_known_path(shorter).why == "the problem was made for another number of rounds"
    assert bridle.dynamic_regret(shorter) == pytest.approx(bridle.regret(shorter, bridle.best_path(shorter).path), abs=1e-9)
    both = bridle.play(trace.policy, problem, seed=[0, 5])
    alone = [against_the_known_path(bridle.play(trace.policy, problem.with_seed(seed))) for seed in (0, 5)]
    assert against_the_known_path(both).length == pytest.approx([one.length for one in alone])
    alone = [one.regret for one in alone]
    assert against_the_known_path(both).regret == pytest.approx(alone, abs=1e-9)
    assert bridle.dynamic_regret(both) == pytest.approx(alone, abs=1e-9)


def test_where_nothing_is_known_of_the_path_facts_say_so():
    trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "halfspaces", horizon=20)
    facts = summary(trace)
    assert facts["dynamic_regret"] is facts["path_length"] is None
    assert facts["dynamic_why"].startswith("the problem does not say what is best in each round")
    assert bridle.dynamic_regret(trace) >= bridle.regret(trace)


def test_a_path_of_another_shape_is_refused():
    with pytest.raises(bridle.InputError, match=r"path must have a row for each round, not \[1.0, 2.0\]"):
        bridle.path_length([1.0, 2.0])


def test_jumping_limits_stay_and_jump():
    problem, trace = played("jumping-limits")
    limits = records.join(list(trace.blocks())).constraints[0]
    same = (np.diff(limits.a, axis=0) == 0.0).all(axis=1)
    assert np.flatnonzero(~same).tolist() == [14, 29]  # between stretches of 15
    first, second = problem.adversary.places[:2]
    along = (second - first) / np.linalg.norm(second - first)
    np.testing.assert_allclose(limits.a[[0, 20]], [along, -along], atol=1e-12)  # what is between the two is forbidden
    assert len(problem.adversary.places) == PLACES
    again = records.join(list(bridle.play(trace.policy, bridle.problem("jumping-limits", horizon=50, dim=3, period=3)).blocks()))
    np.testing.assert_array_equal(again.constraints[0].a[48:], again.constraints[0].a[:2])  # after 16 places of 3 rounds


def test_seasons_come_back_and_forbid_one_side_after_the_other():
    _, trace = played("seasonal-limits")
    limits = records.join(list(trace.blocks())).constraints[0]
    np.testing.assert_allclose(limits.a[1:10], np.tile(limits.a[1], (9, 1)), atol=1e-12)
    np.testing.assert_allclose(limits.a[11:20], -limits.a[1:10], atol=1e-12)
    np.testing.assert_allclose(limits.b[20:40], limits.b[:20], atol=1e-12)


def test_an_action_is_feasible_where_the_game_ends_before_the_world_has_moved():
    for name, horizon in (("jumping-limits", 15), ("seasonal-limits", 10)):
        problem = bridle.problem(name, horizon=horizon, dim=3, period=PERIODS[name])
        trace = bridle.play(bridle.policy("anytime", problem.domain), problem)
        limits = records.join(list(trace.blocks())).constraints[0]
        assert (limits.a @ problem.constants["feasible"] + limits.b <= 1e-12).all()
        assert bridle.problem(name, horizon=horizon + 2, dim=3, period=PERIODS[name]).constants["feasible"] is None


def test_the_optimum_drifts_at_a_steady_pace_while_the_limit_stays():
    problem, trace = played("drifting-optimum", modulus=1.0, period=40)
    rounds = records.join(list(trace.blocks()))
    assert (rounds.constraints[0].a == rounds.constraints[0].a[0]).all()
    steps = abs(np.diff(rounds.cost.c, axis=0))
    inside = np.linalg.norm(rounds.cost.c, axis=1) < 1.0 - 1e-9
    steady = steps[inside[:-1] & inside[1:]]
    assert np.median(steady, axis=0) == pytest.approx(4.0 / 40.0 * abs(problem.adversary.swings), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_dynamic_keeps_its_bounds_where_the_path_is_known(name):
    from bridle.policies._dynamic import dynamic_bound

    for told in ({}, {"lipschitz": 1.0}):
        problem, trace = played(name, "dynamic")
        trace = bridle.play(bridle.policy("dynamic", problem.domain, **told), problem)
        facts, P = summary(trace), problem.constants["path"]
        bound = dynamic_bound(40, lipschitz=1.0, diameter=problem.domain.diameter(), path=P, best_path=P, told=1.0)
        assert facts["dynamic_regret"] <= facts["dynamic_bound"] <= bound.regret
        assert facts["dynamic_bound_holds"]
        assert facts["ccv"] <= facts["ccv_bound"] <= bound.ccv


def test_the_path_of_a_bound_is_that_of_the_game():
    """The longest of all runs', none for more rounds than the problem was made for, and no bound with a price of moving."""
    problem = bridle.problem("drifting-optimum", horizon=40, dim=3)
    policy, seeds = bridle.policy("dynamic", problem.domain), range(4)
    paths = [problem.with_seed(seed).constants["path"] for seed in seeds]
    assert max(paths) > paths[0] * (1.0 + 1e-3)
    made = bridle.play(policy, problem, seed=list(seeds))
    alone = [bridle.play(policy, problem.with_seed(seed)) for seed in seeds]
    longest = policy.bound({**problem.constants, "path": max(paths)}, 40).dynamic
    assert summary(made)["dynamic_bound"] == pytest.approx([longest] * 4, rel=1e-12)
    assert max(summary(trace)["dynamic_bound"] for trace in alone) == pytest.approx(longest, rel=1e-12)
    longer = summary(bridle.play(policy, problem, horizon=80))
    assert (longer["dynamic_regret"], longer["dynamic_bound"]) == (None, None)
    priced = bridle.with_switching(problem, 0.5)
    assert summary(bridle.play(bridle.policy("dynamic", priced.domain), priced))["dynamic_bound"] is None


# --- the world at fixed numbers ---------------------------------------------------------------------------------------------------------


def of_round(world, t, x):
    """Gradient of the cost, value and gradient of the limit in round t at x, with loops and clips: no code is shared."""
    k, c = int(t // world.stretch) % len(world.places), world.domain.center()
    wave = np.array([1.0 - 2.0 * abs(1.0 - 2.0 * ((phase + t / world.period) % 1.0)) for phase in world.phase])
    o = np.clip(world.places[k] + world.waves * wave, world.domain.low, world.domain.high)
    z = np.clip(o + world.aims[k] + world.swings * wave, world.domain.low, world.domain.high)
    n = world.normal if world.normal.any() else (z - o) / np.linalg.norm(z - o)
    df = world.modulus * (x - z) if world.modulus else -(z - c) / np.linalg.norm(z - c)
    return df, n @ (x - o), n


@pytest.mark.parametrize("normal", [[0.0, 0.0], [0.6, -0.8]])
@pytest.mark.parametrize("modulus", [0.0, 0.7])
def test_a_round_is_what_the_world_says_of_it(modulus, normal):
    world = MovingWorld(
        bridle.Box([-2.0, -1.5], [2.5, 2.0]),
        np.array([[0.5, 0.0], [-1.0, 1.0], [0.3, -0.4]]), np.array([[1.0, 0.2], [0.3, -2.0], [3.0, 0.1]]),
        np.array([0.25, -0.5]), np.array([-0.3, 0.9]), np.array([0.1, 0.75]), np.array(normal), 3.0, 7.0, modulus,
    )  # fmt: skip
    x, state = np.array([0.4, -0.3]), world.init()
    for t in range(24):
        assert state == t
        after, played = world.answer(state, x)
        seen, (df, g, n) = played.reveal(x), of_round(world, t, x)
        np.testing.assert_allclose(seen.df, df, atol=1e-12)
        np.testing.assert_allclose([seen.g[0], *seen.dg[0]], [g, *n], atol=1e-12)
        state = after
    runs = world.answer(5.0, np.tile(x, (3, 1)))[1]
    assert (runs.constraints[0].a.shape, world.wave(5.0, np.tile(x, (3, 1))).shape) == ((3, 2), (3, 2))  # one of each run
    together = next(rounds_of(world, 24))  # as they are looked at for what is best
    np.testing.assert_allclose(together.constraints[0].a, [of_round(world, t, x)[2] for t in range(24)], atol=1e-12)


def test_the_constants_of_a_drifting_optimum():
    """A quarter of the way to the boundary: on the unit ball 0.25, with 1.25 to spare at the other end; targets go 0.35 D from there."""
    problem = bridle.problem("drifting-optimum", horizon=30, dim=3, seed=1, modulus=2.0, period=10)
    world, facts = problem.adversary, problem.constants
    np.testing.assert_allclose(world.places, [0.25 * world.normal], atol=1e-12)
    assert np.linalg.norm(world.normal) == pytest.approx(1.0)
    rng, *_ = begin(1, 3, 2.0, "ball")
    np.testing.assert_allclose(world.normal, random_directions(rng, 1, 3)[0])
    np.testing.assert_allclose(world.swings, 0.7 * random_directions(rng, 1, 3)[0])
    np.testing.assert_allclose(world.phase, rng.uniform(size=3))
    assert facts["slater"] == pytest.approx(1.25)
    assert (facts["lipschitz"], facts["bound"], facts["modulus"], facts["constraints"]) == (4.0, 2.0, 2.0, 1)
    assert (facts["time_varying"], facts["feasible"].tolist(), facts["benchmark"].tolist()) == (False, [0.0] * 3, [0.0] * 3)
    assert (world.stretch, world.period, world.aims.any(), world.waves.any()) == (10.0, 10.0, False, False)
    assert bridle.problem("drifting-optimum", horizon=3, dim=3, modulus=0.2).constants["lipschitz"] == 1.0
    moved = bridle.problem("drifting-optimum", horizon=3, domain=bridle.Ball(center=[5.0, -2.0]), seed=4)
    np.testing.assert_allclose(moved.adversary.places[0] - [5.0, -2.0], 0.25 * moved.adversary.normal, atol=1e-12)


def test_the_places_of_jumping_limits_forbid_one_another():
    problem = bridle.problem("jumping-limits", horizon=8, dim=3, seed=1, period=7)
    world = problem.adversary
    for i in range(0, 16, 2):
        np.testing.assert_allclose(world.aims[i], 0.5 * (world.places[i + 1] - world.places[i]))
        np.testing.assert_allclose(world.aims[i + 1], -world.aims[i])
    assert not any(part.any() for part in (world.waves, world.swings, world.phase, world.normal))
    assert (world.stretch, world.period) == (7.0, 1.0)
    assert (problem.constants["time_varying"], problem.constants["feasible"]) == (True, None)
    short = bridle.problem("jumping-limits", horizon=7, dim=3, seed=1, period=7)
    assert not short.constants["time_varying"]
    np.testing.assert_array_equal(short.constants["feasible"], world.places[0])


def test_a_season_goes_to_and_fro_between_two_actions():
    """It begins in the middle: the anchor is at one action after a quarter of the season, and the target half of the way back."""
    problem = bridle.problem("seasonal-limits", horizon=20, dim=3, seed=1, period=20)
    world = problem.adversary
    middle, half = world.places[0], world.waves
    np.testing.assert_allclose(world.swings, -0.5 * half)
    assert (world.phase.tolist(), world.stretch, world.period) == ([0.25] * 3, 20.0, 20.0)
    rng, ball, _ = begin(1, 3, 0.0, "ball")
    one, other = (random_action(rng, ball) for _ in range(2))
    np.testing.assert_allclose([middle - half, middle + half], [one, other])
    assert problem.constants["feasible"] is None
    first = bridle.problem("seasonal-limits", horizon=6, dim=3, seed=1, period=20)  # up to the farthest
    np.testing.assert_allclose(first.constants["feasible"], other)
    assert first.constants["time_varying"]
    early = bridle.problem("seasonal-limits", horizon=3, dim=3, seed=1, period=20)  # two fifths of the way there
    np.testing.assert_allclose(early.constants["feasible"], middle + 0.4 * half)
    assert not bridle.problem("seasonal-limits", horizon=1, dim=3, seed=1, period=20).constants["time_varying"]
