"""Sinha & Vaze 2024: Algorithm 1, for convex and for strongly convex costs.

Algorithm 1 runs a learner on surrogate costs that weigh this round's constraint by the slope of a potential Phi of all violation so far:

    Q(t) = Q(t-1) + beta (g_t(x_t))^+                       (lines 6, 7)
    p_t  = V beta grad f_t(x_t) + Phi'(Q(t)) beta grad (g_t)^+(x_t)      (line 8, equation 5)
    x_{t+1} = the learner's next decision after p_t         (line 9)

Convex costs: Phi(q) = e^{lam q} - 1 and AdaGrad steps. Strongly convex costs: Phi(q) = q^2 and steps 1 / (sum of the surrogate's moduli),
which is V beta times the costs' modulus each round. (Line 9 as printed says the moduli of f_s; with those the theorem fails.)

Algorithm 2, for constraints without costs, is in `bridle.policies._sinha2024_ocs`.

Guarantee: `theorem1` and `theorem2` are the paper's; `convex_bound` and `strong_bound` the sharper explicit forms for the same algorithm,
    proved in the comments beside them; `theorem3` is the lower bound no policy can beat.
Reference: A. Sinha, R. Vaze. Optimal Algorithms for Online Convex Optimization with Adversarial Constraints. NeurIPS 2024.

>>> import bridle
>>> trace = bridle.play(bridle.policy("sinha2024", bridle.Ball(2), horizon=500, lipschitz=1.0), "halfspaces")
>>> bridle.regret(trace) <= convex_bound(trace.policy, trace.problem.constants, 500).regret
True
"""

from __future__ import annotations

from math import e, log, sqrt
from typing import Any, Literal, NamedTuple, Unpack, cast

import numpy as np

from bridle import validate
from bridle.core import Alarm, Bound, Constants, Domain, Feedback, InputError, Learner, Potential
from bridle.learners import OGD, AdaGrad, CurvedOGD, Iterate, StronglyConvexOGD, moved
from bridle.learners.potentials import UNIT, ExponentialPotential, PowerPotential, QuadraticPotential
from bridle.learners.wrappers import doubling_epochs
from bridle.ops import Array, Scalar, exp, maximum, pos, scalar, where, worst
from bridle.policies.common import at_least, capped_bound, curvature_of, diameter_of, flat, in_advance, most_behind, over_costs, told, unmet
from bridle.policies.entry import Configuration, Setting
from bridle.policies.reduction_parts import (
    NOT_ADAPTIVE,
    check_unused,
    learner_for,
    learner_or_step,
    potential_for,
    regret_constant,
    regret_power,
)
from bridle.policies.registry import Through, registered
from bridle.records import same

NU = 0.9
"""lam sqrt(T) of the presets `tight` and `practice`; near the best for T from 10^3 to 10^6."""

BROKEN = 40.0
"""An exponent lam Q beyond this (plus ln V) contradicts the theorem at any horizon, so one of its assumptions does not hold."""


class LyapunovState(NamedTuple):
    """The scaled violation so far, and the learner's state."""

    Q: Scalar
    learner: object


class LyapunovWeights(NamedTuple):
    """Q(t), the surrogate's weights on grad f_t and grad g_t, and what everything the learner saw before is to be multiplied by."""

    Q: Scalar
    cost: Scalar
    constraint: Scalar
    shrink: Scalar | None


