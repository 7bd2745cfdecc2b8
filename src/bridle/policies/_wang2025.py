"""Wang, Wan, Zhang 2025: projection-free, one linear minimisation a round.

Algorithm 1 of Sinha and Vaze with online Frank-Wolfe (`bridle.learners.frank_wolfe`) in place of gradient steps: the surrogates are

    Q(t) = Q(t-1) + beta (g_t(x_t))^+,      p_t = V beta grad f_t(x_t) + lam e^{lam Q(t)} beta grad (g_t)^+(x_t),      lam of order T^{-3/4}

and the learner takes one step towards a regularised leader of p_1, ..., p_t; all it asks of the domain is the action of least <v, x>. The
paper restarts the leader whenever the surrogates have doubled, with steps 2 / sqrt(rounds since), which must not exceed 1. Here the
regulariser grows with the surrogates instead, there is no restart, and the length of the step is the best there is.

`wang2025-squared` is this library's own: as in `bridle.policies._anytime`, Q adds up squared distances to the violated halfspaces, with n_t
the unit normal of the one that is farthest, dist_t away, and

    v_t = V grad f_t(x_t) + 2 lam e^{lam Q_t} dist_t n_t,      lam = 1 / (2 C^2 sqrt(T)),      V = 10 / (D |first gradient|), or as told.

It needs no `lipschitz`, its violation has sqrt(log T) in place of log T, and it proves something at horizons a thousand times shorter.
``preset="practice"`` takes V = lam in `wang2025`, as in Algorithm 1, and lam = 1/(4 D^2), that of `anytime`, in `wang2025-squared`: then
regret is not bounded in advance (a session's certificate bounds it afterwards), and violation is far smaller at realistic horizons.

Guarantee: `free_bound` and `squared_free_bound`. For every feasible u and t <= T, with C = (13/4) D:
    `wang2025`: Regret_t <= C G t^{3/4} (1 + lam/V), CCV_t <= C G T^{3/4} ln(10 + O(V T)) / 0.9.
    `wang2025-squared`: Regret_t <= C G t^{3/4} + 1/(2V), CCV_t <= sqrt(2) C G T^{1/4} sqrt(t ln(2 + O(T))).
Reference: Y. Wang, Y. Wan, L. Zhang. Revisiting Projection-Free Online Learning with Time-Varying Constraints. AAAI 2025: O(T^{3/4}) and
    O(T^{3/4} log T). The surrogate, its beta and the order of lam are theirs up to constants; learner, constants and proofs are ours.

Proof of the squared form. Let h_s = dist_s^2, p_s = lam e^{lam Q_s}, Y = sum p_s h_s. Every feasible u has <n_s, x_s - u> >= dist_s, so
that the learner's regret on the v_s is at least V Regret_t + 2 Y, and at most C (sum |v_s|^{4/3})^{3/4}. By Minkowski's inequality that is
at most C V (sum |grad f_s|^{4/3})^{3/4} + 2 C (sum (p_s h_s)^{2/3} p_s^{2/3})^{3/4}. In the last sum p_s <= p_t, and over the t terms
Hoelder's inequality gives (sum (p_s h_s)^{2/3})^{3/4} <= t^{1/4} sqrt(Y); and 2 C t^{1/4} sqrt(p_t Y) <= Y + C^2 sqrt(t) p_t. With
Y >= e^{lam Q_t} - 1 (a right-endpoint sum of an increasing function) and theta = C^2 sqrt(t) lam,

    V Regret_t + (1 - theta) e^{lam Q_t} - 1 <= V R,      R = C (sum |grad f_s|^{4/3})^{3/4} <= C G t^{3/4},

theta <= 1/2 for t <= T. Leave out e^{lam Q} >= 1 for the regret, use Regret_t >= -GDt for Q_t, and Cauchy-Schwarz for the CCV.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=2000, dim=3)
>>> trace = bridle.play(bridle.policy_for("wang2025-squared", problem, V=5.0), problem)
>>> bound = trace.policy.bound(problem.constants, 2000)
>>> bool(bridle.regret(trace) <= bound.regret), bool(bridle.ccv(trace) <= bound.ccv)
(True, True)
"""

from __future__ import annotations

from math import sqrt
from typing import Literal, NamedTuple, Unpack

import numpy as np

from bridle import ops, validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback
from bridle.learners import FrankWolfe, FrankWolfeLearner, FrankWolfeState
from bridle.learners.potentials import ExponentialPotential
from bridle.ops import Array, Scalar, norm
from bridle.policies._anytime import Anytime, AnytimeState, anytime
from bridle.policies._sinha2024 import NU, Lyapunov, reduction_bound
from bridle.policies.anytime_forms import inverse_weight, missed_alarm
from bridle.policies.common import at_least, diameter_of, flat, most_behind, told, unmet
from bridle.policies.entry import Configuration, Setting, Variant
from bridle.policies.registry import Through, registered

