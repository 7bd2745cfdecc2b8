"""What both protocols of the experiment share: packages, the engine, the folder, files for programs, and the page."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from bridle import engines, storage, validate
from bridle.comparisons.html_page import fact_list, figure, render_page, section, write_page
from bridle.core import InputError, Interrupted, Unavailable
from bridle.fraud import Facts, FraudProgress
from bridle.fraud.baselines import RowProgress
from bridle.showing import svg
from bridle.showing.marks import Chart
from bridle.showing.tables import TextTable, page_row, page_table


class Report(NamedTuple):
    """What a page of the experiment holds: all of it plain text but for the charts."""

    title: str
    lead: str
    ran: Mapping[str, str]
    command: str
    takeaway: str
    notes: Sequence[str]
    charts: Iterable[Chart]
    table: TextTable
    reading: Mapping[str, str]


def write_fraud_page(path: Path, report: Report) -> Path:
    """Write the page: the whole new one, or the old one stays."""
    drawn = "".join(figure(chart, legend=True) for chart in report.charts)
    said = [f'<p class="takeaway">{escape(report.takeaway)}</p>', *(f'<p class="note">{escape(note)}</p>' for note in report.notes)]
    words = "".join(f"<div><h4>{escape(word)}</h4><p>{escape(text)}</p></div>" for word, text in report.reading.items())
    sections = [
        svg.definitions(),
        section("run", "What was run", fact_list(report.ran, command=report.command)),
        section("results", "Results", *said, f'<div class="charts">{drawn}</div>', table(report.table)),
        section("reading", "How to read this page", f'<div class="reading">{words}</div>'),
    ]
    return write_page(path, render_page("fraud", report.title, report.lead, "\n".join(sections)))


def table(shown: TextTable) -> str:
    """A table of texts, the first column its names; its title is its caption."""
    rows = (page_row(escape(row[0]), row[1:], len(shown.columns) - 1) for row in shown.rows)
    return page_table(shown.title, shown.columns, rows, escape(shown.title))


# --- before and after ---------------------------------------------------------------------------------------------------------------


def check_packages() -> None:
    """Complain about what is not installed before anything runs."""
    for package in ("matplotlib", "rich"):
        validate.require_package(package, "report")


def choose_engine(name: str | None) -> str:
    """The engine of this name, else the fastest that is installed; one that is not is refused before the data are read."""
    if name is None:
        name = "python" if importlib.util.find_spec("jax") is None else "compiled" if importlib.util.find_spec("llvmlite") else "jax"
    engines.load(name)
    return engines.check_name(name)


def results_folder(name: str) -> Path:
    """The folder for the results, made where it is missing."""
    if not name.strip():
        raise InputError("--out must name a folder, not an empty text")
    path = Path(name)
    try:
        (path / "seeds").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to folder {path}: {error.strerror or error}") from None
    return path


def write_json(path: Path, facts: Mapping[str, object], indent: int | None = None) -> None:
    """Facts as a file of JSON, whole or not at all."""
    with storage.replacing(path) as file:
        file.write((json.dumps(facts, indent=indent, allow_nan=False) + "\n").encode())


def keep(path: Path, facts: Mapping[str, object]) -> None:
    """A result for later runs, with a digest."""
    with storage.replacing(path) as file:
        file.write(storage.sealed(facts).encode() + b"\n")


def kept(path: Path) -> Facts | None:
    """What an earlier run has kept; None where there is nothing, or not what was written: then it is done anew."""
    try:
        facts: Facts = dict(storage.parse(storage.read_whole(path)))  # type: ignore[call-overload]
        storage.check(facts)
    except (ValueError, TypeError):
        return None
    return facts


class Job(NamedTuple):
    """A part of the experiment: what its file is called, a digest of all that its result depends on, and what plays it."""

    stem: str
    key: str
    play: Callable[[RowProgress], Facts]


def each_result(
    jobs: Mapping[str, Job], out: Path, what: str, typed: str, progress: FraudProgress | None
) -> tuple[dict[str, Facts], list[str], int]:
    """What comes of every job, kept by an earlier run or played now; who could not take part, and why; how many were there already."""
    files = {name: out / "seeds" / f"{job.stem}-{job.key[:16]}.json" for name, job in jobs.items()}
    results = {name: facts for name, file in files.items() if (facts := kept(file)) is not None}
    left, missing = [name for name in jobs if name not in results], []
    try:
        for n, name in enumerate(left):

            def tell(at: int, total: int, n: int = n, name: str = name) -> None:
                if progress is not None:
                    progress(n + at / total, len(left), f"{name}, {n + 1} of {len(left)}")

            try:
                results[name] = jobs[name].play(tell)
            except Unavailable as why:
                missing.append(f"{name}: {why}")
            else:
                keep(files[name], results[name])
    except KeyboardInterrupt:
        done = f"{len(results)} of {len(jobs)} {what} are done and kept in {out}"
        raise Interrupted(f"interrupted; {done}; to go on: {typed}") from None
    return {name: results[name] for name in jobs if name in results}, missing, len(jobs) - len(left)


def sentence(note: str) -> str:
    """A note as a sentence."""
    return f"{note[0].upper()}{note[1:]}."
