"""The array operations that Python's operators do not spell, for every kind of array.

An algorithm written with operators and these functions runs one round at a time on floats and NumPy arrays, and unchanged inside a
compiler's trace. The float and ndarray path comes first because it is the one that pays per call; any other kind of array is
announced by its engine with `register`.

Axes: a decision is ``(d,)`` for one run and ``(B, d)`` for B runs; a scalar is ``()`` for one run and ``(B, 1)`` for B runs, so plain
broadcasting batches. Functions that reduce the last axis keep to that rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Literal, Protocol, TypeAlias, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
"""An array of floats: NumPy's, or of a kind that an engine has registered, which to an algorithm looks the same."""

Scalar: TypeAlias = float | Array
"""A number of one run, as a float, or of each of several, as an array ``(B, 1)``."""

Flag: TypeAlias = bool | NDArray[np.bool_]
"""A comparison of scalars: of one run, or of each of several."""

Number = TypeVar("Number", bound=Scalar)
"""A scalar or an array: what comes out is of the kind that went in."""

Namespace: TypeAlias = ModuleType | SimpleNamespace
"""NumPy's function names for one kind of array."""

_NAMESPACES: list[tuple[type, Namespace]] = []


def register(kind: type, namespace: Namespace) -> None:
    """Make arrays of type `kind` known: `namespace` offers NumPy's function names for them."""
    if (kind, namespace) not in _NAMESPACES:
        _NAMESPACES.append((kind, namespace))


def namespace(*arrays: object) -> Namespace:
    """The module whose functions work on these arrays: numpy, unless one of them is of a registered kind."""
    for kind, module in _NAMESPACES:
        for array in arrays:
            if isinstance(array, kind):
                return module
    return np


def _elementwise(name: str, on_float: Callable[[float], float]) -> Callable[[Number], Number]:
    on_array = getattr(np, name)

    def apply(x: Number) -> Number:
        if isinstance(x, float):
            return on_float(x)  # type: ignore[return-value]
        if isinstance(x, np.ndarray):
            return on_array(x)
        return getattr(namespace(x), name)(x)

    apply.__name__ = name
    return apply


sqrt = _elementwise("sqrt", math.sqrt)
exp = _elementwise("exp", math.exp)
log = _elementwise("log", math.log)
cos = _elementwise("cos", math.cos)
absolute: Callable[[Number], Number] = abs  # type: ignore[assignment]  # the built-in, whose declared type loses the kind
floor = _elementwise("floor", lambda x: float(math.floor(x)) if math.isfinite(x) else x)


class OperationOfTwo(Protocol):
    """An operation on two numbers or arrays: a float of two floats, an array where one of them is an array."""

    @overload
    def __call__(self, a: float, b: float) -> float: ...
    @overload
    def __call__(self, a: Array, b: Scalar) -> Array: ...
    @overload
    def __call__(self, a: Scalar, b: Array) -> Array: ...
    @overload
    def __call__(self, a: Scalar, b: Scalar) -> Scalar: ...


def _of_two(operation: Callable[[Scalar, Scalar], Scalar]) -> OperationOfTwo:
    """The function itself, under the type that says which kind comes out."""
    return cast(OperationOfTwo, operation)


@_of_two
def maximum(a: Scalar, b: Scalar) -> Scalar:
    """The larger of the two, elementwise."""
    if isinstance(a, float) and isinstance(b, float):
        return a if a >= b else b
    if isinstance(a, np.ndarray) and isinstance(b, (float, np.ndarray)):
        return np.maximum(a, b)
    return namespace(a, b).maximum(a, b)


@_of_two
def minimum(a: Scalar, b: Scalar) -> Scalar:
    """The smaller of the two, elementwise."""
    if isinstance(a, float) and isinstance(b, float):
        return a if a <= b else b
    if isinstance(a, np.ndarray) and isinstance(b, (float, np.ndarray)):
        return np.minimum(a, b)
    return namespace(a, b).minimum(a, b)


def pos(x: Number) -> Number:
    """The positive part, (x)^+."""
    return maximum(x, 0.0)  # type: ignore[return-value]


def softplus(x: Number) -> Number:
    """ln(1 + e^x) without overflow."""
    if isinstance(x, float):
        return maximum(x, 0.0) + math.log1p(math.exp(-abs(x)))  # type: ignore[return-value]
    return namespace(x).logaddexp(x, 0.0)


def sigmoid(x: Number) -> Number:
    """1 / (1 + e^-x) without overflow, to full relative precision also where it is tiny.

    >>> sigmoid(0.0), sigmoid(-800.0)
    (0.5, 0.0)
    """
    if isinstance(x, float):
        e = math.exp(-abs(x))
        return (1.0 if x >= 0.0 else e) / (1.0 + e)  # type: ignore[return-value]
    small = exp(-abs(x))
    return namespace(x).where(x >= 0.0, 1.0, small) / (1.0 + small)


@_of_two
def ratio(a: Scalar, b: Scalar) -> Scalar:
    """a / b, and 0 where b is 0: the step "stay" of an accumulator that has seen nothing."""
    if isinstance(b, float):
        return a / b if b != 0.0 else 0.0 * a
    if isinstance(b, np.ndarray) and np.count_nonzero(b) == b.size:
        return a / b
    xp = namespace(a, b)
    empty = b == 0.0
    return xp.where(empty, 0.0, a / xp.where(empty, 1.0, b))


@overload
def where(flag: Flag, a: Array, b: Array) -> Array: ...
@overload
def where(flag: Flag, a: Scalar, b: Scalar) -> Scalar: ...
def where(flag: Flag, a: Scalar, b: Scalar) -> Scalar:
    """`a` where `flag` holds, else `b`; `flag` is a scalar of one run or of each run."""
    if isinstance(flag, (bool, np.bool_)):
        return a if flag else b
    return namespace(flag, a, b).where(flag, a, b)


