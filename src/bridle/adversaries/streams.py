"""Opponents around one action: random halfspaces near it, temptation away from it, noise, and constraints that come to contradict it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle.adversaries.basic import unit
from bridle.core import Round
from bridle.functions import AffineFunction
from bridle.ops import Array, dot, floor, maximum, norm, ratio, scalar

NEAREST = 1e-9
"""Nearer to the point than this a normal is shortened, so that rounding does not choose its direction."""


class Scattered(NamedTuple):
    """Random halfspaces of unit normal that leave `point` an exponential `slack` on average, and never more than `most`.

    Costs are linear: <pull, x> every round, or of a random direction and slope 1 where `pull` is zero. With `side` 1 the normals' first
    coordinates are made positive.
    """

    point: Array
    pull: Array
    side: Array
    slack: Array
    most: Array

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> tuple[()]:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        d = len(self.point)
        slopes = unit(rng.standard_normal((rounds, d)))
        if self.pull.any():
            slopes = np.broadcast_to(self.pull, (rounds, d))
        return Round(AffineFunction(slopes, np.zeros(rounds)), (self.halfspaces(rng, rounds),))

    def halfspaces(self, rng: np.random.Generator, rounds: int) -> AffineFunction:
        """The constraints of the next rounds."""
        normals = unit(rng.standard_normal((rounds, len(self.point))))
        if self.side:
            normals[:, 0] = abs(normals[:, 0])
        slack = np.minimum(self.slack * rng.exponential(size=rounds), self.most)
        return AffineFunction(normals, -normals @ self.point - slack)

    def answer(self, state: Any, x: Array, draw: Round) -> tuple[Any, Round]:
        return state, draw


class Tempting(NamedTuple):
    """Answers x with the halfspace through `point` that x violates most, <a, x - point> <= 0 with a along x - point.

    The cost is -<a, x> where `follows` is 1, cheapest where the constraint forbids most, else <pull, x>. The constraint comes every
    `period` rounds after the first `start`; in the others it is -`rest` everywhere.
    """

    point: Array
    pull: Array
    follows: Array
    period: Array
    start: Array
    rest: Array

    @property
    def oblivious(self) -> bool:
        return False

    def init(self) -> Array:
        return 0.0  # rounds so far

    def answer(self, state: Array, x: Array) -> tuple[Array, Round]:
        away = x - self.point
        normal = away * ratio(1.0, maximum(norm(away), NEAREST))
        place = state - self.period * floor(state / self.period)
        on = (state >= self.start) * (place >= self.period - 1.0) * 1.0
        constraint = AffineFunction(on * normal, -on * dot(normal, self.point) - (1.0 - on) * self.rest)
        return state + 1.0, Round(AffineFunction(self.pull - self.follows * normal, scalar(x)), (constraint,))


class NoisyHalfspace(NamedTuple):
    """The cost <pull, x> and the halfspace <a, x> + b <= 0 every round, whose value is told with an error of up to `noise`."""

    pull: Array
    a: Array
    b: Array
    noise: Array

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> tuple[()]:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        errors = self.noise * rng.uniform(-1.0, 1.0, size=rounds)
        slopes, normals = (np.broadcast_to(row, (rounds, len(row))) for row in (self.pull, self.a))
        return Round(AffineFunction(slopes, np.zeros(rounds)), (AffineFunction(normals, self.b + errors),))

    def answer(self, state: Any, x: Array, draw: Round) -> tuple[Any, Round]:
        return state, draw


class Contradiction(NamedTuple):
    """Random halfspaces around a point for `start` rounds, and then two in turn that exclude each other.

    They are +-<a, x - point> + level <= 0, of which every action breaks one by `level` or more; a is 1 long.
    """

    before: Scattered
    a: Array
    level: Array
    start: Array

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> Array:
        return 0.0  # rounds so far

    def deal(self, rng: np.random.Generator, rounds: int) -> AffineFunction:
        return self.before.halfspaces(rng, rounds)

    def answer(self, state: Array, x: Array, draw: AffineFunction) -> tuple[Array, Round]:
        since = state - self.start
        on, side = (since >= 0.0) * 1.0, 1.0 - 2.0 * (since - 2.0 * floor(0.5 * since))
        normal = (1.0 - on) * draw.a + on * side * self.a
        offset = (1.0 - on) * draw.b + on * (self.level - side * dot(self.a, self.before.point))
        return state + 1.0, Round(AffineFunction(self.before.pull, scalar(self.before.pull)), (AffineFunction(normal, offset),))
