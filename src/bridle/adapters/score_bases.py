"""Where the threshold of a limit stands before its debt moves it: a running quantile of scores, and how far scores spread.

A limit wants a share eps of the rows that it counts to be violations. `ModelBase` learns the score b at which that would be so from every
row, before any label, weighed by the model's own probability that the row counts; q is that probability, x the expected violation of the
row at b less eps q, sd = +1 where a lower threshold means fewer violations and -1 where a higher one does:

    W <- W + q;   b <- b - sd sp max(.03, 3/sqrt(1 + W)) x;   mu, sp <- (mu, sp) + max(q/W, .01 q) (s - mu, |s - mu| - sp)

so that a few hundred positives among many rows behave like a full stream, and a change is answered before labels come. `BufferBase` trusts
no probability: it is the quantile of the last 1,000 scores whose labels came and counted, for scores that are badly calibrated.

Guarantee: none, and none is needed: the debt keeps the rate whatever the base does (`levels`).
Reference: bridle (this file). The update of b is stochastic gradient descent on the pinball loss (R. Koenker, G. Bassett, Econometrica
    1978).

>>> base = Buffer(room=3)
>>> state = base.start()
>>> for score in (5.0, 1.0, 3.0, 2.0):
...     state = base.settle(state, score, 1.0, 0.5, -1.0)
>>> float(base.place(state)), sorted(state.scores.tolist())  # at most half of them lie above it
(2.0, [1.0, 2.0, 3.0])
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from bridle import validate
from bridle.ops import Array, Scalar, absolute, along, floor, maximum, onehot, ratio, sqrt, where

SLOWEST, FASTEST = 0.03, 3.0
"""The least step of the model's base, and the factor of its first ones, both in spreads."""

MEMORY = 0.01
"""The least weight of a row in the mean and the spread of scores."""

ROOM = 1000
"""How many counted scores the buffer holds."""


class Spread(NamedTuple):
    """The weight of all rows so far, and the mean and the mean absolute deviation of their scores."""

    weight: Scalar
    mean: Scalar
    size: Scalar

    def learn(self, score: Scalar, q: Scalar) -> Spread:
        """With one row more, which counts with probability q."""
        weight = self.weight + q
        share = maximum(ratio(q, weight), MEMORY * q)
        return Spread(weight, self.mean + share * (score - self.mean), self.size + share * (absolute(score - self.mean) - self.size))


NO_SPREAD = Spread(0.0, 0.0, 1.0)


class ModelState(NamedTuple):
    """The score b, and how far scores spread."""

    at: Scalar
    spread: Spread


class ModelBase(NamedTuple):
    """The base that learns from every row, by the model's own probabilities."""

    slowest: float
    fastest: float

    def start(self) -> ModelState:
        return ModelState(0.0, NO_SPREAD)

    def place(self, state: ModelState) -> Scalar:
        return state.at

    def look(self, state: ModelState, score: Scalar, q: Scalar, excess: Scalar, sd: float) -> ModelState:
        """After a row was scored: it counts with probability q, and its expected violation at b, less what is allowed, is `excess`."""
        step = maximum(self.slowest, self.fastest / sqrt(1.0 + state.spread.weight + q))
        return ModelState(state.at - sd * state.spread.size * step * excess, state.spread.learn(score, q))

    def settle(self, state: ModelState, score: Scalar, counted: Scalar, share: Scalar, sd: float) -> ModelState:
        return state


class BufferState(NamedTuple):
    """The last counted scores (infinity where there is none yet), how many came in all, their quantile, and how far they spread."""

    scores: Array
    came: Scalar
    at: Scalar
    spread: Spread


class BufferBase(NamedTuple):
    """The base that is a quantile of the last scores that counted; `room` is as long as there is room for scores."""

    room: Array

    def start(self) -> BufferState:
        return BufferState(self.room + inf, 0.0, 0.0, NO_SPREAD)

    def place(self, state: BufferState) -> Scalar:
        return state.at

    def look(self, state: BufferState, score: Scalar, q: Scalar, excess: Scalar, sd: float) -> BufferState:
        return state

    def settle(self, state: BufferState, score: Scalar, counted: Scalar, share: Scalar, sd: float) -> BufferState:
        """After the label of a row came; `counted` is 1 where the limit counts it, else 0."""
        flag = counted > 0.0
        if flag is False:  # what the lines below would come to, without going through all scores
            return state
        room = float(self.room.shape[-1])
        slot = state.came - room * floor(state.came / room)
        here = onehot(slot, state.scores) * counted > 0.0
        scores = where(here, score + 0.0 * self.room, state.scores)
        came = state.came + counted
        held = where(came < room, came, room)
        allowed = floor(share * held + 1e-9)  # 0.1 times 30 must be 3
        rank = where(sd > 0.0, maximum(allowed, 1.0), held - allowed)
        # One score in and one out move the quantile past at most two others.
        at = where(came > counted, state.at, score)
        for _ in range(2):
            at = _nearer(scores, self.room, at, rank)
        return BufferState(scores, came, where(flag, at, state.at), state.spread.learn(score, counted))


def _nearer(scores: Array, none: Array, at: Scalar, rank: Scalar) -> Scalar:
    """`at`, or the next score above or below it where that is nearer to being the score of this rank."""
    up, down = along(scores <= at, "sum") < rank, along(scores < at, "sum") >= rank
    above, below = along(where(scores > at, scores, none + inf), "min"), along(where(scores < at, scores, none - inf), "max")
    return where(up, above, where(down, below, at))


def Model(slowest: float = SLOWEST, fastest: float = FASTEST) -> ModelBase:
    """The base by the model's own probabilities."""
    return ModelBase(validate.positive("slowest", slowest), validate.positive("fastest", fastest))


def Buffer(room: int = ROOM) -> BufferBase:
    """The base by the last `room` counted scores."""
    return BufferBase(np.zeros(validate.whole("room", room)))
