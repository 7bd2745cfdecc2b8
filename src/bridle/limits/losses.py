"""Limits on losses, as records: each becomes one constraint or two of every round of a linear classifier.

A limit is a record. `start(dim)` is what it remembers before the first row, and ``reveal(memory, a, sign, group)`` gives what it remembers
after a row and the constraint of that row's round; `a` are the features (the intercept's 1 among them), `sign` is +1 or -1 for the class.
Held on average (`averages`), a limit counts the rows for which
``speaks(sign)`` is 1, or all of them where it has no such method. ``bind(classes)`` makes the record of a limit that is written in the
user's words (`limits`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from bridle import ops, validate
from bridle.core import Function, InputError
from bridle.functions import AffineFunction, AffineRows, Excess, LogisticLoss, RoundQuadratic
from bridle.limits.debts import TOLERANCE, Recent, make_recent
from bridle.limits.report import LimitReport, Table, rates_in_words, short
from bridle.limits.settings import Positive, Settings, sign_of, whole_from
from bridle.ops import Array, Scalar

M = TypeVar("M")
"""What a limit remembers of the rows so far."""


class Limit(Protocol[M]):
    """A limit that a linear classifier is held to."""

    def start(self, dim: int) -> M:
        """What it remembers before the first row."""
        ...

    def reveal(self, memory: M, a: Array, sign: Scalar, group: Scalar | None) -> tuple[M, Function]:
        """What it remembers after a row, and the constraint of that row's round."""
        ...


class LossOfClass(NamedTuple):
    """The log-loss of each row of the class of this sign is at most `at_most`; a row of the other class satisfies it by that much."""

    sign: float
    at_most: float

    def start(self, dim: int) -> tuple[()]:
        return ()

    def reveal(self, memory: tuple[()], a: Array, sign: Scalar, group: Scalar | None) -> tuple[tuple[()], Function]:
        counts = sign == self.sign
        if counts is False:  # one row of the other class: what `Excess` gives, without a logarithm
            return memory, AffineFunction(0.0 * a, -self.at_most)
        return memory, Excess(LogisticLoss(a, sign, 1.0 * counts), self.at_most + 0.0 * sign)

    def speaks(self, sign: Scalar) -> Scalar:
        """Only rows of its class count."""
        return ops.where(sign == self.sign, 1.0, 0.0)


class Groups(NamedTuple):
    """How many rows of the one group and of the other were seen, and their mean features: over the last rows, fading into the past."""

    seen: Array  # (2,)
    means: Array  # (2, d)


class ScoreGap(NamedTuple):
    """The mean score (log-odds) of one group is within `at_most` of the other's: two constraints, one for each sign.

    Means are over about the last `lookback` rows of each group: plain ones at first, then each new row weighs 1 / lookback. A row's group
    is the one or the other as its number is above 0 or not; a row whose group is None or nan is of neither.
    """

    at_most: float
    lookback: float

    @property
    def constraints(self) -> int:
        """How many it makes of a round."""
        return 2

    def start(self, dim: int) -> Groups:
        return Groups(np.zeros(2), np.zeros((2, dim)))

    def reveal(self, memory: Groups, a: Array, sign: Scalar, group: Scalar | None) -> tuple[Groups, AffineRows]:
        if group is None:
            raise InputError("groups must be given with GroupGap: a number for each row, above 0 for the one group, else 0")
        member = ops.columns(1.0 * (group <= 0.0), 1.0 * (group > 0.0))  # type: ignore[arg-type]  # of neither if it is nan
        seen = memory.seen + member
        share = member / ops.minimum(ops.maximum(seen, 1.0), self.lookback)
        means = memory.means + share[:, None] * (a - memory.means)
        apart = (means[1] - means[0]) * (1.0 * (seen[0] * seen[1] > 0.0))
        xp = ops.namespace(apart)
        return Groups(seen, means), AffineRows(xp.stack([apart, -apart]), xp.full(2, -self.at_most))


