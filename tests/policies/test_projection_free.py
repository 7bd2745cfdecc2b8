"""wang2025 and wang2025-squared: bounds pinned and under attack, updates written out again, certificates, engines, paths."""

from __future__ import annotations

from math import e, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.core import Feedback, Round
from bridle.functions import AffineFunction
from bridle.policies._wang2025 import squared_free_bound
from helpers.adversarial_games import ratios, stage
from helpers.engine_agreement import agree
from helpers.instances import cost_at, instances, moves, rounding
from helpers.pinned_theorems import D_, FACTS, G_, D, G, bound, same, t

NAMES = ("wang2025", "wang2025-squared")


# --- bounds -----------------------------------------------------------------------------------------------------------------------------


def constant(true, told):
    """C for a domain of a true diameter, told another: proved for the larger of the two."""
    wide = max(true, told)
    return 0.75 * wide**2 / told + 2.5 * wide


def test_the_bound_of_wang2025_at_fixed_numbers():
    far, late = 10**12, 9 * 10**11  # where it says more than that nothing is worse than G D a round
    beta, lam = 4.0 / (13.0 * D_ * G_), 0.9 / far**0.75
    s = constant(D, D_) * beta * G * late**0.75
    ccv = log((1.0 + s + beta * G * D * late) / (1.0 - s * lam)) / (beta * lam)
    same(bound("wang2025", late, horizon=far), late, regret=s / beta * (1.0 + lam), ccv=ccv)
    ccv = log((1.0 + lam * (s + beta * G * D * late)) / (1.0 - s * lam)) / (beta * lam)
    same(bound("wang2025", late, horizon=far, preset="practice"), late, regret=2.0 * s / beta, ccv=ccv)
    own = {"beta": 0.3, "lam": 1e-10, "V": 2.0, "diameter": 2.0}
    s = constant(D, 2.0) * 0.3 * G * late**0.75
    ccv = log((1.0 + 2.0 * (s + 0.3 * G * D * late)) / (1.0 - s * 1e-10)) / (0.3e-10)
    same(bound("wang2025", late, horizon=far, **own), late, regret=s / 0.3 * (1.0 + 0.5e-10), ccv=ccv)
    told_s = constant(D, D_) * beta * G * late**0.75
    assert bound("wang2025", late, horizon=far, lam=1e-8).why == f"kappa*lam*t^0.75 = {told_s * 1e-8:.3g} must be below 1"
    assert bound("wang2025").ccv == pytest.approx(G * D * t)


def test_the_bound_of_wang2025_squared_at_fixed_numbers():
    C, V = constant(D, D_), 1.3
    far, late = 10**8, 9 * 10**7
    lam = 8.0 / (169.0 * D_**2 * sqrt(far))
    theta, R = C * C * sqrt(late) * lam, C * G * late**0.75
    Q = log((1.0 + V * (R + G * D * late)) / (1.0 - theta)) / lam
    same(bound("wang2025-squared", late, horizon=far, V=V), late, regret=R + theta / V, ccv=G * sqrt(late * Q), squared=G * G * Q)
    found = bound("wang2025-squared", late, horizon=far, facts={"V": 0.7})  # the V that a game found
    assert found.regret == pytest.approx(R + theta / 0.7)
    assert found.squared == pytest.approx(G * G * log((1.0 + 0.7 * (R + G * D * late)) / (1.0 - theta)) / lam)
    unknown = bound("wang2025-squared", late, horizon=far)
    assert (unknown.regret, unknown.ccv) == (pytest.approx(R + theta * D_ * G / 10.0), None)
    assert "depends on V" in unknown.why
    better = bound("wang2025-squared", late, horizon=far, V=V, facts={"regret": -5.0})
    assert better.squared == pytest.approx(G * G * log((1.0 + V * (R + 5.0)) / (1.0 - theta)) / lam)
    assert "must be below 1" in bound("wang2025-squared", late, horizon=far, lam=1.0).why
    assert "more than the policy was told" in bound("wang2025-squared", diameter=1.9).why
    assert "no action" in bound("wang2025-squared", facts={"feasible": None}).why
    few = bound("wang2025-squared", 10, horizon=100, V=V)
    assert (few.regret, few.ccv, few.squared) == pytest.approx((G * D * 10, G * D * 10, (G * D) ** 2 * 10))


