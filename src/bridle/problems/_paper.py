"""Problems of the paper.

| problem | adversary | what it does |
|---|---|---|
| `lower-bound` | `CoinPerCoordinate` | picks a side of one more coordinate every round: Theorem 3 |
| `minimax` | `Minimax` | picks the cost of a finite family that is worst at the decision |
| `fixed` | `Fixed` | repeats one round |
| `halfspaces` | `RandomHalfspaces` | draws fresh halfspaces that one known action satisfies |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import domains, validate
from bridle.core import Domain, InputError, Round
from bridle.functions import AffineFunction, AffineRows, Coordinate, CoordinateDeviation, RoundQuadratic
from bridle.ops import Array, Scalar, scalar, worst
from bridle.problems import instance
from bridle.problems.base import NoState, Problem, adaptive, constants_of, oblivious
from bridle.problems.dealing import deal_blocks
from bridle.problems.registry import registered


@oblivious
class Fixed(NamedTuple):
    """An adversary that plays one round again and again.

    Parameters
    ----------
    round : Round
        The round.

    Examples
    --------
    >>> import bridle
    >>> chosen = bridle.Round(bridle.Affine([1.0, 0.0]), (bridle.Affine([0.0, 1.0], -0.5),))
    >>> bridle.play(bridle.policy("anytime", bridle.Ball(2)), bridle.Problem(bridle.Ball(2), Fixed(chosen)), horizon=10).rounds
    10
    """

    round: Round

    def init(self) -> NoState:
        """The adversary's state before the first round."""
        return ()

    def answer(self, state: NoState, x: Array) -> tuple[NoState, Round]:
        """The round that answers a decision."""
        return state, self.round


@adaptive
class Minimax(NamedTuple):
    """An adversary that picks, of m linear costs, the one that is worst at the decision; its one halfspace stays.

    It is convex in the paper's sense (appendix A.7): regret against the average decision is never negative.

    Parameters
    ----------
    costs : array of shape (m, d)
        The slopes of the costs.
    modulus : float
        The strong convexity of a quadratic that is added, 0 or above.
    middle : array of shape (d,)
        Where that quadratic is 0.
    a : array of shape (d,)
        The normal of the halfspace.
    b : float
        Its offset: the constraint is ``<a, x> + b``.

    Examples
    --------
    >>> import bridle, numpy as np
    >>> adversary = Minimax(np.array([[1.0, 0.0], [-1.0, 0.0]]), 0.0, np.zeros(2), np.array([0.0, 1.0]), -0.5)
    >>> adversary.answer(adversary.init(), np.array([0.3, 0.0]))[1].cost.a
    array([1., 0.])
    """

    costs: Array  # (m, d)
    modulus: Scalar
    middle: Array
    a: Array
    b: Scalar

    def init(self) -> NoState:
        """The adversary's state before the first round."""
        return ()

    def answer(self, state: NoState, x: Array) -> tuple[NoState, Round]:
        """The round that answers a decision."""
        _, cost = worst((self.costs @ x[..., None])[..., 0], self.costs)
        halfspace = AffineFunction(self.a + 0.0 * x, self.b + scalar(x))
        return state, Round(RoundQuadratic(self.modulus + scalar(x), self.middle + 0.0 * x, cost, scalar(x)), (halfspace,))


