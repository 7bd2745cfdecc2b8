"""Certificates of costs whose modulus is known: what sum mu/2 |x - u|^2 takes off the bound on regret."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import records
from bridle.core import Feedback
from bridle.session.certificates.batches import CurvedSums
from bridle.session.certificates.certificate import curved_tangent, regret_bound, regret_of_any
from bridle.session.certificates.ledger import Ledger
from helpers.inside import proved
from helpers.instances import instances

pytestmark = pytest.mark.filterwarnings("ignore::bridle.core.BridleWarning")


def curved(session: bridle.Session, mu: float, y: Any, **limit: Any) -> float:
    """A round with the cost mu/2 |x - y|^2; gives the cost."""
    away = session.decide() - np.asarray(y)
    cost = 0.5 * mu * float(away @ away)
    session.observe(f=cost, df=mu * away, modulus=mu, **limit)
    return cost


def test_one_round_on_a_segment_by_hand():
    """(x + 1)^2 / 2 at x = 1 on [-1, 1]: 2 against u = -1, where the tangent alone says 4; 3/2 against u >= 0, where it says 2."""
    session = bridle.Session(bridle.policy("adagrad", bridle.Ball(1)), x1=[1.0])
    plain = bridle.Session(bridle.policy("adagrad", bridle.Ball(1)), x1=[1.0])
    curved(session, 1.0, [-1.0], g=[-1.0], dg=[[-1.0]])
    plain.observe(f=2.0, df=[2.0], g=-1.0, dg=[-1.0])
    assert plain.certificate().regret_any == pytest.approx(4.0, abs=1e-7)
    assert session.certificate().regret_any == pytest.approx(2.0, abs=1e-7)
    assert plain.certificate().regret == pytest.approx(2.0, abs=1e-7)  # u >= 0
    assert session.certificate().regret == pytest.approx(1.5, abs=1e-7)


def test_the_worst_action_may_be_inside():
    """Two rounds of 3/2 |x - y|^2 in a disk of radius 5 far from the origin: the best action is the mean of both y."""
    middle = np.array([1e3, -2e3])
    session = bridle.Session(bridle.policy("adagrad", bridle.Ball(radius=5.0, center=middle)), x1=middle + np.array([3.0, 0.0]))
    aims = middle + np.array([[1.0, 2.0], [-1.0, 1.0]])
    total = sum(curved(session, 3.0, y) for y in aims)
    best = np.mean(aims, axis=0)
    truth = total - sum(1.5 * float((best - y) @ (best - y)) for y in aims)
    found = session.certificate()
    assert found.regret == pytest.approx(truth, rel=1e-3)
    assert found.regret >= truth
    assert found.regret_any == found.regret


def test_the_sums_are_those_of_their_quadratic():
    rng, sums = np.random.default_rng(0), CurvedSums(0.0, np.zeros(3), 0.0)
    moduli, y, v = rng.random(7), rng.standard_normal((7, 3)), rng.standard_normal(3)
    for part in (slice(0, 4), slice(4, 7)):
        sums = sums.add(moduli[part], y[part])
    expected = sum(0.5 * mu * float((row - v) @ (row - v)) for mu, row in zip(moduli, y, strict=True))
    assert 0.5 * sums.modulus * float(v @ v) - float(sums.pull @ v) + sums.squares == pytest.approx(expected, rel=1e-12)


def test_every_tangent_of_the_quadratic_is_a_bound():
    """At any z, also outside the domain; and it is the bound itself at z = u."""
    rng, ledger = np.random.default_rng(1), Ledger(bridle.Box([2.0, -1.0], [3.0, 4.0]), 2)
    x = rng.uniform([2.0, -1.0], [3.0, 4.0], (9, 2))
    slopes, moduli = rng.standard_normal((9, 2)), rng.random(9)
    for t, (here, df, mu) in enumerate(zip(x, slopes, moduli, strict=True), 1):
        ledger.take(Feedback(here, 0.0, df, np.zeros(1), np.zeros((1, 2)), mu), t)
    full = ledger.complete()
    where, sums = full.domain, full.counted.sums
    for _ in range(50):
        u, z = rng.uniform([2.0, -1.0], [3.0, 4.0]), 3.0 * rng.standard_normal(2)
        exact = sum(
            float(df @ (here - u)) - 0.5 * mu * float((here - u) @ (here - u)) for here, df, mu in zip(x, slopes, moduli, strict=True)
        )
        here, there = (curved_tangent(where, sums, full.curved, at) for at in (u - where.middle, z))
        assert there.base - float(there.a @ (u - where.middle)) >= exact
        assert here.base - float(here.a @ (u - where.middle)) == pytest.approx(exact, abs=1e-6)


@pytest.mark.slow
@settings(max_examples=100)
@given(instances(), st.integers(1, 3), st.integers(1, 60), st.floats(-3.0, 2.0))
def test_never_below_the_regret_of_a_feasible_action(instance, k, rounds, exponent):
    domain, feasible, G, rng = instance
    D, d = domain.diameter(), domain.dim
    session = bridle.Session(bridle.policy("anytime", domain))
    bare = bridle.Session(bridle.policy("anytime", domain))
    seen = []
    for _ in range(rounds):
        x, mu = session.decide(), G / D * 10.0**exponent * rng.random()
        c, y = G * rng.standard_normal(d) / np.sqrt(d), domain.project(x + D * rng.standard_normal(d))
        A = G * rng.standard_normal((k, d)) / np.sqrt(d)
        f, df, g = float(c @ x) + 0.5 * mu * float((x - y) @ (x - y)), c + mu * (x - y), A @ (x - feasible)
        session.observe(f, df, g, A, modulus=mu)
        bare.observe(f, df, g, A)
        seen.append((x, c, mu, y, A))
    found, plain = session.certificate(), bare.certificate()
    assert found.conflict is None
    others = [domain.project(feasible + 10.0 ** rng.uniform(-3, 0) * D * rng.standard_normal(d)) for _ in range(10)]
    for u in (feasible, *(v for v in others if all((A @ (v - feasible) <= 0.0).all() for *_, A in seen))):
        truth = sum(
            float(c @ (x - u)) + 0.5 * mu * float((x - y) @ (x - y)) - 0.5 * mu * float((u - y) @ (u - y)) for x, c, mu, y, _ in seen
        )
        assert found.regret >= truth
        assert found.regret_any >= truth
    assert found.regret <= found.regret_any <= plain.regret_any
    assert found.regret <= plain.regret


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ball", "box"])
@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_exact_regret_up_to_the_halfspaces_kept(kind, seed):
    """Against an independent program over the domain and every halfspace."""
    import cvxpy as cp

    rng, d, T = np.random.default_rng(seed), 4, 30
    domain: Any = bridle.Ball(d) if kind == "ball" else bridle.Box(-0.5, 1.0, dim=d)
    feasible = domain.project(0.3 * rng.standard_normal(d))
    session = bridle.Session(bridle.policy("adagrad", domain))
    u = cp.Variable(d)
    inside = [cp.norm(u) <= 1.0] if kind == "ball" else [u >= -0.5, u <= 1.0]
    regret: Any = 0.0
    for _ in range(T):
        x, mu, y = session.decide(), rng.random(), rng.standard_normal(d)
        a, c = rng.standard_normal((2, d))
        f = float(c @ x) + 0.5 * mu * float((x - y) @ (x - y))
        session.observe(f, c + mu * (x - y), float(a @ (x - feasible)), a, modulus=mu)
        inside.append(a @ (u - feasible) <= 0.0)
        regret = regret + f - c @ u - 0.5 * mu * cp.sum_squares(u - y)
    program = cp.Problem(cp.Maximize(regret), inside)
    program.solve(solver=cp.CLARABEL)
    found = session.certificate().regret
    assert found >= program.value - 1e-6 * abs(program.value)
    assert found <= program.value + 1e-3 * (abs(program.value) + 1.0)


def test_many_dimensions_have_the_sum_alone():
    """In 600 dimensions: u_1 >= 1/2 is known from the sum, and with it the regret of the best such action."""
    session = bridle.Session(bridle.policy("adagrad", bridle.Ball(600)))
    normal = -np.eye(600)[0]
    total = 0.0
    for _ in range(5):
        x = session.decide()
        total += curved(session, 2.0, np.zeros(600) - 0.3 * np.eye(600)[1], g=0.5 - float(x[0]), dg=normal)
    best = np.zeros(600)
    best[:2] = 0.5, -0.3
    assert session.certificate().regret == pytest.approx(total - 5.0 * 0.25, abs=1e-5)


def test_a_modulus_that_was_not_given_with_the_round_is_not_used():
    """What the policy was told may be wrong; a certificate must not be, then."""
    told = bridle.Session(bridle.policy("anytime", bridle.Ball(1), modulus=1.0), x1=[1.0])
    told.observe(f=2.0, df=[2.0])
    assert told.certificate().regret_any == pytest.approx(4.0, abs=1e-7)


def test_a_round_without_a_cost_has_no_curvature():
    session = bridle.Session(bridle.policy("adagrad", bridle.Ball(1)), x1=[1.0])
    session.observe(g=-1.0, dg=[1.0], modulus=1.0)
    assert session.certificate().regret == pytest.approx(0.0, abs=1e-12)
    session.observe(f=0.0, df=[0.0], g=-1.0, dg=[1.0], modulus=1.0)  # a cost at its least value: (x - 1)^2 / 2
    assert proved(session).ledger.complete().curved.modulus == 1.0


@pytest.mark.parametrize("mu", [1e70, 1e-300])
def test_moduli_that_nobody_can_add_up_leave_the_plain_bound(mu):
    session = bridle.Session(bridle.policy("adagrad", bridle.Ball(2, radius=1e140 if mu > 1.0 else 1.0)))
    for _ in range(3):
        session.observe(f=1.0, df=[1.0, 0.0], g=-1.0, dg=[0.0, 1.0], modulus=mu)
    ledger = proved(session).ledger.complete()
    plain = regret_of_any(ledger.domain, ledger.counted.sums, CurvedSums(0.0, np.zeros(2), 0.0))
    assert session.certificate().regret_any <= plain
    assert np.isfinite(session.certificate().regret)


def test_nothing_known_changes_nothing():
    ledger = Ledger(bridle.Ball(2), 2)
    for t in range(1, 9):
        ledger.take(Feedback(np.array([0.1 * t, 0.0]), 0.0, np.array([1.0, 0.3]), np.array([0.2]), np.array([[0.0, 1.0]])), t)
    full = ledger.complete()
    assert full.curved == (0.0, pytest.approx(np.zeros(2)), 0.0)
    given = full.domain, full.counted.sums, full.curved, full.counted.limits, *full.halfspaces.lines
    assert full.regret()[:2] == (regret_bound(*given).regret, regret_of_any(*given[:3]))


# --- late, compiled, saved ------------------------------------------------------------------------------------------------------------


def test_the_modulus_of_late_feedback_counts_at_its_own_decision():
    session = bridle.Session(bridle.policy("adagrad", bridle.Ball(2)))
    first = session.ask()
    session.observe(f=0.0, df=[1.0, 0.0])
    session.observe(f=0.0, df=[0.0, 1.0], g=-1.0, dg=[0.0, 1.0], modulus=2.0, ticket=first)
    curved = proved(session).ledger.complete().curved
    assert curved.modulus == 2.0
    np.testing.assert_allclose(curved.pull, 2.0 * first.x)


def test_compiled_rounds_have_none_and_lose_none(monkeypatch):
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")
    one, two = (bridle.Session(bridle.policy("adagrad", bridle.Ball(3)), engine=name) for name in ("python", "compiled"))
    rng = np.random.default_rng(0)
    for t in range(150):
        df, a, mu = rng.standard_normal(3), rng.standard_normal(3), float(rng.random())
        for session in (one, two):
            x = session.decide()
            more = {"modulus": mu} if t % 5 == 0 or 60 < t < 90 else {}
            session.observe(f=float(df @ x), df=df, g=float(a @ x) - 1.0, dg=a, **more)
    for a, b in zip(*(records.leaves(proved(each).ledger.complete().curved).values() for each in (one, two)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert one.certificate().regret == pytest.approx(two.certificate().regret, rel=1e-9)


@pytest.mark.parametrize("rounds", [5, 32, 45])
def test_moduli_are_saved_with_the_open_batch(rounds, tmp_path):
    def play(session: bridle.Session, begin: int, end: int) -> None:
        for t in range(begin, end):
            rng = np.random.default_rng(t)
            curved(session, float(rng.random()), rng.standard_normal(2), g=-1.0, dg=[0.0, 1.0])

    whole, half = (bridle.Session(bridle.policy("adagrad", bridle.Ball(2))) for _ in range(2))
    play(whole, 0, 70)
    play(half, 0, rounds)
    half.save(tmp_path / "a.npz")
    loaded = bridle.Session.load(tmp_path / "a.npz")
    assert loaded.certificate().json() == half.certificate().json()
    play(loaded, rounds, 70)
    assert loaded.certificate().json() == whole.certificate().json()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("curved.pull", np.zeros(3)), ("curved.modulus", np.array(-1.0)), ("curved.squares", np.array(-1.0)),
        ("open.moduli", np.zeros(3)), ("open.moduli", np.array([-1.0])),
    ],
)  # fmt: skip
def test_damaged_moduli_are_refused(name, value):
    ledger = Ledger(bridle.Ball(2), 2)
    ledger.take(Feedback(np.zeros(2), 0.0, np.ones(2), np.zeros(1), np.zeros((1, 2)), 1.0), 1)
    arrays, facts = ledger.saved()
    fresh = Ledger(bridle.Ball(2), 2)
    fresh.restore({key: np.asarray(each, dtype=float) for key, each in arrays.items()}, facts, 1)
    assert fresh.complete().curved.modulus == 1.0
    with pytest.raises(ValueError, match=name.partition(".")[0]):
        Ledger(bridle.Ball(2), 2).restore({key: np.asarray(each, dtype=float) for key, each in {**arrays, name: value}.items()}, facts, 1)
