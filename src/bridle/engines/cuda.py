"""The CUDA engine: the same turn of a single run, traced once and written out as a CUDA kernel that plays all runs side by side.

It is for many games at once on a GPU. `warps` turns the trace into CUDA C; CuPy compiles that and keeps it under a hash of the source, so
that a changed algorithm never meets old machine code. A run's state stays on the chip for all rounds of a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np

from bridle import records
from bridle.core import InputError
from bridle.engines.codegen import cuda_writer
from bridle.engines.codegen.cuda_layout import grid_of
from bridle.engines.plans import Plan, key_of, lanes_for, plan, runs_of_block
from bridle.engines.round import Block, Collect, RunBatch, block_of, check_compiled
from bridle.engines.runs import RunArrays, RunLayout, arrays_of, contiguous, layout_of, layout_of_one

__all__ = ["advance", "advance_many"]

_PLANS: dict[Any, Plan] = {}

FIRST = 1_024
"""So many rounds are played while the draws of the next ones are on their way."""


def advance(
    policy: Any, adversary: Any, state: Any, foe: Any, draws: Any, rounds: int, collect: Collect, wanted: Any = None
) -> tuple[Any, Any, Block]:
    """See `Engine.advance`."""
    check_compiled(policy, adversary, draws)
    where = layout_of_one((policy, adversary), (state, foe), draws)
    given = RunArrays(*([contiguous(leaf) for leaf in records.leaves(part).values()] for part in where.single))
    return _played(where, given, rounds, collect, wanted, None)


def advance_many(given: RunBatch, rounds: int, collect: Collect, wanted: Any = None) -> tuple[Any, Any, Block]:
    """See `PlaysManyRuns.advance_many`."""
    where = layout_of(given)
    return _played(where, arrays_of(where, given, range(where.runs)), rounds, collect, wanted, where.runs)


def _played(where: RunLayout, given: RunArrays, rounds: int, collect: Collect, wanted: Any, runs: int | None) -> tuple[Any, Any, Block]:
    """A block of one run (None), or of so many."""
    key = (*(key_of(part) for part in where.single), tuple(flag for part in where.own for flag in records.leaves(part).values()), collect)
    if key not in _PLANS:
        _PLANS[key] = plan(where, collect)
    found, count = _PLANS[key], runs or 1
    constants, dealt = [cupy.asarray(leaf) for leaf in given.constants], given.draws
    states = [cupy.asarray(leaf if runs is not None else leaf[None]) for leaf in given.states]
    rows = rounds if wanted is None else len(wanted)
    kept = [cupy.empty((rows, count, *shape.axes)) for shape in records.leaves(found.kept).values()]
    plain = [None if own else _plain(leaf) for leaf, own in zip(given.constants, found.constants, strict=True)]
    here = [cupy.empty(leaf.shape) for leaf in dealt]
    copying = cupy.cuda.Stream(non_blocking=True)
    for first, last in _pieces(rounds):
        # Draws are brought over beside the kernel that plays those before them.
        for target, leaf in zip(here, dealt, strict=True):
            target[first:last].set(leaf[first:last], stream=copying)
        cupy.cuda.get_current_stream().wait_event(copying.record())
        if wanted is None:
            marks, row = [], first
        else:
            row, after = np.searchsorted(wanted, (first, last), side="right")
            marks = [cupy.asarray(np.append(wanted[row:after] - 1 - first, 2**31 - 2).astype(np.int32))]
        arrays = [*constants, *states, *(leaf[first:last] for leaf in here), *(part[row:] for part in kept)]
        _launch(found, last - first, count, marks, arrays, plain)
    new_state, new_foe = _records(found.states, states, runs, 0)
    return new_state, new_foe, block_of(_records(found.kept, kept, runs, 1), collect)


def _pieces(rounds: int) -> Iterator[tuple[int, int]]:
    """The rounds in pieces, each of them many times as long as those before it: the first alone is waited for.

    >>> list(_pieces(100_000))
    [(0, 1024), (1024, 9216), (9216, 100000)]
    """
    first, length = 0, FIRST
    while first < rounds:
        last = rounds if first + 2 * length > rounds else first + length
        yield first, last
        first, length = last, 8 * length


def _plain(array: np.ndarray) -> float | None:
    """The number that a constant is in all its elements, where arithmetic with it comes to nothing: 0 or 1."""
    return next((number for number in (0.0, 1.0) if array.size and (array == number).all()), None)


def _records(like: Any, arrays: list[Any], runs: int | None, lead: int) -> Any:
    """The record of these arrays on the host, with scalars of several runs as ``(runs, 1)``, after `lead` axes of time."""
    parts = iter(arrays)

    def home(shape: Any) -> Any:
        array = cupy.asnumpy(next(parts))
        if runs is None:
            array = array.reshape(array.shape[:lead] + shape.axes)
            return float(array) if array.ndim == 0 else array
        return array if shape.axes else array[..., None]

    return records.transform(home, like)


def _launch(found: Plan, rounds: int, runs: int, marks: list[Any], arrays: list[Any], plain: list[float | None]) -> None:
    device = cupy.cuda.Device()
    cores = device.attributes["MultiProcessorCount"]
    widest = max((int(np.prod(leaf.axes)) for leaf in records.leaves(found.states).values()), default=1)
    lanes = lanes_for(runs, widest, cores, grid_of(found.traced, 32) is not None)
    here = runs_of_block(runs, lanes, cores)
    program, kernel = _kernel(found, lanes, here, bool(marks), plain, device.attributes["MaxSharedMemoryPerBlockOptin"])
    blocks = -(-runs // program.runs)
    kernel((blocks,), (program.threads,), (np.int32(rounds), np.int32(runs), *marks, *arrays), shared_mem=8 * program.words)


_KERNELS: dict[Any, tuple[Any, Any]] = {}


def _kernel(found: Plan, lanes: int, here: int, marked: bool, plain: list[float | None], room: int) -> tuple[Any, Any]:
    key = (id(found), lanes, here, marked, tuple(plain))  # plans are never dropped
    if key not in _KERNELS:
        states = len(records.leaves(found.states))
        program = cuda_writer.write(found.traced, found.constants, states, found.draws, lanes, here, marked, plain)
        while 8 * program.words > room and (lanes < 32 or here > 1):
            # Fewer runs in a block, if need be with more lanes to each, since a warp is the smallest block.
            lanes, here = (lanes, here // 2) if here > 32 // lanes else (2 * lanes, 16 // lanes)
            program = cuda_writer.write(found.traced, found.constants, states, found.draws, lanes, here, marked, plain)
        if 8 * program.words > room:
            raise InputError(
                f"the cuda engine needs {8 * program.words} bytes of shared memory for a block of this game, the device has {room}; "
                "use engine 'jax'"
            )
        kernel = cupy.RawModule(code=program.source, options=("--std=c++17",)).get_function("play")
        kernel.max_dynamic_shared_size_bytes = 8 * program.words
        _KERNELS[key] = program, kernel
    return _KERNELS[key]
