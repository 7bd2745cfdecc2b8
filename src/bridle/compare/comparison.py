"""The result of a comparison: its rows, and what can be asked of them: ranked, as a frame, as a table for a paper, drawn, kept."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Self

from bridle import storage
from bridle.compare import analysis, frames, typeset
from bridle.compare.parquet_file import NAME, read_parquet, write_parquet
from bridle.compare.rows import GameRow, RankedRow, grouped, horizon_of, label_of, problem_of
from bridle.core import InputError
from bridle.showing import count, number

SHOWN_PLACES, SHOWN_POLICIES = 4, 3
"""In how many problems and horizons, and how many policies of each, a comparison shows itself in one line each."""


class Comparison(list[GameRow]):
    """The rows of a comparison, one dictionary for each game, in the order in which they were asked for; and what can be done with them.

    It is a list, so that whatever takes rows takes it. What a row holds is in `bridle.compare.rows.GameRow`.

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

        `bridle.compare.analysis.ranking` says by what.
        """
        return analysis.ranking(self)

    def to_frame(self, kind: str | None = None, *, of: str = "games") -> Any:
        """A DataFrame with a row for each game (`of="games"`), or for each policy of each problem and horizon (`of="ranking"`).

        `kind` is "pandas" or "polars"; None takes whichever is installed, pandas first.
        """
        if of not in ("games", "ranking"):
            raise InputError(f"of must be one of games, ranking, not {of!r}")
        return frames.frame(self.rows if of == "games" else self.ranking(), kind)

    def to_latex(
        self, path: str | PathLike[str] | None = None, *, caption: str | None = None, label: str | None = None, floating: bool = True
    ) -> str:
        """The ranking with its bounds as a table for LaTeX, which needs the package booktabs alone; also written to `path` if one is given.

        `caption` is LaTeX and takes the place of a sentence that says how to read the table; ``floating=False`` gives the tabular alone.
        The best of each column is bold.
        """
        return _written(typeset.latex_table(self.ranking(), caption, label, floating), path)

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """The ranking with its bounds as a table of Markdown; also written to `path` if one is given."""
        return _written(typeset.markdown_table(self.ranking()), path)

    def report(self, path: str | PathLike[str], title: str | None = None) -> Path:
        """Write the whole comparison as one HTML page, with charts and without need of a network; the path."""
        from bridle.compare import html_report

        return html_report.write_report(self, path, title)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the rows to a Parquet file, or to `results.parquet` in a folder that is there; the path."""
        place = Path(path) / NAME if Path(path).is_dir() else Path(path)
        write_parquet(self, place)
        return place

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The comparison in a Parquet file, or in the folder that `bridle compare` or ``compare(out=...)`` has written."""
        return cls(read_parquet(path))

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
