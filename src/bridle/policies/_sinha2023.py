"""BanditQ: rewards on the simplex, each arm promised a rate; with full information, or one arm pulled a round.

Costs are f_t(x) = -<r_t, x> with rewards r_t >= 0; constraints are g_{t,i}(x) = lam_i - r_{t,i} x_i with rates lam_i >= 0, one for each of
the N arms. With the queues Q of the round before,

    r'_i    = (V + Q_i) r_{t,i}
    Q_i    <- (Q_i + g_{t,i}(x_t))^+
    x_{t+1} = P(x_t + D r' / sqrt(2 S_t)),      S_t = sum of |r'_s|^2, D the simplex's diameter

V = F sqrt(T), F the largest |g| (1 for rewards up to 1 and probability vectors). The rewards are read from the costs' gradients; the
policy runs on any problem on a simplex with N constraints, but means something only on these. With ``feedback="bandit"`` one arm is pulled
a round, and its reward is all that is seen: `bridle.policies.sinha2023_arms`.

Guarantee: `banditq_bound`: regret and violation over every interval O(T^3/4), against x with r_{t,i} x_i >= lam_i in every round.
    Update and parameters as commonly stated, with any reward scale and simplex mass; the bound is proved for exactly this update.
Reference: A. Sinha. BanditQ: Fair Bandits with Guaranteed Rewards. arXiv:2304.05219, 2023.

>>> import numpy as np
>>> import bridle
>>> from bridle.core import Domain, Feedback
>>> record = bridle.policy("banditq", bridle.Simplex(2), horizon=1000).record
>>> state, r, rates, total = record.init(np.array([0.5, 0.5])), np.array([1.0, 0.8]), np.array([0.2, 0.4]), 0.0
>>> for _ in range(1000):
...     x = record.decide(state)
...     state, total = record.update(state, Feedback(x, -r @ x, -r, rates - r * x, -np.diag(r))), total + r * x
>>> (total / 1000).round(1)  # each arm earns its rate
array([0.5, 0.4])
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Unpack, cast

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain, Feedback
from bridle.domains.closed_form import SimplexSet
from bridle.learners import AdaGrad, AdaGradFrom, AdaGradNorm, Iterate
from bridle.ops import Array, Scalar, pos, vector
from bridle.policies.common import flat, told, unmet
from bridle.policies.entry import Configuration, Setting, Variant
from bridle.policies.registry import Through, registered
from bridle.policies.sinha2023_arms import PulledArms, arms_bound, pulled_arms


class ArmQueues(NamedTuple):
    """The queue of every arm, and the learner's state."""

    Q: Array
    learner: Iterate


class BanditQ(NamedTuple):
    """Run `learner` on the rewards (V + Q_i) r_i."""

    learner: AdaGradNorm | AdaGradFrom
    V: Scalar
    each: Array  # (N,): as many constraints as arms

    @property
    def domain(self) -> Domain:
        return self.learner.domain

    def init(self, x1: Array) -> ArmQueues:
        return ArmQueues(vector(x1, self.each), self.learner.init(x1))

    def decide(self, state: ArmQueues) -> Array:
        return self.learner.decide(state.learner)

    def update(self, state: ArmQueues, feedback: Feedback) -> ArmQueues:
        learner = self.learner.step(state.learner, (self.V + state.Q) * feedback.df)  # the queues before this round
        return ArmQueues(pos(state.Q + feedback.g), learner)


FEEDBACK = ("full", "bandit")


def either_bound(policy: Configuration[BanditQ] | Configuration[PulledArms], constants: Constants, t: float) -> Bound:
    """That of what the policy is shown."""
    if isinstance(policy.record, PulledArms):
        return arms_bound(policy, constants, t)
    return banditq_bound(policy, constants, t)


def banditq_bound(policy: Configuration[BanditQ], constants: Constants, t: float) -> Bound:
    """Where ``constants["rewards"]`` says that the problem is one of rewards, and the largest reward; for any V, at every t.

    F = rewards * mass, N arms. Since x* feasible has lam_i <= r_i x*_i, the rates sum to at most F, and (lam_i - r_i x_i)^2 is at most
    lam_i^2 + (r_i x_i)^2, so |g_t|^2 <= 2F^2. Hence |Q(t)|^2/2 - |Q(t-1)|^2/2 <= <Q(t-1), g_t(x_t)> + F^2, and
    <Q, g_t(x_t)> <= sum_i Q_i r_i (x*_i - x_i). With AdaGrad's regret c sqrt(S_t), c = 2 mass, and
    sqrt(S_t) <= rewards (q sqrt(t) + V sqrt(N t)), q the largest |Q| so far,

        |Q(t)|^2/2 + V Regret_t <= F^2 t + 2F q sqrt(t) + 2F V sqrt(N t).

    Regret_t >= -F t gives a quadratic inequality for q; an interval's violation is at most a queue's largest length.
    """
    record, why = policy.record, unmet(constants)
    rewards = constants.get("rewards")
    if why or rewards is None:
        return Bound(why=why or "the problem is not known to have costs -<r, x> and constraints lam_i - r_i x_i (constant `rewards`)")
    simplex = cast(SimplexSet, policy.domain)
    N, V, F = simplex.dim, record.V, rewards * simplex.mass
    root = np.sqrt(t)
    q = 2.0 * F * root + np.sqrt(6.0 * F * F * t + 2.0 * V * F * t + 4.0 * F * V * np.sqrt(N * t))
    regret = 2.0 * F * np.sqrt(N * t) + (F * F * t + 2.0 * F * q * root) / V
    return Bound(flat(np.minimum(regret, F * t)), interval=flat(np.minimum(q, F * t)))


PULLED = {
    "metric": "soft", "feedback": "value at the arm pulled", "randomised": True, "cost": "N^2 operations",
    "regret": "O(sqrt(N log N) T^3/4) in expectation", "violation": "soft O(T^3/4) in expectation",
}  # fmt: skip


@registered(
    reference="Sinha, arXiv 2023",
    regret="O(T^3/4)",
    violation="interval O(T^3/4)",
    bound=either_bound,
    reduces="all",
    metric="interval",
    rewards=True,
    domains=("simplex",),
    needs=("horizon", "bound"),
    variants=(Variant("feedback", "bandit", PULLED),),
)
def banditq(
    domain: Domain,
    *,
    horizon: Setting,
    bound: Setting = 1.0,
    V: Setting | None = None,
    feedback: Literal["full", "bandit"] = "full",
    seed: Setting = 0,
    **through: Unpack[Through],
) -> BanditQ | PulledArms:
    """Rewards on the simplex, a rate for each arm.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    bound
        The largest reward times the simplex's mass. Values: above 0. Unit: cost.
    V
        The weight of the reward against the queues. Default: bound sqrt(T). Values: above 0. Unit: constraint.
    feedback
        What is seen of a round. Values: full (every reward) or bandit (that of the arm pulled).
    seed
        The seed of the arms that are pulled with feedback='bandit'. Values: a whole number, 0 or above.
    """
    if not isinstance(domain, SimplexSet):
        raise validate.refused("domain must be a simplex for banditq, such as bridle.Simplex(3)", domain)
    T, F = validate.rounds("horizon", horizon), validate.setting("bound", bound)
    weight = told("V", V, F * T**0.5)
    if validate.one_of("feedback", feedback, FEEDBACK) == "bandit":
        return pulled_arms(domain, weight, F, seed)
    return BanditQ(AdaGrad(domain), weight, np.ones(domain.dim))
