"""The inequalities behind the theorems, along every trajectory hypothesis can find: no tolerance beyond rounding."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.core import Feedback, Round
from bridle.functions import RoundQuadratic
from bridle.learners.potentials import ExponentialPotential
from helpers.extent import examples
from helpers.instances import constraint_at, cost_at, instances, moves, rounding


def revealed(cost, constraints, x) -> Feedback:
    return Round(cost, tuple(constraints)).reveal(x)


@pytest.mark.slow
@settings(max_examples=examples(20, 200))
@given(
    instances(), st.sampled_from(["theory", "tight", "practice"]), st.sampled_from(["exponential", "quadratic", "power"]), st.integers(1, 3)
)
def test_convex_drift_decomposition_and_m1(instance, preset, potential, k):
    """Each round: the drift inequality and the regret decomposition. After each round: (M1) Phi(Q) + V beta Regret <= sqrt(2) D sqrt(S)."""
    domain, feasible, G, rng = instance
    T, D = 60, domain.diameter()
    policy = bridle.policy("sinha2024", domain, horizon=T, lipschitz=G, preset=preset, potential=potential).record
    phi, V, beta = policy.potential, policy.V, policy.beta
    state = policy.init(domain.center())
    regret, S, size = 0.0, 0.0, 0.0
    for t, (cost_move, constraint_move) in enumerate(moves(rng, T), 1):
        x = policy.decide(state)
        assert domain.contains(x)
        cost = cost_at(cost_move, x, feasible, G, t, rng)
        constraints = [constraint_at(constraint_move, x, feasible, G, D, t, rng) for _ in range(k)]
        feedback = revealed(cost, constraints, x)
        worst = int(np.argmax(feedback.g))
        before, state = state, policy.update(state, feedback)
        g = max(0.0, float(feedback.g[worst]))
        drift, pressure = phi.value(state.Q) - phi.value(before.Q), phi.slope(state.Q) * beta * g
        assert drift <= pressure + rounding(1, phi.value(state.Q) + 1.0, phi.value(before.Q), pressure)
        at_x, at_feasible = float(cost.value(x)), float(cost.value(feasible))
        g_feasible = max(0.0, float(constraints[worst].value(feasible)))
        slack = rounding(
            4,
            phi.value(state.Q) + 1.0,
            V * beta * at_x,
            V * beta * at_feasible,
            pressure,
            phi.slope(state.Q) * beta * G * np.abs(feasible).sum(),
        )
        surrogate_gap = V * beta * (at_x - at_feasible) + phi.slope(state.Q) * beta * (g - g_feasible)
        assert drift + V * beta * (at_x - at_feasible) <= surrogate_gap + slack
        p = V * beta * feedback.df + phi.slope(state.Q) * beta * (feedback.g[worst] > 0) * feedback.dg[worst]
        S += float(p @ p)
        regret += at_x - at_feasible
        size += V * beta * (abs(at_x) + abs(at_feasible))
        left, right = phi.value(state.Q) + V * beta * regret, sqrt(2.0) * D * sqrt(S)
        assert left <= right + rounding(t, right, size, phi.value(state.Q) + 1.0) + phi.slope(state.Q) * beta * t * rounding(
            1, G * np.abs(feasible).sum()
        )
        if isinstance(phi, ExponentialPotential):  # the learner's own accumulator is this S, as long as no unit of exponent was split off
            assert state.learner.seen == pytest.approx(S, rel=1e-12)


def strong_costs(x, feasible, alpha, domain, move, rng):
    if move == "regret":
        target = feasible
    elif move == "violate":
        target = domain.project(x + (x - feasible) + 1e-3 * domain.diameter() * rng.standard_normal(len(x)))
    else:
        target = domain.project(domain.center() + domain.diameter() * rng.standard_normal(len(x)))
    return RoundQuadratic(alpha, target, np.zeros(len(x)), 0.0)


@pytest.mark.slow
@settings(max_examples=examples(20, 150))
@given(instances(), st.floats(-2.0, 2.0), st.booleans())
def test_strong_m3(instance, log_ratio, own_moduli):
    """(M3): Q^2 + V beta Regret <= half the sum of |p_s|^2 / (H_1 + ... + H_s), also with moduli that differ between rounds."""
    domain, feasible, _, rng = instance
    T, D = 60, domain.diameter()
    alpha = 10.0**log_ratio
    G = 4.0 * alpha * D  # moduli go up to 4 alpha below
    policy = bridle.policy("sinha2024-strong", domain, horizon=T, lipschitz=G, modulus=alpha).record
    V, beta = policy.V, policy.beta
    state = policy.init(domain.center())
    regret, right, H, size = 0.0, 0.0, 0.0, 0.0
    for t, (cost_move, constraint_move) in enumerate(moves(rng, T), 1):
        x = policy.decide(state)
        own = alpha * rng.uniform(1.0, 4.0) if own_moduli else alpha
        cost = strong_costs(x, feasible, own, domain, cost_move, rng)
        constraint = constraint_at(constraint_move, x, feasible, G, D, t, rng)
        feedback = revealed(cost, [constraint], x)._replace(modulus=own if own_moduli else None)
        state = policy.update(state, feedback)
        p = V * beta * feedback.df + 2.0 * state.Q * beta * (feedback.g[0] > 0) * feedback.dg[0]
        H += V * beta * own
        right += 0.5 * float(p @ p) / H
        at_x, at_feasible = float(cost.value(x)), float(cost.value(feasible))
        regret += at_x - at_feasible
        size += V * beta * (abs(at_x) + abs(at_feasible))
        noise = 2.0 * state.Q * beta * t * rounding(1, G * np.abs(feasible).sum(), G * D)
        assert state.Q**2 + V * beta * regret <= right + rounding(t, right, size, state.Q**2) + noise
        assert state.learner.seen == pytest.approx(H, rel=1e-12)


@pytest.mark.slow
@settings(max_examples=examples(20, 150))
@given(instances(), st.integers(1, 4), st.booleans())
def test_ocs_m4_and_queue_identity(instance, k, feasible_stream):
    """(M4): sum_i Q_i^2 <= sqrt(2) D sqrt(A) + 2 sum_i P_i(x) U_i for every action x; and max_t Q_i(t) is the interval violation."""
    domain, point, G, rng = instance
    T, D = 60, domain.diameter()
    policy = bridle.policy("sinha2024-ocs", domain, constraints=k).record
    state = policy.init(domain.center())
    A, climb, size = 0.0, np.zeros(k), 0.0
    comparators = [point, domain.center(), domain.project(domain.center() + D * rng.standard_normal(domain.dim))]
    P, ending = np.zeros((3, k)), np.zeros((3, k))
    values, top = [], np.zeros(k)
    for t, (_, move) in enumerate(moves(rng, T), 1):
        x = policy.decide(state)
        constraints = [constraint_at(move, x, point, G, D, t, rng) for _ in range(k)]
        if not feasible_stream:
            constraints = [c._replace(b=c.b + rng.normal(0.0, 0.3 * G * D)) for c in constraints]
        feedback = revealed(RoundQuadratic(0.0, x, 0.0 * x, 0.0), constraints, x)
        before, state = state, policy.update(state, feedback)
        values.append(feedback.g)
        top = np.maximum(top, state.Q)
        p = 2.0 * sum(q * row for q, row in zip(state.Q, feedback.dg, strict=True))
        A += float(p @ p)
        climb += np.maximum(state.Q - before.Q, 0.0)
        for j, y in enumerate(comparators):
            at_y = np.array([float(c.value(y)) for c in constraints])
            ending[j] = np.maximum(ending[j] + at_y, 0.0)
            P[j] = np.maximum(P[j], ending[j])
            right = sqrt(2.0) * D * sqrt(A) + 2.0 * float(P[j] @ climb)
            size += float(state.Q @ (np.abs(at_y) + np.abs(feedback.g))) + float(state.Q.sum()) * G * (np.abs(y).sum() + np.abs(x).sum())
            assert float(state.Q @ state.Q) <= right + rounding(t, right, size)
        drift = float(state.Q @ state.Q - before.Q @ before.Q)
        assert drift <= 2.0 * float(state.Q @ feedback.g) + rounding(4, float(state.Q @ state.Q), float(state.Q @ np.abs(feedback.g)))
    sums = np.concatenate([np.zeros((1, k)), np.cumsum(values, axis=0)])
    brute = max(0.0, max(float((sums[j] - sums[i]).max()) for i in range(T) for j in range(i + 1, T + 1)))
    assert top.max() == pytest.approx(brute, rel=1e-9, abs=1e-12 * G * D * T)
