"""One run among many: the trace that a kernel plays for each of them, and how many lanes of a GPU play it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle import records
from bridle.engines.codegen.trace import shapes, trace
from bridle.engines.round import Collect
from bridle.engines.runs import RunLayout

SHARE = 20
"""Where runs are few, a lane takes up to so many elements of the widest array: fewer lanes exchange less, more wait less."""

BUSY = 128
"""From so many lanes to a multiprocessor on, what counts is how much all of them do, not how long one of them waits."""

HELD = 32
"""So many elements of an array can a lane hold in registers."""


class Plan(NamedTuple):
    """The trace of a single run, which arguments every run has of its own, and the records that come out."""

    traced: Any
    constants: list[bool]
    draws: list[bool]
    states: Any
    kept: Any


def plan(where: RunLayout, collect: Collect) -> Plan:
    """The trace of one run among these."""
    constants, states, draws = where.single
    traced, out = trace(shapes(constants), shapes(states), shapes(draws, 1), collect)
    own, _, dealt = (list(records.leaves(part).values()) for part in where.own)
    return Plan(traced, own, dealt, *(shapes(records.transform(lambda leaf: np.empty(leaf.shape), part)) for part in out))


def key_of(*parts: Any) -> Any:
    """What a trace depends on: kinds of records, and shapes."""
    return tuple(
        (type(node), *((name, np.shape(leaf)) for name, leaf in records.leaves(node).items()))
        for part in parts
        for node in records.nodes(part)
    )


def lanes_for(runs: int, widest: int, cores: int, matrix: bool = False) -> int:
    """How many lanes play a run whose widest array is so wide; as measured on an H200 (`benchmarks/gpu.py --lanes`).

    Every lane repeats the scalar work of a round, so fewer lanes do less in all; but each must hold its share of the widest array. Where
    the lanes share a matrix by its rows, a run of few has a whole warp.

    >>> lanes_for(30, 311, 132), lanes_for(30, 311, 132, True), lanes_for(256, 30, 132), lanes_for(65_536, 30, 132)
    (16, 32, 2, 1)
    """
    lanes = next(n for n in (1, 2, 4, 8, 16, 32) if n == 32 or (-(-widest // n) <= SHARE and not matrix))
    while lanes > 1 and runs * lanes > cores * BUSY and -(-widest // (lanes // 2)) <= HELD:
        lanes //= 2
    return lanes


def runs_of_block(runs: int, lanes: int, cores: int) -> int:
    """A block is a warp where runs are few, so that they spread over the chip, and up to four where they share what they read."""
    warps_ = -(-runs * lanes // 32)
    return 32 // lanes * max(1, min(4, warps_ // (2 * cores)))
