"""Rates in the scikit-learn and river classifiers: what is counted is what was predicted, late classes, budgets, groups, and bad input."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from river import evaluate, metrics, preprocessing
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from bridle import InputError
from bridle.adapters import linear, river, sklearn
from bridle.limits import (
    AlertBudget,
    AlertRate,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FalsePositiveRate,
    MissLoss,
    Precision,
    Recall,
)
from bridle.limits.debts import FLOOR
from helpers.rate_streams import quiet_positives


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1500, 3))
    return X, X[:, 0] + 0.5 * rng.standard_normal(1500) > 1.0, np.where(X[:, 1] > 0.0, 1.0, 0.0)


def as_dict(row):
    return {str(i): float(value) for i, value in enumerate(row)}


RATES = [Recall(0.9), FalsePositiveRate(0.1), AlertRate(0.2), Precision(0.6), EqualOpportunity(0.05), DemographicParity(0.05)]


def measured_by_hand(limit, alarms, y, groups):
    alarms, y = np.array(alarms), np.asarray(y)
    name = type(limit).__name__
    if name == "Recall":
        return alarms[y].mean()
    if name == "FalsePositiveRate":
        return alarms[~y].mean()
    if name == "AlertRate":
        return alarms.mean()
    if name == "Precision":
        return y[alarms].mean()
    counts = y if name == "EqualOpportunity" else np.ones(len(y), dtype=bool)
    return abs(alarms[counts & (groups > 0)].mean() - alarms[counts & (groups == 0)].mean())


@pytest.mark.parametrize("limit", RATES, ids=lambda limit: type(limit).__name__)
def test_what_is_measured_is_what_was_predicted_row_by_row(rows, limit):
    X, y, groups = (part[:400] for part in rows)
    model, alarms = river.ConstrainedClassifier([limit], group="g"), []
    for row, label, group in zip(X, y.tolist(), groups.tolist(), strict=True):
        x = {**as_dict(row), "g": group}
        before = copy.deepcopy(model)
        alarms.append(model.predict_one(x))
        assert model.predict_one(x) == alarms[-1] == before.predict_one(x)  # predicting changes nothing
        model.learn_one(x, label)
    assert model.limits_[0].measured == pytest.approx(measured_by_hand(limit, alarms, y, groups), abs=1e-12)
    table = sklearn.ConstrainedClassifier([limit]).fit(X, y, groups=groups)
    assert table.limits_[0].measured == pytest.approx(model.limits_[0].measured, abs=1e-12)


@pytest.mark.parametrize("limit", RATES, ids=lambda limit: type(limit).__name__)
def test_what_is_measured_in_batches_is_what_was_predicted_before_each(rows, limit):
    X, y, groups = rows
    first = 300
    model = sklearn.ConstrainedClassifier([limit]).partial_fit(X[:first], y[:first], groups=groups[:first])
    alone = river.ConstrainedClassifier([limit])
    alarms = []
    for row, label, group in zip(X[:first], y[:first].tolist(), groups[:first].tolist(), strict=True):
        alarms.append(alone.predict_one(as_dict(row), group=group))  # the first call counts row by row
        alone.learn_one(as_dict(row), label, group=group)
    for start in range(first, len(X), 100):
        part = slice(start, start + 100)
        alarms.extend(model.predict(X[part], groups=groups[part]).tolist())
        model.partial_fit(X[part], y[part], groups=groups[part])
    assert model.limits_[0].measured == pytest.approx(measured_by_hand(limit, alarms, y, groups), abs=1e-12)


def test_a_rate_comes_out_within_its_identity_in_every_window(rows):
    X, y, _ = rows
    model, missed, debts = river.ConstrainedClassifier([Recall(0.8)]), [], [0.0]
    for row, label in zip(X, y.tolist(), strict=True):
        alarm = model.predict_one(as_dict(row))
        model.learn_one(as_dict(row), label)
        if label:
            missed.append(not alarm)
            debts.append(model.limits_[0].seen["debt"])
    sums = np.concatenate([[0.0], np.cumsum(missed)])
    for begin in range(0, len(missed), 37):
        n = np.arange(len(sums) - begin)
        np.testing.assert_allclose(sums[begin:] - sums[begin] - 0.2 * n, np.array(debts[begin:]) - debts[begin], atol=1e-9)
    assert abs(model.limits_[0].measured - 0.8) < 0.03


ONE_SIDED = [Precision(0.5), quiet_positives(0.3)]


@pytest.mark.parametrize("limit", [*ONE_SIDED, AlertRate(0.05), Recall(0.6)], ids=lambda limit: type(limit).__name__)
def test_what_is_proved_contains_what_was_measured(limit):
    """A long good time, then a bad one: row by row, in batches, and with classes that come late."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2400, 2))
    y = np.where(np.arange(2400) < 1200, X[:, 0] > -2.0, X[:, 0] > 2.0)
    batches, late = sklearn.ConstrainedClassifier([limit]), river.ConstrainedClassifier([limit])
    waiting, alarms, reports = [], [], []
    batches.partial_fit(X[:1200], y[:1200])
    for begin in range(1200, 2400, 100):
        alarms.extend(batches.predict(X[begin : begin + 100]))
        batches.partial_fit(X[begin : begin + 100], y[begin : begin + 100])
        reports.append(batches.limits_[0])
    for t, (row, label) in enumerate(zip(X, y.tolist(), strict=True)):
        waiting.append((as_dict(row), label, late.ask_one(as_dict(row))))
        if t >= 30:
            x, known, ticket = waiting.pop(0)
            late.learn_one(x, known, ticket=ticket)
        if t % 200 == 199:
            reports.append(late.limits_[0])
    for report in reports:
        assert report.proved[0] <= report.measured <= report.proved[1]
        assert json.loads(json.dumps(report.json()))["proved"] == list(report.proved)
        if limit in ONE_SIDED:
            assert report.seen["debt"] >= FLOOR
            assert report.proved[1 if limit == ONE_SIDED[0] else 0] == (1.0 if limit == ONE_SIDED[0] else 0.0)
    if limit == ONE_SIDED[0]:  # false alarms less true ones, halved, take the debt from -20 to 80 + 0.5 + 99 at most
        assert (np.array(alarms) & ~y[1200:]).sum() <= 399 + y[1200:].sum()


