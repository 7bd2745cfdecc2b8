"""The paper's proofs line by line: each displayed inequality along trajectories that try to break it, and where it is tight."""

from __future__ import annotations

from itertools import pairwise
from math import e, log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import records
from bridle.core import Feedback, Round
from bridle.domains.closed_form import BallSet
from bridle.functions import AffineFunction, AffineRows, MaximumOf, RoundQuadratic
from bridle.policies._sinha2024_ocs import theorem4
from bridle.problems.recorded import Recorded
from helpers.extent import examples
from helpers.instances import constraint_at, cost_at, instances, moves, rounding

T = 60


def revealed(cost: Any, constraints: Any, x: np.ndarray) -> Feedback:
    return Round(cost, tuple(constraints)).reveal(x)


# --- Theorem 1 ------------------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(40, 300))
@given(instances())
def test_every_line_of_the_proof_of_theorem_1_holds(instance):
    """In the paper's own units: costs and constraints times beta = 1/(2GD), V = 1, lam = 1/(2 sqrt(T))."""
    domain, feasible, G, rng = instance
    D, lam, beta = domain.diameter(), 0.5 / sqrt(T), 0.5 / (G * domain.diameter())
    policy = bridle.policy("sinha2024", domain, horizon=T, lipschitz=G, preset="theory").record
    state, regret, slopes, size = policy.init(domain.center()), 0.0, 0.0, 1.0
    for t, (cost_move, constraint_move) in enumerate(moves(rng, T), 1):
        x = policy.decide(state)
        cost, constraint = cost_at(cost_move, x, feasible, G, t, rng), constraint_at(constraint_move, x, feasible, G, D, t, rng)
        seen = revealed(cost, [constraint], x)
        state = policy.update(state, seen)
        Q = float(state.Q)
        slope = lam * np.exp(lam * Q)
        surrogate = beta * (seen.df + slope * (seen.g[0] > 0.0) * seen.dg[0])
        assert np.linalg.norm(surrogate) <= beta * G * (1.0 + slope) * (1.0 + 1e-12), "the bound on the surrogate's gradient"
        regret += beta * float(seen.f - cost.value(feasible))
        slopes += slope**2
        size += beta * float(abs(seen.f) + abs(cost.value(feasible)))
        slack = rounding(t, size, np.exp(lam * Q), beta * G * float(np.abs(feasible).sum()) * t)
        sharper, simpler = sqrt(slopes) + sqrt(t), slope * sqrt(t) + sqrt(t)
        assert np.exp(lam * Q) - 1.0 + regret <= sharper + slack, "the decomposition with AdaGrad's regret"
        assert sharper <= simpler * (1.0 + 1e-12), "the same with the last slope for all"
        assert regret <= sqrt(t) + 1.0 + np.exp(lam * Q) * (lam * sqrt(t) - 1.0) + slack
        assert regret <= sqrt(t) + 1.0 + slack
        assert log((1.0 + 2.0 * t) / (1.0 - lam * sqrt(t))) / lam + slack >= Q, "the CCV in these units"


def test_the_lines_of_theorem_1_are_attained_where_cost_and_limit_pull_together():
    """The gradient's bound is an equality where both pull one way; the drift nearly one where a step of Q is short."""
    G, domain = 3.0, bridle.Box([0.0], [2.0])
    policy = bridle.policy("sinha2024", domain, horizon=T, lipschitz=G, preset="theory").record
    x = np.array([2.0])
    seen = Feedback(x, 0.0, np.array([G]), np.array([1e-3]), np.array([[G]]))
    state = policy.init(x)
    before, state = state, policy.update(state, seen)
    phi, beta = policy.potential, 0.5 / (G * 2.0)
    longest = beta * G * (1.0 + phi.slope(state.Q))
    assert np.sqrt(state.learner.seen) == pytest.approx(longest, rel=1e-12)
    drift = float(phi.value(state.Q) - phi.value(before.Q))
    allowed = float(phi.slope(state.Q)) * beta * 1e-3
    assert 1.0 - 1e-4 < drift / allowed <= 1.0


@pytest.mark.parametrize("potential", ["exponential", "quadratic", "power"])
def test_the_drift_of_a_potential_is_at_most_its_last_slope_times_the_step(potential):
    """And at least its first slope times it, which a concave potential would turn around."""
    phi = bridle.policy("sinha2024", bridle.Ball(2), horizon=T, lipschitz=1.0, potential=potential).record.potential
    rng = np.random.default_rng(0)
    for low, step in zip(rng.uniform(0.0, 40.0, 200), rng.exponential(1.0, 200), strict=True):
        drift = float(phi.value(low + step) - phi.value(low))
        slack = rounding(4, float(phi.value(low + step)) + 1.0)
        assert float(phi.slope(low)) * step - slack <= drift <= float(phi.slope(low + step)) * step + slack
    assert float(phi.value(0.0)) == 0.0


