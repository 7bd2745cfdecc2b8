"""How good scores are at telling frauds from the rest: both areas, and what a team sees that can look at so many alerts."""

from __future__ import annotations

import numpy as np

ALERTS = (0.001, 0.01)
"""The shares of transactions that are flagged in the figures about alerts."""


def roc_auc(fraud: np.ndarray, scores: np.ndarray) -> float:
    """The chance that a fraud has a higher score than a legitimate row; equal scores count half.

    >>> roc_auc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    from scipy.stats import rankdata

    frauds = int(np.sum(fraud > 0))
    above = rankdata(scores)[fraud > 0].sum() - frauds * (frauds + 1) / 2.0
    return float(above / (frauds * (len(fraud) - frauds)))


def average_precision(fraud: np.ndarray, scores: np.ndarray) -> float:
    """The precision at every threshold, weighted by the share of frauds that it adds: the area under precision and recall, in steps.

    >>> round(average_precision(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])), 6)
    0.833333
    """
    order = np.argsort(-scores, kind="stable")
    hits, last = np.cumsum(fraud[order] > 0), np.append(np.diff(scores[order]) != 0, True)  # equal scores are one threshold
    caught, flagged = hits[last], np.flatnonzero(last) + 1.0
    return float(np.sum(np.diff(caught, prepend=0) / hits[-1] * caught / flagged))


def recall_at(fraud: np.ndarray, scores: np.ndarray, share: float) -> float:
    """The share of the frauds among the `share` of rows with the highest scores (earlier rows first on ties).

    >>> recall_at(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]), 0.25)
    0.5
    """
    flagged = np.argsort(-scores, kind="stable")[: max(1, round(share * len(scores)))]
    return float(np.sum(fraud[flagged] > 0) / np.sum(fraud > 0))


def judge(fraud: np.ndarray, scores: np.ndarray, chosen_on: int) -> dict[str, float]:
    """All figures about the scores of a stream; `chosen_on` is how many of its first rows the settings were chosen on."""
    parts = {"": slice(None), "_second_half": slice(len(fraud) // 2, None), "_unseen": slice(chosen_on, None)}
    figures: dict[str, float] = {}
    for suffix, part in parts.items():
        figures["auc" + suffix] = roc_auc(fraud[part], scores[part])
        figures["average_precision" + suffix] = average_precision(fraud[part], scores[part])
    for share in ALERTS:
        figures[f"recall_at_{share:g}"] = recall_at(fraud, scores, share)
    return figures


def alerts_curve(fraud: np.ndarray, scores: np.ndarray) -> dict[str, list[float]]:
    """The share of frauds caught against the share of rows flagged, at log-spaced shares."""
    shares = np.geomspace(1e-4, 0.1, 40)
    return {"share": shares.tolist(), "recall": [recall_at(fraud, scores, share) for share in shares]}
