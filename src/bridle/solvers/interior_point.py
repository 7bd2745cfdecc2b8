"""A primal-dual interior point for the programs of `program`, on dense arrays."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import NamedTuple

import numpy as np

from bridle.ops import Array
from bridle.solvers.program import AFFINE_PIECES, BENT_PIECES, ConvexProgram, Solution, curvature, evaluate, length

FULL_ACCURACY = 1e-11
"""The residuals at which it stops, in units where the domain and the cost's variation over it are of the order of 1."""


class _Inequalities:
    """All inequalities of a program: first those under a maximum, then the limits, then the domain's own.

    The first `count` are functions of x, with Jacobian `J` (count, d); the last are the rows A y <= b. What is affine is laid out once.
    Everything is in units in which a limit varies by about 1 over the domain, and so does the cost.
    """

    def __init__(self, program: ConvexProgram) -> None:
        region = self.region = program.region
        self.sums, self.N = program.sums, region.N
        functions = [piece for group in program.maxima for piece in group] + [*program.top, *program.limits, *region.curved]
        values, self.J = evaluate(tuple(functions), region.origin)
        ends = np.cumsum([0, *(length(function, region.origin) for function in functions)])
        self.slices = [(slice(int(start), int(end)), f) for start, end, f in zip(ends, ends[1:], functions, strict=False)]
        self.count, self.limits = len(values), len(values) - len(region.curved)
        self.curved = [(rows, part) for rows, part in self.slices if not isinstance(part, AFFINE_PIECES)]
        self.bent = bool(self.curved) or any(isinstance(part, BENT_PIECES) for part in self.sums)
        # A maximum's pieces stand one below the other: (start, pieces, rounds) of every group.
        self.groups, at = [], 0
        for width, rounds in [(len(group), length(group[0], region.origin)) for group in program.maxima]:
            self.groups.append((at, width, rounds))
            at += width * rounds
        if program.top:
            self.groups.append((at, len(evaluate(program.top, region.origin)[0]), 1))
            at += self.groups[-1][1]
        self.owned = at
        lengths = np.concatenate([np.linalg.norm(self.J @ self.N, axis=1), np.linalg.norm(region.A, axis=1)])
        _, slope, bend = self.cost(region.origin)
        most = sum(float(part.max(axis=0).sum()) for part in self.split(lengths))
        self.unit = max(float(np.linalg.norm(slope @ self.N)), float(np.abs(self.N.T @ bend @ self.N).max(initial=0.0)), most) or 1.0
        lengths = np.maximum(lengths, np.abs(np.concatenate([values, region.b])))
        lengths[:at] = self.unit
        self.scale = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
        scale = self.scale[: self.count]
        self.J, self.A, self.b = self.J * scale[:, None], region.A * self.scale[self.count :, None], region.b * self.scale[self.count :]
        self.start, self.fixed = values * scale, self.J.copy() if self.curved else self.J
        for rows, _ in self.curved:
            self.fixed[rows] = 0.0

    def cost(self, x: Array) -> tuple[float, Array, Array]:
        """The smooth part of the cost at x: value, gradient, Hessian."""
        value, slope, bend = 0.0, np.zeros(len(x)), np.zeros((len(x), len(x)))
        for part in self.sums:
            values = np.asarray(part.value(x))[:, 0]
            value += float(values.sum())
            slope = slope + np.asarray(part.grad(x)).sum(axis=0)
            bend = bend + curvature(part, x, np.ones(len(values)))
        return value, slope, bend

    def at(self, y: Array) -> Array:
        """Evaluate everything at y: the rows `c` and their Jacobian `J`, and `value`, `slope` and `bend` of the cost's smooth part."""
        x = self.region.origin + self.N @ y
        self.c = np.concatenate([self.start + self.fixed @ (self.N @ y), self.A @ y - self.b])
        for rows, part in self.curved:
            self.c[rows] = self.scale[rows] * np.asarray(part.value(x))[:, 0]
            self.J[rows] = self.scale[rows][:, None] * part.grad(x)
        value, slope, bend = self.cost(x)
        self.value, self.slope, self.bend = value / self.unit, slope / self.unit, bend / self.unit
        return self.c

    def hessian(self, y: Array, multipliers: Array) -> Array:
        """The Hessian in x of the cost's smooth part and of the rows times their multipliers."""
        x = self.region.origin + self.N @ y
        return sum((curvature(part, x, multipliers[rows] * self.scale[rows]) for rows, part in self.curved), self.bend)

    def back(self, weights: Array, J: Array) -> Array:
        """The weighted sum of the rows' gradients in y, for the Jacobian J in x."""
        return np.asarray(weights[: self.count] @ J @ self.N + weights[self.count :] @ self.A)

    # Sums and maxima over the pieces of each maximum, and values of each maximum back on its rows (0 on the rows of none).

    def split(self, values: Array) -> list[Array]:
        return [values[at : at + width * rounds].reshape(width, rounds, *values.shape[1:]) for at, width, rounds in self.groups]

    def sum(self, values: Array) -> Array:
        return np.concatenate([part.sum(axis=0) for part in self.split(values)] or [values[:0]])

    def most(self, values: Array) -> Array:
        return np.concatenate([part.max(axis=0) for part in self.split(values)] or [values[:0]])

    def spread(self, values: Array, length: int) -> Array:
        wide, at = np.zeros((length, *values.shape[1:])), 0
        for part in self.split(wide):
            part[:] = values[at : at + part.shape[1]]
            at += part.shape[1]
        return wide


