"""Charts of the report page as SVG: drawn once, as wide as there is room, in the page's own colours, and complete without a script.

A chart lies in a box of fixed height and any width. What has a size of its own (texts, markers) is placed in percent of the box; lines lie
in a drawing that is stretched over it, with strokes that are not. The script of the page (`templates/report.js`) reads numbers from the
attributes `data-...`: it shows values under the pointer, hides policies, and moves marks to another scale of the vertical axis.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from html import escape
from math import cos, hypot, log10, pi, sin

from bridle.comparisons import charts
from bridle.comparisons.text import number
from bridle.showing.marks import Bar, Chart, Line, Point
from bridle.showing.scales import PageScale, apart, placed, reaching

HEIGHT = 300.0
"""How high the plotted area is, in pixels; its width is the reader's."""

NARROW = 280.0
"""How wide it is where there is little room: markers that would touch there are moved apart."""

SCALES = {"log": "log axis", "symlog": "signed log axis", "linear": "linear axis"}
"""The scales of a vertical axis that a reader can choose."""

MARKERS = {
    "circle": "M4 0A4 4 0 1 1 -4 0A4 4 0 1 1 4 0Z",
    "square": "M-3.6 -3.6H3.6V3.6H-3.6Z",
    "diamond": "M0 -5L5 0L0 5L-5 0Z",
    "triangle-up": "M0 -4.8L4.8 3.6H-4.8Z",
    "triangle-down": "M0 4.8L4.8 -3.6H-4.8Z",
    "pentagon": "M0 -4.6L4.4 -1.4L2.7 3.8H-2.7L-4.4 -1.4Z",
    "star": "M0 -5.4L1.4 -1.8L5.2 -1.7L2.2 .7L3.2 4.4L0 2.2L-3.2 4.4L-2.2 .7L-5.2 -1.7L-1.4 -1.8Z",
    "hexagon": "M4.4 0L2.2 3.9H-2.2L-4.4 0L-2.2 -3.9H2.2Z",
}
STROKES = {"solid": "none", "dot": "2 2", "longdashdot": "6 2 1.5 2"}


def draw(chart: Chart, about: str) -> str:
    """The chart as HTML; `about` is what it shows, in words. Empty where there is nothing to draw."""
    if not chart.marks:
        return ""
    if chart.kind == "pace":
        return _bars([mark for mark in chart.marks if isinstance(mark, Bar)])
    if chart.kind == "tradeoff":
        return _tradeoff(chart, [mark for mark in chart.marks if isinstance(mark, Point)], about)
    return _lines(chart, [mark for mark in chart.marks if isinstance(mark, Line)], about)


def swatch(place: int) -> str:
    """A policy's line and marker, in its colour, as they are in the charts."""
    look = charts.style(place)
    line = f'<path d="M-13 0H13" stroke="var(--p{look.colour})" stroke-width="2" stroke-dasharray="{STROKES[look.dash]}"/>'
    marker = f'<path d="{MARKERS[look.symbol]}" fill="var(--p{look.colour})"/>'
    return f'<svg class="swatch" viewBox="-13 -6 26 12" aria-hidden="true">{line}{marker}</svg>'


def definitions() -> str:
    """The shapes of markers, once for all charts of a page: large ones for medians, small ones for single seeds."""
    shapes = "".join(
        f'<path id="k-{name}" d="{shape}"/><path id="s-{name}" d="{shape}" transform="scale(.62)"/>' for name, shape in MARKERS.items()
    )
    return f'<svg class="defs" width="0" height="0" aria-hidden="true"><defs>{shapes}</defs></svg>'


# --- the frame ------------------------------------------------------------------------------------------------------------------------


def _frame(chart: Chart, x: PageScale, y: PageScale, marks: str, about: str, facts: str = "", bottom: float = 100.0) -> str:
    """Axes with their ticks and titles around the marks; the vertical one has ticks down to `bottom` percent."""
    down = "".join(
        f'<line class="grid" x1="{_percent(tick.at)}" x2="{_percent(tick.at)}" y1="0" y2="100%"/>'
        f'<text class="xtick" x="{_percent(tick.at)}" y="100%" dy="17">{tick.text}</text>'
        for tick in x.ticks(5)
    )
    return (
        f'<div class="area"{facts}><svg class="picture" role="img" aria-label="{escape(about)}">{down}'
        f'<g class="yaxis">{_across(y, bottom)}</g>'
        f'<text class="title" x="-42" y="-12">{escape(chart.y.title)}</text>'
        f'<text class="title end" x="100%" y="100%" dy="36">{escape(chart.x.title)}</text>{marks}</svg></div>'
    )


