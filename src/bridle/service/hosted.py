"""A session that this server owns: requests take turns in the order in which they came, and none is answered before what it rests on is
durable.

An event is applied in memory and queued for the writer while the session is held; then the session is let go, so that the next event can
join the same commit, and the answer waits for it. Reading waits for the last commit in the same way. What takes long is done in a thread
of its own, while the session is held and the others go on. After a failed commit the memory is ahead of the disk: the session is made
again from its journal."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple, TypeVar, cast

import numpy as np

from bridle.core import InputError
from bridle.database.rows import Event, Fenced, Found, Owned, StoreError
from bridle.database.store import EventStore
from bridle.game.totals import charged
from bridle.ops import Array
from bridle.service.errors import Turned, elsewhere, too_many, unavailable
from bridle.service.limits import ServiceLimits
from bridle.service.logs import log
from bridle.service.writer import CommitGroup, GroupWriter, JournalLine
from bridle.session.clocks import ASSUMPTIONS_EVERY
from bridle.session.durable import DurableCore
from bridle.session.rounds import HistoryEntry
from bridle.session.session import Session

T = TypeVar("T")

SLOW = 0.005
"""Seconds: what may take longer than this is done in the thread for slow things."""

UNKNOWN = 2.0 * SLOW
"""What an event is taken to last as long as nobody knows: the first ones may load or compile something."""

REMEMBERED = 500
"""So many of the last rounds can be shown."""

TROUBLE = "the database is in trouble, and nobody knows yet whether this counts: try again with the same key"
UNWRITTEN = "the database could not be written, and nothing has changed: try again with the same key"
LOST = "this server no longer owns the session: try again with the same key"


@dataclass(frozen=True)
class Tools:
    """What a session needs of its server: the database, and threads for what takes long (`compute`) or asks the database (`lookups`).

    Where the database is a file in this process, a session may ask it without leaving the loop, and `lookups` is None.
    """

    store: EventStore
    writer: GroupWriter
    compute: Executor
    lookups: Executor | None
    limits: ServiceLimits


@dataclass(slots=True)
class VerbOutcome:
    """What came of a call on a session: the answer, and the rows that must be durable before it leaves; `again`: it had been asked."""

    answer: bytes
    rows: Sequence[Event]
    again: bool = False


def next_decision(core: DurableCore) -> list[float] | None:
    """The next decision, where nothing has to be said first, and nothing again."""
    session, boundary = core.session, core.session._boundary
    if boundary is not None and (boundary.through is not None or session._is_outdated()):
        return None
    if session._tries and (session._tries > 1 or session.pending):
        return None
    x: list[float] = session.decide().tolist()
    return x


class PlayedRound(NamedTuple):
    """One of the last rounds, as it is shown: how many had been observed with it, what was decided, and what came of it.

    Where several points were tried, `x`, `f` and `g` are averages, and `violation` is that of the violations; else it is None, and what
    `g` says.
    """

    round: int
    x: list[float] | None
    f: float
    g: list[float]
    cost: float
    violations: Array
    ticket: int | None
    violation: list[float] | None = None

    def facts(self) -> dict[str, object]:
        """As JSON has it."""
        violation = [max(value, 0.0) for value in self.g] if self.violation is None else self.violation
        found: dict[str, object] = {**self._asdict(), "violation": violation}
        del found["violations"]
        found["ccv"] = float(self.violations.max(initial=0.0))
        if self.ticket is None:
            del found["ticket"]
        return found


def shown_again(entry: HistoryEntry) -> PlayedRound:
    """A round that was replayed."""
    g, violation = averages(np.asarray(entry["g"]))
    x, ccv = charged(entry["x"], 1).tolist(), np.array([entry["ccv"]])
    return PlayedRound(entry["round"], x, float(entry["f"]), g, entry["cost"], ccv, entry.get("ticket"), violation)


def averages(g: Array) -> tuple[list[float], list[float] | None]:
    """The values of the constraints, and their violations where several points were tried: then both are averages over the points.

    >>> averages(np.array([[0.5, -1.0], [-0.25, -1.0]]))
    ([0.125, -1.0], [0.25, 0.0])
    """
    if g.ndim < 2:
        return g.reshape(-1).tolist(), None
    return charged(g, 1).tolist(), charged(np.maximum(g, 0.0), 1).tolist()


class Hosted:
    """One session, its journal, and whoever waits for it."""

    def __init__(self, found: Found, tools: Tools) -> None:
        self.found, self.name, self.tools = found, found.name, tools
        self.quarantined = 0
        self.rounds: deque[PlayedRound] = deque(maxlen=REMEMBERED)
        self.decided: list[float] | None = None
        """The last decision that was given out, and those of rounds that wait, by their tickets."""
        self.waiting: dict[int, list[float]] = {}
        self.alarms: dict[str, str] = {}
        """What warnings have said, by their kind, as far as this server was there."""
        self.certified: tuple[int, float | None] = (-1, None)
        self._lock = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._waiting = 0
        self._core: DurableCore | None = None
        self._line: JournalLine | None = None
        self._last: CommitGroup | None = None
        self._pace = UNKNOWN  # seconds that an event takes: what has been slow is taken to be so for a while
        self._safe = 0  # the last event that is known to be durable
        self._snapshot: asyncio.Task[None] | None = None

    # --- taking turns -----------------------------------------------------------------------------------------------------------------

    async def play(self, verb: Callable[[DurableCore], VerbOutcome], events: int = 1) -> bytes:
        """Apply something to the session; its answer, once what it rests on is durable. What the session refuses is an `InputError`."""
        core, line = self._core, self._line
        busy = self._lock.locked() or self._waiting or not self._fresh() or self._aside(events) is not None
        if busy or core is None or line is None:
            core, line, outcome, last = await self._take_turn(verb, events)
        else:  # nobody is before it, and it takes no time: nothing else can happen until it is queued
            try:
                outcome = self._apply(verb, core, events)
            except BaseException as wrong:
                raise self._broken_off(wrong) from None
            last = self._queued(outcome, line)
        if last is not None:
            await self._durable(last, line)
        if not outcome.rows:
            if not self.tools.store.holds(line.lease):
                raise unavailable(LOST)
        elif line is self._line and outcome.rows[-1].seq > self._safe:
            self._safe = outcome.rows[-1].seq
        if core.snapshot_due and self._snapshot is None:
            self._snapshot = asyncio.create_task(self._put_snapshot())
        return outcome.answer

    async def _take_turn(
        self, verb: Callable[[DurableCore], VerbOutcome], events: int
    ) -> tuple[DurableCore, JournalLine, VerbOutcome, CommitGroup | None]:
        """Wait for this request's turn, and have it applied where it holds up nobody else."""
        await self._enter()
        try:
            core = self._core if self._fresh() else await self._open()
            line = self._line
            assert core is not None
            assert line is not None
            aside, given = self._aside(events), (verb, core, events)
            try:
                outcome = self._apply(*given) if aside is None else await self._loop.run_in_executor(aside, self._apply, *given)
            except BaseException as wrong:
                raise self._broken_off(wrong) from None
            return core, line, outcome, self._queued(outcome, line)
        finally:
            self._lock.release()

    def _apply(self, verb: Callable[[DurableCore], VerbOutcome], core: DurableCore, events: int) -> VerbOutcome:
        """Apply something, and note how long that takes."""
        begun, look = perf_counter(), self._looks(core, events)
        outcome = verb(core)
        if not look:
            self._pace = max((perf_counter() - begun) / events, 0.8 * self._pace)
        return outcome

    def _looks(self, core: DurableCore, events: int) -> bool:
        """Whether it is one event after which the session looks back at its rounds, which takes long; of many, it is part of the pace."""
        return events == 1 and core.session.rounds % ASSUMPTIONS_EVERY == ASSUMPTIONS_EVERY - 1

    def _aside(self, events: int) -> Executor | None:
        """The threads in which so many events are applied, None where they take no time."""
        core = self._core
        slow = core is None or events * self._pace > SLOW or self._looks(core, events)
        return self.tools.compute if slow else self.tools.lookups

    def _broken_off(self, wrong: BaseException) -> BaseException:
        """What is said where something could not be applied; if it broke off in the middle, the session is made again from its journal."""
        core = self._core
        if isinstance(wrong, InputError | Turned) and (core is None or not core.stale):  # nothing was applied
            return wrong
        self._core = None
        return self._trouble(wrong) if isinstance(wrong, StoreError) else wrong

    def _queued(self, outcome: VerbOutcome, line: JournalLine) -> CommitGroup | None:
        """Have the rows of something committed; the group whose commit its answer waits for."""
        if outcome.rows:
            self._last = self.tools.writer.append(line, outcome.rows)
        return self._last

    async def read(self, look: Callable[[DurableCore], T], quick: bool = False) -> T:
        """Look at the session; what is seen leaves once it is durable."""
        await self._enter()
        try:
            core = self._core if self._fresh() else await self._open()
            assert core is not None
            assert self._line is not None
            try:
                found = look(core) if quick else await self._loop.run_in_executor(self.tools.compute, look, core)
            except StoreError as problem:
                self._core = None
                raise self._trouble(problem) from None
            line, last = self._line, self._last
        finally:
            self._lock.release()
        if last is not None:
            await self._durable(last, line)
        if not self.tools.store.holds(line.lease):
            raise unavailable(LOST)
        return found

    async def _enter(self) -> None:
        """Wait for this request's turn."""
        if not self._lock.locked():
            await self._lock.acquire()
            return
        if self._waiting >= self.tools.limits.waiting:
            raise too_many(f"{self._waiting} requests wait for session {self.name} already")
        self._waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting -= 1

    def _fresh(self) -> bool:
        """Whether the memory is where the journal is, or ahead of it only by what is being committed."""
        core, line = self._core, self._line
        if core is None or line is None or line.broken is not None:
            return False
        if core.durable < self._safe:
            core.committed(self._safe)
        return True

    async def _durable(self, last: CommitGroup, line: JournalLine) -> None:
        """Wait for a commit."""
        try:
            await last.durable(line)
        except StoreError as problem:
            raise self._trouble(problem) from None

    def _trouble(self, problem: StoreError) -> Turned:
        """What a client is told of trouble with the database."""
        log("not written", logging.WARNING, session=self.name, problem=str(problem), certain=problem.certain)
        return unavailable(LOST if isinstance(problem, Fenced) else UNWRITTEN if problem.certain else TROUBLE)

    def remember(
        self, core: DurableCore, f: float, g: list[float], ticket: int | None = None, played: list[float] | None = None,
        violation: list[float] | None = None,
    ) -> None:  # fmt: skip
        """Note a round that was just observed, to be shown."""
        session = cast(Session, core.session)
        x = self.decided if ticket is None else self.waiting.pop(ticket, None)
        fast = session._live if session._boundary is None else None
        cost, violations = (session.cost, session.violations) if fast is None else (float(fast.cost), fast.hard.copy())
        self.rounds.append(PlayedRound(session.rounds, x if played is None else played, f, g, cost, violations, ticket, violation))

    def hear(self, core: DurableCore) -> None:
        """Log and keep the warnings that nobody has heard of yet."""
        for warning in core.warnings():
            self.alarms[type(warning).__name__] = str(warning)
            log("alarm", logging.WARNING, session=self.name, kind=type(warning).__name__, text=str(warning))

    # --- the journal ------------------------------------------------------------------------------------------------------------------

    async def _open(self) -> DurableCore:
        """The session from its journal: at first, and whenever the memory may be ahead of it."""
        self._core = self._line = None
        again: deque[PlayedRound] = deque(maxlen=REMEMBERED)
        core = await self._loop.run_in_executor(self.tools.compute, self._resume, lambda entry: again.append(shown_again(entry)))
        first = again[0].round if again else core.session.rounds + 1
        self.rounds = deque([*(each for each in self.rounds if each.round < first), *again], REMEMBERED)
        self._core, self._line, self._last = core, JournalLine(core.lease), None
        self._safe, self._pace = core.seq, UNKNOWN
        self.decided = next_decision(core)
        self.hear(core)
        return core

    def _resume(self, replayed: Callable[[HistoryEntry], object]) -> DurableCore:
        begun = perf_counter()
        try:
            core = Session.core(self.tools.store, self.name, replayed=replayed)
        except Owned as owned:
            if owned.url:
                raise elsewhere(owned.url) from None
            raise unavailable(
                f"session {self.name} is in use by {owned.by}, which serves nobody: try again when it is closed there"
            ) from None
        except StoreError as problem:
            log("cannot open", logging.WARNING, session=self.name, problem=str(problem))
            raise unavailable(f"session {self.name} cannot be opened now: the database is in trouble") from None
        except InputError as problem:  # its journal cannot be replayed here
            log("cannot open", logging.ERROR, session=self.name, problem=str(problem))
            raise unavailable(f"session {self.name} cannot be opened on this server: {problem}", 60) from None
        log("opened", session=self.name, seq=core.seq, seconds=round(perf_counter() - begun, 4))
        return core

    async def _put_snapshot(self) -> None:
        """Keep a snapshot of what is durable."""
        try:
            await self._enter()
            try:
                core, line, last = self._core, self._line, self._last
                if core is None or line is None or line.broken is not None:
                    return
                if last is not None:
                    await last.durable(line)
                core.committed(core.seq)
                if not core.snapshot_due:
                    return
                row = await self._loop.run_in_executor(self.tools.compute, core.snapshot)
            finally:
                self._lock.release()
            await self.tools.writer.do(lambda: self.tools.store.put_snapshot(line.lease, row))
        except StoreError as problem:
            log("no snapshot", session=self.name, problem=str(problem))
        finally:
            self._snapshot = None

    async def close(self) -> None:
        """Let go of the session: what was begun is finished, and its lease is given back."""
        await self._enter()
        try:
            if self._last is not None and self._line is not None:
                with suppress(StoreError):
                    await self._last.durable(self._line)
            line, self._core, self._line, self._last = self._line, None, None, None
            if line is not None:
                with suppress(StoreError):
                    await self.tools.writer.do(lambda: self.tools.store.release(line.lease))
        finally:
            self._lock.release()
