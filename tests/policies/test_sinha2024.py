"""The paper's algorithms: faithful to the page, within every theorem, and sane when assumptions fail."""

from __future__ import annotations

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.core import Feedback, Round
from bridle.functions import AffineFunction, AffineRows
from bridle.learners import CurvedOGD
from bridle.policies import _sinha2024 as paper
from bridle.policies import _sinha2024_ocs as ocs
from bridle.problems.base import StreamOpponent
from bridle.solvers.hindsight import interval_excess, smallest_window
from helpers.instances import constraint_at, cost_at, instances, moves

PROBLEMS = ("lower-bound", "minimax", "fixed", "halfspaces")


# --- the update, against a transcription of the page that shares no code with the library ---------------------------------------------


def transcribed(kind: str, project, D: float, T: int, G: float, alpha: float, preset: str):
    """Algorithms 1 and 2 as a reader of the paper would write them down; yields x_t and takes (f', g, g') of round t."""

    def run(x):
        if kind == "ocs":
            Q, A = None, 0.0
            while True:
                _, g, dg = yield x
                Q = np.maximum((0.0 if Q is None else Q) + g, 0.0)
                p = sum(2.0 * q * row for q, row in zip(Q, dg, strict=True))
                A += p @ p
                x = project(x - D / sqrt(2.0 * A) * p) if A > 0 else x
        Q, S, t = 0.0, 0.0, 0
        beta, V, lam = {
            "theory": (1 / (2 * G * D), 1.0, 1 / (2 * sqrt(T))),
            "tight": (1 / (sqrt(2) * G * D), 1.0, 0.9 / sqrt(T)),
            "practice": (1 / (sqrt(2) * G * D), 0.9 / sqrt(T), 0.9 / sqrt(T)),
        }[preset]
        while True:
            df, g, dg = yield x
            t += 1
            j = int(np.argmax(g))
            h, dh = max(0.0, g[j]), dg[j] if g[j] > 0 else 0.0 * x
            if kind == "convex":
                Q += beta * h
                p = V * beta * df + lam * exp(lam * Q) * beta * dh
                S += p @ p
                x = project(x - D / sqrt(2 * S) * p) if S > 0 else x
            else:
                Q += h
                V = 8 * G * G * (1 + log(T)) / alpha
                x = project(x - (df + 2 * Q / V * dh) / (alpha * t))

    return run


@settings(max_examples=60)
@given(instances(), st.sampled_from(["convex", "strong", "ocs"]), st.sampled_from(["theory", "tight", "practice"]), st.integers(1, 3))
def test_the_update_is_the_one_on_the_page(instance, kind, preset, k):
    domain, feasible, G, rng = instance
    T, D, alpha = 80, domain.diameter(), 0.3
    given_parameters = {
        "convex": ("sinha2024", {"horizon": T, "lipschitz": G, "preset": preset}),
        "strong": ("sinha2024-strong", {"horizon": T, "lipschitz": G, "modulus": alpha}),
        "ocs": ("sinha2024-ocs", {"constraints": k}),
    }[kind]
    policy = bridle.policy(given_parameters[0], domain, **given_parameters[1]).record
    reader = transcribed(kind, domain.project, D, T, G, alpha, preset)(domain.center())
    y, state = next(reader), policy.init(domain.center())
    for t, (cost_move, constraint_move) in enumerate(moves(rng, T), 1):
        x = policy.decide(state)
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-10 * (D + np.abs(domain.center()).max()))
        cost = cost_at(cost_move, x, feasible, G, t, rng)
        feedback = Round(cost, tuple(constraint_at(constraint_move, x, feasible, G, D, t, rng) for _ in range(k))).reveal(x)
        state = policy.update(state, feedback)
        y = reader.send((feedback.df, feedback.g, feedback.dg))


def test_the_presets_are_the_papers_and_the_sharper_ones():
    box, T, G = bridle.Box(np.zeros(4), np.ones(4)), 400, 3.0
    D = 2.0
    theory, tight, practice = (
        bridle.policy("sinha2024", box, horizon=T, lipschitz=G, preset=p).record for p in ("theory", "tight", "practice")
    )
    assert (theory.beta, theory.V, theory.potential.lam) == pytest.approx((1 / (2 * G * D), 1.0, 1 / (2 * sqrt(T))), rel=1e-15)
    assert (tight.beta, tight.V, tight.potential.lam) == pytest.approx((1 / (sqrt(2) * G * D), 1.0, 0.9 / sqrt(T)), rel=1e-15)
    assert (practice.beta, practice.V, practice.potential.lam) == pytest.approx((1 / (sqrt(2) * G * D), 0.045, 0.045), rel=1e-15)
    strong = bridle.policy("sinha2024-strong", box, horizon=T, lipschitz=G, modulus=0.5).record
    V = 8 * G * G * log(T * np.e) / 0.5
    assert (strong.beta, strong.V, strong.learner.modulus) == pytest.approx((1.0, V, V * 0.5), rel=1e-14)


