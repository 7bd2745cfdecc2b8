"""Streams of scores and labels, a rate of one's own, and how limits on rates fare with labels that come at once, late, or in batches."""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np

from bridle.limits.rates import OWN_RATE, Cells, CountedRate, make_rate_level
from bridle.limits.thresholds import Thresholds, ThresholdsState


class Scored(NamedTuple):
    """Scores, labels (+1 or -1), groups."""

    scores: np.ndarray
    signs: np.ndarray
    groups: np.ndarray


def calibrated(rows: int, seed: int, spread: float = 2.0, shift: float = -1.0, apart: float = 1.0) -> Scored:
    """Scores that are log-odds of the labels; the second group's are `apart` higher."""
    rng = np.random.default_rng(seed)
    groups = 1.0 * (rng.random(rows) < 0.4)
    scores = spread * rng.standard_normal(rows) + shift + apart * groups
    return Scored(scores, np.where(rng.random(rows) < 1.0 / (1.0 + np.exp(-scores)), 1.0, -1.0), groups)


def hostile(rows: int, seed: int) -> Scored:
    """Scores that mislead, jump and stand still, with labels that have little to do with them."""
    rng = np.random.default_rng(seed)
    scale = np.repeat(rng.choice([0.0, 1e-3, 1.0, 50.0], rows // 20 + 1), 20)[:rows]
    scores = scale * rng.standard_normal(rows) + np.repeat(rng.choice([-5.0, 0.0, 5.0], rows // 50 + 1), 50)[:rows]
    flip = np.repeat(rng.choice([-1.0, 1.0], rows // 30 + 1), 30)[:rows]
    signs = np.where(flip * scores + rng.standard_normal(rows) > 0.0, 1.0, -1.0)
    return Scored(scores, signs, rng.choice([0.0, 1.0, nan], rows))


def easy(rows: int, seed: int) -> Scored:
    """Long stretches of one label only, with scores that know it and then, in the last third, do not."""
    rng = np.random.default_rng(seed)
    signs = np.repeat(rng.choice([-1.0, 1.0], 3), rows // 3 + 1)[:rows]
    trust = np.where(np.arange(rows) < 2 * rows // 3, 1.0, -1.0)
    return Scored(signs * trust * rng.choice([1.0, 4.0]) + rng.standard_normal(rows), signs, rng.choice([0.0, 1.0], rows))


class OwnRate(NamedTuple):
    """A rate of one's own: the cells in the order hit, miss, false alarm, quiet."""

    counts: tuple[float, float, float, float]
    violates: tuple[float, float, float, float]
    sd: float
    at_most: float
    labels: float | None = 1.0

    def levels(self, classes, several, yields):
        rate = CountedRate(OWN_RATE, Cells(*self.counts), Cells(*self.violates), self.sd, self.labels)
        return (make_rate_level(rate, self.at_most, several=several, yields=yields),)


def quiet_positives(at_most: float) -> OwnRate:
    """Of the rows without an alarm, at most this share is positive."""
    return OwnRate((0.0, 1.0, 0.0, 1.0), (0.0, 1.0, 0.0, 0.0), 1.0, at_most)


class Played(NamedTuple):
    """The state at the end, which rows were alarms, and the states on the way."""

    state: ThresholdsState
    alarms: np.ndarray
    states: list[ThresholdsState]


def play_rates(model: Thresholds, stream: Scored, delays: np.ndarray | int = 0, periods: np.ndarray | None = None) -> Played:
    """All rows, each label after so many further rows; labels that are still open at the end come then."""
    rows = len(stream.scores)
    late = np.full(rows, delays) if np.ndim(delays) == 0 else np.asarray(delays)
    when = np.full(rows, nan) if periods is None else periods
    state, open_rows, alarms, states = model.start(), [], [], []
    for t in range(rows):
        state, seen = model.look(state, float(stream.scores[t]), float(stream.groups[t]), float(when[t]))
        alarms.append(seen.alarm)
        open_rows.append((t + int(late[t]), t, seen))
        for due in [each for each in open_rows if each[0] <= t]:
            open_rows.remove(due)
            state = model.count(state, due[2], float(stream.signs[due[1]]))
            states.append(state)
    for _, t, seen in open_rows:
        state = model.count(state, seen, float(stream.signs[t]))
        states.append(state)
    return Played(state, np.array(alarms) > 0.0, states)
