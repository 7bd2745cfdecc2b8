"""Sinha & Vaze 2024: Algorithm 1 (convex and strongly convex costs) and Algorithm 2 (constraints only).

Algorithm 1 runs a learner on surrogate costs that weigh this round's constraint by the slope of a potential Phi of all violation so far:

    Q(t) = Q(t-1) + beta (g_t(x_t))^+                       (lines 6, 7)
    p_t  = V beta grad f_t(x_t) + Phi'(Q(t)) beta grad (g_t)^+(x_t)      (line 8, equation 5)
    x_{t+1} = the learner's next decision after p_t         (line 9)

Convex costs: Phi(q) = e^{lam q} - 1 and AdaGrad steps. Strongly convex costs: Phi(q) = q^2 and steps 1 / (sum of the surrogate's moduli),
which is V beta times the costs' modulus each round. (Line 9 as printed says the moduli of f_s; with those the theorem fails.)

Algorithm 2 has no costs and does not clip: Q_i(t) = (Q_i(t-1) + g_{t,i}(x_t))^+ and p_t = 2 sum_i Q_i(t) grad g_{t,i}(x_t).

Guarantee: `theorem1`, `theorem2`, `theorem4`, `theorem5` are the paper's; `convex_bound`, `strong_bound`, `ocs_bound` the sharper explicit
    forms for the same algorithms, proved in the comments beside them; `theorem3` is the lower bound no policy can beat.
Reference: A. Sinha, R. Vaze. Optimal Algorithms for Online Convex Optimization with Adversarial Constraints. NeurIPS 2024.

>>> import bridle
>>> trace = bridle.play(bridle.policy("sinha2024", bridle.Ball(2), horizon=500, lipschitz=1.0), "halfspaces")
>>> bridle.regret(trace) <= convex_bound(trace.policy, trace.problem.constants, 500).regret
True
"""

from __future__ import annotations

from math import e, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Alarm, Bound, Constants, Feedback, InputError
from bridle.learners import LEARNERS, AdaGrad, CurvedOGD, StronglyConvexOGD
from bridle.learners.late import LateOGD
from bridle.learners.potentials import UNIT, Exponential, ExponentialPotential, Power, PowerPotential, Quadratic, QuadraticPotential
from bridle.learners.wrappers import doubling_epochs
from bridle.ops import Array, combine, exp, pos, scalar, vector, worst
from bridle.policies.common import diameter_of, excess, flat, harmonic, settle, unmet
from bridle.policies.entry import Entry
from bridle.records import same

NU = 0.9
"""lam sqrt(T) of the presets `tight` and `practice`; near the best for T from 10^3 to 10^6."""

_NOT_ADAPTIVE = "{} has no proved regret bound of the form c*sqrt(sum of squared gradients) (that of FTPL is for the exact expectation)"

BROKEN = 40.0
"""An exponent lam Q beyond this (plus ln V) contradicts the theorem at any horizon, so one of its assumptions does not hold."""


STEPS = 400
"""How many steps of the recursion of `queue_bound` are taken one by one."""


class LyapunovState(NamedTuple):
    """The scaled violation so far, and the learner's state."""

    Q: Array
    learner: Any


class Weights(NamedTuple):
    """Q(t), the surrogate's weights on grad f_t and grad g_t, and what everything the learner saw before is to be multiplied by."""

    Q: Array
    cost: Array
    constraint: Array
    shrink: Array | None


