"""The live page: its files, and what they are told of the service.

One frame, one style sheet (that of the reports, and a little more) and one script, all from this server. They hold nothing of any session,
so that they need no key; what they show comes from ``/v1/events``, which does.

What the live page is told: a picture of all sessions, or of one, about once a second, as server-sent events.

However many look at a session, its picture is made once and shared; nobody who looks is waited for, and a picture that takes long is made
less often. A stream ends when the server stops, so that the server need not wait for it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from html import escape
from importlib.resources import files as resources
from string import Template
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import to_builtins
from starlette.responses import Response, StreamingResponse

from bridle import __version__
from bridle.comparisons.html_page import read_template, style_sheet
from bridle.core import Unavailable
from bridle.service.calls import Call
from bridle.service.errors import CONFLICT, ELSEWHERE, NOT_FOUND, HTTPError, unavailable
from bridle.service.logs import log

if TYPE_CHECKING:
    from bridle.service.service import Service

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a page of the service may load: what comes from the service, and nothing else."""


class PageFile(NamedTuple):
    """A file as it is sent."""

    content: bytes
    kind: str


def _own(name: str) -> str:
    return (resources("bridle.service") / "templates" / name).read_text(encoding="utf-8")


@cache
def frame() -> PageFile:
    """The page at /."""
    return PageFile(Template(_own("live.html")).substitute(version=escape(__version__)).encode(), "text/html; charset=utf-8")


@cache
def page_files() -> dict[str, PageFile]:
    """What the frame asks for, by name, under /page/."""
    script = read_template("shared.js").template + _own("drawing.js") + _own("live.js")
    return {
        "live.css": PageFile((style_sheet() + _own("live.css")).encode(), "text/css; charset=utf-8"),
        "live.js": PageFile(script.encode(), "text/javascript; charset=utf-8"),
        "icon.svg": PageFile(_own("icon.svg").encode(), "image/svg+xml"),
    }


# --- handlers -----------------------------------------------------------------------------------------------------------------------------


async def show_page(call: Call) -> Response:
    """GET /."""
    file = frame()
    return Response(file.content, media_type=file.kind, headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"})


async def show_file(call: Call) -> Response:
    """GET /page/{file}."""
    file = page_files().get(str(call.path_params["file"]))
    if file is None:
        raise HTTPError(NOT_FOUND, "the page has no such file")
    return Response(file.content, media_type=file.kind, headers={"Cache-Control": "no-cache"})


async def events(call: Call) -> Response:
    """GET /v1/events: pictures of all sessions, or of the one that ``session=`` names, until the server stops or nobody looks."""
    pictures: LivePictures = call.app.pictures
    ring, told = call.service.ring, call.headers.get("authorization")
    try:
        stream = await pictures.look(call.query_params.get("session"), lambda: ring.admit(told, "read"))
    except Unavailable as full:
        raise unavailable(str(full), 10) from None
    except HTTPError as turned:
        if turned.status != ELSEWHERE:
            raise
        raise HTTPError(CONFLICT, f"{turned.sentence}: its page is there") from None  # a browser would not send the key to another server
    return StreamingResponse(stream, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


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


class KeptPicture(NamedTuple):
    """A picture that was made, when, and how long that took."""

    picture: Picture
    made: float
    took: float


class LivePictures:
    """Makes pictures of a service, for whoever looks."""

    def __init__(self, watched: Service, period: float = PERIOD) -> None:
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

        `admit` is asked before every picture, and raises `HTTPError` once who looks may look no more.
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
        except HTTPError as turned:  # the key was revoked, the session has gone elsewhere, ...: the page asks again, and is told
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
                picture = await self._watched.portrait(name) if name else {"sessions": to_builtins(await self._watched.overview())}
                kept = self._kept[name] = KeptPicture(picture, monotonic(), monotonic() - begun)
            return kept.picture