def test_a_batch_of_alarms_is_within_what_is_proved(rows):
    """An alert rate reads no classes, but the rows of a call are decided before the first of them is counted."""
    X, y, _ = rows
    model = sklearn.ConstrainedClassifier([AlertRate(0.05)]).partial_fit(X[:400], y[:400])
    model.partial_fit(X[400:] + np.array([6.0, 0.0, 0.0]), y[400:])
    [report] = model.limits_
    assert 0.5 < report.measured <= report.proved[1]


@pytest.mark.slow
@pytest.mark.compiles
@pytest.mark.parametrize("engine", ["jax", "compiled"])
@pytest.mark.parametrize("limit", [Precision(0.2), quiet_positives(0.8)], ids=lambda limit: type(limit).__name__)
def test_engines_have_the_same_floor(limit, engine, monkeypatch):
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")  # without its compiler: what it writes is run as it stands
    X = np.random.default_rng(4).standard_normal((150, 2))
    y = X[:, 0] > (-3.0 if limit == Precision(0.2) else 3.0)
    y[0] = not y[1]
    [one], [two] = (sklearn.ConstrainedClassifier([limit], engine=each).fit(X, y).limits_ for each in ("python", engine))
    assert one.seen["debt"] == two.seen["debt"] == FLOOR
    assert (one.measured, one.proved) == (two.measured, two.proved)


def test_probabilities_stay_the_models_own(rows):
    X, y, _ = rows
    plain, bound = (sklearn.ConstrainedClassifier(limits).fit(X, y) for limits in (None, [Recall(0.95)]))
    np.testing.assert_array_equal(plain.predict_proba(X), bound.predict_proba(X))
    np.testing.assert_array_equal(plain.predict(X), plain.predict_proba(X)[:, 1] > 0.5)
    assert bound.predict(X)[y].mean() > plain.predict(X)[y].mean() + 0.1
    cut = bound.limits_[0].seen["threshold"]
    np.testing.assert_array_equal(bound.predict(X), bound.decision_function(X) > cut)


