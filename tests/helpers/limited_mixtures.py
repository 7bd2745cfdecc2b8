"""Rounds of a mixture under a limit that some fixed mixtures keep: gradients have range 1, and opponents look at the weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

KINDS = ("random", "pull", "tempt", "rare", "against", "walls")


class LimitedRound(NamedTuple):
    """A cost <cost, x> and a limit <limit, x> <= level."""

    cost: np.ndarray
    limit: np.ndarray
    level: float


class LimitedStream:
    """Rounds that the mixtures `kept` satisfy; `groups` simplices side by side, each with `K` corners."""

    def __init__(self, kind: str, K: int, groups: int, seed: int) -> None:
        self.kind, self.K, self.groups, self.rng = kind, K, groups, np.random.default_rng(seed)
        self.kept = self.rng.dirichlet(np.full(K, 0.5), (3, groups)).reshape(3, groups * K)

    def ranged(self, v: np.ndarray) -> np.ndarray:
        """With range 1 in every group, or 0 where it has none."""
        rows = v.reshape(self.groups, self.K)
        spread = np.ptp(rows, axis=1, keepdims=True)
        return np.where(spread > 0.0, (rows - rows.min(axis=1, keepdims=True)) / np.where(spread > 0.0, spread, 1.0), 0.0).reshape(-1)

    def answer(self, x: np.ndarray, t: int) -> LimitedRound:
        noise = self.rng.standard_normal(x.size)
        limit = self.ranged(self.rng.random(x.size))
        if self.kind == "walls":  # away from where it stands, as far as the kept mixtures allow
            limit = self.ranged(x - self.kept[t % 3])
        if self.kind == "tempt":
            limit = self.ranged(np.sin(np.arange(x.size)))
        level = float((self.kept @ limit).max())
        cost = {"pull": -limit, "tempt": -limit + 0.1 * noise, "against": x, "rare": -limit, "walls": -limit}.get(self.kind, noise)
        if self.kind == "rare" and t % 7:
            level = level + 10.0
        return LimitedRound(self.ranged(cost), limit, level)


def limited_rounds(stream: LimitedStream, decide: object, rounds: int) -> Iterator[tuple[int, np.ndarray, LimitedRound]]:
    """The rounds against `decide`, a function without arguments that gives the decision."""
    for t in range(1, rounds + 1):
        x = decide()  # type: ignore[operator]
        yield t, x, stream.answer(x, t)
