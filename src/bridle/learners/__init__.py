"""Algorithms for unconstrained online convex optimisation: what runs under the Lyapunov reduction.

The paper's Algorithm 3 is projected online gradient descent; its Theorem 6 gives two step sizes, and its appendix names what may take
their place; those on a simplex are for mixtures. Every learner here is a record with `init`, `decide` and `step`; in its file stand the
record, the factory that checks what it is given, and the regret bound as a function.

`scale_free` says that multiplying every gradient by one constant leaves the decisions as they are; such a learner also has
``rescale(state, factor)``, the state it would be in had all gradients so far been multiplied by `factor`. `adaptivity(diameter)` is
the constant c of a regret bound  c sqrt(sum |p_s|^2)  that holds for every sequence of gradients, where there is one, and
`squares(state)` that sum so far. `certified(state)` is a learner's own upper bound on its regret, with what has happened; and
``step_at(state, grad, x)`` the step for a gradient that belongs to another decision than the state's, where that makes a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridle.core import Learner
from bridle.learners.adagrad import (
    AdaGrad,
    AdaGradFrom,
    AdaGradNorm,
    AdaGradSteps,
    adagrad_movement,
    adagrad_regret,
    adaptive_step,
)
from bridle.learners.adahedge import AdaHedge, Hedge, HedgeState, hedge_regret, hedge_variance_regret
from bridle.learners.base import Grouped, Iterate, moved
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
from bridle.learners.frank_wolfe import FrankWolfe, FrankWolfeLearner, FrankWolfeState, frank_wolfe_regret
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
from bridle.learners.mlpoly import MLPoly, MLPolyLearner, PolyState, poly_psi, poly_regret
from bridle.learners.newton_step import ONS, NewtonState, NewtonStep, directions, ons_regret
from bridle.learners.played_hedge import PlayedExperts, PlayedHedge, PlayedHedgeState, played_gap, played_regret
from bridle.learners.structured import StructuredFTRL, StructuredState, structured_regret
from bridle.learners.track import Track, Tracking, TrackState, share_regret, track_regret

__all__ = [
    "FTPL", "LEARNERS", "OGD", "ONS", "AdaFTRL", "AdaGrad", "AdaGradFrom", "AdaGradNorm", "AdaGradSteps", "AdaHedge", "AdaptiveFTPL",
    "ConstantOGD", "CurvedOGD", "DecreasingOGD", "FixedFTPL", "FrankWolfe", "FrankWolfeLearner", "FrankWolfeState", "Grouped", "Hedge",
    "HedgeState", "Iterate", "LeaderState", "MLPoly", "MLPolyLearner", "NewtonState", "NewtonStep", "PlayedExperts", "PlayedHedge",
    "PlayedHedgeState", "PolyState", "SoloFTRL", "SoloState", "StronglyConvexOGD", "StructuredFTRL", "StructuredState", "Track",
    "TrackState", "Tracking", "adaftrl_regret", "adagrad_movement", "adagrad_regret", "adaptive_ftpl_regret", "adaptive_step",
    "decreasing_ogd_regret", "directions", "frank_wolfe_regret", "ftpl_regret", "hedge_regret", "hedge_variance_regret", "moved",
    "ogd_regret", "ons_regret", "played_gap", "played_regret", "poly_psi", "poly_regret", "share_regret", "strongly_convex_regret",
    "structured_regret", "track_regret",
]  # fmt: skip

LEARNERS: dict[str, Callable[..., Learner[Any]]] = {
    "adagrad": AdaGrad,
    "adaftrl": AdaFTRL,
    "adahedge": AdaHedge,
    "frank-wolfe": FrankWolfe,
    "ftpl": FTPL,
    "mlpoly": MLPoly,
    "ogd": OGD,
    "ons": ONS,
    "strongly-convex-ogd": StronglyConvexOGD,
    "track": Track,
}
"""The learners by name; `learner=` of a policy takes those that need nothing more than the policy knows."""
