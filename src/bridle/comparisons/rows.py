"""A row of a comparison: what is known of one cell and of the game that was played for it.

`GameRow` is the one list of a row's columns; files, rankings, tables and charts take theirs from it. None stands for what is not known.
`RankedRow` is what a ranking says of one policy on one problem and horizon, over its seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from types import NoneType, UnionType
from typing import TypedDict, TypeVar, get_args, get_origin, get_type_hints

from bridle.game.summary import BOUNDED


class CellColumns(TypedDict):
    """The cell: what a row says before anything is played, and why nothing was played where that is so."""

    key: str
    problem: str
    problem_label: str
    problem_settings: str
    policy: str
    label: str
    settings: str
    horizon: int
    seed: int
    engine: str
    does_not_apply: str | None


class SizeColumns(TypedDict):
    """The size of the problem."""

    dim: int | None
    constraints: int | None


class RangeColumns(TypedDict):
    """The most that two actions can differ in the cost of a round, and the most that a round can violate; None where not known."""

    cost_range: float | None
    violation_range: float | None


class MovingColumns(TypedDict):
    """Against the best action of each round, and how far these actions move; how far decisions moved; what bounds both."""

    dynamic_regret: float | None
    dynamic_bound: float | None
    path_length: float | None
    movement: float | None
    movement_bound: float | None


class MeasuredColumns(TypedDict):
    """The totals of the game."""

    cost: float | None
    regret: float | None
    ccv: float | None
    ccv_max: float | None
    soft_violation: float | None
    interval_violation: float | None
    squared_ccv: float | None


class RateColumns(TypedDict):
    """Of a policy for limits on how often, for each limit: shares of rounds that were asked for, measured, and proved to be the most."""

    rates_asked: list[float | None]
    rates: list[float | None]
    rates_proved: list[float | None]


class OwnColumns(TypedDict):
    """What the game is worth in the problem's own terms, by name, as one JSON text; None where the problem has no such terms."""

    measures: str | None


class BoundColumns(TypedDict):
    """The bounds: the sharpest proved ones, and the paper's."""

    regret_bound: float | None
    ccv_bound: float | None
    interval_bound: float | None
    soft_bound: float | None
    squared_bound: float | None
    regret_bound_paper: float | None
    ccv_bound_paper: float | None
    interval_bound_paper: float | None


class WhyColumns(TypedDict):
    """Why there is no regret, no dynamic regret or no bound."""

    regret_why: str | None
    dynamic_why: str | None
    bound_why: str | None
    paper_why: str | None


class HoldsColumns(TypedDict):
    """Whether what was measured is within its bound."""

    regret_bound_holds: bool | None
    ccv_bound_holds: bool | None
    interval_bound_holds: bool | None
    soft_bound_holds: bool | None
    squared_bound_holds: bool | None
    dynamic_bound_holds: bool | None
    movement_bound_holds: bool | None


class RunColumns(TypedDict):
    """How the game ran: its speed, and what it warned of."""

    us_per_round: float | None
    seconds: float | None
    warnings: list[str]


class CurveColumns(TypedDict):
    """Totals and bounds at log-spaced rounds."""

    curve_rounds: list[int]
    curve_cost: list[float | None]
    curve_ccv: list[float | None]
    curve_regret: list[float | None] | None
    curve_regret_bound: list[float | None]
    curve_ccv_bound: list[float | None]


class FactColumns(SizeColumns, MeasuredColumns, MovingColumns, RateColumns, OwnColumns, BoundColumns, WhyColumns, HoldsColumns, RunColumns):
    """What a row takes from the summary of its game."""


class GameRow(CellColumns, FactColumns, CurveColumns, RangeColumns):
    """A row, with its columns in order."""

    bridle_version: str


class RankedRow(MeasuredColumns, MovingColumns, BoundColumns, HoldsColumns, RangeColumns):
    """A policy on one problem and horizon: medians over its seeds, and its place among the others.

    `score` is in rounds of the worst kind (`analysis.RANKING`): the larger of `regret_lost` and `ccv_lost`. `native` is the violation
    that the policy's own theorem bounds (`metric`: ccv, soft or interval), `native_bound` its bound.
    """

    problem: str
    problem_label: str
    horizon: int
    label: str
    policy: str
    does_not_apply: str | None
    runs: int
    us_per_round: float | None
    us_per_round_low: float | None
    us_per_round_high: float | None
    regret_low: float | None
    regret_high: float | None
    regret_exponent: float | None
    ccv_low: float | None
    ccv_high: float | None
    ccv_exponent: float | None
    metric: str
    native: float | None
    native_bound: float | None
    rank: int | None
    score: float | None
    regret_lost: float | None
    ccv_lost: float | None
    pareto: bool
    ranked_by: str | None
    measures: dict[str, float | None]


def _kind(hint: object) -> object:
    """The type of a column's values, whether or not they may be None: str, int, float, bool, or a list of one of these."""
    if isinstance(hint, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is list:
        return list[_kind(get_args(hint)[0])]  # type: ignore[misc]
    return hint


COLUMNS: dict[str, object] = {name: _kind(hint) for name, hint in get_type_hints(GameRow).items()}
"""Every column of a row, and the type of its values."""

FACTS = tuple(get_type_hints(FactColumns))
"""The columns that a row takes from the summary of its game."""

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
