"""A session and its journal: what happens to it is an event, which is applied in memory, written down, and answered once it is durable.

`Journal` is the part that sessions in the caller's own process and the service share. It applies and encodes; who owns it commits. For one
session, in the order of its events:

    core = open_journal(store, "shop-17", policy=..., ...)                   takes the lease, replays the journal, proves the bits
    applied = core.apply(Observation(f, df, g, dg), key=...)                 in memory; refused: InputError, nothing has changed
    store.append(core.lease, applied.rows)                                   or append_many, with the rows of other sessions
    core.committed(applied.seq)                                              only now may an answer leave that rests on `applied.seq`
    core.tell()                                                              warnings of the round (or core.warnings() to log them)
    if core.snapshot_due: store.put_snapshot(core.lease, core.snapshot())    in a transaction of its own, when nothing waits

A verb without rows has nothing to append: it only read, or the same was asked before under its key (`applied.again`, and `applied.answer`
is what was stored as the answer then). Where `applied.problem` is an exception, raise it in place of the value, after the commit: the event
counts all the same. The rows of later events may be appended together with those of earlier ones, so that events can be applied while a
commit is under way. Where a commit fails, or its outcome is not known, call `core.fail(why)`: memory may be ahead of the disk, and every
verb raises `Stale` until `core.rebuild()` has read the journal again. Every event that was applied and not committed is answered with the
failure, none with its value. Where the lease was lost (`Fenced`), let the core go.

`core.seq` is the last event applied, `core.durable` the last committed. An answer that only reads (`decide` without arguments, the session
`core.session` itself for certificates and the like) rests on `core.seq`: it leaves once `core.durable` has come that far, and while
`store.holds(core.lease)`. One thread at a time may be in a core. Nobody may change `core.session` but by these verbs.

>>> from bridle import database
>>> import bridle
>>> store = database.open_store("sqlite:///core.db")
>>> core = open_journal(store, "shop-17", policy=bridle.policy("anytime", bridle.Ball(2)))
>>> applied = core.apply(Observation(f=0.3, df=[1.0, 0.0]), key="order 1")
>>> store.append(core.lease, applied.rows)
>>> core.committed(applied.seq)
>>> core.apply(Observation(f=0.3, df=[1.0, 0.0]), key="order 1").rows, core.session.rounds  # it has had that one
((), 1)
>>> core.close()
>>> store.close()
"""

from __future__ import annotations

import json
import secrets
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from numpy.typing import ArrayLike

from bridle import validate
from bridle.core import BridleWarning, Command, Decide, Forget, InputError, Observation, Pay
from bridle.database.rows import Event, Fenced, Found, Lease, SnapshotRow, StoreError
from bridle.durable import commands
from bridle.durable.budgets import Budgets, SessionBudgets
from bridle.durable.commands import ASK, DIGEST, FORGET, KINDS, MONEY, OBSERVE, PAY, Evidence, Key, kind_of
from bridle.durable.replay import ROW, SNAPSHOT_EVERY, ReplayedSession
from bridle.durable.snapshot import (
    Snapshot,
    library,
    machine,
    opened,
    refuse_another_policy,
    refuse_other_budgets,
    refuse_other_options,
    sealed,
)
from bridle.session.actions import is_silent, unsaid
from bridle.session.late import INCARNATIONS, ROUNDS
from bridle.session.savefile import SessionOptions
from bridle.session.session import Listener, Session
from bridle.session.state import Plan, SessionState
from bridle.session.tried_points import refuse_extras, rows_of

if TYPE_CHECKING:
    from bridle.database.store import EventStore

SNAPSHOT_BYTES, SNAPSHOT_SHARE = 10_000_000, 10
"""A snapshot is due also once the events since the last have so many bytes, or so many times its size where that is more."""

BROKEN_OFF = "an event was broken off while it was applied"

UNWRITABLE = (InputError, TypeError, OverflowError, struct.error)
"""What goes wrong where something cannot be written down."""


class KeyConflict(InputError):
    """One key for two things."""


