"""Yi et al. 2021, against every path of actions: many steps side by side; for constraints that stay the same.

Expert i = 0, ..., K - 1 takes the proximal steps of `yi2021` with a constant step of its own, alpha_i = 2^i sqrt(2) D / (G sqrt(T)),
gamma_i = gamma_0 / sqrt(alpha_i), gamma_0 = 1 / (sqrt(2k) G), from its own point; all are fed the one gradient that is seen at x_t:

    h^i     = g(x^i)^+,      q^i <- q^i + gamma_i h^i
    x^i     <- argmin over X of  <grad f_t(x_t), x> + sum_j gamma_i (q^i + gamma_i h^i)_j g_j(x)^+ + |x - x^i|^2 / alpha_i
    x_{t+1} = sum_i w_i x^i,      w by AdaHedge with the rate 1 / Delta and the prior pi_i = (1 + 1/K) / ((i + 1)(i + 2)),
              fed with <grad f_t(x_t), x^i>

2^{K-1} is the first power of 2 that is sqrt(1 + 2 T) or more: no path needs longer steps.

With ``form="affine"`` a constraint is read from its value and gradient at x_t, which is exact for affine ones: others need
``form="function"``. One affine constraint is plain arithmetic and compiles; several are K quadratic programs each round and run on the
Python engine only, as does ``form="function"``.

Guarantee: `path_regret`; for every path u_1, ..., u_t of feasible actions, P = sum |u_{s+1} - u_s|, without knowing P, for t <= T

    sum f_s(x_s) - f_s(u_s) <= min over i of  (G^2/2) alpha_i t + (D^2 + 2 D P) / alpha_i + sqrt(5)/2 (1 + ln(1/pi_i)) G D sqrt(t)
                             = O(G sqrt(D (D + P) T)),
    CCV_t <= sum_i sqrt(alpha_i) / gamma_0 sqrt(2 (G D t + (G^2/2) alpha_i t + D^2 / alpha_i)) = O(G D sqrt(T)).

    Both orders are those that the paper states of its second algorithm. The first is the best there is (Zhang, Lu and Zhou 2018).
Reference: X. Yi, X. Li, T. Yang, L. Xie, T. Chai, K. H. Johansson. Regret and Cumulative Constraint Violation Analysis for Online Convex
    Optimization with Long Term Constraints. ICML 2021. Its second algorithm tracks experts with several steps and has these orders; which
    steps, weights and constants it has could not be looked up: those here, and the proof, are bridle's.

Proof. (1) An expert. The proof of `growing_weights_bound` (`bridle.policies._yi2021`), line by line, with u_s in place of u: g(u_s) <= 0
for the same g. Only the terms in |u_s - x_s|^2 change: with a constant step they add up to (D^2 + 2 D P) / alpha, since |u_{s+1} - x|^2
is at most |u_s - x|^2 + 2 D |u_{s+1} - u_s|. It is about the linear costs <grad f_s(x_s), .>, at most G long. So

    sum <grad f_s(x_s), x^i_s - u_s> + |q^i_{t+1}|^2 / 2 <= (G^2/2) alpha_i t + (D^2 + 2 D P) / alpha_i.

(2) The mixture. AdaHedge with the rate c / Delta, here c = 1, loses Delta_t + Delta_{t-1} ln(1/pi_i) / c to expert i, Delta_t <= sqrt(1 +
c/4) sqrt(sum s^2) (`bridle.learners.adahedge`: its proof asks nothing of c), with ranges s <= G D. Convexity and (1), without |q|^2, are
the regret. sqrt(1 + 2 P/D) lies within a factor of sqrt(2) of some 2^i, as P <= D T; there the first two terms are at most 1.5 G D
sqrt(T (1 + 2 P/D)), and ln(1/pi_i) <= 2 ln(i + 2) is at most 1.6 times that root.
(3) Violation. g_j(x_s)^+ <= sum_i w_i g_j(x^i_s)^+, at most the sum over all i. By (1) with one feasible u, and <grad f_s(x_s), x^i_s - u>
>= -G D, |q^i_{t+1}| <= sqrt(2 (G D t + ...)); and q^i is gamma_i times the sum of h^i. The roots of alpha_i double with every other i, so
that the longest steps decide, which are about 2 D / G long.

>>> import bridle
>>> problem = bridle.problem("fixed", horizon=200, dim=3)
>>> trace = bridle.play(bridle.policy_for("yi2021-dynamic", problem), problem)
>>> bool(bridle.ccv(trace) <= trace.policy.bound(problem.constants, 200).ccv)
True
"""

from __future__ import annotations

from math import ceil, log2, sqrt
from typing import Literal, NamedTuple, Unpack

import numpy as np

