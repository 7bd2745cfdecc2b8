"""What `regret` of many seeds takes beside playing them: the best actions sought side by side, and one after the other.

Processor time, medians of interleaved repeats, as multiples of the play on engine compiled. Random halfspaces, linear costs, L2 ball.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import bridle
from parts.toy import size

SIZES = size(((200, 2_000, 5), (20, 2_000, 5), (50, 2_000, 30)), ((3, 50, 2),))
REPEATS = size(5, 1)


def spent(run: Callable[[], object]) -> float:
    """Seconds of the processor."""
    begun = time.process_time()
    run()
    return time.process_time() - begun


def main() -> None:
    table = Table(title="processor time beside the play on engine compiled")
    for column in ("seeds", "rounds", "d", "regret", "one run after the other"):
        table.add_column(column, justify="right")
    for seeds, rounds, dim in SIZES:
        problem = bridle.problem("halfspaces", horizon=rounds, dim=dim)
        policy = bridle.policy_for("sinha2024", problem)

        def play(policy=policy, problem=problem, seeds=seeds) -> bridle.Trace:
            return bridle.play(policy, problem, seed=range(seeds), engine="compiled")

        def one_by_one(trace, seeds=seeds) -> np.ndarray:
            return np.array([trace.totals.cost[run] - bridle.best_action(trace, run).cost for run in range(seeds)])

        trace = play()
        assert np.array_equal(bridle.regret(trace), one_by_one(trace)), "a run's answer does not depend on the others"
        times = [
            (spent(play), spent(lambda trace=trace: bridle.regret(trace)), spent(lambda trace=trace: one_by_one(trace)))
            for _ in range(REPEATS)
        ]
        ratios = [statistics.median(each[i] / max(each[0], 1e-9) for each in times) for i in (1, 2)]
        table.add_row(str(seeds), f"{rounds:,}", str(dim), *(f"{ratio:.1f}" for ratio in ratios))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
