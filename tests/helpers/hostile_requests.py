"""Hostile requests to a server: records made to hurt on every route, and bytes that are hardly HTTP. What is accepted is told to a twin.

Each client torments a session of its own, so that its requests come in one order. Nothing may be answered with an error of the server's,
and what was refused may have changed nothing: at the end each session is what its twin is, which another server has made from the accepted
requests alone.
"""

from __future__ import annotations

import json
import math
import random
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from bridle.database import open_store
from bridle.service.app import ROUTES
from bridle.service.auth import make_key
from helpers.postgres import free_port
from helpers.serving import ANYTIME, ROUND, ServerProcess, create, serving, state_of

NAMES = ("shop", "mill", "dock", "yard", "farm", "port")
PARTS = 4
GATES = {"march": {"budget": 1e9}, "ads": {"budget": 1e9, "rounds": 10**6}}
MOVING = [route for route in ROUTES if route.method == "POST"]
LOOKS = [route for route in ROUTES if route.method == "GET" and route.media == "application/json"]

ODD: list[object] = [
    None, True, False, 0, -1, 2**63, 10**40, 0.0, -0.0, 1e-320, 1e308, -1e308, 1e71, "", "1", "NaN", "x" * 5000, "\x00", "\ud83d", [], [[]],
    [[], []], [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [[1.0], [2.0]], [None, None], [1.0, None], ["1", "2"], {}, {"a": 1}, [[[1.0, 2.0]]],
    [1e200, 1e200], "march", {"march": 1.0}, {"march": -1.0}, "../../etc/passwd", "shop", {"kind": "observe"}, [{"kind": "forget"}],
]  # fmt: skip
SURPLUS = ("surplus", "__class__", "key", "kind", "ticket", "f", "events", "\ud83d", "")
BYTES = (
    b"\x00",
    b"\r\n",
    b"\n\n",
    b"\xff\xfe",
    b"%00",
    b"{" * 3000,
    b"[" * 3000,
    b'"',
    b"\\",
    b"-",
    b"1e999",
    b"NaN",
    b"Infinity",
    b"/*",
    b" ",
)
HEADERS = (
    b"Transfer-Encoding: chunked", b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: 99999999999999999999",
    b"Expect: 100-continue", b"Idempotency-Key: " + b"k" * 300, b"Idempotency-Key: again", b"Idempotency-Key: \xff", b"X-Request-Id: \x01",
    b"Host: elsewhere.example", b"Upgrade: websocket\r\nConnection: Upgrade", b"Connection: close",
    b"X: " + b"y" * 60_000, b": empty", b"Content-Encoding: gzip",
    b"Authorization: Bearer brk_x_y", b"Authorization: Bearer " + b"z" * 5000, b"Authorization: Basic abc", b"Cookie: " + b"c=1;" * 500,
)  # fmt: skip
ENDED = re.compile(rb"\r\n\r\n")
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)\r\n", re.IGNORECASE)
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