def test_every_parameter_of_theory_can_be_overridden():
    ball = bridle.Ball(2)
    made = bridle.policy("sinha2024", ball, horizon=10, lipschitz=1.0, V=3.0, beta=4.0, lam=5.0, diameter=6.0).record
    assert (made.V, made.beta, made.potential.lam, made.learner.diameter) == (3.0, 4.0, 5.0, 6.0)
    learner, potential = bridle.OGD(ball, step=0.1), bridle.potentials.Power(3.0)
    made = bridle.policy("sinha2024", ball, horizon=10, lipschitz=1.0, learner=learner, potential=potential).record
    assert made.learner is learner
    assert made.potential is potential
    made = bridle.policy("sinha2024-strong", ball, horizon=10, lipschitz=1.0, modulus=1.0, V=2.0, beta=3.0).record
    assert (made.V, made.beta, made.learner.modulus) == (2.0, 3.0, 6.0)


# --- special cases --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["adagrad", "adaftrl"])
def test_without_violation_algorithm_1_is_its_learner(learner):
    ball, rng = bridle.Ball(3), np.random.default_rng(0)
    policy = bridle.policy("sinha2024", ball, horizon=50, lipschitz=1.0, learner=learner).record
    bare = policy.learner
    state, other = policy.init(np.zeros(3)), bare.init(np.zeros(3))
    for _ in range(50):
        df = rng.standard_normal(3)
        state = policy.update(state, Feedback(policy.decide(state), 0.0, df, np.array([-1.0, 0.0]), rng.standard_normal((2, 3))))
        other = bare.step(other, policy.V * policy.beta * df)
        np.testing.assert_array_equal(policy.decide(state), bare.decide(other))
    assert state.Q == 0.0


def test_several_constraints_count_as_the_worst_one():
    ball, rng = bridle.Ball(3), np.random.default_rng(0)
    policy = bridle.policy("sinha2024", ball, horizon=50, lipschitz=1.0).record
    many = one = policy.init(np.zeros(3))
    for _ in range(50):
        g, dg, df = rng.standard_normal(4), rng.standard_normal((4, 3)), rng.standard_normal(3)
        j = int(np.argmax(g))
        many = policy.update(many, Feedback(policy.decide(many), 0.0, df, g, dg))
        one = policy.update(one, Feedback(policy.decide(one), 0.0, df, g[j : j + 1], dg[j : j + 1]))
        np.testing.assert_array_equal(policy.decide(many), policy.decide(one))
    tied = policy.update(one, Feedback(policy.decide(one), 0.0, np.zeros(3), np.array([1.0, 1.0]), np.eye(3)[:2]))
    first = policy.update(one, Feedback(policy.decide(one), 0.0, np.zeros(3), np.array([1.0]), np.eye(3)[:1]))
    np.testing.assert_array_equal(policy.decide(tied), policy.decide(first))


def test_nothing_moves_before_the_first_gradient():
    for name, more in (("sinha2024", {"horizon": 9, "lipschitz": 1.0}), ("sinha2024-ocs", {})):
        policy = bridle.policy(name, bridle.Ball(center=[5.0, 5.0], radius=2.0), **more).record
        state = policy.init(np.array([4.0, 4.0]))
        state = policy.update(state, Feedback(policy.decide(state), 0.0, np.zeros(2), np.array([-1.0]), np.zeros((1, 2))))
        np.testing.assert_array_equal(policy.decide(state), [4.0, 4.0])


# --- the theorems ---------------------------------------------------------------------------------------------------------------------


