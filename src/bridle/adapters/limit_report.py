"""What became of a limit: what was asked, what came out, what is proved, what it costs; as a record, as a line of a table, as JSON.

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any, overload

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
    measured: float | None
    recent: float | None
    proved: tuple[float, float] | None
    why: str
    price: float | None
    price_of: str
    since: int | None
    counted: int
    open: int
    words: str
    seen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def held(self) -> bool | None:
        """Whether what was measured is on the right side of what was asked; None before anything was."""
        if self.measured is None:
            return None
        return self.measured >= self.asked if self.sense == "at least" else self.measured <= self.asked

    def json(self) -> dict[str, Any]:
        """Its fields as plain numbers, text, lists and dicts; what is not finite is None."""
        return {**_plain(asdict(self)), "held": self.held}


class LimitTable(Sequence[LimitReport]):
    """The reports of all limits of a model; as text a table."""

    def __init__(self, reports: Iterable[LimitReport] = ()) -> None:
        self.reports = tuple(reports)

    @overload
    def __getitem__(self, at: int) -> LimitReport: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[LimitReport, ...]: ...
    def __getitem__(self, at: int | slice) -> LimitReport | tuple[LimitReport, ...]:
        return self.reports[at]

    def __len__(self) -> int:
        return len(self.reports)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LimitTable) and self.reports == other.reports

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return limit_table(self.reports)

    def json(self) -> list[dict[str, Any]]:
        """The reports as plain data."""
        return [report.json() for report in self.reports]


HEADS = ("limit", "asked", "measured", "last 1,000", "proved", "price", "holds since", "counted", "open")


def limit_table(reports: Sequence[LimitReport]) -> str:
    """A table with a line for each limit, and below it a sentence for each."""
    if not reports:
        return "no limits"
    rows = [HEADS, *(_cells(report) for report in reports)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, *(f"  {report.name}: {report.words}" for report in reports if report.words)])


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
