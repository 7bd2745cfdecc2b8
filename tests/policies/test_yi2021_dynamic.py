"""`yi2021` against every path: the lines of its proof in every round, its update by hand, and its bounds at fixed numbers."""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

import bridle
from bridle import Affine, Round
from bridle.core import Feedback
from bridle.policies._yi2021_dynamic import count, path_regret, priors, steps_violation

MOVES = ("random", "away", "flee", "jumps")


def place(kind: str, d: int, size: float) -> Any:
    return bridle.Ball(d, radius=size) if kind == "ball" else bridle.Box(-size, size, dim=d)


def game(kind: str, d: int, k: int, size: float, G: float, move: str, T: int, seed: int) -> dict[str, float]:
    """Fixed constraints through the centre, costs that look at the decision, a feasible path; every line of the proof in every round."""
    rng, domain = np.random.default_rng(seed), place(kind, d, size)
    D = float(domain.diameter())
    normals = rng.standard_normal((k, d))
    normals *= G / np.linalg.norm(normals, axis=1, keepdims=True)
    policy = bridle.policy("yi2021-dynamic", domain, horizon=T, lipschitz=G, constraints=k)
    record, state = policy.record, policy.record.init(domain.center())
    alpha, pi, K = np.asarray(record.inner.alpha)[:, 0], record.top.prior, len(record.top.prior)
    kept = [p for p in (domain.project(size * rng.standard_normal(d)) for _ in range(60)) if (normals @ p <= 0.0).all()] or [
        0.0 * normals[0]
    ]
    paths = [[kept[0]] * T, [kept[(t * 5 // T) % len(kept)] for t in range(T)], [kept[t % len(kept)] for t in range(T)]]
    experts, ccv = np.zeros((len(paths), K)), np.zeros(k)
    behind, moved, share = np.zeros(len(paths)), np.zeros(len(paths)), {"expert": 0.0, "regret": 0.0, "ccv": 0.0}
    for t in range(T):
        x = record.decide(state)
        assert domain.contains(x, 1e-7)
        u = np.array([path[t] for path in paths])
        push = {"away": x - u[0], "flee": u[2] - x, "jumps": (1.0 if t % 20 < 10 else -1.0) * normals[0]}.get(move, rng.standard_normal(d))
        df = G * push / max(np.linalg.norm(push), 1e-12)
        own = np.asarray(state.experts.x)
        experts += own @ df - (u @ df)[:, None]
        behind += float(df @ x) - u @ df
        moved += 0.0 if t == 0 else np.linalg.norm(u - np.array([path[t - 1] for path in paths]), axis=1)
        ccv += np.maximum(normals @ x, 0.0)
        state = record.update(state, Feedback(x, float(df @ x), df, normals @ x, normals))
        rounding = 1e-8 * G * D * (t + 1)
        queues = 0.5 * (np.asarray(state.experts.q) ** 2).sum(axis=1)  # |q_t|, which is no more than |q_{t+1}|
        proved = 0.5 * G * G * alpha * (t + 1) + (D * D + 2.0 * D * moved[:, None]) / alpha
        assert (experts + queues <= proved + rounding).all()
        share["expert"] = max(share["expert"], float(((experts + queues) / proved).max()))
        for regret, P in zip(behind, moved, strict=True):
            bound = float(path_regret(record, G, D, t + 1, P))
            assert regret <= bound + rounding
            share["regret"] = max(share["regret"], regret / bound)
        limit = float(steps_violation(record, G, D, t + 1))
        assert ccv.max() <= limit + rounding
        share["ccv"] = max(share["ccv"], float(ccv.max()) / limit)
    assert pi.sum() == pytest.approx(1.0)
    return share


@pytest.mark.parametrize("move", MOVES)
def test_the_lines_of_the_proof_in_every_round(move, record_property):
    worst: dict[str, float] = {}
    cases = [("ball", 1, 1, 1.0, 1.0, 150), ("box", 3, 1, 1e-3, 1e3, 90), ("ball", 30, 1, 1e3, 1e-6, 50), ("box", 1, 1, 1.0, 1.0, 1)]
    for i, (kind, d, k, size, G, T) in enumerate(cases):
        for name, value in game(kind, d, k, size, G, move, T, i).items():
            worst[name] = max(worst.get(name, 0.0), value)
    for name, value in worst.items():
        record_property(name, float(value))


def test_several_constraints_in_every_round():
    game("box", 2, 2, 1.0, 1.0, "away", 30, 4)


def nearest(low: float, high: float, f: Any, points: list[float]) -> float:
    """The least of a convex function that is made of parabolas, on an interval, among its candidates."""
    return min([low, high, *(min(max(p, low), high) for p in points)], key=f)


def test_the_update_is_its_formulas():
    """On an interval with the constraint 2 x - 0.5 <= 0: every proximal step from its candidates, every weight from its sum."""
    T, G, low, high = 40, 2.0, -1.0, 1.5
    D, a, b, rng = high - low, 2.0, 0.5, np.random.default_rng(3)
    K = 1 + int(np.ceil(0.5 * np.log2(1 + 2 * T)))
    alpha = [2**i * sqrt(2) * D / (G * sqrt(T)) for i in range(K)]
    pi = [(1 + 1 / K) / ((i + 1) * (i + 2)) for i in range(K)]
    record = bridle.policy("yi2021-dynamic", bridle.Box(low, high, dim=1), horizon=T, lipschitz=G).record
    state = record.init(np.array([0.1]))
    x, q, L, Delta, weights = [0.1] * K, [0.0] * K, [0.0] * K, 0.0, list(pi)
    for t in range(T):
        played = sum(w * p for w, p in zip(weights, x, strict=True))
        assert record.decide(state)[0] == pytest.approx(played, abs=1e-9)
        slope = -G if t % 7 else float(rng.uniform(-G, G))
        state = record.update(state, Feedback(np.array([played]), 0.0, np.array([slope]), np.array([a * played - b]), np.array([[a]])))
        loss = [slope * p for p in x]
        least = min(loss)
        loss = [value - least for value in loss]
        if Delta > 0.0:
            mix = -Delta * log(sum(w * exp(-value / Delta) for w, value in zip(weights, loss, strict=True)))
        else:
            mix = min(before + value for before, value in zip(L, loss, strict=True)) - min(L)
        Delta += max(0.0, sum(w * value for w, value in zip(weights, loss, strict=True)) - mix)
        L = [before + value for before, value in zip(L, loss, strict=True)]
        if Delta > 0.0:
            raw = [p * exp(-(value - min(L)) / Delta) for p, value in zip(pi, L, strict=True)]
            weights = [r / sum(raw) for r in raw]
        for i in range(K):
            gamma = 1 / (sqrt(2) * G) / sqrt(alpha[i])
            h = gamma * max(a * x[i] - b, 0.0)
            q[i] += h
            price, here = gamma * (q[i] + h), x[i]

            def cost(y: float, i: int = i, price: float = price, here: float = here, slope: float = slope) -> float:
                return slope * y + price * max(a * y - b, 0.0) + (y - here) ** 2 / alpha[i]

            candidates = [here - 0.5 * alpha[i] * slope, here - 0.5 * alpha[i] * (slope + price * a), b / a]
            x[i] = nearest(low, high, cost, candidates)


@pytest.mark.parametrize("k", [1, 2])
def test_bounds_at_fixed_numbers(k):
    T, t, G, D, told, P = 700, 500, 1.5, 2.0, 1.7, 3.3
    policy = bridle.policy("yi2021-dynamic", bridle.Ball(2), horizon=T, lipschitz=told, constraints=k)
    K = 7  # 2^6 = 64 >= sqrt(1401) = 37.4 > 2^5
    assert count(T) == K
    each, queues = [], 0.0
    for i in range(K):
        alpha = 2.0**i * sqrt(2) * D / (told * sqrt(T))
        prior = 8 / 7 / ((i + 1) * (i + 2))
        each.append((0.5 * G * G * alpha * t, D * D / alpha, 2 * D * P / alpha, sqrt(1.25) * (1 - log(prior)) * G * D * sqrt(t)))
        queues += sqrt(alpha) * sqrt(2 * k) * told * sqrt(2 * (G * D * 499 + 0.5 * G * G * alpha * 499 + D * D / alpha))
    facts = {"lipschitz": G, "diameter": D, "feasible": np.zeros(2), "time_varying": False, "affine": True, "constraints": k}
    bound = policy.bound(facts, t)
    assert bound.regret == pytest.approx(min(a + b + d for a, b, _, d in each), rel=1e-12)
    assert bound.ccv == pytest.approx(min(queues, G * D * t), rel=1e-12)
    assert float(steps_violation(policy.record, G, D, t)) == pytest.approx(queues, rel=1e-12)
    assert float(steps_violation(policy.record, G, D, 1)) == pytest.approx(sqrt(k) * G * D, rel=1e-12)
    assert float(path_regret(policy.record, G, D, t, P)) == pytest.approx(min(sum(parts) for parts in each), rel=1e-12)
    assert bound.dynamic is None
    assert policy.bound({**facts, "path": P}, t) == bound._replace(dynamic=float(path_regret(policy.record, G, D, t, P)))
    assert policy.bound({**facts, "path": 1e9}, t).dynamic == G * D * t
    assert policy.bound(facts, 2).ccv == 2 * G * D < float(steps_violation(policy.record, G, D, 2))  # more than which none can violate
    assert policy.bound({**facts, "time_varying": True}, t).why == "the constraints change from round to round"
    assert policy.bound({**facts, "affine": False}, t).why == "a constraint is not affine: the bound needs form='function'"
    assert policy.bound({**facts, "lipschitz": 1.71}, t).why == "the policy was told too small a Lipschitz constant"
    assert policy.bound({**facts, "lipschitz": 1.7}, t).why == ""


def test_the_orders_are_those_of_the_theorem():
    """Regret 1.5 G D sqrt(T (1 + 2 P/D)) and what the mixture loses; violation a multiple of sqrt(T)."""
    for T in (10**2, 10**4, 10**6):
        record = bridle.policy("yi2021-dynamic", bridle.Ball(1), horizon=T, lipschitz=1.0).record
        for P in (0.0, 1.0, 0.1 * T, 2.0 * (T - 1)):
            i = next(i for i in range(count(T)) if 2.0**i * sqrt(2) >= sqrt(1 + P))
            most = 1.5 * 2.0 * sqrt(T * (1 + P)) + sqrt(1.25) * (1 + 2 * log(i + 2)) * 2.0 * sqrt(T)
            assert float(path_regret(record, 1.0, 2.0, T, P)) <= most
        assert float(steps_violation(record, 1.0, 2.0, T)) <= 28.0 * 2.0 * sqrt(T)


def test_constraints_as_functions_are_the_same_where_they_are_affine():
    domain, a = bridle.Box(-1.0, 1.0, dim=2), np.array([0.6, 0.8])
    one, other = (bridle.policy("yi2021-dynamic", domain, horizon=30, lipschitz=1.0, form=form).record for form in ("affine", "function"))
    assert one.compiled
    assert not other.compiled
    states = [one.init(domain.center()), other.init(domain.center())]
    for t in range(12):
        rounds = Round(Affine([-1.0, 0.5 if t % 2 else -1.0]), (Affine(a, -0.3),))
        for i, record in enumerate((one, other)):
            states[i] = record.update(states[i], rounds.reveal(record.decide(states[i])))
        np.testing.assert_allclose(one.decide(states[0]), other.decide(states[1]), atol=1e-6)


def test_its_parts_have_names_and_weights():
    policy = bridle.policy("yi2021-dynamic", bridle.Ball(2), horizon=100, lipschitz=1.0)
    assert len(policy.record.mixed) == count(100) == len(priors(count(100)))
    assert policy.record.mixed[0] == "step 0.283"
    state = policy.record.init(np.zeros(2))
    np.testing.assert_allclose(policy.record.weights(state), priors(count(100)))
