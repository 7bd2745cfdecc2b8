"""Section 4 of the paper: a network trained online by Algorithm 1, as the released code has it or as the text has it.

f_t = -(1 - y) ln(1 - p) on legitimate transactions, g_t = -y ln p on frauds, p the network's output before the label is known. One pass,
one row a round. Rates are soft: FPR is the mean of p over legitimate rows, TPR over frauds, as predicted along the way. Each lambda is one
point; the curve through them is integrated by trapezoids. See docs/fraud.md for what the paper says and what its code does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from bridle import domains, validate
from bridle.comparisons.analysis import power_law
from bridle.core import Constants, InputError
from bridle.data import Data
from bridle.fraud import Facts
from bridle.game.play import Trace, play
from bridle.networks import NetworkRound, weights
from bridle.policies import Configured
from bridle.policies import policy as make_policy
from bridle.problems import Problem
from bridle.problems.recorded import RecordedRounds

HIDDEN = 10
"""The network's hidden units."""

PAPER_AREA = 0.92
"""The area under the curve that the paper reports."""


class PaperRows(NamedTuple):
    """The transactions in the order in which they are played: features (T, inputs), and 1 for a fraud."""

    features: np.ndarray
    fraud: np.ndarray


class PaperVariant(NamedTuple):
    """One reading of the experiment: its columns, whether rows are shuffled, the start, and what the policy is told."""

    columns: tuple[str, ...]
    shuffled: bool
    radius: float
    start: Callable[[np.random.Generator, int], np.ndarray]
    settings: dict[str, float]
    about: str


_MEASURED = (*(f"V{i}" for i in range(1, 29)), "Amount")
VARIANTS = {
    "code": PaperVariant(
        _MEASURED, True, 100.0, lambda rng, size: rng.random(size),
        {"diameter": 10.0, "initial": 0.001, "beta": 1.0, "V": 1.0},
        "as the released code: 29 features, shuffled rows, start U[0, 1), L2 ball of radius 100, D = 10, beta = V = 1, AdaGrad from 0.001",
    ),
    "text": PaperVariant(
        ("Time", *_MEASURED), False, 1.0, lambda rng, size: rng.standard_normal(size), {},
        "as the text: 30 features, rows in time order, start N(0, 1), L2 normalisation (the unit ball), Theorem 1's D, beta and V",
    ),
}  # fmt: skip


def lambda_grid(least: float = 0.002, most: float = 1.0, count: int = 30) -> list[float]:
    """The lambdas that are played unless others are given: a geometric grid that spans the curve.

    >>> [round(lam, 4) for lam in lambda_grid(count=3)]
    [0.002, 0.0447, 1.0]
    """
    return [float(lam) for lam in np.geomspace(least, most, count)]


def rows_of(data: Data, variant: str) -> PaperRows:
    """The features of a variant, each column scaled to mean 0 and deviation 1 over the whole set, and the labels."""
    chosen = _variant(variant)
    columns = np.column_stack([data[name] for name in chosen.columns])
    spread = columns.std(axis=0)
    if not (spread > 0.0).all():
        raise InputError(
            f"column {chosen.columns[int(np.argmin(spread))]} of the data has the same value in every row: it cannot be scaled"
        )
    fraud = data["Class"]
    if not np.isin(fraud, (0.0, 1.0)).all() or fraud.min() == fraud.max():
        raise InputError("column Class of the data must hold 0 and 1, and each at least once")
    return PaperRows((columns - columns.mean(axis=0)) / spread, fraud)


def arrange(rows: PaperRows, variant: str, seed: int) -> tuple[Problem, np.ndarray]:
    """The problem of one seed, which fixes the order of the rows where they are shuffled, and the weights to start from."""
    chosen, rng = _variant(variant), np.random.default_rng(validate.whole("seed", seed, 0))
    T, inputs = rows.features.shape
    played = rows
    if chosen.shuffled:
        order = rng.permutation(T)
        played = PaperRows(rows.features[order], rows.fraud[order])
    domain = domains.Ball(weights(inputs, HIDDEN), radius=chosen.radius)
    # On the ball |v| <= radius, and a sigmoid's slope is at most 1/4.
    longest = float((rows.features**2).sum(axis=1).max()) + 1.0
    G = (longest * chosen.radius**2 / 16.0 + HIDDEN + 1.0) ** 0.5
    constants: Constants = {"constraints": 1, "lipschitz": G, "diameter": domain.diameter(), "convex": False, "time_varying": True}
    adversary = RecordedRounds(NetworkRound(played.features, played.fraud, np.zeros(T), np.zeros(T)), 0.0)
    problem = Problem(domain, adversary, constants, f"fraud ({variant})", {"horizon": T, "seed": seed})
    return problem, domain.project(chosen.start(rng, domain.dim))


