"""What a run proves about itself, from what was observed alone: no horizon, no Lipschitz constant and no policy is needed.

Costs are convex, so an action u has  regret(u) = sum f_s(x_s) - f_s(u) <= sum <grad f_s, x_s - u> = c - <a, u>,  with c and a two running
sums. A feasible u is also in the halfspace of every violated round, so it is in their sum <A, u> <= b and in each one that was kept.
Adding multiples of these,

    regret(u) <= min over l >= 0 of  c + l b - min over the domain of <a + l A, .>     for every feasible u at once,

a convex function of one number, and lower still with the kept halfspaces, whose weights a linear program finds. Every choice of weights is
valid, so nothing has to be solved well; rounding is allowed for (`slack`).

A cost that was said to have modulus mu is above its tangent by mu/2 |x_s - u|^2, so the sum Q(u) of these may be subtracted. Q is a
quadratic in u, known from three more sums, and above its own tangent at any z: that gives the line above again, with another a and
another c (`Tangent`), as low as it gets where z is the worst u itself.

If nothing is feasible, every statement about feasible actions is true, and the minimum above has no end. But then weights that bring it
below what any action of the domain can have lost prove just that (`margin`): such a bound is never given, the proof is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np

from bridle.core import Bound, Feedback
from bridle.domains.closed_form import EPS
from bridle.ops import Array
from bridle.session.certificates.batches import CurvedSums, Sums, ViolatedSums
from bridle.session.certificates.feasibility import FLOOR, MOST_DIMENSIONS, CenteredDomain, lower, nearest_on
from bridle.session.rates import RateLimit, limit_names
from bridle.showing import count, later, number

SWEEPS = 40
"""At most this many rounds of projections, on the halfspaces and on the domain, for the action that a curved bound is read at."""


@dataclass(frozen=True)
class Certificate:
    """What a session proves about itself, as data.

    `regret` and `regret_any` rest on values and gradients being right, on convexity, and on the modulus of a round's cost where one was
    given with the round. What the policy was told is not used: a wrong setting makes neither wrong.

    Parameters
    ----------
    rounds : int
        How many rounds were observed.
    cost : float
        The total cost.
    ccv : float
        The cumulative violation of the constraint that was violated most.
    regret : float or None
        An upper bound on the regret against every feasible action, from the observations alone, in units of cost; None with the reason in
        `why`.
    regret_any : float or None
        The same against every action of the domain.
    regret_algorithm : float or None
        The policy's own proof with what was observed; None where the run contradicts it.
    why : str
        Why a bound is missing.
    violated : int
        How many rounds had a violation beyond rounding.
    above : tuple of (float, int)
        How many rounds had a violation above each level.
    squared : float
        The sum of squared distances to the violated constraints, in squared units of action.
    squared_bound : float or None
        The most of it that the policy's proof allows; None where that is less than there are.
    conflict : Conflict or None
        The proof that no action is feasible.
    witness : array of shape (d,) or None
        An action that satisfies the constraints kept, if one is known.
    pending : int
        How many rounds wait for feedback.
    dropped : int
        How many rounds were forgotten or dropped: their feedback never came.
    charge : Charge
        What these may add to regret and violation.
    bound : Bound
        The policy's theorem for this run, with the charge added.
    alarms : tuple of (str, int)
        Which warnings were given, and in which round.
    price : array of shape (k,), optional
        What one more unit of each limit seems to be worth in cost, where the policy keeps such prices; an estimate.
    balance : array of shape (k,), optional
        The sum of each constraint's values, where prices are kept.
    compared : str
        What the run is compared with: an action, or a fixed mixture or function where rounds are played through maps.
    rules : tuple of str
        The names of the rules, or memories, whose mixtures are played.
    weights : array, optional
        What each of them is worth.
    moved : Moved, optional
        What was charged where something else was played than was decided. It is in all other numbers but `squared`, which is about
        decisions.
    rates : tuple of RateLimit
        The limits on how often.
    names : tuple of str
        What the limits are called, where the session was told.
    violations : array of shape (k,), optional
        The cumulative violation of each constraint.
    known : bool
        Whether limits were known before acting in some round: feasible is then what keeps these too.

    Examples
    --------
    >>> import bridle
    >>> session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
    >>> session.observe(f=0.3, df=[1.0, 0.0], g=0.1, dg=[0.0, 1.0])
    >>> proved = session.certificate()
    >>> proved.rounds, proved.violated, round(proved.regret, 3)
    (1, 1, 0.995)
    """

    rounds: int
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
    dropped: int
    charge: Charge
    bound: Bound
    alarms: tuple[tuple[str, int], ...]
    price: Array | None = None
    balance: Array | None = None
    compared: str = "action"
    rules: tuple[str, ...] = ()
    weights: Array | None = None
    moved: Moved | None = None
    rates: tuple[RateLimit, ...] = ()
    names: tuple[str, ...] = ()
    violations: Array | None = None
    known: bool = False

    def __repr__(self) -> str:
        waiting = f", {self.pending:,} pending" if self.pending else ""
        any_action = "" if self.regret_any is None else f", {number(self.regret_any)} against every action"
        proved = f"at most {number(self.regret)} against every feasible action{any_action}" if self.regret is not None else self.why
        feasible = "no contradiction among the constraints was found" if self.conflict is None else "no action is feasible"
        alarms = f"; alarms: {', '.join(kind for kind, _ in self.alarms)}" if self.alarms else ""
        return "\n".join([
            f"Certificate: {count(self.rounds, 'round')}, cost {number(self.cost)}, CCV {number(self.ccv)}{waiting}",
            f"  regret: {proved}",
            f"  violated in {count(self.violated, 'round')}; {feasible}{alarms}",
        ])  # fmt: skip

    def _repr_html_(self) -> str:
        return str(later("bridle.session.pictures").certificate_card(self))

    def json(self) -> str:
        """All of it as JSON text: every field under its name, numbers that are not finite as null.

        Returns ``limits`` in it has one object for each limit: its name, its violation, and its balance and price
        (null where none is kept).

        Examples
        --------
        >>> import json, bridle
        >>> session = bridle.Session(bridle.policy("soft", bridle.Ball(2)), names=["latency", "spend"])
        >>> session.observe(f=1.0, df=[1.0, 0.0], g=[0.5, -1.0], dg=[[1.0, 0.0], [0.0, 1.0]])
        >>> facts = json.loads(session.certificate().json())
        >>> facts["cost"], [(limit["name"], limit["violation"]) for limit in facts["limits"]]
        (1.0, [('latency', 0.5), ('spend', 0.0)])
        """
        facts = {field.name: _json_facts(getattr(self, field.name)) for field in fields(self)}
        facts["above"] = [{"level": level, "rounds": count} for level, count in self.above]
        facts["alarms"] = [{"kind": kind, "round": t} for kind, t in self.alarms]
        figures = {"violation": self.violations, "balance": self.balance, "price": self.price}
        size = max((len(each) for each in figures.values() if each is not None), default=0)
        facts["limits"] = [
            {"name": name} | {key: None if each is None or i >= len(each) else _json_facts(each[i]) for key, each in figures.items()}
            for i, name in enumerate(limit_names(size, self.names))
        ]
        return json.dumps(facts, allow_nan=False)


def _json_facts(value: object) -> object:
    """A value as JSON can hold it: a record by its fields, an array as a list, a number that is not finite as null."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: _json_facts(each) for key, each in value._asdict().items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _json_facts(getattr(value, field.name)) for field in fields(value)}
    return [_json_facts(each) for each in value] if isinstance(value, (list, tuple)) else value


