"""bridle's own policy: it needs no horizon and no Lipschitz constant, and reacts to a violated constraint in one round.

The constraint revealed in round t, linearised at x_t, is a halfspace H_t that holds every feasible action. With dist_t the distance from
x_t to H_t (of several constraints the farthest; n_t its unit normal), lam = 1/(4 D^2) and V = 10 / (D |first gradient|), or any other:

    Q_t = Q_{t-1} + dist_t^2,      v_t = V grad f_t(x_t) + 2 lam e^{lam Q_t} dist_t n_t
    y   = x_t - D / sqrt(2 S_t) v_t,      S_t = |v_1|^2 + ... + |v_t|^2
    x_{t+1} = P_X(y projected on H_t, then on those of the last 20 violated halfspaces that it still violates)

Variants by argument: `modulus` (strongly convex costs), `form` ("value": squared violation in place of squared distance, for noisy
gradients; "self-bounding": constraints g >= 0 with |grad g|^2 <= 2 `smoothness` g), `drift` (the feasible action may move, by that much in
all), `margin` (keep that distance from every constraint), `window` (what is feasible may be another set in every window of so many
rounds: Q, S and all halfspaces begin anew with each, at the point where the last one ended; "auto": a mixture of such memories, in
`bridle.policies.memories`), `cuts` and `halfspace` (how many old halfspaces to keep; no halfspaces at all). On a simplex with many corners
`anytime-entropy` (`bridle.policies._anytime_entropy`) has entropy in place of Euclid's distance.

Guarantee: `anytime_bound`; for every t and every feasible u, with R = sqrt(2) D sqrt(sum |grad f_s|^2) and F_t = sum (f_s(u) - f_s(x_s)),

    Regret_t(u) <= R + 1/(2V),      sum dist_s^2 <= 4 D^2 ln(2 + 2 V (R + F_t)),      CCV_t <= G sqrt(t sum dist_s^2) = O(sqrt(t log t)).

    With strongly convex costs regret is O(log t); with self-bounding constraints CCV is O(log t). With a window all this holds within each
    window, t rounds after its beginning, for every u that is feasible in it; the proof asks nothing of where it begins.
Reference: bridle (this file); the proof is below.

Proof. Let h_s = dist_s^2, p_s = lam e^{lam Q_s} and Y = sum p_s h_s. Every feasible u has <n_s, x_s - u> >= dist_s, and projections on sets
that hold u only bring a point closer to it, so the regret bound of AdaGrad gives  V Regret_t + 2 Y <= sqrt(2) D sqrt(S_t).  By Minkowski
sqrt(S_t) <= V sqrt(sum |grad f|^2) + 2 sqrt(p_t Y), as p does not decrease; and 2 sqrt(2) D sqrt(p_t Y) <= Y + 2 D^2 p_t. So
V Regret_t + Y <= V R + 2 D^2 p_t, where Y >= e^{lam Q_t} - 1 (a right-endpoint sum of an increasing function). With theta = 2 D^2 lam,

    V Regret_t + (1 - theta) e^{lam Q_t} - 1 <= V R,

theta = 1/2 by default. Leave out e^{lam Q} >= 1 for the regret, use Regret_t >= -F_t for Q_t, and Cauchy-Schwarz for the CCV.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3)
>>> trace = bridle.play(bridle.policy("anytime", problem.domain), problem)
>>> trace.warnings, bool(bridle.ccv(trace) < 0.1 * bridle.ccv(bridle.play(bridle.policy_for("sinha2024", problem), problem)))
((), True)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, Literal, NamedTuple, Unpack, cast

import numpy as np

from bridle import ops, records, validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback, InputError
from bridle.domains.half_space_cut import sweep
from bridle.learners import AdaGradSteps, adaptive_step
from bridle.learners.potentials import UNIT, ExponentialPotential
from bridle.ops import Array, Flag, Scalar, dot, exp, minimum, norm, ratio, scalar, where
from bridle.policies.anytime_forms import (
    STEEPEST,
    TOUCH,
    Distance,
    Form,
    LinearisedConstraint,
    SelfBounding,
    SquaredValue,
    form_for,
    inverse_weight,
    linearised,
    missed_alarm,
    none_kept,
    onto_halfspaces,
    slots_for,
)
from bridle.policies.common import at_least, curvature_of, diameter_of, flat, most_behind, told, unmet, weight_of
from bridle.policies.entry import Configuration, Setting, Variant
from bridle.policies.memories import Memories, memories, memories_bound
from bridle.policies.registry import Through, registered

NOTHING = -1e300
"""The rank of no constraint at all."""


class AnytimeState(NamedTuple):
    """The decision, Q, and the step size's sums: S of squared gradients (only the constraints' with strongly convex costs), H of moduli.

    S is kept divided by e^{2 UNIT units}, so that e^{lam Q} never overflows. A and b are the halfspaces kept, `slot` the place of the
    next. `infeasible` is the first round whose constraint no action of the domain satisfies, 0 if there was none.
    """

    x: Array
    Q: Scalar
    S: Scalar
    H: Scalar | None
    V: Scalar
    units: Scalar
    A: Array | None
    b: Array | None
    slot: Scalar | None
    rounds: Scalar
    infeasible: Scalar


class AnytimeWeights(NamedTuple):
    """Q, V and the units after this round, the surrogate's weights on grad f and on the constraint, and what earlier squares shrink by."""

    Q: Scalar
    V: Scalar
    units: Scalar
    cost: Scalar
    constraint: Scalar
    shrink: Scalar


