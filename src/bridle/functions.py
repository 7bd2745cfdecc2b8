"""Costs and constraints as records: values and subgradients, for one decision or many.

Each is a NamedTuple of arrays. A leading time axis on all of them makes it a sequence of functions; a leading run axis makes it one
function per run. The public names are factories that check what they are given.

>>> g = Affine([3.0, 4.0], -2.0)
>>> g.value(np.array([1.0, 0.0])), g.grad(np.array([1.0, 0.0]))
(1.0, array([3., 4.]))
"""

from __future__ import annotations

from collections.abc import Callable as PyCallable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bridle import ops, validate
from bridle.core import Function, InputError
from bridle.ops import Array, Scalar, dot


class AffineFunction(NamedTuple):
    """<a, x> + b."""

    a: Array
    b: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return dot(self.a, x) + self.b

    def grad(self, x: Array) -> Array:
        return self.a

    def total(self) -> AffineFunction:
        """The sum of a sequence of these, again as one."""
        return AffineFunction(self.a.sum(axis=0), float(np.sum(self.b)))


class AffineRows(NamedTuple):
    """k affine functions at once: A x + b."""

    A: Array
    b: Array

    @property
    def convex(self) -> bool:
        return True

    @property
    def several(self) -> bool:
        return True

    def value(self, x: Array) -> Array:
        if self.A.ndim == 2 and x.ndim == 1:
            return self.A @ x + self.b
        return (self.A @ x[..., None])[..., 0] + self.b

    def grad(self, x: Array) -> Array:
        return self.A


class RoundQuadratic(NamedTuple):
    """(curvature / 2) |x - c|^2 + <a, x> + b: equally curved in every direction."""

    curvature: Scalar
    c: Array
    a: Array
    b: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        away = x - self.c
        return 0.5 * self.curvature * dot(away, away) + dot(self.a, x) + self.b

    def grad(self, x: Array) -> Array:
        return self.curvature * (x - self.c) + self.a

    def total(self) -> RoundQuadratic:
        """The sum of a sequence of these, again as one."""
        curvature = np.asarray(self.curvature).reshape(len(self.c), 1)
        weight = float(curvature.sum())
        middle = (curvature * self.c).sum(axis=0) / weight if weight > 0 else self.c[0]
        spread = 0.5 * (curvature * (self.c - middle) ** 2).sum()  # what is lost by moving every centre to the middle
        return RoundQuadratic(weight, middle, self.a.sum(axis=0), float(np.sum(self.b) + spread))


class QuadraticForm(NamedTuple):
    """x' P x / 2 + <a, x> + b, with P symmetric and positive semidefinite."""

    P: Array
    a: Array
    b: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return 0.5 * dot(x, self._times(x)) + dot(self.a, x) + self.b

    def grad(self, x: Array) -> Array:
        return self._times(x) + self.a

    def _times(self, x: Array) -> Array:
        return (self.P @ x[..., None])[..., 0]

    def total(self) -> QuadraticForm:
        """The sum of a sequence of these, again as one."""
        return QuadraticForm(self.P.sum(axis=0), self.a.sum(axis=0), float(np.sum(self.b)))


class LogisticLoss(NamedTuple):
    """weight * ln(1 + exp(-label <a, x>)): the loss of a linear classifier on one example, label +1 or -1."""

    a: Array
    label: Scalar
    weight: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return self.weight * ops.softplus(-self.label * dot(self.a, x))

    def grad(self, x: Array) -> Array:
        # e^{-softplus(m)} is 1 / (1 + e^m) to full relative precision, however small: scale-free learners see small gradients too.
        return (-1.0 * self.weight * self.label * ops.exp(-ops.softplus(self.label * dot(self.a, x)))) * self.a


class Excess(NamedTuple):
    """How much a function is above a limit: as a constraint, the function at most that."""

    function: Function
    limit: Scalar

    @property
    def convex(self) -> bool:
        return bool(self.function.convex)

    def value(self, x: Array) -> Scalar:
        return self.function.value(x) - self.limit

    def grad(self, x: Array) -> Array:
        return self.function.grad(x)


class LogWealthLoss(NamedTuple):
    """-ln <a, x> where <a, x> is at least `floor`, and below it the parabola that goes on from there: convex and finite everywhere."""

    a: Array
    floor: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        level, below = self._split(x)
        short = below / level
        return 0.5 * short * short - short - ops.log(level)

    def grad(self, x: Array) -> Array:
        level, below = self._split(x)
        return ((below / level - 1.0) / level) * self.a

    def _split(self, x: Array) -> tuple[Scalar, Scalar]:
        """<a, x> as a part that is not below the floor, and the rest, which is 0 where that is all."""
        growth = dot(self.a, x)
        level = ops.maximum(growth, self.floor)
        return level, growth - level


