"""The reports on limits on rates: their numbers, and one sentence for people."""

from __future__ import annotations

from math import exp
from typing import Any, TypeAlias

import numpy as np

from bridle.adapters.alert_budget import BudgetLevel, BudgetState
from bridle.adapters.levels import NAMES, DebtState, RateLevel, least_debt, most_debt
from bridle.adapters.limit_report import LimitReport, short

QUIET = 1000
"""After so many rows without an alarm, a precision is said to be starved."""

FIRST, AFTER_BUDGET = "this one has priority and is tracked", "this one has priority, after the budget of alarms"
"""What is said of the limit that comes before other rates."""

UNSAFE = "not bounded, because even the safe action can violate it"
"""What is said of a rate of the user's own whose safe action violates in rows that count."""

Others: TypeAlias = tuple[float, float, float, tuple[float, ...], float]
"""Rows, the row of the last alarm, rows in conflict, the table of alarms and labels, and the common threshold."""

ASKED_AT_LEAST = ("recall", "recall of the first class", "precision")

PRICES = {
    "recall": "false alarms for one more positive",
    "recall of the first class": "missed positives for one false alarm fewer",
    "false positive rate": "positives found by one more false alarm",
    "alert rate": "chance that one more alarm is a positive",
    "precision": "positives found by one more false alarm",
}


def rates_seen(table: tuple[float, ...]) -> dict[str, float | None]:
    """Recall, false positive rate, alert rate and precision over all rows whose labels have come; None where nothing counts."""
    hits, misses, false_alarms, quiet = table

    def share(part: float, whole: float) -> float | None:
        return part / whole if whole else None

    return {
        "recall": share(hits, hits + misses),
        "false positive rate": share(false_alarms, false_alarms + quiet),
        "alert rate": share(hits + false_alarms, sum(table)),
        "precision": share(hits, hits + false_alarms),
    }


def rate_report(level: RateLevel, state: DebtState, first: str, several: bool, others: Others) -> LimitReport:
    """What became of one limit on a rate; `first` says so where it has priority."""
    rows, last_alarm, conflicts, table, th = others
    name, share, eta = NAMES[int(level.rate.kind)], level.share, level.eta
    n, violated, open = float(state.level.counted), float(state.level.violated), float(state.waiting.most)
    least = name in ASKED_AT_LEAST
    excused = float(state.level.unavoidable) * (1.0 - share)
    most = most_debt(share, eta, open) + excused

    def turned(rate: float) -> float:
        return 1.0 - rate if least else rate

    measured = recent = proved = None
    if n:
        measured = turned(violated / n)
        length, marks = state.recent.since(n)
        recent = turned((violated - float(marks[0])) / length) if length else measured
        high = _clip(share + most / n) if level.rate.capped else 1.0
        low = _clip(share + least_debt(share, eta, open) / n) if level.two_sided else 0.0
        if level.rate.capped or level.two_sided:
            proved = (turned(high), turned(low)) if least else (low, high)
    broken, debt = float(state.broken), float(level.debt(state))
    holds = bool(n) and violated <= (1.1 * share) * n
    seen: dict[str, Any] = {
        **{key: value for key, value in rates_seen(table).items() if key != name},
        "debt": debt,
        "violated": violated,
        "threshold": th,
        "conflict": conflicts / rows if rows else 0.0,
        "overruled": float(state.level.unavoidable),
    }
    return LimitReport(
        name,
        "at least" if least else "at most",
        turned(share),
        measured,
        recent,
        proved,
        "no row has counted yet" if not n else "" if level.rate.capped else UNSAFE,
        _price(name, th) if n and name in PRICES else None,
        PRICES.get(name, ""),
        int(broken) + 1 if holds else None,
        int(n),
        int(state.waiting.now),
        _rate_words(name, n, measured, rows, last_alarm, first, several, seen, level, most),
        seen,
    )


def _price(name: str, th: float) -> float | None:
    """At the margin, by the model's own probability at the threshold p = sig(th)."""
    if not np.isfinite(th):
        return None
    odds = exp(min(max(th, -700.0), 700.0))  # of a positive at the threshold
    return 1.0 / odds if name == "recall" else odds / (1.0 + odds) if name == "alert rate" else odds


def _rate_words(
    name: str,
    n: float,
    measured: float | None,
    rows: float,
    last_alarm: float,
    first: str,
    several: bool,
    seen: dict[str, Any],
    level: RateLevel,
    most: float,
) -> str:
    if name == "precision" and rows - last_alarm >= QUIET:
        since = f"since row {int(last_alarm):,}" if last_alarm else "yet"
        return f"no alarms {since}, precision cannot be measured"
    if measured is None:
        return {"recall": "no positive has come yet", "precision": "no alarm has been given yet"}.get(name, "no row has counted yet")
    if several and seen["conflict"] > 0.0:
        others = ", ".join(f"{key} {short(value)}" for key, value in seen.items() if key in PRICES and value is not None)
        share = f"{100.0 * seen['conflict']:.3g} % of rows"
        first = first or "another has priority"
        return f"cannot be had together with the other limits in {share} ({first}); seen: {name} {short(measured)} with {others}"
    if not level.rate.capped:
        return UNSAFE
    slack = most / n
    if slack >= 1.0:
        return f"{int(n):,} counted rows: a promise within 0.01 needs {int(100.0 * most):,}"
    side = "below" if name in ASKED_AT_LEAST else "above"
    near = f"within {short(slack)} of" if level.two_sided else f"at most {short(slack)} {side}"
    return f"{near} what was asked on every stream of {int(n):,} counted rows"


def budget_report(level: BudgetLevel, state: BudgetState, others: Others) -> LimitReport:
    """What became of a budget of alarms."""
    periods, spent = float(state.periods), float(state.spent)
    everything = float(state.earlier) + spent
    count = periods + (1.0 if state.rows else 0.0)
    measured = everything / count if count else None
    unit = "period" if level.per is None else f"{int(level.per):,} rows"
    seen: dict[str, Any] = {
        **rates_seen(others[3]),
        "most": float(state.most),
        "periods": int(count),
        "spent": spent,
        "threshold": others[4],
    }
    one = "a period" if level.per is None else unit
    words = f"never more than {short(float(state.most))} alarms in {one}, and {short(spent)} in the present one"
    price = _price("alert rate", others[4]) if count else None
    rows = int(others[0])
    return LimitReport(
        f"alerts per {unit}", "at most", level.at_most, measured, spent if count else None, (0.0, level.at_most), "", price,
        PRICES["alert rate"], 1, rows, 0, words, seen,
    )  # fmt: skip


def _clip(rate: float) -> float:
    return min(max(rate, 0.0), 1.0)
