"""Proximal steps on convex functions that are known by their values and gradients; on the Python engine only.

`weighted` is the step on a weighted sum of functions, `hinge_of` on the positive part of one, by a search for its one multiplier, and
`hinges_of` on the positive parts of several, by their dual (`prox_dual`); `with_multipliers` adds the proof of what it found. The
functions must be differentiable, except that a positive part takes a maximum of such ones apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bridle.core import Domain, Function
from bridle.functions import AffineFunction, MaximumOf, QuadraticForm, RoundQuadratic
from bridle.ops import Array, Scalar, norm
from bridle.solvers.hinge_prox import hinge
from bridle.solvers.prox_dual import PROX_ACCURACY, ascend

UNSETTLED = "a proximal step on a convex function did not settle: is it differentiable, and of a size with the others?"


def weighted(
    domain: Domain,
    v: Array,
    terms: list[tuple[float, Function]],
    alpha: float,
    start: Array | None = None,
    accuracy: float = PROX_ACCURACY,
) -> Array:
    """The x of the domain with the least  alpha |x - v|^2 + sum_i w_i g_i(x) , for weights w_i >= 0 and convex g_i.

    Affine and quadratic functions are summed up to one; where nothing else is left and the domain is not in the way, that is a system of
    linear equations. Else it is minimised by accelerated projected gradients, up to `accuracy` times the size of the domain.

    >>> import bridle
    >>> weighted(bridle.Ball(1, radius=9.0), np.zeros(1), [(2.0, bridle.Affine([1.0])), (1.0, bridle.Quadratic(2.0, center=[4.0]))], 1.0)
    array([1.5])
    """
    pull: Scalar = alpha
    form: Scalar = 0.0
    push, rest = alpha * v, []
    for w, g in terms:
        if isinstance(g, AffineFunction):
            push = push - 0.5 * w * g.a
        elif isinstance(g, RoundQuadratic):
            pull, push = pull + 0.5 * w * g.curvature, push + 0.5 * w * (g.curvature * g.c - g.a)
        elif isinstance(g, QuadraticForm):
            form, push = form + 0.5 * w * g.P, push - 0.5 * w * g.a
        elif w > 0.0:
            rest.append((w, g))
    middle = push / pull
    bent = isinstance(form, np.ndarray)
    if not rest:
        free = np.asarray(np.linalg.solve(pull * np.eye(len(v)) + form, push), dtype=float) if bent else middle
        onto = np.asarray(domain.project(free))
        if not bent or (onto == free).all():
            return onto

    def slope(x: Array) -> Array:
        grad = 2.0 * (pull * (x - middle) + (form @ x if bent else 0.0))
        for w, g in rest:
            grad = grad + w * np.asarray(g.grad(x))
        return np.asarray(grad)

    x = before = np.asarray(domain.project(middle if start is None else start))
    ahead, curvature, weight = x, 2.0 * pull, 1.0
    size = _size(domain)
    tolerance = accuracy * size
    for _ in range(20_000):
        grad = slope(ahead)
        while True:
            x = np.asarray(domain.project(ahead - grad / curvature))
            move = x - ahead
            change = slope(x) - grad
            length = float(norm(move))
            if float(change @ move) <= (1.0 + 1e-9) * curvature * length * length + 1e-14 * float(norm(grad)) * length:
                break
            curvature *= 2.0
            if curvature > 1e20 * pull:
                raise RuntimeError(UNSETTLED)
        # By strong monotonicity no more than this is left to the answer.
        far = 0.5 * (curvature * length + float(norm(change))) / pull
        if far <= tolerance or length <= 1e-3 * PROX_ACCURACY * size:
            break
        if float(move @ (x - before)) < 0.0:
            weight = 1.0
        heavier = 0.5 * (1.0 + (1.0 + 4.0 * weight * weight) ** 0.5)
        ahead, before, weight = x + (weight - 1.0) / heavier * (x - before), x, heavier
    if far > max(tolerance, 1e-9 * size):
        raise RuntimeError(UNSETTLED)
    return x


def hinge_of(domain: Domain, v: Array, g: Function, c: float, alpha: float) -> Array:
    """The x of the domain with the least  alpha |x - v|^2 + c g(x)^+  for a convex g: the root of g(x(s)) in the multiplier s.

    >>> import bridle
    >>> hinge_of(bridle.Ball(2), np.array([0.8, 0.0]), bridle.Quadratic(2.0, center=[0.0, 0.0], offset=-0.25), 1e9, 1.0).round(9)
    array([0.5, 0. ])
    """
    if isinstance(g, AffineFunction):
        return np.asarray(hinge(domain, v, g.a, -g.b, c, alpha))
    if isinstance(g, MaximumOf):
        return hinges_of(domain, v, [g], c, alpha, joint=True)
    x = np.asarray(domain.project(v))
    value, slope = float(g.value(x)), float(norm(g.grad(x)))
    if value <= 0.0 or c == 0.0:
        return x

    def at(s: float) -> Array:
        nonlocal x
        x = weighted(domain, v, [(s, g)], alpha, x)  # from the last point on: they are near one another
        return x

    start = min(c, 2.0 * alpha * value / (slope * slope or 1.0))
    s = _root(lambda s: float(g.value(at(s))), start, c)
    return at(s)


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


def hinges_of(domain: Domain, v: Array, functions: Sequence[Function], c: ArrayLike, alpha: float, joint: bool = False) -> Array:
    """The x of the domain with the least  alpha |x - v|^2 + sum_i c_i g_i(x)^+ , or + c (max_i g_i(x))^+ where `joint`, for convex g_i.

    >>> import bridle
    >>> bowls = [bridle.Quadratic(2.0, center=[0.0, 0.0], offset=-0.25), bridle.Quadratic(2.0, center=[0.0, 1.0], offset=-1.0)]
    >>> hinges_of(bridle.Ball(2), np.array([0.8, 0.0]), bowls, [1e3, 1e3], 1.0).round(9)
    array([0.48412292, 0.125     ])
    """
    return with_multipliers(domain, v, functions, c, alpha, joint)[0]


def with_multipliers(
    domain: Domain, v: Array, functions: Sequence[Function], c: ArrayLike, alpha: float, joint: bool = False
) -> tuple[Array, Array]:
    """The answer x of `hinges_of`, and the multipliers s that prove it, one for each function (the members of a maximum one by one).

    The constraints at x fit s up to a `shift` of rounding, and x is within 1e-9 times the domain's size of the only minimiser of
    alpha |x - v|^2 + <s, g(x)>; where that cannot be had it is an InputError.
    """
    parts, groups = _taken_apart(functions, joint)
    most, size = np.asarray(c, dtype=float).reshape(-1), _size(domain)
    some = most @ groups > 0.0
    members = [g for g, counts in zip(parts, some, strict=True) if counts]

    def at(s: Array, near: Array | None, accuracy: float) -> tuple[Array, Array, Array]:
        x = weighted(domain, v, list(zip(s.tolist(), members, strict=True)), alpha, near, accuracy)
        return x, np.array([float(g.value(x)) for g in members]), np.array([float(norm(g.grad(x))) for g in members])

    x, s = np.asarray(domain.project(v)), np.zeros(len(parts))
    values, rows = np.array([float(g.value(x)) for g in members]), np.array([g.grad(x) for g in members])
    if (values <= 0.0).all():
        return x, s
    # Where nothing is curved and the domain is not in the way, this is the dual's curvature. Elsewhere it has less, but a constraint that
    # happens to be flat here has a slope of the order of its value over the domain's size somewhere.
    Q = rows @ rows.T / (2.0 * alpha)
    guess = Q + np.diag(1e-9 * np.diag(Q) + 0.5 * (values / size) ** 2 / alpha + 1e-200)
    x, s[some] = ascend(at, guess, groups[most > 0.0][:, some], most[most > 0.0], size)
    return x, s


def _taken_apart(functions: Sequence[Function], joint: bool) -> tuple[list[Function], Array]:
    """The functions, those of a maximum one by one; and a row for each positive part, 1 for the functions of whose maximum it is taken."""
    members: list[Function] = []
    owners: list[int] = []
    for i, g in enumerate(functions):
        parts = _taken_apart(list(g.functions), True)[0] if isinstance(g, MaximumOf) else [g]
        members += parts
        owners += [0 if joint else i] * len(parts)
    return members, (np.arange(1 if joint else len(functions))[:, None] == owners) * 1.0


def _size(domain: Domain) -> float:
    return float(domain.diameter() + norm(domain.center()))