PRESETS = ("theory", "practice")


class SquaredFreeState(NamedTuple):
    """What is known of the limits, in the state of `anytime` (whose S stays 0), and the learner's state."""

    limits: AnytimeState
    learner: FrankWolfeState

    @property
    def V(self) -> Scalar:
        return self.limits.V


class SquaredFree(NamedTuple):
    """Squared distances, as `anytime` weighs them (`weigher` has no other part in a round), and steps without projections."""

    learner: FrankWolfeLearner
    weigher: Anytime

    @property
    def domain(self) -> Domain:
        return self.learner.domain

    def init(self, x1: Array) -> SquaredFreeState:
        return SquaredFreeState(self.weigher.init(x1), self.learner.init(x1))

    def decide(self, state: SquaredFreeState) -> Array:
        return self.learner.decide(state.learner)

    def update(self, state: SquaredFreeState, feedback: Feedback) -> SquaredFreeState:
        cut, _, missed = self.weigher.linearise(feedback.x, feedback)
        limits = state.limits
        weights = self.weigher.weigh(limits, cut.g, cut.far, norm(feedback.df))
        v = weights.cost * feedback.df + weights.constraint * cut.normal
        # The weights are kept divided by e^{UNIT units}; what shrinks are squares.
        learner = self.learner.step(self.learner.rescale(state.learner, ops.sqrt(weights.shrink)), v)
        rounds = limits.rounds + 1.0
        infeasible = ops.where(limits.infeasible > 0.0, limits.infeasible, missed * rounds)  # type: ignore[arg-type]
        limits = limits._replace(x=learner.x, Q=weights.Q, V=weights.V, units=weights.units, rounds=rounds, infeasible=infeasible)
        return SquaredFreeState(limits, learner)

    def certified_regret(self, state: SquaredFreeState) -> float | None:
        """(the learner's regret - 2 Y) / V, with Y >= e^{lam Q_t} - 1; None once e^{lam Q} has had to be counted in units."""
        if np.any(np.asarray(state.limits.units) > 0.0):
            return None
        surplus = self.learner.certified(state.learner) - 2.0 * np.expm1(self.weigher.potential.lam * state.limits.Q)
        return float(ops.ratio(float(surplus), float(state.V)))

    def certified_squares(self, state: SquaredFreeState, squares: float, gain: float) -> float | None:
        """The most that the squared distances can add up to, with sum |grad f|^2 = `squares` and no action losing more than `gain`.

        By Hoelder's inequality (sum |grad f|^{4/3})^{3/4} <= t^{1/4} sqrt(sum |grad f|^2).
        """
        D, t, lam = self.domain.diameter(), float(state.limits.rounds), self.weigher.potential.lam
        C = self.learner.steadiness(D)
        theta = C * C * sqrt(t) * lam
        if theta >= 1.0 or self.weigher.reach < D * (1.0 - 1e-12):
            return None
        return float(np.log((1.0 + state.V * (C * t**0.25 * sqrt(squares) + gain)) / (1.0 - theta)) / lam)

    def alarm(self, state: SquaredFreeState) -> Alarm | None:
        """That one constraint misses the whole domain; None while none does."""
        return missed_alarm(state.limits.infeasible)


def _learner(domain: Domain, diameter: Setting | None, preset: str) -> FrankWolfeLearner:
    validate.one_of("preset", preset, PRESETS)
    return FrankWolfe(domain, diameter_of(domain, diameter))


def free_bound(policy: Configuration[Lyapunov], constants: Constants, t: float) -> Bound:
    """`bridle.policies._sinha2024.reduction_bound` with the learner's constant C and t^{3/4}."""
    return reduction_bound(policy.record, constants, t)