@oblivious
class RandomHalfspaces(NamedTuple):
    """An adversary that draws k fresh halfspaces every round, which one known action satisfies and which pull against the costs.

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    point : array of shape (d,)
        The action that satisfies every halfspace.
    drift : array of shape (d,)
        The direction that costs favour, and that normals lean towards.
    modulus : float
        0: linear costs of slope 1. Above 0: quadratic costs of this strong convexity, with targets on the side of `drift`.
    slater : float
        `point` satisfies a halfspace by this margin to twice as much, 0 or above, in units of constraint.
    each : array of shape (k,)
        Its length is how many halfspaces a round has.

    Examples
    --------
    >>> import bridle
    >>> bridle.problem("halfspaces", horizon=10, dim=2, constraints=3).adversary.each
    array([1., 1., 1.])
    """

    domain: Domain
    point: Array
    drift: Array
    modulus: Scalar
    slater: Scalar
    each: Array  # (k,)

    def init(self) -> NoState:
        """The adversary's state before the first round."""
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        """Draw the next rounds.

        Returns the rounds, with a leading time axis.

        Parameters
        ----------
        rng : numpy.random.Generator
            The source of randomness.
        rounds : int
            How many rounds, 1 or above.
        """
        d, k = len(self.point), len(self.each)
        cost = instance.drifting(self.domain, self.drift, self.modulus, rng, rounds)
        rows = rng.standard_normal((rounds, k, d))
        A = instance.normalised(0.5 * self.drift + rows / np.sqrt(d))
        b = -(A * self.point).sum(axis=-1) - self.slater * rng.uniform(1.0, 2.0, size=(rounds, k))
        constraint = AffineFunction(A[:, 0], b[:, 0]) if k == 1 else AffineRows(A, b)
        return Round(cost, (constraint,))

    def answer(self, state: NoState, x: Array, draw: Round) -> tuple[NoState, Round]:
        """The round that answers a decision: the one that was drawn.

        Parameters
        ----------
        state : tuple
            Its state.
        x : array of shape (d,)
            The decision.
        draw : Round
            What `deal` drew for this round.
        """
        return state, draw


@oblivious
class CoinPerCoordinate(NamedTuple):
    """The adversary of Theorem 3: round t constrains coordinate t alone, to one of two sides that a fair coin picks.

    Heads: ``x_t <= low``, and the cost is the distance of x_t from `low`. Tails: ``x_t >= high``, and the cost is the distance from `high`.

    Parameters
    ----------
    low : float
        The target of heads, in units of action.
    high : float
        The target of tails, above `low`.

    Examples
    --------
    >>> import bridle
    >>> float(bridle.problem("lower-bound", horizon=16).adversary.high)
    0.1875
    """

    low: Scalar
    high: Scalar

    def init(self) -> Scalar:
        """The adversary's state before the first round.

        Returns the coordinate that comes next, 0.
        """
        return 0.0  # the coordinate of the next round

    def deal(self, rng: np.random.Generator, rounds: int) -> Array:
        """Toss the coins of the next rounds.

        Returns 0 for heads, 1 for tails.

        Parameters
        ----------
        rng : numpy.random.Generator
            The source of randomness.
        rounds : int
            How many rounds, 1 or above.
        """
        return rng.integers(0, 2, size=rounds).astype(float)

    def answer(self, state: Scalar, x: Array, draw: Array) -> tuple[Scalar, Round]:
        """The round that answers a decision.

        Parameters
        ----------
        state : float
            The coordinate that is constrained.
        x : array of shape (d,)
            The decision.
        draw : float
            The coin.
        """
        target = self.low + draw * (self.high - self.low)
        return state + 1.0, Round(CoordinateDeviation(state, target), (Coordinate(state, 1.0 - 2.0 * draw, target),))


@registered
def lower_bound(horizon: int, seed: int = 0, dim: int | None = None, modulus: float = 0.0) -> Problem:
    """Theorem 3's instance: no policy keeps both regret and CCV below sqrt(T)/4 here; d = T.

    x is a point of a cube whose diagonal is 1 long, with a coordinate for every round. In round t a fair coin picks a target in coordinate
    t, at a quarter or at three quarters of the side: f is the distance of x_t from it, and g how far x_t is on the wrong side of it.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Default: the horizon. Values: the horizon. Unit: coordinates.
    modulus
        The costs are absolute values, and have none. Values: 0. Unit: cost per squared unit of action.
    """
    if dim not in (None, horizon):
        raise InputError(f"dim of problem lower-bound is its horizon, {horizon}, not {dim}")
    if modulus != 0.0:
        raise validate.refused("modulus of problem lower-bound is 0 (its costs are absolute values)", modulus)
    side = 1.0 / np.sqrt(horizon)
    domain = domains.Box(np.zeros(horizon), np.full(horizon, side))
    # Each constraint is x_t <= side/4 or x_t >= 3 side/4, so |g| is at most 3 side/4; the targets together are a feasible action of cost 0.
    constants = constants_of(domain, lipschitz=1.0, bound=0.75 * side)
    targets = _targets(seed, side, horizon)
    constants |= {"rounds": horizon, "feasible": targets, "optimum": targets, "optimal_cost": 0.0}
    return Problem(domain, CoinPerCoordinate(0.25 * side, 0.75 * side), constants)


