"""Sets with a closed form: ball, box, simplex, L1 ball, spectrahedron, product.

Each is a NamedTuple of arrays, and every method works along the last axis: on one decision, on one per run, on any leading axes. Three
rules hold throughout: a point inside comes back bit for bit; a projection is in the set up to rounding at the *set's* scale, however
far the point; nothing branches on data inside a compiler.
"""

from __future__ import annotations

from itertools import product
from math import isqrt, sqrt
from typing import NamedTuple

import numpy as np

from bridle import ops
from bridle.backends import UNBOUNDED, lowest_eigenvector
from bridle.core import Domain
from bridle.domains.facets import LISTED_DIMENSIONS, BallPart, ConePart, Facets, Slab, facets, side_by_side
from bridle.ops import Array, Flag, Scalar, absolute, along, dot, norm
from bridle.showing import LISTED, call

EPS = 2.0**-52

LARGE = 40
"""Of a matrix with so many rows or more the lowest eigenvector is found without the others."""


class BallSet(NamedTuple):
    """{x : |x - middle| <= radius}."""

    middle: Array
    radius: float

    def __repr__(self) -> str:
        return _around("Ball", self.middle, self.radius)

    @property
    def dim(self) -> int:
        return int(self.middle.shape[-1])

    def project(self, x: Array) -> Array:
        away = x - self.middle
        distance = norm(away)
        inside = ops.concrete(distance <= self.radius)
        if surely(inside):
            return x
        return ops.where(inside, x, self.middle + away * (self.radius / ops.maximum(distance, self.radius)))

    def diameter(self) -> float:
        return 2.0 * self.radius

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the ball, up to `tolerance` times (diameter + |centre|)."""
        return all_of(norm(x - self.middle) <= self.radius + margin(self, tolerance))

    def linear_min(self, v: Array) -> Scalar:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        return self.middle - v * ops.ratio(self.radius, norm(v))

    def facets(self) -> Facets:
        return Facets(self.dim, (BallPart(np.ones(self.dim), self.middle, float(self.radius)),))


class BoxSet(NamedTuple):
    """{x : low <= x <= high}."""

    low: Array
    high: Array

    def __repr__(self) -> str:
        ends = [np.unique(end) if isinstance(end, np.ndarray) and end.ndim == 1 else np.zeros(0) for end in self]
        if all(end.size == 1 for end in ends):
            return call("Box", ends[0][0], ends[1][0], dim=self.dim)
        return call("Box", self.low, self.high)

    @property
    def dim(self) -> int:
        return int(self.low.shape[-1])

    def project(self, x: Array) -> Array:
        return ops.minimum(ops.maximum(x, self.low), self.high)

    def diameter(self) -> float:
        return norm(self.high - self.low)  # type: ignore[return-value]

    def center(self) -> Array:
        return 0.5 * self.low + 0.5 * self.high

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the box, up to `tolerance` times (diameter + |centre|) in each coordinate."""
        slack = margin(self, tolerance)
        return all_of((self.low - slack <= x) & (x <= self.high + slack))

    def linear_min(self, v: Array) -> Scalar:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        return ops.where(v > 0.0, self.low, self.high)

    def facets(self) -> Facets:
        return Facets(self.dim, (Slab(np.eye(self.dim), self.low, self.high),))

    def corners(self) -> Array | None:
        return np.array(list(product(*zip(self.low, self.high, strict=True)))) if self.dim <= LISTED_DIMENSIONS else None


