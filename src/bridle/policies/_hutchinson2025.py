"""Hutchinson, Alizadeh 2025: Polyak feasibility steps. One fixed constraint is never violated, and only its values at decisions are seen.

A gradient step, then the projection on what g, linearised at x_t, says must hold for g <= -rho (`level`), then the one on X:

    y = x_t - eta_t grad f_t(x_t),      r = g(x_t) + rho + <grad g(x_t), y - x_t>
    x_{t+1} = P_X(y - (r^+ / |grad g(x_t)|^2) grad g(x_t)),      eta_t = `step`, or less where that could not be proved safe

It must know that some v in X has g(v) <= -`slater`; x_1 (``play(..., x1=v)``, ``Session(policy, x1=v)``; the domain's centre if left out)
is best such a v, any x_1 with g(x_1) <= -rho serves. Several fixed constraints are one, their maximum; the same v must satisfy all of them.

``preset="theory"`` takes rho and eta from the proof; ``preset="practice"`` takes rho = G D / sqrt(T), at most slater/2, and
eta = D / (G sqrt(T)): regret is then far smaller in most games but not bounded in advance (a session's certificate bounds it afterwards).
Violation is zero with every preset, `step` and `level`, since steps are shortened where they could lead outside.

Guarantee: `polyak_bound`: where g(x_1) <= -rho, g(x_t) <= 0 in every round; from any x_1 the CCV is O(1). Regret is O(sqrt(T)) with the
    theory's constants.
Reference: S. Hutchinson, M. Alizadeh. Constrained Online Convex Optimization with Polyak Feasibility Steps. ICML 2025. Update as commonly
    stated; the constants, the tracked distance and the bound are this file's.

Proof. Let X_rho = {x in X : g(x) <= -rho}, d_t the distance of x_t to it, e_t = eta_t |grad f_t|, Delta = rho/G, and p_t the distance of
x_t to the halfspace H_t = {z : g(x_t) + rho + <grad g(x_t), z - x_t> <= 0}, which holds X_rho.
(1) On the way from x_t to v, g + rho has fallen to 0 after a share (g + rho) / (g + slater) of at most D, so d_t <= D (g(x_t) + rho)^+ /
    (g(x_t) + slater). With a = min(1, (slater - rho) / (G D)) and p_t >= (g(x_t) + rho)^+ / G that makes p_t >= a d_t.
(2) The point of X_rho nearest to x_t lies in H_t and in X, so  d_{t+1}^2 <= (d_t + e_t)^2 - ((p_t - e_t)^+)^2.  By (1), and because the
    right side with p_t = a d_t grows with d_t:  if d_t <= Delta and e_t <= least = a^2 Delta / (2 (1 + a)), then d_{t+1} <= Delta (for
    d_t > e_t/a it is at most d_t^2 (1 - a^2) + 2 d_t e_t (1 + a), else at most e_t^2 (1 + 1/a)^2 <= (a Delta / 2)^2).
(3) g(x_t) <= -rho + G d_t, so d_t <= Delta means g(x_t) <= 0. The policy keeps a number `far` >= d_t by (1) and (2), and e_t at most the
    larger of `least` and what (2) allows: so far <= Delta for good once it is, and it is from the first round on if g(x_1) <= -rho.
(4) From another x_1: while far > Delta, either e_t is what makes far_{t+1} <= Delta, or e_t <= least, and then as in (2)
    far_t^2 - far_{t+1}^2 >= a^2 far_t (far_t - Delta). So s_t = (far_t - Delta)^+ falls by (a^2/2) s_t or more in every round, and the CCV,
    at most G (s_1 + s_2 + ...), is at most 2 G s_1 / a^2.
    In a round that tells nothing of the constraint the policy stays where it is, at a cost of at most D |grad f_t| more regret.
(5) Let u be feasible and w = (1 - rho/slater) u + (rho/slater) v, which lies in X_rho and every H_t. With m_t the length of the move onto
    H_t,  <grad f_t, x_t - w> <= (|x_t - w|^2 - |x_{t+1} - w|^2 - m_t^2) / (2 eta_t) + eta_t |grad f_t|^2 / 2,  and <grad f_t, w - u> <=
    (rho/slater) D |grad f_t|. Sum: with the same eta in every round (which e_t <= least allows),
    Regret_T <= D^2 / (2 eta) + eta G^2 T / 2 + (rho/slater) G D T.

>>> import bridle
>>> problem = bridle.problem("fixed", horizon=1000, dim=3)
>>> trace = bridle.play(bridle.policy_for("hutchinson2025", problem, preset="practice"), problem)
>>> float(bridle.ccv(trace)), bool(bridle.regret(trace) < 200.0)
(0.0, True)
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback
from bridle.ops import Array, Scalar, dot, maximum, minimum, norm, pos, ratio, scalar, sqrt, where, worst
from bridle.policies.common import diameter_of, flat, unmet
from bridle.policies.entry import Configuration, Setting, Variant
from bridle.policies.registry import Through, registered

SLACK = 1e-9
"""Times G D: a constraint value may be off its promise by this much by rounding before it counts as broken."""


class PolyakState(NamedTuple):
    """The decision; `far`, which d_t is not above, and what it was in round 1; what (5) sums up; the round that broke a promise, or 0.

    `inverse` is the last 1/eta, `pull` the sum of all that it grew by, `spent` that of eta |grad f|^2 / 2 - m^2 / (2 eta), `slopes` that of
    |grad f|, and `unseen` the part of it in rounds that told nothing of the constraint.
    """

    x: Array
    far: Scalar
    first: Scalar
    inverse: Scalar
    pull: Scalar
    spent: Scalar
    slopes: Scalar
    unseen: Scalar
    broken: Scalar
    rounds: Scalar


class Polyak(NamedTuple):
    """Gradient steps, each followed by the feasibility step, never longer than is safe."""

    domain: Domain
    step: Scalar
    level: Scalar  # rho
    slater: Scalar
    lipschitz: Scalar
    diameter: Scalar

    @property
    def near(self) -> Scalar:
        """Delta: so near to X_rho every decision is feasible."""
        return self.level / self.lipschitz

    @property
    def share(self) -> Scalar:
        """a of the proof."""
        return minimum(1.0, (self.slater - self.level) / (self.diameter * self.lipschitz))

    @property
    def least(self) -> Scalar:
        """How far a gradient step may always go."""
        a = self.share
        return a * a * self.near / (2.0 * (1.0 + a))

    def init(self, x1: Array) -> PolyakState:
        zero = scalar(x1)
        far = self.diameter + zero
        return PolyakState(x1, far, far, zero, zero, zero, zero, zero, zero, zero)

    def decide(self, state: PolyakState) -> Array:
        return state.x

    def update(self, state: PolyakState, feedback: Feedback) -> PolyakState:
        g, dg = worst(feedback.g, feedback.dg)
        length, size, near = norm(dg), norm(feedback.df), self.near
        normal, over = ratio(1.0, length) * dg, g + self.level
        p = ratio(pos(over), length)
        nearest = self.diameter * pos(over) / maximum(g + self.slater, self.slater - self.level)  # (1)
        # Without a slope and at 0 it is no value of the constraint, whatever that is: the round told nothing of it, and no step is safe.
        seen = 1.0 - 1.0 * ((length == 0.0) & (g == 0.0))
        far = where(seen > 0.0, minimum(state.far, nearest), state.far)
        # (2) solved for e: as long as e <= p, else as long as far + e <= near.
        safe = where(far + p <= near, near - far, ratio(near * near - far * far + p * p, 2.0 * (far + p)))
        inverse = maximum(1.0 / self.step, size / maximum(safe, self.least))
        y = state.x - seen * feedback.df / inverse
        move = pos(ratio(over, length) + dot(normal, y - state.x))
        e = seen * size / inverse
        after = minimum(sqrt(pos((far + e) * (far + e) - pos(p - e) * pos(p - e))), self.diameter)
        slack = SLACK * self.lipschitz * self.diameter
        wrong = (seen > 0.0) & ((over > self.lipschitz * state.far + slack) | (pos(over) > length * nearest + slack))
        inverse = where(seen > 0.0, inverse, state.inverse)
        rounds = state.rounds + 1.0
        return PolyakState(
            self.domain.project(y - move * normal),
            after,
            where(state.rounds > 0.0, state.first, far),
            inverse,
            state.pull + pos(inverse - state.inverse),
            state.spent + 0.5 * (size * e - move * move * inverse),
            state.slopes + size,
            state.unseen + (1.0 - seen) * size,
            where(state.broken > 0.0, state.broken, wrong * rounds),  # type: ignore[arg-type]
            rounds,
        )

    def certified_regret(self, state: PolyakState) -> float:
        """(5) with the steps and gradients as they were; where steps grow shorter, each time by as much more as 1/eta grew.

        D is the domain's own: (5) needs nothing of what the policy was told but `slater`.
        """
        D = self.domain.diameter()
        moved = 0.5 * D * D * state.pull + state.spent
        return float(moved + self.level / self.slater * D * state.slopes + D * state.unseen)

    def alarm(self, state: PolyakState) -> Alarm | None:
        """That a constraint value contradicts what the policy was told; None while none does."""
        broken = np.asarray(state.broken)
        if not broken.any():
            return None
        t = broken[broken > 0.0].min()
        text = (
            f"in round {t:g} the constraint was not what the policy was promised: one that stays the same, with this Lipschitz constant, "
            "which some action satisfies by `slater`; no bound holds"
        )
        return Alarm(text, voids_bound=True)  # (1) to (4) rest on all three; an action without that much room may still be feasible


PRESETS = ("theory", "practice")


def _plain(value: Scalar) -> Scalar:
    return float(value) if np.ndim(value) == 0 else value


def polyak_bound(policy: Configuration[Polyak], constants: Constants, t: float) -> Bound:
    """The proof above. ``constants["first"]`` is what d_1 is not above, where the game has found it: 0 where g(x_1) <= -rho."""
    record = policy.record
    if why := unmet(constants, fixed=True):
        return Bound(why=why)
    G, D, slater = constants["lipschitz"], constants["diameter"], constants.get("slater") or 0.0
    if np.any(np.asarray(record.lipschitz) < G * (1.0 - 1e-12)):
        return Bound(why=f"the Lipschitz constant is {G:.4g}, more than the policy was told")
    if np.any(np.asarray(record.diameter) < D * (1.0 - 1e-12)):
        return Bound(why=f"the domain's diameter is {D:.4g}, more than the policy was told")
    if np.any(np.asarray(record.slater) > slater * (1.0 + 1e-12)):
        return Bound(why=f"no action is known to satisfy the constraint by what the policy was told (slater = {slater:.4g})")
    start = np.maximum(np.asarray(constants.get("first", D)) - flat(record.near), 0.0)
    ccv = flat(np.minimum(2.0 * G * start / flat(record.share) ** 2, G * D * t))
    if np.any(np.asarray(record.step) * G > np.asarray(record.least) * (1.0 + 1e-12)):
        return Bound(ccv=ccv, why="the step is longer than the proof of the regret bound allows, so that some steps may be shortened")
    eta = record.step
    regret = D * D / (2.0 * eta) + eta * G * G * t / 2.0 + record.level / record.slater * G * D * t
    return Bound(flat(np.minimum(regret + D * np.asarray(constants.get("unseen", 0.0)), G * D * t)), ccv=ccv)


@registered(
    reference="Hutchinson & Alizadeh, ICML 2025",
    regret="O(sqrt(T))",
    violation="0 from a Slater point, else O(1)",
    bound=polyak_bound,
    time_varying=False,
    paper_constraints="fixed",
    slater="required",
    cost="1 projection, 1 halfspace",
    needs=("horizon", "lipschitz", "slater", "diameter"),
    variants=(Variant("preset", "practice", {"regret": "-"}),),
)
def hutchinson2025(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    slater: Setting,
    diameter: Setting | None = None,
    preset: Literal["theory", "practice"] = "theory",
    level: Setting | None = None,
    step: Setting | None = None,
    **through: Unpack[Through],
) -> Polyak:
    """Polyak feasibility steps: a fixed constraint is never violated.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    slater
        The margin by which some action satisfies every constraint. Values: above 0. Unit: constraint.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    preset
        Which constants to start from. Values: theory (the theorem's) or practice (reacts at realistic horizons).
    level
        rho, how far below 0 the constraint is held. Default: that of the preset. Values: above 0 and below slater.
        Unit: constraint.
    step
        The step size. Default: that of the preset. Values: above 0. Unit: action per unit of gradient.
    """
    T, G, eps = validate.setting("horizon", horizon), validate.setting("lipschitz", lipschitz), validate.setting("slater", slater)
    D = diameter_of(domain, diameter)
    validate.one_of("preset", preset, PRESETS)
    if level is not None:
        rho = validate.setting("level", level)
    elif preset == "practice":
        rho = np.minimum(0.5 * eps, G * D / T**0.5)
    else:  # the best for a at its smallest, (eps - eps/2) / (G D), and eta as in (2) with 1 + a <= 2
        a = np.minimum(1.0, 0.5 * eps / (G * D))
        rho = np.minimum(0.5 * eps, D / a * (2.0 * G / ((a * a / (8.0 * G) + D / eps) * T)) ** 0.5)
    if np.any(np.asarray(rho) >= np.asarray(eps)):
        raise validate.refused(f"level must be below slater, {validate.show(slater)}", level)
    record = Polyak(domain, 1.0, _plain(rho), eps, G, D)
    if step is not None:
        return record._replace(step=validate.setting("step", step))
    longest = D / (G * T**0.5)  # no step is better for the regret, were it not for the constraint
    return record._replace(step=_plain(longest if preset == "practice" else np.minimum(longest, record.least / G)))
