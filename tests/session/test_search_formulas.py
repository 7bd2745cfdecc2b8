"""The search for a contradiction, step by step at numbers worked out by hand: what is kept, cut, solved, counted as work and left out."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np
import pytest

import bridle
from bridle.session.certificates import search as proof_search
from bridle.session.certificates.feasibility import (
    NEAR,
    KeptHalfspaces,
    OuterPolyhedron,
    calls_solver,
    centered,
    depth,
    lower,
    meets,
    nearest_on,
    project_onto,
    swept,
)
from bridle.session.certificates.search import PROGRAMS, SWEEPS, Search, Work, advance, begin, domain_work, program_work, reduce, reducing

DISK = centered(bridle.Ball(radius=2.0, center=[3.0, 4.0]), 2, 0.01)
"""Diameter 4; a linear function v is at least -2 |v| around the middle."""
SQUARE = centered(bridle.Box(-1.0, 1.0, dim=2), 2, 1e-12)
WALLS = bridle.Polyhedron(np.vstack([np.eye(2), -np.eye(2)]), np.array([5.0, 3.0, -1.0, 1.0]))
"""[1, 5] x [-1, 3]."""


def near(value: Any, **more: Any) -> Any:
    return pytest.approx(value, **({"rel": 1e-9, "abs": 1e-12} | more))


def around(count: int, start: float = 0.0) -> np.ndarray:
    """So many different unit vectors."""
    angles = start + np.arange(count) * 1e-3
    return np.column_stack([np.cos(angles), np.sin(angles)])


# --- which halfspaces are kept ----------------------------------------------------------------------------------------------------------


def test_the_room_for_halfspaces_is_three_megabytes_at_most():
    assert [KeptHalfspaces(dim).room for dim in (1, 2, 3_333, 3_334, 4_000, 40_000, 50_000, 50_001, 10**6)] == [
        120, 120, 120, 119, 100, 10, 8, 8, 8,
    ]  # fmt: skip
    fresh = KeptHalfspaces(3)
    assert (fresh.next, fresh.fresh, fresh.sources, fresh.tight, fresh.useful) == (0, 0, [], set(), set())
    assert [part.shape for part in fresh.lines] == [(0, 3), (0,)]


def test_a_full_store_makes_room_in_the_order_of_age_but_for_what_matters():
    store, source = KeptHalfspaces(2), iter(range(10**6))

    def more(count: int, start: float) -> list[tuple[int, int]]:
        sources = [(next(source), 0) for _ in range(count)]
        new = store.extend(around(count, start), np.array([float(t) for t, _ in sources]), np.array(sources))
        assert new.all()
        return sources

    assert more(118, 0.0) == store.sources
    assert store.fresh == 118
    more(5, 1.0)  # two find room, and the three oldest go
    assert [t for t, _ in store.sources] == [120, 121, 122, *range(3, 120)]
    assert (store.next, store.fresh) == (3, 123)
    np.testing.assert_array_equal(store.lines[1], [120.0, 121.0, 122.0, *np.arange(3.0, 120.0)])
    np.testing.assert_array_equal(store.lines[0][:3], around(5, 1.0)[2:])
    np.testing.assert_array_equal(store.lines[0][118:], around(5, 1.0)[:2])
    store.tight, store.useful = frozenset({3, 5}), frozenset({4})
    more(2, 1.5)
    assert [t for t, _ in store.sources][:9] == [120, 121, 122, 3, 4, 5, 123, 124, 8]
    assert store.next == 8
    store.next = 119
    more(3, 2.0)  # from the end on to the beginning
    assert ([t for t, _ in store.sources][119], [t for t, _ in store.sources][:2], store.next) == (125, [126, 127], 2)
    last = more(200, 3.0)[-117:]  # more than there are places: the latest
    assert [store.sources[slot] for slot in (3, 4, 5)] == [(3, 0), (4, 0), (5, 0)]
    assert sorted(store.sources) == sorted([(3, 0), (4, 0), (5, 0), *last])
    assert store.sources[2] == last[0]  # the place that was next
    order = [slot for slot in [*range(2, 120), 0, 1] if slot not in (3, 4, 5)]
    np.testing.assert_array_equal(store.normals[order], around(200, 3.0)[-117:])
    np.testing.assert_array_equal(store.levels[order], [float(t) for t, _ in last])


def test_the_same_halfspace_is_kept_once_where_it_is_farthest_in():
    normals = np.array([[1.0, 0.0], [0.0, 1.0]])
    for one_by_one in (False, True):
        store = KeptHalfspaces(2)

        def extend(
            rows: np.ndarray, levels: list[float], sources: list[tuple[int, int]], store: Any = store, one_by_one: bool = one_by_one
        ) -> list[bool]:
            if one_by_one:
                return [store._add(row, level, np.array(source)) for row, level, source in zip(rows, levels, sources, strict=True)]
            return store.extend(rows, np.array(levels), np.array(sources)).tolist()

        assert extend(normals, [1.0, 2.0], [(1, 0), (1, 1)]) == [True, True]
        assert extend(normals, [1.0, 2.5], [(2, 0), (2, 1)]) == [False, False]  # the same, and farther out
        assert (store.sources, store.fresh) == ([(1, 0), (1, 1)], 2)
        assert extend(normals, [1.5, 1.75], [(3, 0), (3, 1)]) == [False, True]
        assert (store.sources, store.fresh) == ([(1, 0), (3, 1)], 3)
        np.testing.assert_array_equal(store.lines[1], [1.0, 1.75])
        again = np.array([[-1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])  # within one batch
        assert extend(again, [0.5, 0.7, 0.25], [(4, 0), (4, 1), (4, 2)]) == [True, False, True]
        assert (store.sources, store.fresh) == ([(1, 0), (3, 1), (4, 2)], 5)
        np.testing.assert_array_equal(store.lines[1], [1.0, 1.75, 0.25])
        turned = np.array([[1.0, 2e-8], [1.0, 1e-6]])  # products of 1 - 2e-16 and 1 - 5e-13 with what is there
        turned /= np.linalg.norm(turned, axis=1, keepdims=True)
        assert extend(turned, [5.0, 5.0], [(5, 0), (5, 1)]) == [False, True]


def test_the_heaviest_are_a_quarter_at_most_and_weigh_something():
    store = KeptHalfspaces(2)
    assert store.heaviest(np.array([0.0, 3.0, 0.0, 1.0, 2.0])) == {1, 3, 4}
    assert store.heaviest(np.arange(100.0)) == set(range(70, 100))
    assert store.heaviest(np.ones(100)) == set(range(30))
    assert store.heaviest(np.zeros(5)) == set()


def test_a_copy_of_the_store_goes_its_own_way():
    store = KeptHalfspaces(2)
    store.extend(around(3), np.zeros(3), np.array([(1, 0), (1, 1), (1, 2)]))
    held = [part.copy() for part in store.lines]
    other, same = store.copy(), store.shared()
    assert same.normals is store.normals
    assert same.origins is store.origins
    other.extend(np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([1.0, -1.0]), np.array([(2, 0), (2, 1)]))
    same.fresh, same.tight = 9, frozenset({1})
    assert (store.sources, store.fresh, store.tight) == ([(1, 0), (1, 1), (1, 2)], 3, set())
    assert (other.sources, other.fresh) == ([(2, 1), (1, 1), (1, 2), (2, 0)], 5)
    for part, before in zip(store.lines, held, strict=True):
        np.testing.assert_array_equal(part, before)


# --- domains ----------------------------------------------------------------------------------------------------------------------------


def test_which_domains_call_a_solver():
    assert not calls_solver(bridle.Ball(2))
    assert not calls_solver(None)
    assert calls_solver(WALLS)
    assert calls_solver(bridle.Product(bridle.Ball(2), WALLS))


def test_a_box_is_put_around_a_domain_where_that_is_cheap():
    """In units of the diameter, and a billionth larger on every side."""
    np.testing.assert_allclose(DISK.boxed().box, [(-0.5 - 1e-9, 0.5 + 1e-9)] * 2, rtol=0.0, atol=1e-15)
    simplex = centered(bridle.Simplex(2, mass=3.0), 2).boxed()  # from the middle (1.5, 1.5), of length 3 sqrt(2)
    np.testing.assert_allclose(simplex.box, [(-0.5 / sqrt(2.0) - 1e-9, 0.5 / sqrt(2.0) + 1e-9)] * 2, rtol=0.0, atol=1e-15)
    corner = centered(bridle.Simplex(3, mass=3.0), 3).boxed()  # from the middle (1, 1, 1): -1 to 2
    np.testing.assert_allclose(corner.box, [(-1.0 / sqrt(18.0) - 1e-9, 2.0 / sqrt(18.0) + 1e-9)] * 3, rtol=0.0, atol=1e-15)
    assert len(centered(bridle.Ball(500), 500).boxed().box) == 500
    for plain in (centered(bridle.Ball(501), 501), DISK._replace(diameter=0.0), centered(WALLS, 2), centered(None, 2)):
        assert plain.boxed() is plain
        assert plain.box is None


def test_a_domain_without_linear_min_is_known_by_its_diameter():
    class Wide:
        def diameter(self) -> float:
            return 7.0

    where = centered(Wide(), 3, 0.125)  # type: ignore[arg-type]
    assert (where.domain, where.diameter, where.reach, where.tolerance, where.known) == (None, 7.0, 0.0, 0.125, False)
    np.testing.assert_array_equal(where.middle, np.zeros(3))
    assert centered(object(), 3).diameter == inf  # type: ignore[arg-type]
    assert [centered(WALLS, 2, tolerance).tolerance for tolerance in (1e-9, 1e-3)] == [1e-7, 1e-3]
    assert centered(bridle.Ball(2), 2, 1e-12).tolerance == 1e-12


# --- projections ------------------------------------------------------------------------------------------------------------------------


def test_an_action_meets_a_halfspace_to_a_ten_millionth_of_the_diameter():
    normals, levels = np.array([[1.0, 0.0], [0.0, -1.0]]), np.array([0.5, 0.25])
    assert NEAR == 1e-7
    for out, met in ((-0.1, True), (0.9e-7 * 4.0, True), (1.1e-7 * 4.0, False)):
        assert meets(DISK, normals, levels, DISK.middle + np.array([0.5 + out, 1.0])) is met
        assert meets(DISK, normals, levels, DISK.middle + np.array([0.0, -0.25 - out])) is met


def test_a_sweep_goes_a_little_inside_every_halfspace_and_ends_in_the_domain():
    """By 1e-4 of the diameter of 4; the second projection starts where the first ended."""
    inside = 4e-4
    np.testing.assert_allclose(
        swept(DISK, np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([-0.5, -0.25]), DISK.middle + np.array([0.5, 0.0])),
        DISK.middle + np.array([-0.5 - inside, -0.25 - inside]),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        swept(DISK, np.array([[1.0, 0.0]]), np.array([-3.0]), DISK.middle), DISK.middle + np.array([-2.0, 0.0]), atol=1e-12
    )


def test_projections_in_turn_are_given_up_after_so_many_sweeps():
    normals, levels = np.array([[1.0, 0.0]]), np.array([-0.5])
    start = DISK.middle - np.array([1.0, 0.0])
    assert project_onto(DISK, normals, levels, start, 1) is start
    assert project_onto(DISK, normals, levels, DISK.middle, 1) is None
    np.testing.assert_allclose(project_onto(DISK, normals, levels, DISK.middle, 2), DISK.middle - np.array([0.5004, 0.0]))
    assert project_onto(DISK, np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-0.5, -0.5]), DISK.middle, 50) is None


def test_the_nearest_point_is_found_at_every_scale():
    """(3, 1) to v_1 <= -1 with the weight 4, and to the corner of v_1 <= -1, v_2 <= 0 with (4, 1)."""
    normals = np.array([[1.0, 0.0], [0.0, 1.0]])
    for size in (1e-9, 1.0, 1e9):
        for level, point, expected in ((5.0, [-1.0, 1.0], [4.0, 0.0]), (1.0, [-1.0, 1.0], [4.0, 0.0]), (0.0, [-1.0, 0.0], [4.0, 1.0])):
            found = nearest_on(size * np.array([3.0, 1.0]), normals, size * np.array([-1.0, level]))
            assert found is not None
            np.testing.assert_allclose(found[0], size * np.array(point), atol=1e-9 * size)
            np.testing.assert_allclose(found[1], size * np.array(expected), atol=1e-9 * size)


# --- the polyhedron around the domain ---------------------------------------------------------------------------------------------------


def test_a_tangent_is_added_at_its_distance_from_the_middle():
    """Of the disk of diameter 4: 1/2 away, whatever the length of its normal. No direction, no tangent."""
    outer = OuterPolyhedron(DISK)
    assert outer.bounds == [(-1.0, 1.0)] * 2
    for size in (1e-3, 1.0, 70.0):
        outer.touch(size * np.array([3.0, 4.0]))
    outer.touch(np.zeros(2))
    rows, limits = outer.cuts
    np.testing.assert_allclose(rows, [[-0.6, -0.8]] * 3)
    np.testing.assert_allclose(limits, [0.5] * 3)
    assert OuterPolyhedron(DISK.boxed()).bounds == list(DISK.boxed().box)


def test_a_point_outside_is_cut_off_at_its_projection():
    outer = OuterPolyhedron(DISK)
    np.testing.assert_allclose(outer.separate(np.array([0.6, 0.8])), [0.3, 0.4])
    inside = np.array([0.1, -0.2])
    np.testing.assert_allclose(outer.separate(inside), inside)
    rows, limits = outer.cuts
    np.testing.assert_allclose(rows, [[0.6, 0.8]])
    np.testing.assert_allclose(limits, [0.5])


def test_a_polyhedron_is_its_own_polyhedron():
    """[1, 5] x [-1, 3] has the middle (3, 1) and the diameter 4 sqrt(2)."""
    where = centered(WALLS, 2)
    np.testing.assert_allclose(where.middle, [3.0, 1.0], atol=1e-6)
    given = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([0.1, 0.2])
    outer = OuterPolyhedron(where, *given)
    np.testing.assert_array_equal(np.array(outer.rows), np.vstack([np.eye(2), -np.eye(2), given[0]]))
    np.testing.assert_allclose(outer.limits, [*[2.0 / where.diameter] * 4, 0.1, 0.2], atol=1e-6)
    assert (outer.own, OuterPolyhedron(DISK).own) == (4, 0)
    outer.touch(np.array([0.0, 2.0]))
    rows, limits = outer.cuts
    np.testing.assert_allclose(rows, [*given[0], [0.0, -1.0]])
    np.testing.assert_allclose(limits, [0.1, 0.2, 2.0 / where.diameter], atol=1e-6)
    assert [part.shape for part in OuterPolyhedron(where).cuts] == [(0, 2), (0,)]


def test_numbers_too_large_to_calculate_with_cut_nothing_off():
    outer = OuterPolyhedron(DISK)
    for row, limit in (([1.0, 0.0], inf), ([1.0, 0.0], float("nan")), ([inf, 0.0], 1.0), ([float("nan"), 0.0], 1.0)):
        outer._add(np.array(row), limit)
    assert outer.rows == []


def test_the_program_of_the_polyhedron():
    """Least <(1, 2), y> in [-1, 1]^2 with y_2 >= -1/4 is -3/2, with the multiplier 2; with one more column that is free."""
    outer, A, b = OuterPolyhedron(DISK), np.array([[0.0, -1.0], [1.0, 0.0]]), np.array([0.25, 3.0])
    answer = outer.solve(np.array([1.0, 2.0]), A, b)
    assert answer is not None
    np.testing.assert_allclose(answer[0], [-1.0, -0.25], atol=1e-9)
    np.testing.assert_allclose(answer[1], [2.0, 0.0], atol=1e-9)
    outer.touch(np.array([1.0, 0.0]))  # y_1 >= -1/2
    answer = outer.solve(np.array([1.0, 2.0]), A, b)
    assert answer is not None
    np.testing.assert_allclose(answer[0], [-0.5, -0.25], atol=1e-9)
    assert answer[1].shape == (2,)
    wider = outer.solve(np.array([0.0, 0.0, 1.0]), np.array([[1.0, 0.0, -1.0], [-1.0, 0.0, -1.0]]), np.array([-0.5, 0.0]))
    assert wider is not None
    assert wider[0][2] == near(0.25, abs=1e-9)
    np.testing.assert_allclose(wider[1], [0.5, 0.5], atol=1e-9)
    assert outer.solve(np.array([1.0, 2.0]), A, np.array([-3.0, 3.0])) is None  # nothing is there


@pytest.mark.parametrize("d", [500, 501])
def test_programs_are_for_five_hundred_dimensions_at_most(d):
    """<e_1, u> on the ball where u_1 >= 0.6 and u_2 >= 0: pressed from 10 diameters away the weight is 1.03, in place of 1; above 500
    dimensions nothing is pressed.
    """
    where = centered(bridle.Ball(d), d)
    value, weights = lower(where, np.eye(d)[0], -np.eye(2, d), np.array([-0.6, 0.0]), programs=0)
    assert value == (near(1.03 * 0.6 - 0.03, abs=1e-6) if d == 500 else near(-1.0))
    assert weights.any() == (d == 500)
    assert (begin(where, -np.eye(2, d), np.zeros(2)).programs > 0.0) == (d == 500)


def test_low_costs_are_bounded_as_well_as_programs_can():
    """On the unit ball with halfspaces around a point of it: near the optimum, and never above it."""
    rng = np.random.default_rng(3)
    for d in (2, 4, 2, 4):
        where = centered(bridle.Ball(d), d).boxed()
        inside = rng.standard_normal(d)
        inside *= 0.7 / np.linalg.norm(inside)
        normals = rng.standard_normal((d, d))
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        levels, a = normals @ inside + 0.05, 5.0 * rng.standard_normal(d)
        value, weights = lower(where, a, normals, levels)
        assert value == near(where.least(a + weights @ normals) - weights @ levels)
        assert (weights >= 0.0).all()
        best = _least_on(a, normals, levels)
        assert best - 0.005 <= value <= best + 1e-6
        assert where.least(a) <= lower(where, a, normals, levels, programs=0)[0] <= value


@pytest.mark.slow
def test_low_costs_are_close_on_average():
    """Six halfspaces on thirty balls of two to seven dimensions: the mean gap is 0.7 % of the largest slope (0.9 % with tangents added)."""
    rng, gaps = np.random.default_rng(5), []
    for _ in range(30):
        d = int(rng.integers(2, 8))
        normals = rng.normal(size=(6, d))
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        levels, a = rng.uniform(0.0, 0.3, 6), rng.normal(size=d)
        a /= np.linalg.norm(a)
        gaps.append(_least_on(a, normals, levels) - lower(centered(bridle.Ball(d), d).boxed(), a, normals, levels)[0])
    assert min(gaps) >= -1e-9
    assert sum(gaps) / len(gaps) <= 0.0075


def _least_on(a: np.ndarray, normals: np.ndarray, levels: np.ndarray) -> float:
    """min <a, u> over the unit ball and the halfspaces, by SciPy's constrained minimiser."""
    from scipy.optimize import minimize

    limits = [
        {"type": "ineq", "fun": lambda u: levels - normals @ u, "jac": lambda u: -normals},
        {"type": "ineq", "fun": lambda u: 1.0 - u @ u, "jac": lambda u: -2.0 * u},
    ]
    found = minimize(lambda u: a @ u, np.zeros(len(a)), jac=lambda u: a, constraints=limits, options={"ftol": 1e-14, "maxiter": 500})
    assert max((normals @ found.x - levels).max(), found.x @ found.x - 1.0) <= 1e-6
    return float(found.fun)


