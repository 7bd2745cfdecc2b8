"""Figures of matplotlib: one style, for papers and slides; lines with their bands and bounds, trade-offs, bars.

A figure saves itself with fonts that journals take: TrueType in PDF, outlines in SVG. No setting of matplotlib is changed for anybody else,
and pyplot is not used.
"""

from __future__ import annotations

import warnings
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from html import escape
from io import BytesIO
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from bridle.core import InputError
from bridle.showing.marks import LIGHT, SYMBOLS, Bar, Chart, Line, Point, drawn_regret, legend, shortened, style
from bridle.showing.scales import PageScale, across, upwards

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = dict(zip(SYMBOLS, "osD^vp*h", strict=True))
DASHED: Any = (0, (5, 3))
STROKES: dict[str, Any] = {"solid": "solid", "dot": (0, (1, 1.4)), "longdashdot": (0, (7, 2, 1, 2))}
INK, SOFT, GRID = "#1b1e24", "#5c6370", "#e6e6e2"
SETTINGS = {
    "svg.hashsalt": "bridle", "font.family": "DejaVu Sans", "font.size": 9.0, "text.color": INK, "axes.labelcolor": SOFT,
    "axes.edgecolor": "#c9cac5", "axes.titlesize": 10.0, "axes.titleweight": "bold", "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True, "grid.color": GRID, "grid.linewidth": 0.7, "xtick.color": SOFT,
    "ytick.color": SOFT, "xtick.labelsize": 8.0, "ytick.labelsize": 8.0, "axes.labelsize": 8.5, "text.parse_math": False,
    "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "path", "savefig.dpi": "figure", "lines.linewidth": 1.7, "lines.markersize": 5.0,
}  # fmt: skip
"""The one style. Journals refuse Type 3 fonts, which matplotlib would write without being told."""

SMALL = {
    "font.size": 7.0, "axes.titlesize": 7.5, "xtick.labelsize": 6.5, "ytick.labelsize": 6.5, "axes.labelsize": 7.0,
    "lines.linewidth": 1.1, "lines.markersize": 3.2,
}  # fmt: skip
WIDTHS = {"column": 3.35, "page": 7.0}
"""Inches: what a figure may take of a page with two columns, and of a whole one."""
FEW_POINTS = 9
"""So many points of a line all have a marker."""
PANEL: dict[str | None, float] = {"column": 1.9, "page": 2.3}
"""Inches: how high a panel is at these widths."""
DOTS = 200  # an inch, of a PNG


def require_matplotlib() -> ModuleType:
    """The package matplotlib, or one line about what to install."""
    try:
        import matplotlib
        import matplotlib.figure
    except ModuleNotFoundError:
        raise InputError("figures need the package matplotlib: pip install 'bridle-oco[report]'") from None
    return matplotlib


@contextmanager
def styled(width: str | None = None) -> Iterator[None]:
    """The style of every figure, for as long as one is drawn or saved."""
    with require_matplotlib().rc_context(SETTINGS | (SMALL if width is not None else {})), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a label may hold any character; a box stands for it
        yield


@cache
def _figure_class() -> type[Figure]:
    from matplotlib.figure import Figure

    class JournalFigure(Figure):
        """A figure that is saved as it was drawn: in this style, with fonts that journals take."""

        def savefig(self, fname: Any, **options: Any) -> None:
            with styled():
                super().savefig(fname, **options)

        def _repr_html_(self) -> str:
            """The figure in a notebook, whether or not pyplot is there."""
            image = BytesIO()
            self.savefig(image, format="png", metadata={"Software": None})
            data = b64encode(image.getvalue()).decode()
            return f'<img alt="{escape(str(self.get_label()))}" style="max-width:100%" src="data:image/png;base64,{data}">'

    return JournalFigure


def sheet(parts: Sequence[Chart], width: str | None = None, heading: str | None = None) -> Figure:
    """Charts side by side, two in a row, under a heading, and the policies they hold below.

    `width` is "column" or "page", of a journal; without one it is for slides and screens. `heading` is the problem unless given.
    """
    if width is not None and width not in WIDTHS:
        raise InputError(f"width must be one of {', '.join(WIDTHS)}, not {width!r}")
    with styled(width):
        return _sheet(parts, width, heading)


