"""The grid of a comparison: problems x policies x horizons x seeds x parameter values, checked before anything runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from bridle import engines, validate
from bridle import policies as registry
from bridle.compare.cell import Cell, Instance, canonical, hash_file
from bridle.core import InputError, Unavailable
from bridle.engines import ENGINES
from bridle.game.play import policy_for
from bridle.problems import Problem, problem, problem_facts, problem_names, takes

POLICIES = ("anytime", "sinha2024", "sinha2024:preset=practice", "guo2022", "neely2017", "ogd")
"""What is compared by default: our own, the paper's twice, two others for constraints that change, and one that does not look at them."""

Settings = dict[str, Any]


@dataclass(frozen=True)
class Grid:
    """The cells in the order of the results; `shared` holds the keys of instances whose stream does not depend on the decisions."""

    cells: list[Cell]
    shared: frozenset[str]


@dataclass(frozen=True)
class Asked:
    """A problem or a policy as it was asked for: its name, its own settings, the parameters it has with their defaults, and whether it
    takes others as well, as a file may."""

    name: str
    settings: Settings
    defaults: Settings
    others: bool = False

    def has(self, parameter: str) -> bool:
        return parameter in self.defaults or (self.others and parameter not in ("horizon", "seed"))

    def given(self, swept: Settings) -> Settings:
        """Its settings with its share of what is swept; its own go first."""
        return {**{key: value for key, value in swept.items() if self.has(key)}, **self.settings}


def grid(
    problems: Iterable[str],
    policies: Iterable[str] = POLICIES,
    horizons: Iterable[Any] = (1000,),
    seeds: Any = 1,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    engine: str = "python",
) -> Grid:
    """Every combination, each once. A name may carry settings, as in "sinha2024:preset=practice"; "all" stands for every policy.

    `seeds` is how many, or a list of them. `sweep` gives parameters several values; each goes to whichever problems and policies have the
    parameter. Where a policy does not apply to a problem, its cell will say so; what is wrong in itself is an InputError here.

    >>> presets = {"preset": ["theory", "practice"]}
    >>> made = grid(["fixed", "halfspaces:dim=5"], ["sinha2024", "ogd"], horizons=[100, 200], seeds=3, sweep=presets)
    >>> len(made.cells), str(made.cells[-1])
    (36, 'ogd on halfspaces dim=5, horizon 200, seed 2, engine python')
    """
    if engine not in ENGINES:
        raise validate.unknown("engine", engine, ENGINES)
    engines.load(engine)
    lengths = list(dict.fromkeys(validate.whole("horizon", length) for length in horizons))
    drawn = list(dict.fromkeys(_seeds(seeds)))
    asked_problems = [_problem(text) for text in dict.fromkeys(problems)]
    chosen = dict.fromkeys(one for name in policies for one in (registry.names() if name == "all" else [name]))
    asked_policies = [_policy(text) for text in chosen]
    for what, some in (("problems", asked_problems), ("policies", asked_policies), ("horizons", lengths)):
        if not some:
            raise InputError(f"{what} must hold at least one")
    swept = _combinations(sweep or {}, asked_problems, asked_policies)
    inputs = {asked.name: _files(asked.name) for asked in asked_problems}
    made = _try_problems(asked_problems, swept, min(lengths), drawn[0])
    _try_policies(asked_policies, swept, [one for one in made.values() if isinstance(one, Problem)])
    cells: dict[str, Cell] = {}
    shared: set[str] = set()
    for asked, length, rival, values, seed in product(asked_problems, lengths, asked_policies, swept, drawn):
        settings = _told(asked, values)
        instance = Instance(asked.name, settings, length, seed, inputs[asked.name] | _named_files(settings))
        cell = Cell(instance, rival.name, rival.given(values), engine)
        cells.setdefault(cell.key, cell)
        if getattr(getattr(made[_place(asked, values)], "adversary", None), "oblivious", False):
            shared.add(instance.key)
    return Grid(list(cells.values()), frozenset(shared))


def _seeds(seeds: Any) -> list[int]:
    if isinstance(seeds, (list, tuple, range)):
        given = [validate.whole("seed", seed, 0) for seed in seeds]
        if not given:
            raise InputError("seeds must hold at least one seed, not an empty list")
        return given
    return list(range(validate.whole("seeds", seeds)))


def _problem(text: str) -> Asked:
    """A name or a file, as it is or followed by settings."""
    name, _, rest = (text, "", "") if os.path.isfile(text) else text.partition(":")
    facts = problem_facts(name)
    # How many rounds and which seed are the grid's own axes.
    defaults = {p["name"]: p["default"] for p in facts["parameters"] if p["name"] not in ("horizon", "seed")}
    where = name if name in problem_names() else os.path.abspath(name)
    anything = takes(name, "any other parameter")  # no parameter is called that
    return _asked(f"parameter of problem {name}", Asked(where, {}, defaults, anything), rest)


