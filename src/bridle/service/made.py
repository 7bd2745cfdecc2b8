"""Making sessions and letting go of them."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from bridle.service.auth import who
from bridle.service.calls import Call, encode, json_answer
from bridle.service.standings import standing


async def create(call: Call) -> Response:
    """POST /v1/sessions: 201 for a new one, 200 where there is one that was made from the same."""
    body = {name: value for name, value in msgspec.structs.asdict(call.body).items() if name != "name" and value is not None}
    hosted, fresh = await call.service.create(call.body.name, body, call.key.id)
    if fresh:
        await call.service.audit(who(call.key), call.body.name, f"made it: {encode(body)[:1000].decode(errors='replace')}")
    return json_answer(await hosted.read(lambda core: standing(hosted, core)), 201 if fresh else 200)


async def let_go(call: Call) -> bytes:
    """DELETE /v1/sessions/{name}: the lease is given back; the journal stays, and the session opens again when it is asked for."""
    await call.service.let_go(call.name)
    await call.service.audit(who(call.key), call.name, "let go of it")
    return encode({"name": call.name})
