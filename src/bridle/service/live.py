"""What the live page is told: a picture of all sessions, or of one, about once a second, as server-sent events.

However many look at a session, its picture is made once and shared; nobody who looks is waited for, and a picture that takes long is made
less often. A stream ends when the server stops, so that the server need not wait for it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import Any, NamedTuple, Protocol, TypeAlias

from bridle.core import Unavailable
from bridle.service.errors import Turned
from bridle.service.logs import log

PERIOD = 1.0
"""Seconds between two pictures."""
SHARE = 0.1
"""At most this share of the time goes into making the pictures of one session."""
MOST_STREAMS = 100
"""So many may look at the same time."""
FIRST_ROUNDS = 300
"""So many of the last rounds come with the first picture of a session; later ones bring what is new."""
SILENCE = 15.0
"""After so many seconds without news a comment keeps the line open."""

Picture: TypeAlias = dict[str, Any]
"""A JSON object that the page draws."""


class Watched(Protocol):
    """What the pictures are made of: the service."""

    stopping: asyncio.Event

    async def overview(self) -> list[Picture]:
        """Every session as the list of sessions has it."""
        ...

    async def portrait(self, name: str) -> Picture:
        """One session: ``session`` as the list has it, ``certificate``, ``alarms`` and ``report``, each null where there is none."""
        ...

    async def last_rounds(self, name: str, last: int) -> list[Picture]:
        """The last rounds that were played of a session, the newest last."""
        ...


class KeptPicture(NamedTuple):
    """A picture that was made, when, and how long that took."""

    picture: Picture
    made: float
    took: float


class LivePictures:
    """Makes pictures of a service, for whoever looks."""

    def __init__(self, watched: Watched, period: float = PERIOD) -> None:
        self._watched, self._period = watched, period
        self._kept: dict[str | None, KeptPicture] = {}
        self._making: dict[str | None, asyncio.Lock] = {}
        self._looking: dict[str | None, int] = {}

    @property
    def streams(self) -> int:
        """How many look."""
        return sum(self._looking.values())

    async def look(self, name: str | None, admit: Callable[[], Awaitable[object]] | None = None) -> AsyncIterator[bytes]:
        """The events for one who looks at all sessions, or at the one of this name, which must be there.

        `admit` is asked before every picture, and raises `Turned` once who looks may look no more.
        """
        if self.streams >= MOST_STREAMS:
            raise Unavailable(f"{MOST_STREAMS} pages are open already: close one, or try again later")
        await self._picture(name)
        return self._events(name, admit)

    async def _events(self, name: str | None, admit: Callable[[], Awaitable[object]] | None) -> AsyncIterator[bytes]:
        self._looking[name] = self._looking.get(name, 0) + 1
        try:
            last, latest, spoken = "", -1, monotonic()
            while not self._watched.stopping.is_set():
                if admit is not None:
                    await admit()
                picture = await self._picture(name)
                if name is not None:
                    rounds = await self._watched.last_rounds(name, FIRST_ROUNDS)
                    picture = picture | {"rounds": [each for each in rounds if each["round"] > latest]}
                    latest = max([latest, *(each["round"] for each in rounds)])
                text = json.dumps(picture, allow_nan=False, separators=(",", ":"))
                if text != last:
                    last, spoken = text, monotonic()
                    yield f'data: {text[:-1]},"time":{spoken:.3f}}}\n\n'.encode()
                elif monotonic() - spoken > SILENCE:
                    spoken = monotonic()
                    yield b": nothing new\n\n"
                await self._rest(self._period)
        except Turned as turned:  # the key was revoked, the session has gone elsewhere, ...: the page asks again, and is told
            log("a page is told no more", session=name, problem=turned.sentence)
        finally:
            self._looking[name] -= 1
            if not self._looking[name]:
                del self._looking[name]
                self._kept.pop(name, None)
                self._making.pop(name, None)

    async def _rest(self, seconds: float) -> None:
        """Wait, but not for longer than the server runs."""
        try:
            await asyncio.wait_for(self._watched.stopping.wait(), seconds)
        except TimeoutError:
            return

    async def _picture(self, name: str | None) -> Picture:
        """A picture that is fresh enough: whoever comes first makes it, the others wait for that."""
        async with self._making.setdefault(name, asyncio.Lock()):
            kept = self._kept.get(name)
            if kept is None or monotonic() - kept.made >= max(0.5 * self._period, kept.took / SHARE):
                begun = monotonic()
                picture = {"sessions": await self._watched.overview()} if name is None else await self._watched.portrait(name)
                kept = self._kept[name] = KeptPicture(picture, monotonic(), monotonic() - begun)
            return kept.picture
