"""Problems with an opponent that tries to hurt: it seeks violation or regret, changes sides, waits with a constraint, varies scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bridle import validate
from bridle.adversaries.hostile import AdaptiveScales, Alternating, LateConstraint, RandomScales, RegretSeeking, ViolationSeeking
from bridle.core import InputError
from bridle.domains.closed_form import BallSet
from bridle.problems.base import Problem, best_across, cut, facts, largest, reach, somewhere, start, units

DECADES = 6
"""Over how many powers of ten the gradients of problem `scales` vary."""


def violation_seeking(
    horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, slater: float = 0.1, domain: Any = "ball"
) -> Problem:
    """An opponent that answers every decision with the halfspace it violates most, sparing one action.

    x is a point of the domain and f a random linear cost of slope 1 that favours one direction, or (modulus/2) |x - z|^2 with a random
    target z on that side. g is the halfspace of unit normal that x violates most among those that one fixed action satisfies by `slater`.
    """
    rng, domain, alpha = start(seed, dim, modulus, domain)
    drift, point = units(rng, 1, domain.dim)[0], somewhere(rng, domain)
    margin = validate.nonnegative("slater", slater)
    constants = facts(domain, lipschitz=max(1.0, alpha * domain.diameter()), bound=reach(domain, point) + margin, modulus=alpha)
    constants |= {"feasible": point, "slater": margin, "constraints": 1, "time_varying": True}
    return Problem(domain, ViolationSeeking(domain, point, drift, alpha, margin), constants)


def regret_seeking(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, domain: Any = "ball") -> Problem:
    """An opponent whose costs no decision gains from, while in hindsight one action gains sqrt(T).

    x is a point of the domain and f(x) a linear cost of slope 1 that is 0 or more at x, counted from the domain's centre, and at right
    angles to the sum of all costs before it (plus (modulus/2) |x - centre|^2). g is one fixed halfspace that holds a quarter of the way
    from the centre to the boundary; on a ball of radius r no policy has a regret below sqrt(T) r / 4 with linear costs.
    """
    rng, domain, alpha = start(seed, dim, modulus, domain)
    if domain.dim < 2:
        raise InputError(f"dim must be 2 or above for regret-seeking, not {domain.dim}")
    middle, trifle = domain.center(), 1e-9 * float(domain.diameter())
    a, b = cut(domain, units(rng, 1, domain.dim)[0])
    G = 1.0 + alpha * reach(domain, middle)
    constants = facts(domain, lipschitz=G, bound=largest(domain, a, b), modulus=alpha, constraints=1, time_varying=False)
    constants |= {"feasible": middle, "slater": b - float(domain.linear_min(a))}
    if isinstance(domain, BallSet) and alpha == 0.0:
        # The ball of this radius around the centre is feasible, and the slopes, at right angles, add up to one of length sqrt(T).
        constants["least_regret"] = float(b - a @ middle) * float(np.sqrt(horizon)) - trifle * horizon
    return Problem(domain, RegretSeeking(middle, alpha, a, -b, trifle), constants)


def alternating(
    horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, slater: float = 0.1, period: int = 1, domain: Any = "ball"
) -> Problem:
    """Cost and constraint change sides together, every round or every few rounds.

    x is a point of the domain and f a linear cost of slope 1 (or (modulus/2) |x - z|^2) that pulls to one side of a fixed action and, after
    `period` rounds, to the other. g is a halfspace that forbids the side the cost is pulling to beyond `slater`, so that only a slab
    around the action satisfies all of them.
    """
    rng, domain, alpha = start(seed, dim, modulus, domain)
    direction, aside = units(rng, 2, domain.dim)
    a, point = (direction + 0.5 * aside) / np.linalg.norm(direction + 0.5 * aside), somewhere(rng, domain)
    margin, turn = validate.nonnegative("slater", slater), validate.whole("period", period)
    far, near = domain.linear_argmin(-direction), domain.linear_argmin(direction)
    G = max(1.0, alpha * max(reach(domain, far), reach(domain, near)))
    F = largest(domain, a, float(a @ point)) + margin
    constants = facts(domain, lipschitz=G, bound=F, modulus=alpha, constraints=1, time_varying=True)
    constants |= {"feasible": point, "slater": margin}
    if alpha == 0.0 and horizon % (2 * turn) == 0:  # what the costs of one side take, those of the other give back
        constants |= {"optimum": point, "optimal_cost": 0.0}
    pull = direction if alpha == 0.0 else 0.0 * direction
    return Problem(domain, Alternating(point, a, margin, float(turn), pull, alpha, 0.5 * (far + near), 0.5 * (far - near)), constants)


def late_constraint(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, domain: Any = "ball") -> Problem:
    """No constraint until half of the horizon, and then a hard one.

    x is a point of the domain and f the same cost every round, linear or (modulus/2) |x - z|^2. g is below 0 everywhere for the first T/2
    rounds, and then a halfspace that leaves the quarter of the domain's width that is farthest from where the cost pulls.
    """
    rng, domain, alpha = start(seed, dim, modulus, domain)
    direction, aside = units(rng, 2, domain.dim)
    a = (direction + 0.5 * aside) / np.linalg.norm(direction + 0.5 * aside)
    low, high = float(domain.linear_min(a)), -float(domain.linear_min(-a))
    b = low + 0.25 * (high - low)
    cost, best, G = best_across(domain, direction, alpha, a, b)
    constants = facts(domain, lipschitz=G, bound=largest(domain, a, b), modulus=alpha, constraints=1, time_varying=True)
    constants |= {"feasible": best, "optimum": best, "optimal_cost": horizon * float(cost.value(best)), "slater": b - low}
    return Problem(domain, LateConstraint(cost, a, -b, b - low, float(horizon // 2)), constants)


def scales(horizon: int, seed: int = 0, dim: int = 10, slater: float = 0.1, adaptive: int = 0, domain: Any = "ball") -> Problem:
    """Gradients that vary over six powers of ten from round to round, at random or as the decision moves.

    x is a point of the domain and f a linear cost that favours one direction, with a slope between 0.000001 and 1. g is a halfspace
    against that direction with a normal of such a length, satisfied at one known action by `slater` times its length.
    """
    rng, domain, _ = start(seed, dim, 0.0, domain)
    drift, point = units(rng, 1, domain.dim)[0], somewhere(rng, domain)
    margin, reached = validate.nonnegative("slater", slater), reach(domain, point)
    if adaptive not in (0, 1):
        raise InputError(f"adaptive must be 0 or 1, not {validate.show(adaptive)}")
    constants = facts(domain, lipschitz=1.0, bound=reached + margin, modulus=0.0, constraints=1, time_varying=True)
    constants |= {"feasible": point, "slater": margin * 10.0**-DECADES}
    if adaptive:
        return Problem(domain, AdaptiveScales(point, drift, margin, float(DECADES), reached), constants)
    return Problem(domain, RandomScales(point, drift, margin, float(DECADES)), constants)


PROBLEMS: dict[str, Callable[..., Problem]] = {
    "violation-seeking": violation_seeking,
    "regret-seeking": regret_seeking,
    "alternating": alternating,
    "late-constraint": late_constraint,
    "scales": scales,
}
