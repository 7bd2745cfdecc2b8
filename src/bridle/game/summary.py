"""What a game comes to, as facts for programs and tables: what was measured, the bounds, and whether they hold."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from bridle import policies, records
from bridle.core import Bound
from bridle.game import metrics
from bridle.game.play import Trace
from bridle.policies.common import constants_from
from bridle.solvers.hindsight import NoComparator

BOUNDED = (
    ("regret", "regret_bound"), ("ccv", "ccv_bound"), ("interval_violation", "interval_bound"), ("soft_violation", "soft_bound"),
    ("squared_ccv", "squared_bound"),
)  # fmt: skip
"""What is measured, and the bound that goes with it, by their names in the facts."""


def summary(trace: Trace, comparator: metrics.Comparator | NoComparator | None = None) -> dict[str, Any]:
    """The facts of one game under the names of the command line's JSON; None where something does not apply, and a `why` beside it.

    `comparator` is what regret is measured against, or why there is none, where that is known already.
    """
    try:
        if isinstance(comparator, NoComparator):
            raise comparator
        regret, why = metrics.regret(trace, comparator), ""
    except NoComparator as reason:
        regret, why = None, str(reason)
    sharp, paper = bounds(trace, regret)
    name = trace.policy.name if isinstance(trace.policy, policies.Configured) else type(trace.policy).__name__
    facts = {
        "problem": trace.problem.name,
        "policy": name,
        "horizon": trace.rounds,
        "seed": trace.seeds[0] if len(trace.seeds) == 1 else list(trace.seeds),
        "engine": trace.engine,
        "dim": trace.problem.domain.dim,
        "constraints": int(trace.totals.hard.shape[-1]),
        "parameters": {key: plain(value) for key, value in getattr(trace.policy, "parameters", {}).items()},
        "problem_parameters": {key: plain(value) for key, value in trace.problem.parameters.items()},
        "constants": {key: plain(value) for key, value in trace.problem.constants.items() if np.ndim(value) == 0},
        "cost": trace.totals.cost,
        "regret": regret,
        "regret_why": why,
        "ccv": metrics.ccv(trace),
        "ccv_max": metrics.ccv_max(trace),
        "ccv_each": trace.totals.hard,
        "soft_violation": metrics.soft_violation(trace),
        "interval_violation": metrics.interval_violation(trace),
        "squared_ccv": metrics.squared_ccv(trace),
        "regret_bound": sharp.regret,
        "ccv_bound": sharp.ccv,
        "interval_bound": sharp.interval,
        "soft_bound": sharp.soft,
        "squared_bound": sharp.squared,
        "bound_why": sharp.why,
        "regret_bound_paper": paper.regret,
        "ccv_bound_paper": paper.ccv,
        "interval_bound_paper": paper.interval,
        "paper_why": paper.why,
        "us_per_round": trace.pace,
        "seconds": trace.seconds,
        "warnings": list(trace.warnings),
    }
    for measured, bound in BOUNDED:
        facts[f"{bound}_holds"] = None if facts[measured] is None or facts[bound] is None else _holds(facts[measured], facts[bound])
    return {key: plain(value) for key, value in facts.items()}


def _holds(measured: Any, bound: Any) -> bool:
    """Whether what was measured is at most its bound, up to the rounding of sums that may attain it."""
    return bool(np.all(np.asarray(measured) <= np.asarray(bound) + 1e-12 * np.abs(bound)))


def bounds(trace: Trace, regret: Any = None) -> tuple[Bound, Bound]:
    """The sharpest proved bounds and the paper's, for the game that was played; `regret` sharpens some."""
    none = _unbounded(trace)
    if none is not None:
        return none, none
    sure = regret is not None and bool(np.all(_surely(regret, trace.totals.cost)))
    known = {**_known(trace), "regret": regret if sure else None}
    return trace.policy.bound(known, trace.rounds), trace.policy.paper_bound(known, trace.rounds)


def bound_curves(trace: Trace, regrets: Any = None, at: Any = None) -> tuple[list[Any], list[Any]]:
    """The sharpest proved bounds on regret and on CCV after a single run's log-spaced rounds, or those numbered `at`; None for none.

    `regrets` is the regret after those rounds, where it is known. The last of each is the bound of `summary`.
    """
    at = np.arange(len(trace.curve.rounds)) if at is None else np.asarray(at)
    if _unbounded(trace) is not None:
        return [None] * len(at), [None] * len(at)
    rounds, known = trace.curve.rounds[at].astype(int).tolist(), [None] * len(at)
    if regrets is not None:
        sure = _surely(regrets, trace.curve.cost[at])
        known = [regret if fine else None for regret, fine in zip(np.asarray(regrets).tolist(), sure.tolist(), strict=True)]
    ends = sorted({0, len(at) - 1})
    found = trace.policy.bound_curve(_known(trace), [rounds[i] for i in ends], [known[i] for i in ends])
    if all(end.regret is None and end.ccv is None for end in found):  # then none is stated in between
        return [None] * len(at), [None] * len(at)
    found = trace.policy.bound_curve(_known(trace), rounds, known)
    return [plain(one.regret) for one in found], [plain(one.ccv) for one in found]


def _unbounded(trace: Trace) -> Bound | None:
    """No bound, and why, where the policy is not one of the registry's or not one for the problem's domain."""
    if not isinstance(trace.policy, policies.Configured):
        return Bound(why="the policy is not registered")
    if not records.same(trace.policy.domain, trace.problem.domain):
        return Bound(why="the policy's domain is not the problem's")
    return None


def _known(trace: Trace) -> dict[str, Any]:
    """What is known of a game to its bounds: the problem's constants, and what the policy took from the stream."""
    return {**trace.problem.constants, **constants_from(trace.state)}


def _surely(regret: Any, cost: Any) -> np.ndarray:
    """Whether a regret is surely not negative: the best action in hindsight is found to 1e-6."""
    return np.asarray(np.asarray(regret) >= 1e-6 * np.maximum(1.0, np.abs(cost)))


def plain(value: Any) -> Any:
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
