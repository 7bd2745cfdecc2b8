"""A linear classifier of two classes as the scikit-learn and river estimators share it: how it is made, and what is asked of it.

Its weights are those of the learner without constants (`mixture`), or, where a policy or a radius is given, a policy's decisions in a ball.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from bridle import domains, engines, ops, policies, records, validate
from bridle.adapters import limits
from bridle.adapters.averages import averages
from bridle.adapters.learning import FreeLearner, FreeState, LabelledRow, Learned, PolicyLearner, Rules, known, round_of
from bridle.adapters.limit_report import LimitReport
from bridle.adapters.limits import Limit
from bridle.adapters.loss_reports import LossProof, allowances, counted, loss_report, no_losses
from bridle.adapters.mixture import mixture
from bridle.adapters.row_model import RowModel, demand_sizes, padded
from bridle.adapters.scaling import RunningScale, Scale, SquashedScale, scaled_along
from bridle.adapters.thresholds import Seen, Table, Thresholds, thresholds
from bridle.core import InputError
from bridle.engines import check_name
from bridle.engines.round import BlockValues, Collect, SingleRun, block_length
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
            raise InputError(f"label must be one of the classes {validate.show(list(self.classes))}, not {validate.show(self.label)}")
        return 1.0 if self.label == self.classes[1] else -1.0

    def made(self, features: int) -> tuple[Rules, Learned]:
        """The rules, and what is held before the first row."""
        rates, losses, first = kinds_of(self.constraints, self.priority)
        bound = limits.bind_all(losses, self.classes)
        levels = thresholds(rates, first, self.classes[:: int(self.side)]) if rates else None
        memory = tuple(limit.start(features + 1) for limit in bound)
        learner: PolicyLearner | FreeLearner
        if self.free:
            learner = FreeLearner(mixture(features), averages(limits.count(bound)) if bound else None)
            state: Any = FreeState(learner.mixture.init(), None if learner.averages is None else learner.averages.start())
        else:
            learner = self._policy(features, limits.count(bound))
            state = learner.record.init(np.zeros(features + 1))
        begun = None if levels is None else levels.start()
        tally = no_losses(limits.count(bound)) if bound else None
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


class LinearModel(RowModel[Rules, Learned, LabelledRow]):
    """A linear classifier of two classes, and what it has learned."""

    plan: ModelSettings

    @property
    def thresholds(self) -> Thresholds:
        """The levels of a model that has limits on rates."""
        assert self.rules.thresholds is not None
        return self.rules.thresholds

    def learn_many(self, table: LabelledRow, engine: str = "python") -> None:
        """As many rounds as there are rows, one after the other, on this engine."""
        if isinstance(self.rules.learner, FreeLearner) or self.rules.thresholds is not None:
            self.take_many(table, engine)
            return
        # A policy needs nothing but rounds, and these can be made for all rows at once.
        check_name(engine)
        demand_sizes(table.features)
        held, record, rows = self.held, self.rules.learner.record, table.features
        scaled, scale = (rows, None) if held.scale is None else scaled_along(held.scale, rows)
        a = np.column_stack((np.ones(len(rows)), scaled))
        memory, rounds = round_of(self.rules.limits, held.memory, a, table.sign, table.weight, table.group)
        tally, seen, speaks = held.tally, held.table, np.zeros((0, 0))
        if tally is not None:
            speaks = counted(self.rules.limits, table.sign)
        advance, state, length = engines.load(engine).advance, held.state, block_length(rows.shape[1] + 1)
        for start in range(0, len(rows), length):
            part = records.cut(rounds, start, start + length)
            state, _, block = advance(SingleRun(record, Dealt(), state, (), part), min(length, len(rows) - start), Collect.VALUES)
            if tally is not None:
                tally = tally.add_many(cast("BlockValues", block).g, speaks[start : start + length], self.rules.allowed)
            if seen is not None:
                seen = _predicted(seen, cast("BlockValues", block).f, records.cut(table, start, start + length))
        self._held = Learned(state, record.decide(state), memory, None, scale, tally, seen)

    def look(self, score: float, group: float | None, period: float | None, alarm: float | None = None) -> Seen:
        """Count a row that was decided, before its class is known."""
        held = self.held
        levels, seen = self.thresholds.look(held.levels, score, known(group), known(period), alarm)
        self._held = held._replace(levels=levels)
        return seen

    def together(self, rows: int) -> None:
        """Note that the last `rows` rows that were counted were all decided by the same level."""
        held = self.held
        self._held = held._replace(levels=self.thresholds.together(held.levels, float(rows)))

    def reports(self) -> list[tuple[int, LimitReport]]:
        """What became of every limit, with its place among those that were given."""
        given, levels = listed(self.plan.constraints), self.rules.thresholds
        held = self.held
        reports: list[tuple[int, LimitReport]] = []
        if levels is not None:
            rates = [i for i, limit in enumerate(given) if hasattr(limit, "levels")]
            reports = list(zip([rates[int(i)] for i in sorted(levels.places)], levels.report(held.levels), strict=True))
        first, proof = 0, self._proof()
        others = [i for i, limit in enumerate(given) if not hasattr(limit, "levels")]
        for place, limit in zip(others, self.rules.limits, strict=True):
            assert held.tally is not None  # there is one where there is a limit
            reports.append((place, loss_report(limit, first, held.tally, proof, held.table if levels is None else held.levels.table)))
            first += limits.count((limit,))
        return reports

    def _proof(self) -> LossProof:
        """What is known of the limits on losses."""
        learner, state = self.rules.learner, self.held.state
        if isinstance(learner, FreeLearner):
            if learner.averages is None:
                return LossProof(None, None, "")
            return LossProof(state.averages.multipliers.bound, learner.averages.price(state.averages), "")
        name = self.plan.policy or POLICY
        return LossProof(None, None, f"policy {name} works on every round by itself; its own theorem is about sums of violations")

    def drop(self, seen: Seen, group: float | None) -> None:
        """Count a row no longer whose class will never be known."""
        held = self.held
        self._held = held._replace(levels=self.thresholds.drop(held.levels, seen, known(group)))


def _predicted(seen: Table, costs: Array, rows: LabelledRow) -> Table:
    """The table with rows that cost so much: one is right where it costs less than a score of 0. What weighs nothing tells nothing."""
    even = np.asarray(rows.weight) * ops.softplus(0.0)
    right = np.where(np.asarray(rows.sign) > 0.0, costs < even, costs <= even)
    alarms = 1.0 * (right == (np.asarray(rows.sign) > 0.0))
    weighs = even > 0.0
    more = Table(0.0, 0.0, 0.0, 0.0).add(alarms[weighs], np.asarray(rows.sign)[weighs])
    return Table(*(old + float(np.sum(new)) for old, new in zip(seen, more, strict=True)))


def kinds_of(constraints: object, priority: int = 0) -> tuple[list[Any], list[Any], int]:
    """The limits on rates and the others, and the place of the one with priority among the first."""
    given = listed(constraints)
    rates = [i for i, limit in enumerate(given) if hasattr(limit, "levels")]
    first = validate.whole("priority", priority, 0)
    if first and first not in rates:
        raise InputError(
            f"priority must be the place of a limit on a rate among the constraints, counted from 0, not {validate.show(priority)}"
        )
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
        raise InputError(f"class_weight must be a dict of class and weight, not {validate.show(class_weight)}")
    for label in weights:
        if not any(label == one for one in classes):
            raise validate.unknown("class in class_weight", label, [str(one) for one in classes])
    return tuple(validate.nonnegative(f"class_weight[{label!r}]", weights.get(label, 1.0)) for label in classes)