class Anytime(NamedTuple):
    """The policy; what is None is left out: `modulus` (convex costs), `slots` (no halfspace step)."""

    domain: Domain
    form: Form
    potential: ExponentialPotential
    reach: Scalar  # D
    diameter: Scalar  # D, or sqrt(D^2 + 2 D P) where the feasible action may move by P
    span: Scalar  # beyond which a halfspace misses the domain: its own diameter where the policy was told a smaller D
    V: Scalar | None
    margin: Scalar
    modulus: Scalar | None
    slots: Array | None

    def init(self, x1: Array) -> AnytimeState:
        zero = scalar(x1)
        H = None if self.modulus is None else zero
        V, kept = zero if self.V is None else self.V + zero, none_kept(x1, self.slots)
        return AnytimeState(x1, zero, zero, H, V, zero, *kept, zero, zero)

    def decide(self, state: AnytimeState) -> Array:
        return state.x

    @property
    def one_gradient(self) -> bool:
        """Whether `weigh` and `follow` are all of a round: no more is needed than constraint values and the surrogate's gradient."""
        return self.form.by_value and self.slots is None and self.modulus is None and self.V is not None

    @property
    def violated_only(self) -> bool:
        """Whether the gradient of a constraint that is satisfied makes no difference, so that zeros may stand for it."""
        return self.slots is None and bool(self.margin == 0.0)

    def weigh(self, state: AnytimeState, g: Scalar, far: Scalar = 0.0, length: Scalar = 0.0) -> AnytimeWeights:
        """The surrogate's weights, from the value of the constraint that counts, its distance, and the length of the cost's gradient."""
        h, weight = self.form.measure(g, far, self.reach)
        Q = state.Q + h
        # All gradients so far are kept divided by e^{UNIT units}: the steps are scale-free.
        units = self.potential.units(Q)
        slope, shrink = self.potential.slope(Q, units), exp(2.0 * UNIT * (state.units - units))
        V = where(state.V > 0.0, state.V, minimum(ratio(10.0, self.reach * length), STEEPEST))
        return AnytimeWeights(Q, V, units, V * exp(-UNIT * units), slope * weight, shrink)

    def follow(self, state: AnytimeState, weights: AnytimeWeights, v: Array) -> AnytimeState:
        """The state after a step along the surrogate's gradient `v`, where that is all there is to a round."""
        y, S, H = self.step(state, weights, v, None, None)
        x, rounds = self.domain.project(y), state.rounds + 1.0
        return AnytimeState(x, weights.Q, S, H, weights.V, weights.units, state.A, state.b, state.slot, rounds, state.infeasible)

    def step(
        self, state: AnytimeState, weights: AnytimeWeights, v: Array, constraint: Array | None, modulus: Scalar | None
    ) -> tuple[Array, Scalar, Scalar | None]:
        """Where the surrogate's gradient `v`, of which `constraint` is the constraint's part, leads to; and the step size's sums."""
        if self.modulus is None or state.H is None or constraint is None:
            S = state.S * weights.shrink + dot(v, v)
            return ops.descend(state.x, adaptive_step(self.diameter, S), v), S, None
        S = state.S * weights.shrink + dot(constraint, constraint)
        if modulus is None:
            H: Scalar = state.H + self.modulus * (weights.V > 0.0)  # type: ignore[assignment]
        else:  # the first cost counts as at least what was told: see `bridle.policies.common`
            H = where(state.H > 0.0, state.H + modulus, ops.maximum(modulus, self.modulus)) * (weights.V > 0.0)  # type: ignore[assignment]
        return state.x - ratio(1.0, weights.cost * H + 2.0 / self.diameter * ops.sqrt(S)) * v, S, H

    def update(self, state: AnytimeState, feedback: Feedback) -> AnytimeState:
        cut, others, missed = self.linearise(feedback.x, feedback)
        weights = self.weigh(state, cut.g, cut.far, norm(feedback.df))
        constraint = weights.constraint * self.form.direction(cut)
        y, S, H = self.step(state, weights, weights.cost * feedback.df + constraint, constraint, feedback.modulus)
        y, kept = onto_halfspaces(y, (state.A, state.b, state.slot), cut, others, cut.far > TOUCH * self.reach)
        rounds = state.rounds + 1.0
        infeasible = where(state.infeasible > 0.0, state.infeasible, missed * rounds)  # type: ignore[arg-type]
        return AnytimeState(self.domain.project(y), weights.Q, S, H, weights.V, weights.units, *kept, rounds, infeasible)

    def linearise(self, x: Array, feedback: Feedback) -> tuple[LinearisedConstraint, tuple[Array, Array] | None, Flag]:
        """The halfspace that counts, all of them where there are several, and whether one of them misses the domain."""
        return linearised(x, feedback, self.form, self.margin, self.span)

    def halfspace(self, feedback: Feedback) -> tuple[Array, Scalar] | None:
        """The halfspace of a violated round, for others to `steer` by; None where it is not violated or may not hold for long."""
        if self.slots is None or self.diameter > self.reach:
            return None
        cut, _, _ = self.linearise(feedback.x, feedback)
        return (cut.normal, cut.level) if cut.far > TOUCH * self.reach else None

    def steer(self, state: AnytimeState, A: Array, b: Array) -> AnytimeState:
        """The state before its next decision, moved onto halfspaces found elsewhere: all hold every feasible action, so it comes closer."""
        return state._replace(x=self.domain.project(sweep(A, b, state.x)))

    def anew(self, state: AnytimeState) -> AnytimeState:
        """The state that begins anew where this one stands, with the V that it has: what it knew of limits has expired."""
        return self.init(state.x)._replace(V=state.V, rounds=state.rounds, infeasible=state.infeasible)

    def move(self, state: AnytimeState, x: Array) -> AnytimeState:
        """The state with x in place of its next decision, which is to be no farther from any action that counts."""
        return state._replace(x=x)

    def certified_regret(self, state: AnytimeState) -> float | None:
        """The proof's own upper bound on the regret so far, (sqrt(2) D sqrt(S_t) - 2 Y) / V (Y once for self-bounding constraints).

        S_t as it is, and Y >= e^{lam Q_t} - 1. Every update must have been fed with the feedback at the state's own decision. Steps made
        for another diameter D' than the domain's own D have (D^2/D' + D') / sqrt(2) in place of sqrt(2) D.
        """
        if self.modulus is not None or self.margin > 0.0 or state.units > 0.0:
            return None
        c, _ = self.form.curvature(self.diameter)
        own, drift = self.domain.diameter(), 0.5 * (self.diameter * self.diameter / self.reach - self.reach)
        spread = (own * (own + 2.0 * drift) / self.diameter + self.diameter) / sqrt(2.0)
        surplus = spread * sqrt(state.S) - 2.0 * c * np.expm1(self.potential.lam * state.Q)
        return float(ops.ratio(surplus, float(state.V)))

    def adagrad_steps(self, state: AnytimeState) -> AdaGradSteps | None:
        """What its steps are made of, where they are AdaGrad's and nothing more: no halfspaces, no modulus, no units counted apart."""
        plain = self.slots is None and self.modulus is None and not np.any(np.asarray(state.units) > 0.0)
        return AdaGradSteps(self.diameter, state.S) if plain else None

    def certified_squares(self, state: AnytimeState, squares: float, gain: float) -> float | None:
        """The most that the squared distances can add up to, with sum |grad f|^2 = `squares` and no action losing more than `gain`.

        None where the domain is wider than the policy was told: Q then counts no distance for more than that.
        """
        c, _ = self.form.curvature(self.diameter)
        theta, _ = self.squares_of(0.0)
        if self.modulus is not None or theta >= 1.0 or not isinstance(self.form, Distance) or self.margin > 0.0:
            return None
        if self.reach < self.domain.diameter() * (1.0 - 1e-12):
            return None
        R = sqrt(2.0 * squares) * self.diameter
        return float(np.log((1.0 + state.V * (R + gain) / c) / (1.0 - theta)) / self.potential.lam)

    def squares_of(self, moves: float) -> tuple[Scalar, Scalar]:
        """theta and lam of the proof, where the comparator moves by this part of the diameter."""
        (_, kappa), lam = self.form.curvature(self.diameter), self.potential.lam
        return (1.0 + moves) ** 2 * kappa * lam, lam

    def alarm(self, state: AnytimeState) -> Alarm | None:
        """That one constraint misses the whole domain; None while none does."""
        return missed_alarm(state.infeasible)


