"""The market of problem `portfolio`: growth and predicted risk of every day, from a data set or a file of prices; and what a game is worth.

A file is CSV: a line that names the assets, then one line for each day, the oldest first. A first column that is not of numbers (dates)
is left out. Numbers are prices, or, with ``relatives=True``, price relatives: today's price over yesterday's.
"""

from __future__ import annotations

import csv
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
    if is_file(data):
        where = os.stat(data)
        return _of_file(os.path.abspath(data), where.st_mtime_ns, where.st_size, bool(relatives), lookback)
    validate.one_of("data", data, PRICES)
    if relatives is not None:
        raise InputError(f"relatives is for a file of prices only, not for data set {data}")
    return of_data_set(data, lookback)


def is_file(data: object) -> bool:
    """Whether this names a file, not a data set; one that is not there is an error that says so."""
    if not isinstance(data, (str, os.PathLike)) or (data in PRICES) or not os.fspath(data).endswith(".csv"):
        return False
    if not os.path.isfile(data):
        raise InputError(f"data: there is no file {os.fspath(data)}")
    return True


@lru_cache(maxsize=2)
def of_data_set(data: str, lookback: int) -> Market:
    """The market of a data set."""
    from bridle.data import load

    return _market(data, load(data).values, lookback)


@lru_cache(maxsize=2)
def _of_file(path: str, changed: int, size: int, relatives: bool, lookback: int) -> Market:
    """The market of a file, as long as it does not change."""
    return _market(os.path.basename(path), read_prices(path, relatives), lookback)


def read_prices(path: str, relatives: bool = False) -> Array:
    """The price relatives (days, assets) of a file of prices, or of relatives."""
    name, kind = os.path.basename(path), "price relative" if relatives else "price"
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = [(line.line_num, row) for line in [csv.reader(file)] for row in line if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"data: {name} cannot be read as CSV: {error}") from None
    if len(lines) < 2:
        raise InputError(f"data: {name} must have a line that names the assets, and lines of numbers below it")
    (_, header), *days = lines
    first = 0 if _is_number(days[0][1][0]) or not days[0][1][0].strip() else 1
    assets = [cell.strip() for cell in header[first:]]
    if len(assets) < 2 or all(_is_number(cell) for cell in assets):
        raise InputError(f"data: {name} must name two assets or more in its first line, not {validate.show(header)}")
    values = np.empty((len(days), len(assets)))
    for t, (number, row) in enumerate(days):
        if len(row) != len(header):
            raise InputError(f"data: {name}, line {number} has {len(row)} cells; its first line has {len(header)}")
        for i, cell in enumerate(row[first:]):
            if not cell.strip() or cell.strip().lower() in ("nan", "na", "n/a", "null", "none", "-"):
                raise InputError(f"data: {name}, line {number}: the {kind} of {assets[i]} is missing")
            values[t, i] = float(cell) if _is_number(cell) else np.nan
            if not 0.0 < values[t, i] < np.inf:
                raise InputError(f"data: {name}, line {number}: the {kind} of {assets[i]} must be a number above 0, not {cell.strip()!r}")
    return values if relatives else np.asarray(values[1:] / values[:-1])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


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
