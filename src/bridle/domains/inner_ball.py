"""The room inside a domain: the ball around its centre that it holds, and the domain shrunk towards that centre.

A policy that only sees values tries points a little way off its decision. With the ball of radius r around c inside X, every point within
delta of X shrunk to the share 1 - delta/r of its size, c in its place, is in X:  (1 - delta/r) y + (delta/r) (c + r u)  is a point between
two of X. Where X has no inside of its own (a simplex), all of this is in its affine hull.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Domain, InputError
from bridle.domains.closed_form import L1BallSet
from bridle.domains.facets import ConePart, Facets, facets
from bridle.ops import Array, Scalar

FLAT = 1e-12
"""A row whose part along the affine hull is shorter than this, relative to the row, does not bound the domain there."""


class InnerBall(NamedTuple):
    """All x in the affine hull with |x - middle| <= radius are in the domain.

    `normals` are rows of unit length at right angles to the affine hull and to each other, None where the hull is the whole space; `dim` is
    the hull's dimension.
    """

    middle: Array
    radius: float
    dim: int
    normals: Array | None


def inner_ball(domain: Domain) -> InnerBall:
    """The largest ball in the domain around its centre: by the distances to its faces.

    >>> from bridle.domains import Simplex
    >>> ball = inner_ball(Simplex(2))
    >>> round(ball.radius, 6), ball.dim, abs(ball.normals).round(3)
    (0.707107, 1, array([[0.707, 0.707]]))
    """
    c = domain.center()
    if isinstance(domain, L1BallSet):  # its faces are many, and all alike
        return InnerBall(c, float(domain.radius) / len(c) ** 0.5, len(c), None)
    sides = facets(domain)
    if sides is None or sides.more:
        raise validate.refused("domain must be one whose faces are known, such as bridle.Ball(2) or bridle.Simplex(3)", domain)
    normals = _orthonormal(sides.equalities()[0])
    dim, radius = len(c) - len(normals), _radius(sides, c, normals)
    if dim < 1 or not 0.0 < radius < np.inf:
        raise InputError(f"domain must hold a ball of its own dimension around its centre; {validate.show(domain)} does not")
    return InnerBall(c, radius, dim, normals if len(normals) else None)


def _orthonormal(rows: Array) -> Array:
    """An orthonormal basis of what these rows span."""
    if not len(rows):
        return rows
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return np.ascontiguousarray(basis[sizes > FLAT * sizes.max()])


def _radius(sides: Facets, c: Array, normals: Array) -> float:
    """How far it is from c to the boundary, along what is at right angles to the normals."""
    A, b = sides.inequalities()
    along = A - (A @ normals.T) @ normals
    lengths, sizes = np.linalg.norm(along, axis=1), np.linalg.norm(A, axis=1)
    bounding = lengths > FLAT * sizes
    distances = [
        *((b - A @ c)[bounding] / lengths[bounding]),
        *((ball.radius - np.linalg.norm(ball.inside * (c - ball.middle))) for ball in sides.balls),
    ]
    distances += [_to_boundary(cone, c) for cone in sides.cones]
    return float(min(distances, default=np.inf))


def _to_boundary(cone: ConePart, c: Array) -> float:
    """How far a matrix is from those that are not positive definite, among the symmetric ones of its trace.

    A matrix M leaves the cone where v' M v = 0 for a unit v; the part of v v' along matrices of trace 0 has length sqrt(1 - 1/n).
    """
    n = round(cone.length**0.5)
    if n == 1:
        return np.inf
    matrix = c[cone.start : cone.start + cone.length].reshape(n, n)
    return float(np.linalg.eigvalsh(matrix)[0] / (1.0 - 1.0 / n) ** 0.5)


class Shrunk(NamedTuple):
    """The domain `within`, shrunk towards a point of it to a share of its size."""

    within: Domain
    middle: Array
    share: Scalar

    @property
    def dim(self) -> int:
        return int(self.within.dim)

    def project(self, x: Array) -> Array:
        return self.middle + self.share * (self.within.project(self.middle + (x - self.middle) / self.share) - self.middle)

    def diameter(self) -> float:
        return self.share * self.within.diameter()  # type: ignore[return-value]  # one for each run of a sweep

    def center(self) -> Array:
        return self.middle + self.share * (self.within.center() - self.middle)

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in it, up to `tolerance` as for `within`."""
        return self.within.contains(self.middle + (x - self.middle) / self.share, tolerance)

    def linear_min(self, v: Array) -> Scalar:
        return (v * self.linear_argmin(v)).sum(axis=-1, keepdims=v.ndim > 1)  # type: ignore[no-any-return]

    def linear_argmin(self, v: Array) -> Array:
        return self.middle + self.share * (self.within.linear_argmin(v) - self.middle)
