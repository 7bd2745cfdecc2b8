"""Paths in hindsight: what actions that move with the stream cost, and the cheapest of those that move no farther than a given length.

The best path u_1, ..., u_T of length P keeps every round's constraints in its own round, g_t(u_t) <= 0, and sum |u_{t+1} - u_t| <= P. It is
the answer of one convex program in T d variables, found by linear programs that only ever know too little of it: each round's cost,
each constraint, each move and the domain are replaced by tangents at the answers so far. So what such a program says is never more
than the truth, and proves how good a path is.

>>> from bridle.domains import Box
>>> from bridle.functions import AffineFunction
>>> costs = AffineFunction(np.array([[1.0], [1.0], [-1.0], [1.0]]), np.zeros(4))
>>> best = best_path(lambda: [Round(costs, ())], Box(0.0, 1.0, dim=1), length=0.5)
>>> best.path.round(6)[:, 0].tolist(), round(best.cost, 6)
([0.0, 0.0, 0.25, 0.0], -0.25)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridle import validate
from bridle.backends import linear_program
from bridle.core import Domain, Round
from bridle.domains.facets import facets
from bridle.functions import AffineFunction, Coordinate
from bridle.ops import Array
from bridle.solvers.block_stream import Blocks, BlockStream, NoComparator, SingleFunction, batch

MOST_NUMBERS = 2_000
"""The most numbers that a path may have: T times d."""

TRUSTED, CLOSE, STEPS = 1e-6, 1e-8, 200
"""The gap that is not called a failure, relative to how much costs vary; how far tangents may be off; how many programs are solved."""


class BestPath(NamedTuple):
    """The cheapest path of actions for a stream, one for each round.

    Parameters
    ----------
    path : array of shape (T, d)
        The actions.
    cost : float
        Its total cost.
    length : float
        The sum of its moves, in units of action.
    violation : float
        The largest constraint value along it, 0 up to the solver's tolerance.
    lower : float
        No path that is allowed costs less than this.
    """

    path: Array
    cost: float
    length: float
    violation: float
    lower: float


def path_costs(blocks: Blocks, path: ArrayLike) -> Array:
    """The cost of each round at its own action of a path (T, d).

    >>> costs = AffineFunction(np.array([[1.0], [2.0]]), np.zeros(2))
    >>> path_costs(lambda: [Round(costs, ())], [[1.0], [3.0]]).tolist()
    [1.0, 6.0]
    """
    actions = validate.array("path", path)
    values = [values_along(block.cost, part).sum(axis=1) for block, part in _along(blocks, actions)]
    return np.concatenate(values) if values else np.zeros(0)


def length_of(path: Array) -> float:
    """How far a path moves, added up."""
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def best_path(blocks: Blocks, domain: Domain, length: float) -> BestPath:
    """The path of at most this length that costs least and violates no constraint in its own round.

    Raises NoComparator where there is none, where a function is not convex, where the path has too many numbers, and where the answer
    cannot be proved to be within 1e-6 of the best, relative to how much costs vary.
    """
    P, stream = validate.nonnegative("length", length), BlockStream(blocks)
    if stream.rounds * domain.dim > MOST_NUMBERS:
        raise NoComparator(f"no best path is sought of {stream.rounds} rounds in {domain.dim} dimensions: T d is {MOST_NUMBERS} at most")
    program = _PathProgram(stream, domain, P)
    X = np.tile(np.asarray(domain.center(), dtype=float), (stream.rounds, 1))
    program.cut(X, everything=True)
    best: BestPath | None = None
    for _ in range(STEPS):
        X, lower = program.solve()
        excess = program.cut(X)
        path = np.stack([np.asarray(domain.project(x)) for x in X])
        cost = float(path_costs(stream, path).sum())
        if excess <= CLOSE * 100.0 and (best is None or cost < best.cost):
            values = [limits_along(block, part)[0].max(initial=0.0) for block, part in _along(stream, path)]
            best = BestPath(path, cost, length_of(path), float(max(values)), min(cost, lower))
        if best is not None and (best.cost - lower <= 0.1 * TRUSTED * program.unit or excess <= CLOSE):
            best = best._replace(lower=min(best.cost, lower))
            break
    if best is None or best.cost - best.lower > TRUSTED * program.unit:
        raise NoComparator(f"the best path of length {P:g} was not found in {STEPS} programs")
    return best


class _PathProgram:
    """The program as far as it is known, over y = ((u_t - middle) / D), moves s_t and costs e_t: rows A (y, s, e) <= b."""

    def __init__(self, stream: BlockStream, domain: Domain, length: float) -> None:
        self.stream, self.domain, self.T, self.d = stream, domain, stream.rounds, domain.dim
        self.middle, self.D = np.asarray(domain.center(), dtype=float), float(domain.diameter()) or 1.0
        center = np.tile(self.middle, (self.T, 1))
        slopes = np.concatenate([gradients_along(block.cost, part) for block, part in _along(stream, center)])
        self.level = path_costs(stream, center)
        # How much costs vary over the domain, all rounds together: their unit; and that of one round.
        self.unit = float(np.linalg.norm(slopes, axis=1).sum()) * self.D or float(np.abs(self.level).sum()) or 1.0
        self.each = self.unit / self.T
        self.affine = all(isinstance(block.cost, (AffineFunction, Coordinate)) for block in stream)
        self.slopes = slopes * self.D / self.each
        self.parts: list[tuple[NDArray[np.int_], Array, Array]] = []  # of each row: columns, entries, level; of one width each
        moves, d = self.T - 1, self.d
        self.width = self.T * d + moves + (0 if self.affine else self.T)
        if moves:
            self._add(np.arange(self.T * d, self.T * d + moves)[None], np.ones((1, moves)), np.array([length / self.D]))
        low = np.array([domain.linear_min(row) for row in np.eye(d)])
        high = -np.array([domain.linear_min(-row) for row in np.eye(d)])
        self.sides = [((a - m) / self.D, (b - m) / self.D) for _ in range(self.T) for a, b, m in zip(low, high, self.middle, strict=True)]
        self.sides += [(0.0, length / self.D)] * moves + ([] if self.affine else [(-1e3 * self.T, 1e3 * self.T)] * self.T)
        known = facets(domain)
        if known is not None and not known.more:
            for row in known.halfspaces():
                self._add_rows(np.arange(self.T), np.tile(row[:-1], (self.T, 1)), np.full(self.T, row[-1]))

    def _add(self, columns: NDArray[np.int_], entries: Array, levels: Array) -> None:
        self.parts.append((columns, entries, levels))

    def _add_rows(self, rounds: NDArray[np.int_], rows: Array, levels: Array) -> None:
        """<row, u_t> <= level for these rounds, in the program's units, each row of length 1."""
        size = np.linalg.norm(rows, axis=1)
        fine = size > 0.0
        rounds, rows, levels, size = rounds[fine], rows[fine], levels[fine], size[fine]
        columns = rounds[:, None] * self.d + np.arange(self.d)
        self._add(columns, rows / size[:, None], (levels - rows @ self.middle) / (size * self.D))

    def cut(self, X: Array, everything: bool = False) -> float:
        """Add what the actions X show of the program to be missing; how much that was, in units of the domain and of all costs."""
        excess = self._cut_domain(X)
        at = 0
        for block, part in _along(self.stream, X):
            values, rows = limits_along(block, part)
            sizes = np.linalg.norm(rows, axis=2)
            far = values / np.where(sizes > 0.0, sizes * self.D, 1.0)
            if (values[sizes == 0.0] > 0.0).any():
                raise NoComparator("no path keeps every constraint: one is violated everywhere")
            for t, i in np.argwhere(np.full(far.shape, True) if everything else far > CLOSE):
                self._add_rows(np.array([at + t]), rows[t, i][None], np.array([rows[t, i] @ part[t] - values[t, i]]))
            excess, at = max(excess, float(far.max(initial=0.0))), at + len(part)
        return max(excess, self._cut_moves(X), self._cut_costs(X, everything))

    def _cut_domain(self, X: Array) -> float:
        inside = np.stack([np.asarray(self.domain.project(x)) for x in X])
        away = X - inside
        far = np.linalg.norm(away, axis=1) / self.D
        [out] = np.nonzero(far > CLOSE)
        self._add_rows(out, away[out], (away[out] * inside[out]).sum(axis=1))
        return float(far.max())

    def _cut_moves(self, X: Array) -> float:
        if self.T == 1:
            return 0.0
        moves = np.diff(X, axis=0) / self.D
        sizes, known = np.linalg.norm(moves, axis=1), self.moves
        [short] = np.nonzero(sizes > known + 0.1 * CLOSE / self.T)
        units = moves[short] / sizes[short][:, None]
        here = short[:, None] * self.d + np.arange(self.d)
        columns = np.concatenate([here, here + self.d, (self.T * self.d + short)[:, None]], axis=1)
        self._add(columns, np.concatenate([-units, units, -np.ones((len(short), 1))], axis=1), np.zeros(len(short)))
        return float(np.maximum(sizes - known, 0.0).sum())

    def _cut_costs(self, X: Array, everything: bool) -> float:
        if self.affine:
            return 0.0
        values = (path_costs(self.stream, X) - self.level) / self.each
        slopes = np.concatenate([gradients_along(block.cost, part) for block, part in _along(self.stream, X)]) * self.D / self.each
        [short] = np.nonzero(values > self.costs + 0.1 * CLOSE) if not everything else [np.arange(self.T)]
        here = short[:, None] * self.d + np.arange(self.d)
        columns = np.concatenate([here, (self.width - self.T + short)[:, None]], axis=1)
        size = np.sqrt(1.0 + (slopes[short] ** 2).sum(axis=1))[:, None]
        levels = (slopes[short] * (X[short] - self.middle) / self.D).sum(axis=1) - values[short]
        self._add(columns, np.concatenate([slopes[short], -np.ones((len(short), 1))], axis=1) / size, levels / size[:, 0])
        return float(np.maximum(values - self.costs, 0.0).sum()) / self.T

    moves: Array | float = 0.0
    costs: Array | float = 0.0

    def solve(self) -> tuple[Array, float]:
        """The answer to what is known, as a path, and the least that any path costs."""
        from scipy import sparse

        counts = [len(levels) for _, _, levels in self.parts]
        widths = [columns.shape[1] for columns, _, _ in self.parts]
        rows = np.repeat(np.arange(sum(counts)), np.repeat(widths, counts))
        columns = np.concatenate([part[0].ravel() for part in self.parts])
        entries = np.concatenate([part[1].ravel() for part in self.parts])
        A = sparse.csr_matrix((entries, (rows, columns)), shape=(sum(counts), self.width))
        cost = np.zeros(self.width)
        if self.affine:
            cost[: self.T * self.d] = self.slopes.ravel()
        else:
            cost[-self.T :] = 1.0
        answer = linear_program(cost, A, np.concatenate([levels for _, _, levels in self.parts]), self.sides)
        if answer is None or not answer.optimal:
            raise NoComparator("no path of that length keeps every constraint, or the program for it could not be solved")
        y, T, d = answer.x, self.T, self.d
        self.moves, self.costs = y[T * d : T * d + T - 1], y[self.width - T :]
        return self.middle + self.D * y[: T * d].reshape(T, d), float(cost @ y) * self.each + float(self.level.sum())


