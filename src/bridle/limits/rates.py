"""Rates as limits: a debt moves the threshold, so that a rate is at most a stated amount worse than asked on every stream.

A row is an alarm where its score s is above a threshold. A limit counts some rows (recall: the positives), each of which violates it or not
(it was missed), and at most a share eps of them may: v is 1 or 0, n counts, and D, the debt, is what was violated beyond that share.

    th = b - sd sp h(eta (D + O)),   h(x) = x (1 + |x|),   eta = .05;   D + O >= 4/eta: the safe action
    two-sided:   D + O <= -4/eta: the opposite of the safe action;      else:   max(D + O, -20) in place of D + O
    when a label comes, if the row counts:   D <- D + v - eps,   not two-sided:   D <- max(D + v - eps, -20)
    O  = sum over the rows whose label has not come of  q (v - eps),  q the model's probability that the row counts

sd is +1 where a lower threshold means fewer violations (recall: the safe action is an alarm for every row), and -1 where a higher one does.
b and sp are those of the base (below). What a limit counts, and what it calls a violation, are cells of the table of alarms and labels
(`Cells`); one that reads no label counts a row as soon as it is looked at. O, what is due, counts late labels in advance: without it the
threshold would go on moving until the first labels of the new threshold come back, and swing. The debt is held in whole numbers by
`policies.levels`, with the floor and the unavoidable violations that it has: a limit that yields to another is excused for what it violates
when it is at the top, and this is counted.

A limit is two-sided if it is the only rate, yields to nothing, and the opposite of the safe action counts and violates every row that the
limit can count. `CountedRate.two_sided` reads the last from the cells. Recall, false positives and alerts are two-sided. Precision is not:
the opposite of its safe action is an alarm for every row, and a true alarm does not violate. On a stream of positives its debt would fall
by eps per row without end, and that credit would later pay for thousands of false alarms. So a limit that is not two-sided has a floor:
-20, or the first whole number above -4/eta if that is higher.

Guarantee: whatever scores, labels, base, learner and order: (violations) = eps n + D - raised + (1 - eps) unavoidable, exactly, so that in
    every window  rate - eps = (D_end - D_start)/n  if nothing was raised or excused. `raised` is what the floor took away. `open` is how
    many rows were waiting for their labels at the most (in a batch: its rows).
    `most_debt`: D <= 4/eta + 1 - eps + open, if the safe action never violates (`CountedRate.capped`), so that  rate <= eps + most_debt/n,
    plus (1 - eps)/n for each violation that was excused.
    `least_debt`: D >= -4/eta - eps - open, if the limit is two-sided, so that  rate >= eps + least_debt/n. A floor bounds D as well, but
    then the rate has no lower end, because `raised` has no upper one.
Reference: bridle (this file); the identity is that of adaptive conformal inference (I. Gibbs, E. Candes, NeurIPS 2021).

Proof. Upper end: let a row be begun that violates and counts. The safe action never violates, so it did not decide this row: D + O < 4/eta.
Each open row is worth at least -eps in O, so D < 4/eta + eps open. After the last such row only those that were open then, and itself, can
raise D, each by 1 - eps: D <= 4/eta + eps open + (1 - eps)(open + 1). The floor raises D to 0 at most, and the same count holds from there.
Of a limit that yields, a violation at D >= 4/eta is excused and leaves D as it is: D <= 4/eta + 1 - eps.
Lower end: let a row be begun that counts and does not violate. The opposite of the safe action violates every row that it counts, so it did
not decide this row: D + O > -4/eta. Each open row is worth at most 1 - eps in O, so D > -4/eta - (1 - eps) open. After the last such row at
most open + 1 rows lower D, each by eps: D >= -4/eta - (1 - eps) open - eps (open + 1).
A limit that reads no label counts a row at once, but the rows of a batch are decided by the level of its start: all but one of them were
open, and worth nothing in O (`RateLevel.together`).

The base, a running quantile of scores, and how far scores spread. A limit wants a share eps of the rows that it counts to be violations.
`Model` learns the score b at which that would be so from every row, before any label, weighed by the model's own probability that the
row counts; q is that probability, x the expected violation of the row at b less eps q:

    W <- W + q;   b <- b - sd sp max(.03, 3/sqrt(1 + W)) x;   mu, sp <- (mu, sp) + max(q/W, .01 q) (s - mu, |s - mu| - sp)

so that a few hundred positives among many rows behave like a full stream, and a change is answered before labels come. `Buffer` trusts
no probability: it is the quantile of the last 1,000 scores whose labels came and counted, for scores that are badly calibrated. The update
of b is stochastic gradient descent on the pinball loss (R. Koenker, G. Bassett, Econometrica 1978); nothing is promised of the base, since
the debt keeps the rate whatever it does.

>>> level = make_rate_level(RECALL, 0.1)
>>> state = level.start()
>>> for row in range(300):  # nobody can do well here: every score is the same, and every label positive
...     alarm = 1.0 * (-3.0 > level.threshold(state))
...     seen = Seen(-3.0, alarm)
...     state, due = level.look(state, seen, alarm, row)
...     state = level.settle(state, seen, due, 1.0, row)
>>> level.debt(state) <= most_debt(0.1, 0.05), state.level.violated - 0.1 * state.level.counted - level.debt(state)
(True, 0.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Annotated, Any, ClassVar, NamedTuple, cast

import numpy as np

from bridle import ops, validate
from bridle.core import InputError
from bridle.limits.debts import ETA, FLOOR, TOLERANCE, TOP, Recent, Seen, Unlabelled, make_recent, swing
from bridle.limits.report import PRICES, LimitReport, Overall, price, rates_in_words, short
from bridle.limits.settings import Settings, Share, Step, sign_of
from bridle.ops import Array, Scalar, absolute, along, floor, maximum, onehot, ratio, sigmoid, sqrt, where
from bridle.policies.levels import Level, LevelState, fraction, most_violations


def most_debt(share: float, eta: float, open: float = 0.0) -> float:
    """4/eta + 1 - eps + open: the most that the debt of a capped rate can be, if at most `open` rows wait for labels or are in one batch.

    >>> most_debt(0.1, 0.05), most_debt(0.1, 0.05, open=10)
    (80.9, 90.9)
    """
    return float(most_violations(share, 0.0, TOP / eta, 0.0, open)) + share * open


def least_debt(share: float, eta: float, open: float = 0.0) -> float:
    """-(4/eta + eps + open): the least that the debt of a two-sided limit can be.

    >>> least_debt(0.1, 0.05)
    -80.1
    """
    return -(TOP / eta + share + open)


class Cells(NamedTuple):
    """A number for each cell of the table of alarms and labels."""

    hit: float
    miss: float
    false_alarm: float
    quiet: float

    def of(self, alarm: Scalar, chance: Scalar) -> Scalar:
        """The number of a row's cell, in expectation, where it is positive with this chance (1 or 0 where its label is known)."""
        up = chance * self.hit + (1.0 - chance) * self.false_alarm
        down = chance * self.miss + (1.0 - chance) * self.quiet
        return alarm * up + (1.0 - alarm) * down


