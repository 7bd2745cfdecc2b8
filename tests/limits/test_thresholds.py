"""Several limits under one threshold: the interval, priority and conflict, what is refused, and compiled code that does the same."""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle import records
from bridle.core import InputError
from bridle.engines.mirror import Mirror
from bridle.limits import (
    AlertBudget,
    AlertRate,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FalsePositiveRate,
    Precision,
    Recall,
)
from bridle.limits.debts import FLOOR
from bridle.limits.groups import most_gap_debt
from bridle.limits.rates import most_debt
from bridle.limits.thresholds import thresholds
from helpers.rate_streams import calibrated, hostile, play_rates

ANY = (
    Recall(0.9), Recall(0.6, label=0), FalsePositiveRate(0.05), AlertRate(0.1), Precision(0.7), AlertBudget(3, 20), AlertBudget(4),
    EqualOpportunity(0.05), DemographicParity(0.1), EqualizedOdds(0.1),
)  # fmt: skip


def rates_of(played, stream):
    """Recall and false positive rate."""
    positive = stream.signs > 0.0
    return played.alarms[positive].mean(), played.alarms[~positive].mean()


def test_limits_that_can_be_had_leave_the_users_own_threshold_alone():
    stream = calibrated(2000, 1, spread=6.0)
    model = thresholds([Recall(0.6), FalsePositiveRate(0.4)])
    played = play_rates(model, stream)
    recall, false_positives = rates_of(played, stream)
    assert recall >= 0.6
    assert false_positives <= 0.4
    assert (played.alarms[200:] == (stream.scores[200:] > 0.0)).mean() > 0.98
    assert played.state.conflicts < 0.1 * 2000
    for level, state in zip(model.rates, played.state.rates, strict=True):
        assert level.debt(state) >= FLOOR  # what was not used is not hoarded
        assert level.level.identity(state.level) == 0.0


@pytest.mark.parametrize("priority", [0, 1])
def test_in_conflict_the_one_with_priority_is_tracked_and_both_are_reported(priority):
    stream = calibrated(2500, 2)
    limits = [Recall(0.9), FalsePositiveRate(0.05)]
    model = thresholds(limits, priority)
    played = play_rates(model, stream)
    alone = play_rates(thresholds([limits[priority]]), stream)
    assert rates_of(played, stream) == pytest.approx(rates_of(alone, stream), abs=0.01)
    reports = model.report(played.state)
    assert [report.name for report in reports] == ["recall", "false positive rate"]  # in the order in which they were named
    recall, false_positives = rates_of(played, stream)
    for report, mine, other in zip(reports, (recall, false_positives), (false_positives, recall), strict=True):
        assert report.measured == pytest.approx(mine)
        assert report.seen["conflict"] > 0.9
        assert "cannot be had together" in report.words
        assert f"{other:.3g}" in report.words  # the other side of the trade-off, as it was seen
    assert ("priority and is tracked" in reports[0].words) == (priority == 0)
    overruled = reports[1 - priority]
    assert overruled.seen["overruled"] > 0.0
    assert overruled.proved[0] <= overruled.measured <= overruled.proved[1]
    tracked = reports[priority]
    assert tracked.proved[0] <= tracked.measured <= tracked.proved[1]
    assert tracked.since is not None
    assert overruled.since is None


def test_the_debt_of_a_limit_that_is_overruled_does_not_grow_beyond_the_top():
    """So that it is answered again at once when the conflict is over; what it was overruled for is counted."""
    stream = calibrated(2500, 3)
    model = thresholds([Recall(0.9), FalsePositiveRate(0.05)])
    state = play_rates(model, stream).state
    level, held = model.rates[1], state.rates[1]
    assert level.debt(held) <= 4.0 / 0.05 + 1.0
    owed = held.level.violated - level.share * held.level.counted
    assert owed > 200.0
    assert owed == pytest.approx(level.debt(held) - held.level.raised / level.level.q + (1.0 - level.share) * held.level.unavoidable)


