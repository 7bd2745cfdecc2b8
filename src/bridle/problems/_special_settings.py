"""The paper's special settings.

| problem | adversary | what it does |
|---|---|---|
| `game` | `CoupledGame` | answers a mixed strategy with the worst of its moves |
| `fixed-constraints` | `FixedConstraints` | changes the costs and never the constraints |
| `s-feasible`, `p-constrained` | `OpposedPairs` | opposes two halfspaces that no action satisfies in every round |
| `multi-task` | `SharedWeights` | shows examples of tasks that share one weight vector |
| `nested-bodies` | `NestedBodies` | cuts off more and more of the domain |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Constants, Domain, InputError, Round
from bridle.functions import AffineFunction, AffineRows, RoundQuadratic
from bridle.ops import Array, Scalar, floor, pos, scalar, sqrt, worst
from bridle.problems import instance
from bridle.problems.base import NoState, Problem, StreamOpponent, adaptive, constants_of, oblivious, with_switching
from bridle.problems.instance import Cost
from bridle.problems.registry import registered

SCORE, MARGIN = 0.625, 0.25
"""Multi-task learning: an example's product with the shared weights, and the product that every task asks for."""


@adaptive
class CoupledGame(NamedTuple):
    """A second player who answers the mixed strategy x with the move that makes cost plus excess usage largest.

    Move j costs <c_j, x> (plus one quadratic where `modulus` is above 0) and asks for <u_j, x> <= limit, which both players share.
    """

    moves: Array  # (m, 2d): c_j and u_j side by side
    limit: Scalar
    modulus: Scalar
    middle: Array

    def init(self) -> NoState:
        return ()

    def answer(self, state: NoState, x: Array) -> tuple[NoState, Round]:
        d = x.shape[-1]
        cost, usage = (self.moves[..., :d] @ x[..., None])[..., 0], (self.moves[..., d:] @ x[..., None])[..., 0]
        _, move = worst(cost + pos(usage - self.limit), self.moves)
        price = RoundQuadratic(self.modulus + scalar(x), self.middle + 0.0 * x, move[..., :d] + 0.0 * x, scalar(x))
        return state, Round(price, (AffineFunction(move[..., d:] + 0.0 * x, scalar(x) - self.limit),))


class FixedConstraints(NamedTuple):
    """Random costs that favour the direction `drift`; the same constraints A x + b <= 0 every round."""

    domain: Domain
    drift: Array
    modulus: Scalar
    A: Array  # (k, d)
    b: Array

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        cost = instance.drifting(self.domain, self.drift, self.modulus, rng, rounds)
        return Round(cost, (AffineRows(np.broadcast_to(self.A, (rounds, *self.A.shape)), np.broadcast_to(self.b, (rounds, len(self.b)))),))


class PairDraw(NamedTuple):
    """What a round of `OpposedPairs` draws: a cost, a normal, and the normal's product with the point."""

    cost: Cost
    normal: Array
    height: Scalar


@oblivious
class OpposedPairs(NamedTuple):
    """Two constraints a round, +<a_t, x - point> + c_t <= 0 and -<a_t, x - point> + c_t <= 0, with a_t one of a few random directions.

    Over any rounds the two sum to twice the sum of c_t whatever the actions are, so no action has both below it, and `point` has both at
    it: windows and intervals are for every action at least what they are for c_t. And c_t is `tilt` plus a schedule of period S: `level`
    for S/2 rounds, nothing in the middle one of an odd S, minus `level` for S/2 rounds. With no tilt the first S' rounds of a period sum
    to more than 0 for every S' < S, and any S rounds in a row to 0.
    """

    domain: Domain
    point: Array
    drift: Array
    modulus: Scalar
    directions: Array  # (m, d)
    window: Scalar
    level: Scalar
    tilt: Scalar

    def init(self) -> Scalar:
        return 0.0  # rounds so far

    def deal(self, rng: np.random.Generator, rounds: int) -> PairDraw:
        cost = instance.drifting(self.domain, self.drift, self.modulus, rng, rounds)
        normals = self.directions[rng.integers(0, len(self.directions), size=rounds)]
        return PairDraw(cost, normals, normals @ self.point)

    def answer(self, state: Scalar, x: Array, draw: PairDraw) -> tuple[Scalar, Round]:
        place, half = state - self.window * floor(state / self.window), floor(0.5 * self.window)
        swing: Scalar = (place < half) * 1.0 - (place >= self.window - half) * 1.0  # type: ignore[assignment]
        over = self.tilt + self.level * swing
        pair = AffineFunction(draw.normal, over - draw.height), AffineFunction(-draw.normal, over + draw.height)
        return state + 1.0, Round(draw.cost, pair)


