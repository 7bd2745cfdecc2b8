"""Rounding at random without bias: whole numbers, levels, points of a finite set, or combinatorial actions whose mean is the decision.

A system that can only do some actions plays another one than was decided (``Session.observe(..., played=...)``), and what is proved is
charged with the sum of <grad f_t, played - decided>. Where the mean of what is played is the decision, and the gradient does not depend on
the draw, as with a linear cost, every term has mean 0. The gradient of a convex cost grows towards where it was drawn: there the mean is 0
or above, and the charge is what rounding costs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bridle import validate
from bridle.backends import linear_program
from bridle.core import InputError
from bridle.domains.combinatorial import Combinatorial
from bridle.ops import Array

EXACT = 1e-9
"""A point is a mixture of others if it is one up to this part of their spread."""


def round_randomly(x: ArrayLike, rng: np.random.Generator, to: ArrayLike | Combinatorial | None = None, *, keep_sum: bool = False) -> Array:
    """Round a point at random without bias: the mean of the result is the point itself.

    Use it where a system can only do some actions, and tell the session what was done (``Session.observe(..., played=...)``).

    Parameters
    ----------
    x : array_like of shape (d,)
        The decision to round.
    rng : numpy.random.Generator
        The source of randomness, such as ``numpy.random.default_rng(seed)``; use the same one in every round.
    to : array_like or domain, optional
        A list of levels: every coordinate is rounded to one of its two nearest. Or an array of shape (m, d): one of these points is drawn,
        with
        the weights that spread least among all whose mean is `x`. Or a domain of combinatorial actions, such as `bridle.Paths`: one of its
        paths, matchings or trees is drawn. Default: whole numbers.
    keep_sum : bool, default False
        Draw whole numbers together, so that their sum is that of `x`, rounded up or down. A whole sum stays as it is.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> np.mean([round_randomly([2.25, 7.0], rng) for _ in range(10_000)], axis=0).round(1)
    array([2.2, 7. ])
    >>> int(round_randomly([0.5, 1.25, 2.25], rng, keep_sum=True).sum())
    4
    >>> round_randomly([3.0], rng, to=[1.0, 2.0, 4.0]).tolist() in ([2.0], [4.0])
    True
    >>> import bridle
    >>> round_randomly([0.5, 0.5, 0.5, 0.5], rng, to=bridle.Matchings(2)).tolist() in ([1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0])
    True
    """
    point = validate.vector("x", x)
    if not isinstance(rng, np.random.Generator):
        raise validate.refused("rng must be a generator such as numpy.random.default_rng(0)", rng)
    if to is None:
        return _whole_together(point, rng) if keep_sum else np.floor(point) + (rng.random(len(point)) < point - np.floor(point))
    if keep_sum:
        raise InputError("keep_sum is for whole numbers: it cannot be given with to")
    if isinstance(to, Combinatorial):
        return _action(validate.vector("x", x, to.dim), to, rng)
    choices = validate.array("to", to)
    if choices.ndim == 1 and choices.size:
        return _levels(point, np.unique(choices), rng)
    if choices.ndim != 2 or choices.shape[1] != len(point) or not len(choices):
        raise InputError(f"to must be a list of levels, or points of shape (m, {len(point)}), not an array of shape {choices.shape}")
    weights = mixture_of(point, choices)
    if weights is None:
        raise InputError(f"x must be a mixture of the points in to; {validate.show(point)} is none")
    return np.array(choices[rng.choice(len(choices), p=weights)])


def _whole_together(x: Array, rng: np.random.Generator) -> Array:
    """One draw for all: the steps of a staircase that is moved by it."""
    base = np.floor(x)
    stairs = np.floor(np.concatenate([[0.0], np.cumsum(x - base)]) + rng.random())
    whole: Array = np.clip(base + np.diff(stairs), base, np.ceil(x))
    return whole


def _levels(x: Array, levels: Array, rng: np.random.Generator) -> Array:
    if (x < levels[0]).any() or (x > levels[-1]).any():
        raise InputError(f"x must lie between the least and the largest of to; {validate.show(x)} does not")
    above = np.searchsorted(levels, x, side="left")
    low, high = levels[np.maximum(above - 1, 0)], levels[above]
    low = np.where(high == x, high, low)
    gap = high - low
    share = np.where(gap > 0.0, (x - low) / np.where(gap > 0.0, gap, 1.0), 0.0)
    return np.where(rng.random(len(x)) < share, high, low)


def _action(x: Array, domain: Combinatorial, rng: np.random.Generator) -> Array:
    points, weights = domain.mixture(x)
    if float(np.abs(weights @ points - x).max()) > EXACT:  # an action has entries of 0 and 1
        raise InputError(f"x must be a mixture of the actions of to; {validate.show(x)} is none")
    return np.array(points[rng.choice(len(points), p=weights)])


def mixture_of(x: Array, points: Array) -> Array | None:
    """The weights of points whose mean is x and whose spread around it, sum w |p - x|^2, is least; None where there are none.

    >>> mixture_of(np.array([1.0]), np.array([[0.0], [2.0], [4.0], [1.5]])).round(3)
    array([0.333, 0.   , 0.   , 0.667])
    """
    away = points - x
    unit = max(float(np.abs(away).max()), 1e-6 * float(np.abs(x).max())) or 1.0  # far from 0, rounding is all there may be
    away = away / unit
    rows = np.vstack([away.T, np.ones(len(points))])
    sums = np.append(np.zeros(len(x)), 1.0)
    found = linear_program((away * away).sum(axis=1), np.vstack([rows, -rows]), np.append(sums, -sums), (0.0, None))
    if found is None:
        return None
    weights = np.maximum(found.x, 0.0)
    weights = weights / (weights.sum() or 1.0)
    return weights if float(np.abs(weights @ away).max()) <= EXACT else None
