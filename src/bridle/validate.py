"""Checks at the boundary: each returns the clean value, or raises one InputError that names the argument and the value."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bridle.core import InputError
from bridle.ops import Array, Scalar


def show(value: object) -> str:
    """A value in a message: short, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def number(name: str, value: object) -> float:
    """A finite float."""
    try:
        if isinstance(value, (str, bytes, bool, np.bool_)) or np.iscomplexobj(value):  # type: ignore[arg-type]
            raise TypeError
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be a number, not {show(value)}") from None
    if not np.isfinite(result):
        raise InputError(f"{name} must be finite, not {show(value)}")
    return result


def positive(name: str, value: object) -> float:
    """A finite float above zero."""
    result = number(name, value)
    if result <= 0.0:
        raise InputError(f"{name} must be above 0, not {show(value)}")
    return result


def nonnegative(name: str, value: object) -> float:
    """A finite float, zero or above."""
    result = number(name, value)
    if result < 0.0:
        raise InputError(f"{name} must be 0 or above, not {show(value)}")
    return result


def whole(name: str, value: object, least: int = 1) -> int:
    """A whole number, `least` or above."""
    result = number(name, value)
    if result != int(result) or isinstance(value, bool):
        raise InputError(f"{name} must be a whole number, not {show(value)}")
    if not least <= result <= 2**53:
        raise InputError(f"{name} must be {least} or above{'' if result < least else ' and below 2^53'}, not {show(value)}")
    return int(result)


def setting(name: str, value: object, *, zero: bool = False) -> Scalar:
    """A hyper-parameter: a number above zero (or zero too), or one for each run, shaped ``(runs, 1)``."""
    if not isinstance(value, (list, tuple, range, np.ndarray)) or np.shape(np.asarray(value, dtype=object)) == ():
        return (nonnegative if zero else positive)(name, value)
    values = array(name, value)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"{name} must be a number or a list of one number per run, not an array of shape {values.shape}")
    for entry in values:
        (nonnegative if zero else positive)(name, entry)
    return values[:, None]


def rounds(name: str, value: object) -> Scalar:
    """A number of rounds, as a float: a whole number above zero, or one for each run, shaped ``(runs, 1)``."""
    result = setting(name, value)
    if np.any(np.floor(result) != result):
        raise InputError(f"{name} must be a whole number, not {show(value)}")
    return result


def array(name: str, value: object, shape: tuple[int, ...] | None = None) -> Array:
    """A finite float64 array in C order, of the given shape where one is given."""
    try:
        raw = np.asarray(value)
        if value is None or raw.dtype.kind in "USc":  # NumPy reads None as nan, text as numbers, and drops imaginary parts
            raise TypeError
        result = np.array(raw, dtype=float, order="C")
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be an array of numbers, not {show(value)}") from None
    if shape is not None and result.shape != shape:
        raise InputError(f"{name} must have shape {shape}, not {result.shape}")
    if result.size and not np.isfinite(result).all():
        where = np.argwhere(~np.isfinite(result))[0]
        raise InputError(f"{name} must be finite, not {result[tuple(where)]} at index {', '.join(map(str, where)) or '()'}")
    return result


def vector(name: str, value: object, dim: int | None = None) -> Array:
    """A finite, non-empty vector, of length `dim` where it is given."""
    result = array(name, value, None if dim is None else (dim,))
    if result.ndim != 1 or result.size == 0:
        raise InputError(f"{name} must be a vector, not an array of shape {result.shape}")
    return result


def named_value(what: str, text: str) -> tuple[str, int | float | str]:
    """The name and the value of NAME=VALUE: a whole number, a number, or text.

    >>> named_value("--set", "lam=0.5"), named_value("--set", "preset=practice")
    (('lam', 0.5), ('preset', 'practice'))
    """
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise InputError(f"{what} takes NAME=VALUE, not {text!r}")
    return name, from_text(value)


def from_text(text: str) -> int | float | str:
    """A value as it is typed: a whole number, a number, or text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def unknown(kind: str, name: object, choices: Iterable[str]) -> InputError:
    """The error for a name that is not there, with the nearest ones that are."""
    from difflib import get_close_matches

    names = sorted(choices)
    near = get_close_matches(str(name), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
    return InputError(f"unknown {kind} {show(name)}; {hint}")
