"""Limits on average and noisy constraint values: the pathwise line, the bounds, noise (stream S9), the price, the cap."""

from __future__ import annotations

import warnings
from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import AssumptionWarning, InfeasibleWarning, InputError
from bridle.core import Feedback, Round
from helpers import adversarial_games
from helpers.instances import constraint_at, cost_at, instances, moves, rounding

SIGMA = 1.0 / sqrt(3.0)
"""The standard deviation of noise between -1 and 1."""


# --- the pathwise line (O5) and the bounds that follow from it ------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=150)
@given(
    instances(),
    st.sampled_from([None, 15, 60]),
    st.sampled_from([0.01, 0.25, 1.0, 30.0]),
    st.sampled_from([None, 0.1, 10.0]),
    st.integers(1, 3),
    st.floats(-6.0, 0.0),
)
def test_the_pathwise_line(instance, horizon, weight, cap, k, smaller):
    """Regret + |Q|^2/(2 V_t) <= D^2 alpha_t/V_t + sum V |grad f|^2/(4 alpha) + sum |b|^2/(2 V), after every round."""
    domain, feasible, G, rng = instance
    D, T = domain.diameter(), 60
    policy = bridle.policy("soft", domain, lipschitz=G, bound=2.0 * G * D, horizon=horizon, weight=weight, cap=cap, constraints=k).record
    size = k * (3.0 * G * D) ** 2
    state = policy.init(domain.center())
    regret, right, terms = 0.0, 0.0, 0.0
    for t, (cost_move, constraint_move) in enumerate(moves(rng, T), 1):
        tau = t if horizon is None else horizon
        V, alpha = sqrt(2.0 * tau) * weight * size / (G * D), size * tau / (2.0 * D * D)  # as written down, not as computed
        x = policy.decide(state)
        assert domain.contains(x)
        cost = cost_at(cost_move, x, feasible, G * 10.0**smaller, t, rng)
        feedback = Round(cost, tuple(constraint_at(constraint_move, x, feasible, G, D, t, rng) for _ in range(k))).reveal(x)
        state = policy.update(state, feedback)
        b = feedback.g + feedback.dg @ (policy.decide(state) - x)
        regret += float(feedback.df @ (x - feasible))
        right += V * float(feedback.df @ feedback.df) / (4.0 * alpha) + float(b @ b) / (2.0 * V)
        Q = state.queues.Q
        assert (Q >= 0.0).all()
        # The rounding of g at the feasible point is weighed by the queue.
        reach = G * (np.abs(feasible).sum() + np.abs(x).sum() + D)
        terms += float(Q.sum()) * reach / V + G * 10.0**smaller * reach / G
        left, whole = regret + float(Q @ Q) / (2.0 * V), D * D * alpha / V + right
        assert left <= whole + rounding(t, left, whole, terms)


@pytest.mark.parametrize("cap", [None, 0.3])
@pytest.mark.parametrize("horizon", [None, 40])
def test_the_update_is_the_one_written_down(horizon, cap):
    rng, G, F, sigma, v, k, D = np.random.default_rng(0), 1.5, 2.0, 0.5, 0.7, 2, 2.0
    policy = bridle.policy(
        "soft", bridle.Ball(3), lipschitz=G, bound=F, noise=sigma, weight=v, constraints=k, horizon=horizon, cap=cap
    ).record
    size = k * (F + sigma + G * D) ** 2
    state, x, Q = policy.init(np.zeros(3)), np.zeros(3), np.zeros(k)
    for t in range(1, 61):
        np.testing.assert_allclose(policy.decide(state), x, rtol=0, atol=1e-12)
        df, g, dg = rng.standard_normal(3), 1.0 + rng.standard_normal(k), rng.standard_normal((k, 3))
        state = policy.update(state, Feedback(policy.decide(state), 0.0, df, g, dg))
        tau = horizon or t
        V, alpha = sqrt(2.0) * v * size * sqrt(tau) / (G * D), size * tau / (2.0 * D * D)
        y = x - (V * df + Q @ dg) / (2.0 * alpha)
        y /= max(1.0, float(np.linalg.norm(y)))
        Q, x = np.minimum(np.maximum(Q + g + dg @ (y - x), 0.0), np.inf if cap is None else cap * V), y
        np.testing.assert_allclose(state.queues.Q, Q, rtol=1e-12, atol=1e-9)
        after = V if horizon else V * sqrt((t + 1) / t)
        np.testing.assert_allclose(policy.price(state), Q / after, rtol=1e-12, atol=1e-12)
    assert (state.capped > 0.0) == (cap is not None)