class Lyapunov(NamedTuple):
    """Algorithm 1: run `learner` on the surrogates  V beta f_t + Phi'(Q(t)) beta (g_t)^+ ; of several constraints the worst counts."""

    learner: Any
    potential: Any
    V: Array
    beta: Array

    @property
    def domain(self) -> Any:
        return self.learner.domain

    def init(self, x1: Array) -> LyapunovState:
        return LyapunovState(scalar(x1), self.learner.init(x1))  # line 3

    def decide(self, state: LyapunovState) -> Array:
        return self.learner.decide(state.learner)  # line 5

    def weigh(self, state: LyapunovState, g: Array) -> Weights:
        """Lines 6 to 8 without the gradients."""
        Q = state.Q + self.beta * pos(g)  # lines 6, 7
        if not (isinstance(self.potential, ExponentialPotential) and self.learner.scale_free):
            return Weights(Q, self.V * self.beta, self.potential.slope(Q) * self.beta * (g > 0.0), None)
        # e^{lam Q} overflows when the assumptions fail. A scale-free learner does not mind if all its gradients are divided by e^{UNIT n},
        # n the whole units of exponent: n = 0 in every run within the theory, and the past shrinks when n grows.
        before, units = self.potential.units(state.Q), self.potential.units(Q)
        cost = self.V * self.beta * exp(-UNIT * units)
        return Weights(Q, cost, self.potential.slope(Q, units) * self.beta * (g > 0.0), exp(UNIT * (before - units)))

    def follow(self, state: LyapunovState, weights: Weights, grad: Array, modulus: Array | None = None) -> LyapunovState:
        """Line 9: the state after the learner's step on a surrogate's gradient (and modulus, where it is known)."""
        learner = state.learner if weights.shrink is None else self.learner.rescale(state.learner, weights.shrink)
        if modulus is None:
            return LyapunovState(weights.Q, self.learner.step(learner, grad))
        return LyapunovState(weights.Q, self.learner.step(learner, grad, modulus))

    def update(self, state: LyapunovState, feedback: Feedback) -> LyapunovState:
        g, dg = worst(feedback.g, feedback.dg)
        weights = self.weigh(state, g)
        modulus = None if feedback.modulus is None else weights.cost * feedback.modulus
        return self.follow(state, weights, weights.cost * feedback.df + weights.constraint * dg, modulus)  # line 8

    def certified_regret(self, state: LyapunovState) -> float | None:
        """The proof's own upper bound on the regret so far: (c sqrt(S_t) - Phi(Q(t))) / (beta V), with the surrogates' S_t as it is.

        Every update must have been fed with the feedback at the state's own decision. It holds whatever `lipschitz` was given.
        """
        exponential = isinstance(self.potential, ExponentialPotential)
        if not hasattr(self.learner, "squares") or (exponential and self.potential.units(state.Q) > 0.0):
            return None
        c, S = self.learner.adaptivity(self.domain.diameter()), self.learner.squares(state.learner)
        return float((c * S**0.5 - self.potential.value(state.Q)) / (self.beta * self.V))

    def alarm(self, state: LyapunovState) -> Alarm | None:
        """That Q has grown beyond what the theorem allows; None while it has not."""
        if not isinstance(self.potential, ExponentialPotential):
            return None
        reached = self.potential.lam * state.Q
        exponent = reached if isinstance(reached, float) else float(np.max(np.asarray(reached)))
        if exponent <= BROKEN or exponent <= BROKEN + np.log(np.maximum(1.0, np.max(np.asarray(self.V)))):
            return None
        text = (
            f"the exponent lam*Q has reached {exponent:.3g}, which the theorem rules out: no action satisfies every constraint, "
            "or lipschitz or diameter is too small"
        )
        # `convex_bound` proves lam Q <= ln((1 + V (s + beta G D t)) / room), far below BROKEN + ln V wherever it applies. What contradicts
        # its conclusion breaks one of its assumptions, so its other promises are void too; which assumption it is Q does not tell.
        return Alarm(text, voids_bound=True)


class QueueState(NamedTuple):
    """The queue of every constraint, and the learner's state."""

    Q: Array
    learner: Any


class ConstraintSatisfaction(NamedTuple):
    """Algorithm 2: run `learner` on  2 sum_i Q_i(t) g_{t,i} ; all k constraints stay apart (their maximum is not S-feasible)."""

    learner: Any
    each: Array  # (k,): its length is the number of constraints

    @property
    def domain(self) -> Any:
        return self.learner.domain

    def init(self, x1: Array) -> QueueState:
        return QueueState(vector(x1, self.each), self.learner.init(x1))  # line 3

    def decide(self, state: QueueState) -> Array:
        return self.learner.decide(state.learner)  # line 5

    def weigh(self, state: QueueState, g: Array) -> Weights:
        """Line 6, and the weights on the constraints' gradients; the cost has none."""
        Q = pos(state.Q + g)  # signed, not clipped
        return Weights(Q, 0.0, 2.0 * Q, None)

    def follow(self, state: QueueState, weights: Weights, grad: Array) -> QueueState:
        """Lines 7, 8: the state after the learner's step on a surrogate's gradient."""
        return QueueState(weights.Q, self.learner.step(state.learner, grad))

    def update(self, state: QueueState, feedback: Feedback) -> QueueState:
        weights = self.weigh(state, feedback.g)
        return self.follow(state, weights, combine(weights.constraint, feedback.dg))


