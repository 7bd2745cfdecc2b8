"""What practitioners use today, on the same stream: online logistic regression of river and of scikit-learn.

Each takes rows in order, scores a row before it learns it, and learns it once. Scaling is the library's own, inside its pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from bridle.core import Unavailable

BLOCK = 100
"""How many rows scikit-learn is given at a time: one by one it would take hundreds of microseconds a row."""

RowProgress: TypeAlias = Callable[[int, int], None]
"""Told how many rows are done of how many."""


def river_scores(
    raw: np.ndarray, fraud: np.ndarray, variant: str, seed: int = 0, scaled: bool = False, progress: RowProgress | None = None
) -> np.ndarray:
    """The scores of river's logistic regression: "plain", "weighted" (a fraud counts 5) or "under-sampled" (to one fraud in five rows).

    With `scaled`, the rows are taken as they are, without river's scaler.
    """
    try:
        from river import imblearn, linear_model, optim, preprocessing
    except ModuleNotFoundError:
        raise Unavailable("the baselines of river need the package river: pip install 'bridle-oco[river]'") from None

    plain = linear_model.LogisticRegression
    models: dict[str, Callable[[], Any]] = {
        "plain": lambda: plain(),
        "weighted": lambda: plain(loss=optim.losses.Log(weight_pos=5)),
        "under-sampled": lambda: imblearn.RandomUnderSampler(plain(), desired_dist={0: 0.8, 1: 0.2}, seed=seed),
    }
    model = models[variant]()
    model = model if scaled else preprocessing.StandardScaler() | model
    names, scores = [f"f{j}" for j in range(raw.shape[1])], np.zeros(len(raw))
    for t, (row, label) in enumerate(zip(raw.tolist(), fraud.astype(int).tolist(), strict=True)):
        x = dict(zip(names, row, strict=True))
        scores[t] = model.predict_proba_one(x).get(1, 0.0)
        model.learn_one(x, label)
        if progress is not None and t % 10_000 == 0:
            progress(t, len(raw))
    return scores


def sklearn_scores(raw: np.ndarray, fraud: np.ndarray, variant: str, seed: int = 0, progress: RowProgress | None = None) -> np.ndarray:
    """The scores of scikit-learn's SGDClassifier with logistic loss, "plain" or "weighted" (a fraud counts 5), in blocks of 100 rows."""
    try:
        from sklearn.linear_model import SGDClassifier
        from sklearn.preprocessing import StandardScaler
    except ModuleNotFoundError:
        raise Unavailable("the baselines of scikit-learn need the package scikit-learn: pip install 'bridle-oco[sklearn]'") from None

    model = SGDClassifier(loss="log_loss", class_weight={0: 1.0, 1: 5.0} if variant == "weighted" else None, random_state=seed)
    scale, scores = StandardScaler(), np.zeros(len(raw))
    for start in range(0, len(raw), BLOCK):
        rows, labels = raw[start : start + BLOCK], fraud[start : start + BLOCK].astype(int)
        if start:
            scores[start : start + BLOCK] = model.decision_function(scale.transform(rows))
        scale.partial_fit(rows)
        model.partial_fit(scale.transform(rows), labels, classes=[0, 1])
        if progress is not None and start % 10_000 == 0:
            progress(start, len(raw))
    return scores
