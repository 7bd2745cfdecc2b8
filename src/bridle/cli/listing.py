"""The commands `bridle policies` and `bridle problems`: what there is, as facts and as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

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


def policies(json_file: output.JsonOption = None) -> None:
    """List the policies: assumptions, parameters, bounds, cost per round, reference."""
    rows = all_policies()
    output.show(policies_table(rows), [], rows, json_file)


def problems(json_file: output.JsonOption = None) -> None:
    """List the problems and their parameters."""
    rows = all_problems()
    output.show(problems_table(rows), [], rows, json_file)


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
        sharper = ", sharper with Slater" if row["slater"] == "sharper" and "Slater" not in row["violation"] else ""
        facts = [
            row["title"],
            *([f"assumes: {'; '.join(row['assumes'])}"] if row["assumes"] else []),
            *([f"regret {row['regret']}"] if row["regret"] != "-" else []),
            f"violation {row['violation']}{sharper}",
            f"constraints: {row['constraints']}; of several: {row['several_constraints']}",
            f"sees: {row['feedback']}",
            f"{row['per_round']} a round",
            row["reference"],
        ]
        table.add_row(row["name"], plain_text("\n".join(facts)), plain_text(_parameters(row)))
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
