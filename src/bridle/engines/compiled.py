"""The compiled engine: the round, traced once by JAX, written out as plain loops, and made machine code by LLVM.

It is the fastest way to play one game, and many on a processor. There is no second copy of any algorithm: `loops` turns the trace of
`turn`, whatever the policy and the adversary, into the source of one function, and `llvm` translates that source as it stands. What is
compiled decides to the bit what the source decides when Python runs it (``BRIDLE_INTERPRET=1``), on every processor.

Machine code is kept on disk (`kept_code`) under what it was made from: for records of bridle's own their kinds and shapes and the digest
of bridle's sources, so that nothing is traced for it; for others the source that their trace gives. Old machine code never meets a
changed algorithm.

Several runs are traced side by side and share every instruction, up to 64 in one loop; the machine code does not hold Python's lock, so
that there is such a loop on every core. A few runs are played each by itself.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from bridle import records
from bridle.core import S
from bridle.engines import kept_code, machine, runs
from bridle.engines.codegen.llvm import SIDE_BY_SIDE, module
from bridle.engines.codegen.loops import Ring, lower, lower_step
from bridle.engines.codegen.python_source import PythonSource
from bridle.engines.machine import ObjectCode
from bridle.engines.round import (
    Block,
    CannotCompile,
    Collect,
    F,
    Marks,
    RunBatch,
    SingleRun,
    block_of,
    check_compiled,
    is_own,
    made_of_own_records,
)
from bridle.engines.runs import shapes
from bridle.ops import Array
from bridle.records import R

__all__ = ["advance", "advance_many", "compile_step"]

if importlib.util.find_spec("jax") is None:  # now is the time to say so, not when the first round is to be compiled
    raise ModuleNotFoundError("No module named 'jax'", name="jax")

C = TypeVar("C")
G = TypeVar("G")
E = TypeVar("E")

WIDTHS = (16, 32, 64)
"""So many runs have room in one loop. More would not make it faster, and would leave the cache."""

FEW = SIDE_BY_SIDE
"""Fewer runs are faster each in a loop of its own."""

CACHE = 2**14
"""How many numbers of a run's widest array, times runs, still leave room in the cache for the others."""


class CompiledLoop(NamedTuple):
    """A compiled loop, the shapes of what it keeps of a round of one run, and the record they belong to."""

    run: Callable[..., object]
    kept: list[tuple[int, ...]]
    layout: object


CompiledStep: TypeAlias = tuple[Callable[[Array], Callable[[], int]], int]
"""A compiled step, which is a function without arguments once it knows its array, and how long that array is."""

_COMPILED: dict[object, CompiledLoop | CompiledStep] = {}

Arrays: TypeAlias = Sequence[Sequence[Array]]
"""The arrays of constants, of states and of draws."""


def advance(run: SingleRun[S, F], rounds: int, collect: Collect, marks: Marks | None = None) -> tuple[S, F, Block]:
    """See `Engine.advance`."""
    policy, adversary, state, foe, draws = run
    check_compiled(policy, adversary, draws)
    arrays = [[runs.contiguous(leaf) for leaf in records.leaves(part).values()] for part in ((policy, adversary), (state, foe), draws)]
    loop = _loop((policy, adversary), (state, foe), shapes(draws, 1), collect)
    after, kept = _run(loop, arrays, rounds, marks, ())
    new_state, new_foe = _filled((state, foe), after)
    return new_state, new_foe, block_of(_filled(loop.layout, kept), collect)


