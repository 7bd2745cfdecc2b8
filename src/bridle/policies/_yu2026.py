"""Yu, Lee, Lee 2026: limits on average without Slater's condition, at every t; the queue pays for what the learner may lose.

For limits that hold on average and for noisy values, as `soft` is, but with violation O(sqrt(t) log t) where no action has room to spare:
`soft` and `neely2017` have T^{3/4} there. With C = F + sigma, c = sqrt(2) G D / C, psi = 4 (e^{1/2} - 3/2) = 0.595, tau = (8 psi lam (1 +
c))^2, gam_t = lam / sqrt(t + tau), S_i = lam^2 at first, and all weights known before round t:

    w_i = gam_t (e^{gam_t Q_i} - 1),     p_t = (v / (G D)) grad f_t(x_t) + sum_i (w_i / C) grad g_{t,i}(x_t)
    x_{t+1} = P_X(x_t - D / sqrt(2 (|p_1|^2 + ... + |p_t|^2)) p_t)                                                   (AdaGrad)
    S_i <- S_i + w_i^2,     R_i = c (sqrt(S_i after) - sqrt(S_i before)) / ((1 - chi_t) w_i),     chi_t = 4 psi (1 + c) gam_t
    Q_i <- (Q_i + min(g_{t,i}(x_t)/C - R_i, 1/(2 gam_t)))^+

R_i is what the learner may lose for the weight w_i in this round. The queue pays it out of what was violated, so that a large weight costs
no regret: that is how the policy does without Slater's condition. The price of limit i is w_i G D / (v C), in cost per unit of constraint.

Noise. What is revealed may have errors of mean 0 whatever came before (`noise` >= the standard deviation of those of values; `lipschitz`
holds for gradients as revealed), or constraints may be drawn anew each round, and u is feasible if E g_t(u) <= 0. The bounds are then on
expectations, against an action fixed in advance. Errors need no largest size: readings beyond C/(2 gam_t) are cut to that.

With `clip` the policy is fed positive parts, and the bound is on hard violation (CCV) of exact constraints; then C = min(F, G D).

Guarantee: `yu_bound`; with k limits, l_t = ln(1 + t/tau), and H = (e^z - 1 + z)/2 where z + 1 - e^{-z} = 2 psi lam^2,

    Regret_t(u) <= G D (sqrt(2 t) + (k/v) (2 c lam + H l_t)),
    violation <= (C/lam) sqrt(t + tau) Y + (G D/sqrt(2)) sqrt((t + 6 sqrt(tau (t + tau)) - 6 tau) L) + [lam k C sqrt(t) + sigma sqrt(k t)],

    e^Y - 1 - Y = v t + v sqrt(2 t) + k (2 c lam + H l_t), L = ln(1 + (e^Y - 1)^2 l_t), and no terms in brackets without noise; with it L =
    2 ln(1 + 2 sqrt(t) (e^Y - 1)). That is O(sqrt(t) log t), without noise for any interval too. What it loses: where there is room
    to spare, `soft` and `neely2017` have no logarithm, and `soft` told nothing answers much sooner.
Reference: K. Yu, J. Lee, D. Lee. Constrained Online Convex Optimization without Slater's Condition. arXiv 2606.31480, 2026. Theirs are the
    exponential weights that fall as 1/sqrt(t), the charge R, and the orders of the bounds (sqrt(T) and sqrt(T) log T in expectation; with
    high probability too, and log T for strongly convex costs, which are not built here). Ours are e^y - 1 - y in place of e^y - 1, which
    makes the cut at 0 free, the shift tau with chi, which lets F alone set the unit, the start of S, the cut of large readings, all
    constants, and the proof below.

Proof. One limit, in units of C: r = g/C with E r^2 <= 1, Q before the round and q after it, gam = gam_t, y = gam Q, Phi(y) = e^y - 1 - y of
slope e^y - 1, d = min(gam (r - R), 1/2). Phi >= 0 = Phi(0), so that the cut at 0 only lowers it; e^d <= 1 + d + psi d^2 for d <= 1/2; so

    Phi(gam q) <= Phi(y + d) <= Phi(y) + w (r - R) + psi gam^2 (r^2 + 2 |r| R + R^2) e^y.

*gam falls*: from gam_{t-1} to gam_t takes away Phi(gam_{t-1} Q) - Phi(gam_t Q) >= (e^y - 1) y (gam_{t-1}/gam_t - 1) >= (e^y - 1) y/(2 (t +
tau)). With a = psi lam^2 the term in r^2 less that is at most H/(t + tau), because a e^y - (e^y - 1) y/2 is largest where y + 1 - e^{-y} =
2a. *The terms in R*: chi <= 1/2, hence R <= 2c. Where e^y >= 2 we have gam e^y <= 2w, and they are at most 4 psi gam (1 + c) w R = chi w R,
as E|r| <= 1. Where e^y < 2 we have w < gam, hence R <= c gam/lam = c/sqrt(t + tau), and they are at most 2 psi lam^2 (2 + c) c/(t +
tau)^{3/2}, in all rounds together lam c (2 + c)/(2 (1 + c)) <= lam c. *The learner*: (1 - chi) w R add up to c (sqrt(S_t) - lam), and
AdaGrad's regret on p is at most sqrt(2) D sqrt(sum |p|^2) <= v sqrt(2 t) + sum_i c sqrt(S_i) by Minkowski's inequality, where <p, x - u> >=
(v/(G D)) (f(x) - f(u)) + sum_i (w_i/C) (g_i(x) - g_i(u)) and E w_i g_i(u) <= 0, since w_i was settled before the round. In sum, pathwise
where nothing is random,

    (v/(G D)) Regret_t(u) + sum_i Phi(gam_t Q_i after round t) <= v sqrt(2 t) + k (2 c lam + H l_t).

Phi >= 0: the regret. Regret_t >= -G D t: E sum Phi <= A = Phi(Y), so that the longest queue has E gam_t Q <= Y (Jensen). Last, g <= C (q -
Q + R + what is cut). With S_t/S_{t-1} = e^{2s}, (1 - chi) R = c sqrt(tanh(s/2)) <= (c/2) sqrt(ln(S_t/S_{t-1})), and (1 - chi)^{-2} <= 1 + 6
chi: the sum of R is at most (c/2) sqrt((t + 6 sum chi) ln(S_t/lam^2)) by Cauchy and Schwarz, chi_s = sqrt(tau)/(2 sqrt(s + tau)); and w_s
<= gam_s (e^Y - 1), on average too, as e^y - 1 is concave in Phi(y). (r - b)^+ <= r^2/(4b) bounds what is cut by lam sqrt(t), which is
nothing for |r| <= 1. The errors themselves add up to sigma sqrt(k t).

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3)
>>> trace = bridle.play(bridle.policy_for("yu2026", problem), problem)
>>> bridle.soft_violation(trace) <= trace.policy.bound(problem.constants, 500).soft
True
"""