@dataclass
class HostileRun:
    """How many requests were sent, and how they ended; `wrong` says what should not have been."""

    requests: int = 0
    accepted: int = 0
    refused: int = 0
    unanswered: int = 0
    megabytes: list[float] = field(default_factory=list)
    """What the server's process held in memory, after each part."""
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def spoilt(rng: random.Random, value: object) -> object:
    """A body with a few things in it that are odd, at any depth."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        found = dict(value)
        for _ in range(rng.choice((1, 1, 2, 4))):
            name = rng.choice(list(found)) if rng.random() < 0.75 and found else rng.choice(SURPLUS)
            found[name] = spoilt(rng, found[name]) if name in found and rng.random() < 0.3 else rng.choice(ODD)
        return found
    if isinstance(value, list) and value and rng.random() < 0.5:
        return [spoilt(rng, each) if rng.random() < 0.3 else each for each in value] * rng.choice((1, 1, 3))
    return rng.choice(ODD)


def request(rng: random.Random, key: str, own: str) -> bytes:
    """A request about a session, most of them wrong in some way: what it says, its path, its headers, or its bytes."""
    told = rng.choice(MOVING if rng.random() < 0.85 else LOOKS)
    body: object = ROUND | {"g": [-0.1]} if told.path.endswith("/observe") else told.example
    if told.path == "/v1/sessions" and told.method == "POST":
        body = {"name": own, **ANYTIME, "gates": GATES}
    if rng.random() < 0.7:
        body = spoilt(rng, body)
    raw = b"" if told.method == "GET" else json.dumps(body).encode()
    if raw and rng.random() < 0.1:
        place = rng.randrange(len(raw))
        raw = raw[:place] + rng.choice(BYTES) + raw[place + rng.randrange(4) :]
    name = own if rng.random() < 0.95 else rng.choice(("none", "%2e%2e", "a%2Fb", "%00", "%ff", "x" * 300, "sh op"))
    path = told.path.replace("{name}", name)
    if told.method == "GET":
        path += rng.choice(("", "?last=-1", "?limit=1e9", "?offset=99999999999999999999", "?limit=%ff", "?last=5&last=6"))
    lines = [f"{told.method} {path} HTTP/1.1".encode(), b"Host: 127.0.0.1", f"Authorization: Bearer {key}".encode()]
    if told.method != "GET":
        lines.append(b"Content-Length: %d" % len(raw))
    if rng.random() < 0.15:
        lines.insert(rng.randrange(1, len(lines) + 1), rng.choice(HEADERS))
    whole = b"\r\n".join(lines) + b"\r\n\r\n" + raw
    if rng.random() < 0.1:
        for _ in range(rng.choice((1, 1, 3, 10))):
            place = rng.randrange(len(whole))
            whole = rng.choice(
                (
                    whole[:place] + bytes([rng.randrange(256)]) + whole[place + 1 :],
                    whole[:place] + rng.choice(BYTES) + whole[place:],
                    whole[:place] or whole,
                    whole[:place] + whole[place // 2 :],
                )
            )
    return whole


def is_whole(sent: bytes) -> bool:
    """Whether a request has all that its head announces, so that an answer will come."""
    ended = ENDED.search(sent)
    if ended is None:
        return False
    length = LENGTH.search(sent, 0, ended.end() - 2)
    chunked = b"chunked" in sent[: ended.end()].lower()
    return not chunked and (length is None or len(sent) - ended.end() >= min(int(length.group(1)), 1 << 30))


def ask(address: tuple[str, int], sent: bytes) -> bytes:
    """What a server answers to these bytes; nothing where it closes the connection without a word."""
    found = b""
    with socket.create_connection(address, timeout=10.0) as line:
        try:
            line.sendall(sent)
            if not is_whole(sent):
                line.shutdown(socket.SHUT_WR)
            while True:
                part = line.recv(65536)
                found = (found + part).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
                head, ended, body = found.partition(b"\r\n\r\n")
                length = LENGTH.search(head + b"\r\n")
                if not part or (ended and length and len(body) >= int(length.group(1))):
                    return found
        except TimeoutError:
            return b"HTTP/1.1 000 no answer within ten seconds"
        except ConnectionError:
            return found


NOISE = 10.0
"""Megabytes by which a server may grow after the first part: its caches fill, and what was freed is not all given back."""


def resident(process_id: int) -> float:
    """Megabytes that a process holds in memory."""
    pages = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def torment(run: HostileRun, url: str, twin: str, key: str, own: str, count: int, seed: int) -> None:
    """So many hostile requests about one session to the server at `url`; what it accepts goes to the one at `twin` too."""
    rng = random.Random(f"{seed} {own}")
    here, there = ((str(place.hostname), int(place.port or 0)) for place in (urlsplit(url), urlsplit(twin)))
    for _ in range(count):
        sent = request(rng, key, own)
        answer = ask(here, sent)
        status = [int(each) for each in STATUS.findall(answer)]
        good = any(200 <= each < 300 for each in status)
        with run.lock:
            run.requests += 1
            run.accepted += good
            run.refused += bool(status) and not good
            run.unanswered += not status
        if any(each == 0 or each >= 500 for each in status):
            run.wrong.append(f"{sent[:300]!r} was answered with {answer[:300]!r}")
        if good and not sent.startswith(b"GET "):
            again = ask(there, sent)
            if STATUS.findall(again)[:1] != STATUS.findall(answer)[:1]:
                run.wrong.append(f"{sent[:300]!r}: {answer[:200]!r}, and of the twin {again[:200]!r}")


def hostile_requests(folder: Path, count: int, seed: int = 0, own_process: bool = True) -> HostileRun:
    """So many hostile requests to a server, in a process of its own or in a thread; what came of them."""
    run, databases = HostileRun(), [f"sqlite:///{folder}/{name}.db" for name in ("main", "twin")]
    text, key = make_key("test", ["admin"], time.time())
    for database in databases:
        with open_store(database) as store:
            store.keys.add(key)
    with ExitStack() as stack:
        twin, process_id = stack.enter_context(serving(databases[1], insecure=False)), None
        if own_process:
            server = ServerProcess(databases[0], folder, free_port(), insecure=False)
            stack.callback(server.close)
            server.start()
            url, process_id = server.url, None if server.process is None else server.process.pid
        else:
            url = stack.enter_context(serving(databases[0], insecure=False)).url
        client = stack.enter_context(httpx.Client(base_url=url, headers={"Authorization": f"Bearer {text}"}, timeout=30.0))
        mirror = stack.enter_context(twin.client(text))
        for each in (client, mirror):
            for name in NAMES:
                create(each, name, gates=GATES)
        with ThreadPoolExecutor(len(NAMES)) as threads:
            for part in range(PARTS):
                each = math.ceil(count / len(NAMES) / PARTS)
                list(threads.map(lambda name: torment(run, url, twin.url, text, name, each, PARTS * seed + part), NAMES))  # noqa: B023
                if process_id is not None:
                    run.megabytes.append(resident(process_id))
        if run.megabytes and run.megabytes[-1] > run.megabytes[0] + NOISE:
            run.wrong.append(f"the server has grown from part to part: {run.megabytes} megabytes")
        for name in NAMES:
            if state_of(client, name) != state_of(mirror, name):
                run.wrong.append(f"session {name} is not what its twin is, which had nothing but what was accepted")
    return run
