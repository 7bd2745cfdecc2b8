"""Losses of a score: slopes and bends are the derivatives of values; as functions of weights they are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from bridle.core import InputError
from bridle.functions import LogisticLoss, PredictionLoss, score_loss
from bridle.functions.predictions import LEAST_BEND

LOSSES = [("logistic", 0.5), ("squared", 0.5), ("quantile", 0.2), ("quantile", 0.9)]


@pytest.mark.parametrize(("name", "level"), LOSSES)
def test_slopes_and_bends_are_derivatives(name, level):
    loss, s, h = score_loss(name, level), np.linspace(-9.0, 9.0, 61) + 0.01, 1e-4
    for target in (-1.0, 1.0):
        slope = (loss.value(s + h, target) - loss.value(s - h, target)) / (2.0 * h)
        np.testing.assert_allclose(loss.slope(s, target), slope, atol=1e-7)
        assert (np.diff(loss.slope(s, target)) >= 0.0).all()
        bends = loss.bend(s, target)
        assert (bends > 0.0).all()
        if name != "quantile":
            second = (loss.slope(s + h, target) - loss.slope(s - h, target)) / (2.0 * h)
            np.testing.assert_allclose(bends, np.maximum(second, LEAST_BEND) if name == "logistic" else second, atol=1e-6)
        assert bends.max() <= loss.curvature * (1.0 + 1e-12)
        assert [loss.value(float(one), target) for one in s[:3]] == pytest.approx(loss.value(s[:3], target))
    far = abs(loss.slope(1e6, 0.5)) if name != "logistic" else abs(loss.slope(-1e6, 1.0))
    assert loss.bounded == (far <= 1.0)


def test_the_quantile_loss_bends_as_a_logistic_density_of_deviation_one():
    rng, level = np.random.default_rng(0), 0.9
    sample = rng.logistic(scale=np.sqrt(3.0) / np.pi, size=400_000)
    at = np.quantile(sample, level)
    density = np.mean(np.abs(sample - at) < 0.05) / 0.1
    assert score_loss("quantile", level).curvature == pytest.approx(density, rel=0.03)
    losses = [score_loss("quantile", level).value(np.full(len(sample), x), sample).mean() for x in (at - 0.1, at, at + 0.1)]
    assert losses[1] == min(losses)


@pytest.mark.parametrize(("name", "level"), LOSSES)
def test_as_a_function_of_weights(name, level):
    rng = np.random.default_rng(1)
    a, x, loss = rng.standard_normal(4), rng.standard_normal(4), score_loss(name, level)
    f = PredictionLoss(loss, a, 1.0, 2.5)
    assert f.convex
    assert f.value(x) == pytest.approx(2.5 * loss.value(float(a @ x), 1.0))
    for i, unit in enumerate(np.eye(4)):
        assert f.grad(x)[i] == pytest.approx((f.value(x + 1e-5 * unit) - f.value(x - 1e-5 * unit)) / 2e-5, abs=1e-6)
    if name == "logistic":
        np.testing.assert_allclose(f.grad(x), LogisticLoss(a, 1.0, 2.5).grad(x))
        np.testing.assert_allclose(f.value(x), LogisticLoss(a, 1.0, 2.5).value(x))


def test_bad_names_and_levels():
    with pytest.raises(InputError, match="loss"):
        score_loss("absolute")
    with pytest.raises(InputError, match=r"level must be below 1, not 1\.5"):
        score_loss("quantile", 1.5)
