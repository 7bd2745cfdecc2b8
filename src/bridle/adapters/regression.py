"""What a row teaches a linear regressor, as records: targets scaled by the past, a quantile held by an offset, an error rate by a price.

The learner without constants is fed targets scaled by the mean and deviation of those before, at most `FARTHEST` deviations off, so that no
single target can throw it; what it predicts is scaled back, and the offset of a `Quantile` is added. Without one the loss is the squared
error, with one that of its quantile.

An `ErrorRate` counts rows whose error is above `beyond`, v = 1, and D is the debt: those beyond the share allowed. It weighs the
distance beyond as a second loss, (|error| - beyond)^+, with the price lam = h((eta D)^+), h(x) = x (1 + |x|) and eta D at most 2.

Guarantee: of the quantile, `offsets`. Of the error rate: sum v = eps n + D - F, with F what the floor of D has forgiven; that D stays small
    cannot be promised, as no prediction is right whatever comes.
Reference: bridle (this file).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import ops, records, validate
from bridle.adapters.learning import ONE
from bridle.adapters.levels import ETA, FLOOR, swing
from bridle.adapters.limit_report import LimitReport, LimitTable, short
from bridle.adapters.linear import listed
from bridle.adapters.mixture import Mixture, MixtureState, mixture
from bridle.adapters.offsets import OffsetState, QuantileLimit, RowCount, no_rows, quantile_report
from bridle.adapters.row_model import RowModel, padded
from bridle.adapters.scaling import RunningScale, Scale, SquashedScale
from bridle.core import InputError
from bridle.ops import Array, Scalar, maximum, minimum

FARTHEST = 10.0
"""A target farther from the mean than so many deviations is learned as if it were that far."""


DEAREST = 2.0
"""The highest level of the price of an error rate."""


class TargetRow(NamedTuple):
    """One row: its features, its target, and the weight of its loss."""

    features: Array
    target: Scalar
    weight: Scalar


class ErrorState(NamedTuple):
    """The debt, and what its floor has forgiven; the rows that were beyond."""

    debt: Scalar
    forgiven: Scalar
    wrong: RowCount


class ErrorRateLimit(NamedTuple):
    """At most a share `at_most` of the rows has an error above `beyond`: a debt sets the price of being beyond."""

    beyond: float
    at_most: float

    def start(self) -> ErrorState:
        return ErrorState(0.0, 0.0, no_rows())

    def price(self, state: ErrorState) -> Scalar:
        """What the distance beyond weighs, where a deviation of the targets weighs 1."""
        return swing(minimum(ops.pos(ETA * state.debt), DEAREST))

    def count(self, state: ErrorState, error: Scalar) -> ErrorState:
        wrong = 1.0 * (abs(error) > self.beyond)
        debt = state.debt + wrong - self.at_most
        floored = maximum(debt, FLOOR)
        return ErrorState(floored, state.forgiven + (floored - debt), state.wrong.add(wrong, self.at_most))


def ErrorRate(beyond: float, at_most: float = 0.1) -> ErrorRateLimit:
    """At most a share `at_most` of the rows has a prediction that is off by more than `beyond`, in the unit of the targets.

    >>> ErrorRate(beyond=2.0, at_most=0.05).at_most
    0.05
    """
    share = validate.positive("at_most", at_most)
    if share >= 1.0:
        raise InputError(f"at_most must be a share below 1, not {validate.show(at_most)}")
    return ErrorRateLimit(validate.positive("beyond", beyond), share)


class Predicted(NamedTuple):
    """What rows change: the experts and their weights, the offset, the errors, and the scales of the features and of the targets."""

    state: MixtureState
    weights: Array
    offset: OffsetState | None
    errors: ErrorState | None
    scale: RunningScale | None
    targets: RunningScale  # of one number

    def given_out(self, score: Scalar) -> Scalar:
        """The prediction of the learner in the unit of the targets, without the offset."""
        return self.targets.mean[0] + self.targets.deviation[0] * score


class RegressionRules(NamedTuple):
    """What does not change: the learner, and the limits."""

    mixture: Mixture
    quantile: QuantileLimit | None
    errors: ErrorRateLimit | None

    def learn(self, before: Predicted, row: TargetRow) -> Predicted:
        """One round: what is learned from a row, scaled by the rows before it."""
        scale, targets, target = before.scale, before.targets, ops.columns(row.target)
        a = ops.join([ONE, row.features if scale is None else scale.apply(row.features)], -1)
        residual = row.target - before.given_out(ops.dot(before.weights, a))
        offset, errors, error, pull = before.offset, before.errors, residual, None
        if self.quantile is not None and offset is not None:
            error = residual - self.quantile.offset(offset)
            meant = ops.where(targets.rows > 0.0, residual, 0.0 * residual)  # the first prediction knows nothing of where targets lie
            offset = self.quantile.count(offset, meant, 1.0 * (error > 0.0))
        if self.errors is not None and errors is not None:
            # By the learner's own prediction: pulled by what the offset makes of it the two would push each other away.
            side = 1.0 * (residual < -self.errors.beyond) - 1.0 * (residual > self.errors.beyond)
            pull = row.weight * self.errors.price(errors) * side * a
            errors = self.errors.count(errors, error)
        scaled = minimum(maximum(targets.apply(target)[0], -FARTHEST), FARTHEST)
        state = self.mixture.learn(before.state, a, scaled, row.weight, pull)
        rows = None if scale is None else scale.learn(row.features)
        return Predicted(state, self.mixture.weights(state), offset, errors, rows, targets.learn(target))


class RegressionPlan(NamedTuple):
    """What a regressor is made from, but for the number of its features."""

    constraints: object = None
    scale: bool | None = None

    def made(self, features: int) -> tuple[RegressionRules, Predicted]:
        """The rules, and what is held before the first row."""
        quantile, errors = regression_limits(self.constraints)
        learner = mixture(features, "squared") if quantile is None else mixture(features, "quantile", quantile.level)
        state, scale = learner.init(), None if self.scale is False else SquashedScale(*Scale(features))
        held = Predicted(
            state,
            learner.weights(state),
            None if quantile is None else quantile.start(),
            None if errors is None else errors.start(),
            scale,
            Scale(1),
        )
        return RegressionRules(learner, quantile, errors), held

    def widened(self, rules: RegressionRules, held: Predicted, wide: RegressionRules, start: Predicted) -> Predicted:
        """What is held, with room for more features."""
        state = wide.mixture.grown(held.state)
        return held._replace(state=state, weights=wide.mixture.weights(state), scale=records.transform(padded, held.scale, start.scale))


def regression_limits(constraints: object) -> tuple[QuantileLimit | None, ErrorRateLimit | None]:
    """The limits that a regressor was given: at most one of each kind."""
    found: dict[type, object] = {}
    for limit in listed(constraints):
        if not isinstance(limit, (QuantileLimit, ErrorRateLimit)):
            raise InputError(f"constraints of a regressor must be Quantile(0.9) or ErrorRate(beyond=1.0), not {validate.show(limit)}")
        if type(limit) in found:
            raise InputError(f"constraints must hold one {type(limit).__name__.removesuffix('Limit')} at most: a row has one prediction")
        found[type(limit)] = limit
    return found.get(QuantileLimit), found.get(ErrorRateLimit)  # type: ignore[return-value]


class RegressorModel(RowModel[Predicted, TargetRow]):
    """A linear regressor, and what it has learned."""

    def predict(self, rows: Array) -> Scalar:
        """The predictions of one row or of many, with the offset as it stands."""
        scores, held, quantile = self.scores(rows), self.held, self.rules.quantile
        with np.errstate(all="ignore"):
            given: Scalar = held.given_out(scores)
            return given if quantile is None else given + quantile.offset(held.offset)

    @property
    def limits(self) -> LimitTable:
        """What became of every limit, in the order in which the user named them."""
        return LimitTable(self._report(limit) for limit in listed(self.plan.constraints))

    def _report(self, limit: QuantileLimit | ErrorRateLimit) -> LimitReport:
        held = self.held
        if isinstance(limit, QuantileLimit):
            return quantile_report(limit, held.offset)
        return error_report(limit, held.errors)


def error_report(limit: ErrorRateLimit, state: ErrorState) -> LimitReport:
    """What became of an error rate."""
    count = state.wrong
    measured, recent = count.shares()
    price = float(limit.price(state))
    words = "no row yet" if measured is None else f"{short(measured)} of the predictions were off by more than {short(limit.beyond)}"
    return LimitReport(
        f"share of errors above {limit.beyond:g}", "at most", limit.at_most, measured, recent, None,
        "no prediction is right whatever comes", price, "the weight of the distance beyond, in the cost of a row", count.since,
        int(count.rows), 0, words, {"debt": float(state.debt), "forgiven": float(state.forgiven)},
    )  # fmt: skip
