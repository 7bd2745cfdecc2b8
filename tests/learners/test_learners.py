"""Learners: the updates on the page, regret bounds that no opponent breaks, and what the reduction relies on (scale, purity, batches)."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import bridle
from bridle import learners, records
from bridle.core import InputError
from helpers.instances import DOMAINS, instances, make_domain, rounding
from helpers.learner_duels import KINDS, OPPONENTS, ROUNDS, SCALE_FREE, Moment, Opponent, duel, make, unit


def on_the_page(kind: str, domain: Any, learner: Any, x1: np.ndarray, p: np.ndarray, size: float) -> np.ndarray:
    """The decision after the gradients p, from the formulas alone: every sum taken anew."""
    D, x = domain.diameter(), x1
    if kind == "adaftrl":  # lazy: from x_1 at once
        S = (p**2).sum()
        return domain.project(x1 - size * D / sqrt(5.5) * p.sum(axis=0) / sqrt(S)) if S > 0.0 else x1
    if kind.startswith("ftpl"):
        scale = 3.0 * size if kind == "ftpl" else (pi * domain.dim) ** -0.25 * sqrt((p**2).sum()) or 1.0
        return np.mean([domain.linear_argmin(p.sum(axis=0) + scale * z) for z in learner.Z], axis=0)
    for t in range(1, len(p) + 1):
        S = (p[:t] ** 2).sum()
        step = {
            "ogd": 0.3 * size * D,
            "ogd-sqrt": 0.7 * size * D / sqrt(t),
            "curved": size * D / (2.0 * t),
            "adagrad": size * D / sqrt(2.0 * S) if S > 0.0 else 0.0,
        }[kind]
        x = domain.project(x - step * p[t - 1])
    return x


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(instances(), st.integers(0, 12), st.integers(0, 3), st.sampled_from([0.1, 1.0, 7.0]))
def test_the_update_is_the_one_on_the_page(kind, instance, rounds, idle, size):
    """Also after rounds of zero gradients, and when told another diameter than the domain's."""
    domain, x1, _, rng = instance
    learner = make(kind, domain, size)
    p = 10.0 ** rng.uniform(-2.0, 1.0, (idle + rounds, 1)) * rng.standard_normal((idle + rounds, domain.dim))
    p[:idle] = 0.0
    state = learner.init(x1)
    for row in p:
        state = learner.step(state, row)
    x = learner.decide(state)
    assert domain.contains(x)
    slack = 1e-9 * (domain.diameter() + float(np.abs(domain.center()).max()))
    np.testing.assert_allclose(x, on_the_page(kind, domain, learner, x1, p, size), rtol=0.0, atol=slack)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", DOMAINS)