from bridle import domains, ops, validate
from bridle.core import Bound, Constants, Domain, Feedback
from bridle.learners import Hedge
from bridle.learners.adahedge import HedgeState
from bridle.ops import Array, Scalar, combine
from bridle.policies._yi2021 import GrowingWeights, WeightState, curved
from bridle.policies.common import capped_bound, diameter_of, flat, unmet
from bridle.policies.entry import READ_AS_AFFINE, Configuration, Setting
from bridle.policies.proximal import OneHinge, prox_for
from bridle.policies.registry import Through, registered

RATE = 1.0
"""c of AdaHedge's rate c / Delta: with a constant one, the mixture loses no power of ln K to short paths."""


class StepsState(NamedTuple):
    """The experts, one a row, and AdaHedge's state over them."""

    experts: WeightState
    top: HedgeState


class SeveralSteps(NamedTuple):
    """The mixture; `inner` has the K steps as `alpha`, ``(K, 1)``."""

    inner: GrowingWeights
    top: Hedge

    @property
    def domain(self) -> Domain:
        return self.inner.domain

    @property
    def each(self) -> Array:
        return self.inner.each

    @property
    def compiled(self) -> bool:
        """Whether it is plain arithmetic: with one constraint that is read as affine."""
        return isinstance(self.inner.prox, OneHinge)

    @property
    def mixed(self) -> tuple[str, ...]:
        """The names of what is mixed."""
        alpha = np.asarray(self.inner.alpha).reshape(-1, self.top.prior.shape[-1])[0]
        return tuple(f"step {step:.3g}" for step in alpha)

    def init(self, x1: Array) -> StepsState:
        none = ops.vector(x1, self.top.prior)
        return StepsState(self.inner.init(none[..., None] + x1[..., None, :]), self.top.init(none + self.top.prior))

    def decide(self, state: StepsState) -> Array:
        return combine(self.weights(state), state.experts.x)

    def weights(self, state: StepsState) -> Array:
        """What each step is worth at present."""
        return self.top.decide(state.top)

    def update(self, state: StepsState, feedback: Feedback) -> StepsState:
        losses = (state.experts.x @ feedback.df[..., None])[..., 0]
        return StepsState(self.stepped(state.experts, feedback), self.top.step(state.top, losses))

    def stepped(self, experts: WeightState, feedback: Feedback) -> WeightState:
        """The experts after their steps."""
        own, dg = experts.x, feedback.dg
        if self.compiled:
            g = feedback.g[..., None, :] + (own - feedback.x[..., None, :]) @ ops.namespace(dg).swapaxes(dg, -1, -2)
            return self.inner.update(experts, Feedback(own, feedback.f, feedback.df[..., None, :], g, dg[..., None, :, :]))
        if feedback.x.ndim > 1:  # run by run, and then expert by expert
            runs = [self._run(i).stepped(_expert_run(experts, i), _of_run(feedback, i)) for i in range(len(own))]
            return WeightState(*(np.stack([np.asarray(part) for part in parts]) for parts in zip(*runs, strict=True)))
        moved = []
        for x, q, t, alpha in zip(own, experts.q, np.asarray(experts.t), np.asarray(self.inner.alpha), strict=True):
            at = feedback._replace(x=x, g=self.inner.prox.values(feedback, x))
            moved.append(self.inner._replace(alpha=float(alpha[0])).update(WeightState(x, q, float(t[0])), at))
        return WeightState(np.array([each.x for each in moved]), np.array([each.q for each in moved]), experts.t + 1.0)

    def _run(self, i: int) -> SeveralSteps:
        """The record of run i of a sweep."""
        alpha, gamma = np.asarray(self.inner.alpha), np.asarray(self.inner.gamma)
        alone = self.inner._replace(alpha=alpha if alpha.ndim < 3 else alpha[i], gamma=float(gamma if gamma.ndim == 0 else gamma[i, 0, 0]))
        return self._replace(inner=alone)


def _expert_run(experts: WeightState, i: int) -> WeightState:
    """The experts of run i."""
    return WeightState(experts.x[i], experts.q[i], np.asarray(experts.t)[i])


def _of_run(feedback: Feedback, i: int) -> Feedback:
    """What run i is told."""
    k, d = feedback.g.shape[-1], feedback.x.shape[-1]
    dg = np.broadcast_to(feedback.dg, (len(feedback.x), k, d))[i]
    return feedback._replace(x=feedback.x[i], f=0.0, df=np.broadcast_to(feedback.df, feedback.x.shape)[i], g=feedback.g[i], dg=dg)


def count(horizon: float) -> int:
    """K: 2^{K-1} is the first power of 2 that is sqrt(1 + 2 T) or more.

    >>> count(1), count(31), count(32), count(10**6)
    (2, 4, 5, 12)
    """
    return 1 + ceil(0.5 * log2(1.0 + 2.0 * horizon))


