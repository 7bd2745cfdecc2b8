"""Linear models for river that learn one row after the other under limits.

>>> from river import datasets, evaluate, metrics
>>> from bridle.adapters.river import ConstrainedClassifier, Recall
>>> model = ConstrainedClassifier(constraints=[Recall(at_least=0.9)])
>>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Recall() + metrics.Precision())
Recall: 89.96%
Precision: 84.42%
>>> round(model.limits_[0].measured, 4)
0.8996
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, TypeAlias

import numpy as np

from bridle import validate
from bridle.adapters import missing
from bridle.adapters.linear import ClassModel, LinearEstimator, RowTicket, class_weights, with_limits
from bridle.adapters.mixture import MOST_NEWTON
from bridle.adapters.regression import RegressionPlan, RegressorModel, TargetRow
from bridle.core import InputError
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
from bridle.limits.report import LimitTable
from bridle.ops import Array
from bridle.session.feedback import FLOAT, LARGEST

try:
    from river import base
except ModuleNotFoundError as trouble:
    raise missing("river", trouble) from None

__all__ = [
    "AlertBudget", "AlertRate", "ConstrainedClassifier", "ConstrainedRegressor", "DemographicParity", "EqualOpportunity", "EqualizedOdds",
    "ErrorRate", "FalsePositiveRate", "GroupGap", "MissLoss", "Precision", "Quantile", "Recall", "RowTicket", "WeightBudget",
]  # fmt: skip

CLASSES = (False, True)

ROW_KINDS = validate.NUMBER_KINDS + "b"
"""NumPy's letters for the kinds of features."""

RiverRow: TypeAlias = dict[Hashable, float]
"""The features of a row by name."""


def room_for(names: int, room: int) -> int:
    """Room for so many features where some came late, so that more may follow; not so much that an expert must go before its time."""
    most = MOST_NEWTON - 1  # with the intercept
    return max(names, min(2 * room, most) if names <= most else 2 * room)


def demand_row(x: object) -> None:
    """Refuse what is no row of features by name."""
    if type(x) is not dict and not isinstance(x, Mapping):
        raise validate.refused("x must be a dict of features", x)


def number_of(name: str, given: object) -> float | None:
    """The number of a group or a period, if it is given; nan, which is of none, is one too."""
    if given is None or type(given) is float:
        return given
    if isinstance(given, bool):
        return float(given)
    number = validate.floats(name, given, "a number")
    if number.ndim:
        raise validate.refused(f"{name} must be a number", given)
    return float(number)


def values_of(x: RiverRow) -> Array:
    """The features of a row; True and False are 1 and 0, as river has it."""
    demand_row(x)
    values: Array | None = None
    with suppress(Exception):  # whatever an object of somebody else's raises where it is asked for its numbers
        values = np.array(list(x.values()))
    if values is None or values.dtype.kind not in ROW_KINDS or values.dtype.itemsize > 8 or values.ndim != 1:
        values = np.array([float(v) if isinstance(v, bool) else validate.number(f"x[{name!r}]", v) for name, v in x.items()])
    values = values.astype(float, copy=False)
    with np.errstate(all="ignore"):
        if not values.dot(values) <= LARGEST:
            raise _not_a_number(x)
    return values


def _not_a_number(x: RiverRow) -> InputError:
    """The error for a row that cannot be learned or scored, naming the feature."""
    try:
        sizes = {name: abs(float(v) if isinstance(v, bool) else validate.number(f"x[{name!r}]", v)) for name, v in x.items()}
    except InputError as wrong:
        return wrong
    name = max(sizes, key=sizes.__getitem__)
    return InputError(f"x[{name!r}] must be at most about {LARGEST**0.5:g} in size, not {x[name]:.3g}")


def by_class(classes: Sequence[Any], each: Sequence[Any]) -> Any:
    """What the one model of two classes has, or what those of more have, by class."""
    return each[0] if len(each) == 1 else dict(zip(classes, each, strict=True))


