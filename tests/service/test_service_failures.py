"""What fails: commits that do not come through, or unseen, or late; servers that stop; owners that change. Nothing counts twice."""

from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from bridle.core import InputError
from bridle.database import StoreError, open_store
from bridle.service import commands, writer
from helpers.serving import ROUND, create, serving, state_of


@pytest.fixture
def db(tmp_path):
    return f"sqlite:///{tmp_path}/run.db"


def observe(client, key=None, **more):
    return client.post("/v1/sessions/shop/observe", json=ROUND | more, headers={} if key is None else {"Idempotency-Key": key})


class Faults:
    """Commits of a store that fail as often as told: before they are written, or after."""

    def __init__(self, store, monkeypatch):
        self.own, self.before, self.after, self.delay = store.append_many, 0, 0, 0.0
        self.begun, self.order = 0, []
        monkeypatch.setattr(store, "append_many", self)
        monkeypatch.setattr(store, "append_at_once", lambda lease, events: self([(lease, events)]) == [None])

    def __call__(self, groups):
        self.begun += 1
        time.sleep(self.delay)
        if self.before:
            self.before -= 1
            raise StoreError("the disk is full", certain=True)
        found = self.own(groups)
        self.order.append("committed")
        if self.after:
            self.after -= 1
            raise StoreError("the connection is lost", certain=False)
        return found


def test_a_session_that_was_broken_off_in_the_middle_is_made_again(db, monkeypatch):
    with serving(db) as server, server.client() as client:
        create(client)
        assert observe(client, "first").json()["round"] == 1
        own = commands.next_decision

        def once(core):
            monkeypatch.setattr(commands, "next_decision", own)
            raise InputError("it cannot be shown")

        monkeypatch.setattr(commands, "next_decision", once)
        assert observe(client, "second").status_code == 422  # after it was applied in memory: nothing of it is in the journal
        assert [observe(client, "second").json()["round"] for _ in range(2)] == [2, 2]
        assert client.get("/v1/sessions/shop").json()["round"] == 2