class Lyapunov(NamedTuple):
    """Algorithm 1 as a record: a learner runs on surrogates of the cost and the worst violated constraint.

    The surrogate of a round is ``V beta f_t + Phi'(Q(t)) beta max(g_t, 0)``; of several constraints the worst counts. `bridle.policy`
    makes it with the theorem's constants under the name "sinha2024".

    Parameters
    ----------
    learner : Learner
        The OCO algorithm inside.
    potential : Potential
        The Lyapunov function Phi of the accumulated violation.
    V : float or array
        The weight of the cost against the potential's slope, above 0.
    beta : float or array
        The scale of costs and constraints, above 0.

    Examples
    --------
    >>> import bridle
    >>> ball = bridle.Ball(2)
    >>> policy = Lyapunov(bridle.AdaGrad(ball), bridle.potentials.Exponential(0.05), 1.0, 0.25)
    >>> bridle.play(policy, "halfspaces", horizon=100).rounds
    100
    """

    learner: Learner[Any]
    potential: Potential
    V: Scalar
    beta: Scalar

    @property
    def domain(self) -> Domain:
        """Where decisions are made: the learner's domain."""
        return self.learner.domain

    def init(self, x1: Array) -> LyapunovState:
        """The state before the first round."""
        return LyapunovState(scalar(x1), self.learner.init(x1))  # line 3

    def decide(self, state: LyapunovState) -> Array:
        """The decision in a state."""
        return self.learner.decide(state.learner)  # line 5

    def move(self, state: LyapunovState, x: Array) -> LyapunovState | None:
        """The state with another point in place of its next decision.

        Returns None where the learner keeps no iterate.
        """
        learner = moved(self.learner, state.learner, x)
        return None if learner is None else LyapunovState(state.Q, learner)

    def weigh(self, state: LyapunovState, g: Scalar) -> LyapunovWeights:
        """Lines 6 to 8 of the algorithm without the gradients: what the round's violation weighs.

        Returns the surrogate's weights on the cost and the constraint.
        """
        Q = state.Q + self.beta * pos(g)  # lines 6, 7
        if not (isinstance(self.potential, ExponentialPotential) and self.learner.scale_free):
            return LyapunovWeights(Q, self.V * self.beta, self.potential.slope(Q) * self.beta * (g > 0.0), None)  # type: ignore[arg-type]
        # e^{lam Q} overflows when the assumptions fail. A scale-free learner does not mind if all its gradients are divided by e^{UNIT n},
        # n the whole units of exponent: n = 0 in every run within the theory, and the past shrinks when n grows.
        before, units = self.potential.units(state.Q), self.potential.units(Q)
        cost = self.V * self.beta * exp(-UNIT * units)
        return LyapunovWeights(Q, cost, self.potential.slope(Q, units) * self.beta * (g > 0.0), exp(UNIT * (before - units)))  # type: ignore[arg-type]

    def follow(self, state: LyapunovState, weights: LyapunovWeights, grad: Array, modulus: Scalar | None = None) -> LyapunovState:
        """Line 9 of the algorithm: the state after the learner's step on a surrogate's gradient.

        Parameters
        ----------
        state : LyapunovState
            The state before the round.
        weights : LyapunovWeights
            What `weigh` gave.
        grad : array of shape (d,)
            The surrogate's gradient.
        modulus : float, optional
            The surrogate's strong convexity, where it is known.
        """
        learner = state.learner if weights.shrink is None else self.learner.rescale(state.learner, weights.shrink)  # type: ignore[attr-defined]
        if modulus is None:
            return LyapunovState(weights.Q, self.learner.step(learner, grad))
        return LyapunovState(weights.Q, self.learner.step(learner, grad, modulus))

    def update(self, state: LyapunovState, feedback: Feedback) -> LyapunovState:
        """The state after a round.

        Parameters
        ----------
        state : LyapunovState
            The state before the round.
        feedback : Feedback
            What the round revealed at the decision.
        """
        g, dg = worst(feedback.g, feedback.dg)
        weights = self.weigh(state, g)
        modulus = None if feedback.modulus is None else weights.cost * feedback.modulus
        if modulus is not None and isinstance(self.learner, CurvedOGD):  # the first round counts as at least what the learner was told
            seen = cast(Iterate, state.learner).seen
            modulus = where(seen > 0.0, modulus, maximum(modulus, self.learner.modulus))
        return self.follow(state, weights, weights.cost * feedback.df + weights.constraint * dg, modulus)  # line 8

    def certified_regret(self, state: LyapunovState) -> float | None:
        """The proof's own upper bound on the regret so far: ``(c sqrt(S_t) - Phi(Q(t))) / (beta V)``, with the surrogates' S_t as it is.

        Where the learner has a bound of its own on its regret so far, that takes the place of ``c sqrt(S_t)``. Every update must have
        been fed with the feedback at the state's own decision. It holds whatever `lipschitz` was given.

        It is in units of cost; None where the proof gives none.
        """
        overflown = isinstance(self.potential, ExponentialPotential) and self.potential.units(state.Q) > 0.0
        if overflown:
            return None
        if hasattr(self.learner, "certified"):
            return float((self.learner.certified(state.learner) - self.potential.value(state.Q)) / (self.beta * self.V))
        if not (hasattr(self.learner, "squares") and hasattr(self.learner, "adaptivity")):
            return None
        c, S = self.learner.adaptivity(self.domain.diameter()), self.learner.squares(state.learner)
        return float((c * S**0.5 - self.potential.value(state.Q)) / (self.beta * self.V))

    def alarm(self, state: LyapunovState) -> Alarm | None:
        """Whether the accumulated violation has grown beyond what the theorem allows.

        Returns the alarm; None while all is as proved.
        """
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