class Conflict(NamedTuple):
    """A proof that no action of the domain satisfies all the constraints of these rounds.

    Constraint ``constraints[i]`` of round ``rounds[i]``, weighed by ``weights[i]``; every action violates one of them by at least `margin`,
    as a distance. `found` is the round in which it was found; in the rounds after that it is made smaller, as long as some of its rounds
    can be left out. Without rounds it is about all violated ones together: which of them contradict each other is not known.
    """

    rounds: tuple[int, ...]
    constraints: tuple[int, ...]
    weights: tuple[float, ...]
    margin: float
    found: int

    def culprits(self, names: Sequence[str] = ()) -> str:
        """What contradicts itself, in words, where the rounds are known; `names` are the limits' own."""
        if names:
            each = [
                f"{names[i] if i < len(names) else f'limit {i}'} of round {t}" for t, i in zip(self.rounds, self.constraints, strict=True)
            ]
            return ", ".join(each) + (" together" if len(each) > 1 else "")
        if len(self.rounds) == 1:
            return f"the constraint of round {self.rounds[0]}"
        return f"the constraints of rounds {', '.join(map(str, self.rounds))}"


class Charge(NamedTuple):
    """What rounds that were dropped may add: each cost at most G D to regret, each constraint at most G D to violation.

    `declared` says that G is what the policy was told; otherwise it is the longest gradient seen, and nobody knows those not seen.
    """

    regret: float = 0.0
    ccv: float = 0.0
    declared: bool = True


