"""The registry: every problem under its name, with the function that makes it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, wraps
from typing import Any, NamedTuple, ParamSpec

from bridle import validate
from bridle.core import InputError
from bridle.policies.entry import Parameter, parameters_of
from bridle.problems import from_file
from bridle.problems.base import Problem
from bridle.storage import StrPath

P = ParamSpec("P")

_PROBLEMS: dict[str, Callable[..., Problem]] = {}


def registered(factory: Callable[P, Problem]) -> Callable[P, Problem]:
    """Register a function that makes a problem under its own name, with ``-`` for ``_``.

    The first line of its docstring is the problem's summary; the paragraph after it says what x, f and g are.
    """
    name = factory.__name__.replace("_", "-")
    _PROBLEMS[name] = factory

    @wraps(factory)
    def make(*args: P.args, **settings: P.kwargs) -> Problem:
        given: dict[str, Any] = inspect.signature(factory).bind_partial(*args, **settings).arguments
        return problem(name, **given)

    return make


@validate.computed
def problem(name: StrPath, horizon: int | None = None, seed: int = 0, **settings: object) -> Problem:
    """Make the problem registered as `name`, or the one in a file of your own.

    Each problem of the library is also a function with its own signature: ``bridle.problems.halfspaces(1000, dim=3)``.

    Parameters
    ----------
    name : str or path
        A name that `bridle problems` lists, or a file that ends in .py or .npz (see docs/problems.md).
    horizon : int, optional
        How many rounds, 1 or above. It may be left out if a file knows its own.
    seed : int, default 0
        The seed of the instance and of its stream, 0 or above.
    **settings : object
        Parameters of the problem; `bridle problems NAME` lists them.

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
    return replace(drawn, name=os.fspath(name), parameters=parameters, factory=partial(problem, os.fspath(name)))


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
    return any(p.name == parameter and p.required for p in problem_facts(name).parameters)


class ProblemFacts(NamedTuple):
    """What is told about a problem: its summary, what x, f and g are, and its parameters."""

    name: str
    summary: str
    about: str
    parameters: list[Parameter]


def problem_facts(name: str) -> ProblemFacts:
    """What the docstring and the signature of a problem's function tell about it.

    >>> problem_facts("nested-bodies").about.startswith("x is where the chaser stands, and f is 0.")
    True
    """
    factory = _factory(name)
    summary, *paragraphs = inspect.cleandoc(factory.__doc__ or "").split("\n\n")
    about = " ".join(paragraphs[0].split()) if paragraphs and not paragraphs[0].startswith("Parameters\n") else ""
    return ProblemFacts(os.fspath(name), " ".join(summary.split()), about, parameters_of(factory))


def _takes_any(accepted: Mapping[str, inspect.Parameter]) -> bool:
    """Whether a factory takes parameters of any name."""
    return any(p.kind is p.VAR_KEYWORD for p in accepted.values())


def _factory(name: object) -> Callable[..., Problem]:
    if isinstance(name, str) and name in _PROBLEMS:
        return _PROBLEMS[name]
    if from_file.is_file(name):
        return from_file.factory(name)
    raise validate.unknown("problem", name, _PROBLEMS)
