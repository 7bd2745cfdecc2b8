"""A session that is read from its journal: the newest snapshot that is whole, and every event after it, whose bits are proved.

`ReplayedSession` is what may be done by anybody who can read the database; `bridle.session.durable` adds what only the owner does.

What was changed on the way, in a session whose journal remembers it: where limits stand since.

A limit moves by an offset that is added to its values: g_i(x) + offset <= 0 is what holds from then on. Constraints may be others in every
round, so that to a policy whose theorem allows that, and to every certificate, it is one more stream: what is proved is about the actions
that keep each limit as it stood in its own round. Totals and violations are of the limits as they stood. Policies whose theorem is about
constraints that stay the same, or that were told how far inside of them an action lies (``slater=``), do not allow it.

A limit on how often has its share changed (`bridle.policies.levels.with_shares`): what is reported and proved of it is then about the
rounds since, and what was counted before is in the list of changes.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from bridle import policies, validate
from bridle.core import InputError
from bridle.database.rows import Damaged, Event, Found, SnapshotRow
from bridle.ops import Array
from bridle.policies.levels import fraction, with_shares
from bridle.policies.registry import Configured
from bridle.session import events, savefile
from bridle.session.events import DIGEST, EventKind, Evidence
from bridle.session.feedback import Numbers
from bridle.session.purse import Paid, Purse
from bridle.session.rates import limit_names
from bridle.session.rounds import Listener
from bridle.session.savefile import Saved, SessionImage
from bridle.session.verbs import SessionVerbs
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


class Restore(Protocol):
    """How a core makes plain sessions: from a save file, and the policy where that is not registered."""

    def __call__(self, saved: Saved, policy: Any | None) -> SessionVerbs: ...


def kind_of(event: Event) -> str:
    """What an event is, in a word."""
    return EventKind(event.kind).name.lower() if event.kind in list(EventKind) else f"of kind {event.kind}"


class ReplayedSession:
    """A plain session, its budgets and what was changed on the way, where the journal has them; `seq` is the last event that it has had.

    Nothing may be asked of it while `stale` says why.
    """

    def __init__(
        self, store: EventStore, found: Found, restore: Restore, policy: object | None = None, made: savefile.Capsule | None = None
    ) -> None:
        self._made = made  # what it was made from, as long as nobody has changed it
        self.store, self.found, self.name = store, found, found.name
        self._restore, self._policy = restore, policy
        self.session: SessionVerbs
        self.purse, self.changes, self.evidence = Purse({}), Changes(), Evidence()
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

    def rebuild(self, until: int | None = None, after: int | None = None, replayed: Listener = None) -> None:
        """Read the session from its journal: the newest snapshot that is whole, and every event after it, whose bits are proved.

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
                    found = savefile.opened(row.body, f"snapshot {row.seq} of session {self.name!r}")
                except InputError:
                    continue  # the journal has everything since an older one
                if found.digest == row.digest:
                    if (head := self.store.head(self.found.id)) < row.seq:
                        raise Damaged(f"session {self.name!r} is damaged: events {head + 1} to {row.seq} are missing; restore a backup")
                    self._begin(found, row.seq, len(row.body), row)
                    break
        else:
            self._begin(self._made or savefile.opened(self.found.spec, f"session {self.name!r}"), 0, len(self.found.spec))
        self._made = None
        self.advance(self.store.tail(self.found.id, after=self.seq), until, replayed)
        self.stale = ""

    def rewind(self) -> None:
        """Go back as far as the journal goes: to the beginning, or, where it was trimmed, to the oldest snapshot."""
        first = self.store.first(self.found.id)
        kept = [row.seq for row in self.store.snapshots(self.found.id) if row.seq >= first - 1]
        start = 0 if first == 1 or not kept else min(kept)
        self.rebuild(until=start, after=start)

    def _begin(self, found: savefile.Capsule, seq: int, size: int, row: SnapshotRow | None = None) -> None:
        facts = self._facts = found.facts
        self._written_by = facts["made"] if row is None else {"library": row.library, "platform": row.platform}
        self.purse, self.changes = Purse.restored(facts["purse"]), Changes.restored(facts["changes"])
        self.evidence, self.every = Evidence(*facts["evidence"]), int(facts["every"])
        self.seq = self.durable = self.snapshot_at = seq
        self._size, self._grown = size, 0
        self.put(self._restore(found.saved, self._policy))

    def put(self, session: SessionVerbs) -> None:
        """Make this the session: its warnings wait until what they are about is durable, and its tickets are numbered as ever."""
        session._now.kept.log.quiet = True
        pending = session._now.kept.pending
        pending.offset, pending.since = self._facts["tickets"]
        self.session = session
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
            evidence = self.evidence.after(standing)
            if evidence != DIGEST.unpack_from(event.body):
                raise self._astray(event, "leads to another decision now")
            self.evidence, self.seq = evidence, event.seq
            self._grown += len(event.body) + ROW
            log = self.session._now.kept.log
            if log.unsent:
                log.unsent.clear()  # they were given when it first happened
        self.durable = self.seq
        self._hears = self.session.history = self._listener

    def listen(self, listener: Listener) -> None:
        """Tell of every round that is applied from now on what `history` is told."""
        self._listener = self._hears = self.session.history = listener

    def _astray(self, event: Event, what: str) -> ReplayError:
        made = self._written_by
        here = f"{savefile.library(self.session.engine)} on {savefile.machine()}"
        return ReplayError(
            f"session {self.name!r} cannot be resumed here: event {event.seq} ({kind_of(event)}) {what}. It was written by "
            f"{made['library']} on {made['platform']}, and this is {here}: bits agree on one machine with one version of everything. "
            "Open it where it was written; when it is closed there, it can be opened here",
            event.seq,
        )

    def _again(self, event: Event) -> bytes:
        """Let an event happen again; what stands after it, in bytes."""
        session, kind, body = self.session, event.kind, event.body
        try:
            if kind == events.OBSERVE:
                plain = None if self.changes.offsets else events.plain_numbers(body)
                if plain is not None:
                    session.observe(*plain)
                    return self._standing()
                said = events.observed(body, DIGEST.size)
                if self.changes.offsets and "g" in said:
                    said["g"] = raised_limits(said["g"], self.changes.offsets)
                session.observe(**said)
            elif kind == events.ASK:
                session.ask(**events.said(body, DIGEST.size), points=session._tries or 1)
            elif kind == events.DECIDE:
                session.decide(**events.said(body, DIGEST.size))
            elif kind == events.FORGET:
                session.forget(events.read_facts(body, DIGEST.size)["ticket"])
            elif kind == events.PAY:
                return self._paid(events.read_facts(body, DIGEST.size))[1]
            elif kind == events.SET_BUDGET:
                return self._budgeted(events.read_facts(body, DIGEST.size))[1]
            elif kind == events.CHANGE_LIMIT:
                self._change(events.read_facts(body, DIGEST.size))
            elif kind == events.WARM_UP:
                self._warm(events.read_facts(body, DIGEST.size))
            else:
                raise InputError(f"it is of kind {kind}, which this version of bridle does not know")
        except Exception as wrong:
            if not getattr(wrong, "counted", False):
                raise
        return self._standing()

    def _standing(self) -> bytes:
        """The decision at which the session stands, or the points that it tries, in bytes."""
        fast = self.session._live
        return fast.x.tobytes() if fast is not None else self.session._stands_at().tobytes()

    def sealed(self) -> tuple[bytes, bytes]:
        """Where the session stands as a capsule, and its digest: two with the same digest go on alike."""
        facts = {**self._facts, "purse": self.purse.facts(), "changes": self.changes.facts(), "evidence": list(self.evidence)}
        return savefile.sealed(facts, self.session._image(False))

    # --- what is rare, as it happens in memory --------------------------------------------------------------------------------------------

    def _paid(self, facts: Facts) -> tuple[float | None, bytes]:
        counted = self.purse.pay(Paid(facts["name"], facts["amount"], tuple(facts["asked"])))
        return counted, self.purse.standing(facts["name"])

    def _budgeted(self, facts: Facts) -> tuple[None, bytes]:
        self.purse.set_budget(facts["name"], facts["budget"], facts["rounds"])
        return None, self.purse.standing(facts["name"])

    def _warm(self, facts: Facts) -> tuple[None, None]:
        self.session._read(lambda _: self.session._compile(facts["constraints"]))
        return None, None

    def _change(self, facts: Facts) -> tuple[None, None]:
        image = self.session._image(False)
        changes, saved = changed_limit(self.changes, image, facts["limit"], facts["offset"], facts["at_most"])
        if saved is not None:
            self.put(self._restore(saved, None))
        self.changes = changes
        return None, None


