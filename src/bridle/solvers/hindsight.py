"""Hindsight: the best fixed feasible action of a stream, and the costs and constraints of a stream at one action.

A stream is a function that gives its rounds anew whenever it is called, in `Blocks`.

>>> from bridle.domains import Box
>>> from bridle.functions import AffineFunction
>>> costs = AffineFunction(np.array([[-1.0, 0.0], [-1.0, -1.0]]), np.zeros(2))
>>> limits = AffineFunction(np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([-1.0, -0.75]))
>>> best = best_fixed(lambda: [Round(costs, (limits,))], Box(0.0, 1.0, dim=2))
>>> best.x.round(6).tolist(), round(best.cost, 6)
([1.0, 0.0], -2.0)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bridle import records, validate
from bridle.core import Domain, Round
from bridle.functions import AffineFunction, AffineRows, QuadraticForm, RoundQuadratic
from bridle.ops import Array
from bridle.solvers import program_batch
from bridle.solvers.block_stream import KEPT_BYTES, Blocks, BlockStream, NoComparator, batch, constraint_slopes, constraint_values
from bridle.solvers.chosen_limits import ChosenLimits
from bridle.solvers.convex import solve
from bridle.solvers.cutting_planes import Tangents
from bridle.solvers.interior_point import FULL_ACCURACY
from bridle.solvers.program import (
    AFFINE_PIECES,
    ConvexProgram,
    Pieces,
    Region,
    Solution,
    curvature,
    inside,
    lower_bound,
    objective,
    pieces,
    region,
)
from bridle.solvers.program_batch import ProgramBatch

__all__ = [
    "Blocks",
    "Hindsight",
    "NoComparator",
    "best_fixed",
    "best_fixed_each",
    "costs_after",
    "interval_excess",
    "least_violation",
    "read_once",
    "smallest_window",
    "static_violation",
    "total_cost",
    "values_at",
]

MOST_DIMENSIONS = 3000
"""The most dimensions in which a program is solved: its matrices are dense."""

TRUSTED, PROVED = 1e-6, 1e-9
"""The largest gaps between an answer and its proven bound, relative to how much the cost varies, that are not called a failure.

