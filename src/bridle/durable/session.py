"""A session in a database, as `Session.open` gives it: the verbs of every session, each committed before it returns.

One call is at work at a time: threads wait for each other, and a call from inside of a call (a signal's handler) is refused. A call that
fails to commit has not happened: the session is rebuilt from its journal before its next use. Where nobody knows whether the commit came
through, the error says so, and the rebuilt session shows it.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, Never, Self, TypeVar, cast

from numpy.typing import ArrayLike

from bridle import database, validate
from bridle.core import Ask, Command, Decide, InputError, Observation, Pay, Prior, SetBudget, outside
from bridle.database.rows import Event, Fenced, StoreError
from bridle.durable import inspection
from bridle.durable.commands import Key
from bridle.durable.journal import Applied, Journal, open_journal
from bridle.ops import Array
from bridle.session.feedback import Numbers, refuse_gone
from bridle.session.late import Ticket, TicketGiven
from bridle.session.prior import HintGiven, Known
from bridle.session.savefile import SessionOptions
from bridle.session.session import NESTED, Decides, HistoryEntry, Listener, SessionVerbs, change_command, mark
from bridle.session.state import Plan, SessionState

T = TypeVar("T")
"""What is read of a session."""

READS = frozenset(
    {
        "allows", "bid", "bound", "budget", "certified_loss", "choose", "facts", "fits", "left", "planned", "price", "rounded", "rounds",
        "share", "spent", "unit",
    }
)  # fmt: skip
"""What can be asked of a gate or a pacer and changes no money."""


class DurableSession(SessionVerbs):
    """A session in a database, as `Session.open` gives it: the same verbs, each with an identity (`key`) where the caller wants one.

    What is told twice under one key, or with one ticket, is answered with the first answer; other numbers under the same key are refused.
    A call that raises `bridle.database.StoreError` did not happen, or nobody knows (it says which): ask again with the same key.
    """

    def __init__(self, journal: Journal, history: Listener = None) -> None:
        self.journal, self.policy = journal, journal.session.policy
        self.ended = ""
        """Why it cannot be used any more, once it cannot."""
        self._lock, self._owner = threading.RLock(), 0
        self._last = journal.seq  # the last event that is on the disk
        self._entries: list[HistoryEntry] = []  # what `history` is still to be told
        self.history = history
        if history is not None:
            journal.listen(self._entries.append)

    # --- one call at a time -----------------------------------------------------------------------------------------------------------

    def apply(self, command: Command, key: Key = None, pay: Mapping[str, float] | None = None) -> Any:
        """Let something happen: apply it, commit it, and give its answer."""
        journal, me = self.journal, get_ident()
        if self._owner == me and self._lock._is_owned():  # type: ignore[attr-defined]
            raise InputError(NESTED)
        with self._lock:
            try:
                self._owner = me
                if journal.stale or self.ended or journal.seq != self._last:
                    self._ready()
                applied = journal.apply(command, key, None, pay)
                if applied.rows:
                    self._commit(applied.rows)
            except BaseException as wrong:
                if journal.seq != self._last and not journal.stale:
                    journal.fail(f"the last call was broken off ({wrong or type(wrong).__name__})")
                if not isinstance(wrong, StoreError) or wrong.certain:
                    mark(wrong, False)
                raise
            finally:
                self._owner = 0
        return self._told(applied)

    def _told(self, applied: Applied) -> Any:
        """Give warnings and tell `history`, of what is durable."""
        try:
            if self._entries and self.history is not None:
                told = self._entries.copy()
                self._entries.clear()
                for entry in told:
                    self.history(entry)
            for alarm in self.journal.session.unheard():
                warnings.warn(alarm, stacklevel=outside())
            if applied.problem is not None:
                raise applied.problem
        except BaseException as wrong:
            mark(wrong, bool(applied.rows))
            raise
        return applied.value

    def read(self, what: Callable[[Plan, SessionState], T]) -> T:
        return self._look(lambda journal: journal.session.read(what))

    def _look(self, what: Callable[[Journal], T]) -> T:
        """What is read of the session and its journal, once all that it rests on is durable."""
        me = get_ident()
        if self._owner == me and self._lock._is_owned():  # type: ignore[attr-defined]
            raise InputError(NESTED)
        with self._lock:
            try:
                self._owner = me
                self._ready()
                self.journal.check_held()
                return what(self.journal)
            finally:
                self._owner = 0

    def _ready(self) -> None:
        """Refuse a session that is closed, and rebuild one that is not in step with its journal."""
        journal = self.journal
        if self.ended:
            raise InputError(f"session {journal.name!r} {self.ended}; open it again to go on")
        if journal.stale or journal.seq != self._last:
            self._entries.clear()
            journal.rebuild()
            self._last = journal.seq

    def _commit(self, rows: tuple[Event, ...]) -> None:
        """Write these rows down; they are on the disk when this returns."""
        journal = self.journal
        try:
            journal.store.append(journal.lease, rows)
        except Fenced as lost:
            self.ended = f"has another owner now ({lost})"
            journal.fail(lost)
            raise
        except BaseException as wrong:
            journal.fail(wrong)
            if isinstance(wrong, StoreError) and not wrong.certain:
                wrong.add_note("whether it was written is not known: the session reads its journal before it goes on, and shows it then")
            raise
        last = rows[-1].seq
        journal.committed(last)
        self._last = last
        if journal.snapshot_due:
            self._snapshot()

    def _snapshot(self) -> None:
        """Put a snapshot; where that fails, the journal has everything, and the next is tried in its time."""
        journal = self.journal
        if journal.seq == journal.durable:
            with suppress(StoreError):
                journal.store.put_snapshot(journal.lease, journal.snapshot())

    def close(self) -> None:
        """Put a snapshot and let the session go, for others to open."""
        if self._owner == get_ident() and self._lock._is_owned():  # type: ignore[attr-defined]
            raise InputError(NESTED)
        with self._lock:
            if self.ended:
                return
            try:
                if not self.journal.stale and self.journal.seq > self.journal.snapshot_at:
                    self._snapshot()
            finally:
                self.ended = "is closed"
                with suppress(StoreError):
                    self.journal.close()
                self.journal.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, object]:
        raise InputError(f"a session that is opened on a database cannot be copied or pickled: {self.name!r} has one owner; save it")

    # --- the verbs, with a key --------------------------------------------------------------------------------------------------------

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
        **gone: Never,
    ) -> None:
        """As `Session.observe`; `pay` are payments from this session's budgets that happen together with it, or not at all."""
        if gone:
            refuse_gone(gone)
        self.apply(Observation(f, df, g, dg, modulus, played, ticket), key, pay)

    def ask(
        self, *, rules: Numbers = None, features: Numbers = None, known: Known = None, hint: HintGiven = None, points: int | None = None,
        key: Key = None,
    ) -> Ticket:  # fmt: skip
        """As `Session.ask`."""
        self.refuse_other_points(points)
        return cast(Ticket, self.apply(Ask(Prior(rules, features, known, hint)), key))

    def change_limit(self, limit: str | int, *, offset: float | None = None, at_most: float | None = None, key: Key = None) -> None:
        """As `Session.change_limit`."""
        self.apply(change_command(limit, offset, at_most), key)

    def warm_up(self, constraints: int | None = None) -> None:
        """As `Session.warm_up`: it is no event."""
        self._look(lambda journal: journal.session.warm_up(constraints))

    def gate(self, name: str) -> JournaledBudget:
        """The budget of this name: pay, and ask what is left."""
        self._look(lambda journal: journal.budgets.find(name))
        return JournaledBudget(self, name)

    def _decision(self) -> Array:
        return cast(Array, self.apply(Decide()))

    @property
    def plan(self) -> Plan:  # type: ignore[override]
        return self.journal.session.plan

    # --- what it says of itself ----------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name in the database."""
        return self.journal.name

    @property
    def durable(self) -> tuple[int, int]:
        """How many events are on the disk, and how many there are."""
        return self.journal.durable, self.journal.seq

    def _looked_at(self) -> tuple[str, SessionVerbs, str]:
        stands = self.ended.removeprefix("is ") or ("to be rebuilt from its journal" if self.journal.stale else "open")
        return f"DurableSession {self.name!r}", self.journal.session, stands

    def _told_rounds(self) -> Any:
        return None

    def _curve(self, pictures: Any) -> Any:
        return self._look(lambda journal: inspection.curve(journal) if journal.session.rounds else None)


