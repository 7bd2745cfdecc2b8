"""A disk under SQLite that knows what was synced, loses the rest when the power fails, and breaks on demand.

apsw lets a file system be written in Python. Files are real; beside them is kept what has been synced of each, and what has been written
since, in order. `images` says what a machine may find after a power cut: nothing of what was not synced, all of it, or some sectors of it.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512


class ForgetfulDisk:
    """What is on the disk for certain, and what is only on its way; `when` is called before and after every change."""

    def __init__(self) -> None:
        self.synced: dict[str, bytearray] = {}
        self.pending: dict[str, list[tuple[int, bytes | None]]] = {}  # writes at an offset; None: cut off there
        self.when: Callable[[], None] = lambda: None
        self.broken: Callable[[str, str], BaseException | None] = lambda operation, path: None
        self.syncs = 0
        self.vfs = _DiskVFS(self)

    def close(self) -> None:
        """Let SQLite forget this disk."""
        self.vfs.unregister()

    def opened(self, path: str) -> None:
        """A file begins as it is found."""
        if path not in self.synced:
            self.synced[path] = bytearray(Path(path).read_bytes() if os.path.exists(path) else b"")
            self.pending[path] = []

    def change(self, operation: str, path: str, do: Callable[[], Any], note: Callable[[], None]) -> Any:
        """Do something to a file, unless it is to fail, and note it."""
        problem = self.broken(operation, path)
        if problem is not None:
            raise problem
        self.when()
        result = do()
        note()
        self.when()
        return result

    def sync(self, path: str) -> None:
        """What was written to a file is there for good."""
        self.syncs += 1
        apply(self.synced[path], self.pending[path])
        self.pending[path] = []

    def forget(self, path: str) -> None:
        """What was written to a file never gets to the disk, as after a sync that failed: the system takes what it holds for written."""
        self.pending[path] = []

    def images(self, rng: random.Random) -> Iterable[dict[str, bytes]]:
        """What may be found after a power cut: the worst, the best, and something between."""
        for keep in (lambda: False, lambda: True, lambda: rng.random() < 0.5):
            found = {}
            for path, synced in self.synced.items():
                image = bytearray(synced)
                apply(image, [part for change in self.pending[path] for part in sectors(change) if keep()])
                found[path] = bytes(image)
            yield found

    def connect(self, path: str, mode: str) -> ApswConnection:
        """A connection on this disk that speaks like Python's own."""
        flags = apsw.SQLITE_OPEN_READONLY if mode == "ro" else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        return ApswConnection(apsw.Connection(path, flags=flags, vfs=self.vfs.name))


def sectors(change: tuple[int, bytes | None]) -> list[tuple[int, bytes | None]]:
    """A change in pieces that a disk writes whole."""
    offset, data = change
    if data is None:
        return [change]
    edges = [offset, *range(offset - offset % SECTOR + SECTOR, offset + len(data), SECTOR), offset + len(data)]
    return [(begin, data[begin - offset : end - offset]) for begin, end in pairwise(edges)]


def apply(image: bytearray, changes: Iterable[tuple[int, bytes | None]]) -> None:
    """Do changes to the content of a file."""
    for offset, data in changes:
        if data is None:
            del image[offset:]
        else:
            image.extend(bytes(max(0, offset - len(image))))
            image[offset : offset + len(data)] = data


class _DiskVFS(apsw.VFS):
    def __init__(self, disk: ForgetfulDisk) -> None:
        self.disk, self.name = disk, f"forgetful-{id(disk)}"
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.disk.opened(str(path))
        return _DiskFile(name, flags, str(path), self.disk)

    def xDelete(self, name: str, sync: bool) -> None:
        def gone() -> None:
            self.disk.synced.pop(name, None)
            self.disk.pending.pop(name, None)

        self.disk.change("delete", name, lambda: super(_DiskVFS, self).xDelete(name, sync), gone)


class _DiskFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], path: str, disk: ForgetfulDisk) -> None:
        self.path, self.disk = path, disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        note = (offset, bytes(data))
        self.disk.change(
            "write", self.path, lambda: super(_DiskFile, self).xWrite(data, offset), lambda: self.disk.pending[self.path].append(note)
        )

    def xTruncate(self, size: int) -> None:
        self.disk.change(
            "truncate", self.path, lambda: super(_DiskFile, self).xTruncate(size), lambda: self.disk.pending[self.path].append((size, None))
        )

    def xSync(self, flags: int) -> None:
        self.disk.change("sync", self.path, lambda: super(_DiskFile, self).xSync(flags), lambda: self.disk.sync(self.path))


class _Answer:
    """What a statement gave."""

    def __init__(self, rows: list[Any], rowcount: int, lastrowid: int) -> None:
        self.rows, self.rowcount, self.lastrowid = rows, rowcount, lastrowid

    def fetchall(self) -> list[Any]:
        return self.rows

    def fetchone(self) -> Any:
        return self.rows[0] if self.rows else None

    def __iter__(self) -> Any:
        return iter(self.rows)


class ApswConnection:
    """apsw's connection with the manners of `sqlite3.Connection`, as far as a store needs them."""

    def __init__(self, real: apsw.Connection) -> None:
        self.real = real
        real.set_busy_timeout(1000)

    @property
    def in_transaction(self) -> bool:
        return self.real.in_transaction

    def _run(self, run: Callable[..., Any], *arguments: Any) -> _Answer:
        before = self.real.total_changes()
        try:
            return _Answer(list(run(*arguments)), self.real.total_changes() - before, self.real.last_insert_rowid())
        except apsw.Error as problem:
            said = sqlite3.OperationalError(str(problem))
            own = {apsw.FullError: sqlite3.SQLITE_FULL, apsw.IOError: sqlite3.SQLITE_IOERR}.get(
                type(problem), 0
            )  # one of ours has no number
            said.sqlite_errorcode = getattr(problem, "extendedresult", own)
            raise said from problem

    def execute(self, text: str, values: Any = ()) -> _Answer:
        return self._run(self.real.execute, text, values)

    def executemany(self, text: str, rows: Any) -> _Answer:
        return self._run(self.real.executemany, text, rows)

    def close(self) -> None:
        try:
            self.real.close()
        except apsw.Error as problem:
            raise sqlite3.OperationalError(str(problem)) from problem
