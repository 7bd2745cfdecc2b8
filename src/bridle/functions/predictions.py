"""Losses of a number that a linear model predicts: logistic, squared and quantile, in terms of the score s = <a, x>.

Each is a record with ``value(s, target)``, its derivative ``slope(s, target)``, and ``bend(s, target)``: a second derivative that a
Newton step may divide by, never 0. `curvature` is about the largest that this is; `bounded` says whether slopes are. `PredictionLoss`
makes the function of the weights x out of one.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import NamedTuple, Protocol

from bridle import ops, showing, validate
from bridle.ops import Array, Number, Scalar, dot, maximum, pos

LEAST_BEND = 0.02
"""A row that is sure of its class still counts as one of probability 0.02: else Newton steps would grow without end."""


class ScoreLoss(Protocol):
    """A convex loss of a predicted number."""

    @property
    def curvature(self) -> Scalar: ...

    @property
    def bounded(self) -> bool: ...

    def value(self, s: Number, target: Scalar) -> Number: ...

    def slope(self, s: Number, target: Scalar) -> Number: ...

    def bend(self, s: Number, target: Scalar) -> Number: ...


class LogisticScore(NamedTuple):
    """ln(1 + e^{-target s}): the target is a class, +1 or -1, and s its log-odds."""

    @property
    def curvature(self) -> Scalar:
        return 0.25

    @property
    def bounded(self) -> bool:
        return True

    def value(self, s: Number, target: Scalar) -> Number:
        return ops.softplus(-target * s)  # type: ignore[return-value]

    def slope(self, s: Number, target: Scalar) -> Number:
        return -target * ops.sigmoid(-target * s)  # type: ignore[return-value]

    def bend(self, s: Number, target: Scalar) -> Number:
        wrong = ops.sigmoid(-target * s)
        return maximum(wrong * (1.0 - wrong), LEAST_BEND)  # type: ignore[return-value]


class SquaredScore(NamedTuple):
    """(s - target)^2 / 2."""

    @property
    def curvature(self) -> Scalar:
        return 1.0

    @property
    def bounded(self) -> bool:
        return False

    def value(self, s: Number, target: Scalar) -> Number:
        return 0.5 * (s - target) * (s - target)  # type: ignore[return-value]

    def slope(self, s: Number, target: Scalar) -> Number:
        return s - target  # type: ignore[return-value]

    def bend(self, s: Number, target: Scalar) -> Number:
        return 0.0 * s + 1.0  # type: ignore[return-value]


class QuantileScore(NamedTuple):
    """level (target - s)^+ + (1 - level) (s - target)^+: least on average where a share `level` of the targets lies below s.

    It has corners and no second derivative; on average over targets it has their density. `curvature` is that of a logistic distribution of
    deviation 1 at the quantile, so that targets are best scaled to a deviation of about 1.
    """

    level: Scalar

    @property
    def curvature(self) -> Scalar:
        return pi / sqrt(3.0) * self.level * (1.0 - self.level)

    @property
    def bounded(self) -> bool:
        return True

    def value(self, s: Number, target: Scalar) -> Number:
        return self.level * pos(target - s) + (1.0 - self.level) * pos(s - target)  # type: ignore[return-value]

    def slope(self, s: Number, target: Scalar) -> Number:
        return 1.0 * (s > target) - self.level  # type: ignore[return-value]

    def bend(self, s: Number, target: Scalar) -> Number:
        return 0.0 * s + self.curvature  # type: ignore[return-value]


def score_loss(loss: str = "logistic", level: float = 0.5) -> ScoreLoss:
    """The loss of this name; `level` is the quantile's.

    >>> score_loss("quantile", level=0.9).value(1.0, 3.0)
    1.8
    """
    validate.one_of("loss", loss, ("logistic", "squared", "quantile"))
    if loss == "logistic":
        return LogisticScore()
    if loss == "squared":
        return SquaredScore()
    share = validate.positive("level", level)
    if share >= 1.0:
        raise validate.refused("level must be below 1", level)
    return QuantileScore(share)


@showing.shown("PredictionLoss")
class PredictionLoss(NamedTuple):
    """weight * loss(<a, x>, target), as a function of the weights x of a linear model."""

    loss: ScoreLoss
    a: Array
    target: Scalar
    weight: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return self.weight * self.loss.value(dot(self.a, x), self.target)

    def grad(self, x: Array) -> Array:
        return (self.weight * self.loss.slope(dot(self.a, x), self.target)) * self.a
