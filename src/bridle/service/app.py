"""The service as an ASGI application: its life, its door, its routes and its document."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from fastapi import FastAPI
from fastapi.middleware import Middleware
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from bridle import __version__
from bridle.core import InputError
from bridle.database.rows import StoreError
from bridle.service import commands, documents, page, queries
from bridle.service.auth import ANYBODY, who
from bridle.service.bodies import (
    AskBody,
    BatchAnswer,
    BatchBody,
    BidAnswer,
    BidBody,
    BudgetBody,
    Complaint,
    CreateBody,
    DecideBody,
    DecisionAnswer,
    ForgetBody,
    GateStands,
    LimitsBody,
    ObserveBody,
    PayBody,
    PaymentAnswer,
    Reader,
    RoundAnswer,
    SessionStands,
    TicketAnswer,
)
from bridle.service.calls import Call, Handler, headers_of, json_answer, text_of
from bridle.service.door import Answering, Door, FrontDoor, HotRoute, body_of, refuse_other_sites
from bridle.service.errors import BAD_FORM, CONFLICT, REFUSED, Turned, unavailable
from bridle.service.logs import LOG, request_id
from bridle.service.openapi import Described, RawRoute, document
from bridle.service.page import LivePictures, ServiceWatch
from bridle.service.service import Service
from bridle.session.durable import KeyConflict

ANY_KEY = "a key"
"""The scope of a route whose handler looks at what the key may do itself."""

LARGE = 1_000_000
"""Bytes of a body that is read in the thread for slow things."""

ONE = "/v1/sessions/{name}"
OBJECT = dict[str, Any]
PAGES = (
    ("limit", {"type": "integer", "minimum": 0, "maximum": queries.PAGE}, "How many."),
    ("offset", {"type": "integer", "minimum": 0}, "After how many."),
)
LAST = (("last", {"type": "integer", "minimum": 0, "maximum": 500}, "How many."),)
OBSERVED = {"f": 0.3, "df": [1.0], "g": [0.1], "dg": [[-1.0]]}
BOX = {"kind": "box", "low": 0.0, "high": 40.0, "dim": 1}
NEW = {"name": "shop-17", "policy": "anytime", "domain": BOX, "names": ["latency"], "gates": {"march": {"budget": 500.0}}}


class RouteEntry(NamedTuple):
    """A route: what the document says of it, and who answers."""

    described: Described
    handler: Handler


def _post(
    path: str, summary: str, scope: str, handler: Handler, body: type[msgspec.Struct], answer: Any, example: object, **more: Any
) -> RouteEntry:
    errors = (404, 409, 422)
    return RouteEntry(Described("POST", path, summary, scope, answer, body, example, errors=errors, **more), handler)


def _get(path: str, summary: str, handler: Handler, answer: Any = OBJECT, scope: str | None = "read", **more: Any) -> RouteEntry:
    errors = (404, 422) if "{name}" in path else (400,) if more.get("query") else ()
    return RouteEntry(Described("GET", path, summary, scope, answer, errors=errors, **more), handler)


ROUTES = (
    _post(f"{ONE}/observe", "Feedback; answered with the next decision", "observe", commands.observe, ObserveBody, RoundAnswer, OBSERVED),
    _post(f"{ONE}/decide", "The decision of this round", "decide", commands.decide, DecideBody, DecisionAnswer, {}),
    _post(f"{ONE}/ask", "Begin a round whose feedback comes later", "decide", commands.ask, AskBody, TicketAnswer, {}),
    _post(f"{ONE}/forget", "Give a round up", "observe", commands.forget, ForgetBody, RoundAnswer, {"ticket": 17}),
    _post(
        f"{ONE}/batch",
        "Several events, in order",
        ANY_KEY,
        commands.batch,
        BatchBody,
        BatchAnswer,
        {"events": [{"kind": "observe", **OBSERVED}]},
    ),
    _post(
        f"{ONE}/limits",
        "Change a limit from now on",
        "admin",
        commands.change_limits,
        LimitsBody,
        RoundAnswer,
        {"limit": "latency", "offset": 0.1},
    ),
    _post(f"{ONE}/pay", "Pay from a budget", "observe", commands.pay, PayBody, PaymentAnswer, {"gate": "march", "amount": 1.2}),
    _post(f"{ONE}/bid", "What a pacer bids", "decide", commands.bid, BidBody, BidAnswer, {"gate": "ads", "value": 0.6}),
    _post(f"{ONE}/budget", "Change a budget", "admin", commands.set_budget, BudgetBody, GateStands, {"gate": "march", "budget": 700.0}),
    _post("/v1/sessions", "Make a session", "admin", commands.create, CreateBody, SessionStands, NEW, status=201),
    _get("/v1/sessions", "All sessions", queries.show_all),
    _get(ONE, "Where a session stands", queries.show, SessionStands),
    RouteEntry(Described("DELETE", ONE, "Let go of a session; its journal stays", "admin", OBJECT, errors=(404,)), commands.let_go),
    _get(f"{ONE}/certificate", "What the observations prove", queries.certificate),
    _get(f"{ONE}/report", "The same in sentences", queries.report),
    _get(f"{ONE}/alarms", "Warnings that were given", queries.alarms),
    _get(f"{ONE}/weights", "What each rule is worth", queries.weights),
    _get(f"{ONE}/rates", "Limits on how often", queries.rates),
    _get(f"{ONE}/prices", "What one more unit of each limit seems to be worth", queries.prices),
    _get(
        f"{ONE}/rounds",
        "The last rounds",
        queries.rounds,
        query=(("last", {"type": "integer", "minimum": 0, "maximum": 500}, "How many."),),
    ),
    _get(f"{ONE}/quarantine", "What was refused", queries.quarantine, query=PAGES),
    _get("/v1/quarantine", "How many requests were refused, by session", queries.quarantines),
    _get("/v1/audit", "Who did what", queries.audit, scope="admin", query=PAGES),
    _get("/metrics", "Figures for Prometheus", queries.metrics, str, media="text/plain"),
    _get("/healthz", "Whether the process lives", queries.healthz, scope=None),
    _get("/readyz", "Whether it can answer", queries.readyz, scope=None),
    _get("/openapi.json", "This document", queries.openapi, scope=None),
    _get("/docs", "This document, to be read", documents.docs, str, scope=None, media="text/html"),
)
"""All routes."""

PAGE_ROUTES = (
    _get("/", "The live page", page.show_page, str, scope=None, media="text/html"),
    _get("/page/{file}", "Its files", page.show_file, str, scope=None, media="text/plain"),
    _get("/v1/events", "What it shows, as server-sent events", page.events, str, media="text/event-stream"),
)
"""What is there for the live page alone, and not in the document: a stream that does not end is nothing for a client made from it."""


def endpoint(service: Service, entry: RouteEntry) -> Answering:
    """What answers requests of a route: lets them in, reads them, and says what is wrong with them."""
    scope, body, handler = entry.described.scope, entry.described.body, entry.handler
    read = None if body is None else Reader(body)
    needed = None if scope is ANY_KEY else scope
    most, insecure = service.config.limits.body, service.config.insecure

    async def answer(asked: Scope, name: str, receive: Receive) -> bytes | Response:
        headers, key = headers_of(asked), ANYBODY
        if scope is not None:
            if insecure:
                refuse_other_sites(headers)
            key = await service.ring.admit(text_of(headers, b"authorization"), needed)
            asked["who"] = who(key)
            if service.why_not is not None:
                raise unavailable(service.why_not)
        call = Call(service, asked, headers, key, name, None, b"")
        if read is not None:
            call.raw = await body_of(headers, receive, most)
            try:
                raw = call.raw
                call.body = read(raw) if len(raw) < LARGE else await asyncio.get_running_loop().run_in_executor(service.compute, read, raw)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
                raise await refused(call, BAD_FORM, f"the request cannot be read: {wrong}") from None
        try:
            return await handler(call)
        except KeyConflict as conflict:
            raise await refused(call, CONFLICT, str(conflict)) from None
        except StoreError:
            LOG.exception("the database is in trouble")
            raise unavailable("the database is in trouble: try again in a moment") from None
        except InputError as wrong:
            raise await refused(call, REFUSED, str(wrong)) from None

    return answer


async def refused(call: Call, status: int, sentence: str) -> Turned:
    """A request that is turned away for what it says: it is kept in the quarantine of its session, where that is open."""
    hosted = call.service.hosted.get(call.name)
    if hosted is not None and call.scope["method"] == "POST":
        await call.service.quarantine(hosted, sentence, call.raw)
    return Turned(status, sentence)


def documented(answer: Answering, status: int) -> Callable[[Request], Awaitable[Response]]:
    """What answers requests of a route, as FastAPI wants it."""

    async def respond(request: Request) -> Response:
        found = await answer(request.scope, request.path_params.get("name", ""), request.receive)
        return found if isinstance(found, Response) else Response(found, status, media_type="application/json")

    return respond


def hot_routes(service: Service) -> dict[str, HotRoute]:
    """The routes that are asked again and again, by the last part of their paths: the door answers them itself."""
    hot = (entry for entry in ROUTES if entry.described.method == "POST" and entry.described.path.startswith(f"{ONE}/"))
    return {entry.described.path.rpartition("/")[2]: HotRoute(entry.described.path, endpoint(service, entry)) for entry in hot}


def add_routes(app: FastAPI, service: Service) -> None:
    """Add all routes to the app, and their schemas to its document."""
    for entry in (*ROUTES, *PAGE_ROUTES):
        told = entry.described
        app.router.add_api_route(
            told.path,
            documented(endpoint(service, entry), told.status),
            methods=[told.method],
            summary=told.summary,
            operation_id=told.method.lower() + re.sub(r"\W+", "_", told.path),
            route_class_override=RawRoute,
            openapi_extra=told.operation(),
            response_model=None,
            status_code=told.status,
            responses={},
            include_in_schema=entry in ROUTES,
        )
    bodies = [entry.described.body for entry in ROUTES if entry.described.body is not None]
    document(app, [*bodies, *{entry.described.answer for entry in ROUTES if isinstance(entry.described.answer, type)}, Complaint])


async def not_found(request: Request, wrong: Exception) -> Response:
    """What no route answers, as every other error."""
    assert isinstance(wrong, HTTPException)
    text = f"there is no {request.method} {request.url.path[:200]}" if wrong.status_code in (404, 405) else str(wrong.detail)
    return json_answer({"error": text, "request": request_id.get()}, wrong.status_code)


def front_door(service: Service) -> FrontDoor:
    """What serves this service: its hot routes, and the application behind them."""
    return FrontDoor(make_app(service), service.metrics, service.access, hot_routes(service))


def make_app(service: Service) -> FastAPI:
    """The application that has all routes of this service, and the document of them."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    app = FastAPI(
        title="bridle",
        version=__version__,
        summary="Decisions made online under constraints that are revealed too late",
        lifespan=life,
        middleware=[Middleware(Door, metrics=service.metrics, log=service.access)],
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.add_exception_handler(HTTPException, not_found)
    app.state.service = service
    app.state.pictures = LivePictures(ServiceWatch(service))
    add_routes(app, service)
    return app
