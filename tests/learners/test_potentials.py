"""Potentials: the slope is the derivative, the shape is what Algorithm 1 needs, and no exponent is too large."""

from __future__ import annotations

import warnings
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.core import InputError
from bridle.learners import potentials
from bridle.learners.potentials import CAP, UNIT

exponents = st.floats(0.0, 100.0)  # lam * q
rates = st.floats(-6.0, 3.0).map(lambda e: 10.0**e)


@st.composite
def placed(draw):
    """A potential and two points where it is a float: in units of 1/lam for the exponential."""
    kind = draw(st.sampled_from(["exponential", "power", "quadratic"]))
    if kind == "exponential":
        lam = draw(rates)
        return potentials.Exponential(lam), *(draw(exponents) / lam for _ in range(2))
    q = [draw(st.floats(0.0, 1e6)) for _ in range(2)]
    return (potentials.Quadratic(), *q) if kind == "quadratic" else (potentials.Power(draw(st.floats(2.0, 16.0))), *q)


@settings(max_examples=300)
@given(placed())
def test_zero_at_zero_increasing_convex(case):
    phi, p, q = case
    assert phi.value(0.0) == 0.0
    assert phi.slope(0.0) >= 0.0
    low, high = sorted((p, q))
    assert phi.value(low) <= phi.value(high)
    assert phi.slope(low) <= phi.slope(high)
    rounding = 1e-12 * (1.0 + phi.value(high) + phi.slope(high) * high)
    assert phi.value(q) >= phi.value(p) + phi.slope(p) * (q - p) - rounding  # what the drift inequality uses, at p = Q(t)
    assert phi.value(0.5 * (p + q)) <= 0.5 * (phi.value(p) + phi.value(q)) + rounding


@settings(max_examples=200)
@given(placed())
def test_slope_is_the_derivative(case):
    phi, q, _ = case
    lam = getattr(phi, "lam", 0.0)
    h = 1e-5 * (q + 1e-2) if lam == 0.0 else 1e-5 / lam
    difference = (phi.value(q + h) - phi.value(max(q - h, 0.0))) / (q + h - max(q - h, 0.0))
    low, high = phi.slope(max(q - h, 0.0)), phi.slope(q + h)
    slack = 1e-9 * high + 1e-15 * (1.0 + phi.value(q + h)) / h
    assert low - slack <= difference <= high + slack  # the mean value theorem, which needs no third derivative
    assert low - slack <= phi.slope(q) <= high + slack
    assert high <= low + 1e-3 * phi.slope(q) + 1e-3 * phi.slope(1.0) + slack  # so that the bracket says something


@settings(max_examples=300)
@given(rates, st.floats(0.0, 1.0).map(lambda e: 1e6 * e**6))
def test_units_split_the_exponent_exactly(lam, exponent):
    """slope(q, units) e^{UNIT units} = lam e^{lam q}: in logarithms up to lam q = 1e6, outright where that is a float."""
    phi, q = potentials.Exponential(lam), exponent / lam
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        units = phi.units(q)
        part = phi.slope(q, units)
        wide = potentials.Exponential([lam, lam])
        Q = np.array([[q], [q]])
        assert isinstance(units, float)
        np.testing.assert_allclose(wide.units(Q), [[units], [units]], rtol=1e-12)
        np.testing.assert_allclose(wide.slope(Q, wide.units(Q)), [[part], [part]], rtol=1e-9)
        assert np.isfinite(wide.slope(Q) ** 2).all()
        assert np.isfinite(wide.value(Q)).all()
    assert units == int(units) >= 0.0
    rounding = 1e-15 * (1.0 + exponent)
    assert lam * exp(-rounding) <= part <= lam * exp(UNIT + rounding)
    assert log(part) + UNIT * units == pytest.approx(log(lam) + lam * q, rel=1e-14, abs=1e-14)
    if exponent < UNIT * (1.0 - 1e-12):
        assert units == 0.0
    if exponent < 600.0:
        assert part * exp(UNIT * units) == pytest.approx(lam * exp(lam * q), rel=1e-12)
    if exponent < CAP:
        assert phi.slope(q) == pytest.approx(lam * exp(lam * q), rel=1e-14)
    assert phi.slope(q) ** 2 < float("inf")


@given(st.lists(rates, min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_runs_are_the_loop_over_runs(lams, seed):
    Q = np.random.default_rng(seed).uniform(0.0, 50.0, (len(lams), 1)) / np.array(lams)[:, None]
    wide = potentials.Exponential(lams)
    for r, lam in enumerate(lams):
        one, q = potentials.Exponential(lam), float(Q[r, 0])
        assert wide.value(Q)[r, 0] == pytest.approx(one.value(q), rel=1e-13)
        assert wide.slope(Q)[r, 0] == pytest.approx(one.slope(q), rel=1e-13)
    powers = [2.0 + lam / 1e3 for lam in lams]
    for r, n in enumerate(powers):
        assert potentials.Power(powers).slope(Q)[r, 0] == pytest.approx(potentials.Power(n).slope(float(Q[r, 0])), rel=1e-13)


@pytest.mark.compiles
def test_jax_agrees_with_numpy():
    jax = pytest.importorskip("jax")
    pytest.importorskip("bridle.engines.jax")  # makes JAX's arrays known
    q = np.array([[0.0], [1.0], [50.0], [1e4], [1e6]])
    phi = potentials.Exponential(1.0)
    with jax.enable_x64(True):
        units = phi.units(jax.numpy.asarray(q))
        np.testing.assert_array_equal(units, phi.units(q))
        np.testing.assert_allclose(phi.slope(jax.numpy.asarray(q), units), phi.slope(q, phi.units(q)), rtol=1e-13)
        np.testing.assert_allclose(phi.slope(jax.numpy.asarray(q)), phi.slope(q), rtol=1e-13)


BAD = [
    (lambda: potentials.Exponential(0.0), r"lam must be above 0, not 0\.0"),
    (lambda: potentials.Exponential("fast"), r"lam must be a number, not 'fast'"),
    (lambda: potentials.Exponential([0.1, -0.1]), r"lam must be above 0, not .*-0\.1"),
    (lambda: potentials.Power(1.5), r"exponent must be 2 or above, not 1\.5"),
    (lambda: potentials.Power([3.0, 1.0]), r"exponent must be 2 or above, not \[3\.0, 1\.0\]"),
    (lambda: potentials.Power(np.inf), r"exponent must be finite, not inf"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_one_error_with_name_and_value(call, message):
    with pytest.raises(InputError, match=message):
        call()
