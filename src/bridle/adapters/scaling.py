"""Features scaled by what was seen before them: mean 0 and deviation 1 over the past alone, so that no row knows of a later one.

`RunningScale` takes row after row, `past_scaled` all the rows of a table at once; both do the same additions in the same order.

>>> table = np.array([[1.0, 5.0], [3.0, 5.0], [6.0, 5.0]])
>>> past_scaled(table)
array([[0., 0.],
       [0., 0.],
       [4., 0.]])
>>> scale = Scale(2).learn(table[0]).learn(table[1])
>>> scale.apply(table[2])
array([4., 0.])
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bridle import ops, validate
from bridle.core import InputError
from bridle.ops import Array, Scalar


class RunningScale(NamedTuple):
    """Statistics of the rows so far: how many, the first one, the sum of what the others differ from it, the squared deviations' sum.

    `apply` before `learn` scales a row by earlier ones only. A feature that has not varied yet is scaled to 0, so the first row is all 0.
    """

    rows: Scalar
    first: Array
    total: Array
    squares: Array

    @property
    def mean(self) -> Array:
        return self.first + ops.ratio(self.total, self.rows)

    @property
    def deviation(self) -> Array:
        """The root of the mean squared deviation from the mean (of all rows so far, not of a sample)."""
        return ops.sqrt(ops.ratio(self.squares, self.rows))

    def learn(self, row: Array) -> RunningScale:
        """The statistics with one row more."""
        first = ops.where(self.rows > 0.0, self.first, row)
        total = self.total + (row - first)
        # The product of the two deviations, from the mean before and from the one after, is never negative: nothing cancels in the sum.
        before, after = first + ops.ratio(self.total, self.rows), first + total / (self.rows + 1.0)
        return type(self)(self.rows + 1.0, first, total, self.squares + (row - before) * (row - after))

    def apply(self, row: Array) -> Array:
        """The row less the mean, over the deviation."""
        return ops.ratio(row - self.mean, self.deviation)


def squashed(scaled: Array, most: float = 2.0) -> Array:
    """most tanh(z / most) of scaled features z, of one row or of many: alike near 0, and never beyond `most`, however far out a row lies.

    >>> squashed(np.array([0.0, 1.0, -100.0])).round(3)
    array([ 0.   ,  0.924, -2.   ])
    """
    return 2.0 * most * ops.sigmoid(2.0 / most * scaled) - most


class SquashedScale(RunningScale):
    """A scale whose rows are squashed: none of them, however far out, is worth more than a few.

    >>> scale = SquashedScale(*Scale(1)).learn(np.array([1.0])).learn(np.array([3.0]))
    >>> scale.apply(np.array([3.0])), scale.apply(np.array([1e9]))
    (array([0.92423431]), array([2.]))
    """

    __slots__ = ()

    def apply(self, row: Array) -> Array:
        """The row less the mean, over the deviation, squashed."""
        return squashed(super().apply(row))


FARTHEST = 5.0
"""A clipped feature is at most so many deviations off."""


class ClippedScale(RunningScale):
    """A scale whose rows are cut at 5 deviations: linear where nearly all rows are, and none is worth more than a few.

    >>> scale = ClippedScale(*Scale(1)).learn(np.array([1.0])).learn(np.array([3.0]))
    >>> scale.apply(np.array([3.0])), scale.apply(np.array([1e9]))
    (array([1.]), array([5.]))
    """

    __slots__ = ()

    def apply(self, row: Array) -> Array:
        """The row less the mean, over the deviation, cut."""
        return ops.maximum(ops.minimum(super().apply(row), FARTHEST), -FARTHEST)


def Scale(dim: int) -> RunningScale:
    """The statistics of no rows yet, of `dim` features."""
    zero = np.zeros(validate.whole("dim", dim, 0))
    return RunningScale(0.0, zero, zero, zero)


@validate.undisturbed
def past_scaled(X: ArrayLike) -> Array:
    """Every row scaled by the statistics of the rows before it, as `RunningScale` does one by one."""
    table = validate.array("X", X)
    if table.ndim != 2 or not table.shape[1]:
        raise InputError(f"X must be a table of rows and columns, not an array of shape {table.shape}")
    if not len(table):
        return table
    first, none = table[0], np.zeros((1, table.shape[1]))
    rows = np.arange(len(table) + 1.0)[:, None]
    totals = np.cumsum(np.vstack([none, table - first]), axis=0)
    means = first + ops.ratio(totals, rows)
    squares = np.cumsum(np.vstack([none, (table - means[:-1]) * (table - means[1:])]), axis=0)
    return RunningScale(rows[:-1], first, totals[:-1], squares[:-1]).apply(table)
