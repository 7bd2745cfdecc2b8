"""Limits on how often are about what was played: with rules, known limits, late feedback and overrides, the counts are exact."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.policies.levels import most_violations
from helpers.inside import state
from helpers.sessions import assert_identical, snapshot

BOX = bridle.Box(0.0, 40.0, dim=2)
SAFE = [40.0, 40.0]


def make(rules, form="each", **options):
    more = {"rules": ["low", "middle", "high"]} if rules == "mine" else {"features": 2} if rules == "features" else {}
    policy = bridle.policy("rate", BOX, at_most=0.1 if form == "any" else [0.1, 0.05], constraints=2, safe=SAFE, form=form, **more)
    return bridle.Session(policy, **options)


def said(session, rules, rng, known):
    words = {}
    if rules == "mine":
        R = rng.uniform(0.0, 40.0, (3, 2))
        R[rng.random(3) < 0.3] = np.nan
        R[rng.integers(3)] = rng.uniform(0.0, 40.0, 2)  # not all sleep
        words["rules"] = R
    elif rules == "features":
        words["features"] = rng.uniform(-3.0, 3.0, 2)
    if known:
        words["known"] = ([[1.0, 1.0]], [rng.uniform(5.0, 80.0)])
    return words


def revealed(x, rng, hostile):
    """Demand that is above the action whenever it likes, at what was played."""
    need = x + rng.uniform(0.1, 1.0, 2) if hostile and rng.random() < 0.7 else rng.uniform(0.0, 45.0, 2)
    g = need - x
    g[rng.random(2) < 0.05] = 0.0  # on the limit is not above it
    return {"f": float(x.sum()), "df": [1.0, 1.0], "g": g, "dg": -np.eye(2)}


def check(session, violated, counted, form="each"):
    """The counts are those of what was played, the identity holds, and so does the bound."""
    for i, limit in enumerate(session.rates):
        assert (limit.violated, limit.counted) == (violated[i], counted)
        assert limit.exact
        assert limit.violated <= limit.proved * limit.counted + 1e-9


CASES = st.tuples(
    st.integers(0, 10**6), st.sampled_from(["own", "mine", "features"]), st.sampled_from(["each", "any"]), st.booleans(), st.booleans()
)


@pytest.mark.slow
@given(CASES)
@settings(max_examples=15, deadline=None)
def test_counts_are_of_what_was_played(case):
    """Overrides, rounds with known limits, and both; against an opponent that violates whenever it can."""
    seed, rules, form, known, hostile = case
    session, rng = make(rules, form), np.random.default_rng(seed)
    violated, moved = np.zeros(2, dtype=int), 0
    for n in range(1, 121):
        x = session.decide(**said(session, rules, rng, known and rng.random() < 0.5))
        y = np.clip(x + rng.normal(0.0, 5.0, 2), 0.0, 40.0) if rng.random() < 0.5 else x
        moved += y is not x
        record = revealed(y, rng, hostile)
        session.observe(**record, **({"played": y} if y is not x else {}))
        over = record["g"] > 0.0
        violated += [over.any()] * 2 if form == "any" else over
        check(session, violated, n, form)
    assert moved > 30


@pytest.mark.slow
@given(CASES, st.integers(1, 9))
@settings(max_examples=12, deadline=None)
def test_counts_of_late_rounds_are_of_what_was_played(case, delay):
    """In any order, with rules of one's own and overrides; the bound with as many waiting as there were."""
    seed, rules, form, known, hostile = case
    session, rng = make(rules, form), np.random.default_rng(seed)
    violated, waiting, counted, most = np.zeros(2, dtype=int), [], 0, 0
    for _ in range(120):
        waiting.append(session.ask(**said(session, rules, rng, known and rng.random() < 0.5)))
        while len(waiting) > delay or (waiting and rng.random() < 0.3):
            ticket = waiting.pop(int(rng.integers(len(waiting))))
            y = np.clip(ticket.x + rng.normal(0.0, 5.0, 2), 0.0, 40.0) if rng.random() < 0.5 else ticket.x
            record = revealed(y, rng, hostile)
            most = max(most, len(waiting))
            session.observe(**record, ticket=ticket, **({"played": y} if y is not ticket.x else {}))
            over = record["g"] > 0.0
            violated += [over.any()] * 2 if form == "any" else over
            counted += 1
            check(session, violated, counted, form)
    limit = session.rates[0]
    assert limit.open == len(waiting) == session.pending
    exact = most_violations(0.1, counted, 80.0 * (1.0 + most), 0.0, most, limit.unavoidable)
    assert limit.proved == pytest.approx(min(1.0, float(exact) / counted))


def test_an_override_of_the_safe_action_is_unavoidable():
    """Whoever plays 0 in place of everything violates for ever: the level stays at its top, and what is proved allows for each."""
    session = bridle.Session(bridle.policy("rate", bridle.Box(0.0, 40.0, dim=1), at_most=0.05, safe=[40.0]))
    for _ in range(300):
        session.decide()
        session.observe(f=0.0, df=[1.0], g=5.0, dg=[-1.0], played=[0.0])
    limit = session.rates[0]
    assert (limit.violated, limit.counted, limit.exact) == (300, 300, True)
    assert limit.unavoidable == 300 - 85, "80/0.95 violations take the level to its top"
    assert limit.measured == limit.proved == 1.0