The second is for what was solved side by side with others: what is not as good is solved again, alone.
"""


class Hindsight(NamedTuple):
    """The best fixed feasible action of a stream, and its total cost.

    Parameters
    ----------
    x : array of shape (d,)
        The action.
    cost : float
        Its total cost.
    violation : float
        The largest violation of any constraint by it, 0 up to the solver's tolerance.
    lower : float
        No feasible action costs less than this.
    rounds : int
        How many rounds the stream has.
    """

    x: Array
    cost: float
    violation: float
    lower: float
    rounds: int


def best_fixed(blocks: Blocks, domain: Domain, tolerance: float = 1e-9) -> Hindsight:
    """The action of the domain that costs least in total and violates no constraint in any round.

    Costs that can be added up are. Constraints enter as they are found to be violated, so most of them never do. `tolerance` is relative
    to how much a constraint varies over the domain. Raises NoComparator where no action is feasible, where a function is not convex, and
    where the answer cannot be proved to be within 1e-6 of the best, relative to how much the cost varies over the domain.
    """
    ((_, found),) = best_fixed_each([blocks], domain, tolerance)
    if isinstance(found, NoComparator):
        raise found
    return found


def best_fixed_each(
    streams: Iterable[Blocks], domain: Domain, tolerance: float = 1e-9
) -> Iterator[tuple[Blocks, Hindsight | NoComparator]]:
    """Each stream as it was read, with the answer of `best_fixed` or the reason why there is none.

    Affine and quadratic costs under affine constraints are quadratic programs, and those of as many streams as fit into memory are solved
    side by side. What is not proved to be within 1e-9 of the best then, or is no such program, is solved alone. So the answer for a stream
    does not depend on the others.
    """
    tolerance = max(validate.positive("tolerance", tolerance), 1e-10)
    waiting: list[_QuadraticTask] = []
    where: Region | None = None
    used = 0
    for blocks in streams:
        task, answer = None, None
        try:
            stream = read_once(blocks, domain)
            goal, where = _TotalCost(stream, domain), where or region(domain)
            task = _quadratic_task(stream, goal, where)
        except NoComparator as reason:
            answer = reason
        if task is None or used + task.nbytes > KEPT_BYTES or len(task.levels) != len(waiting[-1].levels if waiting else task.levels):
            yield from _side_by_side(waiting, domain, tolerance)
            waiting, used = [], 0
        if task is not None:
            waiting.append(task)
            used += task.nbytes
        elif answer is not None:
            yield blocks, answer
        else:
            yield stream, _alone(stream, goal, domain, tolerance)
    yield from _side_by_side(waiting, domain, tolerance)


def read_once(blocks: Blocks, domain: Domain) -> BlockStream:
    """The stream as `best_fixed` reads it: pass it on in place of `blocks` to ask for more without replaying the stream."""
    if domain.dim > MOST_DIMENSIONS:
        raise NoComparator(f"no best fixed action is sought in {domain.dim} dimensions: {MOST_DIMENSIONS} are the most")
    return blocks if isinstance(blocks, BlockStream) else BlockStream(blocks)


class _Unsolved(Exception):
    """A solver failed: another one may not."""


class _QuadraticTask(NamedTuple):
    """A stream whose best action is that of a quadratic program: its cost, and its constraints <row, x> + level <= 0."""

    stream: BlockStream
    goal: _TotalCost
    rows: Array
    levels: Array

    @property
    def nbytes(self) -> int:
        """About how much memory it takes until it is solved."""
        d = self.rows.shape[1]
        return int(self.stream.nbytes + 3 * self.rows.nbytes + 16 * 8 * d * d)  # the stream, all rows, and the programs of a few


def _quadratic_task(stream: BlockStream, goal: _TotalCost, where: Region) -> _QuadraticTask | None:
    """The stream's quadratic program; None where it has none, or one that is too large to be kept."""
    if not stream.fits or goal.tangents or goal.maxima or len(goal.sums) != 1 or not program_batch.takes(where):
        return None
    d = len(goal.center)
    rows, levels = [np.zeros((0, d))], [np.zeros(0)]
    for constraint in (constraint for block in stream for constraint in block.constraints):
        if not isinstance(constraint, (AffineFunction, AffineRows)):
            return None
        rows.append(np.asarray(constraint.grad(goal.center)).reshape(-1, d))
        levels.append(np.asarray(constraint.b).reshape(-1))
    task = _QuadraticTask(stream, goal, np.concatenate(rows), np.concatenate(levels))
    return task if task.nbytes <= KEPT_BYTES else None


def _side_by_side(tasks: list[_QuadraticTask], domain: Domain, tolerance: float) -> Iterator[tuple[BlockStream, Hindsight | NoComparator]]:
    """The answers of tasks with equally many constraints, solved as one batch of programs."""
    if not tasks:
        return
    where = region(domain)
    rows, levels = np.stack([task.rows for task in tasks]), np.stack([task.levels for task in tasks])
    at_center = (rows @ where.origin[:, None])[..., 0] + levels
    size = np.maximum(np.linalg.norm(rows, axis=2) * domain.diameter(), np.abs(at_center))  # the range of a constraint
    size[size == 0.0] = 1.0
    slopes, bends, units = zip(*(task.goal.quadratic(where.N) for task in tasks), strict=True)
    programs = ProgramBatch(np.stack(slopes), np.stack(bends), rows @ where.N / size[..., None], at_center / size)
    solution = program_batch.solve_batch(programs, where, 20 + 2 * domain.dim, tolerance)
    X = np.stack([inside(domain, x) for x in where.origin + (where.N @ solution.y[..., None])[..., 0]])
    excess = (((rows @ X[..., None])[..., 0] + levels) / size).max(axis=1, initial=0.0)
    for i, task in enumerate(tasks):
        chosen = np.flatnonzero(solution.weights[i])
        weights = solution.weights[i, chosen] * units[i] / size[i, chosen]
        limits = AffineFunction(rows[i, chosen], levels[i, chosen, None])
        program = ConvexProgram(where, sums=task.goal.sums, limits=(limits,) if len(chosen) else ())
        try:
            if not excess[i] <= tolerance:
                raise _Unsolved
            yield task.stream, _proved(task.stream, task.goal, domain, program, Solution(X[i], [], np.zeros(0), weights), PROVED)
        except _Unsolved:
            yield task.stream, _alone(task.stream, task.goal, domain, tolerance)


