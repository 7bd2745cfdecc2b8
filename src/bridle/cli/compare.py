"""The command `bridle compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridle import validate
from bridle.cli import output
from bridle.core import InputError, Interrupted
from bridle.engines import kept_code

if TYPE_CHECKING:
    from bridle.comparisons.comparison import Comparison
    from bridle.comparisons.rows import GameRow


def compare(
    problems: Annotated[
        list[str],
        typer.Argument(metavar="PROBLEM...", help="Names from `bridle problems`, as in halfspaces or halfspaces:dim=5, or files."),
    ],
    policies: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Names from `bridle policies`, as in ogd or sinha2024:preset=practice; or all. Your own: ./mine.py, ./mine.py:name, "
            "module:name, each with settings as in ./mine.py:name:step=0.1.",
        ),
    ] = None,
    horizons: Annotated[str, typer.Option(metavar="T1,T2", help="How many rounds.")] = "1000,4000",
    seeds: Annotated[int, typer.Option(metavar="N", help="How many seeds: 0 to N - 1.")] = 3,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="The folder for the results; what it has already is not played again.")
    ] = "comparison",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=V1,V2", help="Values of a parameter, for every policy and problem that has it; may be repeated."
        ),
    ] = None,
    engine: output.EngineOption = "python",
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many processes. Default: this one, and one for each core once seconds of work are left."),
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on the Dask cluster whose scheduler is there, or has written that file.")
    ] = None,
    figures: Annotated[bool, typer.Option("--figures", help="Also write the figures as PNG and SVG, to DIR/figures.")] = False,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Also write the figures as PDF, with fonts that journals take, to DIR/figures.")
    ] = False,
    width: Annotated[
        str | None, typer.Option(metavar="column|page", help="Make the figures as wide as a journal's column or page.")
    ] = None,
    latex: Annotated[str | None, typer.Option(metavar="FILE", help="Also write the ranking as a LaTeX table (booktabs).")] = None,
    json_file: output.JsonOption = None,
) -> None:
    """Play policies on problems, and rank them.

    All combinations of problems, policies, horizons, seeds and settings are played, in parallel, each policy against the same streams.
    You get a ranked table, results.parquet and report.html. If you interrupt it, call it again with the same --out: it goes on where it
    stopped.
    """
    from bridle.comparisons import plots
    from bridle.comparisons import run as comparison
    from bridle.comparisons.comparison import Comparison
    from bridle.comparisons.executors import executor
    from bridle.comparisons.spec import POLICIES, grid
    from bridle.showing.figures import WIDTHS

    for package in ("joblib", "threadpoolctl", "pyarrow", *(["matplotlib"] if figures or pdf else [])):
        validate.require_package(package, "report")
    if dask is not None:
        validate.require_package("distributed", "dask")
    if width is not None:
        validate.one_of("--width", width, WIDTHS)
        if not (figures or pdf):
            raise InputError("--width is for figures: give --figures or --pdf too")
    if latex is not None and not latex.strip():
        raise InputError("--latex must name a file, not an empty text")
    if not out.strip():
        raise InputError("--out must name a folder, not an empty text")
    jobs = None if jobs is None else validate.whole("jobs", jobs)
    names = POLICIES if policies is None else _parts("--policies", policies)
    lengths = [validate.whole("horizon", validate.from_text(text)) for text in _parts("--horizons", horizons)]
    plan = grid(problems, names, lengths, seeds, _sweep(settings or []), engine)
    if plan.cells and plan.cells[0].engine == "compiled":
        with output.quiet():
            kept_code.folder()  # here, since workers say nothing of it
    store = comparison.open_store(plan, out)
    there = sum(cell.key in store for cell in plan.cells)
    try:
        with output.progress("playing") as tell:
            progress = None if tell is None else lambda done, total, n, of: tell(done, total, f"playing {n} of {of} cells")
            rows = comparison.run(plan, store, lambda: executor(jobs, dask), progress)
        formats = [*(plots.FORMATS if figures else ()), *(["pdf"] if pdf else [])]
        notes = _write_files(Comparison(rows), Path(out), formats, width, latex)
    except KeyboardInterrupt:
        store.refresh()  # what was being written when the interruption came is there, too
        done = sum(cell.key in store for cell in plan.cells)
        raise Interrupted(
            f"interrupted; {done} of {len(plan.cells)} cells are done and kept in {out}; to go on: {output.command()}"
        ) from None
    if there:
        notes.append(f"{there} of {len(rows)} cells were there already")
    _show(rows, notes, json_file)


def _parts(option: str, text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"{option} must name at least one, not {text!r}")
    return parts


def _sweep(settings: list[str]) -> dict[str, list[int | float | str]]:
    """The values of each parameter that is swept."""
    sweep: dict[str, list[int | float | str]] = {}
    for text in settings:
        name, sign, values = text.partition("=")
        if not sign or not name or not values:
            raise InputError(f"--set takes NAME=VALUE or NAME=V1,V2, not {text!r}")
        if name in sweep:
            raise InputError(f"--set gives {name} twice: put its values in one, as in {name}=1,2")
        sweep[name] = [validate.from_text(value) for value in values.split(",")]
    return sweep


def _write_files(rows: Comparison, out: Path, formats: list[str], width: str | None, latex: str | None) -> list[str]:
    """The files of a comparison, and where they are."""
    from bridle.comparisons import html_report, plots

    notes = [f"rows: {rows.save(out)}"]
    if formats:
        written = plots.write_figures(rows, out / "figures", formats, width)
        notes.append(f"figures: {len(written)} files in {out / 'figures'}")
    if latex is not None:
        rows.to_latex(latex)
        notes.append(f"table: {latex}")
    return [*notes, f"report: {html_report.write_report(rows, out / 'report.html', command=output.command())}"]


def _show(rows: list[GameRow], notes: list[str], json_file: str | None) -> None:
    from bridle.comparisons import analysis, tables

    ranked = analysis.ranking(rows)
    output.show(tables.terminal_ranking(ranked), [*tables.ranking_notes(ranked, rows), *notes], rows, json_file)