@given(
    seed=st.integers(0, 10**6),
    limits=st.lists(st.sampled_from(ANY), min_size=1, max_size=4, unique=True),
    priority=st.integers(0, 3),
    rows=st.integers(1, 100),
    delay=st.integers(0, 20),
)
@settings(max_examples=40, deadline=None)
def test_whatever_the_limits_their_identities_and_bounds_hold(seed, limits, priority, rows, delay):
    """Also where they overrule each other: what a limit was overruled for is counted."""
    model = thresholds(limits, min(priority, len(limits) - 1))
    stream = (calibrated if seed % 2 else hostile)(rows, seed)
    played = play_rates(model, stream, np.random.default_rng(seed).integers(0, delay + 1, rows), np.arange(rows) // 30 * 1.0)
    for level, state in zip(model.rates, played.state.rates, strict=True):
        assert level.level.identity(state.level) == 0.0
        assert level.debt(state) <= most_debt(level.share, level.eta, state.waiting.most)
        assert state.waiting.due == 0.0
    for level, state in zip(model.gaps, played.state.gaps, strict=True):
        most = most_gap_debt(level.eta, state.waiting.most.max()) + state.overruled
        assert np.all(np.abs(level.debts(state)) <= most)
    for level, state in zip(model.budgets, played.state.budgets, strict=True):
        assert state.most <= level.at_most
    reports = model.report(played.state)
    assert len(reports) == sum(2 if isinstance(limit, EqualizedOdds) else 1 for limit in limits)
    for report in reports:
        if report.measured is not None:
            assert report.proved[0] - 1e-9 <= report.measured <= report.proved[1] + 1e-9


@pytest.mark.parametrize(("priority", "expected"), [(0, -inf), (1, inf)])
def test_the_safe_action_of_what_has_priority_is_played(priority, expected):
    """Both are at the top: recall wants alarms for all rows, and the gap none in the first group."""
    model = thresholds([Recall(0.9), EqualOpportunity(0.05)], priority)
    state = model.start()
    rate, gap = state.rates[0], state.gaps[0]
    rate = rate._replace(level=rate.level._replace(units=90.0 * model.rates[0].level.q))
    top = state._replace(rates=(rate,), gaps=(gap._replace(alarms=np.array([90.0, 0.0])),))
    assert model.threshold(top, 0.0) == expected
    assert model.threshold(top, 1.0) == model.threshold(top, nan) == -inf  # nothing speaks against it there
    assert model.threshold(state._replace(gaps=top.gaps), 0.0) == inf
    assert model.threshold(state, 0.0) == 0.0
    assert model.rates[0].yields == priority  # and what it is overruled for will be counted
    assert np.all(model.threshold(top, np.array([0.0, 1.0, nan])) == np.array([expected, -inf, -inf]))


def test_a_precision_without_alarms_says_that_it_cannot_be_measured():
    stream = calibrated(1500, 4)._replace(scores=np.full(1500, -2.0), signs=-np.ones(1500))
    model = thresholds([Precision(0.8)])
    report = model.report(play_rates(model, stream).state)[0]
    assert report.words.startswith("no alarms ")
    assert report.words.endswith(", precision cannot be measured")


def test_a_report_says_what_has_not_come_yet():
    model = thresholds([Recall(0.9)])
    report = model.report(model.start())[0]
    assert (report.measured, report.proved, report.since, report.price) == (None, None, None, None)
    assert report.words == "no positive has come yet"


def test_what_is_proved_holds_what_was_measured_and_narrows():
    stream = calibrated(3000, 5)
    widths = []
    for rows in (300, 3000):
        part = stream._replace(scores=stream.scores[:rows], signs=stream.signs[:rows], groups=stream.groups[:rows])
        model = thresholds([FalsePositiveRate(0.05)])
        report = model.report(play_rates(model, part).state)[0]
        assert report.proved[0] <= report.measured <= report.proved[1]
        widths.append(report.proved[1] - report.asked)
    assert widths[1] < 0.2 * widths[0]


def test_the_recent_rate_is_that_of_the_last_thousand_counted_rows():
    stream = calibrated(4321, 6)
    model = thresholds([AlertRate(0.1)])
    played = play_rates(model, stream)
    assert model.report(played.state)[0].recent == pytest.approx(played.alarms[-921:].mean())  # nine full blocks and the last one


@pytest.mark.parametrize(
    ("limits", "row", "says"),
    [
        ([EqualOpportunity(0.05)], {}, "groups must be given"),
        ([EqualOpportunity(0.05, groups=[0, 1, 2])], {"group": 5.0}, "group must be one of 0, 1, 2, or nan for none, not 5.0"),
        ([AlertBudget(5)], {}, "period must be given with AlertBudget"),
        ([AlertBudget(5)], {"period": 3.0, "last": 4.0}, "period must not go backward: 3.0 came after 4.0"),
    ],
)
def test_a_row_that_the_limits_cannot_read_is_one_sentence(limits, row, says):
    model = thresholds(limits)
    with pytest.raises(InputError, match=says.replace("(", r"\(")):
        model.check([row.get("group")], [row.get("period")], row.get("last"))
    model.check([nan], [9.0], 4.0)


@pytest.mark.parametrize(("limits", "priority"), [([Recall(0.9)], 1), ([Recall(0.9)], -1), ([object()], 0)])
def test_limits_and_priority_are_checked(limits, priority):
    with pytest.raises(InputError):
        thresholds(limits, priority)


class ScoredRow(NamedTuple):
    """What a compiled step is given."""

    score: float
    sign: float
    group: float
    period: float


def one_row(model, state, row):
    state, seen = model.look(state, row.score, row.group, row.period)
    return model.count(state, seen, row.sign)


@pytest.mark.compiles
@pytest.mark.parametrize(
    "limits",
    [
        [Recall(0.9), FalsePositiveRate(0.05, base="buffer"), AlertBudget(8)],
        [EqualOpportunity(0.05), DemographicParity(0.05, groups=[0, 1])],
    ],
)
def test_compiled_rows_do_what_numpy_does(limits):
    stream, model = calibrated(400, 7), thresholds(limits)
    state = model.start()
    mirror = Mirror(one_row, model, state, ScoredRow(0.0, 0.0, 0.0, 0.0), state)
    mirror.write(state)
    for t in range(400):
        row = ScoredRow(float(stream.scores[t]), float(stream.signs[t]), float(stream.groups[t]), float(t // 50))
        state = one_row(model, state, row)
        for name, value in row._asdict().items():
            if f"given.{name}" in mirror.views:
                mirror.views[f"given.{name}"][...] = value
        assert mirror.run()
    compiled = records.leaves(mirror.read())
    for name, leaf in records.leaves(state).items():
        assert np.allclose(leaf, compiled[name], rtol=1e-12, atol=1e-12), name