class CountedRate(NamedTuple):
    """What a rate counts, what it calls a violation, and whether a lower threshold (+1) or a higher one (-1) means fewer of them.

    `labels` is 1 where counting needs the label, else None. `kind` is its place in `NAMES`.
    """

    kind: float
    counts: Cells
    violates: Cells
    sd: float
    labels: float | None

    def by_label(self, alarm: bool) -> tuple[tuple[float, float], ...]:
        """What a row counts, and what it violates, if it is an alarm or not: for a positive row and for a negative one."""
        q, v = self.counts, self.violates
        return ((q.hit, v.hit), (q.false_alarm, v.false_alarm)) if alarm else ((q.miss, v.miss), (q.quiet, v.quiet))

    @property
    def capped(self) -> bool:
        """Whether the safe action never violates, which the upper end of the proof needs."""
        return not any(q * v for q, v in self.by_label(self.sd > 0.0))

    @property
    def two_sided(self) -> bool:
        """Whether the opposite of the safe action counts and violates every row that can count, which the lower end needs.

        >>> RECALL.two_sided, PRECISION.two_sided
        (True, False)
        """
        safe, opposite = self.by_label(self.sd > 0.0), self.by_label(self.sd < 0.0)
        return all(q * v for (q, v), (other, _) in zip(opposite, safe, strict=True) if q or other)


NAMES = ("recall", "recall of the first class", "false positive rate", "alert rate", "precision", "own rate")
"""What rates are called."""

OWN_RATE = 5.0
"""The kind of a rate that is not among those below."""

