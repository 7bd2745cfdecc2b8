"""Opponents of the paper's special settings: a game, fixed constraints, windows, static violation, shared weights, nested bodies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle.adversaries.basic import drifting, unit
from bridle.core import Round
from bridle.functions import AffineFunction, AffineRows, RoundQuadratic
from bridle.ops import Array, floor, pos, scalar, sqrt, worst


class CoupledGame(NamedTuple):
    """A second player who answers the mixed strategy x with the move that makes cost plus excess usage largest.

    Move j costs <c_j, x> (plus one quadratic where `modulus` is above 0) and asks for <u_j, x> <= limit, which both players share.
    """

    moves: Array  # (m, 2d): c_j and u_j side by side
    limit: Array
    modulus: Array
    middle: Array

    @property
    def oblivious(self) -> bool:
        return False

    def init(self) -> tuple[()]:
        return ()

    def answer(self, state: Any, x: Array) -> tuple[Any, Round]:
        d = x.shape[-1]
        cost, usage = (self.moves[..., :d] @ x[..., None])[..., 0], (self.moves[..., d:] @ x[..., None])[..., 0]
        _, move = worst(cost + pos(usage - self.limit), self.moves)
        price = RoundQuadratic(self.modulus + scalar(x), self.middle + 0.0 * x, move[..., :d] + 0.0 * x, scalar(x))
        return state, Round(price, (AffineFunction(move[..., d:] + 0.0 * x, scalar(x) - self.limit),))


class FixedConstraints(NamedTuple):
    """Random costs that favour the direction `drift`; the same constraints A x + b <= 0 every round."""

    domain: Any
    drift: Array
    modulus: Array
    A: Array  # (k, d)
    b: Array

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> tuple[()]:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        cost = drifting(self.domain, self.drift, self.modulus, rng, rounds)
        return Round(cost, (AffineRows(np.broadcast_to(self.A, (rounds, *self.A.shape)), np.broadcast_to(self.b, (rounds, len(self.b)))),))

    def answer(self, state: Any, x: Array, draw: Round) -> tuple[Any, Round]:
        return state, draw


class PairDraw(NamedTuple):
    """What a round of `OpposedPairs` draws: a cost, a normal, and the normal's product with the point."""

    cost: Any
    normal: Array
    height: Array


class OpposedPairs(NamedTuple):
    """Two constraints a round, +<a_t, x - point> + c_t <= 0 and -<a_t, x - point> + c_t <= 0, with a_t one of a few random directions.

    Over any rounds the two sum to twice the sum of c_t whatever the actions are, so no action has both below it, and `point` has both at
    it: windows and intervals are for every action at least what they are for c_t. And c_t is `tilt` plus a schedule of period S: `level`
    for S/2 rounds, nothing in the middle one of an odd S, minus `level` for S/2 rounds. With no tilt the first S' rounds of a period sum
    to more than 0 for every S' < S, and any S rounds in a row to 0.
    """

    domain: Any
    point: Array
    drift: Array
    modulus: Array
    directions: Array  # (m, d)
    window: Array
    level: Array
    tilt: Array

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> Array:
        return 0.0  # rounds so far

    def deal(self, rng: np.random.Generator, rounds: int) -> PairDraw:
        cost = drifting(self.domain, self.drift, self.modulus, rng, rounds)
        normals = self.directions[rng.integers(0, len(self.directions), size=rounds)]
        return PairDraw(cost, normals, normals @ self.point)

    def answer(self, state: Array, x: Array, draw: PairDraw) -> tuple[Array, Round]:
        place, half = state - self.window * floor(state / self.window), floor(0.5 * self.window)
        over = self.tilt + self.level * ((place < half) * 1.0 - (place >= self.window - half) * 1.0)
        pair = AffineFunction(draw.normal, over - draw.height), AffineFunction(-draw.normal, over + draw.height)
        return state + 1.0, Round(draw.cost, pair)


class SharedWeights(NamedTuple):
    """k linear tasks for one weight vector x: task j shows an example z and asks for <z, x> >= margin.

    An example of task j is `score` along `weights` and otherwise looks like `looks[j]` plus noise; examples are 1 long. With `conflict`
    above 0 the last task is shown the first one's example and asks for <z, x> <= margin - 2 conflict. The cost is (modulus/2) |x|^2.
    """

    weights: Array
    looks: Array  # (k, d)
    modulus: Array
    score: Array
    margin: Array
    conflict: Array

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> tuple[()]:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        k, d = self.looks.shape
        aside = self.looks + rng.standard_normal((rounds, k, d)) / np.sqrt(d)
        aside = unit(aside - (aside @ self.weights)[..., None] * self.weights)
        A = -(self.score * self.weights + np.sqrt(1.0 - self.score**2) * aside)
        b = np.full((rounds, k), float(self.margin))
        if self.conflict > 0.0:
            A[:, -1], b[:, -1] = -A[:, 0], 2.0 * self.conflict - self.margin
        zero = np.zeros((rounds, d))
        decay = RoundQuadratic(np.full(rounds, float(self.modulus)), zero, zero, zero[:, 0])
        return Round(decay if self.modulus > 0.0 else AffineFunction(zero, zero[:, 0]), (AffineRows(A, b),))

    def answer(self, state: Any, x: Array, draw: Round) -> tuple[Any, Round]:
        return state, draw


class NormalDraw(NamedTuple):
    """A random normal, and its product with a point."""

    normal: Array
    height: Array


class NestedBodies(NamedTuple):
    """One more halfspace every round: <a_t, x - point> <= slater + room / sqrt(t). What all of them leave shrinks; costs are zero."""

    point: Array
    room: Array
    slater: Array

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> Array:
        return 0.0  # rounds so far

    def deal(self, rng: np.random.Generator, rounds: int) -> NormalDraw:
        normals = unit(rng.standard_normal((rounds, len(self.point))))
        return NormalDraw(normals, normals @ self.point)

    def answer(self, state: Array, x: Array, draw: NormalDraw) -> tuple[Array, Round]:
        within = self.slater + self.room / sqrt(state + 1.0)
        free = AffineFunction(0.0 * draw.normal, 0.0 * draw.height)
        return state + 1.0, Round(free, (AffineFunction(draw.normal, -draw.height - within),))
