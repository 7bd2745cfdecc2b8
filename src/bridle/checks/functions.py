"""What the functions of a round must satisfy: values and gradients that fit together, and convexity."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bridle import validate
from bridle.core import Domain
from bridle.ops import Array
from bridle.session.feedback import evaluate
from bridle.session.session import refuse_other_constraints

STEP = 1e-3
"""How far apart the points are between which slopes are taken, as a part of a segment's length."""

CONVEX, SMOOTH = 1e-6, 1e-4
"""How exact slopes are, relative to their size: on a convex function a gradient lies between them; on others only almost."""


def check_functions(
    cost: object, constraints: Iterable[object], domain: Domain, seed: int = 0, segments: int = 200, tolerance: float = 1e-9
) -> list[str]:
    """Try to refute that your cost and constraints are what a session needs, and list what was checked.

    On random segments of the domain, for each function: values and gradients are finite and of the same shapes everywhere; asked twice it
    answers the same; its gradient lies between the slopes to both sides; it is never above a chord or below a tangent. A function that says
    that it is not convex (``convex=False``) is not asked to be.

    Returns what was checked; what did not apply starts with "skipped". Raises `AssertionError`: it is refuted; the
    message says how and where.

    Parameters
    ----------
    cost : Function, tuple or callable
        The cost, in any form that `Session.step` takes.
    constraints : iterable of Function, tuple or callable
        The constraints, likewise; a `Function` may hold several.
    domain : Domain
        Where decisions are made. The functions are asked nowhere else.
    seed : int, default 0
        The seed of the points, 0 or above.
    segments : int, default 200
        How many segments are tried, 1 or above; each function is asked six times on each.
    tolerance : float, default 1e-9
        How exact values are, relative to their size: 1e-6 for single precision, for instance.

    Examples
    --------
    >>> import bridle
    >>> cost = (lambda x: x @ x, lambda x: 2.0 * x)
    >>> check_functions(cost, [bridle.Affine([1.0, 0.0], -0.5)], bridle.Ball(2))
    ['cost: shapes, finiteness, repetition, gradients, convexity', 'constraints[0]: shapes, finiteness, repetition, gradients, convexity']
    >>> check_functions((lambda x: x @ x, lambda x: x), [], bridle.Ball(2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: cost: its gradient at array([...]) has the slope 0.062365 in a direction in which its values rise by ...
    """
    refuse_other_constraints(constraints)
    if not isinstance(domain, Domain):
        raise validate.refused("domain must be a domain, such as bridle.Ball(2)", domain)
    ends = _ends(domain, validate.whole("seed", seed, 0), validate.whole("segments", segments))
    exact = validate.positive("tolerance", tolerance)
    report = []
    for name, function in [("cost", cost), *((f"constraints[{i}]", each) for i, each in enumerate(constraints))]:
        convex = bool(getattr(function, "convex", True))
        shape = _answer(name, function, ends[0][0])[0].shape
        for a, b, at in ends:
            _check_segment(name, function, a, b, at, shape, convex, exact)
        report.append(f"{name}: shapes, finiteness, repetition, gradients{', convexity' if convex else ''}")
        if not convex:
            report.append(f"skipped convexity of {name}: it says that it is not convex")
    return report


def _ends(domain: Domain, seed: int, segments: int) -> list[tuple[Array, Array, float]]:
    """Two points of the domain each, of its inside, boundary and corners, and where between them to look."""
    rng, center = np.random.default_rng(seed), domain.center()
    shape = (2 * segments, domain.dim)
    far = domain.project(center + domain.diameter() * rng.standard_normal(shape) / np.sqrt(domain.dim))
    corners = domain.linear_argmin(rng.standard_normal(shape))
    points = np.where(rng.random((2 * segments, 1)) < 0.25, corners, far)
    points = center + np.where(rng.random((2 * segments, 1)) < 0.5, 1.0, rng.random((2 * segments, 1))) * (points - center)
    return list(zip(points[::2], points[1::2], rng.uniform(0.1, 0.9, segments).tolist(), strict=True))


def _answer(name: str, function: object, x: Array) -> tuple[Array, Array]:
    """Value and gradient at x; that there are none is a failure."""
    try:
        return evaluate(name, function, x, several=name != "cost")
    except Exception as error:
        raise AssertionError(f"{name}: at {validate.show(x)}: {error}") from error


def _check_segment(name: str, function: object, a: Array, b: Array, at: float, shape: tuple[int, ...], convex: bool, exact: float) -> None:
    """Check a function on the segment from a to b, a part `at` of the way along it."""
    way, x = b - a, a + at * (b - a)
    points = [a, x - STEP * way, x, x + STEP * way, b, x]
    answers = [_answer(name, function, point) for point in points]
    for point, (value, _) in zip(points, answers, strict=True):
        if value.shape != shape:
            raise AssertionError(f"{name}: its value has shape {value.shape} at {validate.show(point)}, and {shape} elsewhere")
    values = np.array([value.reshape(-1) for value, _ in answers])
    tangent, slope = (answers[i][1].reshape(-1, len(x)) @ way for i in (0, 2))
    first, before, middle, after, last, again = values
    size = 4.0 * exact * np.abs(values).max(axis=0)

    def refute(wrong: Array, message: str, *numbers: Array) -> None:
        for i in np.flatnonzero(wrong)[:1]:
            said = message.format(validate.show(x), *(f"{float(each[i]):.6g}" for each in numbers))
            raise AssertionError(f"{name}[{i}]: {said}" if shape else f"{name}: {said}")

    refute(np.abs(again - middle) > size, "asked twice at {}, it gives {} and {}: it is noisy", middle, again)
    if convex:
        for chord in ((1.0 - at) * first + at * last, 0.5 * (before + after)):
            refute(middle > chord + size, "at {} its value is {}, above its chord there, {}: it is not convex", middle, chord)
    left, right = (middle - before) / STEP, (after - middle) / STEP
    low, high = np.minimum(left, right), np.maximum(left, right)
    allowed = size / STEP + (CONVEX if convex else SMOOTH) * (np.abs(low) + np.abs(high) + np.abs(slope))
    wrong = (slope < low - allowed) | (slope > high + allowed)
    refute(wrong, "its gradient at {} has the slope {} in a direction in which its values rise by {} to {}", slope, low, high)
    if convex:
        below = last < first + tangent - size - CONVEX * np.abs(tangent)
        refute(below, "on the segment through {} its gradient at one end says {} or more at the other, not {}", first + tangent, last)
