"""The CUDA engine: the round of a single run, traced once and written out as a CUDA kernel that plays all runs side by side.

It is for many games at once on a GPU. `codegen.cuda_kernel` turns the trace into CUDA C; CuPy compiles that and keeps it under a hash of
the source, so that a changed algorithm never meets old machine code. A run's state stays on the chip for all rounds of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import cupy
import numpy as np

from bridle import records
from bridle.core import InputError, S
from bridle.engines.codegen import cuda_kernel
from bridle.engines.codegen.cuda_kernel import Kernel
from bridle.engines.codegen.cuda_layout import grid_of, lanes_for, runs_of_block
from bridle.engines.codegen.equations import Traced
from bridle.engines.codegen.trace import LeafShape, shapes, trace
from bridle.engines.round import Block, Collect, F, Marks, RunBatch, SingleRun, block_of, check_compiled
from bridle.engines.runs import RunArrays, RunLayout, arrays_of, contiguous, layout_of, layout_of_one
from bridle.ops import Array
from bridle.records import R

__all__ = ["advance", "advance_many"]

FIRST_PIECE = 1_024
"""So many rounds are played while the draws of the next ones are on their way."""

NEVER = 2**31 - 2
"""The number of a round that never comes."""

Launch: TypeAlias = Callable[..., None]
"""A compiled kernel: called with the grid, the block and the arguments."""


def advance(run: SingleRun[S, F], rounds: int, collect: Collect, marks: Marks | None = None) -> tuple[S, F, Block]:
    """See `Engine.advance`."""
    check_compiled(run.policy, run.adversary, run.draws)
    layout = layout_of_one(run)
    arrays = RunArrays(*([contiguous(leaf) for leaf in records.leaves(part).values()] for part in layout.single))
    (new_state, new_foe), block = _play(layout, arrays, rounds, collect, marks, None)
    return new_state, new_foe, block


def advance_many(batch: RunBatch, rounds: int, collect: Collect, marks: Marks | None = None) -> tuple[object, object, Block]:
    """See `PlaysManyRuns.advance_many`."""
    layout = layout_of(batch)
    arrays = arrays_of(layout, batch, range(layout.runs))
    (new_state, new_foe), block = _play(layout, arrays, rounds, collect, marks, layout.runs)
    return new_state, new_foe, block


class Plan(NamedTuple):
    """The trace of a single run, which arguments every run has of its own, and the shapes of the records that come out."""

    traced: Traced
    constants: list[bool]
    draws: list[bool]
    states: Any
    kept: Any


def plan_of(layout: RunLayout, collect: Collect) -> Plan:
    """The trace of one run among these."""
    constants, states, draws = layout.single
    traced, out = trace(shapes(constants), shapes(states), shapes(draws, 1), collect)
    own_constants, _, own_draws = (list(records.leaves(part).values()) for part in layout.own)
    new_states, kept = (shapes(records.transform(lambda leaf: np.empty(leaf.shape), part)) for part in out)
    return Plan(traced, own_constants, own_draws, new_states, kept)


_PLANS: dict[Hashable, Plan] = {}
_KERNELS: dict[Hashable, tuple[Kernel, Launch]] = {}


def _plan(layout: RunLayout, collect: Collect) -> Plan:
    """The plan for records of these kinds and shapes, which is made once."""
    kinds = tuple(
        (type(node), *((name, np.shape(leaf)) for name, leaf in records.leaves(node).items()))
        for part in layout.single
        for node in records.nodes(part)
    )
    own = tuple(flag for part in layout.own for flag in records.leaves(part).values())
    key = (kinds, own, collect)
    if key not in _PLANS:
        _PLANS[key] = plan_of(layout, collect)
    return _PLANS[key]


def _play(
    layout: RunLayout, arrays: RunArrays, rounds: int, collect: Collect, marks: Marks | None, runs: int | None
) -> tuple[tuple[Any, Any], Block]:
    """A block of one run (None), or of so many: the new states, and what is collected."""
    plan, count = _plan(layout, collect), runs or 1
    constants = [cupy.asarray(leaf) for leaf in arrays.constants]
    states = [cupy.asarray(leaf if runs is not None else leaf[None]) for leaf in arrays.states]
    rows = rounds if marks is None else len(marks)
    kept = [cupy.empty((rows, count, *shape.axes)) for shape in records.leaves(plan.kept).values()]
    plain = [None if own else _plain(leaf) for leaf, own in zip(arrays.constants, plan.constants, strict=True)]
    draws = [cupy.empty(leaf.shape) for leaf in arrays.draws]
    copying = cupy.cuda.Stream(non_blocking=True)
    for first, last in _pieces(rounds):
        # Draws are brought over beside the kernel that plays those before them.
        for target, leaf in zip(draws, arrays.draws, strict=True):
            target[first:last].set(leaf[first:last], stream=copying)
        cupy.cuda.get_current_stream().wait_event(copying.record())
        row, due = first, []
        if marks is not None:
            row, after = np.searchsorted(marks, (first, last), side="right")
            due = [cupy.asarray(np.append(marks[row:after] - 1 - first, NEVER).astype(np.int32))]
        pointers = [*constants, *states, *(leaf[first:last] for leaf in draws), *(part[row:] for part in kept)]
        _launch(plan, last - first, count, due, pointers, plain)
    return _records(plan.states, states, runs, 0), block_of(_records(plan.kept, kept, runs, 1), collect)


def _pieces(rounds: int) -> Iterator[tuple[int, int]]:
    """The rounds in pieces, each of them many times as long as those before it: the first alone is waited for.

    >>> list(_pieces(100_000))
    [(0, 1024), (1024, 9216), (9216, 100000)]
    """
    first, length = 0, FIRST_PIECE
    while first < rounds:
        last = rounds if first + 2 * length > rounds else first + length
        yield first, last
        first, length = last, 8 * length


def _plain(array: Array) -> float | None:
    """The number that a constant is in all its elements, where arithmetic with it comes to nothing: 0 or 1."""
    return next((number for number in (0.0, 1.0) if array.size and (array == number).all()), None)


def _records(like: R, arrays: Sequence[Any], runs: int | None, lead: int) -> R:
    """The record of these arrays on the host, with scalars of several runs as ``(runs, 1)``, after `lead` axes of time."""
    parts = iter(arrays)

    def home(shape: LeafShape) -> float | Array:
        array: Array = cupy.asnumpy(next(parts))
        if runs is None:
            array = array.reshape(array.shape[:lead] + shape.axes)
            return float(array) if array.ndim == 0 else array
        return array if shape.axes else array[..., None]

    return records.transform(home, like)


def _launch(plan: Plan, rounds: int, runs: int, due: Sequence[object], pointers: Sequence[object], plain: list[float | None]) -> None:
    """Play some rounds of all runs; `due` holds the rounds to keep, where not all are kept."""
    device = cupy.cuda.Device()
    cores = device.attributes["MultiProcessorCount"]
    widest = max((int(np.prod(leaf.axes)) for leaf in records.leaves(plan.states).values()), default=1)
    lanes = lanes_for(runs, widest, cores, grid_of(plan.traced, 32) is not None)
    room = device.attributes["MaxSharedMemoryPerBlockOptin"]
    kernel, launch = _compiled(plan, lanes, runs_of_block(runs, lanes, cores), bool(due), plain, room)
    blocks = -(-runs // kernel.runs)
    launch((blocks,), (kernel.threads,), (np.int32(rounds), np.int32(runs), *due, *pointers), shared_mem=8 * kernel.words)


def _compiled(plan: Plan, lanes: int, runs: int, marked: bool, plain: list[float | None], room: int) -> tuple[Kernel, Launch]:
    """The kernel for a block of so many runs, or of fewer where that would need more than `room` bytes of shared memory."""
    key = (id(plan), lanes, runs, marked, tuple(plain))  # plans are never dropped
    if key not in _KERNELS:
        kernel = _written(plan, lanes, runs, marked, plain)
        while 8 * kernel.words > room and (lanes < 32 or runs > 1):
            # Fewer runs in a block, if need be with more lanes to each, since a warp is the smallest block.
            lanes, runs = (lanes, runs // 2) if runs > 32 // lanes else (2 * lanes, 16 // lanes)
            kernel = _written(plan, lanes, runs, marked, plain)
        if 8 * kernel.words > room:
            raise InputError(
                f"the cuda engine needs {8 * kernel.words} bytes of shared memory for a block of this game, the device has {room}; "
                "use engine 'jax'"
            )
        launch = cupy.RawModule(code=kernel.source, options=("--std=c++17",)).get_function("play")
        launch.max_dynamic_shared_size_bytes = 8 * kernel.words
        _KERNELS[key] = kernel, launch
    return _KERNELS[key]


def _written(plan: Plan, lanes: int, runs: int, marked: bool, plain: Sequence[float | None]) -> Kernel:
    return cuda_kernel.write(plan.traced, plan.constants, len(records.leaves(plan.states)), plan.draws, lanes, runs, marked, plain)
