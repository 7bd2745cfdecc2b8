"""Limits on the gap between groups, in the user's words; `rate_limits` has them with the others.

>>> EqualOpportunity(gap=0.05, groups=[0, 1, 2])
EqualOpportunity(gap=0.05, groups=[0, 1, 2])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bridle import validate
from bridle.adapters.group_levels import ALL_ROWS, NEGATIVES, POSITIVES, GapKind, GapLevel, make_gap_level
from bridle.adapters.levels import ETA
from bridle.adapters.limits import changed, written
from bridle.core import InputError


class OpportunityLimit(NamedTuple):
    """The shares of the second class that are found differ by at most `gap` between groups."""

    gap: float
    groups: tuple[float, ...] | None = None
    eta: float = ETA

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[GapLevel, ...]:
        return (_gap_level(POSITIVES, self.gap, self.groups, self.eta),)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self._asdict()

    def set_params(self, **changes: object) -> OpportunityLimit:
        return changed(EqualOpportunity, self, changes)

    def __repr__(self) -> str:
        return written(EqualOpportunity, self)


class ParityLimit(NamedTuple):
    """The shares of alarms differ by at most `gap` between groups."""

    gap: float
    groups: tuple[float, ...] | None = None
    eta: float = ETA

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[GapLevel, ...]:
        return (_gap_level(ALL_ROWS, self.gap, self.groups, self.eta),)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self._asdict()

    def set_params(self, **changes: object) -> ParityLimit:
        return changed(DemographicParity, self, changes)

    def __repr__(self) -> str:
        return written(DemographicParity, self)


class OddsLimit(NamedTuple):
    """Both the shares found and the shares of false alarms differ by at most `gap` between groups."""

    gap: float
    groups: tuple[float, ...] | None = None
    eta: float = ETA

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[GapLevel, ...]:
        return tuple(_gap_level(kind, self.gap, self.groups, self.eta) for kind in (POSITIVES, NEGATIVES))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self._asdict()

    def set_params(self, **changes: object) -> OddsLimit:
        return changed(EqualizedOdds, self, changes)

    def __repr__(self) -> str:
        return written(EqualizedOdds, self)


def EqualOpportunity(gap: float = 0.05, groups: Sequence[float] | None = None, eta: float = ETA) -> OpportunityLimit:
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
    >>> EqualOpportunity(gap=0.1).gap
    0.1
    """
    return OpportunityLimit(*_group_settings("EqualOpportunity", gap, groups, eta))


def DemographicParity(gap: float = 0.05, groups: Sequence[float] | None = None, eta: float = ETA) -> ParityLimit:
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
    return ParityLimit(*_group_settings("DemographicParity", gap, groups, eta))


def EqualizedOdds(gap: float = 0.05, groups: Sequence[float] | None = None, eta: float = ETA) -> OddsLimit:
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
    return OddsLimit(*_group_settings("EqualizedOdds", gap, groups, eta))


def step_of(limit: str, eta: object) -> float:
    """How far one violation moves a limit's level."""
    step = validate.positive(f"{limit}: eta", eta)
    if step > 1.0:
        raise InputError(f"{limit}: eta must be at most 1, so that the level moves in small steps, not {validate.show(eta)}")
    return step


def _group_settings(limit: str, gap: object, groups: Sequence[float] | None, eta: object) -> tuple[float, tuple[float, ...] | None, float]:
    most = validate.positive(f"{limit}: gap", gap)
    if most > 1.0:
        raise InputError(f"{limit}: gap must be a difference of shares above 0 and at most 1, not {validate.show(gap)}")
    numbers = None
    if groups is not None:
        numbers = tuple(validate.vector(f"{limit}: groups", groups).tolist())
        if len(numbers) < 2 or len(set(numbers)) < len(numbers):
            raise InputError(f"{limit}: groups must be the different numbers of two groups or more, not {validate.show(groups)}")
    return most, numbers, step_of(limit, eta)


def _gap_level(kind: GapKind, gap: float, groups: tuple[float, ...] | None, eta: float) -> GapLevel:
    return make_gap_level(kind, gap, eta, None if groups is None else np.array(groups))
