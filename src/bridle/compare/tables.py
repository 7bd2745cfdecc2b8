"""What came out of a game, as facts for programs and as tables for people."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from bridle import policies, records
from bridle.core import Bound
from bridle.game import metrics
from bridle.game.play import Trace
from bridle.policies.common import found
from bridle.problems import problem_facts, problem_names
from bridle.solvers.hindsight import NoComparator

BOUNDED = (
    ("regret", "regret_bound"), ("ccv", "ccv_bound"), ("interval_violation", "interval_bound"), ("soft_violation", "soft_bound"),
    ("squared_ccv", "squared_bound"),
)  # fmt: skip
"""What is measured, and the bound that goes with it, by their names in the facts."""


def summary(trace: Trace, comparator: metrics.Comparator | NoComparator | None = None) -> dict[str, Any]:
    """The facts of one game under the names of the command line's JSON; None where something does not apply, and a `why` beside it.

    `comparator` is what regret is measured against, or why there is none, where that is known already.
    """
    try:
        if isinstance(comparator, NoComparator):
            raise comparator
        regret, why = metrics.regret(trace, comparator), ""
    except NoComparator as reason:
        regret, why = None, str(reason)
    sharp, paper = bounds(trace, regret)
    name = trace.policy.name if isinstance(trace.policy, policies.Configured) else type(trace.policy).__name__
    facts = {
        "problem": trace.problem.name,
        "policy": name,
        "horizon": trace.rounds,
        "seed": trace.seeds[0] if len(trace.seeds) == 1 else list(trace.seeds),
        "engine": trace.engine,
        "dim": trace.problem.domain.dim,
        "constraints": int(trace.totals.hard.shape[-1]),
        "parameters": {key: plain(value) for key, value in getattr(trace.policy, "parameters", {}).items()},
        "problem_parameters": {key: plain(value) for key, value in trace.problem.parameters.items()},
        "constants": {key: plain(value) for key, value in trace.problem.constants.items() if np.ndim(value) == 0},
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
        "soft_bound": sharp.soft,
        "squared_bound": sharp.squared,
        "bound_why": sharp.why,
        "regret_bound_paper": paper.regret,
        "ccv_bound_paper": paper.ccv,
        "interval_bound_paper": paper.interval,
        "paper_why": paper.why,
        "us_per_round": trace.pace,
        "seconds": trace.seconds,
        "warnings": list(trace.warnings),
    }
    for measured, bound in BOUNDED:
        facts[f"{bound}_holds"] = None if facts[measured] is None or facts[bound] is None else _holds(facts[measured], facts[bound])
    return {key: plain(value) for key, value in facts.items()}


def _holds(measured: Any, bound: Any) -> bool:
    """Whether what was measured is at most its bound, up to the rounding of sums that may attain it."""
    return bool(np.all(np.asarray(measured) <= np.asarray(bound) + 1e-12 * np.abs(bound)))


def bounds(trace: Trace, regret: Any = None) -> tuple[Bound, Bound]:
    """The sharpest proved bounds and the paper's, for the game that was played; `regret` sharpens some."""
    none = _unbounded(trace)
    if none is not None:
        return none, none
    sure = regret is not None and bool(np.all(_surely(regret, trace.totals.cost)))
    known = {**_known(trace), "regret": regret if sure else None}
    return trace.policy.bound(known, trace.rounds), trace.policy.paper_bound(known, trace.rounds)


def bound_curves(trace: Trace, regrets: Any = None, at: Any = None) -> tuple[list[Any], list[Any]]:
    """The sharpest proved bounds on regret and on CCV after a single run's log-spaced rounds, or those numbered `at`; None for none.

    `regrets` is the regret after those rounds, where it is known. The last of each is the bound of `summary`.
    """
    at = np.arange(len(trace.curve.rounds)) if at is None else np.asarray(at)
    if _unbounded(trace) is not None:
        return [None] * len(at), [None] * len(at)
    rounds, known = trace.curve.rounds[at].astype(int).tolist(), [None] * len(at)
    if regrets is not None:
        sure = _surely(regrets, trace.curve.cost[at])
        known = [regret if fine else None for regret, fine in zip(np.asarray(regrets).tolist(), sure.tolist(), strict=True)]
    ends = sorted({0, len(at) - 1})
    found = trace.policy.bound_curve(_known(trace), [rounds[i] for i in ends], [known[i] for i in ends])
    if all(end.regret is None and end.ccv is None for end in found):  # then none is stated in between
        return [None] * len(at), [None] * len(at)
    found = trace.policy.bound_curve(_known(trace), rounds, known)
    return [plain(one.regret) for one in found], [plain(one.ccv) for one in found]


