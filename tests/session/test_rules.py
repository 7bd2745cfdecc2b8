"""Decisions as mixtures of the caller's rules: what is proved of them, and that a session keeps each round's map with the round."""

from __future__ import annotations

import copy
import pickle
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import bridle
from bridle.policies.round_maps import rules_lipschitz
from helpers.sessions import assert_identical, snapshot


class LinearStream:
    """Costs <p, x> and limits <q, x> <= level that a fixed mixture `keeper` keeps, with proposals in a box; it may look at the action."""

    def __init__(self, seed, K=5, dim=2, hostile=False, apart=False, unit=1.0, sleepy=False):
        self.rng = np.random.default_rng(seed)
        self.K, self.dim, self.hostile, self.unit, self.sleepy = K, dim, hostile, unit, sleepy
        self.keeper = self.rng.dirichlet(np.ones(K), size=dim if apart else 1).T
        self.rows = []

    def proposals(self):
        R = self.rng.uniform(0.0, 1.0, (self.K, self.dim))
        if self.sleepy:
            R[self.rng.random(self.K) < 0.3] = np.nan
            R[0] = np.where(np.isnan(R[0]), 0.5, R[0])
        return self.unit * R

    def answer(self, R, x):
        p, q = self.rng.standard_normal(self.dim), self.rng.standard_normal(self.dim)
        whole = np.where(np.isnan(R), x, R)
        kept = (self.keeper * whole).sum(axis=0)
        if self.hostile:  # what was played is always dear, and on the wrong side
            p, q = p * np.sign(p @ (x - kept) + 1e-300), q * np.sign(q @ (x - kept) + 1e-300)
        room = 1e-9 * self.unit  # where all rules propose the same, rounding alone must not break the limit
        self.rows.append((whole, x, p, q, float(q @ kept) + room))
        return {"f": float(p @ x), "df": p, "g": float(q @ (x - kept)) - room, "dg": q}

    def best_mixture(self, apart=False):
        """The least cost of a fixed mixture that keeps every limit, by a linear program over the weights."""
        columns = [(p[:, None] * R.T).ravel() if apart else R @ p for R, _, p, _, _ in self.rows]
        limits = [(q[:, None] * R.T).ravel() if apart else R @ q for R, _, _, q, _ in self.rows]
        groups = self.dim if apart else 1
        sums = np.kron(np.eye(groups), np.ones(self.K))
        found = linprog(
            np.sum(columns, axis=0), A_ub=np.array(limits), b_ub=[level for *_, level in self.rows], A_eq=sums, b_eq=np.ones(groups)
        )
        assert found.status == 0, found.message
        return found.fun


def play(session, stream, rounds):
    for _ in range(rounds):
        R = stream.proposals()
        session.observe(**stream.answer(R, session.decide(rules=R)))


@pytest.mark.parametrize("apart", [False, True], ids=["round", "coordinate"])
@pytest.mark.parametrize("hostile", [False, True], ids=["random", "hostile"])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_regret_against_the_best_mixture_in_hindsight_is_below_every_bound(apart, hostile, unit):
    stream = LinearStream(3, hostile=hostile, apart=apart, unit=unit)
    settings = {"rules_per": "coordinate"} if apart else {}
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, unit, dim=2), rules=5, **settings))
    play(session, stream, 150)
    regret, proof = session.cost - stream.best_mixture(apart), session.certificate()
    slack = 1e-6 * unit * 150
    assert regret <= proof.regret + slack
    assert regret <= proof.regret_algorithm + slack
    assert regret <= proof.bound.regret + slack
    assert session.ccv <= proof.bound.ccv
    assert proof.regret < 0.4 * unit * 150  # no empty promise: without learning it is as large as that
    assert session.ccv > 0.0


@given(st.integers(0, 10_000), st.integers(2, 7), st.integers(1, 3), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=12, deadline=None)
def test_certificates_hold_against_every_mixture_that_keeps_the_limits(seed, K, dim, hostile, apart, sleepy):
    stream = LinearStream(seed, K, dim, hostile, apart, sleepy=sleepy)
    settings = {"rules_per": "coordinate"} if apart else {}
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=dim), rules=K, **settings))
    play(session, stream, 30)
    proof = session.certificate()
    assert session.cost - stream.best_mixture(apart) <= min(proof.regret, proof.regret_algorithm) + 1e-6