class NamedFeatures:
    """What both estimators have: features by name, in the order in which they were first seen; a model with room for them; its limits."""

    _tested: ClassVar[Sequence[Any]]
    _model: Any

    def _begin(self) -> None:
        self._order: list[Hashable] = []
        self._places: dict[Hashable, int] = {}
        self._model = self._made(0)

    def _made(self, features: int) -> Any:
        """A model that has learned nothing."""
        raise NotImplementedError

    @property
    def limits_(self) -> LimitTable:
        """What became of every limit: asked, measured, proved, its price; as text a table."""
        limits: LimitTable = self._model.limits
        return limits

    def __repr__(self) -> str:
        return with_limits(super().__repr__(), LimitTable() if self._model.blank else self.limits_)

    def _row(self, x: RiverRow) -> Array:
        """The features of a row to be learned, for which there is room from now on: a model that has learned nothing is made anew."""
        row = self._plain(x)
        if row is None:
            values = values_of(x)  # before anything changes
            if new := [name for name in x if name not in self._places]:
                order = self._order + new
                if self._model.blank:
                    self._model = self._made(len(order))
                elif len(order) > self._model.features:
                    self._model.grow(room_for(len(order), self._model.features))
                self._order, self._places = order, {name: place for place, name in enumerate(order)}
            row = self._placed(x, values)
        return row

    def _known(self, x: RiverRow) -> Array:
        """The features of a row that is only scored: names never seen have weight 0."""
        row = self._plain(x)
        if row is None:
            demand_row(x)
            known = {name: value for name, value in x.items() if name in self._places}
            row = self._placed(known, values_of(known))
        return row

    def _plain(self, x: RiverRow) -> Array | None:
        """The features of a row that has all of them, in their order and as floats; None for any other, which is looked at more closely."""
        try:
            row = np.array(list(x.values()))
            if row.dtype is FLOAT and row.dot(row) <= LARGEST and list(x) == self._order and len(row) == self._model.features:
                return row
        except Exception:  # whatever is asked here, or NumPy is told to raise
            return None
        return None

    def _placed(self, x: RiverRow, values: Array) -> Array:
        """The features in their order, and 0 for those that are not there."""
        row = np.zeros(self._model.features)
        if list(x) == self._order:
            row[: len(x)] = values
        else:
            row[[self._places[name] for name in x]] = values
        return row

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        yield {"constraints": cls._tested}


