"""Rules for capacity: each proposes what its formula says, from the past alone, in any units; sessions ask and keep them."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle import rules
from bridle.core import Feedback, InputError
from bridle.rules.demand import demand_of

BOX = bridle.Box(0.0, 100.0, dim=1)


def proposals(rule, demands):
    return rules.propose([rule], np.reshape(demands, (-1, 1)))[:, 0, 0]


def test_running_means_and_deviations_are_what_the_formula_says():
    demands = np.random.default_rng(0).uniform(5.0, 20.0, 40)
    mean, spread, wanted = 0.0, 0.0, [100.0]
    for i, h in enumerate(demands):
        weight = max(0.2, 1.0 / (i + 1))
        spread = spread + weight * (abs(h - mean) - spread) if i else 0.0
        mean += weight * (h - mean)
        wanted.append(min(mean + 3.0 * spread, 100.0))
    np.testing.assert_allclose(proposals(rules.ewma(BOX, 3.0, memory=0.2), demands), wanted[:-1], rtol=1e-12)


def test_the_same_slot_of_earlier_days_with_the_weights_of_days():
    day = np.array([10.0, 20.0, 40.0])
    demands = np.concatenate([day, day + 3.0, day + 6.0, day])
    found = proposals(rules.same_slot(BOX, period=3, multiple=0.0, memory=0.4), demands)
    assert found[:3].tolist() == [100.0, 10.0, 15.0]  # nothing is known, then the mean of all that was seen
    np.testing.assert_allclose(found[3:6], day)
    np.testing.assert_allclose(found[6:9], day + 0.5 * 3.0)  # of two days each counts half
    np.testing.assert_allclose(found[9:], (day + 1.5) + 0.4 * 4.5)  # of three each a third, which is less than the memory


def test_room_over_the_season_is_the_mean_error_of_its_forecasts():
    demands = np.tile([10.0, 20.0, 40.0], 200) + np.tile([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], 100)
    bare, roomy = (proposals(rules.same_slot(BOX, 3, multiple=multiple, memory=1.0), demands) for multiple in (0.0, 2.0))
    np.testing.assert_allclose(bare[300:], demands[297:-3])  # a memory of 1: yesterday's
    np.testing.assert_allclose((roomy - bare)[300:], 2.0 * 2.0, rtol=0.05)  # which is off by 2 each time


def test_a_season_is_moved_by_how_far_demand_was_off_it_lately():
    demands = np.concatenate([np.tile([10.0, 20.0, 40.0], 3), [15.0, 25.0]])
    plain, moved = (proposals(rules.same_slot(BOX, 3, multiple=0.0, memory=0.5, moved=moved), demands) for moved in (False, True))
    off = 0.0
    usual = np.concatenate([[10.0, 15.0], np.tile([10.0, 20.0, 40.0], 3)])
    for t in range(1, 11):
        assert plain[t] == pytest.approx(usual[t - 1])
        assert moved[t] == pytest.approx(usual[t - 1] + off)
        off += 0.7 * (demands[t] - usual[t - 1] - off)
    assert moved[10] == pytest.approx(20.0 + off / 0.3 - 0.7 / 0.3 * (25.0 - 20.0), rel=1e-9)  # it had the error of 15 over 10 in it


def test_quantiles_are_order_statistics_of_the_last_demands():
    demands = np.random.default_rng(1).permutation(60).astype(float)
    for share in (0.05, 0.5, 0.9, 1.0):
        found = proposals(rules.last_quantile(BOX, share, last=20), demands)
        for t in range(1, 60):
            past = np.sort(demands[max(0, t - 20) : t])
            assert (past <= found[t]).mean() >= share
            assert (past < found[t]).mean() < share


def test_an_autoscaler_keeps_its_target_and_does_not_scale_down_at_once():
    demands = [7.0, 14.0, 7.0, 7.0, 7.0, 7.0]
    assert proposals(rules.autoscaler(BOX, target=0.7, last=3), demands).round(9).tolist() == [100.0, 10.0, 20.0, 20.0, 20.0, 10.0]


def test_all_of_them_propose_actions_from_the_past_alone_in_any_units():
    demands = np.random.default_rng(2).gamma(2.0, 10.0, (150, 2))
    box = bridle.Box([1.0, 0.0], [60.0, 90.0])
    stock = rules.demand_rules(box, day=12, week=84)
    found = rules.propose(stock, demands)
    assert len({rule.name for rule in stock}) == len(stock) == 41
    assert all(box.contains(x) for x in found.reshape(-1, 2))
    other = demands.copy()
    other[100:] *= 0.5
    np.testing.assert_array_equal(rules.propose(stock, other)[:101], found[:101])
    assert (rules.propose(stock, other)[101] != found[101]).any()
    large = rules.propose(rules.demand_rules(bridle.Box([1e3, 0.0], [6e4, 9e4]), day=12, week=84), 1e3 * demands)
    np.testing.assert_allclose(large, 1e3 * found, rtol=1e-9)


def test_demand_is_where_the_limits_hold_with_equality():
    x, rng = np.array([3.0, 5.0]), np.random.default_rng(3)
    for dg in (-np.eye(2), np.array([[-2.0, 0.0]]), np.array([[1.0, 0.5], [-0.3, 2.0]])):
        g = rng.standard_normal(len(dg))
        h = demand_of(Feedback(x, 0.0, np.zeros(2), g, dg))
        np.testing.assert_allclose(g + dg @ (h - x), 0.0, atol=1e-9)
    assert demand_of(Feedback(x, 0.0, np.zeros(2), np.zeros(1), np.zeros((1, 2)))) is None
    same = demand_of(Feedback(np.array([3.0]), 0.0, np.zeros(1), np.array([1.0, 4.0]), -np.ones((2, 1))))
    assert same.tolist() == [7.0]  # of two limits on one capacity, the tighter one


def test_rounds_without_a_limit_tell_nothing_and_let_the_season_go_on():
    rule = rules.same_slot(BOX, period=2, multiple=0.0, memory=1.0)
    state = rule.init(np.array([50.0]))
    silent = Feedback(np.array([1.0]), 0.0, np.ones(1), np.zeros(1), np.zeros((1, 1)))
    for h in (10.0, 30.0, None, 32.0, None):
        seen = silent if h is None else Feedback(np.array([h]), 0.0, np.ones(1), np.zeros(1), -np.ones((1, 1)))
        state = rule.update(state, seen)
    assert rule.decide(state).tolist() == [32.0]
    state = rule.update(state, silent)
    assert rule.decide(state).tolist() == [10.0]
    mean = rules.ewma(BOX, 0.0)
    assert mean.decide(mean.update(mean.init(np.array([50.0])), silent)).tolist() == [100.0]


def test_a_session_asks_them_saves_them_and_goes_on(tmp_path):
    def made():
        return bridle.policy("rate", BOX, at_most=0.1, safe=[100.0], rules=rules.demand_rules(BOX, day=24))

    def play(session, demands):
        played = []
        for demand in demands:
            x = session.decide()
            played.append(float(x[0]))
            session.observe(f=float(x[0]), df=[1.0], g=float(demand - x[0]), dg=[-1.0])
        return played

    t = np.arange(300)
    demands = 20.0 + 10.0 * np.sin(2.0 * np.pi * t / 24) + np.random.default_rng(4).standard_normal(300)
    one, two = bridle.Session(made()), bridle.Session(made())
    whole = play(one, demands)
    first = play(two, demands[:150])
    two.save(tmp_path / "session.npz")
    again = bridle.Session.load(tmp_path / "session.npz", policy=made())
    assert first + play(again, demands[150:]) == whole
    assert again.rates == one.rates
    assert float(one.decide()[0]) == float(again.decide()[0])
    assert [float(x[0]) for x in one.proposals] == [float(x[0]) for x in again.proposals]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rules.ewma(bridle.Ball(2)), "domain must be a box, in which more is safer, not"),
        (lambda: rules.ewma(BOX, memory=1.5), "memory must be at most 1, not 1.5"),
        (lambda: rules.ewma(BOX, multiple="much"), "multiple must be a number, not 'much'"),
        (lambda: rules.same_slot(BOX, period=1), "period must be 2 or above, not 1"),
        (lambda: rules.same_slot(BOX, period=24, memory=0.0), "memory must be above 0, not 0.0"),
        (lambda: rules.last_quantile(BOX, share=1.2), "share must be a share above 0, at most 1, not 1.2"),
        (lambda: rules.last_quantile(BOX, last=0), "last must be 1 or above, not 0"),
        (lambda: rules.autoscaler(BOX, target=0.0), "target must be above 0, not 0.0"),
        (lambda: rules.demand_rules(BOX, day=1), "day must be 2 or above, not 1"),
        (lambda: rules.demand_rules(BOX, day=24, week=24), "week must be longer than day, not 24"),
        (lambda: rules.propose([], [[1.0]]), "demands must be (rounds, dim), not of shape (1, 1)"),
        (lambda: rules.propose([rules.everything(BOX)], [1.0]), "demands must be (rounds, 1), not of shape (1,)"),
    ],
)
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(InputError) as raised:
        call()
    assert message in str(raised.value)


def test_a_round_that_was_not_measured_is_not_counted_and_the_season_goes_on():
    session = bridle.Session(bridle.policy("rate", BOX, at_most=0.1, safe=[100.0], rules=[rules.same_slot(BOX, 2, 0.0), "forecast"]))
    for demand in (10.0, 30.0, 10.0, None, 10.0, 30.0):
        x = session.decide(rules=[[40.0]])
        limit = {} if demand is None else {"g": float(demand - x[0]), "dg": [-1.0]}
        session.observe(f=float(x[0]), df=[1.0], **limit)
    assert session.rates[0].counted == 5
    session.decide(rules=[[40.0]])
    assert session.proposals[0, 0] == pytest.approx(10.0)
