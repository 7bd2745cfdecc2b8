"""Bounds of mixtures, of prices without constants and of limits on how often, at fixed numbers; and words where there is none."""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bridle
from bridle.policies._soft import free_bound
from bridle.policies.soft_free import NaturalQueues
from helpers.pinned_theorems import FACTS, D, F, G, bound, same, t

K, MASS, SMALL = 6, 1.5, 0.3
"""A simplex of that mass with that many corners, and how long gradients are."""
SIMPLEX = bridle.Simplex(K, mass=MASS)
ACROSS = MASS * sqrt(2.0)
"""Its diameter."""
MIXED = {"lipschitz": SMALL, "diameter": ACROSS, "feasible": SIMPLEX.center()}


def test_the_bounds_of_mixtures_that_know_ranges():
    """A range is at most G D: c G D sqrt(t), with c^2 = 4 + ln K, and for Track 4 + ln 9 beside it; in one round no more than G D."""
    for name, c in (("adahedge", sqrt(4.0 + log(K))), ("track", sqrt(4.0 + log(K)) + sqrt(4.0 + log(9.0)))):
        policy = bridle.policy(name, SIMPLEX)
        for at in (900, 40_000):
            found = policy.bound(MIXED, at)
            assert found.why == ""
            assert found.regret == pytest.approx(c * ACROSS * SMALL * sqrt(at), rel=1e-12)
            assert found.regret < SMALL * ACROSS * at
        assert policy.bound(MIXED, 1).regret == pytest.approx(SMALL * ACROSS)
        assert policy.bound({**MIXED, "lipschitz": None}, 9).why == "the problem's Lipschitz constant or diameter is not known"


def test_the_bound_of_ml_poly_with_the_psi_of_a_game():
    """sqrt((b^2 + S) / least prior) Psi with b = G D and S = (G D)^2 t."""
    prior = np.array([3.0, 2.0, 2.0, 1.0, 1.0, 1.0])
    policy = bridle.policy("mlpoly", SIMPLEX)
    record = policy.record
    weighed = replace(policy, record=record._replace(learner=record.learner._replace(prior=prior / 10.0)))
    at, Psi = 900, 0.7
    for each, least in ((policy, 1.0 / K), (weighed, 0.1)):
        found = each.bound({**MIXED, "Psi": Psi}, at)
        assert found.regret == pytest.approx(SMALL * ACROSS * sqrt(1.0 + at) / sqrt(least) * Psi, rel=1e-12)
        assert found.regret < SMALL * ACROSS * at
    assert "(Psi), which a game finds out" in policy.bound(MIXED, at).why
    assert policy.bound({**MIXED, "diameter": None}, at).why == "the problem's Lipschitz constant or diameter is not known"
    several = bridle.policy("mlpoly", bridle.Product(SIMPLEX, SIMPLEX))
    two = {"lipschitz": SMALL, "diameter": ACROSS * sqrt(2.0), "feasible": several.domain.center(), "Psi": Psi}
    assert several.bound(two, at).why == "the bound of several mixtures is the sum of their own, each with its own Psi"


def test_entropic_bounds_are_no_more_than_trivial_before_v_is_known():
    policy = bridle.policy("anytime-entropy", SIMPLEX)
    assert policy.bound(MIXED, 2).regret == pytest.approx(2.0 * SMALL * ACROSS)
    found = policy.bound({**MIXED, "V": 1e-3}, 2)
    assert (found.regret, found.ccv, found.squared) == pytest.approx(
        (2.0 * SMALL * ACROSS, 2.0 * SMALL * ACROSS, 2.0 * (SMALL * ACROSS) ** 2)
    )
    assert policy.bound({**MIXED, "convex": False}, 2).why == "a cost or a constraint is not convex"


def test_the_trivial_squares_of_anytime():
    """(G D)^2 a round, for lengths on both sides of 1."""
    for gradient, across in ((0.4, 2.2), (3.0, 2.2)):
        found = bound("anytime", 1, {"lipschitz": gradient, "diameter": across, "V": 1e-3}, lipschitz=None, bound=None)
        assert (found.ccv, found.squared) == pytest.approx((gradient * across, (gradient * across) ** 2))


def test_a_margin_needs_a_slater_point_that_is_known():
    words = "no action is known to satisfy every constraint by the margin times the Lipschitz constant (slater = 0)"
    for slater in (None, 0.0):
        assert bound("anytime", facts={"slater": slater, "V": 3.0}, margin=0.05, lipschitz=None, bound=None).why == words
    assert bound("anytime", facts={"slater": 0.05 * G, "V": 3.0}, margin=0.05, lipschitz=None, bound=None).why == ""


def test_what_must_be_known_of_the_largest_value_or_a_window():
    assert bound("mahdavi2012", facts={"bound": None}).why == "the largest |g| is not known"
    assert bound("steiner", 10, facts={"convex": False}, horizon=10).why == "a cost or a constraint is not convex"
    lost = bound("sinha2024-ocs", facts={"feasible": None})
    assert lost.interval is None
    assert lost.why != ""


