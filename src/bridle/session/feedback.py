"""What a caller hands to a session, checked: numbers that become a `Feedback`, and functions to be evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from bridle import engines, validate
from bridle.core import Feedback, InputError, Unavailable
from bridle.engines import Differentiates
from bridle.ops import Array

LARGEST = 1e70
"""Numbers of a larger size are refused: they come from a broken source, and the squared products of two of them would not be finite."""


FLOAT = np.dtype(float)

Numbers: TypeAlias = ArrayLike | None
"""What a caller gives, or leaves out."""


GONE = {
    "context": "test your functions before the first round with bridle.checks.check_functions",
    "partial": "keep the half that came first, and give the cost and the constraints of a ticket together",
}
"""What `observe` no longer takes, and what to do instead."""


def refuse_gone(given: Mapping[str, object]) -> None:
    """Complain about an argument of `observe` that it does not have, or no longer has."""
    for name in given:
        instead = f"is gone: {GONE[name]}" if name in GONE else "is not an argument of it"
        raise (InputError if name in GONE else TypeError)(f"observe: {name} {instead}")


def floats(one: tuple[int, ...], f: object, df: object, g: object, dg: object) -> int:
    """The number of constraints, if f is a float and the rest are arrays of floats of the right shapes (g may be a float); else 0.

    `one` is the shape of a decision. The numbers themselves are not looked at.
    """
    if df.__class__ is not ndarray or dg.__class__ is not ndarray or df.dtype is not FLOAT or dg.dtype is not FLOAT:
        return 0
    shape = dg.shape
    if df.shape != one or (f.__class__ is not float and not isinstance(f, float)):
        return 0
    if g.__class__ is float or isinstance(g, float):
        return 1 if shape == one or shape == (1, *one) else 0
    if g.__class__ is not ndarray or g.dtype is not FLOAT or g.ndim != 1:
        return 0
    k = len(g)
    return k if shape == (k, *one) or (k == 1 and shape == one) else 0


MOST_CONSTRAINTS, GROWTH = 1000, 10
"""A record may have so many constraints, or so many times more than any before it (the first, so many times as many), unless told."""


class Limits(NamedTuple):
    """What a record may be: how large a number, how many constraints where that is fixed, and at most how many where it is not.

    `names` are those of the constraints, where the user has given some.
    """

    largest: float = LARGEST
    k: int | None = None
    most: int | None = None
    names: tuple[str, ...] = ()


def checked_feedback(
    x: Array, limits: Limits, f: ArrayLike, df: Numbers, g: Numbers, dg: Numbers, modulus: Numbers = None, *, seen: int | None = None
) -> Feedback:
    """The feedback at x of numbers in any of the accepted forms; `seen` is the most constraints that a record has had so far.

    Sums of squares may overflow: to be called where NumPy does not warn of that.
    """
    d, (largest, k, most, names) = len(x), limits
    none: float | None = None  # 0 where there is no cost: then there is no curvature either, whatever the policy was told of costs
    if modulus is None and isinstance(f, float):  # what is left out is zero, as below
        if df is None and f == 0.0:
            df, none = np.zeros(d), 0.0
        if g is None and dg is None:
            g, dg = np.zeros(k or 1), np.zeros((k or 1, d))
    number = floats(x.shape, f, df, g, dg) if modulus is None else 0
    if number and (k == number or (k is None and number <= (most or MOST_CONSTRAINTS))):
        cost: float = float(f)  # type: ignore[arg-type]  # `floats` has seen what they are
        slope: Array = df.copy()  # type: ignore[union-attr]
        slopes: Array = dg.copy().reshape(number, d)  # type: ignore[union-attr]
        values: Array = np.array(g, ndmin=1)
        rows = slopes[0] if number == 1 else slopes.reshape(-1)
        squares = cost * cost + slope.dot(slope) + values.dot(values) + rows.dot(rows)
        if squares <= largest * largest:  # then every number is finite, and none too large
            return Feedback(x, cost, slope, values, slopes, none)
        f, df, g, dg = cost, slope, values, slopes
    if k is None and most is None:
        most = max(MOST_CONSTRAINTS, GROWTH * (MOST_CONSTRAINTS if seen is None else seen))
    return _one_by_one(x, Limits(largest, k, most, names), f, df, g, dg, none if modulus is None else modulus)


def _one_by_one(x: Array, limits: Limits, f: ArrayLike, df: Numbers, g: Numbers, dg: Numbers, modulus: Numbers) -> Feedback:
    """`checked_feedback`, one number after the other, so that the first that is wrong can be named."""
    d, (largest, k, most, names) = len(x), limits
    if (g is None) != (dg is None):
        raise InputError("g must be given with dg" if g is None else "dg must be given with g")
    if df is None and not (isinstance(f, (int, float)) and f == 0):
        raise InputError(f"df must be given with f = {validate.show(f)}")
    if g is None:
        g, dg = np.zeros(k or 1), np.zeros((k or 1, d))
    cost, slope = validate.number("f", f), np.zeros(d) if df is None else validate.vector("df", df, d)
    values = validate.array("g", g)
    if values.ndim > 1 or values.size == 0:
        raise InputError(f"g must be a number or a vector of one value per constraint, not an array of shape {values.shape}")
    values = values.reshape(-1)
    if k is not None and len(values) != k:
        called = f" ({', '.join(names)})" if names else ""
        raise InputError(f"g must hold {k} constraint value{'s' if k > 1 else ''}{called}, not {len(values)}")
    if k is None and most is not None and len(values) > most:
        raise InputError(f"g must hold at most {most} constraint values, not {len(values)}: see most_constraints of the session")
    slopes = validate.array("dg", dg)
    if slopes.shape != (len(values), d) and not (len(values) == 1 and slopes.shape == (d,)):
        raise InputError(f"dg must have shape {(len(values), d)}, not {slopes.shape}")
    curvature = None if modulus is None else validate.nonnegative("modulus", modulus)
    curvature = 0.0 if df is None else curvature  # no cost has none
    rows = slopes.reshape(-1)
    squares = max(slope.dot(slope), values.dot(values), rows.dot(rows))  # one product each tells that all is well
    if not (abs(cost) <= largest and squares <= largest * largest and (curvature or 0.0) <= largest):
        for name, number in (("f", cost), ("df", slope), ("g", values), ("dg", slopes), ("modulus", curvature or 0.0)):
            if (size := np.abs(number).max()) > largest:
                raise InputError(f"{name} must be at most {largest:g} in size, not {size:.3g}")
    return Feedback(x, cost, slope, values, slopes.reshape(len(values), d), curvature)


def evaluate(name: str, function: object, x: Array, *, several: bool) -> tuple[Array, Array]:
    """Value and gradient at x of a function in any of the accepted forms: () and (d,), or (k,) and (k, d) where it may hold several."""
    numbers = value_and_gradient(name, function, x.copy())
    value, grad = validate.array(f"the value of {name}", numbers[0]), validate.array(f"the gradient of {name}", numbers[1])
    if value.ndim > (1 if several else 0):
        raise InputError(f"the value of {name} must be a number, not an array of shape {value.shape}")
    if grad.shape != (*value.shape, len(x)):
        raise InputError(f"the gradient of {name} must have shape {(*value.shape, len(x))}, not {grad.shape}")
    return value, grad


def value_and_gradient(name: str, function: object, x: Array) -> tuple[object, object]:
    """Value and gradient as the function itself gives them."""
    if hasattr(function, "value") and hasattr(function, "grad"):
        return function.value(x), function.grad(x)
    if isinstance(function, tuple) and len(function) == 2 and all(callable(part) for part in function):
        value, grad = function
        return value(x), grad(x)
    if not callable(function):
        raise validate.refused(f"{name} must be a function or a pair of functions (value, gradient)", function)
    try:
        engine = engines.load("jax")
    except Unavailable:
        raise InputError(
            f"{name} is one callable, and its gradient needs JAX: pip install 'bridle-oco[jax]', or give a pair (value, gradient)"
        ) from None
    assert isinstance(engine, Differentiates)
    return engine.value_and_gradient(name, function, x)


def is_sound(x: Array, state: object) -> bool:
    """Whether a decision is finite and its state holds no NaN; sums of squares say so, and may overflow."""
    return (isfinite(x.dot(x)) or bool(np.isfinite(x).all())) and not _has_nan(state, x)


def _has_nan(part: object, sound: Array) -> bool:
    """Whether there is a NaN in a record; `sound` has none."""
    if isinstance(part, float):
        return part != part
    if isinstance(part, tuple):
        for inner in part:  # what there is most of is written out: calls cost as much as all the rest
            kind = inner.__class__
            if kind is float:
                if inner != inner:
                    return True
            elif kind is ndarray and inner.ndim == 1:
                if inner is not sound and (square := inner.dot(inner)) != square:
                    return True
            elif inner is not None and _has_nan(inner, sound):
                return True
        return False
    if part is None or part is sound:
        return False
    if type(part) is np.ndarray and part.ndim == 1 and part.dtype.kind == "f":
        square = part.dot(part)
        return bool(square != square)
    return bool(np.isnan(part).any())  # type: ignore[call-overload]
