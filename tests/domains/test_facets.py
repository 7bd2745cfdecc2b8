"""A domain as inequalities: they hold inside and fail outside, and every view says the same."""

from __future__ import annotations

import numpy as np
import pytest

from bridle.domains import Ball, Box, Halfspace, L1Ball, Polyhedron, Product, Simplex, Spectrahedron
from bridle.domains.closed_form import ProductSet
from bridle.domains.facets import LISTED_DIMENSIONS, corners, faces, facets, halfspaces, peeled

SQUARE = Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], np.ones(4))
FLAT = {
    "box": Box([0.0, -1.0, 2.0], [1.0, 2.0, 2.0]),  # one coordinate is fixed
    "simplex": Simplex(3, mass=2.0),
    "polyhedron": SQUARE,
    "cut box": Halfspace([1.0, 1.0], 1.0, within=Box(0.0, 1.0, dim=2)),
    "product": Product(Box(0.0, 1.0, dim=2), Simplex(2)),
    "cut product": Halfspace(np.ones(4), 2.0, within=Product(Box(0.0, 1.0, dim=2), Simplex(2))),
}
LIFTED = {"l1 ball": L1Ball(center=[1.0, -1.0], radius=2.0), "cut l1 ball": Halfspace([1.0, 0.0], 1.5, within=L1Ball(2, radius=2.0))}
CURVED = {
    "ball": Ball(center=[1.0, 2.0], radius=0.5),
    "cut ball": Halfspace([1.0, 0.0], 1.2, within=Ball(center=[1.0, 2.0], radius=0.5)),
    "spectrahedron": Spectrahedron(2, trace=3.0),
    "mixed product": Product(Ball(2), L1Ball(2), Simplex(2), Spectrahedron(2)),
}
ALL = {**FLAT, **LIFTED, **CURVED}


def points(domain, many=200):
    """Points of the domain and points around it."""
    rng = np.random.default_rng(0)
    around = domain.center() + domain.diameter() * rng.standard_normal((many, domain.dim))
    return np.vstack([domain.project(around), domain.center() + 0.3 * (domain.project(around) - domain.center()), around])


def satisfies(known, x, slack=1e-9):
    """Whether some choice of the other variables makes x satisfy all facets; those of an L1 ball are |x - middle| at best."""
    others = np.zeros(known.more)
    if known.more:
        slab = next(slab for slab in known.slabs if (slab.rows[:, known.dim :] != 0.0).any())
        middle = slab.high[: known.more]
        where = np.flatnonzero(slab.rows[: known.more, : known.dim].any(axis=0))
        others = np.abs(x[where] - middle)
    w = np.append(x, others)
    (A, b), (E, e) = known.inequalities(), known.equalities()
    flat = (A @ w <= b + slack).all() and (abs(E @ w - e) <= slack).all()
    round_ = all(np.linalg.norm(ball.inside * (x - ball.middle)) <= ball.radius + slack for ball in known.balls)
    matrices = [x[cone.start : cone.start + cone.length].reshape(2, 2) for cone in known.cones]
    return bool(flat and round_ and all(np.linalg.eigvalsh(0.5 * (m + m.T)).min() >= -slack for m in matrices))


@pytest.mark.parametrize("name", ALL)
def test_the_facets_hold_where_the_domain_is_and_nowhere_else(name):
    domain = ALL[name]
    known = facets(domain)
    assert known.dim == domain.dim
    inside = [domain.contains(x) for x in points(domain)]
    assert any(inside)
    assert not all(inside)
    assert [satisfies(known, x) for x in points(domain)] == inside


@pytest.mark.parametrize("name", FLAT)
def test_bands_and_halfspaces_say_the_same(name):
    domain = FLAT[name]
    rows, low, high = faces(domain)
    listed = halfspaces(domain)
    for x in points(domain):
        here = bool((rows @ x >= low - 1e-9).all() and (rows @ x <= high + 1e-9).all())
        assert here == domain.contains(x) == bool((listed[:, :-1] @ x <= listed[:, -1] + 1e-9).all())


@pytest.mark.parametrize("name", [*LIFTED, *CURVED])
def test_what_is_not_flat_has_no_faces(name):
    assert faces(ALL[name]) is None


def test_an_l1_ball_lists_its_faces_in_few_dimensions_only():
    ball = LIFTED["l1 ball"]
    for x in points(ball):
        assert bool((halfspaces(ball)[:, :-1] @ x <= halfspaces(ball)[:, -1] + 1e-9).all()) == ball.contains(x)
    assert halfspaces(L1Ball(LISTED_DIMENSIONS)) is not None
    assert halfspaces(L1Ball(LISTED_DIMENSIONS + 1)) is None
    assert halfspaces(Ball(2)) is None


@pytest.mark.parametrize("domain", [Box([0.0, -1.0], [1.0, 2.0]), Simplex(3, mass=2.0), L1Ball(center=[1.0, -1.0], radius=2.0)])
def test_a_linear_function_is_least_at_a_corner(domain):
    rng = np.random.default_rng(0)
    listed = corners(domain)
    assert domain.contains(listed)
    for v in rng.standard_normal((20, domain.dim)):
        assert (listed @ v).min() == pytest.approx(float(domain.linear_min(v)))


def test_corners_are_listed_where_they_are_few():
    assert corners(Box(0.0, 1.0, dim=LISTED_DIMENSIONS + 1)) is None
    assert corners(Ball(2)) is None


def test_cuts_come_off_and_leave_what_was_cut():
    box = Box(0.0, 1.0, dim=2)
    twice = Halfspace([1.0, 0.0], 0.5, within=Halfspace([1.0, 1.0], 1.0, within=box))
    base, cuts = peeled(twice)
    assert base is box
    np.testing.assert_allclose(cuts, [[0.5**0.5, 0.5**0.5, 0.5**0.5], [1.0, 0.0, 0.5]])
    base, cuts = peeled(CURVED["cut ball"])
    np.testing.assert_allclose(cuts, [[1.0, 0.0, 1.2]])
    assert base.radius == 0.5
    assert len(peeled(box)[1]) == 0


def test_a_domain_known_by_its_projection_alone_has_none():
    class Unknown:
        dim = 2

    assert facets(Unknown()) is None
    assert faces(Unknown()) is None
    assert halfspaces(Unknown()) is None
    assert facets(ProductSet((Unknown(), Ball(2)))) is None
