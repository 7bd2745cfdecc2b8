"""Two points a round, values alone: no gradient is ever seen.

Around its decision x_t the policy tries two points, x_t + delta u_t and x_t - delta u_t, with u_t uniform on the unit sphere; both are
played, and the round costs the average of the two. Of the round it sees f_t and g_t at the two points (g_t the largest of k constraints)
and steps along the difference. With h_t = ((g_t)^+)^2, n the dimension of the domain X, and c the centre of a ball of radius r inside X,

    p_t     = lam e^{lam (Q_{t-1} + G^2 D^2)}                              weights known before the round
    psi_t   = V f_t + p_t h_t
    v_t     = (n / (2 delta)) (psi_t(x_t + delta u_t) - psi_t(x_t - delta u_t)) u_t
    Q_t     = Q_{t-1} + (h_t(x_t + delta u_t) + h_t(x_t - delta u_t)) / 2
    x_{t+1} = P(x_t - D' v_t / sqrt(2 S_t)),      S_t = sum of |v_s|^2, P on X shrunk to 1 - delta/r around c, D' its diameter

delta = r D / (4 (D + r) sqrt(T)),  V = 1 / (G D sqrt(T)),  lam = 1 / (12 w G^2 D^2)  with  w = n^2 / max(1, n - 1), about n. The weight
p_t must not depend on round t: one that did would make v_t a biased estimate. The directions come from a generator that is a part of the
state, so that a seed fixes a run on every engine and in every session; the adversary knows x_t when it chooses, and not u_t. The exponent
stops at 100, which the proof allows for.

Guarantee: `bandit2_bound`, in expectation over the directions, against every action that is fixed in advance and feasible in every round:
    regret O(sqrt(n T)), violation O(sqrt(n T ln T)), both of what was played. They hold for adversaries that adapt to past rounds.
Reference: two points go back to A. Agarwal, O. Dekel, L. Xiao, COLT 2010; a factor sqrt(n) in place of n to O. Shamir, JMLR 2017. That
    weights must be predictable has been overlooked more than once. Update, constants and proof are this file's.

Proof. Let E_t be the expectation over u_t given the past, b uniform in the unit ball of the hull's directions, f^(x) = E f(x + delta b) and
h^ likewise. Then E_t v_t = V grad f^_t(x_t) + p_t grad h^_t(x_t), as is known of the sphere. Let u be feasible, y = (1 - a) u + a c with
a = delta/r, which is in the shrunken domain.
(1) The two-point differences are odd functions of u_t with slopes of at most 2 delta G and 2 delta G (sqrt(h+) + sqrt(h-)). On the sphere
    the variance of a function is at most 1/(n - 1) of its mean squared slope (Poincare; for n = 1 take the function itself), so
    E_t |v^f_t|^2 <= w G^2  and  E_t |v^h_t|^2 <= 4 w G^2 E_t q_t,  q_t = (h+ + h-)/2, where v_t = V v^f_t + p_t v^h_t.
(2) AdaGrad: the sum of <v_t, x_t - y> is at most A sqrt(S_T), A = sqrt(2) D, and sqrt(S_T) <= V sqrt(2 sum |v^f|^2) + sqrt(2 p_T Z) with
    Z = sum p_t |v^h_t|^2, since p_t grows. A sqrt(2 p_T Z) <= tau Z + A^2 p_T / (2 tau), and E Z <= 4 w G^2 E Y for Y = sum p_t q_t.
(3) <grad f^_t(x_t), x_t - y> >= f^_t(x_t) - f^_t(y). For h more: grad h = 2 g^+ grad g, and <grad g(z), z - (y + delta b)> >=
    g(z) - g(y + delta b) at z = x_t + delta b, where y + delta b = (1 - a) u + a (c + r b), so that g(y + delta b) <= e = a G D.
    Hence <grad h^_t(x_t), x_t - y> >= 2 m^2 - 2 e m with m^2 = h^_t(x_t).
(4) From ball to sphere: f(x + delta u) is at most delta G E(1 - |b|) = delta G / (n + 1) above f^ on average, and
    sqrt(E_t q_t) <= m + z, z = delta G sqrt(E (1 - |b|)^2) = delta G sqrt(2 / ((n + 1)(n + 2))). So with any k < 2
    2 m^2 - 2 e m >= k E_t q_t - C,  C = (e + k z)^2 / (2 - k) + k z^2.
(5) Y >= e^{lam Q_T} - 1, since p_t >= lam e^{lam Q_t}; p_T <= lam e^{lam G^2 D^2} e^{lam Q_T}. Take tau = k / (8 w G^2): with the
    smoothed regret R^ against y,
    V E R^ + (k/2) (E e^{lam Q_T} - 1) <= V A G sqrt(2 w T) + (4 w G^2 A^2 / k + C T) lam e^{lam G^2 D^2} E e^{lam Q_T}.
    For k = 7/4 and the delta above C T <= 0.26 G^2 D^2, and the last factor is at most k/4: lam is chosen so. Therefore
    V E R^ + (k/4) E e^{lam Q_T} <= k/2 + 2 V G D sqrt(w T).
(6) E R_T <= E R^ + T delta G (1 + D/r), by (4), f^(y) <= f(y) + delta G n/(n + 1) and f(y) <= f(u) + a G D. So
    E Regret_T <= 2 G D sqrt(w T) + k/(2 V) + T delta G (1 + D/r),  the last term being G D sqrt(T) / 4.
    R^ >= -G D T, so by Jensen  E Q_T <= (1/lam) ln(2 + (4 V / k) (2 G D sqrt(w T) + G D T)), and the violation is at most sqrt(T Q_T).
    The same line bounds E e^{lam Q_T}, so that by Markov Q_T exceeds this by ln(1/s)/lam with probability at most s.
(7) Where the exponent stops at M, e^{lam Q} becomes the convex function that goes on straight from there; (5) and (6) hold as they are
    while the argument of the logarithm is at most e^M.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=1000, dim=3)
>>> policy = bridle.policy_for("bandit2", problem, seed=1)
>>> trace, bound = bridle.play(policy, problem), policy.bound(problem.constants, 1000)
>>> bool(bridle.regret(trace) < bound.regret), bool(bridle.ccv(trace) < bound.ccv)
(True, True)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain, Feedback, Tried, tried
from bridle.domains.inner_ball import InnerBall, Shrunk, inner_ball
from bridle.learners import AdaGradNorm, Iterate
from bridle.learners.random_stream import DrawStream, direction, seeded
from bridle.ops import Array, Scalar, along, exp, join, minimum, pos, scalar
from bridle.policies.common import flat, told, unmet
from bridle.policies.entry import Configuration, Setting
from bridle.policies.registry import registered

MOST = 100.0
"""Where the exponent stops."""

KEPT = 1.75
"""k of the proof: the share of the squared violation that the linearised regret keeps."""


class TwoPointState(NamedTuple):
    """The learner's state, the squared violation so far, the direction of the round to come, and the stream that it came from."""

    learner: Iterate
    Q: Scalar
    u: Array
    stream: DrawStream


