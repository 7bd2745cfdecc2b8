"""The OpenAPI document: made from the same structs that requests are decoded with, so that it cannot say anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from bridle.service.bodies import Complaint

TEMPLATE = "#/components/schemas/{name}"

ERRORS = {
    400: "not JSON, or not of the right form",
    401: "the key is missing, wrong or revoked",
    403: "the key lacks the scope",
    404: "there is no such session, gate or round",
    409: "the name or the key was used for something else",
    413: "too large",
    422: "a refused record: it is in the quarantine, and nothing has changed",
    429: "too many requests: Retry-After says when to come again",
    503: "not now: Retry-After says when to come again, with the same key",
}
"""What a request can be answered with instead of what it asked for."""


@dataclass(frozen=True)
class Described:
    """What the document says of a route: what it takes and gives, what a key must be allowed to do (None: nothing), and its errors."""

    method: str
    path: str
    summary: str
    scope: str | None
    answer: Any
    body: type[msgspec.Struct] | None = None
    example: object = None
    status: int = 200
    errors: tuple[int, ...] = ()
    query: Sequence[tuple[str, dict[str, object], str]] = field(default_factory=tuple)
    media: str = "application/json"

    @property
    def parameters(self) -> list[dict[str, object]]:
        """The parameters in the path, the query and the headers."""
        found: list[dict[str, object]] = []
        if "{name}" in self.path:
            found.append({"name": "name", "in": "path", "required": True, "schema": {"type": "string"}, "description": "The session."})
        for name, schema, text in self.query:
            found.append({"name": name, "in": "query", "required": False, "schema": schema, "description": text})
        if self.body is not None and "key" in self.body.__struct_fields__:
            text, schema = "The identity of the event, in place of `key` in the body.", {"type": "string", "minLength": 1, "maxLength": 128}
            found.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": schema, "description": text})
        return found

    def operation(self) -> dict[str, Any]:
        """What goes into the document beside what FastAPI knows."""
        wrong = (*self.errors, *((401, 403, 429) if self.scope else ()), *((400, 413) if self.body is not None else ()), 503)
        content = {} if self.answer is None else {self.media: {"schema": reference(self.answer)}}
        complaint = {"application/json": {"schema": reference(Complaint)}}
        facts: dict[str, Any] = {
            "parameters": self.parameters,
            "responses": {
                str(self.status): {"description": "Done.", "content": content},
                **{str(status): {"description": ERRORS[status], "content": complaint} for status in sorted(set(wrong))},
            },
        }
        if self.scope:
            facts["security"] = [{"bearer": []}]
            facts["description"] = f"Needs a key with the scope `{self.scope}`."
        if self.body is not None:
            media: dict[str, object] = {"schema": reference(self.body)}
            if self.example is not None:
                media["example"] = self.example
            facts["requestBody"] = {"required": True, "content": {"application/json": media}}
        return facts


def reference(type: Any) -> dict[str, Any]:
    """The schema of a type, with references to its parts."""
    return msgspec.json.schema_components([type], ref_template=TEMPLATE)[0][0]


class RawRoute(APIRoute):
    """A route that FastAPI documents, and whose handler reads and writes bytes itself."""

    def get_route_handler(self) -> Any:
        handler = self.endpoint

        async def answer(request: Request) -> Response:
            response: Response = await handler(request)
            return response

        return answer


def document(app: FastAPI, types: Sequence[Any]) -> None:
    """Have the app's document contain the schemas of these types."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            parts = schema.setdefault("components", {})
            parts.setdefault("schemas", {}).update(msgspec.json.schema_components(types, ref_template=TEMPLATE)[1])
            parts["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer", "description": "A key made by `bridle keys add`."}}
        return app.openapi_schema or schema

    app.openapi = openapi  # type: ignore[method-assign]