@pytest.mark.parametrize("name", ["mlpoly", "adahedge", "adagrad"])
@pytest.mark.parametrize("apart", [False, True], ids=["round", "coordinate"])
def test_learners_on_the_weights_keep_their_bounds_against_every_mixture(name, apart):
    """With one rule of an absurd scale among them, and an opponent that looks at the action."""
    box, rng = bridle.Box(0.0, 1000.0, dim=2), np.random.default_rng(4)
    session = bridle.Session(bridle.policy(name, box, rules=5, **({"rules_per": "coordinate"} if apart else {})))
    paid, sums = 0.0, np.zeros((5, 2))
    for _ in range(200):
        R = rng.uniform(0.0, 1.0, (5, 2))
        R[4] = 1000.0
        x = session.decide(rules=R)
        p = rng.standard_normal(2) + 0.5 * (x > 0.5)
        session.observe(f=float(p @ x), df=p)
        paid, sums = paid + float(p @ x), sums + R * p
    best = sums.min(axis=0).sum() if apart else sums.sum(axis=1).min()
    proof = session.certificate()
    assert paid - best <= proof.regret_any * (1.0 + 1e-9)
    assert paid - best <= proof.bound.regret if proof.bound.regret is not None else (name, apart) == ("mlpoly", True)
    assert proof.regret_algorithm is None or paid - best <= proof.regret_algorithm * (1.0 + 1e-9)


def test_a_session_with_rules_is_an_ordinary_one_on_the_weights():
    """Bit for bit what a plain session on the simplex does with gradients that were pulled back by hand."""
    box, rng, stream = bridle.Box(0.0, 1.0, dim=2), np.random.default_rng(5), LinearStream(11)
    mixed = bridle.Session(bridle.policy("anytime", box, rules=5), x1=np.full(5, 0.2))
    plain = bridle.Session(bridle.policy("anytime", bridle.Simplex(5)))
    for _ in range(60):
        R = stream.proposals()
        x, w = mixed.decide(rules=R), plain.decide()
        np.testing.assert_allclose(x, R.T @ w, atol=1e-15)
        seen = stream.answer(R, x) | {"f": float(rng.normal())}
        mixed.observe(**seen)
        centred = R - R.mean(axis=0)
        plain.observe(f=seen["f"], df=seen["df"] @ centred.T, g=seen["g"], dg=seen["dg"] @ centred.T)
    np.testing.assert_array_equal(mixed.weights, plain.decide())
    assert (mixed.cost, mixed.ccv) == (plain.cost, plain.ccv)
    assert mixed.certificate().regret == plain.certificate().regret
    assert mixed.bound() == plain.bound()


@pytest.mark.parametrize("name", ["anytime", "adagrad"])
@pytest.mark.parametrize("scale", [2.0**-10, 2.0**10, 1e-3, 1e3])
def test_units_of_actions_and_costs_change_nothing(name, scale):
    one, other = (bridle.Session(bridle.policy(name, bridle.Box(0.0, unit, dim=2), rules=5)) for unit in (1.0, scale))
    stream = LinearStream(7)
    for _ in range(80):
        R = stream.proposals()
        x, y = one.decide(rules=R), other.decide(rules=scale * R)
        np.testing.assert_allclose(y, scale * x, rtol=1e-9, atol=1e-12 * scale)
        seen = stream.answer(R, x)
        one.observe(**seen)
        other.observe(f=7.0 * seen["f"], df=7.0 * seen["df"] / scale, g=5.0 * seen["g"], dg=5.0 * seen["dg"] / scale)
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-9)


def test_moving_all_proposals_by_the_same_changes_no_weight():
    """What all rules have in common says nothing about any: the gradients are as long as the proposals differ."""
    near, far = (bridle.Session(bridle.policy("adagrad", bridle.Box(0.0, 2e3, dim=2), rules=4)) for _ in range(2))
    stream = LinearStream(2, K=4)
    for _ in range(50):
        R = stream.proposals()
        x, y = near.decide(rules=R), far.decide(rules=R + 1e3)
        np.testing.assert_allclose(y, x + 1e3, atol=1e-8)
        seen = stream.answer(R, x)
        for session in (near, far):
            session.observe(**seen)


