"""Proximal steps on the positive parts of affine constraints.

`hinge` is the step on one of them,

    argmin over x in X of  alpha |x - v|^2 + c (<a, x> - b)^+  =  P_X(v - s a / (2 alpha))  for one multiplier s in [0, c],

as arithmetic that compiles: s = 0 where P_X(v) is below the cut, s = c where even that leaves it above, and in between the answer is the
nearest point of X below the cut, which has a closed form in balls, takes a Newton step or two in boxes and a few projections elsewhere. It
is exact however large c.

`hinges` takes several, on the Python engine only: a quadratic program by DAQP (``pip install 'bridle-oco[qp]'``) where the domain has
faces, else the dual of `bridle.solvers.prox_dual`.

>>> from bridle.domains import Ball
>>> hinge(Ball(2), np.array([0.8, 0.0]), np.array([1.0, 0.0]), 0.5, 1e12, 1.0)
array([0.5, 0. ])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bridle import ops
from bridle.backends import UNBOUNDED, quadratic_in_bands
from bridle.core import Domain, InputError
from bridle.domains.closed_form import BallSet, BoxSet, surely
from bridle.domains.facets import faces
from bridle.domains.half_space_cut import BallCut, DomainCut, crossing_in_box, slide_in_box
from bridle.domains.polyhedron import PolyhedronSet
from bridle.ops import Array, Scalar, dot, norm
from bridle.solvers.prox_dual import PROX_ACCURACY, TOO_FAR_APART, ascend

# --- one affine constraint: compiles --------------------------------------------------------------------------------------------------


def hinge(domain: Domain, v: Array, a: Array, b: Scalar, c: Scalar, alpha: Scalar) -> Array:
    """The x of the domain with the least  alpha |x - v|^2 + c (<a, x> - b)^+ ; c >= 0, alpha > 0; one run or one of each of several."""
    length = norm(a)
    unit, level, reach = ops.ratio(a, length), ops.ratio(b, length), 0.5 * c * length / alpha
    if isinstance(domain, BallSet):
        return _in_ball(domain, v, unit, level, reach)
    onto = domain.project(v)
    over = dot(unit, onto) - level
    if surely(over <= 0.0):
        return onto
    if isinstance(domain, BoxSet):
        s, point, settled = slide_in_box(domain, unit, level, v, onto, over)
        if surely((over <= 0.0) | (settled & (s <= reach))):
            return ops.where(over <= 0.0, onto, point)
    last = domain.project(v - reach * unit)
    under = level - dot(unit, last)
    end = ops.where(over <= 0.0, onto, last)
    if surely((over <= 0.0) | (under <= 0.0)):
        return end
    # The cut lies between the two: what is searched for is the nearest point below it. Runs without a cut get one that is met at once.
    crossed = (over > 0.0) & (under > 0.0)
    level, over, under = ops.where(crossed, level, dot(unit, onto) + 1.0), ops.where(crossed, over, 0.0), ops.where(crossed, under, 1.0)
    if isinstance(domain, PolyhedronSet):
        point = _below(domain, v, unit, level)
    elif isinstance(domain, BoxSet):
        point = crossing_in_box(domain, unit, level, v, onto, over)
    else:
        point = DomainCut(domain, unit, level, last, under, onto).crossing(v, onto, over)  # type: ignore[arg-type]
    return ops.where(crossed, point, end)


def _in_ball(ball: BallSet, v: Array, unit: Array, level: Scalar, reach: Scalar) -> Array:
    """`hinge` in a ball: how high P(v - s unit) is at s = 0 and at s = reach takes two numbers only, v's height and its distance."""
    away = v - ball.middle
    up, distance, height = dot(unit, away), dot(away, away), level - dot(unit, ball.middle)
    over = up * (ball.radius / ops.maximum(ops.sqrt(distance), ball.radius)) - height
    if surely(over <= 0.0):
        return ball.project(v)
    down = up - reach
    under = height - down * (ball.radius / ops.maximum(ops.sqrt(ops.pos(distance - up * up) + down * down), ball.radius))
    crossed = (over > 0.0) & (under > 0.0)
    point = BallCut(ball.middle, ball.radius, unit, ops.where(crossed, height, 0.0)).on_disk(away)  # type: ignore[arg-type]
    if surely(crossed):
        return point
    return ops.where(crossed, point, ball.project(v - ops.where(over <= 0.0, 0.0, reach) * unit))


def _below(domain: PolyhedronSet, v: Array, unit: Array, level: Scalar) -> Array:
    """The nearest point to v of the polyhedron below the cut."""
    if v.ndim == 1:
        return domain._replace(A=np.vstack([domain.A, unit]), b=np.append(domain.b, level)).project(v)
    rows, levels = np.broadcast_to(unit, v.shape), np.broadcast_to(level, (*v.shape[:-1], 1))
    return np.array([_below(domain, *each) for each in zip(v, rows, levels[..., 0], strict=True)])


# --- several affine constraints: a quadratic program ----------------------------------------------------------------------------------