class Stale(StoreError):
    """The session may be ahead of its journal, and must be rebuilt from it before its next use."""


class Applied(NamedTuple):
    """What came of a command: its value, the event on which it rests, and the rows to append, none where nothing happened.

    The value may leave once event `seq` is durable. `again`: the same was asked before, and `answer` is what was stored as the answer then.
    `problem` is to be raised in place of the value, once the rows are durable.
    """

    value: Any
    seq: int
    rows: tuple[Event, ...] = ()
    again: bool = False
    answer: bytes | None = None
    problem: Exception | None = None


Answering: TypeAlias = Callable[[Any], bytes] | None
"""Makes what is stored as the answer of an event, from its value, once it has happened in memory."""


class Journal(ReplayedSession):
    """One session in memory, in step with its journal; see the module."""

    def __init__(self, store: EventStore, found: Found, lease: Lease, policy: object | None = None, made: Snapshot | None = None) -> None:
        super().__init__(store, found, policy, made)
        self.lease = lease

    # --- how the owner drives it --------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Refuse where the session is not what its journal says."""
        if self.stale:
            raise Stale(f"session {self.name!r} must be rebuilt from its journal: {self.stale}")

    def check_held(self) -> None:
        """Refuse to read where the session may belong to somebody else; what is written is refused by the store."""
        self.check()
        if not self.store.holds(self.lease):
            raise Fenced(f"session {self.name!r} may have another owner by now: open it again")

    def committed(self, seq: int) -> None:
        """Say that every event up to this one is on the disk."""
        if seq > self.durable:
            self.durable = seq
        recent = self._recent
        while recent and recent[0][0] <= seq:
            self._keys.pop(recent.popleft()[1], None)

    def fail(self, why: object) -> None:
        """Say that a commit failed, or that nobody knows whether it did: nothing is answered before `rebuild`."""
        self.stale = str(why) or type(why).__name__

    def close(self) -> None:
        """Let the session go, for others to own; what is committed stays."""
        self.stale = "it is closed"
        self.store.release(self.lease)

    @property
    def snapshot_due(self) -> bool:
        """Whether a snapshot should be put, once everything is durable."""
        return self.seq - self.snapshot_at >= self.every or self._grown > max(SNAPSHOT_BYTES, SNAPSHOT_SHARE * self._size)

    def snapshot(self) -> SnapshotRow:
        """A snapshot after the last event; to be put once that is durable."""
        body, digest = self.sealed()
        self.snapshot_at, self._grown, self._size = self.seq, 0, len(body)
        return SnapshotRow(self.seq, library(self.session.engine), machine(), digest, body)

    def warnings(self) -> list[BridleWarning]:
        """The warnings that nobody has heard of yet; they count as given."""
        return list(self.session.unheard())

    # --- what an event leaves behind ----------------------------------------------------------------------------------------------------

    def _row(self, kind: int, payload: bytes, key: bytes | None, request: bytes, answer: bytes | None, standing: bytes) -> Event:
        """The row of an event that has just been applied; from now on this core has it. `request` is what must be the same again."""
        evidence, seq = Evidence.of(standing, kind not in MONEY), self.seq + 1
        event = Event(
            seq, int(kind), key, None if key is None else commands.request_of(kind, request), answer, DIGEST.pack(*evidence) + payload
        )
        if key is not None:
            self._keys[key] = event
            self._recent.append((seq, key))
        self._grown += len(payload) + ROW
        self.seq = seq
        return event

    def _repeat(self, kind: int, key: bytes | None, request: bytes) -> Applied | None:
        """What came of the event that had this key, if one had: it must have been the same."""
        event = None if key is None else self._keys.get(key) or self.store.answer(self.found.id, key)
        if event is None:
            return None
        if key is not None and (event.kind != kind or event.request != commands.request_of(kind, request)):
            raise KeyConflict(
                f"{commands.shown_key(key)} was used before, by event {event.seq} ({kind_of(event.kind)}) with other numbers: "
                "what is asked again must be the same, and what is new must have a key of its own"
            )
        return Applied(self._again_value(kind, event.answer), event.seq, (), True, event.answer)

    # --- a command ------------------------------------------------------------------------------------------------------------------------

    def apply(self, command: Command, key: Key = None, answer: Answering = None, pay: Mapping[str, float] | None = None) -> Applied:
        """Let something happen, unless it has happened under this key, or to this ticket.

        `pay` are payments, by the names of their budgets, that happen with an observation or not at all. `answer` makes what is stored as
        the answer, to be had again under the same key; a decision without a key that says nothing is no event.
        """
        self.check()
        kind = command.__class__
        if kind is Observation:
            if key is None and pay is None and answer is None and command.ticket is None and not self.session.plan.tries:  # type: ignore[union-attr]
                return self._observe(command)  # type: ignore[arg-type]
            command = self._by_values(command) if self.session.plan.tries else command  # type: ignore[arg-type]
        elif kind is Decide and key is None and is_silent(command.prior) and not self._rules_wait():  # type: ignore[union-attr]
            self.check_held()
            return Applied(self.session.decide(), self.seq)
        elif isinstance(command, Pay):
            command = self._asked(command.name, command.amount)
        number, identity = KINDS[kind], commands.key_of(key)
        ticket = command.ticket if isinstance(command, Observation | Forget) else None
        payments = [] if pay is None else self._payments(pay)
        payload, request, unwritten = b"", b"", None
        if kind is not Observation or identity is not None or ticket is not None:
            try:
                payload = commands.encode(command)
                asked = commands.encode(command._replace(asked=())) if isinstance(command, Pay) else payload
                request = asked + b"".join(commands.encode(each._replace(asked=())) for each in payments)
                if identity is None and ticket is not None:
                    identity = commands.ticket_key(int(ticket), number)
            except UNWRITABLE as wrong:
                if kind is not Observation and kind is not Forget:
                    raise
                identity, payload, unwritten = None, b"", wrong  # the session will say what is wrong with it
        if key is not None and (had := self._repeat(number, identity, request)):
            return had
        stood = [(each.name, self.budgets.account(each.name)) for each in payments]
        self.stale = BROKEN_OFF  # what else comes than an `InputError` leaves it so: then nothing has happened
        try:
            paid = [self.budgets.pay(each) for each in payments]
            value = self.happen(command)
        except InputError:
            for name, account in reversed(stood):
                self.budgets.go_back(name, account)
            self.stale = ""
            if key is None and identity is not None and (had := self._repeat(number, identity, request)):
                return had  # its ticket says what it is
            raise
        if unwritten is not None:
            raise unwritten
        rows = [
            self._row(PAY, commands.encode(each), None, b"", json.dumps(counted).encode(), self.budgets.standing(each.name))
            for each, counted in zip(payments, paid, strict=True)
        ]
        told = self._stored(number, value, answer, identity)
        rows.append(self._row(number, payload or commands.encode(command), identity, request, told, self.standing(command)))
        problem, self.session.failure, self.stale = self.session.failure, None, ""
        return Applied(value, self.seq, tuple(rows), False, told, problem)

    def _observe(self, o: Observation) -> Applied:
        """An observation of nothing but numbers, which is what happens most: it is written down in as few steps as there are.

        Nothing here is a call that could be done without: after a commit the processor has forgotten everything, and each costs five times
        what it does in a loop.
        """
        self.stale = BROKEN_OFF
        try:
            self.session.apply(o)
        except InputError:
            self.stale = ""
            raise
        payload = commands.plain(*o[:4]) if o.modulus is None and o.played is None else None
        if payload is None:
            payload = commands.encode(o)
        body = DIGEST.pack(*Evidence.of(self.session.standing())) + payload
        row = Event(self.seq + 1, OBSERVE, None, None, None, body)
        self._grown += len(body) + ROW
        self.seq = row.seq
        problem, self.session.failure, self.stale = self.session.failure, None, ""
        return Applied(None, row.seq, (row,), problem=problem)

    def _rules_wait(self) -> bool:
        """Whether to decide is an event: the session's own rules are asked."""
        return self.session.plan.asks and self.session.read(unsaid)

    def _by_values(self, o: Observation) -> Observation:
        """An observation at the points that were tried, in the form in which it is written down."""
        plan = self.session.plan
        refuse_extras(plan.called, df=o.df, dg=o.dg, modulus=o.modulus, played=o.played)
        f, g = rows_of(plan.tries, o.f, o.g)
        return Observation(f, g=g, ticket=o.ticket)

    def _asked(self, name: str, amount: float) -> Pay:
        """A payment as it is written down, with what its pacer was asked of it."""
        return Pay(name, validate.nonnegative("amount", amount), self.budgets.asked(name))

    def _payments(self, pay: Mapping[str, float]) -> list[Pay]:
        if not isinstance(pay, Mapping):
            raise validate.refused("pay must be amounts under the names of their budgets", pay)
        return [self._asked(name, amount) for name, amount in pay.items()]

    def _stored(self, kind: int, value: Any, answer: Answering, identity: bytes | None) -> bytes | None:
        """What is stored as the answer of an event."""
        if kind == ASK:
            return commands.ticket_answer(value)
        if answer is not None:
            return answer(value)
        return json.dumps(value).encode() if identity is not None and kind not in (OBSERVE, FORGET, commands.DECIDE) else None

    def _again_value(self, kind: int, answer: bytes | None) -> Any:
        """The value of an event that happened before, from its stored answer."""
        if kind == ASK:
            return commands.answered_ticket(answer or b"", self.session.plan.tries or 1)
        if kind != PAY:
            return None
        told = json.loads(answer or b"null")
        return told["counted"] if isinstance(told, dict) else told


