"""The report of the experiment: one page that needs no network, in the manner of the page of a comparison, with its figures inside."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

import bridle
from bridle import storage
from bridle.compare import charts
from bridle.compare.html_report import palette, read_template


def write(path: Path, title: str, lead: str, sections: Iterable[str], date: str | None = None) -> Path:
    """Write the page: the whole new one, or the old one stays. `sections` are HTML, made by the functions below."""
    text = read_template("fraud.html").substitute(
        title=escape(title),
        lead=escape(lead),
        version=escape(bridle.__version__),
        date=escape(date or datetime.now(UTC).date().isoformat()),
        css=read_template("report.css").substitute(light=palette(charts.LIGHT), dark=palette(charts.DARK)),
        sections="\n".join(sections),
    )
    with storage.replacing(path) as file:
        file.write(text.encode())
    return path


def section(name: str, title: str, *parts: str) -> str:
    """A part of the page under a heading."""
    return f'<section id="{escape(name)}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'


def paragraph(text: str, kind: str = "about") -> str:
    """A paragraph; `kind` is a class of the style sheet: about, takeaway, note, alarm."""
    return f'<p class="{kind}">{escape(text)}</p>'


def facts(named: Mapping[str, str], command: str | None = None) -> str:
    """Short facts side by side, and the command below them."""
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in named.items())
    if command:
        items += f'<div class="full"><dt>Command</dt><dd><code tabindex="0">{escape(command)}</code></dd></div>'
    return f'<dl class="facts">{items}</dl>'


def figures(drawn: Sequence[tuple[str, str, Path]]) -> str:
    """Figures side by side: of each its title, what it shows, and the SVG file that goes into the page."""
    parts = []
    for title, caption, file in drawn:
        image = base64.b64encode(file.read_bytes()).decode()
        parts.append(
            f'<figure><figcaption><div class="head"><h4>{escape(title)}</h4></div><p>{escape(caption)}</p></figcaption>'
            f'<img alt="{escape(f"{title}. {caption}")}" src="data:image/svg+xml;base64,{image}"></figure>'
        )
    return f'<div class="figures">{"".join(parts)}</div>'


def table(head: Sequence[str], lines: Iterable[Sequence[str]], caption: str) -> str:
    """A table of texts, the first column its names."""
    names = "".join(f'<th scope="col"{" class=name" if i == 0 else ""}>{escape(name)}</th>' for i, name in enumerate(head))
    body = "".join(
        f'<tr><th scope="row">{escape(line[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in line[1:])}</tr>' for line in lines
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def reading(entries: Mapping[str, str]) -> str:
    """How to read the page: what each word means."""
    parts = (f"<div><h4>{escape(word)}</h4><p>{escape(text)}</p></div>" for word, text in entries.items())
    return f'<div class="reading">{"".join(parts)}</div>'