def _across(y: PageScale, bottom: float) -> str:
    """The lines and texts of a vertical axis; the script writes them so, too."""
    return "".join(
        f'<line class="{"zero" if text == "0" else "grid"}" x2="100%" y1="{at}%" y2="{at}%"/>'
        f'<text class="ytick" x="-7" y="{at}%" dy="4">{text}</text>'
        for at, text in _ticks(y)
        if at <= bottom
    )


def _ticks(y: PageScale) -> list[tuple[float, str]]:
    """The ticks of a vertical axis: percent from the top, and text."""
    return [(round(100.0 * (1.0 - tick.at), 2), tick.text) for tick in y.ticks(7)]


def _stretched(inside: str) -> str:
    return f'<svg class="stretch" viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%">{inside}</svg>'


def _marker(x: float, y: float, inside: str, attributes: str = "") -> str:
    return f'<svg class="mark" x="{_percent(x)}" y="{_percent(1.0 - y)}"{attributes}>{inside}</svg>'


def _percent(at: float) -> str:
    return f"{100.0 * at:.2f}%"


# --- lines ----------------------------------------------------------------------------------------------------------------------------


def _lines(chart: Chart, lines: Sequence[Line], about: str) -> str:
    growth = chart.horizon is None
    ends = [line.x[0] for line in lines] + [line.x[-1] for line in lines]
    edge = log10(max(ends) / min(ends)) * 0.02 or 0.05
    x = PageScale("log", 1.0, log10(min(ends)) - edge, log10(max(ends)) + edge)
    told = [value for line in lines for t, value in zip(line.x, line.y, strict=True) if value is None or abs(value) > 1e-9 * t]
    told += [0.0] if len(told) < sum(len(line.y) for line in lines) else []  # what is rounding needs no room but zero's
    told += [value for line in lines for value in line.bound]
    scales = {kind: reaching(told, kind, chart.y.threshold) for kind in SCALES}
    y = scales[chart.y.scale]
    shared = all(line.x == lines[0].x for line in lines)
    paths = "".join(_line(line, x, y, growth, shared) for line in lines)
    markers = "".join(_markers(line, x, y, growth) for line in lines)
    laws = [line for line in lines if line.law is not None]
    letter = "T" if growth else "t"
    places = {kind: _end_places(laws, scale) for kind, scale in scales.items()}
    texts = "".join(
        f'<text class="power" data-policy="{line.policy}" x="100%" dx="5" y="{_percent(1.0 - at)}" dy="0.34em" '
        f'fill="var(--p{charts.style(line.policy).colour})">{letter}<tspan dy="-0.4em" font-size="9">{line.law.exponent:.2f}</tspan></text>'
        for line, at in zip(laws, places[chart.y.scale], strict=True) if line.law is not None
    )  # fmt: skip
    choices = {
        kind: {
            "low": round(scale.low, 6), "high": round(scale.high, 6), "threshold": scale.threshold, "ticks": _ticks(scale),
            "powers": [round(100.0 * (1.0 - at), 2) for at in places[kind]],
        }
        for kind, scale in scales.items()
    }  # fmt: skip
    what = "CCV" if chart.kind.endswith("ccv") else "regret"
    facts = (
        f' data-kind="lines" data-what="{what}" data-letter="{letter}" data-scale="{chart.y.scale}" tabindex="0" role="group" '
        f"aria-label=\"{escape(chart.title)}: arrow keys show values\" data-scales='{json.dumps(choices, separators=(',', ':'))}'"
    )
    if shared:
        facts += f' data-x="{_numbers(lines[0].x)}" data-at="{",".join(_unit(_at(x, t)) for t in lines[0].x)}"'
    cursor = '<line class="cursor" y1="0" y2="100%" visibility="hidden"/>'
    return _frame(chart, x, y, _stretched(paths) + markers + texts + cursor, about, facts)


