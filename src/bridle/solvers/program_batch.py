"""Quadratic programs of many runs over one domain, solved side by side: minimise <slope, y> + y' bend y / 2 where rows y + levels <= 0.

Every array has the runs first. What comes out for a run does not depend on the others, to the last bit: no operation mixes runs, and a run
that is done leaves. Only few rows of a run matter, so they enter as they are found to be violated.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bridle import records
from bridle.ops import Array
from bridle.solvers.interior_point import FULL_ACCURACY
from bridle.solvers.program import BallLimit, Region

ROUGHLY = 1e-4
"""The accuracy until the rows that matter are known."""

PASSES, STEPS, IDLE, HALVINGS = 60, 60, 3, 6
"""The most times that rows are added, steps of the interior point, steps without a gain before a run is given up, and lengths tried."""

RIDGE = 1e-14
"""What keeps a matrix regular, relative to its diagonal."""


class ProgramBatch(NamedTuple):
    """The programs of all runs, in units in which the cost and every row vary by about 1 over the domain."""

    slope: Array  # (runs, n)
    bend: Array  # (runs, n, n)
    rows: Array  # (runs, rows, n)
    levels: Array  # (runs, rows)


class BatchSolution(NamedTuple):
    """For each run a point y, multipliers of its rows, and the highest row there: above the tolerance where the run was given up."""

    y: Array  # (runs, n)
    weights: Array  # (runs, rows)
    worst: Array  # (runs,)


class _Walls(NamedTuple):
    """What bounds the domain itself: planes, planes y + heights <= 0, and balls, y' bends y / 2 + normals y + values <= 0."""

    planes: Array
    heights: Array
    bends: Array
    normals: Array
    values: Array


def takes(region: Region) -> bool:
    """Whether programs over this region can be solved here: planes and balls bound it."""
    return region.known and not region.cones and region.N.shape[1] > 0 and len(region.A) + len(region.curved) > 0


