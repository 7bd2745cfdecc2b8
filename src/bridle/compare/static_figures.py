"""The figures of a comparison as files for papers and slides: PNG and SVG, the same from the same rows, byte for byte."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bridle import storage
from bridle.compare import charts
from bridle.compare.charts import Axis, Bar, Chart, Line, Point
from bridle.compare.rows import GameRow
from bridle.compare.text import number
from bridle.core import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = dict(zip(charts.SYMBOLS, "osD^vp*h", strict=True))
STROKES: dict[str, Any] = {"solid": "solid", "dot": (0, (1, 1.4)), "longdashdot": (0, (7, 2, 1, 2))}
INK, SOFT, GRID = "#1b1e24", "#5c6370", "#e6e6e2"
SETTINGS = {
    "svg.hashsalt": "bridle", "font.family": "DejaVu Sans", "font.size": 9.0, "text.color": INK, "axes.labelcolor": SOFT,
    "axes.edgecolor": "#c9cac5", "axes.titlesize": 10.0, "axes.titleweight": "bold", "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True, "grid.color": GRID, "grid.linewidth": 0.7, "xtick.color": SOFT,
    "ytick.color": SOFT, "xtick.labelsize": 8.0, "ytick.labelsize": 8.0, "axes.labelsize": 8.5, "text.parse_math": False,
}  # fmt: skip
DOTS = 200  # an inch, of a PNG


def write_figures(rows: Iterable[GameRow], folder: str | PathLike[str]) -> list[Path]:
    """Write every figure to the folder, which is made where it is missing; the paths, in order.

    For each problem and horizon: `NAME-T1000-curves` (regret and CCV against t), `-tradeoff` and `-pace`; for each problem with several
    horizons `NAME-growth`. Each as .png and .svg.
    """
    matplotlib = require_matplotlib()
    games = list(rows)
    if not games:
        raise InputError("rows must hold at least one game for figures, not none")
    home = Path(fspath(folder))
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"cannot write to folder {home}: {problem.strerror or problem}") from None
    written: list[Path] = []
    names = _Names()
    with matplotlib.rc_context(SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a label may hold any character; a box stands for it
        for name, parts in _sheets(charts.all_charts(games)).items():
            sheet, stem = _sheet(parts), names.of(name)
            written.append(save_figure(sheet, home / f"{stem}.png"))
            sheet.set_layout_engine("none")  # drawing it has settled what goes where, which takes a third of the time
            written.append(save_figure(sheet, home / f"{stem}.svg"))
    return written


def require_matplotlib() -> ModuleType:
    """The package matplotlib, or one line about what to install."""
    try:
        import matplotlib
        import matplotlib.figure
    except ModuleNotFoundError:
        raise InputError("figures need the package matplotlib: pip install 'bridle[report]'") from None
    return matplotlib


class _Names:
    """File names from what people called things: safe everywhere, none twice."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def of(self, name: str) -> str:
        plain = re.sub(r"[^a-zA-Z0-9=._-]+", "-", name).strip("-.")[:100] or "figure"
        stem = next(stem for n in range(len(self.taken) + 1) if (stem := plain if n == 0 else f"{plain}-{n + 1}") not in self.taken)
        self.taken.add(stem)
        return stem


def _sheets(figures: list[Chart]) -> dict[str, list[Chart]]:
    """The charts that share a file, under its name: regret stands beside CCV."""
    sheets: dict[str, list[Chart]] = {}
    together = {"regret": "curves", "ccv": "curves", "growth-regret": "growth", "growth-ccv": "growth"}
    for chart in figures:
        size = "" if chart.horizon is None else f"-T{chart.horizon}"
        sheets.setdefault(f"{chart.problem[:80]}{size}-{together.get(chart.kind, chart.kind)}", []).append(chart)
    return sheets


