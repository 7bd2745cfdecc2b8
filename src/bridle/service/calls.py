"""One request on its way to its handler: who asks, of which session, with what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from bridle.service.auth import ANYBODY
from bridle.service.bodies import LONGEST_KEY, encode
from bridle.service.errors import BAD_FORM, HTTPError

if TYPE_CHECKING:
    from bridle.service.hosted import Hosted
    from bridle.service.service import Service

JSON = "application/json"


def header(scope: Scope, name: bytes) -> str | None:
    """A header of a request, the first of this name."""
    for key, value in scope["headers"]:
        if key == name:
            return value.decode("latin-1")  # type: ignore[no-any-return]
    return None


class Call(Request):
    """A request to the service: `key` is whose it is, `content` its body as it was decoded, and `raw` as it came."""

    key = ANYBODY
    content: Any = None
    raw = b""

    def __init__(self, scope: Scope, receive: Receive, service: Service) -> None:
        super().__init__(scope, receive)
        self.service = service

    @property
    def name(self) -> str:
        """The name of the session in the path."""
        return str(self.path_params.get("name", ""))

    @property
    def identity(self) -> str | None:
        """The identity of the event: from the header, or from the body."""
        told, own = header(self.scope, b"idempotency-key"), getattr(self.content, "key", None)
        if told is None:
            return own
        if not 0 < len(told) <= LONGEST_KEY:
            raise HTTPError(BAD_FORM, f"Idempotency-Key must have 1 to {LONGEST_KEY} characters")
        if own is not None and own != told:
            raise HTTPError(BAD_FORM, "the header Idempotency-Key and `key` in the body must be the same, or only one be given")
        return told

    async def hosted(self) -> Hosted:
        """The session in the path, opened if need be."""
        return await self.service.open(self.name)

    def number(self, name: str, default: int, most: int) -> int:
        """A whole number of the query."""
        text = self.query_params.get(name, str(default))
        if not text.isascii() or not text.isdigit() or len(text) > 12 or int(text) > most:
            raise HTTPError(BAD_FORM, f"{name} must be a whole number of at most {most}, not {text[:40]!r}")
        return int(text)


Handler: TypeAlias = Callable[[Call], Awaitable[bytes | Response]]
"""What answers a call: with JSON, or with a response of its own."""


def json_response(value: object, status: int = 200) -> Response:
    """An answer as JSON."""
    return Response(encode(value), status, media_type=JSON)
