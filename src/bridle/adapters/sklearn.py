"""A linear classifier for scikit-learn that learns one row after the other under constraints.

>>> from bridle.adapters.sklearn import ConstrainedClassifier, MissLoss
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((500, 3))
>>> y = X[:, 0] + 0.1 * rng.standard_normal(500) > 1.0
>>> model = ConstrainedClassifier(constraints=[MissLoss(label=True, at_most=0.5)]).fit(X, y)
>>> bool(model.predict(X)[y].mean() > 0.9)
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridle import validate
from bridle.adapters import missing
from bridle.adapters.limits import GroupGap, Limit, MissLoss, WeightBudget
from bridle.adapters.linear import LinearEstimator, class_weights, probability
from bridle.core import InputError
from bridle.ops import Array

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as trouble:
    raise missing("sklearn", trouble) from None

__all__ = ["ConstrainedClassifier", "GroupGap", "MissLoss", "WeightBudget"]

Labels: TypeAlias = NDArray[np.generic]
"""Classes, of whatever type they are."""


class ConstrainedClassifier(LinearEstimator, ClassifierMixin, BaseEstimator):
    """A linear classifier of two classes: its cost is the log-loss, its limits are the `constraints`, and every row is a round.

    `policy` is a registered name and `parameters` its settings; the weights, the intercept among them, stay in a ball of this `radius`.
    `scale` scales features by the rows learned before. `class_weight` weighs the losses of the classes in the cost, not in a limit. `fit`
    goes `max_iter` times over the rows, in their order; `engine` is that of `bridle.play`: "python", or one that compiles, for many rows.
    """

    def __init__(
        self,
        constraints: Sequence[Limit[Any]] | None = None,
        *,
        policy: str | None = None,
        parameters: Mapping[str, object] | None = None,
        radius: float | None = None,
        scale: bool | None = None,
        class_weight: Mapping[Any, float] | None = None,
        max_iter: int = 1,
        engine: str = "python",
    ) -> None:
        super().__init__(constraints, policy, parameters, radius, scale, class_weight, engine)
        self.max_iter = max_iter

    @validate.undisturbed
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> ConstrainedClassifier:
        """Forget what was learned, then learn from these rows; `groups` is a number for each, where a limit is about groups."""
        passes = validate.whole("max_iter", self.max_iter)
        rows, labels = _checked(self, X, y)
        self._begin(labels, np.unique(labels))
        for _ in range(passes):
            self._learn(rows, labels, groups, None)
        self.n_iter_ = passes
        return self

    @validate.undisturbed
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ConstrainedClassifier:
        """Learn from more rows; the first call names both `classes` unless its rows have both. `sample_weight` is of the cost alone."""
        fresh = not hasattr(self, "model_")
        rows, labels = _checked(self, X, y, reset=fresh)
        if fresh:
            self._begin(labels, np.unique(labels if classes is None else classes))
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InputError(f"classes must be those of the first call, {validate.show(self.classes_)}, not {validate.show(classes)}")
        self._learn(rows, labels, groups, sample_weight)
        return self

    def _begin(self, y: Labels, classes: Labels) -> None:
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary" or len(classes) > 2:
            kind = "multiclass" if kind == "binary" else kind
            raise InputError(f"Only binary classification is supported. The type of the target is {kind}.")
        if len(classes) < 2:
            raise InputError(f"y must hold two classes, or classes name both, not one class: {validate.show(classes.tolist())}")
        # Tables are learned on `engine`; the model's own is for one row at a time.
        self.classes_, self.model_ = classes, self._make_model(self.n_features_in_, cast("Sequence[object]", classes))

    def _learn(self, X: Array, y: Labels, groups: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        if strange := set(np.unique(y).tolist()) - set(self.classes_.tolist()):
            raise InputError(f"y must hold the classes {validate.show(self.classes_.tolist())} alone, not {validate.show(strange.pop())}")
        second = y == self.classes_[1]
        weights = np.where(second, *reversed(class_weights(self.class_weight, self.classes_.tolist())))
        if sample_weight is not None:
            weights = weights * validate.array("sample_weight", sample_weight, (len(X),))
            if (weights < 0.0).any():
                raise InputError("sample_weight must be 0 or above for every row")
        numbers = None
        if groups is not None:
            numbers = validate.floats("groups", _memberships(groups), "an array of numbers")
            if numbers.shape != (len(X),):
                raise InputError(f"groups must have shape {(len(X),)}, one number for each row, not {numbers.shape}")
        self.model_.learn_many(X, np.where(second, 1.0, -1.0), weights, numbers, self.engine)

    @property
    def coef_(self) -> Array:
        """The weights, shaped as scikit-learn has them: (1, features). With `scale` they are of the scaled features."""
        return self.model_.weights[None, 1:].copy()

    @property
    def intercept_(self) -> Array:
        """The weight of the 1 that every row has."""
        return self.model_.weights[:1].copy()

    @validate.undisturbed
    def decision_function(self, X: ArrayLike) -> Array:
        """The log-odds of the second class."""
        check_is_fitted(self, "model_")
        return np.asarray(self.model_.scores(_checked(self, X, reset=False)))

    @validate.undisturbed
    def predict_proba(self, X: ArrayLike) -> Array:
        """The probability of each class."""
        scores = self.decision_function(X)
        return np.column_stack((probability(-scores), probability(scores)))

    def predict(self, X: ArrayLike) -> Labels:
        """The likelier class of every row."""
        second = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[second.astype(int)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _checked(model: BaseEstimator, X: ArrayLike, *y: ArrayLike, reset: bool = True) -> Any:
    """What scikit-learn makes of a table, and of labels where there are any.

    It refuses what it must in words of its own, a ValueError or a TypeError; what it would make numbers of and lose something by it is
    refused before.
    """
    validate.intact("X", X)
    for labels in y:
        validate.unmasked("y", labels)
    try:
        return validate_data(model, X, *y, dtype=float, reset=reset)
    except (ValueError, TypeError):
        raise
    except Exception:  # whatever an object of somebody else's raises where it is asked for its numbers
        raise InputError(f"X must be an array of numbers, not {validate.show(X)}") from None


def _memberships(groups: ArrayLike) -> ArrayLike:
    """Which group each row is of, with truth values as the numbers they stand for; None is for a row whose group is not known."""
    if isinstance(groups, (list, tuple)):
        return [nan if one is None else float(one) if isinstance(one, bool) else one for one in groups]
    return np.asarray(groups).astype(float) if getattr(getattr(groups, "dtype", None), "kind", "") == "b" else groups
