"""Every learner's regret bound and its constant at fixed numbers, written out again from the statement; and where each is attained."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import pytest

import bridle
from bridle import learners
from bridle.learners.late import LateOGD, late_regret
from bridle.learners.wrappers import delayed_ogd_regret, doubling_epochs

BALL = bridle.Ball(2)
D, G, T = 2.5, 1.7, 90


def test_the_regret_bounds():
    step = 0.3
    assert learners.ogd_regret(D, G, step, T) == pytest.approx(D**2 / 0.6 + 0.15 * G**2 * T)
    assert learners.decreasing_ogd_regret(D, G, step, T) == pytest.approx(D**2 * sqrt(T) / 0.6 + 0.15 * G**2 * (2 * sqrt(T) - 1))
    assert learners.adagrad_regret(D, 7.0) == pytest.approx(sqrt(2 * 7.0) * D)
    assert learners.adaftrl_regret(D, 7.0, G) == pytest.approx(sqrt(5.5) * D * sqrt(7.0) + 3.5 * D * G)
    assert learners.ftpl_regret(D, 3, 0.8, 7.0) == pytest.approx(0.8 * D * sqrt(3) + D / 3.2 * sqrt(2 / pi) * 7.0)
    assert learners.adaptive_ftpl_regret(D, 3, 7.0) == pytest.approx((2 * (3 / pi) ** 0.25 + 2 + sqrt(2)) * D * sqrt(7.0))
    assert learners.strongly_convex_regret([1.0, 2.0, 0.5], [0.5, 0.0, 1.0]) == pytest.approx(0.5 * (1 / 0.5 + 4 / 0.5 + 0.25 / 1.5))
    assert learners.strongly_convex_regret([1.0, 1.0], 2.0) == pytest.approx(0.5 * (1 / 2 + 1 / 4))
    assert delayed_ogd_regret(D, G, step, T, 4) == pytest.approx(D**2 / 0.6 + step * G**2 * T * 4.5)
    assert late_regret(D, G, T, 4) == pytest.approx(1.5 * D * G * sqrt(T * 9))


def test_the_constants_of_learners_that_were_told_another_diameter():
    """AdaGrad (D^2/D' + D')/sqrt(2); SOLO FTRL D^2/(2c) + 2.75c + 3.5D, c = D'/sqrt(5.5); late (D^2/(2D') + D') sqrt(1 + 2 delay)."""
    for told in (0.4, 2.0, 5.0):
        c = told / sqrt(5.5)
        assert bridle.AdaGrad(BALL, told).adaptivity(D) == pytest.approx((D**2 / told + told) / sqrt(2))
        assert bridle.AdaFTRL(BALL, told).adaptivity(D) == pytest.approx(D**2 / (2 * c) + 2.75 * c + 3.5 * D)
        assert LateOGD(BALL, 3, told).steadiness(D) == pytest.approx((D**2 / (2 * told) + told) * sqrt(7))
    assert bridle.AdaGrad(BALL).adaptivity(2.0) == pytest.approx(2 * sqrt(2))
    assert LateOGD(BALL, 3).steadiness(2.0) == pytest.approx(late_regret(2.0, 1.0, 1, 3))
    assert not hasattr(bridle.AdaGrad(BALL, initial=1.0), "adaptivity")


def test_where_the_bounds_are_attained():
    """One step of AdaGrad from an end of the interval: regret D |p|, the bound sqrt(2) times that. Descent: one cost of slope D / step."""
    assert learners.adagrad_regret(2.0, 9.0) == pytest.approx(sqrt(2) * 2.0 * 3.0)
    step = 0.3
    assert learners.ogd_regret(2.0, 2.0 / step, step, 1) == pytest.approx(2.0 * 2.0 / step)
    assert learners.strongly_convex_regret([2.0], [1.0]) == pytest.approx(0.5 * 4.0)  # f = (x - 2)^2/2 from 0: regret 2


def test_the_sums_that_learners_keep():
    for learner in (bridle.AdaGrad(BALL), bridle.AdaFTRL(BALL)):
        state = learner.init(np.zeros(2))
        for p in ([3.0, 4.0], [0.0, -1.0]):
            state = learner.step(state, np.array(p))
        assert learner.squares(state) == 26.0
        assert learner.squares(learner.rescale(state, 0.5)) == 6.5


def test_the_epochs_of_doubling():
    assert doubling_epochs(1) == [(1, 1)]
    assert doubling_epochs(7) == [(1, 1), (2, 2), (4, 4)]
    assert doubling_epochs(11) == [(1, 1), (2, 2), (4, 4), (8, 4)]
