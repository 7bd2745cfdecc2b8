"""The best action of each round: formulas against programs, and what cannot be had."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle import records
from bridle.core import Round
from bridle.functions import AffineFunction, AffineRows, HingeLoss, QuadraticForm, RoundQuadratic
from bridle.solvers import each_round
from bridle.solvers.block_stream import NoComparator, batch
from bridle.solvers.each_round import best_of_each_round
from bridle.solvers.hindsight import best_fixed

PLACES = {
    "ball": bridle.Ball(radius=0.7, center=[0.3, -0.2, 0.5]),
    "box": bridle.Box([-1.0, 0.2, -0.5], [0.5, 1.0, 0.5]),
    "simplex": bridle.Simplex(3),
    "l1": bridle.L1Ball(3),
    "cut": bridle.Halfspace([1.0, 1.0, 0.0], 0.3, within=bridle.Box(-1.0, 1.0, dim=3)),
}


def stream(domain, curved, n=12, seed=0):
    """Rounds with a limit that may be slack, tight, or nearly miss the domain."""
    rng = np.random.default_rng([seed, curved])
    a = rng.standard_normal((n, 3)) * 10.0 ** rng.uniform(-3.0, 3.0, (n, 1))
    inside = np.array([domain.project(2.0 * rng.standard_normal(3)) for _ in range(n)])
    slack = np.linalg.norm(a, axis=1) * np.where(rng.random(n) < 0.7, 1e-3, 3.0)
    limit = AffineFunction(a, -(a * inside).sum(axis=1) - slack)
    slopes = rng.standard_normal((n, 3))
    cost = RoundQuadratic(rng.uniform(0.1, 9.0, n), slopes, rng.standard_normal((n, 3)), slopes[:, 0]) if curved else None
    return Round(AffineFunction(slopes, slopes[:, 0]) if cost is None else cost, (limit,))


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_formulas_find_what_programs_find(place, curved):
    domain = PLACES[place]
    rounds = stream(domain, curved)
    found = best_of_each_round(lambda: [records.cut(rounds, 0, 5), records.cut(rounds, 5, 12)], domain)
    programs = [best_fixed(lambda i=i: [records.cut(rounds, i, i + 1)], domain) for i in range(12)]
    assert found.cost == pytest.approx(sum(program.cost for program in programs), abs=1e-6)
    assert all(domain.contains(x, 1e-7) for x in found.path)
    assert found.violation <= 1e-6
    assert found.length == pytest.approx(sum(np.linalg.norm(b - a) for a, b in zip(found.path[:-1], found.path[1:], strict=True)))
    if curved:  # one action is best
        np.testing.assert_allclose(found.path, [program.x for program in programs], atol=1e-6)


def test_without_a_limit_or_with_a_slack_one_costs_alone_decide():
    slopes = np.array([[1.0, 0.0], [0.0, -2.0]])
    for limits in ((), (AffineFunction(np.zeros((2, 2)), np.full(2, -1.0)),), (AffineFunction(slopes, np.full(2, -50.0)),)):
        found = best_of_each_round(lambda limits=limits: [Round(AffineFunction(slopes, np.zeros(2)), limits)], bridle.Ball(2))
        np.testing.assert_allclose(found.path, [[-1.0, 0.0], [0.0, 1.0]], atol=1e-12)
        assert (found.cost, found.length) == (-3.0, pytest.approx(np.sqrt(2.0)))


def test_a_limit_that_only_touches_the_domain_leaves_one_action():
    for domain, corner in ((bridle.Ball(2), [-1.0, 0.0]), (bridle.Box(-1.0, 1.0, dim=2), None)):
        limit = AffineFunction(np.array([[1.0, 0.0]]), np.array([1.0]))
        found = best_of_each_round(lambda limit=limit: [Round(AffineFunction(np.array([[-1.0, 0.5]]), np.zeros(1)), (limit,))], domain)
        assert found.path[0, 0] == pytest.approx(-1.0, abs=1e-7)
        assert corner is None or found.path[0] == pytest.approx(corner, abs=1e-3)


def test_a_round_that_allows_nothing_is_said():
    for limit in (AffineFunction(np.array([[1.0, 0.0]]), np.array([1.5])), AffineFunction(np.zeros((1, 2)), np.array([0.5]))):
        with pytest.raises(NoComparator, match="no action of the domain satisfies the constraint of 1 round"):
            best_of_each_round(lambda limit=limit: [Round(AffineFunction(np.ones((1, 2)), np.zeros(1)), (limit,))], bridle.Ball(2))


def test_rounds_without_a_formula_are_programs_up_to_a_number(monkeypatch):
    """Two limits a round, and a cost that is neither affine nor equally curved."""
    rows = AffineRows(np.array([[[1.0, 0.0], [0.0, 1.0]]] * 3), np.full((3, 2), -0.25))
    two = best_of_each_round(lambda: [Round(AffineFunction(-np.ones((3, 2)), np.zeros(3)), (rows,))], bridle.Ball(2))
    np.testing.assert_allclose(two.path, np.full((3, 2), 0.25), atol=1e-6)
    hinges = HingeLoss(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]), np.full(2, 0.5), np.ones(2))
    bent = best_of_each_round(lambda: [Round(hinges, ())], bridle.Ball(2))
    assert bent.cost == pytest.approx(0.0, abs=1e-6)
    monkeypatch.setattr(each_round, "MOST_PROGRAMS", 2)
    with pytest.raises(NoComparator, match="programs are solved for 2 at most"):
        best_of_each_round(lambda: [Round(AffineFunction(-np.ones((3, 2)), np.zeros(3)), (rows,))], bridle.Ball(2))


# --- at fixed numbers -------------------------------------------------------------------------------------------------------------------


def best(domain, slope, normal, offset, **curved):
    """The best action of one round: <slope, x>, or with a curvature and a centre that too, under <normal, x> + offset <= 0."""
    cost = AffineFunction(np.array([slope]), np.zeros(1))
    if curved:
        cost = RoundQuadratic(np.array([curved["curvature"]]), np.array([curved["c"]]), np.array([slope]), np.zeros(1))
    return best_of_each_round(lambda: [Round(cost, (AffineFunction(np.array([normal]), np.array([offset])),))], domain)


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_a_limit_may_miss_the_domain_by_a_ten_millionth_of_its_diameter(size):
    """x_1 <= -size - s on a box of diameter sqrt(8) size; and with a slope of 0 a value of s above 0."""
    box, D = bridle.Box(-size, size, dim=2), np.sqrt(8.0) * size
    for s, allowed in ((0.9e-7 * D, True), (1.1e-7 * D, False)):
        for normal, offset in (([5.0, 0.0], 5.0 * (size + s)), ([0.0, 0.0], s)):
            if allowed:
                found = best(box, [-1.0, 1.0], normal, offset)
                np.testing.assert_allclose(found.path, [[-size if normal[0] else size, -size]], atol=1e-9 * D)
                assert found.violation == pytest.approx(5.0 * s if normal[0] else s, rel=1e-6)
            else:
                with pytest.raises(NoComparator, match="the constraint of 1 round"):
                    best(box, [-1.0, 1.0], normal, offset)


def test_where_a_cut_touches_a_face_the_cost_decides_on_the_face():
    """x_1 <= 0 on a box and on a simplex that begin there: of all that is left the cheapest, for a cost of any size and for none."""
    box, simplex = bridle.Box(0.0, 1.0, dim=3), bridle.Simplex(3)
    for size in (1e-6, 1.0, 1e6):
        found = best(box, [-3.0 * size, 1.0 * size, -1e-3 * size], [2.0, 0.0, 0.0], 0.0)
        np.testing.assert_allclose(found.path, [[0.0, 0.0, 1.0]], atol=1e-12)
        assert found.cost == pytest.approx(-1e-3 * size, rel=1e-9, abs=0.0)
        np.testing.assert_allclose(
            best(simplex, [-3.0 * size, -0.5 * size, size], [1.0, 0.0, 0.0], 0.0).path, [[0.0, 1.0, 0.0]], atol=1e-12
        )
    assert best(box, [0.0, 0.0, 0.0], [2.0, 0.0, 0.0], 0.0).path[0, 0] == 0.0


def test_the_lowest_points_below_a_cut_by_hand():
    """On a ball around (1, 2) of radius 2 the cut x_1 <= 0 leaves (0, 2 - sqrt(3)) for a slope straight up."""
    ball = bridle.Ball(radius=2.0, center=[1.0, 2.0])
    np.testing.assert_allclose(best(ball, [-1e-9, 1.0], [3.0, 0.0], 0.0).path, [[0.0, 2.0 - np.sqrt(3.0)]], atol=1e-7)
    np.testing.assert_allclose(best(ball, [1.0, 0.0], [3.0, 0.0], 0.0).path, [[-1.0, 2.0]], atol=1e-9)  # the cut is not in the way
    box = bridle.Box([0.0, -1.0], [4.0, 1.0])
    np.testing.assert_allclose(best(box, [-1.0, -3.0], [1.0, 1.0], -2.0).path, [[1.0, 1.0]], atol=1e-7)
    np.testing.assert_allclose(best(box, [-3.0, -1.0], [1.0, 1.0], -2.0).path, [[3.0, -1.0]], atol=1e-7)


def test_the_nearest_points_below_a_cut_by_hand():
    """(k/2) |x - c|^2 + <a, x> is least at c - a/k; from (3, 1) - (1, 2)/2 to x_1 + x_2 <= 1 it is straight down the normal."""
    box = bridle.Box(-10.0, 10.0, dim=2)
    found = best(box, [1.0, 2.0], [2.0, 2.0], -2.0, curvature=2.0, c=[3.0, 1.0])
    np.testing.assert_allclose(found.path, [[1.75, -0.75]], atol=1e-7)
    assert found.cost == pytest.approx(1.25**2 + 1.75**2 + 1.75 - 2.0 * 0.75, abs=1e-6)
    np.testing.assert_allclose(best(box, [1.0, 2.0], [2.0, 2.0], -90.0, curvature=2.0, c=[3.0, 1.0]).path, [[2.5, 0.0]], atol=1e-9)


def test_rounds_that_are_curved_and_rounds_that_are_not_have_no_common_formula():
    """Programs find the same: the first round is a parabola, the second a slope."""
    cost = RoundQuadratic(np.array([2.0, 0.0]), np.array([[0.5, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0]]), np.zeros(2))
    found = best_of_each_round(lambda: [Round(cost, ())], bridle.Ball(2))
    np.testing.assert_allclose(found.path, [[0.5, 0.0], [0.0, -1.0]], atol=1e-4)
    flat = RoundQuadratic(np.zeros(2), np.zeros((2, 2)), np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2))
    np.testing.assert_allclose(best_of_each_round(lambda: [Round(flat, ())], bridle.Ball(2)).path, [[-1.0, 0.0], [0.0, -1.0]], atol=1e-12)


def test_costs_and_limits_that_bend_are_programs():
    """(x_1 - 0.3)^2 in one direction alone, on a box and on that box as a polyhedron; and a disc for a limit."""
    bent = QuadraticForm(np.array([[[2.0, 0.0], [0.0, 0.0]]]), np.array([[-0.6, 0.1]]), np.zeros(1))
    sides = bridle.Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1.0, 1.0, 1.0, 1.0])
    for domain in (bridle.Box(-1.0, 1.0, dim=2), sides):
        np.testing.assert_allclose(best_of_each_round(lambda: [Round(bent, ())], domain).path, [[0.3, -1.0]], atol=1e-4)
    disc = RoundQuadratic(np.array([2.0]), np.zeros((1, 2)), np.zeros((1, 2)), np.array([-0.25]))
    round_ = best_of_each_round(lambda: [Round(AffineFunction(np.array([[0.0, 1.0]]), np.zeros(1)), (disc,))], bridle.Ball(2))
    np.testing.assert_allclose(round_.path, [[0.0, -0.5]], atol=1e-4)


def test_one_round_of_two_that_allows_nothing_is_enough():
    limits = AffineFunction(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.5, 0.0]))
    with pytest.raises(NoComparator, match="the constraint of 1 round"):
        best_of_each_round(lambda: [Round(AffineFunction(np.ones((2, 2)), np.zeros(2)), (limits,))], bridle.Ball(2))


def test_the_violation_is_the_largest_of_all_blocks():
    box, s = bridle.Box(-1.0, 1.0, dim=2), 1e-7
    blocks = [
        Round(AffineFunction(np.array([[-1.0, 1.0]]), np.zeros(1)), (AffineFunction(np.array([[5.0, 0.0]]), np.array([offset])),))
        for offset in (5.0 * (1.0 + s), -9.0)
    ]
    assert best_of_each_round(lambda: blocks, box).violation == pytest.approx(5.0 * s, rel=1e-6)


def test_so_many_programs_are_solved_and_no_more(monkeypatch):
    rows = AffineRows(np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.full((1, 2), -0.25))
    blocks = [Round(AffineFunction(-np.ones((1, 2)), np.zeros(1)), (rows,))] * 2
    monkeypatch.setattr(each_round, "MOST_PROGRAMS", 2)
    assert len(best_of_each_round(lambda: blocks, bridle.Ball(2)).path) == 2
    monkeypatch.setattr(each_round, "MOST_PROGRAMS", 1)
    with pytest.raises(NoComparator, match="programs are solved for 1 at most"):
        best_of_each_round(lambda: blocks, bridle.Ball(2))


# --- formulas, without the programs that would make up for a wrong one ------------------------------------------------------------------


def formula(domain, targets, normals, offsets, curvature=0.5):
    """What the formula says of (curvature/2) |x - target|^2 under <normal, x> + offset <= 0, one row a round."""
    targets, normals = np.array(targets), np.array(normals)
    cost = RoundQuadratic(np.full(len(targets), curvature), targets, 0.0 * targets, np.zeros(len(targets)))
    block = Round(cost, (AffineFunction(normals, np.array(offsets)),))
    return each_round._by_formula(batch(block), domain, np.tile(domain.center(), (len(targets), 1)))


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_the_nearest_point_is_found_along_a_side_that_the_cut_all_but_follows(size):
    s = 1e-6
    found = formula(bridle.Box(0.0, size, dim=2), [[size, 0.0]], [[s, 1.0]], [-0.5 * s * size])
    np.testing.assert_allclose(found, [[0.5 * size, 0.0]], atol=1e-3 * size)


def test_the_nearest_point_to_a_target_outside_or_in_the_middle_is_found():
    box = bridle.Box(-0.5, 0.5, dim=2)
    np.testing.assert_allclose(formula(box, [[30.0, 0.2]], [[1.0, 0.0]], [0.0]), [[0.0, 0.2]], atol=1e-7)
    np.testing.assert_allclose(formula(box, [[0.0, 0.0]], [[1.0, 0.0]], [0.25]), [[-0.25, 0.0]], atol=1e-7)


ROUNDS = [  # slope, normal, offset, and the lowest point
    ("ball", [0.0, 1.0], [3.0, 0.0], 0.0, [0.0, 2.0 - np.sqrt(3.0)]),  # cut off at x_1 = 0
    ("ball", [1.0, 0.0], [3.0, 0.0], 0.0, [-1.0, 2.0]),  # the cut is not in the way
    ("ball", [-2.0, 0.0], [0.5, 0.0], -1.0, [2.0, None]),  # straight onto the cut
    ("ball", [-1.0, -1.0], [1.0, 0.0], 1.0, [-1.0, 2.0]),  # it only touches
    ("box", [-1.0, -3.0], [1.0, 1.0], -2.0, [1.0, 1.0]),
    ("box", [-3.0, -1.0], [1.0, 1.0], -2.0, [3.0, -1.0]),
    ("box", [2.0, -1.0], [1.0, 1.0], -2.0, [0.0, 1.0]),
    ("box", [-1.0, -2.0], [4.0, 0.0], 0.0, [0.0, 1.0]),  # it touches along a side
    ("box", [-1.0, 0.1], [1.0, 1.0], 1.0, [0.0, -1.0]),  # it touches at a corner
    ("box", [-2e5, -1e5], [4.0, 0.0], 0.0, [0.0, 1.0]),  # costs of any size, and none
    ("box", [-2e-5, 1e-5], [4.0, 0.0], 0.0, [0.0, -1.0]),
    ("box", [0.0, 0.0], [4.0, 0.0], 0.0, [0.0, None]),
    ("simplex", [-3.0, -2.0], [1.0, 0.0], -0.25, [0.25, 0.75]),
    ("simplex", [-2.0, -3.0], [1.0, 0.0], -0.25, [0.0, 1.0]),
    ("simplex", [-2.0, -3.0], [0.0, 1.0], 0.0, [1.0, 0.0]),  # it touches at a corner
]
WHERE = {"ball": bridle.Ball(radius=2.0, center=[1.0, 2.0]), "box": bridle.Box([0.0, -1.0], [4.0, 1.0]), "simplex": bridle.Simplex(2)}


@pytest.mark.parametrize("place", WHERE)
def test_the_lowest_points_are_found_by_the_formula_itself(place):
    """Alone and all together; what one round's cut does is nothing to the others."""
    cases = [case for case in ROUNDS if case[0] == place]
    _, slopes, normals, offsets, points = zip(*cases, strict=True)
    for rows in ([i] for i in range(len(cases))), [range(len(cases))]:
        for some in rows:
            limit = AffineFunction(np.array([normals[i] for i in some]), np.array([offsets[i] for i in some]))
            block = Round(AffineFunction(np.array([slopes[i] for i in some]), np.zeros(len(some))), (limit,))
            found = each_round._by_formula(batch(block), WHERE[place], np.tile(WHERE[place].center(), (len(some), 1)))
            for x, i in zip(found, some, strict=True):
                wanted = [a if b is None else b for a, b in zip(x, points[i], strict=True)]
                np.testing.assert_allclose(x, wanted, atol=1e-6)
                assert WHERE[place].contains(x, 1e-9)


