"""More than two classes: one model for each against the others, rates about one of them, in both libraries."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from river import checks, datasets, metrics

from bridle import InputError
from bridle.adapters import river, sklearn
from bridle.limits import FalsePositiveRate, GroupGap, MissLoss, Recall

NAMES = np.array(["low", "middle", "top"])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((800, 3))
    return X, NAMES[np.digitize(X[:, 0] + 0.3 * rng.standard_normal(800), [-0.5, 1.0])]


@pytest.mark.slow
def test_each_class_has_the_model_that_it_would_have_alone(rows):
    X, y = rows
    model = sklearn.ConstrainedClassifier(class_weight={"top": 3.0}).fit(X, y)
    for place, name in enumerate(model.classes_):
        alone = sklearn.ConstrainedClassifier().partial_fit(X, y == name, sample_weight=np.where(y == "top", 3.0, 1.0))
        np.testing.assert_array_equal(model.coef_[place], alone.coef_[0])
        np.testing.assert_array_equal(model.decision_function(X)[:, place], alone.decision_function(X))
    alone = 1.0 / (1.0 + np.exp(-model.decision_function(X)))
    np.testing.assert_allclose(model.predict_proba(X), alone / alone.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(model.predict_proba(X), axis=1)])
    assert model.score(X, y) > 0.75


@pytest.mark.slow
def test_a_rate_about_one_class_is_measured_on_what_is_predicted(rows):
    X, y = rows
    limits = [FalsePositiveRate(0.3), Recall(0.95, label="top")]
    one, said = river.ConstrainedClassifier(limits, classes=NAMES.tolist(), priority=1), []
    for row, label in zip(X, y.tolist(), strict=True):
        x = {str(i): float(value) for i, value in enumerate(row)}
        said.append(one.predict_one(x))
        one.learn_one(x, label)
    said = np.array(said)
    false_alarms, recall = one.limits_
    assert recall.name == "recall"
    assert recall.measured == pytest.approx((said[y == "top"] == "top").mean(), abs=1e-12)
    assert false_alarms.measured == pytest.approx((said[y != "top"] == "top").mean(), abs=1e-12)
    assert abs(recall.measured - 0.95) < 0.02
    assert {"low", "middle"} <= set(said[y != "top"])
    table = sklearn.ConstrainedClassifier(limits, priority=1).fit(X, y)
    assert [report.measured for report in table.limits_] == pytest.approx([false_alarms.measured, recall.measured], abs=1e-12)
    before = table.predict(X[:200])
    table.partial_fit(X[:200], y[:200])
    found = (before[y[:200] == "top"] == "top").sum() + recall.measured * (y == "top").sum()
    assert table.limits_[1].measured == pytest.approx(found / ((y == "top").sum() + (y[:200] == "top").sum()), abs=1e-12)
    ticket = table.ask(X[:1])[0]
    assert ticket.alarm == (ticket.label == "top")
    table.partial_fit(X[:1], y[:1], tickets=[ticket])
    assert pickle.loads(pickle.dumps(table)).limits_ == table.limits_


@pytest.mark.slow
def test_limits_on_losses_go_to_their_classes(rows):
    X, y = rows
    groups = np.where(X[:, 1] > 0.0, 1.0, 0.0)
    model = sklearn.ConstrainedClassifier([GroupGap(0.1), MissLoss("top", 0.2)]).fit(X, y, groups=groups)
    names = [report.name for report in model.limits_]
    assert names == ["gap of mean scores of 'low'", "gap of mean scores of 'middle'", "gap of mean scores of 'top'", "mean loss of 'top'"]
    assert model.limits_[3].counted == (y == "top").sum()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"constraints": [Recall(0.9)]}, "about one class where there are more than two: name it as label="),
        ({"constraints": [Recall(0.9, label="low"), FalsePositiveRate(0.1)], "label": "top"}, "not about"),
        ({"constraints": [FalsePositiveRate(0.1)], "label": "tops"}, "label must be one of the classes"),
        ({"constraints": [MissLoss("fraud")]}, "label must be one of the classes"),
        ({"class_weight": {"tops": 2.0}}, "class in class_weight"),
    ],
)
def test_what_many_classes_cannot_use_is_refused(rows, settings, said):
    with pytest.raises(InputError, match=said):
        sklearn.ConstrainedClassifier(**settings).fit(*rows)


def test_classes_of_river_are_named():
    for classes in ([1], ["a", "a"]):
        with pytest.raises(InputError, match="classes must name two different classes or more"):
            river.ConstrainedClassifier(classes=classes)
    model = river.ConstrainedClassifier(classes=["no", "yes"], class_weight={"yes": 2.0})
    model.learn_one({"a": 1.0}, "yes")
    with pytest.raises(InputError, match="y must be one of the classes"):
        model.learn_one({"a": 1.0}, True)
    assert set(model.predict_proba_one({"a": 1.0})) == {"no", "yes"}


@pytest.mark.slow
def test_river_takes_it_for_a_classifier_of_many_classes():
    """Some of river's checks: with seven classes each takes seconds."""
    classes = [*sorted({y for _, y in datasets.ImageSegments()}), False, True]  # of all streams that river checks with
    model, right = river.ConstrainedClassifier(classes=classes), metrics.Accuracy()
    assert model._multiclass
    wanted = {"check_pickling", "check_predict_proba_one_binary", "check_clone_is_independent"}
    for check in checks.yield_checks(model):
        if check.__name__ in wanted:
            check(model.clone())
    for x, y in datasets.ImageSegments().take(500):
        right.update(y, model.predict_one(x))
        model.learn_one(x, y)
    assert right.get() > 0.75