from __future__ import annotations

from math import exp as exponential
from math import sqrt
from typing import NamedTuple, Unpack

import numpy as np

from bridle import ops, validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback
from bridle.learners import Iterate
from bridle.learners.adagrad import AdaGradNorm
from bridle.learners.potentials import CAP
from bridle.ops import Array, Scalar, combine, exp, minimum, pos, vector
from bridle.policies._sinha2024 import BROKEN
from bridle.policies._soft import EXPECTED
from bridle.policies.common import at_least, capped_bound, clipped, diameter_of, flat, largest, most_behind, switch, unmet
from bridle.policies.entry import CLIPPED, Configuration, Setting
from bridle.policies.registry import Through, registered

PSI = 4.0 * (exponential(0.5) - 1.5)
"""e^d <= 1 + d + PSI d^2 for every d <= 1/2."""


class PaidQueueState(NamedTuple):
    """The learner's state; of every limit the queue, in units of C, and the sum of its squared weights; how many rounds there were."""

    learner: Iterate
    Q: Array
    S: Array
    rounds: Scalar


class PaidQueues(NamedTuple):
    """AdaGrad on a cost and constraints weighed by queues, each of which pays for what its weight may cost the learner."""

    learner: AdaGradNorm
    cost: Scalar  # v / (G D): the cost's weight
    unit: Scalar  # C
    charge: Scalar  # c = sqrt(2) G D / C
    lam: Scalar
    shift: Scalar  # tau
    clip: Scalar
    each: Array  # (k,): its length is the number of constraints

    @property
    def domain(self) -> Domain:
        return self.learner.domain

    def init(self, x1: Array) -> PaidQueueState:
        zeros = vector(x1, self.each)
        return PaidQueueState(self.learner.init(x1), zeros, zeros + self.lam * self.lam, 0.0)  # all runs count their rounds together

    def decide(self, state: PaidQueueState) -> Array:
        return self.learner.decide(state.learner)

    def rate(self, state: PaidQueueState) -> Scalar:
        """gam of the coming round."""
        return self.lam / ops.sqrt(state.rounds + 1.0 + self.shift)

    def weights(self, state: PaidQueueState) -> Array:
        """w of the coming round."""
        rate = self.rate(state)
        return rate * (exp(minimum(rate * state.Q, CAP)) - 1.0)

    def update(self, state: PaidQueueState, feedback: Feedback) -> PaidQueueState:
        (g, dg), w, rate = clipped(feedback, self.clip), self.weights(state), self.rate(state)
        learner = self.learner.step(state.learner, self.cost * feedback.df + combine(w / self.unit, dg))
        S, left = state.S + w * w, 1.0 - 4.0 * PSI * (1.0 + self.charge) * rate  # 1 - chi
        paid = self.charge * w / (left * (ops.sqrt(S) + ops.sqrt(state.S)))  # sqrt(S) - sqrt(S before) is w^2 / (their sum)
        return PaidQueueState(learner, pos(state.Q + minimum(g / self.unit - paid, 0.5 / rate)), S, state.rounds + 1.0)

    def move(self, state: PaidQueueState, x: Array) -> PaidQueueState:
        """The state with x in place of its next decision: AdaGrad's bound holds for the steps from it."""
        return state._replace(learner=self.learner.move(state.learner, x))

    def price(self, state: PaidQueueState) -> Array | None:
        """What a unit of each limit weighs in units of cost; none with the clip, where it weighs in violated rounds only."""
        return None if self.clip else self.weights(state) / (self.unit * self.cost)

    def alarm(self, state: PaidQueueState) -> Alarm | None:
        """That a queue is longer than the theorem lets it be with any probability to speak of; None while none is."""
        longest = float(np.max(np.asarray(self.lam * state.Q / (state.rounds + self.shift) ** 0.5)))
        if longest <= BROKEN:
            return None
        # E Phi(y) <= v (t + sqrt(2 t)) + k (2 c lam + H l_t), so that y beyond ln of all but t, plus BROKEN, has probability 10^-10.
        weighed = self.cost * self.unit * self.charge + len(self.each) * (2.0 * self.charge * self.lam + growth(PSI * self.lam**2))
        if longest <= BROKEN + np.log1p(np.max(np.asarray(weighed))):
            return None
        text = (
            f"the exponent of a limit's weight has reached {longest:.3g}, which the theorem rules out: no action satisfies the limits "
            "on average, or lipschitz or diameter is too small"
        )
        return Alarm(text, voids_bound=True)


