"""Tables of games: what came out of one, several side by side, and a ranking of policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from bridle.comparisons.analysis import RANKING_IN_SHORT, RATES, cost_notes, rate_notes
from bridle.comparisons.rows import (
    COLUMNS,
    GameRow,
    RankedRow,
    breaks_bound,
    general_reason_of,
    grouped,
    label_of,
    number_of,
    problem_of,
    reason_of,
)
from bridle.game.summary import BOUNDED
from bridle.showing import NumberStyle, listing, number
from bridle.showing.tables import Cell, Fitting, TextTable, latex

GameLike: TypeAlias = Mapping[str, Any]
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

# --- one game -------------------------------------------------------------------------------------------------------------------------


def game_table(facts: GameLike) -> TextTable:
    """One game: what happened, what was proved, whether it held."""
    rows = [["total cost", number(facts["cost"])]]
    for measured, bound in BOUNDED:
        if measured not in ("dynamic_regret", "movement") or facts[measured] is not None:  # a path is known, and it was kept
            values = [facts[measured], facts[bound], facts.get(f"{bound}_paper")]
            rows.append([NAMES[measured], *map(number, values), _held(facts[f"{bound}_holds"])])
    if facts.get("path_length") is not None:
        rows.append([MOVING["path_length"], number(facts["path_length"])])
    for limit, _, share, proved in _rates(facts):
        holds = None if proved is None else share <= proved
        rows.append([f"{limit}, share of rounds", number(share), number(proved), "", _held(holds)])
    rows += [[name, number(value)] for name, value in (facts.get("measures") or {}).items()]
    rows.append(["microseconds a round", number(facts["us_per_round"])])
    size = f"T = {facts['horizon']:,}, d = {facts['dim']}"
    title = f"{facts['policy']} on {facts['problem']}: {size}, seed {facts['seed']} ({facts['engine']})"
    return TextTable(("quantity", "measured", "bound", "paper's bound", "holds"), rows, title, numeric=1)


def _held(held: object) -> str:
    return "" if held is None else "yes" if held else "NO"


def _rates(facts: GameLike) -> list[tuple[str, float, float, float | None]]:
    """The limits on how often of a single run: the limit, and its shares of rounds asked, measured and proved."""
    columns = [facts.get(name) or [] for name in RATES]
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
    return notes + [f"warning: {text}" for text in facts["warnings"]]


# --- several games --------------------------------------------------------------------------------------------------------------------


def comparison_table(rows: Sequence[GameLike], title: str) -> Fitting:
    """Several games side by side, one line each; on a narrow terminal one line for each quantity of a game."""
    wide, narrow = [], []
    for row in rows:
        place, label = str(row["problem"]), str(row["label"])
        if row.get("does_not_apply"):
            wide.append([place, label, "does not apply"])
            narrow.append([place, label, "does not apply"])
            continue
        cells = {measured: _measured(row, measured, bound) for measured, bound in QUANTITIES}
        wide.append([place, label, *(text for each in cells.values() for text in each), number(row["us_per_round"])])
        shown = [name for name, bound in QUANTITIES if name != "interval_violation" or row[bound] is not None]
        narrow += [[place, "" if i else label, _heading(name), *cells[name]] for i, name in enumerate(shown)]
    headings = [heading for measured, _ in QUANTITIES for heading in (_heading(measured), "bound", "paper")]
    return Fitting(
        TextTable(("problem", "policy", *headings, "us/round"), wide, title, 2, grouped=True),
        TextTable(("problem", "policy", "quantity", "measured", "bound", "paper"), narrow, title, 3, grouped=True),
    )


def comparison_notes(rows: Sequence[GameLike]) -> list[str]:
    """Why a policy does not apply, and which games broke a bound."""
    notes = [f"{row['label']} does not apply to {row['problem']}: {row['does_not_apply']}" for row in rows if row.get("does_not_apply")]
    return notes + _broken(rows, QUANTITIES)


def _broken(rows: Iterable[GameLike], quantities: Iterable[tuple[str, str]]) -> list[str]:
    broken = any(breaks_bound(row, bound) for row in rows for _, bound in quantities)
    return ["!: above its bound, which must not happen"] * broken


def _heading(measured: str) -> str:
    """The name of a quantity over a column: what bounds it says that it is a violation."""
    return NAMES[measured].removesuffix(" violation")


def _measured(row: GameLike, measured: str, bound: str) -> tuple[str, str, str]:
    """What was measured, with a mark where it is above its bound; the bound; the paper's."""
    return number(row[measured]) + " !" * breaks_bound(row, bound), number(row[bound]), number(row[f"{bound}_paper"])


