"""What callers say of the points that a policy tries, in every accepted form, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.core import InputError
from bridle.session.feedback import Limits
from bridle.session.tried_points import checked_values, points_of, refuse_extras, values_at

ONE, TWO = np.array([[0.5, 0.0]]), np.array([[0.5, 0.0], [-0.5, 0.25]])


def told(points, f, g, **limits):
    """The costs and the constraints as they are understood, point by point."""
    tried = checked_values(points, Limits(**limits), f, g).each
    for x, seen in zip(points, tried, strict=True):
        np.testing.assert_array_equal(seen.x, x)
    return [seen.f for seen in tried], [seen.g.tolist() for seen in tried]


def test_of_one_point_a_number_or_a_list_will_do():
    for f in (0.25, [0.25]):
        for g, rows in ((0.75, [[0.75]]), ([0.75, -1.0], [[0.75, -1.0]]), ([[0.75, -1.0]], [[0.75, -1.0]]), (None, [[0.0]])):
            assert told(ONE, f, g) == ([0.25], rows)
    assert told(ONE, 0.25, None, k=3) == ([0.25], [[0.0, 0.0, 0.0]])


def test_of_two_points_there_are_two_numbers_and_two_rows():
    assert told(TWO, [1.0, 2.0], [3.0, 4.0]) == ([1.0, 2.0], [[3.0], [4.0]])
    assert told(TWO, [1.0, 2.0], [[3.0, 5.0], [4.0, 6.0]]) == ([1.0, 2.0], [[3.0, 5.0], [4.0, 6.0]])
    assert told(TWO, 0.0, None) == ([0.0, 0.0], [[0.0], [0.0]])  # no cost, no limit
    assert told(TWO, 0.0, None, k=2) == ([0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("points", "f", "g", "limits", "message"),
    [
        (ONE, [1.0, 2.0], None, {}, r"f must be a number, not an array of shape \(2,\)"),
        (TWO, 1.0, None, {}, r"f must be 2 numbers, one for each point, not an array of shape \(\)"),
        (TWO, [[1.0, 2.0]], None, {}, r"f must be 2 numbers"),
        (ONE, 1.0, [[0.1], [0.2]], {}, "g must hold a number or one number for each constraint"),
        (ONE, 1.0, [], {}, "g must hold a number or one number for each constraint"),
        (TWO, 0.0, 0.3, {}, "g must hold 2 rows, one for each point"),
        (TWO, 0.0, [0.1, 0.2, 0.3], {}, "g must hold 2 rows, one for each point"),
        (TWO, 0.0, [[[0.1], [0.2]]], {}, "g must hold 2 rows, one for each point"),
        (ONE, 1.0, [0.1, 0.2], {"k": 1}, "g must hold 1 constraint value a point, not 2"),
        (ONE, 1.0, 0.1, {"k": 2, "names": ("a", "b")}, r"g must hold 2 constraint values \(a, b\) a point, not 1"),
        (ONE, 1.0, np.zeros(4), {"most": 3}, "g must hold at most 3 constraint values a point, not 4"),
        (ONE, 1.0, np.zeros(1001), {}, "g must hold at most 1000 constraint values a point, not 1001"),
        (ONE, -8.1, None, {"largest": 8.0}, "f must be at most 8 in size, not 8.1"),
        (TWO, [0.0, 1.0], [0.0, -9.0], {"largest": 8.0}, "g must be at most 8 in size, not 9"),
    ],
)
def test_what_does_not_fit_the_points_is_refused(points, f, g, limits, message):
    with pytest.raises(InputError, match=message):
        told(points, f, g, **limits)


def test_what_just_fits_is_taken():
    assert told(ONE, -8.0, np.full(3, 8.0), largest=8.0, most=3) == ([-8.0], [[8.0, 8.0, 8.0]])
    assert len(told(ONE, 0.0, np.zeros(1000))[1][0]) == 1000


def test_functions_in_any_form_are_asked_at_every_point():
    """One number a function or one for each of its constraints; what a function does to its argument stays with it."""

    def spoil(x):
        x[:] = 9.0
        return [1.0, 2.0]

    forms = (lambda x: x[0], bridle.Affine([0.0, 4.0], 1.0), (lambda x: 2.0 * x[0], lambda x: None), spoil)
    points = TWO.copy()
    f, g = values_at(points, lambda x: float(x.sum()), forms)
    assert f.tolist() == [0.5, -0.25]
    assert g.tolist() == [[0.5, 1.0, 1.0, 1.0, 2.0], [-0.5, 2.0, -1.0, 1.0, 2.0]]
    np.testing.assert_array_equal(points, TWO)
    for cost in (bridle.Affine([1.0, 1.0]), (lambda x: float(x.sum()), None)):
        f, g = values_at(TWO, cost, ())
        assert (f.tolist(), g) == ([0.5, -0.25], None)


@pytest.mark.parametrize(
    ("cost", "limits", "message"),
    [
        (lambda x: x, (), "the value of cost must be a number, not an array of shape"),
        (3.0, (), "cost must be a function, not 3.0"),
        ((), (), r"cost must be a function, not \(\)"),
        (lambda x: 0.0, (lambda x: [x],), r"the value of constraints\[0\] must be a number"),
        (lambda x: 0.0, (lambda x: 0.0, "g"), r"constraints\[1\] must be a function, not 'g'"),
    ],
)
def test_what_is_no_function_of_a_point_is_refused(cost, limits, message):
    with pytest.raises(InputError, match=message):
        values_at(TWO, cost, limits)


def test_points_are_those_that_the_policy_tries_or_none():
    record = bridle.policy("bandit2", bridle.Ball(2), horizon=50, lipschitz=1.0).record
    state = record.init(np.zeros(2))
    np.testing.assert_array_equal(points_of(record, state), record.points(state))
    plain = bridle.policy("anytime", bridle.Ball(2)).record
    assert points_of(plain, plain.init(np.zeros(2))) is None


def test_extras_that_were_not_given_are_none():
    refuse_extras("bandit2", df=None)
    for value in (0.0, False, [1.0]):
        with pytest.raises(InputError, match="dg cannot be given: policy bandit2 sees values alone"):
            refuse_extras("bandit2", df=None, dg=value)