def _alone(stream: BlockStream, goal: _TotalCost, domain: Domain, tolerance: float) -> Hindsight | NoComparator:
    """The best action of one stream, by whichever solver finds it."""
    reason = ""
    for by_tangents in (False, True):
        try:
            return _search(stream, _TotalCost(stream, domain, True) if by_tangents else goal, domain, tolerance)
        except _Unsolved as failure:
            reason = str(failure)
        except NoComparator as failure:
            return failure
    return NoComparator(reason)


def _search(stream: BlockStream, goal: _TotalCost, domain: Domain, tolerance: float) -> Hindsight:
    limits = ChosenLimits(domain)
    many = 20 + 2 * domain.dim + goal.pieces // 100  # few enough to cost little beside the rows of the cost
    limits.scan(stream, np.asarray(domain.center(), dtype=float), many, -np.inf)
    where = region(domain)
    accuracy = 1e-4 if goal.tangents is None else FULL_ACCURACY  # roughly, until the constraints that matter are known
    for _ in range(200):
        program, solution = goal.solve(ConvexProgram(where, limits=limits.parts), domain, accuracy)
        x = inside(domain, solution.x)
        unmet = limits.excess(x)
        if accuracy == FULL_ACCURACY and unmet > tolerance:
            raise _infeasible(ConvexProgram(where, top=limits.parts), domain)
        excess = limits.scan(stream, x, many, max(tolerance, 10.0 * accuracy))
        if excess <= tolerance and accuracy == FULL_ACCURACY:
            break
        if excess <= 100.0 * accuracy or unmet > accuracy:
            accuracy = FULL_ACCURACY
    else:
        raise _Unsolved(f"no action was found that satisfies every constraint: the last one tried exceeds one by {excess:.2g} of its range")
    return _proved(stream, goal, domain, program, solution._replace(x=x), TRUSTED)


def _proved(stream: BlockStream, goal: _TotalCost, domain: Domain, program: ConvexProgram, solution: Solution, trusted: float) -> Hindsight:
    """The solution of a stream's program, which meets every constraint, with the gap to the bound that its multipliers prove."""
    x = solution.x
    cost, slope = (part[0] for part in stream.total(x))
    scale = max(goal.unit, abs(cost - goal.start), float(np.linalg.norm(slope)) * domain.diameter(), 1e-6 * abs(cost)) or 1.0
    lower = lower_bound(program, domain, x, solution)
    # Costs that cancel over the stream vary by no more than the rounding of their sum.
    if not cost - lower <= trusted * scale and not cost - lower <= 8.0 * stream.rounding(x) * domain.diameter():
        raise _Unsolved(f"the best action found costs {cost:.6g} in total, but no more than {lower:.6g} is proved to be needed")
    violation = max(float(constraint_values(block, x).max(initial=0.0)) for block in stream)
    return Hindsight(x, float(cost), violation, min(float(cost), lower), stream.rounds)


def values_at(blocks: Blocks, x: ArrayLike) -> tuple[Array, Array]:
    """Costs (T,) and constraint values (T, k) of a stream at one action.

    >>> blocks = lambda: [Round(AffineFunction(np.eye(2), np.zeros(2)), (AffineFunction(np.eye(2), -np.ones(2)),))]
    >>> f, g = values_at(blocks, [1.0, 3.0])
    >>> f.tolist(), g.tolist()
    ([1.0, 3.0], [[0.0], [2.0]])
    """
    action = validate.vector("x", x)
    parts = [(np.asarray(block.cost.value(action)).reshape(-1), constraint_values(block, action)) for block in map(batch, blocks())]
    f, g = zip(*parts, strict=True) if parts else ([np.zeros(0)], [np.zeros((0, 0))])
    return np.concatenate(f), np.concatenate(g)


