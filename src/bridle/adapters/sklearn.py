"""Linear models for scikit-learn that learn one row after the other under limits.

>>> from bridle.adapters.sklearn import ConstrainedClassifier, Recall
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((3000, 3))
>>> y = X[:, 0] + 0.5 * rng.standard_normal(3000) > 1.0
>>> model = ConstrainedClassifier(constraints=[Recall(at_least=0.9)]).fit(X, y)
>>> round(model.limits_[0].measured, 1)  # of the rows as they came, each scored before it was learned
0.9
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from math import nan
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridle import records, validate
from bridle.adapters import missing
from bridle.adapters.linear import LabelledRow, LinearEstimator, RowTicket, class_weights, listed, with_limits
from bridle.adapters.regression import RegressionPlan, RegressorModel, TargetRow
from bridle.adapters.rows import demand_sizes
from bridle.core import InputError
from bridle.engines.round import block_length
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
from bridle.limits.debts import Seen
from bridle.limits.report import LimitTable
from bridle.limits.settings import named_parameters, with_parameters
from bridle.ops import Array

try:
    from scipy import sparse
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as trouble:
    raise missing("sklearn", trouble) from None

__all__ = [
    "AlertBudget", "AlertRate", "ConstrainedClassifier", "ConstrainedRegressor", "DemographicParity", "EqualOpportunity", "EqualizedOdds",
    "ErrorRate", "FalsePositiveRate", "GroupGap", "MissLoss", "Precision", "Quantile", "Recall", "WeightBudget",
]  # fmt: skip

Labels: TypeAlias = NDArray[np.generic]
"""Classes, of whatever type they are."""


class LimitsAsParameters(BaseEstimator):
    """An estimator whose limits are parameters too: `constraints__0__at_least` is that of the first."""

    constraints: Sequence[Any] | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, and where `deep` those of the limits.

        Parameters
        ----------
        deep : bool, default True
            Also the settings of the limits, as ``constraints__0__at_least``.
        """
        own = cast("dict[str, Any]", super().get_params(deep=False))
        inner = named_parameters(listed(self.constraints)) if deep else {}
        return own | {f"constraints__{name}": value for name, value in inner.items()}

    def set_params(self, **params: Any) -> Any:
        """Set parameters, among them those of limits.

        Parameters
        ----------
        **params : object
            The values by name, such as ``constraints__0__at_least=0.95``.
        """
        inner = {name.removeprefix("constraints__"): value for name, value in params.items() if name.startswith("constraints__")}
        super().set_params(**{name: value for name, value in params.items() if not name.startswith("constraints__")})
        if inner:
            self.constraints = with_parameters(listed(self.constraints), inner)
        return self

    @property
    def limits_(self) -> LimitTable:
        """What became of every limit: asked, measured, proved, its price; as text a table."""
        check_is_fitted(self, "model_")
        limits: LimitTable = self.model_.limits
        return limits

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = cast("str", super().__repr__(N_CHAR_MAX))
        return with_limits(text, self.limits_) if hasattr(self, "model_") else text