# --- Theorem 2 ------------------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(40, 300))
@given(instances(), st.floats(-2.0, 2.0))
def test_every_line_of_the_proof_of_theorem_2_holds(instance, log_ratio):
    """With V = 8 G^2 ln(Te) / alpha and Phi(x) = x^2, up to the regret of the surrogates and the bound on Q."""
    domain, feasible, _, rng = instance
    D, alpha = domain.diameter(), 10.0**log_ratio
    G = alpha * D
    policy = bridle.policy("sinha2024-strong", domain, horizon=T, lipschitz=G, modulus=alpha).record
    V = 8.0 * G * G * log(T * e) / alpha
    assert float(policy.V) * float(policy.beta) == pytest.approx(V, rel=1e-12)
    state, regret, surrogates, weights, size = policy.init(domain.center()), 0.0, 0.0, 0.0, 0.0
    for t, (_, constraint_move) in enumerate(moves(rng, T), 1):
        x = policy.decide(state)
        target = domain.project(x + D * rng.standard_normal(len(x)))
        cost, constraint = RoundQuadratic(alpha, target, 0.0 * x, 0.0), constraint_at(constraint_move, x, feasible, G, D, t, rng)
        seen = revealed(cost, [constraint], x)
        state = policy.update(state, seen)
        Q, lost = float(state.Q), float(seen.f - cost.value(feasible))
        regret += lost
        violated = float(max(0.0, seen.g[0]) - max(0.0, float(constraint.value(feasible))))
        surrogates += V * lost + 2.0 * Q * violated
        weights += (2.0 * Q) ** 2 / t
        size += V * float(abs(seen.f) + abs(cost.value(feasible))) + 2.0 * Q * G * (D + float(np.abs(feasible).sum()))
        slack, grown = rounding(t, size, Q * Q), 1.0 + log(t)
        first = V * G * G / alpha * grown
        assert surrogates <= first + G * G / (alpha * V) * weights + slack, "the regret of the surrogates"
        assert Q * Q + V * regret <= first + G * G / (alpha * V) * grown * (2.0 * Q) ** 2 + slack
        assert Q * Q + V * regret <= first + 4.0 * G * G * Q * Q * log(T * e) / (alpha * V) + slack
        assert Q * Q + 2.0 * V * regret <= 2.0 * first + 2.0 * slack
        assert regret >= -G * D * t - slack / V
        assert 4.0 * G * sqrt(G * D / alpha * t * log(T * e)) + 4.0 * G * G * log(T * e) / alpha >= Q - sqrt(slack)
        assert regret <= G * G / alpha * grown + slack / V
        if regret >= 0.0:
            assert sqrt(2.0 * first) + sqrt(slack) >= Q


def test_the_regret_that_theorem_2_rests_on_is_attained_on_quadratics():
    """Steps of 1/(alpha t) on (alpha/2)(x - z_t)^2 follow the leader: half the sum of |grad|^2 / (alpha t) is the regret itself."""
    alpha = 1.7
    learner = bridle.learners.StronglyConvexOGD(bridle.Box([-1.0], [1.0]), modulus=alpha)
    targets = np.random.default_rng(1).uniform(-1.0, 1.0, 400)
    state, paid_for, squares = learner.init(np.array([1.0])), 0.0, 0.0
    for t, target in enumerate(targets, 1):
        x = learner.decide(state)
        grad = alpha * (x - target)
        paid_for += 0.5 * alpha * float((x[0] - target) ** 2)
        squares += float(grad @ grad) / (alpha * t)
        state = learner.step(state, grad)
    best = 0.5 * alpha * float(np.var(targets)) * len(targets)
    assert paid_for - best == pytest.approx(0.5 * squares, rel=1e-9)


