"""The bounds of `dynamic`: each as another road to the same number, with every constant apart from 1."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

import bridle
from bridle import records
from bridle.core import Bound, Feedback
from bridle.policies._dynamic import PATHS_ALONE, STEPS, bound_of, dynamic_bound, right_side, spread


def test_the_bound_is_what_the_proof_adds_up_to():
    """In another order than the code, every constant apart from 1, and t so large that no trivial bound is smaller."""
    t, G, D, P, best, M = 1e8, 3.0, 0.5, 7.0, 11.0, 2.0

    def right(length, most=1.0):
        steps = [2.0**i * D / sqrt(2.0) for i in range(-8, 18)]
        learner = min((D * D / 2.0 + D * length) / theta + theta for theta in steps)
        return (1.0 + 2.5 * most) * G * sqrt(t) * (learner + D * sqrt(4.0 + log(26.0))) + 4e-9 * most * G * D * t

    found = dynamic_bound(t, lipschitz=G, diameter=D, path=P, best_path=best, first=M)
    assert found.regret == pytest.approx(right(P), rel=1e-12)
    assert found.ccv == pytest.approx(right(best) / (2.0 - G / M) * (1.0 + log(G / M)), rel=1e-12)
    affine = dynamic_bound(t, lipschitz=G, diameter=D, best_path=best, first=0.01, steep=1.0)
    assert affine.ccv == pytest.approx(right(best) * (1.0 + log(300.0)), rel=1e-12)
    told = dynamic_bound(t, lipschitz=G, diameter=D, best_path=best, first=0.01, told=3.0)
    assert told.ccv == pytest.approx(right(best), rel=1e-12)
    more = dynamic_bound(t, lipschitz=G, diameter=D, path=P, best_path=best, first=0.01, told=6.0)  # twice what is true
    assert more.regret == pytest.approx(right(P, 2.0), rel=1e-12)
    assert more.ccv == pytest.approx(right(best, 2.0) / (2.0 * 2.0 - 1.0), rel=1e-12)
    unknown = dynamic_bound(t, lipschitz=G, diameter=D, best_path=best, first=1.5)
    assert unknown.ccv is None
    assert "lipschitz" in unknown.why
    assert dynamic_bound(t, lipschitz=G, diameter=D).ccv is None


def test_few_rounds_have_the_trivial_bound_and_flat_games_none():
    early = dynamic_bound(1.0, lipschitz=3.0, diameter=0.5, path=7.0, best_path=7.0, told=3.0)
    assert (early.regret, early.ccv) == (1.5, 1.5)
    assert dynamic_bound(5.0, lipschitz=0.0, diameter=0.5) == Bound(0.0, ccv=0.0)


def test_the_factor_is_below_that_of_the_docstring_up_to_its_last_step():
    for P in np.geomspace(1e-3, 1e10, 300):
        assert sqrt(2.0) * sqrt(1.0 + 2.0 * P) * (1.0 - 1e-12) <= spread(P) <= 1.5 * sqrt(1.0 + 2.0 * P)
    assert spread(0.5) == pytest.approx(2.1213203, rel=1e-7)  # between two steps, where the 1.5 is attained
    assert STEPS[0, 0] * 256.0 * sqrt(2.0) == pytest.approx(1.0) == STEPS[-1, 0] / 2.0**17 * sqrt(2.0)


# --- of a registered policy -------------------------------------------------------------------------------------------------------------

CONSTANTS = {"lipschitz": 2.0, "diameter": 2.0, "constraints": 1, "convex": True, "affine": True, "feasible": np.zeros(2), "first": 1.6}


def test_the_policys_bound_is_the_theorems():
    policy, t = bridle.policy("dynamic", bridle.Ball(2)), 1e6
    alone = dynamic_bound(t, lipschitz=2.0, diameter=2.0)
    found = policy.bound(CONSTANTS, t)
    assert found.regret == alone.regret
    assert found.ccv == pytest.approx(2.0 * (alone.regret + 4.0 * t) / (2.0 * 1.6), rel=1e-12)
    assert policy.bound({**CONSTANTS, "first": 0.1}, t).ccv == 4.0 * t
    behind = policy.bound({**CONSTANTS, "regret": -100.0}, t)
    assert behind.ccv == pytest.approx(2.0 * (alone.regret + 100.0) / (2.0 * 1.6), rel=1e-12)
    soon = policy.bound({**CONSTANTS, "regret": 0.0}, 100.0)  # the right side, which is above what regret can be
    assert soon.regret == 400.0
    assert soon.ccv == pytest.approx(min(400.0, 2.0 * right_side(100.0, 2.0, 2.0, 0.0) / 3.2), rel=1e-12)
    ahead = policy.bound({**CONSTANTS, "regret": 100.0}, t)
    assert ahead.ccv == pytest.approx(2.0 * alone.regret / (2.0 * 1.6), rel=1e-12)


def test_a_known_path_bounds_the_violation():
    policy, t = bridle.policy("dynamic", bridle.Ball(2)), 1e6
    known = {**CONSTANTS, "path": 3.0}
    by_path = dynamic_bound(t, lipschitz=2.0, diameter=2.0, best_path=3.0, first=1.6)
    assert policy.bound(known, t).ccv == by_path.ccv
    assert policy.bound(known, t).dynamic == dynamic_bound(t, lipschitz=2.0, diameter=2.0, path=3.0).regret
    assert policy.bound({**known, "path": 1e9}, t).dynamic == 2.0 * 2.0 * t
    paths_alone = policy.bound({**known, "feasible": None}, t)
    assert paths_alone == Bound(ccv=by_path.ccv, dynamic=policy.bound(known, t).dynamic, why=paths_alone.why)
    assert policy.bound(CONSTANTS, t).dynamic is None
    without = policy.bound(CONSTANTS, t).ccv
    assert policy.bound({**known, "affine": False}, t).ccv == policy.bound({**known, "constraints": 2}, t).ccv == without > by_path.ccv
    told = bridle.policy("dynamic", bridle.Ball(2), lipschitz=2.0)
    assert told.bound({**known, "first": 0.1}, t).ccv == dynamic_bound(t, lipschitz=2.0, diameter=2.0, best_path=3.0, told=2.0).ccv
    assert policy.bound({**known, "first": 0.0, "feasible": None}, t).ccv is None


def test_a_bound_that_does_not_apply_says_why():
    policy, small = bridle.policy("dynamic", bridle.Ball(2)), bridle.policy("dynamic", bridle.Ball(2), diameter=1.9)
    assert "diameter is 2" in small.bound(CONSTANTS, 10.0).why
    assert bridle.policy("dynamic", bridle.Ball(2), diameter=3.0).bound(CONSTANTS, 1e6).regret == pytest.approx(
        dynamic_bound(1e6, lipschitz=2.0, diameter=3.0).regret, rel=1e-12
    )
    assert "not convex" in policy.bound({**CONSTANTS, "convex": False}, 10.0).why
    assert policy.bound({**CONSTANTS, "feasible": None}, 10.0) == Bound(why="no action is known to satisfy every constraint")
    assert small.bound(CONSTANTS, 10.0).regret is None
    early = bridle.policy("dynamic", bridle.Ball(2), diameter=3.0).bound(CONSTANTS, 1.0)
    assert (early.regret, early.ccv) == (4.0, 4.0)  # G D, with the true D
    flat = policy.bound({**CONSTANTS, "first": 0.0}, 1e6)
    assert flat.ccv is None
    assert "path" in flat.why


def test_a_sweep_has_a_bound_for_each_run():
    swept = bridle.policy("dynamic", bridle.Ball(2), lipschitz=[2.0, 5.0])
    known = {**CONSTANTS, "path": 3.0, "first": np.array([1.6, 0.1])}
    found = swept.bound(known, 1e6)
    for i, told in enumerate((2.0, 5.0)):
        alone = bridle.policy("dynamic", bridle.Ball(2), lipschitz=told).bound({**known, "first": known["first"][i]}, 1e6)
        assert (found.regret[i], found.ccv[i], found.dynamic[i]) == (alone.regret, alone.ccv, alone.dynamic)


def test_the_certificate_is_the_proof_with_what_has_happened():
    """By hand: two rounds in one dimension, of which the second breaks a limit; then with a smaller diameter than the domain's."""
    for D in (2.0, 1.0):
        record = bridle.policy("dynamic", bridle.Box(-1.0, 1.0, dim=1), diameter=D).record
        state = record.init(np.zeros(1))
        state = record.update(state, Feedback(np.zeros(1), 0.0, np.array([-3.0]), np.array([-1.0]), np.array([[1.0]])))
        x = record.decide(state)
        state = record.update(state, Feedback(x, 0.0, np.array([0.5]), np.array([0.25]), np.array([[0.5]])))
        assert float(state.charged) == pytest.approx(2.0 * 3.0 * 0.5, rel=1e-12)
        thetas = [2.0**i * D / sqrt(2.0) for i in range(-8, 18)]
        learner = min(sqrt(S) * (2.0 / theta + theta) for S, theta in zip(np.asarray(state.squares)[:, 0], thetas, strict=True))
        found = record.certified_regret(state) - float(record.top.certified(state.top))
        assert found == pytest.approx(learner - 3.0 + 4e-9 * 2.0 * 3.0 * D, rel=1e-12)


