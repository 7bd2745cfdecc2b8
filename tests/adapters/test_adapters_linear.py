"""The scikit-learn and river classifiers: the libraries' own checks, limits that hold, features that come and go, and bad input."""

from __future__ import annotations

import copy
import pickle
import warnings
from functools import partial, wraps

import numpy as np
import pytest
from river import checks, evaluate, metrics, preprocessing
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.utils import estimator_checks

from bridle import InputError, policies, records
from bridle.adapters import river, sklearn
from bridle.adapters.linear import LabelledRow, LinearModel, ModelSettings
from bridle.limits import GroupGap, MissLoss, Recall, WeightBudget

# Weights that are a policy's decisions in a ball; `test_free_learner.py` is about the learner without constants.
of_sklearn = partial(sklearn.ConstrainedClassifier, policy="anytime")
of_river = partial(river.ConstrainedClassifier, policy="anytime")

RARE = {"horizon": 4000, "lipschitz": 5.0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 4))
    y = X[:, 0] + 0.5 * rng.standard_normal(4000) > 1.8
    return X, y


def with_weights_compiled(monkeypatch):
    """The one check that learns a thousand passes, nine tenths of the time of all sixty, does so in compiled code."""
    check = estimator_checks.check_class_weight_classifiers
    monkeypatch.setattr(
        estimator_checks, check.__name__, wraps(check)(lambda name, model: check(name, clone(model).set_params(engine="compiled")))
    )


@pytest.mark.compiles
@pytest.mark.parametrize("settings", [{"policy": None}, {"scale": True}, {"policy": "sinha2024", "parameters": RARE}], ids=str)
def test_scikit_learn_takes_it_for_a_classifier(settings, monkeypatch):
    with_weights_compiled(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)  # checks for pandas, where it is not installed
        seen = estimator_checks.check_estimator(of_sklearn(**settings), on_fail="raise" if "parameters" not in settings else None)
    failed = {check["check_name"] for check in seen if check["status"] == "failed"}
    # 50 rows of which one class weighs ten million times the other are beyond a lipschitz of 5.
    assert failed <= ({"check_class_weight_classifiers"} if "parameters" in settings else set())
    assert sum(check["status"] == "passed" for check in seen) > 50


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        river.ConstrainedClassifier(),
        river.ConstrainedClassifier([Recall(0.9), MissLoss(True, 0.1)]),
        of_river(scale=True, constraints=[MissLoss(True, 0.1), WeightBudget(2.0)]),
        of_river(policy="sinha2024", parameters=RARE),
    ],
    ids=["free", "rates", "anytime", "sinha2024"],
)
def test_river_takes_it_for_a_classifier(model):
    names = []
    for check in checks.yield_checks(model):
        check(model.clone())
        names.append(check.__name__)
    assert {"check_emerging_features", "check_disappearing_features", "check_shuffle_features_no_impact"} <= set(names)


def test_a_limit_on_missed_losses_is_kept(rows):
    X, y = rows
    free = of_sklearn().fit(X, y)
    bound = of_sklearn([MissLoss(label=True, at_most=0.3)]).fit(X, y)
    assert bound.predict(X)[y].mean() > 0.95 > free.predict(X)[y].mean() + 0.1
    other = of_sklearn([MissLoss(label=False, at_most=0.01)]).fit(X, y)
    assert other.predict(X)[~y].mean() < free.predict(X)[~y].mean()


def test_a_limit_on_the_gap_between_groups_is_kept(rows):
    X, y = rows
    groups = np.where(X[:, 0] + X[:, 1] > 0.0, 1.0, 0.0)

    def gap(model):
        scores = model.decision_function(X)
        return abs(scores[groups > 0.0].mean() - scores[groups == 0.0].mean())

    free = of_sklearn().fit(X, y)
    bound = of_sklearn([GroupGap(at_most=0.1)]).fit(X, y, groups=groups)
    assert gap(bound) < 0.2 < 1.0 < gap(free)


def test_a_budget_of_weights_is_kept(rows):
    model = of_sklearn([WeightBudget(at_most=0.5)]).fit(*rows)
    assert 0.5 * (model.coef_ @ model.coef_.T + model.intercept_**2).item() < 0.55


