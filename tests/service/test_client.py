"""The client: the verbs of a session, and events that count once whatever happens to their answers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import httpx
import numpy as np
import pytest

import bridle
from bridle.service import remote
from bridle.service.config import ServiceLimits
from bridle.service.recipes import domain_of
from bridle.service.remote import RefusedByServer, Unanswered, said_domain, said_event, said_session
from helpers.fake_service import FakeService, hostile

pytestmark = pytest.mark.filterwarnings("ignore::bridle.BridleWarning")  # of the service's side: records here are of no convex function
BOX = bridle.Box(-1.0, 1.0, dim=3)


def session() -> bridle.Session:
    return bridle.Session(bridle.policy("anytime", BOX), names=["latency", "spend"])


def client(handler, **options) -> bridle.Client:
    return bridle.Client("http://service.test", key="k", transport=httpx.MockTransport(handler), **options)


@pytest.fixture
def impatient(monkeypatch):
    """Pauses are made, but not waited for."""
    made: list[float] = []
    monkeypatch.setattr("bridle.service.client.time.sleep", made.append)

    async def pause(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr("asyncio.sleep", pause)
    return made


def feedback(rng) -> dict[str, object]:
    return {"f": rng.normal(), "df": rng.normal(size=3), "g": rng.normal(size=2) - 0.5, "dg": rng.normal(size=(2, 3))}


def test_the_verbs_are_those_of_a_session(impatient):
    fake, twin, rng = FakeService(session()), session(), np.random.default_rng(0)
    remote = client(fake).session("a session/with ü")
    for t in range(60):
        assert np.array_equal(remote.decide(), twin.decide())
        record = feedback(rng)
        if t % 5 == 0:
            ticket, own = remote.ask(), twin.ask()
            assert (ticket.id, ticket.x.tolist()) == (own.id, own.x.tolist())
            if t % 10:
                remote.observe(**record, ticket=ticket)
                twin.observe(**record, ticket=own)
            else:
                remote.forget(ticket)
                twin.forget(own)
        elif t % 7 == 0:
            functions = {"cost": bridle.Affine(record["df"]), "constraints": [bridle.Affine(row, -0.1) for row in record["dg"]]}
            assert np.array_equal(remote.step(**functions), twin.step(**functions))
        else:
            remote.observe(**record)
            twin.observe(**record)
    assert (remote.rounds, remote.cost, remote.ccv) == (twin.rounds, twin.cost, twin.ccv)
    proof, own = remote.certificate(), twin.certificate()
    assert type(proof) is type(own)
    assert json.loads(proof.json()) == json.loads(own.json())
    assert remote.report() == twin.report()
    assert impatient == []


def test_a_round_is_one_request():
    fake, rng = FakeService(session()), np.random.default_rng(0)
    remote = client(fake).session("shop")
    for _ in range(10):
        remote.decide()
        remote.decide()
        remote.observe(**feedback(rng))
    assert [verb for _, verb, _ in fake.log] == ["decide", "decide"] + ["observe"] * 10


def test_a_decision_brought_along_is_the_callers_own():
    fake, rng = FakeService(session()), np.random.default_rng(0)
    remote = client(fake).session("shop")
    remote.observe(**feedback(rng))
    x = remote.decide()
    x += 1.0
    assert np.array_equal(remote.decide(), fake.session.decide())


@pytest.mark.parametrize("seed", range(5))
def test_no_event_counts_twice_or_is_lost_on_a_hostile_line(seed, impatient):
    rng = np.random.default_rng(seed)
    fake, twin = FakeService(session()), session()
    remote = client(hostile(fake, np.random.default_rng(100 + seed), 0.5), retries=60).session("shop")
    tickets: list[tuple[bridle.Ticket, bridle.Ticket]] = []
    for _ in range(80):
        if rng.random() < 0.3:
            tickets.append((remote.ask(), twin.ask()))
        elif tickets and rng.random() < 0.5:
            (theirs, own), record = tickets.pop(int(rng.integers(len(tickets)))), feedback(rng)
            remote.observe(**record, ticket=theirs)
            twin.observe(**record, ticket=own)
        else:
            record = feedback(rng)
            remote.observe(**record)
            twin.observe(**record)
        assert np.array_equal(remote.decide(), twin.decide())
    lost = len(fake.log) - len({key for _, _, key in fake.log if key})
    assert lost > 20, "the line must have broken after the server had counted"
    assert fake.session.certificate().json() == twin.certificate().json()
    assert fake.played == 80


def test_the_asynchronous_form_says_the_same(impatient):
    async def play() -> tuple[float, int, np.ndarray]:
        rng, line = np.random.default_rng(3), np.random.default_rng(4)
        transport = httpx.MockTransport(hostile(fake, line, 0.4))
        async with bridle.AsyncClient("http://service.test", key="k", transport=transport, retries=60) as service:
            remote = service.session("shop")
            for _ in range(30):
                x = await remote.decide()
                await remote.observe(**feedback(rng))
            ticket = await remote.ask()
            await remote.forget(ticket)
            return await remote.cost, await remote.rounds, x

    fake, twin, rng = FakeService(session()), session(), np.random.default_rng(3)
    cost, rounds, x = asyncio.run(play())
    for _ in range(30):
        last = twin.decide()
        twin.observe(**feedback(rng))
    assert (cost, rounds, x.tolist()) == (twin.cost, twin.rounds, last.tolist())
    assert fake.played == 32


def test_both_forms_have_the_same_verbs():
    from bridle.service.client import AsyncRemoteSession, RemoteSession

    def names(kind):
        return {name for name in dir(kind) if not name.startswith("_")}

    assert names(RemoteSession) == names(AsyncRemoteSession)
    own = {
        "decide",
        "ask",
        "observe",
        "forget",
        "step",
        "certificate",
        "report",
        "rounds",
        "cost",
        "ccv",
        "rates",
        "weights",
        "price",
        "pending",
    }
    assert own <= names(RemoteSession) & names(bridle.Session)
    assert all(getattr(RemoteSession, name).__doc__ for name in names(RemoteSession))


def test_a_refusal_has_the_servers_sentence():
    fake = FakeService(session())
    remote = client(fake).session("shop")
    with pytest.raises(bridle.InputError, match="df") as refused:
        remote.observe(f=1.0, df=[1.0, 2.0])
    assert isinstance(refused.value, RefusedByServer)
    assert (refused.value.status, refused.value.request, fake.session.rounds) == (422, "r-1", 0)
    with pytest.raises(bridle.InputError, match="df") as here:
        fake.session.observe(f=1.0, df=[1.0, 2.0])
    assert str(refused.value) == str(here.value)


def test_an_identity_can_be_given_and_used_again():
    fake, record = FakeService(session()), feedback(np.random.default_rng(0))
    for _ in range(3):  # a program that was broken off and began again
        client(fake).session("shop").observe(**record, key="order-17")
    assert fake.session.rounds == 1
    with pytest.raises(bridle.InputError, match="the key was used before"):
        client(fake).session("shop").observe(**record | {"f": 99.0}, key="order-17")
    for wrong in ("", "a" * 129, "line\nbreak", "ü", 7):
        with pytest.raises(bridle.InputError, match="key must be text"):
            client(fake).session("shop").observe(**record, key=wrong)
    assert len(fake.log) == 4


def test_giving_up_says_with_which_identity_to_ask_again(impatient):
    fake, broken, record = FakeService(session()), [True], feedback(np.random.default_rng(0))

    def line(request: httpx.Request) -> httpx.Response:
        answer = fake(request)
        if broken[0]:
            raise httpx.ReadTimeout("too long", request=request)
        return answer

    remote = client(line, retries=3).session("shop")
    with pytest.raises(Unanswered, match=r"sent 4 times.*ReadTimeout.*not known") as gave_up:
        remote.observe(**record)
    assert gave_up.value.attempts == 4
    assert len(impatient) == 3
    broken[0] = False
    remote.observe(**record, key=gave_up.value.key)
    assert fake.session.rounds == 1


def test_the_server_says_how_long_to_wait_and_pauses_grow(impatient):
    waits = iter(["1.5", "99999", "Wed, 21 Oct 2015 07:28:00 GMT", None, None, None, None, None, None, None, None])
    fake = FakeService(session())

    def line(request: httpx.Request) -> httpx.Response:
        wait = next(waits, "end")
        if wait == "end":
            return fake(request)
        return httpx.Response(503, headers={} if wait is None else {"Retry-After": wait}, json={"error": "the store is in trouble"})

    client(line).session("shop").observe(f=1.0, df=[1.0, 0.0, 0.0])
    assert impatient[:3] == [1.5, remote.LONGEST_ORDER, remote.LONGEST_PAUSE]
    growing = impatient[3:]
    longest = [min(remote.LONGEST_PAUSE, remote.FIRST_PAUSE * 2**n) for n in range(3, 11)]
    assert all(0.5 * most <= pause <= most for most, pause in zip(longest, growing, strict=True))


def test_a_session_elsewhere_is_followed_and_its_owner_remembered(impatient):
    fake, asked, owner = FakeService(session()), [], ["two.test:9000"]

    def line(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        if request.url.netloc.decode() == owner[0]:
            return fake(request)
        if request.url.host == "service.test":
            return httpx.Response(307, headers={"Location": f"http://{owner[0]}{request.url.raw_path.decode()}"})
        raise httpx.ConnectError("gone", request=request)

    service, rng = client(line), np.random.default_rng(0)
    remote = service.session("shop 17")
    for _ in range(3):
        remote.observe(**feedback(rng))
    assert asked == ["service.test", "two.test", "two.test", "two.test"]
    owner[0] = "three.test"
    remote.observe(**feedback(rng))
    assert asked[4:] == ["two.test", "service.test", "three.test"]
    assert remote.last_rounds.__doc__
    assert fake.session.rounds == 4


@pytest.mark.parametrize("target", ["http://evil.test/v1/sessions/shop/observe", "ftp://two.test/x", "", "https://two.test/other"])
def test_the_key_is_not_sent_where_it_could_be_read(target):
    sent = []

    def line(request: httpx.Request) -> httpx.Response:
        sent.append(str(request.url))
        return httpx.Response(307, headers={"Location": target})

    service = bridle.Client("https://service.test", key="secret-key", transport=httpx.MockTransport(line), retries=0)
    with pytest.raises((bridle.InputError, Unanswered)) as refused:
        service.session("shop").observe(f=1.0, df=[1.0])
    assert all(url.startswith("https://service.test/") for url in sent)
    assert "secret-key" not in str(refused.value) + repr(service) + repr(vars(refused.value))


def test_servers_that_point_at_each_other_are_given_up_on(impatient):
    def line(request: httpx.Request) -> httpx.Response:
        other = "b.test" if request.url.host == "a.test" else "a.test"
        return httpx.Response(307, headers={"Location": f"http://{other}{request.url.path}"})

    with pytest.raises(Unanswered, match="from server to server"):
        client(line, retries=2).session("shop").observe(f=1.0, df=[1.0])


def test_what_is_no_service_is_said_to_be_none():
    with pytest.raises(bridle.InputError, match=r"what answers at http://service.test is no bridle service"):
        client(lambda request: httpx.Response(200, text="<html>")).sessions()


@pytest.mark.parametrize("url", ["127.0.0.1:8711", "ftp://x", "", None, "http://"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(bridle.InputError, match="url must be that of a service"):
        bridle.Client(url)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"f": float("nan"), "df": [1.0, 0.0, 0.0]}, "f must"),
        ({"f": 1.0, "df": [1.0, float("inf"), 0.0]}, "df must"),
        ({"f": 1.0, "df": "abc"}, "df must"),
        ({"f": 1.0, "df": [1.0, 0.0, 0.0], "ticket": "first"}, "ticket must"),
    ],
)
def test_what_cannot_be_sent_is_refused_here(said, message):
    fake = FakeService(session())
    with pytest.raises(bridle.InputError, match=message):
        client(fake).session("shop").observe(**said)
    assert fake.log == []


def test_functions_cannot_be_sent_as_known_limits():
    with pytest.raises(bridle.InputError, match=r"known must be a pair \(A, b\)"):
        client(FakeService(session())).session("shop").decide(known=[bridle.Affine([1.0, 0.0, 0.0])])


def test_rules_without_a_word_are_null():
    bodies = []

    def line(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json={"x": [0.0, 0.0], "round": 0})

    remote = client(line).session("shop")
    remote.decide(rules=[[1.0, 2.0], [np.nan, np.nan]], known=([[1.0, 0.0]], [0.5]))
    assert bodies == [{"rules": [[1.0, 2.0], None], "known": {"A": [[1.0, 0.0]], "b": [0.5]}}]


def test_a_hint_is_sent_as_its_parts():
    bodies = []

    def line(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json={"x": [0.0, 0.0], "round": 0, "ticket": 1})

    remote = client(line).session("shop")
    remote.decide(hint=[1.0, 2.0])
    remote.ask(hint={"g": 0.5, "dg": [1.0, 0.0]})
    assert bodies == [{"hint": {"df": [1.0, 2.0]}}, {"hint": {"g": [0.5], "dg": [[1.0, 0.0]]}}]


def test_a_session_is_described_as_the_service_reads_it():
    made = bridle.policy("rate", bridle.Box(0.0, 40.0, dim=1), at_most=0.05, safe=[40.0], rules=["ewma", "same slot"])
    assert said_session("shop", made, None, None, {"names": ["short"], "engine": None}) == {
        "name": "shop", "policy": "rate", "domain": {"kind": "box", "low": [0.0], "high": [40.0]}, "rules": ["ewma", "same slot"],
        "parameters": {"at_most": 0.05, "safe": [40.0]}, "names": ["short"],
    }  # fmt: skip
    with pytest.raises(bridle.InputError, match="domain must be given"):
        said_session("shop", "rate", None, None, {})
    with pytest.raises(bridle.InputError, match=r"parameters.learner must be something that JSON can hold"):
        said_session("shop", "sinha2024", BOX, {"learner": bridle.AdaGrad(BOX)}, {})


def test_domains_are_described_by_the_arguments_that_make_them():
    roads = bridle.Paths(
        [("home", "bridge"), ("home", "tunnel"), ("tunnel", "bridge"), ("bridge", "work"), ("tunnel", "work")], "home", "work"
    )
    trees = bridle.SpanningTrees([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    smooth = (bridle.Ball(2, radius=3.0), bridle.L1Ball(center=[1.0, 0.0]), bridle.Simplex(4, mass=2.0), bridle.Spectrahedron(3))
    for domain in (*smooth, roads, trees, bridle.Matchings(2, 3)):
        again = domain_of("domain", said_domain(domain), ServiceLimits())
        assert type(again) is type(domain)
        assert again.diameter() == domain.diameter()
        assert np.array_equal(again.center(), domain.center())
    assert [part["kind"] for part in said_domain(bridle.Product(BOX, bridle.Simplex(2)))["domains"]] == ["box", "simplex"]


def test_events_of_a_batch_are_plain():
    assert said_event({"f": np.float64(1.0), "df": np.ones(2)}) == {"kind": "observe", "f": 1.0, "df": [1.0, 1.0]}
    assert said_event({"kind": "ask", "features": np.zeros(1)}) == {"kind": "ask", "features": [0.0]}
    assert said_event({"kind": "forget", "ticket": bridle.Ticket(4, np.zeros(1))}) == {"kind": "forget", "ticket": 4}
    with pytest.raises(bridle.InputError, match="an event must be a dict"):
        said_event([1.0])


@pytest.mark.slow  # in processes of their own
def test_httpx_is_needed_by_who_talks_to_a_service_alone():
    code = "import sys, bridle; assert 'httpx' not in sys.modules and 'starlette' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys; sys.modules['httpx'] = None; import bridle; bridle.Client('http://127.0.0.1:1')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "bridle.Client needs the package httpx: pip install 'bridle-oco[client]'" in ran.stderr
