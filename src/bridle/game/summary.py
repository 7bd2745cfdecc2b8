"""What a game comes to, as facts for programs and tables: what was measured, the bounds, and whether they hold.

`GameFacts` names every fact and says of what kind it is; every other list of facts is read off it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Literal, TypeAlias, TypedDict, TypeVar, cast, get_type_hints, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridle import policies, records, validate
from bridle.core import Bound, Constants, Movable, capability
from bridle.game import metrics
from bridle.game.play import Trace
from bridle.ops import Array, Scalar
from bridle.policies.common import constants_from
from bridle.solvers.block_stream import NoComparator

V = TypeVar("V")

Figure: TypeAlias = float | list[float | None] | None
"""A number of one run, or one for each of several; None where it does not apply or is not finite."""


# Not records: two of different kinds can be equal, and Python 3.11.2 (that of Debian 12) then makes one `Annotated` of both.


@dataclass(frozen=True)
class Measured:
    """Marks a fact that is measured in every game."""


@dataclass(frozen=True)
class BoundOn:
    """Marks the sharpest proved bound on a fact that is measured."""

    measured: str


@dataclass(frozen=True)
class PaperBoundOn:
    """Marks the bound on a measured fact as the paper states it."""

    measured: str


@dataclass(frozen=True)
class HoldsFor:
    """Marks the flag that says whether a bound held."""

    bound: str


class GameFacts(TypedDict):
    """The facts of one game under the names of the command line's JSON; `..._why` is empty unless something does not apply."""

    problem: str
    policy: str
    horizon: int
    seed: int | list[int]
    engine: str
    dim: int
    constraints: int
    parameters: dict[str, object]
    problem_parameters: dict[str, object]
    constants: dict[str, object]
    cost: Annotated[Figure, Measured()]
    regret: Annotated[Figure, Measured()]
    regret_why: str
    ccv: Annotated[Figure, Measured()]
    ccv_max: Annotated[Figure, Measured()]
    ccv_each: list[float | None] | list[list[float | None]]
    soft_violation: Annotated[Figure, Measured()]
    interval_violation: Annotated[Figure, Measured()]
    squared_ccv: Annotated[Figure, Measured()]
    dynamic_regret: Figure
    path_length: Figure
    dynamic_why: str
    movement: Annotated[Figure, Measured()]
    rates_asked: list[float | None] | list[list[float | None]]
    rates: list[float | None] | list[list[float | None]]
    rates_proved: list[float | None] | list[list[float | None]]
    measures: dict[str, object]
    regret_bound: Annotated[Figure, BoundOn("regret")]
    ccv_bound: Annotated[Figure, BoundOn("ccv")]
    interval_bound: Annotated[Figure, BoundOn("interval_violation")]
    soft_bound: Annotated[Figure, BoundOn("soft_violation")]
    squared_bound: Annotated[Figure, BoundOn("squared_ccv")]
    dynamic_bound: Annotated[Figure, BoundOn("dynamic_regret")]
    movement_bound: Annotated[Figure, BoundOn("movement")]
    bound_why: str
    regret_bound_paper: Annotated[Figure, PaperBoundOn("regret")]
    ccv_bound_paper: Annotated[Figure, PaperBoundOn("ccv")]
    interval_bound_paper: Annotated[Figure, PaperBoundOn("interval_violation")]
    paper_why: str
    us_per_round: Figure
    seconds: Figure
    warnings: list[str]
    regret_bound_holds: Annotated[bool | None, HoldsFor("regret_bound")]
    ccv_bound_holds: Annotated[bool | None, HoldsFor("ccv_bound")]
    interval_bound_holds: Annotated[bool | None, HoldsFor("interval_bound")]
    soft_bound_holds: Annotated[bool | None, HoldsFor("soft_bound")]
    squared_bound_holds: Annotated[bool | None, HoldsFor("squared_bound")]
    dynamic_bound_holds: Annotated[bool | None, HoldsFor("dynamic_bound")]
    movement_bound_holds: Annotated[bool | None, HoldsFor("movement_bound")]


Kind: TypeAlias = Literal["text", "number", "whole", "flag", "texts", "numbers", "settings"]
"""What a fact of a single run is, as a column of a table."""

_HINTS = get_type_hints(GameFacts)
_MARKS = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(GameFacts, include_extras=True).items() if hasattr(hint, "__metadata__")
}
_KINDS: list[tuple[object, Kind]] = [
    (str, "text"), (Figure, "number"), (int, "whole"), (int | list[int], "whole"), (bool | None, "flag"), (list[str], "texts"),
    (list[float | None] | list[list[float | None]], "numbers"), (dict[str, object], "settings"),
]  # fmt: skip

FACT_KINDS: dict[str, Kind] = {name: next(kind for shape, kind in _KINDS if shape == hint) for name, hint in _HINTS.items()}
"""Every fact, and of what kind it is for a single run."""

MEASURED = tuple(name for name, mark in _MARKS.items() if isinstance(mark, Measured))
"""The facts that are measured."""