# --- the search -------------------------------------------------------------------------------------------------------------------------


def test_the_work_of_programs_and_domains():
    """A thousand numbers are one unit of work, and a program one more; projections and `linear_min` by how the domain does them."""
    assert (program_work(3, 7), program_work(100, 20)) == (near(1.021), near(3.0))
    assert domain_work(bridle.Box(-1.0, 1.0, dim=30), 30) == near(0.01 + 60.0 / 3000.0)
    cut = bridle.Halfspace(np.ones(30), 0.3, within=bridle.Box(-1.0, 1.0, dim=30))
    leaves = sum(np.size(leaf) for leaf in bridle.records.leaves(cut).values())
    assert leaves >= 91
    assert domain_work(cut, 30) == near(0.3 + leaves / 3000.0)
    assert domain_work(None, 30) == near(0.3 + 30.0 / 3000.0)
    assert domain_work(object(), 60) == near(0.3 + 60.0 / 3000.0)  # type: ignore[arg-type]
    numbers = sum(np.size(leaf) for leaf in bridle.records.leaves(WALLS).values())
    assert domain_work(WALLS, 2) == near(1.0 + numbers / 1000.0)


def test_a_search_begins_with_so_many_programs():
    for d, programs in ((2, 40), (25, 40), (26, 38), (100, 10), (125, 8), (500, 8), (501, 0)):
        assert begin(centered(bridle.Ball(d), d), np.eye(1, d), np.zeros(1)).programs == programs
    assert begin(DISK._replace(diameter=0.0), np.eye(1, 2), np.zeros(1)).programs == 0.0
    assert (PROGRAMS, SWEEPS) == (40, 30)
    normals, levels = around(4), np.array([0.5, 0.0, -1.0, -2.0])
    search = begin(DISK, normals, levels)
    assert (search.point, search.sweeps, search.alone, search.depth, search.over, search.witness) == (None, 30.0, 2.0, 0.0, 0.0, None)
    np.testing.assert_array_equal(search.sources, np.zeros((4, 2)))
    assert (search.rows.shape, search.limits.shape, search.weights.tolist()) == ((0, 2), (0,), [0.0] * 4)
    assert search.call == domain_work(DISK.domain, 2)
    assert begin(DISK, normals, levels, alone=False).alone == 4.0
    assert begin(centered(WALLS, 2), normals, levels).alone == 4.0  # the first program sees it too
    assert [proof_search._next_behind(levels, start) for start in range(5)] == [2.0, 2.0, 2.0, 3.0, 4.0]
    normals[:], levels[:] = 0.0, 0.0
    assert search.normals.any()
    assert search.levels.any()


