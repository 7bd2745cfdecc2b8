"""A high-water mark next to a SQLite database: `run.db-mark` says how much was committed, so that a loss is noticed.

After a crash SQLite replays its log up to the first frame that is not whole, and says nothing of what comes after it. One flipped bit in
the log therefore takes back rounds and payments that were acknowledged. The mark is outside of the log and of the database:

    events      the `id` of the last row of table `event`; SQLite numbers the rows from 1 without gaps
    sessions    how many rows table `session` has; none is ever dropped
    gone        how many rows of `event` were dropped on purpose (`EventStore.trim`), at most

A database that is behind its mark, or has fewer rows than `events` less `gone`, has lost something and is refused. A mark that is behind
its database is fine: whoever crashed between the commit and the mark had not answered yet.

`events` and `sessions` are written after the commit and before the answer, so that a mark is never ahead of what is durable. `gone` is
written before its commit. A kill loses no mark, because the system keeps what was written. A sync at every commit would make a durable
round 1.4 times as long, so the mark is synced once in `SYNCED` seconds: after a power cut it may lag by the events of about that time.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import NamedTuple
from zlib import crc32

from bridle import storage
from bridle.core import InputError
from bridle.database.rows import Damaged, StoreError
from bridle.storage import Disk, reason

SECTOR = 512
"""Bytes that a disk writes as a whole: each number has its own."""

SYNCED = 1.0
"""Seconds between two syncs of the number of events; 0 syncs it at every commit."""

COUNTS = "SELECT (SELECT max(id) FROM event), (SELECT count(*) FROM session), (SELECT count(*) FROM event)"
"""What is compared with a mark, in one read; it takes about 3 ms for a million rows."""


class Marked(NamedTuple):
    """The numbers of a mark."""

    events: int = 0
    sessions: int = 0
    gone: int = 0


PLACES = {name: i * SECTOR for i, name in enumerate(Marked._fields)}
"""Where each number is in the file."""


class HighWaterMark:
    """The mark of one database. Whoever writes it is the only one who writes the database at that moment (`owners`)."""

    def __init__(self, database: str) -> None:
        self.path, self._database = f"{database}-mark", database
        self._file, self._synced = -1, 0.0
        self._last: dict[str, int] = {}

    @property
    def kept(self) -> bool:
        """Whether this store keeps the mark up to date."""
        return self._file >= 0

    def read(self) -> Marked | None:
        """The numbers in the file; None if there is no file."""
        for pause in (0.0, 0.001, 0.01):  # somebody may be writing it
            time.sleep(pause)
            try:
                with open(self.path, "rb") as file:
                    found = _parsed(file.read())
            except FileNotFoundError:
                return None
            except OSError as problem:
                raise StoreError(f"cannot read {self.path}: {reason(problem)}") from None
            if found is not None:
                return found
        raise Damaged(f"{self.path} is damaged: restore it with its database, or delete it to accept the database as it is")

    def open(self, found: Marked) -> None:
        """Keep the mark from now on; `found` is what the database holds."""
        try:
            if self.read() is None:
                with storage.replacing(self.path) as file:
                    storage.take_over(file.fileno(), os.stat(self._database))
                    file.write(b"".join(map(_record, Marked._fields, found)))
            self._file = Disk.open(self.path, os.O_RDWR)
        except InputError as problem:
            raise StoreError(str(problem)) from None
        except OSError as problem:
            raise StoreError(f"cannot write {self.path}: {reason(problem)}") from None
        for name, number in found._asdict().items():
            self._put(name, number)
        self._sync()

    def note(self, events: int, sessions: int | None = None) -> None:
        """Say what was committed, before anybody is answered."""
        if events != self._last["events"]:
            self._put("events", events)
        if sessions is not None and sessions != self._last["sessions"]:
            self._put("sessions", sessions)
            self._sync()
        elif time.monotonic() - self._synced >= SYNCED:
            self._sync()

    def forgo(self, rows: int) -> None:
        """Say that so many more rows of events may be gone, before they are."""
        marked = self.read()
        self._put("gone", rows + (self._last["gone"] if marked is None else marked.gone))
        self._sync()

    def close(self) -> None:
        """Keep the mark no longer."""
        if self._file >= 0:
            with suppress(StoreError):
                self._sync()
            file, self._file = self._file, -1
            os.close(file)

    def _put(self, name: str, number: int) -> None:
        try:
            os.lseek(self._file, PLACES[name], os.SEEK_SET)
            if Disk.write(self._file, _record(name, number)) != SECTOR:
                raise OSError("it could not be written as a whole")
        except OSError as problem:
            raise self._failed(problem) from None
        self._last[name] = number

    def _sync(self) -> None:
        try:
            Disk.sync_data(self._file)
        except OSError as problem:
            raise self._failed(problem) from None
        self._synced = time.monotonic()

    def _failed(self, problem: OSError) -> StoreError:
        return StoreError(f"cannot write {self.path}: {reason(problem)}", certain=False)


def missing(marked: Marked, found: Marked) -> str:
    """What a database has lost that its mark knows of, in words; "" if nothing."""
    if found.events < marked.events:
        return f"its last {marked.events - found.events} of {marked.events} event rows"
    if found.sessions < marked.sessions:
        return f"{marked.sessions - found.sessions} of its {marked.sessions} sessions"
    if found.gone > marked.gone:
        return f"{found.gone - marked.gone} of its event rows"
    return ""


def _record(name: str, number: int) -> bytes:
    """One number as a sector of text, with a checksum."""
    text = b"%s %d" % (name.encode(), number)
    return (b"%s %08x" % (text, crc32(text))).ljust(SECTOR - 1) + b"\n"


def _parsed(data: bytes) -> Marked | None:
    """The numbers of a mark, None if it is damaged."""
    try:
        found = Marked(*(int(data[i * SECTOR : (i + 1) * SECTOR].split()[1]) for i in range(len(Marked._fields))))
    except (IndexError, ValueError):
        return None
    return found if data == b"".join(map(_record, Marked._fields, found)) else None
