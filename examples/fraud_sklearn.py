"""Card fraud with scikit-learn: learn transactions in the order of time, and do not miss fraud."""

import sys

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from bridle import data
from bridle.adapters.sklearn import ConstrainedClassifier, MissLoss


def main(rows: int = 30_000, day: int = 1000) -> dict[str, float]:
    """Score each batch before it is learned."""
    table = data.load("creditcard")
    X, y = table.values[:rows, 1:-1], table["Class"][:rows]
    model = ConstrainedClassifier(constraints=[MissLoss(label=1, at_most=0.1)], radius=0.5, scale=True)
    model.partial_fit(X[:day], y[:day], classes=[0, 1])
    scores = []
    for start in range(day, rows, day):
        scores.append(model.decision_function(X[start : start + day]))
        model.partial_fit(X[start : start + day], y[start : start + day])
    found = np.concatenate(scores)
    return {"auc": roc_auc_score(y[day:], found), "average_precision": average_precision_score(y[day:], found)}


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
