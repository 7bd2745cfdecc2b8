"""Proximal steps on affine constraints, one and several, against the same programs solved by cvxpy and Clarabel."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.solvers import hinge_prox
from helpers.cvxpy_reference import KINDS, PROGRAMS, Program, objective, place, same
from helpers.instances import make_domain


def numbers(domain, k: int, rng):
    v = domain.center() + rng.choice([0.3, 1.0, 3.0]) * domain.diameter() * rng.standard_normal(domain.dim)
    A = rng.standard_normal((k, domain.dim))
    point = domain.project(domain.center() + 0.5 * domain.diameter() * rng.standard_normal(domain.dim))
    return v, A, A @ point - rng.uniform(-0.1, 0.1, k), 10.0 ** rng.uniform(-1.0, 1.0)


# --- one affine constraint --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_one_hinge_is_the_program(kind):
    rng = np.random.default_rng(1)
    domain = place(kind)
    program = Program(domain, 1, False)
    near, kinds = 0, {"below": 0, "spent": 0, "cut": 0}
    for _ in range(PROGRAMS):
        v, A, b, alpha = numbers(domain, 1, rng)
        c = 10.0 ** rng.uniform(-1.0, 2.0)
        mine = hinge_prox.hinge(domain, v, A[0], float(b[0]), c, alpha)
        over = float(A[0] @ mine - b[0])
        kinds["spent" if over > 1e-9 else "cut" if over > -1e-9 else "below"] += 1
        theirs, price = program.solve(v, A, b, c / alpha, mine), c / alpha
        near += same(domain, mine, theirs, lambda x, v=v, A=A, b=b, p=price: objective(x, v, A, b, p, True))
    assert near >= 0.98 * PROGRAMS
    assert min(kinds.values()) >= 3, kinds  # every case has been met


@pytest.mark.parametrize("kind", [*KINDS, "spectrahedron"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_huge_weight_is_the_projection_onto_what_the_cut_leaves(kind, size):
    rng = np.random.default_rng(2)
    domain = place(kind) if kind == "polyhedron" else make_domain(kind, 6, size, rng)
    for _ in range(20):
        v, A, b, alpha = numbers(domain, 1, rng)
        level = min(max(float(b[0]), float(domain.linear_min(A[0])) + 0.05 * domain.diameter()), -float(domain.linear_min(-A[0])))
        mine = hinge_prox.hinge(domain, v, A[0], level, 1e12 * alpha * domain.diameter(), alpha)
        theirs = bridle.Halfspace(A[0], level, within=domain).project(v)
        assert np.abs(mine - theirs).max() <= 1e-11 * (domain.diameter() + np.abs(v).max() + np.abs(domain.center()).max())
        assert float(A[0] @ mine) <= level + 1e-12 * np.linalg.norm(A) * (domain.diameter() + np.abs(domain.center()).max())


def test_edges_of_the_one_hinge():
    ball, box = bridle.Ball(3), bridle.Box(0.0, 1.0, dim=3)
    v = np.array([2.0, 0.3, -0.4])
    for domain in (ball, box, bridle.Simplex(3)):
        np.testing.assert_array_equal(
            hinge_prox.hinge(domain, v, np.zeros(3), -1.0, 5.0, 1.0), domain.project(v)
        )  # a constant cannot be helped
        np.testing.assert_array_equal(hinge_prox.hinge(domain, v, np.ones(3), -9.0, 0.0, 1.0), domain.project(v))  # no weight
        missed = hinge_prox.hinge(domain, v, np.array([1.0, 0.0, 0.0]), -9.0, 7.0, 1.0)  # a cut that misses the domain
        np.testing.assert_allclose(missed, domain.project(v - [3.5, 0.0, 0.0]), atol=1e-15)
    touching = hinge_prox.hinge(ball, v, np.array([1.0, 0.0, 0.0]), -1.0, 1e12, 1.0)
    np.testing.assert_allclose(touching, [-1.0, 0.0, 0.0], atol=1e-6)


def below_in_box(low, high, a, b, x) -> np.ndarray:
    """The nearest point to x of a box below a cut that P(x) is above: every kink of <a, P(x - s a)> tried, the right piece interpolated."""
    kinks = np.sort(np.concatenate([[0.0], *((x - side)[a != 0.0] / a[a != 0.0] for side in (low, high))]))
    points = np.clip(x - kinks[kinks >= 0.0, None] * a, low, high)
    points = np.vstack([points, np.where(a > 0.0, low, np.where(a < 0.0, high, points[-1]))])  # rounding may stop short of the end
    k = int(np.argmax(points @ a <= b))
    top, bottom = points[k - 1], points[k]
    return bottom + (b - a @ bottom) / (a @ (top - bottom)) * (top - bottom)


@pytest.mark.parametrize("d", [1, 2, 5, 30, 200])
@pytest.mark.parametrize("far", [0.1, 1.0, 10.0, 1e3, 1e6, 1e9])
def test_a_cut_through_a_box_near_and_far(d, far):
    """Exact however many sides are met on the way, with flat sides and rows with zeros; on the cut up to rounding at the box's scale."""
    rng = np.random.default_rng([d, int(far)])
    seen = 0
    for _ in range(40):
        low = rng.standard_normal(d)
        high = low + rng.uniform(0.0, 2.0, d) * (rng.random(d) > 0.1)
        a = rng.standard_normal(d) * (rng.random(d) > 0.3) * 10.0 ** rng.uniform(-1.0, 0.0, d)
        a /= np.linalg.norm(a) or 1.0
        x = np.where(rng.random(d) < 0.1, low, low + (high - low) * rng.random(d) + far * rng.standard_normal(d))
        least, over = float(np.where(a > 0.0, low, high) @ a), float(np.clip(x, low, high) @ a)
        if over - least < 1e-6:
            continue
        b = least + (over - least) * rng.choice([rng.uniform(), 1e-6, 1.0 - 1e-6])
        size = float(np.linalg.norm(high - low) + np.linalg.norm(low))
        point = hinge_prox.hinge(bridle.Box(low, high), x, a, b, 1e12 * (1.0 + far), 1.0)
        assert ((low <= point) & (point <= high)).all()
        assert abs(float(a @ point) - b) <= 1e-14 * size
        np.testing.assert_allclose(point, below_in_box(low, high, a, b, x), rtol=0, atol=1e-12 * size + 1e-15 * d * far)
        seen += 1
    assert seen > 5