def test_the_modulus_of_a_proximal_step_must_not_be_below_the_told_one():
    assert bound("yi2023-strong", facts={"modulus": 0.3}, form="prox").why != ""
    assert bound("yi2023-strong", facts={"modulus": 0.7}, form="prox").why == ""


def test_without_the_largest_value_a_backward_queue_has_a_regret_alone():
    fixed = {"time_varying": False, "bound": None}
    found = bound("yu2020", facts=fixed, bound=None)
    assert (found.soft, found.ccv) == (None, None)
    assert found.regret < 0.999 * G * D * t
    assert bound("yu2020", 1, facts=fixed, bound=None).regret == pytest.approx(G * D)


# --- what a run shows -------------------------------------------------------------------------------------------------------------------


def test_what_was_observed_is_the_bound_of_prices_without_constants():
    seen = {**FACTS, "observed_regret": 9.0, "observed_violation": 4.0, "observed_rounds": 100.0}
    same(free_bound(seen, 100, ""), 100, regret=9.0, soft=4.0)
    assert free_bound({**seen, "observed_regret": 1e9}, 100, "").regret == pytest.approx(G * D * 100)
    assert free_bound({**seen, "observed_violation": -4.0}, 100, "").soft == 0.0
    unbounded = {name: value for name, value in seen.items() if name != "lipschitz"}
    assert free_bound({**unbounded, "observed_regret": 1e9}, 100, "").regret == 1e9
    words = "its theorem is about what a run shows: it is stated at the end of a game, and by a session at any time"
    for missing in ("observed_regret", "observed_violation", "observed_rounds"):
        assert free_bound({name: value for name, value in seen.items() if name != missing}, 100, "").why == words
    assert free_bound(seen, 99, "").why == words
    for facts, why in (
        ({"convex": False}, "a cost or a constraint is not convex, so no regret is bounded"),
        ({"feasible": None}, "no action is known to satisfy every constraint, so no regret is bounded"),
        ({"convex": False, "feasible": None}, "a cost or a constraint is not convex, so no regret is bounded"),
    ):
        found = free_bound({**seen, **facts}, 100, "")
        assert (found.regret, found.soft, found.why) == (None, 4.0, why)
        assert free_bound({**seen, **facts}, 100, "as expected").why == f"{why}; as expected"
    assert free_bound(seen, 100, "as expected").why == "as expected"


def queues(**numbers: list[float]) -> NaturalQueues:
    """Two limits; what is not said of them is zero."""
    return NaturalQueues(**{name: np.array(numbers.get(name, [0.0, 0.0])) for name in NaturalQueues._fields})


def test_a_limit_is_foreseen_where_its_gate_is_open():
    """The gate is open while H + m values is 0 or more, and where there is a scale at all."""
    policy = bridle.policy("soft", bridle.Ball(2), constraints=2).record
    h = [0.5, -0.25]
    for m, H, found in (
        ([2.0, 2.0], [-6.0, -7.0], [0.5, 0.0]),  # m times 3 is 6
        ([2.0, 0.0], [0.0, 0.0], [0.5, 0.0]),  # no scale
        ([2.0, 3.0], [-5.0, -9.0], [0.5, -0.25]),
    ):
        np.testing.assert_array_equal(policy.foreseen(queues(h=h, m=m, H=H, values=[3.0, 3.0])), found)


def test_what_was_not_foreseen_is_the_change_of_prices():
    """Known before the round: the least of cap and m (Q + h)^+; lam is what was paid in it."""
    policy = bridle.policy("soft", bridle.Ball(2), constraints=2).record._replace(cap=5.0)
    before: Any = SimpleNamespace(queues=queues(h=[0.5, -4.0], m=[2.0, 3.0], values=[1.0, 1.0], Q=[1.0, 2.0], paid=[7.0, 8.0]))
    after: Any = SimpleNamespace(queues=queues(paid=[7.5, 8.25]))
    assert policy.unforeseen(before, after) == pytest.approx(abs(0.5 - 3.0) + 0.25)
    high: Any = SimpleNamespace(queues=queues(h=[0.5, 0.0], m=[9.0, 3.0], values=[1.0, 1.0], Q=[1.0, 2.0], paid=[7.0, 8.0]))
    assert policy.unforeseen(high, after) == pytest.approx(abs(0.5 - 5.0) + abs(0.25 - 5.0))  # 13.5 and 6 are above the cap