def _line(line: Line, x: PageScale, y: PageScale, growth: bool, shared: bool) -> str:
    """A policy's band, bound, fitted power and curve, with the numbers that they are drawn from; rounds that all share stand elsewhere."""
    look = charts.style(line.policy)
    across = [_at(x, t) for t in line.x]
    colour = f'style="--c:var(--p{look.colour})"'
    spread = any(low != high for low, high in zip(line.low, line.high, strict=True))
    parts = []
    if spread:
        ends = [(at, y.at(low), y.at(high), high) for at, low, high in zip(across, line.low, line.high, strict=True)]
        known = [(at, -1.0 if low is None else low, high) for at, low, high, top in ends if high is not None and top is not None]
        if growth:
            drawn = "".join(f"M{_unit(at)} {_down(low)}V{_down(high)}" for at, low, high in known)
            parts.append(f'<path class="span" d="{drawn}"/>')
        else:
            there = [f"{_unit(at)} {_down(high)}" for at, _, high in known]
            back = [f"{_unit(at)} {_down(low)}" for at, low, _ in reversed(known)]
            parts.append(f'<path class="band" d="M{" ".join([*there, *back])}Z"/>' if known else "")
    if any(value is not None for value in line.bound):
        parts.append(f'<path class="bound" d="{_path(across, map(y.at, line.bound))}"/>')
    if line.law is not None:
        steps = [line.law.first * (line.law.last / line.law.first) ** (i / 8.0) for i in range(9)]
        parts.append(f'<path class="fit" d="{_path([_at(x, t) for t in steps], (y.at(line.law.at(t)) for t in steps))}"/>')
    parts.append(f'<path class="main" d="{_path(across, map(y.at, line.y))}" stroke-dasharray="{STROKES[look.dash]}"/>')
    law = "" if line.law is None else f' data-law="{",".join(f"{value:.6g}" for value in line.law)}"'
    facts = f'data-x="{_numbers(line.x)}" data-at="{",".join(_unit(at) for at in across)}" ' * (not shared) + f'data-y="{_numbers(line.y)}"'
    facts += f' data-low="{_numbers(line.low, 4)}" data-high="{_numbers(line.high, 4)}"' * spread
    facts += f' data-bound="{_numbers(line.bound)}"' * any(value is not None for value in line.bound)
    return f'<g data-policy="{line.policy}" data-label="{escape(line.label)}" {colour} {facts}{law}>{"".join(parts)}</g>'


