"""A few facts in a SQLite file with one holder at a time; every change is on the disk before the call that made it returns.

The file has one row: the facts as JSON, with a digest. It is made whole under another name, so that a file that exists is never half-made:
an empty one is damaged, not new. SQLite's rollback journal, not its write-ahead log: a damaged log is ignored from the damage on, and would
give money back. What is read is what was written, or the file is refused.

The holder has SQLite's exclusive lock, which the system lets go when the process ends, however it ends. If the file is moved, removed or
replaced meanwhile, its holder is refused from then on.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from threading import RLock
from typing import cast
from weakref import WeakSet

from bridle import storage
from bridle.core import InputError
from bridle.storage import Facts, StrPath

PATIENCE = 0.05
"""Seconds to wait for the lock: a process that only looks whether the file is held has it for a moment."""


def connect(path: str) -> sqlite3.Connection:
    """A connection to a file that is there."""
    return sqlite3.connect(path, PATIENCE, isolation_level=None, check_same_thread=False)


class FactFile:
    """The facts in a file, held by this process until `close`.

    Where there is no file, `fresh` gives the facts of a new one; `check` refuses facts that make no sense.
    """

    def __init__(
        self,
        path: StrPath,
        kind: str,
        fresh: Callable[[], Mapping[str, object]] | None,
        check: Callable[[Facts], object],
    ) -> None:
        self.name, self.kind, self.behind = storage.named(path), kind, False
        self._process, self._ended = os.getpid(), ""
        self.path = storage.real(self.name)
        if fresh is not None and not os.path.lexists(self.path):
            made = dict(fresh())
            check(dict(made))
            storage.create(self.path, self._image(made))
        storage.refuse_other_kinds(self.path)
        with self._failing("open"):
            self._made = os.stat(self.path)
            self._connection = connect(self.path)
        try:
            self.facts = self._read()
            check(dict(self.facts))
        except BaseException:
            self._connection.close()
            raise

    def _image(self, facts: Facts) -> bytes:
        with closing(sqlite3.connect(":memory:")) as new:
            new.execute("PRAGMA page_size = 512")
            new.execute("CREATE TABLE facts (line TEXT NOT NULL)")
            new.execute("INSERT INTO facts VALUES (?)", (self._line(facts),))
            new.commit()
            return new.serialize()

    def _line(self, facts: Facts) -> str:
        return storage.sealed({"library": "bridle", "kind": self.kind, **facts})

    def _read(self) -> Facts:
        with self._failing("open"):
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("BEGIN EXCLUSIVE")
            rows = self._connection.execute("SELECT line FROM facts").fetchall()
            self._connection.execute("COMMIT")
        try:
            ((line,),) = rows
            facts = cast(Facts, storage.parse(line))
            storage.check(facts)
            if (facts.pop("library"), facts.pop("kind")) != ("bridle", self.kind):
                raise ValueError(f"it does not hold a {self.kind}")
        except (ValueError, TypeError, KeyError, AttributeError) as wrong:
            raise InputError(f"cannot read {self.name}: it is damaged, or does not hold a {self.kind} ({wrong})") from None
        return facts

    @contextmanager
    def _failing(self, verb: str) -> Iterator[None]:
        """One error for whatever SQLite or the system says."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as problem:  # SQLite quotes what it found
            if "locked" in str(problem):
                why = f"another holder has it, and a {self.kind} has one holder at a time"
            elif isinstance(problem, sqlite3.OperationalError) and "no such" not in str(problem):
                why = str(problem)
            else:
                why = f"it is damaged, or does not hold a {self.kind} ({problem})"
            raise InputError(f"cannot {verb} {self.name}: {why}") from None
        except OSError as problem:
            raise InputError(f"cannot {verb} {self.name}: {storage.reason(problem)}") from None

    def put(self, facts: Facts) -> None:
        """Make these the facts; they are on the disk when this returns."""
        self.check()
        line = self._line(facts)
        try:
            with self._failing("write"):
                self._connection.execute("UPDATE facts SET line = ?", (line,))
        except InputError as wrong:
            raise InputError(f"{wrong}; open it again to see whether the old facts are there or the new ones in its place") from None
        self.facts, self.behind = facts, False

    def check(self) -> None:
        """Refuse where this process does not hold the file, or no longer."""
        if self._process != os.getpid():
            self._ended = f"it was opened by process {self._process}, and this is process {os.getpid()}: each must open a file of its own"
        if not self._ended:
            try:
                if not os.path.samestat(os.stat(self.path), self._made):
                    self._ended = "another file has taken its place; open it again to continue"
            except (FileNotFoundError, NotADirectoryError):
                self._ended = "it was moved or removed; open it again to continue"
            except OSError as problem:
                raise InputError(f"cannot write {self.name}: {storage.reason(problem)}") from None
        if self._ended:
            raise InputError(f"cannot write {self.name}: {self._ended}")

    def close(self) -> None:
        """Let go of the file, for others to hold."""
        self._ended = self._ended or "it is closed"
        if self._process == os.getpid():
            with suppress(sqlite3.Error, OSError):  # what was acknowledged is on the disk
                self._connection.close()