class JournaledBudget:
    """A gate or a pacer of a durable session: it is asked as `bridle.Gate` and `bridle.Pacer` are, and every payment is an event."""

    def __init__(self, session: DurableSession, name: str) -> None:
        self._session, self.name = session, name

    def pay(self, amount: float = 0.0, *, key: Key = None) -> float | None:
        """Count a payment: it is durable when this returns. One above what is left is refused; what was counted, of a gate."""
        return cast("float | None", self._session.apply(Pay(self.name, amount), key))

    def set_budget(self, budget: float, rounds: int | None = None, *, key: Key = None) -> None:
        """Change what may be spent in all, and of a pacer in how many rounds."""
        many = None if rounds is None else validate.whole("rounds", rounds)
        self._session.apply(SetBudget(self.name, validate.number("budget", budget), many), key)

    def __getattr__(self, name: str) -> Any:
        if name not in READS:
            raise AttributeError(f"a budget in a journal has no {name}")
        found = self._session._look(lambda journal: getattr(journal.budgets.find(self.name), name))
        if not callable(found):
            return found
        return lambda *given, **named: self._session._look(lambda journal: getattr(journal.budgets.find(self.name), name)(*given, **named))


def open_session(
    url: str, name: str, policy: Any, x1: ArrayLike | None, history: Listener, snapshot_every: int | None, gates: Any, wait: float,
    options: SessionOptions,
) -> DurableSession:  # fmt: skip
    """See `Session.open`."""
    if "commit" in options:
        raise InputError("commit is no longer an argument: each call is committed; for grouped commits, use the service (bridle serve)")
    if history is not None and not callable(history):
        raise validate.refused("history must be callable", history)
    store = database.open_store(url)
    try:
        journal = open_journal(store, name, policy, x1, snapshot_every=snapshot_every, gates=gates, wait=wait, options=options)
    except BaseException:
        store.close()
        raise
    return DurableSession(journal, history)


if TYPE_CHECKING:

    def _decides(session: DurableSession) -> Decides:
        return session