def test_rows_in_pieces_are_the_rows_and_weights_count(rows):
    X, y = rows[0][:300], rows[1][:300]
    whole = of_sklearn([MissLoss(True, 0.3)]).fit(X, y)
    pieces = of_sklearn([MissLoss(True, 0.3)])
    for start in range(0, 300, 70):
        pieces.partial_fit(X[start : start + 70], y[start : start + 70], classes=[False, True])
    np.testing.assert_array_equal(pieces.coef_, whole.coef_)
    weighted = of_sklearn([MissLoss(True, 0.3)]).partial_fit(X, y, sample_weight=np.where(y, 2.0, 1.0))
    by_class = clone(whole).set_params(class_weight={True: 2.0}).fit(X, y)
    np.testing.assert_array_equal(weighted.coef_, by_class.coef_)
    assert not np.array_equal(weighted.coef_, whole.coef_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(whole)).predict_proba(X), whole.predict_proba(X))


def test_it_learns_in_a_pipeline_of_river(rows):
    X, y = rows
    stream = [({"a": row[0], "b": 100.0 * row[1] + 7.0}, bool(label)) for row, label in zip(X.tolist(), y, strict=True)]
    model = preprocessing.StandardScaler() | of_river(constraints=[MissLoss(label=True, at_most=0.3)])
    assert evaluate.progressive_val_score(stream, model, metrics.Recall()).get() > 0.9
    alone = of_river(constraints=[MissLoss(label=True, at_most=0.3)], scale=True)
    assert evaluate.progressive_val_score(stream, alone, metrics.Recall()).get() > 0.9


# --- rows learned in compiled code ------------------------------------------------------------------------------------------------------


@pytest.fixture
def plain(monkeypatch):
    """The engine without its compiler: what it writes is run as it stands."""
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")


LIMITS = [MissLoss(True, 0.2), GroupGap(0.5, lookback=5), WeightBudget(2.0)]


@pytest.mark.compiles
@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("limits", [None, LIMITS[:1], LIMITS], ids=["no limit", "one", "three"])
@pytest.mark.parametrize("settings", [{}, {"scale": True}, {"policy": "sinha2024", "parameters": RARE, "scale": True}], ids=str)
def test_compiled_rows_give_the_same_weights(rows, limits, settings):
    """Also where features come late or are missing, a group is not known, and what was learned is asked for, copied or pickled."""
    X, y = rows[0][:120], rows[1][:120]
    one, two = (of_river(limits, class_weight={True: 3.0}, engine=name, **settings) for name in ("python", "compiled"))
    for t, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        x = {f"f{i}": value for i, value in enumerate(row) if i < 2 or t > 40}
        if t % 7 == 0:
            x.pop("f0")
        group = None if limits is not LIMITS else np.nan if t % 11 == 0 else float(t % 2)
        for model in (one, two):
            model.learn_one(x, label, group)
        np.testing.assert_allclose(list(two.weights.values()), list(one.weights.values()), rtol=1e-9, atol=1e-12)
        assert two.predict_proba_one(x)[True] == pytest.approx(one.predict_proba_one(x)[True], rel=1e-9)
        if t == 60:
            two = pickle.loads(pickle.dumps(two))
        if t == 80:
            two = copy.deepcopy(two)
    assert two._model.models[0]._compiled is not None
    assert two._model.models[0]._compiled.ahead
    close_to(two._model.models[0].held, one._model.models[0].held)
    assert two.clone().engine == "compiled"


def close_to(a, b):
    for (name, left), right in zip(records.leaves(a).items(), records.leaves(b).values(), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-10, err_msg=name)


@pytest.mark.compiles
def test_rows_are_learned_in_compiled_code_and_tables_after_them(rows):
    X, y = rows[0][:300], rows[1][:300]
    signs = np.where(y, 1.0, -1.0)
    one, two = (
        LinearModel(4, ModelSettings((False, True), [MissLoss(True, 0.3)], "anytime", scale=True), name) for name in ("python", "compiled")
    )
    for model in (one, two):
        for row, sign in zip(X[:100], signs[:100], strict=True):
            model.take(LabelledRow(row, sign, 1.0))
        model.take_many(LabelledRow(X[100:200], signs[100:200], np.ones(100)))
        for row, sign in zip(X[200:], signs[200:], strict=True):
            model.take(LabelledRow(row, sign, 1.0))
    np.testing.assert_allclose(two.weights, one.weights, rtol=1e-9)
    close_to(two.held, one.held)


