"""What came out of a game, as facts for programs and as tables for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from bridle import policies
from bridle.game.summary import BOUNDED, plain
from bridle.problems import problem_facts, problem_names


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
    """The policies of a comparison in order, for each problem and horizon (see `analysis.ranking`); fewer columns where narrow."""
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