def test_many_runs_are_the_loop_over_runs(kind, where):
    """Also with as many runs as coordinates, and with a parameter of its own for each run."""
    rng = np.random.default_rng(5)
    domain = make_domain(where, 3, 2.0, rng)
    d = domain.dim
    for runs in (1, 2, d):
        X = domain.project(domain.center() + rng.standard_normal((runs, d)))
        sizes = rng.uniform(0.5, 2.0, runs)
        singles = [make(kind, domain, size) for size in sizes]
        field = {"curved": "modulus", "adagrad": "diameter", "adaftrl": "c", "ftpl": "scale", "ftpl-adaptive": "c"}.get(kind, "step_size")
        wide = singles[0]._replace(**{field: np.array([[getattr(single, field)] for single in singles])})
        state, states = wide.init(X), [single.init(x) for single, x in zip(singles, X, strict=True)]
        for t in range(6):
            p = rng.standard_normal((runs, d)) * (t > 1)
            state = wide.step(state, p)
            states = [single.step(one, row) for single, one, row in zip(singles, states, p, strict=True)]
            expected = [single.decide(one) for single, one in zip(singles, states, strict=True)]
            assert wide.decide(state).shape == (runs, d)
            np.testing.assert_allclose(wide.decide(state), expected, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_changes_nothing_it_was_given(kind):
    domain = bridle.Ball(radius=2.0, center=[1.0, -1.0, 0.5])
    rng, learner = np.random.default_rng(0), make(kind, domain)
    for lead in ((), (4,)):
        x1 = domain.center() + 0.1 * rng.standard_normal((*lead, 3))
        x1.flags.writeable = False
        state = learner.init(x1)
        for _ in range(4):
            p = rng.standard_normal((*lead, 3))
            p.flags.writeable = False
            kept = records.transform(np.array, state)
            for leaf in records.leaves(state).values():
                if isinstance(leaf, np.ndarray):
                    leaf.flags.writeable = False
            once, again = learner.step(state, p), learner.step(state, p)
            for before, after in zip(records.leaves(kept).values(), records.leaves(state).values(), strict=True):
                np.testing.assert_array_equal(before, after)
            for a, b in zip(records.leaves(once).values(), records.leaves(again).values(), strict=True):
                np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(learner.decide(once), learner.decide(once))
            state = once


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_decision(kind):
    """x_1, for all but follow-the-perturbed-leader, whose first decision is its own."""
    domain, x1 = bridle.Box([-1.0, 0.0], [1.0, 4.0]), np.array([0.25, 3.0])
    learner = make(kind, domain)
    if kind.startswith("ftpl"):
        np.testing.assert_allclose(learner.decide(learner.init(x1)), domain.center(), atol=1e-12)
        np.testing.assert_array_equal(learner.decide(learner.init(x1)), learner.decide(learner.init(0.0 * x1)))
    else:
        np.testing.assert_array_equal(learner.decide(learner.init(x1)), x1)


# --- regret ----------------------------------------------------------------------------------------------------------------------------


class Claim(NamedTuple):
    """A learner and the bound on its regret after each round."""

    learner: Any
    bound: Callable[[Moment], float]


def claim(kind: str, domain: Any, G: float, ratio: float) -> Claim:
    """`ratio` is what the step, or the diameter the learner is told, is off by."""
    D = domain.diameter()
    step = ratio * D / (G * sqrt(ROUNDS))
    if kind == "ogd":
        return Claim(bridle.OGD(domain, step), lambda at: learners.ogd_regret(D, G, step, at.t))
    if kind == "ogd-sqrt":
        step = ratio * D / G
        return Claim(bridle.OGD(domain, step, decay="sqrt"), lambda at: learners.decreasing_ogd_regret(D, G, step, at.t))
    if kind == "adagrad":
        return Claim(bridle.AdaGrad(domain), lambda at: learners.adagrad_regret(D, at.S))
    if kind == "adagrad-told":
        told = bridle.AdaGrad(domain, diameter=ratio * D)
        return Claim(told, lambda at: told.adaptivity(D) * sqrt(at.S))
    if kind == "adaftrl":
        return Claim(bridle.AdaFTRL(domain), lambda at: learners.adaftrl_regret(D, at.S, at.longest))
    if kind == "adaftrl-told":
        told = bridle.AdaFTRL(domain, diameter=ratio * D)
        return Claim(told, lambda at: told.adaptivity(D) * sqrt(at.S))
    if kind == "ftpl-mean":  # for the exact expectation; the Monte-Carlo mean is far closer to it than the bound is to the regret
        scale = ratio * G * sqrt(ROUNDS)
        return Claim(bridle.FTPL(domain, scale, samples=100), lambda at: learners.ftpl_regret(D, domain.dim, scale, at.S))
    if kind == "ftpl-adaptive-mean":
        return Claim(bridle.FTPL(domain, samples=100), lambda at: learners.adaptive_ftpl_regret(D, domain.dim, at.S))
    raise ValueError(kind)


CLAIMS = ("ogd", "ogd-sqrt", "adagrad", "adagrad-told", "adaftrl", "adaftrl-told", "ftpl-mean", "ftpl-adaptive-mean")


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLAIMS)
@settings(max_examples=80)
@given(instances(), st.sampled_from(OPPONENTS), st.floats(-1.0, 1.0))
def test_no_opponent_breaks_the_bound(kind, instance, opponent, log_ratio):
    """Against every fixed action, after every round, on every domain; no tolerance beyond rounding."""
    domain, x1, G, rng = instance
    learner, bound = claim(kind, domain, G, 10.0**log_ratio)
    for at in duel(learner, domain, x1, Opponent(opponent, domain, rng), G):
        limit = bound(at)
        assert at.regret <= limit + rounding(at.t, limit, at.size) + 1e-12 * at.size


