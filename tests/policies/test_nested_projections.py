"""Nested projections: what was revealed stays satisfied, the oracle of the proof in every round, and pruning that changes nothing."""

from __future__ import annotations

import warnings
from math import sqrt

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import bridle
from bridle.adversaries import Fixed
from bridle.core import Feedback, InputError, Round
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.game.summary import summary
from bridle.solvers import nearest_point
from helpers.adversarial_games import ratios, stage
from helpers.cvxpy_reference import KINDS, inside, place, solved
from helpers.extent import examples
from helpers.instances import constraint_at, cost_at, instances, make_domain, moves, rounding


def rows_of(rng, domain, count, spare):
    """Rows <a, x - middle> <= b that one point of the domain satisfies by `spare` at least."""
    point = domain.center() + rng.uniform(0.0, 0.9) * (
        domain.project(domain.center() + domain.diameter() * rng.standard_normal(domain.dim)) - domain.center()
    )
    A = rng.standard_normal((count, domain.dim))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    middle = nearest_point.projector_for(domain).middle
    return A, A @ (point - middle) + spare + rng.exponential(0.1 * domain.diameter(), count)


# --- the projection


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "product"])
def test_the_projection_is_that_of_another_solver(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    domain = place(kind)
    where = nearest_point.projector_for(domain)
    asked = 0
    for trial in range(12):
        A, b = rows_of(rng, domain, int(rng.integers(1, 30)), 0.0 if trial % 3 == 0 else 0.02)
        v = domain.center() + domain.diameter() * 10.0 ** rng.uniform(-1, 1) * rng.standard_normal(domain.dim)
        found, held = nearest_point.nearest(where, v, A, b, [])
        assert found is not None
        assert domain.contains(found)
        assert (A @ (found - where.middle) - b).max() <= 1e-9 * where.scale
        x = cp.Variable(domain.dim)
        problem = cp.Problem(cp.Minimize(cp.sum_squares(x - v)), [*inside(domain, x), A @ (x - where.middle) <= b])
        theirs = solved(problem, x)
        assert np.linalg.norm(found - v) <= np.linalg.norm(theirs - v) + 1e-7, "no farther than theirs"
        assert np.abs(found - theirs).max() <= 1e-4
        asked += bool(held)
    assert asked > 3


@settings(max_examples=examples(20, 150))
@given(st.sampled_from(["ball", "box", "simplex", "halfspace", "cut-box"]), st.integers(1, 8), st.floats(-3.0, 3.0), st.integers(0, 10**6))
def test_the_projection_meets_the_conditions_for_a_nearest_point(kind, dim, size, seed):
    """v - x is a sum of rows that hold x, with positive weights, and of a normal of the domain: by non-negative least squares."""
    rng = np.random.default_rng(seed)
    domain = make_domain(kind, dim, 10.0**size, rng)
    where = nearest_point.projector_for(domain)
    A, b = rows_of(rng, domain, int(rng.integers(1, 40)), 0.0)
    v = domain.center() + domain.diameter() * rng.standard_normal(domain.dim)
    hint = rng.integers(0, len(A), 3).tolist()
    x, held = nearest_point.nearest(where, v, A, b, hint)
    again, _ = nearest_point.nearest(where, v, A, b, [])
    np.testing.assert_allclose(x, again, atol=1e-9 * where.scale)
    assert (A @ (x - where.middle) - b).max() <= 1e-10 * where.scale
    assert domain.contains(x)
    # Without the other rows, and from the point itself, it is the same.
    alone, _ = nearest_point.nearest(where, v, A[held], b[held], [])
    np.testing.assert_allclose(alone, x, atol=1e-8 * where.scale)
    still, none = nearest_point.nearest(where, x, A, b + 1e-9 * where.scale, [])
    np.testing.assert_allclose(still, x, atol=1e-12 * where.scale)
    assert none == []


def test_no_point_is_left():
    for domain in (bridle.Ball(3), bridle.Box(-1.0, 1.0, dim=3), bridle.L1Ball(9), bridle.Simplex(3)):
        where = nearest_point.projector_for(domain)
        a = np.eye(domain.dim)[0]
        away = np.array([a, -a])
        assert nearest_point.nearest(where, domain.center(), away, np.array([-0.3, 0.2]), [])[0] is None
        assert nearest_point.nearest(where, domain.center(), away[:1], np.array([-9.0]), [])[0] is None


# --- what may be left out


@pytest.mark.parametrize("kind", ["ball", "box", "simplex", "cut-box", "polyhedron"])
def test_rows_are_left_out_only_where_the_others_imply_them(kind):
    """By linear programs of another solver: what the rows that stay allow on a polyhedron around the domain, the others allow too."""
    rng = np.random.default_rng(3)
    domain = place(kind, 3)
    where = nearest_point.projector_for(domain)
    A, b = rows_of(rng, domain, 120, 0.05 * domain.diameter())
    gone = nearest_point.redundant(where, A, b)
    assert 10 < gone.sum() < 120
    shell, levels = where.shell()
    rows, room = np.vstack([A[~gone], shell]), np.append(b[~gone], levels)
    for i in np.flatnonzero(gone):
        best = linprog(-A[i], A_ub=rows, b_ub=room, bounds=(None, None))
        assert -best.fun <= b[i] + 1e-8
    for i in np.flatnonzero(~gone)[:20]:
        others = np.arange(len(A)) != i
        best = linprog(-A[i], A_ub=np.vstack([A[others], shell]), b_ub=np.append(b[others], levels), bounds=(None, None))
        assert -best.fun > b[i] - 1e-6, "what stays is needed"


@pytest.mark.parametrize("kind", ["ball", "box", "simplex"])
def test_pruning_changes_nothing(kind):
    """The same decisions with room for all halfspaces and with little room, as long as none had to be given up."""
    problem = bridle.problem("halfspaces", horizon=1500, dim=3 if kind == "simplex" else 2, domain=kind)
    few, all_of_them = (bridle.play(bridle.policy_for("vaze2025", problem, cuts=n), problem, keep="decisions") for n in (70, 1500))
    assert few.state.lost == all_of_them.state.lost == 0.0
    assert few.state.used <= 70
    np.testing.assert_allclose(few.decisions, all_of_them.decisions, atol=1e-9)


def test_dominated_and_pointless_rows_are_not_kept():
    policy = bridle.policy("vaze2025", bridle.Ball(2), lipschitz=1.0)
    state = policy.init(np.zeros(2))

    def see(state, a, b):
        x, a = policy.decide(state), np.asarray(a, dtype=float)
        return policy.update(state, Feedback(x, 0.0, np.zeros(2), np.array([float(a @ x) - b]), a[None]))

    state = see(state, [3.0, 0.0], 3.1)  # outside the ball
    assert state.used == 0.0
    for b in (1.5, 1.2, 1.4, 1.2):
        state = see(state, [3.0, 0.0], b)
    assert state.used == 1.0
    assert state.b[0] == pytest.approx(0.4)
    state = see(state, [1.0, 1e-3], 0.405)  # turned by so little that the first implies it on the ball
    assert state.used == 1.0
    state = see(state, [0.0, 1.0], 0.5)
    assert state.used == 2.0


def test_where_there_is_no_room_the_bounds_still_hold_and_it_is_said():
    problem = bridle.problem("halfspaces", horizon=600, dim=6)
    with pytest.warns(bridle.BridleWarning, match=r"halfspaces were given up for lack of room \(cuts = 12\)"):
        trace = bridle.play(bridle.policy_for("vaze2025", problem, cuts=12), problem)
    facts = summary(trace)
    assert facts["ccv"] <= facts["ccv_bound"]
    assert facts["regret"] <= facts["regret_bound"]
    assert trace.state.used <= 12.0


# --- the policy


@settings(max_examples=examples(20, 60))
@given(instances(), st.integers(1, 3), st.booleans())
def test_the_oracle_and_all_that_was_revealed_hold_in_every_round(instance, k, curved):
    """O3: sum |y - p|^2 <= W_t, CCV_t <= G (G sum eta + sqrt(t W_t)), regret; and affine constraints are satisfied once revealed."""
    domain, feasible, G, rng = instance
    D, mu = domain.diameter(), 0.5 * G / domain.diameter()
    if type(domain).__name__ in ("ProductSet", "SpectrahedronSet"):
        with pytest.raises(InputError, match="domain must be a ball or have faces"):
            bridle.policy("vaze2025", domain, lipschitz=G)
        return
    policy = bridle.policy("vaze2025-strong", domain, modulus=mu) if curved else bridle.policy("vaze2025", domain, lipschitz=G)
    state = policy.init(domain.center())
    scale, W, steps, moved, ccv, regret, size = nearest_point.projector_for(domain).scale, D * D, 0.0, 0.0, np.zeros(k), 0.0, 0.0
    seen = []
    for t, (cost_move, constraint_move) in enumerate(moves(rng, 40), 1):
        x = policy.decide(state)
        assert domain.contains(x)
        cost = cost_at(cost_move, x, feasible, G, t, rng)
        if curved:
            target = domain.project(x + 0.5 * D * rng.standard_normal(domain.dim))
            cost = RoundQuadratic(mu, target, np.zeros(domain.dim), 0.0)
        constraints = tuple(constraint_at(constraint_move, x, feasible, G, D, t, rng) for _ in range(k))
        feedback = Round(cost, constraints).reveal(x)
        state = policy.update(state, feedback)
        eta = 1.0 / (mu * t) if curved else D / (G * sqrt(t))
        y = x - eta * feedback.df
        moved += float((y - state.x) @ (y - state.x))
        W += 2.0 * eta * G * D + eta * eta * G * G
        steps += eta
        ccv += np.maximum(feedback.g, 0.0)
        regret += float(cost.value(x)) - float(cost.value(feasible))
        size += abs(float(cost.value(x))) + abs(float(cost.value(feasible)))
        assert moved <= W * (1.0 + 1e-9) + 1e-9 * t * D * D
        assert ccv.max() <= G * (G * steps + sqrt(t * W)) + rounding(t, G * scale) + 2e-7 * t * G * scale
        proved = 0.5 * G * G * steps + (0.0 if curved else D * D / (2.0 * eta))
        assert regret <= proved + rounding(t, size) + 2e-7 * t * G * scale
        plain = zip(constraints, feedback.g, strict=True)
        seen += [(c.a, c.b) for c, g in plain if isinstance(c, AffineFunction) and not 0.0 < g <= 1.001e-7 * np.linalg.norm(c.a) * scale]
        assert all(float(a @ state.x) + b <= 1.1e-6 * G * scale for a, b in seen)
    assert state.left_out == 0.0
    assert policy.record.alarm(state) is None


@pytest.mark.parametrize("kind", ["ball", "box"])
@pytest.mark.parametrize("d", [1, 3, 10])
@pytest.mark.parametrize("k", [1, 4])
def test_regret_and_violation_stay_under_their_bounds(kind, d, k):
    at = stage(kind, d, k, T=150, seed=d)
    policy = bridle.policy("vaze2025", at.domain, lipschitz=at.G)
    assert policy.bound(at.constants, at.T).regret <= 1.5 * at.G * at.domain.diameter() * sqrt(at.T)
    assert max(ratios(policy, at).values()) <= 1.0
    at = stage(kind, d, k, T=150, seed=d + 1, modulus=0.5)
    assert max(ratios(bridle.policy("vaze2025-strong", at.domain, modulus=at.modulus), at).values()) <= 1.0


@pytest.mark.slow
def test_a_slow_start_does_not_cost_what_it_costs_algorithm_1():
    """Lemma 6: costs that pull to the end of an interval which the constraint, always the same, forbids."""
    pull, wall = bridle.Quadratic(0.25, center=[0.0]), bridle.Affine([-1.0], 2.0)
    constants = {"lipschitz": 1.0, "diameter": 3.0, "feasible": np.array([4.0]), "time_varying": False, "constraints": 1, "modulus": 0.25}
    problem = bridle.Problem(bridle.Box([1.0], [4.0]), Fixed(Round(pull, (wall,))), constants, parameters={"horizon": 10_000})
    first = [bridle.ccv(bridle.play(bridle.policy_for("sinha2024", problem, horizon=T), problem, horizon=T)) for T in (1_000, 10_000)]
    assert first[1] > 5_000.0
    assert first[1] > 5.0 * first[0], "linear so far"
    for name in ("vaze2025", "vaze2025-strong"):
        trace = bridle.play(bridle.policy_for(name, problem), problem)
        early = trace.curve.hard[trace.curve.rounds <= 100.0][-1, 0]
        allowed = 10_000 * 1e-9 * 3.01  # what a halfspace allows more than it says, times the domain's scale
        assert bridle.ccv(trace) <= min(3.0, early + allowed), "no more after the first rounds"


def test_it_violates_far_less_than_algorithm_1():
    problem = bridle.problem("halfspaces", horizon=1000, dim=5)
    nested, first = (bridle.play(bridle.policy_for(name, problem), problem) for name in ("vaze2025", "sinha2024"))
    assert bridle.ccv(nested) < 0.02 * bridle.ccv(first)
    assert bridle.regret(nested) <= nested.policy.bound(problem.constants, 1000).regret


def test_constraints_that_contradict_each_other_are_left_out_and_named():
    domain = bridle.Ball(2)
    policy = bridle.policy("vaze2025", domain, lipschitz=1.0)
    state = policy.init(np.zeros(2))
    for t in range(20):
        x = policy.decide(state)
        a = np.array([1.0, 0.0]) if t % 2 else np.array([-1.0, 0.0])
        state = policy.update(state, Round(AffineFunction(np.array([0.3, 1.0]), 0.0), (AffineFunction(a, 0.2),)).reveal(x))
        assert domain.contains(policy.decide(state))
    assert state.left_out == 10.0
    assert "10 constraints were left out: no action was found that meets them" in policy.record.alarm(state).text
    nowhere = policy.update(state, Feedback(state.x, 0.0, np.zeros(2), np.array([0.5]), np.zeros((1, 2))))
    assert nowhere.left_out == 11.0


def test_a_point_that_is_all_that_is_left_is_found_and_kept():
    """Halfspaces through one point from all sides, its coordinates rounded: what rounding takes away is given back."""
    rng = np.random.default_rng(5)
    for d in (1, 2, 6):
        domain = bridle.Ball(d, radius=3.0, center=np.full(d, 10.0))
        point = domain.project(domain.center() + rng.standard_normal(d))
        policy = bridle.policy("vaze2025", domain, lipschitz=1.0)
        state = policy.init(domain.center())
        for t in range(60):
            a = rng.standard_normal(d)
            a, x = (a if t % 2 else -a), policy.decide(state)
            state = policy.update(state, Round(AffineFunction(a / 9.0, 0.0), (AffineFunction(a, -float(a @ point)),)).reveal(x))
        assert state.left_out == 0.0
        np.testing.assert_allclose(policy.decide(state), point, atol=1e-6)


def test_convex_constraints_are_cut_by_their_halfspaces():
    """Of a disc, the halfspaces at the decisions: the decision comes to its edge, and its violation stays under the bound."""
    disc = RoundQuadratic(1.0, np.zeros(2), np.zeros(2), -0.125)
    constants = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2), "time_varying": False, "constraints": 1}
    problem = bridle.Problem(bridle.Ball(2), Fixed(Round(bridle.Affine([0.6, -0.8]), (disc,))), constants, parameters={"horizon": 300})
    trace = bridle.play(bridle.policy_for("vaze2025", problem), problem, keep="decisions")
    np.testing.assert_allclose(trace.decisions[-1], [-0.3, 0.4], atol=1e-3)
    assert bridle.ccv(trace) <= trace.policy.bound(constants, 300).ccv
    assert bridle.ccv(trace) < 1.0