class PointsAround(NamedTuple):
    """A policy that tries points around its decision, `delta` away in a random direction: `learner` decides, on the shrunken domain."""

    domain: Domain
    learner: AdaGradNorm
    V: Scalar
    lam: Scalar
    largest: Scalar  # the largest violation, or its square
    delta: Scalar
    dim: Scalar  # that of the domain's affine hull
    normals: Array | None
    origin: DrawStream

    def decide(self, state: Any) -> Array:
        """The point around which others are tried."""
        return self.learner.decide(state.learner)

    def passed_over(self, state: Any) -> Any:
        """The state after a round that was played and of which nothing will be told: its direction is not used again."""
        stream, u = direction(state.stream, self.normals)
        return state._replace(u=u, stream=stream)


class TwoPoint(PointsAround):
    """Run `learner` on what two values tell of V f_t + p_t ((g_t)^+)^2."""

    __slots__ = ()

    def init(self, x1: Array) -> TwoPointState:
        stream, u = direction(self.origin.for_runs(x1), self.normals)
        return TwoPointState(self.learner.init(self.learner.domain.project(x1)), scalar(x1), u, stream)

    def points(self, state: TwoPointState) -> Array:
        """The two points that are tried."""
        x, away = self.decide(state), self.delta * state.u
        return join([(x + away)[..., None, :], (x - away)[..., None, :]], -2)

    def update(self, state: TwoPointState, feedback: Feedback | Tried) -> TwoPointState:
        one, two = tried(feedback)
        h_one, h_two = squared_violation(one.g), squared_violation(two.g)
        p = self.lam * exp(minimum(self.lam * (state.Q + self.largest), MOST))
        slope = self.dim / (2.0 * self.delta) * (self.V * (one.f - two.f) + p * (h_one - h_two))
        stream, u = direction(state.stream, self.normals)
        return TwoPointState(self.learner.step(state.learner, slope * state.u), state.Q + 0.5 * (h_one + h_two), u, stream)


