"""Clients without a key that send too much, or too little, too slowly, on too many connections: the others are served all the same."""

from __future__ import annotations

import json
import socket
import sqlite3
import ssl
import struct
import subprocess
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from urllib.parse import urlsplit

import httpx
import pytest

from bridle.service import auth
from bridle.service.config import ServiceConfig, ServiceLimits
from bridle.service.connections import FIELDS, SMALL_PIECE
from helpers.postgres import free_port
from helpers.serving import ROUND, Server, ServerProcess, create, new_key, serving

pytestmark = pytest.mark.slow  # servers of their own

HEADER, BODY_LIMIT, FILES = 8_000, 200_000, 128
GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
WHOLE = GET + b"\r\n"
FILE = b"GET /page/live.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def post(key, body, *, length=None, path="/v1/sessions/shop/observe"):
    """A request, or as much of it as `body` has of `length` bytes; chunked where that is 0."""
    size = b"Transfer-Encoding: chunked" if length == 0 else b"Content-Length: %d" % (len(body) if length is None else length)
    allowed = b"" if key is None else b"Authorization: Bearer " + key.encode() + b"\r\n"
    return b"POST " + path.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n" + allowed + size + b"\r\n\r\n" + body


@contextmanager
def connected(url, seconds=10.0):
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=seconds) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield line


def until_closed(line):
    """What comes until the server closes; a reset is an end too, a timeout is none."""
    found = b""
    try:
        while part := line.recv(65536):
            found += part
    except ConnectionError:
        pass
    return found


def one_answer(line):
    """The status and the body of the next answer."""
    found = b""
    while b"\r\n\r\n" not in found:
        part = line.recv(65536)
        assert part, found
        found += part
    head, _, body = found.partition(b"\r\n\r\n")
    length = next(int(each.split(b":")[1]) for each in head.lower().split(b"\r\n") if each.startswith(b"content-length:"))
    while len(body) < length:
        body += line.recv(65536)
    return int(head.split()[1]), body


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A server with low limits, and a key."""
    db = f"sqlite:///{tmp_path_factory.mktemp('connections')}/run.db"
    key = new_key(db, "admin")
    limits = ServiceLimits(header=HEADER, body=BODY_LIMIT, deadline=1.0)
    with serving(db, insecure=False, limits=limits) as server:
        with server.client(key) as client:
            create(client)
        yield server, key


# --- too much -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "endless",
    [
        b"GET /" + b"a" * 20_000,
        GET + b"X-Endless: " + b"a" * 20_000,
        GET + b"a" * 20_000,
        GET + b"a: b\r\n" * 5_000,
        b"\r\n" * 10_000,
    ],
    ids=["path", "value", "name", "lines", "nothing"],
)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_header_that_is_too_long_is_431(place, endless, before):
    server, _ = place
    with connected(server.url) as line:
        for _ in range(before):
            line.sendall(WHOLE)
            assert one_answer(line)[0] == 200
        with suppress(ConnectionError):
            for i in range(0, len(endless), 1000):  # in parts, as from far away
                line.sendall(endless[i : i + 1000])
                time.sleep(0.001)
        found = until_closed(line)
        assert found.startswith(b"HTTP/1.1 431 "), found
        most = f"at most {FIELDS} fields" if endless.startswith(GET + b"a: b") else f"at most {HEADER} bytes"
        assert most in json.loads(found.partition(b"\r\n\r\n")[2])["error"]


def test_the_limit_on_a_header_is_exact(place):
    server, _ = place
    with connected(server.url) as line:
        line.sendall(GET + b"X: " + b"a" * (HEADER - len(GET) - 8) + b"\r\n\r\n")
        assert one_answer(line)[0] == 200
        line.sendall(GET + b"X: " + b"a" * (HEADER - len(GET) - 6) + b"\r\n\r\n")
        assert until_closed(line).startswith(b"HTTP/1.1 431 ")


def test_the_limit_on_fields_is_exact(place):
    server, _ = place
    with connected(server.url) as line:
        line.sendall(GET + b"a: b\r\n" * (FIELDS - 1) + b"\r\n")
        assert one_answer(line)[0] == 200
        line.sendall(GET + b"a: b\r\n" * FIELDS + b"\r\n")
        assert until_closed(line).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("garbage", [b"GARBAGE\0\r\n\r\n", "GET /café HTTP/1.1\r\nHost: x\r\n\r\n".encode()], ids=["line", "path"])
def test_what_is_not_http_is_400_but_never_in_the_place_of_another_answer(place, garbage):
    server, key = place
    with connected(server.url) as line:
        line.sendall(garbage)
        found = until_closed(line)
        assert found.startswith(b"HTTP/1.1 400 "), found
        assert "not valid HTTP" in json.loads(found.partition(b"\r\n\r\n")[2])["error"]
    with connected(server.url) as line:
        line.sendall(post(key, json.dumps(ROUND).encode()) + garbage)
        assert b"HTTP/1.1 400" not in until_closed(line)


@pytest.mark.parametrize(
    ("body", "status"), [(b"no size\r\n", 400), (b"1;" + b"a" * 9_000, 431), (b"1\r\n{\r\n0\r\n" + b"a: b\r\n" * FIELDS, 431)]
)
@pytest.mark.parametrize("known", [True, False])
def test_a_request_that_breaks_off_in_its_body_is_told_why_once(place, known, body, status, caplog):
    server, key = place
    with connected(server.url) as line:
        line.sendall(post(key if known else None, body, length=0))
        found = until_closed(line)
        assert [int(each[:3]) for each in found.split(b"HTTP/1.1 ")[1:]] == [status]
        assert json.loads(found.partition(b"\r\n\r\n")[2])["error"]
    with server.client(key) as client:
        assert client.get("/healthz").status_code == 200
    assert [each.getMessage() for each in caplog.records if each.exc_info] == []


def test_a_stream_is_not_followed_by_a_second_answer(place):
    server, key = place
    with connected(server.url) as line:
        line.sendall(post(key, b"", length=0, path="/v1/events").replace(b"POST", b"GET"))
        assert line.recv(65_536).startswith(b"HTTP/1.1 200 ")
        line.sendall(b"no size\r\n")
        assert b"HTTP/1.1" not in until_closed(line)


def connection_of(server, line):
    """The server's side of a connection."""
    me = line.getsockname()
    return next(each for each in list(server.server.server_state.connections) if each.client == me)


