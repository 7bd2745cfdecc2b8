"""What a game adds up: over a block of rounds that an engine hands back, or round by round where the engine adds up itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle.core import Feedback
from bridle.ops import Array, maximum, pos, scalar, vector


class Totals(NamedTuple):
    """Running sums after so many rounds. Shapes: ``()`` and ``(k,)`` for one run, ``(B,)`` and ``(B, k)`` for B runs.

    Over the rounds so far: `cost` of f; `hard` of (g_i)^+; `soft` of g_i; `squared` of ((g_i)^+)^2; `worst` of (max_i g_i)^+. `queue` is
    the largest sum of g_i over an interval that ends now, `interval` over any interval (the empty one counts 0).
    """

    rounds: Any
    cost: Any
    hard: Any
    soft: Any
    squared: Any
    worst: Any
    queue: Any
    interval: Any


def accumulate(before: Totals, f: np.ndarray, g: np.ndarray) -> Totals:
    """The totals after every round of a block, given those before it: each field with a leading time axis."""

    def sums(start: Any, terms: np.ndarray) -> np.ndarray:
        terms = terms.copy()
        terms[0] += start
        return np.cumsum(terms, axis=0)

    hard, drift = np.maximum(g, 0.0), np.cumsum(g, axis=0)
    # Lindley's recursion Q_t = (Q_{t-1} + g_t)^+ in closed form.
    queue = drift + np.maximum(before.queue, np.maximum.accumulate(-drift, axis=0))
    return Totals(
        before.rounds + np.arange(1.0, len(f) + 1.0),
        sums(before.cost, f),
        sums(before.hard, hard),
        sums(before.soft, g),
        sums(before.squared, hard * hard),
        sums(before.worst, hard.max(axis=-1)),
        queue,
        np.maximum(before.interval, np.maximum.accumulate(queue, axis=0)),
    )


class Summed(NamedTuple):
    """The state of a policy, and the totals of its game."""

    policy: Any
    sums: Totals


class Summing(NamedTuple):
    """A policy that also keeps the totals of its game, for an engine that brings no rounds home."""

    policy: Any
    each: Array  # (k,)

    def init(self, x1: Array) -> Summed:
        zero, each = scalar(x1), vector(x1, self.each)
        return Summed(self.policy.init(x1), Totals(zero, zero, each, each, each, zero, each, each))

    def decide(self, state: Summed) -> Array:
        return self.policy.decide(state.policy)

    def update(self, state: Summed, feedback: Feedback) -> Summed:
        sums, f, g = state.sums, feedback.f, feedback.g
        hard, queue = pos(g), pos(sums.queue + g)
        cost, soft = sums.cost + f, sums.soft + g
        # A sum that is not finite stays so: what is counted are the rounds before that.
        fine = 0.0 * (cost + soft.sum(axis=-1, keepdims=soft.ndim > 1)) == 0.0
        after = Totals(
            sums.rounds + fine * 1.0,
            cost,
            sums.hard + hard,
            soft,
            sums.squared + hard * hard,
            sums.worst + hard.max(axis=-1, keepdims=hard.ndim > 1),
            queue,
            maximum(sums.interval, queue),
        )
        return Summed(self.policy.update(state.policy, feedback), after)


def empty(shape: tuple[int, ...], k: int) -> Totals:
    """The totals of no rounds."""
    zero, each = np.zeros(shape), np.zeros((*shape, k))
    return Totals(0.0, zero, each, each, each, zero, each, each)


def curve_rounds(rounds: int) -> np.ndarray:
    """The log-spaced rounds at which a game of so many rounds keeps its totals."""
    return np.unique(np.concatenate([[1.0, rounds], np.round(np.geomspace(1, rounds, 20 * len(str(rounds))))]))