# --- the paper's theorems, as printed -------------------------------------------------------------------------------------------------


def theorem1(G: float, D: float, t: float, T: float) -> Bound:
    """Theorem 1 (convex costs): Regret_t <= 2GD(sqrt(t) + 1), CCV_T <= 4GD ln(2(1 + 2T)) sqrt(T).

    >>> theorem1(1.0, 1.0, 100, 100).regret
    22.0
    """
    return Bound(2.0 * G * D * (sqrt(t) + 1.0), 4.0 * G * D * np.log(2.0 * (1.0 + 2.0 * T)) * np.sqrt(T))


def theorem2(G: float, D: float, alpha: float, t: float, T: float, least: float | None = None) -> Bound:
    """Theorem 2 (alpha-strongly convex costs), with the constants of its proof; `least`: some action has at least this regret at round t.

    Regret_t <= R_t = (G^2/alpha)(1 + ln t) and CCV_t <= 4G sqrt(GDt ln(eT)/alpha) + 4G^2 ln(eT)/alpha. Its proof has Q(t)^2 / 2 + V
    Regret_t <= V R_t, V = 8 G^2 ln(eT)/alpha: so CCV_t <= sqrt(2V (R_t + (-least)^+)), at that round t, not at T. That is the second
    statement of the theorem where regret is not negative, and the comment after it (a regret of at least -O(log T) is enough) where it is.
    """
    L = np.log(e * np.asarray(T, dtype=float))
    regret = G * G / alpha * (1.0 + log(t))
    ccv = 4.0 * G * np.sqrt(G * D * t * L / alpha) + 4.0 * G * G * L / alpha
    if least is None:
        return Bound(regret, ccv)
    return Bound(regret, np.minimum(ccv, np.sqrt(2.0 * (8.0 * G * G * L / alpha) * (regret + max(0.0, -least)))))


def theorem3(T: float, sharp: bool = True) -> float:
    """Theorem 3: on the instance of its proof, min(Regret_T, CCV_T) is at least this, in expectation, for every policy.

    sqrt(T)/4: a coin decides between two targets half a cube's width apart, so g^+ and f are at least 1/(4 sqrt(T)) on average, and
    f_t >= (g_t)^+ makes one instance do for both. ``sharp=False`` gives the paper's sqrt(T)/8.
    """
    return sqrt(T) / (4.0 if sharp else 8.0)


# --- sharper explicit forms for the same algorithms, with the parameters a policy really has ------------------------------------------


def convex_bound(policy: Configuration[Lyapunov], constants: Constants, t: float) -> Bound:
    """`reduction_bound` of the policy's record."""
    return reduction_bound(policy.record, constants, t)


