"""Algorithms for unconstrained online convex optimisation: what runs under the Lyapunov reduction.

The paper's Algorithm 3 is projected online gradient descent; its Theorem 6 gives two step sizes, and its appendix names what may take
their place. Every learner here is a record with `init`, `decide` and `step`; in its file stand the record, the factory that checks what it
is given, and the regret bound as a function.

`scale_free` says that multiplying every gradient by one constant leaves the decisions as they are; such a learner also has
``rescale(state, factor)``, the state it would be in had all gradients so far been multiplied by `factor`. `adaptivity(diameter)` is
the constant c of a regret bound  c sqrt(sum |p_s|^2)  that holds for every sequence of gradients, where there is one, and
`squares(state)` that sum so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridle.core import Learner
from bridle.learners.adagrad import AdaGrad, AdaGradFrom, AdaGradNorm, adagrad_regret, adaptive_step
from bridle.learners.base import Iterate, moved
from bridle.learners.follow_the_leader import (
    FTPL,
    AdaFTRL,
    AdaptiveFTPL,
    FixedFTPL,
    LeaderState,
    SoloFTRL,
    SoloState,
    adaftrl_regret,
    adaptive_ftpl_regret,
    ftpl_regret,
)
from bridle.learners.gradient_descent import (
    OGD,
    ConstantOGD,
    CurvedOGD,
    DecreasingOGD,
    StronglyConvexOGD,
    decreasing_ogd_regret,
    ogd_regret,
    strongly_convex_regret,
)

__all__ = [
    "FTPL", "LEARNERS", "OGD", "AdaFTRL", "AdaGrad", "AdaGradFrom", "AdaGradNorm", "AdaptiveFTPL", "ConstantOGD", "CurvedOGD",
    "DecreasingOGD", "FixedFTPL", "Iterate", "LeaderState", "SoloFTRL", "SoloState", "StronglyConvexOGD", "adaftrl_regret",
    "adagrad_regret", "adaptive_ftpl_regret", "adaptive_step", "decreasing_ogd_regret", "ftpl_regret", "moved", "ogd_regret",
    "strongly_convex_regret",
]  # fmt: skip

LEARNERS: dict[str, Callable[..., Learner[Any]]] = {
    "adagrad": AdaGrad,
    "adaftrl": AdaFTRL,
    "ftpl": FTPL,
    "ogd": OGD,
    "strongly-convex-ogd": StronglyConvexOGD,
}
"""The learners by name; `learner=` of a policy takes those that need nothing more than the policy knows."""