# --- Algorithm 2 ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=examples(40, 300))
@given(instances(), st.integers(1, 3), st.integers(1, 12))
def test_every_line_of_the_proof_of_theorem_4_holds(instance, k, S):
    """On S-feasible streams whose slopes turn against every decision: the decomposition, its blocks, and what they sum to."""
    domain, benchmark, G, rng = instance
    D = domain.diameter()
    F = 2.0 * G * D
    cycle = rng.uniform(-1.0, 1.0, (S, k))
    cycle -= np.maximum(cycle.sum(axis=0) / S, 0.0)  # any S rounds in a row have each of these values once
    cycle *= G * D / max(1.0, float(np.abs(cycle).max()))
    policy = bridle.policy("sinha2024-ocs", domain, constraints=k).record
    state, surrogates = policy.init(domain.center()), 0.0
    queues, at_benchmark, before = [], [], np.zeros(k)
    for t in range(1, T + 1):
        x = policy.decide(state)
        away = x - benchmark
        length = float(np.linalg.norm(away))
        turned = away / length if length > 0.0 and rng.random() < 0.7 else rng.standard_normal(len(x)) / sqrt(len(x))
        turned /= max(1.0, float(np.linalg.norm(turned)))
        A = G * np.stack([turned * sign for sign in rng.choice([1.0, 0.5, -1.0], k, p=[0.6, 0.2, 0.2])])
        rows = AffineRows(A, cycle[t % S] - A @ benchmark)
        seen = revealed(AffineFunction(0.0 * x, 0.0), [rows], x)
        assert np.abs(seen.g).max() <= F
        state = policy.update(state, seen)
        Q = np.array(state.Q)
        slack = rounding(t, F * F * t * t * k, F * float(Q.sum()) * t, G * float(np.abs(benchmark).sum()) * float(Q.sum()) * t)
        np.testing.assert_allclose(Q, np.maximum(before + seen.g, 0.0), rtol=0.0, atol=1e-12 * F)
        each = Q * Q - 0.5 * Q * Q - 0.5 * before * before
        assert (each <= Q * seen.g + slack).all(), "AM-GM, constraint by constraint"
        assert float(Q @ Q - before @ before) <= 2.0 * float(Q @ seen.g) + slack
        here = np.asarray(rows.value(benchmark))
        surrogates += 2.0 * float(Q @ (seen.g - here))
        queues.append(Q)
        at_benchmark.append(here)
        queue, values = np.array(queues), np.array(at_benchmark)
        weighted = (queue * values).sum(axis=0)
        assert float(Q @ Q) <= surrogates + 2.0 * float(weighted.sum()) + slack, "the decomposition"
        blocks = np.arange(t) // S
        starts = queue[blocks * S]
        split = ((queue - starts) * values).sum(axis=0) + (starts * values).sum(axis=0)
        np.testing.assert_allclose(split, weighted, rtol=0.0, atol=slack)
        assert np.abs(queue - starts).max() <= F * (S - 1) + slack
        assert (weighted <= (1.0 + t / S) * F * F * S * (S - 1) + F * (S - 1) * (Q + F * (S - 1)) + slack).all()
        generalized = surrogates + 2.0 * k * F * F * S * t + 2.0 * F * S * float(Q.sum()) + 4.0 * F * F * S * S * k
        assert float(Q @ Q) <= generalized + slack
        before = Q
    assert float(np.max(queues)) <= theorem4(G, D, F, k, S, T) * (1.0 + 1e-9)


def test_am_gm_of_the_queues_is_attained_where_they_stand_still():
    policy = bridle.policy("sinha2024-ocs", bridle.Ball(2), constraints=1).record
    state = policy.init(np.zeros(2))
    for value in (1.0, 0.0):
        before, state = state, policy.update(state, Feedback(np.zeros(2), 0.0, np.zeros(2), np.array([value]), np.array([[1.0, 0.0]])))
    assert float(state.Q[0]) == float(before.Q[0]) == 1.0
    assert float(state.Q[0] ** 2 - before.Q[0] ** 2) == 2.0 * float(state.Q[0]) * 0.0


def test_the_maximum_of_s_feasible_constraints_need_not_be_s_feasible():
    """Two limits that take turns: over any two rounds each sums to 0 at every action, and their maximum is 1 in every round."""
    values = np.array([[1.0, -1.0], [-1.0, 1.0]] * 20)
    still = AffineFunction(np.zeros((40, 2)), np.zeros(40))
    apart = AffineRows(np.zeros((40, 2, 2)), values)
    whole = AffineFunction(np.zeros((40, 2)), values.max(axis=1))
    windows = []
    for limits in (apart, whole):
        problem = bridle.Problem(bridle.Ball(2), Recorded(Round(still, (limits,))), {"lipschitz": 1.0, "bound": 1.0})
        policy = bridle.policy("sinha2024-ocs", problem.domain, constraints=2 if limits is apart else 1)
        trace = bridle.play(policy, problem, horizon=40)
        windows.append(bridle.smallest_window(trace, [0.0, 0.0]))
    assert windows == [2, None]


