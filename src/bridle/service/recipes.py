"""A session from plain JSON: domains and policies by name, with numbers; no code comes from a client, and no size goes unlooked at.

>>> from bridle.service.config import ServiceLimits
>>> made = session_recipe({"policy": "anytime", "domain": {"kind": "box", "low": 0.0, "high": 40.0, "dim": 1}}, ServiceLimits())
>>> made.policy.name, made.policy.domain.dim
('anytime', 1)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

from bridle import domains, policies, validate
from bridle.budgets import Gate, Pacer
from bridle.core import Domain, InputError
from bridle.policies.registry import Configured
from bridle.service.config import ServiceLimits, checked_name

DOMAINS: dict[str, Callable[..., Domain]] = {
    "ball": domains.Ball,
    "box": domains.Box,
    "simplex": domains.Simplex,
    "l1ball": domains.L1Ball,
    "spectrahedron": domains.Spectrahedron,
    "polyhedron": domains.Polyhedron,
    "halfspace": domains.Halfspace,
    "product": domains.Product,
    "paths": domains.Paths,
    "matchings": domains.Matchings,
    "spanningtrees": domains.SpanningTrees,
}

OPTIONS = ("certify", "levels", "tolerance", "late", "pending", "timeout", "engine", "largest", "most_constraints", "names")
"""What may be said of a session beside its policy and its start, as to `bridle.Session`."""

DEEPEST = 8
"""How deep domains may lie in domains."""

MOST_EDGES = 1_000
"""A network, a graph or a matching may have so many edges: a round on it calls a solver."""

MOST_NUMBERS = 10_000_000
"""What a client says of a session may make no array with more numbers than this."""


@dataclass(frozen=True)
class SessionRecipe:
    """What a session is made from: a policy, where it starts, the session's options, and its gates by name."""

    policy: Configured
    x1: list[float] | None
    options: dict[str, Any]
    gates: dict[str, Gate | Pacer]


