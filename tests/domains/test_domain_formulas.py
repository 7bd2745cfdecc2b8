"""Domains at numbers worked out by hand: how they are made, what is inside by how much, and where cuts end."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

import bridle
from bridle.domains import half_space_cut
from bridle.domains.facets import LISTED_DIMENSIONS
from bridle.domains.half_space_cut import BallCut, DomainCut, sweep

CENTER = np.array([3.0, 4.0])
BALL = bridle.Ball(radius=2.0, center=CENTER)
BOX = bridle.Box([2.0, 3.0], [4.0, 5.0])


# --- how they are made ------------------------------------------------------------------------------------------------------------------


def test_a_box_takes_numbers_for_all_coordinates():
    for box in (bridle.Box(0.0, [1.0, 2.0]), bridle.Box([0.0, 0.0], [1.0, 2.0]), bridle.Box(np.zeros(2), np.array([1.0, 2.0]), dim=2)):
        np.testing.assert_array_equal(box.low, [0.0, 0.0])
        np.testing.assert_array_equal(box.high, [1.0, 2.0])
    low = bridle.Box([-1.0, -2.0], 3.0)
    np.testing.assert_array_equal(low.low, [-1.0, -2.0])
    np.testing.assert_array_equal(low.high, [3.0, 3.0])
    point = bridle.Box(1.0, 1.0, dim=2)  # of one point
    assert (point.diameter(), point.center().tolist()) == (0.0, [1.0, 1.0])


def test_centres_and_diameters():
    assert bridle.Spectrahedron(3, trace=6.0).center().tolist() == (2.0 * np.eye(3)).ravel().tolist()
    assert bridle.Simplex(4, mass=6.0).center().tolist() == [1.5] * 4
    assert (bridle.Spectrahedron(3, trace=6.0).diameter(), bridle.Spectrahedron(1, trace=6.0).diameter()) == (6.0 * sqrt(2.0), 0.0)
    assert (bridle.Simplex(4, mass=6.0).diameter(), bridle.Simplex(1, mass=6.0).diameter()) == (6.0 * sqrt(2.0), 0.0)
    pair = bridle.Product(bridle.Ball(2, radius=1.5), bridle.Box([0.0], [4.0]), bridle.Simplex(3, mass=2.0))
    assert pair.diameter() == pytest.approx(sqrt(9.0 + 16.0 + 8.0))
    np.testing.assert_allclose(pair.center(), [0.0, 0.0, 2.0, 2 / 3, 2 / 3, 2 / 3])
    assert pair.dim == 6
    for domain in (BALL, bridle.L1Ball(center=CENTER), bridle.Simplex(3), bridle.Spectrahedron(2)):
        center = domain.center()
        center[:] = 9.0
        assert not (domain.center() == 9.0).any()  # the caller's own


def test_corners_are_listed_up_to_so_many_dimensions():
    assert sorted(BOX.corners().tolist()) == [[2.0, 3.0], [2.0, 5.0], [4.0, 3.0], [4.0, 5.0]]
    d = LISTED_DIMENSIONS
    assert len(bridle.Box(0.0, 1.0, dim=d).corners()) == 2**d
    assert bridle.Box(0.0, 1.0, dim=d + 1).corners() is None
    rows = bridle.L1Ball(center=CENTER, radius=2.0).halfspaces()
    assert sorted(rows.tolist()) == sorted([[1.0, 1.0, 9.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 3.0], [-1.0, -1.0, -5.0]])
    assert len(bridle.L1Ball(d).halfspaces()) == 2**d
    assert bridle.L1Ball(d + 1).halfspaces() is None
    np.testing.assert_array_equal(bridle.L1Ball(center=CENTER, radius=2.0).corners(), [[5.0, 4.0], [3.0, 6.0], [1.0, 4.0], [3.0, 2.0]])
    np.testing.assert_array_equal(bridle.Simplex(2, mass=3.0).corners(), 3.0 * np.eye(2))


def test_where_a_half_space_ends_to_be_one():
    """Rounding is 1e-12 times |a| (diameter + |centre|): of the ball around (3, 4), |a| = 2 and 9 in all."""
    rounding = 2e-12 * 9.0
    for a, b in (([2.0, 0.0], 10.0), ([0.0, 2.0], 12.0)):
        assert bridle.Halfspace(a, b - 0.9 * rounding, within=BALL) is BALL
        assert isinstance(bridle.Halfspace(a, b - 1.1 * rounding, within=BALL), BallCut)
        assert isinstance(bridle.Halfspace(a, b - 8.0 + 1.1 * rounding, within=BALL), BallCut)
        with pytest.raises(bridle.InputError, match="only touches the domain"):
            bridle.Halfspace(a, b - 8.0 + 0.9 * rounding, within=BALL)
        with pytest.raises(bridle.InputError, match="only touches the domain"):
            bridle.Halfspace(a, b - 8.0, within=BALL)
        with pytest.raises(bridle.InputError, match="misses the domain"):
            bridle.Halfspace(a, b - 8.1, within=BALL)


def test_the_middle_of_a_cut():
    """Half of the way from the bottom to the cut on the line to the centre, or the centre."""
    low = bridle.Halfspace([0.0, 2.0], 7.0, within=BOX)  # u_2 <= 3.5; along a it is lowest at u_2 = 3
    assert isinstance(low, DomainCut)
    assert (low.room, low.b, low.a.tolist()) == (0.5, 3.5, [0.0, 1.0])
    assert low.center()[1] == pytest.approx(3.25)
    high = bridle.Halfspace([0.0, 1.0], 4.9, within=BOX)
    assert high.center()[1] == pytest.approx(3.95)
    simplex = bridle.Halfspace([1.0, 0.0, 0.0], 0.9, within=bridle.Simplex(3))
    np.testing.assert_allclose(simplex.center()[0], 1.0 / 3.0)  # the centre itself
    cut = bridle.Halfspace([2.0, 0.0], 7.0, within=BALL)  # 1/2 right of the middle
    assert (cut.height, cut.a.tolist()) == (pytest.approx(0.5), [1.0, 0.0])
    np.testing.assert_allclose(cut.center(), [3.0 - 0.75, 4.0])
    assert cut.diameter() == pytest.approx(4.0)
    below = bridle.Halfspace([2.0, 0.0], 4.0, within=BALL)  # 1 left of it
    assert below.diameter() == pytest.approx(2.0 * sqrt(3.0))
    np.testing.assert_allclose(below.center(), [1.5, 4.0])
    line = bridle.Halfspace([1.0], 0.5, within=bridle.Ball(1, radius=2.0))
    assert (line.diameter(), line.center().tolist()) == (2.5, [-0.75])


def test_the_diameter_of_a_cut_box_is_that_of_the_smallest_box_around():
    """u_1 + 2 u_2 <= 1 in the square [0, 1]^2: 1 by 1/2."""
    cut = bridle.Halfspace([1.0, 2.0], 1.0, within=bridle.Box(0.0, 1.0, dim=2))
    assert cut.diameter() == pytest.approx(sqrt(1.25))
    slight = bridle.Halfspace([1.0, 2.0], 2.5, within=bridle.Box(0.0, 1.0, dim=2))
    assert slight.diameter() == pytest.approx(sqrt(2.0))
    assert bridle.Halfspace([1.0, 0.0, 0.0], 0.5, within=bridle.Simplex(3)).diameter() == pytest.approx(sqrt(2.0))


# --- what is inside ---------------------------------------------------------------------------------------------------------------------

SCALED = [
    (BALL, [5.0, 4.0], [1.0, 0.0], 4.0 + 5.0),
    (BALL, [3.0, 2.0], [0.0, -1.0], 4.0 + 5.0),
    (BOX, [4.0, 4.0], [1.0, 0.0], sqrt(8.0) + 5.0),
    (BOX, [3.0, 3.0], [0.0, -1.0], sqrt(8.0) + 5.0),
    (bridle.L1Ball(center=CENTER, radius=2.0), [4.0, 5.0], [1.0, 0.0], 4.0 + 5.0),
    (bridle.L1Ball(center=CENTER, radius=2.0), [2.0, 3.0], [0.0, -1.0], 4.0 + 5.0),
    (bridle.Simplex(2, mass=3.0), [1.0, 2.0], [1.0, 0.0], 3.0 * sqrt(2.0) + 1.5 * sqrt(2.0)),
    (bridle.Simplex(2, mass=3.0), [0.0, 3.0], [-1.0, 1.0], 3.0 * sqrt(2.0) + 1.5 * sqrt(2.0)),
    (bridle.Simplex(2, mass=3.0), [1.0, 2.0], [0.0, -1.0], 3.0 * sqrt(2.0) + 1.5 * sqrt(2.0)),
    (bridle.Spectrahedron(2, trace=3.0), [1.0, 0.0, 0.0, 2.0], [1.0, 0.0, 0.0, 0.0], 3.0 * sqrt(2.0) + 1.5 * sqrt(2.0)),
    (bridle.Spectrahedron(2, trace=3.0), [1.0, 0.0, 0.0, 2.0], [0.0, 1.0, 0.0, 0.0], 3.0 * sqrt(2.0) + 1.5 * sqrt(2.0)),
    (bridle.Spectrahedron(2, trace=3.0), [3.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, -1.0], 3.0 * sqrt(2.0) + 1.5 * sqrt(2.0)),
    (bridle.Halfspace([1.0, 0.0], 3.5, within=BALL), [3.5, 4.0], [1.0, 0.0], 4.0 + 5.0),
    (bridle.Halfspace([1.0, 0.0], 3.5, within=BALL), [1.0, 4.0], [-1.0, 0.0], 4.0 + 5.0),
    (bridle.Halfspace([1.0, 0.0], 3.5, within=BOX), [3.5, 4.0], [1.0, 0.0], sqrt(8.0) + 5.0),
    (bridle.Halfspace([1.0, 0.0], 3.5, within=BOX), [2.0, 4.0], [-1.0, 0.0], sqrt(8.0) + 5.0),
]


@pytest.mark.parametrize(("domain", "edge", "out", "scale"), SCALED)
def test_inside_is_meant_up_to_the_tolerance_times_diameter_and_centre(domain, edge, out, scale):
    edge, out = np.array(edge), np.array(out)
    for tolerance in (1e-3, 1e-6):
        assert domain.contains(edge + 0.99 * tolerance * scale * out, tolerance)
        assert not domain.contains(edge + 1.01 * tolerance * scale * out, tolerance)
    assert domain.contains(edge + 0.9e-9 * scale * out)
    assert not domain.contains(edge + 1.1e-9 * scale * out)
    assert not domain.contains(np.stack([edge, edge + out]))
    assert domain.contains(np.stack([edge, edge]))


def test_a_matrix_that_is_not_finite_is_not_inside():
    for bad in (np.nan, np.inf):
        assert not bridle.Spectrahedron(2).contains(np.array([0.5, bad, bad, 0.5]))


def test_points_inside_come_back_bit_for_bit_beside_others():
    """Also in a batch in which other points are outside."""
    x = np.array([[3.1, 4.2], [9.0, 4.0]])
    for domain, onto in ((BALL, [5.0, 4.0]), (bridle.L1Ball(center=CENTER, radius=2.0), [5.0, 4.0]), (BOX, [4.0, 4.0])):
        found = domain.project(x / 1.0)
        assert found[0].tobytes() == x[0].tobytes()
        np.testing.assert_allclose(found[1], onto)
    near = CENTER + np.array([0.1, 1e-17])
    assert BALL.project(np.stack([near, [50.0, 4.0]]))[0].tobytes() == near.tobytes()


def test_a_matrix_is_projected_by_its_eigenvalues():
    """diag(2, -1) turned by 30 degrees goes to diag(1, 0) turned so; one that is not symmetric to that of its mean with its mirror."""
    c, s = sqrt(3.0) / 2.0, 0.5
    turn = np.array([[c, -s], [s, c]])
    domain, bent = bridle.Spectrahedron(2), np.array([[0.0, 0.3], [-0.3, 0.0]])
    for values, onto in (([2.0, -1.0], [1.0, 0.0]), ([0.6, 0.6], [0.5, 0.5]), ([0.9, 0.3], [0.8, 0.2])):
        matrix, expected = turn @ np.diag(values) @ turn.T, turn @ np.diag(onto) @ turn.T
        np.testing.assert_allclose(domain.project(matrix.ravel()), expected.ravel(), atol=1e-12)
        np.testing.assert_allclose(domain.project((matrix + bent).ravel()), expected.ravel(), atol=1e-12)
    inside = turn @ np.diag([0.75, 0.25]) @ turn.T
    inside = 0.5 * (inside + inside.T)
    np.testing.assert_allclose(domain.project((inside + bent).ravel()), inside.ravel(), atol=1e-12)
    assert domain.project(np.array([0.75, 0.0, 0.0, 0.25])).tolist() == [0.75, 0.0, 0.0, 0.25]
    both = domain.project(np.stack([np.array([2.0, 0.0, 0.0, -1.0]), np.array([0.75, 0.0, 0.0, 0.25])]))
    np.testing.assert_allclose(both, [[1.0, 0.0, 0.0, 0.0], [0.75, 0.0, 0.0, 0.25]], atol=1e-12)
    lowest = bridle.Spectrahedron(2, trace=3.0).linear_argmin((turn @ np.diag([1.0, -2.0]) @ turn.T + bent).ravel())
    np.testing.assert_allclose(lowest, 3.0 * np.outer(turn[:, 1], turn[:, 1]).ravel(), atol=1e-12)
    assert bridle.Spectrahedron(2, trace=3.0).linear_min((turn @ np.diag([1.0, -2.0]) @ turn.T).ravel()) == pytest.approx(-6.0)


def test_linear_minimisers():
    np.testing.assert_allclose(BALL.linear_argmin(np.array([3.0, -4.0])), [3.0 - 1.2, 4.0 + 1.6])
    np.testing.assert_array_equal(BALL.linear_argmin(np.zeros(2)), CENTER)
    np.testing.assert_array_equal(BOX.linear_argmin(np.array([1.0, -1.0])), [2.0, 5.0])
    np.testing.assert_array_equal(bridle.L1Ball(center=CENTER, radius=2.0).linear_argmin(np.array([1.0, -3.0])), [3.0, 6.0])
    np.testing.assert_array_equal(bridle.Simplex(3, mass=2.0).linear_argmin(np.array([1.0, -3.0, 0.0])), [0.0, 2.0, 0.0])
    cut = bridle.Halfspace([1.0, 0.0], 3.5, within=BALL)
    np.testing.assert_allclose(cut.linear_argmin(np.array([-1.0, 0.0])), [3.5, 4.0])
    np.testing.assert_allclose(cut.linear_argmin(np.array([-1.0, -1e-3])), [3.5, 4.0 + sqrt(4.0 - 0.25)])
    np.testing.assert_allclose(cut.linear_argmin(np.array([1.0, 0.0])), [1.0, 4.0])
    assert cut.linear_min(np.array([-1.0, 0.0])) == pytest.approx(-3.5)
    boxed = bridle.Halfspace([1.0, 1.0], 8.0, within=BOX)
    np.testing.assert_allclose(boxed.linear_argmin(np.array([-2.0, -1.0])), [4.0, 4.0])
    np.testing.assert_allclose(boxed.linear_argmin(np.array([2.0, 1.0])), [2.0, 3.0])
    np.testing.assert_allclose(
        boxed.linear_argmin(np.array([[-2.0, -1.0], [2.0, 1.0], [-1.0, -2.0]])), [[4.0, 4.0], [2.0, 3.0], [3.0, 5.0]]
    )


# --- projections on cuts ----------------------------------------------------------------------------------------------------------------


def test_projections_on_a_cut_ball():
    """u_1 <= 3.5: below it the ball's own, beside the disk its rim, in front of it straight."""
    cut, rim = bridle.Halfspace([1.0, 0.0], 3.5, within=BALL), sqrt(4.0 - 0.25)
    points = [[3.2, 4.1], [9.0, 4.0], [9.0, 5.0], [5.0, 9.0], [3.5, 9.0], [1.0, 9.0], [-3.0, 4.0]]
    onto = [[3.2, 4.1], [3.5, 4.0], [3.5, 5.0], [3.5, 4.0 + rim], None, None, [1.0, 4.0]]
    found = cut.project(np.array(points))
    for row, expected, point in zip(found, onto, points, strict=True):
        np.testing.assert_allclose(cut.project(np.array(point)), row, atol=1e-12)
        if expected is not None:
            np.testing.assert_allclose(row, expected, atol=1e-12)
    np.testing.assert_allclose(found[5], BALL.project(np.array(points[5])), atol=1e-12)
    assert cut.project(np.array([3.2, 4.1])).tolist() == [3.2, 4.1]


