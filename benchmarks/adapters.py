"""What the adapters cost beside what their libraries do themselves, as ratios in one run of interleaved repeats on one core.

PyTorch: a step of a network of a million weights on a batch of 256, against forward + backward + step of plain SGD; what is around an
optimiser also against the same steps of that optimiser alone, by its own repeats. river and scikit-learn:
one row of card transactions (29 features), against logistic regression there.
"""

from __future__ import annotations

import os
import statistics
import time
from itertools import pairwise

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from river import linear_model, preprocessing
from sklearn.linear_model import SGDClassifier

from bridle.adapters import river, sklearn
from bridle.adapters.torch import ConstrainedOptimizer
from parts.toy import size

REPEATS, STEPS, ROWS = size(15, 5), size(4, 1), size(2000, 20)
MISS = [river.MissLoss(label=True, at_most=0.1)]
QUIET = {"form": "self-bounding", "smoothness": 30.0, "V": 1e-3, "halfspace": False}
ALGORITHM_1 = {"policy": "sinha2024", "parameters": {"horizon": 10**6, "lipschitz": 30.0}}


def network():
    torch.manual_seed(0)
    sizes = size((256, 784, 784, 256), (256, 8, 8, 8))
    layers = [part for a, b in pairwise(sizes) for part in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 1))


def losses(model, rows, labels, shift):
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(rows)[:, 0], labels, reduction="none")
    return loss.mean(), (loss * labels).sum() / labels.sum() - shift


def torch_paths():
    rows, labels = torch.randn(256, 256), (torch.rand(256) > 0.5).float()

    def plain(make):
        model = network()
        optimizer = make(model.parameters())

        def step():
            cost, _ = losses(model, rows, labels, 0.0)
            optimizer.zero_grad()
            cost.backward()
            optimizer.step()

        return step

    def bound(shift, **settings):
        model = network()
        optimizer = ConstrainedOptimizer(model.parameters(), radius=5.0, **settings)
        return lambda: optimizer.step(*losses(model, rows, labels, shift))

    def wrapped(make, shift):
        model = network()
        optimizer = ConstrainedOptimizer(make(model.parameters()))
        return lambda: optimizer.step(*losses(model, rows, labels, shift))

    def sgd(params):
        return torch.optim.SGD(params, lr=0.01)

    def adam(params):
        return torch.optim.Adam(params, lr=1e-4)

    return {
        "torch.optim.SGD": plain(sgd),
        "around torch.optim.SGD, violated": wrapped(sgd, -1.0),
        "around torch.optim.SGD, satisfied": wrapped(sgd, 9.0),
        "torch.optim.Adam": plain(adam),
        "around torch.optim.Adam, violated": wrapped(adam, -1.0),
        "around torch.optim.Adam, satisfied": wrapped(adam, 9.0),
        "ConstrainedOptimizer, violated": bound(-1.0),
        "ConstrainedOptimizer, satisfied": bound(9.0),
        "ConstrainedOptimizer, sinha2024": bound(-1.0, policy="sinha2024", parameters={"horizon": 1000, "lipschitz": 1.0}),
        "anytime by distance, violated: two passes": bound(-1.0, parameters={"halfspace": False}),
        "anytime by distance, satisfied: one pass": bound(9.0, parameters={"halfspace": False}),
        "anytime with halfspaces: two passes": bound(-1.0, parameters={"cuts": 0}),
    }, STEPS


def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 29)) * rng.uniform(0.5, 20.0, 29)
    return X, rng.random(ROWS) < 0.005


