"""Unconstrained learners as policies: they minimise the costs and never look at a constraint.

    x_{t+1} = the learner's next decision after grad f_t(x_t)

What a comparison needs on the other side of every constrained policy: the regret to be had, and the violation it costs.

Guarantee: `ogd_bound`, `adagrad_bound`, `adaftrl_bound`, `ranged_bound`, `mlpoly_bound`, `ons_bound`, against every action of the domain,
    feasible or not; none on violation. `ftpl_theorem` is for the exact expectation, of which the policy plays a Monte-Carlo mean.
Reference: M. Zinkevich, ICML 2003 (ogd); J. Duchi, E. Hazan, Y. Singer, JMLR 2011 (adagrad); F. Orabona, D. Pal, Theoretical Computer
    Science 2018 (adaftrl); J. Abernethy, C. Lee, A. Sinha, A. Tewari, COLT 2014 (ftpl); S. de Rooij, T. van Erven, P. Grunwald, W. Koolen,
    JMLR 2014 (adahedge); P. Gaillard, G. Stoltz, T. van Erven, COLT 2014 (mlpoly); `bridle.learners.track` (track); E. Hazan, A. Agarwal,
    S. Kale, Machine Learning 2007 (ons).

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3)
>>> trace = bridle.play(bridle.policy_for("ogd", problem), problem)
>>> bool(bridle.regret(trace) <= trace.policy.bound(problem.constants, 500).regret)
True
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Generic, Literal, NamedTuple, TypeVar, Unpack, cast

import numpy as np

from bridle import learners, validate
from bridle.core import Bound, Constants, Domain, Feedback, Learner, Movable, capability
from bridle.learners.late import AdaGradLate, LateAdaGrad, LateAdaGradState
from bridle.ops import Array, Scalar
from bridle.policies.common import diameter_of, exp_concavity_of, flat, unsized
from bridle.policies.entry import Configuration, Setting, Variant
from bridle.policies.registry import Through, registered

L = TypeVar("L", bound=Learner[Any])
"""The learner that plays."""


class Unconstrained(NamedTuple, Generic[L]):
    """Run `learner` on the costs alone; the state is the learner's."""

    learner: L

    @property
    def domain(self) -> Domain:
        return self.learner.domain

    def init(self, x1: Array) -> object:
        return self.learner.init(x1)

    def decide(self, state: object) -> Array:
        return self.learner.decide(state)

    def move(self, state: object, x: Array) -> object | None:
        """The state with x in place of its next decision; None where the learner keeps no iterate."""
        return learners.moved(self.learner, state, x)

    def metric(self, state: object) -> Array | None:
        """The matrix in whose norm the learner's proof measures distances; None for the identity, or a multiple of it."""
        movable = capability(self.learner, Movable)
        return None if movable is None else movable.metric(state)

    def update(self, state: object, feedback: Feedback) -> object:
        if hasattr(self.learner, "step_at"):
            return self.learner.step_at(state, feedback.df, feedback.x)
        return self.learner.step(state, feedback.df)

    def adagrad_steps(self, state: object) -> learners.AdaGradSteps | None:
        """What its steps are made of, where they are AdaGrad's."""
        if not isinstance(self.learner, learners.AdaGradNorm):
            return None
        return learners.AdaGradSteps(self.learner.diameter, self.learner.squares(cast(learners.Iterate, state)))

    def certified_regret(self, state: object) -> float | None:
        """What the learner's own proof says of the regret so far, where it says anything."""
        return float(self.learner.certified(state)) if hasattr(self.learner, "certified") else None


class ArrivedBefore(NamedTuple):
    """How many gradients had arrived when a decision was made."""

    gradients: Scalar


class LateUnconstrained(NamedTuple):
    """AdaGrad on the costs alone, one learner for rounds whose feedback comes late; the state is the learner's."""

    learner: AdaGradLate

    @property
    def domain(self) -> Domain:
        return self.learner.domain

    def init(self, x1: Array) -> LateAdaGradState:
        return self.learner.init(x1)

    def decide(self, state: LateAdaGradState) -> Array:
        return self.learner.decide(state)

    def update(self, state: LateAdaGradState, feedback: Feedback) -> LateAdaGradState:
        return self.learner.step(state, feedback.df)

    def made(self, state: LateAdaGradState) -> ArrivedBefore:
        """What is remembered of a decision until its feedback comes."""
        return ArrivedBefore(state.observed_rounds)

    def update_late(self, state: LateAdaGradState, feedback: Feedback, made: ArrivedBefore, others: float) -> LateAdaGradState:
        """The state after feedback on a decision that was made some time ago, while `others` more wait."""
        return self.learner.step_late(state, feedback.df, state.observed_rounds - made.gradients, others)

    def certified_regret(self, state: LateAdaGradState) -> float:
        """What the learner's own proof says of the regret so far."""
        return float(self.learner.certified(state))