def total_cost(blocks: Blocks, x: ArrayLike) -> float:
    """The cost of a stream at one action, in memory that does not grow with T.

    >>> total_cost(lambda: [Round(AffineFunction(np.eye(2), np.zeros(2)), ())], [1.0, 3.0])
    4.0
    """
    action = validate.vector("x", x)
    return sum((float(np.asarray(block.cost.value(action)).reshape(-1).sum()) for block in map(batch, blocks())), 0.0)


def costs_after(blocks: Blocks, x: ArrayLike, rounds: ArrayLike) -> Array:
    """The cost of one action over the first t rounds of a stream, for each t of `rounds`, which ascend; memory does not grow with T.

    >>> blocks = lambda: [Round(AffineFunction(np.array([[1.0], [2.0], [4.0]]), np.zeros(3)), ())]
    >>> costs_after(blocks, [1.0], [1, 3]).tolist()
    [1.0, 7.0]
    """
    action, marks = validate.vector("x", x), np.asarray(rounds, dtype=int)
    done, total, parts = 0, 0.0, [np.zeros(0)]
    for block in map(batch, blocks()):
        costs = np.array(block.cost.value(action), dtype=float).reshape(-1)
        costs[0] += total
        sums = np.cumsum(costs)
        parts.append(sums[marks[(marks > done) & (marks <= done + len(sums))] - done - 1])
        done, total = done + len(sums), float(sums[-1])
    return np.concatenate(parts)


def smallest_window(g: ArrayLike) -> int | None:
    """The smallest S such that every constraint sums to at most 0, up to rounding, over any S consecutive rounds; None if there is none.

    `g` is (T, k), or (T,) for one constraint.

    >>> smallest_window([1.0, -1.0, 1.0, -1.0]), smallest_window([-1.0, 2.0])
    (2, None)
    """
    rows = _table(g)
    sums = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    slack = 8.0 * np.finfo(float).eps * np.abs(rows).sum(axis=0)
    T = len(rows)
    possible = np.ones(T + 1, dtype=bool)
    possible[0] = False
    while possible.any():
        S = int(possible.argmax())
        over = sums[S:] - sums[:-S] - slack
        start, i = np.unravel_index(int(over.argmax()), over.shape)
        if over[start, i] <= 0.0:
            return S
        # Whatever other lengths the worst window shows to fail, by where it starts or by where it ends, need no look of their own.
        possible[S] = False
        possible[: T + 1 - start] &= ~(sums[start:, i] - sums[start, i] > slack[i])
        end = int(start) + S
        possible[: end + 1] &= ~(sums[end, i] - sums[end::-1, i] > slack[i])
    return None


def interval_excess(g: ArrayLike) -> float:
    """The largest sum of one constraint over an interval of rounds, 0 for the empty interval; `g` is (T, k) or (T,).

    >>> interval_excess([[1.0], [-3.0], [2.0], [-0.5], [1.0]])
    2.5
    """
    return max([0.0, *(total for total, _, _ in _worst_intervals(_table(g)))])


