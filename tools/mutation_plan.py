"""What is mutated, by which tests, and what may survive: `mutants.toml`, read."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutation_operators import Mutant, Source

GRACE = 5.0
"""The `grace` of a plan that says nothing of it."""


@dataclass(frozen=True, eq=False)
class Group:
    """Modules and functions that are mutated together, the tests that must notice, and the share that must be killed."""

    name: str
    what: str
    goal: float
    modules: list[str]
    tests: list[str]
    functions: str = ""
    but_not: str = ""
    first: list[str] = field(default_factory=list)

    def has(self, function: str) -> bool:
        """Whether a function of its modules belongs to it."""
        return re.search(self.functions, function) is not None and not (self.but_not and re.search(self.but_not, function))


@dataclass(frozen=True)
class Plan:
    """What `mutants.toml` says: where everything is, the groups, the mutants with a name, and those that may survive."""

    root: Path
    source: Path
    store: Path
    grace: float
    options: list[str]
    groups: list[Group]
    named: list[dict[str, str]]
    reasons: list[dict[str, Any]]
    accepted: dict[str, str]
    figures: Path
    page: Path

    @classmethod
    def read(cls, path: Path) -> Plan:
        """The plan in a file."""
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
        root = (path.parent / facts["root"]).resolve()
        reasons = sorted(facts.get("accepted", []), key=lambda part: part["where"])
        return cls(
            root=root,
            source=root / facts["source"],
            store=root / ".mutants",
            grace=facts.get("grace", GRACE),
            options=facts.get("options", []),
            groups=[Group(name, **group) for name, group in facts["groups"].items()],
            named=facts.get("named", []),
            reasons=reasons,
            accepted={f"{part['where']}: {mutant}": part["reason"] for part in reasons for mutant in part["mutants"]},
            figures=path.with_suffix(".json"),
            page=root / "docs" / "mutants.md",
        )

    def tests(self, group: Group) -> list[str]:
        """The files and folders of a group's tests, as pytest takes them."""
        found = {pattern: sorted(self.root.glob(pattern)) for pattern in group.tests}
        if nothing := [pattern for pattern, paths in found.items() if not paths]:
            raise SystemExit(f"the tests of {group.name} are not there: {', '.join(nothing)}")
        return [str(path.relative_to(self.root)) for paths in found.values() for path in paths]

    def sources(self, group: Group) -> list[Source]:
        """The modules of a group."""
        paths = sorted(path for pattern in group.modules for path in self.source.glob(pattern))
        return [Source(self.module(path), path) for path in paths]

    def module(self, path: Path) -> str:
        """The dotted name of a module."""
        return ".".join(path.relative_to(self.source).with_suffix("").parts).removesuffix(".__init__")

    def mutants(self, group: Group) -> list[tuple[Source, Mutant]]:
        """Every mutant of a group."""
        return [(source, mutant) for source in self.sources(group) for mutant in source.mutants() if group.has(mutant.function)]


def named_mutants(plan: Plan) -> dict[Group, list[tuple[Source, Mutant]]]:
    """The mutants that have a name of their own, found again in the source, by the first group that has their module."""
    homes = {source.module: (group, source) for group in reversed(plan.groups) for source in plan.sources(group)}
    found: dict[Group, list[tuple[Source, Mutant]]] = defaultdict(list)
    for facts in plan.named:
        module, _, function = facts["where"].partition(":")
        before, _, after = facts["mutant"].partition(" => ")
        group, source = homes.get(module, (None, None))
        mutant = None if source is None else source.written(function, before, after)
        if group is None or source is None or mutant is None:
            raise SystemExit(f"the source has no mutant {facts['where']}: {facts['mutant']}")
        found[group].append((source, mutant))
    return found