def test_a_sleeping_rule_neither_gains_nor_loses():
    session = bridle.Session(bridle.policy("adagrad", bridle.Box(0.0, 10.0, dim=1), rules=3), x1=[0.2, 0.3, 0.5])
    x = session.decide(rules=[[2.0], [np.nan], [6.0]])
    assert x[0] == pytest.approx((0.2 * 2.0 + 0.5 * 6.0) / 0.7)  # the mixture of those awake
    through, w = session.policy.through, session.weights
    losses = through.read(np.array([[2.0], [np.nan], [6.0]]), w).map.pull(np.array([3.0]))
    assert losses[1] == pytest.approx(losses @ w)  # it is charged with what was played
    assert losses[2] - losses[0] == pytest.approx(3.0 * (6.0 - 2.0))
    alone = bridle.Session(bridle.policy("adagrad", bridle.Box(0.0, 10.0, dim=1), rules=2), x1=[0.0, 1.0])
    assert alone.decide(rules=[[3.0], [np.nan]])[0] == 3.0  # all the weight sleeps: the others share it


def test_regret_against_one_rule_counts_its_awake_rounds():
    stream = LinearStream(19, K=4, sleepy=True)
    session = bridle.Session(bridle.policy("adagrad", bridle.Box(0.0, 1.0, dim=2), rules=4))
    gained, lengths = np.zeros(4), 0.0
    for _ in range(200):
        R = stream.proposals()
        x = session.decide(rules=R)
        seen = stream.answer(R, x)
        session.observe(f=seen["f"], df=seen["df"])
        awake = ~np.isnan(R[:, 0])
        gained[awake] += (x - R[awake]) @ seen["df"]
        whole = np.where(awake[:, None], R, x)
        lengths += float((((whole - whole.mean(axis=0)) @ seen["df"]) ** 2).sum())
    assert gained.max() <= 2.0 * sqrt(lengths)  # AdaGrad's bound with D = sqrt(2)
    assert gained.max() <= session.bound().regret


def test_the_first_weights_are_those_of_the_medoid():
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 100.0, dim=1), rules=4))
    assert session.decide(rules=[[1.0], [3.0], [2.9], [100.0]])[0] == 3.0  # |3-1| + |3-2.9| + 97, against 1.9 + 0.1 + 97.1
    assert session.decide(rules=[[1.0], [1.2], [1.3], [100.0]])[0] == 1.2  # nothing was observed yet: the last word counts
    session.observe(f=0.0, df=[0.0])
    assert session.decide(rules=[[1.0], [50.0], [2.0], [3.0]])[0] == 50.0  # from then on weights are the policy's
    apart = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 9.0, dim=2), rules=3, rules_per="coordinate"))
    assert apart.decide(rules=[[0.0, 9.0], [1.0, 0.0], [9.0, 1.0]]).tolist() == [1.0, 1.0]
    told = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 9.0, dim=1), rules=2), x1=[0.25, 0.75])
    assert told.decide(rules=[[0.0], [8.0]])[0] == 6.0
    entropic = bridle.policy("sun2017", bridle.Box(0.0, 1.0, dim=1), rules=2, horizon=9, lipschitz=1.0, bound=1.0, mirror="entropic")
    assert bridle.Session(entropic).decide(rules=[[0.0], [1.0]])[0] == 0.5  # a weight of 0 would stay there for ever


@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_gradients_on_weights_are_at_most_as_long_as_stated(seed, K, dim):
    rng = np.random.default_rng(seed)
    through = bridle.policy("adagrad", bridle.Box(-9.0, 9.0, dim=dim), rules=K).through
    R, p = rng.uniform(-9.0, 9.0, (K, dim)), rng.standard_normal(dim)
    wide = max(np.linalg.norm(a - b) for a in R for b in R)
    pulled = through.read(R, np.full(K, 1.0 / K)).map.pull(p)
    assert np.linalg.norm(pulled) <= rules_lipschitz(float(np.linalg.norm(p)), wide, K) * (1.0 + 1e-12)


