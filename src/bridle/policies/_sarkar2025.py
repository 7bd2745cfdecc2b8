"""Sarkar, Sinha 2025: Algorithm 1 of Sinha & Vaze without a horizon, by a Lyapunov function that changes with time.

    Q(t) = Q(t-1) + beta (g_t(x_t))^+,      Phi_t(q) = e^{lam_t q} - 1,      lam_t = lam / sqrt(t),      beta = 1 / (sqrt(2) G D)
    p_t  = V beta grad f_t(x_t) + w_t beta grad (g_t)^+(x_t),                w_t = Phi_t'(Q(t)) = lam_t e^{lam_t Q(t)}
    x_{t+1} = P_X(x_t - D / sqrt(2 (|p_1|^2 + ... + |p_t|^2)) p_t)           (AdaGrad)

Of several constraints the worst counts. `sinha2024` is the same with lam_T throughout: it must be told T. It needs a Lipschitz constant;
`anytime`, which needs none, has squared distances in place of violations and halfspaces besides.

Guarantee: `sarkar_bound`; at every t, for any eta + eps < 1, with h = (1 - eta - eps)/2 and b = lam^2/(4 eta), where the policy was told
    G and D,

    Regret_t(u) <= (1/beta) (sqrt(t) + (eta + E_t)/V),     CCV_t <= (sqrt(t)/(lam beta)) ln(1 + (V beta G D t + V sqrt(t) + eta + E_t)/eps),

    where E_t = O(log t) is the sum of peak(b e^{lam_s beta G D}, h)/s, peak(a, h) = a if a <= h, else h e^{a/h - 1}. So regret is
    O(sqrt(t)) and the CCV O(sqrt(t) log t). Eta and eps are free: the function takes the best of some.
Reference: D. Sarkar, A. Sinha. Optimal Anytime Algorithms for Online Convex Optimization with Adversarial Constraints. arXiv 2510.22579,
    2025. Theirs are the time-varying exponential Lyapunov function under AdaGrad, and the orders sqrt(t) and sqrt(t) up to logarithms. The
    rate lam / sqrt(t), the weight at Q(t), all constants and the proof are ours, as their text was not at hand. Their updates for moving
    comparators and for predictions are not built here.

Proof. Let y_s = lam_s Q(s), z_s = lam_s Q(s-1), W = w_1^2 + ... + w_t^2, and Y = sum of w_s beta (g_s)^+. For a feasible u the learner's
regret and Minkowski's inequality give  V beta Regret_t(u) + Y <= V sqrt(t) + sqrt(W).  Weights need not grow: lam_s falls. But Phi_s is
convex, so that Phi_s(Q(s)) - Phi_s(Q(s-1)) <= w_s beta (g_s)^+, and going from lam_{s-1} to lam_s takes away Phi_{s-1}(Q(s-1)) -
Phi_s(Q(s-1)) >= z_s e^{z_s} (sqrt(s/(s-1)) - 1) >= z_s e^{z_s}/(2s). Added up, Y is at least each of two things: M - 1, with M the largest
e^{y_s}, as Y does not fall; and the sum of z_s e^{z_s}/(2s). And sqrt(W) <= eta M + W/(4 eta M) <= eta M + (lam^2/(4 eta)) sum of
e^{y_s}/s, because W is the sum of lam^2 e^{2 y_s}/s. Take eta + eps times the first and 1 - eta - eps times the second:

    V beta Regret_t(u) + eps (M - 1) <= V sqrt(t) + eta + sum of (1/s) (b e^{y_s} - h z_s e^{z_s}),

where y_s <= z_s + lam_s beta G D, so that the sum is at most E_t: (a - h z) e^z is largest at z = a/h - 1, or at 0. M >= 1: the regret.
Regret_t >= -G D t, and lam_t Q(t) <= ln M: the CCV.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3)
>>> trace = bridle.play(bridle.policy_for("sarkar2025", problem), problem)
>>> bridle.ccv(trace) <= trace.policy.bound(problem.constants, 500).ccv
True
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple, Unpack

import numpy as np

from bridle import ops, validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback
from bridle.learners import Iterate
from bridle.learners.adagrad import AdaGradNorm
from bridle.learners.potentials import ExponentialPotential
from bridle.ops import Array, Scalar, maximum, pos, scalar, worst
from bridle.policies._sinha2024 import BROKEN, LyapunovWeights
from bridle.policies.common import at_least, capped_bound, diameter_of, harmonic, most_behind, unmet
from bridle.policies.entry import Configuration, Setting
from bridle.policies.registry import Through, registered

SPLITS = tuple((eta / 20.0, eps / 20.0) for eta in range(1, 20) for eps in (0.0, 0.02, 0.2, 1.0, 2.0, 4.0) if eta + eps < 20)
"""The (eta, eps) among which the theorem takes the best; with eps = 0 it says nothing of violation."""


class TimeVaryingState(NamedTuple):
    """The scaled violation so far, the learner's state, Y of the proof, and how many rounds there were."""

    Q: Scalar
    learner: Iterate
    Y: Scalar
    rounds: Scalar