def static_violation(blocks: Blocks, domain: Domain, bound: float) -> tuple[float, Array]:
    """The P_T of a stream and an action that attains it: the least `interval_excess` of any action of the domain, over F = `bound`.

    >>> from bridle.domains import Box
    >>> limits = AffineFunction(np.array([[1.0], [0.0], [-1.0]]), np.array([0.0, -2.0, 1.0]))  # x, -2, 1 - x
    >>> P, x = static_violation(lambda: [Round(limits, (limits,))], Box(0.0, 1.0, dim=1), bound=2.0)
    >>> round(P, 6), x.round(6).tolist()
    (0.25, [0.5])
    """
    F = validate.positive("bound", bound)
    stream = BlockStream(blocks)

    def worst(x: Array) -> tuple[Array, Array]:
        intervals = _worst_intervals(np.concatenate([constraint_values(block, x) for block in stream]))
        slopes, at = np.zeros((len(intervals) + 1, len(x))), 0
        for block in stream:
            rows = constraint_slopes(block, x)
            for i, (_, start, end) in enumerate(intervals):
                slopes[i] += rows[max(start - at, 0) : max(end - at, 0), i].sum(axis=0)
            at += len(rows)
        return np.array([*(total for total, _, _ in intervals), 0.0]), slopes

    center = np.asarray(domain.center(), dtype=float)
    scale = float(worst(center)[0].max())
    if scale == 0.0:
        return 0.0, center
    program, solution = Tangents(worst, center).minimise(ConvexProgram(region(domain)), domain, 1e-9 * scale)
    x = inside(domain, solution.x)
    value = float(worst(x)[0].max())
    lower = lower_bound(program, domain, x, solution)
    if not value - lower <= TRUSTED * scale:
        raise NoComparator(f"the least static violation is between {lower / F:.6g} and {value / F:.6g}, which is not close enough")
    return value / F, x


def least_violation(blocks: Blocks, domain: Domain) -> tuple[float, Array, float]:
    """The least value on the domain of the largest constraint of a whole stream, an action that attains it, and a proven lower bound.

    Where the first is 0 or less the action satisfies every constraint, by nearly as much as any action does (to 1e-4 of how much the
    constraints vary); where the last is above 0 none does.

    >>> from bridle.domains import Box
    >>> limits = AffineFunction(np.array([[1.0], [-1.0]]), np.array([-0.5, 0.25]))  # x <= 0.5, x >= 0.25
    >>> least, x, _ = least_violation(lambda: [Round(limits, (limits,))], Box(0.0, 1.0, dim=1))
    >>> round(least, 6), x.round(6).tolist()
    (-0.125, [0.375])
    """
    stream = BlockStream(blocks)

    def highest(x: Array) -> tuple[Array, Array]:
        values, rows = zip(*(_highest(block, x) for block in stream), strict=True)
        return np.concatenate(values), np.concatenate(rows)

    center = np.asarray(domain.center(), dtype=float)
    values, rows = highest(center)
    scale = max(float(abs(values).max()), float(np.linalg.norm(rows, axis=1).max()) * domain.diameter())
    if scale == 0.0:
        return 0.0, center, 0.0
    tangents = Tangents(highest, center)
    for accuracy in (1e-4, 1e-7, 1e-10):  # no finer than it takes to tell
        program, solution = tangents.minimise(ConvexProgram(region(domain)), domain, accuracy * scale, steps=200)
        x = inside(domain, solution.x)
        value, lower = float(highest(x)[0].max()), lower_bound(program, domain, x, solution)
        if value <= 0.0 or lower > 0.0:
            break
    return value, x, lower


def _highest(block: Round, x: Array, many: int = 5) -> tuple[Array, Array]:
    """The highest constraint values of a block and their gradients."""
    values = constraint_values(block, x)
    order = np.argsort(values, axis=None)[::-1][:many]
    return values.reshape(-1)[order], constraint_slopes(block, x).reshape(-1, len(x))[order]


def _table(g: ArrayLike) -> Array:
    rows = validate.array("g", g)
    return rows[:, None] if rows.ndim == 1 else rows


def _worst_intervals(g: Array) -> list[tuple[float, int, int]]:
    """For each constraint the interval of rounds with the largest sum, as (sum, start, end)."""
    sums = np.concatenate([np.zeros((1, g.shape[1])), np.cumsum(g, axis=0)])
    ends = (sums - np.minimum.accumulate(sums, axis=0)).argmax(axis=0)
    starts = [int(sums[: end + 1, i].argmin()) for i, end in enumerate(ends)]
    return [(float(sums[end, i] - sums[start, i]), start, int(end)) for i, (start, end) in enumerate(zip(starts, ends, strict=True))]


