"""Bridle with settings fixed in advance against the rules that people use, their knobs chosen in hindsight, on real data: docs/practice.md.

Every task keeps its result in practice.json as it ends; ``--resume`` plays only those that are not there.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from parts import practice_data, practice_tasks
from parts.demand_rules import FAMILIES
from parts.practice_tasks import OWN, ROOMY, STOCK
from parts.toy import TOY, size, target

SHARES = size((0.05, 0.01), (0.1,))
LONG = 10_000
"""From so many slots on a larger box is expected to cost at most 5 percent."""

MOST = 81.0
"""(M + eta)/eta: how many violations more than asked for there can be."""

OTHERS = (*FAMILIES, "quantile of the last N", "ACI", "PID")
SHORT = {
    "EWMA + k sigma": "EWMA", "same slot of the day + k sigma": "day", "same slot of the week + k sigma": "week",
    "quantile of the last N": "quantile",
}  # fmt: skip
Results = dict[str, dict[str, Any]]


def tasks() -> dict[str, Callable[[], dict[str, Any]]]:
    """Every task by its name."""
    found: dict[str, Callable[[], dict[str, Any]]] = {
        f"capacity, {100 * share:g} %": partial(practice_tasks.capacity, practice_data.traces(), share) for share in SHARES
    }
    found |= {"clicks": practice_tasks.clicks, "fraud": practice_tasks.fraud, "groups": practice_tasks.groups}
    return found | {f"portfolio {name}": partial(practice_tasks.portfolio, name) for name in size(practice_data.PRICES, ("djia",))}


# --- tables ---------------------------------------------------------------------------------------------------------------------------


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows)])


def capacities(results: Results) -> list[dict[str, Any]]:
    return [row for each in results.values() if "rows" in each for row in each["rows"]]


def over_best(row: dict[str, Any], name: str = OWN) -> float:
    """What it costs, over what the best rule costs with its knobs in hindsight."""
    return row["found"][name]["cost"] / row["found"][row["best"]]["cost"]


def capacity_table(results: Results) -> str:
    """Capacity over demand; the rate of ours, and where the others could not keep it, theirs."""
    lines = []
    for row in capacities(results):
        found, allowed = row["found"], max(row["share"], row["found"][OWN]["rate"])
        cells = []
        for name in OTHERS:
            text = f"{found[name]['cost']:.3f}" if found[name]["cost"] < 1e9 else "-"
            kept = found[name]["rate"] <= allowed + 1e-9
            cells.append(f"**{text}**" if name == row["best"] else text if kept else f"{text} @ {100 * found[name]['rate']:.2f} %")
        ours, bold = found[OWN], "**" if over_best(row) <= 1.0 else ""
        lines.append((
            f"{row['trace']}, {100 * row['share']:g} %", f"{row['slots']:,}", f"{found[STOCK]['cost']:.3f}",
            f"{bold}{ours['cost']:.3f}{bold}", f"{100 * ours['rate']:.2f} %", percent(over_best(row)),
            f"{100 * ours['worst']:.1f} / {100 * found[row['best']]['worst']:.1f}", *cells,
        ))  # fmt: skip
    head = (
        "demand, asked", "slots", STOCK, OWN, "its rate", "against the best", "worst 500: ours / best",
        *(SHORT.get(name, name) for name in OTHERS),
    )  # fmt: skip
    return table(head, lines)


def by_set(rows: list[dict[str, Any]], name: str = OWN) -> dict[str, float]:
    """For each data set the mean, over its demands and shares, of what it costs over the best rule."""
    kinds: dict[str, list[float]] = {}
    for row in rows:
        kinds.setdefault(row["trace"].split()[0], []).append(over_best(row, name))
    return {kind: geometric_mean(ratios) for kind, ratios in kinds.items()}


def percent(ratio: float) -> str:
    return f"{100 * (ratio - 1.0):+.1f} %"


def listed(ratios: dict[str, float]) -> str:
    return ", ".join(f"{kind} {percent(ratio)}" for kind, ratio in ratios.items())


def capacity_summary(results: Results) -> str:
    """The goals, and whether they were met."""
    rows = capacities(results)
    ratios = [over_best(row) for row in rows]
    worst = max(rows, key=over_best)
    sets, drift = by_set(rows), max(abs(row["found"][OWN]["rate"] - row["share"]) * row["slots"] for row in rows)
    larger = [(row["found"][ROOMY]["cost"] / row["found"][OWN]["cost"], row) for row in rows]
    long = [ratio for ratio, row in larger if row["slots"] >= LONG]
    calmer = sum(row["found"][OWN]["worst"] <= row["found"][row["best"]]["worst"] for row in rows)
    below = sum(ratio <= 1.0 for ratio in sets.values())
    exact = "yes" if all(each["exact"] for each in results.values() if "rows" in each) else "no"
    apart = max(each["units"] for each in results.values() if "rows" in each)
    lines = [
        f"- `rate` with rules costs no more than the best rule in hindsight in {sum(ratio <= 1.0 for ratio in ratios)} of {len(ratios)} "
        f"rows, and at most 0.5 % more in {sum(ratio <= 1.005 for ratio in ratios)}. The most is {percent(max(ratios))} "
        f"({worst['trace']} at {100 * worst['share']:g} %); more than 5 % above: {sum(ratio > 1.05 for ratio in ratios)}.",
        f"- By data set (means over its rows): {listed(sets)}: at or below the best rule on {below} of {len(sets)}.",
        f"- Asked and measured number of violations never differ by more than {drift:.0f}; {MOST:.0f} is what is proved. Every count is "
        f"exact: {exact}.",
        f"- The worst 500 slots in a row are no worse than those of the best rule in {calmer} of {len(rows)} rows.",
        f"- `rate` with its own rules, which know no season: {listed(by_set(rows, STOCK))}.",
        f"- Units 1e-3 and 1e3 times as large: decisions the same, up to scale, to {apart:.1g}.",
        f"- A box ten times too large: {percent(geometric_mean([ratio for ratio, _ in larger]))} on the mean, "
        f"{percent(max(ratio for ratio, _ in larger))} at the most"
        + (f"; on streams of {LONG:,} slots and more {percent(max(long))} at the most." if long else "."),
    ]
    return "\n".join(lines)


def others_tables(results: Results) -> str:
    """Clicks, fraud, groups and portfolios."""
    parts = []
    row = results["clicks"]
    lines = [("`Pacer`", f"{row['Pacer']:.3f}", "none")]
    lines += [(name, f"{each['share']:.3f}", each["knobs"]) for name, each in row["others"].items()]
    text = "Impressions within a budget: value won over the best choice in hindsight"
    parts.append(
        f"**{text}** ({row['rounds']:,} rounds; other units change it by {row['units']:.1g})\n\n" + table(("rule", "value", "knobs"), lines)
    )
    row = results["fraud"]
    lines = [
        (name, f"{each['recall']:.3f}", f"{each['specificity']:.3f}", f"{each['precision']:.3f}", each.get("knobs", "none"))
        for name, each in row["found"].items()
    ]  # fmt: skip
    text = f"Fraud, at most one in ten missed** ({row['rounds']:,} rows, {row['frauds']} frauds; the AUC of the scores is {row['auc']:.3f})"
    parts.append(f"**{text}\n\n" + table(("rule", "recall", "specificity", "precision", "knobs"), lines))
    row = results["groups"]
    lines = [
        (name, f"{each['gap']:.3f}", f"{each['loss']:.3f}", f"{each['auc']:.3f}", each["knobs"] or "none")
        for name, each in row["found"].items()
    ]
    text = f"A gap between men and women of at most 0.1 on average** ({row['rounds']:,} persons, each scored before it is learned)"
    parts.append(f"**{text}\n\n" + table(("rule", "mean gap", "log-loss", "AUC", "knobs"), lines))
    lines = []
    for row in (each for name, each in results.items() if name.startswith("portfolio")):
        for name, each in row["found"].items():
            numbers = (f"{100 * each[key]:.1f} %" for key in ("growth", "over", "turnover"))
            lines.append((f"{row['set']}, {row['days']:,} days", name, *numbers, f"{each['volatility']:.2f}"))
    text = "Portfolios, volatility known before acting at most 0.8 of that of equal parts**"
    parts.append(f"**{text}\n\n" + table(("prices", "rule", "growth a year", "days over", "turnover a day", "volatility earned"), lines))
    return "\n\n".join(parts)


SECTIONS = {"capacity": capacity_table, "capacity in short": capacity_summary, "others": others_tables}


def rendered(text: str, results: Results) -> str:
    """The page with its measured parts made new."""
    for name, make in SECTIONS.items():
        begin, end = f"<!-- measured by benchmarks/practice.py: {name} -->", "<!-- end -->"
        start = text.index(begin) + len(begin)
        text = f"{text[:start]}\n{make(results)}\n{text[text.index(end, start) :]}"
    return text


def main() -> None:
    figures = target(Path(__file__).with_name("practice.json"))
    page = target(Path(__file__).parent.parent / "docs" / "practice.md")
    resumed = "--resume" in sys.argv and figures.is_file()
    before: Results = json.loads(figures.read_text()) if resumed else {}
    results: Results = {}
    everything = tasks()
    for number, (name, task) in enumerate(everything.items(), 1):
        start = time.perf_counter()
        results[name] = before[name] if name in before else task()
        figures.write_text(json.dumps({**results, **{key: before[key] for key in before if key not in results}}, indent=1) + "\n")
        sys.stdout.write(f"{number}/{len(everything)} {name}: {time.perf_counter() - start:.1f} s\n")
        sys.stdout.flush()
    figures.write_text(json.dumps(results, indent=1) + "\n")
    page.write_text(rendered(page.read_text(), results))
    sys.stdout.write(rendered("".join(f"<!-- measured by benchmarks/practice.py: {name} --><!-- end -->\n" for name in SECTIONS), results))
    if not TOY:
        sys.stdout.write(f"written to {page} and {figures}\n")


if __name__ == "__main__":
    main()
