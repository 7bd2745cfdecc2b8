"""The numba engine: the same turn, traced once by JAX and written out as plain loops that numba compiles.

It is the fastest way to play one game. There is no second copy of any algorithm: `loops` turns the trace of `turn`, whatever the policy
and the adversary, into the source of one function. That source is the key of what is compiled and kept on disk, so that a changed
algorithm can never meet old machine code. The compiled loop does not hold Python's lock, so that `play` has several runs side by side in
threads, each a game of its own.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np

from bridle import records
from bridle.core import InputError
from bridle.data.cache import folder
from bridle.engines.loops import lower, lower_step
from bridle.engines.tracing import shapes, trace, trace_of
from bridle.files import replacing
from bridle.game import Block, check_compiled

__all__ = ["advance", "step"]

_COMPILED: dict[Any, Any] = {}


def advance(policy: Any, adversary: Any, state: Any, foe: Any, draws: Any, rounds: int, collect: str) -> tuple[Any, Any, Block]:
    """`rounds` rounds of the game; `collect` is "x" to keep the decisions, "round" to keep the rounds, or empty."""
    check_compiled(policy, adversary, draws)
    constants, states, dealt = (_arrays(part) for part in ((policy, adversary), (state, foe), draws))
    run, kept, layout = _program((policy, adversary), (state, foe), draws, collect)
    after = tuple(np.empty(array.shape) for array in states)
    seen = tuple(np.empty((rounds, *shape)) for shape in kept)
    run(rounds, (*constants, *states, *dealt), (*after, *seen))
    new_state, new_foe = _filled((state, foe), after)
    f, g, more = _filled(layout, seen)
    return new_state, new_foe, Block(f, g, more if collect == "x" else None, [more] if collect == "round" else None)


def _arrays(part: Any) -> tuple[np.ndarray, ...]:
    """The leaves as arrays of floats; a scalar is an array without axes."""
    return tuple(
        np.ascontiguousarray(leaf, dtype=float) if np.ndim(leaf) else np.array(leaf, dtype=float) for leaf in records.leaves(part).values()
    )


def _filled(like: Any, arrays: Any) -> Any:
    """A record like `like` with these leaves; a scalar as a float, as the Python engine has it."""
    parts = iter(arrays)

    def home(_: Any) -> Any:
        array = next(parts)
        return float(array) if array.ndim == 0 else array

    return records.transform(home, like)


def _program(constants: Any, states: Any, draws: Any, collect: str) -> tuple[Any, list[tuple[int, ...]], Any]:
    """The compiled loop for records of these kinds and shapes, the shapes of what it keeps of a round, and the record they belong to."""
    shapes = tuple((name, np.shape(leaf)) for part in (constants, states, draws) for name, leaf in records.leaves(part).items())
    kinds = tuple(type(node) for part in (constants, states, draws) for node in records.nodes(part))
    key = (shapes, kinds, collect)
    if key not in _COMPILED:
        _COMPILED[key] = _compile(constants, states, draws, collect)
    return _COMPILED[key]  # type: ignore[no-any-return]


def _compile(constants: Any, states: Any, draws: Any, collect: str) -> tuple[Any, list[tuple[int, ...]], Any]:
    traced, out = trace(shapes(constants), shapes(states), shapes(draws, 1), collect)
    counts = [len(records.leaves(part)) for part in (constants, states, draws)]
    run = _load(lower(traced, *counts))
    return run, [leaf.shape for leaf in records.leaves(out[1]).values()], out[1]


def step(one: Any, constants: Any, states: Any, given: Any, largest: float, ring: tuple[int, Any] | None = None) -> Any:
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
    place = Path(os.environ.get("BRIDLE_COMPILED") or folder() / "compiled") / f"{name}.py"
    try:
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            with replacing(place) as file:
                file.write(source.replace("@njit(nogil=True,", "@njit(cache=True, nogil=True,").encode())
    except OSError:
        return None
    return place
