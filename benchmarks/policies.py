"""Microseconds a round of every registered policy at d = 30, on the engines python and jax, for the README's table and `policies.json`.

One affine constraint and linear costs (quadratic ones for policies that need them) on a box; the simplex for policies that live there.
Figures include drawing the stream. Repeats are interleaved over the policies; the median is kept.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import warnings
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

import bridle
from bridle import policies
from bridle.cli.listing import all_policies
from parts.toy import size, target

sys.path.append(str(Path(__file__).parents[1] / "tools"))
from doc_tables import policies_markdown

DIM, ROUNDS, REPEATS = 30, size({"python": 2_000, "jax": 20_480}, {"python": 20}), size(3, 1)
SLOW = {"steiner": size(60, 3)}
"""Linear programs over many directions every round: fewer rounds do."""


def game(name: str, rounds: int):
    """A policy and a problem it is for."""
    item = policies.entry(name)
    if item.domains == ("simplex",):
        problem = bridle.problem("halfspaces", horizon=rounds, dim=DIM, domain="simplex", constraints=DIM if item.rewards else 1)
    else:
        kind = "halfspaces" if item.time_varying else "fixed"
        problem = bridle.problem(kind, horizon=rounds, dim=DIM, domain="box", modulus=1.0 if item.curved else 0.0)
    return bridle.policy_for(name, problem), problem


def main() -> None:
    warnings.simplefilter("ignore")
    times: dict[str, dict[str, list[float]]] = {name: {} for name in policies.names()}
    for _ in range(REPEATS):
        for name in track(policies.names(), "timing", transient=True):
            for engine, rounds in ROUNDS.items():
                policy, problem = game(name, SLOW.get(name, rounds))
                try:
                    trace = bridle.play(policy, problem, engine=engine)
                except bridle.InputError:
                    continue  # it calls a solver: the Python engine alone runs it
                times[name].setdefault(engine, []).append(trace.pace)
    measured = {name: {engine: round(statistics.median(spent), 2) for engine, spent in found.items()} for name, found in times.items()}
    base = measured["sinha2024"]["python"]
    table = Table(title=f"d = {DIM}, {platform.machine()}, Python {platform.python_version()}, {REPEATS} interleaved repeats")
    for column in ("policy", "python, us", "ratio to sinha2024", "jax, us"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for name, found in measured.items():
        jax = f"{found['jax']:.3g}" if "jax" in found else "-"
        table.add_row(name, f"{found['python']:.3g}", f"{found['python'] / base:.2f}", jax)
    Console(width=100).print(table)
    figures = target(Path(__file__).with_name("policies.json"))
    figures.write_text(json.dumps(measured, indent=1) + "\n")
    page = target(Path(__file__).parent.parent / "docs" / "policies.md")
    text = page.read_text()
    start = text.index("| name |")
    end = text.index("\n\n", start)
    page.write_text(text[:start] + policies_markdown(all_policies(), measured) + text[end:])
    print(f"written to {figures.name} and to the table in {page.name}")


if __name__ == "__main__":
    main()
