"""Checks at the boundary: each returns the clean value, or raises one InputError that names the argument and the value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import wraps
from math import isfinite
from typing import Literal, ParamSpec, TypeVar

import numpy as np

from bridle.core import InputError, Unavailable
from bridle.ops import Array, Scalar

P = ParamSpec("P")
R = TypeVar("R")

NUMBER_KINDS = "fiu"
"""NumPy's letters for the kinds of arrays that hold real numbers."""

PLAIN_NUMBERS = {float, int, np.float64}
"""What needs no second look in a list."""

DEEPEST = 64
"""No array of NumPy's has more axes."""


def show(value: object) -> str:
    """A value in a message: short, on one line, also where it cannot be written out."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a whole number of too many digits, or somebody's own class
        text = f"{type(value).__name__} (which cannot be written out)"
    return text if len(text) <= 60 else text[:57] + "..."


def refused(wanted: str, value: object) -> InputError:
    """The error for a value that is not what is wanted of it.

    >>> refused("horizon must be 1 or above", -3)
    InputError('horizon must be 1 or above, not -3')
    """
    return InputError(f"{wanted}, not {show(value)}")


def number(name: str, value: object) -> float:
    """A finite float."""
    if type(value) is float or type(value) is np.float64:
        result = float(value)
    else:
        given = floats(name, value, "a number")
        if given.ndim:
            raise refused(f"{name} must be a number", value)
        result = float(given)
    if not isfinite(result):
        raise refused(f"{name} must be finite", value)
    return result


def positive(name: str, value: object) -> float:
    """A finite float above zero."""
    result = number(name, value)
    if result <= 0.0:
        raise refused(f"{name} must be above 0", value)
    return result


def nonnegative(name: str, value: object) -> float:
    """A finite float, zero or above."""
    result = number(name, value)
    if result < 0.0:
        raise refused(f"{name} must be 0 or above", value)
    return result


def whole(name: str, value: object, least: int = 1) -> int:
    """A whole number, `least` or above."""
    result = number(name, value)
    if result != int(result) or isinstance(value, bool):
        raise refused(f"{name} must be a whole number", value)
    if not least <= result <= 2**53:
        raise refused(f"{name} must be {least} or above{('' if result < least else ' and below 2^53')}", value)
    return int(result)


def setting(name: str, value: object, *, zero: bool = False) -> Scalar:
    """A hyper-parameter: a number above zero (or zero too), or one for each run, shaped ``(runs, 1)``."""
    if not isinstance(value, (list, tuple, range, np.ndarray)):
        return (nonnegative if zero else positive)(name, value)
    values = array(name, value)
    if values.ndim == 0:
        return (nonnegative if zero else positive)(name, float(values))
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
        raise refused(f"{name} must be a whole number", value)
    return result


def array(name: str, value: object, shape: tuple[int, ...] | None = None) -> Array:
    """A finite float64 array in C order, of the given shape where one is given."""
    result = floats(name, value, "an array of numbers")
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


def floats(name: str, value: object, what: str) -> Array:
    """What a caller gave for `what`, as a new float64 array in C order: the one place that says what counts as numbers.

    Numbers are whole numbers and floats of any width, and what says of itself that it is a float; in arrays, nested sequences, tensors and
    whatever else NumPy reads. Truth values, text, dates and durations, records and complex numbers are none, although NumPy could make
    some of each; nor is an array with a masked entry, or a tensor that carries a gradient.

    >>> floats("x", [1, 2.5], "an array of numbers")
    array([1. , 2.5])
    >>> floats("x", np.ma.masked_greater([1.0, 9.0], 5.0), "an array of numbers")
    Traceback (most recent call last):
    ...
    bridle.core.InputError: x must be an array of numbers, not one with masked entries
    """
    if type(value) is np.ndarray and value.dtype == float:
        return np.array(value, dtype=float, order="C")
    try:
        with np.errstate(all="ignore"):
            return _converted(value)
    except _Unfit as why:
        raise InputError(f"{name} must be {what}, not {why}") from None
    except MemoryError:
        raise
    except Exception:  # whatever an object of somebody else's raises where it is asked for its numbers
        raise refused(f"{name} must be {what}", value) from None


def intact(name: str, value: object) -> None:
    """Refuse a table of which another library would make numbers and lose something: masked, with a gradient, dates, records, text."""
    try:
        unmasked(name, value)
        raw = np.asarray(value)
    except InputError:
        raise
    except Exception:  # the library that is asked next says what is wrong with it
        return
    never = (str, bytes, np.datetime64, np.timedelta64)
    if raw.dtype.kind not in NUMBER_KINDS + "bcO" or (raw.dtype.kind == "O" and any(isinstance(entry, never) for entry in raw.flat)):
        raise refused(f"{name} must be an array of numbers", value)


def unmasked(name: str, value: object) -> None:
    """Refuse an array with masked entries, and a tensor that carries a gradient."""
    try:
        _refuse(value)
    except _Unfit as why:
        raise InputError(f"{name} must be an array, not {why}") from None
    except Exception:  # the library that is asked next says what is wrong with it
        return


class _Unfit(Exception):
    """Why something is not numbers, where its text would not tell."""


def _converted(value: object) -> Array:
    """`floats`, or whatever exception."""
    _refuse(value)
    raw = np.asarray(value)
    if raw.dtype.kind == "O":
        return np.array([_single(entry) for entry in raw.flat], dtype=float).reshape(raw.shape)
    if raw.dtype.kind not in NUMBER_KINDS:
        raise TypeError
    return np.array(raw, dtype=float, order="C")


def _refuse(value: object, depth: int = 0) -> None:
    """Complain of what NumPy would make numbers of, and lose something by it: in a sequence, also of its entries."""
    if isinstance(value, (list, tuple)):
        if not set(map(type, value)) <= PLAIN_NUMBERS and depth < DEEPEST:
            for entry in value:
                _refuse(entry, depth + 1)
    elif isinstance(value, (bool, np.bool_, bytearray)):
        raise TypeError
    elif isinstance(value, np.ma.MaskedArray):
        if np.ma.getmaskarray(value).any():
            raise _Unfit("one with masked entries")
    elif isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind not in NUMBER_KINDS + "O":
            raise TypeError
    elif getattr(value, "requires_grad", False) is True:
        raise _Unfit("a tensor that carries a gradient: give its .detach()")


def _single(entry: object) -> float:
    """One entry of an array of objects."""
    if not hasattr(entry, "__array__"):
        if isinstance(entry, bool) or (not hasattr(type(entry), "__float__") and not hasattr(type(entry), "__index__")):
            raise TypeError
        return float(entry)  # type: ignore[arg-type]
    alone = _converted(entry)
    if alone.ndim:
        raise TypeError
    return float(alone)


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


def undisturbed(function: Callable[P, R]) -> Callable[P, R]:
    """The function, in which NumPy's floating-point errors are at most warnings, whatever the caller has made of them (`numpy.seterr`).

    What overflows is looked at by whoever needs to know; an exception in the middle of it would be nobody's.

    >>> with np.errstate(all="raise"):
    ...     undisturbed(lambda: float(np.exp(np.float64(-800.0))))()
    0.0
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        stricter = {kind: _MILDEST[kind] for kind, how in np.geterr().items() if how not in ("ignore", "warn")}
        if not stricter:
            return function(*args, **kwargs)
        with np.errstate(**stricter):  # type: ignore[arg-type]  # mypy takes them for the argument `call`
            return function(*args, **kwargs)

    return call


