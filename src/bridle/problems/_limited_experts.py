"""Experts with limits: mixtures of experts, of which only some keep the limits.

| problem | adversary | what it does |
|---|---|---|
| `experts` | `LimitedExperts` | pays less to experts that violate, at random or where most of the weight is |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import domains, validate
from bridle.core import Round
from bridle.functions import AffineFunction
from bridle.ops import Array, Scalar, along, floor, scalar, where
from bridle.problems.base import Problem, adaptive, constants_of, oblivious
from bridle.problems.registry import registered

NOISE = 0.2
"""By how much a cost may differ from its expert's mean."""

RAREST = 3.0
"""Careless experts violate in a share of rounds between 10^-3 and 1."""


class NoisyExperts(NamedTuple):
    """A number between 0 and 1 for the noise of each expert's cost, for whether it violates, and for by how much."""

    noise: Array
    chance: Array
    amount: Array


class PairedNoise(NamedTuple):
    """The rounds so far, and the last noise: odd rounds give back what even ones have taken."""

    rounds: Scalar
    noise: Array


@oblivious
class LimitedExperts(NamedTuple):
    """Costs <means + NOISE (2 u - 1), x> and constraints <c, x>: c_i is up to 1 with probability `rates`, and 0 for careful experts.

    In the last round, that of the audit, it is 1 for all others.
    """

    means: Array
    rates: Array
    audit: Scalar

    def init(self) -> PairedNoise:
        return PairedNoise(0.0, 0.0 * self.means)

    def deal(self, rng: np.random.Generator, rounds: int) -> NoisyExperts:
        return NoisyExperts(*rng.random((3, rounds, len(self.means))))

    def answer(self, state: PairedNoise, x: Array, draw: NoisyExperts) -> tuple[PairedNoise, Round]:
        violated = (draw.chance < self.rates) * draw.amount
        return self.priced(state, draw, violated)

    def priced(self, state: PairedNoise, draw: NoisyExperts, violated: Array) -> tuple[PairedNoise, Round]:
        """The round with these violations, unless it is that of the audit."""
        violated = where(state.rounds + 1.0 == self.audit, 0.0 * violated + (self.rates > 0.0), violated)
        odd = state.rounds - 2.0 * floor(0.5 * state.rounds)
        noise = odd * (1.0 - state.noise) + (1.0 - odd) * draw.noise
        costs = self.means + NOISE * (2.0 * noise - 1.0)
        zero = scalar(costs)
        return PairedNoise(state.rounds + 1.0, draw.noise), Round(AffineFunction(costs, zero), (AffineFunction(violated, zero),))


@adaptive
class SpitefulExperts(NamedTuple):
    """Costs of `experts`, and one careless expert that violates by 1: the one with the most weight, give or take a half."""

    experts: LimitedExperts

    def init(self) -> PairedNoise:
        return self.experts.init()

    def deal(self, rng: np.random.Generator, rounds: int) -> NoisyExperts:
        return self.experts.deal(rng, rounds)

    def answer(self, state: PairedNoise, x: Array, draw: NoisyExperts) -> tuple[PairedNoise, Round]:
        careless = self.experts.rates > 0.0
        heavy = where(careless, (0.5 + 0.5 * draw.amount) * x, 0.0 * x)
        violated = 0.0 * x + (careless & (heavy >= along(heavy, "max")))
        return self.experts.priced(state, draw, violated)


@registered
def experts(horizon: int, seed: int = 0, dim: int = 100, share: float = 0.1, adaptive: int = 0) -> Problem:
    """Mixtures of experts, of which the cheap ones violate a limit now and then and a few never do.

    x is the weight of each of `dim` experts, f what they cost on average and g how much they violate a limit on average. `share` of them
    never violate it and cost 0.5 to 0.8 in the mean; the others cost 0.2 to 0.5 and violate it, by up to 1, in a share of rounds between
    0.001 and 1; with `adaptive` the one that has most of the weight does, by 1. In the last round all of them do, by 1, so that it is known
    who the best expert is that keeps the limit. Costs are off their means by up to 0.2, and two rounds
    make up for one another: after an even number of rounds every expert has cost its mean.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        N, how many experts. Values: a whole number, 2 or above. Unit: experts.
    share
        The share of experts that never violate the limit. Values: above 0 and below 1. Unit: share.
    adaptive
        0: careless experts violate at random; 1: the one with the most weight does. Values: 0 or 1.
    """
    N, part = validate.whole("dim", dim, 2), validate.number("share", share)
    if not 0.0 < part < 1.0:
        raise validate.refused("share must be above 0 and below 1", share)
    if adaptive not in (0, 1):
        raise validate.refused("adaptive must be 0 or 1", adaptive)
    rng, domain = np.random.default_rng([seed, 1]), domains.Simplex(N)
    careful = rng.permutation(N) < min(max(round(part * N), 1), N - 1)
    means = np.where(careful, rng.uniform(0.5, 0.8, N), rng.uniform(0.2, 0.5, N))
    best = int(rng.choice(np.flatnonzero(careful)))
    means[best] = 0.5
    rates = np.where(careful, 0.0, 10.0 ** -rng.uniform(0.0, RAREST, N))
    most = np.where(careful, 0.0, 1.0)
    constants = constants_of(domain, lipschitz=float(max(np.linalg.norm(means + NOISE), np.linalg.norm(most))), bound=1.0)
    spread = float(max(means.max() - means.min() + 2.0 * NOISE, 1.0))
    constants |= {"feasible": np.eye(N)[best], "slater": 0.0, "spread": spread, "below": 0.0}
    if horizon % 2 == 0:
        constants |= {"optimum": np.eye(N)[best], "optimal_cost": 0.5 * horizon}
    stream = LimitedExperts(means, rates, float(horizon))
    return Problem(domain, SpitefulExperts(stream) if adaptive else stream, constants)
