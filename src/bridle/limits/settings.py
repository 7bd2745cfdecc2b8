"""What a limit is to its user: a value whose settings are checked, which can be pickled and compared, and named in grids.

A limit is a frozen dataclass of `Settings`. scikit-learn's `clone` makes it again from ``get_params()``; it never changes, so
``set_params`` returns a new one. An estimator that takes a list of them offers them to grids by `named_parameters` and `with_parameters`:
`constraints__0__at_least` is ``"0__at_least"`` there.

>>> from bridle.limits import FalsePositiveRate, Recall
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
from typing import Annotated, Any, Self, TypeVar, get_type_hints

from bridle import validate
from bridle.core import InputError

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


def up_to(most: float, what: str) -> Callable[[str, object], float]:
    """The check of a number above 0 and at most `most`, which is `what` it must be."""

    def check(name: str, value: object) -> float:
        number = validate.positive(name, value)
        if number > most:
            raise validate.refused(f"{name} must be {what}", value)
        return number

    return check


def whole_from(least: int) -> Callable[[str, object], float]:
    """The check of a whole number, `least` or above."""
    return lambda name, value: float(validate.whole(name, value, least))


Share = Annotated[float, _share]
Step = Annotated[float, up_to(1.0, "at most 1, so that the level moves in small steps")]
Positive = Annotated[float, validate.positive]
BelowOne = Annotated[float, up_to(nextafter(1.0, 0.0), "a share below 1")]


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


def sign_of(limit: Any, classes: Sequence[object]) -> float:
    """-1 where the limit's class is the first of the two, 1 where it is the second."""
    for sign, name in zip((-1.0, 1.0), classes, strict=True):
        if name == limit.label:
            return sign
    raise validate.refused(f"{type(limit).__name__}: label must be one of the classes {validate.show(list(classes))}", limit.label)


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
    for name in sorted(changes, key=lambda name: "__" in name):
        place, _, setting = name.partition("__")
        if not place.isdigit() or int(place) >= len(after):
            raise InputError(f"constraints have no part {name!r}; there are {len(after)} limits, named 0, 1 and so on")
        i = int(place)
        if setting and not hasattr(after[i], "set_params"):
            raise InputError(f"constraints[{i}] has no settings that can be changed by name: {validate.show(after[i])}")
        after[i] = after[i].set_params(**{setting: changes[name]}) if setting else changes[name]
    return after
