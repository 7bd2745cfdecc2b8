"""A durable session in the caller's own process: every event is committed before its call returns.

A call that fails to commit has not happened: the session is rebuilt from its journal before its next use. Where nobody knows whether the
commit came through, the error says so, and the rebuilt session shows it. One call is at work at a time; threads wait for each other, and a
call from inside of a call (a signal's handler) is refused.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from typing import Any, TypeVar

from bridle.core import InputError
from bridle.database.rows import Event, Fenced, StoreError
from bridle.ops import Array
from bridle.session.durable import Applied, DurableCore
from bridle.session.purse import READS
from bridle.session.rounds import HistoryEntry
from bridle.session.turns import mark

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

    def decision(self) -> Array | None:
        """The decision of this round, where nothing has to be done for it; else None."""
        core = self.core
        if self._owner == get_ident():
            return None
        with self.lock:
            if core.stale or self.ended or core.seq != self._last:
                return None
            if core.session._boundary is not None or not core.store.holds(core.lease):
                return None
            return core.session.decide()

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
