"""Convex programs over a domain, written down so that solvers can take them and their answers can be checked.

A program adds up smooth functions and rounds that are each the maximum of a few smooth functions, under limits c(x) <= 0. All of them are
sequences of function records, evaluated in one call. `lower_bound` turns the multipliers that come with an answer into a bound that holds
whatever the solver did, by way of the domain's own `linear_min`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from bridle import functions
from bridle.core import Domain, Function, InputError
from bridle.domains.facets import facets
from bridle.ops import Array

Pieces: TypeAlias = tuple[Function, ...]
"""Sequences of functions, each a record with a leading time axis: its values at one x are (n, 1), its gradients (n, d)."""

AFFINE_PIECES = (functions.AffineFunction, functions.Coordinate)
BENT_PIECES = (functions.LogisticLoss, functions.LogWealthLoss)
"""Smooth functions whose curvature is not the same everywhere."""

SMOOTH_PIECES = (*AFFINE_PIECES, functions.RoundQuadratic, functions.QuadraticForm, *BENT_PIECES)


class BallLimit(NamedTuple):
    """(|x - middle|^2 - radius^2) / 2 over the coordinates where `inside` is 1: a ball, perhaps one of several in a product."""

    inside: Array
    middle: Array
    radius: Array

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Array:
        away = self.inside * (x - self.middle)
        return np.asarray(0.5 * ((away * away).sum(axis=-1, keepdims=True) - self.radius**2))

    def grad(self, x: Array) -> Array:
        return np.asarray(self.inside * (x - self.middle))


class Region(NamedTuple):
    """A domain as solvers take it: x = origin + N y with A y <= b and `curved` <= 0; y has only free directions, in units of the diameter.

    The parts of x that `cones` names are positive semidefinite matrices.
    `known` is False where nothing can be said about the domain but its projection: all of space then stands for it.
    """

    origin: Array
    N: Array
    A: Array
    b: Array
    curved: Pieces = ()
    cones: tuple[slice, ...] = ()
    known: bool = True


def region(domain: Domain) -> Region:
    """The domain as solvers take it."""
    d, origin, unit = domain.dim, np.asarray(domain.center(), dtype=float), float(domain.diameter()) or 1.0
    inequalities = facets(domain)
    if inequalities is None:
        return Region(origin, unit * np.eye(d), np.zeros((0, d)), np.zeros(0), known=False)
    (A, b), (E, _), more = inequalities.inequalities(), inequalities.equalities(), inequalities.more
    start = np.concatenate([origin, np.full(more, unit / (4.0 * max(more, 1)))])
    free = np.eye(len(start))
    if len(E):
        _, sizes, axes = np.linalg.svd(E)
        free = axes[int((sizes > 1e-12 * sizes[0]).sum()) :].T
    curved = tuple(BallLimit(inside[None], middle[None], np.full((1, 1), radius)) for inside, middle, radius in inequalities.balls)
    cones = tuple(slice(cone.start, cone.start + cone.length) for cone in inequalities.cones)
    return Region(origin, unit * free[:d], unit * A @ free, b - A @ start, curved, cones)


def pieces(function: Function) -> Pieces | None:
    """Smooth sequences whose pointwise maximum is `function` (a widened sequence); None where there are none to be had."""
    if isinstance(function, SMOOTH_PIECES):
        return (function,)
    if isinstance(function, functions.HingeLoss):
        slope, level = -1.0 * function.weight * function.label * function.a, function.weight * function.margin
        return functions.AffineFunction(slope, level), functions.AffineFunction(0.0 * slope, 0.0 * level)
    if isinstance(function, functions.Deviation):
        return functions.AffineFunction(function.a, -function.b), functions.AffineFunction(-function.a, function.b)
    if isinstance(function, functions.CoordinateDeviation):
        up = np.ones_like(function.target)
        return functions.Coordinate(function.j, up, function.target), functions.Coordinate(function.j, -up, function.target)
    if isinstance(function, functions.MaximumOf):
        parts = [pieces(part) for part in function.functions]
        return None if any(part is None for part in parts) else tuple(piece for part in parts for piece in part or ())
    return None


def curvature(function: Function, x: Array, weights: Array) -> Array:
    """The sum over t of weights[t] times the Hessian at x of function t of a smooth sequence."""
    d = len(x)
    if isinstance(function, functions.RoundQuadratic):
        return np.asarray(np.eye(d) * float(weights @ np.asarray(function.curvature)[:, 0]))
    if isinstance(function, functions.QuadraticForm):
        return np.asarray(np.tensordot(weights, function.P, 1))
    if isinstance(function, functions.LogisticLoss):
        half = np.tanh(0.5 * (function.a @ x))
        bend = 0.25 * weights * np.asarray(function.weight)[:, 0] * (1.0 - half) * (1.0 + half)
        return np.asarray((function.a * bend[:, None]).T @ function.a)
    if isinstance(function, functions.LogWealthLoss):
        bend = weights / np.maximum(function.a @ x, np.asarray(function.floor)[:, 0]) ** 2
        return np.asarray((function.a * bend[:, None]).T @ function.a)
    if isinstance(function, BallLimit):
        return np.diag(weights @ function.inside)
    return np.zeros((d, d))


class ConvexProgram(NamedTuple):
    """Minimise the sum of `sums`, of the maxima over each tuple in `maxima`, and of the maximum over `top`, where `limits` are <= 0."""

    region: Region
    sums: Pieces = ()
    maxima: tuple[Pieces, ...] = ()
    top: Pieces = ()
    limits: Pieces = ()

    @property
    def linear(self) -> bool:
        """Whether it is a linear program."""
        parts = (*self.sums, *self.top, *self.limits)
        return (
            not self.maxima and not self.region.curved and not self.region.cones and all(isinstance(part, AFFINE_PIECES) for part in parts)
        )


class Solution(NamedTuple):
    """A point and the weights that prove how good it is: of the pieces of each maximum, of those of the top, and of the limits."""

    x: Array
    maxima: list[Array]
    top: Array
    limits: Array


def evaluate(parts: Pieces, x: Array) -> tuple[Array, Array]:
    """Values (m,) and gradients (m, d) at x of the sequences in `parts`, one after the other."""
    values = [np.asarray(part.value(x))[:, 0] for part in parts]
    rows = [np.broadcast_to(part.grad(x), (len(value), len(x))) for part, value in zip(parts, values, strict=True)]
    return (np.concatenate(values), np.concatenate(rows)) if parts else (np.zeros(0), np.zeros((0, len(x))))


def length(part: Function, x: Array) -> int:
    """How many functions there are in a sequence."""
    return len(np.asarray(part.value(x)))


def shares(part: Function, x: Array, domain: Domain) -> Array:
    """The values at x of a sequence, each relative to how much its function varies over the domain."""
    values, rows = evaluate((part,), x)
    size = np.maximum(np.linalg.norm(rows, axis=1) * domain.diameter(), np.abs(evaluate((part,), np.asarray(domain.center()))[0]))
    return np.asarray(values / np.where(size > 0.0, size, 1.0))


def inside(domain: Domain, x: Array) -> Array:
    """A solver's answer, put into the domain where rounding left it a little outside."""
    try:
        return np.asarray(domain.project(x))
    except InputError:  # a polyhedron without a solver for its projections
        return x


