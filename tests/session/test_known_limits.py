"""Limits that are known before acting: kept in every round, at no cost to the policy's proof where its state can move."""

from __future__ import annotations

import pickle
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.core import Unavailable
from bridle.session import prior as module
from helpers import known_rounds
from helpers.sessions import assert_identical, snapshot

DOMAINS = {
    "box": bridle.Box(-1.0, 1.0, dim=3),
    "ball": bridle.Ball(3),
    "simplex": bridle.Simplex(3),
    "l1": bridle.L1Ball(3),
    "cut": bridle.Halfspace([1.0, 1.0, 0.0], 0.2, within=bridle.Box(-1.0, 1.0, dim=3)),
    "spectrahedron": bridle.Spectrahedron(2),
}


def limits_around(u, rng, tight=False):
    """Two halfspaces that hold u, perhaps with u on both."""
    A = rng.standard_normal((2, len(u)))
    return A, A @ u + (0.0 if tight else rng.uniform(0.0, 0.4, 2))


@pytest.mark.parametrize("name", DOMAINS)
def test_the_decision_is_the_nearest_action_that_keeps_them(name):
    domain, rng = DOMAINS[name], np.random.default_rng(3)
    session = bridle.Session(bridle.policy("adagrad", domain))
    moved = 0
    for t in range(80):
        keepers = np.array([domain.project(0.5 * rng.standard_normal(domain.dim)) for _ in range(3)])
        A, b = limits_around(keepers[0], rng, tight=t % 10 == 0)
        want, x = session.decide(), session.decide(known=(A, b))
        assert (A @ x <= b + 1e-9).all()
        assert domain.contains(x)
        np.testing.assert_array_equal(session.decide(), x)
        for z in keepers[(b[:, None] + 1e-12 >= A @ keepers.T).all(axis=0)]:
            assert (want - x) @ (z - x) <= 1e-6  # the nearest point of a convex set, and no other, has this
        moved += bool((x != want).any())
        p = rng.standard_normal(domain.dim)
        session.observe(f=float(p @ x), df=p)
    assert moved > 25
    assert session.certificate().moved is None  # the state moved: nothing is charged


@pytest.mark.slow
def test_known_limits_are_never_violated_in_many_random_rounds():
    rng, worst = np.random.default_rng(11), 0.0
    for domain in (DOMAINS["box"], DOMAINS["ball"], DOMAINS["simplex"]):
        session = bridle.Session(bridle.policy("ogd", domain, lipschitz=1.0), certify=False)
        for t in range(700):
            A, b = limits_around(domain.project(rng.standard_normal(3)), rng, tight=t % 7 == 0)
            x = session.decide(known=(A, b))
            worst = max(worst, float((A @ x - b).max()))
            p = rng.standard_normal(3)
            session.observe(f=float(p @ x), df=p)
    assert worst <= 1e-9


@pytest.mark.parametrize("kind", known_rounds.DOMAINS)
@pytest.mark.parametrize("seed", [0, 1])
def test_known_limits_are_kept_or_refused(kind, seed):
    """Loose, touching, impossible, in any units; with rules and features too; `make soak` plays 100,000 such rounds."""
    kept = known_rounds.known_rounds(kind, seed, 110)
    assert (kept.rounds, kept.refused, kept.wrong) == (100, 10, 0)


def hostile_game(session, domain, keeper, rng, count, violate):
    """Known halfspaces that hold `keeper`, and costs that always make what was played dearer than it."""
    lengths, regret = 0.0, 0.0
    for _ in range(count):
        x = session.decide(known=limits_around(keeper, rng))
        p = x - keeper + 0.3 * rng.standard_normal(len(x))
        p /= np.linalg.norm(p)
        p = p if p @ (x - keeper) > 0 else -p
        q = rng.standard_normal(len(x))
        limits = {"g": float(q @ (x - keeper)), "dg": q} if violate else {}
        session.observe(f=float(p @ x), df=p, **limits)
        regret, lengths = regret + float(p @ (x - keeper)), lengths + float(p @ p)
    return regret, lengths


