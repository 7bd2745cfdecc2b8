"""What a grid of games says: medians and bands over seeds, growth exponents, and who did best on each problem.

A row is what is known of one game of the grid: its problem, policy, horizon and seed, the facts of `report.summary`, and curves at
log-spaced rounds (`curve_rounds`, `curve_regret`, ...). None stands for what is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import exp, isfinite, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from bridle import policies

Row = dict[str, Any]

LOW, HIGH = 0.1, 0.9
"""The quantiles over seeds that a band reaches between."""

MEDIANS = (
    "cost", "regret", "ccv", "ccv_max", "soft_violation", "interval_violation", "squared_ccv", "regret_bound", "ccv_bound",
    "soft_bound", "interval_bound", "squared_bound", "regret_bound_paper", "ccv_bound_paper", "interval_bound_paper", "us_per_round",
)  # fmt: skip
"""The facts of which a ranking holds the median over seeds."""

NATIVE = {
    "ccv": ("ccv", "ccv_bound"), "soft": ("soft_violation", "soft_bound"), "interval": ("interval_violation", "interval_bound"),
}  # fmt: skip
"""The violation that a policy's theorem is about, by the registry's name for it: the fact that is measured, and its bound."""


class PowerLaw(NamedTuple):
    """The line factor * t^exponent through a curve, fitted to the rounds from `first` to `last`."""

    factor: float
    exponent: float
    first: float
    last: float

    def at(self, t: float) -> float:
        """The fitted value at round t."""
        return float(self.factor * t**self.exponent)


def power_law(rounds: Sequence[float], values: Sequence[float | None], since: float | None = None) -> PowerLaw | None:
    """The power law of a curve by least squares of log(value) on log(round).

    Only rounds from `since` on count. It is sqrt(T) unless given, T being the last round: the right half of a logarithmic axis, where a
    curve has left its start behind. None where a value there is missing or not above zero, or where fewer than two rounds are left.

    >>> law = power_law([1, 10, 100, 1000, 10000], [50.0, 30.0, 20.0, 63.2, 200.0])
    >>> round(law.exponent, 3), law.first, law.last, round(law.at(1e6))
    (0.5, 100.0, 10000.0, 2000)
    """
    if not len(rounds):
        return None
    begin = sqrt(float(max(rounds))) if since is None else since
    # sqrt(T) may be a whole round, which rounding must not leave out.
    points = [(float(t), finite(value)) for t, value in zip(rounds, values, strict=True) if t >= begin * (1.0 - 1e-12)]
    known = [(log(t), log(value)) for t, value in points if value is not None and value > 0.0 and t > 0.0]
    if len(known) < len(points) or len({t for t, _ in known}) < 2:
        return None
    t, value = np.array(known).T
    away = t - t.mean()
    slope = float(away @ value / (away @ away))
    return PowerLaw(exp(float(value.mean() - slope * t.mean())), slope, points[0][0], points[-1][0])


def exponent(rounds: Sequence[float], values: Sequence[float | None], since: float | None = None) -> float | None:
    """The exponent of the `power_law` of a curve: one that grows like t^c gives c; None where there is none.

    >>> round(exponent([10, 100, 1000], [1.0, 2.0, 4.0]), 3)
    0.301
    >>> exponent([1, 10, 100], [1.0, 2.0, -3.0]) is None
    True
    """
    law = power_law(rounds, values, since)
    return None if law is None else law.exponent


class Band(NamedTuple):
    """A curve over seeds: the median at each round, and the quantiles `LOW` and `HIGH` on either side; None where nothing is known."""

    rounds: list[int]
    low: list[float | None]
    median: list[float | None]
    high: list[float | None]
    runs: int


def band(rows: Iterable[Row], quantity: str = "regret") -> Band:
    """The curves of one policy on one problem and horizon, over its seeds; `quantity` is regret, ccv, cost, regret_bound or ccv_bound.

    Seeds without such a curve do not count; where seeds have curves at different rounds, only the rounds that all have are kept.

    >>> seeds = [{"curve_rounds": [1, 10], "curve_ccv": [0.0, value]} for value in (2.0, 4.0, 9.0)]
    >>> band(seeds, "ccv").median
    [0.0, 4.0]
    """
    curves = []
    for row in rows:
        times, values = row.get("curve_rounds"), row.get(f"curve_{quantity}")
        if times is not None and values is not None and any(finite(value) is not None for value in values):
            curves.append({int(t): finite(value) for t, value in zip(times, values, strict=True)})
    rounds = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    if all(curve[t] is not None for curve in curves for t in rounds) and rounds:  # all at once: a report holds many thousands of these
        values = np.array([[curve[t] for t in rounds] for curve in curves])
        low, median, high = np.quantile(values, [LOW, 0.5, HIGH], axis=0).tolist()
    else:
        spread = [_quantiles([curve[t] for curve in curves]) for t in rounds]
        low, median, high = (list(part) for part in zip(*spread, strict=True)) if spread else ([], [], [])
    return Band(rounds, low, median, high, len(curves))


def ranking(rows: Iterable[Row]) -> list[Row]:
    """Who did best: for each problem and horizon, a row for each policy with its medians over seeds, best first.

    A policy's score is its regret over the typical regret plus its CCV over the typical CCV, and the lowest score is first. Typical is
    the median size, whatever its sign, over the policies where it is not zero. CCV is the hard violation, the same for every policy
    whatever its theorem is about. Equal scores are told apart by CCV; policies that are equal in that too share a rank. A regret at or
    below zero counts as zero: to beat the best fixed feasible action by violating the constraints earns nothing. So do a regret below
    1e-6 of the total cost, to which the best action is found, and a CCV below 1e-9 a round, which is rounding. Where the regret of some
    policy is not known, the total cost above the lowest takes its place for all of them (`ranked_by`).

    `pareto` says that no other policy is at least as good in both and better in one. A policy that does not apply comes last, with the
    reason. `native` is the violation that the policy's own theorem bounds (`metric`: ccv, soft or interval), `native_bound` its bound.

    >>> games = [{"problem": "p", "policy": name, "horizon": 9, "cost": 0.0, "regret": r, "ccv": v} for name, r, v in
    ...          (("bold", -5.0, 30.0), ("wise", 0.0, 2.0), ("shy", 8.0, 0.0))]
    >>> [(row["rank"], row["label"], row["pareto"]) for row in ranking(games)]
    [(1, 'wise', True), (2, 'shy', True), (3, 'bold', False)]
    """
    ranked: list[Row] = []
    for cells in grouped(told_apart(rows), problem_of).values():
        for _, games in sorted(grouped(cells, horizon_of).items()):
            ranked += _ranked([_medians(label, runs) for label, runs in grouped(games, label_of).items()])
    return ranked


def grouped(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """The rows by what `key` says of each, in order of first appearance."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def told_apart(rows: Iterable[Row]) -> list[Row]:
    """The rows with the engine in a policy's label where the policy was played by more than one: their speeds must not be mixed."""
    rows = list(rows)
    several = {label for label, games in grouped(rows, label_of).items() if len({game.get("engine") for game in games}) > 1}
    return [row | {"label": f"{label_of(row)} ({row.get('engine')})"} if label_of(row) in several else row for row in rows]


