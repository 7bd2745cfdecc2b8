"""A session whose rules are policies is opened again from its file alone, and continues bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bridle
from bridle.policies.registry import Configured
from helpers.durable_runs import assert_same, crash, url_of
from helpers.serving import serving

BOX = bridle.Box([0.0, 0.0], [50.0, 40.0])
LINE = bridle.Box(0.0, 50.0, dim=1)


def stock() -> Configured:
    return bridle.policy("rate", LINE, at_most=0.05, safe=LINE.high, rules=bridle.rules.demand_rules(LINE, day=6, week=42))


def apart() -> Configured:
    return bridle.policy("rate", BOX, at_most=0.1, rules=bridle.rules.demand_rules(BOX, day=4), rules_per="coordinate")


def learners() -> Configured:
    part = bridle.Box([0.0, 0.0], [20.0, 40.0])
    policies = [bridle.policy("anytime", BOX), bridle.policy("adagrad", part), bridle.policy("soft", BOX, weight=2.0)]
    return bridle.policy("adagrad", BOX, rules=[*policies, bridle.rules.everything(BOX)])


MADE = [stock, apart, learners]


def observation(x: Any, t: int) -> dict[str, Any]:
    """What is revealed in round t at x."""
    demand = np.random.default_rng(t).uniform(5.0, 20.0)
    return {"f": float(x.sum()), "df": [1.0] * len(x), "g": [float(demand - x[0])], "dg": [[-1.0] + [0.0] * (len(x) - 1)]}


def play(session: bridle.Session, rounds: range) -> None:
    for t in rounds:
        session.observe(**observation(session.decide(), t))


@pytest.fixture(params=MADE, ids=lambda make: make.__name__)
def make(request):
    return request.param


def test_a_save_file_is_enough(make, tmp_path):
    one = bridle.Session(make())
    play(one, range(60))
    one.save(tmp_path / "run.npz")
    other = bridle.Session.load(tmp_path / "run.npz")
    assert_same(one, other)
    for session in (one, other):
        play(session, range(60, 120))
    assert_same(one, other)


@pytest.mark.parametrize("end", [crash, lambda session: session.close()], ids=["crashed", "closed"])
def test_a_database_is_enough(make, end, tmp_path, run):
    twin = bridle.Session(make())
    play(twin, range(80))
    session = bridle.Session.open(url_of(tmp_path), "run", policy=make(), snapshot_every=25)
    play(session, range(40))
    end(session)
    with bridle.Session.open(url_of(tmp_path), "run") as session:
        play(session, range(40, 80))
        assert_same(twin, session)
    status, _, err = run("sessions", "verify", "--db", url_of(tmp_path))
    assert (status, err) == (0, ""), err
    with bridle.Session.open(url_of(tmp_path), "run", policy=make()) as session:  # the same may be given again
        assert_same(twin, session)


def test_the_service_opens_it(make, tmp_path):
    twin = bridle.Session(make())
    play(twin, range(50))
    with bridle.Session.open(url_of(tmp_path), "run", policy=make()) as session:
        play(session, range(30))
    with serving(url_of(tmp_path)) as server, server.client() as client:
        for t in range(30, 50):
            x = np.array(client.post("/v1/sessions/run/decide", json={}).json()["x"])
            answer = client.post("/v1/sessions/run/observe", json=observation(x, t))
            assert answer.status_code == 200, answer.text
    with bridle.Session.open(url_of(tmp_path), "run") as session:
        assert_same(twin, session)


def test_other_rules_are_refused(tmp_path):
    bridle.Session.open(url_of(tmp_path), "run", policy=stock()).close()
    other = bridle.policy("rate", LINE, at_most=0.05, safe=LINE.high, rules=bridle.rules.demand_rules(LINE, day=7, week=42))
    with pytest.raises(bridle.InputError, match=r"rules must be .* as session 'run' was made with"):
        bridle.Session.open(url_of(tmp_path), "run", policy=other)


def test_the_share_of_a_limit_can_be_changed_on_the_way(tmp_path):
    with bridle.Session.open(url_of(tmp_path), "run", policy=stock(), names=["short"]) as session:
        play(session, range(10))
        session.change_limit("short", at_most=0.2)
        play(session, range(10, 20))
        x = session.decide()
    with bridle.Session.open(url_of(tmp_path), "run") as session:
        np.testing.assert_array_equal(session.decide(), x)


def test_a_rule_of_your_own_is_given_again(tmp_path):
    class Half:
        domain = LINE

        def init(self, x1):
            return ()

        def decide(self, state):
            return 0.5 * LINE.high

        def update(self, state, feedback):
            return ()

    def own():
        return bridle.policy("rate", LINE, at_most=0.05, rules=[bridle.rules.ewma(LINE), Half()])

    with bridle.Session.open(url_of(tmp_path), "run", policy=own()) as session:
        play(session, range(10))
        x = session.decide()
        session.save(tmp_path / "run.npz")
    said = r"its policy \(Rate\) has a part of your own, rules\.1; give the policy as policy=\.\.\.$"
    with pytest.raises(bridle.InputError, match=said):
        bridle.Session.open(url_of(tmp_path), "run")
    with pytest.raises(bridle.InputError, match=said):
        bridle.Session.load(tmp_path / "run.npz")
    with bridle.Session.open(url_of(tmp_path), "run", policy=own()) as session:
        np.testing.assert_array_equal(session.decide(), x)
