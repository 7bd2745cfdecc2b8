"""The commands `bridle policies` and `bridle problems`: what there is, as facts and as tables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridle.cli import output
from bridle.core import Hintable, Movable, capability
from bridle.storage import Facts

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

    from bridle.policies import Parameter
    from bridle.showing.tables import TextTable


def policies(
    name: Annotated[
        str | None, typer.Argument(help="The policy to describe in full, or a file as in ./mine.py. Without a name, all are listed.")
    ] = None,
    json_file: output.JsonOption = None,
) -> None:
    """List the policies, or describe one in full.

    The list has assumptions, bounds and parameters. With a name you get the update, the guarantee, every parameter and an example.
    """
    from bridle.policies import own

    mine = [] if name is None or not own.split(name).own else [policy.name for policy in own.load(name)]
    if name is not None and len(mine) < 2:
        facts = full_policy(mine[0] if mine else name)
        return output.show(policy_page(facts, guarantee(facts["name"])), [], facts, json_file)
    rows = [policy_facts(each) for each in mine] if mine else all_policies()
    output.show(policies_table(rows), [], rows, json_file)


def problems(
    name: Annotated[str | None, typer.Argument(help="The problem or file to describe in full. Without a name, all are listed.")] = None,
    json_file: output.JsonOption = None,
) -> None:
    """List the problems, or describe one in full.

    The list has what each is, and its parameters. With a name you get every parameter with its unit and values, and an example.
    """
    if name is not None:
        facts = full_problem(name)
        return output.show(problem_page(facts), [], facts, json_file)
    rows = all_problems()
    output.show(problems_table(rows), [], rows, json_file)


def full_policy(name: str) -> Facts:
    """All facts of one policy: its update and guarantee, every parameter, and how to use it."""
    from bridle import policies

    return {
        **policy_facts(name),
        "theory": theory(name),
        "maps": [parameter_facts(p) for p in policies.shared_parameters(name)],
        "session": session_words(name),
        "python": [example(name)],
        "command": command_for(name),
    }


TYPICAL = {"horizon": 1000, "lipschitz": 1.0, "bound": 1.0, "modulus": 0.5, "slater": 0.1, "exp_concavity": 1.0}
"""Values for the parameters that must be given, for examples."""


def example(name: str) -> str:
    """How the policy is made in Python.

    >>> example("sinha2024")
    'bridle.policy("sinha2024", bridle.Ball(2), horizon=1000, lipschitz=1.0)'
    """
    from bridle import policies

    domain = "bridle.Simplex(2)" if policies.entry(name).domains == ("simplex",) else "bridle.Ball(2)"
    needed = [f"{p.name}={TYPICAL.get(p.name, 1.0)}" for p in policies.parameters(name) if p.required]
    return f'bridle.policy("{name}", {", ".join([domain, *needed])})'


def theory(name: str) -> str:
    """What the file of a policy says of its update and its guarantee, without the proof and the examples.

    >>> theory("yi2022").splitlines()[0]
    'Yi et al. 2022, one node: primal-dual steps on the clipped constraint with a multiplier that is pulled back to zero.'
    """
    from bridle import policies

    text = inspect.cleandoc(getattr(inspect.getmodule(policies.entry(name).factory), "__doc__", None) or "")
    before = re.split(r"\n\n(?=Proof|>>>)", text)[0]
    return "\n\n".join(map(_joined, before.split("\n\n"))).replace("; the proof is below", "")


def _joined(paragraph: str) -> str:
    """A paragraph whose lines are joined, so that any width can break them anew; formulas stay as they are, and so do tables."""
    lines: list[str] = []
    for line in paragraph.splitlines():
        new = not lines or line.startswith(("Guarantee:", "Reference:", "|")) or lines[-1].startswith(" ")
        if new or (line.startswith(" ") and not lines[-1].startswith(("Guarantee:", "Reference:"))):
            lines.append(line)
        else:
            lines[-1] += f" {line.strip()}"
    return "\n".join(lines)


def guarantee(name: str) -> list[str]:
    """What a policy assumes, promises and costs, one line each."""
    from bridle import policies

    item = policies.entry(name)
    sharper = ", sharper with Slater" if item.slater == "sharper" and "Slater" not in item.violation else ""
    return [
        *([f"assumes: {'; '.join(item.assumptions())}"] if item.assumptions() else []),
        *([f"regret {item.regret}"] if item.regret != "-" else []),
        *([f"violation {item.violation}{sharper}"] if item.violation != "-" else []),
        f"constraints: {item.constraints}; of several: {item.reduces}",
        f"sees: {item.feedback}",
        f"{item.cost} a round",
        item.reference,
    ]


def command_for(policy: str) -> str:
    """A command that plays the policy on a problem that it is for; empty where no registered problem is."""
    from bridle import policies

    item = policies.entry(policy)
    if item.rewards:
        return ""
    usual = "game" if item.domains == ("simplex",) else "fixed" if not item.time_varying else "halfspaces"
    problem = MADE_FOR.get(policy, usual)
    return f"bridle play {problem} --policy {policy}{' --modulus 0.5' if item.strongly_convex else ''}"


MADE_FOR = {"dynamic": "jumping-limits", "experts": "experts", "optimistic": "hints", "yu2026": "tangent --set noise=0"}
"""Problems that show what a policy is for, where it is for more than the usual ones; with their settings."""


def parameter_facts(parameter: Parameter) -> Facts:
    """The facts of a parameter, with its default as JSON has it."""
    from bridle.game.summary import plain

    return {**asdict(parameter), "default": plain(parameter.default)}


KNOWN = {
    True: "the state moves to the nearest action, and the theorem stays",
    False: "the nearest action is played, and the way there is charged",
    None: "the state moves to the nearest action where it can, and elsewhere the way there is charged",
}
"""What `decide(known=...)` does, by whether the policy's state can move; None where that depends on what it is told."""


