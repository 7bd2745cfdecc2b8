"""The client and the service together: the verbs of Python over a line that loses answers, and a server that is killed."""

from __future__ import annotations

import asyncio
import json

import httpx
import numpy as np
import pytest

import bridle
from bridle.database import open_store
from helpers.fake_service import hostile
from helpers.serving import new_key, serving

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::bridle.BridleWarning")]
BOX = bridle.Box(-1.0, 1.0, dim=3)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(f"sqlite:///{tmp_path_factory.mktemp('served') / 'served.db'}") as server:
        yield server


@pytest.fixture
def impatient(monkeypatch):
    """Pauses are shorter."""
    monkeypatch.setattr("bridle.service.remote.FIRST_PAUSE", 0.001)


def line(rng, share):
    """A transport that sends for real, and loses some of what it sends or gets."""
    real = httpx.HTTPTransport()
    broken = hostile(lambda request: _read(real.handle_request(request)), rng, share)
    transport = httpx.MockTransport(broken)
    transport.close = real.close  # type: ignore[method-assign]
    return transport


def _read(answer: httpx.Response) -> httpx.Response:
    answer.read()
    return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


def feedback(rng) -> dict[str, object]:
    return {"f": rng.normal(), "df": rng.normal(size=3), "g": rng.normal(size=2) - 0.5, "dg": rng.normal(size=(2, 3))}


def test_over_a_hostile_line_a_session_is_what_it_is_in_python(served, impatient):
    rng = np.random.default_rng(1)
    twin = bridle.Session(bridle.policy("anytime", BOX), names=["latency", "spend"])
    with bridle.Client(served.url, transport=line(np.random.default_rng(2), 0.4), retries=60) as client:
        remote = client.create("hostile", "anytime", BOX, names=["latency", "spend"])
        waiting: list[tuple[bridle.Ticket, bridle.Ticket]] = []
        for _ in range(60):
            assert np.array_equal(remote.decide(), twin.decide())
            choice = rng.random()
            if choice < 0.25:
                waiting.append((remote.ask(), twin.ask()))
            elif choice < 0.35 and waiting:
                theirs, own = waiting.pop(0)
                remote.forget(theirs)
                twin.forget(own)
            elif choice < 0.55 and waiting:
                (theirs, own), record = waiting.pop(), feedback(rng)
                remote.observe(**record, ticket=theirs)
                twin.observe(**record, ticket=own)
            else:
                record = feedback(rng)
                remote.observe(**record)
                twin.observe(**record)
        assert (remote.rounds, remote.cost, remote.ccv, remote.pending, remote.dropped) == (
            twin.rounds, twin.cost, twin.ccv, twin.pending, twin.dropped,
        )  # fmt: skip
        assert json.loads(remote.certificate().json()) == json.loads(twin.certificate().json())
        assert remote.report() == twin.report()
        assert np.array_equal(remote.violations, twin.violations)
        assert remote.names == twin.names


def test_rules_rates_and_weights_are_those_of_python(served):
    policy = bridle.policy("rate", bridle.Box(0.0, 40.0, dim=1), at_most=0.05, safe=[40.0], rules=["low", "high", "silent"])
    twin, rng = bridle.Session(policy), np.random.default_rng(0)
    with bridle.Client(served.url) as client:
        remote = client.create("rules", policy)
        for _ in range(20):
            proposals = [[15.0 + rng.random()], [30.0], [np.nan]]
            x = remote.decide(rules=proposals)
            assert np.array_equal(x, twin.decide(rules=proposals))
            need = 20.0 + rng.standard_normal()
            for session in (remote, twin):
                session.observe(f=x[0], df=[1.0], g=need - x[0], dg=[-1.0])
        assert remote.rates == twin.rates
        assert np.array_equal(remote.weights, twin.weights)
        (last,) = remote.last_rounds(1)
        assert (last["round"], last["x"], last["f"]) == (20, x.tolist(), float(x[0]))