RECALL = CountedRate(0.0, Cells(1.0, 1.0, 0.0, 0.0), Cells(0.0, 1.0, 0.0, 0.0), 1.0, 1.0)
FIRST_RECALL = CountedRate(1.0, Cells(0.0, 0.0, 1.0, 1.0), Cells(0.0, 0.0, 1.0, 0.0), -1.0, 1.0)
FALSE_POSITIVES = CountedRate(2.0, Cells(0.0, 0.0, 1.0, 1.0), Cells(0.0, 0.0, 1.0, 0.0), -1.0, 1.0)
ALERTS = CountedRate(3.0, Cells(1.0, 1.0, 1.0, 1.0), Cells(1.0, 0.0, 1.0, 0.0), -1.0, None)
PRECISION = CountedRate(4.0, Cells(1.0, 0.0, 1.0, 0.0), Cells(0.0, 0.0, 1.0, 0.0), -1.0, 1.0)


# --- bases --------------------------------------------------------------------------------------------------------------------------------

SLOWEST, FASTEST = 0.03, 3.0
"""The least step of the model's base, and the factor of its first ones, both in spreads."""

MEMORY = 0.01
"""The least weight of a row in the mean and the spread of scores."""


class Spread(NamedTuple):
    """The weight of all rows so far, and the mean and the mean absolute deviation of their scores."""

    weight: Scalar = 0.0
    mean: Scalar = 0.0
    size: Scalar = 1.0

    def learn(self, score: Scalar, q: Scalar) -> Spread:
        """With one row more, which counts with probability q."""
        weight = self.weight + q
        share = maximum(ratio(q, weight), MEMORY * q)
        return Spread(weight, self.mean + share * (score - self.mean), self.size + share * (absolute(score - self.mean) - self.size))


class ModelState(NamedTuple):
    """The score b, and how far scores spread."""

    at: Scalar
    spread: Spread


class Model(NamedTuple):
    """The base that learns from every row, by the model's own probabilities."""

    def start(self) -> ModelState:
        return ModelState(0.0, Spread())

    def look(self, state: ModelState, score: Scalar, q: Scalar, excess: Scalar, sd: float) -> ModelState:
        """After a row was scored: it counts with probability q, and its expected violation at b, less what is allowed, is `excess`."""
        step = maximum(SLOWEST, FASTEST / sqrt(1.0 + state.spread.weight + q))
        return ModelState(state.at - sd * state.spread.size * step * excess, state.spread.learn(score, q))

    def settle(self, state: ModelState, score: Scalar, counted: Scalar, share: Scalar, sd: float) -> ModelState:
        return state


MODEL = Model()


class BufferState(NamedTuple):
    """The last counted scores (infinity where there is none yet), how many came in all, their quantile, and how far they spread."""

    scores: Array
    came: Scalar
    at: Scalar
    spread: Spread


class Buffer(NamedTuple):
    """The base that is a quantile of the last scores that counted; `room` is as long as there is room for scores.

    >>> base = Buffer(np.zeros(3))
    >>> state = base.start()
    >>> for score in (5.0, 1.0, 3.0, 2.0):
    ...     state = base.settle(state, score, 1.0, 0.5, -1.0)
    >>> float(state.at), sorted(state.scores.tolist())  # at most half of them lie above it
    (2.0, [1.0, 2.0, 3.0])
    """

    room: Array = np.zeros(1000)

    def start(self) -> BufferState:
        return BufferState(self.room + inf, 0.0, 0.0, Spread())

    def look(self, state: BufferState, score: Scalar, q: Scalar, excess: Scalar, sd: float) -> BufferState:
        return state

    def settle(self, state: BufferState, score: Scalar, counted: Scalar, share: Scalar, sd: float) -> BufferState:
        """After the label of a row came; `counted` is 1 where the limit counts it, else 0."""
        flag = counted > 0.0
        if flag is False:  # what the lines below would come to, without going through all scores
            return state
        room = float(self.room.shape[-1])
        slot = state.came - room * floor(state.came / room)
        here = onehot(slot, state.scores) * counted > 0.0
        scores = where(here, score + 0.0 * self.room, state.scores)
        came = state.came + counted
        held = where(came < room, came, room)
        allowed = floor(share * held + 1e-9)  # 0.1 times 30 must be 3
        rank = where(sd > 0.0, maximum(allowed, 1.0), held - allowed)
        # One score in and one out move the quantile past at most two others.
        at = where(came > counted, state.at, score)
        for _ in range(2):
            at = _nearer(scores, self.room, at, rank)
        return BufferState(scores, came, where(flag, at, state.at), state.spread.learn(score, counted))


