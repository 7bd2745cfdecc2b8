"""A record, and the memory of a compiled function that runs ahead of it.

The compiled engine makes ``states = one(constants, states, given)`` a function of one flat array, the memory, in which the constants, the
states and what is given lie one after the other. A caller writes numbers into their places and makes one call; the new states have then
taken the place of the old ones. The record of the states is made again only when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Generic, NamedTuple, TypeVar, cast

import numpy as np

from bridle import engines, records
from bridle.engines import CompilesSteps
from bridle.engines.round import StepOutcome

C = TypeVar("C")
T = TypeVar("T")
G = TypeVar("G")
R = TypeVar("R")
"""The record that is mirrored."""


class Ring(NamedTuple):
    """Rows at the end of the memory, into which each run writes some of its leaves, as they are before it."""

    rows: int
    leaves: tuple[str, ...]  # such as "states.x" or "given.df"


class Mirror(Generic[R]):
    """The memory of a compiled function, and how far it is ahead of the record that it mirrors.

    `mirrored` is like the record, and the states begin with it. While `ahead` is 0 the record says how things stand; else the memory
    does, which is that many runs ahead. `views` are the leaves in the memory by name ("constants.", "states." or "given.", then the
    leaf's own), `cursor` is where the number of the next row of the ring is. The function refuses given numbers above `largest`.
    """

    def __init__(
        self,
        one: Callable[[C, T, G], T],
        constants: C,
        states: T,
        given: G,
        mirrored: R,
        largest: float = inf,
        ring: Ring | None = None,
    ) -> None:
        places: dict[str, tuple[int, int, tuple[int, ...]]] = {}
        begins, end = [], 0
        for part, record in (("constants", constants), ("states", states), ("given", given)):
            begins.append(end)
            for name, leaf in records.leaves(record).items():
                places[f"{part}.{name}"] = (end, end + int(np.size(leaf)), np.shape(leaf))
                end += int(np.size(leaf))
        _, self.begin, self.end = begins  # of the states
        self.cursor = end + self.end - self.begin  # after the room for the new states
        columns = () if ring is None else tuple(places[name][:2] for name in ring.leaves)
        rows = None if ring is None else (ring.rows, columns)
        step, size = require_compiler().compile_step(one, constants, states, given, largest, rows)
        self.array = np.zeros(size)
        self.step = step(self.array)  # it answers a `StepOutcome`
        self.numbers = cast("memoryview[float]", self.array.data)  # single numbers come and go faster this way
        self.views = {name: self.array[begin:end].reshape(shape) for name, (begin, end, shape) in places.items()}
        wide, first = sum(end - begin for begin, end in columns), self.cursor + 1
        self.ring = None if ring is None else self.array[first : first + ring.rows * wide].reshape(ring.rows, wide)
        self.ahead = 0
        self.equal_to: R | None = None
        """The record that the memory was last equal to."""
        self._build, self._size = records.unflatten(mirrored)
        self._put(0, constants)

    def write(self, record: R) -> None:
        """Be as the record is."""
        self._put(self.begin, record)
        self.equal_to = record

    def run(self) -> bool:
        """Run once with what is given; where it is refused nothing has changed."""
        if self.step() > StepOutcome.DONE:
            return False
        self.ahead += 1
        return True

    def settle(self) -> R:
        """The record as the memory has it; from now on it says how things stand."""
        record = self.read()
        self.ahead, self.equal_to = 0, record
        return record

    def read(self) -> R:
        """The record as the memory has it; nothing changes."""
        block = self.array[self.begin : self.begin + self._size].copy()
        record: R = self._build(block, block.data)
        return record

    def take_over(self, other: Mirror[R]) -> None:
        """Be as another memory of the same kind is."""
        self.array[self.begin : self.begin + self._size] = other.array[self.begin : self.begin + self._size]

    def _put(self, begin: int, record: object) -> None:
        for leaf in records.leaves(record).values():
            size = int(np.size(leaf))
            self.array[begin : begin + size] = leaf if np.ndim(leaf) < 2 else np.ravel(leaf)
            begin += size


def require_compiler() -> CompilesSteps:
    """The engine that compiles; where it is missing, the error says what to install."""
    engine = engines.load("compiled")
    assert isinstance(engine, CompilesSteps)
    return engine
