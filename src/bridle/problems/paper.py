"""Problems of the paper.

| problem | opponent | what it does |
|---|---|---|
| `lower-bound` | `CoinPerCoordinate` | picks a side of one more coordinate every round: Theorem 3 |
| `minimax` | `Minimax` | picks the cost of a finite family that is worst at the decision |
| `fixed` | `Fixed` | repeats one round |
| `halfspaces` | `RandomHalfspaces` | draws fresh halfspaces that one known action satisfies |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bridle import domains, validate
from bridle.core import Domain, InputError, Round
from bridle.functions import AffineFunction, AffineRows, Coordinate, CoordinateDeviation, RoundQuadratic
from bridle.ops import Array, Scalar, scalar, worst
from bridle.problems import instance
from bridle.problems.base import NoState, Problem, adaptive, constants_of, oblivious
from bridle.problems.dealing import deal_blocks


@oblivious
class Fixed(NamedTuple):
    """One round, again and again."""

    round: Round

    def init(self) -> NoState:
        return ()

    def answer(self, state: NoState, x: Array) -> tuple[NoState, Round]:
        return state, self.round


@adaptive
class Minimax(NamedTuple):
    """Among m linear costs <c_j, x> (plus one quadratic where `modulus` is above 0), the one that is worst at x; one fixed halfspace.

    It is convex in the paper's sense (appendix A.7): regret against the average decision is never negative.
    """

    costs: Array  # (m, d)
    modulus: Scalar
    middle: Array
    a: Array
    b: Scalar

    def init(self) -> NoState:
        return ()

    def answer(self, state: NoState, x: Array) -> tuple[NoState, Round]:
        _, cost = worst((self.costs @ x[..., None])[..., 0], self.costs)
        halfspace = AffineFunction(self.a + 0.0 * x, self.b + scalar(x))
        return state, Round(RoundQuadratic(self.modulus + scalar(x), self.middle + 0.0 * x, cost, scalar(x)), (halfspace,))


@oblivious
class RandomHalfspaces(NamedTuple):
    """k fresh halfspaces every round, all satisfied at `point` by a margin of `slater` to twice that, that pull against the costs.

    Costs favour the direction `drift`, normals lean towards it. With `modulus` above 0 the costs are (modulus/2) |x - z_t|^2 instead, with
    targets z_t in the domain scattered on the side of `drift`.
    """

    domain: Domain
    point: Array
    drift: Array
    modulus: Scalar
    slater: Scalar
    each: Array  # (k,)

    def init(self) -> NoState:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        d, k = len(self.point), len(self.each)
        cost = instance.drifting(self.domain, self.drift, self.modulus, rng, rounds)
        rows = rng.standard_normal((rounds, k, d))
        A = instance.normalised(0.5 * self.drift + rows / np.sqrt(d))
        b = -(A * self.point).sum(axis=-1) - self.slater * rng.uniform(1.0, 2.0, size=(rounds, k))
        constraint = AffineFunction(A[:, 0], b[:, 0]) if k == 1 else AffineRows(A, b)
        return Round(cost, (constraint,))

    def answer(self, state: NoState, x: Array, draw: Round) -> tuple[NoState, Round]:
        return state, draw


@oblivious
class CoinPerCoordinate(NamedTuple):
    """The instance of Theorem 3: round t constrains coordinate t alone, to one of two sides that a fair coin picks.

    Heads: x_t <= low and cost |x_t - low|. Tails: x_t >= high and cost |x_t - high|.
    """

    low: Scalar
    high: Scalar

    def init(self) -> Scalar:
        return 0.0  # the coordinate of the next round

    def deal(self, rng: np.random.Generator, rounds: int) -> Array:
        return rng.integers(0, 2, size=rounds).astype(float)

    def answer(self, state: Scalar, x: Array, draw: Array) -> tuple[Scalar, Round]:
        target = self.low + draw * (self.high - self.low)
        return state + 1.0, Round(CoordinateDeviation(state, target), (Coordinate(state, 1.0 - 2.0 * draw, target),))


def lower_bound(horizon: int, seed: int = 0, dim: int | None = None, modulus: float = 0.0) -> Problem:
    """Theorem 3's instance: no policy keeps both regret and CCV below sqrt(T)/4 here; d = T.

    x is a point of a cube whose diagonal is 1 long, with a coordinate for every round. In round t a fair coin picks a target in coordinate
    t, at a quarter or at three quarters of the side: f is the distance of x_t from it, and g how far x_t is on the wrong side of it.
    """
    if dim not in (None, horizon):
        raise InputError(f"dim of problem lower-bound is its horizon, {horizon}, not {dim}")
    if modulus != 0.0:
        raise InputError(f"modulus of problem lower-bound is 0 (its costs are absolute values), not {validate.show(modulus)}")
    side = 1.0 / np.sqrt(horizon)
    domain = domains.Box(np.zeros(horizon), np.full(horizon, side))
    # Each constraint is x_t <= side/4 or x_t >= 3 side/4, so |g| is at most 3 side/4; the targets together are a feasible action of cost 0.
    constants = constants_of(domain, lipschitz=1.0, bound=0.75 * side, modulus=0.0, constraints=1, time_varying=True)
    targets = _targets(seed, side, horizon)
    constants |= {"rounds": horizon, "feasible": targets, "optimum": targets, "optimal_cost": 0.0}
    return Problem(domain, CoinPerCoordinate(0.25 * side, 0.75 * side), constants)


def minimax(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, family: int = 8, domain: str | Domain = "ball") -> Problem:
    """The worst, at the decision, of a finite family of linear costs; one fixed halfspace.

    x is a point of the domain and f the one of m linear costs that is largest at x (plus (modulus/2) |x - centre|^2). g is one halfspace
    across the direction in which the costs are smallest on average.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    costs = instance.random_directions(rng, validate.whole("family", family), domain.dim)
    pull = costs.mean(axis=0)
    a, b = instance.quarter_cut(domain, -(pull if pull.any() else costs[0]))  # in one dimension the costs may cancel
    G = 1.0 + alpha * domain.diameter()  # the quadratic is centred in the domain
    constants = constants_of(
        domain, lipschitz=G, bound=instance.largest_gap(domain, a, b), modulus=alpha, constraints=1, time_varying=False
    )
    constants |= {"feasible": domain.center(), "slater": b - float(domain.linear_min(a))}
    return Problem(domain, Minimax(costs, alpha, domain.center(), a, -b), constants)


