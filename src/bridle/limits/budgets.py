"""A number of alarms per period that is never overspent: so many a day, or for so many rows.

While alarms are left, a row is one where its score is above a threshold; when none is left, no row is. The threshold is to spend the
budget on the highest scores of the whole period: with B alarms per period, N rows in a period (given, or the mean of the periods so far)
and b, sp of the model's base at a rate of B/N,

    D = (alarms of this period) - (B/N) (its rows),     th = b + sp h(eta D)

Guarantee: at most B alarms in every period, on every stream, in any batches: it is counted, not steered.
Reference: bridle (this file).

>>> budget = BudgetLevel(2.0, 5.0)
>>> state, alarms = budget.start(), []
>>> for row, score in enumerate([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]):
...     alarm = 1.0 * budget.affords(state, 0.0) * (score > budget.threshold(state, 0.0))
...     state, _ = budget.look(state, Seen(score, alarm, period=0.0), alarm, row)
...     alarms.append(alarm)
>>> sum(alarms[:5]) <= 2.0, state.spent <= 2.0
(True, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from bridle import validate
from bridle.limits.debts import ETA, Seen, swing
from bridle.limits.rates import Model, ModelState
from bridle.limits.report import PRICES, LimitReport, Overall, price, short
from bridle.limits.settings import Settings, Step, whole_from
from bridle.ops import Flag, Scalar, maximum, minimum, where

HIGHEST_SHARE = 0.5
"""The share of rows that a budget is spread over is at most this, so that a threshold makes sense."""


class BudgetState(NamedTuple):
    """Of this period: its number, its alarms, its rows; of those before: how many, their rows and alarms; the most in any; the base."""

    period: Scalar
    spent: Scalar
    rows: Scalar
    periods: Scalar
    earlier_rows: Scalar
    earlier: Scalar
    most: Scalar
    base: ModelState


class BudgetLevel(NamedTuple):
    """`at_most` alarms in a period of `per` rows; where `per` is None each row says its period."""

    at_most: float
    per: float | None
    eta: float = ETA
    base: Model = Model()

    def start(self) -> BudgetState:
        return BudgetState(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, self.base.start())

    def now(self, state: BudgetState, period: Scalar) -> BudgetState:
        """The state with a new period begun where this row is the first of one.

        A period that is before the present one, or nan, opens no new budget.
        """
        fresh = state.rows >= self.per if self.per is not None else (state.rows > 0.0) & (period > state.period)
        number = state.period if self.per is not None else where(fresh | (state.rows == 0.0), period, state.period)
        return BudgetState(
            number,
            where(fresh, 0.0, state.spent),
            where(fresh, 0.0, state.rows),
            state.periods + where(fresh, 1.0, 0.0),
            state.earlier_rows + where(fresh, state.rows, 0.0),
            state.earlier + where(fresh, state.spent, 0.0),
            state.most,
            state.base,
        )

    def share(self, state: BudgetState, most: float = HIGHEST_SHARE) -> Scalar:
        """B/N, `most` at the most.

        Where no period was ever complete it is as if the present one ended here, so that nothing is held back without a reason.
        """
        if self.per is not None:
            return minimum(most, self.at_most / self.per)
        rows = where(state.periods > 0.0, state.earlier_rows / maximum(state.periods, 1.0), state.rows)
        return minimum(most, self.at_most / maximum(rows, 1.0))

    def affords(self, state: BudgetState, period: Scalar) -> Flag:
        """Whether an alarm is left for a row of this period."""
        return self.now(state, period).spent + 1.0 <= self.at_most

    def threshold(self, state: BudgetState, period: Scalar, most: float = HIGHEST_SHARE) -> Scalar:
        """The score above which a row deserves one, where at most this share of the rows is to be alarms."""
        now = self.now(state, period)
        debt = now.spent - self.share(now, most) * now.rows
        return now.base.at + now.base.spread.size * swing(self.eta * debt)

    def look(self, state: BudgetState, seen: Seen, plain: Scalar, row: Scalar) -> tuple[BudgetState, None]:
        """After a row was scored and acted upon; nothing is wanted back when its label comes."""
        now, score = self.now(state, seen.period), seen.score
        base = self.base.look(now.base, score, 1.0 + 0.0 * score, where(score > now.base.at, 1.0, 0.0) - self.share(now), -1.0)
        spent = now.spent + seen.alarm
        return now._replace(spent=spent, rows=now.rows + 1.0, most=maximum(now.most, spent), base=base), None

    def settle(self, state: BudgetState, seen: Seen, due: None, sign: Scalar, row: Scalar) -> BudgetState:
        return state

    def drop(self, state: BudgetState, seen: Seen, due: None) -> BudgetState:
        return state

    def together(self, state: BudgetState, rows: float) -> BudgetState:
        return state

    def report(self, state: BudgetState, overall: Overall) -> LimitReport:
        """What became of it."""
        spent, most = float(state.spent), float(state.most)
        periods = float(state.periods) + (1.0 if state.rows else 0.0)
        unit, one = ("period", "a period") if self.per is None else [f"{int(self.per):,} rows"] * 2
        return LimitReport(
            f"alerts per {unit}",
            "at most",
            self.at_most,
            (float(state.earlier) + spent) / periods if periods else None,
            spent if periods else None,
            (0.0, self.at_most),
            price=price("alert rate", overall.threshold) if periods else None,
            price_of=PRICES["alert rate"],
            since=1,
            counted=int(overall.rows),
            words=f"never more than {short(most)} alarms in {one}, and {short(spent)} in the present one",
            seen={**overall.rates, "most": most, "periods": int(periods), "spent": spent, "threshold": overall.threshold},
        )


# --- in the user's words ------------------------------------------------------------------------------------------------------------------


def _period(name: str, value: object) -> int | str:
    return "period" if value == "period" else validate.whole(name, value)


@dataclass(frozen=True, repr=False)
class AlertBudget(Settings):
    """A limit: at most so many alarms per period, never one more.

    Parameters
    ----------
    at_most : float
        How many alarms, a whole number, 0 or above.
    per : int or "period", default "period"
        How many rows make a period; or "period", where each row says its own: a number that does not go backward, such as a day.
    eta : float, default 0.05
        How far one alarm too many would move the level of caution, above 0.

    Examples
    --------
    >>> AlertBudget(50, per=1000)
    AlertBudget(at_most=50, per=1000)
    """

    at_most: Annotated[float, whole_from(0)]
    per: Annotated[int | str, _period] = "period"
    eta: Step = ETA

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[BudgetLevel, ...]:
        """The level that keeps it."""
        return (BudgetLevel(self.at_most, None if self.per == "period" else float(self.per), self.eta),)
