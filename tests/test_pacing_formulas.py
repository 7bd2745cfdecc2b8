"""The formulas of plans and prices of a pacer, each at numbers worked out by hand."""

from __future__ import annotations

from math import sqrt

import pytest

from bridle.pacing import Asked, DescentPrice, LearnedPrice, Pace, SpendPlan, _charge, _first, planned, weights_of

EVEN = SpendPlan([1.0])
THIRDS = SpendPlan([1.0, 3.0])
"""Of 5 rounds the first 3 have a third each, the last 2 one and a half each."""


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-12, abs=1e-15)


# --- plans


def test_the_rounds_and_the_weights_of_the_parts_of_a_plan():
    assert [THIRDS.last(part, 5) for part in (-1, 0, 1)] == [0, 3, 5]
    assert [SpendPlan([1.0, 1.0, 1.0]).last(part, 7) for part in (-1, 0, 1, 2)] == [0, 3, 5, 7]
    assert [THIRDS.weight(Pace(5, t)) for t in range(5)] == near([1 / 3, 1 / 3, 1 / 3, 1.5, 1.5])
    assert [THIRDS.ahead(Pace(5, t)) for t in range(7)] == near([4.0, 3 + 2 / 3, 3 + 1 / 3, 3.0, 1.5, 0.0, 0.0])
    even = SpendPlan([2.0])
    assert [even.ahead(Pace(4, t)) for t in (0, 1, 4, 9)] == [2.0, 1.5, 0.0, 0.0]
    assert even.weight(Pace(4, 3)) == 0.5


def test_what_was_planned_for_the_rounds_that_are_over():
    pace = Pace(5, 3, planned=7.0, base=20.0, rest=4.0)
    assert planned(THIRDS, pace) == near(7.0 + 20.0 * (1.0 - 3.0 / 4.0))
    assert planned(THIRDS, pace._replace(rest=0.0)) == 7.0


def test_the_largest_weight_of_a_plan_is_one():
    assert weights_of([1.0, 0.0, 4.0], 3) == [0.25, 0.0, 1.0]
    assert weights_of("even", 3) == [1.0]


def test_a_charge_is_the_price_of_what_was_saved_and_what_money_held_back():
    pace = Pace(10, charge=2.0, base=50.0)
    asked = Asked(9.0, missed=0.5, missed_if_lost=0.25)
    assert (asked.held_back(1.0), asked.held_back(0.0)) == (0.5, 0.75)
    assert _charge(pace, 3.0, asked, 1.0) == 2.0 + 3.0 * (5.0 - 1.0) + 0.5
    assert _charge(pace, 3.0, asked, 0.0) == 2.0 + 3.0 * 5.0 + 0.75
    assert _charge(pace._replace(charge=None), 3.0, asked, 1.0) is None


# --- descent


def test_a_descent_on_the_dual_step_by_step():
    """20 for 4 rounds, values up to 6 and spends up to 3: a price of 6/5 at most, steps of that / (3 sqrt(4))."""
    form = DescentPrice(6.0, 3.0)
    pace = form.spread(EVEN, Pace(4, price=2.0), 20.0)
    assert (pace.highest, pace.step, pace.price) == (near(1.2), near(0.2), near(1.2))
    assert form.spread(EVEN, Pace(4, price=1.0), 20.0).price == 1.0
    pace = pace._replace(price=0.5)
    assert (form.share(EVEN, pace, 99.0), form.quote(EVEN, pace, 99.0, 9.0), form.most(pace, 7.0)) == (near(5.0), 0.5, 7.0)
    after = form.after(EVEN, pace, Asked(), 20.0, 3.0)
    assert (after.price, after.played, after.charge) == (near(0.5 - 0.2 * 2.0), 1, near(0.5 * 2.0))
    assert form.after(EVEN, pace, Asked(), 20.0, 0.0).price == 0.0  # 0.5 - 1 is below
    assert form.after(EVEN, pace, Asked(), 20.0, 9.0).price == near(1.2)  # 0.5 + 0.8 is above
    for played, left in ((4, 20.0), (0, 0.0)):
        over = form.spread(EVEN, Pace(4, played, price=0.7), left)
        assert (over.highest, over.step, over.price, over.base) == (1e13, 0.0, 0.7, left)
    last = form.spread(EVEN, Pace(4, 3, price=0.7), 0.5)  # half a unit for the last round
    assert (last.highest, last.step, last.price) == (near(12.0), near(4.0), 0.7)
    late = Pace(5, 3, base=20.0, rest=4.0)
    assert form.share(THIRDS, late, 1.0) == near(20.0 * 1.5 / 4.0)
    assert form.share(THIRDS, late._replace(played=5), 1.0) == form.share(THIRDS, late._replace(rest=0.0), 1.0) == 0.0