def save_figure(sheet: Figure, path: Path) -> Path:
    """The figure in a file, without the date and the version that would make it differ from day to day."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    image = BytesIO()
    png: Any = FigureCanvasAgg
    svg: Any = FigureCanvasSVG
    if path.suffix == ".png":  # not by `savefig`, which draws everything twice
        png(sheet).print_png(image, metadata={"Software": None})
    else:
        svg(sheet).print_svg(image, metadata={"Date": None})
    with storage.replacing(path) as file:
        file.write(image.getvalue())
    return path


def _sheet(parts: list[Chart]) -> Figure:
    """One or two charts side by side under a heading, and the policies they hold below."""
    from matplotlib.figure import Figure

    bars = parts[0].kind == "pace"
    shown = sorted({(mark.policy, mark.label) for chart in parts for mark in chart.marks})
    lines = 0 if bars else -(-len(shown) // (3 if len(parts) > 1 else 2))
    height = (1.2 + 0.27 * max(len(shown), 3)) if bars else 3.5 + 0.21 * lines
    sheet = Figure(figsize=(9.6 if len(parts) > 1 else 5.6, height), dpi=DOTS, layout="constrained")
    horizon = "" if parts[0].horizon is None else f", T = {parts[0].horizon:,}"
    sheet.suptitle(_shortened(parts[0].problem, 70) + horizon, x=0.012, ha="left", fontsize=11.5, fontweight="bold")
    for panel, chart in zip(sheet.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        panel.set_title(chart.title, loc="left")
        panel.set_xlabel(chart.x.title)
        panel.set_ylabel(chart.y.title)
        if not chart.marks:
            panel.text(0.5, 0.5, "\n".join(chart.notes), ha="center", va="center", transform=panel.transAxes, color=SOFT, wrap=True)
            panel.set_xticks([])
            panel.set_yticks([])
            continue
        (_points if chart.kind == "tradeoff" else _bars if bars else _lines)(panel, chart)
    if not bars and shown:
        _legend(sheet, parts, shown, 3 if len(parts) > 1 else 2)
    return sheet


def _legend(sheet: Figure, parts: list[Chart], shown: list[tuple[int, str]], columns: int) -> None:
    """Each policy's line and marker, its label and the fitted exponents; in the trade-off its colour and rank."""
    from matplotlib.lines import Line2D

    ranks = {mark.policy: mark.rank for chart in parts for mark in chart.marks if isinstance(mark, Point)}
    lines = [(chart, mark) for chart in parts for mark in chart.marks if isinstance(mark, Line)]
    handles, texts = [], []
    for policy, label in sorted(shown, key=lambda pair: ranks.get(pair[0], 0)):
        look = _look(policy)
        handles.append(Line2D([], [], **look | ({"linestyle": "none", "marker": "o", "markersize": 8.0} if ranks else {})))
        powers = [
            f"{'CCV' if chart.kind.endswith('ccv') else 'regret'} {'T' if chart.horizon is None else 't'}^{mark.law.exponent:.2f}"
            for chart, mark in lines if mark.policy == policy and mark.law is not None
        ]  # fmt: skip
        rank = f"{ranks[policy]}  " if ranks else ""
        texts.append(rank + _shortened(label, 34) + (f":  {', '.join(powers)}" if powers else ""))
    if any(value is not None for _, mark in lines for value in mark.bound):
        handles.append(Line2D([], [], color=SOFT, linewidth=1.0, linestyle=(0, (5, 3))))
        texts.append("what the theorem allows")
    if any(mark.law for _, mark in lines):
        handles.append(Line2D([], [], color=INK, linewidth=0.9, linestyle="dotted"))
        texts.append("fitted power law")
    # A label that begins with an underscore would be left out, so the texts are put in afterwards.
    drawn = sheet.legend(
        handles, ["-"] * len(handles), loc="outside lower left", ncols=columns, frameon=False, fontsize=8, handlelength=2.6
    )
    for text, words in zip(drawn.get_texts(), texts, strict=True):
        text.set_text(words)


def _look(policy: int) -> dict[str, Any]:
    style = charts.style(policy)
    return {
        "color": charts.LIGHT[style.colour], "linestyle": STROKES[style.dash], "marker": MARKERS[style.symbol], "markersize": 5.0,
        "markeredgecolor": "white", "markeredgewidth": 0.6, "linewidth": 1.7,
    }  # fmt: skip


