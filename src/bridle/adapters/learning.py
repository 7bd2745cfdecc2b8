"""What a row teaches a linear classifier, as records: the rules that do not change, what is learned, and the step from row to row.

A row is a round. It is scored as the past sees it, and the levels that hold rates count whether that was an alarm. Then its features (after
a 1 for the intercept) and its class make a loss, its limits make constraints, and what learns the weights is fed what they are worth at the
weights that were played.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from bridle import ops, records

Averages = Seen = Thresholds = Any
from bridle.adapters.limits import Limit
from bridle.adapters.mixture import Mixture, MixtureState
from bridle.adapters.scaling import RunningScale
from bridle.core import Feedback, InputError, Policy, Round
from bridle.functions import AffineFunction, LogisticLoss
from bridle.ops import Array, Scalar

ONE = np.ones(1)
"""The feature of the intercept."""

R = TypeVar("R")


class LabelledRow(NamedTuple):
    """One row: its features, +1 or -1 for its class, the weight of its loss, its group where it has one, and how it was seen before.

    `seen` is what the levels made of a row that was asked about before its class was known; None: it is scored now.
    """

    features: Array
    sign: Scalar
    weight: Scalar
    group: Scalar | None = None
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
    averages: Any  # as `Averages.start` gives it; None without a limit


class FreeLearner(NamedTuple):
    """Weights that are a mixture of experts, with nothing to be set; limits are held on average, at a price."""

    mixture: Mixture
    averages: Averages | None

    def weights(self, state: FreeState) -> Array:
        return self.mixture.weights(state.mixture)

    def learn(self, state: FreeState, row: LabelledRow, a: Array, feedback: Feedback, counts: Array) -> FreeState:
        averages, pull = state.averages, None
        if self.averages is not None:
            averages, pull = self.averages.weigh(averages, feedback.g, feedback.dg, feedback.df, counts)
        return FreeState(self.mixture.learn(state.mixture, a, row.sign, row.weight, pull), averages)


class Rules(NamedTuple):
    """What does not change: what learns the weights, the limits that make constraints, and the levels that hold rates."""

    learner: PolicyLearner | FreeLearner
    limits: tuple[Limit[Any], ...]
    thresholds: Thresholds | None

    def learn(self, before: Learned, row: LabelledRow) -> Learned:
        """One round: what is learned from a row, scaled by the rows before it."""
        scale, levels = before.scale, before.levels
        a = ops.join([ONE, row.features if scale is None else scale.apply(row.features)], -1)
        if self.thresholds is not None:
            seen = row.seen
            if seen is None:
                levels, seen = self.thresholds.look(levels, ops.dot(before.weights, a), row.group)
            levels = self.thresholds.count(levels, seen, row.sign, row.group)
        memory, chosen = round_of(self.limits, before.memory, a, row.sign, row.weight, row.group)
        state = self.learner.learn(before.state, row, a, chosen.reveal(before.weights), ONE)
        return Learned(state, self.learner.weights(state), memory, levels, None if scale is None else scale.learn(row.features))


class Learned(NamedTuple):
    """What rows change: the state and the weights of the learner, what limits and levels remember, and the scale of the features."""

    state: Any
    weights: Array
    memory: tuple[Any, ...]
    levels: Any
    scale: RunningScale | None


def round_of(
    limits: tuple[Limit[Any], ...], memories: tuple[Any, ...], a: Array, sign: Scalar, weight: Scalar, group: Scalar | None
) -> tuple[tuple[Any, ...], Round]:
    """What the limits remember after the row, or the rows, and the round that they make."""
    revealed = [limit.reveal(memory, a, sign, group) for limit, memory in zip(limits, memories, strict=True)]
    constraints = tuple(function for _, function in revealed) or (AffineFunction(0.0 * a, 0.0 * sign),)
    return tuple(memory for memory, _ in revealed), Round(LogisticLoss(a, sign, weight), constraints)
