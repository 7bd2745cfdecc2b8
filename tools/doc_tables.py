"""Tables of the documentation that come from the package.

Policies (docs/policies.md, and six of them in README.md), problems (docs/problems.md), advice (docs/choosing.md).

python tools/doc_tables.py                 write all of them into their pages
python tools/doc_tables.py policies        print a table: policies, first, problems or advice
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import bridle
from bridle import advice, policies
from bridle.cli.listing import Facts, all_policies, all_problems, parameter_names
from bridle.policies._rate import rate
from bridle.policies.levels import most_violations

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "benchmarks" / "policies.json"
"""Microseconds a round by policy and engine, as `benchmarks/policies.py` measured them."""


def policies_markdown(rows: Sequence[Facts], measured: Mapping[str, Mapping[str, float]]) -> str:
    """The policies as the table of docs/policies.md; `measured` holds microseconds a round by policy and engine."""
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


FIRST = {
    "anytime": "you know nothing but the domain: the default",
    "soft": "limits hold on average, values are noisy, budgets",
    "rate": "a limit may fail in `at_most=0.05` of the rounds",
    "hutchinson2025": "one fixed limit must never be broken",
    "sinha2024": "you reproduce the paper, or compare with it",
    "ogd": "a baseline: it ignores the constraints",
}
"""The policies to begin with, and when to use each."""

MORE = most_violations(0.0, 0, rate(bridle.Box(0.0, 1.0, dim=1)).record.level.top)
COUNTED = {"rate": f"at most at_most T + {MORE:.0f} rounds, given `safe`"}
"""What is proved of violations where it is a count of rounds, no order of growth: `levels.most_violations`."""


def first_markdown(rows: Sequence[Facts]) -> str:
    """The table of README.md: six policies, when to use each, its bounds, and what it must be told."""
    facts = {row["name"]: row for row in rows}
    lines = ["| policy | use it when | regret | violation | must be told |", "|---|---|---|---|---|"]
    for name, when in FIRST.items():
        row = facts[name]
        told = ", ".join(need for need in row["needs"] if need != "diameter") or "nothing"  # the domain knows its diameter
        lines.append(f"| `{name}` | {when} | {row['regret']} | {COUNTED.get(name, row['violation'])} | {told} |")
    return "\n".join(lines)


def problems_markdown(rows: Sequence[Facts]) -> str:
    """The problems as the table of the documentation."""
    lines = ["| name | what | x, f and g | parameters |", "|---|---|---|---|"]
    for row in rows:
        needed, others = parameter_names(row)
        cells = (f"`{row['name']}`", row["summary"], row["about"], ", ".join(f"`{name}`" for name in [*needed, *others]))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def advice_markdown() -> str:
    """The rules of advice as the table of the documentation."""
    lines = ["| | where | use | because |", "|---" * 4 + "|"]
    for i, rule in enumerate(advice.RULES, 1):
        where = ", ".join(advice.QUESTIONS[name].choices[value] for name, value in rule.when.items()) or "otherwise"
        settings = ", ".join(f"{name}=..." for name in rule.settings)
        use = f"`bridle.{rule.use}`" if rule.use[:1].isupper() else f"`{rule.use}`" + (f" with `{settings}`" if settings else "")
        lines.append(f"| {i} | {where} | {use} | {rule.why} |")
    return "\n".join(lines)


EXPONENTS = MEASURED.with_name("exponents.json")
"""The exponents that `benchmarks/exponents.py` measured."""

FRONTIER = Path(__file__).with_name("frontier.toml")
"""What the literature has, by setting."""


class Setting(TypedDict):
    """A row of the field: what is best known of a setting, who has it, and bridle's policies for it."""

    setting: str
    feedback: str
    benchmark: str
    regret: str
    violation: str
    lower: str
    who: str
    policies: list[str]
    here: NotRequired[str]


class Measured(TypedDict):
    """A policy's growth as `benchmarks/exponents.py` measured it, of which these fields are read here."""

    policy: str
    quantity: str
    measured: float | None
    horizons: list[int]
    values: list[float]


def frontier_rows() -> list[Setting]:
    """The rows of the field."""
    return list(tomllib.loads(FRONTIER.read_text())["rows"])


def frontier_markdown(rows: Sequence[Setting], found: Sequence[Measured]) -> str:
    """The field as the table of docs/frontier.md: bounds of bridle's policies from the registry, exponents as they were measured."""
    head = ("setting", "feedback", "against", "best regret", "best violation", "lower bound", "who", "in bridle", "measured exponents")
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        items = [policies.entry(name) for name in row["policies"]]
        here = [row["here"]] if "here" in row else [f"`{item.name}`: {item.regret} / {item.violation}" for item in items]
        seen = [] if "here" in row else [text for item in items if (text := _exponents(item.name, found))]
        words = (row["setting"], row["feedback"], row["benchmark"], row["regret"], row["violation"], row["lower"], row["who"])
        lines.append("| " + " | ".join([*words, "<br>".join(here) or "not built", "<br>".join(seen) or "-"]) + " |")
    return "\n".join(lines)


def _exponents(name: str, found: Sequence[Measured]) -> str:
    """The exponents of a policy's regret and violation where it came closest to its bounds, and up to which T each."""
    texts = []
    for row in (row for row in found if row["policy"] == name):
        none = row["measured"] is None
        if none and row["values"][-1] > 0.0:
            continue
        figure = "at most 0" if none else f"{round(row['measured'] or 0.0, 2) + 0.0:.2f}"  # (no -0.00)
        texts.append(f"{row['quantity'].replace('_', ' ')} {figure} (T to {row['horizons'][-1]:,})")
    return f"`{name}`: {', '.join(texts)}" if texts else ""


def written(page: str, table: str) -> str:
    """The page with this table in the place of the one that has the same head."""
    head = table.split("\n", 1)[0] + "\n"
    if page.count(head) != 1:
        raise SystemExit(f"the page must hold one table with the head {head!r}")
    before, rest = page.split(head)
    old = next((i for i, line in enumerate(rest.split("\n")) if not line.startswith("|")), 0)
    return before + table + "\n" + "\n".join(rest.split("\n")[old:])


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "policies": ("docs/policies.md", lambda: policies_markdown(all_policies(), json.loads(MEASURED.read_text()))),
    "first": ("README.md", lambda: first_markdown(all_policies())),
    "problems": ("docs/problems.md", lambda: problems_markdown(all_problems())),
    "advice": ("docs/choosing.md", advice_markdown),
    "frontier": ("docs/frontier.md", lambda: frontier_markdown(frontier_rows(), json.loads(EXPONENTS.read_text()))),
}
"""The page of each table, and what makes it."""


def main() -> None:
    """Print the table that the command names, or write it into its page."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "table", nargs="?", choices=tuple(TABLES), help="the table to print; none: all of them are written into their pages"
    )
    chosen = parser.parse_args().table
    if chosen is not None:
        print(TABLES[chosen][1]())
        return
    for name, make in TABLES.values():
        page = ROOT / name
        page.write_text(written(page.read_text(), make()))


if __name__ == "__main__":
    main()
