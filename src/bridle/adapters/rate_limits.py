"""Limits in the user's words: rates that a classifier keeps by moving its threshold, so that they come out as asked.

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
the quantile of the last 1,000 counted scores, for scores that are badly calibrated (`score_bases`).

A limit is a value: it can be pickled and compared, and `thresholds.thresholds` makes what keeps it. scikit-learn's `clone` makes it again
from ``get_params()``; it never changes, so that ``set_params`` returns a new one. An estimator that takes a list of them offers them to
grids by `named_parameters` and `with_parameters`: `constraints__0__at_least` is ``"0__at_least"`` there.

>>> limits = [Recall(at_least=0.9), FalsePositiveRate(at_most=0.01)]
>>> named_parameters(limits)["0__at_least"], with_parameters(limits, {"0__at_least": 0.8})[0]
(0.9, Recall(at_least=0.8))
>>> Recall(at_least=1.2)
Traceback (most recent call last):
...
bridle.core.InputError: Recall: at_least must be a share of rows above 0 and below 1, not 1.2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from bridle import validate
from bridle.adapters.alert_budget import BudgetLevel, make_budget
from bridle.adapters.group_limits import DemographicParity, EqualizedOdds, EqualOpportunity, step_of
from bridle.adapters.levels import (
    ALERTS,
    ETA,
    FALSE_POSITIVES,
    FIRST_RECALL,
    PRECISION,
    RECALL,
    RateLevel,
    make_rate_level,
)
from bridle.adapters.limits import changed, written
from bridle.adapters.score_bases import Buffer, BufferBase, Model, ModelBase
from bridle.core import InputError

__all__ = [
    "AlertBudget",
    "AlertRate",
    "DemographicParity",
    "EqualOpportunity",
    "EqualizedOdds",
    "FalsePositiveRate",
    "Precision",
    "Recall",
    "named_parameters",
    "with_parameters",
]

BASES = ("model", "buffer")
"""Where a threshold stands before the debt moves it."""

LEAST_SHARE = 1e-6
"""Shares are read as fractions with a denominator up to a million."""


class RecallLimit(NamedTuple):
    """At least this share of the rows of class `label` is found; None: of the second class."""

    at_least: float
    label: object = None
    eta: float = ETA
    base: str = "model"

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[RateLevel, ...]:
        first, second = classes
        if self.label is not None and self.label not in (first, second):
            raise InputError(f"Recall: label must be one of the classes {validate.show(list(classes))}, not {validate.show(self.label)}")
        rate = FIRST_RECALL if self.label is not None and self.label == first else RECALL
        return (make_rate_level(rate, 1.0 - self.at_least, self.eta, _base(self.base), several, yields),)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self._asdict()

    def set_params(self, **changes: object) -> RecallLimit:
        return changed(Recall, self, changes)

    def __repr__(self) -> str:
        return written(Recall, self)


class FalsePositiveLimit(NamedTuple):
    """At most this share of the rows of the first class is an alarm."""

    at_most: float
    eta: float = ETA
    base: str = "model"

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[RateLevel, ...]:
        return (make_rate_level(FALSE_POSITIVES, self.at_most, self.eta, _base(self.base), several, yields),)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self._asdict()

    def set_params(self, **changes: object) -> FalsePositiveLimit:
        return changed(FalsePositiveRate, self, changes)

    def __repr__(self) -> str:
        return written(FalsePositiveRate, self)


class AlertLimit(NamedTuple):
    """At most this share of all rows is an alarm."""

    at_most: float
    eta: float = ETA
    base: str = "model"

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[RateLevel, ...]:
        return (make_rate_level(ALERTS, self.at_most, self.eta, _base(self.base), several, yields),)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self._asdict()

    def set_params(self, **changes: object) -> AlertLimit:
        return changed(AlertRate, self, changes)

    def __repr__(self) -> str:
        return written(AlertRate, self)


class AlertBudgetLimit(NamedTuple):
    """At most so many alarms per `per` rows, or per period where `per` is "period"."""

    at_most: float
    per: object
    eta: float = ETA

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[BudgetLevel, ...]:
        per = None if self.per == "period" else float(validate.whole("per", self.per))
        return (make_budget(float(self.at_most), per, self.eta),)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self._asdict()

    def set_params(self, **changes: object) -> AlertBudgetLimit:
        return changed(AlertBudget, self, changes)

    def __repr__(self) -> str:
        return written(AlertBudget, self)


class PrecisionLimit(NamedTuple):
    """At least this share of the alarms is right."""

    at_least: float
    eta: float = ETA

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[RateLevel, ...]:
        return (make_rate_level(PRECISION, 1.0 - self.at_least, self.eta, Model(), several, yields),)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self._asdict()

    def set_params(self, **changes: object) -> PrecisionLimit:
        return changed(Precision, self, changes)

    def __repr__(self) -> str:
        return written(Precision, self)


def Recall(at_least: float = 0.9, label: object = None, eta: float = ETA, base: str = "model") -> RecallLimit:
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
    return RecallLimit(_share("Recall", "at_least", at_least), label, *_settings("Recall", eta, base))


def FalsePositiveRate(at_most: float = 0.01, eta: float = ETA, base: str = "model") -> FalsePositiveLimit:
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
    return FalsePositiveLimit(_share("FalsePositiveRate", "at_most", at_most), *_settings("FalsePositiveRate", eta, base))


def AlertRate(at_most: float = 0.01, eta: float = ETA, base: str = "model") -> AlertLimit:
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
    return AlertLimit(_share("AlertRate", "at_most", at_most), *_settings("AlertRate", eta, base))


def AlertBudget(at_most: float, per: object = "period", eta: float = ETA) -> AlertBudgetLimit:
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
    most = float(_whole("AlertBudget", "at_most", at_most, 0))
    if per != "period":
        per = _whole("AlertBudget", "per", per, 1)
    return AlertBudgetLimit(most, per, step_of("AlertBudget", eta))


def Precision(at_least: float = 0.5, eta: float = ETA) -> PrecisionLimit:
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
    return PrecisionLimit(_share("Precision", "at_least", at_least), step_of("Precision", eta))


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


# --- checks -----------------------------------------------------------------------------------------------------------------------------


def _share(limit: str, name: str, value: object) -> float:
    share = validate.number(f"{limit}: {name}", value)
    if not LEAST_SHARE <= share <= 1.0 - LEAST_SHARE:
        raise InputError(f"{limit}: {name} must be a share of rows above 0 and below 1, not {validate.show(value)}")
    return share


def _whole(limit: str, name: str, value: object, least: int) -> int:
    return validate.whole(f"{limit}: {name}", value, least)


def _settings(limit: str, eta: object, base: str) -> tuple[float, str]:
    validate.one_of(f"{limit}: base", base, BASES)
    return step_of(limit, eta), base


def _base(base: str) -> ModelBase | BufferBase:
    return Buffer() if base == "buffer" else Model()
