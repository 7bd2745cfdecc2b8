"""BanditQ with bandit feedback: one arm is pulled a round, its reward is all that is seen, and each arm is promised a rate.

As in `bridle.policies._sinha2023` costs are f_t(x) = -<r_t, x> with rewards between 0 and R, on the simplex of mass m, and constraints
g_{t,i}(x) = lam_i - r_{t,i} x_i, one for each of N arms. The policy draws arm i with the chance x_{t,i} / m and plays its corner m e_i,
where the values tell the reward of this arm, and the rates of all. With F = R m, and the queues Q of the round before,

    C_t     = (F/m) (V + max_i Q_i)                                        no arm's (V + Q_i) r_{t,i} is above it
    x_t     = m times the weights  e^{-eta_t L_i} / sum,      eta_t^2 = ln N / (N sum_{s<=t} C_s^2)
    L_i    <- L_i + (C_t - (V + Q_i) r_{t,i}) m / x_{t,i}  for the arm that was pulled
    Q      <- (Q + g_t(m e_i))^+

V = F sqrt(T). The adversary knows x_t when it chooses the rewards, and not the arm.

Guarantee: `arms_bound`, in expectation over the arms, against every x fixed in advance with r_{t,i} x_i >= lam_i in every round: regret
    O(sqrt(N ln N) T^{3/4}), and the sum of each constraint O(T^{3/4}), both of the arms that were pulled. None over the worst interval of a
    run: the largest of many queues in time may be more than each of them is in expectation.
Reference: A. Sinha. BanditQ: Fair Bandits with Guaranteed Rewards. arXiv:2304.05219, 2023, whose bandit form has a learner of its own; the
    exponential weights, with the losses measured from C_t down so that they are not negative, and the proof, are this file's.

Proof. Let l_{t,i} = C_t - (V + Q_i) r_{t,i} >= 0 and p = x_t / m; its estimate has the mean l_t, and E_t sum_i p_i (estimate)_i^2 =
sum_i l_{t,i}^2 <= N C_t^2. C_t and eta_t are known before round t, and eta_t falls, so exponential weights have (Bubeck and Cesa-Bianchi
2012, Theorem 3.1)  E sum <l_t, p_t - p> <= E [ln N / eta_T + sum (eta_t/2) N C_t^2] <= 2 E sqrt(N ln N sum C_t^2)  for every p.
As in `banditq_bound`, |g_t(m e_i)|^2 <= 2F^2, so  |Q(t)|^2/2 - |Q(t-1)|^2/2 <= <Q(t-1), g_t(m e_i)> + F^2, the mean of the first being at
most sum_i Q_i r_i (u_i - x_i) for a feasible u. Adding V (f_t(x_t) - f_t(u)), where C_t drops out,

    E |Q(t)|^2/2 + V E Regret_t <= F^2 t + 2 F sqrt(N ln N) (V sqrt(t) + sqrt(sum of E |Q(s)|^2 over s < t)).

With Z the largest sqrt(E |Q(s)|^2) up to t, Regret_t >= -F t, and b = 2 F sqrt(N ln N t):  Z^2/2 <= F^2 t + V F t + V b + Z b,  so
Z <= b + sqrt(b^2 + 2 (F^2 t + V F t + V b)), and  E Regret_t <= F^2 t / V + b (1 + Z/V). A sum of g_{t,i} is at most Q_i(t).

>>> import numpy as np
>>> import bridle
>>> session = bridle.Session(bridle.policy("banditq", bridle.Simplex(2), horizon=4000, feedback="bandit", seed=1))
>>> rewards, rates, earned = np.array([1.0, 0.8]), np.array([0.2, 0.3]), np.zeros(2)
>>> for _ in range(4000):
...     arm = session.decide()  # a corner: one arm is pulled
...     session.observe(f=-rewards @ arm, g=rates - rewards * arm)
...     earned += rewards * arm
>>> bool((earned / 4000 > [0.2, 0.27]).all())  # each arm earns its rate, or nearly
True
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from bridle.core import Bound, Constants, Feedback, Tried, tried
from bridle.domains.closed_form import SimplexSet
from bridle.learners.base import Setting
from bridle.learners.random_stream import DrawStream, seeded, uniform
from bridle.ops import Array, Scalar, along, dot, exp, log, minimum, onehot, pos, ratio, scalar, sqrt, vector
from bridle.policies.common import flat, unmet
from bridle.policies.entry import Configuration


class PulledArmState(NamedTuple):
    """The queues, the sums of estimated losses and of C_s^2, this round's too, the arm to be pulled as a unit vector, and the stream."""

    Q: Array
    losses: Array
    squares: Scalar
    arm: Array
    stream: DrawStream


