"""Limits in the user's words. Rates are kept by moving a threshold, so that they come out as asked.

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

`eta` is how far one violation moves the level, and 4/eta + 1 the most that the debt can be: .05 for all, .03 for streams with thousands of
counted rows. `base` is where the threshold stands before the debt moves it: "model" trusts the model's own probabilities, "buffer" takes
the quantile of the last 1,000 counted scores, for scores that are badly calibrated (`levels`).

`MissLoss`, `GroupGap` and `WeightBudget` become constraints of a round: `bind` makes the record that a model computes with (`losses`).
`Quantile` and `ErrorRate` are for regressors (`offsets`).

A limit is a value: it can be pickled and compared. scikit-learn's `clone` makes it again from ``get_params()``; it never changes, so
``set_params`` returns a new one. An estimator that takes a list of them offers them to grids by `named_parameters` and `with_parameters`:
`constraints__0__at_least` is ``"0__at_least"`` there.

>>> limits = [Recall(at_least=0.9), FalsePositiveRate(at_most=0.01)]
>>> named_parameters(limits)["0__at_least"], with_parameters(limits, {"0__at_least": 0.8})[0]
(0.9, Recall(at_least=0.8))
>>> Recall(at_least=1.2)
Traceback (most recent call last):
...
bridle.core.InputError: Recall: at_least must be a share of rows above 0 and below 1, not 1.2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import nextafter
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_type_hints

import numpy as np

from bridle import validate
from bridle.adapters.alert_budget import BudgetLevel
from bridle.adapters.group_levels import ALL_ROWS, NEGATIVES, POSITIVES, GapKind, GapLevel, make_gap_level
from bridle.adapters.levels import (
    ALERTS,
    ETA,
    FALSE_POSITIVES,
    FIRST_RECALL,
    PRECISION,
    RECALL,
    Buffer,
    BufferBase,
    CountedRate,
    Model,
    RateLevel,
    make_rate_level,
)
from bridle.adapters.losses import LossOfClass, ScoreGap, SquaredWeights
from bridle.core import InputError

BASES: dict[str, Callable[[], Model | BufferBase]] = {"model": Model, "buffer": Buffer}
"""Where a threshold stands before the debt moves it."""

LEAST_SHARE = 1e-6
"""Shares are read as fractions with a denominator up to a million."""

ASKED = ("at_least", "at_most", "gap", "level", "beyond", "label")
"""The settings that are always written."""


# --- what settings may be -----------------------------------------------------------------------------------------------------------------


def _share(name: str, value: object) -> float:
    share = validate.number(name, value)
    if not LEAST_SHARE <= share <= 1.0 - LEAST_SHARE:
        raise validate.refused(f"{name} must be a share of rows above 0 and below 1", value)
    return share


def _up_to(most: float, what: str) -> Callable[[str, object], float]:
    """The check of a number above 0 and at most `most`, which is `what` it must be."""

    def check(name: str, value: object) -> float:
        number = validate.positive(name, value)
        if number > most:
            raise validate.refused(f"{name} must be {what}", value)
        return number

    return check


def _groups(name: str, value: object) -> tuple[float, ...] | None:
    if value is None:
        return None
    numbers = tuple(validate.vector(name, value).tolist())
    if len(numbers) < 2 or len(set(numbers)) < len(numbers):
        raise validate.refused(f"{name} must be the different numbers of two groups or more", value)
    return numbers


def _alarms(name: str, value: object) -> float:
    return float(validate.whole(name, value, 0))


def _rows(name: str, value: object) -> float:
    return float(validate.whole(name, value))


def _base(name: str, value: object) -> str:
    return validate.one_of(name, value, BASES)


def _period(name: str, value: object) -> int | str:
    return "period" if value == "period" else validate.whole(name, value)


Share = Annotated[float, _share]
Step = Annotated[float, _up_to(1.0, "at most 1, so that the level moves in small steps")]
Base = Annotated[str, _base]
Positive = Annotated[float, validate.positive]
BelowOne = Annotated[float, _up_to(nextafter(1.0, 0.0), "a share below 1")]


@dataclass(frozen=True, repr=False)
class Settings:
    """A limit as its user writes it; the annotation of a setting has the check that it must pass."""

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            for check in getattr(hint, "__metadata__", ()):
                given = getattr(self, name)
                value = check(f"{type(self).__name__}: {name}", given)
                if type(value) is not type(given) or value != given:  # scikit-learn's clone asks for the very object that it gave
                    object.__setattr__(self, name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **changes: Any) -> Self:
        """A limit with some settings changed."""
        settings = self.get_params()
        for name in changes:
            if name not in settings:
                raise validate.unknown(f"parameter of {type(self).__name__}", name, list(settings))
        return replace(self, **changes)

    def __repr__(self) -> str:
        """As its user would write it: what it asks, and every setting that is not the usual one."""
        usual = {field.name: field.default for field in fields(self)}
        told = [
            f"{name}={_written(value)}"
            for name, value in self.get_params().items()
            if value != usual[name] or (name in ASKED and value is not None)
        ]
        return f"{type(self).__name__}({', '.join(told)})"


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def _sign(limit: Recall | MissLoss, classes: Sequence[object]) -> float:
    """-1 where the limit's class is the first of the two, 1 where it is the second."""
    for sign, name in zip((-1.0, 1.0), classes, strict=True):
        if name == limit.label:
            return sign
    raise validate.refused(f"{type(limit).__name__}: label must be one of the classes {validate.show(list(classes))}", limit.label)


