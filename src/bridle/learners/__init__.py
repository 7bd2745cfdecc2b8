"""Algorithms for unconstrained online convex optimisation: what runs under the Lyapunov reduction.

The paper's Algorithm 3 is projected online gradient descent; its Theorem 6 gives two step sizes, and its appendix names what may take
their place. Every learner here is a record with `init`, `decide` and `step`, and its regret bound is a function beside it.

`scale_free` says that multiplying every gradient by one constant leaves the decisions as they are; such a learner also has
``rescale(state, factor)``, the state it would be in had all gradients so far been multiplied by `factor`. `adaptivity(diameter)` is
the constant c of a regret bound  c sqrt(sum |p_s|^2)  that holds for every sequence of gradients, where there is one, and
`squares(state)` that sum so far.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from bridle import ops, validate
from bridle.core import InputError
from bridle.ops import Array, dot, ratio, scalar


class Iterate(NamedTuple):
    """The state of a learner that remembers its decision and one scalar (rounds, sum of squares or sum of moduli)."""

    x: Array
    seen: Array


class ConstantOGD(NamedTuple):
    """x_{t+1} = P_X(x_t - step * p_t)."""

    domain: Any
    step_size: Array

    @property
    def scale_free(self) -> bool:
        return False

    def init(self, x1: Array) -> Iterate:
        return Iterate(x1, scalar(x1))

    def decide(self, state: Iterate) -> Array:
        return state.x

    def step(self, state: Iterate, grad: Array, modulus: Array | None = None) -> Iterate:
        return Iterate(self.domain.project(state.x - self.step_size * grad), state.seen + 1.0)


class DecreasingOGD(NamedTuple):
    """x_{t+1} = P_X(x_t - (step / sqrt t) * p_t)."""

    domain: Any
    step_size: Array

    @property
    def scale_free(self) -> bool:
        return False

    def init(self, x1: Array) -> Iterate:
        return Iterate(x1, scalar(x1))

    def decide(self, state: Iterate) -> Array:
        return state.x

    def step(self, state: Iterate, grad: Array, modulus: Array | None = None) -> Iterate:
        t = state.seen + 1.0
        return Iterate(self.domain.project(state.x - self.step_size / ops.sqrt(t) * grad), t)


class CurvedOGD(NamedTuple):
    """x_{t+1} = P_X(x_t - p_t / (H_1 + ... + H_t)), H_s the modulus of strong convexity of the loss that is fed in (Theorem 6, part 2)."""

    domain: Any
    modulus: Array

    @property
    def scale_free(self) -> bool:
        return False

    def init(self, x1: Array) -> Iterate:
        return Iterate(x1, scalar(x1))

    def decide(self, state: Iterate) -> Array:
        return state.x

    def step(self, state: Iterate, grad: Array, modulus: Array | None = None) -> Iterate:
        H = state.seen + (self.modulus if modulus is None else modulus)
        return Iterate(self.domain.project(state.x - ratio(1.0, H) * grad), H)


def adaptive_step(diameter: Array, S: Array) -> Array:
    """D / sqrt(2 S), and 0 while S = 0: with S the sum of squared gradients so far, regret is at most sqrt(2) D sqrt(S)."""
    return ratio(diameter, ops.sqrt(2.0 * S))


class AdaGradNorm(NamedTuple):
    """x_{t+1} = P_X(x_t - D / sqrt(2 S_t) * p_t), S_t = sum of |p_s|^2 (Theorem 6, part 1); stays while S_t = 0."""

    domain: Any
    diameter: Array

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> Iterate:
        return Iterate(x1, scalar(x1))

    def decide(self, state: Iterate) -> Array:
        return state.x

    def step(self, state: Iterate, grad: Array, modulus: Array | None = None) -> Iterate:
        S = state.seen + dot(grad, grad)
        return Iterate(self.domain.project(ops.descend(state.x, adaptive_step(self.diameter, S), grad)), S)

    def rescale(self, state: Iterate, factor: Array) -> Iterate:
        return Iterate(state.x, state.seen * factor * factor)

    def adaptivity(self, diameter: Array) -> Array:
        """sqrt(2) D when the learner was told the true diameter; what the same proof gives when it was told another."""
        return (diameter * diameter / self.diameter + self.diameter) / sqrt(2.0)

    def squares(self, state: Iterate) -> Array:
        """The sum of the squared lengths of the gradients so far."""
        return state.seen


class AdaGradFrom(NamedTuple):
    """`AdaGradNorm` whose S_t starts at `initial` instead of 0, which shortens the first steps; no bound is stated for it."""

    domain: Any
    diameter: Array
    initial: Array

    @property
    def scale_free(self) -> bool:
        return True  # rescaling multiplies all of S_t, its start included, so that decisions stay as they are

    def init(self, x1: Array) -> Iterate:
        return Iterate(x1, scalar(x1) + self.initial)

    def decide(self, state: Iterate) -> Array:
        return state.x

    def step(self, state: Iterate, grad: Array, modulus: Array | None = None) -> Iterate:
        return AdaGradNorm(self.domain, self.diameter).step(state, grad)

    def rescale(self, state: Iterate, factor: Array) -> Iterate:
        return AdaGradNorm(self.domain, self.diameter).rescale(state, factor)


class SoloState(NamedTuple):
    """Where it started, where it is, the sum of the gradients and the sum of their squared lengths."""

    x1: Array
    x: Array
    total: Array
    S: Array


class SoloFTRL(NamedTuple):
    """x_{t+1} = P_X(x_1 - c * (p_1 + ... + p_t) / sqrt(S_t)): scale-free follow-the-regularised-leader, projected lazily."""

    domain: Any
    c: Array

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> SoloState:
        return SoloState(x1, x1, 0.0 * x1, scalar(x1))

    def decide(self, state: SoloState) -> Array:
        return state.x

    def step(self, state: SoloState, grad: Array, modulus: Array | None = None) -> SoloState:
        total, S = state.total + grad, state.S + dot(grad, grad)
        return SoloState(state.x1, self.domain.project(state.x1 - ratio(self.c, ops.sqrt(S)) * total), total, S)

    def rescale(self, state: SoloState, factor: Array) -> SoloState:
        return SoloState(state.x1, state.x, factor * state.total, state.S * factor * factor)

    def adaptivity(self, diameter: Array) -> Array:
        """From the bound below with R(u) = |u - x_1|^2 / (2c) <= D^2 / (2c) and max |p| <= sqrt(S)."""
        return diameter * diameter / (2.0 * self.c) + 2.75 * self.c + 3.5 * diameter

    def squares(self, state: SoloState) -> Array:
        return state.S


class LeaderState(NamedTuple):
    """The decision, the sum of the gradients and the sum of their squared lengths."""

    x: Array
    total: Array
    S: Array


class FixedFTPL(NamedTuple):
    """x_{t+1} = mean over the samples Z of argmin_X <p_1 + ... + p_t + scale * Z, x>."""

    domain: Any
    Z: Array
    scale: Array

    @property
    def scale_free(self) -> bool:
        return False

    def init(self, x1: Array) -> LeaderState:
        return LeaderState(_leader(self.domain, self.Z, 0.0 * x1, scalar(x1, 1.0)), 0.0 * x1, scalar(x1))

    def decide(self, state: LeaderState) -> Array:
        return state.x

    def step(self, state: LeaderState, grad: Array, modulus: Array | None = None) -> LeaderState:
        total = state.total + grad
        return LeaderState(_leader(self.domain, self.Z, total, self.scale), total, state.S + dot(grad, grad))


class AdaptiveFTPL(NamedTuple):
    """Follow the perturbed leader with the perturbation grown along: scale_t = c sqrt(S_{t-1})."""

    domain: Any
    Z: Array
    c: Array

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> LeaderState:
        return LeaderState(_leader(self.domain, self.Z, 0.0 * x1, scalar(x1, 1.0)), 0.0 * x1, scalar(x1))

    def decide(self, state: LeaderState) -> Array:
        return state.x

    def step(self, state: LeaderState, grad: Array, modulus: Array | None = None) -> LeaderState:
        total, S = state.total + grad, state.S + dot(grad, grad)
        # Before the first gradient there is no scale yet, and none is needed: with total = 0 every scale gives the same minimisers.
        scale = ops.where(S > 0.0, self.c * ops.sqrt(S), 1.0)
        return LeaderState(_leader(self.domain, self.Z, total, scale), total, S)

    def rescale(self, state: LeaderState, factor: Array) -> LeaderState:
        return LeaderState(state.x, factor * state.total, state.S * factor * factor)


def _leader(domain: Any, Z: Array, total: Array, scale: Array) -> Array:
    """The mean over the samples of the linear minimiser: the Monte-Carlo form of the expectation that the guarantee is about."""
    if total.ndim == 1:
        return domain.linear_argmin(total + scale * Z).mean(axis=-2)
    if not isinstance(scale, float):
        scale = scale[..., None, :]
    return domain.linear_argmin(total[..., None, :] + scale * Z).mean(axis=-2)


# --- factories -----------------------------------------------------------------------------------------------------------------------


def OGD(domain: Any, step: Any, decay: str = "none") -> ConstantOGD | DecreasingOGD:
    """Projected online gradient descent with a constant step, or step / sqrt(t) with ``decay="sqrt"``.

    Guarantee: `ogd_regret`, `decreasing_ogd_regret`.
    Reference: Zinkevich 2003.

    >>> import bridle
    >>> learner = OGD(bridle.Ball(2), step=0.5)
    >>> learner.decide(learner.step(learner.init(np.zeros(2)), np.array([1.0, 0.0])))
    array([-0.5,  0. ])
    """
    if decay not in ("none", "sqrt"):
        raise validate.unknown("decay", decay, ("none", "sqrt"))
    kind = ConstantOGD if decay == "none" else DecreasingOGD
    return kind(domain, validate.setting("step", step))


def StronglyConvexOGD(domain: Any, modulus: Any) -> CurvedOGD:
    """Projected gradient descent with step 1 / (sum of the losses' moduli); `step` takes a modulus of its own for a round.

    Guarantee: `strongly_convex_regret`.
    Reference: Hazan, Agarwal, Kale 2007; the paper's Theorem 6, part 2.

    >>> import bridle
    >>> learner = StronglyConvexOGD(bridle.Ball(1), modulus=2.0)
    >>> learner.decide(learner.step(learner.init(np.zeros(1)), np.array([1.0])))
    array([-0.5])
    """
    return CurvedOGD(domain, validate.setting("modulus", modulus))


def AdaGrad(domain: Any, diameter: Any = None, initial: Any = 0.0) -> AdaGradNorm | AdaGradFrom:
    """Projected gradient descent with the scalar AdaGrad step D / sqrt(2 * sum of squared gradient lengths).

    `initial` is what that sum starts from.

    Guarantee: `adagrad_regret`, for every t and without knowing any constant but the diameter; none is stated for `initial` above 0.
    Reference: Duchi, Hazan, Singer 2011; the paper's Theorem 6, part 1.

    >>> import bridle
    >>> learner = AdaGrad(bridle.Ball(1, radius=10.0))
    >>> learner.decide(learner.step(learner.init(np.zeros(1)), np.array([1e-9]))).round(3)
    array([-10.])
    """
    D, start = _diameter(domain, diameter), validate.setting("initial", initial, zero=True)
    return AdaGradFrom(domain, D, start) if np.any(start > 0.0) else AdaGradNorm(domain, D)


def AdaFTRL(domain: Any, diameter: Any = None) -> SoloFTRL:
    """SOLO FTRL, the scale-free member of the AdaFTRL family, with the Euclidean regulariser |x - x_1|^2 / (2c), c = D / sqrt(5.5).

    Guarantee: `adaftrl_regret` (as published; not proved again here).
    Reference: Orabona, Pal 2018.

    >>> import bridle
    >>> learner = AdaFTRL(bridle.Ball(1, radius=5.5**0.5))
    >>> learner.decide(learner.step(learner.init(np.zeros(1)), np.array([1e-9]))).round(6)
    array([-2.])
    """
    return SoloFTRL(domain, _diameter(domain, diameter) / sqrt(5.5))


def FTPL(domain: Any, scale: Any = None, samples: int = 1000, seed: int = 0) -> FixedFTPL | AdaptiveFTPL:
    """Follow the perturbed leader with Gaussian perturbations, played as the mean over `samples` fixed draws.

    A single draw has no guarantee here: under the reduction the next gradient depends on the decision that was drawn. Without `scale` the
    perturbation grows with the gradients seen. The draws come in pairs Z, -Z, so that their mean is exactly zero. The first decision
    is the learner's own; x_1 is not used.

    Guarantee: `ftpl_regret`, `adaptive_ftpl_regret`, for the exact expectation; the Monte-Carlo mean follows it up to O(samples^-1/2).
    Reference: Abernethy, Lee, Sinha, Tewari 2014.

    >>> import bridle
    >>> learner = FTPL(bridle.Box([-1.0], [1.0]), scale=1.0)
    >>> learner.decide(learner.init(np.zeros(1)))
    array([0.])
    """
    half = (validate.whole("samples", samples, 2) + 1) // 2
    Z = np.random.default_rng(validate.whole("seed", seed, 0)).standard_normal((half, domain.dim))
    Z = np.concatenate([Z, -Z])
    if scale is None:
        return AdaptiveFTPL(domain, Z, (pi * domain.dim) ** -0.25)
    return FixedFTPL(domain, Z, validate.setting("scale", scale))


def _diameter(domain: Any, given: Any) -> Any:
    value = domain.diameter() if given is None else given
    if given is None and value == 0.0:
        raise InputError("domain must hold more than one point; its diameter is 0")
    return validate.setting("diameter", value)


# --- regret bounds: against every action of the domain, D its diameter, p_t the gradients -------------------------------------------------


def ogd_regret(D: float, G: float, step: float, T: float) -> float:
    """Constant step, gradients at most G long: D^2 / (2 step) + step G^2 T / 2.

    >>> ogd_regret(2.0, 1.0, 2.0 / 10.0, 100)  # G D sqrt(T) at step = D / (G sqrt(T))
    20.0
    """
    return D * D / (2.0 * step) + 0.5 * step * G * G * T


def decreasing_ogd_regret(D: float, G: float, step: float, T: float) -> float:
    """Step / sqrt(t): D^2 sqrt(T) / (2 step) + (step G^2 / 2)(2 sqrt(T) - 1)."""
    return D * D * sqrt(T) / (2.0 * step) + 0.5 * step * G * G * (2.0 * sqrt(T) - 1.0)


def strongly_convex_regret(lengths: Any, moduli: Any) -> float:
    """Half the sum of |p_t|^2 / (H_1 + ... + H_t), given the lengths |p_t| and the moduli H_t round by round."""
    p, H = np.broadcast_arrays(np.asarray(lengths, dtype=float), np.asarray(moduli, dtype=float))
    return float(0.5 * np.sum(p * p / np.cumsum(H)))


def adagrad_regret(D: float, S: float) -> float:
    """sqrt(2) D sqrt(S), S the sum of |p_t|^2."""
    return sqrt(2.0) * D * sqrt(S)


def adaftrl_regret(D: float, S: float, longest: float) -> float:
    """(D^2/(2c) + 2.75 c) sqrt(S) + 3.5 D max|p_t|, at c = D / sqrt(5.5)."""
    return sqrt(5.5) * D * sqrt(S) + 3.5 * D * longest


def ftpl_regret(D: float, dim: int, scale: float, S: float) -> float:
    """Fixed scale: scale D sqrt(d) + (D / (4 scale)) sqrt(2/pi) S."""
    return scale * D * sqrt(dim) + D / (4.0 * scale) * sqrt(2.0 / pi) * S


def adaptive_ftpl_regret(D: float, dim: int, S: float) -> float:
    """(2 (d/pi)^{1/4} + 2 + sqrt(2)) D sqrt(S) for scale_t = (pi d)^{-1/4} sqrt(S_{t-1}).

    Proof. With a non-decreasing scale the regret is at most scale_T D sqrt(d) plus the sum of the Bregman gaps of the smoothed support
    function; a gap is at most D |p_t|, and at most (D / (4 scale_t)) sqrt(2/pi) |p_t|^2. Where |p_t|^2 <= S_{t-1} use the second:
    S_t <= 2 S_{t-1}, so these sum to (D / (4c)) sqrt(2/pi) sqrt(2) * 2 sqrt(S_T). Where not, S doubles, so the |p_t| <= sqrt(S_t) there
    sum to at most sqrt(S_T) (1 + 2^{-1/2} + 2^{-1} + ...) = (2 + sqrt(2)) sqrt(S_T). The choice of c balances the first two terms.
    """
    return float((2.0 * (dim / pi) ** 0.25 + 2.0 + sqrt(2.0)) * D * sqrt(S))


LEARNERS: dict[str, Any] = {"adagrad": AdaGrad, "adaftrl": AdaFTRL, "ftpl": FTPL, "ogd": OGD, "strongly-convex-ogd": StronglyConvexOGD}
"""The learners by name; `learner=` of a policy takes those that need nothing more than the policy knows."""
