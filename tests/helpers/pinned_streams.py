"""What a problem's rounds come to at one action: figures to pin a stream by."""

from __future__ import annotations

import numpy as np

import bridle
from bridle import records


def figures(name: str, *rounds: int) -> list[list[float]]:
    """The constants G, F, modulus and slater of the problem with seed 3, and cost and limits of some rounds at one action of a box."""
    problem = bridle.problem(name, horizon=100, seed=3)
    low, high = problem.domain.low, problem.domain.high
    x, stream = low + (high - low) * np.linspace(0.1, 0.9, problem.domain.dim), problem.adversary.replay(0, 100)
    found = [[problem.constants[constant] for constant in ("lipschitz", "bound", "modulus", "slater")]]
    for t in rounds:
        one = records.take(stream, float(t))
        found.append([float(one.cost.value(x)), *np.asarray(one.constraints[0].value(x)).tolist()])
    return found
