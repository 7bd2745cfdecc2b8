"""Sinha & Vaze 2024, Algorithm 2: constraints only (online constraint satisfaction).

There are no costs, and nothing is clipped: every constraint has a queue, and a learner runs on the surrogates 2 sum_i Q_i(t) g_{t,i}:

    Q_i(t)  = (Q_i(t-1) + g_{t,i}(x_t))^+                   (line 6)
    p_t     = 2 sum_i Q_i(t) grad g_{t,i}(x_t)              (line 7)
    x_{t+1} = the learner's next decision after p_t         (line 8)

Guarantee: `theorem4` and `theorem5` are the paper's; `ocs_bound` is the sharper explicit form for the same algorithm, with its proof.
Reference: A. Sinha, R. Vaze. Optimal Algorithms for Online Convex Optimization with Adversarial Constraints. NeurIPS 2024.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3)
>>> trace = bridle.play(bridle.policy_for("sinha2024-ocs", problem), problem)
>>> bool(bridle.interval_violation(trace) <= ocs_bound(trace.policy, problem.constants, 500).interval)
True
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple, Unpack, cast

import numpy as np

from bridle.core import Bound, Constants, Domain, Feedback, Learner
from bridle.learners import AdaGradNorm, moved
from bridle.ops import Array, combine, pos, vector
from bridle.policies._sinha2024 import REFERENCE, departure
from bridle.policies.common import diameter_of, excess, harmonic
from bridle.policies.entry import Configuration, Setting
from bridle.policies.reduction_parts import NOT_ADAPTIVE, learner_for
from bridle.policies.registry import Through, registered

STEPS = 400
"""How many steps of the recursion of `queue_bound` are taken one by one."""


class QueueState(NamedTuple):
    """The queue of every constraint, and the learner's state."""

    Q: Array
    learner: object


class QueueWeights(NamedTuple):
    """Q(t), and the surrogate's weights on grad f_t (none) and on every grad g_{t,i}."""

    Q: Array
    cost: float
    constraint: Array


class ConstraintSatisfaction(NamedTuple):
    """Algorithm 2 as a record: a learner runs on the constraints alone, each weighed by its own queue.

    The surrogate of a round is ``2 sum_i Q_i(t) g_{t,i}``. All k constraints stay apart, because their maximum is not S-feasible.
    `bridle.policy` makes it under the name "sinha2024-ocs".

    Parameters
    ----------
    learner : Learner
        The OCO algorithm inside.
    each : array of shape (k,)
        Its length is how many constraints a round reveals.

    Examples
    --------
    >>> import bridle, numpy as np
    >>> policy = ConstraintSatisfaction(bridle.AdaGrad(bridle.Ball(2)), np.ones(1))
    >>> bridle.play(policy, "fixed", horizon=100).rounds
    100
    """

    learner: Learner[Any]
    each: Array  # (k,): its length is the number of constraints

    @property
    def domain(self) -> Domain:
        """Where decisions are made: the learner's domain."""
        return self.learner.domain

    def init(self, x1: Array) -> QueueState:
        """The state before the first round."""
        return QueueState(vector(x1, self.each), self.learner.init(x1))  # line 3

    def decide(self, state: QueueState) -> Array:
        """The decision in a state."""
        return self.learner.decide(state.learner)  # line 5

    def move(self, state: QueueState, x: Array) -> QueueState | None:
        """The state with another point in place of its next decision.

        Returns None where the learner keeps no iterate.
        """
        learner = moved(self.learner, state.learner, x)
        return None if learner is None else state._replace(learner=learner)

    def weigh(self, state: QueueState, g: Array) -> QueueWeights:
        """Line 6 of the algorithm, and the weights on the constraints' gradients; the cost has none.

        Returns the queues after the round, and the weights.
        """
        Q = pos(state.Q + g)  # signed, not clipped
        return QueueWeights(Q, 0.0, 2.0 * Q)

    def follow(self, state: QueueState, weights: QueueWeights, grad: Array) -> QueueState:
        """Lines 7 and 8 of the algorithm: the state after the learner's step on a surrogate's gradient.

        Parameters
        ----------
        state : QueueState
            The state before the round.
        weights : QueueWeights
            What `weigh` gave.
        grad : array of shape (d,)
            The surrogate's gradient.
        """
        return QueueState(weights.Q, self.learner.step(state.learner, grad))

    def update(self, state: QueueState, feedback: Feedback) -> QueueState:
        """The state after a round.

        Parameters
        ----------
        state : QueueState
            The state before the round.
        feedback : Feedback
            What the round revealed at the decision.
        """
        weights = self.weigh(state, feedback.g)
        return self.follow(state, weights, combine(weights.constraint, feedback.dg))


# --- the paper's theorems, as printed


def theorem4(G: float, D: float, F: float, k: int, S: float, T: float) -> float:
    """Theorem 4 (S-feasible): the interval violation of Algorithm 2 by the paper's own proof, O(max(sqrt(ST), S)), with its constants.

    The proof's Q^2(t) <= c1 Z_t + c2 S t + c4 S^2 with c1 = 2 sqrt(2k) GD (the printed one lacks the 2), c2 = 4kF^2, c4 = 4kF^2, and
    Z_t^2 <= c1 t Z_t + c2 S t^2 + c4 S^2 t.
    """
    c1, c2 = 2.0 * sqrt(2.0 * k) * G * D, 4.0 * k * F * F
    Z = 0.5 * (c1 * T + sqrt((c1 * T) ** 2 + 4.0 * (c2 * S * T * T + c2 * S * S * T)))
    return sqrt(c1 * Z + c2 * S * T + c2 * S * S)