class Moved(NamedTuple):
    """What it cost to play something else than was decided, in all: in how many observations, and what that added.

    `cost` is the sum of <grad f, played - decided>: at least what it cost more. `hard` and `signed` are what it added to the violation of
    each constraint and to the sum of its values; `violated` and `above` what it added to the numbers of violated rounds.
    """

    rounds: int = 0
    cost: float = 0.0
    hard: Array = np.zeros(1)
    signed: Array = np.zeros(1)
    violated: int = 0
    above: Array = np.zeros(0)

    def after(self, played: Feedback, read: Feedback, levels: Array, floor: float) -> Moved:
        """With one more observation: at what was played, and as it was read at the decision. Values up to `floor` are rounding."""
        k = max(len(self.hard), len(played.g))
        hard = np.maximum(played.g, 0.0) - np.maximum(read.g, 0.0)
        worst, worst_read = float(played.g.max()), float(read.g.max())
        return Moved(
            self.rounds + 1,
            self.cost + float(played.f) - float(read.f),
            padded(self.hard, k) + padded(hard, k),
            padded(self.signed, k) + padded(played.g - read.g, k),
            self.violated + (worst > floor) - (worst_read > floor),
            padded(self.above, len(levels)) + (worst > levels) - 1.0 * (worst_read > levels),
        )


UNMOVED = Moved()


def padded(values: Array, length: int) -> Array:
    """With zeros for the constraints that are not there."""
    return values if len(values) >= length else np.pad(values, (0, length - len(values)))


def slack(where: CenteredDomain, sums: Sums) -> float:
    """What to allow for rounding, relative to the sum of the sizes of all that was added up."""
    return where.tolerance + 4.0 * EPS * (sums.rounds + len(sums.a))


class Tangent(NamedTuple):
    """What the costs say of every action u:  regret(u) <= base - <a, u - middle>."""

    base: float
    a: Array


class RegretBound(NamedTuple):
    """An upper bound on the regret against every action that meets some halfspaces, and how far the weights that give it show every action
    of the domain to be outside of one of them: above 0 there is no such action, and the bound says nothing.
    """

    regret: float
    margin: float


def tangent(where: CenteredDomain, sums: Sums) -> Tangent:
    """What the sums say of every action."""
    return Tangent(sums.c - float(sums.a.dot(where.middle)) + slack(where, sums) * sums.lengths * where.reach, sums.a)


def curved_tangent(where: CenteredDomain, sums: Sums, curved: CurvedSums, z: Array) -> Tangent:
    """What the sums and the moduli say of every action, read off the quadratic's tangent at middle + z; any z will do."""
    M, (base, a) = curved.modulus, tangent(where, sums)
    rounding = 2.0 * slack(where, sums) * M * where.reach * where.diameter
    return Tangent(base + 0.5 * M * float(z.dot(z)) - curved.squares + rounding, a - curved.pull + M * z)


def least_regret(where: CenteredDomain, costs: Tangent) -> float:
    """The least that the tangent leaves of any action of the domain: no bound below it can be about one."""
    return costs.base + where.least(-costs.a)


def regret_of_any(where: CenteredDomain, sums: Sums, curved: CurvedSums) -> float:
    """An upper bound on the regret against every action of the domain."""
    costs = [tangent(where, sums)]
    if _matters(curved):
        costs.append(curved_tangent(where, sums, curved, _nearest(where, (curved.pull - sums.a) / curved.modulus)))
    return least_of([each.base - where.least(each.a) for each in costs])


def regret_bound(where: CenteredDomain, sums: Sums, curved: CurvedSums, limits: ViolatedSums, normals: Array, levels: Array) -> RegretBound:
    """An upper bound on the regret against every action that meets the halfspaces kept, and the sum of all violated ones."""
    loose = slack(where, sums)
    # The kept halfspaces and, per round, the sum of all violated ones: each let out by what rounding may have taken from it.
    N, b, sizes = normals, levels, np.abs(levels)
    if limits.weight > 0.0:
        N, b, sizes = (
            np.vstack([N, limits.A / limits.weight]),
            np.append(b, limits.b / limits.weight),
            np.append(sizes, limits.sizes / limits.weight),
        )
    b = b - N.dot(where.middle) + loose * (where.reach + sizes)
    summed = limits.weight > 0.0
    found = _bounds(where, tangent(where, sums), N, b, summed)
    if _matters(curved):
        goal = (curved.pull - sums.a) / curved.modulus
        # In many dimensions no programs are solved: the sum alone.
        some = slice(None) if len(goal) <= MOST_DIMENSIONS else slice(len(b) - summed, None)
        z, weights = _nearest_feasible(where, goal, N[some], b[some])
        costs = curved_tangent(where, sums, curved, z)
        push = np.zeros(len(b))
        push[some] = curved.modulus * weights
        found += [_bound(where, costs, N, b, push), *_bounds(where, costs, N, b, summed)]
    margin = max((each.margin for each in found if isfinite(each.regret)), default=0.0)
    return RegretBound(least_of([each.regret for each in found]), margin)


