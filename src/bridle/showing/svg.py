"""Small charts as SVG, for notebooks and pages: no script, no network, and text in the colour of what stands around them.

Lines keep a contrast of 3 to 1 with white and with the dark grey of notebooks, and differ in dashes where colours run out.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isfinite
from typing import NamedTuple

from bridle.showing.marks import Axis, Chart, Line
from bridle.showing.numbers import number
from bridle.showing.scales import PageScale, reaching

COLOURS = ("#3b7dd8", "#d95f02", "#18956f", "#c2478f", "#8a63d2", "#8c7a00")
STROKES = ("", "1.5 3", "8 3 1.5 3")
WIDTH, HEIGHT = 320, 170
LEFT, RIGHT, TOP, BOTTOM = 46, 20, 20, 30
TICKS = 4
"""About so many numbers stand beside an axis."""


class Ruler(NamedTuple):
    """An axis in pixels, from the low end to the high one."""

    scale: PageScale
    begin: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value; the low end where a logarithmic axis has no place for it."""
        return self.begin + (self.end - self.begin) * (self.scale.at(value) or 0.0)

    def ticks(self) -> list[tuple[float, str]]:
        """The pixels that are marked, and what stands beside them."""
        return [(self.begin + (self.end - self.begin) * tick.at, tick.text) for tick in self.scale.ticks(TICKS)]


def colour(policy: int) -> tuple[str, str]:
    """The colour and the dashes of the policy at this place."""
    return COLOURS[policy % len(COLOURS)], STROKES[policy // len(COLOURS) % len(STROKES)]


def line_chart(chart: Chart) -> str:
    """A chart of lines as an SVG element: medians, bands, and dashed what a theorem allows."""
    lines = [mark for mark in chart.marks if isinstance(mark, Line)]
    xs = [float(x) for line in lines for x in line.x]
    ys = [value for line in lines for value in (*line.y, *line.bound) if value is not None and isfinite(value)]
    if not ys:
        return f'<p style="opacity:.7">{escape(" ".join(chart.notes) or "There is nothing to draw.")}</p>'
    x, y = Ruler(over(chart.x, xs), LEFT, WIDTH - RIGHT), Ruler(over(chart.y, ys), HEIGHT - BOTTOM, TOP)
    parts = [
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="currentColor" stroke-opacity=".18"/>'
        f'<text x="{LEFT - 5}" y="{at + 3.5:.1f}" text-anchor="end">{text}</text>'
        for at, text in y.ticks()
    ]
    parts += [f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 13}" text-anchor="middle">{text}</text>' for at, text in x.ticks()]
    for above, line in enumerate(lines):
        wide = 1.8 + min(1.2 * (len(lines) - 1 - above), 5.0)  # lines may lie on each other: those below are wider
        ink, dashes = colour(line.policy)
        band = [(t, low, high) for t, low, high in zip(line.x, line.low, line.high, strict=True) if low is not None and high is not None]
        if any(high > low for _, low, high in band):
            corners = [(t, high) for t, _, high in band] + [(t, low) for t, low, _ in reversed(band)]
            parts.append(f'<polygon points="{_points(corners, x, y)}" fill="{ink}" fill-opacity=".16"/>')
        parts.append(_line(line.x, line.bound, x, y, f'stroke="{ink}" stroke-opacity=".8" stroke-width="1" stroke-dasharray="5 3"'))
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        parts.append(_line(line.x, line.y, x, y, f'stroke="{ink}" stroke-width="{wide:.1f}"{dashed}'))
    what = f"{chart.title}: {chart.problem}"
    said = "; ".join(f"{line.label} ends at {number(_last(line.y))}" + _allowed(line) for line in lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'style="max-width:100%;height:auto;color:inherit" font-size="10" font-family="system-ui,sans-serif" fill="currentColor">'
        f"<title>{escape(what)}</title><desc>{escape(said)}</desc>"
        f'<text x="4" y="11" font-weight="600">{escape(chart.title)}</text>'
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 4}" text-anchor="end" opacity=".75">{escape(chart.x.title)}</text>'
        f"{''.join(parts)}</svg>"
    )


def over(axis: Axis, values: Sequence[float]) -> PageScale:
    """The scale over these values: logarithmic only where one is above zero; one that has a zero shows it."""
    if axis.scale == "log" and max(values) > 0.0:
        return reaching(values, "log")
    return reaching([0.0, *values], "symlog" if axis.scale == "symlog" else "linear", axis.threshold)


def _line(at: Sequence[float], values: Sequence[float | None], x: Ruler, y: Ruler, look: str) -> str:
    """A line through the values that are known, broken where they are not."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for t, value in zip(at, values, strict=True):
        if value is None or not isfinite(value):
            pieces.append([])
        else:
            pieces[-1].append((float(t), value))
    drawn = [f'<polyline points="{_points(piece, x, y)}" fill="none" {look}/>' for piece in pieces if len(piece) > 1]
    ink = look.split('"')[1]
    dots = [
        f'<circle cx="{x.at(t):.1f}" cy="{y.at(value):.1f}" r="2.4" fill="{ink}"/>'
        for piece in pieces
        if len(piece) == 1
        for t, value in piece
    ]
    return "".join(drawn + dots)


def _points(points: Sequence[tuple[float, float]], x: Ruler, y: Ruler) -> str:
    bottom, top = HEIGHT - BOTTOM, TOP - 4
    return " ".join(f"{x.at(float(t)):.1f},{min(max(y.at(value), top), bottom):.1f}" for t, value in points)


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _allowed(line: Line) -> str:
    allowed = _last(line.bound)
    return "" if allowed is None else f", of at most {number(allowed)}"
