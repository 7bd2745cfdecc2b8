"""Problems given as arrays in an .npz: costs and constraints as sequences of affine or quadratic functions.

Every function is (1/2) (x - center)' curvature (x - center) + <linear, x> + offset. The constants are computed from the arrays and the
domain. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from bridle import domains, records, validate
from bridle.core import Constants, Domain, Function, InputError, Round
from bridle.domains.facets import corners
from bridle.domains.polyhedron import PolyhedronSet
from bridle.functions import AffineFunction, AffineRows, QuadraticForm, RoundQuadratic
from bridle.ops import Array
from bridle.problems.base import Problem
from bridle.problems.instance import reach
from bridle.problems.own_tables import read_arrays
from bridle.problems.recorded import Recorded
from bridle.records import Arrays
from bridle.solvers import hindsight
from bridle.solvers.block_stream import NoComparator

KEYS = {
    "domain": "ball, box, simplex, l1 or polyhedron",
    "radius": "of a ball or l1 ball (default 1)",
    "center": "(d,), of a ball or l1 ball (default 0)",
    "low": "() or (d,), of a box",
    "high": "() or (d,), of a box",
    "mass": "of a simplex (default 1)",
    "A": "(m, d), of a polyhedron A x <= b",
    "b": "(m,), of a polyhedron A x <= b",
    "cost_linear": "(T, d)",
    "cost_offset": "(T,) (default 0)",
    "cost_curvature": "(T,): numbers times the identity; or (T, d, d): matrices (default 0)",
    "cost_center": "(T, d) (default 0)",
    "constraint_linear": "(T, k, d), or (T, d) for one constraint",
    "constraint_offset": "(T, k), or (T,) (default 0)",
    "constraint_curvature": "(T, k) or (T, k, d, d); or (T,) or (T, d, d) (default 0)",
    "constraint_center": "(T, k, d), or (T, d) (default 0)",
    "feasible": "(d,), an action that satisfies every constraint (default: one is searched for)",
    "rounds": "T, where no array says it",
    "about": "what the problem is, in words",
}
"""The arrays a file may hold. A first axis of length 1 in place of T: the same in every round."""

TEXT = ("domain", "about")
"""The keys whose values are text."""

BELONGS = {"ball": ("radius", "center"), "l1": ("radius", "center"), "box": ("low", "high"), "simplex": ("mass",), "polyhedron": ("A", "b")}
"""The domains a file may name, and the keys that each takes."""

Functions: TypeAlias = AffineFunction | AffineRows | RoundQuadratic | QuadraticForm
"""A sequence of functions, or of k at once: what the arrays of a file become."""


class Contents(NamedTuple):
    """What a file holds, by key."""

    text: dict[str, str]
    arrays: Arrays


def factory(path: str) -> Callable[..., Problem]:
    """The factory of the problem that the arrays in a file are."""
    about = os.stat(path)
    contents, table, domain, T = _load(path, os.path.abspath(path), about.st_mtime_ns, about.st_size)

    def make(horizon: int | None = None, seed: int = 0) -> Problem:
        rounds = T if horizon is None else horizon
        if rounds > T:
            raise InputError(f"{path}: horizon must be at most {T}, the rounds it holds, not {rounds}")
        first = 0 if seed == 0 else int(np.random.default_rng([seed, 1]).integers(T))
        stream = Recorded(table, first)
        try:
            constants = _constants(cast(Round, stream.replay(0, rounds)), domain, contents.arrays.get("feasible"))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        return Problem(domain, stream, constants | {"rounds": T}, path, {"horizon": rounds, "seed": seed})

    make.__doc__ = contents.text.get("about", f"The {T} rounds recorded in {path}.")
    return make


@lru_cache(maxsize=2)
def _load(path: str, *version: object) -> tuple[Contents, Round, Domain, int]:
    """What the file holds, its rounds, its domain and how many rounds there are; read once as long as the file stays the same."""
    contents = _read(path)
    try:
        return contents, *_table(contents)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read(path: str) -> Contents:
    """The arrays of the file: text as text, the rest as finite numbers."""
    raw = read_arrays(path, path, lambda key: validate.one_of(f"array of {path}:", key, KEYS))
    contents = Contents({}, {})
    for key, value in raw.items():
        if key in TEXT:
            if value.dtype.kind != "U" or value.ndim:
                raise InputError(f"{path}: {key} must be text, not an array of {value.dtype} and shape {value.shape}")
            contents.text[key] = str(value)
        else:
            contents.arrays[key] = validate.array(f"{path}: {key}", value)
    return contents


def _table(contents: Contents) -> tuple[Round, Domain, int]:
    """All rounds as one, the domain, and how many rounds there are."""
    arrays = contents.arrays
    if "cost_linear" not in arrays and "cost_curvature" not in arrays:
        raise InputError("it needs cost_linear or cost_curvature")
    if "constraint_linear" not in arrays and "constraint_curvature" not in arrays:
        raise InputError("it needs constraint_linear or constraint_curvature")
    sized = [key for key in ("cost_linear", "cost_center", "constraint_linear", "constraint_center") if key in arrays]
    if not sized or arrays[sized[0]].ndim not in (2, 3):
        raise InputError(f"{sized[0] if sized else 'cost_linear'} must have shape {KEYS[sized[0] if sized else 'cost_linear']}")
    d = int(arrays[sized[0]].shape[-1])
    k = next(
        (int(v.shape[1]) for v in (arrays.get("constraint_linear"), arrays.get("constraint_center")) if v is not None and v.ndim == 3), None
    )
    lengths = {int(arrays[key].shape[0]) for key in arrays if key.startswith(("cost_", "constraint_")) and arrays[key].ndim}
    T = validate.whole("rounds", arrays["rounds"]) if "rounds" in arrays else max(lengths, default=0)
    if T < 1:
        raise InputError("it holds no rounds")
    cost = _functions(arrays, "cost_", T, d, None)
    limits = _functions(arrays, "constraint_", T, d, k)
    return Round(cost[0], limits), _domain(contents, d), T


def _functions(arrays: Arrays, kind: str, T: int, d: int, k: int | None) -> tuple[Functions, ...]:
    """The records of a sequence: one that holds all k functions where they are affine, else one for each."""
    each = () if k is None else (k,)

    def part(name: str, *shape: int) -> Array:
        """One array with all its rounds; zeros where there is none."""
        value = arrays.get(kind + name)
        if value is None:
            return np.zeros((T, *each, *shape))
        if value.ndim != 1 + len(each) + len(shape) or value.shape[1:] != (*each, *shape) or len(value) not in (1, T):
            wanted = ", ".join(["T", *map(str, (*each, *shape))]) + ("," if not (each or shape) else "")
            raise InputError(f"{kind}{name} must have shape ({wanted}) with T = {T} rounds (or 1), not {value.shape}")
        return np.array(np.broadcast_to(value, (T, *each, *shape)))

    linear, offset, center = part("linear", d), part("offset"), part("center", d)
    curvature = arrays.get(kind + "curvature")
    if curvature is None or not curvature.any():
        return (AffineFunction(linear, offset) if k is None else AffineRows(linear, offset),)
    full = curvature.ndim == 3 + len(each)
    P = part("curvature", d, d) if full else part("curvature")
    _convex(kind + "curvature", P, full)
    functions: list[Functions] = []
    for i in range(k or 1):
        p, c, a, b = (array[:, i] if k else array for array in (P, center, linear, offset))
        if full:
            turned = (p @ c[..., None])[..., 0]
            functions.append(QuadraticForm(p, a - turned, b + 0.5 * (c * turned).sum(axis=-1)))
        else:
            functions.append(RoundQuadratic(p, c, a, b))
    return tuple(functions)


def _convex(name: str, P: Array, full: bool) -> None:
    """Refuse curvatures of which one is not that of a convex function."""
    scale = max(1.0, float(abs(P).max()))
    if full and not np.allclose(P, P.swapaxes(-1, -2), rtol=1e-12, atol=1e-12 * scale):
        raise InputError(f"{name} must hold symmetric matrices")
    least = np.linalg.eigvalsh(P)[..., 0] if full else P
    if least.min() < -1e-12 * scale:
        raise InputError(
            f"{name} must be positive semidefinite: round {int(least.min(axis=tuple(range(1, least.ndim))).argmin()) + 1} is not"
        )


def _domain(contents: Contents, d: int) -> Domain:
    kind = contents.text.get("domain")
    if kind is None:
        raise InputError("it needs domain, one of " + ", ".join(BELONGS))
    validate.one_of("domain", kind, BELONGS)
    own = {key: contents.arrays[key] for keys in BELONGS.values() for key in keys if key in contents.arrays}
    for key in own:
        if key not in BELONGS[kind]:
            raise InputError(f"{key} is not for the domain {kind}, which has {' and '.join(BELONGS[kind])}")
    for key in BELONGS[kind] if kind in ("box", "polyhedron") else ():
        if key not in own:
            raise InputError(f"the domain {kind} needs {key}")
    if kind in ("ball", "l1"):
        own.setdefault("center", np.zeros(d))
    makers: dict[str, Callable[..., Domain]] = {
        "ball": domains.Ball,
        "l1": domains.L1Ball,
        "box": partial(domains.Box, dim=d),
        "simplex": partial(domains.Simplex, d),
        "polyhedron": domains.Polyhedron,
    }
    domain = makers[kind](**own)
    if domain.dim != d:
        raise InputError(f"the domain has {domain.dim} dimensions, the functions have {d}")
    if domain.diameter() == 0.0:
        raise InputError("the domain must hold more than one point")
    return domain


def _constants(stream: Round, domain: Domain, feasible: Array | None) -> Constants:
    """What is true of these rounds on this domain."""
    steepest, _, curved = _sizes(stream.cost, domain)
    sizes = [_sizes(limit, domain) for limit in stream.constraints]
    k = sum(values.shape[1] if values.ndim == 2 else 1 for _, values, _ in sizes)
    fixed = all((np.asarray(leaf) == np.asarray(leaf)[:1]).all() for limit in stream.constraints for leaf in records.leaves(limit).values())
    constants: Constants = {
        "lipschitz": float(max(slopes.max() for slopes in (steepest, *(slopes for slopes, _, _ in sizes)))),
        "diameter": float(domain.diameter()),
        "bound": float(max(values.max() for _, values, _ in sizes)),
        "modulus": max(0.0, float(curved.min())),
        "constraints": k,
        "convex": True,
        "affine": all(isinstance(limit, (AffineFunction, AffineRows)) for limit in stream.constraints),
        "time_varying": not fixed,
    }
    return constants | _feasibility(stream, domain, constants["bound"], feasible)


def _sizes(function: Function, domain: Domain) -> tuple[Array, Array, Array]:
    """For every function of a sequence, on the domain: the largest slope, the largest |value|, and the smallest curvature.

    Seen from the centre m, at most `far` away: slopes are at most |grad(m)| + top far, where `top` is the largest curvature, and values
    lie between value(m) + min <grad(m), x - m> and value(m) + max <grad(m), x - m> + top far^2 / 2. Where the domain has few corners, both
    are largest at one of them. Exact for affine functions, unless the domain is a polyhedron.
    """
    m = domain.center()
    far = reach(domain, m)
    if isinstance(function, AffineFunction):
        slopes, value, low, top = function.a, function.a @ m + function.b, np.zeros(1), np.zeros(1)
    elif isinstance(function, AffineRows):
        slopes, value, low, top = function.A, function.A @ m + function.b, np.zeros(1), np.zeros(1)
    elif isinstance(function, RoundQuadratic):
        away, curvature = m - function.c, np.asarray(function.curvature)
        slopes = curvature[:, None] * away + function.a
        value = 0.5 * curvature * (away * away).sum(axis=-1) + function.a @ m + function.b
        low = top = curvature
    else:
        function = cast(QuadraticForm, function)
        turned = function.P @ m
        slopes, value = turned + function.a, 0.5 * turned @ m + function.a @ m + function.b
        eigenvalues = np.asarray(np.linalg.eigvalsh(function.P), dtype=float)
        low, top = eigenvalues[:, 0], eigenvalues[:, -1]
    flat = slopes.reshape(-1, slopes.shape[-1])
    if isinstance(domain, PolyhedronSet):  # a linear program for every row would take long
        down, up = (sign * far * np.linalg.norm(slopes, axis=-1) for sign in (-1.0, 1.0))
    else:
        down, up = ((sign * np.asarray(domain.linear_min(sign * flat))[:, 0] - flat @ m).reshape(value.shape) for sign in (1.0, -1.0))
    most, steepest = value + up + 0.5 * top * far**2, np.linalg.norm(slopes, axis=-1) + top * far
    if top.any() and (ends := corners(domain)) is not None:
        sequence = records.widen(function, 1)
        most = np.max([np.asarray(sequence.value(end))[:, 0] for end in ends], axis=0)
        steepest = np.max([np.linalg.norm(sequence.grad(end), axis=-1) for end in ends], axis=0)
    return steepest, np.maximum(abs(value + down), abs(most)), low


def _feasibility(stream: Round, domain: Domain, F: float, feasible: Array | None) -> Constants:
    """An action that satisfies every constraint and by how much, or that there is none and how far from it the best one stays."""

    def blocks() -> list[Round]:
        return [stream]

    slack = 1e-9 * max(F, 1e-300)
    if feasible is not None:
        x = validate.vector("feasible", feasible, domain.dim)
        if not domain.contains(x):
            raise InputError("feasible must lie in the domain")
        _, g = hindsight.values_at(blocks, x)
        if g.max() > slack:
            t, i = np.unravel_index(int(g.argmax()), g.shape)
            raise InputError(f"feasible must satisfy every constraint; it violates constraint {i} by {g.max():.3g} in round {t + 1}")
        return {"feasible": x, "slater": max(0.0, -float(g.max()))}
    least, x, proved = hindsight.least_violation(blocks, domain)
    if least <= slack:
        return {"feasible": x, "slater": max(0.0, -least)}
    if proved <= 0.0:
        return {}  # not known either way
    try:
        excess, best = hindsight.static_violation(blocks, domain, F)
    except NoComparator:  # there is none, and how close one can come could not be told
        return {"feasible": None}
    return {"feasible": None, "benchmark": best, "excess": excess * F}
