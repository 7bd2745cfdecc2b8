"""What an object shows of itself in a notebook: a card with its name, its figures and its charts; styles inline, every name escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from bridle.showing import svg
from bridle.showing.marks import Chart, Line
from bridle.showing.tables import Table, card_table

BORDER = "1px solid rgba(128,128,128,.4)"


def card(
    title: str, facts: Mapping[str, str] | None = None, charts: Sequence[Chart] = (), notes: Sequence[str] = (), table: Table | None = None
) -> str:
    """The card; all of it is plain text but for the charts."""
    listed = card_table(Table(rows=[*(facts or {}).items()])) if facts else ""
    listed += card_table(table) if table else ""
    drawn = "".join(f'<div style="flex:0 1 auto">{svg.card_chart(chart)}</div>' for chart in charts)
    figures = f'<div style="display:flex;flex-wrap:wrap;gap:.6em;margin-top:.4em">{drawn}</div>{_legend(charts)}' if drawn else ""
    said = "".join(f'<p style="margin:.3em 0;opacity:.8">{escape(note)}</p>' for note in notes)
    return (
        f'<div style="border:{BORDER};border-radius:6px;padding:.6em .9em;max-width:56em;color:inherit;background:none">'
        f'<div style="font-weight:600">{escape(title)}</div>{listed}{figures}{said}</div>'
    )


def _legend(charts: Sequence[Chart]) -> str:
    """Which colour is whose, where there are several, and what is dashed."""
    lines = [line for chart in charts for line in chart.of(Line)]
    names = dict(sorted({(line.policy, line.label) for line in lines}))
    items = [f"{svg.without_style_sheet(svg.swatch(place))} {escape(label)}" for place, label in names.items() if len(names) > 1]
    items += ["dashed: what the theorem allows"] * any(value is not None for line in lines for value in line.bound)
    items += ["dotted: the fitted power law"] * any(line.law is not None for line in lines)
    shown = "".join(f'<span style="white-space:nowrap">{item}</span>' for item in items)
    return f'<div style="display:flex;flex-wrap:wrap;gap:.2em 1em;font-size:.9em">{shown}</div>' if items else ""