def problem_of(row: Row) -> str:
    """The problem with what it was given, as people read it."""
    return str(row.get("problem_label") or row["problem"])


def label_of(row: Row) -> str:
    """The policy with what it was given, as people read it."""
    return str(row.get("label") or row["policy"])


def horizon_of(row: Row) -> int:
    """T."""
    return int(row["horizon"])


def finite(value: Any) -> float | None:
    """A finite number as a float, else None."""
    if value is None or isinstance(value, (bool, str)):
        return None
    return float(value) if isfinite(value) else None


def _quantiles(values: Iterable[Any]) -> tuple[float | None, float | None, float | None]:
    known = [value for value in map(finite, values) if value is not None]
    if not known:
        return None, None, None
    low, median, high = np.quantile(known, [LOW, 0.5, HIGH])
    return float(low), float(median), float(high)


def _medians(label: str, runs: list[Row]) -> Row:
    """One policy on one problem and horizon, over its seeds."""
    played = [run for run in runs if not run.get("does_not_apply")]
    first = (played or runs)[0]
    facts: Row = {"problem": first["problem"], "problem_label": problem_of(first), "horizon": horizon_of(first), "rank": None}
    facts |= {"label": label, "policy": first["policy"]}
    facts |= {name: _quantiles(run.get(name) for run in played)[1] for name in MEDIANS}
    for name in ("regret", "ccv", "us_per_round"):
        facts[f"{name}_low"], _, facts[f"{name}_high"] = _quantiles(run.get(name) for run in played)
    for name in ("regret", "ccv", "soft", "interval", "squared"):
        held = [run[f"{name}_bound_holds"] for run in played if run.get(f"{name}_bound_holds") is not None]
        facts[f"{name}_bound_holds"] = all(held) if held else None
    for name, score in zip(("regret", "ccv"), _settled(facts), strict=True):
        curve = band(played, name)
        facts[f"{name}_exponent"] = exponent(curve.rounds, curve.median) if score else None
    metric = policies.entry(first["policy"]).metric if first["policy"] in policies.names() else "ccv"
    measured, bound = NATIVE[metric]
    facts |= {"metric": metric, "native": facts[measured], "native_bound": facts[bound], "runs": len(played), "pareto": False}
    return facts | {"does_not_apply": None if played else str(first["does_not_apply"]), "score": None, "ranked_by": None}


def _settled(row: Row) -> tuple[float | None, float | None]:
    """Regret and CCV with what is only rounding set to 0."""
    regret, violation = row["regret"], row["ccv"]
    return (
        None if regret is None else regret if abs(regret) > 1e-6 * max(1.0, abs(row["cost"] or 0.0)) else 0.0,
        None if violation is None else violation if violation > 1e-9 * row["horizon"] else 0.0,
    )


def _ranked(contenders: list[Row]) -> list[Row]:
    """The policies of one problem and horizon in order, with `rank`, `score`, `pareto` and `ranked_by` filled in."""
    there = [row for row in contenders if row["cost"] is not None and row["ccv"] is not None]
    by = "cost" if any(row["regret"] is None for row in there) else "regret"
    lowest = min((row["cost"] for row in there), default=0.0)
    pairs = [(row["cost"] - lowest if by == "cost" else regret, violation) for row in there for regret, violation in [_settled(row)]]
    values = np.array(pairs, dtype=float).reshape(-1, 2)
    sizes, shares = np.abs(values), np.maximum(values, 0.0)
    typical = [np.median(size[size > 0.0]) if size.any() else 1.0 for size in sizes.T]
    orders = [(float(score), float(own[1])) for score, own in zip((shares / typical).sum(axis=1), shares, strict=True)]
    for row, order, own in zip(there, orders, shares, strict=True):
        beaten = ((shares <= own).all(axis=1) & (shares < own).any(axis=1)).any()
        row |= {"rank": 1 + sum(other < order for other in orders), "score": order[0], "pareto": not bool(beaten), "ranked_by": by}
    last = 1 + len(contenders)
    return sorted(contenders, key=lambda row: (row["rank"] or last, row["does_not_apply"] is not None))
