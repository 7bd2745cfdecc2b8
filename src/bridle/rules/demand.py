"""Rules for a capacity that is chosen before the demand for it is known: what people run today, ready to be mixed.

Each is a policy on a box in which more is safer, so that a session asks it and keeps its memory (``bridle.policy(..., rules=[...])``,
docs/rules.md). h is the demand of a round: the action nearest to the one played at which the round's limits, linearised, hold with
equality. All that a rule knows are the h of earlier rounds.

    Ewma          m + k s          m, s running mean and mean deviation of h
    SameSlot      m_j + k s        m_j the running mean of h in the same slot j of the day or the week, s the mean deviation from them;
                                   in the first period, before any slot comes again, the mean of all that was seen in place of m_j;
                                   with `moved`, m_j + r: r the running mean of the last errors h - m_j, how far today is off
    LastQuantile  the smallest h that a share q of the last N did not exceed
    Autoscaler    max(h of the last N) / u: a utilisation u of what was needed last, and no scaling down for N rounds
    Everything    all there is: the safe action

k = 1.25 is about one standard deviation where errors are normal. Before its first demand a rule proposes all there is. Rounds without a
limit tell nothing of demand; a season goes on through them.

>>> import bridle
>>> box = bridle.Box(0.0, 50.0, dim=1)
>>> session = bridle.Session(bridle.policy("rate", box, at_most=0.05, safe=box.high, rules=demand_rules(box, day=24)))
>>> rng = np.random.default_rng(0)
>>> for hour in range(800):
...     x = session.decide()
...     demand = 10.0 + 6.0 * np.sin(2 * np.pi * hour / 24) + rng.standard_normal()
...     session.observe(f=float(x[0]), df=[1.0], g=float(demand - x[0]), dg=[-1.0])
>>> bool(abs(session.rates[0].measured - 0.05) < 0.01)
True
>>> print(session.report().splitlines()[2].partition(" of ")[0])
Rules: same slot
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple, TypeAlias

import numpy as np

from bridle import validate
from bridle.core import Domain, Feedback, InputError
from bridle.domains.closed_form import BoxSet
from bridle.ops import Array
from bridle.policies.trackers import shift

FAST, SLOW = 0.3, 0.05
"""Weights of a new demand in running means."""

SEASONAL = 0.3
"""The weight of a new day in the mean of its slot."""

SPREAD = 0.02
"""The weight of a new round in the mean deviation from a season."""

MULTIPLES = (2.0, 0.0, 1.0, 4.0, 8.0)
"""How many mean deviations of room; the usual number first."""

LATELY = 0.7
"""The weight of the last error in how far demand is off a season."""

QUANTILES = (0.9, 0.95, 0.99, 1.0)
TARGETS = (0.5, 0.7, 0.9)
RECENT, STAYS = 200, (1, 12)
"""Of how many rounds the quantile is, and for how many an autoscaler does not scale down."""


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


class LastDemands(NamedTuple):
    """The last demands, the newest at the end, and how many there were."""

    window: Array
    seen: float

    def with_one_more(self, h: Array) -> LastDemands:
        """The oldest is forgotten."""
        return LastDemands(np.concatenate([self.window[1:], h[None]]), self.seen + 1.0)

    @property
    def known(self) -> Array:
        """Those that there are, one a row."""
        return self.window[len(self.window) - min(len(self.window), int(self.seen)) :]


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
        return _within(self.domain, state.mean + self.multiple * state.spread, state.seen)

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
        return _within(self.domain, self._forecast(state) + self.multiple * state.spread, state.all.seen)

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


class LastQuantile(NamedTuple):
    """The smallest demand that a share q of the last N did not exceed."""

    domain: BoxSet
    share: float
    last: float

    @property
    def name(self) -> str:
        return f"quantile {self.share:g} of the last {self.last:g}"

    @property
    def compiled(self) -> bool:
        return False

    def init(self, x1: Array) -> LastDemands:
        return LastDemands(np.zeros((int(self.last), len(x1))), 0.0)

    def decide(self, state: LastDemands) -> Array:
        if not state.seen:
            return self.domain.high + 0.0
        ordered = np.sort(state.known, axis=0)
        return _within(self.domain, ordered[max(ceil(self.share * len(ordered) - 1e-9), 1) - 1], state.seen)

    def update(self, state: LastDemands, feedback: Feedback) -> LastDemands:
        h = demand_of(feedback)
        return state if h is None else state.with_one_more(h)


class Autoscaler(NamedTuple):
    """What makes the highest of the last N demands a share `target` of the capacity: a target utilisation, and a delay of scaling down."""

    domain: BoxSet
    target: float
    last: float

    @property
    def name(self) -> str:
        return f"autoscaler at {100.0 * self.target:g} %, {self.last:g} rounds"

    @property
    def compiled(self) -> bool:
        return False

    def init(self, x1: Array) -> LastDemands:
        return LastDemands(np.zeros((int(self.last), len(x1))), 0.0)

    def decide(self, state: LastDemands) -> Array:
        return _within(self.domain, state.known.max(axis=0, initial=0.0) / self.target, state.seen)

    def update(self, state: LastDemands, feedback: Feedback) -> LastDemands:
        h = demand_of(feedback)
        return state if h is None else state.with_one_more(h)


class Everything(NamedTuple):
    """All there is, always."""

    domain: BoxSet

    @property
    def name(self) -> str:
        return "everything"

    @property
    def compiled(self) -> bool:
        return False

    def init(self, x1: Array) -> tuple[()]:
        return ()

    def decide(self, state: tuple[()]) -> Array:
        return self.domain.high + 0.0

    def update(self, state: tuple[()], feedback: Feedback) -> tuple[()]:
        return state


DemandRule: TypeAlias = Ewma | SameSlot | LastQuantile | Autoscaler | Everything


# --- to make them ---------------------------------------------------------------------------------------------------------------------


def ewma(domain: Domain, multiple: float = 2.0, memory: float = SLOW) -> Ewma:
    """A running mean + `multiple` mean deviations; `memory` is the weight of a new demand."""
    weight = validate.positive("memory", memory)
    if weight > 1.0:
        raise InputError(f"memory must be at most 1, not {validate.show(memory)}")
    return Ewma(_box(domain), weight, validate.number("multiple", multiple))


def same_slot(domain: Domain, period: int, multiple: float = 2.0, memory: float = SEASONAL, moved: bool = False) -> SameSlot:
    """What the same slot of the last days had + `multiple` mean deviations; `period` 288: days of 5-minute slots, 2016: weeks of them.

    `memory` is the weight of the last day. With `moved` it is raised or lowered by how far demand has been off it lately.
    """
    weight = validate.positive("memory", memory)
    if weight > 1.0:
        raise InputError(f"memory must be at most 1, not {validate.show(memory)}")
    return SameSlot(
        _box(domain), float(validate.whole("period", period, 2)), validate.number("multiple", multiple), weight, float(bool(moved))
    )


def last_quantile(domain: Domain, share: float = 0.95, last: int = RECENT) -> LastQuantile:
    """The smallest demand that this share of the `last` ones did not exceed."""
    return LastQuantile(_box(domain), _share("share", share), float(validate.whole("last", last)))


def autoscaler(domain: Domain, target: float = 0.7, last: int = STAYS[-1]) -> Autoscaler:
    """A target utilisation of what the highest of the `last` demands needed."""
    return Autoscaler(_box(domain), _share("target", target), float(validate.whole("last", last)))


def everything(domain: Domain) -> Everything:
    """All there is."""
    return Everything(_box(domain))


def demand_rules(domain: Domain, day: int | None = None, week: int | None = None) -> list[DemandRule]:
    """A stock of rules to mix where nobody has better ones: 21 of them, and 10 more for each season that is told.

    `day` and `week` are how many rounds a day and a week have. In the first round all propose the same, all there is; a session then begins
    with the first rule in the list, a running mean with room.

    >>> import bridle
    >>> [rule.name for rule in demand_rules(bridle.Box(0.0, 1.0, dim=2), day=288)][-7::6]
    ['same slot of 288 + 8 deviations', 'everything']
    """
    rules: list[DemandRule] = [ewma(domain, multiple, memory) for memory in (SLOW, FAST) for multiple in MULTIPLES]
    rules += [last_quantile(domain, share) for share in QUANTILES]
    rules += [autoscaler(domain, target, last) for last in STAYS for target in TARGETS]
    seasons = {"day": day, "week": week}
    for name, period in seasons.items():
        if period is not None:
            slots = validate.whole(name, period, 2)
            rules += [same_slot(domain, slots, multiple, moved=moved) for moved in (False, True) for multiple in MULTIPLES]
    if day is not None and day == week:
        raise InputError(f"week must be longer than day, not {validate.show(week)}")
    return [*rules, everything(domain)]


def propose(rules: Sequence[DemandRule], demands: Array) -> Array:
    """What each rule would have proposed before each of these demands, (rounds, rules, dim): for looking back at a record.

    >>> import bridle
    >>> rules = [autoscaler(bridle.Box(0.0, 10.0, dim=1), target=0.5, last=1)]
    >>> propose(rules, [[1.0], [2.0], [9.0]])[:, 0, 0].tolist()
    [10.0, 2.0, 4.0]
    """
    record = validate.array("demands", demands)
    if record.ndim != 2 or not rules or record.shape[1] != rules[0].domain.dim:
        raise InputError(f"demands must be (rounds, {rules[0].domain.dim if rules else 'dim'}), not of shape {record.shape}")
    d = record.shape[1]
    away, zero = -np.eye(d), np.zeros(d)
    proposed = np.empty((len(record), len(rules), d))
    for i, rule in enumerate(rules):
        state = rule.init(rule.domain.center())
        for t, h in enumerate(record):
            proposed[t, i] = rule.decide(state)  # type: ignore[arg-type]
            state = rule.update(state, Feedback(h, 0.0, zero, zero, away))  # type: ignore[arg-type]
    return proposed


def demand_of(feedback: Feedback) -> Array | None:
    """The action nearest to the one played at which the limits, linearised, hold with equality; None where none was revealed.

    >>> demand_of(Feedback(np.array([3.0]), 3.0, np.ones(1), np.array([2.0]), np.array([[-1.0]])))
    array([5.])
    """
    g, dg = feedback.g, feedback.dg
    if len(g) == 1:  # nearly always, and this is asked for every rule in every round
        row = dg[0]
        square = float(row @ row)
        return feedback.x - (g[0] / square) * row if square > 0.0 else None
    products = dg @ dg.T
    squares = np.diag(products)
    if not (squares > 0.0).any():
        return None
    if np.count_nonzero(products) == np.count_nonzero(squares):  # no two limits pull at each other
        return np.asarray(feedback.x - (g * (squares > 0.0) / np.where(squares > 0.0, squares, 1.0)) @ dg)
    return np.asarray(feedback.x - shift(dg, g))


def _within(domain: BoxSet, wanted: Array, seen: float) -> Array:
    """What a rule wants, within the box; all there is while it has seen nothing."""
    return np.minimum(np.maximum(wanted, domain.low), domain.high) if seen else domain.high + 0.0


def _box(domain: Domain) -> BoxSet:
    if not isinstance(domain, BoxSet):
        raise InputError(f"domain must be a box, in which more is safer, not {validate.show(domain)}")
    return domain


def _share(name: str, value: float) -> float:
    share = validate.positive(name, value)
    if share > 1.0:
        raise InputError(f"{name} must be a share above 0, at most 1, not {validate.show(value)}")
    return share
