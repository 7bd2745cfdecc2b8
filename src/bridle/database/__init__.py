"""Where durable sessions are kept: events, snapshots, owners, keys, in one SQLite file or in PostgreSQL.

    store = open_store("sqlite:///run.db") lease = store.take(store.create("shop-17", spec))      one owner at a time; whoever had the
    session before is fenced off store.append(lease, [Event(1, kind, key, request, answer, body)])      on the disk when it returns for
    event in store.tail(lease.session): ...

The room needs SQLAlchemy, and psycopg for PostgreSQL; no other imports either.

>>> store = open_store("sqlite:///run.db")
>>> lease = store.take(store.create("shop-17", b"what it was made from"))
>>> store.append(lease, [Event(1, 0, b"ticket-1", None, b"an answer", b"what happened")])
>>> store.head(lease.session), store.answer(lease.session, b"ticket-1").answer
(1, b'an answer')
>>> store.close()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridle.core import InputError, Unavailable
from bridle.database.rows import (
    AccessKey,
    AuditEntry,
    Damaged,
    Event,
    Fenced,
    Found,
    Lease,
    Owned,
    RefusedRequest,
    SnapshotRow,
    StoreError,
    Taken,
)

if TYPE_CHECKING:
    from bridle.database.store import EventStore

Snapshot = SnapshotRow

__all__ = [
    "AccessKey",
    "AuditEntry",
    "Damaged",
    "Event",
    "Fenced",
    "Found",
    "Lease",
    "Owned",
    "RefusedRequest",
    "Snapshot",
    "StoreError",
    "Taken",
    "open_store",
]


def open_store(url: str, owner: str | None = None, readonly: bool = False, at: str = "") -> EventStore:
    """Open a database, and make or bring up to date its tables.

    `url` is ``sqlite:///FILE`` or ``postgresql://USER:PASSWORD@HOST/DATABASE``. `owner` is this store's name among those that own
    sessions, drawn at random where none is given; one name is one owner. `at` is where others can reach it, told to whoever asks for a
    session that it owns. With `readonly` nothing can be changed, and nothing is made.
    """
    if not isinstance(url, str):
        raise InputError(f"url must be the address of a database, not {url!r}")
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ModuleNotFoundError as problem:
        raise Unavailable(f"durable sessions need the package {problem.name}: pip install 'bridle-oco[durable]'") from None
    try:
        parsed = make_url(url)
        kind = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        raise InputError("url must be like sqlite:///run.db or postgresql://user@host/database; this one cannot be read") from None
    if kind == "sqlite":
        from bridle.database.sqlite import SqliteStore

        if not parsed.database or parsed.database == ":memory:" or parsed.query:
            raise InputError(f"url must name a file, like sqlite:///run.db, not {url!r}: what is in memory only is not durable")
        return SqliteStore(parsed.database, owner, readonly, at)
    if kind == "postgresql":
        try:
            from bridle.database.postgres import PostgresStore
        except ModuleNotFoundError as problem:
            raise Unavailable(f"PostgreSQL needs the package {problem.name}: pip install 'bridle-oco[postgres]'") from None
        if parsed.drivername not in ("postgresql", "postgresql+psycopg"):
            raise InputError(f"url must begin with postgresql: or postgresql+psycopg:, not {parsed.drivername}:")
        return PostgresStore(parsed, owner, readonly, at)
    raise InputError(f"url must begin with sqlite: or postgresql:, not {kind}:")
