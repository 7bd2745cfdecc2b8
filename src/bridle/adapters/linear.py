"""A linear classifier of two classes as the scikit-learn and river estimators share it: how it is made, and what is asked of it.

Its weights are those of the learner without constants (`mixture`), or, where a policy or a radius is given, a policy's decisions in a ball.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bridle import domains, engines, ops, policies, records, validate
from bridle.adapters import limits
from bridle.adapters.learning import FreeLearner, FreeState, LabelledRow, Learned, PolicyLearner, Rules, round_of
from bridle.adapters.limits import Limit
from bridle.adapters.mixture import mixture
from bridle.adapters.row_model import RowModel, demand_sizes, padded
from bridle.adapters.scaling import RunningScale, Scale, SquashedScale, scaled_along
from bridle.core import InputError
from bridle.engines import ENGINES
from bridle.engines.round import Collect, SingleRun, block_length
from bridle.ops import Array
from bridle.problems.recorded import Dealt

N = TypeVar("N", float, Array)

POLICY, RADIUS = "anytime", 5.0
"""What a model with one of the two has for the other."""


class ModelSettings(NamedTuple):
    """What a linear model is made from, but for the number of its features: the plan of a `RowModel`.

    Without a policy, its parameters and a radius it is the learner without constants, on features that are scaled and squashed; with one of
    them it is a policy on a ball, on features as they are unless `scale` says otherwise.
    """

    classes: Sequence[object]
    constraints: Sequence[Limit[Any]] | None
    policy: str | None = None
    parameters: Mapping[str, object] | None = None
    radius: float | None = None
    scale: bool | None = None

    @property
    def free(self) -> bool:
        """Whether nothing is set that a policy needs."""
        return self.policy is None and self.parameters is None and self.radius is None

    def made(self, features: int) -> tuple[Rules, Learned]:
        """The rules, and what is held before the first row."""
        bound, thresholds = limits.bind_all(self.constraints, self.classes), None
        memory = tuple(limit.start(features + 1) for limit in bound)
        learner: PolicyLearner | FreeLearner
        if self.free:
            learner = FreeLearner(mixture(features), None)
            state: object = FreeState(learner.mixture.init(), None)
        else:
            domain, learner = self._policy(features, limits.count(bound))
            state = learner.record.init(domain.center())
        rules = Rules(learner, bound, thresholds)
        levels = None if thresholds is None else thresholds.start()
        return rules, Learned(state, learner.weights(state), memory, levels, self._scale(features))

    def _scale(self, features: int) -> RunningScale | None:
        if self.free:
            return None if self.scale is False else SquashedScale(*Scale(features))
        return Scale(features) if self.scale else None

    def _policy(self, features: int, constraints: int) -> tuple[domains.Ball, PolicyLearner]:
        name, parameters = self.policy or POLICY, dict(self.parameters or {})
        if any(parameter.name == "constraints" for parameter in policies.parameters(name)):
            parameters.setdefault("constraints", constraints)
        domain = domains.Ball(features + 1, RADIUS if self.radius is None else validate.positive("radius", self.radius))
        policy = policies.policy(name, domain, **parameters)
        if policy.runs is not None:
            raise InputError(f"parameters stand for {policy.runs} runs; an estimator is one: give every parameter as a number")
        return domain, PolicyLearner(policy.record)

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

    def learn(self, row: Array, sign: float, weight: float = 1.0, group: float | None = None) -> None:
        """One round: one row of features, +1 or -1, the weight of its loss, and its group where a limit asks for one."""
        self.take(LabelledRow(row, sign, weight, group))

    def learn_many(self, rows: Array, signs: Array, weights: Array, groups: Array | None, engine: str = "python") -> None:
        """As many rounds as there are rows, one after the other, on this engine."""
        if isinstance(self.rules.learner, FreeLearner) or self.rules.thresholds is not None:
            self.take_many(LabelledRow(rows, signs, weights, groups), engine)
            return
        # A policy needs nothing but rounds, and these can be made for all rows at once.
        validate.one_of("engine", engine, ENGINES)
        demand_sizes(rows)
        held, record = self.held, self.rules.learner.record
        scaled, scale = (rows, None) if held.scale is None else scaled_along(held.scale, rows)
        memory, table = round_of(self.rules.limits, held.memory, np.column_stack((np.ones(len(rows)), scaled)), signs, weights, groups)
        advance, state, length = engines.load(engine).advance, held.state, block_length(rows.shape[1] + 1)
        for start in range(0, len(rows), length):
            part = records.cut(table, start, start + length)
            state, _, _ = advance(SingleRun(record, Dealt(), state, (), part), min(length, len(rows) - start), Collect.VALUES)
        self._held = Learned(state, record.decide(state), memory, None, scale)


class LinearEstimator:
    """The settings that the scikit-learn and the river estimator share, under the names of their constructors' parameters."""

    def __init__(
        self,
        constraints: Sequence[Limit[Any]] | None,
        policy: str | None,
        parameters: Mapping[str, object] | None,
        radius: float | None,
        scale: bool | None,
        class_weight: Mapping[Any, float] | None,
        engine: str,
    ) -> None:
        self.constraints = constraints
        self.policy = policy
        self.parameters = parameters
        self.radius = radius
        self.scale = scale
        self.class_weight = class_weight
        self.engine = engine

    def _make_model(self, features: int, classes: Sequence[object], engine: str = "python") -> LinearModel:
        scale = None if self.scale is None else bool(self.scale)
        return LinearModel(features, ModelSettings(classes, self.constraints, self.policy, self.parameters, self.radius, scale), engine)


def probability(score: N) -> N:
    """1 / (1 + e^-score), to full relative precision however small."""
    return ops.exp(-ops.softplus(-score))


def class_weights(class_weight: object, classes: Sequence[object]) -> tuple[float, ...]:
    """The weights of the classes' losses in the cost, 1 where none is given."""
    weights = dict(class_weight) if isinstance(class_weight, Mapping) else {}
    if class_weight is not None and not isinstance(class_weight, Mapping):
        raise InputError(f"class_weight must be a dict of class and weight, not {validate.show(class_weight)}")
    for label in weights:
        if not any(label == one for one in classes):
            raise validate.unknown("class in class_weight", label, [str(one) for one in classes])
    return tuple(validate.nonnegative(f"class_weight[{label!r}]", weights.get(label, 1.0)) for label in classes)
