"""Card fraud with scikit-learn: find nine frauds in ten, as the rows come, beside weighted classes and the best threshold of all."""

import sys

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from bridle import data
from bridle.adapters.sklearn import ConstrainedClassifier, Recall
from figures import in_hindsight, over_time, show


def main(rows: int = 284_807, batch: int = 1000, engine: str = "compiled") -> dict:
    """Decide about each batch before it is learned."""
    table = data.load("creditcard")
    X, y = table.values[:rows, 1:-1], table["Class"][:rows]
    ours = ConstrainedClassifier(constraints=[Recall(at_least=0.9)], engine=engine)
    scaler, theirs = StandardScaler(), SGDClassifier(loss="log_loss", class_weight={0: 1.0, 1: 100.0}, random_state=0)
    held, weighted, scores = [], [], []
    for start in range(0, rows, batch):
        now, labels = X[start : start + batch], y[start : start + batch]
        if start:
            scores.append(theirs.decision_function(scaler.transform(now)))
            held.append(ours.predict(now))
            weighted.append(scores[-1] > 0.0)
        ours.partial_fit(now, labels, classes=[0, 1])
        theirs.partial_fit(scaler.partial_fit(now).transform(now), labels, classes=[0, 1])
    print(ours.limits_)
    decided = {"bridle, Recall(at_least=0.9)": np.concatenate(held), "scikit-learn, frauds weigh 100": np.concatenate(weighted)}
    decided["scikit-learn, threshold afterwards"] = in_hindsight(y[batch:], np.concatenate(scores), 0.9)
    return {name: over_time(y[batch:], alarms) for name, alarms in decided.items()}


if __name__ == "__main__":
    show(main(*map(int, sys.argv[1:])))
