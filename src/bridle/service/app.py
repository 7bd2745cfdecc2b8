"""The service as an ASGI application: its routes and their document, what lets a request in, and what every answer has."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections.abc import Callable
from functools import cache
from itertools import count
from time import perf_counter
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from bridle.core import InputError
from bridle.database.rows import StoreError
from bridle.durable.journal import KeyConflict
from bridle.service import commands, openapi, page, queries
from bridle.service.auth import PREFIX, who
from bridle.service.bodies import (
    AskBody,
    BatchAnswer,
    BatchBody,
    BidAnswer,
    BidBody,
    BudgetBody,
    CreateBody,
    DecideBody,
    DecisionAnswer,
    ForgetBody,
    GateStands,
    LimitsBody,
    ObserveBody,
    PayBody,
    PaymentAnswer,
    RoundAnswer,
    SessionStands,
    TicketAnswer,
    encode,
    reader,
)
from bridle.service.calls import JSON, Call, header
from bridle.service.config import is_loopback
from bridle.service.errors import BAD_FORM, CONFLICT, ELSEWHERE, FORBIDDEN, REFUSED, TOO_LARGE, HTTPError, unavailable
from bridle.service.logs import LOG, request_id
from bridle.service.openapi import ServiceRoute
from bridle.service.page import LivePictures
from bridle.service.service import Service

ANY_KEY = "a key"
"""The scope of a route whose handler looks at what the key may do itself."""

LARGE = 1_000_000
"""Bytes of a body that is read in the thread for slow things."""

SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""On every answer, to keep a browser from mischief; pages have a policy for their content too."""

NO_ROUTE = "other"
"""How requests for what is not there are counted, so that nobody can make new routes up without end."""

# --- routes -------------------------------------------------------------------------------------------------------------------------------


async def show_document(call: Call) -> bytes:
    """GET /openapi.json."""
    return encode(document())


