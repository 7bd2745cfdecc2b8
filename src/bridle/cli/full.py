"""One policy or one problem in full, as a page for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group, RenderableType


def policy_page(facts: Mapping[str, Any], guarantee: Sequence[str]) -> Group:
    """What one policy is, assumes, promises and costs, its formulas, what it takes, and how to use it."""
    from rich.console import Group

    variants = [
        f"with {v['parameter']}={v['value']}: {', '.join(f'{key} {value}' for key, value in v['changes'].items())}"
        for v in facts["variants"]
    ]
    return Group(
        *_heading(f"Policy {facts['name']}", facts["title"]),
        *_lines([*guarantee, *variants]),
        *_section("Update and guarantee", _lines([facts["theory"]]) if facts["theory"] else []),
        *_section("Parameters of bridle.policy", [_definitions(facts["parameters"])] if facts["parameters"] else []),
        *_section("Parameters that every policy takes", [_definitions(facts["maps"])] if facts["maps"] else []),
        *_section("What a session says to it", [_definitions(facts["session"])]),
        *_usage(facts["python"], facts["command"]),
    )


def problem_page(facts: Mapping[str, Any]) -> Group:
    """What one problem is, what its x, f and g are, what it takes, and how to use it."""
    from rich.console import Group

    return Group(
        *_heading(f"Problem {facts['name']}", facts["summary"]),
        *_lines([facts["about"]] if facts["about"] else []),
        *_section("Parameters of bridle.problem", [_definitions(facts["parameters"])]),
        *_usage(facts["python"], facts["command"]),
    )


def _heading(name: str, title: str) -> list[RenderableType]:
    from rich.text import Text

    return [Text.assemble((name, "bold"), f": {title}")]


def _lines(lines: Iterable[str]) -> list[RenderableType]:
    """The lines as they are: nothing in them is markup."""
    from rich.text import Text

    return [Text(line) for line in lines]


def _section(title: str, body: Sequence[RenderableType]) -> list[RenderableType]:
    from rich.text import Text

    return [Text(""), Text(title, style="bold"), *body] if body else []


def _usage(python: Sequence[str], command: str) -> list[RenderableType]:
    return _section("Example", _lines([*(f"  {line}" for line in python), *([f"  $ {command}"] if command else [])]))


def sentences(p: Mapping[str, Any]) -> str:
    """What is said of a parameter, in sentences: its meaning, default, values and unit."""
    default = "Must be given" if p["required"] else f"Default: {p['absent'] if p['default'] is None else p['default']}"
    parts = (p["help"], default, f"Values: {p['values']}", f"Unit: {p['unit']}")
    return " ".join(f"{part}." for part in parts if part and not part.endswith(": "))


def _definitions(parameters: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Each parameter beside what is said of it: two columns, which a narrow terminal has room for."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for p in parameters:
        table.add_row(Text(p["name"], style="bold"), Text(sentences(p)))
    return table
