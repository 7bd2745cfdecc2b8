"""Rounding at random: without bias, to what was asked for, and from one seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.domains.rounding import mixture_of

X = np.array([2.25, 0.9, -3.5, 4.0])


@pytest.mark.parametrize(
    ("options", "support"),
    [
        ({}, [{2.0, 3.0}, {0.0, 1.0}, {-4.0, -3.0}, {4.0}]),
        ({"keep_sum": True}, [{2.0, 3.0}, {0.0, 1.0}, {-4.0, -3.0}, {4.0}]),
        ({"to": [5.0, -6.0, 0.5, 2.0, 0.9, 4.0]}, [{2.0, 4.0}, {0.9}, {-6.0, 0.5}, {4.0}]),
    ],
    ids=["whole", "together", "levels"],
)
def test_the_mean_is_the_decision_and_every_draw_is_next_to_it(options, support):
    rng, n = np.random.default_rng(7), 6_000
    drawn = np.array([bridle.round_randomly(X, rng, **options) for _ in range(n)])
    for column, allowed in zip(drawn.T, support, strict=True):
        assert set(column) == allowed
    errors = drawn.std(axis=0) / np.sqrt(n)
    assert (np.abs(drawn.mean(axis=0) - X) <= 4.0 * errors + 1e-12).all()


def test_draws_that_keep_the_sum_add_up_to_it():
    rng = np.random.default_rng(1)
    for _ in range(500):
        x = rng.uniform(-5.0, 5.0, 6)
        assert abs(bridle.round_randomly(x, rng, keep_sum=True).sum() - x.sum()) < 1.0
        x[-1] += round(x.sum()) - x.sum()
        assert bridle.round_randomly(x, rng, keep_sum=True).sum() == round(x.sum())


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 12), st.sampled_from([1e-6, 1.0, 1e6]))
@settings(max_examples=60, deadline=None)
def test_weights_of_points_have_the_decision_as_their_mean(seed, dim, count, unit):
    rng = np.random.default_rng(seed)
    points = unit * rng.standard_normal((count, dim))
    x = rng.dirichlet(np.ones(count)) @ points
    weights = mixture_of(x, points)
    assert weights is not None
    assert weights.min() >= 0.0
    np.testing.assert_allclose(weights @ points, x, atol=1e-8 * unit)
    assert bridle.round_randomly(x, rng, to=points).tolist() in points.tolist()
    assert mixture_of(points.max(axis=0) + unit, points) is None


def test_the_weights_spread_least():
    points = np.array([[0.0], [10.0], [4.0], [6.0]])
    np.testing.assert_allclose(mixture_of(np.array([5.0]), points), [0.0, 0.0, 0.5, 0.5], atol=1e-9)


def test_one_seed_gives_one_sequence_and_nothing_else_is_drawn():
    draws = [[bridle.round_randomly(X, rng).tolist() for _ in range(5)] for rng in (np.random.default_rng(3), np.random.default_rng(3))]
    assert draws[0] == draws[1]
    assert any(draw != draws[0][0] for draw in draws[0])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([np.nan],), {}, "x must be finite"),
        (([0.5],), {"to": []}, r"to must be a list of levels, or points of shape \(m, 1\)"),
        (([0.5],), {"to": [[1.0, 2.0]]}, r"to must be a list of levels, or points of shape \(m, 1\)"),
        (([0.5],), {"to": [1.0, 2.0]}, "x must lie between the least and the largest of to"),
        (([0.5],), {"to": [[1.0], [2.0]]}, "x must be a mixture of the points in to"),
        (([0.5],), {"to": [0.0, 1.0], "keep_sum": True}, "keep_sum is for whole numbers"),
    ],
)
def test_what_cannot_be_rounded_is_named(arguments, options, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.round_randomly(*arguments, np.random.default_rng(0), **options)
    with pytest.raises(bridle.InputError, match="rng must be a generator"):
        bridle.round_randomly([0.5], 0)
