"""What became of a limit: what was asked, what came out, what is proved, what it costs; as a record, as a line of a table, as JSON.

Of limits on losses, a limit may make several constraints of a round (both signs of a gap): the worst of them is reported. Whatever keeps a
limit, `measured` is the mean over the rows that it counts.

>>> price = (3.2, "false alarms for one more positive")
>>> report = LimitReport("recall", "at least", 0.9, 0.897, 0.91, (0.816, 1.0), "", *price, 412, 970, 4, "almost held")
>>> print(LimitTable([report]))
limit   asked         measured  last 1,000  proved          price  holds since  counted  open
recall  at least 0.9  0.897     0.91        0.816 to 1      3.2    row 412      970      4
  recall: almost held
>>> report.json()["asked"], report.held
(0.9, False)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import exp, isfinite
from typing import Any, NamedTuple

import numpy as np

from bridle.limits.budgets import BudgetLevel, BudgetState
from bridle.limits.groups import GAP_NAMES, GapLevel, GapState, most_gap_debt
from bridle.limits.losses import LossTally, count
from bridle.limits.quantiles import ErrorPrice, ErrorState, Offset, OffsetState, largest_debt
from bridle.limits.rates import ETA, NAMES, TOLERANCE, DebtState, RateLevel, least_debt, most_debt
from bridle.ops import Array, Scalar
from bridle.storage import Facts

SENSES = ("at least", "at most")
"""On which side of a limit one should be."""


@dataclass(frozen=True)
class LimitReport:
    """How one limit fared.

    `asked` is the number in the limit and `sense` the side of it to be on. `measured` is over all `counted` rounds, `recent` over the last
    1,000 of them (to the nearest hundred), both None before the first. `proved` is an interval in which `measured` lies whatever the stream
    does. An end of it is 0 or 1 if nothing is proved on that side. It is None if nothing is proved at all, and `why` says why. `price` is
    what the limit costs at the margin, in the unit that `price_of` says; None where it costs nothing or nobody can say. `since` is the row
    (the first is 1) from which on it holds, to within a tenth of what it allows; None while it does not. `open` rows wait for their labels
    and are not counted. `words` is one sentence for people; `seen` holds whatever else was measured, by name: the other side of the
    trade-off.
    """

    name: str
    sense: str
    asked: float
    measured: float | None = None
    recent: float | None = None
    proved: tuple[float, float] | None = None
    why: str = ""
    price: float | None = None
    price_of: str = ""
    since: int | None = None
    counted: int = 0
    open: int = 0
    words: str = ""
    seen: Facts = field(default_factory=dict)

    @property
    def held(self) -> bool | None:
        """Whether what was measured is on the right side of what was asked; None before anything was."""
        if self.measured is None:
            return None
        return self.measured >= self.asked if self.sense == "at least" else self.measured <= self.asked

    def json(self) -> Facts:
        """Its fields as plain numbers, text, lists and dicts; what is not finite is None."""
        return {**_plain(asdict(self)), "held": self.held}


class LimitTable(tuple[LimitReport, ...]):
    """The reports of all limits of a model; as text a table with a line for each limit, and below it a sentence for each."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self:
            return "no limits"
        rows = [HEADS, *map(_cells, self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, *(f"  {report.name}: {report.words}" for report in self if report.words)])

    def json(self) -> list[Facts]:
        """The reports as plain data."""
        return [report.json() for report in self]


HEADS = ("limit", "asked", "measured", "last 1,000", "proved", "price", "holds since", "counted", "open")


def _cells(report: LimitReport) -> tuple[str, ...]:
    proved = "no" if report.proved is None else f"{short(report.proved[0])} to {short(report.proved[1])}"
    return (
        report.name,
        f"{report.sense} {short(report.asked)}",
        short(report.measured),
        short(report.recent),
        proved,
        short(report.price),
        "-" if report.since is None else f"row {report.since:,}",
        f"{report.counted:,}",
        f"{report.open:,}",
    )


def short(value: float | None) -> str:
    """A number in a table.

    >>> short(None), short(0.12345), short(5.0), short(12345.678)
    ('-', '0.123', '5', '1.23e+04')
    """
    return "-" if value is None else f"{value:.3g}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
        return value
    return float(value) if isfinite(value) else None


