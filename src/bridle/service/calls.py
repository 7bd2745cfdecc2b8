"""One request on its way from a route to its handler: who asks, of which session, with what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from bridle.database.rows import AccessKey
from bridle.service.bodies import LONGEST_KEY
from bridle.service.errors import BAD_FORM, Turned

if TYPE_CHECKING:
    from bridle.service.hosted import Hosted
    from bridle.service.service import Service


Headers: TypeAlias = Mapping[bytes, bytes]
"""The headers of a request by their names in small letters; of one that is there twice, the first."""


def headers_of(scope: Scope) -> Headers:
    """The headers of a request.

    >>> headers_of({"headers": [(b"host", b"here"), (b"host", b"there")]})
    {b'host': b'here'}
    """
    return dict(scope["headers"][::-1])


def text_of(headers: Headers, name: bytes) -> str | None:
    """A header as text."""
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")


@dataclass(slots=True)
class Call:
    """A request that was let in and read: `body` is decoded, `raw` as it came; `name` is that of the session in the path."""

    service: Service
    scope: Scope
    headers: Headers
    key: AccessKey
    name: str
    body: Any
    raw: bytes

    @property
    def request(self) -> Request:
        """The request as Starlette has it, for those who are in no hurry."""
        return Request(self.scope)

    @property
    def identity(self) -> str | None:
        """The identity of the event: from the header, or from the body."""
        told = text_of(self.headers, b"idempotency-key")
        own: str | None = getattr(self.body, "key", None)
        if told is None:
            return own
        if not 0 < len(told) <= LONGEST_KEY:
            raise Turned(BAD_FORM, f"Idempotency-Key must have 1 to {LONGEST_KEY} characters")
        if own is not None and own != told:
            raise Turned(BAD_FORM, "the header Idempotency-Key and `key` in the body must be the same, or only one be given")
        return told

    async def session(self) -> Hosted:
        """The session in the path, opened if need be."""
        hosted = self.service.hosted.get(self.name)
        return hosted if hosted is not None else await self.service.open(self.name)

    def number(self, name: str, default: int, most: int) -> int:
        """A whole number of the query."""
        text = self.request.query_params.get(name)
        if text is None:
            return default
        if not text.isascii() or not text.isdigit() or int(text[:12]) > most or len(text) > 12:
            raise Turned(BAD_FORM, f"{name} must be a whole number of at most {most}, not {text[:40]!r}")
        return int(text)


Handler: TypeAlias = Callable[[Call], Awaitable[bytes | Response]]
"""What answers a call."""

encode = msgspec.json.Encoder().encode


def json_answer(value: object, status: int = 200) -> Response:
    """An answer as JSON."""
    return Response(encode(value), status, media_type="application/json")