def test_bounds_say_why_not():
    policy = bridle.policy("vaze2025-strong", bridle.Ball(2), modulus=0.5)
    facts = {"lipschitz": 1.0, "diameter": 2.0, "feasible": np.zeros(2)}
    assert "not strongly convex" in policy.bound(facts, 10).why
    assert "less than the 0.5" in policy.bound({**facts, "modulus": 0.1}, 10).why
    assert policy.bound({**facts, "modulus": 0.5}, 10).why == ""
    assert "no action" in bridle.policy("vaze2025", bridle.Ball(2), lipschitz=1.0).bound({**facts, "feasible": None}, 10).why


def test_what_makes_no_sense_is_refused():
    for wrong in ({"lipschitz": 0.0}, {"lipschitz": 1.0, "cuts": 0}, {"lipschitz": 1.0, "constraints": 0}):
        with pytest.raises(InputError, match=list(wrong)[-1]):
            bridle.policy("vaze2025", bridle.Ball(2), **wrong)
    problem = bridle.problem("halfspaces", horizon=20, dim=2)
    with pytest.raises(InputError, match="one run at a time"), warnings.catch_warnings():
        bridle.play(bridle.policy_for("vaze2025", problem), problem, seed=[1, 2])


@pytest.mark.parametrize("kind", ["ball", "box"])
def test_rows_that_are_all_but_opposite_are_not_given_up(kind):
    left_out = games = 0
    for seed in range(60):
        rng, d = np.random.default_rng(seed), 4
        domain = bridle.Ball(d) if kind == "ball" else bridle.Box(-1.0, 1.0, dim=d)
        u = domain.project(0.4 * rng.standard_normal(d))
        record = bridle.policy("vaze2025", domain, lipschitz=1.0).record
        state, rows, levels = record.init(np.zeros(d)), [], []
        a = rng.standard_normal(d)
        for t in range(10):
            a = a + 10.0 ** rng.uniform(-8, -3) * rng.standard_normal(d) if t % 3 else rng.standard_normal(d)
            a /= -np.linalg.norm(a) if t % 3 else np.linalg.norm(a)
            x = record.decide(state)
            state = record.update(state, Feedback(x, 0.0, rng.standard_normal(d) / 2.0, np.array([a @ (x - u)]), a[None]))
            if not 0.0 < a @ (x - u) <= 1e-7 * record.place.scale:  # up to that nothing is done
                rows, levels = [*rows, a], [*levels, a @ u]  # u lies on all of them
        games += 1
        left_out += state.left_out > 0.0
        if not state.left_out:
            assert (np.array(rows) @ record.decide(state) - levels).max() <= 2e-6
    assert left_out <= 0.1 * games