def dot(a: Array, b: Array) -> Scalar:
    """The inner product over the last axis: a float for vectors, ``(..., 1)`` otherwise."""
    if a.ndim == 1 and b.ndim == 1:
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return float(a.dot(b))
        product = getattr(namespace(a, b), "bridle_dot", None)
        return (a * b).sum() if product is None else product(a, b)
    return (a * b).sum(axis=-1, keepdims=True)


def along(x: Array | NDArray[np.bool_], reduction: Literal["sum", "max", "min"]) -> Scalar:
    """The sum, or the largest or smallest entry, of the last axis: a scalar in the sense of `dot`.

    >>> float(along(np.array([1.0, 5.0, 2.0]), "max")), along(np.ones((2, 3)), "sum").shape
    (5.0, (2, 1))
    """
    if x.ndim == 1:
        reduced: Scalar = getattr(x, reduction)()
    elif isinstance(x, np.ndarray):
        reduced = getattr(x, reduction)(axis=-1, keepdims=True)
    else:
        reduced = getattr(namespace(x), reduction)(x, axis=-1, keepdims=True)
    return reduced


def descend(x: Array, step: Scalar, grad: Array) -> Array:
    """x - step * grad."""
    if isinstance(x, np.ndarray):
        return x - step * grad
    fused = getattr(namespace(x, grad), "bridle_descend", None)
    return x - step * grad if fused is None else fused(x, step, grad)


def concrete(flag: Flag) -> Flag:
    """The flag as a Python bool if its value is known; unchanged inside a compiler's trace."""
    if isinstance(flag, (bool, np.bool_, np.ndarray)):
        return flag
    ask = getattr(namespace(flag), "bridle_concrete", None)
    return flag if ask is None else ask(flag)


def norm(a: Array) -> Scalar:
    """The Euclidean length along the last axis, a scalar in the sense of `dot`."""
    return sqrt(dot(a, a))


def combine(weights: Array, rows: Array) -> Array:
    """Sum over i of weights[..., i] * rows[..., i, :]."""
    if weights.ndim == 1 and rows.ndim == 2:
        return weights @ rows
    return (weights[..., None, :] @ rows)[..., 0, :]


def scalar(x: Array, value: float = 0.0) -> Scalar:
    """A scalar `value` for every run that the decision `x` stands for."""
    if x.ndim == 1:
        return value
    return np.full((*x.shape[:-1], 1), value) if isinstance(x, np.ndarray) else namespace(x).full((*x.shape[:-1], 1), value)


def vector(x: Array, like: Array) -> Array:
    """Zeros as long as the last axis of `like`, one for every run that the decision `x` stands for."""
    return np.zeros((*x.shape[:-1], like.shape[-1])) if isinstance(x, np.ndarray) else namespace(x).zeros((*x.shape[:-1], like.shape[-1]))


def worst(g: Array, dg: Array) -> tuple[Scalar, Array]:
    """The largest of the k constraints and its gradient; the lowest index on ties.

    >>> import numpy as np
    >>> worst(np.array([0.5, 2.0, 2.0]), np.eye(3))
    (2.0, array([0., 1., 0.]))
    """
    if g.shape[-1] == 1:
        return (first(g) if g.ndim == 1 else g), dg[..., 0, :]
    if isinstance(g, np.ndarray) and g.ndim == 1:
        j = int(g.argmax())
        return float(g[j]), dg[j] if dg.ndim == 2 else dg[..., j, :]
    xp = namespace(g, dg)
    j = xp.argmax(g, axis=-1)[..., None]
    value = xp.take_along_axis(g, j, axis=-1)
    rows = xp.broadcast_to(dg, (*g.shape, dg.shape[-1]))
    row = xp.take_along_axis(rows, j[..., None], axis=-2)[..., 0, :]
    return (value if g.ndim > 1 else value[0]), row


def put(rows: Array, place: Scalar, row: Array, flag: Flag) -> Array:
    """`rows` with `row` at `place` (a whole number held as a float) along the runs' first own axis, where `flag` holds.

    >>> import numpy as np
    >>> put(np.zeros((2, 2)), 1.0, np.ones(2), True)
    array([[0., 0.],
           [1., 1.]])
    """
    if isinstance(flag, (bool, np.bool_)):
        if flag:
            rows = rows.copy()
            rows[int(place)] = row
        return rows
    here = flag * (namespace(rows).arange(float(rows.shape[-2])) == place)
    return where(here[..., None] > 0.0, row[..., None, :], rows)


def first(x: Array) -> float:
    """The only element of a one-element vector, as a scalar."""
    return float(x[0]) if isinstance(x, np.ndarray) else x[0]


def running_max(x: Array) -> Array:
    """The largest entry so far of a vector of numbers that are 0 or above.

    >>> running_max(np.array([1.0, 3.0, 2.0]))
    array([1., 3., 3.])
    """
    if isinstance(x, np.ndarray):
        return np.maximum.accumulate(x)
    xp = namespace(x)
    order = xp.arange(x.shape[0])
    return xp.where(order[None, :] <= order[:, None], x[None, :], 0.0).max(-1)


def onehot(j: Scalar, x: Array) -> Array:
    """The unit vector of coordinate `j` (a whole number held as a float), as long as the decision `x`."""
    return (namespace(j, x).arange(float(x.shape[-1])) == j) * 1.0


def columns(*parts: Scalar) -> Array:
    """The parts side by side along a new last axis."""
    return namespace(*parts).stack(parts, axis=-1)


def join(parts: Sequence[Array], axis: int) -> Array:
    """The parts one after the other along `axis`."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts, axis=axis)
    return namespace(*parts).concatenate(parts, axis=axis)