def _regret(constants: Constants, t: float, value: Scalar) -> Bound:
    return Bound(flat(np.minimum(value, constants["lipschitz"] * constants["diameter"] * t)))


def ogd_bound(policy: Configuration[Unconstrained[learners.ConstantOGD | learners.DecreasingOGD]], constants: Constants, t: float) -> Bound:
    """`bridle.learners.ogd_regret` or `decreasing_ogd_regret`."""
    if why := unsized(constants):
        return Bound(why=why)
    learner = policy.record.learner
    theorem = learners.decreasing_ogd_regret if isinstance(learner, learners.DecreasingOGD) else learners.ogd_regret
    return _regret(constants, t, theorem(constants["diameter"], constants["lipschitz"], cast(float, learner.step_size), t))


def adagrad_bound(policy: Configuration[Unconstrained[learners.AdaGradNorm] | LateUnconstrained], constants: Constants, t: float) -> Bound:
    """`bridle.learners.adagrad_regret` with S <= G^2 t, for the diameter the learner was told.

    With `delay` it is `bridle.learners.late.late_adagrad_regret`, with the sums that the game has found.
    """
    if why := unsized(constants):
        return Bound(why=why)
    if isinstance(policy.record, LateUnconstrained):
        proved, seen = constants.get("observed_regret"), constants.get("observed_rounds")
        if proved is None or seen is None or np.any(np.asarray(seen) < t):
            return Bound(why="the bound depends on how many rounds waited, which a game finds out")
        return _regret(constants, t, proved)
    return _regret(constants, t, policy.record.learner.adaptivity(constants["diameter"]) * constants["lipschitz"] * sqrt(t))


def adaftrl_bound(
    policy: Configuration[Unconstrained[learners.SoloFTRL | learners.StructuredFTRL]], constants: Constants, t: float
) -> Bound:
    """`bridle.learners.adaftrl_regret` with S <= G^2 t, for the regulariser's own weight c; or `structured_regret` of the geometry."""
    if why := unsized(constants):
        return Bound(why=why)
    G, D, learner = constants["lipschitz"], constants["diameter"], policy.record.learner
    if isinstance(learner, learners.StructuredFTRL):
        return _regret(constants, t, learner.adaptivity(D) * G * sqrt(t))
    c = learner.c
    return _regret(constants, t, (D * D / (2.0 * c) + 2.75 * c) * G * sqrt(t) + 3.5 * D * G)


def ftpl_bound(policy: Configuration[Unconstrained[learners.FixedFTPL | learners.AdaptiveFTPL]], constants: Constants, t: float) -> Bound:
    """None: `ftpl_theorem` is about the exact expectation, and how far the mean of finitely many draws strays from it is not proved."""
    return Bound(why=f"the theorem is for the exact expectation, not for the mean of {len(policy.record.learner.Z)} draws")


def ftpl_theorem(policy: Configuration[Unconstrained[learners.AdaptiveFTPL]], constants: Constants, t: float) -> Bound:
    """`bridle.learners.adaptive_ftpl_regret` with S <= G^2 t, as if the expectation were exact."""
    if why := unsized(constants):
        return Bound(why=why)
    G = constants["lipschitz"]
    return _regret(constants, t, learners.adaptive_ftpl_regret(constants["diameter"], policy.domain.dim, G * G * t))


Ranged = learners.Hedge | learners.Tracking | learners.Grouped


def ranged_bound(policy: Configuration[Unconstrained[Ranged]], constants: Constants, t: float) -> Bound:
    """`bridle.learners.hedge_regret` or `track_regret` without a switch: a range of losses is at most G D, D = sqrt(2) mass."""
    if why := unsized(constants):
        return Bound(why=why)
    return _regret(constants, t, policy.record.learner.adaptivity(constants["diameter"]) * constants["lipschitz"] * sqrt(t))