MOST_LISTED = 1000
"""So many changes are listed, the latest."""


class Changes(NamedTuple):
    """The offset of each limit; what was changed when, as JSON has it."""

    offsets: tuple[float, ...] = ()
    listed: tuple[Facts, ...] = ()

    @classmethod
    def restored(cls, facts: Facts) -> Changes:
        """What `facts` gave."""
        return cls(tuple(map(float, facts["offsets"])), tuple(facts["listed"]))

    def facts(self) -> Facts:
        """All of it, as JSON has it."""
        return {"offsets": list(self.offsets), "listed": list(self.listed)}

    def moved(self, i: int, offset: float) -> Changes:
        """With this offset for limit i."""
        offsets = [*self.offsets, *[0.0] * (i + 1 - len(self.offsets))]
        offsets[i] = offset
        return self._replace(offsets=tuple(offsets) if any(offsets) else ())

    def noted(self, **what: Any) -> Changes:
        """With one more entry in the list."""
        return self._replace(listed=(*self.listed, what)[-MOST_LISTED:])


def raised_limits(g: Numbers, offsets: Sequence[float]) -> Array:
    """The values of the limits as they stand; where several points were tried, in the row of each."""
    values = validate.array("g", g)
    rows = np.atleast_1d(values)
    n = min(rows.shape[-1], len(offsets))
    rows[..., :n] += offsets[:n]
    return values