def made_from(plan: Plan, state: SessionState, gates: Budgets, every: int | None, imported: bool = False) -> bytes:
    """What a new session is made from, as `EventStore.create` keeps it: it is the session before its first event."""
    late = state.slow.late
    facts = {
        "made": {"library": library(plan.engine), "platform": machine()},
        "budgets": SessionBudgets.checked(gates).facts(),
        "every": validate.whole("snapshot_every", SNAPSHOT_EVERY if every is None else every),
        # Tickets that an imported session gave out after it was saved must not come again.
        "tickets": [ROUNDS * (1 + secrets.randbelow(INCARNATIONS)), state.now.begun] if imported else [0, 0],
    }
    return sealed(facts, plan, state.with_late(run=late.run or secrets.token_hex(8)))[0]


def open_journal(
    store: EventStore,
    name: str,
    policy: Any | None = None,
    x1: ArrayLike | None = None,
    *,
    snapshot_every: int | None = None,
    gates: Budgets = None,
    wait: float = 0.0,
    replayed: Listener = None,
    options: SessionOptions | None = None,
) -> Journal:
    """The session of this name, made or resumed, with its lease: the arguments are those of `Session.open`.

    `replayed` is told of every round that is replayed what `history` was told of it.
    """
    options = {} if options is None else options
    found = store.find(name)
    if found is None:
        if policy is None:
            raise InputError(f"policy must be given: {store.name} has no session {validate.show(name)} yet")
        spec = Session(policy, x1, **options).read(lambda plan, state: made_from(plan, state, gates, snapshot_every))
        try:
            found = store.create(name, spec)
        except InputError:
            found = store.find(name)  # somebody else was faster
            if found is None:
                raise
    made = opened(found.spec, f"session {name!r}")
    if policy is not None:
        refuse_another_policy(policy, made.saved, name)
    given: dict[str, object] = {**options} if x1 is None else {**options, "x1": x1}
    refuse_other_options(given, made.saved, name)
    refuse_other_budgets(gates, made, name)
    own = policy if made.saved.header.get("policy") is None else None
    core = Journal(store, found, store.take(found, wait), own, made)
    try:
        core.rebuild(replayed=replayed)
        if core.rounded:  # from here on it is as this machine has it
            store.put_snapshot(core.lease, core.snapshot())
        if snapshot_every is not None:
            core.every = validate.whole("snapshot_every", snapshot_every)
    except BaseException:
        with suppress(StoreError):
            core.close()
        raise
    return core
