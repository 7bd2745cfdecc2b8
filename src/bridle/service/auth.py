"""API keys: what they may do, how they are made and recognised.

A key reads ``brk_ID_SECRET``. The ID is public: it names the key in lists, logs and the audit. The SECRET has 256 random bits, is shown
once, and is kept as a salted hash. So much randomness cannot be guessed from a fast hash, and a slow one would only make every request
slow: it is BLAKE2b.

>>> text, made = make_key("shop", ["decide", "observe"], when=0.0)
>>> text.startswith(f"brk_{made.id}_"), recognise(text, {made.id: made}) is made, may(made, "decide"), may(made, "admin")
(True, True, True, False)
>>> recognise(text[:-1] + "!", {made.id: made}) is None, recognise(text, {made.id: made._replace(revoked=1.0)}) is None
(True, True)
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Collection, Mapping
from time import monotonic

from bridle import validate
from bridle.core import InputError, Unavailable
from bridle.database.rows import AccessKey
from bridle.database.store import EventStore
from bridle.service.config import ServiceLimits
from bridle.service.errors import FORBIDDEN, NO_KEY, HTTPError, too_many, unavailable
from bridle.service.logs import log

SCOPES = ("decide", "observe", "read", "admin")
"""What a key may do; `admin` may do everything."""

PREFIX = "brk_"
LONGEST = 200
"""No key is longer, in characters."""

ANYBODY = AccessKey("-", "anybody", "admin", b"", b"", "", 0.0, None)
"""Who asks where no keys are asked for."""

NOBODY = AccessKey("-", "nobody", "", bytes(16), bytes(32), "", 0.0, 0.0)
"""What a text is compared with that names no key, so that it takes as long as one that does."""


def may(key: AccessKey, scope: str) -> bool:
    """Whether a key has this scope."""
    scopes = key.scopes.split()
    return scope in scopes or "admin" in scopes


def who(key: AccessKey) -> str:
    """How a key is named in logs and in the audit."""
    return f"{key.name} ({key.id})"


def make_key(name: str, scopes: Collection[str], when: float) -> tuple[str, AccessKey]:
    """A new key: its text, which is kept nowhere, and what is kept of it."""
    if not isinstance(name, str) or not 0 < len(name.strip()) <= 100 or not name.isprintable():
        raise InputError(f"the name of a key must have 1 to 100 printable characters, not {validate.show(name)}")
    if not scopes:
        raise InputError(f"a key needs a scope: {', '.join(SCOPES)}")
    for scope in scopes:
        validate.one_of("scope", scope, SCOPES)
    public, secret, salt = secrets.token_hex(6), secrets.token_urlsafe(32), secrets.token_bytes(16)
    kept = " ".join(scope for scope in SCOPES if scope in scopes)
    return f"{PREFIX}{public}_{secret}", AccessKey(public, name.strip(), kept, salt, hashed(secret, salt), "", when, None)


def hashed(secret: str, salt: bytes) -> bytes:
    """What is kept of a secret."""
    return hashlib.blake2b(secret.encode(), digest_size=32, salt=salt, person=b"bridle-key").digest()


def recognise(text: str, keys: Mapping[str, AccessKey]) -> AccessKey | None:
    """The key that this text is, if it is one and was not revoked. How long it takes says nothing of how near a wrong one came."""
    public, _, secret = text[:LONGEST].removeprefix(PREFIX).partition("_")
    key = keys.get(public, NOBODY)
    same = hmac.compare_digest(hashed(secret, key.salt), key.digest)
    return key if same and key.revoked is None and text.startswith(PREFIX) and len(text) <= LONGEST else None


# --- the keys of a server -----------------------------------------------------------------------------------------------------------------

EVERY = 2.0
"""Seconds after which keys are read again: for so long a revoked key may still be used."""

AT_MOST_EVERY = 0.1
"""Seconds between two reads at least: requests with an unknown key wait for the next one, and share it."""

UNREAD = "the keys cannot be read from the database: try again in a moment"
UNKNOWN = "the key is missing, wrong or revoked: send the header Authorization: Bearer KEY (`bridle keys add` makes keys)"
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="bridle"'}


class Bucket:
    """A bucket of tokens that fills at a rate: each request takes one.

    >>> bucket = Bucket(rate=2.0, burst=3.0)
    >>> [bucket.take(0.0) for _ in range(4)]  # three at once, and then one each half second
    [0.0, 0.0, 0.0, 0.5]
    >>> bucket.take(0.5)
    0.0
    """

    __slots__ = ("burst", "rate", "then", "tokens")

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst, self.tokens, self.then = rate, burst, burst, 0.0

    def take(self, now: float) -> float:
        """Take a token at this time: 0, or how many seconds to wait for one (and none is taken)."""
        self.tokens = min(self.burst, self.tokens + (now - self.then) * self.rate)
        self.then = now
        if self.tokens >= 1.0:
            self.tokens -= 1.0
            return 0.0
        return (1.0 - self.tokens) / self.rate


class KeyRing:
    """Who may do what, and how often: the keys that the service knows at present.

    They are read from the database again and again, so that one that is revoked opens nothing more.
    """

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
            raise HTTPError(FORBIDDEN, f"the key {who(key)} lacks the scope {scope}; it has {key.scopes.replace(' ', ', ')}")
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
            raise HTTPError(NO_KEY, UNKNOWN, CHALLENGE)
        return key


def bearer(authorization: str | None) -> str:
    """The key that a request shows, "" where it shows none.

    >>> bearer("Bearer brk_1_2"), bearer("Basic abc"), bearer(None)
    ('brk_1_2', '', '')
    """
    kind, _, text = (authorization or "").partition(" ")
    return text if kind.lower() == "bearer" else ""