BOUNDED = tuple((mark.measured, name) for name, mark in _MARKS.items() if isinstance(mark, BoundOn))
"""What is measured, and the bound that goes with it, by their names in the facts."""

PAPER_BOUNDED = tuple((mark.measured, name) for name, mark in _MARKS.items() if isinstance(mark, PaperBoundOn))
"""What is measured, and the bound on it that the paper states."""

HELD = tuple((mark.bound, name) for name, mark in _MARKS.items() if isinstance(mark, HoldsFor))
"""A bound, and the flag that says whether it held."""


@validate.undisturbed
def summary(trace: Trace, comparator: metrics.Comparator | NoComparator | None = None) -> GameFacts:
    """The facts of one game; None where something does not apply, and a `why` beside it.

    `comparator` is what regret is measured against, or why there is none, where that is known already.
    """
    try:
        if isinstance(comparator, NoComparator):
            raise comparator
        regret, why = metrics.regret(trace, comparator), ""
    except NoComparator as reason:
        regret, why = None, str(reason)
    movement = trace.totals.moved
    farthest = None if movement is None else metrics.movement_bound(trace)
    sharp, paper = bounds(trace, regret, farthest)
    policy, problem = trace.policy, trace.problem
    ccv, soft = metrics.ccv(trace), metrics.soft_violation(trace)
    interval, squared = metrics.interval_violation(trace), metrics.squared_ccv(trace)
    often, moving = metrics.violation_rates(trace), metrics.against_the_known_path(trace)
    asked, shares, proved = ([], [], []) if often is None else (cast(list[float | None], plain(part)) for part in often)
    return {
        "problem": problem.name,
        "policy": policy.name if isinstance(policy, policies.Configured) else type(policy).__name__,
        "horizon": trace.rounds,
        "seed": trace.seeds[0] if len(trace.seeds) == 1 else list(trace.seeds),
        "engine": trace.engine,
        "dim": problem.domain.dim,
        "constraints": int(trace.totals.hard.shape[-1]),
        "parameters": {key: plain(value) for key, value in getattr(policy, "parameters", {}).items()},
        "problem_parameters": {key: plain(value) for key, value in problem.parameters.items()},
        "constants": {key: plain(value) for key, value in problem.constants.items() if np.ndim(cast(ArrayLike, value)) == 0},
        "cost": figure(trace.totals.cost),
        "regret": figure(regret),
        "regret_why": why,
        "ccv": figure(ccv),
        "ccv_max": figure(metrics.ccv_max(trace)),
        "ccv_each": cast(list[float | None], plain(trace.totals.hard)),
        "soft_violation": figure(soft),
        "interval_violation": figure(interval),
        "squared_ccv": figure(squared),
        "dynamic_regret": figure(moving.regret),
        "path_length": figure(moving.length),
        "dynamic_why": moving.why,
        "movement": figure(movement),
        "rates_asked": asked,
        "rates": shares,
        "rates_proved": proved,
        "measures": {} if trace.decisions is None else {name: figure(value) for name, value in metrics.measures(trace).items()},
        "regret_bound": figure(sharp.regret),
        "ccv_bound": figure(sharp.ccv),
        "interval_bound": figure(sharp.interval),
        "soft_bound": figure(sharp.soft),
        "squared_bound": figure(sharp.squared),
        "dynamic_bound": figure(sharp.dynamic),
        "movement_bound": figure(farthest),
        "bound_why": sharp.why,
        "regret_bound_paper": figure(paper.regret),
        "ccv_bound_paper": figure(paper.ccv),
        "interval_bound_paper": figure(paper.interval),
        "paper_why": paper.why,
        "us_per_round": figure(trace.pace),
        "seconds": figure(trace.seconds),
        "warnings": list(trace.warnings),
        "regret_bound_holds": _holds(regret, sharp.regret),
        "ccv_bound_holds": _holds(ccv, sharp.ccv),
        "interval_bound_holds": _holds(interval, sharp.interval),
        "soft_bound_holds": _holds(soft, sharp.soft),
        "squared_bound_holds": _holds(squared, sharp.squared),
        "dynamic_bound_holds": _holds(moving.regret, sharp.dynamic),
        "movement_bound_holds": _holds(movement, farthest),
    }


def _holds(measured: Scalar | None, bound: Scalar | None) -> bool | None:
    """Whether what was measured is at most its bound, up to the rounding of sums that may attain it; None where one is not known."""
    if measured is None or bound is None:
        return None
    return bool(np.all(np.asarray(measured) <= np.asarray(bound) + 1e-12 * np.abs(bound)))


