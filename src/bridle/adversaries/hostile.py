"""Opponents that try to hurt: they seek violation or regret, change sides, spring a constraint late, or shout and whisper."""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np

from bridle.adversaries.basic import drifting, unit
from bridle.core import Round
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.ops import Array, dot, exp, floor, maximum, norm, ratio, scalar


class ViolationSeeking(NamedTuple):
    """Answers x with the halfspace of unit normal that x violates most among those that `point` satisfies by a margin of `slater`.

    That is <a, y - point> <= slater with a along x - point, violated by |x - point| - slater. (Nearer to the point than the margin no such
    halfspace is violated; there the normal is shortened, so that it changes gradually.) Random costs favour the direction `drift`.
    """

    domain: Any
    point: Array
    drift: Array
    modulus: Array
    slater: Array

    @property
    def oblivious(self) -> bool:
        return False

    def init(self) -> tuple[()]:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> Any:
        return drifting(self.domain, self.drift, self.modulus, rng, rounds)

    def answer(self, state: Any, x: Array, draw: Any) -> tuple[Any, Round]:
        away = x - self.point
        normal = away * ratio(1.0, maximum(norm(away), self.slater))
        return state, Round(draw, (AffineFunction(normal, -dot(normal, self.point) - self.slater),))


class RegretSeeking(NamedTuple):
    """Answers x with a linear cost of slope 1 that x does not gain from and that is at right angles to all costs before it together.

    So the decisions pay 0 or more, seen from `middle`, while the costs add up to a slope of sqrt(t), against which some action gains
    sqrt(t) times its distance from `middle`. One quadratic is added where `modulus` is above 0; the halfspace <a, x> + b <= 0 is fixed.

    A decision made of past slopes alone may be at right angles to the next one up to rounding. A gain of less than `trifle` is let go, so
    that rounding decides nothing.
    """

    middle: Array
    modulus: Array
    a: Array
    b: Array
    trifle: Array

    @property
    def oblivious(self) -> bool:
        return False

    def init(self) -> Array:
        return 0.0 * self.middle  # the sum of the slopes so far

    def deal(self, rng: np.random.Generator, rounds: int) -> Array:
        return rng.standard_normal((rounds, len(self.middle)))

    def answer(self, state: Array, x: Array, draw: Array) -> tuple[Array, Round]:
        across = draw - ratio(dot(draw, state), dot(state, state)) * state
        across = across * ratio(1.0, norm(across))
        slope = across * (1.0 - 2.0 * (dot(across, x - self.middle) < -self.trifle))
        cost = RoundQuadratic(self.modulus + scalar(x), self.middle + 0.0 * x, slope, -dot(slope, self.middle))
        return state + slope, Round(cost, (AffineFunction(self.a + 0.0 * x, self.b + scalar(x)),))


class Alternating(NamedTuple):
    """For `period` rounds cost and constraint are on one side, then for as many on the other, and so on.

    On side s = +1 or -1 the constraint is s <a, x - point> <= slater and the cost pulls across it: -s <pull, x - point>, or
    (modulus/2) |x - middle - s spread|^2.
    """

    point: Array
    a: Array
    slater: Array
    period: Array
    pull: Array
    modulus: Array
    middle: Array
    spread: Array

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> Array:
        return 0.0  # rounds so far

    def answer(self, state: Array, x: Array) -> tuple[Array, Round]:
        turns = floor(state / self.period)
        side = 1.0 - 2.0 * (turns - 2.0 * floor(0.5 * turns))
        cost = RoundQuadratic(
            self.modulus + 0.0 * side, self.middle + side * self.spread, -side * self.pull, side * dot(self.pull, self.point)
        )
        return state + 1.0, Round(cost, (AffineFunction(side * self.a, -side * dot(self.a, self.point) - self.slater),))


class LateConstraint(NamedTuple):
    """The same cost every round; the constraint is -slater everywhere for the first `start` rounds, and then <a, x> + b <= 0."""

    cost: Any
    a: Array
    b: Array
    slater: Array
    start: Array

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> Array:
        return 0.0  # rounds so far

    def answer(self, state: Array, x: Array) -> tuple[Array, Round]:
        on = (state >= self.start) * 1.0
        return state + 1.0, Round(self.cost, (AffineFunction(on * self.a, on * self.b - (1.0 - on) * self.slater),))


class RandomScales(NamedTuple):
    """Random linear costs and halfspaces, each times 10^-n with n drawn from 0 to `decades`; all hold at `point` by `slater` times that."""

    point: Array
    drift: Array
    slater: Array
    decades: Array

    @property
    def oblivious(self) -> bool:
        return True

    def init(self) -> tuple[()]:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        cost, constraint = _sides(self.point, self.drift, self.slater, rng, rounds)
        for_cost, for_constraint = 10.0 ** -rng.integers(0, int(self.decades) + 1, size=(2, rounds)).astype(float)
        return Round(
            AffineFunction(for_cost[:, None] * cost.a, for_cost * cost.b),
            (AffineFunction(for_constraint[:, None] * constraint.a, for_constraint * constraint.b),),
        )

    def answer(self, state: Any, x: Array, draw: Round) -> tuple[Any, Round]:
        return state, draw


class AdaptiveScales(NamedTuple):
    """Likewise, with one scale for both that depends on the decision: 10^-decades at `point`, growing to 1 at a distance of `reach`."""

    point: Array
    drift: Array
    slater: Array
    decades: Array
    reach: Array

    @property
    def oblivious(self) -> bool:
        return False

    def init(self) -> tuple[()]:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> tuple[AffineFunction, AffineFunction]:
        return _sides(self.point, self.drift, self.slater, rng, rounds)

    def answer(self, state: Any, x: Array, draw: tuple[AffineFunction, AffineFunction]) -> tuple[Any, Round]:
        scale = exp(log(10.0) * self.decades * (norm(x - self.point) / self.reach - 1.0))
        cost, constraint = (AffineFunction(scale * part.a, scale * part.b) for part in draw)
        return state, Round(cost, (constraint,))


def _sides(
    point: np.ndarray, drift: np.ndarray, slater: Any, rng: np.random.Generator, rounds: int
) -> tuple[AffineFunction, AffineFunction]:
    """Random linear costs of slope 1 that favour `drift`, and halfspaces against it that hold at `point` by a margin."""
    d = len(drift)
    noise = rng.standard_normal((2, rounds, d)) / np.sqrt(d)
    normals = unit(0.5 * drift + noise[1])
    return AffineFunction(unit(-2.0 * drift + noise[0]), np.zeros(rounds)), AffineFunction(normals, -normals @ point - slater)
