"""The door of the service: every request gets an id, is measured and logged, and whatever goes wrong with it is one JSON object.

Bodies are read here with a limit, so that nothing large is ever kept; answers leave with the headers that keep a browser from mischief.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from time import perf_counter
from urllib.parse import quote, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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

NO_ROUTE = "other"
"""How routes that do not exist are counted, so that nobody can make new ones up without end."""


class Door:
    """Lets requests in and answers out."""

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics, log: AccessLog) -> None:
        self.app, self.metrics, self.log = app, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked = next((value for name, value in scope["headers"] if name == b"x-request-id"), None)
        mark = new_id(None if asked is None else asked.decode("latin-1"))
        token, begun, status = request_id.set(mark), perf_counter(), 0
        extra = [(b"x-request-id", mark.encode()), *SECURITY]

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        try:
            try:
                await self.app(scope, receive, answer)
            except Turned as turned:
                headers = turned.headers
                if turned.status == ELSEWHERE:
                    query = scope["query_string"].decode("latin-1")
                    headers = {"Location": headers["Location"] + quote(scope["path"]) + (f"?{query}" if query else "")}
                await complain(answer, mark, turned.status, turned.sentence, headers)
            except ClientDisconnect:
                status = status or 499
            except Exception:
                if status:
                    raise
                LOG.exception("failed")
                await complain(answer, mark, 500, "the service made a mistake; its log has more under the id of this request", {})
        finally:
            seconds = perf_counter() - begun
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            self.metrics.request(route, status, seconds)
            if LOG.isEnabledFor(logging.INFO):
                self.log.note(mark, scope["method"], scope["path"], status, seconds, scope.get("who", "-"))
            request_id.reset(token)


async def complain(send: Send, mark: str, status: int, sentence: str, headers: dict[str, str]) -> None:
    """Answer with what is wrong."""
    body = json.dumps({"error": sentence, "request": mark}).encode()
    lines = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    lines += [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


def refuse_other_sites(headers: Mapping[str, str]) -> None:
    """Where no keys are asked for, a browser on this machine is not to act for a page from elsewhere, whatever name that page has."""
    host, origin = headers.get("host", ""), headers.get("origin")
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = ""
    if not is_loopback(name) or (origin is not None and origin.partition("://")[2] != host):
        raise Turned(FORBIDDEN, "without keys only this machine is served, and no pages of others: see `bridle keys add`")


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request, if it is not too large."""
    told = request.headers.get("content-length")
    if told is not None and (not told.isascii() or not told.isdigit()):
        raise Turned(BAD_FORM, "content-length must be a whole number")
    if told is not None and int(told) > most:
        raise Turned(TOO_LARGE, f"a request may have at most {most} bytes, not {int(told)}", {"Connection": "close"})
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise Turned(TOO_LARGE, f"a request may have at most {most} bytes", {"Connection": "close"})
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
