"""Each formula of the certificates at numbers that were worked out by hand, with tolerances large enough to be seen."""

from __future__ import annotations

from math import inf, nan, sqrt
from typing import Any

import numpy as np
import pytest

import bridle
from bridle.core import Feedback
from bridle.session.certificates import certificate, feasibility
from bridle.session.certificates.batches import Counted, CurvedSums, Frame, Sums, ViolatedSums, nothing, parts, read, unread, width
from bridle.session.certificates.certificate import (
    Tangent,
    contradiction_alone,
    curved_tangent,
    least_regret,
    regret_bound,
    regret_of_any,
    slack,
    tangent,
)
from bridle.session.certificates.feasibility import centered, depth, lower, nearest_on
from bridle.session.certificates.ledger import Ledger
from helpers.inside import proved

EPS = 2.0**-52
NO_CURVE = CurvedSums(0.0, np.zeros(2), 0.0)
NO_LIMITS = ViolatedSums(np.zeros(2), 0.0, 0.0, 0.0, 0.0, 0.0)
NONE_KEPT = np.zeros((0, 2)), np.zeros(0)

DISK = centered(bridle.Ball(radius=2.0, center=[3.0, 4.0]), 2, 0.01)
"""Diameter 4; 9 is at least the length of every action; a linear function v is at least -2 |v| around the middle."""
SUMS = Sums(2.0, 7.0, np.array([1.0, 2.0]), 3.0, 5.0, 2.0, 1.0, 6.0)
BASE = 7.0 - 11.0 + 0.01 * 3.0 * 9.0
"""c - <a, middle>, and a hundredth of the lengths times the reach."""
SQUARE = centered(bridle.Box(-1.0, 1.0, dim=2), 2, 1e-12)


def near(value: float, **more: Any) -> Any:
    return pytest.approx(value, **({"rel": 1e-9, "abs": 1e-12} | more))


# --- regret ---------------------------------------------------------------------------------------------------------------------------


def test_a_domain_is_measured_from_its_middle():
    assert (DISK.diameter, DISK.reach, DISK.tolerance, DISK.known) == (4.0, 9.0, 0.01, True)
    np.testing.assert_array_equal(DISK.middle, [3.0, 4.0])
    assert DISK.least(np.array([3.0, 4.0])) == near(-10.0)
    boxed = centered(bridle.Box([0.0, 0.0], [1.0, 3.0]), 2, 1e-12).boxed()
    np.testing.assert_allclose(boxed.box, np.array([[-0.5, 0.5], [-1.5, 1.5]]) / sqrt(10.0), atol=2.1e-9)
    assert all(low < -half / sqrt(10.0) and high > half / sqrt(10.0) for (low, high), half in zip(boxed.box, (0.5, 1.5), strict=True))
    assert boxed.boxed() is boxed
    vague = centered(None, 3)
    assert (vague.known, vague.diameter, vague.reach, vague.tolerance) == (False, inf, 0.0, feasibility.TOLERANCE)
    solved = centered(bridle.Polyhedron(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4)), 2, 1e-12)
    assert solved.tolerance == feasibility.SOLVED


def test_rounding_is_allowed_for_by_rounds_and_dimensions():
    exact = DISK._replace(tolerance=1e-13)
    assert slack(exact, SUMS) == near(1e-13 + 4.0 * EPS * 4.0, abs=0.0)
    assert slack(exact, SUMS._replace(rounds=1e6)) == near(1e-13 + 4.0 * EPS * 1_000_002.0, abs=0.0)


def test_the_tangent_of_the_costs():
    plain = tangent(DISK, SUMS)
    assert plain.base == near(BASE)
    np.testing.assert_array_equal(plain.a, [1.0, 2.0])
    curved = CurvedSums(2.0, np.array([1.0, 1.0]), 5.0)
    at = curved_tangent(DISK, SUMS, curved, np.array([1.0, 0.5]))
    assert at.base == near(BASE + 1.25 - 5.0 + 2.0 * 0.01 * 2.0 * 9.0 * 4.0)  # + M/2 |z|^2 - squares, and rounding
    np.testing.assert_allclose(at.a, [1.0 - 1.0 + 2.0, 2.0 - 1.0 + 1.0])
    assert least_regret(DISK, plain) == near(BASE - 2.0 * sqrt(5.0))
    simplex = centered(bridle.Simplex(3, mass=3.0), 3)  # from the middle (1, 1, 1): (5, -1, -1) to 9 at a corner, -3 at the others
    assert least_regret(simplex, Tangent(10.0, np.array([5.0, -1.0, -1.0]))) == near(10.0 - 12.0)
    assert simplex.least(np.array([5.0, -1.0, -1.0])) == near(-6.0)


