"""A few of the hundred thousand hostile requests of `tools/soak.py`, TLS from end to end, and what wrong keys cost."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import replace

import httpx
import pytest

import bridle
from bridle.core import Observation
from bridle.service import auth
from bridle.service.config import ServiceConfig
from bridle.service.service import Service
from helpers.hostile_requests import NAMES, hostile_requests
from helpers.serving import ANYTIME, ROUND, Server, new_key

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")]  # servers of their own; alarms


def test_hostile_requests_are_no_error_and_change_nothing(tmp_path):
    run = hostile_requests(tmp_path, 240, own_process=False)
    assert run.wrong == []
    assert run.requests == 240
    assert run.accepted > 20
    assert run.refused > 100


def test_a_refusal_that_changes_something_is_found(tmp_path, monkeypatch):
    """The mistake is planted: whatever is refused counts as a round."""
    own = Service.quarantine

    async def meddle(self, hosted, sentence, raw):
        await own(self, hosted, sentence, raw)
        if hosted.name == NAMES[0]:
            hosted._core.apply(Observation(1.0, [0.5, 0.5]))

    monkeypatch.setattr(Service, "quarantine", meddle)
    run = hostile_requests(tmp_path, 120, own_process=False)
    assert any(NAMES[0] in each for each in run.wrong)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate that says it is this machine, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    files = folder / "server.pem", folder / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, *names, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def test_rounds_over_tls_with_a_certificate_that_is_verified(tmp_path, certificate):
    db, (cert, key) = f"sqlite:///{tmp_path}/run.db", certificate
    text = new_key(db, "admin")
    server = Server(replace(ServiceConfig(db=db, log="error"), tls_cert=str(cert), tls_key=str(key)))
    try:
        assert server.url.startswith("https://")
        known = ssl.create_default_context(cafile=str(cert))
        with bridle.Client(server.url, key=text, transport=httpx.HTTPTransport(verify=known), retries=200) as client:
            session = client.create("shop", "anytime", bridle.Box(-1.0, 1.0, dim=2))
            twin = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2)), most_constraints=1000)
            for _ in range(3):
                session.observe(**ROUND)
                twin.observe(**ROUND)
            assert session.decide().tolist() == twin.decide().tolist()
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(f"{server.url}/healthz")
        with pytest.raises(httpx.TransportError):
            httpx.get(server.url.replace("https://", "http://") + "/healthz")
    finally:
        server.stop()


def test_every_wrong_key_is_hashed_once_and_compared_whole(monkeypatch):
    text, key = auth.make_key("shop", ["read"], 0.0)
    ring, hashes, compared = {key.id: key}, [], []
    own_hash, own_compare = auth.hashed, auth.hmac.compare_digest
    monkeypatch.setattr(auth, "hashed", lambda secret, salt: hashes.append(len(secret)) or own_hash(secret, salt))
    monkeypatch.setattr(auth.hmac, "compare_digest", lambda a, b: compared.append((len(a), len(b))) or own_compare(a, b))
    name, _, secret = text.removeprefix(auth.PREFIX).partition("_")
    for wrong in (f"{name}_{secret[:-1]}!", f"{name}_!{secret[1:]}", f"{'0' * 12}_{secret}"):
        assert auth.recognise(auth.PREFIX + wrong, ring) is None
    assert hashes == [len(secret)] * 3
    assert compared == [(32, 32)] * 3
    assert auth.recognise(text, ring) is key


def test_a_name_that_is_there_twice_is_refused(tmp_path):
    server = Server(ServiceConfig(db=f"sqlite:///{tmp_path}/run.db", insecure=True, log="error"))
    try:
        server.wait()
        with server.client() as client:
            assert client.post("/v1/sessions", json={"name": "shop", **ANYTIME}).status_code == 201
            whole = b'"df": [1.0, 0.5], "g": [0.1], "dg": [[-1.0, 0.25]]'
            bodies = {
                "observe": (b'{"f": 0.3, "f": 0.4, %s}' % whole, b'{"f": 0.3, "\\u0066": 0.4, %s}' % whole, b'{"pay": {"a": 1, "a": 2}}'),
                "batch": (b'{"events": [{"kind": "observe", "f": 0.3, "f": 0.3, %s}]}' % whole, b'{"events": [], "events": []}'),
                "limits": (b'{"limit": 0, "offset": 0.1, "limit": 0}',),
            }
            for verb, each in bodies.items():
                for body in each:
                    answer = client.post(f"/v1/sessions/shop/{verb}", content=body)
                    assert answer.status_code == 400, body
                    assert "is there twice" in answer.json()["error"]
            assert client.get("/v1/sessions/shop").json()["round"] == 0
            for event in (b'"f": 0.3, "f": 0.4, "g": [0.2], %s' % whole, b'"f": 0.3, %s, "key": null, "key": null' % whole):
                answer = client.post("/v1/sessions/shop/batch", content=b'{"events": [{%s}]}' % event)  # as many names as with a kind
                assert answer.status_code == 400, event
            assert client.get("/v1/sessions/shop").json()["round"] == 0
            twice = b'{"events": [{"kind": "observe", "f": 0.3, %s}, {"kind": "observe", "f": 0.3, %s}]}' % (whole, whole)
            assert client.post("/v1/sessions/shop/batch", content=twice).json()["round"] == 2
    finally:
        server.stop()
