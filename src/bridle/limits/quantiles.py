"""What holds a regressor's limits: an offset that keeps a quantile on every stream, and a price that keeps an error rate low.

A quantile: the share of rows whose target lies above the prediction comes out as asked, whatever the stream does.

The model predicts f, and f + o is given out; r = y - f is known when the target comes. eps = 1 - level is the share allowed above, D the
debt: rows above beyond the allowance.

    o  = b + sp h(eta D) + M sign(D) (|eta D| - 2)^+,      h(x) = x (1 + |x|),  eta = .05
    v  = 1 where r > o,  else 0
    M  = max(M, |r - b|),   sp += max(1/n, .01) (|r - b| - sp),   b += sp max(.03, 3 / sqrt(1 + n)) (1{r > b} - eps)
    D  = max(D + v - eps, -(4 / eta + 1)),     F += what that floor adds

b follows the quantile of the residuals, sp is their spread, M the widest so far; all are 0 before the first row. No unit: targets times a
constant give offsets times that constant. The floor forgives what a long time without any row above would hoard.

Guarantee: sum v = eps n + D - F, in every window too. On every stream D <= `largest_debt`: 4 / eta + 1, and 1 for each doubling of the
    widest residual, so that the share above is at most eps + O(1/n) unless residuals grow without end.
    Of the error rate below, that D stays small cannot be promised: no prediction is right whatever comes.
Reference: bridle (this file); I. Gibbs, E. Candes. Adaptive Conformal Inference Under Distribution Shift. NeurIPS 2021, for the identity.

Proof. Where eta D >= 4, o >= b + 2 M: a row above has r - b > 2 M, and M more than doubles (or is no longer 0). Elsewhere D <= 4 / eta
before the row, and it grows by at most 1. So D exceeds 4 / eta + 1 by no more than the number of doublings: log2(M / first), and one more
from 0.

An error rate: a row counts, v = 1, where its error is above `beyond`, and D is the debt: such rows beyond the share eps allowed. The
distance beyond is a second loss, (|error| - beyond)^+ in deviations of the targets, that weighs

    lam = h((eta D)^+),   eta D at most 2;        D <- max(D + v - eps, -20),   F += what that floor adds;        sum v = eps n + D - F

>>> import numpy as np
>>> limit = Offset(0.9)
>>> state, above = limit.start(), 0
>>> for residual in np.random.default_rng(0).standard_normal(2000).tolist():
...     above += residual > limit.offset(state)
...     state = limit.learn(state, residual)
>>> round(above / 2000, 2), bool(abs(above - 0.1 * 2000 - state.owed.debt) < 1e-9)
(0.1, True)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Any, NamedTuple

from bridle import ops
from bridle.limits.debts import ETA, FLOOR, TOLERANCE, TOP, Recent, make_recent, swing
from bridle.limits.report import LimitReport, short
from bridle.limits.settings import BelowOne, Positive, Settings
from bridle.ops import Scalar, maximum, minimum

LINEAR = 2.0
"""From |eta D| = 2 on the offset also grows with the widest residual, so that from 4 on it is beyond twice of that."""

DEAREST = 2.0
"""The highest level of the price of an error rate."""


class Owed(NamedTuple):
    """A debt over all rows: D, and what its floor has forgiven; how many rows there were and how many of them violated the limit, recent
    counts, and the last row at which it did not hold."""

    debt: Scalar = 0.0
    forgiven: Scalar = 0.0
    rows: Scalar = 0.0
    violated: Scalar = 0.0
    recent: Recent = make_recent(1)
    broken: Scalar = 0.0

    def add(self, violated: Scalar, share: float, floor: float) -> Owed:
        """With one row more; the limit allows this share."""
        rows, total, debt = self.rows + 1.0, self.violated + violated, self.debt + violated - share
        floored = maximum(debt, floor)
        broken = ops.where(total > (1.0 + TOLERANCE) * share * rows, rows, self.broken)
        return Owed(floored, self.forgiven + (floored - debt), rows, total, self.recent.mark(rows, ops.columns(total), rows > 0.0), broken)

    def report(self, name: str, asked: float, words: str, **more: Any) -> LimitReport:
        """What became of a limit on the share of the rows that violate it; `words` are told of that share."""
        rows, seen = float(self.rows), {"debt": float(self.debt), "forgiven": float(self.forgiven)}
        if not rows:
            return LimitReport(name, "at most", asked, words="no row yet", seen=seen, **more)
        measured = float(self.violated / rows)
        return LimitReport(
            name,
            "at most",
            asked,
            measured,
            self.recent.mean(rows, self.violated),
            since=int(self.broken) + 1 if self.broken < rows else None,
            counted=int(rows),
            words=words.format(short(measured)),
            seen=seen,
            **more,
        )


class OffsetState(NamedTuple):
    """What is owed; the base, the spread, the widest residual and the first not 0."""

    owed: Owed = Owed()
    base: Scalar = 0.0
    spread: Scalar = 0.0
    widest: Scalar = 0.0
    first: Scalar = 0.0


class Offset(NamedTuple):
    """At most a share 1 - `level` of the rows has a target above the prediction: a debt moves the offset."""

    level: float

    @property
    def allowed(self) -> float:
        """The share of rows above."""
        return 1.0 - self.level

    def start(self) -> OffsetState:
        return OffsetState()

    def offset(self, state: OffsetState) -> Scalar:
        """What is added to the model's prediction."""
        x = ETA * state.owed.debt
        far = ops.pos(x - LINEAR) - ops.pos(-x - LINEAR)
        return state.base + state.spread * swing(x) + state.widest * far

    def learn(self, state: OffsetState, residual: Scalar, over: Scalar | None = None) -> OffsetState:
        """The state once the target is known; `over` is 1 where it lies above what was given out, for a residual that means nothing."""
        over = ops.where(residual > self.offset(state), 1.0, 0.0) if over is None else over
        rows, size = state.owed.rows + 1.0, ops.absolute(residual - state.base)
        spread: Scalar = state.spread + maximum(1.0 / rows, 0.01) * (size - state.spread)
        step = spread * maximum(0.03, 3.0 / ops.sqrt(1.0 + rows))
        return OffsetState(
            state.owed.add(over, self.allowed, -(TOP / ETA + 1.0)),
            state.base + step * (ops.where(residual > state.base, 1.0, 0.0) - self.allowed),
            spread,
            maximum(state.widest, size),
            ops.where(state.first > 0.0, state.first, size),
        )

    def report(self, state: OffsetState) -> LimitReport:
        """What became of it."""
        share, rows, proved = self.allowed, float(state.owed.rows), None
        if rows:
            proved = (0.0, min(1.0, share + largest_debt(ETA, float(state.first), float(state.widest)) / rows))
        words = f"the offset is {short(float(self.offset(state)))}, and {{}} of the targets lay above"
        why = "" if rows else "no row was counted yet"
        return state.owed.report(f"share above the quantile {self.level:g}", round(share, 12), words, proved=proved, why=why)


