"""What the live page is told: pictures that are made once for all who look, news alone, and an end when the server stops."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest

from bridle.comparisons.html_page import style_sheet
from bridle.core import Unavailable
from bridle.service import page
from bridle.service.errors import HTTPError
from bridle.service.page import LivePictures, frame, page_files

QUICK = 0.005


class Sessions:
    """A service with one session, which counts how often it is looked at."""

    def __init__(self, slow: float = 0.0) -> None:
        self.stopping, self.slow, self.round, self.made = asyncio.Event(), slow, 0, 0
        self.wrong: Exception | None = None

    async def overview(self):
        return [{"name": "one", "round": self.round}]

    async def portrait(self, name):
        self.made += 1
        await asyncio.sleep(self.slow)
        if self.wrong is not None:
            raise self.wrong
        return {"session": {"name": name, "round": self.round}}

    async def last_rounds(self, name, last):
        return [{"round": t} for t in range(max(1, self.round + 1 - last), self.round + 1)]


async def heard(stream, count):
    """So many events of a stream."""
    return [_read(await anext(stream)) for _ in range(count)]


def _read(event: bytes):
    assert event.startswith(b"data: ")
    assert event.endswith(b"\n\n")
    return json.loads(event[6:])


def test_a_picture_comes_at_once_and_then_what_is_new():
    async def watch():
        sessions = Sessions()
        sessions.round = 400
        async with aclosing(await LivePictures(sessions, QUICK).look("one")) as stream:
            (first,) = await heard(stream, 1)
            sessions.round = 402
            (second,) = await heard(stream, 1)
        return first, second

    first, second = asyncio.run(watch())
    assert [each["round"] for each in first["rounds"]] == list(range(401 - page.FIRST_ROUNDS, 401))
    assert [each["round"] for each in second["rounds"]] == [401, 402]
    assert second["session"]["round"] == 402
    assert second["time"] >= first["time"]


def test_nothing_is_said_while_nothing_is_new_but_the_line_is_kept(monkeypatch):
    monkeypatch.setattr(page, "SILENCE", 3 * QUICK)

    async def watch():
        sessions = Sessions()
        async with aclosing(await LivePictures(sessions, QUICK).look(None)) as stream:
            await heard(stream, 1)
            return await anext(stream)

    assert asyncio.run(watch()) == b": nothing new\n\n"


def test_many_who_look_share_a_picture_and_nothing_is_kept_for_nobody():
    async def watch():
        sessions = Sessions(slow=0.01)
        pictures = LivePictures(sessions, 60.0)
        streams = [await pictures.look("one") for _ in range(20)]
        await asyncio.gather(*(heard(stream, 1) for stream in streams))
        looked = pictures.streams, sessions.made
        for stream in streams:
            await stream.aclose()
        return looked, pictures.streams, pictures._kept, pictures._making

    assert asyncio.run(watch()) == ((20, 1), 0, {}, {})


def test_a_picture_that_takes_long_is_made_less_often():
    async def watch(slow):
        sessions = Sessions(slow)
        async with aclosing(await LivePictures(sessions, QUICK).look("one")) as stream:
            for _ in range(30):
                sessions.round += 1
                await heard(stream, 1)
        return sessions.made

    assert asyncio.run(watch(0.05)) < 15 < 25 < asyncio.run(watch(0.0))


def test_streams_end_when_the_server_stops():
    async def watch():
        sessions = Sessions()
        stream = await LivePictures(sessions, 60.0).look("one")
        await heard(stream, 1)
        asyncio.get_running_loop().call_soon(sessions.stopping.set)
        return [event async for event in stream]

    assert asyncio.run(watch()) == []


def test_what_is_wrong_is_said_before_a_stream_begins_and_ends_one_that_has():
    async def watch():
        sessions = Sessions()
        sessions.wrong = HTTPError(404, "there is no session 'one'")
        pictures = LivePictures(sessions, QUICK)
        with pytest.raises(HTTPError, match="there is no session"):
            await pictures.look("one")
        sessions.wrong = None
        stream = await pictures.look("one")
        await heard(stream, 1)
        sessions.wrong, sessions.round = HTTPError(503, "the database is in trouble"), 5
        return [event async for event in stream], pictures.streams

    assert asyncio.run(watch()) == ([], 0)


def test_who_may_look_no_more_sees_no_more():
    async def watch():
        sessions, asked = Sessions(), []

        async def admit():
            asked.append(sessions.round)
            if len(asked) > 2:
                raise HTTPError(401, "the key is missing, wrong or revoked")

        stream = await LivePictures(sessions, QUICK).look("one", admit)
        for _ in range(2):
            sessions.round += 1
            await heard(stream, 1)
        sessions.round += 1
        return [event async for event in stream], len(asked)

    assert asyncio.run(watch()) == ([], 3)


def test_no_more_may_look_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(page, "MOST_STREAMS", 2)

    async def watch():
        pictures = LivePictures(Sessions(), QUICK)
        streams = [await pictures.look(None) for _ in range(2)]
        await asyncio.gather(*(heard(stream, 1) for stream in streams))
        with pytest.raises(Unavailable, match="2 pages are open already"):
            await pictures.look(None)
        await streams[0].aclose()
        async with aclosing(await pictures.look(None)) as stream:
            await heard(stream, 1)
        await streams[1].aclose()

    asyncio.run(watch())


def test_the_pages_files_are_whole_and_share_the_style_of_reports():
    files = page_files()
    assert files["live.css"].content.decode().startswith(style_sheet())
    assert b"bridlePage" in files["live.js"].content
    assert b"$" not in frame().content
    for name in ("live.css", "live.js", "icon.svg"):
        assert f'"page/{name}"'.encode() in frame().content
    for file in (frame(), *files.values()):
        assert b"http://" not in file.content.replace(b"http://www.w3.org/", b"")
        assert b"https://" not in file.content
    assert b"<script>" not in frame().content
    assert b"style=" not in frame().content
