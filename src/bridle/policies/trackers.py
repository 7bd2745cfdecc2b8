"""Built-in rules for limits that come again and again: where they were, with more or less room.

h is the point nearest to the action at which this round's limits, linearised, hold with equality (the demand, for a capacity). For each of
four memories a its running mean, and of |<grad g_i, h - mean>| the running mean deviation s_i, give a rule for each multiple c:

    h = P_X(x - J^+ g),     mean <- mean + a (h - mean),    s_i <- s_i + a (|<grad g_i, h - mean>| - s_i),    propose  P_X(mean - c J^+ s)

with a = 1/n while that is larger, in the n-th round. With a = 1 the mean is what came last, and the deviation how far that was from what
came before: where rounds resemble the last one more than the mean of many, nothing else follows them. Where there are fewer limits than
coordinates, one more rule goes down the gradients that the mixture is fed with (AdaGrad): trackers know nothing of directions that the
limits leave free.

Units of costs, limits and actions do not matter, and neither does the size of the domain.

>>> import bridle
>>> domain = bridle.Box(0.0, 1e6, dim=1)
>>> trackers = make_trackers(domain, 1)
>>> state = trackers.init(np.array([5e5]), np.zeros(1))
>>> for demand in (9.0, 11.0):
...     x, row = np.array([5e5]), np.array([[-1.0]])
...     state = trackers.update(state, domain, x, demand - x, row, np.ones(1))
>>> trackers.propose(state, domain, row)[:10, 0].reshape(2, 5)
array([[11., 13., 15., 19., 27.],
       [10., 11., 12., 14., 18.]])
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import learners, ops
from bridle.core import Domain
from bridle.learners import AdaGradNorm, Iterate
from bridle.ops import Array, Scalar, dot, maximum, pos, ratio, scalar, where

MEMORIES = (1.0, 0.3, 0.05, 0.005)
"""The weights of a new round in the running means."""

MULTIPLES = (0.0, 1.0, 2.0, 4.0, 8.0)
"""How many mean deviations of room."""

APART = 0.01
"""A row is taken to point out of the span of others where the squared sine of its angle with that is above this."""

PASSES = 2
"""Over the rows that do not: each then gets the margin that it asks for, at least."""


class TrackerState(NamedTuple):
    """Means and deviations, one a row for each memory; in how many rounds there was a limit; the state of the rule that goes down."""

    mean: Array
    spread: Array
    seen: Scalar
    free: Iterate | None


class Trackers(NamedTuple):
    """The rules; `free` is the learner that goes down the gradients, where there is one."""

    memories: Array
    multiples: Array
    free: AdaGradNorm | None

    @property
    def size(self) -> int:
        """How many rules there are."""
        return len(self.memories) * len(self.multiples) + (self.free is not None)

    def init(self, x1: Array, limits: Array) -> TrackerState:
        """`limits` is a zero for each limit."""
        many = 0.0 * self.memories[:, None]
        free = None if self.free is None else self.free.init(x1)
        return TrackerState(x1[..., None, :] + many, limits[..., None, :] + many, scalar(x1), free)

    def update(self, state: TrackerState, domain: Domain, x: Array, g: Array, dg: Array, grad: Array) -> TrackerState:
        """With what a round has shown; `grad` is what the mixture was fed with."""
        sloped = (dg * dg).sum(-1) > 0.0
        there = where(ops.along(sloped, "max") > 0.0, 1.0, 0.0)
        seen = state.seen + there
        weight = (there * maximum(self.memories, ratio(1.0, seen)))[..., None]
        away = domain.project(x - shift(dg, g))[..., None, :] - state.mean
        off = ops.absolute(away @ ops.namespace(dg).swapaxes(dg, -1, -2))
        known = sloped[..., None, :] * (seen > 1.0 if isinstance(seen, float) else (seen > 1.0)[..., None])
        spread = state.spread + weight * known * (off - state.spread)
        return TrackerState(
            state.mean + weight * away,
            spread,
            seen,
            None if self.free is None or state.free is None else self.free.step(state.free, grad),
        )

    def propose(self, state: TrackerState, domain: Domain, rows: Array) -> Array:
        """What each rule proposes, one a row."""
        room = shift(rows[..., None, :, :], state.spread)
        grid = state.mean[..., :, None, :] - self.multiples[:, None] * room[..., :, None, :]
        flat = domain.project(grid.reshape((*rows.shape[:-2], -1, rows.shape[-1])))
        return flat if self.free is None or state.free is None else ops.join([flat, self.free.decide(state.free)[..., None, :]], -2)


def make_trackers(domain: Domain, limits: int) -> Trackers:
    """The rules for so many limits."""
    free = learners.AdaGrad(domain) if domain.dim > limits else None
    return Trackers(np.array(MEMORIES), np.array(MULTIPLES), free)  # type: ignore[arg-type]


def shift(rows: Array, margins: Array) -> Array:
    """The shortest z with <row_i, z> = margin_i for all i, so that x - z has these margins more.

    Rows that point nearly into the span of others before them cannot all be met: then z has at least the margin of each.

    >>> shift(np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([3.0, 2.0]))
    array([2., 1.])
    >>> shift(np.array([[-1.0], [-1.0]]), np.array([1.0, 3.0]))
    array([-3.])
    """
    k, z = rows.shape[-2], 0.0 * rows[..., 0, :]  # of all that is to be shifted, along axes before the last
    across: list[Array] = []
    for i in range(k):
        row, goal = rows[..., i, :], entry_of(margins, i)
        rest = row
        for other in across:
            rest = rest - ratio(dot(rest, other), dot(other, other)) * other
        rest = where(ops.concrete(dot(rest, rest) > APART * dot(row, row)), rest, 0.0 * rest)
        z = z + ratio(goal - dot(row, z), dot(rest, rest)) * rest
        across.append(rest)
    for _ in range(PASSES if k > 1 else 0):
        for i in range(k):
            row, goal = rows[..., i, :], entry_of(margins, i)
            z = z + ratio(pos(goal - dot(row, z)), dot(row, row)) * row
    return z


def each_row(rows: Array, v: Array) -> Array:
    """<row_i, v> for every i."""
    return (rows @ v[..., None])[..., 0]


def entry_of(values: Array, i: int) -> Array:
    """Entry i, with its axis."""
    return values[..., i : i + 1]