def test_the_regret_against_any_action():
    """Without moduli base + 2 |a|; with M = 1/2 the worst v is the point of the disk nearest to (pull - a)/M, here inside."""
    assert regret_of_any(DISK, SUMS, NO_CURVE) == near(BASE + 2.0 * sqrt(5.0))
    inside = CurvedSums(0.5, np.array([1.5, 2.0]), 3.0)
    rounding = 2.0 * 0.01 * 0.5 * 9.0 * 4.0
    assert regret_of_any(DISK, SUMS, inside) == near(BASE - 3.0 + 0.25 + rounding)  # v = (1, 0): -<a - pull, v> - M/2 |v|^2 = 1/2 - 1/4
    outside = CurvedSums(0.5, np.array([4.0, 2.0]), 3.0)  # (6, 0) is nearest to v = (2, 0): 3 * 2 - 1/4 * 4
    assert regret_of_any(DISK, SUMS, outside) == near(min(BASE + 2.0 * sqrt(5.0), BASE - 3.0 + 5.0 + rounding))
    useless = CurvedSums(0.5, np.array([40.0, 2.0]), 0.0)  # what is told of moduli cannot be, and the plain bound stands
    assert regret_of_any(DISK, SUMS, useless) == near(BASE + 2.0 * sqrt(5.0))
    for broken in (CurvedSums(inf, np.zeros(2), 0.0), CurvedSums(1.0, np.zeros(2), inf), CurvedSums(0.0, np.zeros(2), 9.0)):
        assert regret_of_any(DISK, SUMS, broken) == near(BASE + 2.0 * sqrt(5.0))


def test_the_regret_against_what_meets_a_halfspace():
    """In a square, a = (1, 2): the least of <a, v> is -3, and -1 where v_2 >= 0; a kept halfspace is let out by tolerance (reach + |b|)."""
    where = centered(bridle.Box(-1.0, 1.0, dim=2), 2, 0.01)
    reach, normals, levels = sqrt(8.0), np.array([[0.0, -1.0]]), np.array([-0.25])
    base = 7.0 + 0.01 * 3.0 * reach
    out = 0.01 * (reach + 0.25)
    found = regret_bound(where, SUMS, NO_CURVE, NO_LIMITS, *NONE_KEPT)
    assert found == (near(base + 3.0), 0.0)
    found = regret_bound(where, SUMS, NO_CURVE, NO_LIMITS, normals, levels)
    assert found.regret == near(base + 1.0 - 2.0 * (0.25 - out))
    assert found.margin == 0.0
    # The same from the sum of two violated rounds, with levels -0.1 and -0.4.
    summed = ViolatedSums(np.array([0.0, -2.0]), -0.5, 2.0, 0.5, 0.0, 2.0)
    assert regret_bound(where, SUMS, NO_CURVE, summed, *NONE_KEPT).regret == near(base + 1.0 - 2.0 * (0.25 - out))


@pytest.mark.parametrize("weight", [1.0, 2.0, 0.0])
def test_the_sum_of_violated_rounds_counts_from_the_first_on(weight, monkeypatch):
    """Where no program helps, as in many dimensions, v_2 >= 1/4 is known from the sum alone: 2 below the 3 of no halfspace at all."""
    monkeypatch.setattr(certificate, "lower", lambda where, a, normals, levels: (0.0, np.zeros(len(levels))))
    limits = ViolatedSums(np.array([0.0, -weight]), -0.25 * weight, weight, 0.25 * weight, 0.0, weight)
    expected = 7.0 + 1.0 - 2.0 * 0.25 if weight else 7.0 + 3.0
    assert regret_bound(SQUARE, SUMS, NO_CURVE, limits, *NONE_KEPT).regret == near(expected, abs=2e-3)