class ConstrainedClassifier(NamedFeatures, LinearEstimator, base.Classifier):
    """A linear classifier of river's kind that learns under limits: every row is a round, and the cost is the log-loss.

    The weights are learned without constants, from features scaled by the rows before and squashed. Features may come and go by name: one
    that is not in a row counts as 0 there, and one that was never seen has weight 0.

    A limit on a rate moves the threshold that `predict_one` goes by, and counts every row as it is learned; `predict_proba_one` stays the
    model's probability. Where classes come late, `ask_one` decides about a row, which is then counted in advance.

    Parameters
    ----------
    constraints
        Limits such as `Recall(at_least=0.9)`, `AlertRate(at_most=0.01)`, `EqualOpportunity(gap=0.05)`, `MissLoss(label=True, at_most=0.1)`.
    policy
        The registered name of a policy: the weights are its decisions in a ball then, as they are where a radius is given.
    parameters
        The policy's parameters, by name.
    radius
        The radius of the ball, above 0, in weights; 5 where only a policy is given.
    scale
        False takes features as they are. With a policy True scales them, without squashing, and they are taken as they are unless told.
    class_weight
        What the classes' losses weigh in the cost (not in a limit), such as `{True: 5.0}`; each 0 or above.
    group
        The name of the feature that says a row's group, where a limit is about groups; it is not a feature of the model then.
    engine
        "python", or "compiled", which compiles what learns from a row: several times faster, the same weights up to rounding, and seconds
        before
        the first row.
    period
        The name of the feature that says a row's period, where a limit is about periods; it is not a feature of the model then.
    classes
        The classes, False and True unless named; with more than two there is a model for each against the others.
    label
        The class that an alarm is about, for limits on rates: the second of two unless told; of more than two it must be told.
    priority
        The place among the constraints of the limit on a rate that is kept where not all of them can be had, from 0.

    Examples
    --------
    >>> from bridle.adapters.river import ConstrainedClassifier, Recall
    >>> model = ConstrainedClassifier([Recall(at_least=0.9)])
    >>> for i in range(200):
    ...     model.learn_one({"x": float(i % 7)}, i % 7 > 4)
    >>> model.predict_one({"x": 6.0}), model.predict_one({"x": 0.0})
    (True, False)
    """

    _tested = (Recall(at_least=0.9), MissLoss(label=True, at_most=0.1))
    _model: ClassModel

    def __init__(
        self,
        constraints: Sequence[Any] | None = None,
        policy: str | None = None,
        parameters: Mapping[str, object] | None = None,
        radius: float | None = None,
        scale: bool | None = None,
        class_weight: Mapping[Any, float] | None = None,
        group: str | None = None,
        engine: str = "python",
        period: str | None = None,
        classes: Sequence[Any] | None = None,
        label: object = None,
        priority: int = 0,
    ) -> None:
        super().__init__(constraints, policy, parameters, radius, scale, class_weight, label, priority, engine)
        self.group = group
        self.period = period
        self.classes = classes
        self._classes = CLASSES if classes is None else tuple(classes)
        if len(self._classes) < 2 or len(set(self._classes)) < len(self._classes):
            raise validate.refused("classes must name two different classes or more", classes)
        self._columns = tuple(name for name in (group, period) if name is not None)
        self._costs = class_weights(class_weight, self._classes)
        self._begin()

    @property
    def _multiclass(self) -> bool:
        return len(self._classes) > 2

    @property
    def weights(self) -> Any:
        """The weight of every feature; with more than two classes, of every class."""
        return by_class(self._classes, [dict(zip(self._order, row[1:].tolist(), strict=False)) for row in self._model.weights])

    @property
    def intercept(self) -> Any:
        """The weight of the 1 that every row has; with more than two classes, of every class."""
        return by_class(self._classes, self._model.weights[:, 0].tolist())

    def learn_one(
        self, x: RiverRow, y: object, group: float | None = None, period: float | None = None, ticket: RowTicket | int | None = None
    ) -> None:
        """Learn from one row.

        A limit on a rate counts what `predict_one` says of the row now, or, with a ticket, what was answered then.

        Parameters
        ----------
        x : dict
            The features, by name.
        y : object
            The class.
        group : float, optional
            The row's group, unless a feature holds it.
        period : float, optional
            The row's period, unless a feature holds it.
        ticket : RowTicket or int, optional
            What `ask_one` gave for this row.
        """
        place = self._place(y)
        x, group, period = self._split(x, group, period)
        self._model.admit(group, period, ticket)
        row = self._row(x)  # which may make another model
        self._model.learn(row, place, self._costs[place], group, period, ticket)

    def ask_one(self, x: RiverRow, group: float | None = None, period: float | None = None) -> RowTicket:
        """Decide about a row whose class comes later.

        Returns what was decided; give it to `learn_one` with the class, or to `forget_one`.

        Parameters
        ----------
        x : dict
            The features, by name.
        group : float, optional
            The row's group, unless a feature holds it.
        period : float, optional
            The row's period, unless a feature holds it.
        """
        x, group, period = self._split(x, group, period)
        self._model.admit(group, period)
        row = self._row(x)  # which may make another model
        return self._model.ask(row, group, period)

    def forget_one(self, ticket: RowTicket | int) -> None:
        """Stop waiting for the class of a row that will never be known.

        Parameters
        ----------
        ticket : RowTicket or int
            What `ask_one` gave for it.
        """
        self._model.forget(ticket)

    def predict_proba_one(self, x: RiverRow) -> dict[Any, float]:
        """The model's probability of each class, before this row is learned.

        Returns the probability of each class; of more than two, divided by their sum.
        """
        each = self._model.probabilities(self._model.scores(self._known(x)))
        return dict(zip(self._classes, each.tolist(), strict=True))

    def predict_one(self, x: RiverRow, group: float | None = None, period: float | None = None) -> Any:
        """The likeliest class, or what the limits on rates make of it as their levels stand.

        Parameters
        ----------
        x : dict
            The features, by name.
        group : float, optional
            The row's group, unless a feature holds it.
        period : float, optional
            The row's period, unless a feature holds it.
        """
        x, group, period = self._split(x, group, period)
        scores = self._model.scores(self._known(x))[None]
        of, when = (None if one is None else np.array([one]) for one in (group, period))
        return self._classes[int(self._model.places(scores, self._model.alarms(scores, of, when))[0])]

    def _place(self, y: object) -> int:
        if type(y) is bool and self._classes is CLASSES:
            return int(y)
        for place, one in enumerate(self._classes):
            if isinstance(y, (int, float, str, np.generic, type(one))) and y == one:
                return place
        if self._classes is CLASSES:
            raise validate.refused("y must be True or False", y)
        raise validate.refused(f"y must be one of the classes {validate.show(list(self._classes))}", y)

    def _split(self, x: RiverRow, group: object, period: object) -> tuple[RiverRow, float | None, float | None]:
        """The features of a row without those that say its group and its period, and these as numbers."""
        if self._columns:
            demand_row(x)
            group = x.get(self.group) if group is None and self.group is not None else group
            period = x.get(self.period) if period is None and self.period is not None else period
            x = {name: value for name, value in x.items() if name not in self._columns}
        return x, number_of("group", group), number_of("period", period)

    def _made(self, features: int) -> ClassModel:
        return self._make_model(features, self._classes, self.engine)


