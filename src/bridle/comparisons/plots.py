"""Which charts of a comparison are drawn, and their files for papers and slides: PNG, SVG and PDF, the same from the same rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import chain, count
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from bridle import storage, validate
from bridle.comparisons import charts
from bridle.comparisons.rows import GameRow, grouped, horizon_of, label_engines, problem_of
from bridle.core import InputError
from bridle.problems import problem_facts
from bridle.showing.figures import require_matplotlib, sheet, styled
from bridle.showing.marks import Axis, Chart, Quantity
from bridle.showing.marks import chosen as quantities_of
from bridle.storage import StrPath

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AGAINST = ("round", "horizon")


def chosen(rows: Sequence[GameRow], problem: str | None, horizon: int | None) -> list[GameRow]:
    """The games on this problem and of this horizon; None stands for all."""
    if not rows:
        raise InputError("there are no games to draw")
    places: dict[str, list[object]] = {"problem": [*grouped(rows, problem_of)], "horizon": [*grouped(rows, horizon_of)]}
    for name, value in (("problem", problem), ("horizon", horizon)):
        if value is not None and value not in places[name]:
            raise validate.refused(f"{name} must be one of {', '.join(map(str, places[name]))}", value)
    return [row for row in rows if problem in (None, problem_of(row)) and horizon in (None, horizon_of(row))]


def curves(rows: Sequence[GameRow], what: str | Sequence[str], against: str, problem: str | None, horizon: int | None) -> list[Chart]:
    """Regret and CCV of each problem: against t at its longest horizon, or at the one named; or final values against T."""
    validate.one_of("against", against, AGAINST)
    names = quantities_of(what)
    games = chosen(rows, problem, horizon)
    kinds: list[str] = [*names] if against == "round" else [f"growth-{name}" for name in names]
    longest = {place: max(map(horizon_of, own)) for place, own in grouped(games, problem_of).items()}
    found = [
        chart for chart in charts.all_charts(games)
        if chart.kind in kinds and (chart.horizon is None or chart.horizon == longest[chart.problem])
    ]  # fmt: skip
    if not found:
        raise InputError("against='horizon' needs games of several horizons on one problem; these have one each")
    return sorted(found, key=lambda chart: (list(longest).index(chart.problem), kinds.index(chart.kind)))


def sweep(rows: Sequence[GameRow], parameter: str, what: str | Sequence[str], problem: str | None, horizon: int | None) -> list[Chart]:
    """Final regret and CCV against a parameter that was swept, a line for each policy; medians over seeds, bands and bounds."""
    names = quantities_of(what)
    games = label_engines(chosen(rows, problem, horizon))
    places = grouped(games, lambda row: _without(row, "problem", parameter))
    drawn: list[Chart] = []
    for place, own in places.items():
        longest = max(map(horizon_of, own))
        played = [row for row in own if horizon_of(row) == longest and not row.get("does_not_apply")]
        if any(setting_of(row, parameter) is not None for row in played):
            drawn += [_sweep_chart(name, parameter, place, longest, played) for name in names]
    if not drawn:
        swept = sorted({key for row in games for text in (row["settings"], row["problem_settings"]) for key in json.loads(text)})
        raise validate.refused(f"parameter must be one that was swept ({', '.join(swept) or 'none was'})", parameter)
    return drawn


def setting_of(row: GameRow, parameter: str) -> float | None:
    """The value of a numeric parameter in a game, of its policy or of its problem; None where neither has it."""
    told = {**json.loads(row["problem_settings"]), **json.loads(row["settings"])}
    if parameter not in told:
        facts = problem_facts(row["problem"]).parameters if "." not in row["problem"] else []
        told |= {each.name: each.default for each in facts if each.name == parameter}
    value = told.get(parameter)
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        if value is not None:
            raise InputError(f"parameter must have numbers as values to be an axis; {parameter} is {validate.show(value)} in a game")
        return None
    return float(value)


def _without(row: GameRow, kind: Literal["problem", "policy"], parameter: str) -> str:
    """The name of a row's problem or policy with its settings, but for one."""
    name, settings = (row["problem"], row["problem_settings"]) if kind == "problem" else (row["policy"], row["settings"])
    return " ".join([name, *(f"{key}={value}" for key, value in json.loads(settings).items() if key != parameter)])


def _sweep_chart(what: Quantity, parameter: str, problem: str, horizon: int, rows: list[GameRow]) -> Chart:
    """The chart; a policy that does not have the parameter is a level line, beside which the others are read."""
    lines = []
    ends = sorted({value for row in rows if (value := setting_of(row, parameter)) is not None})
    for place, (label, own) in enumerate(grouped(rows, lambda row: _without(row, "policy", parameter)).items()):
        at = grouped(own, lambda row: setting_of(row, parameter))
        runs = [(x, games) for x, games in at.items() if x is not None] or [(x, own) for x in ends]
        lines.append(charts.final_line(what, place, f"{label} (has no {parameter})" if None in at else label, runs))
    wide = min(ends) > 0.0 and max(ends) >= 8.0 * min(ends)
    x = Axis(parameter, "log" if wide else "linear")
    return charts.final_chart(f"sweep-{what}", what, problem, horizon, parameter, x, [line for line in lines if line is not None])


# --- files --------------------------------------------------------------------------------------------------------------------------

TOGETHER = {"regret": "curves", "ccv": "curves", "growth-regret": "growth", "growth-ccv": "growth"}
"""Charts that share a file, and its name."""
FORMATS = ("png", "svg")
"""What is written unless told; PDF is the third."""


def write_figures(rows: Iterable[GameRow], folder: StrPath, formats: Sequence[str] = FORMATS, width: str | None = None) -> list[Path]:
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
