"""What a row teaches a linear classifier, as records: the rules that do not change, what is learned, and the step from row to row.

A row is a round. It is scored as the past sees it, and the levels that hold rates count whether that was an alarm. Then its features (after
a 1 for the intercept) and its class make a loss, its limits make constraints, and what learns the weights is fed what they are worth at the
weights that were played.
"""

from __future__ import annotations

from math import nan
from typing import Any, NamedTuple

import numpy as np

from bridle import ops
from bridle.adapters.averages import Averages, AverageState
from bridle.adapters.limits import Limit
from bridle.adapters.loss_reports import LossTally, counted
from bridle.adapters.mixture import Mixture, MixtureState
from bridle.adapters.scaling import RunningScale
from bridle.adapters.thresholds import Seen, Table, Thresholds
from bridle.core import Feedback, Policy, Round
from bridle.functions import AffineFunction, LogisticLoss
from bridle.ops import Array, Scalar

ONE = np.ones(1)
"""The feature of the intercept."""


class LabelledRow(NamedTuple):
    """One row: its features, +1 or -1 for its class, the weight of its loss; its group and its period where it has one; how it was seen.

    `seen` is what the levels made of a row that was decided before its class was known; None: it is scored now.
    """

    features: Array
    sign: Scalar
    weight: Scalar
    group: Scalar | None = None
    period: Scalar | None = None
    seen: Seen | None = None


class PolicyLearner(NamedTuple):
    """Weights that are a policy's decisions."""

    record: Policy[Any]

    def start(self, center: Array) -> object:
        return self.record.init(center)

    def weights(self, state: object) -> Array:
        return self.record.decide(state)

    def learn(self, state: object, row: LabelledRow, a: Array, feedback: Feedback, counts: Array) -> object:
        return self.record.update(state, feedback)


class FreeState(NamedTuple):
    """What the experts have learned, and what limits on average cost them."""

    mixture: MixtureState
    averages: AverageState | None


class FreeLearner(NamedTuple):
    """Weights that are a mixture of experts, with nothing to be set; limits are held on average, at a price."""

    mixture: Mixture
    averages: Averages | None

    def weights(self, state: FreeState) -> Array:
        return self.mixture.weights(state.mixture)

    def learn(
        self, state: FreeState, row: LabelledRow, a: Array, feedback: Feedback | None = None, counts: Array | None = None
    ) -> FreeState:
        averages, pull = state.averages, None
        if self.averages is not None and averages is not None and feedback is not None and counts is not None:
            averages, pull = self.averages.weigh(averages, feedback.g, feedback.dg, feedback.df, counts)
        return FreeState(self.mixture.learn(state.mixture, a, row.sign, row.weight, pull), averages)


class Rules(NamedTuple):
    """What does not change: what learns the weights, the limits that make constraints, and the levels that hold rates."""

    learner: PolicyLearner | FreeLearner
    limits: tuple[Limit[Any], ...]
    thresholds: Thresholds | None
    allowed: Array  # what the limit of each constraint asks for
    side: float = 1.0  # -1 where rates are about the first of two classes

    def learn(self, before: Learned, row: LabelledRow) -> Learned:
        """One round: what is learned from a row, scaled by the rows before it."""
        scale, levels = before.scale, before.levels
        features = row.features if scale is None else scale.apply(row.features)
        a = ops.join([ONE, features], -1)
        if self.thresholds is not None:
            seen = row.seen
            if seen is None:
                score = ops.dot(features, before.weights[1:]) + before.weights[0]  # as it is predicted, to the last bit
                levels, seen = self.thresholds.look(levels, self.side * score, known(row.group), known(row.period))
            levels = self.thresholds.count(levels, seen, self.side * row.sign, known(row.group))
        after, memory, tally = None if scale is None else scale.learn(row.features), before.memory, before.tally
        state: Any
        if isinstance(self.learner, FreeLearner) and tally is None:
            state = self.learner.learn(before.state, row, a)
            return Learned(state, self.learner.weights(state), memory, levels, after, None)
        memory, chosen = round_of(self.limits, memory, a, row.sign, row.weight, row.group)
        feedback, counts = chosen.reveal(before.weights), ONE
        if tally is not None:
            counts = counted(self.limits, row.sign)
            tally = tally.add(feedback.g, counts, self.allowed)
        table = before.table
        if table is not None:
            table = table.add(ops.where(ops.dot(before.weights, a) > 0.0, 1.0, 0.0), row.sign)
        state = self.learner.learn(before.state, row, a, feedback, counts)
        return Learned(state, self.learner.weights(state), memory, levels, after, tally, table)


def known(number: Scalar | None) -> Scalar:
    """The number of a group or a period; nan where there is none."""
    return nan if number is None else number


class Learned(NamedTuple):
    """What rows change: the state and the weights of the learner, what limits and levels remember, the scale, and what limits came to."""

    state: Any
    weights: Array
    memory: tuple[Any, ...]
    levels: Any
    scale: RunningScale | None
    tally: LossTally | None  # None without a limit on a loss
    table: Table | None = None  # what was predicted of two classes, where no level counts it


def round_of(
    limits: tuple[Limit[Any], ...], memories: tuple[Any, ...], a: Array, sign: Scalar, weight: Scalar, group: Scalar | None
) -> tuple[tuple[Any, ...], Round]:
    """What the limits remember after the row, or the rows, and the round that they make."""
    revealed = [limit.reveal(memory, a, sign, group) for limit, memory in zip(limits, memories, strict=True)]
    constraints = tuple(function for _, function in revealed) or (AffineFunction(0.0 * a, 0.0 * sign),)
    return tuple(memory for memory, _ in revealed), Round(LogisticLoss(a, sign, weight), constraints)
