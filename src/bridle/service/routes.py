"""The routes of the service.

Every body and every answer is JSON. Each request carries ``Authorization: Bearer KEY`` (but for /healthz, /readyz, /openapi.json, /docs and
the frame of the page at /) and is answered with ``X-Request-Id`` (the caller's own, if it sent a short one). Arrays are nested lists of
numbers; null in `rules` is a rule that has nothing to say. A key needs the scope in brackets; `admin` has all of them.

sessions
    POST   /v1/sessions         [admin]  {name, policy, domain, parameters?, names?, rules?, rules_per?, features?, engine?, x1?, certify?,
                                          levels?, tolerance?, late?, pending?, timeout?, largest?, most_constraints?,
                                          gates?: {NAME: {budget, unit?, rounds?, ...}}}
                                         -> 201 SESSION; 200 where one of this name was made from the same; else 409
    GET    /v1/sessions         [read]   -> {sessions: [SESSION, or {name, owner} where it is not open here]}
    GET    /v1/sessions/{name}  [read]   -> SESSION
    DELETE /v1/sessions/{name}  [admin]  lets go of it: its lease and its memory are given back, its journal stays -> {name}

    SESSION is {name, policy, parameters, names, dim, engine, round, x, pending, dropped, cost, ccv, violations,
                alarms: [{kind, round, text}], gates: {NAME: GATE}, quarantined}
    GATE is {kind: "gate" | "pacer", budget, spent, left, unit, price?, played?, rounds?}
    domain is {kind: "ball" | "box" | "simplex" | "l1ball" | "spectrahedron" | "polyhedron" | "halfspace" | "product" | "paths" |
               "matchings" | "spanningtrees", and its arguments as in Python}, such as {"kind": "box", "low": 0.0, "high": 40.0, "dim": 1}

rounds
    `name` is in the path. An event has an identity: the header ``Idempotency-Key``, or `key` in the body, at most 128 characters. The same
    key with the same body is answered with the first answer, with another body 409. Without a key an event is a new one each time; feedback
    with a ticket, and a round given up, has the ticket for an identity. What has no `key` here does no harm when it comes twice.

    POST .../decide   [decide]   {rules?, features?, known?: {A, b}, hint?, key?}    -> {x, round}
    POST .../ask      [decide]   {rules?, features?, known?: {A, b}, hint?, points?, key?}  -> {ticket, x}
    POST .../observe  [observe]  {f?, df?, g?, dg?, modulus?, ticket?, played?, pay?: {GATE: amount}, key?}
                                 -> {round, next: x, or null where decide has to be asked first}
    POST .../forget   [observe]  {ticket}                                            -> {round, next}
    POST .../batch    [as its events need]  {events: [{kind: "observe" | "ask" | "forget" | "decide", ...}], key?}
                                 -> {answers: [ANSWER or {error}], refused, round, next}
        The events are played in order, each as if it came alone: one that is refused changes nothing, and the others go on. With `key` K
        and an event without one, the event's is K.0, K.1, ...
    POST .../limits   [admin]    {limit?: name or number, offset?, at_most?, key?}  -> {round, next}
    POST .../pay      [observe]  {gate, amount, key?}                                -> {counted, left, price?}
    POST .../bid      [decide]   {gate, value}                                       -> {bid, price, left}
    POST .../budget   [admin]    {gate, budget, rounds?, key?}                       -> GATE

    `round` is how many rounds have been observed. A ticket is a whole number. A hint is {df?, g?, dg?, x?}. Where a policy tries several
    points a round, `ask` says how many, x has a row for each, f is a list and g a list of rows.

looks
    GET .../certificate    [read]   -> Certificate.json()
    GET .../report         [read]   -> {text}
    GET .../alarms         [read]   -> {alarms: [{kind, round, text}]}
    GET .../weights        [read]   -> {rules: [name], weights}
    GET .../rates          [read]   -> {rates: [RateLimit as JSON]}
    GET .../prices         [read]   -> {names, prices}
    GET .../rounds?last=N  [read]   -> {rounds: [{round, x, f, g, violation, cost, ccv, ticket?}]}, at most 500 that this server has played
    GET .../quarantine?limit=&offset=  [read]  -> {quarantine: [{when, reason, request}], count}
    GET /v1/quarantine                 [read]  -> {counts: {NAME: count}}
    GET /v1/audit?limit=&offset=       [admin] -> {audit: [{when, who, what, session}]}
    GET /v1/events?session=NAME        [read]  server-sent events for the live page

the server
    GET /metrics     [read]  Prometheus
    GET /healthz     -> {status: "alive"}
    GET /readyz      -> {status: "ready"}, or 503 while it warms up or stops
    GET /openapi.json, /docs, /

errors are {"error": SENTENCE, "request": ID}
    307  another server owns the session: Location has its address
    400  not JSON, or not of the right form        401  no key, a wrong or a revoked one      403  the key lacks the scope
    404  no such session or gate                   409  the name or the key was used for something else
    413  the body or the batch is too large        422  a refused record, in Python's words; it is in the quarantine, nothing changed
    429  too many requests (Retry-After)           431  the header is too large (without an ID)
    503  not now (Retry-After): try again with the same key
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from bridle.core import InputError
from bridle.database.rows import StoreError
from bridle.service import asked, documents, looks, made, page
from bridle.service.auth import ANYBODY, who
from bridle.service.calls import Call, Handler, headers_of, text_of
from bridle.service.door import Answering, HotRoute, body_of, refuse_other_sites
from bridle.service.errors import BAD_FORM, CONFLICT, REFUSED, Turned, unavailable
from bridle.service.logs import LOG
from bridle.service.openapi import Described, RawRoute, document
from bridle.service.reading import Reader
from bridle.service.schemas import (
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
    RoundAnswer,
    SessionStands,
    TicketAnswer,
)
from bridle.service.service import Service
from bridle.session.durable import KeyConflict

ANY_KEY = "a key"
"""The scope of a route whose handler looks at what the key may do itself."""

LARGE = 1_000_000
"""Bytes of a body that is read in the thread for slow things."""

ONE = "/v1/sessions/{name}"
OBJECT = dict[str, Any]
PAGES = (
    ("limit", {"type": "integer", "minimum": 0, "maximum": looks.PAGE}, "How many."),
    ("offset", {"type": "integer", "minimum": 0}, "After how many."),
)
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
    _post(f"{ONE}/observe", "Feedback; answered with the next decision", "observe", asked.observe, ObserveBody, RoundAnswer, OBSERVED),
    _post(f"{ONE}/decide", "The decision of this round", "decide", asked.decide, DecideBody, DecisionAnswer, {}),
    _post(f"{ONE}/ask", "Begin a round whose feedback comes later", "decide", asked.ask, AskBody, TicketAnswer, {}),
    _post(f"{ONE}/forget", "Give a round up", "observe", asked.forget, ForgetBody, RoundAnswer, {"ticket": 17}),
    _post(
        f"{ONE}/batch",
        "Several events, in order",
        ANY_KEY,
        asked.batch,
        BatchBody,
        BatchAnswer,
        {"events": [{"kind": "observe", **OBSERVED}]},
    ),
    _post(
        f"{ONE}/limits",
        "Change a limit from now on",
        "admin",
        asked.change_limits,
        LimitsBody,
        RoundAnswer,
        {"limit": "latency", "offset": 0.1},
    ),
    _post(f"{ONE}/pay", "Pay from a budget", "observe", asked.pay, PayBody, PaymentAnswer, {"gate": "march", "amount": 1.2}),
    _post(f"{ONE}/bid", "What a pacer bids", "decide", asked.bid, BidBody, BidAnswer, {"gate": "ads", "value": 0.6}),
    _post(f"{ONE}/budget", "Change a budget", "admin", asked.set_budget, BudgetBody, GateStands, {"gate": "march", "budget": 700.0}),
    _post("/v1/sessions", "Make a session", "admin", made.create, CreateBody, SessionStands, NEW, status=201),
    _get("/v1/sessions", "All sessions", looks.show_all),
    _get(ONE, "Where a session stands", looks.show, SessionStands),
    RouteEntry(Described("DELETE", ONE, "Let go of a session; its journal stays", "admin", OBJECT, errors=(404,)), made.let_go),
    _get(f"{ONE}/certificate", "What the observations prove", looks.certificate),
    _get(f"{ONE}/report", "The same in sentences", looks.report),
    _get(f"{ONE}/alarms", "Warnings that were given", looks.alarms),
    _get(f"{ONE}/weights", "What each rule is worth", looks.weights),
    _get(f"{ONE}/rates", "Limits on how often", looks.rates),
    _get(f"{ONE}/prices", "What one more unit of each limit seems to be worth", looks.prices),
    _get(
        f"{ONE}/rounds", "The last rounds", looks.rounds, query=(("last", {"type": "integer", "minimum": 0, "maximum": 500}, "How many."),)
    ),
    _get(f"{ONE}/quarantine", "What was refused", looks.quarantine, query=PAGES),
    _get("/v1/quarantine", "How many requests were refused, by session", looks.quarantines),
    _get("/v1/audit", "Who did what", looks.audit, scope="admin", query=PAGES),
    _get("/metrics", "Figures for Prometheus", looks.metrics, str, media="text/plain"),
    _get("/healthz", "Whether the process lives", looks.healthz, scope=None),
    _get("/readyz", "Whether it can answer", looks.readyz, scope=None),
    _get("/openapi.json", "This document", looks.openapi, scope=None),
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
