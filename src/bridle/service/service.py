"""What a server has: the database, the writer, the thread for slow things, the keys, and the sessions that it owns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from bridle.core import InputError
from bridle.database import open_store
from bridle.database.rows import Found, StoreError
from bridle.database.store import EventStore
from bridle.durable.journal import made_from
from bridle.durable.snapshot import opened, refuse_another_policy, refuse_other_budgets, refuse_other_options
from bridle.service.auth import ANYBODY, KeyRing
from bridle.service.bodies import SessionElsewhere, SessionStands
from bridle.service.config import ServiceConfig, checked_name
from bridle.service.errors import CONFLICT, NOT_FOUND, HTTPError, too_many, unavailable
from bridle.service.hosted import Hosted, Tools
from bridle.service.logs import LOG, AccessLog, log
from bridle.service.metrics import ServiceMetrics, SessionFigures
from bridle.service.recipes import SessionRecipe, session_recipe
from bridle.service.writer import GroupWriter
from bridle.session.session import Session

T = TypeVar("T")

LOOKUPS = 4
"""Threads that may wait for a database elsewhere, so that the loop need not."""

SHOWN = 4096
"""So many bytes of a refused request are kept in the quarantine."""

STARTING = "the service is starting: try again in a moment"
STOPPING = "the service is stopping: try again in a moment"

LISTED_WITHIN = 5.0
"""Seconds for which a list waits at most while a server that has just started opens sessions; then it names those by name only."""


AT_ONCE = 32
"""So many sessions are looked at before others may go on."""


class Service:
    """One server's part of the service; made before its loop runs, started by it."""

    def __init__(self, config: ServiceConfig) -> None:
        self.config = config
        self.hosted: dict[str, Hosted] = {}
        self.opening: dict[str, asyncio.Task[Hosted]] = {}
        self.creators: dict[str, str] = {}
        self.why_not: str | None = STARTING
        self.metrics = ServiceMetrics()
        self._tasks: list[asyncio.Task[None]] = []
        self._idle: asyncio.Task[None] | None = None
        self.stopping = asyncio.Event()
        self.requests: Collection[object] | None = None
        """What is being answered, or waits for its turn to be begun, as far as the server says."""
        self.access = AccessLog()
        self.store: EventStore
        self.writer: GroupWriter
        self.ring: KeyRing
        self.compute: ThreadPoolExecutor
        self.lookups: ThreadPoolExecutor | None = None

    # --- its life -----------------------------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Open the database; what is wrong with it is best said before anything else is begun."""
        self.store = open_store(self.config.db, at=self.config.address)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """From its start to its end."""
        await self.start()
        try:
            yield
        finally:
            await self.stop()

    async def start(self) -> None:
        """Open the database and begin to answer; what takes long goes on beside it, until `why_not` is None."""
        if not hasattr(self, "store"):
            await asyncio.to_thread(self.connect)
        self.writer = GroupWriter(self.store, self.metrics, lambda: self.requests is not None and len(self.requests) <= 1)
        self.compute = ThreadPoolExecutor(1, thread_name_prefix="bridle-compute")
        remote = not self.config.db.startswith("sqlite")
        self.lookups = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="bridle-lookup") if remote else None
        self.ring = KeyRing(self.store, self.config.limits, self.config.insecure)
        await self.ring.refresh()  # before the first request is answered: a valid key is never unknown
        self._tasks = [asyncio.create_task(self.ring.keep_fresh()), asyncio.create_task(self._warm_up())]
        log("started", address=self.config.address, owner=self.store.owner, insecure=self.config.insecure)

    async def _warm_up(self) -> None:
        """Make the configured sessions, and do now what the first rounds would pay for."""
        try:
            await asyncio.get_running_loop().run_in_executor(self.compute, rehearse)
            for name, body in self.config.sessions.items():
                try:
                    await self.create(name, dict(body), ANYBODY.id)
                except (InputError, HTTPError) as problem:  # another server's, or wrong: the others can be served
                    log("session of the configuration is not open here", session=name, problem=str(problem))
            if self.config.db.startswith("sqlite"):  # nobody else will
                self._idle = asyncio.create_task(self._open_idle())
                self._tasks.append(self._idle)
            self.why_not = None
            log("ready")
        except Exception as problem:
            LOG.exception("cannot get ready")
            self.why_not = f"the service cannot get ready: {type(problem).__name__}"

    async def _open_idle(self) -> None:
        """Open the sessions that nobody has: they are shown as they are, and their first requests need not wait for a replay."""
        owners = await self.reading(lambda store: store.owners())
        for name in [name for name, owner in owners.items() if owner is None][: self.config.limits.sessions]:
            with suppress(InputError, HTTPError):  # its log says why
                await self.open(name)

    async def stop(self) -> None:
        """Answer what was begun, let go of the sessions, and close the database."""
        self.why_not = STOPPING
        self.stopping.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self.opening.values(), return_exceptions=True)
        for hosted in list(self.hosted.values()):
            await hosted.close()
        await asyncio.to_thread(self.writer.stop)
        self.compute.shutdown()
        if self.lookups is not None:
            self.lookups.shutdown()
        await asyncio.to_thread(self.store.close)
        self.access.flush()
        log("stopped")

    # --- sessions -----------------------------------------------------------------------------------------------------------------------

    async def open(self, name: str) -> Hosted:
        """The session of this name, owned by this server; several who ask at once wait for the same."""
        if (known := self.hosted.get(name)) is not None:
            return known
        task = self.opening.get(name)
        if task is None:
            task = self.opening[name] = asyncio.create_task(self._open(name))
            task.add_done_callback(lambda _: self.opening.pop(name, None))
        return await asyncio.shield(task)

    async def _open(self, name: str) -> Hosted:
        found = await self.reading(lambda store: store.find(name))
        if found is None:
            raise HTTPError(NOT_FOUND, f"there is no session {name[:100]!r}")
        hosted = Hosted(found, self.tools)
        hosted.quarantined = (await self.reading(lambda store: store.counts())).get(found.id, 0)
        await hosted.read(lambda core: None, quick=True)
        self.hosted[name] = hosted
        return hosted

    @property
    def tools(self) -> Tools:
        """What sessions need of this server."""
        return Tools(self.store, self.writer, self.compute, self.lookups, self.config.limits)

    async def create(self, name: str, body: Mapping[str, Any], creator: str) -> tuple[Hosted, bool]:
        """A new session, or the one of this name that was made from the same; and whether it is new."""
        checked_name("name", name)
        most = self.config.limits.sessions
        if creator != ANYBODY.id and sum(each == creator for each in self.creators.values()) >= most:
            raise too_many(f"this key has {most} sessions open already: let go of one (DELETE /v1/sessions/NAME)", 60.0)
        loop = asyncio.get_running_loop()
        recipe = await loop.run_in_executor(self.compute, session_recipe, body, self.config.limits)
        found = await self.reading(lambda store: store.find(name))
        fresh = False
        if found is None:
            spec = await loop.run_in_executor(self.compute, spec_of, recipe)
            with suppress(InputError):  # somebody else was faster
                found = await self._writing(lambda: self.store.create(name, spec))
                fresh = True
        found = await self.reading(lambda store: store.find(name)) if found is None else found
        if found is None:
            raise unavailable("the database is in trouble: try again in a moment")
        await loop.run_in_executor(self.compute, refuse_another, found, recipe)
        hosted = await self.open(name)
        self.creators.setdefault(name, creator)
        if fresh:
            with suppress(InputError):  # it is not known yet how many constraints a round has
                await hosted.read(lambda core: core.session.warm_up())
        return hosted, fresh

    async def let_go(self, name: str) -> None:
        """Give a session back: its lease and its memory."""
        hosted = await self.open(name)
        self.hosted.pop(name, None)
        self.creators.pop(name, None)
        await hosted.close()

    async def names(self) -> list[tuple[str, str | None]]:
        """The names of all sessions, and where those are that others have: the address, or else the process, of who does."""
        if self._idle is not None and not self._idle.done():
            await asyncio.wait([self._idle], timeout=LISTED_WITHIN)

        def look(store: EventStore) -> list[tuple[str, str | None]]:
            living = store.living()
            return [
                (name, None if owner is None or owner == store.owner else living.get(owner) or owner)
                for name, owner in store.owners().items()
            ]

        return await self.reading(look)

    async def overview(self) -> list[SessionStands | SessionElsewhere]:
        """Every session: where it stands if it is open here, else who has it."""
        found: list[SessionStands | SessionElsewhere] = []
        for i, (name, owner) in enumerate(await self.names()):
            hosted = self.hosted.get(name)
            try:
                found.append(SessionElsewhere(name, owner) if hosted is None else await hosted.read(hosted.standing, quick=True))
            except HTTPError as turned:  # its store is in trouble, or it has gone elsewhere: the others can be shown
                found.append(SessionElsewhere(name, turned.headers.get("Location", owner)))
            if i % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
        return found

    async def portrait(self, name: str) -> dict[str, Any]:
        """One session, with what is proved of it."""
        hosted = await self.open(name)
        return await hosted.read(hosted.portrait)

    async def last_rounds(self, name: str, last: int) -> list[dict[str, Any]]:
        """The last rounds of a session that this server has played, the newest last."""
        hosted = await self.open(name)
        found = await hosted.read(lambda _: list(hosted.rounds), quick=True)
        return [each.facts() for each in found[max(0, len(found) - last) :]]

    # --- the database -------------------------------------------------------------------------------------------------------------------

    async def reading(self, look: Callable[[EventStore], T]) -> T:
        """Read something from the database, beside the loop."""
        try:
            return await asyncio.to_thread(look, self.store)
        except StoreError as problem:
            log("cannot read", problem=str(problem))
            raise unavailable("the database is in trouble: try again in a moment") from None

    async def _writing(self, what: Callable[[], T]) -> T:
        """Write something to the database, in the writer's turn."""
        try:
            return await self.writer.do(what)
        except StoreError as problem:
            log("cannot write", problem=str(problem))
            raise unavailable("the database is in trouble, and nothing has changed: try again in a moment") from None

    async def quarantine(self, hosted: Hosted, sentence: str, raw: bytes) -> None:
        """Keep a request that was refused; it is kept when this returns, if the database can."""
        hosted.quarantined += 1
        when = time.time()
        try:
            await self.writer.do(lambda: self.store.quarantine(hosted.found.id, when, sentence[:2000], raw[:SHOWN]))
        except StoreError as problem:
            log("not in the quarantine", session=hosted.name, problem=str(problem))

    async def audit(self, person: str, session: str, what: str) -> None:
        """Write down who did what."""
        when = time.time()
        log("changed", who=person, what=what, session=session)
        with suppress(StoreError):
            await self.writer.do(lambda: self.store.audit(person, what, session, when))

    # --- metrics ------------------------------------------------------------------------------------------------------------------------

    async def measured(self) -> bytes:
        """All meters, as Prometheus reads them."""
        found: list[SessionFigures] = []
        for hosted in list(self.hosted.values()):
            with suppress(HTTPError, InputError):
                found.append(await hosted.read(hosted.figures))
        self.metrics.sessions = found
        return await asyncio.get_running_loop().run_in_executor(self.compute, self.metrics.text)


def rehearse() -> None:
    """Load every solver, so that the first session need not."""
    from bridle.domains import Ball
    from bridle.policies import policy

    Session(policy("anytime", Ball(2))).warm_up(1)


def spec_of(recipe: SessionRecipe) -> bytes:
    """What a new session is made from, as its journal keeps it."""
    session = Session(recipe.policy, recipe.x1, **recipe.options)
    return session.read(lambda plan, state: made_from(plan, state, recipe.gates, None))


def refuse_another(found: Found, recipe: SessionRecipe) -> None:
    """409 where a session was made from something else."""
    made = opened(found.spec, f"session {found.name!r}")
    try:
        refuse_another_policy(recipe.policy, made.saved, found.name)
        refuse_other_options(recipe.options if recipe.x1 is None else {**recipe.options, "x1": recipe.x1}, made.saved, found.name)
        refuse_other_budgets(recipe.gates, made, found.name)
    except InputError as wrong:
        raise HTTPError(CONFLICT, f"there is a session {found.name!r} already, and it was made from something else: {wrong}") from None
