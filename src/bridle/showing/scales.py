"""Where values lie along an axis, and what is written beside it: logarithmic, linear, or linear around zero and logarithmic beyond."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

from bridle.showing.brief import number
from bridle.showing.marks import Chart, Line


class Tick(NamedTuple):
    """A place on an axis, from 0 to 1, and what stands beside it."""

    at: float
    text: str
    value: float


class PageScale(NamedTuple):
    """An axis from `low` to `high`, which are in its own units: logarithms of values, or values, as `kind` says."""

    kind: str
    threshold: float
    low: float
    high: float

    def at(self, value: float | None) -> float | None:
        """Where a value lies, 0 being the low end and 1 the high one; None where a logarithmic axis has no place for it."""
        place = placed(value, self.kind, self.threshold)
        return None if place is None else (place - self.low) / (self.high - self.low)

    def ends(self) -> tuple[float, float]:
        """The values at both ends."""
        low, high = (
            10.0**place if self.kind == "log" else place if self.kind == "linear" else _signed(place, self.threshold)
            for place in (self.low, self.high)
        )
        return low, high

    def ticks(self, most: int = 7) -> list[Tick]:
        """The places that are marked: at least two wherever there is anything to read, and about `most` at the most.

        >>> [tick.text for tick in PageScale("log", 1.0, 0.0, 3.0).ticks()]
        ['1', '10', '100', '1,000']
        >>> [tick.text for tick in PageScale("log", 1.0, 0.7, 0.8).ticks()]
        ['5.2', '5.4', '5.6', '5.8', '6', '6.2']
        >>> [tick.text for tick in PageScale("log", 1.0, -1.4, 2.8).ticks(4)]
        ['0.1', '1', '10', '100']
        >>> [tick.text for tick in PageScale("linear", 1.0, -1.0, 4.2).ticks(4)]
        ['0', '2', '4']
        >>> [tick.text.replace(chr(0x2212), "-") for tick in PageScale("symlog", 0.1, -1.5, 3.0).ticks()]
        ['-0.1', '0', '0.1', '1', '10']
        """
        places: list[tuple[float, float]] = []
        for values in self._candidates(most):
            places = [(at, value) for value in values if (at := self.at(value)) is not None and -1e-9 <= at <= 1.0 + 1e-9]
            if len(places) > 2:
                break
        return [Tick(at, number(value, "axis"), value) for at, value in places]

    def _candidates(self, most: int) -> Iterator[list[float]]:
        """Values that could be marked, the best first: some powers of ten, all of them, digits between, and round numbers."""
        low, high = self.ends()
        if self.kind != "linear":
            powers = range(floor(log10(self.threshold if self.kind == "symlog" else low)), ceil(log10(max(high, -low))) + 1)
            thinned = [power for power in powers if power % max(1, ceil((self.high - self.low) / most)) == 0]
            for digits, chosen in (((1,), thinned), ((1,), powers), ((1, 2, 5), powers)):
                sizes = [digit * 10.0**power for power in chosen for digit in digits]
                yield sizes if self.kind == "log" else [*(-size for size in reversed(sizes)), 0.0, *sizes]
        rough = (high - low) / most
        power_of_ten = 10.0 ** floor(log10(rough)) if rough > 0.0 else 1.0
        step = next(factor * power_of_ten for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power_of_ten >= rough)
        yield [round(i * step, 12) for i in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def placed(value: float | None, kind: str, threshold: float) -> float | None:
    """A value in the units of an axis of this kind."""
    if value is None or kind == "linear":
        return value
    if kind == "log":
        return log10(value) if value > 0.0 else None
    size = abs(value) / threshold
    return (1.0 if value >= 0.0 else -1.0) * (size if size <= 1.0 else 1.0 + log10(size))


def _signed(place: float, threshold: float) -> float:
    """The value at a place of an axis that is linear around zero and logarithmic beyond."""
    size = abs(place) if abs(place) <= 1.0 else 10.0 ** (abs(place) - 1.0)
    return (1.0 if place >= 0.0 else -1.0) * size * threshold


def reaching(values: Iterable[float | None], kind: str, threshold: float = 1.0) -> PageScale:
    """The axis of this kind that shows the values, with some room; a logarithmic one reaches at most six decades down."""
    places = [place for value in values if (place := placed(value, kind, threshold)) is not None and isfinite(place)]
    if not places:
        return PageScale(kind, threshold, 0.0, 1.0)
    low, high = min(places), max(places)
    if kind == "log":
        low = max(low, high - 6.0)
        lacking = max(0.0, 0.5 - (high - low)) / 2.0  # less than half a decade would have no ticks
        return PageScale(kind, threshold, low - lacking - 0.05 * (high - low), high + lacking + 0.05 * (high - low))
    if low == high == 0.0:
        return PageScale(kind, threshold, -0.05, 1.0)
    room = max(0.06 * (high - low), 0.02 * abs(high), 1e-12)
    return PageScale(kind, threshold, -0.3 * room if low == 0.0 else low - room, high + room)


def across(chart: Chart) -> PageScale:
    """The horizontal axis of a chart of lines or points; a logarithmic one from the first value to the last, with little room."""
    values = [*(t for line in chart.of(Line) for t in line.x), *chart.x.ends()]
    if chart.x.scale != "log":
        return reaching(values, chart.x.scale, chart.x.threshold)
    low, high = log10(min(values)), log10(max(values))
    edge = 0.02 * (high - low) or 0.05
    return PageScale("log", 1.0, low - edge, high + edge)


def upwards(chart: Chart, kind: str) -> PageScale:
    """The vertical axis of a chart on a scale of this kind: what is rounding needs no room but zero's."""
    lines = chart.of(Line)
    told = [value for line in lines for t, value in zip(line.x, line.y, strict=True) if value is None or abs(value) > 1e-9 * t]
    told += [0.0] if len(told) < sum(len(line.y) for line in lines) else []
    told += [value for line in lines for value in line.bound]
    return reaching([*told, *chart.y.ends()], kind, chart.y.threshold)
