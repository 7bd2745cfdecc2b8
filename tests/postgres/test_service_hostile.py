"""Hostile requests: schemathesis over the document, and records made to hurt. No 500, and nothing changes by what is refused."""

from __future__ import annotations

import copy
import json
import random

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

import bridle
from bridle.service.app import ROUTES, document
from helpers.serving import ROUND, create, serving

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")  # the twin's alarms

DOCUMENT = document()
WITH_BODY = [entry for entry in ROUTES if entry.body is not None]
BOUNDED = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)


def as_written(value):
    """JSON Schema takes 2.0 for a whole number; the service wants whole numbers to be written as such."""
    if isinstance(value, dict):
        return {key: as_written(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_written(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def by_path(entry):
    return f"{entry.method} {entry.path}"


def operation(entry):
    return schemathesis.openapi.from_dict(copy.deepcopy(DOCUMENT))[entry.path][entry.method]


@pytest.mark.parametrize("entry", WITH_BODY, ids=by_path)
def test_what_the_document_allows_is_decoded(entry):
    decode = msgspec.json.Decoder(entry.body).decode

    @BOUNDED
    @given(operation(entry).as_strategy(generation_mode=GenerationMode.POSITIVE))
    def decoded(case):
        decode(msgspec.json.encode(as_written(case.body)))

    decoded()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(f"sqlite:///{tmp_path_factory.mktemp('hostile')}/run.db") as server:
        yield server


@pytest.mark.parametrize("entry", [entry for entry in ROUTES if "events" not in entry.path], ids=by_path)
def test_whatever_schemathesis_sends_is_no_error_of_the_server(server, entry):
    told = entry
    known = {*map(int, DOCUMENT["paths"][told.path][told.method.lower()]["responses"]), 404, 405}
    with server.client() as client:
        create(client, gates={"march": {"budget": 5.0}, "ads": {"budget": 5.0, "rounds": 5}})

        @BOUNDED
        @given(operation(entry).as_strategy(generation_mode=GenerationMode.POSITIVE))
        def sent(case):
            path = told.path.replace("{name}", "shop").replace("{file}", "live.js")
            body = {} if told.body is None else {"content": msgspec.json.encode(case.body)}
            query = {name: value for name, value in (case.query or {}).items() if value is not None}
            answer = client.request(told.method, path, params=query, **body)
            assert answer.status_code < 500, answer.text
            assert answer.status_code in known | {201}, answer.text

        sent()


ODD = [
    None, True, False, 0, -1, 2**63, 10**40, 0.0, -0.0, 1e-320, 1e308, -1e308, 1e71, "", "1", "NaN", "x" * 5000, "\x00", "\ud83d",
    [], [[]], [[], []], [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [[1.0], [2.0]], [None, None], [1.0, None], ["1", "2"], {}, {"a": 1},
    [[[1.0, 2.0]]], [1e200, 1e200],
]  # fmt: skip
FIELDS = ("f", "df", "g", "dg", "modulus", "ticket", "played", "key", "pay", "surplus", "__class__")


def hostile(rng: random.Random) -> bytes:
    """A record with a few fields that are odd, or bytes that are no JSON at all."""
    record: dict[str, object] = dict(ROUND) | {"g": [-0.1]}
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        record[rng.choice(FIELDS)] = rng.choice(ODD)
    if rng.random() < 0.1:
        record.pop(rng.choice(list(record)))
    raw = json.dumps(record).encode()
    if rng.random() < 0.1:
        place = rng.randrange(len(raw))
        raw = raw[:place] + bytes([rng.randrange(256)]) + raw[place + rng.randrange(3) :]
    return raw


def test_hostile_records_are_no_error_of_the_server_and_change_nothing(server):
    rng = random.Random(17)
    twin = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2)), most_constraints=1000)
    taken: set[object] = set()
    refused = 0
    with server.client() as client:
        create(client, "hostile")
        for _ in range(1500):
            raw = hostile(rng)
            answer = client.post("/v1/sessions/hostile/observe", content=raw)
            assert answer.status_code in (200, 400, 409, 422), (raw, answer.text)
            if answer.status_code != 200:
                refused += 1
                continue
            record = json.loads(raw)
            key = record.pop("key", None)
            record.pop("pay", None)
            if key is not None and key in taken:
                continue
            taken.add(key)
            twin.observe(**record)
            assert answer.json()["next"] == twin.decide().tolist()
        assert refused > 300
        assert twin.rounds > 200
        assert client.get("/v1/sessions/hostile").json()["round"] == twin.rounds
        assert json.loads(client.get("/v1/sessions/hostile/certificate").text) == json.loads(twin.certificate().json())
        assert client.get("/v1/sessions/hostile/quarantine").json()["count"] == refused
