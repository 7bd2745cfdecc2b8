"""Scores of whole streams by whatever learns linear classifiers, and thresholds on them: tracked by a limit, by hand, in hindsight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import ops, records
from bridle.adapters.linear import ONE, LabelledRow, Learned, ModelSettings, Rules
from bridle.engines.mirror import Mirror
from bridle.limits.thresholds import Thresholds, ThresholdsState


class Scoring(NamedTuple):
    """What was learned, and the score of the last row before it was."""

    learned: Learned
    score: float


def score_and_learn(rules: Rules, before: Scoring, row: LabelledRow) -> Scoring:
    scale = before.learned.scale
    a = ops.join([ONE, row.features if scale is None else scale.apply(row.features)], -1)
    return Scoring(rules.learn(before.learned, row), ops.dot(before.learned.weights, a))


def scores_of(settings: ModelSettings, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None, groups: np.ndarray | None = None):
    """The log-odds of every row, by what was learned of the rows before it."""
    rules, learned = settings.made(X.shape[1])
    rules = records.transform(lambda leaf: None if isinstance(leaf, str) else leaf, rules)
    start, given = Scoring(learned, 0.0), LabelledRow(X[0], 1.0, 1.0, None if groups is None else 0.0)
    mirror = Mirror(score_and_learn, rules, start, given, start)
    mirror.write(start)
    columns = {"features": X, "sign": np.where(y, 1.0, -1.0), "weight": np.ones(len(y)) if weights is None else weights}
    if groups is not None:
        columns["group"] = 1.0 * groups
    return run_rows(mirror, columns, "states.score")


class Deciding(NamedTuple):
    """The state of the limits, and whether the last row was an alarm."""

    state: ThresholdsState
    alarm: float


class ScoredRow(NamedTuple):
    """A row that was scored."""

    score: float
    sign: float
    group: float


def decide_and_count(model: Thresholds, before: Deciding, row: ScoredRow) -> Deciding:
    state, seen = model.look(before.state, row.score, row.group)
    return Deciding(model.count(state, seen, row.sign), seen.alarm)


def limited(model: Thresholds, scores: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None) -> tuple[np.ndarray, ThresholdsState]:
    """Which rows are alarms under these limits, each label known before the next row, and the state at the end."""
    start = Deciding(model.start(), 0.0)
    mirror = Mirror(decide_and_count, model, start, ScoredRow(0.0, 0.0, 0.0), start)
    mirror.write(start)
    member = np.full(len(y), np.nan) if groups is None else 1.0 * groups
    alarms = run_rows(mirror, {"score": scores, "sign": np.where(y, 1.0, -1.0), "group": member}, "states.alarm")
    return alarms > 0.0, mirror.read().state


def run_rows(mirror: Mirror, columns: dict[str, np.ndarray], wanted: str) -> np.ndarray:
    """What one leaf of the state is after each row."""
    places = [(mirror.views[f"given.{name}"], column) for name, column in columns.items() if f"given.{name}" in mirror.views]
    view, found = mirror.views[wanted], np.empty(len(next(iter(columns.values()))))
    for t in range(len(found)):
        for place, column in places:
            place[...] = column[t]
        if not mirror.run():
            raise ValueError(f"row {t} was refused")
        found[t] = view
    return found


BY_HAND = 0.02
"""How far a threshold on the probability is moved by hand for one violation."""


def by_hand(scores: np.ndarray, counted: np.ndarray, share: float, lower: bool) -> np.ndarray:
    """A threshold on the probability, .5 at first, moved after each counted row: what people write when they have no library."""
    p, threshold, alarms = 1.0 / (1.0 + np.exp(-np.clip(scores, -500.0, 500.0))), 0.5, np.empty(len(scores), dtype=bool)
    for t in range(len(scores)):
        alarms[t] = p[t] > threshold
        if counted[t]:
            violated = (not alarms[t]) if lower else alarms[t]
            threshold += (-BY_HAND if lower else BY_HAND) * (violated - share)
            threshold = min(max(threshold, 0.0), 1.0)
    return alarms


def groups_by_hand(scores: np.ndarray, y: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """A threshold for each group, moved after each positive towards the share of positives that .5 has found so far."""
    p, thresholds, alarms = 1.0 / (1.0 + np.exp(-np.clip(scores, -500.0, 500.0))), [0.5, 0.5], np.empty(len(scores), dtype=bool)
    found, came = 0, 0
    for t in range(len(scores)):
        group = int(groups[t])
        alarms[t] = p[t] > thresholds[group]
        if y[t]:
            came, found = came + 1, found + (p[t] > 0.5)
            thresholds[group] = min(max(thresholds[group] + BY_HAND * (alarms[t] - found / came), 0.0), 1.0)
    return alarms


def at_rate(scores: np.ndarray, counted: np.ndarray, share: float, lower: bool) -> np.ndarray:
    """The fixed threshold, known in hindsight, that gives this share of violations among the counted rows."""
    held = np.sort(scores[counted])
    allowed = int(share * len(held))
    return scores >= held[allowed] if lower else scores > held[len(held) - 1 - allowed]


def best_groups(scores: np.ndarray, y: np.ndarray, groups: np.ndarray, gap: float, grid: int = 120) -> np.ndarray:
    """The two fixed thresholds, known in hindsight, with the best accuracy among those that hold the gap of shares found."""
    choices = []
    for group in (False, True):
        mine = groups == group
        places = np.quantile(scores[mine], np.linspace(0.0, 1.0, grid))
        alarms = scores[mine][:, None] > places
        choices.append((places, alarms[y[mine]].mean(axis=0), (alarms == y[mine][:, None]).sum(axis=0)))
    (low, found, right), (high, found_too, right_too) = choices
    total = np.where(np.abs(found[:, None] - found_too[None, :]) <= gap, right[:, None] + right_too[None, :], -1)
    i, j = np.unravel_index(np.argmax(total), total.shape)
    return scores > np.where(groups, high[j], low[i])