def reduction_bound(record: Lyapunov, constants: Constants, t: float) -> Bound:
    """Algorithm 1 with any V, beta, potential and adaptive learner, on a problem with these constants.

    The learner's regret on the surrogates is at most c sqrt(S_t) or c sqrt(t) max |p_s|, and |p_s| <= beta G (V + Phi'(Q(s))) with Q not
    decreasing, so  Phi(Q(t)) + V beta Regret_t <= kappa sqrt(t) (V + Phi'(Q(t))),  kappa = c beta G.  (A learner whose bound grows with
    another power of t, its `power`, has that in place of sqrt(t).) Exponential, kappa lam sqrt(t) < 1: drop e^{lam Q} >= 1 for the regret,
    use Regret_t >= -GDt for the CCV. Power q^n: maximise over Q, resp. q^n <= A q^{n-1} + B implies q <= A + B^{1/n}. Both are also at
    most GDt, since a constraint that holds somewhere in the domain is nowhere above GD.
    """
    if why := unmet(constants):
        return Bound(why=why)
    G, D, V, beta, phi = constants["lipschitz"], constants["diameter"], record.V, record.beta, record.potential
    c = regret_constant(record.learner, D)
    if c is None:
        return Bound(why=NOT_ADAPTIVE.format(type(record.learner).__name__))
    s = c * beta * G * regret_power(record.learner, t)
    if isinstance(phi, ExponentialPotential):
        room = 1.0 - s * phi.lam
        if np.any(room <= 0.0):
            grown = "sqrt(t)" if (b := getattr(record.learner, "power", 0.5)) == 0.5 else f"t^{b:g}"
            return Bound(why=f"kappa*lam*{grown} = {float(np.max(s * phi.lam)):.3g} must be below 1")
        regret = s / beta * (1.0 + phi.lam / V)
        ccv = np.log((1.0 + V * (s + beta * G * D * t)) / room) / (beta * phi.lam)
    elif isinstance(phi, (PowerPotential, QuadraticPotential)):
        n = 2.0 if isinstance(phi, QuadraticPotential) else phi.exponent
        regret = (s + (n - 1.0) ** (n - 1.0) * s**n / V) / beta
        ccv = (n * s + (V * (s + beta * G * D * t)) ** (1.0 / n)) / beta
    else:
        return Bound(why=f"no bound is known for the potential {type(phi).__name__}")
    return capped_bound(regret, ccv, G * D, 1.0, t)


def mixture_bound(K: int, ranges: float, t: float, T: float) -> Bound:
    """Algorithm 1 with ``learner="adahedge"`` on a simplex of mass 1 with K corners, where no gradient's range exceeds `ranges`.

    `reduction_bound` with ranges in place of lengths: gradients are no longer than the policy is told where
    ``lipschitz=ranges / sqrt(2)``, and then c = sqrt(4 + ln K), kappa = c beta ranges = 1/sqrt(2), lam = 1/(2 sqrt(T)), V = 1. Values of
    the costs, and of constraints that hold somewhere, differ by no more than `ranges`.

        Regret_t <= c ranges sqrt(t) (1 + 1/(2 sqrt(T)))
        CCV_t <= 2 sqrt(2) c ranges sqrt(T) ln[(1 + sqrt(t/2) + t/(sqrt(2) c)) / (1 - sqrt(t/(8T)))]

    AdaGrad, with gradients centred, has sqrt(K) in place of c: they may be sqrt(K)/2 times as long as their ranges: more from K = 6 on.

    >>> round(float(mixture_bound(128, 1.0, 1000, 1000).regret), 1)
    95.6
    """
    c = sqrt(4.0 + log(K))
    regret = c * ranges * sqrt(t) * (1.0 + 0.5 / sqrt(T))
    inside = (1.0 + sqrt(t / 2.0) + t / (sqrt(2.0) * c)) / (1.0 - sqrt(t / (8.0 * T)))
    return capped_bound(regret, 2.0 * sqrt(2.0) * c * ranges * sqrt(T) * log(inside), ranges, 1.0, t)


