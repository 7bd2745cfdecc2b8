"""The numba engine: the same turn, traced once by JAX and written out as plain loops that numba compiles.

It is the fastest way to play one game, and many on a processor. There is no second copy of any algorithm: `loops` turns the trace of
`turn`, whatever the policy and the adversary, into the source of one function. That source is the key of what is compiled and kept on disk,
so that a changed algorithm can never meet old machine code.

Several runs are traced side by side and share every instruction, up to 64 in one loop; the compiled code does not hold Python's lock, so
that there is such a loop on every core. A few runs are played each by itself.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from bridle import records
from bridle.core import InputError
from bridle.engines import runs
from bridle.engines.codegen.loops import lower, lower_step
from bridle.engines.codegen.trace import shapes, trace, trace_of, trace_runs
from bridle.engines.jax import one_round
from bridle.engines.round import Block, Collect, RunBatch, block_of, check_compiled
from bridle.storage import cache_folder, replacing

__all__ = ["advance", "advance_many", "compile_step"]

WIDTHS = (16, 32, 64)
"""So many runs have room in one loop. More would not make it faster, and would leave the cache."""

FEW = 8
"""Runs go side by side in such numbers, as a processor's instructions take them; fewer are faster each in a loop of its own."""

CACHE = 2**14
"""How many numbers of a run's widest array, times runs, still leave room in the cache for the others."""

_COMPILED: dict[Any, Any] = {}


class Program(NamedTuple):
    """A compiled loop, the shapes of what it keeps of a round of one run, and the record they belong to."""

    run: Any
    kept: list[tuple[int, ...]]
    layout: Any


def advance(
    policy: Any, adversary: Any, state: Any, foe: Any, draws: Any, rounds: int, collect: Collect, wanted: Any = None
) -> tuple[Any, Any, Block]:
    """See `Engine.advance`."""
    check_compiled(policy, adversary, draws)
    given = [[runs.contiguous(leaf) for leaf in records.leaves(part).values()] for part in ((policy, adversary), (state, foe), draws)]
    program = _program((policy, adversary), (state, foe), shapes(draws, 1), collect)
    after, seen = _run(program, given, rounds, wanted, ())
    new_state, new_foe = _filled((state, foe), after)
    return new_state, new_foe, block_of(_filled(program.layout, seen), collect)