def within(trace) -> dict[str, float]:
    """Check every bound at every log-spaced round; give the largest measured/bound ratios at the end."""
    constants, policy = trace.problem.constants, trace.policy
    regrets = bridle.regret_curve(trace)[1] if "ocs" not in policy.name else np.zeros(len(trace.curve.rounds))
    worst: dict[str, float] = {}
    for i, t in enumerate(trace.curve.rounds):
        facts = {**constants, "regret": regrets[i]}
        for label, bound in (("sharp", policy.bound(facts, t)), ("paper", policy.paper_bound(facts, t))):
            measured = {"regret": regrets[i], "ccv": trace.curve.worst[i], "interval": trace.curve.interval[i].max()}
            for name, value in measured.items():
                limit = getattr(bound, name)
                if limit is None:
                    continue
                assert value <= limit * (1 + 1e-12), (
                    f"{policy.name} on {trace.problem.name}: {name} {value} > {label} bound {limit} at round {t}"
                )
                worst[f"{label} {name}"] = max(worst.get(f"{label} {name}", -np.inf), value / limit)
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("horizon", [1, 2, 60, 1500])
def test_algorithm_1_stays_under_both_bounds_on_every_problem(name, horizon):
    for seed in range(2):
        problem = bridle.problem(name, horizon=horizon, seed=seed)
        for preset in ("theory", "tight", "practice"):
            seen = within(bridle.play(bridle.policy_for("sinha2024", problem, preset=preset), problem))
            assert {"sharp regret", "sharp ccv"} <= seen.keys()
            assert ("paper ccv" in seen) == (preset == "theory")
        for more in ({"learner": "adaftrl"}, {"potential": "quadratic"}, {"potential": "power"}, {"lam": 0.1 / sqrt(horizon), "V": 0.3}):
            seen = within(bridle.play(bridle.policy_for("sinha2024", problem, **more), problem))
            assert {"sharp regret", "sharp ccv"} <= seen.keys()
            assert "paper ccv" not in seen


@pytest.mark.parametrize("where", ["box", "simplex", "l1"])
def test_the_bounds_hold_on_other_domains_and_with_several_constraints(where):
    for k in (1, 3):
        problem = bridle.problem("halfspaces", horizon=800, domain=where, constraints=k, dim=6)
        within(bridle.play(bridle.policy_for("sinha2024", problem), problem))
        within(bridle.play(bridle.policy_for("sinha2024-ocs", problem), problem))


@pytest.mark.parametrize("name", ["minimax", "fixed", "halfspaces"])
@pytest.mark.parametrize("horizon", [1, 2, 60, 1500])
@pytest.mark.parametrize("modulus", [0.1, 1.0, 10.0])
def test_algorithm_1_strong_stays_under_both_bounds(name, horizon, modulus):
    problem = bridle.problem(name, horizon=horizon, modulus=modulus, dim=4)
    seen = within(bridle.play(bridle.policy_for("sinha2024-strong", problem), problem))
    assert {"sharp regret", "sharp ccv", "paper regret", "paper ccv"} <= seen.keys()


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("horizon", [1, 60, 1500])
def test_algorithm_2_stays_under_both_bounds(name, horizon):
    problem = bridle.problem(name, horizon=horizon)
    seen = within(bridle.play(bridle.policy_for("sinha2024-ocs", problem), problem))
    assert {"sharp interval", "paper interval"} <= seen.keys()


@settings(max_examples=60)
@given(instances(), st.sampled_from(["theory", "tight", "practice"]), st.integers(1, 200))
def test_theorem_1_against_opponents_that_adapt(instance, preset, T):
    domain, feasible, G, rng = instance
    D = domain.diameter()
    policy = bridle.policy("sinha2024", domain, horizon=T, lipschitz=G, preset=preset)
    facts = {"lipschitz": G, "diameter": D, "feasible": feasible}
    state, regret, ccv = policy.init(domain.center()), 0.0, 0.0
    for t, (cost_move, constraint_move) in enumerate(moves(rng, T), 1):
        x = policy.decide(state)
        cost = cost_at(cost_move, x, feasible, G, t, rng)
        feedback = Round(cost, (constraint_at(constraint_move, x, feasible, G, D, t, rng),)).reveal(x)
        state = policy.update(state, feedback)
        regret += float(cost.value(x) - cost.value(feasible))
        ccv += max(0.0, float(feedback.g[0]))
        slack = 1e-10 * t * G * (D + np.abs(feasible).sum())
        for bound in (policy.bound(facts, t), policy.paper_bound(facts, t) if preset == "theory" else policy.bound(facts, t)):
            assert regret <= bound.regret + slack
            assert ccv <= bound.ccv + slack