@settings(max_examples=examples(20, 60))
@given(instances(), st.integers(2, 5))
def test_the_maximum_of_constraints_keeps_the_assumptions_of_algorithm_1(instance, k):
    """Convex, G-Lipschitz, satisfied where all are; and it counts no more than the sum of the violations and no less than any."""
    domain, feasible, G, rng = instance
    D = domain.diameter()
    parts = [constraint_at("random", domain.center(), feasible, G, D, 1, rng) for _ in range(k)]
    largest = MaximumOf(tuple(parts))
    points = domain.project(domain.center() + D * rng.standard_normal((12, domain.dim)))
    slack = rounding(4, G * D, G * float(np.abs(points).sum()))
    assert float(largest.value(feasible)) <= slack
    for x, y in pairwise(points):
        fx, fy = float(largest.value(x)), float(largest.value(y))
        assert abs(fx - fy) <= G * float(np.linalg.norm(x - y)) * (1.0 + 1e-12) + slack
        assert float(largest.value(0.5 * (x + y))) <= 0.5 * (fx + fy) + slack
        each = [float(part.value(x)) for part in parts]
        assert fx == pytest.approx(max(each), abs=slack)
        assert max(max(0.0, value) for value in each) - slack <= max(0.0, fx) <= sum(max(0.0, value) for value in each) + slack


# --- convex adversaries ---------------------------------------------------------------------------------------------------------------


def paid(problem: bridle.Problem, actions: np.ndarray) -> tuple[float, float]:
    """What the actions cost against the adversary's answers, and what their average would have cost against the same answers."""
    adversary, state, average, costs = problem.adversary, problem.adversary.init(), actions.mean(axis=0), []
    for x in actions:
        state, chosen = adversary.answer(state, x)
        costs.append((float(chosen.cost.value(x)), float(chosen.cost.value(average))))
    return tuple(np.sum(costs, axis=0).tolist())


@pytest.mark.parametrize("domain", ["ball", "box", "simplex"])
@pytest.mark.parametrize("modulus", [0.0, 0.5])
@pytest.mark.parametrize("name", ["fixed", "minimax"])
def test_fixed_and_minimax_adversaries_are_convex(name, modulus, domain):
    """No sequence of actions costs less than its average would have: random ones, corners in turn, and those of a policy."""
    rng = np.random.default_rng(4)
    for seed in range(4):
        problem = bridle.problem(name, horizon=T, seed=seed, dim=3, modulus=modulus, domain=domain)
        place = problem.domain
        corners = place.linear_argmin(rng.standard_normal((T, 3)))
        inner = place.project(place.center() + rng.standard_normal((T, 3)))
        trace = bridle.play(bridle.policy_for("ogd", problem), problem, keep="decisions")
        for actions in (corners, inner, np.asarray(trace.decisions), corners[np.arange(T) % 2]):
            all_of_them, average = paid(problem, actions)
            assert all_of_them >= average - 1e-10
        still = np.repeat(inner[:1], T, axis=0)
        assert paid(problem, still)[0] == pytest.approx(paid(problem, still)[1], abs=1e-12)  # an equality: who stands still


def test_an_adversary_that_looks_the_other_way_is_not_convex():
    """The best of the family at the decision, where the minimax adversary takes the worst: its regret is negative."""
    family = np.array([[1.0, 0.0], [-1.0, 0.0]])
    actions = np.array([[1.0, 0.0], [-1.0, 0.0]] * 10)
    costs = np.array([family[np.argmin(family @ x)] for x in actions])
    all_of_them, average = float(np.sum(costs * actions)), float(np.sum(costs @ actions.mean(axis=0)))
    assert all_of_them == -20.0 < average == 0.0