class ConstrainedClassifier(LinearEstimator, ClassifierMixin, LimitsAsParameters):
    """A linear classifier of scikit-learn's kind that learns under limits: every row is a round, and the cost is the log-loss.

    A limit on a rate (`Recall`, `FalsePositiveRate`, ...) moves the threshold that `predict` goes by; `predict_proba` stays the model's
    probability. A limit on a loss (`MissLoss`, `GroupGap`, `WeightBudget`) moves the weights. With more than two classes there is a model
    for each against the others.

    Parameters
    ----------
    constraints : sequence of limits, optional
        The limits, such as ``Recall(at_least=0.9)``. Default: none.
    policy : str, optional
        A registered policy whose decisions, in a ball, are the weights. Default: they are learned without constants, from features that are
        scaled by the rows before and squashed.
    parameters : dict, optional
        The policy's parameters.
    radius : float, optional
        The radius of that ball, above 0, in weights. Default: 5 where a policy is given.
    scale : bool, optional
        False takes features as they are. With a policy, True scales them without squashing. Default: True without a policy, False with one.
    class_weight : dict, optional
        What the losses of the classes weigh in the cost, not in a limit, such as ``{1: 5.0}``; each 0 or above.
    label : object, optional
        The class that an alarm is about. Default: the second of two; with more than two, rates need it.
    priority : int, default 0
        The place of the limit on a rate that is kept where not all of them can be had.
    max_iter : int, default 1
        How often `fit` goes over the rows, in their order, 1 or above.
    engine : {"python", "jax", "compiled"}, default "python"
        What computes it; the compiled ones are for many rows.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = (X[:, 0] + rng.normal(size=400) > 1.0).astype(int)
    >>> model = ConstrainedClassifier([Recall(at_least=0.9)]).fit(X, y)
    >>> bool(model.predict(X)[y == 1].mean() > 0.85)
    True
    """

    def __init__(
        self,
        constraints: Sequence[Any] | None = None,
        *,
        policy: str | None = None,
        parameters: Mapping[str, object] | None = None,
        radius: float | None = None,
        scale: bool | None = None,
        class_weight: Mapping[Any, float] | None = None,
        label: object = None,
        priority: int = 0,
        max_iter: int = 1,
        engine: str = "python",
    ) -> None:
        super().__init__(constraints, policy, parameters, radius, scale, class_weight, label, priority, engine)
        self.max_iter = max_iter

    @validate.undisturbed
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, periods: ArrayLike | None = None) -> ConstrainedClassifier:
        """Forget what was learned, then learn from these rows: each is scored as those before it see it, counted, then learned.

        Parameters
        ----------
        X : array_like of shape (rows, features)
            The rows.
        y : array_like of shape (rows,)
            Their classes.
        groups : array_like of shape (rows,), optional
            A number for each row, where a limit is about groups.
        periods : array_like of shape (rows,), optional
            A number for each row, where a limit is about periods.
        """
        passes = validate.whole("max_iter", self.max_iter)
        with _kept_if_it_fails(self):
            rows, labels = _checked(self, X, y)
            self._begin(labels, np.unique(labels))
            for _ in range(passes):
                self._learn(rows, labels, groups, periods, None, None, together=False)
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
        periods: ArrayLike | None = None,
        tickets: Sequence[RowTicket | int] | None = None,
    ) -> ConstrainedClassifier:
        """Learn from more rows.

        From the second call on, limits on rates count what `predict` would have said of these rows before the call.

        Parameters
        ----------
        X : array_like of shape (rows, features)
            The rows.
        y : array_like of shape (rows,)
            Their classes.
        classes : array_like, optional
            All classes; the first call needs them unless its rows have them all.
        groups : array_like of shape (rows,), optional
            A number for each row, where a limit is about groups.
        sample_weight : array_like of shape (rows,), optional
            What each row weighs in the cost alone, 0 or above.
        periods : array_like of shape (rows,), optional
            A number for each row, where a limit is about periods.
        tickets : sequence of RowTicket or int, optional
            What `ask` gave for these rows: limits on rates then count what was answered.
        """
        fresh = not hasattr(self, "model_")
        with _kept_if_it_fails(self):
            rows, labels = _checked(self, X, y, reset=fresh)
            if fresh:
                self._begin(labels, np.unique(labels if classes is None else classes))
            elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise validate.refused(f"classes must be those of the first call, {validate.show(self.classes_)}", classes)
            self._learn(rows, labels, groups, periods, sample_weight, tickets, together=not fresh)
        return self

    @validate.undisturbed
    def ask(self, X: ArrayLike, groups: ArrayLike | None = None, periods: ArrayLike | None = None) -> list[RowTicket]:
        """Decide about rows whose classes come later, one after the other; limits on rates count them in advance.

        Returns what was decided; give each to `partial_fit` with the row's class, or to `forget`.

        Parameters
        ----------
        X : array_like of shape (rows, features)
            The rows.
        groups : array_like of shape (rows,), optional
            A number for each row, where a limit is about groups.
        periods : array_like of shape (rows,), optional
            A number for each row, where a limit is about periods.
        """
        rows = self._rows(X)
        of, when = (repeat(None) if each is None else each.tolist() for each in numbers_for(rows.shape[0], groups, periods))
        each_row = (row for _, block in blocks_of(rows) for row in block)
        return [self.model_.ask(*asked) for asked in zip(each_row, of, when, strict=False)]

    def forget(self, tickets: Sequence[RowTicket | int]) -> None:
        """Stop waiting for the classes of rows that will never be known.

        Parameters
        ----------
        tickets : sequence of RowTicket or int
            What `ask` gave for them.
        """
        check_is_fitted(self, "model_")
        for number in {self.model_.number(ticket): None for ticket in tickets}:  # all of them are known before one is forgotten
            self.model_.forget(number)

    def _begin(self, y: Labels, classes: Labels) -> None:
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise InputError(f"Unknown label type: {kind}. y must hold classes.")
        if len(classes) < 2:
            raise InputError(f"y must hold two classes, or classes name both, not one class: {validate.show(classes.tolist())}")
        # Tables are learned on `engine`; the model's own is for one row at a time.
        self.classes_, self.model_ = classes, self._make_model(self.n_features_in_, cast("Sequence[object]", classes.tolist()))

    def _learn(
        self,
        X: Any,
        y: Labels,
        groups: ArrayLike | None,
        periods: ArrayLike | None,
        sample_weight: ArrayLike | None,
        tickets: Sequence[RowTicket | int] | None,
        together: bool,
    ) -> None:
        count = X.shape[0]
        if strange := set(np.unique(y).tolist()) - set(self.classes_.tolist()):
            raise validate.refused(f"y must hold the classes {validate.show(self.classes_.tolist())} alone", strange.pop())
        places = np.searchsorted(self.classes_, y)
        weights = np.array(class_weights(self.class_weight, self.classes_.tolist()))[places] * _weights(sample_weight, count)
        of, when = numbers_for(count, groups, periods)
        demand_sizes(X.data if sparse.issparse(X) else X)
        numbers: list[int] = []
        seen: Seen | None = None
        if tickets is not None:
            (numbers, seen, of), when = self.model_.answered(tickets, count), None
        elif together and count > 1:
            decided = self.model_.decided(self._scores(X), of, when)
            seen = records.stack(decided) if decided else None
        else:
            self.model_.check(of, when)
        table = LabelledRow(np.zeros((count, 0)), places.astype(float), weights, of, when, seen)
        for start, rows in blocks_of(X):
            self.model_.learn_table(records.cut(table, start, start + len(rows))._replace(features=rows), self.engine)
        for number in numbers:
            del self.model_.open[number]

    @property
    def coef_(self) -> Array:
        """The weights, shaped as scikit-learn has them: (1, features), or a row for each of more than two classes; of scaled features."""
        return self.model_.weights[:, 1:].copy()

    @property
    def intercept_(self) -> Array:
        """The weight of the 1 that every row has."""
        return self.model_.weights[:, 0].copy()

    @validate.undisturbed
    def decision_function(self, X: ArrayLike) -> Array:
        """The log-odds of the second class, or of each of more than two against the others."""
        return self._scores(self._rows(X))

    def _rows(self, X: ArrayLike) -> Any:
        check_is_fitted(self, "model_")
        return _checked(self, X, reset=False)

    def _scores(self, rows: Any) -> Array:
        return np.concatenate([self.model_.scores(block) for _, block in blocks_of(rows)])

    @validate.undisturbed
    def predict_proba(self, X: ArrayLike) -> Array:
        """The model's probability of each class, whatever its limits.

        Returns probabilities; of more than two classes, divided by their sum.
        """
        scores = self._scores(self._rows(X))
        return np.asarray(self.model_.probabilities(scores))

    @validate.undisturbed
    def predict(self, X: ArrayLike, groups: ArrayLike | None = None, periods: ArrayLike | None = None) -> Labels:
        """The class of every row: the likelier one, or what the limits on rates make of it as their levels stand.

        Parameters
        ----------
        X : array_like of shape (rows, features)
            The rows.
        groups : array_like of shape (rows,), optional
            A number for each row, where a limit is about groups.
        periods : array_like of shape (rows,), optional
            A number for each row, where a limit is about periods.
        """
        scores = self._scores(self._rows(X))
        alarms = self.model_.alarms(scores, *numbers_for(len(scores), groups, periods))
        return np.asarray(self.classes_[self.model_.places(scores, alarms)])


