"""Games in one dimension bred against a policy: what the worst sequence of costs and constraints makes of its bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bridle
from bridle.core import Feedback

SIGNS = np.array([[a, b] for a in (-1.0, 0.0, 1.0) for b in (-1.0, 0.0, 1.0)])
"""What a round may be: the cost's slope, and the constraint's."""


def outcome(record: Any, flock: np.ndarray, feasible: float, scale: float) -> np.ndarray:
    """Of each game (n, T, 2) of a flock: regret against the feasible point, the sum of the constraint's values, that of positive parts.

    The constraint is 0 at the feasible point. The games are played side by side.
    """
    n = len(flock)
    state, sums = record.init(np.broadcast_to(record.domain.center(), (n, 1))), np.zeros((3, n))
    for slopes in scale * flock.transpose(1, 0, 2):
        x = record.decide(state)
        values = slopes * (x - feasible)
        sums += values[:, 0], values[:, 1], np.maximum(values[:, 1], 0.0)
        state = record.update(state, Feedback(x, np.zeros((n, 1)), slopes[:, :1], values[:, 1:], slopes[:, 1:, None]))
    return sums


def worst_share(
    make: Callable[[Any, float], Any],
    quantity: int,
    bound_of: Callable[[Any], float],
    seed: int,
    T: int = 250,
    size: int = 60,
    generations: int = 25,
) -> float:
    """The largest share of a bound that bred games reach: of regret (0), the sum of values (1), or of positive parts (2).

    The better third lives on; children are made of two parents each and change in one stretch. Every constant habit is among the first.
    `make(domain, G)` gives the configured policy; its scale, from 1e-6 to 1e6, is drawn with the seed.
    """
    rng = np.random.default_rng(seed)
    scale, feasible = 10.0 ** rng.uniform(-6.0, 6.0), float(rng.choice([-1.0, -0.3, 0.0, 0.6]))
    policy = make(bridle.Box([-1.0], [1.0]), scale)
    facts = {"lipschitz": scale, "diameter": 2.0, "bound": 2.0 * scale, "convex": True, "feasible": np.array([feasible]), "slater": 0.0}
    limit, best = bound_of(policy.bound(facts, T)), 0.0
    flock = np.concatenate([np.repeat(SIGNS[:, None], T, axis=1), SIGNS[rng.integers(0, 9, (size - 9, T))]])
    for _ in range(generations):
        shares = outcome(policy.record, flock, feasible, scale)[quantity] / limit
        best = max(best, float(np.max(shares)))
        kept = flock[np.argsort(shares)[::-1][: size // 3]]
        children = []
        for mother, father in kept[rng.integers(0, len(kept), (size - len(kept), 2))]:
            child = np.where(np.arange(T)[:, None] < rng.integers(T), mother, father)
            a, b = np.sort(rng.integers(0, T + 1, 2))
            child[a:b] = SIGNS[rng.integers(9)] if rng.random() < 0.7 else rng.uniform(-1.0, 1.0, (b - a, 2))
            children.append(child)
        flock = np.concatenate([kept, children])
    return best
