"""A row of a comparison: what is known of one cell and of the game that was played for it.

`COLUMNS` is the one list of a row's columns; files, rankings, tables and charts take theirs from it. None stands for what is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, TypeAlias, TypeVar

from bridle.game.summary import BOUNDED

GameRow: TypeAlias = dict[str, Any]
"""A row: the columns of `COLUMNS` by name."""

RankedRow: TypeAlias = dict[str, Any]
"""A policy on one problem and horizon, over its seeds, and its place among the others.

It has `problem`, `problem_label`, `horizon`, `label`, `policy`, `does_not_apply` and `runs` (how many seeds were played); the medians of
`MEDIANS`, with `..._low` and `..._high` of regret, ccv and us_per_round; the exponents of growth, `regret_exponent` and `ccv_exponent`;
and `..._holds` of every bound. `score` is in rounds of the worst kind (`analysis.RANKING`): the larger of `regret_lost` and `ccv_lost`;
`rank` and `pareto` come of it, and `ranked_by` says what stands for regret. `native` is the violation that the policy's own theorem bounds
(`metric`: ccv, soft or interval), `native_bound` its bound. `measures` is what games are worth in the problem's own terms.
"""

RANGES = ("cost_range", "violation_range")
"""The most that two actions can differ in the cost of a round, and the most that a round can violate; None where not known."""

TOTALS = (
    "cost", "regret", "ccv", "ccv_max", "soft_violation", "interval_violation", "squared_ccv",
    "dynamic_regret", "dynamic_bound", "path_length", "movement", "movement_bound",
)  # fmt: skip
"""The totals of a game; and against the best action of each round, how far those move, and how far decisions did."""

BOUNDS = (
    "regret_bound", "ccv_bound", "interval_bound", "soft_bound", "squared_bound",
    "regret_bound_paper", "ccv_bound_paper", "interval_bound_paper",
)  # fmt: skip
"""The sharpest proved bounds, and the paper's."""

FACT_COLUMNS: dict[str, object] = {
    **dict.fromkeys(("dim", "constraints"), int),
    **dict.fromkeys(TOTALS, float),
    **dict.fromkeys(("rates_asked", "rates", "rates_proved"), list[float]),  # of a policy for limits on how often, for each limit
    "measures": str,  # what the game is worth in the problem's own terms, by name, as one JSON text
    **dict.fromkeys(BOUNDS, float),
    **dict.fromkeys(("regret_why", "dynamic_why", "bound_why", "paper_why"), str),
    **{f"{bound}_holds": bool for _, bound in BOUNDED},
    **dict.fromkeys(("us_per_round", "seconds"), float),
    "warnings": list[str],
}
"""The columns that a row takes from the summary of its game, and the type of their values."""

COLUMNS: dict[str, object] = {
    **dict.fromkeys(("key", "problem", "problem_label", "problem_settings", "policy", "label", "settings"), str),
    **dict.fromkeys(("horizon", "seed"), int),
    **dict.fromkeys(("engine", "does_not_apply"), str),
    **FACT_COLUMNS,
    "curve_rounds": list[int],  # log-spaced
    **dict.fromkeys(("curve_cost", "curve_ccv", "curve_regret", "curve_regret_bound", "curve_ccv_bound"), list[float]),
    **dict.fromkeys(RANGES, float),
    "bridle_version": str,
}
"""Every column of a row, and the type of its values."""

MEDIANS = (*TOTALS, *BOUNDS, *RANGES, "us_per_round")
"""The facts of which a ranking holds the median over seeds."""

BOUND_OF_METRIC = {bound.removesuffix("_bound"): (measured, bound) for measured, bound in BOUNDED}
"""What is measured and its bound, by the registry's name for the metric: ccv, soft, interval; and regret and squared."""


# --- what rows are asked --------------------------------------------------------------------------------------------------------------

Item = TypeVar("Item")
Key = TypeVar("Key")


def problem_of(row: Mapping[str, object]) -> str:
    """The problem with its settings, as people read it."""
    return str(row.get("problem_label") or row["problem"])


def label_of(row: Mapping[str, object]) -> str:
    """The policy with its settings, as people read it."""
    return str(row.get("label") or row["policy"])


def horizon_of(row: GameRow | RankedRow) -> int:
    """T."""
    return int(row["horizon"])


def number_of(row: Mapping[str, object], name: str) -> float | None:
    """A number of a row by the name of its column; None where it is missing, or not finite."""
    return finite(row.get(name))


def breaks_bound(row: Mapping[str, object], bound: str) -> bool:
    """Whether what was measured is above this bound, which must not happen."""
    return row.get(f"{bound}_holds") is False


def reason_of(row: GameRow | RankedRow) -> str:
    """Why the policy does not apply, without the name of the policy; empty where it applies."""
    return str(row.get("does_not_apply") or "").removeprefix(f"policy {row['policy']} does not apply: ")


def general_reason_of(row: GameRow | RankedRow) -> str:
    """Why the policy does not apply, in words that fit every problem to which it does not for this reason."""
    return reason_of(row).replace(f"problem {row['problem']}", "the problem")


def finite(value: object) -> float | None:
    """A finite number as a float, else None."""
    if value is None or isinstance(value, (bool, str)):
        return None
    number = float(value)  # type: ignore[arg-type]
    return number if isfinite(number) else None


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items by what `key` says of each, in order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def label_engines(rows: Iterable[GameRow]) -> list[GameRow]:
    """The rows with the engine in a policy's label where the policy was played by more than one: their speeds must not be mixed."""
    rows = list(rows)
    several = {label for label, games in grouped(rows, label_of).items() if len({game.get("engine") for game in games}) > 1}
    return [{**row, "label": f"{label_of(row)} ({row.get('engine')})"} if label_of(row) in several else row for row in rows]