class Asked(Work):
    """A budget that remembers the steps that were asked for."""

    def __init__(self, limit: float = inf) -> None:
        super().__init__(limit)
        self.steps: list[float] = []

    def allows(self, step: float) -> bool:
        self.steps.append(step)
        return super().allows(step)


def test_the_work_of_each_step_of_a_search():
    """30 sweeps between v_1 <= -1/2 and v_1 >= 1/2, both looked at alone, then one program that proves it."""
    normals, levels = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-0.5, -0.5])
    work, call = Asked(), domain_work(DISK.domain, 2)
    search = advance(DISK, begin(DISK, normals, levels, start=DISK.middle), work)
    assert work.steps == near([call / 3.0 + 2.0 / 256.0] * SWEEPS + [call] * 2 + [program_work(2, 3) + 2.5 * call])
    assert work.spent == near(sum(work.steps))
    assert (search.over, search.programs, search.sweeps, search.alone, search.point) == (1.0, PROGRAMS - 1.0, 0.0, 2.0, None)
    np.testing.assert_allclose(search.weights, [0.5, 0.5], atol=1e-9)
    assert search.depth == near(depth(DISK, normals, levels, np.array([0.5, 0.5])), abs=1e-9)
    assert search.depth == near(0.5 - 0.01 * (9.0 + 0.5), abs=1e-9)
    where, work = centered(WALLS, 2), Asked()
    found = advance(where, begin(where, normals, levels), work)
    assert work.steps == near([program_work(2 + 4, 3) + 2.5 * domain_work(WALLS, 2)])
    assert found.depth > 0.0