def test_a_policys_weights_keep_their_rates_too(rows):
    X, y, _ = rows
    model = sklearn.ConstrainedClassifier([Recall(0.9)], policy="anytime").fit(X, y)
    free = sklearn.ConstrainedClassifier(policy="anytime").fit(X, y)
    np.testing.assert_allclose(model.coef_, free.coef_, atol=1e-9)
    assert abs(model.limits_[0].measured - 0.9) < 0.02


def test_rivers_own_evaluation_measures_the_same(rows):
    X, y, _ = rows
    stream = [(as_dict(row), label) for row, label in zip(X, y.tolist(), strict=True)]
    for model in (river.ConstrainedClassifier([Recall(0.9)]), preprocessing.StandardScaler() | river.ConstrainedClassifier([Recall(0.9)])):
        score = evaluate.progressive_val_score(stream, model, metrics.Recall()).get()
        last = model.steps["ConstrainedClassifier"] if hasattr(model, "steps") else model
        assert score == pytest.approx(last.limits_[0].measured, abs=1e-12)


def test_two_limits_that_cannot_be_had_together_say_so(rows):
    X, y, _ = rows
    limits = [Recall(0.95), FalsePositiveRate(0.01)]
    for priority in (0, 1):
        reports = sklearn.ConstrainedClassifier(limits, priority=priority).fit(X, y).limits_
        assert abs(reports[priority].measured - reports[priority].asked) < 0.03
        assert abs(reports[1 - priority].measured - reports[1 - priority].asked) > 0.1
        assert "cannot be had together" in reports[1 - priority].words


# --- late classes ---


def test_a_row_answered_at_once_is_a_row_learned(rows):
    X, y, _ = rows
    one, two = (river.ConstrainedClassifier([Recall(0.9), FalsePositiveRate(0.2)]) for _ in range(2))
    for row, label in zip(X[:300], y[:300].tolist(), strict=True):
        one.learn_one(as_dict(row), label)
        two.learn_one(as_dict(row), label, ticket=two.ask_one(as_dict(row)))
    assert one.weights == two.weights
    assert one.limits_ == two.limits_


@pytest.mark.parametrize("delay", [50, 300])
def test_late_classes_count_what_was_answered(rows, delay):
    X, y, _ = rows
    model, waiting, answers = river.ConstrainedClassifier([Recall(0.8)]), [], []
    order = np.random.default_rng(2)
    for row, label in zip(X, y.tolist(), strict=True):
        ticket = model.ask_one(as_dict(row))
        assert ticket.label == ticket.alarm
        waiting.append((as_dict(row), label, ticket))
        if len(waiting) > delay:
            x, known, ticket = waiting.pop(int(order.integers(len(waiting))))
            model.learn_one(x, known, ticket=ticket)
            answers.append((known, ticket.alarm))
    (report,) = model.limits_
    assert report.open == delay
    assert report.counted == sum(known for known, _ in answers)
    assert report.measured == pytest.approx(np.mean([alarm for known, alarm in answers if known]), abs=1e-12)
    assert abs(report.measured - 0.8) < 0.06
    before = report.measured
    for _, _, ticket in waiting:
        model.forget_one(ticket)
    (report,) = model.limits_
    assert (report.open, report.measured) == (0, before)
    assert model.limits_[0].seen["debt"] == pytest.approx((1.0 - before - 0.2) * report.counted, abs=1e-9)


