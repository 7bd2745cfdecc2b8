"""What a game comes to, as facts for programs and tables: what was measured, the bounds, and whether they hold."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridle import policies, records, validate
from bridle.core import Bound, Constants, Movable, capability
from bridle.game import metrics
from bridle.game.play import Trace
from bridle.ops import Array, Scalar
from bridle.policies.common import constants_from
from bridle.solvers.block_stream import NoComparator

GameFacts: TypeAlias = dict[str, Any]
"""The facts of one game under the names of the command line's JSON; `..._why` is empty unless something does not apply."""

BOUNDED = (
    ("regret", "regret_bound"), ("ccv", "ccv_bound"), ("interval_violation", "interval_bound"), ("soft_violation", "soft_bound"),
    ("squared_ccv", "squared_bound"), ("dynamic_regret", "dynamic_bound"), ("movement", "movement_bound"),
)  # fmt: skip
"""What is measured, and the bound that goes with it, by their names in the facts; `..._holds` says whether it held.

The first `IN_PAPERS` of them also have the bound as the paper states it, `..._paper`.
"""

IN_PAPERS = 3


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
    often, moving = metrics.violation_rates(trace), metrics.against_the_known_path(trace)
    asked, shares, proved = ([], [], []) if often is None else map(plain, often)
    measured = {
        "cost": trace.totals.cost,
        "regret": regret,
        "ccv": metrics.ccv(trace),
        "ccv_max": metrics.ccv_max(trace),
        "soft_violation": metrics.soft_violation(trace),
        "interval_violation": metrics.interval_violation(trace),
        "squared_ccv": metrics.squared_ccv(trace),
        "dynamic_regret": moving.regret,
        "movement": movement,
    }
    allowed = dict(zip(dict(BOUNDED).values(), (*sharp[:-1], farthest), strict=True))
    stated = {f"{bound}_paper": value for (_, bound), value in zip(BOUNDED[:IN_PAPERS], paper[:IN_PAPERS], strict=True)}
    numbers = {**measured, "path_length": moving.length, **allowed, **stated, "us_per_round": trace.pace, "seconds": trace.seconds}
    return {
        "problem": problem.name,
        "policy": policy.name if isinstance(policy, policies.Configured) else type(policy).__name__,
        "horizon": trace.rounds,
        "seed": trace.seeds[0] if len(trace.seeds) == 1 else list(trace.seeds),
        "engine": trace.engine,
        "dim": problem.domain.dim,
        "constraints": int(trace.totals.hard.shape[-1]),
        "parameters": plain(dict(getattr(policy, "parameters", {}))),
        "problem_parameters": plain(dict(problem.parameters)),
        "constants": {key: plain(value) for key, value in problem.constants.items() if np.ndim(cast(ArrayLike, value)) == 0},
        **{name: plain(value) for name, value in numbers.items()},
        "ccv_each": plain(trace.totals.hard),
        "regret_why": why,
        "dynamic_why": moving.why,
        "bound_why": sharp.why,
        "paper_why": paper.why,
        "rates_asked": asked,
        "rates": shares,
        "rates_proved": proved,
        "measures": {} if trace.decisions is None else plain(metrics.measures(trace)),
        "warnings": list(trace.warnings),
        **{f"{bound}_holds": _holds(measured[name], allowed[bound]) for name, bound in BOUNDED},
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
    on_regret, on_ccv = ([plain(getattr(bound, name)) for bound in curve] for name in ("regret", "ccv"))
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


def plain(value: object) -> Any:
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