class _Cones:
    """The positive semidefinite parts X = X0 + sum_k y_k B_k of a decision, of trace 1 at the centre."""

    def __init__(self, program: ConvexProgram) -> None:
        region = program.region
        self.parts = []
        for cone in region.cones:
            n = isqrt(cone.stop - cone.start)
            X0 = region.origin[cone].reshape(n, n)
            self.parts.append((X0 / np.trace(X0), region.N[cone].reshape(n, n, -1) / np.trace(X0)))
        self.count = sum(len(X0) for X0, _ in self.parts)

    def at(self, y: Array) -> list[Array]:
        return [X0 + B @ y for X0, B in self.parts]

    def along(self, dy: Array) -> list[Array]:
        return [B @ dy for _, B in self.parts]

    def back(self, matrices: list[Array]) -> Array | float:
        """The gradient in y of the sum of <matrix, X>."""
        return sum((np.tensordot(S, B, 2) for S, (_, B) in zip(matrices, self.parts, strict=True)), 0.0)

    def bend(self, inverses: list[Array], S: list[Array]) -> Array | float:
        """<B_k, X^-1 B_l S> for all k and l: what X S = const makes of the Hessian."""
        total: Array | float = 0.0
        for inverse, dual, (_, B) in zip(inverses, S, self.parts, strict=True):
            moved = np.einsum("ab,bck,cd->adk", inverse, B, dual, optimize=True)
            total = total + B.reshape(-1, B.shape[2]).T @ moved.reshape(-1, B.shape[2])
        return total


def interior(program: ConvexProgram, accuracy: float = FULL_ACCURACY, iterations: int = 200) -> Solution:
    """Mehrotra's predictor-corrector from an infeasible start, with a slack for every inequality.

    The variable that lies above each maximum is eliminated round by round, so a step costs what a least-squares fit to the rows costs.
    Where more is bent than a quadratic cost, steps are shortened until they pay, by the barrier function with the residuals of the rows as
    a penalty. The best iterate is returned, whatever accuracy was reached.
    """
    rows, cones = _Inequalities(program), _Cones(program)
    now = _start(rows, cones)
    best, least, idle = now, np.inf, 0
    for _ in range(iterations):
        left, gap = _residuals(rows, cones, now), float(now.lam @ now.z) + _inner(now.X, now.S)
        error = max(_size(left.dual), _size(left.balance), _size(left.primal), gap)
        idle += 1
        if error < 0.9 * least:
            best, least, idle = now, error, 0
        if least <= accuracy or idle > (40 if least > 1e-9 else 3):
            break
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                now = _advance(rows, cones, now, left, gap)
        except (np.linalg.LinAlgError, FloatingPointError):  # multipliers without bound: the limits cannot all be met
            break
    weights = best.lam * rows.scale * rows.unit
    groups = [part.T for part in rows.split(weights)]
    top = groups.pop()[0] if program.top else np.zeros(0)
    return Solution(rows.region.origin + rows.N @ best.y, groups, top, weights[rows.owned : rows.limits])