class SharedWeights(NamedTuple):
    """k linear tasks for one weight vector x: task j shows an example z and asks for <z, x> >= margin.

    An example of task j is `score` along `weights` and otherwise looks like `looks[j]` plus noise; examples are 1 long. With `conflict`
    above 0 the last task is shown the first one's example and asks for <z, x> <= margin - 2 conflict. The cost is (modulus/2) |x|^2.
    """

    weights: Array
    looks: Array  # (k, d)
    modulus: Scalar
    score: Scalar
    margin: Scalar
    conflict: Scalar

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        k, d = self.looks.shape
        aside = self.looks + rng.standard_normal((rounds, k, d)) / np.sqrt(d)
        aside = instance.normalised(aside - (aside @ self.weights)[..., None] * self.weights)
        A = -(self.score * self.weights + np.sqrt(1.0 - self.score**2) * aside)
        b = np.full((rounds, k), float(self.margin))
        if self.conflict > 0.0:
            A[:, -1], b[:, -1] = -A[:, 0], 2.0 * self.conflict - self.margin
        zero = np.zeros((rounds, d))
        decay = RoundQuadratic(np.full(rounds, float(self.modulus)), zero, zero, zero[:, 0])
        return Round(decay if self.modulus > 0.0 else AffineFunction(zero, zero[:, 0]), (AffineRows(A, b),))


class NormalDraw(NamedTuple):
    """A random normal, and its product with a point."""

    normal: Array
    height: Scalar


@oblivious
class NestedBodies(NamedTuple):
    """One more halfspace every round: <a_t, x - point> <= slater + room / sqrt(t). What all of them leave shrinks; costs are zero."""

    point: Array
    room: Scalar
    slater: Scalar

    def init(self) -> Scalar:
        return 0.0  # rounds so far

    def deal(self, rng: np.random.Generator, rounds: int) -> NormalDraw:
        normals = instance.normalised(rng.standard_normal((rounds, len(self.point))))
        return NormalDraw(normals, normals @ self.point)

    def answer(self, state: Scalar, x: Array, draw: NormalDraw) -> tuple[Scalar, Round]:
        within = self.slater + self.room / sqrt(state + 1.0)
        free = AffineFunction(0.0 * draw.normal, 0.0 * draw.height)
        return state + 1.0, Round(free, (AffineFunction(draw.normal, -draw.height - within),))


@registered
def game(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, family: int = 8, slater: float = 0.05) -> Problem:
    """Two players with a coupled constraint: a mixed strategy against an opponent who answers it.

    x is a probability vector over d pure strategies, and f(x) is what it costs in expectation against the opponent's move, chosen as the
    worst for x of m moves (plus a quadratic where modulus is above 0). g(x) is by how much the expected use of a resource that depends on
    both players' choices exceeds a limit, which one known mixture keeps against every move by the margin `slater`.

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
    slater
        By how much one action satisfies every constraint. Values: 0 or above. Unit: constraint.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, "simplex")
    m = validate.whole("family", family)
    bold = rng.permutation(np.linspace(0.0, 1.0, domain.dim))  # bold strategies cost little and use much, against every move
    usage, price = bold * rng.uniform(0.5, 1.0, (m, domain.dim)), rng.uniform(0.0, 0.5, (m, domain.dim)) - bold
    usage, price = (rows / np.linalg.norm(rows, axis=1).max() for rows in (usage, price))
    point = (1.0 - bold) * rng.dirichlet(np.ones(domain.dim))
    point = point / point.sum()
    margin = validate.nonnegative("slater", slater)
    limit = float((usage @ point).max()) + margin
    constants = constants_of(
        domain,
        lipschitz=1.0 + alpha * instance.reach(domain, domain.center()),
        bound=float(abs(usage - limit).max()),
        modulus=alpha,
        time_varying=m > 1,
    )
    constants |= {"feasible": point, "slater": margin}
    return Problem(domain, CoupledGame(np.concatenate([price, usage], axis=1), limit, alpha, domain.center()), constants)


@registered
def fixed_constraints(
    horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, constraints: int = 3, domain: str | Domain = "ball"
) -> Problem:
    """Time-invariant constraints: the same few halfspaces every round, while the costs change.

    x is a point of the domain and f a random linear cost of slope 1 that favours one direction, or (modulus/2) |x - z|^2 with a random
    target z on that side. g are k halfspaces across that direction which never change, and which the domain's centre satisfies.

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
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    drift, *asides = instance.random_directions(rng, 1 + validate.whole("constraints", constraints), domain.dim)
    cuts = [instance.quarter_cut(domain, drift + 0.7 * aside) for aside in asides]
    A, b = np.array([a for a, _ in cuts]), np.array([level for _, level in cuts])
    F = max(instance.largest_gap(domain, a, level) for a, level in cuts)
    constants = constants_of(
        domain,
        lipschitz=max(1.0, alpha * domain.diameter()),
        bound=F,
        modulus=alpha,
        constraints=len(A),
        feasible=domain.center(),
        slater=float((b - A @ domain.center()).min()),
        time_varying=False,
    )
    return Problem(domain, StreamOpponent(FixedConstraints(domain, drift, alpha, A, -b)), constants)


