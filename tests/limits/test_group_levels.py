"""Gaps between groups: each group's share is its mean target and its debt, the debt is bounded, and nothing is done without need."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.limits import DemographicParity, EqualizedOdds, EqualOpportunity, Recall
from bridle.limits.debts import Seen
from bridle.limits.groups import GAP_NAMES, most_gap_debt
from bridle.limits.thresholds import thresholds
from helpers.rate_streams import calibrated, hostile, play_rates

COUNTED = {"demographic parity": (True, True), "equal opportunity": (True, False), "false positive gap": (False, True)}
"""Whether positives count, and negatives."""


def shares(played, stream, positives, negatives):
    """The share of alarms of each group among the rows that count."""
    counts = ((stream.signs > 0.0) & positives) | ((stream.signs < 0.0) & negatives)
    return [played.alarms[counts & (stream.groups == group)].mean() for group in sorted(set(stream.groups[stream.groups == stream.groups]))]


@pytest.mark.parametrize(
    "limit", [DemographicParity(0.05), EqualOpportunity(0.05), EqualizedOdds(0.1), EqualOpportunity(0.02, groups=[0, 1])]
)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 120), delay=st.integers(0, 30), own=st.booleans())
@settings(max_examples=8, deadline=None)
def test_a_share_is_the_mean_target_and_the_debt_on_every_stream(limit, seed, rows, delay, own):
    stream, model = (calibrated if own else hostile)(rows, seed), thresholds([limit])
    played = play_rates(model, stream, np.random.default_rng(seed).integers(0, delay + 1, rows))
    for level, state in zip(model.gaps, played.state.gaps, strict=True):
        positives, negatives = COUNTED[GAP_NAMES[level[:3]]]
        counts = ((stream.signs > 0.0) & positives) | ((stream.signs < 0.0) & negatives)
        for i in (0, 1):
            mine = counts & (stream.groups == i)
            assert state.counted[i] == mine.sum()
            assert abs(played.alarms[mine].sum() - state.targets[i] - level.debts(state)[i]) < 1e-9
        assert np.all((state.targets >= 0.0) & (state.targets <= state.counted + 1e-9))
        assert np.all(state.waiting.now == 0.0)
        assert np.all(state.waiting.due == 0.0)
    if len(model.gaps) == 1:
        assert np.abs(level.debts(state)).max() <= most_gap_debt(level.eta, delay)


@pytest.mark.parametrize("alarming", [True, False])
def test_an_adversary_reaches_the_bound_and_nothing_beyond(alarming):
    """In one group every row is an alarm whenever the level lets it be, or none; the other group's rows keep the shares apart."""
    [level] = DemographicParity(0.01).levels((0, 1), False, False)
    state, debts = level.start(), []
    for row in range(700):
        group = float(row % 2)
        th = level.offset(state, group)
        up = alarming == (group == 1.0)
        score = (0.0 if np.isinf(th) else th) + (1.0 if up else -1.0)
        state, _ = level.look(state, Seen(score, 1.0 * (score > th), group), 1.0 * up, row)
        debts.append(np.abs(level.debts(state)).max())
    assert 4.0 / 0.05 < max(debts) <= most_gap_debt(0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "counted"), [(DemographicParity(0.05), (True, True)), (EqualOpportunity(0.05), (True, False))])
def test_a_gap_is_closed_to_what_was_asked(limit, counted):
    stream = calibrated(3000, 1, apart=2.5)
    held = play_rates(thresholds([limit]), stream)
    free = held._replace(alarms=stream.scores > 0.0)
    before, after = (np.ptp(shares(played, stream, *counted)) for played in (free, held))
    assert before > 0.2
    assert after < 0.07
    report = thresholds([limit]).report(held.state)[0]
    assert report.measured == pytest.approx(after)
    assert report.proved[0] <= after <= report.proved[1]
    assert "counted rows of each group" in report.words


@pytest.mark.slow
def test_both_gaps_of_equalized_odds_are_closed():
    stream = calibrated(2500, 2)
    played = play_rates(thresholds([EqualizedOdds(0.06)]), stream)
    assert np.ptp(shares(played, stream, True, False)) < 0.09
    assert np.ptp(shares(played, stream, False, True)) < 0.09


@pytest.mark.slow
def test_three_groups_are_brought_together():
    stream, rng = calibrated(2500, 3), np.random.default_rng(3)
    groups = rng.integers(0, 3, 2500) * 10.0
    stream = stream._replace(groups=groups, scores=stream.scores + groups / 10.0)
    played = play_rates(thresholds([DemographicParity(0.05, groups=[0, 10, 20])]), stream)
    assert np.ptp(shares(played, stream, True, True)) < 0.08
    assert np.ptp([(stream.scores[groups == g] > 0.0).mean() for g in (0.0, 10.0, 20.0)]) > 0.25


@pytest.mark.parametrize("limit", [DemographicParity(1.0), EqualOpportunity(1.0), EqualizedOdds(1.0)])
def test_a_gap_that_holds_by_itself_moves_nothing(limit):
    stream, model = calibrated(400, 4), thresholds([limit])
    played = play_rates(model, stream, 7)
    assert np.array_equal(played.alarms, stream.scores > 0.0)
    for level, state in zip(model.gaps, played.state.gaps, strict=True):
        assert np.all(level.debts(state) == 0.0)


@pytest.mark.slow
def test_a_recall_and_a_gap_are_held_together():
    stream = calibrated(3000, 5, apart=2.5)
    model = thresholds([Recall(0.9), EqualOpportunity(0.04)])
    played = play_rates(model, stream)
    assert played.alarms[stream.signs > 0.0].mean() == pytest.approx(0.9, abs=0.01)
    alone = play_rates(thresholds([Recall(0.9)]), stream)
    together, apart = (np.ptp(shares(each, stream, True, False)) for each in (played, alone))
    assert together < 0.07
    assert apart > 0.1


def test_a_group_that_never_comes_is_one_sentence():
    stream = calibrated(50, 6)._replace(groups=np.zeros(50))
    model = thresholds([EqualOpportunity(0.05)])
    report = model.report(play_rates(model, stream).state)[0]
    assert report.measured is None
    assert report.words == "no counted row of group 1 has come, so that nothing can be said of the gap"
    assert report.why == report.words