def solve_batch(programs: ProgramBatch, region: Region, many: int, tolerance: float) -> BatchSolution:
    """Solve the programs with the `many` highest rows of each run, then with half as many that are violated most, until no row is."""
    walls = _walls(region)
    runs, total, n = programs.rows.shape
    y, weights, worst = np.zeros((runs, n)), np.zeros((runs, total)), np.full(runs, np.inf)
    chosen = _highest(programs.levels, many)
    accuracy, left = np.full(runs, ROUGHLY), np.arange(runs)
    for _ in range(PASSES):
        for level in (ROUGHLY, FULL_ACCURACY):
            among = accuracy[left] == level
            which, at = left[among], chosen[among]
            if len(which):
                some = programs._replace(
                    slope=programs.slope[which],
                    bend=programs.bend[which],
                    rows=programs.rows[which[:, None], at],
                    levels=programs.levels[which[:, None], at],
                )
                y[which], weights[which[:, None], at] = interior_batch(some, walls, level)
        values = _times(programs.rows[left], y[left]) + programs.levels[left]
        worst[left] = values.max(axis=1, initial=0.0)
        here = np.arange(len(left))[:, None]
        unmet = values[here, chosen].max(axis=1, initial=0.0)
        exact = accuracy[left] == FULL_ACCURACY
        going = ~exact | ((worst[left] > tolerance) & (unmet <= tolerance))  # more rows do not help where those known are not met
        accuracy[left[(worst[left] <= 100.0 * ROUGHLY) | (unmet > ROUGHLY)]] = FULL_ACCURACY
        values[here, chosen] = -np.inf
        left, chosen, values = left[going], chosen[going], values[going]
        if not len(left):
            break
        chosen = np.concatenate([chosen, _highest(values, min(many // 2, total - chosen.shape[1]))], axis=1)
    return BatchSolution(y, weights, worst)


class _Iterate(NamedTuple):
    """Where every run is: its program as one matrix, a point, and multipliers and slacks of all rows, planes and balls."""

    slope: Array
    bend: Array
    J: Array  # gradients of rows, planes and balls; those of the balls change
    fixed: Array  # what they are at y = 0, without the balls
    y: Array
    lam: Array
    z: Array
    c: Array  # what they are at y

    def left(self) -> _Residuals:
        """What is left of the optimality conditions; `J` must be that of `y`."""
        dual = self.slope + _times(self.bend, self.y) + _back(self.J, self.lam)
        return _Residuals(dual, self.c + self.z, (self.lam * self.z).sum(axis=1))


class _Residuals(NamedTuple):
    dual: Array
    primal: Array
    gap: Array

    @property
    def error(self) -> Array:
        """The largest of all, of each run."""
        return np.asarray(np.maximum(np.maximum(np.abs(self.dual).max(axis=1), np.abs(self.primal).max(axis=1)), self.gap))


def interior_batch(programs: ProgramBatch, walls: _Walls, accuracy: float) -> tuple[Array, Array]:
    """Mehrotra's predictor-corrector for all runs at once: the best points, and the multipliers of the rows.

    It starts outside, with a slack for every row. How good an answer is, the caller finds out.
    """
    slope, bend, rows, levels = programs
    runs, many, n = rows.shape
    planes, balls = len(walls.planes), len(walls.values)
    J = np.concatenate([rows, np.broadcast_to(walls.planes, (runs, planes, n)), np.zeros((runs, balls, n))], axis=1)
    fixed = np.concatenate([levels, np.broadcast_to(walls.heights, (runs, planes)), np.zeros((runs, balls))], axis=1)
    y = np.zeros((runs, n))
    c = _evaluate(J, fixed, walls, y)
    z = np.maximum(-c, 0.1)
    now = _Iterate(slope, bend, J, fixed, y, 0.1 / z, z, c)
    left = now.left()
    best, weights = y.copy(), now.lam[:, :many].copy()
    least, idle, live = np.full(runs, np.inf), np.zeros(runs, dtype=int), np.arange(runs)
    for _ in range(STEPS):
        error = left.error
        better = error < least[live]
        which = live[better]
        best[which], weights[which], least[which] = now.y[better], now.lam[better, :many], error[better]
        idle[live] = np.where(better, 0, idle[live] + 1)
        going = (error > accuracy) & (idle[live] < IDLE)
        if not going.any():
            break
        if not going.all():
            live, now, left = records.transform(lambda part, going=going: part[going], (live, now, left))
        now, left = _advanced(now, walls, left)
    return best, weights


def _advanced(now: _Iterate, walls: _Walls, left: _Residuals) -> tuple[_Iterate, _Residuals]:
    """The next iterate and its residuals, from those of this one."""
    J, lam, z, (dual, primal, gap) = now.J, now.lam, now.z, left
    D = lam / z
    M = now.bend + np.matmul((J * D[..., None]).transpose(0, 2, 1), J)
    for i, ball in enumerate(walls.bends, J.shape[1] - len(walls.bends)):
        M = M + lam[:, i, None, None] * ball
    size = np.sqrt(np.maximum(np.diagonal(M, axis1=1, axis2=2), 1e-300))
    M = M / size[:, None, :] / size[:, :, None] + RIDGE * np.eye(M.shape[1])

    def step(product: Array) -> tuple[Array, Array, Array]:
        """The change of points, multipliers and slacks that would zero the residuals, products being off by `product`."""
        e = (lam * primal - product) / z
        dy = _solved(M, -(dual + _back(J, e)) / size) / size
        rise = _times(J, dy)
        return dy, e + D * rise, -primal - rise

    dy, dlam, dz = step(lam * z)
    reach = np.minimum(_reach(lam, dlam), _reach(z, dz))[:, None]
    after = ((lam + reach * dlam) * (z + reach * dz)).sum(axis=1)
    target = np.minimum(1.0, after / gap) ** 3 * gap / lam.shape[1]
    dy, dlam, dz = step(lam * z + dlam * dz - target[:, None])
    reach = (np.clip(1.0 - 10.0 * gap, 0.9, 0.9999) * np.minimum(_reach(lam, dlam), _reach(z, dz)))[:, None]
    for _ in range(HALVINGS if len(walls.bends) else 1):  # a ball is no plane: a long step may end far outside
        y, lam, z = now.y + reach * dy, now.lam + reach * dlam, now.z + reach * dz
        then = now._replace(y=y, lam=lam, z=z, c=_evaluate(J, now.fixed, walls, y))
        after_it = then.left()
        worse = after_it.error > left.error
        if not worse.any():
            break
        reach[worse] *= 0.5
    return then, after_it


def _walls(region: Region) -> _Walls:
    """The domain's own bounds, in units in which they vary by about 1."""
    n = region.N.shape[1]
    size = np.maximum(np.linalg.norm(region.A, axis=1), np.abs(region.b))
    size[size == 0.0] = 1.0
    bends, normals, values = [np.zeros((0, n, n))], [np.zeros((0, n))], [np.zeros(0)]
    for ball in cast(tuple[BallLimit, ...], region.curved):
        value, normal = ball.value(region.origin)[0], ball.grad(region.origin)[0] @ region.N
        inside = ball.inside[0][:, None] * region.N
        scale = max(float(np.abs(value[0])), float(np.linalg.norm(normal))) or 1.0
        bends.append(inside.T @ inside[None] / scale)
        normals.append(normal[None] / scale)
        values.append(value / scale)
    return _Walls(region.A / size[:, None], -region.b / size, np.concatenate(bends), np.concatenate(normals), np.concatenate(values))


def _evaluate(J: Array, fixed: Array, walls: _Walls, y: Array) -> Array:
    """The values of all rows, planes and balls at y; the gradients of the balls are written into their rows of J."""
    c = fixed.copy()
    flat = J.shape[1] - len(walls.values)
    c[:, :flat] += _times(J[:, :flat], y)
    if len(walls.values):
        bent = np.matmul(walls.bends[None], y[:, None, :, None])[..., 0]
        J[:, flat:] = bent + walls.normals
        c[:, flat:] = ((0.5 * bent + walls.normals) * y[:, None]).sum(axis=-1) + walls.values
    return c


def _solved(matrices: Array, vectors: Array) -> Array:
    """What each run's matrix makes the vector of; NaN, which ends a run, for a matrix without an inverse."""
    try:
        return np.asarray(np.linalg.solve(matrices, vectors[..., None])[..., 0], dtype=float)
    except np.linalg.LinAlgError:  # NumPy says it of them all
        if len(matrices) == 1:
            return np.full_like(vectors, np.nan)
        return np.concatenate([_solved(one[None], right[None]) for one, right in zip(matrices, vectors, strict=True)])


def _times(matrices: Array, vectors: Array) -> Array:
    """Each run's matrix times its vector."""
    return np.asarray(np.matmul(matrices, vectors[..., None])[..., 0])


def _back(matrices: Array, weights: Array) -> Array:
    """The weighted sum of the rows of each run's matrix."""
    return np.asarray(np.matmul(weights[:, None], matrices)[:, 0])


def _reach(value: Array, change: Array) -> Array:
    """The longest share of a change, at most 1, that keeps the values of each run from becoming negative."""
    falling = change < 0.0
    shares: Array = np.divide(value, -change, out=np.ones_like(value), where=falling)
    return np.asarray(shares.min(axis=1, initial=1.0))


def _highest(values: Array, many: int) -> NDArray[np.intp]:
    """Where the highest values of each run are."""
    if many >= values.shape[1]:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape).copy()
    return np.argpartition(-values, many - 1, axis=1)[:, :many] if many else np.zeros((len(values), 0), dtype=np.intp)
