"""Engines: each advances a game by a block of rounds, by repeating `round.turn`. Only their files import compilers.

An engine is a module that satisfies `Engine`; it may offer more, which is a protocol of its own. `load` finds it by its name, so that
nothing else depends on a compiler.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, runtime_checkable

from bridle import validate
from bridle.core import S, Unavailable
from bridle.engines.explain import explain
from bridle.engines.round import Block, Collect, F, Marks, RunBatch, SingleRun
from bridle.ops import Array

__all__ = ["ENGINES", "CompilesSteps", "Differentiates", "Engine", "PlaysManyRuns", "explain", "load"]

ENGINES = {"python": "", "jax": "jax", "numba": "numba", "cuda": "cuda"}
"""The engines, and the extra each one needs."""

C = TypeVar("C")
G = TypeVar("G")


@runtime_checkable
class Engine(Protocol):
    """Something that plays rounds."""

    def advance(self, run: SingleRun[S, F], rounds: int, collect: Collect, marks: Marks | None = None, /) -> tuple[S, F, Block]:
        """Play `rounds` rounds of the run: the policy's state after them, the adversary's, and what `collect` asks for.

        With `Collect.TOTALS` the policy is one that sums, and its `sums` after each of the rounds `marks` (counted from 1) are returned;
        the Python engine leaves that to the others.
        """
        ...


@runtime_checkable
class PlaysManyRuns(Protocol):
    """An engine with a way of its own to play several runs at a time."""

    def advance_many(self, batch: RunBatch, rounds: int, collect: Collect, marks: Marks | None = None, /) -> tuple[object, object, Block]:
        """`advance` for every run of the batch."""
        ...


@runtime_checkable
class CompilesSteps(Protocol):
    """An engine that compiles a single step on one flat array, which is how a session plays its rounds."""

    def compile_step(
        self,
        one: Callable[[C, S, G], S],
        constants: C,
        states: S,
        inputs: G,
        largest: float,
        ring: tuple[int, tuple[tuple[int, int], ...]] | None = None,
        /,
    ) -> tuple[Callable[[Array], int], int]:
        """``states = one(constants, states, inputs)`` as a function of one array, and how long that is."""
        ...


@runtime_checkable
class Differentiates(Protocol):
    """An engine that differentiates Python functions."""

    def value_and_gradient(self, name: str, function: Callable[[Array], object], x: Array, /) -> tuple[float, Array]:
        """The value of the function at x, and its gradient; `name` is what an error calls the function."""
        ...


def load(name: str) -> Engine:
    """The engine of this name; `Unavailable` where its packages are not installed."""
    validate.one_of("engine", name, ENGINES)
    try:
        return cast(Engine, importlib.import_module(f"bridle.engines.{name}"))
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("bridle"):
            raise
        raise Unavailable(f"engine {name!r} needs the package {missing.name}: pip install 'bridle[{ENGINES[name]}]'") from None


if TYPE_CHECKING:  # mypy holds every engine to what it offers
    from bridle.engines import cuda, jax, numba, python

    _engines: list[Engine] = [python, jax, numba, cuda]
    _of_many: list[PlaysManyRuns] = [jax, numba, cuda]
    _of_steps: list[CompilesSteps] = [numba]
    _of_gradients: list[Differentiates] = [jax]
