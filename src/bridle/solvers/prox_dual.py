"""The dual of a proximal step: a multiplier for each constraint, found by a quasi-Newton method.

    min over X of  alpha |x - v|^2 + sum over groups j of c_j (max of g_i(x) over the group)^+
      =  max over s >= 0, sum of s_i over group j <= c_j,  of  min over X of  alpha |x - v|^2 + sum_i s_i g_i(x)

The minimiser x(s) on the right is unique, so the dual is concave with the gradient g(x(s)); how x(s) is found is the caller's business.
There are few multipliers: a quadratic model of the dual, corrected after every step, finds them in some ten to twenty evaluations.

It ends where s and x(s) fit together (see `shift`) once every g_i is moved by no more than 1e-12 times its group's slope times the size of
X (1e-10 where large multipliers hardly matter): x(s) is then the exact answer for constraints that are those given up to rounding.

>>> ascend(lambda s, near, accuracy: (s, np.array([1.0, -1.0]) - s, np.ones(2)), np.eye(2), np.eye(2), np.array([9.0, 9.0]), 1.0)[1]
array([1., 0.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bridle.backends import least_distance
from bridle.core import InputError
from bridle.ops import Array

Bools: TypeAlias = NDArray[np.bool_]

PROX_ACCURACY = 1e-13
"""How near x(s) comes to the true minimiser in the end, relative to the size of the domain."""

TOO_FAR_APART = "no proximal step was found: the constraints, their weights and the costs are too far apart in size"

At = Callable[[Array, Array | None, float], tuple[Array, Array, Array]]
"""x(s), the constraints there and the lengths of their gradients, for multipliers s, a point to search from, and an accuracy."""


def ascend(at: At, guess: Array, groups: Array, most: Array, size: float, accuracy: float = 1e-4) -> tuple[Array, Array]:
    """The x(s) and s that maximise the dual; row j of `groups` is 1 for the members of group j, whose multipliers sum to at most `most[j]`.

    `at(s, near, accuracy)` gives x(s) up to `accuracy` times `size`, searched from `near`, with the constraints there and the lengths of
    their gradients; more is asked of it as s comes closer. `guess` is the dual's curvature, with the opposite sign, as far as it is known.
    Every `most[j]` is above 0.
    """
    s, Q = np.zeros(groups.shape[1]), guess
    x, g, steep = at(s, None, accuracy)

    def misfit() -> float:
        steepest = (groups * steep).max(axis=1) @ groups  # of each one's group: it is the maximum that counts
        return float((shift(s, g, groups, most) / np.maximum(steepest, 1e-300)).max()) / size

    for _ in range(200):
        off = misfit()
        if off <= 10.0 * PROX_ACCURACY and accuracy <= PROX_ACCURACY:
            return x, s
        if off <= 100.0 * accuracy and accuracy > PROX_ACCURACY:  # what is off may be the error of x(s)
            accuracy = max(PROX_ACCURACY, min(1e-2 * accuracy, 1e-3 * off))
            x, g, steep = at(s, x, accuracy)
            continue
        try:
            move, climb = _best_move(Q, g, s, groups, most)
            rise = float(climb @ move)
        except (np.linalg.LinAlgError, RuntimeError):  # the curvature has gone astray
            rise = 0.0
        if not rise > 0.0:
            if Q is guess:
                break
            Q = guess
            continue
        t, before = 1.0, g
        while True:
            following = np.maximum(s + t * move, 0.0)
            x, g, slopes = at(following, x, accuracy)
            slope = float((climb + (g - before)) @ move)
            if slope >= -0.5 * rise or t < 1e-9:
                break
            t *= max(rise / (rise - slope), 0.1)  # too far: back to where a linear slope would be zero
        steep = np.maximum(steep, slopes)
        Q, s = _corrected(Q, following - s, before - g), following
    x, g, slopes = at(s, x, PROX_ACCURACY)
    if misfit() > 1000.0 * PROX_ACCURACY:
        raise InputError(TOO_FAR_APART)
    return x, s


def shift(s: Array, g: Array, groups: Array, most: Array) -> Array:
    """How far each constraint value g is from a value that fits the multipliers s.

    Where s_i > 0, constraint i must be the largest of its group, and that must be 0, or at least 0 where the group's sum is `most`.

    >>> shift(np.array([0.5, 2.0]), np.array([0.1, 0.3]), np.eye(2), np.array([1.0, 2.0]))
    array([0.1, 0. ])
    """
    over = g - _level(s, g, groups, most) @ groups
    return np.asarray(np.where(s > 0.0, abs(over), np.maximum(over, 0.0)))


def _level(s: Array, g: Array, groups: Array, most: Array) -> Array:
    """The value that the largest member of each group has where s are the right multipliers."""
    total = groups @ s
    mean = np.maximum(groups @ (s * g) / np.where(total > 0.0, total, 1.0), 0.0)
    return np.asarray(np.where(_full(s, groups, most), mean, 0.0))


def _full(s: Array, groups: Array, most: Array) -> Bools:
    return np.asarray(groups @ s >= most * (1.0 - PROX_ACCURACY))


def _best_move(Q: Array, g: Array, s: Array, groups: Array, most: Array) -> tuple[Array, Array]:
    """The move with the largest  <g, move> - move'Q move / 2  within the limits, or 0 if none is found; and g for what it gains.

    (Along the edge of a full group the moves sum to 0, so that its level can be taken off g: rounding then does not show.)
    """
    units = 1.0 / np.sqrt(np.diag(Q))
    model = _Model(units[:, None] * Q * units + 1e-8 * np.eye(len(s)), units * g, s / units, groups * units, most - groups @ s)
    level, full = _level(s, g, groups, most), _full(s, groups, most)
    held, edge = (s == 0.0) & (g <= level @ groups), full & (level > 0.0)  # the limits that hold now, most often
    z = model.best(held, edge)
    if z is None:
        held, edge = model.limits()
        z = model.best(held, edge)
    if z is None:
        return np.zeros(len(s)), g
    move = np.where(held, -s, units * z)
    return move, g - np.where(edge & full, level, 0.0) @ groups


class _Model(NamedTuple):
    """<f, z> - z'Hz / 2  with the limits  z >= -base  and  E z <= room ; H has a diagonal of 1."""

    H: Array
    f: Array
    base: Array
    E: Array
    room: Array

    def best(self, held: Bools, edge: Bools) -> Array | None:
        """The z with the largest value, if it is the `held` coordinates and the rows at the `edge` that limit it: by linear equations."""
        free, z = ~held, -self.base
        edge = edge & (self.E[:, free] > 0.0).any(axis=1)
        n, along = int(free.sum()), self.E[edge][:, free]
        matrix, right = np.zeros((n + len(along), n + len(along))), np.zeros(n + len(along))
        matrix[:n, :n], matrix[n:, :n], matrix[:n, n:] = self.H[free][:, free], along, along.T
        right[:n], right[n:] = (self.f - self.H[:, held] @ z[held])[free], (self.room - self.E[:, held] @ z[held])[edge]
        solution = np.linalg.solve(matrix, right)
        pull = solution[n:]
        z[free] = solution[:n]
        slope = self.f - self.H @ z - pull @ self.E[edge]
        slack, reach = 1e-9 * float(abs(self.f).max()), (1.0 + 1e-9) * self.base + 1e-12 * float(abs(z).max())
        fits = (z >= -reach).all() and (self.E @ z <= self.room + self.E @ (reach - self.base) + 1e-9 * abs(self.room)).all()
        return z if fits and (pull >= -slack).all() and (slope[held] <= slack).all() else None

    def limits(self) -> tuple[Bools, Bools]:
        """The coordinates that are held at -base, and the rows that are at the edge.

        For y = R z with H = R'R it is |y - best|^2 that is to be small. What limits y is told by the multipliers of a least-distance
        program (Lawson and Hanson 1974), which has an answer since y = 0 is within all limits.
        """
        inverse = np.linalg.inv(np.linalg.cholesky(self.H).T)
        rows, best = np.vstack([-inverse, self.E @ inverse]), self.f @ inverse
        lengths, far = np.sqrt((rows * rows).sum(axis=1)), float(np.sqrt(best @ best)) or 1.0
        beyond = (rows @ best - np.maximum(np.append(self.base, self.room), 0.0)) / lengths / far
        pull = least_distance(rows / lengths[:, None], -beyond)[0]
        return pull[: len(best)] > 0.0, pull[len(best) :] > 0.0


def _corrected(Q: Array, step: Array, change: Array) -> Array:
    """The curvature after the gradient fell by `change` along `step` (Broyden, Fletcher, Goldfarb, Shanno), damped where it hardly did."""
    expected = Q @ step
    before, now = float(step @ expected), float(step @ change)
    if not before > 1e-290:  # no step to speak of
        return Q
    if now < 1e-3 * before:
        share = (1.0 - 1e-3) * before / (before - now)
        change, now = share * change + (1.0 - share) * expected, 1e-3 * before
    after = Q - np.outer(expected, expected) / before + np.outer(change, change) / now
    return after if (np.diag(after) > 0.0).all() else Q
