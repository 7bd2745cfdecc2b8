"""What a row teaches a linear regressor, as records: targets scaled by the past, a quantile held by an offset, an error rate by a price.

The learner without constants is fed features and targets scaled by the mean and deviation of those before, features at most 5 deviations
off and targets at most `FARTHEST`, so that no single row can throw it; what it predicts is scaled back, and the offset of a `Quantile` is
added. Without one the loss is the squared error, with one that of its quantile.

Guarantee: those of `offsets`.
Reference: bridle (this file).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle import ops, records, validate
from bridle.adapters.linear import ONE, listed
from bridle.adapters.mixture import Mixture, MixtureState, mixture
from bridle.adapters.rows import RowModel, padded
from bridle.adapters.scaling import ClippedScale, RunningScale, Scale
from bridle.core import InputError
from bridle.limits import ErrorRate, Quantile
from bridle.limits.quantiles import ErrorPrice, Offset, OffsetState, Owed
from bridle.limits.report import LimitTable
from bridle.ops import Array, Scalar, maximum, minimum

FARTHEST = 10.0
"""A target farther from the mean than so many deviations is learned as if it were that far."""


class TargetRow(NamedTuple):
    """One row: its features, its target, and the weight of its loss."""

    features: Array
    target: Scalar
    weight: Scalar


class Predicted(NamedTuple):
    """What rows change: the experts and their weights, the offset, the errors, and the scales of the features and of the targets."""

    state: MixtureState
    weights: Array
    offset: OffsetState | None
    errors: Owed | None
    scale: RunningScale | None
    targets: RunningScale  # of one number

    def given_out(self, score: Scalar) -> Scalar:
        """The prediction of the learner in the unit of the targets, without the offset."""
        given: Scalar = self.targets.mean[0] + self.targets.deviation[0] * score
        return given


class RegressionRules(NamedTuple):
    """What does not change: the learner, and the limits."""

    mixture: Mixture
    quantile: Offset | None
    errors: ErrorPrice | None

    def learn(self, before: Predicted, row: TargetRow) -> Predicted:
        """One round: what is learned from a row, scaled by the rows before it."""
        scale, targets, target = before.scale, before.targets, ops.columns(row.target)
        a = ops.join([ONE, row.features if scale is None else scale.apply(row.features)], -1)
        residual = row.target - before.given_out(ops.dot(before.weights, a))
        offset, errors, error, pull = before.offset, before.errors, residual, None
        if self.quantile is not None and offset is not None:
            error = residual - self.quantile.offset(offset)
            meant = ops.where(targets.rows > 0.0, residual, 0.0 * residual)  # the first prediction knows nothing of where targets lie
            offset = self.quantile.learn(offset, meant, ops.where(error > 0.0, 1.0, 0.0))
        if self.errors is not None and errors is not None:
            # By the learner's own prediction: pulled by what the offset makes of it the two would push each other away.
            side = 1.0 * (residual < -self.errors.beyond) - 1.0 * (residual > self.errors.beyond)
            pull = row.weight * self.errors.price(errors) * side * a
            errors = self.errors.learn(errors, error)
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
        state, scale = learner.init(), None if self.scale is False else ClippedScale(*Scale(features))
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


def regression_limits(constraints: object) -> tuple[Offset | None, ErrorPrice | None]:
    """What holds the limits that a regressor was given: at most one of each kind."""
    found: dict[type, Any] = {}
    for limit in listed(constraints):
        if not isinstance(limit, (Quantile, ErrorRate)):
            raise validate.refused("constraints of a regressor must be Quantile(0.9) or ErrorRate(beyond=1.0)", limit)
        if type(limit) in found:
            raise InputError(f"constraints must hold one {type(limit).__name__} at most: a row has one prediction")
        found[type(limit)] = limit
    quantile, errors = found.get(Quantile), found.get(ErrorRate)
    return quantile and Offset(quantile.level), errors and ErrorPrice(errors.beyond, errors.at_most)


class RegressorModel(RowModel[Predicted, TargetRow]):
    """A linear regressor, and what it has learned."""

    plan: RegressionPlan
    rules: RegressionRules

    def predict(self, rows: Array) -> Scalar:
        """The predictions of one row or of many, with the offset as it stands."""
        scores, held, quantile = self.scores(rows), self.held, self.rules.quantile
        with np.errstate(all="ignore"):
            given = held.given_out(scores)
            return given if quantile is None or held.offset is None else given + quantile.offset(held.offset)

    @property
    def limits(self) -> LimitTable:
        """What became of every limit, in the order in which the user named them."""
        held, rules, reports = self.held, self.rules, []
        for limit in listed(self.plan.constraints):
            if isinstance(limit, Quantile) and rules.quantile is not None and held.offset is not None:
                reports.append(rules.quantile.report(held.offset))
            elif rules.errors is not None and held.errors is not None:
                reports.append(rules.errors.report(held.errors))
        return LimitTable(reports)
