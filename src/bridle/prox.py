"""Proximal steps on the positive part of constraints: what the policies that solve a program every round solve.

`hinge` is the step on one affine constraint,

    argmin over x in X of  alpha |x - v|^2 + c (<a, x> - b)^+  =  P_X(v - s a / (2 alpha))  for one multiplier s in [0, c],

as arithmetic that compiles: s = 0 where P_X(v) is below the cut, s = c where even that leaves it above, and in between the answer is the
nearest point of X below the cut, which has a closed form in balls and boxes and takes a few projections elsewhere. It is exact however
large c.

`hinges` takes several affine constraints (a quadratic program by DAQP; needs ``pip install 'bridle[qp]'``, or their dual where the domain
is no polyhedron or ball), `hinge_of` one convex function, `weighted` a weighted sum of them: these run on the Python engine only.

`OneHinge`, `SumOfHinges` and `FunctionHinge` are how a policy holds one of these; each reads a `Feedback`.

>>> from bridle.domains import Ball
>>> hinge(Ball(2), np.array([0.8, 0.0]), np.array([1.0, 0.0]), 0.5, 1e12, 1.0)
array([0.5, 0. ])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bridle import ops, validate
from bridle.core import Feedback, InputError, Unavailable
from bridle.cuts import BallCut, DomainCut
from bridle.functions import AffineFunction, RoundQuadratic
from bridle.ops import Array, dot, norm
from bridle.polyhedron import PolyhedronSet
from bridle.sets import BallSet, BoxSet, ProductSet, SimplexSet, surely

FAR = 1e30
"""What DAQP takes for infinity."""


# --- one affine constraint: compiles --------------------------------------------------------------------------------------------------


def hinge(domain: Any, v: Array, a: Array, b: Array, c: Array, alpha: Array) -> Array:
    """The x of the domain with the least  alpha |x - v|^2 + c (<a, x> - b)^+ ; c >= 0, alpha > 0; one run or one of each of several."""
    onto, length = domain.project(v), norm(a)
    unit, level = ops.ratio(a, length), ops.ratio(b, length)
    over = dot(unit, onto) - level
    if surely(over <= 0.0):
        return onto
    last = domain.project(v - (0.5 * c * length / alpha) * unit)
    under = level - dot(unit, last)
    if surely((over <= 0.0) | (under <= 0.0)):
        return ops.where(over <= 0.0, onto, last)
    crossed, point = _crossing(domain, v, unit, level, onto, over, last, under)
    return ops.where(crossed, point, ops.where(over <= 0.0, onto, last))


def _crossing(domain: Any, v: Array, unit: Array, level: Array, onto: Array, over: Array, last: Array, under: Array) -> tuple[Array, Array]:
    """Where the cut lies between P_X(v) and the last point, and the nearest point of X to v that is below it."""
    crossed = (over > 0.0) & (under > 0.0)
    if isinstance(domain, BallSet):
        height = level - dot(unit, domain.middle)
        crossed = crossed & (abs(height) < domain.radius)
        return crossed, BallCut(domain.middle, domain.radius, unit, ops.where(crossed, height, 0.0)).project(v)
    cut = DomainCut(domain, unit, level, last, under, onto)
    if isinstance(domain, BoxSet):
        return crossed, cut._crossing_in_box(v)
    level = ops.where(crossed, level, dot(unit, onto) + 1.0)  # runs that need no search get a cut that is met at once
    if isinstance(domain, PolyhedronSet):
        return crossed, _below(domain, v, unit, level)
    cut = cut._replace(b=level, room=ops.where(crossed, under, 1.0))
    return crossed, cut._crossing(v, onto, ops.where(crossed, over, 0.0))


def _below(domain: PolyhedronSet, v: Array, unit: Array, level: Array) -> Array:
    if v.ndim == 1:
        return domain._replace(A=np.vstack([domain.A, unit]), b=np.append(domain.b, level)).project(v)
    rows, levels = np.broadcast_to(unit, v.shape), np.broadcast_to(level, (*v.shape[:-1], 1))
    return np.array([_below(domain, *each) for each in zip(v, rows, levels[..., 0], strict=True)])


# --- several affine constraints: a quadratic program ----------------------------------------------------------------------------------


def hinges(domain: Any, v: np.ndarray, A: np.ndarray, b: np.ndarray, c: Any, alpha: float, joint: bool = False) -> np.ndarray:
    """The x of the domain with the least  alpha |x - v|^2 + sum_i c_i (<a_i, x> - b_i)^+ , or + c (max_i <a_i, x> - b_i)^+ where `joint`.

    >>> from bridle.domains import Box
    >>> hinges(Box(0.0, 1.0, dim=2), np.ones(2), np.eye(2), np.array([0.5, 0.5]), [1e6, 0.2], 1.0).round(9)
    array([0.5, 0.9])
    """
    weights = np.full(1, float(c)) if joint else np.asarray(c, dtype=float)
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
    found = _faces(domain)
    if found is None:
        return _by_dual(domain, v, A, b, weights, alpha, joint)
    rows, low, high, ball = found

    def solve(pull: float) -> np.ndarray:
        """Without the ball, but with pull |x - its centre|^2 added."""
        at = v if ball is None else (alpha * v + pull * ball.middle) / (alpha + pull)
        return _program(at, A, b, weights, alpha + pull, joint, rows, low, high, float(domain.diameter() + norm(at - onto)))

    x = solve(0.0)
    if ball is None or norm(x - ball.middle) <= ball.radius:
        return np.asarray(domain.project(x))

    def beyond(pull: float) -> float:
        return float(norm(solve(pull) - ball.middle)) - float(ball.radius)

    return np.asarray(domain.project(solve(_root(beyond, alpha))))


def _faces(domain: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, BallSet | None] | None:
    """The domain as  low <= rows x <= high  and at most one ball, where it can be written so."""
    none = np.zeros((0, domain.dim)), np.zeros(0), np.zeros(0)
    if isinstance(domain, BallSet):
        return *none, domain
    if isinstance(domain, BallCut):
        height = float(domain.height + domain.a @ domain.middle)
        return domain.a[None], np.array([-FAR]), np.array([height]), BallSet(domain.middle, domain.radius)
    if isinstance(domain, BoxSet):
        return np.eye(domain.dim), domain.low, domain.high, None
    if isinstance(domain, SimplexSet):
        ends = np.append(np.zeros(domain.dim), domain.mass), np.append(np.full(domain.dim, FAR), domain.mass)
        return np.vstack([np.eye(domain.dim), np.ones(domain.dim)]), *ends, None
    if isinstance(domain, PolyhedronSet):
        return domain.A, np.full(len(domain.b), -FAR), domain.b, None
    if isinstance(domain, DomainCut) and (inner := _faces(domain.within)) is not None:
        rows, low, high, ball = inner
        return np.vstack([rows, domain.a]), np.append(low, -FAR), np.append(high, domain.b), ball
    if isinstance(domain, ProductSet):
        parts = [_faces(part) for part in domain.domains]
        if all(part is not None and part[3] is None for part in parts):
            from scipy.linalg import block_diag

            kept = [part for part in parts if part is not None]
            return block_diag(*(p[0] for p in kept)), np.concatenate([p[1] for p in kept]), np.concatenate([p[2] for p in kept]), None
    return None


def _program(
    v: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray, alpha: float, joint: bool,
    rows: np.ndarray, low: np.ndarray, high: np.ndarray, size: float,
) -> np.ndarray:  # fmt: skip
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
    bottom, top = (np.clip((end - rows @ v) / faces / size, -FAR, FAR) for end in (low, high))
    # With the constraints as hard ones: where their multipliers are no more than the prices, that is the answer.
    y, pull = _daqp(2.0 * np.eye(d), np.zeros(d), [(unit, None, room), (faced, bottom, top)])
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
    y, _ = _daqp(H, costs, lifted)
    if y is None:
        y, _ = _daqp(H, costs, lifted, eps_prox=1e-3)
    if y is None:
        raise InputError("no proximal step was found: the constraints, their weights and the costs are too far apart in size")
    return v + size * y[:d]


def _daqp(
    H: np.ndarray, f: np.ndarray, parts: list[tuple[np.ndarray, Any, Any]], eps_prox: float = -1e-6
) -> tuple[np.ndarray | None, np.ndarray]:
    """The x that minimises  x'Hx/2 + f'x  with low <= rows x <= high for every part, if DAQP finds it, and the multipliers."""
    try:
        import daqp
    except ImportError:
        raise Unavailable("several constraints in one proximal step need the package daqp: pip install 'bridle[qp]'") from None
    rows = np.vstack([part[0] for part in parts])
    low = np.concatenate([np.full(len(part[0]), -FAR) if part[1] is None else part[1] for part in parts])
    high = np.concatenate([np.full(len(part[0]), FAR) if part[2] is None else part[2] for part in parts])
    sense = np.where(low == high, 5, 0).astype(np.int32)
    exact: Any = {"primal_tol": 1e-12, "dual_tol": 1e-12, "eta_prox": 1e-13, "eps_prox": eps_prox, "iter_limit": 10_000}
    x, _, flag, info = daqp.solve(H, f, np.ascontiguousarray(rows), high, low, sense, **exact)
    return (x if flag >= 1 else None), info["lam"]


def _by_dual(domain: Any, v: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray, alpha: float, joint: bool) -> np.ndarray:
    """The same over any domain: the dual over 0 <= s <= c (or s >= 0, sum s <= c) by accelerated gradient ascent with restarts."""
    lengths = np.sqrt((A * A).sum(axis=1))
    scale = np.full(len(A), lengths.max() or 1.0) if joint else np.where(lengths > 0.0, lengths, 1.0)
    unit, level, most = A / scale[:, None], b / scale, (c * scale[0] if joint else c * scale) / (2.0 * alpha)
    step = 1.0 / max(float(np.linalg.norm(unit, 2)) ** 2, 1e-300)

    def feasible(s: np.ndarray) -> np.ndarray:
        s = np.maximum(s, 0.0)
        if not joint:
            return np.asarray(np.minimum(s, most))
        return np.asarray(s if s.sum() <= most[0] else SimplexSet(float(most[0]), s).project(s))

    s = ahead = np.zeros(len(A))
    weight, tolerance = 1.0, 1e-14 * (domain.diameter() + float(norm(domain.center())))
    for _ in range(50_000):
        following = feasible(ahead + step * (unit @ domain.project(v - ahead @ unit) - level))
        moved = following - ahead
        if (abs(moved) <= step * tolerance + 4e-16 * abs(following)).all():
            return np.asarray(domain.project(v - following @ unit))
        if moved @ (following - s) < 0.0:
            weight = 1.0
        heavier = 0.5 * (1.0 + (1.0 + 4.0 * weight * weight) ** 0.5)
        ahead, s, weight = feasible(following + (weight - 1.0) / heavier * (following - s)), following, heavier
    if abs(moved).max() > 1e5 * step * tolerance:
        raise InputError("no proximal step was found: the constraints, their weights and the costs are too far apart in size")
    return np.asarray(domain.project(v - s @ unit))


# --- convex functions -----------------------------------------------------------------------------------------------------------------


def hinge_of(domain: Any, v: np.ndarray, g: Any, c: float, alpha: float) -> np.ndarray:
    """The x of the domain with the least  alpha |x - v|^2 + c g(x)^+  for a convex g: the root of g(x(s)) in the multiplier s.

    >>> import bridle
    >>> hinge_of(bridle.Ball(2), np.array([0.8, 0.0]), bridle.Quadratic(2.0, center=[0.0, 0.0], offset=-0.25), 1e9, 1.0).round(9)
    array([0.5, 0. ])
    """
    if isinstance(g, AffineFunction):
        return np.asarray(hinge(domain, v, g.a, -g.b, c, alpha))
    x = np.asarray(domain.project(v))
    value, slope = float(g.value(x)), float(norm(g.grad(x)))
    if value <= 0.0 or c == 0.0:
        return x

    def at(s: float) -> np.ndarray:
        nonlocal x
        x = weighted(domain, v, [(s, g)], alpha, x)  # from the last point on: they are near one another
        return x

    start = min(c, 2.0 * alpha * value / (slope * slope or 1.0))
    s = _root(lambda s: float(g.value(at(s))), start, c)
    return at(s)


def weighted(domain: Any, v: np.ndarray, terms: list[tuple[float, Any]], alpha: float, start: np.ndarray | None = None) -> np.ndarray:
    """The x of the domain with the least  alpha |x - v|^2 + sum_i w_i g_i(x) , for weights w_i >= 0 and convex g_i.

    Affine and equally curved functions are completed to one square; what is left is minimised by accelerated projected gradients, for which
    it must be differentiable.

    >>> import bridle
    >>> weighted(bridle.Ball(1, radius=9.0), np.zeros(1), [(2.0, bridle.Affine([1.0])), (1.0, bridle.Quadratic(2.0, center=[4.0]))], 1.0)
    array([1.5])
    """
    pull, push, rest = alpha, alpha * v, []
    for w, g in terms:
        if isinstance(g, AffineFunction):
            push = push - 0.5 * w * g.a
        elif isinstance(g, RoundQuadratic):
            pull, push = pull + 0.5 * w * g.curvature, push + 0.5 * w * (g.curvature * g.c - g.a)
        elif w > 0.0:
            rest.append((w, g))
    middle = push / pull
    if not rest:
        return np.asarray(domain.project(middle))

    def cost(x: np.ndarray) -> float:
        away = x - middle
        return pull * float(away @ away) + sum(w * float(g.value(x)) for w, g in rest)

    def slope(x: np.ndarray) -> np.ndarray:
        return np.asarray(2.0 * pull * (x - middle) + sum(w * np.asarray(g.grad(x)) for w, g in rest))

    x = before = np.asarray(domain.project(middle if start is None else start))
    ahead, curvature, weight = x, 2.0 * pull, 1.0
    tolerance = 1e-13 * (domain.diameter() + float(norm(domain.center())))
    for _ in range(20_000):
        grad = slope(ahead)
        here = cost(ahead)
        while True:
            x = np.asarray(domain.project(ahead - grad / curvature))
            move = x - ahead
            room = 1e-14 * (abs(here) + abs(float(grad @ move)))
            if cost(x) <= here + float(grad @ move) + 0.5 * curvature * float(move @ move) + room:
                break
            curvature *= 2.0
            if curvature > 1e20 * pull:
                raise RuntimeError("a proximal step on a convex function did not settle: is it differentiable?")
        # The objective is 2 pull-strongly convex, so this bounds the distance to the answer.
        if curvature / pull * float(norm(move)) <= tolerance or float(norm(move)) <= 1e-3 * tolerance:
            return x
        if float(move @ (x - before)) < 0.0:
            weight = 1.0
        heavier = 0.5 * (1.0 + (1.0 + 4.0 * weight * weight) ** 0.5)
        ahead, before, weight = x + (weight - 1.0) / heavier * (x - before), x, heavier
    if curvature / pull * float(norm(move)) > 1e-9 * (domain.diameter() + float(norm(domain.center()))):
        raise RuntimeError("a proximal step on a convex function did not settle: is it differentiable?")
    return x


def _root(falling: Callable[[float], float], start: float, most: float = np.inf) -> float:
    """The s in [0, most] where a non-increasing function, positive at 0, reaches zero; `most` where it does not."""
    from scipy.optimize import brentq

    low, high = 0.0, start
    while falling(high) > 0.0:
        if high >= most:
            return most
        low, high = high, min(8.0 * high, most)
        if high > 1e300:
            raise RuntimeError("the multiplier of a proximal step is not bounded")
    return float(brentq(falling, low, high, xtol=1e-300, rtol=8.9e-16, maxiter=200, disp=False))


# --- what a policy holds: the step for one round's constraints --------------------------------------------------------------------------


class OneHinge(NamedTuple):
    """One constraint, read as affine from its value and gradient at the decision: exact where it is affine, else a cutting plane."""

    domain: Any

    def step(self, feedback: Feedback, v: Array, c: Array, alpha: Array) -> Array:
        """The proximal step from v, for one weight c."""
        g, a = ops.worst(feedback.g, feedback.dg)
        return hinge(self.domain, v, a, dot(a, feedback.x) - g, c, alpha)

    def sum(self, feedback: Feedback, v: Array, c: Array, alpha: Array) -> Array:
        """The proximal step from v, for a weight of each constraint."""
        return self.step(feedback, v, ops.first(c) if c.ndim == 1 else c, alpha)

    def values(self, feedback: Feedback, x: Array) -> Array:
        """The round's constraints at another decision."""
        return _affine_values(feedback, x)


