"""The writer: one thread that commits whatever waits, so that one commit serves all who came while the last one was under way.

There is no timer. The loop hands a group over once it has dealt with all that was there to be read, and whatever comes while that is being
committed is the next group: so commits go on beside the loop, and under load the groups grow by themselves. While
one client asks and the disk is fast, the loop commits itself: to wake another thread and be woken by it takes as long as the commit.

Nothing is answered before its commit has returned. Where a commit fails, everything after it on the same session fails too, because it
rests on what is not there: a `JournalLine` that is broken stays so, and the session is made again from its journal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from time import perf_counter
from typing import TypeVar

from bridle.database.rows import Event, Lease, StoreError
from bridle.database.store import EventStore
from bridle.service.metrics import ServiceMetrics

T = TypeVar("T")

PROMPT = 0.001
"""Seconds: where a commit takes longer, the loop does not wait for it."""


class JournalLine:
    """What one owner appends to one session under one lease; `broken` is why that has ended, once it has."""

    __slots__ = ("broken", "lease")

    def __init__(self, lease: Lease) -> None:
        self.lease, self.broken = lease, None  # type: tuple[Lease, StoreError | None]


class CommitGroup:
    """Events that are committed together, by their lines; `known` is set once the outcome is known, and told to the loop."""

    __slots__ = ("events", "known", "problems")

    def __init__(self) -> None:
        self.events: dict[JournalLine, list[Event]] = {}
        self.problems: dict[JournalLine, StoreError | None] = {}
        self.known = asyncio.Event()

    async def durable(self, line: JournalLine) -> None:
        """Wait until what this line has in the group is durable; where it is known not to be, that is raised."""
        await self.known.wait()
        problem = self.problems.get(line)
        if problem is not None:
            raise problem


class GroupWriter:
    """The thread; it is started by the loop that it answers to. `alone` says whether at most one request is being answered."""

    def __init__(self, store: EventStore, metrics: ServiceMetrics, alone: Callable[[], bool] = lambda: False) -> None:
        self.store, self.metrics, self.alone = store, metrics, alone
        self.loop = asyncio.get_running_loop()
        self.queue: SimpleQueue[Callable[[], Callable[[], None]] | None] = SimpleQueue()
        """What is to be done in the thread; each tells the loop what came of it by what it returns."""
        self._gathering: CommitGroup | None = None
        self._under_way = 0
        self._pace = 10.0 * PROMPT  # seconds that a commit takes: what was slow is taken to be so for a while
        self.thread = threading.Thread(target=self._run, name="bridle-writer", daemon=True)
        self.thread.start()

    # --- in the loop ----------------------------------------------------------------------------------------------------------------

    def append(self, line: JournalLine, events: Sequence[Event]) -> CommitGroup:
        """Append events to a session: the group that they are committed with."""
        group = self._gathering
        if group is None:
            group = CommitGroup()
            if self._pace < PROMPT and not self._under_way and self.alone() and self._at_once(group, line, events):
                return group
            self._gathering = group
            if not self._under_way:
                self.loop.call_soon(self._hand_over)
        group.events.setdefault(line, []).extend(events)
        return group

    def _at_once(self, group: CommitGroup, line: JournalLine, events: Sequence[Event]) -> bool:
        """Commit events here, where nobody else is served meanwhile; False where that would mean to wait for another process."""
        if line.broken is not None:
            return False
        begun = perf_counter()
        try:
            if not self.store.append_at_once(line.lease, events):
                return False
        except Exception as problem:
            line.broken = as_store_error(problem)
        self._note(len(events), perf_counter() - begun, line.broken is not None)
        group.problems[line] = line.broken
        group.known.set()
        return True

    def _note(self, events: int, seconds: float, failed: bool) -> None:
        self._pace = max(seconds, 0.8 * self._pace)
        self.metrics.commit(events, seconds, failed)

    async def do(self, what: Callable[[], T]) -> T:
        """Do something else with the database, after all that came before."""
        done: asyncio.Future[T] = self.loop.create_future()

        def tell(found: T | None, problem: BaseException | None) -> None:
            if done.done():
                return
            if problem is None:
                done.set_result(found)  # type: ignore[arg-type]
            else:
                done.set_exception(problem)

        def job() -> Callable[[], None]:
            try:
                found = what()
            except BaseException as problem:
                return partial(tell, None, problem)
            return partial(tell, found, None)

        self._hand_over()
        self._put(job)
        return await done

    def _put(self, job: Callable[[], Callable[[], None]]) -> None:
        self._under_way += 1
        self.queue.put(job)

    def _hand_over(self) -> None:
        group, self._gathering = self._gathering, None
        if group is not None:
            self._put(partial(self._commit, group))

    def _finish(self, tell: Callable[[], None]) -> None:
        """The outcome of something is known. The next group goes first, so that it is committed while others are answered."""
        self._under_way -= 1
        if not self._under_way:
            self._hand_over()
        tell()

    def stop(self) -> None:
        """Do what waits, and end."""
        self.queue.put(None)
        self.thread.join()

    # --- in the thread --------------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (job := self.queue.get()) is not None:
            tell = job()
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                self.loop.call_soon_threadsafe(self._finish, tell)

    def _commit(self, group: CommitGroup) -> Callable[[], None]:
        """Commit what can be; then the group knows which of its lines are broken."""
        whole = [(line, events) for line, events in group.events.items() if line.broken is None]
        if whole:
            begun = perf_counter()
            try:
                problems = self.store.append_many([(line.lease, events) for line, events in whole])
            except Exception as problem:
                problems = [as_store_error(problem)] * len(whole)
            for (line, _), failed in zip(whole, problems, strict=True):
                line.broken = failed
            self._note(sum(len(events) for _, events in whole), perf_counter() - begun, any(problems))
        group.problems = {line: line.broken for line in group.events}
        return group.known.set


def as_store_error(problem: Exception) -> StoreError:
    """What went wrong in a commit; of anything unexpected nobody knows whether it counts."""
    return problem if isinstance(problem, StoreError) else StoreError(f"the database failed: {problem}", certain=False)
