"""Limits in the user's words, and the mechanisms that keep them; no library for machine learning is known here.

| limit | counts | at most this share of them |
|---|---|---|
| `Recall(at_least=0.9)` | rows of the class `label` (the second class) | is missed: 0.1 |
| `FalsePositiveRate(at_most=0.01)` | rows of the other class | is an alarm |
| `AlertRate(at_most=0.02)` | all rows | is an alarm |
| `AlertBudget(at_most=50, per=1000)` | all rows of a period | 50 alarms, never one more |
| `Precision(at_least=0.5)` | alarms | is false: 0.5 |
| `EqualOpportunity(gap=0.05)` | rows of the second class, by group | shares found differ by at most 0.05 |
| `DemographicParity(gap=0.05)` | all rows, by group | shares of alarms differ by at most 0.05 |
| `EqualizedOdds(gap=0.05)` | both: found, and false alarms | differ by at most 0.05 |

These are kept by moving a threshold, so that they come out as asked (`thresholds`). `eta` is how far one violation moves the level, and
4/eta + 1 the most that the debt can be: .05 for all, .03 for streams with thousands of counted rows. `base` is where the threshold stands
before the debt moves it: "model" trusts the model's own probabilities, "buffer" takes the quantile of the last 1,000 counted scores, for
scores that are badly calibrated (`rates`).

`MissLoss`, `GroupGap` and `WeightBudget` become constraints of a round: `bind` makes the record that a model computes with (`losses`), and
`prices` weighs them. `Quantile` and `ErrorRate` are for regressors (`quantiles`). What became of any of them is a `LimitReport` (`report`).
"""

from __future__ import annotations

from bridle.limits.budgets import AlertBudget
from bridle.limits.groups import DemographicParity, EqualizedOdds, EqualOpportunity
from bridle.limits.losses import GroupGap, MissLoss, WeightBudget
from bridle.limits.quantiles import ErrorRate, Quantile
from bridle.limits.rates import AlertRate, FalsePositiveRate, Precision, Recall
from bridle.limits.report import LimitReport, LimitTable
from bridle.limits.thresholds import RateLimiter

__all__ = [
    "AlertBudget", "AlertRate", "DemographicParity", "EqualOpportunity", "EqualizedOdds", "ErrorRate", "FalsePositiveRate", "GroupGap",
    "LimitReport", "LimitTable", "MissLoss", "Precision", "Quantile", "RateLimiter", "Recall", "WeightBudget",
]  # fmt: skip