# --- rates ------------------------------------------------------------------------------------------------------------------------------


class RateLimit(Settings):
    """A limit on the share of the counted rows that violate it; `rate` says which those are."""

    rate: ClassVar[CountedRate]

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[RateLevel, ...]:
        """The level that keeps it."""
        settings = self.get_params()
        share = settings["at_most"] if "at_most" in settings else 1.0 - settings["at_least"]
        base = BASES[settings.get("base", "model")]()
        return (make_rate_level(self._rate(classes), share, settings["eta"], base, several, yields),)

    def _rate(self, classes: Sequence[object]) -> CountedRate:
        return self.rate


@dataclass(frozen=True, repr=False)
class Recall(RateLimit):
    """A limit: at least this share of the rows of a class is found.

    Parameters
    ----------
    at_least : float, default 0.9
        The share, above 0 and below 1.
    label : object, optional
        The class. Default: the second one.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.
    base : {"model", "buffer"}, default "model"
        What the threshold starts from: the model's log-odds, or the scores of recent rows.

    Examples
    --------
    >>> Recall(at_least=0.9).at_least
    0.9
    """

    at_least: Share = 0.9
    label: object = None
    eta: Step = ETA
    base: Base = "model"

    def _rate(self, classes: Sequence[object]) -> CountedRate:
        return FIRST_RECALL if self.label is not None and _sign(self, classes) < 0.0 else RECALL


@dataclass(frozen=True, repr=False)
class FalsePositiveRate(RateLimit):
    """A limit: at most this share of the rows of the first class is an alarm.

    Parameters
    ----------
    at_most : float, default 0.01
        The share, above 0 and below 1.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.
    base : {"model", "buffer"}, default "model"
        What the threshold starts from: the model's log-odds, or the scores of recent rows.

    Examples
    --------
    >>> FalsePositiveRate(at_most=0.02).at_most
    0.02
    """

    at_most: Share = 0.01
    eta: Step = ETA
    base: Base = "model"
    rate = FALSE_POSITIVES


@dataclass(frozen=True, repr=False)
class AlertRate(RateLimit):
    """A limit: at most this share of all rows is an alarm. It needs no labels.

    Parameters
    ----------
    at_most : float, default 0.01
        The share, above 0 and below 1.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.
    base : {"model", "buffer"}, default "model"
        What the threshold starts from: the model's log-odds, or the scores of recent rows.

    Examples
    --------
    >>> AlertRate(at_most=0.02).at_most
    0.02
    """

    at_most: Share = 0.01
    eta: Step = ETA
    base: Base = "model"
    rate = ALERTS