@pytest.mark.parametrize("slater", [None, 0.5])
def test_without_a_horizon_the_bound_is_the_sum_of_the_moves(slater):
    """Against sums written out term by term: what every round's move adds, and the queue of every round."""
    G, D, F, k, v, T = 2.0, 3.0, 4.0, 2, 0.3, 5000
    policy = bridle.policy("soft", bridle.Ball(2, radius=D / 2), lipschitz=G, bound=F, weight=v, constraints=k)
    C, s = F + G * D, np.arange(1.0, T + 1.0)
    V, alpha = sqrt(2.0) * v * k * C * C / (G * D), k * C * C / (2.0 * D * D)
    r = D * D * alpha / V + V * G * G / (2.0 * alpha) + k * C * C / V
    queue = np.sqrt(2.0 * V * (G * D * s**1.5 + r * s))
    if slater is not None:
        E, h, n = k * C * C / 2 + V * V * G * G / (4 * alpha), sqrt(k) * (C / 2 + F), np.arange(1.0, 2000.0)[:, None]
        settled = alpha * s * D * D / (slater * n) + (V * np.sqrt(s) * G * D + E) / slater + h * n - 0.5 * sqrt(k) * C
        queue = np.minimum(queue, settled.min(axis=0))
    exact = queue[-1] + (G * G / (2.0 * alpha * s) * (V * np.sqrt(s) + sqrt(k) * queue)).sum()
    found = bridle.policies._soft.growing_bounds(policy.record.queues, {"lipschitz": G, "diameter": D}, F, T, slater)
    assert found[0] == pytest.approx(r * sqrt(T))
    assert exact * (1.0 - 1e-9) <= found[1] <= 1.3 * exact


