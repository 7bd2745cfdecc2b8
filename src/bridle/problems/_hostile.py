"""Problems with an adversary that tries to hurt.

| problem | adversary | what it does |
|---|---|---|
| `violation-seeking` | `ViolationSeeking` | answers a decision with the halfspace that it violates most |
| `regret-seeking` | `RegretSeeking` | answers with costs that no decision gains from |
| `alternating` | `Alternating` | changes the side of cost and constraint |
| `late-constraint` | `LateConstraint` | waits with a constraint until half of the horizon |
| `scales` | `RandomScales`, `AdaptiveScales` | varies the size of the gradients, at random or with the decision |
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Domain, InputError, Round
from bridle.domains.closed_form import BallSet
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.ops import Array, Scalar, dot, exp, floor, maximum, norm, ratio, scalar
from bridle.problems import instance
from bridle.problems.base import NoState, Problem, StreamOpponent, adaptive, constants_of, oblivious
from bridle.problems.instance import Cost
from bridle.problems.registry import registered

DECADES = 6
"""Over how many powers of ten the gradients of problem `scales` vary."""


@adaptive
class ViolationSeeking(NamedTuple):
    """Answers x with the halfspace of unit normal that x violates most among those that `point` satisfies by a margin of `slater`.

    That is <a, y - point> <= slater with a along x - point, violated by |x - point| - slater. (Nearer to the point than the margin no such
    halfspace is violated; there the normal is shortened, so that it changes gradually.) Random costs favour the direction `drift`.
    """

    domain: Domain
    point: Array
    drift: Array
    modulus: Scalar
    slater: Scalar

    def init(self) -> NoState:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> Cost:
        return instance.drifting(self.domain, self.drift, self.modulus, rng, rounds)

    def answer(self, state: NoState, x: Array, draw: Cost) -> tuple[NoState, Round]:
        away = x - self.point
        normal = away * ratio(1.0, maximum(norm(away), self.slater))
        return state, Round(draw, (AffineFunction(normal, -dot(normal, self.point) - self.slater),))


@adaptive
class RegretSeeking(NamedTuple):
    """Answers x with a linear cost of slope 1 that x does not gain from and that is at right angles to all costs before it together.

    So the decisions pay 0 or more, seen from `middle`, while the costs add up to a slope of sqrt(t), against which some action gains
    sqrt(t) times its distance from `middle`. One quadratic is added where `modulus` is above 0; the halfspace <a, x> + b <= 0 is fixed.

    A decision made of past slopes alone may be at right angles to the next one up to rounding. A gain of less than `trifle` is let go, so
    that rounding decides nothing.
    """

    middle: Array
    modulus: Scalar
    a: Array
    b: Scalar
    trifle: Scalar

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


@oblivious
class Alternating(NamedTuple):
    """For `period` rounds cost and constraint are on one side, then for as many on the other, and so on.

    On side s = +1 or -1 the constraint is s <a, x - point> <= slater and the cost pulls across it: -s <pull, x - point>, or
    (modulus/2) |x - middle - s spread|^2.
    """

    point: Array
    a: Array
    slater: Scalar
    period: Scalar
    pull: Array
    modulus: Scalar
    middle: Array
    spread: Array

    def init(self) -> Scalar:
        return 0.0  # rounds so far

    def answer(self, state: Scalar, x: Array) -> tuple[Scalar, Round]:
        turns = floor(state / self.period)
        side = 1.0 - 2.0 * (turns - 2.0 * floor(0.5 * turns))
        cost = RoundQuadratic(
            self.modulus + 0.0 * side, self.middle + side * self.spread, -side * self.pull, side * dot(self.pull, self.point)
        )
        return state + 1.0, Round(cost, (AffineFunction(side * self.a, -side * dot(self.a, self.point) - self.slater),))


@oblivious
class LateConstraint(NamedTuple):
    """One cost that never changes; the constraint is -slater everywhere for the first `start` rounds, and then <a, x> + b <= 0."""

    cost: Cost
    a: Array
    b: Scalar
    slater: Scalar
    start: Scalar

    def init(self) -> Scalar:
        return 0.0  # rounds so far

    def answer(self, state: Scalar, x: Array) -> tuple[Scalar, Round]:
        on: Scalar = (state >= self.start) * 1.0  # type: ignore[assignment]
        return state + 1.0, Round(self.cost, (AffineFunction(on * self.a, on * self.b - (1.0 - on) * self.slater),))


class SidesDraw(NamedTuple):
    """A linear cost that favours one direction, and a halfspace against it."""

    cost: AffineFunction
    constraint: AffineFunction


class RandomScales(NamedTuple):
    """Random linear costs and halfspaces, each times 10^-n with n drawn from 0 to `decades`; all hold at `point` by `slater` times that."""

    point: Array
    drift: Array
    slater: Scalar
    decades: Scalar

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        cost, constraint = _sides(self.point, self.drift, self.slater, rng, rounds)
        for_cost, for_constraint = 10.0 ** -rng.integers(0, int(self.decades) + 1, size=(2, rounds)).astype(float)
        return Round(
            AffineFunction(for_cost[:, None] * cost.a, for_cost * cost.b),
            (AffineFunction(for_constraint[:, None] * constraint.a, for_constraint * constraint.b),),
        )


@adaptive
class AdaptiveScales(NamedTuple):
    """Random linear costs and halfspaces, both times one scale of the decision: 10^-decades at `point`, 1 at a distance of `reach`."""

    point: Array
    drift: Array
    slater: Scalar
    decades: Scalar
    reach: Scalar

    def init(self) -> NoState:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> SidesDraw:
        return _sides(self.point, self.drift, self.slater, rng, rounds)

    def answer(self, state: NoState, x: Array, draw: SidesDraw) -> tuple[NoState, Round]:
        scale = exp(log(10.0) * self.decades * (norm(x - self.point) / self.reach - 1.0))
        cost, constraint = (AffineFunction(scale * part.a, scale * part.b) for part in draw)
        return state, Round(cost, (constraint,))


def _sides(point: Array, drift: Array, slater: Scalar, rng: np.random.Generator, rounds: int) -> SidesDraw:
    """Random linear costs of slope 1 that favour `drift`, and halfspaces against it that hold at `point` by a margin."""
    d = len(drift)
    noise = rng.standard_normal((2, rounds, d)) / np.sqrt(d)
    normals = instance.normalised(0.5 * drift + noise[1])
    cost = AffineFunction(instance.normalised(-2.0 * drift + noise[0]), np.zeros(rounds))
    return SidesDraw(cost, AffineFunction(normals, -normals @ point - slater))


@registered
def violation_seeking(
    horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, slater: float = 0.1, domain: str | Domain = "ball"
) -> Problem:
    """An adversary that answers every decision with the halfspace it violates most, sparing one action.

    x is a point of the domain and f a random linear cost of slope 1 that favours one direction, or (modulus/2) |x - z|^2 with a random
    target z on that side. g is the halfspace of unit normal that x violates most among those that one fixed action satisfies by `slater`.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    modulus
        0: linear costs; above 0: quadratic costs with this strong convexity. Values: 0 or above. Unit: cost per
        squared unit of action.
    slater
        By how much one action satisfies every constraint. Values: 0 or above. Unit: constraint.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    drift, point = instance.random_directions(rng, 1, domain.dim)[0], instance.random_action(rng, domain)
    margin = validate.nonnegative("slater", slater)
    constants = constants_of(
        domain,
        lipschitz=max(1.0, alpha * domain.diameter()),
        bound=instance.reach(domain, point) + margin,
        modulus=alpha,
        feasible=point,
        slater=margin,
    )
    return Problem(domain, ViolationSeeking(domain, point, drift, alpha, margin), constants)


