"""What is left of a comparison, cut into tasks for workers, in the order in which to do them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bridle.comparisons.cell import Cell, Instance
from bridle.comparisons.keys import canonical
from bridle.comparisons.spec import Grid
from bridle.comparisons.store import ComparatorFacts, Store

Item = TypeVar("Item", Instance, Cell)

TASK_ROUNDS = {"python": (5_000, 20_000)}
COMPILED_TASK_ROUNDS = (100_000, 1_000_000)
"""The fewest and the most rounds of a task. More where rounds are compiled: a task is of one program, which a worker compiles once."""

BESIDE = 0.1
"""What a game costs that is played beside another of the same policy, of what it costs alone; a guess that is rather high."""


@dataclass
class Task:
    """What one worker does at a time, and the keys of the instances whose comparators it waits for."""

    items: Sequence[Instance | Cell]
    needs: set[str]
    begun: float = 0.0  # when it was handed out


class TaskQueue:
    """What is left to do, in order: comparators first, then cells whose comparators are known, then what other processes are at already."""

    def __init__(self, grid: Grid, store: Store) -> None:
        self.grid, self.store = grid, store
        self.cells = [cell for cell in grid.cells if cell.key not in store]
        needed = {cell.instance.key: cell.instance for cell in self.cells if cell.instance.key in grid.shared}
        self.instances = [instance for key, instance in needed.items() if key not in store]
        undone: list[Instance | Cell] = [*self.instances, *self.cells]
        self.left = {item.key: item.weight for item in undone}
        self.total, self.done = sum(self.left.values()), 0.0
        self.cells_left = len(self.cells)
        self._cell_keys = {cell.key for cell in self.cells}
        self._first: deque[Task] = deque()
        self._ready: deque[Task] = deque()
        self._later: deque[Task] = deque()
        self._waiting: dict[str, list[Task]] = {}

    def cut(self, workers: int) -> None:
        """Make tasks of what is left, for so many workers."""
        self._first.extend(Task(part, set()) for part in _parts(self.instances, TASK_ROUNDS["python"], workers))
        missing = {instance.key for instance in self.instances}
        for part in _cell_parts(self.cells, workers):
            task = Task(part, {cell.instance.key for cell in part} & missing)
            for key in task.needs:
                self._waiting.setdefault(key, []).append(task)
            if not task.needs:
                self._ready.append(task)

    def next(self) -> Task | None:
        """The next task that can be done now; None where there is none."""
        while queue := self._first or self._ready:
            task = self._unfinished(queue.popleft())
            if task.items and not any(item.key in self.store.claimed for item in task.items):
                return task
            if task.items:
                self._later.append(task)
        while self._later:
            # From the end, because the process that claimed them began at the beginning.
            task = self._unfinished(self._later.pop())
            if task.items:
                return task
        return None

    def again(self, task: Task) -> None:
        """A task whose worker was lost is done again, after the others: it may be what a worker cannot bear."""
        self._later.appendleft(task)

    def arrived(self, keys: Iterable[str]) -> None:
        """Something was finished, here or by another process."""
        for key in keys:
            if key in self.left:
                self.done += self.left.pop(key)
                self.cells_left -= key in self._cell_keys
            for task in self._waiting.pop(key, []):
                task.needs.discard(key)
                if not task.needs:
                    self._ready.append(task)

    def comparators(self, task: Task) -> dict[str, ComparatorFacts]:
        """The comparators that the task's cells share, without the actions themselves, by the keys of their instances."""
        keys = {item.instance.key for item in task.items if isinstance(item, Cell)} & self.grid.shared
        return {key: {**self.store[key]["comparator"], "x": None} for key in keys}

    def _unfinished(self, task: Task) -> Task:
        task.items = [item for item in task.items if item.key not in self.store]
        return task


def _parts(
    items: list[Item], sizes: tuple[int, int], workers: int, program: Callable[[Item], str] = lambda item: ""
) -> Iterator[list[Item]]:
    """The items, cut into runs of one program: large ones first and small ones at the end, so that workers finish together.

    What is played side by side stays together where it is not too much for one task.
    """
    fewest, most = sizes
    beside = [n > 0 and _side_by_side(items[n - 1], items[n]) for n in range(len(items))]
    costs = [item.weight * (BESIDE if near else 1.0) for item, near in zip(items, beside, strict=True)]
    left = sum(costs)
    part: list[Item] = []
    size = 0.0
    for item, cost, near in zip(items, costs, beside, strict=True):
        limit = float(most) if near else min(float(most), max(float(fewest), left / (4 * max(workers, 1))))
        if part and (size + cost > limit or program(item) != program(part[0])):
            yield part
            left, part, size, cost = left - size, [], 0.0, item.weight
        part.append(item)
        size += cost
    if part:
        yield part


def _side_by_side(one: Instance | Cell, two: Instance | Cell) -> bool:
    """Whether two items are games that are played as one."""
    return isinstance(one, Cell) and isinstance(two, Cell) and one.own is None and one.game == two.game


def _cell_parts(cells: list[Cell], workers: int) -> Iterator[list[Cell]]:
    """The cells as tasks, long games first; cells that differ in the seed alone, or of one compiled program, are neighbours."""
    engine = cells[0].engine if cells else "python"
    if engine in TASK_ROUNDS:
        together = sorted(cells, key=lambda cell: (-cell.instance.horizon, cell.game))
        return _parts(together, TASK_ROUNDS[engine], workers)
    programs = {cell.key: _program(cell) for cell in cells}
    size: dict[str, float] = {}
    for cell in cells:
        size[programs[cell.key]] = size.get(programs[cell.key], 0.0) + cell.weight
    together = sorted(cells, key=lambda cell: (-size[programs[cell.key]], programs[cell.key], -cell.instance.horizon, cell.game))
    return _parts(together, COMPILED_TASK_ROUNDS, workers, lambda cell: programs[cell.key])


def _program(cell: Cell) -> str:
    """What is compiled once for all cells that agree in it: numbers are arguments, text chooses other code."""
    chosen = {key: value if isinstance(value, str) else None for key, value in cell.settings.items()}
    return canonical([cell.instance.problem, cell.instance.settings, cell.policy, chosen])
