"""Optimistic play: its proof line by line along every trajectory, its bound at fixed numbers, and predictions of every quality."""

from __future__ import annotations

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import records
from bridle.core import Feedback, Hint, InputError, Round
from bridle.game.summary import summary
from bridle.policies.common import constants_from
from bridle.problems._hints import HintDraw, Hinting
from helpers.engine_agreement import agree
from helpers.instances import constraint_at, cost_at, instances, moves, rounding

C = 1.0 + sqrt(5.0) / 2.0
QUALITIES = ("right", "noisy", "wrong", "huge", "none", "last")


def hint_of(quality, df, dg, at, rng):
    """A prediction of gradients that are known, as good or as bad as it is called."""
    noise = 0.3 * np.linalg.norm(df) * rng.standard_normal(len(df)) / sqrt(len(df))
    factor = {"right": 1.0, "noisy": 1.0, "wrong": -1.0, "huge": -1e6}[quality]
    slope = factor * df + (noise if quality == "noisy" else 0.0)
    return Hint(slope, *((np.ones(1), factor * dg[None]) if at is None else (np.zeros(1), factor * dg[None], at)))


def play(policy, domain, feasible, G, rng, T, quality, look):
    """A game against an opponent that adapts; `look(t, state, regret, far, G, size)` after every round."""
    record = policy.record
    D, state = domain.diameter(), record.init(domain.center())
    regret = far = size = 0.0
    for t, (cost_move, move) in enumerate(moves(rng, T), 1):
        x = record.decide(state)
        cost = cost_at(cost_move, x, feasible, G, t, rng)
        if quality not in ("none", "last"):
            limit = constraint_at(move, x, feasible, G, D, t, rng)
            state = record.hinted(state, hint_of(quality, cost.grad(x), limit.grad(x), x if t % 2 else None, rng))
            x = record.decide(state)
        assert domain.contains(x)
        limit = constraint_at(move, x, feasible, G, D, t, rng)
        seen = Round(cost, (limit,)).reveal(x)
        state = record.update(state, seen)
        regret += float(seen.df @ (x - feasible))
        far += max(float(seen.g[0]), 0.0) / max(float(np.linalg.norm(seen.dg)), 1e-300)
        size += G * float(np.abs(x).sum() + np.abs(feasible).sum() + D)
        look(t, state, regret, far, size)


@pytest.mark.slow
@settings(max_examples=40)
@given(instances(), st.sampled_from(QUALITIES), st.sampled_from([None, 1e-6, 1.0, 1e6]), st.booleans())
def test_the_proof_holds_in_every_round(instance, quality, V, halfspace):
    """(2), (3), (4) and (5), the bound and the certificate, at scales from 1e-3 to 1e3 (V over 12 orders), d up to 30."""
    domain, feasible, G, rng = instance
    D = domain.diameter()
    policy = bridle.policy(
        "optimistic", domain, hint="last" if quality == "last" else "none", halfspace=halfspace, V=None if V is None else V / (G * D)
    )
    lam, worst = 1.0 / (8.0 * D), []
    facts = {"lipschitz": G, "diameter": D, "feasible": feasible, "convex": True}

    def look(t, state, regret, far, size):
        blur, P = rounding(t, size), exp(lam * state.Q)
        assert state.V * regret + P <= 1.0 + C / 8.0 + C * D * state.V * sqrt(state.cost_error) + state.V * blur + 1e-9 * P
        assert regret <= policy.record.certified_regret(state) + blur + ratio(1e-9 * P, state.V)
        paid = C * D / 2.0 * sqrt(state.limit_error * log(state.W / lam**2))
        assert far - 1e-9 * D * t <= D / (8.0 * log(9.0 / 8.0)) * (8.0 * lam * state.Q - 4.0 / C * log(1.0 - C / 4.0) * paid / D) + 1e-9 * D
        assert state.cost_error <= (2.0 * min(state.told_cost, state.plain_cost) + 4.0 * state.longest**2) * (1.0 + 1e-8)
        assert state.limit_error <= (2.0 * min(state.told_limits, state.plain_limits) + 4.0) * (1.0 + 1e-8)
        bound = policy.bound({**facts, **constants_from(state)}, t)
        worst.append((max(regret - blur, 0.0) / bound.regret, G * far / bound.ccv))

    play(policy, domain, feasible, G, rng, 90, quality, look)
    assert max(max(row) for row in worst) <= 1.0 + 1e-9