def test_a_bound_that_is_no_number_proves_nothing(monkeypatch):
    bounds = [certificate.RegretBound(5.0, 0.25), certificate.RegretBound(nan, 3.0), certificate.RegretBound(inf, 2.0)]
    monkeypatch.setattr(certificate, "_bounds", lambda *given: bounds.copy())
    assert regret_bound(SQUARE, SUMS, NO_CURVE, NO_LIMITS, *NONE_KEPT) == (5.0, 0.25)
    del bounds[0]
    assert regret_bound(SQUARE, SUMS, NO_CURVE, NO_LIMITS, *NONE_KEPT) == (inf, 0.0)


def test_the_regret_of_curved_costs_against_what_meets_a_halfspace():
    """In a square, a - pull = (1, 2) and M = 4: the worst v is (-1/4, -1/2), and (-1/4, 1/4) where v_2 >= 1/4."""
    normals, levels = np.array([[0.0, -1.0]]), np.array([-0.25])
    curved = CurvedSums(4.0, np.array([0.5, -0.5]), 2.0)
    sums = SUMS._replace(a=np.array([1.5, 1.5]))
    free = 7.0 - 2.0 + (0.25 + 1.0) - 2.0 * (0.0625 + 0.25)
    held = 7.0 - 2.0 + (0.25 - 0.5) - 2.0 * (0.0625 + 0.0625)
    assert regret_bound(SQUARE, sums, curved, NO_LIMITS, *NONE_KEPT).regret == near(free, abs=1e-8)
    assert regret_bound(SQUARE, sums, curved, NO_LIMITS, normals, levels).regret == near(held, abs=1e-7)
    summed = ViolatedSums(np.array([0.0, -2.0]), -0.5, 2.0, 0.5, 0.0, 2.0)
    assert regret_bound(SQUARE, sums, curved, summed, *NONE_KEPT).regret == near(held, abs=1e-7)
    both = regret_bound(SQUARE, sums, curved, summed, np.array([[-1.0, 0.0]]), np.array([0.125]))  # and v_1 >= -1/8
    assert both.regret == near(7.0 - 2.0 + (0.125 - 0.5) - 2.0 * (1.0 / 64.0 + 0.0625), abs=1e-7)


def test_what_weights_give_and_what_they_prove():
    """<v_1, .> <= b: with weight 2 the bound is base + 2 b - least(a + 2 n); in the square least(w) = -|w_1| - |w_2|."""
    costs, N = Tangent(10.0, np.array([1.0, 0.5])), np.array([[-1.0, 0.0], [0.0, 1.0]])
    found = certificate._bound(SQUARE, costs, N, np.array([0.5, 0.25]), np.array([2.0, 1.0]))
    assert found == (near(10.0 + 1.25 + 1.0 + 1.5), near((-3.0 - 1.25) / 3.0))
    assert certificate._bound(SQUARE, costs, N, np.array([0.5, 0.25]), np.zeros(2)) == (near(11.5), 0.0)
    light = certificate._bound(SQUARE, costs, N, np.array([0.5, 0.25]), np.array([0.2, 0.1]))
    assert light == (near(10.0 + 0.125 + 0.8 + 0.6), near((-0.3 - 0.125) / 0.3))
    # v_1 >= 3 is met nowhere: the weights prove it, and the bound is not let below what there is of any action.
    deep = certificate._bound(SQUARE, costs, N, np.array([-3.0, 0.25]), np.array([5.0, 0.0]))
    assert deep == (near(10.0 - 1.5), near((-5.0 + 15.0) / 5.0))
    proof = regret_bound(SQUARE, SUMS, NO_CURVE, NO_LIMITS, -np.eye(1, 2), np.array([-3.0]))
    assert proof.margin == near(2.0, abs=1e-9)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e9])
@pytest.mark.parametrize(
    ("p", "q", "level"), [(0.0, 2.0, -0.5), (-3.0, 2.0, -0.5), (1.0, 2.0, -0.9), (-1.0, 0.5, 0.5), (0.3, 1.0, -0.9999)]
)
def test_the_best_weight_of_the_sum_is_found(p, q, level, size):
    """In the unit disk l b + |(p + l, q)| is least where (p + l) / |(p + l, q)| = -b."""
    where, costs = centered(bridle.Ball(2), 2), Tangent(0.0, size * np.array([p, q]))
    best = size * (q * -level / sqrt(1.0 - level * level) - p)
    assert certificate._along(where, costs, np.array([1.0, 0.0]), level) == near(best, rel=2e-3)


