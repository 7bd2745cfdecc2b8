"""All limits on rates of one model, as one threshold: which rows are alarms, and what each limit learns from them.

The limits on rates each have a threshold that they want (`levels`), below which it should stay or above which; budgets one above which it
should stay (`alert_budget`); limits on gaps between groups move it by group (`group_levels`).

one limit      its threshold is the threshold: the rate comes out as asked (a precision, or another rate without a lower end, at least as
               good as asked), and the other side of the trade-off is as good as it can be
several        the user's own threshold (.5) moved into the interval that they leave; debts are floored, so that one that holds by itself
               does not hoard what it has not used. Where the interval is empty the limits are in conflict: the first one named (or the one
               that `priority` chooses) is tracked, the others are reported, with what was seen of both
gaps           each group's threshold is moved from the common one; where a rate's safe action is due it is played in every group, unless
               the limit on the gap has priority
budgets        when one is spent no row is an alarm, whatever the other limits say; until then the threshold is high enough to spend it
               evenly

A row is `look`ed at when it is scored and acted upon, and `count`ed when its label comes, at once or late, in any order. In a batch all
rows are decided by the level of its start, looked at, then counted (`learn_batch`): its rows are open rows to the guarantees. `RateLimiter`
does so beside a network, or any model that gives scores: a rate has no gradient, so no optimiser can hold it, but a threshold can.

>>> from bridle.limits import Recall
>>> model = thresholds([Recall(at_least=0.9)])
>>> state, rng = model.start(), np.random.default_rng(0)
>>> for _ in range(3000):
...     score = float(rng.normal(0.0, 2.0))
...     label = 1.0 if rng.random() < 1.0 / (1.0 + np.exp(-score)) else -1.0
...     state, seen = model.look(state, score)  # seen.alarm is what was decided
...     state = model.count(state, seen, label)
>>> report, = model.report(state)
>>> report.name, report.asked, abs(report.measured - 0.9) < 0.005
('recall', 0.9, True)

>>> limiter, rng = RateLimiter([Recall(at_least=0.9)]), np.random.default_rng(0)
>>> for _ in range(60):  # a batch is scored, acted upon, and then its labels come
...     scores = rng.normal(0.0, 2.0, size=50)
...     labels = rng.random(50) < 1.0 / (1.0 + np.exp(-scores))
...     alarms = limiter.learn(scores, labels)
>>> abs(limiter.limits_[0].measured - 0.9) < 0.01
True
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import inf, isfinite, isnan, nan
from typing import Any, NamedTuple, Protocol

import numpy as np

from bridle import validate
from bridle.core import InputError
from bridle.limits.budgets import BudgetLevel, BudgetState
from bridle.limits.debts import Seen
from bridle.limits.groups import GapLevel, GapState
from bridle.limits.rates import DebtState, RateLevel
from bridle.limits.report import LimitReport, LimitTable, Overall, Table
from bridle.ops import Array, Flag, Scalar, absolute, maximum, minimum, where

OWN = 0.0
"""The user's own threshold on the score: a probability of one half."""

FIRST, AFTER_BUDGET = "this one has priority and is tracked", "this one has priority, after the budget of alarms"
"""What is said of the limit that comes before other rates."""

YIELDS = "another has priority"
"""What is said of the others."""


class RateLimited(Protocol):
    """What `thresholds` takes: a limit that is kept by moving the threshold."""

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[RateLevel | BudgetLevel | GapLevel, ...]:
        """The levels that keep it, for a model of these two classes; one of `several`, and whether it yields to another."""
        ...


class ThresholdsState(NamedTuple):
    """The states of all limits; rows and alarms so far, the row of the last alarm, rows in which limits were in conflict; the table."""

    rates: tuple[DebtState, ...]
    budgets: tuple[BudgetState, ...]
    gaps: tuple[GapState, ...]
    rows: Scalar = 0.0
    alarms: Scalar = 0.0
    last_alarm: Scalar = 0.0
    conflicts: Scalar = 0.0
    table: Table = Table()