def test_the_certificate_with_no_two_constants_alike():
    """D = 3, told 5: steps are 5 2^i / sqrt(2); what rounding may add is in units of the steepest cost, or of 1 where all are flat."""
    record = bridle.policy("dynamic", bridle.Box(-1.0, 2.0, dim=1), diameter=5.0).record
    state = record.init(np.zeros(1))
    state = state._replace(squares=np.full_like(state.squares, 4.0), charged=0.7, rounds=1e9)
    learner = min(2.0 * (4.5 / theta + theta) for theta in (5.0 * 2.0**i / sqrt(2.0) for i in range(-8, 18)))
    for steepest, unit in ((0.0, 1.0), (0.25, 0.25), (3.0, 3.0)):
        found = record.certified_regret(state._replace(steepest=steepest))
        assert found == pytest.approx(learner - 0.7 + 4.0 * 5.0 * unit, rel=1e-12)


def test_a_first_cost_as_steep_as_any_leaves_no_logarithm():
    """Also where it is steeper than G, and where it is not said."""
    most = dynamic_bound(1e8, lipschitz=3.0, diameter=0.5, best_path=11.0, first=3.0).ccv
    assert most == pytest.approx(right_side(1e8, 3.0, 0.5, 11.0), rel=1e-12)
    assert dynamic_bound(1e8, lipschitz=3.0, diameter=0.5, best_path=11.0).ccv == most
    assert dynamic_bound(1e8, lipschitz=3.0, diameter=0.5, best_path=11.0, first=6.0).ccv == most


