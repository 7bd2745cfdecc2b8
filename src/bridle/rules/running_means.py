"""Rules that go by running means of demand: of all rounds, or of the same slot of the day or the week (`stock` says what each proposes)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Domain, Feedback
from bridle.domains.closed_form import BoxSet
from bridle.ops import Array
from bridle.rules.demand import box_of, demand_of, within

SLOW = 0.05
"""The weight of a new demand in a running mean, unless told."""

SEASONAL = 0.3
"""The weight of a new day in the mean of its slot."""

SPREAD = 0.02
"""The weight of a new round in the mean deviation from a season."""

LATELY = 0.7
"""The weight of the last error in how far demand is off a season."""


class Tracked(NamedTuple):
    """A running mean, the mean deviation from it, and of how many demands."""

    mean: Array
    spread: Array
    seen: float

    def follow(self, h: Array, memory: float) -> Tracked:
        """With one more demand; the first ones count alike."""
        weight = max(memory, 1.0 / (self.seen + 1.0))
        off = np.abs(h - self.mean) if self.seen else self.spread
        return Tracked(self.mean + weight * (h - self.mean), self.spread + weight * (off - self.spread), self.seen + 1.0)


class SlotTable(NamedTuple):
    """The means of the slots, the coming one first; the mean deviation of demands from what was forecast; the last errors of the means;
    and all demands, for the first period.

    `passed` counts the rounds, with and without a limit.
    """

    slots: Array
    spread: Array
    off: Array
    all: Tracked
    passed: float


class Ewma(NamedTuple):
    """A running mean + k mean deviations."""

    domain: BoxSet
    memory: float
    multiple: float

    @property
    def name(self) -> str:
        return f"EWMA {self.memory:g} + {self.multiple:g} deviations"

    @property
    def compiled(self) -> bool:
        return False

    def init(self, x1: Array) -> Tracked:
        return Tracked(0.0 * x1, 0.0 * x1, 0.0)

    def decide(self, state: Tracked) -> Array:
        return within(self.domain, state.mean + self.multiple * state.spread, state.seen)

    def update(self, state: Tracked, feedback: Feedback) -> Tracked:
        h = demand_of(feedback)
        return state if h is None else state.follow(h, self.memory)


class SameSlot(NamedTuple):
    """The mean of the same slot of the last days (or weeks) + k mean deviations; `period` is how many slots come before it comes again.

    `moved` is 1 where the mean is moved by how far demand has been off lately, else 0.
    """

    domain: BoxSet
    period: float
    multiple: float
    memory: float
    moved: float

    @property
    def name(self) -> str:
        return f"same slot of {self.period:g}{', moved' if self.moved else ''} + {self.multiple:g} deviations"

    @property
    def compiled(self) -> bool:
        return False

    def init(self, x1: Array) -> SlotTable:
        zero = 0.0 * x1
        return SlotTable(np.zeros((int(self.period), len(x1))), zero, zero, Tracked(zero, zero, 0.0), 0.0)

    def decide(self, state: SlotTable) -> Array:
        return within(self.domain, self._forecast(state) + self.multiple * state.spread, state.all.seen)

    def _usual(self, state: SlotTable) -> Array:
        return state.slots[0] if state.passed >= self.period else state.all.mean

    def _forecast(self, state: SlotTable) -> Array:
        return self._usual(state) + self.moved * state.off

    def update(self, state: SlotTable, feedback: Feedback) -> SlotTable:
        h, old, passed = demand_of(feedback), self._usual(state), state.passed + 1.0
        if h is None:  # the slot keeps what it had; in the first period, what is usual
            return state._replace(slots=np.concatenate([state.slots[1:], old[None]]), passed=passed)
        times = state.passed // self.period
        new = h if times == 0.0 else old + max(self.memory, 1.0 / (times + 1.0)) * (h - old)
        seen = state.all.seen
        error = np.abs(h - self._forecast(state)) if seen else state.spread
        spread = state.spread + max(SPREAD, 1.0 / (seen + 1.0)) * (error - state.spread)
        off = state.off + LATELY * (h - old - state.off) if seen else state.off
        return SlotTable(np.concatenate([state.slots[1:], new[None]]), spread, off, state.all.follow(h, 0.0), passed)


def ewma(domain: Domain, multiple: float = 2.0, memory: float = SLOW) -> Ewma:
    """A rule: a running mean of the demands, plus a multiple of their mean deviation.

    Parameters
    ----------
    domain : Domain
        Where actions lie; what the rule proposes is moved into it.
    multiple : float, default 2.0
        How many mean deviations are added, 0 or above.
    memory : float, default 0.05
        The weight of a new demand, above 0 and at most 1.

    Examples
    --------
    >>> import bridle
    >>> rule = bridle.rules.ewma(bridle.Box(0.0, 10.0, dim=1), multiple=0.0, memory=1.0)
    >>> bridle.rules.propose([rule], [[1.0], [2.0], [3.0]])[1:, 0, 0].tolist()
    [1.0, 2.0]
    """
    weight = validate.positive("memory", memory)
    if weight > 1.0:
        raise validate.refused("memory must be at most 1", memory)
    return Ewma(box_of(domain), weight, validate.number("multiple", multiple))


def same_slot(domain: Domain, period: int, multiple: float = 2.0, memory: float = SEASONAL, moved: bool = False) -> SameSlot:
    """A rule: what the same slot of the last days had, plus a multiple of the mean deviation.

    Parameters
    ----------
    domain : Domain
        Where actions lie; what the rule proposes is moved into it.
    period : int
        How many rounds a season has, 1 or above: 288 for days of 5-minute slots, 2016 for weeks of them.
    multiple : float, default 2.0
        How many mean deviations are added, 0 or above.
    memory : float, default 0.3
        The weight of the last day, above 0 and at most 1.
    moved : bool, default False
        Raise or lower the proposal by how far demand has been off it lately.

    Examples
    --------
    >>> import bridle
    >>> rule = bridle.rules.same_slot(bridle.Box(0.0, 10.0, dim=1), period=2, multiple=0.0)
    >>> bridle.rules.propose([rule], [[1.0], [2.0], [5.0]])[2, 0, 0].tolist()
    1.0
    """
    weight = validate.positive("memory", memory)
    if weight > 1.0:
        raise validate.refused("memory must be at most 1", memory)
    return SameSlot(
        box_of(domain), float(validate.whole("period", period, 2)), validate.number("multiple", multiple), weight, float(bool(moved))
    )