def test_prices_budgets_and_changed_limits(served):
    with bridle.Client(served.url) as client:
        remote = client.create("priced", "soft", bridle.Ball(2), names=["spend"], gates={"march": {"budget": 100.0}})
        twin = bridle.Session(bridle.policy("soft", bridle.Ball(2)), names=["spend"])
        for session in (remote, twin):
            session.observe(f=1.0, df=[1.0, 0.0], g=0.5, dg=[0.0, 1.0])
        assert np.array_equal(remote.price, twin.price)
        remote.pay("march", 30.0, key="invoice-1")
        remote.pay("march", 30.0, key="invoice-1")
        remote.observe(f=1.0, df=[1.0, 0.0], g=0.5, dg=[0.0, 1.0], pay={"march": 5.0}, key="round-2")
        assert remote.facts()["gates"]["march"]["left"] == 65.0
        with pytest.raises(bridle.InputError, match="amount must be at most 65"):
            remote.pay("march", 1000.0)
        assert remote.budget("march", 80.0)["left"] == 45.0
        remote.change_limit("spend", offset=0.25)
        before = remote.violations[0]
        remote.observe(f=1.0, df=[1.0, 0.0], g=-0.1, dg=[0.0, 1.0])
        assert remote.violations[0] == pytest.approx(before + 0.15)
        with pytest.raises(bridle.InputError, match="keeps no limits on how often"):
            _ = remote.rates


def test_the_next_decision_is_the_one_in_force(served):
    """Whatever brings a decision along: not one from before what was said since, nor one of an answer that was given before."""
    record = {"f": 0.3, "df": [1.0, 0.5, 0.0], "g": 0.1, "dg": [-1.0, 0.25, 0.0]}
    with bridle.Client(served.url) as client:
        remote, twin = client.create("in-force", "optimistic", BOX), bridle.Session(bridle.policy("optimistic", BOX))
        remote.change_limit(0, offset=0.0, key="as it was")
        for session in (remote, twin):
            session.observe(**record)
            x = session.decide(hint=[0.0, 0.0, 5.0])
            assert np.array_equal(session.decide(), x)
            session.observe(**record, **({"key": "second"} if session is remote else {}))
        assert np.array_equal(remote.decide(), twin.decide())
        for t in range(4):
            for session in (remote, twin):
                session.observe(**record | {"df": [0.0, t - 1.5, 0.0]})
        again = client.session("in-force")  # of a program that was started anew, and says again what it does at its start
        for verb in (lambda: again.change_limit(0, offset=0.0, key="as it was"), lambda: again.observe(**record, key="second")):
            verb()
            assert np.array_equal(again.decide(), twin.decide())
        for session in (again, twin):
            session.observe(**record)
        assert np.array_equal(again.decide(), twin.decide())


@pytest.mark.parametrize("name", ["bandit1", "bandit2"])
def test_values_alone_are_what_they_are_in_python(served, name):
    n = 1 if name == "bandit1" else 2
    policy, rng = bridle.policy(name, BOX, horizon=100, lipschitz=3.0, **({"bound": 2.0} if n == 1 else {})), np.random.default_rng(8)
    with bridle.Client(served.url) as client:
        remote, twin = client.create(f"values-{n}", policy), bridle.Session(policy)
        for t in range(12):
            f, g = rng.normal(size=n), rng.normal(size=(n, 2))
            for session in (remote, twin):
                if t % 3 == 0 and n == 1:
                    session.decide()
                    session.observe(f=f[0], g=g[0])
                    continue
                ticket = session.ask(points=n)
                if t % 4 == 2:
                    session.forget(ticket)
                else:
                    session.observe(f=f, g=g, ticket=ticket)
            if t == 5:
                remote.close()  # it is opened again from its journal
        assert (remote.rounds, remote.cost, remote.dropped) == (twin.rounds, twin.cost, twin.dropped)
        assert np.array_equal(remote.violations, twin.violations)
        (last,) = remote.last_rounds(1)
        assert (last["f"], last["g"]) == (pytest.approx(f.mean()), pytest.approx(g.mean(axis=0)))
        assert last["violation"] == pytest.approx(np.maximum(g, 0.0).mean(axis=0))
        assert last["x"] == pytest.approx(np.atleast_2d(ticket.x).mean(axis=0))
        assert np.array_equal(remote.ask(points=n).x, twin.ask(points=n).x)
        assert remote.facts()["x"] is None
        with pytest.raises(bridle.InputError, match=f"policy {name} plays one round at a time"):
            remote.ask(points=n)