def told_least(name: str) -> object:
    """The record of the policy with nothing but what it must be told, on a small domain; None where it cannot be made so."""
    from bridle import policies
    from bridle.core import InputError
    from bridle.domains import Ball, Simplex

    domain = Simplex(2) if policies.entry(name).domains == ("simplex",) else Ball(2)
    told = {p.name: 2.0 for p in policies.parameters(name) if p.required}
    try:
        return policies.policy(name, domain, **told).record
    except InputError:
        return None


def state_moves(record: object) -> bool | None:
    """Whether the state of the policy can be moved to an action; None where that is not known."""
    from bridle.policies.registry import domain_of, playing_record

    domain = domain_of(record)
    if record is None or domain is None:
        return None
    policy, start = playing_record(record), domain.center()
    movable = capability(policy, Movable)
    return movable is not None and movable.move(policy.init(start), start) is not None


def session_words(name: str) -> list[Facts]:
    """What can be said to a session of the policy beside what was revealed, in the order in which it is said."""
    from bridle import policies

    record = told_least(name)
    if policies.entry(name).tries_points:
        seen = policies.entry(name).feedback
        what = f"ask: how many points the round tries, one a row of ticket.x; observe is told {seen}"
        return [parameter_facts(policies.Parameter("points", False, None, what, unit="points"))]
    words = {
        "rules": ("decide: what each rule proposes, one a row, where the policy was made with rules=", "action"),
        "features": ("decide: the numbers that are known of this round, where the policy was made with features=", "numbers"),
        "known": (
            f"decide: limits of this round that are kept, a pair (A, b) for A x <= b or convex functions: {KNOWN[state_moves(record)]}",
            "for b, that of A times an action",
        ),
        "hint": (
            "decide: what is expected of this round: the cost's gradient, or a dict of df, g, dg and x, the action at which g is expected",
            "as observe has them",
        ),
        "played": (
            "observe: the action that was played in place of the decision; values and gradients are then those at it, and the difference "
            "is charged",
            "action",
        ),
    }
    return [
        parameter_facts(policies.Parameter(each, False, None, what, unit=unit))
        for each, (what, unit) in words.items()
        if each != "hint" or capability(record, Hintable) is not None
    ]


