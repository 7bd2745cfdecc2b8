"""A linear classifier whose weights are a policy's decisions: what the scikit-learn and river estimators share.

A row is a round: its features (after a 1 for the intercept) and its class make a logistic loss, its limits make constraints; the policy is
fed what they are worth at the weights that it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bridle import domains, engines, ops, policies, records, validate
from bridle.adapters import limits
from bridle.adapters.scaling import RunningScale, Scale, scaled_along
from bridle.core import InputError, Round
from bridle.engines import ENGINES
from bridle.engines.round import Collect, block_length, check_compiled
from bridle.functions import AffineFunction, LogisticLoss
from bridle.problems.recorded import Dealt
from bridle.session.compiled_round import Memory
from bridle.session.feedback import LARGEST

ONE = np.ones(1)

ENGINES_OF_ROWS = ("python", "numba")
"""What can learn from one row at a time."""


class Rules(NamedTuple):
    """What does not change: the policy and the limits."""

    record: Any
    limits: tuple[Any, ...]


class Learned(NamedTuple):
    """What rows change: the policy's state and its decision, what the limits remember, and the scale of the features."""

    state: Any
    weights: ops.Array
    memory: tuple[Any, ...]
    scale: RunningScale | None


class Row(NamedTuple):
    """One row: its features, +1 or -1 for its class, the weight of its loss, and its group where it has one."""

    features: ops.Array
    sign: ops.Array
    weight: ops.Array
    group: Any


def learn(rules: Rules, before: Learned, row: Row) -> Learned:
    """One round: what is known after a row that is learned as the past sees it."""
    scale = before.scale
    features = row.features if scale is None else scale.apply(row.features)
    memory, chosen = round_of(rules.limits, before.memory, ops.join([ONE, features], -1), row.sign, row.weight, row.group)
    state = rules.record.update(before.state, chosen.reveal(before.weights))
    return Learned(state, rules.record.decide(state), memory, None if scale is None else scale.learn(row.features))


def round_of(limits: Any, memories: Any, a: ops.Array, sign: Any, weight: Any, group: Any) -> tuple[tuple[Any, ...], Round]:
    """What the limits remember after the row, or the rows, and the round that they make."""
    known = [limit.reveal(memory, a, sign, group) for limit, memory in zip(limits, memories, strict=True)]
    constraints = tuple(function for _, function in known) or (AffineFunction(0.0 * a, 0.0 * sign),)
    return tuple(memory for memory, _ in known), Round(LogisticLoss(a, sign, weight), constraints)