def _nearer(scores: Array, none: Array, at: Scalar, rank: Scalar) -> Scalar:
    """`at`, or the next score above or below it where that is nearer to being the score of this rank."""
    up, down = along(scores <= at, "sum") < rank, along(scores < at, "sum") >= rank
    above, below = along(where(scores > at, scores, none + inf), "min"), along(where(scores < at, scores, none - inf), "max")
    return where(up, above, where(down, below, at))


# --- levels -------------------------------------------------------------------------------------------------------------------------------


class DebtState(NamedTuple):
    """The debt in whole numbers and its counts, the base, the rows that wait, recent counts, and the last row at which it did not hold."""

    level: LevelState
    base: Any  # the state of the limit's base
    waiting: Unlabelled
    recent: Recent
    broken: Scalar


class RateLevel(NamedTuple):
    """One limit on a rate; `yields` is 1 where another limit may overrule it."""

    rate: CountedRate
    level: Level
    base: Model | Buffer
    yields: float

    @property
    def share(self) -> float:
        """eps."""
        return float(self.level.share)

    @property
    def eta(self) -> float:
        return float(self.level.step)

    @property
    def two_sided(self) -> bool:
        """Whether the rate has a lower end too: nothing else decides rows, and there is no floor."""
        return self.rate.two_sided and not self.yields and self.level.bottom == -inf

    def start(self) -> DebtState:
        none = _single(0.0)
        return DebtState(LevelState(none, none, none, none, none, 0.0), self.base.start(), Unlabelled(), make_recent(1), 0.0)

    def debt(self, state: DebtState) -> Scalar:
        """D."""
        return state.level.units / self.level.q

    def threshold(self, state: DebtState) -> Scalar:
        """The score above which a row is an alarm."""
        sd, debt = self.rate.sd, maximum(self.debt(state) + state.waiting.due, self.level.bottom)
        moved: Scalar = state.base.at - sd * state.base.spread.size * swing(self.level.step * debt)
        return where(debt >= self.level.top, -sd * inf + 0.0 * debt, where(debt <= -self.level.top, sd * inf + 0.0 * debt, moved))

    def look(self, state: DebtState, seen: Seen, plain: Scalar, row: Scalar) -> tuple[DebtState, Scalar]:
        """After a row was scored and acted upon; also what it is worth until its label comes."""
        score, alarm, chance, share = seen.score, seen.alarm, sigmoid(seen.score), self.level.share
        there = where(score > state.base.at, 1.0, 0.0)
        q = self.rate.counts.of(there, chance)
        base = self.base.look(state.base, score, q, self.rate.violates.of(there, chance) - share * q, self.rate.sd)
        due = self.rate.violates.of(alarm, chance) - share * self.rate.counts.of(alarm, chance)
        if self.rate.labels is None:
            return self._move(state._replace(base=base), seen, chance, row), due
        return state._replace(base=base, waiting=state.waiting.begin(due)), due

    def settle(self, state: DebtState, seen: Seen, due: Scalar, sign: Scalar, row: Scalar) -> DebtState:
        """After the label of a row came, which was looked at before."""
        return state if self.rate.labels is None else self._move(self.drop(state, seen, due), seen, where(sign > 0.0, 1.0, 0.0), row)

    def drop(self, state: DebtState, seen: Seen, due: Scalar) -> DebtState:
        """After it is known that the label of a row will never come."""
        return state if self.rate.labels is None else state._replace(waiting=state.waiting.end(due))

    def together(self, state: DebtState, rows: float) -> DebtState:
        """After this many rows of one batch were looked at, all decided by the level of its start.

        Rows that wait for labels are counted as open already. A limit that reads no label has moved after each row, which the next did not
        see: to the bounds all of them but one were open.
        """
        if self.rate.labels is not None:
            return state
        return state._replace(waiting=state.waiting._replace(most=maximum(state.waiting.most, rows - 1.0)))

    def _move(self, state: DebtState, seen: Seen, chance: Scalar, row: Scalar) -> DebtState:
        """The debt after a row whose cell is known."""
        counted = self.rate.counts.of(seen.alarm, chance)
        flag = counted > 0.0
        if flag is False:  # what the lines below would come to
            return state
        violated = self.rate.violates.of(seen.alarm, chance)
        level = self.level.move(state.level, _single(violated), _single(counted), self.yields > 0.0, _single(0.0))
        base = self.base.settle(state.base, seen.score, counted, self.level.share, self.rate.sd)
        excess = level.violated - (1.0 + TOLERANCE) * self.level.share * level.counted
        recent = state.recent.mark(level.counted, ops.columns(level.violated), flag)
        return DebtState(level, base, state.waiting, recent, where(flag & (excess > 0.0), row + 1.0, state.broken))

    def report(self, state: DebtState, overall: Overall) -> LimitReport:
        """What became of it."""
        name, share, capped = NAMES[int(self.rate.kind)], self.share, self.rate.capped
        n, violated, overruled = float(state.level.counted), float(state.level.violated), float(state.level.unavoidable)
        least, open = name in ASKED_AT_LEAST, float(state.waiting.most)
        most = most_debt(share, self.eta, open) + overruled * (1.0 - share)
        others = {key: value for key, value in overall.rates.items() if key != name}

        def turned(rate: float) -> float:
            return 1.0 - rate if least else rate

        report = LimitReport(
            name,
            "at least" if least else "at most",
            turned(share),
            why="" if capped else UNSAFE,
            price_of=PRICES.get(name, ""),
            counted=int(n),
            open=int(state.waiting.now),
            words={"recall": "no positive has come yet", "precision": "no alarm has been given yet"}.get(name, "no row has counted yet"),
            seen={
                **others,
                "debt": float(self.debt(state)),
                "violated": violated,
                "threshold": overall.threshold,
                "conflict": overall.conflict,
                "overruled": overruled,
            },
        )
        quiet = None
        if name == "precision" and overall.rows - overall.last_alarm >= QUIET:
            since = f"since row {int(overall.last_alarm):,}" if overall.last_alarm else "yet"
            quiet = f"no alarms {since}, precision cannot be measured"
        if not n:
            return replace(report, why="no row has counted yet", words=quiet or report.words)
        high = min(max(share + most / n, 0.0), 1.0) if capped else 1.0
        low = min(max(share + least_debt(share, self.eta, open) / n, 0.0), 1.0) if self.two_sided else 0.0
        if overall.conflict > 0.0:
            had = rates_in_words({key: value for key, value in others.items() if value is not None})
            why = f"{100.0 * overall.conflict:.3g} % of rows ({overall.priority})"
            words = f"cannot be had together with the other limits in {why}; seen: {name} {short(turned(violated / n))} with {had}"
        elif not capped:
            words = UNSAFE
        elif most >= n:
            words = f"{int(n):,} counted rows: a promise within 0.01 needs {int(100.0 * most):,}"
        else:
            near = f"within {short(most / n)} of" if self.two_sided else f"at most {short(most / n)} {'below' if least else 'above'}"
            words = f"{near} what was asked on every stream of {int(n):,} counted rows"
        return replace(
            report,
            measured=turned(violated / n),
            recent=turned(state.recent.mean(n, violated)),
            proved=((turned(high), turned(low)) if least else (low, high)) if capped or self.two_sided else None,
            price=price(name, overall.threshold),
            since=int(state.broken) + 1 if violated <= (1.1 * share) * n else None,
            words=quiet or words,
        )