def strong_bound(policy: Configuration[Lyapunov], constants: Constants, t: float) -> Bound:
    """Algorithm 1 with Phi(q) = q^2 and steps 1 / (V beta alpha t), on alpha-strongly convex costs.

    Q^2 + V beta Regret_t <= c (V + 2Q)^2 with c = beta G^2 harm(t) / (2 alpha V): maximise over Q for the regret; solve the quadratic with
    Regret_t >= -r for the CCV, where r = GDt, or less where ``constants["regret"]`` says how negative regret is at round t: the bound is
    continuous in r, and O(log T) for r = O(log T), as the comment after Theorem 2 has it.

    In a session a round may have no cost, or one of another modulus, and gradients are known at the decisions alone. Then harm(t) / alpha
    is the sum of 1/H_s over the rounds with a cost, and each of the other rounds that violate a constraint adds (2 beta G Q)^2 / (2 V beta
    H_s), H_s >= alpha: with b = beta G^2 / (2 alpha V) times their number, and with P = alpha D^2 / 2 where moduli were smaller than told
    (see `bridle.policies.common`), Q^2 + V beta Regret_t <= c (V + 2Q)^2 + 4 b Q^2 + V beta P. With room = 1 - 4c - 4b the maximum over Q
    is Regret_t <= c V (1 - 4b) / (beta room) + P, and the quadratic's root is what is below; r is `most_behind`.
    """
    record = policy.record
    if not (isinstance(record.learner, CurvedOGD) and isinstance(record.potential, QuadraticPotential)):
        return Bound(why="the learner or the potential was replaced")
    V, beta = record.V, record.beta
    alpha = record.learner.modulus / (V * beta)  # the modulus the policy was told
    if why := unmet(constants, modulus=alpha):
        return Bound(why=why)
    G, D, seen = constants["lipschitz"], constants["diameter"], curvature_of(constants, t)
    if not seen.regular and np.any(abs(alpha - policy.parameters["modulus"]) > 1e-9 * alpha):
        return Bound(why="the learner was replaced, and a round had no cost, or one of a smaller modulus than the policy was told")
    unit = beta * G * G / (2.0 * alpha * V)
    c, b, P = unit * over_costs(seen, 1.0), unit * seen.struck, 0.5 * alpha * D * D * in_advance(seen)
    room = 1.0 - 4.0 * (c + b)
    if np.any(room <= 0.0):
        return Bound(why=f"V = {float(np.min(V)):.3g} is too small: it must be above 2 G^2 beta harm(t) / alpha")
    behind = at_least(constants, most_behind(constants, t, alpha))
    regret = c * V * (1.0 - 4.0 * b) / (beta * room) + P
    ccv = (2.0 * c * V + np.sqrt(c * V * V * (1.0 - 4.0 * b) + room * V * beta * (behind + P))) / (room * beta)
    return capped_bound(regret, ccv, G * D, 1.0, t)


def doubling_bound(domain: Domain, constants: Constants, T: int, growth: str = "double", **settings: Any) -> Bound:
    """Algorithm 1 restarted on epochs that grow (`bridle.Doubling`): the sum of the epochs' own bounds. Their proofs may begin anywhere.

    With a `modulus` it is Algorithm 1 for strongly convex costs. There epochs of 2, 4, 16, ... rounds (``growth="square"``) keep the regret
    logarithmic, by `bridle.learners.wrappers.squaring_regret`; the horizon of an epoch is at most T^2, and its logarithm at most 2 ln T.
    For convex costs they have no such use: the violation of an epoch grows with the root of the horizon it was made for.

    >>> import bridle
    >>> ball = bridle.Ball(2)
    >>> facts = {"lipschitz": 1.0, "diameter": 2.0, "feasible": ball.center()}
    >>> bound = doubling_bound(ball, facts, 1000)
    >>> bound.regret < 2**1.5 * ((2**0.5 + 1) * (2000**0.5 - 1) + 5)
    True
    >>> square, double = (doubling_bound(ball, {**facts, "modulus": 0.5}, 10**6, growth, modulus=0.5) for growth in ("square", "double"))
    >>> round(square.regret, 1), round(double.regret, 1)
    (49.3, 188.9)
    """
    validate.one_of("growth", growth, ("double", "square"))
    settings = {"lipschitz": constants["lipschitz"], **settings}

    def of_epoch(length: int, rounds: int) -> Bound:
        if "modulus" not in settings:
            return reduction_bound(sinha2024(domain, horizon=length, **settings).record, alone, rounds)
        return strong_bound(sinha2024_strong(domain, horizon=length, **settings), alone, rounds)

    alone: Constants = {**constants}
    alone.pop("regret", None)  # what is known of regret is about all rounds, and says nothing of one epoch
    parts = [of_epoch(length, rounds) for length, rounds in doubling_epochs(T, growth)]
    if any(part.why for part in parts):
        return Bound(why=next(part.why for part in parts if part.why))
    return Bound(sum(cast(float, part.regret) for part in parts), sum(cast(float, part.ccv) for part in parts))


# --- when the printed theorems apply, and the registry's entries ----------------------------------------------------------------------


def _flat(bound: Bound) -> Bound:
    return Bound(flat(cast(Scalar, bound.regret)), flat(cast(Scalar, bound.ccv)))


def _paper_convex(policy: Configuration[Lyapunov], constants: Constants, t: float) -> Bound:
    parameters = policy.parameters
    told: dict[str, Any] = {key: parameters.get(key) for key in ("horizon", "lipschitz", "diameter")}
    theory = sinha2024(policy.domain, **told).record
    if why := unmet(constants) or departure(policy, constants, theory):
        return Bound(why=why)
    bound = theorem1(parameters["lipschitz"], parameters.get("diameter", policy.domain.diameter()), t, parameters["horizon"])
    return _flat(bound)