def test_a_client_that_asks_alone_does_not_hold_up_others(db, monkeypatch):
    """The loop commits for one who asks alone; not where it would have to wait for a lock of another process."""
    with serving(db) as server, server.client() as client, server.client() as other:
        create(client)
        monkeypatch.setattr(writer, "PROMPT", float("inf"))  # however slow the disk is
        own, tried = server.service.store._append_one_now, []
        monkeypatch.setattr(server.service.store, "_append_one_now", lambda values: tried.append(own(values)) or tried[-1])
        observe(client)
        assert tried == [True]
        lock = sqlite3.connect(db.removeprefix("sqlite:///"), isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(observe, client, "k1")
            while len(tried) < 2:
                time.sleep(0.01)
            assert other.get("/healthz").status_code == 200
            assert not waiting.done(), "nothing is answered before its commit"
            lock.execute("ROLLBACK")
            assert waiting.result(30.0).json()["round"] == 2
        assert tried == [True, None]
        lock.close()


@pytest.mark.parametrize("kind", ["before", "after"])
def test_a_commit_that_fails_is_503_and_the_retry_counts_once(db, monkeypatch, kind):
    with serving(db) as server, server.client() as client:
        create(client)
        twin = [observe(client, key=f"k{i}").json() for i in range(3)]
        faults = Faults(server.service.store, monkeypatch)
        before = state_of(client)
        setattr(faults, kind, 1)
        failed = observe(client, key="k3")
        assert failed.status_code == 503
        assert int(failed.headers["retry-after"]) >= 0
        assert ("nobody knows" in failed.json()["error"]) == (kind == "after")
        if kind == "before":
            assert state_of(client) == before, "memory that was ahead of the disk is gone"
        again = observe(client, key="k3").json()
        assert again["round"] == 4
        assert observe(client, key="k3").json() == again
        assert [observe(client, key=f"k{i}").json() for i in range(3)] == twin
        assert client.get("/v1/sessions/shop").json()["round"] == 4
        assert "bridle_failed_commits_total 1.0" in client.get("/metrics").text


def test_everything_that_rests_on_a_failed_commit_fails_with_it(db, monkeypatch):
    with serving(db) as server, server.client() as client:
        create(client)
        create(client, "other")
        faults = Faults(server.service.store, monkeypatch)
        faults.delay, faults.before = 0.3, 1
        with ThreadPoolExecutor(8) as pool:
            first = pool.submit(observe, client, "k0")
            while not faults.begun:  # until its commit is under way
                time.sleep(0.01)
            others = [pool.submit(observe, client, f"k{i}") for i in range(1, 5)]
            reading = pool.submit(client.post, "/v1/sessions/shop/decide", json={})
            statuses = [each.result().status_code for each in (first, *others, reading)]
        assert statuses == [503] * 6
        faults.delay = 0.0
        assert client.get("/v1/sessions/shop").json()["round"] == 0
        assert {observe(client, f"k{i}").json()["round"] for i in range(5)} == {1, 2, 3, 4, 5}


def test_a_budget_that_is_not_there_takes_nothing_else_along(db, monkeypatch):
    """It once had the session made again from its journal, and whatever others had under way was refused."""
    with serving(db) as server, server.client() as client:
        create(client)
        faults = Faults(server.service.store, monkeypatch)
        faults.delay = 0.15
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(observe, client, "k0")
            while not faults.begun:
                time.sleep(0.01)
            second = pool.submit(observe, client, "k1")  # waits for the commit under way
            while server.service.hosted["shop"]._core.seq < 2:
                time.sleep(0.01)
            core = server.service.hosted["shop"]._core
            for verb, body in (("pay", {"amount": 1.0}), ("bid", {"value": 1.0}), ("budget", {"budget": 1.0})):
                assert client.post(f"/v1/sessions/shop/{verb}", json={"gate": "nowhere", **body}).status_code == 404
            assert [first.result().status_code, second.result().status_code] == [200, 200]
        assert client.get("/v1/sessions/shop").json()["round"] == 2
        assert server.service.hosted["shop"]._core is core


def test_no_decision_leaves_before_what_it_rests_on_is_durable(db, monkeypatch):
    with serving(db) as server, server.client() as client:
        create(client)
        faults = Faults(server.service.store, monkeypatch)
        faults.delay = 0.4
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(observe, client)
            while not faults.begun:
                time.sleep(0.01)
            decided = client.post("/v1/sessions/shop/decide", json={}).json()
            faults.order.append("decided")
            answer = first.result().json()
        assert decided == {"x": answer["next"], "round": 1}
        assert faults.order == ["committed", "decided"]


def test_many_clients_are_each_answered_once_and_commits_are_shared(db):
    with serving(db) as server, server.client() as client:
        create(client)

        def work(n):
            with server.client() as own:
                return [observe(own, key=f"{n}-{i}").json()["round"] for i in range(20)]

        with ThreadPoolExecutor(8) as pool:
            rounds = [each for found in pool.map(work, range(8)) for each in found]
        assert sorted(rounds) == list(range(1, 161))
        lines = dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if not line.startswith("#"))
        assert float(lines["bridle_commit_events_sum"]) == 160
        assert float(lines["bridle_commit_events_count"]) < 160


def test_a_server_that_stops_answers_what_was_begun(db, monkeypatch):
    with serving(db) as server, server.client() as client:
        create(client)
        faults = Faults(server.service.store, monkeypatch)
        faults.delay = 0.5
        with ThreadPoolExecutor(1) as pool:
            begun = pool.submit(observe, client, "last")
            while not faults.begun:
                time.sleep(0.01)
            server.stop()
            assert begun.result().json()["round"] == 1
    with serving(db) as server, server.client() as client:
        assert client.get("/v1/sessions/shop").json()["round"] == 1
        assert observe(client, "last").json()["round"] == 1