def river_paths():
    X, y = table()
    rows = [({f"V{i}": value for i, value in enumerate(row)}, label) for row, label in zip(X.tolist(), y.tolist(), strict=True)]

    def learn(model):
        def go():
            for x, label in rows:
                model.learn_one(x, label)

        return go

    return {
        "river: StandardScaler | LogisticRegression": learn(preprocessing.StandardScaler() | linear_model.LogisticRegression()),
        "river: LogisticRegression alone": learn(linear_model.LogisticRegression()),
        "river: StandardScaler alone": learn(Unlabelled(preprocessing.StandardScaler())),
        "ConstrainedClassifier(scale=True), anytime": learn(river.ConstrainedClassifier(MISS, scale=True)),
        "ConstrainedClassifier(scale=True), self-bounding": learn(river.ConstrainedClassifier(MISS, scale=True, parameters=QUIET)),
        "ConstrainedClassifier(scale=True), sinha2024": learn(river.ConstrainedClassifier(MISS, scale=True, **ALGORITHM_1)),
        "ConstrainedClassifier, self-bounding": learn(river.ConstrainedClassifier(MISS, parameters=QUIET)),
        "ConstrainedClassifier(scale=True, engine='compiled'), anytime": learn(
            river.ConstrainedClassifier(MISS, scale=True, engine="compiled")
        ),
        "ConstrainedClassifier(scale=True, engine='compiled'), self-bounding": learn(
            river.ConstrainedClassifier(MISS, scale=True, parameters=QUIET, engine="compiled")
        ),
        "ConstrainedClassifier(scale=True, engine='compiled'), sinha2024": learn(
            river.ConstrainedClassifier(MISS, scale=True, **ALGORITHM_1, engine="compiled")
        ),
    }, ROWS


class Unlabelled:
    def __init__(self, model):
        self.model = model

    def learn_one(self, x, y):
        self.model.learn_one(x)


def sklearn_paths():
    X, y = table()

    def learn(model, size):
        model.partial_fit(X[:size], y[:size], classes=[False, True])

        def go():
            for start in range(0, ROWS, size):
                model.partial_fit(X[start : start + size], y[start : start + size])

        return go

    mine = {"constraints": MISS, "parameters": QUIET}
    return {
        "SGDClassifier.partial_fit, one row": learn(SGDClassifier(loss="log_loss"), 1),
        "ConstrainedClassifier.partial_fit, one row": learn(sklearn.ConstrainedClassifier(**mine), 1),
        "SGDClassifier.partial_fit, all rows": learn(SGDClassifier(loss="log_loss"), ROWS),
        "ConstrainedClassifier.partial_fit, all rows": learn(sklearn.ConstrainedClassifier(**mine), ROWS),
        "ConstrainedClassifier.partial_fit, all rows, jax": learn(sklearn.ConstrainedClassifier(**mine, engine="jax"), ROWS),
    }, ROWS


def ratio(mine, theirs):
    return sorted(a / b for a, b in zip(mine, theirs, strict=True))


def compare(title, unit, paths, per):
    for go in paths.values():
        go()
    times = {name: [] for name in paths}
    for _ in range(REPEATS):
        for name, go in paths.items():
            begun = time.perf_counter()
            for _ in range(per if unit == "ms a step" else 1):
                go()
            times[name].append((time.perf_counter() - begun) / per * (1e3 if unit == "ms a step" else 1e6))
    base = next(iter(times.values()))
    shown = Table(title=title)
    for column in ("path", unit, "ratio to the first", "spread", "ratio to what it is around"):
        shown.add_column(column, justify="left" if column == "path" else "right")
    for name, spent in times.items():
        ratios = ratio(spent, base)
        inner = times.get(name.removeprefix("around ").partition(",")[0]) if name.startswith("around ") else None
        around = "" if inner is None else f"{statistics.median(ratio(spent, inner)):.3f}"
        shown.add_row(
            name, f"{statistics.median(spent):.3g}", f"{statistics.median(ratios):.3f}", f"{ratios[2]:.2f} - {ratios[-3]:.2f}", around
        )
    Console(width=130).print(shown)


def main() -> None:
    torch.set_num_threads(1)
    weights = sum(p.numel() for p in network().parameters())
    compare(f"PyTorch {torch.__version__}, {weights:,} weights, batch 256, one thread", "ms a step", *torch_paths())
    compare("river, 29 features, learn_one", "us a row", *river_paths())
    compare("scikit-learn, 29 features", "us a row", *sklearn_paths())


if __name__ == "__main__":
    main()
