"""The grid of a comparison: problems x policies x horizons x seeds x parameter values, checked before anything runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from bridle import engines, records, showing, validate
from bridle import policies as registry
from bridle.comparisons.cell import Cell, Instance, Settings
from bridle.comparisons.keys import canonical, hash_file
from bridle.core import InputError, Unavailable
from bridle.game.play import policy_for
from bridle.policies import Configured, own
from bridle.policies.own import OwnPolicy
from bridle.problems import Problem, problem, problem_facts, problem_names, takes

POLICIES = ("anytime", "sinha2024", "sinha2024:preset=practice", "guo2022", "neely2017", "ogd")
"""What is compared by default: our own, the paper's twice, two others for constraints that change, and one that does not look at them."""


@dataclass(frozen=True)
class Grid:
    """The cells in the order of the results; `shared` holds the keys of instances whose stream does not depend on the decisions."""

    cells: list[Cell]
    shared: frozenset[str]


@dataclass(frozen=True)
class Spec:
    """A problem or a policy as the user wrote it: its name and its own settings.

    `defaults` are the parameters that it has, with their defaults; `open` says that it takes others as well, as a file may. `own` is the
    policy of the user's own that it is.
    """

    name: str
    settings: Settings
    defaults: Mapping[str, object]
    open: bool = False
    own: OwnPolicy | None = None

    def has(self, parameter: str) -> bool:
        """Whether there is such a parameter. How many rounds and which seed are the grid's own axes."""
        return parameter in self.defaults or (self.open and parameter not in ("horizon", "seed"))

    def with_sweep(self, values: Settings) -> Settings:
        """Its settings with its share of the swept values; its own go first."""
        return {**{key: value for key, value in values.items() if self.has(key)}, **self.settings}

    def changed(self, values: Settings) -> Settings:
        """Those of the settings that differ from the defaults."""
        return {key: value for key, value in self.with_sweep(values).items() if not _same(value, self.defaults.get(key))}


def grid(
    problems: Iterable[str],
    policies: Iterable[str] = POLICIES,
    horizons: Iterable[object] = (1000,),
    seeds: object = 1,
    sweep: Mapping[str, Sequence[object]] | None = None,
    engine: str = "python",
) -> Grid:
    """Every combination, each once. A name may carry settings, as in "sinha2024:preset=practice"; "all" stands for every policy.

    A policy of one's own is a file or a name in a module: "./mine.py", "./mine.py:name:step=0.1", "module:name" (`bridle.policies.own`).
    `seeds` is how many, or a list of them. `sweep` gives parameters several values; each goes to whichever problems and policies have the
    parameter. Where a policy does not apply to a problem, its cell will say so; what is wrong in itself is an InputError here.

    >>> presets = {"preset": ["theory", "practice"]}
    >>> cells = grid(["fixed", "halfspaces:dim=5"], ["sinha2024", "ogd"], horizons=[100, 200], seeds=3, sweep=presets).cells
    >>> len(cells), str(cells[-1])
    (36, 'ogd on halfspaces dim=5, horizon 200, seed 2, engine python')
    """
    engine = engines.check_name(engine)
    engines.load(engine)
    lengths = list(dict.fromkeys(validate.whole("horizon", length) for length in horizons))
    seed_list = list(dict.fromkeys(_seeds(seeds)))
    problem_specs = [_problem_spec(text) for text in dict.fromkeys(problems)]
    names = dict.fromkeys(one for name in policies for one in (registry.names() if name == "all" else [name]))
    policy_specs = [spec for text in names for spec in _policy_specs(text)]
    _refuse_namesakes(policy_specs)
    for what, some in (("problems", problem_specs), ("policies", policy_specs), ("horizons", lengths)):
        if not some:
            raise InputError(f"{what} must hold at least one")
    combinations = _combinations(sweep or {}, problem_specs, policy_specs)
    inputs = {spec.name: _hash_problem_file(spec.name) for spec in problem_specs}
    tried = _try_problems(problem_specs, combinations, min(lengths), seed_list[0])
    _try_policies(policy_specs, combinations, tried_problems := [one for one in tried.values() if isinstance(one, Problem)])
    _check_own_policies(policy_specs, tried_problems)
    cells: dict[str, Cell] = {}
    shared: set[str] = set()
    for spec, length, rival, values, seed in product(problem_specs, lengths, policy_specs, combinations, seed_list):
        settings = spec.changed(values)
        instance = Instance(spec.name, settings, length, seed, inputs[spec.name] | _hash_named_files(settings))
        cell = Cell(instance, rival.name, rival.with_sweep(values), engine, rival.own)
        cells.setdefault(cell.key, cell)
        if getattr(getattr(tried[_variant(spec, values)], "adversary", None), "oblivious", False):
            shared.add(instance.key)
    return Grid(list(cells.values()), frozenset(shared))


