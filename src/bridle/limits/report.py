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
from dataclasses import asdict, dataclass, field
from math import exp, isfinite
from typing import Any, NamedTuple

from bridle.ops import Scalar, where
from bridle.storage import Facts


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


# --- what reports on one model have in common ---------------------------------------------------------------------------------------------

PRICES = {
    "recall": "false alarms for one more positive",
    "recall of the first class": "missed positives for one false alarm fewer",
    "false positive rate": "positives found by one more false alarm",
    "alert rate": "chance that one more alarm is a positive",
    "precision": "positives found by one more false alarm",
}


def price(name: str, threshold: float) -> float | None:
    """What the limit on this rate costs at the margin, by the model's own probability at the threshold."""
    if name not in PRICES or not isfinite(threshold):
        return None
    odds = exp(min(max(threshold, -700.0), 700.0))  # of a positive at the threshold
    return 1.0 / odds if name == "recall" else odds / (1.0 + odds) if name == "alert rate" else odds


class Table(NamedTuple):
    """How many rows there were in each cell of the table of alarms and labels, as far as labels have come."""

    hits: Scalar = 0.0
    misses: Scalar = 0.0
    false_alarms: Scalar = 0.0
    quiet: Scalar = 0.0

    def add(self, alarm: Scalar, sign: Scalar) -> Table:
        """With one row more."""
        positive, off = where(sign > 0.0, 1.0, 0.0), 1.0 - alarm
        return Table(
            self.hits + alarm * positive,
            self.misses + off * positive,
            self.false_alarms + alarm * (1.0 - positive),
            self.quiet + off * (1.0 - positive),
        )

    def rates(self) -> dict[str, float | None]:
        """Recall, false positive rate, alert rate and precision over all of them; None where nothing counts."""
        hits, misses, false_alarms, quiet = map(float, self)
        found, alarms = hits + misses, hits + false_alarms
        return {
            "recall": hits / found if found else None,
            "false positive rate": false_alarms / (false_alarms + quiet) if false_alarms + quiet else None,
            "alert rate": alarms / (hits + misses + false_alarms + quiet) if any(self) else None,
            "precision": hits / alarms if alarms else None,
        }


def rates_in_words(rates: Mapping[str, float | None]) -> str:
    """As a list: recall 0.9, precision 0.5."""
    return ", ".join(f"{name} {short(value)}" for name, value in rates.items())


class Overall(NamedTuple):
    """What limits on rates have in common: rows, the row of the last alarm, the share of rows in which limits were in conflict, the rates
    that were seen, the common threshold, and who has priority ("" where there is only one)."""

    rows: float
    last_alarm: float
    conflict: float
    rates: dict[str, float | None]
    threshold: float
    priority: str
