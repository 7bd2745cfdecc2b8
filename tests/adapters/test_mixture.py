"""The mixture of experts: its formulas written out again, its certificate, units, weights, features that come late, losses and engines."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from bridle import records
from bridle.adapters import mixture as file
from bridle.adapters.mixture import EXPERTS, MOST_NEWTON, Mixture, mixture
from bridle.adapters.scaling import Scale, squashed
from bridle.core import InputError
from bridle.engines.mirror import Mirror

REST = 1e-9


def stream(rows, p, seed=0, drift=0.0):
    """Squashed rows with a leading 1, classes +1 and -1 by a plane that turns, and weights."""
    rng = np.random.default_rng(seed)
    A = np.column_stack([np.ones(rows), squashed(rng.standard_normal((rows, p - 1)))])
    u = rng.standard_normal(p) + drift * np.arange(rows)[:, None] / rows * rng.standard_normal(p)
    return A, np.where((A * u).sum(axis=1) + rng.logistic(size=rows) > 0.0, 1.0, -1.0), rng.exponential(size=rows)


def each(learner: Mixture, state) -> np.ndarray:
    """The weights of every expert, one below the other."""
    parts = [state.descent, state.adagrad]
    return np.vstack([*parts, state.newton.w[None]] if state.newton is not None else parts)


def plain(A, y, weights, pulls):
    """The page's formulas for the logistic loss with classes 0 and 1, in plain loops, P by its inverse; the played weights of every row."""
    p, om1, played, inverse = A.shape[1], weights[0], [], np.eye(A.shape[1])
    w, S, v, Delta, sizes = np.zeros((7, p)), np.ones((3, p)), np.full(7, 1.0 / 7.0), 0.0, 0.0
    for t, (a, sign, weight, pull) in enumerate(zip(A, y, weights, pulls, strict=True), 1):
        om, dg, label = weight / om1, pull / om1, (sign + 1.0) / 2.0
        w_played = v @ w
        played.append(w_played)

        def loss(x, om=om, sign=sign, a=a, dg=dg):
            return om * np.log1p(np.exp(-sign * (x @ a))) + x @ dg

        losses, paid = np.array([loss(x) for x in w]), loss(w_played)
        sizes += om * (a @ a)
        sig = 1.0 / (1.0 + np.exp(-(w @ a)))
        G = om * (sig - label)[:, None] * a + dg
        for k, c in enumerate((4.0, 1.0, 0.25)):
            w[k] -= c / (sizes / t) * G[k]
        for k, r in enumerate((1.0, 0.25, 0.0625)):
            S[k] += G[3 + k] ** 2
            w[3 + k] -= r * G[3 + k] / np.sqrt(S[k])
        inverse = inverse + om * max(sig[6] * (1.0 - sig[6]), 0.02) * np.outer(a, a)
        w[6] -= np.linalg.solve(inverse, G[6])
        least = losses.min()
        before, mix = Delta, least if Delta == 0.0 else least - Delta / log(7) * np.log(v @ np.exp(-log(7) / Delta * (losses - least)))
        Delta += max(0.0, paid - mix)
        if Delta > 0.0:
            v = v ** (before / Delta) * np.exp(-log(7) / Delta * (losses - least))
            v = (1.0 - 1.0 / (t + 1)) * v / v.sum() + 1.0 / (t + 1) / 7.0
    return np.array(played), w, v, inverse


@pytest.mark.parametrize("pulled", [0.0, 0.3])
def test_it_is_what_its_page_says(pulled):
    A, y, weights = stream(250, 6)
    pulls = pulled * np.random.default_rng(1).standard_normal(A.shape)
    learner = mixture(5)
    state, played = learner.init(), []
    for a, sign, weight, pull in zip(A, y, weights, pulls, strict=True):
        played.append(learner.weights(state))
        state = learner.learn(state, a, sign, weight, pull if pulled else None)
    expected, w, v, inverse = plain(A, y, weights, pulls)
    np.testing.assert_allclose(played, expected, rtol=0.0, atol=REST)
    np.testing.assert_allclose(each(learner, state), w, rtol=0.0, atol=REST)
    np.testing.assert_allclose(state.hedge.v, v, rtol=0.0, atol=REST)
    np.testing.assert_allclose(np.linalg.inv(state.newton.P), inverse, rtol=REST)


