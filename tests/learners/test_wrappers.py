"""Wrappers: each is the loop one would write by hand, keeps its bound, and can be put over and under the others."""

from __future__ import annotations

from collections.abc import Iterator
from math import e, log, log2, pi, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import records
from bridle.core import Feedback, InputError, Round
from bridle.functions import RoundQuadratic
from bridle.learners.wrappers import doubling_epochs
from bridle.policies._sinha2024 import doubling_bound
from helpers.instances import constraint_at, cost_at, instances, moves, rounding
from helpers.learner_duels import KINDS, SCALE_FREE, Opponent, make

# --- by hand -----------------------------------------------------------------------------------------------------------------------------


class Restarted:
    """What Doubling must be: a fresh algorithm for every epoch, made for that many rounds, started where the last one stopped."""

    def __init__(self, made: Any, x1: np.ndarray, lengths: list[int]) -> None:
        self.made, self.lengths, self.ends = made, iter(lengths), []
        self.rounds = self.left = 0
        self._start(x1)

    def _start(self, x1: np.ndarray) -> None:
        self.left = next(self.lengths)
        self.inner = getattr(self.made(self.left), "record", self.made(self.left))
        self.state = self.inner.init(x1)

    def decide(self) -> np.ndarray:
        return self.inner.decide(self.state)

    def see(self, item: Any) -> None:
        self.state = (self.inner.step if hasattr(self.inner, "step") else self.inner.update)(self.state, item)
        self.rounds, self.left = self.rounds + 1, self.left - 1
        if self.left == 0:
            self.ends.append(self.rounds)
            self._start(self.decide())


DOUBLE, SQUARE = [2**m for m in range(20)], [2**2**m for m in range(5)]


def rounds_of(domain: Any, feasible: np.ndarray, G: float, rng: np.random.Generator, rounds: int, k: int) -> Iterator[Any]:
    """What an adaptive opponent plays at a decision: functions of the decision, one a round."""
    for t, (cost_move, constraint_move) in enumerate(moves(rng, rounds), 1):

        def play(x: np.ndarray, t: int = t, cost_move: str = cost_move, constraint_move: str = constraint_move) -> Feedback:
            cost = cost_at(cost_move, x, feasible, G, t, rng)
            constraints = [constraint_at(constraint_move, x, feasible, G, domain.diameter(), t, rng) for _ in range(k)]
            return Round(cost, tuple(constraints)).reveal(x)

        yield play


# --- Doubling ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("growth", "lengths", "ends"), [("double", DOUBLE, [1, 3, 7, 15, 31, 63]), ("square", SQUARE, [2, 6, 22])])
@settings(max_examples=20)
@given(instances())
def test_doubling_policy_is_the_loop_by_hand(growth, lengths, ends, instance):
    """It restarts after exactly these rounds, with the parameters of the next horizon, from where it was."""
    domain, feasible, G, rng = instance

    def made(T: int) -> Any:
        if growth == "double":
            return bridle.policy("sinha2024", domain, horizon=T, lipschitz=G, preset="practice")
        return bridle.policy("sinha2024-strong", domain, horizon=T, lipschitz=G, modulus=G / domain.diameter())

    doubling, by_hand = bridle.Doubling(made, growth=growth), Restarted(made, feasible, lengths)
    assert doubling.domain.diameter() == domain.diameter()
    state, restarts = doubling.init(feasible), []
    for t, play in enumerate(rounds_of(domain, feasible, G, rng, 70, 2), 1):
        x = by_hand.decide()
        np.testing.assert_allclose(doubling.decide(state), x, rtol=0.0, atol=1e-13 * domain.diameter())
        feedback = play(x)
        before, state = state, doubling.update(state, feedback)
        by_hand.see(feedback)
        if state.epoch != before.epoch:
            restarts.append(t)
            assert state.inner.Q == 0.0
            np.testing.assert_array_equal(doubling.decide(state), by_hand.decide())
        np.testing.assert_allclose(state.inner.Q, by_hand.state.Q, rtol=1e-13)
    assert restarts == by_hand.ends == ends