@given(st.integers(0, 10**6), st.sampled_from(["box", "ball", "simplex"]), st.integers(5, 60))
@settings(max_examples=6, deadline=None)
def test_regret_bounds_are_unchanged_where_the_state_moves(seed, name, count):
    """The oracle: AdaGrad's sqrt(2) D sqrt(sum |p|^2), against an action that keeps all that was known; also at its corners."""
    domain, rng = DOMAINS[name], np.random.default_rng(seed)
    keeper = domain.project(3.0 * rng.standard_normal(3))
    D = domain.diameter()
    plain = bridle.Session(bridle.policy("adagrad", domain))
    regret, squares = hostile_game(plain, domain, keeper, rng, count, violate=False)
    assert regret <= sqrt(2.0) * D * sqrt(squares)
    assert regret <= plain.bound().regret
    for name, more in (("anytime", {}), ("sinha2024", {"horizon": count, "lipschitz": 9.0}), ("sinha2024-ocs", {})):
        session = bridle.Session(bridle.policy(name, domain, **more))
        regret, _ = hostile_game(session, domain, keeper, rng, count, violate=True)
        own, bound = session.certificate().regret_algorithm, session.bound()
        assert session.certificate().moved is None
        assert own is None or regret <= own + 1e-9
        assert bound.regret is None or regret <= bound.regret
        assert bound.ccv is None or session.ccv <= bound.ccv


def test_a_state_that_does_not_move_would_break_the_bound():
    """Ten rounds that pull towards what is forbidden then, ten that pull back: an iterate that was left there pays for it each time."""
    step, T = 0.1, 2000
    session = bridle.Session(bridle.policy("ogd", bridle.Box(-1.0, 1.0, dim=1), lipschitz=1.0, horizon=T, step=step))
    moved, left, iterate = 0.0, 0.0, 0.0
    for t in range(T):
        p, known = (-1.0, ([1.0], 0.0)) if t % 20 < 10 else (1.0, None)
        x = float(session.decide(known=known)[0])
        moved, left = moved + p * x, left + p * (min(iterate, 0.0) if known else iterate)  # the regret against 0
        session.observe(f=p * x, df=[p])
        iterate = min(1.0, max(-1.0, iterate - step * p))
    bound = 2.0**2 / (2.0 * step) + 0.5 * step * T
    assert moved <= bound
    assert moved <= session.bound().regret
    assert left > 4.0 * bound


@pytest.mark.parametrize("name", ["adaftrl", "neely2017"])
def test_elsewhere_the_nearest_action_is_played_and_charged(name):
    domain, rng = DOMAINS["box"], np.random.default_rng(5)
    more = {"horizon": 200, "lipschitz": 6.0, "bound": 6.0} if name == "neely2017" else {}
    session = bridle.Session(bridle.policy(name, domain, **more))
    keeper, charge, regret = np.array([0.5, -0.2, 0.9]), 0.0, 0.0
    for _ in range(100):
        want = session.decide()
        x = session.decide(known=limits_around(keeper, rng))
        p = rng.standard_normal(3)
        session.observe(f=float(p @ x), df=p)
        charge, regret = charge + float(p @ (x - want)), regret + float(p @ (x - keeper))
    proof = session.certificate()
    assert proof.moved.cost == pytest.approx(charge)
    assert 10 < proof.moved.rounds <= 100
    assert regret <= proof.bound.regret
    assert regret <= proof.regret


