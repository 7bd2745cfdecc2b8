"""The limits under the name that they had before they had a room of their own: `bridle.limits`."""

from bridle.limits import (
    AlertBudget,
    AlertRate,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRate,
    FalsePositiveRate,
    GroupGap,
    MissLoss,
    Precision,
    Quantile,
    Recall,
    WeightBudget,
)

__all__ = [
    "AlertBudget", "AlertRate", "DemographicParity", "EqualOpportunity", "EqualizedOdds", "ErrorRate", "FalsePositiveRate", "GroupGap",
    "MissLoss", "Precision", "Quantile", "Recall", "WeightBudget",
]  # fmt: skip