class Thresholds(NamedTuple):
    """All limits on rates of one model; `rates` by priority, `places` where each limit stands among those that the user named.

    `gaps_first` is 1 where a limit on a gap has priority over those on rates.
    """

    rates: tuple[RateLevel, ...]
    budgets: tuple[BudgetLevel, ...]
    gaps: tuple[GapLevel, ...]
    places: tuple[float, ...]
    gaps_first: float

    @property
    def levels(self) -> tuple[Any, ...]:
        """All levels; each has the same verbs: `start`, `look`, `settle`, `drop`, `together`, `report`."""
        return (*self.rates, *self.budgets, *self.gaps)

    def start(self) -> ThresholdsState:
        return ThresholdsState(*self._split([level.start() for level in self.levels]))

    def _split(self, states: Sequence[Any]) -> tuple[tuple[DebtState, ...], tuple[BudgetState, ...], tuple[GapState, ...]]:
        """The states of the levels, by kind."""
        first, gaps = len(self.rates), len(self.rates) + len(self.budgets)
        return tuple(states[:first]), tuple(states[first:gaps]), tuple(states[gaps:])

    def _pairs(self, state: ThresholdsState, *more: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Every level with its state, and with one more of each of these."""
        return zip(self.levels, (*state.rates, *state.budgets, *state.gaps), *more, strict=True)

    def _after(self, state: ThresholdsState, states: Sequence[Any]) -> ThresholdsState:
        """With other states of the levels."""
        rates, budgets, gaps = self._split(states)
        return state._replace(rates=rates, budgets=budgets, gaps=gaps)

    def common(self, state: ThresholdsState, period: Scalar = nan) -> tuple[Scalar, Flag]:
        """The threshold before groups move it, and whether the limits are in conflict."""
        wanted = [level.threshold(each) for level, each in zip(self.rates, state.rates, strict=True)]
        budgets = list(zip(self.budgets, state.budgets, strict=True))
        if len(wanted) + len(budgets) == 1:
            return wanted[0] if wanted else budgets[0][0].threshold(budgets[0][1], period), False
        low: Scalar = -inf
        high: Scalar = inf
        th: Scalar = OWN
        for level, value in zip(reversed(self.rates), reversed(wanted), strict=True):
            below = level.rate.sd > 0.0
            low, high = where(below, low, maximum(low, value)), where(below, minimum(high, value), high)
            th = where(below, minimum(th, value), maximum(th, value))
        for budget, each in budgets:  # a rate that asks for more than there is gets the highest scores of the period, not its first rows
            value = budget.threshold(each, period, 1.0)
            low, th = maximum(low, value), maximum(th, value)
        return th, low > high

    def threshold(self, state: ThresholdsState, group: Scalar = nan, period: Scalar = nan) -> Scalar:
        """The score above which a row of this group, or each of many rows of these groups, is an alarm."""
        return self._moved(self.common(state, period)[0], self._offsets(state, group))

    def _offsets(self, state: ThresholdsState, group: Scalar) -> list[Scalar]:
        return [level.offset(each, group) for level, each in zip(self.gaps, state.gaps, strict=True)]

    def _moved(self, common: Scalar, offsets: list[Scalar]) -> Scalar:
        """The common threshold moved by the groups; an infinite one is a safe action, and that of what has priority is played."""
        if not offsets:
            return common
        offset: Scalar = 0.0
        for own in reversed(offsets):
            offset = where(safe(own), own, where(safe(offset), offset, finite(offset) + finite(own)))
        moved = finite(common) + finite(offset)
        by_gaps, by_rates = where(safe(offset), offset, moved), where(safe(common), common, moved)
        return where(self.gaps_first > 0.0, where(safe(offset), offset, by_rates), where(safe(common), common, by_gaps))

    def affordable(self, state: ThresholdsState, flag: Flag, period: Scalar) -> Flag:
        """Whether a row that deserves an alarm (`flag`) gets one: where budgets have one left."""
        for budget, each in zip(self.budgets, state.budgets, strict=True):
            flag = flag & budget.affords(each, period)
        return flag

    def look(
        self,
        state: ThresholdsState,
        score: Scalar,
        group: Scalar = nan,
        period: Scalar = nan,
        alarm: Scalar | None = None,
    ) -> tuple[ThresholdsState, Seen]:
        """After a row was scored and acted upon; no label is needed. `alarm` is what was done, where that was decided elsewhere.

        `Seen` is to be kept until the label comes.
        """
        common, conflict = self.common(state, period)
        offsets, row = self._offsets(state, group), state.rows
        flag = self.affordable(state, score > self._moved(common, offsets), period) if alarm is None else alarm > 0.0
        done = where(flag, 1.0, 0.0)
        seen, plain = Seen(score, done, group, period), [done] * (len(self.rates) + len(self.budgets))
        for i in range(len(offsets)):  # would the row be an alarm without this limit on a gap?
            plain.append(where(score > common + sum(map(finite, offsets[:i] + offsets[i + 1 :]), start=0.0), 1.0, 0.0))
        looked = [level.look(each, seen, without, row) for level, each, without in self._pairs(state, plain)]
        after = ThresholdsState(
            *self._split([each for each, _ in looked]),
            row + 1.0,
            state.alarms + done,
            where(flag, row + 1.0, state.last_alarm),
            state.conflicts + where(conflict, 1.0, 0.0),
            state.table,
        )
        return after, seen._replace(kept=tuple(kept for _, kept in looked))

    def count(  # type: ignore[override]  # a tuple has one too, which nobody asks a record for
        self, state: ThresholdsState, seen: Seen, sign: Scalar
    ) -> ThresholdsState:
        """After the label of a row came (+1 or -1), which was looked at before."""
        row = state.rows - 1.0
        after = self._after(state, [level.settle(each, seen, kept, sign, row) for level, each, kept in self._pairs(state, seen.kept)])
        return after._replace(table=state.table.add(seen.alarm, sign))

    def together(self, state: ThresholdsState, rows: float) -> ThresholdsState:
        """After this many rows were looked at that were all decided by the same level."""
        return self._after(state, [level.together(each, rows) for level, each in self._pairs(state)])

    def drop(self, state: ThresholdsState, seen: Seen) -> ThresholdsState:
        """After it is known that the label of a row will never come."""
        return self._after(state, [level.drop(each, seen, kept) for level, each, kept in self._pairs(state, seen.kept)])

    def report(self, state: ThresholdsState) -> tuple[LimitReport, ...]:
        """What became of every limit, in the order in which the user named them."""
        rows = float(state.rows)
        conflict = float(state.conflicts) / rows if rows else 0.0
        overall = Overall(rows, float(state.last_alarm), conflict, state.table.rates(), float(self.common(state)[0]), YIELDS)
        first = overall._replace(priority=AFTER_BUDGET if self.budgets else FIRST)
        reports = [level.report(each, overall if i else first) for i, (level, each) in enumerate(self._pairs(state))]
        return tuple(reports[i] for i in np.argsort(self.places, kind="stable"))

    def check(self, groups: Sequence[float | None], periods: Sequence[float | None], last: float | None = None) -> None:
        """Refuse, in one sentence, rows whose groups or periods the limits cannot read; `last` is the latest period before them."""
        for level, group in product(self.gaps, groups):
            if group is None:
                raise InputError("groups must be given with a limit on a gap between groups: a number for each row, nan for none")
            if level.values is not None and not isnan(group) and group not in level.values:
                known = ", ".join(f"{value:g}" for value in level.values)
                raise validate.refused(f"group must be one of {known}, or nan for none", group)
        if any(budget.per is None for budget in self.budgets):
            for period in periods:
                if period is None or not isfinite(period):
                    raise validate.refused("period must be given with AlertBudget(per='period'): a number for each row", period)
                if last is not None and period < last:
                    raise InputError(f"period must not go backward: {validate.show(period)} came after {validate.show(last)}")
                last = period

    def check_rows(self, groups: Array | None, periods: Array | None, last: float | None) -> None:
        """Refuse a table where `check` refuses one of its rows."""
        self.check([None] if groups is None else np.unique(groups).tolist(), [None] if periods is None else periods.tolist(), last)


def thresholds(limits: Sequence[RateLimited], priority: int = 0, classes: Sequence[object] = (0, 1)) -> Thresholds:
    """All limits on rates of one model, of which the one at `priority` is tracked where not all of them can be had."""
    given = list(limits)
    if given and not 0 <= validate.whole("priority", priority, 0) < len(given):
        raise validate.refused(f"priority must be the place of one of the {len(given)} limits, counted from 0", priority)
    for limit in given:
        if not hasattr(limit, "levels"):
            raise validate.refused("limits must hold limits on rates such as Recall(at_least=0.9)", limit)
    order = sorted(range(len(given)), key=lambda i: (i != priority, i))
    probe = [(i, level) for i in order for level in given[i].levels(classes, False, False)]  # a limit of the user's own may have several
    rivals = [i for i, level in probe if not isinstance(level, GapLevel)]
    gap_first = bool(probe) and isinstance(probe[0][1], GapLevel)
    overruled = gap_first or any(isinstance(level, BudgetLevel) for _, level in probe)
    placed: list[tuple[float, Any]] = []
    for i in order:
        yields = overruled or rivals.count(i) != 1 or i != rivals[0]
        placed += [(float(i), level) for level in given[i].levels(classes, len(rivals) > 1, yields)]
    kinds: list[list[Any]] = [[pair for pair in placed if isinstance(pair[1], kind)] for kind in (RateLevel, BudgetLevel, GapLevel)]
    rates, budgets, gaps = (tuple(level for _, level in kind) for kind in kinds)
    return Thresholds(rates, budgets, gaps, tuple(place for kind in kinds for place, _ in kind), float(gap_first))


def safe(threshold: Scalar) -> Flag:
    """Whether a threshold is infinite: alarms for all rows, or for none."""
    return absolute(threshold) == inf


def finite(threshold: Scalar) -> Scalar:
    """A threshold, and 0 for an infinite one."""
    return where(safe(threshold), 0.0, threshold)


def columns(count: int, *given: Array | None) -> list[Array]:
    """The numbers of so many rows, nan where none was given."""
    return [np.full(count, nan) if numbers is None else numbers for numbers in given]


def decide_batch(
    model: Thresholds, state: ThresholdsState, scores: Array, groups: Array, periods: Array
) -> tuple[ThresholdsState, list[Seen], Array]:
    """The state after rows that are all decided by the level of its start, how each was seen, and which of them are alarms."""
    start, kept, alarms = state, [], []
    for score, group, period in zip(scores.tolist(), groups.tolist(), periods.tolist(), strict=True):
        alarm = model.affordable(state, score > model.threshold(start, group, period), period)
        alarms.append(where(alarm, 1.0, 0.0))
        state, seen = model.look(state, score, group, period, alarms[-1])  # each alarm leaves less of a budget
        kept.append(seen)
    return model.together(state, float(len(kept))), kept, np.array(alarms)


def learn_batch(
    model: Thresholds, state: ThresholdsState, scores: Array, signs: Array, groups: Array | None = None, periods: Array | None = None
) -> tuple[ThresholdsState, Array]:
    """The state after rows that came together with their labels, and which of them were alarms by the level of the batch's start."""
    of, when = columns(len(scores), groups, periods)
    state, kept, alarms = decide_batch(model, state, scores, of, when)
    for seen, sign in zip(kept, signs.tolist(), strict=True):
        state = model.count(state, seen, sign)
    return state, alarms


# --- beside any model ---------------------------------------------------------------------------------------------------------------------

NAMES = ("groups", "periods")


class RateLimiter:
    """A threshold that moves, to keep limits on rates for the scores of any model.

    Scores are log-odds, or with ``base="buffer"`` anything that grows with the chance that a row is positive. The rows of a batch are
    decided by the threshold of its start.

    Parameters
    ----------
    limits : sequence
        Limits on rates, such as ``Recall(at_least=0.9)``.
    priority : int, default 0
        The place of the limit that is kept where not all of them can be had.

    Examples
    --------
    >>> import numpy as np
    >>> from bridle.limits import AlertRate
    >>> limiter = RateLimiter([AlertRate(at_most=0.5)])
    >>> limiter.alarms(np.array([3.0, -3.0]))
    array([1., 0.])
    >>> limiter.learn(np.array([3.0, -3.0]), np.array([1, 0]))
    array([1., 0.])
    """

    def __init__(self, limits: Sequence[RateLimited], priority: int = 0) -> None:
        self._model = thresholds(limits if type(limits) in (list, tuple) else [limits], priority)  # type: ignore[list-item]
        self._state = self._model.start()
        self._period: float | None = None  # of the last row

    def alarms(self, scores: object, groups: object = None, periods: object = None) -> Array:
        """Which of these rows, as one batch, would be alarms now.

        Parameters
        ----------
        scores : array_like of shape (rows,)
            The score of every row.
        groups : array_like of shape (rows,), optional
            A number for each row, where a limit is about groups.
        periods : array_like of shape (rows,), optional
            A number for each row, where a limit is about periods.
        """
        values = _column("scores", scores)
        return decide_batch(self._model, self._state, values, *columns(len(values), *self._read(len(values), groups, periods)))[2]

    def learn(self, scores: object, labels: object, groups: object = None, periods: object = None) -> Array:
        """Count a batch that `alarms` decided about and whose labels are now known, and move the threshold.

        Returns which rows were alarms: 1 or 0.

        Parameters
        ----------
        scores : array_like of shape (rows,)
            The score of every row.
        labels : array_like of shape (rows,)
            1 or 0 for every row.
        groups : array_like of shape (rows,), optional
            A number for each row, where a limit is about groups.
        periods : array_like of shape (rows,), optional
            A number for each row, where a limit is about periods.
        """
        values, truth = _column("scores", scores), _column("labels", labels)
        if len(truth) != len(values) or not np.isin(truth, (0.0, 1.0)).all():
            raise validate.refused(f"labels must be 0 or 1 for each of the {len(values)} scores", labels)
        of, when = self._read(len(values), groups, periods)
        self._state, alarms = learn_batch(self._model, self._state, values, 2.0 * truth - 1.0, of, when)
        if when is not None and len(values):
            self._period = float(when[-1])
        return alarms

    def _read(self, rows: int, *given: object) -> list[Array | None]:
        """The group and the period of every row, where they were given."""
        read = [None if each is None else _column(name, each, name == "groups") for name, each in zip(NAMES, given, strict=True)]
        for name, column in zip(NAMES, read, strict=True):
            if column is not None and len(column) != rows:
                raise InputError(f"{name} must be a number for each of the {rows} rows, not {len(column)}")
        of, when = read
        self._model.check_rows(of, when, self._period)
        return read

    @property
    def limits_(self) -> LimitTable:
        """What was asked of every limit, what came out, what is proved, and what it costs; printed, a table."""
        return LimitTable(self._model.report(self._state))

    def __repr__(self) -> str:
        return f"RateLimiter\n{self.limits_!r}"


def _column(name: str, values: object, missing: bool = False) -> Array:
    """A number for each row, from a tensor, an array or a list; nan only where it may be missing."""
    plain = values.detach().cpu().numpy() if hasattr(values, "detach") else values
    column = np.asarray(plain)
    if column.ndim != 1 or column.dtype.kind not in "fiub" or not (missing or np.isfinite(column).all()):
        raise validate.refused(f"{name} must be a finite number for each row", values)
    return column.astype(float)