# --- rates --------------------------------------------------------------------------------------------------------------------------------

QUIET = 1000
"""After so many rows without an alarm, a precision is said to be starved."""

FIRST, AFTER_BUDGET = "this one has priority and is tracked", "this one has priority, after the budget of alarms"
"""What is said of the limit that comes before other rates."""

UNSAFE = "not bounded, because even the safe action can violate it"
"""What is said of a rate of the user's own whose safe action violates in rows that count."""

ASKED_AT_LEAST = ("recall", "recall of the first class", "precision")

PRICES = {
    "recall": "false alarms for one more positive",
    "recall of the first class": "missed positives for one false alarm fewer",
    "false positive rate": "positives found by one more false alarm",
    "alert rate": "chance that one more alarm is a positive",
    "precision": "positives found by one more false alarm",
}


def rates_seen(table: tuple[float, ...]) -> dict[str, float | None]:
    """Recall, false positive rate, alert rate and precision over all rows whose labels have come; None where nothing counts."""
    hits, misses, false_alarms, quiet = table

    def share(part: float, whole: float) -> float | None:
        return part / whole if whole else None

    return {
        "recall": share(hits, hits + misses),
        "false positive rate": share(false_alarms, false_alarms + quiet),
        "alert rate": share(hits + false_alarms, sum(table)),
        "precision": share(hits, hits + false_alarms),
    }


class Overall(NamedTuple):
    """What limits on rates have in common: rows, the row of the last alarm, rows in conflict, the table of alarms, the common threshold."""

    rows: float
    last_alarm: float
    conflicts: float
    table: tuple[float, ...]
    threshold: float


def rate_report(level: RateLevel, state: DebtState, first: str, several: bool, overall: Overall) -> LimitReport:
    """What became of one limit on a rate; `first` says so where it has priority."""
    name, share, capped = NAMES[int(level.rate.kind)], level.share, level.rate.capped
    n, violated, open = float(state.level.counted), float(state.level.violated), float(state.waiting.most)
    least = name in ASKED_AT_LEAST
    overruled = float(state.level.unavoidable)
    most = most_debt(share, level.eta, open) + overruled * (1.0 - share)
    conflict = overall.conflicts / overall.rows if overall.rows else 0.0
    others = {key: value for key, value in rates_seen(overall.table).items() if key != name}

    def turned(rate: float) -> float:
        return 1.0 - rate if least else rate

    measured = recent = proved = None
    if n:
        measured = turned(violated / n)
        length, marks = state.recent.since(n)
        recent = turned((violated - float(marks[0])) / length) if length else measured
        high = _clip(share + most / n) if capped else 1.0
        low = _clip(share + least_debt(share, level.eta, open) / n) if level.two_sided else 0.0
        if capped or level.two_sided:
            proved = (turned(high), turned(low)) if least else (low, high)

    def words() -> str:
        if name == "precision" and overall.rows - overall.last_alarm >= QUIET:
            since = f"since row {int(overall.last_alarm):,}" if overall.last_alarm else "yet"
            return f"no alarms {since}, precision cannot be measured"
        if measured is None:
            return {"recall": "no positive has come yet", "precision": "no alarm has been given yet"}.get(name, "no row has counted yet")
        if several and conflict > 0.0:
            had = ", ".join(f"{key} {short(value)}" for key, value in others.items() if value is not None)
            why = f"{100.0 * conflict:.3g} % of rows ({first or 'another has priority'})"
            return f"cannot be had together with the other limits in {why}; seen: {name} {short(measured)} with {had}"
        if not capped:
            return UNSAFE
        slack = most / n
        if slack >= 1.0:
            return f"{int(n):,} counted rows: a promise within 0.01 needs {int(100.0 * most):,}"
        near = f"within {short(slack)} of" if level.two_sided else f"at most {short(slack)} {'below' if least else 'above'}"
        return f"{near} what was asked on every stream of {int(n):,} counted rows"

    return LimitReport(
        name,
        "at least" if least else "at most",
        turned(share),
        measured,
        recent,
        proved,
        "no row has counted yet" if not n else "" if capped else UNSAFE,
        _price(name, overall.threshold) if n and name in PRICES else None,
        PRICES.get(name, ""),
        int(state.broken) + 1 if n and violated <= (1.1 * share) * n else None,
        int(n),
        int(state.waiting.now),
        words(),
        {
            **others,
            "debt": float(level.debt(state)),
            "violated": violated,
            "threshold": overall.threshold,
            "conflict": conflict,
            "overruled": overruled,
        },
    )


