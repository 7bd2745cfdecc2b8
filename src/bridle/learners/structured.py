"""Scale-free follow-the-regularised-leader in the geometry of the domain: entropies and p-norms, also over paths and spanning trees.

With a norm |.|, its dual norm |.|*, and a regulariser R >= 0 that is lambda-strongly convex in |.| and 0 at the centre,

    S_t = |p_1|*^2 + ... + |p_t|*^2,      x_{t+1} = argmin over X of <p_1 + ... + p_t, x> + sqrt(S_t) R(x)

as in `bridle.learners.follow_the_leader`, whose R is Euclidean. Each geometry has the minimiser at hand:

| geometry | domain | R(x), at w = x / (mass, radius or trace) | norm | dual norm |
|---|---|---|---|---|
| entropy | simplex of K corners | c sum w ln(K w) | sum of |x_i| | half the range of p |
| entropy | L1 ball in d dimensions | the same on 2d corners, +-radius in each coordinate | sum of |x_i| | largest |p_i| |
| entropy | spectrahedron, n x n | c sum l ln(n l) over the eigenvalues l of w | sum of |eigenvalues| | half the range of eigenvalues |
| entropy | N paths or trees | c sum w ln(N w), least over their weights w that mix to x | sum of |w_i| | half the range of <p, action> |
| p-norm | L1 ball | (sum of |w_i|^p)^{2/p} c / 2, 1 < p <= 2 | p-norm | q-norm, 1/p + 1/q = 1 |

Guarantee: `structured_regret`: with a = 1/(2 lambda), B at least the diameter in |.|, and every u,
    Regret_t(u) <= (R(u) + a + sqrt(a^2 + B^2)) sqrt(S_t).
Reference: F. Orabona, D. Pal. Scale-free online learning. Theoretical Computer Science 2018, whose constants are 2.75/lambda and 3.5; ours,
    with their proof, below. The entropies' strong convexity is Pinsker's inequality, and that of quantum relative entropy.

Proof. The regulariser sqrt(S_t) R does not fall, so that follow-the-leader's regret is at most sqrt(S_t) R(u) plus the sum over rounds of
<p_s, x_s - x_{s+1}> - (lambda/2) sqrt(S_{s-1}) |x_s - x_{s+1}|^2, which is at most q B and at most a q^2 / sqrt(S_{s-1}), q = |p_s|*. With
nu = q^2 / S_{s-1} both are at most M (sqrt(S_s) - sqrt(S_{s-1})): a nu / (sqrt(1 + nu) - 1) = a (sqrt(1 + nu) + 1) grows with nu,
B sqrt(nu) / (sqrt(1 + nu) - 1) falls, and they meet at sqrt(nu) = B/a, where both are M = a + sqrt(a^2 + B^2). In the first round q B is at
most M sqrt(S_1). The sum telescopes.

>>> import bridle, numpy as np
>>> learner = bridle.AdaFTRL(bridle.Simplex(3), geometry="entropy")
>>> learner.decide(learner.step(learner.init(np.full(3, 1 / 3)), np.array([0.0, 1e-9, 2e-9]))).round(3)
array([0.782, 0.178, 0.04 ])
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple, TypeAlias

from bridle import ops, showing, validate
from bridle.core import Domain, InputError
from bridle.domains.closed_form import L1BallSet, SimplexSet, SpectrahedronSet
from bridle.domains.combinatorial import MatchingSet, PathSet, SpanningTreeSet
from bridle.domains.half_space_cut import iterate
from bridle.ops import Array, Scalar, along, ratio, scalar

GEOMETRIES = ("euclidean", "entropy", "p-norm")

HALVINGS = 60
"""How often the interval of the p-norm's multiplier is halved: until it is 2^-60 of the largest coordinate."""


class CornerEntropy(NamedTuple):
    """Entropy of the weights of a simplex's corners."""

    domain: SimplexSet
    c: Scalar

    def leader(self, total: Array, scale: Scalar) -> Array:
        """The minimiser, where `scale` is 1 / sqrt(S), or 0 while there is none."""
        return self.domain.mass * softmin(scale / self.c * self.domain.mass * total)

    def dual(self, p: Array) -> Scalar:
        """The dual norm of a gradient."""
        return 0.5 * (along(p, "max") - along(p, "min"))

    def sizes(self) -> Sizes:
        """What the bound is made of."""
        return Sizes(self.c * log(self.domain.dim), self.c / self.domain.mass**2, 2.0 * self.domain.mass, 0.5)


class SignedEntropy(NamedTuple):
    """Entropy of the weights of an L1 ball's corners, two for each coordinate; its centre is the ball's."""

    domain: L1BallSet
    c: Scalar

    def leader(self, total: Array, scale: Scalar) -> Array:
        steep = scale / self.c * self.domain.radius * total
        w = softmin(ops.join([steep, -steep], -1))
        d = self.domain.dim
        return self.domain.middle + self.domain.radius * (w[..., :d] - w[..., d:])

    def dual(self, p: Array) -> Scalar:
        return along(abs(p), "max")

    def sizes(self) -> Sizes:
        return Sizes(self.c * log(2.0 * self.domain.dim), self.c / self.domain.radius**2, 2.0 * self.domain.radius, 1.0)


