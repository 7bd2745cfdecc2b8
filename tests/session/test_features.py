"""Decisions as affine functions of what is known: units do not matter, the domain is kept, and what leaves it is charged."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import bridle
from helpers.sessions import assert_identical, snapshot

LOW, HIGH = np.array([0.0, -1.0]), np.array([40.0, 3.0])
BOX = bridle.Box(LOW, HIGH)


def play(session, seed, rounds, unit=1.0, hostile=False):
    """Linear costs and limits; gives what a comparison in hindsight needs: features, cost gradients, limits' rows and levels."""
    rng, seen = np.random.default_rng(seed), []
    scale = np.zeros(3)
    for _ in range(rounds):
        phi = rng.uniform(-1.0, 1.0, 3) * [1.0, 5.0, 0.2]
        scale = np.maximum(scale, np.abs(phi))
        x = session.decide(features=unit * phi)
        p, q = rng.standard_normal(2), rng.standard_normal(2)
        p = p * np.sign(p @ (x - BOX.center()) + 1e-300) if hostile else p
        level = float(q @ BOX.center()) + 0.5
        session.observe(f=float(p @ x), df=p, g=float(q @ x) - level, dg=q)
        seen.append((np.append(1.0, phi / scale), p, q, level))
    return seen


def best_function(seen):
    """The least cost of fixed coefficients in [-1, 1] that keep every limit, wherever they lead."""
    half, middle = 0.5 * (HIGH - LOW), BOX.center()
    rows = [((half * q)[:, None] * phi).ravel() for phi, _, q, _ in seen]
    levels = [level - float(q @ middle) for _, _, q, level in seen]
    cost = np.sum([((half * p)[:, None] * phi).ravel() for phi, p, _, _ in seen], axis=0)
    found = linprog(cost, A_ub=np.array(rows), b_ub=levels, bounds=(-1.0, 1.0))
    assert found.status == 0
    return found.fun + float(np.sum([p for _, p, _, _ in seen], axis=0) @ middle)


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=10, deadline=None)
def test_regret_against_the_best_function_in_hindsight_is_below_every_bound(seed, hostile):
    session = bridle.Session(bridle.policy("anytime", BOX, features=3))
    seen = play(session, seed, 60, hostile=hostile)
    proof = session.certificate()
    regret = session.cost - best_function(seen)
    assert all(regret <= bound + 1e-6 for bound in (proof.regret, proof.regret_algorithm, proof.bound.regret))
    assert session.ccv <= proof.bound.ccv


def test_what_leaves_the_domain_is_moved_in_and_charged():
    session = bridle.Session(bridle.policy("adagrad", bridle.Box(0.0, 1.0, dim=1), features=1))
    charge = 0.0
    for t in range(60):
        x = session.decide(features=[1.0 if t % 3 else -1.0])
        assert 0.0 <= x[0] <= 1.0
        w = session.state.x
        wanted = 0.5 + 0.5 * (w[0] + w[1] * (1.0 if t % 3 else -1.0))
        charge += -1.0 * (x[0] - wanted)
        session.observe(f=-float(x[0]), df=[-1.0])
    assert charge > 5.0
    proof = session.certificate()
    assert proof.moved.cost == pytest.approx(charge)
    assert session.cost == pytest.approx(proof.cost)
    assert proof.compared == "fixed affine function of the features"
    assert "fixed affine function of the features" in session.report()


def test_it_learns_what_depends_on_the_features():
    rng = np.random.default_rng(0)
    session = bridle.Session(bridle.policy("adagrad", bridle.Box(0.0, 40.0, dim=1), features=2))
    late = 0.0
    for t in range(3000):
        phi = rng.uniform(-3.0, 3.0, 2)
        target = 20.0 + 4.0 * phi[0] - 2.0 * phi[1]
        x = session.decide(features=phi)
        session.observe(f=float((x[0] - target) ** 2), df=2.0 * (x - target))
        late += float((x[0] - target) ** 2) * (t >= 2000)
    assert late / 1000 < 0.01
    np.testing.assert_allclose(session.weights, [[20.0], [4.0], [-2.0]], atol=0.1)


@pytest.mark.parametrize("unit", [1e-3, 1e3, 2.0**-20])
def test_units_of_features_change_no_decision(unit):
    one, other = (bridle.Session(bridle.policy("anytime", BOX, features=3)) for _ in range(2))
    play(one, 5, 40)
    play(other, 5, 40, unit=unit)
    np.testing.assert_allclose(other.state.x, one.state.x, atol=1e-9)
    np.testing.assert_allclose(other.weights[1:] * unit, one.weights[1:], atol=1e-9)


