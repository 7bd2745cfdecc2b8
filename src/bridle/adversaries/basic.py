"""The opponents of the paper: fixed, minimax, random halfspaces, and a coin for every coordinate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle.core import Round
from bridle.functions import AffineFunction, AffineRows, Coordinate, CoordinateDeviation, RoundQuadratic
from bridle.ops import Array, scalar, worst


class Fixed(NamedTuple):
    """The same round every time."""

    round: Round

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> tuple[()]:
        return ()

    def answer(self, state: Any, x: Array) -> tuple[Any, Round]:
        return state, self.round


class Minimax(NamedTuple):
    """Among m linear costs <c_j, x> (plus one quadratic where `modulus` is above 0), the one that is worst at x; one fixed halfspace.

    It is convex in the paper's sense (appendix A.7): regret against the average decision is never negative.
    """

    costs: Array  # (m, d)
    modulus: Array
    middle: Array
    a: Array
    b: Array

    @property
    def oblivious(self) -> bool:
        return False

    def init(self) -> tuple[()]:
        return ()

    def answer(self, state: Any, x: Array) -> tuple[Any, Round]:
        _, cost = worst((self.costs @ x[..., None])[..., 0], self.costs)
        halfspace = AffineFunction(self.a + 0.0 * x, self.b + scalar(x))
        return state, Round(RoundQuadratic(self.modulus + scalar(x), self.middle + 0.0 * x, cost, scalar(x)), (halfspace,))


class RandomHalfspaces(NamedTuple):
    """k fresh halfspaces every round, all satisfied at `point` by a margin of `slater` to twice that, that pull against the costs.

    Costs favour the direction `drift`, normals lean towards it. With `modulus` above 0 the costs are (modulus/2) |x - z_t|^2 instead, with
    targets z_t in the domain scattered on the side of `drift`.
    """

    domain: Any
    point: Array
    drift: Array
    modulus: Array
    slater: Array
    each: Array  # (k,)

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> tuple[()]:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        d, k = len(self.point), len(self.each)
        cost = drifting(self.domain, self.drift, self.modulus, rng, rounds)
        rows = rng.standard_normal((rounds, k, d))
        A = unit(0.5 * self.drift + rows / np.sqrt(d))
        b = -(A * self.point).sum(axis=-1) - self.slater * rng.uniform(1.0, 2.0, size=(rounds, k))
        constraint = AffineFunction(A[:, 0], b[:, 0]) if k == 1 else AffineRows(A, b)
        return Round(cost, (constraint,))

    def answer(self, state: Any, x: Array, draw: Round) -> tuple[Any, Round]:
        return state, draw


class CoinPerCoordinate(NamedTuple):
    """The instance of Theorem 3: round t constrains coordinate t alone, to one of two sides that a fair coin picks.

    Heads: x_t <= low and cost |x_t - low|. Tails: x_t >= high and cost |x_t - high|.
    """

    low: Array
    high: Array

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> Array:
        return 0.0  # the coordinate of the next round

    def deal(self, rng: np.random.Generator, rounds: int) -> Array:
        return rng.integers(0, 2, size=rounds).astype(float)

    def answer(self, state: Array, x: Array, draw: Array) -> tuple[Array, Round]:
        target = self.low + draw * (self.high - self.low)
        return state + 1.0, Round(CoordinateDeviation(state, target), (Coordinate(state, 1.0 - 2.0 * draw, target),))


def unit(rows: np.ndarray) -> np.ndarray:
    """The rows, each made 1 long."""
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def drifting(domain: Any, drift: np.ndarray, modulus: Any, rng: np.random.Generator, rounds: int) -> Any:
    """Random costs that favour the direction `drift`: linear with slopes of length 1, or (modulus/2) |x - z_t|^2, z_t in the domain."""
    d = len(drift)
    noise = rng.standard_normal((rounds, d))
    if modulus > 0.0:
        targets = domain.project(domain.center() + domain.diameter() * (0.4 * drift + 0.3 * noise / np.sqrt(d)))
        return RoundQuadratic(np.full(rounds, float(modulus)), targets, np.zeros((rounds, d)), np.zeros(rounds))
    return AffineFunction(unit(-2.0 * drift + noise / np.sqrt(d)), np.zeros(rounds))
