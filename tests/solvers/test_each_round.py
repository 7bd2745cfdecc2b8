"""The best action of each round: formulas against programs, and what cannot be had."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle import records
from bridle.core import Round
from bridle.functions import AffineFunction, AffineRows, HingeLoss, RoundQuadratic
from bridle.solvers import each_round
from bridle.solvers.block_stream import NoComparator
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