@settings(max_examples=100)
@given(instances(), st.sampled_from(["scatter", "flee", "chase"]), st.floats(-2.0, 2.0), st.sampled_from(["own", "same", "linear"]))
def test_curved_losses_keep_to_their_bound(instance, move, log_modulus, moduli):
    """Losses (h_t/2)|x - c_t|^2, c_t in the domain: the bound is attained. With linear ones <a_t, x> among them it holds."""
    domain, x, _, rng = instance
    D, alpha = domain.diameter(), 10.0**log_modulus
    learner = bridle.StronglyConvexOGD(domain, modulus=alpha)
    state = learner.init(x)
    lengths, H, paid, size = [], [], 0.0, 0.0
    pull, squares = np.zeros(domain.dim), 0.0  # the sum of the losses is (sum H / 2)|u|^2 - <pull, u> + squares
    for t in range(1, ROUNDS + 1):
        x = learner.decide(state)
        assert domain.contains(x)
        c = domain.project(domain.center() + D * rng.standard_normal(domain.dim))
        if move == "flee":  # the point of the domain that is far from here
            c = domain.linear_argmin(x - domain.center()) if t % 2 else domain.linear_argmin(rng.standard_normal(domain.dim))
        elif move == "chase":
            c = domain.project(x + 0.1 * D * rng.standard_normal(domain.dim))
        h, a = alpha, np.zeros(domain.dim)
        if moduli != "same":
            h = alpha * 10.0 ** rng.uniform(-2.0, 2.0)
        if moduli == "linear" and t > 1 and rng.random() < 0.5:
            h, a = 0.0, alpha * D * rng.standard_normal(domain.dim)
        p = h * (x - c) + a
        state = learner.step(state, p) if moduli == "same" else learner.step(state, p, h)
        lengths.append(float(np.linalg.norm(p)))
        H.append(h)
        away = x - c
        paid += 0.5 * h * float(away @ away) + float(a @ x)
        pull, squares = pull + h * c - a, squares + 0.5 * h * float(c @ c)
        u = domain.project(pull / sum(H))
        best = 0.5 * sum(H) * float(u @ u) - float(pull @ u) + squares
        bound = learners.strongly_convex_regret(lengths, H)
        size += h * float((np.abs(x) + np.abs(c)).sum()) ** 2 + float(np.abs(a) @ np.abs(x)) + float(np.linalg.norm(p)) * D
        slack = rounding(t, bound, size) + 1e-12 * size
        assert paid - best <= bound + slack
        if moduli != "linear":
            assert paid - best >= bound - slack  # attained: the decision is the best action so far


@pytest.mark.parametrize("kind", CLAIMS)
@pytest.mark.parametrize("opponent", OPPONENTS)
def test_no_opponent_breaks_the_bound_where_it_is_nearly_attained(kind, opponent):
    """In one and two dimensions, from the middle and from a corner, with steps far too short, right and far too long."""
    for domain in (bridle.Box([-1.0], [1.0]), bridle.Ball(2)):
        for x1 in (domain.center(), domain.linear_argmin(np.ones(domain.dim))):
            for ratio in (0.2, 1.0, 6.0):
                learner, bound = claim(kind, domain, 1.0, ratio)
                for at in duel(learner, domain, x1, Opponent(opponent, domain, np.random.default_rng(0))):
                    assert at.regret <= bound(at) * (1.0 + 1e-12) + 1e-12 * at.t