def test_the_stated_length_is_attained_by_two_rules():
    through = bridle.policy("adagrad", bridle.Box(-9.0, 9.0, dim=2), rules=2).through
    pulled = through.read(np.array([[3.0, 0.0], [-3.0, 0.0]]), np.array([0.5, 0.5])).map.pull(np.array([2.0, 0.0]))
    assert np.linalg.norm(pulled) == pytest.approx(rules_lipschitz(2.0, 6.0, 2))
    assert rules_lipschitz(2.0, 6.0, 2) == pytest.approx(12.0 / sqrt(2.0))


def drive(session, seed, rounds, before=lambda session: session):
    stream = LinearStream(seed)
    for _ in range(rounds):
        R = stream.proposals()
        x = session.decide(rules=R)
        session = before(session)
        np.testing.assert_array_equal(session.decide(), x)  # the map of the round goes with it
        session.observe(**stream.answer(R, x))
    return session


@pytest.mark.parametrize("way", [copy.deepcopy, lambda session: pickle.loads(pickle.dumps(session))], ids=["copy", "pickle"])
def test_copies_and_pickles_hold_the_map_of_the_round(way):
    fresh = lambda: bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2), rules=list("abcde")))  # noqa: E731
    assert_identical(snapshot_of(drive(fresh(), 4, 12)), snapshot_of(drive(fresh(), 4, 12, way)))


def snapshot_of(session):
    session.decide(rules=np.full((5, 2), 0.5))
    return snapshot(session) | {"weights": session.weights, "regret": session.certificate().regret}


def test_saved_sessions_resume_with_the_map_of_the_round(tmp_path):
    def through_a_file(session):
        session.save(tmp_path / "session.npz")
        return bridle.Session.load(tmp_path / "session.npz")

    fresh = lambda: bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2), rules=list("abcde")))  # noqa: E731
    resumed = drive(through_a_file(fresh()), 4, 12, through_a_file)  # also before the first round, whose weights are still free
    assert_identical(snapshot_of(drive(fresh(), 4, 12)), snapshot_of(resumed))
    assert resumed.policy.through.names == tuple("abcde")


def test_rounds_that_wait_keep_their_own_maps(tmp_path):
    stream, proposals = LinearStream(8), []
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2), rules=5))
    tickets = []
    for i in range(4):
        R = stream.proposals()
        R[i] = np.nan
        tickets.append(session.ask(rules=R))
        proposals.append(R)
    with pytest.raises(bridle.InputError, match="rules must be given"):
        session.ask()
    session.save(tmp_path / "waiting.npz")
    other = bridle.Session.load(tmp_path / "waiting.npz")
    for ticket, R in reversed(list(zip(tickets, proposals, strict=True))):
        seen = stream.answer(R, ticket.x)
        for each in (session, other):
            each.observe(**seen, ticket=ticket)
    assert_identical(snapshot_of(session), snapshot_of(other))
    assert session.cost - stream.best_mixture() <= session.certificate().regret + 1e-9


@pytest.mark.compiles
def test_compiled_rounds_of_mixtures_agree_with_python():
    sessions = [bridle.Session(bridle.policy("adagrad", bridle.Box(0.0, 1.0, dim=2), rules=5), engine=e) for e in ("python", "compiled")]
    for session in sessions:
        drive(session, 21, 150)
    one, other = (session.certificate() for session in sessions)
    np.testing.assert_allclose(sessions[0].weights, sessions[1].weights, atol=1e-12)
    assert one.cost == pytest.approx(other.cost, abs=1e-12)
    assert one.regret == pytest.approx(other.regret, abs=1e-9)
    assert sessions[1]._stepper.compiled is not None
    assert sessions[1].rounds == 150


