"""That effort does not depend on units, that one new halfspace among old ones counts, and that a proof outlives a search."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bridle
from bridle.core import Feedback
from bridle.session.certificates import feasibility
from bridle.session.certificates.certificate import Conflict, Tangent, _along, _nearest_feasible
from bridle.session.certificates.feasibility import OuterPolyhedron, centered, lower
from bridle.session.certificates.ledger import Ledger

MIDDLE = np.array([3.0, 4.0])


def programs_for(size: float, radius: float, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many programs bound a cost of this size on a ball of this radius, cut by four halfspaces."""
    rng, solved = np.random.default_rng(3), []
    solve = feasibility.linear_program
    with monkeypatch.context() as patch:
        patch.setattr(feasibility, "linear_program", lambda *given: solved.append(1) or solve(*given))
        for _ in range(4):
            inside, normals = 0.3 * rng.standard_normal(4), rng.standard_normal((4, 4))
            normals /= np.linalg.norm(normals, axis=1, keepdims=True)
            where = centered(bridle.Ball(4, radius=radius), 4).boxed()
            lower(where, size * rng.standard_normal(4), normals, radius * (normals @ inside + 0.05))
    return len(solved)


def test_as_many_programs_are_solved_whatever_the_units(monkeypatch):
    counts = {programs_for(size, radius, monkeypatch) for size, radius in ((1.0, 1.0), (1e8, 1.0), (1e-8, 1.0), (1.0, 1e8), (1.0, 1e-8))}
    assert len(counts) == 1
    assert 8 < counts.pop() < 40


def near_miss(ledger: Ledger, t: int, *directions: list[float]) -> None:
    """Rounds at the middle that hold by half a hundredth of the diameter, in one batch that is looked at."""
    for i, direction in enumerate(directions):
        ledger.take(Feedback(MIDDLE, 0.0, np.zeros(2), np.array([-0.02]), np.array([direction])), t + i)
    ledger.sure = False
    ledger.close()


def test_one_new_near_miss_among_old_ones_is_news():
    ledger = Ledger(bridle.Ball(radius=2.0, center=MIDDLE), 2)
    near_miss(ledger, 1, [1.0, 0.0])
    near_miss(ledger, 2)
    ledger.take(Feedback(MIDDLE, 0.0, np.zeros(2), np.array([-1.0]), np.array([[0.0, 1.0]])), 3)
    ledger.close()
    near_miss(ledger, 4, [1.0, 0.0])
    assert (ledger.patience, ledger.idle) == (2, 2)
    for t in (5, 6):
        ledger.take(Feedback(MIDDLE, 0.0, np.zeros(2), np.array([-1.0]), np.array([[0.0, 1.0]])), t)
    ledger.close()
    near_miss(ledger, 7, [1.0, 0.0], [0.0, 1.0])
    assert (ledger.patience, ledger.idle) == (1, 1)


def test_a_search_that_ends_after_a_proof_leaves_no_witness():
    """All violated rounds together were the proof, while those that are kept still have an action in common."""
    ledger = Ledger(bridle.Ball(radius=2.0, center=MIDDLE), 2)
    ledger.take(Feedback(MIDDLE, 0.0, np.zeros(2), np.array([0.5]), np.array([[1.0, 0.0]])), 1)
    ledger.close()
    ledger._begin_search()
    proof = Conflict((), (), (), 0.1, 1)
    ledger.conflict = proof
    assert ledger.go_on(2) is proof
    assert (ledger.searching, ledger.witness) == (None, None)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_answer_that_is_not_finite_is_none(bad, monkeypatch):
    answer: Any = SimpleNamespace(x=np.array([0.0, bad]), marginals=np.zeros(1))
    monkeypatch.setattr(feasibility, "linear_program", lambda *given: answer)
    outer = OuterPolyhedron(centered(bridle.Ball(2), 2))
    assert outer.solve(np.ones(2), np.ones((1, 2)), np.zeros(1)) is None