@dataclass(frozen=True, repr=False)
class Precision(RateLimit):
    """A limit: at least this share of the alarms is right.

    Where no alarm is left to repay what was wrong, the report says so. What is proved is a lower end only: if every alarm is right, the
    precision is 1 whatever the threshold does.

    Parameters
    ----------
    at_least : float, default 0.5
        The share, above 0 and below 1.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.

    Examples
    --------
    >>> Precision(at_least=0.6).at_least
    0.6
    """

    at_least: Share = 0.5
    eta: Step = ETA
    rate = PRECISION


@dataclass(frozen=True, repr=False)
class AlertBudget(Settings):
    """A limit: at most so many alarms per period, never one more.

    Parameters
    ----------
    at_most : float
        How many alarms, a whole number, 0 or above.
    per : int or "period", default "period"
        How many rows make a period; or "period", where each row says its own: a number that does not go backward, such as a day.
    eta : float, default 0.05
        How far one alarm too many would move the level of caution, above 0.

    Examples
    --------
    >>> AlertBudget(50, per=1000)
    AlertBudget(at_most=50, per=1000)
    """

    at_most: Annotated[float, _alarms]
    per: Annotated[int | str, _period] = "period"
    eta: Step = ETA

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[BudgetLevel, ...]:
        """The level that keeps it."""
        return (BudgetLevel(self.at_most, None if self.per == "period" else float(self.per), self.eta),)


@dataclass(frozen=True, repr=False)
class GapLimit(Settings):
    """A limit on the gap between groups."""

    gap: Annotated[float, _up_to(1.0, "a difference of shares above 0 and at most 1")] = 0.05
    groups: Annotated[Sequence[float] | None, _groups] = None
    eta: Step = ETA
    kinds: ClassVar[tuple[GapKind, ...]]

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[GapLevel, ...]:
        """The levels that keep it."""
        values = None if self.groups is None else np.array(self.groups)
        return tuple(make_gap_level(kind, self.gap, self.eta, values) for kind in self.kinds)


class EqualOpportunity(GapLimit):
    """A limit: the shares of the second class that are found differ by at most `gap` between groups.

    Parameters
    ----------
    gap : float, default 0.05
        The largest difference of two shares, above 0 and below 1.
    groups : sequence of float, optional
        The groups' numbers. Default: two groups, rows whose number is above 0, and the others.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.

    Examples
    --------
    >>> EqualOpportunity(gap=0.05, groups=[0, 1, 2])
    EqualOpportunity(gap=0.05, groups=[0, 1, 2])
    """

    kinds = (POSITIVES,)


class DemographicParity(GapLimit):
    """A limit: the shares of alarms differ by at most `gap` between groups.

    Parameters
    ----------
    gap : float, default 0.05
        The largest difference of two shares, above 0 and below 1.
    groups : sequence of float, optional
        The groups' numbers. Default: two groups, rows whose number is above 0, and the others.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.

    Examples
    --------
    >>> DemographicParity(gap=0.1).gap
    0.1
    """

    kinds = (ALL_ROWS,)


class EqualizedOdds(GapLimit):
    """A limit: the shares found, and the shares of false alarms, differ by at most `gap` between groups.

    Parameters
    ----------
    gap : float, default 0.05
        The largest difference of two shares, above 0 and below 1.
    groups : sequence of float, optional
        The groups' numbers. Default: two groups, rows whose number is above 0, and the others.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.

    Examples
    --------
    >>> EqualizedOdds(gap=0.1).gap
    0.1
    """

    kinds = (POSITIVES, NEGATIVES)


# --- losses -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class MissLoss(Settings):
    """A limit: at most this log-loss on every row of a class, so that it is not missed.

    Parameters
    ----------
    label : object, default 1
        The class.
    at_most : float, default 0.1
        The log-loss, above 0, in nats: 0.1 asks for a probability of e^-0.1 = 0.90. No finite weights could meet 0.

    Examples
    --------
    >>> MissLoss(label="fraud", at_most=0.2).bind(["fine", "fraud"]).sign
    1.0
    """

    label: object = 1
    at_most: Positive = 0.1

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"mean loss of {self.label!r}"

    def bind(self, classes: Sequence[object]) -> LossOfClass:
        """The limit for an estimator with these two classes."""
        return LossOfClass(_sign(self, classes), self.at_most)