def test_a_round_without_its_proposals_is_refused_and_changes_nothing():
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2), rules=3))
    with pytest.raises(bridle.InputError, match=r"rules must be given, decide\(rules=R\), with what each of the 3 rules"):
        session.decide()
    with pytest.raises(bridle.InputError, match="rules must be given"):
        session.observe(f=0.0, df=[1.0, 0.0])
    session.decide(rules=np.full((3, 2), 0.5))
    session.observe(f=0.0, df=[1.0, 0.0])
    with pytest.raises(bridle.InputError, match="rules must be given"):  # the map of the last round is not this round's
        session.observe(f=0.0, df=[1.0, 0.0])
    assert session.rounds == 1


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (np.zeros((2, 2)), r"rules must have shape \(3, 2\), a row for each rule, not \(2, 2\)"),
        ([[0.0, 0.0], [0.0, 2.0], [0.0, 0.0]], r"rules must propose actions of the domain; rules\[1\] \(b\) proposes"),
        ([[0.0, 0.0], [0.0, np.inf], [0.0, 0.0]], r"rules must propose actions of the domain; rules\[1\] \(b\) proposes"),
        ([[0.0, 0.0], [0.0, np.nan], [0.0, 0.0]], r"a whole action or sleep \(NaN throughout\); rules\[1\] \(b\)"),
        (np.full((3, 2), np.nan), "every rule sleeps"),
        ("abc", "rules must be an array of numbers"),
    ],
)
def test_proposals_that_cannot_be_used_are_named(rules, message):
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2), rules=["a", "b", "c"]))
    session.decide(rules=np.full((3, 2), 0.25))
    before = pickle.dumps(session)
    with pytest.raises(bridle.InputError, match=message):
        session.decide(rules=rules)
    assert pickle.dumps(session) == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rules": 0}, "rules must be 1 or above"),
        ({"rules": ["a", "a"]}, "rules must have names that differ"),
        ({"rules": []}, "rules must have names that differ, at least one"),
        ({"rules": [1, 2]}, "rules must be a whole number or a list of names"),
        ({"rules_per": "coordinate"}, "rules_per must be given with rules"),
        ({"rules": 2, "rules_per": "day"}, "unknown rules_per 'day'"),
        ({"rules": 2, "diameter": [1.0, 2.0]}, "rules are for one run"),
    ],
)
def test_settings_of_rules_that_cannot_be_used_are_named(settings, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2), **settings)
    with pytest.raises(bridle.InputError, match="rules_per='coordinate' is for a box"):
        bridle.policy("anytime", bridle.Ball(2), rules=2, rules_per="coordinate")


def test_what_only_makes_sense_with_rules_says_so():
    plain = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    for call in (lambda: plain.weights, lambda: plain.decide(rules=[[0.0, 0.0]]), lambda: plain.ask(rules=[[0.0, 0.0]])):
        with pytest.raises(bridle.InputError, match="made without rules="):
            call()
    mixed = bridle.policy("anytime", bridle.Ball(2), rules=2)
    with pytest.raises(bridle.InputError, match="decides on weights"):
        bridle.play(mixed, "halfspaces", horizon=10)
    session = bridle.Session(mixed)
    session.decide(rules=np.zeros((2, 2)))
    with pytest.raises(bridle.InputError, match="modulus cannot be given with rules"):
        session.observe(f=0.0, df=[1.0, 0.0], modulus=1.0)


def test_the_report_says_which_rules_carry_the_mixture():
    names = ["ewma", "seasonal", "all", "zero"]
    session = bridle.Session(bridle.policy("adagrad", bridle.Box(0.0, 40.0, dim=1), rules=names), x1=[0.125, 0.75, 0.125, 0.0])
    assert "Rules: seasonal 75 %, ewma 12.5 %, all 12.5 % of the mixture at present; 1 of 4 have no weight." in session.report()
    proof = session.certificate()
    assert (proof.rules, proof.weights.tolist()) == (tuple(names), [0.125, 0.75, 0.125, 0.0])
    session.decide(rules=[[1.0], [2.0], [40.0], [0.0]])
    session.observe(f=1.0, df=[1.0])
    assert "no feasible fixed mixture of the rules would have saved more than" in session.report()


def test_history_and_steps_speak_of_actions():
    seen = []
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2), rules=3), history=seen.append)
    cost = bridle.Quadratic(np.eye(2), np.array([0.2, 0.4]))
    rng = np.random.default_rng(0)
    for _ in range(120):
        session.step(cost, [bridle.Affine([1.0, 1.0], -2.0)], rules=rng.uniform(0.0, 1.0, (3, 2)))
    assert all(entry["x"].shape == (2,) and np.isclose(entry["f"], cost.value(entry["x"])) for entry in seen)
    assert not session.certificate().alarms


def test_warming_up_a_session_with_rules_changes_nothing():
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=1), rules=3))
    session.warm_up()
    assert session.rounds == 0
    assert session.decide(rules=[[0.0], [0.5], [1.0]])[0] == 0.5
