"""What a grid of games says: medians and bands over seeds, growth exponents, and who did best on each problem."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np

from bridle import policies
from bridle.comparisons.rows import (
    BOUND_OF_METRIC,
    MEDIANS,
    RANGES,
    GameRow,
    RankedRow,
    finite,
    grouped,
    horizon_of,
    label_engines,
    label_of,
    number_of,
    problem_of,
)
from bridle.showing.marks import PowerLaw as PowerLaw

LOW, HIGH = 0.1, 0.9
"""The quantiles over seeds that a band reaches between."""


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
    logs = [(log(t), log(value)) for t, value in points if value is not None and value > 0.0 and t > 0.0]
    if len(logs) < len(points) or len({t for t, _ in logs}) < 2:
        return None
    t, value = np.array(logs).T
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


def band(rows: Iterable[GameRow], quantity: str = "regret") -> Band:
    """The curves of one policy on one problem and horizon, over its seeds; `quantity` is regret, ccv, cost, regret_bound or ccv_bound.

    Seeds without such a curve do not count; where seeds have curves at different rounds, only the rounds that all have are kept.

    >>> seeds = [{"curve_rounds": [1, 10], "curve_ccv": [0.0, value]} for value in (2.0, 4.0, 9.0)]
    >>> band(seeds, "ccv").median
    [0.0, 4.0]
    """
    curves = [curve for row in rows if (curve := _curve(row, quantity)) is not None]
    rounds = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    if all(curve[t] is not None for curve in curves for t in rounds) and rounds:  # all at once: a report holds many thousands of these
        values = np.array([[curve[t] for t in rounds] for curve in curves])
        low, median, high = np.quantile(values, [LOW, 0.5, HIGH], axis=0).tolist()
    else:
        spread = [quantiles(curve[t] for curve in curves) for t in rounds]
        low, median, high = (list(part) for part in zip(*spread, strict=True)) if spread else ([], [], [])
    return Band(rounds, low, median, high, len(curves))


def _curve(row: GameRow, quantity: str) -> dict[int, float | None] | None:
    """A game's curve by round; None where it has none, or knows nothing of it."""
    rounds, values = row.get("curve_rounds"), row.get(f"curve_{quantity}")
    if rounds is None or values is None or all(finite(value) is None for value in values):
        return None
    return {int(t): finite(value) for t, value in zip(rounds, values, strict=True)}


RANKING = (
    "Regret and CCV are both counted in rounds of the worst kind: regret over the most that two actions can differ in the cost of one "
    "round, CCV over the most that one round can violate. A policy's score is the larger of the two, and the lowest score is first: little "
    "regret does not pay for violation, nor the other way round. Equal scores go by CCV, then by regret. A regret below zero counts as "
    "zero: it is bought with violation, or the fixed action that it is measured against is weak, and it earns nothing. Where the regret of "
    "some policy is not known, dynamic regret takes its place for all, where that is known; else the total cost above the lowest does: "
    "then what is bought with violation counts."
)
"""How policies are ranked: the one wording of it."""

RANKING_IN_SHORT = "best first, by the worse of regret and CCV, both counted in rounds of the worst kind; regret below zero counts as zero"


def ranking(rows: Iterable[GameRow]) -> list[RankedRow]:
    """Who did best: for each problem and horizon, a row for each policy with its medians over seeds, best first.

    `RANKING` says how, in the words that tables, pages and the documentation show. CCV is the hard violation, the same for every policy
    whatever its theorem is about. Rounding counts as zero: a regret below 1e-6 of the total cost, to which the best action is found, or
    of a round of the worst kind, and a CCV below 1e-9 of the worst kind a round. Where the regret of some policy is not known, dynamic
    regret takes its place for all of them, or else the total cost above the lowest (`ranked_by`). Where a problem does not say how large a
    round can be (`cost_range` and `violation_range` of its rows), regret and CCV are compared as they are.

    So the order does not depend on the units of costs or constraints; no policy stands above one that is at least as good in both and
    better in one; and where every regret, or every dynamic regret, is known, which of two policies is better depends on nobody else.

    `pareto` says that no other policy is at least as good in both and better in one. A policy that does not apply comes last, with the
    reason.

    >>> games = [{"problem": "p", "policy": name, "horizon": 9, "cost": 0.0, "regret": r, "ccv": v} for name, r, v in
    ...          (("bold", -5.0, 30.0), ("wise", 0.0, 2.0), ("shy", 8.0, 0.0))]
    >>> [(row["rank"], row["label"], row["pareto"]) for row in ranking(games)]
    [(1, 'wise', True), (2, 'shy', True), (3, 'bold', False)]
    >>> [row["score"] for row in ranking(games)]
    [2.0, 8.0, 30.0]
    """
    ranked: list[RankedRow] = []
    for games in grouped(label_engines(rows), problem_of).values():
        for _, own in sorted(grouped(games, horizon_of).items()):
            ranked += _ranked([_medians(label, runs) for label, runs in grouped(own, label_of).items()])
    return ranked