def hinges(domain: Domain, v: Array, A: Array, b: Array, c: ArrayLike, alpha: float, joint: bool = False) -> Array:
    """The x of the domain with the least  alpha |x - v|^2 + sum_i c_i (<a_i, x> - b_i)^+ , or + c (max_i <a_i, x> - b_i)^+ where `joint`.

    >>> from bridle.domains import Box
    >>> hinges(Box(0.0, 1.0, dim=2), np.ones(2), np.eye(2), np.array([0.5, 0.5]), [1e6, 0.2], 1.0).round(9)
    array([0.5, 0.9])
    """
    weights = np.asarray(c, dtype=float).reshape(-1)
    onto = np.asarray(domain.project(v))
    over, span = A @ onto - b, np.sqrt((A * A).sum(axis=1)) * float(domain.diameter())
    if over.max() <= 0.0 or not weights.any():
        return onto
    # What is nowhere positive is left out; what is positive everywhere is linear (or, of a maximum, where it is so, not clipped).
    if joint:
        floor = max(0.0, float((over - span).max()))
        kept, b = over + span > floor, b + floor
    else:
        kept, linear = (over + span > 0.0) & (over < span) & (weights > 0.0), over >= span
        v, weights = v - (weights * linear) @ A / (2.0 * alpha), weights[kept]
    if not kept.any():
        return np.asarray(domain.project(v))
    A, b = A[kept], b[kept]
    sides = faces(domain)
    if sides is None:
        return _by_dual(domain, v, A, b, weights, alpha, joint)
    size = float(domain.diameter() + norm(v - onto))
    return np.asarray(domain.project(_program(v, A, b, weights, alpha, joint, *sides, size)))


def _program(
    v: Array, A: Array, b: Array, c: Array, alpha: float, joint: bool,
    rows: Array, low: Array, high: Array, size: float,
) -> Array:  # fmt: skip
    """The step over {low <= rows x <= high}: for y = (x - v) / size, with rows of unit length and the cost in units of alpha size^2."""
    d, k = len(v), len(A)
    lengths, faces = np.sqrt((A * A).sum(axis=1)), np.sqrt((rows * rows).sum(axis=1))
    kept = lengths > 0.0
    if joint:  # one slack for all rows: they keep their lengths, relative to the longest
        scale = np.full(k, lengths.max() or 1.0)
        kept = np.full(k, True)
    else:
        scale = np.where(kept, lengths, 1.0)
    room = ((b - A @ v) / scale / size)[kept]
    unit = (A / scale[:, None])[kept]
    price = (c * scale[0] if joint else (c * scale)[kept]) / (alpha * size)
    faced = rows / faces[:, None]
    bottom, top = (np.clip((end - rows @ v) / faces / size, -UNBOUNDED, UNBOUNDED) for end in (low, high))
    # With the constraints as hard ones: where their multipliers are no more than the prices, that is the answer.
    y, pull = quadratic_in_bands(2.0 * np.eye(d), np.zeros(d), [(unit, None, room), (faced, bottom, top)])
    if y is not None:
        shares = np.maximum(pull[: len(unit)], 0.0)
        if np.all((shares.sum() if joint else shares) <= price):
            return v + size * y
    # Else with slacks. A slack costs no more than 1e7: beyond that a polyhedron's answer does not change any more.
    slacks = 1 if joint else len(unit)
    each = np.ones((len(unit), 1)) if joint else np.eye(len(unit))
    H = np.zeros((d + slacks, d + slacks))
    H[:d, :d] = 2.0 * np.eye(d)
    lifted = [
        (np.hstack([unit, -each]), None, room),
        (np.hstack([faced, np.zeros((len(faced), slacks))]), bottom, top),
        (np.hstack([np.zeros((slacks, d)), np.eye(slacks)]), np.zeros(slacks), None),
    ]
    costs = np.append(np.zeros(d), np.minimum(price, 1e7))
    y, _ = quadratic_in_bands(H, costs, lifted)
    if y is None:
        y, _ = quadratic_in_bands(H, costs, lifted, eps_prox=1e-3)
    if y is None:
        raise InputError(TOO_FAR_APART)
    return v + size * y[:d]


def _by_dual(domain: Domain, v: Array, A: Array, b: Array, c: Array, alpha: float, joint: bool) -> Array:
    """The step over any domain, by its dual: x(s) is a projection."""
    lengths = np.sqrt((A * A).sum(axis=1))

    def at(s: Array, near: Array | None, accuracy: float) -> tuple[Array, Array, Array]:
        x = np.asarray(domain.project(v - s @ A / (2.0 * alpha)))
        return x, A @ x - b, lengths

    groups = np.ones((1, len(A))) if joint else np.eye(len(A))
    Q = A @ A.T / (2.0 * alpha)
    guess, size = Q + np.diag(1e-9 * np.diag(Q) + 1e-200), float(domain.diameter() + norm(domain.center()))
    return ascend(at, guess, groups, c, size, PROX_ACCURACY)[0]
