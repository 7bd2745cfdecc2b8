"""What is said before a round is decided: what the caller expects of it (a hint), and limits that are known.

A hint is the gradient of the cost that is expected, or a dict of it (`df`) and of constraints' values and gradients (`g`, `dg`), at the
decision or at an action `x`.

Limits that are known before acting are halfspaces A x <= b of one round, or convex functions that must not be above 0, and the nearest
action of the domain that keeps them.

Where it replaces the policy's iterate, no action that keeps the limits is farther from the new one than from the old: a projection on a
convex set only brings a point closer to the set's own. So the proof of every policy that measures its progress by that distance stays as it
is (`move` of a record), for the actions that keep what was known in every round. One that measures it in the norm of a matrix (`metric`)
has its iterate projected in that norm.

>>> parts_of({"g": 0.1, "dg": [1.0, 0.0]})
{'g': array([0.1]), 'dg': array([[1., 0.]])}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike

from bridle import records, validate
from bridle.backends import SEVERAL, package
from bridle.core import Domain, Function, Hint, InputError, Unavailable
from bridle.functions import AffineFunction
from bridle.ops import Array
from bridle.records import Arrays
from bridle.session.certificates.feasibility import nearest_on
from bridle.session.feedback import Numbers
from bridle.solvers.nearest_in_norm import nearest_where, sequences
from bridle.solvers.nearest_point import ROW_TOLERANCE, ByProjection, CutProjector, nearest, projector_for
from bridle.solvers.program import Pieces, evaluate


class Prior(TypedDict, total=False):
    """What may be said before a round: the arguments of `Session.decide`."""

    rules: Numbers
    features: Numbers
    known: Known
    hint: HintGiven


HintGiven: TypeAlias = ArrayLike | Mapping[str, ArrayLike] | Hint | None
"""What a caller gives as a hint, or leaves out."""

PARTS = Hint._fields
"""What a hint may be made of."""


def parts_of(hint: HintGiven) -> Arrays:
    """The parts of a hint, in a fixed order and as arrays of finite numbers: `g` with one axis, `dg` with two."""
    given = hint._asdict() if isinstance(hint, Hint) else hint if isinstance(hint, Mapping) else {"df": hint}
    for name in given:
        validate.one_of("part of hint", name, PARTS)
    parts = {name: validate.array(f"hint {name}", given[name]) for name in PARTS if given.get(name) is not None}
    if not parts:
        raise validate.refused(f"hint must be a gradient of the cost, or a dict with some of {', '.join(PARTS)}", hint)
    if ("g" in parts) != ("dg" in parts):
        raise InputError(f"hint must have g and dg together: it has {', '.join(parts)}")
    if "x" in parts and "g" not in parts:
        raise InputError("hint must have g and dg where it has x, the action at which they are expected")
    if "g" in parts:
        parts |= {"g": np.atleast_1d(parts["g"]), "dg": np.atleast_2d(parts["dg"])}
    return parts


def checked_hint(hint: HintGiven, dim: int, largest: float) -> Hint:
    """A hint for decisions of so many coordinates, with numbers of this size at most; or what is wrong with it."""
    parts = parts_of(hint)
    k = parts["g"].size if "g" in parts else 0
    shapes = {"df": (dim,), "g": (k,), "dg": (k, dim), "x": (dim,)}
    for name, values in parts.items():
        if values.shape != shapes[name]:
            raise InputError(f"hint {name} must have shape {shapes[name]}, not {values.shape}")
        if values.size and float(np.abs(values).max()) > largest:
            raise InputError(f"hint {name} must have numbers of size {largest:g} at most, not {float(np.abs(values).max()):g}")
    return Hint(**parts)


MOST_CUTS = 500
"""At most so many tangents of the domain are used, where the solver for programs is not installed."""

CLOSE = 1e-9
"""Times the domain's scale: limits that are exceeded by no more than this count as kept, where rounding leaves nothing better."""


Known: TypeAlias = tuple[ArrayLike, ArrayLike] | Function | Sequence[Function] | None
"""Limits as a caller gives them: a pair (A, b) of halfspaces A x <= b, or one or several convex functions that must not be above 0."""


class KnownLimits(NamedTuple):
    """A x <= b, with rows of unit length, `given` the lengths that they had; and smooth `functions`
    that must not be above 0, of the kinds `kinds`.
    """

    A: Array
    b: Array
    given: Array
    functions: Pieces = ()
    kinds: str = ""

    def kept_by(self, x: Array, domain: Domain) -> bool:
        """Whether an action keeps them, up to rounding."""
        scale = CLOSE * _scale(domain)
        values, slopes = evaluate(self.functions, x)
        kept = (values <= scale * np.linalg.norm(slopes, axis=1)).all()
        return bool(kept) and bool((self.A @ x - self.b).max(initial=0.0) <= scale) and domain.contains(x)

    def text(self, i: int) -> str:
        """One of them, as it was given."""
        return f"{validate.show(self.given[i] * self.A[i])} x <= {self.given[i] * self.b[i]:.6g}"