def _seeds(seeds: object) -> list[int]:
    if isinstance(seeds, (list, tuple, range)):
        checked = [validate.whole("seed", seed, 0) for seed in seeds]
        if not checked:
            raise InputError("seeds must hold at least one seed, not an empty list")
        return checked
    return list(range(validate.whole("seeds", seeds)))


# --- names with settings --------------------------------------------------------------------------------------------------------------


def _problem_spec(text: str) -> Spec:
    """A name or a file, as it is or followed by settings."""
    name, _, rest = (text, "", "") if os.path.isfile(text) else text.partition(":")
    facts = problem_facts(name)
    defaults = {p.name: p.default for p in facts.parameters if p.name not in ("horizon", "seed")}
    where = name if name in problem_names() else os.path.abspath(name)
    anything = takes(name, "any other parameter")  # no parameter is called that
    return _with_settings(f"parameter of problem {name}", Spec(where, {}, defaults, anything), rest)


def _policy_specs(text: str) -> list[Spec]:
    """A registered policy, or those of a file, with the settings of the text."""
    typed = own.split(text)
    if text.endswith(":"):
        raise InputError(f"a policy's settings follow its name as in {text.rstrip(':')}:step=0.1, not {text!r}")
    if not typed.own:
        origin, _, settings = text.partition(":")
        return [_with_settings(f"parameter of policy {origin}", Spec(origin, {}, _defaults(origin), own=own.known(origin)), settings)]
    return [
        _with_settings(f"parameter of policy {mine.name}", Spec(mine.name, {}, _defaults(mine.name), own=mine), typed.settings)
        for mine in own.load(typed.source)
    ]


def _defaults(policy: str) -> dict[str, object]:
    return {p.name: p.default for p in registry.parameters(policy)}


def _refuse_namesakes(policies: list[Spec]) -> None:
    """Two policies of one name could not be told apart in the results, nor by a worker."""
    files: dict[str, OwnPolicy] = {}
    for mine in (spec.own for spec in policies if spec.own is not None):
        other = files.setdefault(mine.name, mine)
        if (other.path, other.text) != (mine.path, mine.text):
            raise InputError(f"{other.path} and {mine.path} both define a policy {mine.name}: give one of them another name")


def _with_settings(kind: str, spec: Spec, text: str) -> Spec:
    """The problem or policy with the settings of the text."""
    settings: Settings = {}
    for part in text.split(":") if text else []:
        name, value = validate.named_value("a setting", part)
        if not spec.has(name):
            raise validate.unknown(kind, name, spec.defaults)
        settings[name] = _setting(name, value)
    return replace(spec, settings=settings)


def _setting(name: str, value: object) -> str | float | bool | None:
    """A setting that a key can be made of; 1.0 and 1 are the same number."""
    if isinstance(value, np.generic) and value.dtype.kind in validate.NUMBER_KINDS + "bU":
        value = value.item()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        finite = validate.number(name, value)
        return value if isinstance(value, int) else finite
    if value is None or isinstance(value, (bool, str)):
        return value
    raise InputError(f"{name} must be a number or text in a comparison, not {validate.show(value)}")


