"""Functions are what they say: values, subgradients, convexity and shapes, against plain formulas, differences and the definition."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import ops, records
from bridle.core import InputError, Round
from bridle.functions import (
    AffineFunction,
    AffineRows,
    Coordinate,
    CoordinateDeviation,
    Deviation,
    HingeLoss,
    LogisticLoss,
    LogWealthLoss,
    MaximumOf,
    QuadraticForm,
    RoundQuadratic,
)
from helpers.instances import EPS

KINDS = ("affine", "round", "form", "logistic", "wealth", "hinge", "deviation", "coordinate", "coordinate-deviation", "maximum", "nested")
kinds, seeds, dims = st.sampled_from(KINDS), st.integers(0, 2**32 - 1), st.integers(1, 6)


def make(kind: str, d: int, rng: np.random.Generator, scale: float = 1.0, at: np.ndarray | None = None):
    """A random function; `at` is where one with a kink is to have it: exactly there, where `at` and `scale` are whole numbers."""

    def entries(*shape: int) -> np.ndarray:
        return scale * (rng.standard_normal(shape) if at is None else rng.integers(-3, 4, shape).astype(float))

    a, label = entries(d), float(rng.choice([-1.0, 1.0]))
    middle = float(entries()) if at is None else float(a @ at)
    if kind == "affine":
        return AffineFunction(a, float(entries()))
    if kind == "round":
        return RoundQuadratic(abs(float(entries())), entries(d), a, float(entries()))
    if kind == "form":
        root = entries(d, int(rng.integers(0, d + 1)))  # of any rank
        return QuadraticForm(root @ root.T, a, float(entries()))
    if kind == "logistic":
        return LogisticLoss(a, label, abs(float(entries())))
    if kind == "wealth":  # the decision that is tried is on either side of the floor, and on it where there is an `at`
        return LogWealthLoss(a, middle if at is not None and middle > 0.0 else scale * float(rng.uniform(0.1, 1.0)))
    if kind == "hinge":
        return HingeLoss(a, label, label * middle, abs(float(entries())))
    if kind == "deviation":
        return Deviation(a, middle)
    j = int(rng.integers(d))
    if kind == "coordinate":
        return Coordinate(float(j), label, float(entries()))
    if kind == "coordinate-deviation":
        return CoordinateDeviation(float(j), float(entries()) if at is None else float(at[j]))
    if kind == "maximum":
        if at is None:
            return MaximumOf((make("affine", d, rng, scale), make("round", d, rng, scale), make("hinge", d, rng, scale)))
        other = entries(d)  # both pieces have the value `scale` at the kink
        return MaximumOf((AffineFunction(a, scale - float(a @ at)), AffineFunction(other, scale - float(other @ at))))
    if kind == "nested":
        return MaximumOf((make("deviation", d, rng, scale, at), make("maximum", d, rng, scale, at)))
    raise ValueError(kind)


def plain(f, x: np.ndarray) -> float:
    """The value by the formula on the page, one entry at a time."""

    def inner(a: np.ndarray) -> float:
        return sum(float(p) * float(q) for p, q in zip(a, x, strict=True))

    match f:
        case AffineFunction(a, b):
            return inner(a) + b
        case RoundQuadratic(curvature, c, a, b):
            return curvature / 2.0 * sum(float(e) ** 2 for e in x - c) + inner(a) + b
        case QuadraticForm(P, a, b):
            return sum(P[i, j] * x[i] * x[j] for i in range(len(x)) for j in range(len(x))) / 2.0 + inner(a) + b
        case LogisticLoss(a, label, weight):
            return weight * float(np.logaddexp(0.0, -label * inner(a)))
        case LogWealthLoss(a, floor):
            short = inner(a) - floor
            return -float(np.log(inner(a))) if short >= 0.0 else -float(np.log(floor)) - short / floor + 0.5 * (short / floor) ** 2
        case HingeLoss(a, label, margin, weight):
            return weight * max(0.0, margin - label * inner(a))
        case Deviation(a, b):
            return abs(inner(a) - b)
        case Coordinate(j, sign, target):
            return sign * (x[int(j)] - target)
        case CoordinateDeviation(j, target):
            return abs(x[int(j)] - target)
        case MaximumOf(functions):
            return max(plain(g, x) for g in functions)
    raise TypeError(f)


def magnitude(f, r: float) -> float:
    """How large the terms of f get where the entries of x sum to r: what its rounding is relative to."""
    match f:
        case AffineFunction(a, b) | Deviation(a, b):
            return float(np.abs(a).sum()) * r + abs(b)
        case RoundQuadratic(curvature, c, a, b):
            return curvature * (r + float(np.abs(c).sum())) ** 2 + float(np.abs(a).sum()) * r + abs(b)
        case QuadraticForm(P, a, b):
            return float(np.abs(P).sum()) * r * r + float(np.abs(a).sum()) * r + abs(b)
        case LogisticLoss(a, _, weight):
            return weight * (float(np.abs(a).sum()) * r + 1.0)
        case LogWealthLoss(a, floor):
            steep = 1.0 + float(np.abs(a).sum()) * r / floor
            return steep * steep + abs(float(np.log(floor)))
        case HingeLoss(a, _, margin, weight):
            return weight * (float(np.abs(a).sum()) * r + abs(margin))
        case Coordinate(_, _, target) | CoordinateDeviation(_, target):
            return r + abs(target)
        case MaximumOf(functions):
            return sum(magnitude(g, r) for g in functions)
    raise TypeError(f)


@settings(max_examples=400)
@given(kinds, seeds, dims, st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.booleans())
def test_value_tangent_and_chord(kind, seed, d, log_scale, log_size, kink):
    """The value is the formula's; every tangent plane is below the function and every chord above it, at kinks too."""
    rng = np.random.default_rng(seed)
    if kink:  # whole numbers, so that x is exactly on the kink
        size, x = 4.0, rng.integers(-4, 5, d).astype(float)
        f = make(kind, d, rng, float(rng.integers(1, 5)), at=x)
    else:
        size = 10.0**log_size
        f, x = make(kind, d, rng, 10.0**log_scale), size * rng.standard_normal(d)
    value, grad = f.value(x), f.grad(x)
    assert isinstance(value, float)
    assert grad.shape == (d,)
    near, far = x + 1e-3 * size * rng.standard_normal(d), 3.0 * size * rng.standard_normal(d)
    beside = [x + sign * 0.1 * size * e for e in np.eye(d) for sign in (-1.0, 1.0)]
    for y in (x, near, far, -far, *beside):
        rounding = 64.0 * EPS * magnitude(f, float(np.abs(x).sum() + np.abs(y).sum()))
        assert f.value(y) == pytest.approx(plain(f, y), rel=0.0, abs=rounding)
        assert f.value(y) >= value + float(grad @ (y - x)) - rounding
        s = rng.random()
        assert f.value((1.0 - s) * x + s * y) <= (1.0 - s) * value + s * f.value(y) + rounding