def least_of(bounds: list[float]) -> float:
    """The least of the finite numbers among several; infinite where there is none."""
    return min((each for each in bounds if isfinite(each)), default=inf)


def _bounds(where: CenteredDomain, costs: Tangent, N: Array, b: Array, summed: bool) -> list[RegretBound]:
    """Bounds with different weights of the halfspaces <N, u - middle> <= b, of which the last is the sum if `summed`."""
    none = np.zeros(len(b))
    found = [_bound(where, costs, N, b, none)]
    if summed:
        last = none.copy()
        last[-1] = _along(where, costs, N[-1], float(b[-1]))
        found.append(_bound(where, costs, N, b, last))
    if len(b) and costs.a.any():
        found.append(_bound(where, costs, N, b, lower(where, costs.a, N, b)[1]))
    return found


def _bound(where: CenteredDomain, costs: Tangent, N: Array, b: Array, weights: Array) -> RegretBound:
    """The bound that these weights of the halfspaces give, and what they prove of the halfspaces."""
    push, level, total = weights.dot(N), float(weights.dot(b)), float(weights.sum())
    regret = costs.base + level - where.least(costs.a + push)
    margin = (where.least(push) - level) / total if total > 0.0 else 0.0
    # Raising a bound does no harm: below the least there is of any action it can only be by rounding, or by the margin.
    return RegretBound(max(regret, least_regret(where, costs)), margin)


def _along(where: CenteredDomain, costs: Tangent, normal: Array, level: float) -> float:
    """The l >= 0 with the least  l level - least(a + l normal), to a part in a thousand: a convex function of l."""

    def value(l: float) -> float:
        return l * level - where.least(costs.a + l * normal)

    unit = sqrt(float(costs.a.dot(costs.a))) or 1.0
    at, low, best = 1e-3 * unit, 0.0, value(1e-3 * unit)
    while at < 1e6 * unit and (ahead := value(2.0 * at)) < best:
        low, at, best = at, 2.0 * at, ahead
    high = 2.0 * at
    for _ in range(16):
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, right) if value(left) <= value(right) else (left, high)
    return 0.5 * (low + high)


def _matters(curved: CurvedSums) -> bool:
    """Whether moduli are known, and can be calculated with."""
    return curved.modulus > 0.0 and isfinite(curved.modulus) and isfinite(curved.squares)


def _nearest(where: CenteredDomain, goal: Array) -> Array:
    """The action nearest to middle + goal, from the middle."""
    assert where.domain is not None
    nearest: Array = np.asarray(where.domain.project(where.middle + goal), dtype=float) - where.middle
    return nearest


def _nearest_feasible(where: CenteredDomain, goal: Array, N: Array, b: Array) -> tuple[Array, Array]:
    """The action that meets the halfspaces <N, u - middle> <= b and is nearest to middle + goal, from the middle; and their multipliers.

    Dykstra's algorithm between the domain and the halfspaces; where it is broken off, or finds that they have no action in common, what
    it has serves as well as it can: any point and any weights make a valid bound.
    """
    z, weights = _nearest(where, goal), np.zeros(len(b))
    if not len(b):
        return z, weights
    x, from_halfspaces, from_domain = goal, np.zeros(len(goal)), np.zeros(len(goal))
    for _ in range(SWEEPS):
        aim = x + from_halfspaces
        found = nearest_on(aim, N, b)
        if found is None:
            break
        y, weights = found
        from_halfspaces, aim = aim - y, y + from_domain
        z = x = _nearest(where, aim)
        from_domain = aim - x
        if float(np.abs(x - y).max()) <= 1e-9 * where.diameter:
            break
    return z, weights


def contradiction_alone(where: CenteredDomain, scale: float, values: Array, gradients: Array, t: int) -> Conflict | None:
    """The proof that one constraint gives by itself: farther away than the domain is wide, or above zero without a slope."""
    for i, (value, row) in enumerate(zip(values.tolist(), gradients, strict=True)):
        slope, least = sqrt(float(row.dot(row))), value - FLOOR * where.tolerance * scale
        if slope > 0.0 and least > slope * where.diameter * (1.0 + where.tolerance):
            return Conflict((t,), (i,), (1.0,), least / slope - where.diameter, t)
        if slope == 0.0 and value > where.tolerance * max(1.0, scale):
            return Conflict((t,), (i,), (1.0,), inf, t)
    return None