def test_ogd_bound_is_attained():
    """A constant pull from one end of the domain to the other, in exactly T steps."""
    T, G, D = 8, 2.0, 4.0
    step = D / (G * T)
    domain, opponent = bridle.Box([-2.0], [2.0]), lambda x, t: np.array([1.0])
    *_, last = duel(bridle.OGD(domain, step), domain, np.array([2.0]), opponent, G, rounds=T)
    assert last.regret == pytest.approx(learners.ogd_regret(D, G, step, T), rel=1e-12)
    (only,) = duel(bridle.OGD(domain, D / G, decay="sqrt"), domain, np.array([2.0]), opponent, G, rounds=1)
    assert only.regret == pytest.approx(learners.decreasing_ogd_regret(D, G, D / G, 1), rel=1e-12)


def test_bounds_are_the_published_numbers():
    D, G, T, d = 3.0, 2.0, 49, 5
    S = G * G * T
    assert learners.ogd_regret(D, G, D / (G * sqrt(T)), T) == pytest.approx(G * D * sqrt(T))
    assert learners.decreasing_ogd_regret(D, G, D / (sqrt(2.0) * G), T) <= sqrt(2.0) * G * D * sqrt(T)
    assert learners.decreasing_ogd_regret(D, G, 1.0, T) == pytest.approx(D * D / 2.0 * sqrt(T) + (sqrt(T) - 0.5) * G * G)
    assert learners.adagrad_regret(D, S) == pytest.approx(sqrt(2.0) * D * sqrt(S))
    assert bridle.AdaGrad(bridle.Ball(2, radius=D / 2.0)).adaptivity(D) == pytest.approx(sqrt(2.0) * D)
    assert learners.strongly_convex_regret(np.full(T, G), 0.5) == pytest.approx(G * G * sum(1.0 / s for s in range(1, T + 1)))
    assert learners.adaftrl_regret(D, S, G) == pytest.approx(2.3452 * D * sqrt(S) + 3.5 * D * G, rel=1e-4)
    assert bridle.AdaFTRL(bridle.Ball(2, radius=D / 2.0)).adaptivity(D) == pytest.approx(5.8452 * D, rel=1e-4)
    best = 0.5 * (2.0 / pi) ** 0.25 * d**-0.25 * sqrt(S)
    assert learners.ftpl_regret(D, d, best, S) == pytest.approx((2.0 / pi) ** 0.25 * d**0.25 * D * sqrt(S))
    assert learners.ftpl_regret(D, d, 2.0 * best, S) > learners.ftpl_regret(D, d, best, S) < learners.ftpl_regret(D, d, best / 2.0, S)
    assert learners.adaptive_ftpl_regret(D, d, S) == pytest.approx((2.0 * (5.0 / pi) ** 0.25 + 2.0 + sqrt(2.0)) * D * sqrt(S))


# --- follow the perturbed leader, where its expectation has a closed form -----------------------------------------------------------------


class ExactFTPL(NamedTuple):
    """On a box the expectation is, in each coordinate, middle - halfwidth * (2 Phi(L / scale) - 1), Phi the normal CDF."""

    domain: Any
    scale: float | None  # None: grown along as the adaptive form does

    def init(self, x1: np.ndarray) -> tuple[np.ndarray, float]:
        return 0.0 * x1, 0.0

    def decide(self, state: tuple[np.ndarray, float]) -> np.ndarray:
        total, S = state
        scale = self.scale if self.scale is not None else (pi * self.domain.dim) ** -0.25 * sqrt(S) if S > 0.0 else 1.0
        return self.domain.center() - 0.5 * (self.domain.high - self.domain.low) * (2.0 * ndtr(total / scale) - 1.0)

    def step(self, state: tuple[np.ndarray, float], grad: np.ndarray) -> tuple[np.ndarray, float]:
        return state[0] + grad, state[1] + float(grad @ grad)


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from(OPPONENTS), st.floats(-3.0, 3.0), st.floats(-1.5, 1.5), st.booleans())
def test_exact_ftpl_keeps_to_its_bound(seed, d, opponent, log_size, log_scale, adaptive):
    rng = np.random.default_rng(seed)
    domain = make_domain("box", d, 10.0**log_size, rng)
    D, scale = domain.diameter(), 10.0**log_scale * sqrt(ROUNDS)
    for at in duel(ExactFTPL(domain, None if adaptive else scale), domain, domain.center(), Opponent(opponent, domain, rng)):
        limit = learners.adaptive_ftpl_regret(D, d, at.S) if adaptive else learners.ftpl_regret(D, d, scale, at.S)
        assert at.regret <= limit + rounding(at.t, limit, at.size)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize(("opponent", "seed"), [("random", 0), ("seek", 1), ("blocks", 2), ("growing", 3)])
