"""Streams of demand for a capacity that is chosen before it, and rules that people use for it."""

from __future__ import annotations

import numpy as np

PERIOD = 96


def demand(kind: str, rounds: int, seed: int = 0) -> np.ndarray:
    """Demands of mean about 10: alike ("iid"), with a daily season, in bursts, or shifted up and down by thirds of the time."""
    rng, t = np.random.default_rng(seed), np.arange(rounds)
    if kind == "iid":
        return rng.gamma(4.0, 2.5, rounds)
    if kind == "seasonal":
        return (10.0 + 6.0 * np.sin(2.0 * np.pi * t / PERIOD)) * np.exp(0.25 * rng.standard_normal(rounds))
    if kind == "shift":
        return np.select([t < rounds // 3, t < 2 * rounds // 3], [1.0, 3.0], 0.6) * rng.gamma(4.0, 2.5, rounds)
    assert kind == "bursts"
    busy, state = np.zeros(rounds, dtype=bool), False
    for i, chance in enumerate(rng.random(rounds)):
        state = chance < (0.85 if state else 0.03)
        busy[i] = state
    return np.where(busy, rng.gamma(2.0, 10.0, rounds), rng.gamma(3.0, 1.0, rounds))


class Rules:
    """EWMA + k deviations for two memories, the same time of the last days + k deviations, nothing, and all there is; `top` is all."""

    def __init__(self, top: float) -> None:
        self.top, self.n = top, 0
        self.means, self.spreads = np.zeros(2), np.zeros(2)
        self.season, self.error = np.zeros(PERIOD), 0.0

    SIZE = 2 + 2 * 4 + 4

    def propose(self) -> np.ndarray:
        """What each rule proposes, one a row."""
        steps = np.arange(4.0)
        tracked = (self.means[:, None] + steps * self.spreads[:, None]).ravel()
        seasonal = self.season[self.n % PERIOD] + steps * self.error
        return np.clip(np.concatenate([[0.0, self.top], tracked, seasonal]), 0.0, self.top)[:, None]

    def see(self, value: float) -> None:
        """With one more demand."""
        weight = np.maximum([0.3, 0.05], 1.0 / (self.n + 1))
        self.spreads += weight * (1.25 * np.abs(value - self.means) - self.spreads)
        self.means += weight * (value - self.means)
        slot, day = self.n % PERIOD, self.n // PERIOD
        self.error += 0.02 * (1.25 * abs(value - self.season[slot]) - self.error) * (day > 0)
        self.season[slot] += max(0.2, 1.0 / (day + 1)) * (value - self.season[slot])
        self.n += 1
