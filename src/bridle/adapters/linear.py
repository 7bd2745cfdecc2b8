"""A linear classifier whose weights are a policy's decisions: what the scikit-learn and river estimators share.

A row is a round: its features (after a 1 for the intercept) and its class make a logistic loss, its limits make constraints; the policy is
fed what they are worth at the weights that it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bridle import domains, engines, ops, policies, records, validate
from bridle.adapters import limits
from bridle.adapters.limits import Limit
from bridle.adapters.scaling import RunningScale, Scale, scaled_along
from bridle.core import InputError, Policy, Round
from bridle.engines import ENGINES
from bridle.engines.mirror import Mirror, require_compiler
from bridle.engines.round import Collect, SingleRun, block_length, check_compiled
from bridle.functions import AffineFunction, LogisticLoss
from bridle.ops import Array, Scalar
from bridle.problems.recorded import Dealt
from bridle.session.feedback import LARGEST

ONE = np.ones(1)
"""The feature of the intercept."""

N = TypeVar("N", float, Array)

ENGINES_OF_ROWS = ("python", "numba")
"""What can learn from one row at a time."""


class Rules(NamedTuple):
    """What does not change: the policy and the limits."""

    record: Policy[object]
    limits: tuple[Limit[object], ...]


class Learned(NamedTuple):
    """What rows change: the policy's state and its decision, what the limits remember, and the scale of the features."""

    state: object
    weights: Array
    memory: tuple[object, ...]
    scale: RunningScale | None


class LabelledRow(NamedTuple):
    """One row: its features, +1 or -1 for its class, the weight of its loss, and its group where it has one."""

    features: Array
    sign: Scalar
    weight: Scalar
    group: Scalar | None


def learn(rules: Rules, before: Learned, row: LabelledRow) -> Learned:
    """One round: what is learned from a row, scaled by the rows before it."""
    scale = before.scale
    features = row.features if scale is None else scale.apply(row.features)
    memory, chosen = round_of(rules.limits, before.memory, ops.join([ONE, features], -1), row.sign, row.weight, row.group)
    state = rules.record.update(before.state, chosen.reveal(before.weights))
    return Learned(state, rules.record.decide(state), memory, None if scale is None else scale.learn(row.features))


def round_of(
    limits: tuple[Limit[object], ...], memories: tuple[object, ...], a: Array, sign: Scalar, weight: Scalar, group: Scalar | None
) -> tuple[tuple[object, ...], Round]:
    """What the limits remember after the row, or the rows, and the round that they make."""
    revealed = [limit.reveal(memory, a, sign, group) for limit, memory in zip(limits, memories, strict=True)]
    constraints = tuple(function for _, function in revealed) or (AffineFunction(0.0 * a, 0.0 * sign),)
    return tuple(memory for memory, _ in revealed), Round(LogisticLoss(a, sign, weight), constraints)


class ModelSettings(NamedTuple):
    """What a linear model is made from, but for the number of its features."""

    classes: Sequence[object]
    constraints: Sequence[Limit[Any]] | None
    policy: str = "anytime"
    parameters: Mapping[str, object] | None = None
    radius: float = 5.0
    scale: bool = False
    engine: str = "python"


