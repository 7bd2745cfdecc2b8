"""How one element of an elementwise operation is written, given the elements of its operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from bridle.engines.codegen.statements import Expression, spell

Formula: TypeAlias = Callable[[list[Expression]], Expression]

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "shift_right_arithmetic": ">>", "and": "&", "or": "|", "xor": "^", "rem": "%",
}  # fmt: skip
_CALLED = {
    "max": "_max", "min": "_min", "sqrt": "math.sqrt", "exp": "_exp", "log": "math.log", "log1p": "math.log1p",
    "expm1": "math.expm1", "tanh": "math.tanh", "abs": "abs", "floor": "np.floor", "ceil": "np.ceil", "sign": "_sign",
    "is_finite": "math.isfinite", "logistic": "_logistic", "bitcast_convert_type": "_bits", "atan2": "math.atan2", "sin": "math.sin",
    "cos": "math.cos", "pow": "math.pow",
}  # fmt: skip
_TEMPLATES = {"neg": "(-{})", "square": "_power({}, 2)", "rsqrt": "(1.0 / math.sqrt({}))"}


def formula(name: str, params: dict[str, Any], before: str, after: str) -> Formula | None:
    """How one element is written, where `before` and `after` are the kinds of the first operand and of the result.

    None for an operation that is not elementwise.
    """
    if name in _INFIX:
        return lambda parts: spell("({} {} {})", parts[0], _INFIX[name], parts[1])
    if name in _CALLED:
        return lambda parts: spell("{}({})", _CALLED[name], joined(", ", parts))
    if name in _TEMPLATES:
        return lambda parts: spell(_TEMPLATES[name], parts[0])
    if name == "not":
        return lambda parts: spell("(not {})" if after == "b" else "(~{})", parts[0])
    if name == "integer_pow":
        return lambda parts: spell("_power({}, {})" if params["y"] > 0 else "(1.0 / _power({}, {}))", parts[0], abs(params["y"]))
    if name == "select_n":
        return lambda parts: spell("_pick({}, {}, {})", parts[0], parts[2], parts[1])
    if name == "clamp":
        return lambda parts: spell("_min(_max({}, {}), {})", parts[1], parts[0], parts[2])
    if name == "convert_element_type":
        return lambda parts: converted(parts[0], before, after)
    return None


def converted(code: Expression, before: str, after: str) -> Expression:
    """An element of one kind as one of another."""
    if before == after:
        return code
    if after == "b":
        return spell("({} != 0)", code)
    if before == "b":
        return spell("{}({})", "_real" if after == "f" else "_whole", code)
    return spell("{}({})", "float" if after == "f" else "int", code)


def number(value: float, kind: str) -> str:
    """A number of this kind."""
    value = {"f": float, "i": int, "b": bool}[kind](value)
    return repr(value) if math.isfinite(value) else "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"


def joined(between: str, parts: Sequence[Expression]) -> Expression:
    """Parts with a sign between any two."""
    return spell(between.join(["{}"] * len(parts)), *parts)