@pytest.mark.parametrize("name", ["anytime", "adaftrl"])
def test_limits_that_nothing_keeps_are_named_and_change_nothing(name):
    session = bridle.Session(bridle.policy(name, bridle.Box(0.0, 1.0, dim=2)))
    session.observe(f=0.0, df=[1.0, 0.0])
    before = pickle.dumps(session)
    with pytest.raises(bridle.InputError, match=r"known cannot be kept by any action of the domain: limit 1, .* x <= -1, is 0 or more"):
        session.decide(known=([[1.0, 0.0], [2.0, 3.0]], [0.5, -1.0]))
    with pytest.raises(bridle.InputError, match=r"known cannot be kept by any action of the domain: .* together"):
        session.decide(known=([[1.0, 1.0], [-1.0, -1.0]], [0.5, -0.6]))
    for known, message in (
        (5.0, r"known must be a pair \(A, b\)"),
        (([[1.0]], [0.0]), r"A of shape \(m, 2\) and b of shape \(m,\)"),
        (([[1.0, 0.0]], [0.0, 1.0]), r"A of shape \(m, 2\)"),
        (([[1.0, np.nan]], [0.0]), r"known\[0\] must be finite"),
        (([[0.0, 0.0]], [-1.0]), "known cannot be kept: limit 0 says 0 <= -1"),
    ):
        with pytest.raises(bridle.InputError, match=message):
            session.decide(known=known)
    assert pickle.dumps(session) == before


def test_one_halfspace_may_be_a_row_and_a_number():
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2)))
    np.testing.assert_allclose(session.decide(known=([3.0, 0.0], 0.75)), [0.25, 0.5], atol=1e-9)
    assert session.decide(known=([[0.0, 0.0]], [1.0])).tolist() == [0.5, 0.5]  # which says nothing; and the last word counts


def test_the_last_word_on_a_round_counts(tmp_path):
    fresh = lambda: bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=1)))  # noqa: E731
    one, other = fresh(), fresh()
    one.decide(known=([1.0], -0.9))
    one.save(tmp_path / "known.npz")
    loaded = bridle.Session.load(tmp_path / "known.npz")
    for session in (one, other, loaded):
        assert session.decide(known=([1.0], -0.25))[0] == pytest.approx(-0.25, abs=1e-9)
        session.observe(f=0.0, df=[-1.0])
    assert_identical(snapshot(one), snapshot(other))
    assert_identical(snapshot(one), snapshot(loaded))


def test_a_report_says_what_feasible_means_where_limits_were_known(tmp_path):
    """The policy's own proof is about actions that keep what was known; what was observed says the same of all others."""
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=1)))
    assert not session.certificate().known
    for _ in range(100):
        x = session.decide(known=([[1.0]], [0.1]))
        session.observe(f=float(-x[0]), df=[-1.0])
    session.save(tmp_path / "known.npz")
    for each in (session, bridle.Session.load(tmp_path / "known.npz"), pickle.loads(pickle.dumps(session))):
        proof = each.certificate()
        assert proof.known
        assert proof.regret_algorithm < 0.9 * 100 <= proof.regret  # 1 would have saved 0.9 a round, and was not allowed
        assert "A feasible action is one that keeps these in every round too." in each.report()


def test_a_round_after_it_knows_of_nothing():
    session = bridle.Session(bridle.policy("adaftrl", bridle.Box(-1.0, 1.0, dim=1)))
    assert session.decide(known=([1.0], -0.5))[0] == pytest.approx(-0.5)
    session.observe(f=0.0, df=[0.0])
    assert session.decide()[0] == 0.0
    assert session.step(bridle.Affine([1.0]), known=([-1.0], -0.75))[0] == pytest.approx(0.75)


@pytest.mark.parametrize("name", ["anytime", "adaftrl"])
def test_rounds_that_wait_keep_what_was_known_of_them(name, tmp_path):
    session = bridle.Session(bridle.policy(name, bridle.Box(-1.0, 1.0, dim=1)))
    first, second = session.ask(known=([1.0], -0.5)), session.ask(known=([-1.0], -0.5))
    assert (first.x[0], second.x[0]) == (pytest.approx(-0.5), pytest.approx(0.5))
    session.save(tmp_path / "waiting.npz")
    other = bridle.Session.load(tmp_path / "waiting.npz")
    for each in (session, other):
        each.observe(f=2.0, df=[1.0], ticket=second)
        each.observe(f=1.0, df=[-1.0], ticket=first)
    assert_identical(snapshot(session), snapshot(other))
    charge = session.certificate().moved
    assert (charge is None) == (name == "anytime")
    assert charge is None or charge.cost == pytest.approx(1.0)  # <1, 1/2 - 0> + <-1, -1/2 - 0>


