"""What the writers read of JAX's trace, and which line of which file an equation comes from."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

LANES = 999_983
"""How long the axis of several runs is in a trace of them: no other axis is, so that it can be told from all others."""


class Abstract(Protocol):
    """The shape and the kind of numbers of a variable."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


class Variable(Protocol):
    """A variable of the trace, or a number; a number has a `val` too."""

    aval: Abstract


class Primitive(Protocol):
    """A kind of operation."""

    name: str


class Equation(Protocol):
    """One operation of the trace."""

    primitive: Primitive
    params: dict[str, Any]
    invars: Sequence[Variable]
    outvars: Sequence[Variable]
    source_info: object


class Equations(Protocol):
    """A traced function: its arguments, its equations in order, and what it gives."""

    constvars: Sequence[Variable]
    invars: Sequence[Variable]
    outvars: Sequence[Variable]
    eqns: Sequence[Equation]


class Traced(Protocol):
    """A traced function with the arrays it holds."""

    jaxpr: Equations
    consts: Sequence[npt.ArrayLike]


def kind_of(var: Variable) -> str:
    """ "f", "i" or "b" for a traced variable."""
    return {"f": "f", "i": "i", "u": "i", "b": "b"}[np.dtype(var.aval.dtype).kind]


def line_of(equation: Equation) -> str:
    """The line that traced to an equation, as in ``policies/_sinha2024.py:91 (Lyapunov.weigh)``; empty where it is not known.

    It is the innermost one of an algorithm: lines of JAX, of `bridle.ops` and of the engines are passed over while there is another.
    """
    calls = getattr(equation.source_info, "traceback", None)
    package, compiler = Path(__file__).parents[2], Path(getattr(sys.modules.get("jax"), "__file__", "") or "jax").parent
    second = ""
    for frame in calls.frames if calls is not None else ():
        path = Path(frame.file_name)
        if path.is_relative_to(compiler) or path.name.startswith("<frozen"):
            continue
        ours = path.is_relative_to(package)
        inside = path.relative_to(package) if ours else path
        line = f"{inside.as_posix()}:{frame.line_num} ({frame.function_name})"
        if not ours or (inside.parts[0] not in ("engines", "ops.py", "records.py")):
            return line
        second = second or line
    return second