@pytest.mark.parametrize("name", NAMES)
def test_the_bound_proves_something_at_realistic_horizons(name):
    """The horizon from which the violation bound is below G D a round: what the square root of the logarithm is worth."""
    facts = {**FACTS, "lipschitz": 1.0, "diameter": 2.0, "V": 5.0}
    told = {"lipschitz": 1.0} if name == "wang2025" else {}
    first = next(
        T for T in (10**p for p in range(2, 16)) if bridle.policy(name, bridle.Ball(2), horizon=T, **told).bound(facts, T).ccv < 2.0 * T
    )
    assert first == {"wang2025": 10**8, "wang2025-squared": 10**5}[name]


# --- under attack -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_regret_and_violation_are_below_the_bound_under_attack(name):
    """Regret, violation and squares over their bounds: none is above 1. (The bound on violation is then the trivial one.)"""
    worst: dict[str, float] = {}

    @settings(max_examples=25)
    @given(st.sampled_from(["ball", "box"]), st.integers(1, 30), st.integers(1, 3), st.integers(0, 10**6), st.integers(-6, 6))
    def attack(kind, d, k, seed, decade):
        at = stage(kind, d, k, 150, seed, G=10.0**decade)
        told = {"lipschitz": at.G} if name == "wang2025" else {"V": 10.0 / (at.G * at.domain.diameter())}
        for key, ratio in ratios(bridle.policy(name, at.domain, horizon=150, **told), at).items():
            worst[key] = max(worst.get(key, 0.0), ratio)

    attack()
    print(name, worst)
    assert max(worst.values()) < 1.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lam", [None, "large"])
def test_the_inequality_of_the_proof_holds_in_every_round(name, lam):
    """Whatever lam: V Regret + what violation has cost is at most the learner's regret, which is at most its bound."""
    largest = 0.0

    @settings(max_examples=12)
    @given(instances())
    def check(instance):
        nonlocal largest
        domain, point, G, rng = instance
        D, rounds = domain.diameter(), 60
        told = {"lipschitz": G} if name == "wang2025" else {}
        own = {} if lam is None else {"lam": 0.5} if name == "wang2025" else {"lam": 1.0 / D**2}
        policy = bridle.policy(name, domain, horizon=rounds, **told, **own)
        record, state, regret, size = policy.record, policy.init(domain.center()), 0.0, 0.0
        for s, (move, push) in enumerate(moves(rng, rounds), 1):
            x = record.decide(state)
            away = x - point
            a = away if push == "violate" and away.any() else rng.standard_normal(domain.dim)
            a = G * a / np.linalg.norm(a)
            cost = cost_at(move, x, point, G, s, rng)
            state = record.update(state, Round(cost, (AffineFunction(a, -float(a @ point)),)).reveal(x))
            regret += float(cost.value(x) - cost.value(point))
            size += G * (D + float(np.abs(x).sum()))
            proved = record.certified_regret(state)
            if proved is None:
                return
            inner, most = state.learner, record.learner.steadiness(D) * state.learner.N**0.75
            weight = record.V * record.beta if name == "wang2025" else float(state.V)
            if inner.N == 0.0 or weight == 0.0:
                continue
            blur = rounding(rounds, most / D * rounds**0.25 * (D + float(np.abs(x).sum())))
            assert regret <= proved + rounding(rounds, size) + blur / weight
            assert record.learner.certified(inner) <= most + blur
            largest = max(largest, float(record.learner.certified(inner)) / most)

    check()
    assert 0.05 < largest < 1.0


