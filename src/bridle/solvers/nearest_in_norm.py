"""The nearest point of a domain where convex limits hold, in the norm of a matrix: on the Python engine only.

With g_i the limits and A the matrix, each step solves the quadratic program

    min over s of  <A (z - x), s> + <s, (A + sum l_i H_i(z)) s> / 2      where z + s is in the domain and below the tangents of the g_i at z

with the multipliers l of the program before and H_i the curvature of g_i: Newton's method for the conditions of the minimum, which takes a
handful of steps. Convex limits lie above their tangents: if no point of the domain is below those, none keeps the limits. Where Newton's
method does not come to an end, or the solver of quadratic programs is not installed (``pip install 'bridle-oco[qp]'``), the interior point
of `bridle.solvers` does it.

>>> from bridle.domains import Simplex
>>> from bridle.functions import AffineFunction, AffineRows, QuadraticForm, RoundQuadratic
>>> risk = QuadraticForm(np.diag([8.0, 2.0]), np.zeros(2), -1.0)  # 4 x_1^2 + x_2^2 <= 1
>>> nearest_where(Simplex(2), np.array([1.0, 0.0]), sequences(risk), np.eye(2)).round(9)
array([0.4, 0.6])
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from bridle import records
from bridle.backends import SEVERAL, package, quadratic_in_bands
from bridle.core import Domain, Function, Unavailable
from bridle.functions import AffineFunction, AffineRows, QuadraticForm, RoundQuadratic
from bridle.ops import Array
from bridle.solvers.convex import solve
from bridle.solvers.program import ConvexProgram, Pieces, Region, curvature, evaluate, inside, pieces, region

STEPS = 60
"""How many programs are solved before the interior point is asked."""

SETTLED = 1e-11
"""Times the domain's diameter: a step that is shorter is the last."""

INSIDE = 1e-11
"""Times a limit's slope and the domain's diameter: limits are aimed at so much below 0, so that rounding does not exceed them."""

KEPT = 1e-9
"""Times the same: a limit that is exceeded by no more counts as kept, where no point is below it."""


class NoSuchPoint(Exception):
    """No point of the domain keeps the limits."""


def sequences(function: Function) -> Pieces | None:
    """A function as smooth sequences, as programs take them, of which it is the largest; None where it is not made of such."""
    if isinstance(function, AffineRows):
        return (AffineFunction(function.A, function.b[:, None]),)
    if getattr(function, "several", False):
        return None
    return pieces(records.widen(records.transform(lambda leaf: np.asarray(leaf, dtype=float)[None], function), 1))


def nearest_where(domain: Domain, x: Array, limits: Pieces, metric: Array, where: Region | None = None) -> Array | None:
    """The point of the domain nearest to x in the norm of `metric` at which no limit is above 0; None where there is no such point.

    A point that is in the domain and keeps the limits comes back as it is. `where` is the domain's region, where a caller has it already.
    """
    start = np.asarray(domain.project(x), dtype=float)
    if domain.contains(x) and not (evaluate(limits, x)[0] > 0.0).any():
        return x
    task = _NearestKept(domain, region(domain) if where is None else where, x, limits, metric)
    for aim in (INSIDE, 0.0):
        try:
            point = task.solve(start, aim)
        except NoSuchPoint:
            continue
        values, rows = evaluate(limits, point)
        slack = KEPT * np.linalg.norm(rows, axis=1) * domain.diameter()
        if (values <= (0.0 if aim else slack)).all():
            return point
    return None


class _NearestKept(NamedTuple):
    """What is asked for: the point of the domain nearest to x where the limits hold."""

    domain: Domain
    where: Region
    x: Array
    limits: Pieces
    metric: Array

    def solve(self, start: Array, aim: float) -> Array:
        """The nearest point with limits `aim` below 0."""
        with suppress(Unavailable):
            package("daqp", SEVERAL)
            if self.where.known and not self.where.cones and (found := self._newton(start, aim)) is not None:
                return found
        return self._interior(start, aim)

    def _newton(self, start: Array, aim: float) -> Array | None:
        """By quadratic programs; None where they do not settle."""
        where, parts, D = self.where, (*self.limits, *self.where.curved), float(self.domain.diameter())
        own, N, z = len(evaluate(self.limits, start)[0]), where.N, start
        y, prices = np.linalg.lstsq(N, z - where.origin, rcond=None)[0], None
        for _ in range(STEPS):
            values, rows = evaluate(parts, z)
            values = values + np.where(np.arange(len(values)) < own, aim * D * np.linalg.norm(rows, axis=1), 0.0)
            H = N.T @ (self.metric if prices is None else self.metric + self._bending(parts, z, prices)) @ N
            tangents = rows @ N
            sizes = np.maximum(np.linalg.norm(tangents, axis=1), 1e-300)
            bands = [(tangents / sizes[:, None], None, -values / sizes), (where.A, None, where.b - where.A @ y)]
            scale = max(float(np.trace(H)) / len(H), 1e-300)  # DAQP's tolerances are absolute
            s, pull = quadratic_in_bands(H / scale, N.T @ (self.metric @ (z - self.x)) / scale, bands)
            if s is None:
                raise NoSuchPoint
            prices, y = np.maximum(pull[: len(values)], 0.0) * scale / sizes, y + s
            z = where.origin + N @ y
            if float(np.linalg.norm(N @ s)) <= SETTLED * D:
                return inside(self.domain, z)
        return None

    def _bending(self, parts: Pieces, z: Array, weights: Array) -> Array:
        """The curvature of the limits at z, each times its weight."""
        total, at = np.zeros(self.metric.shape), 0
        for part in parts:
            several = len(np.asarray(part.value(z)))
            total = total + curvature(part, z, weights[at : at + several])
            at += several
        return total

    def _interior(self, start: Array, aim: float) -> Array:
        """By the interior point."""
        near = QuadraticForm(self.metric[None], -(self.metric @ self.x)[None], np.full((1, 1), 0.5 * float(self.x @ self.metric @ self.x)))
        lower = tuple(_below(part, aim * float(self.domain.diameter()), start) for part in self.limits)
        return inside(self.domain, solve(ConvexProgram(self.where, sums=(near,), limits=lower), self.domain).x)


def _below(part: Function, aim: float, z: Array) -> Function:
    """The limits of a sequence, each tightened by `aim` times its slope at z."""
    slopes = np.linalg.norm(np.broadcast_to(part.grad(z), (len(np.asarray(part.value(z))), len(z))), axis=1)[:, None]
    return part._replace(b=part.b + aim * slopes) if isinstance(part, AffineFunction | QuadraticForm | RoundQuadratic) else part