# --- a price that is learned


def test_a_learned_price_begins_where_a_value_is_worth_a_rounds_money():
    form = LearnedPrice(value=3.0)
    pace = form.spread(EVEN, Pace(50), 100.0)
    assert (pace.price, pace.scale, pace.seen, pace.squares) == (1.5, 3.0, 20, 0.0)
    assert (pace.lowest, pace.highest) == (near(1.5e-6), near(1.5e6))
    assert (pace.base, pace.rest) == (100.0, near(1.0))
    given = LearnedPrice(start=2.0).spread(EVEN, Pace(50), 100.0)
    assert (given.price, given.lowest, given.highest, given.squares, given.seen) == (2.0, near(2e-6), near(2e6), 300.0, 0)
    low = LearnedPrice(value=3.0, start=30.0).spread(EVEN, Pace(50), 100.0)  # the range holds both
    assert (low.price, low.lowest, low.highest) == (30.0, near(1.5e-6), near(30e6))
    high = LearnedPrice(value=3.0, start=0.03).spread(EVEN, Pace(50), 100.0)
    assert (high.price, high.lowest, high.highest) == (0.03, near(0.03e-6), near(1.5e6))
    unknown = LearnedPrice().spread(EVEN, Pace(50), 100.0)
    assert (unknown.price, unknown.lowest, unknown.highest, unknown.seen) == (0.0, 0.0, 0.0, 0)


def test_a_new_budget_keeps_a_price_and_trusts_it_no_more_than_one_given():
    form = LearnedPrice(value=3.0)
    for squares, kept in ((400.0, 300.0), (200.0, 200.0)):
        pace = form.spread(EVEN, Pace(50, 10, price=0.7, squares=squares, scale=5.0, edited=True), 100.0)
        assert (pace.price, pace.squares, pace.scale, pace.base, pace.rest) == (0.7, kept, 5.0, 100.0, near(0.8))
    fresh = form.spread(EVEN, Pace(50, 10, scale=5.0, edited=True), 100.0)
    assert fresh.price == 5.0 * 40 / 100.0


def test_the_share_of_a_round_is_of_what_is_left_now():
    form = LearnedPrice()
    assert form.share(EVEN, Pace(50, 10), 100.0) == 2.5
    assert form.share(THIRDS, Pace(5, 2), 20.0) == near(20.0 * (1 / 3) / (10 / 3))
    assert form.share(THIRDS, Pace(5, 4), 20.0) == near(20.0)
    assert form.share(EVEN, Pace(50, 50), 100.0) == form.share(THIRDS, Pace(5, 5), 20.0) == 0.0
    assert form.share(SpendPlan([1.0, 0.0]), Pace(4, 3), 20.0) == 0.0  # nothing is planned any more


def test_a_price_leans_towards_the_plan():
    """50 of 100 are planned for the second half: with a quarter of that left, or four times, it leans by 2 and no further."""
    form, pace = LearnedPrice(), Pace(50, 25, price=3.0, base=100.0, rest=1.0)
    for left, factor in ((50.0, 1.0), (25.0, sqrt(2.0)), (12.5, 2.0), (5.0, 2.0), (200.0, 0.5), (500.0, 0.5), (0.0, 1.0)):
        assert form.quote(EVEN, pace, left, 7.0) == near(3.0 * factor)
    assert form.quote(EVEN, pace._replace(played=50), 10.0, 7.0) == 3.0  # nothing is planned
    assert form.quote(EVEN, pace._replace(price=0.0), 10.0, 7.0) == near(7.0 * 25 / 10.0)  # no price yet