def ratio(a, b):
    return a / b if b else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("aim", ["regret", "ccv", "invariant"])
def test_an_opponent_bred_against_the_bound_does_not_break_it(aim):
    """1-D games that are changed for the worse again and again, hints included: measured over bound stays below 1."""
    domain, T, rng = bridle.Box(-1.0, 1.0, dim=1), 40, np.random.default_rng(4)
    policy = bridle.policy("optimistic", domain, hint="none", V=1.0)
    facts = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.array([0.3]), "convex": True}

    def measured(genes):
        state, regret, far, best = policy.record.init(np.zeros(1)), 0.0, 0.0, 0.0
        for cost, hint, side, told in genes:
            state = policy.record.hinted(state, Hint(np.array([hint]), np.array([abs(told)]), np.array([[np.sign(told)]])))
            x = policy.record.decide(state)
            n = np.sign(side)  # the constraint side (x - 0.3) <= 0, or none
            state = policy.record.update(state, Feedback(x, cost * x[0], np.array([cost]), n * (x - 0.3), np.array([[n]])))
            regret, far = regret + cost * (x[0] - 0.3), far + max(n * (x[0] - 0.3), 0.0)
            P, E = exp(state.Q / 16.0), state.cost_error
            if aim == "invariant":
                best = max(best, (regret + P) / (1.0 + C / 8.0 + 2.0 * C * sqrt(E)))
        bound = policy.bound({**facts, **constants_from(state)}, T)
        return {"regret": regret / bound.regret, "ccv": far / bound.ccv, "invariant": best}[aim]

    def drawn(n):
        return np.stack([rng.uniform(-1, 1, n), rng.uniform(-1, 1, n), rng.choice([-1.0, 0.0, 1.0], n), rng.choice([-1.0, 0.0, 1.0], n)], 1)

    worst = max((drawn(T) for _ in range(8)), key=measured)
    top = measured(worst)
    for _ in range(120):
        other = worst.copy()
        where = rng.random(T) < rng.choice([0.05, 0.3])
        other[where] = drawn(int(where.sum())) if rng.random() < 0.5 else other[where] * [1.0, 1.0, 1.0, 0.0]
        if (found := measured(other)) > top:
            worst, top = other, found
    assert 0.05 < top <= 1.0


