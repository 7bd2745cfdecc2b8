"""What it takes to start: `import bridle` with what `play` loads, beyond NumPy, and `bridle --help`; with byte code, as installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any


def best(arguments: list[str], times: int, kept: str) -> tuple[float, float]:
    """Seconds of the fastest of some fresh processes: by the clock, and of the processor. Byte code is kept in a folder of its own."""
    clock, used = float("inf"), float("inf")
    setting = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": kept}
    for _ in range(times):
        begun, before = time.perf_counter(), os.times()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=setting)
        clock, after = min(clock, time.perf_counter() - begun), os.times()
        used = min(used, after.children_user + after.children_system - before.children_user - before.children_system)
    return clock, used


def measure(quick: bool) -> dict[str, Any]:
    """Seconds, the best of ten processes each."""
    times = 3 if quick else 10
    found: dict[str, Any] = {"repeats": times}
    sides = {
        "numpy": ["-c", "import numpy"],
        "bridle": ["-c", "import bridle; bridle.play, bridle.policy, bridle.problem"],
        "help": ["-m", "bridle", "--help"],
    }
    with tempfile.TemporaryDirectory() as kept:
        for name, arguments in sides.items():
            found[f"{name}_s"], found[f"{name}_processor_s"] = best(arguments, times, kept)
    found |= {f"more{kind}_s": found[f"bridle{kind}_s"] - found[f"numpy{kind}_s"] for kind in ("", "_processor")}
    return found
