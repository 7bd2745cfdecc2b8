"""A robot that drives the same way lap after lap, past obstacles that it sees only when it gets there.

| problem | adversary | what it does |
|---|---|---|
| `navigation` | `Laps` | draws the wind and the obstacles of any lap, 50 laps at a time |

The robot drives from (0, 0) to (1, 0) by n waypoints. An obstacle is a disc beside the free route, which goes around where most obstacles
are. The disc itself leaves no convex set; the halfspace that touches it does, on the side of the free route, and who is in the halfspace is
clear of the disc.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import domains, validate
from bridle.core import InputError, Round
from bridle.functions import AffineRows, QuadraticForm
from bridle.ops import Array, Scalar
from bridle.problems.base import Problem, constants_of
from bridle.problems.recorded import ComputedRounds
from bridle.problems.registry import registered

LAPS = 50
"""How many laps are drawn at a time."""

WIDE, BEND = 0.5, (0.25, 0.4)
"""How far a waypoint may lie beside the straight line, and how far the free route goes to the side in its middle."""

LEAN, ROOM = np.pi / 3.0, 0.1
"""How far the side on which an obstacle is passed may turn from straight across, and by how much more than asked for it may leave room."""


class Laps(NamedTuple):
    """Energy, wind and obstacles of the laps of a robot with the waypoints p_1 ... p_n between p_0 = (0, 0) and p_{n+1} = (1, 0).

    f(x) = (n+1)/2 sum_j |p_{j+1} - p_j|^2 + <wind, x>: the squared length of n + 1 equal legs, over 2, and what the wind does. That is
    x' P x / 2 + <a, x> + b with a curvature P of (n+1) times a chain's, once for each coordinate.

    An obstacle of radius r at c, beside waypoint j, is passed on the side u, a unit vector: <u, p_j - c> >= r. It touches the line that
    lies `gap` behind the free route's waypoint q_j, so g(x) = r - <u, p_j - c> = <u, q_j - p_j> - gap whatever r is.
    """

    seed: float
    P: Array  # (d, d), d = 2 n
    a: Array  # (d,)
    route: Array  # (n, 2), the free route
    side: Scalar  # 1 or -1, on which side of the straight line it goes
    wind: Scalar
    slater: Scalar
    obstacles: Scalar  # of a lap

    @property
    def length(self) -> int:
        return LAPS

    def period(self, number: int) -> Round:
        """The laps of a period."""
        rng, n, k = np.random.default_rng([int(self.seed), 6, number]), len(self.route), int(self.obstacles)
        wind = rng.uniform(-1.0, 1.0, (LAPS, 2 * n)) * (self.wind / n)
        beside, turned = rng.integers(0, n, (LAPS, k)), rng.uniform(-LEAN, LEAN, (LAPS, k))
        gap = self.slater + ROOM * rng.random((LAPS, k))
        across = np.stack([np.sin(turned), self.side * np.cos(turned)], axis=-1)
        rows = np.zeros((LAPS, k, n, 2))
        np.put_along_axis(rows, beside[:, :, None, None], -across[:, :, None, :], axis=2)
        level = (across * self.route[beside]).sum(axis=-1) - gap
        energy = QuadraticForm(np.broadcast_to(self.P, (LAPS, *self.P.shape)), self.a + wind, np.full(LAPS, 0.5 * (n + 1)))
        return Round(energy, (AffineRows(rows.reshape(LAPS, k, 2 * n), level),))


@registered
def navigation(horizon: int, seed: int = 0, waypoints: int = 6, constraints: int = 3, wind: float = 1.0, slater: float = 0.02) -> Problem:
    """A robot's way to a goal, planned before the lap's obstacles are seen.

    x is the waypoints of the robot's way, two coordinates each, and f the energy of a lap: half the squared length of its legs times their
    number, and what the wind adds. g is, for each obstacle of the lap, by how much the waypoint beside it is too near: how far it is from
    the halfspace that touches the obstacle on the side of a free route, which leaves every obstacle at least `slater` away.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    waypoints
        n, waypoints of the robot's way, two coordinates each. Values: a whole number, 1 or above. Unit: waypoints.
    constraints
        k, obstacles of a lap. Values: a whole number, 1 or above. Unit: obstacles.
    wind
        n times the largest slope that the wind adds to the energy at one of n waypoints. Values: 0 or above. Unit:
        cost per unit of action.
    slater
        How far a free route is from every obstacle at least. Values: 0 or above. Unit: action.
    """
    n, k = validate.whole("waypoints", waypoints), validate.whole("constraints", constraints)
    blows, margin = validate.nonnegative("wind", wind), validate.nonnegative("slater", slater)
    rng = np.random.default_rng([seed, 1])
    side, bend, along = float(rng.choice([-1.0, 1.0])), rng.uniform(*BEND), np.arange(1, n + 1) / (n + 1)
    route = np.stack([along, side * bend * np.sin(np.pi * along)], axis=1)
    low, high = np.tile([0.0, -WIDE], n), np.tile([1.0, WIDE], n)
    if margin > WIDE:
        raise InputError(f"slater must be at most {WIDE:g}, the width beside the straight line, not {margin:g}")
    chain = 2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    P, a = np.asarray((n + 1.0) * np.kron(chain, np.eye(2)), dtype=np.float64), np.zeros(2 * n)
    a[-2] = -(n + 1.0)  # the last leg ends in (1, 0)
    # A slope's entry is largest where each coordinate that counts for it is at its high end, and each other one at its low end.
    up, down = np.maximum(P, 0.0), np.minimum(P, 0.0)
    steepest = np.maximum(abs(up @ high + down @ low + a), abs(up @ low + down @ high + a)) + blows / n
    modulus = float((n + 1) * 2.0 * (1.0 - np.cos(np.pi / (n + 1))))
    domain = domains.Box(low, high)
    G = max(1.0, float(np.linalg.norm(steepest)))
    known = constants_of(domain, lipschitz=G, bound=_farthest(route, side, margin), modulus=modulus, constraints=k)
    known |= {"feasible": route.reshape(-1), "slater": margin or None}
    laps = Laps(float(seed), P, a, route, side, blows, margin, float(k))
    return Problem(domain, ComputedRounds(laps), known)


def _farthest(route: Array, side: float, slater: float) -> float:
    """The largest |<u, q_j - p> - gap| for any waypoint p and any side u on which an obstacle is passed."""
    corners = np.array([[x, y] for x in (0.0, 1.0) for y in (-WIDE, WIDE)])
    ways = route[:, None, :] - corners  # (n, 4, 2)
    turn = np.arctan2(ways[..., 0], side * ways[..., 1])  # how far each way is turned from straight across
    length, apart = np.linalg.norm(ways, axis=-1), np.pi - LEAN
    ahead = length * np.cos(np.maximum(abs(turn) - LEAN, 0.0))
    behind = length * np.cos(np.maximum(apart - abs(turn), 0.0))  # the same for the opposite way
    return max(float(ahead.max()) - slater, float(behind.max()) + slater + ROOM)