class _PrimalDual(NamedTuple):
    """Variables, what lies above the maxima, multipliers and slacks of rows, positive semidefinite parts and their multipliers."""

    y: Array
    s: Array
    lam: Array
    z: Array
    X: list[Array]
    S: list[Array]

    @property
    def pairs(self) -> int:
        """How many products of a slack and a multiplier there are."""
        return len(self.z) + sum(map(len, self.X))

    def moved(self, step: _PrimalDual, reach: float) -> _PrimalDual:
        """The iterate a share of the step away."""
        X, S = ([p + reach * q for p, q in zip(a, b, strict=True)] for a, b in ((self.X, step.X), (self.S, step.S)))
        y, s, lam, z = (value + reach * change for value, change in zip(self[:4], step[:4], strict=True))
        return _PrimalDual(y, s, lam, z, X, S)

    def reach(self, step: _PrimalDual) -> float:
        """The longest share of the step, at most 1, that keeps slacks and multipliers from becoming negative."""
        reach = 1.0
        for value, change in ((self.lam, step.lam), (self.z, step.z)):
            falling = change < 0.0
            reach = min(reach, float((value[falling] / -change[falling]).min(initial=1.0)))
        for matrix, turn in zip((*self.X, *self.S), (*step.X, *step.S), strict=True):
            root = np.linalg.inv(np.linalg.cholesky(matrix))
            reach = min(reach, 1.0 / max(1.0, -float(np.linalg.eigvalsh(root @ turn @ root.T)[0])))
        return reach


class _Residuals(NamedTuple):
    dual: Array
    balance: Array
    primal: Array


def _start(rows: _Inequalities, cones: _Cones) -> _PrimalDual:
    y = np.zeros(rows.N.shape[1])
    c = rows.at(y)
    m = len(c)
    owned, share = np.arange(m) < rows.owned, 1.0 / rows.sum(np.ones(m))
    s = rows.most(c)
    s = s + np.maximum(s - rows.sum(c) * share, (0.1 * np.abs(s).sum() + 1e-3) / max(len(s), 1))
    z = np.where(owned, rows.spread(s, m) - c, np.maximum(-c, 0.1))
    lam = rows.spread(share, m)
    level = float(lam @ z) / rows.owned if rows.owned else 0.1
    X = cones.at(y)
    return _PrimalDual(y, s, np.where(owned, lam, level / z), z, X, [level * _inverse(part) for part in X])


def _residuals(rows: _Inequalities, cones: _Cones, now: _PrimalDual) -> _Residuals:
    """What is left of the optimality conditions, but for complementarity; `rows` must have been evaluated there."""
    dual = rows.slope @ rows.N + rows.back(now.lam, rows.J) - cones.back(now.S)
    return _Residuals(dual, 1.0 - rows.sum(now.lam), rows.c - rows.spread(now.s, len(now.z)) + now.z)


def _advance(rows: _Inequalities, cones: _Cones, now: _PrimalDual, left: _Residuals, gap: float) -> _PrimalDual:
    """The next iterate; `rows` are evaluated there."""
    newton = _Newton(rows, cones, now, left)
    guess = newton(now.lam * now.z, [0.0 * part for part in now.X])
    ahead = now.moved(guess, now.reach(guess))
    centering = min(1.0, (float(ahead.lam @ ahead.z) + _inner(ahead.X, ahead.S)) / gap) ** 3 if gap > 0.0 else 0.0
    target = centering * gap / max(now.pairs, 1)
    unit = [target * np.eye(len(part)) for part in now.X]
    cross = [p @ q - t for p, q, t in zip(guess.X, guess.S, unit, strict=True)]
    step = newton(now.lam * now.z + guess.lam * guess.z - target, cross)
    short = min(max(0.9, 1.0 - 10.0 * gap), 0.9999)
    if not rows.bent:
        new = now.moved(step, short * now.reach(step))
        rows.at(new.y)
        return new

    price = 1.0 + 1.5 * float(np.abs(now.lam + step.lam).max(initial=0.0))
    before, value = _barrier(now, target) + price * float(np.abs(left.primal).sum()), rows.value
    rate = _rate(rows, now, step, target) - price * float(np.abs(left.primal).sum())
    if rate >= 0.0:  # the second-order correction can spoil the descent; the Newton step cannot
        step = newton(now.lam * now.z - target, [-t for t in unit])
        rate = _rate(rows, now, step, target) - price * float(np.abs(left.primal).sum())
    reach = short * now.reach(step)
    for _ in range(12):
        new = now.moved(step, reach)
        c = rows.at(new.y)
        after = _barrier(new, target) + price * float(np.abs(c - rows.spread(new.s, len(c)) + new.z).sum())
        if rows.value - value + after - before <= 1e-4 * reach * min(rate, 0.0) + 1e-12 * (1.0 + abs(before) + abs(value)):
            break
        reach *= 0.5
    return new


