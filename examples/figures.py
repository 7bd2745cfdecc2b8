"""What the examples show of a stream of decisions: all four sides of it, over time."""

import numpy as np


def rates(labels, alarms):
    """Recall and precision, the share of false alarms among the rows that were fine, and accuracy; nan where nothing counts."""
    y, alarm = np.asarray(labels, dtype=bool), np.asarray(alarms, dtype=bool)

    def share(hits):
        return float(hits.mean()) if len(hits) else float("nan")

    return {"recall": share(alarm[y]), "precision": share(y[alarm]), "false alarms": share(alarm[~y]), "accuracy": share(alarm == y)}


def over_time(labels, alarms, windows=4):
    """The rates over the whole stream, and recall and false alarms in each of so many windows of it that have as many positives."""
    y, alarm = np.asarray(labels, dtype=bool), np.asarray(alarms, dtype=bool)
    ends = np.searchsorted(np.cumsum(y), np.linspace(0, y.sum(), windows + 1)[1:-1], side="right")
    parts = [rates(a, b) for a, b in zip(np.split(y, ends), np.split(alarm, ends), strict=True)]
    return rates(y, alarm) | {f"{name} by window": [part[name] for part in parts] for name in ("recall", "false alarms")}


def in_hindsight(labels, scores, recall):
    """Alarms by the one threshold that gives this recall, or the next above, over the whole stream: nobody knows it before the end."""
    y, scores = np.asarray(labels, dtype=bool), np.asarray(scores)
    return scores >= np.quantile(scores[y], 1.0 - recall, method="lower")


def show(found):
    """The figures of every contestant, a line for each."""
    for name, figures in found.items():
        cells = [
            f"{key} {' '.join(f'{v:.3f}' for v in value) if isinstance(value, list) else f'{value:.4f}'}" for key, value in figures.items()
        ]
        print(f"{name:34}", "  ".join(cells))