@pytest.mark.parametrize("engine", ["python", "jax"])
@pytest.mark.parametrize("T", [16, 100, 900])
def test_the_lower_bound_is_met_exactly_from_the_centre(T, engine):
    """Each coordinate is used once, so every first-order policy pays the same: both numbers are sqrt(T)/4, the bound of Theorem 3."""
    problem = bridle.problem("lower-bound", horizon=T, seed=T)
    for name in ("sinha2024", "sinha2024-ocs"):
        trace = bridle.play(bridle.policy_for(name, problem), problem, engine=engine)
        assert bridle.regret(trace) == pytest.approx(paper.theorem3(T), rel=1e-12)
        assert bridle.ccv(trace) == pytest.approx(paper.theorem3(T), rel=1e-12)
    assert paper.theorem3(T, sharp=False) == sqrt(T) / 8


def strong_game(policy, alpha: float, T: int) -> tuple[float, float]:
    """The largest regret/Theorem 2 and CCV/Theorem 2 along a stream that alternates its targets and pushes off the feasible point."""
    ball, feasible, G, D = bridle.Ball(1), np.array([0.3]), 2.0 * alpha, 2.0
    state, regret, ccv, worst = policy.init(np.zeros(1)), 0.0, 0.0, [0.0, 0.0]
    for t in range(1, T + 1):
        x = policy.decide(state)
        target = ball.project(feasible + (1.0 if t % 2 else -1.0))
        away = x - feasible
        a = G * np.sign(away)
        g = float(a @ away)
        state = policy.update(state, Feedback(x, 0.0, alpha * (x - target), np.array([g]), a[None]))
        regret += 0.5 * alpha * float((x - target) @ (x - target) - (feasible - target) @ (feasible - target))
        ccv += max(0.0, g)
        bound = paper.theorem2(G, D, alpha, t, T)
        worst = [max(worst[0], regret / bound.regret), max(worst[1], ccv / bound.ccv)]
    return worst[0], worst[1]


def test_the_literal_strongly_convex_step_breaks_theorem_2():
    """Line 9 as printed divides by the moduli of f_s. The surrogate's are V times those; with the printed ones the theorem is false."""
    right = bridle.policy("sinha2024-strong", bridle.Ball(1), horizon=1000, lipschitz=2.0, modulus=1.0).record
    literal = right._replace(learner=CurvedOGD(right.domain, 1.0))
    regret, ccv = strong_game(literal, 1.0, 1000)
    assert regret > 10.0
    assert ccv > 1.0
    regret, ccv = strong_game(right, 1.0, 1000)
    assert regret <= 1.0
    assert ccv <= 1.0


def test_nonnegative_regret_sharpens_the_strong_bound():
    """Where regret is not negative, CCV stays under the logarithmic bound of Theorem 2, part two."""
    problem = bridle.problem("minimax", horizon=3000, modulus=1.0, dim=3)
    trace = bridle.play(bridle.policy_for("sinha2024-strong", problem), problem)
    facts = problem.constants
    assert bridle.regret(trace) >= 0.0
    plain, sharper = (trace.policy.bound({**facts, "regret": r}, 3000).ccv for r in (None, bridle.regret(trace)))
    assert bridle.ccv(trace) <= sharper < plain
    assert sharper < trace.policy.bound({**facts, "regret": -1.0}, 3000).ccv < plain
    V = trace.policy.record.V
    assert sharper <= V / 2
    assert trace.policy.paper_bound({**facts, "regret": 0.0}, 3000).ccv < trace.policy.paper_bound(facts, 3000).ccv


class Periodic(NamedTuple):
    """Halfspaces through `point`, lifted by a pattern that sums to zero or less over every window of its length."""

    point: np.ndarray
    pattern: np.ndarray  # (S, k)
    excess: float  # added to every level: above zero no window is feasible

    def deal(self, rng, rounds):
        S, k = self.pattern.shape
        A = rng.standard_normal((rounds, k, len(self.point)))
        A /= np.linalg.norm(A, axis=-1, keepdims=True)
        level = self.pattern[np.arange(rounds) % S] + self.excess
        return Round(
            AffineFunction(np.zeros((rounds, len(self.point))), np.zeros(rounds)), (AffineRows(A, level - (A * self.point).sum(-1)),)
        )