class SpectralEntropy(NamedTuple):
    """Von Neumann's entropy of a matrix's eigenvalues: matrix exponentiated gradients."""

    domain: SpectrahedronSet
    c: Scalar

    def leader(self, total: Array, scale: Scalar) -> Array:
        values, vectors = self._eigen(total)
        weights = self.domain.trace * softmin((scale / self.c * self.domain.trace) * values)
        matrix: Array = (vectors * weights[..., None, :]) @ vectors.swapaxes(-1, -2)
        return (0.5 * (matrix + matrix.swapaxes(-1, -2))).reshape(total.shape)

    def dual(self, p: Array) -> Scalar:
        values, _ = self._eigen(p)
        return 0.5 * (along(values, "max") - along(values, "min"))

    def sizes(self) -> Sizes:
        n = round(sqrt(self.domain.dim))
        return Sizes(self.c * log(n), self.c / self.domain.trace**2, 2.0 * self.domain.trace, 0.5)

    def _eigen(self, p: Array) -> tuple[Array, Array]:
        n = round(sqrt(self.domain.dim))
        matrix = p.reshape(*p.shape[:-1], n, n)
        values, vectors = ops.namespace(p).linalg.eigh(0.5 * (matrix + matrix.swapaxes(-1, -2)))
        return values, vectors


class ActionEntropy(NamedTuple):
    """Entropy of the weights of all paths, or all spanning trees: exponential weights over actions too many to list."""

    domain: PathSet | SpanningTreeSet
    c: Scalar

    def leader(self, total: Array, scale: Scalar) -> Array:
        return self.domain.gibbs(scale / self.c * total)

    def dual(self, p: Array) -> Scalar:
        return -0.5 * (self.domain.linear_min(-p) + self.domain.linear_min(p))

    def sizes(self) -> Sizes:
        return Sizes(self.c * self.domain.log_corners, self.c, 2.0, 0.25 * self.domain.diameter() ** 2)


class Multipliers(NamedTuple):
    """An interval for the multiplier of the ball's limit."""

    low: Scalar
    high: Scalar


class PowerNorm(NamedTuple):
    """(c/2) |w|_p^2 on an L1 ball.

    With m the multiplier of the limit sum |x_i| <= radius, |x_i| is a multiple of z_i = (|P_i| - m)^+ to the power 1/(p-1): the larger m,
    the smaller their sum, and m is 0 where that is not above the radius.
    """

    domain: L1BallSet
    c: Scalar
    p: Scalar

    def leader(self, total: Array, scale: Scalar) -> Array:
        size = along(abs(total), "max")
        steep = ratio(1.0, size) * abs(total)  # at most 1
        push = scale * size * self.domain.radius / self.c

        def weights(m: Scalar) -> Array:
            """|w_i| for a multiplier of m."""
            z = ops.pos(steep - m) ** (1.0 / (self.p - 1.0))
            # In units of the largest, so that no power underflows before the sum is taken.
            top = along(z, "max")
            z = ratio(1.0, top) * z
            length = along(z**self.p, "sum") ** ((2.0 - self.p) / self.p)
            return push * top ** (self.p - 1.0) * ratio(1.0, length) * z

        def halve(at: Multipliers) -> Multipliers:
            middle = 0.5 * (at.low + at.high)
            above = along(weights(middle), "sum") > 1.0
            return Multipliers(ops.where(above, middle, at.low), ops.where(above, at.high, middle))

        zero = 0.0 * size
        ends = iterate(halve, Multipliers(zero, zero + 1.0), HALVINGS, total, lambda at: at.high <= at.low)
        m = ops.where(along(weights(zero), "sum") > 1.0, ends.high, zero)
        decision: Array = self.domain.middle - self.domain.radius * ops.namespace(total).sign(total) * weights(m)
        return decision

    def dual(self, p: Array) -> Scalar:
        top = along(abs(p), "max")
        q = self.p / (self.p - 1.0)
        return top * along((ratio(1.0, top) * abs(p)) ** q, "sum") ** (1.0 / q)

    def sizes(self) -> Sizes:
        r = self.domain.radius
        return Sizes(0.5 * self.c, self.c * (self.p - 1.0) / (r * r), 2.0 * r, 1.0)


Geometry: TypeAlias = CornerEntropy | SignedEntropy | SpectralEntropy | ActionEntropy | PowerNorm


class Sizes(NamedTuple):
    """The largest R, its strong convexity, the diameter in the norm, and the most that |p|*^2 is of the squared Euclidean length."""

    most: Scalar
    modulus: Scalar
    diameter: Scalar
    share: float

    def regret(self) -> Scalar:
        """The constant in front of sqrt(S)."""
        a = 0.5 / self.modulus
        return self.most + a + ops.sqrt(a * a + self.diameter * self.diameter)


