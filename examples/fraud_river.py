"""Card fraud with river: each transaction is scored, then learned, and fraud must not be missed."""

import sys

from river import metrics

from bridle import data
from bridle.adapters.river import ConstrainedClassifier, MissLoss


def main(rows: int = 30_000) -> dict[str, float]:
    """One pass over the stream, as `river.evaluate.progressive_val_score` makes it."""
    table = data.load("creditcard")
    model = ConstrainedClassifier(constraints=[MissLoss(label=True, at_most=0.1)], radius=0.5, scale=True)
    auc = metrics.RollingROCAUC(window_size=rows)
    for row in table.values[:rows].tolist():
        x, y = dict(zip(table.columns[1:-1], row[1:-1], strict=True)), row[-1] == 1.0
        auc.update(y, model.predict_proba_one(x)[True])
        model.learn_one(x, y)
    return {"auc": auc.get()}


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
