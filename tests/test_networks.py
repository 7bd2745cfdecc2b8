"""The network as a function: its gradient against differences and two automatic differentiators, its clamp, its batches, its engines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bridle
from bridle import ops, records
from bridle.core import InputError, Round
from bridle.networks import CLAMP, LIMIT, NetworkLoss, NetworkRound, score, weights
from bridle.problems import Problem
from bridle.problems.recorded import RecordedRounds
from helpers.engine_agreement import agree


def example(inputs: int, hidden: int, seed: int, size: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Features, and weights."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(inputs), size * rng.standard_normal(weights(inputs, hidden))


SHAPES = {"inputs": st.integers(1, 6), "hidden": st.integers(1, 5), "seed": st.integers(0, 10_000), "label": st.sampled_from([0.0, 1.0])}


@given(**SHAPES)
def test_the_gradient_is_that_of_differences(inputs, hidden, seed, label):
    a, x = example(inputs, hidden, seed)
    loss = bridle.Network(a, label, weight=1.7, tolerance=0.3)
    for i in range(len(x)):
        step = 1e-6 * np.eye(len(x))[i]
        assert loss.grad(x)[i] == pytest.approx((loss.value(x + step) - loss.value(x - step)) / 2e-6, abs=1e-8)


def plainly(xp, a, y, x, hidden):
    """The loss as one would write it down, clamp and all; `xp` is jax.numpy."""
    n = len(a)
    W, b, v, c = x[: hidden * n].reshape(hidden, n), x[hidden * n : hidden * (n + 1)], x[hidden * (n + 1) : -1], x[-1]
    p = 1.0 / (1.0 + xp.exp(-(v @ (1.0 / (1.0 + xp.exp(-(W @ a + b)))) + c)))
    p = xp.clip(p, CLAMP, 1.0 - CLAMP)
    return -(y * xp.log(p) + (1.0 - y) * xp.log(1.0 - p))


@pytest.mark.compiles
@pytest.mark.parametrize("size", [0.1, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_value_and_gradient_are_those_of_jax(label, size):
    import jax

    a, x = example(29, 10, 3, size)
    with jax.enable_x64(True):
        value, grad = jax.value_and_grad(lambda at: plainly(jax.numpy, a, label, at, 10))(x)
    loss = bridle.Network(a, label)
    assert loss.value(x) == pytest.approx(float(value), rel=1e-8)
    np.testing.assert_allclose(loss.grad(x), np.asarray(grad), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("output", [-40.0, -16.2, -16.0, -1.0, 0.0, 2.0, 16.0, 16.2, 40.0])
def test_the_clamp_is_that_of_torch(output, label):
    torch = pytest.importorskip("torch")
    a, x = example(3, 2, 1)
    x[-1] += output - _logit(a, x)
    at = torch.tensor(x, requires_grad=True)
    W, b, v, c = at[:6].reshape(2, 3), at[6:8], at[8:10], at[10]
    p = torch.sigmoid(v @ torch.sigmoid(W @ torch.tensor(a) + b) + c).clamp(CLAMP, 1.0 - CLAMP)
    loss = -torch.log(p) if label else -torch.log(1.0 - p)
    loss.backward()
    mine = bridle.Network(a, label)
    assert mine.value(x) == pytest.approx(loss.item(), rel=1e-8)
    np.testing.assert_allclose(mine.grad(x), at.grad.numpy(), rtol=1e-7, atol=1e-15)
    assert (abs(output) > LIMIT) == (not mine.grad(x).any())


def _logit(a: np.ndarray, x: np.ndarray) -> float:
    n = len(a)
    hidden = (len(x) - 1) // (n + 2)
    h = ops.sigmoid(x[: hidden * n].reshape(hidden, n) @ a + x[hidden * n : hidden * (n + 1)])
    return float(x[hidden * (n + 1) : -1] @ h + x[-1])


@pytest.mark.parametrize("size", [1e-300, 1e-3, 1.0, 1e3, 1e150])
def test_nothing_overflows(size):
    a, x = example(4, 3, 5, size)
    for label in (0.0, 1.0):
        loss = bridle.Network(a, label)
        assert -np.log1p(-CLAMP) * 0.99 <= loss.value(x) <= -np.log(CLAMP) * 1.01
        assert np.isfinite(loss.grad(x)).all()
        assert CLAMP * 0.999 <= score(a, x) <= 1.0 - 0.999 * CLAMP


@given(**SHAPES, runs=st.integers(1, 4), tolerance=st.sampled_from([0.0, 0.2]))
def test_a_round_is_its_two_functions_in_one_pass(inputs, hidden, seed, label, runs, tolerance):
    a, x = example(inputs, hidden, seed)
    many = np.stack([x * (1.0 + 0.1 * i) for i in range(runs)])
    one = NetworkRound(a, label, tolerance, 0.0)
    for at in (x, many):
        mine, apart = one.reveal(at), Round(one.cost, one.constraints).reveal(at)
        for name in ("f", "df", "g", "dg"):
            assert np.shape(getattr(mine, name)) == np.shape(getattr(apart, name))
            np.testing.assert_allclose(getattr(mine, name), getattr(apart, name), rtol=1e-13, atol=1e-15)
    assert not one.convex
    assert not Round(one.cost, one.constraints).convex
    alone, batch = one.reveal(x), one.reveal(many)
    assert batch.f.shape == batch.g.shape == (runs, 1)
    assert batch.dg.shape == (runs, 1, len(x))
    np.testing.assert_allclose(batch.df[0], alone.df, rtol=1e-12, atol=1e-15)
    assert (alone.f == 0.0) == (label == 1.0)
    if label == 0.0:
        assert alone.g[0] == 0.0
        assert not alone.dg.any()


def test_examples_of_each_run_and_examples_over_time():
    rng = np.random.default_rng(0)
    a, y, x = rng.standard_normal((5, 3)), np.array([0.0, 1.0, 1.0, 0.0, 1.0]), rng.standard_normal((5, weights(3, 2)))
    each = [NetworkLoss(a[i], y[i], 1.0, 0.0) for i in range(5)]
    batch = NetworkLoss(a, y[:, None], np.ones((5, 1)), np.zeros((5, 1)))
    np.testing.assert_allclose(batch.value(x)[:, 0], [loss.value(at) for loss, at in zip(each, x, strict=True)], rtol=1e-13)
    np.testing.assert_allclose(batch.grad(x), [loss.grad(at) for loss, at in zip(each, x, strict=True)], rtol=1e-12)
    np.testing.assert_allclose(batch.value(x[0])[:, 0], [loss.value(x[0]) for loss in each], rtol=1e-13)
    np.testing.assert_allclose(batch.grad(x[0]), [loss.grad(x[0]) for loss in each], rtol=1e-12)


def stream(rounds: int, inputs: int = 4, hidden: int = 3) -> Problem:
    rng = np.random.default_rng(11)
    table = NetworkRound(rng.standard_normal((rounds, inputs)), 1.0 * (rng.random(rounds) < 0.2), np.zeros(rounds), np.zeros(rounds))
    return Problem(bridle.Ball(weights(inputs, hidden), radius=5.0), RecordedRounds(table, 0.0), {"constraints": 1}, "stream")


@pytest.mark.compiles
def test_the_engines_agree():
    problem = stream(1500)
    policy = {"horizon": 1500, "lipschitz": 1.0, "beta": 1.0, "V": 1.0, "initial": 0.001}
    start = np.random.default_rng(1).random(problem.domain.dim)
    agree(bridle.policy("sinha2024", problem.domain, lam=0.05, **policy), problem, rounds=1500, x1=start, tolerance=1e-11)
    agree(bridle.policy("sinha2024", problem.domain, lam=[0.01, 0.1, 1.0], **policy), problem, rounds=1500, x1=start, tolerance=1e-11)
    agree(bridle.policy("anytime", problem.domain), problem, rounds=300, x1=start, tolerance=1e-9)


def test_results_say_that_no_theorem_applies():
    problem = stream(50)
    policy = bridle.policy("sinha2024", problem.domain, horizon=50, lipschitz=1.0)
    trace = bridle.play(policy, problem, horizon=50)
    assert "not convex" in policy.bound(trace.problem.constants, 50).why
    replayed = records.join(list(trace.blocks()))
    np.testing.assert_array_equal(replayed.a, problem.adversary.table.a)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"features": [], "label": 1}, "features must be a vector"),
        ({"features": [1.0, np.nan], "label": 1}, "features must be finite"),
        ({"features": [1.0], "label": 0.5}, "label must be 0 or 1, not 0.5"),
        ({"features": [1.0], "label": 1, "weight": -1.0}, "weight must be 0 or above"),
        ({"features": [1.0], "label": 1, "tolerance": "a"}, "tolerance must be a number"),
    ],
)
def test_what_cannot_be_used_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        bridle.Network(**given)


def test_weights_that_fit_no_network_are_refused():
    with pytest.raises(InputError, match=r"hidden \* 4 \+ 1 coordinates for a network of 2 inputs, not 7"):
        bridle.Network([1.0, 2.0], 1).value(np.zeros(7))
    with pytest.raises(InputError, match="hidden must be 1 or above"):
        weights(3, 0)
