"""Card fraud with river: at most one false alarm in a hundred, row by row, beside weighted classes and the best threshold of all."""

import sys

from river import linear_model, optim, preprocessing

from bridle import data
from bridle.adapters.river import ConstrainedClassifier, FalsePositiveRate
from figures import in_hindsight, over_time, rates, show


def main(rows: int = 284_807, engine: str = "compiled") -> dict:
    """Decide about each transaction before it is learned."""
    table = data.load("creditcard")
    ours = ConstrainedClassifier(constraints=[FalsePositiveRate(at_most=0.01)], engine=engine)
    theirs = preprocessing.StandardScaler() | linear_model.LogisticRegression(loss=optim.losses.Log(weight_pos=100.0))
    labels, held, scores = [], [], []
    for row in table.values[:rows].tolist():
        x, y = dict(zip(table.columns[1:-1], row[1:-1], strict=True)), row[-1] == 1.0
        labels.append(y)
        held.append(ours.predict_one(x))
        scores.append(theirs.predict_proba_one(x).get(True, 0.0))
        ours.learn_one(x, y)
        theirs.learn_one(x, y)
    print(ours.limits_)
    found = {"bridle, FalsePositiveRate(0.01)": held, "river, frauds weigh 100": [score > 0.5 for score in scores]}
    found["river, threshold afterwards"] = in_hindsight(labels, scores, rates(labels, held)["recall"])
    return {name: over_time(labels, alarms) for name, alarms in found.items()}


if __name__ == "__main__":
    show(main(*map(int, sys.argv[1:])))
