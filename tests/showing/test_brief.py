"""One line for every object: as it could be typed, short, and never an address."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import bridle
from bridle import showing

PUBLIC = {name: getattr(bridle, name) for name in bridle.__all__}
DOMAINS = [
    bridle.Ball(2),
    bridle.Ball(3, radius=2.5),
    bridle.Ball(radius=2.0, center=[1.0, 2.0]),
    bridle.Box(0.0, 1.0, dim=3),
    bridle.Box([0.0, -1.0], [1.0, 2.0]),
    bridle.L1Ball(4),
    bridle.Simplex(4, mass=3.0),
    bridle.Spectrahedron(3),
    bridle.Product(bridle.Ball(2), bridle.Simplex(3)),
    bridle.Halfspace([1.0, 0.0], 0.25, within=bridle.Ball(2)),
    bridle.Halfspace([1.0, 0.0], 0.25, within=bridle.Box(0.0, 1.0, dim=2)),
]
FUNCTIONS = [
    bridle.Affine([1.0, 2.0], 3.0),
    bridle.Quadratic(2.0, center=[1.0, 1.0]),
    bridle.Hinge([1.0, 2.0], -1.0),
    bridle.Logistic([1.0, 2.0], 1.0),
    bridle.LogWealth([1.1, 0.9]),
    bridle.AbsoluteDeviation([1.0, 1.0], 3.0),
]


@pytest.mark.parametrize("made", DOMAINS, ids=repr)
def test_a_domain_shows_the_call_that_makes_it(made):
    again = eval(repr(made), PUBLIC)  # what is shown can be typed
    assert type(again) is type(made)
    assert all(
        np.array_equal(a, b) for a, b in zip(bridle.records.leaves(made).values(), bridle.records.leaves(again).values(), strict=True)
    )


@pytest.mark.parametrize("made", FUNCTIONS, ids=repr)
def test_a_function_shows_the_call_that_makes_it(made):
    again, x = eval(repr(made), PUBLIC), np.array([0.3, -0.2])
    assert again.value(x) == made.value(x)


def test_a_policy_and_a_problem_show_the_call_that_makes_them():
    policy = bridle.policy("sinha2024", bridle.Ball(2), horizon=100, lipschitz=2.0)
    assert repr(policy) == "policy('sinha2024', Ball(2), horizon=100, lipschitz=2.0)"
    assert eval(repr(policy), PUBLIC).parameters == policy.parameters
    problem = bridle.problem("halfspaces", horizon=50, dim=3)
    assert repr(problem) == "problem('halfspaces', horizon=50, seed=0, dim=3)"
    assert repr(bridle.Problem(bridle.Ball(2), problem.adversary)) == "Problem(Ball(2), RandomHalfspaces)"


def test_what_is_long_is_cut_short():
    rows = bridle.Affine(np.zeros((300, 200)), np.zeros(300))
    assert repr(rows) == "Affine(a=<array 300 x 200>, b=<array 300>)"
    sweep = bridle.policy("sinha2024", bridle.Ball(2), horizon=100, lipschitz=list(range(1, 40)))
    assert repr(sweep) == "policy('sinha2024', Ball(2), horizon=100, lipschitz=[1.0, 2.0, 3.0, ... 39 in all])"
    domain = bridle.Box(0.0, 1.0, dim=3)
    for i in range(3):
        domain = bridle.Halfspace(np.eye(3)[i], 0.5, within=domain)
    assert repr(domain) == "<Box(0.0, 1.0, dim=3) cut by 3 half-spaces>"
    assert showing.short({i: i for i in range(9)}) == "{9 entries}"
    assert len(showing.short("x" * 500)) <= 200


def test_nothing_shows_where_it_lies_in_memory():
    class Plain:
        pass

    class Broken:
        def __repr__(self):
            raise ValueError("no")

    assert showing.short(Plain()) == "<Plain>"
    assert showing.short(Broken()) == "<Broken>"
    assert showing.short(lambda x: x) == "<lambda>"
    assert repr(bridle.Callable(lambda x: 0.0, np.zeros_like)) == "Callable(value=<lambda>, grad=zeros_like, convex=1.0)"


SOURCES = [
    bridle.problem("fixed", horizon=50, dim=3),
    bridle.problem("fixed", horizon=50, dim=3, modulus=1.0),
    bridle.problem("fixed", horizon=50, dim=3, domain="simplex"),
]


@pytest.mark.parametrize("name", bridle.policies.names())
def test_every_policy_is_one_short_line_and_its_record_too(name):
    made = []
    for source in SOURCES:
        with contextlib.suppress(bridle.InputError):
            made.append(bridle.policy_for(name, source))
    assert made or name == "banditq", "no source fits"
    for policy in made:
        assert "\n" not in repr(policy)
        assert len(repr(policy)) <= 200
        assert len(repr(policy.record)) <= 900
        assert " at 0x" not in repr(policy.record)


def test_games_sessions_and_budgets_say_where_they_stand(tmp_path):
    trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "fixed", horizon=100)
    first, second = repr(trace).splitlines()
    assert first == "Trace: anytime on fixed, 100 rounds, seed 0 (python)"
    regret = showing.number(bridle.regret(trace))
    assert second.startswith(f"  cost {showing.number(trace.totals.cost)}, CCV {showing.number(bridle.ccv(trace))}, regret {regret}; ")

    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    session.observe(f=0.5, df=[1.0, 0.0], g=0.25, dg=[0.0, 1.0])
    ticket = session.ask()
    assert repr(session) == "Session: policy('anytime', Ball(2))\n  1 round, cost 0.5, CCV 0.25, 1 pending, ready"
    assert repr(ticket) == f"Ticket({ticket.id}, x={showing.short(ticket.x)})"
    assert repr(session.certificate()).startswith("Certificate: 1 round, cost 0.5, CCV 0.25, 1 pending\n  regret: at most ")

    with bridle.Session.open(f"sqlite:///{tmp_path}/run.db", "shop", policy=bridle.policy("anytime", bridle.Ball(2))) as durable:
        assert repr(durable) == "DurableSession 'shop': policy('anytime', Ball(2))\n  0 rounds, cost 0, CCV 0, open"
    assert repr(durable).endswith("closed")

    gate = bridle.Gate(10.0)
    gate.pay(2.5)
    assert repr(gate) == "Gate(budget=10.0, spent=2.5, left=7.5)"
    assert repr(bridle.Pacer(50.0, rounds=100, value=1.0)).startswith(
        "Pacer(budget=50.0, rounds=100, played=0, spent=0.0, left=50.0, price="
    )
    assert repr(bridle.advise()).startswith("Advice: use anytime\n  because ")
