"""The commands `bridle policies` and `bridle problems`: what there is, as facts and as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from bridle.cli import full, output

if TYPE_CHECKING:
    from rich.table import Table

    from bridle.problems import ParameterFacts, ProblemFacts


class VariantFacts(TypedDict):
    """What differs where a parameter has this value."""

    parameter: str
    value: object
    changes: dict[str, object]


class PolicyFacts(TypedDict):
    """What `bridle policies` tells about a policy."""

    name: str
    title: str
    reference: str
    regret: str
    violation: str
    metric: str
    constraints: str
    time_varying: bool
    paper_constraints: str
    several_constraints: str
    strongly_convex: bool
    affine: bool
    rewards: bool
    slater: str
    domains: list[str]
    assumes: list[str]
    feedback: str
    per_round: str
    needs: list[str]
    variants: list[VariantFacts]
    parameters: list[ParameterFacts]


class FullPolicyFacts(PolicyFacts):
    """What `bridle policies NAME` tells: also its theory, what every policy can be told, what sessions can say to it, and how to use it.

    `theory` is its update and its guarantee as formulas. `maps` are parameters of `bridle.policy` that say through what rounds are played,
    `session` the words of `decide` and `observe`. `python` makes it, and `command` plays it.
    """

    theory: str
    maps: list[ParameterFacts]
    session: list[ParameterFacts]
    python: list[str]
    command: str


class FullProblemFacts(TypedDict):
    """What `bridle problems NAME` tells: also how to make it in Python and how to play it."""

    name: str
    summary: str
    about: str
    parameters: list[ParameterFacts]
    python: list[str]
    command: str


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
        return output.show(full.policy_page(facts), [], facts, json_file)
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
        return output.show(full.problem_page(facts), [], facts, json_file)
    rows = all_problems()
    output.show(problems_table(rows), [], rows, json_file)


def full_policy(name: str) -> FullPolicyFacts:
    """All facts of one policy: what it does, every parameter, and how to use it."""
    from bridle import policies
    from bridle.policies import documentation

    return {
        **policy_facts(name),
        "theory": documentation.theory(name),
        "maps": [parameter_facts(p.facts()) for p in policies.shared_parameters(name)],
        "session": session_words(name),
        "python": documentation.example(name),
        "command": command_for(name),
    }


def command_for(policy: str) -> str:
    """A command that plays the policy on a problem that it is for; empty where no registered problem is."""
    from bridle import policies

    item = policies.entry(policy)
    if item.rewards:
        return ""
    problem = "game" if item.domains == ("simplex",) else "fixed" if not item.time_varying else "halfspaces"
    return f"bridle play {problem} --policy {policy}{' --modulus 0.5' if item.strongly_convex else ''}"


def parameter_facts(facts: ParameterFacts) -> ParameterFacts:
    """The facts of a parameter, with its default as JSON has it."""
    from bridle.game.summary import plain

    return {**facts, "default": plain(facts["default"])}


KNOWN = {
    True: "the state moves to the nearest action, and the theorem stays",
    False: "the nearest action is played, and the way there is charged",
    None: "the state moves to the nearest action where it can, and elsewhere the way there is charged",
}
"""What `decide(known=...)` does, by whether the policy's state can move; None where that depends on what it is told."""


def state_moves(name: str) -> bool | None:
    """Whether the state of the policy, with nothing but what it must be told, can be moved to an action; None where it cannot be made."""
    from bridle import policies
    from bridle.core import InputError
    from bridle.domains import Ball, Simplex

    domain = Simplex(2) if policies.entry(name).domains == ("simplex",) else Ball(2)
    told = {p.name: 2.0 for p in policies.parameters(name) if p.required}
    try:
        record = policies.policy(name, domain, **told).record
    except InputError:
        return None
    start = domain.center()
    return hasattr(record, "move") and record.move(record.init(start), start) is not None


def session_words(name: str) -> list[ParameterFacts]:
    """What can be said to a session of the policy beside what was revealed, in the order in which it is said."""
    words = {
        "rules": ("decide: what each rule proposes, one a row, where the policy was made with rules=", "action"),
        "features": ("decide: the numbers that are known of this round, where the policy was made with features=", "numbers"),
        "known": (
            f"decide: limits of this round that are kept, a pair (A, b) for A x <= b or convex functions: {KNOWN[state_moves(name)]}",
            "for b, that of A times an action",
        ),
        "played": (
            "observe: the action that was played in place of the decision; values and gradients are then those at it, and the difference "
            "is charged",
            "action",
        ),
    }
    return [
        {"name": each, "required": False, "default": None, "help": help, "unit": unit, "values": "", "absent": "", "type": ""}
        for each, (help, unit) in words.items()
    ]


def full_problem(name: str) -> FullProblemFacts:
    """All facts of one problem: what x, f and g are, every parameter, and how to use it."""
    from bridle.problems import documentation, problem_facts

    facts = problem_facts(name)
    set_data = " --set data=auctions.csv" if name == "auctions" else ""
    return {
        "name": facts["name"],
        "summary": facts["summary"],
        "about": facts["about"],
        "parameters": [parameter_facts(p) for p in facts["parameters"]],
        "python": [documentation.example(name)],
        "command": f"bridle play {name}{set_data}",
    }


def all_policies() -> list[PolicyFacts]:
    """The facts of every registered policy."""
    from bridle import policies

    return [policy_facts(name) for name in policies.names()]


def policy_facts(name: str) -> PolicyFacts:
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
        "parameters": [parameter_facts(p.facts()) for p in policies.parameters(name)],
    }


def all_problems() -> list[ProblemFacts]:
    """The facts of every registered problem."""
    from bridle.problems import problem_facts, problem_names

    return [problem_facts(name) for name in problem_names()]


def policies_table(rows: Sequence[PolicyFacts]) -> Table:
    """The policies: what each is and assumes, what is proved, what it costs, and its parameters."""
    from bridle.compare.tables import plain_text, table_of
    from bridle.policies.documentation import guarantee

    table = table_of("Policies", "name", "what", "parameters")
    for row in rows:
        table.add_row(row["name"], plain_text("\n".join([row["title"], *guarantee(row["name"])])), plain_text(_parameters(row)))
        table.add_section()
    return table


def problems_table(rows: Sequence[ProblemFacts]) -> Table:
    """The problems: what each is, and its parameters."""
    from bridle.compare.tables import plain_text, table_of

    table = table_of("Problems", "name", "what", "parameters")
    for row in rows:
        about = "\n".join(text for text in (row["summary"], row["about"]) if text)
        table.add_row(row["name"], plain_text(about), plain_text(_parameters(row)))
        table.add_section()
    return table


def _parameters(row: PolicyFacts | ProblemFacts) -> str:
    needed, others = parameter_names(row)
    return "\n".join(text for text in (f"needs {', '.join(needed)}" if needed else "", f"takes {', '.join(others)}") if text)


def parameter_names(row: PolicyFacts | ProblemFacts) -> tuple[list[str], list[str]]:
    """The required parameters, and the others with their defaults where these are fixed."""
    needed = [p["name"] for p in row["parameters"] if p["required"]]
    others = [p["name"] if p["default"] is None else f"{p['name']}={p['default']}" for p in row["parameters"] if not p["required"]]
    return needed, others