class SimplexSet(NamedTuple):
    """{x >= 0 : sum of x = mass}."""

    mass: float
    middle: Array

    def __repr__(self) -> str:
        return call("Simplex", self.dim, **_unlike_one(mass=self.mass))

    @property
    def dim(self) -> int:
        return int(self.middle.shape[-1])

    def project(self, x: Array) -> Array:
        top, level = _water(x, self.mass)
        # Where the sum is right up to rounding there is nothing to spread: leave what is not negative as it is.
        return ops.where(absolute(top + level) <= 8.0 * EPS * self.mass, ops.pos(x), ops.pos((x - top) - level))

    def diameter(self) -> float:
        return _across(self.mass, self.dim)

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the simplex, up to `tolerance` times (diameter + |centre|) in each coordinate and in the sum."""
        slack = margin(self, tolerance)
        return all_of(x >= -slack) and all_of(absolute(along(x, "sum") - self.mass) <= slack)

    def linear_min(self, v: Array) -> Scalar:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        return self.mass * ops.onehot(v.argmin(axis=-1)[..., None], v)

    def facets(self) -> Facets:
        d, mass = self.dim, np.full(1, self.mass)
        return Facets(d, (Slab(np.eye(d), np.zeros(d), np.full(d, UNBOUNDED)), Slab(np.ones((1, d)), mass, mass)))

    def corners(self) -> Array:
        return np.asarray(self.mass * np.eye(self.dim))


class L1BallSet(NamedTuple):
    """{x : sum of |x - middle| <= radius}."""

    middle: Array
    radius: float

    def __repr__(self) -> str:
        return _around("L1Ball", self.middle, self.radius)

    @property
    def dim(self) -> int:
        return int(self.middle.shape[-1])

    def project(self, x: Array) -> Array:
        away = x - self.middle
        sizes = abs(away)
        inside = along(sizes, "sum") <= self.radius
        if surely(inside):
            return x
        top, level = _water(sizes, self.radius)
        onto: Array = self.middle + ops.namespace(away).copysign(ops.pos((sizes - top) - level), away)
        return ops.where(inside, x, onto)

    def diameter(self) -> float:
        return 2.0 * self.radius

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the ball, up to `tolerance` times (diameter + |centre|) in the sum of |x - centre|."""
        return all_of(along(abs(x - self.middle), "sum") <= self.radius + margin(self, tolerance))

    def linear_min(self, v: Array) -> Scalar:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        steepest = ops.onehot(abs(v).argmax(axis=-1)[..., None], v)
        corner: Array = self.middle - self.radius * steepest * ops.namespace(v).sign(v)
        return corner

    def facets(self) -> Facets:
        """With more variables u >= |x - middle|, whose sum is bounded."""
        d, I = self.dim, np.eye(self.dim)
        rows = np.block([[I, -I], [-I, -I], [np.zeros((1, d)), np.ones((1, d))]])
        high = np.concatenate([self.middle, -self.middle, [self.radius]])
        return Facets(d, (Slab(rows, np.full(2 * d + 1, -UNBOUNDED), high),), more=d)

    def halfspaces(self) -> Array | None:
        if self.dim > LISTED_DIMENSIONS:
            return None
        signs = np.array(list(product((1.0, -1.0), repeat=self.dim)))
        return np.column_stack([signs, self.radius + signs @ self.middle])

    def corners(self) -> Array:
        return np.concatenate([self.middle + sign * self.radius * np.eye(self.dim) for sign in (1.0, -1.0)])


