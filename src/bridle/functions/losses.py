"""Losses of a linear model on one example: logistic, hinge, and the logarithm of wealth."""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from bridle import ops, showing, validate
from bridle.ops import Array, Scalar, dot


@showing.shown("Logistic", a="features")
class LogisticLoss(NamedTuple):
    """weight * ln(1 + exp(-label <a, x>)): the loss of a linear classifier on one example, label +1 or -1."""

    a: Array
    label: Scalar
    weight: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return self.weight * ops.softplus(-self.label * dot(self.a, x))

    def grad(self, x: Array) -> Array:
        # e^{-softplus(m)} is 1 / (1 + e^m) to full relative precision, however small: scale-free learners see small gradients too.
        return (-1.0 * self.weight * self.label * ops.exp(-ops.softplus(self.label * dot(self.a, x)))) * self.a


@validate.computed
def Logistic(features: ArrayLike, label: float, weight: float = 1.0) -> LogisticLoss:
    """The logistic loss of a linear classifier on one example, ``weight * ln(1 + exp(-label <features, x>))``.

    Returns the loss as a function of the classifier's weights x.

    Parameters
    ----------
    features : array_like of shape (d,)
        The example.
    label : {1, -1}
        Its class.
    weight : float, default 1.0
        How much the example counts, 0 or above.

    Examples
    --------
    >>> import numpy as np
    >>> round(Logistic([1.0, 2.0], 1).value(np.zeros(2)), 6)
    0.693147
    """
    return LogisticLoss(validate.vector("features", features), _label(label), validate.nonnegative("weight", weight))


@showing.shown("Hinge", a="features")
class HingeLoss(NamedTuple):
    """weight * max(0, margin - label <a, x>)."""

    a: Array
    label: Scalar
    margin: Scalar
    weight: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return self.weight * ops.pos(self.margin - self.label * dot(self.a, x))

    def grad(self, x: Array) -> Array:
        short = self.margin - self.label * dot(self.a, x) > 0.0
        return (-1.0 * self.weight * self.label * short) * self.a


@validate.computed
def Hinge(features: ArrayLike, label: float, margin: float = 1.0, weight: float = 1.0) -> HingeLoss:
    """The hinge loss of a linear classifier on one example, ``weight * max(0, margin - label <features, x>)``.

    Returns the loss as a function of the classifier's weights x.

    Parameters
    ----------
    features : array_like of shape (d,)
        The example.
    label : {1, -1}
        Its class.
    margin : float, default 1.0
        The score, on the right side, from which the loss is 0.
    weight : float, default 1.0
        How much the example counts, 0 or above.

    Examples
    --------
    >>> import numpy as np
    >>> Hinge([1.0, 2.0], -1).value(np.array([1.0, 0.0]))
    2.0
    """
    return HingeLoss(
        validate.vector("features", features), _label(label), validate.number("margin", margin), validate.nonnegative("weight", weight)
    )


@showing.shown("LogWealth", a="returns")
class LogWealthLoss(NamedTuple):
    """-ln <a, x> where <a, x> is at least `floor`, and below it the parabola that goes on from there: convex and finite everywhere."""

    a: Array
    floor: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        level, below = self._split(x)
        short = below / level
        return 0.5 * short * short - short - ops.log(level)

    def grad(self, x: Array) -> Array:
        level, below = self._split(x)
        return ((below / level - 1.0) / level) * self.a

    def _split(self, x: Array) -> tuple[Scalar, Scalar]:
        """<a, x> as a part that is not below the floor, and the rest, which is 0 where that is all."""
        growth = dot(self.a, x)
        level = ops.maximum(growth, self.floor)
        return level, growth - level


@validate.computed
def LogWealth(returns: ArrayLike, floor: float = 1e-3) -> LogWealthLoss:
    """The logarithm of wealth that a period costs a portfolio, ``-ln <returns, x>``.

    Below `floor` the function goes on as a parabola, so that it is convex and finite for every x.

    Returns the loss as a function of the share x of wealth in each asset.

    Parameters
    ----------
    returns : array_like of shape (d,)
        The growth of each asset over the period, as a price relative: 1.1 is a gain of 10 percent.
    floor : float, default 0.001
        The growth below which the parabola takes over, above 0.

    Examples
    --------
    >>> import numpy as np
    >>> round(LogWealth([1.1, 0.9]).value(np.array([0.75, 0.25])), 6)
    -0.04879
    """
    return LogWealthLoss(validate.vector("returns", returns), validate.positive("floor", floor))


def _label(label: object) -> float:
    result = validate.number("label", label)
    if result not in (1.0, -1.0):
        raise validate.refused("label must be +1 or -1", label)
    return result