def advance_many(batch: RunBatch, rounds: int, collect: Collect, marks: Marks | None = None) -> tuple[object, object, Block]:
    """See `PlaysManyRuns.advance_many`."""
    layout = runs.layout_of(batch)
    widest = max(np.size(leaf) for leaf in records.leaves(layout.single[1]).values())
    ends = runs.group_ends(layout.runs, max((width for width in WIDTHS if width * widest <= CACHE), default=WIDTHS[0]), FEW)
    apart, most = layout.runs < FEW * (len(ends) - 1), -(-layout.runs // (len(ends) - 1))
    wide = next(width for width in WIDTHS if width >= most)
    loop = _loop(*layout.single[:2], shapes(layout.single[2], 1), collect, None if apart else layout.own, wide)

    def work(begin: int, end: int) -> list[list[Array]]:
        more = 0 if apart else -(end - begin) % FEW  # what is left of an instruction plays the last run once more
        mine = runs.arrays_of(layout, batch, [*range(begin, end), *[end - 1] * more], last=True)
        if apart:
            alike = zip(*(_run(loop, _lane(layout, mine, i), rounds, marks, ()) for i in range(end - begin)), strict=True)
            return [[np.stack(arrays, axis=-1) for arrays in zip(*part, strict=True)] for part in alike]
        results = _run(loop, mine, rounds, marks, (end - begin + more,))
        return [[array[..., : end - begin] for array in part] for part in results]

    after, kept = zip(*runs.in_threads(work, ends), strict=True)
    new_state, new_foe = runs.joined(layout.single[1], after, 0, last=True)
    return new_state, new_foe, block_of(runs.joined(loop.layout, kept, 1, last=True), collect)


def _lane(layout: runs.RunLayout, arrays: runs.RunArrays, i: int) -> list[list[Array]]:
    """The arrays of one run of a group."""
    return [
        [np.array(array[..., i]) if mine else array for array, mine in zip(part, records.leaves(own).values(), strict=True)]
        for part, own in zip(arrays, layout.own, strict=True)
    ]


def _run(
    loop: CompiledLoop, arrays: Arrays, rounds: int, marks: Marks | None, lanes: tuple[int, ...]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The states and what was kept after so many rounds, with the runs as the last axis where there are several."""
    constants, states, draws = arrays
    after = tuple(np.empty(array.shape) for array in states)
    rows = rounds if marks is None else len(marks)
    kept = tuple(np.empty((rows, *shape, *lanes)) for shape in loop.kept)
    row_of = np.full(0 if marks is None else rounds, -1)
    if marks is not None:
        row_of[marks - 1] = np.arange(rows)
    loop.run(rounds, lanes[0] if lanes else 1, row_of, (*constants, *states, *draws), (*after, *kept))
    return after, kept


def _filled(like: R, arrays: Iterable[Array]) -> R:
    """A record like `like` with these leaves; a scalar as a float, as the Python engine has it."""
    return runs.filled(like, (float(array) if array.ndim == 0 else array for array in arrays))


def _loop(constants: object, states: object, draw: object, collect: Collect, own: runs.Parts | None = None, wide: int = 1) -> CompiledLoop:
    """The compiled loop for records of these kinds and shapes; `own` says which leaves each of several runs has of its own."""
    single = (shapes(constants), shapes(states), draw)
    flags = None if own is None else tuple(flag for part in own for flag in records.leaves(part).values())
    key = (_kinds(*single), collect, wide, interpreting(), flags)
    if key not in _COMPILED:

        def written() -> tuple[PythonSource, object]:
            from bridle.engines.codegen.trace import trace, trace_runs
            from bridle.engines.jax import one_round

            traced, (_, kept) = trace(*single, collect)
            if own is not None:
                traced = trace_runs(one_round(collect), single, own)
            numbers = len(records.leaves(constants)), len(records.leaves(states))
            return lower(traced, *numbers, collect is Collect.TOTALS, wide), shapes(kept)

        run, kept = _made(_name(key, *single), written, machine.rounds_of, lambda run: run)
        _COMPILED[key] = CompiledLoop(run, [leaf.axes for leaf in records.leaves(kept).values()], kept)
    return cast("CompiledLoop", _COMPILED[key])


def compile_step(one: Callable[[C, S, G], S], constants: C, states: S, given: G, largest: float, ring: Ring | None = None) -> CompiledStep:
    """See `CompilesSteps.compile_step`; the array is laid out as `loops.lower_step` says, and the answer is a `StepOutcome`.

    It is the round of a session: one array of numbers crosses into the compiled code, and whatever is wrong comes back as a number.
    """
    check_compiled(constants, states, given)
    single = shapes(constants), shapes(states), shapes(given)
    key = (one, _kinds(*single), largest, ring, interpreting())
    if key not in _COMPILED:

        def written() -> tuple[PythonSource, int]:
            from bridle.engines.codegen.trace import trace_of

            try:
                traced, out = trace_of(one, *single)
            except TypeError as trouble:  # JAX's own complaints about what it cannot trace are TypeErrors
                raise CannotCompile(f"the policy cannot be compiled ({str(trouble).splitlines()[0]}); use engine 'python'") from None
            before, after = (tuple(leaf.axes for leaf in records.leaves(shapes(part)).values()) for part in (states, out))
            if before != after:
                raise CannotCompile("the policy cannot be compiled (an update changes the shape of its state); use engine 'python'")
            return lower_step(traced, len(records.leaves(constants)), len(records.leaves(states)), largest, ring)

        name = _name((one.__qualname__, *key[1:]), *single) if is_own(one) else None
        step = _made(name, written, machine.step_of, lambda run: lambda memory: partial(run, memory))
        _COMPILED[key] = cast("CompiledStep", step)
    return cast("CompiledStep", _COMPILED[key])


def _kinds(*parts: object) -> tuple[object, object]:
    """What a trace depends on, of records of shapes: the names and shapes of their leaves, and the types of the records."""
    sizes = tuple((name, leaf.axes) for part in parts for name, leaf in records.leaves(part).items())
    return sizes, tuple(type(node) for part in parts for node in records.nodes(part))


def interpreting() -> bool:
    """Whether what is written is to be run as it stands, without the compiler: slow, but a debugger can walk through it."""
    return os.environ.get("BRIDLE_INTERPRET", "") not in ("", "0")


def _made(
    name: str | None,
    written: Callable[[], tuple[PythonSource, E]],
    bound: Callable[[ObjectCode], Callable[..., object]],
    interpreted: Callable[[Callable[..., object]], Callable[..., object]],
) -> tuple[Callable[..., object], E]:
    """The function of a source, and what came with the source; from the folder of compiled code, where it is kept there by that name.

    Without a name it is the source itself that says what is the same.
    """
    if interpreting():
        source, more = written()
        return interpreted(source.interpreted()), more
    with machine.LOCK:
        place, made = kept_code.folder(), None
        if name is None:
            made = written()
            name = made[0].text() + repr(made[0].arrays)
        file = f"{_digest(name, machine.processor())}.code"
        content = None if place is None else kept_code.read(place, file)
        if content is not None:
            try:
                code, more = pickle.loads(content)
                return bound(code), made[1] if made else more
            except Exception:  # whatever another build may trip over: it is compiled anew
                pass
        source, more = made or written()
        code = object_code(source)
        if place is not None:
            kept_code.write(place, file, pickle.dumps((code, None if made else more)))
        return bound(code), more


def object_code(source: PythonSource) -> ObjectCode:
    """The machine code of a source."""
    translated = module(source.text(), source.arrays, source.wide)
    return ObjectCode(machine.compiled(translated.text), translated.scratch)


def _name(key: object, *parts: object) -> str | None:
    """What machine code for these records is kept by; None where they are not all bridle's own, and only their trace can tell."""
    return f"{key!r} {_sources()}" if made_of_own_records(*parts) else None


@cache
def _sources() -> str:
    """The digest of bridle's own sources."""
    home = Path(__file__).parents[1]
    return _digest(*(f"{path.relative_to(home)} {path.read_text(encoding='utf-8')}" for path in sorted(home.rglob("*.py"))))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]
