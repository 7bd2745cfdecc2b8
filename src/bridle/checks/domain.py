"""What every domain must satisfy."""

from __future__ import annotations

import numpy as np

from bridle import records
from bridle.core import Domain
from bridle.ops import Array, Scalar
from bridle.validate import show


def check_domain(domain: Domain, seed: int = 0, points: int = 200, tolerance: float | None = None) -> None:
    """Try to refute that a domain is what it says.

    At random, far, tied, boundary and interior points: its projection must land inside, be idempotent, leave interior points alone bit
    for bit, be non-expansive, and satisfy the variational inequality that makes it *the* projection. A batch must give what a loop gives.
    `linear_argmin` must be in the set and attain `linear_min`. No two points may be farther apart than the diameter.

    Raises `AssertionError`: it is refuted; the message says how.

    Parameters
    ----------
    domain : Domain
        What is checked.
    seed : int, default 0
        The seed of the points, 0 or above.
    points : int, default 200
        How many points are tried, 1 or above.
    tolerance : float, optional
        How exact it must be, relative to the diameter plus the length of the centre (and of a point that is projected). Default: 1e-12,
        some
        thousand roundings, or 1e-9 where a solver is called.

    Examples
    --------
    >>> from bridle.domains import Simplex
    >>> check_domain(Simplex(3))
    """
    solver = any(not getattr(node, "compiled", True) for node in (domain, *records.nodes(domain)))
    tol = tolerance if tolerance is not None else 1e-9 if solver else 1e-12
    rng = np.random.default_rng(seed)

    d, center, diameter = domain.dim, domain.center(), domain.diameter()
    _require(isinstance(d, int) and d >= 1, f"dim must be a whole number above 0, not {show(d)}")
    _require(np.shape(center) == (d,), f"center() must have shape ({d},), not {np.shape(center)}")
    _require(isinstance(diameter, float) and 0.0 <= diameter < np.inf, f"diameter() must be a finite float, not {show(diameter)}")
    _require(domain.contains(center, tol), f"center() must be in the set, and {show(center)} is not")
    center += 1.0
    center = domain.center()
    _require(domain.contains(center, tol), "center() must return a fresh copy: changing what it returned changed the domain")
    scale = diameter + float(np.linalg.norm(center))
    _require(scale > 0.0, "a domain must not be the origin alone")
    ray = np.ones(d) / np.sqrt(d)
    _require(not domain.contains(center + (diameter + scale) * ray), "contains() must reject a point farther away than the diameter")

    # Projections: in a batch, one by one, and on two leading axes.
    v = _sample(rng, center, diameter or scale, scale, points)
    before = v.copy()
    p = domain.project(v)
    _require(np.shape(p) == v.shape, f"project must keep the shape {v.shape}, not change it to {np.shape(p)}")
    _require(np.array_equal(v, before), "project must not change its argument")
    reach = scale + np.linalg.norm(v, axis=1)
    one_by_one = np.array([domain.project(row) for row in v])
    _below(abs(one_by_one - p).max(axis=1), tol * reach, v, "project of a batch must equal project of each row")
    _below(abs(domain.project(v[None, :2]) - p[None, :2]).max(axis=(0, 2)), tol * reach[:2], v, "project must allow any leading axes")
    for a, b in zip(v, p, strict=True):
        _require(domain.contains(b, tol), f"project must land in the set: {show(a)} went to {show(b)}")
    _below(np.linalg.norm(domain.project(p) - p, axis=1), tol * scale, p, "project must leave its own results where they are")
    inner = center + rng.uniform(0.0, 0.9, (len(p), 1)) * (p - center)
    _below(np.linalg.norm(domain.project(inner) - inner, axis=1), tol * scale, inner, "project must leave points of the set where they are")
    for a in inner * (1.0 + 1e-9 * rng.normal(size=inner.shape)):  # all digits in use: sums with the centre would come back from anything
        if domain.contains(a, -1e-6):  # well inside; no point of a flat set is
            b = domain.project(a)
            _require(np.array_equal(a, b), f"project must return interior points bit for bit: {show(a)} became {show(b)}")

    # Linear minimisation.
    w = np.vstack([rng.normal(size=(points, d)), np.sign(rng.normal(size=(points // 4, d))), np.eye(d), -np.eye(d), np.zeros((1, d))])
    corner, least = domain.linear_argmin(w), np.asarray(domain.linear_min(w))
    _require(np.shape(corner) == w.shape, f"linear_argmin must keep the shape {w.shape}, not change it to {np.shape(corner)}")
    _require(np.shape(least) == (len(w), 1), f"linear_min must have shape ({len(w)}, 1) for a batch, not {np.shape(least)}")
    lengths = np.linalg.norm(w, axis=1)
    for a, b in zip(w, corner, strict=True):
        _require(domain.contains(b, tol), f"linear_argmin must be in the set: for {show(a)} it is {show(b)}")
    _below(abs((w * corner).sum(axis=1) - least[:, 0]), tol * lengths * scale, w, "linear_argmin must attain linear_min")
    single = np.array([float(domain.linear_min(row)) for row in w[:20]])
    _below(abs(single - least[:20, 0]), tol * lengths[:20] * scale, w, "linear_min of a batch must equal linear_min of each row")
    witnesses = np.vstack([p, inner, corner, center])
    _below(
        least[:, 0] - (w @ witnesses.T).min(axis=1), tol * lengths * scale, w, "linear_min must be no more than <v, x> anywhere in the set"
    )

    # The variational inequality: at its worst point, and at all others that are known, in case linear_argmin is wrong too.
    r = v - p
    slack = tol * np.linalg.norm(r, axis=1) * reach
    gaps = np.maximum((r * (domain.linear_argmin(-r) - p)).sum(axis=1), (r @ witnesses.T - (r * p).sum(axis=1, keepdims=True)).max(axis=1))
    _below(gaps, slack, v, "project must return the nearest point: <v - Pv, y - Pv> is above 0 for some y of the set")

    other = rng.permutation(len(v))
    growth = np.linalg.norm(p - p[other], axis=1) - np.linalg.norm(v - v[other], axis=1)
    _below(growth, tol * (reach + reach[other]), v, "project must not move points apart")
    some = witnesses[rng.permutation(len(witnesses))[:400]]
    widest = max(float(np.linalg.norm(some - y, axis=1).max()) for y in some)
    _require(widest <= diameter + tol * scale, f"diameter() is {diameter!r}, but two points of the set are {widest!r} apart")


def _sample(rng: np.random.Generator, center: Array, width: float, scale: float, points: int) -> Array:
    """Points around a set: near, at its size, far, a million times its scale away, and with many equal coordinates."""
    d = len(center)
    rays = rng.normal(size=(points, d)) / np.sqrt(d)
    lengths = np.resize([0.1 * width, 0.5 * width, width, 10.0 * width, 1e6 * scale], (points, 1))
    tied = np.resize([1.0, width, 1e6 * scale], (points // 4, 1)) * rng.integers(-1, 2, (points // 4, d))
    level = np.outer([0.0, width, -width, scale, 1e6 * scale, -1e6 * scale], np.ones(d))
    return np.vstack([center + lengths * rays, center + tied, tied, level, center + level])


def _require(holds: object, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _below(values: Array, limits: Scalar, at: Array, message: str) -> None:
    """Require values[i] <= limits[i] for each i (so no NaNs), and say at which point that fails worst."""
    limits = np.broadcast_to(limits, values.shape)
    wrong = ~(values <= limits)
    if wrong.any():
        i = int(np.argmax(np.where(wrong, np.nan_to_num(values - limits, nan=np.inf), -np.inf)))
        raise AssertionError(f"{message}; off by {values[i]:.3g}, where {limits[i]:.3g} is rounding, at {show(at[i])}")