class TimeVaryingLyapunov(NamedTuple):
    """AdaGrad on surrogates that weigh the worst constraint by the slope of e^{lam q / sqrt(t)} at all violation so far."""

    learner: AdaGradNorm
    lam: Scalar
    V: Scalar
    beta: Scalar

    @property
    def domain(self) -> Domain:
        return self.learner.domain

    @property
    def violated_only(self) -> bool:
        """Whether the gradient of a constraint that is satisfied makes no difference."""
        return True

    def init(self, x1: Array) -> TimeVaryingState:
        return TimeVaryingState(scalar(x1), self.learner.init(x1), scalar(x1), 0.0)  # all runs count their rounds together

    def decide(self, state: TimeVaryingState) -> Array:
        return self.learner.decide(state.learner)

    def weigh(self, state: TimeVaryingState, g: Scalar) -> LyapunovWeights:
        """Q(t), and the surrogate's weights on the cost's gradient and on the constraint's."""
        Q, rate = state.Q + self.beta * pos(g), self.lam / ops.sqrt(state.rounds + 1.0)
        return LyapunovWeights(Q, self.V * self.beta, ExponentialPotential(rate).slope(Q) * self.beta * (g > 0.0), None)  # type: ignore[arg-type]

    def follow(self, state: TimeVaryingState, weights: LyapunovWeights, grad: Array) -> TimeVaryingState:
        """The state after the learner's step on the surrogate's gradient."""
        Y = state.Y + weights.constraint / self.beta * (weights.Q - state.Q)
        return TimeVaryingState(weights.Q, self.learner.step(state.learner, grad), Y, state.rounds + 1.0)

    def update(self, state: TimeVaryingState, feedback: Feedback) -> TimeVaryingState:
        g, dg = worst(feedback.g, feedback.dg)
        weights = self.weigh(state, g)
        return self.follow(state, weights, weights.cost * feedback.df + weights.constraint * dg)

    def move(self, state: TimeVaryingState, x: Array) -> TimeVaryingState:
        """The state with x in place of its next decision: AdaGrad's bound holds for the steps from it."""
        return state._replace(learner=self.learner.move(state.learner, x))

    def certified_regret(self, state: TimeVaryingState) -> float | None:
        """The proof's own upper bound on the regret so far, (c sqrt(sum |p|^2) - Y) / (V beta), c AdaGrad's constant."""
        c = self.learner.adaptivity(self.domain.diameter())
        return float((c * self.learner.squares(state.learner) ** 0.5 - state.Y) / (self.V * self.beta))

    def alarm(self, state: TimeVaryingState) -> Alarm | None:
        """Whether the accumulated violation has grown beyond what the theorem allows."""
        reached = float(np.max(np.asarray(self.lam * state.Q / maximum(state.rounds, 1.0) ** 0.5)))
        if reached <= BROKEN:
            return None
        V, lam = float(np.max(np.asarray(self.V))), float(np.max(np.asarray(self.lam)))
        if reached <= BROKEN + np.log1p(V + overshoot(0.5 * lam * lam, 0.2, lam / sqrt(2.0), 1)):  # eta = 1/2, eps = 1/10
            return None
        text = (
            f"the exponent lam*Q/sqrt(t) has reached {reached:.3g}, which the theorem rules out: no action satisfies every constraint, "
            "or lipschitz or diameter is too small"
        )
        return Alarm(text, voids_bound=True)