@pytest.mark.parametrize("S", [1, 2, 5, 16])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("excess", [0.0, 0.02])
def test_theorems_4_and_5_on_streams_that_are_feasible_only_on_average(S, k, excess):
    """Block length divides no S here, so the pattern restarts with each block; the facts are taken from the stream, not from its recipe."""
    rng = np.random.default_rng(S * 10 + k)
    ball, T = bridle.Ball(4), 1500
    pattern = np.zeros((S, k)) if S == 1 else rng.permutation(np.repeat([1.0, -1.0], [S // 2, S - S // 2]))[:, None] * np.ones(k)
    point = np.array([0.3, -0.2, 0.0, 0.1])
    problem = bridle.Problem(ball, StreamOpponent(Periodic(point, pattern, excess)), {"constraints": k})
    trace = bridle.play(bridle.policy_for("sinha2024-ocs", problem), problem, horizon=T, keep="rounds")
    from bridle.solvers.hindsight import values_at

    _, at_point = values_at(trace.blocks, point)
    F = float(np.abs(pattern).max() + excess + 1.0 + np.linalg.norm(point))
    facts = {"lipschitz": 1.0, "diameter": 2.0, "bound": F, "constraints": k}
    measured = bridle.interval_violation(trace)
    P = interval_excess(at_point)
    limit = trace.policy.bound({**facts, "excess": P}, T).interval
    assert 0.0 <= measured <= limit
    assert measured <= ocs.theorem5(1.0, 2.0, F, k, P / F, T)
    window = smallest_window(at_point)
    if excess == 0.0:
        assert window is not None
        assert F * (window // 2) + 1e-9 >= P
        assert measured <= trace.policy.bound({**facts, "window": window}, T).interval
        assert measured <= ocs.theorem4(1.0, 2.0, F, k, window, T)
    else:
        assert trace.policy.bound(facts, T).interval is None


# --- the bounds as numbers, against formulas written down on their own ------------------------------------------------------------------


@settings(max_examples=100)
@given(st.floats(0.01, 100.0), st.floats(0.01, 100.0), st.integers(1, 10**6), st.floats(0.0, 1.0))
def test_convex_bounds_are_the_closed_forms(G, D, T, share):
    t = max(1, int(share * T))
    ball = bridle.Ball(2, radius=D / 2)
    facts = {"lipschitz": G, "diameter": D, "feasible": np.zeros(2)}
    trivial = G * D * t
    for preset, beta, V, lam in (
        ("theory", 1 / (2 * G * D), 1.0, 1 / (2 * sqrt(T))),
        ("tight", 1 / (sqrt(2) * G * D), 1.0, 0.9 / sqrt(T)),
        ("practice", 1 / (sqrt(2) * G * D), 0.9 / sqrt(T), 0.9 / sqrt(T)),
    ):
        bound = bridle.policy("sinha2024", ball, horizon=T, lipschitz=G, preset=preset).bound(facts, t)
        kappa = sqrt(2) * D * beta * G
        assert bound.regret == pytest.approx(min(trivial, sqrt(2) * G * D * sqrt(t) * (1 + lam / V)), rel=1e-12)
        inside = (1 + V * (kappa * sqrt(t) + beta * G * D * t)) / (1 - kappa * lam * sqrt(t))
        assert bound.ccv == pytest.approx(min(trivial, log(inside) / (beta * lam)), rel=1e-12)
    theory = bridle.policy("sinha2024", ball, horizon=T, lipschitz=G)
    printed = theory.paper_bound(facts, t)
    assert printed.regret == pytest.approx(2 * G * D * (sqrt(t) + 1), rel=1e-12)
    assert printed.ccv == pytest.approx(4 * G * D * log(2 * (1 + 2 * T)) * sqrt(T), rel=1e-12)
    assert theory.bound(facts, t).regret <= printed.regret
    assert theory.bound(facts, t).ccv <= printed.ccv * (1 + 1e-12)


@settings(max_examples=100)
@given(st.floats(0.1, 10.0), st.floats(0.1, 10.0), st.integers(1, 10**5), st.floats(0.0, 1.0))
def test_strong_bounds_are_the_closed_forms(G, alpha, T, share):
    t = max(1, int(share * T))
    D = 2 * G / alpha
    L, H = 1 + log(T), float(np.sum(1.0 / np.arange(1, t + 1)))
    V, c = 8 * G * G * L / alpha, H / (16 * L)
    policy = bridle.policy("sinha2024-strong", bridle.Ball(2, radius=D / 2), horizon=T, lipschitz=G, modulus=alpha)
    facts = {"lipschitz": G, "diameter": D, "feasible": np.zeros(2), "modulus": alpha}
    bound, printed = policy.bound(facts, t), policy.paper_bound(facts, t)
    assert bound.regret == pytest.approx(min(G * D * t, (G * G * H / (2 * alpha)) / (1 - 4 * c)), rel=1e-10)
    assert bound.regret <= 2 / 3 * G * G / alpha * H * (1 + 1e-12)
    assert bound.ccv == pytest.approx(min(G * D * t, (2 * c * V + sqrt(c * V * V + (1 - 4 * c) * V * G * D * t)) / (1 - 4 * c)), rel=1e-10)
    assert policy.bound({**facts, "regret": 0.0}, t).ccv == pytest.approx(min(G * D * t, V * sqrt(c) / (1 - 2 * sqrt(c))), rel=1e-10)
    assert printed.regret == pytest.approx(G * G / alpha * (1 + log(t)), rel=1e-12)
    assert printed.ccv == pytest.approx(4 * G * sqrt(G * D * t * L / alpha) + 4 * G * G * L / alpha, rel=1e-12)
    assert bound.regret <= printed.regret * (1 + 1e-12)
    assert bound.ccv <= printed.ccv * (1 + 1e-12)


@given(st.floats(0.1, 10.0), st.floats(0.1, 10.0), st.floats(0.1, 10.0), st.integers(1, 5), st.floats(0.0, 50.0), st.integers(1, 300))
def test_queue_bound_is_the_closed_form(G, D, F, k, P, T):
    a = 2 * sqrt(2) * G * D * sqrt(k)
    b = a * sqrt(T) + sqrt(k) * P
    first = (a * sqrt(T) + sqrt(a * a * T + 8 * k * P * F * T)) / 2
    second = (b + sqrt(b * b + 4 * k * P * F * T)) / 2
    z = third = 0.0
    for t in range(1, T + 1):
        z = a / 2 + sqrt(a * a / 4 + z * z + 2 * k * P * F * t)
        third = max(third, sqrt(a * z + 2 * k * P * F * t))
    assert ocs.queue_bound(a, F, k, P, T) == pytest.approx(min(first, second, third), rel=1e-12)


def test_bounds_are_null_with_a_reason_where_the_theorem_is_void():
    problem = bridle.problem("halfspaces", horizon=100, dim=3)
    facts = problem.constants

    def bound(changes=None, at=100, **parameters):
        return bridle.policy_for("sinha2024", problem, **parameters).bound({**facts, **(changes or {})}, at)

    assert bound().why == ""
    assert "past the policy's horizon" in bound(at=101).why
    assert "not convex" in bound({"convex": False}).why
    assert "no action is known" in bound({"feasible": None}).why
    assert "must be below 1" in bound(lam=1.0).why
    assert "no proved regret bound" in bound(learner="ogd").why
    assert "no proved regret bound" in bound(learner="ftpl", samples=10).why

    def printed(**parameters):
        return bridle.policy_for("sinha2024", problem, **parameters).paper_bound(facts, 100)

    assert printed().why == ""
    assert printed(V=1.0, learner="adagrad", potential="exponential").why == ""  # what the theorem says anyway
    for name, value in (("V", 2.0), ("beta", 0.1), ("lam", 0.01), ("learner", "adaftrl"), ("potential", "quadratic")):
        assert printed(**{name: value}).why == f"{name} was set by hand"
    assert "preset is tight" in printed(preset="tight").why
    assert "above the one the policy was told" in printed(lipschitz=0.5).why
    assert printed(lipschitz=2.0).regret == 2 * printed().regret  # a larger constant is true as well
    strong = bridle.problem("fixed", horizon=100, modulus=1.0)
    assert "less than the 2" in bridle.policy_for("sinha2024-strong", strong, modulus=2.0).bound(strong.constants, 100).why
    assert "too small" in bridle.policy_for("sinha2024-strong", strong, V=1e-3).bound(strong.constants, 100).why
    assert "not strongly convex" in bridle.policy_for("sinha2024-strong", strong).bound({**strong.constants, "modulus": 0.0}, 100).why


# --- when assumptions fail ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["adagrad", "adaftrl"])
def test_an_exponent_far_beyond_overflow_is_exact(learner):
    """An infeasible stream drives lam Q past 709. The decisions equal the plain update's in a number format that does not overflow."""
    wide, ball, rng = np.longdouble, bridle.Ball(3), np.random.default_rng(1)
    policy = bridle.policy("sinha2024", ball, horizon=100, lipschitz=0.002, learner=learner).record
    lam, beta, V, D = policy.potential.lam, policy.beta, policy.V, 2.0
    state = policy.init(np.zeros(3))
    Q, S, total, y = wide(0), wide(0), np.zeros(3, dtype=wide), np.zeros(3)
    c = wide(D) / np.sqrt(wide(5.5))
    for _ in range(1500):
        x = policy.decide(state)
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9)
        df, dg, g = rng.standard_normal(3), rng.standard_normal((1, 3)), float(rng.uniform(-0.3, 1.0))
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            state = policy.update(state, Feedback(x, 0.0, df, np.array([g]), dg))
        Q += wide(beta) * max(g, 0.0)
        p = wide(V * beta) * df + (wide(lam) * np.exp(wide(lam) * Q) * wide(beta) * dg[0] if g > 0 else 0.0)
        S, total = S + p @ p, total + p
        moved = (y - wide(D) / np.sqrt(2 * S) * p) if learner == "adagrad" else -c * total / np.sqrt(S)
        y = ball.project(moved.astype(float))
    assert lam * state.Q > 709.8  # e^{lam Q} is far past the largest float
    assert "rules out" in policy.alarm(state).text


@pytest.mark.parametrize("learner", ["ogd", "ftpl"])
def test_other_learners_stay_finite_past_overflow(learner):
    ball = bridle.Ball(2)
    policy = bridle.policy("sinha2024", ball, horizon=100, lipschitz=0.01, learner=learner).record
    state = policy.init(np.zeros(2))
    for _ in range(1000):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            state = policy.update(state, Feedback(policy.decide(state), 0.0, np.ones(2), np.array([1.0]), np.array([[1.0, -1.0]])))
        assert ball.contains(policy.decide(state))
    assert policy.potential.lam * state.Q > 709.0


# --- bad input ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("sinha2024", {"lipschitz": 1.0}, "policy sinha2024 needs horizon: T, how many rounds will be played"),
        ("sinha2024", {"horizon": 0, "lipschitz": 1.0}, "horizon must be above 0, not 0"),
        ("sinha2024", {"horizon": 10, "lipschitz": -1.0}, "lipschitz must be above 0, not -1.0"),
        ("sinha2024", {"horizon": 10, "lipschitz": float("nan")}, "lipschitz must be finite, not nan"),
        ("sinha2024", {"horizon": 10, "lipschitz": 1.0, "V": float("inf")}, "V must be finite, not inf"),
        ("sinha2024", {"horizon": 10, "lipschitz": 1.0, "preset": "fast"}, "unknown preset 'fast'; known: practice, theory, tight"),
        ("sinha2024", {"horizon": 10, "lipschitz": 1.0, "learner": "sgd"}, "unknown learner 'sgd'; did you mean ogd?"),
        ("sinha2024", {"horizon": 10, "lipschitz": 1.0, "potential": 3}, "potential must be a name or have a method `slope`, not 3"),
        ("sinha2024", {"horizon": 10, "lipschitz": 1.0, "step": 1.0}, "step is for learner='ogd' only, not for 'adagrad'"),
        (
            "sinha2024",
            {"horizon": 10, "lipschitz": 1.0, "lambda": 1.0},
            "unknown parameter of policy sinha2024 'lambda'; did you mean lam?",
        ),
        ("sinha2024", {"horizon": [1, 2], "lipschitz": [1.0]}, "the lists of a sweep must be equally long, not horizon: 2, lipschitz: 1"),
        ("sinha2024", {"horizon": [10, 0], "lipschitz": 1.0}, "horizon must be above 0, not np.float64(0.0)"),
        ("sinha2024-strong", {"horizon": 10, "lipschitz": 1.0, "modulus": 0.0}, "modulus must be above 0, not 0.0"),
        ("sinha2024-ocs", {"constraints": 1.5}, "constraints must be a whole number, not 1.5"),
        ("sinha2042", {}, "unknown policy 'sinha2042'; did you mean sinha2024 or sinha2024-ocs or sinha2024-strong?"),
    ],
)
def test_bad_parameters_are_one_clear_error(name, parameters, message):
    with pytest.raises(bridle.InputError) as caught:
        bridle.policy(name, bridle.Ball(2), **parameters)
    assert message in str(caught.value)


def test_a_domain_that_is_none_is_named():
    with pytest.raises(bridle.InputError, match="domain must be a domain such as"):
        bridle.policy("sinha2024", 3, horizon=10, lipschitz=1.0)


def test_a_learner_for_another_domain_is_refused():
    with pytest.raises(bridle.InputError, match="learner was made for another domain"):
        bridle.policy("sinha2024", bridle.Ball(3), horizon=10, lipschitz=1.0, learner=bridle.AdaGrad(bridle.Ball(3, radius=5.0)))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"potential": "quadratic", "lam": 0.1}, "lam is for potential='exponential' only"),
        ({"exponent": 3.0}, "exponent is for potential='power' only"),
        ({"samples": 10}, "samples is for learner='ftpl' only"),
        ({"seed": 3}, "seed is for learner='ftpl' only"),
        ({"horizon": 10.5}, "horizon must be a whole number, not 10.5"),
        ({"lipschitz": True}, "lipschitz must be a number, not True"),
        ({"lam": []}, "lam must be a number, or a list of one number per run"),
        ({"potential": bridle.potentials.Exponential([0.1, 0.2])}, "a sweep is made by giving lists to bridle.policy itself"),
    ],
)
def test_settings_that_would_be_dropped_are_refused(more, message):
    with pytest.raises(bridle.InputError) as caught:
        bridle.policy("sinha2024", bridle.Ball(2), **{"horizon": 10, "lipschitz": 1.0, **more})
    assert message in str(caught.value)


