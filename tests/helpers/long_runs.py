"""Very many compiled rounds of known streams, and their sums to the last bit: how far do running totals drift?

Costs and constraints do not depend on the decision, so that every sum is known exactly: by whole numbers where the stream repeats itself
(`Fraction`), by `math.fsum` where it is drawn. `largest_drift` is what the plain sum of n terms may be off by, relative to the sum of
their sizes: n units of rounding; certificates allow for eight times as much (`bridle.session.certificates.certificate.slack`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bridle
from bridle.core import Round
from bridle.functions import AffineFunction
from bridle.problems.base import StreamOpponent, constants_of
from bridle.problems.dealing import deal_blocks

DIM = 2
CYCLE = 4096

STREAMS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "0.1 every round": lambda rng, n: np.full(n, 0.1),
    "1/3 every round": lambda rng, n: np.full(n, 1.0 / 3.0),
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.standard_normal(n),
    "cents": lambda rng, n: np.round(rng.random(n), 2),
    "lognormal": lambda rng, n: np.exp(3.0 * rng.standard_normal(n)),
}
"""Numbers that a run adds up; those that repeat are the worst, as they are rounded the same way again and again."""


def slug(name: str) -> str:
    """The name of a stream as part of a file's."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def largest_drift(rounds: int) -> float:
    """How far the plain sum of so many terms may be off, relative to the sum of their sizes."""
    return rounds * float(np.finfo(float).eps) / 2.0


class Drift(NamedTuple):
    """How far the total of something is off: by how much, and relative to the sum of the sizes of what was added up."""

    what: str
    rounds: int
    total: float
    error: float
    relative: float

    @property
    def fine(self) -> bool:
        """Whether rounding explains it."""
        return self.relative <= largest_drift(self.rounds)


def drift(what: str, rounds: int, total: float, exact: Fraction, sizes: Fraction) -> Drift:
    """A total beside what it should be."""
    error = Fraction(total) - exact
    return Drift(what, rounds, total, float(error), float(abs(error) / sizes) if sizes else float(abs(error)))


class Flat(NamedTuple):
    """Costs and constraints that are the same everywhere, drawn anew every round; which stream, is a number, as it has to be compiled."""

    which: float

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        flat, draw = np.zeros((rounds, DIM)), list(STREAMS.values())[int(self.which)]
        return Round(AffineFunction(flat, draw(rng, rounds)), (AffineFunction(flat, draw(rng, rounds)),))


def game(name: str, rounds: int, progress: Callable[[int, int], None] | None = None) -> list[Drift]:
    """Play a game of so many rounds in compiled code, and compare its totals with the sums of its stream, dealt again."""
    domain = bridle.Ball(DIM)
    problem = bridle.Problem(domain, StreamOpponent(Flat(float(list(STREAMS).index(name)))), constants_of(domain, lipschitz=1.0))
    totals = bridle.play(bridle.policy("anytime", domain), problem, horizon=rounds, engine="compiled", progress=progress).totals
    sums = dict.fromkeys(("cost", "cost sizes", "hard", "soft", "soft sizes", "squared"), Fraction(0))
    for block in deal_blocks(problem.adversary, 0, rounds, DIM):
        f, g = block.cost.b, block.constraints[0].b
        violation = np.maximum(g, 0.0)
        found = {"cost": f, "cost sizes": abs(f), "hard": violation, "soft": g, "soft sizes": abs(g), "squared": violation * violation}
        for key, values in found.items():
            sums[key] += Fraction(fsum(values.tolist()))
    return [
        drift(f"game, {name}: cost", rounds, float(totals.cost), sums["cost"], sums["cost sizes"]),
        drift(f"game, {name}: violation", rounds, float(totals.hard[0]), sums["hard"], sums["hard"]),
        drift(f"game, {name}: balance", rounds, float(totals.soft[0]), sums["soft"], sums["soft sizes"]),
        drift(f"game, {name}: squared violation", rounds, float(totals.squared[0]), sums["squared"], sums["squared"]),
    ]


class Cycle(NamedTuple):
    """A stream that repeats itself."""

    f: list[float]
    df: list[np.ndarray]
    g: list[float]
    dg: list[np.ndarray]


def cycle(name: str) -> Cycle:
    """So many rounds of a stream with unit gradients; an action satisfies every constraint there is a gradient for."""
    rng = np.random.default_rng(3)
    angles = rng.uniform(0.0, 2.0 * np.pi, CYCLE)
    slopes = [np.array([np.cos(angle), np.sin(angle)]) for angle in angles]
    f, g = (STREAMS[name](rng, CYCLE).tolist() for _ in range(2))
    return Cycle(f, slopes, g, [np.zeros(DIM)] * CYCLE)


def session_rounds(name: str, rounds: int, path: Path, chunk: int) -> Iterator[tuple[int, list[Drift]]]:
    """Play a session in compiled code up to so many rounds, saved to a file and loaded again after every chunk.

    Goes on from the file where there is one. Yields how many rounds were played, and how far the totals are off.
    """
    stream = cycle(name)
    while True:
        begun = path.exists()
        session = bridle.Session.load(path) if begun else bridle.Session(bridle.policy("anytime", bridle.Ball(DIM)), engine="compiled")
        done = session.rounds
        if done:
            yield done, session_drift(name, stream, session)
        if done >= rounds:
            return
        assert done % CYCLE == 0, "a chunk is whole cycles"
        observe = session.observe
        for _ in range(max(1, min(chunk, rounds - done) // CYCLE)):
            for f, df, g, dg in zip(*stream, strict=True):
                observe(f, df, g, dg)
        session.save(path)


def session_drift(name: str, stream: Cycle, session: bridle.Session) -> list[Drift]:
    """How far a session's totals are off after whole cycles."""
    rounds = session.rounds
    times = rounds // CYCLE

    def exact(numbers: Any) -> Fraction:
        return times * sum(map(Fraction, numbers), Fraction(0))

    violations = [max(g, 0.0) for g in stream.g]
    return [
        drift(f"session, {name}: cost", rounds, session.cost, exact(stream.f), exact(map(abs, stream.f))),
        drift(f"session, {name}: violation", rounds, session.ccv, exact(violations), exact(violations)),
        drift(f"session, {name}: balance", rounds, float(session.balances[0]), exact(stream.g), exact(map(abs, stream.g))),
    ]
