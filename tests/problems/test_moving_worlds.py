"""Worlds that move: rounds, constants and what is best in each, computed by other means."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle import records
from bridle.game.metrics import against_the_known_path
from bridle.game.summary import summary
from bridle.problems.moving import PLACES
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
    from bridle.policies.dynamic import dynamic_bound

    for told in ({}, {"lipschitz": 1.0}):
        problem, trace = played(name, "dynamic")
        trace = bridle.play(bridle.policy("dynamic", problem.domain, **told), problem)
        facts, P = summary(trace), problem.constants["path"]
        bound = dynamic_bound(40, lipschitz=1.0, diameter=problem.domain.diameter(), path=P, best_path=P, told=1.0)
        assert facts["dynamic_regret"] <= bound.regret
        assert facts["ccv"] <= facts["ccv_bound"] <= bound.ccv