def problem_row(name: str) -> Facts:
    """The facts of one problem: what x, f and g are, and its parameters."""
    from bridle.problems import problem_facts

    facts = problem_facts(name)
    return {**facts._asdict(), "parameters": [parameter_facts(p) for p in facts.parameters]}


def full_problem(name: str) -> Facts:
    """All facts of one problem, and how to use it."""
    recorded = name == "auctions"
    return {
        **problem_row(name),
        "python": [f'bridle.problem("{name}", horizon=1000' + ', data="auctions.csv")' * recorded + ")" * (not recorded)],
        "command": f"bridle play {name}{' --set data=auctions.csv' if recorded else ''}",
    }


def all_policies() -> list[Facts]:
    """The facts of every registered policy."""
    from bridle import policies

    return [policy_facts(name) for name in policies.names()]


def policy_facts(name: str) -> Facts:
    """The facts of one policy."""
    from bridle import policies
    from bridle.game.summary import plain

    item = policies.entry(name)
    return {
        "name": name,
        "title": item.title,
        "reference": item.reference,
        "regret": item.regret,
        "violation": item.violation,
        "metric": item.metric,
        "constraints": item.constraints,
        "time_varying": item.time_varying,
        "paper_constraints": item.paper_constraints,
        "several_constraints": item.reduces,
        "strongly_convex": item.strongly_convex,
        "affine": item.affine,
        "rewards": item.rewards,
        "slater": item.slater,
        "domains": list(item.domains),
        "assumes": item.assumptions(),
        "feedback": item.feedback,
        "per_round": item.cost,
        "needs": list(item.needs),
        "variants": [
            {"parameter": v.parameter, "value": v.value, "changes": {key: plain(value) for key, value in v.changes.items()}}
            for v in item.variants
        ],
        "parameters": [parameter_facts(p) for p in policies.parameters(name)],
    }


def all_problems() -> list[Facts]:
    """The facts of every registered problem."""
    from bridle.problems import problem_names

    return [problem_row(name) for name in problem_names()]


def policies_table(rows: Sequence[Facts]) -> TextTable:
    """The policies: what each is and assumes, what is proved, what it costs, and its parameters."""
    from bridle.showing.tables import TextTable

    lines = [[row["name"], "\n".join([row["title"], *guarantee(row["name"])]), _parameters(row)] for row in rows]
    return TextTable(("name", "what", "parameters"), lines, "Policies", ruled=True)


def problems_table(rows: Sequence[Facts]) -> TextTable:
    """The problems: what each is, and its parameters."""
    from bridle.showing.tables import TextTable

    lines = [[row["name"], "\n".join(text for text in (row["summary"], row["about"]) if text), _parameters(row)] for row in rows]
    return TextTable(("name", "what", "parameters"), lines, "Problems", ruled=True)


def _parameters(row: Facts) -> str:
    needed, others = parameter_names(row)
    return "\n".join(text for text in (f"needs {', '.join(needed)}" if needed else "", f"takes {', '.join(others)}") if text)


def parameter_names(row: Facts) -> tuple[list[str], list[str]]:
    """The required parameters, and the others with their defaults where these are fixed."""
    needed = [p["name"] for p in row["parameters"] if p["required"]]
    others = [p["name"] if p["default"] is None else f"{p['name']}={p['default']}" for p in row["parameters"] if not p["required"]]
    return needed, others


# --- one policy or problem in full --------------------------------------------------------------------------------------------------


def policy_page(facts: Facts, guarantee: Sequence[str]) -> Group:
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


def problem_page(facts: Facts) -> Group:
    """What one problem is, what its x, f and g are, what it takes, and how to use it."""
    about = [facts["about"]] if facts["about"] else []
    return _page(f"Problem {facts['name']}", facts["summary"], facts, about, {"Parameters of bridle.problem": facts["parameters"]})


def _page(name: str, title: str, facts: Facts, lines: Sequence[str], sections: Mapping[str, Sequence[Any]]) -> Group:
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
