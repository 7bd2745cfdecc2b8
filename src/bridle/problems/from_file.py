"""Problems given as files: a Python file that defines a Problem, or arrays in an .npz.

`factory(path)` is the factory of the problem in a file, with a signature and a docstring like any registered one. What is wrong with a file
is an InputError that names it. `docs/problems.md` describes both formats.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from functools import wraps
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import TypeGuard

import numpy as np

from bridle import validate
from bridle.core import Domain, InputError, Round
from bridle.problems import from_arrays
from bridle.problems.base import Problem
from bridle.problems.dealing import first_round

ENDINGS = (".py", ".npz")

_MODULES: dict[tuple[str, int, int], ModuleType] = {}
"""Python files that were run, by path, time of change and size: the same file gives the same record types, which engines compile once."""


def is_file(name: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether a problem's name is that of a file."""
    return isinstance(name, (str, os.PathLike)) and os.fsdecode(name).endswith(ENDINGS)


def factory(name: str | os.PathLike[str]) -> Callable[..., Problem]:
    """The factory of the problem in a file."""
    path = os.fsdecode(name)
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}" if not os.path.exists(path) else f"{path} is not a file")
    return from_arrays.factory(path) if path.endswith(".npz") else _python(path)


def _python(path: str) -> Callable[..., Problem]:
    module = _run(path)
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
        with _blamed(path):
            result = function(**settings)
        if not isinstance(result, Problem):
            raise InputError(f"{path}: the function problem() must return a bridle.Problem, not {validate.show(result)}")
        return _checked(path, result)

    return make


def _checked(path: str, made: Problem) -> Problem:
    """The problem with what its parts say of themselves, or an InputError about what they lack."""
    if not isinstance(made.domain, Domain):
        raise InputError(f"{path}: the problem's domain must be a domain such as bridle.Ball(dim=2), not {validate.show(made.domain)}")
    for method in ("init", "answer"):
        if not hasattr(made.adversary, method):
            raise InputError(f"{path}: the problem's adversary must have a method `{method}`; {validate.show(made.adversary)} has none")
    with _blamed(path, "the adversary's first round: "):
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


def _run(path: str) -> ModuleType:
    """The module that a Python file is."""
    full, status = os.path.abspath(path), os.stat(path)
    key = (full, status.st_mtime_ns, status.st_size)
    if key not in _MODULES:
        name = "bridle_problem_" + sha256(repr(key).encode()).hexdigest()[:16]
        spec = spec_from_file_location(name, full)
        if spec is None or spec.loader is None:
            raise InputError(f"{path} cannot be read as Python")
        module = module_from_spec(spec)
        sys.modules[name] = module  # where dataclasses and pickle look for what the file defines
        try:
            with _blamed(path):
                spec.loader.exec_module(module)
        except InputError:
            del sys.modules[name]
            raise
        _MODULES[key] = module
    return _MODULES[key]


@contextmanager
def _blamed(path: str, doing: str = "") -> Iterator[None]:
    """Run a file's code, which may import its neighbours; whatever it raises is an InputError that says where.

    What it prints goes to standard error: standard output is for results.
    """
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InputError(f"{path}{_line(path, error)}: {doing}{type(error).__name__}: {' '.join(text.split())}") from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _line(path: str, error: BaseException) -> str:
    """The last line of the file that the error passed through."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}" if error.lineno and os.path.abspath(str(error.filename)) == os.path.abspath(path) else ""
    step, line = error.__traceback__, 0
    while step is not None:
        if os.path.abspath(step.tb_frame.f_code.co_filename) == os.path.abspath(path):
            line = step.tb_lineno
        step = step.tb_next
    return f", line {line}" if line else ""