def test_trailers_are_read_and_not_kept(place):
    server, key = place
    body = json.dumps(ROUND).encode()
    with connected(server.url) as line:
        for _ in range(2):
            line.sendall(post(key, b"%x\r\n%s\r\n0\r\nX-Late: 1\r\nX-Later: 2\r\n\r\n" % (len(body), body), length=0))
            assert one_answer(line)[0] == 200
        assert {name for name, _ in connection_of(server, line).cycle.scope["headers"]} == {b"host", b"authorization", b"transfer-encoding"}


@pytest.mark.parametrize(("first", "piece"), [(b"", b"ab:\r\n" * 1_000), (b"X: ", b"a" * 10_000)], ids=["lines", "value"])
def test_endless_trailers_are_not_paid_for_by_a_large_body(place, first, piece):
    server, _ = place
    size = 150_000
    with connected(server.url) as line:
        line.sendall(post(None, b"%x\r\n" % size + b" " * size + b"\r\n0\r\n" + first, length=0))
        assert one_answer(line)[0] == 401
        mine, parsed = connection_of(server, line), 0
        while mine.received < size:  # the answer does not wait for the body
            assert not mine.transport.is_closing()
            time.sleep(0.01)
        parse = mine.parse

        def counting():
            nonlocal parsed
            parsed += len(mine.ahead)
            parse()
            parsed -= len(mine.ahead)

        mine.parse = counting
        pour(line, piece)
        assert len(mine.headers) == 2
        assert 0 < parsed < 2 * HEADER


@pytest.mark.parametrize("trailer", [b"", b"X: " + b"a" * (HEADER - 1_000) + b"\r\n"], ids=["no trailer", "trailer"])
def test_a_header_and_a_trailer_may_have_that_much_each(place, trailer):
    server, key = place
    body = json.dumps(ROUND).encode()
    head = post(key, b"", length=0)
    head = head[:-4] + b"\r\nX: " + b"a" * (HEADER - len(head) - 5) + b"\r\n\r\n"
    assert len(head) == HEADER
    with connected(server.url) as line:
        for _ in range(2):
            for part in (head, b"%x\r\n" % len(body), body, b"\r\n0\r\n", trailer, b"\r\n"):
                line.sendall(part)
                time.sleep(0.05)
            assert one_answer(line)[0] == 200