def fixed(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, domain: str | Domain = "ball") -> Problem:
    """One cost and one halfspace that cuts off its minimiser, the same every round.

    x is a point of the domain and f a linear cost of slope 1, or (modulus/2) |x - z|^2 with z on the domain's boundary. g is a halfspace
    that holds a quarter of the way from the centre to the boundary, roughly where the cost pulls.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    direction, aside = instance.random_directions(rng, 2, domain.dim)
    a, b = instance.quarter_cut(domain, direction + 0.5 * aside)
    cost, best, G = instance.best_across(domain, direction, alpha, a, b)
    constants = constants_of(
        domain, lipschitz=G, bound=instance.largest_gap(domain, a, b), modulus=alpha, constraints=1, time_varying=False
    )
    constants |= {"feasible": best, "optimum": best, "optimal_cost": horizon * float(cost.value(best))}
    constants["slater"] = b - float(domain.linear_min(a))
    return Problem(domain, Fixed(Round(cost, (AffineFunction(a, -b),))), constants)


def halfspaces(
    horizon: int,
    seed: int = 0,
    dim: int = 10,
    modulus: float = 0.0,
    constraints: int = 1,
    slater: float = 0.1,
    domain: str | Domain = "ball",
) -> Problem:
    """Fresh random halfspaces every round, all satisfied at one known action, pulling against the costs.

    x is a point of the domain and f a random linear cost of slope 1 that favours one direction, or (modulus/2) |x - z|^2 with a random
    target z on that side. g are k random halfspaces that lean against that direction, each satisfied at one fixed action by `slater` to
    twice that.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    drift = instance.random_directions(rng, 1, domain.dim)[0]
    point = instance.random_action(rng, domain)
    k = validate.whole("constraints", constraints)
    G = max(1.0, alpha * domain.diameter())
    # Unit normals, and levels at a point of the domain between -2 margin and -margin: |g(x)| <= |x - point| + 2 margin.
    margin = validate.nonnegative("slater", slater)
    constants = constants_of(domain, lipschitz=G, bound=domain.diameter() + 2.0 * margin, modulus=alpha, constraints=k)
    constants |= {"feasible": point, "slater": margin, "time_varying": True}
    return Problem(domain, RandomHalfspaces(domain, point, drift, alpha, margin, np.ones(k)), constants)


def _targets(seed: int, side: float, horizon: int) -> Array:
    """The feasible action of the lower bound: each coordinate at the target its coin will pick."""
    coins = np.concatenate(list(deal_blocks(CoinPerCoordinate(0.0, 0.0), seed, horizon, dim=horizon)))
    return np.asarray(side * (0.25 + 0.5 * coins))


PROBLEMS: dict[str, Callable[..., Problem]] = {"lower-bound": lower_bound, "minimax": minimax, "fixed": fixed, "halfspaces": halfspaces}