def growth(a: Scalar) -> Scalar:
    """The largest a e^y - (e^y - 1) y/2 over y >= 0, rounded up: (e^y - 1 + y)/2 at the y with y + 1 - e^-y = 2 a.

    y + 1 - e^-y is concave, so that Newton's steps from 0 stay below that y; and what lies below it, put in for y in 2 a - 1 + e^-y, gives
    what lies above.

    >>> float(round(growth(0.5), 6))
    0.665183
    """
    least: Scalar = 0.0
    for _ in range(12):
        least = least + (2.0 * a - 1.0 + np.exp(-least) - least) / (1.0 + np.exp(-least))
    most = 2.0 * a - 1.0 + np.exp(-least)
    return 0.5 * (np.expm1(most) + most)


def exponent_at(A: Scalar) -> Scalar:
    """The y >= 0 with e^y - 1 - y = A, rounded up: Newton's steps from above stay above, as the left side is convex.

    >>> float(round(exponent_at(exponential(1.0) - 2.0), 6))
    1.0
    """
    y = np.log(2.0 * np.asarray(A) + 1.4)  # e^y/2 - y >= 1 - ln 2, so that e^y <= 2 (A + ln 2)
    for _ in range(30):
        y = y - (np.expm1(y) - y - A) / np.expm1(y)
    return y


