"""Tables of the terminal: what came out of a game, several games side by side, and a ranking of policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, cast

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from bridle.comparisons.analysis import RANKING_IN_SHORT, RATES, cost_notes, rate_notes
from bridle.comparisons.rows import COLUMNS, GameRow, RankedRow, breaks_bound, general_reason_of
from bridle.comparisons.text import number
from bridle.game.summary import BOUNDED

GameLike: TypeAlias = Mapping[str, object]
"""The facts of a game, as `bridle.game.summary` or a row has them."""

NAMES = {
    "regret": "regret", "ccv": "CCV", "interval_violation": "interval violation", "soft_violation": "soft violation",
    "squared_ccv": "squared CCV", "dynamic_regret": "dynamic regret", "movement": "movement",
}  # fmt: skip
"""What is measured and bounded, as people call it."""

MOVING = {"dynamic_regret": NAMES["dynamic_regret"], "path_length": "length of the best path"}
"""What is measured against the best action of each round, where that is known, as people call it."""

QUANTITIES = tuple((measured, bound) for measured, bound in BOUNDED if f"{bound}_paper" in COLUMNS)
"""What a comparison shows: what the paper bounds too, its bound being under the same name with ``_paper``."""

NUMERIC = ("regret", "bound", "paper", "CCV", "interval", "us/round", "measured", "paper's bound")
"""The headings of columns that hold numbers."""


def table_of(title: str, *columns: str) -> Table:
    """An empty table; columns of numbers are set to the right."""
    table = Table(title=title or None, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in NUMERIC else "left", overflow="fold")  # a number is never cut short
    return table


def plain_text(text: str) -> str:
    """Text in which nothing is taken for markup."""
    return text.replace("[", "\\[")


class Fitting:
    """The first of several tables that fits the terminal, else the last."""

    def __init__(self, *tables: Table) -> None:
        self.tables = tables

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.update(max_width=1000)
        fitting = (table for table in self.tables if console.measure(table, options=room).maximum <= options.max_width)
        yield next(fitting, self.tables[-1])


# --- one game -------------------------------------------------------------------------------------------------------------------------


def game_table(facts: GameLike) -> Table:
    """One game: what happened, what was proved, whether it held."""
    size = f"T = {facts['horizon']:,}, d = {facts['dim']}"
    table = table_of(
        f"{facts['policy']} on {facts['problem']}: {size}, seed {facts['seed']} ({facts['engine']})",
        "quantity", "measured", "bound", "paper's bound", "holds",
    )  # fmt: skip
    table.add_row("total cost", number(facts["cost"]), "", "", "")
    for measured, bound in BOUNDED:
        held = facts[f"{bound}_holds"]
        if measured in ("dynamic_regret", "movement") and facts[measured] is None:  # no path is known, or it was not kept
            continue
        table.add_row(
            NAMES[measured], number(facts[measured]), number(facts[bound]), number(facts.get(f"{bound}_paper")),
            "" if held is None else "yes" if held else "NO",
        )  # fmt: skip
    if facts.get("path_length") is not None:
        table.add_row(MOVING["path_length"], number(facts["path_length"]), "", "", "")
    for limit, _, share, proved in _rates(facts):
        table.add_row(
            f"{limit}, share of rounds", number(share), number(proved), "", "" if proved is None else "yes" if share <= proved else "NO",
        )  # fmt: skip
    for name, value in cast(Mapping[str, object], facts.get("measures") or {}).items():
        table.add_row(name, number(value), "", "", "")
    table.add_row("microseconds a round", number(facts["us_per_round"]), "", "", "")
    return table


def _rates(facts: GameLike) -> list[tuple[str, float, float, float | None]]:
    """The limits on how often of a single run: the limit, and its shares of rounds asked, measured and proved."""
    columns = [cast(list[float], facts.get(name) or []) for name in RATES]
    many = len(columns[0])
    if any(isinstance(share, list) for share in columns[1]) or len(columns[1]) != many:  # of several runs
        return []
    return [(f"limit {i} violated" if many > 1 else "limit violated", *each) for i, each in enumerate(zip(*columns, strict=True))]


def game_notes(facts: GameLike) -> list[str]:
    """What a reader of the game's table should be told in words."""
    notes = []
    asked = {share for _, share, _, _ in _rates(facts)}
    if asked:
        shares = ", ".join(f"{100.0 * share:.3g} %" for share in sorted(asked))
        notes.append(f"limit violated: at most {shares} of the rounds were asked for; the bound holds whatever comes")
    if facts["regret_why"]:
        notes.append(f"regret: not known, {facts['regret_why']}")
    if facts["bound_why"]:
        proved = any(facts[bound] is not None for _, bound in BOUNDED)
        notes.append(f"{'bound' if proved else 'no bound'}: {facts['bound_why']}")
    if facts["paper_why"] and facts["paper_why"] != facts["bound_why"]:
        notes.append(f"paper's bound: none, {facts['paper_why']}")
    return notes + [f"warning: {text}" for text in cast(list[str], facts["warnings"])]


# --- several games --------------------------------------------------------------------------------------------------------------------


def comparison_table(rows: Sequence[GameLike], title: str) -> Fitting:
    """Several games side by side, one line each; on a narrow terminal one line for each quantity of a game."""
    return Fitting(_wide(rows, title), _narrow(rows, title))


