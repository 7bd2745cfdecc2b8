"""A comparison: every cell of a grid played once, on however many workers, and kept in a store as it finishes.

What was done before, by whichever process, is not done again. The best action in hindsight is found once for each stream that does not
depend on the decisions, before the cells that are measured against it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridle import storage
from bridle.compare.cell import (
    COLUMNS,
    FLAG,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    WHOLE,
    WHOLES,
    Cell,
    Instance,
    Job,
    Row,
    canonical,
    fingerprint,
    own_source,
    work,
)
from bridle.compare.executors import Executor, Here, executor, require
from bridle.compare.spec import POLICIES, Grid, grid
from bridle.compare.store import Store
from bridle.core import InputError

Progress = Callable[[float, float, int, int], None]
"""Told how much is done of how much, in rounds, and how many cells of how many."""

BATCH = {"python": (5_000, 20_000)}
COMPILED = (100_000, 1_000_000)
"""The fewest and the most rounds of a task; more where rounds are compiled: a batch is of one program, which a worker compiles once."""

HINDSIGHT = 0.2
"""What a round costs in the search for the best action, beside playing it: for telling how much time is left."""

LOSSES = 3
"""How many times in a row workers may be lost with nothing finished in between."""


def compare(
    problems: Iterable[str],
    policies: Iterable[str] = POLICIES,
    horizons: Iterable[int] = (1000,),
    seeds: Any = 3,
    out: str | os.PathLike[str] = "comparison",
    *,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    engine: str = "python",
    jobs: int | None = None,
    dask: str | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Play every combination and give a row for each; `out` keeps them, as they finish in `out/store`, all in `out/results.parquet`.

    See `bridle.compare.spec.grid` for what problems, policies, seeds and sweep may be, `bridle.compare.cell.COLUMNS` for what a row holds,
    and `bridle.compare.analysis` for what to ask of them. Called again, it does only what is not in the store yet.

    >>> rows = compare(["fixed"], ["sinha2024", "sinha2024-strong"], horizons=[100], seeds=1, jobs=1)
    >>> [(row["label"], row["does_not_apply"]) for row in rows]  # doctest: +ELLIPSIS
    [('sinha2024', None), ('sinha2024-strong', 'policy sinha2024-strong does not apply: the costs ... are not strongly convex (modulus 0)')]
    """
    for package in ("pyarrow", "threadpoolctl"):
        require(package, "report")
    asked = grid(problems, policies, horizons, seeds, sweep, engine)
    store = open_store(asked, out)
    rows = run(asked, store, lambda: executor(jobs, dask), progress)
    write_table(rows, Path(out) / "results.parquet")
    return rows


def open_store(asked: Grid, out: str | os.PathLike[str]) -> Store:
    """The store of the folder `out`, with what it has of the grid."""
    return Store(Path(out) / "store", {cell.key for cell in asked.cells} | asked.shared)


def run(asked: Grid, store: Store, start: Callable[[], Executor], progress: Progress | None = None) -> list[Row]:
    """The rows of the grid's cells, in order: from the store, and what is not there yet from the workers that `start` gives."""
    left = Schedule(asked, store)
    if left.tasks:
        pool = start()
        try:
            left.cut(pool.workers())
            _check_own(asked, pool)
            _drive(left, store, pool, progress)
        finally:
            pool.close()
            store.close()
    return [store[cell.key]["row"] for cell in asked.cells]


def _check_own(asked: Grid, pool: Executor) -> None:
    """A policy that was registered in this process is not known in others."""
    for name in dict.fromkeys(cell.policy for cell in asked.cells):
        if own_source(name) and not isinstance(pool, Here):
            raise InputError(f"policy {name} is registered in this process alone, which must then do all the work: jobs=1")


@dataclass
class Task:
    """What one worker does at a time, and the instances whose comparators it needs."""

    jobs: list[Any]
    needs: set[str]


class Schedule:
    """What is left to do, in order: comparators first, then cells whose comparators are known, then what other processes are at already."""

    def __init__(self, asked: Grid, store: Store) -> None:
        self.asked, self.store = asked, store
        self.cells = [cell for cell in asked.cells if cell.key not in store]
        needed = {cell.instance.key: cell.instance for cell in self.cells if cell.instance.key in asked.shared}
        self.instances = [instance for key, instance in needed.items() if key not in store]
        undone: list[Instance | Cell] = [*self.instances, *self.cells]
        self.left = {job.key: _weight(job) for job in undone}
        self.total, self.done = sum(self.left.values()), 0.0
        self.cells_left = len(self.cells)
        self._cells = {cell.key for cell in self.cells}
        self.first: deque[Task] = deque()
        self.ready: deque[Task] = deque()
        self.later: deque[Task] = deque()
        self.waiting: dict[str, list[Task]] = {}

    @property
    def tasks(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.left)

    def cut(self, workers: int) -> None:
        """Make tasks of what is left, for so many workers."""
        self.first.extend(Task(part, set()) for part in _batches(self.instances, BATCH["python"], workers))
        missing = {instance.key for instance in self.instances}
        for part in _cell_batches(self.cells, workers):
            task = Task(part, {cell.instance.key for cell in part} & missing)
            for key in task.needs:
                self.waiting.setdefault(key, []).append(task)
            if not task.needs:
                self.ready.append(task)

    def next(self) -> Task | None:
        """The next task that can be done now; None where there is none."""
        while queue := self.first or self.ready:
            task = self._unfinished(queue.popleft())
            if task.jobs and not any(job.key in self.store.claimed for job in task.jobs):
                return task
            if task.jobs:
                self.later.append(task)
        while self.later:
            # From the end, because the process that claimed them began at the beginning.
            task = self._unfinished(self.later.pop())
            if task.jobs:
                return task
        return None

    def again(self, task: Task) -> None:
        """A task whose worker was lost is done again, after the others: it may be what a worker cannot bear."""
        self.later.appendleft(task)

    def arrived(self, keys: Iterable[str]) -> None:
        """Something was finished, here or by another process."""
        for key in keys:
            if key in self.left:
                self.done += self.left.pop(key)
                self.cells_left -= key in self._cells
            for task in self.waiting.pop(key, []):
                task.needs.discard(key)
                if not task.needs:
                    self.ready.append(task)

    def jobs(self, task: Task) -> list[Job]:
        """The task's jobs with the comparators that their cells share."""
        return [(job, self._comparator(job) if isinstance(job, Cell) else None) for job in task.jobs]

    def _comparator(self, cell: Cell) -> dict[str, Any] | None:
        if cell.instance.key not in self.asked.shared:
            return None
        found = self.store[cell.instance.key]["comparator"]
        return {name: value for name, value in found.items() if name != "x"}

    def _unfinished(self, task: Task) -> Task:
        task.jobs = [job for job in task.jobs if job.key not in self.store]
        return task