@pytest.mark.parametrize("kind", KINDS)
def test_doubling_learner_is_the_loop_by_hand(kind):
    """Every learner, told something else in every epoch (with other draws, where it has them); one run and several."""
    domain = bridle.Simplex(3, mass=2.0)

    def made(T: int) -> Any:
        if kind.startswith("ftpl"):
            return bridle.FTPL(domain, 3.0 / sqrt(T) if kind == "ftpl" else None, samples=20, seed=T)
        return make(kind, domain, 1.0 / sqrt(T))

    doubling = bridle.Doubling(made, epochs=8)
    assert not doubling.scale_free
    rng, x1 = np.random.default_rng(2), np.array([[0.5, 1.0, 0.5], [2.0, 0.0, 0.0], [0.0, 0.2, 1.8]])
    foes = [Opponent("seek", domain, rng) for _ in x1]
    singles = [Restarted(made, x, DOUBLE) for x in x1]
    one, several = doubling.init(x1[0]), doubling.init(x1)
    for t in range(1, 40):
        X = np.array([single.decide() for single in singles])
        np.testing.assert_allclose(doubling.decide(one), X[0], rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(doubling.decide(several), X, rtol=0.0, atol=1e-12)
        p = np.array([foe(x, t) for foe, x in zip(foes, X, strict=True)])
        one, several = doubling.step(one, p[0]), doubling.step(several, p)
        for single, row in zip(singles, p, strict=True):
            single.see(row)


def test_the_last_epoch_never_ends():
    learner = bridle.Doubling(lambda T: bridle.OGD(bridle.Ball(1, radius=1e6), step=1.0 / T), epochs=3)
    state = learner.init(np.zeros(1))
    for _ in range(20):
        state = learner.step(state, -np.ones(1))
    assert state.epoch == 2.0
    assert state.inner.seen == 17.0
    np.testing.assert_allclose(learner.decide(state), [1.0 + 1.0 + 17.0 / 4.0])


def test_horizons_are_what_make_is_asked_for():
    asked: dict[str, list[int]] = {"double": [], "square": []}
    for growth, seen in asked.items():
        bridle.Doubling(lambda T, seen=seen: seen.append(T) or bridle.OGD(bridle.Ball(1), 1.0 / T), growth=growth, epochs=6)
    assert asked == {"double": [1, 2, 4, 8, 16, 32], "square": [2, 4, 16, 256, 65536, 2**32]}


@given(st.integers(1, 2**62), st.integers(1, 62))
def test_epochs_add_up(T, m):
    """Also just before, at and just after the end of an epoch, where a logarithm would round."""
    for rounds in (T, max(1, 2**m - 2), 2**m - 1, 2**m):
        epochs = doubling_epochs(rounds)
        assert [length for length, _ in epochs] == [2**i for i in range(len(epochs))]
        assert all(played == length for length, played in epochs[:-1])
        assert 1 <= epochs[-1][1] <= epochs[-1][0]
        assert sum(played for _, played in epochs) == rounds


@settings(max_examples=100)
@given(st.integers(1, 3000), st.floats(-2.0, 2.0), st.floats(-2.0, 2.0))
def test_doubling_bound_is_the_sum_over_epochs_and_below_its_closed_form(T, log_G, log_D):
    """Epoch by epoch the explicit bounds of Algorithm 1; in all at most sqrt(2) G D [(sqrt(2) + 1)(sqrt(2T) - 1) + (M + 1) / 2]."""
    G, D = 10.0**log_G, 10.0**log_D
    domain = bridle.Ball(2, radius=D / 2.0)
    bound = doubling_bound(domain, {"lipschitz": G, "diameter": D, "feasible": domain.center()}, T)
    regret = ccv = 0.0
    for m in range(T.bit_length() + 1):
        n = min(2**m, T - (2**m - 1))
        if n > 0:
            lam, kappa = 0.5 / sqrt(2.0**m), 1.0 / sqrt(2.0)
            regret += min(sqrt(2.0) * G * D * sqrt(n) * (1.0 + lam), G * D * n)
            ccv += min(2.0 * G * D / lam * log((1.0 + kappa * sqrt(n) + 0.5 * n) / (1.0 - kappa * lam * sqrt(n))), G * D * n)
    assert bound.regret == pytest.approx(regret, rel=1e-12)
    assert bound.ccv == pytest.approx(ccv, rel=1e-12)
    M = int(log2(T))
    assert bound.regret <= sqrt(2.0) * G * D * ((sqrt(2.0) + 1.0) * (sqrt(2.0 * T) - 1.0) + (M + 1) / 2.0) * (1.0 + 1e-12)


@pytest.mark.parametrize("name", ["halfspaces", "fixed"])
@pytest.mark.parametrize("T", [1, 2, 5, 100, 300, 777])
def test_doubling_keeps_to_its_bound_on_problems(name, T):
    problem = bridle.problem(name, horizon=T, dim=4, seed=T)
    doubling = bridle.Doubling(lambda horizon: bridle.policy("sinha2024", problem.domain, horizon=horizon, lipschitz=1.0))
    trace, bound = bridle.play(doubling, problem), doubling_bound(problem.domain, problem.constants, T)
    assert bridle.regret(trace) <= bound.regret
    assert bridle.ccv(trace) <= bound.ccv


@settings(max_examples=40)
@given(instances(), st.sampled_from(["theory", "tight", "practice"]))
def test_doubling_keeps_to_its_bound_against_adaptive_opponents(instance, preset):
    domain, feasible, G, rng = instance
    D, T = domain.diameter(), 100
    facts = {"lipschitz": G, "diameter": D, "feasible": feasible}
    doubling = bridle.Doubling(lambda T: bridle.policy("sinha2024", domain, horizon=T, lipschitz=G, preset=preset), epochs=8)
    state, regret, ccv, size = doubling.init(domain.center()), 0.0, 0.0, 0.0
    for t, play in enumerate(rounds_of(domain, feasible, G, rng, T, 1), 1):
        feedback = play(doubling.decide(state))
        state = doubling.update(state, feedback)
        regret += feedback.f - float(feedback.round.cost.value(feasible))
        ccv += max(0.0, float(feedback.g[0]))
        size += G * (float(np.abs(feedback.x).sum() + np.abs(feasible).sum()) + D)
        if t in (1, 2, 6, 50, T):
            bound = doubling_bound(domain, facts, t, preset=preset)
            assert regret <= bound.regret + rounding(t, bound.regret, size)
            assert ccv <= bound.ccv + rounding(t, bound.ccv, size)


@settings(max_examples=40)
@given(instances(), st.floats(-2.0, 2.0))
def test_squaring_keeps_strongly_convex_regret_logarithmic(instance, log_modulus):
    """Epochs of 2, 4, 16, 256 rounds: Regret_t <= (2 G^2 / (3 alpha)) (M + 1 + 4 ln t), M the last epoch, after every round."""
    domain, feasible, _, rng = instance
    D, alpha, T = domain.diameter(), 10.0**log_modulus, 120
    G = alpha * D
    doubling = bridle.Doubling(
        lambda T: bridle.policy("sinha2024-strong", domain, horizon=T, lipschitz=G, modulus=alpha), growth="square", epochs=4
    )
    state, regret, size = doubling.init(domain.center()), 0.0, 0.0
    for t, (cost_move, constraint_move) in enumerate(moves(rng, T), 1):
        x, M = doubling.decide(state), state.epoch
        far = domain.project(x + (x - feasible) + D * rng.standard_normal(domain.dim))
        cost = RoundQuadratic(alpha, {"regret": feasible, "violate": far}.get(cost_move, domain.project(far - x)), 0.0 * x, 0.0)
        constraint = constraint_at(constraint_move, x, feasible, G, D, t, rng)
        state = doubling.update(state, Round(cost, (constraint,)).reveal(x))
        regret += float(cost.value(x)) - float(cost.value(feasible))
        size += alpha * float(np.abs(x).sum() + np.abs(feasible).sum() + np.abs(cost.c).sum()) ** 2
        assert regret <= 2.0 * G * G / (3.0 * alpha) * (M + 1.0 + 4.0 * log(t)) + rounding(t, size)


@pytest.mark.parametrize("T", [2, 22, 23, 300])
@pytest.mark.parametrize("name", ["halfspaces", "fixed"])
def test_squaring_on_problems(name, T):
    problem = bridle.problem(name, horizon=T, dim=3, modulus=0.5, seed=1)
    G, alpha = problem.constants["lipschitz"], 0.5
    doubling = bridle.Doubling(
        lambda T: bridle.policy("sinha2024-strong", problem.domain, horizon=T, lipschitz=G, modulus=alpha), growth="square"
    )
    M = sum(end < T for end in (2, 6, 22, 278))
    assert bridle.regret(bridle.play(doubling, problem)) <= 2.0 * G * G / (3.0 * alpha) * (M + 1.0 + 4.0 * log(T))


# --- one over another ---------------------------------------------------------------------------------------------------------------------


class InLogarithms:
    """A scale-free learner on gradients e^m u, whatever m: only ratios of them are ever formed."""

    def __init__(self, kind: str, domain: Any, x1: np.ndarray, Z: Any) -> None:
        self.kind, self.domain, self.x1, self.x, self.Z = kind, domain, x1, x1, Z
        self.m: list[float] = []
        self.u: list[np.ndarray] = []

    def step(self, m: float, u: np.ndarray) -> None:
        self.m.append(m)
        self.u.append(u)
        lengths = [2.0 * (m + log(float(np.linalg.norm(u)))) for m, u in zip(self.m, self.u, strict=True)]
        half = 0.5 * float(np.logaddexp.reduce(lengths))  # ln sqrt(S)
        shares = np.array([np.exp(m - half) * u for m, u in zip(self.m, self.u, strict=True)])  # p_s / sqrt(S)
        D = self.domain.diameter()
        if self.kind == "adagrad":
            self.x = self.domain.project(self.x - D / sqrt(2.0) * shares[-1])
        elif self.kind == "adaftrl":
            self.x = self.domain.project(self.x1 - D / sqrt(5.5) * shares.sum(axis=0))
        else:
            self.x = self.domain.linear_argmin(shares.sum(axis=0) + (pi * self.domain.dim) ** -0.25 * self.Z).mean(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCALE_FREE)
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_algorithm_1_with_exponents_past_overflow(kind, seed):
    """lam Q reaches some 2000, where e^{lam Q} is no float; the decisions are those of the exact weights, computed in logarithms."""
    rng = np.random.default_rng(seed)
    domain, V, beta, lam = bridle.Box(-np.ones(3), np.ones(3)), 0.7, 0.5, 0.9
    inner = make(kind, domain)
    policy = bridle.Lyapunov(inner, bridle.potentials.Exponential(lam), V, beta)
    x1 = inner.decide(inner.init(np.array([0.3, -0.2, 0.9])))
    exact, Q = InLogarithms(kind, domain, x1, getattr(inner, "Z", None)), 0.0
    state = policy.init(np.array([0.3, -0.2, 0.9]))
    for _ in range(120):
        x = policy.decide(state)
        np.testing.assert_allclose(x, exact.x, rtol=0.0, atol=1e-8)
        g, df, dg = float(rng.uniform(-60.0, 120.0)), rng.standard_normal(3), rng.standard_normal(3)
        state = policy.update(state, Feedback(x, 0.0, df, np.array([g]), dg[None]))
        Q += beta * max(g, 0.0)
        # V beta df + lam e^{lam Q} beta dg, over e^{lam Q} where the constraint counts
        exact.step(*((lam * Q, V * beta * np.exp(-lam * Q) * df + lam * beta * dg) if g > 0.0 else (0.0, V * beta * df)))
    np.testing.assert_allclose(state.Q, Q, rtol=1e-12)
    assert lam * Q > 710.0
    assert all(np.isfinite(leaf).all() for leaf in records.leaves(state).values())


BAD = [
    (lambda: bridle.Doubling(5), r"make must be callable with a horizon, not 5"),
    (lambda: bridle.Doubling(lambda T: T), r"make\(1\) must be a learner or a policy, not 1"),
    (lambda: bridle.Doubling(lambda T: bridle.OGD(bridle.Ball(1), 1.0), growth="cube"), r"unknown growth 'cube'"),
    (lambda: bridle.Doubling(lambda T: bridle.OGD(bridle.Ball(1), 1.0), epochs=0), r"epochs must be 1 or above, not 0"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_one_error_with_name_and_value(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_epochs_must_be_made_of_the_same_parts():
    """Also inside: the learner of one epoch would otherwise run as that of another."""
    ball = bridle.Ball(2)

    def made(T: int) -> Any:
        inside = bridle.AdaGrad(ball) if T < 4 else bridle.OGD(ball, 1.0 / e)
        return bridle.Lyapunov(inside, bridle.potentials.Quadratic(), 1.0, 1.0)

    with pytest.raises(InputError, match="one kind of algorithm"):
        bridle.Doubling(made, epochs=4)
