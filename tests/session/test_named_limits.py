"""Limits with names: reports, alarms, rates, JSON and errors use them; files and copies keep them; and certificates as JSON."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest

import bridle
from helpers.sessions import assert_identical, snapshot

NAMES = ["latency", "spend"]
BALL = bridle.Ball(2)


def played(name="anytime", rounds=30, names=NAMES, **settings):
    session = bridle.Session(bridle.policy(name, BALL, **settings), names=names)
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        x = session.decide()
        dg = np.array([[1.0, 0.0], [0.0, 1.0]])
        session.observe(f=float(-x.sum()), df=[-1.0, -1.0], g=dg @ x - rng.uniform(0.2, 0.4, 2), dg=dg)
    return session


def test_a_report_calls_limits_by_their_names():
    session = played("soft")
    text = session.report()
    assert "latency was" in text
    assert "one more unit of spend would have been worth" in text
    assert f"Over all rounds latency by {session.violations[0]:.6g}, spend by {session.violations[1]:.6g}." in text
    assert "limit 0" not in text
    assert "limit 0" in played("soft", names=None).report()
    assert session.names == ("latency", "spend")
    assert bridle.Session(bridle.policy("anytime", BALL)).names == ()


def test_names_change_no_number():
    one, two = played("soft"), played("soft", names=None)
    assert_identical(snapshot(one), snapshot(two))


def test_rates_have_the_names():
    session = played("rate", at_most=[0.05, 0.1], safe=[0.0, 0.0])
    assert [limit.name for limit in session.rates] == NAMES
    assert [limit["name"] for limit in json.loads(session.certificate().json())["rates"]] == NAMES
    assert "Rate: spend was violated in" in session.report()
    assert played("rate", at_most=0.05, constraints=2, form="any", safe=[0.0, 0.0]).rates[0].name == "any limit"


def contradict(session):
    """The first coordinate is to be -0.5 or below, says one limit, and 0.5 or above, says the other, in turn."""
    for sign in np.tile([1.0, -1.0], 20):
        x = session.decide()
        dg = np.array([[1.0, 0.0], [-1.0, 0.0]]) * [[sign > 0.0], [sign < 0.0]]
        session.observe(f=0.0, df=[0.0, 0.0], g=dg @ x + np.where(dg[:, 0] != 0.0, 0.5, -0.1), dg=dg)


def test_a_proof_that_nothing_is_feasible_names_the_limits():
    session = bridle.Session(bridle.policy("anytime", BALL), names=NAMES)
    with pytest.warns(bridle.InfeasibleWarning, match="no action of the domain satisfies spend of round 2, latency of round 5 together"):
        contradict(session)
    conflict = json.loads(session.certificate().json())["conflict"]
    assert [NAMES[i] for i in conflict["constraints"]] == ["spend", "latency"]
    assert "Infeasible: no action satisfies spend of round 2, latency of round 5 together" in session.report()


def never_react(session):
    for _ in range(1200):
        x = session.decide()
        session.observe(f=float(x[0]), df=[1.0], g=[-1.0, 1.0 - x[0]], dg=[[0.0], [-1.0]])


def test_an_alarm_of_a_limit_that_stays_violated_names_it():
    session = bridle.Session(
        bridle.policy("soft", bridle.Box(0.0, 1e6, dim=1), lipschitz=1.0, bound=1e6, constraints=2), x1=[0.0], names=NAMES
    )
    with pytest.warns(bridle.BridleWarning) as raised:
        never_react(session)
    stuck = [each.message for each in raised if isinstance(each.message, bridle.core.StuckWarning)]
    assert len(stuck) == 1
    assert str(stuck[0]).startswith("spend was violated whenever it was looked at")
    assert (stuck[0].limit, stuck[0].name) == (1, "spend")


# --- how many ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [[], ["one", "one"], ["", "two"], "latency", [1, 2], 7, {"a": 1}, np.array(["a", "b"]), None.__class__])
def test_names_that_are_none_are_refused(names):
    with pytest.raises(bridle.InputError, match="names must be a list of names that differ, one for each constraint, not"):
        bridle.Session(bridle.policy("anytime", BALL), names=names)


def test_a_wrong_number_of_names_is_one_error_as_soon_as_it_is_known():
    """At once where the policy says how many limits there are, else with the first record; nothing changes."""
    with pytest.raises(bridle.InputError, match=r"names must hold one name for each of the 3 constraints of the policy, not \('latency'"):
        bridle.Session(bridle.policy("sinha2024-ocs", BALL, constraints=3), names=NAMES)
    with pytest.raises(bridle.InputError, match=r"for each of the 1 constraint of the policy"):
        bridle.Session(bridle.policy("rate", BALL, at_most=0.05), names=NAMES)
    for name in ("anytime", "soft"):
        session = bridle.Session(bridle.policy(name, BALL), names=NAMES)
        for before in (0, 1):
            with pytest.raises(bridle.InputError) as refusal:
                session.observe(f=0.0, df=[1.0, 0.0], g=[1.0, 1.0, 1.0], dg=np.ones((3, 2)))
            assert str(refusal.value) == "g must hold 2 constraint values (latency, spend), not 3"
            assert session.rounds == before
            session.observe(f=0.0, df=[1.0, 0.0])  # a round without limits has none of them
        session.observe(f=0.0, df=[1.0, 0.0], g=[1.0, 1.0], dg=np.ones((2, 2)))
        assert session.violations.tolist() == [1.0, 1.0]


@pytest.mark.compiles
def test_compiled_rounds_keep_the_names_and_the_number():
    session = bridle.Session(bridle.policy("anytime", BALL), names=NAMES, engine="compiled")
    for _ in range(5):
        x = session.decide()
        session.observe(f=float(x[0]), df=np.array([1.0, 0.0]), g=x + 0.1, dg=np.eye(2))
    with pytest.raises(bridle.InputError, match=r"g must hold 2 constraint values \(latency, spend\), not 1"):
        session.observe(f=0.0, df=np.array([1.0, 0.0]), g=np.ones(1), dg=np.ones((1, 2)))
    assert session.rounds == 5
    assert "latency by" in session.report()


# --- files ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [0, 1, 30])
def test_files_and_copies_have_the_names(tmp_path, rounds):
    session = played("soft", rounds)
    session.save(tmp_path / "named.npz")
    loaded = bridle.Session.load(tmp_path / "named.npz")
    for other in (loaded, pickle.loads(pickle.dumps(session)), copy.deepcopy(session)):
        assert other.names == ("latency", "spend")
        assert other.report() == session.report()
        assert_identical(snapshot(other), snapshot(session))
        with pytest.raises(bridle.InputError, match=r"\(latency, spend\), not 1"):
            other.observe(f=0.0, df=[0.0, 0.0], g=1.0, dg=[1.0, 0.0])


def test_a_file_without_names_has_none(tmp_path):
    session = played(names=None)
    session.save(tmp_path / "plain.npz")
    assert bridle.Session.load(tmp_path / "plain.npz").names == ()


# --- JSON -------------------------------------------------------------------------------------------------------------------------------


def with_rules():
    session = bridle.Session(bridle.policy("mlpoly", BALL, rules=["low", "high"]))
    session.decide(rules=[[0.0, 0.0], [0.5, 0.5]])
    session.observe(f=1.0, df=[1.0, 1.0], played=[0.3, 0.3])
    return session


def that_wait():
    session = bridle.Session(bridle.policy("anytime", BALL))
    session.forget(session.ask())
    session.ask()
    return session


KINDS = {
    "named": played,
    "average": lambda: played("soft", names=None),
    "rate": lambda: played("rate", at_most=[0.05, 0.1]),
    "fresh": lambda: played(rounds=0),
    "rules": with_rules,
    "late": that_wait,
}


def same(value, told):
    """Whether what was read again is what the certificate has: numbers that are not finite as None, records by their fields."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not np.isfinite(value):
        return told is None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(told) == list(value._fields) and all(same(getattr(value, name), told[name]) for name in value._fields)
    if dataclasses.is_dataclass(value):
        return all(same(getattr(value, each.name), told[each.name]) for each in dataclasses.fields(value))
    if isinstance(value, (list, tuple)):
        return len(value) == len(told) and all(same(a, b) for a, b in zip(value, told, strict=True))
    return value == told and type(value) is type(told)


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_goes_through_json_and_back(kind):
    session = KINDS[kind]()
    proof = session.certificate()
    text = proof.json()
    assert isinstance(text, str)
    facts = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    told = dict(facts)
    limits = told.pop("limits")
    assert [(each["level"], each["rounds"]) for each in told.pop("above")] == list(proof.above)
    assert [(each["kind"], each["round"]) for each in told.pop("alarms")] == list(proof.alarms)
    assert told.keys() == {each.name for each in dataclasses.fields(proof)} - {"above", "alarms"}
    for name, value in told.items():
        assert same(getattr(proof, name), value), name
    assert [each["violation"] for each in limits] == session.violations.tolist()
    k = len(session.violations)
    assert [each["name"] for each in limits] == (list(session.names) or (["the limit"] if k == 1 else [f"limit {i}" for i in range(k)]))
    if proof.price is not None:
        assert [each["price"] for each in limits] == proof.price.tolist()
        assert [each["balance"] for each in limits] == session.balances.tolist()


def test_numbers_that_are_not_finite_are_null():
    proof = dataclasses.replace(played().certificate(), regret=np.inf, price=np.array([np.nan, 2.0]), squared=float("-inf"))
    facts = json.loads(proof.json())
    assert (facts["regret"], facts["squared"], facts["price"]) == (None, None, [None, 2.0])
    assert [each["price"] for each in facts["limits"]] == [None, 2.0]
