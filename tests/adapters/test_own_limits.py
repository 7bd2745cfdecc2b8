"""Limits of one's own: three methods for one on average, one for a rate; every estimator takes them and reports on them."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
import pytest

from bridle.functions import Excess, LogisticLoss
from bridle.limits.rates import FALSE_POSITIVES, OWN_RATE, RECALL, Cells, CountedRate, make_rate_level
from bridle.limits.thresholds import RateLimiter

pytest.importorskip("sklearn")
pytest.importorskip("river")


class Latency(NamedTuple):
    """An alarm costs 50 ms more than the 2 ms that every row takes."""

    at_most: float
    name = "latency"

    def bind(self, classes):
        return self

    def start(self, dim):
        return ()

    def reveal(self, memory, a, sign, group):
        return memory, Excess(LogisticLoss(a, -1.0 + 0.0 * sign, 50.0 / log(2.0) + 0.0 * sign), self.at_most - 2.0 + 0.0 * sign)


class QuietPositives(NamedTuple):
    """At most this share of the rows without an alarm are positives."""

    at_most: float

    def levels(self, classes, several, yields):
        rate = CountedRate(OWN_RATE, Cells(0.0, 1.0, 0.0, 1.0), Cells(0.0, 1.0, 0.0, 0.0), 1.0, 1.0)
        return (make_rate_level(rate, self.at_most, several=several, yields=yields),)


def rows(n=500):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    return X, X[:, 0] + rng.standard_normal(n) > 0.5


def scikit(limit):
    from bridle.adapters.sklearn import ConstrainedClassifier

    X, y = rows()
    model = ConstrainedClassifier(constraints=[limit]).fit(X, y)
    return model.limits_[0], model.predict(X).mean()


def river(limit):
    from bridle.adapters.river import ConstrainedClassifier

    X, y = rows()
    model = ConstrainedClassifier(constraints=[limit])
    names = "abc"
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(zip(names, row, strict=True)), label)
    alarms = [model.predict_one(dict(zip(names, row, strict=True))) for row in X.tolist()]
    return model.limits_[0], np.mean(alarms)


@pytest.mark.parametrize("estimator", [scikit, river])
def test_a_latency_is_held_on_average(estimator):
    report, alarms = estimator(Latency(at_most=20.0))
    assert (report.name, report.asked, report.counted) == ("latency", 20.0, 500)
    assert report.measured < 25.0
    assert 2.0 + 50.0 * alarms < 20.0
    _, more = estimator(Latency(at_most=60.0))
    assert alarms < more


@pytest.mark.parametrize("estimator", [scikit, river])
def test_a_rate_of_ones_own_is_kept_by_its_debt(estimator):
    report, _ = estimator(QuietPositives(at_most=0.05))
    assert report.name == "own rate"
    assert 0.0 == report.proved[0] <= report.measured <= report.proved[1]
    assert report.measured < 0.05 + 20.0 / report.counted
    loose, _ = estimator(QuietPositives(at_most=0.2))
    assert loose.measured > report.measured


class BothErrors(NamedTuple):
    """At most this share of the positives are missed, and of the negatives are alarms: on hard rows, one of the two yields."""

    at_most: float

    def levels(self, classes, several, yields):
        return tuple(make_rate_level(rate, self.at_most, several=several, yields=yields) for rate in (RECALL, FALSE_POSITIVES))


def test_two_rates_of_one_limit_know_of_each_other():
    limiter, rng = RateLimiter([BothErrors(0.05)]), np.random.default_rng(0)
    for _ in range(1500):
        limiter.learn(rng.normal(size=1), rng.integers(2, size=1))  # no score tells anything
    reports = limiter.limits_
    assert [report.name for report in reports] == ["recall", "false positive rate"]
    assert max(reports[0].asked - reports[0].measured, reports[1].measured - reports[1].asked) > 0.5
    assert all(report.proved[0] <= report.measured <= report.proved[1] for report in reports)
