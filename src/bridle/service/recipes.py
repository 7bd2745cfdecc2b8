"""A session from plain JSON: domains and policies by name, with numbers; no code comes from a client, and no size goes unlooked at.

>>> from bridle.service.limits import ServiceLimits
>>> made = session_recipe({"policy": "anytime", "domain": {"kind": "box", "low": 0.0, "high": 40.0, "dim": 1}}, ServiceLimits())
>>> made.policy.name, made.policy.domain.dim
('anytime', 1)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

from bridle import domains, policies, validate
from bridle.budgets import Gate, Pacer
from bridle.core import Domain, InputError
from bridle.policies.registry import Configured
from bridle.service.limits import ServiceLimits

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a session or a gate may be called: it stands in addresses, logs and metrics."""

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


def session_name(name: object) -> str:
    """A name that a session may have."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"name must have 1 to 100 letters, digits, dots, dashes or underscores, not {validate.show(name)}")
    return name


def session_recipe(body: Mapping[str, Any], limits: ServiceLimits) -> SessionRecipe:
    """What the body of a request, or a table of the configuration, says of a session."""
    domain = domain_of("domain", body.get("domain"), limits)
    settings = dict(_table("parameters", body.get("parameters") or {}))
    settings |= {name: body[name] for name in ("rules", "rules_per", "features") if body.get(name) is not None}
    for name, value in settings.items():
        if name in ("name", "domain"):
            raise InputError(f"parameters must be those of the policy; {name} is none of them")
        _plain(name, value, limits)
    _look_at_sizes(settings, domain.dim, limits)
    options = {name: body[name] for name in OPTIONS if body.get(name) is not None}
    if "pending" in options:
        _at_most("pending", options["pending"], max(1, 10 * MOST_NUMBERS // domain.dim))
    if "names" in options:
        _at_most("the number of names", len(_list("names", options["names"])), limits.constraints)
    if "levels" in options:
        _at_most("the number of levels", len(_list("levels", options["levels"])), 100)
    options.setdefault("most_constraints", limits.constraints)
    _at_most("most_constraints", options["most_constraints"], limits.constraints)
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
    if kind == "product":
        parts = _list(f"{where}.domains", table.pop("domains", None))
        _at_most(f"the number of {where}.domains", len(parts), 1000)
        _no_more(where, kind, table, ("domains",))
        domain = domains.Product(*(domain_of(f"{where}.domains[{i}]", part, limits, depth + 1) for i, part in enumerate(parts)))
        _at_most(f"the dimension of {where}", domain.dim, limits.dim)
        return domain
    factory = DOMAINS[kind]
    known = inspect.signature(factory).parameters
    _no_more(where, kind, table, known)
    missing = [name for name, each in known.items() if each.default is each.empty and name not in table]
    if missing:
        raise InputError(f"{where} of kind {kind} needs {missing[0]}")
    for name, value in table.items():
        if name != "within":
            _plain(f"{where}.{name}", value, limits)
    for name in ("dim", "size"):
        if name in table:
            _at_most(f"{where}.{name}", table[name], limits.dim if name == "dim" else int(limits.dim**0.5))
    if "edges" in table:
        _at_most(f"the number of {where}.edges", len(_list(f"{where}.edges", table["edges"])), min(MOST_EDGES, limits.dim))
    if kind == "matchings":
        rows = validate.number(f"{where}.rows", table["rows"])
        columns = rows if table.get("columns") is None else validate.number(f"{where}.columns", table["columns"])
        _at_most(f"{where}.rows times {where}.columns", rows * columns, min(MOST_EDGES, limits.dim))
    if "within" in table:
        table["within"] = domain_of(f"{where}.within", table["within"], limits, depth + 1)
    try:
        return factory(**table)
    except InputError as wrong:
        raise InputError(f"{where} of kind {kind}: {wrong}") from None


def gates_of(given: object) -> dict[str, Gate | Pacer]:
    """The budgets of a session by name: with `rounds`, a pacer; else a gate.

    >>> gates_of({"march": {"budget": 500.0}})["march"].left
    500.0
    """
    gates: dict[str, Gate | Pacer] = {}
    tables = _table("gates", given or {})
    _at_most("the number of gates", len(tables), 100)
    for name, settings in tables.items():
        if not NAME.fullmatch(name):
            raise InputError(
                f"the name of a gate must have 1 to 100 letters, digits, dots, dashes or underscores, not {validate.show(name)}"
            )
        table = dict(_table(f"gates.{name}", settings))
        kind: type[Gate] | type[Pacer] = Pacer if "rounds" in table else Gate
        known = [each for each in inspect.signature(kind).parameters if each != "plan"]
        _no_more(f"gates.{name}", kind.__name__.lower(), table, tuple(known))
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


def _no_more(where: str, kind: str, table: Mapping[str, object], known: Mapping[str, object] | tuple[str, ...]) -> None:
    for name in table:
        validate.one_of(f"setting of {where}, a {kind},", name, list(known))


def _at_most(what: str, value: object, most: int) -> None:
    if validate.number(what, value) > most:
        raise InputError(f"{what} must be at most {most} on this server, not {validate.show(value)}")


def _plain(name: str, value: object, limits: ServiceLimits, depth: int = 0) -> int:
    """Refuse what is not plain: a number, a short text, yes or no, nothing, or a list of these; how many there are."""
    if isinstance(value, list):
        if depth > 2:
            raise InputError(f"{name} must be a number, a name, or a list of these, not lists in lists in lists")
        count = sum(_plain(name, each, limits, depth + 1) for each in value)
        if count > MOST_NUMBERS:
            raise InputError(f"{name} must have at most {MOST_NUMBERS} numbers on this server")
        return count
    if isinstance(value, str) and len(value) > 200:
        raise InputError(f"{name} must be a name of at most 200 characters, not {validate.show(value)}")
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise InputError(f"{name} must be a number, a name, or a list of these, not {validate.show(value)}")
    return 1


def _look_at_sizes(settings: Mapping[str, object], dim: int, limits: ServiceLimits) -> None:
    """Refuse settings that would make large arrays."""
    _at_most("the dimension of the domain", dim, limits.dim)
    if "constraints" in settings:
        _at_most("constraints", settings["constraints"], limits.constraints)
    for name in ("samples", "cuts"):
        if settings.get(name) is not None:
            _at_most(name, settings[name], max(1, MOST_NUMBERS // dim))
    for name in ("rules", "features"):
        value = settings.get(name)
        if value is not None:
            _at_most(
                f"the number of {name}" if isinstance(value, list) else name, len(value) if isinstance(value, list) else value, limits.rules
            )
            _at_most(
                f"{name} times the dimension", (len(value) if isinstance(value, list) else validate.number(name, value)) * dim, limits.dim
            )
