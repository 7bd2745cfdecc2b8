"""Worlds that move: the best action of each round drifts, jumps or has seasons, and no action need keep the limits for long.

| problem | adversary | what it does |
|---|---|---|
| `drifting-optimum` | `MovingWorld` | moves the costs slowly while the limit stays |
| `jumping-limits` | `MovingWorld` | moves costs and limits at once, now and then |
| `seasonal-limits` | `MovingWorld` | moves costs and limits to and fro |

What is best in each round is known: the constants `path`, its length, and `path_cost`, what it costs in all, come from a formula
(`bridle.solvers.each_round`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Constants, Domain, Round
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.ops import Array, Scalar, absolute, combine, dot, floor, namespace, norm, ratio, scalar
from bridle.problems import instance
from bridle.problems.base import Problem, constants_of, oblivious
from bridle.problems.registry import registered
from bridle.solvers.each_round import best_of_each_round

WIDE = 0.35
"""Problem `drifting-optimum`: how far targets go from the anchor, in diameters."""

PLACES = 16
"""Problem `jumping-limits`: how many places there are to jump to; then it begins anew."""

BLOCK = 1 << 16
"""How many rounds are looked at together for what is best in each."""


@oblivious
class MovingWorld(NamedTuple):
    """Round t has an anchor o and a target z, both in the domain; the limit is <n, x - o> <= 0, and the cost pulls to the target.

    o = P_X(places[k] + waves w), z = P_X(o + aims[k] + swings w), k = floor(t / stretch) modulo how many places there are, w the triangle
    waves of height 1 at phase + t / period. n is the `normal`, or of the direction z - o where that is zero. The cost is <-(z - centre), x>
    with slope 1, or (modulus/2) |x - z|^2 where `modulus` is above 0.
    """

    domain: Domain
    places: Array  # (m, d)
    aims: Array  # (m, d)
    waves: Array  # (d,)
    swings: Array  # (d,)
    phase: Array  # (d,)
    normal: Array  # (d,)
    stretch: Scalar
    period: Scalar
    modulus: Scalar

    def init(self) -> Scalar:
        return 0.0  # rounds so far

    def answer(self, state: Scalar, x: Array) -> tuple[Scalar, Round]:
        m, step = self.places.shape[-2], floor(state / self.stretch)
        here = (namespace(x).arange(float(m)) == step - m * floor(step / m)) * 1.0
        wave = self.wave(state, x)
        o = self.domain.project(combine(here, self.places) + self.waves * wave)
        z = self.domain.project(o + combine(here, self.aims) + self.swings * wave)
        fixed, flat = 1.0 * (norm(self.normal) > 0.0), 1.0 * (self.modulus <= 0.0)
        n = self.normal + (1.0 - fixed) * ratio(1.0, norm(z - o)) * (z - o)
        pull = z - self.domain.center()
        slope = flat * ratio(-1.0, norm(pull)) * pull
        cost = RoundQuadratic(self.modulus + scalar(x), z, slope, scalar(x))
        return state + 1.0, Round(cost, (AffineFunction(n, -dot(n, o)),))

    def wave(self, state: Scalar, x: Array) -> Array:
        """The triangle waves after so many rounds, one for each coordinate of x."""
        at = self.phase + state / self.period + 0.0 * x
        return 4.0 * absolute(at - floor(at + 0.5)) - 1.0


@registered
def drifting_optimum(
    horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, period: int = 10_000, domain: str | Domain = "ball"
) -> Problem:
    """Costs whose best action drifts slowly; one halfspace that stays.

    x is a point of the domain. f pulls to a target that goes to and fro at a steady pace, and is back after `period` rounds: it is linear,
    or (modulus/2) times the squared distance to the target. g is one halfspace, in the way of the target at times.

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
    period
        Rounds until costs are back where they were. Values: a whole number, 1 or above. Unit: rounds.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    length, d = float(validate.whole("period", period)), domain.dim
    a, b = instance.quarter_cut(domain, instance.random_directions(rng, 1, d)[0])
    anchor = domain.project(domain.center() + (b - float(a @ domain.center())) * a)
    swings = WIDE * domain.diameter() * instance.random_directions(rng, 1, d)[0]
    phase = rng.uniform(0.0, 1.0, d)
    world = MovingWorld(domain, anchor[None], np.zeros((1, d)), np.zeros(d), swings, phase, a, length, length, alpha)
    level = float(a @ anchor)
    return _known(world, horizon, time_varying=False, feasible=domain.center(), slater=level - float(domain.linear_min(a)))