def test_the_bounds_of_a_sweep_are_those_of_its_runs():
    problem = bridle.problem("halfspaces", horizon=400, dim=3)
    values = (0.001, 0.01, 5.0)  # the last is too large for any proof
    sweep = bridle.policy_for("sinha2024", problem, lam=values).bound(problem.constants, 400)
    alone = [bridle.policy_for("sinha2024", problem, lam=lam).bound(problem.constants, 400) for lam in values]
    np.testing.assert_array_equal(sweep.ccv[:2], [bound.ccv for bound in alone[:2]])
    np.testing.assert_array_equal(sweep.regret[:2], [bound.regret for bound in alone[:2]])
    assert np.isnan(sweep.ccv[2])
    assert np.isnan(sweep.regret[2])
    assert sweep.why == f"run 2: {alone[2].why}"


def test_theorem_4_with_a_diameter_told_too_large_is_about_that_diameter():
    problem = bridle.problem("fixed", horizon=1000, dim=2)
    told, true = (
        bridle.policy_for("sinha2024-ocs", problem, **more).paper_bound(problem.constants, 1000) for more in ({"diameter": 2e5}, {})
    )
    assert told.interval > 100 * true.interval
    assert bridle.policy_for("sinha2024-ocs", problem, diameter=0.1).paper_bound(problem.constants, 1000).interval is None


