"""Charts as SVG: drawn once, as wide as there is room, and complete without a script.

The plotted area has any size. What has a size of its own (texts, markers) is placed in percent of it; lines lie in a drawing that is
stretched over it, with strokes that are not. On a page the style sheet says what each class looks like, and a script
(`templates/report.js`) reads numbers from the attributes `data-...`: it shows values under the pointer, hides policies, and moves marks to
another scale of the vertical axis. A notebook has neither, so there each class gives way to what it stands for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from math import hypot, isfinite

from bridle.showing import marks
from bridle.showing.brief import number
from bridle.showing.marks import Bar, Chart, Guide, Line, Point, drawn_regret, style
from bridle.showing.scales import PageScale, across, upwards

HEIGHT = 300.0
"""How high the plotted area of a page is, in pixels; its width is the reader's."""

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
DASHES = {"bound": "5 3", "law": "1 3"}
STROKES = {"solid": "none", "dot": "2 2", "longdashdot": "6 2 1.5 2"}


def page_chart(chart: Chart, about: str, script: bool = True) -> str:
    """The chart as HTML for a page, with a `script` or without; `about` says what it shows. Empty where there is nothing to draw."""
    if not chart.marks:
        return ""
    if chart.kind == "pace":
        return _bars(chart.of(Bar))
    facts, inside = _tradeoff(chart) if chart.kind == "tradeoff" else _lines(chart)
    return f'<div class="area" {facts if script else ""}><svg class="picture" role="img" aria-label="{escape(about)}">{inside}</svg></div>'


def legend(charts: Sequence[Chart]) -> list[tuple[str, str]]:
    """The legend of these charts: a sample as SVG and a plain text for each entry; one line alone needs none."""
    keys = marks.legend(charts)
    several = sum(not key.kind for key in keys) > 1
    return [(swatch(key.policy, key.kind), key.text) for key in keys if key.kind or several]


def swatch(place: int, kind: str = "") -> str:
    """A policy's line and marker, in its colour, as they are in the charts; or the dashes of a bound or of a law."""
    look = style(place)
    ink, dashes = ("currentColor", DASHES[kind]) if kind else (f"var(--p{look.colour})", STROKES[look.dash])
    stroke = f'<path d="M-13 0H13" stroke="{ink}" stroke-width="{1 if kind else 2}" stroke-dasharray="{dashes}"/>'
    marker = "" if kind else f'<path d="{MARKERS[look.symbol]}" fill="{ink}"/>'
    return f'<svg class="swatch" viewBox="-13 -6 26 12" aria-hidden="true">{stroke}{marker}</svg>'


def definitions() -> str:
    """The shapes of markers, once for all charts of a page: large ones for medians, small ones for single seeds."""
    shapes = "".join(
        f'<path id="k-{name}" d="{shape}"/><path id="s-{name}" d="{shape}" transform="scale(.62)"/>' for name, shape in MARKERS.items()
    )
    return f'<svg class="defs" width="0" height="0" aria-hidden="true"><defs>{shapes}</defs></svg>'


# --- notebooks ------------------------------------------------------------------------------------------------------------------------

COLOURS = ("#3b7dd8", "#d95f02", "#18956f", "#c2478f", "#8a63d2", "#8c7a00", "#0f8ca0", "#d1495b")
"""The colours of policies where the ground may be white or dark grey: of contrast 3 to 1 with both."""

SIZE = (320, 200)
AREA = 'x="48" y="36" width="250" height="128" overflow="visible"'
LOOKS = {
    "grid": 'stroke="currentColor" stroke-opacity=".18"',
    "zero": 'stroke="currentColor" stroke-opacity=".5"',
    "xtick": 'text-anchor="middle"',
    "ytick": 'text-anchor="end"',
    "title": 'opacity=".75"',
    "title end": 'text-anchor="end" opacity=".75"',
    "band": 'stroke="none" fill-opacity=".16"',
    "main": 'fill="none" stroke-width="1.8" stroke-linecap="round" vector-effect="non-scaling-stroke"',
    "bound": 'fill="none" stroke-opacity=".8" stroke-dasharray="5 3" vector-effect="non-scaling-stroke"',
    "span": 'fill="none" vector-effect="non-scaling-stroke"',
    "fit": 'fill="none" stroke="currentColor" stroke-opacity=".6" stroke-dasharray="1 3" vector-effect="non-scaling-stroke"',
    "swatch": 'width="26" height="12"',
}
"""What the classes of the style sheet stand for, where there is none."""