def theorem5(G: float, D: float, F: float, k: int, P_T: float, T: float) -> float:
    """Theorem 5 (P_T-constrained): the paper's rate O(P_T^{1/3} T^{2/3} + sqrt(T)), with the constants that `ocs_bound` proves for it.

    The printed proof has a gap (its last block is shorter than the others); the statement holds because sqrt(P_T T) <= P_T^{1/3} T^{2/3}.
    """
    P_T = max(P_T, 0.0)
    return float(2.0 * sqrt(2.0) * G * D * sqrt(k * T) + F * sqrt(2.0 * k) * P_T ** (1.0 / 3.0) * T ** (2.0 / 3.0))


# --- the sharper form, with the parameters a policy really has


def ocs_bound(policy: Configuration[ConstraintSatisfaction], constants: Constants, t: float) -> Bound:
    """Algorithm 2: a bound on the interval violation. P is the least violation of a fixed action over any interval.

    P = 0 where an action satisfies every constraint; P <= F floor(S/2) where one is S-feasible (``window``), as `common.excess` proves; or
    P itself as ``excess``. With a = 2c G sqrt(k), ||Q(t)||^2 <= a sqrt(sum ||Q||^2) + 2P sum_i U_i(t), U_i the total climb of Q_i, because
    a layer {Q_i > u} is a union of intervals and each costs a fixed action at most P. U_i <= Ft and U_i <= (Ft + Q_i)/2 give the first two
    bounds, the recursion over t the third.
    """
    learner, P = policy.record.learner, excess(constants)
    if isinstance(P, str):
        return Bound(why=P)
    if not hasattr(learner, "adaptivity"):
        return Bound(why=NOT_ADAPTIVE.format(type(learner).__name__))
    G, D, F, k = constants["lipschitz"], constants["diameter"], constants.get("bound", 0.0), constants.get("constraints", 1)
    c = learner.adaptivity(D)
    return Bound(
        interval=queue_bound(2.0 * c * G * sqrt(k), F, k, P, t), why="Algorithm 2 has no costs and bounds violation over intervals"
    )


def queue_bound(a: float, F: float, k: int, P: float, T: float) -> float:
    """The smallest of the three bounds of `ocs_bound` on max_t ||Q(t)||.

    The third is sqrt(a z_T + cT), c = 2kPF, where z_t = a/2 + sqrt(a^2/4 + z_{t-1}^2 + ct). From round n on, with lam = a/2 + c/(2 lam),
    z_t <= z_n + lam (t - n) + kappa (1/n + ... + 1/(t-1)), kappa = (a^2/8 + c/2)/lam: the right side w has w_{t-1} >= lam (t-1), and
    sqrt(w^2 + y) <= w + y/(2w).
    """
    b, c, n = a * sqrt(T) + sqrt(k) * P, 2.0 * k * P * F, min(int(T), STEPS)
    z = 0.0
    for t in range(1, n + 1):
        z = a / 2.0 + sqrt(a * a / 4.0 + z * z + c * t)
    if n < T and a + c > 0.0:
        lam = 0.25 * a + sqrt(a * a / 16.0 + 0.5 * c)
        z = max(z, lam * n) + lam * (T - n) + (a * a / 8.0 + 0.5 * c) / lam * (harmonic(T - 1.0) - harmonic(n - 1.0))
    return min(0.5 * (a * sqrt(T) + sqrt(a * a * T + 4.0 * c * T)), 0.5 * (b + sqrt(b * b + 2.0 * c * T)), sqrt(a * z + c * T))


def _paper_ocs(policy: Configuration[ConstraintSatisfaction], constants: Constants, t: float) -> Bound:
    P, F = excess(constants), constants.get("bound")
    if isinstance(P, str):
        return Bound(why=P)
    if not F:
        return Bound(why="the largest |g| is not known")
    why = departure(
        policy,
        constants,
        sinha2024_ocs(policy.domain, constraints=len(policy.record.each), diameter=policy.parameters.get("diameter")).record,
    )
    if why:
        return Bound(why=why)
    told = cast(AdaGradNorm, policy.record.learner).diameter
    # AdaGrad that is told a diameter D' above the true one has the regret of a set of diameter D'.
    G, D, k = constants["lipschitz"], max(constants["diameter"], float(told)), constants.get("constraints", 1)
    if constants.get("feasible") is not None or constants.get("window") is not None:
        window = 1 if constants.get("feasible") is not None else constants["window"]
        return Bound(interval=theorem4(G, D, F, k, window, t))
    return Bound(interval=theorem5(G, D, F, k, P / F, t))


@registered(
    reference=REFERENCE,
    regret="-",
    violation="interval O(sqrt(S T)), O(sqrt(P_T T))",
    bound=ocs_bound,
    paper=_paper_ocs,
    reduces="all",
    metric="interval",
    needs=("diameter",),
)
def sinha2024_ocs(
    domain: Domain,
    *,
    constraints: int = 1,
    diameter: Setting | None = None,
    learner: str | Learner[Any] = "adagrad",
    samples: int | None = None,
    seed: int | None = None,
    **through: Unpack[Through],
) -> ConstraintSatisfaction:
    """Algorithm 2, constraints only.

    Parameters
    ----------
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    learner
        The OCO algorithm inside. Values: adagrad, adaftrl, ftpl; on a simplex adahedge, mlpoly, track; or a learner
        of the same domain.
    samples
        How many draws learner='ftpl' averages. Default: 1000. Values: a whole number, 1 or above. Unit: draws.
    seed
        The seed of learner='ftpl'. Default: 0. Values: a whole number, 0 or above.
    """
    D = diameter_of(domain, diameter)
    return ConstraintSatisfaction(learner_for(learner, domain, D, samples, seed), np.ones(constraints))