class ConstrainedRegressor(RegressorMixin, LimitsAsParameters):
    """A linear regressor of scikit-learn's kind that learns under limits, without constants: every row is a round.

    ``Quantile(0.9)`` makes it predict what at most a tenth of the targets lie above, on every stream: a debt moves an offset. `ErrorRate`
    makes errors above a size dearer while there are too many. Features and targets are scaled by the rows before.

    Parameters
    ----------
    constraints : sequence of limits, optional
        The limits: `Quantile`, `ErrorRate`. Default: none.
    scale : bool, optional
        False takes features as they are. Default: True.
    max_iter : int, default 1
        How often `fit` goes over the rows, in their order, 1 or above.
    engine : {"python", "jax", "compiled"}, default "python"
        What computes it; the compiled ones are for many rows.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = X[:, 0] + rng.normal(size=400)
    >>> model = ConstrainedRegressor([Quantile(0.9)]).fit(X, y)
    >>> bool((y > model.predict(X)).mean() < 0.2)
    True
    """

    def __init__(
        self, constraints: Sequence[Any] | None = None, *, scale: bool | None = None, max_iter: int = 1, engine: str = "python"
    ) -> None:
        self.constraints = constraints
        self.scale = scale
        self.max_iter = max_iter
        self.engine = engine

    @validate.undisturbed
    def fit(self, X: ArrayLike, y: ArrayLike) -> ConstrainedRegressor:
        """Forget what was learned, then learn from these rows: each is predicted as those before it see it, counted, then learned.

        Parameters
        ----------
        X : array_like of shape (rows, features)
            The rows.
        y : array_like of shape (rows,)
            Their targets.
        """
        passes = validate.whole("max_iter", self.max_iter)
        rows, targets = _checked(self, X, y, y_numeric=True)
        model = self._made()
        for _ in range(passes):
            _learn_targets(model, rows, targets, None, self.engine)
        self.model_, self.n_iter_ = model, passes
        return self

    @validate.undisturbed
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> ConstrainedRegressor:
        """Learn from more rows, one after the other.

        Parameters
        ----------
        X : array_like of shape (rows, features)
            The rows.
        y : array_like of shape (rows,)
            Their targets.
        sample_weight : array_like of shape (rows,), optional
            What each row's loss weighs, 0 or above.
        """
        fresh = not hasattr(self, "model_")
        rows, targets = _checked(self, X, y, reset=fresh, y_numeric=True)
        model = self._made() if fresh else self.model_
        _learn_targets(model, rows, targets, sample_weight, self.engine)
        self.model_ = model
        return self

    def _made(self) -> RegressorModel:
        return RegressorModel(self.n_features_in_, RegressionPlan(self.constraints, self.scale))

    @validate.undisturbed
    def predict(self, X: ArrayLike) -> Array:
        """The prediction of every row, with the offset of a quantile as it stands."""
        check_is_fitted(self, "model_")
        rows = _checked(self, X, reset=False)
        return np.concatenate([np.asarray(self.model_.predict(block)) for _, block in blocks_of(rows)])