def squared_free_bound(policy: Configuration[SquaredFree], constants: Constants, t: float) -> Bound:
    """The proof above with any V and lam.

    Where V was not given, the one that the game found is in ``constants["V"]``; the regret bound needs only that it is at least 10 / (D G).
    """
    record = policy.record
    if why := unmet(constants):
        return Bound(why=why)
    G, D, lam = constants["lipschitz"], constants["diameter"], flat(record.weigher.potential.lam)
    if np.any(np.asarray(record.weigher.reach) < D * (1.0 - 1e-12)):
        return Bound(why=f"the domain's diameter is {D:.4g}, more than the policy was told")
    C = flat(record.learner.steadiness(D))
    theta = C * C * sqrt(t) * lam
    if np.any(np.asarray(theta) >= 1.0):
        most = float(np.max(theta))
        return Bound(why=f"lam = {float(np.max(lam)):.4g} is too large for a proof: C^2 sqrt(t) lam = {most:.4g} must be below 1")
    R, trivial = C * G * t**record.learner.power, G * D * t
    V = constants.get("V") if record.weigher.V is None else flat(record.weigher.V)
    regret = flat(np.minimum(R + theta * inverse_weight(V, flat(record.weigher.reach), G), trivial))
    if V is None:
        return Bound(regret, why="the violation bound depends on V, which the policy takes from the first gradient")
    Q = np.log((1.0 + V * (R + at_least(constants, most_behind(constants, t)))) / (1.0 - theta)) / lam
    return Bound(regret, ccv=flat(np.minimum(G * np.sqrt(t * Q), trivial)), squared=flat(np.minimum(G * G * Q, G * D * trivial)))


REFERENCE = "Wang, Wan & Zhang, AAAI 2025"


@registered(
    reference=REFERENCE,
    regret="O(T^(3/4))",
    violation="O(T^(3/4) log T)",
    bound=free_bound,
    cost="1 linear minimisation",
    needs=("horizon", "lipschitz", "diameter"),
)
def wang2025(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    diameter: Setting | None = None,
    preset: Literal["theory", "practice"] = "theory",
    V: Setting | None = None,
    beta: Setting | None = None,
    lam: Setting | None = None,
    constraints: int | None = None,
    **through: Unpack[Through],
) -> Lyapunov:
    """Online Frank-Wolfe: no projections.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    preset
        Which constants to start from. Values: theory or practice (V = lam).
    V
        The weight of the cost against the potential's slope. Default: 1; lam with the preset practice. Values:
        above 0.
    beta
        The scale of costs and constraints alike. Default: 4 / (13 G D). Values: above 0. Unit: 1 / (lipschitz times
        diameter).
    lam
        The rate of the exponential potential. Default: 0.9 / T^(3/4). Values: above 0.
    constraints
        k, how many constraints a round reveals; only checked, since the worst of any number counts. Default: any
        number. Values: a whole number, 1 or above. Unit: constraints.
    """
    T, G = validate.rounds("horizon", horizon), validate.setting("lipschitz", lipschitz)
    learner = _learner(domain, diameter, preset)
    # kappa = C beta G = 1, and kappa lam T^{3/4} = NU, as in the preset `tight` of Algorithm 1.
    beta = validate.setting("beta", 1.0 / (learner.steadiness(learner.diameter) * G) if beta is None else beta)
    rate = validate.setting("lam", NU / T**learner.power if lam is None else lam)
    weight = rate if preset == "practice" else 1.0
    return Lyapunov(learner, ExponentialPotential(rate), told("V", V, weight), beta)


@registered(
    reference="The bridle developers, This library 2026",
    regret="O(T^(3/4))",
    violation="O(T^(3/4) sqrt(log T))",
    bound=squared_free_bound,
    only_limits=True,
    reduces="max-distance",
    cost="1 linear minimisation",
    needs=("horizon", "diameter"),
    variants=(Variant("preset", "practice", {"regret": "-", "violation": "-"}),),
)
def wang2025_squared(
    domain: Domain,
    *,
    horizon: Setting,
    diameter: Setting | None = None,
    preset: str = "theory",
    V: Setting | None = None,
    lam: Setting | None = None,
    constraints: int | None = None,
    **through: Unpack[Through],
) -> SquaredFree:
    """Online Frank-Wolfe on squared distances: no projections, no Lipschitz constant.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    preset
        Which constants to start from. Values: theory or practice (lam = 1 / (4 D^2), without a bound in advance).
    V
        The weight of the cost against the potential's slope. Default: 10 / (D |first gradient|). Values: above 0.
    lam
        The rate of the exponential potential. Default: 8 / (169 D^2 sqrt(T)). Values: above 0. Unit: 1 / squared
        unit of action.
    constraints
        k, how many constraints a round reveals; only checked, since the worst of any number counts. Default: any
        number. Values: a whole number, 1 or above. Unit: constraints.
    """
    T, learner = validate.rounds("horizon", horizon), _learner(domain, diameter, preset)
    D = learner.diameter
    C = learner.steadiness(D)
    usual = 0.25 / (D * D) if preset == "practice" else 0.5 / (C * C * T**0.5)
    weigher = anytime(domain, diameter=D, V=V, lam=usual if lam is None else lam, halfspace=False)
    return SquaredFree(learner, weigher.record)
