"""One run among many: the trace that a kernel plays for each of them, and how many lanes of a GPU play it.

Records come with a runs axis on what each run has of its own, and the kernel is that of a single run, so the axis must be told from the
others by shapes. A leaf of the policy is a run's own where its shape is ``(runs, 1)``. States are what `init` says of a single run, with
the axis in front. The adversary and its draws have the axis in all leaves, or (where all runs see one stream) in none; where both readings
make a round of the right shapes, nothing can tell them apart and the game is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bridle import records
from bridle.core import InputError
from bridle.engines.tracing import shapes, trace

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


def plan(policy: Any, adversary: Any, state: Any, foe: Any, draws: Any, collect: str, runs: int | None) -> Plan:
    """The trace of one run among these."""
    if runs is None:
        traced, out = trace(shapes((policy, adversary)), shapes((state, foe)), shapes(draws, 1), collect)
        shared = [[False] * len(records.leaves(part)) for part in ((policy, adversary), draws)]
        return Plan(traced, *shared, *(_outcome(part) for part in out))
    own = records.transform(lambda leaf: np.shape(leaf) == (runs, 1), policy)
    alone = records.transform(lambda leaf, mine: float(leaf[0, 0]) if mine else leaf, policy, own)
    begin = alone.init(np.asarray(policy.decide(state))[0])
    mine = list(records.leaves(own).values())
    found, trouble = [], None
    for several in _readings(adversary, draws, runs):
        foes = records.transform(lambda leaf: _first(leaf), adversary) if several else adversary
        single = shapes((begin, foes.init()))
        try:
            traced, out = trace(shapes((alone, foes)), single, _dealt(draws, several), collect)
            _check_round(out, single, collect)
        except (TypeError, ValueError, IndexError) as wrong:
            trouble = wrong
            continue
        flags = [*mine, *([several] * len(records.leaves(adversary)))]
        found.append(Plan(traced, flags, [several] * len(records.leaves(draws)), *(_outcome(part) for part in out)))
    if len(found) > 1 and runs > 1:
        raise InputError(
            f"the cuda engine cannot tell whether the {runs} runs see one stream or many: an axis happens to be as long; add a run"
        )
    if not found:
        raise InputError(f"the cuda engine cannot take one of the {runs} runs apart from the others; use engine 'jax' ({trouble})")
    return found[0]


def _readings(adversary: Any, draws: Any, runs: int) -> Iterator[bool]:
    """Whether each run may have its own adversary and draws; both where shapes do not tell."""
    foes, dealt = list(records.leaves(adversary).values()), list(records.leaves(draws).values())
    apart = all(np.ndim(leaf) > 1 and len(leaf) == runs for leaf in foes) and all(leaf.ndim > 2 and leaf.shape[1] == runs for leaf in dealt)
    if apart and (foes or dealt):
        yield True
    yield False


def _first(leaf: Any) -> Any:
    return float(leaf[0, 0]) if leaf.shape[1:] == (1,) else leaf[0]


def _dealt(draws: Any, several: bool) -> Any:
    """The shapes of a single run's draws: scalars of several runs have an axis of length 1."""
    made = shapes(draws, 2 if several else 1)
    return (
        shapes(records.transform(lambda shape: np.empty(() if several and shape.axes == (1,) else shape.axes), made)) if several else made
    )


def _check_round(out: Any, single: Any, collect: str) -> None:
    """That a round of a single run gives a state like the one before, a scalar cost and a vector of constraint values."""
    before, after = ([leaf for leaf in records.leaves(part).values()] for part in (single, out[0]))
    if [leaf.axes for leaf in before] != [tuple(leaf.shape) for leaf in after]:
        raise TypeError("a round changes the shape of a state")
    f, g = (out[1].cost, out[1].soft) if collect == "sums" else out[1][:2]
    if f.shape != () or len(g.shape) != 1:
        raise TypeError(f"a cost has shape {tuple(f.shape)}, constraint values {tuple(g.shape)}")


def _outcome(part: Any) -> Any:
    return shapes(records.transform(lambda leaf: np.empty(leaf.shape), part))


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