@contextmanager
def _kept_if_it_fails(model: BaseEstimator) -> Iterator[None]:
    """An estimator whose first call, or whose `fit`, fails stays what it was: not fitted, or as it was fitted before."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def _learn_targets(model: RegressorModel, X: Any, y: Array, sample_weight: ArrayLike | None, engine: str) -> None:
    table = TargetRow(np.zeros((len(y), 0)), np.asarray(y, dtype=float), _weights(sample_weight, len(y)))
    for start, rows in blocks_of(X):
        model.take_many(records.cut(table, start, start + len(rows))._replace(features=rows), engine)


def _weights(given: ArrayLike | None, count: int) -> Array:
    """What each row weighs."""
    weights = np.ones(count) if given is None else validate.array("sample_weight", given, (count,))
    if (weights < 0.0).any():
        raise InputError("sample_weight must be 0 or above for every row")
    return weights


def _checked(model: BaseEstimator, X: ArrayLike, *y: ArrayLike, reset: bool = True, **settings: object) -> Any:
    """What scikit-learn makes of a table, and of labels where there are any.

    It refuses what it must in words of its own, a ValueError or a TypeError; what it would make numbers of and lose something by it is
    refused before.
    """
    if not sparse.issparse(X):
        validate.intact("X", X)
    for labels in y:
        validate.unmasked("y", labels)
    try:
        return validate_data(model, X, *y, dtype=float, reset=reset, accept_sparse="csr", **settings)
    except (ValueError, TypeError):
        raise
    except Exception:  # whatever an object of somebody else's raises where it is asked for its numbers
        raise validate.refused("X must be an array of numbers", X) from None


def blocks_of(X: Any) -> Iterator[tuple[int, Array]]:
    """The rows of a table, dense, and where they begin: all at once, or of a sparse one as many as an engine takes at a time."""
    if not sparse.issparse(X):
        yield 0, X
        return
    length = block_length(X.shape[1] + 1)
    for start in range(0, X.shape[0], length):
        yield start, X[start : start + length].toarray()


def numbers_for(count: int, groups: ArrayLike | None, periods: ArrayLike | None) -> tuple[Array | None, Array | None]:
    """The group and the period of each row."""
    return _numbers("groups", groups, count), _numbers("periods", periods, count)


def _numbers(name: str, given: ArrayLike | None, count: int) -> Array | None:
    """A number for each row; truth values are the numbers they stand for, and None is for a row whose number is not known."""
    if given is None:
        return None
    if isinstance(given, (list, tuple)):
        given = [nan if one is None else float(one) if isinstance(one, bool) else one for one in given]
    elif getattr(getattr(given, "dtype", None), "kind", "") == "b":
        given = np.asarray(given).astype(float)
    numbers = validate.floats(name, given, "an array of numbers")
    if numbers.shape != (count,):
        raise InputError(f"{name} must have shape {(count,)}, one number for each row, not {numbers.shape}")
    return numbers