def mlpoly_bound(policy: Configuration[Unconstrained[learners.MLPolyLearner | learners.Grouped]], constants: Constants, t: float) -> Bound:
    """`bridle.learners.poly_regret` with b <= G D and S <= (G D)^2 t, and the Psi of the game, which does not fall."""
    if why := unsized(constants):
        return Bound(why=why)
    learner, Psi = policy.record.learner, constants.get("Psi")
    if not isinstance(learner, learners.MLPolyLearner):
        return Bound(why="the bound of several mixtures is the sum of their own, each with its own Psi")
    if Psi is None:
        return Bound(why="the bound depends on how the sizes of losses spread (Psi), which a game finds out")
    range_ = constants["lipschitz"] * constants["diameter"]
    return _regret(constants, t, learners.poly_regret(range_, range_ * range_ * t, learner.prior.min(), 1.0) * Psi)


def ons_bound(policy: Configuration[Unconstrained[learners.NewtonStep]], constants: Constants, t: float) -> Bound:
    """`bridle.learners.ons_regret` with B <= G D, S <= G^2 t, and the shortfall of the game."""
    if why := unsized(constants):
        return Bound(why=why)
    learner, true, shortfall = policy.record.learner, exp_concavity_of(constants), constants.get("shortfall")
    told = float(np.max(learner.alpha))
    if true is not None and told > true * (1.0 + 1e-12):
        return Bound(why=f"the costs' exp-concavity is {true:.4g}, less than the {told:.4g} the policy was told")
    if shortfall is None:
        return Bound(why="the bound depends on how exactly steps were solved (shortfall), which a game finds out")
    G, D, n = constants["lipschitz"], constants["diameter"], learners.directions(learner.domain)
    theorem = np.vectorize(lambda alpha, own, left: learners.ons_regret(n, alpha, D, G * D, G * G * t, own, left))
    return _regret(constants, t, theorem(flat(learner.alpha), flat(learner.diameter), shortfall))


_GRADIENT = "gradient of the cost"


@registered(
    reference="Zinkevich, ICML 2003",
    regret="O(sqrt(T))",
    violation="-",
    feedback=_GRADIENT,
    bound=ogd_bound,
    needs=("lipschitz", "diameter"),
)
def ogd(
    domain: Domain,
    *,
    lipschitz: Setting,
    horizon: Setting | None = None,
    diameter: Setting | None = None,
    step: Setting | None = None,
    **through: Unpack[Through],
) -> Unconstrained[learners.ConstantOGD | learners.DecreasingOGD]:
    """Gradient descent, constraints ignored.

    Parameters
    ----------
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    horizon
        T, how many rounds will be played. Default: steps shrink as 1 / sqrt(t); given, the step is constant.
        Values: a whole number, 1 or above. Unit: rounds.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    step
        The step size. Default: D / (sqrt(2) G), or D / (G sqrt(T)) where the horizon is given. Values: above 0.
        Unit: action per unit of gradient.
    """
    G = validate.setting("lipschitz", lipschitz)
    D = diameter_of(domain, diameter)
    if horizon is None:
        return Unconstrained(learners.OGD(domain, D / (2.0**0.5 * G) if step is None else step, decay="sqrt"))
    T = validate.rounds("horizon", horizon)
    return Unconstrained(learners.OGD(domain, D / (G * T**0.5) if step is None else step))


@registered(
    reference="Duchi, Hazan & Singer, JMLR 2011",
    regret="O(sqrt(T))",
    violation="-",
    feedback=_GRADIENT,
    bound=adagrad_bound,
    needs=("diameter",),
)
def adagrad(
    domain: Domain,
    *,
    diameter: Setting | None = None,
    delay: Setting | None = None,
    **through: Unpack[Through],
) -> Unconstrained[learners.AdaGradNorm | learners.AdaGradFrom] | LateUnconstrained:
    """AdaGrad, constraints ignored.

    Parameters
    ----------
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    delay
        How many other rounds may be waiting when late feedback is fed in. Default: feedback comes before the next
        decision. Values: 0 or above. Unit: rounds.
    """
    if delay is not None:
        return LateUnconstrained(LateAdaGrad(domain, delay, diameter))
    return Unconstrained(learners.AdaGrad(domain, diameter))


