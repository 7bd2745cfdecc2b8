"""What the writers read of JAX's trace, and which line of which file an equation comes from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

LANES = 999_983
"""How long the axis of several runs is in a trace of them: no other axis is, so that it can be told from all others."""


Variable: TypeAlias = Any
"""A variable of the trace (`aval`: the shape and the kind of its numbers), or a number, which has a `val` too."""

Equation: TypeAlias = Any
"""One operation of the trace: `primitive.name`, `params`, `invars`, `outvars`, `source_info`."""

Equations: TypeAlias = Any
"""A traced function: `constvars`, `invars`, its equations in order (`eqns`), and what it gives, `outvars`."""

Traced: TypeAlias = Any
"""A traced function with the arrays it holds: `jaxpr` and `consts`."""


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
