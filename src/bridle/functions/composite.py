"""Functions made of others: one above a limit, the largest of several, and Python callables."""

from __future__ import annotations

from collections.abc import Callable as PyCallable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bridle import ops, showing, validate
from bridle.core import Function, InputError
from bridle.ops import Array, Scalar


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


def Maximum(*functions: Function) -> MaximumOf:
    """The largest of several functions at every point.

    Parameters
    ----------
    *functions : Function
        The functions, at least one. Of those that are equal at a point, the first gives the gradient.

    Examples
    --------
    >>> from bridle.functions import Affine
    >>> Maximum(Affine([1.0]), Affine([-1.0])).value(np.array([-3.0]))
    3.0
    """
    if not functions:
        raise InputError("functions must hold at least one function, not ()")
    for i, function in enumerate(functions):
        if not (hasattr(function, "value") and hasattr(function, "grad")):
            raise validate.refused(f"functions[{i}] must be a function such as bridle.Affine([1.0])", function)
        if getattr(function, "several", False):
            raise InputError(f"functions[{i}] must be one function, not the rows of {validate.show(function)}: give them one by one")
    return MaximumOf(tuple(functions))


@showing.shown("Callable", of="value", gradient="grad", declared="convex")
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
            return _single(self.of(x))
        return np.array([_single(self.of(row)) for row in x.reshape(-1, x.shape[-1])]).reshape(*x.shape[:-1], 1)

    def grad(self, x: Array) -> Array:
        if x.ndim == 1:
            return validate.floats("the gradient of a Callable", self.gradient(x), "an array of numbers")
        rows = [self.gradient(row) for row in x.reshape(-1, x.shape[-1])]
        return validate.floats("the gradient of a Callable", rows, "an array of numbers").reshape(x.shape)


def _single(value: object) -> float:
    """The value of a Python function, which may be infinite."""
    if type(value) is float:
        return value
    result = validate.floats("the value of a Callable", value, "a number")
    if result.ndim:
        raise InputError(f"the value of a Callable must be a number, not an array of shape {result.shape}")
    return float(result)


def Callable(value: PyCallable[[Array], float], grad: PyCallable[[Array], ArrayLike], convex: bool = True) -> Opaque:
    """Any pair of Python functions as a cost or a constraint: the value at x and a subgradient at x.

    No engine can compile it: games with it run on the Python engine alone.

    Parameters
    ----------
    value : callable
        Takes an action of shape (d,) and gives a number.
    grad : callable
        Takes an action of shape (d,) and gives an array of shape (d,).
    convex : bool, default True
        Whether the function is convex. It is not checked; where it is False, no theorem applies.

    Examples
    --------
    >>> Callable(lambda x: float(x @ x), lambda x: 2 * x).grad(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    for name, function in (("value", value), ("grad", grad)):
        if not callable(function):
            raise validate.refused(f"{name} must be callable", function)
    return Opaque(value, grad, 1.0 if convex else 0.0)
