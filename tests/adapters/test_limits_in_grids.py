"""scikit-learn's tools around the estimators: limits as parameters of a grid, clones, pipelines, and sparse tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bridle import InputError
from bridle.adapters.sklearn import ConstrainedClassifier, ConstrainedRegressor, MissLoss, Quantile
from bridle.limits import FalsePositiveRate, Recall


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((300, 4)) * (rng.random((300, 4)) < 0.4)
    return X, X[:, 0] + 0.3 * rng.standard_normal(300) > 0.3


def test_a_grid_goes_over_what_limits_ask_for(rows):
    X, y = rows
    model = ConstrainedClassifier([FalsePositiveRate(0.3), Recall(0.5)], priority=1)
    grid = {"constraints__1__at_least": [0.5, 0.7, 0.95], "constraints__0": [FalsePositiveRate(0.2)]}
    search = GridSearchCV(model, grid, scoring="recall", cv=2).fit(X, y)
    assert search.best_params_["constraints__1__at_least"] == 0.95
    assert [limit.name for limit in search.best_estimator_.limits_] == ["false positive rate", "recall"]
    assert search.best_estimator_.limits_[1].asked == 0.95
    assert search.best_estimator_.constraints[0].at_most == 0.2
    assert model.constraints == [FalsePositiveRate(0.3), Recall(0.5)]  # the one that was given is as it was


def test_limits_are_parameters_by_name():
    model = ConstrainedClassifier([Recall(0.5), MissLoss(1, 0.2)])
    named = model.get_params()
    assert named["constraints__0__at_least"] == 0.5
    assert named["constraints__1"] == MissLoss(1, 0.2)
    assert set(model.get_params(deep=False)) <= set(named)
    assert not any("__" in name for name in model.get_params(deep=False))
    other = clone(model).set_params(constraints__0__at_least=0.7, class_weight={1: 2.0})
    assert (other.constraints[0].at_least, model.constraints[0].at_least) == (0.7, 0.5)
    assert other.set_params(constraints=[Recall(0.2)], constraints__0__eta=0.1).constraints == [Recall(0.2, eta=0.1)]
    for changes, said in (
        ({"constraints__5__at_least": 0.1}, "constraints have no part"),
        ({"constraints__0__at_leats": 0.1}, "at_least"),
        ({"constraints__0__at_least": 1.2}, "Recall: at_least must be a share"),
    ):
        with pytest.raises(InputError, match=said):
            model.set_params(**changes)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(nothing=1.0)


def test_it_works_in_pipelines_and_cross_validation(rows):
    X, y = rows
    model = make_pipeline(StandardScaler(), ConstrainedClassifier([Recall(0.9)]))
    assert cross_val_score(model, X, y, cv=3, scoring="recall").mean() > 0.8
    model.set_params(constrainedclassifier__constraints__0__at_least=0.6).fit(X, y)
    assert model[-1].limits_[0].asked == 0.6


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.lil_matrix])
def test_a_sparse_table_is_the_table(rows, monkeypatch, kind):
    X, y = rows
    monkeypatch.setattr("bridle.adapters.sklearn.block_length", lambda dim: 64)  # in blocks of few rows
    dense, thin = (ConstrainedClassifier([Recall(0.9)]).partial_fit(part[:150], y[:150]) for part in (X, kind(X).tocsr()))
    for model, part in ((dense, X), (thin, kind(X).tocsr())):
        model.partial_fit(part[150:], y[150:])
    np.testing.assert_array_equal(thin.coef_, dense.coef_)
    assert thin.limits_ == dense.limits_
    np.testing.assert_array_equal(thin.predict(kind(X)), dense.predict(X))
    assert len(thin.ask(kind(X).tocsr()[:3])) == 3
    one, two = (ConstrainedRegressor([Quantile(0.8)]).fit(part, X[:, 0]) for part in (X, kind(X)))
    np.testing.assert_array_equal(one.predict(X), two.predict(kind(X)))
    with pytest.raises(InputError, match="X must be at most"):
        dense.partial_fit(kind(X) * 1e200, y)