def test_monte_carlo_mean_is_close_to_the_expectation(adaptive, opponent, seed):
    """Six standard errors, at every round of a duel; the exact learner is what the opponent sees."""
    rng, samples = np.random.default_rng(seed), 20_000
    domain = make_domain("box", 4, 3.0, rng)
    scale = None if adaptive else 4.0
    exact, sampled = ExactFTPL(domain, scale), bridle.FTPL(domain, scale, samples=samples, seed=seed)
    foe = Opponent(opponent, domain, rng)
    one, other = exact.init(domain.center()), sampled.init(domain.center())
    halfwidth = 0.5 * (domain.high - domain.low)
    for t in range(1, 31):
        x = exact.decide(one)
        lean = (x - domain.center()) / halfwidth
        error = 6.0 * halfwidth * np.sqrt((1.0 - lean**2) / samples) + 30.0 * halfwidth / samples
        assert (np.abs(sampled.decide(other) - x) <= error).all()
        p = foe(x, t)
        one, other = exact.step(one, p), sampled.step(other, p)


# --- scale -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=60)
@given(instances(), st.sampled_from(SCALE_FREE), st.floats(-6.0, 6.0), st.sampled_from(OPPONENTS))
def test_scale_free_learners_do_not_see_the_scale(instance, kind, log_factor, opponent):
    """The same decisions on gradients times any constant; and `rescale` is what that constant would have left behind, at any time."""
    domain, x1, _, rng = instance
    factor, learner = 10.0**log_factor, make(kind, domain)
    assert learner.scale_free
    slack = 1e-9 * domain.diameter()
    foe = Opponent(opponent, domain, rng)
    state, scaled = learner.init(x1), learner.init(x1)
    for t in range(1, 41):
        x = learner.decide(state)
        np.testing.assert_allclose(learner.decide(scaled), x, rtol=0.0, atol=slack)
        rescaled = learner.rescale(state, factor)
        for a, b in zip(records.leaves(rescaled).values(), records.leaves(scaled).values(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12 * max(1.0, factor * t, domain.diameter()) + slack)
        p = foe(x, t)
        there = learner.step(rescaled, factor * p)
        state, scaled = learner.step(state, p), learner.step(scaled, factor * p)
        np.testing.assert_allclose(learner.decide(there), learner.decide(state), rtol=0.0, atol=slack)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(SCALE_FREE)))
def test_the_others_say_that_they_do(kind):
    learner = make(kind, bridle.Ball(2))
    assert not learner.scale_free
    assert not hasattr(learner, "rescale")


@given(st.floats(-150.0, 150.0), st.integers(0, 5), st.integers(1, 4))
def test_adagrad_waits_for_a_gradient_and_then_moves_by_its_first_step(log_length, idle, d):
    """By the diameter over root two, however short or long the gradient; no division by zero before it, for one run or several."""
    rng = np.random.default_rng(idle)
    domain, ray = bridle.Ball(d, radius=10.0), unit(rng.standard_normal(d))
    learner = bridle.AdaGrad(domain, diameter=3.0)
    x1 = rng.uniform(-1.0, 1.0, d)
    for lead in ((), (2,)):
        start = np.broadcast_to(x1, (*lead, d)).copy()
        state = learner.init(start)
        for _ in range(idle):
            state = learner.step(state, np.zeros((*lead, d)))
            np.testing.assert_array_equal(learner.decide(state), start)
        move = learner.decide(learner.step(state, np.broadcast_to(10.0**log_length * ray, (*lead, d)))) - start
        np.testing.assert_allclose(move, np.broadcast_to(-3.0 / sqrt(2.0) * ray, move.shape), rtol=1e-9, atol=1e-9)


