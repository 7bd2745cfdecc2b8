"""A quantile held by an offset: the share of rows whose target lies above the prediction comes out as asked, whatever the stream does.

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
Reference: bridle (this file); I. Gibbs, E. Candes. Adaptive Conformal Inference Under Distribution Shift. NeurIPS 2021, for the identity.

Proof. Where eta D >= 4, o >= b + 2 M: a row above has r - b > 2 M, and M more than doubles (or is no longer 0). Elsewhere D <= 4 / eta before
the row, and it grows by at most 1. So D exceeds 4 / eta + 1 by no more than the number of doublings: log2(M / first), and one more from 0.

>>> import numpy as np
>>> limit = Quantile(0.9)
>>> state, above = limit.start(), 0
>>> for residual in np.random.default_rng(0).standard_normal(2000).tolist():
...     above += residual > limit.offset(state)
...     state = limit.count(state, residual)
>>> round(above / 2000, 2), bool(abs(above - 0.1 * 2000 - state.debt) < 1e-9)
(0.1, True)
"""

from __future__ import annotations

from math import log2
from typing import NamedTuple

from bridle import ops, validate
from bridle.core import InputError
from bridle.ops import Scalar, maximum

ETA = 0.05
"""How much of the spread a debt of one row is worth."""

LINEAR, FAR = 2.0, 4.0
"""From |eta D| = 2 on the offset also grows with the widest residual; from 4 on it is beyond twice of that."""


class OffsetState(NamedTuple):
    """The debt, and what was forgiven; the base, the spread, the widest residual and the first not 0; the rows, and how many were above."""

    debt: Scalar
    forgiven: Scalar
    base: Scalar
    spread: Scalar
    widest: Scalar
    first: Scalar
    rows: Scalar
    above: Scalar


class QuantileLimit(NamedTuple):
    """At most a share 1 - `level` of the rows has a target above the prediction: a debt moves the offset."""

    level: float
    eta: float = ETA

    @property
    def allowed(self) -> float:
        """The share of rows above."""
        return 1.0 - self.level

    def start(self) -> OffsetState:
        return OffsetState(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def offset(self, state: OffsetState) -> Scalar:
        """What is added to the model's prediction."""
        x = self.eta * state.debt
        far = ops.pos(x - LINEAR) - ops.pos(-x - LINEAR)
        return state.base + state.spread * x * (1.0 + abs(x)) + state.widest * far

    def count(self, state: OffsetState, residual: Scalar, offset: Scalar | None = None) -> OffsetState:
        """The state once the target is known; `offset` is the one that was given out, where it was not the present one."""
        over = 1.0 * (residual > (self.offset(state) if offset is None else offset))
        rows, size = state.rows + 1.0, abs(residual - state.base)
        spread = state.spread + maximum(1.0 / rows, 0.01) * (size - state.spread)
        step = spread * maximum(0.03, 3.0 / ops.sqrt(1.0 + rows))
        debt = state.debt + over - self.allowed
        floored = maximum(debt, -(FAR / self.eta + 1.0))
        return OffsetState(
            floored,
            state.forgiven + (floored - debt),
            state.base + step * (1.0 * (residual > state.base) - self.allowed),
            spread,
            maximum(state.widest, size),
            ops.where(state.first > 0.0, state.first, size),
            rows,
            state.above + over,
        )


def Quantile(level: float = 0.9) -> QuantileLimit:
    """At most a share 1 - `level` of the rows lies above the prediction, on every stream.

    >>> Quantile(0.9).level
    0.9
    """
    share = validate.positive("level", level)
    if share >= 1.0:
        raise InputError(f"level must be below 1, not {validate.show(level)}")
    return QuantileLimit(share)


def largest_debt(eta: float, first: float, widest: float) -> float:
    """4 / eta + 1, and 1 for each doubling of the widest residual since the `first` that was not 0, and 1 for that one.

    >>> largest_debt(0.05, 1.0, 8.0)
    85.0
    """
    return FAR / eta + 1.0 + (1.0 + log2(widest / first) if first > 0.0 else 0.0)