def cost_notes(ranked: Iterable[RankedRow]) -> list[str]:
    """Where policies are ranked by something else in place of regret: a sentence for each problem and horizon."""
    others = (row for row in ranked if row["ranked_by"] in IN_PLACE)
    places = grouped(others, lambda row: (problem_of(row), horizon_of(row), row["ranked_by"]))
    return [f"{problem}, T = {T:,}: {IN_PLACE[str(by)]}" for problem, T, by in places]


BY_PATH = "not every regret is known, so policies are ranked by dynamic regret, and CCV; dynamic regret below zero counts as zero"
BY_COST = "not every regret is known, so policies are ranked by total cost above the lowest, and CCV; cost that violation saves counts"
IN_PLACE = {"dynamic regret": BY_PATH, "cost": BY_COST}
"""What is said where policies are ranked by something else than regret."""


def quantiles(values: Iterable[object]) -> tuple[float | None, float | None, float | None]:
    """The quantiles `LOW`, a half and `HIGH` of the numbers among the values."""
    numbers = [value for value in map(finite, values) if value is not None]
    if not numbers:
        return None, None, None
    low, median, high = np.quantile(numbers, [LOW, 0.5, HIGH])
    return float(low), float(median), float(high)


def _medians(label: str, runs: list[GameRow]) -> RankedRow:
    """One policy on one problem and horizon, over its seeds; it has no rank yet."""
    played = [run for run in runs if not run.get("does_not_apply")]
    first = (played or runs)[0]
    facts: dict[str, object] = {name: quantiles(number_of(run, name) for run in played)[1] for name in MEDIANS}
    for name in ("regret", "ccv", "us_per_round"):
        facts[f"{name}_low"], _, facts[f"{name}_high"] = quantiles(number_of(run, name) for run in played)
    for _, bound in BOUND_OF_METRIC.values():
        flag = f"{bound}_holds"
        holds = [held for run in played if (held := run.get(flag)) is not None]
        facts[flag] = all(holds) if holds else None
    metric = policies.entry(first["policy"]).metric if policies.known(first["policy"]) else "ccv"
    measured, bound = BOUND_OF_METRIC[metric]
    row: RankedRow = facts | {
        "problem": first["problem"], "problem_label": problem_of(first), "horizon": horizon_of(first), "label": label,
        "policy": first["policy"], "does_not_apply": None if played else str(first["does_not_apply"]), "runs": len(played),
        "metric": metric, "native": facts[measured], "native_bound": facts[bound], "rank": None, "score": None, "regret_lost": None,
        "ccv_lost": None, "pareto": False,
        "ranked_by": None, "measures": _own_medians(played),
    }  # fmt: skip
    regret, violation = _beyond_rounding(row)
    row["regret_exponent"] = _median_exponent(played, "regret") if regret else None
    row["ccv_exponent"] = _median_exponent(played, "ccv") if violation else None
    return row


def _own_medians(runs: list[GameRow]) -> dict[str, float | None]:
    """The medians of what games are worth in the problem's own terms."""
    each: list[dict[str, object]] = [json.loads(run.get("measures") or "{}") for run in runs]
    return {name: quantiles(one.get(name) for one in each)[1] for name in dict.fromkeys(name for one in each for name in one)}


