"""The report of the experiment: the frame of every page, with the charts and the table of a protocol inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from bridle.comparisons.html_page import fact_list, figure, render_page, section, write_page
from bridle.showing import svg
from bridle.showing.marks import Chart
from bridle.showing.tables import TextTable, page_table


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
    first, *others = shown.columns
    names = f'<th class="name" scope="col">{escape(first)}</th>' + "".join(f'<th scope="col">{escape(name)}</th>' for name in others)
    cells = (f'<th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) for row in shown.rows)
    return page_table(shown.title, f"<tr>{names}</tr>", "".join(f"<tr>{each}</tr>" for each in cells), escape(shown.title))
