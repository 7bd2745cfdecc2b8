"""Bounds on regret where domains are very small or large, products, or have very many dimensions; and how many programs they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bridle
from bridle.session.certificates import certificate, feasibility
from bridle.session.certificates.batches import Frame, nothing, read
from bridle.session.certificates.feasibility import OuterPolyhedron, centered, lower
from bridle.session.certificates.ledger import Ledger


@pytest.fixture
def programs(monkeypatch):
    """The sizes of the programs that were solved."""
    solved: list[tuple[int, ...]] = []
    solve = feasibility.linear_program
    monkeypatch.setattr(feasibility, "linear_program", lambda cost, A, *more: solved.append(A.shape) or solve(cost, A, *more))
    return solved


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_nearest_feasible_action_is_found_at_every_size(size):
    """The corner (0.8, 0.6) of the disk and v_2 <= 0.6, and the middle of the disk where v_1 + v_2 <= 0 holds it."""
    where = centered(bridle.Ball(2, radius=size), 2)
    z, _ = certificate._nearest_feasible(where, size * np.array([2.0, 2.0]), np.array([[0.0, 1.0]]), size * np.array([0.6]))
    np.testing.assert_allclose(z / size, [0.8, 0.6], atol=1e-5)
    half = np.full((1, 2), 0.5**0.5)
    z, weights = certificate._nearest_feasible(where, size * np.array([3.0, 3.0]), half, np.zeros(1))
    np.testing.assert_allclose(z / size, [0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(weights / size, [3.0 * 2.0**0.5], atol=1e-8)


def test_two_programs_are_enough_where_the_polyhedron_is_all_but_the_domain(programs):
    """In the square: the box around it is a billionth larger, which the first cuts off; the second's answer is an action."""
    value, _ = lower(centered(bridle.Box(-1.0, 1.0, dim=2), 2).boxed(), np.array([1.0, 2.0]), np.array([[0.0, -1.0]]), np.array([-0.25]))
    assert value == pytest.approx(-0.5, abs=1e-7)
    assert len(programs) == 2


def test_a_product_is_cut_to_size_where_one_part_is_exact(programs):
    """[-1, 1] x the unit disk: <(1, 1, 1), v> where v_2 >= 0.6 is least at (-1, 0.6, -0.8)."""
    where = centered(bridle.Product(bridle.Box(-1.0, 1.0, dim=1), bridle.Ball(2)), 3).boxed()
    value, weights = lower(where, np.ones(3), np.array([[0.0, -1.0, 0.0]]), np.array([-0.6]))
    assert value == pytest.approx(-1.2, abs=1e-5)
    np.testing.assert_allclose(weights, [1.75], atol=2e-2)
    assert 1 < len(programs) <= 12


def test_programs_that_do_not_gain_are_given_up_after_two(programs, monkeypatch):
    """Whatever comes of them is no better than pressing; one that gains in between starts the count again."""
    where = centered(bridle.Ball(2), 2).boxed()
    pressed = lower(where, np.array([1.0, 1.0]), np.array([[-1.0, 0.0]]), np.array([-0.6]), programs=0)[0]
    answers = iter([0.0, 0.0, 0.0])
    monkeypatch.setattr(OuterPolyhedron, "solve", lambda *given: (np.array([3.0, 3.0]), np.array([next(answers)])))
    assert lower(where, np.array([1.0, 1.0]), np.array([[-1.0, 0.0]]), np.array([-0.6]))[0] == pressed
    assert next(answers) == 0.0  # two were asked for
    answers = iter([0.0, 1.75 / 2.0**0.5, 0.0, 0.0, 0.0])  # in units of the cost's length
    value, weights = lower(where, np.array([1.0, 1.0]), np.array([[-1.0, 0.0]]), np.array([-0.6]))
    assert value == pytest.approx(-0.2, abs=1e-12) != pressed
    np.testing.assert_allclose(weights, [1.75])
    assert list(answers) == [0.0]


@pytest.mark.parametrize("d", [500, 501])
def test_no_program_is_solved_in_more_than_five_hundred_dimensions(d, programs):
    where = centered(bridle.Ball(d), d)
    lower(where, np.eye(d)[0], -np.eye(2, d), np.array([-0.6, 0.0]), programs=1)
    assert len(programs) == (1 if d == 500 else 0)


def test_a_flat_constraint_counts_above_the_tolerance_at_least():
    place = centered(bridle.Ball(2, radius=2.0), 2, 0.01)._replace(domain=None)
    frame = Frame(place, np.array([1.0]), np.full(2, np.nan), 0.25)
    for g, alone in ((0.0099, 0.0), (0.0101, 1.0)):
        row = np.array([[0.0, 0.0, 0.0, 0.0, g, 0.0, 0.0]])
        assert read(frame, nothing(2, 1), row).findings.alone.tolist() == [alone]


def test_a_batch_is_for_one_number_of_constraints():
    ledger: Any = Ledger(bridle.Ball(2), 2)
    assert not ledger.fits(1)
    ledger.take(bridle.Feedback(np.zeros(2), 0.0, np.zeros(2), np.zeros(1), np.ones((1, 2))), 1)
    rows = ledger.rows
    assert (ledger.fits(1), ledger.fits(2)) == (True, False)
    ledger.take(bridle.Feedback(np.zeros(2), 0.0, np.zeros(2), np.zeros(1), np.ones((1, 2))), 2)
    assert ledger.rows is rows  # and goes on where it was