class PulledArms(NamedTuple):
    """Exponential weights on the losses C_t - (V + Q_i) r_i, of which one a round is seen."""

    domain: SimplexSet
    V: Scalar
    largest: Scalar  # F
    each: Array  # (N,): as many constraints as arms
    below: Array  # (N, N): 1 where the row is at most the column
    origin: DrawStream

    def init(self, x1: Array) -> PulledArmState:
        zero = vector(x1, self.each)
        state = PulledArmState(zero, zero, scalar(x1), zero, self.origin.for_runs(x1))
        return self._drawn(state._replace(squares=scalar(x1) + self.top(zero) * self.top(zero)))

    def top(self, Q: Array) -> Scalar:
        """C_t: no reward that the learner sees is above it."""
        return self.largest / self.domain.mass * (self.V + along(Q, "max"))

    def weights(self, state: PulledArmState) -> Array:
        """With what chance each arm is pulled."""
        eta = sqrt(ratio(log(1.0 * self.each.shape[-1]), self.each.shape[-1] * state.squares))
        weights = exp(-eta * (state.losses - along(state.losses, "min")))
        shares: Array = weights / along(weights, "sum")
        return shares

    def _drawn(self, state: PulledArmState) -> PulledArmState:
        """The state with the arm of the round to come: the first whose chance, with all before it, is above a number drawn from 0 to 1."""
        stream, u = uniform(state.stream)
        upto = self.weights(state) @ self.below
        place = along(upto <= u, "sum")
        return state._replace(arm=onehot(minimum(place, self.each.shape[-1] - 1.0), state.Q), stream=stream)

    def decide(self, state: PulledArmState) -> Array:
        """With what chance each arm is pulled, times the simplex's mass."""
        return self.domain.mass * self.weights(state)

    def points(self, state: PulledArmState) -> Array:
        """The corner of the arm that is pulled."""
        return (self.domain.mass * state.arm)[..., None, :]

    def update(self, state: PulledArmState, feedback: Feedback | Tried) -> PulledArmState:
        (seen,) = tried(feedback)
        chance = dot(state.arm, self.weights(state))
        loss = (
            self.top(state.Q) + (self.V + dot(state.arm, state.Q)) * seen.f / self.domain.mass
        )  # a cost is minus the reward, times the mass
        losses = state.losses + ratio(loss, chance) * state.arm
        Q = pos(state.Q + seen.g)
        top = self.top(Q)
        return self._drawn(PulledArmState(Q, losses, state.squares + top * top, state.arm, state.stream))

    def passed_over(self, state: PulledArmState) -> PulledArmState:
        """The state after a round that was played and of which nothing will be told: another arm is drawn."""
        return self._drawn(state)


def pulled_arms(domain: SimplexSet, V: Scalar, largest: Scalar, seed: Setting) -> PulledArms:
    """The policy for these queues' weight and this largest reward times the mass."""
    N = domain.dim
    return PulledArms(domain, V, largest, np.ones(N), np.triu(np.ones((N, N))), seeded(seed, 1))


def arms_bound(policy: Configuration[PulledArms], constants: Constants, t: float) -> Bound:
    """The proof above, for any V, at every t, where ``constants["rewards"]`` says that the problem is one of rewards, and the largest."""
    record, why, rewards = policy.record, unmet(constants), constants.get("rewards")
    if why or rewards is None:
        return Bound(why=why or "the problem is not known to have costs -<r, x> and constraints lam_i - r_i x_i (constant `rewards`)")
    simplex = cast(SimplexSet, policy.domain)
    N, V, F = simplex.dim, record.V, record.largest
    if rewards * simplex.mass > F * (1.0 + 1e-12):
        return Bound(why=f"the largest reward times the mass is {rewards * simplex.mass:.4g}, more than the policy was told")
    b = 2.0 * F * np.sqrt(N * np.log(N) * t)
    Z = b + np.sqrt(b * b + 2.0 * (F * F * t + V * F * t + V * b))
    regret = F * F * t / V + b * (1.0 + Z / V)
    return Bound(flat(np.minimum(regret, F * t)), soft=flat(np.minimum(Z, F * t)))
