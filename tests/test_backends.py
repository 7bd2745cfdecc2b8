"""The solvers of other libraries: each agrees with another way to the same answer, and says what it could not do."""

import sys

import numpy as np
import pytest

from bridle.backends import UNBOUNDED, least_distance, linear_program, quadratic_in_bands, redundant_rows
from bridle.core import Unavailable


def test_a_linear_program_and_its_multipliers_prove_each_other():
    rng = np.random.default_rng(0)
    A = np.vstack([np.eye(3), -np.eye(3), rng.standard_normal((4, 3))])
    b, cost = np.append(np.ones(6), np.full(4, 0.5)), rng.standard_normal(3)
    answer = linear_program(cost, A, b)
    assert answer.optimal
    assert (A @ answer.x <= b + 1e-9).all()
    assert (answer.marginals <= 0.0).all()
    assert answer.marginals @ b == pytest.approx(cost @ answer.x, abs=1e-9)  # strong duality


def test_a_linear_program_without_a_solution_has_no_point():
    assert linear_program(np.ones(1), np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0])) is None


def test_least_distance_agrees_with_the_quadratic_program():
    rng = np.random.default_rng(1)
    for _ in range(20):
        A, b = rng.standard_normal((4, 6)), -rng.random(4)
        weights, rest = least_distance(A, b)
        x, multipliers = quadratic_in_bands(np.eye(6), np.zeros(6), [(A, None, b)])
        np.testing.assert_allclose(-rest[:-1] / rest[-1], x, atol=1e-9)
        np.testing.assert_allclose(weights / -rest[-1], multipliers, atol=1e-9)


def test_least_distance_says_that_there_is_no_point():
    _, rest = least_distance(np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0]))
    assert abs(rest[-1]) <= 1e-12


def test_limits_on_both_sides_and_none_at_all():
    x, multipliers = quadratic_in_bands(
        np.eye(2), np.array([-3.0, 3.0]), [(np.array([[1.0, 0.0]]), None, np.ones(1)), (np.array([[0.0, 1.0]]), -np.ones(1), None)]
    )
    np.testing.assert_allclose(x, [1.0, -1.0])
    np.testing.assert_allclose(abs(multipliers), [2.0, 2.0])
    equal = np.full(1, 0.5)
    assert quadratic_in_bands(np.eye(2), np.zeros(2), [(np.ones((1, 2)), equal, equal)])[0] == pytest.approx([0.25, 0.25])
    assert quadratic_in_bands(np.eye(1), np.zeros(1), [(np.array([[1.0], [-1.0]]), None, np.full(2, -1.0))])[0] is None
    assert quadratic_in_bands(np.eye(1), np.ones(1), [(np.eye(1), None, np.full(1, UNBOUNDED))])[0] == pytest.approx([-1.0])


def test_rows_that_others_imply():
    rows, levels = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [1.0, 1.0]]), np.array([1.0, 1.0, 1.0, 1.0, 5.0])
    assert redundant_rows(rows, levels).tolist() == [False, False, False, False, True]


def test_a_missing_package_is_named_with_the_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "daqp", None)
    with pytest.raises(Unavailable, match=r"several constraints in one step need the package daqp: pip install 'bridle-oco\[qp\]'"):
        quadratic_in_bands(np.eye(1), np.zeros(1), [(np.eye(1), None, np.ones(1))])