class SumOfHinges(NamedTuple):
    """Several constraints, read as affine; a quadratic program each round, so it runs on the Python engine only."""

    domain: Any

    @property
    def compiled(self) -> bool:
        """No: it calls a solver."""
        return False

    def step(self, feedback: Feedback, v: Array, c: Array, alpha: Array) -> Array:
        """The proximal step from v on c times the positive part of the largest constraint."""
        return self._solve(feedback, v, c, alpha, True)

    def sum(self, feedback: Feedback, v: Array, c: Array, alpha: Array) -> Array:
        """The proximal step from v on the sum of the constraints' positive parts, weighted by c."""
        return self._solve(feedback, v, c, alpha, False)

    def values(self, feedback: Feedback, x: Array) -> Array:
        return _affine_values(feedback, x)

    def _solve(self, feedback: Feedback, v: Array, c: Array, alpha: Array, joint: bool) -> Array:
        level = (feedback.dg @ feedback.x[..., None])[..., 0] - feedback.g
        if v.ndim == 1:
            return hinges(self.domain, v, feedback.dg, level, c, alpha, joint)
        rows = np.broadcast_to(feedback.dg, (*level.shape, v.shape[-1]))
        prices, alphas = np.broadcast_to(c, (len(v), np.shape(c)[-1] if np.ndim(c) else 1)), np.broadcast_to(alpha, (len(v), 1))
        each = zip(v, rows, level, prices, alphas, strict=True)
        return np.array([hinges(self.domain, p, A, b, w[0] if joint else w, float(s[0]), joint) for p, A, b, w, s in each])