@pytest.mark.parametrize("horizon", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_its_bounds_hold_against_adaptive_play(k, horizon):
    for kind, d, seed, weight, slater in product(("ball", "box"), (1, 6), range(2), (0.05, 0.25, 2.0), (0.0, 0.2)):
        T = 150
        at = adversarial_games.stage(kind, d, k, T, seed, slater=slater)
        given_horizon = {"horizon": T} if horizon else {}
        policy = bridle.policy(
            "soft", at.domain, lipschitz=at.G, bound=at.constants["bound"], weight=weight, constraints=k, **given_horizon
        )
        found = adversarial_games.ratios(policy, at)
        assert found.keys() == {"regret", "soft", "interval"}
        assert max(found.values()) <= 1.0, (kind, d, seed, weight, slater, found)


def test_its_bounds_are_those_of_the_docstring():
    facts = {"lipschitz": 3.0, "diameter": 2.0, "bound": 5.0, "feasible": np.zeros(2)}
    for v, T in product((0.1, 0.25, 1.0), (10**4, 10**6)):
        known = {"lipschitz": 3.0, "bound": 5.0, "weight": v}
        free, told = (bridle.policy("soft", bridle.Ball(2), **known, **more) for more in ({}, {"horizon": T}))
        assert told.bound(facts, T).regret == pytest.approx(6.0 * sqrt(T / 2.0) * (1.0 / v + v))
        assert free.bound(facts, T).regret == pytest.approx(6.0 * sqrt(T) * (1.5 / sqrt(2.0) / v + sqrt(2.0) * v))
    for more in ({}, {"horizon": 10**12}):
        policy = bridle.policy("soft", bridle.Ball(2), lipschitz=3.0, bound=5.0, weight=0.25, **more)
        early, late = (policy.bound(facts, t).soft for t in (10**8, 10**12))
        assert late / early < 1050.0  # T^{3/4}, of which the bound without horizon has the constant's part only
    for told in (False, True):  # sqrt(T) with room to spare
        limits = []
        for T in (10**8, 10**10):
            policy = bridle.policy("soft", bridle.Ball(2), lipschitz=3.0, bound=5.0, **({"horizon": T} if told else {}))
            limits.append(policy.bound({**facts, "slater": 1.0}, T).soft)
            assert limits[-1] < policy.bound(facts, T).soft
        assert limits[1] / limits[0] == pytest.approx(10.0, rel=0.1)


@pytest.mark.compiles
def test_a_policy_that_ignores_limits_breaks_its_bound():
    problem = bridle.problem("fixed", horizon=50_000, dim=3)
    policy = bridle.policy_for("soft", problem, horizon=50_000)
    limit = policy.bound({**problem.constants, "slater": None}, 50_000)
    blind = policy.record._replace(queues=policy.record.queues._replace(V=1e9))
    idle = policy.record._replace(queues=policy.record.queues._replace(V=1e-12))
    assert bridle.soft_violation(bridle.play(blind, problem, engine="jax")) > limit.soft
    assert bridle.regret(bridle.play(idle, problem, engine="jax")) > limit.regret
    right = bridle.play(policy, problem, engine="jax")
    assert bridle.regret(right) <= limit.regret
    assert bridle.soft_violation(right) <= limit.soft


def test_for_a_horizon_with_weight_one_it_is_neely2017():
    problem = bridle.problem("halfspaces", horizon=300, dim=4, constraints=2)
    one = bridle.play(bridle.policy_for("neely2017", problem), problem, keep="decisions")
    two = bridle.play(bridle.policy_for("soft", problem, horizon=300, weight=1.0), problem, keep="decisions")
    np.testing.assert_array_equal(one.decisions, two.decisions)


# --- noise: stream S9 -----------------------------------------------------------------------------------------------------------------

DIM = 3
AXIS = np.eye(DIM)[0]


def s9(policy, T: int, seed: int) -> tuple[float, float]:
    """Cost -x_1, limit x_1 <= -0.3 read with noise between -1 and 1: regret against (-0.3, 0, 0) and the true soft violation."""
    rng, record = np.random.default_rng([seed, 9]), policy.record
    state = record.init(policy.domain.center())
    total = 0.0
    for noise in rng.uniform(-1.0, 1.0, T):
        x = record.decide(state)
        g = float(x[0]) + 0.3
        total += g
        state = record.update(state, Feedback(x, -g, -AXIS, np.array([g + noise]), AXIS[None]))
    return -total, max(total, 0.0)


def noisy(**more):
    return bridle.policy("soft", bridle.Ball(DIM), lipschitz=1.0, bound=1.3, noise=SIGMA, **more)


@pytest.mark.slow
def test_noise_ruins_hard_limits_and_not_limits_on_average():
    anytime = bridle.policy("anytime", bridle.Ball(DIM))
    for T in (1000, 8000):
        assert s9(anytime, T, 0)[0] > 0.6 * T  # it flees from the noise: linear regret
        for seed in range(2):
            regret, violation = s9(noisy(), T, seed)
            assert regret <= 0.5 * sqrt(T)
            assert violation <= 4.0 * sqrt(T)
            regret, violation = s9(noisy(weight=0.1), T, seed)
            assert regret <= sqrt(T)
            assert violation <= 1.6 * sqrt(T)


@pytest.mark.parametrize("more", [{}, {"horizon": 400}])
def test_with_noise_the_bounds_hold_on_average(more):
    facts, T, runs = {"lipschitz": 1.0, "diameter": 2.0, "bound": 1.3, "feasible": -0.3 * AXIS}, 400, 12
    policy = noisy(weight=0.25, **more)
    found = np.mean([s9(policy, T, seed) for seed in range(runs)], axis=0)
    bound = policy.bound(facts, T)
    assert found[0] <= bound.regret < 2.0 * T
    assert found[1] <= bound.soft
    assert "expectation" in bound.why
    assert bound.interval is None  # of the worst interval in hindsight nothing is proved
    quiet = bridle.policy("soft", bridle.Ball(DIM), lipschitz=1.0, bound=1.3, weight=0.25, **more).bound(facts, T)
    assert (quiet.why, quiet.interval) == ("", quiet.soft)


def test_noise_adds_its_spread_to_the_bound_on_violation():
    facts, T = {"lipschitz": 1.0, "diameter": 200.0, "bound": 1.3, "feasible": np.zeros(2)}, 10_000
    ball = bridle.Ball(2, radius=100.0)
    policy = bridle.policy("soft", ball, lipschitz=1.0, bound=1.3, noise=2.0, horizon=T, constraints=3)
    without = bridle.policies._soft.queue_bounds(policy.record.queues, facts, 3.3, T, 0.0, None)[1]
    assert policy.bound(facts, T).soft == pytest.approx(without + 2.0 * sqrt(3.0 * T))
    policy = bridle.policy("soft", ball, lipschitz=1.0, bound=1.3, noise=2.0, constraints=3)
    without = bridle.policies._soft.growing_bounds(policy.record.queues, facts, 3.3, T, None)[1]
    assert policy.bound(facts, T).soft == pytest.approx(without + 2.0 * sqrt(3.0 * T))


def test_a_session_of_soft_expects_noise():
    rng = np.random.default_rng(0)

    def play(policy, rounds=200):
        session = bridle.Session(policy)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(rounds):
                session.step(cost=bridle.Affine(-AXIS), constraints=[(lambda x: x[0] + 0.3 + rng.uniform(-1, 1), lambda x: AXIS)])
        return session, {each.category for each in caught}

    session, kinds = play(noisy())
    assert InfeasibleWarning not in kinds
    assert AssumptionWarning not in kinds
    assert session.certificate().conflict is None
    assert "noisy" in session.certificate().why
    report = session.report()
    assert "soft violation at most" in report
    assert "in expectation over errors of mean 0" in report
    unaware, kinds = play(bridle.policy("soft", bridle.Ball(DIM), lipschitz=1.0, bound=1.3))
    assert InfeasibleWarning in kinds  # it was not told that there is noise
    assert "says nothing here" in unaware.report()


# --- the price ------------------------------------------------------------------------------------------------------------------------


def stationary(policy, T: int) -> bridle.Session:
    """min -x_1 - x_2/2 with 1.05 x_1 <= 0.3 and x_2 <= 0.2: the multipliers are 1/1.05 and 1/2."""
    session = bridle.Session(policy, certify=False)
    for _ in range(T):
        x = session.decide()
        session.observe(f=0.0, df=[-1.0, -0.5], g=[1.05 * x[0] - 0.3, x[1] - 0.2], dg=[[1.05, 0.0], [0.0, 1.0]])
    return session


@pytest.mark.parametrize("name", ["soft", "neely2017", "liakopoulos2019", "yu2020"])
def test_the_price_comes_near_the_multiplier_on_a_stationary_stream(name):
    T = 4000
    known = {"horizon": T, "lipschitz": 1.12, "bound": 1.4, "constraints": 2}
    known = {p.name: known[p.name] for p in bridle.policies.parameters(name) if p.name in known}
    if name == "soft":
        known |= {"horizon": None}
    session = stationary(bridle.policy(name, bridle.Ball(2), **known), T)
    assert session.price == pytest.approx([1.0 / 1.05, 0.5], rel=0.2)
    assert name != "yu2020" or session.price == pytest.approx([1.0 / 1.05, 0.5], rel=1e-3)
    kept = session.price
    kept += 7.0
    assert session.price.max() < 7.0


def test_the_average_of_the_price_is_closer():
    session = bridle.Session(bridle.policy("soft", bridle.Ball(2), lipschitz=1.05, bound=1.35), certify=False)
    prices = []
    for _ in range(8000):
        x = session.decide()
        session.observe(f=0.0, df=[-1.0, 0.0], g=1.05 * x[0] - 0.3, dg=[1.05, 0.0])
        prices.append(float(session.price[0]))
    assert np.mean(prices[2000:]) == pytest.approx(1.0 / 1.05, rel=0.01)


def test_a_slack_limit_has_no_price():
    session = bridle.Session(bridle.policy("soft", bridle.Ball(2), lipschitz=1.0, bound=3.0))
    for _ in range(200):
        x = session.decide()
        session.observe(f=0.0, df=[-1.0, 0.0], g=x[0] - 2.0, dg=[1.0, 0.0])
    assert session.price.tolist() == [0.0]
    assert session.balances[0] < 0.0


def test_with_late_feedback_the_price_is_that_of_the_copy_that_decides_next():
    policy, told = bridle.policy("soft", bridle.Ball(2), lipschitz=1.0, bound=2.0), {"df": [-1.0, 0.0], "g": 0.5, "dg": [1.0, 0.0]}
    session, alone = bridle.Session(policy), bridle.Session(policy)
    first, second = session.ask(), session.ask()
    session.observe(**told, ticket=second)
    alone.observe(**told)
    assert session.price.tolist() == alone.price.tolist() != [0.0]
    session.observe(df=[-1.0, 0.0], g=-0.5, dg=[1.0, 0.0], ticket=first)
    assert session.balances.tolist() == [0.0]


def test_where_there_is_no_price_it_is_said():
    for policy in (
        bridle.policy("anytime", bridle.Ball(2)),
        bridle.policy("sinha2024", bridle.Ball(2), horizon=10, lipschitz=1.0),
        bridle.policy("neely2017", bridle.Ball(2), horizon=10, lipschitz=1.0, bound=2.0, clip=True),
        bridle.policy("yu2020", bridle.Ball(2), horizon=10, lipschitz=1.0, clip=True),
    ):
        session = bridle.Session(policy)
        with pytest.raises(InputError, match=f"policy {policy.name} keeps no price"):
            _ = session.price
        assert session.certificate().price is None
        assert "Price" not in session.report()


def test_price_and_balance_are_reported_saved_and_resumed(tmp_path):
    session = bridle.Session(bridle.policy("soft", bridle.Ball(2), lipschitz=1.12, bound=1.4, constraints=2))
    for _ in range(300):
        x = session.decide()
        session.observe(f=0.0, df=[-1.0, -0.5], g=[1.05 * x[0] - 0.3, x[1] - 0.2], dg=[[1.05, 0.0], [0.0, 1.0]])
    found = session.certificate()
    np.testing.assert_array_equal(found.price, session.price)
    np.testing.assert_array_equal(found.balance, session.balances)
    text = session.report()
    for i, (price, sum) in enumerate(zip(session.price, session.balances, strict=True)):
        assert f"one more unit of limit {i} would have been worth about {price:.4g}" in text
        assert f"limit {i} was {abs(sum) / 300:.4g} {'above' if sum > 0 else 'below'} 0" in text
    assert "This is an estimate" in text
    session.save(tmp_path / "session.npz")
    other = bridle.Session.load(tmp_path / "session.npz")
    np.testing.assert_array_equal(other.price, session.price)
    np.testing.assert_array_equal(other.balances, session.balances)


# --- the cap --------------------------------------------------------------------------------------------------------------------------


def test_the_cap_holds_the_price_keeps_the_regret_bound_and_is_announced():
    """Nothing satisfies the limit for 600 rounds, then much does: without the cap the queue takes long to empty."""
    T = 850
    ends = {}
    for cap in (None, 2.0):
        session = bridle.Session(bridle.policy("soft", bridle.Ball(2), lipschitz=1.0, bound=3.0, cap=cap))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for t in range(T):
                x = session.decide()
                session.observe(f=0.0, df=[-1.0, 0.0], g=x[0] + (2.0 if t < 600 else -0.5), dg=[1.0, 0.0])
        ends[cap] = float(session.decide()[0]), [each.message for each in caught if each.category is AssumptionWarning]
        assert cap is None or session.price[0] <= cap * (1.0 + 1e-12)
    assert ends[2.0][0] > 0.3 > -0.5 > ends[None][0]  # the cap lets go of what cannot be helped
    assert ends[None][1] == []
    assert "held at its cap in" in str(ends[2.0][1][0])
    facts = {"lipschitz": 1.0, "diameter": 2.0, "bound": 3.0, "feasible": np.zeros(2)}
    with_cap, without = (bridle.policy("soft", bridle.Ball(2), lipschitz=1.0, bound=3.0, cap=cap).bound(facts, T) for cap in (2.0, None))
    assert with_cap.regret == without.regret
    assert (with_cap.soft, with_cap.interval) == (None, None)
    assert "capped price" in with_cap.why


def test_a_cap_of_several_runs_counts_for_each():
    policy = bridle.policy("soft", bridle.Ball(2), lipschitz=1.0, bound=3.0, cap=[0.01, 100.0])
    with pytest.warns(bridle.BridleWarning, match="held at its cap"):
        bridle.play(policy, "halfspaces", horizon=50)
    state = policy.init(np.zeros((2, 2)))
    for _ in range(3):
        g, dg = np.full((2, 1), 1.0), np.full((2, 1, 2), 0.1)
        state = policy.update(state, Feedback(policy.decide(state), 0.0, np.zeros((2, 2)), g, dg))
    assert state.capped.tolist() == [[3.0], [0.0]]
    prices = policy.record.price(state)
    assert prices[0, 0] <= 0.01 < prices[1, 0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"weight": 0.0}, "weight must be above 0, not 0.0"),
        ({"noise": -1.0}, "noise must be 0 or above, not -1.0"),
        ({"cap": 0}, "cap must be above 0, not 0"),
        ({"horizon": -5}, "horizon must be above 0, not -5"),
        ({"bound": 0.0}, "bound must be above 0, not 0.0"),
        ({"lipschitz": None}, "lipschitz must be given with bound: policy soft is told both, or nothing"),
        ({"bound": None}, "bound must be given with lipschitz: policy soft is told both, or nothing"),
        ({"lipschitz": None, "bound": None, "horizon": 9}, "horizon = 9 must be given with lipschitz and bound"),
        ({"damping": 0.5}, "damping = 0.5 is of the form without constants"),
        ({"lipschitz": None, "bound": None, "damping": -1.0}, "damping must be 0 or above, not -1.0"),
    ],
)
def test_what_cannot_be_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        bridle.policies._soft.soft(bridle.Ball(2), **{"lipschitz": 1.0, "bound": 2.0, **wrong})
