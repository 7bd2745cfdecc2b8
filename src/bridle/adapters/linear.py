"""A linear classifier of two classes as the scikit-learn and river estimators share it: how it is made, and what is asked of it.

A row is a round. It is scored as the past sees it, and the levels that hold rates count whether that was an alarm. Then its features (after
a 1 for the intercept) and its class make a loss, its limits make constraints, and what learns the weights is fed what they are worth at the
weights that were played. Its weights are those of the learner without constants (`mixture`), or, where a policy or a radius is given, a
policy's decisions in a ball.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bridle import domains, ops, policies, records, validate
from bridle.adapters.averages import Averages, AverageState, averages
from bridle.adapters.losses import Limit, LossTally, allowances, bind_all, count, counted, no_losses
from bridle.adapters.mixture import Mixture, MixtureState, mixture
from bridle.adapters.reports import LimitReport, LossProof, loss_report
from bridle.adapters.rows import RowModel, padded
from bridle.adapters.scaling import RunningScale, Scale, SquashedScale
from bridle.adapters.thresholds import Seen, Table, Thresholds, decide_batch, thresholds
from bridle.core import Feedback, InputError, Policy, Round
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


# --- the model ----------------------------------------------------------------------------------------------------------------------------

N = TypeVar("N", float, Array)

POLICY, RADIUS = "anytime", 5.0
"""What a model with one of the two has for the other."""


class ModelSettings(NamedTuple):
    """What a linear model is made from, but for the number of its features: the plan of a `RowModel`.

    Without a policy, its parameters and a radius it is the learner without constants, on features that are scaled and squashed; with one of
    them it is a policy on a ball, on features as they are unless `scale` says otherwise.
    """

    classes: Sequence[object]
    constraints: Sequence[Any] | None
    policy: str | None = None
    parameters: Mapping[str, object] | None = None
    radius: float | None = None
    scale: bool | None = None
    priority: int = 0
    label: object = None
    alone: bool = True  # False for one of several models, of which the likeliest class is predicted

    @property
    def free(self) -> bool:
        """Whether nothing is set that a policy needs."""
        return self.policy is None and self.parameters is None and self.radius is None

    @property
    def side(self) -> float:
        """-1 where `label` is the first of the two classes: an alarm is a prediction of that one then."""
        if self.label is None:
            return 1.0
        if all(self.label != one for one in self.classes):
            raise validate.refused(f"label must be one of the classes {validate.show(list(self.classes))}", self.label)
        return 1.0 if self.label == self.classes[1] else -1.0

    def made(self, features: int) -> tuple[Rules, Learned]:
        """The rules, and what is held before the first row."""
        rates, losses, first = kinds_of(self.constraints, self.priority)
        bound = bind_all(losses, self.classes)
        levels = thresholds(rates, first, self.classes[:: int(self.side)]) if rates else None
        memory = tuple(limit.start(features + 1) for limit in bound)
        learner: PolicyLearner | FreeLearner
        if self.free:
            learner = FreeLearner(mixture(features), averages(count(bound)) if bound else None)
            state: Any = FreeState(learner.mixture.init(), None if learner.averages is None else learner.averages.start())
        else:
            learner = self._policy(features, count(bound))
            state = learner.record.init(np.zeros(features + 1))
        begun = None if levels is None else levels.start()
        tally = no_losses(count(bound)) if bound else None
        weights = learner.weights(state)
        table = Table(0.0, 0.0, 0.0, 0.0) if bound and levels is None and self.alone else None
        held = Learned(state, weights, memory, begun, self._scale(features), tally, table)
        return Rules(learner, bound, levels, allowances(bound), self.side), held

    def _scale(self, features: int) -> RunningScale | None:
        if self.free:
            return None if self.scale is False else SquashedScale(*Scale(features))
        return Scale(features) if self.scale else None

    def _policy(self, features: int, constraints: int) -> PolicyLearner:
        name, parameters = self.policy or POLICY, dict(self.parameters or {})
        if any(parameter.name == "constraints" for parameter in policies.parameters(name)):
            parameters.setdefault("constraints", constraints)
        domain = domains.Ball(features + 1, RADIUS if self.radius is None else validate.positive("radius", self.radius))
        policy = policies.policy(name, domain, **parameters)
        if policy.runs is not None:
            raise InputError(f"parameters stand for {policy.runs} runs; an estimator is one: give every parameter as a number")
        return PolicyLearner(policy.record)

    def widened(self, rules: Rules, held: Learned, wide: Rules, start: Learned) -> Learned:
        """What is held, with room for more features.

        A policy on a ball around 0 that treats all directions alike would be where it is now, with 0 in the new coordinates.
        """
        if isinstance(wide.learner, FreeLearner):
            state = FreeState(
                wide.learner.mixture.grown(held.state.mixture), records.transform(padded, held.state.averages, start.state.averages)
            )
            rest = records.transform(padded, held[2:], start[2:])
            return Learned(state, wide.learner.weights(state), *rest)
        for (name, old), new in zip(records.leaves(rules.learner).items(), records.leaves(wide.learner).values(), strict=True):
            if np.any(new) if np.shape(old) != np.shape(new) else np.any(np.asarray(old) != np.asarray(new)):
                raise InputError(
                    f"policy {self.policy or POLICY} cannot take on features that were not in the first row "
                    f"({name.removeprefix('record.')} depends on them)"
                )
        return records.transform(padded, held, start)


class LinearModel(RowModel[Learned, LabelledRow]):
    """A linear classifier of two classes, and what it has learned."""

    plan: ModelSettings
    rules: Rules

    @property
    def thresholds(self) -> Thresholds:
        """The levels of a model that has limits on rates."""
        assert self.rules.thresholds is not None
        return self.rules.thresholds

    def decide(self, scores: Array, groups: Array, periods: Array) -> list[Seen]:
        """Count rows that are all decided by the same level, before their classes are known."""
        held = self.held
        levels, seen, _ = decide_batch(self.thresholds, held.levels, scores, groups, periods)
        self._held = held._replace(levels=levels)
        return seen

    def reports(self) -> list[tuple[int, LimitReport]]:
        """What became of every limit, with its place among those that were given."""
        given, levels, held = listed(self.plan.constraints), self.rules.thresholds, self.held
        reports: list[tuple[int, LimitReport]] = []
        rates = [i for i, limit in enumerate(given) if hasattr(limit, "levels")]
        if levels is not None:
            reports = list(zip([rates[int(i)] for i in sorted(levels.places)], levels.report(held.levels), strict=True))
        first, proof, table = 0, self._proof(), held.table if levels is None else held.levels.table
        for place, limit in enumerate(given):
            if place not in rates:
                assert held.tally is not None  # there is one where there is a limit
                reports.append((place, loss_report(limit, first, held.tally, proof, table)))
                first += count([limit])
        return reports

    def _proof(self) -> LossProof:
        """What is known of the limits on losses."""
        learner, state = self.rules.learner, self.held.state
        if isinstance(learner, FreeLearner):
            if learner.averages is None:
                return LossProof()
            return LossProof(state.averages.multipliers.bound, learner.averages.price(state.averages))
        name = self.plan.policy or POLICY
        return LossProof(why=f"policy {name} works on every round by itself; its own theorem is about sums of violations")

    def drop(self, seen: Seen, group: float | None) -> None:
        """Count a row no longer whose class will never be known."""
        held = self.held
        self._held = held._replace(levels=self.thresholds.drop(held.levels, seen, known(group)))


def kinds_of(constraints: object, priority: int = 0) -> tuple[list[Any], list[Any], int]:
    """The limits on rates and the others, and the place of the one with priority among the first."""
    given = listed(constraints)
    rates = [i for i, limit in enumerate(given) if hasattr(limit, "levels")]
    first = validate.whole("priority", priority, 0)
    if first and first not in rates:
        raise validate.refused("priority must be the place of a limit on a rate among the constraints, counted from 0", priority)
    return [given[i] for i in rates], [limit for limit in given if not hasattr(limit, "levels")], rates.index(first) if first else 0


def listed(constraints: object) -> list[Any]:
    """The limits that an estimator was given, one or a list of them."""
    if constraints is None:
        return []
    return list(constraints) if type(constraints) in (list, tuple) else [constraints]  # type: ignore[call-overload]


def probability(score: N) -> N:
    """1 / (1 + e^-score), to full relative precision however small."""
    return ops.exp(-ops.softplus(-score))


def class_weights(class_weight: object, classes: Sequence[object]) -> tuple[float, ...]:
    """The weights of the classes' losses in the cost, 1 where none is given."""
    weights = dict(class_weight) if isinstance(class_weight, Mapping) else {}
    if class_weight is not None and not isinstance(class_weight, Mapping):
        raise validate.refused("class_weight must be a dict of class and weight", class_weight)
    for label in weights:
        if not any(label == one for one in classes):
            raise validate.unknown("class in class_weight", label, [str(one) for one in classes])
    return tuple(validate.nonnegative(f"class_weight[{label!r}]", weights.get(label, 1.0)) for label in classes)
