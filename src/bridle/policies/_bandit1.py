"""One point a round, values alone: the least that can be seen of a round.

Around x_t the policy plays one point z_t = x_t + delta u_t, u_t uniform on the unit sphere, and sees f_t(z_t) and g_t(z_t) (the largest of
k constraints). With n the dimension of the domain X, c the centre of a ball of radius r inside X, and F the largest |g|,

    w_t     = lam e^{lam (Q_{t-1} + F)}                                    weights known before the round
    v_t     = (n / delta) (V f_t(z_t) + w_t (g_t(z_t))^+) u_t
    Q_t     = Q_{t-1} + (g_t(z_t))^+
    x_{t+1} = P(x_t - D' v_t / sqrt(2 S_t)),      S_t = sum of |v_s|^2, P on X shrunk to 1 - delta/r around c, D' its diameter

With K = sqrt(2) D n F sqrt(T) / delta, which is what steps on constraints cost, and B = T delta G (D/r + 1/(n + 1)), what trying does,

    delta = sqrt(sqrt(2) D n F / (G (1 + D/r))) T^{-1/4}, at most r/2,      lam = V = 1 / (2 (K + B + F))

How large costs are need not be told. Any V > 0 is covered: a larger one lowers the bound on regret, by up to 1/lam, and lets limits be
broken for longer at first. A point's value moves every step by itself, however flat the functions are, so that this is a last resort: two
points a round (`bandit2`) have sqrt(T) where one has T^{3/4}. The directions are those of a generator that is a part of the state, as
`bandit2` has it.

Guarantee: `bandit1_bound`, in expectation over the directions, against every action that is fixed in advance and feasible in every round:
    regret O(sqrt(n) T^{3/4}), violation O(sqrt(n) T^{3/4} log T), both of what was played, against adversaries that adapt to past rounds.
Reference: one point goes back to A. Flaxman, A. Kalai, B. McMahan, SODA 2005. Update, constants and proof are this file's.

Proof. As for `bandit2`: f^ and g^ are the means of f and g^+ over the ball of radius delta, E_t v_t = V grad f^_t + w_t grad g^_t, and
y = (1 - a) u + a c, a = delta/r, for a feasible u.
(1) AdaGrad: the sum of <v_t, x_t - y> is at most sqrt(2) D sqrt(S_T), and |v_t| <= (n/delta) (V C + w_t F), C the largest |f_t(z_t)|. So
    it is at most V K' + w_T K, where K' is K with C in place of F.
(2) E_t f_t(z_t) <= f^_t(x_t) + delta G/(n + 1), E_t (g_t(z_t))^+ <= g^_t(x_t) + delta G/(n + 1), and y + delta b is a point between u and
    one of X, so that g^_t(y) <= a G D. By convexity, with the smoothed regret R^ against y,
    V E R^ + E sum w_t (g_t(z_t))^+ <= E V K' + E w_T (K + B).
(3) w_t >= lam e^{lam Q_t}, so the sum on the left is at least e^{lam Q_T} - 1, and w_T <= lam e^{lam F} e^{lam Q_T}, where
    lam e^{lam F} (K + B) <= 1/2: with s = F / (2 (K + B + F)), e^s <= 1 / (1 - s). So  V E R^ + E e^{lam Q_T} / 2 <= 1 + V E K'.
(4) E R_T <= E R^ + T delta G (1 + D/r), as for `bandit2`; R^ >= -G D T. Hence
    E Regret_T <= E K' + 1/V + T delta G (1 + D/r),   E CCV_T <= (1/lam) ln(2 + 2 V (E K' + G D T)).
    The exponent stops at 100, as there.

>>> import bridle
>>> session = bridle.Session(bridle.policy("bandit1", bridle.Ball(2), horizon=2000, lipschitz=1.0, bound=1.0))
>>> for _ in range(2000):
...     x = session.decide()
...     session.observe(f=x[0], g=-x[0] - 0.2)  # as small as the limit -0.2 allows; values alone
>>> bool(-0.45 < session.cost / 2000 < -0.15), bool(session.ccv < 800.0)
(True, True)
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback, Tried, tried
from bridle.domains.inner_ball import inner_ball
from bridle.learners import Iterate
from bridle.learners.random_stream import DrawStream, direction, seeded
from bridle.ops import Array, Scalar, absolute, along, exp, maximum, minimum, pos, scalar
from bridle.policies._bandit2 import MOST, PointsAround, shrunken_learner, within
from bridle.policies.common import flat, told, unmet
from bridle.policies.entry import Configuration, Setting
from bridle.policies.registry import registered


class OnePointState(NamedTuple):
    """The learner's state, the violation, the largest |f| and (g)^+ so far, the next direction, and the stream that it came from."""

    learner: Iterate
    Q: Scalar
    observed_cost: Scalar
    worst: Scalar
    u: Array
    stream: DrawStream


