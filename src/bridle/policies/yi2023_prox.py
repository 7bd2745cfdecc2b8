"""Yi et al. 2023, the proximal form: a penalty on the worst constraint that is minimised with it, not linearised.

With h = (max_i g_{t,i}(x_t))^+ and gamma_t = 1 / (G^2 alpha_t):

    x_{t+1} = argmin over X of  <grad f_t(x_t), x> + gamma_t h (max_i g_{t,i}(x))^+ + |x - x_t|^2 / alpha_t

alpha_t = step / t^decay: constant sqrt(2) D / (G sqrt(T)) for a known horizon, D / (G sqrt(t)) without one, 2 / (mu t) for costs of
strong convexity mu. A constraint is read from its value and gradient at x_t, exactly where it is affine and as a cutting plane otherwise:
the bound holds for both. One constraint compiles; several are a quadratic program each round, on the Python engine only.

Registered as ``form="prox"`` of the policies `yi2023` and `yi2023-strong`.

Guarantee: `prox_bound`. Update and parameters as commonly stated; the bound is proved for exactly this update.
Reference: see `bridle.policies.yi2023`.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=200, dim=3)
>>> trace = bridle.play(proximal(problem.domain, 1.0, 0.1, 0.0, 1), problem)
>>> trace.rounds
200
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle import validate
from bridle.core import Bound, Constants, Feedback
from bridle.ops import Array, pos, scalar, worst
from bridle.policies import proximal as prox
from bridle.policies.common import climb, flat, powers, settle, unmet
from bridle.policies.yuan2018 import PenaltyState


class ProximalPenalty(NamedTuple):
    """The update above, with gamma_t = 1 / (sigma alpha_t)."""

    prox: Any
    step: Array
    decay: Array
    sigma: Array
    modulus: Array  # 0 where the costs need not be strongly convex
    each: Array  # (k,): its length is the number of constraints

    @property
    def domain(self) -> Any:
        return self.prox.domain

    def init(self, x1: Array) -> PenaltyState:
        return PenaltyState(x1, scalar(x1))

    def decide(self, state: PenaltyState) -> Array:
        return state.x

    def update(self, state: PenaltyState, feedback: Feedback) -> PenaltyState:
        g, _ = worst(feedback.g, feedback.dg)
        t = state.t + 1.0
        alpha = self.step / t**self.decay
        price = pos(g) / (self.sigma * alpha)
        return PenaltyState(self.prox.step(feedback, state.x - (0.5 * alpha) * feedback.df, price, 1.0 / alpha), t)


def proximal(domain: Any, lipschitz: Any, step: Any, decay: Any, constraints: int, modulus: Any = 0.0) -> ProximalPenalty:
    """The record for alpha_t = step / t^decay."""
    k = validate.whole("constraints", constraints)
    return ProximalPenalty(prox.prox_for(domain, "affine", k), step, decay, lipschitz * lipschitz, modulus, np.ones(k))


def prox_bound(record: ProximalPenalty, constants: Constants, t: float) -> Bound:
    """Regret_t <= R_t := (G^2/2) sum alpha_s + D^2 sum (1/alpha_s - 1/alpha_{s-1} - mu/2)^+, and  sum gamma_s h_s^2 <= 2 (GDt + R_t).

    Proof. The step gives, for u with g_s(u) <= 0 and z = x_{s+1}, y = x_s: f_s(y) - f_s(u) + gamma h g_s(z)^+ <= <grad f_s, y - z> - |z -
    y|^2 / alpha plus terms in |u - y|^2 that telescope to the second sum. g_s(z)^+ >= h - G |z - y|, so gamma h g_s(z)^+ >= gamma h^2 / 2
    - gamma G^2 |z - y|^2 / 2 >= gamma h^2 / 2 - |z - y|^2 / (2 alpha), and the rest is at most alpha G^2 / 2. (A cutting plane at y lies
    below g_s, is h at y and G-Lipschitz: the same.) Regret_t >= -GDt gives the squares, weighted by the growing gamma_s, and
    by parts sum h_s^2 <= 2 sum (E_s - E_{s-1}) / gamma_s, E_s = GDs + R_s; Cauchy and Schwarz the CCV. No gain from Slater's condition is
    proved for this form.
    """
    if why := unmet(constants, modulus=record.modulus):
        return Bound(why=why)
    G, D, step, c = constants["lipschitz"], constants["diameter"], record.step, record.decay
    if np.any(np.asarray(record.sigma) * (1.0 + 1e-12) < G * G):
        return Bound(why="the policy was told too small a Lipschitz constant")
    pull = D * D / step * (0.5 * record.modulus * step < 1.0 - 1e-12)  # a modulus of 2 / step pays for all that 1 / alpha_s grows
    total = step * powers(t, c)
    R = 0.5 * G * G * total + pull * t**c
    squared = 2.0 * record.sigma * (G * D * total + step * (0.5 * G * G * step * powers(t, 2.0 * c) + pull * climb(t, c, c)))
    squared = np.minimum(squared, (G * D) ** 2 * t)
    return settle(R, np.sqrt(t * squared), G * D, 1.0, t)._replace(squared=flat(squared))
