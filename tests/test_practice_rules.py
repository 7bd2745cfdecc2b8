"""The rules of benchmarks/practice.py do what their names say, and their knobs in hindsight are the best there are."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.demand import demand
from helpers.scripts import script

rules = script("benchmarks/parts/demand_rules.py")
DAY = 12


@pytest.fixture
def trace():
    values = demand("seasonal", 400, seed=1)
    slot = np.delete(np.arange(403), [50, 51, 200])  # some are missing
    return rules.Trace("made up", values, slot, DAY, 2.0 * float(values.max()), DAY)


def test_forecasts_know_nothing_but_the_past(trace):
    later = trace._replace(values=np.where(np.arange(400) < 300, trace.values, 7.0))
    for make in (*rules.FAMILIES.values(), lambda trace: [rules.Family("", each, each) for each in rules.proposals(trace, 0.1).T]):
        for one, other in zip(make(trace), make(later), strict=True):
            known = 301 if len(one.forecast) == 400 else 301 - DAY  # the slot after the last that they share
            np.testing.assert_array_equal(one.forecast[:known], other.forecast[:known])
            np.testing.assert_array_equal(one.spread[:known], other.spread[:known])


def test_forecasts_are_what_their_names_say(trace):
    values = trace.values
    last, _ = rules.running(values, 1.0)
    np.testing.assert_allclose(last[1:], values[:-1], rtol=1e-14)
    mean, spread = rules.running(values[:3], 0.01)  # so short that all count alike
    assert mean[2] == pytest.approx(values[:2].mean())
    assert spread[2] == pytest.approx(abs(values[1] - values[0]) / 2.0**0.5)  # of two deviations the first is 0
    for i in (30, 100, 300):
        assert rules.highest(values, 3)[i] == values[i - 3 : i].max()
        np.testing.assert_allclose(rules.quantiles(values, 20, np.array([0.5, 0.9]))[:, i], np.quantile(values[i - 20 : i], [0.5, 0.9]))
        before = np.flatnonzero(trace.slot == trace.slot[i] - DAY)
        if len(before):
            assert rules.same_slot(trace, DAY, 1.0)[0][i] == values[before[0]]


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_k_in_hindsight_is_the_smallest_that_keeps_the_rate(trace, share):
    allowed = int(share * len(trace.judged))
    for make in rules.FAMILIES.values():
        for family in make(trace):
            found = rules.best_k(trace, family, allowed)
            assert found.rate * len(trace.judged) <= allowed + 1e-9
            k = float(found.knobs.split("k ")[1])  # to three digits
            forecast, spread = family.forecast[DAY:], family.spread[DAY:]
            grid = [np.clip(forecast + c * spread, 0.0, trace.top) for c in k + abs(k) * np.linspace(-0.2, 0.2, 81)]
            kept = [each for each in (rules.outcome(trace, row) for row in grid) if each.rate * len(trace.judged) <= allowed]
            assert found.cost <= min(each.cost for each in kept) * (1.0 + 1e-9)
            less = rules.outcome(trace, np.clip(forecast + (k - 0.01 * abs(k)) * spread, 0.0, trace.top))
            assert less.rate * len(trace.judged) > allowed or less.cost >= found.cost


def test_every_family_is_judged_on_the_same_slots_and_keeps_the_rate(trace):
    found = rules.in_hindsight(trace, 0.1, int(0.1 * len(trace.judged)))
    assert len(found) == 7
    for name, each in found.items():
        assert each.rate <= (0.11 if name in ("ACI", "PID") else 0.1) + 1e-12, name  # these follow the rate, and keep it in the long run
        assert 1.0 < each.cost < 3.0, name
        assert each.worst >= each.rate


def test_an_outcome_is_cost_rate_and_the_worst_window(trace):
    chosen = trace.judged + np.where(np.arange(len(trace.judged)) % 10 == 0, -1.0, 1.0)
    found = rules.outcome(trace, chosen)
    assert found.cost == pytest.approx(1.0 + (0.8 * len(chosen) - 1.2) / trace.judged.sum(), abs=1e-3)
    assert found.rate == pytest.approx(0.1, abs=0.002)
    assert found.worst == found.rate  # there are fewer slots than a window has