def yu_bound(policy: Configuration[PaidQueues], constants: Constants, t: float) -> Bound:
    """The module's theorem with the record's own weights; with noise it is about expectations."""
    record, why, sigma = policy.record, unmet(constants), policy.parameters.get("noise", 0.0)
    F = None if why else largest(constants, record.clip)
    if F is None:
        return Bound(why=why or "the largest |g| is not known")
    G, D, k, C, c, lam, tau = (
        constants["lipschitz"], constants["diameter"], len(record.each), record.unit, record.charge, record.lam, record.shift,
    )  # fmt: skip
    far, size = record.learner.adaptivity(D), (F + sigma) / C  # sqrt(2) D, where the policy was told D
    if np.any(np.asarray(far * G) > np.asarray(c * C) * (1.0 + 1e-12)):
        return Bound(why="the Lipschitz constant or the diameter is more than the policy was told, so that the queues pay too little")
    if np.any(np.asarray(size) > 1.0 + 1e-12):
        return Bound(why="the largest |g| is more than the policy was told, so that the queues pay too little")
    elapsed = np.log1p(t / tau)
    own = record.cost * far * G * np.sqrt(t) + k * (2.0 * c * lam + growth(PSI * (lam * size) ** 2) * elapsed)
    behind = most_behind(constants, t)
    Y, random = exponent_at(own + record.cost * behind), bool(np.any(np.asarray(sigma) > 0.0))
    steep, counted = np.expm1(Y), t + 6.0 * np.sqrt(tau) * (np.sqrt(t + tau) - np.sqrt(tau))
    spread = 2.0 * np.log1p(2.0 * np.sqrt(t) * steep) if random else np.log1p(steep**2 * elapsed)
    paid, wait = 0.5 * c * C * np.sqrt(counted * spread), C * np.sqrt(t + tau) / lam
    if random:
        paid = paid + lam * size**2 * k * C * np.sqrt(t) + sigma * np.sqrt(k * t)
        return capped_bound(own / record.cost, wait * Y + paid, G * D, record.clip, t)._replace(why=EXPECTED)
    # What is known of regret is about the last round: only there may the queue be known to be shorter.
    last = exponent_at(own + record.cost * at_least(constants, behind))
    result = capped_bound(own / record.cost, wait * last + paid, G * D, record.clip, t)
    return result if record.clip else result._replace(interval=flat(np.minimum(wait * Y + paid, G * D * t)))


@registered(
    reference="Yu, Lee & Lee, arXiv 2026",
    regret="O(sqrt(T))",
    violation="soft O(sqrt(T) log T)",
    bound=yu_bound,
    reduces="all",
    metric="soft",
    needs=("lipschitz", "diameter", "bound"),
    variants=(CLIPPED,),
)
def yu2026(
    domain: Domain,
    *,
    lipschitz: Setting,
    bound: Setting,
    noise: Setting = 0.0,
    weight: Setting = 1.0,
    lam: Setting = 1.5,
    diameter: Setting | None = None,
    constraints: int = 1,
    clip: bool = False,
    **through: Unpack[Through],
) -> PaidQueues:
    """Limits held on average without Slater, noisy values; no horizon.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    bound
        F, the largest |g| on the domain, without errors. Values: above 0. Unit: constraint.
    noise
        sigma, the largest standard deviation of the error in constraint values. Values: 0 or above. Unit:
        constraint.
    weight
        v: how much costs weigh against limits; below 1 keeps limits closer and costs more. Values: above 0.
    lam
        How fast the weight of a limit grows with its queue: larger means limits closer and more regret. Values:
        above 0.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    clip
        Feed the positive part of the constraints.
    """
    G, F, sigma = validate.setting("lipschitz", lipschitz), validate.setting("bound", bound), validate.setting("noise", noise, zero=True)
    v, rate, D = validate.setting("weight", weight), validate.setting("lam", lam), diameter_of(domain, diameter)
    k, positive = constraints, switch("clip", clip)
    if positive and np.any(np.asarray(sigma) > 0.0):
        raise validate.refused("noise must be 0 with clip: positive parts of noisy values are biased upwards", noise)
    GD = G * D
    unit = np.minimum(F, GD) if positive else F + sigma
    c = sqrt(2.0) * GD / unit
    return PaidQueues(AdaGradNorm(domain, D), v / GD, unit, c, rate, (8.0 * PSI * rate * (1.0 + c)) ** 2, positive, np.ones(k))
