"""The report of the experiment: the frame of every page, with its charts inside, and the elements that the two protocols put on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from bridle.compare.html_page import figure, render_page, write_page
from bridle.showing import svg
from bridle.showing.marks import Chart
from bridle.showing.tables import Table, page_table


def write_fraud_page(path: Path, title: str, lead: str, sections: Iterable[str]) -> Path:
    """Write the page: the whole new one, or the old one stays. `sections` are HTML."""
    return write_page(path, render_page("fraud", title, lead, "\n".join([svg.definitions(), *sections])))


def paragraph(text: str, kind: str = "about") -> str:
    """A paragraph; `kind` is a class of the style sheet: about, takeaway, note, alarm."""
    return f'<p class="{kind}">{escape(text)}</p>'


def figures(charts: Iterable[Chart]) -> str:
    """Charts side by side, each with its legend."""
    return f'<div class="charts">{"".join(figure(chart, legend=True) for chart in charts)}</div>'


def table(shown: Table) -> str:
    """A table of texts, the first column its names; its title is its caption."""
    first, *others = shown.columns
    names = f'<th class="name" scope="col">{escape(first)}</th>' + "".join(f'<th scope="col">{escape(name)}</th>' for name in others)
    cells = (f'<th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) for row in shown.rows)
    return page_table(shown.title, f"<tr>{names}</tr>", "".join(f"<tr>{each}</tr>" for each in cells), escape(shown.title))


def reading(entries: Mapping[str, str]) -> str:
    """How to read the page: what each word means."""
    parts = (f"<div><h4>{escape(word)}</h4><p>{escape(text)}</p></div>" for word, text in entries.items())
    return f'<div class="reading">{"".join(parts)}</div>'
