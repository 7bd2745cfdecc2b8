"""What mechanisms that run a debt have in common: the steps of a level, the row that each is shown, rows that wait, recent counts.

A debt is what was violated beyond the share that a limit allows. In units of `ETA` it is a level, and `swing` says how far a level moves a
threshold or an offset.
"""

from __future__ import annotations

from math import nan
from typing import Any, NamedTuple

import numpy as np

from bridle import ops
from bridle.ops import Array, Flag, Scalar, absolute, floor, maximum, where

ETA = 0.05
"""How far one violation moves the level; `TOP` over it is the debt from which on the safe action is due."""

TOP = 4.0
"""The level from which on the safe action is due."""

FLOOR = -20.0
"""The least debt of a limit that is not two-sided, so that one that holds by itself does not hoard what it has not used."""

BLOCK, BLOCKS = 100.0, 10
"""The recent rate is over the last 1,000 counted rounds: ten blocks of a hundred, of which the newest is being filled."""


def swing(x: Scalar) -> Scalar:
    """h(x) = x (1 + |x|): how many spreads a level x moves the threshold.

    >>> swing(0.5), swing(-4.0)
    (0.75, -20.0)
    """
    return x * (1.0 + absolute(x))


TOLERANCE = 0.1
"""A limit is said to hold while the rate is within a tenth of the share that it allows."""


class Seen(NamedTuple):
    """A row that was scored and acted upon: its score, whether it was an alarm (1), its group and its period (nan: of none).

    `kept` is what each level wants back when the label comes.
    """

    score: Scalar
    alarm: Scalar
    group: Scalar = nan
    period: Scalar = nan
    kept: tuple[Any, ...] = ()


class Unlabelled(NamedTuple):
    """Rows whose labels have not come: what they are worth in advance, how many they are, and how many they were at the most.

    Of groups these are vectors, and `member` is 1 for the group of a row.
    """

    due: Scalar = 0.0
    now: Scalar = 0.0
    most: Scalar = 0.0

    def begin(self, due: Scalar, member: Scalar = 1.0) -> Unlabelled:
        """With one more."""
        # A row that is answered before the next one begins was never waiting: `most` is about the others.
        return Unlabelled(self.due + due * member, self.now + member, maximum(self.most, self.now))

    def end(self, due: Scalar, member: Scalar = 1.0) -> Unlabelled:
        """With one fewer; with none left nothing is due, without a rounding error."""
        now = self.now - member
        return Unlabelled(where(now > 0.0, self.due - due * member, 0.0 * self.due), now, self.most)


class Recent(NamedTuple):
    """Counts at the end of each of the last blocks of counted rounds, in turn: a row for each."""

    marks: Array

    def mark(self, counted: Scalar, counts: Array, flag: Flag) -> Recent:
        """With these counts noted, where a counted round (`flag`) has filled a block."""
        block = floor(counted / BLOCK)
        full = (counted == block * BLOCK) & flag
        length = float(self.marks.shape[0])
        return Recent(ops.put(self.marks, block - length * floor(block / length), counts, full))

    def since(self, counted: float) -> tuple[float, Array]:
        """How many counted rounds ago the last window began, at most 1,000, and the counts at that time."""
        block = max(0.0, np.ceil(counted / BLOCK) - BLOCKS)
        return counted - block * BLOCK, self.marks[int(block) % len(self.marks)]

    def mean(self, counted: float, total: Scalar) -> float:
        """The mean over that window of the one number that is noted, whose sum is `total` now."""
        length, marks = self.since(counted)
        return float((total - marks[0]) / length)


def make_recent(width: int) -> Recent:
    """Nothing noted yet, of this many counts."""
    return Recent(np.zeros((BLOCKS + 1, width)))
