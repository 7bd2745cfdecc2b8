"""One round, and the engines that repeat it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bridle import records
from bridle.core import Feedback, InputError, Round, Unavailable

ENGINES = {"python": "", "jax": "jax", "numba": "numba", "cuda": "cuda"}
"""The engines, and the extra each one needs."""


def turn(policy: Any, adversary: Any, state: Any, foe: Any, draw: Any) -> tuple[Any, Any, Feedback]:
    """One round: the policy decides, the adversary answers, the policy updates on what is revealed."""
    x = policy.decide(state)
    foe, chosen = adversary.answer(foe, x) if draw is None else adversary.answer(foe, x, draw)
    feedback = chosen.reveal(x)
    return policy.update(state, feedback), foe, feedback


class Block(NamedTuple):
    """What an engine hands back of a block of rounds, with a leading time axis; `x` and a list of rounds where they were asked for."""

    f: Any
    g: Any
    x: Any = None
    round: Any = None
    sums: Any = None  # the totals at the rounds asked for, in place of f and g, where the engine adds up


def block_of(seen: Any, collect: str) -> Block:
    """The block of what a compiled round keeps: its cost, its constraint values and what else was asked for; or the totals alone."""
    if collect == "sums":
        return Block(None, None, sums=seen)
    f, g, more = seen
    return Block(f, g, more if collect == "x" else None, [more] if collect == "round" else None)


class Several(NamedTuple):
    """Several runs at some point of their games: one policy record for all, that of the first `alone`, and the states of both sides.

    `players` and `draws` are of all runs, or one for each of them.
    """

    policy: Any
    alone: Any
    players: list[Any]
    state: Any
    foe: Any
    draws: tuple[Any, ...]


def load_engine(name: str) -> Callable[..., tuple[Any, Any, Block]]:
    """The function that advances a block of rounds. Engines are found by name, so that the game depends on no compiler."""
    return _module(name).advance  # type: ignore[no-any-return]


def load_engine_of_many(name: str) -> Callable[..., tuple[Any, Any, Block]] | None:
    """The same for several runs at a time, where the engine has a way of its own with them."""
    return getattr(_module(name), "advance_many", None)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"bridle.engines.{name}")
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("bridle"):
            raise
        raise Unavailable(f"engine {name!r} needs the package {missing.name}: pip install 'bridle[{ENGINES[name]}]'") from None


def gather(rounds: list[Round]) -> list[Round]:
    """Rounds as one sequence where they can be stacked, else as they are."""
    if all(getattr(node, "compiled", True) for part in rounds[0] for node in records.nodes(part)):
        return [records.stack(rounds)]
    return rounds


def check_compiled(*parts: object) -> None:
    """Refuse what no compiler can run: records that call a solver or Python functions."""
    for part in parts:
        for node in records.nodes(part):
            if not getattr(node, "compiled", True):
                raise InputError(f"{type(node).__name__} runs on engine 'python' only: it calls a solver or a Python function every round")
        for name, leaf in records.leaves(part).items():
            if not isinstance(leaf, (int, float, np.ndarray, np.generic)):
                raise InputError(f"a compiled engine needs records of numbers: {name or 'a part'} is a {type(leaf).__name__}")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def block_length(dim: int) -> int:
    """How many rounds are dealt at a time: fixed by the dimension alone, so that a stream depends on nothing but its seed."""
    return max(1, min(1024, 2**21 // dim))
