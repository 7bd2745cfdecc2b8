"""Duels of a learner with an opponent that picks gradients: who plays, how, and what is seen of each round."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

import bridle

OPPONENTS = ("random", "seek", "corner", "sign", "alternate", "blocks", "decades", "growing", "shrinking", "bursts")
ROUNDS = 60


class Opponent:
    """Gradients of length at most 1, chosen after seeing the decision; a habit of its own, and the sum of what it has played."""

    def __init__(self, kind: str, domain: Any, rng: np.random.Generator) -> None:
        self.kind, self.domain, self.rng = kind, domain, rng
        self.axis, self.total = unit(rng.standard_normal(domain.dim)), np.zeros(domain.dim)
        self.target = domain.linear_argmin(self.axis)

    def __call__(self, x: np.ndarray, t: int) -> np.ndarray:
        p = self._answer(x, t)
        self.total = self.total + p
        return p

    def _answer(self, x: np.ndarray, t: int) -> np.ndarray:
        best = self.domain.linear_argmin(self.total) if self.total.any() else self.target
        against = unit(x - best)  # of all gradients this long, the one that costs most against the best fixed action so far
        match self.kind:
            case "random":
                return unit(self.rng.standard_normal(len(x)))
            case "seek":
                return against
            case "corner":
                return unit(x - self.target)
            case "sign":
                return np.sign(x - best) / sqrt(len(x))
            case "alternate":
                return self.axis * (-1.0) ** t
            case "blocks":
                return self.axis * (-1.0) ** (t // 7)
            case "decades":
                ray = against if self.rng.random() < 0.5 else unit(self.rng.standard_normal(len(x)))
                return 10.0 ** self.rng.uniform(-6.0, 0.0) * ray
            case "growing":
                return 10.0 ** (6.0 * (t / ROUNDS - 1.0)) * against
            case "shrinking":
                return 10.0 ** (-6.0 * (t - 1) / ROUNDS) * against
            case "bursts":  # mostly nothing, then one far longer than all before together
                return 10.0 ** (6.0 * (t / ROUNDS - 1.0)) * against if t % 5 == 0 else 0.0 * x
        raise ValueError(self.kind)


def unit(v: np.ndarray) -> np.ndarray:
    length = float(np.linalg.norm(v))
    return v / length if length > 0.0 else 0.0 * v


class Moment(NamedTuple):
    """Where a duel stands after a round: regret against the best fixed action, what it was summed from, and the gradients' sizes."""

    t: int
    x: np.ndarray
    p: np.ndarray
    regret: float
    size: float
    S: float
    longest: float


def duel(learner: Any, domain: Any, x1: np.ndarray, opponent: Any, G: float = 1.0, rounds: int = ROUNDS) -> Iterator[Moment]:
    """The learner against gradients G times as long as the opponent's; every decision must be admissible."""
    state = learner.init(x1)
    paid = size = S = longest = 0.0
    total = np.zeros(domain.dim)
    for t in range(1, rounds + 1):
        x = learner.decide(state)
        assert x.shape == (domain.dim,)
        assert domain.contains(x)
        p = G * opponent(x, t)
        state = learner.step(state, p)
        length = float(np.linalg.norm(p))
        paid, total, S, longest = paid + float(p @ x), total + p, S + length**2, max(longest, length)
        size += length * (float(np.abs(x).sum()) + domain.diameter())
        yield Moment(t, x, p, paid - float(domain.linear_min(total)), size, S, longest)


def make(kind: str, domain: Any, size: float = 1.0) -> Any:
    """A learner of each kind; `size` scales whatever it is told."""
    D = domain.diameter()
    return {
        "ogd": lambda: bridle.OGD(domain, step=0.3 * size * D),
        "ogd-sqrt": lambda: bridle.OGD(domain, step=0.7 * size * D, decay="sqrt"),
        "curved": lambda: bridle.StronglyConvexOGD(domain, modulus=2.0 / (size * D)),
        "adagrad": lambda: bridle.AdaGrad(domain, diameter=size * D),
        "adaftrl": lambda: bridle.AdaFTRL(domain, diameter=size * D),
        "ftpl": lambda: bridle.FTPL(domain, scale=3.0 * size, samples=20),
        "ftpl-adaptive": lambda: bridle.FTPL(domain, samples=20),
    }[kind]()


KINDS = ("ogd", "ogd-sqrt", "curved", "adagrad", "adaftrl", "ftpl", "ftpl-adaptive")
SCALE_FREE = ("adagrad", "adaftrl", "ftpl-adaptive")
