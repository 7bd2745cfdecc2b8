"""The figures of a comparison as files for papers and slides: PNG, SVG and PDF, the same from the same rows, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridle import storage
from bridle.compare import charts
from bridle.compare.rows import GameRow
from bridle.core import InputError
from bridle.showing.figures import require_matplotlib, sheet, styled
from bridle.showing.marks import Chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    names = _Names()
    for name, parts in _sheets(charts.all_charts(games)).items():
        drawn, stem = sheet(parts, width), names.of(name)
        with styled(width):
            for kind in formats:
                written.append(save_figure(drawn, home / f"{stem}.{kind}"))
                drawn.set_layout_engine("none")  # drawing it has settled what goes where, which takes a third of the time
    return written


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


def save_figure(drawn: Figure, path: Path) -> Path:
    """The figure in a file, without the date and the version that would make it differ from day to day."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    image = BytesIO()
    png: Any = FigureCanvasAgg
    svg: Any = FigureCanvasSVG
    pdf: Any = FigureCanvasPdf
    if path.suffix == ".png":  # not by `savefig`, which draws everything twice
        png(drawn).print_png(image, metadata={"Software": None})
    elif path.suffix == ".pdf":
        pdf(drawn).print_pdf(image, metadata={"CreationDate": None, "Producer": None, "Creator": None})
    else:
        svg(drawn).print_svg(image, metadata={"Date": None})
    with storage.replacing(path) as file:
        file.write(image.getvalue())
    return path