def test_a_search_stops_where_its_work_is_done_and_goes_on_from_there():
    normals, levels = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-0.5, -0.5])
    each = domain_work(DISK.domain, 2) / 3.0 + 2.0 / 256.0
    search = advance(DISK, begin(DISK, normals, levels, start=DISK.middle), Work(10.5 * each))
    assert (search.over, search.sweeps) == (0.0, 20.0)
    assert advance(DISK, search, Work(1e-9)).sweeps == 19.0  # one step is always done
    done, whole = advance(DISK, search, Work()), advance(DISK, begin(DISK, normals, levels, start=DISK.middle), Work())
    for one, other in zip(done, whole, strict=True):
        np.testing.assert_array_equal(one, other)
    assert advance(DISK, done, Work()) is done


def test_a_search_ends_at_an_action_that_meets_them_all():
    normals, levels = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([-0.5, -0.5])
    start = DISK.middle - np.array([1.0, 1.0])
    search = advance(DISK, begin(DISK, normals, levels, start=start), Work())
    assert search.witness is start
    assert (search.over, search.sweeps, search.point, search.depth) == (1.0, SWEEPS, None, 0.0)
    search = advance(DISK, begin(DISK, normals, levels, start=DISK.middle), Work())
    assert search.sweeps == SWEEPS - 1.0
    np.testing.assert_allclose(search.witness, DISK.middle - np.array([0.5004, 0.5004]))
    by_programs = advance(DISK, begin(DISK, normals, levels), Work())
    assert by_programs.witness is not None
    assert meets(DISK, normals, levels, by_programs.witness)
    assert np.linalg.norm(by_programs.witness - DISK.middle) <= 2.0 + 1e-9
    assert by_programs.depth == 0.0


