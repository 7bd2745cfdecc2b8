"""What can be seen of sessions and of the server: where they stand, what is proved, what was refused, who did what, how it is measured."""

from __future__ import annotations

import base64
from collections.abc import Callable

import msgspec
from starlette.responses import Response

from bridle.service.bodies import encode
from bridle.service.calls import Call, Handler, json_response
from bridle.service.hosted import named
from bridle.session.session import Session

PAGE = 1000
"""At most so many entries of a list in one answer."""


# --- sessions -----------------------------------------------------------------------------------------------------------------------------


async def show(call: Call) -> bytes:
    """GET /v1/sessions/{name}."""
    hosted = await call.hosted()
    return encode(await hosted.read(hosted.standing))


async def show_all(call: Call) -> bytes:
    """GET /v1/sessions: those that are open here in full, the others by name."""
    return encode({"sessions": await call.service.overview()})


async def alarms(call: Call) -> bytes:
    """GET .../alarms."""
    hosted = await call.hosted()
    return encode({"alarms": await hosted.read(hosted.alarm_facts, quick=True)})


def looking(look: Callable[[Session], object]) -> Handler:
    """What answers a call with something that its session shows."""

    async def handler(call: Call) -> bytes:
        return encode(await (await call.hosted()).read(lambda core: look(core.session)))

    return handler


def _weights(session: Session) -> dict[str, object]:
    rules = getattr(getattr(session.policy, "through", None), "names", ())
    return {"rules": rules, "weights": session.weights.tolist()}


def _prices(session: Session) -> dict[str, object]:
    prices = named(session, session.price)
    return {"names": [*prices], "prices": [*prices.values()]}


certificate = looking(lambda session: msgspec.Raw(session.certificate().json().encode()))
report = looking(lambda session: {"text": session.report()})
rates = looking(lambda session: {"rates": session.rates})
weights, prices = looking(_weights), looking(_prices)


async def rounds(call: Call) -> bytes:
    """GET .../rounds?last=N."""
    return encode({"rounds": await call.service.last_rounds(call.name, call.number("last", 100, 500))})


# --- what was refused, and who did what ---------------------------------------------------------------------------------------------------


async def quarantine(call: Call) -> bytes:
    """GET .../quarantine: what was refused of this session, the latest first."""
    limit, offset = call.number("limit", 100, PAGE), call.number("offset", 0, 10**9)
    hosted = await call.hosted()
    rows = await call.service.reading(lambda store: store.quarantined(hosted.found.id, limit, offset))
    listed = [{"when": row.when, "reason": row.reason, "request": _text(row.request)} for row in rows]
    return encode({"quarantine": listed, "count": hosted.quarantined})


async def quarantines(call: Call) -> bytes:
    """GET /v1/quarantine: how many requests were refused, by session."""
    counts = await call.service.reading(lambda store: store.counts())
    ids = await call.service.reading(lambda store: {found.id: name for name in store.names() if (found := store.find(name)) is not None})
    return encode({"counts": {ids.get(session, "-"): count for session, count in counts.items()}})


async def audit(call: Call) -> bytes:
    """GET /v1/audit: who did what, the latest first."""
    limit, offset = call.number("limit", 100, PAGE), call.number("offset", 0, 10**9)
    rows = await call.service.reading(lambda store: store.audits(limit, offset))
    return encode({"audit": [{"when": row.when, "who": row.who, "what": row.what, "session": row.session} for row in rows]})


def _text(request: bytes) -> str:
    try:
        return request.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(request).decode()}"


# --- the server ---------------------------------------------------------------------------------------------------------------------------


async def metrics(call: Call) -> Response:
    """GET /metrics."""
    return Response(await call.service.measured(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def healthz(call: Call) -> bytes:
    """GET /healthz: the process lives."""
    return b'{"status":"alive"}'


async def readyz(call: Call) -> Response:
    """GET /readyz: it can answer."""
    why = call.service.why_not
    return json_response({"status": "ready"}) if why is None else json_response({"error": why, "request": "-"}, 503)
