"""The result of a comparison: its rows, and what can be asked of them: ranked, as a frame, as a table for a paper, drawn, kept."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bridle import storage
from bridle.compare import analysis, charts, frames, plots, typeset
from bridle.compare.parquet_file import NAME, read_parquet, write_parquet
from bridle.compare.rows import GameRow, RankedRow, grouped, horizon_of, label_of, problem_of
from bridle.core import InputError
from bridle.showing import cards, count, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_PLACES, SHOWN_POLICIES = 4, 3
"""In how many problems and horizons, and how many policies of each, a comparison shows itself in one line each."""


RANKED = (
    "Best first, by regret and CCV together, medians over seeds; a regret below zero counts as zero, since it can be bought with "
    "violations."
)


class Comparison(list[GameRow]):
    """The rows of a comparison, one dictionary for each game, in the order in which they were asked for; it ranks, draws and writes itself.

    It is a list, so that whatever takes rows takes it. What a row holds is in `bridle.compare.rows.GameRow`.

    Parameters
    ----------
    iterable : iterable of dict, optional
        The rows. Default: none.

    Examples
    --------
    >>> import bridle
    >>> result = bridle.compare(["fixed"], ["anytime", "ogd"], horizons=[100], seeds=2)
    >>> len(result), result[0]["label"], [row["label"] for row in result.ranking()]
    (4, 'anytime', ['anytime', 'ogd'])
    """

    @property
    def rows(self) -> list[GameRow]:
        """The rows as a plain list."""
        return list(self)

    def ranking(self) -> list[RankedRow]:
        """Who did best: for each problem and horizon a row for each policy, with its medians over seeds, best first.

        Returns
        -------
        list of dict
            The rows; `bridle.compare.analysis.ranking` says by what they are ranked.
        """
        return analysis.ranking(self)

    def to_frame(self, kind: str | None = None, *, of: str = "games") -> Any:
        """The comparison as a DataFrame.

        Parameters
        ----------
        kind : {"pandas", "polars"}, optional
            Which library. Default: whichever is installed, pandas first.
        of : {"games", "ranking"}, default "games"
            A row for each game, or for each policy of each problem and horizon.

        Returns
        -------
        DataFrame
            Of pandas or Polars.

        Raises
        ------
        InputError
            `of` is neither, or the library is not installed.
        """
        if of not in ("games", "ranking"):
            raise InputError(f"of must be one of games, ranking, not {of!r}")
        return frames.frame(self.rows if of == "games" else self.ranking(), kind)

    def to_latex(
        self, path: str | PathLike[str] | None = None, *, caption: str | None = None, label: str | None = None, floating: bool = True
    ) -> str:
        """The ranking with its bounds as a table for LaTeX, which needs the package booktabs alone. The best of each column is bold.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to as well.
        caption : str, optional
            The caption, as LaTeX. Default: a sentence that says how to read the table.
        label : str, optional
            The label to refer to it by.
        floating : bool, default True
            False gives the tabular alone.

        Returns
        -------
        str
            The table.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        return _written(typeset.latex_table(self.ranking(), caption, label, floating), path)

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """The ranking with its bounds as a table of Markdown.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to as well.

        Returns
        -------
        str
            The table.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        return _written(typeset.markdown_table(self.ranking()), path)

    def plot(
        self,
        what: str | Sequence[str] = charts.QUANTITIES,
        *,
        against: str = "round",
        problem: str | None = None,
        horizon: int | None = None,
        ax: object = None,
        width: str | None = None,
    ) -> Figure:
        """Draw regret and CCV with their bounds, as a figure of matplotlib that is neither shown nor kept by pyplot.

        Its `savefig` writes PDF with TrueType fonts, as journals want them.

        Parameters
        ----------
        what : str or sequence of str, default ("regret", "ccv")
            "regret", "ccv" or both.
        against : {"round", "horizon"}, default "round"
            Draw games round by round, medians over seeds, or final values against T.
        problem : str, optional
            One of several problems, by its label. Default: all.
        horizon : int, optional
            Which games are drawn round by round. Default: those of the longest horizon.
        ax : Axes or sequence of Axes, optional
            Axes of your own, one for each chart.
        width : {"column", "page"}, optional
            The width of a column or a page of a journal.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        InputError
            There is nothing to draw, or matplotlib is not installed.
        """
        return plots.draw(plots.curves(self, what, against, problem, horizon), ax, width)

    def plot_sweep(
        self,
        parameter: str,
        what: str | Sequence[str] = charts.QUANTITIES,
        *,
        problem: str | None = None,
        horizon: int | None = None,
        ax: object = None,
        width: str | None = None,
    ) -> Figure:
        """Draw final regret and CCV, with their bounds, against a parameter that was swept.

        Parameters
        ----------
        parameter : str
            The parameter.
        what : str or sequence of str, default ("regret", "ccv")
            "regret", "ccv" or both.
        problem : str, optional
            One of several problems, by its label. Default: all.
        horizon : int, optional
            Which games are drawn. Default: those of the longest horizon.
        ax : Axes or sequence of Axes, optional
            Axes of your own, one for each chart.
        width : {"column", "page"}, optional
            The width of a column or a page of a journal.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        InputError
            The parameter was not swept, or matplotlib is not installed.
        """
        return plots.draw(plots.sweep(self, parameter, what, problem, horizon), ax, width)

    def report(self, path: str | PathLike[str], title: str | None = None) -> Path:
        """Write the whole comparison as one HTML page with charts, which needs no network.

        Parameters
        ----------
        path : str or path
            The file.
        title : str, optional
            The page's title.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        from bridle.compare import html_report

        return html_report.write_report(self, path, title)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the rows to a Parquet file.

        Parameters
        ----------
        path : str or path
            The file; or a folder that is there, in which it is called ``results.parquet``.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        place = Path(path) / NAME if Path(path).is_dir() else Path(path)
        write_parquet(self, place)
        return place

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The comparison in a Parquet file, or in the folder that ``bridle compare`` or ``compare(out=...)`` has written.

        Parameters
        ----------
        path : str or path
            The file or the folder.

        Returns
        -------
        Comparison
            The rows.

        Raises
        ------
        InputError
            There is no comparison, or it cannot be read.
        """
        return cls(read_parquet(path))

    def _repr_html_(self) -> str:
        if not self:
            return cards.card(repr(self))
        shown, headings = [], ["problem", "#", "policy", "regret", "bound", "CCV", "bound"]
        for row in self.ranking():
            figures = [number(row[fact]) for fact in ("regret", "regret_bound", "ccv", "ccv_bound")]
            cells = ["does not apply", "", "", ""] if row["does_not_apply"] else figures
            shown.append([f"{problem_of(row)}, T = {horizon_of(row):,}", str(row["rank"] or "-"), row["label"], *cells])
        charts = plots.curves(self, ("regret", "ccv"), "round", problem_of(self[0]), None)
        return cards.card(repr(self).splitlines()[0], None, charts, [RANKED], cards.table(headings, shown, 3))

    def __repr__(self) -> str:
        if not self:
            return "Comparison: no games"
        kinds = {"problem": problem_of, "policy": label_of, "horizon": horizon_of}
        sizes = {name: len(grouped(self, key)) for name, key in kinds.items()}
        many = [count(sizes["problem"], "problem"), count(sizes["policy"], "policy", "policies"), count(sizes["horizon"], "horizon")]
        lines = [f"Comparison: {count(len(self), 'game')} of {', '.join(many)}, {count(len({row['seed'] for row in self}), 'seed')}"]
        places = grouped(self.ranking(), lambda row: (problem_of(row), horizon_of(row)))
        for (problem, horizon), ranked in list(places.items())[:SHOWN_PLACES]:
            best = [_in_a_word(row) for row in ranked if row["rank"] is not None][:SHOWN_POLICIES]
            lines.append(
                f"  {problem}, T = {horizon:,}: {'; '.join(best) or 'nothing applies'}{'; ...' if len(ranked) > SHOWN_POLICIES else ''}"
            )
        more = len(places) - SHOWN_PLACES
        return "\n".join(lines + ([f"  ... and {more} more"] if more > 0 else []))


def _in_a_word(row: RankedRow) -> str:
    bound = "" if row["regret_bound"] is None else f" of at most {number(row['regret_bound'])}"
    return f"{row['rank']}. {row['label']} (regret {number(row['regret'])}{bound}, CCV {number(row['ccv'])})"


def _written(text: str, path: str | PathLike[str] | None) -> str:
    """The text, which is in the file too where one is named."""
    if path is not None:
        with storage.replacing(path) as file:
            file.write(text.encode())
    return text