def test_tickets_of_scikit_learn(rows):
    X, y, groups = rows
    model = sklearn.ConstrainedClassifier([EqualOpportunity(0.05), Recall(0.9)]).fit(X[:600], y[:600], groups=groups[:600])
    with pytest.raises(InputError, match="groups must be given"):
        model.ask(X[600:700])
    asked = model.ask(X[600:700], groups=groups[600:700])
    found, counted = model.limits_[1].measured * y[:600].sum(), y[:600].sum()
    assert model.limits_[1].open == 100
    copied = pickle.loads(pickle.dumps(model))
    for each in (model, copied):
        each.partial_fit(X[640:690], y[640:690], tickets=[ticket.id for ticket in asked[40:90]])
        each.forget(asked[:40] + asked[90:])
    right = sum(ticket.alarm for ticket, label in zip(asked[40:90], y[640:690], strict=True) if label)
    assert model.limits_[1].measured == pytest.approx((found + right) / (counted + y[640:690].sum()))
    assert model.limits_ == copied.limits_
    np.testing.assert_array_equal(model.coef_, copied.coef_)
    for bad in ([asked[0]], [999], ["one"]):
        with pytest.raises(InputError, match="ticket must be one that waits"):
            model.partial_fit(X[:1], y[:1], tickets=bad)
    again = model.ask(X[:2], groups=groups[:2])
    with pytest.raises(InputError, match="tickets must be 2 different ones"):
        model.partial_fit(X[:2], y[:2], tickets=[again[0], again[0]])
    with pytest.raises(InputError, match="ticket must be one that waits"):
        model.forget([again[0], 999])
    assert model.limits_[1].open == 2


def test_so_many_rows_may_wait_and_no_more(monkeypatch):
    monkeypatch.setattr(linear, "MOST_OPEN", 3)
    model = river.ConstrainedClassifier([Recall(0.9)])
    asked = [model.ask_one({"a": 1.0}) for _ in range(3)]
    with pytest.raises(InputError, match="3 rows wait for their classes already: give these, or forget some"):
        model.ask_one({"a": 1.0})
    model.forget_one(asked[1])
    model.ask_one({"a": 2.0})
    with pytest.raises(InputError, match="ticket must be one that waits for its class, not 2"):
        model.learn_one({"a": 1.0}, True, ticket=asked[1])


# --- budgets and groups ---


def test_a_budget_is_never_overspent(rows):
    X, y, _ = rows
    days = np.floor(np.arange(len(X)) / 70.0)
    one = river.ConstrainedClassifier([AlertBudget(4)], period="day")
    alarms = []
    for row, label, day in zip(X, y.tolist(), days.tolist(), strict=True):
        x = {**as_dict(row), "day": day}
        alarms.append(one.predict_one(x))
        one.learn_one(x, label)
    spent = np.bincount(days.astype(int), weights=alarms)
    assert spent.max() == 4.0 == one.limits_[0].seen.get("most", 4.0)
    assert "day" not in one.weights
    batches = sklearn.ConstrainedClassifier([AlertBudget(4)]).partial_fit(X[:140], y[:140], periods=days[:140])
    spent = []
    for start in range(140, len(X), 35):  # half a day each
        part = slice(start, start + 35)
        spent.append(batches.predict(X[part], periods=days[part]).sum())
        batches.partial_fit(X[part], y[part], periods=days[part])
    spent += [0] * (len(spent) % 2)
    assert np.reshape(spent, (-1, 2)).sum(axis=1).max() <= 4
    with pytest.raises(InputError, match="period must not go backward"):
        batches.partial_fit(X[:2], y[:2], periods=[0.0, 1.0])
    with pytest.raises(InputError, match="period must be given"):
        batches.predict(X[:2])


def test_groups_are_asked_for_checked_and_missed(rows):
    X, y, groups = rows
    model = sklearn.ConstrainedClassifier([EqualizedOdds(0.05, groups=[0, 1])])
    with pytest.raises(InputError, match="group must be one of 0, 1, or nan for none, not 2"):
        model.fit(X, y, groups=groups * 2.0)
    model.fit(X[:300], y[:300], groups=np.zeros(300))
    assert all("no counted row of group 1 has come" in report.words and report.measured is None for report in model.limits_)
    before = pickle.dumps(model)
    with pytest.raises(InputError, match="groups must be given"):
        model.partial_fit(X, y)
    with pytest.raises(InputError, match=r"groups must have shape \(2,\)"):
        model.predict(X[:2], groups=[1.0])
    assert pickle.dumps(model) == before
    one = river.ConstrainedClassifier([EqualOpportunity(0.05)], group="g")
    with pytest.raises(InputError, match="groups must be given"):
        one.learn_one({"a": 1.0}, True)
    with pytest.raises(InputError, match="group must be a number"):
        one.learn_one({"a": 1.0, "g": "men"}, True)
    assert one.weights == {}