def test_an_adversary_that_evolves_in_one_dimension_stays_below_the_bound():
    """Costs and limits of either sign, changed where that raises regret or violation over the bound; with the bound not trivial."""
    T, D = 60, 2.0
    domain, point = bridle.Box([-1.0], [1.0]), np.array([0.3])
    policy = bridle.policy("wang2025-squared", domain, horizon=T, V=1.0)
    record, facts = policy.record, {**FACTS, "lipschitz": 1.0, "diameter": D, "feasible": point, "V": 1.0}

    def value(genes):
        state, regret, ccv, squares = record.init(domain.center()), 0.0, 0.0, 0.0
        for cost, wall in genes:
            x = record.decide(state)
            a = np.sign(wall) * np.ones(1)
            level = (a @ (x - point)) * min(abs(wall), 1.0)
            state = record.update(state, Feedback(x, float(cost * x[0]), np.array([cost]), np.array([level]), a[None]))
            regret, ccv, squares = regret + cost * float(x[0] - point[0]), ccv + max(level, 0.0), squares + max(level, 0.0) ** 2
        # R + theta/V >= regret, and the whole inequality: V Regret + (1 - theta) e^{lam Q} - 1 <= V R.
        C, lam = 6.5, record.weigher.potential.lam
        R, theta = C * float((np.abs(genes[:, 0]) ** (4 / 3)).sum() ** 0.75), C * C * sqrt(T) * lam
        return (regret + (1.0 - theta) * exp(lam * squares) - (1.0 - theta)) / (R + theta)

    best = 0.0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        genes = np.column_stack([rng.uniform(-1, 1, T), rng.uniform(-1, 1, T)])
        now = value(genes)
        for _ in range(100):
            child = np.clip(np.where(rng.random((T, 2)) < 0.1, rng.choice([-1.0, 1.0], (T, 2)), genes), -1.0, 1.0)
            if (found := value(child)) >= now:
                genes, now = child, found
        best = max(best, now)
    assert 0.03 < best < 1.0
    far = {**facts, "V": 1.0}
    longer = bridle.policy("wang2025-squared", domain, horizon=16 * T, V=1.0)
    assert longer.bound(far, 16 * T).regret == pytest.approx(6.5 * (16 * T) ** 0.75 + 0.5)


# --- the update -------------------------------------------------------------------------------------------------------------------------


def frank_wolfe(gradients, x1, x, D, corner):
    """x after one step, from all gradients so far; shares no code with the learner."""
    P = np.sum(gradients, axis=0)
    R = 0.75 / D * sum(float(np.sqrt(p @ p)) ** (4 / 3) for p in gradients) ** 0.75
    slope = P + 2.0 * R * (x - x1)
    ahead = corner(slope) - x
    gain = -float(slope @ ahead)
    return x if R == 0.0 or gain <= 0.0 else x + min(1.0, gain / (2.0 * R * float(ahead @ ahead))) * ahead


@pytest.mark.parametrize("name", NAMES)
def test_a_round_written_out_again(name):
    rng, T = np.random.default_rng(1), 50
    low, high = np.array([-1.0, 0.0, -2.0]), np.array([1.0, 0.5, 1.0])
    domain, D = bridle.Box(low, high), sqrt(4.0 + 0.25 + 9.0)
    told = {"lipschitz": 2.0} if name == "wang2025" else {}
    policy = bridle.policy(name, domain, horizon=T, lam=0.07, **told)
    state, x1 = policy.init(domain.center()), (low + high) / 2.0
    x, Q, V, seen = x1, 0.0, 0.0, []
    for _ in range(T):
        np.testing.assert_allclose(policy.decide(state), x, atol=1e-10)
        df, g, dg = rng.standard_normal(3), rng.standard_normal(2), rng.standard_normal((2, 3))
        state = policy.update(state, Feedback(x, 0.0, df, g, dg))
        if name == "wang2025":
            i, beta = int(np.argmax(g)), 4.0 / (13.0 * D * 2.0)
            Q += beta * max(g[i], 0.0)
            seen.append(beta * (df + (0.07 * exp(0.07 * Q) * dg[i] if g[i] > 0.0 else 0.0)))
        else:
            lengths = np.linalg.norm(dg, axis=1)
            i = int(np.argmax(g / lengths))
            dist = min(max(g[i] / lengths[i], 0.0), D)
            V, Q = V or 10.0 / (D * float(np.linalg.norm(df))), Q + dist**2
            seen.append(V * df + 2.0 * 0.07 * exp(0.07 * Q) * dist * dg[i] / lengths[i])
        x = frank_wolfe(seen, x1, x, D, lambda v: np.where(v > 0.0, low, high))
    assert Q > 1.0