class WindowState(NamedTuple):
    """The policy's state, and how many rounds of the window are over."""

    inner: AnytimeState
    over: Scalar

    @property
    def V(self) -> Scalar:
        return self.inner.V


class Windowed(NamedTuple):
    """The policy that begins anew every `window` rounds, where it stands and with the V that it has: what it knew of limits expires."""

    inner: Anytime
    window: Scalar

    @property
    def domain(self) -> Domain:
        return self.inner.domain

    def init(self, x1: Array) -> WindowState:
        return WindowState(self.inner.init(x1), 0.0)  # all runs begin anew together

    def decide(self, state: WindowState) -> Array:
        return self.inner.decide(state.inner)

    def update(self, state: WindowState, feedback: Feedback) -> WindowState:
        moved, over = self.inner.update(state.inner, feedback), state.over + 1.0
        return records.choose(over >= self.window, WindowState(self.inner.anew(moved), 0.0 * over), WindowState(moved, over))

    def alarm(self, state: WindowState) -> Alarm | None:
        return self.inner.alarm(state.inner)


def _side_by_side(record: Anytime) -> Anytime:
    """The record for copies that are runs of their own: a setting of each run of a sweep is the same for all of its copies."""

    def of_all(value: Scalar | None) -> Scalar | None:
        return value if value is None or np.ndim(value) == 0 else np.asarray(value)[..., None]

    settings = {name: of_all(getattr(record, name)) for name in ("reach", "diameter", "span", "V", "margin")}
    return record._replace(potential=ExponentialPotential(of_all(record.potential.lam)), **settings)  # type: ignore[arg-type]


