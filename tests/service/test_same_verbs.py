"""One protocol, three homes: a session in memory, in a database and behind the service answer every verb alike, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any, cast

import numpy as np
import pytest

import bridle
from bridle.durable.session import DurableSession
from bridle.service.client import RemoteSession
from bridle.session.session import Decides, Session
from helpers.serving import serving

NUMBERS = count()

BOX = bridle.Box(-1.0, 1.0, dim=2)
POLICIES = {
    "plain": bridle.policy("anytime", BOX),
    "priced": bridle.policy("soft", BOX),
    "rules": bridle.policy("adagrad", BOX, rules=["low", "high"]),
    "rate": bridle.policy("rate", BOX, at_most=0.25, safe=[-1.0, -1.0]),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[bridle.Client]:
    folder = tmp_path_factory.mktemp("same")
    with serving(f"sqlite:///{folder / 'served.db'}") as server, bridle.Client(server.url) as client:
        yield client


@pytest.fixture(params=["memory", "database", "service"])
def home(request, tmp_path, service) -> Iterator[Any]:
    """Makes a session of a policy where it is to live."""
    with ExitStack() as ends:

        def make(name: str) -> Decides:
            policy, names = POLICIES[name], ["left"]
            if request.param == "memory":
                return Session(policy, names=names)
            if request.param == "database":
                return ends.enter_context(Session.open(f"sqlite:///{tmp_path}/own.db", name, policy=policy, names=names))
            return cast(Decides, service.create(f"{name}-{next(NUMBERS)}", policy, names=names))

        yield make


def record(t: int, x: Any) -> dict[str, Any]:
    rng = np.random.default_rng(t)
    df, dg = rng.standard_normal(2), rng.standard_normal((1, 2))
    return {"f": float(df @ x), "df": df, "g": dg @ x - 0.3, "dg": dg}


def transcript(session: Decides, name: str) -> list[Any]:
    """Every verb and every figure; what came of each."""
    said: dict[str, Any] = {"rules": [[-0.5, -0.5], [0.5, 0.25]]} if name == "rules" else {}
    told: list[Any] = []
    for t in range(12):
        x = session.decide(**said)
        told.append(x.tolist())
        session.observe(**record(t, x), **({"played": [0.1, 0.2]} if t == 5 and name != "rate" else {}))
    if name != "rules":
        told.append(session.step(bridle.Affine([1.0, 0.5]), [bridle.Affine([0.3, -1.0], 0.2)]).tolist())
        told.append(session.decide(known=([[1.0, 0.0]], [0.25])).tolist())
        session.observe(f=0.5, df=[1.0, 0.0])
    first, second, third = (session.ask(**said) for _ in range(3))
    told += [first.x.tolist(), second.x.tolist(), third.id - first.id, session.pending]
    session.observe(**record(20, second.x), ticket=second)
    session.forget(first)
    session.observe(**record(21, third.x), ticket=third.id)
    session.change_limit("left", offset=0.125)
    x = session.decide(**said)
    session.observe(**record(22, x))
    if name == "rate":
        session.change_limit(0, at_most=0.5)
    told += [session.rounds, session.cost, session.ccv, session.violations.tolist(), session.names, session.pending, session.dropped]
    proof = json.loads(session.certificate().json())
    told += [proof, session.report()]
    told.append(session.weights.tolist() if name == "rules" else None)
    told.append(session.price.tolist() if name == "priced" else None)
    told.append(session.rates if name == "rate" else None)
    return told


@pytest.mark.parametrize("name", [*POLICIES])
def test_every_verb_is_answered_as_in_memory(home, name):
    assert transcript(home(name), name) == transcript(Session(POLICIES[name], names=["left"]), name)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"f": 1.0}, "df must be given with f"),
        ({"g": [0.1, 0.2], "dg": [[1.0, 0.0], [0.0, 1.0]]}, "g must hold 1 constraint value"),
        ({"f": 0.5, "df": [1.0, 0.0, 0.0]}, "df must"),
        ({"ticket": 77}, "ticket 77"),
    ],
)
def test_what_is_refused_is_refused_in_the_same_words_and_changes_nothing(home, wrong, words):
    session, alone = home("plain"), Session(POLICIES["plain"], names=["left"])
    before = session.decide().tolist()
    with pytest.raises(bridle.InputError, match=words) as refused:
        session.observe(**wrong)
    with pytest.raises(bridle.InputError) as own:
        alone.observe(**wrong)
    assert str(refused.value) == str(own.value)
    assert (session.rounds, session.decide().tolist()) == (0, before)


def test_every_home_has_every_verb():
    for kind in (Session, DurableSession, RemoteSession):
        assert [name for name in vars(Decides) if not name.startswith("_") and not hasattr(kind, name)] == []