class AskedSquare:
    """The square [-1, 1]^2, which counts its linear minima and its projections."""

    def __init__(self) -> None:
        self.inner, self.dim, self.minima, self.projections = bridle.Box(-1.0, 1.0, dim=2), 2, 0, 0
        self.center, self.diameter = self.inner.center, self.inner.diameter

    def linear_min(self, v: np.ndarray) -> Any:
        self.minima += 1
        return self.inner.linear_min(v)

    def project(self, x: np.ndarray) -> Any:
        self.projections += 1
        return self.inner.project(x)


@pytest.mark.parametrize(("size", "best", "doublings"), [(2.0, 2.0, 10), (200.0, 200.0, 10), (2.0, 0.001, 0)])
def test_the_weight_along_a_halfspace_is_found_in_so_many_values(size, best, doublings):
    """l b + |size n_1 - l n_1| falls until l is `best`: doubled from a thousandth, then 16 times 0.618 as far between."""
    square = AskedSquare()
    found = _along(centered(square, 2), Tangent(0.0, np.array([size, 0.0])), np.array([-size / best, 0.0]), 0.5 * size / best)
    assert square.minima == 2 + doublings + 2 * 16
    high = 2.0 * 1e-3 * size * 2.0**doublings
    low = 0.25 * high if doublings else 0.0
    assert found == pytest.approx(best, abs=0.5 * 0.618**16 * (high - low))


def test_a_weight_that_helps_ever_more_is_sought_up_to_a_million():
    """The halfspace u_1 <= -3 misses the square: every weight more gains 2."""
    square = AskedSquare()
    found = _along(centered(square, 2), Tangent(0.0, np.array([0.0, 1.0])), np.array([1.0, 0.0]), -3.0)
    assert square.minima == 1 + 30 + 2 * 16  # 2^30 thousandths are more than a million
    assert found == pytest.approx(2e-3 * 2.0**30, rel=1e-3)
    alone = AskedSquare()  # without a cost the unit is 1
    assert _along(centered(alone, 2), Tangent(0.0, np.zeros(2)), np.array([1.0, 0.0]), -3.0) == found
    assert alone.minima == square.minima


@pytest.mark.parametrize(
    ("normals", "levels", "projections", "weights"),
    [
        ([[1.0, 0.0]], [-2.0], 41, None),  # beside the square: 40 sweeps, and the first point
        ([[1.0, 0.0], [-1.0, 0.0]], [-2.0, -2.0], 1, [0.0, 0.0]),  # nothing is in both
        ([[1.0, 0.0]], [-0.5], 2, [1.0]),  # from (1/2, 0) along -u_1
        ([[1.0, 0.0]], [0.75], 2, [0.0]),
    ],
)
def test_the_nearest_action_takes_as_many_projections_as_it_must(normals, levels, projections, weights):
    square = AskedSquare()
    z, found = _nearest_feasible(centered(square, 2), np.array([0.5, 0.0]), np.array(normals), np.array(levels))
    assert square.projections == projections
    if weights is None:
        np.testing.assert_allclose(z, [-1.0, 0.0], atol=1e-12)  # the action nearest to the halfspace
        assert found[0] > 0.0
    else:
        np.testing.assert_allclose(z, [min(0.5, levels[0]) if len(levels) == 1 else 0.5, 0.0], atol=1e-12)
        np.testing.assert_allclose(found, weights, atol=1e-12)


SIZE, GAIN = 3.0, 1e-7 * 3.0 * 8.0**0.5
"""Of the cost 3 u_1 on the square, whose diameter is sqrt(8): what a program must gain at least to count."""


