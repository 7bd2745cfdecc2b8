"""The keys that the service knows at present: read from the database again and again, so that one that is revoked opens nothing more."""

from __future__ import annotations

import asyncio
from time import monotonic

from bridle.core import Unavailable
from bridle.database.rows import AccessKey
from bridle.database.store import EventStore
from bridle.service.auth import ANYBODY, may, recognise, who
from bridle.service.errors import FORBIDDEN, NO_KEY, Turned, too_many, unavailable
from bridle.service.limits import Bucket, ServiceLimits
from bridle.service.logs import log

EVERY = 2.0
"""Seconds after which keys are read again: for so long a revoked key may still be used."""

AT_MOST_EVERY = 0.1
"""Seconds between two reads at least: requests with an unknown key wait for the next one, and share it."""

UNREAD = "the keys cannot be read from the database: try again in a moment"
UNKNOWN = "the key is missing, wrong or revoked: send the header Authorization: Bearer KEY (`bridle keys add` makes keys)"
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="bridle"'}


class KeyRing:
    """Who may do what, and how often."""

    def __init__(self, store: EventStore, limits: ServiceLimits, insecure: bool) -> None:
        self.store, self.limits, self.insecure = store, limits, insecure
        self.keys: dict[str, AccessKey] = {}
        self.read_at = self.known_since = -EVERY
        self.buckets: dict[str, Bucket] = {}
        self._next: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def refresh(self) -> None:
        """Read the keys again. If the database does not answer, the known keys stay, and so does `known_since`."""
        begun = self.read_at = monotonic()
        try:
            found = await asyncio.to_thread(self.store.keys.list)
        except Unavailable as problem:
            log("cannot read the keys", problem=str(problem))
            return
        if begun < self.known_since:  # somebody has read them since: a key that was revoked in between is not to come back
            return
        self.known_since = begun
        self.keys = {key.id: key for key in found}
        self.buckets = {id: bucket for id, bucket in self.buckets.items() if id in self.keys or id == ANYBODY.id}

    async def catch_up(self) -> None:
        """Wait for a read of the keys that begins after this call; all requests that wait share one read."""
        if self._next is None or self._next.done():
            self._next = asyncio.create_task(self._read_soon())
        await asyncio.shield(self._next)  # a client that hangs up does not end the read of the others

    async def _read_soon(self) -> None:
        async with self._turn:  # one read at a time, so that a slow database does not take up every thread
            await asyncio.sleep(max(0.0, self.read_at + AT_MOST_EVERY - monotonic()))
            self._next = None  # this read begins now: requests from here on need a later one
            await self.refresh()

    async def keep_fresh(self) -> None:
        """Read the keys every few seconds, without end."""
        while True:
            await self.refresh()
            await asyncio.sleep(EVERY)

    def admitted(self, authorization: str | None, scope: str | None) -> AccessKey | None:
        """Whose request this is, if it may do this now (None: anything); None where nobody known sent it."""
        key = ANYBODY if self.insecure else recognise(bearer(authorization), self.keys)
        if key is None:
            return None
        if scope is not None and not may(key, scope):
            raise Turned(FORBIDDEN, f"the key {who(key)} lacks the scope {scope}; it has {key.scopes.replace(' ', ', ')}")
        bucket = self.buckets.get(key.id)
        if bucket is None:
            bucket = self.buckets[key.id] = Bucket(self.limits.rate, max(1.0, 2.0 * self.limits.rate))
        wait = bucket.take(monotonic())
        if wait > 0.0:
            raise too_many(f"more than {self.limits.rate:g} requests a second: wait a little", wait)
        return key

    async def admit(self, authorization: str | None, scope: str | None) -> AccessKey:
        """Whose request this is, if it may do this now.

        An unknown key may be new, or the keys may not have been read yet. It is refused (401) only after a read that began after the
        request came. If that read fails, nobody knows whether the key is valid: the answer is 503.
        """
        key = self.admitted(authorization, scope)
        if key is None and bearer(authorization):
            asked = monotonic()
            await self.catch_up()
            key = self.admitted(authorization, scope)
            if key is None and self.known_since < asked:
                raise unavailable(UNREAD)
        if key is None:
            raise Turned(NO_KEY, UNKNOWN, CHALLENGE)
        return key


def bearer(authorization: str | None) -> str:
    """The key that a request shows, "" where it shows none.

    >>> bearer("Bearer brk_1_2"), bearer("Basic abc"), bearer(None)
    ('brk_1_2', '', '')
    """
    kind, _, text = (authorization or "").partition(" ")
    return text if kind.lower() == "bearer" else ""
