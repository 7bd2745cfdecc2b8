"""The parts of the reduction, chosen by name or given as records: the learner and what is proved of its regret, and the potential."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, cast

import numpy as np

from bridle import validate
from bridle.core import Domain, InputError, Learner, Potential
from bridle.learners import FTPL, AdaFTRL, AdaGrad, AdaHedge, MLPoly, NewtonStep, Track
from bridle.learners.potentials import Exponential, Power, Quadratic
from bridle.ops import Scalar
from bridle.policies.entry import Setting
from bridle.records import same

NOT_ADAPTIVE = "{} has no proved regret bound of the form c*sqrt(sum of squared gradients) (that of FTPL is for the exact expectation)"
"""Why there is no bound, with the name of the learner's type."""


NOT_EXP_CONCAVE = (
    "learner cannot be 'ons' here: it is for exp-concave costs, and the surrogate costs, with the limits' slopes in them, are not; "
    "policy 'ons' plays it on the costs alone, and keeps limits that are known before acting (decide(known=...))"
)
"""Why the online Newton step does not run under a reduction."""


ON_SIMPLICES: dict[str, Callable[[Domain], Learner[Any]]] = {"adahedge": AdaHedge, "mlpoly": MLPoly, "track": Track}
"""The learners that play on a simplex, or on several side by side, and need to know nothing."""


def learner_or_step(
    learner: str | Learner[Any], domain: Domain, D: Scalar | None, samples: int | None, seed: int | None
) -> Learner[Any] | None:
    """The learner of this name, or this learner; None for gradient descent, whose step the caller must choose."""
    if learner != "ftpl" and not (samples is None and seed is None):
        raise InputError(f"{'samples' if seed is None else 'seed'} is for learner='ftpl' only, not for {validate.show(learner)}")
    if not isinstance(learner, str):
        if not hasattr(learner, "step"):
            raise validate.refused("learner must be a name or have a method `step`", learner)
        if isinstance(learner, NewtonStep):
            raise InputError(NOT_EXP_CONCAVE)
        if not same(getattr(learner, "domain", domain), domain):
            raise InputError("learner was made for another domain than the policy's: both must be made from the same one")
        return learner
    if learner == "ons":
        raise InputError(NOT_EXP_CONCAVE)
    if learner == "ogd":
        return None
    if learner == "ftpl":
        return FTPL(domain, samples=1000 if samples is None else samples, seed=0 if seed is None else seed)
    if learner in ON_SIMPLICES:
        return ON_SIMPLICES[learner](domain)
    if learner not in ("adagrad", "adaftrl"):
        raise validate.unknown("learner", learner, ("adagrad", "adaftrl", "ftpl", "ogd", *ON_SIMPLICES))
    return AdaGrad(domain, D) if learner == "adagrad" else AdaFTRL(domain, D)


def learner_for(
    learner: str | Learner[Any], domain: Domain, D: Scalar | None, samples: int | None = None, seed: int | None = None
) -> Learner[Any]:
    """The learner of this name, or this learner; not gradient descent by name, since no step can be made up for it here."""
    inside = learner_or_step(learner, domain, D, samples, seed)
    if inside is None:
        raise InputError("learner must be a learner such as bridle.OGD(domain, step=0.1) here, not 'ogd': its step is not known")
    return inside


def regret_constant(learner: Learner[Any], D: Scalar) -> Scalar | None:
    """c of the learner's regret bound, c sqrt(sum of |p_s|^2) or at least c t^b max |p_s|; None where it has neither. b: `regret_power`."""
    proved = getattr(learner, "adaptivity", None) or getattr(learner, "steadiness", None)
    return None if proved is None else cast(Scalar, proved(D))


def regret_power(learner: Learner[Any], t: float) -> float:
    """t^b of the learner's regret bound c t^b max |p_s|: sqrt(t), unless the learner has another `power`."""
    power: float = getattr(learner, "power", 0.5)
    return sqrt(t) if power == 0.5 else t**power


def check_unused(potential: str | Potential, lam: Setting | None, exponent: Setting | None) -> None:
    """Refuse a setting that the potential in use does not have."""
    if lam is not None and potential != "exponential":
        raise InputError(f"lam is for potential='exponential' only, not for {validate.show(potential)}")
    if exponent is not None and potential != "power":
        raise InputError(f"exponent is for potential='power' only, not for {validate.show(potential)}")


def potential_for(potential: str | Potential, lam: Scalar | None, exponent: Setting | None, T: Scalar) -> tuple[Potential, Scalar]:
    """The potential, and the V that goes with it for convex costs."""
    if not isinstance(potential, str):
        if not hasattr(potential, "slope"):
            raise validate.refused("potential must be a name or have a method `slope`", potential)
        return potential, 1.0
    if potential == "exponential":
        if lam is None:
            raise InputError("potential 'exponential' needs lam")
        return Exponential(lam), 1.0
    if potential == "quadratic":
        return Quadratic(), (T / 2.0) ** 0.5
    if potential == "power":
        n = np.maximum(2.0, np.ceil(np.log(T))) if exponent is None else exponent
        phi = Power(n)
        rest = phi.exponent - 1.0
        size = rest * np.log(np.maximum(rest, 1.0) * np.sqrt(np.maximum(T / 2.0, 1.0)))  # the logarithm of V, or more
        if np.max(size) > 300.0:
            raise InputError(
                f"exponent {np.max(phi.exponent):g} is too large for a horizon of {np.max(T):g}: V would be e^{np.max(size):.0f}"
            )
        return phi, rest**rest * (T / 2.0) ** (rest / 2.0)
    raise validate.unknown("potential", potential, ("exponential", "quadratic", "power"))