def _paper_strong(policy: Configuration[Lyapunov], constants: Constants, t: float) -> Bound:
    parameters = policy.parameters
    theory = sinha2024_strong(policy.domain, **{key: parameters[key] for key in ("horizon", "lipschitz", "modulus")}).record
    if why := unmet(constants, modulus=parameters["modulus"]) or departure(policy, constants, theory):
        return Bound(why=why)
    regret = constants.get("regret")
    least = None if regret is None else float(regret)
    bound = theorem2(parameters["lipschitz"], constants["diameter"], parameters["modulus"], t, parameters["horizon"], least)
    return _flat(bound)


def departure(policy: Configuration[object], constants: Constants, theory: object) -> str:
    """In what the policy differs from the one the printed theorem is about; empty when in nothing."""
    parameters = policy.parameters
    if parameters.get("preset", "theory") != "theory":
        return f"the preset is {parameters['preset']}, not the theorem's"
    if not same(policy.record, theory):
        overrides = ("V", "beta", "lam", "learner", "potential", "exponent", "step", "initial")
        by_hand = [name for name in overrides if name in parameters]
        return f"{' and '.join(by_hand)} {'was' if len(by_hand) == 1 else 'were'} set by hand"
    if "lipschitz" in parameters and parameters["lipschitz"] < constants["lipschitz"] * (1.0 - 1e-12):
        return f"the true Lipschitz constant is {constants['lipschitz']:.4g}, above the one the policy was told"
    if parameters.get("diameter", policy.domain.diameter()) < constants["diameter"] * (1.0 - 1e-12):
        return f"the true diameter is {constants['diameter']:.4g}, above the one the policy was told"
    return ""


REFERENCE = "Sinha & Vaze, NeurIPS 2024"


@registered(
    reference=REFERENCE,
    regret="O(sqrt(T))",
    violation="O(sqrt(T) log T)",
    bound=convex_bound,
    paper=_paper_convex,
    needs=("horizon", "lipschitz", "diameter"),
    dropped={"delay": "use the policy adagrad with delay, or tickets of a session"},
)
def sinha2024(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    diameter: Setting | None = None,
    preset: Literal["theory", "tight", "practice"] = "theory",
    learner: str | Learner[Any] = "adagrad",
    potential: str | Potential = "exponential",
    V: Setting | None = None,
    beta: Setting | None = None,
    lam: Setting | None = None,
    exponent: Setting | None = None,
    step: Setting | None = None,
    samples: int | None = None,
    seed: int | None = None,
    constraints: int | None = None,
    initial: Setting | None = None,
    **through: Unpack[Through],
) -> Lyapunov:
    """Algorithm 1, convex costs.

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
        Which constants to start from. Values: theory (the theorem's), tight (sharper ones) or practice (reacts at
        realistic horizons).
    learner
        The OCO algorithm inside. Values: adagrad, adaftrl, ftpl, ogd; on a simplex adahedge, mlpoly, track; or a
        learner of the same domain.
    potential
        The Lyapunov function. Values: exponential, quadratic, power, or a potential.
    V
        The weight of the cost against the potential's slope. Default: 1 with the exponential potential, lam with
        the preset practice, else that of Theorem 1. Values: above 0.
    beta
        The scale of costs and constraints alike. Default: 1 / (sqrt(2) c G), c the learner's regret constant; 1 /
        (c G) with the presets tight and practice. Values: above 0. Unit: 1 / (lipschitz times diameter).
    lam
        The rate of the exponential potential. Default: 1 / (2 sqrt(T)); 0.9 / sqrt(T) with the presets tight and
        practice. Values: above 0.
    exponent
        n of the power potential q^n. Default: ln T rounded up, at least 2. Values: 2 or above.
    step
        The step of learner='ogd'. Default: the best one at the first violation. Values: above 0. Unit: action per
        unit of gradient.
    samples
        How many draws learner='ftpl' averages. Default: 1000. Values: a whole number, 1 or above. Unit: draws.
    seed
        The seed of learner='ftpl'. Default: 0. Values: a whole number, 0 or above.
    constraints
        k, how many constraints a round reveals; only checked, since the worst of any number counts. Default: any
        number. Values: a whole number, 1 or above. Unit: constraints.
    initial
        What the sum of squared gradients of learner='adagrad' starts from. Default: 0. Values: 0 or above. Unit:
        squared gradient.
    """
    T, G = validate.rounds("horizon", horizon), validate.setting("lipschitz", lipschitz)
    D = diameter_of(domain, diameter)
    validate.one_of("preset", preset, ("theory", "tight", "practice"))
    if initial is not None:
        if learner != "adagrad":
            raise InputError(f"initial is for learner='adagrad' only, not for {validate.show(learner)}")
        learner = AdaGrad(domain, D, initial)
    inside: Learner[Any] | None = learner_or_step(learner, domain, D, samples, seed)
    # kappa = c * beta * G is the constant in front of sqrt(t): 1/sqrt(2) in the theorem, 1 in the sharper presets.
    c = None if inside is None else regret_constant(inside, D)
    beta = 1.0 / ((sqrt(2.0) if preset == "theory" else 1.0) * (sqrt(2.0) * D if c is None else c) * G) if beta is None else beta
    beta = validate.setting("beta", beta)
    check_unused(potential, lam, exponent)
    lam = validate.setting("lam", (0.5 if preset == "theory" else NU) / T**0.5 if lam is None else lam)
    phi, weight = potential_for(potential, lam, exponent, T)
    if preset == "practice" and isinstance(phi, ExponentialPotential):
        weight = phi.lam
    V = told("V", V, weight)
    if inside is None:
        # The best constant step for gradients as long as the surrogate's at the first violation.
        inside = OGD(domain, D / (beta * G * (V + lam) * T**0.5) if step is None else step)
    elif step is not None:
        raise InputError(f"step is for learner='ogd' only, not for {validate.show(learner)}")
    return Lyapunov(inside, phi, V, beta)