def test_the_settings_of_both():
    ball = bridle.Ball(3, radius=2.0)
    record = bridle.policy("wang2025", ball, horizon=16, lipschitz=0.5).record
    assert (record.V, record.beta, record.potential.lam) == (1.0, pytest.approx(2.0 / 13.0), pytest.approx(0.9 / 8.0))
    record = bridle.policy("wang2025", ball, horizon=16, lipschitz=0.5, preset="practice").record
    assert record.V == record.potential.lam == pytest.approx(0.9 / 8.0)
    record = bridle.policy("wang2025-squared", ball, horizon=16).record
    assert record.weigher.potential.lam == pytest.approx(0.5 / (13.0**2 * 4.0))
    assert bridle.policy("wang2025-squared", ball, horizon=16, preset="practice").record.weigher.potential.lam == pytest.approx(1.0 / 64.0)
    for name, bad, message in (
        ("wang2025", {"preset": "tight"}, "unknown preset 'tight'"),
        ("wang2025", {"lam": -1.0}, "lam must be above 0, not -1.0"),
        ("wang2025-squared", {"V": 0.0}, "V must be above 0, not 0.0"),
        ("wang2025-squared", {"horizon": 0}, "horizon must be above 0, not 0"),
        ("wang2025-squared", {"constraints": 0}, "constraints must be 1 or above, not 0"),
    ):
        with pytest.raises(bridle.InputError) as refused:
            bridle.policy(name, ball, **{"horizon": 16, **({"lipschitz": 1.0} if name == "wang2025" else {}), **bad})
        assert message in str(refused.value)


def test_what_the_squared_form_certifies():
    domain = bridle.Ball(2)
    policy = bridle.policy("wang2025-squared", domain, horizon=100, V=0.5, lam=0.002)
    record, state = policy.record, policy.init(domain.center())
    for s in range(4):
        x = record.decide(state)
        state = record.update(state, Feedback(x, 0.0, np.array([1.0, s - 1.0]), np.array([0.5]), np.array([[0.0, 2.0]])))
    Q, C = 4 * 0.25**2, 6.5
    assert pytest.approx(Q) == state.limits.Q
    proved = (record.learner.certified(state.learner) - 2.0 * np.expm1(0.002 * Q)) / 0.5
    assert record.certified_regret(state) == pytest.approx(proved)
    theta = C * C * 2.0 * 0.002
    most = log((1.0 + 0.5 * (C * 4**0.25 * sqrt(7.0) + 11.0)) / (1.0 - theta)) / 0.002
    assert record.certified_squares(state, 7.0, 11.0) == pytest.approx(most)
    assert bridle.policy("wang2025-squared", domain, horizon=100, lam=1.0).record.certified_squares(state, 7.0, 11.0) is None
    assert bridle.policy("wang2025-squared", domain, horizon=100, diameter=1.0).record.certified_squares(state, 7.0, 11.0) is None
    assert record.alarm(state) is None
    missed = record.update(state, Feedback(x, 0.0, np.zeros(2), np.array([9.0]), np.array([[0.0, 2.0]])))
    assert "no action of the domain satisfies the constraint of round 5" in record.alarm(missed).text
    huge = record.update(state._replace(limits=state.limits._replace(Q=1e6)), Feedback(x, 0.0, np.ones(2), np.ones(1), np.ones((1, 2))))
    assert record.certified_regret(huge) is None
    assert np.isfinite(record.decide(huge)).all()