def test_projections_on_a_cut_box_and_simplex():
    """u_1 + u_2 <= 8 in [2, 4] x [3, 5]; x_1 <= 1/2 in the simplex."""
    cut = bridle.Halfspace([1.0, 1.0], 8.0, within=BOX)
    cases = [
        ([3.0, 4.0], [3.0, 4.0]), ([4.0, 5.0], [3.5, 4.5]), ([9.0, 3.5], [4.0, 3.5]), ([9.0, 9.0], [4.0, 4.0]), ([9.0, 4.5], [4.0, 4.0]),
        ([2.5, 40.0], [2.5, 5.0]),
    ]  # fmt: skip
    for point, onto in cases:
        np.testing.assert_allclose(cut.project(np.array(point)), onto, atol=1e-12)
    np.testing.assert_allclose(cut.project(np.array([case[0] for case in cases])), [case[1] for case in cases], atol=1e-12)
    simplex = bridle.Halfspace([1.0, 0.0, 0.0], 0.5, within=bridle.Simplex(3))
    np.testing.assert_allclose(simplex.project(np.array([1.0, 0.0, 0.0])), [0.5, 0.25, 0.25], atol=1e-12)
    np.testing.assert_allclose(simplex.project(np.array([5.0, 0.2, 0.0])), [0.5, 0.35, 0.15], atol=1e-12)
    np.testing.assert_allclose(simplex.project(np.array([1e6, 0.2, -0.9])), [0.5, 0.5, 0.0], atol=1e-9)
    np.testing.assert_allclose(
        simplex.project(np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])), [[0.5, 0.25, 0.25], [0.2, 0.3, 0.5]], atol=1e-12
    )


