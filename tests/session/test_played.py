"""What was played is not what was decided: totals and certificates are about what was played, theorems are charged with the difference."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import bridle
from helpers.sessions import assert_identical, snapshot


def rounds(seed, count, dim=2):
    """Costs <p, x>, limits <q, x> <= level that 0 keeps, and what somebody plays instead of decisions in the unit box around 0."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield rng.standard_normal(dim), rng.standard_normal(dim), float(rng.uniform(0.0, 0.3)), rng


def override(x, rng):
    return np.clip(x + rng.normal(0.0, 0.4, len(x)), -1.0, 1.0) if rng.random() < 0.6 else x


def least_cost(costs, rows, levels, dim=2):
    found = linprog(np.sum(costs, axis=0), A_ub=np.array(rows), b_ub=levels, bounds=[(-1.0, 1.0)] * dim)
    assert found.status == 0
    return found.fun


@given(st.integers(0, 10**6), st.sampled_from(["anytime", "sinha2024", "adagrad"]), st.booleans())
@settings(max_examples=20, deadline=None)
def test_certificates_of_what_was_played_hold_in_hindsight(seed, name, hostile):
    more = {"horizon": 60, "lipschitz": 9.0} if name == "sinha2024" else {}
    session = bridle.Session(bridle.policy(name, bridle.Box(-1.0, 1.0, dim=2), **more))
    costs, rows, levels, paid, violated, charge = [], [], [], 0.0, 0.0, 0.0
    for p, q, level, rng in rounds(seed, 60):
        x = session.decide()
        y = override(x, rng)
        if hostile:  # what was played is always worse than what was decided
            p = p * np.sign(p @ (y - x) + 1e-300)
        session.observe(f=float(p @ y), df=p, g=float(q @ y) - level, dg=q, played=y)
        costs, rows, levels = [*costs, p], [*rows, q], [*levels, level]
        paid, violated, charge = paid + float(p @ y), violated + max(0.0, float(q @ y) - level), charge + float(p @ (y - x))
    proof = session.certificate()
    assert session.cost == pytest.approx(paid)
    assert session.ccv == pytest.approx(violated)
    assert (proof.cost, proof.ccv) == (session.cost, session.ccv)
    assert proof.moved.cost == pytest.approx(charge)
    regret = paid - least_cost(costs, rows if name != "adagrad" else [np.zeros(2)], levels if name != "adagrad" else [0.0])
    bounds = [proof.regret_any if name == "adagrad" else proof.regret, proof.regret_algorithm, proof.bound.regret, session.bound().regret]
    assert all(regret <= each + 1e-6 for each in bounds if each is not None)
    assert bounds[3] is not None
    assert proof.bound.ccv is None or violated <= proof.bound.ccv


def test_without_the_charge_the_theorem_would_be_wrong():
    """An override that always plays the worst action costs more than AdaGrad's bound allows, and exactly as the charge says."""
    session = bridle.Session(bridle.policy("adagrad", bridle.Box(-1.0, 1.0, dim=1)))
    for _ in range(400):
        session.observe(f=1.0, df=[1.0], played=[1.0])
    proof = session.certificate()
    theorem = proof.bound.regret - proof.moved.cost
    assert 2.0 * theorem < 800.0  # the regret against -1
    assert proof.bound.regret >= 800.0
    assert proof.moved.rounds == 400


def test_the_policy_is_fed_what_is_read_at_its_own_decision():
    """Bit for bit a session that was given the affine reading itself; only the totals differ, by the charge."""
    one, other = (bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2))) for _ in range(2))
    for p, q, level, rng in rounds(4, 50):
        x = one.decide()
        y = override(x, rng)
        f, g = float(p @ y), float(q @ y) - level
        one.observe(f=f, df=p, g=g, dg=q, played=y)
        other.observe(f=f + float(p @ (x - y)), df=p, g=np.array([g]) + q[None] @ (x - y), dg=q)
        np.testing.assert_array_equal(one.decide(), other.decide())
    a, b, charge = one.certificate(), other.certificate(), one.certificate().moved
    for name in ("regret", "regret_any", "regret_algorithm"):
        assert getattr(a, name) == pytest.approx(getattr(b, name) + charge.cost)
    assert a.bound.regret == pytest.approx(b.bound.regret + charge.cost)
    assert a.bound.ccv == pytest.approx(b.bound.ccv + max(0.0, charge.hard.max()))
    assert one.cost == pytest.approx(other.cost + charge.cost)
    np.testing.assert_allclose(one.violations, other.violations + charge.hard)
    np.testing.assert_allclose(one.balances, other.balances + charge.signed)
    assert a.squared == b.squared


def test_counts_of_violations_are_those_of_what_was_played():
    session = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=1)), levels=[0.05, 0.35])
    played = [-1.0, 0.4, 0.2, -0.5, 0.9]
    for y in played:
        session.observe(f=0.0, df=[0.0], g=y - 0.1, dg=[1.0], played=[y])
    proof = session.certificate()
    assert (proof.violated, proof.above) == (3, ((0.05, 3), (0.35, 1)))
    assert proof.ccv == pytest.approx(0.3 + 0.1 + 0.8)


def test_the_report_names_the_charge():
    session = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=1)))
    session.observe(f=1.0, df=[2.0], g=0.25, dg=[1.0], played=[0.5])
    text = "Played: in 1 round something else was played than was decided. That is charged with 1 of regret and 0.25 of violation"
    assert text in session.report()
    session = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=1)))
    session.observe(f=0.0, df=[2.0], played=session.decide())
    assert "Played" not in session.report()
    assert session.certificate().moved is None


