"""The report of the experiment: the frame of every page, with its figures inside, and the elements that the two protocols put on it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from bridle.comparisons.html_page import read_template, render_page, write_page


def write_fraud_page(path: Path, title: str, lead: str, sections: Iterable[str]) -> Path:
    """Write the page: the whole new one, or the old one stays. `sections` are HTML."""
    return write_page(path, render_page("fraud", title, lead, "\n".join(sections), css=read_template("figures.css").template))


def paragraph(text: str, kind: str = "about") -> str:
    """A paragraph; `kind` is a class of the style sheet: about, takeaway, note, alarm."""
    return f'<p class="{kind}">{escape(text)}</p>'


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