@registered
def minimax(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, family: int = 8, domain: str | Domain = "ball") -> Problem:
    """The worst, at the decision, of a finite family of linear costs; one fixed halfspace.

    x is a point of the domain and f the one of m linear costs that is largest at x (plus (modulus/2) |x - centre|^2). g is one halfspace
    across the direction in which the costs are smallest on average.

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
    family
        m, how many linear costs the adversary chooses from. Values: a whole number, 1 or above. Unit: costs.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    costs = instance.random_directions(rng, validate.whole("family", family), domain.dim)
    pull = costs.mean(axis=0)
    a, b = instance.quarter_cut(domain, -(pull if pull.any() else costs[0]))  # in one dimension the costs may cancel
    G = 1.0 + alpha * domain.diameter()  # the quadratic is centred in the domain
    constants = constants_of(domain, lipschitz=G, bound=instance.largest_gap(domain, a, b), modulus=alpha, time_varying=False)
    constants |= {"feasible": domain.center(), "slater": b - float(domain.linear_min(a))}
    return Problem(domain, Minimax(costs, alpha, domain.center(), a, -b), constants)


@registered
def fixed(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, domain: str | Domain = "ball") -> Problem:
    """One cost and one halfspace that cuts off its minimiser, the same every round.

    x is a point of the domain and f a linear cost of slope 1, or (modulus/2) |x - z|^2 with z on the domain's boundary. g is a halfspace
    that holds a quarter of the way from the centre to the boundary, roughly where the cost pulls.

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
    a, b = instance.quarter_cut(domain, direction + 0.5 * aside)
    cost, best, G = instance.best_across(domain, direction, alpha, a, b)
    constants = constants_of(domain, lipschitz=G, bound=instance.largest_gap(domain, a, b), modulus=alpha, time_varying=False)
    constants |= {"feasible": best, "optimum": best, "optimal_cost": horizon * float(cost.value(best))}
    constants["slater"] = b - float(domain.linear_min(a))
    return Problem(domain, Fixed(Round(cost, (AffineFunction(a, -b),))), constants)


@registered
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
    constraints
        k, constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    slater
        By how much one action satisfies every constraint. Values: 0 or above. Unit: constraint.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    drift = instance.random_directions(rng, 1, domain.dim)[0]
    point = instance.random_action(rng, domain)
    k = validate.whole("constraints", constraints)
    G = max(1.0, alpha * domain.diameter())
    # Unit normals, and levels at a point of the domain between -2 margin and -margin: |g(x)| <= |x - point| + 2 margin.
    margin = validate.nonnegative("slater", slater)
    constants = constants_of(
        domain, lipschitz=G, bound=domain.diameter() + 2.0 * margin, modulus=alpha, constraints=k, feasible=point, slater=margin
    )
    return Problem(domain, RandomHalfspaces(domain, point, drift, alpha, margin, np.ones(k)), constants)


def _targets(seed: int, side: float, horizon: int) -> Array:
    """The feasible action of the lower bound: each coordinate at the target its coin will pick."""
    coins = np.concatenate(list(deal_blocks(CoinPerCoordinate(0.0, 0.0), seed, horizon, dim=horizon)))
    return np.asarray(side * (0.25 + 0.5 * coins))