@registered(
    reference="Orabona & Pal, TCS 2018",
    regret="O(sqrt(T))",
    violation="-",
    feedback=_GRADIENT,
    bound=adaftrl_bound,
    needs=("diameter",),
    variants=(
        Variant(
            "geometry",
            "entropy",
            {
                "domains": ("simplex", "l1", "spectrahedron", "paths", "spanning trees"),
                "cost": "1 softmax",
            },
        ),
        Variant("geometry", "p-norm", {"domains": ("l1",), "cost": "60 sums of powers"}),
    ),
)
def adaftrl(
    domain: Domain,
    *,
    diameter: Setting | None = None,
    geometry: Literal["euclidean", "entropy", "p-norm"] = "euclidean",
    exponent: float | None = None,
    **through: Unpack[Through],
) -> Unconstrained[learners.SoloFTRL | learners.StructuredFTRL]:
    """Scale-free FTRL, constraints ignored.

    Parameters
    ----------
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    geometry
        How distance is measured. Values: euclidean, entropy (on a simplex, an L1 ball, a spectrahedron, paths or
        spanning trees) or p-norm (on an L1 ball).
    exponent
        p of geometry='p-norm'. Default: that of the dual exponent max(2, 2 ln d). Values: above 1, at most 2.
    """
    return Unconstrained(learners.AdaFTRL(domain, diameter, geometry, exponent))


@registered(
    reference="Abernethy, Lee, Sinha & Tewari, COLT 2014",
    regret="O(sqrt(T)) in expectation",
    violation="-",
    feedback=_GRADIENT,
    bound=ftpl_bound,
    paper=ftpl_theorem,
    cost="1 linear minimisation per draw",
)
def ftpl(
    domain: Domain,
    *,
    samples: int = 1000,
    seed: int = 0,
    **through: Unpack[Through],
) -> Unconstrained[learners.FixedFTPL | learners.AdaptiveFTPL]:
    """Perturbed leader, constraints ignored.

    Parameters
    ----------
    samples
        How many draws the Monte-Carlo mean uses. Values: a whole number, 1 or above. Unit: draws.
    seed
        The seed of the policy's own randomness. Values: a whole number, 0 or above.
    """
    return Unconstrained(learners.FTPL(domain, samples=samples, seed=seed))


@registered(
    reference="Rooij, Erven, Grunwald & Koolen, JMLR 2014",
    regret="O(sqrt(T log K))",
    violation="-",
    feedback=_GRADIENT,
    bound=ranged_bound,
    domains=("simplex",),
    cost="2 softmax",
)
def adahedge(
    domain: Domain,
    **through: Unpack[Through],
) -> Unconstrained[learners.Hedge | learners.Grouped]:
    """Exponential weights, constraints ignored."""
    return Unconstrained(learners.AdaHedge(domain))


@registered(
    reference="Gaillard, Stoltz & Erven, COLT 2014",
    regret="O(sqrt(T K log T))",
    violation="-",
    feedback=_GRADIENT,
    bound=mlpoly_bound,
    domains=("simplex",),
    cost="a few sums",
)
def mlpoly(
    domain: Domain,
    **through: Unpack[Through],
) -> Unconstrained[learners.MLPolyLearner | learners.Grouped]:
    """A mixture with a scale for each corner, constraints ignored."""
    return Unconstrained(learners.MLPoly(domain))


@registered(
    reference="The bridle developers, This library 2026",
    regret="O(sqrt(T log K)), O(sqrt((1 + P) T log(KT))) with P switches",
    violation="-",
    feedback=_GRADIENT,
    bound=ranged_bound,
    domains=("simplex",),
    cost="19 softmax",
)
def track(
    domain: Domain,
    **through: Unpack[Through],
) -> Unconstrained[learners.Tracking | learners.Grouped]:
    """Follows the corner that is best at the time, constraints ignored."""
    return Unconstrained(learners.Track(domain))


@registered(
    reference="Hazan, Agarwal & Kale, Machine Learning 2007",
    regret="O(d log(T)), O(sqrt(T)) with exp_concavity=0",
    violation="-",
    feedback=_GRADIENT,
    bound=ons_bound,
    needs=("exp_concavity", "diameter"),
    cost="some 10 projections and products with a d x d matrix",
)
def ons(
    domain: Domain,
    *,
    exp_concavity: Setting,
    diameter: Setting | None = None,
    **through: Unpack[Through],
) -> Unconstrained[learners.NewtonStep]:
    """Online Newton step, constraints ignored.

    Parameters
    ----------
    exp_concavity
        alpha: exp(-alpha f) is concave for every cost f; 1 for the log-wealth of a portfolio, 0 for merely convex
        costs. Values: 0 or above. Unit: 1 / cost.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    """
    return Unconstrained(learners.ONS(domain, exp_concavity, diameter))