def test_one_count_for_any_limit_and_one_for_each():
    """The most violations: share n + (1 + open) top + (1 - share)(1 + open + unavoidable), top = 80."""
    for form, at_most, shares in (("any", 0.1, [0.1]), ("each", [0.1, 0.25], [0.1, 0.25])):
        policy = bridle.policy("rate", bridle.Box(0.0, 1.0, dim=1), at_most=at_most, constraints=2, form=form, safe=[0.0]).record
        level = policy.init(np.zeros(1)).level._replace(
            violated=np.array([3.0, 4.0]), counted=np.array([50.0, 60.0]), unavoidable=np.array([1.0, 2.0]), open=2.0
        )
        state = policy.init(np.zeros(1))._replace(level=level)
        tally, n = policy.tally(state), len(shares)
        assert (tally.share.tolist(), tally.any) == (shares, form == "any")
        assert (tally.violated.tolist(), tally.counted.tolist(), tally.unavoidable.tolist()) == (
            [3.0, 4.0][:n],
            [50.0, 60.0][:n],
            [1.0, 2.0][:n],
        )
        most = [0.1 * 50.0 + 3.0 * 80.0 + 0.9 * 4.0, 0.25 * 60.0 + 3.0 * 80.0 + 0.75 * 5.0]
        assert tally.most == pytest.approx(np.array(most[:n]))
        identity = [10.0 * 3.0 - 1.0 * 50.0 - 9.0 * 1.0, 4.0 * 4.0 - 1.0 * 60.0 - 3.0 * 2.0]
        assert tally.identity.tolist() == identity[:n]
        assert np.isinf(policy._replace(safe=None).tally(state).most).tolist() == [True] * n


def test_algorithm_1_needs_the_squares_and_the_constant_of_its_learner():
    policy = bridle.policy("sinha2024", bridle.Ball(2), horizon=100, lipschitz=1.0)
    state = policy.init(np.zeros(2))
    assert policy.record.certified_regret(state) == 0.0
    for kept in ("squares", "adaptivity"):
        learner = SimpleNamespace(**{kept: getattr(policy.record.learner, kept)})
        assert policy.record._replace(learner=learner).certified_regret(state) is None


def test_a_learners_own_proof_is_that_of_its_policy():
    mixture = bridle.policy("adahedge", SIMPLEX)
    state = mixture.record.update(mixture.init(SIMPLEX.center()), SimpleNamespace(df=np.eye(K)[0], x=SIMPLEX.center()))
    assert mixture.record.certified_regret(state) == mixture.record.learner.certified(state) > 0.0
    plain = bridle.policy("ogd", bridle.Ball(2), lipschitz=1.0)
    assert plain.record.certified_regret(plain.init(np.zeros(2))) is None


def test_a_steiner_body_has_room_for_what_is_not_taken_by_the_domain():
    policy = bridle.policy("steiner", bridle.Box([-1.0, -1.0], [1.0, 1.0]), horizon=100)
    shape = policy.record.body.start
    assert shape.used >= 4  # the domain's own corners
    facts = {**FACTS, "diameter": sqrt(8.0)}
    room = int(len(shape.corners) - shape.used)
    for constraints, fits in ((room, True), (room + 1, False)):
        assert (policy.bound({**facts, "constraints": constraints}, 1).why == "") is fits


def test_the_largest_value_is_part_of_the_queues_bound():
    assert bound("yu2020", facts={"time_varying": False}).soft < bound("yu2020", facts={"time_varying": False, "bound": 2.0 * F}).soft


# --- anytime by entropy -----------------------------------------------------------------------------------------------------------------


def test_the_own_regret_of_entropic_anytime():
    """(Delta + Delta before - 2 (e^{lam Q} - 1)) / V, at V = 3, Q = 2.5 and lam = 1/(2 (4 + ln K)); nothing once Q has overflown."""
    record = bridle.policy("anytime-entropy", SIMPLEX).record
    state = record.init(SIMPLEX.center())
    learner = state.learner._replace(Delta=1.25 + 0.0 * state.learner.Delta, before=0.5 + 0.0 * state.learner.before)
    lam = 0.5 / (4.0 + log(K))
    seen = state._replace(learner=learner, Q=2.5, V=3.0)
    assert record.certified_regret(seen) == pytest.approx((1.75 - 2.0 * (np.exp(lam * 2.5) - 1.0)) / 3.0, rel=1e-12)
    assert record.certified_regret(seen._replace(V=0.0)) == 0.0  # no cost had a slope
    assert record.certified_regret(seen._replace(units=1.0)) is None


def test_how_fast_a_halfspace_step_moves_mixtures_side_by_side():
    """The variances of the normal, 1/4 and 1 under equal weights, each times the largest Delta over its own."""
    pair = bridle.Product(bridle.Simplex(2), bridle.Simplex(2))
    record = bridle.policy("anytime-entropy", pair).record
    learner = record.init(pair.center()).learner
    normal = np.array([1.0, 0.0, 2.0, 0.0])
    uneven = learner._replace(Delta=np.array([2.0, 4.0]).reshape(learner.Delta.shape))
    assert float(np.ravel(record._steepness(uneven, normal))[0]) == pytest.approx(2.0 * 0.25 + 1.0)
    even = learner._replace(Delta=np.array([3.0, 3.0]).reshape(learner.Delta.shape))
    assert float(np.ravel(record._steepness(even, normal))[0]) == pytest.approx(1.25)
    one = bridle.policy("anytime-entropy", SIMPLEX).record
    alone = one._steepness(one.init(SIMPLEX.center()).learner, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    assert float(alone) == pytest.approx(MASS**2 * (1.0 / 6.0 - 1.0 / 36.0))