def pour(line, piece):
    """How many bytes the server takes before it closes; what fits into the buffers of the system counts too."""
    sent = 0
    with suppress(ConnectionError):
        while sent < 100_000_000:
            line.sendall(piece)
            sent += len(piece)
    return sent


@pytest.mark.parametrize(
    ("first", "piece"),
    [
        (b"1;", b"a" * 10_000),
        (b"", b"1;" + b"a" * 4_000 + b"\r\n{\r\n"),
        (b"", b"1;a=b\r\n{\r\n" * 1_000),
        (b"1\r\n{\r\n0\r\nX: ", b"a" * 10_000),
    ],
    ids=["extension", "extensions", "chunks", "trailer"],
)
@pytest.mark.parametrize("known", [True, False])
def test_what_frames_a_body_has_a_limit_too(place, first, piece, known):
    server, key = place
    with connected(server.url) as line:
        line.sendall(post(key if known else None, first, length=0))
        assert pour(line, piece) < 20_000_000
    with server.client(key) as client:
        assert client.get("/healthz").status_code == 200


def test_a_body_in_chunks_of_one_byte_is_read(place):
    server, key = place
    body = json.dumps(ROUND).encode() + b" " * HEADER
    with connected(server.url) as line:
        line.sendall(post(key, b"".join(b"1\r\n%c\r\n" % each for each in body) + b"0\r\n\r\n", length=0))
        assert one_answer(line)[0] == 200


@pytest.mark.parametrize("length", [0, 10**12])
@pytest.mark.parametrize(
    ("path", "known", "status"),
    [("/v1/sessions/shop/observe", False, 401), ("/v1/sessions/shop/observe", True, 413), ("/healthz", False, 405)],
)
def test_an_endless_body_is_not_read_on(place, length, path, known, status):
    server, key = place
    piece = b" " * 10_000 if length else b"2710\r\n" + b" " * 10_000 + b"\r\n"
    with connected(server.url) as line:
        line.sendall(post(key if known else None, b"", length=length, path=path))
        answered = one_answer(line)[0] if length or not known else 0
        assert pour(line, piece) < 20_000_000
        assert answered in (0, status)
    with server.client(key) as client:
        assert client.get("/healthz").status_code == 200


def test_a_refused_request_whose_body_comes_later_keeps_its_connection(place):
    server, key = place
    body = json.dumps(ROUND).encode()
    with connected(server.url) as line:
        line.sendall(post(None, b"", length=len(body)))
        assert one_answer(line)[0] == 401
        line.sendall(body)
        line.sendall(post(key, body))
        assert one_answer(line)[0] == 200


def test_the_body_of_a_refused_request_is_not_kept(place):
    server, _ = place
    with connected(server.url) as line:
        line.sendall(post(None, b" " * 60_000))
        assert one_answer(line)[0] == 401
        assert [len(each.cycle.body) for each in list(server.server.server_state.connections) if each.client == line.getsockname()] == [0]


def test_the_rest_of_a_request_that_was_sent_ahead_is_read(place):
    """Its first part is parsed only when the requests before it are answered, and the server reads on then."""
    server, _ = place
    long = GET + b"X: " + b"a" * 3_000
    with connected(server.url) as line:
        for _ in range(20):
            line.sendall(WHOLE * 2 + long)
            time.sleep(0.02)
            line.sendall(b"\r\n\r\n")
            found = b""
            while found.count(b"HTTP/1.1 200") < 3 or not found.endswith(b"}"):
                found += line.recv(65_536)


