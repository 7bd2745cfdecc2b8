"""What a figure is made of, whoever draws it: lines, points and bars over axes, and how each policy looks.

The report page, the figures of matplotlib and the small drawings of notebooks all draw the same charts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Literal, NamedTuple, TypeAlias, TypeVar, cast

from bridle.core import InputError

LIGHT = ("#4a4fbf", "#ec6633", "#054329", "#b73378", "#1293fe", "#685c06", "#b283a8", "#621776")
DARK = ("#4079d9", "#bd4d00", "#b3fc9a", "#e87aa6", "#6ab2fb", "#c9b538", "#f8d1fd", "#995b92")
"""Colours that stay apart also for readers who see few: found by maximising the smallest difference over four kinds of vision."""

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "star", "hexagon")
DASHES = ("solid", "dot", "longdashdot")  # never "dash": that is a bound


class Style(NamedTuple):
    """How a policy is drawn everywhere: the place of its colour, its line and its marker."""

    colour: int
    dash: str
    symbol: str


class PowerLaw(NamedTuple):
    """The line factor * t^exponent through a curve, fitted to the rounds from `first` to `last`."""

    factor: float
    exponent: float
    first: float
    last: float

    def at(self, t: float) -> float:
        """The fitted value at round t."""
        return float(self.factor * t**self.exponent)

    def steps(self, many: int) -> list[float]:
        """So many rounds from the first to the last, evenly apart on a logarithmic axis."""
        return [self.first * (self.last / self.first) ** (i / (many - 1)) for i in range(many)]


Values: TypeAlias = Sequence[float | None]
"""Numbers along a line; None where one is not known."""


class Line(NamedTuple):
    """A policy's curve: median over seeds, band, the theorem's bound at the same x, and the power law fitted to it; see `line`."""

    policy: int
    label: str
    x: Sequence[float]
    y: Values
    low: Values
    high: Values
    bound: Values
    law: PowerLaw | None
    joined: bool


def line(
    policy: int,
    label: str,
    x: Sequence[float],
    y: Values,
    *,
    low: Values | None = None,
    high: Values | None = None,
    bound: Values | None = None,
    law: PowerLaw | None = None,
    joined: bool = True,
) -> Line:
    """A line that has no band and no bound unless they are given; one that is not joined is markers alone."""
    return Line(policy, label, x, y, low or y, high or y, bound or [None] * len(x), law, joined)


class Guide(NamedTuple):
    """A dashed line of no policy through points, with a text at the first; one point is the text alone."""

    x: list[float]
    y: list[float]
    text: str = ""


class Point(NamedTuple):
    """A policy's place in the trade-off: median CCV and regret over seeds, the band of each, and every seed's own."""

    policy: int
    label: str
    x: float
    y: float
    x_band: tuple[float, float]
    y_band: tuple[float, float]
    seeds: list[tuple[float, float]]
    rank: int
    pareto: bool


class Bar(NamedTuple):
    """A policy's time a round: median over seeds and band."""

    policy: int
    label: str
    value: float
    low: float
    high: float


class Axis(NamedTuple):
    """A title, and a scale: log, linear, or symlog, which is linear between -threshold and threshold and logarithmic beyond.

    The axis reaches to `bottom` and to `top`, where these are given, and to the values.
    """

    title: str
    scale: str = "linear"
    threshold: float = 1.0
    top: float | None = None
    bottom: float | None = None

    def ends(self) -> list[float]:
        """The ends that are given."""
        return [end for end in (self.bottom, self.top) if end is not None]


ROUNDS = Axis("round t", "log")

Mark = TypeVar("Mark", Line, Point, Bar)


class Chart(NamedTuple):
    """One figure. `marks` are lines, points or bars; where there are none, `notes` say why. `horizon` is None where it is the x axis."""

    kind: str
    problem: str
    horizon: int | None
    title: str
    x: Axis
    y: Axis
    marks: Sequence[Line] | Sequence[Point] | Sequence[Bar]
    notes: Sequence[str] = ()
    caption: str = ""
    guides: Sequence[Guide] = ()

    def of(self, kind: type[Mark]) -> list[Mark]:
        """The marks of this kind."""
        return [mark for mark in self.marks if isinstance(mark, kind)]