QUIET = 1000
"""After so many rows without an alarm, a precision is said to be starved."""

UNSAFE = "not bounded, because even the safe action can violate it"
"""What is said of a rate of the user's own whose safe action violates in rows that count."""

ASKED_AT_LEAST = ("recall", "recall of the first class", "precision")


def _single(number: Scalar) -> Array:
    """A number in the place of a vector: of one limit alone."""
    return cast("Array", number)


def make_rate_level(
    rate: CountedRate,
    share: float,
    eta: float = ETA,
    base: Model | Buffer = MODEL,
    several: bool = False,
    yields: bool = False,
) -> RateLevel:
    """The level for a share of violations; one of `several`, one that `yields` and one of a rate that is not two-sided have a floor."""
    rate, part, eta = _checked(rate), fraction(share), validate.positive("eta", eta)
    bottom = -inf if rate.two_sided and not several and not yields else max(FLOOR, 1.0 - ceil(TOP / eta))
    level = Level(_single(float(part.numerator)), _single(float(part.denominator)), eta, TOP / eta, bottom)
    return RateLevel(rate, level, base, float(yields))


def _checked(rate: CountedRate) -> CountedRate:
    """The rate, with no violation in a row that does not count; refused if the proofs do not cover it."""
    for name, cells in (("counts", rate.counts), ("violates", rate.violates)):
        if any(cell not in (0.0, 1.0) for cell in cells):
            raise InputError(f"{name} must be 0 or 1 in every cell of the rate, got {validate.show(cells)}")
    if rate.sd not in (-1.0, 1.0):
        raise InputError(f"sd must be 1 or -1, got {validate.show(rate.sd)}")
    if rate.labels is None and any(positive != negative for positive, negative in map(rate.by_label, (True, False))):
        raise InputError("labels must be 1 for a rate whose cells depend on the label, got None")
    return rate._replace(violates=Cells(*(q * v for q, v in zip(rate.counts, rate.violates, strict=True))))


