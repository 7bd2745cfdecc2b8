"""In other units decisions are the same up to scale, and a box that is far too large costs little: rules, `rate` and `soft`."""

from __future__ import annotations

import numpy as np
import pytest

import bridle
from bridle.core import Feedback
from bridle.domains.closed_form import BoxSet
from helpers.demand import Rules, demand

TOP, SHORTAGE = 100.0, 20.0
EXACT, CLOSE = (2.0**-10, 2.0**10), (1e-3, 1e3)


def capacities(name: str, own: bool, values: np.ndarray, units: float = 1.0, money: float = 1.0, box: float = 1.0) -> np.ndarray:
    """What a policy chooses before each demand, with amounts and money in other units, in the first units again."""
    domain, top = bridle.Box(0.0, TOP * units * box, dim=1), TOP * units * box
    settings = {"at_most": 0.05, "safe": [top]} if name == "rate" else {}
    if own:
        settings["rules"] = Rules.SIZE
    session, rules, chosen = bridle.Session(bridle.policy(name, domain, **settings)), Rules(top), []
    for value in (values * units).tolist():
        x = float((session.decide(rules=rules.propose()) if own else session.decide())[0])
        price = money / units
        if name == "mlpoly":  # no limits: what is missing is paid for
            missing = max(0.0, value - x)
            session.observe(f=price * (x + SHORTAGE * missing), df=[price * (1.0 - SHORTAGE * (missing > 0.0))])
        else:
            session.observe(f=price * x, df=[price], g=value - x, dg=[-1.0])
        chosen.append(x / units)
        rules.see(value)
    return np.array(chosen)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "own"), [("mlpoly", True), ("rate", False), ("rate", True), ("soft", False), ("soft", True)])
def test_decisions_are_the_same_up_to_scale_in_other_units(name, own):
    values = demand("seasonal", 150, seed=3)
    usual = capacities(name, own, values)
    assert np.ptp(usual[50:]) > 1.0  # it does something
    small, large = EXACT
    np.testing.assert_array_equal(capacities(name, own, values, units=small, money=large), usual)
    np.testing.assert_array_equal(capacities(name, own, values, units=large, money=large), usual)
    small, large = CLOSE
    np.testing.assert_allclose(capacities(name, own, values, units=small, money=large), usual, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(capacities(name, own, values, units=large, money=large), usual, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rules", [[[1.0], [3.0], [7.0], [30.0]], [[0.3], [0.1], [0.7], [0.2]]])
def test_of_two_medoids_the_first_is_taken_in_all_units(rules):
    middle = np.sort(np.array(rules)[:, 0])[1:3]
    first = next(rule[0] for rule in rules if rule[0] in middle)
    for units in (*(10.0**k for k in range(-9, 10)), 1.0 / 3.0, 7.0):
        session = bridle.Session(bridle.policy("rate", bridle.Box(0.0, 100.0 * units, dim=1), safe=[100.0 * units], rules=4))
        assert session.decide(rules=np.array(rules) * units)[0] == first * units


@pytest.mark.slow
def test_a_box_ten_times_too_large_costs_at_most_5_percent():
    streams = np.repeat([demand(kind, 10_000, seed=4) for kind in ("seasonal", "bursts")], 2, axis=0)
    tops = np.array([1.0, 10.0, 1.0, 10.0])[:, None] * TOP  # all four at once
    record = bridle.policy("rate", bridle.Box(0.0, TOP, dim=1), at_most=0.05, safe=[TOP], rules=Rules.SIZE).record
    record = record._replace(domain=BoxSet(0.0 * tops, tops), safe=tops)
    state, rules, chosen = record.init(tops / 2.0), [Rules(top) for top in tops[:, 0].tolist()], np.empty_like(streams)
    df, dg = np.ones((4, 1)), -np.ones((4, 1, 1))
    for t in range(streams.shape[1]):
        state = record.propose(state, np.array([each.propose() for each in rules]))
        x = record.decide(state)
        state = record.update(state, Feedback(x, x, df, streams[:, t : t + 1] - x, dg))
        chosen[:, t] = x[:, 0]
        for each, value in zip(rules, streams[:, t].tolist(), strict=True):
            each.see(value)
    costs = chosen.sum(axis=1)
    print(f"ten times the box costs {costs[1::2] / costs[::2] - 1.0} more")
    assert (costs[1::2] <= 1.05 * costs[::2]).all()
    assert (abs((streams > chosen).mean(axis=1) - 0.05) < 0.002).all()