def test_playing_the_decision_itself_changes_nothing():
    one, other = (bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2))) for _ in range(2))
    for p, q, level, _ in rounds(9, 40):
        x = one.decide()
        seen = {"f": float(p @ x), "df": p, "g": float(q @ x) - level, "dg": q}
        one.observe(**seen, played=x)
        other.observe(**seen)
    assert_identical(snapshot(one), snapshot(other))
    assert one.certificate().regret == other.certificate().regret


def test_rounding_without_bias_is_charged_nothing_on_average():
    rng = np.random.default_rng(5)
    session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 10.0, dim=3)))
    squares = 0.0
    for _ in range(1500):
        x, p = session.decide(), rng.standard_normal(3)
        y = bridle.round_randomly(x, rng)
        session.observe(f=float(p @ y), df=p, played=y)
        squares += float((p * p) @ ((x - np.floor(x)) * (np.ceil(x) - x)))  # its variance, given the past
    charge = session.certificate().moved.cost
    assert 0.0 < abs(charge) < 4.0 * np.sqrt(squares)


def test_with_rules_what_was_played_need_not_be_a_mixture():
    session = bridle.Session(bridle.policy("adagrad", bridle.Box(0.0, 10.0, dim=1), rules=2), x1=[0.5, 0.5])
    session.decide(rules=[[2.0], [4.0]])
    session.observe(f=9.0, df=[1.0], played=[9.0])
    proof = session.certificate()
    assert (proof.cost, proof.moved.cost) == (9.0, 6.0)
    assert proof.regret_any == pytest.approx(7.0, rel=1e-6)  # against the rule that proposed 2


def history_of(way):
    seen = []
    session = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=2)), history=seen.append)
    for p, q, level, rng in rounds(12, 30):
        y = override(session.decide(), rng)
        session = way(session)
        with pytest.raises(bridle.InputError):  # a record that is refused charges nothing
            session.observe(f=float(p @ y), df=p, g=np.nan, dg=q, played=y)
        session.observe(f=float(p @ y), df=p, g=float(q @ y) - level, dg=q, played=y)
    return session, seen


def test_charges_survive_files_and_pickles(tmp_path):
    def filed(session):
        session.save(tmp_path / "played.npz")
        return bridle.Session.load(tmp_path / "played.npz", history=session.history)

    plain, seen = history_of(lambda session: session)
    for way in (filed, lambda session: pickle.loads(pickle.dumps(session))):
        if way is filed:
            other, same = history_of(way)
            assert [entry["cost"] for entry in seen] == [entry["cost"] for entry in same]
        else:
            plain.history = None
            other = way(plain)
        assert_identical(snapshot(plain), snapshot(other))
        one, two = plain.certificate().moved, other.certificate().moved
        assert (one.rounds, one.cost, one.violated, one.hard.tolist()) == (two.rounds, two.cost, two.violated, two.hard.tolist())


def test_history_tells_what_was_played():
    session, seen = history_of(lambda session: session)
    assert seen[-1]["cost"] == session.cost
    assert seen[-1]["ccv"] == session.ccv
    assert sum(entry["f"] for entry in seen) == pytest.approx(session.cost)
    assert sum(float(entry["violation"].max()) for entry in seen) == pytest.approx(session.ccv)


def test_rounds_that_wait_may_have_been_played_otherwise():
    session = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=1)))
    first, second = session.ask(), session.ask()
    session.observe(f=1.0, df=[1.0], ticket=second, played=[1.0])
    session.observe(f=0.0, df=[1.0], ticket=first)
    assert (session.cost, session.certificate().moved.cost) == (1.0, 1.0)


@pytest.mark.compiles
def test_compiled_rounds_are_charged_alike():
    sessions = [bridle.Session(bridle.policy("adagrad", bridle.Box(-1.0, 1.0, dim=2)), engine=engine) for engine in ("python", "compiled")]
    for session in sessions:
        for p, q, level, rng in rounds(2, 100):
            y = override(session.decide(), rng)
            session.observe(f=float(p @ y), df=p, g=np.array([float(q @ y) - level]), dg=q[None], played=y)
    one, other = (session.certificate() for session in sessions)
    assert sessions[1]._stepper.compiled is not None
    assert other.moved.cost == pytest.approx(one.moved.cost)
    assert (other.cost, other.ccv, other.violated) == (pytest.approx(one.cost), pytest.approx(one.ccv), one.violated)


@pytest.mark.parametrize(
    ("played", "message"),
    [([2.0], "played must lie in the domain"), ([0.0, 0.0], r"played must have shape \(1,\)"), ([np.nan], "played must be finite")],
)
def test_what_cannot_have_been_played_is_refused(played, message):
    session = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=1)))
    before = pickle.dumps(session)
    with pytest.raises(bridle.InputError, match=message):
        session.observe(f=0.0, df=[1.0], played=played)
    assert pickle.dumps(session) == before


def test_a_round_that_is_counted_is_charged_whoever_complains_after_it():
    """An observer that fails comes after the round was counted; a policy that cannot go on comes before it."""

    def complain(entry):
        raise RuntimeError("no room")

    session = bridle.Session(bridle.policy("anytime", bridle.Box(-1.0, 1.0, dim=1)), history=complain)
    with pytest.raises(RuntimeError, match="no room"):
        session.observe(f=1.0, df=[1.0], played=[1.0])
    assert (session.rounds, session.certificate().moved.cost) == (1, 1.0)
    session.history = None
    first = session.ask()
    with pytest.raises(bridle.InputError):
        session.observe(f=np.nan, df=[1.0], played=[1.0])
    session.observe(g=0.1, dg=[0.0], ticket=first)  # what was refused must not be charged with it
    assert session.certificate().moved.cost == 1.0