@dataclass(frozen=True, repr=False)
class GroupGap(Settings):
    """A limit: at most this difference between two groups' mean scores.

    Parameters
    ----------
    at_most : float, default 0.1
        The difference, above 0, in log-odds.
    lookback : int, default 1000
        Over about how many of the last rows of each group, 1 or above.

    Examples
    --------
    >>> limit = GroupGap(at_most=0.5).bind([0, 1])
    >>> memory, _ = limit.reveal(limit.start(2), np.array([1.0, 3.0]), 1.0, 0)
    >>> memory, gap = limit.reveal(memory, np.array([1.0, 5.0]), 1.0, 1)
    >>> gap.value(np.array([9.0, 1.0]))
    array([ 1.5, -2.5])
    """

    at_most: Positive = 0.1
    lookback: Annotated[float, _rows] = 1000
    name: ClassVar = "gap of mean scores"
    constraints: ClassVar = 2

    def bind(self, classes: Sequence[object]) -> ScoreGap:
        """The limit for an estimator with these two classes."""
        return ScoreGap(self.at_most, self.lookback)


@dataclass(frozen=True, repr=False)
class WeightBudget(Settings):
    """A limit: at most this much of half the squared length of the weights, the intercept among them.

    Parameters
    ----------
    at_most : float, default 1.0
        The amount, above 0, in squared weights.

    Examples
    --------
    >>> WeightBudget(2.0).bind([0, 1]).reveal((), np.ones(2), 1.0, None)[1].value(np.array([2.0, 2.0]))
    2.0
    """

    at_most: Positive = 1.0
    name: ClassVar = "weights"

    def bind(self, classes: Sequence[object]) -> SquaredWeights:
        """The limit for an estimator with these two classes."""
        return SquaredWeights(self.at_most)


# --- of regressors ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Quantile(Settings):
    """A limit: at most a share ``1 - level`` of the targets lies above the prediction, on every stream.

    Parameters
    ----------
    level : float, default 0.9
        The level, above 0 and below 1.

    Examples
    --------
    >>> Quantile(0.9).level
    0.9
    """

    level: BelowOne = 0.9


@dataclass(frozen=True, repr=False)
class ErrorRate(Settings):
    """A limit: at most a share of the rows has a prediction that is off by more than a size.

    Parameters
    ----------
    beyond : float
        The size, above 0, in the unit of the targets.
    at_most : float, default 0.1
        The share, above 0 and below 1.

    Examples
    --------
    >>> ErrorRate(beyond=2.0, at_most=0.05).at_most
    0.05
    """

    beyond: Positive
    at_most: BelowOne = 0.1


# --- parameters by name, for grids ----------------------------------------------------------------------------------------------------

L = TypeVar("L")


def named_parameters(limits: Sequence[object]) -> dict[str, Any]:
    """Every limit under its place, and every setting of one under "place__setting"."""
    named: dict[str, Any] = {}
    for i, limit in enumerate(limits):
        named[str(i)] = limit
        if hasattr(limit, "get_params"):
            named |= {f"{i}__{name}": value for name, value in limit.get_params().items()}
    return named


def with_parameters(limits: Sequence[L], changes: Mapping[str, Any]) -> list[L]:
    """The limits with some of what `named_parameters` names changed: whole limits first, then their settings."""
    after: list[Any] = list(limits)
    settings: dict[int, dict[str, Any]] = {}
    for name, value in changes.items():
        place, _, setting = name.partition("__")
        if not place.isdigit() or int(place) >= len(after):
            raise InputError(f"constraints have no part {name!r}; there are {len(after)} limits, named 0, 1 and so on")
        if setting:
            settings.setdefault(int(place), {})[setting] = value
        else:
            after[int(place)] = value
    for i, part in settings.items():
        if not hasattr(after[i], "set_params"):
            raise InputError(f"constraints[{i}] has no settings that can be changed by name: {validate.show(after[i])}")
        after[i] = after[i].set_params(**part)
    return after