def test_where_the_halfspace_does_not_help_its_weight_is_next_to_none():
    where, costs = centered(bridle.Ball(2), 2), Tangent(0.0, np.array([3.0, 4.0]))
    assert 0.0 <= certificate._along(where, costs, np.array([1.0, 0.0]), 0.5) <= 1e-5


def test_the_search_for_a_weight_comes_to_an_end():
    """Where the bound falls for ever, at 2^31 / 1000 times |a|; and with no cost at all there is a unit all the same."""
    where = centered(bridle.Ball(2), 2)
    for a in ([0.0, 1.0], [0.0, 100.0], [0.0, 0.0]):
        far = certificate._along(where, Tangent(0.0, np.array(a)), np.array([1.0, 0.0]), -2.0)
        assert far == near(2.0**31 / 1000.0 * (a[1] or 1.0), rel=1e-3)


def test_in_many_dimensions_the_sum_alone_bounds_regret(monkeypatch):
    """u_1 >= 1/2 in 600 dimensions, by the sum of two rounds: <(1, 2, 0, ...), u> is at least 1/2 - 2 sqrt(3)/2; no programs."""
    where = centered(bridle.Ball(600), 600, 1e-12)
    a, normal = np.zeros(600), -np.eye(600)[0]
    a[:2] = 1.0, 2.0
    sums, limits = SUMS._replace(a=a), ViolatedSums(2.0 * normal, -1.0, 2.0, 1.0, 0.0, 2.0)
    none, no_curve = (np.zeros((0, 600)), np.zeros(0)), CurvedSums(0.0, np.zeros(600), 0.0)
    expected = 7.0 - (0.5 - sqrt(3.0))
    assert regret_bound(where, sums, no_curve, limits, *none).regret == near(expected, abs=1e-5)
    rows = []
    found = certificate.nearest_on
    monkeypatch.setattr(certificate, "nearest_on", lambda *given: rows.append(len(given[2])) or found(*given))
    curve = CurvedSums(1e-9, np.zeros(600), 0.0)
    assert regret_bound(where, sums, curve, limits, np.eye(3, 600), np.ones(3)).regret <= expected + 1e-5
    assert set(rows) == {1}


def test_a_halfspace_is_measured_from_the_middle_too():
    """In [2, 4] x [-1, 3], 0 <= v_2 from the middle (3, 1) is u_2 >= 1; <(0, 2), .> is then least 0 from there. One round violated."""
    where = centered(bridle.Box([2.0, -1.0], [4.0, 3.0]), 2, 1e-12)
    sums = SUMS._replace(a=np.array([0.0, 2.0]))
    kept = np.array([[0.0, -1.0]]), np.array([-1.0])
    assert regret_bound(where, sums, NO_CURVE, NO_LIMITS, *kept).regret == near(7.0 - 2.0, abs=1e-8)
    one = ViolatedSums(np.array([0.0, -1.0]), -1.0, 1.0, 1.0, 0.0, 1.0)
    assert regret_bound(where, sums, NO_CURVE, one, *NONE_KEPT).regret == near(7.0 - 2.0, abs=1e-8)


def test_numbers_that_cannot_be_calculated_with_are_left_out():
    kept = np.array([[0.0, -1.0]]), np.array([-0.25])
    plain = regret_bound(SQUARE, SUMS, NO_CURVE, NO_LIMITS, *kept)
    for broken in (CurvedSums(inf, np.zeros(2), 0.0), CurvedSums(1.0, np.zeros(2), inf), CurvedSums(0.0, np.zeros(2), 9.0)):
        assert regret_bound(SQUARE, SUMS, broken, NO_LIMITS, *kept) == plain
    assert regret_bound(SQUARE, SUMS._replace(c=inf), NO_CURVE, NO_LIMITS, *kept) == (inf, 0.0)
    with np.errstate(all="raise"):
        still = regret_bound(SQUARE, SUMS._replace(a=np.zeros(2)), NO_CURVE, NO_LIMITS, *kept)
    assert still.regret == near(7.0, abs=1e-8)