@settings(max_examples=200)
@given(kinds, seeds, dims)
def test_gradient_is_the_derivative(kind, seed, d):
    """Central differences, wherever the two one-sided ones agree that there is no kink nearby."""
    rng = np.random.default_rng(seed)
    f, x, h = make(kind, d, rng), rng.standard_normal(d), 1e-5
    grad = f.grad(x)
    for i, e in enumerate(np.eye(d)):
        below, here, above = f.value(x - h * e), f.value(x), f.value(x + h * e)
        if abs(above - 2.0 * here + below) < 1e-3 * h:
            assert grad[i] == pytest.approx((above - below) / (2.0 * h), rel=1e-5, abs=1e-5)


def relatives(kind: str, B: int, d: int, rng: np.random.Generator) -> list:
    return [make(kind, d, rng) for _ in range(B)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("B", "d"), [(1, 1), (1, 3), (4, 1), (3, 3), (5, 2)])
def test_shapes_of_runs_and_of_time(kind, B, d):
    """One function at B decisions, B functions at B decisions, and a sequence of functions at one: each as the loop has it, B = d too."""
    rng = np.random.default_rng(B * 10 + d)
    functions, X = relatives(kind, B, d, rng), rng.standard_normal((B, d))
    together = records.widen(records.stack(functions), 1)
    cases = [
        (functions[0], X, [(functions[0], x) for x in X]),
        (together, X, list(zip(functions, X, strict=True))),
        (together, X[0], [(f, X[0]) for f in functions]),
    ]
    for f, x, loop in cases:
        value, grad = f.value(x), f.grad(x)
        assert value.shape == (B, 1)
        assert np.broadcast_shapes(grad.shape, (B, d)) == (B, d)
        np.testing.assert_allclose(value[:, 0], [g.value(y) for g, y in loop], rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(np.broadcast_to(grad, (B, d)), [g.grad(y) for g, y in loop], rtol=1e-13, atol=1e-13)


@settings(max_examples=100)
@given(st.sampled_from(["affine", "round", "flat", "form"]), seeds, st.integers(1, 9), dims, st.booleans())
def test_total_is_the_sum(kind, seed, T, d, widened):
    """The sum of a sequence, again as one function: also without any curvature, and with centres far apart."""
    rng = np.random.default_rng(seed)
    functions = relatives("round" if kind == "flat" else kind, T, d, rng)
    if kind == "flat":
        functions = [f._replace(curvature=0.0) for f in functions]
    if kind == "round":
        functions = [f._replace(curvature=f.curvature * float(rng.integers(2)), c=1e3 * f.c) for f in functions]
    sequence = records.stack(functions)
    total, x = (records.widen(sequence, 1) if widened else sequence).total(), rng.standard_normal(d)
    assert isinstance(total.value(x), float)
    slack = 1e-12 * sum(magnitude(f, d) for f in functions)
    assert total.value(x) == pytest.approx(sum(f.value(x) for f in functions), rel=1e-12, abs=slack)
    np.testing.assert_allclose(total.grad(x), sum(f.grad(x) for f in functions), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(("k", "d", "B"), [(1, 1, 1), (1, 3, 2), (2, 2, 2), (4, 3, 4), (3, 5, 2)])
def test_rows_are_affine_functions_one_below_the_other(k, d, B):
    rng = np.random.default_rng(k)
    A, b, X = rng.standard_normal((B, k, d)), rng.standard_normal((B, k)), rng.standard_normal((B, d))
    one = bridle.Affine(A[0], b[0])
    assert isinstance(one, AffineRows)
    expected = np.array([[bridle.Affine(A[0, i], b[0, i]).value(x) for i in range(k)] for x in X])
    np.testing.assert_allclose(one.value(X[0]), expected[0], rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(one.value(X), expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(one.grad(X[0]), A[0])
    several = AffineRows(A, b)  # its own rows for every run, or for every round
    assert several.value(X).shape == several.value(X[0]).shape == (B, k)
    for r in range(B):
        np.testing.assert_allclose(several.value(X)[r], A[r] @ X[r] + b[r], rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(several.value(X[0])[r], A[r] @ X[0] + b[r], rtol=1e-13, atol=1e-14)
        np.testing.assert_array_equal(several.grad(X)[r], A[r])
    np.testing.assert_array_equal(bridle.Affine(A[0], 2.0).b, np.full(k, 2.0))


MIXES = ("affine", "rows1", "round affine", "rows2", "rows2 hinge", "affine rows1 maximum", "rows2 form rows1")


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("runs", ["one", "shared", "own", "mixed"])
@pytest.mark.parametrize("B", [1, 2, 3, 4])
def test_reveal_lines_constraints_up(mix, runs, B):
    """g is (..., k) and dg (..., k, d) in the order given; `worst` and `combine` read them for each run as they read them for one."""
    d, rng, mix = 3, np.random.default_rng(B), mix.split()

    def constraint(kind: str):
        if kind.startswith("rows"):
            return bridle.Affine(rng.standard_normal((int(kind[4:]), d)), rng.standard_normal(int(kind[4:])))
        return make(kind, d, rng)

    each = [Round(make("round", d, rng), tuple(constraint(kind) for kind in mix)) for _ in range(B)]
    if runs in ("one", "shared"):
        each = [each[0]] * B
    if runs == "mixed":  # the first constraint is the same for all
        each = [Round(one.cost, (each[0].constraints[0], *one.constraints[1:])) for one in each]
    X = rng.standard_normal((B, d))
    if runs == "one":
        X, B, whole = X[0], 1, each[0]
    elif runs == "shared":
        whole = each[0]
    else:
        whole = records.widen(records.stack(each), 1)
        whole = Round(whole.cost, (each[0].constraints[0], *whole.constraints[1:])) if runs == "mixed" else whole
    k = sum(int(kind[4:]) if kind.startswith("rows") else 1 for kind in mix)
    feedback = whole.reveal(X)
    assert feedback.x is X
    assert feedback.round is whole
    assert feedback.modulus is None
    lead = () if runs == "one" else (B,)
    assert feedback.g.shape == (*lead, k)
    assert feedback.dg.shape[-2:] == (k, d)
    g, dg = np.broadcast_to(feedback.g, (B, k)), np.broadcast_to(feedback.dg, (B, k, d))
    top, steepest = ops.worst(feedback.g, feedback.dg)
    mixture = ops.combine(feedback.g, feedback.dg)
    if runs == "one":
        assert isinstance(top, float)
        assert isinstance(feedback.f, float)
        assert steepest.shape == mixture.shape == feedback.df.shape == (d,)
    else:
        assert top.shape == feedback.f.shape == (B, 1)
    top, f = np.reshape(top, -1), np.reshape(feedback.f, -1)
    steepest, mixture, df = (np.broadcast_to(part, (B, d)) for part in (steepest, mixture, feedback.df))
    for r in range(B):
        x, one = np.atleast_2d(X)[r], each[r]
        values = np.concatenate([np.atleast_1d(c.value(x)) for c in one.constraints])
        rows = np.concatenate([np.atleast_2d(c.grad(x)) for c in one.constraints])
        np.testing.assert_allclose(g[r], values, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(dg[r], rows, rtol=1e-13, atol=1e-14)
        assert top[r] == pytest.approx(values.max(), rel=1e-13)
        np.testing.assert_allclose(steepest[r], rows[values.argmax()], rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(mixture[r], values @ rows, rtol=1e-12, atol=1e-13)
        assert f[r] == pytest.approx(one.cost.value(x), rel=1e-13)
        np.testing.assert_allclose(df[r], one.cost.grad(x), rtol=1e-13, atol=1e-14)


def test_ties_go_to_the_lowest_index():
    pieces = [AffineFunction(np.array([float(i), 1.0]), 0.0) for i in range(3)]
    X = np.array([[0.0, 2.0], [1.0, 0.0], [-1.0, 0.0]])  # all three tie at the first
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        f = bridle.Maximum(*(pieces[i] for i in order))
        expected = [pieces[order[0]].a, pieces[2].a, pieces[0].a]
        np.testing.assert_array_equal(f.grad(X), expected)
        for x, grad in zip(X, expected, strict=True):
            np.testing.assert_array_equal(f.grad(x), grad)
        nested = bridle.Maximum(bridle.Maximum(pieces[order[0]], pieces[order[1]]), pieces[order[2]])
        np.testing.assert_array_equal(nested.grad(X), expected)
        A = np.array([pieces[i].a for i in order])
        g = X @ A.T
        np.testing.assert_array_equal(ops.worst(g, A)[1], expected)
        np.testing.assert_array_equal(ops.worst(g[0], A)[1], expected[0])


@given(seeds, dims)
def test_sparse_functions_are_their_dense_versions(seed, d):
    rng = np.random.default_rng(seed)
    j, sign, target, x = int(rng.integers(d)), float(rng.choice([-1.0, 1.0])), float(rng.standard_normal()), rng.standard_normal((4, d))
    x[1, j] = target
    for sparse, dense in [
        (Coordinate(float(j), sign, target), AffineFunction(sign * np.eye(d)[j], -sign * target)),
        (CoordinateDeviation(float(j), target), Deviation(np.eye(d)[j], target)),
    ]:
        np.testing.assert_allclose(sparse.value(x), dense.value(x), rtol=1e-14, atol=1e-15)
        np.testing.assert_array_equal(np.broadcast_to(sparse.grad(x), x.shape), np.broadcast_to(dense.grad(x), x.shape))
        for row in x:
            assert sparse.value(row) == pytest.approx(dense.value(row), rel=1e-14, abs=1e-15)
            np.testing.assert_array_equal(sparse.grad(row), dense.grad(row))


def test_the_subgradient_at_a_deviations_kink_is_zero():
    assert not Deviation(np.array([2.0, 1.0]), 4.0).grad(np.array([1.0, 2.0])).any()
    assert not CoordinateDeviation(1.0, 2.0).grad(np.array([1.0, 2.0])).any()


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("size", [1e2, 1e4, 1e150])
def test_logistic_loss_does_not_overflow(label, size):
    f = bridle.Logistic([2.0, 0.0], label, weight=3.0)
    wrong, right = np.array([-label * size, 1.0]), np.array([label * size, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f.value(wrong) == pytest.approx(6.0 * size, rel=1e-14)
        assert f.value(right) == pytest.approx(0.0, abs=1e-80)
        np.testing.assert_allclose(f.grad(wrong), [-6.0 * label, 0.0], rtol=1e-14)
        np.testing.assert_allclose(f.grad(right), [0.0, 0.0], atol=1e-80)
        both = np.array([wrong, right])
        np.testing.assert_allclose(f.value(both)[:, 0], [f.value(wrong), f.value(right)], rtol=1e-14)
        np.testing.assert_allclose(f.grad(both), [f.grad(wrong), f.grad(right)], rtol=1e-14)


@given(st.floats(0.1, 3.0), st.floats(-2.0, 3.0))
def test_wealth_is_the_logarithm_above_its_floor_and_twice_differentiable_at_it(floor, growth):
    f = bridle.LogWealth([1.0], floor)
    if growth >= floor:
        assert f.value(np.array([growth])) == pytest.approx(-np.log(growth), abs=1e-14)
        assert f.grad(np.array([growth]))[0] == pytest.approx(-1.0 / growth, rel=1e-14)
    else:
        assert f.value(np.array([growth])) >= -np.log(floor)
    at, h = floor, 1e-4 * floor
    left, right = ((f.grad(np.array([at + s * h]))[0] - f.grad(np.array([at]))[0]) / (s * h) for s in (-1.0, 1.0))
    assert left == pytest.approx(1.0 / floor**2, rel=1e-9)
    assert right == pytest.approx(left, rel=1e-3)


@given(st.floats(-700.0, 700.0))
def test_logistic_gradient_is_precise_however_small(margin):
    """The derivative of ln(1 + e^{-m}) is -1/(1 + e^m); where the loss is far in the right it is small, and not zero."""
    expected = -np.exp(-margin) / (1.0 + np.exp(-margin)) if margin > 0.0 else -1.0 / (1.0 + np.exp(margin))
    f = bridle.Logistic([1.0], 1)
    assert f.grad(np.array([margin]))[0] == pytest.approx(expected, rel=1e-12)
    assert f.grad(np.array([[margin], [0.0]]))[0, 0] == pytest.approx(expected, rel=1e-12)


def test_callables_are_called_row_by_row_and_say_whether_they_are_convex():
    f = bridle.Callable(lambda x: x @ x, lambda x: list(2.0 * x))
    X = np.arange(12.0).reshape(2, 2, 3)
    assert f.value(X[0, 0]) == 5.0
    np.testing.assert_array_equal(f.grad(X[0, 0]), [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(f.value(X), (X * X).sum(axis=-1, keepdims=True))
    np.testing.assert_array_equal(f.grad(X), 2.0 * X)
    assert f.convex
    assert not bridle.Callable(f.of, f.gradient, convex=False).convex
    assert not bridle.Maximum(bridle.Affine([1.0]), bridle.Callable(f.of, f.gradient, convex=False)).convex
    assert not Round(f, (bridle.Callable(f.of, f.gradient, convex=False),)).convex
    assert Round(f, (bridle.Affine([1.0]),)).convex


@settings(max_examples=100)
@given(seeds, dims, st.booleans(), st.booleans())
def test_quadratic_factory_multiplies_out(seed, d, matrix, moved):
    """(1/2) (x - c)' P (x - c) + <a, x> + b, whichever parts are given."""
    rng = np.random.default_rng(seed)
    root, x = rng.standard_normal((d, d)), rng.standard_normal(d)
    P = root @ root.T if matrix else np.eye(d) * rng.exponential()
    c, a, b = rng.standard_normal(d), rng.standard_normal(d), float(rng.standard_normal())
    f = bridle.Quadratic(P if matrix else P[0, 0], center=c if moved else None, linear=a, offset=b)
    away = x - c if moved else x
    assert f.value(x) == pytest.approx(0.5 * away @ P @ away + a @ x + b, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(f.grad(x), P @ away + a, rtol=1e-12, atol=1e-12)


BAD = [
    (lambda: bridle.Affine([]), r"a must be a vector"),
    (lambda: bridle.Affine([1.0, np.nan]), r"a must be finite, not nan at index 1"),
    (lambda: bridle.Affine("ab"), r"a must be an array of numbers, not 'ab'"),
    (lambda: bridle.Affine([[1.0], [1.0, 2.0]]), r"a must be an array of numbers, not \[\[1\.0\], \[1\.0, 2\.0\]\]"),
    (lambda: bridle.Affine(np.zeros((2, 2, 2))), r"a must be a vector, not an array of shape \(2, 2, 2\)"),
    (lambda: bridle.Affine(np.zeros((2, 0))), r"a must be a vector, not an array of shape \(2, 0\)"),
    (lambda: bridle.Affine([1.0], "x"), r"b must be a number, not 'x'"),
    (lambda: bridle.Affine([1.0], [1.0, 2.0]), r"b must be a number, not \[1\.0, 2\.0\]"),
    (lambda: bridle.Affine(np.eye(2), "x"), r"b must be an array of numbers, not 'x'"),
    (lambda: bridle.Affine(np.eye(2), [1.0, 2.0, 3.0]), r"b must have shape \(2,\), not \(3,\)"),
    (lambda: bridle.Affine(np.eye(2), [1.0, np.inf]), r"b must be finite, not inf at index 1"),
    (lambda: bridle.Quadratic(1.0), r"center or linear must be given"),
    (lambda: bridle.Quadratic(-1.0, center=[0.0]), r"curvature must be 0 or above, not -1\.0"),
    (lambda: bridle.Quadratic("x", center=[0.0]), r"curvature must be an array of numbers, not 'x'"),
    (lambda: bridle.Quadratic([[1.0], [1.0, 2.0]]), r"curvature must be an array of numbers, not \[\[1\.0\]"),
    (lambda: bridle.Quadratic([1.0, 2.0]), r"curvature must be a number or a square matrix, not an array of shape \(2,\)"),
    (lambda: bridle.Quadratic(np.zeros((0, 0))), r"curvature must be a number or a square matrix, not an array of shape \(0, 0\)"),
    (lambda: bridle.Quadratic([[1.0, 1.0], [0.0, 1.0]]), r"curvature must be a symmetric matrix, not \[\[1\.0, 1\.0\]"),
    (lambda: bridle.Quadratic([[1.0, 2.0], [2.0, 1.0]]), r"curvature must be positive semidefinite; its smallest eigenvalue is -1"),
    (lambda: bridle.Quadratic(1.0, center=[[0.0]]), r"center must be a vector, not an array of shape \(1, 1\)"),
    (lambda: bridle.Quadratic(np.eye(2), center=[0.0]), r"center must have shape \(2,\), not \(1,\)"),
    (lambda: bridle.Quadratic(1.0, center=[0.0], linear=[0.0, 1.0]), r"linear must have shape \(1,\), not \(2,\)"),
    (lambda: bridle.Quadratic(1.0, linear=[[1.0], [1.0, 2.0]]), r"linear must be an array of numbers, not \[\[1\.0\]"),
    (lambda: bridle.Quadratic(np.eye(1), offset=np.inf), r"offset must be finite, not inf"),
    (lambda: bridle.Logistic([], 1), r"features must be a vector"),
    (lambda: bridle.Logistic([1.0], 0), r"label must be \+1 or -1, not 0"),
    (lambda: bridle.Logistic([1.0], "spam"), r"label must be a number, not 'spam'"),
    (lambda: bridle.Logistic([1.0], 1, weight=-2.0), r"weight must be 0 or above, not -2\.0"),
    (lambda: bridle.LogWealth([[1.0]]), r"returns must be a vector, not an array of shape \(1, 1\)"),
    (lambda: bridle.LogWealth([1.0], floor=0.0), r"floor must be above 0, not 0\.0"),
    (lambda: bridle.Hinge([[1.0]], 1), r"features must be a vector, not an array of shape \(1, 1\)"),
    (lambda: bridle.Hinge([1.0], 0.5), r"label must be \+1 or -1, not 0\.5"),
    (lambda: bridle.Hinge([1.0], 1, margin=np.nan), r"margin must be finite, not nan"),
    (lambda: bridle.Hinge([1.0], 1, weight=None), r"weight must be a number, not None"),
    (lambda: bridle.AbsoluteDeviation([np.inf]), r"a must be finite, not inf at index 0"),
    (lambda: bridle.AbsoluteDeviation([1.0], [2.0, 3.0]), r"b must be a number, not \[2\.0, 3\.0\]"),
    (lambda: bridle.Maximum(), r"functions must hold at least one function, not \(\)"),
    (lambda: bridle.Maximum(bridle.Affine([1.0]), 3.0), r"functions\[1\] must be a function .*, not 3\.0"),
    (lambda: bridle.Maximum(bridle.Affine(np.eye(2), 0.0)), r"functions\[0\] must be one function, not the rows of Affine"),
    (lambda: bridle.Callable(3.0, len), r"value must be callable, not 3\.0"),
    (lambda: bridle.Callable(len, "x"), r"grad must be callable, not 'x'"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_one_error_with_name_and_value(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.compiles
def test_jax_agrees_with_numpy_and_with_its_own_derivatives():
    """Every kind, alone, for several runs and over time, compiled; where there is no kink the gradient is that of the value."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    pytest.importorskip("bridle.engines.jax")  # makes JAX's arrays known

    def traced(record):
        return records.transform(lambda leaf: jnp.asarray(leaf, dtype=float), record)

    def evaluated(functions, x):
        return tuple((f.value(x), f.grad(x)) for f in functions)

    def derived(functions, x):
        return tuple(jax.grad(lambda y, f=f: jnp.asarray(f.value(y)).sum())(x) for f in functions)

    rng, B, d = np.random.default_rng(3), 3, 4
    X = rng.standard_normal((B, d))
    each = [relatives(kind, B, d, rng) for kind in KINDS]
    single, several = tuple(group[0] for group in each), tuple(records.widen(records.stack(group), 1) for group in each)
    game = Round(make("round", d, rng), (bridle.Affine(rng.standard_normal((2, d)), [0.5, 1.0]), make("hinge", d, rng)))
    with jax.enable_x64(True):
        for functions, x in ((single, X[0]), (several, X), (several, X[0])):
            results = jax.jit(evaluated)(traced(functions), jnp.asarray(x))
            for f, (value, grad) in zip(functions, results, strict=True):
                np.testing.assert_allclose(value, f.value(x), rtol=1e-13, atol=1e-13)
                np.testing.assert_allclose(grad, f.grad(x), rtol=1e-13, atol=1e-13)
        for f, grad in zip(single, jax.jit(derived)(traced(single), jnp.asarray(X[0])), strict=True):
            np.testing.assert_allclose(grad, f.grad(X[0]), rtol=1e-12, atol=1e-13)
        for x in (X[0], X):
            here, there = game.reveal(x), traced(game).reveal(jnp.asarray(x))
            for name in ("f", "df", "g", "dg"):
                assert np.shape(getattr(here, name)) == np.shape(getattr(there, name))
                np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-13, atol=1e-13)
