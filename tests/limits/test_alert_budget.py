"""A budget of alarms per period: never overspent, and spent on the highest scores."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.limits import AlertBudget, Recall
from bridle.limits.thresholds import learn_batch, thresholds
from helpers.rate_streams import calibrated, hostile, play_rates


@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 200),
    at_most=st.integers(0, 9),
    per=st.one_of(st.none(), st.integers(1, 60)),
    batch=st.integers(1, 50),
)
@settings(max_examples=40, deadline=None)
def test_it_is_never_overspent_in_any_batches(seed, rows, at_most, per, batch):
    rng = np.random.default_rng(seed)
    stream = (calibrated if seed % 2 else hostile)(rows, seed)
    days = np.cumsum(rng.random(rows) < 0.05) * 1.0
    model = thresholds([Recall(0.99), AlertBudget(at_most, "period" if per is None else per)])
    state, alarms = model.start(), []
    for begin in range(0, rows, batch):
        part = slice(begin, begin + batch)
        state, found = learn_batch(model, state, stream.scores[part], stream.signs[part], None, days[part])
        alarms += found.tolist()
    periods = days if per is None else np.arange(rows) // per
    spent = Counter(periods[np.array(alarms) > 0.0].tolist())
    assert max(spent.values(), default=0) <= at_most
    budget = state.budgets[0]
    assert budget.most == max(spent.values(), default=0)
    assert budget.earlier + budget.spent == sum(alarms)


@pytest.mark.parametrize("others", [(), (Recall(0.9),)])  # which asks for more than the budget
@pytest.mark.parametrize("per", [100, "period"])
def test_it_is_spent_on_the_highest_scores(per, others):
    stream = calibrated(6000, 1)
    played = play_rates(thresholds([*others, AlertBudget(5, per)]), stream, periods=np.arange(6000) // 100 * 1.0)
    spent = played.alarms.reshape(60, 100).sum(axis=1)
    assert spent.max() <= 5
    assert spent[1:].mean() > 4.0
    best = np.sort(stream.scores.reshape(60, 100), axis=1)[:, -5:].mean()
    assert stream.scores[played.alarms].mean() > best - 0.6


@pytest.mark.parametrize("limits", [[Recall(0.9), AlertBudget(80, 100)], [AlertBudget(80, 100), Recall(0.9)]])
def test_a_rate_that_needs_less_is_kept_beside_it(limits):
    stream = calibrated(6000, 3)
    played = play_rates(thresholds(limits), stream)
    assert played.alarms[stream.signs > 0.0].mean() > 0.89


def test_a_period_that_goes_backward_opens_no_new_budget():
    model = thresholds([AlertBudget(1, "period")])
    state = model.start()
    for period in (5.0, 4.0, 5.0, 3.0):
        state, _ = model.look(state, 50.0, period=period)
    assert state.alarms == 1.0
    assert not model.budgets[0].affords(state.budgets[0], 5.0)
    assert model.budgets[0].affords(state.budgets[0], 6.0)


def test_its_report_says_the_most_in_any_period():
    stream, model = calibrated(1000, 2), thresholds([AlertBudget(3, 50)])
    played = play_rates(model, stream)
    report = model.report(played.state)[0]
    assert (report.name, report.asked, report.proved) == ("alerts per 50 rows", 3.0, (0.0, 3.0))
    assert report.seen["most"] == played.alarms.reshape(20, 50).sum(axis=1).max()
    assert report.measured == pytest.approx(played.alarms.sum() / 20)