def card_chart(chart: Chart) -> str:
    """A chart of lines as an SVG element that needs no style sheet; a sentence where there is nothing to draw."""
    known = [line for line in chart.of(Line) if _last(line.y) is not None]
    if not known:
        return f'<p style="opacity:.7">{escape(" ".join(chart.notes) or "There is nothing to draw.")}</p>'
    said = "; ".join(
        f"{line.label} ends at {number(_last(line.y))}" + (f", of at most {number(_last(line.bound))}" if _last(line.bound) else "")
        for line in known
    )
    width, height = SIZE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'style="max-width:100%;height:auto;color:inherit" font-size="10" font-family="system-ui,sans-serif" fill="currentColor">'
        f"<title>{escape(f'{chart.title}: {chart.problem}')}</title><desc>{escape(said)}</desc>"
        f'<text x="6" y="11" font-weight="600">{escape(chart.title)}</text>'
        f"<svg {AREA}>{without_style_sheet(_lines(chart, few=True)[1])}</svg></svg>"
    )


def without_style_sheet(drawn: str) -> str:
    """A drawing that looks alike where there is no style sheet and no definitions: colours and shapes stand where they were named."""
    rules: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
        (r' data-[a-z]+="[^"]*"', lambda found: ""),
        (r'style="--c:(var\(--p\d\))"', lambda found: f'stroke="{found[1]}" fill="{found[1]}"'),
        (r"var\(--p(\d)\)", lambda found: COLOURS[int(found[1])]),
        (r'class="([a-z ]+)"', lambda found: LOOKS.get(found[1], "")),
        (r'<use href="#k-([a-z-]+)"([^>]*)/>', lambda found: f'<svg{found[2]} overflow="visible"><path d="{MARKERS[found[1]]}"/></svg>'),
        (r'(M\d+ -?\d+)(?=[M"])', lambda found: f"{found[1]}h0"),  # a lone value is a dot
    )
    for pattern, written in rules:
        drawn = re.sub(pattern, written, drawn)
    return drawn


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None and isfinite(value)), None)


# --- the frame ------------------------------------------------------------------------------------------------------------------------


def _axes(chart: Chart, x: PageScale, y: PageScale, bottom: float = 100.0, most: tuple[int, int] = (5, 7)) -> str:
    """Ticks and titles; the vertical axis has ticks down to `bottom` percent."""
    down = "".join(
        f'<line class="grid" x1="{_percent(tick.at)}" x2="{_percent(tick.at)}" y1="0" y2="100%"/>'
        f'<text class="xtick" x="{_percent(tick.at)}" y="100%" dy="17">{tick.text}</text>'
        for tick in x.ticks(most[0])
    )
    level = "".join(  # the script writes them so, too
        f'<line class="{"zero" if text == "0" else "grid"}" x2="100%" y1="{at}%" y2="{at}%"/>'
        f'<text class="ytick" x="-7" y="{at}%" dy="4">{text}</text>'
        for at, text in _ticks(y, most[1])
        if at <= bottom
    )
    return (
        f'{down}<g class="yaxis">{level}</g><text class="title" x="-42" y="-12">{escape(chart.y.title)}</text>'
        f'<text class="title end" x="100%" y="100%" dy="33">{escape(chart.x.title)}</text>'
    )


def _ticks(y: PageScale, most: int = 7) -> list[tuple[float, str]]:
    """The ticks of a vertical axis: percent from the top, and text."""
    return [(round(100.0 * (1.0 - tick.at), 2), tick.text) for tick in y.ticks(most)]


def _stretched(inside: str) -> str:
    return f'<svg class="stretch" viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%">{inside}</svg>'


def _percent(at: float) -> str:
    return f"{100.0 * at:.2f}%"


def _dot(shape: str, x: float, y: float, attributes: str = "") -> str:
    """One of the shapes of `definitions` at a place."""
    return f'<use href="#{shape}" x="{100.0 * x:.1f}%" y="{100.0 * (1.0 - y):.1f}%"{attributes}/>'


def _at(scale: PageScale, value: float) -> float:
    """Where a value that the axis was made for lies."""
    at = scale.at(value)
    return 0.0 if at is None else at


def _path(along: Iterable[float], up: Iterable[float | None]) -> str:
    """A line through the points, broken where one is missing."""
    drawn, broken = "", True
    for at, height in zip(along, up, strict=True):
        if height is not None:
            drawn += f"{'M' if broken else ' '}{_unit(at)} {_down(height)}"
        broken = height is None
    return drawn


def _unit(at: float) -> str:
    return f"{1000.0 * at:.0f}"


def _down(at: float) -> str:
    """A height in the stretched drawing, where down is more; what is far outside is cut off anyway."""
    return f"{1000.0 * (1.0 - min(max(at, -2.0), 3.0)):.0f}"


def _numbers(values: Iterable[float | None], digits: int = 6) -> str:
    return ",".join("" if value is None else f"{value:.{digits}g}" for value in values)


# --- lines ----------------------------------------------------------------------------------------------------------------------------


