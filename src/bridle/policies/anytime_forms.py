"""What `anytime` measures of a violated constraint: its squared distance, its squared value, or the value of a self-bounding one.

With h the measure, Q adds up h and the surrogate's gradient is that of Phi(Q): each form says what h is, where its gradient points, by
what several constraints are ranked, and which constants the proof then has.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from bridle import ops, validate
from bridle.core import Alarm, Feedback, InputError
from bridle.domains.half_space_cut import sweep
from bridle.ops import Array, Flag, Number, Scalar, dot, minimum, norm, pos, put, ratio, scalar, where, worst
from bridle.policies.common import switch
from bridle.policies.entry import Setting

SLACK = 1.0 + 1e-9
"""A halfspace farther away than the diameter misses the domain; equality is attainable and rounds either way."""


TOUCH = 1e-9
"""A halfspace is kept if x lies outside by more than this part of the diameter: on the boundary, rounding alone would decide."""


STEEPEST = 1e80
"""No V taken from a first gradient is larger: the squares of what it weighs must stay finite, also where that gradient was all but 0."""


FORMS = ("distance", "value", "self-bounding")


class LinearisedConstraint(NamedTuple):
    """One constraint linearised at x: value, gradient, unit normal, how far x lies outside (below 0: inside), and <normal, x> - far."""

    g: Scalar
    dg: Array
    normal: Array
    far: Scalar
    level: Scalar


class Distance(NamedTuple):
    """h = dist^2, whose gradient is 2 dist n; the farthest constraint counts."""

    @property
    def by_value(self) -> bool:
        """Whether h is known without the constraint's gradient."""
        return False

    def measure(self, g: Scalar, far: Scalar, reach: Scalar) -> tuple[Scalar, Scalar]:
        """h, and the weight that makes its gradient of `direction`; never more than there is where some action is feasible."""
        dist = minimum(pos(far), reach)
        return dist * dist, 2.0 * dist

    def direction(self, cut: LinearisedConstraint) -> Array:
        """What the weight belongs to."""
        return cut.normal

    def rank(self, g: Number, distances: Number) -> Number:
        """By what several constraints are ranked."""
        return distances

    def curvature(self, D: Scalar) -> tuple[float, Scalar]:
        """c and kappa of  V Regret + c ((1 - kappa lam) e^{lam Q} - 1) <= V R."""
        return 1.0, 2.0 * D * D


class SquaredValue(NamedTuple):
    """h = (g^+)^2, whose gradient is 2 g^+ grad g; the largest constraint counts."""

    lipschitz: Scalar

    @property
    def by_value(self) -> bool:
        return True

    def measure(self, g: Scalar, far: Scalar, reach: Scalar) -> tuple[Scalar, Scalar]:
        g = minimum(pos(g), self.lipschitz * reach)
        return g * g, 2.0 * g

    def direction(self, cut: LinearisedConstraint) -> Array:
        return cut.dg

    def rank(self, g: Number, distances: Number) -> Number:
        return g

    def curvature(self, D: Scalar) -> tuple[float, Scalar]:
        return 1.0, 2.0 * (D * self.lipschitz) ** 2


class SelfBounding(NamedTuple):
    """h = g >= 0 with |grad g|^2 <= 2 M g; the largest constraint counts."""

    smoothness: Scalar

    @property
    def by_value(self) -> bool:
        return True

    def measure(self, g: Scalar, far: Scalar, reach: Scalar) -> tuple[Scalar, Scalar]:
        return minimum(pos(g), self.largest(reach)), 1.0 * (g > 0.0)  # type: ignore[return-value]

    def direction(self, cut: LinearisedConstraint) -> Array:
        return cut.dg

    def rank(self, g: Number, distances: Number) -> Number:
        return g

    def curvature(self, D: Scalar) -> tuple[float, Scalar]:
        # Here <grad g, x - u> >= g gives Y once, not twice: V Regret + Y <= V R + 2 D sqrt(M p Y) and 2 D sqrt(M p Y) <= Y/2 + 2 D^2 M p.
        return 0.5, 4.0 * D * D * self.smoothness

    def largest(self, D: Scalar) -> Scalar:
        return 0.5 * self.smoothness * D * D


Form: TypeAlias = Distance | SquaredValue | SelfBounding