# --- a ranking ------------------------------------------------------------------------------------------------------------------------


class RankedFigure(NamedTuple):
    """A column of figures: its heading, the fact it shows, and whether less is better, so that the least is marked.

    On a page it has so many `digits`, and is `dim` where other columns matter more.
    """

    heading: str
    fact: str
    less: bool = False
    digits: int = 4
    dim: bool = False


REGRET, REGRET_BOUND = RankedFigure("regret", "regret", True), RankedFigure("bound", "regret_bound", dim=True)
CCV, CCV_BOUND = RankedFigure("CCV", "ccv", True), RankedFigure("bound", "ccv_bound", dim=True)
FIGURES = (REGRET, REGRET_BOUND, CCV, CCV_BOUND)
PACE = RankedFigure("us/round", "us_per_round")
PAGE_FIGURES = (
    REGRET,
    REGRET_BOUND,
    RankedFigure("grows like", "regret_exponent"),
    RankedFigure("CCV (hard)", "ccv", True),
    CCV_BOUND,
    RankedFigure("grows like", "ccv_exponent"),
    RankedFigure("dynamic regret", "dynamic_regret"),
    RankedFigure("own metric", "native", dim=True),
    RankedFigure("µs a round", "us_per_round", digits=3),
    RankedFigure("score (rounds)", "score", digits=3, dim=True),
)
"""What a report shows of a policy."""
OWN = {"soft": "soft", "interval": "interval"}
BELOW_ZERO = "below zero: bought with violation, or measured against a weak fixed action; it counts as zero"
CAPTION = (
    "Regret and cumulative constraint violation (CCV), medians over seeds, each beside the bound that is proved. Bold: the least of the "
    "column among policies that no other beats; a regret below zero counts as zero, since it can be bought with violations."
)


def ranking_table(
    ranked: Iterable[RankedRow],
    figures: Sequence[RankedFigure] = (*FIGURES, PACE),
    rank: bool = True,
    front: str = "",
    style: NumberStyle = "table",
) -> TextTable:
    """The policies of a comparison in order, for each problem and horizon (see `analysis.ranking`); the best of a column is bold.

    The column `rank` can be left out; `front` is the mark of a policy that no other beats, where it has a column. On a page a policy that
    does not apply has the reason beside it.
    """
    lines: list[list[str]] = []
    for place, rows in grouped(ranked, lambda row: f"{row['problem_label']}, T = {row['horizon']:,}").items():
        kept = [row for row in rows if row["pareto"]]
        known = {each.fact: [value for row in kept if (value := _counted(row, each)) is not None] for each in figures if each.less}
        best = {fact: min(values) for fact, values in known.items() if values}
        for row in rows:
            label = Cell(row["label"], "best") if row["rank"] == 1 else row["label"]
            cells: list[str] = [_figure(row, each, best, style) for each in figures]
            if row["does_not_apply"]:
                why = f": {''.join(texts(reason_of(row)))}" if style == "page" else ""
                cells = [Cell(f"does not apply{why}", "reason")]
            lines.append([place, *[str(row["rank"] or "-")] * rank, label, *[front * row["pareto"]] * bool(front), *cells])
    columns = ("problem", *["#"] * rank, "policy", *[""] * bool(front), *(each.heading for each in figures))
    return TextTable(columns, lines, numeric=2 + rank + bool(front), grouped=True)


def _counted(row: RankedRow, column: RankedFigure) -> float | None:
    """What counts of a figure: nothing below zero, and no rounding."""
    value = number_of(row, column.fact)
    return None if value is None else 0.0 if value <= 1e-9 * row["horizon"] else value