# --- factories -----------------------------------------------------------------------------------------------------------------------


def sinha2024(
    domain: Any,
    horizon: Any,
    lipschitz: Any,
    diameter: Any = None,
    preset: str = "theory",
    learner: Any = "adagrad",
    potential: Any = "exponential",
    V: Any = None,
    beta: Any = None,
    lam: Any = None,
    exponent: Any = None,
    step: Any = None,
    samples: Any = None,
    seed: Any = None,
    constraints: Any = None,
    delay: Any = None,
    initial: Any = None,
) -> Lyapunov:
    """Algorithm 1 for convex costs; `constraints` is only for the boundary to check, since the worst of any number counts.

    With `delay` the learner is `LateOGD`, for feedback that is fed in whenever it arrives. With `initial` AdaGrad's sum starts there.
    """
    T, G = validate.rounds("horizon", horizon), validate.setting("lipschitz", lipschitz)
    _count(constraints)
    D = diameter_of(domain, diameter)
    if preset not in ("theory", "tight", "practice"):
        raise validate.unknown("preset", preset, ("theory", "tight", "practice"))
    if delay is not None and learner != "adagrad":
        raise InputError(f"delay is for the learner that it brings along, not for learner={validate.show(learner)}")
    if initial is not None:
        if learner != "adagrad" or delay is not None:
            raise InputError(f"initial is for learner='adagrad' only, not for {validate.show(learner if delay is None else 'late')}")
        learner = AdaGrad(domain, D, initial)
    inside = _learner(learner, domain, D, samples, seed) if delay is None else LateOGD(domain, delay, D)
    # kappa = c * beta * G is the constant in front of sqrt(t): 1/sqrt(2) in the theorem, 1 in the sharper presets and with late feedback.
    c, theorem = _constant(inside, D), preset == "theory" and delay is None
    beta = 1.0 / ((sqrt(2.0) if theorem else 1.0) * (sqrt(2.0) * D if c is None else c) * G) if beta is None else beta
    beta = validate.setting("beta", beta)
    _unused(potential, lam, exponent)
    lam = validate.setting("lam", (0.5 if preset == "theory" else NU) / T**0.5 if lam is None else lam)
    phi, weight = _potential(potential, lam, exponent, T)
    if preset == "practice" and isinstance(phi, ExponentialPotential):
        weight = phi.lam
    V = weight if V is None else validate.setting("V", V)
    if inside is None:
        # The best constant step for gradients as long as the surrogate's at the first violation.
        inside = LEARNERS["ogd"](domain, D / (beta * G * (V + lam) * T**0.5) if step is None else step)
    elif step is not None:
        raise InputError(f"step is for learner='ogd' only, not for {validate.show(learner)}")
    return Lyapunov(inside, phi, V, beta)


def sinha2024_strong(
    domain: Any,
    horizon: Any,
    lipschitz: Any,
    modulus: Any,
    learner: Any = None,
    potential: Any = "quadratic",
    V: Any = None,
    beta: Any = 1.0,
    lam: Any = None,
    exponent: Any = None,
    constraints: Any = None,
) -> Lyapunov:
    """Algorithm 1 for strongly convex costs; `constraints` is only for the boundary to check, since the worst of any number counts."""
    T, G, alpha = validate.rounds("horizon", horizon), validate.setting("lipschitz", lipschitz), validate.setting("modulus", modulus)
    _count(constraints)
    beta = validate.setting("beta", beta)
    V = 8.0 * G * G * np.log(e * T) / alpha if V is None else V
    V = validate.setting("V", V)
    _unused(potential, lam, exponent)
    phi, _ = _potential(potential, None if lam is None else validate.setting("lam", lam), exponent, T)
    inside = StronglyConvexOGD(domain, V * beta * alpha) if learner is None else _settled(learner, domain, None, None, None)
    return Lyapunov(inside, phi, V, beta)


