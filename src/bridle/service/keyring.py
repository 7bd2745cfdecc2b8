"""The keys that the service knows at present: read from the database again and again, so that one that is revoked opens nothing more."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic

from bridle.core import Unavailable
from bridle.database.rows import AccessKey
from bridle.database.store import EventStore
from bridle.service.auth import ANYBODY, may, recognise, who
from bridle.service.errors import FORBIDDEN, NO_KEY, Turned, too_many
from bridle.service.limits import Bucket, ServiceLimits

EVERY = 2.0
"""Seconds after which keys are read again: for so long a revoked key may still be used."""

AT_MOST_EVERY = 0.25
"""A key that is not known has them read at once, but no sooner than this after the last time."""

UNKNOWN = "the key is missing, wrong or revoked: send the header Authorization: Bearer KEY (`bridle keys add` makes keys)"
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="bridle"'}


class KeyRing:
    """Who may do what, and how often."""

    def __init__(self, store: EventStore, limits: ServiceLimits, insecure: bool) -> None:
        self.store, self.limits, self.insecure = store, limits, insecure
        self.keys: dict[str, AccessKey] = {}
        self.read_at = self.known_since = -EVERY
        self.buckets: dict[str, Bucket] = {}

    async def refresh(self) -> None:
        """Read the keys again; where the database does not answer, those that are known stay."""
        begun = self.read_at = monotonic()
        with suppress(Unavailable):
            found = await asyncio.to_thread(self.store.keys.list)
            if begun < self.known_since:  # somebody has read them since: a key that was revoked in between is not to come back
                return
            self.known_since = begun
            self.keys = {key.id: key for key in found}
            self.buckets = {id: bucket for id, bucket in self.buckets.items() if id in self.keys or id == ANYBODY.id}

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
        """Whose request this is, if it may do this now; a key that is not known may be new."""
        key = self.admitted(authorization, scope)
        if key is None and bearer(authorization) and monotonic() - self.read_at >= AT_MOST_EVERY:
            await self.refresh()
            key = self.admitted(authorization, scope)
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