def advance_many(given: RunBatch, rounds: int, collect: Collect, wanted: Any = None) -> tuple[Any, Any, Block]:
    """See `PlaysManyRuns.advance_many`."""
    where = runs.layout_of(given)
    widest = max(np.size(leaf) for leaf in records.leaves(where.single[1]).values())
    ends = runs.group_ends(where.runs, max((width for width in WIDTHS if width * widest <= CACHE), default=WIDTHS[0]), FEW)
    apart, most = where.runs < FEW * (len(ends) - 1), -(-where.runs // (len(ends) - 1))
    wide = next(width for width in WIDTHS if width >= most)
    program = _program(*where.single[:2], shapes(where.single[2], 1), collect, None if apart else where.own, wide)

    def work(begin: int, end: int) -> Any:
        more = 0 if apart else -(end - begin) % FEW  # what is left of an instruction plays the last run once more
        mine = runs.arrays_of(where, given, [*range(begin, end), *[end - 1] * more], last=True)
        if apart:
            alike = zip(*(_run(program, _lane(where, mine, i), rounds, wanted, ()) for i in range(end - begin)), strict=True)
            return [[np.stack(arrays, axis=-1) for arrays in zip(*part, strict=True)] for part in alike]
        made = _run(program, mine, rounds, wanted, (end - begin + more,))
        return [[array[..., : end - begin] for array in part] for part in made]

    after, seen = zip(*runs.in_threads(work, ends), strict=True)
    new_state, new_foe = runs.joined(where.single[1], after, 0, last=True)
    return new_state, new_foe, block_of(runs.joined(program.layout, seen, 1, last=True), collect)


def _lane(where: runs.RunLayout, given: runs.RunArrays, i: int) -> list[list[np.ndarray]]:
    """The arrays of one run of a group."""
    return [
        [np.array(array[..., i]) if mine else array for array, mine in zip(part, records.leaves(own).values(), strict=True)]
        for part, own in zip(given, where.own, strict=True)
    ]


def _run(program: Program, given: Any, rounds: int, wanted: Any, lanes: tuple[int, ...]) -> tuple[Any, Any]:
    """The states and what was kept after so many rounds, with the runs as the last axis where there are several."""
    constants, states, draws = given
    after = tuple(np.empty(array.shape) for array in states)
    rows = rounds if wanted is None else len(wanted)
    seen = tuple(np.empty((rows, *shape, *lanes)) for shape in program.kept)
    marks = np.full(0 if wanted is None else rounds, -1)
    if wanted is not None:
        marks[wanted - 1] = np.arange(rows)
    program.run(rounds, lanes[0] if lanes else 1, marks, (*constants, *states, *draws), (*after, *seen))
    return after, seen


def _filled(like: Any, arrays: Any) -> Any:
    """A record like `like` with these leaves; a scalar as a float, as the Python engine has it."""
    parts = iter(arrays)

    def home(_: Any) -> Any:
        array = next(parts)
        return float(array) if array.ndim == 0 else array

    return records.transform(home, like)


def _program(constants: Any, states: Any, draw: Any, collect: Collect, own: Any = None, wide: int = 1) -> Program:
    """The compiled loop for records of these kinds and shapes; `own` says which leaves each of several runs has of its own."""
    single = (shapes(constants), shapes(states), draw)
    sizes = tuple((name, leaf.axes) for part in single for name, leaf in records.leaves(part).items())
    kinds = tuple(type(node) for part in single for node in records.nodes(part))
    key = (sizes, kinds, collect, wide, None if own is None else tuple(flag for part in own for flag in records.leaves(part).values()))
    if key not in _COMPILED:
        traced, (_, kept) = trace(*single, collect)
        if own is not None:
            traced = trace_runs(one_round(collect), single, own)
        run = _load(lower(traced, len(records.leaves(constants)), len(records.leaves(states)), collect is Collect.TOTALS, wide))
        _COMPILED[key] = Program(run, [tuple(leaf.shape) for leaf in records.leaves(kept).values()], kept)
    return _COMPILED[key]  # type: ignore[no-any-return]


def compile_step(one: Any, constants: Any, states: Any, given: Any, largest: float, ring: tuple[int, Any] | None = None) -> Any:
    """``states = one(constants, states, given)`` compiled as a function of one flat array, laid out as `loops.lower_step` says; its length.

    It is the round of a session: one number array crosses into the compiled code, and whatever is wrong comes back as a number.
    """
    check_compiled(constants, states, given)
    sizes = tuple((name, np.shape(leaf)) for part in (constants, states, given) for name, leaf in records.leaves(part).items())
    kinds = tuple(type(node) for part in (constants, states, given) for node in records.nodes(part))
    key = (one, sizes, kinds, largest, ring)
    if key not in _COMPILED:
        try:
            traced, out = trace_of(one, *(shapes(part) for part in (constants, states, given)))
        except TypeError as trouble:  # JAX's own complaints about what it cannot trace are TypeErrors
            raise InputError(f"the policy cannot be compiled ({str(trouble).splitlines()[0]}); use engine 'python'") from None
        before, after = (tuple(np.shape(leaf) for leaf in records.leaves(part).values()) for part in (states, out))
        if before != after:
            raise InputError("the policy cannot be compiled (an update changes the shape of its state); use engine 'python'")
        try:
            source, size = lower_step(traced, len(records.leaves(constants)), len(records.leaves(states)), largest, ring)
        except InputError as unknown:
            raise InputError(str(unknown).replace("engine 'jax'", "engine 'python'")) from None
        run = _load(source)
        # What is behind the compiler's front door takes this one kind of argument alone, and half the time to be called.
        _COMPILED[key] = run.compile((numba.float64[::1],)) if hasattr(run, "compile") else run, size
    return _COMPILED[key]


def _load(source: str) -> Any:
    """The function `run` of a source, from the cache of compiled code where it can be kept there."""
    name = f"bridle_{hashlib.sha256((source + numba.__version__).encode()).hexdigest()[:24]}"
    place = _keep(name, source)
    if place is None:
        scope: dict[str, Any] = {}
        exec(compile(source, name, "exec"), scope)
        return scope["run"]
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba finds a cached function's module by its name
    spec.loader.exec_module(module)
    return module.run


def _keep(name: str, source: str) -> Path | None:
    """The source in a file of the cache, named by its hash; None where nothing can be written."""
    place = Path(os.environ.get("BRIDLE_COMPILED") or cache_folder() / "compiled") / f"{name}.py"
    try:
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            with replacing(place) as file:
                file.write(source.replace("@njit(nogil=True,", "@njit(cache=True, nogil=True,").encode())
    except OSError:
        return None
    return place
