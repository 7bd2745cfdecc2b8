"""The regressors: a quantile held on every stream, an error rate, engines, late features, and the libraries' own checks."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import checks, datasets, linear_model, metrics, preprocessing
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

from bridle import InputError
from bridle.adapters import river, sklearn
from bridle.limits import ErrorRate, Quantile, Recall
from bridle.limits.quantiles import Offset, largest_debt


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((2000, 3))
    return X, 40.0 + 10.0 * X[:, 0] + 5.0 * rng.exponential(1.0, 2000)


# --- the offset ---------------------------------------------------------------------------------------------------------------------------


def held(residuals, level):
    limit = Offset(level)
    state, above = limit.start(), []
    for t, residual in enumerate(residuals):
        offset = limit.offset(state)
        residual = residual(offset, t) if callable(residual) else residual
        above.append(residual > offset)
        state = limit.learn(state, residual)
        n = t + 1.0
        assert sum(above) == pytest.approx((1.0 - level) * n + state.owed.debt - state.owed.forgiven, abs=1e-6)
        assert state.owed.debt <= largest_debt(0.05, float(state.first), float(state.widest)) + 1e-9
    return np.array(above), state


@given(st.integers(0, 10**6), st.floats(0.05, 0.95), st.floats(1e-6, 1e6))
def test_a_debt_counts_rows_above_whatever_comes(seed, level, unit):
    rng = np.random.default_rng(seed)
    drift = np.cumsum(rng.standard_normal(150)) * rng.choice([0.0, 1.0, 30.0])
    residuals = unit * (rng.standard_t(1.5, 150) + drift)
    above, _ = held(residuals.tolist(), level)
    np.testing.assert_array_equal(above, held((1e3 * residuals).tolist(), level)[0])  # no unit


def test_an_adversary_cannot_go_beyond_the_bound_and_comes_near_it():
    """It stays above the offset as long as it may without growing, then grows: each doubling buys one row."""
    within = [lambda offset, t: min(offset + 1e-9, 1.0) if offset < 1.0 else -1.0] * 3000
    above, state = held(within, 0.9)
    assert above.mean() <= 0.1 + largest_debt(0.05, float(state.first), float(state.widest)) / 3000
    growing = [lambda offset, t: abs(offset) * 1.001 + 1.0] * 200
    above, state = held(growing, 0.9)
    assert above.all()
    assert 81.0 < state.owed.debt <= largest_debt(0.05, float(state.first), float(state.widest))


def test_slack_is_not_hoarded():
    """After a long time without a row above, a change is answered within some hundred rows."""
    rng = np.random.default_rng(5)
    residuals = np.concatenate([np.zeros(5000), 1.0 + rng.standard_normal(1500)])
    above, _ = held(residuals.tolist(), 0.9)
    assert above[5700:].mean() < 0.2


def test_a_quantile_follows_drift():
    rng = np.random.default_rng(6)
    residuals = rng.standard_normal(4000) * np.where(np.arange(4000) < 2000, 1.0, 6.0) + np.where(np.arange(4000) < 3000, 0.0, 10.0)
    above, _ = held(residuals.tolist(), 0.95)
    for start in range(0, 4000, 500):
        assert abs(above[start : start + 500].mean() - 0.05) < 0.05


# --- the estimators -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_measured_is_what_was_predicted(rows):
    X, y = rows[0][:600], rows[1][:600]
    for level in (0.9, 0.3):
        model, above = river.ConstrainedRegressor([Quantile(level), ErrorRate(beyond=8.0, at_most=0.2)]), []
        wrong = []
        for row, target in zip(X, y.tolist(), strict=True):
            x = {str(i): float(value) for i, value in enumerate(row)}
            said = model.predict_one(x)
            above.append(target > said)
            wrong.append(abs(target - said) > 8.0)
            model.learn_one(x, target)
        share, errors = model.limits_
        assert share.measured == pytest.approx(np.mean(above), abs=1e-12)
        assert errors.measured == pytest.approx(np.mean(wrong), abs=1e-12)
        assert share.proved[1] >= share.measured
        assert abs(np.mean(above[200:]) - (1.0 - level)) < 0.04
        table = sklearn.ConstrainedRegressor([Quantile(level), ErrorRate(beyond=8.0, at_most=0.2)]).fit(X, y)
        assert [report.measured for report in table.limits_] == pytest.approx([share.measured, errors.measured], abs=1e-12)
        assert errors.proved is None
        assert errors.why


@pytest.mark.slow
def test_an_error_rate_makes_large_errors_rarer():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((2000, 3))
    y = 3.0 * X[:, 0] + 2.0 * rng.exponential(1.0, 2000)
    bound = sklearn.ConstrainedRegressor([ErrorRate(beyond=1.0, at_most=0.1)]).fit(X, y)
    free = sklearn.ConstrainedRegressor().fit(X, y)
    shares = [(abs(model.predict(X[1400:]) - y[1400:]) > 1.0).mean() for model in (bound, free)]
    assert shares[0] < shares[1] - 0.05
    assert bound.limits_[0].price > 0.0


def test_units_of_targets_and_features_do_not_matter(rows):
    X, y = rows[0][:500], rows[1][:500]
    one, two = sklearn.ConstrainedRegressor([Quantile(0.8)]).fit(X, y), sklearn.ConstrainedRegressor([Quantile(0.8)])
    two.fit(X * [1e-5, 1e5, 3.0] + 2.0, 1e6 * y - 5e6)
    np.testing.assert_allclose(two.predict(X * [1e-5, 1e5, 3.0] + 2.0), 1e6 * one.predict(X) - 5e6, rtol=1e-6)


def test_one_wild_target_does_no_lasting_harm(rows):
    X, y = rows
    wild = y.copy()
    wild[300] = 1e9
    model = sklearn.ConstrainedRegressor().fit(X[:300], y[:300])
    model.partial_fit(X[300:301], wild[300:301])
    assert np.isfinite(model.predict(X)).all()


def test_a_stream_of_river_is_predicted_as_well_as_rivers_own():
    mine, theirs = metrics.MAE(), metrics.MAE()
    model = river.ConstrainedRegressor()
    other = preprocessing.StandardScaler() | preprocessing.TargetStandardScaler(linear_model.LinearRegression())
    for x, y in datasets.ChickWeights():
        x = {name: float(value) for name, value in x.items()}
        for each, score in ((model, mine), (other, theirs)):
            score.update(y, each.predict_one(x))
            each.learn_one(x, y)
    assert mine.get() < 1.05 * theirs.get()


@pytest.mark.slow
@pytest.mark.compiles
def test_engines_predict_alike_and_features_come_late(monkeypatch, rows):
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")
    X, y = rows[0][:150].copy(), rows[1][:150]
    X[:50, 2] = 0.0
    limits = [Quantile(0.9), ErrorRate(beyond=8.0)]
    python, jax = (sklearn.ConstrainedRegressor(limits, engine=name).fit(X, y) for name in ("python", "jax"))
    np.testing.assert_allclose(jax.predict(X), python.predict(X), rtol=1e-7)
    fast = river.ConstrainedRegressor(limits, engine="compiled")
    for t, (row, target) in enumerate(zip(X, y.tolist(), strict=True)):
        fast.learn_one({str(i): float(value) for i, value in enumerate(row) if i < 2 or t >= 50}, target)
        if t == 100:
            fast = pickle.loads(pickle.dumps(fast))
    said = [fast.predict_one({str(i): float(value) for i, value in enumerate(row)}) for row in X]
    np.testing.assert_allclose(said, python.predict(X), rtol=1e-7)


@pytest.mark.slow
def test_the_libraries_take_it_for_a_regressor():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        assert len(check_estimator(sklearn.ConstrainedRegressor(), on_fail="raise")) > 50
    for model in (river.ConstrainedRegressor(), river.ConstrainedRegressor([Quantile(0.9), ErrorRate(1.0)])):
        names = []
        for check in checks.yield_checks(model):
            check(model.clone())
            names.append(check.__name__)
        assert {"check_emerging_features", "check_disappearing_features"} <= set(names)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ([Recall(0.9)], "constraints of a regressor must be Quantile"),
        ([Quantile(0.9), Quantile(0.1)], "one Quantile at most"),
    ],
)
def test_what_a_regressor_cannot_use_is_refused(rows, limits, said):
    with pytest.raises(InputError, match=said):
        sklearn.ConstrainedRegressor(limits).fit(*rows)
    with pytest.raises(InputError, match=said):
        river.ConstrainedRegressor(limits)


@pytest.mark.parametrize("bad", [lambda: Quantile(1.0), lambda: Quantile(0.0), lambda: ErrorRate(0.0), lambda: ErrorRate(1.0, at_most=1.5)])
def test_bad_limits_on_targets_are_refused(bad):
    with pytest.raises(InputError, match="must be"):
        bad()


def test_a_target_that_is_no_number_changes_nothing():
    model = river.ConstrainedRegressor()
    model.learn_one({"a": 1.0}, 2.0)
    before = pickle.dumps(model)
    for y, x in ((np.nan, {"a": 1.0}), ("high", {"a": 1.0}), (1.0, {"a": np.inf})):
        with pytest.raises(InputError):
            model.learn_one(x, y)
    assert pickle.dumps(model) == before