def _median_exponent(runs: list[GameRow], quantity: str) -> float | None:
    curve = band(runs, quantity)
    return exponent(curve.rounds, curve.median)


def _beyond_rounding(row: RankedRow) -> tuple[float | None, float | None]:
    """Regret, the dynamic one where policies are ranked by it, and CCV with what is only rounding set to 0."""
    regret, violation = row["dynamic_regret"] if row["ranked_by"] == "dynamic regret" else row["regret"], row["ccv"]
    worst_cost, worst_violation = (unit([row], name) for name in RANGES)
    return (
        None if regret is None else regret if abs(regret) > 1e-6 * max(worst_cost, abs(row["cost"] or 0.0)) else 0.0,
        None if violation is None else violation if violation > 1e-9 * worst_violation * row["horizon"] else 0.0,
    )


def _ranked(contenders: list[RankedRow]) -> list[RankedRow]:
    """The policies of one problem and horizon in order, with `rank`, `score`, `pareto` and `ranked_by` filled in."""
    measured = [(row, cost) for row in contenders if (cost := row["cost"]) is not None and row["ccv"] is not None]
    known = [all(row.get(name) is not None for row, _ in measured) for name in ("regret", "dynamic_regret")]
    by = "regret" if known[0] else "dynamic regret" if known[1] else "cost"
    for row, _ in measured:
        row["ranked_by"] = by
    lowest = min((cost for _, cost in measured), default=0.0)
    scores = [(cost, *_beyond_rounding(row)) for row, cost in measured]
    pairs = [(cost - lowest if by == "cost" else regret, violation) for cost, regret, violation in scores]
    values = np.array(pairs, dtype=float).reshape(-1, 2)
    losses = np.maximum(values, 0.0) / [unit([row for row, _ in measured], name) for name in RANGES]
    orders = [(float(max(loss)), float(loss[1]), float(loss[0])) for loss in losses]
    for (row, _), order, own in zip(measured, orders, losses, strict=True):
        beaten = ((losses <= own).all(axis=1) & (losses < own).any(axis=1)).any()
        row["rank"], row["score"] = 1 + sum(other < order for other in orders), order[0]
        row["pareto"] = not bool(beaten)
        row["regret_lost"], row["ccv_lost"] = map(float, own)
    last = 1 + len(contenders)
    return sorted(contenders, key=lambda row: (row["rank"] or last, row["does_not_apply"] is not None))


def unit(rows: Iterable[Mapping[str, object]], name: str) -> float:
    """The median of `cost_range` or `violation_range` over rows of one problem; 1 where it is not known of each, or is 0."""
    sizes = [number_of(row, name) for row in rows]
    known = [size for size in sizes if size is not None and size > 0.0]
    return float(np.median(known)) if known and len(known) == len(sizes) else 1.0


def rate_notes(rows: Iterable[GameRow]) -> list[str]:
    """How often limits were violated, for policies that keep a share: what was asked, measured (medians over seeds) and proved."""
    notes = []
    games = [row for row in rows if row.get("rates_asked")]
    for (problem, horizon, label), runs in grouped(games, lambda row: (problem_of(row), horizon_of(row), label_of(row))).items():
        many = len(runs[0]["rates_asked"])
        medians = [[quantiles(row[name][i] for row in runs)[1] for name in RATES] for i in range(many)]
        each = [rate_sentence(f"limit {i}" if many > 1 else "the limit", *shares) for i, shares in enumerate(medians)]
        notes.append(f"{label} on {problem}, T = {horizon:,}: {'; '.join(each)}")
    return notes


RATES = ("rates_asked", "rates", "rates_proved")


def rate_sentence(limit: str, asked: float | None, measured: float | None, proved: float | None) -> str:
    """A limit on how often, in words.

    >>> rate_sentence("the limit", 0.05, 0.0505, None)
    'the limit was violated in 5.05 % of the rounds (5 % asked, nothing proved without a safe action)'
    """
    most = "nothing proved without a safe action" if proved is None else f"at most {_percent(proved)} whatever had come"
    return f"{limit} was violated in {_percent(measured)} of the rounds ({_percent(asked)} asked, {most})"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100.0 * share:.3g} %"
