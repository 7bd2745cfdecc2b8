"""The search for a proof that no action is feasible, in slices: each look after a round does a bounded part of it.

A search takes up to 40 linear programs, and a contradiction is then made smaller by one search for each of its halfspaces: too much for one
round of a service. So both are data (`Search`, `Reduction`), which `advance` and `reduce` take as far as a budget of `Work` allows. Work is
counted in steps and their sizes, never by a clock: the same rounds give the same proofs, wherever they were interrupted, saved and loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple, cast

import numpy as np

from bridle import records
from bridle.core import Domain
from bridle.domains.half_space_cut import DomainCut
from bridle.domains.polyhedron import PolyhedronSet
from bridle.records import Arrays
from bridle.session.certificates.feasibility import (
    MOST_DIMENSIONS,
    NEAR,
    CenteredDomain,
    OuterPolyhedron,
    calls_solver,
    depth,
    meets,
    swept,
)

PROGRAMS = 40
"""At most this many programs for one question; fewer in many dimensions, where each costs more."""

SWEEPS = 30
"""How often a search projects its first point on all halfspaces before it turns to programs."""

LOOK = 16.0
"""The work that one look after a round may do, in thousands of numbers handed to a solver: about as many milliseconds."""


class Work:
    """A budget of work, and how much of it was done.

    A step is allowed where it fits into what is left, and where it is the first: then there is progress however large it is.
    """

    def __init__(self, limit: float = inf) -> None:
        self.limit, self.spent = limit, 0.0

    def allows(self, step: float) -> bool:
        """Whether a step of this size may be done now; if so, it is counted.

        >>> work = Work(2.0)
        >>> work.allows(1.5), work.allows(1.5), work.allows(0.5), work.spent
        (True, False, True, 2.0)
        """
        if self.spent > 0.0 and self.spent + step > self.limit:
            return False
        self.spent += step
        return True


def program_work(rows: int, columns: int) -> float:
    """The work of a linear program: its numbers, and what setting it up costs."""
    return 1.0 + rows * columns / 1000.0


def domain_work(domain: Domain | None, dim: int) -> float:
    """The work of one call of a domain's `linear_min`, and of three projections; a domain of the user's own costs what it costs."""
    parts = list(records.nodes(domain))
    numbers = max(dim, sum(int(np.size(leaf)) for leaf in records.leaves(domain).values()) if parts else dim)
    if calls_solver(domain):
        return program_work(numbers, 1)
    iterated = not parts or any(isinstance(part, DomainCut) for part in parts)
    return (0.3 if iterated else 0.01) + numbers / 3000.0


class Search(NamedTuple):
    """A search of halfspaces for an action that meets them all, or for a contradiction among them, as far as it has come.

    `sources` has the round of each halfspace, and which of its constraints. First `point` is projected on them `sweeps` times more (None
    where that is over), then those that the middle is not in are looked at one by one, from `alone` on, then `programs` more may be
    solved, around the domain cut to size by `rows` and `limits`. In the end (`over`) `weights` prove a contradiction of depth `depth` > 0,
    or `witness` meets all halfspaces, or nothing is known. The domain's `linear_min` is `call` work. Numbers are floats, as in save files.
    """

    normals: np.ndarray
    levels: np.ndarray
    sources: np.ndarray
    point: np.ndarray | None
    sweeps: float
    alone: float
    programs: float
    rows: np.ndarray
    limits: np.ndarray
    weights: np.ndarray
    depth: float
    witness: np.ndarray | None
    call: float
    over: float = 0.0


def begin(
    where: CenteredDomain,
    normals: np.ndarray,
    levels: np.ndarray,
    sources: np.ndarray | None = None,
    start: np.ndarray | None = None,
    *,
    alone: bool = True,
) -> Search:
    """A search of these halfspaces, from `start` on; without `alone` none of them is a proof by itself, as is known.

    In a polyhedron the first program sees such a proof too, and costs less than to look at each.
    """
    m, d = normals.shape
    alone = alone and not isinstance(where.domain, PolyhedronSet)
    programs = min(PROGRAMS, max(8, 1000 // d)) if d <= MOST_DIMENSIONS and where.diameter > 0.0 else 0
    return Search(
        normals.copy(),
        levels.copy(),
        np.zeros((m, 2)) if sources is None else sources,
        start,
        float(SWEEPS),
        _next_behind(levels, 0) if alone else float(m),
        float(programs),
        np.zeros((0, d)),
        np.zeros(0),
        np.zeros(m),
        0.0,
        None,
        domain_work(where.domain, d),
    )


def restored_search(saved: Arrays, dim: int) -> Search | None:
    """The search whose leaves these are; None where there are none."""
    if not saved:
        return None
    search = Search(*_leaves(saved, Search._fields))
    m, cuts = len(search.levels), len(search.limits)
    shapes = {"normals": (m, dim), "levels": (m,), "sources": (m, 2), "weights": (m,), "rows": (cuts, dim), "limits": (cuts,)}
    shapes |= {name: (dim,) for name in ("point", "witness") if name in saved}
    _check_shapes(search, shapes)
    return search


def _leaves(saved: Arrays, names: Sequence[str]) -> list[Any]:
    """The leaves of these names, numbers as floats; None for one that there is not."""
    found = (saved.get(name) for name in names)
    return [leaf if leaf is None or leaf.ndim else float(leaf) for leaf in found]


def _check_shapes(record: tuple[object, ...], shapes: dict[str, tuple[int, ...]]) -> None:
    """ValueError where an array has another shape than this, or one that is not named here is no number."""
    for name, part in records.children(record):
        if part is None if name in shapes else isinstance(part, np.ndarray):
            raise ValueError(name)
        if not records.is_record(part) and part is not None and np.shape(cast("np.ndarray", part)) != shapes.get(name, ()):
            raise ValueError(name)


def advance(where: CenteredDomain, search: Search, work: Work) -> Search:
    """The search, taken as far as `work` allows."""
    m, d = search.normals.shape
    step: Callable[[CenteredDomain, Search], Search]
    while not search.over:
        if search.point is not None:
            size, step = search.call / 3.0 + m / 256.0, _sweep_once
        elif search.alone < m:
            size, step = search.call, _look_at_one
        elif search.depth > 0.0 or not search.programs:
            return search._replace(over=1.0)
        else:
            outer = m + len(search.limits) + (len(where.domain.b) if isinstance(where.domain, PolyhedronSet) else 0)
            size, step = program_work(outer, d + 1) + 2.5 * search.call, _solve_once
        if not work.allows(size):
            break
        search = step(where, search)
    return search


def _sweep_once(where: CenteredDomain, search: Search) -> Search:
    assert search.point is not None
    if meets(where, search.normals, search.levels, search.point):
        return search._replace(witness=search.point, point=None, over=1.0)
    left = search.sweeps - 1.0
    point = swept(where, search.normals, search.levels, search.point) if left else None
    return search._replace(point=point if point is not None and np.isfinite(point).all() else None, sweeps=left)


def _look_at_one(where: CenteredDomain, search: Search) -> Search:
    """One halfspace that the middle is not in: if it misses the whole domain, it is a proof by itself."""
    place = int(search.alone)
    deep = depth(where, search.normals[place : place + 1], search.levels[place : place + 1], np.ones(1))
    if deep > search.depth:
        search = search._replace(weights=np.eye(1, len(search.levels), place)[0], depth=deep)
    return search._replace(alone=_next_behind(search.levels, place + 1))


def _next_behind(levels: np.ndarray, start: int) -> float:
    """The first place from `start` on of a halfspace that the middle is not in; their number where there is none."""
    behind = levels[start:] < 0.0
    return float(start + int(behind.argmax()) if behind.any() else len(levels))


def _solve_once(where: CenteredDomain, search: Search) -> Search:
    """One program: the least s such that some y of the polyhedron around the domain is at most s outside every halfspace."""
    normals, levels = search.normals, search.levels
    (m, d), outer, b = normals.shape, OuterPolyhedron(where, search.rows, search.limits), levels / where.diameter
    search = search._replace(programs=search.programs - 1.0)
    answer = outer.solve(np.append(np.zeros(d), 1.0), np.hstack([normals, -np.ones((m, 1))]), b)
    if answer is None or not 0.0 < answer[1].sum() < inf:
        return search._replace(over=1.0)
    y, weights = answer[0][:-1], answer[1]
    search = search._replace(weights=weights)
    if (deep := depth(where, normals, levels, weights)) > 0.0:
        return search._replace(depth=deep, over=1.0)
    outer.touch(weights.dot(normals))
    onto = outer.separate(y)
    search = search._replace(rows=outer.cuts[0], limits=outer.cuts[1])
    if float((normals.dot(onto) - b).max()) <= NEAR:
        return search._replace(witness=where.middle + where.diameter * onto, over=1.0)
    return search


class Reduction(NamedTuple):
    """A contradiction that is made smaller: one halfspace after the other is left out, the lightest first, and what can be spared is.

    `normals` to `depth` are what is left of it, with weights that prove it by themselves at every stage. `turns`: each one's weight when it
    all began, which says whose turn it is; 0 for those that have been tried. `attempt` is the search without the one at place `without`.
    """

    normals: np.ndarray
    levels: np.ndarray
    sources: np.ndarray
    weights: np.ndarray
    depth: float
    turns: np.ndarray
    without: float = 0.0
    attempt: Search | None = None

    @property
    def over(self) -> bool:
        """Whether none of the halfspaces is left to be tried."""
        return self.attempt is None and not self.turns.any()


def reducing(search: Search) -> Reduction:
    """The contradiction that a search has found, still whole."""
    there = search.weights > 0.0
    weights = search.weights[there]
    return Reduction(
        search.normals[there], search.levels[there], search.sources[there], weights / weights.sum(), search.depth, weights.copy()
    )


def restored_reduction(saved: Arrays, dim: int) -> Reduction | None:
    """The reduction whose leaves these are; None where there are none."""
    if not saved:
        return None
    attempt = restored_search(records.under("attempt.", saved), dim)
    found = Reduction(*_leaves(saved, Reduction._fields[:-1]))._replace(attempt=attempt)
    m = len(found.levels)
    _check_shapes(found, {"normals": (m, dim), "levels": (m,), "sources": (m, 2), "weights": (m,), "turns": (m,)})
    if attempt is not None and (len(attempt.levels) != m - 1 or not 0 <= found.without < m):
        raise ValueError("attempt")
    return found


def reduce(where: CenteredDomain, found: Reduction, work: Work) -> Reduction:
    """The contradiction, made as small as `work` allows."""
    while not found.over:
        if len(found.turns) == 1:
            return found._replace(turns=np.zeros(1), attempt=None)
        if found.attempt is None:
            without = int(np.where(found.turns > 0.0, found.turns, inf).argmin())
            rest = np.arange(len(found.turns)) != without
            attempt = begin(where, found.normals[rest], found.levels[rest], found.sources[rest], alone=False)
            found = found._replace(without=float(without), attempt=attempt)
        assert found.attempt is not None
        found = found._replace(attempt=(attempt := advance(where, found.attempt, work)))
        if not attempt.over:
            break
        turns = found.turns.copy()
        turns[int(found.without)] = 0.0
        found = found._replace(turns=turns, attempt=None)
        if attempt.depth > 0.0:
            there = attempt.weights > 0.0
            weights, rest = attempt.weights[there], np.delete(turns, int(found.without))
            found = Reduction(
                attempt.normals[there], attempt.levels[there], attempt.sources[there], weights / weights.sum(), attempt.depth, rest[there]
            )
    return found
