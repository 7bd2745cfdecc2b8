"""Who may do what over HTTP, how much, and that no secret gets out."""

from __future__ import annotations

import io
import json
import logging
import re
import time

import httpx
import pytest

from bridle.database import open_store
from bridle.database.store import Keys
from bridle.service import auth, logs
from bridle.service.app import ROUTES
from bridle.service.config import ServiceConfig, ServiceLimits
from bridle.service.server import warn_of_sqlite
from helpers.serving import ANYTIME, ROUND, Server, create, new_key, serving, state_of

pytestmark = pytest.mark.slow  # servers of their own


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    db = f"sqlite:///{tmp_path_factory.mktemp('secure')}/run.db"
    keys = {scope: new_key(db, scope, name=f"{scope} key") for scope in ("decide", "observe", "read", "admin")}
    limits = ServiceLimits(body=20_000, batch=5, dim=50, sessions=20)
    with serving(db, insecure=False, limits=limits) as server:
        with server.client(keys["admin"]) as client:
            create(client, gates={"march": {"budget": 5.0}, "ads": {"budget": 5.0, "rounds": 5}})
        yield server, db, keys


def asked(entry):
    """A request of a route that would be granted, but for its key."""
    told = entry
    body = {"gate": "ads", "value": 0.1} if told.path.endswith("/bid") else told.example
    if told.path == "/v1/sessions" and told.method == "POST":
        body = {"name": "shop", **ANYTIME, "gates": {"march": {"budget": 5.0}, "ads": {"budget": 5.0, "rounds": 5}}}
    return told.method, told.path.replace("{name}", "shop"), {} if told.body is None else {"json": body}


GUARDED = [entry for entry in ROUTES if entry.scope is not None]


@pytest.mark.parametrize("entry", GUARDED, ids=lambda entry: f"{entry.method} {entry.path}")
def test_every_route_asks_for_a_key_that_may_do_this(place, entry):
    server, _, keys = place
    method, path, more = asked(entry)
    with server.client() as client:
        for header in (None, "", "Bearer", f"Basic {keys['admin']}", f"Bearer {keys['admin'][:-1]}", "Bearer brk_x_y", keys["admin"]):
            answer = client.request(method, path, headers={} if header is None else {"Authorization": header}, **more)
            assert answer.status_code == 401, (header, answer.text)
            assert answer.headers["www-authenticate"].startswith("Bearer")
        needed = entry.scope
        for scope in ("decide", "observe", "read"):
            answer = client.request(method, path, headers={"Authorization": f"Bearer {keys[scope]}"}, **more)
            if needed == "a key":
                assert (answer.status_code == 403) == (scope != "observe"), "its example has an observation in it"
            elif scope != needed:
                assert answer.status_code == 403
                assert f"lacks the scope {needed}" in answer.json()["error"]


def test_open_routes_need_no_key_and_tell_nothing(place):
    server, _, _ = place
    with server.client() as client:
        assert client.get("/healthz").json() == {"status": "alive"}
        assert client.get("/readyz").json() == {"status": "ready"}
        for path in ("/openapi.json", "/docs"):
            assert "shop" not in client.get(path).text.replace("shop-17", "")
        closed = {(entry.method, entry.path) for entry in ROUTES if entry.scope is None}
        assert {path for _, path in closed} <= {"/healthz", "/readyz", "/openapi.json", "/docs"}


def test_a_valid_key_is_never_refused_while_a_server_starts(tmp_path, monkeypatch):
    db = f"sqlite:///{tmp_path}/run.db"
    text, own = new_key(db, "read"), Keys.list

    def slow(self):
        time.sleep(0.3)
        return own(self)

    monkeypatch.setattr(Keys, "list", slow)
    monkeypatch.setattr(auth, "AT_MOST_EVERY", 30.0)  # a second read would come too late
    server = Server(ServiceConfig(db=db, log="error"))
    try:
        with server.client(text) as client:
            found, until = [], time.monotonic() + 60.0
            while 200 not in found and time.monotonic() < until:
                found.append(client.get("/v1/sessions").status_code)
        assert set(found) <= {200, 503}, found
        assert found[-1] == 200
    finally:
        server.stop()


