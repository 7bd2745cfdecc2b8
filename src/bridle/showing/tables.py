"""Tables: one record, set as text in a terminal, as HTML on a page or on a card, as Markdown, and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table as RichTable

NOT_NUMBERS = 10_000


class Cell(str):
    """A cell that looks otherwise than the rest: its `looks` are classes of a page's style sheet, and `tip` is said of it there.

    Elsewhere only the look "best" is seen: it is set in bold.
    """

    looks: tuple[str, ...]
    tip: str

    def __new__(cls, text: str, *looks: str, tip: str = "") -> Cell:
        cell = super().__new__(cls, text)
        cell.looks, cell.tip = looks, tip
        return cell


def is_best(cell: str) -> bool:
    """Whether a cell is to be set in bold."""
    return isinstance(cell, Cell) and "best" in cell.looks


class TextTable(NamedTuple):
    """Rows of text under headings; columns from `numeric` on are set to the right.

    With `grouped` the first column names the group of a row: it is written once, over the rows that share it. A row may have fewer cells
    than there are headings: its last cell reaches over the rest. With `ruled` the terminal has a rule between rows.
    """

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    title: str = ""
    numeric: int = NOT_NUMBERS
    grouped: bool = False
    ruled: bool = False

    def groups(self) -> list[tuple[str, list[Sequence[str]]]]:
        """The rows of each group without its name, in order; all rows under "" where they are not grouped."""
        if not self.grouped:
            return [("", list(self.rows))]
        return [(name, [row[1:] for row in rows]) for name, rows in groupby(self.rows, key=lambda row: row[0])]

    def __rich__(self) -> RichTable:
        return text_table(self)


def text_table(table: TextTable) -> RichTable:
    """The table for the terminal: a number is never cut short, and nothing in a cell is taken for markup."""
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(title=Text(table.title) if table.title else None, title_justify="left", title_style="bold", show_lines=table.ruled)
    skipped = int(table.grouped)
    for i, heading in enumerate(table.columns[skipped:], start=skipped):
        drawn.add_column(heading, justify="right" if i >= table.numeric else "left", overflow="fold")
    for name, rows in table.groups():
        if name:
            drawn.add_section()
            drawn.add_row(*[""] * table.columns[1:].index("policy"), Text(name, style="bold"))
        for row in rows:
            drawn.add_row(*(Text(cell, style="bold" if is_best(cell) else "") for cell in row))
    return drawn


class Fitting:
    """The first of several tables that fits the terminal, else the last."""

    def __init__(self, *tables: TextTable) -> None:
        self.tables = tables

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.update(max_width=1000)
        drawn = [text_table(table) for table in self.tables]
        yield next((each for each in drawn if console.measure(each, options=room).maximum <= options.max_width), drawn[-1])


# --- HTML -----------------------------------------------------------------------------------------------------------------------------

CARD = "border-collapse:collapse;border:0;margin:.4em 0;background:none;color:inherit"
CELL = "padding:.15em .8em .15em 0;border:0;text-align:{};vertical-align:top;background:none;font-variant-numeric:tabular-nums"


def card_table(table: TextTable) -> str:
    """The table on the card of a notebook, which has no style sheet."""

    def line(row: Sequence[str], tags: Sequence[str], dim: str = "") -> str:
        cells = ""
        for i, (text, tag) in enumerate(zip(row, tags, strict=False)):
            look = CELL.format("right" if i >= table.numeric else "left") + (dim if tag.startswith("th") else "")
            cells += f'<{tag} style="{look}">{escape(text)}</{tag[:2]}>'
        return f'<tr style="background:none">{cells}</tr>'

    if not table.columns:  # facts under their names
        body = "".join(line(row, ('th scope="row"', "td"), ";font-weight:normal;opacity:.75") for row in table.rows)
        return f'<table style="{CARD}"><tbody>{body}</tbody></table>'
    head = line(table.columns, ['th scope="col"'] * len(table.columns), ";opacity:.75")
    body = "".join(line(row, ["td"] * len(table.columns)) for row in table.rows)
    return f'<table style="{CARD}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def page_table(label: str, columns: Sequence[str], rows: Iterable[str], caption: str = "") -> str:
    """A table of a page, which scrolls by itself where there is little room; `rows` are those of `page_row`, `caption` too is HTML."""
    above = f"<caption>{caption}</caption>" if caption else ""
    first, *others = (escape(name).replace("\n", "<br>") for name in columns)
    head = f'<th class="name" scope="col">{first}</th>' + "".join(f'<th scope="col">{name}</th>' for name in others)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table>{above}'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def page_row(name: str, cells: Sequence[str], columns: int, attributes: str = "") -> str:
    """A row of so many columns beside its name, which is HTML; the last of fewer cells reaches over the rest. Powers are raised."""
    drawn = ""
    for i, cell in enumerate(cells, start=1):
        text = re.sub(r"\^(-?[\d.]+)$", r"<sup>\1</sup>", escape(cell))
        look = f' class="{" ".join(cell.looks)}"' if isinstance(cell, Cell) and cell.looks else ""
        look += f' title="{escape(cell.tip)}"' if isinstance(cell, Cell) and cell.tip else ""
        wide = i == len(cells) < columns
        drawn += f'<td{look} colspan="{columns - i + 1}"><div>{text}</div></td>' if wide else f"<td{look}>{text}</td>"
    return f'<tr{attributes}><th scope="row">{name}</th>{drawn}</tr>'


# --- papers ---------------------------------------------------------------------------------------------------------------------------

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """Text as LaTeX sets it, letter for letter.

    >>> escape_latex("my_policy 50%")
    'my\\\\_policy 50\\\\%'
    """
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def markdown(table: TextTable) -> str:
    """The table in Markdown."""

    def line(row: Sequence[str]) -> str:
        cells = [f"**{cell}**" if is_best(cell) else cell for cell in (*row, *[""] * (len(table.columns) - len(row)))]
        return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"

    rule = "|" + "".join("---:|" if i >= table.numeric else "---|" for i in range(len(table.columns)))
    return "\n".join([line(table.columns), rule, *map(line, table.rows), ""])


def latex(table: TextTable) -> str:
    """The table as a ``tabular`` of the package booktabs; a group is a line in italics."""
    columns, numeric = table.columns[table.grouped :], table.numeric - table.grouped

    def line(row: Sequence[str]) -> str:
        cells = [_latex_cell(cell, i >= numeric) for i, cell in enumerate(row)]
        if len(cells) < len(columns):
            cells[-1] = rf"\multicolumn{{{len(columns) - len(cells) + 1}}}{{l@{{}}}}{{{cells[-1]}}}"
        return " & ".join(cells) + r" \\"

    aligned = "".join("r" if i >= numeric else "l" for i in range(len(columns)))
    head = " & ".join(map(escape_latex, columns)).replace("us/", r"$\mu$s/") + r" \\"
    lines = [rf"\begin{{tabular}}{{@{{}}{aligned}@{{}}}}", r"\toprule", head]
    for name, rows in table.groups():
        lines += [r"\midrule"]
        lines += [rf"\multicolumn{{{len(columns)}}}{{@{{}}l}}{{\emph{{{escape_latex(name)}}}}} \\"] if name else []
        lines += map(line, rows)
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _latex_cell(cell: str, figure: bool) -> str:
    text = ("--" if cell == "-" else escape_latex(cell).replace("-", "$-$")) if figure and cell[:1] in "-0123456789" else escape_latex(cell)
    return rf"\textbf{{{text}}}" if is_best(cell) else text
