"""A comparison: every cell of a grid played once, on however many workers, and kept in a store as it finishes.

What was done before, by whichever process, is not done again. The best action in hindsight is found once for each stream that does not
depend on the decisions, before the cells that are measured against it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import TypeAlias

from bridle import storage, validate
from bridle.compare.cell import work
from bridle.compare.executors import Executor, Here, executor
from bridle.compare.keys import fingerprint, own_source
from bridle.compare.rows import COLUMNS, GameRow
from bridle.compare.spec import POLICIES, Grid, grid
from bridle.compare.store import Store, StoreEntry
from bridle.compare.task_queue import Task, TaskQueue
from bridle.core import InputError

CellProgress: TypeAlias = Callable[[float, float, int, int], None]
"""Told how much is done of how much, in rounds, and how many cells of how many."""

LOSSES = 3
"""How many times in a row workers may be lost with nothing finished in between."""


def compare(
    problems: Iterable[str],
    policies: Iterable[str] = POLICIES,
    horizons: Iterable[int] = (1000,),
    seeds: int | Sequence[int] = 3,
    out: str | os.PathLike[str] = "comparison",
    *,
    sweep: Mapping[str, Sequence[object]] | None = None,
    engine: str = "python",
    jobs: int | None = None,
    dask: str | None = None,
    progress: CellProgress | None = None,
) -> list[GameRow]:
    """Play every combination and give a row for each; `out` keeps them, as they finish in `out/store`, all in `out/results.parquet`.

    See `bridle.compare.spec.grid` for what problems, policies, seeds and sweep may be, `bridle.compare.rows.GameRow` for what a row holds,
    and `bridle.compare.analysis` for what to ask of them. Called again, it does only what is not in the store yet.

    >>> rows = compare(["fixed"], ["sinha2024", "sinha2024-strong"], horizons=[100], seeds=1, jobs=1)
    >>> [(row["label"], row["does_not_apply"]) for row in rows]  # doctest: +ELLIPSIS
    [('sinha2024', None), ('sinha2024-strong', 'policy sinha2024-strong does not apply: the costs ... are not strongly convex (modulus 0)')]
    """
    for package in ("pyarrow", "threadpoolctl"):
        validate.require_package(package, "report")
    plan = grid(problems, policies, horizons, seeds, sweep, engine)
    store = open_store(plan, out)
    rows = run(plan, store, lambda: executor(jobs, dask), progress)
    write_parquet(rows, Path(out) / "results.parquet")
    return rows


def open_store(grid: Grid, out: str | os.PathLike[str]) -> Store:
    """The store of the folder `out`, with what it has of the grid."""
    return Store(Path(out) / "store", {cell.key for cell in grid.cells} | grid.shared)


def run(grid: Grid, store: Store, start: Callable[[], Executor], progress: CellProgress | None = None) -> list[GameRow]:
    """The rows of the grid's cells, in order: from the store, and what is not there yet from the workers that `start` gives."""
    queue = TaskQueue(grid, store)
    if queue.left:
        pool = start()
        try:
            queue.cut(pool.workers())
            _check_own_policies(grid, pool)
            _drive(queue, store, pool, progress)
        finally:
            pool.close()
            store.close()
    return [store[cell.key]["row"] for cell in grid.cells]


def write_parquet(rows: list[GameRow], path: Path) -> None:
    """The rows as a Parquet file, in the place of one that may be there."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds: dict[object, object] = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}
    kinds |= {list[kind]: pa.list_(arrow) for kind, arrow in kinds.items()}  # type: ignore[valid-type]
    schema = pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    table = pa.Table.from_pylist(rows, schema=schema)
    with storage.replacing(path) as file:
        parquet.write_table(table, file)


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
                try:
                    finish(future)
                    losses = 0
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
