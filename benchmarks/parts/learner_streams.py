"""Streams of two classes on which linear classifiers are compared: real data, river's data sets and generators, scikit-learn's tables.

Each is a table X and a column y of True and False, in the order in which rows come. Seeds, sizes, changes and the class that is asked for
are fixed here. Tables without an order of their own are shuffled, several times, and what is measured is the mean over the shuffles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from river import datasets
from river.datasets import synth
from sklearn import datasets as tables

from bridle import data
from parts.toy import TOY, size, transactions

ROWS = size(20_000, 200)
"""Of every generated stream."""


class LabelledStream(NamedTuple):
    """A name, how many features, and the rows: once, or in several orders."""

    name: str
    orders: tuple[tuple[np.ndarray, np.ndarray], ...]


def streams() -> Iterable[LabelledStream]:
    """All streams, one after the other; at toy size a few rows of some."""
    for name, make, shuffles in (
        MAKERS if not TOY else [one for one in MAKERS if one[0] in ("Phishing", "Bananas", "SEA, changing", "wine 0")]
    ):
        X, y = make()
        if TOY:
            X, y = X[:300], y[:300]
        if not shuffles:
            yield LabelledStream(name, ((X, y),))
            continue
        orders = [np.random.default_rng(seed).permutation(len(y)) for seed in range(size(shuffles, 1))]
        yield LabelledStream(name, tuple((X[order], y[order]) for order in orders))


def table(rows: Iterable[tuple[dict[object, object], object]], positive: Callable[[object], bool] = bool) -> tuple[np.ndarray, np.ndarray]:
    """River's pairs of a row and a target as arrays."""
    pairs = list(rows)
    names = sorted(pairs[0][0], key=str)
    X = np.array([[float(row[name]) for name in names] for row, _ in pairs])  # type: ignore[arg-type]
    return X, np.array([positive(target) for _, target in pairs])


def cards() -> tuple[np.ndarray, np.ndarray]:
    """Card transactions without their time."""
    found = transactions()
    return found.values[:, 1:-1], found["Class"] > 0.0


def spread(name: str, target: str, outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A set with columns of names: a column for every name but those of the target, numbers as they are."""
    found, parts = data.load(name), []
    for column in found.columns:
        if column != target:
            values = found[column][:, None]
            parts.append(1.0 * (values == np.arange(len(found.categories[column]))) if column in found.categories else values)
    return np.hstack(parts), outcome


def adult() -> tuple[np.ndarray, np.ndarray]:
    """Persons of the census: who earns over 50,000 dollars?"""
    return spread("adult", "income", data.load("adult").equals("income", ">50K"))


def people() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Persons of the census, and which of them are men; at toy size a few that are drawn."""
    if not TOY:
        return *adult(), data.load("adult").equals("sex", "Male")
    rng = np.random.default_rng(0)
    X, men = rng.standard_normal((120, 4)), rng.random(120) < 0.6
    return X, X[:, 0] + men + rng.standard_normal(120) > 1.0, men


def german() -> tuple[np.ndarray, np.ndarray]:
    """Applicants for credit: who is a bad risk?"""
    return spread("german", "risk", data.load("german").equals("risk", "2"))


def changing(
    *streams_of: Iterable[tuple[dict[object, object], object]], positive: Callable[[object], bool] = bool
) -> tuple[np.ndarray, np.ndarray]:
    """One generated stream after the other, each as long."""
    each = ROWS // len(streams_of)
    return table([pair for one in streams_of for pair in islice(iter(one), each)], positive)


def segments(name: str) -> tuple[np.ndarray, np.ndarray]:
    return table(datasets.ImageSegments(), lambda target: target == name)


def yeast(name: str) -> tuple[np.ndarray, np.ndarray]:
    return table(datasets.Yeast(), lambda targets: bool(targets[name]))  # type: ignore[index]


def scikit(loader: Callable[[], object], target: int) -> tuple[np.ndarray, np.ndarray]:
    found = loader()
    return np.asarray(found.data, dtype=float), np.asarray(found.target) == target  # type: ignore[attr-defined]


def friedman() -> tuple[np.ndarray, np.ndarray]:
    """Friedman's function with two slow changes: is the target above 14?"""
    return changing(synth.FriedmanDrift("gra", (ROWS // 4, ROWS // 2), ROWS // 10, seed=1), positive=lambda target: float(target) > 14.0)  # type: ignore[arg-type]


def sea() -> tuple[np.ndarray, np.ndarray]:
    return changing(*(synth.SEA(variant, noise=0.1, seed=10 + variant) for variant in (0, 3, 2, 1)))


def agrawal() -> tuple[np.ndarray, np.ndarray]:
    return changing(*(synth.Agrawal(function, seed=20 + function, perturbation=0.05) for function in (0, 1, 2, 6)))


def sine() -> tuple[np.ndarray, np.ndarray]:
    return changing(*(synth.Sine(function, seed=30 + function) for function in (0, 1, 0, 1)))


def hyperplane(change: float) -> tuple[np.ndarray, np.ndarray]:
    return changing(synth.Hyperplane(seed=40, n_features=10, n_drift_features=5, mag_change=change))


def rbf(speed: float) -> tuple[np.ndarray, np.ndarray]:
    return changing(synth.RandomRBFDrift(50, 51, n_features=10, n_centroids=20, change_speed=speed, n_drift_centroids=20))


def waveform() -> tuple[np.ndarray, np.ndarray]:
    return changing(synth.Waveform(seed=60, has_noise=True), positive=lambda target: target == 0)


def led() -> tuple[np.ndarray, np.ndarray]:
    parts = (synth.LEDDrift(seed=70 + k, noise_percentage=0.1, irrelevant_features=True, n_drift_features=k) for k in (0, 3, 5, 7))
    return changing(*parts, positive=lambda target: target == 3)


SEGMENTS = ("brickface", "sky", "foliage", "cement", "window", "path", "grass")
Maker = Callable[[], tuple[np.ndarray, np.ndarray]]
MAKERS: tuple[tuple[str, Maker, int], ...] = (
    ("creditcard", cards, 0), ("Adult", adult, 0), ("German", german, 10), ("Phishing", lambda: table(datasets.Phishing()), 0),
    ("Bananas", lambda: table(datasets.Bananas()), 0), ("Shuttle", lambda: table(datasets.Shuttle()), 0),
    *((f"ImageSegments {name}", partial(segments, name), 0) for name in SEGMENTS),
    *((f"Yeast {number}", partial(yeast, f"Class{number}"), 0) for number in range(1, 13)),
    ("SEA, changing", sea, 0), ("Hyperplane", partial(hyperplane, 0.001), 0), ("Hyperplane, fast", partial(hyperplane, 0.01), 0),
    ("Agrawal, changing", agrawal, 0), ("Friedman, changing", friedman, 0), ("Sine, changing", sine, 0), ("RBF", partial(rbf, 0.0), 0),
    ("RBF, moving", partial(rbf, 0.001), 0), ("Waveform", waveform, 0), ("LED, changing", led, 0),
    ("breast cancer", partial(scikit, tables.load_breast_cancer, 1), 10),
    *((f"wine {number}", partial(scikit, tables.load_wine, number), 10) for number in range(3)),
    *((f"digits {number}", partial(scikit, tables.load_digits, number), 3) for number in range(10)),
)  # fmt: skip
"""What a stream is called, what makes it, and in how many shuffled orders it is played (0: its own)."""
