"""A comparison: every cell of a grid played once, on however many workers, and kept in a store as it finishes.

What was done before, by whichever process, is not done again. The best action in hindsight is found once for each stream that does not
depend on the decisions, before the cells that are measured against it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from bridle import validate
from bridle.comparisons.cell import work
from bridle.comparisons.comparison import Comparison
from bridle.comparisons.executors import Executor, Growing, Here, executor
from bridle.comparisons.frames import write_parquet as write_parquet
from bridle.comparisons.keys import fingerprint, own_source
from bridle.comparisons.rows import GameRow
from bridle.comparisons.spec import POLICIES, Grid, check_domains, grid, listed, policy_text, problem_text
from bridle.comparisons.store import Store, StoreEntry
from bridle.comparisons.task_queue import Task, TaskQueue
from bridle.core import InputError
from bridle.policies import Configured
from bridle.problems import Problem

CellProgress: TypeAlias = Callable[[float, float, int, int], None]
"""Told how much is done of how much, in rounds, and how many cells of how many."""

LOSSES = 3
"""How many times in a row workers may be lost with nothing finished in between."""


def compare(
    problems: str | Problem | Iterable[str | Problem],
    policies: str | Configured | Iterable[str | Configured] = POLICIES,
    horizons: int | Iterable[int] = (1000,),
    seeds: int | Sequence[int] = 3,
    out: str | os.PathLike[str] | None = None,
    *,
    sweep: Mapping[str, Sequence[object]] | None = None,
    engine: str = "python",
    jobs: int | None = None,
    dask: str | None = None,
    progress: CellProgress | None = None,
) -> Comparison:
    """Play policies on problems, each against the same streams, and give the rows in a list that ranks, draws and writes itself.

    Every combination of problems, policies, horizons, seeds and swept values is a game. ``bridle.compare(...)`` is the same function.

    Returns a row for each game; where a policy does not apply to a problem, the row says why.

    Parameters
    ----------
    problems : str, Problem, or a list of them
        Names, with settings as in "halfspaces:dim=5", files, or what `bridle.problem` gives.
    policies : str, policy, or a list of them, optional
        Names, with settings as in "sinha2024:preset=practice", files of your own, "all", or what `bridle.policy` gives. Default: six that
        are for constraints that change, or ignore them.
    horizons : int or a list of them, default (1000,)
        How many rounds, 1 or above.
    seeds : int or a list of them, default 3
        How many seeds, from 0 on; or which.
    out : str or path, optional
        A folder that keeps every game as it finishes: called again with it, only what is not there is played. Default: nothing is kept.
    sweep : dict, optional
        Parameters with lists of values, each for every policy and problem that has the parameter.
    engine : {"python", "jax", "compiled"}, default "python"
        What computes the rounds.
    jobs : int, optional
        How many processes, 1 or above. Default: this one alone, and one for each core once more than a few seconds of work are left.
    dask : str, optional
        The address of a Dask scheduler, or the file that it has written.
    progress : callable, optional
        Is called with how much is done of how much, in rounds, and how many games of how many.

    Examples
    --------
    >>> rows = compare(["fixed"], ["sinha2024", "sinha2024-strong"], horizons=[100], seeds=1)
    >>> [(row["label"], row["does_not_apply"]) for row in rows]  # doctest: +ELLIPSIS
    [('sinha2024', None), ('sinha2024-strong', 'policy sinha2024-strong does not apply: the costs ... are not strongly convex (modulus 0)')]
    """
    for package in ("threadpoolctl", *([] if out is None else ["pyarrow"])):
        validate.require_package(package, "report")
    rivals = listed("policies", policies)
    texts = [policy_text(f"policies[{i}]", each) for i, each in enumerate(rivals)]
    places = [problem_text(f"problems[{i}]", each) for i, each in enumerate(listed("problems", problems))]
    plan = grid(places, texts, [horizons] if isinstance(horizons, int) else horizons, seeds, sweep, engine)
    check_domains(rivals, texts, plan.cells)
    if out is None:
        with TemporaryDirectory(prefix="bridle-") as folder:
            return Comparison(run(plan, open_store(plan, folder), lambda: executor(jobs, dask), progress))
    rows = Comparison(run(plan, open_store(plan, out), lambda: executor(jobs, dask), progress))
    rows.save(out)
    return rows


def open_store(grid: Grid, out: str | os.PathLike[str]) -> Store:
    """The store of the folder `out`, with what it has of the grid."""
    return Store(Path(out) / "store", {cell.key for cell in grid.cells} | grid.shared)


def run(grid: Grid, store: Store, start: Callable[[], Executor], progress: CellProgress | None = None) -> list[GameRow]:
    """The rows of the grid's cells, in order: from the store, and what is not there yet from the workers that `start` gives."""
    queue = TaskQueue(grid, store)
    if queue.left:
        pool = start()
        if isinstance(pool, Growing) and any(own_source(cell.policy) for cell in grid.cells if cell.own is None):
            pool = Here()  # no other process knows that policy
        try:
            queue.cut(pool.workers())
            _check_own_policies(grid, pool)
            _drive(queue, store, pool, progress)
        finally:
            pool.close()
            store.close()
    return [store[cell.key]["row"] for cell in grid.cells]