def _unbounded(trace: Trace) -> Bound | None:
    """No bound, and why, where the policy is not one of the registry's or not one for the problem's domain."""
    if not isinstance(trace.policy, policies.Configured):
        return Bound(why="the policy is not registered")
    if not records.same(trace.policy.domain, trace.problem.domain):
        return Bound(why="the policy's domain is not the problem's")
    return None


def _known(trace: Trace) -> dict[str, Any]:
    """What is known of a game to its bounds: the problem's constants, and what the policy took from the stream."""
    return {**trace.problem.constants, **found(trace.state)}


def _surely(regret: Any, cost: Any) -> np.ndarray:
    """Whether a regret is surely not negative: the best action in hindsight is found to 1e-6."""
    return np.asarray(np.asarray(regret) >= 1e-6 * np.maximum(1.0, np.abs(cost)))


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


def all_policies() -> list[dict[str, Any]]:
    """The facts of every registered policy."""
    return [policy_facts(name) for name in policies.names()]


def all_problems() -> list[dict[str, Any]]:
    """The facts of every registered problem."""
    return [problem_facts(name) for name in problem_names()]


def policies_table(rows: list[dict[str, Any]]) -> Table:
    """The policies: what each is and assumes, what is proved, what it costs, and what it can be given."""
    table = _table("Policies", "name", "what", "parameters")
    for row in rows:
        facts = [
            row["title"],
            *([f"assumes: {'; '.join(row['assumes'])}"] if row["assumes"] else []),
            *([f"regret {row['regret']}"] if row["regret"] != "-" else []),
            f"violation {row['violation']}{_sharper(row)}",
            f"constraints: {row['constraints']}; of several: {row['several_constraints']}",
            f"sees: {row['feedback']}",
            f"{row['per_round']} a round",
            row["reference"],
        ]
        table.add_row(row["name"], _safe("\n".join(facts)), _safe(_parameters(row)))
        table.add_section()
    return table


def _sharper(row: dict[str, Any]) -> str:
    """That a Slater point sharpens the violation bound, where its order does not say so."""
    return ", sharper with Slater" if row["slater"] == "sharper" and "Slater" not in row["violation"] else ""


