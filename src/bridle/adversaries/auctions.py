"""Advertising auctions, simulated: what a bidder meets in each slot of a day, day after day."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle.adversaries.recorded import Dealt
from bridle.core import Round
from bridle.functions import AffineFunction, QuadraticForm
from bridle.ops import Array

SLOTS = 288
"""Slots of 5 minutes in a day."""

SWING, NOISE, VALUE, TOP = 0.6, (0.5, 1.5), (0.5, 2.0), (2.0, 4.0)
"""How far traffic swings over a day, what chance multiplies it by, the value of an impression, and the highest bid it competes with."""

MOST = (1.0 + SWING) * NOISE[1] * VALUE[1] ** 2 / TOP[0]
"""The largest weight a segment can have in a slot, per impression that it has on average."""

MEAN = (VALUE[0] ** 2 + VALUE[0] * VALUE[1] + VALUE[1] ** 2) / 3.0 * np.log(TOP[1] / TOP[0]) / (TOP[1] - TOP[0])
"""The mean of that weight, over the day and over chance."""


class Auctions(NamedTuple):
    """Second-price auctions in d segments, bid on with the multipliers x: an impression worth v is bid x_i v.

    The highest competing bid is uniform on [0, c] with c >= v, and the winner pays it. So n impressions are won with probability x_i v / c
    each; their expected value is n v^2 x_i / c and their expected price n v^2 x_i^2 / (2 c). With the weight w = n v^2 / c of a segment in
    a slot, f(x) = -<w, x> and g(x) = sum_i w_i x_i^2 / 2 - budget.

    Traffic n swings over the day, each segment with a peak of its own. Every day has its own random numbers, so any slot can be
    computed alone and there is no last one.
    """

    seed: float
    rate: Array  # (d,), impressions in a slot on average
    peak: Array  # (d,), when in the day, 0 to 1
    budget: Array

    @property
    def oblivious(self) -> bool:
        return True

    @property
    def rounds(self) -> int:
        """How many rounds there are: as many as can be counted."""
        return 2**53

    @property
    def player(self) -> Dealt:
        return Dealt()

    def init(self) -> tuple[()]:
        return ()

    def answer(self, state: Any, x: Array, draw: Round) -> tuple[Any, Round]:
        return state, draw

    def replay(self, start: int, stop: int) -> Round:
        """Slots `start` to `stop`."""
        first = start // SLOTS
        days = np.concatenate([self._day(day) for day in range(first, -(-stop // SLOTS))])
        w = days[start - first * SLOTS : stop - first * SLOTS]
        cost = AffineFunction(-w, np.zeros(len(w)))
        spend = QuadraticForm(w[:, :, None] * np.eye(w.shape[1]), 0.0 * w, np.full(len(w), -float(self.budget)))
        return Round(cost, (spend,))

    def _day(self, day: int) -> np.ndarray:
        """The weights of a day's slots."""
        rng = np.random.default_rng([int(self.seed), 2, day])
        shape = (SLOTS, len(self.rate))
        when = np.arange(SLOTS)[:, None] / SLOTS
        traffic = self.rate * (1.0 + SWING * np.cos(2.0 * np.pi * (when - self.peak))) * rng.uniform(*NOISE, shape)
        return np.asarray(traffic * rng.uniform(*VALUE, shape) ** 2 / rng.uniform(*TOP, shape))