def _barrier(now: _PrimalDual, target: float) -> float:
    return float(now.s.sum()) - target * (float(np.log(now.z).sum()) + sum(float(np.linalg.slogdet(part)[1]) for part in now.X))


def _rate(rows: _Inequalities, now: _PrimalDual, step: _PrimalDual, target: float) -> float:
    """The rate at which cost and barrier change along the step."""
    inside = sum(float(np.trace(np.linalg.solve(part, turn))) for part, turn in zip(now.X, step.X, strict=True))
    return float(rows.slope @ (rows.N @ step.y)) + float(step.s.sum()) - target * (float((step.z / now.z).sum()) + inside)


class _Newton:
    """The Newton step at one iterate, factored once for predictor and corrector.

    With D = lam / z a maximum contributes sum_j D_j (h_j - m)(h_j - m)', where m is the D-weighted mean of its gradients h_j: written so,
    nothing cancels when one piece has nearly all the weight.
    """

    def __init__(self, rows: _Inequalities, cones: _Cones, now: _PrimalDual, left: _Residuals) -> None:
        from scipy.linalg import cho_factor, cho_solve

        self.rows, self.cones, self.now, self.left, self.D = rows, cones, now, left, now.lam / now.z
        self.inverses = [_inverse(part) for part in now.X]
        D = self.D[: rows.count, None]
        self.weight = rows.sum(self.D)
        self.middle = rows.sum(D * rows.J) / self.weight[:, None] if rows.owned else np.zeros((0, len(rows.slope)))
        self.K = rows.J - rows.spread(self.middle, rows.count) if rows.owned else rows.J
        M = rows.N.T @ (rows.hessian(now.y, now.lam) + (D * self.K).T @ self.K) @ rows.N
        M = M + (rows.A * self.D[rows.count :, None]).T @ rows.A + cones.bend(self.inverses, now.S)
        if not np.isfinite(M).all():
            raise FloatingPointError
        units = np.sqrt(np.maximum(np.diag(M), 1e-300))
        M = M / units / units[:, None]
        for extra in (1e-15, 1e-12, 1e-9, 1e-6, 1e-3):  # rounding may have made it indefinite
            try:
                factor = cho_factor(M + extra * np.eye(len(M)))
                break
            except np.linalg.LinAlgError:
                if extra == 1e-3:
                    raise
        self.solve: Callable[[Array], Array] = lambda v: cho_solve(factor, v / units, check_finite=False) / units

    def __call__(self, product: Array, cross: list[Array]) -> _PrimalDual:
        """The step that would zero the residuals, where slacks times multipliers are off by `product`, and matrices by `cross`."""
        rows, now, (dual, balance, primal) = self.rows, self.now, self.left
        e = (now.lam * primal - product) / now.z
        R = [-part - _symmetric(inverse @ c) for part, inverse, c in zip(now.S, self.inverses, cross, strict=True)]
        dy = self.solve(-(dual + rows.back(e, self.K) + balance @ self.middle @ rows.N - self.cones.back(R)))
        if not np.isfinite(dy).all():
            raise FloatingPointError
        lift, dx, dX = (rows.sum(e) - balance) / self.weight, rows.N @ dy, self.cones.along(dy)
        rise = np.concatenate([self.K @ dx, rows.A @ dy]) - rows.spread(lift, len(e))
        dS = [r - _symmetric(inverse @ turn @ S) for r, inverse, turn, S in zip(R, self.inverses, dX, now.S, strict=True)]
        return _PrimalDual(dy, lift + self.middle @ dx, e + self.D * rise, -primal - rise, dX, dS)


def _inverse(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), dtype=float)


def _symmetric(matrix: Array) -> Array:
    return np.asarray(0.5 * (matrix + matrix.T))


def _inner(a: list[Array], b: list[Array]) -> float:
    return float(sum((p * q).sum() for p, q in zip(a, b, strict=True)))


def _size(residual: Array) -> float:
    return float(np.abs(residual).max(initial=0.0))


def cost_unit(program: ConvexProgram) -> float:
    """How much the cost of a program varies over its domain, roughly."""
    return _Inequalities(program).unit