class StructuredState(NamedTuple):
    """The decision, the sum of the gradients, and the sum of their squared dual norms."""

    x: Array
    total: Array
    S: Scalar


@showing.shown("AdaFTRL")
class StructuredFTRL(NamedTuple):
    """The regularised leader in a geometry; its first decision is the centre, whatever ``x1``."""

    geometry: Geometry

    @property
    def domain(self) -> Domain:
        return self.geometry.domain

    @property
    def scale_free(self) -> bool:
        return True

    def init(self, x1: Array) -> StructuredState:
        return StructuredState(self.geometry.leader(0.0 * x1, scalar(x1)), 0.0 * x1, scalar(x1))

    def decide(self, state: StructuredState) -> Array:
        return state.x

    def step(self, state: StructuredState, grad: Array, modulus: Scalar | None = None) -> StructuredState:
        total, q = state.total + grad, self.geometry.dual(grad)
        S = state.S + q * q
        return StructuredState(self.geometry.leader(total, ratio(1.0, ops.sqrt(S))), total, S)

    def rescale(self, state: StructuredState, factor: Scalar) -> StructuredState:
        return StructuredState(state.x, factor * state.total, state.S * factor * factor)

    def adaptivity(self, diameter: Scalar) -> Scalar:
        """The constant for Euclidean lengths, which are no shorter than |p|* divided by the root of `Sizes.share`."""
        sizes = self.geometry.sizes()
        return sizes.regret() * sqrt(sizes.share)

    def squares(self, state: StructuredState) -> Scalar:
        """S in units of squared Euclidean lengths: no more than their sum, and enough for `adaptivity`."""
        return state.S / self.geometry.sizes().share


def softmin(losses: Array) -> Array:
    """e^{-losses}, divided by their sum.

    >>> import numpy as np
    >>> softmin(np.array([0.0, np.log(3.0)]))
    array([0.75, 0.25])
    """
    each = ops.exp(along(losses, "min") - losses)
    return ratio(1.0, along(each, "sum")) * each


def structured(domain: Domain, geometry: str, exponent: float | None = None) -> StructuredFTRL:
    """The learner in this geometry, with the c at which the first two terms of its bound are equal."""
    if geometry == "p-norm":
        if not isinstance(domain, L1BallSet):
            raise validate.refused("domain must be an L1 ball (l1) for geometry='p-norm', such as bridle.L1Ball(3)", domain)
        p = usual_exponent(domain.dim) if exponent is None else validate.number("exponent", exponent)
        if not 1.0 < p <= 2.0:
            raise validate.refused("exponent must be above 1 and at most 2", exponent)
        return StructuredFTRL(PowerNorm(domain, domain.radius / sqrt(p - 1.0), p))
    if exponent is not None:
        raise InputError(f"exponent is for geometry='p-norm' only, not for {validate.show(geometry)}")
    if isinstance(domain, SimplexSet):
        return StructuredFTRL(CornerEntropy(domain, domain.mass / sqrt(2.0 * log(max(domain.dim, 2)))))
    if isinstance(domain, L1BallSet):
        return StructuredFTRL(SignedEntropy(domain, domain.radius / sqrt(2.0 * log(2.0 * domain.dim))))
    if isinstance(domain, SpectrahedronSet):
        return StructuredFTRL(SpectralEntropy(domain, domain.trace / sqrt(2.0 * log(max(round(sqrt(domain.dim)), 2)))))
    if isinstance(domain, (PathSet, SpanningTreeSet)):
        return StructuredFTRL(ActionEntropy(domain, 1.0 / sqrt(2.0 * max(domain.log_corners, log(2.0)))))
    if isinstance(domain, MatchingSet):
        raise InputError(
            "domain cannot be Matchings for geometry='entropy': nobody can sum over all of them fast; policies ftpl and wang2025 play them"
        )
    raise InputError(
        "domain must be a simplex, an L1 ball, a spectrahedron, paths or spanning trees for geometry='entropy', such as bridle.Simplex(3), "
        f"not {validate.show(domain)}"
    )


def usual_exponent(dim: int) -> float:
    """p with 1/p + 1/q = 1 and q = 2 ln(dim), at least 2: the q-norm is then at most sqrt(e) times the largest coordinate.

    >>> usual_exponent(2), round(usual_exponent(100), 3)
    (2.0, 1.122)
    """
    q = max(2.0, 2.0 * log(dim))
    return q / (q - 1.0)


def structured_regret(most: float, modulus: float, diameter: float, S: float) -> float:
    """(R + a + sqrt(a^2 + B^2)) sqrt(S), a = 1/(2 lambda): `most` is R, `modulus` lambda, `diameter` B in the norm, S in the dual norm.

    >>> round(structured_regret(1.0, 0.5, 2.0, 9.0), 3)
    12.708
    """
    return float(Sizes(most, modulus, diameter, 1.0).regret() * sqrt(S))
