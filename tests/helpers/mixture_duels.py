"""Duels of a learner on a simplex with an opponent that picks the corners' losses, and what is seen of each round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

OPPONENTS = ("random", "noise", "exploding", "shrinking", "against", "leader", "laggard", "decades", "uneven", "offset", "blocks", "alike")
CORNERS = (1, 2, 3, 7, 40)
SIZES = ((1.0, 1.0), (1e-6, 2.5), (1e6, 0.3))
"""How many times as large the losses are, and the simplex's mass."""
ROUNDS = 120


class LossPicker:
    """Losses of the corners, chosen after seeing the weights."""

    def __init__(self, kind: str, corners: int, seed: int) -> None:
        self.kind, self.rng = kind, np.random.default_rng(seed)
        self.scales, self.total = 10.0 ** self.rng.uniform(-3.0, 3.0, corners), np.zeros(corners)

    def __call__(self, w: np.ndarray, t: int) -> np.ndarray:
        losses = self._answer(w, t)
        self.total = self.total + losses
        return losses

    def _answer(self, w: np.ndarray, t: int) -> np.ndarray:
        K, noise = len(w), self.rng.standard_normal(len(w))
        match self.kind:
            case "random":
                return self.rng.random(K)
            case "noise":
                return noise
            case "exploding":
                return 2.0 ** (t / 20.0) * noise
            case "shrinking":
                return 2.0 ** (-t / 20.0) * noise
            case "against":  # what is played costs most
                return w / w.max()
            case "leader":
                return np.eye(K)[np.argmax(w)]
            case "laggard":  # the corner that has done worst so far turns best
                return -np.eye(K)[np.argmax(self.total)] * (1.0 + t % 3)
            case "decades":
                return 10.0 ** self.rng.uniform(-6.0, 6.0) * noise
            case "uneven":  # some corners are absurd
                return self.scales * noise
            case "offset":
                return 1e3 + self.rng.random(K)
            case "blocks":  # now the one half, now the other
                return np.where(np.arange(K) % 2 == (t // 13) % 2, 0.0, 1.0)
            case "alike":
                return np.full(K, noise[0]) + (noise if t % 10 == 0 else 0.0)
        raise ValueError(self.kind)


class MixtureMoment(NamedTuple):
    """Where a duel stands after a round: the state, what was played and lost, regret against each corner, sums of what was seen."""

    t: int
    before: Any
    state: Any
    w: np.ndarray
    losses: np.ndarray
    regrets: np.ndarray
    squared_ranges: float
    variances: float
    largest: float
    paid: float  # the sizes that the regrets were summed from, for their rounding


def mixture_duel(
    learner: Any, opponent: Any, size: float = 1.0, rounds: int = ROUNDS, x1: np.ndarray | None = None
) -> Iterator[MixtureMoment]:
    """The learner against losses `size` times as large as the opponent's; every decision must be admissible."""
    domain = learner.domain
    state = learner.init(domain.center() if x1 is None else x1)
    regrets, squares, variances, largest, paid = np.zeros(domain.dim, dtype=np.longdouble), 0.0, 0.0, 0.0, 0.0
    for t in range(1, rounds + 1):
        x = learner.decide(state)
        assert domain.contains(x)
        w = x / domain.mass
        losses = size * opponent(w, t)
        before, state = state, learner.step(state, losses / domain.mass)
        s = float(np.ptp(losses))
        centred = losses - losses.min()
        regrets = regrets + (np.longdouble(1.0) * w) @ centred - centred
        squares, largest = squares + s * s, max(largest, s)
        variances += float(w @ (centred - w @ centred) ** 2)
        paid += float(np.abs(losses).max())
        yield MixtureMoment(t, before, state, w, losses, regrets.astype(float), squares, variances, largest, paid)


def late_duel(learner: Any, opponent: LossPicker, delay: int) -> Iterator[tuple[Any, np.ndarray, float]]:
    """The losses of each round come `delay` rounds later: the state after each, the regret to every corner, and how much was at stake."""
    state, waiting, regrets, paid = learner.init(learner.domain.center()), [], np.zeros(learner.domain.dim), 0.0
    for t in range(1, ROUNDS):
        x = learner.decide(state)
        waiting.append((x, opponent(x, t)))
        if len(waiting) > delay:
            old, losses = waiting.pop(0)
            state = learner.step_at(state, losses, old)
            regrets, paid = regrets + old @ losses - losses, paid + float(np.abs(losses).max())
            yield state, regrets, paid
