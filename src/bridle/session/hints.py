"""What a caller expects of a round before it is decided: a hint, checked.

A hint is the gradient of the cost that is expected, or a dict of it (`df`) and of constraints' values and gradients (`g`, `dg`), at the
decision or at an action `x`.

>>> parts_of({"g": 0.1, "dg": [1.0, 0.0]})
{'g': array([0.1]), 'dg': array([[1., 0.]])}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from bridle import validate
from bridle.core import Hint, InputError
from bridle.ops import Array

HintGiven: TypeAlias = ArrayLike | Mapping[str, ArrayLike] | Hint | None
"""What a caller gives as a hint, or leaves out."""

PARTS = Hint._fields
"""What a hint may be made of."""


def parts_of(hint: HintGiven) -> dict[str, Array]:
    """The parts of a hint, in a fixed order and as arrays of finite numbers: `g` with one axis, `dg` with two."""
    given = hint._asdict() if isinstance(hint, Hint) else hint if isinstance(hint, Mapping) else {"df": hint}
    for name in given:
        validate.one_of("part of hint", name, PARTS)
    parts = {name: validate.array(f"hint {name}", given[name]) for name in PARTS if given.get(name) is not None}
    if not parts:
        raise InputError(f"hint must be a gradient of the cost, or a dict with some of {', '.join(PARTS)}, not {validate.show(hint)}")
    if ("g" in parts) != ("dg" in parts):
        raise InputError(f"hint must have g and dg together: it has {', '.join(parts)}")
    if "x" in parts and "g" not in parts:
        raise InputError("hint must have g and dg where it has x, the action at which they are expected")
    if "g" in parts:
        parts |= {"g": np.atleast_1d(parts["g"]), "dg": np.atleast_2d(parts["dg"])}
    return parts


def checked_hint(hint: HintGiven, dim: int, largest: float) -> Hint:
    """A hint for decisions of so many coordinates, with numbers of this size at most; or what is wrong with it."""
    parts = parts_of(hint)
    k = parts["g"].size if "g" in parts else 0
    shapes = {"df": (dim,), "g": (k,), "dg": (k, dim), "x": (dim,)}
    for name, values in parts.items():
        if values.shape != shapes[name]:
            raise InputError(f"hint {name} must have shape {shapes[name]}, not {values.shape}")
        if values.size and float(np.abs(values).max()) > largest:
            raise InputError(f"hint {name} must have numbers of size {largest:g} at most, not {float(np.abs(values).max()):g}")
    return Hint(**parts)