def _markers(line: Line, x: PageScale, y: PageScale, growth: bool) -> str:
    """The policy's own marker on some of its rounds, the last among them."""
    look = charts.style(line.policy)
    every = 1 if growth else max(1, len(line.x) // 7)
    marks = []
    for i in range(len(line.x) - 1, -1, -every):
        at = y.at(line.y[i])
        if at is not None and at >= -0.01:
            marks.append(_dot(f"k-{look.symbol}", _at(x, line.x[i]), at, f' data-i="{i}"'))
    return f'<g class="markers" data-policy="{line.policy}" fill="var(--p{look.colour})">{"".join(marks)}</g>'


def _dot(shape: str, x: float, y: float, attributes: str = "") -> str:
    """One of the shapes of `definitions` at a place."""
    return f'<use href="#{shape}" x="{100.0 * x:.1f}%" y="{100.0 * (1.0 - y):.1f}%"{attributes}/>'


def _end_places(lines: Sequence[Line], scale: PageScale) -> list[float]:
    """Where the powers beside the ends of lines stand, so that none lies on another."""
    ends = [(scale.at(line.y[-1]) or 0.0) * HEIGHT for line in lines]
    return [at / HEIGHT for at in apart(ends, min(13.0, HEIGHT / max(len(ends), 1)), HEIGHT)]


def _at(scale: PageScale, value: float) -> float:
    """Where a value that the axis was made for lies."""
    at = scale.at(value)
    return 0.0 if at is None else at


def _path(across: Sequence[float], up: Iterable[float | None]) -> str:
    """A line through the points, broken where one is missing."""
    drawn, broken = [], True
    for at, height in zip(across, up, strict=True):
        if height is None:
            broken = True
            continue
        drawn.append(f"{'M' if broken else ' '}{_unit(at)} {_down(height)}")
        broken = False
    return "".join(drawn)


def _unit(at: float) -> str:
    return f"{1000.0 * at:.0f}"


def _down(at: float) -> str:
    """A height in the stretched drawing, where down is more; what is far outside is cut off anyway."""
    return f"{1000.0 * (1.0 - min(max(at, -2.0), 3.0)):.0f}"


def _numbers(values: Iterable[float | None], digits: int = 6) -> str:
    return ",".join("" if value is None else f"{value:.{digits}g}" for value in values)


# --- the trade-off --------------------------------------------------------------------------------------------------------------------


def _tradeoff(chart: Chart, points: Sequence[Point], about: str) -> str:
    x, y = (
        PageScale("symlog", axis.threshold, low, (placed(axis.top, "symlog", axis.threshold) or 1.0) + 0.25)
        for axis, low in ((chart.x, -0.25), (chart.y, -1.3))
    )
    zero = _at(y, 0.0)
    strip = f'<rect class="below" x="0" width="100%" y="{_percent(1.0 - zero)}" height="{_percent(zero)}"/>'
    strip += '<text class="aside end" x="100%" dx="-6" y="100%" dy="-7">regret below zero counts as zero</text>'
    strip += f'<text class="aside" x="{_percent(_at(x, 0.0))}" dx="9" y="{_percent(1.0 - zero)}" dy="-7">best</text>'
    corners = []
    for k in (1.0, 2.0, 3.0, 4.0):
        right, top = ((k - scale.low) / (scale.high - scale.low) for scale in (x, y))
        corners.append(f"M{_unit(right)} {_down(zero)}V{_down(top)}H{_unit(_at(x, 0.0))}")
    lines = f'<path class="corner" d="{"".join(corners)}"/>'
    height: Callable[[float], float] = lambda regret: _at(y, charts.drawn_regret(regret, chart.y))  # noqa: E731
    places = [(_at(x, point.x), height(point.y)) for point in points]
    moved = _moved_apart([(at * NARROW, up * HEIGHT) for at, up in places])
    dots, leads, circles = [], [], []
    for point, (at, up), (right, above) in zip(points, places, moved, strict=True):
        look = charts.style(point.policy)
        fill = f'fill="var(--p{look.colour})"'
        who = f'data-policy="{point.policy}"'
        each = (_dot(f"s-{look.symbol}", _at(x, ccv), height(regret)) for ccv, regret in point.seeds)
        dots.append(f'<g class="seeds" {who} {fill}>{"".join(each)}</g>')
        if hypot(right, above) > 1.0:
            leads.append(_marker(at, up, f'<path class="lead" d="M0 0L{right:.0f} {-above:.0f}"/><circle r="2.5" {fill}/>', f" {who}"))
        ring = ' class="front"' if point.pareto else ""
        inside = f'<circle r="10" {fill}{ring}/><text dy="0.35em">{point.rank}</text>'
        tip = _tip(point.label, f"rank {point.rank}{', on the front' if point.pareto else ''}", *(
            f"{name} {number(value, 'page')}{_between(band)}{note}"
            for name, value, band, note in (
                ("regret", point.y, point.y_band, ", counts as zero" if point.y < 0.0 else ""), ("CCV", point.x, point.x_band, ""),
            )
        ))  # fmt: skip
        facts = f'{who} data-rank="{point.rank}" data-values="{point.x!r},{point.y!r}" tabindex="0" role="img" {tip}'
        circles.append(_marker(at, up, f'<g transform="translate({right:.1f} {-above:.1f})">{inside}</g>', f" {facts}"))
    marks = strip + _stretched(lines) + "".join(dots) + "".join(leads) + "".join(reversed(circles))
    return _frame(chart, x, y, marks, about, ' data-kind="points"', 100.0 * (1.0 - zero) + 0.01)


def _moved_apart(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """How far each of several circles is moved, in pixels, so that no two lie on each other: those that crowd stand in a ring."""
    groups: list[list[int]] = []
    for i, (x, y) in enumerate(places):
        near = [group for group in groups if any(hypot(x - places[j][0], y - places[j][1]) < 2 * 11.5 for j in group)]
        groups = [group for group in groups if group not in near] + [[j for group in near for j in group] + [i]]
    moves = [(0.0, 0.0)] * len(places)
    for group in groups:
        if len(group) == 1:
            continue
        middle = tuple(sum(places[j][k] for j in group) / len(group) for k in (0, 1))
        radius = 12.0 / sin(pi / len(group))
        centre = (min(max(middle[0], radius + 8.0), NARROW - radius - 8.0), min(max(middle[1], radius + 8.0), HEIGHT - radius - 8.0))
        for k, j in enumerate(sorted(group, key=lambda j: places[j])):
            turn = pi - 2.0 * pi * k / len(group)
            moves[j] = (centre[0] + radius * cos(turn) - places[j][0], centre[1] + radius * sin(turn) - places[j][1])
    return moves


# --- bars -----------------------------------------------------------------------------------------------------------------------------


def _bars(bars: Sequence[Bar]) -> str:
    longest = max(bar.value for bar in bars) or 1.0
    rows = []
    for bar in bars:
        tip = _tip(bar.label, f"{number(bar.value, 'page')} µs a round{_between((bar.low, bar.high))}")
        style = f"width:{_percent(bar.value / longest)};background:var(--p{charts.style(bar.policy).colour})"
        rows.append(
            f'<div class="bar" data-policy="{bar.policy}" data-value="{bar.value!r}" {tip}><span class="who">{escape(bar.label)}</span>'
            f'<span class="track"><i style="{style}"></i><b>{number(bar.value, "page", 3)}</b></span></div>'
        )
    return f'<div class="bars">{"".join(rows)}</div>'


def _between(band: tuple[float, float]) -> str:
    return f" ({number(band[0], 'page')} to {number(band[1], 'page')})" if band[1] > band[0] else ""


def _tip(*lines: str) -> str:
    """What is shown of a mark under the pointer, and read aloud."""
    return f'data-tip="{escape(chr(10).join(lines))}" aria-label="{escape(", ".join(lines))}"'