def squared_violation(g: Array) -> Scalar:
    """((g)^+)^2 of the largest constraint."""
    over = pos(along(g, "max"))
    return over * over


def dimension_factor(n: float) -> float:
    """w = n^2 / max(1, n - 1): E |v|^2 <= w G^2 for the two-point estimate of the gradient of a G-Lipschitz function."""
    return n * n / max(1.0, n - 1.0)


def within(ball: InnerBall, delta: Setting) -> Scalar:
    """How far points may be tried from the decision: less than there is room inside the domain."""
    away = validate.setting("delta", delta)
    if np.any(np.asarray(away) >= ball.radius):
        raise validate.refused(f"delta must be below {ball.radius:.6g}, the radius of the ball inside the domain", delta)
    return away


def shrunken_learner(domain: Domain, ball: InnerBall, away: Scalar) -> AdaGradNorm:
    """AdaGrad on the domain shrunk so far that every point within `away` of a decision is in the domain."""
    share = 1.0 - away / ball.radius
    return AdaGradNorm(Shrunk(domain, ball.middle, share), share * domain.diameter())


def bandit2_bound(policy: Configuration[TwoPoint], constants: Constants, t: float) -> Bound:
    """The proof above, with the record's own V and delta, in expectation; none where delta or t is too large for its lam."""
    record, why = policy.record, unmet(constants)
    if why:
        return Bound(why=why)
    ball, D, G = inner_ball(policy.domain), policy.domain.diameter(), constants["lipschitz"]
    if record.largest**0.5 * (1.0 + 1e-12) < G * D:
        return Bound(why=f"the Lipschitz constant is {G:.4g}, more than the policy was told")
    n, r, V, lam, delta = ball.dim, ball.radius, record.V, record.lam, record.delta
    w, e, z = dimension_factor(n), delta * G * D / r, delta * G * (2.0 / ((n + 1.0) * (n + 2.0))) ** 0.5
    C = (e + KEPT * z) ** 2 / (2.0 - KEPT) + KEPT * z * z
    if (8.0 * w * (G * D) ** 2 / KEPT + C * t) * lam * np.exp(lam * record.largest) > KEPT / 4.0 * (1.0 + 1e-12):
        return Bound(why=f"delta = {delta:.4g} is too large for {t:g} rounds")
    steps, trivial = 2.0 * G * D * np.sqrt(w * t), G * D * t
    regret = steps + KEPT / (2.0 * V) + t * delta * G * (1.0 + D / r)
    argument = np.log(2.0 + 4.0 * V / KEPT * (steps + trivial))
    if argument > MOST:
        return Bound(
            flat(np.minimum(regret, trivial)), why="V is so large that the potential's exponent may stop: violation is not bounded"
        )
    squared = np.minimum(argument / lam, G * D * trivial)
    return Bound(flat(np.minimum(regret, trivial)), ccv=flat(np.sqrt(t * squared)), squared=flat(squared))


@registered(
    reference="The bridle developers, This library 2026; Agarwal, Dekel & Xiao, COLT 2010; Shamir, JMLR 2017",
    regret="O(sqrt(d T)) in expectation",
    violation="O(sqrt(d T log T)) in expectation",
    bound=bandit2_bound,
    feedback="values at 2 points",
    needs=("horizon", "lipschitz"),
    randomised=True,
)
def bandit2(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    V: Setting | None = None,
    delta: Setting | None = None,
    seed: Setting = 0,
) -> TwoPoint:
    """Two points a round, values alone.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    V
        The weight of the cost against the potential's slope. Default: 1 / (G D sqrt(T)). Values: above 0. Unit: 1 /
        cost.
    delta
        How far from the decision points are tried. Default: the value of the theorem. Values: above 0 and below the
        radius of the ball inside the domain. Unit: action.
    seed
        The seed of the policy's own randomness. Values: a whole number, 0 or above.
    """
    ball, D = inner_ball(domain), domain.diameter()
    T, G = validate.rounds("horizon", horizon), validate.setting("lipschitz", lipschitz)
    away = ball.radius * D / (4.0 * (D + ball.radius) * T**0.5) if delta is None else within(ball, delta)
    largest = (G * D) ** 2
    return TwoPoint(
        domain,
        shrunken_learner(domain, ball, away),
        told("V", V, 1.0 / (G * D * T**0.5)),
        1.0 / (12.0 * dimension_factor(ball.dim) * largest),
        largest,
        away,
        float(ball.dim),
        ball.normals,
        seeded(seed, domain.dim),
    )
