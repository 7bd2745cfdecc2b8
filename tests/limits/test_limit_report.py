"""Reports of limits: as records, as a table, as JSON."""

from __future__ import annotations

import json
from math import inf, log

import numpy as np
import pytest

from bridle.limits import AlertBudget, AlertRate, EqualizedOdds, FalsePositiveRate, Precision, Recall
from bridle.limits.report import LimitReport, LimitTable
from bridle.limits.thresholds import thresholds
from helpers.rate_streams import calibrated, play_rates


def report(**changes):
    fields = {
        "name": "recall", "sense": "at least", "asked": 0.9, "measured": 0.91, "recent": 0.88, "proved": (0.8, 1.0), "why": "",
        "price": 3.0, "price_of": "false alarms", "since": 12, "counted": 1234, "open": 0, "words": "fine", "seen": {},
    }  # fmt: skip
    return LimitReport(**{**fields, **changes})


@pytest.mark.parametrize(
    ("sense", "measured", "held"),
    [("at least", 0.91, True), ("at least", 0.89, False), ("at most", 0.91, False), ("at most", 0.9, True), ("at most", None, None)],
)
def test_held_is_being_on_the_right_side(sense, measured, held):
    assert report(sense=sense, measured=measured).held is held


def test_a_table_has_a_line_for_each_limit_and_a_sentence_below():
    table = LimitTable([report(), report(name="alert rate", proved=None, why="nobody knows", since=None, price=None)])
    lines = repr(table).splitlines()
    assert lines[0].split()[:3] == ["limit", "asked", "measured"]
    assert lines[1].split() == ["recall", "at", "least", "0.9", "0.91", "0.88", "0.8", "to", "1", "3", "row", "12", "1,234", "0"]
    assert lines[2].split() == ["alert", "rate", "at", "least", "0.9", "0.91", "0.88", "no", "-", "-", "1,234", "0"]
    assert lines[3:] == ["  recall: fine", "  alert rate: fine"]
    assert repr(LimitTable()) == "no limits"
    assert (len(table), table[0].name, table == LimitTable(table)) == (2, "recall", True)


def test_json_is_json():
    stream = calibrated(300, 1)
    limits = [Recall(0.9), FalsePositiveRate(0.1), AlertRate(0.5), Precision(0.3), AlertBudget(5, 50), EqualizedOdds(0.1)]
    model = thresholds(limits)
    table = LimitTable(model.report(play_rates(model, stream).state))
    assert len(table) == len(limits) + 1  # equalized odds are two
    back = json.loads(json.dumps(table.json(), allow_nan=False))
    assert [each["name"] for each in back][:2] == ["recall", "false positive rate"]
    assert back[0]["proved"] == list(table[0].proved)
    assert report(proved=(-inf, np.float64(1.0))).json()["proved"] == [None, 1.0]


def test_the_price_is_what_the_threshold_says_at_the_margin():
    """At a threshold of probability p one more positive costs (1 - p)/p false alarms."""
    stream = calibrated(2000, 2)
    model = thresholds([Recall(0.9)])
    played = play_rates(model, stream)
    [found] = model.report(played.state)
    assert log(found.price) == pytest.approx(-float(model.threshold(played.state)))
    near = np.abs(stream.scores - model.threshold(played.state)) < 0.3
    odds = (stream.signs[near] < 0.0).sum() / (stream.signs[near] > 0.0).sum()
    assert found.price == pytest.approx(odds, rel=0.4)
    assert found.seen["false positive rate"] == pytest.approx(played.alarms[stream.signs < 0.0].mean())


def test_since_is_the_row_after_the_last_at_which_it_did_not_hold():
    stream = calibrated(1200, 3)
    model = thresholds([FalsePositiveRate(0.05)])
    played = play_rates(model, stream)
    [found] = model.report(played.state)
    negative = stream.signs < 0.0
    excess = np.cumsum(played.alarms & negative) > 1.1 * 0.05 * np.cumsum(negative)
    assert found.since == np.flatnonzero(excess & negative)[-1] + 2  # counted from 1
