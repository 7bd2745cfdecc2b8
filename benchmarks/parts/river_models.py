"""River's logistic regression behind its StandardScaler, with four optimisers, on whole tables: river's own arithmetic, compiled.

`agrees` plays the first rows with river itself, and the benchmark does not go on where a probability differs.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from river import linear_model, optim, preprocessing

OPTIMISERS = {"SGD 0.01": lambda: optim.SGD(0.01), "SGD 0.1": lambda: optim.SGD(0.1), "Adam": optim.Adam, "AdaGrad": optim.AdaGrad}
"""River's own settings; the intercept learns at river's 0.01 whatever the optimiser."""


def river_model(name: str):
    return preprocessing.StandardScaler() | linear_model.LogisticRegression(OPTIMISERS[name]())


@numba.njit(cache=False)
def _run(X, y, kind, rate):
    n, d = X.shape
    means, variances, w, m, v = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d)
    intercept, z, scores = 0.0, np.zeros(d), np.zeros(n)
    for t in range(n):
        score = intercept
        for i in range(d):  # a row is scored before anything is learned of it, its scale included
            if variances[i] != 0.0:
                score += w[i] * (X[t, i] - means[i]) / math.sqrt(variances[i])
        scores[t] = score
        score = intercept
        for i in range(d):
            before = means[i]
            means[i] += (X[t, i] - before) / (t + 1)
            variances[i] += ((X[t, i] - before) * (X[t, i] - means[i]) - variances[i]) / (t + 1)
            z[i] = (X[t, i] - means[i]) / math.sqrt(variances[i]) if variances[i] != 0.0 else 0.0
            score += w[i] * z[i]
        sign = 1.0 if y[t] else -1.0
        margin = score * sign
        if margin > 18.0:
            slope = math.exp(-margin) * -sign
        elif margin < -18.0:
            slope = -sign
        else:
            slope = -sign / (math.exp(margin) + 1.0)
        intercept -= 0.01 * slope
        step = rate
        if kind == 1:
            step = rate * math.sqrt(1.0 - 0.999 ** (t + 1)) / (1.0 - 0.9 ** (t + 1))
        for i in range(d):
            g = slope * z[i]
            if kind == 0:
                w[i] -= rate * g
            elif kind == 1:
                m[i] = 0.9 * m[i] + (1.0 - 0.9) * g
                v[i] = 0.999 * v[i] + (1.0 - 0.999) * g**2
                w[i] -= step * m[i] / (math.sqrt(v[i]) + 1e-8)
            else:
                v[i] += g**2
                w[i] -= rate / math.sqrt(v[i] + 1e-8) * g
    return scores


def scores(name: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The log-odds of every row, by what was learned of the rows before it."""
    kind, rate = {"SGD 0.01": (0, 0.01), "SGD 0.1": (0, 0.1), "Adam": (1, 0.1), "AdaGrad": (2, 0.1)}[name]
    return _run(np.ascontiguousarray(X, dtype=float), np.asarray(y, dtype=bool), kind, rate)


def difference(name: str, X: np.ndarray, y: np.ndarray, rows: int) -> float:
    """The largest difference of a probability between river itself and `scores`, over the first rows."""
    model, largest = river_model(name), 0.0
    ours = scores(name, X[:rows], y[:rows])
    for t in range(min(rows, len(y))):
        row = dict(enumerate(X[t].tolist()))
        p = model.predict_proba_one(row)[True]
        largest = max(largest, abs(p - 1.0 / (1.0 + math.exp(-max(min(ours[t], 700.0), -700.0)))))
        model.learn_one(row, bool(y[t]))
    return largest