def test_of_halfspaces_that_miss_the_domain_the_deepest_is_the_proof():
    """v_1 <= -2.5, v_2 <= -3.5, v_2 >= 3 in the disk of radius 2: 1/2, 3/2 and 1 away, but for a hundredth of 9 + |level|."""
    normals = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    levels = np.array([0.5, -2.5, -3.5, -3.0])
    search = advance(DISK, begin(DISK, normals, levels), Work())
    assert (search.over, search.programs) == (1.0, PROGRAMS)
    np.testing.assert_array_equal(search.weights, [0.0, 0.0, 1.0, 0.0])
    assert search.depth == near(3.5 - 2.0 - 0.01 * (9.0 + 3.5))
    shallow = advance(DISK, begin(DISK, normals[:2], np.array([0.5, -2.1])), Work())  # 0.1 away is within the tolerance of 0.111
    assert shallow.depth == 0.0
    assert shallow.programs < PROGRAMS


def test_a_search_without_programs_ends_without_a_word():
    d = 501
    where = centered(bridle.Ball(d), d)
    search = advance(where, begin(where, np.vstack([np.eye(1, d), -np.eye(1, d)]), np.array([-0.5, -0.5])), Work())
    assert (search.over, search.depth, search.witness, search.programs) == (1.0, 0.0, None, 0.0)


