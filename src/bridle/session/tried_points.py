"""Rounds of a policy that sees values alone: the points that it tries, and what a caller says of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bridle import validate
from bridle.core import InputError, Policy, S, Tried, TriesPoints, Values, capability
from bridle.ops import Array
from bridle.session.feedback import MOST_CONSTRAINTS, Limits, Numbers


def points_of(policy: Policy[S], state: S) -> Array | None:
    """The points that the policy tries in this state, as rows; None for one that sees gradients at its decision."""
    tries = capability(policy, TriesPoints)
    return None if tries is None else np.array(tries.points(state), dtype=float)


def as_asked(points: Array) -> Array:
    """Points as whoever tries them is shown them: one a row, and one alone without a row of its own."""
    alone: Array = points[0]
    return alone if len(points) == 1 else points


def refuse_extras(name: str, **extras: object) -> None:
    """One error for whatever was given that means nothing to a policy that sees values alone."""
    for extra, value in extras.items():
        if value is not None:
            raise InputError(f"{extra} cannot be given: policy {name} sees values alone, at the points that it tries")


def values_at(points: Array, cost: object, constraints: tuple[object, ...]) -> tuple[Array, Array | None]:
    """The values of functions in any of the accepted forms at every point: one number, and one row, for each."""
    f = np.array([_numbers("cost", cost, x, several=False).item() for x in points])
    rows = [[_numbers(f"constraints[{i}]", each, x, several=True) for i, each in enumerate(constraints)] for x in points]
    return f, np.array([np.concatenate(row) for row in rows]) if constraints else None


def _numbers(name: str, function: object, x: Array, *, several: bool) -> Array:
    """The values of a function at x; a callable alone will do, since no gradient is asked for."""
    if isinstance(function, tuple) and function and callable(function[0]):
        value: object = function[0](x.copy())
    elif hasattr(function, "value"):
        value = function.value(x.copy())
    elif callable(function):
        value = function(x.copy())
    else:
        raise validate.refused(f"{name} must be a function", function)
    numbers = validate.array(f"the value of {name}", value)
    if numbers.ndim > (1 if several else 0):
        raise InputError(f"the value of {name} must be a number, not an array of shape {numbers.shape}")
    return numbers.reshape(-1)


def rows_of(n: int, f: ArrayLike, g: Numbers) -> tuple[Array, Array | None]:
    """The values at n points in any of the accepted forms, as a number and a row for each: for one point as of a decision.

    >>> rows_of(2, [0.1, 0.2], [1.0, -1.0])
    (array([0.1, 0.2]), array([[ 1.],
           [-1.]]))
    """
    costs, rows = validate.array("f", f), None if g is None else validate.array("g", g)
    if costs.shape != (n,) and not (costs.ndim == 0 and (n == 1 or costs == 0.0)):
        raise InputError(f"f must be {'a number' if n == 1 else f'{n} numbers, one for each point'}, not an array of shape {costs.shape}")
    if rows is None:
        return np.array(np.broadcast_to(costs, n)), None
    if n == 1 and rows.ndim < 2:
        rows = rows.reshape(1, -1)
    elif rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or len(rows) != n or not rows.size:
        wanted = "a number or one number for each constraint" if n == 1 else f"{n} rows, one for each point"
        raise InputError(f"g must hold {wanted}, not be an array of shape {rows.shape}")
    return np.array(np.broadcast_to(costs, n)), rows


def checked_values(points: Array, limits: Limits, f: ArrayLike, g: Numbers) -> Tried:
    """The values at these points, checked; a round whose constraints are left out has none that is violated."""
    costs, given = rows_of(len(points), f, g)
    rows = np.zeros((len(points), limits.k or 1)) if given is None else given
    k, most = rows.shape[1], limits.most or MOST_CONSTRAINTS
    if limits.k is not None and k != limits.k:
        called = f" ({', '.join(limits.names)})" if limits.names else ""
        raise InputError(f"g must hold {limits.k} constraint value{'s' if limits.k > 1 else ''}{called} a point, not {k}")
    if k > most:
        raise InputError(f"g must hold at most {most} constraint values a point, not {k}: see most_constraints of the session")
    for name, numbers in (("f", costs), ("g", rows)):
        if (size := float(np.abs(numbers).max())) > limits.largest:
            raise InputError(f"{name} must be at most {limits.largest:g} in size, not {size:.3g}")
    return Tried(tuple(Values(x, float(cost), row) for x, cost, row in zip(points, costs, rows, strict=True)))
