"""Proximal steps on convex functions, against the same programs solved by cvxpy and Clarabel, and by their own certificates."""

from __future__ import annotations

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle.functions import AffineFunction
from bridle.solvers import function_prox, hinge_prox, prox_dual
from helpers.cvxpy_reference import PROGRAMS, SHAPES, by_clarabel, inside, place, same, several, solved
from helpers.instances import DOMAINS, make_domain


def bowl(d: int, rng):
    M = rng.standard_normal((d, d)) / np.sqrt(d)
    z = 0.3 * rng.standard_normal(d)
    return M, z


@pytest.mark.parametrize("kind", ["ball", "box", "simplex"])
def test_convex_functions_are_the_program(kind):
    rng = np.random.default_rng(6)
    domain = place(kind)
    d = domain.dim
    x, v, offset = cp.Variable(d), cp.Parameter(d), cp.Parameter()
    M, z = bowl(d, rng)
    W = rng.standard_normal((3, d))
    shapes = {
        "round": (cp.sum_squares(x - z), lambda o: bridle.Quadratic(2.0, center=z, offset=-o)),
        "form": (cp.sum_squares(M @ (x - z)), lambda o: bridle.Quadratic(2.0 * M.T @ M, center=z, offset=-o)),
        "exponential": (cp.log_sum_exp(W @ x), lambda o: logsumexp(W, o)),
        "affine": (W[0] @ x, lambda o: AffineFunction(W[0], -o)),
    }
    met = 0
    for (expression, make), c in product(shapes.values(), (0.3, 3.0, 100.0)):
        problem = cp.Problem(cp.Minimize(cp.sum_squares(x - v) + c * cp.pos(expression - offset)), inside(domain, x))
        for _ in range(PROGRAMS // 12 + 1):
            v.value = domain.center() + 2.0 * domain.diameter() * rng.standard_normal(d)
            point = domain.project(domain.center() + domain.diameter() * rng.standard_normal(d))
            g = make(0.0)
            offset.value = float(g.value(point))
            g, alpha = make(offset.value), 10.0 ** rng.uniform(-1.0, 1.0)
            mine = function_prox.hinge_of(domain, v.value, g, c * alpha, alpha)
            met += abs(float(g.value(mine))) < 1e-8

            def cost(at, c=c, g=g):
                return float((at - v.value) @ (at - v.value)) + c * max(0.0, float(g.value(at)))

            same(domain, mine, solved(problem, x), cost)
    assert met > 20


def logsumexp(W, offset):
    def value(x):
        top = (W @ x).max()
        return float(top + np.log(np.exp(W @ x - top).sum()) - offset)

    def grad(x):
        weights = np.exp(W @ x - (W @ x).max())
        return weights @ W / weights.sum()

    return bridle.Callable(value, grad)


def test_a_kink_is_refused_not_mishandled():
    kink = bridle.Maximum(bridle.Affine([1.0, 0.5]), bridle.Affine([-1.0, 0.5]))
    with pytest.raises(RuntimeError, match="is it differentiable"):
        function_prox.weighted(bridle.Ball(2), np.array([0.0, 0.3]), [(5.0, kink)], 1.0)


# --- several ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["box", "ball"])
@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_several_functions_are_the_program(kind, d):
    rng = np.random.default_rng([d, 11])
    domain, N = place(kind, d), PROGRAMS // 8 + 1
    kinds = {"below": 0, "spent": 0, "met": 0}
    for i in range(N):
        k, joint = 2 + i % 2, i % 4 < 2
        v, functions, written, alpha = several(domain, k, rng, SHAPES[: 3 + i % 2])
        c = alpha * 10.0 ** rng.uniform(-1.0, 2.0, None if joint else k)
        mine = function_prox.hinges_of(domain, v, functions, c, alpha, joint)
        for g in functions:
            kinds["spent" if g.value(mine) > 1e-9 else "met" if g.value(mine) > -1e-9 else "below"] += 1
        assert np.abs(mine - by_clarabel(domain, v, written, c / alpha, joint, mine)).max() <= 1e-6
    assert min(kinds.values()) >= 3, kinds


def scaled(g, size: float, unit: float):
    """unit g(x / size)."""
    return bridle.Callable(lambda x: unit * g.value(x / size), lambda x: unit / size * np.asarray(g.grad(x / size)))


def total(x, v, functions, c, alpha) -> float:
    return alpha * float((x - v) @ (x - v)) + sum(w * max(0.0, float(g.value(x))) for w, g in zip(c, functions, strict=True))


@given(
    st.integers(0, 2**32 - 1), st.sampled_from(DOMAINS), st.sampled_from([1, 2, 5, 12]), st.integers(1, 6), st.booleans(),
    st.sampled_from([1e-3, 1.0, 1e3]), st.sampled_from([1e-6, 1.0, 1e6]), st.floats(-1.0, 4.0),
)  # fmt: skip
@settings(max_examples=150)
def test_the_answer_proves_itself(seed, kind, d, k, joint, size, unit, weight):
    """The multipliers bound what is left to gain, by duality, in every unit of length and cost; and no other point is better."""
    rng = np.random.default_rng(seed)
    v, functions, _, alpha = several(make_domain(kind, d, 1.0, np.random.default_rng(seed)), k, rng)
    domain, v, alpha = make_domain(kind, d, size, np.random.default_rng(seed)), size * v, unit * alpha / size**2
    functions = functions if size == unit == 1.0 else [scaled(g, size, unit) for g in functions]
    c = 10.0 ** rng.uniform(-1.0, weight, None if joint else k)
    x, s = function_prox.with_multipliers(domain, v, functions, c, alpha, joint)

    def cost(at):
        values = np.array([float(g.value(at)) for g in functions])
        return alpha * float((at - v) @ (at - v)) + float(c * max(0.0, values.max()) if joint else (c * np.maximum(values, 0.0)).sum())

    whole = float(domain.diameter() + np.linalg.norm(domain.center()))
    values, rows = np.array([float(g.value(x)) for g in functions]), np.array([g.grad(x) for g in functions])
    assert domain.contains(x, 1e-12)
    assert (s >= 0.0).all()
    assert (s.sum() if joint else s - c).max() <= (c if joint else 0.0) + 1e-12 * np.max(c)
    # L(x) = alpha |x - v|^2 + <s, g(x)> is nowhere above the cost, and alpha |z - x|^2 above its tangent at x: the cost is at least ...
    slope = 2.0 * alpha * (x - v) + s @ rows
    z = domain.project(x - slope / (2.0 * alpha))
    lowest = alpha * float((x - v) @ (x - v)) + float(s @ values) + float(slope @ (z - x)) + alpha * float((z - x) @ (z - x))
    steep = np.sqrt((rows * rows).sum(axis=1)) + abs(values) / whole
    rounding = 1e-11 * whole * (alpha * (whole + np.abs(v).max()) + float(np.sum(np.max(c) * steep)))
    assert 0.0 <= cost(x) - lowest + rounding <= 2.0 * rounding
    for _ in range(10):
        other = domain.project(x + whole * 10.0 ** rng.uniform(-4.0, 0.0) * rng.standard_normal(len(x)))
        assert cost(other) >= cost(x) + alpha * float((other - x) @ (other - x)) - 1e2 * rounding


@pytest.mark.slow
@pytest.mark.parametrize("kind", DOMAINS)
def test_every_way_gives_the_same(kind):
    """One function by its one multiplier or by the dual of several; affine ones by a quadratic program; a maximum in one piece or apart."""
    rng = np.random.default_rng(12)
    domain = place(kind)
    for i in range(8):
        v, functions, _, alpha = several(domain, 3, rng)
        c = alpha * 10.0 ** rng.uniform(-1.0, 1.0 if i % 2 else 6.0, 3)
        near = {"rtol": 0.0, "atol": 1e-9}
        for g, w in zip(functions, c.tolist(), strict=True):
            one = function_prox.hinge_of(domain, v, g, w, alpha)
            np.testing.assert_allclose(function_prox.hinges_of(domain, v, [g], [w], alpha), one, **near)
            np.testing.assert_allclose(function_prox.hinges_of(domain, v, [g, g], [0.3 * w, 0.7 * w], alpha), one, **near)
            np.testing.assert_allclose(function_prox.hinges_of(domain, v, [g, g], w, alpha, joint=True), one, **near)
        joint = function_prox.hinges_of(domain, v, functions, c[0], alpha, joint=True)
        np.testing.assert_allclose(function_prox.hinge_of(domain, v, bridle.Maximum(*functions), c[0], alpha), joint, **near)
        first, nested = bridle.Maximum(*functions[:2]), bridle.Maximum(functions[0], bridle.Maximum(*functions[1:]))
        np.testing.assert_allclose(function_prox.hinges_of(domain, v, [nested, functions[0]], [c[0], 0.0], alpha), joint, **near)
        apart = function_prox.hinges_of(domain, v, [first, functions[2]], c[:2], alpha)
        assert total(apart, v, [first, functions[2]], c[:2], alpha) <= total(joint, v, [first, functions[2]], c[:2], alpha) + 1e-9 * c.sum()
        v, rows, _, alpha = several(domain, 3, rng, SHAPES[3:])
        A, b = np.array([g.a for g in rows]), -np.array([g.b for g in rows])
        for joint, w in ((False, c), (True, c[0])):
            np.testing.assert_allclose(
                function_prox.hinges_of(domain, v, rows, w, alpha, joint), hinge_prox.hinges(domain, v, A, b, w, alpha, joint), **near
            )


def test_edges_of_several_functions():
    ball, v = bridle.Ball(2), np.array([0.9, 0.2])
    bowls = [
        bridle.Quadratic(2.0, center=[-0.5, 0.0], offset=-0.25),
        bridle.Quadratic([[2.0, 0.0], [0.0, 0.0]], center=[0.5, 0.0], offset=-0.25),
    ]
    np.testing.assert_array_equal(function_prox.hinges_of(ball, v, bowls, [0.0, 0.0], 1.0), v)  # no weight
    np.testing.assert_array_equal(function_prox.hinges_of(ball, 0.0 * v, bowls, [1e9, 1e9], 1.0), 0.0 * v)  # nothing in the way
    corner = function_prox.hinges_of(ball, np.array([-0.5, 0.9]), bowls, [1e12, 1e12], 1.0)
    np.testing.assert_allclose(corner, 0.0, atol=2e-5)  # they meet in one point only, where no multipliers hold it
    apart = [bridle.Quadratic(2.0, center=[-0.5, 0.0], offset=-0.2), bridle.Quadratic(2.0, center=[0.5, 0.0], offset=-0.2)]
    between = function_prox.hinges_of(ball, v, apart, 1e9, 1.0, joint=True)
    np.testing.assert_allclose(between, 0.0, atol=1e-9)  # they meet nowhere: where the larger one is least
    flat = [bridle.Quadratic(0.0, center=[0.0, 0.0], offset=1.0), bowls[0]]
    np.testing.assert_allclose(
        function_prox.hinges_of(ball, v, flat, [5.0, 2.0], 1.0), function_prox.hinge_of(ball, v, bowls[0], 2.0, 1.0), atol=1e-12
    )  # a constant cannot be helped


def test_what_does_not_settle_is_an_error():
    kink = bridle.Callable(lambda x: float(abs(x[0]) + 0.5 * x[1]), lambda x: np.array([1.0 if x[0] >= 0.0 else -1.0, 0.5]))
    bowl = bridle.Quadratic(1.0, center=[1.0, 0.0], offset=-0.1)
    with pytest.raises(RuntimeError, match="is it differentiable"):
        function_prox.hinges_of(bridle.Ball(2), np.array([0.0, 0.9]), [kink, bowl], [5.0, 1.0], 1.0)
    signs = iter(np.resize([1.0, -1.0], 1000))
    with pytest.raises(bridle.InputError, match="no proximal step was found"):
        prox_dual.ascend(lambda s, near, accuracy: (s, np.full(1, next(signs)), np.ones(1)), np.eye(1), np.eye(1), np.full(1, 9.0), 1.0)
