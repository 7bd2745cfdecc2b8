"""Every side beside every other: our engines, sessions and adapters, loops by hand, and the libraries that people use instead.

    python benchmarks/peers.py              measures everything, and writes results.json, results.md, and tables of the documents
    python benchmarks/peers.py --only growth,inside    only these parts; the others stay as they were measured
    python benchmarks/peers.py --render     takes the figures of fraud.json over and writes the page anew, without measuring
    python benchmarks/peers.py --quick      a small try, printed and not written

Each part (see `parts/`) runs in a process of its own, held to one core unless it is about all of them. A library that is not installed is
skipped and said to be; sides that ought to compute the same decisions and do not make the benchmark fail.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from results import excerpt, goals, markdown, speeds

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results.json", HERE / "results.md"
FRONT, SPEED = HERE.parent / "README.md", HERE.parent / "docs" / "speed.md"
PARTS = {
    "algorithm1": ("algorithm1", "measure", True),
    "sweeps": ("algorithm1", "measure_sweeps", False),
    "logistic": ("logistic", "measure", True),
    "solvers": ("solvers", "measure", True),
    "growth": ("growth", "measure", True),
    "inside": ("inside", "measure", True),
    "starting": ("starting", "measure", False),
}
"""The parts: module, function, and whether it is held to one core."""

LIBRARIES = (
    "numpy", "jax", "numba", "torch", "optax", "cooper-optim", "humancompatible-train", "river", "scikit-learn", "vowpalwabbit",
    "cvxpy", "clarabel",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """What was measured on, and when."""
    try:
        told = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":")[1].strip() for line in told if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "cpu": cpu, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}", "python": platform.python_version(),
        "versions": versions, "date": date.today().isoformat(),
    }  # fmt: skip


def play_part(name: str, quick: bool, out: Path) -> None:
    """Measures one part in this process."""
    module, function, alone = PARTS[name]
    if alone and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before any library counts cores
    out.write_text(json.dumps(getattr(importlib.import_module(f"parts.{module}"), function)(quick)))


def measured(name: str, quick: bool) -> tuple[dict[str, Any] | None, str]:
    """One part in a process of its own: what it found, or the last line it left."""
    print(f"{name} ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "part.json"
        before = os.getloadavg()[0]
        command = [sys.executable, str(Path(__file__).resolve()), "--part", name, "--out", str(out), *(["--quick"] if quick else [])]
        done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True)
        if done.returncode == 0:
            return {**json.loads(out.read_text()), "load": [before, os.getloadavg()[0]]}, ""
        print(done.stderr, file=sys.stderr)
        return None, done.stderr.strip().splitlines()[-1]


def neighbours() -> dict[str, Any]:
    """The figures of fraud.json that belong here, if it is there."""
    wanted, place = ("machine", "lambdas", "rounds", "torch_us", "sweep_us", "ratio", "ratio_low", "ratio_high"), HERE / "fraud.json"
    known = json.loads(place.read_text()) if place.exists() else {}
    return {"fraud": {key: known[key] for key in wanted if key in known}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        play_part(given.part, given.quick, given.out)
        return 0
    if unknown := set(given.only) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() and not given.quick else {}
    found |= neighbours()
    failed: dict[str, str] = {}
    if not given.render:
        for name in given.only:
            part, trouble = measured(name, given.quick)
            if part is None:
                failed[name] = trouble
            else:
                found[name] = part
        found |= {"machine": machine(), "failed": failed}
    page = markdown(found)
    if given.quick:
        print(page)
    else:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        PAGE.write_text(page)
        for document, shown in ((FRONT, excerpt(found)), (SPEED, speeds(found))):
            text = document.read_text()
            begin, end = (text.index(f"<!-- {mark} -->") for mark in ("speed", "end of speed"))
            document.write_text(f"{text[:begin]}<!-- speed -->\n{shown}\n{text[end:]}")
        for goal in goals(found):
            print(f"{ {True: 'met', False: 'MISSED', None: '-'}[goal.met]:7}{goal.what}: {goal.measured} (goal: {goal.goal})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