class SquaredWeights(NamedTuple):
    """Half the squared length of the weights, the intercept among them, is at most `at_most`."""

    at_most: float

    def start(self, dim: int) -> tuple[()]:
        return ()

    def reveal(self, memory: tuple[()], a: Array, sign: Scalar, group: Scalar | None) -> tuple[tuple[()], Function]:
        nowhere = 0.0 * a
        return memory, RoundQuadratic(1.0 + 0.0 * sign, nowhere, nowhere, 0.0 * sign - self.at_most)


def bind_all(limits: Sequence[Any], classes: Sequence[object]) -> tuple[Limit[Any], ...]:
    """The limits on losses that an estimator was given, bound to its two classes."""
    for limit in limits:
        if not hasattr(limit, "bind"):
            raise validate.refused("constraints must hold limits such as Recall(at_least=0.9) or MissLoss(label=1, at_most=0.1)", limit)
    return tuple(limit.bind(classes) for limit in limits)


def count(limits: Sequence[object]) -> int:
    """How many constraints a round has; at least one, if only an idle one."""
    return sum(getattr(limit, "constraints", 1) for limit in limits) or 1


class LossTally(NamedTuple):
    """How many rows there were; of every constraint the rows that it counts, its values there added up, how many were above 0, recent
    sums, and the last row at which its mean was above 0 by more than a tenth of the limit."""

    rows: Scalar
    counted: Array
    total: Array
    above: Array
    recent: tuple[Recent, ...]
    broken: Array

    def add(self, g: Array, counts: Array, allowed: Array) -> LossTally:
        """With one row more; `allowed` is what each limit asks for."""
        rows, counted, total = self.rows + 1.0, self.counted + counts, self.total + counts * g
        recent = tuple(each.mark(counted[..., i], ops.columns(total[..., i]), counts[..., i] > 0.0) for i, each in enumerate(self.recent))
        broken = ops.where((counts > 0.0) & (total > TOLERANCE * allowed * counted), rows + 0.0 * total, self.broken)
        return LossTally(rows, counted, total, self.above + counts * (g > 0.0), recent, broken)


def no_losses(constraints: int) -> LossTally:
    """Nothing counted yet, of so many constraints."""
    none = np.zeros(constraints)
    return LossTally(0.0, none, none, none, tuple(make_recent(1) for _ in range(constraints)), none)


def allowances(each: tuple[object, ...]) -> Array:
    """What the limit of each constraint asks for; 0 where it has no such number."""
    return np.array([float(getattr(limit, "at_most", 0.0)) for limit in each for _ in range(count([limit]))])


def counted(each: tuple[Limit[Any], ...], sign: Scalar) -> Array:
    """For each constraint, whether its limit speaks of a row of this class: 1 or 0."""
    parts: list[Scalar] = []
    for limit in each:
        speaks = getattr(limit, "speaks", None)
        parts.extend([1.0 + 0.0 * sign if speaks is None else speaks(sign)] * count([limit]))
    return ops.columns(*parts)


class LossProof(NamedTuple):
    """What is known of the constraints beside their tally: the most that their values add up to, what they weigh; or why neither is."""

    most: Array | None = None
    price: Array | None = None
    why: str = ""


def loss_name(limit: object) -> str:
    """What a limit is called."""
    return str(getattr(limit, "name", type(limit).__name__))


def loss_reports(limits: Sequence[object], tally: LossTally, proof: LossProof, table: Table | None = None) -> list[LimitReport]:
    """What became of the limits; `table` is what was predicted meanwhile, where it is known."""
    firsts = accumulate((count([limit]) for limit in limits), initial=0)
    return [_report(limit, range(first, first + count([limit])), tally, proof, table) for limit, first in zip(limits, firsts, strict=False)]