class _TotalCost:
    """The total cost as a program takes it: added up where it can be, else in pieces, else by its tangents."""

    def __init__(self, stream: BlockStream, domain: Domain, by_tangents: bool = False) -> None:
        center, d = np.asarray(domain.center(), dtype=float), domain.dim
        P, a, b = np.zeros((d, d)), np.zeros(d), 0.0
        rest: dict[tuple[type, ...], list[Pieces]] = {}
        self.center = center
        self.tangents: Tangents | None = None
        (self.start,), (slope,) = stream.total(center)
        # How much the cost varies over the domain, roughly; 1e-6 of its size is as good as nothing.
        self.unit = max(float(np.linalg.norm(slope)) * domain.diameter(), 1e-6 * abs(self.start))
        for block in stream:
            cost = records.widen(records.stack([block.cost.total()]), 1) if hasattr(block.cost, "total") else block.cost
            if isinstance(cost, (*AFFINE_PIECES, RoundQuadratic, QuadraticForm)) and not by_tangents:
                values = np.asarray(cost.value(center))
                P = P + curvature(cost, center, np.ones(len(values)))
                a, b = a + np.asarray(cost.grad(center)).sum(axis=0), b + float(values.sum())
            elif (parts := pieces(cost)) is not None and stream.fits and not by_tangents:
                rest.setdefault(tuple(map(type, parts)), []).append(parts)
            else:
                self.tangents = Tangents(stream.total, center)
                return
        self.sums: Pieces = (_expansion(center, P, a, b),)
        joined = [records.join(parts) for parts in rest.values()]
        self.sums += tuple(parts[0] for parts in joined if len(parts) == 1)
        self.maxima = tuple(parts for parts in joined if len(parts) > 1)

    @property
    def pieces(self) -> int:
        """How many rows the pieces of the cost make."""
        return 0 if self.tangents else sum(len(group) * len(np.asarray(group[0].grad(self.center))) for group in self.maxima)

    def quadratic(self, N: Array) -> tuple[Array, Array, float]:
        """The slope at the centre and the curvature of a cost that is one quadratic function, along `N`, in units that are given last."""
        (part,) = self.sums
        slope, bend = np.asarray(part.grad(self.center))[0] @ N, N.T @ curvature(part, self.center, np.ones(1)) @ N
        unit = max(float(np.linalg.norm(slope)), float(np.abs(bend).max(initial=0.0))) or 1.0
        return slope / unit, bend / unit, unit

    def solve(self, program: ConvexProgram, domain: Domain, accuracy: float) -> tuple[ConvexProgram, Solution]:
        """The program with this cost, and its solution."""
        if self.tangents:
            return self.tangents.minimise(program, domain, 1e-8 * (self.unit or 1.0))
        program = program._replace(sums=self.sums, maxima=self.maxima)
        return program, solve(program, domain, accuracy)


def _expansion(center: Array, P: Array, a: Array, b: float) -> AffineFunction | RoundQuadratic | QuadraticForm:
    """b + <a, x - center> + (x - center)' P (x - center) / 2, as the simplest function it is."""
    level = np.full((1, 1), b - a @ center)
    if not P.any():
        return AffineFunction(a[None], level)
    if np.array_equal(P, P[0, 0] * np.eye(len(P))):
        return RoundQuadratic(P[:1, :1], center[None], a[None], level)
    return QuadraticForm(P[None], (a - P @ center)[None], level + 0.5 * center @ P @ center)


def _infeasible(program: ConvexProgram, domain: Domain) -> Exception:
    """Why a program whose limits are the top of this one has no solution."""
    solution = solve(program, domain)
    least = lower_bound(program, domain, solution.x, solution)
    if least > 0.0:
        return NoComparator(f"no action of the domain satisfies every constraint of the stream: each exceeds one by at least {least:.3g}")
    reached = objective(program, solution.x)
    return _Unsolved(f"no action was found that satisfies every constraint of the stream: the best one exceeds one by {reached:.3g}")
