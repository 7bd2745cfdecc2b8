"""Limits on average: the multiplier's bound against any values, units, rows that do not count, and what comes of it under the mixture."""

from __future__ import annotations

import numpy as np
import pytest

from bridle import records
from bridle.adapters.mixture import mixture
from bridle.adapters.scaling import squashed
from bridle.limits import GroupGap, MissLoss, WeightBudget
from bridle.limits.losses import bind_all, counted
from bridle.limits.prices import DAMPING, Averages, average_excess

ADVERSARIES = ("noise", "heavy", "growing", "up then down", "against", "decades")


def values(kind, q, rng, t):
    match kind:
        case "noise":
            return float(rng.standard_normal())
        case "heavy":
            return float(rng.standard_cauchy())
        case "growing":
            return 1.1**t * float(rng.standard_normal())
        case "up then down":
            return 1.0 if t < 60 else -0.2
        case "against":  # just enough to never be cut at 0
            return 1.0 if q < 1.0 else -0.5
    return 10.0 ** rng.uniform(-8.0, 8.0) * float(rng.standard_normal())


@pytest.mark.parametrize("size", [1e-6, 1e6])
@pytest.mark.parametrize("kind", ADVERSARIES)
def test_counted_values_of_any_window_add_up_to_at_most_the_bound(kind, size):
    """From every row on, whatever comes; rows that do not count in between change nothing."""
    rng, limits = np.random.default_rng(0), Averages(np.ones(1))
    state, sums = limits.start(), [0.0]
    for t in range(200):
        g = size * values(kind, float(state.multipliers.q[0]), rng, t)
        counts = np.array([1.0 if t % 3 else 0.0])
        state, _ = limits.weigh(state, np.array([g]), rng.standard_normal((1, 2)), rng.standard_normal(2), counts)
        sums.append(sums[-1] + g * counts[0])
        bound = float(state.multipliers.bound[0])
        assert sums[-1] - min(sums) <= bound + 1e-9 * np.abs(sums).max(), t
        n, squares = float(state.multipliers.counted[0]), float(state.multipliers.squares[0])
        if n:
            assert float(state.multipliers.mean[0]) == pytest.approx(sums[-1] / n, rel=1e-9, abs=1e-9 * np.abs(sums).max())
            assert average_excess(float(state.multipliers.q[0]), squares, n) == pytest.approx(bound / n)


def test_the_bound_is_attained():
    limits = Averages(np.ones(1))
    state = limits.start()
    for value in (3.0, 0.0, 0.0):
        state, _ = limits.weigh(state, np.array([value]), np.ones((1, 2)), np.ones(2), np.ones(1))
    assert state.multipliers.total[0] == state.multipliers.bound[0] == 3.0


def test_prices_are_those_of_the_page():
    """With all sums written out."""
    rng, limits, k = np.random.default_rng(1), Averages(np.ones(3)), 3
    state, q, paid, G, DG, DF, C = limits.start(), np.zeros(k), np.zeros(k), [], [], [], []
    for _ in range(40):
        g, dg, df, counts = rng.standard_normal(k), rng.standard_normal((k, 4)), rng.standard_normal(4), 1.0 * (rng.random(k) < 0.6)
        near = np.zeros(k)
        for i in range(k):
            seen = [row[i] for row, count in zip(G, C, strict=True) if count[i]]
            near[i] = np.clip(seen[-1] / np.sqrt(np.mean(np.square(seen))), -1.0, 1.0) if seen else 0.0
        G, DG, DF, C = [*G, g], [*DG, dg], [*DF, df], [*C, counts]
        slopes = np.array([sum((row[i] ** 2).sum() * count[i] for row, count in zip(DG, C, strict=True)) for i in range(k)])
        pi = np.array([np.sqrt(np.square(DF).sum() / s) if s else 0.0 for s in slopes])
        lam = pi * np.maximum(q + DAMPING * near, 0.0)
        state, pull = limits.weigh(state, g, dg, df, counts)
        np.testing.assert_allclose(pull, (lam * counts) @ dg, rtol=1e-9, atol=1e-12)
        N = np.sqrt([sum(row[i] ** 2 * count[i] for row, count in zip(G, C, strict=True)) for i in range(k)])
        q = np.where(counts > 0.0, np.maximum(q + np.divide(g, N, out=np.zeros(k), where=N > 0.0), 0.0), q)
        paid, n = paid + counts * lam, np.sum(C, axis=0)
        np.testing.assert_allclose(limits.price(state), np.divide(paid, n, out=np.zeros(k), where=n > 0.0), rtol=1e-9, atol=1e-12)