def test_requests_sent_ahead_are_answered_in_order(place):
    server, _ = place
    with connected(server.url) as line:
        line.sendall((WHOLE + b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") * 50 + GET + b"Connection: close\r\n\r\n")
        found = until_closed(line)
        assert [int(each[:3]) for each in found.split(b"HTTP/1.1 ")[1:]] == [200, 404] * 50 + [200]


@pytest.mark.parametrize("request_", [b"GET / HTTP/1.1\r\n\r\n", FILE], ids=["page", "file"])
def test_requests_sent_ahead_without_end_do_not_pile_up(place, request_):
    """Whoever sends and reads nothing is not read on, and is dropped like anybody else who reads nothing."""
    server, key = place
    connections, most = server.server.server_state.connections, [0, 0]
    with connected(server.url) as line:
        me, begun = line.getsockname(), time.monotonic()
        line.setblocking(False)
        with suppress(ConnectionError):
            while any(each.client == me for each in list(connections)) or time.monotonic() < begun + 0.5:
                assert time.monotonic() - begun < 30.0
                with suppress(BlockingIOError):
                    for _ in range(10):
                        line.send(request_ * 1_000)
                for each in list(connections):
                    if each.client == me:
                        most = [max(most[0], len(each.unanswered)), max(most[1], len(each.ahead))]
                time.sleep(0.001)
        with server.client(key) as client:
            assert client.post("/v1/sessions/shop/observe", json=ROUND).status_code == 200
    assert most[0] <= 60  # as many as fit into the piece of a header that is parsed at once
    assert 0 < most[1] < 2_000_000  # what the system hands over at once, and no more


@pytest.mark.parametrize("size", [1, 60_000])
def test_requests_sent_ahead_behind_a_body_do_not_pile_up(place, size):
    """The end of the header and the body come as one piece with thousands of requests."""
    server, _ = place
    first = post(None, b"", length=size)
    first = first[:-4] + b"\r\nX: " + b"a" * (SMALL_PIECE - len(first) - 5) + b"\r\n\r\n"
    assert len(first) == SMALL_PIECE
    with connected(server.url) as line:
        line.sendall(WHOLE)
        assert one_answer(line)[0] == 200
        mine, most = connection_of(server, line), 0
        line.sendall(first + b"x" * size + b"GET /openapi.json HTTP/1.1\r\n\r\n" * 2_000)
        until = time.monotonic() + 2.0
        while time.monotonic() < until:
            most = max(most, len(mine.unanswered))
        assert 0 < most <= 60


def test_requests_sent_ahead_do_not_pile_up_if_their_answers_are_read(place):
    server, _ = place
    connections, most, until = server.server.server_state.connections, 0, time.monotonic() + 3.0
    with connected(server.url) as line:
        me = line.getsockname()
        line.setblocking(False)
        while time.monotonic() < until:
            with suppress(BlockingIOError):
                line.send(WHOLE * 10_000)
            with suppress(BlockingIOError):
                assert line.recv(1_000_000)
            most = max([most, *(len(each.ahead) for each in list(connections) if each.client == me)])
    assert 0 < most < 2_000_000


def test_a_connection_that_is_reset_ends_all_of_its_requests(place, caplog):
    """No request writes on to a connection that is gone: that would be a traceback each."""
    server, _ = place
    place_ = urlsplit(server.url)
    for _ in range(30):
        with socket.socket() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset when it is closed
            line.connect((place_.hostname, place_.port))
            line.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 60)
            time.sleep(0.02)
    assert httpx.get(f"{server.url}/healthz").status_code == 200
    assert [each.getMessage() for each in caplog.records if each.exc_info] == []


# --- too slow -----------------------------------------------------------------------------------------------------------------------------


def drip(line, drop):
    """Seconds until the server closes, while `drop` is sent to it again and again."""
    begun = time.monotonic()
    with suppress(ConnectionError):
        while time.monotonic() - begun < 20.0:
            try:
                if not line.recv(65536):
                    break
            except TimeoutError:
                line.sendall(drop)
    return time.monotonic() - begun


@pytest.mark.covering(1)
@pytest.mark.parametrize("first", [b"", GET, WHOLE], ids=["fresh", "half-sent", "answered"])
@pytest.mark.parametrize("drop", [b"", b"\r\n", b"X: y\r\n"], ids=["silent", "blank", "header"])
def test_a_header_has_a_deadline(place, first, drop):
    server, _ = place
    if first == GET and drop == b"\r\n":
        drop = b"a"
    server.server.config.timeout_keep_alive = 1
    with connected(server.url, 0.1) as line:
        line.sendall(first)
        assert drip(line, drop) < 10.0


@pytest.mark.parametrize("known", [True, False])
def test_a_body_has_a_deadline(place, known):
    server, key = place
    with connected(server.url, 0.1) as line:
        line.sendall(post(key if known else None, b"{", length=1000))
        assert 0.5 < drip(line, b" ") < 10.0


@pytest.mark.parametrize("reads", [True, False])
def test_an_answer_must_be_read(place, reads):
    server, _ = place
    address, connections = urlsplit(server.url), server.server.server_state.connections
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        line.settimeout(10.0)
        line.connect((address.hostname, address.port))
        line.sendall(FILE * 3_000)
        me, until = line.getsockname(), time.monotonic() + 6.0  # six deadlines; reading nothing is allowed for three
        while time.monotonic() < until:
            time.sleep(0.05)
            if reads:
                assert line.recv(65_536)  # about a megabyte per second
        assert any(each.client == me for each in list(connections)) == reads


def test_a_last_answer_must_be_read_too(tmp_path):
    """The server has closed its side by then, and waits only for what is left to be read."""
    body = json.dumps({"events": [{"kind": "decide"}] * 800}).encode()
    with serving(f"sqlite:///{tmp_path}/run.db", limits=ServiceLimits(deadline=0.5)) as server:
        with server.client() as client:
            create(client, domain={"kind": "box", "low": 0.0, "high": 1.0 / 3.0, "dim": 1_000})
        with socket.socket() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
            line.settimeout(10.0)
            line.connect((urlsplit(server.url).hostname, urlsplit(server.url).port))
            line.sendall(post(None, body, path="/v1/sessions/shop/batch").replace(b"Host:", b"Connection: close\r\nHost:"))
            assert line.recv(1_000).startswith(b"HTTP/1.1 200")
            mine, until = connection_of(server, line), time.monotonic() + 10.0
            assert mine.transport.get_write_buffer_size() > 1_000_000
            while mine in server.server.server_state.connections:
                assert time.monotonic() < until
                time.sleep(0.05)


def test_a_request_that_waits_for_the_one_before_it_is_not_late(tmp_path):
    """Its rest has come and is not parsed yet; the first waits for somebody who writes the database."""
    db = tmp_path / "run.db"
    with serving(f"sqlite:///{db}", limits=ServiceLimits(deadline=0.5)) as server, server.client() as client:
        create(client)
        body = json.dumps(ROUND).encode()
        with closing(sqlite3.connect(db, isolation_level=None, check_same_thread=False)) as other, connected(server.url) as line:
            other.execute("BEGIN IMMEDIATE")
            end = threading.Timer(2.5, other.execute, ["ROLLBACK"])
            end.start()
            line.sendall(post(None, body) + post(None, body + b" " * 3_000))
            found = b""
            while found.count(b"HTTP/1.1 200") < 2:
                part = line.recv(65_536)
                assert part, found
                found += part
            end.join()


def test_a_body_that_keeps_coming_has_no_deadline_if_its_request_is_refused(place):
    server, key = place
    with connected(server.url) as line:
        line.sendall(post(None, b"", length=150_000))
        assert one_answer(line)[0] == 401
        for _ in range(25):  # 60 KB a second, for 2.5 s: longer than the deadline
            line.sendall(b" " * 6_000)
            time.sleep(0.1)
        line.sendall(post(key, json.dumps(ROUND).encode()))
        assert one_answer(line)[0] == 200


def test_a_stream_and_a_body_that_keeps_coming_have_no_deadline(place):
    server, key = place
    body = json.dumps({"events": []}).encode() + b" " * 150_000
    with server.client(key) as client, client.stream("GET", "/v1/events") as stream, connected(server.url) as line:
        pictures = (each for each in stream.iter_lines() if each.startswith("data:"))
        next(pictures)
        line.sendall(post(key, b"", length=len(body), path="/v1/sessions/shop/batch"))
        for i in range(0, len(body), 6_000):  # 60 KB a second, for 2.5 s: longer than the deadline
            line.sendall(body[i : i + 6_000])
            time.sleep(0.1)
        assert one_answer(line)[0] == 200
        assert client.post("/v1/sessions/shop/observe", json=ROUND).status_code == 200
        next(pictures)  # of the session as it is now


# --- too many -----------------------------------------------------------------------------------------------------------------------------

ATTACKS = {"silent": b"", "header": GET, "body": post(None, b"{", length=100), "idle": WHOLE, "unread": FILE * 20}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """`bridle serve` with few file descriptors and long deadlines: only the limit on connections can help."""
    folder = tmp_path_factory.mktemp("narrow")
    (folder / "bridle.toml").write_text("[limits]\ndeadline = 300\n")
    db, port = f"sqlite:///{folder}/run.db", free_port()
    key = new_key(db, "admin")
    server = ServerProcess(db, folder, port, "--config", "bridle.toml", insecure=False, files=FILES)
    try:
        server.start()
        with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=30.0) as client:
            create(client)
        yield server, key
        server.stop()
    finally:
        server.close()


