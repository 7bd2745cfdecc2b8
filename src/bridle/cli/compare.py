"""The command `bridle compare`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from bridle import validate
from bridle.cli import output
from bridle.core import InputError, Interrupted


def compare(
    problems: Annotated[
        list[str],
        typer.Argument(metavar="PROBLEM...", help="Names from `bridle problems`, as in halfspaces or halfspaces:dim=5, or files."),
    ],
    policies: Annotated[
        str | None, typer.Option(metavar="A,B", help="Names from `bridle policies`, as in ogd or sinha2024:preset=practice; or all.")
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
    engine: Annotated[str, typer.Option(help="python, or jax for long horizons.")] = "python",
    jobs: Annotated[int | None, typer.Option(metavar="N", help="How many processes; one for each core unless given.")] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on the Dask cluster whose scheduler is there, or has written that file.")
    ] = None,
    figures: Annotated[bool, typer.Option("--figures", help="Also write the figures as PNG and SVG.")] = False,
    json_file: output.Json = None,
) -> None:
    """Play policies on problems, each against the same streams: a ranked table, results.parquet and report.html.

    All combinations of problems, policies, horizons, seeds and settings are played, in parallel. Interrupted, it goes on where it stopped
    when it is called again with the same --out.
    """
    from bridle.compare import run as comparison
    from bridle.compare.executors import executor, require
    from bridle.compare.spec import POLICIES, grid

    for package in ("joblib", "threadpoolctl", "pyarrow", "plotly", *(["matplotlib"] if figures else [])):
        require(package, "report")
    if dask is not None:
        require("distributed", "dask")
    if not out.strip():
        raise InputError("--out must name a folder, not an empty text")
    jobs = None if jobs is None else validate.whole("jobs", jobs)
    chosen = POLICIES if policies is None else _listed("--policies", policies)
    lengths = [validate.whole("horizon", validate.from_text(text)) for text in _listed("--horizons", horizons)]
    asked = grid(problems, chosen, lengths, seeds, _sweep(settings or []), engine)
    store = comparison.open_store(asked, out)
    known = sum(cell.key in store for cell in asked.cells)
    try:
        with _progress() as progress:
            rows = comparison.run(asked, store, lambda: executor(jobs, dask), progress)
        notes = _write(rows, Path(out), figures)
    except KeyboardInterrupt:
        store.refresh()  # what was being written when the interruption came is there, too
        done = sum(cell.key in store for cell in asked.cells)
        raise Interrupted(
            f"interrupted; {done} of {len(asked.cells)} cells are done and kept in {out}; to go on: {output.command()}"
        ) from None
    if known:
        notes.append(f"{known} of {len(rows)} cells were there already")
    _show(rows, notes, json_file)


def _listed(option: str, text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"{option} must name at least one, not {text!r}")
    return parts


def _sweep(given: list[str]) -> dict[str, list[Any]]:
    """The values of each parameter that is swept."""
    sweep: dict[str, list[Any]] = {}
    for text in given:
        name, sign, values = text.partition("=")
        if not sign or not name or not values:
            raise InputError(f"--set takes NAME=VALUE or NAME=V1,V2, not {text!r}")
        if name in sweep:
            raise InputError(f"--set gives {name} twice: put its values in one, as in {name}=1,2")
        sweep[name] = [validate.from_text(value) for value in values.split(",")]
    return sweep


@contextmanager
def _progress() -> Iterator[Any]:
    """A progress bar with the time left, on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = ("playing", BarColumn(), TextColumn("{task.fields[cells]} cells"), TimeElapsedColumn(), "left", TimeRemainingColumn())
    with Progress(
        *(TextColumn(part) if isinstance(part, str) else part for part in columns), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("", total=None, cells="")

        def tell(done: float, total: float, cells: int, of: int) -> None:
            bar.update(task, completed=done, total=total, cells=f"{cells} of {of}")

        yield tell


def _write(rows: list[dict[str, Any]], out: Path, figures: bool) -> list[str]:
    """The files of a comparison, and where they are."""
    from bridle.compare import html_report
    from bridle.compare.run import write_table

    write_table(rows, out / "results.parquet")
    notes = [f"rows: {out / 'results.parquet'}"]
    if figures:
        from bridle.compare import static_figures

        notes.append(f"figures: {len(static_figures.write(rows, out / 'figures'))} files in {out / 'figures'}")
    return [*notes, f"report: {html_report.write(rows, out / 'report.html', command=output.command())}"]


def _show(rows: list[dict[str, Any]], notes: list[str], json_file: str | None) -> None:
    from bridle.compare import analysis, tables

    ranked = analysis.ranking(rows)
    output.show(tables.ranking_table(ranked), [*tables.ranking_notes(ranked, rows), *notes], rows, json_file)