@registered
def s_feasible(
    horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, window: int = 10, level: float = 0.25, domain: str | Domain = "ball"
) -> Problem:
    """An S-feasible stream: one action satisfies the constraints summed over every S rounds in a row, and no action over fewer.

    x is a point of the domain and f a random cost that favours one direction. g are two opposed halfspaces through one action, which push
    each other past it by `level` for S/2 rounds and leave as much room for the next S/2; over no fewer than S rounds in a row does any
    action satisfy both in total.

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
    window
        S: over every so many rounds in a row, and over no fewer, an action satisfies the constraints in total.
        Values: a whole number from 1 to the horizon. Unit: rounds.
    level
        By how much the best action violates a constraint in a bad round. Values: above 0. Unit: constraint.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    S, h = validate.whole("window", window), validate.positive("level", level)
    if horizon < S:
        raise InputError(f"window must be at most the horizon, {horizon}, not {S}")
    pairs, point = _pairs(seed, dim, modulus, domain)
    F = _across(pairs, point) + (h if S > 1 else 0.0)
    constants = _pair_constants(pairs, F) | _closest(point, S == 1) | {"window": S, "excess": h * (S // 2)}
    return Problem(pairs.domain, pairs._replace(window=float(S), level=h), constants)


@registered
def p_constrained(
    horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, P_T: float = 5.0, domain: str | Domain = "ball"
) -> Problem:
    """A P_T-constrained stream: the best action violates its constraints by P_T F over some interval, F being the largest |g|.

    x is a point of the domain and f a random cost that favours one direction. g are two opposed halfspaces that overlap nowhere: each
    round every action fails one of them, the best by P_T F / T, which over all T rounds makes P_T F.

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
    P_T
        What the best action violates over its worst interval, in units of F (the largest |g|). Values: 0 or above
        and below the horizon. Unit: the largest constraint value.
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    """
    share = validate.nonnegative("P_T", P_T) / horizon
    if share >= 1.0:
        raise validate.refused(f"P_T must be below the horizon, {horizon}", P_T)
    pairs, point = _pairs(seed, dim, modulus, domain)
    # The tilt is share * F, and F is what the halfspaces reach without it plus the tilt.
    F = _across(pairs, point) / (1.0 - share)
    constants = _pair_constants(pairs, F) | _closest(point, share == 0.0) | {"excess": share * F * horizon, "rounds": horizon}
    return Problem(pairs.domain, pairs._replace(tilt=share * F), constants)


@registered
def multi_task(horizon: int, seed: int = 0, dim: int = 10, modulus: float = 0.0, constraints: int = 3, conflict: float = 0.0) -> Problem:
    """Online multi-task learning: linear tasks that share one weight vector; they agree, or two of them conflict.

    x is the weight vector that all tasks share, at most 1 long, and f(x) = (modulus/2) |x|^2 a decay of the weights (nothing for 0).
    g_j(x) is by how much x's score on this round's example of task j misses the margin it asks for; with `conflict` the last task asks
    for the opposite of the first on the same examples, and every weight vector misses one of them by that much on average.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, coordinates of a decision. Values: a whole number, 2 or above. Unit: coordinates.
    modulus
        0: linear costs; above 0: quadratic costs with this strong convexity. Values: 0 or above. Unit: cost per
        squared unit of action.
    constraints
        k, constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    conflict
        0: one weight vector serves all tasks; above 0: by how much every one fails a task in every round. Values: 0
        or above. Unit: constraint.
    """
    if validate.whole("dim", dim) < 2:
        raise InputError(f"dim must be 2 or above for multi-task, not {dim}")
    rng, domain, alpha = instance.begin(seed, dim, modulus, "ball")
    k, q = validate.whole("constraints", constraints), validate.nonnegative("conflict", conflict)
    if q > 0.0 and k < 2:
        raise InputError(f"constraints must be 2 or above for tasks to conflict, not {k}")
    if q > MARGIN + SCORE:
        raise validate.refused(f"conflict must be at most {MARGIN + SCORE:g}", conflict)
    weights, *looks = instance.random_directions(rng, 1 + k, domain.dim)
    # Scores on unit examples are between -1 and 1. With a conflict, what the first and the last task ask for sums to 2 conflict at every x.
    F = 1.0 + max(MARGIN, abs(MARGIN - 2.0 * q) if q > 0.0 else 0.0)
    constants = constants_of(domain, lipschitz=max(1.0, alpha), bound=F, modulus=alpha, constraints=k)
    if q == 0.0:
        constants |= {"feasible": weights, "slater": SCORE - MARGIN}
        constants |= {"optimum": weights, "optimal_cost": 0.0} if alpha == 0.0 else {}
    else:
        constants |= _closest((MARGIN - q) / SCORE * weights, False) | {"excess": q * horizon, "rounds": horizon}
    return Problem(domain, StreamOpponent(SharedWeights(weights, np.array(looks), alpha, SCORE, MARGIN, q)), constants)


@registered
def nested_bodies(
    horizon: int, seed: int = 0, dim: int = 10, slater: float = 0.0, domain: str | Domain = "box", switching: float | None = None
) -> Problem:
    """Convex body chasing: halfspaces are revealed one after another, and what all of them leave shrinks around one action.

    x is where the chaser stands, and f is 0. g(x) is how far x is outside this round's halfspace, which stays at least `slater` away from
    the action that is never cut off, and comes nearer to it every round. With `switching`, moving costs that much a unit.

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
    domain
        Where decisions are made. Values: ball, box, simplex, l1, or a domain.
    switching
        What it costs to move the decision by one unit from one round to the next. Default: movement is free.
        Values: 0 or above. Unit: cost per unit of action.
    """
    rng, domain, _ = instance.begin(seed, dim, 0.0, domain)
    point = instance.random_action(rng, domain)
    margin, room = validate.nonnegative("slater", slater), 0.25 * float(domain.diameter())
    constants = constants_of(domain, lipschitz=1.0, bound=instance.reach(domain, point) + margin + room)
    constants |= {"feasible": point, "slater": margin, "optimum": point, "optimal_cost": 0.0}
    made = Problem(domain, NestedBodies(point, room, margin), constants)
    return made if switching is None else with_switching(made, switching)


def _pairs(seed: int, dim: int, modulus: float, domain: str | Domain) -> tuple[OpposedPairs, Array]:
    """Opposed halfspaces through one action, without a window or a tilt, and that action."""
    rng, domain, alpha = instance.begin(seed, dim, modulus, domain)
    drift, *directions = instance.random_directions(rng, 1 + 4 * domain.dim, domain.dim)
    point = instance.random_action(rng, domain)
    return OpposedPairs(domain, point, drift, alpha, np.array(directions), 1.0, 0.0, 0.0), point


def _across(pairs: OpposedPairs, point: Array) -> float:
    """The largest |<a, x - point>| on the domain for any of the directions."""
    return max(instance.largest_gap(pairs.domain, a, float(a @ point)) for a in pairs.directions)


def _pair_constants(pairs: OpposedPairs, F: float) -> Constants:
    G, alpha = max(1.0, float(pairs.modulus) * pairs.domain.diameter()), float(pairs.modulus)
    return constants_of(pairs.domain, lipschitz=G, bound=F, modulus=alpha, constraints=2)


def _closest(point: Array, feasible: bool) -> Constants:
    """The action that comes closest to feasible, and whether it is."""
    return {"feasible": point if feasible else None, "benchmark": point}
