"""What a run proves about itself, from what was observed alone: no horizon, no Lipschitz constant and no policy is needed.

Costs are convex, so an action u has  regret(u) = sum f_s(x_s) - f_s(u) <= sum <grad f_s, x_s - u> = c - <a, u>,  with c and a two running
sums. A feasible u is also in the halfspace of every violated round, so it is in their sum <A, u> <= b and in each one that was kept.
Adding multiples of these,

    regret(u) <= min over l >= 0 of  c + l b - min over the domain of <a + l A, .>     for every feasible u at once,

a convex function of one number, and lower still with the kept halfspaces, whose weights a linear program finds. Every choice of weights is
valid, so nothing has to be solved well; rounding is allowed for (`slack`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np

from bridle.core import Bound
from bridle.domains.closed_form import EPS
from bridle.ops import Array
from bridle.session.batch_sums import Sums, ViolatedSums
from bridle.session.feasibility import FLOOR, CenteredDomain, lower


@dataclass(frozen=True)
class Certificate:
    """What a session proves about itself, as data.

    `rounds` and `since`: how many rounds were observed, and how many of them before certificates were kept (those are not in it).
    `regret`: an upper bound on the regret against every feasible action, from the observations alone; None with the reason in `why`.
    `regret_any`: the same against every action of the domain. `regret_algorithm`: the policy's own proof with what was observed.
    `violated` and `above`: how many rounds had a violation beyond rounding, and one above each level. `squared`: the sum of squared
    distances to the violated constraints, and `squared_bound` the most the policy's proof allows. `conflict`: the proof that no action is
    feasible; `witness`: an action that satisfies the constraints kept, if one is known. `pending`: rounds whose feedback is still to
    come; `dropped`: costs and constraints that never will, and `charge` what they may add. `bound`: the policy's theorem for this run,
    with the charge added. `alarms`: which warnings were given, and in which round. `price`: what one more unit of each limit seems to be
    worth in cost, where the policy keeps such prices (an estimate); `balance` is the sum of each constraint's values then.
    """

    rounds: int
    since: int
    cost: float
    ccv: float
    regret: float | None
    regret_any: float | None
    regret_algorithm: float | None
    why: str
    violated: int
    above: tuple[tuple[float, int], ...]
    squared: float
    squared_bound: float | None
    conflict: Conflict | None
    witness: Array | None
    pending: int
    dropped: tuple[int, int]
    charge: Charge
    bound: Bound
    alarms: tuple[tuple[str, int], ...]
    price: Array | None = None
    balance: Array | None = None


class Conflict(NamedTuple):
    """A proof that no action of the domain satisfies all the constraints of these rounds.

    Constraint ``constraints[i]`` of round ``rounds[i]``, weighed by ``weights[i]``; every action violates one of them by at least `margin`,
    as a distance. `found` is the round in which it was found.
    """

    rounds: tuple[int, ...]
    constraints: tuple[int, ...]
    weights: tuple[float, ...]
    margin: float
    found: int


class Charge(NamedTuple):
    """What rounds that were dropped may add: each cost at most G D to regret, each constraint at most G D to violation.

    `declared` says that G is what the policy was told; otherwise it is the longest gradient seen, and nobody knows those not seen.
    """

    regret: float = 0.0
    ccv: float = 0.0
    declared: bool = True


def slack(where: CenteredDomain, sums: Sums) -> float:
    """What to allow for rounding, relative to the sum of the sizes of all that was added up."""
    return where.tolerance + 4.0 * EPS * (sums.rounds + len(sums.a))


def regret_bound(where: CenteredDomain, sums: Sums, limits: ViolatedSums | None, normals: Array, levels: Array) -> float:
    """An upper bound on the regret against every action that meets the halfspaces; without `limits` against every action there is."""
    loose = slack(where, sums)
    base = sums.c - float(sums.a.dot(where.middle)) + loose * sums.lengths * where.reach
    every = base - where.least(sums.a)
    if limits is None or not isfinite(every):
        return every
    # The kept halfspaces and, per round, the sum of all violated ones: each let out by what rounding may have taken from it.
    N, b, sizes = normals, levels, np.abs(levels)
    if limits.weight > 0.0:
        N, b, sizes = (
            np.vstack([N, limits.A / limits.weight]),
            np.append(b, limits.b / limits.weight),
            np.append(sizes, limits.sizes / limits.weight),
        )
    b = b - N.dot(where.middle) + loose * (where.reach + sizes)
    best = every if limits.weight == 0.0 else min(every, _along(where, sums.a, base, N[-1], float(b[-1])))
    if len(b) and sums.a.any():
        least, _ = lower(where, sums.a, N, b)
        best = min(best, base - least) if isfinite(least) else best
    return best


def _along(where: CenteredDomain, a: Array, base: float, normal: Array, level: float) -> float:
    """The minimum over l >= 0 of  base + l level - least(a + l normal), to a part in a thousand: a convex function of l."""

    def value(l: float) -> float:
        return base + l * level - where.least(a + l * normal)

    unit = sqrt(float(a.dot(a))) or 1.0
    low, middle, best = 0.0, 1e-3 * unit, value(1e-3 * unit)
    high = middle
    while high < 1e6 * unit and (ahead := value(2.0 * high)) < best:
        low, middle, high, best = middle, 2.0 * high, 2.0 * high, ahead
    high = 2.0 * high
    for _ in range(40):
        if high - low <= 1e-3 * high:
            break
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        at_left, at_right = value(left), value(right)
        best = min(best, at_left, at_right)
        low, high = (low, right) if at_left <= at_right else (left, high)
    return best


def contradiction_alone(where: CenteredDomain, scale: float, values: Array, gradients: Array, t: int) -> Conflict | None:
    """The proof that one constraint gives by itself: farther away than the domain is wide, or above zero without a slope."""
    for i, (value, row) in enumerate(zip(values.tolist(), gradients, strict=True)):
        slope, least = sqrt(float(row.dot(row))), value - FLOOR * where.tolerance * scale
        if slope > 0.0 and least > slope * where.diameter * (1.0 + where.tolerance):
            return Conflict((t,), (i,), (1.0,), least / slope - where.diameter, t)
        if slope == 0.0 and value > where.tolerance * max(1.0, scale):
            return Conflict((t,), (i,), (1.0,), inf, t)
    return None