def test_a_program_without_an_answer_ends_the_search(monkeypatch):
    search = begin(DISK, np.eye(1, 2), np.array([0.5]), alone=False)
    answers: list[Any] = [None, (np.zeros(3), np.zeros(1)), (np.zeros(3), np.array([inf]))]
    for answer in answers:
        monkeypatch.setattr(OuterPolyhedron, "solve", lambda *given, answer=answer: answer)
        done = advance(DISK, search, Work())
        assert (done.over, done.programs, done.witness, done.depth) == (1.0, PROGRAMS - 1.0, None, 0.0)
        np.testing.assert_array_equal(done.weights, [0.0])


def test_a_program_cuts_the_polyhedron_down_to_the_domain():
    """Two halfspaces at 120 degrees, 1.5 and 0.8 away from the middle of the disk: the first weights prove nothing, the second do."""
    angles = np.deg2rad([10.0, 130.0])
    normals, levels = np.column_stack([np.cos(angles), np.sin(angles)]), np.array([-1.5, -0.8])
    search = begin(DISK, normals, levels, alone=False)
    one = proof_search._solve_once(DISK, search)
    assert (one.over, one.programs, one.depth, one.witness) == (0.0, PROGRAMS - 1.0, 0.0, None)
    assert one.weights.sum() == near(1.0)
    assert len(one.rows) == len(one.limits) == 2  # a tangent, and what is between the answer and its projection
    np.testing.assert_allclose(np.linalg.norm(one.rows, axis=1), 1.0)
    np.testing.assert_allclose(one.limits, 0.5, atol=1e-9)
    np.testing.assert_allclose(one.rows[0], -(one.weights @ normals) / np.linalg.norm(one.weights @ normals))
    done = advance(DISK, search, Work())
    assert (done.over, done.programs) == (1.0, PROGRAMS - 2.0)
    best = max(depth(DISK, normals, levels, np.array([w, 1.0 - w])) for w in np.linspace(0.0, 1.0, 1001))
    assert 0.0 < done.depth <= best + 1e-6
    work = Asked()
    advance(DISK, search, work)
    assert work.steps == near([program_work(2 + cuts, 3) + 2.5 * search.call for cuts in (0, 2)])  # with the cuts of the first


