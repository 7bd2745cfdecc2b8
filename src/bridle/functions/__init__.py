"""Costs and constraints as records: values and subgradients, for one decision or many.

Each is a NamedTuple of arrays. A leading time axis on all of them makes it a sequence of functions; a leading run axis makes it one
function per run. The public names are factories that check what they are given; each stands beside the record it makes.

>>> import numpy as np
>>> g = Affine([3.0, 4.0], -2.0)
>>> g.value(np.array([1.0, 0.0])), g.grad(np.array([1.0, 0.0]))
(1.0, array([3., 4.]))
"""

from bridle.functions.affine import (
    AFFINE_FUNCTIONS,
    AbsoluteDeviation,
    Affine,
    AffineFunction,
    AffineRows,
    Coordinate,
    CoordinateDeviation,
    Deviation,
)
from bridle.functions.composite import Callable, Excess, Maximum, MaximumOf, Opaque
from bridle.functions.losses import Hinge, HingeLoss, Logistic, LogisticLoss, LogWealth, LogWealthLoss
from bridle.functions.predictions import LogisticScore, PredictionLoss, QuantileScore, ScoreLoss, SquaredScore, score_loss
from bridle.functions.quadratic import Quadratic, QuadraticForm, RoundQuadratic

__all__ = [
    "AFFINE_FUNCTIONS", "AbsoluteDeviation", "Affine", "AffineFunction", "AffineRows", "Callable", "Coordinate", "CoordinateDeviation",
    "Deviation", "Excess", "Hinge", "HingeLoss", "LogWealth", "LogWealthLoss", "Logistic", "LogisticLoss", "LogisticScore",
    "Maximum", "MaximumOf", "Opaque", "PredictionLoss", "Quadratic", "QuadraticForm", "QuantileScore", "RoundQuadratic", "ScoreLoss",
    "SquaredScore", "score_loss",
]  # fmt: skip
