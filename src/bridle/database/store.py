"""What can be asked of a store, whatever database it is; `sqlite` and `postgres` say how a transaction is done there.

Any method may be called from any thread. Whatever changes something takes turns on the one connection that writes; whatever only reads
takes turns on another connection, so that nobody who looks waits for a commit. A store belongs to the process that opened it.

Several events in one row: what a group costs a database is its rows more than its bytes.

Only events that nobody looks up are packed: those without an identity, a request or an answer, whose numbers follow each other. The row has
the number of the last of them, so that the largest number of all rows is that of the last event. Its body is

    how many there are, then their kinds, then the lengths of their bodies, then the bodies

>>> row, = packed([Event(4, 1, None, None, None, b"one"), Event(5, 2, None, None, None, b"two")])
>>> row.seq, row.kind, [event.body for event in unpacked(row)]
(5, -1, [b'one', b'two'])
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from threading import RLock
from typing import Protocol, Self, TypeAlias, cast
from weakref import WeakSet
from zlib import crc32

from bridle.core import InputError
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
from bridle.database.tables import Value

FIRST_PAGE, FULL_PAGE, PAGE_BYTES = 20, 1000, 1 << 23
"""How many rows are read first, at most, and how many bytes at a time, about: no reader holds a transaction open while somebody works on
what it has read."""

KEPT_SNAPSHOTS = 2
"""Snapshots of a session that are kept: the newest, and the one before it, in case the newest cannot be used."""

KEPT_REFUSALS = 10_000
"""Refused requests of a session that are kept; all are counted."""

TRIMMED = 10_000
"""Events that are dropped in one transaction."""

LARGEST = 2**62
"""More rows than any table has."""

POLLING = 0.05
"""Seconds between two attempts to take a session that somebody else has."""

OWNER = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""What the name of an owner may be: it may become part of the name of a file."""

Row: TypeAlias = tuple[Value, ...]

Prepared: TypeAlias = tuple[Lease, list[Row]]
"""A group of events as rows for the statement that appends: the event, its checksum, and the lease."""


class Run(Protocol):
    """Run a statement by its name; its rows, and how many rows it changed."""

    def __call__(self, name: str, /, **values: Value) -> tuple[list[Row], int]: ...


def checksum(session: int, event: Event) -> int:
    """A number that tells whether a row is what was written: databases do not look after every bit themselves."""
    seq, kind, key, request, answer, body = event
    if key is None and request is None and answer is None:
        return crc32(body, crc32(b"%d %d %d -1 -1 -1 " % (session, seq, kind)))
    head = b"%d %d %d %d %d %d " % (
        session,
        seq,
        kind,
        -1 if key is None else len(key),
        -1 if request is None else len(request),
        -1 if answer is None else len(answer),
    )
    return crc32(body, crc32(head + (key or b"") + (request or b"") + (answer or b"")))


