"""Algorithm 1 (preset practice, d = 30, L2 ball, one halfspace a round): every engine and session, and what one would write without us.

All sides play the same recorded stream, and those that run Algorithm 1 must have the same decisions after 1, 10, 100, 1000 and more rounds.
Python sides play its beginning, compiled ones more of it, so that no side is timed for less than some milliseconds.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import bridle
import rounds as by_hand
from bridle import engines, records
from bridle.engines.round import Collect, SingleRun
from parts import rivals
from parts.stream import arrays, constants, recorded, shortened
from parts.timing import Side, apart, gathered, interleaved

DIM, RUNS, CLOSE = 30, 256, 1e-10


def fused(fast: bool) -> Callable[..., np.ndarray]:
    """The whole horizon as one loop for numba, written by hand; `fast` lets the compiler reorder sums."""
    from numba import njit

    loop: Callable[..., np.ndarray] = njit(fastmath=fast, error_model="numpy")(by_hand.fused_loop)
    return loop


def paths(problem: bridle.Problem, policy: Any, short: int, long: int) -> dict[str, tuple[Callable[[int], np.ndarray], int, str]]:
    """Every side that runs Algorithm 1 once: what plays n rounds of it, how many rounds it is timed on, and what to know."""

    def engine(name: str) -> Callable[[int], np.ndarray]:
        return lambda n: policy.decide(bridle.play(policy, problem, horizon=n, engine=name).state)

    def compiled(n: int) -> np.ndarray:
        record, block = policy.record, records.cut(problem.adversary.table, 0, n)
        run = SingleRun(record, problem.adversary.player, record.init(problem.domain.center()), (), block)
        return record.decide(engines.load("compiled").advance(run, n, Collect.VALUES)[0])

    def session(**settings: Any) -> Callable[[int], np.ndarray]:
        return lambda n: by_hand.session(shortened(problem, n), policy, **settings)

    def hand(fast: bool) -> Callable[[int], np.ndarray]:
        loop = fused(fast)
        return lambda n: loop(*arrays(problem, n), np.zeros(DIM), *constants(policy), np.zeros(2))

    found: dict[str, tuple[Callable[[int], np.ndarray], int, str]] = {
        "NumPy loop by hand": (lambda n: by_hand.plain_numpy(shortened(problem, n), policy), short, "no checks, no totals"),
        "numba loop by hand": (hand(False), long, "no checks, no totals"),
        "numba loop by hand, sums reordered": (hand(True), long, "no checks, no totals; fastmath"),
        "play, engine python": (engine("python"), short, ""),
        "play, engine jax": (engine("jax"), long, ""),
        "play, engine compiled": (engine("compiled"), long, ""),
        "play, engine compiled, the compiled loop alone": (compiled, long, "all rounds in one block, no totals"),
        "Session": (session(), short, "decide + observe, every check, certificates"),
        "Session, certify=False": (session(certify=False), short, "decide + observe, every check"),
    }
    if "engine" in inspect.signature(bridle.Session).parameters:
        found["Session, engine compiled"] = (session(engine="compiled"), short, "decide + observe, every check, certificates")
        found["Session, engine compiled, certify=False"] = (
            session(engine="compiled", certify=False),
            short,
            "decide + observe, every check",
        )
    return found


def measure(quick: bool) -> dict[str, Any]:
    """All sides on one core."""
    short, long, slow, many, repeats = (2_000, 20_000, 500, 1_000, 3) if quick else (20_000, 200_000, 2_000, 10_000, 7)
    problem = recorded(long, DIM)
    policy = bridle.policy_for("sinha2024", problem, preset="practice")
    known = paths(problem, policy, short, long)
    same, skipped = gathered({name: lambda make=make: make(problem, policy) for name, make in rivals.SAME.items()})
    known |= {name: (run, slow, rivals.NOTES[name]) for name, run in same.items()}
    marks = [n for n in (1, 10, 100, 1_000, 20_000, 200_000) if n <= long]
    far = max(apart({name: run(n) for name, (run, most, _) in known.items() if n <= most}, CLOSE) for n in marks)
    sides = [Side(name, lambda run=run, n=n: run(n), n, note) for name, (run, n, note) in known.items()]
    sides += sweeps(problem, policy, many)
    others, more = gathered({name: lambda make=make: make(problem, slow) for name, make in rivals.OTHERS.items()})
    sides += [Side(name, run, slow, "its own algorithm, not the same decisions") for name, run in others.items()]
    return {
        "dim": DIM, "runs": RUNS, "repeats": repeats, "rounds": {"python": short, "compiled": long, "rivals": slow, "runs": many},
        "apart": far, "compared_at": marks, "rows": interleaved(sides, repeats), "skipped": skipped + more,
    }  # fmt: skip


def sweeps(problem: bridle.Problem, policy: Any, rounds: int) -> list[Side]:
    """Many runs at once, each with its own lambda; the first has the lambda of the single run, and must end where that ends."""
    lams = [constants(policy)[0], *np.geomspace(1e-4, 1e-1, RUNS - 1)]
    sweep = bridle.policy_for("sinha2024", problem, preset="practice", lam=lams)

    def all_runs(engine: str) -> np.ndarray:
        return np.asarray(sweep.decide(bridle.play(sweep, problem, horizon=rounds, engine=engine).state))

    alone = np.asarray(policy.decide(bridle.play(policy, problem, horizon=rounds).state))
    ends = {engine: all_runs(engine) for engine in ("jax", "compiled")}
    apart({"alone": alone, **{engine: end[0] for engine, end in ends.items()}}, CLOSE)
    apart(ends, CLOSE)
    return [
        Side(f"play, engine {engine}, {RUNS} runs", lambda engine=engine: all_runs(engine), rounds * RUNS, "per run and round")
        for engine in ends
    ]


def measure_sweeps(quick: bool) -> dict[str, Any]:
    """Many runs with every core there is, beside the single runs that they are measured by."""
    many, repeats = (1_000, 3) if quick else (10_000, 7)
    problem = recorded(10 * many, DIM)
    policy = bridle.policy_for("sinha2024", problem, preset="practice")
    known = paths(problem, policy, many, 10 * many)
    kept = ("NumPy loop by hand", "numba loop by hand", "numba loop by hand, sums reordered")
    sides = [Side(name, lambda run=run, n=n: run(n), n, note) for name, (run, n, note) in known.items() if name in kept]
    return {"repeats": repeats, "runs": RUNS, "rows": interleaved(sides + sweeps(problem, policy, many), repeats)}