@pytest.mark.parametrize("within", [bridle.Box(-1.0, 1.0, dim=6), bridle.Simplex(6), bridle.L1Ball(6)])
def test_projections_on_cuts_meet_their_conditions(within):
    """z is in the cut set, and <x - z, y - z> <= 0 for every corner y of it: tried with the linear minimiser along z - x."""
    rng = np.random.default_rng(1)
    for scale in (1.0, 30.0):
        for _ in range(20):
            a = rng.standard_normal(6)
            low, high = within.linear_min(a), -within.linear_min(-a)
            cut = bridle.Halfspace(a, low + rng.uniform(0.05, 0.9) * (high - low), within=within)
            x = scale * rng.standard_normal(6)
            z = cut.project(x)
            assert cut.contains(z, 1e-12)
            assert cut.linear_min(z - x) >= float((z - x) @ z) - 1e-9 * scale**2


# --- one halfspace after the other ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 30, 64, 65, 90])
def test_a_sweep_is_one_projection_after_the_other(count):
    rng = np.random.default_rng(count)
    for shift in (-0.5, 0.0, 0.3, 2.0):
        A = rng.standard_normal((count, 4))
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        b, y = rng.standard_normal(count) + shift, rng.standard_normal(4)
        expected = y.copy()
        for row, level in zip(A, b, strict=True):
            expected = expected - max(0.0, float(row @ expected) - level) * row
        np.testing.assert_allclose(sweep(A, b, y), expected, atol=1e-9)
        both = np.stack([y, y + 1.0])
        np.testing.assert_allclose(sweep(A, b, both)[0], expected, atol=1e-9)
        np.testing.assert_allclose(sweep(A, b, both)[1], sweep(A, b, y + 1.0), atol=1e-9)
    inside = np.zeros(4)
    assert sweep(A, np.ones(count), inside) is inside
    assert half_space_cut._FEW == 64