def test_a_projection_that_is_no_number_ends_the_sweeps(monkeypatch):
    search = begin(DISK, np.array([[1.0, 0.0]]), np.array([-0.5]), start=DISK.middle)
    for broken in (np.array([np.nan, 4.0]), np.array([2.0, inf])):
        monkeypatch.setattr(proof_search, "swept", lambda *given, broken=broken: broken)
        after = proof_search._sweep_once(DISK, search)
        assert (after.point, after.witness, after.sweeps, after.over) == (None, None, SWEEPS - 1.0, 0.0)


# --- smaller proofs ---------------------------------------------------------------------------------------------------------------------


def found_search(normals: np.ndarray, levels: np.ndarray, weights: np.ndarray, sources: np.ndarray | None = None) -> Search:
    """A search that has ended with these weights."""
    search = begin(SQUARE, normals, levels, sources)
    return search._replace(weights=weights, depth=depth(SQUARE, normals, levels, weights), over=1.0)


PAIR = np.array([[1.0, 0.0], [-1.0, 0.0], [0.8, 0.6], [-0.6, 0.8], [0.0, 1.0]])
LEVELS = np.array([-0.25, -0.25, -0.2, 0.1, 0.0])
HEAVY = np.array([0.4, 0.35, 0.15, 0.1, 0.0])
SOURCES = np.array([[5.0, 0.0], [3.0, 1.0], [8.0, 2.0], [2.0, 0.0], [9.0, 0.0]])