def linearised(
    x: Array, feedback: Feedback, form: Form, margin: Scalar, span: Scalar
) -> tuple[LinearisedConstraint, tuple[Array, Array] | None, Flag]:
    """The halfspace that counts, all of them where there are several, and whether one of them is farther away than `span`.

    `margin` is the distance to keep from each of them.
    """
    if feedback.g.shape[-1] == 1:
        g, dg = worst(feedback.g, feedback.dg)
        length = norm(dg)
        far: Scalar = ratio(g, length) + margin * (length > 0.0)  # type: ignore[assignment]
        normal = ratio(1.0, length) * dg
        return LinearisedConstraint(g, dg, normal, far, dot(normal, x) - far), None, g > length * (span * SLACK)
    lengths = ops.sqrt((feedback.dg * feedback.dg).sum(axis=-1))
    distances = ratio(feedback.g, lengths) + margin * (lengths > 0.0)
    normals = ratio(1.0, lengths)[..., None] * feedback.dg
    levels = (normals @ x[..., None])[..., 0] - distances
    rank = form.rank(feedback.g, distances)
    (_, dg), (_, normal) = worst(rank, feedback.dg), worst(rank, normals)
    # The numbers that go with them, taken along as columns.
    _, row = worst(rank, ops.columns(feedback.g, distances, levels))
    g, far, level = (row[..., i : i + 1] if feedback.g.ndim > 1 else ops.first(row[i : i + 1]) for i in range(3))
    missed = (feedback.g > lengths * (span * SLACK)).any(axis=-1, keepdims=feedback.g.ndim > 1)
    return LinearisedConstraint(g, dg, normal, far, level), (normals, levels), missed


def remembered(A: Array, b: Array, slot: Scalar, normal: Array, level: Scalar, violated: Flag) -> tuple[Array, Array, Scalar]:
    """The halfspaces kept and the place of the next, with this one in place of the oldest where it is violated."""
    A, b = put(A, slot, normal, violated), put(b[..., None], slot, level + 0.0 * normal[..., :1], violated)[..., 0]
    return A, b, where(slot + violated < float(b.shape[-1]), slot + violated, 0.0 * slot)  # type: ignore[arg-type]


Kept: TypeAlias = tuple[Array | None, Array | None, Scalar | None]
"""The halfspaces kept, A x <= b, and the place of the next; None of each where there is no halfspace step."""


def onto_halfspaces(
    y: Array, kept: Kept, cut: LinearisedConstraint, others: tuple[Array, Array] | None, violated: Flag
) -> tuple[Array, Kept]:
    """`y` projected on the halfspace that counts, then on the others of the round and on those kept, which it joins where `violated`."""
    A, b, slot = kept
    if A is None or b is None or slot is None:
        return y, kept
    y = y - pos(dot(cut.normal, y) - cut.level) * cut.normal
    y = y if others is None else sweep(*others, y)
    if not b.shape[-1]:
        return y, kept
    return sweep(A, b, y), remembered(A, b, slot, cut.normal, cut.level, violated)


def slots_for(halfspace: bool, cuts: int | None, moving: bool = False) -> Array | None:
    """As many ones as halfspaces are kept; None where there is no halfspace step; where the feasible action moves none is kept."""
    slots = np.ones(0 if moving else 20 if cuts is None else validate.whole("cuts", cuts, 0)) if switch("halfspace", halfspace) else None
    if slots is None and cuts:
        raise validate.refused("cuts must be 0 with halfspace=False", cuts)
    return slots


def none_kept(x1: Array, slots: Array | None) -> Kept:
    """What is kept before there is any halfspace."""
    if slots is None:
        return None, None, None
    b = ops.vector(x1, slots)
    return b[..., None] * x1[..., None, :], b, scalar(x1)


def missed_alarm(rounds: Scalar) -> Alarm | None:
    """That one constraint misses the whole domain, in the first of these rounds (0: in none, and there is no alarm)."""
    infeasible = np.asarray(rounds)
    if not infeasible.any():
        return None
    t = infeasible[infeasible > 0.0].min()
    text = f"no action of the domain satisfies the constraint of round {t:g}: nothing is feasible, and no bound holds"
    return Alarm(text, voids_bound=True, infeasible=True)  # the proof compares with a feasible action, and there is none


def inverse_weight(V: Scalar | None, reach: Scalar, longest: Scalar) -> Scalar:
    """1/V, where V was given or found; else the most that it can be for V = 10 / (D |first gradient|), gradients at most `longest` long.

    Infinite where V is 0, since no cost has had a slope.
    """
    if V is None:
        return np.maximum(reach * longest / 10.0, 1.0 / STEEPEST)
    given = np.asarray(V)
    return np.where(given > 0.0, 1.0 / np.where(given > 0.0, given, 1.0), np.inf)


def form_for(form: str, lipschitz: Setting | None, smoothness: Setting | None) -> Form:
    """The record of the form of this name."""
    validate.one_of("form", form, FORMS)
    for name, value, wanted in (("lipschitz", lipschitz, "value"), ("smoothness", smoothness, "self-bounding")):
        if (value is None) == (form == wanted):
            raise InputError(f"form={form!r} needs {name}" if value is None else f"{name} is for form={wanted!r} only, not for {form!r}")
    if form == "distance":
        return Distance()
    return (
        SquaredValue(validate.setting("lipschitz", lipschitz))
        if form == "value"
        else SelfBounding(validate.setting("smoothness", smoothness))
    )
