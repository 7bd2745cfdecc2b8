"""Streams that show what a policy does with constraints: near one action, tempting, rare, late, in one dimension, noisy, without
a price, contradictory.

| problem | adversary | what it does |
|---|---|---|
| `scattered`, `pull-out` | `Scattered` | draws random halfspaces that nearly touch one action |
| `tempting`, `rare-constraint`, `late-temptation` | `Tempting` | forbids what the decision tends to: always, rarely, late |
| `uphill` | `Fixed` | repeats one cost and one constraint in one dimension |
| `noisy` | `NoisyHalfspace` | tells the value of a fixed constraint with an error |
| `tangent` | `TangentBall` | leaves one action and gives it no price: the constraint is flat there; with an error or without |
| `contradiction` | `Contradiction` | ends with two halfspaces that exclude each other |

All but `uphill` play in a ball of radius 1 around 0, with the action (-0.3, 0, ..., 0) that satisfies what can be satisfied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import domains, validate
from bridle.core import Domain, InputError, Round
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.ops import Array, Scalar, dot, floor, maximum, norm, ratio, scalar
from bridle.problems._paper import Fixed
from bridle.problems.base import Problem, StreamOpponent, adaptive, constants_of, oblivious
from bridle.problems.dealing import deal_blocks
from bridle.problems.instance import normalised
from bridle.problems.registry import registered

AWAY = 0.3
"""How far from the ball's centre the action is that all constraints leave."""

SLACK, MOST = 0.05, 0.5
"""What random halfspaces leave that action on average, and at most: so that the largest |g| is known."""

WIDTH = 4.0
"""Problem `uphill`: its interval is [1, WIDTH], of which the lower WIDTH/2 - 1 is forbidden."""

NEAREST = 1e-9
"""Nearer to the point than this a normal is shortened, so that rounding does not choose its direction."""


class Scattered(NamedTuple):
    """Random halfspaces of unit normal that leave `point` an exponential `slack` on average, and never more than `most`.

    Costs are linear: <pull, x> every round, or of a random direction and slope 1 where `pull` is zero. With `side` 1 the normals' first
    coordinates are made positive.
    """

    point: Array
    pull: Array
    side: Scalar
    slack: Scalar
    most: Scalar

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        d = len(self.point)
        slopes = normalised(rng.standard_normal((rounds, d)))
        if self.pull.any():
            slopes = np.broadcast_to(self.pull, (rounds, d))
        return Round(AffineFunction(slopes, np.zeros(rounds)), (self.halfspaces(rng, rounds),))

    def halfspaces(self, rng: np.random.Generator, rounds: int) -> AffineFunction:
        """The constraints of the next rounds."""
        normals = normalised(rng.standard_normal((rounds, len(self.point))))
        if self.side:
            normals[:, 0] = abs(normals[:, 0])
        slack = np.minimum(self.slack * rng.exponential(size=rounds), self.most)
        return AffineFunction(normals, -normals @ self.point - slack)


@adaptive
class Tempting(NamedTuple):
    """Answers x with the halfspace through `point` that x violates most, <a, x - point> <= 0 with a along x - point.

    The cost is -<a, x> where `follows` is 1, cheapest where the constraint forbids most, else <pull, x>. The constraint comes every
    `period` rounds after the first `start`; in the others it is -`rest` everywhere.
    """

    point: Array
    pull: Array
    follows: Scalar
    period: Scalar
    start: Scalar
    rest: Scalar

    def init(self) -> Scalar:
        return 0.0  # rounds so far

    def answer(self, state: Scalar, x: Array) -> tuple[Scalar, Round]:
        away = x - self.point
        normal = away * ratio(1.0, maximum(norm(away), NEAREST))
        place = state - self.period * floor(state / self.period)
        on: Scalar = (state >= self.start) * (place >= self.period - 1.0) * 1.0  # type: ignore[assignment]
        constraint = AffineFunction(on * normal, -on * dot(normal, self.point) - (1.0 - on) * self.rest)
        return state + 1.0, Round(AffineFunction(self.pull - self.follows * normal, scalar(x)), (constraint,))


class NoisyHalfspace(NamedTuple):
    """The cost <pull, x> and the halfspace <a, x> + b <= 0 every round, whose value is told with an error of up to `noise`."""

    pull: Array
    a: Array
    b: Scalar
    noise: Scalar

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        errors = self.noise * rng.uniform(-1.0, 1.0, size=rounds)
        slopes, normals = (np.broadcast_to(row, (rounds, len(row))) for row in (self.pull, self.a))
        return Round(AffineFunction(slopes, np.zeros(rounds)), (AffineFunction(normals, self.b + errors),))


