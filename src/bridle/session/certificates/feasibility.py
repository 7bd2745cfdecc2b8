"""What the halfspaces seen so far prove: that no action satisfies them all, or how low a linear cost can be on those that do.

A convex constraint with g(x) > 0 and gradient n |grad g| at x rules out all actions but the halfspace <n, u> <= <n, x> - g(x) / |grad g|.
For any weights w_i >= 0 an action u that meets every such halfspace (n_i, b_i) has  sum w_i <n_i, u> <= sum w_i b_i,  so

    min over the domain of <sum w_i n_i, u>  >  sum w_i b_i     proves that there is no such u (Farkas), and
    min over the domain of <a + sum w_i n_i, u>  -  sum w_i b_i     is at most <a, u> (weak duality).

Linear programs over a box around the domain find good weights; each answer cuts the box down to the domain (a tangent where the weights
point, and the halfspace between the answer and its projection). What is claimed in the end is only what the two lines above say, with the
domain's own `linear_min` and an allowance for rounding: a program that stops early or is wrong can miss a proof, never invent one.
"""

from __future__ import annotations

import warnings
from math import inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np

from bridle import records
from bridle.backends import least_distance, linear_program
from bridle.core import Domain
from bridle.domains.half_space_cut import sweep
from bridle.domains.polyhedron import PolyhedronSet
from bridle.records import Arrays

TOLERANCE = 1e-9
"""Values of a constraint are taken to be right to this, relative to the sizes of the domain and the gradient, unless told otherwise."""

SOLVED = 1e-7
"""The tolerance at least, where the domain's own `linear_min` calls a solver, which stops at tolerances of its own."""

FLOOR = 1e-3
"""A constraint value below this part of the tolerance, beside the largest seen, is rounding: no violation, and no part of a halfspace."""

MOST_NUMBERS = 400_000
"""How many numbers the halfspaces kept may have in all, 3 MB; 8 of them are kept in any case."""

RECENT, ACTIVE = 60, 30
"""How many of the last halfspaces are kept, and how many of those that mattered to the last contradiction sought and the last bound."""

TOUCHING = 1e-2
"""A halfspace is also worth keeping if the decision is inside by no more than this part of the diameter."""

PRESS = 10.0
"""From how many diameters away a point is projected on the halfspaces to see which of them a linear cost is held by."""

MOST_DIMENSIONS = 500
"""In more dimensions than this no programs are solved: they would hold up a round for seconds."""

SAME_NORMAL = 1.0 - 1e-14
"""Two unit normals with a larger product are one."""

NEAR = 1e-7
"""An action counts as meeting a halfspace if it is outside by no more than this part of the diameter."""


def calls_solver(domain: Domain | None) -> bool:
    """Whether `linear_min` and `project` of this domain solve programs of their own."""
    return any(not getattr(part, "compiled", True) for part in records.nodes(domain))


class CenteredDomain(NamedTuple):
    """A domain, with lengths measured from its middle."""

    domain: Domain | None
    middle: np.ndarray
    diameter: float
    reach: float  # at least the length of every action
    tolerance: float
    box: tuple[tuple[float, float], ...] | None = None  # around the domain, in units of its diameter from its middle

    @property
    def known(self) -> bool:
        """Whether the domain says how low a linear function gets on it."""
        return self.domain is not None

    def boxed(self) -> CenteredDomain:
        """The domain with a box around it that fits, where that is cheap to find."""
        d = len(self.middle)
        if self.box is not None or not self.known or d > MOST_DIMENSIONS or self.diameter == 0.0 or isinstance(self.domain, PolyhedronSet):
            return self
        low = [self.least(v) / self.diameter - TOLERANCE for v in np.eye(d)]
        high = [-self.least(-v) / self.diameter + TOLERANCE for v in np.eye(d)]
        return self._replace(box=tuple(zip(low, high, strict=True)))

    def least(self, v: np.ndarray) -> float:
        """The minimum of <v, u - middle> over the domain."""
        assert self.domain is not None
        return float(np.asarray(self.domain.linear_min(v)).reshape(())) - float(v.dot(self.middle))


