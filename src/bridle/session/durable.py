"""A session and its journal: what happens to it is an event, which is applied in memory, written down, and answered once it is durable.

`DurableCore` is the part that sessions in the caller's own process and the service share. It applies and encodes; who owns it
commits. For one session, in the order of its events:

    core = bridle.Session.core(store, "shop-17", policy=..., ...)            takes the lease, replays the journal, proves the bits
    applied = core.observe(f=..., df=..., g=..., dg=..., key=...)            in memory; refused: InputError, nothing has changed
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

`Embedded` drives a core in the caller's own process, and commits every event before its call returns. A call that fails to commit
has not happened: the session is rebuilt from its journal before its next use. Where nobody knows whether the commit came through, the error
says so, and the rebuilt session shows it. One call is at work at a time; threads wait for each other, and a call from inside of a call (a
signal's handler) is refused.

>>> from bridle import database
>>> import bridle
>>> store = database.open_store("sqlite:///core.db")
>>> core = bridle.Session.core(store, "shop-17", policy=bridle.policy("anytime", bridle.Ball(2)))
>>> applied = core.observe(f=0.3, df=[1.0, 0.0], key="order 1")
>>> store.append(core.lease, applied.rows)
>>> core.committed(applied.seq)
>>> core.observe(f=0.3, df=[1.0, 0.0], key="order 1").rows, core.session.rounds  # it has had that one
((), 1)
>>> core.close()
>>> store.close()
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, Unpack, cast
from zlib import crc32

from numpy.typing import ArrayLike

from bridle import validate
from bridle.core import BridleWarning, InputError
from bridle.database.rows import Event, Fenced, Found, Lease, SnapshotRow, StoreError
from bridle.ops import Array
from bridle.session import events, savefile
from bridle.session.events import DIGEST, EventKind, Evidence, Key
from bridle.session.feedback import Numbers
from bridle.session.late_feedback import INCARNATIONS, ROUNDS, Ticket, TicketGiven
from bridle.session.prior import Prior
from bridle.session.purse import READS, Budgets, Paid, Purse
from bridle.session.replay import ROW, SNAPSHOT_EVERY, Changes, ReplayedSession, Restore, kind_of, raised_limits
from bridle.session.rounds import HistoryEntry, Listener, mark
from bridle.session.savefile import SessionImage, SessionOptions
from bridle.session.tried_points import refuse_extras, rows_of
from bridle.session.verbs import SessionVerbs
from bridle.storage import Facts

if TYPE_CHECKING:
    from bridle.database.store import EventStore

SNAPSHOT_BYTES, SNAPSHOT_SHARE = 10_000_000, 10
"""A snapshot is due also once the events since the last have so many bytes, or so many times its size where that is more."""

OBSERVE = int(events.OBSERVE)

BROKEN_OFF = "an event was broken off while it was applied"


class KeyConflict(InputError):
    """One key for two things."""


class Stale(StoreError):
    """The session may be ahead of its journal, and must be rebuilt from it before its next use."""


class Applied(NamedTuple):
    """What came of a verb: its value, the event on which it rests, and the rows to append, none where nothing happened.

    The value may leave once event `seq` is durable. `again`: the same was asked before, and `answer` is what was stored as the answer then.
    `problem` is to be raised in place of the value, once the rows are durable.
    """

    value: Any
    seq: int
    rows: tuple[Event, ...] = ()
    again: bool = False
    answer: bytes | None = None
    problem: BaseException | None = None


class WarmingSession(Protocol):
    """A session that can do in advance what its first rounds would pay for."""

    def warm_up(self, constraints: int | None = None) -> None: ...


Answering = Callable[[SessionVerbs], bytes]
"""Makes what is stored as the answer of an event, from the session to which it has just happened."""

Rare = Callable[[Facts], tuple[Any, bytes | None]]
"""Lets something happen, in memory, that is a few facts: its value, and what stands after it, None for the decision."""


class DurableCore(ReplayedSession):
    """One session in memory, in step with its journal; see the module."""

    def __init__(
        self, store: EventStore, found: Found, lease: Lease, restore: Restore, policy: object | None = None,
        made: savefile.Capsule | None = None,
    ) -> None:  # fmt: skip
        super().__init__(store, found, restore, policy, made)
        self.lease = lease

    # --- making and rebuilding --------------------------------------------------------------------------------------------------------

    @staticmethod
    def spec(image: SessionImage, gates: Budgets, every: int | None, imported: bool = False) -> bytes:
        """What a new session is made from, as `EventStore.create` keeps it: it is the session before its first event."""
        pending = image.parts.pending
        pending.run = pending.run or secrets.token_hex(8)
        facts = {
            "made": {"library": savefile.library(image.engine), "platform": savefile.machine()},
            "purse": Purse.checked(gates).facts(),
            "changes": Changes().facts(),
            "evidence": list(Evidence()),
            "every": validate.whole("snapshot_every", SNAPSHOT_EVERY if every is None else every),
            # Tickets that an imported session gave out after it was saved must not come again.
            "tickets": [ROUNDS * (1 + secrets.randbelow(INCARNATIONS)), pending.begun] if imported else [0, 0],
        }
        return savefile.sealed(facts, image)[0]

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
        return SnapshotRow(self.seq, savefile.library(self.session.engine), savefile.machine(), digest, body)

    def warnings(self) -> list[BridleWarning]:
        """The warnings that nobody has heard of yet; they count as given."""
        log = self.session._now.kept.log
        found, log.unsent = log.unsent, []
        return found

    def tell(self) -> None:
        """Give the warnings that nobody has heard of yet."""
        log = self.session._now.kept.log
        if log.unsent:
            log.quiet = False
            try:
                log.send()
            finally:
                log.quiet = True

    # --- what an event leaves behind ----------------------------------------------------------------------------------------------------

    def _row(
        self, kind: EventKind, payload: bytes, key: bytes | None = None, request: bytes = b"", answer: bytes | None = None,
        standing: bytes | None = None,
    ) -> Event:  # fmt: skip
        """The row of an event that has just been applied; from now on this core has it. `request` is what must be the same again."""
        evidence, seq = self.evidence.after(self._standing() if standing is None else standing), self.seq + 1
        event = Event(
            seq, int(kind), key, None if key is None else events.request_of(kind, request), answer, DIGEST.pack(*evidence) + payload
        )
        if key is not None:
            self._keys[key] = event
            self._recent.append((seq, key))
        self._grown += len(payload) + ROW
        self.evidence, self.seq = evidence, seq
        return event

    def _repeat(
        self, kind: EventKind, key: bytes | None, request: bytes, read: Callable[[bytes | None], object] = lambda answer: None
    ) -> Applied | None:
        """What came of the event that had this key, if one had: it must have been the same. `read` makes the value of its answer."""
        event = None if key is None else self._keys.get(key) or self.store.answer(self.found.id, key)
        if event is None:
            return None
        if key is not None and (event.kind != kind or event.request != events.request_of(kind, request)):
            raise KeyConflict(
                f"{events.shown_key(key)} was used before, by event {event.seq} ({kind_of(event)}) with other numbers: "
                "what is asked again must be the same, and what is new must have a key of its own"
            )
        return Applied(read(event.answer), event.seq, (), True, event.answer)

    def _counted(self, wrong: BaseException) -> BaseException:
        """What went wrong in a verb that counted all the same; else it is raised, and an `InputError` has changed nothing."""
        if not getattr(wrong, "counted", False):
            if isinstance(wrong, InputError):
                self.stale = ""
            raise wrong
        return wrong

    # --- the verbs ----------------------------------------------------------------------------------------------------------------------

    def decide(self, *, key: Key = None, answer: Callable[[Array], bytes] | None = None, **said: Unpack[Prior]) -> Applied:
        """The decision of this round; an event only where something is said, the session's own rules are asked, or it has a key.

        `answer` makes what is stored as the answer of the decision, to be had again under the same key; the value is None then.
        """
        self.check()
        session = self.session
        if key is None and (not said or all(each is None for each in said.values())) and not session._unsaid():
            self.check_held()
            return Applied(session.decide(), self.seq)
        payload, identity = events.saying(said), events.key_of(key)
        if had := self._repeat(events.DECIDE, identity, payload):
            return had
        self.stale = BROKEN_OFF
        try:
            x = session.decide(**said)
        except InputError:
            self.stale = ""
            raise
        row = self._row(events.DECIDE, payload, identity, payload, None if answer is None else answer(x))
        self.stale = ""
        return Applied(x, self.seq, (row,), False, row.answer)

    def ask(self, *, points: int | None = None, key: Key = None, **said: Unpack[Prior]) -> Applied:
        """Begin a round whose feedback comes later: its ticket."""
        self.check()
        self.session._refuse_other_points(points)
        payload, identity = events.saying(said), events.key_of(key)
        if had := self._repeat(events.ASK, identity, payload, lambda old: events.answered_ticket(old or b"", self.session._tries or 1)):
            return had
        session, problem = self.session, None
        self.stale = BROKEN_OFF
        try:
            ticket = session.ask(**said, points=points)
        except BaseException as wrong:
            problem, ticket = self._counted(wrong), session._last_ticket()
        row = self._row(events.ASK, payload, identity, payload, events.ticket_answer(ticket))
        self.stale = ""
        return Applied(ticket, self.seq, (row,), False, row.answer, problem)

    def observe(
        self,
        f: ArrayLike = 0.0,
        df: Numbers = None,
        g: Numbers = None,
        dg: Numbers = None,
        modulus: Numbers = None,
        *,
        ticket: TicketGiven = None,
        played: Numbers = None,
        key: Key = None,
        pay: Mapping[str, float] | None = None,
        answer: Answering | None = None,
    ) -> Applied:
        """Take in what was revealed at a decision; `pay` are payments, by the names of their budgets, that happen with it or not at all.

        `answer` makes what is stored as the answer, to be had again under the same key.
        """
        self.check()
        if (
            key is None
            and ticket is None
            and modulus is None
            and played is None
            and pay is None
            and answer is None
            and not self.session._tries
        ):
            return self.observe_numbers(f, df, g, dg)
        if self.session._tries:
            extras = {"df": df, "dg": dg, "modulus": modulus, "played": played}
            refuse_extras(self.session._called, **extras)
            f, g = rows_of(self.session._tries, f, g)
        identity, payload, request = events.key_of(key), b"", b""
        unwritten: Exception | None = None
        payments = [] if pay is None else self._payments(pay)
        if identity is not None or ticket is not None:
            try:
                payload = self._written(f, df, g, dg, modulus, ticket, played)
                request = payload + b"".join(events.facts(each._replace(asked=())._asdict()) for each in payments)
            except (InputError, TypeError, OverflowError) as wrong:
                identity, payload, unwritten = None, b"", wrong  # the session will say what is wrong with it
            else:
                identity = events.ticket_key(int(ticket), events.OBSERVE) if identity is None and ticket is not None else identity
        if key is not None and (had := self._repeat(events.OBSERVE, identity, request)):
            return had
        values = raised_limits(g, self.changes.offsets) if self.changes.offsets and g is not None else g
        session, problem, stood = self.session, None, [(each.name, self.purse.account(each.name)) for each in payments]
        self.stale = BROKEN_OFF
        try:
            rows = [self.purse.pay(each) for each in payments]
            session.observe(f, df, values, dg, modulus, ticket=ticket, played=played)
        except BaseException as wrong:
            if not getattr(wrong, "counted", False):
                for name, account in reversed(stood):
                    self.purse.go_back(name, account)
                if isinstance(wrong, InputError) and key is None and identity is not None:
                    self.stale = ""
                    if had := self._repeat(events.OBSERVE, identity, request):  # its ticket says what it is
                        return had
            problem = self._counted(wrong)
        if unwritten is not None:  # a signal's handler broke off the writing alone: without its key, a retry would count twice
            raise unwritten
        paid = [
            self._row(events.PAY, events.facts(each._asdict()), None, b"", json.dumps(counted).encode(), self.purse.standing(each.name))
            for each, counted in zip(payments, rows, strict=True)
        ]
        payload = payload or self._written(f, df, g, dg, modulus, ticket, played)
        row = self._row(events.OBSERVE, payload, identity, request, None if answer is None else answer(session))
        self.stale = ""
        return Applied(None, self.seq, (*paid, row), False, row.answer, problem)

    def _written(self, f: Any, df: Numbers, g: Any, dg: Numbers, modulus: Numbers, ticket: TicketGiven, *others: Any) -> bytes:
        """The payload of an observation; by values alone it is what `rows_of` has made of it."""
        return events.tried(f, g, ticket) if self.session._tries else events.observation(f, df, g, dg, modulus, ticket, *others)

    def observe_numbers(self, f: ArrayLike, df: Numbers = None, g: Numbers = None, dg: Numbers = None) -> Applied:
        """`observe` where nothing but numbers is told, which is what happens most: it is written down in as few steps as there are.

        Nothing here is a call that could be done without: after a commit the processor has forgotten everything, and each costs five times
        what it does in a loop.
        """
        changes, session, problem = self.changes, self.session, None
        if self.stale or session._tries:
            return self.observe(f, df, g, dg)
        self.stale = BROKEN_OFF
        try:
            session.observe(f, df, raised_limits(g, changes.offsets) if changes.offsets and g is not None else g, dg)
        except BaseException as wrong:
            problem = self._counted(wrong)
        fast = session._live
        standing = fast.x.data if fast is not None else session._decision().data
        last, all_of_them = crc32(standing), crc32(standing, self.evidence.all)
        body = events.plain_body(last, all_of_them, f, df, g, dg)
        if body is None:
            body = DIGEST.pack(last, all_of_them) + events.observation(f, df, g, dg)
        seq = self.seq + 1
        row = Event(seq, OBSERVE, None, None, None, body)
        self._grown += len(body) + ROW
        self.evidence, self.seq = Evidence(last, all_of_them), seq
        self.stale = ""
        return Applied(None, seq, (row,), problem=problem)

    def forget(self, ticket: Ticket | int, *, answer: Answering | None = None) -> Applied:
        """Give a round up; its ticket says what it is, and `answer` makes what is stored, to be had again."""
        self.check()
        session, problem = self.session, None
        self.stale = BROKEN_OFF
        try:
            session.forget(ticket)
        except BaseException as wrong:
            problem = wrong
        try:
            payload = events.facts({"ticket": int(ticket)})
            identity = events.ticket_key(int(ticket), events.FORGET)
        except (TypeError, ValueError, OverflowError):
            raise self._counted(problem or AssertionError("a ticket without a number")) from None
        if problem is not None and isinstance(problem, InputError) and not getattr(problem, "counted", False):
            self.stale = ""
            if had := self._repeat(events.FORGET, identity, payload):
                return had
        problem = None if problem is None else self._counted(problem)
        row = self._row(events.FORGET, payload, identity, payload, None if answer is None else answer(session))
        self.stale = ""
        return Applied(None, self.seq, (row,), False, row.answer, problem)

    def warm_up(self, constraints: int | None = None) -> Applied:
        """`Session.warm_up`; where it compiles the round that is an event, because looks are due at other times since."""
        self.check()
        plain = cast("WarmingSession", self.session)
        compiled = self.session._compiled
        plain.warm_up(constraints)
        if compiled is self.session._compiled:
            return Applied(None, self.seq)
        self.stale = BROKEN_OFF
        row = self._row(events.WARM_UP, events.facts({"constraints": self.session._compiled.k}))  # type: ignore[union-attr]
        self.stale = ""
        return Applied(None, self.seq, (row,))

    def change_limit(
        self, limit: str | int, *, offset: float | None = None, at_most: float | None = None, key: Key = None,
        answer: Callable[[None], bytes] | None = None,
    ) -> Applied:  # fmt: skip
        """Move a limit, or change how often it may be violated, from now on: see `bridle.session.replay`."""
        numbers = {"offset": offset, "at_most": at_most}
        facts = {name: None if value is None else validate.number(name, value) for name, value in numbers.items()}
        told = {"limit": limit if isinstance(limit, str) else validate.whole("limit", limit, 0), **facts}
        return self._once(events.CHANGE_LIMIT, told, self._change, key, answer)

    def pay(self, name: str, amount: float = 0.0, *, key: Key = None, answer: Callable[[float | None], bytes] | None = None) -> Applied:
        """Count a payment from a budget; what was counted, of a gate.

        `answer` makes what is stored as the answer of what was counted: a JSON object that has it as `counted`.
        """
        self.check()
        (paid,) = self._payments({name: amount})
        identity, request = events.key_of(key), events.facts(paid._replace(asked=())._asdict())
        if had := self._repeat(events.PAY, identity, request, _counted_in):
            return had
        return self._rare(events.PAY, paid._asdict(), self._paid, identity, request, answer)

    def set_budget(
        self, name: str, budget: float, rounds: int | None = None, *, key: Key = None,
        answer: Callable[[None], bytes] | None = None,
    ) -> Applied:  # fmt: skip
        """Change what may be spent from a budget in all."""
        number = None if rounds is None else validate.whole("rounds", rounds)
        told = {"name": name, "budget": validate.number("budget", budget), "rounds": number}
        return self._once(events.SET_BUDGET, told, self._budgeted, key, answer)

    # --- what is rare -------------------------------------------------------------------------------------------------------------------

    def _once(self, kind: EventKind, facts: Facts, do: Rare, key: Key, answer: Callable[[Any], bytes] | None) -> Applied:
        """Let something happen that is a few facts, unless it has happened under this key; `answer` makes what is stored."""
        self.check()
        identity, request = events.key_of(key), events.facts(facts)
        if had := self._repeat(kind, identity, request):
            return had
        return self._rare(kind, facts, do, identity, request, answer)

    def _rare(
        self, kind: EventKind, facts: Facts, do: Rare, key: bytes | None = None, request: bytes = b"",
        answer: Callable[[Any], bytes] | None = None,
    ) -> Applied:  # fmt: skip
        """Let something happen that is a few facts."""
        self.check()
        payload = events.facts(facts)
        self.stale = BROKEN_OFF
        try:
            value, standing = do(facts)
        except InputError:
            self.stale = ""
            raise
        told = None if key is None else json.dumps(value).encode() if answer is None else answer(value)
        row = self._row(kind, payload, key, request, told, standing)
        self.stale = ""
        return Applied(value, self.seq, (row,), False, row.answer)

    def _payments(self, pay: Mapping[str, float]) -> list[Paid]:
        """Payments as they will be written down."""
        if not isinstance(pay, Mapping):
            raise validate.refused("pay must be amounts under the names of their budgets", pay)
        return [Paid(name, validate.nonnegative("amount", amount), self.purse.asked(name)) for name, amount in pay.items()]


def _counted_in(answer: bytes | None) -> object:
    """What was counted, from the answer of a payment: that alone, or what the caller made of it."""
    told = json.loads(answer or b"null")
    return told["counted"] if isinstance(told, dict) else told


NESTED = (
    "this session is in the middle of another call of this thread (a signal handler, or a function that the session calls, has called it): "
    "wait until that has ended"
)

T = TypeVar("T")


class Embedded:
    """One core, the lock around it, and what commits its events inline."""

    def __init__(self, core: DurableCore, history: Listener) -> None:
        self.core, self.history = core, history
        self.lock, self.ended = threading.RLock(), ""
        self._owner = 0  # the thread that is at work, or was when it was interrupted
        self._last = core.seq  # the last event that is on the disk
        self._entries: list[HistoryEntry] = []  # what `history` is still to be told
        if history is not None:
            core.listen(self._entries.append)

    # --- calls ----------------------------------------------------------------------------------------------------------------------------

    def do(self, act: Callable[..., Applied], *given: Any, **named: Any) -> Any:
        """Let something happen: apply it, commit it, and give its value."""
        core, thread = self.core, get_ident()
        if self._owner == thread:
            self._refuse_nested()
        with self.lock:
            try:
                self._owner = thread
                if core.stale or self.ended or core.seq != self._last:
                    self.ready()
                applied = act(*given, **named)
                if rows := applied.rows:
                    self.commit(rows)
            except BaseException as wrong:
                if core.seq != self._last and not core.stale:
                    core.fail(f"the last call was broken off ({wrong or type(wrong).__name__})")
                if isinstance(wrong, StoreError) and wrong.certain:
                    mark(wrong, False)
                raise
            finally:
                self._owner = 0
        if self._entries or core.session._now.kept.log.unsent:
            self.tell()
        if (problem := applied.problem) is not None:
            raise problem
        return applied.value

    def read(self, what: Callable[[DurableCore], T]) -> T:
        """What is read of the session."""
        self._refuse_nested()
        with self.lock:
            try:
                self._owner = get_ident()
                self.ready()
                self.core.check_held()
                return what(self.core)
            finally:
                self._owner = 0

    def _refuse_nested(self) -> None:
        """Refuse a call from inside of a call of this thread: one that is still among its frames, whatever an interrupt has left behind."""
        frame = sys._getframe(2) if self._owner == get_ident() else None
        while frame is not None:
            if frame.f_code in (Embedded.do.__code__, Embedded.read.__code__) and frame.f_locals.get("self") is self:
                raise InputError(NESTED)
            frame = frame.f_back

    def ready(self) -> None:
        """Refuse a session that is closed, and rebuild one that is not in step with its journal."""
        if self.ended:
            raise InputError(f"session {self.core.name!r} {self.ended}; open it again to go on")
        if self.core.stale or self.core.seq != self._last:
            self._entries.clear()
            self.core.rebuild()
            self._last = self.core.seq

    def tell(self) -> None:
        """Give warnings and tell `history`, of what is durable."""
        if self._entries and self.history is not None:
            told = self._entries.copy()
            self._entries.clear()
            for entry in told:
                self.history(entry)
        self.core.tell()

    # --- committing -----------------------------------------------------------------------------------------------------------------------

    def commit(self, rows: tuple[Event, ...]) -> None:
        """Write these rows down; they are on the disk when this returns."""
        core = self.core
        try:
            core.store.append(core.lease, rows)
        except Fenced as lost:
            self.ended = f"has another owner now ({lost})"
            core.fail(lost)
            raise
        except BaseException as wrong:
            core.fail(wrong)
            if isinstance(wrong, StoreError) and not wrong.certain:
                wrong.add_note("whether it was written is not known: the session reads its journal before it goes on, and shows it then")
            raise
        last = rows[-1].seq
        core.committed(last)
        self._last = last
        if core.snapshot_due:
            self.snapshot()

    def snapshot(self) -> None:
        """Put a snapshot; where that fails, the journal has everything, and the next is tried in its time."""
        core = self.core
        if core.seq == core.durable:
            with suppress(StoreError):
                core.store.put_snapshot(core.lease, core.snapshot())

    def close(self) -> None:
        """Put a snapshot, and let the session and its database go."""
        self._refuse_nested()
        with self.lock:
            if self.ended:
                return
            try:
                if not self.core.stale and self.core.seq > self.core.snapshot_at:
                    self.snapshot()
            finally:
                self.ended = "is closed"
                with suppress(StoreError):
                    self.core.close()
                self.core.store.close()


class JournaledBudget:
    """A gate or a pacer of a durable session: it is asked as `bridle.Gate` and `bridle.Pacer` are, and every payment is an event."""

    def __init__(self, embedded: Embedded, name: str) -> None:
        self._embedded, self.name = embedded, name

    def pay(self, amount: float = 0.0, *, key: Key = None) -> float | None:
        """Count a payment: it is durable when this returns. One above what is left is refused; what was counted, of a gate."""
        return self._embedded.do(self._embedded.core.pay, self.name, amount, key=key)  # type: ignore[no-any-return]

    def set_budget(self, budget: float, rounds: int | None = None, *, key: Key = None) -> None:
        """Change what may be spent in all, and of a pacer in how many rounds."""
        self._embedded.do(self._embedded.core.set_budget, self.name, budget, rounds, key=key)

    def __getattr__(self, name: str) -> Any:
        if name not in READS:
            raise AttributeError(f"a budget in a journal has no {name}")
        found = self._embedded.read(lambda core: getattr(core.purse.find(self.name), name))
        if not callable(found):
            return found
        return lambda *given, **named: self._embedded.read(lambda core: getattr(core.purse.find(self.name), name)(*given, **named))


def open_core(
    make: Callable[..., SessionVerbs],
    restore: Restore,
    store: EventStore,
    name: str,
    policy: Any | None,
    x1: ArrayLike | None,
    snapshot_every: int | None,
    gates: Budgets,
    wait: float,
    replayed: Listener,
    options: SessionOptions,
) -> DurableCore:
    """The core of a session: `make` makes a new plain session, `restore` one from a save file; the rest is as for `Session.core`."""
    found = store.find(name)
    if found is None:
        if policy is None:
            raise InputError(f"policy must be given: {store.name} has no session {validate.show(name)} yet")
        spec = DurableCore.spec(make(policy, x1, **options)._image(False), gates, snapshot_every)
        try:
            found = store.create(name, spec)
        except InputError:
            found = store.find(name)  # somebody else was faster
            if found is None:
                raise
    made = savefile.opened(found.spec, f"session {name!r}")
    if policy is not None:
        savefile.refuse_another_policy(policy, made.saved, name)
    given: dict[str, object] = {**options} if x1 is None else {**options, "x1": x1}
    savefile.refuse_other_options(given, made.saved, name)
    savefile.refuse_other_budgets(gates, made, name)
    own = policy if made.saved.header.get("policy") is None else None
    core = DurableCore(store, found, store.take(found, wait), restore, own, made)
    try:
        core.rebuild(replayed=replayed)
        if snapshot_every is not None:
            core.every = validate.whole("snapshot_every", snapshot_every)
    except BaseException:
        with suppress(StoreError):
            core.close()
        raise
    return core