class TangentBall(NamedTuple):
    """The cost <pull, x> and the constraint |x - point|^2/2 <= 0 every round, whose value is told with an error of up to `noise`."""

    pull: Array
    point: Array
    noise: Scalar

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        errors = self.noise * rng.uniform(-1.0, 1.0, size=rounds)
        slopes, points, none = (np.broadcast_to(row, (rounds, len(row))) for row in (self.pull, self.point, 0.0 * self.point))
        return Round(AffineFunction(slopes, np.zeros(rounds)), (RoundQuadratic(np.ones(rounds), points, none, errors),))


@oblivious
class Contradiction(NamedTuple):
    """Random halfspaces around a point for `start` rounds, and then two in turn that exclude each other.

    They are +-<a, x - point> + level <= 0, of which every action breaks one by `level` or more; a is 1 long.
    """

    before: Scattered
    a: Array
    level: Scalar
    start: Scalar

    def init(self) -> Scalar:
        return 0.0  # rounds so far

    def deal(self, rng: np.random.Generator, rounds: int) -> AffineFunction:
        return self.before.halfspaces(rng, rounds)

    def answer(self, state: Scalar, x: Array, draw: AffineFunction) -> tuple[Scalar, Round]:
        since = state - self.start
        on: Scalar = (since >= 0.0) * 1.0  # type: ignore[assignment]
        side = 1.0 - 2.0 * (since - 2.0 * floor(0.5 * since))
        normal = (1.0 - on) * draw.a + on * side * self.a
        offset = (1.0 - on) * draw.b + on * (self.level - side * dot(self.a, self.before.point))
        return state + 1.0, Round(AffineFunction(self.before.pull, scalar(self.before.pull)), (AffineFunction(normal, offset),))


@registered
def scattered(horizon: int, seed: int = 0, dim: int = 10) -> Problem:
    """Random linear costs of any direction, and random halfspaces of any direction that nearly touch one action.

    x is a point of the unit ball and f a random linear cost of slope 1. g is a halfspace with a random normal of length 1, which the
    action (-0.3, 0, ...) satisfies by 0.05 on average, and by 0.5 at most.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    """
    return _scattered(dim, 0.0, 0.0)


@registered
def pull_out(horizon: int, seed: int = 0, dim: int = 10) -> Problem:
    """One cost that pulls out of what random halfspaces allow, round after round.

    x is a point of the unit ball and f(x) = -x_1. g is a random halfspace whose normal, of length 1, leans to where the cost pulls, and
    which the action (-0.3, 0, ...) satisfies by 0.05 on average, and by 0.5 at most.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    """
    return _scattered(dim, -1.0, 1.0)


@registered
def tempting(horizon: int, seed: int = 0, dim: int = 10) -> Problem:
    """An adversary that makes cheapest exactly what it forbids, wherever the decision is.

    x is a point of the unit ball, and a the direction in which it lies from (-0.3, 0, ...). f is the linear cost -<a, .>, and g the
    halfspace through that action with the normal a: the one that x violates most.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    """
    return _tempting(dim, follows=1.0, period=1, start=0)


@registered
def rare_constraint(horizon: int, seed: int = 0, dim: int = 10, period: int = 7) -> Problem:
    """A constraint once in a while, chosen against the decision, and a cost that pulls all the time.

    x is a point of the unit ball and f(x) = -x_1. g is, every `period` rounds, the halfspace through (-0.3, 0, ...) that x violates most,
    and -1 everywhere in the rounds between.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    period
        Rounds between one change of sides, or one constraint, and the next. Values: a whole number, 1 or above.
        Unit: rounds.
    """
    return _tempting(dim, follows=0.0, period=validate.whole("period", period), start=0)


