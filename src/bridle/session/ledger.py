"""Certificates: what a run proves about itself, from what was observed alone. They need no horizon, no Lipschitz constant and no policy.

Costs are convex, so an action u has  regret(u) = sum f_s(x_s) - f_s(u) <= sum <grad f_s, x_s - u> = c - <a, u>,  with c and a two running
sums. A feasible u is also in the halfspace of every violated round, so it is in their sum <A, u> <= b and in each one that was kept.
Adding multiples of these,

    regret(u) <= min over l >= 0 of  c + l b - min over the domain of <a + l A, .>     for every feasible u at once,

a convex function of one number, and lower still with the kept halfspaces, whose weights a linear program finds. Every choice of weights is
valid, so nothing has to be solved well; rounding is allowed for (`slack`).

>>> import bridle
>>> x, df, g, dg = np.zeros(2), np.array([1.0, 0.0]), np.array([0.5]), np.array([[-1.0, 0.0]])
>>> ledger = Ledger(bridle.Ball(2), dim=2)
>>> ledger.take(bridle.Feedback(x, 0.0, df, g, dg), 1)
>>> round(ledger.settled().regret()[0], 6)  # a feasible action has u_1 >= 1/2
-0.5
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np

from bridle import records
from bridle.core import Bound, Feedback
from bridle.domains.closed_form import EPS
from bridle.session.batch_sums import BATCH, Counted, Found, Frame, Limits, Sums, length, nothing, parts, read, width
from bridle.session.feasibility import FLOOR, NEAR, TOLERANCE, TOUCHING, Cuts, Place, examine, lower, minimal, place, settle

LEVELS = tuple(10.0**e for e in range(-6, 4))
"""Violations above each of these are counted, unless the caller names others."""

SORT = 8192
"""Every so many rounds, and at powers of four before, it is found out which of the halfspaces kept the bound on regret rests on."""

PATIENCE = 64
"""So many rounds are passed over, unless they are violated, where those nearly violated bring nothing new."""

FAILURES = (ArithmeticError, RuntimeError, ValueError, np.linalg.LinAlgError)
"""What a solver, the domain's or this library's, may come to grief with: that costs a proof, never a round."""


def slack(where: Place, sums: Sums) -> float:
    """What to allow for rounding, relative to the sum of the sizes of all that was added up."""
    return where.tolerance + 4.0 * EPS * (sums.rounds + len(sums.a))


def regret_bound(where: Place, sums: Sums, limits: Limits | None, normals: np.ndarray, levels: np.ndarray) -> float:
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


def _along(where: Place, a: np.ndarray, base: float, normal: np.ndarray, level: float) -> float:
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


class Parked(NamedTuple):
    """Halfspaces of a batch, as `Found` has them, and their rounds."""

    lines: np.ndarray
    rounds: np.ndarray


class Ledger:
    """The certificates' own memory of a run: the sums, the halfspaces kept, an action that meets them, or the proof that there is none."""

    def __init__(self, domain: Any, dim: int, levels: Sequence[float] = LEVELS, tolerance: float = TOLERANCE) -> None:
        self.levels, self.tolerance = tuple(levels), tolerance
        self._counted = nothing(dim, len(self.levels))
        self.cuts = Cuts(dim)
        self.place = place(domain, dim, tolerance)
        self.since = 0  # rounds before the first one in the sums
        self.idle, self.patience = 0, 1  # for how many rounds to pass over those nearly violated, and for how many the next time
        self.witness = self.place.middle.copy() if self.place.known else None  # has met all halfspaces when they were last looked at,
        self.sure = True  # unless none that does was found then
        self.conflict: Conflict | None = None
        self.rows, self.numbers, self.open = np.zeros((0, 0)), np.zeros(0, dtype=int), 0  # the batch, its rounds, and how many there are
        self.k = 0  # how many constraints those rounds have
        self.columns: tuple[np.ndarray, ...] | None = None  # the parts of the batch's rows
        self.parked: list[Parked] = []  # halfspaces that wait to be kept,
        self.waiting = 0  # and how many
        self.reader: Any = None  # reads full batches faster than NumPy does (`compiled.Reader`)

    @property
    def counted(self) -> Counted:
        """What was added up of all observed rounds but those of the open batch."""
        if self.reader is not None and self.reader.ahead:
            self._counted = self.reader.settle()
        return self._counted

    @property
    def sums(self) -> Sums:
        """The sums over all observed rounds but those of the open batch."""
        return self.counted.sums

    @property
    def limits(self) -> Limits:
        """The sums over the violated ones among them."""
        return self.counted.limits

    @property
    def largest(self) -> float:
        """The largest size of a constraint value among them."""
        return float(self.counted.largest)

    def take(self, feedback: Feedback, t: int) -> None:
        """Take in what was observed of round t."""
        if len(feedback.g) != self.k or self.columns is None:
            self.begin(len(feedback.g))
        assert self.columns is not None
        (x, df, g, dg), at = self.columns, self.open
        x[at], df[at], g[at], dg[at], self.numbers[at] = feedback.x, feedback.df, feedback.g, feedback.dg, t
        self.open = at + 1
        if self.open == len(self.rows):
            self.close()

    def begin(self, k: int, rows: np.ndarray | None = None) -> None:
        """Begin a batch of rounds with k constraints, in `rows` where they are given; an open batch of as many goes on there."""
        if k != self.k:
            self.close()
        dim = len(self.place.middle)
        rows = np.empty((length(dim, k), width(dim, k))) if rows is None else rows
        numbers = np.zeros(len(rows), dtype=int)
        if self.open:
            rows[: self.open], numbers[: self.open] = self.rows[: self.open], self.numbers[: self.open]
        self.k, self.rows, self.numbers, self.columns = k, rows, numbers, parts(rows, dim)

    def close(self) -> None:
        """Read the open batch."""
        n = self.open
        if not n:
            return
        rows = self.rows[:n]
        found = self._read(rows)
        self.idle, self.open = self.idle - n, 0
        rounds, places = found.chosen.nonzero()
        if len(rounds):
            self.parked.append(Parked(found.lines[rounds, places], self.numbers[rounds]))
            self.waiting += len(rounds)
            # There is no hurry while the witness meets them all: then nothing contradicts anything.
            ruled = bool(found.ruled) or not self.sure
            if ruled or self.waiting >= BATCH:
                self._unpark(ruled)
        for i in np.flatnonzero(found.alone).tolist() if found.proof and self.conflict is None else ():
            _, _, values, gradients = parts(rows[i : i + 1], len(self.place.middle))
            self.conflict = self.conflict or _beyond(self.place, float(found.scales[i]), values[0], gradients[0], int(self.numbers[i]))

    def _unpark(self, ruled: bool) -> None:
        """Keep the halfspaces that wait to be kept; `ruled` says that one of them may rule the witness out."""
        if not self.parked:
            return
        lines, rounds = self.parked[0] if len(self.parked) == 1 else map(np.concatenate, zip(*self.parked, strict=True))
        self.parked, self.waiting, fresh = [], 0, self.cuts.fresh
        sources = list(zip(rounds.tolist(), lines[:, -2].astype(int).tolist(), strict=True))
        new = self.cuts.extend(lines[:, :-3], lines[:, -3], sources)
        if not ruled:
            self.cuts.fresh = fresh
        nearly = lines[:, -1] == 0.0
        if nearly.any():  # perhaps round after round: look less often while nothing new comes of it
            self.patience = 1 if new[nearly].any() else min(self.patience << int(nearly.sum()), PATIENCE)
            self.idle = self.patience

    @property
    def stirred(self) -> bool:
        """Whether there is something to look at: halfspaces that may rule out every action, or the proof that they do."""
        return self.cuts.fresh > 0 or self.conflict is not None

    @property
    def near(self) -> float:
        """How far outside of a halfspace the decision must be for it to be kept; below 0 where it may be inside."""
        return (NEAR if self.idle > 0 else -TOUCHING) * self.place.diameter

    def frame(self) -> Frame:
        """What the next batch is read with."""
        where = self.place
        witness = np.full(len(where.middle), np.nan) if self.witness is None else self.witness  # nothing is ever beyond NaN
        return Frame(where._replace(domain=None, box=None), np.array(self.levels), witness, self.near)

    def _read(self, rows: np.ndarray) -> Found:
        """Count the rounds of a batch in, and tell what is found in them."""
        found: Found | None = None if self.reader is None else self.reader(rows, self.near, self.witness, self._counted)
        if found is None:
            with np.errstate(all="ignore"):
                counted, found = read(self.frame(), self.counted, rows)
            self._counted = records.transform(_plain, counted)
        return found

    def settled(self) -> Ledger:
        """The same with every round read and every halfspace kept; this one stays as it is, so that asking changes nothing."""
        if not self.open and not self.parked:
            return self
        other = copy(self)
        other.cuts, other.parked = self.cuts.copy(), self.parked.copy()
        other.close()
        other._unpark(False)
        return other

    def glance(self) -> None:
        """See whether an action that meets all halfspaces is near at hand."""
        if self.cuts.fresh and self.conflict is None and self.place.known and self.witness is not None:
            self._unpark(False)  # what waits has been met by the old witness alone
            normals, levels = self.cuts.lines
            with suppress(*FAILURES):
                found = settle(self.place, normals, levels - normals.dot(self.place.middle), self.witness, sweeps=10)
                if found is not None:
                    self.witness, self.sure, self.cuts.fresh = found, True, 0

    def look(self, t: int, now: int) -> Conflict | None:
        """Look for a contradiction among the halfspaces after t observed rounds, in round `now`."""
        self.close()
        if self.place.known and (self.cuts.sources or self.parked):
            with suppress(*FAILURES):
                if t % SORT == 0 or (t & (t - 1) == 0 and t.bit_length() % 2):
                    self._unpark(False)
                    self._sort()
                if self.conflict is None and self.cuts.fresh:
                    self._search(now)
        return self.conflict

    def _search(self, now: int) -> None:
        self._unpark(False)
        self.place = where = self.place.boxed()
        normals, levels = self.cuts.lines
        levels = levels - normals.dot(where.middle)
        found = examine(where, normals, levels, self.witness)
        self.cuts.fresh, self.sure = 0, found.witness is not None
        if found.weights.any():
            self.cuts.tight = self.cuts.heaviest(found.weights)
        if found.witness is not None:
            self.witness = found.witness
        if found.depth > 0.0:
            which, weights, margin = minimal(where, normals, levels, found.weights)
            blamed = sorted((*self.cuts.sources[i], float(weight)) for i, weight in zip(which.tolist(), weights, strict=True))
            rounds, kinds, shares = zip(*blamed, strict=True)
            self.conflict = Conflict(rounds, kinds, shares, margin, now)
        elif self.limits.weight > 0.0 and (margin := self._depth_of_sum()) > 0.0:
            self.conflict = Conflict((), (), (), margin, now)
        if self.conflict is not None:
            self.witness = None

    def _sort(self) -> None:
        """Find out which halfspaces the bound on regret rests on, so that they are kept."""
        if self.sums.a.any():
            normals, levels = self.cuts.lines
            _, weights = lower(self.place, self.sums.a, normals, levels - normals.dot(self.place.middle), programs=0)
            if weights.any():
                self.cuts.useful = self.cuts.heaviest(weights)

    def _depth_of_sum(self) -> float:
        """The same of all violated rounds together, those no longer kept too; which of them contradict each other cannot be told."""
        where, limits = self.place, self.limits
        allowance = slack(where, self.sums) * (limits.weight * where.reach + limits.sizes)
        return (where.least(limits.A) - (limits.b - float(limits.A.dot(where.middle))) - allowance) / limits.weight

    def met(self) -> np.ndarray | None:
        """An action that meets all the halfspaces kept, if one is known."""
        normals, levels = self.cuts.lines
        if self.witness is None or self.conflict is not None or not len(levels):
            return None
        over = normals.dot(self.witness) - levels
        return self.witness.copy() if over.max() <= 2.0 * NEAR * self.place.diameter else None

    def above(self) -> tuple[tuple[float, int], ...]:
        """How many rounds had a violation above each level."""
        return tuple((level, int(self.counted.between[i + 1 :].sum())) for i, level in enumerate(self.levels))

    def regret(self, *, apart: str = "") -> tuple[float | None, float | None, str]:
        """Upper bounds on the regret against every feasible action and against every action, and the reason where there is none.

        `apart` says why the constraints seen need not all hold for one action; then they are left out.
        """
        if not self.place.known:
            return None, None, "the domain does not say how low a linear function gets on it (linear_min)"
        every = inf
        with np.errstate(over="ignore", invalid="ignore"), suppress(*FAILURES):
            every = regret_bound(self.place, self.sums, None, *self.cuts.lines)
            if self.conflict is None and not apart and isfinite(every):
                self.place = self.place.boxed()
                return regret_bound(self.place, self.sums, self.limits, *self.cuts.lines), every, ""
        if not isfinite(every):
            return None, None, "the domain's linear_min fails, or the numbers observed are too large to be added up"
        if apart:
            return None, every, apart
        if self.conflict is not None:
            return None, every, "no action satisfies every constraint, so there is none to compare with"
        return every, every, ""  # the domain fails now and then: the constraints are left out

    def behind(self) -> float:
        """The regret against the middle of the domain, by the linearised costs; `gain` is at least minus this."""
        return self.sums.c - float(self.sums.a.dot(self.place.middle))

    def gain(self) -> float:
        """The most that any action loses against what was played, by the linearised costs: its regret is at least minus this."""
        if self.place.known:
            with suppress(*FAILURES):
                least = self.behind() + self.place.least(-self.sums.a)
                return slack(self.place, self.sums) * self.sums.lengths * self.place.reach - least
        return inf

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: what was compiled stays behind."""
        return {**vars(self), "_counted": self.counted, "reader": None, "columns": None}

    def saved(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Everything, as arrays and as facts for the header of a file; `restore` takes both back."""
        arrays = {**records.leaves((self.sums, self.limits)), **{f"cuts.{name}": value for name, value in self.cuts.arrays().items()}}
        if self.open:
            arrays |= {"open.rows": self.rows[: self.open], "open.numbers": self.numbers[: self.open].astype(float)}
        if self.parked:
            arrays |= {
                f"parked.{name}": np.concatenate(part) for name, part in zip(Parked._fields, zip(*self.parked, strict=True), strict=True)
            }
        if self.witness is not None:
            arrays["witness"] = self.witness
        return arrays, {
            "levels": self.levels,
            "tolerance": self.tolerance,
            "since": self.since,
            "largest": self.largest,
            "idle": [self.idle, self.patience],
            "sure": self.sure,
            "between": [int(count) for count in self.counted.between],
            "conflict": self.conflict and self.conflict._asdict(),
        }

    def restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        """Be as the ledger was that gave these."""
        kept = (self.sums, self.limits)
        for name, leaf in records.leaves(kept).items():
            if np.shape(leaf) != arrays[name].shape:
                raise ValueError(name)
        values = iter([arrays[name] for name in records.leaves(kept)])
        sums, limits = records.transform(lambda leaf: float(next(values)) if np.ndim(leaf) == 0 else next(values), kept)
        between = np.array([int(count) for count in facts["between"]], dtype=float)
        if between.shape != self.counted.between.shape:
            raise ValueError("between")
        # Files of schema 2 did not have the largest value at first.
        self._counted = Counted(sums, limits, between, float(facts.get("largest", 0.0)))
        self.cuts.restore({name.removeprefix("cuts."): value for name, value in arrays.items() if name.startswith("cuts.")})
        self.witness, self.since = arrays.get("witness"), int(facts["since"])
        self.idle, self.patience = map(int, facts["idle"])
        self.sure = bool(facts.get("sure", False))  # files of schema 2 did not tell at first
        told = facts["conflict"]
        if told is not None:
            rounds, kinds = tuple(map(int, told["rounds"])), tuple(map(int, told["constraints"]))
            self.conflict = Conflict(rounds, kinds, tuple(map(float, told["weights"])), float(told["margin"]), int(told["found"]))
        if "parked.lines" in arrays:
            lines, numbers = arrays["parked.lines"], arrays["parked.rounds"].astype(int)
            if lines.shape != (len(numbers), len(sums.a) + 3):
                raise ValueError("parked")
            self.parked, self.waiting = [Parked(lines, numbers)], len(lines)
        if "open.rows" in arrays:
            rows, numbers = arrays["open.rows"], arrays["open.numbers"]
            self.begin((rows.shape[1] - 2 * len(sums.a)) // (len(sums.a) + 1))
            if len(rows) != len(numbers) or len(rows) >= len(self.rows) or self.k < 1:
                raise ValueError("open")
            self.rows[: len(rows)], self.numbers[: len(rows)], self.open = rows, numbers.astype(int), len(rows)


def _beyond(where: Place, scale: float, values: np.ndarray, gradients: np.ndarray, t: int) -> Conflict | None:
    """The proof that one constraint gives by itself: farther away than the domain is wide, or above zero without a slope."""
    for i, (value, row) in enumerate(zip(values.tolist(), gradients, strict=True)):
        slope, least = sqrt(float(row.dot(row))), value - FLOOR * where.tolerance * scale
        if slope > 0.0 and least > slope * where.diameter * (1.0 + where.tolerance):
            return Conflict((t,), (i,), (1.0,), least / slope - where.diameter, t)
        if slope == 0.0 and value > where.tolerance * max(1.0, scale):
            return Conflict((t,), (i,), (1.0,), inf, t)
    return None


def _plain(leaf: Any) -> Any:
    """Numbers without axes as floats."""
    return leaf if leaf.__class__ is np.ndarray else float(leaf)


class Charge(NamedTuple):
    """What rounds that were dropped may add: each cost at most G D to regret, each constraint at most G D to violation.

    `declared` says that G is what the policy was told; otherwise it is the longest gradient seen, and nobody knows those not seen.
    """

    regret: float = 0.0
    ccv: float = 0.0
    declared: bool = True


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
    witness: np.ndarray | None
    pending: int
    dropped: tuple[int, int]
    charge: Charge
    bound: Bound
    alarms: tuple[tuple[str, int], ...]
    price: np.ndarray | None = None
    balance: np.ndarray | None = None