class SpectrahedronSet(NamedTuple):
    """The positive semidefinite matrices of a given trace, each flattened to a vector row by row."""

    trace: float
    middle: Array

    def __repr__(self) -> str:
        return call("Spectrahedron", round(self.dim**0.5), **_unlike_one(trace=self.trace))

    @property
    def dim(self) -> int:
        return int(self.middle.shape[-1])

    def project(self, x: Array) -> Array:
        matrix = _square(x)
        mirror = _transposed(matrix)
        values, vectors = ops.namespace(x).linalg.eigh(0.5 * (matrix + mirror))
        top, level = _water(values, self.trace)
        there = (
            (absolute(top + level) <= 8.0 * EPS * self.trace) & (values[..., :1] >= 0.0) & (matrix == mirror).all(axis=(-2, -1))[..., None]
        )
        onto: Array = (vectors * ops.pos((values - top) - level)[..., None, :]) @ _transposed(vectors)
        return ops.where(there, x, (0.5 * (onto + _transposed(onto))).reshape(x.shape))

    def diameter(self) -> float:
        return _across(self.trace, isqrt(self.dim))

    def center(self) -> Array:
        return self.middle.copy()

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the set, up to `tolerance` times (diameter + |centre|) in symmetry, eigenvalues and trace."""
        slack = margin(self, tolerance)
        matrix = _square(np.asarray(x))
        if not (all_of(np.isfinite(matrix)) and all_of(abs(matrix - _transposed(matrix)) <= slack)):
            return False
        values = np.linalg.eigvalsh(0.5 * (matrix + _transposed(matrix)))
        return all_of(values >= -slack) and all_of(abs(values.sum(axis=-1) - self.trace) <= slack)

    def linear_min(self, v: Array) -> Scalar:
        return dot(v, self.linear_argmin(v))

    def linear_argmin(self, v: Array) -> Array:
        matrix = _square(v)
        matrix = 0.5 * (matrix + _transposed(matrix))
        if isinstance(v, np.ndarray) and matrix.shape[-1] >= LARGE:
            rows = matrix.reshape(-1, *matrix.shape[-2:])
            lowest = np.array([lowest_eigenvector(row) for row in rows]).reshape(matrix.shape[:-1])
        else:
            lowest = ops.namespace(v).linalg.eigh(matrix)[1][..., 0]
        corner: Array = self.trace * (lowest[..., :, None] * lowest[..., None, :]).reshape(v.shape)
        return corner

    def facets(self) -> Facets:
        return Facets(self.dim, (ConePart(0, self.dim, self.trace),))


class ProductSet(NamedTuple):
    """The decisions whose consecutive parts are in one domain each."""

    domains: tuple[Domain, ...]

    def __repr__(self) -> str:
        return call("Product", *self.domains) if len(self.domains) <= LISTED else call("Product", list(self.domains))

    @property
    def dim(self) -> int:
        return sum(domain.dim for domain in self.domains)

    def project(self, x: Array) -> Array:
        return ops.join([domain.project(part) for domain, part in self._parts(x)], -1)

    def diameter(self) -> float:
        return ops.sqrt(sum(domain.diameter() ** 2 for domain in self.domains))

    def center(self) -> Array:
        return ops.join([domain.center() for domain in self.domains], -1)

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every part of every row is in its domain, up to `tolerance` times that domain's scale."""
        return all(domain.contains(part, tolerance) for domain, part in self._parts(x))

    def linear_min(self, v: Array) -> Scalar:
        return sum(domain.linear_min(part) for domain, part in self._parts(v))

    def linear_argmin(self, v: Array) -> Array:
        return ops.join([domain.linear_argmin(part) for domain, part in self._parts(v)], -1)

    def facets(self) -> Facets | None:
        sides = [part for part in map(facets, self.domains) if part is not None]
        return side_by_side(sides) if len(sides) == len(self.domains) else None

    def _parts(self, x: Array) -> list[tuple[Domain, Array]]:
        parts, start = [], 0
        for domain in self.domains:
            parts.append((domain, x[..., start : start + domain.dim]))
            start += domain.dim
        return parts


def _water(x: Array, mass: float) -> tuple[Scalar, Scalar]:
    """How far to lower x until its positive part sums to `mass`, as two addends: the largest of x, and the rest.

    The rest is at least -mass, whatever the size of x: subtracting the two one after the other cancels nothing.
    """
    top = along(x, "max")
    x = x - top
    xp = ops.namespace(x)
    level = along((xp.cumsum(xp.sort(x)[..., ::-1], axis=-1) - mass) / xp.arange(1.0, x.shape[-1] + 1.0), "max")
    if x.shape[-1] > 32:  # the running sums of a long vector are far larger than mass, and so is their rounding: correct for it
        left = ops.pos(x - level)
        level = level + (along(left, "sum") - mass) / ops.maximum(along(left > 0.0, "sum"), 1.0)
    return top, level


def _square(x: Array) -> Array:
    size = isqrt(x.shape[-1])
    return x.reshape(*x.shape[:-1], size, size)


def _transposed(matrix: Array) -> Array:
    return matrix.swapaxes(-1, -2)


def _across(mass: float, corners: int) -> float:
    """The distance between two corners of a simplex."""
    return sqrt(2.0) * mass if corners > 1 else 0.0 * mass


def _around(name: str, middle: Array, radius: float) -> str:
    """A set around a point, as a call: the point is left out where it is the origin, the radius where it is 1."""
    if isinstance(middle, np.ndarray) and middle.ndim == 1 and not middle.any():
        return call(name, len(middle), **_unlike_one(radius=radius))
    return call(name, **_unlike_one(radius=radius), center=middle)


def _unlike_one(**sizes: object) -> dict[str, object]:
    """The sizes that are not the usual 1."""
    return {name: size for name, size in sizes.items() if not (isinstance(size, float) and size == 1.0)}


def margin(domain: Domain, tolerance: float) -> Scalar:
    """`tolerance` at the domain's scale: times its diameter plus the length of its centre."""
    return tolerance * (domain.diameter() + norm(domain.center()))


def all_of(flag: Flag) -> bool:
    """Whether a flag holds for every run."""
    return bool(np.all(flag))


def surely(flag: Flag) -> bool:
    """Whether the flag is known to hold for every run: never inside a compiler's trace."""
    return bool(flag.all()) if isinstance(flag, np.ndarray) else isinstance(flag, (bool, np.bool_)) and bool(flag)
