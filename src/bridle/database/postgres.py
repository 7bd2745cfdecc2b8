"""A store in PostgreSQL, for several servers on one database, each owning sessions of its own.

A server has a row with the time until which it is taken to live, by the database's clock and no other; a thread renews it on a connection
of its own. Whoever wants a session whose owner's time has run out takes it, and the epoch of the session goes up. Every insert asks for
the epoch in the same statement, with the session's row locked `FOR SHARE`: a takeover waits for inserts under way and then sees what they
wrote, and an insert that comes after it writes nothing. An owner that could not renew stops answering by its own monotonic clock,
`MARGIN` seconds before its time runs out.

One connection writes, statement by statement; a group over many sessions is one statement too. A connection that broke is made anew by the
next call; what was under way then may be there or not (`StoreError.certain`). The database may not have noticed yet, and still be at work
on it: the old connection is ended there before anything is read or written on a new one, so that what is read then stays so.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from threading import RLock
from typing import TypeVar, cast

import psycopg
from psycopg import errors
from sqlalchemy import Float, Text, bindparam, extract, func, text, update
from sqlalchemy import select as selected
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine import URL

from bridle.core import InputError
from bridle.database import tables
from bridle.database.rows import Damaged, Lease, StoreError
from bridle.database.store import EventStore, Prepared, Row, Run
from bridle.database.tables import SERVER, Compiled, Value, compile_all, compiled

LEASE, RENEWED, MARGIN = 10.0, 3.0, 2.0
"""Seconds that a server is taken to live after it was heard of, between two signs of life, and before the end that it stops answering."""

MAKING = 0x6272_6964_6C65
"""The number of the lock under which tables are made."""

SETTINGS = ("lock_timeout = '5s'", "idle_in_transaction_session_timeout = '15s'", "application_name = 'bridle'")
"""How a connection is set: it neither waits for ever nor lets others do."""

CONNECTING = {
    "connect_timeout": "5", "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3", "tcp_user_timeout": "10000",
}  # fmt: skip
"""How a database is reached, unless the URL says otherwise: one that does not answer is given up."""

DIALECT = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
_NOW = extract("epoch", func.clock_timestamp()).cast(Float)
_ME, _SPAN = bindparam("owner", type_=Text), bindparam("span", type_=Float)
_ROW = insert(SERVER).values(id=_ME, url=bindparam("url"), token=bindparam("token"), until=_NOW + _SPAN)
STATEMENTS: dict[str, Compiled] = compile_all(DIALECT) | {
    name: compiled(statement, DIALECT)
    for name, statement in {
        "register": _ROW.on_conflict_do_update(
            index_elements=["id"], set_={name: _ROW.excluded[name] for name in ("url", "token", "until")}
        ),
        "renew": update(SERVER).where(SERVER.c.id == _ME, SERVER.c.token == bindparam("own_token")).values(until=_NOW + _SPAN),
        "lives": selected(SERVER.c.until > _NOW).where(SERVER.c.id == _ME).with_for_update(read=True),
        "living": text("SELECT id, url FROM server WHERE until > extract(epoch FROM clock_timestamp())"),
        "forget_servers": text("DELETE FROM server WHERE until < extract(epoch FROM clock_timestamp()) - 86400"),
    }.items()
}

APPEND_MANY = """
WITH lease AS MATERIALIZED (
  SELECT session.id, session.epoch FROM session
  JOIN unnest(%s::bigint[], %s::bigint[]) AS given (id, epoch) ON session.id = given.id AND session.epoch = given.epoch
  ORDER BY session.id FOR SHARE OF session
), kept AS (
  INSERT INTO event (session, epoch, seq, kind, key, request, answer, body, checksum)
  SELECT lease.id, lease.epoch, sent.seq, sent.kind, sent.key, sent.request, sent.answer, sent.body, sent.checksum
  FROM unnest(%s::bigint[], %s::bigint[], %s::smallint[], %s::bytea[], %s::bytea[], %s::bytea[], %s::bytea[], %s::bigint[])
    AS sent (session, seq, kind, key, request, answer, body, checksum)
  JOIN lease ON lease.id = sent.session
)
SELECT id FROM lease
"""
"""Events of several sessions, those whose lease holds: one statement, and so one commit. Its rows are the sessions that were written."""

BACKEND = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
END_BACKEND = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"
PATIENCE = 5.0
"""Seconds to wait until the database has ended a connection."""

_SAID = {
    "53100": "the disk of the database is full",
    "53300": "the database has too many connections",
    "25006": "it is read-only",
    "55P03": "another connection has it locked",
    "57014": "the database broke the statement off",
    "42501": "this user may not do that there",
}
"""What goes wrong, by the database's code."""

T = TypeVar("T")


def _ended(connection: psycopg.Connection) -> bool:
    """Whether a connection on which nothing is under way has an end or a last word waiting in it."""
    if connection.closed:
        return True
    if sys.platform == "win32":
        return bool(select.select([connection.fileno()], [], [], 0.0)[0])
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