async def show_docs(call: Call) -> Response:
    """GET /docs."""
    policy = page.POLICY.replace("style-src 'self'", "style-src 'unsafe-inline'")
    return Response(openapi.html(document()), media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": policy})


ONE = "/v1/sessions/{name}"
HTML = "text/html"
LAST = (("last", {"type": "integer", "minimum": 0, "maximum": 500}, "How many."),)
PAGES = (
    ("limit", {"type": "integer", "minimum": 0, "maximum": queries.PAGE}, "How many."),
    ("offset", {"type": "integer", "minimum": 0}, "After how many."),
)
OBSERVED = {"f": 0.3, "df": [1.0], "g": [0.1], "dg": [[-1.0]]}
BATCH = {"events": [{"kind": "observe", **OBSERVED}]}
OFFSET = {"limit": "latency", "offset": 0.1}
BOX = {"kind": "box", "low": 0.0, "high": 40.0, "dim": 1}
NEW = {"name": "shop-17", "policy": "anytime", "domain": BOX, "names": ["latency"], "gates": {"march": {"budget": 500.0}}}
PAID, BID, BUDGET = {"gate": "march", "amount": 1.2}, {"gate": "ads", "value": 0.6}, {"gate": "march", "budget": 700.0}
OBSERVING = "Feedback; answered with the next decision"
PRICES = "What one more unit of each limit seems to be worth"

ROUTES = (
    ServiceRoute("POST", f"{ONE}/observe", OBSERVING, "observe", commands.observe, RoundAnswer, ObserveBody, OBSERVED),
    ServiceRoute("POST", f"{ONE}/decide", "The decision of this round", "decide", commands.decide, DecisionAnswer, DecideBody, {}),
    ServiceRoute("POST", f"{ONE}/ask", "Begin a round whose feedback comes later", "decide", commands.ask, TicketAnswer, AskBody, {}),
    ServiceRoute("POST", f"{ONE}/forget", "Give a round up", "observe", commands.forget, RoundAnswer, ForgetBody, {"ticket": 17}),
    ServiceRoute("POST", f"{ONE}/batch", "Several events, in order", ANY_KEY, commands.batch, BatchAnswer, BatchBody, BATCH),
    ServiceRoute("POST", f"{ONE}/limits", "Change a limit from now on", "admin", commands.change_limits, RoundAnswer, LimitsBody, OFFSET),
    ServiceRoute("POST", f"{ONE}/pay", "Pay from a budget", "observe", commands.pay, PaymentAnswer, PayBody, PAID),
    ServiceRoute("POST", f"{ONE}/bid", "What a pacer bids", "decide", commands.bid, BidAnswer, BidBody, BID),
    ServiceRoute("POST", f"{ONE}/budget", "Change a budget", "admin", commands.set_budget, GateStands, BudgetBody, BUDGET),
    ServiceRoute("POST", "/v1/sessions", "Make a session", "admin", commands.create, SessionStands, CreateBody, NEW, 201),
    ServiceRoute("GET", "/v1/sessions", "All sessions", "read", queries.show_all),
    ServiceRoute("GET", ONE, "Where a session stands", "read", queries.show, SessionStands),
    ServiceRoute("DELETE", ONE, "Let go of a session; its journal stays", "admin", commands.let_go),
    ServiceRoute("GET", f"{ONE}/certificate", "What the observations prove", "read", queries.certificate),
    ServiceRoute("GET", f"{ONE}/report", "The same in sentences", "read", queries.report),
    ServiceRoute("GET", f"{ONE}/alarms", "Warnings that were given", "read", queries.alarms),
    ServiceRoute("GET", f"{ONE}/weights", "What each rule is worth", "read", queries.weights),
    ServiceRoute("GET", f"{ONE}/rates", "Limits on how often", "read", queries.rates),
    ServiceRoute("GET", f"{ONE}/prices", PRICES, "read", queries.prices),
    ServiceRoute("GET", f"{ONE}/rounds", "The last rounds", "read", queries.rounds, query=LAST),
    ServiceRoute("GET", f"{ONE}/quarantine", "What was refused", "read", queries.quarantine, query=PAGES),
    ServiceRoute("GET", "/v1/quarantine", "How many requests were refused, by session", "read", queries.quarantines),
    ServiceRoute("GET", "/v1/audit", "Who did what", "admin", queries.audit, query=PAGES),
    ServiceRoute("GET", "/metrics", "Figures for Prometheus", "read", queries.metrics, str, media="text/plain"),
    ServiceRoute("GET", "/healthz", "Whether the process lives", None, queries.healthz),
    ServiceRoute("GET", "/readyz", "Whether it can answer", None, queries.readyz),
    ServiceRoute("GET", "/openapi.json", "This document", None, show_document),
    ServiceRoute("GET", "/docs", "This document, to be read", None, show_docs, str, media=HTML),
)
"""All routes."""

PAGE_ROUTES = (
    ServiceRoute("GET", "/", "The live page", None, page.show_page, str, media=HTML),
    ServiceRoute("GET", "/page/{file}", "Its files", None, page.show_file, str),
    ServiceRoute("GET", "/v1/events", "What it shows, as server-sent events", "read", page.events, str, media="text/event-stream"),
)
"""What is there for the live page alone, and not in the document: a stream that does not end is nothing for a client made from it."""


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document of the routes."""
    return openapi.document(ROUTES)


# --- requests -----------------------------------------------------------------------------------------------------------------------------


class Endpoint:
    """Answers the requests of a route: lets them in, reads them, and says what is wrong with them."""

    def __init__(self, route: ServiceRoute, service: Service) -> None:
        self.route, self.path, self.service = route, route.path, service
        self.scope = None if route.scope is ANY_KEY else route.scope
        self.read = None if route.body is None else reader(route.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call, service, route = Call(scope, receive, self.service), self.service, self.route
        if route.scope is not None:
            if service.config.insecure:
                refuse_other_sites(call)
            call.key = await service.ring.admit(header(scope, b"authorization"), self.scope)
            scope["who"] = who(call.key)
            if service.why_not is not None:
                raise unavailable(service.why_not)
        try:
            if self.read is not None:
                await self.fill(call, self.read)
            answer = await route.handler(call)
        except KeyConflict as conflict:
            raise await refused(call, CONFLICT, str(conflict)) from None
        except StoreError:
            LOG.exception("the database is in trouble")
            raise unavailable("the database is in trouble: try again in a moment") from None
        except InputError as wrong:
            raise await refused(call, REFUSED, str(wrong)) from None
        if isinstance(answer, Response):
            await answer(scope, receive, send)
        else:
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
            await send({"type": "http.response.start", "status": route.status, "headers": headers})
            await send({"type": "http.response.body", "body": answer})

    async def fill(self, call: Call, read: Callable[[bytes], Any]) -> None:
        """Read what a request says."""
        raw = call.raw = await body_of(call, self.service.config.limits.body)
        try:
            large = len(raw) >= LARGE
            call.content = await asyncio.get_running_loop().run_in_executor(self.service.compute, read, raw) if large else read(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
            raise await refused(call, BAD_FORM, f"the request cannot be read: {wrong}") from None


async def refused(call: Call, status: int, sentence: str) -> HTTPError:
    """A request that is turned away for what it says: it is kept in the quarantine of its session, where that is open."""
    hosted = call.service.hosted.get(call.name)
    if hosted is not None and call.method == "POST":
        await call.service.quarantine(hosted, sentence, call.raw)
    return HTTPError(status, sentence)


def refuse_other_sites(call: Request) -> None:
    """Where no keys are asked for, a browser on this machine is not to act for a page from elsewhere, whatever name that page has."""
    host, origin = header(call.scope, b"host") or "", header(call.scope, b"origin")
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = ""
    if not is_loopback(name) or (origin is not None and origin.partition("://")[2] != host):
        raise HTTPError(FORBIDDEN, "without keys only this machine is served, and no pages of others: see `bridle keys add`")


async def body_of(call: Request, most: int) -> bytes:
    """The body of a request, if it is not too large; nothing large is ever kept."""
    told = header(call.scope, b"content-length") or "0"
    if told.isdigit() and int(told) > most:
        raise HTTPError(TOO_LARGE, f"a request may have at most {most} bytes, not {int(told)}", {"Connection": "close"})
    parts, size, more = [], 0, True
    while more:
        message = await call.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > most:
            raise HTTPError(TOO_LARGE, f"a request may have at most {most} bytes", {"Connection": "close"})
    return b"".join(parts)


# --- answers ------------------------------------------------------------------------------------------------------------------------------


LONGEST_ID = 64
PLAIN = re.compile(r"[A-Za-z0-9._-]+")


def new_id(asked: str | None) -> str:
    """The caller's own id, where it is short and plain; else a new one.

    >>> new_id("order-17"), len(new_id("two words")), len(new_id(None))
    ('order-17', 16, 16)
    """
    if asked and len(asked) <= LONGEST_ID and PLAIN.fullmatch(asked) and PREFIX not in asked:  # no key, by mistake
        return asked
    return f"{HERE}{next(NUMBER) & 0xFFFFFFFF:08x}"


HERE, NUMBER = secrets.token_hex(4), count(secrets.randbits(31))
"""What new ids begin with in this process, and how they go on: to ask the system for each would take longer than all the rest of them."""


class ServiceApp:
    """The application: every request gets an id, is routed, measured and logged, and what goes wrong with it is answered as JSON."""

    def __init__(self, service: Service) -> None:
        self.service, self.pictures = service, LivePictures(service)
        routes = [Route(route.path, Endpoint(route, service), methods=[route.method]) for route in (*ROUTES, *PAGE_ROUTES)]
        self.router = Router(routes, redirect_slashes=False, lifespan=lambda _: service.running())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self
        if scope["type"] != "http":
            return await self.router(scope, receive, send)
        mark = new_id(header(scope, b"x-request-id"))
        token, begun, status = request_id.set(mark), perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", mark.encode()), *SECURITY]
            await send(message)

        try:
            await self.router(scope, receive, answer)
        except ClientDisconnect:
            status = status or 499
        except Exception as wrong:
            if status:
                raise
            await complaint(scope, wrong)(scope, receive, answer)
        finally:
            seconds = perf_counter() - begun
            self.service.metrics.request(getattr(scope.get("endpoint"), "path", NO_ROUTE), status, seconds)
            if LOG.isEnabledFor(logging.INFO):
                self.service.access.note(mark, scope["method"], scope["path"], status, seconds, scope.get("who", "-"))
            request_id.reset(token)


def complaint(scope: Scope, wrong: Exception) -> Response:
    """The answer that says what is wrong."""
    if isinstance(wrong, HTTPException):
        wrong = HTTPError(wrong.status_code, f"there is no {scope['method']} {scope['path'][:200]}")
    elif not isinstance(wrong, HTTPError):
        LOG.exception("failed")
        wrong = HTTPError(500, "the service made a mistake; its log has more under the id of this request")
    headers = {name: value.encode("latin-1", "replace").decode("latin-1") for name, value in wrong.headers.items()}
    if wrong.status == ELSEWHERE:
        query = scope["query_string"].decode("latin-1")
        headers["Location"] += quote(scope["path"]) + (f"?{query}" if query else "")
    return Response(json.dumps({"error": wrong.sentence, "request": request_id.get()}), wrong.status, headers, JSON)
