"""One run among many: the trace that a kernel plays for each of them, and how many lanes of a GPU play it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle import records
from bridle.engines.codegen.trace import shapes, trace
from bridle.engines.round import Collect
from bridle.engines.runs import RunLayout


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