def known_limits(known: object, dim: int) -> KnownLimits:
    """What a caller gives as ``known=(A, b)``, or as a function or several, checked; a row of zeros is left out, if it holds."""
    functions = tuple(known) if isinstance(known, (tuple, list)) and not hasattr(known, "value") else (known,)
    if functions and all(isinstance(one, Function) for one in functions):
        return _functions(cast("tuple[Function, ...]", functions), dim)
    if not isinstance(known, (tuple, list)) or len(known) != 2:
        raise validate.refused("known must be a pair (A, b) of limits A x <= b, or convex functions", known)
    rows, levels = validate.array("known[0]", known[0]), validate.array("known[1]", known[1])
    rows, levels = np.atleast_2d(rows), np.atleast_1d(levels)
    if rows.ndim != 2 or rows.shape[1] != dim or levels.shape != (len(rows),):
        raise InputError(f"known must hold A of shape (m, {dim}) and b of shape (m,), not {rows.shape} and {levels.shape}")
    with np.errstate(over="ignore"):
        sizes = np.abs(rows).max(axis=1, initial=0.0)
        lengths = sizes * np.sqrt(((rows / np.where(sizes > 0.0, sizes, 1.0)[:, None]) ** 2).sum(axis=1))
    for i in np.flatnonzero((lengths == 0.0) & (levels < 0.0)):
        raise InputError(f"known cannot be kept: limit {i} says 0 <= {levels[i]:.6g}")
    some = lengths > 0.0
    return KnownLimits(rows[some] / lengths[some, None], levels[some] / lengths[some], lengths[some])


def _functions(functions: tuple[Function, ...], dim: int) -> KnownLimits:
    """Convex functions as known limits, if they are functions of an action of this dimension."""
    parts: list[Function] = []
    for i, one in enumerate(functions):
        kind = type(one).__name__
        numbers = all(isinstance(leaf, (int, float, np.ndarray, np.generic)) for leaf in records.leaves(one).values())
        smooth = sequences(one) if numbers and one.convex else None
        if smooth is None:
            raise InputError(f"known[{i}] must be a convex function made of numbers, such as bridle.Quadratic(P), not {kind}")
        try:
            shape = np.shape(one.grad(np.zeros(dim)))
        except ValueError:
            shape = ()
        if shape[-1:] != (dim,):
            raise InputError(f"known[{i}] must be a function of {dim} numbers; this {kind} is not")
        parts += smooth
    return KnownLimits(np.zeros((0, dim)), np.zeros(0), np.zeros(0), tuple(parts), ", ".join(type(one).__name__ for one in functions))


def projector(domain: Domain) -> CutProjector | None:
    """What finds nearest points of this domain; None where the solver that it needs is not installed."""
    with suppress(Unavailable):
        package("daqp", SEVERAL)
        with suppress(InputError):
            return projector_for(domain)
        return ByProjection(domain, np.asarray(domain.center()), _scale(domain))
    return None


def _scale(domain: Domain) -> float:
    return float(domain.diameter()) + 1e-4 * float(np.linalg.norm(domain.center()))


def nearest_kept(
    domain: Domain,
    A: Array,
    b: Array,
    x: Array,
    projector: CutProjector | None,
    functions: Pieces = (),
    metric: Array | None = None,
) -> Array | None:
    """The action of the domain nearest to x with A x <= b (rows of any length) and no function above 0; None where there is none.

    It is nearest in the norm of `metric`, or as the crow flies. One that keeps them comes back bit for bit.
    """
    if functions or metric is not None:
        rows = (AffineFunction(A, -b[:, None]),) if len(b) else ()
        return nearest_where(domain, x, (*rows, *functions), np.eye(len(x)) if metric is None else metric)
    start = np.asarray(domain.project(x), dtype=float)
    if not (A @ start > b).any():
        return start
    lengths = np.sqrt((A * A).sum(axis=1))
    sloped = lengths > 0.0
    if (b[~sloped] < 0.0).any():
        return None
    A, b = A[sloped] / lengths[sloped, None], b[sloped] / lengths[sloped]
    scale = _scale(domain)
    for inside in (2.0 * ROW_TOLERANCE * scale, 0.0):  # a solver ends on either side of a limit: one that is a little tighter is kept
        levels = b - inside
        found = _by_cuts(domain, A, levels, x) if projector is None else nearest(projector, x, A, levels - A @ projector.middle, [])[0]
        if found is not None and float((A @ found - b).max()) <= (0.0 if inside else CLOSE * scale):
            return found
    return None


def _by_cuts(domain: Domain, A: Array, b: Array, x: Array) -> Array | None:
    """The nearest point below the rows, and below a tangent of the domain for each answer that was outside of it."""
    close = ROW_TOLERANCE * _scale(domain)
    for _ in range(MOST_CUTS):
        met = nearest_on(x, A, b)
        if met is None:
            return None
        inside = np.asarray(domain.project(met[0]), dtype=float)
        gap = float(np.linalg.norm(met[0] - inside))
        if gap <= close:
            return inside
        normal = (met[0] - inside) / gap
        A, b = np.vstack([A, normal]), np.append(b, float(normal @ inside))
    return None


def refusal(domain: Domain, limits: KnownLimits) -> InputError:
    """The error for limits that no action of the domain keeps: it names one that none keeps, or all of them."""
    for i, row in enumerate(limits.A):
        least = float(domain.linear_min(row))
        if least > limits.b[i]:
            text = f"limit {i}, {limits.text(i)}, is {limits.given[i] * least:.6g} or more everywhere"
            return InputError(f"known cannot be kept by any action of the domain: {text}; nothing was changed")
    if limits.functions:
        text = f"none was found with {limits.kinds} at 0 or below"
        return InputError(f"known cannot be kept by any action of the domain: {text}; nothing was changed")
    texts = "; ".join(limits.text(i) for i in range(min(3, len(limits.b)))) + (" ..." if len(limits.b) > 3 else "")
    return InputError(f"known cannot be kept by any action of the domain: {texts} together; nothing was changed")
