"""How the cost of a round grows with the horizon, the dimension and the number of constraints, on every engine; memory with T and runs.

Times are the game's own clock, without drawing the stream (recorded arrays, over and over) and without compiling; the best of some repeats.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import bridle
from bridle.comparisons.analysis import exponent
from parts.stream import recorded, repeated

DIM, TABLE, ENGINES = 30, 4_096, ("python", "jax", "compiled")
SESSIONS = ("python", "compiled")
PEAK = "import sys; sys.path.insert(0, {place!r}); from parts.growth import peak; peak({engine!r}, {rounds})"
LIMITED = "import sys; sys.path.insert(0, {place!r}); from parts.growth import limited; limited({engine!r}, {runs}, {limit!r})"


def seconds(problem: Any, engine: str, rounds: int, repeats: int) -> float:
    """What a game of Algorithm 1 takes."""
    policy = bridle.policy_for("sinha2024", problem, preset="practice")
    return min(bridle.play(policy, problem, horizon=rounds, engine=engine).seconds for _ in range(repeats))


def line(sizes: list[int], values: list[float]) -> float:
    """The slope of the least-squares line."""
    return float(np.polyfit(sizes, values, 1)[0])


def in_horizon(quick: bool) -> list[dict[str, Any]]:
    """Seconds of a game against T, d = 30."""
    table, found = recorded(TABLE, DIM), []
    for engine in ENGINES:
        horizons = [1_000, 10_000, 100_000, *([] if quick else [1_000_000])]
        if quick and engine == "python":
            horizons = [1_000, 3_000, 10_000]
        seconds(repeated(table, 3_000), engine, 3_000, 1)  # compiles
        spent = [seconds(repeated(table, T), engine, T, 1 if T > 100_000 else 3) for T in horizons]
        found.append({
            "engine": engine, "sizes": horizons, "us": [1e6 * s / T for s, T in zip(spent, horizons, strict=True)],
            "exponent": exponent(horizons, spent, since=horizons[-3]), "slope_us": 1e6 * line(horizons, spent),
        })  # fmt: skip
    return found


def in_dimension(quick: bool) -> list[dict[str, Any]]:
    """Microseconds a round against d; the exponent over the last decade, where the dimension and not the calls are the cost."""
    dims = [3, 30, 300] if quick else [3, 10, 30, 100, 300, 1_000, 3_000, 10_000]
    found: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for d in dims:
        table = recorded(1_500 if d <= 3_000 else 500, d)
        for engine in ENGINES:
            rounds = 1_500 if engine == "python" else max(3_000, min(20_000, 6_000_000 // d))
            problem = repeated(table, rounds)
            seconds(problem, engine, rounds, 1)
            found[engine].append(1e6 * seconds(problem, engine, rounds, 7) / rounds)
    return [
        {
            "engine": engine, "sizes": dims, "us": us,
            "exponent": exponent(dims, us, since=dims[-1] / 10), "slope_us": line(dims[-3:], us[-3:]),
        }
        for engine, us in found.items()
    ]  # fmt: skip


def in_constraints(quick: bool) -> list[dict[str, Any]]:
    """Microseconds a round against the number of constraints, d = 30."""
    numbers = [1, 3, 10] if quick else [1, 3, 10, 30]
    found: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for k in numbers:
        table = recorded(1_500, DIM, k)
        for engine in ENGINES:
            rounds = 1_500 if engine == "python" else 20_000
            problem = repeated(table, rounds)
            seconds(problem, engine, rounds, 1)
            found[engine].append(1e6 * seconds(problem, engine, rounds, 3) / rounds)
        for engine in SESSIONS:
            found.setdefault(f"Session, {engine}", []).append(1e6 * min(in_session(table, engine) for _ in range(4)) / 1_500)
    return [
        {"engine": engine, "sizes": numbers, "us": us, "exponent": exponent(numbers, us, since=numbers[-2]), "slope_us": line(numbers, us)}
        for engine, us in found.items()
    ]


def in_session(problem: Any, engine: str) -> float:
    """What all rounds of a table take in a session with certificates, the caller's arithmetic included; the first call may compile."""
    table, session = problem.adversary.table, bridle.Session(bridle.policy_for("sinha2024", problem, preset="practice"), engine=engine)
    (limits,) = table.constraints
    A, b = (limits.a[:, None], limits.b[:, None]) if hasattr(limits, "a") else (limits.A, limits.b)
    begun = time.perf_counter()
    for c, rows, levels in zip(table.cost.a, A, b, strict=True):
        x = session.decide()
        session.observe(float(c @ x), c, rows @ x + levels, rows)
    return time.perf_counter() - begun