def _figure(row: RankedRow, column: RankedFigure, best: dict[str, float], style: NumberStyle) -> Cell:
    fact, value = column.fact, number_of({**row["measures"], **row}, column.fact)
    text = number(value, style, column.digits)
    if fact.endswith("_exponent"):
        text = "-" if value is None else f"t^{value:.2f}"
    elif fact == "native":
        bound = "" if row["native_bound"] is None else f" of {number(row['native_bound'], style)}"
        text = f"{text}{bound} {OWN[row['metric']]}" if row["metric"] in OWN else "-"
    first = row["pareto"] and fact in best and _counted(row, column) == best[fact]
    broken = column.less and breaks_bound(row, f"{fact}_bound")
    regret = fact == "regret" or (fact == "dynamic_regret" and row["ranked_by"] == "dynamic regret")
    below = regret and value is not None and value < 0.0 and row["regret_lost"] == 0.0
    looks = {"best": first, "broken": broken, "below-zero": below, "dim": column.dim}
    tip = "above its bound" if broken else BELOW_ZERO if below else ""
    return Cell(text + " !" * broken, *(look for look, there in looks.items() if there), tip=tip)


def terminal_ranking(ranked: list[RankedRow]) -> Fitting:
    """The ranking for the terminal, with what else was measured; without the bounds where it is narrow."""
    more = [RankedFigure(heading, name) for name, heading in MOVING.items() if any(row.get(name) is not None for row in ranked)]
    more += [RankedFigure(name, name) for name in dict.fromkeys(name for row in ranked for name in row["measures"])]
    alone = tuple(each for each in FIGURES if each.less)
    return Fitting(*(ranking_table(ranked, (*figures, PACE, *more), front="*") for figures in (FIGURES, alone)))


def latex_ranking(ranked: Iterable[RankedRow], caption: str | None = None, label: str | None = None, floating: bool = True) -> str:
    """The ranking as a table for ``\\usepackage{booktabs}``."""
    text = latex(ranking_table(ranked, rank=False))
    if floating:
        above = rf"\caption{{{CAPTION if caption is None else caption}}}" + (f"\n\\label{{{label}}}" if label else "")
        text = "\n".join([r"\begin{table}", r"\centering", above, text, r"\end{table}"])
    return f"% \\usepackage{{booktabs}}\n{text}\n"


def ranking_notes(ranked: list[RankedRow], rows: list[GameRow]) -> list[str]:
    """What a reader of the ranking should be told in words: what does not apply, what a game warned of, how to read the marks."""
    notes = [f"{RANKING_IN_SHORT}; *: no other policy is better in one and as good in the other; medians over seeds"]
    notes += cost_notes(ranked)
    notes += merged(rows, general_reason_of, "does not apply: {who}: {text}")
    notes += merged(rows, lambda row: row.get("warnings"), "warning: {who}: {text}")
    notes += [f"how often: {text}" for text in rate_notes(rows)]
    return notes + _broken(ranked, BOUNDED)


def merged(rows: Iterable[GameRow], told: Callable[[GameRow], object], sentence: str, place: bool = True) -> list[str]:
    """What is `told` of rows, a text or several, each once as a sentence with `{text}` and all of `{who}` it is true of.

    They are policies "on" their problems, or without the `place` policies alone.
    """
    where: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        for text in texts(told(row)):
            where.setdefault((label_of(row), text), {})[problem_of(row)] = None
    who: dict[tuple[str, str], list[str]] = {}
    for (label, text), problems in where.items():
        who.setdefault((", ".join(problems) if place else "", text), []).append(label)
    names = {key: f"{', '.join(labels)} on {key[0]}" if place else listing(labels) for key, labels in who.items()}
    return [sentence.format(who=name, text=text) for (_, text), name in names.items()]


def texts(told: object) -> list[str]:
    """The texts that there are, of one or of several, without the stop at their end."""
    several = told if isinstance(told, (list, tuple)) else [told]
    return [str(text).strip().rstrip(".") for text in several if text]