@pytest.mark.parametrize("kind", ["random", "turning", "against", "pulled"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "quantile"])
def test_what_is_paid_is_within_the_certificate_of_every_expert(kind, loss):
    """Also where every class is the one that the played weights think least of, and where limits pull at random."""
    A, y, weights = stream(300, 5, seed=3, drift=6.0 if kind == "turning" else 0.0)
    learner, rng = mixture(4, loss, level=0.7), np.random.default_rng(0)
    state, paid, losses = learner.init(), 0.0, np.zeros(7)
    for a, target, weight in zip(A, y, 1e4 * weights, strict=True):
        w, own = learner.weights(state), each(learner, state)
        pull = 1e4 * rng.standard_normal(5) if kind == "pulled" else None
        if kind == "against":
            target = -1.0 if w @ a > 0.0 else 1.0
        paid += weight * learner.loss.value(float(w @ a), target) + (0.0 if pull is None else float(pull @ w))
        losses = losses + weight * learner.loss.value(own @ a, target) + (0.0 if pull is None else own @ pull)
        state = learner.learn(state, a, target, weight, pull)
        assert paid - losses.min() <= learner.certified(state) + 1e-9 * weights.sum() * 1e4
    assert learner.certified(state) == state.unit * learner.hedge.certified(state.hedge) > 0.0


@pytest.mark.parametrize("kind", ["random", "against"])
def test_regret_of_descent_and_adagrad_is_within_their_bounds(kind):
    """In every round, against a comparator of the truth's size; the bounds use nothing but what was seen."""
    p = 4
    A, y, weights = stream(300, p, seed=5)
    learner, u = mixture(p - 1), 2.0 * np.random.default_rng(2).standard_normal(p)
    state, regret = learner.init(), np.zeros(6)
    mus, squared, reach, reaches = [], [[], [], []], np.zeros(3), np.zeros((3, p))
    for a, sign, om in zip(A, y, weights / weights[0], strict=True):
        own = each(learner, state)[:6]
        if kind == "against":
            sign = -1.0 if learner.weights(state) @ a > 0.0 else 1.0
        scores = own @ a
        regret += om * (learner.loss.value(scores, sign) - learner.loss.value(float(u @ a), sign))
        slopes = om * learner.loss.slope(scores, sign)
        state = learner.learn(state, a, sign, om, None)
        mus.append(state.sizes / state.rows)
        reach = np.maximum(reach, np.linalg.norm(own[:3] - u, axis=1))
        reaches = np.maximum(reaches, np.abs(own[3:] - u))
        for k, c in enumerate((4.0, 1.0, 0.25)):
            squared[k].append(float((slopes[k] * a) @ (slopes[k] * a)))
            assert regret[k] <= file.descent_regret(reach[k], np.array(mus), np.array(squared[k]), c)
        for k, r in enumerate((1.0, 0.25, 0.0625)):
            assert regret[3 + k] <= file.adagrad_distance_regret(reaches[k], state.squares[k], r)


def test_expert_bounds_at_fixed_numbers_and_where_they_are_attained():
    assert file.descent_regret(3.0, np.array([2.0, 5.0, 4.0]), np.array([1.0, 10.0, 8.0]), 0.25) == pytest.approx(9 * 5 * 2 + 0.125 * 4.5)
    assert file.adagrad_distance_regret(np.array([3.0, 0.0]), np.array([4.0, 16.0]), 0.25) == pytest.approx(2 * 18.25 + 4 * 0.25)
    # One linear round, from distance D with the gradient along it: regret D |G| is D^2/(2e) + e |G|^2/2 where the step e |G| is D.
    assert file.descent_regret(2.0, np.array([1.0]), np.array([16.0]), 0.5) == pytest.approx(2.0 * 4.0)