class FunctionHinge(NamedTuple):
    """The constraints as the functions they are, from the round itself: one convex function or several affine ones; Python engine only."""

    domain: Any

    @property
    def compiled(self) -> bool:
        """No: it calls solvers and the functions."""
        return False

    def step(self, feedback: Feedback, v: Array, c: Array, alpha: Array) -> Array:
        return self._solve(feedback, v, c, alpha, True)

    def sum(self, feedback: Feedback, v: Array, c: Array, alpha: Array) -> Array:
        return self._solve(feedback, v, c, alpha, False)

    def values(self, feedback: Feedback, x: Array) -> Array:
        return np.array([float(g.value(x)) for g in constraints_of(feedback)])

    def linear(self, feedback: Feedback, v: Array, w: Array, alpha: Array) -> Array:
        """The proximal step from v on the sum of the functions themselves, weighted by w."""
        return weighted(self.domain, v, list(zip(w.tolist(), constraints_of(feedback), strict=True)), alpha)

    def _solve(self, feedback: Feedback, v: Array, c: Array, alpha: Array, joint: bool) -> Array:
        functions = constraints_of(feedback)
        if len(functions) == 1:
            return hinge_of(self.domain, v, functions[0], float(np.ravel(c)[0]), alpha)
        if not all(isinstance(g, AffineFunction) for g in functions):
            raise InputError(
                "form='function' takes several constraints only where all are affine: give their maximum as one differentiable function"
            )
        A, b = np.array([g.a for g in functions]), -np.array([g.b for g in functions])
        return hinges(self.domain, v, A, b, c, alpha, joint)


