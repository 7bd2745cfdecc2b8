"""A store in one SQLite file: no server, and what is acknowledged survives the power.

The file is in WAL mode with ``synchronous = FULL``: a commit has returned only once the log is synced. One connection writes and
checkpoints, a second one only reads. A single event is one statement that commits by itself; several are one immediate transaction, since
one that begins by reading may be refused as soon as it writes. Whoever opens the file for writing has a name and a lock (`owners`), and
keeps a mark next to it that tells whether anything was lost (`mark`).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast
from urllib.parse import quote

from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect

from bridle.core import InputError
from bridle.database import owners, tables
from bridle.database.mark import COUNTS, HighWaterMark, Marked, missing
from bridle.database.rows import Damaged, Lease, StoreError
from bridle.database.store import EventStore, Prepared, Row, Run
from bridle.database.tables import Value, compile_all

DIALECT = sqlite_dialect(paramstyle="qmark")
STATEMENTS = compile_all(DIALECT)
APPEND, INSERT, LEASED = (STATEMENTS[name].text for name in ("append", "append_under_lock", "leased"))

PRAGMAS = ("synchronous = FULL", "fullfsync = ON", "wal_autocheckpoint = 1000", "foreign_keys = ON", "trusted_schema = OFF")
"""How the connection that writes is set: to wait for the disk (also where macOS would not), and to checkpoint every 1000 pages."""

PATIENTLY = f"PRAGMA busy_timeout = {int(1000 * owners.PATIENCE)}"

_HARMLESS = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
"""Errors after which nothing was written for certain: the transaction never began, or was undone."""

_SAID = {
    sqlite3.SQLITE_FULL: "the disk is full, or the database has reached its largest size",
    sqlite3.SQLITE_BUSY: "another process has it locked",
    sqlite3.SQLITE_LOCKED: "another connection has it locked",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
}


LAST = "SELECT coalesce((SELECT max(id) FROM event), 0), (SELECT count(*) FROM session)"
"""What is marked after a commit."""


def _held(connection: sqlite3.Connection) -> Marked:
    """What a database holds, as its mark would have it."""
    events, sessions, rows = (number or 0 for number in connection.execute(COUNTS).fetchone())
    return Marked(events, sessions, events - rows)


def _end_broken_off(connection: sqlite3.Connection) -> None:
    """Roll back a transaction that an exception from outside has left open: a commit inside it would not be one."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def primary(problem: sqlite3.Error) -> int:
    """The kind of an error, without its variety."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF


class SqliteStore(EventStore):
    """Sessions in one SQLite file."""

    def __init__(self, path: str, owner: str | None = None, readonly: bool = False, at: str = "") -> None:
        super().__init__(path, owner, at, readonly)
        self.path = os.path.realpath(path)
        self._connection: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._lock: owners.OwnerLock | None = None
        self._doubtful = False  # whether what can be read need not be on the disk
        self._mark = HighWaterMark(self.path)
        self._unmarked = False  # whether a call broke off that may have committed something and not marked it
        try:
            if readonly:
                if not os.path.exists(self.path):
                    raise InputError(f"cannot read {path}: there is no such file")
                self._refuse_a_loss()
                self._open_reader()
                version = self._read_version()
                if not version:
                    raise InputError(f"cannot read {path}: it holds no sessions of bridle")
                tables.refuse_another_version(version, self.name)
            else:
                if not Path(self.path).parent.is_dir():
                    raise InputError(f"cannot open {path}: there is no folder {Path(self.path).parent}")
                self._lock = owners.OwnerLock(self.path, self.owner)
                owners.sweep(self.path)
                self._refuse_a_loss()
                self._open_writer()
                self._make_tables()
                self._register()
                self._keep_mark()
        except BaseException:
            self._let_go()
            raise

    # --- connections ----------------------------------------------------------------------------------------------------------------

    def _connect(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{quote(self.path)}?mode={mode}", uri=True, timeout=owners.PATIENCE, isolation_level=None, check_same_thread=False
        )

    def _open_writer(self) -> sqlite3.Connection:
        """The connection that writes; opened again after an error whose outcome nobody knows, so that the log is read anew.

        After a sync that failed, what is in the log can be read and may yet not be on the disk, and another sync need not put it there:
        it is written once more, into the database.
        """
        if self._connection is None:
            assert self._lock is not None
            with self._translated("open"), self._lock.turn():
                connection = self._connect("rwc")
                try:
                    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                    for pragma in PRAGMAS:
                        connection.execute(f"PRAGMA {pragma}")
                    if mode != "wal" or connection.execute("PRAGMA synchronous").fetchone()[0] != 2:
                        raise StoreError(f"cannot open {self.name}: it does not keep a log that is synced at each commit ({mode})")
                    if self._doubtful:
                        if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                            raise StoreError(f"cannot open {self.name}: another process reads it, and does not stop")
                        turned = connection.execute("PRAGMA user_version").fetchone()[0] ^ 1
                        connection.execute(f"PRAGMA user_version = {turned}")  # any change at all: it begins the log anew, on the disk too
                except BaseException:
                    connection.close()
                    raise
            self._connection, self._doubtful = connection, False
        return self._connection

    def _open_reader(self) -> sqlite3.Connection:
        if self._reader is None:
            with self._translated("read"):
                self._reader = self._connect("ro")
        return self._reader

    def _drop_writer(self) -> None:
        """Forget the connection that writes; the next call opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _make_tables(self) -> None:
        """Make the tables in one transaction, unless they are there."""
        with self._alone() as connection:
            connection.execute(tables.VERSION_TABLE)
            version = connection.execute(tables.READ_VERSION).fetchone()[0]
            if version is not None:
                tables.refuse_another_version(version, self.name)
                return
            for statement in tables.creation(DIALECT):
                connection.execute(statement)

    def _register(self) -> None:
        with self._alone() as connection:
            for (owner,) in connection.execute("SELECT id FROM server").fetchall():
                if owner == self.owner or not owners.lives(self.path, owner):
                    connection.execute("DELETE FROM server WHERE id = ?", (owner,))
            connection.execute("INSERT INTO server (id, url, token, until) VALUES (?, ?, ?, 0)", (self.owner, self.at, self.token))

    def _read_version(self) -> int:
        with self._translated("read"):
            reader = self._open_reader()
            if not reader.execute("SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'").fetchone()[0]:
                return 0
            return int(reader.execute(tables.READ_VERSION).fetchone()[0] or 0)

    # --- the mark -------------------------------------------------------------------------------------------------------------------

    def _refuse_a_loss(self) -> None:
        """Refuse a database that is behind its mark, before anything in it is changed. One without a mark is taken as it is."""
        marked = self._mark.read()
        while marked is not None and (lost := missing(marked, self._counted())):
            before, marked = marked, self._mark.read()
            if marked == before:  # else somebody has just trimmed it
                raise Damaged(
                    f"cannot open {self.name}: it has lost {lost}, which {self._mark.path} counts. Its -wal file is damaged or missing, "
                    "rows were deleted, or an older copy was put in its place. Restore the newest backup that is whole; to continue "
                    f"with what is left, delete {self._mark.path}"
                )
        self._drop_reader()

    def _counted(self) -> Marked:
        """What the database holds, to compare with its mark; nothing if it is not there or has no tables."""
        if not os.path.exists(self.path) or not self._read_version():
            return Marked()
        with self._translated("read"):
            return _held(self._open_reader())

    def _keep_mark(self) -> None:
        """Keep the mark up to date from now on; make it if there is none.

        Something must have been committed before: that synced what a killed process had left in the log.
        """
        connection = self._open_writer()
        assert self._lock is not None
        with self._lock.turn(), self._translated("open"):
            self._mark.open(_held(connection))

    # --- transactions ---------------------------------------------------------------------------------------------------------------

    @contextmanager
    def _translated(self, doing: str = "write") -> Iterator[None]:
        """SQLite's errors as one sentence."""
        try:
            yield
        except sqlite3.Error as problem:
            raise self._error(problem, doing) from problem

    def _error(self, problem: sqlite3.Error, doing: str) -> StoreError:
        kind = primary(problem)
        if kind == sqlite3.SQLITE_CONSTRAINT:
            return self._taken()
        certain = kind in _HARMLESS or doing != "write"
        if doing == "write" and not certain:
            self._doubtful = True
            self._drop_writer()
        if doing == "read" and kind not in _HARMLESS:
            self._drop_reader()
        if kind in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return Damaged(f"cannot {doing} {self.name}: it is damaged ({problem}); restore a backup", certain)
        return StoreError(f"cannot {doing} {self.name}: {_SAID.get(kind, str(problem))}", certain)

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        """An immediate transaction on the connection that writes."""
        with self._writing:
            self._ready()
            connection = self._open_writer()
            assert self._lock is not None
            with self._lock.turn(), self._translated():
                _end_broken_off(connection)
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    yield connection
                    last = connection.execute(LAST).fetchone() if self._mark.kept else None
                    connection.execute("COMMIT")
                    if last is not None:
                        self._mark.note(*last)
                except BaseException:
                    self._unmarked = self._mark.kept
                    with suppress(sqlite3.Error):
                        if connection.in_transaction:
                            connection.execute("ROLLBACK")
                    raise

    @contextmanager
    def _transaction(self) -> Iterator[Run]:
        with self._alone() as connection:

            def run(name: str, /, **values: Value) -> tuple[list[Row], int]:
                statement = STATEMENTS[name]
                cursor = connection.execute(statement.text, statement.values(values))
                return cursor.fetchall(), cursor.rowcount

            yield run

    def _rows(self, name: str, /, **values: Value) -> list[Row]:
        statement = STATEMENTS[name]
        if self._doubtful or self._unmarked:  # nobody is told of what is not on the disk, or not marked
            with self._writing:
                self._ready()
                connection = self._open_writer()
                if self._unmarked:
                    assert self._lock is not None
                    with self._lock.turn(), self._translated():
                        self._mark.note(*connection.execute(LAST).fetchone())
                    self._unmarked = False
        with self._reading, self._translated("read"):
            self._ready(writing=False)
            rows: list[Row] = self._open_reader().execute(statement.text, statement.values(values)).fetchall()
            return rows

    def _drop_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            with suppress(sqlite3.Error):
                reader.close()

    # --- events ---------------------------------------------------------------------------------------------------------------------

    def _append_one(self, values: Row) -> bool:
        with self._writing:
            self._ready()
            connection = self._open_writer()
            assert self._lock is not None
            with self._lock.turn(), self._translated():
                return self._appended(connection, values)

    def _append_one_now(self, values: Row) -> bool | None:
        lock, connection = self._lock, self._connection
        if lock is None or connection is None or not self._writing.acquire(blocking=False):
            return None
        try:
            self._ready()
            if not lock.try_begin():
                return None
            try:
                connection.execute("PRAGMA busy_timeout = 0")
                return self._appended(connection, values)
            except sqlite3.Error as problem:
                if primary(problem) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    return None
                raise self._error(problem, "write") from problem
            finally:
                with suppress(sqlite3.Error):  # it is closed
                    connection.execute(PATIENTLY)
                lock.end()
        finally:
            self._writing.release()

    def _appended(self, connection: sqlite3.Connection, values: Row) -> bool:
        """Append an event and mark it; False if the session belongs to another store."""
        try:
            _end_broken_off(connection)
            done = connection.execute(APPEND, values)
            if done.rowcount > 0:
                self._mark.note(cast(int, done.lastrowid))
            return done.rowcount > 0
        except BaseException:
            self._unmarked = True
            raise

    def _forgo(self, rows: int) -> None:
        self._mark.forgo(rows)

    def _append_groups(self, groups: Sequence[Prepared]) -> set[Lease]:
        with self._alone() as connection:  # nobody can take a session until this ends
            kept = {lease for lease, _ in groups if connection.execute(LEASED, lease).fetchone()}
            for lease, rows in groups:
                if lease in kept:
                    connection.executemany(INSERT, rows)
            return kept

    # --- owners ---------------------------------------------------------------------------------------------------------------------

    def _lives(self, run: Run, owner: str) -> bool:
        return owners.lives(self.path, owner)

    def living(self) -> dict[str, str]:
        rows = cast("list[tuple[str, str]]", self._rows("servers"))
        return {owner: url for owner, url in rows if owner == self.owner or owners.lives(self.path, owner)}

    def renew(self) -> None:
        self._ready()

    def check(self) -> list[str]:
        with self._reading, self._translated("read"):
            self._ready(writing=False)
            said = [str(text) for (text,) in self._open_reader().execute("PRAGMA integrity_check")]
        return [] if said == ["ok"] else said

    def close(self) -> None:
        if self._ended:
            return
        if not self.readonly and self._process == os.getpid():
            self._give_back()
        self._ended = "it is closed"
        self._let_go()

    def _let_go(self) -> None:
        """Close what is open. In a process that did not open it, nothing is touched: what it has are copies."""
        with self._writing, self._reading:
            lock = self._lock
            if self._process != os.getpid():
                return
            self._drop_reader()
            if lock is not None:
                with suppress(StoreError), lock.turn():
                    self._drop_writer()
                self._drop_writer()
                self._mark.close()
                lock.close()