def objective(program: ConvexProgram, x: Array) -> float:
    """What is minimised, at x."""
    value = sum(float(np.sum(part.value(x))) for part in program.sums)
    value += sum(float(np.max([np.asarray(piece.value(x))[:, 0] for piece in group], axis=0).sum()) for group in program.maxima)
    return value + (float(evaluate(program.top, x)[0].max()) if program.top else 0.0)


def lower_bound(program: ConvexProgram, domain: Domain, x: Array, solution: Solution) -> float:
    """A lower bound on the objective over the part of the domain where the limits hold, proved by the weights of `solution`.

    Every function lies above its tangent at x. A maximum is at least any average of its pieces, and a limit times a multiplier can be
    added for free where the limit holds. What is left is affine, and `linear_min` gives its least value.
    """
    value, slope = 0.0, np.zeros(len(x))
    for part in program.sums:
        value += float(np.sum(part.value(x)))
        slope = slope + np.asarray(part.grad(x)).sum(axis=0)
    for group, weights in zip(program.maxima, solution.maxima, strict=True):
        for piece, weight in zip(group, (weights / weights.sum(axis=1, keepdims=True)).T, strict=True):
            value += float(weight @ np.asarray(piece.value(x))[:, 0])
            slope = slope + weight @ piece.grad(x)
    for parts, weight in ((program.top, solution.top / max(solution.top.sum(), 1e-300)), (program.limits, solution.limits)):
        values, rows = evaluate(parts, x)
        value += float(weight @ values)
        slope = slope + weight @ rows
    return value + float(domain.linear_min(slope)) - float(slope @ x)