def sinha2024_ocs(
    domain: Any, constraints: int = 1, diameter: Any = None, learner: Any = "adagrad", samples: Any = None, seed: Any = None
) -> ConstraintSatisfaction:
    """Algorithm 2: constraints only."""
    k = validate.whole("constraints", constraints)
    D = diameter_of(domain, diameter)
    return ConstraintSatisfaction(_settled(learner, domain, D, samples, seed), np.ones(k))


def _learner(given: Any, domain: Any, D: Any, samples: Any, seed: Any) -> Any:
    """The learner of this name, or the one given; None for gradient descent, whose step depends on parameters not known yet."""
    if given != "ftpl" and not (samples is None and seed is None):
        raise InputError(f"{'samples' if seed is None else 'seed'} is for learner='ftpl' only, not for {validate.show(given)}")
    if not isinstance(given, str):
        if not hasattr(given, "step"):
            raise InputError(f"learner must be a name or have a method `step`, not {validate.show(given)}")
        if not same(getattr(given, "domain", domain), domain):
            raise InputError("learner was made for another domain than the policy's: both must be made from the same one")
        return given
    if given == "ogd":
        return None
    if given == "ftpl":
        return LEARNERS["ftpl"](domain, samples=1000 if samples is None else samples, seed=0 if seed is None else seed)
    if given not in ("adagrad", "adaftrl"):
        raise validate.unknown("learner", given, ("adagrad", "adaftrl", "ftpl", "ogd"))
    return LEARNERS[given](domain, D)


def _settled(given: Any, domain: Any, D: Any, samples: Any, seed: Any) -> Any:
    """The learner, where no step can be made up for gradient descent."""
    found = _learner(given, domain, D, samples, seed)
    if found is None:
        raise InputError("learner must be a learner such as bridle.OGD(domain, step=0.1) here, not 'ogd': its step is not known")
    return found


def _constant(learner: Any, D: Any) -> Any:
    """c of the learner's regret bound, c sqrt(sum of |p_s|^2) or at least c sqrt(t) max |p_s|; None where it has neither."""
    proved = getattr(learner, "adaptivity", None) or getattr(learner, "steadiness", None)
    return None if proved is None else proved(D)


def _count(constraints: Any) -> None:
    if constraints is not None:
        validate.whole("constraints", constraints)


def _unused(potential: Any, lam: Any, exponent: Any) -> None:
    """Refuse a setting that the potential in use does not have."""
    if lam is not None and potential != "exponential":
        raise InputError(f"lam is for potential='exponential' only, not for {validate.show(potential)}")
    if exponent is not None and potential != "power":
        raise InputError(f"exponent is for potential='power' only, not for {validate.show(potential)}")


def _potential(given: Any, lam: Any, exponent: Any, T: Any) -> tuple[Any, Any]:
    """The potential, and the V that goes with it for convex costs."""
    if not isinstance(given, str):
        if not hasattr(given, "slope"):
            raise InputError(f"potential must be a name or have a method `slope`, not {validate.show(given)}")
        return given, 1.0
    if given == "exponential":
        if lam is None:
            raise InputError("potential 'exponential' needs lam")
        return Exponential(lam), 1.0
    if given == "quadratic":
        return Quadratic(), (T / 2.0) ** 0.5
    if given == "power":
        n = np.maximum(2.0, np.ceil(np.log(T))) if exponent is None else exponent
        phi = Power(n)
        rest = phi.exponent - 1.0
        size = rest * np.log(np.maximum(rest, 1.0) * np.sqrt(np.maximum(T / 2.0, 1.0)))  # the logarithm of V, or more
        if np.max(size) > 300.0:
            raise InputError(
                f"exponent {np.max(phi.exponent):g} is too large for a horizon of {np.max(T):g}: V would be e^{np.max(size):.0f}"
            )
        return phi, rest**rest * (T / 2.0) ** (rest / 2.0)
    raise validate.unknown("potential", given, ("exponential", "quadratic", "power"))


# --- the paper's theorems, as printed -------------------------------------------------------------------------------------------------