@pytest.mark.parametrize("kind", [*KINDS, "spectrahedron"])
def test_many_runs_are_the_loop(kind):
    rng = np.random.default_rng(3)
    domain = place(kind)
    rows = [numbers(domain, 1, rng) for _ in range(40)]
    v, a, b = (np.array([row[i] for row in rows]) for i in (0, 1, 2))
    c, alpha = 10.0 ** rng.uniform(-1.0, 9.0, (40, 1)), np.array([[row[3]] for row in rows])
    together = hinge_prox.hinge(domain, v, a[:, 0], b, c, alpha)
    for i in range(40):
        alone = hinge_prox.hinge(domain, v[i], a[i, 0], float(b[i, 0]), float(c[i, 0]), float(alpha[i, 0]))
        np.testing.assert_allclose(together[i], alone, rtol=0, atol=1e-12)
        few = slice(i, i + 2)  # so few that some pairs are alike, and take a short cut together
        np.testing.assert_allclose(hinge_prox.hinge(domain, v[few], a[few, 0], b[few], c[few], alpha[few])[0], alone, rtol=0, atol=1e-12)
    shared = hinge_prox.hinge(domain, v, a[0, 0], float(b[0, 0]), 2.0, 1.0)
    np.testing.assert_allclose(shared[5], hinge_prox.hinge(domain, v[5], a[0, 0], float(b[0, 0]), 2.0, 1.0), rtol=0, atol=1e-12)


# --- several, and functions -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("joint", [False, True])
def test_several_hinges_are_the_program(kind, joint):
    rng = np.random.default_rng(4)
    domain = place(kind)
    near, programs = 0, {k: Program(domain, k, joint) for k in (2, 3, 7)}
    for i in range(PROGRAMS):
        k = (2, 3, 7)[i % 3]
        v, A, b, alpha = numbers(domain, k, rng)
        if i % 10 == 0:
            A[1] = A[0]  # the same constraint twice
        c = 10.0 ** rng.uniform(-1.0, 2.0, None if joint else k)
        mine = hinge_prox.hinges(domain, v, A, b, c, alpha, joint)
        theirs = programs[k].solve(v, A, b, c / alpha, mine)
        near += same(domain, mine, theirs, lambda x, v=v, A=A, b=b, p=c / alpha: objective(x, v, A, b, p, joint))
    assert near >= 0.98 * PROGRAMS


@pytest.mark.parametrize("kind", [*KINDS, "spectrahedron"])
def test_one_of_several_is_one(kind):
    """The quadratic program and the dual against the arithmetic, also with weights so large that they are a projection."""
    rng = np.random.default_rng(5)
    domain = place(kind)
    for i in range(30):
        v, A, b, alpha = numbers(domain, 1, rng)
        c = 10.0 ** rng.uniform(-1.0, 1.0 if i % 2 else 8.0)
        b = np.maximum(b, float(domain.linear_min(A[0])) + 0.05 * domain.diameter())
        mine = hinge_prox.hinge(domain, v, A[0], float(b[0]), c, alpha)
        for joint in (False, True):
            np.testing.assert_allclose(hinge_prox.hinges(domain, v, A, b, c if joint else [c], alpha, joint), mine, rtol=0, atol=1e-9)
            np.testing.assert_allclose(hinge_prox._by_dual(domain, v, A, b, np.array([c]), alpha, joint), mine, rtol=0, atol=1e-9)
