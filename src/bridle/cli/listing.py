"""The commands `bridle policies` and `bridle problems`: what there is, as facts and as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from bridle.cli import output

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
    """What `bridle policies NAME` tells: also what every policy can be told, and what sessions can say to this one.

    `maps` are parameters of `bridle.policy` that say through what rounds are played, `session` the words of `decide` and `observe`.
    """

    maps: list[ParameterFacts]
    session: list[ParameterFacts]


def policies(
    name: Annotated[
        str | None, typer.Argument(help="A policy, to be told in full, or a file as in ./mine.py; without one all are listed.")
    ] = None,
    json_file: output.JsonOption = None,
) -> None:
    """List the policies: assumptions, parameters, bounds, cost per round, reference; or tell all of one."""
    from bridle.policies import own

    mine = [] if name is None or not own.split(name).own else [policy.name for policy in own.load(name)]
    if name is not None and len(mine) < 2:
        facts = full_policy(mine[0] if mine else name)
        return output.show(policy_table(facts), policy_notes(facts), facts, json_file)
    rows = [policy_facts(each) for each in mine] if mine else all_policies()
    output.show(policies_table(rows), [], rows, json_file)


def problems(
    name: Annotated[str | None, typer.Argument(help="A problem, to be told in full, or a file; without one all are listed.")] = None,
    json_file: output.JsonOption = None,
) -> None:
    """List the problems and their parameters; or tell all of one."""
    if name is not None:
        facts = full_problem(name)
        about = [text for text in (facts["summary"], facts["about"]) if text]
        return output.show(parameters_table(f"Problem {name}", {"bridle.problem": facts["parameters"]}), about, facts, json_file)
    rows = all_problems()
    output.show(problems_table(rows), [], rows, json_file)


def full_policy(name: str) -> FullPolicyFacts:
    """All facts of one policy, with the units of its parameters."""
    from bridle import policies
    from bridle.policies.entry import PARAMETER_UNITS
    from bridle.policies.round_maps import SETTINGS

    facts = policy_facts(name)
    own = {p["name"] for p in facts["parameters"]}
    for p in facts["parameters"]:
        p["unit"] = PARAMETER_UNITS.get(p["name"], "")
    maps: list[ParameterFacts] = [
        {"name": each, "required": False, "default": None, "help": policies.PARAMETER_HELP[each], "unit": PARAMETER_UNITS[each]}
        for each in SETTINGS
        if each not in own
    ]
    return {**facts, "maps": maps, "session": session_words(name)}


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
            "b: as A times an action",
        ),
        "played": (
            "observe: the action that was played in place of the decision; values and gradients are then those at it, and the difference "
            "is charged",
            "action",
        ),
    }
    return [{"name": each, "required": False, "default": None, "help": help, "unit": unit} for each, (help, unit) in words.items()]


def full_problem(name: str) -> ProblemFacts:
    """All facts of one problem, with the units of its parameters."""
    from bridle.game.summary import plain
    from bridle.problems import problem_facts
    from bridle.problems.base import UNITS

    facts = problem_facts(name)
    for p in facts["parameters"]:
        p["unit"], p["default"] = UNITS.get(p["name"], ""), plain(p["default"])
    return facts


def policy_table(facts: FullPolicyFacts) -> Table:
    """What one policy takes: its own parameters, those that every policy has, and what sessions say to it."""
    told = {"bridle.policy": facts["parameters"], "bridle.policy, every policy": facts["maps"], "session": facts["session"]}
    return parameters_table(f"Policy {facts['name']}", told)


def parameters_table(title: str, groups: Mapping[str, Sequence[ParameterFacts]]) -> Table:
    """Parameters with their meaning, default and unit, by what takes them."""
    from bridle.compare.tables import plain_text, table_of

    table = table_of(title, "told to", "parameter", "meaning", "default", "unit")
    for whom, parameters in groups.items():
        for i, p in enumerate(parameters):
            default = "must be given" if p["required"] else "not given" if p["default"] is None else str(p["default"])
            cells = ("" if i else whom, p["name"], p["help"], default, p.get("unit", ""))
            table.add_row(*map(plain_text, cells))
        table.add_section()
    return table


def policy_notes(row: PolicyFacts) -> list[str]:
    """What one policy is, assumes, promises and costs, a line each."""
    return [
        *_about_policy(row),
        *(
            f"with {v['parameter']}={v['value']}: {', '.join(f'{key} {value}' for key, value in v['changes'].items())}"
            for v in row["variants"]
        ),
    ]


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
        "parameters": [
            {"name": p.name, "required": p.required, "default": plain(p.default), "help": p.help} for p in policies.parameters(name)
        ],
    }


def all_problems() -> list[ProblemFacts]:
    """The facts of every registered problem."""
    from bridle.problems import problem_facts, problem_names

    return [problem_facts(name) for name in problem_names()]


def policies_table(rows: Sequence[PolicyFacts]) -> Table:
    """The policies: what each is and assumes, what is proved, what it costs, and its parameters."""
    from bridle.compare.tables import plain_text, table_of

    table = table_of("Policies", "name", "what", "parameters")
    for row in rows:
        table.add_row(row["name"], plain_text("\n".join(_about_policy(row))), plain_text(_parameters(row)))
        table.add_section()
    return table


def _about_policy(row: PolicyFacts) -> list[str]:
    """What a policy is, assumes, promises and costs."""
    sharper = ", sharper with Slater" if row["slater"] == "sharper" and "Slater" not in row["violation"] else ""
    return [
        row["title"],
        *([f"assumes: {'; '.join(row['assumes'])}"] if row["assumes"] else []),
        *([f"regret {row['regret']}"] if row["regret"] != "-" else []),
        f"violation {row['violation']}{sharper}",
        f"constraints: {row['constraints']}; of several: {row['several_constraints']}",
        f"sees: {row['feedback']}",
        f"{row['per_round']} a round",
        row["reference"],
    ]


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
