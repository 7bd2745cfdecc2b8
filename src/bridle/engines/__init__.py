"""Engines: each advances a game by a block of rounds, by repeating `round.turn`. Only their files import compilers.

An engine is a module that satisfies `Engine`; it may offer more, which is a protocol of its own. `load` finds it by its name, so that
nothing else depends on a compiler.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, runtime_checkable

from bridle import validate
from bridle.core import InputError, S, Unavailable
from bridle.engines.explain import explain
from bridle.engines.round import Block, CannotCompile, Collect, F, Marks, RunBatch, SingleRun, check_compiled, made_of_own_records
from bridle.ops import Array

__all__ = [
    "AUTO",
    "ENGINES",
    "CannotCompile",
    "CompilesSteps",
    "Differentiates",
    "Engine",
    "PlaysManyRuns",
    "check_name",
    "explain",
    "fastest",
    "load",
]

ENGINES = {"python": "", "jax": "jax", "compiled": "compiled"}
"""The engines, and the extra each one needs."""

AUTO = "auto"
"""The name that stands for "compiled" where that pays, and for "python" elsewhere."""

WORTH_COMPILING = 20_000
"""From so many rounds on a game is compiled where nobody has said how it is to be played.

Python takes 0.2 to 3 s for them; compiling takes 1.1 to 1.4 s the first time, and 0.1 s where the code was kept.
"""

C = TypeVar("C")
G = TypeVar("G")


@runtime_checkable
class Engine(Protocol):
    """Something that plays rounds: Python, JAX or machine code.

    Examples
    --------
    >>> isinstance(load("python"), Engine)
    True
    """

    def advance(self, run: SingleRun[S, F], rounds: int, collect: Collect, marks: Marks | None = None, /) -> tuple[S, F, Block]:
        """Play rounds of one run.

        With ``Collect.TOTALS`` the policy is one that sums, and its sums after each of the rounds `marks` are returned; the Python engine
        leaves that to the others.

        Parameters
        ----------
        run : SingleRun
            The policy, the adversary and their states.
        rounds : int
            How many rounds to play, 1 or above.
        collect : Collect
            What to return of each round.
        marks : Marks, optional
            After which rounds sums are wanted, counted from 1.
        """
        ...


@runtime_checkable
class PlaysManyRuns(Protocol):
    """An engine with a way of its own to play several runs at a time.

    Examples
    --------
    >>> isinstance(load("python"), PlaysManyRuns)
    False
    """

    def advance_many(self, batch: RunBatch, rounds: int, collect: Collect, marks: Marks | None = None, /) -> tuple[object, object, Block]:
        """`Engine.advance` for every run of a batch.

        Returns the policies' states, the adversaries', and what `collect` asks for.

        Parameters
        ----------
        batch : RunBatch
            The runs.
        rounds : int
            How many rounds to play, 1 or above.
        collect : Collect
            What to return of each round.
        marks : Marks, optional
            After which rounds sums are wanted, counted from 1.
        """
        ...


@runtime_checkable
class CompilesSteps(Protocol):
    """An engine that compiles a single step on one flat array, which is how a session plays its rounds.

    Examples
    --------
    >>> isinstance(load("python"), CompilesSteps)
    False
    """

    def compile_step(
        self,
        one: Callable[[C, S, G], S],
        constants: C,
        states: S,
        inputs: G,
        largest: float,
        ring: tuple[int, tuple[tuple[int, int], ...]] | None = None,
        /,
    ) -> tuple[Callable[[Array], Callable[[], int]], int]:
        """The step ``states = one(constants, states, inputs)`` on one array: what makes a function of it, and how long it must be.

        Parameters
        ----------
        one : callable
            The step.
        constants : record
            What does not change.
        states : record
            What the step changes.
        inputs : record
            What a round brings.
        largest : float
            Numbers above this are refused.
        ring : tuple, optional
            A buffer that the step writes around.
        """
        ...


@runtime_checkable
class Differentiates(Protocol):
    """An engine that differentiates Python functions.

    Examples
    --------
    >>> isinstance(load("python"), Differentiates)
    False
    """

    def value_and_gradient(self, name: str, function: Callable[[Array], object], x: Array, /) -> tuple[float, Array]:
        """The value of a function, and its gradient.

        Returns the value, and the gradient of shape (d,).

        Parameters
        ----------
        name : str
            What an error calls the function.
        function : callable
            The function.
        x : array of shape (d,)
            Where.
        """
        ...


def check_name(name: object, known: Collection[str] = ENGINES) -> str:
    """The name of one of these engines; "numba" is what "compiled" was called before.

    Examples
    --------
    >>> check_name("cuda")
    Traceback (most recent call last):
    ...
    bridle.core.InputError: engine 'cuda' was removed; use engine='jax', which uses a GPU where JAX sees one
    >>> check_name("numba")
    'compiled'
    """
    if isinstance(name, str) and name == "cuda":
        raise InputError("engine 'cuda' was removed; use engine='jax', which uses a GPU where JAX sees one")
    known_as = "compiled" if isinstance(name, str) and name == "numba" else name
    validate.one_of("engine", known_as, known)
    return str(known_as)


def fastest(rounds: int, policy: object, adversary: object) -> str:
    """What "auto" stands for in a game of so many rounds: what is installed and how long the game is tell, and nothing else.

    Records of one's own are played in Python: tracing calls their methods once, and would freeze what they do beside computing.

    Examples
    --------
    >>> import bridle
    >>> fastest(100, bridle.policy("ogd", bridle.Ball(2), lipschitz=1.0).record, None)
    'python'
    """
    worth = rounds >= WORTH_COMPILING and compiles(policy, getattr(adversary, "player", adversary))
    return "compiled" if worth else "python"


def compiles(*parts: object) -> bool:
    """Whether these are bridle's own records, of numbers alone, and what compiles them is installed."""
    if not all(map(importlib.util.find_spec, ("llvmlite", "jax"))):
        return False
    try:
        check_compiled(*parts)
    except CannotCompile:
        return False
    return made_of_own_records(*parts)


def load(name: str) -> Engine:
    """The engine of this name.

    Parameters
    ----------
    name : {"python", "jax", "compiled"}
        Which one.

    Examples
    --------
    >>> isinstance(load("python"), Engine)
    True
    """
    name = check_name(name)
    try:
        return cast(Engine, importlib.import_module(f"bridle.engines.{name}"))
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("bridle"):
            raise
        raise Unavailable(f"engine {name!r} needs the package {missing.name}: pip install 'bridle-oco[{ENGINES[name]}]'") from None


if TYPE_CHECKING:  # mypy holds every engine to what it offers
    from bridle.engines import compiled, jax, python

    _engines: list[Engine] = [python, jax, compiled]
    _of_many: list[PlaysManyRuns] = [jax, compiled]
    _of_steps: list[CompilesSteps] = [compiled]
    _of_gradients: list[Differentiates] = [jax]
