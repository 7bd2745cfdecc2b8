"""Whether the JAX engine plays the same game as the Python engine."""

from __future__ import annotations

import numpy as np

import bridle

ROUNDS = 3_000
"""Nearly three blocks of rounds, so that what is carried from one to the next counts."""


def agree(policy, problem, rounds: int = ROUNDS, tolerance: float = 1e-12, **settings) -> None:
    """Both engines play the same game: every decision, cost and constraint value, relative to the scale of each."""
    one = bridle.play(policy, problem, horizon=rounds, keep="decisions", **settings)
    two = bridle.play(policy, problem, horizon=rounds, keep="decisions", engine="jax", **settings)
    for name in ("decisions", "costs", "values"):
        a, b = getattr(one, name), getattr(two, name)
        assert a.shape == b.shape
        scale = np.abs(a).max()
        assert np.abs(a - b).max() <= tolerance * max(scale, problem.domain.diameter()), f"{name} differ by {np.abs(a - b).max():.2g}"
    for name in one.totals._fields:
        np.testing.assert_allclose(getattr(one.totals, name), getattr(two.totals, name), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(one.curve.rounds, two.curve.rounds)