def _weight(job: Instance | Cell) -> float:
    return HINDSIGHT * job.horizon if isinstance(job, Instance) else float(job.instance.horizon)


def _batches(
    jobs: list[Any], sizes: tuple[int, int], workers: int, program: Callable[[Any], Any] = lambda job: None
) -> Iterator[list[Any]]:
    """The jobs, cut into runs of one program: large ones first and small ones at the end, so that workers finish together."""
    fewest, most = sizes
    left = sum(map(_weight, jobs))
    part: list[Any] = []
    size = 0.0
    for job in jobs:
        limit = min(float(most), max(float(fewest), left / (4 * max(workers, 1))))
        if part and (size + _weight(job) > limit or program(job) != program(part[0])):
            yield part
            left, part, size = left - size, [], 0.0
        part.append(job)
        size += _weight(job)
    if part:
        yield part


def _cell_batches(cells: list[Cell], workers: int) -> Iterator[list[Cell]]:
    """The cells as tasks, long games first; cells of one instance, or of one compiled program, are neighbours."""
    engine = cells[0].engine if cells else "python"
    if engine in BATCH:
        together = sorted(cells, key=lambda cell: (-cell.instance.horizon, cell.instance.key))
        return _batches(together, BATCH[engine], workers)
    programs = {cell.key: _program(cell) for cell in cells}
    size: dict[str, float] = {}
    for cell in cells:
        size[programs[cell.key]] = size.get(programs[cell.key], 0.0) + _weight(cell)
    together = sorted(cells, key=lambda cell: (-size[programs[cell.key]], programs[cell.key], -cell.instance.horizon))
    return _batches(together, COMPILED, workers, lambda cell: programs[cell.key])


def _program(cell: Cell) -> str:
    """What is compiled once for all cells that agree in it: numbers are arguments, text chooses other code."""
    chosen = {key: value if isinstance(value, str) else None for key, value in cell.settings.items()}
    return canonical([cell.instance.problem, cell.instance.settings, cell.policy, chosen])


def _drive(left: Schedule, store: Store, pool: Executor, progress: Progress | None) -> None:
    """Hand out tasks and store what comes back, until nothing is left."""
    running: dict[Future[Any], Task] = {}
    losses, broken = 0, False

    def finish(future: Future[Any]) -> None:
        sources, entries = future.result()
        if sources != fingerprint():
            raise InputError("a worker has other sources of bridle than this process: install the same version for both")
        store.add(entries)
        left.arrived(entry["key"] for entry in entries)

    try:
        while True:
            left.arrived(store.refresh())
            room = pool.ahead()
            while not broken and len(running) < room and (task := left.next()) is not None:
                store.claim(job.key for job in task.jobs)
                try:
                    running[pool.submit(work, left.jobs(task))] = task
                except pool.lost:
                    left.again(task)
                    broken = True
            if progress is not None:
                progress(left.done, left.total, len(left.cells) - left.cells_left, len(left.cells))
            if broken and (pool.survives or not running):
                losses += 1
                if losses >= LOSSES:
                    raise InputError(_given_up(losses, left))
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
                    left.again(task)
                    broken = True
                except ImportError as wrong:
                    raise InputError(f"a worker cannot do the work: {wrong}") from None
    except KeyboardInterrupt:
        for future in running:
            if future.done() and not future.cancelled() and future.exception() is None:
                finish(future)
        raise


def _given_up(losses: int, left: Schedule) -> str:
    return (
        f"workers were lost {losses} times in a row (is there enough memory?); {left.cells_left} cells are not done and the others kept: "
        "the same command goes on, and fewer workers may have enough"
    )


def write_table(rows: list[Row], path: Path) -> None:
    """The rows as a Parquet file, in the place of one that may be there."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {
        TEXT: pa.string(), NUMBER: pa.float64(), WHOLE: pa.int64(), FLAG: pa.bool_(), TEXTS: pa.list_(pa.string()),
        NUMBERS: pa.list_(pa.float64()), WHOLES: pa.list_(pa.int64()),
    }  # fmt: skip
    schema = pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    table = pa.Table.from_pylist(rows, schema=schema)
    with storage.replacing(path) as file:
        parquet.write_table(table, file)
