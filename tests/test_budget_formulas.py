"""The arithmetic of budgets, at numbers worked out by hand: what counts as which amount, how prices move, and what the bound says."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridle.budgets import MOST_UNITS, Gate, Pacer, pacing_bound
from bridle.core import InputError

# --- what counts as how many units


def test_an_amount_a_hair_above_whole_units_is_that_many():
    """By a billionth of a unit, which is how far off a sum of decimals may be; by more it is one more."""
    gate = Gate(1000.0)
    assert gate.rounded((100.0 + 5e-10) * 0.01) == 1.0
    assert gate.rounded((100.0 + 5e-9) * 0.01) == 1.01
    assert gate.rounded(99.5 * 0.01) == 1.0


def test_a_budget_a_hair_below_whole_units_is_that_many():
    assert Gate((100.0 - 5e-10) * 0.01).budget == 1.0
    assert Gate((100.0 - 5e-9) * 0.01).budget == 0.99
    assert Gate(100.5 * 0.01).budget == 1.0


def test_large_amounts_may_be_off_by_their_own_rounding():
    """At 10^12 units the next float is more than a billionth of a unit away."""
    gate = Gate(2e10)
    assert gate.rounded(nextafter(1e10, inf)) == 1e10
    assert gate.rounded(1e10 * (1.0 + 1e-13)) > 1e10
    assert Gate(nextafter(1e10, 0.0)).budget == 1e10
    assert Gate(1e10 * (1.0 - 1e-13)).budget < 1e10
    with_units = Gate(1e10)
    assert with_units.allows(nextafter(1e10, inf))
    assert with_units.fits(np.array([1e10, nextafter(1e10, inf), 1e10 * (1.0 + 1e-13)])).tolist() == [True, True, False]


@given(st.sampled_from([0.01, 0.05, 0.25, 3.0, 0.007]), st.integers(0, 10**6), st.integers(-3, 3), st.sampled_from([0.0, 5e-10, 5e-9, 0.3]))
def test_what_fits_is_what_is_allowed(unit, units, off, hair):
    gate = Gate(float(Fraction(repr(unit)) * units), unit)
    amounts = [max(float(Fraction(repr(unit)) * (units + off)) + sign * hair * unit, 0.0) for sign in (1.0, -1.0)]
    assert gate.fits(np.array(amounts)).tolist() == [gate.allows(amount) for amount in amounts]
    whole = float(Fraction(repr(unit)) * max(units + off, 0))
    assert gate.allows(whole) == (off <= 0 or units + off <= units)


def test_amounts_that_no_budget_can_hold_are_not_allowed():
    gate = Gate(1.0)
    assert not gate.allows(1e308)  # more units than floats can say
    assert gate.rounded(1.5 * MOST_UNITS * 0.01) == 1.5 * MOST_UNITS * 0.01
    with pytest.raises(InputError, match="amount must be at most 1"):
        gate.pay(1e308)


def test_the_smallest_unit():
    assert Gate(0.0, unit=1e-300).unit == 1e-300
    assert Gate(1.0, unit=0.25).unit == 0.25
    with pytest.raises(InputError, match="unit must be at least 1e-300"):
        Gate(0.0, unit=5e-301)


# --- prices


def spent_at_once(payments: int) -> Pacer:
    """After so many of the largest payments: rho = 1/2, highest price 1/rho = 2, step 2 / sqrt(100), so that each adds 0.2 (1 - 1/2)."""
    pacer = Pacer(budget=50.0, rounds=100, value=1.0, spend=1.0)
    for _ in range(payments):
        pacer.pay(1.0)
    return pacer


def test_the_price_grows_to_value_over_rate_and_no_further():
    assert spent_at_once(10).price == pytest.approx(1.0)
    assert spent_at_once(19).price == pytest.approx(1.9)
    assert spent_at_once(30).price == 2.0


def test_a_larger_budget_lowers_a_price_that_is_now_too_high():
    pacer = spent_at_once(30)
    pacer.set_budget(730.0)  # 700 left for 70 rounds: 10 a round, of which one can spend 1
    assert pacer.price == pytest.approx(0.1)


def test_after_a_change_the_step_is_that_of_what_is_left():
    """value 3, spend 2; 36 of 100 rounds are over, then 32 are left for 64: rho = 1/2, highest price 6, step 6 / (2 sqrt(64))."""
    pacer = Pacer(budget=100.0, rounds=100, value=3.0, spend=2.0)
    for _ in range(36):
        pacer.pay(1.0)  # as planned: the price stays 0
    assert pacer.price == 0.0
    pacer.set_budget(68.0)
    assert pacer.share == pytest.approx(0.5)
    pacer.pay(2.0)
    assert pacer.price == pytest.approx(6.0 / 16.0 * 1.5)
    pacer.pay(0.0)
    assert pacer.price == pytest.approx(6.0 / 16.0 * 1.0)


def test_a_plan_without_anything_for_the_rest_has_no_share():
    pacer = Pacer(budget=10.0, rounds=10, value=1.0, spend=1.0, plan=[1.0, 0.0])
    for _ in range(5):
        pacer.pay(1.0)
    pacer.set_budget(20.0)
    assert pacer.share == 0.0
    pacer.pay(1.0)
    assert pacer.left == 14.0


def test_weights_may_be_as_large_as_floats_are():
    pacer = Pacer(budget=12.0, rounds=6, value=1.0, spend=4.0, plan=[1e308, 1e308, 1e308])
    assert pacer.share == pytest.approx(2.0)


def test_a_plan_needs_a_round_for_each_of_its_parts_after_a_change_too():
    pacer = Pacer(budget=10.0, rounds=10, value=1.0, spend=1.0, plan=[1.0, 2.0, 1.0])
    with pytest.raises(InputError, match="rounds"):
        pacer.set_budget(10.0, rounds=2)
    pacer.set_budget(10.0, rounds=3)
    assert pacer.rounds == 3


# --- offers and amounts


def test_one_offer_beyond_what_was_told_is_enough_to_refuse():
    pacer = Pacer(budget=10.0, rounds=10, value=2.0, spend=1.0)
    for values, spends in (([1.0, 1.0], [0.5, -0.1]), ([1.0, 1.0], [0.5, 1.1]), ([1.0, 2.1], [0.5, 0.5])):
        with pytest.raises(InputError, match="as this pacer was told"):
            pacer.choose(values, spends)


def test_an_offer_worth_nothing_is_not_taken():
    pacer = Pacer(budget=10.0, rounds=10, value=2.0, spend=1.0)
    assert pacer.choose([0.0, 0.0], [0.0, 0.0]) is None
    assert pacer.choose([0.0, 1e-9], [0.0, 0.0]) == 1


def test_whole_numbers_are_amounts_up_to_the_largest():
    pacer = Pacer(budget=10.0, rounds=10, value=2.0, spend=1.0)
    assert pacer.bid(2) == 1.0
    pacer.pay(1)
    assert pacer.spent == 1.0
    for wrong in (2, 1.5):
        with pytest.raises(InputError, match="amount must be at most 1"):
            pacer.pay(wrong)


# --- the bound


@pytest.mark.parametrize(
    ("budget", "rounds", "value", "spend", "expected"),
    [
        (50.0, 100, 3.0, 2.0, 3.0 * 2.0 / 0.5 * 11.0),  # (fb bb / rho) (1 + sqrt(T))
        (50.0, 100, 7.0, 0.75, 7.0 * 0.75 / 0.5 * 11.0),
        (5.0, 100, 3.0, 2.0, 300.0),  # no more than every round's value
        (50.0, 100, 3.0, 0.5, 0.0),  # the budget cannot bind
        (50.0, 100, 3.0, 0.25, 0.0),
        (50.0, 40, 3.0, 2.0, 3.0 * 2.0 / 1.25 * (1.0 + sqrt(40.0))),  # fewer rounds than money, which binds all the same
    ],
)
def test_the_bound_at_fixed_numbers(budget, rounds, value, spend, expected):
    assert pacing_bound(budget, rounds, value, spend) == pytest.approx(expected, rel=1e-12)
    assert Pacer(budget, rounds, value, spend).bound == pytest.approx(expected, rel=1e-12)


def test_a_budget_of_nothing_has_no_bound():
    assert Pacer(budget=0.0, rounds=10, value=1.0, spend=1.0).bound is None
