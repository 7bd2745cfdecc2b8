"""A session that this server owns: requests take turns in the order in which they came, and none is answered before what it rests on is
durable.

An event is applied in memory and queued for the writer while the session is held; then the session is let go, so that the next event can
join the same commit, and the answer waits for it. Reading waits for the last commit in the same way. What takes long is done in a thread
of its own, while the session is held and the others go on. After a failed commit the memory is ahead of the disk: the session is made
again from its journal."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from bridle.budgets import Gate, Pacer
from bridle.core import InputError
from bridle.database.rows import Fenced, Found, Owned, StoreError
from bridle.database.store import EventStore
from bridle.durable.journal import Applied, Journal, open_journal
from bridle.game.totals import charged
from bridle.ops import Array
from bridle.policies.registry import Configured
from bridle.service.bodies import AlarmFacts, GateStands, SessionStands, encode
from bridle.service.config import ServiceLimits
from bridle.service.errors import HTTPError, elsewhere, too_many, unavailable
from bridle.service.logs import log
from bridle.service.metrics import SessionFigures
from bridle.service.writer import CommitGroup, GroupWriter, JournalLine
from bridle.session.certificates import text as report_text
from bridle.session.certificates.clocks import ASSUMPTIONS_EVERY
from bridle.session.rates import limit_names
from bridle.session.session import HistoryEntry, Session
from bridle.session.tried_points import rows_of

T = TypeVar("T")

SLOW = 0.005
"""Seconds: after what took longer than this, the next is played in the thread for slow things."""

MANY = 100
"""More events at once than this are played there too."""

CERTIFIED_EVERY = 64
"""What is proved of a session is worked out anew for the metrics once so many rounds more have been observed."""

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


Verb: TypeAlias = Callable[[Journal], tuple[object, Applied]]
"""What is done to a session, in its turn and by one thread at a time; its answer, and what must be durable before that leaves."""


def next_decision(core: Journal) -> list[float] | None:
    """The next decision, where nothing has to be said first, and nothing again."""
    x = core.session.next_decision()
    return None if x is None else x.tolist()


class PlayedRound(Struct, gc=False):
    """One of the last rounds: how many had been observed with it, what was decided, and what came of it, a row of it for each point."""

    round: int
    x: list[float] | None
    f: Any
    g: Any
    cost: float
    violations: Array
    ticket: int | None = None

    def facts(self) -> dict[str, Any]:
        """As it is shown: where several points were tried, `f`, `g` and `violation` are averages."""
        g = np.atleast_1d(np.asarray([] if self.g is None else self.g, dtype=float))
        found = {**asdict(self), "f": float(np.mean(self.f)), "g": charged(g, 1).tolist(), "ccv": float(self.violations.max(initial=0.0))}
        found["violation"] = charged(np.maximum(g, 0.0), 1).tolist()
        return {name: value for name, value in found.items() if name != "violations" and (name != "ticket" or value is not None)}


def shown_again(entry: HistoryEntry) -> PlayedRound:
    """A round that was replayed."""
    x, ccv = charged(entry["x"], 1).tolist(), np.array([entry["ccv"]])
    return PlayedRound(entry["round"], x, entry["f"], entry["g"], entry["cost"], ccv, entry.get("ticket"))


def stands(budget: Gate | Pacer) -> GateStands:
    """Where a budget stands."""
    if isinstance(budget, Pacer):
        own = budget.gate
        return GateStands("pacer", budget.budget, budget.spent, budget.left, own.unit, budget.price, budget.played, budget.rounds)
    return GateStands("gate", budget.budget, budget.spent, budget.left, budget.unit)


def finite(value: float) -> float | None:
    """A number as JSON has it."""
    return value if isfinite(value) else None


def parameters_of(session: Session) -> dict[str, object]:
    """What the policy was told, as JSON has it: a record by the name of its type."""
    configured = session.policy
    told = configured.recipe[1] if isinstance(configured, Configured) else {}
    return {name: _plain(value) for name, value in told.items()}


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else type(value).__name__


def named(session: Session, values: Array) -> dict[str, float]:
    """A value of each limit, by its name."""
    return dict(zip(limit_names(len(values), session.names), values.tolist(), strict=True))


class Turns:
    """Requests that take turns: whoever waits is woken together with the others, and those that need no thread go on at once.

    A lock would wake one of them in each round of the loop, and each would be committed alone.
    """

    def __init__(self, name: str, most: int) -> None:
        self.name, self.most, self.waiting, self.free = name, most, 0, asyncio.Event()
        self.free.set()

    async def __aenter__(self) -> None:
        if not self.free.is_set():
            if self.waiting >= self.most:
                raise too_many(f"{self.waiting} requests wait for session {self.name} already")
            self.waiting += 1
            try:
                while not self.free.is_set():
                    await self.free.wait()
            finally:
                self.waiting -= 1
        self.free.clear()

    async def __aexit__(self, *_: object) -> None:
        self.free.set()


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
        self.turns = Turns(found.name, tools.limits.waiting)
        self._loop = asyncio.get_running_loop()
        self._core: Journal | None = None
        self._line: JournalLine | None = None
        self._last: CommitGroup | None = None
        self._slow = True  # whether the last event took long; the first one may load or compile something
        self._safe = 0  # the last event that is known to be durable
        self._snapshot: asyncio.Task[None] | None = None

    # --- taking turns -----------------------------------------------------------------------------------------------------------------

    async def play(self, verb: Verb, events: int = 1) -> bytes:
        """Apply something to the session; its answer, once what it rests on is durable. What the session refuses is an `InputError`."""
        async with self.turns:
            core, line = self._ready() or await self._open()
            aside = self._aside(core, events)
            try:
                answer, applied = (
                    self._apply(verb, core) if aside is None else await self._loop.run_in_executor(aside, self._apply, verb, core)
                )
            except BaseException as wrong:
                raise self._broken_off(wrong, core) from None
            if applied.rows:
                self._last = self.tools.writer.append(line, applied.rows)
            last = self._last
        await self._durable(last, line, bool(applied.rows))
        if applied.rows and line is self._line and applied.rows[-1].seq > self._safe:
            self._safe = applied.rows[-1].seq
        if core.snapshot_due and self._snapshot is None:
            self._snapshot = asyncio.create_task(self._put_snapshot())
        return encode(answer)

    def _aside(self, core: Journal, events: int) -> Executor | None:
        """The threads in which so many events are played; None where that is soon done, and nobody is held up if the loop does it."""
        rounds = core.session.rounds  # at each multiple the session looks back at its rounds; at one of them it begins to compile them
        look = rounds // ASSUMPTIONS_EVERY != (rounds + events) // ASSUMPTIONS_EVERY
        return self.tools.compute if self._slow or look or events > MANY else self.tools.lookups

    def _apply(self, verb: Verb, core: Journal) -> tuple[object, Applied]:
        """Apply something, and note whether that took long."""
        begun = perf_counter()
        try:
            return verb(core)
        finally:
            self.hear(core)
            self._slow = perf_counter() - begun > SLOW

    def _broken_off(self, wrong: BaseException, core: Journal) -> BaseException:
        """What is said where something could not be applied; if it broke off in the middle, the session is made again from its journal."""
        if isinstance(wrong, InputError | HTTPError) and not core.stale:  # nothing was applied
            return wrong
        self._core = None
        return self._trouble(wrong) if isinstance(wrong, StoreError) else wrong

    async def read(self, look: Callable[[Journal], T], quick: bool = False) -> T:
        """Look at the session; what is seen leaves once it is durable."""
        async with self.turns:
            core, line = self._ready() or await self._open()
            try:
                found = look(core) if quick else await self._loop.run_in_executor(self.tools.compute, look, core)
            except StoreError as problem:
                self._core = None
                raise self._trouble(problem) from None
            last = self._last
        await self._durable(last, line)
        return found

    def _ready(self) -> tuple[Journal, JournalLine] | None:
        """The session and what it is written by, where it is as its journal is, or ahead of it only by what is being committed."""
        core, line = self._core, self._line
        if core is None or line is None or line.broken is not None:
            return None
        if core.durable < self._safe:
            core.committed(self._safe)
        return core, line

    async def _durable(self, last: CommitGroup | None, line: JournalLine, wrote: bool = False) -> None:
        """Wait for a commit; where this owner has not just written, it must hold the session still."""
        try:
            if last is not None:
                await last.durable(line)
        except StoreError as problem:
            raise self._trouble(problem) from None
        if not wrote and not self.tools.store.holds(line.lease):
            raise unavailable(LOST)

    def _trouble(self, problem: StoreError) -> HTTPError:
        """What a client is told of trouble with the database."""
        log("not written", logging.WARNING, session=self.name, problem=str(problem), certain=problem.certain)
        return unavailable(LOST if isinstance(problem, Fenced) else UNWRITTEN if problem.certain else TROUBLE)

    def remember(self, core: Journal, round: int, f: Any, g: Any, ticket: int | None = None, played: object = None) -> None:
        """Note a round that was just observed, to be shown."""
        session = core.session
        x = self.decided if ticket is None else self.waiting.pop(ticket, None)
        x = played if isinstance(played, list) else x
        if session.plan.tries:
            f, g = rows_of(session.plan.tries, f, g)
        self.rounds.append(PlayedRound(round, x, f, g, session.cost, session.violations, ticket))

    def hear(self, core: Journal) -> None:
        """Log and keep the warnings that nobody has heard of yet."""
        for warning in core.warnings():
            self.alarms[type(warning).__name__] = str(warning)
            log("alarm", logging.WARNING, session=self.name, kind=type(warning).__name__, text=str(warning))

    # --- what is shown ----------------------------------------------------------------------------------------------------------------

    def alarm_facts(self, core: Journal) -> list[AlarmFacts]:
        """Which warnings the session has given, in which round, and what they say."""
        return [AlarmFacts(kind, t, self.alarms.get(kind)) for kind, t in core.session.alarms.items()]

    def standing(self, core: Journal) -> SessionStands:
        """Where the session stands."""
        session = core.session
        violations = session.violations.tolist()
        return SessionStands(
            name=self.name,
            policy=getattr(session.policy, "name", ""),
            parameters=parameters_of(session),
            dim=session.dim,
            engine=session.engine,
            names=list(session.names),
            round=session.rounds,
            x=next_decision(core),
            pending=session.pending,
            dropped=session.dropped,
            cost=finite(session.cost),
            ccv=finite(max(violations, default=0.0)),
            violations=violations,
            alarms=self.alarm_facts(core),
            gates={name: stands(budget) for name, budget in core.budgets.budgets.items()},
            quarantined=self.quarantined,
        )

    def portrait(self, core: Journal) -> dict[str, Any]:
        """Where the session stands, with what is proved of it, as JSON has it; null where it keeps no certificates."""
        facts, certificate, text = msgspec.to_builtins(self.standing(core)), None, None
        with suppress(InputError):
            proof = core.session.certificate()
            certificate, text = json.loads(proof.json()), report_text.report(proof)
        return {"session": facts, "certificate": certificate, "alarms": facts["alarms"], "report": text}

    def figures(self, core: Journal) -> SessionFigures:
        """What is measured of the session; what is proved is worked out anew only now and then."""
        session = core.session
        if not 0 <= session.rounds - self.certified[0] < CERTIFIED_EVERY:
            with suppress(InputError):  # it keeps no certificates
                self.certified = (session.rounds, session.certificate().regret)
        prices: dict[str, float] = {}
        with suppress(InputError):  # the policy keeps none
            prices = named(session, session.price)
        return SessionFigures(self.standing(core), named(session, session.violations), prices, self.certified[1])

    # --- the journal ------------------------------------------------------------------------------------------------------------------

    async def _open(self) -> tuple[Journal, JournalLine]:
        """The session from its journal: at first, and whenever the memory may be ahead of it."""
        self._core = self._line = None
        again: deque[PlayedRound] = deque(maxlen=REMEMBERED)
        core = await self._loop.run_in_executor(self.tools.compute, self._resume, lambda entry: again.append(shown_again(entry)))
        first = again[0].round if again else core.session.rounds + 1
        self.rounds = deque([*(each for each in self.rounds if each.round < first), *again], REMEMBERED)
        self._core, self._line, self._last = core, (line := JournalLine(core.lease)), None
        self._safe, self._slow = core.seq, True
        self.decided = next_decision(core)
        self.hear(core)
        return core, line

    def _resume(self, replayed: Callable[[HistoryEntry], object]) -> Journal:
        begun = perf_counter()
        try:
            core = open_journal(self.tools.store, self.name, replayed=replayed)
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
            async with self.turns:
                core, line, last = self._core, self._line, self._last
                if core is None or line is None or line.broken is not None:
                    return
                if last is not None:
                    await last.durable(line)
                core.committed(core.seq)
                if not core.snapshot_due:
                    return
                row = await self._loop.run_in_executor(self.tools.compute, core.snapshot)
            await self.tools.writer.do(lambda: self.tools.store.put_snapshot(line.lease, row))
        except StoreError as problem:
            log("no snapshot", session=self.name, problem=str(problem))
        finally:
            self._snapshot = None

    async def close(self) -> None:
        """Let go of the session: what was begun is finished, and its lease is given back."""
        async with self.turns:
            line, last, self._core, self._line, self._last = self._line, self._last, None, None, None
            with suppress(StoreError):
                if last is not None and line is not None:
                    await last.durable(line)
            with suppress(StoreError):
                if line is not None:
                    await self.tools.writer.do(lambda: self.tools.store.release(line.lease))
