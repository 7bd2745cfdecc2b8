"""The trace of one round: what the engines that write their own loops start from."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bridle import records
from bridle.engines.jax import ROLLED
from bridle.game import turn


def trace(constants: Any, states: Any, draw: Any, collect: str) -> tuple[Any, Any]:
    """`turn` on records whose leaves are shapes: the traced equations, and the records (states, kept) of the shapes that come out.

    What is kept of a round is its cost, its constraint values, and with `collect` "x" the decision or "round" the round; with "sums"
    it is the totals of a policy that sums alone.
    """

    def one(constants: Any, states: Any, draw: Any) -> Any:
        (policy, adversary), (state, foe) = constants, states
        state, foe, feedback = turn(policy, adversary, state, foe, draw)
        if collect == "sums":
            return (state, foe), state.sums
        return (state, foe), (feedback.f, feedback.g, {"x": feedback.x, "round": feedback.round}.get(collect))

    return trace_of(one, constants, states, draw)


def trace_of(one: Any, *parts: Any) -> tuple[Any, Any]:
    """A function of records, traced on records whose leaves are shapes: its equations, and the record of the shapes that come out."""
    rolled = ROLLED.set(True)
    try:
        with jax.enable_x64(True):
            return jax.make_jaxpr(one, return_shape=True)(*(records.transform(_abstract, part) for part in parts))
    finally:
        ROLLED.reset(rolled)


class Shape:
    """The shape of a leaf; no tuple, which would be a record."""

    def __init__(self, *axes: int) -> None:
        self.axes = axes


def shapes(part: Any, skip: int = 0) -> Any:
    """A record of the shapes of the leaves, without so many leading axes."""
    return records.transform(lambda leaf: Shape(*np.shape(leaf)[skip:]), part)


def _abstract(shape: Any) -> Any:
    return jax.ShapeDtypeStruct(shape.axes, float)  # type: ignore[no-untyped-call]