def test_a_batch_is_its_events_one_by_one(served):
    rng = np.random.default_rng(5)
    records = [feedback(rng) for _ in range(20)]
    with bridle.Client(served.url) as client:
        one, many = client.create("alone", "anytime", BOX), client.create("together", "anytime", BOX)
        for record in records:
            one.observe(**record)
        answers = many.batch([*records[:10], {"f": 1.0, "df": [1.0]}, {"kind": "ask"}, *records[10:]], key="all")
        assert "df" in answers[10]["error"]
        assert many.batch([*records[:10], {"f": 1.0, "df": [1.0]}, {"kind": "ask"}, *records[10:]], key="all")[:10] == answers[:10]
        assert (many.rounds, many.cost, many.pending) == (one.rounds, one.cost, 1)
        many.forget(answers[11]["ticket"])
        assert {each["name"] for each in client.sessions()} >= {"alone", "together"}
        assert len(many.quarantine()) == 2


def test_refusals_are_typed_and_have_pythons_words(served):
    with bridle.Client(served.url) as client:
        remote = client.create("refusing", "anytime", BOX)
        with pytest.raises(bridle.InputError) as theirs:
            remote.observe(f=1.0, df=[1.0, 2.0])
        with pytest.raises(bridle.InputError) as own:
            bridle.Session(bridle.policy("anytime", BOX)).observe(f=1.0, df=[1.0, 2.0])
        assert str(theirs.value) == str(own.value)
        assert (theirs.value.status, remote.rounds) == (422, 0)
        with pytest.raises(bridle.InputError, match="no session") as missing:
            _ = client.session("nobody").cost
        assert missing.value.status == 404
        with pytest.raises(bridle.InputError) as other:
            client.create("refusing", "soft", BOX)
        assert other.value.status == 409
        assert client.create("refusing", "anytime", BOX).rounds == 0


def test_keys_are_needed_where_they_are_asked_for(tmp_path, monkeypatch):
    db = f"sqlite:///{tmp_path / 'keys.db'}"
    admin, read = new_key(db, "admin"), new_key(db, "read")
    with serving(db, insecure=False) as server:
        with bridle.Client(server.url, key=admin) as client:
            client.create("one", "anytime", BOX)
        with bridle.Client(server.url, key=read) as client:
            assert client.session("one").rounds == 0
            with pytest.raises(bridle.InputError, match="lacks the scope observe") as forbidden:
                client.session("one").observe(f=1.0, df=[1.0, 0.0, 0.0])
            assert forbidden.value.status == 403
            assert read not in str(forbidden.value)
        with bridle.Client(server.url, key="brk_nobody_nothing") as client, pytest.raises(bridle.InputError, match="wrong or revoked"):
            client.sessions()
        monkeypatch.setenv("BRIDLE_KEY", read)
        with bridle.Client(server.url) as client:
            assert len(client.sessions()) == 1


def test_many_at_once_in_one_session_by_tickets(served):
    async def play() -> tuple[int, float]:
        async with bridle.AsyncClient(served.url) as client:
            remote = await client.create("tickets", "anytime", BOX)

            async def one(seed: int) -> float:
                record = feedback(np.random.default_rng(seed))
                ticket = await remote.ask()
                await remote.observe(**record, ticket=ticket)
                return float(record["f"])  # type: ignore[arg-type]

            paid = await asyncio.gather(*(one(seed) for seed in range(40)))
            assert await remote.cost == pytest.approx(sum(paid))
            return await remote.rounds, await remote.pending

    assert asyncio.run(play()) == (40, 0)


def test_a_page_whose_key_is_revoked_is_told_no_more(tmp_path):
    db = f"sqlite:///{tmp_path / 'revoked.db'}"
    admin, read = new_key(db, "admin"), new_key(db, "read")
    with serving(db, insecure=False) as server, bridle.Client(server.url, key=admin) as client:
        remote = client.create("one", "anytime", BOX)
        head = {"Authorization": f"Bearer {read}"}
        with httpx.stream("GET", f"{server.url}/v1/events", params={"session": "one"}, headers=head, timeout=60.0) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = answer.iter_lines()
            assert json.loads(next(lines).removeprefix("data: "))["session"]["round"] == 0
            with open_store(db) as store:
                assert store.keys.revoke(read.split("_")[1], 1.0)
            remote.observe(f=1.0, df=[1.0, 0.0, 0.0])
            assert all(line.startswith(("data: ", ":")) or not line for line in lines), "and it ends"
        assert httpx.get(f"{server.url}/v1/events", headers=head).status_code == 401