def theorem1(G: float, D: float, t: float, T: float) -> Bound:
    """Theorem 1 (convex costs): Regret_t <= 2GD(sqrt(t) + 1), CCV_T <= 4GD ln(2(1 + 2T)) sqrt(T).

    >>> theorem1(1.0, 1.0, 100, 100).regret
    22.0
    """
    return Bound(2.0 * G * D * (sqrt(t) + 1.0), 4.0 * G * D * np.log(2.0 * (1.0 + 2.0 * T)) * np.sqrt(T))


def theorem2(G: float, D: float, alpha: float, t: float, T: float, nonnegative: bool = False) -> Bound:
    """Theorem 2 (alpha-strongly convex costs), with the constants of its proof; `nonnegative`: some action has regret >= 0 at round t.

    Regret_t <= (G^2/alpha)(1 + ln t) and CCV_t <= 4G sqrt(GDt ln(eT)/alpha) + 4G^2 ln(eT)/alpha, or, where regret is not negative,
    CCV_t <= sqrt(2V (G^2/alpha)(1 + ln t)), V = 8 G^2 ln(eT)/alpha: at that round t, not at T.
    """
    L = np.log(e * np.asarray(T, dtype=float))
    regret = G * G / alpha * (1.0 + log(t))
    ccv = 4.0 * G * np.sqrt(G * D * t * L / alpha) + 4.0 * G * G * L / alpha
    return Bound(regret, np.sqrt(2.0 * (8.0 * G * G * L / alpha) * regret) if nonnegative else ccv)


def theorem3(T: float, sharp: bool = True) -> float:
    """Theorem 3: on the instance of its proof, min(Regret_T, CCV_T) is at least this, in expectation, for every policy.

    sqrt(T)/4: a coin decides between two targets half a cube's width apart, so g^+ and f are at least 1/(4 sqrt(T)) on average, and
    f_t >= (g_t)^+ makes one instance do for both. ``sharp=False`` gives the paper's sqrt(T)/8.
    """
    return sqrt(T) / (4.0 if sharp else 8.0)


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


# --- sharper explicit forms for the same algorithms, with the parameters a policy really has ------------------------------------------


def convex_bound(policy: Any, constants: Constants, t: float) -> Bound:
    """Algorithm 1 with any V, beta, potential and adaptive learner, on a problem with these constants.

    The learner's regret on the surrogates is at most c sqrt(S_t) or c sqrt(t) max |p_s|, and |p_s| <= beta G (V + Phi'(Q(s))) with Q not
    decreasing, so  Phi(Q(t)) + V beta Regret_t <= kappa sqrt(t) (V + Phi'(Q(t))),  kappa = c beta G.  Exponential, kappa lam sqrt(t) < 1:
    drop e^{lam Q} >= 1 for the regret, use Regret_t >= -GDt for the CCV. Power q^n: maximise over Q, resp. q^n <= A q^{n-1} + B implies
    q <= A + B^{1/n}. Both are also at most GDt, since a constraint that holds somewhere in the domain is nowhere above GD.
    """
    record, why = policy.record, unmet(constants)
    if why or not isinstance(record, Lyapunov):
        return Bound(why=why or "the reduction was replaced")
    G, D, V, beta, phi = constants["lipschitz"], constants["diameter"], record.V, record.beta, record.potential
    c = _constant(record.learner, D)
    if c is None:
        return Bound(why=_NOT_ADAPTIVE.format(type(record.learner).__name__))
    s = c * beta * G * sqrt(t)
    if isinstance(phi, ExponentialPotential):
        room = 1.0 - s * phi.lam
        if np.any(room <= 0.0):
            return Bound(why=f"kappa*lam*sqrt(t) = {float(np.max(s * phi.lam)):.3g} must be below 1")
        regret = s / beta * (1.0 + phi.lam / V)
        ccv = np.log((1.0 + V * (s + beta * G * D * t)) / room) / (beta * phi.lam)
    elif isinstance(phi, (PowerPotential, QuadraticPotential)):
        n = 2.0 if isinstance(phi, QuadraticPotential) else phi.exponent
        regret = (s + (n - 1.0) ** (n - 1.0) * s**n / V) / beta
        ccv = (n * s + (V * (s + beta * G * D * t)) ** (1.0 / n)) / beta
    else:
        return Bound(why=f"no bound is known for the potential {type(phi).__name__}")
    return settle(regret, ccv, G * D, 1.0, t)