@pytest.mark.parametrize(("scale", "level"), [(1.0, 0.3), (2.0**60, -2.0)], ids=["usual", "units"])
def test_the_update_is_what_the_page_says(scale, level):
    """Written out again in plain numbers, on a ball, without halfspaces: y, S, W, P, the gates and the shortened prediction.

    Also where P is so large that units of it are counted apart: from 2^60 on, with constraints that are nearly always violated.
    """
    rng, R = np.random.default_rng(7), 1.5
    D, lam, V = 2.0 * R, 1.0 / (16.0 * R), 0.7 * scale
    policy = bridle.policy("optimistic", bridle.Ball(3, radius=R), V=V, halfspace=False, hint="none")
    state = policy.record.init(np.zeros(3))
    state = state._replace(Q=log(scale) / lam, W=(lam * scale) ** 2)

    def onto_ball(z):
        return z * min(1.0, R / max(float(np.linalg.norm(z)), 1e-300))

    y, S, W, P, longest = np.zeros(3), 0.0, (lam * scale) ** 2, scale, 0.0
    sums = np.zeros(4)
    used, errors = np.zeros(2), np.zeros(2)
    for t in range(60):
        df, a = rng.standard_normal(3), rng.standard_normal(3)
        m = df + 0.8 * rng.standard_normal(3) if t % 7 else -3.0 * df
        guess = float(a @ y) - level if t % 5 else 0.1
        said = a / np.linalg.norm(a) * (guess > 0.0)
        state = policy.record.hinted(state, Hint(m, np.array([guess]), 5.0 * a[None]))
        m = m * min(1.0, longest / float(np.linalg.norm(m)))
        m, said = (m, said) if S > 0.0 else (0.0 * m, 0.0 * said)
        eta, w = D / sqrt(S) if S > 0.0 else 0.0, lam * P
        take, trust = (m if sums[0] <= sums[1] else 0.0 * m), (said if sums[2] <= sums[3] else 0.0 * said)
        used += [sums[0] <= sums[1], sums[2] <= sums[3]]
        x = onto_ball(y - eta * (V * take + w * trust))
        np.testing.assert_allclose(policy.record.decide(state), x, atol=1e-12)
        g = float(a @ x) - level
        dist, n = min(max(g, 0.0) / float(np.linalg.norm(a)), D), (g > 0.0) * a / float(np.linalg.norm(a))
        state = policy.record.update(state, Feedback(x, 0.0, df, np.array([g]), a[None]))
        y = onto_ball(y - eta * (V * df + w * n))
        S += float(np.sum((V * (df - take) + w * (n - trust)) ** 2))
        before, W = W, W + w**2 * float(np.sum((n - trust) ** 2))
        P += w * dist - C * D * (sqrt(W) - sqrt(before))
        longest = max(longest, float(np.linalg.norm(df)))
        sums += [np.sum((df - m) ** 2), df @ df, np.sum((n - said) ** 2), n @ n]
        errors += [np.sum((df - take) ** 2), np.sum((n - trust) ** 2)]
        np.testing.assert_allclose([state.told_cost, state.plain_cost, state.told_limits, state.plain_limits], sums, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose([state.cost_error, state.limit_error], errors, rtol=1e-10, atol=1e-12)
        assert state.rounds == t + 1.0
        assert scale > 1.0 or state.infeasible == 0.0
        unit = 2.0 ** (64.0 * state.units)
        np.testing.assert_allclose([state.S * unit**2, state.W * unit**2, exp(lam * state.Q)], [S, W, P], rtol=1e-10)
    found = policy.record.certified_regret(state)
    assert state.units == (0.0 if scale == 1.0 else 1.0)
    if state.units:
        assert found is None
        return
    assert used.min() > 5
    assert used.max() < 60
    assert found == pytest.approx((C * D * sqrt(S) - (P - 1.0) - C * D * (sqrt(W) - lam)) / V, rel=1e-9)


@pytest.mark.parametrize("halfspace", [True, False])
def test_while_nothing_moves_no_cost_is_predicted(halfspace):
    """V grad f_1 + w n_1 = 0, so S stays 0 after round 1. If exact hints were used from there, S would stay 0 for ever, and x would too."""
    T, policy = 2000, bridle.policy("optimistic", bridle.Box(-1.0, 1.0, dim=1), V=1.0 / 16.0, hint="none", halfspace=halfspace)
    session, u, regret = bridle.Session(policy), -1.0, 0.0
    for t in range(T):
        slope = 1.0 if t else -1.0
        x = session.decide(hint=[slope]) if t else session.decide()
        g, normal = (-1.0, 0.0) if t else (float(x[0]) + 1e-6, 1.0)
        session.observe(f=slope * float(x[0]), df=[slope], g=g, dg=[normal])
        regret += slope * (float(x[0]) - u)
        if t < 50 or t % 50 == 0:
            assert regret <= session.bound().regret + 1e-9
            assert regret <= session.certificate().regret_algorithm + 1e-9
    assert session.bound().regret < 26.3  # c D sqrt(E_f) + (1 + c/8)/V with E_f = 2
    assert regret < 2.0


def test_a_constraint_predicted_elsewhere_is_read_where_one_would_decide():
    """At 0 it holds with room, at what the predicted cost alone leads to it does not: of two, the one that is violated by more there."""
    policy = bridle.policy("optimistic", bridle.Ball(2), V=1.0, hint="none")
    state = policy.record.update(
        policy.record.init(np.zeros(2)), Feedback(np.zeros(2), 0.0, np.array([1.0, 0.0]), np.zeros(1), np.zeros((1, 2)))
    )
    there = policy.record.decide(policy.record.hinted(state, Hint(np.array([0.0, -1.0]))))
    np.testing.assert_allclose(there, [0.0, 1.0], atol=1e-12)
    rows, values = np.array([[0.0, 2.0], [0.0, 1.0]]), np.array([-1.0, -0.2])
    told = policy.record.hinted(state, Hint(np.array([0.0, -1.0]), values, rows, np.zeros(2)))
    np.testing.assert_allclose(told.normal, [0.0, 1.0])
    none = policy.record.hinted(state, Hint(np.array([0.0, 1.0]), values, rows, np.zeros(2)))
    np.testing.assert_array_equal(none.normal, [0.0, 0.0])
    at_once = policy.record.hinted(state, Hint(g=np.array([0.1, -5.0]), dg=np.array([[3.0, 0.0], [0.0, 1.0]])))
    np.testing.assert_array_equal(at_once.normal, [1.0, 0.0])
    np.testing.assert_array_equal(at_once.df, state.df)


def test_halfspaces_of_the_round_and_of_earlier_ones_are_kept_to():
    """While S is 0 nothing else moves y: onto the farthest of two, then the other; the farthest is remembered, and kept to afterwards."""
    policy = bridle.policy("optimistic", bridle.Ball(2, radius=9.0), V=1.0, cuts=2, hint="none")
    start = policy.record.init(np.zeros(2))
    seen = Feedback(np.zeros(2), 0.0, np.zeros(2), np.array([1.0, 1.5]), np.array([[2.0, 0.0], [0.0, 1.0]]))
    state = policy.record.update(start, seen)
    np.testing.assert_allclose(state.y, [-0.5, -1.5])
    np.testing.assert_allclose(state.A, [[0.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(state.b, [-1.5, 0.0])
    assert (state.slot, state.S) == (1.0, pytest.approx(1.0 / 144.0**2))
    calm = policy.record.update(state, Feedback(state.y, 0.0, np.array([0.0, -9.0]), np.array([-1.0]), np.array([[1.0, 0.0]])))
    assert calm.y[1] == pytest.approx(-1.5)
    assert calm.slot == 1.0
    none = bridle.policy("optimistic", bridle.Ball(2, radius=9.0), V=1.0, cuts=0, hint="none").record
    alone = none.update(none.init(np.zeros(2)), seen._replace(g=np.array([3.0]), dg=np.array([[0.0, 2.0]])))
    np.testing.assert_allclose(alone.y, [0.0, -1.5])
    inside = none.update(none.init(np.array([1.0, 1.0])), seen._replace(x=np.ones(2), g=np.array([-3.0]), dg=np.array([[0.0, 2.0]])))
    np.testing.assert_array_equal(inside.y, [1.0, 1.0])
    free = none.update(
        none.update(none.init(np.zeros(2)), seen), Feedback(state.y, 0.0, np.array([0.0, -9.0]), np.array([-1.0]), np.zeros((1, 2)))
    )
    assert free.y[1] > 8.0, "and without memory the old one is forgotten"


def test_the_weight_is_taken_from_the_first_gradient():
    policy = bridle.policy("optimistic", bridle.Ball(2, radius=2.0), hint="none")
    nothing = Feedback(np.zeros(2), 0.0, np.zeros(2), np.zeros(1), np.zeros((1, 2)))
    state = policy.record.update(policy.record.init(np.zeros(2)), nothing)
    assert state.V == 0.0
    state = policy.record.update(state, nothing._replace(df=np.array([0.0, 3.0])))
    assert float(state.V) == pytest.approx(10.0 / (4.0 * 3.0))
    assert policy.record.update(state, nothing._replace(df=np.array([7.0, 0.0]))).V == state.V
    tiny = policy.record.update(policy.record.init(np.zeros(2)), nothing._replace(df=np.array([0.0, 1e-90])))
    assert tiny.V == 1e80
    far = policy.record.update(state, nothing._replace(g=np.array([5.0]), dg=np.array([[1.0, 0.0]])))
    assert (far.infeasible, policy.record.alarm(far).infeasible) == (3.0, True)


def test_what_would_be_decided_is_read_at_the_predicted_step():
    """y - (D / sqrt(S)) V m, with nothing clipped: a constraint just short of it is expected to be violated, one just beyond is not."""
    policy = bridle.policy("optimistic", bridle.Ball(2, radius=50.0), V=0.4, hint="none", halfspace=False)
    seen = Feedback(np.zeros(2), 0.0, np.array([30.0, 0.0]), np.zeros(1), np.zeros((1, 2)))
    state = policy.record.update(policy.record.init(np.zeros(2)), seen)  # S = 12^2
    x = 100.0 / 12.0 * 0.4 * 2.0
    at = np.array([0.0, 0.25])
    for level, violated in ((x - 1e-3, 1.0), (x + 1e-3, 0.0)):
        hint = Hint(np.array([0.0, -2.0]), np.array([0.25 - level]), np.array([[0.0, 1.0]]), at)
        np.testing.assert_array_equal(policy.record.hinted(state, hint).normal, [0.0, violated])


def test_the_last_round_is_the_prediction_unless_told_otherwise():
    seen = Feedback(np.zeros(2), 0.0, np.array([0.0, 2.0]), np.array([0.5]), np.array([[4.0, 0.0]]))
    last, none = (bridle.policy("optimistic", bridle.Ball(2), V=1.0, halfspace=False, hint=hint).record for hint in ("last", "none"))
    after = last.update(last.init(np.zeros(2)), seen)
    np.testing.assert_array_equal(after.df, [0.0, 2.0])
    np.testing.assert_array_equal(after.normal, [1.0, 0.0])
    plain = none.update(none.init(np.zeros(2)), seen)
    np.testing.assert_array_equal([plain.df, plain.normal], np.zeros((2, 2)))
    np.testing.assert_array_equal(none.decide(plain), plain.y)


FACTS = {"lipschitz": 3.0, "diameter": 4.0, "feasible": np.zeros(2), "convex": True}
POLICY = bridle.policy("optimistic", bridle.Ball(2, radius=2.0), V=0.3)


def formula(E_f, E_n, t, V, G=3.0, D=4.0, gain=None, touch=1e-9):
    """The guarantee of the page with its constants: sum dist <= (D/a) (8 ln B + (b c/2) sqrt(E_n ln(1 + E_n B^2)))."""
    R, a, b = C * D * sqrt(E_f), 8.0 * log(9.0 / 8.0), -4.0 / C * log(1.0 - C / 4.0)
    B, last = (1.0 + C / 8.0 + V * (R + each) for each in (G * D * t, G * D * t if gain is None else gain))
    far = touch * D * t + D / a * (8.0 * log(last) + b * C / 2.0 * sqrt(E_n * log(1.0 + E_n * B * B)))
    return R + (1.0 + C / 8.0) / V, G * far


def test_the_bound_at_fixed_numbers():
    """In the errors of a game, and in those that are left where nobody has counted them: 2 t + 4 of each."""
    t = 50_000
    found = POLICY.bound({**FACTS, "cost_error": 700.0, "limit_error": 90.0}, t)
    assert (found.regret, found.ccv) == pytest.approx(formula(700.0, 90.0, t, 0.3), rel=1e-12)
    found = POLICY.bound(FACTS, t)
    most = (2.0 * t + 4.0) * (1.0 + 1e-9)
    assert (found.regret, found.ccv) == pytest.approx(formula(most * 9.0, most, t, 0.3), rel=1e-12)
    found = POLICY.bound({**FACTS, "cost_error": 700.0, "limit_error": 90.0, "regret": -12.0}, t)
    assert found.ccv == pytest.approx(formula(700.0, 90.0, t, 0.3, gain=12.0)[1], rel=1e-12)
    assert formula(700.0, 90.0, t, 0.3)[1] < 3.0 * 4.0 * (
        8.5 * log(1.0 + C / 8.0 + 0.3 * (C * 4 * sqrt(700) + 12.0 * t)) + 1.61 * sqrt(90.0 * 29.0)
    )


def test_a_wider_diameter_that_it_was_told_takes_the_place_of_the_true_one():
    """In steps and bound; but nothing is worse than G D a round with the true one. A smaller one proves nothing."""
    t, told = 50_000, bridle.policy("optimistic", bridle.Ball(2, radius=2.0), V=0.3, diameter=5.0)
    found = told.bound({**FACTS, "cost_error": 700.0, "limit_error": 90.0, "regret": -12.0}, t)
    B = 1.0 + C / 8.0 + 0.3 * (C * 5.0 * sqrt(700.0) + 12.0 * t)
    last, a, b = 1.0 + C / 8.0 + 0.3 * (C * 5.0 * sqrt(700.0) + 12.0), 8.0 * log(9.0 / 8.0), -4.0 / C * log(1.0 - C / 4.0)
    far = 1e-9 * 5.0 * t + 5.0 / a * (8.0 * log(last) + b * C / 2.0 * sqrt(90.0 * log(1.0 + 90.0 * B * B)))
    assert (found.regret, found.ccv) == pytest.approx((C * 5.0 * sqrt(700.0) + (1.0 + C / 8.0) / 0.3, 3.0 * far), rel=1e-12)
    assert told.bound(FACTS, 3).ccv == 36.0
    small = bridle.policy("optimistic", bridle.Ball(2, radius=2.0), V=0.3, diameter=3.9)
    assert "diameter is 4" in small.bound(FACTS, t).why
    assert small.record.certified_regret(small.record.init(np.zeros(2))) is None
    assert POLICY.record.certified_regret(POLICY.record.init(np.zeros(2))) == 0.0


def test_without_a_weight_the_first_gradient_decides():
    policy, t = bridle.policy("optimistic", bridle.Ball(2, radius=2.0)), 50_000
    found = policy.bound({**FACTS, "cost_error": 700.0}, t)
    assert found.regret == pytest.approx(C * 4.0 * sqrt(700.0) + (1.0 + C / 8.0) * 1.2, rel=1e-12)
    assert found.ccv is None
    assert "V" in found.why
    found = policy.bound({**FACTS, "cost_error": 700.0, "limit_error": 90.0, "V": 0.3}, t)
    assert (found.regret, found.ccv) == pytest.approx(formula(700.0, 90.0, t, 0.3), rel=1e-12)
    assert policy.bound({**FACTS, "V": 0.0}, t).regret == 3.0 * 4.0 * t
    assert policy.bound(FACTS, 3).regret == 36.0
    steepest = policy.bound({**FACTS, "lipschitz": 1e-85, "cost_error": 0.0}, 10**9)  # the largest V that is taken from a gradient
    assert steepest.regret == pytest.approx((1.0 + C / 8.0) * 1e-80, rel=1e-12, abs=0.0)


def test_the_bound_is_trivial_at_most_and_void_where_nothing_is_feasible():
    found = POLICY.bound(FACTS, 3)
    assert (found.regret, found.ccv) == (36.0, 36.0)
    for change, why in (({"feasible": None}, "no action"), ({"convex": False}, "not convex"), ({"diameter": 4.1}, "diameter is 4.1")):
        assert why in POLICY.bound({**FACTS, **change}, 100).why


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3])
def test_hints_are_worth_what_they_are(k):
    """Exact ones leave regret below that of none by far; lies and noise cost next to nothing, and every bound holds."""
    found = {}
    for truth, error in ((1.0, 0.0), (1.0, 0.5), (0.0, 1.0), (-1.0, 0.0)):
        problem = bridle.problem("hints", horizon=800, dim=4, constraints=k, truth=truth, error=error)
        facts = summary(bridle.play(bridle.policy("optimistic", problem.domain, hint="none"), problem))
        assert facts["regret"] <= facts["regret_bound"]
        assert facts["ccv"] <= facts["ccv_bound"]
        found[truth, error] = facts
    plain = bridle.problem("halfspaces", horizon=800, dim=4, constraints=k)
    none = summary(bridle.play(bridle.policy("optimistic", plain.domain, hint="none"), plain))
    assert found[1.0, 0.0]["regret"] < found[1.0, 0.5]["regret"] < none["regret"] - 50.0
    assert found[1.0, 0.0]["regret_bound"] < 6.0, "the first gradient is all that is not foreseen"
    for lie in ((0.0, 1.0), (-1.0, 0.0)):
        assert found[lie]["regret"] < none["regret"] + 0.05 * none["regret_bound"]
        assert found[lie]["ccv"] < 2.0 * none["ccv"] + 1.0
        assert found[lie]["regret_bound"] < sqrt(2.0) * none["regret_bound"] + 2.0 * C * 2.0


def test_hints_change_no_round_of_the_problem():
    """Whoever takes no hints plays as on the problem without them; and the noise is as long as it is said to be."""
    plain, hinted = (
        bridle.problem("halfspaces", horizon=1200, dim=3, seed=5),
        bridle.problem("hints", horizon=1200, dim=3, seed=5, error=0.4),
    )
    games = [bridle.play(bridle.policy("anytime", each.domain), each, keep="decisions") for each in (plain, hinted)]
    np.testing.assert_array_equal(games[0].decisions, games[1].decisions)
    assert bridle.regret(games[0]) == bridle.regret(games[1])
    draws = hinted.adversary.deal(np.random.default_rng(0), 500)
    assert draws.cost.shape == (500, 3)
    a = draws.inner.cost.a
    hints = [hinted.adversary.hint((), np.zeros(3), draw) for draw in records.unstack(draws, 500)]
    off = [float(np.sum((hint.df - true) ** 2)) for hint, true in zip(hints, a, strict=False)]
    assert np.mean(off) == pytest.approx(0.16, rel=0.1)


def test_a_hint_is_what_the_round_will_reveal():
    problem = bridle.with_hints(bridle.problem("fixed", horizon=10, dim=2), truth=0.5)
    foe, x = problem.adversary.init(), np.array([0.2, 0.1])
    draws = problem.adversary.deal(np.random.default_rng(1), 1)
    draw = type(draws)(None, draws.cost[0], draws.limits[0])
    hint, seen = problem.adversary.hint(foe, x, draw), problem.adversary.answer(foe, x, draw)[1].reveal(x)
    np.testing.assert_array_equal(hint.df, 0.5 * seen.df)
    np.testing.assert_array_equal(hint.dg, 0.5 * seen.dg)
    np.testing.assert_array_equal(hint.g, seen.g)
    np.testing.assert_array_equal(hint.x, x)
    noisy = problem.adversary._replace(error=0.3).hint(foe, x, draw)
    np.testing.assert_allclose(noisy.df - hint.df, 0.3 / sqrt(2.0) * np.linalg.norm(seen.df) * draw.cost)
    np.testing.assert_allclose(noisy.dg - hint.dg, 0.3 / sqrt(2.0) * np.linalg.norm(seen.dg) * draw.limits)


@pytest.mark.compiles
def test_engines_agree_on_hints():
    problem = bridle.problem("hints", horizon=120, dim=3, constraints=2, error=0.3)
    agree(bridle.policy("optimistic", problem.domain, V=[0.1, 1.0, 30.0], cuts=2), problem, 120)


@pytest.mark.parametrize(
    ("given", "words"),
    [({"hint": "next"}, "hint"), ({"V": -1.0}, "V"), ({"halfspace": False, "cuts": 3}, "cuts"), ({"constraints": 0}, "constraints")],
)
def test_what_the_policy_cannot_be_made_with_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        bridle.policy("optimistic", bridle.Ball(2), **given)


def test_what_hints_cannot_be_made_of_is_refused():
    halfspaces = bridle.problem("halfspaces", horizon=5, dim=2)
    for setting, value in (("error", -0.1), ("truth", float("nan"))):
        with pytest.raises(InputError, match=setting):
            bridle.with_hints(halfspaces, **{setting: value})
    with pytest.raises(InputError, match="problem must be a Problem"):
        bridle.with_hints("halfspaces")
    recorded = bridle.Problem(halfspaces.domain, bridle.adversaries.Recorded(halfspaces.adversary.deal(np.random.default_rng(0), 5)))
    with pytest.raises(InputError, match="recorded"):
        bridle.with_hints(recorded)


def test_infinitely_many_contradictions_do_not_overflow():
    """Without a feasible action P grows without end: it is kept in units, an alarm goes off, and decisions stay finite."""
    policy = bridle.policy("optimistic", bridle.Box(-1.0, 1.0, dim=1), halfspace=False)
    state = policy.record.init(np.zeros(1))
    for t in range(3000):
        x, side = policy.record.decide(state), 1.0 if t % 2 else -1.0
        state = policy.record.update(state, Feedback(x, 0.0, np.array([0.1]), np.array([side * x[0] + 2.0]), np.array([[side]])))
    assert state.units > 1.0
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in (state.y, state.Q, state.S, state.W))
    assert policy.record.certified_regret(state) is None
    assert policy.record.alarm(state).infeasible


class Steep(NamedTuple):
    """Rounds whose cost and constraints have gradients of other lengths than 1."""

    def init(self):
        return 0.0

    def answer(self, state, x):
        return state, Round(bridle.Affine([3.0, 4.0]), (bridle.Affine([5.0, 12.0]), bridle.Affine([0.0, 2.0])))


def test_a_hints_noise_is_a_share_of_each_gradients_length():
    """Lengths 5, 13 and 2: the draws of the cost come first, those of the constraints after it, from a generator that the seed spawns."""
    foe = Hinting(Steep(), 0.5, 0.3, np.zeros((2, 2)))
    draws = foe.deal(np.random.default_rng(4), 3)
    noise = np.random.default_rng(4).spawn(1)[0].standard_normal((3, 3, 2))
    np.testing.assert_array_equal(draws.cost, noise[:, 0])
    np.testing.assert_array_equal(draws.limits, noise[:, 1:])
    hint = foe.hint(0.0, np.array([0.2, 0.1]), HintDraw(None, draws.cost[1], draws.limits[1]))
    share = 0.3 / sqrt(2.0)
    np.testing.assert_allclose(hint.df, [1.5 + 5.0 * share * noise[1, 0, 0], 2.0 + 5.0 * share * noise[1, 0, 1]])
    np.testing.assert_allclose(hint.dg[0], [2.5 + 13.0 * share * noise[1, 1, 0], 6.0 + 13.0 * share * noise[1, 1, 1]])
    np.testing.assert_allclose(hint.dg[1], [0.0 + 2.0 * share * noise[1, 2, 0], 1.0 + 2.0 * share * noise[1, 2, 1]])


def test_a_touch_is_a_share_of_the_diameter():
    """Beyond 1e-9 D a constraint is violated, at just as far it is not; the first round with one that misses the domain is remembered."""
    policy = bridle.policy("optimistic", bridle.Ball(2, radius=50.0), V=0.4, hint="none", halfspace=False)
    start = policy.record.init(np.zeros(2))
    seen = Feedback(np.zeros(2), 0.0, np.zeros(2), np.zeros(1), np.array([[0.0, 1.0]]))
    for far, violated in ((0.9e-7, 0.0), (1e-9 * 100.0, 0.0), (1.1e-7, 1.0)):
        assert policy.record.update(start, seen._replace(g=np.array([far]))).plain_limits == violated, far
    missed = seen._replace(g=np.array([101.0]))
    once = policy.record.update(start, missed)
    assert (once.infeasible, policy.record.update(once, missed).infeasible) == (1.0, 1.0)


def test_what_is_told_is_believed_while_it_is_no_worse_than_nothing():
    """Just as wrong, up to rounding, as no prediction: it is believed; a little more so, it is not."""
    record = bridle.policy("optimistic", bridle.Ball(2), V=1.0, hint="none", halfspace=False).record
    state = record.init(np.zeros(2))._replace(S=4.0, longest=5.0, df=np.array([3.0, 4.0]), normal=np.array([0.0, 1.0]))
    state = state._replace(plain_cost=2.0, plain_limits=3.0)
    tie = 1.0 + 1e-9
    for factor, believed in ((1.0, 1.0), (1.0 + 5e-10, 1.0), (tie, 1.0), (1.0 + 2e-9, 0.0)):
        costs, limits = record.foresee(state._replace(told_cost=2.0 * factor)), record.foresee(state._replace(told_limits=3.0 * factor))
        np.testing.assert_array_equal([costs.df, costs.normal], [[3.0 * believed, 4.0 * believed], [0.0, 1.0]])
        np.testing.assert_array_equal([limits.df, limits.normal], [[3.0, 4.0], [0.0, believed]])