def test_a_revoked_key_opens_nothing_more(place):
    server, db, _ = place
    text = new_key(db, "read", name="short-lived")
    with server.client(text) as client:
        assert client.get("/v1/sessions/shop").status_code == 200
        with open_store(db) as store:
            assert store.keys.revoke(text.split("_")[1], 1.0)
        unknown = {"Authorization": "Bearer brk_other_key"}  # has the keys read again
        assert client.get("/v1/sessions/shop", headers=unknown).status_code == 401
        assert client.get("/v1/sessions/shop").status_code == 401


def test_what_is_refused_for_its_key_changes_nothing(place):
    server, _, keys = place
    with server.client(keys["admin"]) as admin, server.client(keys["read"]) as reader:
        before = state_of(admin)
        count = admin.get("/v1/sessions/shop/quarantine").json()["count"]
        assert reader.post("/v1/sessions/shop/observe", json=ROUND).status_code == 403
        assert reader.post("/v1/sessions/shop/observe", content=b"{").status_code == 403
        assert state_of(admin) == before
        assert admin.get("/v1/sessions/shop/quarantine").json()["count"] == count


def test_bodies_and_batches_that_are_too_large_are_413(place):
    server, _, keys = place
    with server.client(keys["admin"]) as client:
        before = state_of(client)
        large = json.dumps(ROUND | {"df": [0.0] * 10_000}).encode()
        assert client.post("/v1/sessions/shop/observe", content=large).status_code == 413
        assert client.post("/v1/sessions/shop/observe", content=(part for part in (large[:15_000], large[15_000:]))).status_code == 413
        answer = client.post("/v1/sessions/shop/batch", json={"events": [{"kind": "decide"}] * 6})
        assert answer.status_code == 413
        assert "at most 5 events, not 6" in answer.json()["error"]
        assert state_of(client) == before


def test_large_sessions_are_refused_before_anything_is_made(place):
    server, _, keys = place
    with server.client(keys["admin"]) as client:
        answer = client.post("/v1/sessions", json={"name": "big", "policy": "anytime", "domain": {"kind": "ball", "dim": 51}})
        assert answer.status_code == 422
        assert "at most 50" in answer.json()["error"]
        assert client.get("/v1/sessions/big").status_code == 404


def test_requests_of_one_key_are_limited_and_others_go_on(tmp_path):
    db = f"sqlite:///{tmp_path}/run.db"
    one, two = new_key(db, "admin"), new_key(db, "admin")
    with serving(db, insecure=False, limits=ServiceLimits(rate=0.01)) as server, server.client(one) as first, server.client(two) as second:
        statuses = [first.get("/v1/sessions").status_code for _ in range(60)]
        assert statuses == [200] + [429] * 59
        assert second.get("/v1/sessions").status_code == 200
        refused = first.get("/v1/sessions")
        assert int(refused.headers["retry-after"]) >= 1


def test_sessions_of_one_key_are_limited(tmp_path):
    db = f"sqlite:///{tmp_path}/run.db"
    one, two = new_key(db, "admin"), new_key(db, "admin")
    with serving(db, insecure=False, limits=ServiceLimits(sessions=2)) as server, server.client(one) as first, server.client(two) as second:
        create(first, "a")
        create(first, "b")
        assert first.post("/v1/sessions", json={"name": "c", **ANYTIME}).status_code == 429
        assert first.get("/v1/sessions/c").status_code == 404
        create(second, "c")
        first.delete("/v1/sessions/a")
        create(first, "d")


