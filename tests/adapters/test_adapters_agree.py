"""The adapters and the engine make the same decisions on the same stream, and what is not installed is said in one line."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
import torch

import bridle
from bridle.adapters import river, sklearn
from bridle.adapters.scaling import past_scaled
from bridle.adapters.torch import ConstrainedOptimizer
from bridle.adversaries import Recorded
from bridle.functions import Excess, LogisticLoss
from bridle.limits import GroupGap, MissLoss, WeightBudget
from helpers.extent import examples
from helpers.instances import real

ROWS, TOLERATED, RADIUS = examples(900, 2000), 0.3, 2.0
POLICIES = {
    "sinha2024": {"horizon": ROWS, "lipschitz": 10.0, "preset": "practice"},
    "anytime": {},
    "anytime one pass": {"form": "value", "lipschitz": 5.0, "V": 0.01, "halfspace": False},
    "sinha2024-ocs": {},
    "yu2020": {"horizon": ROWS, "lipschitz": 10.0},
}


@pytest.fixture(scope="module")
def stream():
    """Real transactions, scaled by the past; every tenth row is fraud, so that the constraint matters."""
    table = real("creditcard")
    fraud = np.flatnonzero(table["Class"] == 1.0)[: ROWS // 10]
    fine = np.flatnonzero(table["Class"] == 0.0)[: ROWS - len(fraud)]
    rows = np.random.default_rng(0).permutation(np.concatenate([fraud, fine]))
    return past_scaled(table.values[rows, 1:-1]).clip(-5.0, 5.0), table["Class"][rows] == 1.0


def by_engine(X, y, policy, parameters):
    a, label = np.column_stack([np.ones(len(X)), X]), np.where(y, 1.0, -1.0)
    limit = Excess(LogisticLoss(a, label, 1.0 * y), np.full(len(y), TOLERATED))
    rounds = bridle.Round(LogisticLoss(a, label, np.ones(len(y))), (limit,))
    domain = bridle.Ball(a.shape[1], radius=RADIUS)
    problem = bridle.Problem(domain, Recorded(rounds), {"constraints": 1, "lipschitz": float(np.linalg.norm(a, axis=1).max())})
    made = bridle.policy(policy, domain, **parameters)
    return np.asarray(made.decide(bridle.play(made, problem, horizon=len(X)).state))


def by_torch(X, y, policy, parameters):
    model = torch.nn.Linear(X.shape[1], 1, dtype=torch.float64)
    for weight in model.parameters():
        torch.nn.init.zeros_(weight)
    optimizer = ConstrainedOptimizer(model.parameters(), radius=RADIUS, policy=policy, parameters=parameters)
    for row, label in zip(torch.tensor(X), torch.tensor(1.0 * y), strict=True):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(row)[0], label)
        optimizer.step(loss, loss * label - TOLERATED)
    return np.concatenate([model.bias.detach().numpy(), model.weight.detach().numpy()[0]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bridle.BridleWarning")
@pytest.mark.parametrize("case", POLICIES)
def test_the_adapters_and_the_engine_decide_alike(stream, case):
    X, y = stream
    policy, parameters = case.split()[0], POLICIES[case]
    settings = {"constraints": [MissLoss(label=1, at_most=TOLERATED)], "policy": policy, "parameters": parameters, "radius": RADIUS}
    engine = by_engine(X, y, policy, parameters)
    estimator = sklearn.ConstrainedClassifier(**settings)
    for start in range(0, ROWS, 700):
        estimator.partial_fit(X[start : start + 700], y[start : start + 700], classes=[False, True])
    incremental = river.ConstrainedClassifier(**settings)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        incremental.learn_one({f"V{i}": value for i, value in enumerate(row)}, label)
    assert np.linalg.norm(engine) > 0.1
    np.testing.assert_allclose(np.append(estimator.intercept_, estimator.coef_), engine, atol=1e-6)
    np.testing.assert_allclose([incremental.intercept, *incremental.weights.values()], engine, atol=1e-6)
    np.testing.assert_allclose(by_torch(X, y, policy, parameters), engine, atol=1e-6)


@pytest.mark.compiles
@pytest.mark.parametrize("scale", [False, True])
def test_estimators_agree_with_every_limit_and_on_every_engine(stream, scale):
    X, y = stream[0][:600], stream[1][:600]
    groups = np.where(X[:, 0] > 0.0, 1.0, 0.0)
    groups[::7] = np.nan
    settings = {
        "constraints": [MissLoss(label=1, at_most=TOLERATED), GroupGap(at_most=0.2, lookback=50), WeightBudget(at_most=1.0)],
        "class_weight": {True: 3.0},
        "scale": scale,
        "policy": "anytime",
    }
    incremental = river.ConstrainedClassifier(**settings, group="side")
    for row, label, group in zip(X.tolist(), y.tolist(), groups.tolist(), strict=True):
        incremental.learn_one({**{str(i): value for i, value in enumerate(row)}, "side": group}, label)
    scores = [incremental.predict_proba_one({str(i): value for i, value in enumerate(row)})[True] for row in X[:20].tolist()]
    for engine in ("python", "jax"):
        estimator = sklearn.ConstrainedClassifier(**settings, engine=engine).fit(X, y, groups=groups)
        np.testing.assert_allclose(estimator.coef_[0], list(incremental.weights.values()), atol=1e-9)
        np.testing.assert_allclose(estimator.predict_proba(X[:20])[:, 1], scores, atol=1e-9)


@pytest.mark.parametrize("adapter", ["sklearn", "river", "torch"])
def test_a_missing_package_is_named_with_what_to_install(monkeypatch, adapter):
    monkeypatch.delitem(sys.modules, f"{adapter}.base", raising=False)
    monkeypatch.setitem(sys.modules, adapter, None)
    monkeypatch.delitem(sys.modules, f"bridle.adapters.{adapter}", raising=False)
    with pytest.raises(bridle.InputError, match=rf"pip install 'bridle-oco\[{adapter}\]'"):
        importlib.import_module(f"bridle.adapters.{adapter}")