def _price(name: str, th: float) -> float | None:
    """At the margin, by the model's own probability at the threshold p = sig(th)."""
    if not np.isfinite(th):
        return None
    odds = exp(min(max(th, -700.0), 700.0))  # of a positive at the threshold
    return 1.0 / odds if name == "recall" else odds / (1.0 + odds) if name == "alert rate" else odds


def _clip(rate: float) -> float:
    return min(max(rate, 0.0), 1.0)


def budget_report(level: BudgetLevel, state: BudgetState, overall: Overall) -> LimitReport:
    """What became of a budget of alarms."""
    spent, most = float(state.spent), float(state.most)
    periods = float(state.periods) + (1.0 if state.rows else 0.0)
    unit, one = ("period", "a period") if level.per is None else [f"{int(level.per):,} rows"] * 2
    return LimitReport(
        f"alerts per {unit}",
        "at most",
        level.at_most,
        (float(state.earlier) + spent) / periods if periods else None,
        spent if periods else None,
        (0.0, level.at_most),
        price=_price("alert rate", overall.threshold) if periods else None,
        price_of=PRICES["alert rate"],
        since=1,
        counted=int(overall.rows),
        words=f"never more than {short(most)} alarms in {one}, and {short(spent)} in the present one",
        seen={
            **rates_seen(overall.table),
            "most": most,
            "periods": int(periods),
            "spent": spent,
            "threshold": overall.threshold,
        },
    )


def gap_report(level: GapLevel, state: GapState, overall: Overall) -> LimitReport:
    """What became of a limit on the gap between groups."""
    counted, alarms, debts = np.asarray(state.counted), np.asarray(state.alarms), np.asarray(level.debts(state))
    came, total, k = counted > 0.0, float(counted.sum()), len(counted)
    shares, targets = (np.divide(part, counted, out=np.zeros(k), where=came) for part in (alarms, np.asarray(state.targets)))
    names = [f"{value:g}" for value in (range(k) if level.values is None else level.values)]
    seen: Facts = {
        "groups": {
            key: {"counted": float(n), "share": float(share), "target": float(tau), "debt": float(debt)}
            for key, n, share, tau, debt in zip(names, counted, shares, targets, debts, strict=True)
        },
        **rates_seen(overall.table),
        "overruled": float(np.sum(state.overruled)),
    }
    report = LimitReport(
        GAP_NAMES[int(level.kind.kind)], "at most", level.gap, counted=int(total), open=int(np.sum(state.waiting.now)), seen=seen
    )
    if not came.all():
        absent = " and ".join(key for key, here in zip(names, came, strict=True) if not here)
        words = f"no counted row of group {absent} has come, so that nothing can be said of the gap"
        return replace(report, why=words, words=words)
    measured = float(shares.max() - shares.min())
    _, marks = state.recent.since(total)
    fresh = counted - marks[:k]
    recent = None
    if (fresh > 0.0).all():
        latest = (alarms - marks[k:]) / fresh
        recent = float(latest.max() - latest.min())
    most = most_gap_debt(level.eta, float(np.max(state.waiting.most)))
    unsure = np.minimum(1.0, (most + np.asarray(state.overruled)) / counted)
    apart = (targets + unsure)[:, None] - targets + unsure
    np.fill_diagonal(apart, 0.0)
    worst = float(np.max(np.abs(debts) / counted))
    offsets = np.asarray(level.offsets(state))
    return replace(
        report,
        measured=measured,
        recent=recent,
        proved=(0.0, min(1.0, float(apart.max()))),
        price=float(np.max(np.abs(offsets))) if np.isfinite(offsets).all() else None,
        price_of="log-odds between a group's threshold and the common one",
        since=int(state.broken) + 1 if measured <= 1.1 * level.gap else None,
        words=(
            f"group shares are {', '.join(f'{key}: {short(float(share))}' for key, share in zip(names, shares, strict=True))}; their debts "
            f"account for at most {short(worst)} each; a promise within {short(level.gap)} needs {int(most / level.gap):,} counted rows "
            f"of each group, and the smallest has {int(counted.min()):,}"
        ),
    )