def strong_bound(policy: Any, constants: Constants, t: float) -> Bound:
    """Algorithm 1 with Phi(q) = q^2 and steps 1 / (V beta alpha t), on alpha-strongly convex costs.

    Q^2 + V beta Regret_t <= c (V + 2Q)^2 with c = beta G^2 harm(t) / (2 alpha V): maximise over Q for the regret; solve the quadratic with
    Regret_t >= -GDt for the CCV, or with Regret_t >= 0 where ``constants["regret"]`` says that this is so at round t.
    """
    record = policy.record
    if not (isinstance(record.learner, CurvedOGD) and isinstance(record.potential, QuadraticPotential)):
        return Bound(why="the learner or the potential was replaced")
    V, beta = record.V, record.beta
    alpha = record.learner.modulus / (V * beta)  # the modulus the policy was told
    if why := unmet(constants, modulus=alpha):
        return Bound(why=why)
    G, D = constants["lipschitz"], constants["diameter"]
    c = beta * G * G * harmonic(t) / (2.0 * alpha * V)
    if np.any(4.0 * c >= 1.0):
        return Bound(why=f"V = {float(np.min(V)):.3g} is too small: it must be above 2 G^2 beta harm(t) / alpha")
    regret = c * V / (beta * (1.0 - 4.0 * c))
    if constants.get("regret") is not None and np.all(np.asarray(constants["regret"]) >= 0.0):
        ccv = V * np.sqrt(c) / ((1.0 - 2.0 * np.sqrt(c)) * beta)
    else:
        ccv = (2.0 * c * V + np.sqrt(c * V * V + (1.0 - 4.0 * c) * V * beta * G * D * t)) / ((1.0 - 4.0 * c) * beta)
    return settle(regret, ccv, G * D, 1.0, t)


def ocs_bound(policy: Any, constants: Constants, t: float) -> Bound:
    """Algorithm 2: a bound on the interval violation. P is the least violation of a fixed action over any interval.

    P = 0 where an action satisfies every constraint; P <= F floor(S/2) where one is S-feasible (``window``), as `common.excess` proves; or
    P itself as ``excess``. With a = 2c G sqrt(k), ||Q(t)||^2 <= a sqrt(sum ||Q||^2) + 2P sum_i U_i(t), U_i the total climb of Q_i, because
    a layer {Q_i > u} is a union of intervals and each costs a fixed action at most P. U_i <= Ft and U_i <= (Ft + Q_i)/2 give the first two
    bounds, the recursion over t the third.
    """
    record = policy.record
    P = excess(constants)
    if isinstance(P, str):
        return Bound(why=P)
    if not hasattr(record.learner, "adaptivity"):
        return Bound(why=_NOT_ADAPTIVE.format(type(record.learner).__name__))
    G, D, F, k = constants["lipschitz"], constants["diameter"], constants.get("bound", 0.0), constants.get("constraints", 1)
    c = record.learner.adaptivity(D)
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


class _Made(NamedTuple):
    """A record where a theorem expects a configured policy."""

    record: Any


def doubling_bound(domain: Any, constants: Constants, T: int, **settings: Any) -> Bound:
    """Algorithm 1 restarted on epochs of 1, 2, 4, ... rounds (`bridle.Doubling`): the sum of the epochs' own bounds.

    >>> import bridle
    >>> ball = bridle.Ball(2)
    >>> facts = {"lipschitz": 1.0, "diameter": 2.0, "feasible": ball.center()}
    >>> bound = doubling_bound(ball, facts, 1000)
    >>> bound.regret < 2**1.5 * ((2**0.5 + 1) * (2000**0.5 - 1) + 5)
    True
    """
    settings = {"lipschitz": constants["lipschitz"], **settings}
    epochs = doubling_epochs(T)
    parts = [convex_bound(_Made(sinha2024(domain, length, **settings)), constants, rounds) for length, rounds in epochs]
    if any(part.why for part in parts):
        return Bound(why=next(part.why for part in parts if part.why))
    return Bound(sum(part.regret for part in parts), sum(part.ccv for part in parts))


# --- when the printed theorems apply, and the registry's entries ----------------------------------------------------------------------