def test_units_of_cost_and_limits_only_change_the_price():
    rng, limits = np.random.default_rng(2), Averages(np.ones(2))
    one, other, units = limits.start(), limits.start(), np.array([1e-6, 1e6])
    for _ in range(50):
        g, dg, df, counts = rng.standard_normal(2), rng.standard_normal((2, 3)), rng.standard_normal(3), np.ones(2)
        one, pull = limits.weigh(one, g, dg, df, counts)
        other, pulled = limits.weigh(other, units * g, units[:, None] * dg, 1e3 * df, counts)
        np.testing.assert_allclose(pulled, 1e3 * pull, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(limits.price(other) * units, 1e3 * limits.price(one), rtol=1e-9)


def test_a_limit_that_is_never_near_pulls_not_at_all():
    limits = Averages(np.ones(1))
    state = limits.start()
    for _ in range(20):
        state, pull = limits.weigh(state, np.array([-0.3]), np.ones((1, 2)), np.ones(2), np.ones(1))
        assert not pull.any()
    assert limits.price(state) == 0.0
    idle, pull = limits.weigh(state, np.array([5.0]), np.ones((1, 2)), np.zeros(2), np.zeros(1))
    assert records.same(idle, state)
    assert not pull.any()


def played(limit, rows=2500, seed=0):
    """A stream of two groups, learned under a limit: the scores, classes and groups, and how things stand at the end."""
    rng = np.random.default_rng(seed)
    groups, noise = 1.0 * (rng.random(rows) < 0.5), rng.logistic(size=rows)
    A = np.column_stack([np.ones(rows), squashed(rng.standard_normal((rows, 2)) + groups[:, None] * [0.8, 0.0])])
    signs = np.where(A @ [-1.0, 1.0, 1.0] + noise > 0.0, 1.0, -1.0)
    bound = bind_all([limit], [0, 1])
    learner, limits = mixture(2), Averages(np.ones(2 if limit.__class__.__name__ == "GroupGap" else 1))
    state, held, memories, scores = learner.init(), limits.start(), tuple(one.start(3) for one in bound), []
    for a, sign, group in zip(A, signs, groups, strict=True):
        w = learner.weights(state)
        scores.append(float(w @ a))
        memory, function = bound[0].reveal(memories[0], a, float(sign), float(group))
        memories = (memory,)
        g, dg = np.atleast_1d(function.value(w)), np.atleast_2d(function.grad(w))
        df = learner.loss.slope(scores[-1], float(sign)) * a
        held, pull = limits.weigh(held, g, dg, df, counted(bound, float(sign)))
        state = learner.learn(state, a, float(sign), 1.0, pull)
    return np.array(scores), signs > 0.0, groups > 0.0, limits, held, learner.weights(state)


@pytest.mark.slow
@pytest.mark.parametrize("at_most", [0.5, 0.3])
def test_the_mean_loss_of_a_class_is_held_where_it_was_asked(at_most):
    scores, positive, _, limits, held, _ = played(MissLoss(label=1, at_most=at_most))
    losses = np.logaddexp(0.0, -scores[positive])
    assert held.multipliers.counted[0] == positive.sum()
    assert held.multipliers.mean[0] + at_most == pytest.approx(losses.mean())  # what is measured is the mean over its class alone
    assert losses[len(losses) // 4 :].mean() == pytest.approx(at_most, abs=0.02)
    assert limits.price(held)[0] > 0.1
    free = played(MissLoss(label=1, at_most=50.0))
    assert limits.price(free[4])[0] == 0.0
    assert np.logaddexp(0.0, -free[0][free[1]]).mean() > 0.6  # without the limit


@pytest.mark.slow
def test_the_gap_between_groups_is_held_where_it_was_asked():
    scores, _, group, limits, held, _ = played(GroupGap(at_most=0.2))
    late = np.arange(len(scores)) > 1000
    assert abs(scores[group & late].mean() - scores[~group & late].mean()) == pytest.approx(0.2, abs=0.05)
    assert limits.price(held).shape == (2,)
    free, _, group, *_ = played(GroupGap(at_most=50.0))
    assert free[group].mean() - free[~group].mean() > 0.5


@pytest.mark.slow
def test_a_budget_of_weights_is_held_on_average():
    *_, held, w = played(WeightBudget(at_most=0.25))
    assert 0.5 * w @ w == pytest.approx(0.25, abs=0.05)
    assert held.multipliers.mean[0] <= average_excess(held.multipliers.q[0], held.multipliers.squares[0], held.multipliers.counted[0])