@pytest.mark.compiles
@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("x", [{"a": np.nan, "b": 1.0}, {"a": "high", "b": 1.0}, {"a": 1e60, "b": 1.0}, {"a": -np.inf, "b": 1.0}], ids=str)
def test_a_row_that_cannot_be_learned_changes_nothing_in_compiled_code_either(x):
    model = of_river(engine="compiled", scale=True)
    for t in range(5):
        model.learn_one({"a": float(t), "b": 2.0}, t % 2 == 0)
    before = pickle.dumps((model.weights, model._model.models[0].held))
    with pytest.raises(InputError, match=r"x\['a'\]"):
        model.learn_one(x, True)
    assert pickle.dumps((model.weights, model._model.models[0].held)) == before


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("engine_name", ["python", "compiled"])
def test_rows_without_any_feature_are_learned(engine_name, scale):
    """They are not forgotten when features come."""
    late, known = (of_river([WeightBudget(2.0)], scale=scale, engine=name) for name in (engine_name, "python"))
    for t in range(40):
        x = {"a": float(t % 3), "b": 1.0 - t % 2} if t >= 10 else {}
        late.learn_one(x, t % 4 != 0)
        known.learn_one(x or {"a": 0.0, "b": 0.0}, t % 4 != 0)
        assert late.intercept == pytest.approx(known.intercept, rel=1e-9, abs=1e-12) != 0.0
    assert late.weights == pytest.approx(known.weights, rel=1e-9)


def test_engines_that_learn_no_single_rows():
    with pytest.raises(InputError, match="unknown engine 'jax'; known: compiled, python"):
        of_river(engine="jax")


# --- features that appear late ------------------------------------------------------------------------------------------------------


def learned(policy, parameters, features, table, signs):
    """The weights after rows of which the last features are 0 in the first half: known from the start, or grown into."""
    limit = [MissLoss(label=True, at_most=0.2), GroupGap(0.5, lookback=5)]
    model = LinearModel(features, ModelSettings((False, True), limit, policy, parameters, 2.0, True))
    half = len(table) // 2
    for t, (row, sign) in enumerate(zip(table, signs, strict=True)):
        if t == half:
            model.grow(table.shape[1])
        model.take(LabelledRow(row[: model.features], sign, 1.0, float(t % 2)))
    return model.weights


GIVEN = {
    "horizon": 60, "lipschitz": 5.0, "modulus": 0.1, "bound": 5.0, "slater": 0.1, "diameter": 4.0, "window": 10, "exp_concavity": 0.1,
}  # fmt: skip


BALLS = [name for name in policies.names() if not (policies.entry(name).domains or policies.entry(name).feedback.startswith("values"))]
"""The policies that play on a ball and see gradients."""


@pytest.mark.parametrize("name", BALLS)
def test_a_feature_that_comes_late_was_zero_before(name):
    parameters = {p.name: GIVEN[p.name] for p in policies.parameters(name) if p.required}
    rng = np.random.default_rng(1)
    table, signs = rng.standard_normal((60, 6)), np.where(rng.random(60) > 0.5, 1.0, -1.0)
    table[:30, 3:] = 0.0
    known = learned(name, parameters, 6, table, signs)
    if name in ("ftpl", "ons"):  # draws for every direction that it knows; a ridge for their number
        with pytest.raises(InputError, match="cannot take on features"):
            learned(name, parameters, 3, table, signs)
        return
    np.testing.assert_allclose(learned(name, parameters, 3, table, signs), known, atol=1e-7)


# --- bad input ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"policy": "anytimes"}, "did you mean anytime"),
        ({"policy": "sinha2024"}, "needs horizon"),
        ({"parameters": {"V": [1.0, 2.0]}}, "stand for 2 runs"),
        ({"radius": 0.0}, "radius must be above 0"),
        ({"constraints": [0.1]}, "constraints must hold limits"),
        ({"constraints": [MissLoss("fraud")]}, "label must be one of the classes"),
        ({"class_weight": {2: 1.0}}, "class in class_weight"),
        ({"class_weight": "balanced"}, "class_weight must be a dict"),
        ({"constraints": [GroupGap()]}, "groups must be given"),
        ({"engine": "fortran"}, "engine"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_what_cannot_be_used_is_refused(rows, settings, said):
    with pytest.raises(InputError, match=said):
        of_sklearn(**settings).fit(rows[0][:20], np.arange(20) % 2 == 0)


@pytest.mark.parametrize(
    ("x", "y"), [({"a": np.nan}, True), ({"a": "high"}, True), ({"a": None}, True), ({"a": 1e60}, True), ({"a": 1.0}, 7)]
)
def test_a_row_that_cannot_be_learned_changes_nothing(x, y):
    model = of_river()
    model.learn_one({"a": 1.0, "b": 2.0}, True)
    before = pickle.dumps(model.weights)
    with pytest.raises(InputError, match=r"x\['a'\]|y must"):
        model.learn_one(x, y)
    assert pickle.dumps(model.weights) == before
    with pytest.raises(InputError, match="at_most"):
        MissLoss(at_most=0.0)
