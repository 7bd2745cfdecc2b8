"""Every learner's regret bound and its constant at fixed numbers, written out again from the statement; and where each is attained."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import pytest

import bridle
from bridle import learners
from bridle.learners.wrappers import SQUARES, doubling_epochs, squaring_regret

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


def test_the_constants_of_learners_that_were_told_another_diameter():
    """AdaGrad (D^2/D' + D')/sqrt(2); SOLO FTRL D^2/(2c) + 2.75c + 3.5D, c = D'/sqrt(5.5)."""
    for told in (0.4, 2.0, 5.0):
        c = told / sqrt(5.5)
        assert bridle.AdaGrad(BALL, told).adaptivity(D) == pytest.approx((D**2 / told + told) / sqrt(2))
        assert bridle.AdaFTRL(BALL, told).adaptivity(D) == pytest.approx(D**2 / (2 * c) + 2.75 * c + 3.5 * D)
    assert bridle.AdaGrad(BALL).adaptivity(2.0) == pytest.approx(2 * sqrt(2))
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
    assert doubling_epochs(2, "square") == [(2, 2)]
    assert doubling_epochs(7, "square") == [(2, 2), (4, 4), (16, 1)]
    assert doubling_epochs(22, "square") == [(2, 2), (4, 4), (16, 16)]
    beyond = doubling_epochs(2**40, "square")
    assert [length for length, _ in beyond] == [2, 4, 16, 256, 65536, 2**32]
    assert sum(rounds for _, rounds in beyond) == 2**40
    assert len(beyond) == SQUARES


def test_logarithmic_regret_stays_so_on_squares():
    """The closed form is above the sum over the epochs, and no more than twice that from T = 100 on; doubling's grows like ln^2."""
    for T in [*range(1, 300), 65_814, 65_815, 10**6, 10**9]:
        exact = sum(1.0 + np.log(rounds) for _, rounds in doubling_epochs(T, "square"))
        assert exact <= squaring_regret(1.0, T) * (1.0 + 1e-12)
        if T >= 100:
            assert squaring_regret(1.0, T) <= 2.0 * exact
    for T in (2, 1):
        assert squaring_regret(0.7, T) == pytest.approx(0.7 * (1.0 + np.log(T)))
    assert squaring_regret(0.7, 10**6) == pytest.approx(0.7 * (3 * 13.815510557964274 + 4.316983346365776 + 1.306852819440), rel=1e-11)
    assert squaring_regret(0.7, 3) == pytest.approx(0.7 * (3 * 1.0986122886681098 + 0.6644487074538895 + 1.306852819440), rel=1e-11)
    # Where an epoch ends, nothing is lost but the M-th epoch's ln T against ln n, and log2 log2 T against M - 1.
    T = 2 + 4 + 16 + 256 + 65_536
    exact = sum(1.0 + np.log(rounds) for _, rounds in doubling_epochs(T, "square"))
    assert exact == pytest.approx(5.0 + 31.0 * np.log(2.0))
    doubled = [sum(1.0 + np.log(rounds) for _, rounds in doubling_epochs(T)) for T in (10**3, 10**6)]
    assert doubled[1] / doubled[0] > 3.0 > squaring_regret(1.0, 10**6) / squaring_regret(1.0, 10**3)