def test_runs_that_have_seen_nothing_stay_beside_those_that_have():
    for kind in SCALE_FREE:
        domain = bridle.Box([-1.0, -1.0], [1.0, 1.0])
        learner = make(kind, domain)
        state = learner.step(learner.init(np.zeros((2, 2))), np.array([[0.0, 0.0], [1.0, -1.0]]))
        x = learner.decide(state)
        np.testing.assert_allclose(x[0], [0.0, 0.0], atol=1e-12)
        assert x[1, 0] < 0.0 < x[1, 1]


BAD = [
    (lambda: bridle.OGD(bridle.Ball(2), step=0.0), r"step must be above 0, not 0\.0"),
    (lambda: bridle.OGD(bridle.Ball(2), step="small"), r"step must be a number, not 'small'"),
    (lambda: bridle.OGD(bridle.Ball(2), step=[0.1, -0.1]), r"step must be above 0, not .*-0\.1"),
    (lambda: bridle.OGD(bridle.Ball(2), step=0.1, decay="linear"), r"unknown decay 'linear'"),
    (lambda: bridle.StronglyConvexOGD(bridle.Ball(2), modulus=-1.0), r"modulus must be above 0, not -1\.0"),
    (lambda: bridle.AdaGrad(bridle.Ball(2), diameter=0.0), r"diameter must be above 0, not 0\.0"),
    (lambda: bridle.AdaGrad(bridle.Box([1.0], [1.0])), r"domain must hold more than one point"),
    (lambda: bridle.AdaFTRL(bridle.Ball(2), diameter=np.nan), r"diameter must be finite, not nan"),
    (lambda: bridle.FTPL(bridle.Ball(2), samples=1), r"samples must be 2 or above, not 1"),
    (lambda: bridle.FTPL(bridle.Ball(2), seed=0.5), r"seed must be a whole number, not 0\.5"),
    (lambda: bridle.FTPL(bridle.Ball(2), scale=0), r"scale must be above 0, not 0"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_one_error_with_name_and_value(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("initial", [1e-3, 5.0])
def test_adagrad_whose_sum_starts_above_zero(initial):
    ball, p = bridle.Ball(2, radius=100.0), np.array([3.0, 4.0])
    learner = bridle.AdaGrad(ball, diameter=10.0, initial=initial)
    state = learner.init(np.zeros(2))
    for seen in (25.0, 50.0):
        before = learner.decide(state)
        state = learner.step(state, p)
        np.testing.assert_allclose(learner.decide(state), before - 10.0 / np.sqrt(2.0 * (initial + seen)) * p, rtol=1e-14)
    shrunk = learner.step(learner.rescale(state, 1e-3), 1e-3 * p)
    np.testing.assert_allclose(learner.decide(shrunk), learner.decide(learner.step(state, p)), rtol=1e-14)
    policy = bridle.policy("sinha2024", ball, horizon=10, lipschitz=1.0, initial=initial)
    assert "no proved regret bound" in policy.bound({"lipschitz": 1.0, "diameter": 200.0, "feasible": np.zeros(2)}, 10).why


def test_a_start_of_the_sum_is_for_adagrad_alone():
    with pytest.raises(bridle.InputError, match="initial must be 0 or above"):
        bridle.AdaGrad(bridle.Ball(2), initial=-1.0)
    with pytest.raises(bridle.InputError, match="initial is for learner='adagrad' only, not for 'ogd'"):
        bridle.policy("sinha2024", bridle.Ball(2), horizon=10, lipschitz=1.0, learner="ogd", initial=1.0)
