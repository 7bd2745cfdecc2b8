"""The numba engine: the round, traced once by JAX and written out as plain loops that numba compiles.

It is the fastest way to play one game, and many on a processor. There is no second copy of any algorithm: `loops` turns the trace of
`turn`, whatever the policy and the adversary, into the source of one function. That source is the key of what is compiled and kept on disk
(`kept_code`), so that a changed algorithm can never meet old machine code.

Several runs are traced side by side and share every instruction, up to 64 in one loop; the compiled code does not hold Python's lock, so
that there is such a loop on every core. A few runs are played each by itself.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba.core import caching, compiler, serialize

from bridle import records
from bridle.core import InputError, S
from bridle.engines import kept_code, runs
from bridle.engines.codegen.loops import Ring, lower, lower_step
from bridle.engines.codegen.python_source import PythonSource, execute
from bridle.engines.codegen.trace import shapes, trace, trace_of, trace_runs
from bridle.engines.jax import one_round
from bridle.engines.round import Block, Collect, F, Marks, RunBatch, SingleRun, block_of, check_compiled
from bridle.ops import Array
from bridle.records import R

__all__ = ["advance", "advance_many", "compile_step"]

C = TypeVar("C")
G = TypeVar("G")

WIDTHS = (16, 32, 64)
"""So many runs have room in one loop. More would not make it faster, and would leave the cache."""

FEW = 8
"""Runs go side by side in such numbers, as a processor's instructions take them; fewer are faster each in a loop of its own."""

CACHE = 2**14
"""How many numbers of a run's widest array, times runs, still leave room in the cache for the others."""


class CompiledLoop(NamedTuple):
    """A compiled loop, the shapes of what it keeps of a round of one run, and the record they belong to."""

    run: Callable[..., object]
    kept: list[tuple[int, ...]]
    layout: object


CompiledStep: TypeAlias = tuple[Callable[[Array], int], int]
"""A compiled step, and how long the array is that it works on."""

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
    key = (*_kinds(*single), collect, wide, interpreting(), flags)
    if key not in _COMPILED:
        traced, (_, kept) = trace(*single, collect)
        if own is not None:
            traced = trace_runs(one_round(collect), single, own)
        run = _load(lower(traced, len(records.leaves(constants)), len(records.leaves(states)), collect is Collect.TOTALS, wide))
        _COMPILED[key] = CompiledLoop(run, [tuple(leaf.shape) for leaf in records.leaves(kept).values()], kept)
    return cast("CompiledLoop", _COMPILED[key])


def compile_step(one: Callable[[C, S, G], S], constants: C, states: S, given: G, largest: float, ring: Ring | None = None) -> CompiledStep:
    """See `CompilesSteps.compile_step`; the array is laid out as `loops.lower_step` says, and the answer is a `StepOutcome`.

    It is the round of a session: one array of numbers crosses into the compiled code, and whatever is wrong comes back as a number.
    """
    check_compiled(constants, states, given)
    single = shapes(constants), shapes(states), shapes(given)
    key = (one, *_kinds(*single), largest, ring, interpreting())
    if key not in _COMPILED:
        try:
            traced, out = trace_of(one, *single)
        except TypeError as trouble:  # JAX's own complaints about what it cannot trace are TypeErrors
            raise InputError(f"the policy cannot be compiled ({str(trouble).splitlines()[0]}); use engine 'python'") from None
        before, after = (tuple(np.shape(leaf) for leaf in records.leaves(part).values()) for part in (states, out))
        if before != after:
            raise InputError("the policy cannot be compiled (an update changes the shape of its state); use engine 'python'")
        source, size = lower_step(traced, len(records.leaves(constants)), len(records.leaves(states)), largest, ring)
        run = _load(source)
        # What is behind the compiler's front door takes this one kind of argument alone, and half the time to be called.
        _COMPILED[key] = run.compile((numba.float64[::1],)) if hasattr(run, "compile") else cast("Callable[[Array], int]", run), size
    return cast("CompiledStep", _COMPILED[key])


def _kinds(*parts: object) -> tuple[object, object]:
    """What a trace depends on, of records of shapes: the names and shapes of their leaves, and the types of the records."""
    sizes = tuple((name, leaf.axes) for part in parts for name, leaf in records.leaves(part).items())
    return sizes, tuple(type(node) for part in parts for node in records.nodes(part))


def interpreting() -> bool:
    """Whether what is written is to be run as it stands, without the compiler: slow, but a debugger can walk through it."""
    return os.environ.get("BRIDLE_INTERPRET", "") not in ("", "0")


def _load(source: PythonSource) -> Callable[..., object]:
    """The function `run` of a source; its machine code comes from the folder of compiled code where it can be kept there."""
    if interpreting():
        return source.interpreted()
    text = source.text()
    name = f"bridle_{hashlib.sha256((text + numba.__version__).encode()).hexdigest()[:24]}"
    module = sys.modules[name] = ModuleType(name)  # numba finds a kept function's module by its name
    execute(text, f"<{name}>", module.__dict__)
    place = kept_code.folder()
    if place is not None and hasattr(module.run, "_cache"):  # numba's own switch can turn the compiler off
        module.run._cache = KeptFunction(name, place)
    return cast("Callable[..., object]", module.run)


_rebuilt: Callable[..., object] = compiler.CompileResult._rebuild
_pickled: Callable[..., bytes] = serialize.dumps


class KeptFunction(caching._Cache):
    """What numba asks for the machine code of a function, and gives it to: one checked file for each signature and processor.

    numba's own would look beside the source or in a folder of the environment's choice, and trust the pickles that it finds there.
    """

    def __init__(self, name: str, place: Path) -> None:
        self.name, self.place = name, place

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self.place)

    def file(self, signature: object, codegen: Any) -> str:
        """The name of the file for arguments of these types on this processor."""
        key = f"{signature} {codegen.magic_tuple()} {sys.version} {np.__version__}"
        return f"{self.name}.{hashlib.sha256(key.encode()).hexdigest()[:24]}.code"

    def load_overload(self, signature: object, target_context: Any) -> object:
        """The compiled function, if it is there; None else, and where this numba cannot make use of it."""
        target_context.refresh()
        content = kept_code.read(self.place, self.file(signature, target_context.codegen()))
        if content is None:
            return None
        try:
            return _rebuilt(target_context, *pickle.loads(content))
        except Exception:  # whatever another build of the compiler may trip over: it is compiled anew
            return None

    def save_overload(self, signature: object, compiled: Any) -> None:
        """Keep the compiled function."""
        if not compiled.lifted and not compiled.library.has_dynamic_globals:  # else it holds addresses of this process
            kept_code.write(self.place, self.file(signature, compiled.codegen), _pickled(compiled._reduce()))

    def enable(self) -> None:
        """It is always in use."""

    def disable(self) -> None:
        """It is always in use."""

    def flush(self) -> None:
        """Forget what is kept of this function."""
        for file in self.place.glob(f"{self.name}.*.code"):
            file.unlink(missing_ok=True)
