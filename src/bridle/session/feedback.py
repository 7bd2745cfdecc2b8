"""What a caller hands to a session, checked: records of numbers, and functions to be evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from bridle import engines, validate
from bridle.core import Feedback, InputError, Unavailable

LARGEST = 1e70
"""Numbers of a larger size are refused: they come from a broken source, and the squared products of two of them would not be finite."""


FLOAT = np.dtype(float)


def floats(one: tuple[int, ...], f: Any, df: Any, g: Any, dg: Any) -> int:
    """The number of constraints where all is given in the usual form, floats and arrays of floats of the right shapes; else 0.

    `one` is the shape of a decision. Whether the numbers themselves will do is not looked at.
    """
    if type(df) is not ndarray or type(dg) is not ndarray or df.dtype is not FLOAT or dg.dtype is not FLOAT:
        return 0
    if df.shape != one or not isinstance(f, float):
        return 0
    if isinstance(g, float):
        return 1 if dg.shape == one or dg.shape == (1, *one) else 0
    if type(g) is not ndarray or g.dtype is not FLOAT or g.ndim != 1:
        return 0
    k = len(g)
    return k if dg.shape == (k, *one) or (k == 1 and dg.shape == one) else 0


def feedback(x: np.ndarray, k: int | None, f: Any, df: Any, g: Any, dg: Any, modulus: Any) -> Feedback:
    """The feedback at x of a record in any of the accepted forms; `k` is the number of constraints where it is fixed.

    Sums of squares may overflow: to be called where NumPy does not warn of that.
    """
    d = len(x)
    if modulus is None and isinstance(f, float):  # what is left out is zero, as below
        if df is None and f == 0.0:
            df = np.zeros(d)
        if g is None and dg is None:
            g, dg = np.zeros(k or 1), np.zeros((k or 1, d))
    if modulus is None and (number := floats(x.shape, f, df, g, dg)) and (k is None or k == number):
        f, df, g, dg = float(f), df.copy(), np.array(g, ndmin=1), dg.copy().reshape(number, d)
        rows = dg[0] if number == 1 else dg.reshape(-1)
        squares = f * f + df.dot(df) + g.dot(g) + rows.dot(rows)
        if squares <= LARGEST * LARGEST:  # then every number is finite, and none too large
            return Feedback(x, f, df, g, dg)
    return _feedback(x, k, f, df, g, dg, modulus)


def _feedback(x: np.ndarray, k: int | None, f: Any, df: Any, g: Any, dg: Any, modulus: Any) -> Feedback:
    """The same, one thing after the other, so that the first that is wrong can be named."""
    d = len(x)
    if (g is None) != (dg is None):
        raise InputError("g must be given with dg" if g is None else "dg must be given with g")
    if df is None and not (isinstance(f, (int, float)) and f == 0):
        raise InputError(f"df must be given with f = {validate.show(f)}")
    if g is None:
        g, dg = np.zeros(k or 1), np.zeros((k or 1, d))
    f, df, g = validate.number("f", f), np.zeros(d) if df is None else validate.vector("df", df, d), validate.array("g", g)
    if g.ndim > 1 or g.size == 0:
        raise InputError(f"g must be a number or a vector of one value per constraint, not an array of shape {g.shape}")
    g = g.reshape(-1)
    if k is not None and len(g) != k:
        raise InputError(f"g must hold {k} constraint value{'s' if k > 1 else ''}, not {len(g)}")
    dg = validate.array("dg", dg)
    if dg.shape != (len(g), d) and not (len(g) == 1 and dg.shape == (d,)):
        raise InputError(f"dg must have shape {(len(g), d)}, not {dg.shape}")
    modulus = None if modulus is None else validate.positive("modulus", modulus)
    rows = dg.reshape(-1)
    squares = max(df.dot(df), g.dot(g), rows.dot(rows))  # one product each tells that all is well; else every entry is looked at
    if not (abs(f) <= LARGEST and squares <= LARGEST * LARGEST and (modulus or 0.0) <= LARGEST):
        for name, value in (("f", f), ("df", df), ("g", g), ("dg", dg), ("modulus", modulus or 0.0)):
            if (size := np.abs(value).max()) > LARGEST:
                raise InputError(f"{name} must be at most {LARGEST:g} in size, not {size:.3g}")
    return Feedback(x, f, df, g, dg.reshape(len(g), d), modulus)


def join(first: Feedback, second: Feedback) -> Feedback:
    """The feedback of a round whose cost and constraints came apart: `first` has the cost, `second` the constraints."""
    return Feedback(first.x, first.f, first.df, second.g, second.dg, first.modulus)


def evaluate(name: str, function: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Value and gradient at x of a function given in any of the accepted forms: () and (d,), or (k,) and (k, d) where it holds several."""
    value, grad = call(name, function, x.copy())
    value, grad = validate.array(f"the value of {name}", value), validate.array(f"the gradient of {name}", grad)
    if value.ndim > (0 if name == "cost" else 1):
        raise InputError(f"the value of {name} must be a number, not an array of shape {value.shape}")
    if grad.shape != (*value.shape, len(x)):
        raise InputError(f"the gradient of {name} must have shape {(*value.shape, len(x))}, not {grad.shape}")
    return value, grad


def value(name: str, function: Any, x: np.ndarray) -> Any:
    """The value alone."""
    return call(name, function, x)[0]


def call(name: str, function: Any, x: np.ndarray) -> tuple[Any, Any]:
    """Value and gradient as the function itself gives them."""
    if hasattr(function, "value") and hasattr(function, "grad"):
        return function.value(x), function.grad(x)
    if isinstance(function, tuple) and len(function) == 2 and all(callable(part) for part in function):
        value, grad = function
        return value(x), grad(x)
    if not callable(function):
        raise InputError(f"{name} must be a function or a pair of functions (value, gradient), not {validate.show(function)}")
    try:
        engine: Any = engines.load("jax")
    except Unavailable:
        raise InputError(
            f"{name} is one callable, and its gradient needs JAX: pip install 'bridle[jax]', or give a pair (value, gradient)"
        ) from None
    return engine.value_and_gradient(name, function, x)  # type: ignore[no-any-return]
