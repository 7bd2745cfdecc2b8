"""A linear classifier whose weights are a policy's decisions: what the scikit-learn and river estimators share.

A row is a round: its features (after a 1 for the intercept) and its class make a logistic loss, its limits make constraints; the policy is
fed what they are worth at the weights that it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bridle import domains, ops, policies, records, validate
from bridle.adapters import limits
from bridle.adversaries import block_length
from bridle.adversaries.recorded import Dealt
from bridle.core import InputError, Round
from bridle.functions import AffineFunction, LogisticLoss
from bridle.intake import LARGEST
from bridle.scaling import RunningScale, Scale, scaled_along
from bridle.turns import ENGINES, load_engine


class LinearModel:
    """A policy over the weights, its state, and what limits and the scale of the features remember.

    With `scale` features are scaled by the mean and deviation of the rows learned before: a row is learned, and scored, as the past sees
    it, and its own numbers count from the next one on.
    """

    def __init__(
        self, features: int, classes: Any, constraints: Any, policy: str, parameters: Mapping[str, Any] | None, radius: float, scale: bool
    ) -> None:
        self.limits = limits.bound(constraints, classes)
        self.made = classes, constraints, policy, parameters, radius, scale
        given = dict(parameters or {})
        if any(known.name == "constraints" for known in policies.parameters(policy)):
            given.setdefault("constraints", limits.count(self.limits))
        dim = features + 1
        domain = domains.Ball(dim, validate.positive("radius", radius))
        self.policy = policies.policy(policy, domain, **given)
        if self.policy.runs is not None:
            raise InputError(f"parameters stand for {self.policy.runs} runs; an estimator is one: give every parameter as a number")
        self.record = self.policy.record
        self.state = self.record.init(domain.center())
        self.memory = tuple(limit.start(dim) for limit in self.limits)
        self.scale: RunningScale | None = Scale(features) if scale else None

    @property
    def features(self) -> int:
        """How many features there is room for."""
        return int(self.weights.shape[-1]) - 1

    @property
    def weights(self) -> np.ndarray:
        """The decision: the intercept, then a weight for every feature."""
        return np.asarray(self.record.decide(self.state))

    def scores(self, row: np.ndarray) -> Any:
        """The log-odds of the second class, of one row or of many."""
        scaled = row if self.scale is None else self.scale.apply(row)
        weights = self.weights
        return scaled @ weights[1:] + weights[0]

    def learn(self, row: np.ndarray, sign: float, weight: float = 1.0, group: Any = None) -> None:
        """One round: one row of features, +1 or -1, the weight of its loss, and its group where a limit asks for one."""
        scaled = row if self.scale is None else self.scale.apply(row)
        memory, chosen = self._round(np.concatenate((ONE, scaled)), sign, weight, group)
        feedback = chosen.reveal(self.record.decide(self.state))
        self.state, self.memory = self.record.update(self.state, feedback), memory
        if self.scale is not None:
            self.scale = self.scale.learn(row)

    def learn_many(self, rows: np.ndarray, signs: np.ndarray, weights: np.ndarray, groups: Any, engine: str = "python") -> None:
        """As many rounds as there are rows, one after the other, on this engine."""
        if engine not in ENGINES:
            raise validate.unknown("engine", engine, ENGINES)
        if rows.size and np.abs(rows).max() > LARGEST**0.5:
            raise InputError(f"X must be at most {LARGEST**0.5:g} in size, not {np.abs(rows).max():.3g}")
        scaled, scale = (rows, None) if self.scale is None else scaled_along(self.scale, rows)
        memory, table = self._round(np.column_stack((np.ones(len(rows)), scaled)), signs, weights, groups)
        advance, state, length = load_engine(engine), self.state, block_length(rows.shape[1] + 1)
        for start in range(0, len(rows), length):
            part = records.cut(table, start, start + length)
            state, _, _ = advance(self.record, Dealt(), state, (), part, min(length, len(rows) - start), "")
        self.state, self.memory, self.scale = state, memory, scale

    def _round(self, a: np.ndarray, sign: Any, weight: Any, group: Any) -> tuple[tuple[Any, ...], Round]:
        """What the limits remember after the row, or the rows, and the round that they make."""
        known = [limit.reveal(memory, a, sign, group) for limit, memory in zip(self.limits, self.memory, strict=True)]
        constraints = tuple(function for _, function in known) or (AffineFunction(0.0 * a, 0.0 * sign),)
        return tuple(memory for memory, _ in known), Round(LogisticLoss(a, sign, weight), constraints)

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
        mine, room = (self.state, self.memory, self.scale), (wide.state, wide.memory, wide.scale)
        wide.state, wide.memory, wide.scale = records.transform(_padded, mine, room)
        vars(self).update(vars(wide))


ONE = np.ones(1)


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