@pytest.mark.parametrize("curvature", [0.5, 1.0, 3.0])
def test_curved_and_flat_quadratics_have_a_formula_each(curvature):
    np.testing.assert_allclose(formula(bridle.Ball(2), [[0.3, -0.2]], [[1.0, 0.0]], [-0.9], curvature), [[0.3, -0.2]], atol=1e-9)
    flat = RoundQuadratic(np.zeros(2), np.zeros((2, 2)), np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2))
    found = each_round._by_formula(batch(Round(flat, ())), bridle.Ball(2), np.zeros((2, 2)))
    np.testing.assert_allclose(found, [[-1.0, 0.0], [0.0, -1.0]], atol=1e-12)
    mixed = RoundQuadratic(np.array([curvature, 0.0]), np.zeros((2, 2)), np.array([[0.0, 0.0], [0.0, 1.0]]), np.zeros(2))
    assert each_round._by_formula(batch(Round(mixed, ())), bridle.Ball(2), np.zeros((2, 2))) is None


def test_a_formula_that_ends_above_its_cut_says_nothing(monkeypatch):
    monkeypatch.setattr(each_round, "FARTHEST", 1e-9)
    assert formula(bridle.Ball(2), [[0.9, 0.0]], [[1.0, 0.0]], [0.5]) is None
    np.testing.assert_allclose(
        formula(bridle.Ball(2), [[-0.9, 0.0]], [[1.0, 0.0]], [0.5]), [[-0.9, 0.0]]
    )  # where the cut is not in the way


def test_no_formula_is_claimed_where_there_is_none():
    slope, middle = AffineFunction(np.array([[0.0, 1.0]]), np.zeros(1)), np.zeros((1, 2))
    bent = QuadraticForm(np.array([[[2.0, 0.0], [0.0, 0.0]]]), np.array([[-0.6, 0.1]]), np.zeros(1))
    disc = RoundQuadratic(np.array([2.0]), np.zeros((1, 2)), np.zeros((1, 2)), np.array([-0.25]))
    sides = bridle.Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1.0, 1.0, 1.0, 1.0])
    for block, domain in ((Round(bent, ()), bridle.Ball(2)), (Round(slope, (disc,)), bridle.Ball(2)), (Round(slope, ()), sides)):
        assert each_round._by_formula(batch(block), domain, middle) is None
    assert each_round._by_formula(batch(Round(slope, ())), bridle.Ball(2), middle).tolist() == [[0.0, -1.0]]