@registered
def regret_seeking(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, domain: str | Domain = "ball") -> Problem:
    """An adversary whose costs no decision gains from, while in hindsight one action gains sqrt(T).

    x is a point of the domain and f(x) a linear cost of slope 1 that is 0 or more at x, counted from the domain's centre, and at right
    angles to the sum of all costs before it (plus (modulus/2) |x - centre|^2). g is one fixed halfspace that holds a quarter of the way
    from the centre to the boundary; on a ball of radius r no policy has a regret below sqrt(T) r / 4 with linear costs.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    modulus
        0: linear costs; above 0: quadratic costs with this strong convexity. Values: 0 or above. Unit: cost per
        squared unit of action.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    if domain.dim < 2:
        raise InputError(f"dim must be 2 or above for regret-seeking, not {domain.dim}")
    middle, trifle = domain.center(), 1e-9 * float(domain.diameter())
    a, b = instance.quarter_cut(domain, instance.random_directions(rng, 1, domain.dim)[0])
    G = 1.0 + alpha * instance.reach(domain, middle)
    constants = constants_of(domain, lipschitz=G, bound=instance.largest_gap(domain, a, b), modulus=alpha, time_varying=False)
    constants |= {"feasible": middle, "slater": b - float(domain.linear_min(a))}
    if isinstance(domain, BallSet) and alpha == 0.0:
        # The ball of this radius around the centre is feasible, and the slopes, at right angles, add up to one of length sqrt(T).
        constants["least_regret"] = float(b - a @ middle) * float(np.sqrt(horizon)) - trifle * horizon
    return Problem(domain, RegretSeeking(middle, alpha, a, -b, trifle), constants)


@registered
def alternating(
    horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, slater: float = 0.1, period: int = 1, domain: str | Domain = "ball"
) -> Problem:
    """Cost and constraint change sides together, every round or every few rounds.

    x is a point of the domain and f a linear cost of slope 1 (or (modulus/2) |x - z|^2) that pulls to one side of a fixed action and, after
    `period` rounds, to the other. g is a halfspace that forbids the side the cost is pulling to beyond `slater`, so that only a slab
    around the action satisfies all of them.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    modulus
        0: linear costs; above 0: quadratic costs with this strong convexity. Values: 0 or above. Unit: cost per
        squared unit of action.
    slater
        By how much one action satisfies every constraint. Values: 0 or above. Unit: constraint.
    period
        Rounds between one change of sides, or one constraint, and the next. Values: a whole number, 1 or above.
        Unit: rounds.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    direction, aside = instance.random_directions(rng, 2, domain.dim)
    a, point = (direction + 0.5 * aside) / np.linalg.norm(direction + 0.5 * aside), instance.random_action(rng, domain)
    margin, turn = validate.nonnegative("slater", slater), validate.whole("period", period)
    far, near = domain.linear_argmin(-direction), domain.linear_argmin(direction)
    G = max(1.0, alpha * max(instance.reach(domain, far), instance.reach(domain, near)))
    F = instance.largest_gap(domain, a, float(a @ point)) + margin
    constants = constants_of(domain, lipschitz=G, bound=F, modulus=alpha, feasible=point, slater=margin)
    if alpha == 0.0 and horizon % (2 * turn) == 0:  # what the costs of one side take, those of the other give back
        constants |= {"optimum": point, "optimal_cost": 0.0}
    pull = direction if alpha == 0.0 else 0.0 * direction
    return Problem(domain, Alternating(point, a, margin, float(turn), pull, alpha, 0.5 * (far + near), 0.5 * (far - near)), constants)