def test_the_audit_says_who_changed_what(place):
    server, _, keys = place
    with server.client(keys["admin"]) as client:
        client.post("/v1/sessions/shop/budget", json={"gate": "march", "budget": 7.0})
        latest = client.get("/v1/audit?limit=1").json()["audit"][0]
        assert (latest["session"], latest["who"]) == ("shop", f"admin key ({keys['admin'].split('_')[1]})")
        assert "budget of march to 7.0" in latest["what"]


def test_answers_carry_an_id_and_headers_that_keep_browsers_from_mischief(place):
    server, _, keys = place
    with server.client(keys["read"]) as client:
        answer = client.get("/v1/sessions", headers={"X-Request-Id": "order-17"})
        assert answer.headers["x-request-id"] == "order-17"
        for mischief in ("a b", "x" * 65, "<script>"):
            assert re.fullmatch("[0-9a-f]{16}", client.get("/v1/sessions", headers={"X-Request-Id": mischief}).headers["x-request-id"])
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "server" not in answer.headers
        assert "default-src 'none'" in client.get("/docs").headers["content-security-policy"]
        assert client.get("/none", headers={"X-Request-Id": "x"}).json() == {"error": "there is no GET /none", "request": "x"}


def test_no_secret_is_in_any_answer_or_log(tmp_path):
    db, stream = f"sqlite:///{tmp_path}/run.db", io.StringIO()
    text = new_key(db, "admin")
    secret = text.split("_", 2)[2]
    seen = []
    loggers = [logging.getLogger(name) for name in ("bridle.service", "uvicorn", "uvicorn.error")]
    before = [(logger, logger.handlers[:], logger.level) for logger in loggers]
    try:
        logs.set_up(stream, "debug")
        with serving(db, insecure=False) as server, server.client(text) as client:
            logging.getLogger("bridle.service").setLevel("DEBUG")
            create(client)
            for entry in ROUTES:
                method, path, more = asked(entry)
                for headers in ({}, {"Authorization": f"Bearer {text}x"}, {"Authorization": text}, {"X-Request-Id": text}):
                    answer = client.request(method, path, headers=headers, **more)
                    seen.append(answer.text + str(answer.headers))
            with httpx.Client(base_url=server.url) as stranger:
                seen.append(stranger.get("/v1/sessions", headers={"Authorization": f"Bearer {text[:-2]}"}).text)
    finally:
        for logger, handlers, level in before:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = True
    written = stream.getvalue()
    lines = [json.loads(line) for line in written.splitlines()]
    assert any(line["event"] == "answered" and line["path"] == "/v1/sessions/shop/observe" for line in lines)
    assert all({"time", "level", "request", "event"} <= line.keys() for line in lines)
    assert secret not in written
    assert not [each for each in seen if secret in each]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "URL"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 403),  # a name that its owner lets point here
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
        ({"Host": "[::1"}, 403),
    ],
)
def test_without_keys_pages_of_others_are_refused(open_place, headers, status):
    with open_place.client() as client:
        rounds = client.get("/v1/sessions/shop").json()["round"]
        told = {name: open_place.url if value == "URL" else value for name, value in headers.items()}
        assert client.post("/v1/sessions/shop/observe", json=ROUND, headers=told).status_code == status
        assert client.get("/v1/sessions/shop").json()["round"] == rounds + (status == 200)
        assert client.get("/v1/sessions", headers=told).status_code == status


@pytest.fixture(scope="module")
def open_place(tmp_path_factory):
    with serving(f"sqlite:///{tmp_path_factory.mktemp('open')}/run.db") as server:
        with server.client() as client:
            create(client)
        yield server


def test_old_versions_of_sqlite_are_warned_of(monkeypatch):
    warned = []
    monkeypatch.setattr(logs.LOG, "log", lambda level, text, **_: warned.append(text))
    assert warn_of_sqlite((3, 40, 1))
    assert warn_of_sqlite((3, 51, 2))
    assert not warn_of_sqlite((3, 51, 3))
    assert not warn_of_sqlite((3, 54, 0))
    assert ["can damage a database" in text for text in warned] == [True, True]