def _check_own_policies(grid: Grid, pool: Executor) -> None:
    """A policy that was registered in this process is not known in others."""
    for name in dict.fromkeys(cell.policy for cell in grid.cells if cell.own is None):
        if own_source(name) and not isinstance(pool, Here):
            raise InputError(
                f"policy {name} is registered in this process alone, which must then do all the work: jobs=1; "
                f"or name its file in place of it, as in ./{os.path.basename(own_source(name))}"
            )


def _drive(queue: TaskQueue, store: Store, pool: Executor, progress: CellProgress | None) -> None:
    """Hand out tasks and store what comes back, until nothing is left."""
    running: dict[Future[tuple[str, list[StoreEntry]]], Task] = {}
    losses, broken = 0, False

    def finish(future: Future[tuple[str, list[StoreEntry]]]) -> None:
        sources, entries = future.result()
        if sources != fingerprint():
            raise InputError("a worker has other sources of bridle than this process: install the same version for both")
        store.add(entries)
        queue.arrived(entry["key"] for entry in entries)

    try:
        while True:
            queue.arrived(store.refresh())
            room = pool.ahead()
            while not broken and len(running) < room and (task := queue.next()) is not None:
                store.claim(item.key for item in task.items)
                task.begun = time.perf_counter()
                try:
                    running[pool.submit(work, task.items, queue.comparators(task))] = task
                except pool.lost:
                    queue.again(task)
                    broken = True
            if progress is not None:
                progress(queue.done, queue.total, len(queue.cells) - queue.cells_left, len(queue.cells))
            if broken and (pool.survives or not running):
                losses += 1
                if losses >= LOSSES:
                    raise InputError(_given_up(losses, queue.cells_left))
                pool.renew()
                broken = False
                continue
            if not running:
                return
            for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                weight, took = sum(item.weight for item in task.items), time.perf_counter() - task.begun
                try:
                    finish(future)
                    losses = 0
                    pool.expect(took / weight * (queue.total - queue.done))
                except pool.lost:
                    queue.again(task)
                    broken = True
                except ImportError as error:
                    raise InputError(f"a worker cannot do the work: {error}") from None
    except KeyboardInterrupt:
        for future in running:
            if future.done() and not future.cancelled() and future.exception() is None:
                finish(future)
        raise


def _given_up(losses: int, cells_left: int) -> str:
    return (
        f"workers were lost {losses} times in a row (is there enough memory?); {cells_left} cells are not done and the others kept: "
        "the same command goes on, and fewer workers may have enough"
    )