def session_recipe(body: Mapping[str, Any], limits: ServiceLimits) -> SessionRecipe:
    """What the body of a request, or a table of the configuration, says of a session."""
    domain = domain_of("domain", body.get("domain"), limits)
    settings = dict(_table("parameters", body.get("parameters") or {}))
    settings |= {name: body[name] for name in ("rules", "rules_per", "features") if body.get(name) is not None}
    for name, value in settings.items():
        if name in ("name", "domain"):
            raise InputError(f"parameters must be those of the policy; {name} is none of them")
        _plain(name, value)
    _look_at_sizes(settings, domain.dim, limits)
    options = {"most_constraints": limits.constraints} | {name: body[name] for name in OPTIONS if body.get(name) is not None}
    _at_most("most_constraints", options["most_constraints"], limits.constraints)
    if "pending" in options:
        _at_most("pending", options["pending"], max(1, 10 * MOST_NUMBERS // domain.dim))
    for name, most in (("names", limits.constraints), ("levels", 100)):
        if name in options:
            _at_most(f"the number of {name}", len(_list(name, options[name])), most)
    policy = body.get("policy")
    if not isinstance(policy, str):
        raise InputError(f"policy must be the name of a policy, not {validate.show(policy)}")
    return SessionRecipe(policies.policy(policy, domain, **settings), body.get("x1"), options, gates_of(body.get("gates")))


def domain_of(where: str, given: object, limits: ServiceLimits, depth: int = 0) -> Domain:
    """The domain that a table describes: its kind, and its arguments as in Python."""
    table = dict(_table(where, given))
    kind = validate.one_of(f"{where}.kind", table.pop("kind", None), DOMAINS)
    if depth > DEEPEST:
        raise InputError(f"{where} must not lie deeper than {DEEPEST} domains in domains")
    known = inspect.signature(DOMAINS[kind]).parameters
    _refuse_others(where, kind, table, known)
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in table:
            raise InputError(f"{where} of kind {kind} needs {name}")
    for name, value in table.items():
        place = f"{where}.{name}"
        if name == "domains":
            _at_most(f"the number of {place}", len(_list(place, value)), 1000)
            table[name] = [domain_of(f"{place}[{i}]", part, limits, depth + 1) for i, part in enumerate(value)]
        elif name == "within":
            table[name] = domain_of(place, value, limits, depth + 1)
        else:
            _plain(place, value)
        if name in ("dim", "size"):
            _at_most(place, value, limits.dim if name == "dim" else int(limits.dim**0.5))
        elif name == "edges":
            _at_most(f"the number of {place}", len(_list(place, value)), min(MOST_EDGES, limits.dim))
        elif name == "rows":
            rows, columns = validate.number(place, value), table.get("columns")
            columns = rows if columns is None else validate.number(f"{where}.columns", columns)
            _at_most(f"{place} times {where}.columns", rows * columns, min(MOST_EDGES, limits.dim))
    try:
        domain = DOMAINS[kind](*table.pop("domains", ()), **table)
    except InputError as wrong:
        raise InputError(f"{where} of kind {kind}: {wrong}") from None
    _at_most(f"the dimension of {where}", domain.dim, limits.dim)
    return domain


def gates_of(given: object) -> dict[str, Gate | Pacer]:
    """The budgets of a session by name: with `rounds`, a pacer; else a gate.

    >>> gates_of({"march": {"budget": 500.0}})["march"].left
    500.0
    """
    gates: dict[str, Gate | Pacer] = {}
    tables = _table("gates", given or {})
    _at_most("the number of gates", len(tables), 100)
    for name, settings in tables.items():
        table = _table(f"gates.{checked_name('the name of a gate', name)}", settings)
        kind: type[Gate] | type[Pacer] = Pacer if "rounds" in table else Gate
        _refuse_others(f"gates.{name}", kind.__name__.lower(), table, inspect.signature(kind).parameters.keys() - {"plan"})
        if "budget" not in table:
            raise InputError(f"gates.{name} needs budget: what may be spent in all")
        try:
            gates[name] = kind(**table)
        except InputError as wrong:
            raise InputError(f"gates.{name}: {wrong}") from None
    return gates


def proposals(given: object, dim: int) -> object:
    """What rules propose, as a request says it: JSON has no NaN, so null is a rule, or a coordinate of it, that sleeps.

    >>> proposals([[1.0], None], 1)
    [[1.0], [nan]]
    """
    if not isinstance(given, list):
        return given
    rows = [[nan] * dim if row is None else row for row in given]
    return [[nan if each is None else each for each in row] if isinstance(row, list) else row for row in rows]


# --- checks -------------------------------------------------------------------------------------------------------------------------------


def _table(where: str, given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InputError(f"{where} must be a table of names and values, not {validate.show(given)}")
    return given


def _list(where: str, given: object) -> list[Any]:
    if not isinstance(given, list):
        raise InputError(f"{where} must be a list, not {validate.show(given)}")
    return given


def _refuse_others(where: str, kind: str, table: Iterable[str], known: Iterable[str]) -> None:
    for name in table:
        validate.one_of(f"setting of {where}, a {kind},", name, list(known))


def _at_most(what: str, value: object, most: int) -> None:
    if validate.number(what, value) > most:
        raise InputError(f"{what} must be at most {most} on this server, not {validate.show(value)}")


def _plain(name: str, value: object, depth: int = 0) -> int:
    """Refuse what is not plain: a number, a short text, yes or no, nothing, or a list of these; how many there are."""
    if isinstance(value, list):
        if depth > 2:
            raise InputError(f"{name} must be a number, a name, or a list of these, not lists in lists in lists")
        count = sum(_plain(name, each, depth + 1) for each in value)
        if count > MOST_NUMBERS:
            raise InputError(f"{name} must have at most {MOST_NUMBERS} numbers on this server")
        return count
    if isinstance(value, str) and len(value) > 200:
        raise InputError(f"{name} must be a name of at most 200 characters, not {validate.show(value)}")
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise InputError(f"{name} must be a number, a name, or a list of these, not {validate.show(value)}")
    return 1


def _look_at_sizes(settings: Mapping[str, Any], dim: int, limits: ServiceLimits) -> None:
    """Refuse settings that would make large arrays."""
    if "constraints" in settings:
        _at_most("constraints", settings["constraints"], limits.constraints)
    for name in ("samples", "cuts"):
        if settings.get(name) is not None:
            _at_most(name, settings[name], max(1, MOST_NUMBERS // dim))
    for name in ("rules", "features"):
        value = settings.get(name)
        if value is not None:
            what, count = (f"the number of {name}", len(value)) if isinstance(value, list) else (name, value)
            _at_most(what, count, limits.rules)
            _at_most(f"{name} times the dimension", validate.number(name, count) * dim, limits.dim)