# --- in the user's words ------------------------------------------------------------------------------------------------------------------


BASES: dict[str, Model | Buffer] = {"model": MODEL, "buffer": Buffer()}
"""Where a threshold stands before the debt moves it."""


def _base(name: str, value: object) -> str:
    return validate.one_of(name, value, BASES)


Base = Annotated[str, _base]


class RateLimit(Settings):
    """A limit on the share of the counted rows that violate it; `rate` says which those are."""

    rate: ClassVar[CountedRate]

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[RateLevel, ...]:
        """The level that keeps it."""
        settings = self.get_params()
        share = settings["at_most"] if "at_most" in settings else 1.0 - settings["at_least"]
        base = BASES[settings.get("base", "model")]
        return (make_rate_level(self._rate(classes), share, settings["eta"], base, several, yields),)

    def _rate(self, classes: Sequence[object]) -> CountedRate:
        return self.rate


@dataclass(frozen=True, repr=False)
class Recall(RateLimit):
    """A limit: at least this share of the rows of a class is found.

    Parameters
    ----------
    at_least : float, default 0.9
        The share, above 0 and below 1.
    label : object, optional
        The class. Default: the second one.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.
    base : {"model", "buffer"}, default "model"
        What the threshold starts from: the model's log-odds, or the scores of recent rows.

    Examples
    --------
    >>> Recall(at_least=0.9).at_least
    0.9
    """

    at_least: Share = 0.9
    label: object = None
    eta: Step = ETA
    base: Base = "model"

    def _rate(self, classes: Sequence[object]) -> CountedRate:
        return FIRST_RECALL if self.label is not None and sign_of(self, classes) < 0.0 else RECALL


@dataclass(frozen=True, repr=False)
class FalsePositiveRate(RateLimit):
    """A limit: at most this share of the rows of the first class is an alarm.

    Parameters
    ----------
    at_most : float, default 0.01
        The share, above 0 and below 1.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.
    base : {"model", "buffer"}, default "model"
        What the threshold starts from: the model's log-odds, or the scores of recent rows.

    Examples
    --------
    >>> FalsePositiveRate(at_most=0.02).at_most
    0.02
    """

    at_most: Share = 0.01
    eta: Step = ETA
    base: Base = "model"
    rate = FALSE_POSITIVES


@dataclass(frozen=True, repr=False)
class AlertRate(RateLimit):
    """A limit: at most this share of all rows is an alarm. It needs no labels.

    Parameters
    ----------
    at_most : float, default 0.01
        The share, above 0 and below 1.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.
    base : {"model", "buffer"}, default "model"
        What the threshold starts from: the model's log-odds, or the scores of recent rows.

    Examples
    --------
    >>> AlertRate(at_most=0.02).at_most
    0.02
    """

    at_most: Share = 0.01
    eta: Step = ETA
    base: Base = "model"
    rate = ALERTS


@dataclass(frozen=True, repr=False)
class Precision(RateLimit):
    """A limit: at least this share of the alarms is right.

    Where no alarm is left to repay what was wrong, the report says so. What is proved is a lower end only: if every alarm is right, the
    precision is 1 whatever the threshold does.

    Parameters
    ----------
    at_least : float, default 0.5
        The share, above 0 and below 1.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.

    Examples
    --------
    >>> Precision(at_least=0.6).at_least
    0.6
    """

    at_least: Share = 0.5
    eta: Step = ETA
    rate = PRECISION