@registered
def late_constraint(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, domain: str | Domain = "ball") -> Problem:
    """No constraint until half of the horizon, and then a hard one.

    x is a point of the domain and f the same cost every round, linear or (modulus/2) |x - z|^2. g is below 0 everywhere for the first T/2
    rounds, and then a halfspace that leaves the quarter of the domain's width that is farthest from where the cost pulls.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    modulus
        0: linear costs; above 0: quadratic costs with this strong convexity. Values: 0 or above. Unit: cost per
        squared unit of action.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    direction, aside = instance.random_directions(rng, 2, domain.dim)
    a = (direction + 0.5 * aside) / np.linalg.norm(direction + 0.5 * aside)
    low, high = float(domain.linear_min(a)), -float(domain.linear_min(-a))
    b = low + 0.25 * (high - low)
    cost, best, G = instance.best_across(domain, direction, alpha, a, b)
    constants = constants_of(domain, lipschitz=G, bound=instance.largest_gap(domain, a, b), modulus=alpha)
    constants |= {"feasible": best, "optimum": best, "optimal_cost": horizon * float(cost.value(best)), "slater": b - low}
    return Problem(domain, LateConstraint(cost, a, -b, b - low, float(horizon // 2)), constants)


@registered
def scales(horizon: int, seed: int = 0, dim: int = 10, slater: float = 0.1, adaptive: int = 0, domain: str | Domain = "ball") -> Problem:
    """Gradients that vary over six powers of ten from round to round, at random or as the decision moves.

    x is a point of the domain and f a linear cost that favours one direction, with a slope between 0.000001 and 1. g is a halfspace
    against that direction with a normal of such a length, satisfied at one known action by `slater` times its length.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 1 or above. Unit: coordinates.
    slater
        By how much one action satisfies every constraint. Values: 0 or above. Unit: constraint.
    adaptive
        0: scales are drawn at random; 1: the farther a decision is from the feasible action, the larger they are.
        Values: 0 or 1.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    rng, domain, _ = instance.begin(seed, dim, 0.0, domain)
    drift, point = instance.random_directions(rng, 1, domain.dim)[0], instance.random_action(rng, domain)
    margin, reached = validate.nonnegative("slater", slater), instance.reach(domain, point)
    if adaptive not in (0, 1):
        raise validate.refused("adaptive must be 0 or 1", adaptive)
    constants = constants_of(domain, lipschitz=1.0, bound=reached + margin, feasible=point, slater=margin * 10.0**-DECADES)
    if adaptive:
        return Problem(domain, AdaptiveScales(point, drift, margin, float(DECADES), reached), constants)
    return Problem(domain, StreamOpponent(RandomScales(point, drift, margin, float(DECADES))), constants)