def test_saved_sessions_resume_with_scales_and_features(tmp_path):
    plain, other = (bridle.Session(bridle.policy("anytime", BOX, features=3)) for _ in range(2))
    play(plain, 8, 25)
    play(other, 8, 25)
    for session in (plain, other):
        session.decide(features=[0.3, 40.0, 0.0])
    other.save(tmp_path / "features.npz")
    loaded = bridle.Session.load(tmp_path / "features.npz")
    copied = pickle.loads(pickle.dumps(other))
    for session in (plain, loaded, copied):
        session.observe(f=0.0, df=[1.0, -1.0])
        play(session, 9, 10)
        session.decide(features=[1.0, 1.0, 1.0])
    for session in (loaded, copied):
        assert_identical(snapshot(plain), snapshot(session))
        np.testing.assert_array_equal(plain.weights, session.weights)


def test_rounds_that_wait_have_features_of_their_own():
    session = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=1), features=1))
    session.decide(features=[2.0])
    session.observe(f=0.0, df=[-1.0])
    tickets = [session.ask(features=[phi]) for phi in (2.0, -2.0)]
    assert tickets[0].x[0] > 0.0
    for ticket in reversed(tickets):
        session.observe(f=0.0, df=[1.0], ticket=ticket)
    assert session.rounds == 3


def test_known_limits_are_kept_with_features():
    rng = np.random.default_rng(2)
    session = bridle.Session(bridle.policy("anytime", BOX, features=3))
    for _ in range(50):
        A = rng.standard_normal((2, 2))
        b = A @ BOX.center() + rng.uniform(0.0, 1.0, 2)
        x = session.decide(features=rng.standard_normal(3), known=(A, b))
        assert (A @ x <= b + 1e-9 * 40.0).all()
        assert BOX.contains(x)
        session.observe(f=0.0, df=rng.standard_normal(2))


@pytest.mark.parametrize(
    ("features", "message"),
    [([1.0], r"features must have shape \(3,\)"), ([1.0, np.nan, 0.0], "features must be finite"), (None, "features must be given")],
)
def test_features_that_cannot_be_used_are_named(features, message):
    session = bridle.Session(bridle.policy("anytime", BOX, features=3))
    with pytest.raises(bridle.InputError, match=message):
        session.decide(features=features)
    with pytest.raises(bridle.InputError, match="rules cannot be given: the policy was made with features="):
        session.decide(rules=np.zeros((2, 2)))
    with pytest.raises(bridle.InputError, match="made without features="):
        bridle.Session(bridle.policy("anytime", BOX)).decide(features=[1.0])
    with pytest.raises(bridle.InputError, match="rules and features cannot both be given"):
        bridle.policy("anytime", BOX, rules=2, features=2)
    with pytest.raises(bridle.InputError, match="features must be 1 or above"):
        bridle.policy("anytime", BOX, features=0)


def test_a_safe_action_is_an_action_with_features_too():
    """What `safe` names is the function that is that action whatever the features are; an opponent that never rests drives it there."""
    safe = [40.0, -1.0]
    policy = bridle.policy("rate", BOX, features=3, at_most=0.05, safe=safe)
    session, rng, forced = bridle.Session(policy), np.random.default_rng(1), 0
    for _ in range(400):
        x = session.decide(features=rng.uniform(-1.0, 1.0, 3))
        at_safe = np.abs(x - safe).max() < 1e-12
        forced += at_safe
        # violated wherever it is not the safe action, by as much as it is away from it
        session.observe(f=float(x[0]), df=[1.0, 0.0], g=-1.0 if at_safe else 1.0, dg=[-1.0, 0.0])
    limit = session.rates[0]
    assert forced > 200
    assert limit.exact
    assert limit.measured <= limit.proved < 0.3
    assert policy.parameters["safe"] == (40.0, -1.0), "what was given, so that files and reports have it"


@pytest.mark.parametrize(
    ("domain", "safe", "message"),
    [
        (BOX, [41.0, 0.0], "safe must lie in the domain"),
        (BOX, [1.0], r"safe must have shape \(2,\)"),
        (bridle.Simplex(6), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], "safe cannot be .* with features"),
    ],
)
def test_a_safe_action_that_cannot_be_is_refused_with_features(domain, safe, message):
    with pytest.raises(bridle.InputError, match=message):
        bridle.policy("rate", domain, features=1, at_most=0.05, safe=safe)