# --- chasing nested bodies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slater", [0.0, 0.05])
def test_nested_bodies_shrink_around_an_action_that_is_never_cut_off(slater):
    """The edge of round t lies at 1/sqrt(t) of the first one's distance beyond the margin; of the domain less and less is left."""
    problem = bridle.problem("nested-bodies", horizon=T, seed=2, dim=2, slater=slater)
    trace = bridle.play(bridle.policy_for("ogd", problem), problem)
    cuts = records.join(list(trace.blocks())).constraints[0]
    kept = problem.constants["feasible"]
    away = -(cuts.a @ kept + cuts.b)
    np.testing.assert_allclose(away, slater + (away[0] - slater) / np.sqrt(np.arange(1.0, T + 1)), rtol=1e-9)
    points = np.random.default_rng(0).uniform(problem.domain.low, problem.domain.high, (4000, 2))
    left = np.logical_and.accumulate(points @ cuts.a.T + cuts.b <= 0.0, axis=1).sum(axis=0)
    assert left[0] > 2.0 * left[T // 2] > 0.0
    assert left[T // 2] > left[-1]


@pytest.mark.parametrize("policy", ["steiner", "vaze2025"])
@pytest.mark.parametrize("d", [1, 2])
def test_a_chaser_of_nested_bodies_violates_at_most_what_it_moves(policy, d):
    """Who stands in the body of the rounds before is outside the new halfspace by at most the way to the next decision, G times."""
    for seed in range(3):
        problem = bridle.problem("nested-bodies", horizon=50, seed=seed, dim=d, domain="box")
        trace = bridle.play(bridle.policy_for(policy, problem), problem, horizon=50, keep="decisions")
        last = float(np.max(np.maximum(np.asarray(trace.values)[-1], 0.0)))  # the way after the last round is not played
        assert bridle.ccv(trace) <= problem.constants["lipschitz"] * bridle.movement(trace) + last + 1e-6  # projections are so exact


def test_the_movement_of_a_chaser_is_attained_on_a_line():
    """An interval that is cut at ever smaller points, and a chaser that goes no farther than it must: violation is movement."""
    T, d = 30, 1
    levels = np.linspace(0.9, 0.0, T)
    rounds = Round(AffineFunction(np.zeros((T, d)), np.zeros(T)), (AffineFunction(np.ones((T, d)), -levels),))
    problem = bridle.Problem(bridle.Box([-1.0], [1.0]), Recorded(rounds), {"lipschitz": 1.0})
    trace = bridle.play(bridle.policy_for("vaze2025", problem), problem, horizon=T, x1=[1.0], keep="decisions")
    decisions = np.asarray(trace.decisions)[:, 0]
    moved = float(np.abs(np.diff(decisions)).sum()) + float(decisions[-1] - levels[-1])
    assert bridle.ccv(trace) == pytest.approx(moved, rel=1e-6)
    assert bridle.ccv(trace) == pytest.approx(1.0, rel=1e-6)


# --- what a round costs ---------------------------------------------------------------------------------------------------------------


def test_algorithm_1_projects_once_a_round_and_sees_each_gradient_once(monkeypatch):
    """On the page: one Euclidean projection and two gradients a round. Guo's policy solves a program, which projects many times."""
    counts = {"project": 0}
    project = BallSet.project

    def counted(self: BallSet, x: Any) -> Any:
        counts["project"] += 1
        return project(self, x)

    monkeypatch.setattr(BallSet, "project", counted)
    problem = bridle.problem("halfspaces", horizon=100, dim=4)
    record = bridle.policy_for("sinha2024", problem).record
    state = record.init(problem.domain.center())
    blank = counts["project"]
    rounds = records.unstack(next(iter(bridle.play(record, problem).blocks())), 100)
    counts["project"] = blank
    for each in rounds:
        state = record.update(state, each.reveal(record.decide(state)))
    assert counts["project"] - blank == 100


def test_slaters_constant_and_constraints_that_are_never_negative():
    """Bounds with a Slater point grow without end as it vanishes; of clipped constraints there is none. Theorem 1 needs none."""
    domain, known = bridle.Ball(2), {"lipschitz": 1.0, "diameter": 2.0, "bound": 2.0, "constraints": 1, "feasible": np.zeros(2)}
    T = 10**14
    neely = bridle.policy("neely2017", domain, horizon=T, lipschitz=1.0, bound=2.0)
    soft = [neely.bound(known | {"slater": slater}, T).soft for slater in (1e-1, 1e-2, 1e-3)]
    assert soft[1] > 8.0 * soft[0]
    assert soft[2] > 8.0 * soft[1]
    algorithm_1 = bridle.policy("sinha2024", domain, horizon=T, lipschitz=1.0)
    told, untold = (algorithm_1.bound(known | extra, T) for extra in ({"slater": 0.1}, {}))
    assert told == untold
    rng = np.random.default_rng(0)
    a = rng.standard_normal((50, 2))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    state = algorithm_1.record.init(np.array([1.0, 0.0]))
    for row in a:  # max(0, <a, x>): the same violation and the same steps as from <a, x>, which has a Slater point or not
        x = algorithm_1.record.decide(state)
        plain, clipped = AffineFunction(row, 0.0), MaximumOf((AffineFunction(row, 0.0), AffineFunction(0.0 * row, 0.0)))
        one, two = (algorithm_1.record.update(state, revealed(AffineFunction(-row, 0.0), [g], x)) for g in (plain, clipped))
        np.testing.assert_array_equal(one.learner.x, two.learner.x)
        state = one