def test_feedback_that_changes_the_decision_asks_for_the_limits_again():
    session = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=1)))
    waiting = session.ask()
    session.decide(known=([1.0], -0.5))
    session.observe(f=0.0, df=[1.0], ticket=waiting)  # the copy that played it is free again, and plays next
    with pytest.raises(bridle.InputError, match="known and rules must be given again"):
        session.decide()
    assert session.decide(known=([1.0], -0.5))[0] <= -0.5 + 1e-9


def test_mixtures_keep_what_is_known():
    rng = np.random.default_rng(8)
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2), rules=4))
    for _ in range(60):
        R = rng.uniform(0.0, 1.0, (4, 2))
        inside = rng.dirichlet(np.ones(4)) @ R
        A, b = limits_around(inside, rng)
        x = session.decide(rules=R, known=(A, b))
        assert (A @ x <= b + 1e-9).all()
        np.testing.assert_allclose(session.weights @ R, x, atol=1e-12)  # a mixture that keeps them is played, and learned from
        p = rng.standard_normal(2)
        session.observe(f=float(p @ x), df=p)
    assert session.certificate().moved is None
    x = session.decide(rules=np.full((4, 2), 0.9), known=([1.0, 0.0], 0.5))  # no mixture keeps it, but an action does
    np.testing.assert_allclose(x, [0.5, 0.9], atol=1e-9)
    session.observe(f=0.5, df=[1.0, 0.0])
    assert session.certificate().moved.cost == pytest.approx(-0.4)


@pytest.mark.parametrize("name", ["mlpoly", "adahedge"])
def test_mixtures_of_policies_that_cannot_move_keep_what_is_known(name):
    """What is played stays a mixture of the rules, and the way there is charged."""
    rng = np.random.default_rng(2)
    session = bridle.Session(bridle.policy(name, bridle.Box(0.0, 1.0, dim=2), rules=2))
    moved = 0
    for _ in range(60):
        R = rng.uniform(0.0, 1.0, (2, 2))
        A, b = limits_around(rng.dirichlet(np.ones(2)) @ R, rng)
        want, x = session.decide(rules=R), session.decide(rules=R, known=(A, b))
        assert (A @ x <= b + 1e-9).all()
        along, away = R[1] - R[0], x - R[0]
        assert abs(along[0] * away[1] - along[1] * away[0]) <= 1e-9, "between the two rules"
        moved += bool((want != x).any())
        p = rng.standard_normal(2)
        session.observe(f=float(p @ x), df=p)
    assert session.certificate().moved.rounds == moved > 5


def test_without_a_solver_for_programs_the_answer_is_the_same(monkeypatch):
    def missing(name, need):
        raise Unavailable(need)

    rng = np.random.default_rng(1)
    for domain in DOMAINS.values():
        for _ in range(25):
            x, u = (domain.project(2.0 * rng.standard_normal(domain.dim)) for _ in range(2))
            A, b = limits_around(u, rng)
            with_solver = module.nearest_kept(domain, A, b, x, module.projector(domain))
            with monkeypatch.context() as patch:
                patch.setattr(module, "package", missing)
                assert module.projector(domain) is None
                alone = module.nearest_kept(domain, A, b, x, module.projector(domain))
            np.testing.assert_allclose(alone, with_solver, atol=1e-7)


@pytest.mark.compiles
def test_compiled_rounds_keep_what_is_known():
    sessions = [bridle.Session(bridle.policy("adagrad", bridle.Box(-1.0, 1.0, dim=2)), engine=engine) for engine in ("python", "compiled")]
    for session in sessions:
        rng = np.random.default_rng(6)
        for t in range(60):
            known = limits_around(np.zeros(2), rng) if t % 3 else None
            x = session.decide(known=known)
            assert known is None or (known[0] @ x <= known[1] + 1e-9).all()
            p = rng.standard_normal(2)
            session.observe(f=float(p @ x), df=p, g=np.array([float(p @ x)]), dg=p[None])
    np.testing.assert_allclose(sessions[0].decide(), sessions[1].decide(), atol=1e-12)
    assert sessions[1]._stepper.compiled is not None
