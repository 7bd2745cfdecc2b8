"""What came out of a game, as facts for programs and as tables for people."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Table

from bridle import metrics, policies
from bridle.core import Bound
from bridle.game import Trace
from bridle.hindsight import NoComparator
from bridle.problems import problem_facts, problem_names


def summary(trace: Trace) -> dict[str, Any]:
    """The facts of one game under the names of the command line's JSON; None where something does not apply, and a `why` beside it."""
    try:
        regret, why = metrics.regret(trace), ""
    except NoComparator as reason:
        regret, why = None, str(reason)
    known = {**trace.problem.constants, "regret": regret}
    name = getattr(trace.policy, "name", type(trace.policy).__name__)
    sharp = trace.policy.bound(known, trace.rounds) if hasattr(trace.policy, "bound") else Bound(why="the policy is not registered")
    paper = trace.policy.paper_bound(known, trace.rounds) if hasattr(trace.policy, "bound") else Bound(why="the policy is not registered")
    facts = {
        "problem": trace.problem.name,
        "policy": name,
        "horizon": trace.rounds,
        "seed": trace.seeds[0] if len(trace.seeds) == 1 else list(trace.seeds),
        "engine": trace.engine,
        "dim": trace.problem.domain.dim,
        "constraints": int(trace.totals.hard.shape[-1]),
        "parameters": {key: _plain(value) for key, value in getattr(trace.policy, "parameters", {}).items()},
        "problem_parameters": {key: _plain(value) for key, value in trace.problem.parameters.items()},
        "constants": {key: _plain(value) for key, value in trace.problem.constants.items() if np.ndim(value) == 0},
        "cost": trace.totals.cost,
        "regret": regret,
        "regret_why": why,
        "ccv": metrics.ccv(trace),
        "ccv_max": metrics.ccv_max(trace),
        "ccv_each": trace.totals.hard,
        "soft_violation": metrics.soft_violation(trace),
        "interval_violation": metrics.interval_violation(trace),
        "squared_ccv": metrics.squared_ccv(trace),
        "regret_bound": sharp.regret,
        "ccv_bound": sharp.ccv,
        "interval_bound": sharp.interval,
        "bound_why": sharp.why,
        "regret_bound_paper": paper.regret,
        "ccv_bound_paper": paper.ccv,
        "interval_bound_paper": paper.interval,
        "paper_why": paper.why,
        "us_per_round": trace.pace,
        "seconds": trace.seconds,
        "warnings": list(trace.warnings),
    }
    for measured, bound in (("regret", "regret_bound"), ("ccv", "ccv_bound"), ("interval_violation", "interval_bound")):
        facts[f"{bound}_holds"] = None if facts[measured] is None or facts[bound] is None else bool(np.all(facts[measured] <= facts[bound]))
    return {key: _plain(value) for key, value in facts.items()}


def policy_facts(name: str) -> dict[str, Any]:
    """What `bridle policies` tells about a policy."""
    item = policies.entry(name)
    return {
        "name": name,
        "title": item.title,
        "reference": item.reference,
        "regret": item.regret,
        "violation": item.violation,
        "metric": item.metric,
        "constraints": "time-varying" if item.time_varying else "fixed",
        "several_constraints": item.reduces,
        "strongly_convex": item.strongly_convex,
        "slater": item.slater,
        "feedback": item.feedback,
        "per_round": item.cost,
        "needs": list(item.needs),
        "parameters": [
            {"name": p.name, "required": p.required, "default": _plain(p.default), "help": p.help} for p in policies.parameters(name)
        ],
    }


def all_policies() -> list[dict[str, Any]]:
    """The facts of every registered policy."""
    return [policy_facts(name) for name in policies.names()]


def all_problems() -> list[dict[str, Any]]:
    """The facts of every registered problem."""
    return [problem_facts(name) for name in problem_names()]