class HingeLoss(NamedTuple):
    """weight * max(0, margin - label <a, x>)."""

    a: Array
    label: Scalar
    margin: Scalar
    weight: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return self.weight * ops.pos(self.margin - self.label * dot(self.a, x))

    def grad(self, x: Array) -> Array:
        short = self.margin - self.label * dot(self.a, x) > 0.0
        return (-1.0 * self.weight * self.label * short) * self.a


class Deviation(NamedTuple):
    """|<a, x> - b|; the subgradient at the kink is zero."""

    a: Array
    b: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return abs(dot(self.a, x) - self.b)  # type: ignore[return-value]

    def grad(self, x: Array) -> Array:
        gap = dot(self.a, x) - self.b
        return ((gap > 0.0) * 1.0 - (gap < 0.0) * 1.0) * self.a


class Coordinate(NamedTuple):
    """sign * (x_j - target): an affine function of one coordinate, stored without its d - 1 zeros; j is a whole number held as a float."""

    j: Scalar
    sign: Scalar
    target: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return self.sign * (dot(ops.onehot(self.j, x), x) - self.target)

    def grad(self, x: Array) -> Array:
        return self.sign * ops.onehot(self.j, x)


class CoordinateDeviation(NamedTuple):
    """|x_j - target|, stored without its d - 1 zeros; the subgradient at the kink is zero."""

    j: Scalar
    target: Scalar

    @property
    def convex(self) -> bool:
        return True

    def value(self, x: Array) -> Scalar:
        return abs(dot(ops.onehot(self.j, x), x) - self.target)  # type: ignore[return-value]

    def grad(self, x: Array) -> Array:
        unit = ops.onehot(self.j, x)
        gap = dot(unit, x) - self.target
        return ((gap > 0.0) * 1.0 - (gap < 0.0) * 1.0) * unit


AFFINE_FUNCTIONS = (AffineFunction, AffineRows, Coordinate)
"""The records that are affine in x: what a policy learns of them at one decision holds everywhere."""


class MaximumOf(NamedTuple):
    """The pointwise maximum of several functions; the lowest index on ties."""

    functions: tuple[Function, ...]

    @property
    def convex(self) -> bool:
        return all(function.convex for function in self.functions)

    def value(self, x: Array) -> Scalar:
        best = self.functions[0].value(x)
        for function in self.functions[1:]:
            best = ops.maximum(best, function.value(x))
        return best

    def grad(self, x: Array) -> Array:
        best, grad = self.functions[0].value(x), self.functions[0].grad(x)
        for function in self.functions[1:]:
            value = function.value(x)
            grad = ops.where(value > best, function.grad(x), grad)
            best = ops.maximum(best, value)
        return grad


class Opaque(NamedTuple):
    """A pair of Python callables, value and gradient; nothing can compile it, so the Python engine alone runs it."""

    of: PyCallable[[Array], float]
    gradient: PyCallable[[Array], ArrayLike]
    declared: float  # 1.0 where the author says it is convex

    @property
    def compiled(self) -> bool:
        return False

    @property
    def convex(self) -> bool:
        return self.declared == 1.0

    def value(self, x: Array) -> Scalar:
        if x.ndim == 1:
            return float(self.of(x))
        return np.array([float(self.of(row)) for row in x.reshape(-1, x.shape[-1])]).reshape(*x.shape[:-1], 1)

    def grad(self, x: Array) -> Array:
        if x.ndim == 1:
            return np.asarray(self.gradient(x), dtype=float)
        return np.array([self.gradient(row) for row in x.reshape(-1, x.shape[-1])], dtype=float).reshape(x.shape)


def Affine(a: ArrayLike, b: ArrayLike = 0.0) -> AffineFunction | AffineRows:
    """<a, x> + b; with a matrix `a` and a vector `b`, one function per row.

    >>> Affine([[1.0, 0.0], [0.0, 1.0]], [0.0, -1.0]).value(np.array([2.0, 3.0]))
    array([2., 2.])
    """
    normal = validate.array("a", a)
    if normal.ndim == 2 and normal.size:
        offsets = validate.array("b", b)
        return AffineRows(normal, validate.vector("b", np.full(len(normal), offsets) if offsets.ndim == 0 else offsets, len(normal)))
    return AffineFunction(validate.vector("a", a), validate.number("b", b))


