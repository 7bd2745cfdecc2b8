"""The reference engine: a plain Python loop over NumPy."""

from __future__ import annotations

import numpy as np

from bridle import records
from bridle.core import Round, S
from bridle.engines.foretold import keeping_turn
from bridle.engines.round import Block, BlockRounds, BlockValues, Collect, F, Marks, SingleRun, gather, turn_for
from bridle.ops import Array, Scalar


def advance(run: SingleRun[S, F], rounds: int, collect: Collect, marks: Marks | None = None) -> tuple[S, F, Block]:
    """See `Engine.advance`."""
    policy, adversary, state, foe, draws = run
    f: list[Scalar] = []
    g: list[Array] = []
    decisions: list[Array] = []
    chosen: list[Round] = []
    with_decisions, with_rounds = collect is Collect.DECISIONS, collect is Collect.ROUNDS  # an enum's members are slow to look up
    take = keeping_turn(policy) if getattr(adversary, "foretold", False) else turn_for(policy, adversary)
    for draw in records.unstack(draws, rounds):
        state, foe, feedback = take(policy, adversary, state, foe, draw)
        f.append(feedback.f)
        g.append(feedback.g)
        if with_decisions:
            decisions.append(feedback.x)
        elif with_rounds and feedback.round is not None:
            chosen.append(feedback.round)
    if with_rounds:
        return state, foe, BlockRounds(gather(chosen))
    return state, foe, BlockValues(np.array(f), np.array(g), np.array(decisions) if with_decisions else None)
