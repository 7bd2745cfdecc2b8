"""Raw files as arrays. A parser takes what it is given as it stands, and raises ValueError where it cannot."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np


class ParsedTable(NamedTuple):
    """Columns and rows of numbers; for a column of names, `categories` holds the names in the order of their numbers."""

    columns: tuple[str, ...]
    values: np.ndarray
    categories: dict[str, tuple[str, ...]]


def numbers(path: Path) -> ParsedTable:
    """A csv file of numbers under a line of names."""
    columns = _names(path)
    # Not by lines of text: a name may be a character that Python takes for the end of one.
    values = np.loadtxt(path, delimiter=",", skiprows=1, quotechar='"', ndmin=2, encoding="utf-8")
    if values.shape[1] != len(columns):
        raise ValueError(f"{len(columns)} names stand over {values.shape[1]} columns")
    return ParsedTable(columns, values, {})


def price_relatives(path: Path) -> ParsedTable:
    """A csv file of cumulative products of price relatives, as price relatives: each day's price over that of the day before."""
    table = numbers(path)
    levels = np.concatenate([np.ones((1, len(table.columns))), table.values])
    if not (levels > 0.0).all():
        raise ValueError("a price is not above zero")
    return table._replace(values=levels[1:] / levels[:-1])


ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race", "sex",
    "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
COUNTED = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}


def adult(path: Path) -> ParsedTable:
    """The file adult.data: no line of names, fields set apart by a comma and a space, "?" for what is not known."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    if any(len(row) != len(ADULT) for row in rows):
        raise ValueError(f"a row has not {len(ADULT)} fields")
    columns: list[np.ndarray] = []
    categories: dict[str, tuple[str, ...]] = {}
    for name, fields in zip(ADULT, zip(*rows, strict=True), strict=True):
        if name in COUNTED:
            columns.append(np.array(fields, dtype=float))
            continue
        names, codes = np.unique(np.array(fields), return_inverse=True)
        categories[name] = tuple(names.tolist())
        columns.append(codes.astype(float))
    return ParsedTable(ADULT, np.column_stack(columns), categories)


def _names(path: Path) -> tuple[str, ...]:
    """The names of the columns; those that cannot be shown are numbered."""
    with open(path, encoding="utf-8", newline="") as file:
        header: list[str] = next(csv.reader(file), [])
    return tuple(name if name.isprintable() and name.strip() else f"column {i + 1}" for i, name in enumerate(header))
