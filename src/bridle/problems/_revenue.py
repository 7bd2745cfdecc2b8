"""Revenue under a limited inventory: who is let in, before it is known how many will ask.

| problem | adversary | what it does |
|---|---|---|
| `revenue` | `Airline` | draws the requests for the seats of any day, 28 days at a time |

A hub and its spokes, as in studies of network revenue management: a flight from every spoke to the hub and one back, journeys on one or two
of them, and two fares for each. With `data="bikes"` the rounds are real ones: the hours of a year in which bicycles were lent, to casual
riders and to registered ones, out of one fleet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import domains, validate
from bridle.core import Constants, InputError, Round
from bridle.domains.closed_form import BoxSet
from bridle.functions import AffineFunction, AffineRows
from bridle.ops import Array, Scalar
from bridle.problems._markets import MONTH, traffic, traffic_range
from bridle.problems.base import Problem, constants_of
from bridle.problems.recorded import ComputedRounds, recorded_problem
from bridle.problems.registry import registered

CHANGE, FARES, WEIGHTS = 1.5, (0.8, 1.2), (0.5, 1.5)
"""What a journey with a change costs beside one without, and the ranges of the fares and the demands of journeys."""

CHEAP = 0.75
"""The part of all requests that is for the low fare."""

SPREAD = 0.4
"""What chance moves the requests of a day for one journey at one fare by."""

SPOKES, SEASON, SHOCK = 3, 0.3, 0.25
"""The defaults of what only the simulated network has."""


class Airline(NamedTuple):
    """Requests for d products, a journey at a fare each, on L flights of the same size.

    On a day r_j are asked for product j, counted in planeloads, and the share x_j of them is let in. So f(x) = -sum_j fare_j r_j x_j, and
    the passengers of flight l less its seats are sum_j uses_lj r_j x_j - 1, in planeloads too.
    """

    seed: float
    fare: Array  # (d,), in low fares of a flight without a change
    uses: Array  # (L, d), 1 where the product uses the flight
    mean: Array  # (d,), requests of an average day, in planeloads
    season: Scalar
    shock: Scalar

    @property
    def length(self) -> int:
        return MONTH

    def period(self, number: int) -> Round:
        """The days of a month."""
        rng = np.random.default_rng([int(self.seed), 5, number])
        day = traffic(rng, number, self.season, self.shock)[:, None]
        return rounds(self.fare, self.uses, self.mean * day * rng.uniform(1.0 - SPREAD, 1.0 + SPREAD, (MONTH, len(self.mean))))


def rounds(fare: Array, uses: Array, requests: Array) -> Round:
    """Rounds with these requests (T, d): the fares of who is let in are the gain, the seats of each flight the limit."""
    T = len(requests)
    return Round(AffineFunction(-fare * requests, np.zeros(T)), (AffineRows(uses * requests[:, None, :], np.full((T, len(uses)), -1.0)),))


def constants(domain: BoxSet, fare: Array, uses: Array, most: Array) -> Constants:
    """The constants of rounds whose requests are at most `most`, all of them at once: as large as that makes them."""
    G = max(float(np.linalg.norm(fare * most)), float(np.linalg.norm(uses * most, axis=1).max()))
    F = max(1.0, float((uses @ most).max()) - 1.0)
    nobody = np.zeros(domain.dim)
    return constants_of(domain, lipschitz=G, bound=F, constraints=len(uses), feasible=nobody, slater=1.0, safe=nobody)


def flights(spokes: int) -> Array:
    """Which flights a journey uses, (2 n, n (n + 1)): to the hub, from the hub, and through it from a spoke to another.

    >>> flights(2).astype(int).tolist()
    [[1, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1], [0, 0, 1, 0, 0, 1], [0, 0, 0, 1, 1, 0]]
    """
    through = [(start, end) for start in range(spokes) for end in range(spokes) if start != end]
    journeys = [*((leg,) for leg in range(2 * spokes)), *((start, spokes + end) for start, end in through)]
    uses = np.zeros((2 * spokes, len(journeys)))
    for journey, legs in enumerate(journeys):
        uses[list(legs), journey] = 1.0
    return uses


@registered
def revenue(
    horizon: int,
    seed: int = 0,
    spokes: int = SPOKES,
    load: float = 1.2,
    fares: float = 3.0,
    season: float = SEASON,
    shock: float = SHOCK,
    data: str = "simulated",
) -> Problem:
    """Seats of a network of flights, sold at two fares, before it is known how many will ask for which journey.

    x is the share of the requests for each journey at each fare that is let in (journeys of one flight first, all at the low fare, then all
    at the high one), and f is minus the fares of a day, in planeloads at the lowest fare. g is, for each flight, its passengers less its
    seats, in planeloads. With `data=bikes`, x is the share of registered and of casual riders who get a bicycle, who pay 1 and `fares`, and
    g is the riders of an hour less the fleet, in fleets.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    spokes
        n, airports beside the hub; there are 2 n flights and 2 n (n + 1) products. Values: a whole number, 1 or
        above. Unit: airports.
    load
        Requests on average, as a multiple of what there is to sell, on average over the flights. Values: above 0.
    fares
        The high fare, as a multiple of the low one. Values: above 0. Unit: low fares.
    season
        How far demand swings over a week, as a share of it. Values: 0 or above and below 1. Unit: share.
    shock
        How far the level of demand may be off in a month, as a share of it. Values: 0 or above and below 1. Unit:
        share.
    data
        Which data to use. Values: simulated or bikes.
    """
    ratio, full = validate.positive("fares", fares), validate.positive("load", load)
    n = validate.whole("spokes", spokes)
    swing, jump = validate.nonnegative("season", season), validate.nonnegative("shock", shock)
    _, busy = traffic_range(swing, jump)
    if validate.one_of("data", data, ("simulated", "bikes")) == "bikes":
        for name, value, default in (("spokes", n, SPOKES), ("season", swing, SEASON), ("shock", jump, SHOCK)):
            if value != default:
                raise InputError(f"{name} cannot be given where data is bikes: its rounds are real ones")
        return _bicycles(horizon, seed, full, ratio)
    rng, legs = np.random.default_rng([seed, 1]), flights(n)
    price = np.where(legs.sum(axis=0) > 1.0, CHANGE, 1.0) * rng.uniform(*FARES, legs.shape[1])
    asked = rng.uniform(*WEIGHTS, legs.shape[1])
    uses, fare = np.tile(legs, 2), np.concatenate([price, ratio * price])
    mean = np.concatenate([CHEAP * asked, (1.0 - CHEAP) * asked])
    mean *= full * len(uses) / float((uses @ mean).sum())
    domain = domains.Box(0.0, 1.0, dim=len(mean))
    known = constants(domain, fare, uses, (1.0 + SPREAD) * busy * mean)
    return Problem(domain, ComputedRounds(Airline(float(seed), fare, uses, mean, swing, jump)), known)


def _bicycles(horizon: int, seed: int, load: float, ratio: float) -> Problem:
    """The hours of a year as rounds, each with its registered and its casual riders."""
    from bridle.data import load as loaded

    table = loaded("bikes")
    riders = np.stack([table["registered"], table["casual"]], axis=1)
    requests = riders * (load / float(riders.sum(axis=1).mean()))
    fare, uses, domain = np.array([1.0, ratio]), np.ones((1, 2)), domains.Box(0.0, 1.0, dim=2)
    known = constants(domain, fare, uses, requests.max(axis=0))
    # Both kinds of riders need not be most at once: of these rounds the largest are known.
    known["bound"] = max(1.0, float(requests.sum(axis=1).max()) - 1.0)
    known["lipschitz"] = max(float(np.linalg.norm(fare * requests, axis=1).max()), float(np.linalg.norm(requests, axis=1).max()))
    return recorded_problem("revenue on bikes", domain, rounds(fare, uses, requests), known, horizon, seed)
