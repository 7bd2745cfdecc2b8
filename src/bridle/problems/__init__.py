"""Named problems: a domain, an adversary, and the constants that are true of them.

A module of problems has a dictionary PROBLEMS from names to factories. A factory's docstring begins with one line that says what the
problem is; the paragraph after it, where there is one, says what x, f and g are. To add a problem: a factory, and its line in PROBLEMS.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bridle import validate
from bridle.problems import families, hostile, paper
from bridle.problems.base import HELP, Problem

__all__ = ["Problem", "problem", "problem_facts", "problem_names", "takes"]

_PROBLEMS: dict[str, Callable[..., Problem]] = {**paper.PROBLEMS, **families.PROBLEMS, **hostile.PROBLEMS}


def problem(name: str, horizon: int, seed: int = 0, **given: Any) -> Problem:
    """The problem registered as `name`.

    >>> problem("halfspaces", horizon=100, dim=3).constants["lipschitz"]
    1.0
    """
    if name not in _PROBLEMS:
        raise validate.unknown("problem", name, _PROBLEMS)
    known = inspect.signature(_PROBLEMS[name]).parameters
    for key in given:
        if key not in known:
            raise validate.unknown(f"parameter of problem {name}", key, known)
    given = {key: value for key, value in given.items() if value is not None}
    parameters = {"horizon": validate.whole("horizon", horizon), "seed": validate.whole("seed", seed, 0), **given}
    return replace(_PROBLEMS[name](**parameters), name=name, parameters=parameters, factory=_PROBLEMS[name])


def problem_names() -> list[str]:
    """The registered problem names.

    >>> problem_names()
    ['lower-bound', 'minimax', 'fixed', 'halfspaces']
    """
    return list(_PROBLEMS)


def takes(name: str, parameter: str) -> bool:
    """Whether the problem registered as `name` has a parameter of that name."""
    return name in _PROBLEMS and parameter in inspect.signature(_PROBLEMS[name]).parameters


def problem_facts(name: str) -> dict[str, Any]:
    """What the command line tells about a problem: its summary and its parameters."""
    if name not in _PROBLEMS:
        raise validate.unknown("problem", name, _PROBLEMS)
    factory = _PROBLEMS[name]
    parameters = [
        {"name": p.name, "required": p.default is p.empty, "default": None if p.default is p.empty else p.default, "help": HELP[p.name]}
        for p in inspect.signature(factory).parameters.values()
    ]
    return {"name": name, "summary": (factory.__doc__ or "").splitlines()[0], "parameters": parameters}