def test_a_restarted_server_goes_on_where_it_was(db):
    with serving(db) as server, server.client() as client:
        create(client, gates={"march": {"budget": 5.0}})
        for i in range(70):
            observe(client, key=f"k{i}")
        client.post("/v1/sessions/shop/pay", json={"gate": "march", "amount": 1.0})
        ticket = client.post("/v1/sessions/shop/ask", json={}).json()["ticket"]
        before, played = state_of(client), client.get("/v1/sessions/shop/rounds?last=500").json()["rounds"]
    with serving(db) as server, server.client() as client:
        (listed,) = client.get("/v1/sessions").json()["sessions"]
        assert listed["round"] == 70
        again = client.get("/v1/sessions/shop/rounds?last=500").json()["rounds"]
        assert again == played, "the rounds since the last snapshot can be seen again"
        assert state_of(client) == before
        assert observe(client, ticket=ticket).json()["round"] == 71


def test_a_snapshot_is_put_while_rounds_go_on(db, monkeypatch):
    from bridle.durable import journal

    monkeypatch.setattr(journal, "SNAPSHOT_EVERY", 20)
    with serving(db) as server, server.client() as client:
        create(client)
        for _ in range(65):
            assert observe(client).status_code == 200
        until = time.monotonic() + 5.0
        found = server.service.hosted["shop"].found.id
        while len(server.service.store.snapshots(found)) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        assert [row.seq % 20 < 15 for row in server.service.store.snapshots(found)] == [True, True]
        before = state_of(client)
    with serving(db) as server, server.client() as client:
        assert state_of(client) == before


def test_a_session_that_another_server_owns_is_307_to_it_until_it_ends(db):
    with serving(db) as one, one.client() as first:
        create(first)
        observe(first, "k0")
        with serving(db) as two, two.client() as second:
            answer = observe(second, "k1")
            assert answer.status_code == 307
            assert answer.headers["location"] == f"{one.url}/v1/sessions/shop/observe"
            looked = second.get("/v1/sessions/shop/rounds?last=3")
            assert looked.headers["location"] == f"{one.url}/v1/sessions/shop/rounds?last=3"
            assert httpx.get(f"{two.url}/v1/sessions/shop", follow_redirects=True).json()["round"] == 1
            one.stop()
            assert observe(second, "k1").json()["round"] == 2
            assert observe(second, "k0").json()["round"] == 1


def test_a_session_that_was_lost_does_not_hide_the_others(db):
    with serving(db) as server, server.client() as client:
        create(client)
        create(client, "other")
        with open_store(db, owner="thief") as store:
            server.service.store._lives, own = (lambda *_: True), server.service.store._lives
            store._lives = lambda *_: False
            store.take(store.find("shop"))
            assert observe(client).status_code == 503
            other, shop = client.get("/v1/sessions").json()["sessions"]
            assert (other["name"], other["round"], shop) == ("other", 0, {"name": "shop", "owner": "thief"})
        server.service.store._lives = own
        assert client.get("/v1/sessions").json()["sessions"][1]["round"] == 0


def test_an_owner_that_was_fenced_off_answers_nothing_more(db):
    """Whoever takes the session by force has it: the old owner's memory is worth nothing."""
    with serving(db) as server, server.client() as client:
        create(client)
        observe(client)
        store, hosted = server.service.store, server.service.hosted["shop"]
        store.take(hosted.found)  # by the same owner, so that it may be opened again at once: the epoch is another
        assert observe(client, "k").status_code == 503
        assert observe(client, "k").json()["round"] == 2


def test_too_many_waiting_requests_are_turned_away(db, monkeypatch):
    from bridle.service.config import ServiceLimits

    with serving(db, limits=ServiceLimits(waiting=2)) as server, server.client() as client:
        create(client)
        hosted, held = server.service.hosted["shop"], threading.Event()
        with ThreadPoolExecutor(8) as pool:
            import asyncio

            holding = asyncio.run_coroutine_threadsafe(hosted.read(lambda core: held.wait(5.0)), hosted._loop)
            time.sleep(0.1)
            waiting = [pool.submit(observe, client) for _ in range(6)]
            time.sleep(0.5)
            held.set()
            statuses = sorted(each.result().status_code for each in waiting)
            holding.result()
        assert statuses == [200, 200, 429, 429, 429, 429]