# --- losses -------------------------------------------------------------------------------------------------------------------------------


class LossProof(NamedTuple):
    """What is known of the constraints beside their tally: the most that their values add up to, what they weigh; or why neither is."""

    most: Array | None = None
    price: Array | None = None
    why: str = ""


def loss_name(limit: object) -> str:
    """What a limit is called."""
    return str(getattr(limit, "name", type(limit).__name__))


def loss_report(limit: object, first: int, tally: LossTally, proof: LossProof, table: tuple[Scalar, ...] | None = None) -> LimitReport:
    """What became of one limit, whose constraints begin at place `first`; `table` is what was predicted meanwhile, where it is known."""
    places = range(first, first + count([limit]))
    asked, n = getattr(limit, "at_most", 0.0), int(tally.counted[first])
    price = None if proof.price is None else float(max(proof.price[i] for i in places))
    report = LimitReport(loss_name(limit), "at most", asked, price=price, price_of="cost of a row for one unit of the limit", counted=n)
    if not n:
        words = "no row that it speaks of has come"
        return replace(report, why=words, words=words)
    worst = max(places, key=lambda i: float(tally.total[i]))
    measured = asked + float(tally.total[worst]) / n
    length, marks = tally.recent[worst].since(float(n))
    proved = None
    if proof.most is not None:
        proved = (float(-np.inf) if measured < 0.0 else 0.0, asked + max(float(proof.most[i]) for i in places) / n)
    words = f"{short(float(max(tally.above[i] for i in places)) / n)} of the rows that it counts were above it"
    seen = {} if table is None else rates_seen(tuple(float(cell) for cell in table))
    if seen:
        words += "; seen: " + ", ".join(f"{key} {short(value)}" for key, value in seen.items())
    holds = all(tally.total[i] <= TOLERANCE * asked * n for i in places)
    return replace(
        report,
        measured=measured,
        recent=asked + float(tally.total[worst] - marks[0]) / length,
        proved=proved,
        why="" if proved else proof.why,
        since=max(int(tally.broken[i]) for i in places) + 1 if holds else None,
        words=words,
        seen=seen,
    )


# --- regressors ---------------------------------------------------------------------------------------------------------------------------


def _share_report(name: str, asked: float, state: OffsetState | ErrorState, words: str, **more: Any) -> LimitReport:
    count = state.tally
    measured, recent = count.shares()
    seen = {"debt": float(state.debt), "forgiven": float(state.forgiven)}
    words = "no row yet" if measured is None else words.format(short(measured))
    return LimitReport(name, "at most", asked, measured, recent, since=count.since, counted=int(count.rows), words=words, seen=seen, **more)


def quantile_report(limit: Offset, state: OffsetState) -> LimitReport:
    """What became of a quantile."""
    share, rows = limit.allowed, float(state.tally.rows)
    words = f"the offset is {short(float(limit.offset(state)))}, and {{}} of the targets lay above"
    proved = (0.0, min(1.0, share + largest_debt(ETA, float(state.first), float(state.widest)) / rows)) if rows else None
    why = "" if proved else "no row was counted yet"
    return _share_report(f"share above the quantile {limit.level:g}", round(share, 12), state, words, proved=proved, why=why)


def error_report(limit: ErrorPrice, state: ErrorState) -> LimitReport:
    """What became of an error rate."""
    return _share_report(
        f"share of errors above {limit.beyond:g}",
        limit.at_most,
        state,
        f"{{}} of the predictions were off by more than {short(limit.beyond)}",
        why="no prediction is right whatever comes",
        price=float(limit.price(state)),
        price_of="the weight of the distance beyond, in the cost of a row",
    )