def sarkar_bound(policy: Configuration[TimeVaryingLyapunov], constants: Constants, t: float) -> Bound:
    """The proof above for any V and lam, at the best of `SPLITS`.

    Where G or D is not what the policy was told, m = c beta G, c AdaGrad's constant, stands before sqrt(t) and sqrt(W), and b = m^2 lam^2 /
    (4 eta).
    """
    record = policy.record
    if why := unmet(constants):
        return Bound(why=why)
    G, D, lam, V, beta = constants["lipschitz"], constants["diameter"], record.lam, record.V, record.beta
    m = record.learner.adaptivity(D) * beta * G
    behind = V * beta * at_least(constants, most_behind(constants, t))
    regret = violation = np.asarray(np.inf)
    for eta, eps in SPLITS:
        rest = eta + overshoot(m * m * lam * lam / (4.0 * eta), 0.5 * (1.0 - eta - eps), lam * beta * G * D, t)
        regret = np.minimum(regret, (m * np.sqrt(t) + rest / V) / beta)
        if eps > 0.0:
            violation = np.minimum(violation, np.sqrt(t) / (lam * beta) * np.log1p((behind + V * m * np.sqrt(t) + rest) / eps))
    return capped_bound(regret, violation, G * D, 1.0, t)


def overshoot(b: Scalar, h: float, step: Scalar, t: float, exact: int = 64) -> Scalar:
    """E_t: the sum of peak(b e^{step/sqrt(s)}, h)/s over s = 1, ..., t; past `exact` terms with that peak, the largest of them.

    >>> float(overshoot(0.5, 1.0, 0.0, 2))
    0.75
    """
    s = np.arange(1.0, min(t, exact) + 1.0)
    a = np.asarray(b)[..., None] * np.exp(np.asarray(step)[..., None] / np.sqrt(s))
    with np.errstate(over="ignore"):  # a peak without bound is a theorem that says nothing
        peaks = np.where(a <= h, a, h * np.exp(a / h - 1.0))
    return np.sum(peaks / s, axis=-1) + peaks[..., -1] * (harmonic(t) - harmonic(s[-1]))  # type: ignore[no-any-return]


@registered(
    reference="Sarkar & Sinha, arXiv 2025",
    regret="O(sqrt(T))",
    violation="O(sqrt(T) log T)",
    bound=sarkar_bound,
    needs=("lipschitz", "diameter"),
)
def sarkar2025(
    domain: Domain,
    *,
    lipschitz: Setting,
    lam: Setting = 1.0,
    V: Setting = 1.0,
    diameter: Setting | None = None,
    constraints: int | None = None,
    **through: Unpack[Through],
) -> TimeVaryingLyapunov:
    """Algorithm 1 without a horizon: a Lyapunov function that changes with time.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    lam
        The rate of the exponential potential in round 1; it falls as 1 / sqrt(t). Values: above 0.
    V
        The weight of the cost against the potential's slope. Values: above 0.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    constraints
        k, how many constraints a round reveals; only checked, since the worst of any number counts. Default: any
        number. Values: a whole number, 1 or above. Unit: constraints.
    """
    G, D = validate.setting("lipschitz", lipschitz), diameter_of(domain, diameter)
    rate, weight = validate.setting("lam", lam), validate.setting("V", V)
    return TimeVaryingLyapunov(AdaGradNorm(domain, D), rate, weight, 1.0 / (sqrt(2.0) * G * D))