@pytest.mark.parametrize("about", ["bound", "paper"])
def test_the_strong_ccv_bound_is_continuous_in_the_regret(about):
    """A regret of at least -O(log T) is enough for a CCV of O(log T): the comment after Theorem 2."""
    G, D, alpha, T, t = 2.0, 2.0, 1.0, 10_000, 5_000
    policy = bridle.policy("sinha2024-strong", bridle.Ball(2), horizon=T, lipschitz=G, modulus=alpha)
    facts = {"lipschitz": G, "diameter": D, "feasible": np.zeros(2), "modulus": alpha}
    ask = policy.bound if about == "bound" else policy.paper_bound
    least = [1.0, 0.0, -1e-9, -1.0, -log(T), -100.0, -1000.0, -G * D * t, -9.0 * G * D * t]
    ccv = [ask({**facts, "regret": r}, t).ccv for r in least]
    assert ccv[0] == ccv[1] == pytest.approx(ccv[2], rel=1e-9)
    assert ccv == sorted(ccv)
    assert ccv[4] < 1.5 * ccv[0] < ccv[6]
    assert ccv[-2:] == [pytest.approx(ask(facts, t).ccv)] * 2 if about == "bound" else ccv[-1] == ask(facts, t).ccv
    V, harm = 8.0 * G * G * (1.0 + log(T)) / alpha, sum(1.0 / s for s in range(1, t + 1))
    for r, found in zip(least, ccv, strict=True):
        behind = min(max(0.0, -r), G * D * t)
        if about == "bound":  # Q^2 <= c (V + 2 Q)^2 + V behind, c = G^2 harm / (2 alpha V)
            c = G * G * harm / (2.0 * alpha * V)
            assert found**2 == pytest.approx(c * (V + 2.0 * found) ** 2 + V * behind)
        elif -r <= G * D * t:  # Q^2 / 2 <= V (G^2 / alpha) (1 + ln t) + V behind
            assert found**2 / 2.0 == pytest.approx(V * (G * G / alpha * (1.0 + log(t)) + behind)) or found == ask(facts, t).ccv