def bounds(trace: Trace, regret: Scalar | None = None, farthest: Scalar | None = None) -> tuple[Bound, Bound]:
    """The sharpest proved bounds and the paper's, for the game that was played; `regret` sharpens some.

    Theorems are about costs without the price of moving. Where there is one, the bound on regret has it added for the most that decisions
    can have moved, `farthest`, where that is known.
    """
    policy = _policy_with_bounds(trace)
    if isinstance(policy, Bound):
        return policy, policy
    price = trace.problem.constants.get("switching", 0.0)
    if regret is not None and price:
        regret = regret - price * np.asarray(trace.totals.moved)
    sure = regret is not None and bool(np.all(_surely(regret, trace.totals.cost)))
    constants: Constants = {**_constants(trace), "regret": regret if sure else None}
    sharp, paper = policy.bound(constants, trace.rounds), policy.paper_bound(constants, trace.rounds)
    if not price:
        return sharp, paper
    paper = paper._replace(regret=None, why=paper.why or "the theorem is about costs without the price of moving")
    sharp = sharp._replace(dynamic=None)
    if sharp.regret is None:
        return sharp, paper
    if farthest is None:
        return sharp._replace(regret=None, why="how far this policy moves at most is not known, and moving has a price"), paper
    return sharp._replace(regret=sharp.regret + price * farthest), paper


def bound_curves(
    trace: Trace, regrets: Array | Sequence[float] | None = None, at: Array | Sequence[int] | None = None
) -> tuple[list[float | None], list[float | None]]:
    """The sharpest proved bounds on regret and on CCV after a single run's log-spaced rounds, or those numbered `at`; None for none.

    `regrets` is the regret after those rounds, where it is known. The last of each is the bound of `summary`.
    """
    chosen = np.arange(len(trace.curve.rounds)) if at is None else np.asarray(at)
    nothing: list[float | None] = [None] * len(chosen)
    policy = _policy_with_bounds(trace)
    if isinstance(policy, Bound):
        return nothing, nothing
    rounds, sure_regrets = trace.curve.rounds[chosen].astype(int).tolist(), nothing
    if regrets is not None:
        sure = _surely(regrets, trace.curve.cost[chosen])
        sure_regrets = [regret if fine else None for regret, fine in zip(np.asarray(regrets).tolist(), sure.tolist(), strict=True)]
    priced = bool(trace.problem.constants.get("switching"))
    sure_regrets = nothing if priced else sure_regrets  # they have the price of moving in them
    constants, ends = _constants(trace), sorted({0, len(chosen) - 1})
    curve = policy.bound_curve(constants, [rounds[i] for i in ends], [sure_regrets[i] for i in ends])
    if all(end.regret is None and end.ccv is None for end in curve):  # then none is stated in between
        return nothing, nothing
    curve = policy.bound_curve(constants, rounds, sure_regrets)
    on_regret, on_ccv = ([cast(float | None, plain(getattr(bound, name))) for bound in curve] for name in ("regret", "ccv"))
    return nothing if priced else on_regret, on_ccv


def _policy_with_bounds(trace: Trace) -> policies.Configured | Bound:
    """The policy, if it is one of the registry's for the problem's domain; else no bound, and why."""
    if not isinstance(trace.policy, policies.Configured):
        return Bound(why="the policy is not registered")
    if getattr(trace.problem.adversary, "foretold", False) and not _moves(trace):
        return Bound(
            why="limits that were known before acting were kept, and the policy's state cannot follow: its theorem is of other decisions"
        )
    if not records.same(trace.policy.domain, trace.problem.domain):
        return Bound(why="the policy's domain is not the problem's")
    return trace.policy


def _moves(trace: Trace) -> bool:
    """Whether the policy's state can be moved to another decision."""
    movable = capability(trace.policy.record, Movable)
    return movable is not None and movable.move(trace.state, trace.x1) is not None


def _constants(trace: Trace) -> Constants:
    """What the bounds of a game may use: the problem's constants, and what the policy took from the stream.

    How far the best action of each round moves depends on the seed, and on the rounds: the longest way of all runs covers each of them.
    """
    constants = cast(Constants, {**trace.problem.constants, **constants_from(trace.state)})
    if "path" in constants:
        if trace.rounds > (trace.problem.horizon or 0):
            del constants["path"]
        elif len(trace.seeds) > 1:
            constants["path"] = max(trace.problem.with_seed(seed).constants["path"] for seed in trace.seeds)
    return constants


def _surely(regret: Scalar | Sequence[float], cost: Scalar) -> NDArray[np.bool_]:
    """Whether a regret is surely not negative: the best action in hindsight is found to 1e-6."""
    return np.asarray(np.asarray(regret) >= 1e-6 * np.maximum(1.0, np.abs(cost)))


def figure(value: Scalar | None) -> Figure:
    """A number, or one for each run, as JSON can hold it."""
    return cast(Figure, plain(value))


@overload
def plain(value: dict[str, V]) -> dict[str, object]: ...
@overload
def plain(value: object) -> object: ...
def plain(value: object) -> object:
    """A value that JSON can hold: finite numbers, strings, lists; None for what overflowed, anything else by its name."""
    if isinstance(value, np.ndarray):
        value = (value.reshape(-1) if value.ndim == 2 and value.shape[1] == 1 else value).tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