def _nonnegative(name: str, value: Setting) -> Scalar:
    return np.asarray(value) if np.ndim(value) and (np.asarray(value) >= 0.0).all() else validate.nonnegative(name, value)


def anytime_bound(policy: Configuration[Anytime | Windowed | Memories], constants: Constants, t: float) -> Bound:
    """The proof above for any V, lam < 1/kappa and variant, with |grad f_s| <= G.

    Strongly convex costs: the steps 1 / (V H_t + (2/D) sqrt(S_t)) give V R = V G^2 (1 + ln t) / modulus and the cross term
    2 D sqrt(S) <= 4 D sqrt(p Y) <= Y + 4 D^2 p, twice the convex one. A drift P of the feasible action puts D^2 + 2 D P in place of D^2.
    With a margin r, comparators (1 - w) u + w s, s the Slater point and w = r G / slater, cost w G D more a round, and true violation is at
    most G (dist - r)^+ <= G dist^2 / (4 r). Where V was not given, the one that the game found is in ``constants["V"]``; the regret bound
    needs only that it is at least 10 / (D G). Regret_t >= -GDt, or what ``constants["regret"]`` says of round t, if that is less negative.

    In a session with a modulus mu, a round may have no cost, or one of another modulus. H_t sums up what there was from the first gradient
    on, at which V is found: H_s/mu is then `moduli` of that round less z, z the moduli before that gradient, and at least 1, so that it is
    at least 1/(1 + z) times as large; n costs have V R = V G^2 (1 + ln n) (1 + z) / (share mu), and V mu D^2/2 more where moduli were
    smaller than told (see `bridle.policies.common`).

    With a window it is what one window proves, as often as there are windows: within one ask for its t alone.
    """
    if isinstance(policy.record, Memories):
        why = unmet(constants) or _broken(cast(Anytime, policy.record.inner), constants)
        return Bound(why=why) if why else memories_bound(policy.record, constants, t)
    if isinstance(policy.record, Windowed):
        within = _WithinWindow(policy.domain, policy.parameters, policy.record.inner)
        return _over_windows(within, policy.record.window, constants, t)
    record = policy.record
    why = unmet(constants, modulus=record.modulus) or _broken(record, constants)
    if why:
        return Bound(why=why)
    G, D, mu, lam, r = constants["lipschitz"], constants["diameter"], record.modulus, record.potential.lam, record.margin
    c, kappa = record.form.curvature(record.diameter)
    theta = (1.0 if mu is None else 2.0) * kappa * lam
    if np.any(np.asarray(theta) >= 1.0):
        return Bound(why=f"lam = {float(np.max(lam)):.4g} is too large for a proof: kappa*lam = {float(np.max(theta)):.4g} must be below 1")
    V = weight_of(record.V, constants)
    V = None if V is None else np.asarray(V)
    seen = curvature_of(constants, t)
    if mu is None:
        R = sqrt(2.0 * t) * record.diameter * G
    elif seen.regular:
        R = G * G * (1.0 + np.log(np.ceil(t))) / mu
    else:
        before = max(0.0, seen.moduli - constants.get("H", 0.0) / mu)
        R = G * G * (1.0 + np.log(max(seen.costs, 1.0))) * (1.0 + before) / (seen.share * mu) + 0.5 * mu * D * D
    careful, slater = np.any(np.asarray(r) > 0.0), constants.get("slater")
    regret = flat(R + (r * G / slater * G * D * t if careful and slater else 0.0))
    trivial = G * D * t
    inverse = inverse_weight(V, record.reach, G)
    regret = np.minimum(regret + flat(c * theta) * flat(inverse), trivial)
    if V is None:
        return Bound(flat(regret), why="the violation bound depends on V, which the policy takes from the first gradient")
    behind = most_behind(constants, t, 0.0 if mu is None else mu)
    behind = behind if careful else at_least(constants, behind)
    Q = np.log((1.0 + V * (flat(R) + behind) / c) / (1.0 - flat(theta))) / flat(lam)
    if isinstance(record.form, SelfBounding):
        return Bound(flat(regret), ccv=flat(np.minimum(Q, trivial)))
    squared = Q if isinstance(record.form, SquaredValue) else G * G * Q
    ccv = np.minimum(np.sqrt(t * squared), trivial)
    if careful:
        ccv = np.minimum(ccv, G * Q / (4.0 * flat(r)))
    return Bound(flat(regret), ccv=flat(ccv), squared=flat(np.minimum(squared, G * D * trivial)))


