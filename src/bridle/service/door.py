"""The door of the service: every request gets an id, is measured and logged, and whatever goes wrong with it is one JSON object.

Bodies are read here with a limit, so that nothing large is ever kept; answers leave with the headers that keep a browser from mischief.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, urlsplit

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bridle.service.calls import Headers, text_of
from bridle.service.config import is_loopback
from bridle.service.errors import BAD_FORM, ELSEWHERE, FORBIDDEN, TOO_LARGE, Turned
from bridle.service.logs import LOG, AccessLog, new_id, request_id
from bridle.service.metrics import ServiceMetrics

SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""On every answer; pages have a policy for their content too."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a page of the service may load: what comes from the service, and nothing else."""

JSON = (b"content-type", b"application/json")

SESSIONS = "/v1/sessions/"
"""What the paths of all sessions begin with."""

NO_ROUTE = "other"
"""How routes that do not exist are counted, so that nobody can make new ones up without end."""


Answering: TypeAlias = Callable[[Scope, str, Receive], Awaitable[bytes | Response]]
"""What answers requests of a route: its scope, the name in its path, and where its body comes from."""


class HotRoute(NamedTuple):
    """A route that the door answers itself; `path` is as the document has it."""

    path: str
    answer: Answering


class Door:
    """Lets requests in and answers out."""

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics, log: AccessLog) -> None:
        self.app, self.metrics, self.log = app, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.serve(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def serve(self, scope: Scope, receive: Receive, send: Send, hot: HotRoute | None = None, name: str = "") -> None:
        """Answer a request: by this route, of the session of this name, or else by the application."""
        asked = next((value for name, value in scope["headers"] if name == b"x-request-id"), None)
        mark = new_id(None if asked is None else asked.decode("latin-1"))
        token, begun, status = request_id.set(mark), perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", mark.encode()), *SECURITY]
            await send(message)

        try:
            try:
                if hot is None:
                    await self.app(scope, receive, answer)
                else:
                    body = await hot.answer(scope, name, receive)
                    if isinstance(body, Response):
                        await body(scope, receive, answer)
                    else:
                        status = 200
                        length = (b"content-length", b"%d" % len(body))
                        headers = [JSON, length, (b"x-request-id", mark.encode()), *SECURITY]
                        await send({"type": "http.response.start", "status": 200, "headers": headers})
                        await send({"type": "http.response.body", "body": body})
            except Turned as turned:
                await complaint(scope, turned)(scope, receive, answer)
            except ClientDisconnect:
                status = status or 499
            except Exception:
                if status:
                    raise
                LOG.exception("failed")
                await complaint(scope, MISTAKE)(scope, receive, answer)
        finally:
            seconds = perf_counter() - begun
            self.metrics.request(getattr(scope.get("route"), "path", NO_ROUTE) if hot is None else hot.path, status, seconds)
            if LOG.isEnabledFor(logging.INFO):
                self.log.note(mark, scope["method"], scope["path"], status, seconds, scope.get("who", "-"))
            request_id.reset(token)


class FrontDoor(Door):
    """The door before the application: what is asked of a session round after round is answered here.

    All other requests go on to the application, which has a door of its own, and these routes too, for its document: to find a route and to
    build what it is called with takes longer there than a round.
    """

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics, log: AccessLog, hot: Mapping[str, HotRoute]) -> None:
        super().__init__(app, metrics, log)
        self.hot = hot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            path = scope["path"]
            name, _, verb = path[len(SESSIONS) :].partition("/")
            if name and verb in self.hot and path.startswith(SESSIONS):
                await self.serve(scope, receive, send, self.hot[verb], name)
                return
        await self.app(scope, receive, send)


MISTAKE = Turned(500, "the service made a mistake; its log has more under the id of this request")


def complaint(scope: Scope, turned: Turned) -> Response:
    """The answer that says what is wrong."""
    headers = turned.headers
    if turned.status == ELSEWHERE:
        query = scope["query_string"].decode("latin-1")
        headers = {"Location": headers["Location"] + quote(scope["path"]) + (f"?{query}" if query else "")}
    body = json.dumps({"error": turned.sentence, "request": request_id.get()})
    safe = {name: value.encode("latin-1", "replace").decode("latin-1") for name, value in headers.items()}
    return Response(body, turned.status, safe, "application/json")


def refuse_other_sites(headers: Headers) -> None:
    """Where no keys are asked for, a browser on this machine is not to act for a page from elsewhere, whatever name that page has."""
    host, origin = text_of(headers, b"host") or "", text_of(headers, b"origin")
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = ""
    if not is_loopback(name) or (origin is not None and origin.partition("://")[2] != host):
        raise Turned(FORBIDDEN, "without keys only this machine is served, and no pages of others: see `bridle keys add`")


async def body_of(headers: Headers, receive: Receive, most: int) -> bytes:
    """The body of a request, if it is not too large."""
    told = headers.get(b"content-length")
    if told is not None:
        if not told.isdigit():
            raise Turned(BAD_FORM, "content-length must be a whole number")
        if int(told) > most:
            raise Turned(TOO_LARGE, f"a request may have at most {most} bytes, not {int(told)}", {"Connection": "close"})
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > most:
            raise Turned(TOO_LARGE, f"a request may have at most {most} bytes", {"Connection": "close"})
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