def test_while_values_are_few_not_all_is_spent():
    form = LearnedPrice()
    for pace, left, most in (
        (Pace(50, seen=20), 100.0, 100.0),
        (Pace(50, seen=19), 100.0, 5.0),  # a twentieth
        (Pace(50, 30, seen=19), 100.0, 10.0),  # two rounds' money
        (Pace(50, 49, seen=19), 100.0, 100.0),
        (Pace(50, 50, seen=19), 100.0, 100.0),
    ):
        assert form.most(pace, left) == near(most)
    assert LearnedPrice(start=1.0).most(Pace(50), 100.0) == 100.0


def test_the_first_price_and_where_there_is_none():
    assert _first(Pace(50, 10), 100.0, 3.0) == near(1.2)
    assert _first(Pace(50, 50), 100.0, 3.0) == _first(Pace(50, 10), 0.0, 3.0) == 0.0
    assert _first(Pace(50, 49), 1e-160, 3.0) == 1e150


def test_a_price_moves_with_the_mean_of_the_first_values():
    """Values of 3, 5 and 1 have means of 3, 4 and 3; 100 are left for 50 rounds."""
    form = LearnedPrice()
    one = form._learn(Pace(50), 3.0, 100.0)
    assert (one.price, one.scale, one.seen, one.lowest, one.highest) == (1.5, 3.0, 1, near(1.5e-6), near(1.5e6))
    two = form._learn(one._replace(price=6.0), 5.0, 1.0)
    assert (two.price, two.scale, two.seen, two.lowest, two.highest) == (near(8.0), 4.0, 2, near(2e-6), near(2e6))
    three = form._learn(two, 1.0, 1.0)
    assert (three.price, three.scale, three.seen) == (near(6.0), 3.0, 3)
    assert form._learn(two, 0.0, 1.0) is two  # nothing was offered
    full = two._replace(seen=20)
    assert form._learn(full, 5.0, 1.0) is full
    last = form._learn(two._replace(seen=19), 24.0, 1.0)
    assert (last.seen, last.scale) == (20, near(5.0))
    given = LearnedPrice(start=2.0)
    kept = given._learn(Pace(50, price=2.0, lowest=2e-6, highest=2e6), 300.0, 100.0)  # it only widens the range
    assert (kept.price, kept.scale, kept.seen, kept.lowest, kept.highest) == (2.0, 300.0, 1, 2e-6, near(150e6))


def test_a_payment_moves_the_price_by_a_quarter_of_its_surplus():
    """2 a round are planned: 8 are 3 too many. The price stays within its range, and where nobody could have paid."""
    form, pace = LearnedPrice(), Pace(50, price=4.0, squares=6.0, base=100.0, rest=1.0, lowest=3.9, highest=4.4, seen=20, charge=1.0)
    wide = pace._replace(lowest=1e-3, highest=1e3)
    after = form.after(EVEN, wide, Asked(), 100.0, 8.0)
    assert (after.price, after.squares, after.played) == (near(4.0 * (1.0 + 0.25 * 3.0 / sqrt(16.0))), 15.0, 1)
    assert after.charge == near(1.0 + 4.0 * (2.0 - 8.0))
    assert form.after(EVEN, pace, Asked(), 100.0, 8.0).price == 4.4
    unspent = form.after(EVEN, wide, Asked(), 100.0, 0.0)
    assert (unspent.price, unspent.squares) == (near(4.0 * (1.0 - 0.25 / sqrt(8.0))), 7.0)
    assert form.after(EVEN, pace, Asked(), 100.0, 0.0).price == 3.9
    held = Asked(missed=0.5)
    assert form.after(EVEN, wide, held, 100.0, 1.0)[2] == 4.0  # the money held it back
    assert form.after(EVEN, wide, held, 100.0, 2.0).squares == 6.0  # just its share: no surplus, but it counts
    assert form.after(EVEN, wide, held, 100.0, 8.0).price == after.price
    huge = form.after(EVEN, wide, Asked(), 100.0, 2e20)
    assert huge.squares == near(6.0 + 1e26)
    over = form.after(EVEN, wide._replace(played=50), Asked(), 100.0, 8.0)
    assert (over.price, over.squares) == (4.0, 6.0)
    none = form.after(EVEN, wide._replace(price=0.0, seen=0), Asked(3.0), 100.0, 8.0)
    assert (none.price, none.squares, none.played, none.charge) == (1.5, 6.0, 1, 1.0)