def _lines(panel: Axes, chart: Chart) -> None:
    """Medians, bands, bounds and fitted power laws; the frame is that of medians and bounds."""
    marks = [mark for mark in chart.marks if isinstance(mark, Line)]
    growth = chart.horizon is None
    sizable = [value for mark in marks for t, value in zip(mark.x, mark.y, strict=True) if value is not None and abs(value) > 1e-9 * t]
    frame = sizable + [value for mark in marks for value in mark.bound if value is not None]  # what is rounding needs no room
    scale_axis(panel, "y", chart.y, frame)
    scale_axis(panel, "x", chart.x, [float(t) for mark in marks for t in mark.x])
    for mark in marks:
        look = _look(mark.policy)
        x, y = mark.x, [float("nan") if value is None else value for value in mark.y]
        low, high = ([float("nan") if value is None else value for value in edge] for edge in (mark.low, mark.high))
        if growth:
            spans = [[at - a for at, a in zip(y, low, strict=True)], [b - at for at, b in zip(y, high, strict=True)]]
            panel.errorbar(x, y, yerr=spans, fmt="none", ecolor=look["color"], elinewidth=0.9, capsize=2)
        else:
            panel.fill_between(x, low, high, color=look["color"], alpha=0.14, linewidth=0)
        allowed = [float("nan") if value is None else value for value in mark.bound]
        panel.plot(x, allowed, color=look["color"], alpha=0.75, linewidth=1.0, linestyle=(0, (5, 3)))
        every = None if growth else max(1, len(x) // 9)
        panel.plot(x, y, markevery=every, **look)
        if mark.law is not None:
            steps = [mark.law.first * (mark.law.last / mark.law.first) ** (i / 16) for i in range(17)]
            panel.plot(steps, [mark.law.at(t) for t in steps], color=INK, linewidth=0.9, linestyle="dotted")
    if chart.y.scale == "symlog":
        panel.axhline(0.0, color=SOFT, linewidth=0.7)


def _points(panel: Axes, chart: Chart) -> None:
    """Medians with their ranks, single seeds, and corners of equal score."""
    marks = [mark for mark in chart.marks if isinstance(mark, Point)]
    below, top = chart.y.threshold, (chart.x.top or 1.0, chart.y.top or 1.0)
    scale_axis(panel, "x", chart.x, [top[0]])
    scale_axis(panel, "y", chart.y, [top[1]])
    panel.set_xlim(-0.4 * chart.x.threshold, 2.0 * top[0])
    panel.set_ylim(-below, 2.0 * top[1])
    panel.axhspan(-below, 0.0, color=SOFT, alpha=0.12, linewidth=0, zorder=0)
    panel.text(0.99, 0.03, "regret below zero counts as zero", ha="right", transform=panel.transAxes, color=SOFT, fontsize=7)
    for share in (0.001, 0.01, 0.1, 1.0):
        x, y = (share * end for end in top)
        panel.plot([x, x, 0.0], [0.0, y, y], color=SOFT, linewidth=0.7, linestyle="dotted", zorder=1)
    for above, mark in enumerate(reversed(marks), start=3):  # the best on top, each with its own number
        look = _look(mark.policy)
        seeds = {"color": look["color"], "marker": look["marker"], "s": 14, "alpha": 0.45, "linewidths": 0}
        panel.scatter([pair[0] for pair in mark.seeds], [charts.drawn_regret(pair[1], chart.y) for pair in mark.seeds], zorder=2, **seeds)
        height = charts.drawn_regret(mark.y, chart.y)
        edge = INK if mark.pareto else "white"
        panel.plot([mark.x], [height], "o", color=look["color"], markersize=11, markeredgecolor=edge, markeredgewidth=1.4, zorder=above)
        panel.annotate(
            str(mark.rank), (mark.x, height), ha="center", va="center", color="white", fontsize=7, fontweight="bold", zorder=above
        )


def _bars(panel: Axes, chart: Chart) -> None:
    marks = [mark for mark in chart.marks if isinstance(mark, Bar)]
    spans = [[mark.value - mark.low for mark in marks], [mark.high - mark.value for mark in marks]]
    colours = [charts.LIGHT[charts.style(mark.policy).colour] for mark in marks]
    drawn = panel.barh(
        range(len(marks)),
        [mark.value for mark in marks],
        height=0.62,
        color=colours,
        xerr=spans,
        error_kw={"ecolor": INK, "elinewidth": 0.8},
    )
    panel.bar_label(drawn, [f"{mark.value:.3g}" for mark in marks], padding=5, fontsize=8)
    panel.set_yticks(range(len(marks)), [_shortened(mark.label, 34) for mark in marks])
    panel.tick_params(axis="y", length=0, labelcolor=INK)
    panel.invert_yaxis()
    panel.grid(axis="y", visible=False)
    panel.margins(x=0.12)


def scale_axis(panel: Axes, which: str, axis: Axis, values: list[float]) -> None:
    """The axis's scale, and a frame that holds the values; a logarithmic one reaches at most six decades down."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    set_scale, set_limits = getattr(panel, f"set_{which}scale"), getattr(panel, f"set_{which}lim")
    if axis.scale == "linear":
        return
    if axis.scale == "symlog":
        set_scale("symlog", linthresh=axis.threshold)
        top, bottom = max(0.0, *values), min(0.0, *values)
        set_limits(bottom * 2.0 if bottom < 0.0 else -0.3 * axis.threshold, top * 2.0 if top > 0.0 else 0.3 * axis.threshold)
    else:
        set_scale("log")
        above = [value for value in values if value > 0.0]
        low, high = max(min(above), max(above) * 1e-6), max(above)
        room = max(1.8 / (high / low) ** 0.5, 1.15 if which == "x" and len(set(values)) > 2 else 1.6)
        set_limits(low / room, high * room)
        if high / low * room**2 < 30.0:
            panel_axis = getattr(panel, f"{which}axis")
            panel_axis.set_minor_formatter(FuncFormatter(lambda value, _: number(value, "axis") if f"{value:e}"[0] in "25" else ""))
            panel_axis.set_major_formatter(FuncFormatter(lambda value, _: number(value, "axis")))
            return
    panel_axis = getattr(panel, f"{which}axis")
    panel_axis.set_minor_formatter(NullFormatter())
    panel_axis.set_major_formatter(FuncFormatter(lambda value, _: number(value, "axis")))


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
