"""Budgets: the gate is never overspent by a unit, whatever comes; the pacer follows its update and stays within its bound."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from math import fsum, inf, nan, nextafter, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bridle
from bridle import Gate, InputError, Pacer, pacing_bound, storage
from helpers.fact_files import facts_in, forge

# --- the gate ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_million_adversarial_rounds_never_overspend_by_one_cent():
    """An adversary that sees what is left and edits the budget: what was let through, added up exactly, stays below budget + 0.01."""
    rng = np.random.default_rng(0)
    kinds, sizes = rng.integers(0, 12, 1_000_000).tolist(), (10.0 ** rng.uniform(-12.0, 4.0, 1_000_000)).tolist()
    gate, chunk, sums, most, refused, passed = Gate(100.0), [], [], 100.0, 0, 0
    for t, (kind, size) in enumerate(zip(kinds, sizes, strict=True)):
        if t % 1000 == 999:  # topped up, cut below what is spent, or set to what is spent and a little
            sums.append(fsum(chunk))
            passed += len(chunk)
            assert sums[-1] < 1e-6 or fsum(sums) < gate.budget + 0.01
            chunk = []
            gate.set_budget((gate.spent + size, 0.5 * gate.spent, gate.spent + 0.01, gate.spent + 3.0 * size)[(t // 1000) % 4])
            most = max(most, gate.budget)
        left = gate.left
        if kind < 4:
            amount = size
        elif kind < 6:
            amount = left * (0.5 if kind == 4 else 1.0)
        else:
            amount = (nextafter(left, inf), left + 0.004, 5e-324, 0.01 * (1.0 + 1e-12), 1e308, nan)[kind - 6]
        try:
            gate.pay(amount)
        except InputError:
            refused += 1
            if gate.left != left:
                raise AssertionError(f"a refused payment of {amount} changed what is left") from None
        else:
            if amount > left + 1e-9:
                raise AssertionError(f"{amount} was let through with {left} left")
            chunk.append(amount)
    assert fsum([*sums, *chunk]) < most + 0.01
    assert refused > 100_000
    assert passed > 100_000
    assert gate.spent > 0.9 * most  # it is not merely shut


AMOUNTS = st.one_of(
    st.decimals(0, 1000, places=2).map(float), st.floats(0.0, 1000.0), st.sampled_from([5e-324, 1e-300, 0.07, 0.1 + 0.2, 1.0 - 1e-16])
)


@settings(max_examples=200)
@given(st.lists(AMOUNTS, max_size=60), st.floats(0.0, 3000.0), st.sampled_from([0.01, 1.0, 0.05, 1e-6, 0.001, 1 / 3]))
def test_payments_are_counted_in_whole_units_and_rounded_up(amounts, budget, unit):
    gate, exact, unit_as_written = Gate(budget, unit), Fraction(0), Fraction(repr(unit))
    assert Fraction(gate.budget) <= Fraction(budget) + Fraction(1, 10**6)
    for amount in amounts:
        before, allowed = gate.spent, gate.allows(amount)
        if not allowed:
            with pytest.raises(InputError, match="left of the budget"):
                gate.pay(amount)
            assert gate.spent == before
            continue
        counted = gate.pay(amount)
        units = Fraction(counted) / unit_as_written
        assert abs(units - round(units)) < Fraction(1, 10**6)
        assert amount - 1.1e-9 * unit - 1e-14 * amount <= counted < (amount + unit) * (1.0 + 1e-12)
        exact += Fraction(amount)
        assert gate.spent <= gate.budget
        assert gate.left == pytest.approx(gate.budget - gate.spent, abs=1e-9)
        assert exact < Fraction(gate.budget) + unit_as_written
    assert gate.allows(0.0)


def test_cents_that_floats_cannot_write_are_whole():
    gate = Gate(1.00)
    for _ in range(100):
        gate.pay(0.01)
    assert (gate.left, gate.spent) == (0.0, 1.0)
    gate = Gate(0.57)
    assert gate.pay(0.1 + 0.2) == 0.3
    assert gate.left == 0.27
    assert gate.pay(gate.left) == 0.27
    gate = Gate(10, unit=1)
    assert gate.pay(0.2) == 1.0
    assert Gate(0.019).budget == 0.01  # rounded down


def test_a_budget_below_what_is_spent_shuts_the_gate_and_a_larger_one_opens_it():
    gate = Gate(5.0)
    gate.pay(3.0)
    gate.set_budget(1.0)
    assert (gate.left, gate.spent, gate.budget) == (0.0, 3.0, 1.0)
    assert gate.allows(0.0)
    assert gate.fits(np.array([0.0, 0.01])).tolist() == [True, False]
    with pytest.raises(InputError, match="at most 0, which is what is left"):
        gate.pay(0.01)
    gate.set_budget(3.5)
    assert gate.fits(np.array([0.5, 0.501])).tolist() == [True, False]
    assert gate.pay(0.5) == 0.5


@pytest.mark.parametrize("wrong", [nan, inf, -inf, -0.01, -5e-324, "1", None, True, [1.0, 2.0], 1j])
def test_what_is_no_amount_is_refused_and_changes_nothing(wrong):
    gate, pacer = Gate(5.0), Pacer(5.0, 10, 1.0, 1.0)
    for call in (gate.pay, gate.allows, gate.set_budget, pacer.pay, pacer.set_budget, pacer.bid):
        with pytest.raises(InputError):
            call(wrong)
    assert gate.facts() == Gate(5.0).facts()
    assert (pacer.played, pacer.left, pacer.price, pacer.bound) == (0, 5.0, 0.0, Pacer(5.0, 10, 1.0, 1.0).bound)
    with pytest.raises(InputError):
        Gate(wrong)
    with pytest.raises(InputError, match="unit must"):
        Gate(1.0, unit=0.0 if wrong is None else wrong)


def test_more_than_floats_can_count_is_refused():
    with pytest.raises(InputError, match="budget must be at most"):
        Gate(1e12)
    assert Gate(1e12, unit=1.0).budget == 1e12
    assert not Gate(1e13, unit=1.0).allows(1e300)


# --- the pacer -----------------------------------------------------------------------------------------------------------------------


def test_the_update_is_the_one_written_down():
    rng = np.random.default_rng(1)
    B, T, fb, bb = 30.0, 200, 2.0, 0.8
    pacer, mu, rho = Pacer(B, T, fb, bb), 0.0, B / T
    eps = fb / (rho * bb * sqrt(T))
    for _ in range(T):
        v, price = rng.uniform(0.0, fb), round(float(rng.uniform(0.0, bb)), 2)
        assert pacer.price == pytest.approx(mu, rel=1e-12, abs=1e-12)
        bid = pacer.bid(v)
        assert bid == pytest.approx(min(v / (1.0 + mu), bb, pacer.left))
        b = price if price <= bid else 0.0
        pacer.pay(b)
        mu = min(max(mu - eps * (rho - b), 0.0), fb / rho)
    assert pacer.played == T
    assert pacer.planned == pytest.approx(B)


def test_the_price_follows_what_is_counted():
    pacer = Pacer(20, 10, 4.0, 4.0, unit=1)
    pacer.pay(3.2)  # counts as 4, and 2 were planned
    assert (pacer.spent, pacer.price) == (4.0, pytest.approx(4.0 / (2.0 * 4.0 * sqrt(10)) * 2.0))


def test_bids_for_value_alone():
    pacer = Pacer(10.0, 100, 2.0, 1.0, goal="value")
    assert pacer.bid(0.5) == 1.0  # nothing is scarce yet: all that a round may cost
    assert pacer.bid(0.0) == 0.0
    pacer.pay(1.0)
    assert pacer.bid(0.5) == pytest.approx(min(0.5 / pacer.price, 1.0))


def auctions(rng, T):
    return rng.uniform(0.0, 1.0, T), np.ceil(rng.uniform(0.0, 1.0, T) * 100.0) / 100.0


def dual(gains, spends, B):
    """An upper bound on the best choice of offers within the budget: min over mu of mu B + sum_t max_x (f - mu b), none being worth 0."""
    return min(mu * B + np.maximum((gains - mu * spends).max(axis=1), 0.0).sum() for mu in np.linspace(0.0, 10.0, 401))


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.6])
def test_for_independent_offers_it_stays_within_its_bound(rate):
    """O10, on average over seeds, with auctions and with lists of offers; the offline optimum from above."""
    T, lost = 2000, {"bid": [], "choose": []}
    B = rate * T
    for seed in range(4):
        rng = np.random.default_rng([seed, 10])
        values, prices = auctions(rng, T)
        pacer, reward = Pacer(B, T, 1.0, 1.0), 0.0
        for v, p in zip(values.tolist(), prices.tolist(), strict=True):
            won = p <= pacer.bid(v)
            reward += (v - p) * won
            pacer.pay(p if won else 0.0)
        assert pacer.spent <= B
        lost["bid"].append(dual((values - prices)[:, None], prices[:, None], B) - reward)
        gains, spends = rng.uniform(0.0, 1.0, (T, 3)), np.round(rng.uniform(0.0, 1.0, (T, 3)), 2)
        pacer, reward = Pacer(B, T, 1.0, 1.0), 0.0
        for row, costs in zip(gains, spends, strict=True):
            i = pacer.choose(row, costs)
            reward += 0.0 if i is None else row[i]
            pacer.pay(0.0 if i is None else costs[i])
        assert pacer.spent <= B
        lost["choose"].append(dual(gains, spends, B) - reward)
    limit = pacing_bound(B, T, 1.0, 1.0)
    assert limit == pytest.approx(min((1.0 + sqrt(T)) / rate, T))
    assert pacer.bound == limit
    for form, found in lost.items():
        assert np.mean(found) <= limit, form
        assert np.mean(found) <= 2.0 * sqrt(T), form  # measured: far below


def test_without_pacing_the_budget_is_gone_early():
    """The price is what spreads it: bidding the value itself spends everything in a fraction of the time, for less."""
    rng = np.random.default_rng(3)
    T, B = 4000, 200.0
    values, prices = auctions(rng, T)
    pacer, gate, earned, last = Pacer(B, T, 1.0, 1.0), Gate(B), [0.0, 0.0], 0
    for t, (v, p) in enumerate(zip(values.tolist(), prices.tolist(), strict=True)):
        won = p <= pacer.bid(v)
        earned[0] += (v - p) * won
        pacer.pay(p if won else 0.0)
        if p <= v and gate.allows(p):
            gate.pay(p)
            earned[1], last = earned[1] + v - p, t
    assert last < 0.5 * T
    assert pacer.spent > 0.9 * B
    assert earned[0] > 1.5 * earned[1]


def test_where_the_budget_cannot_bind_nothing_is_lost():
    pacer = Pacer(100.0, 50, 1.0, 2.0)
    assert pacing_bound(100.0, 50, 1.0, 2.0) == pacer.bound == 0.0
    for _ in range(50):
        assert pacer.choose([0.01, -1.0], [2.0, 0.0]) == 0
        pacer.pay(2.0)
    assert (pacer.price, pacer.left) == (0.0, 0.0)


def test_offers_that_do_not_fit_are_passed_over():
    pacer = Pacer(1.00, 10, 5.0, 1.0)
    pacer.pay(0.95)
    assert pacer.bid(5.0) <= 0.05
    assert pacer.choose([5.0, 4.0, 0.1], [0.06, 0.051, 0.0]) == 2
    assert pacer.choose([5.0], [0.06]) is None
    assert pacer.choose([-1.0], [0.0]) is None
    state = pacer.facts()
    for call, given_, message in (
        (pacer.pay, (0.06,), "at most 0.05, which is what is left"),
        (pacer.pay, (1.5,), "amount must be at most 1, as this pacer was told"),
        (pacer.bid, (5.1,), "value must be at most 5"),
        (pacer.choose, ([6.0], [0.0]), "values must be at most 5"),
        (pacer.choose, ([1.0], [1.5]), "spends must be between 0 and 1"),
        (pacer.choose, ([1.0], [-0.5]), "spends must be between 0 and 1"),
        (pacer.choose, ([1.0, 2.0], [0.5]), "spends must have shape"),
    ):
        with pytest.raises(InputError, match=message):
            call(*given_)
    assert pacer.facts() == state


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.floats(-6.0, 6.0), st.sampled_from(["even", [1, 0, 2], [0, 1], [3]]))
def test_the_pacer_never_overspends_whatever_comes(seed, rounds, scale, plan):
    """Values, prices and budgets of all sizes; payments up to what is left; budgets and rounds that change; past the last round."""
    rng, unit = np.random.default_rng(seed), 10.0 ** (round(scale) - 3)
    size = 10.0**scale
    rounds = max(rounds, 1 if plan == "even" else len(plan))
    pacer = Pacer(size * rng.uniform(0.0, 20.0), rounds, size, size, plan=plan, unit=unit)
    highest = pacer.budget
    for _ in range(rounds + 5):
        if rng.random() < 0.1:
            pacer.set_budget(size * rng.uniform(0.0, 20.0), max(pacer.played, len(pacer._plan)) + int(rng.integers(0, 40)))
            highest = max(highest, pacer.budget)
        left = pacer.left
        bid = pacer.bid(size * rng.random())
        assert 0.0 <= bid <= left
        pacer.pay(bid * (rng.random() < 0.7))
        assert pacer.spent <= highest * (1.0 + 1e-12)
        assert 0.0 <= pacer.price < inf
        assert pacer.share >= 0.0


# --- the plan, edits, files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "rounds"), [("even", 7), ([1.0, 2.0, 1.0], 12), ([1.0, 2.0, 1.0], 10), ([0.0, 5.0], 7), (range(1, 25), 100)]
)
def test_the_plan_adds_up_to_the_budget(plan, rounds):
    pacer = Pacer(60.0, rounds, 1.0, 60.0, plan=plan)
    shares = []
    for _ in range(rounds):
        shares.append(pacer.share)
        pacer.pay()
    assert fsum(shares) == pytest.approx(60.0)
    assert pacer.planned == pytest.approx(60.0)
    assert pacer.share == 0.0
    parts = [1.0] if plan == "even" else list(plan)
    places = [t * len(parts) // rounds for t in range(rounds)]
    sums = [fsum(share for share, place in zip(shares, places, strict=True) if place == p) for p in range(len(parts))]
    assert sums == pytest.approx([60.0 * part / sum(parts) for part in parts])
    assert (pacer.bound is None) == (plan != "even")


def test_an_uneven_plan_moves_the_spending():
    spent = {}
    for name, plan in (("even", "even"), ("late", [1.0, 4.0])):
        rng = np.random.default_rng(5)
        pacer, half = Pacer(100.0, 2000, 1.0, 1.0, plan=plan), 0.0
        for t in range(2000):
            v, p = float(rng.random()), round(float(rng.random()), 2)
            pacer.pay(p if p <= pacer.bid(v) else 0.0)
            half = pacer.spent if t == 999 else half
        spent[name] = half
    assert spent["late"] < 0.7 * spent["even"]


def test_a_changed_budget_is_spread_over_what_is_to_come():
    pacer = Pacer(10.0, 10, 1.0, 2.0)
    for _ in range(5):
        pacer.pay(1.0)
    pacer.set_budget(20.0)
    assert (pacer.left, pacer.share, pacer.bound) == (15.0, 3.0, None)
    pacer.set_budget(20.0, rounds=20)
    assert (pacer.rounds, pacer.share) == (20, 1.0)
    pacer.set_budget(4.0)
    assert (pacer.left, pacer.share, pacer.bid(1.0)) == (0.0, 0.0, 0.0)
    pacer.pay(0.0)
    assert pacer.choose([1.0], [0.01]) is None
    with pytest.raises(InputError, match="rounds must be 6 or above"):
        pacer.set_budget(50.0, rounds=5)
    assert pacer.budget == 4.0
    uneven = Pacer(12.0, 12, 1.0, 12.0, plan=[1.0, 2.0, 1.0])
    for _ in range(6):
        uneven.pay(0.5)
    uneven.set_budget(9.0)  # 6 left for two rounds of the middle and four of the last part, which weigh 2 : 1
    assert uneven.share == pytest.approx(1.5)


def test_it_goes_on_from_a_file_bit_for_bit(tmp_path):
    rng = np.random.default_rng(2)
    one = Pacer(25.0, 300, 1.0, 0.5, plan=[1, 3, 2], goal="value", unit=0.05)
    for _ in range(100):
        one.pay(round(float(rng.uniform(0.0, 0.2)), 2))
    one.set_budget(30.0)
    path = tmp_path / "pacer.json"
    one.save(path)
    other = Pacer.load(path)
    for _ in range(220):
        v, p = float(rng.random()), float(rng.uniform(0.0, 0.5))
        assert one.bid(v) == other.bid(v)
        amount = min(p, one.bid(v))
        one.pay(amount)
        other.pay(amount)
        assert (one.price, one.spent, one.planned, one.share) == (other.price, other.spent, other.planned, other.share)
    assert one.gate is one


def test_files_that_are_damaged_are_refused_in_words(tmp_path):
    path = tmp_path / "pacer"
    Pacer(25.0, 300, 1.0, 0.5).save(path)
    good = facts_in(path)
    wrong = [{name: value for name, value in good.items() if name != key} for key in good]
    wrong += [
        {**good, key: value} for key, value in (("price", -1.0), ("played", 0.5), ("gate", {}), ("kind", "x"), ("step", "x"), ("plan", []))
    ]
    wrong += [{**good, "gate": {**good["gate"], "spent": -1}}, {**good, "gate": {**good["gate"], "budget": 10**14}}]
    lines = [line for facts in wrong for line in (json.dumps(facts), storage.sealed(facts))]
    for line in (*lines, "", "[1]", "{}", storage.sealed(good)[:40]):
        forge(path, line)
        with pytest.raises(InputError, match=r"cannot (read|load) .*pacer"):
            Pacer.load(path)
    forge(path, storage.sealed(good))
    assert Pacer.load(path).rounds == 300
    with pytest.raises(InputError, match="does not hold a gate"):
        Gate.load(path)
    with pytest.raises(InputError, match="cannot read"):
        Gate.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rounds": 0}, "rounds must be 1 or above"),
        ({"value": 0.0}, "value must be above 0"),
        ({"spend": nan}, "spend must be finite"),
        ({"plan": "front"}, "unknown plan"),
        ({"plan": [0.0, 0.0]}, "plan must be weights"),
        ({"plan": [1.0, -1.0]}, "plan must be weights"),
        ({"plan": [1.0] * 11}, "no more parts than there are rounds"),
        ({"goal": "fame"}, "unknown goal"),
        ({"budget": -1.0}, "budget must be 0 or above"),
    ],
)
def test_what_cannot_be_paced_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        Pacer(**{"budget": 5.0, "rounds": 10, "value": 1.0, "spend": 1.0, **wrong})


def test_the_bound_grows_as_it_should():
    bounds = [pacing_bound(0.2 * T, T, 1.0, 1.0) for T in (10**4, 10**6, 10**8)]
    assert all(later / earlier == pytest.approx(10.0, rel=0.02) for earlier, later in pairwise(bounds))
    assert pacing_bound(1.0, 100, 1.0, 1.0) == 100.0  # no more than there is
    assert bridle.pacing_bound is pacing_bound


def test_what_one_round_can_cost_is_rounded_up_to_units_in_the_bound_too():
    pacer = bridle.Pacer(budget=0.60, rounds=100, value=1.0, spend=0.005)
    for _ in range(60):
        pacer.pay(0.005)
    assert not pacer.gate.allows(0.005)  # after 60 payments of a cent, though 100 of half a cent would fit
    assert pacer.bound == bridle.pacing_bound(0.60, 100, 1.0, 0.01)


def test_more_rounds_than_the_budget_is_for_have_no_bound():
    pacer = bridle.Pacer(budget=5.0, rounds=2, value=1.0, spend=1.0)
    for _ in range(2):
        pacer.pay(1.0)
    assert pacer.bound == 0.0
    pacer.pay(1.0)
    assert pacer.bound is None


@pytest.mark.parametrize("wrong", [float("nan"), -5.0])
def test_a_file_whose_highest_price_makes_no_sense_is_refused(wrong, tmp_path):
    path = tmp_path / "pacer"
    bridle.Pacer(budget=10.0, rounds=10, value=1.0, spend=1.0).save(path)
    forge(path, storage.sealed({**facts_in(path), "highest": wrong}))
    with pytest.raises(bridle.InputError, match="highest"):
        bridle.Pacer.load(path)


def test_a_unit_too_small_to_be_counted_is_refused():
    with pytest.raises(bridle.InputError, match="unit must be at least"):
        bridle.Gate(1.0, unit=5e-324)


@pytest.mark.parametrize("path", [None, 3.5])
def test_a_path_that_is_none_is_one_clear_error(path):
    gate = bridle.Gate(10.0)
    for call in (gate.save, bridle.Gate.load, bridle.Pacer.load):
        with pytest.raises(bridle.InputError, match="path must be the path of a file, not"):
            call(path)