# --- what is said ---


def test_a_fitted_model_shows_its_limits(rows):
    X, y, _ = rows
    unfitted = sklearn.ConstrainedClassifier([Recall(0.9)])
    assert repr(unfitted).count("\n") == 0
    with pytest.raises(NotFittedError):
        _ = unfitted.limits_
    model = clone(unfitted).fit(X[:300], y[:300])
    assert repr(unfitted) == repr(model).splitlines()[0]
    assert "recall" in repr(model).splitlines()[2]
    assert model._repr_html_()
    assert repr(sklearn.ConstrainedClassifier().fit(X[:300], y[:300])) == "ConstrainedClassifier()"
    one = river.ConstrainedClassifier([Recall(0.9)])
    assert "measured" not in repr(one)
    one.learn_one({"a": 1.0}, True)
    assert "measured" in repr(one)
    assert one.limits_[0].json()["counted"] == 1


@pytest.mark.parametrize("limit", [Recall(0.9), FalsePositiveRate(0.05), Precision(0.7), AlertBudget(5, per=100)])
def test_rates_are_about_the_class_that_is_named_whatever_its_place(rows, limit):
    X, y, _ = rows
    second = sklearn.ConstrainedClassifier([limit]).fit(X, np.where(y, "x fraud", "fine"))
    first = sklearn.ConstrainedClassifier([limit], label="a fraud").fit(X, np.where(y, "a fraud", "fine"))
    one, other = first.limits_[0], second.limits_[0]
    assert (one.name, one.measured, one.recent, one.counted, one.words) == (
        other.name,
        other.measured,
        other.recent,
        other.counted,
        other.words,
    )
    assert ((first.predict(X) == "a fraud") == (second.predict(X) == "x fraud")).all()
    assert all(ticket.alarm == (ticket.label == "a fraud") for ticket in first.ask(X[:50]))
    with pytest.raises(InputError, match="label must be one of the classes"):
        sklearn.ConstrainedClassifier([limit], label="frauds").fit(X, y)


def test_a_fit_that_fails_leaves_what_was_learned(rows):
    X, y, groups = rows
    model = sklearn.ConstrainedClassifier([EqualOpportunity(0.05)])
    for fails in (model.fit, model.partial_fit):
        with pytest.raises(InputError, match="groups must be given"):
            fails(X, y)
        assert not hasattr(model, "model_")
    before = model.fit(X, y, groups).coef_
    with pytest.raises(InputError, match="groups must be given"):
        model.fit(X[:, :1], y)
    assert (model.coef_ == before).all()
    assert (model.predict(X, groups) == model.partial_fit(X[:1], y[:1], groups=groups[:1]).predict(X, groups)).mean() > 0.5


@pytest.mark.parametrize("settings", [{}, {"policy": "anytime"}])
def test_a_limit_on_a_loss_says_what_it_does_to_the_rates(rows, settings):
    X, y = rows[0][:300], rows[1][:300]
    limit = MissLoss(label=False, at_most=0.01)  # so few false alarms that hardly anything is found
    row_by_row, at_once = (sklearn.ConstrainedClassifier([limit], **settings) for _ in range(2))
    said = []
    for i in range(len(X)):
        said.append(bool(i and row_by_row.predict(X[i : i + 1])[0]))
        row_by_row.partial_fit(X[i : i + 1], y[i : i + 1], classes=[False, True])
    seen = at_once.fit(X, y).limits_[0].seen
    assert seen == row_by_row.limits_[0].seen
    assert seen["recall"] == np.array(said)[y].mean() < 0.5
    assert f"recall {seen['recall']:.3g}, false positive rate" in at_once.limits_[0].words