@registered
def late_temptation(horizon: int, seed: int = 0, dim: int = 10) -> Problem:
    """Nothing forbidden until half of the horizon, and then exactly what is cheapest: much is gained first, and must not be paid for.

    x is a point of the unit ball, and a the direction in which it lies from (-0.3, 0, ...). f is the linear cost -<a, .>. g is -1
    everywhere for the first T/2 rounds, and then the halfspace through that action with the normal a.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    """
    return _tempting(dim, follows=1.0, period=1, start=horizon // 2)


@registered
def uphill(horizon: int, seed: int = 0, modulus: float = 0.25) -> Problem:
    """One dimension, where the cheap side of an interval is forbidden: methods that wait for violation to add up pay for it.

    x is a number from 1 to 4 and f(x) = (modulus/2) x^2, the same every round. g(x) = 2 - x, the same every round.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    modulus
        Strong convexity of the cost. Values: above 0. Unit: cost per squared unit of action.
    """
    alpha, limit = validate.positive("modulus", modulus), 0.5 * WIDTH
    domain = domains.Box(1.0, WIDTH, dim=1)
    zero, best = np.zeros(1), np.array([limit])
    cost = RoundQuadratic(alpha, zero, zero, 0.0)
    constants = constants_of(domain, lipschitz=max(1.0, alpha * WIDTH), bound=limit, modulus=alpha, time_varying=False)
    constants |= {"feasible": best, "slater": limit, "optimum": best, "optimal_cost": horizon * float(cost.value(best))}
    return Problem(domain, Fixed(Round(cost, (AffineFunction(-np.ones(1), limit),))), constants)


@registered
def noisy(horizon: int, seed: int = 0, dim: int = 10, noise: float = 1.0) -> Problem:
    """One fixed constraint, whose value is told with an error: as told, no action satisfies it in every round.

    x is a point of the unit ball and f(x) = -x_1. g(x) = x_1 + 0.3 plus an error between -`noise` and `noise`, drawn anew every round;
    without the error the best action is (-0.3, 0, ...), which satisfies g with nothing to spare.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    noise
        Largest error of a constraint's value. Values: above 0. Unit: constraint.
    """
    domain, point, along = _ball(dim)
    error = validate.positive("noise", noise)
    adversary = StreamOpponent(NoisyHalfspace(-along, along, AWAY, error))
    constants = constants_of(domain, lipschitz=1.0, bound=1.0 + AWAY + error)
    worst = max(float(block.constraints[0].b.max()) for block in deal_blocks(adversary, seed, horizon, domain.dim))
    # The action farthest inside has g = -1 + worst in its worst round: feasible while that was not drawn yet.
    constants |= {"feasible": -along, "slater": 1.0 - worst} if worst <= 1.0 else {"feasible": None, "benchmark": point}
    return Problem(domain, adversary, constants)


@registered
def tangent(horizon: int, seed: int = 0, dim: int = 10, noise: float = 0.5) -> Problem:
    """One fixed constraint that a single action satisfies, and that is flat there: no room to spare, and no price that holds it.

    x is a point of the unit ball and f(x) = -x_1. g(x) = |x - (-0.3, 0, ...)|^2 / 2, plus an error between -`noise` and `noise`, drawn anew
    every round. A price p leaves the violation 1/(2 p^2) a round: it must grow for ever.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    noise
        Largest error of a constraint's value. Values: 0 or above. Unit: constraint.
    """
    domain, point, along = _ball(dim)
    error, most = validate.nonnegative("noise", noise), 1.0 + AWAY
    adversary = StreamOpponent(TangentBall(-along, point, error))
    constants = constants_of(domain, lipschitz=most, bound=0.5 * most**2 + error, affine=False, time_varying=error > 0.0)
    constants |= {"feasible": None, "benchmark": point} if error > 0.0 else {"feasible": point, "slater": 0.0, "optimum": point}
    if error == 0.0:
        constants["optimal_cost"] = AWAY * horizon
    return Problem(domain, adversary, constants)


@registered
def contradiction(horizon: int, seed: int = 0, dim: int = 10, level: float = 0.2) -> Problem:
    """Constraints that can be satisfied until half of the horizon, and from then on contradict each other.

    x is a point of the unit ball and f(x) = -x_1. g is as in `pull-out` for the first T/2 rounds, and then in turn
    x_1 + 0.3 + `level` and -x_1 - 0.3 + `level`, which no action has both at 0 or below.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    level
        By how much the best action violates a constraint in a bad round. Values: above 0. Unit: constraint.
    """
    if horizon < 3:
        raise InputError(f"horizon must be 3 or above for contradiction, so that both sides are seen, not {horizon}")
    domain, point, along = _ball(dim)
    h = validate.positive("level", level)
    before = Scattered(point, -along, 1.0, SLACK, MOST)
    constants = constants_of(domain, lipschitz=1.0, bound=1.0 + AWAY + max(MOST, h), feasible=None, benchmark=point)
    return Problem(domain, Contradiction(before, along, h, float(horizon // 2)), constants)


def _ball(dim: int) -> tuple[Domain, Array, Array]:
    """The unit ball, the action that is left, and the first axis; the stream alone depends on the seed."""
    domain = domains.Ball(validate.whole("dim", dim))
    along = np.eye(domain.dim)[0]
    return domain, -AWAY * along, along


def _scattered(dim: int, pull: float, side: float) -> Problem:
    domain, point, along = _ball(dim)
    constants = constants_of(domain, lipschitz=1.0, bound=1.0 + AWAY + MOST, feasible=point, slater=0.0)
    return Problem(domain, StreamOpponent(Scattered(point, pull * along, side, SLACK, MOST)), constants)


def _tempting(dim: int, follows: float, period: int, start: int) -> Problem:
    domain, point, along = _ball(dim)
    constants = constants_of(domain, lipschitz=1.0, bound=1.0 + AWAY, feasible=point, slater=0.0)
    pull = -(1.0 - follows) * along
    return Problem(domain, Tempting(point, pull, follows, float(period), float(start), 1.0), constants)