@contextmanager
def attacked(url, sends, count):
    """So many connections that are held, opened again when they are dropped, until the block ends."""
    lines, stop, place = [], threading.Event(), urlsplit(url)

    def attack():
        while not stop.is_set():
            with suppress(OSError):
                line = socket.socket()
                lines.append(line)
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                line.settimeout(1.0)
                line.connect((place.hostname, place.port))
                line.sendall(sends)
            if len(lines) > count:
                time.sleep(0.005)
                lines.pop(0).close()

    thread = threading.Thread(target=attack)
    thread.start()
    try:
        until = time.monotonic() + 30.0
        while len(lines) < count and time.monotonic() < until:
            time.sleep(0.02)
        assert len(lines) >= count
        yield
    finally:
        stop.set()
        thread.join()
        for line in lines:
            line.close()


@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_connections_without_a_key_shut_nobody_out(narrow, attack):
    server, key = narrow
    body = json.dumps(ROUND).encode()
    with connected(server.url) as begun, httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {key}"}) as client:
        begun.sendall(post(key, body[:10], length=len(body)))
        client.get("/healthz")
        with attacked(server.url, ATTACKS[attack], 3 * FILES):
            for _ in range(5):
                assert httpx.get(f"{server.url}/healthz", timeout=5.0).status_code == 200
                answer = httpx.post(f"{server.url}/v1/sessions/shop/observe", json=ROUND, headers=client.headers, timeout=5.0)
                assert answer.status_code == 200
                time.sleep(0.1)
            begun.sendall(body[10:])
            assert one_answer(begun)[0] == 200  # it was in the middle of its request all the time


