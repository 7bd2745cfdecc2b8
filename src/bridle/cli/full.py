"""One policy or one problem in full, as a page for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group, RenderableType


def policy_page(facts: Mapping[str, Any], guarantee: Sequence[str]) -> Group:
    """What one policy is, assumes, promises and costs, its formulas, what it takes, and how to use it."""
    variants = [
        f"with {v['parameter']}={v['value']}: {', '.join(f'{key} {value}' for key, value in v['changes'].items())}"
        for v in facts["variants"]
    ]
    return _page(f"Policy {facts['name']}", facts["title"], facts, [*guarantee, *variants], {
        "Update and guarantee": [facts["theory"]] if facts["theory"] else [],
        "Parameters of bridle.policy": facts["parameters"],
        "Parameters that every policy takes": facts["maps"],
        "What a session says to it": facts["session"],
    })  # fmt: skip


def problem_page(facts: Mapping[str, Any]) -> Group:
    """What one problem is, what its x, f and g are, what it takes, and how to use it."""
    about = [facts["about"]] if facts["about"] else []
    return _page(f"Problem {facts['name']}", facts["summary"], facts, about, {"Parameters of bridle.problem": facts["parameters"]})


def _page(name: str, title: str, facts: Mapping[str, Any], lines: Sequence[str], sections: Mapping[str, Sequence[Any]]) -> Group:
    """The page: sections hold lines, which are shown as they are, or the facts of parameters; those without anything are left out."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text.assemble((name, "bold"), f": {title}"), *map(Text, lines)]
    usage = [f"  {line}" for line in facts["python"]] + [f"  $ {facts['command']}"] * bool(facts["command"])
    for heading, body in {**sections, "Example": usage}.items():
        if body:
            parts += [Text(""), Text(heading, style="bold")]
            parts += map(Text, body) if isinstance(body[0], str) else [_definitions(body)]
    return Group(*parts)


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
