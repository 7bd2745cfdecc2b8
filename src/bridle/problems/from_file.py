"""Problems given as files: a Python file that defines a Problem, or arrays in an .npz.

`factory(path)` is the factory of the problem in a file, with a signature and a docstring like any registered one. What is wrong with a file
is an InputError that names it. `docs/problems.md` describes both formats.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TypeGuard

import numpy as np

from bridle import validate
from bridle.core import Domain, InputError, Round
from bridle.policies import own
from bridle.problems import from_arrays
from bridle.problems.base import Problem
from bridle.problems.dealing import first_round
from bridle.storage import StrPath

ENDINGS = (".py", ".npz")


def is_file(name: object) -> TypeGuard[StrPath]:
    """Whether a problem's name is that of a file."""
    return isinstance(name, (str, os.PathLike)) and os.fsdecode(name).endswith(ENDINGS)


def factory(name: StrPath) -> Callable[..., Problem]:
    """The factory of the problem in a file."""
    path = own.require(os.fsdecode(name))
    return from_arrays.factory(path) if path.endswith(".npz") else _python(path)


def _python(path: str) -> Callable[..., Problem]:
    module = own.run(path)
    source = getattr(module, "problem", None)
    if not (isinstance(source, Problem) or callable(source)):
        problems = [value for value in vars(module).values() if isinstance(value, Problem)]
        if len(problems) != 1:
            raise InputError(
                f"{path} defines no problem: it needs a variable `problem` that is a bridle.Problem, or a function that makes one"
            )
        source = problems[0]
    make = _always(path, source) if isinstance(source, Problem) else _called(path, source)
    make.__doc__ = (source.__doc__ if callable(source) else None) or module.__doc__ or f"The problem in {path}."
    return make


def _always(path: str, problem: Problem) -> Callable[..., Problem]:
    """A problem that is there when the file has run; the horizon and the seed are those of the game."""
    complete = _checked(path, problem)

    def make(horizon: int | None = None, seed: int = 0) -> Problem:
        rounds = problem.horizon if horizon is None else horizon
        return replace(complete, parameters={**problem.parameters, "horizon": rounds, "seed": seed})

    return make


def _called(path: str, function: Callable[..., object]) -> Callable[..., Problem]:
    """A function that makes the problem, called with horizon, seed and the parameters it has."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise InputError(f"{path}: `problem` must be a bridle.Problem or a function that makes one") from None
    for name in ("horizon", "seed"):
        if name not in parameters:
            raise InputError(f"{path}: the function problem() must have a parameter {name}")

    @wraps(function)
    def make(**settings: object) -> Problem:
        with own.blamed(path):
            result = function(**settings)
        if not isinstance(result, Problem):
            raise validate.refused(f"{path}: the function problem() must return a bridle.Problem", result)
        return _checked(path, result)

    return make


def _checked(path: str, made: Problem) -> Problem:
    """The problem with what its parts say of themselves, or an InputError about what they lack."""
    if not isinstance(made.domain, Domain):
        raise validate.refused(f"{path}: the problem's domain must be a domain such as bridle.Ball(dim=2)", made.domain)
    for method in ("init", "answer"):
        if not hasattr(made.adversary, method):
            raise InputError(f"{path}: the problem's adversary must have a method `{method}`; {validate.show(made.adversary)} has none")
    with own.blamed(path, "the adversary's first round: "):
        x = made.domain.center()
        answered = first_round(made.adversary, made.seed, x).round
        if not isinstance(answered, Round) or not answered.constraints:
            raise TypeError(f"answer must return its state and a bridle.Round with at least one constraint, not {validate.show(answered)}")
        first = answered.reveal(x)
        if not all(np.isfinite(part).all() for part in (first.f, first.df, first.g, first.dg)):
            raise ValueError("a cost, a constraint or a gradient is not finite")
    k = int(np.shape(first.g)[-1])
    if made.constants.get("constraints", k) != k:
        raise InputError(f"{path}: the problem's constants say {made.constants['constraints']} constraints, its first round has {k}")
    return replace(made, constants={"diameter": made.domain.diameter(), **made.constants, "constraints": k})
