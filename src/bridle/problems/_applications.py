"""Applications that the paper names: portfolios, data centres and a fair classifier on real data, and advertising on simulated auctions.

| problem | adversary | what it does |
|---|---|---|
| `portfolio`, `capacity`, `fair-classifier` | `RecordedRounds` | plays the rows of a data set |
| `ad-pacing` | `ComputedRounds` of `Auctions` | computes the auctions of any slot of any day |

The data come by way of `bridle.data`, which downloads what is missing. Rounds are in the data's own order for seed 0; another seed begins
at a row of its own and goes on with row 0 after the last one. Constants are computed from all the rounds that the data have, so they hold
for every seed and every horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from bridle import domains, validate
from bridle.core import InputError, Round
from bridle.functions import AffineFunction, AffineRows, LogisticLoss, QuadraticForm, RoundQuadratic
from bridle.ops import Array, Scalar
from bridle.policies.common import switch
from bridle.problems import portfolios
from bridle.problems.base import Problem, constants_of
from bridle.problems.own_tables import is_own_file, read_table
from bridle.problems.recorded import ComputedRounds, ForetoldRounds, RecordedRounds
from bridle.problems.recorded import recorded_problem as _recorded
from bridle.problems.registry import registered

RESOURCES = {
    "alibaba": ("cpu_util_percent", "mem_util_percent", "net_in", "net_out", "disk_io_percent"),
    "google": ("cpu_util_percent", "mem_util_percent", "assigned_mem_percent"),
    "azure": ("cpu_usage", "assigned_mem"),
    "electricity": ("PGE", "SCE", "SDGE", "VEA"),
    "traffic": ("traffic_volume",),
    "bikes": ("bikers",),
}
"""The data sets of demand (data centres, grids, a road, bicycles), and the columns of each that are resources."""

PERCENT = ("alibaba", "google")
"""Those whose entries are percent of what is installed."""

TWICE = 2.0
"""What is installed where nobody says: this many times the peak."""

SLOTS = 288
"""Slots of 5 minutes in a day."""

SWING, NOISE, VALUE, TOP = 0.6, (0.5, 1.5), (0.5, 2.0), (2.0, 4.0)
"""Auctions: the swing of traffic over a day, what chance multiplies it by, the value of an impression, and the highest competing bid."""

LARGEST_WEIGHT = (1.0 + SWING) * NOISE[1] * VALUE[1] ** 2 / TOP[0]
"""The largest weight a segment can have in a slot, per impression that it has on average."""

MEAN_WEIGHT = (VALUE[0] ** 2 + VALUE[0] * VALUE[1] + VALUE[1] ** 2) / 3.0 * np.log(TOP[1] / TOP[0]) / (TOP[1] - TOP[0])
"""The mean of that weight, over the day and over chance."""


class Auctions(NamedTuple):
    """Second-price auctions in d segments, bid on with the multipliers x: an impression worth v is bid x_i v.

    The highest competing bid is uniform on [0, c] with c >= v, and the winner pays it. So n impressions are won with probability x_i v / c
    each; their expected value is n v^2 x_i / c and their expected price n v^2 x_i^2 / (2 c). With the weight w = n v^2 / c of a segment in
    a slot, f(x) = -<w, x> and g(x) = sum_i w_i x_i^2 / 2 - budget.

    Traffic n swings over the day, each segment with a peak of its own. Every day has its own random numbers.
    """

    seed: float
    rate: Array  # (d,), impressions in a slot on average
    peak: Array  # (d,), when in the day, 0 to 1
    budget: Scalar

    @property
    def length(self) -> int:
        return SLOTS

    def period(self, number: int) -> Round:
        """The slots of a day."""
        rng, shape = np.random.default_rng([int(self.seed), 2, number]), (SLOTS, len(self.rate))
        when = np.arange(SLOTS)[:, None] / SLOTS
        traffic = self.rate * (1.0 + SWING * np.cos(2.0 * np.pi * (when - self.peak))) * rng.uniform(*NOISE, shape)
        w = np.asarray(traffic * rng.uniform(*VALUE, shape) ** 2 / rng.uniform(*TOP, shape))
        spend = QuadraticForm(w[:, :, None] * np.eye(w.shape[1]), 0.0 * w, np.full(SLOTS, -float(self.budget)))
        return Round(AffineFunction(-w, np.zeros(SLOTS)), (spend,))


@registered
def portfolio(
    horizon: int,
    seed: int = 0,
    data: str = "nyse-o",
    lookback: int = 60,
    risk: float = 1.5,
    known: bool = False,
    relatives: bool | None = None,
) -> Problem:
    """Portfolio selection on real prices, with a limit on the risk of every day.

    x is the share of wealth in each asset, and f the logarithm of wealth that a day costs: minus the log of the day's growth. g is the
    variance of x over a year, as the `lookback` days before predict it, less `risk` times that of an equal share in every asset.

    `data` is a data set, or a CSV file of prices with a line of names, the oldest day first (price relatives, with `relatives`). The limit
    of a day depends on the days before it: with `known` it is told before the decision, and kept in every game (on engine python).

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    data
        Which data to use. Values: a set of prices that `bridle data list` shows, or a .csv or .npz of your own.
    lookback
        How many of the latest rows of the data a limit is computed from. Values: a whole number, 2 or above. Unit:
        rows.
    risk
        Allowed variance, as a multiple of that of an equal share in every asset. Values: above 0.
    known
        Limits are told before each decision, and kept.
    relatives
        Whether the file has price relatives, not prices. Default: what the data set is known to have. Values: True or False.
    """
    multiple, told = validate.positive("risk", risk), switch("known", known)
    of_relatives = None if relatives is None else bool(switch("relatives", relatives))
    market = portfolios.market(data, of_relatives, validate.whole("lookback", lookback, 2))
    domain = domains.Simplex(market.P.shape[-1])
    limit = multiple * market.even
    # Predicted variance is convex and nowhere negative: it is largest in a single asset, and g is nowhere below -limit.
    F = max(float((market.alone - limit).max()), float(limit.max()))
    constants = constants_of(domain, lipschitz=market.lipschitz, bound=F, affine=False)
    constants["exp_concavity"] = 1.0  # exp(-f) is the growth of the day, which is linear
    if multiple >= 1.0:
        constants |= {"feasible": domain.center(), "slater": (multiple - 1.0) * float(market.even.min()) or None}
    risk_of_day = QuadraticForm(market.P, np.zeros(market.P.shape[:2]), -limit)
    problem = _recorded(f"portfolio on {data}", domain, Round(market.cost, (risk_of_day,)), constants, horizon, seed)
    adversary = ForetoldRounds(*cast(RecordedRounds, problem.adversary)) if told else problem.adversary
    return replace(problem, adversary=adversary, measures=portfolios.measures)


@registered
def capacity(
    horizon: int, seed: int = 0, data: str = "alibaba", modulus: float = 0.0, installed: float | Sequence[float] | None = None
) -> Problem:
    """Capacity of a data centre, switched on before the demand for it is known.

    x is the share of each resource (processors, memory, network, disks) that is switched on, and f its price, where all of a resource costs
    1; with `modulus` above 0, also (modulus/2) |x - demand|^2 for what lies idle or is missing. g is, for each resource, the demand that
    is not met, the file's where `data` is a .csv or .npz of your own with a column for each resource, of which there is `installed`.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    data
        Which data to use. Values: alibaba, or a .csv or .npz of your own with a column for each resource.
    modulus
        Strong convexity of what idle or missing capacity costs; 0: only what is switched on costs. Values: 0 or
        above. Unit: cost per squared unit of action.
    installed
        How much there is of each resource of a file, one number or one for each. Default: twice the resource's
        peak. Values: above 0. Unit: action.
    """
    demand, top = _own_demand(data, installed) if is_own_file(data) else _demand(_among("data", data, tuple(RESOURCES)))
    if installed is not None and not is_own_file(data):
        raise InputError(f"installed is for a file of your own: what {data} has is known, and cannot be {validate.show(installed)}")
    alpha = validate.nonnegative("modulus", modulus)
    T, d = demand.shape
    domain = domains.Box(np.zeros(d), top)
    cost = RoundQuadratic(np.full(T, alpha), demand, np.ones((T, d)), np.zeros(T))
    unmet = AffineRows(np.broadcast_to(-np.eye(d), (T, d, d)), demand)
    # Each entry of a slope, 1 + alpha (x - demand), is largest in size at an end of its range; the slopes of unmet demand are 1 long.
    steepest = np.maximum(abs(1.0 - alpha * demand), abs(1.0 + alpha * (top - demand)))
    G = max(1.0, float(np.linalg.norm(steepest, axis=1).max()))
    F = max(float(demand.max()), float((top - demand).max()))
    constants = constants_of(domain, lipschitz=G, bound=F, modulus=alpha, constraints=d)
    margin = float((top - demand.max(axis=0)).min())
    constants |= {"safe": top, "feasible": top if margin >= 0.0 else None, "slater": margin if margin > 0.0 else None}
    problem = _recorded(f"capacity on {data}", domain, Round(cost, (unmet,)), constants, horizon, seed)
    if margin < 0.0:  # then not even all there is meets the peak
        return problem
    # Where demand is met, more costs more: the best that always meets it is the peak of each resource.
    costs = cast(RoundQuadratic, cast(RecordedRounds, problem.adversary).replay(0, horizon).cost)
    best = costs.c.max(axis=0)
    return replace(problem, constants=problem.constants | {"optimum": best, "optimal_cost": float(costs.total().value(best))})


@registered
def ad_pacing(horizon: int, seed: int = 0, dim: int = 8, budget: float = 0.5) -> Problem:
    """Pacing of an advertising budget over simulated second-price auctions.

    x multiplies the bids in each segment of the audience (1 bids what an impression is worth), and f is minus the expected value, in euros,
    of what is won in a slot of 5 minutes. g is the expected price of that, in euros, less the slot's share of the budget.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, segments of the audience. Values: a whole number, 1 or above. Unit: segments.
    budget
        The budget, as a share of what it costs on average to bid what impressions are worth. Values: above 0. Unit:
        share.
    """
    d, share = validate.whole("dim", dim), validate.positive("budget", budget)
    rng = np.random.default_rng([seed, 1])
    rate, peak = rng.uniform(0.5, 1.5, d), rng.random(d)
    most, allowed = LARGEST_WEIGHT * rate, share * 0.5 * MEAN_WEIGHT * float(rate.sum())  # a share of what full bids cost on average
    domain = domains.Box(np.zeros(d), np.ones(d))
    # No weight is above `most`, whatever chance brings: its length bounds both slopes, and bids within budget then are so always.
    F = max(allowed, 0.5 * float(most.sum()) - allowed)
    constants = constants_of(domain, lipschitz=float(np.linalg.norm(most)), bound=F, affine=False)
    constants |= {"feasible": np.full(d, min(1.0, np.sqrt(2.0 * allowed / most.sum()))), "slater": allowed, "safe": np.zeros(d)}
    return Problem(domain, ComputedRounds(Auctions(float(seed), rate, peak, allowed)), constants)


@registered
def fair_classifier(horizon: int, seed: int = 0, lookback: int = 1000, tolerance: float = 0.02, radius: float = 5.0) -> Problem:
    """A classifier that learns from one person after the other, and must not score men and women differently.

    x holds the weights of a linear score (the log-odds of earning over 50,000 dollars a year), and f is the logistic loss of the score of
    one person of the 1994 census. The two g are how far the covariance of score and sex over the last `lookback` persons lies above
    `tolerance`, and how far below minus that.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    lookback
        How many of the latest rows of the data a limit is computed from. Values: a whole number, 2 or above. Unit:
        rows.
    tolerance
        Largest covariance of score and sex that is allowed. Values: above 0. Unit: covariance.
    radius
        Largest length of the weights. Values: above 0. Unit: weights.
    """
    tau, R = validate.positive("tolerance", tolerance), validate.positive("radius", radius)
    cost, c = _census(validate.whole("lookback", lookback, 2))
    T, d = c.shape
    domain = domains.Ball(d, radius=R)
    size, slope = np.linalg.norm(cost.a, axis=1), float(np.linalg.norm(c, axis=1).max())
    G = max(float((size / (1.0 + np.exp(-R * size))).max()), slope)  # the loss is steepest where the score is as wrong as the ball allows
    constants = constants_of(domain, lipschitz=G, bound=R * slope + tau, constraints=2, feasible=domain.center(), slater=tau)
    apart = AffineRows(np.stack([c, -c], axis=1), np.full((T, 2), -tau))
    return _recorded("fair-classifier", domain, Round(cost, (apart,)), constants, horizon, seed)


def _among(parameter: str, name: str, choices: tuple[str, ...]) -> str:
    validate.one_of(parameter, name, choices)
    return str(name)


@lru_cache(maxsize=3)
def _demand(data: str) -> tuple[Array, Array]:
    """Demand for each resource, and what is installed of it."""
    from bridle.data import load

    trace = load(data)
    used = np.column_stack([trace[name] for name in RESOURCES[data]])
    if data == "azure":  # sums over machines; what is installed is not published: taken to be a quarter over the peak of the first day
        return used / used[:288].max(axis=0), np.full(used.shape[1], 1.25)
    return used / (100.0 if data in PERCENT else TWICE * used.max(axis=0)), np.ones(used.shape[1])


def _own_demand(path: str, installed: float | Sequence[float] | None) -> tuple[Array, Array]:
    """Demand for each resource in the user's file, as a share of what is installed, and that share of all of it, 1."""
    table = read_table("data", path)
    used = np.column_stack(list(table.columns.values()))
    if (used < 0.0).any():
        row, column = np.argwhere(used < 0.0)[0]
        name = list(table.columns)[column]
        raise InputError(f"data: {table.path}: demand must be 0 or above, not {used[row, column]:g} in row {row + 1} of {name}")
    if installed is None:
        top = TWICE * used.max(axis=0)
    else:
        given = validate.array("installed", installed).reshape(-1)
        if len(given) not in (1, used.shape[1]) or not (given > 0.0).all():
            one = f"one number above 0, or one for each of the {used.shape[1]} columns of {table.path}"
            raise validate.refused(f"installed must be {one}", installed)
        top = np.broadcast_to(given, used.shape[1])
    return used / np.where(top > 0.0, top, 1.0), np.ones(used.shape[1])


