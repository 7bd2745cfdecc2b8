"""The frame of every page: one file that needs no network, its head and foot from one template, and the elements that pages share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from importlib.resources import files as resources
from os import fspath
from pathlib import Path
from string import Template

import bridle
from bridle import storage
from bridle.showing import svg
from bridle.showing.marks import DARK, LIGHT, Chart
from bridle.storage import StrPath

DRAWN_BY_SCRIPT = "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
PICTURES_ONLY = "style-src 'unsafe-inline'; img-src data:"
"""What a page may load, as its content security policy says: nothing from elsewhere."""


def render_page(
    kind: str,
    title: str,
    lead: str,
    main: str,
    *,
    date: str = "",
    allowed: str = PICTURES_ONLY,
    head: str = "",
    nav: str = "",
    scripts: str = "",
) -> str:
    """A whole page as text.

    `kind`, `title`, `lead` and `date` are plain text, the others HTML; `date` is today's if empty.
    """
    return read_template("page.html").substitute(
        kind=escape(kind),
        title=escape(title),
        lead=escape(lead),
        main=main,
        version=escape(bridle.__version__),
        date=escape(date or datetime.now(UTC).date().isoformat()),
        allowed=allowed,
        css=style_sheet(),
        head=head,
        nav=nav,
        scripts=scripts,
    )


def style_sheet() -> str:
    """The style of every page, reports and the service's."""
    return read_template("report.css").substitute(light=_palette(LIGHT), dark=_palette(DARK))


def write_page(path: StrPath, text: str) -> Path:
    """Write a page: the whole new one, or the old one stays."""
    with storage.replacing(path) as file:
        file.write(text.encode("utf-8", "replace"))
    return Path(fspath(path))


def read_template(name: str) -> Template:
    """A template of the package."""
    return Template((resources("bridle.comparisons") / "templates" / name).read_text(encoding="utf-8"))


def section(name: str, title: str, *parts: str) -> str:
    """A part of the page under a heading; `parts` are HTML."""
    return f'<section id="{escape(name)}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'


def fact_list(facts: Mapping[str, str], wide: Mapping[str, str] | None = None, command: str | None = None) -> str:
    """Short facts side by side; below them those that take a whole line, which are HTML, and the command."""
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    lines = {**(wide or {}), **({"Command": f'<code tabindex="0">{escape(command)}</code>'} if command else {})}
    items += "".join(f'<div class="full"><dt>{name}</dt><dd>{value}</dd></div>' for name, value in lines.items())
    return f'<dl class="facts">{items}</dl>'


def figure(chart: Chart, tools: str = "", number: int = 0, legend: bool = False) -> str:
    """A chart in its frame: title, caption, drawing and notes; a `legend` of its own where the page has none, nor a script."""
    names = "".join(f"<li>{sample} {escape(text)}</li>" for sample, text in (svg.legend([chart]) if legend else ()))
    notes = "".join(f"<li>{escape(note)}</li>" for note in chart.notes)
    picture = svg.page_chart(chart, f"{chart.title}, {chart.problem}", script=not legend)
    return (
        f'<figure data-kind="{chart.kind}"><figcaption><div class="head"><h4>{escape(chart.title)}</h4><span>{tools}</span></div>'
        f'<p>{escape(chart.caption)}</p></figcaption><div class="plot" id="plot-{number}">{picture}</div>'
        f"{f'<ul class=keys>{names}</ul>' if names else ''}{f'<ul class=asides>{notes}</ul>' if notes else ''}</figure>"
    )


def _palette(colours: tuple[str, ...]) -> str:
    """The colours of policies as properties of a style sheet."""
    return " ".join(f"--p{i}: {colour};" for i, colour in enumerate(colours))


# --- sentences ----------------------------------------------------------------------------------------------------------------------

_RULES: tuple[tuple[str, str], ...] = (
    (r"`([^`]+)`", r"<code>\1</code>"),
    (r"&lt;([^,;&]{1,12}), ([^,;&]{1,12})&gt;", "⟨\\1, \\2⟩"),
    (r"&lt;=", "≤"),
    (r"&gt;=", "≥"),
    (r"\bsqrt\((\w+)\)", r"√\1"),
    (r"\bsqrt\(([^()]+)\)", r"√(\1)"),
    (r"\^\(([^()]+)\)", r"<sup>\1</sup>"),
    (r"\^(\w+|\*)", r"<sup>\1</sup>"),
    (r"\b([A-Za-z])_([A-Za-z0-9]{1,2})\b", r"<var>\1</var><sub>\2</sub>"),
    (r"(?<=\w) \* (?=\w)", "·"),
)


def formatted(text: str) -> str:
    """Plain text as HTML: `names` as code, powers raised, indices lowered, roots and inner products as they are written.

    >>> formatted("f(x) = (modulus/2) |x - z|^2 plus <a, x>, with `slater` <= sqrt(T) and x_t")
    'f(x) = (modulus/2) |x - z|<sup>2</sup> plus ⟨a, x⟩, with <code>slater</code> ≤ √T and <var>x</var><sub>t</sub>'
    """
    html = escape(text, quote=False)
    for pattern, replacement in _RULES:
        html = re.sub(pattern, replacement, html)
    return html