class LinearModel:
    """A policy over the weights, its state, and what limits and the scale of the features remember.

    With `scale` features are scaled by the mean and deviation of the rows learned before: a row is learned, and scored, as the past sees
    it, and its own numbers count from the next one on.
    """

    def __init__(
        self,
        features: int,
        classes: Any,
        constraints: Any,
        policy: str,
        parameters: Mapping[str, Any] | None,
        radius: float,
        scale: bool,
        engine: str = "python",
    ) -> None:
        if engine not in ENGINES_OF_ROWS:
            raise validate.unknown("engine", engine, ENGINES_OF_ROWS)
        self.limits = limits.bound(constraints, classes)
        self.made = classes, constraints, policy, parameters, radius, scale, engine
        given = dict(parameters or {})
        if any(known.name == "constraints" for known in policies.parameters(policy)):
            given.setdefault("constraints", limits.count(self.limits))
        dim = features + 1
        domain = domains.Ball(dim, validate.positive("radius", radius))
        self.policy = policies.policy(policy, domain, **given)
        if self.policy.runs is not None:
            raise InputError(f"parameters stand for {self.policy.runs} runs; an estimator is one: give every parameter as a number")
        self.record, self.engine, self.features = self.policy.record, engine, features
        if engine == "numba":
            check_compiled(self.record)
            engines.load(engine)  # if it is missing, now is the time to say so
        state = self.record.init(domain.center())
        memory = tuple(limit.start(dim) for limit in self.limits)
        self._held = self._blank = Learned(state, self.record.decide(state), memory, Scale(features) if scale else None)
        self._fast: _Fast | None = None

    @property
    def held(self) -> Learned:
        """What was learned; compiled rows leave it in their memory until somebody asks."""
        if self._fast is not None and self._fast.ahead:
            self._held = self._fast.settle()
        return self._held

    @property
    def blank(self) -> bool:
        """Whether nothing was learned so far."""
        return self.held is self._blank

    @property
    def weights(self) -> np.ndarray:
        """The decision: the intercept, then a weight for every feature."""
        return np.asarray(self._held.weights if self._fast is None or not self._fast.ahead else self._fast.weights)

    def scores(self, row: np.ndarray) -> Any:
        """The log-odds of the second class, of one row or of many."""
        scale = self._held.scale if self._fast is None or not self._fast.ahead else self._fast.scale()
        weights = self.weights
        return (row if scale is None else scale.apply(row)) @ weights[1:] + weights[0]

    def learn(self, row: np.ndarray, sign: float, weight: float = 1.0, group: Any = None) -> None:
        """One round: one row of features, +1 or -1, the weight of its loss, and its group where a limit asks for one."""
        if self.engine == "numba" and self.features:
            if self._fast is None:
                self._fast = _Fast(Rules(self.record, self.limits), self._held, Row(row, sign, weight, None if group is None else 0.0))
            if self._fast.learn(self._held, row, sign, weight, group):
                return
        self._held = learn(Rules(self.record, self.limits), self.held, Row(row, sign, weight, group))

    def learn_many(self, rows: np.ndarray, signs: np.ndarray, weights: np.ndarray, groups: Any, engine: str = "python") -> None:
        """As many rounds as there are rows, one after the other, on this engine."""
        if engine not in ENGINES:
            raise validate.unknown("engine", engine, ENGINES)
        if rows.size and np.abs(rows).max() > LARGEST**0.5:
            raise InputError(f"X must be at most {LARGEST**0.5:g} in size, not {np.abs(rows).max():.3g}")
        held = self.held
        scaled, scale = (rows, None) if held.scale is None else scaled_along(held.scale, rows)
        memory, table = round_of(self.limits, held.memory, np.column_stack((np.ones(len(rows)), scaled)), signs, weights, groups)
        advance, state, length = engines.load(engine).advance, held.state, block_length(rows.shape[1] + 1)
        for start in range(0, len(rows), length):
            part = records.cut(table, start, start + length)
            state, _, _ = advance(self.record, Dealt(), state, (), part, min(length, len(rows) - start), Collect.VALUES)
        self._held = Learned(state, self.record.decide(state), memory, scale)

    def grow(self, features: int) -> None:
        """Make room for more features, which count as 0 in every row so far.

        A policy on a ball around 0 that treats all directions alike would be where it is now, with 0 in the new coordinates.
        """
        wide = LinearModel(features, *self.made)
        for (name, old), new in zip(records.leaves(self.record).items(), records.leaves(wide.record).values(), strict=True):
            if np.shape(old) != np.shape(new) and np.any(new):
                raise InputError(
                    f"policy {self.policy.name} cannot take on features that were not in the first row ({name} depends on them)"
                )
        wide._held = records.transform(_padded, self.held, wide._held)
        vars(self).update(vars(wide))

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: what was compiled stays behind."""
        return {**vars(self), "_held": self.held, "_fast": None}


class _Fast:
    """`learn` compiled, on a memory of its own; while `ahead` is true, that is what has been learned."""

    def __init__(self, rules: Rules, before: Learned, row: Row) -> None:
        rules = records.transform(lambda leaf: None if isinstance(leaf, str) else leaf, rules)  # labels may have names
        self.memory = memory = Memory(learn, rules, before, row, LARGEST**0.5)
        self.build, self.before, self.ahead = records.unflatten(before), before, False
        memory.write(memory.begin, before)
        view = memory.views
        self.features, self.weights = view["given.features"], view["states.weights"]
        self.numbers = [view[f"given.{name}"] for name in ("sign", "weight", "group") if f"given.{name}" in view]
        self.parts = None if before.scale is None else [view[f"states.scale.{name}"] for name in RunningScale._fields]

    def learn(self, before: Learned, row: np.ndarray, sign: float, weight: float, group: Any) -> bool:
        """Learn from a row; where that is left to Python, nothing has changed."""
        given = [sign, weight] if group is None else [sign, weight, group]
        if row.shape != self.features.shape or len(given) != len(self.numbers):
            return False
        if not self.ahead and before is not self.before:
            self.memory.write(self.memory.begin, before)
        self.features[...] = row
        for place, number in zip(self.numbers, given, strict=True):
            place[...] = number
        if self.memory.run(self.memory.array):
            return False
        self.ahead = True
        return True

    def scale(self) -> RunningScale | None:
        return None if self.parts is None else RunningScale(*(part if part.ndim else float(part) for part in self.parts))

    def settle(self) -> Learned:
        """What has been learned, as a record."""
        self.before, self.ahead = self.memory.record(*self.build), False
        return self.before


def _padded(leaf: Any, room: Any) -> Any:
    if np.shape(leaf) == np.shape(room):
        return leaf
    wide = np.zeros(np.shape(room))
    wide[tuple(slice(length) for length in np.shape(leaf))] = leaf
    return wide


def probability(score: Any) -> Any:
    """1 / (1 + e^-score), to full relative precision however small."""
    return ops.exp(-ops.softplus(-score))


def class_weights(given: Mapping[Any, Any] | None, classes: Any) -> tuple[float, float]:
    """The weights of the two classes' losses in the cost, 1 where none is given."""
    known = dict(given) if isinstance(given, Mapping) else {}
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"class_weight must be a dict of class and weight, not {validate.show(given)}")
    for label in known:
        if not any(label == one for one in classes):
            raise validate.unknown("class in class_weight", label, [str(one) for one in classes])
    first, second = (validate.nonnegative(f"class_weight[{label!r}]", known.get(label, 1.0)) for label in classes)
    return first, second