class ConstrainedRegressor(NamedFeatures, base.Regressor):
    """A linear regressor of river's kind that learns under limits, without constants: every row is a round.

    Features may come and go by name, as in `ConstrainedClassifier`. Features and targets are scaled by the rows before.

    Parameters
    ----------
    constraints
        `Quantile(0.9)`: predict what at most a tenth of the targets lie above. `ErrorRate(beyond=2.0, at_most=0.05)`: make errors above 2
        dearer while there are too many of them.
    scale
        False takes features as they are.
    engine
        "python", or "compiled", which compiles what learns from a row.

    Examples
    --------
    >>> from bridle.adapters.river import ConstrainedRegressor, Quantile
    >>> model = ConstrainedRegressor([Quantile(0.9)])
    >>> for i in range(200):
    ...     model.learn_one({"x": float(i % 7)}, float(i % 7))
    >>> bool(abs(model.predict_one({"x": 6.0}) - 6.0) < 1.0)
    True
    """

    _tested = (Quantile(0.9), ErrorRate(beyond=1.0))
    _model: RegressorModel

    def __init__(self, constraints: Sequence[Any] | None = None, scale: bool | None = None, engine: str = "python") -> None:
        self.constraints = constraints
        self.scale = scale
        self.engine = engine
        self._begin()

    def _made(self, features: int) -> RegressorModel:
        return RegressorModel(features, RegressionPlan(self.constraints, self.scale), self.engine)

    @property
    def weights(self) -> dict[Hashable, float]:
        """The weight of every feature, all scaled."""
        return dict(zip(self._order, self._model.weights[1:].tolist(), strict=False))

    def learn_one(self, x: RiverRow, y: float, w: float = 1.0) -> None:
        """Learn from one row.

        Parameters
        ----------
        x : dict
            The features, by name.
        y : float
            The target.
        w : float, default 1.0
            What its loss weighs, 0 or above.
        """
        target = validate.number("y", y)
        weight = validate.nonnegative("w", w)
        row = self._row(x)  # which may make another model
        self._model.take(TargetRow(row, target, weight))

    def predict_one(self, x: RiverRow) -> float:
        """The prediction, with the offset of a quantile as it stands."""
        return float(self._model.predict(self._known(x)))
