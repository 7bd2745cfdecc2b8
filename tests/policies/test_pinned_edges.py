"""Formulas at their edges: no cost at all, moduli that are all alike but not as told, one run of several, and just at a limit."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

import bridle
from bridle.core import Curvature
from bridle.policies.anytime_forms import Distance, SelfBounding, SquaredValue
from bridle.policies.common import most_behind, over_moduli

BALL = bridle.Ball(2)
FACTS = {
    "lipschitz": 1.5, "diameter": 2.0, "constraints": 1, "convex": True, "affine": True, "time_varying": True, "feasible": np.zeros(2),
    "modulus": 0.7, "slater": None,
}  # fmt: skip


def bound(facts, t, **settings):
    return bridle.policy("anytime", BALL, **settings).bound({**FACTS, **facts}, t)


@pytest.mark.parametrize("form", [Distance(), SquaredValue(3.0), SelfBounding(3.0)])
def test_the_largest_violation_is_where_the_measure_stops(form):
    """D = 2: a distance of 2, squared; a value of 3 D, squared; a smoothness of 3 times D^2 / 2."""
    largest = {Distance: 4.0, SquaredValue: 36.0, SelfBounding: 6.0}[type(form)]
    assert form.measure(1e9, 1e9, 2.0)[0] == largest
    assert form.measure(0.5, 0.5, 2.0)[0] == {Distance: 0.25, SquaredValue: 0.25, SelfBounding: 0.5}[type(form)]


@pytest.mark.parametrize("form", [Distance(), SquaredValue(3.0), SelfBounding(3.0)])
def test_a_constraint_that_just_holds_weighs_nothing(form):
    for value in (0.0, -1.0):
        assert form.measure(value, value, 2.0) == (0.0, 0.0)


def test_the_sum_over_moduli_where_all_are_alike_or_not():
    """Exact for n costs as told; by the integral of h^-p from 1 on for moduli that vary, however few there are."""
    as_told = Curvature(50.0, 0.0, 50.0, 0.0, 1.0)
    larger = Curvature(50.0, 0.0, 80.0, 0.0, 1.0)
    smaller = Curvature(50.0, 0.0, 50.0, 3.0, 0.5)  # they add up to as many as there are, but not all of them were as told
    none = Curvature(0.0, 4.0, 0.0, 4.0, 1.0)
    rounds = np.arange(1.0, 51.0)
    for power in (1.0, 1.5):
        assert over_moduli(as_told, power) == pytest.approx(np.sum(rounds**-power), rel=1e-9)
        for curvature in (larger, smaller):
            h = curvature.moduli
            assert over_moduli(curvature, power) == pytest.approx(1.0 + (log(h) if power == 1.0 else (1.0 - h**-0.5) / 0.5), rel=1e-9)
        assert over_moduli(none, power) == 1.0


def test_how_far_behind_an_action_can_be():
    """G D a round of a game; of a session G D a cost, and half of each modulus times D^2 where the policy knows of moduli."""
    seen = Curvature(30.0, 0.0, 20.0, 10.0, 0.5)
    assert most_behind(FACTS, 100.0) == pytest.approx(300.0)
    assert most_behind({**FACTS, "curvature": seen}, 100.0) == pytest.approx(90.0)
    assert most_behind({**FACTS, "curvature": seen}, 100.0, 0.6) == pytest.approx(90.0 + 0.3 * 4.0 * 20.0)


def test_a_session_without_a_told_modulus_has_nothing_of_moduli_in_its_bound():
    seen = Curvature(20_000.0, 0.0, 15_000.0, 5_000.0, 0.6)
    with_moduli, without = (
        bound({"curvature": Curvature(20_000.0, 0.0, moduli, 5_000.0, 0.6)}, 30_000, V=7.0) for moduli in (seen.moduli, 0.0)
    )
    assert with_moduli == without


def test_a_session_that_has_not_seen_a_cost_has_a_bound_all_the_same():
    """Two rounds without a cost: R = G^2 / (share mu) + mu D^2 / 2, more than the trivial bound."""
    seen = Curvature(0.0, 2.0, 1.0, 2.0, 1.0)
    found = bound({"curvature": seen, "H": 0.6}, 2_000, V=7.0, modulus=0.6)
    R, theta = 1.5**2 / 0.6 + 0.6 * 4.0 / 2.0, 0.5
    assert found.regret == pytest.approx(R + theta / 7.0)


def test_a_proof_needs_kappa_lam_below_one():
    assert "must be below 1" in bound({}, 100, V=1.0, lam=1.0 / 8.0).why  # kappa = 2 D^2 = 8
    assert bound({}, 100, V=1.0, lam=0.999 / 8.0).why == ""


@pytest.mark.parametrize(
    ("facts", "settings", "words"),
    [
        ({"smoothness": 0.7}, {"form": "self-bounding", "smoothness": [0.6, 0.8]}, "self-bounding"),
        ({}, {"form": "value", "lipschitz": [1.4, 2.0]}, "Lipschitz constant is 1.5"),
        ({}, {"diameter": [1.9, 2.5]}, "diameter is 2"),
        ({"slater": 0.4}, {"margin": [0.2, 0.3]}, "slater = 0.4"),
        ({}, {"lam": [0.1, 0.2]}, "must be below 1"),
    ],
)
def test_one_run_of_several_that_breaks_an_assumption_is_enough(facts, settings, words):
    assert words in bound(facts, 100, V=1.0, **settings).why