@registered
def jumping_limits(
    horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, period: int = 500, domain: str | Domain = "ball"
) -> Problem:
    """Costs and limits that stay for a while and then jump somewhere else.

    x is a point of the domain. f pulls to a target, and g is the halfspace across the way to it. Both stay for `period` rounds, then they
    jump to the next of 16 places: no action satisfies the constraints of the first two.

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
    period
        Rounds between one jump and the next. Values: a whole number, 1 or above. Unit: rounds.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    stretch, d = validate.whole("period", period), domain.dim
    places = np.array([instance.random_action(rng, domain) for _ in range(PLACES)])
    # Two places in a row forbid what is on the other's side of each: the targets are between them.
    across = 0.5 * (places[1::2] - places[::2])
    aims, zero = np.stack([across, -across], axis=1).reshape(PLACES, d), np.zeros(d)
    world = MovingWorld(domain, places, aims, zero, zero, zero, zero, float(stretch), 1.0, alpha)
    return _known(world, horizon, time_varying=horizon > stretch, feasible=None if horizon > stretch else places[0])


@registered
def seasonal_limits(
    horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, period: int = 200, domain: str | Domain = "ball"
) -> Problem:
    """Costs and limits that go to and fro with the season.

    x is a point of the domain. f pulls to a target, and g is the halfspace across the way to it. Both go to and fro at a steady pace
    between two actions, and are back after `period` rounds; in each half of a season the other side is forbidden.

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
    period
        Rounds of a season. Values: a whole number, 1 or above. Unit: rounds.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    length, d = validate.whole("period", period), domain.dim
    one, other = instance.random_action(rng, domain), instance.random_action(rng, domain)
    half, phase = 0.5 * (other - one), np.full(d, 0.25)  # it begins in the middle
    world = MovingWorld(
        domain, 0.5 * (one + other)[None], np.zeros((1, d)), half, -0.5 * half, phase, np.zeros(d), float(length), float(length), alpha
    )
    heights = np.concatenate([wave_of(world, t) for t in _blocks(horizon)])[:, 0]
    both = heights.min() < 0.0 < heights.max()
    farthest = 0.5 * (one + other) + half * heights[np.argmax(abs(heights))]
    return _known(world, horizon, time_varying=bool(np.any(heights != heights[0])), feasible=None if both else farthest)


def wave_of(world: MovingWorld, t: Array) -> Array:
    """The triangle waves in the rounds t, an array (n, 1): one column for each coordinate.

    >>> wave_of(drifting_optimum(5, dim=1, period=4).adversary._replace(phase=np.zeros(1)), np.arange(5.0)[:, None])[:, 0].tolist()
    [-1.0, 0.0, 1.0, 0.0, -1.0]
    """
    return world.wave(t, np.zeros((len(t), world.domain.dim)))


def _known(world: MovingWorld, horizon: int, **more: Unpack[Constants]) -> Problem:
    """The problem, with its constants: anchors and targets lie in the domain, normals are at most 1 long."""
    domain, alpha = world.domain, float(world.modulus)
    best = best_of_each_round(lambda: rounds_of(world, horizon), domain)
    constants = constants_of(domain, lipschitz=max(1.0, alpha * domain.diameter()), bound=domain.diameter(), modulus=alpha)
    return Problem(domain, world, constants | {"path": best.length, "path_cost": best.cost, "benchmark": domain.center()} | more)


def _blocks(horizon: int) -> Iterator[Array]:
    """The rounds before each, in blocks (n, 1)."""
    return (np.arange(float(start), float(min(start + BLOCK, horizon)))[:, None] for start in range(0, horizon, BLOCK))


def rounds_of(world: MovingWorld, horizon: int) -> Iterator[Round]:
    """The rounds of a world, in blocks: no decision changes them.

    >>> world = drifting_optimum(5, dim=2).adversary
    >>> [block.cost.c.shape for block in rounds_of(world, 5)]
    [(5, 2)]
    """
    for t in _blocks(horizon):
        yield world.answer(t, np.zeros((len(t), world.domain.dim)))[1]