def test_what_was_decided_does_not_count_where_it_was_not_played():
    """Rounding up keeps a limit that the decision would have violated."""
    session = bridle.Session(bridle.policy("rate", bridle.Box(0.0, 40.0, dim=1), at_most=0.2, safe=[40.0]), x1=[9.5])
    for _ in range(200):
        x = session.decide()
        y = np.ceil(x)
        session.observe(f=float(y[0]), df=[1.0], g=float(np.floor(y[0]) - y[0]), dg=[-1.0], played=y)
    assert session.rates[0].violated == 0


@pytest.mark.compiles
def test_compiled_sessions_count_what_was_played():
    """Rounds with overrides are played in Python, the others compiled: decisions and counts are those of Python alone."""
    policy = bridle.policy("rate", bridle.Box(0.0, 40.0, dim=1), at_most=0.2, safe=[40.0], rules=2)
    sessions = [bridle.Session(policy, engine=engine) for engine in ("python", "compiled")]
    violated = 0
    for session in sessions:
        rng, violated = np.random.default_rng(3), 0
        for _ in range(80):
            x = session.decide(rules=rng.uniform(0.0, 40.0, (2, 1)))
            y = np.floor(x) if rng.random() < 0.3 else None
            g = float(rng.uniform(0.0, 40.0) - (x if y is None else y)[0])
            session.observe(f=float(x[0]), df=np.array([1.0]), g=g, dg=np.array([[-1.0]]), played=y)
            violated += g > 0.0
    one, two = (session.rates[0] for session in sessions)
    assert one == two
    assert (one.violated, one.exact) == (violated, True)
    assert sessions[0].weights == pytest.approx(sessions[1].weights, abs=1e-12)


@pytest.mark.parametrize("rules", ["own", "mine", "features"])
def test_files_and_copies_count_on(tmp_path, rules):
    def play(session, rng, tickets, rounds):
        for t in range(rounds):
            tickets.append(session.ask(**said(session, rules, rng, t % 3 == 0)))
            if len(tickets) > 4:
                ticket = tickets.pop(int(rng.integers(len(tickets))))
                y = np.clip(np.round(ticket.x), 0.0, 40.0)
                session.observe(**revealed(y, rng, True), ticket=ticket.id, played=y)

    session, rng, tickets = make(rules), np.random.default_rng(0), []
    play(session, rng, tickets, 40)
    session.decide(**said(session, rules, rng, True))
    session.save(tmp_path / "played.npz")
    others = [bridle.Session.load(tmp_path / "played.npz"), pickle.loads(pickle.dumps(session))]
    state, left = rng.bit_generator.state, list(tickets)
    play(session, rng, tickets, 40)
    session.decide(**said(session, rules, np.random.default_rng(9), False))
    for other in others:
        rng.bit_generator.state = state
        play(other, rng, list(left), 40)
        other.decide(**said(other, rules, np.random.default_rng(9), False))
        assert_identical(snapshot(other), snapshot(session))
        assert other.rates == session.rates


# --- the last word on a round ---------------------------------------------------------------------------------------------------------


def test_feedback_between_two_words_on_a_round_is_not_forgotten():
    """The decision stays the safe action, so it does not show that feedback has come since the first word."""
    session = bridle.Session(bridle.policy("rate", bridle.Box(0.0, 40.0, dim=1), at_most=0.05, safe=[40.0], rules=2))
    old = session.ask(rules=[[5.0], [10.0]])
    for _ in range(200):
        x = session.decide(rules=[[5.0], [10.0]])
        session.observe(f=1.0, df=[1.0], g=1.0 if x[0] < 40.0 else -1.0, dg=[-1.0])
        if session.decide(rules=[[5.0], [10.0]])[0] == 40.0:
            break
    before = session.rates[0].counted
    session.observe(f=1.0, df=[1.0], g=1.0, dg=[-1.0], ticket=old)
    assert session.decide(rules=[[6.0], [11.0]])[0] == 40.0
    assert session.rates[0].counted == before + 1 == session.rounds


def test_a_state_that_was_fed_is_not_put_back(tmp_path):
    """Feedback without slopes leaves the decision where it is, and is in the state all the same; in files too."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    old = session.ask()
    session.decide(known=([[1.0, 0.0]], [-0.5]))
    session.observe(f=3.0, df=[0.0, 0.0], g=-1.0, dg=[0.0, 0.0], ticket=old)
    session.save(tmp_path / "fed.npz")
    loaded = bridle.Session.load(tmp_path / "fed.npz")
    for each in (session, loaded):
        x = each.decide(known=([[1.0, 0.0]], [-0.4]))
        assert x[0] <= -0.4 + 1e-9
        assert sum(float(copy.state.rounds) for copy in state(each).copies) == 1.0
        assert each.rounds == 1


def test_the_last_word_counts_in_a_loaded_session_too(tmp_path):
    """Where nothing came between: the first word leaves no trace."""
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    session.observe(f=0.0, df=[1.0, 1.0])
    want = pickle.loads(pickle.dumps(session)).decide(known=([[0.0, 1.0]], [-0.8]))
    session.decide(known=([[1.0, 0.0]], [-0.9]))
    session.save(tmp_path / "said.npz")
    for each in (bridle.Session.load(tmp_path / "said.npz"), session):
        assert np.array_equal(each.decide(known=([[0.0, 1.0]], [-0.8])), want)
