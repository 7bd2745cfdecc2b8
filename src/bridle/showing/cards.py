"""What an object shows of itself in a notebook: a card with its name, its figures and its charts; styles inline, every name escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from bridle.showing import svg
from bridle.showing.marks import Chart
from bridle.showing.tables import TextTable, card_table

ROW = "display:flex;flex-wrap:wrap"
BORDER = "1px solid rgba(128,128,128,.4)"


def card(
    title: str,
    facts: Mapping[str, str] | None = None,
    charts: Sequence[Chart] = (),
    notes: Sequence[str] = (),
    table: TextTable | None = None,
) -> str:
    """The card; all of it is plain text but for the charts."""
    listed = card_table(TextTable(rows=[*(facts or {}).items()])) if facts else ""
    listed += card_table(table) if table else ""
    drawn = "".join(f'<div style="flex:0 1 auto">{svg.card_chart(chart)}</div>' for chart in charts)
    names = "".join(
        f'<span style="white-space:nowrap">{svg.without_style_sheet(sample)} {escape(text)}</span>' for sample, text in svg.legend(charts)
    )
    drawn = f'<div style="{ROW};gap:.6em;margin-top:.4em">{drawn}</div>' if drawn else ""
    drawn += f'<div style="{ROW};gap:.2em 1em;font-size:.9em">{names}</div>' if names else ""
    said = "".join(f'<p style="margin:.3em 0;opacity:.8">{escape(note)}</p>' for note in notes)
    return (
        f'<div style="border:{BORDER};border-radius:6px;padding:.6em .9em;max-width:56em;color:inherit;background:none">'
        f'<div style="font-weight:600">{escape(title)}</div>{listed}{drawn}{said}</div>'
    )