class _WithinWindow(NamedTuple):
    """The policy of one window, as its bound asks for it."""

    domain: Domain
    parameters: Mapping[str, Any]
    record: Anytime


def _over_windows(within: _WithinWindow, window: Scalar, constants: Constants, t: float) -> Bound:
    """The bound of one window for each that has begun; what is known of regret is about all rounds, and says nothing of one window."""
    alone: Constants = {**constants}
    alone.pop("regret", None)
    one, begun = anytime_bound(within, alone, min(t, float(np.max(window)))), np.ceil(t / flat(window))

    def added(bound: Scalar | None) -> Scalar | None:
        return None if bound is None else flat(begun * bound)

    return Bound(added(one.regret), ccv=added(one.ccv), squared=added(one.squared), why=one.why)


def _broken(record: Anytime, constants: Constants) -> str:
    """Which assumption of this variant the problem breaks, in words; empty when none."""
    G = constants["lipschitz"]
    if np.any(np.asarray(record.reach) < constants["diameter"] * (1.0 - 1e-12)):
        return f"the domain's diameter is {constants['diameter']:.4g}, more than the policy was told"
    if isinstance(record.form, SquaredValue) and np.any(np.asarray(record.form.lipschitz) < G * (1.0 - 1e-12)):
        return f"the Lipschitz constant is {G:.4g}, more than the policy was told"
    if isinstance(record.form, SelfBounding):
        M = constants.get("smoothness")
        if M is None or np.any(np.asarray(record.form.smoothness) < M):
            return "the constraints are not known to be self-bounding with the smoothness the policy was told"
    slater = constants.get("slater") or 0.0
    if np.any(np.asarray(record.margin) * G > slater):
        return f"no action is known to satisfy every constraint by the margin times the Lipschitz constant (slater = {slater:.4g})"
    return ""