def shortened(text: str, length: int) -> str:
    """A text of at most this length, cut short where it is longer."""
    return text if len(text) <= length else text[: length - 1] + "…"


class Key(NamedTuple):
    """An entry of a legend: a policy and its label, or no policy but a "bound" or a "law", as `kind` says."""

    policy: int
    text: str
    kind: str = ""


def legend(charts: Sequence[Chart]) -> list[Key]:
    """Whose each line and point is, with ranks and fitted exponents, and what is dashed and dotted."""
    points = [Key(point.policy, f"{point.rank}  {shortened(point.label, 34)}") for chart in charts for point in chart.of(Point)]
    lines = [(chart, line) for chart in charts for line in chart.of(Line)]
    alone = len({(chart.problem, chart.horizon) for chart, _ in lines}) == 1
    powers: dict[tuple[int, str], list[str]] = {}
    for chart, line in lines:
        power = "" if line.law is None else f"{'T' if chart.horizon is None else 't'}^{line.law.exponent:.2f}"
        what = "CCV" if chart.kind.endswith("ccv") else "regret"
        powers.setdefault((line.policy, line.label), []).extend([f"{what} {power}"] * (alone and line.law is not None))
    keys = [Key(policy, shortened(label, 34) + ":  " * bool(own) + ", ".join(own)) for (policy, label), own in sorted(powers.items())]
    bounds = any(value is not None for _, line in lines for value in line.bound)
    laws = any(line.law is not None for _, line in lines)
    return points + keys + [Key(0, "what the theorem allows", "bound")] * bounds + [Key(0, "fitted power law", "law")] * laws


def style(policy: int) -> Style:
    """How the policy at this place of the legend is drawn: 8 colours, then the same with other lines and markers.

    >>> style(0), style(8)
    (Style(colour=0, dash='solid', symbol='circle'), Style(colour=0, dash='dot', symbol='square'))
    """
    lap = policy // len(LIGHT)
    return Style(policy % len(LIGHT), DASHES[lap % len(DASHES)], SYMBOLS[(policy + lap) % len(SYMBOLS)])


Quantity: TypeAlias = Literal["regret", "ccv"]
"""What is drawn against the round and against T."""

QUANTITIES: tuple[Quantity, ...] = ("regret", "ccv")
NAMES = {"regret": "regret", "ccv": "CCV"}
UNITS = {"regret": "regret (units of total cost)", "ccv": "CCV (units of total violation)"}


TITLES = {"regret": "Regret", "ccv": "CCV"}


def against_round(what: Quantity, problem: str, horizon: int, lines: list[Line], notes: list[str]) -> Chart:
    """Regret or CCV against the round."""
    values = [value for line in lines for value in line.y]
    log = what == "ccv" or all(value is None or value > 0.0 for value in values)
    return Chart(what, problem, horizon, f"{TITLES[what]} against t", ROUNDS, axis(UNITS[what], values, log, 1e-9 * horizon), lines, notes)


def axis(title: str, values: Sequence[float | None], log: bool = False, rounding: float = 0.0) -> Axis:
    """A logarithmic axis where every value is above zero, and above what is rounding, or `log` insists; else a symmetric one."""
    numbers = [value for value in values if value is not None]
    top = max(map(abs, numbers), default=0.0)
    if top <= rounding:
        return Axis(title, "linear")
    threshold = 10.0 ** (floor(log10(top)) - 2)
    return Axis(title, "log" if log or min(numbers) > rounding else "symlog", threshold)


def drawn_regret(regret: float, axis: Axis) -> float:
    """Where a regret is drawn in the trade-off: one below zero in the middle of the strip that is kept for it."""
    return -0.5 * axis.threshold if regret < -1e-6 * axis.threshold else max(regret, 0.0)


def chosen(what: str | Sequence[str]) -> list[Quantity]:
    """What is to be drawn: "regret", "ccv", or both.

    >>> chosen("ccv")
    ['ccv']
    """
    names = [what] if isinstance(what, str) else list(what)
    for name in names or [""]:
        if name not in QUANTITIES:
            raise InputError(f"what must be one or both of {', '.join(QUANTITIES)}, not {what!r}")
    return cast("list[Quantity]", names)