class Scripted:
    """Programs for u_1 >= 1/4 that answer with weights from a list; the value of a weight w is 3.75 w - 3."""

    def __init__(self, weights: list[float], away: list[float]) -> None:
        self.weights, self.away, self.point = iter(weights), np.array(away), np.array([0.3, 0.7])
        self.solved: list[tuple[Any, ...]] = []

    def __call__(self, where: Any) -> Scripted:
        return self

    def solve(self, cost: np.ndarray, normals: np.ndarray, levels: np.ndarray) -> Any:
        self.solved.append((cost.tolist(), normals.tolist(), levels.tolist()))
        weight = next(self.weights, None)
        return None if weight is None else (self.point, np.array([weight]))

    def touch(self, w: np.ndarray) -> None:
        """A tangent more: any is valid."""

    def separate(self, y: np.ndarray) -> np.ndarray:
        assert y is self.point
        return self.point - self.away


FAR = [0.5, 0.0]


@pytest.mark.parametrize(
    ("weights", "away", "programs", "best"),
    [
        ([0.5, 0.5, 0.5, 0.9], FAR, 3, 0.5),  # two that gain nothing
        ([0.5, 0.5, 0.6, 0.6, 0.6, 0.9], FAR, 5, 0.6),  # one after the other
        ([0.5 + 0.9 * i * GAIN / 3.75 for i in range(9)], FAR, 3, 0.5 + 1.8 * GAIN / 3.75),  # too little each, and kept
        ([0.5 + 1.1 * i * GAIN / 3.75 for i in range(20)], FAR, 12, 0.5 + 11 * 1.1 * GAIN / 3.75),
        ([0.7, 0.5, 0.6], FAR, 3, 0.7),
        ([0.5], FAR, 2, 0.5),  # the second has no answer
        ([0.5, 0.6], [0.9e-9, 0.0], 1, 0.5),  # the answer is an action
        ([0.5, 0.6], [0.0, -1.1e-9], 3, 0.6),
    ],
)
def test_programs_are_solved_while_they_gain_something(weights, away, programs, best, monkeypatch):
    script = Scripted(weights, away)
    monkeypatch.setattr(feasibility, "OuterPolyhedron", script)
    monkeypatch.setattr(feasibility, "_pressed", lambda unit, normals, levels: np.zeros(1))
    where = centered(bridle.Box(-1.0, 1.0, dim=2), 2)
    value, found = lower(where, np.array([SIZE, 0.0]), np.array([[-1.0, 0.0]]), np.array([-0.25]))
    assert (value, found.tolist()) == (pytest.approx(3.75 * best - 3.0, abs=1e-12), [pytest.approx(SIZE * best, abs=1e-12)])
    assert script.solved == [([1.0, 0.0], [[-1.0, 0.0]], [-0.25 / 8.0**0.5])] * programs


@pytest.mark.parametrize(("pressed", "best"), [(0.4, 0.4), (0.0, 0.0), (-1.0, 0.0)])
def test_the_first_weights_are_those_that_a_point_presses_with(pressed, best, monkeypatch):
    """A value below that of no weights at all, -3, is not taken."""
    monkeypatch.setattr(feasibility, "_pressed", lambda unit, normals, levels: np.array([pressed]))
    where = centered(bridle.Box(-1.0, 1.0, dim=2), 2)
    value, found = lower(where, np.array([SIZE, 0.0]), np.array([[-1.0, 0.0]]), np.array([-0.25]), programs=0)
    assert (value, found.tolist()) == (pytest.approx(3.75 * best - 3.0), [pytest.approx(SIZE * best)])


def test_a_domain_of_one_point_needs_no_programs(monkeypatch):
    monkeypatch.setattr(feasibility, "linear_program", lambda *given: pytest.fail("a program"))
    monkeypatch.setattr(feasibility, "least_distance", lambda *given: pytest.fail("a problem of least distance"))
    where = centered(bridle.Box(2.0, 2.0, dim=2), 2)
    value, weights = lower(where, np.array([1.0, 0.0]), np.array([[1.0, 0.0]]), np.array([-1.0]))
    assert (value, weights.tolist()) == (0.0, [0.0])