def policies_markdown(rows: list[dict[str, Any]], measured: dict[str, dict[str, float]]) -> str:
    """The policies as the table of the README; `measured` holds microseconds a round by policy and engine."""
    head = ("name", "what", "regret", "violation", "constraints", "assumes", "needs", "sees", "a round", "us, python / jax", "reference")
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        assumes = [*row["assumes"], *(["sharper with Slater"] if row["slater"] == "sharper" else [])]
        spent = measured.get(row["name"], {})
        times = " / ".join(f"{spent[engine]:.3g}" if engine in spent else "-" for engine in ("python", "jax"))
        cells = (
            f"`{row['name']}`", row["title"], row["regret"], row["violation"], row["constraints"], "; ".join(assumes) or "-",
            ", ".join(row["needs"]) or "-", row["feedback"], row["per_round"], times, row["reference"],
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def problems_table(rows: list[dict[str, Any]]) -> Table:
    """The problems: what each is, and what it can be given."""
    table = _table("Problems", "name", "what", "parameters")
    for row in rows:
        table.add_row(row["name"], _safe("\n".join(text for text in (row["summary"], row["about"]) if text)), _safe(_parameters(row)))
        table.add_section()
    return table


def problems_markdown(rows: list[dict[str, Any]]) -> str:
    """The problems as the table of the documentation."""
    lines = ["| name | what | x, f and g | parameters |", "|---|---|---|---|"]
    for row in rows:
        needed, others = _named(row)
        cells = (f"`{row['name']}`", row["summary"], row["about"], ", ".join(f"`{name}`" for name in [*needed, *others]))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _parameters(row: dict[str, Any]) -> str:
    """The required parameters, and the others with their defaults where these are fixed."""
    needed, others = _named(row)
    return "\n".join(text for text in (f"needs {', '.join(needed)}" if needed else "", f"takes {', '.join(others)}") if text)


def _named(row: dict[str, Any]) -> tuple[list[str], list[str]]:
    needed = [p["name"] for p in row["parameters"] if p["required"]]
    others = [p["name"] if p["default"] is None else f"{p['name']}={p['default']}" for p in row["parameters"] if not p["required"]]
    return needed, others


def game_table(facts: dict[str, Any]) -> Table:
    """One game: what happened, what was proved, whether it held."""
    size = f"T = {facts['horizon']:,}, d = {facts['dim']}"
    table = _table(
        f"{facts['policy']} on {facts['problem']}: {size}, seed {facts['seed']} ({facts['engine']})",
        "quantity", "measured", "bound", "paper's bound", "holds",
    )  # fmt: skip
    table.add_row("total cost", _number(facts["cost"]), "", "", "")
    for label, (measured, bound) in zip(("regret", "CCV", "interval violation", "soft violation", "squared CCV"), BOUNDED, strict=True):
        held = facts[f"{bound}_holds"]
        table.add_row(
            label, _number(facts[measured]), _number(facts[bound]), _number(facts.get(f"{bound}_paper")),
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
        proved = any(facts[bound] is not None for _, bound in BOUNDED)
        notes.append(f"{'bound' if proved else 'no bound'}: {facts['bound_why']}")
    if facts["paper_why"] and facts["paper_why"] != facts["bound_why"]:
        notes.append(f"paper's bound: none, {facts['paper_why']}")
    return notes + [f"warning: {text}" for text in facts["warnings"]]


QUANTITIES = (("regret", "regret", "regret_bound"), ("CCV", "ccv", "ccv_bound"), ("interval", "interval_violation", "interval_bound"))
"""What a comparison shows: heading, measured fact, bound; the paper's bound is under the same name with ``_paper``."""


class Fitting:
    """The first of several tables that fits the terminal, else the last."""

    def __init__(self, *tables: Table) -> None:
        self.tables = tables

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.update(max_width=1000)
        fitting = (table for table in self.tables if console.measure(table, options=room).maximum <= options.max_width)
        yield next(fitting, self.tables[-1])


def comparison_table(rows: list[dict[str, Any]], title: str) -> Fitting:
    """Several games side by side, one line each; on a narrow terminal one line for each quantity of a game."""
    return Fitting(_wide(rows, title), _narrow(rows, title))


def comparison_notes(rows: list[dict[str, Any]]) -> list[str]:
    """Why a policy does not apply, and which games broke a bound."""
    notes = [f"{row['label']} does not apply to {row['problem']}: {row['does_not_apply']}" for row in rows if row.get("does_not_apply")]
    if any(row.get(f"{bound}_holds") is False for row in rows for _, _, bound in QUANTITIES):
        notes.append("!: above its bound, which must not happen")
    return notes


def ranking_table(ranked: list[dict[str, Any]]) -> Fitting:
    """The policies of a comparison in order, for each problem and horizon (see `bridle.compare.analysis.ranking`); fewer columns where narrow."""
    return Fitting(_ranking(ranked, bounds=True), _ranking(ranked, bounds=False))


def ranking_notes(ranked: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[str]:
    """What a reader of the ranking should be told in words: what does not apply, what a game warned of, how to read the marks."""
    notes = ["best first, by regret and CCV together; *: no other policy is better in one and as good in the other; medians over seeds"]
    refused = [(row["label"], row["problem_label"], _reason(row)) for row in rows if row["does_not_apply"]]
    notes += [f"does not apply: {games}: {reason}" for games, reason in _together(refused)]
    warned = [(row["label"], row["problem_label"], text) for row in rows for text in row["warnings"]]
    notes += [f"warning: {games}: {text}" for games, text in _together(warned)]
    if any(row[f"{bound}_holds"] is False for row in ranked for _, bound in BOUNDED):
        notes.append("!: above its bound, which must not happen")
    return notes


def _reason(row: dict[str, Any]) -> str:
    """Why a policy does not apply, in words that fit every problem to which it does not for this reason."""
    reason: str = row["does_not_apply"]
    return reason.removeprefix(f"policy {row['policy']} does not apply: ").replace(f"problem {row['problem']}", "the problem")


def _together(told: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """What was told of policies on problems, each text once for all of whom it is true: "a, b on c, d", and the text."""
    where: dict[tuple[str, str], dict[str, None]] = {}
    for label, problem, text in told:
        where.setdefault((label, text), {})[problem] = None
    who: dict[tuple[str, str], list[str]] = {}
    for (label, text), problems in where.items():
        who.setdefault((", ".join(problems), text), []).append(label)
    return [(f"{', '.join(labels)} on {problems}", text) for (problems, text), labels in who.items()]


def _ranking(ranked: list[dict[str, Any]], bounds: bool) -> Table:
    columns = ["regret", *(["bound"] * bounds), "CCV", *(["bound"] * bounds), "us/round"]
    table = _table("", "#", "policy", "", *columns)
    last = None
    for row in ranked:
        place = f"{row['problem_label']}, T = {row['horizon']:,}"
        if place != last:
            table.add_section()
            table.add_row("", f"[bold]{_safe(place)}[/bold]")
        last = place
        if row["does_not_apply"]:
            table.add_row("-", _safe(row["label"]), "", "does not apply")
            continue
        cells = []
        for measured, bound in BOUNDED[:2]:
            cells.append(_number(row[measured]) + (" !" if row[f"{bound}_holds"] is False else ""))
            cells += [_number(row[bound])] * bounds
        table.add_row(str(row["rank"] or "-"), _safe(row["label"]), "*" if row["pareto"] else "", *cells, _number(row["us_per_round"]))
    return table


def _wide(rows: list[dict[str, Any]], title: str) -> Table:
    table = _table(title, "problem", "policy", *(name for head, _, _ in QUANTITIES for name in (head, "bound", "paper")), "us/round")
    last = None
    for row in rows:
        if last not in (None, row["problem"]):
            table.add_section()
        shown, last = row["problem"] if row["problem"] != last else "", row["problem"]
        if row.get("does_not_apply"):
            table.add_row(shown, row["label"], "does not apply")
            continue
        cells = [cell for _, measured, bound in QUANTITIES for cell in _measured(row, measured, bound)]
        table.add_row(shown, row["label"], *cells, _number(row["us_per_round"]))
    return table


def _narrow(rows: list[dict[str, Any]], title: str) -> Table:
    table = _table(title, "policy", "quantity", "measured", "bound", "paper")
    last = None
    for row in rows:
        if row["problem"] != last:
            table.add_section()
            table.add_row(f"[bold]on {row['problem']}[/bold]")
        last = row["problem"]
        if row.get("does_not_apply"):
            table.add_row(row["label"], "does not apply")
            continue
        for i, (head, measured, bound) in enumerate(QUANTITIES):
            if head != "interval" or row[bound] is not None:
                table.add_row("" if i else row["label"], head, *_measured(row, measured, bound))
    return table


def _measured(row: dict[str, Any], measured: str, bound: str) -> tuple[str, str, str]:
    """What was measured, with a mark where it is above its bound; the bound; the paper's."""
    mark = " !" if row[f"{bound}_holds"] is False else ""
    return _number(row[measured]) + mark, _number(row[bound]), _number(row[f"{bound}_paper"])


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title or None, title_justify="left", title_style="bold")
    for column in columns:
        numeric = column in ("regret", "bound", "paper", "CCV", "interval", "us/round", "measured", "paper's bound")
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")  # a number is never cut short
    return table


def _number(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return " ".join(_number(item) for item in value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _safe(text: str) -> str:
    return text.replace("[", "\\[")


def plain(value: Any) -> Any:
    """A value that JSON can hold: finite numbers, strings, lists; None for what overflowed, anything else by its name."""
    if isinstance(value, np.ndarray):
        value = (value.reshape(-1) if value.ndim == 2 and value.shape[1] == 1 else value).tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
