"""The slowest `observe` of a session: a service waits for it, whatever the median is.

Streams with d = 30 and three constraints a round, each through a session of its own that was warmed up. A third are feasible, a third are
degenerate (a single action is feasible, or the same halfspace comes again and again), and a third turn infeasible late: two or d + 1
halfspaces that contradict each other, halfspaces all around the middle, or ones that miss each other by little. The first table has the
time of the rounds, by the clock and by what this process itself computed (on a busy machine they differ), the second when infeasible
streams were noticed, and after how many more rounds the proof was as small as it gets.

    python benchmarks/slowest.py [streams] [rounds] [streams in Python]
"""

from __future__ import annotations

import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import bridle
from parts.toy import size

D, K, POOL = 30, 3, 4096
KINDS = {"feasible": ("feasible",), "degenerate": ("one point", "same again"), "infeasible": ("pair", "family", "around", "shallow")}
LIMIT = 50.0
"""Milliseconds that no round may take."""


class Run(NamedTuple):
    """What one stream took: seconds of every round by the clock and of this process, and when it was found to be infeasible."""

    kind: str
    clock: np.ndarray
    own: np.ndarray
    turned: int
    noticed: int | None
    smallest: int | None


def domain_of(i: int):
    a = np.ones(D) / D**0.5
    box = bridle.Box(-1.0, 1.0, dim=D)
    return (bridle.Ball(D), box, bridle.Simplex(D), bridle.Halfspace(a, 0.3, within=box))[i % 4]


def opponent(kind: str, domain, turn: int, rng: np.random.Generator) -> Callable[[int, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Values and gradients of a round's constraints at the decision: feasible up to round `turn`, and then as `kind` says."""
    diameter, middle = domain.diameter(), domain.center()
    feasible = domain.project(middle + 0.1 * diameter * rng.standard_normal(D) / D**0.5)
    pool = rng.standard_normal((POOL, K, D))
    pool /= np.linalg.norm(pool, axis=2, keepdims=True)
    levels = pool @ feasible
    slack, margin = 0.03 * diameter * rng.random((POOL, K)), diameter * 10.0 ** rng.uniform(-3.0, -1.0)
    family = rng.standard_normal((2 if kind == "pair" else D + 1, D))
    family -= family.mean(axis=0)
    family /= np.linalg.norm(family, axis=1, keepdims=True)
    picks = rng.integers(0, POOL, 1 << 16)

    def answer(t: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        i = picks[t & 0xFFFF]
        rows = pool[i]
        if kind == "one point":
            return rows @ x - levels[i], rows
        if t <= turn or kind == "feasible":
            return rows @ x - levels[i] - slack[i], rows
        if kind in ("pair", "family", "same again"):
            rows = family[(K * t + np.arange(K)) % len(family)] if kind != "same again" else np.repeat(family[t % 2 : t % 2 + 1], K, axis=0)
            return rows @ (x - feasible) + (margin if kind != "same again" else 0.0), rows
        return (rows @ (x - middle) + 0.05 * diameter if kind == "around" else rows @ x - levels[i] + 0.1 * margin), rows

    return answer


def play(i: int, rounds: int, engine: str) -> Run:
    rng = np.random.default_rng([i, 7])
    group = list(KINDS)[i % 3]
    kind, domain = str(rng.choice(KINDS[group])), domain_of(i // 3)
    turn = int(rng.integers(rounds // 2, 9 * rounds // 10)) if group == "infeasible" else 0
    answer, costs = opponent(kind, domain, turn, rng), rng.standard_normal((POOL, D))
    session = bridle.Session(bridle.policy("anytime", domain), engine=engine)
    session.warm_up(K)
    clock, own = np.empty(rounds), np.empty(rounds)
    noticed = smallest = None
    for t in range(1, rounds + 1):
        x, c = session.decide(), costs[t % POOL]
        g, dg = answer(t, x)
        f = float(c @ x)
        begun, used = time.perf_counter(), time.thread_time()
        session.observe(f, c, g, dg)
        own[t - 1], clock[t - 1] = time.thread_time() - used, time.perf_counter() - begun
        if t > turn > 0 and smallest is None:
            ledger = session.read(lambda _, state: state.slow.ledger)
            noticed = t if noticed is None and ledger.conflict is not None else noticed
            smallest = t if noticed is not None and not ledger.busy else None
    return Run(group, clock, own, turn, noticed, smallest)


def runs_of(streams: int, rounds: int, engine: str) -> Iterator[Run]:
    play(2, 100, engine)  # what a process pays once in its life
    yield from (play(i, rounds, engine) for i in range(streams))


def times(table: Table, engine: str, group: str, runs: list[Run]) -> None:
    clock, own = (np.concatenate([getattr(run, name) for run in runs]) for name in ("clock", "own"))
    slowest = [1e3 * float(each.max()) for each in (clock, own)]
    table.add_row(
        engine, group, f"{len(runs)} x {len(runs[0].clock):,}", f"{1e6 * np.median(clock):.0f}", f"{1e3 * np.quantile(clock, 0.9999):.2f}",
        *(f"{each:.1f}" for each in slowest), "yes" if slowest[1] <= LIMIT else "no",
    )  # fmt: skip


def main() -> None:
    defaults = size((200, 50_000, 12), (3, 300, 3))
    streams, rounds, in_python = (int(sys.argv[i]) if len(sys.argv) > i else n for i, n in enumerate(defaults, 1))
    warnings.simplefilter("ignore", bridle.BridleWarning)
    title = f"Slowest observe after warm_up, d = {D}, k = {K}, {platform.machine()}, Python {platform.python_version()}"
    table, found = Table(title=title), Table(title="Streams that turn infeasible late")
    columns = ("engine", "streams", "how many", "median us", "99.99 % ms", "slowest ms", "slowest ms, own", f"own within {LIMIT:g} ms")
    for column in columns:
        table.add_column(column, justify="left" if column in columns[:2] else "right")
    for column in ("engine", "noticed", "rounds until noticed, median", "most", "more until smallest, median", "most"):
        found.add_column(column, justify="right")
    for engine, many in (("compiled", streams), ("python", in_python)):
        runs = list(runs_of(many, rounds, engine))
        for group in KINDS:
            times(table, engine, group, [run for run in runs if run.kind == group])
        late = [run for run in runs if run.kind == "infeasible"]
        delays = [run.noticed - run.turned for run in late if run.noticed is not None] or [0]
        more = [run.smallest - run.noticed for run in late if run.noticed is not None and run.smallest is not None] or [0]
        share = f"{sum(run.noticed is not None for run in late)} of {len(late)}"
        found.add_row(engine, share, f"{np.median(delays):.0f}", f"{max(delays)}", f"{np.median(more):.0f}", f"{max(more)}")
    console = Console(width=140)
    console.print(table)
    console.print(found)


if __name__ == "__main__":
    main()
