"""A model of two classes, or of more: one linear classifier, or one for each class against all others; and what its estimators share.

With more than two classes the probabilities are those of the single classifiers, divided by their sum. Limits on rates are then about one
class, `label`: an alarm is a prediction of it, and a row that is no alarm is predicted as the likeliest of the others. Rows that were
decided and wait for their classes are remembered under the numbers of their tickets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bridle import records, validate
from bridle.adapters.linear import LabelledRow, LinearModel, ModelSettings, kinds_of, known, listed, probability
from bridle.adapters.reports import LimitTable
from bridle.adapters.thresholds import Seen, columns, decide_batch
from bridle.core import InputError
from bridle.ops import Array

MOST_OPEN = 100_000
"""So many rows may wait for their classes at the most."""


class OpenRow(NamedTuple):
    """A row that waits for its class: how it was seen, and its group."""

    seen: Seen | None
    group: float | None


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


class OpenRows:
    """The rows that wait, and how many were ever asked about."""

    def __init__(self) -> None:
        self.rows: dict[int, OpenRow] = {}
        self.asked = 0

    def demand_room(self) -> None:
        """Refuse one more where too many wait."""
        if len(self.rows) >= MOST_OPEN:
            raise InputError(f"{MOST_OPEN:,} rows wait for their classes already: give these, or forget some")

    def add(self, row: OpenRow) -> int:
        """One more row waits; the number of its ticket."""
        self.asked += 1
        self.rows[self.asked] = row
        return self.asked

    def close(self, number: int) -> OpenRow:
        """A row waits no longer."""
        return self.rows.pop(number)

    def number(self, ticket: object) -> int:
        """The number of a ticket whose row waits."""
        number = ticket.id if isinstance(ticket, RowTicket) else ticket
        if isinstance(number, (int, np.integer)) and int(number) in self.rows:
            return int(number)
        raise validate.refused("ticket must be one that waits for its class", number)

    def answered(self, tickets: Sequence[object], count: int) -> tuple[list[int], Seen | None, Array | None]:
        """The numbers of the tickets, one for each row, how the rows were seen, and their groups."""
        numbers = [self.number(ticket) for ticket in tickets]
        if len(numbers) != count or len(set(numbers)) != count:
            raise InputError(f"tickets must be {count} different ones, one for each row, not {len(set(numbers))}")
        waiting = [self.rows[number] for number in numbers]
        seen = None if waiting[0].seen is None else records.stack([cast("Seen", row.seen) for row in waiting])
        named = any(row.group is not None for row in waiting)
        return numbers, seen, np.array([known(row.group) for row in waiting]) if named else None


class Others(NamedTuple):
    """All classes but one."""

    label: object

    def __repr__(self) -> str:
        return f"not {self.label!r}"


class ClassModel:
    """A linear classifier for the second of two classes, or one for each of more; the rows that wait for their classes.

    Where a limit is on rates, `judge` is the classifier whose score they are about.
    """

    def __init__(self, features: int, settings: ModelSettings, engine: str = "python") -> None:
        self.classes, self.settings, self.features, self.engine = list(settings.classes), settings, features, engine
        self.models = [LinearModel(features, each, engine) for each in one_for_each(settings)]
        judges = [model for model in self.models if model.rules.thresholds is not None]
        self.judge = judges[0] if judges else None
        self._side = self.models[0].rules.side if len(self.models) == 1 else 1.0
        self._judged = int(self._side > 0.0) if len(self.models) == 1 else self.models.index(self.judge) if self.judge is not None else 0
        self._learned = [1] if len(self.models) == 1 else range(len(self.models))  # the place of the class that each is for
        self.open = OpenRows()
        self._period: float | None = None

    @property
    def blank(self) -> bool:
        """Whether nothing was learned or asked so far."""
        return not self.open.asked and all(model.blank for model in self.models)

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
        judge = self.judge
        if judge is None:
            return None
        self.check(len(scores), groups, periods)
        own = self._own(scores)
        thresholds, levels = judge.thresholds, judge.held.levels
        if thresholds.budgets:  # each alarm leaves less of the budget
            return decide_batch(thresholds, levels, own, *columns(len(own), groups, periods))[2] > 0.0
        if groups is None:
            return np.asarray(own > float(thresholds.threshold(levels)))
        names, which = np.unique(groups, return_inverse=True)  # one threshold for each group
        return np.asarray(own > np.array([float(thresholds.threshold(levels, name)) for name in names.tolist()])[which])

    def _own(self, scores: Array) -> Array:
        """The scores that limits on rates are about, of many rows."""
        return self._side * scores if len(self.models) == 1 else scores[:, self._judged]

    def check(self, count: int, groups: Array | None, periods: Array | None) -> None:
        """Refuse groups and periods that the limits cannot read."""
        if self.judge is not None:
            self.judge.thresholds.check_rows(count, groups, periods, self._period)

    def admit(self, group: float | None, period: float | None, ticket: object = None) -> None:
        """Refuse a row, before anything changes, whose ticket is not known, or whose group or period the limits cannot read."""
        if ticket is not None:
            self.open.number(ticket)
        elif self.judge is not None:
            self.judge.thresholds.check(group, period, self._period)

    def places(self, scores: Array, alarms: NDArray[np.bool_] | None) -> NDArray[np.int_]:
        """The place of the class that each row is predicted to have."""
        if len(self.models) == 1:
            return np.asarray(scores > 0.0 if alarms is None else alarms == (self._judged == 1)).astype(int)
        if alarms is None or self.judge is None:
            return np.asarray(np.argmax(scores, axis=1))
        judged = self._judged
        rest = np.where(np.arange(len(self.models)) == judged, -np.inf, scores)
        return np.asarray(np.where(alarms, judged, np.argmax(rest, axis=1)))

    # --- rows that wait for their classes ---------------------------------------------------------------------------------------------

    def ask(self, row: Array, group: float | None, period: float | None) -> RowTicket:
        """Decide about one row, which is counted from now on, and learned from when its class comes."""
        self.open.demand_room()
        scores = self.scores(row[None])
        seen = self.decided(scores, *(None if one is None else np.array([one]) for one in (group, period)))
        place = int(self.places(scores, np.array([one.alarm > 0.0 for one in seen]) if seen else None)[0])
        self._note(period)
        number = self.open.add(OpenRow(seen[0] if seen else None, group))
        return RowTicket(number, place == self._judged, float(self.probabilities(scores)[0, self._judged]), self.classes[place])

    def forget(self, ticket: object) -> None:
        """A row whose class will never be known is not waited for any longer."""
        waiting = self.open.close(self.open.number(ticket))
        if waiting.seen is not None and self.judge is not None:
            self.judge.drop(waiting.seen, waiting.group)

    # --- what is learned --------------------------------------------------------------------------------------------------------------

    def learn(
        self, row: Array, place: int, weight: float, group: float | None = None, period: float | None = None, ticket: object = None
    ) -> None:
        """One round: one row of features, the place of its class, the weight of its loss, its group and its period, and its ticket."""
        seen = None
        if ticket is not None:
            number = self.open.number(ticket)
            seen, group = self.open.rows[number]
        for at, model in zip(self._learned, self.models, strict=True):
            mine = (None if seen else period, seen) if model is self.judge else (None, None)
            model.take(LabelledRow(row, 1.0 if at == place else -1.0, weight, group, *mine))
        if period is not None:
            self._note(period)
        if ticket is not None:
            self.open.close(number)

    def decided(self, scores: Array, groups: Array | None, periods: Array | None) -> list[Seen]:
        """Count rows that are all decided as the levels stand, before their classes are known; none where no limit is on rates."""
        if self.judge is None:
            return []
        self.check(len(scores), groups, periods)
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
            mine = listed(model.plan.constraints)
            for place, report in model.reports():
                whole = next(i for i, limit in enumerate(given) if limit is mine[place])
                shared = len(self.models) > 1 and not hasattr(mine[place], "label")  # a label is in the name already
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
