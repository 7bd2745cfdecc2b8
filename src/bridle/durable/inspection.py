"""A database of sessions seen from outside: what it holds, what a session was at any round, and whether every digest fits.

Nothing here owns a session or writes to one, so it may be done while somebody else does; what is seen is what was durable when it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypedDict

from bridle import validate
from bridle.core import InputError
from bridle.database.rows import Damaged, Found
from bridle.durable.replay import ReplayedSession, ReplayError
from bridle.durable.snapshot import opened
from bridle.session.pictures import SessionCurve, looked_at, marks
from bridle.session.session import HistoryEntry

if TYPE_CHECKING:
    from bridle.database.store import EventStore


class KeptSession(TypedDict):
    """A session, as far as it is known without replaying it."""

    name: str
    policy: str
    dimension: int
    engine: str
    events: int
    snapshots: list[int]
    owner: str | None
    made_by: str


@dataclass
class Verified:
    """What came of verifying a session: how many events and snapshots fit, and what did not."""

    name: str
    events: int = 0
    snapshots: int = 0
    rounded: int = 0
    """So many events lead to their decisions but for rounding: they were written where arithmetic is another."""
    wrong: list[str] = field(default_factory=list)


def find(store: EventStore, name: str) -> Found:
    """The session of this name, or one error that names those there are."""
    found = store.find(name)
    if found is None:
        known = ", ".join(map(repr, store.names()[:10])) or "none"
        raise InputError(f"{store.name} has no session {validate.show(name)}; it has: {known}")
    return found


def kept(store: EventStore, name: str) -> KeptSession:
    """What is known of a session without replaying it."""
    found = find(store, name)
    made = opened(found.spec, f"session {name!r}")
    header = made.saved.header
    return {
        "name": name,
        "policy": header.get("policy") or f"{header['kind']} (not registered)",
        "dimension": len(made.saved.start),
        "engine": made.saved.options.get("engine", "python"),
        "events": store.head(found.id),
        "snapshots": [row.seq for row in store.snapshots(found.id)],
        "owner": found.owner if found.owner in store.living() else None,
        "made_by": f"{made.facts['made']['library']} on {made.facts['made']['platform']}",
    }


def reader(store: EventStore, name: str) -> ReplayedSession:
    """A session that nobody here owns, to be rebuilt and read."""
    found = find(store, name)
    return ReplayedSession(store, found)


def at_round(store: EventStore, name: str, round: int | None) -> ReplayedSession:
    """The session after so many rounds were observed, replayed from its beginning; after all of them where none is named."""
    core = reader(store, name)
    core.rewind()
    if round is not None and round < core.session.rounds:
        raise InputError(f"round must be at least {core.session.rounds}: the journal of session {name!r} was trimmed, not {round}")
    for event in store.tail(core.found.id, core.seq):
        if round is not None and core.session.rounds >= round:
            break
        core.advance([event])
    if round is not None and core.session.rounds < round:
        raise InputError(f"round must be at most {core.session.rounds}, as many as session {name!r} has, not {round}")
    return core


def rounds(store: EventStore, name: str, put: Callable[[HistoryEntry], object]) -> ReplayedSession:
    """Replay a session from its beginning, and give what `history` was told of every round."""
    core = reader(store, name)
    core.rewind()
    core.advance(store.tail(core.found.id, core.seq), replayed=put)
    return core


def verify(store: EventStore, name: str) -> Verified:
    """Replay a session from its beginning: every event must lead where it did, and every snapshot be what stood there then."""
    said = Verified(name)
    try:
        core = reader(store, name)
        core.rewind()
        snapshots = {row.seq: row for row in store.snapshots(core.found.id) if row.seq != core.seq}
        said.events, said.snapshots = core.seq, int(core.seq > 0)

        def looked_at() -> Iterator[Any]:
            for event in store.tail(core.found.id, core.seq):
                yield event
                said.events = core.seq
                row = snapshots.pop(core.seq, None)
                if row is not None:
                    said.snapshots += 1
                    said.wrong += _wrong(core, row.digest, row.body)
                said.rounded = core.rounded

        core.advance(looked_at())
        said.events = core.seq
        said.wrong += [f"snapshot {seq} is of an event that is not there" for seq in snapshots]
    except (ReplayError, Damaged, InputError) as wrong:
        said.wrong.append(str(wrong))
    return said


def trim(store: EventStore, name: str, before: int | None = None) -> tuple[int, int]:
    """Drop the events before a snapshot, the older of the two unless told, once every digest fits; which event is the first, and was.

    What is dropped cannot be replayed, exported or looked up by its identity any more.
    """
    found = find(store, name)
    kept = [row.seq for row in store.snapshots(found.id)]
    if not kept:
        raise InputError(f"session {name!r} cannot be trimmed: it has no snapshot yet; close it, or wait for one")
    if before is not None and before not in kept:
        shown = " or ".join(map(str, sorted(kept)))
        raise InputError(f"before must be the number of a snapshot of session {name!r}, {shown}, not {before}")
    said = verify(store, name)
    if said.wrong:
        raise InputError(f"session {name!r} is not trimmed: {said.wrong[0]}")
    was = store.first(found.id)
    store.trim(found.id, min(kept) if before is None else before)
    return store.first(found.id), was


def _wrong(core: ReplayedSession, digest: bytes, body: bytes) -> list[str]:
    """What is wrong with a snapshot of where the core stands."""
    try:
        found = opened(body, f"snapshot {core.seq}")
    except InputError as wrong:
        return [str(wrong)]
    if found.digest != digest:
        return [f"snapshot {core.seq} is not what was written: its digest does not fit"]
    return [] if core.rounded or digest == core.sealed()[1] else [f"snapshot {core.seq} is not what the events before it lead to"]


def curve(core: ReplayedSession) -> SessionCurve:
    """The curve of a session in a database: its journal is replayed as far back as it goes, and what is proved is asked on the way."""
    wanted, again = marks(core.session.rounds), reader(core.store, core.name)
    again.rewind()
    found: dict[int, tuple[float | None, ...]] = {}
    for events in chain([()], ([event] for event in core.store.tail(again.found.id, again.seq))):
        again.advance(events)
        if again.session.rounds in wanted and again.session.rounds not in found:
            found[again.session.rounds] = looked_at(again.session)
    if not found:
        raise InputError(f"session {core.name!r} has no rounds to draw yet")
    columns = [list(each) for each in zip(*found.values(), strict=True)]
    return SessionCurve(list(found), *columns)
