"""The ball that a domain holds around its centre, and the domain shrunk towards it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bridle
from bridle.core import InputError
from bridle.domains.inner_ball import Shrunk, inner_ball

ROOMS = {
    "ball": (bridle.Ball(radius=2.0, center=[1.0, -0.5]), 2.0, 2),
    "box": (bridle.Box([-1.0, 0.0], [0.5, 3.0]), 0.75, 2),
    "simplex": (bridle.Simplex(4, mass=2.0), 2.0 / math.sqrt(12.0), 3),
    "L1": (bridle.L1Ball(3, radius=1.5), 1.5 / math.sqrt(3.0), 3),
    "matrices": (bridle.Spectrahedron(3), 1.0 / math.sqrt(6.0), 5),
    "product": (bridle.Product(bridle.Simplex(2), bridle.Box([0.0], [0.4])), 0.2, 2),
    "cut": (bridle.Halfspace([1.0, 0.0], 0.0, within=bridle.Ball(2)), 0.5, 2),
    "polyhedron": (bridle.Polyhedron([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [1.0, 1.0, 0.0]), 2.0 / (2.0 + math.sqrt(2.0)), 2),
}


@pytest.mark.parametrize("name", ROOMS)
def test_the_ball_inside_is_inside_and_touches(name):
    domain, radius, n = ROOMS[name]
    ball = inner_ball(domain)
    assert ball.dim == n
    assert ball.radius == pytest.approx(radius, rel=1e-6)
    rng = np.random.default_rng(0)
    away = rng.standard_normal((4000, domain.dim))
    away = away if ball.normals is None else away - (away @ ball.normals.T) @ ball.normals
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    assert domain.contains(ball.middle + ball.radius * away)
    outside = [not domain.contains(ball.middle + 1.2 * ball.radius * u) for u in away]
    assert any(outside)
    shrunk = Shrunk(domain, ball.middle, 0.7)
    x = shrunk.project(domain.center() + 3.0 * away[:50])
    assert shrunk.contains(x)
    assert domain.contains(x + 0.3 * ball.radius * away[50:100])
    assert np.allclose(shrunk.project(x), x)
    assert shrunk.diameter() == pytest.approx(0.7 * domain.diameter())
    v = rng.standard_normal(domain.dim)
    assert shrunk.contains(shrunk.linear_argmin(v))
    assert (x @ v).min() >= float(shrunk.linear_min(v)) - 1e-9


def test_a_domain_without_room_is_refused():
    flat = bridle.Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1.0, -1.0, 1.0, 1.0])
    for domain in (flat, bridle.Simplex(1)):
        with pytest.raises(InputError, match="domain must hold a ball"):
            bridle.policy("bandit2", domain, horizon=10, lipschitz=1.0)


def test_a_shrunken_box_is_a_smaller_box():
    """[0, 4] x [0, 2] shrunk by half towards (1, 1): [0.5, 2.5] x [0.5, 1.5]."""
    shrunk, small = Shrunk(bridle.Box([0.0, 0.0], [4.0, 2.0]), np.array([1.0, 1.0]), 0.5), bridle.Box([0.5, 0.5], [2.5, 1.5])
    rows = np.array([[9.0, -9.0], [0.6, 1.0], [-1.0, 1.4], [2.0, 7.0]])
    np.testing.assert_allclose(shrunk.project(rows), small.project(rows))
    np.testing.assert_allclose(shrunk.center(), [1.5, 1.0])
    np.testing.assert_allclose(shrunk.linear_argmin(np.array([1.0, -1.0])), [0.5, 1.5])
    assert (shrunk.dim, float(shrunk.linear_min(np.array([1.0, -1.0]))), shrunk.diameter()) == (2, -1.0, pytest.approx(math.sqrt(5.0)))
    assert shrunk.linear_min(rows).shape == (4, 1)
    np.testing.assert_allclose(shrunk.linear_min(rows), small.linear_min(rows))
    assert shrunk.contains(np.array([2.5, 1.5]))
    assert not shrunk.contains(np.array([2.5 + 1e-6, 1.5]))
    assert shrunk.contains(np.array([2.5 + 1e-6, 1.5]), 1e-5)


def test_faces_along_the_hull_do_not_bound_it():
    """x_1 + x_2 <= 5 is nothing to a simplex of two, all of whose points have x_1 + x_2 = 1; and two simplices have two normals."""
    ball = inner_ball(bridle.Halfspace([1.0, 1.0], 5.0, within=bridle.Simplex(2)))
    assert (ball.dim, ball.radius) == (1, pytest.approx(math.sqrt(0.5)))
    ball = inner_ball(bridle.Product(bridle.Simplex(2), bridle.Simplex(2, mass=3.0)))
    assert (ball.dim, ball.radius) == (2, pytest.approx(math.sqrt(0.5)))
    np.testing.assert_allclose(ball.normals @ ball.normals.T, np.eye(2), atol=1e-12)