def which_limit(limit: object, names: Sequence[str], k: int | None) -> int:
    """The place of a limit that is given by its name or its number."""
    if isinstance(limit, str):
        called = list(names) or (limit_names(k) if k else [])
        if limit not in called:
            raise InputError(f"limit must be the name of a limit ({', '.join(map(repr, called)) or 'they have none'}), not {limit!r}")
        return called.index(limit)
    i = validate.whole("limit", limit, 0)
    if i >= (k or 1000):
        raise InputError(f"limit must be below {k or 1000}, the number of limits, not {i}")
    return i


def refuse_moving(configured: Configured | None, tighter: bool) -> None:
    """One error where a policy's theorem does not allow that a limit moves."""
    if configured is None:
        return
    if not configured.entry.time_varying:
        raise InputError(
            f"offset cannot be given: policy {configured.name} is for limits that stay the same, and says nothing once one has moved"
        )
    if tighter and configured.parameters.get("slater") is not None:
        raise InputError(
            f"offset must be 0 or below for policy {configured.name}, which was told how far inside of the limits an action lies (slater)"
        )


def changed_limit(
    changes: Changes, image: SessionImage, limit: str | int, offset: float | None, at_most: float | None
) -> tuple[Changes, Saved | None]:
    """What is changed once a limit is; with the session as a save file where its policy is another since. Else one `InputError`."""
    if (offset is None) == (at_most is None):
        raise InputError("one of offset and at_most must be given: where the limit moves to, or how often it may be violated")
    parts, k = image.parts, image.limits.k or (len(image.totals.hard) if image.rounds else None)
    i = which_limit(limit, parts.names, k)
    if offset is not None:
        before = changes.offsets[i] if i < len(changes.offsets) else 0.0
        refuse_moving(parts.configured, offset > before)
        return changes.moved(i, offset).noted(round=image.rounds, limit=i, offset=offset), None
    assert at_most is not None
    rates = parts.rates()
    if not rates or parts.configured is None:
        raise InputError("at_most cannot be given: the policy of this session keeps no limits on how often; move the limit with offset")
    report = rates[0 if len(rates) == 1 else i]
    noted = changes.noted(round=image.rounds, limit=i, at_most=at_most, before=asdict(report))
    return noted, _with_share(image, parts.configured, i, at_most)


def _with_share(image: SessionImage, configured: Configured, i: int, at_most: float) -> Saved:
    """A session as a save file, in which limit i may be violated in another share of the rounds: its count begins anew."""
    parts, record = image.parts, configured.record
    shares = np.array(record.level.share, dtype=float)
    shares[slice(None) if record.any else i] = float(fraction(at_most))
    domain, parameters = configured.recipe
    settings = {**parameters, "at_most": shares.tolist() if len(shares) > 1 else float(shares[0])}
    other = policies.policy(configured.name, domain, **settings)
    pending = parts.pending.clone()
    pending.copies = [
        copy._replace(state=copy.state._replace(level=with_shares(record.level, other.record.level, copy.state.level)))  # type: ignore[attr-defined]
        for copy in pending.copies
    ]
    changed = image._replace(parts=parts._replace(configured=other, record=other.record, pending=pending))
    file = io.BytesIO()
    savefile.write(file, savefile.packed(changed))
    return savefile.parsed(file.getvalue(), "the session with another limit")
