"""What an object shows of itself in a notebook: a card with its name, its figures and its charts; styles inline, every name escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from bridle.showing.marks import Chart, Line
from bridle.showing.svg import colour, line_chart

BORDER = "1px solid rgba(128,128,128,.4)"
CELL = "padding:.15em .8em .15em 0;border:0;text-align:left;vertical-align:top;background:none"
NUMBER = "padding:.15em .8em .15em 0;border:0;text-align:right;vertical-align:top;background:none;font-variant-numeric:tabular-nums"


def card(
    title: str, facts: Mapping[str, str] | None = None, charts: Sequence[Chart] = (), notes: Sequence[str] = (), inside: str = ""
) -> str:
    """The card; `title`, `facts` and `notes` are plain text, `inside` is HTML that stands after the facts."""
    rows = "".join(
        f'<tr style="background:none"><th scope="row" style="{CELL};font-weight:normal;opacity:.75">{escape(name)}</th>'
        f'<td style="{CELL}">{escape(value)}</td></tr>'
        for name, value in (facts or {}).items()
    )
    table = (
        f'<table style="border-collapse:collapse;border:0;margin:.4em 0;background:none;color:inherit"><tbody>{rows}</tbody></table>'
        if rows
        else ""
    )
    drawn = "".join(f'<div style="flex:0 1 auto">{line_chart(chart)}</div>' for chart in charts)
    figures = f'<div style="display:flex;flex-wrap:wrap;gap:.6em;margin-top:.4em">{drawn}</div>{_legend(charts)}' if drawn else ""
    said = "".join(f'<p style="margin:.3em 0;opacity:.8">{escape(note)}</p>' for note in notes)
    return (
        f'<div style="border:{BORDER};border-radius:6px;padding:.6em .9em;max-width:56em;color:inherit;background:none">'
        f'<div style="font-weight:600">{escape(title)}</div>{table}{inside}{figures}{said}</div>'
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], numeric: int) -> str:
    """A table of text; from column `numeric` on its cells are set to the right."""

    def line(kind: str, cells: Sequence[str], more: str = "") -> str:
        styles = [NUMBER if i >= numeric else CELL for i in range(len(cells))]
        inside = "".join(f'<{kind} style="{look}{more}">{escape(text)}</{kind[:2]}>' for look, text in zip(styles, cells, strict=True))
        return f'<tr style="background:none">{inside}</tr>'

    head, body = line('th scope="col"', headings, ";opacity:.75"), "".join(line("td", row) for row in rows)
    return (
        '<table style="border-collapse:collapse;border:0;margin:.4em 0;background:none;color:inherit">'
        f"<thead>{head}</thead><tbody>{body}</tbody></table>"
    )


def _legend(charts: Sequence[Chart]) -> str:
    """Which colour is whose, where there are several, and what is dashed."""
    lines = [mark for chart in charts for mark in chart.marks if isinstance(mark, Line)]
    names = dict(sorted({(line.policy, line.label) for line in lines}))
    items = []
    for place, label in names.items() if len(names) > 1 else ():
        ink, dashes = colour(place)
        stroke = f' stroke-dasharray="{dashes}"' if dashes else ""
        line = f'<line x1="0" x2="22" y1="4" y2="4" stroke="{ink}" stroke-width="2"{stroke}/>'
        sample = f'<svg width="22" height="8" aria-hidden="true">{line}</svg>'
        items.append(f'<span style="white-space:nowrap">{sample} {escape(label)}</span>')
    if any(value is not None for line in lines for value in line.bound):
        items.append('<span style="opacity:.75">dashed: what the theorem allows</span>')
    return f'<div style="display:flex;flex-wrap:wrap;gap:.2em 1em;font-size:.9em">{"".join(items)}</div>' if items else ""
