"""Sun, Dey, Kapoor 2017: online mirror descent under constraints that arrive one after the other.

One multiplier for the worst of the constraints, everything at (x_t, lam_t); B_psi is the Bregman divergence of the mirror map psi:

    x_{t+1} = argmin_X mu <grad f_t(x_t) + lam grad g_t(x_t), x> + B_psi(x, x_t)
    lam    <- (lam + mu (g_t(x_t) - theta lam))^+                          theta = 4 L^2 mu

``mirror="euclidean"``: psi = |x|^2 / (2 D^2), a projected step of mu D^2, L = G D and B_psi <= B = 1/2. (The paper's own psi has D = 1:
set ``diameter=1`` and ``step``, which is mu.) ``mirror="entropic"``, on a simplex of mass m: psi = sum (x_i/m) ln(x_i/m), so that
x_{t+1,i} is proportional to x_{t,i} e^{-mu m p_i}; L = G m and B = ln d from the uniform decision, which is always the first (x_1 is
not used). G bounds the gradients' largest entry there; their length is enough. By default mu = sqrt(B / (T (F^2 + L^2))), capped at
1/(4L). Update and parameters as commonly stated, but for theta, which the proof needs to be twice that; the bound is proved for exactly
this update. The Euclidean form is the gradient form of `mahdavi2012` with one constraint.

Guarantee: `sun_bound`: regret O(sqrt(T)), violation O(T^{3/4}).
Reference: W. Sun, D. Dey, A. Kapoor. Safety-Aware Algorithms for Adversarial Contextual Bandit. ICML 2017.

>>> import bridle
>>> policy = bridle.policy("sun2017", bridle.Simplex(4), horizon=500, lipschitz=1.0, bound=1.7, mirror="entropic")
>>> trace = bridle.play(policy, "halfspaces")
>>> bridle.soft_violation(trace) <= policy.bound(trace.problem.constants, 500).soft
True
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Unpack

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Domain, Feedback, InputError
from bridle.domains.closed_form import SimplexSet
from bridle.ops import Array, Scalar, exp, pos, scalar, worst
from bridle.policies.common import capped_bound, clipped, diameter_of, largest, switch, unmet
from bridle.policies.entry import CLIPPED, Configuration, Setting, Variant
from bridle.policies.registry import Through, registered


class Euclidean(NamedTuple):
    """psi = |x|^2 / (2 width^2); what is kept is the decision."""

    domain: Domain
    width: Scalar

    def start(self, x1: Array) -> Array:
        return x1

    def point(self, z: Array) -> Array:
        return z

    def step(self, z: Array, v: Array) -> Array:
        return self.domain.project(z - self.width**2 * v)

    def reach(self, diameter: Scalar) -> Scalar:
        """The largest divergence from the first decision, on a domain of this diameter."""
        return 0.5 * (diameter / self.width) ** 2

    def steepness(self, lipschitz: Scalar) -> Scalar:
        """L: the largest slope in the norm that goes with psi."""
        return lipschitz * self.width


class Entropic(NamedTuple):
    """psi = sum (x_i/mass) ln(x_i/mass) on a simplex; what is kept are log-weights, the largest of them 0, so that nothing overflows."""

    domain: SimplexSet

    def start(self, x1: Array) -> Array:
        return 0.0 * x1

    def point(self, z: Array) -> Array:
        weights = exp(z)
        return self.domain.mass * weights / weights.sum(axis=-1, keepdims=True)  # type: ignore[no-any-return]

    def step(self, z: Array, v: Array) -> Array:
        z = z - self.domain.mass * v
        return z - z.max(axis=-1, keepdims=True)  # type: ignore[no-any-return]

    def reach(self, diameter: Scalar) -> Scalar:
        return float(np.log(self.domain.dim))

    def steepness(self, lipschitz: Scalar) -> Scalar:
        return lipschitz * self.domain.mass


class MirrorState(NamedTuple):
    """What the mirror map keeps of the decision, and the multiplier."""

    z: Array
    lam: Scalar


class MirrorPrimalDual(NamedTuple):
    """A mirror-descent step in x and a regularised ascent step in the multiplier, at the same time."""

    mirror: Euclidean | Entropic
    step: Scalar
    theta: Scalar
    clip: Scalar

    @property
    def domain(self) -> Domain:
        return self.mirror.domain

    def init(self, x1: Array) -> MirrorState:
        return MirrorState(self.mirror.start(x1), scalar(x1))

    def decide(self, state: MirrorState) -> Array:
        return self.mirror.point(state.z)

    def update(self, state: MirrorState, feedback: Feedback) -> MirrorState:
        g, dg = worst(*clipped(feedback, self.clip))
        lam = pos(state.lam + self.step * (g - self.theta * state.lam))
        return MirrorState(self.mirror.step(state.z, self.step * (feedback.df + state.lam * dg)), lam)


def sun_bound(policy: Configuration[MirrorPrimalDual], constants: Constants, t: float) -> Bound:
    """Regret_t <= C_t and violation <= sqrt(2 (1/mu + theta t)(G D t + C_t)), C_t = B/mu + mu (L^2 + F^2) t.

    A mirror step has  mu <p, x_t - u> <= B(u, x_t) - B(u, x_{t+1}) + mu^2 |p|_*^2 / (2 alpha)  for psi alpha-strongly convex, and here
    |p|_*^2 / alpha <= L^2 (1 + lam_t)^2 <= 2 L^2 (1 + lam_t^2). The rest is as for `mahdavi2012`; the sum of lam_t^2 is not positive if
    mu L^2 + mu theta^2 <= theta/2.
    """
    record, why = policy.record, unmet(constants)
    F = None if why else largest(constants, record.clip)
    if F is None:
        return Bound(why=why or "the largest |g| is not known")
    G, D, mu, theta = constants["lipschitz"], constants["diameter"], record.step, record.theta
    L, B = record.mirror.steepness(G), record.mirror.reach(D)
    if np.any(mu * (L**2 + theta**2) > 0.5 * theta * (1.0 + 1e-12)):
        return Bound(why="the step is too large: mu (L^2 + theta^2) must not be above theta/2")
    C = B / mu + mu * (L**2 + F**2) * t
    return capped_bound(C, np.sqrt(2.0 * (1.0 / mu + theta * t) * (G * D * t + C)), G * D, record.clip, t)


@registered(
    reference="Sun, Dey & Kapoor, ICML 2017",
    regret="O(sqrt(T))",
    violation="soft O(T^3/4)",
    bound=sun_bound,
    metric="soft",
    needs=("horizon", "lipschitz", "diameter", "bound"),
    cost="1 projection (none for entropic)",
    variants=(CLIPPED, Variant("mirror", "entropic", {"domains": ("simplex",), "cost": "1 softmax"})),
)
def sun2017(
    domain: Domain,
    *,
    horizon: Setting,
    lipschitz: Setting,
    bound: Setting,
    diameter: Setting | None = None,
    mirror: Literal["euclidean", "entropic"] = "euclidean",
    clip: bool = False,
    step: Setting | None = None,
    **through: Unpack[Through],
) -> MirrorPrimalDual:
    """Mirror descent with sequential constraints.

    Parameters
    ----------
    horizon
        T, how many rounds will be played. Values: a whole number, 1 or above. Unit: rounds.
    lipschitz
        G, a Lipschitz constant of every cost and constraint on the domain. Values: above 0. Unit: cost and
        constraint per unit of action.
    bound
        F, the largest |g| on the domain. Values: above 0. Unit: constraint.
    diameter
        D, the domain's Euclidean diameter. Default: the domain's own diameter. Values: above 0. Unit: action.
    mirror
        The mirror map. Values: euclidean or entropic (on a simplex).
    clip
        Feed the positive part of the constraints.
    step
        The step size. Default: the step of the theorem, from lipschitz and the diameter. Values: above 0. Unit:
        action per unit of gradient.
    """
    T, G, F = validate.setting("horizon", horizon), validate.setting("lipschitz", lipschitz), validate.setting("bound", bound)
    D, positive = diameter_of(domain, diameter), switch("clip", clip)
    validate.one_of("mirror", mirror, ("euclidean", "entropic"))
    inside: Euclidean | Entropic = Euclidean(domain, D)
    if mirror == "entropic":
        if not isinstance(domain, SimplexSet):
            raise InputError(f"mirror 'entropic' is for the simplex, not for {type(domain).__name__}")
        inside = Entropic(domain)
    L, B = inside.steepness(G), inside.reach(D)
    F = np.minimum(F, G * D) if positive else F
    mu = validate.setting("step", np.minimum((B / (T * (F**2 + L**2))) ** 0.5, 0.25 / L) if step is None else step)
    return MirrorPrimalDual(inside, mu, 4.0 * L**2 * mu, positive)
