"""Bounds where they end: at the trivial one, over horizons too long to sum, for gradients next to nothing, and along a curve.

As in `test_pinned_bounds`, nothing here calls the code that it is compared with but to ask for the bound.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

import bridle
from bridle.core import Curvature
from bridle.policies._sinha2024 import strong_bound
from bridle.policies.common import smooth_sum
from helpers.pinned_theorems import BALL, D_, FACTS, G_, MU_, D, G, T, bound, same, t

FIXED = {"time_varying": False}


@pytest.mark.parametrize("at", [1, 2, 3])
def test_mirror_prox_never_promises_more_than_the_trivial_bound(at):
    found = bound("mahdavi2012", at, form="mirror-prox", facts=FIXED)
    assert (found.regret, found.soft) == pytest.approx((G * D * at, G * D * at))


def test_mirror_prox():
    """C = D^2/(2 eta) + eta G^2 t: Regret <= C, violation <= sqrt(2 (G D t + C)/mu), mu = eta/D'^2."""
    for step, eta in ((None, D_ / G_ * T ** (-1 / 3)), (0.02, 0.02)):
        C = D**2 / (2 * eta) + eta * G**2 * t
        found = bound("mahdavi2012", step=step, form="mirror-prox", facts=FIXED)
        same(found, regret=C, soft=sqrt(2 * (G * D * t + C) * D_**2 / eta))


def test_sums_over_any_horizon():
    """s^-3/2 adds up to zeta(3/2) less its tail, s^(1/2) to 2/3 n^(3/2) + n^(1/2)/2 + zeta(-1/2) + 1/(24 n^(1/2))."""
    for n in (1e4, 1e8, 1e12, 1e15):
        tail = 2 / sqrt(n) - 0.5 * n**-1.5
        assert smooth_sum(lambda s: s**-1.5, 1.0, n) == pytest.approx(2.6123753486854883 - tail, rel=3e-11)
        roots = 2 / 3 * n**1.5 + 0.5 * sqrt(n) - 0.20788622497735456 + 1 / (24 * sqrt(n))
        assert smooth_sum(lambda s: s**0.5, 1.0, n) == pytest.approx(roots, rel=3e-11)
    assert smooth_sum(lambda s: s**-1.5, 7.0, 1e8) == pytest.approx(
        2.6123753486854883 - 2e-4 - sum(s**-1.5 for s in range(1, 7)), rel=3e-11
    )  # fmt: skip


def test_anytimes_weight_of_the_costs_is_at_most_ten_to_the_eighty():
    """V = 10/(D |first gradient|) or 1e80: with G = 1e-83, 1/V is 1e-80 in Regret <= sqrt(2 t) D' G + theta/V, theta = 1/2."""
    found = bound("anytime", 10_000, lipschitz=None, bound=None, facts={"lipschitz": 1e-83})
    assert found.regret == pytest.approx(sqrt(2 * 10_000) * D_ * 1e-83 + 0.5e-80, rel=1e-9, abs=0.0)
    assert found.regret < 1e-83 * D * 10_000


def test_the_bounds_along_a_curve_are_those_of_its_rounds():
    policy = bridle.policy("sinha2024-strong", BALL, horizon=T, lipschitz=G_, modulus=MU_)
    rounds, regrets = [1, 100, t, T, T + 1], [None, 3.0, -5.0, 0.0, 0.0]
    curve = policy.bound_curve(FACTS, rounds, regrets)
    for at, regret, found in zip(rounds, regrets, curve, strict=True):
        assert found == policy.bound({**FACTS, "regret": regret}, at)
    assert curve[2].ccv < policy.bound(FACTS, t).ccv  # regret is said not to be as negative as it may be
    assert curve[-1].why == f"round {T + 1} is past the policy's horizon of {T}"
    misfit = policy.bound_curve({**FACTS, "diameter": 1.5}, [1, 2], [None, None])
    assert [found.why for found in misfit] == ["the policy's domain is not the problem's"] * 2


def test_a_domain_that_is_not_the_problems():
    """Wider by more than a billionth, or without the action that is known to be feasible, by more than a millionth of the diameter."""
    policy = bridle.policy("ogd", BALL, lipschitz=G)
    for facts, fits in (
        ({"diameter": 2.0 / (1.0 + 0.9e-9)}, True),
        ({"diameter": 2.0 / (1.0 + 1.1e-9)}, False),
        ({"feasible": np.array([1.0 + 1.9e-6, 0.0])}, True),
        ({"feasible": np.array([1.0 + 2.1e-6, 0.0])}, False),
        ({"feasible": np.array([5.0])}, True),  # another space
    ):
        assert (policy.bound({**FACTS, **facts}, 100).why == "") is fits


def test_the_bounds_of_a_sweep_are_those_of_its_runs():
    sweep = bridle.policy("sinha2024-strong", BALL, horizon=T, lipschitz=G_, modulus=MU_, V=[900.0, 1e-3, 800.0], beta=0.4)
    found = sweep.bound({**FACTS, "regret": np.array([3.0, 0.0, -70.0])}, t)
    alone = [
        bridle.policy("sinha2024-strong", BALL, horizon=T, lipschitz=G_, modulus=MU_, V=V, beta=0.4).bound({**FACTS, "regret": r}, t)
        for V, r in ((900.0, 3.0), (1e-3, 0.0), (800.0, -70.0))
    ]
    np.testing.assert_array_equal(found.regret, [alone[0].regret, np.nan, alone[2].regret])
    np.testing.assert_array_equal(found.ccv, [alone[0].ccv, np.nan, alone[2].ccv])
    assert found.soft is None
    assert found.why == f"run 1: {alone[1].why}"
    assert "V = 0.001 is too small" in alone[1].why
    same_why = bridle.policy("sinha2024-strong", BALL, horizon=T, lipschitz=G_, modulus=MU_, V=[900.0, 800.0]).bound(FACTS, T + 1)
    assert same_why.why == f"round {T + 1} is past the policy's horizon of {T}"


def test_a_learner_that_was_replaced_has_no_bound_where_costs_are_not_as_told():
    """A modulus beside the told one by more than a billionth of it."""
    policy = bridle.policy("sinha2024-strong", BALL, horizon=T, lipschitz=G_, modulus=MU_)
    uneven = {**FACTS, "curvature": Curvature(t - 9.0, 2.0, t - 9.0, 9.0, 1.0)}
    for share, covered in ((1.0, True), (1.0 + 0.8e-9, True), (1.0 - 1.2e-9, False), (1.0 + 1.2e-9, False)):
        learner = policy.record.learner._replace(modulus=policy.record.learner.modulus * share)
        changed = replace(policy, record=policy.record._replace(learner=learner))
        assert strong_bound(changed, FACTS, t).why == ""
        found = strong_bound(changed, uneven, t)
        assert (found.why == "") is covered
        assert covered or found.why.startswith("the learner was replaced, and a round had no cost")


def test_what_must_be_known_or_large_enough():
    assert bound("sun2017", facts={"bound": None}).why == "the largest |g| is not known"
    edge = sqrt(2) * G_  # sigma = (k+1) G'^2 must be above (k+1) G^2 / 2
    assert bound("yuan2018", facts={"lipschitz": edge * (1 - 1e-9)}).why == ""
    assert "too far above the one the policy was told" in bound("yuan2018", facts={"lipschitz": edge * (1 + 1e-9)}).why
