"""Tables of the user's own: columns of numbers by name, from a CSV file with a line of names, or from the arrays of an .npz.

What is wrong with a file is one InputError that names the argument, the file, the line and what stands there. Nothing is ever unpickled.
"""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridle import storage, validate
from bridle.core import InputError
from bridle.ops import Array
from bridle.records import Arrays
from bridle.storage import StrPath

ENDINGS = (".csv", ".npz")

TIMES = ("time", "timestamp", "date", "datetime", "slot")
"""Columns that say when a row was: no quantities. So does a first column that does not begin with a number."""


class OwnTable(NamedTuple):
    """The columns of a file in their order, all of one length; `times` are those that say when, as they stand there.

    `places` says for each row where it stands.
    """

    path: str
    columns: Arrays
    times: dict[str, list[str]]
    places: list[str]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values())))

    def need(self, argument: str, names: Iterable[str]) -> list[Array]:
        """These columns; an error says which is missing."""
        for name in names:
            if name not in self.columns:
                there = ", ".join([*self.columns, *self.times])
                raise InputError(f"{argument}: {self.path} must have a column {name}; its columns are {there}")
        return [self.columns[name] for name in names]


def is_own_file(name: object) -> bool:
    """Whether a name is that of a file, and not of a data set."""
    return isinstance(name, (str, os.PathLike)) and os.fsdecode(name).lower().endswith(ENDINGS)


def read_table(argument: str, path: StrPath) -> OwnTable:
    """The table in a file, which an argument of this name was given as."""
    shown = os.fsdecode(path)
    if not os.path.isfile(shown):
        raise InputError(f"{argument}: there is no file {shown}" if not os.path.exists(shown) else f"{argument}: {shown} is not a file")
    try:
        found = os.stat(shown)
        return _read(argument, shown, os.path.abspath(shown), found.st_mtime_ns, found.st_size)
    except OSError as error:
        raise InputError(f"{argument}: cannot read {shown}: {storage.reason(error)}") from None


@lru_cache(maxsize=4)
def _read(argument: str, path: str, *version: object) -> OwnTable:
    """The table; read once as long as the file stays the same."""
    table = _npz(argument, path) if path.lower().endswith(".npz") else _csv(argument, path)
    if not table.columns:
        raise InputError(f"{argument}: {path} has no column of numbers")
    if not table.rows:
        raise InputError(f"{argument}: {path} has no rows under its names")
    return table


def _csv(argument: str, path: str) -> OwnTable:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [(line, row) for line, row in enumerate(csv.reader(file), 1) if any(field.strip() for field in row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{argument}: {path} cannot be read as CSV: {' '.join(str(error).split())}") from None
    names = [field.strip() for field in lines[0][1]] if lines else []
    _check_names(argument, path, names)
    for line, row in lines[1:]:
        if len(row) != len(names):
            raise InputError(f"{argument}: {path}, line {line}: {len(row)} fields stand under {len(names)} names")
    columns: Arrays = {}
    times: dict[str, list[str]] = {}
    for i, name in enumerate(names):
        fields = [row[i].strip() for _, row in lines[1:]]
        if name.lower() in TIMES or (i == 0 and len(names) > 1 and fields and fields[0] and np.isnan(_number(fields[0]))):
            times[name] = fields
            continue
        values = np.array([_number(field) for field in fields])
        if not np.isfinite(values).all():
            at = int(np.argmin(np.isfinite(values)))
            where = f"{argument}: {path}, line {lines[1 + at][0]}"
            raise validate.refused(f"{where}: {name} must be a finite number", fields[at])
        columns[name] = values
    return OwnTable(path, columns, times, [f"line {line}" for line, _ in lines[1:]])


def _number(field: str) -> float:
    """A field as a number; NaN where it is none."""
    try:
        return float(field)
    except ValueError:
        return float("nan")


def _check_names(argument: str, path: str, names: list[str]) -> None:
    if not names:
        raise InputError(f"{argument}: {path} is empty; its first line must name the columns")
    if all(np.isfinite(_number(name)) for name in names):
        raise InputError(f"{argument}: {path} must name its columns in the first line, not begin with {validate.show(', '.join(names))}")
    for i, name in enumerate(names):
        if not name or name in names[:i]:
            raise validate.refused(f"{argument}: {path}: column {i + 1} must have a name of its own", name)


def read_arrays(shown: str, path: str, check: Callable[[str], object] = str) -> dict[str, NDArray[np.generic]]:
    """The arrays of an .npz file by name, each name checked before its array is read; errors call the file what it is `shown` as."""
    arrays: dict[str, NDArray[np.generic]] = {}
    where = ""
    try:
        with open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                raise InputError(f"{shown} is not an .npz file, as numpy.savez writes")
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            for name in archive.files:
                check(name)
                where = f": {name}"
                arrays[name] = archive[name]
    except InputError:
        raise
    except (OSError, ValueError, KeyError, *storage.UNSOUND_ARCHIVE) as error:
        raise InputError(f"{shown}{where} cannot be read as an array: {' '.join(str(error).split()) or type(error).__name__}") from None
    return arrays


def _npz(argument: str, path: str) -> OwnTable:
    arrays = read_arrays(f"{argument}: {path}", path)
    times = {name: [str(each) for each in np.ravel(arrays.pop(name))] for name in list(arrays) if name.lower() in TIMES}
    columns: Arrays = {}
    for name, array in arrays.items():
        columns[name] = validate.array(f"{argument}: {path}: {name}", array)
        if columns[name].ndim != 1:
            raise InputError(f"{argument}: {path}: {name} must have one axis, of rows, not the shape {columns[name].shape}")
    if len(lengths := {len(column) for column in columns.values()}) > 1:
        raise InputError(f"{argument}: {path}: its arrays must be equally long, not {', '.join(map(str, sorted(lengths)))}")
    return OwnTable(path, columns, times, [f"row {row + 1}" for row in range(max(lengths, default=0))])