def test_units_and_shifts_of_features_do_not_matter():
    rng = np.random.default_rng(4)
    X, factors, shifts = rng.standard_normal((300, 4)), np.array([1e-6, 1e6, 1e3, -1.0]), np.array([1e-6, 1e6, -1e3, 1.0])
    learner = mixture(4)

    def logits(rows):
        scale, state, scores = Scale(4), learner.init(), []
        for row, sign in zip(rows, np.where(X[:, 0] - X[:, 1] > 0.0, 1.0, -1.0), strict=True):
            a = np.append(1.0, squashed(scale.apply(row)))
            scores.append(learner.weights(state) @ a)
            state, scale = learner.learn(state, a, sign, 1.0, None), scale.learn(row)
        return np.array(scores)

    signs = np.sign(factors)
    np.testing.assert_allclose(logits(X * factors + shifts), logits(X * signs), rtol=0.0, atol=1e-9)
    assert np.abs(logits(X)).max() > 2.0


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_weights_does_not_matter(factor):
    A, y, weights = stream(200, 4)
    learner, pulls = mixture(3), np.random.default_rng(1).standard_normal((200, 4))
    one = other = learner.init()
    for a, sign, weight, pull in zip(A, y, weights, pulls, strict=True):
        one = learner.learn(one, a, sign, weight, pull)
        other = learner.learn(other, a, sign, factor * weight, factor * pull)
        np.testing.assert_allclose(learner.weights(other), learner.weights(one), rtol=1e-7, atol=1e-9)
    assert other.unit == factor * one.unit


def test_a_row_of_weight_zero_changes_nothing():
    A, y, weights = stream(60, 4)
    learner = mixture(3)
    state = after = learner.learn(learner.init(), A[0], y[0], 0.0, None)
    assert records.same(state._replace(hedge=learner.init().hedge), learner.init())
    for at in range(60):
        state, after = (learner.learn(one, A[at], y[at], weights[at], None) for one in (state, after))
        after = learner.learn(after, 2.0 * A[-at], -y[at], 0.0, None if at % 2 else np.zeros(4))
    for name, leaf in records.leaves(state).items():
        if name != "hedge.before":
            np.testing.assert_allclose(records.leaves(after)[name], leaf, rtol=1e-10, atol=1e-12, err_msg=name)


def test_a_feature_that_comes_late_was_zero_before():
    """Exactly, in every leaf: all experts, their sums, P and what they are worth."""
    A, y, weights = stream(120, 7)
    narrow, wide = mixture(4), mixture(6)
    A[:80, 5:] = 0.0
    small, large = narrow.init(), wide.init()
    for a, sign, weight in zip(A[:80], y[:80], weights[:80], strict=True):
        small, large = narrow.learn(small, a[:5], sign, weight, None), wide.learn(large, a, sign, weight, None)
    small = wide.grown(small)
    assert set(records.leaves(small)) == set(records.leaves(large))
    for a, sign, weight in zip(A[80:], y[80:], weights[80:], strict=True):
        for name, leaf in records.leaves(large).items():
            np.testing.assert_allclose(records.leaves(small)[name], leaf, rtol=1e-12, atol=1e-13, err_msg=name)
        small, large = (wide.learn(one, a, sign, weight, None) for one in (small, large))
    assert records.same(wide.grown(small), small)
    with pytest.raises(InputError, match="a mixture of 6 features cannot become one of 4"):
        narrow.grown(small)


def test_beyond_its_size_the_newton_expert_is_left_out():
    p = MOST_NEWTON
    A, y, weights = stream(30, p)
    narrow, wide = mixture(p - 1), mixture(p)
    state = narrow.init()
    for a, sign, weight in zip(A, y, weights, strict=True):
        state = narrow.learn(state, a, sign, weight, None)
    after = wide.grown(state)
    assert state.newton is not None
    assert after.newton is None
    assert len(after.hedge.v) == len(EXPERTS) - 1 == wide.hedge.start.size
    np.testing.assert_allclose(after.hedge.v, state.hedge.v[:6] / state.hedge.v[:6].sum())
    assert narrow.hedge.c == wide.hedge.c == log(7)
    again = wide.learn(after, np.append(A[0], 1.0), y[0], 1.0, None)
    assert [np.shape(leaf) for leaf in records.leaves(again).values()] == [np.shape(leaf) for leaf in records.leaves(wide.init()).values()]


def test_with_the_squared_loss_the_newton_expert_is_ridge_regression():
    A, _, weights = stream(200, 5)
    targets = A @ np.arange(5.0) + np.random.default_rng(0).standard_normal(200)
    learner = mixture(4, "squared")
    state = learner.init()
    for a, target, weight in zip(A, targets, weights, strict=True):
        state = learner.learn(state, a, target, weight, None)
    om = weights / weights[0]
    ridge = np.linalg.solve(np.eye(5) + (A.T * om) @ A, (A.T * om) @ targets)
    np.testing.assert_allclose(state.newton.w, ridge, atol=1e-9)
    np.testing.assert_allclose(learner.weights(state), np.arange(5.0), atol=0.5)


