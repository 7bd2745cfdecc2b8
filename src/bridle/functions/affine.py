"""Affine functions and their absolute values: in general, k at once, and of one coordinate alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bridle import ops, showing, validate
from bridle.ops import Array, Scalar, dot


@showing.shown("Affine")
class AffineFunction(NamedTuple):
    """<a, x> + b."""

    a: Array
    b: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return dot(self.a, x) + self.b

    def grad(self, x: Array) -> Array:
        return self.a

    def total(self) -> AffineFunction:
        """The sum of a sequence of these, again as one."""
        return AffineFunction(self.a.sum(axis=0), float(np.sum(self.b)))


@showing.shown("Affine", A="a")
class AffineRows(NamedTuple):
    """k affine functions at once: A x + b."""

    A: Array
    b: Array

    @property
    def convex(self) -> bool:
        return True

    @property
    def several(self) -> bool:
        return True

    def value(self, x: Array) -> Array:
        if self.A.ndim == 2 and x.ndim == 1:
            return self.A @ x + self.b
        return (self.A @ x[..., None])[..., 0] + self.b

    def grad(self, x: Array) -> Array:
        return self.A


@validate.computed
def Affine(a: ArrayLike, b: ArrayLike = 0.0) -> AffineFunction | AffineRows:
    """An affine function ``<a, x> + b``, or one for each row of a matrix.

    Parameters
    ----------
    a : array_like of shape (d,) or (k, d)
        The slope. A matrix makes k functions, one a row.
    b : float or array_like of shape (k,), default 0.0
        The value at the origin, in units of cost or constraint.

    Examples
    --------
    >>> Affine([[1.0, 0.0], [0.0, 1.0]], [0.0, -1.0]).value(np.array([2.0, 3.0]))
    array([2., 2.])
    """
    normal = validate.array("a", a)
    if normal.ndim == 2 and normal.size:
        offsets = validate.array("b", b)
        return AffineRows(normal, validate.vector("b", np.full(len(normal), offsets) if offsets.ndim == 0 else offsets, len(normal)))
    return AffineFunction(validate.vector("a", a), validate.number("b", b))


@showing.shown("Coordinate")
class Coordinate(NamedTuple):
    """sign * (x_j - target): an affine function of one coordinate, stored without its d - 1 zeros; j is a whole number held as a float."""

    j: Scalar
    sign: Scalar
    target: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return self.sign * (dot(ops.onehot(self.j, x), x) - self.target)

    def grad(self, x: Array) -> Array:
        return self.sign * ops.onehot(self.j, x)


AFFINE_FUNCTIONS = (AffineFunction, AffineRows, Coordinate)
"""The records that are affine in x: what a policy learns of them at one decision holds everywhere."""


@showing.shown("AbsoluteDeviation")
class Deviation(NamedTuple):
    """|<a, x> - b|; the subgradient at the kink is zero."""

    a: Array
    b: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return abs(dot(self.a, x) - self.b)  # type: ignore[return-value]

    def grad(self, x: Array) -> Array:
        gap = dot(self.a, x) - self.b
        return ((gap > 0.0) * 1.0 - (gap < 0.0) * 1.0) * self.a


@validate.computed
def AbsoluteDeviation(a: ArrayLike, b: float = 0.0) -> Deviation:
    """The absolute deviation of ``<a, x>`` from `b`.

    Parameters
    ----------
    a : array_like of shape (d,)
        The slope.
    b : float, default 0.0
        The value at which the deviation is 0, in units of `a` times an action.

    Examples
    --------
    >>> AbsoluteDeviation([1.0, 1.0], 3.0).value(np.array([1.0, 1.0]))
    1.0
    """
    return Deviation(validate.vector("a", a), validate.number("b", b))


@showing.shown("CoordinateDeviation")
class CoordinateDeviation(NamedTuple):
    """|x_j - target|, stored without its d - 1 zeros; the subgradient at the kink is zero."""

    j: Scalar
    target: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return abs(dot(ops.onehot(self.j, x), x) - self.target)  # type: ignore[return-value]

    def grad(self, x: Array) -> Array:
        unit = ops.onehot(self.j, x)
        gap = dot(unit, x) - self.target
        return ((gap > 0.0) * 1.0 - (gap < 0.0) * 1.0) * unit