def _lines(chart: Chart, few: bool = False) -> tuple[str, str]:
    """What the script is told of the chart, and its drawing: with `few` ticks where it is small."""
    lines, growth = chart.of(Line), chart.horizon is None
    x, scales = across(chart), {kind: upwards(chart, kind) for kind in SCALES}
    y = scales[chart.y.scale]
    shared = all(line.x == lines[0].x for line in lines)
    choices = {
        kind: {
            "low": round(scale.low, 6), "high": round(scale.high, 6), "threshold": scale.threshold, "ticks": _ticks(scale),
        }
        for kind, scale in scales.items()
    }  # fmt: skip
    facts = (
        f'data-kind="lines" data-what="{"CCV" if chart.kind.endswith("ccv") else "regret"}" data-letter="{"T" if growth else "t"}" '
        f'data-scale="{chart.y.scale}" tabindex="0" role="group" aria-label="{escape(chart.title)}: arrow keys show values" '
        f"data-scales='{json.dumps(choices, separators=(',', ':'))}'"
    )
    if shared:
        facts += f' data-x="{_numbers(lines[0].x)}" data-at="{",".join(_unit(_at(x, t)) for t in lines[0].x)}"'
    paths = _guides(chart, x, y) + "".join(_line(line, x, y, growth, shared) for line in lines)
    markers = "".join(_markers(line, x, y, growth) for line in lines) + "".join(_said(guide, x, y) for guide in chart.guides)
    cursor = '<line class="cursor" y1="0" y2="100%" visibility="hidden"/>' * (not few)
    return facts, _axes(chart, x, y, most=(4, 4) if few else (5, 7)) + _stretched(paths) + markers + cursor


def _line(line: Line, x: PageScale, y: PageScale, growth: bool, shared: bool) -> str:
    """A policy's band, bound, fitted power and curve, with the numbers that they are drawn from; rounds that all share stand elsewhere."""
    look, places = style(line.policy), [_at(x, t) for t in line.x]
    spread = any(low != high for low, high in zip(line.low, line.high, strict=True))
    bounded = any(value is not None for value in line.bound)
    parts = facts = ""
    if spread:
        ends = [(_unit(at), y.at(low), y.at(high)) for at, low, high in zip(places, line.low, line.high, strict=True)]
        known = [(at, _down(-1.0 if low is None else low), _down(high)) for at, low, high in ends if high is not None]
        if growth:
            parts += f'<path class="span" d="{"".join(f"M{at} {low}V{high}" for at, low, high in known)}"/>'
        elif known:
            outline = [f"{at} {high}" for at, _, high in known] + [f"{at} {low}" for at, low, _ in reversed(known)]
            parts += f'<path class="band" d="M{" ".join(outline)}Z"/>'
        facts += f' data-low="{_numbers(line.low, 4)}" data-high="{_numbers(line.high, 4)}"'
    if bounded:
        parts += f'<path class="bound" d="{_path(places, map(y.at, line.bound))}"/>'
        facts += f' data-bound="{_numbers(line.bound)}"'
    if line.law is not None:
        steps = line.law.steps(9)
        parts += f'<path class="fit" d="{_path((_at(x, t) for t in steps), (y.at(line.law.at(t)) for t in steps))}"/>'
        facts += f' data-law="{_numbers(line.law)}"'
    if line.joined:
        parts += f'<path class="main" d="{_path(places, map(y.at, line.y))}" stroke-dasharray="{STROKES[look.dash]}"/>'
    own = "" if shared else f' data-x="{_numbers(line.x)}" data-at="{",".join(map(_unit, places))}"'
    who = f'data-policy="{line.policy}" data-label="{escape(line.label)}" style="--c:var(--p{look.colour})"'
    return f'<g {who}{own} data-y="{_numbers(line.y)}"{facts}>{parts}</g>'


