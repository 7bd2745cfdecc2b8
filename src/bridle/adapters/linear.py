"""A linear classifier of two classes as the scikit-learn and river estimators share it: how it is made, and what is asked of it.

A row is a round. It is scored as the past sees it, and the levels that hold rates count whether that was an alarm. Then its features (after
a 1 for the intercept) and its class make a loss, its limits make constraints, and what learns the weights is fed what they are worth at the
weights that were played. Its weights are those of the learner without constants (`mixture`), or, where a policy or a radius is given, a
policy's decisions in a ball.

With more than two classes there is one such classifier for each class against all others, and the probabilities are those of the single
classifiers, divided by their sum. Limits on rates are then about one
class, `label`: an alarm is a prediction of it, and a row that is no alarm is predicted as the likeliest of the others. Rows that were
decided and wait for their classes are remembered under the numbers of their tickets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bridle import domains, ops, policies, records, validate
from bridle.adapters.mixture import Mixture, MixtureState, mixture
from bridle.adapters.rows import RowModel, padded
from bridle.adapters.scaling import RunningScale, Scale, SquashedScale
from bridle.core import Feedback, InputError, Policy, Round
from bridle.functions import AffineFunction, LogisticLoss
from bridle.limits.debts import Seen
from bridle.limits.losses import Limit, LossProof, LossTally, allowances, bind_all, count, counted, loss_reports, no_losses
from bridle.limits.prices import Averages, AverageState
from bridle.limits.report import LimitReport, LimitTable, Table
from bridle.limits.thresholds import Thresholds, columns, decide_batch, thresholds
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
            levels = self.thresholds.count(levels, seen, self.side * row.sign)
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
            learner = FreeLearner(mixture(features), Averages(np.ones(count(bound))) if bound else None)
            state: Any = FreeState(learner.mixture.init(), None if learner.averages is None else learner.averages.start())
        else:
            learner = self._policy(features, count(bound))
            state = learner.record.init(np.zeros(features + 1))
        begun = None if levels is None else levels.start()
        tally = no_losses(count(bound)) if bound else None
        weights = learner.weights(state)
        table = Table() if bound and levels is None and self.alone else None
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
        return records.transform(padded, held, records.transform(np.zeros_like, start))


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

    def reports(self) -> list[tuple[Any, LimitReport]]:
        """Every limit that was given, with what became of it; rates first."""
        given, levels, held = listed(self.plan.constraints), self.rules.thresholds, self.held
        rates = [limit for limit in given if hasattr(limit, "levels")]
        reports: list[tuple[Any, LimitReport]] = []
        if levels is not None:
            reports = [(rates[int(i)], report) for i, report in zip(sorted(levels.places), levels.report(held.levels), strict=True)]
        losses = [limit for limit in given if not hasattr(limit, "levels")]
        if held.tally is not None:
            table = held.table if levels is None else held.levels.table
            reports += zip(losses, loss_reports(losses, held.tally, self._proof(), table), strict=True)
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

    def drop(self, seen: Seen) -> None:
        """Count a row no longer whose class will never be known."""
        held = self.held
        self._held = held._replace(levels=self.thresholds.drop(held.levels, seen))


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
    weights = {} if class_weight is None else class_weight
    if not isinstance(weights, Mapping):
        raise validate.refused("class_weight must be a dict of class and weight", class_weight)
    for label in weights:
        if not any(label == one for one in classes):
            raise validate.unknown("class in class_weight", label, [str(one) for one in classes])
    return tuple(validate.nonnegative(f"class_weight[{label!r}]", weights.get(label, 1.0)) for label in classes)


# --- two classes or more, and rows that wait for theirs -----------------------------------------------------------------------------------

MOST_OPEN = 100_000
"""So many rows may wait for their classes at the most."""


class RowTicket(NamedTuple):
    """The answer about a row whose class is not known yet.

    Parameters
    ----------
    id : int
        The number to give back with the row's class.
    alarm : bool
        Whether the row is an alarm.
    probability : float
        The model's probability of the class that an alarm is about, between 0 and 1.
    label : object
        The class that is predicted.

    Examples
    --------
    >>> from bridle.adapters.river import RowTicket
    >>> RowTicket(0, True, 0.8, "fraud").alarm
    True
    """

    id: int
    alarm: bool
    probability: float
    label: object


class Others(NamedTuple):
    """All classes but one."""

    label: object

    def __repr__(self) -> str:
        return f"not {self.label!r}"


class ClassModel:
    """A linear classifier for the second of two classes, or one for each of more; the rows that wait for their classes.

    Where a limit is on rates, `judge` is the classifier whose score they are about, and an alarm is a prediction of the class at `judged`.
    """

    def __init__(self, features: int, settings: ModelSettings, engine: str = "python") -> None:
        self.classes, self.settings, self.features = list(settings.classes), settings, features
        self.models = [LinearModel(features, each, engine) for each in one_for_each(settings)]
        self.judge = next((model for model in self.models if model.rules.thresholds is not None), None)
        self._learned = [1] if len(self.models) == 1 else list(range(len(self.models)))  # the place of the class that each is for
        self._judged = 0 if self.judge is None else self._learned[self.models.index(self.judge)]
        if len(self.models) == 1:
            self._judged = int(self.models[0].rules.side > 0.0)
        self.open: dict[int, tuple[Seen | None, float | None]] = {}  # by ticket: how the row was seen, and its group
        self._asked = 0
        self._period: float | None = None

    @property
    def blank(self) -> bool:
        """Whether nothing was learned or asked so far."""
        return not self._asked and all(model.blank for model in self.models)

    @property
    def weights(self) -> Array:
        """A row of weights, the intercept's first, for the second of two classes or for each of more."""
        return np.array([model.weights for model in self.models])

    def grow(self, features: int) -> None:
        """Make room for more features, which count as 0 in every row so far."""
        for model in self.models:
            model.grow(features)
        self.features = features

    # --- what is predicted ------------------------------------------------------------------------------------------------------------

    def scores(self, rows: Array) -> Array:
        """The log-odds of the second class, or of each of more in columns, for one row or many."""
        if len(self.models) == 1:
            return np.asarray(self.models[0].scores(rows))
        return np.stack([np.asarray(model.scores(rows)) for model in self.models], axis=-1)

    def probabilities(self, scores: Array) -> Array:
        """The probability of every class, in columns, from the scores."""
        if len(self.models) == 1:
            return np.stack([probability(-scores), probability(scores)], axis=-1)
        each = probability(scores)
        total = each.sum(axis=-1, keepdims=True)
        return np.where(total > 0.0, each / np.where(total > 0.0, total, 1.0), 1.0 / len(self.models))

    def alarms(self, scores: Array, groups: Array | None, periods: Array | None) -> NDArray[np.bool_] | None:
        """Which rows are alarms as the levels stand, none of them counted yet; None where no limit is on rates."""
        if self.judge is None:
            return None
        self.check(groups, periods)
        own, thresholds, levels = self._own(scores), self.judge.thresholds, self.judge.held.levels
        if thresholds.budgets:  # each alarm leaves less of the budget
            return decide_batch(thresholds, levels, own, *columns(len(own), groups, periods))[2] > 0.0
        if groups is None:
            return np.asarray(own > float(thresholds.threshold(levels)))
        names, which = np.unique(groups, return_inverse=True)  # one threshold for each group
        return np.asarray(own > np.array([float(thresholds.threshold(levels, name)) for name in names.tolist()])[which])

    def _own(self, scores: Array) -> Array:
        """The scores that limits on rates are about."""
        return self.models[0].rules.side * scores if len(self.models) == 1 else scores[:, self._judged]

    def check(self, groups: Array | None, periods: Array | None) -> None:
        """Refuse groups and periods that the limits cannot read."""
        if self.judge is not None:
            self.judge.thresholds.check_rows(groups, periods, self._period)

    def admit(self, group: float | None, period: float | None, ticket: object = None) -> None:
        """Refuse a row, before anything changes, whose ticket is not known, or whose group or period the limits cannot read."""
        if ticket is not None:
            self.number(ticket)
        elif self.judge is not None:
            self.judge.thresholds.check([group], [period], self._period)

    def places(self, scores: Array, alarms: NDArray[np.bool_] | None) -> NDArray[np.int_]:
        """The place of the class that each row is predicted to have."""
        if len(self.models) == 1:
            return np.asarray(scores > 0.0 if alarms is None else alarms == (self._judged == 1)).astype(int)
        if alarms is None:
            return np.asarray(np.argmax(scores, axis=1))
        others = np.where(np.arange(len(self.models)) == self._judged, -np.inf, scores)
        return np.asarray(np.where(alarms, self._judged, np.argmax(others, axis=1)))

    # --- rows that wait for their classes ---------------------------------------------------------------------------------------------

    def ask(self, row: Array, group: float | None, period: float | None) -> RowTicket:
        """Decide about one row, which is counted from now on, and learned from when its class comes."""
        if len(self.open) >= MOST_OPEN:
            raise InputError(f"{MOST_OPEN:,} rows wait for their classes already: give these, or forget some")
        scores = self.scores(row[None])
        seen = self.decided(scores, *(None if one is None else np.array([one]) for one in (group, period)))
        place = int(self.places(scores, np.array([one.alarm > 0.0 for one in seen]) if seen else None)[0])
        self._note(period)
        self._asked += 1
        self.open[self._asked] = (seen[0] if seen else None, group)
        return RowTicket(self._asked, place == self._judged, float(self.probabilities(scores)[0, self._judged]), self.classes[place])

    def number(self, ticket: object) -> int:
        """The number of a ticket whose row waits."""
        number = ticket.id if isinstance(ticket, RowTicket) else ticket
        if isinstance(number, (int, np.integer)) and int(number) in self.open:
            return int(number)
        raise validate.refused("ticket must be one that waits for its class", number)

    def answered(self, tickets: Sequence[object], count: int) -> tuple[list[int], Seen | None, Array | None]:
        """The numbers of the tickets, one for each row, how the rows were seen, and their groups."""
        numbers = [self.number(ticket) for ticket in tickets]
        if len(numbers) != count or len(set(numbers)) != count:
            raise InputError(f"tickets must be {count} different ones, one for each row, not {len(set(numbers))}")
        seen, groups = zip(*[self.open[number] for number in numbers], strict=True)
        named = any(group is not None for group in groups)
        return numbers, seen[0] and records.stack(seen), np.array([known(group) for group in groups]) if named else None

    def forget(self, ticket: object) -> None:
        """A row whose class will never be known is not waited for any longer."""
        seen, _ = self.open.pop(self.number(ticket))
        if seen is not None and self.judge is not None:
            self.judge.drop(seen)

    # --- what is learned --------------------------------------------------------------------------------------------------------------

    def learn(
        self, row: Array, place: int, weight: float, group: float | None = None, period: float | None = None, ticket: object = None
    ) -> None:
        """One round; a row with a ticket is of the group that it was said to be of, and counts as it was seen then."""
        seen = None
        if ticket is not None:
            seen, group = self.open[self.number(ticket)]
        for at, model in zip(self._learned, self.models, strict=True):
            mine = (None if seen else period, seen) if model is self.judge else (None, None)
            model.take(LabelledRow(row, 1.0 if at == place else -1.0, weight, group, *mine))
        if period is not None:
            self._note(period)
        if ticket is not None:
            del self.open[self.number(ticket)]

    def decided(self, scores: Array, groups: Array | None, periods: Array | None) -> list[Seen]:
        """Count rows that are all decided as the levels stand, before their classes are known; none where no limit is on rates."""
        if self.judge is None:
            return []
        self.check(groups, periods)
        return self.judge.decide(self._own(scores), *columns(len(scores), groups, periods))

    def learn_table(self, table: LabelledRow, engine: str) -> None:
        """As many rounds as there are rows, one after the other; the sign of a row is the place of its class here.

        `seen` is what the levels made of all of them before, where they were decided together.
        """
        for at, model in zip(self._learned, self.models, strict=True):
            mine = table._replace(sign=np.where(table.sign == at, 1.0, -1.0))
            if model is not self.judge:
                mine = mine._replace(seen=None, period=None)
            model.take_many(mine if mine.seen is None else mine._replace(period=None), engine)
        if table.period is not None and len(table.features):
            self._note(float(np.max(table.period)))

    def _note(self, period: float | None) -> None:
        if period is not None:
            self._period = period if self._period is None else max(period, self._period)

    # --- what became of the limits ----------------------------------------------------------------------------------------------------

    @property
    def limits(self) -> LimitTable:
        """What became of every limit, in the order in which the user named them."""
        given, reports = listed(self.settings.constraints), []
        for model, label in zip(self.models, self.classes[-len(self.models) :], strict=True):
            for limit, report in model.reports():
                shared = len(self.models) > 1 and not hasattr(limit, "label")  # a label is in the name already
                whole = next(i for i, each in enumerate(given) if each is limit)
                reports.append((whole, replace(report, name=f"{report.name} of {label!r}") if shared else report))
        return LimitTable(report for _, report in sorted(reports, key=lambda pair: pair[0]))


