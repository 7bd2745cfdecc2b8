"""The server is killed under load, the database restarted, the owner changed: nothing acknowledged is lost, nothing counts twice."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

import bridle
from bridle.service import remote
from helpers.killed_service import KilledService, feedback, hasty_program, kill_server
from helpers.postgres import free_port
from helpers.serving import ROUND, ServerProcess, create

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")  # the twins' alarms


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch):
    monkeypatch.setattr(remote, "LONGEST_PAUSE", 0.1)


def test_ten_kills_of_a_server_under_load_lose_nothing(tmp_path):
    """`make soak` has five hundred."""
    run = kill_server(tmp_path, 10)
    assert run.wrong == []
    assert run.rounds > 30


def test_a_server_that_answers_before_its_commit_is_caught(tmp_path):
    run = kill_server(tmp_path, 10, program=hasty_program(tmp_path))
    assert run.wrong, "acknowledged events were lost, and nobody noticed"


@pytest.fixture
def two(database, tmp_path):
    """Two servers on one database."""
    servers = [ServerProcess(database, tmp_path, free_port()) for _ in range(2)]
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(ServerProcess.start, servers))
        yield servers
    finally:
        for server in servers:
            server.close()


def test_a_killed_owner_is_replaced_by_another_server_with_nothing_lost(two):
    one, other = two

    def interrupt(moments: np.random.Generator) -> None:
        one.kill()

    # Both clients ask the server that stays; the sessions begin at the one that is killed.
    with bridle.Client(one.url) as client:
        for number in range(2):
            client.create(f"killed-{number}", "anytime", bridle.Box(-1.0, 1.0, dim=2))
    run = KilledService([other.url], interrupt, 1, clients=2)
    run.run()  # it goes on when the lease has run out
    assert run.wrong == []
    with httpx.Client(base_url=other.url) as client:
        assert client.get("/v1/sessions/killed-0").status_code == 200, "the other server has it now"


def test_postgresql_restarted_under_load_loses_nothing(cluster, two):
    ways = iter(("fast", "immediate", "fast"))
    run = KilledService([server.url for server in two], lambda moments: cluster.restart(next(ways)), 3, clients=4)
    run.run()
    assert run.wrong == []
    assert run.rounds > 0


def test_two_servers_that_are_both_asked_never_give_two_answers_for_one_round(two):
    answers: list[tuple[int, tuple[float, ...]]] = []
    with httpx.Client(base_url=two[0].url) as client:
        create(client)

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        with httpx.Client(base_url=two[number % 2].url, follow_redirects=True, timeout=20.0) as client:
            for i in range(30):
                record = {name: np.asarray(value).tolist() for name, value in feedback(rng).items()}
                answer = client.post("/v1/sessions/shop/observe", json=record, headers={"Idempotency-Key": f"{number}.{i}"})
                if answer.status_code == 200:
                    answers.append((answer.json()["round"], tuple(answer.json()["next"])))
                if rng.random() < 0.1:  # the owner lets go of it, and whoever is asked next takes it
                    client.delete("/v1/sessions/shop")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    rounds = [number for number, _ in answers]
    assert len(set(rounds)) == len(rounds) > 60
    with httpx.Client(base_url=two[1].url, follow_redirects=True) as client:
        facts = client.get("/v1/sessions/shop").json()
    assert facts["round"] >= max(rounds)


def test_a_server_on_postgresql_stops_and_another_goes_on_at_once(two):
    with httpx.Client(base_url=two[0].url, timeout=20.0) as client:
        create(client)
        first = client.post("/v1/sessions/shop/observe", json=ROUND, headers={"Idempotency-Key": "a"}).json()
        certificate = client.get("/v1/sessions/shop/certificate").text
    two[0].stop()
    with httpx.Client(base_url=two[1].url, timeout=20.0) as client:
        assert json.loads(client.get("/v1/sessions/shop/certificate").text) == json.loads(certificate)
        assert client.post("/v1/sessions/shop/observe", json=ROUND, headers={"Idempotency-Key": "a"}).json() == first