@pytest.mark.parametrize("loss", ["squared", "quantile"])
def test_features_that_begin_to_vary_late_make_no_step_overshoot(loss):
    """The mean of |a|^2 is then far below a row's own: steps by the mean alone would grow without end where slopes are unbounded."""
    rng = np.random.default_rng(0)
    learner = mixture(40, loss)
    state = learner.init()
    for t in range(900):
        a = np.append(1.0, np.zeros(40) if t < 500 else 2.0 * np.sign(rng.standard_normal(40)))
        state = learner.learn(state, a, float(a[1] + rng.standard_normal()), 1.0, None)
    assert np.abs(each(learner, state)).max() < 20.0
    assert learner.weights(state)[1] == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_with_the_quantile_loss_so_many_targets_lie_below(level):
    rng = np.random.default_rng(0)
    learner = mixture(2, "quantile", level)
    state, below = learner.init(), []
    for _ in range(2500):
        a = np.append(1.0, squashed(rng.standard_normal(2)))
        target = 0.8 * a[1] + 0.6 * rng.standard_normal()
        below.append(target <= learner.weights(state) @ a)
        state = learner.learn(state, a, target, 1.0, None)
    assert np.mean(below[500:]) == pytest.approx(level, abs=0.03)


@pytest.mark.slow
def test_on_a_real_stream_it_beats_the_best_of_rivers_learners():
    """Phishing: river's best of four, each score before its row is learned, has a log loss of 0.2706 and an AUC of 0.9582."""
    datasets = pytest.importorskip("river.datasets")
    metrics = pytest.importorskip("sklearn.metrics")
    learner, scale, scores, classes = mixture(9), Scale(9), [], []
    state = learner.init()
    for row, target in datasets.Phishing():
        x = np.array([float(row[name]) for name in sorted(row)])
        a = np.append(1.0, squashed(scale.apply(x)))
        scores.append(float(learner.weights(state) @ a))
        classes.append(bool(target))
        state, scale = learner.learn(state, a, 1.0 if target else -1.0, 1.0, None), scale.learn(x)
    assert metrics.roc_auc_score(classes, scores) == pytest.approx(0.9599, abs=2e-4)
    assert np.mean(np.logaddexp(0.0, np.where(classes, -1.0, 1.0) * scores)) == pytest.approx(0.2575, abs=2e-4)


@pytest.mark.compiles
@pytest.mark.parametrize(("features", "loss"), [(3, "logistic"), (3, "quantile"), (MOST_NEWTON, "squared")])
def test_every_engine_learns_the_same(features, loss, monkeypatch):
    """NumPy, JAX and the compiled row; of two of the losses the row's source as it stands, without the compiler."""
    jax = pytest.importorskip("jax")
    monkeypatch.setenv("BRIDLE_INTERPRET", "0" if loss == "logistic" else "1")
    A, y, weights = stream(12, features + 1)
    learner, pulls = mixture(features, loss), 0.1 * np.random.default_rng(1).standard_normal(A.shape)
    state = learner.init()
    memory = Mirror(_one, learner, state, (A[0], 1.0, 1.0, pulls[0]), state)
    memory.write(state)
    with jax.enable_x64(True):
        traced, step = state, jax.jit(_one)
        for row in zip(A, y, weights, pulls, strict=True):
            state, traced = _one(learner, state, row), step(learner, traced, row)
            for place, value in zip(range(4), row, strict=True):
                memory.views[f"given.{place}"][...] = value
            assert memory.run()
    for other in (memory.settle(), traced):
        for name, leaf in records.leaves(state).items():
            np.testing.assert_allclose(np.asarray(records.leaves(other)[name]), leaf, rtol=1e-9, atol=1e-11, err_msg=name)


def _one(learner, state, row):
    return learner.learn(state, *row)


def test_bad_arguments_are_named():
    for arguments, words in (
        ((-1,), "features must be 0 or above, not -1"),
        ((2, "hinge"), "unknown loss"),
        ((2, "quantile", 1.0), r"level must be below 1, not 1\.0"),
        ((2, "quantile", 0.0), "level must be above 0"),
    ):
        with pytest.raises(InputError, match=words):
            mixture(*arguments)
