"""Limits on connections, so that a client without a key cannot shut out the others.

uvicorn parses with httptools, which reads a header of any length, waits for the rest of a request for ever, and parses all requests that a
client sends ahead. `LimitedProtocol` is uvicorn's protocol with a limit on the header and on what frames a body, with deadlines, and with
at most a few requests ahead. It does not keep the trailers of a chunked body. When there are too many connections, a new one takes the
place of another: of one that never had a valid key, if there is one, else of one that waits for its client; the oldest of them. A request
with a valid key that is being answered, or whose body is read for its answer, is never dropped for another.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from bridle.service.config import ServiceLimits

FRAMING = 8
"""Bytes that frame one byte of a body at most: a chunk of one byte needs 5."""

FIELDS = 100
"""Fields of a header and its trailer: 32 KB of the shortest would take 0.8 MB of memory."""

PIECE, SMALL_PIECE = 65_536, 1_024
"""Bytes that are parsed at once: of a body whose length is known, and of anything else. Requests that fit into a piece are read ahead."""

SLOWEST = 16_384
"""Bytes of a body per second; a client that sends faster is never too late."""

PATIENCE = 3.0
"""Deadlines that a client may take to read some of an answer."""

KEPT_FREE = 64
"""File descriptors that connections leave for files and databases; an eighth of all, if that is less."""

FEWEST = 16
"""Connections that there is room for in any case."""

TOO_LARGE = "431 Request Header Fields Too Large"
"""The status of a request whose header, trailer or framing is over its limit."""

BETWEEN, HEADER, BODY = range(3)
"""What the client sends: nothing yet, the header of a request, or its body."""


class LimitedProtocol(HttpToolsProtocol):
    """A connection whose requests have limits. `most` is how many connections there may be."""

    limits: ServiceLimits
    most: int

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.sends, self.since = BETWEEN, monotonic()
        self.framing = self.received = self.length = self.fields = self.unsent = 0
        self.ended = self.known = False
        self.ahead = b""  # not parsed yet
        self.unanswered: deque[RequestResponseCycle] = deque()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            others = [each for each in self.connections if isinstance(each, LimitedProtocol) and each is not self and each.may_go()]
            if others:
                min(others, key=lambda each: (each.known, each.since)).drop()
            else:
                self.refuse("503 Service Unavailable", "the server has too many connections: try again in a moment", "retry-after: 1\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        self.hang_up()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.ahead += data
        self.parse()

    def parse(self) -> None:
        """Parse what has come, until a request has to wait for the answer to another."""
        limits = self.limits
        while self.ahead and len(self.unanswered) < 2 and not self.transport.is_closing():
            left = self.length - self.received
            room = min(PIECE, left) if left > 0 else min(SMALL_PIECE, limits.header - self.framing)
            part, self.ahead = self.ahead[:room], self.ahead[room:]
            before, self.ended = self.received, False
            super().data_received(part)
            body = self.received - before  # it pays for what frames it, and for nothing later
            self.framing = 0 if self.ended else max(0, self.framing + len(part) - (1 + FRAMING) * body)
            if self.framing >= limits.header:
                self.refuse(TOO_LARGE, f"the header of a request may have at most {limits.header} bytes")
            elif self.received > limits.body and not self.unanswered:
                self.transport.close()
        if self.ahead and not self.transport.is_closing():
            self.flow.pause_reading()

    def resume_writing(self) -> None:
        self.since = monotonic()
        super().resume_writing()

    # --- what the parser says -----------------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.sends, self.since = HEADER, monotonic()
        self.fields = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields += 1
        if self.fields > FIELDS:
            raise ValueError("too many fields")  # stops the parser, which calls `send_400_response`
        if self.sends == HEADER:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.sends, self.since, self.ended = BODY, monotonic(), True
        self.length = next((int(value) for name, value in self.headers if name == b"content-length"), 0)
        super().on_headers_complete()
        self.unanswered.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        self.received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.sends, self.received, self.length, self.ended = BETWEEN, 0, 0, True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        done = self.unanswered.popleft()
        done.body.clear()  # of a request that was answered without it
        self.known = self.known or "who" in done.scope
        self.since = monotonic()
        super().on_response_complete()
        if self.ahead:
            self.loop.call_soon(self.parse)  # before anything more is read

    # --- what follows from it -----------------------------------------------------------------------------------------------------------

    def waits(self) -> bool:
        """Whether it waits for its client: for a request, for the rest of one that is answered, or for an answer to be read."""
        return not self.unanswered or self.flow.write_paused

    def may_go(self) -> bool:
        """Whether it may be dropped for another: it waits for its client, or has shown no valid key."""
        return self.waits() or not (self.known or "who" in self.unanswered[0].scope)

    def is_late(self, now: float) -> bool:
        """Whether its client takes too long."""
        before, self.unsent = self.unsent, self.transport.get_write_buffer_size()
        reading_later = (self.flow.read_paused or self.ahead) and not self.flow.write_paused
        if self.unsent < before or reading_later:  # the client reads, or waits for the server to read on
            self.since = now
        waited, deadline = now - self.since, self.limits.deadline + self.received / SLOWEST
        if not self.waits():
            return self.sends == BODY and waited > deadline
        if self.transport.is_closing() and self.scheme == "https":  # what is left may be read yet; with TLS nobody knows how much that is
            return False
        if self.unsent:
            return waited > PATIENCE * self.limits.deadline
        idle = self.sends == BETWEEN and self.cycle is not None
        return waited > deadline + idle * self.timeout_keep_alive

    def drop(self) -> None:
        """Close at once, whatever waits to be sent."""
        self.connections.discard(self)
        self.hang_up()
        self.transport.abort()

    def hang_up(self) -> None:
        """Tell every request that its client is gone: uvicorn would tell the last one alone, and the others would write on."""
        self.ahead = b""
        for each in self.unanswered:
            each.disconnected = True
            each.message_event.set()

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls if the parser stops: answer, but not in the place of an earlier request's answer."""
        if self.fields > FIELDS:
            self.refuse(TOO_LARGE, f"the header of a request may have at most {FIELDS} fields")
        else:
            self.refuse("400 Bad Request", "the request is not valid HTTP")

    def refuse(self, status: str, sentence: str, more: str = "") -> None:
        """Answer in place of the application, unless the answer to an earlier request is due first, and close."""
        cut_short = self.sends == BODY and bool(self.unanswered) and not self.cycle.response_started  # nobody can answer it any more
        if len(self.unanswered) == cut_short:
            body = f'{{"error":"{sentence}"}}'
            header = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{more}connection: close"
            self.transport.write(f"HTTP/1.1 {status}\r\n{header}\r\n\r\n{body}".encode())
        self.transport.close()


def limited_protocol(limits: ServiceLimits) -> type[LimitedProtocol]:
    """The protocol of connections under these limits."""
    return type("ServiceProtocol", (LimitedProtocol,), {"limits": limits, "most": limits.connections})


def most_connections(limit: int, now: int) -> int:
    """How many connections there may be beside the open files; `now` is how many there are."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return limit
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return limit
    others = KEPT_FREE
    with suppress(OSError):  # not on this system, or none is left to look with
        others = max(0, len(os.listdir("/dev/fd")) - now)
    return min(limit, max(FEWEST, files - min(KEPT_FREE, files // 8) - others))