def computed(function: Callable[P, R]) -> Callable[P, R]:
    """A factory, `undisturbed`, in which arithmetic that fails is a complaint about what it was given.

    >>> computed(lambda x: 1.0 / x)(0.0)
    Traceback (most recent call last):
    ...
    bridle.core.InputError: the numbers given are too large or too small to compute with: float division by zero
    """
    inside = undisturbed(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return inside(*args, **kwargs)
        except ArithmeticError as error:
            raise InputError(f"the numbers given are too large or too small to compute with: {error}") from None

    return call


_MILDEST: dict[str, Literal["ignore", "warn"]] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
"""How NumPy itself treats them."""


def require_package(package: str, extra: str) -> None:
    """Complain, in one line, about a package that is not installed."""
    import importlib.util

    if importlib.util.find_spec(package) is None:
        raise Unavailable(f"this needs the package {package}: pip install 'bridle-oco[{extra}]'")


def one_of(kind: str, name: object, choices: Collection[str]) -> str:
    """A name, if it is among the choices."""
    if not isinstance(name, str) or name not in choices:
        raise unknown(kind, name, choices)
    return name


def unknown(kind: str, name: object, choices: Iterable[str]) -> InputError:
    """The error for a name that is not there, with the nearest ones that are."""
    from difflib import get_close_matches

    names = sorted(choices)
    near = get_close_matches(name if isinstance(name, str) else show(name), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
    return InputError(f"unknown {kind} {show(name)}; {hint}")