def new_owner() -> str:
    """A name for an owner that no other has, and that says where it is: in which process of which machine."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:30]
    return f"{host}_process{os.getpid()}_{secrets.token_hex(5)}"


def _plain(text: str) -> str:
    """A text that every database can hold: what none can is shown as unknown."""
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")


def _page(limit: int, offset: int) -> dict[str, Value]:
    """Which rows of a list are wanted; there are never more than a database can count."""
    if limit < 0 or offset < 0:
        raise InputError(f"limit and offset must not be negative, and are {limit} and {offset}")
    return {"limit": min(limit, LARGEST), "offset": min(offset, LARGEST)}


class EventStore(ABC):
    """Sessions and what happened to them, in a database; made by `open_store`.

    `owner` is this store's name among those that own sessions, `name` the database's in messages.
    """

    def __init__(self, name: str, owner: str | None, at: str, readonly: bool) -> None:
        if owner is not None and not OWNER.fullmatch(owner):
            raise InputError(f"owner must be 1 to 64 letters, digits, dots, underscores and dashes, not {owner!r}")
        self.name, self.owner, self.at, self.readonly = name, owner or new_owner(), at, readonly
        self.token = secrets.token_hex(8)
        self.keys = Keys(self)
        self._process, self._ended = os.getpid(), ""
        self._held: dict[int, int] = {}  # session -> epoch
        self._heads: dict[int, int] = {}  # session -> the last event that was there when it was taken, or that was appended since
        self._writing, self._reading = RLock(), RLock()
        _open.add(self)

    # --- what a database must say ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Run]:
        """A transaction that writes, alone: committed when the block ends, undone when it fails."""

    @abstractmethod
    def _rows(self, name: str, /, **values: Value) -> list[Row]:
        """What a statement reads, in a transaction of its own."""

    @abstractmethod
    def _append_one(self, values: Row) -> bool:
        """Append one event, in one commit, if its lease holds."""

    @abstractmethod
    def _append_groups(self, groups: Sequence[Prepared]) -> set[Lease]:
        """Append the groups whose leases hold, in one commit; which they are. No lease is there twice."""

    @abstractmethod
    def _lives(self, run: Run, owner: str) -> bool:
        """Whether the owner of this name still is one, seen from inside a transaction that takes a session."""

    @abstractmethod
    def living(self) -> dict[str, str]:
        """The owners that live: where each can be reached ("" where it said nothing), by name."""

    @abstractmethod
    def renew(self) -> None:
        """Say that this owner lives; a store that must do so does it by itself, in a thread."""

    @abstractmethod
    def check(self) -> list[str]:
        """Let the database look after itself, page by page; what is wrong, in words. Takes as long as reading all of it."""

    @abstractmethod
    def close(self) -> None:
        """Give back what this store owns and let go of the database. A second call does nothing."""

    # --- sessions -------------------------------------------------------------------------------------------------------------------

    def create(self, name: str, spec: bytes) -> Found:
        """A new session, which nobody owns."""
        if not isinstance(name, str) or not name or len(name) > 200 or name != _plain(name):
            raise InputError(f"name must be a text of 1 to 200 characters, not {name!r}")
        with self._transaction() as run:
            if run("find", name=name)[0]:
                raise InputError(f"name {name!r} is taken: {self.name} has a session of this name")
            run("create", name=name, spec=spec)
            return self._found(run("find", name=name)[0][0])

    def find(self, name: str) -> Found | None:
        """The session of this name."""
        rows = self._rows("find", name=name) if isinstance(name, str) and name == _plain(name) else []
        return self._found(rows[0]) if rows else None

    def names(self) -> list[str]:
        """The names of all sessions, in order."""
        return [cast(str, name) for (name,) in self._rows("names")]

    def owners(self) -> dict[str, str | None]:
        """The owners of all sessions by the sessions' names, in their order; None where nobody has it who lives."""
        living = self.living()
        rows = cast("list[tuple[str, str | None]]", self._rows("names_with_owners"))
        return {name: owner if owner in living else None for name, owner in rows}

    @staticmethod
    def _found(row: Row) -> Found:
        return Found(*cast(tuple[int, str, bytes, str | None, int], row))

    def take(self, found: Found, wait: float = 0.0) -> Lease:
        """Own a session from now on, and be the only one who can append to it.

        Whoever had it is fenced off. Where that one lives, this waits so many seconds for it to end, and then raises `Owned`. Read `head`
        and `tail` after this has returned, not before.
        """
        until = time.monotonic() + wait
        while True:
            try:
                return self._take(found)
            except Owned:
                if time.monotonic() >= until:
                    raise
                time.sleep(min(POLLING, max(0.0, until - time.monotonic())))

    def _take(self, found: Found) -> Lease:
        with self._transaction() as run:
            rows = run("standing", session=found.id)[0]
            if not rows:
                raise InputError(f"{self.name} has no session {found.name!r}")
            owner, epoch = cast(tuple[str | None, int], rows[0])
            if owner is not None and owner != self.owner and self._lives(run, owner):
                urls = run("server", owner=owner)[0]
                url = cast(str, urls[0][0]) if urls else ""
                where = f" at {url}: ask there, or let it go there" if url else ": close it there"
                raise Owned(f"session {found.name!r} is owned by {owner}{where}, or wait until that has ended (wait=SECONDS)", owner, url)
            run("own", session=found.id, new_owner=self.owner)
            head = cast(int, run("head", session=found.id)[0][0][0] or 0)
        self._heads[found.id] = head
        self._held[found.id] = epoch + 1
        return Lease(found.id, epoch + 1)

    def release(self, lease: Lease) -> None:
        """Own a session no longer; where somebody else has taken it, nothing happens."""
        if self._held.get(lease.session) == lease.epoch:
            del self._held[lease.session]
        with self._transaction() as run:
            run("release", session=lease.session, lease_epoch=lease.epoch)

    def holds(self, lease: Lease) -> bool:
        """Whether an answer may still rest on what was read or written under this lease, as far as this process can tell by itself."""
        return self._held.get(lease.session) == lease.epoch and not self._ended

    def _keep(self, owned: Sequence[Row]) -> None:
        """Hold only those leases that are among these."""
        still = {cast(int, session): cast(int, epoch) for session, epoch in owned}
        self._held = {session: epoch for session, epoch in self._held.items() if still.get(session) == epoch}

    # --- events ---------------------------------------------------------------------------------------------------------------------

    def append(self, lease: Lease, events: Sequence[Event]) -> None:
        """Append events to a session, in one commit; they are on the disk when this returns.

        Raises `Fenced` where the lease is lost, `Taken` where a number or key is used already, and `StoreError` where the database fails.
        """
        session, epoch = lease
        rows = events if len(events) == 1 else packed(events)
        if len(rows) == 1:
            row = rows[0]
            if events[0].seq <= self._heads.get(session, 0) and self.holds(lease):
                raise self._taken()
            if not self._append_one((*row, checksum(session, row), session, epoch)):
                raise self._fenced(lease)
            self._heads[session] = row.seq
        elif (refused := self.append_many([(lease, events)])[0]) is not None:
            raise refused

    def append_at_once(self, lease: Lease, events: Sequence[Event]) -> bool:
        """Append events as `append` does; False, and nothing is done, where that would mean to wait for anything but the disk."""
        session, epoch = lease
        rows = events if len(events) == 1 else packed(events)
        if len(rows) != 1:
            return False
        row = rows[0]
        if events[0].seq <= self._heads.get(session, 0) and self.holds(lease):
            raise self._taken()
        kept = self._append_one_now((*row, checksum(session, row), session, epoch))
        if kept is None:
            return False
        if not kept:
            raise self._fenced(lease)
        self._heads[session] = row.seq
        return True

    def _append_one_now(self, values: Row) -> bool | None:
        """As `_append_one`; None, and nothing is done, where somebody else would have to be waited for. Only a file here can say so."""
        return None

    def append_many(self, groups: Sequence[tuple[Lease, Sequence[Event]]]) -> list[StoreError | None]:
        """Append to several sessions in one commit; for each group None, or the `Fenced` or `Taken` that kept it out.

        Groups of one lease stand and fall together. A `StoreError` is raised where the database fails: then no group is there, or, where
        it is not certain, nobody can tell.
        """
        together: dict[Lease, list[Event]] = {}
        for lease, events in groups:
            together.setdefault(lease, []).extend(events)
        outcomes: dict[Lease, StoreError | None] = {}
        prepared: list[Prepared] = []
        for lease, events in together.items():
            session, epoch = lease
            if events and events[0].seq <= self._heads.get(session, 0) and self.holds(lease):
                outcomes[lease] = self._taken()
            else:
                prepared.append((lease, [(*row, checksum(session, row), session, epoch) for row in packed(events)]))
        if prepared:
            outcomes |= self._append_rows(prepared)
        for lease, events in together.items():
            if outcomes[lease] is None and events:
                self._heads[lease.session] = events[-1].seq
        return [outcomes[lease] for lease, _ in groups]

    def _append_rows(self, groups: Sequence[Prepared]) -> dict[Lease, StoreError | None]:
        try:
            if len(groups) == 1 and len(groups[0][1]) == 1:  # one statement
                kept = {groups[0][0]} if self._append_one(groups[0][1][0]) else set()
            else:
                kept = self._append_groups(groups)
        except Taken as problem:
            if len(groups) == 1:
                return {groups[0][0]: problem}
            outcomes: dict[Lease, StoreError | None] = {}
            for group in groups:  # the others are not to suffer for it
                outcomes |= self._append_rows([group])
            return outcomes
        return {lease: None if lease in kept else self._fenced(lease) for lease, _ in groups}

    def tail(self, session: int, after: int = 0) -> Iterator[Event]:
        """The events after number `after`, in order; `Damaged` at the first that is missing or not what was written."""
        limit = FIRST_PAGE
        while True:
            rows, size = self._rows("tail", session=session, after=after, limit=limit), 1
            for row in rows:
                found = self._event(session, row)
                size += len(found.body)
                for event in unpacked(found):
                    if event.seq == after + 1:
                        yield event
                        after += 1
                    elif event.seq > after:
                        raise Damaged(f"{self.name} is damaged: event {after + 1} of {self._called(session)} is missing; restore a backup")
            if len(rows) < limit:
                return
            limit = min(FULL_PAGE, max(FIRST_PAGE, PAGE_BYTES * len(rows) // size))

    def _event(self, session: int, row: Row) -> Event:
        event = Event(*cast(tuple[int, int, bytes | None, bytes | None, bytes | None, bytes], row[:6]))
        if checksum(session, event) != row[6]:
            what = "the row up to event" if event.kind == PACKED else "event"
            raise Damaged(
                f"{self.name} is damaged: {what} {event.seq} of {self._called(session)} is not what was written; restore a backup"
            )
        return event

    def head(self, session: int) -> int:
        """The number of the last event, 0 where there is none."""
        return cast(int, self._rows("head", session=session)[0][0] or 0)

    def first(self, session: int) -> int:
        """The number of the first event that is kept: 1, unless the session was trimmed."""
        rows = self._rows("tail", session=session, after=0, limit=1)
        return next(unpacked(self._event(session, rows[0]))).seq if rows else 1

    def trim(self, session: int, before: int) -> None:
        """Drop the events before a snapshot, and their identities; a row is dropped as a whole, and the last event always stays.

        There must be a snapshot after event `before`: nobody can replay what comes after it from anything older.
        """
        if before not in [row.seq for row in self.snapshots(session)]:
            raise InputError(f"before must be the number of a snapshot of {self._called(session)}, not {before}")
        for end in (*range(self.first(session) + TRIMMED, before, TRIMMED), before):  # nobody waits long for a turn to write
            with self._transaction() as run:
                self._forgo(run("trim_events", session=session, before=end)[1])

    def _forgo(self, rows: int) -> None:
        """Note that so many rows of events will be gone on purpose, before the transaction that drops them is committed."""
        return

    def answer(self, session: int, key: bytes) -> Event | None:
        """The event with this identity."""
        rows = self._rows("answer", session=session, key=key)
        return self._event(session, rows[0]) if rows else None

    # --- snapshots ------------------------------------------------------------------------------------------------------------------

    def put_snapshot(self, lease: Lease, snapshot: SnapshotRow) -> None:
        """Keep a snapshot, and drop all but the newest two; one transaction. Raises `Fenced` where the lease is lost."""
        with self._transaction() as run:
            run("drop_snapshot", session=lease.session, seq=snapshot.seq)
            kept = run("put_snapshot", lease_session=lease.session, lease_epoch=lease.epoch, **snapshot._asdict())[1]
            if not kept:
                raise self._fenced(lease)
            run("trim_snapshots", session=lease.session, kept_session=lease.session, limit=KEPT_SNAPSHOTS)

    def snapshots(self, session: int) -> list[SnapshotRow]:
        """The snapshots of a session, newest first."""
        return [SnapshotRow(*cast(tuple[int, str, str, bytes, bytes], row)) for row in self._rows("snapshots", session=session)]

    # --- what was refused, and who did what -----------------------------------------------------------------------------------------

    def quarantine(self, session: int, when: float, reason: str, request: bytes) -> None:
        """Keep a request that was refused. Session 0 is for those that name none."""
        with self._transaction() as run:
            number = cast(int, run("last_refusal", session=session)[0][0][0] or 0) + 1
            run("refuse", session=session, number=number, at=when, reason=_plain(reason), request=request)
            run("trim_refusals", session=session, last=number - KEPT_REFUSALS)

    def quarantined(self, session: int, limit: int = 100, offset: int = 0) -> list[RefusedRequest]:
        """Requests that were refused, the latest first."""
        rows = self._rows("refusals", session=session, **_page(limit, offset))
        return [RefusedRequest(*cast(tuple[int, float, str, bytes], row)) for row in rows]

    def counts(self) -> dict[int, int]:
        """How many requests were ever refused, by session; those that are no longer kept included."""
        return {cast(int, session): cast(int, count) for session, count in self._rows("refusal_counts")}

    def audit(self, who: str, what: str, session: str | None, when: float) -> None:
        """Write down who did what."""
        with self._transaction() as run:
            run("audit", at=when, who=_plain(who), what=_plain(what), session=None if session is None else _plain(session))

    def audits(self, limit: int = 100, offset: int = 0) -> list[AuditEntry]:
        """Who did what, the latest first."""
        rows = self._rows("audits", **_page(limit, offset))
        return [AuditEntry(*cast(tuple[int, float, str, str, str | None], row)) for row in rows]

    # --- what the parts share -------------------------------------------------------------------------------------------------------

    def _taken(self) -> Taken:
        return Taken(f"cannot write {self.name}: an event with this number or key is there already")

    def _called(self, session: int) -> str:
        """A session as a message names it: by its name, or by its number where that cannot be had."""
        with suppress(StoreError, InputError):
            return f"session {cast(str, self._rows('called', session=session)[0][0])!r}"
        return f"session {session}"

    def _fenced(self, lease: Lease) -> Fenced:
        if self._held.get(lease.session) == lease.epoch:
            del self._held[lease.session]
        return Fenced(
            f"{self._called(lease.session)} of {self.name} has another owner now: what was under lease {lease.epoch} is not written"
        )

    def _ready(self, writing: bool = True) -> None:
        """Refuse what this store cannot do any more, or never could."""
        if self._ended:
            raise StoreError(f"cannot use {self.name}: {self._ended}")
        if writing and self.readonly:
            raise StoreError(f"cannot write {self.name}: it was opened for reading only")

    def _give_back(self) -> None:
        """Own nothing any more, and be an owner no longer."""
        with suppress(StoreError), self._transaction() as run:
            run("release_all", old_owner=self.owner)
            run("drop_server", owner=self.owner, token=self.token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


class Keys:
    """The keys to the service that a store knows: their salted hashes, which the service makes and compares."""

    def __init__(self, store: EventStore) -> None:
        self._store = store

    def add(self, key: AccessKey) -> None:
        """Keep a key."""
        with self._store._transaction() as run:
            if run("key", id=key.id)[0]:
                raise InputError(f"id {key.id!r} is taken: {self._store.name} has a key of this id")
            run("add_key", **key._asdict())

    def list(self) -> list[AccessKey]:
        """All keys, in the order in which they were made; those that were revoked included."""
        return [self._key(row) for row in self._store._rows("keys")]

    def find(self, id: str) -> AccessKey | None:
        """The key of this id."""
        rows = self._store._rows("key", id=id) if id == _plain(id) else []
        return self._key(rows[0]) if rows else None

    def revoke(self, id: str, when: float) -> bool:
        """Let a key open nothing any more; False where there is none of this id that still does."""
        with self._store._transaction() as run:
            return bool(run("revoke", key_id=_plain(id), when=when)[1])

    @staticmethod
    def _key(row: Row) -> AccessKey:
        return AccessKey(*cast(tuple[str, str, str, bytes, bytes, str, float, float | None], row))


_open: WeakSet[EventStore] = WeakSet()


def _refuse_in_a_child() -> None:
    """A forked process has copies of what its parent works with, perhaps in the middle of something: it can use none of them."""
    for store in list(_open):
        store._ended = f"it was opened by process {store._process}, and this is process {os.getpid()}: each must open a store of its own"
        store._writing, store._reading = RLock(), RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_refuse_in_a_child)


PACKED = -1
"""The kind of a row that holds several events; those of events are 0 and above."""

MOST_EVENTS, MOST_BYTES = 500, 1 << 18
"""What a row holds at most; a larger event has one of its own."""


def packed(events: Sequence[Event]) -> list[Event]:
    """These events in as few rows as may be."""
    rows: list[Event] = []
    waiting: list[Event] = []
    size = 0
    for event in events:
        seq, _, key, request, answer, body = event
        plain = key is None and request is None and answer is None
        size += len(body)
        if waiting and (not plain or seq != waiting[-1].seq + 1 or size > MOST_BYTES or len(waiting) == MOST_EVENTS):
            rows.append(_row(waiting))
            waiting, size = [], len(body)
        if plain:
            waiting.append(event)
        else:
            rows.append(event)
            size = 0
    if waiting:
        rows.append(_row(waiting))
    return rows


def _row(events: list[Event]) -> Event:
    if len(events) == 1:
        return events[0]
    number, bodies = len(events), [event.body for event in events]
    head = struct.pack(f"<I{number}h{number}I", number, *[event.kind for event in events], *map(len, bodies))
    return Event(events[-1].seq, PACKED, None, None, None, head + b"".join(bodies))


def unpacked(row: Event) -> Iterator[Event]:
    """The events of a row."""
    if row.kind != PACKED:
        yield row
        return
    body = row.body
    (number,) = struct.unpack_from("<I", body)
    found = struct.unpack_from(f"<{number}h{number}I", body, 4)
    seq, at = row.seq - number, 4 + 6 * number
    for kind, length in zip(found[:number], found[number:], strict=True):
        seq += 1
        yield Event(seq, kind, None, None, None, body[at : at + length])
        at += length