def _policy(text: str) -> Asked:
    name, colon, rest = text.partition(":")
    if colon and not rest:
        raise InputError(f"a policy's settings follow its name as in {name}:step=0.1, not {text!r}")
    return _asked(f"parameter of policy {name}", Asked(name, {}, {p.name: p.default for p in registry.parameters(name)}), rest)


def _asked(kind: str, plain: Asked, text: str) -> Asked:
    """The problem or policy with the settings of the text."""
    settings = {}
    for part in text.split(":") if text else []:
        name, value = validate.named_value("a setting", part)
        if not plain.has(name):
            raise validate.unknown(kind, name, plain.defaults)
        settings[name] = _plain(name, value)
    return replace(plain, settings=settings)


def _combinations(sweep: Mapping[str, Sequence[Any]], problems: list[Asked], policies: list[Asked]) -> list[Settings]:
    """Every combination of the swept values."""
    known = {name for asked in (*problems, *policies) for name in asked.defaults}
    for name, values in sweep.items():
        if name in ("horizon", "seed"):
            raise InputError(f"{name} cannot be swept: the grid's {name}s say which ones are played")
        if not any(asked.has(name) for asked in (*problems, *policies)):
            raise validate.unknown("parameter of these problems and policies", name, known)
        if not values:
            raise InputError(f"{name} must be given at least one value")
    each = [[(name, value) for value in dict.fromkeys(_plain(name, value) for value in values)] for name, values in sweep.items()]
    return [dict(combination) for combination in product(*each)]


def _plain(name: str, value: Any) -> Any:
    """A setting that a key can be made of; 1.0 and 1 are the same number."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, float):
        return validate.number(name, value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise InputError(f"{name} must be a number or text in a comparison, not {validate.show(value)}")


def _told(asked: Asked, values: Settings) -> Settings:
    """What a problem is given, less what is so by default."""
    return {key: value for key, value in asked.given(values).items() if not _same(value, asked.defaults.get(key))}


def _same(value: Any, default: Any) -> bool:
    return isinstance(value, (bool, int, float, str)) and isinstance(default, (bool, int, float, str)) and value == default


def _place(asked: Asked, values: Settings) -> tuple[str, str]:
    return asked.name, canonical(_told(asked, values))


def _try_problems(problems: list[Asked], swept: list[Settings], horizon: int, seed: int) -> dict[tuple[str, str], Problem | InputError]:
    """Each problem with each of its settings, made once. What cannot be made even as it is, or nowhere with these settings, is an error."""
    made: dict[tuple[str, str], Problem | InputError] = {}
    for asked, values in product(problems, swept):
        place, settings = _place(asked, values), _told(asked, values)
        if place in made:
            continue
        try:
            made[place] = problem(asked.name, horizon, seed, **settings)
        except Unavailable:
            raise
        except InputError as wrong:
            if settings:
                problem(asked.name, horizon, seed)  # the settings are at fault, or this raises
            else:
                raise
            made[place] = wrong
    for (_, settings_text), found in made.items():
        alike = [one for (_, other), one in made.items() if other == settings_text]
        if isinstance(found, InputError) and not any(isinstance(one, Problem) for one in alike):
            raise found
    return made


def _try_policies(policies: list[Asked], swept: list[Settings], problems: list[Problem]) -> None:
    """Raise where a policy could be made for some problem, but not for any with the settings it was given."""
    for asked, settings in {
        (canonical([one.name, given])): (one, given) for one in policies for v in swept if (given := one.given(v))
    }.values():
        wrong = [_refusal(asked.name, one, settings) for one in problems]
        if None not in wrong and any(_refusal(asked.name, one, {}) is None for one in problems):
            raise next(reason for reason in wrong if reason is not None)


def _refusal(name: str, made: Problem, settings: Settings) -> InputError | None:
    try:
        policy_for(name, made, **settings)
    except Unavailable:
        raise
    except InputError as reason:
        return reason
    return None


def _files(name: str) -> dict[str, str]:
    """The hash of the file that a problem is defined in."""
    return {} if name in problem_names() else {os.path.basename(name): hash_file(name)}


def _named_files(settings: Settings) -> dict[str, str]:
    """The hashes of the files that settings name, such as data of the user's own."""
    paths = {key: value for key, value in settings.items() if isinstance(value, str) and ("." in value or os.sep in value)}
    return {key: hash_file(path) for key, path in paths.items() if os.path.isfile(path)}
