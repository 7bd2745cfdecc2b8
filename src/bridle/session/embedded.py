"""A durable session in the caller's own process: who commits its events, and when.

each     Every event is committed before its call returns.
group    Events are committed by a thread, a few milliseconds (`window`) after the first of them at the latest. A crash may take what was
         acknowledged in that window. Decisions are made at once, and may rest on events of the window; whatever else is read waits until
         they are durable.

A call that fails to commit has not happened: the session is rebuilt from its journal before its next use. Where nobody knows whether the
commit came through, the error says so, and the rebuilt session shows it. One call is at work at a time; threads wait for each other, and a
call from inside of a call (a signal's handler) is refused.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from typing import Any, TypeVar

from bridle import validate
from bridle.core import InputError
from bridle.database.rows import Event, Fenced, StoreError, Taken
from bridle.ops import Array
from bridle.session.durable import Applied, DurableCore
from bridle.session.purse import READS
from bridle.session.rounds import HistoryEntry
from bridle.session.turns import mark

COMMITS = ("each", "group")

WINDOW = 0.002
"""Seconds within which a group is committed, unless told."""

NESTED = (
    "this session is in the middle of another call of this thread (a signal handler, or a function that the session calls, has called it): "
    "wait until that has ended"
)

T = TypeVar("T")


class Embedded:
    """One core, the lock around it, and what commits its events inline."""

    def __init__(self, core: DurableCore, history: Callable[[HistoryEntry], object] | None) -> None:
        self.core, self.history = core, history
        self.lock, self.ended = threading.RLock(), ""
        self._owner = 0  # the thread that is at work, or was when it was interrupted
        self._last = core.seq  # the last event that is on the disk, or on its way there
        self._problem: BaseException | None = None  # of a group that could not be committed
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
                if core.stale or self.ended or self._problem is not None or core.seq != self._last:
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

    def decision(self) -> Array | None:
        """The decision of this round, where nothing has to be done for it; else None."""
        core = self.core
        if self._owner == get_ident():
            return None
        with self.lock:
            if core.stale or self.ended or self._problem is not None or core.seq != self._last:
                return None
            if core.session._boundary is not None or core.changes.planes is not None or not core.store.holds(core.lease):
                return None
            return core.session.decide()

    def read(self, what: Callable[[DurableCore], T], at_once: bool = False) -> T:
        """What is read of the session, as far as it is durable; `at_once` does not wait for that."""
        self._refuse_nested()
        with self.lock:
            try:
                self._owner = get_ident()
                self.ready()
                if not at_once:
                    self.settle()
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
            self.rebuild()

    def rebuild(self) -> None:
        """Read the session from its journal again."""
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

    def settle(self) -> None:
        """Wait until everything is durable."""

    def flush(self) -> None:
        """Wait until everything that was acknowledged is on the disk."""
        self.read(lambda core: None)

    def close(self) -> None:
        """Make everything durable, put a snapshot, and let the session and its database go."""
        self._refuse_nested()
        with self.lock:
            if self.ended:
                return
            try:
                self.settle()  # also after a failed call: what was acknowledged before it may still wait
                if not self.core.stale and self.core.seq > self.core.snapshot_at:
                    self.snapshot()
            finally:
                self.ended = "is closed"
                self.stop()
                with suppress(StoreError):
                    self.core.close()
                self.core.store.close()

    def stop(self) -> None:
        """End what works for it."""


class GroupedEvents(Embedded):
    """Events wait in a queue, and a thread commits whatever waits, at most `window` seconds after the first of it.

    Who wants them on the disk before commits them itself, since nobody has to be woken for that. What waits leaves the queue only once it
    is written, or known not to be: an interrupt on the way takes nothing.
    """

    def __init__(self, core: DurableCore, history: Callable[[HistoryEntry], object] | None, window: float) -> None:
        super().__init__(core, history)
        self.window = validate.positive("window", window)
        self._queue: list[Event] = []
        self._guard = threading.Lock()
        self._due, self._written = threading.Condition(self._guard), threading.Condition(self._guard)
        self._idle, self._writing, self._stopped = False, False, False
        self._thread = threading.Thread(target=self._work, name=f"bridle: {core.name}", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # nothing that was acknowledged is lost at a regular end

    def ready(self) -> None:
        """A group that could not be committed is told of once; then the session is rebuilt."""
        with self._guard:
            problem, self._problem = self._problem, None
            if problem is not None:
                self._queue.clear()
        if problem is not None:
            self.core.fail(problem)
            if isinstance(problem, Fenced):
                self.ended = f"has another owner now ({problem})"
            raise problem
        super().ready()

    def rebuild(self) -> None:
        """Read the journal again, once it has what was acknowledged: an exception in a later call must not take that."""
        self.settle()
        super().rebuild()

    def commit(self, rows: tuple[Event, ...]) -> None:
        with self._guard:
            if failed := self._problem is not None:  # since this call began: what came before is not there
                self._queue.clear()
            else:
                self._queue += rows
                self._last = rows[-1].seq
                if self._idle:
                    self._idle = False
                    self._due.notify()
        if failed:
            self.ready()
        if self.core.snapshot_due:
            self.settle()
            self.snapshot()

    def settle(self) -> None:
        self._write()
        if self._problem is not None:
            self.ready()

    def stop(self) -> None:
        atexit.unregister(self.close)
        with self._guard:
            self._stopped = True
            self._due.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _write(self) -> None:
        """Commit whatever waits; where the database does not, `_problem` says so, and nothing waits any more."""
        mine, rows, problem = False, list[Event](), None
        try:
            with self._guard:
                while self._writing:
                    self._written.wait()
                if self._problem is not None:
                    self._queue.clear()
                if not self._queue:
                    return
                rows = self._queue.copy()
                self._writing = mine = True
            self._append(rows)
        except StoreError as wrong:
            problem = wrong
        finally:
            if mine:
                with self._guard:
                    self._writing = False
                    if problem is not None:
                        self._problem = problem
                        self._queue.clear()
                    self._written.notify_all()

    def _append(self, rows: list[Event]) -> None:
        core = self.core
        try:
            core.store.append(core.lease, rows)
        except Taken:  # an interrupt came between a commit and what is noted of it: others may have come since
            there = core.store.head(core.found.id)
            if there < rows[0].seq:
                raise
            if rest := [row for row in rows if row.seq > there]:
                core.store.append(core.lease, rest)
        core.committed(rows[-1].seq)
        with self._guard:
            del self._queue[: len(rows)]

    def _work(self) -> None:
        while True:
            with self._guard:
                while not self._queue and not self._stopped:
                    self._idle = True
                    self._due.wait()
                self._idle = False
                if not self._queue:
                    return
                if not self._stopped:
                    self._due.wait(self.window)
            try:
                self._write()
            except BaseException as wrong:
                with self._guard:
                    self._problem = wrong
                    self._queue.clear()


class JournaledBudget:
    """A gate or a pacer of a durable session: it is asked as `bridle.Gate` and `bridle.Pacer` are, and every payment is an event."""

    def __init__(self, embedded: Embedded, name: str) -> None:
        self._embedded, self.name = embedded, name

    def pay(self, amount: float = 0.0, *, key: str | bytes | None = None) -> float | None:
        """Count a payment: it is durable when this returns. One above what is left is refused; what was counted, of a gate."""
        return self._embedded.do(self._embedded.core.pay, self.name, amount, key=key)  # type: ignore[no-any-return]

    def set_budget(self, budget: float, rounds: int | None = None, *, key: str | bytes | None = None) -> None:
        """Change what may be spent in all, and of a pacer in how many rounds."""
        self._embedded.do(self._embedded.core.set_budget, self.name, budget, rounds, key=key)

    def __getattr__(self, name: str) -> Any:
        if name not in READS:
            raise AttributeError(f"a budget in a journal has no {name}")
        found = self._embedded.read(lambda core: getattr(core.purse.find(self.name), name))
        if not callable(found):
            return found
        return lambda *given, **named: self._embedded.read(lambda core: getattr(core.purse.find(self.name), name)(*given, **named))
