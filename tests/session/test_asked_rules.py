"""Rules that the session asks itself: functions of the past, and policies, next to those that the caller speaks for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import bridle
from bridle import policies
from bridle.policies.entry import Entry
from helpers.inside import state
from helpers.scripts import script
from helpers.sessions import assert_identical, snapshot

BOX = bridle.Box(-1.0, 1.0, dim=2)


def last_gradient(past):
    return None if not past else np.clip(-past[-1].df, -1.0, 1.0)


def steady(past):
    return [0.5, -0.5]


def drive(session, seed, rounds, way=lambda session: session):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        x = session.decide(rules=[[0.1, 0.2]])
        p, q = rng.standard_normal(2), rng.standard_normal(2)
        session = way(session)
        session.observe(f=float(p @ x), df=p, g=float(q @ x) - 1.0, dg=q)
    return session


def mixed_session(**more):
    rules = [last_gradient, bridle.policy("adagrad", BOX), "mine", bridle.policy("anytime", BOX), steady]
    return bridle.Session(bridle.policy("adagrad", BOX, rules=rules), **more)


def test_functions_are_asked_and_policies_are_fed_what_was_seen():
    """A policy among the rules is where it would be alone, fed the affine reading at its own proposal of what was seen at the action."""
    session = mixed_session(x1=np.full(5, 0.2))
    alone = bridle.Session(bridle.policy("anytime", BOX))
    rng, last = np.random.default_rng(3), None
    assert session.policy.through.names == ("last_gradient", "adagrad", "mine", "anytime", "steady")
    for t in range(40):
        w = session.weights
        own = alone.decide()
        x = session.decide(rules=[[0.1, 0.2]])
        rows = state(session).slow.said.terms
        np.testing.assert_array_equal(rows[2], [0.1, 0.2])
        np.testing.assert_array_equal(rows[3], own)
        np.testing.assert_array_equal(rows[4], [0.5, -0.5])
        if t:
            np.testing.assert_array_equal(rows[0], np.clip(-last, -1.0, 1.0))
        else:
            assert np.isnan(rows[0]).all()  # there is nothing to go by yet: it sleeps
        np.testing.assert_allclose(x, (w @ rows) if t else w[1:] @ rows[1:] / 0.8)
        p, q = rng.standard_normal(2), rng.standard_normal(2)
        last, f, g = p, float(p @ x), float(q @ x) - 3.0
        session.observe(f=f, df=p, g=g, dg=q)
        alone.observe(f=f + float(p @ (own - x)), df=p, g=g + float(q @ (own - x)), dg=q)


def test_a_session_whose_rules_are_all_asked_needs_no_word():
    session = bridle.Session(bridle.policy("mlpoly", BOX, rules=[steady, bridle.policy("adagrad", BOX)]))
    for _ in range(30):
        x = session.decide()
        np.testing.assert_array_equal(session.decide(), x)
        session.observe(f=float(x[0]), df=[1.0, 0.0])
    ticket = session.ask()
    session.observe(f=0.0, df=[1.0, 0.0], ticket=ticket)
    assert session.rounds == 31
    assert session.weights[1] > 0.9  # the policy goes where it is cheap; `steady` stays
    assert "adagrad" in session.report()


@pytest.mark.filterwarnings("ignore::bridle.core.EmptyPromiseWarning")  # of the rules, told a horizon and steps that differ
def test_learning_rates_on_a_grid_track_a_target_that_moves():
    """Policies as rules (Ader): a mixture of steps is near the best of them, which nobody could have named before."""
    box, T = bridle.Box(-1.0, 1.0, dim=1), 600
    steps = [0.003, 0.03, 0.3]
    grid = [bridle.policy("ogd", box, lipschitz=4.0, horizon=T, step=step) for step in steps]
    rules = bridle.Session(bridle.policy("mlpoly", box, rules=grid))
    alone = [bridle.Session(each) for each in grid]
    for t in range(T):
        target = np.array([np.sin(2.0 * np.pi * t / 60.0)])
        for session in (rules, *alone):
            x = session.decide()
            session.observe(f=float((x - target) @ (x - target)), df=2.0 * (x - target))
    costs = [session.cost for session in alone]
    assert rules.cost <= 1.15 * min(costs)
    assert max(costs) > 4.0 * min(costs)


def test_what_rules_learned_survives_a_file(tmp_path):
    def filed(session):
        session.save(tmp_path / "asked.npz")
        return bridle.Session.load(tmp_path / "asked.npz", policy=mixed_session().policy)

    one, other = drive(mixed_session(), 5, 25), drive(mixed_session(), 5, 25, filed)
    for session in (one, other):
        session.decide(rules=[[0.1, 0.2]])
    assert_identical(snapshot(one), snapshot(other))
    np.testing.assert_array_equal(one.weights, other.weights)
    with pytest.raises(bridle.InputError, match=r"its policy \(\w+\) has a part of your own, rules\.0; give the policy as policy="):
        bridle.Session.load(tmp_path / "asked.npz")


def test_an_observation_that_is_refused_teaches_no_rule():
    one, other = mixed_session(), mixed_session()
    for session in (one, other):
        drive(session, 1, 5)
        session.decide(rules=[[0.0, 0.0]])
    with pytest.raises(bridle.InputError):
        one.observe(f=0.0, df=[1.0, 0.0], g=np.inf, dg=[0.0, 1.0])
    for session in (one, other):
        session.observe(f=0.0, df=[1.0, 0.0])
        drive(session, 2, 5)
        session.decide(rules=[[0.1, 0.2]])
    assert_identical(snapshot(one), snapshot(other))


def test_proposals_are_asked_for_where_all_rules_are_the_sessions_own():
    """Before the first decision, and after a round; asking changes no decision."""
    asked, quiet = (bridle.Session(bridle.policy("adagrad", BOX, rules=[last_gradient, steady])) for _ in range(2))
    assert np.isnan(asked.proposals[0]).all()
    for _ in range(3):
        for session in (asked, quiet):
            session.decide()
            session.observe(f=0.1, df=[0.25, -0.5])
        assert asked.proposals.tolist() == [[-0.25, 0.5], [0.5, -0.5]]
        assert asked.decide().tolist() == quiet.decide().tolist()


def test_proposals_are_those_of_the_round():
    session = mixed_session()
    with pytest.raises(bridle.InputError, match="rules must be given"):
        _ = session.proposals
    session.decide(rules=[[0.1, 0.2]])
    rows = session.proposals
    assert np.isnan(rows[0]).all()
    assert rows[2].tolist() == [0.1, 0.2]
    rows[:] = 9.0  # a copy
    assert session.proposals[4].tolist() == [0.5, -0.5]
    with pytest.raises(bridle.InputError, match="made with features="):
        _ = bridle.Session(bridle.policy("adagrad", BOX, features=1)).proposals


def test_the_example_with_twelve_rules_costs_about_as_much_as_the_best():
    costs = script("examples/capacity_rules.py").main(slots=500)
    mixture = costs.pop("mixture")
    assert mixture <= 1.1 * min(costs.values())
    assert max(costs.values()) > 5.0 * mixture


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([3.0, 0.0], r"rules must propose actions of the domain; rules\[0\] \(odd\)"),
        ([0.0], r"rules\[0\] \(odd\) must propose an action of shape \(2,\)"),
        ("no", r"rules\[0\] \(odd\) must be an action, or None"),
    ],
)
def test_an_answer_that_cannot_be_used_names_its_rule(answer, message):
    def odd(past):
        return answer

    session = bridle.Session(bridle.policy("adagrad", BOX, rules=[odd, steady]))
    with pytest.raises(bridle.InputError, match=message):
        session.decide()
    with pytest.raises(bridle.InputError, match=r"rules\[0\] must decide in 2 dimensions, not in 3"):
        bridle.policy("adagrad", BOX, rules=[bridle.policy("adagrad", bridle.Ball(3)), steady])
    with pytest.raises(bridle.InputError, match="a list of names, functions and policies"):
        bridle.policy("adagrad", BOX, rules=[3.5, steady])


class EqualShares(NamedTuple):
    """A policy that mixes rules itself: always in equal shares."""

    start: np.ndarray

    def init(self, x1):
        return (x1, self.start)

    def decide(self, state):
        return state[0]

    def update(self, state, feedback):
        return state

    def begin(self, state, weights):
        return (state[0], weights)

    def weights(self, state):
        return state[1]

    def propose(self, state, proposals):
        return (state[1] @ proposals, state[1])


def test_a_policy_that_mixes_itself_is_handed_the_proposals(monkeypatch):
    def made(domain, through=None):
        return EqualShares(np.full(len(through.names) if through else 1, 0.5))

    entry = Entry("equal-shares", made, "equal shares", "nobody", "-", "-", mixed=made)
    monkeypatch.setitem(policies.registry._ENTRIES, "equal-shares", entry)
    policy = bridle.policy("equal-shares", BOX, rules=["a", "b"])
    assert policy.domain.dim == 2  # its decisions are actions
    session = bridle.Session(policy, x1=[0.0, 0.0])
    np.testing.assert_array_equal(session.decide(rules=[[1.0, 0.0], [0.0, 0.5]]), [0.5, 0.25])
    session.observe(f=0.0, df=[1.0, 0.0])
    np.testing.assert_array_equal(session.decide(rules=[[1.0, 0.0], [np.nan, np.nan]]), [1.0, 0.0])
    assert session.weights.tolist() == [0.5, 0.5]
    assert session.certificate().compared == "action"
    session.observe(f=0.0, df=[1.0, 0.0])
    with pytest.raises(bridle.InputError, match="rules must be given"):
        session.observe(f=0.0, df=[1.0, 0.0])
    medoid = bridle.Session(policy)
    np.testing.assert_array_equal(medoid.decide(rules=[[1.0, 0.0], [0.0, 0.5]]), [1.0, 0.0])
    assert medoid.weights.tolist() == [1.0, 0.0]


# --- what goes wrong inside of a rule ---------------------------------------------------------------------------------------------------


class Moody:
    """A rule that fails whenever it is told to."""

    __name__ = "moody"

    def __init__(self):
        self.fails = False

    def __call__(self, past):
        if self.fails:
            raise KeyboardInterrupt
        return np.tanh(past[-1].df) if past else [0.3, -0.2]


@pytest.mark.parametrize("name", ["mlpoly", "anytime", "rate"])
@pytest.mark.parametrize("late", [False, True])
def test_a_rule_that_fails_leaves_the_session_as_it_was(name, late):
    """In the first round and later, where the round was said before, and where others wait."""
    moody, calm = Moody(), Moody()
    more = {"at_most": 0.1, "safe": [0.0, 0.0]} if name == "rate" else {}
    mixed = [
        bridle.Session(bridle.policy(name, BOX, rules=[rule, bridle.policy("adagrad", BOX), "mine"], **more)) for rule in (moody, calm)
    ]
    rng, waiting = np.random.default_rng(0), []
    for t in range(12):
        R, other = rng.uniform(-1.0, 1.0, (1, 2)), rng.uniform(-1.0, 1.0, (1, 2))
        if t % 3 == 0:
            mixed[0].decide(rules=other)  # what is said of it first does not count
        moody.fails = True
        for call in (mixed[0].decide, mixed[0].ask):
            with pytest.raises(KeyboardInterrupt):
                call(rules=R)
        moody.fails = False
        p, q = rng.standard_normal(2), rng.standard_normal(2)
        if late:
            waiting.append([session.ask(rules=R) for session in mixed])
            tickets = waiting.pop(0) if len(waiting) > 3 else []
            xs = [ticket.x for ticket in tickets]
            for session, ticket in zip(mixed, tickets, strict=False):
                session.observe(f=float(p @ ticket.x), df=p, g=float(q @ ticket.x), dg=q, ticket=ticket)
        else:
            xs = [session.decide(rules=R) for session in mixed]
            for session, x in zip(mixed, xs, strict=True):
                session.observe(f=float(p @ x), df=p, g=float(q @ x), dg=q)
        assert not xs or np.array_equal(*xs)
    for session in mixed:
        session.decide(rules=[[0.1, 0.1]])
    assert_identical(*map(snapshot, mixed))


def test_a_rule_cannot_change_what_it_is_shown(tmp_path):
    def careless(past):
        if past:
            past[-1].x[:] = 9.0
        return [0.0, 0.0]

    session = bridle.Session(bridle.policy("mlpoly", BOX, rules=[careless, "mine"]))
    session.decide(rules=[[0.5, 0.5]])
    session.observe(f=0.5, df=[1.0, 0.0])
    session.save(tmp_path / "careless.npz")
    for each in (session, bridle.Session.load(tmp_path / "careless.npz", policy=session.policy)):
        with pytest.raises(ValueError, match="read-only"):
            each.decide(rules=[[0.5, 0.5]])


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("rounds", [0, 1, 20])
def test_policies_that_learn_how_many_limits_there_are_survive_a_file(tmp_path, k, rounds):
    """`soft` as a rule: before and after it has seen limits; and a round without any is none of k."""
    rules = [bridle.policy("soft", BOX), bridle.policy("rate", BOX, at_most=[0.1] * k), "mine"]
    session = bridle.Session(bridle.policy("anytime", BOX, rules=rules))
    rng = np.random.default_rng(1)

    def play(session, rng, rounds):
        for t in range(rounds):
            x = session.decide(rules=[[0.2, -0.1]])
            p, dg = rng.standard_normal(2), rng.standard_normal((k, 2))
            limits = {"g": dg @ x - 0.5, "dg": dg} if t % 4 else {}
            session.observe(f=float(p @ x), df=p, **limits)

    play(session, rng, rounds)
    session.save(tmp_path / "learned.npz")
    loaded = bridle.Session.load(tmp_path / "learned.npz", policy=session.policy)
    state = rng.bit_generator.state
    play(session, rng, 10)
    rng.bit_generator.state = state
    play(loaded, rng, 10)
    for each in (session, loaded):
        each.decide(rules=[[0.2, -0.1]])
    assert_identical(snapshot(loaded), snapshot(session))
    np.testing.assert_array_equal(session.proposals, loaded.proposals)
    before = snapshot(session)
    with pytest.raises(bridle.InputError, match=rf"g must hold {k} constraint values?, as many as rules\[0\] \(soft\) takes, not {k + 1}"):
        session.observe(f=0.0, df=[1.0, 0.0], g=np.ones(k + 1), dg=np.ones((k + 1, 2)))
    assert_identical(snapshot(session), before)


@pytest.mark.parametrize(
    "made",
    [
        lambda: bridle.policy("mlpoly", BOX, rules=2),
        lambda: bridle.policy("adagrad", BOX, features=1),
        lambda: bridle.policy("ogd", BOX, lipschitz=1.0, step=[0.1, 0.2]),
    ],
    ids=["rules", "features", "sweep"],
)
def test_a_policy_that_does_not_decide_on_actions_by_itself_is_no_rule(made):
    """Its decisions are weights, or several: with as many of them as there are coordinates they were once played as actions."""
    with pytest.raises(bridle.InputError, match=r"rules\[1\] must decide on one action by itself: \w+ was made with"):
        bridle.policy("mlpoly", BOX, rules=["mine", made()])