def peak(engine: str, rounds: int) -> None:
    """Prints by how many MiB the process has grown at its largest while it played so many rounds, after it had played some."""
    warnings.simplefilter("ignore", bridle.BridleWarning)
    problem = repeated(recorded(TABLE, DIM), rounds)
    policy = bridle.policy_for("sinha2024", problem, preset="practice")
    bridle.play(policy, problem, horizon=3_000, engine=engine)
    before = largest()
    bridle.play(policy, problem, horizon=rounds, engine=engine)
    print(json.dumps({"before": before, "grown": largest() - before}))


def limited(engine: str, runs: int, limit: str) -> None:
    """Prints by how many MiB the process has grown at its largest while it played so many seeds with so much memory, after it had some."""
    warnings.simplefilter("ignore", bridle.BridleWarning)
    problem = bridle.problem("halfspaces", horizon=2_000, dim=DIM)
    policy = bridle.policy_for("sinha2024", problem, preset="practice")
    bridle.play(policy, problem, engine=engine, seed=list(range(64)), horizon=10)
    before = largest()
    trace = bridle.play(policy, problem, engine=engine, seed=list(range(runs)), memory=limit)
    print(json.dumps({"before": before, "grown": largest() - before, "groups": trace.groups}))


def within_limits(quick: bool) -> list[dict[str, Any]]:
    """Peak memory of many seeds under limits, each game in a process of its own."""
    found = []
    for engine in ("jax", "compiled"):
        for runs, limit in ((256, "64MiB"), (256, "256MiB"), *([] if quick else [(2_048, "64MiB"), (2_048, "256MiB")])):
            command = LIMITED.format(place=str(Path(__file__).parent.parent), engine=engine, runs=runs, limit=limit)
            one = json.loads(subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout)
            found.append({"engine": engine, "runs": runs, "limit": limit, "grown_mib": one["grown"], "groups": one["groups"]})
    return found


def largest() -> float:
    """The most memory that this process has had, in MiB; on Linux getrusage would count what the parent had before it forked."""
    if not sys.platform.startswith("linux"):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
    kib = next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(kib) / 1024


def memory(quick: bool) -> list[dict[str, Any]]:
    """Peak memory against T, each game in a process of its own."""
    found = []
    for engine in ("python", "compiled"):
        horizons = [10_000, 100_000, *([1_000_000] if engine == "compiled" and not quick else [])]
        commands = [PEAK.format(place=str(Path(__file__).parent.parent), engine=engine, rounds=T) for T in horizons]
        each = [
            json.loads(subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout)
            for command in commands
        ]
        found.append({
            "engine": engine, "sizes": horizons, "before_mib": [one["before"] for one in each], "grown_mib": [one["grown"] for one in each]
        })  # fmt: skip
    return found


def measure(quick: bool) -> dict[str, Any]:
    """All curves, on one core."""
    warnings.simplefilter("ignore", bridle.BridleWarning)
    return {
        "dim": DIM, "T": in_horizon(quick), "d": in_dimension(quick), "k": in_constraints(quick), "memory": memory(quick),
        "limited": within_limits(quick),
    }  # fmt: skip
