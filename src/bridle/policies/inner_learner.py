"""The learner inside a policy: chosen by its name or given as a record, and what is proved of its regret."""

from __future__ import annotations

from typing import Any, cast

from bridle import validate
from bridle.core import Domain, InputError, Learner
from bridle.learners import FTPL, AdaFTRL, AdaGrad
from bridle.ops import Scalar
from bridle.records import same

NOT_ADAPTIVE = "{} has no proved regret bound of the form c*sqrt(sum of squared gradients) (that of FTPL is for the exact expectation)"
"""Why there is no bound, with the name of the learner's type."""


def learner_or_step(
    learner: str | Learner[Any], domain: Domain, D: Scalar | None, samples: int | None, seed: int | None
) -> Learner[Any] | None:
    """The learner of this name, or this learner; None for gradient descent, whose step the caller must choose."""
    if learner != "ftpl" and not (samples is None and seed is None):
        raise InputError(f"{'samples' if seed is None else 'seed'} is for learner='ftpl' only, not for {validate.show(learner)}")
    if not isinstance(learner, str):
        if not hasattr(learner, "step"):
            raise InputError(f"learner must be a name or have a method `step`, not {validate.show(learner)}")
        if not same(getattr(learner, "domain", domain), domain):
            raise InputError("learner was made for another domain than the policy's: both must be made from the same one")
        return learner
    if learner == "ogd":
        return None
    if learner == "ftpl":
        return FTPL(domain, samples=1000 if samples is None else samples, seed=0 if seed is None else seed)
    if learner not in ("adagrad", "adaftrl"):
        raise validate.unknown("learner", learner, ("adagrad", "adaftrl", "ftpl", "ogd"))
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
    """c of the learner's regret bound, c sqrt(sum of |p_s|^2) or at least c sqrt(t) max |p_s|; None where it has neither."""
    proved = getattr(learner, "adaptivity", None) or getattr(learner, "steadiness", None)
    return None if proved is None else cast(Scalar, proved(D))
