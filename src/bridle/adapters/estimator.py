"""What the scikit-learn and the river estimators share: their settings, and what they say of their limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridle.adapters.class_model import ClassModel
from bridle.adapters.limit_report import LimitTable
from bridle.adapters.linear import ModelSettings


class LinearEstimator:
    """The settings of a linear classifier, under the names of its constructor's parameters."""

    def __init__(
        self,
        constraints: Sequence[Any] | None,
        policy: str | None,
        parameters: Mapping[str, object] | None,
        radius: float | None,
        scale: bool | None,
        class_weight: Mapping[Any, float] | None,
        label: object,
        priority: int,
        engine: str,
    ) -> None:
        self.constraints = constraints
        self.policy = policy
        self.parameters = parameters
        self.radius = radius
        self.scale = scale
        self.class_weight = class_weight
        self.label = label
        self.priority = priority
        self.engine = engine

    def _make_model(self, features: int, classes: Sequence[object], engine: str = "python") -> ClassModel:
        scale = None if self.scale is None else bool(self.scale)
        settings = (self.constraints, self.policy, self.parameters, self.radius, scale, self.priority, self.label)
        return ClassModel(features, ModelSettings(classes, *settings), engine)


def with_limits(text: str, limits: LimitTable) -> str:
    """What an estimator is, and below it what became of its limits."""
    return f"{text}\n{limits!r}" if limits else text
