"""Limits on rates beside a network, or any model that gives scores: which rows are alarms, so that the rates come out as asked.

A rate has no gradient, so no optimiser can hold it; a threshold on the scores can, whatever was learned (`bridle.adapters.levels`).

>>> from bridle.adapters.rate_limits import Recall
>>> limiter, rng = RateLimiter([Recall(at_least=0.9)]), np.random.default_rng(0)
>>> for _ in range(60):  # a batch is scored, acted upon, and then its labels come
...     scores = rng.normal(0.0, 2.0, size=50)
...     labels = rng.random(50) < 1.0 / (1.0 + np.exp(-scores))
...     alarms = limiter.learn(scores, labels)
>>> abs(limiter.limits_[0].measured - 0.9) < 0.01
True
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bridle import validate
from bridle.adapters.limit_report import LimitTable
from bridle.adapters.thresholds import RateLimited, decide_batch, learn_batch, thresholds
from bridle.core import InputError
from bridle.ops import Array

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
    >>> from bridle.adapters.rate_limits import AlertRate
    >>> limiter = RateLimiter([AlertRate(at_most=0.5)])
    >>> limiter.alarms(np.array([3.0, -3.0]))
    array([1., 0.])
    >>> limiter.learn(np.array([3.0, -3.0]), np.array([1, 0]))
    array([1., 0.])
    """

    def __init__(self, limits: Sequence[RateLimited], priority: int = 0) -> None:
        several = isinstance(limits, (list, tuple)) and not hasattr(limits, "_fields")
        self._model = thresholds(limits if several else [limits], priority)  # type: ignore[list-item]
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
        return decide_batch(self._model, self._state, values, *self._columns(len(values), groups, periods))[2]

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
            raise InputError(f"labels must be 0 or 1 for each of the {len(values)} scores, not {validate.show(labels)}")
        of = self._columns(len(values), groups, periods)
        self._state, alarms = learn_batch(self._model, self._state, values, 2.0 * truth - 1.0, *of)
        if periods is not None and len(values):
            self._period = float(of[1, -1])
        return alarms

    def _columns(self, rows: int, groups: object, periods: object) -> Array:
        """The group and the period of every row, nan where none was given."""
        given = [
            None if each is None else _column(name, each, name == "groups") for name, each in zip(NAMES, (groups, periods), strict=True)
        ]
        for name, column in zip(NAMES, given, strict=True):
            if column is not None and len(column) != rows:
                raise InputError(f"{name} must be a number for each of the {rows} rows, not {len(column)}")
        last = self._period
        for row in range(rows):
            group, period = (None if column is None else float(column[row]) for column in given)
            self._model.check(group, period, last)
            last = period
        return np.array([np.full(rows, np.nan) if column is None else column for column in given])

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
        raise InputError(f"{name} must be a finite number for each row, not {validate.show(values)}")
    return column.astype(float)