def Quadratic(
    curvature: ArrayLike, center: ArrayLike | None = None, linear: ArrayLike | None = None, offset: float = 0.0
) -> RoundQuadratic | QuadraticForm:
    """(1/2) (x - center)' P (x - center) + <linear, x> + offset, where `curvature` is the matrix P or a number times the identity.

    >>> Quadratic(2.0, center=[1.0, 1.0]).value(np.array([0.0, 0.0]))
    2.0
    """
    b = validate.number("offset", offset)
    P = validate.array("curvature", curvature)
    if P.ndim == 0:
        if center is None and linear is None:
            raise InputError("center or linear must be given with a number as curvature: the dimension is unknown otherwise")
        c = np.zeros(len(validate.vector("linear", linear))) if center is None else validate.vector("center", center)
        a = np.zeros(len(c)) if linear is None else validate.vector("linear", linear, len(c))
        return RoundQuadratic(validate.nonnegative("curvature", curvature), c, a, b)
    if P.ndim != 2 or P.shape[0] != P.shape[1] or P.size == 0:
        raise InputError(f"curvature must be a number or a square matrix, not an array of shape {P.shape}")
    if not np.allclose(P, P.T, rtol=1e-12, atol=0.0):
        raise InputError(f"curvature must be a symmetric matrix, not {validate.show(curvature)}")
    least = float(np.linalg.eigvalsh(P)[0])
    if least < -1e-12 * max(1.0, float(abs(P).max())):
        raise InputError(f"curvature must be positive semidefinite; its smallest eigenvalue is {least:.3g}")
    c = np.zeros(len(P)) if center is None else validate.vector("center", center, len(P))
    a = np.zeros(len(P)) if linear is None else validate.vector("linear", linear, len(P))
    return QuadraticForm(P, a - P @ c, b + 0.5 * float(c @ P @ c))


def Logistic(features: ArrayLike, label: float, weight: float = 1.0) -> LogisticLoss:
    """The logistic loss of a linear classifier on one example.

    >>> round(Logistic([1.0, 2.0], 1).value(np.zeros(2)), 6)
    0.693147
    """
    return LogisticLoss(validate.vector("features", features), _label(label), validate.nonnegative("weight", weight))


def LogWealth(returns: ArrayLike, floor: float = 1e-3) -> LogWealthLoss:
    """The logarithm of wealth that a period costs: -ln <returns, x>, x the share of wealth in each asset, returns as price relatives.

    Where <returns, x> is below `floor` the function goes on as a parabola, so that it is convex and finite for every x.

    >>> round(LogWealth([1.1, 0.9]).value(np.array([0.75, 0.25])), 6)
    -0.04879
    """
    return LogWealthLoss(validate.vector("returns", returns), validate.positive("floor", floor))


def Hinge(features: ArrayLike, label: float, margin: float = 1.0, weight: float = 1.0) -> HingeLoss:
    """The hinge loss of a linear classifier on one example.

    >>> Hinge([1.0, 2.0], -1).value(np.array([1.0, 0.0]))
    2.0
    """
    return HingeLoss(
        validate.vector("features", features), _label(label), validate.number("margin", margin), validate.nonnegative("weight", weight)
    )


def AbsoluteDeviation(a: ArrayLike, b: float = 0.0) -> Deviation:
    """|<a, x> - b|.

    >>> AbsoluteDeviation([1.0, 1.0], 3.0).value(np.array([1.0, 1.0]))
    1.0
    """
    return Deviation(validate.vector("a", a), validate.number("b", b))


def Maximum(*functions: Function) -> MaximumOf:
    """The pointwise maximum of several functions.

    >>> Maximum(Affine([1.0]), Affine([-1.0])).value(np.array([-3.0]))
    3.0
    """
    if not functions:
        raise InputError("functions must hold at least one function, not ()")
    for i, function in enumerate(functions):
        if not (hasattr(function, "value") and hasattr(function, "grad")):
            raise InputError(f"functions[{i}] must be a function such as bridle.Affine([1.0]), not {validate.show(function)}")
        if getattr(function, "several", False):
            raise InputError(f"functions[{i}] must be one function, not the rows of {validate.show(function)}: give them one by one")
    return MaximumOf(tuple(functions))


def Callable(value: PyCallable[[Array], float], grad: PyCallable[[Array], ArrayLike], convex: bool = True) -> Opaque:
    """Any pair of Python callables: the value at x and a subgradient at x.

    >>> Callable(lambda x: float(x @ x), lambda x: 2 * x).grad(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    for name, function in (("value", value), ("grad", grad)):
        if not callable(function):
            raise InputError(f"{name} must be callable, not {validate.show(function)}")
    return Opaque(value, grad, 1.0 if convex else 0.0)


def _label(label: object) -> float:
    result = validate.number("label", label)
    if result not in (1.0, -1.0):
        raise InputError(f"label must be +1 or -1, not {validate.show(label)}")
    return result
