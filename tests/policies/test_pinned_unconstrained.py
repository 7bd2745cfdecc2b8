"""Bounds of policies that ignore constraints, at fixed numbers: late gradients, other geometries, Newton's step."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

import bridle
from bridle import learners
from bridle.core import Feedback
from bridle.policies._unconstrained import adagrad_bound, ons_bound

G, D = 1.5, 2.0
FACTS = {"lipschitz": G, "diameter": D, "feasible": np.zeros(2), "convex": True}


def test_the_bound_of_late_gradients_is_what_the_game_has_found():
    """Once it is known of as many rounds; and never more than G D a round."""
    policy = bridle.policy("adagrad", bridle.Ball(2), delay=3)
    known = {**FACTS, "observed_regret": 40.0, "observed_rounds": 100.0}
    assert policy.bound(known, 100).regret == 40.0
    assert policy.bound({**known, "observed_regret": 400.0}, 100).regret == G * D * 100
    for changed in ({"observed_rounds": 99.0}, {"observed_rounds": None}, {"observed_regret": None}):
        assert "how many rounds waited" in policy.bound({**known, **changed}, 100).why
    assert "how many rounds waited" in adagrad_bound(policy, {**known, "observed_rounds": np.array([100.0, 99.0])}, 100).why
    assert "not known" in adagrad_bound(policy, {**known, "lipschitz": None}, 100).why


def test_what_late_gradients_certify_after_one_of_them():
    """|p| = 2, since 1 and others 2: S = 16, A = 4, L = 1/2, and sqrt(2) D sqrt(S) + D sqrt(A L / 2) = 2 (4 sqrt(2) + 1)."""
    record = bridle.policy("adagrad", bridle.Ball(2), delay=0).record
    made = record.made(record.init(np.zeros(2)))
    state = record.init(np.zeros(2))._replace(observed_rounds=1.0)
    state = record.update_late(state, Feedback(np.zeros(2), 0.0, np.array([0.0, 2.0]), np.zeros(1), np.zeros((1, 2))), made, 2.0)
    assert record.certified_regret(state) == pytest.approx(2.0 * (4.0 * sqrt(2.0) + 1.0), rel=1e-12)


def test_the_bound_in_the_geometry_of_a_simplex():
    """(R + a + sqrt(a^2 + B^2)) sqrt(1/2) G sqrt(t): R = c ln 4, a = mass^2 / (2 c), B = 2 mass, c = mass / sqrt(2 ln 4)."""
    policy, mass, t = bridle.policy("adaftrl", bridle.Simplex(4, mass=3.0), geometry="entropy"), 3.0, 10**6
    c = mass / sqrt(2.0 * log(4.0))
    a = mass**2 / (2.0 * c)
    expected = (c * log(4.0) + a + sqrt(a * a + 4.0 * mass**2)) * sqrt(0.5) * G * sqrt(t)
    facts = {**FACTS, "diameter": mass * sqrt(2.0), "feasible": np.full(4, 0.75)}
    assert policy.bound(facts, t).regret == pytest.approx(expected, rel=1e-12)
    assert policy.bound(facts, 1).regret == pytest.approx(G * mass * sqrt(2.0), rel=1e-12)


def test_the_bound_of_newtons_step():
    """`ons_regret` with B = G D and S = G^2 t, where costs are as concave, exponentially, as the policy was told."""
    policy, t = bridle.policy("ons", bridle.Ball(3), exp_concavity=0.1, diameter=2.5), 10**5
    facts = {**FACTS, "feasible": np.zeros(3), "exp_concavity": 0.1, "shortfall": 0.25}
    expected = learners.ons_regret(3, 0.1, 2.0, 3.0, 2.25e5, 2.5, 0.25)
    assert policy.bound(facts, t).regret == pytest.approx(expected, rel=1e-12)
    assert policy.bound({**facts, "exp_concavity": None}, t).regret == pytest.approx(expected, rel=1e-12)  # where nothing else is known
    assert "less than the 0.1 the policy was told" in policy.bound({**facts, "exp_concavity": 0.09}, t).why
    assert "shortfall" in policy.bound({**facts, "shortfall": None}, t).why
    assert "not known" in ons_bound(policy, {**facts, "lipschitz": None}, t).why
    swept = bridle.policy("ons", bridle.Ball(3), exp_concavity=[0.05, 0.2])
    assert "less than the 0.2 the policy was told" in ons_bound(swept, facts, t).why