def _sheet(parts: Sequence[Chart], width: str | None, heading: str | None) -> Figure:
    bars = all(isinstance(mark, Bar) for chart in parts for mark in chart.marks)
    handles, texts = ([], []) if bars else _handles(parts)
    columns = 1 if len(parts) == 1 or width == "column" else 2
    rows, per_line = -(-len(parts) // columns), 1 if width == "column" else 1 + columns
    lines = -(-len(texts) // per_line)
    height = 1.2 + 0.27 * max(3, *(len(chart.marks) for chart in parts)) if bars else 0.2 + PANEL.get(width, 3.3) * rows
    size = (WIDTHS.get(width or "", 9.6 if columns > 1 else 5.6), height + (0.21 if width is None else 0.17) * lines)
    made = _figure_class()(figsize=size, dpi=DOTS, layout="constrained")
    alone = len({(chart.problem, chart.horizon) for chart in parts}) == 1
    title = heading if heading is not None else _place(parts[0], 70) if alone else ""
    made.set_label(f"{title or 'comparison'}: {', '.join(dict.fromkeys(chart.title for chart in parts))}")
    if title:
        made.suptitle(title, x=0.012, ha="left", fontsize=11.5 if width is None else 8.5, fontweight="bold")
    grid = made.subplots(rows, columns, squeeze=False).ravel()
    for panel, chart in zip(grid, parts, strict=False):
        draw(panel, chart, title=chart.title if title else f"{_place(chart, 40)}: {chart.title}")
    for panel in grid[len(parts) :]:
        panel.set_visible(False)
    if texts:  # a label that begins with an underscore would be left out, so the texts are put in afterwards
        below: dict[str, Any] = {"loc": "outside lower left", "ncols": per_line, "fontsize": 8.0 if width is None else 6.5}
        drawn = made.legend(handles, ["-"] * len(handles), frameon=False, handlelength=2.6, **below)
        for text, words in zip(drawn.get_texts(), texts, strict=True):
            text.set_text(words)
    return made


def draw(panel: Axes, chart: Chart, title: str | None = None) -> None:
    """A chart on the axes of a figure."""
    panel.set_title(chart.title if title is None else title, loc="left")
    panel.set_xlabel(chart.x.title)
    panel.set_ylabel(chart.y.title)
    if not chart.marks:
        panel.text(0.5, 0.5, "\n".join(chart.notes), ha="center", va="center", transform=panel.transAxes, color=SOFT, wrap=True)
        panel.set_xticks([])
        panel.set_yticks([])
    elif bars := chart.of(Bar):
        _bars(panel, bars)
    else:
        _scale(panel, "x", across(chart))
        _scale(panel, "y", upwards(chart, chart.y.scale))
        _lines(panel, chart)
        _points(panel, chart)
        for guide in chart.guides:
            panel.plot(guide.x, guide.y, color=SOFT, linewidth=0.8, linestyle="dotted", zorder=1)
            panel.annotate(guide.text, (guide.x[0], guide.y[0]), (4, 4), textcoords="offset points", color=SOFT, fontsize=7)


def _scale(panel: Axes, which: str, scale: PageScale) -> None:
    """Give an axis its scale, its ends and its ticks, which a page has too."""
    ticks = scale.ticks(7)
    getattr(panel, f"set_{which}scale")(scale.kind, **({"linthresh": scale.threshold} if scale.kind == "symlog" else {}))
    getattr(panel, f"set_{which}lim")(*scale.ends())
    getattr(panel, f"set_{which}ticks")([tick.value for tick in ticks], [tick.text for tick in ticks])
    panel.minorticks_off()


def plot(parts: Sequence[Chart], ax: object = None, width: str | None = None, heading: str | None = None) -> Figure:
    """The charts as one figure (see `sheet`), or on axes of the caller's own."""
    require_matplotlib()
    return sheet(parts, width, heading) if ax is None else on_axes(ax, parts)


def on_axes(given: object, parts: Sequence[Chart]) -> Figure:
    """The charts on axes of the caller's own, one for each; the figure that they belong to."""
    panels: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    if len(panels) != len(parts) or not all(hasattr(panel, "set_xscale") for panel in panels):
        names = ", ".join(chart.title for chart in parts)
        raise InputError(f"ax must be {len(parts)} axes of matplotlib, for {names}; `what` says which of them are drawn")
    with styled():
        for panel, chart in zip(panels, parts, strict=True):
            draw(panel, chart)
            panel.legend(*_handles([chart]), frameon=False, fontsize=8)
    whole: Figure = panels[0].get_figure(root=True)
    return whole


def _place(chart: Chart, length: int) -> str:
    return shortened(chart.problem, length) + ("" if chart.horizon is None else f", T = {chart.horizon:,}")


def _handles(parts: Sequence[Chart]) -> tuple[list[Any], list[str]]:
    """What a legend shows, and what it says of it; in the trade-off the colour of each rank."""
    from matplotlib.lines import Line2D

    looks: dict[str, dict[str, Any]] = {
        "bound": {"color": SOFT, "linewidth": 1.0, "linestyle": DASHED}, "law": {"color": INK, "linewidth": 0.9, "linestyle": "dotted"},
    }  # fmt: skip
    changed: dict[str, Any] = {}
    if any(chart.of(Point) for chart in parts):
        changed = {"linestyle": "none", "marker": "o", "markersize": 8.0}
    elif not all(line.joined for chart in parts for line in chart.of(Line)):
        changed = {"linestyle": "none"}
    keys = legend(parts)
    handles = [Line2D([], [], **(looks[key.kind] if key.kind else _look(key.policy) | changed)) for key in keys]
    return handles, [key.text for key in keys]


def _look(policy: int) -> dict[str, Any]:
    own = style(policy)
    return {
        "color": LIGHT[own.colour], "linestyle": STROKES[own.dash], "marker": MARKERS[own.symbol], "markeredgecolor": "white",
        "markeredgewidth": 0.6,
    }  # fmt: skip


def _lines(panel: Axes, chart: Chart) -> None:
    """Medians, bands, bounds and fitted power laws."""
    marks = chart.of(Line)
    for above, mark in enumerate(marks):
        x, look = mark.x, _look(mark.policy)
        y, low, high, allowed = (np.array(values, dtype=float) for values in (mark.y, mark.low, mark.high, mark.bound))
        if chart.horizon is None:
            panel.errorbar(x, y, yerr=[y - low, high - y], fmt="none", ecolor=look["color"], elinewidth=0.9, capsize=2)
        else:
            panel.fill_between(x, low, high, color=look["color"], alpha=0.14, linewidth=0)
        panel.plot(x, allowed, color=look["color"], alpha=0.75, linewidth=1.0, linestyle=DASHED)
        few, every = len(x) <= FEW_POINTS or not mark.joined, max(1, len(x) // 9)
        # Lines may lie on each other: markers then take turns, or where they cannot, those below are larger.
        larger = min(1.6 * (len(marks) - 1 - above), 8.0) if few and mark.joined else 0.0
        size = require_matplotlib().rcParams["lines.markersize"] + larger
        drawn = look if mark.joined else look | {"linestyle": "none"}
        panel.plot(x, y, markevery=None if few else (above * every // len(marks), every), markersize=size, **drawn)
        if mark.law is not None:
            steps = mark.law.steps(17)
            panel.plot(steps, [mark.law.at(t) for t in steps], color=INK, linewidth=0.9, linestyle="dotted")
    if chart.y.scale == "symlog":
        panel.axhline(0.0, color=SOFT, linewidth=0.7)


def _points(panel: Axes, chart: Chart) -> None:
    """Medians with their ranks, and single seeds."""
    marks = chart.of(Point)
    if marks:
        panel.axhspan(-2.0 * chart.y.threshold, 0.0, color=SOFT, alpha=0.12, linewidth=0, zorder=0)
        panel.text(0.99, 0.03, "regret below zero counts as zero", ha="right", transform=panel.transAxes, color=SOFT, fontsize=7)
    for above, mark in enumerate(reversed(marks), start=3):  # the best on top, each with its own number
        look, height = _look(mark.policy), drawn_regret(mark.y, chart.y)
        seeds = [ccv for ccv, _ in mark.seeds], [drawn_regret(regret, chart.y) for _, regret in mark.seeds]
        panel.scatter(*seeds, color=look["color"], marker=look["marker"], s=14, alpha=0.45, linewidths=0, zorder=2)
        edge = INK if mark.pareto else "white"
        panel.plot([mark.x], [height], "o", color=look["color"], markersize=11, markeredgecolor=edge, markeredgewidth=1.4, zorder=above)
        number: dict[str, Any] = {"ha": "center", "va": "center", "color": "white", "fontsize": 7, "fontweight": "bold", "zorder": above}
        panel.annotate(str(mark.rank), (mark.x, height), **number)


def _bars(panel: Axes, marks: Sequence[Bar]) -> None:
    spans = [[mark.value - mark.low for mark in marks], [mark.high - mark.value for mark in marks]]
    colours = [LIGHT[style(mark.policy).colour] for mark in marks]
    values = [mark.value for mark in marks]
    error = {"ecolor": INK, "elinewidth": 0.8}
    drawn = panel.barh(range(len(marks)), values, height=0.62, color=colours, xerr=spans, error_kw=error)
    panel.bar_label(drawn, [f"{value:.3g}" for value in values], padding=5, fontsize=8)
    panel.set_yticks(range(len(marks)), [shortened(mark.label, 34) for mark in marks])
    panel.tick_params(axis="y", length=0, labelcolor=INK)
    panel.invert_yaxis()
    panel.grid(axis="y", visible=False)
    panel.margins(x=0.12)