@registered(
    reference=REFERENCE,
    regret="O(log T)",
    violation="O(sqrt(T log T)), O(log T) where regret >= 0",
    bound=strong_bound,
    paper=_paper_strong,
    strongly_convex=True,
    needs=("horizon", "lipschitz", "modulus"),
)
def sinha2024_strong(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    modulus: Setting,
    learner: str | Learner[Any] | None = None,
    potential: str | Potential = "quadratic",
    V: Setting | None = None,
    beta: Setting = 1.0,
    lam: Setting | None = None,
    exponent: Setting | None = None,
    constraints: int | None = None,
    **through: Unpack[Through],
) -> Lyapunov:
    """Algorithm 1, strongly convex costs.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    modulus
        Strong convexity of the costs. Values: above 0. Unit: cost per squared unit of action.
    learner
        The OCO algorithm inside. Default: gradient descent for strongly convex costs. Values: adagrad, adaftrl,
        ftpl, ogd; on a simplex adahedge, mlpoly, track; or a learner of the same domain.
    potential
        The Lyapunov function. Values: quadratic, power, exponential, or a potential.
    V
        The weight of the cost against the potential's slope. Default: 8 G^2 ln(e T) / modulus. Values: above 0.
    beta
        The scale of costs and constraints alike. Values: above 0. Unit: 1 / constraint.
    lam
        The rate of potential='exponential'. Default: must be given with that potential. Values: above 0.
    exponent
        n of the power potential q^n. Default: ln T rounded up, at least 2. Values: 2 or above.
    constraints
        k, how many constraints a round reveals; only checked, since the worst of any number counts. Default: any
        number. Values: a whole number, 1 or above. Unit: constraints.
    """
    T, G, alpha = validate.rounds("horizon", horizon), validate.setting("lipschitz", lipschitz), validate.setting("modulus", modulus)
    beta = validate.setting("beta", beta)
    V = 8.0 * G * G * np.log(e * T) / alpha if V is None else V
    V = validate.setting("V", V)
    check_unused(potential, lam, exponent)
    phi, _ = potential_for(potential, told("lam", lam, None), exponent, T)
    inside: Learner[Any] = StronglyConvexOGD(domain, V * beta * alpha) if learner is None else learner_for(learner, domain, None)
    return Lyapunov(inside, phi, V, beta)
