"""Named problems: a domain, an adversary, and the constants that are true of them.

A module of problems has a dictionary PROBLEMS from names to factories. A factory's docstring begins with one line that says what the
problem is; the paragraph after it, where there is one, says what x, f and g are. To add a problem: a factory, and its line in PROBLEMS.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypedDict

from bridle import validate
from bridle.core import InputError
from bridle.policies.words import ParameterFacts
from bridle.problems import (
    applications,
    auctions,
    bundles,
    from_file,
    hints,
    hostile,
    limited_experts,
    markets,
    moving,
    navigation,
    paper,
    revenue,
    special_settings,
    streams,
)
from bridle.problems.base import Problem
from bridle.problems.words import words_for

__all__ = ["ParameterFacts", "Problem", "ProblemFacts", "needs", "problem", "problem_facts", "problem_names", "takes"]

_PROBLEMS: dict[str, Callable[..., Problem]] = {
    **paper.PROBLEMS, **special_settings.PROBLEMS, **hostile.PROBLEMS, **streams.PROBLEMS, **applications.PROBLEMS,
    **auctions.PROBLEMS, **markets.PROBLEMS, **revenue.PROBLEMS, **navigation.PROBLEMS, **bundles.PROBLEMS,
    **auctions.PROBLEMS, **markets.PROBLEMS, **limited_experts.PROBLEMS,
    **auctions.PROBLEMS, **markets.PROBLEMS, **hints.PROBLEMS,
    **auctions.PROBLEMS, **markets.PROBLEMS, **moving.PROBLEMS,
}  # fmt: skip


@validate.computed
def problem(name: str | os.PathLike[str], horizon: int | None = None, seed: int = 0, **settings: object) -> Problem:
    """The problem registered as `name`, or the one in a file of your own.

    ``bridle problems NAME`` lists the parameters of one problem with meaning, unit, default and range, and editors complete them.

    Parameters
    ----------
    name : str or path
        A name that `bridle problems` lists, or a file that ends in .py or .npz (see docs/problems.md).
    horizon : int, optional
        How many rounds, 1 or above. May be left out where a file knows its own.
    seed : int, default 0
        The seed of the instance and of its stream, 0 or above.
    **settings : object
        Parameters of the problem.

    Returns
    -------
    Problem
        The domain, the adversary and the constants, for `bridle.play` and `bridle.policy_for`.

    Raises
    ------
    InputError
        The name or a parameter is unknown, the horizon is missing, or a value is out of range.

    Examples
    --------
    >>> problem("halfspaces", horizon=100, dim=3).constants["lipschitz"]
    1.0
    """
    factory = _factory(name)
    accepted = inspect.signature(factory).parameters
    for key in settings:
        if key not in accepted and not _takes_any(accepted):
            raise validate.unknown(f"parameter of problem {name}", key, accepted)
    settings = {key: value for key, value in settings.items() if value is not None}
    if horizon is None and accepted["horizon"].default is inspect.Parameter.empty:
        raise InputError(f"horizon must be given: problem {name} does not say how many rounds it has")
    parameters = {
        "horizon": None if horizon is None else validate.whole("horizon", horizon),
        "seed": validate.whole("seed", seed, 0),
        **settings,
    }
    drawn = factory(**{key: value for key, value in parameters.items() if value is not None})
    if horizon is None:
        parameters["horizon"] = drawn.horizon or drawn.constants.get("rounds")
    again = factory if name in _PROBLEMS else partial(_from_file, os.fspath(name))  # one that other processes can be sent
    return replace(drawn, name=os.fspath(name), parameters=parameters, factory=again)


def _from_file(path: str, **parameters: object) -> Problem:
    return from_file.factory(path)(**parameters)


def problem_names() -> list[str]:
    """The registered problem names.

    >>> problem_names()[:4]
    ['lower-bound', 'minimax', 'fixed', 'halfspaces']
    """
    return list(_PROBLEMS)


def takes(name: str, parameter: str) -> bool:
    """Whether the problem of this name has a parameter of that name."""
    if name not in _PROBLEMS and not from_file.is_file(name):
        return False
    accepted = inspect.signature(_factory(name)).parameters
    return parameter in accepted or _takes_any(accepted)


def needs(name: str, parameter: str) -> bool:
    """Whether the problem of this name must be given that parameter."""
    return any(p["name"] == parameter and p["required"] for p in problem_facts(name)["parameters"])


class ProblemFacts(TypedDict):
    """What the command line tells about a problem; `about` says what x, f and g are."""

    name: str
    summary: str
    about: str
    parameters: list[ParameterFacts]


def problem_facts(name: str) -> ProblemFacts:
    """What the command line tells about a problem: its summary, what x, f and g are, and its parameters.

    >>> problem_facts("nested-bodies")["about"].startswith("x is where the chaser stands, and f is 0.")
    True
    """
    factory = _factory(name)
    parameters = [
        _parameter_facts(os.fspath(name), p) for p in inspect.signature(factory).parameters.values() if p.kind is not p.VAR_KEYWORD
    ]
    summary, *paragraphs = inspect.cleandoc(factory.__doc__ or "").split("\n\n")
    about = " ".join(paragraphs[0].split()) if paragraphs else ""
    return {"name": name, "summary": " ".join(summary.split()), "about": about, "parameters": parameters}


def _parameter_facts(problem: str, p: inspect.Parameter) -> ParameterFacts:
    words, required = words_for(problem, p.name), p.default is p.empty
    default = None if required else p.default
    absent = words.absent if default is None and not required else ""
    return {
        "name": p.name, "required": required, "default": default, "help": words.meaning, "unit": words.unit, "values": words.values,
        "absent": absent, "type": "" if p.annotation is p.empty else str(p.annotation),
    }  # fmt: skip


def _takes_any(accepted: Mapping[str, inspect.Parameter]) -> bool:
    """Whether a factory takes parameters of any name."""
    return any(p.kind is p.VAR_KEYWORD for p in accepted.values())


def _factory(name: object) -> Callable[..., Problem]:
    if isinstance(name, str) and name in _PROBLEMS:
        return _PROBLEMS[name]
    if from_file.is_file(name):
        return from_file.factory(name)
    raise validate.unknown("problem", name, _PROBLEMS)