class PostgresStore(EventStore):
    """Sessions in a PostgreSQL database."""

    def __init__(self, url: URL, owner: str | None = None, readonly: bool = False, at: str = "") -> None:
        super().__init__(url.set(query={}).render_as_string(hide_password=True), owner, at, readonly)
        self._arguments = cast(dict[str, str], DIALECT.create_connect_args(url)[1])  # type: ignore[no-untyped-call]
        self._beating = RLock()
        self._writer: psycopg.Connection | None = None
        self._reader: psycopg.Connection | None = None
        self._heart: psycopg.Connection | None = None
        self._backend: tuple[int, datetime] | None = None  # who does the writing in the database
        self._doubtful = False  # whether that may still be at work on something
        self._until = 0.0  # by the monotonic clock of this process
        self._stop, self._thread = threading.Event(), threading.Thread(target=self._beat, name="bridle lease", daemon=True)
        try:
            if readonly:
                self._look()
            else:
                self._make_tables()
                with self._transaction() as run:
                    begun = time.monotonic()
                    run("forget_servers")
                    run("register", owner=self.owner, url=at, token=self.token, span=LEASE)
                self._until = begun + LEASE - MARGIN
                self._thread.start()
        except BaseException:
            self._let_go()
            raise

    # --- connections ----------------------------------------------------------------------------------------------------------------

    def _connect(self) -> psycopg.Connection:
        connection = psycopg.connect(**{**CONNECTING, **self._arguments}, autocommit=True)  # type: ignore[arg-type]
        try:
            for setting in SETTINGS:
                connection.execute(f"SET {setting}".encode())
            if connection.execute("SHOW synchronous_commit").fetchone() == ("off",):
                connection.execute("SET synchronous_commit = on")
            if self.readonly:
                connection.execute("SET default_transaction_read_only = on")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_writer(self) -> psycopg.Connection:
        """The connection that writes; another one where the database has ended it while it was idle."""
        if self._writer is not None and _ended(self._writer):
            self._drop("_writer")
        if self._writer is None:
            with self._translated("reach"):
                connection = self._connect()
                try:
                    self._end_the_last(connection)
                    self._backend = cast(tuple[int, datetime], connection.execute(BACKEND).fetchone())
                except BaseException:
                    connection.close()
                    raise
                self._writer, self._doubtful = connection, False
        return self._writer

    def _end_the_last(self, connection: psycopg.Connection) -> None:
        """Let the database be at work no longer on what the connection before this one was told when it broke."""
        until = time.monotonic() + PATIENCE
        while self._doubtful and connection.execute(END_BACKEND, self._backend).fetchone() is not None:
            if time.monotonic() > until:
                raise StoreError(f"cannot write {self.name}: the database does not end a connection that broke")
            time.sleep(0.01)

    def _look(self) -> None:
        """The version of the tables, for one who only reads."""

        def version(connection: psycopg.Connection) -> int:
            there = connection.execute("SELECT to_regclass('schema_version') IS NOT NULL").fetchone()
            if there != (True,):
                raise InputError(f"cannot read {self.name}: it holds no sessions of bridle")
            return cast(tuple[int], connection.execute(tables.READ_VERSION).fetchone())[0]

        tables.refuse_another_version(self._reading_on(version), self.name)

    def _make_tables(self) -> None:
        """Make the tables in one transaction, unless they are there; one server at a time."""
        with self._alone() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING,))
            connection.execute(tables.VERSION_TABLE)
            version = cast(tuple[int | None], connection.execute(tables.READ_VERSION).fetchone())[0]
            if version is not None:
                tables.refuse_another_version(version, self.name)
                return
            for statement in tables.creation(DIALECT):
                connection.execute(statement.encode())

    # --- transactions ---------------------------------------------------------------------------------------------------------------

    @contextmanager
    def _translated(self, doing: str = "write") -> Iterator[None]:
        """The database's errors as one sentence."""
        try:
            yield
        except psycopg.Error as problem:
            raise self._error(problem, doing) from problem

    def _error(self, problem: psycopg.Error, doing: str) -> StoreError:
        """One error. It is certain that nothing was written where the database itself said so and is still there."""
        if isinstance(problem, errors.UniqueViolation):
            return self._taken()
        refused = problem.sqlstate is not None and not problem.sqlstate.startswith(("08", "57P"))
        lost = doing == "write" and (self._writer is None or self._writer.closed)
        if doing == "write" and (lost or not refused):
            self._doubtful = True
            self._drop("_writer")
        said = " ".join(str(problem).split()) or type(problem).__name__
        if isinstance(problem, (errors.DataCorrupted, errors.IndexCorrupted)):
            return Damaged(f"cannot {doing} {self.name}: it is damaged ({said}); restore a backup", doing != "write")
        return StoreError(
            f"cannot {doing} {self.name}: {_SAID.get(problem.sqlstate or '', said)}", doing != "write" or (refused and not lost)
        )

    def _drop(self, which: str) -> None:
        """Forget a connection; the next call makes another."""
        connection = cast("psycopg.Connection | None", getattr(self, which))
        setattr(self, which, None)
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    @contextmanager
    def _alone(self) -> Iterator[psycopg.Connection]:
        with self._writing:
            self._ready()
            connection = self._open_writer()
            with self._translated(), connection.transaction():
                yield connection

    @contextmanager
    def _transaction(self) -> Iterator[Run]:
        with self._alone() as connection:

            def run(name: str, /, **values: Value) -> tuple[list[Row], int]:
                statement = STATEMENTS[name]
                cursor = connection.execute(statement.text.encode(), statement.values(values))
                return cursor.fetchall() if cursor.description else [], cursor.rowcount

            yield run

    def _reading_on(self, work: Callable[[psycopg.Connection], T]) -> T:
        """Do some reading, a second time on a new connection where the first has gone."""
        if self._doubtful:
            with self._writing:
                self._ready()
                self._open_writer()
        with self._reading, self._translated("read"):
            self._ready(writing=False)
            if self._reader is not None:
                try:
                    return work(self._reader)
                except psycopg.OperationalError:
                    if not self._reader.closed:
                        raise
            self._drop("_reader")
            with self._translated("reach"):
                self._reader = self._connect()
            return work(self._reader)

    def _rows(self, name: str, /, **values: Value) -> list[Row]:
        statement = STATEMENTS[name]

        def read(connection: psycopg.Connection) -> list[Row]:
            return connection.cursor(binary=True).execute(statement.text.encode(), statement.values(values)).fetchall()

        return self._reading_on(read)

    # --- events ---------------------------------------------------------------------------------------------------------------------

    def _append_one(self, values: tuple[Value, ...]) -> bool:
        with self._writing:
            self._ready()
            connection = self._open_writer()
            with self._translated():
                return bool(connection.execute(_APPEND, values, prepare=True).rowcount)

    def _append_groups(self, groups: Sequence[Prepared]) -> set[Lease]:
        leases = [lease for lease, _ in groups]
        rows = [row for _, each in groups for row in each]
        columns: list[list[Value]] = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(9)]
        *sent, checksums, sessions, _ = columns
        values = ([lease.session for lease in leases], [lease.epoch for lease in leases], sessions, *sent, checksums)
        with self._writing:
            self._ready()
            connection = self._open_writer()
            with self._translated():
                kept = {cast(int, session) for (session,) in connection.execute(APPEND_MANY, values, prepare=True)}
        return {lease for lease in leases if lease.session in kept}

    # --- owners ---------------------------------------------------------------------------------------------------------------------

    def _lives(self, run: Run, owner: str) -> bool:
        rows = run("lives", owner=owner)[0]
        return bool(rows and rows[0][0])

    def living(self) -> dict[str, str]:
        return dict(cast("list[tuple[str, str]]", self._rows("living")))

    def holds(self, lease: Lease) -> bool:
        return super().holds(lease) and time.monotonic() < self._until

    def renew(self) -> None:
        """Say that this owner lives. Where it comes too late, look first which sessions are still its own."""
        self._ready()
        with self._beating:
            try:
                if self._heart is not None and _ended(self._heart):
                    self._drop("_heart")
                if self._heart is None:
                    self._heart = self._connect()
                begun, late = time.monotonic(), time.monotonic() >= self._until
                statement = STATEMENTS["renew"]
                values = statement.values({"owner": self.owner, "own_token": self.token, "span": LEASE})
                renewed = self._heart.execute(statement.text.encode(), values).rowcount
                if not renewed:
                    self._ended = self._ended or f"another store has its name, {self.owner}, now"
                    raise StoreError(f"cannot use {self.name}: {self._ended}")
                if late:  # a takeover under way has been waited for: it had a lock on the row that was renewed
                    statement = STATEMENTS["owned"]
                    self._keep(self._heart.execute(statement.text.encode(), statement.values({"old_owner": self.owner})).fetchall())
            except psycopg.Error as problem:
                self._drop("_heart")
                raise self._error(problem, "reach") from problem
            self._until = begun + LEASE - MARGIN

    def _beat(self) -> None:
        """Renew for as long as this store is open; after a failure sooner again."""
        pause = RENEWED
        while not self._stop.wait(pause) and self._process == os.getpid() and not self._ended:
            try:
                self.renew()
                pause = RENEWED
            except StoreError:
                pause = min(1.0, RENEWED)

    def check(self) -> list[str]:
        def settings(connection: psycopg.Connection) -> list[str]:
            said = {
                name: cast(tuple[str], connection.execute(f"SHOW {name}".encode()).fetchone())[0] for name in ("fsync", "full_page_writes")
            }
            return [f"{name} is {value}: what is acknowledged may not survive a crash" for name, value in said.items() if value != "on"]

        return self._reading_on(settings)

    def close(self) -> None:
        if self._ended == "it is closed":
            return
        self._stop.set()
        if not self.readonly and self._process == os.getpid() and not self._ended:
            self._give_back()
        self._ended = "it is closed"
        self._let_go()

    def _let_go(self) -> None:
        self._stop.set()
        if self._process != os.getpid():
            return
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=10.0)
        for lock, which in ((self._writing, "_writer"), (self._reading, "_reader"), (self._beating, "_heart")):
            with lock:
                self._drop(which)


_APPEND = STATEMENTS["append"].text.encode()
