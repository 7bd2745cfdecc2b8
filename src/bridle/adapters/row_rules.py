"""How a model learns row after row: rules that do not change, what is held, and the one step that every engine repeats."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar

from bridle import ops
from bridle.adapters.scaling import RunningScale
from bridle.core import Feedback
from bridle.ops import Array


class Holds(Protocol):
    """What rows change: at least weights, the intercept's first, and the scale of the features."""

    @property
    def weights(self) -> Array: ...

    @property
    def scale(self) -> RunningScale | None: ...


class HasFeatures(Protocol):
    """A row: at least its features."""

    @property
    def features(self) -> Array: ...


H = TypeVar("H", bound=Holds)
W = TypeVar("W", bound=HasFeatures)
G = TypeVar("G", bound=HasFeatures, contravariant=True)
K = TypeVar("K", bound="LearnsRows[Any, Any]")
"""The rules of a model."""


class LearnsRows(Protocol[H, G]):
    """A record of rules: what does not change while rows are learned."""

    def learn(self, before: H, row: G) -> H:
        """What is held after a row."""
        ...


class ModelPlan(Protocol[K, H]):
    """How a model of any number of features is made."""

    def made(self, features: int) -> tuple[K, H]:
        """The rules, and what is held before the first row."""
        ...

    def widened(self, rules: K, held: H, wide: K, start: H) -> H:
        """What is held, by `wide` rules with room for more features, which were 0 in every row so far; `start` is what those begin with."""
        ...


def learn(rules: LearnsRows[H, W], before: H, row: W) -> H:
    """What is held after a row: the one step that engines repeat."""
    return rules.learn(before, row)


class RowPlayer(NamedTuple):
    """The rules as a policy, whose state is all that is held: so any engine can go through a table of rows."""

    rules: Any

    def decide(self, state: Any) -> Array:
        weights: Array = state.weights
        return weights

    def update(self, state: Any, feedback: Feedback) -> Any:
        return learn(self.rules, state, feedback.round)  # the row, see `DealtRow`


class DealtRow(NamedTuple):
    """A row as the round that it is: nothing of it is evaluated, the rules do that."""

    row: Any

    def reveal(self, x: Array) -> Feedback:
        nothing = 0.0 * x[..., :1]
        return Feedback(x, 0.0 * ops.dot(x, x), 0.0 * x, nothing, nothing, None, self.row)
