"""A domain as inequalities, written down once; what solvers and policies want of it are views.

A domain may have methods `facets` (its inequalities), `halfspaces` (its faces listed, where `facets` needs more variables), `corners` and
`peeled` (of a cut domain: what is cut, and the cuts). The functions of these names ask for them, and do without where there are none.

>>> from bridle.domains import Simplex
>>> facets(Simplex(2)).halfspaces()
array([[-1., -0., -0.],
       [-0., -1., -0.],
       [ 1.,  1.,  1.],
       [-1., -1., -1.]])
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridle.backends import UNBOUNDED
from bridle.core import Domain
from bridle.ops import Array

LISTED_DIMENSIONS = 8
"""In at most so many dimensions the corners of a box, or the faces of an L1 ball, are listed."""


class Slab(NamedTuple):
    """low <= rows w <= high; a limit that is not there is -UNBOUNDED or UNBOUNDED, and an equality has the same limit on both sides."""

    rows: Array
    low: Array
    high: Array

    def inequalities(self) -> tuple[Array, Array]:
        """The rows that are not equalities, as A w <= b: first those limited from above."""
        loose = self.low < self.high
        return one_sided(self.rows[loose], self.low[loose], self.high[loose])

    def equalities(self, width: int) -> tuple[Array, Array]:
        """The rows that are equalities, as E w = e over `width` variables."""
        fixed = self.low >= self.high
        return self.rows[fixed], self.low[fixed]

    def among(self, columns: NDArray[np.int_], width: int) -> Slab:
        """The slab where its variables are these columns of more."""
        rows = np.zeros((len(self.rows), width))
        rows[:, columns] = self.rows
        return self._replace(rows=rows)


class BallPart(NamedTuple):
    """|x - middle| <= radius over the coordinates where `inside` is 1."""

    inside: Array
    middle: Array
    radius: float

    def among(self, columns: NDArray[np.int_], width: int) -> BallPart:
        """The ball where its coordinates are the first of these columns of more."""
        wide = np.zeros((2, width))
        wide[:, columns[: len(self.inside)]] = self.inside, self.middle
        return BallPart(wide[0], wide[1], self.radius)


class ConePart(NamedTuple):
    """The `length` coordinates from `start` on are a positive semidefinite matrix of that trace."""

    start: int
    length: int
    trace: float

    def equalities(self, width: int) -> tuple[Array, Array]:
        """That the matrix is symmetric and has its trace, as E w = e over `width` variables."""
        n = isqrt(self.length)
        I = np.eye(self.length, width, self.start)
        order = np.arange(self.length).reshape(n, -1)
        above, below = order[np.triu_indices(n, 1)], order.T[np.triu_indices(n, 1)]
        E = np.concatenate([I[above] - I[below], I[np.diag(order)].sum(axis=0, keepdims=True)])
        return E, np.append(np.zeros(len(above)), self.trace)

    def among(self, columns: NDArray[np.int_], width: int) -> ConePart:
        """The cone where its coordinates are the first of these columns of more."""
        return self._replace(start=int(columns[self.start]))


class Facets(NamedTuple):
    """What a decision x satisfies, part by part, over the variables w = (x, `more` others)."""

    dim: int
    parts: tuple[Slab | BallPart | ConePart, ...]
    more: int = 0

    @property
    def slabs(self) -> list[Slab]:
        """The parts that are bounded by planes."""
        return [part for part in self.parts if isinstance(part, Slab)]

    @property
    def balls(self) -> list[BallPart]:
        """The balls, over x."""
        return [part for part in self.parts if isinstance(part, BallPart)]

    @property
    def cones(self) -> list[ConePart]:
        """The positive semidefinite matrices, over x."""
        return [part for part in self.parts if isinstance(part, ConePart)]

    @property
    def flat(self) -> bool:
        """Whether it is a polyhedron in x alone."""
        return not self.more and all(isinstance(part, Slab) for part in self.parts)

    def bands(self) -> Slab | None:
        """All of it as one slab; None unless it is a polyhedron in x alone."""
        if self.more:
            return None
        if len(self.parts) == 1:
            part = self.parts[0]
            return part if isinstance(part, Slab) else None
        return Slab(*map(np.concatenate, zip(*self.slabs, strict=True))) if self.flat else None

    def halfspaces(self) -> Array:
        """Rows (a, b) with <a, w> <= b, those of one slab after those of another; an equality makes two."""
        return np.vstack([np.zeros((0, self.dim + self.more + 1)), *(np.column_stack(one_sided(*slab)) for slab in self.slabs)])

    def inequalities(self) -> tuple[Array, Array]:
        """A and b with A w <= b, without the equalities."""
        return self._joined([slab.inequalities() for slab in self.slabs])

    def equalities(self) -> tuple[Array, Array]:
        """E and e with E w = e, those of the cones among them."""
        width = self.dim + self.more
        return self._joined([part.equalities(width) for part in self.parts if not isinstance(part, BallPart)])

    def cut(self, a: Array, b: float) -> Facets:
        """The facets of what is left of the domain where <a, x> <= b."""
        row = np.concatenate([a, np.zeros(self.more)])
        return self._replace(parts=(*self.parts, Slab(row[None], np.full(1, -UNBOUNDED), np.full(1, b))))

    def _joined(self, groups: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        none = np.zeros((0, self.dim + self.more)), np.zeros(0)
        return np.concatenate([none[0], *(rows for rows, _ in groups)]), np.concatenate([none[1], *(levels for _, levels in groups)])


def facets(domain: Domain) -> Facets | None:
    """The domain as inequalities; None where nothing is known of it but its projection."""
    method: Callable[[], Facets | None] | None = getattr(domain, "facets", None)
    return None if method is None else method()


def faces(domain: Domain) -> Slab | None:
    """The domain as  low <= rows x <= high  where it can be written so."""
    sides = facets(domain)
    return None if sides is None else sides.bands()


def halfspaces(domain: Domain) -> Array | None:
    """Rows (a, b) whose half-spaces <a, x> <= b have the domain in common, where they are known and few."""
    method: Callable[[], Array | None] | None = getattr(domain, "halfspaces", None)
    if method is not None:
        return method()
    sides = facets(domain)
    return sides.halfspaces() if sides is not None and sides.flat else None


def corners(domain: Domain) -> Array | None:
    """The corners of the domain, where they are known and few: a convex function is largest at one of them."""
    method: Callable[[], Array | None] | None = getattr(domain, "corners", None)
    return None if method is None else method()


def peeled(domain: Domain) -> tuple[Domain, Array]:
    """The domain without its cuts, and these as rows (a, b)."""
    method: Callable[[], tuple[Domain, Array]] | None = getattr(domain, "peeled", None)
    return (domain, np.zeros((0, domain.dim + 1))) if method is None else method()


def one_sided(rows: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """low <= rows w <= high as A w <= b: first the rows limited from above, then those limited from below."""
    below, above = high < UNBOUNDED, low > -UNBOUNDED
    return np.vstack([rows[below], -rows[above]]), np.append(high[below], -low[above])


def side_by_side(parts: list[Facets]) -> Facets:
    """The facets of a product: each part in its own columns, the additional variables of all parts last."""
    dim, more = sum(part.dim for part in parts), sum(part.more for part in parts)
    placed: list[Slab | BallPart | ConePart] = []
    start, end = 0, dim
    for part in parts:
        columns = np.concatenate([np.arange(start, start + part.dim), np.arange(end, end + part.more)])
        placed += [piece.among(columns, dim if isinstance(piece, BallPart) else dim + more) for piece in part.parts]
        start, end = start + part.dim, end + part.more
    return Facets(dim, tuple(placed), more)