class LinearEstimator:
    """The settings that the scikit-learn and the river estimator share, under the names of their constructors' parameters."""

    def __init__(
        self,
        constraints: Sequence[Limit[Any]] | None,
        policy: str,
        parameters: Mapping[str, object] | None,
        radius: float,
        scale: bool,
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
        settings = ModelSettings(classes, self.constraints, self.policy, self.parameters, self.radius, bool(self.scale), engine)
        return LinearModel(features, settings)


class LinearModel:
    """A policy over the weights, its state, and what limits and the scale of the features remember.

    With `scale` features are scaled by the mean and deviation of the rows learned before: a row is learned, and scored, as the past sees
    it, and its own numbers count from the next one on.
    """

    def __init__(self, features: int, settings: ModelSettings) -> None:
        engine = settings.engine
        validate.one_of("engine", engine, ENGINES_OF_ROWS)
        self.limits = limits.bind_all(settings.constraints, settings.classes)
        self.settings = settings
        parameters = dict(settings.parameters or {})
        if any(parameter.name == "constraints" for parameter in policies.parameters(settings.policy)):
            parameters.setdefault("constraints", limits.count(self.limits))
        dim = features + 1
        domain = domains.Ball(dim, validate.positive("radius", settings.radius))
        self.policy = policies.policy(settings.policy, domain, **parameters)
        if self.policy.runs is not None:
            raise InputError(f"parameters stand for {self.policy.runs} runs; an estimator is one: give every parameter as a number")
        self.record, self.engine, self.features = self.policy.record, engine, features
        if engine == "numba":
            check_compiled(self.record)
            require_compiler()  # if it is missing, now is the time to say so
        state = self.record.init(domain.center())
        memory = tuple(limit.start(dim) for limit in self.limits)
        self._held = self._blank = Learned(state, self.record.decide(state), memory, Scale(features) if settings.scale else None)
        self._compiled: _CompiledRows | None = None

    @property
    def held(self) -> Learned:
        """What was learned; compiled rows leave it in their memory until somebody asks."""
        if self._compiled is not None and self._compiled.ahead:
            self._held = self._compiled.settle()
        return self._held

    @property
    def blank(self) -> bool:
        """Whether nothing was learned so far."""
        return self.held is self._blank

    @property
    def weights(self) -> Array:
        """The decision: the intercept, then a weight for every feature."""
        return np.asarray(self._held.weights if self._compiled is None or not self._compiled.ahead else self._compiled.weights)

    def scores(self, row: Array) -> Scalar:
        """The log-odds of the second class, of one row or of many."""
        scale = self._held.scale if self._compiled is None or not self._compiled.ahead else self._compiled.scale()
        weights = self.weights
        with np.errstate(all="ignore"):
            scores: Scalar = (row if scale is None else scale.apply(row)) @ weights[1:] + weights[0]
        return scores

    def learn(self, row: Array, sign: float, weight: float = 1.0, group: float | None = None) -> None:
        """One round: one row of features, +1 or -1, the weight of its loss, and its group where a limit asks for one."""
        if self.engine == "numba" and self.features:
            if self._compiled is None:
                like = LabelledRow(row, sign, weight, None if group is None else 0.0)
                self._compiled = _CompiledRows(Rules(self.record, self.limits), self._held, like)
            if self._compiled.learn(self._held, row, sign, weight, group):
                return
        rules, given = Rules(self.record, self.limits), LabelledRow(row, sign, weight, group)
        try:
            self._held = learn(rules, self.held, given)
        except FloatingPointError:  # the caller has told NumPy to raise; nothing has changed so far
            with np.errstate(all="ignore"):
                self._held = learn(rules, self.held, given)

    def learn_many(self, rows: Array, signs: Array, weights: Array, groups: Array | None, engine: str = "python") -> None:
        """As many rounds as there are rows, one after the other, on this engine."""
        validate.one_of("engine", engine, ENGINES)
        if rows.size and np.abs(rows).max() > LARGEST**0.5:
            raise InputError(f"X must be at most {LARGEST**0.5:g} in size, not {np.abs(rows).max():.3g}")
        held = self.held
        scaled, scale = (rows, None) if held.scale is None else scaled_along(held.scale, rows)
        memory, table = round_of(self.limits, held.memory, np.column_stack((np.ones(len(rows)), scaled)), signs, weights, groups)
        advance, state, length = engines.load(engine).advance, held.state, block_length(rows.shape[1] + 1)
        for start in range(0, len(rows), length):
            part = records.cut(table, start, start + length)
            state, _, _ = advance(SingleRun(self.record, Dealt(), state, (), part), min(length, len(rows) - start), Collect.VALUES)
        self._held = Learned(state, self.record.decide(state), memory, scale)

    def grow(self, features: int) -> None:
        """Make room for more features, which count as 0 in every row so far.

        A policy on a ball around 0 that treats all directions alike would be where it is now, with 0 in the new coordinates.
        """
        wide = LinearModel(features, self.settings)
        for (name, old), new in zip(records.leaves(self.record).items(), records.leaves(wide.record).values(), strict=True):
            if np.any(new) if np.shape(old) != np.shape(new) else np.any(np.asarray(old) != np.asarray(new)):
                raise InputError(
                    f"policy {self.policy.name} cannot take on features that were not in the first row ({name} depends on them)"
                )
        wide._held = records.transform(_padded, self.held, wide._held)
        vars(self).update(vars(wide))

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: what was compiled stays behind."""
        return {**vars(self), "_held": self.held, "_compiled": None}


class _CompiledRows(Mirror[Learned]):
    """`learn` in compiled code, ahead of what the model holds."""

    def __init__(self, rules: Rules, before: Learned, row: LabelledRow) -> None:
        rules = records.transform(lambda leaf: None if isinstance(leaf, str) else leaf, rules)  # labels may have names
        super().__init__(learn, rules, before, row, before, LARGEST**0.5)
        self.write(before)
        self.features, self.weights = self.views["given.features"], self.views["states.weights"]
        self._places = [self.views[f"given.{name}"] for name in ("sign", "weight", "group") if f"given.{name}" in self.views]
        self._scale = None if before.scale is None else [self.views[f"states.scale.{name}"] for name in RunningScale._fields]

    def learn(self, before: Learned, row: Array, sign: float, weight: float, group: float | None) -> bool:
        """Learn from a row; where that is left to Python, nothing has changed."""
        numbers = [sign, weight] if group is None else [sign, weight, group]
        if row.shape != self.features.shape or len(numbers) != len(self._places):
            return False
        if not self.ahead and before is not self.equal_to:
            self.write(before)
        self.features[...] = row
        for place, number in zip(self._places, numbers, strict=True):
            place[...] = number
        return self.run()

    def scale(self) -> RunningScale | None:
        """The scale of the features as the memory has it."""
        if self._scale is None:
            return None
        rows, *rest = self._scale
        return RunningScale(float(rows), *rest)


def _padded(leaf: Scalar, room: Scalar) -> Scalar:
    if np.shape(leaf) == np.shape(room):
        return leaf
    wide = np.zeros(np.shape(room))
    wide[tuple(slice(length) for length in np.shape(leaf))] = leaf
    return wide


def probability(score: N) -> N:
    """1 / (1 + e^-score), to full relative precision however small."""
    return ops.exp(-ops.softplus(-score))


def class_weights(class_weight: object, classes: Sequence[object]) -> tuple[float, float]:
    """The weights of the two classes' losses in the cost, 1 where none is given."""
    weights = dict(class_weight) if isinstance(class_weight, Mapping) else {}
    if class_weight is not None and not isinstance(class_weight, Mapping):
        raise InputError(f"class_weight must be a dict of class and weight, not {validate.show(class_weight)}")
    for label in weights:
        if not any(label == one for one in classes):
            raise validate.unknown("class in class_weight", label, [str(one) for one in classes])
    first, second = (validate.nonnegative(f"class_weight[{label!r}]", weights.get(label, 1.0)) for label in classes)
    return first, second