@pytest.mark.parametrize("sends", [b"", GET, WHOLE, FILE * 1_000], ids=["silent", "half-sent", "idle", "unread"])
def test_the_connection_that_has_waited_longest_makes_room(tmp_path, sends):
    limits = ServiceLimits(connections=3, deadline=300.0)
    with serving(f"sqlite:///{tmp_path}/run.db", limits=limits) as server, ExitStack() as stack:
        server.server.config.timeout_keep_alive = 300
        time.sleep(0.3)  # whoever asked whether it is ready has gone
        place = urlsplit(server.url)
        lines = [stack.enter_context(socket.socket()) for _ in range(3)]
        for line in lines:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.settimeout(10.0)
            line.connect((place.hostname, place.port))
            line.sendall(sends)
            time.sleep(0.2)
        with connected(server.url) as new:
            new.sendall(WHOLE)
            assert one_answer(new)[0] == 200
            until_closed(lines[0])
            if sends != FILE * 1_000:
                for line in lines[1:]:
                    line.settimeout(0.3)
                    with pytest.raises(TimeoutError):
                        until_closed(line)


def test_connections_without_a_valid_key_make_room_first(tmp_path, monkeypatch):
    """Also while their requests wait for the keys to be read again, and before a connection that is older and had a valid key."""
    db = f"sqlite:///{tmp_path}/run.db"
    key, body = new_key(db, "admin"), json.dumps(ROUND).encode()
    with serving(db, insecure=False, limits=ServiceLimits(connections=4, deadline=300.0)) as server:
        with server.client(key) as client:
            create(client)
        time.sleep(0.3)
        server.server.config.timeout_keep_alive = 300
        with connected(server.url) as known, ExitStack() as stack:
            known.sendall(post(key, body))
            assert one_answer(known)[0] == 200
            monkeypatch.setattr(auth, "AT_MOST_EVERY", 300.0)  # nobody with a wrong key is answered any more
            for _ in range(20):
                line = stack.enter_context(connected(server.url))
                line.sendall(post("brk_0_x", body))
                time.sleep(0.05)
            with connected(server.url) as new:
                new.sendall(post(key, body))
                assert one_answer(new)[0] == 200
            known.sendall(post(key, body))
            assert one_answer(known)[0] == 200
            monkeypatch.undo()


