"""The real data of benchmarks/practice.py in the form of its tasks; at toy size a few rows are drawn in their layout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bridle import data
from parts.demand_rules import Array, Trace
from parts.toy import TOY

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from helpers.demand import PERIOD, demand

PRICES = ("nyse-o", "nyse-n", "djia", "msci", "sp500", "tse")
ROWS_IN_A_SLOT = 30
"""Of 10 seconds each, of 5 minutes."""

ROOM = 2.0
"""All the capacity there is, over the highest demand."""


def _trace(name: str, values: Array, day: int, slot: Array | None = None) -> Trace:
    """The first day is history."""
    when = np.arange(len(values)) if slot is None else slot.astype(int)
    return Trace(name, values, when, day, ROOM * float(values.max()), int(np.searchsorted(when, when[0] + day)))


def traces() -> list[Trace]:
    """Every demand that the data sets have."""
    if TOY:
        return [_trace("drawn", demand("seasonal", 3 * PERIOD, seed=0), PERIOD)]
    found = []
    for name, columns in (
        ("google", ("cpu_util_percent", "mem_util_percent", "assigned_mem_percent")), ("azure", ("cpu_usage", "assigned_mem")),
    ):  # fmt: skip
        table = data.load(name)
        found += [_trace(f"{name} {column.removesuffix('_percent')}", table[column], 288) for column in columns]
    table = data.load("alibaba")
    slots = len(table.values) // ROWS_IN_A_SLOT
    for column in table.columns:
        means = table[column][: slots * ROWS_IN_A_SLOT].reshape(slots, -1).mean(axis=1)
        found.append(_trace(f"alibaba {column.removesuffix('_percent')}", means, 288))
    table = data.load("electricity")
    found += [_trace(f"electricity {utility}", table[utility], 24) for utility in ("PGE", "SCE", "SDGE", "VEA")]
    table = data.load("bikes")
    found.append(_trace("bikes", table["bikers"], 24, 24.0 * (table["day"] - 1.0) + table["hr"]))
    table = data.load("traffic")
    found.append(_trace("traffic", table["traffic_volume"], 24, (table["datetime"] - table["datetime"][0]) / 3600.0))
    return found


class LabelledRows(NamedTuple):
    """Features, +1 or -1 for each row, where there are groups 1 for the one and 0 for the other, and how many rows are history."""

    features: Array
    signs: Array
    groups: Array
    past: int = 0


def one_hot(table: data.Data, columns: tuple[str, ...]) -> Array:
    """A column of 0 and 1 for each value of each of these columns."""
    return np.column_stack([1.0 * (table[column] == value) for column in columns for value in np.unique(table[column])])


def shown() -> LabelledRows:
    """Impressions: item, position and user features, and whether they were clicked."""
    if TOY:
        return _drawn(300, 6)
    table = data.load("clicks")
    features = one_hot(table, ("item_id", "position", *(f"user_feature_{i}" for i in range(4))))
    first_day = int(np.searchsorted(table["timestamp"], table["timestamp"][0] + 86400.0))
    return LabelledRows(features, 2.0 * table["click"] - 1.0, np.zeros(len(features)), first_day)


def people() -> LabelledRows:
    """Persons of the census, those who earn over 50,000 dollars, and men."""
    if TOY:
        return _drawn(300, 4)
    table = data.load("adult")
    numbers = [table[name] for name in ("age", "education-num", "hours-per-week")]
    numbers += [np.log1p(table[name]) for name in ("capital-gain", "capital-loss")]
    kinds = one_hot(table, ("workclass", "marital-status", "occupation", "relationship"))
    return LabelledRows(
        np.column_stack([*numbers, kinds]), 2.0 * table.equals("income", ">50K") - 1.0, 1.0 * table.equals("sex", "Male")
    )  # fmt: skip


def relatives(name: str) -> Array:
    """Price relatives, one row a day."""
    if TOY:
        return np.exp(0.01 * np.random.default_rng(0).standard_normal((90, 4)))
    return data.load(name).values


def _drawn(rows: int, features: int) -> LabelledRows:
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((rows, features)), 1.0 * (rng.random(rows) < 0.6)
    return LabelledRows(X, np.where(X[:, 0] + groups + rng.standard_normal(rows) > 1.0, 1.0, -1.0), groups)
