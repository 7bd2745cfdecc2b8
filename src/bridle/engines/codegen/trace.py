"""The trace of one round: what the compiled engine starts from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import jax

from bridle import records
from bridle.engines.codegen.equations import LANES, Traced
from bridle.engines.jax import ROLLED, one_round
from bridle.engines.round import Collect
from bridle.engines.runs import LeafShape

R = TypeVar("R")


def trace(constants: object, states: object, draw: object, collect: Collect) -> tuple[Traced, tuple[object, object]]:
    """`turn` on records whose leaves are shapes: the traced equations, and the records (states, kept) of the shapes that come out."""
    traced, (after, kept) = trace_of(one_round(collect), constants, states, draw)
    return traced, (after, kept)


def trace_of(one: Callable[..., R], *parts: object, rolled: bool = True) -> tuple[Traced, R]:
    """A function of records, traced on records whose leaves are shapes: its equations, and the record of the shapes that come out.

    `rolled` where loops over few rows stay loops, as the writers of loops want them.
    """
    outside = ROLLED.set(rolled)
    try:
        with jax.enable_x64(True):
            return jax.make_jaxpr(one, return_shape=True)(*(records.transform(_abstract, part) for part in parts))
    finally:
        ROLLED.reset(outside)


def trace_runs(one: Callable[..., object], parts: Sequence[object], own: Sequence[object]) -> Traced:
    """The equations of several runs side by side, along an axis of length `LANES`; `own` says which leaves each run has of its own."""
    flat: list[LeafShape] = [leaf for part in parts for leaf in records.leaves(part).values()]
    flags: list[bool] = [flag for part in own for flag in records.leaves(part).values()]

    def alone(*leaves: object) -> list[object]:
        rest = iter(leaves)
        return list(records.leaves(one(*(records.transform(lambda _: next(rest), part) for part in parts))).values())

    together = jax.vmap(alone, in_axes=tuple(0 if flag else None for flag in flags), axis_size=LANES)
    widened = tuple(LeafShape(LANES, *shape.axes) if flag else shape for shape, flag in zip(flat, flags, strict=True))
    return trace_of(lambda leaves: together(*leaves), widened)[0]


def _abstract(shape: LeafShape) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape.axes, float)  # type: ignore[no-untyped-call]
