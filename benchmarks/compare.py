"""What a comparison costs beside the games themselves: 1,000 cells of T = 10,000 on two workers, on the engines python and jax.

Overhead is the share of the workers' time, from the start of the grid to the last file written, that was spent on anything but playing and
finding the best action in hindsight: starting processes, bounds along the curves, handing out tasks, writing the store, waiting.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bridle.comparisons import html_report
from bridle.comparisons.executors import executor
from bridle.comparisons.run import open_store, run, write_parquet
from bridle.comparisons.spec import grid
from parts.toy import size

PROBLEMS, ROUNDS, WORKERS = size(("halfspaces", "fixed"), ("halfspaces",)), size(10_000, 50), 2
POLICIES = size(("sinha2024", "sinha2024:preset=practice", "guo2022", "yi2023", "ogd"), ("sinha2024", "ogd"))


def measure(engine: str, cells: int) -> dict[str, float]:
    """The wall time, and what was spent inside games and hindsight, of a comparison of so many cells."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        plan = grid(PROBLEMS, POLICIES, [ROUNDS], cells // (len(PROBLEMS) * len(POLICIES)), engine=engine)
        store = open_store(plan, folder)
        rows = run(plan, store, lambda: executor(WORKERS))
        played = time.perf_counter()
        write_parquet(rows, Path(folder) / "results.parquet")
        html_report.write_report(rows, Path(folder) / "report.html")
        ended = time.perf_counter()
        assert not any(row["does_not_apply"] for row in rows)
        games = sum(store[cell.key]["spent"] for cell in plan.cells)
        hindsight = sum(store[key]["spent"] for key in plan.shared)
    return {"cells": len(rows), "wall": ended - begun, "games": games, "hindsight": hindsight, "files": ended - played}


def main() -> None:
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else size(1000, 4)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    table = Table(title=f"{cells:,} cells of T = {ROUNDS:,} on {WORKERS} workers, {machine}; load {os.getloadavg()[0]:.1f} at the start")
    for column in ("engine", "wall, s", "in games, s", "in hindsight, s", "files at the end, s", "overhead"):
        table.add_column(column, justify="left" if column == "engine" else "right")
    for engine in ("python", "jax"):
        found = measure(engine, cells)
        share = 1.0 - (found["games"] + found["hindsight"]) / (WORKERS * found["wall"])
        table.add_row(engine, *(f"{found[name]:.1f}" for name in ("wall", "games", "hindsight", "files")), f"{share:.1%}")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