def _markers(line: Line, x: PageScale, y: PageScale, growth: bool) -> str:
    """The policy's own marker on some of its rounds, the last among them."""
    look, every = style(line.policy), 1 if growth or not line.joined else max(1, len(line.x) // 7)
    dots = ""
    for i in range(len(line.x) - 1, -1, -every):
        at = y.at(line.y[i])
        if at is not None and at >= -0.01:
            dots += _dot(f"k-{look.symbol}", _at(x, line.x[i]), at, f' data-i="{i}"')
    return f'<g class="markers" data-policy="{line.policy}" fill="var(--p{look.colour})">{dots}</g>'


def _guides(chart: Chart, x: PageScale, y: PageScale) -> str:
    return "".join(f'<path class="guide" d="{_path((_at(x, t) for t in guide.x), map(y.at, guide.y))}"/>' for guide in chart.guides)


def _said(guide: Guide, x: PageScale, y: PageScale) -> str:
    """The text of a guide, above its first point."""
    at, height = _at(x, guide.x[0]), _percent(1.0 - _at(y, guide.y[0]))
    side = ' class="aside end" dx="-4"' if at > 0.6 else ' class="aside" dx="6"'
    return f'<text{side} x="{_percent(at)}" y="{height}" dy="-5">{escape(guide.text)}</text>' if guide.text else ""


# --- the trade-off --------------------------------------------------------------------------------------------------------------------


def _tradeoff(chart: Chart) -> tuple[str, str]:
    x, y = across(chart), upwards(chart, chart.y.scale)
    zero = _at(y, 0.0)
    strip = f'<rect class="below" x="0" width="100%" y="{_percent(1.0 - zero)}" height="{_percent(zero)}"/>'
    strip += '<text class="aside end" x="100%" dx="-6" y="100%" dy="-7">regret below zero counts as zero</text>'
    strip += f'<text class="aside" x="{_percent(_at(x, 0.0))}" dx="9" y="{_percent(1.0 - zero)}" dy="-7">best</text>'
    points = chart.of(Point)
    places = [(_at(x, point.x), _at(y, drawn_regret(point.y, chart.y))) for point in points]
    moved = _moved_apart([(at * NARROW, up * HEIGHT) for at, up in places])
    seeds = leads = circles = ""
    for point, (at, up), (right, above) in zip(points, places, moved, strict=True):
        look, who = style(point.policy), f'data-policy="{point.policy}"'
        fill = f'fill="var(--p{look.colour})"'
        small = (_dot(f"s-{look.symbol}", _at(x, ccv), _at(y, drawn_regret(regret, chart.y))) for ccv, regret in point.seeds)
        seeds += f'<g class="seeds" {who} {fill}>{"".join(small)}</g>'
        here = f'class="mark" x="{_percent(at)}" y="{_percent(1.0 - up)}" {who}'
        if hypot(right, above) > 1.0:
            leads += f'<svg {here}><path class="lead" d="M0 0L{right:.0f} {-above:.0f}"/><circle r="2.5" {fill}/></svg>'
        ring = ' class="front"' if point.pareto else ""
        tip = _tip(
            point.label,
            f"rank {point.rank}{', on the front' if point.pareto else ''}",
            f"regret {_with_band(point.y, point.y_band)}{', counts as zero' if point.y < 0.0 else ''}",
            f"CCV {_with_band(point.x, point.x_band)}",
        )
        circles = (  # the best is on top
            f'<svg {here} data-rank="{point.rank}" data-values="{point.x!r},{point.y!r}" tabindex="0" role="img" {tip}>'
            f'<g transform="translate({right:.1f} {-above:.1f})"><circle r="10" {fill}{ring}/>'
            f'<text dy="0.35em">{point.rank}</text></g></svg>'
        ) + circles
    axes = _axes(chart, x, y, 100.0 * (1.0 - zero) + 0.01)
    return 'data-kind="points"', axes + strip + _stretched(_guides(chart, x, y)) + seeds + leads + circles


def _moved_apart(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """How far each of several circles is moved, in pixels: to the nearest place of a grid, where it would lie on one before it."""
    grid = [(float(x), float(y)) for x in range(12, int(NARROW), 24) for y in range(12, int(HEIGHT), 24)]
    taken: list[tuple[float, float]] = []
    for x, y in places:
        nearest = sorted((hypot(a - x, b - y), a, b) for a, b in grid)
        apart = ((a, b) for _, a, b in [(0.0, x, y), *nearest] if all(hypot(a - c, b - d) > 22.0 for c, d in taken))
        taken.append(next(apart, (x, y)))
    return [(a - x, b - y) for (a, b), (x, y) in zip(taken, places, strict=True)]


# --- bars -----------------------------------------------------------------------------------------------------------------------------


def _bars(bars: Sequence[Bar]) -> str:
    longest = max(bar.value for bar in bars) or 1.0
    rows = ""
    for bar in bars:
        tip = _tip(bar.label, f"{_with_band(bar.value, (bar.low, bar.high), ' µs a round')}")
        long = f"width:{_percent(bar.value / longest)};background:var(--p{style(bar.policy).colour})"
        rows += (
            f'<div class="bar" data-policy="{bar.policy}" data-value="{bar.value!r}" {tip}><span class="who">{escape(bar.label)}</span>'
            f'<span class="track"><i style="{long}"></i><b>{number(bar.value, "page", 3)}</b></span></div>'
        )
    return f'<div class="bars">{rows}</div>'


def _with_band(value: float, band: tuple[float, float], unit: str = "") -> str:
    between = f" ({number(band[0], 'page')} to {number(band[1], 'page')})" if band[1] > band[0] else ""
    return f"{number(value, 'page')}{unit}{between}"


def _tip(*lines: str) -> str:
    """What is shown of a mark under the pointer, and read aloud."""
    return f'data-tip="{escape(chr(10).join(lines))}" aria-label="{escape(", ".join(lines))}"'
