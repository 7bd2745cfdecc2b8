"""Follow the leader: regularised and scale-free (SOLO FTRL), or perturbed (FTPL).

D is the diameter of the domain, p_t are the gradients, and S_t is the sum of their squared lengths up to round t.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import NamedTuple

import numpy as np

from bridle import ops, showing, validate
from bridle.core import Domain, InputError
from bridle.learners.base import Setting, diameter_or_own
from bridle.learners.structured import GEOMETRIES, StructuredFTRL, structured
from bridle.ops import Array, Scalar, dot, ratio, scalar


class SoloState(NamedTuple):
    """Where it started, where it is, the sum of the gradients and the sum of their squared lengths."""

    x1: Array
    x: Array
    total: Array
    S: Scalar


class SoloFTRL(NamedTuple):
    """x_{t+1} = P_X(x_1 - c * (p_1 + ... + p_t) / sqrt(S_t)): scale-free follow-the-regularised-leader, projected lazily."""

    domain: Domain
    c: Scalar

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> SoloState:
        return SoloState(x1, x1, 0.0 * x1, scalar(x1))

    def decide(self, state: SoloState) -> Array:
        return state.x

    def step(self, state: SoloState, grad: Array, modulus: Scalar | None = None) -> SoloState:
        total, S = state.total + grad, state.S + dot(grad, grad)
        return SoloState(state.x1, self.domain.project(state.x1 - ratio(self.c, ops.sqrt(S)) * total), total, S)

    def rescale(self, state: SoloState, factor: Scalar) -> SoloState:
        return SoloState(state.x1, state.x, factor * state.total, state.S * factor * factor)

    def adaptivity(self, diameter: Scalar) -> Scalar:
        """From the bound below with R(u) = |u - x_1|^2 / (2c) <= D^2 / (2c) and max |p| <= sqrt(S)."""
        return diameter * diameter / (2.0 * self.c) + 2.75 * self.c + 3.5 * diameter

    def squares(self, state: SoloState) -> Scalar:
        return state.S


def AdaFTRL(
    domain: Domain, diameter: Setting | None = None, geometry: str = "euclidean", exponent: float | None = None
) -> SoloFTRL | StructuredFTRL:
    """Follow the regularised leader at any scale of gradients (SOLO FTRL, of the AdaFTRL family).

    The regulariser is Euclidean, with c = D / sqrt(5.5), unless `geometry` says otherwise: entropy on a simplex, an L1 ball or a
    spectrahedron, over all paths or spanning trees (exponential weights, without listing them), or a p-norm on an L1 ball. The bound then
    grows with the logarithm of the dimension, or of the number of actions, and with gradients by their largest coordinates.

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    diameter : float or list of float, optional
        D of the Euclidean regulariser, above 0, in units of action. Default: the domain's own diameter.
    geometry : {"euclidean", "entropy", "p-norm"}, default "euclidean"
        The regulariser. With another than the Euclidean, the first decision is the domain's centre: ``x1`` is not used.
    exponent : float, optional
        p of the p-norm, above 1 and at most 2. Default: that of the dual exponent ``max(2, 2 ln(dim))``.

    Notes
    -----
    Guarantee: `bridle.learners.adaftrl_regret`, as published; it is not proved again here. Of the other geometries:
    `bridle.learners.structured_regret`, proved in `bridle.learners.structured`.

    Reference: Orabona, Pal 2018.

    Examples
    --------
    >>> import bridle
    >>> learner = AdaFTRL(bridle.Ball(1, radius=5.5**0.5))
    >>> learner.decide(learner.step(learner.init(np.zeros(1)), np.array([1e-9]))).round(6)
    array([-2.])
    """
    validate.one_of("geometry", geometry, GEOMETRIES)
    if geometry != "euclidean":
        if diameter is not None:
            raise InputError(f"diameter is for geometry='euclidean' only, not for {validate.show(geometry)}: {validate.show(diameter)}")
        return structured(domain, geometry, exponent)
    if exponent is not None:
        raise InputError(f"exponent is for geometry='p-norm' only, not for 'euclidean': {validate.show(exponent)}")
    return SoloFTRL(domain, diameter_or_own(domain, diameter) / sqrt(5.5))


def adaftrl_regret(D: float, S: float, longest: float) -> float:
    """(D^2/(2c) + 2.75 c) sqrt(S) + 3.5 D max|p_t|, at c = D / sqrt(5.5)."""
    return sqrt(5.5) * D * sqrt(S) + 3.5 * D * longest


class LeaderState(NamedTuple):
    """The decision, the sum of the gradients and the sum of their squared lengths."""

    x: Array
    total: Array
    S: Scalar


@showing.shown("FTPL")
class FixedFTPL(NamedTuple):
    """x_{t+1} = mean over the samples Z of argmin_X <p_1 + ... + p_t + scale * Z, x>."""

    domain: Domain
    Z: Array
    scale: Scalar

    @property
    def scale_free(self) -> bool:
        return False

    def init(self, x1: Array) -> LeaderState:
        return LeaderState(_leader(self.domain, self.Z, 0.0 * x1, scalar(x1, 1.0)), 0.0 * x1, scalar(x1))

    def decide(self, state: LeaderState) -> Array:
        return state.x

    def step(self, state: LeaderState, grad: Array, modulus: Scalar | None = None) -> LeaderState:
        total = state.total + grad
        return LeaderState(_leader(self.domain, self.Z, total, self.scale), total, state.S + dot(grad, grad))


@showing.shown("FTPL")
class AdaptiveFTPL(NamedTuple):
    """Follow the perturbed leader with the perturbation grown along: scale_t = c sqrt(S_{t-1})."""

    domain: Domain
    Z: Array
    c: Scalar

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> LeaderState:
        return LeaderState(_leader(self.domain, self.Z, 0.0 * x1, scalar(x1, 1.0)), 0.0 * x1, scalar(x1))

    def decide(self, state: LeaderState) -> Array:
        return state.x

    def step(self, state: LeaderState, grad: Array, modulus: Scalar | None = None) -> LeaderState:
        total, S = state.total + grad, state.S + dot(grad, grad)
        # Before the first gradient there is no scale yet, and none is needed: with total = 0 every scale gives the same minimisers.
        scale = ops.where(S > 0.0, self.c * ops.sqrt(S), 1.0)
        return LeaderState(_leader(self.domain, self.Z, total, scale), total, S)

    def rescale(self, state: LeaderState, factor: Scalar) -> LeaderState:
        return LeaderState(state.x, factor * state.total, state.S * factor * factor)


def FTPL(domain: Domain, scale: Setting | None = None, samples: int = 1000, seed: int = 0) -> FixedFTPL | AdaptiveFTPL:
    """Follow the perturbed leader with Gaussian perturbations, played as the mean over fixed draws.

    A single draw has no guarantee under a reduction, where the next gradient depends on the decision that was drawn. The draws come in
    pairs Z and -Z, so that their mean is exactly 0. The first decision is the learner's own: ``x1`` is not used.

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    scale : float or list of float, optional
        The size of the perturbation, above 0, in units of gradient. Default: it grows with the gradients seen.
    samples : int, default 1000
        How many draws are averaged, 1 or above.
    seed : int, default 0
        The seed of the draws, 0 or above.

    Notes
    -----
    Guarantee: `bridle.learners.ftpl_regret` and `bridle.learners.adaptive_ftpl_regret`, for the exact expectation. The mean over draws
    follows
    it up to O(samples^-1/2).

    Reference: Abernethy, Lee, Sinha, Tewari 2014.

    Examples
    --------
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


def _leader(domain: Domain, Z: Array, total: Array, scale: Scalar) -> Array:
    """The mean over the samples of the linear minimiser: the Monte-Carlo form of the expectation that the guarantee is about."""
    if total.ndim == 1:
        leaders = domain.linear_argmin(total + scale * Z)
    else:
        leaders = domain.linear_argmin(total[..., None, :] + (scale if isinstance(scale, float) else scale[..., None, :]) * Z)
    mean: Array = leaders.mean(axis=-2)
    return mean


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
