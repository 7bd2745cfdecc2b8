"""The learner for gradients that arrive late: its update and its constants, from the formulas alone."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.learners.late import late_regret
from helpers.instances import instances
from helpers.learner_duels import OPPONENTS, Opponent, duel


@settings(max_examples=40)
@given(instances(), st.integers(0, 10), st.integers(0, 3), st.sampled_from([0.0, 1.0, 6.0]), st.sampled_from([None, 0.3, 5.0]))
def test_the_update_is_the_one_on_the_page(instance, rounds, idle, delay, told):
    """Also where a short gradient follows a long one, after rounds without any, and when told another diameter than the domain's."""
    domain, x, _, rng = instance
    D = domain.diameter() if told is None else told * domain.diameter()
    learner = bridle.LateOGD(domain, delay, diameter=None if told is None else D)
    p = 10.0 ** rng.uniform(-2.0, 1.0, (idle + rounds, 1)) * rng.standard_normal((idle + rounds, domain.dim))
    p[:idle] = 0.0
    state = learner.init(x)
    for n, row in enumerate(p, 1):
        state = learner.step(state, row)
        longest = max(float(np.linalg.norm(q)) for q in p[:n])
        x = domain.project(x - D / (longest * sqrt(n * (1.0 + 2.0 * delay))) * row) if longest > 0.0 else x
    slack = 1e-9 * (domain.diameter() + float(np.abs(domain.center()).max()))
    np.testing.assert_allclose(learner.decide(state), x, rtol=0.0, atol=slack)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(-8.0, 8.0))
def test_the_scale_of_the_gradients_does_not_matter(seed, log_factor):
    """A state that is rescaled goes on as if all gradients so far had been multiplied."""
    rng, factor, domain = np.random.default_rng(seed), 10.0**log_factor, bridle.Ball(3, radius=2.0)
    learner = bridle.LateOGD(domain, 2.0)
    assert learner.scale_free
    one = many = learner.init(domain.center())
    for p in rng.standard_normal((5, 3)):
        one, many = learner.step(one, p), learner.step(many, factor * p)
    rescaled, p = learner.rescale(one, factor), rng.standard_normal(3)
    np.testing.assert_allclose(rescaled.longest, many.longest, rtol=1e-12)
    np.testing.assert_allclose(learner.step(rescaled, factor * p).x, learner.step(many, factor * p).x, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(learner.step(rescaled, factor * p).x, learner.step(one, p).x, rtol=0.0, atol=1e-9)


def test_the_bound_is_the_one_of_the_proof():
    """The two halves of the proof added up: descent, and the steps taken while a gradient waited."""
    D, b, N, delay = 3.0, 0.7, 50.0, 4.0
    last_step = D / (b * sqrt(N * (1.0 + 2.0 * delay)))
    descent = D * D / (2.0 * last_step) + D * b * sqrt(N) / sqrt(1.0 + 2.0 * delay)
    waiting = 2.0 * delay * D * b * sqrt(N) / sqrt(1.0 + 2.0 * delay)
    assert late_regret(D, b, N, delay) == pytest.approx(descent + waiting, rel=1e-12)
    assert late_regret(D, b, N, delay) == pytest.approx(1.5 * 3.0 * 0.7 * sqrt(50.0 * 9.0), rel=1e-12)


def test_steadiness_is_the_bound_without_its_rounds():
    """c of  c max |p| sqrt(t);  told D' on a set of diameter D, the descent's first half is D^2 / D' in place of D."""
    for delay in (0.0, 1.0, 7.5):
        learner = bridle.LateOGD(bridle.Ball(2, radius=1.5), delay)
        assert learner.steadiness(3.0) == pytest.approx(late_regret(3.0, 1.0, 1.0, delay), rel=1e-12)
        told = bridle.LateOGD(bridle.Ball(2, radius=1.5), delay, diameter=12.0)
        assert told.steadiness(3.0) == pytest.approx((9.0 / 24.0 + 12.0) * sqrt(1.0 + 2.0 * delay), rel=1e-12)


@pytest.mark.parametrize("opponent", OPPONENTS)
def test_no_opponent_breaks_steadiness_where_the_diameter_told_is_wrong(opponent):
    """Nothing outstanding, so the gradients come as in a duel."""
    for domain in (bridle.Box([-1.0], [1.0]), bridle.Ball(2)):
        for ratio in (0.1, 1.0, 10.0):
            learner = bridle.LateOGD(domain, 0.0, diameter=ratio * domain.diameter())
            c = learner.steadiness(domain.diameter())
            for at in duel(learner, domain, domain.center(), Opponent(opponent, domain, np.random.default_rng(0))):
                assert at.regret <= c * at.longest * sqrt(at.t) * (1.0 + 1e-12)
