"""A level that is tracked: how a share of rounds is kept, exactly, on every stream.

A limit "at most a share eps of the counted rounds violates" is not convex, but nothing is easier to guarantee. A level m says how cautious
to be; each counted round moves it, by v - eps in units of the step eta, where v = 1 if the round violated and 0 if not:

    m <- m + eta (v - eps)       so that       (violations) = eps (rounds) + (m_end - m_start)/eta      exactly.

Here eps is a fraction p/q (`fraction`: 0.05 is 1/20) and the level is held as the whole number  u = q m/eta  with

    q (violations) = p (rounds) + u - raised + (q - p) unavoidable,                                      every term a whole number,

so that the identity can be checked without a rounding error for 2^53/q rounds. Three things change the plain update, and each is counted:

floor         u stays above a lowest value (`raised` grows): after a quiet time the level is not too low to answer
freeze        a level that could not lower the action any further does not fall either (`raised` grows)
unavoidable   from the highest level on, the action that is told to be safe is played; where even that violates, u stays

Late feedback: where `open` other rounds were waiting at the most, a violation moves m by eta/(1 + open) only. The count u stays when
`open` grows, and with it the identity: so steps that shrink need no other theorem.

Guarantee: `most_violations`: at most  eps n + M/eta + 1 - eps  violations in n counted rounds, plus 1 - eps for each that was
    unavoidable.
Reference: bridle (this file). The update is adaptive conformal inference (I. Gibbs, E. Candes, NeurIPS 2021); its identity with a safe
    action is their Proposition 4.1 in whole numbers. Floors, freezes and late feedback are proved here.

Proof. Summing the update gives the identity. A raise only lowers the violations that a level stands for. While m < M a round ends at most
at M + eta(1 - eps). While m >= M every round begun plays the safe action, and m does not rise for it; but `open` rounds may have begun
before, and each may raise it by eta (1 - eps). So  u/q <= M/eta + (1 + open)(1 - eps), M and eta those in force. Over a window of n counted
rounds the same holds from its first level m_a on, which is at least the floor.

>>> import numpy as np
>>> level = make_level([0.25], top=8.0, bottom=-3.0, step=0.5)
>>> state = level.init(np.zeros(1))
>>> for violated in (1.0, 1.0, 0.0, 0.0, 0.0, 0.0):
...     state = level.move(state, np.array([violated]), np.ones(1), False, np.zeros(1))
>>> level.of(state), level.identity(state)
(array([0.25]), array([0.]))
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridle import validate
from bridle.ops import Array, Flag, Scalar, maximum, scalar, vector, where

FINEST = 10**6
"""Shares are read as fractions with a denominator up to this."""


class LevelState(NamedTuple):
    """The level of each limit in whole numbers, q m/eta, and counts; `open` is how many other rounds were waiting at the most."""

    units: Array
    violated: Array
    counted: Array
    raised: Array
    unavoidable: Array
    open: Scalar


class Level(NamedTuple):
    """The levels of k limits, each for a share p/q of its rounds; `top` and `bottom` are M/eta and the floor over eta.

    A level of one limit alone may have plain numbers where others have vectors, and so may its state.
    """

    p: Array
    q: Array
    step: Scalar
    top: Scalar
    bottom: Scalar

    @property
    def share(self) -> Array:
        """eps of each limit."""
        return self.p / self.q

    def init(self, x1: Array) -> LevelState:
        zero = vector(x1, self.q)
        return LevelState(zero, zero, zero, zero, zero, scalar(x1))

    def of(self, state: LevelState) -> Array:
        """m of each limit."""
        return self.step / (1.0 + state.open) * state.units / self.q

    def at_top(self, state: LevelState) -> Array:
        """For each limit 1 where its level has come to M, else 0."""
        return zero_or_one(state.units >= self.top * (1.0 + state.open) * self.q, state.units)

    def move(self, state: LevelState, violated: Array, counted: Array, safe: Flag, stuck: Array) -> LevelState:
        """The levels after a round: which limits it violated, for which it counts, whether the safe action was played.

        `stuck` is 1 for a limit whose level could not have lowered the action any further. All are 0 or 1.
        """
        violated = violated * counted
        excused = violated * self.at_top(state) * safe
        plain = state.units + counted * (self.q * violated - self.p) * (1.0 - excused)
        held = plain + stuck * counted * (1.0 - violated) * (state.units - plain)
        units = maximum(held, self.bottom * (1.0 + state.open) * self.q)
        return LevelState(
            units,
            state.violated + violated,
            state.counted + counted,
            state.raised + (units - plain),
            state.unavoidable + excused,
            state.open,
        )

    def identity(self, state: LevelState) -> Array:
        """q (violations) - p (rounds) - u + raised - (q - p) unavoidable: 0, without a rounding error."""
        spent = self.q * state.violated - self.p * state.counted
        return spent - state.units + state.raised - (self.q - self.p) * state.unavoidable


class Tally(NamedTuple):
    """The counts of k limits: the share asked for, violations, counted rounds, those unavoidable, the most violations proved, the identity.

    `any` is True where there is one level for all limits, and one count.
    """

    share: Array
    violated: Array
    counted: Array
    unavoidable: Array
    most: Array
    identity: Array
    any: bool


def make_level(at_most: Sequence[float] | Array, top: float, bottom: float, step: float) -> Level:
    """The level for these shares; M and the floor are rounded up and down to whole violations."""
    parts = [fraction(share) for share in at_most]
    p, q = (np.array([getattr(part, name) for part in parts], dtype=float) for name in ("numerator", "denominator"))
    return Level(p, q, step, float(ceil(round(top / step, 9))), float(floor(round(bottom / step, 9))))


def with_shares(before: Level, after: Level, state: LevelState) -> LevelState:
    """The levels where shares have changed: caution stays, rounded up to a whole number and to 0, and counting begins anew.

    With no violation and no round counted the identity asks for  raised = u,  which is 0 or above: so q V <= p n + u + (q - p) unavoidable
    and `most_violations` holds for the rounds since, with the new share and from level 0. Limits whose share is the same keep their counts.

    >>> old, new = (make_level([share], top=8.0, bottom=-3.0, step=0.5) for share in (0.25, 0.1))
    >>> state = with_shares(old, new, LevelState(*(np.array([n]) for n in (3.0, 4.0, 13.0, 0.0, 0.0)), 0.0))
    >>> state.units, new.identity(state)
    (array([8.]), array([0.]))
    """
    same = (before.p == after.p) & (before.q == after.q)
    kept = np.where(same, 1.0, 0.0)
    units = np.where(same, state.units, np.maximum(np.ceil(state.units * after.q / before.q), 0.0))
    raised = np.where(same, state.raised, units)
    return LevelState(units, kept * state.violated, kept * state.counted, raised, kept * state.unavoidable, state.open)


def zero_or_one(flags: NDArray[np.bool_], like: Array) -> Array:
    """1 where a flag holds, else 0, as an array of the kind of `like`."""
    none = 0.0 * like
    return where(flags, none + 1.0, none)


def fraction(share: float) -> Fraction:
    """A share as a fraction.

    >>> fraction(0.05)
    Fraction(1, 20)
    """
    value = validate.number("at_most", share)
    if not 1.0 / FINEST <= value <= 1.0 - 1.0 / FINEST:
        raise validate.refused(f"at_most must be a share of rounds between {1.0 / FINEST:g} and 1 - {1.0 / FINEST:g}", share)
    return Fraction(value).limit_denominator(FINEST)


def most_violations(share: Scalar, n: Scalar, top: Scalar, start: Scalar = 0.0, open: Scalar = 0.0, unavoidable: Scalar = 0.0) -> Scalar:
    """The most violations in n counted rounds:  eps n + (M - m)/eta + (1 + open)(1 - eps) + (1 - eps) unavoidable.

    `top` is M/eta and `start` m/eta at the beginning of these rounds (the floor over eta for any window), both with the eta in force.

    >>> most_violations(0.05, 1000, 80.0)
    130.95
    """
    return share * n + top - start + (1.0 - share) * (1.0 + open + unavoidable)