def test_the_squared_form_proves_nothing_from_theta_1_on():
    """theta = C^2 sqrt(t) lam, with C = 6.5 and t = 4: lam = 1/84.5 makes it 1. Certificates and bounds are for less, in every run."""
    domain = bridle.Ball(2)
    facts = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2), "V": 5.0}
    for theta, proved in ((0.6, True), (0.99, True), (1.0, False), (1.5, False)):
        policy = bridle.policy("wang2025-squared", domain, horizon=4, V=0.5, lam=theta / 84.5)
        state = policy.init(domain.center())
        state = state._replace(limits=state.limits._replace(rounds=4.0))
        assert (policy.record.certified_squares(state, 7.0, 11.0) is not None) == proved
        assert (policy.bound(facts, 4).why == "") == proved
    swept = bridle.policy("wang2025-squared", domain, horizon=4, lam=[0.6 / 84.5, 1.5 / 84.5])
    assert "C^2 sqrt(t) lam = 1.5 must be below 1" in squared_free_bound(swept, facts, 4).why
    narrow = bridle.policy("wang2025-squared", domain, horizon=4, diameter=[1.9, 3.0])
    assert "more than the policy was told" in squared_free_bound(narrow, facts, 4).why


def test_the_squared_bound_where_the_cost_weighs_next_to_nothing():
    """ln((1 + V (R + G D t)) / (1 - theta)) / lam with V (R + G D t) below 1; and a certificate with lam Q = 1, and with units."""
    T, lam, V = 10**6, 0.5 / (6.5**2 * 1e3), 1e-7
    policy = bridle.policy("wang2025-squared", bridle.Ball(2), horizon=T, V=V)
    found = policy.bound({"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2)}, T)
    assert found.squared == pytest.approx(log((1.0 + V * (6.5 * T**0.75 + 2.0 * T)) / 0.5) / lam, rel=1e-12)
    record, state = policy.record, policy.init(np.zeros(2))
    late = state._replace(limits=state.limits._replace(Q=1.0 / lam))
    assert record.certified_regret(late) == pytest.approx((float(record.learner.certified(state.learner)) - 2.0 * (e - 1.0)) / V, rel=1e-9)
    assert record.certified_regret(late._replace(limits=late.limits._replace(units=1.0))) is None


# --- engines and domains ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.compiles
@pytest.mark.parametrize(("name", "kind"), [("wang2025", "simplex"), ("wang2025-squared", "box")])
def test_the_engines_agree(name, kind):
    """On the ball every engine is tried by `check_policy`."""
    problem = bridle.problem("halfspaces", horizon=600, dim=4, domain=kind, seed=3)
    agree(bridle.policy_for(name, problem, preset="practice"), problem, 600, 1e-9)


def test_a_route_under_a_limit_is_found_without_projections():
    """Costs on every edge, and a limit on the traffic of one that only shows once it is broken."""
    edges = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")]
    domain, T, rng = bridle.Paths(edges, "s", "t"), 300, np.random.default_rng(5)
    mean, wall = np.array([0.1, 0.6, 0.1, 0.7, 0.1]), np.array([0.0, 0.0, 1.0, 0.0, 0.0])  # the cheapest path is s a b t; at most 0.4 of it
    session = bridle.Session(bridle.policy("wang2025-squared", domain, horizon=T, preset="practice", V=0.01))
    costs = mean + 0.05 * rng.standard_normal((T, 5))
    violation, paid = 0.0, 0.0
    for c in costs:
        x = session.decide()
        assert domain.contains(x)
        g = float(wall @ x) - 0.4
        violation, paid = violation + max(g, 0.0), paid + float(c @ x)
        session.observe(f=float(c @ x), df=c, g=g, dg=wall)
    assert session.ccv == pytest.approx(violation)
    best = 0.4 * costs.sum(axis=0) @ np.array([1, 0, 1, 0, 1.0]) + 0.6 * costs.sum(axis=0) @ np.array([0, 1, 0, 0, 1.0])
    assert paid - best <= 0.1 * T * 0.5
    assert violation < 0.15 * T
    assert session.certificate().regret >= paid - best - 1e-6
