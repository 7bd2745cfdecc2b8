"""bridle: decisions made online under constraints that are revealed too late.

In every round a policy decides, and only then learns what the decision cost and which constraints it broke. bridle has policies with
proofs, sessions that certify themselves, and the tools to compare them.

Play a game
    `problem` makes a problem and `policy` or `policy_for` a policy by name; `play` lets them meet and gives a `Trace`, which `regret`,
    `ccv` and their kin measure. `compare` plays many games and ranks them.

Decide on your own stream
    `Session` decides, takes in what was revealed, and says what is proved (`Certificate`). `Session.open` keeps it in a database, `Client`
    talks to a decision service. `Gate` and `Pacer` are budgets that cannot be exceeded.

Say what is allowed and what it costs
    Domains: `Ball`, `Box`, `Simplex`, `L1Ball`, `Spectrahedron`, `Polyhedron`, `Halfspace`, `Product`, and
    for combinatorial actions `Paths`, `Matchings`, `SpanningTrees`. Functions: `Affine`, `Quadratic`, `Logistic`, `Hinge`, `LogWealth`,
    `Maximum`, `Callable`.

Find out what to use
    `advise` answers from what you know of your task. On the command line, ``bridle policies`` and ``bridle problems`` list what there is,
    and with a name they describe one in full.

Adapters for scikit-learn, river and PyTorch are in ``bridle.adapters``, checks for a policy of your own in ``bridle.checks``.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=500, dim=3)
>>> trace = bridle.play(bridle.policy("anytime", problem.domain), problem)
>>> trace.rounds, bool(bridle.ccv(trace) < 20.0)
(500, True)
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what `__getattr__` gives, for type checkers and editors
    from bridle import adversaries as adversaries
    from bridle import rules as rules
    from bridle.advice import Advice, advise
    from bridle.budgets import Gate, Pacer
    from bridle.comparisons.comparison import Comparison
    from bridle.comparisons.run import compare
    from bridle.core import (
        AssumptionWarning,
        Bound,
        BridleWarning,
        DroppedWarning,
        EmptyPromiseWarning,
        Feedback,
        Hint,
        HorizonWarning,
        InfeasibleWarning,
        InputError,
        LipschitzWarning,
        NotKeptWarning,
        OutlierWarning,
        Round,
        StuckWarning,
    )
    from bridle.domains import Ball, Box, Halfspace, L1Ball, Matchings, Paths, Polyhedron, Product, Simplex, SpanningTrees, Spectrahedron
    from bridle.domains.rounding import round_randomly
    from bridle.functions import AbsoluteDeviation, Affine, Callable, Hinge, Logistic, LogWealth, Maximum, Quadratic
    from bridle.game.metrics import (
        best_action,
        best_path,
        ccv,
        ccv_curve,
        ccv_each,
        ccv_max,
        dynamic_regret,
        interval_violation,
        movement,
        movement_bound,
        path_length,
        regret,
        regret_curve,
        smallest_window,
        soft_violation,
        squared_ccv,
        static_violation,
        violation_rates,
    )
    from bridle.game.play import Trace, play, policy_for
    from bridle.learners import FTPL, OGD, ONS, AdaFTRL, AdaGrad, AdaHedge, FrankWolfe, MLPoly, StronglyConvexOGD, Track, potentials
    from bridle.learners.late import LateAdaGrad
    from bridle.learners.wrappers import Doubling
    from bridle.networks import Network
    from bridle.pacing import pacing_bound
    from bridle.policies import policy, register
    from bridle.policies._sinha2024 import Lyapunov
    from bridle.policies._sinha2024_ocs import ConstraintSatisfaction
    from bridle.problems import Problem, problem
    from bridle.problems._hints import with_hints
    from bridle.problems.base import with_switching
    from bridle.service.client import AsyncClient, Client
    from bridle.session.certificates.certificate import Certificate
    from bridle.session.late import Ticket
    from bridle.session.session import Session
    from bridle.solvers.block_stream import NoComparator

__version__ = "0.2.0"

__all__ = [
    "FTPL",
    "OGD",
    "ONS",
    "AbsoluteDeviation",
    "AdaFTRL",
    "AdaGrad",
    "AdaHedge",
    "Advice",
    "Affine",
    "AssumptionWarning",
    "AsyncClient",
    "Ball",
    "Bound",
    "Box",
    "BridleWarning",
    "Callable",
    "Certificate",
    "Client",
    "Comparison",
    "ConstraintSatisfaction",
    "Doubling",
    "DroppedWarning",
    "EmptyPromiseWarning",
    "Feedback",
    "FrankWolfe",
    "Gate",
    "Halfspace",
    "Hinge",
    "Hint",
    "HorizonWarning",
    "InfeasibleWarning",
    "InputError",
    "L1Ball",
    "LateAdaGrad",
    "LipschitzWarning",
    "LogWealth",
    "Logistic",
    "Lyapunov",
    "MLPoly",
    "Matchings",
    "Maximum",
    "Network",
    "NoComparator",
    "NotKeptWarning",
    "OutlierWarning",
    "Pacer",
    "Paths",
    "Polyhedron",
    "Problem",
    "Product",
    "Quadratic",
    "Round",
    "Session",
    "Simplex",
    "SpanningTrees",
    "Spectrahedron",
    "StronglyConvexOGD",
    "StuckWarning",
    "Ticket",
    "Trace",
    "Track",
    "advise",
    "best_action",
    "best_path",
    "ccv",
    "ccv_curve",
    "ccv_each",
    "ccv_max",
    "compare",
    "dynamic_regret",
    "interval_violation",
    "movement",
    "movement_bound",
    "pacing_bound",
    "path_length",
    "play",
    "policy",
    "policy_for",
    "potentials",
    "problem",
    "register",
    "regret",
    "regret_curve",
    "round_randomly",
    "smallest_window",
    "soft_violation",
    "squared_ccv",
    "static_violation",
    "violation_rates",
    "with_hints",
    "with_switching",
]  # fmt: skip


_PLACES = {
    "advice": "Advice advise",
    "budgets": "Gate Pacer",
    "comparisons.comparison": "Comparison",
    "comparisons.run": "compare",
    "core": (
        "AssumptionWarning Bound BridleWarning DroppedWarning EmptyPromiseWarning Feedback Hint "
        "HorizonWarning InfeasibleWarning InputError LipschitzWarning NotKeptWarning OutlierWarning Round "
        "StuckWarning"
    ),
    "domains": "Ball Box Halfspace L1Ball Matchings Paths Polyhedron Product Simplex SpanningTrees Spectrahedron",
    "domains.rounding": "round_randomly",
    "functions": "AbsoluteDeviation Affine Callable Hinge Logistic LogWealth Maximum Quadratic",
    "game.metrics": (
        "best_action best_path ccv ccv_curve ccv_each ccv_max dynamic_regret interval_violation movement "
        "movement_bound path_length regret regret_curve smallest_window soft_violation squared_ccv "
        "static_violation violation_rates"
    ),
    "game.play": "Trace play policy_for",
    "learners": "FTPL OGD ONS AdaFTRL AdaGrad AdaHedge FrankWolfe MLPoly StronglyConvexOGD Track potentials",
    "learners.late": "LateAdaGrad",
    "learners.wrappers": "Doubling",
    "networks": "Network",
    "pacing": "pacing_bound",
    "policies": "policy register",
    "policies._sinha2024": "Lyapunov",
    "policies._sinha2024_ocs": "ConstraintSatisfaction",
    "problems": "Problem problem",
    "problems._hints": "with_hints",
    "problems.base": "with_switching",
    "service.client": "AsyncClient Client",
    "session.certificates.certificate": "Certificate",
    "session.late": "Ticket",
    "session.session": "Session",
    "solvers.block_stream": "NoComparator",
}
"""Where the public names are: a module is loaded when one of its names is asked for, so `import bridle` is quick."""

_HOMES = {name: f"bridle.{module}" for module, names in _PLACES.items() for name in names.split()}


def __dir__() -> list[str]:
    """The public names, and what Python knows of every module; not the modules that happen to be loaded."""
    return sorted({*__all__, "adversaries", "rules", *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> object:
    """A public name or a module of the package, loaded when it is asked for."""
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
    if not name.startswith("_") and find_spec(f"bridle.{name}") is not None:
        return import_module(f"bridle.{name}")
    raise AttributeError(f"module 'bridle' has no attribute {name!r}")


def _warn_of_another(folder: str) -> None:
    """Say so where the other project called `bridle` is installed in this folder: both have a folder `bridle/`.

    The names of what is installed beside the package tell: one look into a folder, where `importlib.metadata` takes milliseconds.
    """
    import os

    try:
        others = [name for name in os.listdir(folder) if name.startswith("bridle-") and name.endswith((".dist-info", ".egg-info"))]
    except OSError:  # the package lies in an archive
        return
    if others:
        import warnings

        from bridle.core import BridleWarning

        warnings.warn(
            f"another distribution called 'bridle' ({others[0]}) is installed in {folder}, where bridle-oco has its package: "
            "each overwrites files of the other. Repair: pip uninstall bridle bridle-oco, then pip install bridle-oco",
            BridleWarning,
            stacklevel=3,
        )


_warn_of_another(__file__.removesuffix("__init__.py")[: -len("/bridle/")])