def one_for_each(settings: ModelSettings) -> list[ModelSettings]:
    """The settings of the one model of two classes, or of one for each of more."""
    classes, given = list(settings.classes), listed(settings.constraints)
    if len(classes) == 2:
        return [settings]
    rates, _, _ = kinds_of(given, settings.priority)
    named = {limit.label for limit in rates if getattr(limit, "label", None) is not None} | ({settings.label} - {None})
    if rates and len(named) != 1:
        said = "name it as label=" if not named else f"not about {validate.show(sorted(named, key=str))}"
        raise InputError(f"limits on rates are about one class where there are more than two: {said}")
    for label in [*named, *(limit.label for limit in given if hasattr(limit, "label") and limit not in rates)]:
        if label not in classes:
            raise validate.refused(f"label must be one of the classes {validate.show(classes)}", label)
    return [
        settings._replace(
            classes=(Others(label), label),
            label=None,
            alone=False,
            constraints=[limit for limit in given if (label in named if limit in rates else getattr(limit, "label", label) == label)],
            priority=0 if label not in named else settings.priority,
        )
        for label in classes
    ]


class LinearEstimator:
    """The settings of a linear classifier, under the names of its constructor's parameters."""

    def __init__(
        self,
        constraints: Sequence[Any] | None,
        policy: str | None,
        parameters: Mapping[str, object] | None,
        radius: float | None,
        scale: bool | None,
        class_weight: Mapping[Any, float] | None,
        label: object,
        priority: int,
        engine: str,
    ) -> None:
        self.constraints = constraints
        self.policy = policy
        self.parameters = parameters
        self.radius = radius
        self.scale = scale
        self.class_weight = class_weight
        self.label = label
        self.priority = priority
        self.engine = engine

    def _make_model(self, features: int, classes: Sequence[object], engine: str = "python") -> ClassModel:
        scale = None if self.scale is None else bool(self.scale)
        settings = (self.constraints, self.policy, self.parameters, self.radius, scale, self.priority, self.label)
        return ClassModel(features, ModelSettings(classes, *settings), engine)


def with_limits(text: str, limits: LimitTable) -> str:
    """What an estimator is, and below it what became of its limits."""
    return f"{text}\n{limits!r}" if limits else text
