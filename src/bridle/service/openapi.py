"""The OpenAPI document: made from the same structs that requests are decoded with, so that it cannot say anything else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import msgspec

from bridle import __version__
from bridle.service.bodies import LONGEST_KEY, Complaint
from bridle.service.calls import JSON, Handler

SUMMARY = "Decisions made online under constraints that are revealed too late"
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
class ServiceRoute:
    """A route: what a key must be allowed to do there (None: no key is asked for), who answers, with what, and what it takes."""

    method: str
    path: str
    summary: str
    scope: str | None
    handler: Handler
    answer: Any = dict[str, Any]
    body: type[msgspec.Struct] | None = None
    example: object = None
    status: int = 200
    query: Sequence[tuple[str, dict[str, object], str]] = ()
    media: str = JSON

    @property
    def errors(self) -> list[int]:
        """The statuses that its requests can be answered with instead."""
        found = {503, *((400,) if self.query else ()), *((401, 403, 429) if self.scope else ())}
        if self.body is not None:
            found |= {400, 404, 409, 413, 422}
        elif "{name}" in self.path:
            found |= {404, 422} if self.method == "GET" else {404}
        return sorted(found)


def document(routes: Sequence[ServiceRoute]) -> dict[str, Any]:
    """The document of these routes."""
    types = [Complaint, *(each for route in routes for each in (route.body, route.answer) if each is not None)]
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "bridle",
            "summary": "Decisions made online under constraints that are revealed too late",
            "version": __version__,
        },
        "paths": paths,
        "components": {
            "schemas": msgspec.json.schema_components(types, ref_template=TEMPLATE)[1],
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": "A key made by `bridle keys add`."}},
        },
    }


def operation(route: ServiceRoute) -> dict[str, Any]:
    """What the document says of a route."""
    answers = {route.status: ("Done.", {route.media: media(route.answer)})}
    answers |= {status: (ERRORS[status], {JSON: media(Complaint)}) for status in route.errors}
    facts: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.method.lower() + re.sub(r"\W+", "_", route.path),
        "parameters": parameters(route),
        "responses": {str(status): {"description": text, "content": content} for status, (text, content) in answers.items()},
    }
    if route.scope:
        facts |= {"security": [{"bearer": []}], "description": f"Needs a key with the scope `{route.scope}`."}
    if route.body is not None:
        facts["requestBody"] = {"required": True, "content": {JSON: media(route.body) | {"example": route.example}}}
    return facts


def parameters(route: ServiceRoute) -> list[dict[str, object]]:
    """The parameters in the path, the query and the headers of a route."""
    found: list[tuple[str, str, dict[str, object], str]] = [("query", *each) for each in route.query]
    if "{name}" in route.path:
        found.insert(0, ("path", "name", {"type": "string"}, "The session."))
    if route.body is not None and "key" in route.body.__struct_fields__:
        schema: dict[str, object] = {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY}
        found.append(("header", "Idempotency-Key", schema, "The identity of the event, in place of `key` in the body."))
    return [
        {"name": name, "in": place, "required": place == "path", "schema": schema, "description": text}
        for place, name, schema, text in found
    ]


def media(type: Any) -> dict[str, Any]:
    """The schema of a type, with references to its parts."""
    return {"schema": msgspec.json.schema_components([type], ref_template=TEMPLATE)[0][0]}


# --- to be read ---------------------------------------------------------------------------------------------------------------------------

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark; }
code, pre { font: 13px/1.4 ui-monospace, monospace; } pre { overflow-x: auto; padding: .5rem; border: 1px solid #8884; border-radius: 4px; }
summary { cursor: pointer; padding: .2rem 0; } b { display: inline-block; min-width: 4.5rem; }
"""


def html(document: dict[str, Any]) -> str:
    """The document as a page that needs nothing from elsewhere: routes with an example and their errors; then the schemas."""
    parts = []
    for path, methods in document["paths"].items():
        for method, facts in methods.items():
            takes = "".join(
                f"<p>takes <code>{escape(body['schema']['$ref'].rpartition('/')[2])}</code>, for example</p>{_json(body['example'])}"
                for body in facts.get("requestBody", {}).get("content", {}).values()
            )
            answers = "".join(f"<li>{status}: {escape(each['description'])}</li>" for status, each in facts["responses"].items())
            title = f"<b>{method.upper()}</b> <code>{escape(path)}</code> {escape(facts['summary'])}"
            parts.append(_folded(title, f"<p>{escape(facts.get('description', ''))}</p>{takes}<ul>{answers}</ul>"))
    schemas = [_folded(f"<code>{escape(name)}</code>", _json(each)) for name, each in sorted(document["components"]["schemas"].items())]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>bridle: routes</title>"
        f"<style>{STYLE}</style><h1>bridle {escape(document['info']['version'])}</h1><p>{escape(document['info']['summary'])}. "
        f"<a href='/openapi.json'>The document</a> for programs.</p>{''.join(parts)}<h2>Schemas</h2>{''.join(schemas)}</html>"
    )


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>{text}</details>"


def _json(value: object) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2))}</pre>"