def prox_for(domain: Any, form: str, constraints: int) -> Any:
    """The record for a policy with this `form` ("affine" or "function") and number of constraints."""
    if form not in ("affine", "function"):
        raise validate.unknown("form", form, ("affine", "function"))
    if form == "function":
        return FunctionHinge(domain)
    return OneHinge(domain) if constraints == 1 else SumOfHinges(domain)


def constraints_of(feedback: Feedback) -> list[Any]:
    """The round's constraints one by one."""
    if feedback.round is None:
        raise InputError("form='function' needs the functions themselves, and this feedback comes without its round")
    if feedback.x.ndim != 1:
        raise InputError("form='function' plays one run at a time; seeds, sweeps and starting points must be single")
    found: list[Any] = []
    for g in feedback.round.constraints:
        if not getattr(g, "several", False):
            found.append(g)
        elif hasattr(g, "A"):
            found += [AffineFunction(a, float(b)) for a, b in zip(g.A, g.b, strict=True)]
        else:
            raise InputError(f"form='function' needs constraints one by one, not {type(g).__name__}")
    return found


def _affine_values(feedback: Feedback, x: Array) -> Array:
    away = x - feedback.x
    return feedback.g + (feedback.dg @ away if away.ndim == 1 else (feedback.dg @ away[..., None])[..., 0])