def comparison_notes(rows: Sequence[GameLike]) -> list[str]:
    """Why a policy does not apply, and which games broke a bound."""
    notes = [f"{row['label']} does not apply to {row['problem']}: {row['does_not_apply']}" for row in rows if row.get("does_not_apply")]
    return notes + _broken(rows, QUANTITIES)


def _broken(rows: Iterable[GameLike], quantities: Iterable[tuple[str, str]]) -> list[str]:
    broken = any(breaks_bound(row, bound) for row in rows for _, bound in quantities)
    return ["!: above its bound, which must not happen"] * broken


def _wide(rows: Sequence[GameLike], title: str) -> Table:
    headings = [heading for measured, _ in QUANTITIES for heading in (_heading(measured), "bound", "paper")]
    table = table_of(title, "problem", "policy", *headings, "us/round")
    last = None
    for row in rows:
        if last not in (None, row["problem"]):
            table.add_section()
        problem, last = str(row["problem"]) if row["problem"] != last else "", row["problem"]
        if row.get("does_not_apply"):
            table.add_row(problem, str(row["label"]), "does not apply")
            continue
        cells = [cell for measured, bound in QUANTITIES for cell in _measured(row, measured, bound)]
        table.add_row(problem, str(row["label"]), *cells, number(row["us_per_round"]))
    return table


def _narrow(rows: Sequence[GameLike], title: str) -> Table:
    table = table_of(title, "policy", "quantity", "measured", "bound", "paper")
    last = None
    for row in rows:
        if row["problem"] != last:
            table.add_section()
            table.add_row(f"[bold]on {row['problem']}[/bold]")
        last = row["problem"]
        if row.get("does_not_apply"):
            table.add_row(str(row["label"]), "does not apply")
            continue
        for i, (measured, bound) in enumerate(QUANTITIES):
            if measured != "interval_violation" or row[bound] is not None:
                table.add_row("" if i else str(row["label"]), _heading(measured), *_measured(row, measured, bound))
    return table


def _heading(measured: str) -> str:
    """The name of a quantity over a column: what bounds it says that it is a violation."""
    return NAMES[measured].removesuffix(" violation")


def _measured(row: GameLike, measured: str, bound: str) -> tuple[str, str, str]:
    """What was measured, with a mark where it is above its bound; the bound; the paper's."""
    return number(row[measured]) + " !" * breaks_bound(row, bound), number(row[bound]), number(row[f"{bound}_paper"])


# --- a ranking ------------------------------------------------------------------------------------------------------------------------


def ranking_table(ranked: list[RankedRow]) -> Fitting:
    """The policies of a comparison in order, for each problem and horizon (see `analysis.ranking`); fewer columns where narrow."""
    return Fitting(_ranking(ranked, bounds=True), _ranking(ranked, bounds=False))


def ranking_notes(ranked: list[RankedRow], rows: list[GameRow]) -> list[str]:
    """What a reader of the ranking should be told in words: what does not apply, what a game warned of, how to read the marks."""
    notes = [f"{RANKING_IN_SHORT}; *: no other policy is better in one and as good in the other; medians over seeds"]
    notes += cost_notes(ranked)
    refused = [(row["label"], row["problem_label"], general_reason_of(row)) for row in rows if row["does_not_apply"]]
    notes += [f"does not apply: {games}: {reason}" for games, reason in _merged(refused)]
    warned = [(row["label"], row["problem_label"], text) for row in rows for text in row["warnings"]]
    notes += [f"warning: {games}: {text}" for games, text in _merged(warned)]
    notes += [f"how often: {text}" for text in rate_notes(rows)]
    return notes + _broken(ranked, BOUNDED)


def _merged(texts: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Texts about policies on problems, each once for all of whom it is true: "a, b on c, d", and the text."""
    where: dict[tuple[str, str], dict[str, None]] = {}
    for label, problem, text in texts:
        where.setdefault((label, text), {})[problem] = None
    who: dict[tuple[str, str], list[str]] = {}
    for (label, text), problems in where.items():
        who.setdefault((", ".join(problems), text), []).append(label)
    return [(f"{', '.join(labels)} on {problems}", text) for (problems, text), labels in who.items()]


def _ranking(ranked: list[RankedRow], bounds: bool) -> Table:
    columns = ["regret", *(["bound"] * bounds), "CCV", *(["bound"] * bounds), "us/round"]
    own = list(dict.fromkeys(name for row in ranked for name in row["measures"]))
    moving = [name for name in MOVING if any(row.get(name) is not None for row in ranked)]
    table = table_of("", "#", "policy", "", *columns)
    for name in (*(MOVING[name] for name in moving), *own):
        table.add_column(name, justify="right", overflow="fold")
    last = None
    for row in ranked:
        place = f"{row['problem_label']}, T = {row['horizon']:,}"
        if place != last:
            table.add_section()
            table.add_row("", f"[bold]{plain_text(place)}[/bold]")
        last = place
        if row["does_not_apply"]:
            table.add_row("-", plain_text(row["label"]), "", "does not apply")
            continue
        cells = []
        values: GameLike = row
        for measured, bound in BOUNDED[:2]:
            cells.append(number(values[measured]) + " !" * breaks_bound(row, bound))
            cells += [number(values[bound])] * bounds
        front = "*" if row["pareto"] else ""
        worth = [*(number(values.get(name)) for name in moving), *(number(row["measures"].get(name)) for name in own)]
        table.add_row(str(row["rank"] or "-"), plain_text(row["label"]), front, *cells, number(row["us_per_round"]), *worth)
    return table
