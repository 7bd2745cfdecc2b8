"""A session that is read from its journal: the newest snapshot that is whole, and every event after it, whose decisions are proved.

Where arithmetic is as it was (`bridle.durable.snapshot.machine`), every decision is the same bit for bit. Elsewhere (another processor,
another BLAS, another version of NumPy) it is the same but for rounding, and the session goes on from a snapshot that is put at once.

`ReplayedSession` is what may be done by anybody who can read the database; `bridle.durable.journal` adds what only the owner does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bridle.core import Command, InputError, Pay, SetBudget
from bridle.database.rows import Damaged, Event, Found, SnapshotRow
from bridle.durable.budgets import SessionBudgets
from bridle.durable.commands import DIGEST, MONEY, Evidence, decode, kind_of
from bridle.durable.snapshot import Snapshot, library, machine, opened, sealed
from bridle.session.session import Listener, Session
from bridle.storage import Facts

if TYPE_CHECKING:
    from bridle.database.store import EventStore

SNAPSHOT_EVERY = 10_000
"""Events between two snapshots, unless told."""

ROW = 100
"""Bytes of a row besides its body, about."""


class ReplayError(InputError):
    """A journal that cannot be replayed here: `seq` is the first event that leads elsewhere than it did."""

    def __init__(self, message: str, seq: int) -> None:
        super().__init__(message)
        self.seq = seq


class ReplayedSession:
    """A session in memory and its budgets, where the journal has them; `seq` is the last event that it has had.

    Nothing may be asked of it while `stale` says why.
    """

    def __init__(self, store: EventStore, found: Found, policy: object | None = None, made: Snapshot | None = None) -> None:
        self._made = made  # what it was made from, as long as nobody has changed it
        self.store, self.found, self.name = store, found, found.name
        self._policy = policy
        self.session: Session
        self.budgets = SessionBudgets({})
        self.seq = self.durable = self.snapshot_at = 0
        self.every = SNAPSHOT_EVERY
        self.stale = "it was not read yet"
        self._listener: Listener = None
        self._hears: Listener = None  # the listener, or who is told of what happens again
        self._grown, self._size = 0, 0  # bytes of events since the last snapshot, and of that
        self._keys: dict[bytes, Event] = {}  # of events that are not durable yet
        self._recent: deque[tuple[int, bytes]] = deque()
        self._facts: Facts = {}
        self._written_by: Mapping[str, str] = {}
        self.rounded = 0
        """How many events have led to their decisions but for rounding: they were written where arithmetic is another."""

    def rebuild(self, until: int | None = None, after: int | None = None, replayed: Listener = None) -> None:
        """Read the session from its journal: the newest snapshot that is whole, and every event after it, whose decisions are proved.

        `until` is the last event to go to, and snapshots later than `after` are not used. What was applied and not committed is gone.
        `replayed` is told of the rounds after the snapshot what `history` was.
        """
        self.stale = "its journal could not be replayed"
        self._keys.clear()
        self._recent.clear()
        last = min((number for number in (until, after) if number is not None), default=None)
        for row in self.store.snapshots(self.found.id):
            if last is None or row.seq <= last:
                try:
                    found = opened(row.body, f"snapshot {row.seq} of session {self.name!r}")
                except InputError:
                    continue  # the journal has everything since an older one
                if found.digest == row.digest:
                    if (head := self.store.head(self.found.id)) < row.seq:
                        raise Damaged(f"session {self.name!r} is damaged: events {head + 1} to {row.seq} are missing; restore a backup")
                    self._begin(found, row.seq, len(row.body), row)
                    break
        else:
            self._begin(self._made or opened(self.found.spec, f"session {self.name!r}"), 0, len(self.found.spec))
        self._made = None
        self.advance(self.store.tail(self.found.id, after=self.seq), until, replayed)
        self.stale = ""

    def rewind(self) -> None:
        """Go back as far as the journal goes: to the beginning, or, where it was trimmed, to the oldest snapshot."""
        first = self.store.first(self.found.id)
        kept = [row.seq for row in self.store.snapshots(self.found.id) if row.seq >= first - 1]
        start = 0 if first == 1 or not kept else min(kept)
        self.rebuild(until=start, after=start)

    def _begin(self, found: Snapshot, seq: int, size: int, row: SnapshotRow | None = None) -> None:
        facts = self._facts = found.facts
        self._written_by = facts["made"] if row is None else {"library": row.library, "platform": row.platform}
        self.budgets = SessionBudgets.restored(facts["budgets"])
        self.every = int(facts["every"])
        self.seq = self.durable = self.snapshot_at = seq
        self._size, self._grown, self.rounded = size, 0, 0
        self.session = Session.restored(found.saved, self._policy)
        self.session.number_tickets(*facts["tickets"])
        self.session.quiet = True  # alarms wait until what they are about is durable
        self.session.history = self._hears

    def advance(self, journal: Iterable[Event], until: int | None = None, replayed: Listener = None) -> None:
        """Let events happen again that are in the journal, and prove of each that it leads where it did; only `replayed` is told."""
        self._hears = self.session.history = replayed
        for event in journal:
            if until is not None and event.seq > until:
                break
            try:
                standing = self._again(event)
            except Exception as wrong:
                raise self._astray(event, f"is refused now ({wrong})") from wrong
            told, decision = Evidence(*DIGEST.unpack_from(event.body)), event.kind not in MONEY
            found = Evidence.of(standing, decision)
            if found != told:
                if not (decision and self._elsewhere and found.agrees(told, standing)):
                    raise self._astray(event, "leads to another decision now")
                self.rounded += 1
            self.seq = event.seq
            self._grown += len(event.body) + ROW
            self.session.hush()  # alarms were given when it first happened
        self.durable = self.seq
        self._hears = self.session.history = self._listener

    @property
    def _elsewhere(self) -> bool:
        """Whether the journal was written where arithmetic is another."""
        return (self._written_by["library"], self._written_by["platform"]) != (library(self.session.engine), machine())

    def listen(self, listener: Listener) -> None:
        """Tell of every round that is applied from now on what `history` is told."""
        self._listener = self._hears = self.session.history = listener

    def _astray(self, event: Event, what: str) -> ReplayError:
        made = self._written_by
        here = f"{library(self.session.engine)} on {machine()}"
        return ReplayError(
            f"session {self.name!r} cannot be resumed here: event {event.seq} ({kind_of(event.kind)}) {what}. It was written by "
            f"{made['library']} on {made['platform']}, and this is {here}: bits agree on one machine with one version of everything. "
            "Open it where it was written; when it is closed there, it can be opened here",
            event.seq,
        )

    def _again(self, event: Event) -> bytes:
        """Let an event happen again; what stands after it, in bytes."""
        command = decode(event.kind, event.body, DIGEST.size)
        self.happen(command)
        return self.standing(command)

    def happen(self, command: Command) -> Any:
        """Let something happen, in memory; its answer."""
        if isinstance(command, Pay):
            return self.budgets.pay(command)
        if isinstance(command, SetBudget):
            return self.budgets.set_budget(command)
        return self.session.apply(command)

    def standing(self, command: Command) -> bytes:
        """What stands after a command, in bytes: a budget, or the decision at which the session stands, or the points that it tries."""
        if isinstance(command, Pay | SetBudget):
            return self.budgets.standing(command.name)
        return self.session.standing()

    def sealed(self) -> tuple[bytes, bytes]:
        """Where the session stands as a snapshot, and its digest: two with the same digest go on alike."""
        facts = {**self._facts, "budgets": self.budgets.facts()}
        return self.session.read(lambda plan, state: sealed(facts, plan, state))