def policies_table(rows: list[dict[str, Any]]) -> Table:
    """The policies, one line each."""
    table = _table("Policies", "name", "what", "regret", "violation", "needs", "per round", "parameters", "reference")
    for row in rows:
        given = ", ".join(p["name"] if p["required"] else f"[{p['name']}]" for p in row["parameters"])
        table.add_row(
            row["name"],
            row["title"],
            row["regret"],
            row["violation"],
            ", ".join(row["needs"]),
            row["per_round"],
            _safe(given),
            row["reference"],
        )
    return table


def problems_table(rows: list[dict[str, Any]]) -> Table:
    """The problems, one line each."""
    table = _table("Problems", "name", "what", "parameters")
    for row in rows:
        given = ", ".join(p["name"] if p["required"] else f"{p['name']}={p['default']}" for p in row["parameters"])
        table.add_row(row["name"], row["summary"], _safe(given))
    return table


def game_table(facts: dict[str, Any]) -> Table:
    """One game: what happened, what was proved, whether it held."""
    table = _table(
        f"{facts['policy']} on {facts['problem']}: T = {facts['horizon']:,}, d = {facts['dim']}, seed {facts['seed']}, engine {facts['engine']}",
        "quantity", "measured", "bound", "paper's bound", "holds",
    )  # fmt: skip
    table.add_row("total cost", _number(facts["cost"]), "", "", "")
    for label, key in (("regret", "regret"), ("CCV", "ccv"), ("interval violation", "interval")):
        measured = facts["interval_violation" if key == "interval" else key]
        held = facts[f"{key}_bound_holds"]
        table.add_row(
            label, _number(measured), _number(facts[f"{key}_bound"]), _number(facts[f"{key}_bound_paper"]),
            "" if held is None else "yes" if held else "NO",
        )  # fmt: skip
    table.add_row("microseconds a round", _number(facts["us_per_round"]), "", "", "")
    return table


def game_notes(facts: dict[str, Any]) -> list[str]:
    """What a reader of the game's table should be told in words."""
    notes = []
    if facts["regret_why"]:
        notes.append(f"regret: not known, {facts['regret_why']}")
    if facts["bound_why"]:
        notes.append(f"bound: {facts['bound_why']}")
    if facts["paper_why"] and facts["paper_why"] != facts["bound_why"]:
        notes.append(f"paper's bound: does not apply, {facts['paper_why']}")
    return notes + [f"warning: {text}" for text in facts["warnings"]]


def comparison_table(rows: list[dict[str, Any]], title: str) -> Table:
    """Several games side by side; a row with `does_not_apply` says why instead."""
    table = _table(
        title, "problem", "policy", "regret", "bound", "paper", "CCV", "bound", "paper", "interval", "bound", "paper", "us/round"
    )  # fmt: skip
    last = None
    for row in rows:
        if last is not None and row["problem"] != last:
            table.add_section()
        shown = row["problem"] if row["problem"] != last else ""
        last = row["problem"]
        if row.get("does_not_apply"):
            table.add_row(shown, row["policy"], f"does not apply: {row['does_not_apply']}")
            continue
        cells = [
            _number(row[key]) for key in (
                "regret", "regret_bound", "regret_bound_paper", "ccv", "ccv_bound", "ccv_bound_paper",
                "interval_violation", "interval_bound", "interval_bound_paper", "us_per_round",
            )
        ]  # fmt: skip
        table.add_row(shown, row.get("label", row["policy"]), *cells)
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        numeric = column in ("regret", "bound", "paper", "CCV", "interval", "us/round", "measured", "paper's bound")
        table.add_column(
            column, justify="right" if numeric else "left", no_wrap=numeric or column in ("name", "policy", "problem", "quantity")
        )
    return table


def _number(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return " ".join(_number(item) for item in value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _safe(text: str) -> str:
    return text.replace("[", "\\[")


def _plain(value: Any) -> Any:
    """A value that JSON can hold: numbers, strings, lists; anything else by its name."""
    if isinstance(value, np.ndarray):
        return value.reshape(-1).tolist() if value.ndim else float(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__
    return value if value is None or isinstance(value, (bool, int, float, str, list, dict)) else str(value)