def test_the_least_of_some_bounds():
    assert certificate.least_of([3.0, -inf, float("nan"), 2.0, inf]) == 2.0
    assert certificate.least_of([float("nan"), inf]) == inf


def test_the_nearest_action_that_meets_halfspaces():
    """In the square [-1, 1]^2: the way there, and the halfspaces' multipliers."""
    half = 0.5 * sqrt(2.0)
    z, weights = certificate._nearest_feasible(SQUARE, np.array([3.0, 3.0]), np.array([[half, half]]), np.zeros(1))
    np.testing.assert_allclose(z, [0.0, 0.0], atol=1e-8)
    np.testing.assert_allclose(weights, [3.0 * sqrt(2.0)], atol=1e-8)
    z, weights = certificate._nearest_feasible(SQUARE, np.array([3.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([-0.5, 5.0]))
    np.testing.assert_allclose(z, [1.0, -0.5], atol=1e-8)
    np.testing.assert_allclose(weights, [0.5, 0.0], atol=1e-8)
    z, weights = certificate._nearest_feasible(SQUARE, np.array([3.0, 0.5]), np.zeros((0, 2)), np.zeros(0))
    np.testing.assert_array_equal(z, [1.0, 0.5])
    assert len(weights) == 0
    facing = np.array([[1.0, 0.0], [-1.0, 0.0]])  # v_1 <= -2 and v_1 >= 2: there is none, and any point will do
    z, weights = certificate._nearest_feasible(SQUARE, np.array([0.5, 0.5]), facing, np.array([-2.0, -2.0]))
    np.testing.assert_array_equal(z, [0.5, 0.5])
    disk = centered(bridle.Ball(2), 2)  # the corner where the circle meets v_2 <= 0.6: projections in turn alone end beside it
    z, _ = certificate._nearest_feasible(disk, np.array([2.0, 2.0]), np.array([[0.0, 1.0]]), np.array([0.6]))
    np.testing.assert_allclose(z, [0.8, 0.6], atol=1e-5)


def test_one_constraint_that_is_a_proof_by_itself():
    """Beyond the diameter, here 4, and one part in a hundred of that; `floor` is 1e-3 of the tolerance times the scale."""
    floor = 1e-3 * 0.01 * 50.0
    slope = np.array([[0.0, 0.5]])
    edge = 0.5 * 4.0 * 1.01 + floor
    assert contradiction_alone(DISK, 50.0, np.array([edge - 1e-9]), slope, 7) is None
    found = contradiction_alone(DISK, 50.0, np.array([edge + 1e-9]), slope, 7)
    assert found[:3] == ((7,), (0,), (1.0,))
    assert (found.margin, found.found) == (near((edge + 1e-9 - floor) / 0.5 - 4.0), 7)
    flat = np.zeros((2, 2))
    assert contradiction_alone(DISK, 50.0, np.array([0.5, 0.5]), flat, 7) is None  # the tolerance times the scale
    assert contradiction_alone(DISK, 50.0, np.array([0.4, 0.5001]), flat, 7) == ((7,), (1,), (1.0,), inf, 7)
    assert contradiction_alone(DISK, 0.1, np.array([0.01]), flat[:1], 7) is None  # and at least the tolerance
    assert contradiction_alone(DISK, 0.1, np.array([0.0101]), flat[:1], 7) is not None


# --- halfspaces -----------------------------------------------------------------------------------------------------------------------


def test_the_depth_of_weighed_halfspaces():
    """(least(w N) - w b - tolerance w (reach + |b|)) / sum w in the square, with least(v) = -|v_1| - |v_2|."""
    where = centered(bridle.Box(-1.0, 1.0, dim=2), 2, 0.01)
    N, b, w = np.array([[1.0, 0.0], [-0.6, 0.8]]), np.array([-0.5, -2.0]), np.array([3.0, 1.0])
    assert depth(where, N, b, w) == near((-(2.4 + 0.8) + 3.5 - 0.01 * (4.0 * sqrt(8.0) + 3.5)) / 4.0)


def test_how_low_a_cost_gets_on_halfspaces():
    """In the square: <(1, 2), v> where v_2 >= 1/4 is at least -1/2, with the weight 2; where v_2 >= -2 the halfspace has none."""
    a, N = np.array([1.0, 2.0]), np.array([[0.0, -1.0]])
    value, weights = lower(SQUARE, a, N, np.array([-0.25]))
    assert value == near(-0.5, abs=1e-7)
    np.testing.assert_allclose(weights, [2.0], atol=1e-6)
    value, weights = lower(SQUARE, a, N, np.array([2.0]))
    assert value == near(-3.0)
    assert not weights.any()
    value, weights = lower(SQUARE, 1e6 * a, N, np.array([-0.25]), programs=0)  # by pressing alone
    assert value == near(-0.5e6, rel=0.05)


def test_low_costs_on_round_domains_are_found_by_cutting_the_polyhedron():
    """In the unit disk <(1, 1), v> where v_1 >= 0.6 is least at (0.6, -0.8)."""
    value, weights = lower(centered(bridle.Ball(2), 2).boxed(), np.array([1.0, 1.0]), np.array([[-1.0, 0.0]]), np.array([-0.6]))
    assert value == near(-0.2, abs=1e-6)
    np.testing.assert_allclose(weights, [1.75], atol=1e-2)  # so that (1 - w, 1) points along (-0.6, 0.8)


def test_the_nearest_point_on_halfspaces():
    point, weights = nearest_on(np.array([3.0, 1.0]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([-1.0, 5.0]))
    np.testing.assert_allclose(point, [-1.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(weights, [4.0, 0.0], atol=1e-12)
    point, weights = nearest_on(np.array([-3.0, 1.0]), np.array([[1.0, 0.0]]), np.array([-3.0]))  # it is there
    np.testing.assert_array_equal(point, [-3.0, 1.0])
    np.testing.assert_array_equal(weights, [0.0])
    assert nearest_on(np.zeros(2), np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -1.0])) is None


# --- sums -----------------------------------------------------------------------------------------------------------------------------

X = np.array([[1.0, 0.0], [3.0, 4.0], [0.5, 0.5]])
DF = np.array([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0]])
G = np.array([[0.5, 2.0], [-1.0, -3.0], [0.25, 0.0]])
DG = np.array([[[0.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 5.0]]])
ROWS = np.hstack([X, DF, G, DG.reshape(3, 4)])


def reading(near_by: float = -0.1, witness: tuple[float, float] = (0.0, 0.0), place: Any = DISK, scale: float = 6.0) -> Any:
    before = Counted(SUMS._replace(scale=scale), ViolatedSums(np.array([1.0, 1.0]), 2.0, 3.0, 4.0, 5.0, 6.0), np.ones(3), 1.5)
    frame = Frame(place._replace(domain=None, box=None), np.array([0.3, 1.0]), np.array(witness), near_by)
    return read(frame, before, ROWS)


def test_a_row_is_laid_out_as_it_is_said():
    assert width(2, 2) == ROWS.shape[1]
    for found, expected in zip(parts(ROWS, 2), (X, DF, G, DG), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_sums_of_three_rounds():
    """Scales: the largest value or slope times the reach of 9; 1e-5 of that is rounding."""
    counted, findings = reading()
    sums, limits, between, largest = counted
    assert (sums.rounds, sums.c, sums.lengths, sums.squares) == (5.0, near(7.0 + 3.0 + 4.0), near(3.0 + 5.0 + 1.0), near(5.0 + 26.0))
    np.testing.assert_allclose(sums.a, [4.0, 7.0])
    assert (sums.cost, sums.constraint, sums.scale) == (near(5.0), near(5.0), near(45.0))
    np.testing.assert_allclose(findings.scales, [45.0, 45.0, 45.0])
    floor = 1e-5 * 45.0
    # Round 1: distances 0.25 and 0.4, so the second constraint, normal (0.6, 0.8), level 0.6 - 0.4. Round 3: the first has no slope, the
    # second is not violated beyond rounding, so that it adds nothing but that it is violated.
    far = (2.0 - floor) / 5.0
    np.testing.assert_allclose(limits.A, [1.6, 1.8])
    assert (limits.b, limits.weight, limits.sizes) == (near(2.0 + 0.6 - far), near(4.0), near(4.0 + 0.6 - far))
    assert (limits.distances, limits.violated) == (near(5.0 + far * far), near(8.0))
    np.testing.assert_array_equal(between, [2.0, 1.0, 2.0])  # 0.25 is below both levels, 2 above both
    assert largest == 3.0
    np.testing.assert_array_equal(reading(scale=60.0).findings.scales, [60.0] * 3)


def test_the_halfspaces_of_three_rounds():
    """Each line: normal, level, which constraint, whether the round is violated."""
    _, findings = reading()
    floor = 1e-5 * 45.0
    lines = [
        [[0.0, 1.0, -(0.5 - floor) / 2.0, 0.0, 1.0], [0.6, 0.8, 0.6 - (2.0 - floor) / 5.0, 1.0, 1.0]],
        [[1.0, 0.0, 3.0 + 1.0 + floor, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]],
        [[0.0, 0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.5 + floor / 5.0, 1.0, 1.0]],
    ]
    np.testing.assert_allclose(findings.lines, lines, atol=1e-12)
    # Those of violated rounds are kept where there is a slope; others if the decision or the witness is near enough.
    np.testing.assert_array_equal(findings.chosen, [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(reading(near_by=-1.1).findings.chosen[1], [1.0, 0.0])
    np.testing.assert_array_equal(reading(witness=(3.95, 0.0)).findings.chosen[1], [1.0, 0.0])
    np.testing.assert_array_equal(reading(witness=(3.8, 0.0)).findings.chosen[1], [0.0, 0.0])


def test_what_rules_out_the_witness_and_what_is_a_proof_alone():
    """The witness may be outside by 1e-7 of the diameter of 4; a flat constraint counts above a hundredth of the scale."""
    floor = 1e-5 * 45.0
    edge = -(0.5 - floor) / 2.0  # of the first halfspace, v_2 <= edge; the second, 0.6 v_1 + 0.8 v_2 <= 0.2, is met there
    for out, ruled in ((3e-7, 0.0), (5e-7, 1.0)):
        assert reading(witness=(-5.0, edge + out)).findings.ruled == ruled
    findings = reading().findings
    assert findings.proof == 0.0
    np.testing.assert_array_equal(findings.alone, [0.0, 0.0, 0.0])
    small = centered(bridle.Ball(radius=0.15, center=[3.0, 4.0]), 2, 1e-6)  # 0.3 wide; reach 5.3, scales 26.5
    alone = reading(place=small, scale=1.0).findings
    np.testing.assert_array_equal(alone.alone, [1.0, 0.0, 1.0])  # 0.4 away; and 0.25 without a slope
    assert alone.proof == 1.0
    off = (2.0 - 1e-9 * 26.5) / 5.0
    assert off > 0.3
    assert reading(place=small, scale=1.0).counted.limits.distances == near(5.0 + 0.09)  # no farther than the domain is wide


def test_nothing_is_nothing():
    counted = nothing(3, 4)
    assert counted.sums == (0.0, 0.0, near(0.0), 0.0, 0.0, 0.0, 0.0, 0.0) or not counted.sums.a.any()
    assert all(not np.any(leaf) for record in (counted.sums, counted.limits) for leaf in record)
    assert (counted.between.tolist(), counted.largest) == ([0.0] * 5, 0.0)
    blank = unread(3, 9, 4)
    assert blank.findings.lines.shape == (8, 4, 6)
    assert (blank.findings.chosen.shape, blank.findings.alone.shape, blank.findings.scales.shape) == ((8, 4), (8,), (8,))


def test_of_many_constraints_the_four_farthest_are_kept():
    """Six constraints, five of them with a slope: the farthest four, in this order; one that is not chosen is marked."""
    values, d = np.array([[0.1, 0.5, 0.3, 0.9, 0.2, 0.7]]), 2
    slopes = np.tile([[0.0, 1.0]], (6, 1))
    slopes[3] = 0.0
    row = np.hstack([np.zeros((1, 2 * d)), values, slopes.reshape(1, -1)])
    frame = Frame(SQUARE._replace(domain=None, box=None), np.array([1.0]), np.full(2, np.nan), 0.25)
    counted, findings = read(frame, nothing(2, 1), row)
    assert findings.lines[0, :, 3].tolist() == [5.0, 1.0, 2.0, 4.0]
    assert findings.chosen[0].tolist() == [1.0, 1.0, 1.0, 1.0]
    assert counted.limits.b == near(-0.7, abs=1e-8)
    _, quiet = read(frame, nothing(2, 1), np.hstack([np.zeros((1, 2 * d)), values - 1.0, slopes.reshape(1, -1)]))
    assert not quiet.chosen.any()
    close = frame._replace(near=-0.6)
    _, some = read(close, nothing(2, 1), np.hstack([np.zeros((1, 2 * d)), values - 1.0, slopes.reshape(1, -1)]))
    assert some.chosen[0].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert some.lines[0, :2, 3].tolist() == [5.0, 1.0]


# --- the ledger and the parts -----------------------------------------------------------------------------------------------------------


def ledger_with(rounds: list[tuple[list[float], list[float], float, list[float]]], tolerance: float = 0.01) -> Ledger:
    """A ledger of the disk around (3, 4), with rounds of x, df, g and dg."""
    ledger = Ledger(bridle.Ball(radius=2.0, center=[3.0, 4.0]), 2, levels=(0.3, 1.0), tolerance=tolerance)
    for t, (x, df, g, dg) in enumerate(rounds, 1):
        ledger.take(Feedback(np.array(x), 0.0, np.array(df), np.array([g]), np.array([dg])), t)
    return ledger.complete()


def test_what_any_action_can_lose():
    """gain = max <a, u> - c over the disk, and a hundredth of the lengths times the reach."""
    ledger = ledger_with([([3.0, 4.0], [1.0, 0.0], -1.0, [0.0, 1.0]), ([4.0, 4.0], [0.0, 2.0], -1.0, [0.0, 1.0])])
    assert ledger.behind() == near((3.0 + 8.0) - (3.0 + 8.0))
    loose = 0.01 + 4.0 * EPS * 4.0
    assert ledger.gain() == near(2.0 * sqrt(5.0) + loose * 3.0 * 9.0)
    assert ledger_with([([4.0, 4.0], [1.0, 0.0], -1.0, [0.0, 1.0])]).behind() == near(1.0)
    ledger.domain = ledger.domain._replace(domain=None)
    assert ledger.gain() == inf


def test_the_depth_of_the_sum_allows_for_rounding():
    """Two rounds at the middle, 1/2 outside along (1, 0) and 1/4 along (0, 2): A = (1, 1), so that least(A) = -2 sqrt(2)."""
    ledger = ledger_with([([3.0, 4.0], [0.0, 0.0], 0.5, [1.0, 0.0]), ([3.0, 4.0], [0.0, 0.0], 0.5, [0.0, 2.0])])
    limits = ledger.counted.limits
    floor = 1e-5 * np.array([9.0, 18.0])
    levels = np.array([3.0 - (0.5 - floor[0]), 4.0 - (0.5 - floor[1]) / 2.0])
    assert limits.b == near(levels.sum())
    loose = 0.01 + 4.0 * EPS * 4.0
    expected = (-2.0 * sqrt(2.0) - (levels.sum() - 7.0) - loose * (2.0 * 9.0 + levels.sum())) / 2.0
    assert ledger._depth_of_sum() == near(expected)
    assert ledger.above() == ((0.3, 2), (1.0, 0))


def test_charge_and_gain_of_rounds_that_wait():
    session = bridle.Session(bridle.policy("anytime", bridle.Ball(2), form="value", lipschitz=3.0))
    for _ in range(3):
        session.observe(f=0.0, df=[2.0, 0.0], g=-1.0, dg=[0.0, 1.0])
    first, second, third = session.ask(), session.ask(), session.ask()
    session.observe(f=0.0, df=[0.0, 3.0], ticket=first)
    parts = proved(session).complete()
    c = parts.ledger.counted.sums.c
    assert c < -1.0
    assert parts.gain(parts.ledger) == near(sqrt(36.0 + 9.0) - c, abs=1e-6)
    assert parts.charge() == (0.0, 0.0, True)
    session.forget(second)
    session.forget(third)
    charge = proved(session).complete().charge()
    assert (charge.regret, charge.ccv, charge.declared) == (near(2 * 3.0 * 2.0), near(2 * 3.0 * 2.0), False)  # the cost's G was only seen