def centered(domain: Domain | None, dim: int, tolerance: float = TOLERANCE) -> CenteredDomain:
    """The domain with its measures; without `linear_min` it is known by its diameter alone, if by that."""
    if domain is None or not all(hasattr(domain, name) for name in ("linear_min", "center", "diameter", "project")):
        diameter = inf if domain is None or not hasattr(domain, "diameter") else float(domain.diameter())
        return CenteredDomain(None, np.zeros(dim), diameter, 0.0, tolerance)
    middle, diameter = np.asarray(domain.center(), dtype=float), float(domain.diameter())
    tolerance = max(tolerance, SOLVED) if calls_solver(domain) else tolerance
    return CenteredDomain(domain, middle, diameter, sqrt(float(middle.dot(middle))) + diameter, tolerance)


class KeptHalfspaces:
    """The last violated halfspaces, without repetitions, and those that the last search or the last bound on regret rested on."""

    def __init__(self, dim: int) -> None:
        self.room = min(RECENT + 2 * ACTIVE, max(8, MOST_NUMBERS // dim))
        self.normals, self.levels = np.zeros((self.room, dim)), np.zeros(self.room)
        self.origins = np.zeros((self.room, 2), dtype=int)  # the round of each, and which of its constraints
        self.size = 0  # how many there are
        self.tight: frozenset[int] = frozenset()  # places of those that the last search for a contradiction rested on
        self.useful: frozenset[int] = frozenset()  # places of those that the last bound on regret rested on
        self.next = 0  # the place of the oldest that is in neither set
        self.fresh = 0  # how many were added since the last search

    @property
    def lines(self) -> tuple[np.ndarray, np.ndarray]:
        """The normals and the levels."""
        return self.normals[: self.size], self.levels[: self.size]

    @property
    def sources(self) -> list[tuple[int, int]]:
        """The round of each, and which of its constraints."""
        return [(t, i) for t, i in self.origins[: self.size].tolist()]

    def extend(self, normals: np.ndarray, levels: np.ndarray, sources: np.ndarray) -> np.ndarray:
        """Keep these halfspaces <normal, u> <= level, each in place of the same one if that was further out, else of the oldest that does
        not matter; which of them were new. A source is the round, and which of its constraints.
        """
        size, new = self.size, np.ones(len(levels), dtype=bool)
        along = normals.dot(self.normals[:size].T)
        among = normals.dot(normals.T)
        if not np.count_nonzero(along > SAME_NORMAL) and np.count_nonzero(among > SAME_NORMAL) <= len(levels):
            self._put(normals, levels, sources)
            return new
        if size:
            twins = along.argmax(1)
            new = (along[np.arange(len(levels)), twins] <= SAME_NORMAL) | (levels < self.levels[twins])
        for i in np.flatnonzero(new).tolist():  # the same again within the batch, or in place of one that is kept
            new[i] = self._add(normals[i], float(levels[i]), sources[i])
        return new

    def _put(self, normals: np.ndarray, levels: np.ndarray, sources: np.ndarray) -> None:
        """Keep these, which are all new."""
        size, added = self.size, len(levels)
        self.fresh += added
        more = min(added, self.room - size)
        if more:
            self.normals[size : size + more], self.levels[size : size + more] = normals[:more], levels[:more]
            self.origins[size : size + more] = sources[:more]
            self.size += more
        if more == added:
            return
        replaced = np.ones(self.room, dtype=bool)
        replaced[[*self.tight, *self.useful]] = False
        free = replaced.nonzero()[0]
        left = min(added - more, len(free))
        slots = free[(np.arange(left) + free.searchsorted(self.next)) % len(free)]
        self.next = (int(slots[-1]) + 1) % self.room
        self.normals[slots], self.levels[slots], self.origins[slots] = normals[-left:], levels[-left:], sources[-left:]

    def _add(self, normal: np.ndarray, level: float, source: np.ndarray) -> bool:
        """Keep this one if it is new."""
        if self.size:
            along = self.lines[0].dot(normal)
            twin = int(along.argmax())
            if along[twin] > SAME_NORMAL:
                if self.levels[twin] <= level:
                    return False
                self.normals[twin], self.levels[twin], self.origins[twin] = normal, level, source
                self.fresh += 1
                return True
        self._put(normal[None], np.array([level]), source[None])
        return True

    def shared(self) -> KeptHalfspaces:
        """A store that holds the same: what it does is not seen here."""
        other = object.__new__(type(self))
        other.__dict__ = self.__dict__.copy()
        return other

    def copy(self) -> KeptHalfspaces:
        """A copy that shares nothing."""
        other = self.shared()
        other.normals, other.levels, other.origins = self.normals.copy(), self.levels.copy(), self.origins.copy()
        return other

    def heaviest(self, weights: np.ndarray) -> frozenset[int]:
        """The places of those with the most weight; at most a quarter, so that there is always room for new ones."""
        return frozenset(int(i) for i in np.argsort(-weights, kind="stable")[: self.room // 4] if weights[i] > 0.0)

    def arrays(self) -> Arrays:
        """Everything, as arrays; `restore` takes them back."""
        normals, levels = self.lines
        kept = np.array([[float(i in self.tight), float(i in self.useful)] for i in range(len(levels))]).reshape(-1, 2)
        numbers = np.array([self.next, 0.0, self.fresh])  # in the middle, files once had how many were ever added
        sources = self.origins[: self.size].astype(float)
        return {"normals": normals, "levels": levels, "sources": sources, "kept": kept, "numbers": numbers}

    def restore(self, saved: Arrays) -> None:
        """Be as the store was that gave these."""
        self.size = size = len(saved["levels"])
        self.normals[:size], self.levels[:size], self.origins[:size] = saved["normals"], saved["levels"], saved["sources"].reshape(-1, 2)
        self.tight, self.useful = (frozenset(np.flatnonzero(column).tolist()) for column in saved["kept"].reshape(-1, 2).T)
        self.next, _, self.fresh = (int(value) for value in saved["numbers"])


def depth(where: CenteredDomain, normals: np.ndarray, levels: np.ndarray, weights: np.ndarray) -> float:
    """How far every action is outside the halfspaces, on average by these weights; above 0 only where that is proved."""
    total = float(weights.sum())
    allowance = where.tolerance * float(weights.dot(where.reach + np.abs(levels)))
    return (where.least(weights.dot(normals)) - float(weights.dot(levels)) - allowance) / total


def project_onto(where: CenteredDomain, normals: np.ndarray, levels: np.ndarray, start: np.ndarray, sweeps: int) -> np.ndarray | None:
    """An action that meets all halfspaces, found by projecting `start` on one after the other; None where that does not end soon."""
    x = start
    for _ in range(sweeps):
        if meets(where, normals, levels, x):
            return x
        x = swept(where, normals, levels, x)
    return None


def meets(where: CenteredDomain, normals: np.ndarray, levels: np.ndarray, x: np.ndarray) -> bool:
    """Whether x counts as meeting all halfspaces."""
    return float((normals.dot(x - where.middle) - levels).max()) <= NEAR * where.diameter


def swept(where: CenteredDomain, normals: np.ndarray, levels: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x projected on one halfspace after the other and on the domain, a little farther in, so that later projections do not undo it."""
    assert where.domain is not None
    onto: np.ndarray = where.domain.project(where.middle + sweep(normals, levels - 1e-4 * where.diameter, x - where.middle))
    return onto


def lower(where: CenteredDomain, a: np.ndarray, normals: np.ndarray, levels: np.ndarray, programs: int = 12) -> tuple[float, np.ndarray]:
    """A lower bound on <a, u - middle> over the actions that meet the halfspaces, and the weights that prove it."""
    size = sqrt(float(a.dot(a)))
    outer, b = OuterPolyhedron(where), levels / (where.diameter or 1.0)
    best, weights, still = where.least(a), np.zeros(len(levels)), 0

    def gain(push: np.ndarray) -> float:
        return where.least(a + push.dot(normals)) - float(push.dot(levels))

    small = len(a) <= MOST_DIMENSIONS and where.diameter > 0.0
    if small and (value := gain(pressed := size * _pressed(a / size, normals, b))) > best:
        best, weights = value, pressed
    for _ in range(programs if small else 0):
        answer = outer.solve(a / size, normals, b)
        if answer is None:
            break
        push = size * answer[1]
        value = gain(push)
        still = 0 if value > best + 1e-7 * size * where.diameter else still + 1
        if value > best:
            best, weights = value, push
        onto = outer.separate(answer[0])
        if still == 2 or float(np.abs(answer[0] - onto).max()) <= 1e-9:
            break
    return best, weights


def _pressed(unit: np.ndarray, normals: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Weights of the halfspaces that hold up a point pressed against them along -unit, in units of the diameter; zeros where none do.

    It is the projection of a point `PRESS` diameters away on the halfspaces, by one problem of least squares with weights 0 or above
    (Lawson and Hanson's least distance programming): a tenth of the time of a linear program, and nearly the same weights.
    """
    found = nearest_on(-PRESS * unit, normals, levels)
    return np.zeros(len(levels)) if found is None else found[1] / PRESS


def nearest_on(point: np.ndarray, normals: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The point nearest to this one that meets the halfspaces <normal, .> <= level, and their weights: the way there is -weights'normals.

    None where the halfspaces contradict each other, or are so nearly opposite that nobody can tell.
    """
    away = normals.dot(point) - levels
    scale = float(np.abs(away).max()) or 1.0
    weights, _ = least_distance(normals, -away / scale)
    left = 1.0 - float((away / scale).dot(weights))  # 0 where the halfspaces contradict each other
    if left <= 1e-9:
        return None
    weights = weights * (scale / left)
    return point - weights.dot(normals), weights


class OuterPolyhedron:
    """A polyhedron around the domain, in units of its diameter around its middle; `rows` and `limits` are cuts found before."""

    def __init__(self, where: CenteredDomain, rows: np.ndarray | None = None, limits: np.ndarray | None = None) -> None:
        self.where = where
        d = len(where.middle)
        self.rows: list[np.ndarray] = []
        self.limits: list[float] = []
        if isinstance(where.domain, PolyhedronSet):
            self.rows = list(where.domain.A)
            self.limits = list((where.domain.b - where.domain.A @ where.middle) / where.diameter)
        self.own = len(self.rows)  # those of the domain itself
        if rows is not None and limits is not None:
            self.rows, self.limits = [*self.rows, *rows], [*self.limits, *limits.tolist()]
        self.bounds: list[tuple[float | None, float | None]] = list(where.box or [(-1.0, 1.0)] * d)

    @property
    def cuts(self) -> tuple[np.ndarray, np.ndarray]:
        """The tangents and halfspaces around the domain, and their limits."""
        return np.array(self.rows[self.own :]).reshape(-1, len(self.bounds)), np.array(self.limits[self.own :])

    def touch(self, w: np.ndarray) -> None:
        """Add the tangent whose inner normal is w."""
        length = sqrt(float(w.dot(w)))
        if length > 0.0:
            self._add(-w / length, -self.where.least(w) / (length * self.where.diameter))

    def separate(self, y: np.ndarray) -> np.ndarray:
        """The domain's point nearest to y; where y is outside, the halfspace between the two is added."""
        assert self.where.domain is not None
        scale, middle = self.where.diameter, self.where.middle
        onto: np.ndarray = (np.asarray(self.where.domain.project(middle + scale * y)) - middle) / scale
        away = y - onto
        length = sqrt(float(away.dot(away)))
        if length > 1e-13:
            self._add(away / length, float(away.dot(onto)) / length)
        return onto

    def _add(self, row: np.ndarray, limit: float) -> None:
        if isfinite(limit) and np.isfinite(row).all():  # numbers too large to calculate with cut nothing off
            self.rows.append(row)
            self.limits.append(limit)

    def solve(self, cost: np.ndarray, A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The minimiser of <cost, .> subject to A . <= b in the polyhedron, and the multipliers of A's rows; None where there is none."""
        rows = np.array(self.rows).reshape(len(self.rows), len(self.bounds))
        more = np.hstack([rows, np.zeros((len(rows), len(cost) - rows.shape[1]))])
        bounds = [*self.bounds, *[(None, None)] * (len(cost) - len(self.bounds))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what the solver thinks of the numbers: its answer is checked
            answer = linear_program(cost, np.vstack([A, more]), np.append(b, self.limits), bounds)
        if answer is None or not np.isfinite(answer.x).all():
            return None
        return answer.x, np.maximum(-answer.marginals[: len(A)], 0.0)
