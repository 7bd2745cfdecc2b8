"""A linear classifier for river that learns one row after the other under constraints.

>>> from river import datasets, evaluate, metrics, preprocessing
>>> from bridle.adapters.river import ConstrainedClassifier, MissLoss
>>> model = preprocessing.StandardScaler() | ConstrainedClassifier(constraints=[MissLoss(label=True, at_most=0.5)])
>>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Recall())
Recall: 96.17%
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from bridle import validate
from bridle.adapters import missing
from bridle.adapters.limits import GroupGap, Limit, MissLoss, WeightBudget
from bridle.adapters.linear import LinearEstimator, class_weights, probability
from bridle.core import InputError
from bridle.ops import Array
from bridle.session.feedback import FLOAT, LARGEST

try:
    from river import base
except ModuleNotFoundError as trouble:
    raise missing("river", trouble) from None

__all__ = ["ConstrainedClassifier", "GroupGap", "MissLoss", "WeightBudget"]

CLASSES = (False, True)

ROW_KINDS = validate.NUMBER_KINDS + "b"
"""NumPy's letters for the kinds of features."""

RiverRow: TypeAlias = dict[Hashable, float]
"""The features of a row by name."""


class ConstrainedClassifier(LinearEstimator, base.Classifier):
    """A linear classifier of two classes that learns under limits: every row is a round.

    The cost is the log-loss, and the weights, the intercept among them, stay in a ball. Features may come and go by name: one that is not
    in a row counts as 0 there, and one that was never seen has weight 0.

    Parameters
    ----------
    constraints
        Limits such as `MissLoss(label=True, at_most=0.1)`, `GroupGap(at_most=0.1)`, `WeightBudget(at_most=1.0)`.
    policy
        The registered name of a policy.
    parameters
        The policy's settings.
    radius
        The radius of the ball.
    scale
        Whether to scale features by the mean and deviation of the rows learned before, in place of a `StandardScaler` in front.
    class_weight
        The weights of the classes' losses in the cost (not in a limit), such as `{True: 5.0}`.
    group
        The name of the feature that says a row's group (above 0, or not) for `GroupGap`; it is not a feature of the model then.
    engine
        "numba" compiles what learns from a row: several times faster, the same weights up to rounding, and seconds before the first row.

    """

    def __init__(
        self,
        constraints: Sequence[Limit[Any]] | None = None,
        policy: str | None = None,
        parameters: Mapping[str, object] | None = None,
        radius: float | None = None,
        scale: bool | None = None,
        class_weight: Mapping[bool, float] | None = None,
        group: str | None = None,
        engine: str = "python",
    ) -> None:
        super().__init__(constraints, policy, parameters, radius, scale, class_weight, engine)
        self.group = group
        self._names: dict[Hashable, int] = {}
        self._order: list[Hashable] = []
        self._costs = class_weights(class_weight, CLASSES)
        self._model = self._make_model(0, CLASSES, engine)

    @property
    def weights(self) -> dict[Hashable, float]:
        """The weight of every feature."""
        return dict(zip(self._order, self._model.weights[1:].tolist(), strict=False))

    @property
    def intercept(self) -> float:
        """The weight of the 1 that every row has."""
        return float(self._model.weights[0])

    def learn_one(self, x: RiverRow, y: object, group: float | None = None) -> None:
        """Learn from one row; its group is `group`, or the feature that the model was told holds it."""
        if type(y) is not bool and not (isinstance(y, (int, float, np.generic)) and y in CLASSES):
            raise InputError(f"y must be True or False, not {validate.show(y)}")
        if self.group is not None:
            _demand_row(x)
            group = x.get(self.group) if group is None else group
            x = {name: value for name, value in x.items() if name != self.group}
        if group is not None and type(group) is not float:
            group = _group(group)
        row = self._plain(x)
        if row is None:
            values = _values(x)  # before anything changes
            if not x.keys() <= self._names.keys():
                self._take_on(x)
            row = self._placed(x, values)
        self._model.learn(row, 1.0 if y else -1.0, self._costs[bool(y)], group)

    def predict_proba_one(self, x: RiverRow) -> dict[bool, float]:
        """The probability of each class, before this row is learned."""
        row = self._plain(x)
        if row is None:
            _demand_row(x)
            known = {name: value for name, value in x.items() if name in self._names}
            row = self._placed(known, _values(known))
        p = probability(float(self._model.scores(row)))
        return {False: 1.0 - p, True: p}

    def _take_on(self, x: RiverRow) -> None:
        new = [name for name in x if name not in self._names]
        names, room = len(self._order) + len(new), self._model.features
        if self._model.blank:
            self._model = self._make_model(names, CLASSES, self.engine)
        elif names > room:  # where some came late more may follow
            self._model.grow(max(names, 2 * room))
        self._order = self._order + new
        self._names = {name: place for place, name in enumerate(self._order)}

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
        """The features in the order in which they were first seen, and 0 for those that are not there."""
        row = np.zeros(self._model.features)
        if list(x) == self._order:
            row[: len(x)] = values
        else:
            row[[self._names[name] for name in x]] = values
        return row

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        yield {"constraints": [MissLoss(label=True, at_most=0.1), WeightBudget(at_most=2.0)]}


def _demand_row(x: object) -> None:
    if type(x) is not dict and not isinstance(x, Mapping):
        raise InputError(f"x must be a dict of features, not {validate.show(x)}")


def _group(group: object) -> float:
    """The number of a group; nan, which is of neither, is one too."""
    if isinstance(group, bool):
        return float(group)
    number = validate.floats("group", group, "a number")
    if number.ndim:
        raise InputError(f"group must be a number, not {validate.show(group)}")
    return float(number)


def _values(x: RiverRow) -> Array:
    """The features of a row; True and False are 1 and 0, as river has it."""
    _demand_row(x)
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
