"""A ranking as text for papers and for pages: LaTeX with booktabs, and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bridle.comparisons.rows import RankedRow, breaks_bound, grouped, number_of
from bridle.comparisons.text import number

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip
CAPTION = (
    "Regret and cumulative constraint violation (CCV), medians over seeds, each beside the bound that is proved. Bold: the least of the "
    "column among policies that no other beats; a regret below zero counts as zero, since it can be bought with violations."
)


class Column(NamedTuple):
    """A column of figures: its heading, the fact it shows, and whether less is better, so that the least is marked."""

    heading: str
    fact: str
    less: bool = False


FIGURES = (Column("regret", "regret", True), Column("bound", "regret_bound"), Column("CCV", "ccv", True), Column("bound", "ccv_bound"))
PACE = Column("us/round", "us_per_round")


def escape_latex(text: str) -> str:
    """Text as LaTeX sets it, letter for letter.

    >>> escape_latex("my_policy 50%")
    'my\\\\_policy 50\\\\%'
    """
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def latex_table(ranked: Sequence[RankedRow], caption: str | None = None, label: str | None = None, floating: bool = True) -> str:
    """The ranking as a table for ``\\usepackage{booktabs}``."""
    columns = (*FIGURES, PACE)
    lines = [
        rf"\begin{{tabular}}{{@{{}}l{'r' * len(columns)}@{{}}}}",
        r"\toprule",
        " & ".join(["policy", *(escape_latex(column.heading).replace("us/", r"$\mu$s/") for column in columns)]) + r" \\",
    ]
    for place, rows in grouped(ranked, _place).items():
        lines += [r"\midrule", rf"\multicolumn{{{1 + len(columns)}}}{{@{{}}l}}{{\emph{{{escape_latex(place)}}}}} \\"]
        best = _best(rows, columns)
        for row in rows:
            name = escape_latex(row["label"])
            if row["does_not_apply"]:
                lines.append(rf"{name} & \multicolumn{{{len(columns)}}}{{l@{{}}}}{{does not apply}} \\")
                continue
            cells = [_latex_cell(row, column, best) for column in columns]
            lines.append(" & ".join([rf"\textbf{{{name}}}" if row["rank"] == 1 else name, *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    if floating:
        named = [rf"\label{{{label}}}"] if label else []
        title = escape_latex(CAPTION) if caption is None else caption
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{title}}}", *named, *lines, r"\end{table}"]
    return "\n".join([r"% \usepackage{booktabs}", *lines, ""])


def markdown_table(ranked: Sequence[RankedRow]) -> str:
    """The ranking as a table of Markdown; the best of each column is bold."""
    columns = (*FIGURES, PACE)
    lines = [
        "| problem | # | policy | " + " | ".join(column.heading for column in columns) + " |",
        "|---|---|---|" + "---:|" * len(columns),
    ]
    for place, rows in grouped(ranked, _place).items():
        best = _best(rows, columns)
        for row in rows:
            label = row["label"].replace("|", r"\|")
            cells = [_cell(row, column, best, "**{}**".format) for column in columns]
            shown = ["does not apply", *[""] * (len(columns) - 1)] if row["does_not_apply"] else cells
            lines.append("| " + " | ".join([place.replace("|", r"\|"), str(row["rank"] or "-"), label, *shown]) + " |")
    return "\n".join([*lines, ""])


def _place(row: RankedRow) -> str:
    return f"{row['problem_label']}, T = {row['horizon']:,}"


def _counted(row: RankedRow, column: Column) -> float | None:
    """What counts of a figure: nothing below zero, and no rounding."""
    value = number_of(row, column.fact)
    return None if value is None else 0.0 if value <= 1e-9 * row["horizon"] else value


def _best(rows: Sequence[RankedRow], columns: Sequence[Column]) -> dict[str, float]:
    """The least of every column in which less is better, among the policies that no other is at least as good as and better in one."""
    front = [row for row in rows if row["pareto"]]
    found = {column.fact: [value for row in front if (value := _counted(row, column)) is not None] for column in columns if column.less}
    return {fact: min(values) for fact, values in found.items() if values}


def _cell(row: RankedRow, column: Column, best: dict[str, float], bold: Callable[[str], str]) -> str:
    value = number_of(row, column.fact)
    text = number(value) + (" !" if column.less and breaks_bound(row, f"{column.fact}_bound") else "")
    first = value is not None and row["pareto"] and column.fact in best and _counted(row, column) == best[column.fact]
    return bold(text) if first else text


def _latex_cell(row: RankedRow, column: Column, best: dict[str, float]) -> str:
    return _cell(row, column, best, r"\textbf{{{}}}".format).replace("-", "$-$") if number_of(row, column.fact) is not None else "--"
