"""The draws of an adversary, block by block, so that a stream depends on nothing but its seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bridle import records
from bridle.core import Adversary, InputError, Round
from bridle.engines.round import F, answer, block_length
from bridle.ops import Array


def deal_blocks(adversary: Any, seed: int, rounds: int, dim: int, many: int = 1) -> Iterator[Any]:
    """What an adversary draws for its rounds, block by block.

    A block is always dealt whole and then cut, so a longer game begins with the same rounds as a shorter one. Rounds that were there
    before the game are replayed as they are.

    Parameters
    ----------
    adversary : Adversary
        What draws.
    seed : int
        The seed of the stream, 0 or above.
    rounds : int
        How many rounds, 1 or above.
    dim : int
        How many coordinates an action has, 1 or above.
    many : int, default 1
        How many blocks at a time, 1 or above.

    Yields
    ------
    object
        The draws with a leading time axis; None for an adversary that needs none.

    Examples
    --------
    >>> import bridle
    >>> problem = bridle.problem("halfspaces", horizon=5, dim=2)
    >>> [block.cost.a.shape for block in deal_blocks(problem.adversary, seed=0, rounds=5, dim=2)]
    [(5, 2)]
    """
    for_adversary, _for_policy = np.random.SeedSequence(seed).spawn(2)
    rng, length = np.random.default_rng(for_adversary), block_length(dim)
    for start in range(0, rounds, many * length):
        size = min(many * length, rounds - start)
        if hasattr(adversary, "replay"):
            replayed = adversary.replay(start, start + size)
            for name, leaf in records.leaves(replayed).items():
                if len(leaf) != size:  # compiled loops do not look where an array ends
                    raise InputError(f"replay({start}, {start + size}) must give {size} rounds; {name} has {len(leaf)}")
            yield replayed
        elif hasattr(adversary, "deal"):
            dealt = [adversary.deal(rng, length) for _ in range(0, size, length)]
            whole = dealt[0] if len(dealt) == 1 else records.join(dealt)
            del dealt  # what is dealt may be large: nothing is held here while it is played
            yield records.cut(whole, 0, size)
            del whole
        else:
            yield None


def player(adversary: Any) -> Any:
    """What an engine plays against: the adversary itself, or the record that stands for it where its rounds are dealt from elsewhere.

    Returns the record that an engine compiles.

    Parameters
    ----------
    adversary : Adversary
        The adversary.

    Examples
    --------
    >>> import bridle
    >>> problem = bridle.problem("fixed", horizon=5, dim=2)
    >>> player(problem.adversary) is problem.adversary
    True
    """
    return getattr(adversary, "player", adversary)


class FirstRound(NamedTuple):
    """The round with which a run begins, and how many numbers the adversary was dealt for it."""

    round: Round
    dealt: int


def first_round(adversary: Adversary[F], seed: int, x: Array) -> FirstRound:
    """The round with which the adversary answers x at the start of a run."""
    draws = next(deal_blocks(adversary, seed, 1, len(x)))
    draw = next(records.unstack(draws, 1))
    return FirstRound(answer(adversary, adversary.init(), x, draw)[1], count_numbers(draws))


def count_numbers(record: object) -> int:
    """How many numbers a record holds."""
    return sum(int(np.size(leaf)) for leaf in records.leaves(record).values())
