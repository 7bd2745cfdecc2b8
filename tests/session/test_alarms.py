"""Alarms are data: a broken assumption ends a promise whatever words say so, and a warning is not repeated."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import bridle
from bridle.core import Alarm, AssumptionWarning, InfeasibleWarning

UNIT = np.array([[1.0], [-1.0]])
INTERVAL = bridle.Box([-1.0], [1.0])
NOT_ON_AN_INTERVAL = {name for name in bridle.policies.names() if bridle.policies.entry(name).domains == ("simplex",)}


def contradict(session: bridle.Session, rounds: int) -> None:
    """x <= -1/2 and x >= 1/2 in turn."""
    for t in range(rounds):
        row = UNIT[t % 2]
        if hasattr(session.policy.record, "points"):  # it sees values alone, at the points that it tries
            session.step(lambda x: 0.0, [lambda x, row=row: float(row @ x) + 0.5])
        else:
            x = session.decide()
            session.observe(f=0.0, df=np.zeros(1), g=float(row @ x) + 0.5, dg=row)


def quietly(session: bridle.Session, rounds: int) -> bridle.Session:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contradict(session, rounds)
    return session


@pytest.mark.parametrize("rounds", [2, 3, 17, 31, 32, 63, 64, 100])
def test_steiner_promises_no_violation_below_the_counter(rounds):
    session = quietly(bridle.Session(bridle.policy("steiner", INTERVAL, horizon=100)), rounds)
    bound = session.bound()
    assert bound.ccv is None
    assert bound.why
    assert "Promise: the policy's theorem says nothing here" in session.report()


@pytest.mark.parametrize("name", [name for name in bridle.policies.names() if name not in NOT_ON_AN_INTERVAL])
@pytest.mark.parametrize("rounds", [1, 9, 31])
def test_no_policy_promises_a_violation_below_the_counter(name, rounds):
    """As long as the contradiction is not proved (in round 32), the theorem must not be quoted once it is contradicted itself."""
    curved = {"modulus": 1.0} if bridle.policies.entry(name).strongly_convex else {}
    policy = bridle.policy_for(name, bridle.problem("fixed", horizon=100, domain=INTERVAL, **curved))
    session = quietly(bridle.Session(policy), rounds)
    bound = session.bound()
    assert bound.ccv is None or bound.ccv >= session.ccv
    assert bound.soft is None or bound.soft >= session.balances.max()


def test_a_theorem_that_the_counter_contradicts_is_not_quoted(monkeypatch):
    monkeypatch.setattr(bridle.policies.Configured, "bound", lambda *_: bridle.core.Bound(regret=1.0, ccv=1.0, soft=1.0))
    session = bridle.Session(bridle.policy("yi2022", INTERVAL, lipschitz=1.0))
    limit = {"f": 0.0, "df": np.zeros(1), "g": 0.4, "dg": np.array([1.0])}  # in every round of some action there is
    for _ in range(2):
        session.observe(**limit)
    assert session.bound() == bridle.core.Bound(regret=1.0, ccv=1.0, soft=1.0)
    session.observe(**limit)
    assert session.ccv > 1.0
    assert session.certificate().conflict is None
    assert session.bound().why.endswith("is more than the theorem allows: an assumption does not hold")
    assert session.bound().regret is None
    assert session.bound().ccv is None
    assert session.bound().soft is None


def test_what_an_alarm_ends_is_decided_by_its_flags_alone():
    """The same words with and without the flag: only the flag counts."""
    words = "no bound holds; no action satisfies every constraint"

    class Loud(type(bridle.policy("anytime", bridle.Ball(2)).record)):  # type: ignore[misc]
        voids = False

        def alarm(self, state):
            return Alarm(words, voids_bound=self.voids)

    policy = bridle.policy("anytime", bridle.Ball(2))
    loud = replace(policy, record=Loud(*policy.record))
    session = bridle.Session(loud)
    session.observe(f=0.3, df=np.array([1.0, 0.0]), g=0.1, dg=np.array([0.0, 1.0]))
    assert session.bound().why == ""
    assert session.bound().ccv is not None
    Loud.voids = True
    assert session.bound().why == words
    assert session.bound().ccv is None


def test_an_alarm_of_bare_text_voids_every_bound_and_crashes_nothing():
    """A policy from elsewhere may answer with text, empty where nothing is wrong."""

    class Wordy(type(bridle.policy("anytime", bridle.Ball(2)).record)):  # type: ignore[misc]
        words = ""

        def alarm(self, state):
            return self.words

    policy = bridle.policy("anytime", bridle.Ball(2))
    wordy = replace(policy, record=Wordy(*policy.record))
    session = bridle.Session(wordy)

    def observe(rounds):
        for _ in range(rounds):
            session.observe(f=0.3, df=np.array([1.0, 0.0]), g=0.1, dg=np.array([0.0, 1.0]))

    with warnings.catch_warnings():
        warnings.simplefilter("error", AssumptionWarning)
        observe(64)
    assert session.bound().ccv is not None
    problem = bridle.problem("halfspaces", horizon=10, dim=2)
    assert not bridle.play(wordy, problem).warnings
    Wordy.words = "the sky has fallen"
    assert session.bound() == bridle.core.Bound(why="the sky has fallen")
    with pytest.warns(AssumptionWarning, match="the sky has fallen"):
        observe(64)
    assert "the sky has fallen" in session.report()
    with pytest.warns(bridle.BridleWarning, match="the sky has fallen"):
        bridle.play(wordy, problem)


@pytest.mark.parametrize(("name", "both"), [("anytime", False), ("steiner", True)])
def test_a_warning_that_says_the_same_as_the_proof_is_not_given(name, both):
    """A constraint that misses the whole domain: `anytime` says no more than the proof does, `steiner` counts what it left out."""
    session = bridle.Session(bridle.policy(name, INTERVAL, **({"horizon": 100} if name == "steiner" else {})))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(64):
            x = session.decide()
            session.observe(f=0.0, df=np.zeros(1), g=float(x[0]) + 5.0, dg=np.ones(1))
    kinds = {type(warning.message) for warning in caught}
    assert InfeasibleWarning in kinds
    assert (AssumptionWarning in kinds) is both


ALARMS = [
    ("anytime", {}, {"infeasible": 3.0}, Alarm("", voids_bound=True, infeasible=True)),
    ("sinha2024", {"horizon": 100, "lipschitz": 1.0}, {"Q": 1e6}, Alarm("", voids_bound=True)),
    ("steiner", {"horizon": 100}, {"left_out": 1.0}, Alarm("", voids_bound=True)),
    ("vaze2025", {"lipschitz": 1.0}, {"left_out": 1.0}, Alarm("", voids_bound=True)),
    ("vaze2025", {"lipschitz": 1.0}, {"lost": 1.0}, Alarm("", voids_bound=False)),
    ("hutchinson2025", {"horizon": 100, "lipschitz": 1.0, "slater": 0.5}, {"broken": 2.0}, Alarm("", voids_bound=True)),
    ("dynamic", {}, {"infeasible": 3.0}, Alarm("", voids_bound=True, infeasible=True)),
    ("optimistic", {}, {"infeasible": 3.0}, Alarm("", voids_bound=True, infeasible=True)),
    ("wang2025-squared", {"horizon": 100}, {"limits": {"infeasible": 3.0}}, Alarm("", voids_bound=True, infeasible=True)),
    ("sarkar2025", {"lipschitz": 1.0}, {"Q": 1e6}, Alarm("", voids_bound=True)),
    ("yu2026", {"lipschitz": 1.0, "bound": 1.0}, {"Q": np.array([1e6])}, Alarm("", voids_bound=True)),
    ("bandit1", {"horizon": 100, "lipschitz": 1.0, "bound": 1.0}, {"worst": 2.0}, Alarm("", voids_bound=True)),
    ("soft", {"lipschitz": 1.0, "bound": 2.0, "cap": 1.0}, {"capped": 1.0}, Alarm("", voids_bound=False)),
]


@pytest.mark.parametrize(("name", "settings", "changed", "expected"), ALARMS, ids=lambda v: str(v)[:30])
def test_which_alarm_ends_a_bound(name, settings, changed, expected):
    """As each policy's proof says: what it needs is gone, or what was lost is nothing that it needs."""
    policy = bridle.policy(name, INTERVAL, **settings)
    state = policy.record.init(INTERVAL.center())
    assert policy.record.alarm(state) is None
    parts = {key: getattr(state, key)._replace(**to) if isinstance(to, dict) else to for key, to in changed.items()}
    alarm = policy.record.alarm(state._replace(**parts))
    assert alarm.text
    assert alarm._replace(text="") == expected


def test_every_alarm_is_listed():
    """A policy with an alarm that is not listed above has been decided by nobody."""
    kinds = {_record_type(name) for name in bridle.policies.names()}
    assert {kind for kind in kinds if hasattr(kind, "alarm")} == {_record_type(name) for name, *_ in ALARMS}


def _record_type(name: str) -> type | None:
    problem = bridle.problem("fixed", horizon=100, domain=INTERVAL, modulus=1.0)
    try:
        return type(bridle.policy_for(name, problem).record)
    except bridle.core.InputError:
        return None
