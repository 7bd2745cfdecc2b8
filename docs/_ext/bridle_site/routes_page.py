"""The page of the service's routes, from its OpenAPI document; the document itself lies beside the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bridle.service import app
from bridle_site import rst
from bridle_site.docstrings import plain_line


def write(folder: Path) -> None:
    """Write the page and the document."""
    document = app.document()
    text = [
        *rst.heading("HTTP routes of the service", "="),
        "Made from the service's OpenAPI document, for programs: :download:`openapi.json`. A running service has it at ``/openapi.json``.",
        ":doc:`/service` says how to run one and how to talk to it.",
        "",
        *rst.heading("Routes"),
    ]
    for path, methods in document["paths"].items():
        for method, facts in methods.items():
            text += route(method.upper(), path, facts)
    text += rst.heading("Schemas")
    for name, schema in sorted(document["components"]["schemas"].items()):
        text += shape(name, schema)
    (folder / "http").mkdir(parents=True, exist_ok=True)
    (folder / "http" / "openapi.json").write_text(json.dumps(document, indent=1, sort_keys=True), encoding="utf-8")
    rst.write(folder / "http" / "index.rst", text)


def route(method: str, path: str, facts: dict[str, Any]) -> list[str]:
    """One route: what it does, takes and answers."""
    text = [*rst.heading(f"{method} {path}", "~"), plain_line(facts.get("summary", "")) + ".", ""]
    if facts.get("description"):
        text += [plain_line(facts["description"]), ""]
    rows = [[f"``{p['name']}``", p["in"], plain_line(p.get("description", ""))] for p in facts.get("parameters", [])]
    if rows:
        text += rst.table(("parameter", "in", "meaning"), rows, (25, 15, 60))
    body = facts.get("requestBody", {}).get("content", {}).get("application/json", {})
    if body:
        text += [f"Takes {reference(body.get('schema', {}))}.", ""]
    if "example" in body:
        text += rst.directive("code-block", "json", None, json.dumps(body["example"], indent=2).split("\n"))
    answers = []
    for status, each in facts["responses"].items():
        content = next(iter(each.get("content", {}).values()), {}).get("schema", {})
        answers.append([f"``{status}``", plain_line(each["description"]), reference(content) if content else ""])
    return [*text, *rst.table(("status", "means", "answers with"), answers, (12, 58, 30))]


def reference(schema: dict[str, Any]) -> str:
    """What a schema is, with a link where it has a name."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f":ref:`{name} <schema-{name.lower()}>`"
    if "anyOf" in schema:
        return " or ".join(reference(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"a list of {reference(schema.get('items', {}))}"
    limits = [
        f"{text} {schema[key]}"
        for key, text in (("minimum", "at least"), ("maximum", "at most"), ("maxLength", "at most so long:"))
        if key in schema
    ]
    values = [f"one of {', '.join(f'``{value}``' for value in schema['enum'])}"] if "enum" in schema else []
    return ", ".join([str(schema.get("type", "anything")), *limits, *values])


def shape(name: str, schema: dict[str, Any]) -> list[str]:
    """One schema: its fields."""
    needed = schema.get("required", [])
    rows = [
        [f"``{key}``", reference(each), plain_line(each.get("description", "")), "yes" if key in needed else "no"]
        for key, each in schema.get("properties", {}).items()
    ]
    about = " ".join((schema.get("description") or "").split())
    text = [f".. _schema-{name.lower()}:", "", *rst.heading(name, "~"), *([plain_line(about), ""] if about else [])]
    return [*text, *(rst.table(("field", "type", "meaning", "required"), rows, (22, 34, 32, 12)) if rows else [reference(schema), ""])]