def largest_debt(eta: float, first: float, widest: float) -> float:
    """4 / eta + 1, and 1 for each doubling of the widest residual since the `first` that was not 0, and 1 for that one.

    >>> largest_debt(0.05, 1.0, 8.0)
    85.0
    """
    return TOP / eta + 1.0 + (1.0 + log2(widest / first) if first > 0.0 else 0.0)


class ErrorPrice(NamedTuple):
    """At most a share `at_most` of the rows has an error above `beyond`: a debt sets the price of being beyond."""

    beyond: float
    at_most: float

    def start(self) -> Owed:
        return Owed()

    def price(self, owed: Owed) -> Scalar:
        """What the distance beyond weighs, where a deviation of the targets weighs 1."""
        return swing(minimum(ops.pos(ETA * owed.debt), DEAREST))

    def learn(self, owed: Owed, error: Scalar) -> Owed:
        """What is owed once the error is known."""
        return owed.add(ops.where(ops.absolute(error) > self.beyond, 1.0, 0.0), self.at_most, FLOOR)

    def report(self, owed: Owed) -> LimitReport:
        """What became of it."""
        return owed.report(
            f"share of errors above {self.beyond:g}",
            self.at_most,
            f"{{}} of the predictions were off by more than {short(self.beyond)}",
            why="no prediction is right whatever comes",
            price=float(self.price(owed)),
            price_of="the weight of the distance beyond, in the cost of a row",
        )


# --- in the user's words ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Quantile(Settings):
    """A limit: at most a share ``1 - level`` of the targets lies above the prediction, on every stream.

    Parameters
    ----------
    level : float, default 0.9
        The level, above 0 and below 1.

    Examples
    --------
    >>> Quantile(0.9).level
    0.9
    """

    level: BelowOne = 0.9


@dataclass(frozen=True, repr=False)
class ErrorRate(Settings):
    """A limit: at most a share of the rows has a prediction that is off by more than a size.

    Parameters
    ----------
    beyond : float
        The size, above 0, in the unit of the targets.
    at_most : float, default 0.1
        The share, above 0 and below 1.

    Examples
    --------
    >>> ErrorRate(beyond=2.0, at_most=0.05).at_most
    0.05
    """

    beyond: Positive
    at_most: BelowOne = 0.1