def _same(value: object, default: object) -> bool:
    return isinstance(value, (bool, int, float, str)) and isinstance(default, (bool, int, float, str)) and value == default


def _combinations(sweep: Mapping[str, Sequence[object]], problems: list[Spec], policies: list[Spec]) -> list[Settings]:
    """Every combination of the swept values."""
    for name, values in sweep.items():
        if name in ("horizon", "seed"):
            raise InputError(f"{name} cannot be swept: the grid's {name}s say which ones are played")
        if not any(spec.has(name) for spec in (*problems, *policies)):
            parameters = {name for spec in (*problems, *policies) for name in spec.defaults}
            raise validate.unknown("parameter of these problems and policies", name, parameters)
        if not values:
            raise InputError(f"{name} must be given at least one value")
    each = [[(name, value) for value in dict.fromkeys(_setting(name, value) for value in values)] for name, values in sweep.items()]
    return [dict(combination) for combination in product(*each)]


# --- what cannot be played is said before anything is ---------------------------------------------------------------------------------


def _variant(spec: Spec, values: Settings) -> tuple[str, str]:
    """What tells a problem with these settings from the others: its name, and the settings as text."""
    return spec.name, canonical(spec.changed(values))


def _try_problems(
    problems: list[Spec], combinations: list[Settings], horizon: int, seed: int
) -> dict[tuple[str, str], Problem | InputError]:
    """Each problem with each of its settings, made once. What cannot be made even as it is, or nowhere with these settings, is an error."""
    tried: dict[tuple[str, str], Problem | InputError] = {}
    for spec, values in product(problems, combinations):
        variant, settings = _variant(spec, values), spec.changed(values)
        if variant in tried:
            continue
        try:
            tried[variant] = problem(spec.name, horizon, seed, **settings)
        except Unavailable:
            raise
        except InputError as error:
            if settings:
                problem(spec.name, horizon, seed)  # the settings are at fault, or this raises
            else:
                raise
            tried[variant] = error
    for (_, settings_text), result in tried.items():
        alike = [one for (_, other), one in tried.items() if other == settings_text]
        if isinstance(result, InputError) and not any(isinstance(one, Problem) for one in alike):
            raise result
    return tried


def _try_policies(policies: list[Spec], combinations: list[Settings], problems: list[Problem]) -> None:
    """Raise where a policy could be made for some problem, but not for any with its settings."""
    chosen = [(spec.name, spec.with_sweep(values)) for spec in policies for values in combinations]
    for name, settings in {canonical(pair): pair for pair in chosen if pair[1]}.values():
        refusals = [_refusal(name, one, settings) for one in problems]
        if None not in refusals and any(_refusal(name, one, {}) is None for one in problems):
            raise next(refusal for refusal in refusals if refusal is not None)


def _check_own_policies(policies: list[Spec], problems: list[Problem]) -> None:
    """Raise where a policy of the user's own is no policy: the shortest part of what `bridle.checks.check_policy` asks of one."""
    for name in dict.fromkeys(spec.name for spec in policies if spec.own is not None):
        fits = [one for one in problems if _refusal(name, one, {}) is None]
        if fits:
            from bridle.checks.policy import check_first_rounds  # most comparisons do without, and it brings much

            check_first_rounds(policy_for(name, fits[0]), fits[0])


def _refusal(name: str, source: Problem, settings: Settings) -> InputError | None:
    try:
        policy_for(name, source, **settings)
    except Unavailable:
        raise
    except InputError as error:
        return error
    return None


def _hash_problem_file(name: str) -> dict[str, str]:
    """The hash of the file that a problem is defined in."""
    return {} if name in problem_names() else {os.path.basename(name): hash_file(name)}


def _hash_named_files(settings: Settings) -> dict[str, str]:
    """The hashes of the files that settings name, such as data of the user's own."""
    paths = {key: value for key, value in settings.items() if isinstance(value, str) and ("." in value or os.sep in value)}
    return {key: hash_file(path) for key, path in paths.items() if os.path.isfile(path)}


# --- objects in place of names ------------------------------------------------------------------------------------------------------


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