def _paper_convex(policy: Any, constants: Constants, t: float) -> Bound:
    known = policy.parameters
    theory = sinha2024(policy.domain, known["horizon"], known["lipschitz"], known.get("diameter"))
    if why := unmet(constants) or _departs(policy, constants, theory):
        return Bound(why=why)
    bound = theorem1(known["lipschitz"], known.get("diameter", policy.domain.diameter()), t, known["horizon"])
    return Bound(flat(bound.regret), flat(bound.ccv))


def _paper_strong(policy: Any, constants: Constants, t: float) -> Bound:
    known = policy.parameters
    theory = sinha2024_strong(policy.domain, known["horizon"], known["lipschitz"], known["modulus"])
    if why := unmet(constants, modulus=known["modulus"]) or _departs(policy, constants, theory):
        return Bound(why=why)
    nonnegative = constants.get("regret") is not None and constants["regret"] >= 0.0
    bound = theorem2(known["lipschitz"], constants["diameter"], known["modulus"], t, known["horizon"], nonnegative)
    return Bound(flat(bound.regret), flat(bound.ccv))


def _paper_ocs(policy: Any, constants: Constants, t: float) -> Bound:
    P, F = excess(constants), constants.get("bound")
    if isinstance(P, str):
        return Bound(why=P)
    if not F:
        return Bound(why="the largest |g| is not known")
    why = _departs(policy, constants, sinha2024_ocs(policy.domain, len(policy.record.each), policy.parameters.get("diameter")))
    if why:
        return Bound(why=why)
    # AdaGrad that is told a diameter D' above the true one has the regret of a set of diameter D'.
    G, D, k = constants["lipschitz"], max(constants["diameter"], policy.record.learner.diameter), constants.get("constraints", 1)
    if constants.get("feasible") is not None or constants.get("window") is not None:
        window = 1 if constants.get("feasible") is not None else constants["window"]
        return Bound(interval=theorem4(G, D, F, k, window, t))
    return Bound(interval=theorem5(G, D, F, k, P / F, t))


def _departs(policy: Any, constants: Constants, theory: Any) -> str:
    """In what the policy differs from the one the printed theorem is about; empty when in nothing."""
    known = policy.parameters
    if known.get("preset", "theory") != "theory":
        return f"the preset is {known['preset']}, not the theorem's"
    if not same(policy.record, theory):
        told = [name for name in ("V", "beta", "lam", "learner", "potential", "exponent", "step", "delay", "initial") if name in known]
        return f"{' and '.join(told)} {'was' if len(told) == 1 else 'were'} set by hand"
    if "lipschitz" in known and known["lipschitz"] < constants["lipschitz"] * (1.0 - 1e-12):
        return f"the true Lipschitz constant is {constants['lipschitz']:.4g}, above the one the policy was told"
    if known.get("diameter", policy.domain.diameter()) < constants["diameter"] * (1.0 - 1e-12):
        return f"the true diameter is {constants['diameter']:.4g}, above the one the policy was told"
    return ""


_REFERENCE = "Sinha & Vaze, NeurIPS 2024"
CONVEX = Entry(
    "sinha2024", sinha2024, "Algorithm 1, convex costs", _REFERENCE, "O(sqrt(T))", "O(sqrt(T) log T)",
    bound=convex_bound, paper=_paper_convex, needs=("horizon", "lipschitz", "diameter"),
)  # fmt: skip
STRONG = Entry(
    "sinha2024-strong", sinha2024_strong, "Algorithm 1, strongly convex costs", _REFERENCE, "O(log T)",
    "O(sqrt(T log T)), O(log T) where regret >= 0", bound=strong_bound, paper=_paper_strong, strongly_convex=True,
    needs=("horizon", "lipschitz", "modulus"),
)  # fmt: skip
OCS = Entry(
    "sinha2024-ocs", sinha2024_ocs, "Algorithm 2, constraints only", _REFERENCE, "-", "interval O(sqrt(S T)), O(sqrt(P_T T))",
    bound=ocs_bound, paper=_paper_ocs, reduces="all", metric="interval", needs=("diameter",),
)  # fmt: skip
ENTRIES = (CONVEX, STRONG, OCS)