def test_what_is_not_known_of_a_problem():
    """One limit is taken for granted, a first gradient is not; a path bounds violation where no action is feasible, and not regret."""
    policy = bridle.policy("dynamic", bridle.Ball(2))
    known = {**CONSTANTS, "path": 3.0}
    alone = {key: value for key, value in known.items() if key != "constraints"}
    assert (
        policy.bound(alone, 1e6).ccv
        == policy.bound(known, 1e6).ccv
        == dynamic_bound(1e6, lipschitz=2.0, diameter=2.0, best_path=3.0, first=1.6).ccv
    )
    assert policy.bound({key: value for key, value in CONSTANTS.items() if key != "first"}, 1e6).ccv is None
    nowhere = policy.bound({**known, "feasible": None}, 1e6)
    assert (nowhere.regret, nowhere.why) == (None, PATHS_ALONE)


def test_one_run_of_a_sweep_without_a_bound_leaves_none_to_the_others():
    swept, few = bridle.policy("dynamic", bridle.Ball(2), diameter=[2.0, 3.0]), {**CONSTANTS, "first": np.array([1.6, 0.0])}
    assert bound_of(swept, CONSTANTS, 1e6).ccv is not None
    assert bound_of(swept, few, 1e6).ccv is None
    assert "diameter is 2" in bound_of(bridle.policy("dynamic", bridle.Ball(2), diameter=[1.9, 3.0]), CONSTANTS, 10.0).why


# --- the update -------------------------------------------------------------------------------------------------------------------------


def told(x, df, g, dg):
    return Feedback(x, (df * x).sum(axis=-1), df, g, dg)


def test_runs_at_once_are_the_runs_one_by_one():
    """Two constraints; one run meets a limit that misses the domain; in the second round no cost has had a slope in the other."""
    record, rng = bridle.policy("dynamic", bridle.Box(-1.0, 1.0, dim=2), lipschitz=0.5).record, np.random.default_rng(3)
    x1 = np.array([[0.5, -0.25], [-0.75, 0.0]])
    together, alone = record.init(x1), [record.init(x) for x in x1]
    for t in range(3):
        x = record.decide(together)
        df, dg = t * rng.standard_normal((2, 2)) * [[1.0], [float(t == 2)]], rng.standard_normal((2, 2, 2))
        g = np.array([[0.3, 0.1], [-0.2, 50.0 if t == 1 else 0.4]])
        together = record.update(together, told(x, df, g, dg))
        alone = [record.update(alone[i], told(x[i], df[i], g[i], dg[i])) for i in range(2)]
        for i in range(2):
            for mine, one in zip(records.leaves(together).values(), records.leaves(alone[i]).values(), strict=True):
                np.testing.assert_allclose(np.reshape(mine[i], np.shape(one)), one, rtol=1e-12, atol=1e-14)
    assert np.ravel(together.infeasible).tolist() == [0.0, 2.0]
    assert record.init(x1).steepest.tolist() == [[0.5], [0.5]]


def test_a_limit_misses_the_domain_beyond_its_diameter_times_the_normals_length():
    record, x = bridle.policy("dynamic", bridle.Box(0.0, 1.0, dim=2)).record, np.zeros(2)
    for g, missed in ((2.0 * sqrt(2.0) * (1.0 + 1e-10), 0.0), (2.5, 0.0), (2.0 * sqrt(2.0) * (1.0 + 1e-8), 1.0)):
        state = record.update(record.init(x), told(x, np.ones(2), np.array([g]), np.array([[2.0, 0.0]])))
        assert float(state.infeasible) == missed


