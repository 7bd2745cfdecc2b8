"""The writer: one thread that commits whatever waits, so that one commit serves all who came while the last one was under way.

There is no timer: an event that comes alone is committed alone and at once, and under load the groups grow by themselves. Nothing is
answered before its commit has returned. Where a commit fails, everything after it on the same session fails too, because it rests on what
is not there: a `JournalLine` that is broken stays so, and the session is made again from its journal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import TypeVar

from bridle.database.rows import Event, Lease, StoreError
from bridle.database.store import EventStore
from bridle.service.metrics import ServiceMetrics

T = TypeVar("T")

MOST = 5000
"""No commit has more jobs than this."""


class JournalLine:
    """What one owner appends to one session under one lease; `broken` is why that has ended, once it has."""

    __slots__ = ("broken", "lease")

    def __init__(self, lease: Lease) -> None:
        self.lease, self.broken = lease, None  # type: tuple[Lease, StoreError | None]


class Appending:
    """Events that are to be appended to a line, and who waits for it."""

    __slots__ = ("done", "events", "line")

    def __init__(self, line: JournalLine, events: Sequence[Event], done: asyncio.Future[None]) -> None:
        self.line, self.events, self.done = line, events, done


class Doing:
    """Anything else that is to be done in the writer's thread, and who waits for it."""

    __slots__ = ("done", "what")

    def __init__(self, what: Callable[[], object], done: asyncio.Future[object]) -> None:
        self.what, self.done = what, done


class GroupWriter:
    """The thread; it is started by the loop that it answers to."""

    def __init__(self, store: EventStore, metrics: ServiceMetrics) -> None:
        self.store, self.metrics = store, metrics
        self.loop = asyncio.get_running_loop()
        self.queue: SimpleQueue[Appending | Doing | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._run, name="bridle-writer", daemon=True)
        self.thread.start()

    def append(self, line: JournalLine, events: Sequence[Event]) -> asyncio.Future[None]:
        """Append events to a session; the future is done when they are durable, or are known not to be."""
        done: asyncio.Future[None] = self.loop.create_future()
        self.queue.put(Appending(line, events, done))
        return done

    async def do(self, what: Callable[[], T]) -> T:
        """Do something else with the database, after all that came before."""
        done: asyncio.Future[object] = self.loop.create_future()
        self.queue.put(Doing(what, done))
        return await done  # type: ignore[return-value]

    def stop(self) -> None:
        """Do what waits, and end."""
        self.queue.put(None)
        self.thread.join()

    # --- in the thread --------------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            jobs, last = self._waiting()
            appends = [job for job in jobs if isinstance(job, Appending)]
            answers: list[tuple[asyncio.Future[object], object, BaseException | None]] = []
            if appends:
                answers += self._commit(appends)
            for job in jobs:
                if isinstance(job, Doing):
                    try:
                        answers.append((job.done, job.what(), None))
                    except BaseException as problem:
                        answers.append((job.done, None, problem))
            if answers:
                with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                    self.loop.call_soon_threadsafe(_tell, answers)
            if last:
                return

    def _waiting(self) -> tuple[list[Appending | Doing], bool]:
        """All that waits, as soon as something does; and whether that is all there will ever be."""
        first = self.queue.get()
        if first is None:
            return [], True
        jobs = [first]
        while len(jobs) < MOST:
            try:
                job = self.queue.get_nowait()
            except Empty:
                return jobs, False
            if job is None:
                return jobs, True
            jobs.append(job)
        return jobs, False

    def _commit(self, jobs: list[Appending]) -> list[tuple[asyncio.Future[object], object, BaseException | None]]:
        groups: dict[JournalLine, list[Event]] = {}
        for job in jobs:
            if job.line.broken is None:
                groups.setdefault(job.line, []).extend(job.events)
        if groups:
            begun = perf_counter()
            try:
                problems = self.store.append_many([(line.lease, events) for line, events in groups.items()])
            except StoreError as problem:
                problems = [problem] * len(groups)
            except Exception as problem:
                problems = [StoreError(f"the database failed: {problem}", certain=False)] * len(groups)
            for line, failed in zip(groups, problems, strict=True):
                line.broken = failed
            if any(problems):
                self.metrics.failed_commits.inc()
            else:
                self.metrics.commit(sum(map(len, groups.values())), perf_counter() - begun)
        return [(job.done, None, job.line.broken) for job in jobs]  # type: ignore[misc]


def _tell(answers: list[tuple[asyncio.Future[object], object, BaseException | None]]) -> None:
    for done, result, problem in answers:
        if done.done():  # whoever asked has gone away
            continue
        if problem is None:
            done.set_result(result)
        else:
            done.set_exception(problem)
