"""The OpenAPI document says what the service does: what it allows is decoded, what is decoded it allows, and every example works."""

from __future__ import annotations

import jsonschema_rs
import msgspec
import pytest

from bridle.service.app import ROUTES, document
from helpers.serving import create, serving

DOCUMENT = document()
WITH_BODY = [entry for entry in ROUTES if entry.body is not None]


def whole(schema):
    """A schema with the schemas that it refers to."""
    return {**schema, "components": DOCUMENT["components"]}


def body_schema(entry):
    operation = DOCUMENT["paths"][entry.path][entry.method.lower()]
    return whole(operation["requestBody"]["content"]["application/json"]["schema"])


def by_path(entry):
    return f"{entry.method} {entry.path}"


def test_every_route_is_documented_with_its_answers_and_errors():
    described = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert described == {(entry.method, entry.path) for entry in ROUTES}
    for entry in ROUTES:
        told = entry
        operation = DOCUMENT["paths"][told.path][told.method.lower()]
        assert operation["summary"]
        assert str(told.status) in operation["responses"]
        if told.scope is not None:
            assert {"401", "403", "429", "503"} <= operation["responses"].keys()
            assert operation["security"] == [{"bearer": []}]
        if told.body is not None:
            assert {"400", "413", "422"} <= operation["responses"].keys()
            assert "example" in operation["requestBody"]["content"]["application/json"]


def test_every_schema_that_is_referred_to_is_there():
    def references(value):
        if isinstance(value, dict):
            yield from (each for key, each in value.items() if key == "$ref")
            for each in value.values():
                yield from references(each)
        elif isinstance(value, list):
            for each in value:
                yield from references(each)

    known = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    assert set(references(DOCUMENT)) <= known


@pytest.mark.parametrize("entry", WITH_BODY, ids=by_path)
def test_document_and_decoder_agree_on_the_fields_and_the_example(entry):
    schema, body = body_schema(entry), entry.body
    name = schema["$ref"].rpartition("/")[2]
    told = DOCUMENT["components"]["schemas"][name]
    assert set(told["properties"]) == set(body.__struct_encode_fields__)
    assert told.get("additionalProperties") is False
    needed = {field.name for field in msgspec.structs.fields(body) if field.required}
    assert set(told.get("required", ())) == needed
    jsonschema_rs.validate(schema, entry.example)
    decode = msgspec.json.Decoder(body).decode
    decode(msgspec.json.encode(entry.example))
    for missing in needed:
        less = {key: value for key, value in entry.example.items() if key != missing}
        with pytest.raises(jsonschema_rs.ValidationError):
            jsonschema_rs.validate(schema, less)
        with pytest.raises(msgspec.ValidationError):
            decode(msgspec.json.encode(less))
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(schema, entry.example | {"surplus": 1})
    with pytest.raises(msgspec.ValidationError):
        decode(msgspec.json.encode(entry.example | {"surplus": 1}))


@pytest.mark.slow
def test_every_example_is_answered_as_documented(tmp_path):
    with serving(f"sqlite:///{tmp_path}/run.db") as server, server.client() as client:
        gates = {"march": {"budget": 500.0}, "ads": {"budget": 500.0, "rounds": 10}}
        create(client, "shop-1", domain={"kind": "box", "low": 0.0, "high": 40.0, "dim": 1}, names=["latency"], gates=gates)
        ticket = client.post("/v1/sessions/shop-1/ask", json={}).json()["ticket"]
        for entry in ROUTES:
            told = entry
            if told.method == "DELETE" or told.media != "application/json" or "{file}" in told.path or "events" in told.path:
                continue
            body = {"ticket": ticket} if told.path.endswith("/forget") else told.example
            more = {} if told.body is None else {"json": body}
            answer = client.request(told.method, told.path.replace("{name}", "shop-1"), **more)
            if told.path.rpartition("/")[2] in ("weights", "rates", "prices"):
                assert answer.status_code == 422  # this policy has none
                continue
            assert answer.status_code == told.status, (told.path, answer.text)
            responses = DOCUMENT["paths"][told.path][told.method.lower()]["responses"]
            jsonschema_rs.validate(whole(responses[str(told.status)]["content"]["application/json"]["schema"]), answer.json())
