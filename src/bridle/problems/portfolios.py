"""The market of problem `portfolio`: growth and predicted risk of every day, from a data set or a file of prices; and what a game is worth.

A file is CSV (a line that names the assets, then one line for each day, the oldest first) or .npz; dates are left out (`own_tables`).
Numbers are prices, or, with ``relatives=True``, price relatives: today's price over yesterday's.
"""

from __future__ import annotations

import os
from functools import lru_cache
from math import exp, sqrt
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bridle import validate
from bridle.core import InputError, Round
from bridle.functions import LogWealthLoss
from bridle.ops import Array
from bridle.problems.own_tables import is_own_file, read_table

PRICES = ("nyse-o", "nyse-n", "djia", "msci", "sp500", "tse")
"""The data sets of prices."""

YEAR = 252.0
"""Trading days in a year."""


class Market(NamedTuple):
    """Costs of the days, twice the predicted covariance of a year, its variance for an equal share in each asset and for the worst one."""

    cost: LogWealthLoss
    P: Array
    even: Array
    alone: Array
    lipschitz: float


def market(data: str, relatives: bool | None, lookback: int) -> Market:
    """The market of a data set, or of a file, after the first `lookback` days."""
    if is_own_file(data):
        return _market(os.path.basename(data), read_prices(data, bool(relatives)), lookback)
    validate.one_of("data", data, PRICES)
    if relatives is not None:
        raise InputError(f"relatives is for a file of prices only, not for data set {data}")
    return of_data_set(data, lookback)


@lru_cache(maxsize=2)
def of_data_set(data: str, lookback: int) -> Market:
    """The market of a data set."""
    from bridle.data import load

    return _market(data, load(data).values, lookback)


def read_prices(path: str, relatives: bool = False) -> Array:
    """The price relatives (days, assets) of a file of prices, or of relatives."""
    table, kind = read_table("data", path), "price relative" if relatives else "price"
    if len(table.columns) < 2:
        raise InputError(f"data: {path} must have columns of two assets or more, not of {', '.join(table.columns)} alone")
    values = np.column_stack(list(table.columns.values()))
    if (values <= 0.0).any():
        t, i = (int(place) for place in np.argwhere(values <= 0.0)[0])
        name = list(table.columns)[i]
        raise InputError(f"data: {path}, {table.places[t]}: the {kind} of {name} must be above 0, not {values[t, i]:g}")
    return values if relatives else np.asarray(values[1:] / values[:-1])


def _market(name: str, returns: Array, lookback: int) -> Market:
    if lookback >= len(returns):
        raise InputError(f"lookback must be below {len(returns)}, the days that {name} has, not {lookback}")
    windows = sliding_window_view(returns, lookback, axis=0)[:-1]  # those before each day
    P = np.empty((len(windows), returns.shape[1], returns.shape[1]))
    for start in range(0, len(P), 256):
        apart = windows[start : start + 256]
        apart = apart - apart.mean(axis=-1, keepdims=True)
        P[start : start + 256] = (2.0 * YEAR / (lookback - 1.0)) * (apart @ apart.swapaxes(1, 2))
    days = returns[lookback:]
    worst = days.min(axis=1)  # growth is nowhere below it on the simplex
    steepest = max(float((np.linalg.norm(days, axis=1) / worst).max()), float(np.linalg.norm(P, axis=-1).max()))
    alone = 0.5 * np.einsum("tii->ti", P).max(axis=1)
    return Market(LogWealthLoss(days, worst), P, 0.5 * P.mean(axis=(1, 2)), alone, steepest)


def traded(relatives: Array, decisions: Array) -> Array:
    """The share of wealth that is bought (and as much sold) each day to get from what the day before has left to the decision.

    >>> traded(np.array([[2.0, 1.0], [1.0, 1.0]]), np.array([[0.5, 0.5], [0.5, 0.5]]))  # 2/3 and 1/3 are left after the first day
    array([0.        , 0.16666667])
    """
    grown = relatives[:-1] * decisions[:-1]
    left = grown / grown.sum(axis=1, keepdims=True)
    return np.append(0.0, 0.5 * np.abs(decisions[1:] - left).sum(axis=1))


def measures(rounds: Round, decisions: Array, costs: Array, values: Array) -> dict[str, float]:
    """What a game of `portfolio` is worth: wealth from 1 at the start, growth and volatility of its logarithm in a year, and more.

    `turnover` is the share of wealth that is traded in a day, on average; `violated` is the share of days above the limit.
    """
    relatives = np.asarray(rounds.cost.a)  # type: ignore[attr-defined]  # rounds of this problem
    growth = -np.asarray(costs)
    return {
        "wealth": exp(float(growth.sum())),
        "growth": YEAR * float(growth.mean()),
        "volatility": sqrt(YEAR) * float(growth.std()),
        "turnover": float(traded(relatives, decisions).mean()),
        "violated": float((np.asarray(values)[:, 0] > 0.0).mean()),
    }