@registered(
    reference="The bridle developers, This library 2026",
    regret="O(sqrt(T)), O(log T) strongly convex",
    violation="O(sqrt(T log T)), squared O(log T)",
    bound=anytime_bound,
    only_limits=True,
    reduces="max-distance",
    cost="1 projection, 1 halfspace, 20 checked",
    variants=(
        Variant(
            "window",
            "auto",
            {
                "regret": "O(T^(3/4) sqrt(m)) against paths of m stretches, O(sqrt(m T)) without limits",
                "violation": "O(T^(3/4) + sqrt(m T))",
                "cost": "8 projections, 8 halfspaces, 160 checked",
            },
        ),
    ),
    dropped={
        "hold": "keep the decision yourself, and observe the sum of the costs of the rounds and the constraint that was violated most",
        "predictable": "for randomised gradients use the policy bandit1 or bandit2",
        "geometry": "use the policy anytime-entropy",
    },
)
def anytime(
    domain: Domain,
    *,
    diameter: Setting | None = None,
    V: Setting | None = None,
    lam: Setting | None = None,
    modulus: Setting | None = None,
    form: Literal["distance", "value", "self-bounding"] = "distance",
    lipschitz: Setting | None = None,
    smoothness: Setting | None = None,
    drift: Setting = 0.0,
    margin: Setting = 0.0,
    halfspace: bool = True,
    cuts: int | None = None,
    window: int | Literal["auto"] | None = None,
    constraints: int | None = None,
    **through: Unpack[Through],
) -> Anytime | Windowed | Memories:
    """The default: reacts to a broken limit in the next round and needs no tuning.

    Parameters
    ----------
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    V
        The weight of the cost against violations. Default: 10 / (D |first gradient|). Values: above 0. Unit: 1 /
        cost.
    lam
        How fast the weight of violations grows. Default: 1 / (4 D^2). Values: above 0. Unit: 1 / squared action.
    modulus
        Strong convexity of the costs. Default: costs are merely convex. Values: above 0. Unit: cost per squared
        unit of action.
    form
        How a violation is measured. Values: distance, value (for noisy gradients) or self-bounding (with
        smoothness).
    lipschitz
        G, a Lipschitz constant of the constraints, for form='value'. Default: the policy does without it. Values:
        above 0. Unit: constraint per unit of action.
    smoothness
        M of self-bounding constraints: |grad g|^2 <= 2 M g. Default: constraints are not self-bounding. Values:
        above 0. Unit: constraint per squared unit of action.
    drift
        P, how far in all the feasible action may move. Values: 0 or above. Unit: action.
    margin
        r, the distance to keep from every constraint. Values: 0 or above. Unit: action.
    halfspace
        Project on the revealed halfspaces.
    cuts
        How many of the last violated halfspaces to keep. Default: 20, or 0 with drift. Values: a whole number, 0 or
        above. Unit: halfspaces.
    window
        Begin anew every so many rounds, because what is feasible changes; auto mixes several such memories.
        Default: everything is remembered. Values: a whole number, 1 or above, or auto. Unit: rounds.
    constraints
        k, how many constraints a round reveals; only checked. Default: any number. Values: a whole number, 1 or
        above. Unit: constraints.
    """
    D = diameter_of(domain, diameter)
    P, r = _nonnegative("drift", drift), _nonnegative("margin", margin)
    measure = form_for(form, lipschitz, smoothness)
    if form != "distance" and np.any(np.asarray(r) > 0.0):
        raise InputError(f"margin is a distance, for form='distance' only, not for {validate.show(form)}")
    moving = np.any(np.asarray(P) > 0.0)
    if moving and modulus is not None:
        raise validate.refused("drift must be 0 with modulus: short steps cannot follow an action that moves", drift)
    if moving and cuts is not None and validate.whole("cuts", cuts, 0):
        raise validate.refused("cuts must be 0 where the feasible action moves (drift): an old halfspace may not hold it", cuts)
    wide = np.sqrt(D * D + 2.0 * D * P) if moving else D
    _, kappa = measure.curvature(wide)
    room = 1.0 if modulus is None else 2.0  # the curved step's cross term is twice as large
    lam = validate.setting("lam", 1.0 / (2.0 * room * kappa) if lam is None else lam)  # theta = kappa lam = 1/2
    slots = slots_for(halfspace, cuts, bool(moving))
    record = Anytime(
        domain, measure, ExponentialPotential(lam), D, wide, np.maximum(D, domain.diameter()),
        told("V", V, None), r, told("modulus", modulus, None),
        slots,
    )  # fmt: skip
    if window is None:
        return record
    if moving or modulus is not None:
        raise InputError("window goes without drift and modulus: each says in its own way what changes, or must not")
    if isinstance(window, str):
        validate.one_of("window", window, ("auto",))
        if form != "distance":
            raise InputError(f"window='auto' is for form='distance' only, not for {validate.show(form)}: memories are weighed by distances")
        return memories(_side_by_side(record))
    return Windowed(record, float(validate.whole("window", window)))
