"""The reference engine: a plain Python loop over NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridle import records
from bridle.engines.round import Block, gather, turn


def advance(policy: Any, adversary: Any, state: Any, foe: Any, draws: Any, rounds: int, collect: str) -> tuple[Any, Any, Block]:
    """`rounds` rounds of the game; `collect` is "x" to keep the decisions, "round" to keep the rounds, or empty."""
    f, g, kept = [], [], []
    for draw in records.unstack(draws, rounds):
        state, foe, feedback = turn(policy, adversary, state, foe, draw)
        f.append(feedback.f)
        g.append(feedback.g)
        if collect == "x":
            kept.append(feedback.x)
        elif collect == "round":
            kept.append(feedback.round)
    return (
        state,
        foe,
        Block(np.array(f), np.array(g), np.array(kept) if collect == "x" else None, gather(kept) if collect == "round" else None),
    )
