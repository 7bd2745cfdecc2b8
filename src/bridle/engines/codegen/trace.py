"""The trace of one round: what the engines that write their own loops start from."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bridle import records
from bridle.engines.codegen.lower import LANES
from bridle.engines.jax import ROLLED, one_round
from bridle.engines.round import Collect


def trace(constants: Any, states: Any, draw: Any, collect: Collect) -> tuple[Any, Any]:
    """`turn` on records whose leaves are shapes: the traced equations, and the records (states, kept) of the shapes that come out."""
    return trace_of(one_round(collect), constants, states, draw)


def trace_of(one: Any, *parts: Any) -> tuple[Any, Any]:
    """A function of records, traced on records whose leaves are shapes: its equations, and the record of the shapes that come out."""
    rolled = ROLLED.set(True)
    try:
        with jax.enable_x64(True):
            return jax.make_jaxpr(one, return_shape=True)(*(records.transform(_abstract, part) for part in parts))
    finally:
        ROLLED.reset(rolled)


def trace_runs(one: Any, parts: tuple[Any, ...], own: tuple[Any, ...]) -> Any:
    """The same for several runs, side by side along an axis of length `LANES`; `own` says which leaves each run has of its own."""
    flat = [leaf for part in parts for leaf in records.leaves(part).values()]
    flags = [flag for part in own for flag in records.leaves(part).values()]

    def alone(*leaves: Any) -> list[Any]:
        left = iter(leaves)
        made = one(*(records.transform(lambda _: next(left), part) for part in parts))
        return list(records.leaves(made).values())

    together = jax.vmap(alone, in_axes=tuple(0 if flag else None for flag in flags), axis_size=LANES)
    widened = tuple(Shape(LANES, *shape.axes) if flag else shape for shape, flag in zip(flat, flags, strict=True))
    return trace_of(lambda given: together(*given), widened)[0]


class Shape:
    """The shape of a leaf; no tuple, which would be a record."""

    def __init__(self, *axes: int) -> None:
        self.axes = axes


def shapes(part: Any, skip: int = 0) -> Any:
    """A record of the shapes of the leaves, without so many leading axes."""
    return records.transform(lambda leaf: Shape(*np.shape(leaf)[skip:]), part)


def _abstract(shape: Any) -> Any:
    return jax.ShapeDtypeStruct(shape.axes, float)  # type: ignore[no-untyped-call]
