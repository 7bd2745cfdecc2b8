"""Policies and problems that were given to a comparison as objects, in the words in which a comparison keeps them.

A row is found again by what its game was made of, so everything about a policy or a problem must be a name, a number or a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from bridle import records, showing, validate
from bridle.comparisons.cell import Cell
from bridle.core import InputError
from bridle.policies import Configured
from bridle.problems import Problem, problem_names


def listed(name: str, given: object) -> list[object]:
    """What was given as a list: one name, policy or problem stands for itself."""
    if isinstance(given, (str, Configured, Problem)):
        return [given]
    if not isinstance(given, Iterable):
        raise InputError(f"{name} must be names or a list of them, not {validate.show(given)}")
    return list(given)


def problem_text(place: str, given: object) -> str:
    """A problem as text: as it was typed, or the name and the settings of an object."""
    if isinstance(given, str):
        return given
    if not isinstance(given, Problem):
        raise InputError(f"{place} must be the name of a problem, a file or a problem, not {validate.show(given)}")
    if given.name not in problem_names():
        raise InputError(f"{place} must be a problem that has a name, or the file of one, so that others can make it again, not {given!r}")
    return _text(place, given.name, {key: value for key, value in given.parameters.items() if key not in ("horizon", "seed")})


def policy_text(place: str, given: object) -> str:
    """A policy as text: as it was typed, or the name and the settings of an object."""
    if isinstance(given, str):
        return given
    if not isinstance(given, Configured):
        raise InputError(
            f"{place} must be the name of a policy or what bridle.policy gives, not {validate.show(given)}; "
            "one of your own is given by its file, or by its name after bridle.register"
        )
    if given.runs is not None:
        raise InputError(f"{place} stands for {given.runs} runs: give its lists as sweep={{NAME: VALUES}}, not {given!r}")
    if given.through is not None:
        raise InputError(f"{place} is played through {given.through.keyword}, which only a session can be told of, not {given!r}")
    return _text(place, given.name, given.parameters)


def check_domains(given: Iterable[object], texts: Iterable[str], cells: Iterable[Cell]) -> None:
    """Refuse a policy that was made for another domain than the problem has."""
    made = {text.partition(":")[0]: each for each, text in zip(given, texts, strict=True) if isinstance(each, Configured)}
    seen: set[tuple[str, str]] = set()
    for cell in cells:
        policy = made.get(cell.policy)
        if policy is None or (cell.policy, where := cell.instance.key) in seen:
            continue
        seen.add((cell.policy, where))
        domain = cell.instance.make().domain
        if not records.same(domain, policy.domain):
            raise InputError(f"policies: {policy!r} is for another domain than problem {cell.instance.shown} has, which is {domain!r}")


def _text(place: str, name: str, settings: Mapping[str, object]) -> str:
    return ":".join([name, *(f"{key}={_value(place, key, value)}" for key, value in settings.items())])


def _value(place: str, key: str, value: object) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple) and len(value) == 1:
        (value,) = value
    if isinstance(value, (bool, int, float, str)) and not (isinstance(value, str) and ":" in value):
        return value if isinstance(value, str) else repr(value)
    raise InputError(f"{place} has {key}={showing.short(value)}, and a comparison takes numbers and names alone")
