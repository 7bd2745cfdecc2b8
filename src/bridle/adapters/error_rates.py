"""An error rate held by a price: at most a share of the predictions is off by more than so much.

A row counts, v = 1, where its error is above `beyond`, and D is the debt: such rows beyond the share eps allowed. The distance beyond is a
second loss, (|error| - beyond)^+ in deviations of the targets, that weighs

    lam = h((eta D)^+),   h(x) = x (1 + |x|),   eta = .05,   eta D at most 2;        D <- max(D + v - eps, -20),   F += what that floor adds

Guarantee: sum v = eps n + D - F. That D stays small cannot be promised: no prediction is right whatever comes.
Reference: bridle (this file).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bridle import ops, validate
from bridle.adapters.levels import ETA, FLOOR, swing
from bridle.adapters.limit_report import LimitReport, short
from bridle.adapters.limits import changed, written
from bridle.adapters.offsets import RowCount, no_rows
from bridle.core import InputError
from bridle.ops import Scalar, maximum, minimum

DEAREST = 2.0
"""The highest level of the price of an error rate."""


class ErrorState(NamedTuple):
    """The debt, and what its floor has forgiven; the rows that were beyond."""

    debt: Scalar
    forgiven: Scalar
    wrong: RowCount


class ErrorRateLimit(NamedTuple):
    """At most a share `at_most` of the rows has an error above `beyond`: a debt sets the price of being beyond."""

    beyond: float
    at_most: float

    def start(self) -> ErrorState:
        return ErrorState(0.0, 0.0, no_rows())

    def price(self, state: ErrorState) -> Scalar:
        """What the distance beyond weighs, where a deviation of the targets weighs 1."""
        return swing(minimum(ops.pos(ETA * state.debt), DEAREST))

    def learn(self, state: ErrorState, error: Scalar) -> ErrorState:
        """The state once the error is known."""
        wrong = ops.where(ops.absolute(error) > self.beyond, 1.0, 0.0)
        debt = state.debt + wrong - self.at_most
        floored = maximum(debt, FLOOR)
        return ErrorState(floored, state.forgiven + (floored - debt), state.wrong.add(wrong, self.at_most))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self._asdict()

    def set_params(self, **changes: object) -> ErrorRateLimit:
        return changed(ErrorRate, self, changes)

    def __repr__(self) -> str:
        return written(ErrorRate, self)


def ErrorRate(beyond: float, at_most: float = 0.1) -> ErrorRateLimit:
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
    share = validate.positive("at_most", at_most)
    if share >= 1.0:
        raise InputError(f"at_most must be a share below 1, not {validate.show(at_most)}")
    return ErrorRateLimit(validate.positive("beyond", beyond), share)


def error_report(limit: ErrorRateLimit, state: ErrorState) -> LimitReport:
    """What became of an error rate."""
    count = state.wrong
    measured, recent = count.shares()
    price = float(limit.price(state))
    words = "no row yet" if measured is None else f"{short(measured)} of the predictions were off by more than {short(limit.beyond)}"
    return LimitReport(
        f"share of errors above {limit.beyond:g}", "at most", limit.at_most, measured, recent, None,
        "no prediction is right whatever comes", price, "the weight of the distance beyond, in the cost of a row", count.since,
        int(count.rows), 0, words, {"debt": float(state.debt), "forgiven": float(state.forgiven)},
    )  # fmt: skip