def _along(blocks: Blocks, path: Array) -> Iterator[tuple[Round, Array]]:
    """Each block of a stream with its part of the path."""
    at = 0
    for block in map(batch, blocks()):
        rounds = rounds_in(block, path[0])
        yield block, path[at : at + rounds]
        at += rounds


def rounds_in(block: Round, x: Array) -> int:
    """How many rounds a block has; x is any action."""
    return 1 if isinstance(block.cost, SingleFunction) else len(np.asarray(block.cost.value(x)))


def values_along(function: object, X: Array) -> Array:
    """Values (n, k) of a sequence of functions, each at its own action."""
    found = np.asarray(function.value(X[0] if isinstance(function, SingleFunction) else X))  # type: ignore[attr-defined]
    return found.reshape(len(X), -1)


def gradients_along(function: object, X: Array) -> Array:
    """Gradients (n, d), or (n, k, d)."""
    found = np.asarray(function.grad(X[0] if isinstance(function, SingleFunction) else X))  # type: ignore[attr-defined]
    return np.broadcast_to(found, X.shape) if found.ndim < 3 else found


def limits_along(block: Round, X: Array) -> tuple[Array, Array]:
    """Constraint values (n, k) and gradients (n, k, d), each at its own action."""
    values = [values_along(constraint, X) for constraint in block.constraints]
    rows = [gradients_along(constraint, X) for constraint in block.constraints]
    if not values:
        return np.zeros((len(X), 0)), np.zeros((len(X), 0, X.shape[1]))
    return np.concatenate(values, axis=1), np.concatenate([row if row.ndim == 3 else row[:, None] for row in rows], axis=1)
