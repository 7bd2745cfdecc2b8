"""One round of a game, and what an engine returns of a block of rounds.

`turn` is the round, and the only place where the two sides meet; every engine repeats it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bridle import records
from bridle.core import Adversary, Feedback, Hintable, InputError, Policy, Round, S, capability, revealed
from bridle.ops import Array

F = TypeVar("F")
"""The state of an adversary."""


def turn(policy: Policy[S], adversary: Adversary[F], state: S, foe: F, draw: object) -> tuple[S, F, Feedback]:
    """One round: the policy decides, the adversary answers, the policy updates on what is revealed; `foe` is the adversary's state."""
    x = policy.decide(state)
    foe, chosen = answer(adversary, foe, x, draw)
    feedback = revealed(policy, state, x, chosen)
    return policy.update(state, feedback), foe, feedback


def hinted_turn(policy: Policy[S], adversary: Adversary[F], state: S, foe: F, draw: object) -> tuple[S, F, Feedback]:
    """`turn`, before which the adversary tells the policy what it may expect of the round."""
    hint = adversary.hint(foe, policy.decide(state), draw)  # type: ignore[attr-defined]
    return turn(policy, adversary, policy.hinted(state, hint), foe, draw)  # type: ignore[attr-defined]


def turn_for(policy: object, adversary: object) -> Callable[[Policy[S], Adversary[F], S, F, object], tuple[S, F, Feedback]]:
    """The round of this policy and this adversary: with a hint where the one gives them and the other takes them."""
    return hinted_turn if hasattr(adversary, "hint") and capability(policy, Hintable) is not None else turn


def answer(adversary: Adversary[F], foe: F, x: Array, draw: object) -> tuple[F, Round]:
    """The adversary's new state, and the round with which it answers x; `draw` is None for one that is dealt nothing."""
    return adversary.answer(foe, x) if draw is None else adversary.answer(foe, x, draw)


class Collect(Enum):
    """What an engine returns of a block of rounds."""

    VALUES = "values"  # the cost and the constraint values of every round
    DECISIONS = "decisions"  # these, and every decision
    ROUNDS = "rounds"  # the rounds themselves, as the adversary chose them
    TOTALS = "totals"  # nothing of single rounds: the totals of a policy that sums, after those that are marked


class BlockValues(NamedTuple):
    """The costs `f` and constraint values `g` of a block of rounds, and the decisions `x` where they are collected; time comes first."""

    f: Array
    g: Array
    x: Array | None = None


class BlockRounds(NamedTuple):
    """The rounds of a block: one record of them all with a leading time axis, or one by one where they cannot be stacked."""

    rounds: list[Round]


class BlockTotals(NamedTuple):
    """The totals after each of the marked rounds of a block, as the policy's own record with a leading axis."""

    sums: object


Block: TypeAlias = BlockValues | BlockRounds | BlockTotals
"""What an engine returns of a block of rounds: `Collect` says which."""


def row_of(collect: Collect, state: Any, feedback: Feedback) -> object:
    """What a compiled round keeps, from the policy's state after it and its feedback: a record of which `block_of` makes the block."""
    if collect is Collect.TOTALS:
        return state.sums
    if collect is Collect.ROUNDS:
        return feedback.round
    return (feedback.f, feedback.g, feedback.x if collect is Collect.DECISIONS else None)


def block_of(rows: object, collect: Collect) -> Block:
    """The block of what compiled rounds kept, with a leading time axis."""
    if collect is Collect.TOTALS:
        return BlockTotals(rows)
    if collect is Collect.ROUNDS:
        return BlockRounds([cast(Round, rows)])
    return BlockValues(*cast(tuple[Array, Array, Array | None], rows))


Marks: TypeAlias = NDArray[np.int_]
"""Rounds of a block, counted from 1, in their order."""


class SingleRun(NamedTuple, Generic[S, F]):
    """One run at some point of its game: both sides, their states, and the draws of the rounds to come.

    `draws` is what the adversary was dealt for these rounds, a record with a leading time axis, or None.
    """

    policy: Policy[S]
    adversary: Adversary[F]
    state: S
    foe: F
    draws: object


class RunBatch(NamedTuple):
    """Several runs at some point of their games: one policy record for all, that of the first `alone`, and the states of both sides.

    `players` and `draws` are one for all runs, or one for each of them.
    """

    policy: Policy[object]
    alone: Policy[object]
    players: Sequence[Adversary[object]]
    state: object
    foe: object
    draws: Sequence[object]


def gather(rounds: list[Round]) -> list[Round]:
    """Rounds as one sequence where they can be stacked, else as they are."""
    if all(getattr(node, "compiled", True) for part in rounds[0] for node in records.nodes(part)):
        return [records.stack(rounds)]
    return rounds


class CannotCompile(InputError):
    """What no compiled engine can run: the message says what, and which engine can."""


def check_compiled(*parts: object) -> None:
    """Refuse what no compiler can run: records that call a solver or Python functions."""
    for part in parts:
        for node in records.nodes(part):
            if not getattr(node, "compiled", True):
                raise CannotCompile(
                    f"{type(node).__name__} runs on engine 'python' only: it calls a solver or a Python function every round"
                )
        for name, leaf in records.leaves(part).items():
            if not isinstance(leaf, (int, float, np.ndarray, np.generic)):
                raise CannotCompile(f"a compiled engine needs records of numbers: {name or 'a part'} is a {type(leaf).__name__}")


def made_of_own_records(*parts: object) -> bool:
    """Whether all records are bridle's own, with the methods that bridle gave them."""
    types = {type(node) for part in parts for node in records.nodes(part)}
    return all(is_own(each) and all(map(is_own, filter(callable, vars(each).values()))) for kind in types for each in kind.__mro__)


def is_own(thing: object) -> bool:
    """Whether a type or a function is bridle's or Python's, and not somebody's own in its place."""
    room = str(getattr(thing, "__module__", None) or "builtins").split(".")[0]
    return room == "bridle" or room in sys.stdlib_module_names


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def block_length(dim: int) -> int:
    """How many rounds are dealt at a time: fixed by the dimension alone, so that a stream depends on nothing but its seed.

    Parameters
    ----------
    dim : int
        How many coordinates an action has, 1 or above.

    Examples
    --------
    >>> block_length(10) >= block_length(1000) >= 1
    True
    """
    return max(1, min(1024, 2**21 // dim))


class StepOutcome(IntEnum):
    """What a compiled step answers. Nothing has changed where it is positive."""

    RING_FULL = -1
    """The new states have taken the old ones' place, and the last row of the ring has been written."""
    DONE = 0
    """The new states have taken the old ones' place."""
    BAD_INPUT = 1
    """A number given is too large, or none at all."""
    BAD_RESULT = 2
    """A new number is not finite and the one before it was, or there is no row left to write."""