class OnePoint(PointsAround):
    """Run `learner` on what one value tells of V f_t + w_t (g_t)^+; the largest violation is F."""

    __slots__ = ()

    def init(self, x1: Array) -> OnePointState:
        stream, u = direction(self.origin.for_runs(x1), self.normals)
        return OnePointState(self.learner.init(self.learner.domain.project(x1)), scalar(x1), scalar(x1), scalar(x1), u, stream)

    def points(self, state: OnePointState) -> Array:
        """The point that is tried."""
        return (self.decide(state) + self.delta * state.u)[..., None, :]

    def update(self, state: OnePointState, feedback: Feedback | Tried) -> OnePointState:
        (seen,) = tried(feedback)
        violation = pos(along(seen.g, "max"))
        w = self.lam * exp(minimum(self.lam * (state.Q + self.largest), MOST))
        slope = self.dim / self.delta * (self.V * seen.f + w * violation)
        stream, u = direction(state.stream, self.normals)
        cost, worst = maximum(state.observed_cost, absolute(seen.f)), maximum(state.worst, violation)
        return OnePointState(self.learner.step(state.learner, slope * state.u), state.Q + violation, cost, worst, u, stream)

    def alarm(self, state: OnePointState) -> Alarm | None:
        """That a limit was broken by more than the policy was told; None while none was."""
        worst, told = np.max(state.worst), np.min(self.largest)
        if worst <= told * (1.0 + 1e-9):
            return None
        return Alarm(f"a constraint's value of {worst:.4g} was seen, and the policy was told {told:.4g}; no bound holds", voids_bound=True)


def _costs(T: Scalar, G: Scalar, F: Scalar, D: float, r: float, n: float, delta: Scalar) -> tuple[Scalar, Scalar]:
    """K and B of the proof, or K' where F is the largest cost."""
    return sqrt(2.0) * D * n * F * T**0.5 / delta, T * delta * G * (D / r + 1.0 / (n + 1.0))


def bandit1_bound(policy: Configuration[OnePoint], constants: Constants, t: float) -> Bound:
    """The proof above, with the record's own V, delta and lam, in expectation.

    ``constants["bound"]`` is the largest |g|, at most F, and ``constants["observed_cost"]`` the largest |f| that a game has seen, C.
    """
    record, why = policy.record, unmet(constants)
    if why:
        return Bound(why=why)
    ball, D, G, F = inner_ball(policy.domain), policy.domain.diameter(), constants["lipschitz"], record.largest
    if "observed_cost" not in constants:
        return Bound(why="how large costs are shows in a game only (constant `observed_cost`)")
    if np.any(constants.get("bound", np.inf) > F * (1.0 + 1e-9)):
        return Bound(why="the largest |g| is not known, or is more than the policy was told")
    n, r, V, lam, delta = float(ball.dim), ball.radius, flat(record.V), flat(record.lam), flat(record.delta)
    steps, trying = _costs(t, G, flat(F), D, r, n, delta)
    if np.any(lam * np.exp(lam * flat(F)) * (steps + trying) > 0.5 * (1.0 + 1e-12)):
        return Bound(why=f"the Lipschitz constant is {G:.4g}, more than the policy was told")
    trivial = G * D * t
    on_costs, _ = _costs(t, G, constants["observed_cost"], D, r, n, delta)
    regret = flat(np.minimum(on_costs + 1.0 / V + t * delta * G * (1.0 + D / r), trivial))
    argument = np.log(2.0 + 2.0 * V * (on_costs + trivial))
    if np.any(argument > MOST):
        return Bound(regret, why="V is so large that the potential's exponent may stop: violation is not bounded")
    return Bound(regret, ccv=flat(np.minimum(argument / lam, np.minimum(trivial, flat(F) * t))))


@registered(
    reference="The bridle developers, This library 2026; Flaxman, Kalai & McMahan, SODA 2005",
    regret="O(sqrt(d) T^3/4) in expectation",
    violation="O(sqrt(d) T^3/4 log T) in expectation",
    bound=bandit1_bound,
    feedback="values at 1 point",
    needs=("horizon", "lipschitz", "bound"),
    randomised=True,
)
def bandit1(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    bound: Setting,
    V: Setting | None = None,
    delta: Setting | None = None,
    seed: Setting = 0,
) -> OnePoint:
    """One point a round, values alone.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    bound
        F, the largest |g| on the domain. Values: above 0. Unit: constraint.
    V
        The weight of the cost against the potential's slope. Default: lam, the rate of the exponential potential.
        Values: above 0. Unit: 1 / cost.
    delta
        How far from the decision points are tried. Default: the value of the theorem. Values: above 0 and below the
        radius of the ball inside the domain. Unit: action.
    seed
        The seed of the policy's own randomness. Values: a whole number, 0 or above.
    """
    ball, D = inner_ball(domain), domain.diameter()
    T, G, F = validate.rounds("horizon", horizon), validate.setting("lipschitz", lipschitz), validate.setting("bound", bound)
    n, r = float(ball.dim), ball.radius
    best = (sqrt(2.0) * D * n * F / (G * (1.0 + D / r))) ** 0.5 * T**-0.25
    away = minimum(best, 0.5 * r) if delta is None else within(ball, delta)
    lam = 0.5 / (sum(_costs(T, G, F, D, r, n, away)) + F)
    return OnePoint(
        domain,
        shrunken_learner(domain, ball, away),
        told("V", V, lam),
        lam,
        F,
        away,
        n,
        ball.normals,
        seeded(seed, domain.dim),
    )
