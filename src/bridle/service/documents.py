"""The document of the routes as a page that needs nothing from elsewhere."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from starlette.responses import Response

from bridle.service.calls import Call
from bridle.service.door import POLICY

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark; }
code, pre { font: 13px/1.4 ui-monospace, monospace; } pre { overflow-x: auto; padding: .5rem; border: 1px solid #8884; border-radius: 4px; }
summary { cursor: pointer; padding: .2rem 0; } b { display: inline-block; min-width: 4.5rem; }
"""


async def docs(call: Call) -> Response:
    """GET /docs."""
    text = page(call.request.app.openapi())
    policy = POLICY.replace("style-src 'self'", "style-src 'unsafe-inline'")
    return Response(text, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": policy})


def page(document: dict[str, Any]) -> str:
    """The document as HTML: routes with their scope, an example and their errors; then the schemas."""
    parts = []
    for path, methods in document["paths"].items():
        for method, facts in methods.items():
            content = facts.get("requestBody", {}).get("content", {}).get("application/json", {})
            body = f"<p>for example</p><pre>{escape(json.dumps(content['example'], indent=2))}</pre>" if "example" in content else ""
            shape = f"<p>takes <code>{escape(content['schema'].get('$ref', '').rpartition('/')[2])}</code></p>" if content else ""
            errors = "".join(f"<li>{status}: {escape(each['description'])}</li>" for status, each in facts["responses"].items())
            parts.append(
                f"<details><summary><b>{method.upper()}</b> <code>{escape(path)}</code> {escape(facts.get('summary', ''))}</summary>"
                f"<p>{escape(facts.get('description', ''))}</p>{shape}{body}<ul>{errors}</ul></details>"
            )
    schemas = "".join(
        f"<details><summary><code>{escape(name)}</code></summary><pre>{escape(json.dumps(schema, indent=2))}</pre></details>"
        for name, schema in sorted(document["components"]["schemas"].items())
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>bridle: routes</title>"
        f"<style>{STYLE}</style><h1>bridle {escape(document['info']['version'])}</h1><p>{escape(document['info']['summary'])}. "
        f"<a href='/openapi.json'>The document</a> for programs.</p>{''.join(parts)}<h2>Schemas</h2>{schemas}</html>"
    )