def test_no_distance_outside_is_charged_for_more_than_the_diameter():
    record, x = bridle.policy("dynamic", bridle.Box(0.0, 1.0, dim=2)).record, np.zeros(2)
    state = record.update(record.init(x), told(x, np.array([3.0, 4.0]), np.array([7.0]), np.array([[1.0, 0.0]])))
    assert float(state.charged) == pytest.approx(2.0 * 5.0 * sqrt(2.0), rel=1e-12)
    assert (float(state.steepest), float(state.first), float(state.rounds)) == (5.0, 5.0, 1.0)


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_the_way_back_along_a_side_is_long(size):
    """s x_1 + x_2 <= s size / 2 with s = 1e-4, at the corner (size, 0) of a box that ends at x_2 = 0: a distance s size / 2 outside, and
    half the side to what is allowed. It is charged in full, but for distances of rounding, which count as what they are."""
    s, D = 1e-4, size * sqrt(2.0)
    record, x = bridle.policy("dynamic", bridle.Box(0.0, size, dim=2)).record, np.array([size, 0.0])
    n = np.array([[s, 1.0]])
    state = record.update(record.init(x), told(x, np.array([3.0, 4.0]), np.array([0.5 * s * size]), n))
    assert float(state.charged) == pytest.approx(2.0 * 5.0 * 0.5 * size, rel=1e-6)
    for share, way in ((0.5e-9, 0.5e-9 * D), (2e-9, 2e-9 * D * sqrt(1.0 + s * s) / s)):
        state = record.update(record.init(x), told(x, np.array([3.0, 4.0]), np.array([share * D * sqrt(1.0 + s * s)]), n))
        assert float(state.charged) == pytest.approx(10.0 * way, rel=1e-3, abs=0.0)


def test_what_is_within_rounding_is_nothing():
    """D = 1000 sqrt(2), M = 5: distances up to 1e-9 D outside give no slope, and losses up to 1e-9 M D teach nothing."""
    record, D = bridle.policy("dynamic", bridle.Box(0.0, 1000.0, dim=2)).record, 1000.0 * sqrt(2.0)
    x, df, n = np.array([500.0, 500.0]), np.array([3.0, 4.0]), np.array([[1.0, 0.0]])
    for share, v in ((0.5e-9, [3.0, 4.0]), (1e-9, [3.0, 4.0]), (2e-9, [13.0, 4.0])):
        state = record.update(record.init(x), told(x, df, np.array([share * record.reach]), n))
        np.testing.assert_allclose(state.squares, np.full((26, 1), np.dot(v, v)), rtol=1e-9)
    start = record.init(x)
    for share, taught in ((0.5e-9, False), (4e-9, True)):
        apart = start._replace(points=start.points + share * D * np.sign(np.arange(26.0) - 12.5)[:, None] * [0.6, 0.8])
        assert (float(record.update(apart, told(x, df, np.array([-1.0]), n)).top.Delta) > 0.0) == taught


def test_a_limit_beyond_the_whole_domain_tells_learners_nothing():
    """All are a diameter outside, and no more: what they lose is alike."""
    record = bridle.policy("dynamic", bridle.Box(0.0, 1.0, dim=2)).record
    state = record.init(np.array([0.5, 0.5]))
    state = record.update(state, told(np.array([0.5, 0.5]), np.array([3.0, 4.0]), np.array([-1.0]), np.array([[1.0, 0.0]])))
    x = record.decide(state)
    after = record.update(state, told(x, np.zeros(2), np.array([70.0]), np.array([[1.0, 0.0]])))
    assert float(np.ptp(np.asarray(state.points), axis=0).max()) > 0.1
    np.testing.assert_allclose(after.top.L, state.top.L, atol=1e-12)


def test_what_is_kept_over_the_rounds():
    """Charges are added up, in units of 1 until a cost has a slope and then in its own; the first slope and the first miss stay."""
    record = bridle.policy("dynamic", bridle.Box(-1.0, 1.0, dim=1)).record
    state, charged = record.init(np.zeros(1)), 0.0
    for slope, far, unit, factor in ((0.0, 9.0, 1.0, 1.0), (0.5, 0.2, 0.5, 0.5), (3.0, 0.1, 3.0, 1.0), (1.0, 9.0, 3.0, 1.0)):
        x = record.decide(state)
        state = record.update(state, told(x, np.array([slope]), np.array([far]), np.array([[1.0]])))
        charged = factor * charged + 2.0 * unit * min(far, 2.0)
        assert float(state.charged) == pytest.approx(charged, rel=1e-9)
    assert (float(state.first), float(state.steepest), float(state.infeasible), float(state.rounds)) == (0.5, 3.0, 1.0, 4.0)
