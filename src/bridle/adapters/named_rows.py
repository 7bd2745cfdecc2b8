"""Rows of river as arrays: features by name, in the order in which they were first seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from bridle import validate
from bridle.adapters.mixture import MOST_NEWTON
from bridle.core import InputError
from bridle.ops import Array
from bridle.session.feedback import FLOAT, LARGEST

ROW_KINDS = validate.NUMBER_KINDS + "b"
"""NumPy's letters for the kinds of features."""

RiverRow: TypeAlias = dict[Hashable, float]
"""The features of a row by name."""


class Grows(Protocol):
    """A model with room for so many features."""

    features: int

    @property
    def blank(self) -> bool:
        """Whether nothing was learned so far."""
        ...

    def grow(self, features: int) -> None:
        """Make room for more."""
        ...


G = TypeVar("G", bound=Grows)


class FeatureOrder:
    """The names of the features, in the order in which they were first seen."""

    def __init__(self) -> None:
        self.places: dict[Hashable, int] = {}
        self.order: list[Hashable] = []

    def new(self, x: RiverRow) -> list[Hashable]:
        """The names in a row that were never seen."""
        return [] if x.keys() <= self.places.keys() else [name for name in x if name not in self.places]

    def add(self, names: list[Hashable]) -> None:
        """Put these after the others."""
        self.order = self.order + names
        self.places = {name: place for place, name in enumerate(self.order)}

    def plain(self, x: RiverRow, room: int) -> Array | None:
        """The features of a row that has all of them, in their order and as floats; None for any other, which is looked at more closely."""
        try:
            row = np.array(list(x.values()))
            if row.dtype is FLOAT and row.dot(row) <= LARGEST and list(x) == self.order and len(row) == room:
                return row
        except Exception:  # whatever is asked here, or NumPy is told to raise
            return None
        return None

    def placed(self, x: RiverRow, values: Array, room: int) -> Array:
        """The features in their order, and 0 for those that are not there."""
        row = np.zeros(room)
        if list(x) == self.order:
            row[: len(x)] = values
        else:
            row[[self.places[name] for name in x]] = values
        return row

    def taken_on(self, x: RiverRow, model: G, made: Callable[[int], G]) -> tuple[G, Array]:
        """The features of a row that is learned, and the model, with room for all of them: one `made` anew where it has learned nothing."""
        row = self.plain(x, model.features)
        if row is None:
            values = values_of(x)  # before anything changes
            if new := self.new(x):
                names = len(self.order) + len(new)
                if model.blank:
                    model = made(names)
                elif names > model.features:
                    model.grow(room_for(names, model.features))
                self.add(new)
            row = self.placed(x, values, model.features)
        return model, row

    def known(self, x: RiverRow, room: int) -> Array:
        """The features of a row that is only scored: names never seen have weight 0."""
        row = self.plain(x, room)
        if row is None:
            demand_row(x)
            known = {name: value for name, value in x.items() if name in self.places}
            row = self.placed(known, values_of(known), room)
        return row


def room_for(names: int, room: int) -> int:
    """Room for so many features where some came late, so that more may follow; not so much that an expert must go before its time."""
    most = MOST_NEWTON - 1  # with the intercept
    return max(names, min(2 * room, most) if names <= most else 2 * room)


def demand_row(x: object) -> None:
    """Refuse what is no row of features by name."""
    if type(x) is not dict and not isinstance(x, Mapping):
        raise InputError(f"x must be a dict of features, not {validate.show(x)}")


def number_of(name: str, given: object) -> float:
    """The number of a group or a period; nan, which is of none, is one too."""
    if isinstance(given, bool):
        return float(given)
    number = validate.floats(name, given, "a number")
    if number.ndim:
        raise InputError(f"{name} must be a number, not {validate.show(given)}")
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
