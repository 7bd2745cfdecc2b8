"""The figures of a comparison as files for papers and slides: PNG, SVG and PDF, the same from the same rows, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import chain, count
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bridle import storage
from bridle.comparisons import charts
from bridle.comparisons.rows import GameRow
from bridle.core import InputError
from bridle.showing.figures import require_matplotlib, sheet, styled
from bridle.showing.marks import Chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOGETHER = {"regret": "curves", "ccv": "curves", "growth-regret": "growth", "growth-ccv": "growth"}
"""Charts that share a file, and its name."""
FORMATS = ("png", "svg")
"""What is written unless told; PDF is the third."""


def write_figures(
    rows: Iterable[GameRow], folder: str | PathLike[str], formats: Sequence[str] = FORMATS, width: str | None = None
) -> list[Path]:
    """Write every figure to the folder, which is made where it is missing; the paths, in order.

    For each problem and horizon: `NAME-T1000-curves` (regret and CCV against t), `-tradeoff` and `-pace`; for each problem with several
    horizons `NAME-growth`. Each in every one of the `formats`, png, svg and pdf. `width` is that of a "column" or a "page" of a journal.
    """
    require_matplotlib()
    games = list(rows)
    if not games:
        raise InputError("rows must hold at least one game for figures, not none")
    home = Path(fspath(folder))
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"cannot write to folder {home}: {problem.strerror or problem}") from None
    written: list[Path] = []
    sheets: dict[str, list[Chart]] = {}
    for chart in charts.all_charts(games):  # regret stands beside CCV
        size = "" if chart.horizon is None else f"-T{chart.horizon}"
        sheets.setdefault(f"{chart.problem[:80]}{size}-{TOGETHER.get(chart.kind, chart.kind)}", []).append(chart)
    stems: set[str] = set()
    for name, parts in sheets.items():
        plain = re.sub(r"[^a-zA-Z0-9=._-]+", "-", name).strip("-.")[:100] or "figure"  # safe everywhere, and none twice
        stem = next(each for each in chain([plain], (f"{plain}-{n}" for n in count(2))) if each not in stems)
        stems.add(stem)
        drawn = sheet(parts, width)
        with styled(width):
            for kind in formats:
                written.append(save_figure(drawn, home / f"{stem}.{kind}"))
                drawn.set_layout_engine("none")  # drawing it has settled what goes where, which takes a third of the time
    return written


def save_figure(drawn: Figure, path: Path) -> Path:
    """The figure in a file, without the date and the version that would make it differ from day to day."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    image, canvas = BytesIO(), cast(Any, {".png": FigureCanvasAgg, ".pdf": FigureCanvasPdf}.get(path.suffix, FigureCanvasSVG))(drawn)
    if path.suffix == ".png":  # not by `savefig`, which draws everything twice
        canvas.print_png(image, metadata={"Software": None})
    elif path.suffix == ".pdf":
        canvas.print_pdf(image, metadata={"CreationDate": None, "Producer": None, "Creator": None})
    else:
        canvas.print_svg(image, metadata={"Date": None})
    with storage.replacing(path) as file:
        file.write(image.getvalue())
    return path
