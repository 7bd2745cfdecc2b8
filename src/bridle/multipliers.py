"""The dual of a proximal step: a multiplier for each constraint, found by a quasi-Newton method.

    min over X of  alpha |x - v|^2 + sum over groups j of c_j (max of g_i(x) over the group)^+
      =  max over s >= 0, sum of s_i over group j <= c_j,  of  min over X of  alpha |x - v|^2 + sum_i s_i g_i(x)

The minimiser x(s) on the right is unique, so the dual is concave with the gradient g(x(s)); how x(s) is found is the caller's business.
There are few multipliers: a quadratic model of the dual, corrected after every step, finds them in some ten to twenty evaluations.

It ends where s and x(s) fit together (see `shift`) once every g_i is moved by no more than 1e-12 times its slope times the size of X (1e-10
where large multipliers hardly matter): x(s) is then the exact answer for constraints that are those given up to rounding.

>>> ascend(lambda s, near, accuracy: (s, np.array([1.0, -1.0]) - s, np.ones(2)), np.eye(2), np.eye(2), np.array([9.0, 9.0]), 1.0)[1]
array([1., 0.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bridle.core import InputError

EXACT = 1e-13
"""How near x(s) comes to the true minimiser in the end, relative to the size of the domain."""

APART = "no proximal step was found: the constraints, their weights and the costs are too far apart in size"

At = Callable[[np.ndarray, Any, float], tuple[np.ndarray, np.ndarray, np.ndarray]]


def ascend(at: At, guess: np.ndarray, groups: np.ndarray, most: np.ndarray, size: float) -> tuple[np.ndarray, np.ndarray]:
    """The x(s) and s that maximise the dual; row j of `groups` is 1 for the members of group j, whose multipliers sum to at most `most[j]`.

    `at(s, near, accuracy)` gives x(s) up to `accuracy` times `size`, searched from `near`, with the constraints there and the lengths of
    their gradients. `guess` is the dual's curvature, with the opposite sign, as far as it is known; every `most[j]` is above 0.
    """
    s, Q, accuracy = np.zeros(groups.shape[1]), guess, 1e-4
    x, g, steep = at(s, None, accuracy)

    def misfit() -> float:
        return float((shift(s, g, groups, most) / np.maximum(steep, 1e-300)).max()) / size

    for _ in range(200):
        off = misfit()
        if off <= 10.0 * EXACT and accuracy <= EXACT:
            return x, s
        if off <= 100.0 * accuracy and accuracy > EXACT:  # what is off may be the error of x(s)
            accuracy = max(EXACT, min(1e-2 * accuracy, 1e-3 * off))
            x, g, steep = at(s, x, accuracy)
            continue
        move, climb = _best_move(Q, g, s, groups, most)
        rise = float(climb @ move)
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
    x, g, slopes = at(s, x, EXACT)
    if misfit() > 1000.0 * EXACT:
        raise InputError(APART)
    return x, s


def shift(s: np.ndarray, g: np.ndarray, groups: np.ndarray, most: np.ndarray) -> np.ndarray:
    """By how much each constraint would have to differ for s to be the multipliers of a step that ends where the constraints are g.

    Where s_i > 0, constraint i must be the largest of its group, and that must be 0, or at least 0 where the group's sum is `most`.

    >>> shift(np.array([0.5, 2.0]), np.array([0.1, 0.3]), np.eye(2), np.array([1.0, 2.0]))
    array([0.1, 0. ])
    """
    over = g - _level(s, g, groups, most) @ groups
    return np.asarray(np.where(s > 0.0, abs(over), np.maximum(over, 0.0)))


def _level(s: np.ndarray, g: np.ndarray, groups: np.ndarray, most: np.ndarray) -> np.ndarray:
    """The value that the largest member of each group has where s are the right multipliers."""
    total = groups @ s
    mean = np.maximum(groups @ (s * g) / np.where(total > 0.0, total, 1.0), 0.0)
    return np.asarray(np.where(_full(s, groups, most), mean, 0.0))


def _full(s: np.ndarray, groups: np.ndarray, most: np.ndarray) -> np.ndarray:
    return np.asarray(groups @ s >= most * (1.0 - EXACT))


def _best_move(Q: np.ndarray, g: np.ndarray, s: np.ndarray, groups: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The move with the largest  <g, move> - move'Q move / 2  within the limits, or 0 if none is found; and g for what it gains.

    (Along the edge of a full group the moves sum to 0, so that its level can be taken off g: rounding then does not show.)
    """
    from scipy.optimize import nnls

    Q = Q + np.diag(1e-8 * np.diag(Q))
    units = 1.0 / np.sqrt(np.diag(Q))
    scaled = units[:, None] * Q * units
    try:
        inverse = units[:, None] * np.linalg.inv(np.linalg.cholesky(scaled).T)
    except np.linalg.LinAlgError:
        return np.zeros(len(s)), g
    # For y = inverse^-1 move it is |y - best|^2 that is to be small. Which limits hold y is told by the multipliers of a least-distance
    # program (Lawson and Hanson 1974), which cannot fail since y = 0 is within all limits.
    rows, room, best = np.vstack([-inverse, groups @ inverse]), np.maximum(np.append(s, most - groups @ s), 0.0), g @ inverse
    lengths, far = np.sqrt((rows * rows).sum(axis=1)), float(np.sqrt(best @ best)) or 1.0
    beyond = (rows @ best - room) / lengths / far
    pull = nnls(np.vstack([-rows.T / lengths, beyond]), np.append(np.zeros(len(s)), 1.0))[0]
    held, edge = pull[: len(s)] > 0.0, pull[len(s) :] > 0.0
    # Then the move itself, from the linear equations that are left: exact however different its parts are in size.
    free, move = ~held, -s
    edge &= (groups[:, free] > 0.0).any(axis=1)
    n, along = int(free.sum()), groups[edge][:, free] * units[free]
    matrix = np.block([[scaled[free][:, free], along.T], [along, np.zeros((len(along), len(along)))]])
    room_left = most - groups @ s - groups[:, held] @ move[held]
    move[free] = units[free] * np.linalg.solve(matrix, np.append(units[free] * (g - Q[:, held] @ move[held])[free], room_left[edge]))[:n]
    if (s + move < -1e-9 * abs(move)).any() or (groups @ (s + move) > most * (1.0 + 1e-9)).any():
        return np.zeros(len(s)), g
    return move, g - np.where(edge & _full(s, groups, most), _level(s, g, groups, most), 0.0) @ groups


def _corrected(Q: np.ndarray, step: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The curvature after the gradient fell by `change` along `step` (Broyden, Fletcher, Goldfarb, Shanno), damped where it hardly did."""
    known = Q @ step
    before, now = float(step @ known), float(step @ change)
    if not before > 0.0:
        return Q
    if now < 1e-3 * before:
        share = (1.0 - 1e-3) * before / (before - now)
        change = share * change + (1.0 - share) * known
        now = float(step @ change)
    after = Q - np.outer(known, known) / before + np.outer(change, change) / now
    return after if (np.diag(after) > 0.0).all() else Q


def root(falling: Callable[[float], float], start: float, most: float = np.inf) -> float:
    """The s in [0, most] where a non-increasing function, positive at 0, reaches zero; `most` where it does not."""
    from scipy.optimize import brentq

    low, high = 0.0, start
    while falling(high) > 0.0:
        if high >= most:
            return most
        low, high = high, min(8.0 * high, most)
        if high > 1e300:
            raise RuntimeError("the multiplier of a proximal step is not bounded")
    return float(brentq(falling, low, high, xtol=1e-300, rtol=8.9e-16, maxiter=200, disp=False))