@lru_cache(maxsize=2)
def _census(lookback: int) -> tuple[LogisticLoss, Array]:
    """Losses of the persons, and the covariance of each of their features with sex over those up to and with each.

    Features are scaled by what they can be, not by what they are in the data. Neither sex nor race is one.
    """
    from bridle.data import load

    people = load("adult")
    if lookback >= len(people.values):
        raise InputError(f"lookback must be below {len(people.values)}, the persons that adult has, not {lookback}")
    scaled = [people["age"] / 100.0, people["education-num"] / 16.0, people["hours-per-week"] / 100.0]
    scaled += [np.log1p(people[name]) / np.log1p(1e5) for name in ("capital-gain", "capital-loss")]
    kinds = [
        people.equals(column, kind)
        for column in ("workclass", "marital-status", "occupation", "relationship")
        for kind in people.categories[column]
    ]
    a = np.column_stack([np.ones(len(people.values)), *scaled, *kinds, people.equals("native-country", "United-States")]).astype(float)
    label = np.where(people.equals("income", ">50K"), 1.0, -1.0)
    man = people.equals("sex", "Male").astype(float)[:, None]
    sums = np.cumsum(np.concatenate([np.zeros((1, 2 * a.shape[1] + 1)), np.concatenate([a, man * a, man], axis=1)]), axis=0)
    means = (sums[lookback:] - sums[:-lookback]) / lookback
    both, each, men = means[:, a.shape[1] : -1], means[:, : a.shape[1]], means[:, -1:]
    now = slice(lookback - 1, None)
    return LogisticLoss(a[now], label[now], np.ones(len(a) - lookback + 1)), both - men * each
