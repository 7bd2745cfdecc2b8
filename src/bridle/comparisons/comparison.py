"""The result of a comparison: its rows, and what can be asked of them: ranked, as a frame, as a table for a paper, drawn, kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bridle import storage
from bridle.comparisons import analysis, frames, plots, tables
from bridle.comparisons.frames import NAME, read_parquet, write_parquet
from bridle.comparisons.rows import GameRow, RankedRow, grouped, horizon_of, label_of, problem_of
from bridle.core import InputError
from bridle.showing import cards, count, figures, number
from bridle.showing.marks import QUANTITIES
from bridle.showing.tables import markdown
from bridle.storage import StrPath

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_PLACES, SHOWN_POLICIES = 4, 3
"""In how many problems and horizons, and how many policies of each, a comparison shows itself in one line each."""


RANKED = (
    "Best first, by regret and CCV together, medians over seeds; a regret below zero counts as zero, since it can be bought with "
    "violations."
)


class Comparison(list[GameRow]):
    """The rows of a comparison, one dictionary for each game, and what can be done with them.

    It is a list, so that whatever takes rows takes it; rows stand in the order in which games were asked for. `bridle.compare` makes it.

    Parameters
    ----------
    iterable : iterable of dict, optional
        The rows; `bridle.comparisons.rows.GameRow` names their columns. Default: none.

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
        """Who did best, on each problem and at each horizon.

        Returns a row for each policy of each problem and horizon, with its medians over seeds, best first; see
        `bridle.comparisons.analysis.ranking` for the rule, and `bridle.comparisons.rows.RankedRow` for the columns.
        """
        return analysis.ranking(self)

    def to_frame(self, kind: str | None = None, *, of: str = "games") -> Any:
        """The rows as a DataFrame.

        Returns the frame. What is not known is NaN or None in pandas and null in Polars. Raises `Unavailable`: the
        package is not installed.

        Parameters
        ----------
        kind : {"pandas", "polars"}, optional
            Whose. Default: pandas where it is installed, else Polars.
        of : {"games", "ranking"}, default "games"
            A row for each game, or for each policy of each problem and horizon.

        Examples
        --------
        >>> import bridle
        >>> frame = bridle.compare("fixed", ["anytime", "ogd"], horizons=100, seeds=2).to_frame("pandas")
        >>> frame.groupby("label")["ccv"].median().round(3).to_dict()
        {'anytime': 0.0, 'ogd': 64.072}
        """
        if of not in ("games", "ranking"):
            raise InputError(f"of must be one of games, ranking, not {of!r}")
        return frames.frame(self.rows if of == "games" else self.ranking(), kind)

    def to_latex(self, path: StrPath | None = None, *, caption: str | None = None, label: str | None = None, floating: bool = True) -> str:
        """The ranking with its bounds as a table for LaTeX.

        It needs the package booktabs and no other. Bold is the least of a column among the policies that no other beats.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to as well.
        caption : str, optional
            The caption, as LaTeX. Default: two sentences that say how to read the table.
        label : str, optional
            What ``\\ref`` is to find it by.
        floating : bool, default True
            A whole ``table``; False gives the ``tabular`` alone.

        Examples
        --------
        >>> import bridle
        >>> result = bridle.compare("fixed", ["anytime", "ogd"], horizons=100, seeds=1)
        >>> print(result.to_latex(floating=False).splitlines()[2])
        \\toprule
        """
        return _written(tables.latex_ranking(self.ranking(), caption, label, floating), path)

    def to_markdown(self, path: StrPath | None = None) -> str:
        """The ranking with its bounds as a table of Markdown."""
        return _written(markdown(tables.ranking_table(self.ranking())), path)

    def plot(
        self,
        what: str | Sequence[str] = QUANTITIES,
        *,
        against: str = "round",
        problem: str | None = None,
        horizon: int | None = None,
        ax: object = None,
        width: str | None = None,
    ) -> Figure:
        """Regret and CCV with their bounds as a figure: medians over seeds, bands from the 10 % to the 90 % quantile.

        Returns the figure. It is not shown, pyplot does not know it, and its ``savefig`` writes PDF with TrueType
        fonts.

        Parameters
        ----------
        what : {"regret", "ccv"} or a list of them, default ("regret", "ccv")
            Which of the two is drawn; each has axes of its own.
        against : {"round", "horizon"}, default "round"
            What lies to the right: the rounds of the games, or final values for each horizon.
        problem : str, optional
            One of several problems, by its label as rows have it, such as "halfspaces dim=5". Default: all.
        horizon : int, optional
            The horizon, in rounds. Default: the longest of each problem.
        ax : axes of matplotlib, or a list of them, optional
            Draw on these, one for each chart. Default: on a new figure.
        width : {"column", "page"}, optional
            As wide as the column (3.35 inches) or the page (7 inches) of a journal. Default: for slides and screens.
        """
        return figures.plot(plots.curves(self, what, against, problem, horizon), ax, width)

    def plot_sweep(
        self,
        parameter: str,
        what: str | Sequence[str] = QUANTITIES,
        *,
        problem: str | None = None,
        horizon: int | None = None,
        ax: object = None,
        width: str | None = None,
    ) -> Figure:
        """Final regret and CCV, with their bounds, against a parameter that was swept.

        A policy that does not have the parameter is a level line.

        Returns the figure. It is not shown, pyplot does not know it, and its ``savefig`` writes PDF with TrueType
        fonts.

        Parameters
        ----------
        parameter : str
            The parameter, of policies or of problems; its values must be numbers.
        what : {"regret", "ccv"} or a list of them, default ("regret", "ccv")
            Which of the two is drawn; each has axes of its own.
        problem : str, optional
            One of several problems, by its label as rows have it, such as "halfspaces dim=5". Default: all.
        horizon : int, optional
            The horizon, in rounds. Default: the longest of each problem.
        ax : axes of matplotlib, or a list of them, optional
            Draw on these, one for each chart. Default: on a new figure.
        width : {"column", "page"}, optional
            As wide as the column (3.35 inches) or the page (7 inches) of a journal. Default: for slides and screens.

        Examples
        --------
        >>> import bridle
        >>> result = bridle.compare("fixed", ["sinha2024", "ogd"], horizons=100, seeds=1, sweep={"V": [0.1, 1.0, 10.0]})
        >>> [panel.get_xlabel() for panel in result.plot_sweep("V").axes]
        ['V', 'V']
        """
        return figures.plot(plots.sweep(self, parameter, what, problem, horizon), ax, width)

    def report(self, path: StrPath, title: str | None = None) -> Path:
        """Write the whole comparison as one HTML page, with charts, that needs no network.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced.
        title : str, optional
            What stands on top. Default: what was compared.
        """
        from bridle.comparisons import html_report

        return html_report.write_report(self, path, title)

    def save(self, path: StrPath) -> Path:
        """Write the rows to a Parquet file.

        Parameters
        ----------
        path : str or path
            The file, or a folder that is there, which then has a file `results.parquet`.
        """
        place = Path(path) / NAME if Path(path).is_dir() else Path(path)
        write_parquet(self, place)
        return place

    @classmethod
    def load(cls, path: StrPath) -> Self:
        """The comparison in a Parquet file.

        Parameters
        ----------
        path : str or path
            The file, or the folder that `bridle compare` or ``bridle.compare(..., out=FOLDER)`` has written.
        """
        return cls(read_parquet(path))

    def _repr_html_(self) -> str:
        if not self:
            return cards.card(repr(self))
        ranked = self.ranking()
        charts = plots.curves(self, QUANTITIES, "round", problem_of(self[0]), None)
        notes = [RANKED, *analysis.cost_notes(ranked)]
        return cards.card(repr(self).splitlines()[0], None, charts, notes, tables.ranking_table(ranked, tables.FIGURES))

    def __repr__(self) -> str:
        if not self:
            return "Comparison: no games"
        kinds = {"problem": problem_of, "policy": label_of, "horizon": horizon_of}
        sizes = {name: len(grouped(self, key)) for name, key in kinds.items()}
        many = [count(sizes["problem"], "problem"), count(sizes["policy"], "policy", "policies"), count(sizes["horizon"], "horizon")]
        lines = [f"Comparison: {count(len(self), 'game')} of {', '.join(many)}, {count(len({row.get('seed') for row in self}), 'seed')}"]
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


def _written(text: str, path: StrPath | None) -> str:
    """The text, which is in the file too where one is named."""
    if path is not None:
        with storage.replacing(path) as file:
            file.write(text.encode())
    return text