def test_a_proof_begins_with_the_halfspaces_that_weigh_something():
    search = found_search(PAIR, LEVELS, 3.0 * HEAVY, SOURCES)
    whole = reducing(search)
    np.testing.assert_array_equal(whole.normals, PAIR[:4])
    np.testing.assert_array_equal(whole.levels, LEVELS[:4])
    np.testing.assert_array_equal(whole.sources, SOURCES[:4])
    np.testing.assert_allclose(whole.weights, HEAVY[:4])
    np.testing.assert_allclose(whole.turns, 3.0 * HEAVY[:4])
    assert (whole.depth, whole.attempt, whole.over) == (search.depth, None, False)


def test_what_can_be_spared_is_left_out_the_lightest_first():
    """v_1 <= -1/4 and v_1 >= 1/4 alone contradict each other; the heavier ones are tried last."""
    small = reduce(SQUARE, reducing(found_search(PAIR, LEVELS, HEAVY, SOURCES)), Work())
    assert small.over
    np.testing.assert_array_equal(small.sources, SOURCES[:2])
    np.testing.assert_array_equal(small.normals, PAIR[:2])
    np.testing.assert_array_equal(small.levels, LEVELS[:2])
    np.testing.assert_allclose(small.weights, [0.5, 0.5], atol=1e-9)
    assert small.depth == near(0.25, abs=1e-9)
    twice = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])  # either of the first two will do: the lighter one goes
    for weights, kept in (([0.2, 0.3, 0.5], 1), ([0.3, 0.2, 0.5], 0)):
        small = reduce(SQUARE, reducing(found_search(twice, LEVELS[[0, 0, 0]], np.array(weights), SOURCES[:3])), Work())
        np.testing.assert_array_equal(small.sources, SOURCES[[kept, 2]])


def test_a_proof_is_made_smaller_in_slices():
    started = reducing(found_search(PAIR, LEVELS, HEAVY, SOURCES))
    steps, found = 0, started
    while not found.over:
        found, steps = reduce(SQUARE, found, Work(1e-9)), steps + 1
        assert found.depth == near(depth(SQUARE, found.normals, found.levels, found.weights), abs=1e-9)
        assert found.depth > 0.0
        assert found.weights.sum() == near(1.0)
        assert found.turns.shape == found.weights.shape
    whole = reduce(SQUARE, started, Work())
    assert steps > 2
    np.testing.assert_array_equal(found.sources, whole.sources)
    np.testing.assert_array_equal(found.weights, whole.weights)


def test_a_proof_by_one_halfspace_is_as_small_as_it_gets():
    one = reducing(found_search(np.array([[1.0, 0.0]]), np.array([-1.5]), np.ones(1), SOURCES[:1]))
    small = reduce(SQUARE, one, Work())
    assert small.over
    assert (small.weights.tolist(), small.turns.tolist(), small.depth) == ([1.0], [0.0], one.depth)


@pytest.mark.parametrize("d", [2, 4])
def test_none_of_what_is_left_can_be_spared(d):
    rng = np.random.default_rng(d)
    where = centered(bridle.Ball(d), d).boxed()
    for _ in range(4):
        normals = rng.standard_normal((3 * d, d))
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        levels = normals @ (0.3 * rng.standard_normal(d)) - 0.2
        search = advance(where, begin(where, normals, levels), Work())
        assert search.depth > 0.0
        small = reduce(where, reducing(search), Work())
        assert len(small.weights) <= d + 1
        for i in range(len(small.weights)):
            rest = np.arange(len(small.weights)) != i
            if rest.any():
                assert advance(where, begin(where, small.normals[rest], small.levels[rest]), Work()).depth == 0.0