@pytest.fixture
def tls(tmp_path):
    """A server that speaks TLS itself, and how to trust it."""
    files = [str(tmp_path / name) for name in ("server.pem", "server.key")]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *names, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    limits = ServiceLimits(connections=20, deadline=1.0)
    config = ServiceConfig(
        db=f"sqlite:///{tmp_path}/run.db", insecure=True, log="error", limits=limits, tls_cert=files[0], tls_key=files[1]
    )
    server, known = Server(config), ssl.create_default_context(cafile=files[0])
    server.server.config.timeout_keep_alive = 1
    try:
        while httpx.get(f"{server.url}/readyz", timeout=5.0, verify=known).status_code != 200:
            time.sleep(0.05)
        yield server, known
    finally:
        server.stop()


def test_limits_hold_with_tls(tls):
    server, known = tls
    place = urlsplit(server.url)
    lines = []
    for _ in range(40):
        line = known.wrap_socket(socket.create_connection((place.hostname, place.port), timeout=10.0), server_hostname="127.0.0.1")
        line.sendall(GET)
        lines.append(line)
    assert httpx.get(f"{server.url}/healthz", timeout=5.0, verify=known).status_code == 200
    assert len(server.server.server_state.connections) <= 20
    until = time.monotonic() + 10.0
    while server.server.server_state.connections and time.monotonic() < until:
        time.sleep(0.1)
    assert not server.server.server_state.connections
    for line in lines:
        line.close()


def test_a_large_answer_that_is_read_slowly_is_whole(tls):
    """Also with TLS, which takes an answer whole and tells nobody how much of it was read."""
    server, known = tls
    place, body = urlsplit(server.url), json.dumps({"events": [{"kind": "decide"}] * 800}).encode()
    with httpx.Client(base_url=server.url, verify=known, timeout=60.0) as client:
        create(client, domain={"kind": "box", "low": 0.0, "high": 1.0 / 3.0, "dim": 1_000})
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    raw.settimeout(30.0)
    raw.connect((place.hostname, place.port))
    with known.wrap_socket(raw, server_hostname="127.0.0.1") as line:
        line.sendall(post(None, body, path="/v1/sessions/shop/batch"))
        found = b""
        while b"\r\n\r\n" not in found:
            found += line.recv(1_000)
        head, _, answer = found.partition(b"\r\n\r\n")
        length = next(int(each.split(b":")[1]) for each in head.lower().split(b"\r\n") if each.startswith(b"content-length:"))
        while len(answer) < length:
            part = line.recv(65_536)
            assert part, f"{len(answer)} of {length} bytes"
            answer += part
            time.sleep(5.0 * len(part) / length)  # longer than keep-alive and three deadlines
        assert length > 10_000_000  # more than the buffers of the system
        assert len(json.loads(answer)["answers"]) == 800


def test_when_every_connection_is_at_work_a_new_one_is_told_to_come_again(tmp_path):
    db = f"sqlite:///{tmp_path}/run.db"
    key = new_key(db, "admin")
    with serving(db, insecure=False, limits=ServiceLimits(connections=2)) as server:
        time.sleep(0.1)
        with server.client(key) as client:
            create(client)
        with connected(server.url) as one, connected(server.url) as two:
            for line in (one, two):
                line.sendall(post(key, b"{", length=10))
            time.sleep(0.3)
            with connected(server.url) as line:
                status, body = one_answer(line)
                assert status == 503
                assert "too many connections" in json.loads(body)["error"]
            one.close()
            time.sleep(0.2)
            assert httpx.get(f"{server.url}/healthz").status_code == 200
