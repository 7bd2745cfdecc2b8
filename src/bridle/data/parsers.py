"""Raw files as arrays. A parser takes what it is given as it stands, and raises ValueError where it cannot."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bridle.storage import UNSOUND_ARCHIVE


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
    return _columns(ADULT, rows, named=[name for name in ADULT if name not in COUNTED])


GERMAN = (
    "checking", "duration", "history", "purpose", "amount", "savings", "employment", "rate", "status-sex", "debtors", "residence",
    "property", "age", "plans", "housing", "credits", "job", "dependants", "telephone", "foreign", "risk",
)  # fmt: skip
GERMAN_COUNTED = {"duration", "amount", "rate", "residence", "age", "credits", "dependants"}


def german(path: Path) -> ParsedTable:
    """The file german.data: no line of names, fields set apart by spaces; names are the publisher's codes, such as A11."""
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return _columns(GERMAN, rows, named=[name for name in GERMAN if name not in GERMAN_COUNTED])


def mixed(path: Path, named: Collection[str] = (), dated: Collection[str] = ()) -> ParsedTable:
    """A csv file, or a zip archive of one, under a line of names: columns of numbers, of names, and of dates (seconds since 1970, UTC).

    A row in which nothing stands but a date is left out.
    """
    if zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as packed:
                text = packed.read().decode("utf-8")
        except (IndexError, *UNSOUND_ARCHIVE) as error:
            raise ValueError(f"it is not a sound archive of one file ({error})") from None
    else:
        text = path.read_text(encoding="utf-8")
    header, *rows = csv.reader(io.StringIO(text, newline="")) if text else [[]]
    names = _shown(header)
    there = [row for row in rows if any(field for name, field in zip(names, row, strict=False) if name not in dated)]
    return _columns(names, there, named, dated)


def atomic(path: Path, named: Collection[str] = ()) -> ParsedTable:
    """A file with a tab between fields, under a line of names that end in their kinds, such as `user_id:token`: the format of RecBole."""
    header, *rows = (line.split("\t") for line in path.read_text(encoding="utf-8").strip("\n").split("\n"))
    return _columns(_shown([name.partition(":")[0] for name in header]), rows, named)


def _columns(names: tuple[str, ...], rows: Sequence[Sequence[str]], named: Collection[str], dated: Collection[str] = ()) -> ParsedTable:
    """Rows of text as numbers; a column of names as the numbers of the names, sorted."""
    if any(len(row) != len(names) for row in rows):
        raise ValueError(f"a row has not {len(names)} fields")
    columns: list[np.ndarray] = []
    categories: dict[str, tuple[str, ...]] = {}
    for name, fields in zip(names, zip(*rows, strict=True), strict=bool(rows)):
        if name in named:
            known, codes = np.unique(np.array(fields), return_inverse=True)
            categories[name] = tuple(known.tolist())
            columns.append(codes.astype(float))
        elif name in dated:
            columns.append(np.array([_seconds(field) for field in fields]))
        else:
            columns.append(np.array(fields, dtype=float))
    return ParsedTable(names, np.column_stack(columns) if rows else np.empty((0, len(names))), categories)


def _seconds(date: str) -> float:
    """Seconds since 1970; a date that names no zone is taken as UTC."""
    moment = datetime.fromisoformat(date)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _names(path: Path) -> tuple[str, ...]:
    """The names of the columns."""
    with open(path, encoding="utf-8", newline="") as file:
        return _shown(next(csv.reader(file), []))


def _shown(header: Sequence[str]) -> tuple[str, ...]:
    """Names that can be shown; the others are numbered."""
    return tuple(name if name.isprintable() and name.strip() else f"column {i + 1}" for i, name in enumerate(header))