def policy_of(problem: Problem, variant: str, lambdas: list[float]) -> Configured:
    """Algorithm 1 with the variant's settings, one run for each lambda."""
    settings: dict[str, Any] = {"horizon": problem.horizon, "lipschitz": problem.constants["lipschitz"], **_variant(variant).settings}
    made: Configured = make_policy("sinha2024", problem.domain, lam=lambdas, **settings)
    return made


POINT_COLUMNS = ("lambda", "seed", "fpr", "tpr", "ccv", "cost", "norm", "ccv_exponent")
"""One lambda on one seed: soft rates, final CCV and cost, the length of the final weights, and how CCV grows."""


def play_seed(
    rows: PaperRows, variant: str, lambdas: list[float], seed: int, engine: str, progress: Callable[[int, int], None] | None = None
) -> Facts:
    """One pass over the rows with every lambda at once; `progress` hears how many of how many rounds are done.

    It gives the points and areas, the CCV of every lambda along the way, and the time it took.
    """
    problem, start = arrange(rows, variant, seed)
    begun = time.perf_counter()
    trace = play(policy_of(problem, variant, lambdas), problem, engine=engine, x1=start, keep="rounds", progress=progress)
    points = points_of(trace, lambdas, np.asarray(cast(NetworkRound, cast(RecordedRounds, problem.adversary).table).label), seed)
    seconds = time.perf_counter() - begun
    curve = curve_rounds(problem.horizon or 0).tolist()
    fpr, tpr = [point["fpr"] for point in points], [point["tpr"] for point in points]
    return {
        "seed": seed,
        "auc": area(fpr, tpr),
        "auc_without_corners": area(fpr, tpr, corners=False),
        "seconds": seconds,
        "points": [{name: point[name] for name in POINT_COLUMNS} for point in points],
        "curve_rounds": curve,
        "curves": [point["curve"] for point in points],
    }


def points_of(trace: Trace, lambdas: list[float], fraud: np.ndarray, seed: int) -> list[Facts]:
    """Each run's point, final cost and violation, the length of its final weights, and its CCV along the way with the fitted exponent.

    The network's outputs are read off the losses: p = 1 - e^{-f} on a legitimate row, p = e^{-g} on a fraud.
    """
    if trace.costs is None or trace.values is None:
        raise InputError("trace must hold every round: play(..., keep='rounds')")
    caught = fraud == 1.0
    fpr = -np.expm1(-trace.costs[~caught]).mean(axis=0)
    tpr = np.exp(-trace.values[caught, :, 0]).mean(axis=0)
    final = trace.policy.decide(trace.state)
    rounds = curve_rounds(trace.rounds)
    at = np.searchsorted(np.flatnonzero(caught), rounds - 1, side="right")  # how many frauds there were by then
    sums = np.concatenate([np.zeros((1, len(lambdas))), np.cumsum(trace.values[caught, :, 0], axis=0)])
    hard, costs = np.asarray(trace.totals.hard), np.asarray(trace.totals.cost)
    points: list[Facts] = []
    for i, lam in enumerate(lambdas):
        curve = sums[at, i]
        law = power_law(rounds.tolist(), curve.tolist(), since=0.5 * trace.rounds)
        points.append({
            "lambda": float(lam), "seed": seed, "fpr": float(fpr[i]), "tpr": float(tpr[i]), "ccv": float(hard[i, 0]),
            "cost": float(costs[i]), "norm": float(np.linalg.norm(final[i])),
            "ccv_exponent": None if law is None else law.exponent, "curve": curve.tolist(),
        })  # fmt: skip
    return points


def curve_rounds(rounds: int) -> np.ndarray:
    """The rounds at which CCV is kept: log-spaced, and evenly over the second half, to which its exponent is fitted."""
    return np.unique(np.concatenate([np.round(np.geomspace(1, rounds, 80)), np.linspace(rounds / 2, rounds, 60).round()])).astype(int)


def area(fpr: list[float], tpr: list[float], corners: bool = True) -> float:
    """The area under the curve through the points, sorted by FPR, by trapezoids; with the corners (0, 0) and (1, 1) unless told not to.

    >>> area([0.25, 0.5], [0.5, 1.0]), area([0.25, 0.5], [0.5, 1.0], corners=False)
    (0.75, 0.1875)
    """
    x, y = np.array(fpr, dtype=float), np.array(tpr, dtype=float)
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    if corners:
        x, y = np.concatenate([[0.0], x, [1.0]]), np.concatenate([[0.0], y, [1.0]])
    return float(((x[1:] - x[:-1]) * (y[1:] + y[:-1])).sum() / 2.0)


def _variant(name: str) -> PaperVariant:
    validate.one_of("variant", name, VARIANTS)
    return VARIANTS[name]
