"""What can be seen of sessions and of the server: where they stand, what is proved, what was refused, who did what, how it is measured."""

from __future__ import annotations

import base64
from dataclasses import asdict

from starlette.responses import Response

from bridle.service.calls import Call, encode, json_response
from bridle.service.hosted import named, whole_session
from bridle.session.durable import DurableCore

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


async def certificate(call: Call) -> bytes:
    """GET .../certificate."""
    return await (await call.hosted()).read(lambda core: whole_session(core).certificate().json().encode())


async def report(call: Call) -> bytes:
    """GET .../report."""
    return encode({"text": await (await call.hosted()).read(lambda core: whole_session(core).report())})


async def alarms(call: Call) -> bytes:
    """GET .../alarms."""
    hosted = await call.hosted()
    return encode({"alarms": await hosted.read(hosted.alarm_facts, quick=True)})


async def weights(call: Call) -> bytes:
    """GET .../weights."""

    def look(core: DurableCore) -> bytes:
        session = whole_session(core)
        through = getattr(session.policy, "through", None)
        return encode({"rules": list(getattr(through, "names", ())), "weights": session.weights.tolist()})

    return await (await call.hosted()).read(look)


async def rates(call: Call) -> bytes:
    """GET .../rates."""
    return encode({"rates": [asdict(each) for each in await (await call.hosted()).read(lambda core: whole_session(core).rates)]})


async def prices(call: Call) -> bytes:
    """GET .../prices."""

    def look(core: DurableCore) -> bytes:
        prices = named(whole_session(core), whole_session(core).price)
        return encode({"names": [*prices], "prices": [*prices.values()]})

    return await (await call.hosted()).read(look)


async def rounds(call: Call) -> bytes:
    """GET .../rounds?last=N."""
    last = call.number("last", 100, 500)
    hosted = await call.hosted()
    found = [each.facts() for each in await hosted.read(lambda core: list(hosted.rounds), quick=True)]
    return encode({"rounds": found[len(found) - min(last, len(found)) :]})


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