class Keeping:
    """How an object is kept in files: copies of it that are saved and loaded, and the file that it is opened on, if any.

    `facts` gives its facts as they are.
    """

    def __init__(self, kind: str, facts: Callable[[], Facts]) -> None:
        self.kind, self._facts = kind, facts
        self.lock = RLock()
        """Who reads and changes the facts in several steps has it; closing waits for it."""
        self.file: FactFile | None = None
        self._left: tuple[str, Facts] | None = None  # where it was last loaded from or saved to, and what was there then

    def open(self, path: StrPath, fresh: Callable[[], Mapping[str, object]] | None, check: Callable[[Facts], object]) -> None:
        """Hold the file at `path` from now on."""
        self.file = FactFile(path, self.kind, fresh, check)
        _keeping.add(self)

    def put(self) -> None:
        """Bring the file up to date, where there is one; it is on the disk when this returns."""
        if self.file is not None:
            self.file.put(self._facts())

    def close(self) -> None:
        """Let go of the file, and bring it up to date before where a change was interrupted."""
        with self.lock:
            if self.file is not None:
                if self.file.behind:
                    with suppress(InputError):
                        self.put()
                self.file.close()

    def load(self, path: StrPath, take: Callable[[Facts], object]) -> None:
        """Take the facts of a file that nobody holds."""
        with closing(FactFile(path, self.kind, None, take)) as file:
            self._left = file.path, file.facts

    def save(self, path: StrPath) -> None:
        """Write a copy, unless somebody else holds the file or has written it since this object was there."""
        if self.file is not None and self.file.path == storage.real(storage.named(path)):
            self.put()
            return
        with closing(FactFile(path, self.kind, self._facts, lambda facts: None)) as file:
            if self._left is not None and self._left[0] == file.path and file.facts != self._left[1]:
                raise InputError(
                    f"cannot write {file.name}: another {self.kind} was saved there since this one was, and what it has paid would be "
                    "lost; `open` the file, which lets in one holder at a time"
                )
            file.put(self._facts())
            self._left = file.path, file.facts

    def refuse_copies(self) -> None:
        """One error where this is opened on a file, which has one holder."""
        if self.file is not None:
            raise InputError(f"a {self.kind} that is opened on a file cannot be copied or pickled: {self.file.name} has one holder")


_keeping: WeakSet[Keeping] = WeakSet()
_paused: list[Keeping] = []


def _pause() -> None:
    """Let no fork happen in the middle of a change: the child's copy of the connection would undo it when it is closed."""
    _paused.extend(_keeping)
    for keeping in _paused:
        keeping.lock.acquire()


def _continue() -> None:
    while _paused:
        _paused.pop().lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_pause, after_in_parent=_continue, after_in_child=_continue)