def priors(K: int) -> Array:
    """pi_i = (1 + 1/K) / ((i + 1)(i + 2)), in all 1.

    >>> priors(3).round(4), round(float(priors(12).sum()), 12)
    (array([0.6667, 0.2222, 0.1111]), 1.0)
    """
    i = np.arange(float(K))
    return np.asarray((1.0 + 1.0 / K) / ((i + 1.0) * (i + 2.0)))


def _each(value: Scalar) -> Scalar:
    """A scalar of a run as one of each of its experts."""
    return value if np.ndim(value) == 0 else value[..., None]  # type: ignore[index]


def path_regret(record: SeveralSteps, lipschitz: float, diameter: float, t: float, path: float = 0.0) -> Array:
    """The regret bound after t rounds against feasible paths of length `path`; of each run where the policy has several.

    >>> import bridle
    >>> record = bridle.policy("yi2021-dynamic", bridle.Ball(2), horizon=10_000, lipschitz=1.0).record
    >>> [round(float(path_regret(record, 1.0, 2.0, 10_000, path)), 1) for path in (0.0, 20.0, 200.0)]
    [637.9, 2063.8, 4999.9]
    """
    G, D, alpha = lipschitz, diameter, np.asarray(record.inner.alpha)[..., 0]
    lost = sqrt(1.0 + RATE / 4.0) * (1.0 - np.log(record.top.prior) / RATE) * G * D * sqrt(t)
    return np.asarray((0.5 * G * G * alpha * t + (D * D + 2.0 * D * path) / alpha + lost).min(axis=-1))


def steps_violation(record: SeveralSteps, lipschitz: float, diameter: float, t: float) -> Array:
    """The violation bound after t rounds: that of every expert, added up. In round 1 all stand at the same point."""
    G, D, alpha, k = lipschitz, diameter, np.asarray(record.inner.alpha)[..., 0], len(record.each)
    gamma, last = np.asarray(record.inner.gamma)[..., 0] if np.ndim(record.inner.gamma) else record.inner.gamma, t - 1.0
    if last <= 0.0:
        return np.asarray(sqrt(k) * G * D)
    queue = np.sqrt(2.0 * (G * D * last + 0.5 * G * G * alpha * last + D * D / alpha))
    return np.asarray((np.sqrt(alpha) / gamma * queue).sum(axis=-1))


def several_steps_bound(policy: Configuration[SeveralSteps], constants: Constants, t: float) -> Bound:
    """`path_regret` against one action, and against the best actions of each round where their path is known; `steps_violation`."""
    record = policy.record
    if why := unmet(constants, fixed=True) or curved(record.inner.prox, constants):
        return Bound(why=why)
    G, D, k = constants["lipschitz"], constants["diameter"], len(record.each)
    if np.any(np.asarray(record.inner.gamma) ** 2 * k * G * G > 0.5 * (1.0 + 1e-12)):
        return Bound(why="the policy was told too small a Lipschitz constant")
    bound = capped_bound(flat(path_regret(record, G, D, t)), flat(steps_violation(record, G, D, t)), G * D, 1.0, t)
    path = constants.get("path")
    return bound if path is None else bound._replace(dynamic=flat(np.minimum(path_regret(record, G, D, t, path), G * D * t)))


@registered(
    reference="Yi et al., ICML 2021",
    regret="O(sqrt((1 + P) T)) against every path of length P",
    violation="O(sqrt(T))",
    bound=several_steps_bound,
    reduces="all",
    time_varying=False,
    paper_constraints="fixed",
    feedback="function (value and gradient where affine)",
    cost="log T hinge proxes",
    needs=("horizon", "lipschitz", "diameter"),
    variants=(READ_AS_AFFINE,),
)
def yi2021_dynamic(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    diameter: Setting | None = None,
    constraints: int = 1,
    form: Literal["affine", "function"] = "affine",
    **through: Unpack[Through],
) -> SeveralSteps:
    """Many proximal steps side by side, against every path.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    constraints
        k, how many constraints a round reveals. Values: a whole number, 1 or above. Unit: constraints.
    form
        How a constraint is read from its feedback. Values: affine or function (a convex function as it is).
    """
    T, G, k = validate.rounds("horizon", horizon), validate.setting("lipschitz", lipschitz), constraints
    D, K = diameter_of(domain, diameter), count(float(np.max(T)))
    first, gamma = sqrt(2.0) * D / (G * T**0.5), 1.0 / (sqrt(2.0 * k) * G)
    alpha = _each(first) * 2.0 ** np.arange(float(K))[:, None]
    inner = GrowingWeights(prox_for(domain, form, k), alpha, 0.0, _each(gamma), 0.0, np.ones(k))
    return SeveralSteps(inner, Hedge(domains.Simplex(K), priors(K), RATE))