def _report(limit: object, places: range, tally: LossTally, proof: LossProof, table: Table | None) -> LimitReport:
    """What became of one limit, whose constraints are those at these places."""
    asked, n = getattr(limit, "at_most", 0.0), int(tally.counted[places[0]])
    price = None if proof.price is None else float(max(proof.price[i] for i in places))
    report = LimitReport(loss_name(limit), "at most", asked, price=price, price_of="cost of a row for one unit of the limit", counted=n)
    if not n:
        words = "no row that it speaks of has come"
        return replace(report, why=words, words=words)
    worst = max(places, key=lambda i: float(tally.total[i]))
    measured = asked + float(tally.total[worst]) / n
    proved = None
    if proof.most is not None:
        proved = (float(-np.inf) if measured < 0.0 else 0.0, asked + max(float(proof.most[i]) for i in places) / n)
    words = f"{short(float(max(tally.above[i] for i in places)) / n)} of the rows that it counts were above it"
    seen = {} if table is None else table.rates()
    if seen:
        words += f"; seen: {rates_in_words(seen)}"
    holds = all(tally.total[i] <= TOLERANCE * asked * n for i in places)
    return replace(
        report,
        measured=measured,
        recent=asked + tally.recent[worst].mean(float(n), tally.total[worst]),
        proved=proved,
        why="" if proved else proof.why,
        since=max(int(tally.broken[i]) for i in places) + 1 if holds else None,
        words=words,
        seen=seen,
    )


# --- in the user's words ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class MissLoss(Settings):
    """A limit: at most this log-loss on every row of a class, so that it is not missed.

    Parameters
    ----------
    label : object, default 1
        The class.
    at_most : float, default 0.1
        The log-loss, above 0, in nats: 0.1 asks for a probability of e^-0.1 = 0.90. No finite weights could meet 0.

    Examples
    --------
    >>> MissLoss(label="fraud", at_most=0.2).bind(["fine", "fraud"]).sign
    1.0
    """

    label: object = 1
    at_most: Positive = 0.1

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"mean loss of {self.label!r}"

    def bind(self, classes: Sequence[object]) -> LossOfClass:
        """The limit for an estimator with these two classes."""
        return LossOfClass(sign_of(self, classes), self.at_most)


@dataclass(frozen=True, repr=False)
class GroupGap(Settings):
    """A limit: at most this difference between two groups' mean scores.

    Parameters
    ----------
    at_most : float, default 0.1
        The difference, above 0, in log-odds.
    lookback : int, default 1000
        Over about how many of the last rows of each group, 1 or above.

    Examples
    --------
    >>> limit = GroupGap(at_most=0.5).bind([0, 1])
    >>> memory, _ = limit.reveal(limit.start(2), np.array([1.0, 3.0]), 1.0, 0)
    >>> memory, gap = limit.reveal(memory, np.array([1.0, 5.0]), 1.0, 1)
    >>> gap.value(np.array([9.0, 1.0]))
    array([ 1.5, -2.5])
    """

    at_most: Positive = 0.1
    lookback: Annotated[float, whole_from(1)] = 1000
    name: ClassVar = "gap of mean scores"
    constraints: ClassVar = 2

    def bind(self, classes: Sequence[object]) -> ScoreGap:
        """The limit for an estimator with these two classes."""
        return ScoreGap(self.at_most, self.lookback)


@dataclass(frozen=True, repr=False)
class WeightBudget(Settings):
    """A limit: at most this much of half the squared length of the weights, the intercept among them.

    Parameters
    ----------
    at_most : float, default 1.0
        The amount, above 0, in squared weights.

    Examples
    --------
    >>> WeightBudget(2.0).bind([0, 1]).reveal((), np.ones(2), 1.0, None)[1].value(np.array([2.0, 2.0]))
    2.0
    """

    at_most: Positive = 1.0
    name: ClassVar = "weights"

    def bind(self, classes: Sequence[object]) -> SquaredWeights:
        """The limit for an estimator with these two classes."""
        return SquaredWeights(self.at_most)
