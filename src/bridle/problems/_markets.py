"""A shop and a page: revenue from a limited stock, and clicks with fair exposure, both of which the paper names.

| problem | adversary | what it does |
|---|---|---|
| `pricing` | `Shop` | draws the demand of any day, 28 days at a time |
| `recommendation` | `Page` | draws the clicks and the attention of any hour, a day at a time |

Weeks and days have their rhythm, months and days jump, and chance does the rest, within ranges from which all constants are computed: so
they hold for every seed and every horizon. With `data="ratings"` the rounds of `recommendation` are real ones, 100 ratings of films each.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bridle import domains, validate
from bridle.core import InputError, Round
from bridle.functions import AffineFunction, AffineRows, QuadraticForm
from bridle.ops import Array, Scalar
from bridle.problems.base import Problem, constants_of
from bridle.problems.recorded import ComputedRounds, recorded_problem
from bridle.problems.registry import registered

WEEK, MONTH, QUARTER, HOURS = 7, 28, 91, 24
"""Days in a week, a month and a quarter, and hours in a day."""

LOWEST = 0.5
"""Pricing: the lowest price, as a multiple of the list price."""

CHANCE, TASTE, APART = 0.15, 0.05, 0.1
"""Pricing: what chance moves a day's traffic by, what the quarter and chance each move what buyers would pay by, and how far elasticities
lie apart."""

CLICKS, SWING, NEWS = (2.0, 4.0), 0.3, 0.5
"""Recommendation: clicks in 100 places on average, and what the hour and the day multiply them by, up or down."""

PRESENT, WANDER = 0.25, 0.15
"""Recommendation: what the hour and chance each move the attention by that a place gets."""

DECADES = (1970.0, 1980.0, 1990.0, 1995.0, 1997.0)
"""Recommendation with ratings: the years in which a new era of films begins."""

LIKED, TOGETHER = 4.0, 100
"""Recommendation with ratings: the stars from which on a film was liked, and how many ratings make a round."""


class Shop(NamedTuple):
    """Linear demand for d products at the prices x, in multiples of the list prices.

    On a day with the traffic m and the tastes v, a product i with the elasticity e_i sells

        q_i(x) = m (v_i + e_i (1 - x_i) - c sum_{j != i} w_j (1 - x_j)),    in multiples of its average sales at list prices,

    where w_i is its share of revenue at list prices and c what the others' prices do. That is q = m (v + S (1 - x)) with W S symmetric, W
    the matrix with w on its diagonal. So f(x) = -<w x, q(x)> is quadratic with the curvature 2 m W S, which is positive definite
    for c < min e, and g(x) = q(x) - stock is affine.
    """

    seed: float
    w: Array  # (d,), shares of revenue at list prices
    S: Array  # (d, d), what prices do to sales
    peak: Array  # (d,), when in the quarter buyers would pay most, 0 to 1
    stock: Scalar
    season: Scalar
    shock: Scalar

    @property
    def length(self) -> int:
        return MONTH

    def period(self, number: int) -> Round:
        """The days of a month."""
        rng, d = np.random.default_rng([int(self.seed), 3, number]), len(self.w)
        m, day = traffic(rng, number, self.season, self.shock), number * MONTH + np.arange(MONTH)
        v = 1.0 + TASTE * (np.cos(2.0 * np.pi * (day[:, None] / QUARTER - self.peak)) + rng.uniform(-1.0, 1.0, (MONTH, d)))
        most = m[:, None] * (v + self.S.sum(axis=1))  # what would be sold if all were free
        revenue = QuadraticForm(m[:, None, None] * curvature(self.w, self.S), -self.w * most, np.zeros(MONTH))
        return Round(revenue, (AffineRows(-m[:, None, None] * self.S, most - self.stock),))


def traffic(rng: np.random.Generator, month: int, season: Scalar, shock: Scalar) -> Array:
    """How many come on each day of a month, 1 on average: the month has its level, the week its rhythm, the day its chance."""
    level = 1.0 + shock * rng.uniform(-1.0, 1.0)
    rhythm = np.cos(2.0 * np.pi * (month * MONTH + np.arange(MONTH)) / WEEK)
    return np.asarray(level * (1.0 + season * rhythm) * rng.uniform(1.0 - CHANCE, 1.0 + CHANCE, MONTH))


def traffic_range(season: float, shock: float) -> tuple[float, float]:
    """The least and the most that `traffic` can be.

    >>> traffic_range(0.0, 0.0)
    (0.85, 1.15)
    """
    for name, value in (("season", season), ("shock", shock)):
        if validate.nonnegative(name, value) >= 1.0:
            raise InputError(f"{name} must be below 1, not {value:g}: demand would vanish")
    quiet, busy = ((1.0 - side * season) * (1.0 - side * shock) * (1.0 - side * CHANCE) for side in (1.0, -1.0))
    return quiet, busy


def curvature(w: Array, S: Array) -> Array:
    """2 W S, symmetric to the last digit."""
    return w[:, None] * S + (w[:, None] * S).T


@registered
def pricing(
    horizon: int,
    seed: int = 0,
    dim: int = 5,
    elasticity: float = 2.0,
    substitution: float = 0.2,
    stock: float = 1.0,
    season: float = 0.3,
    shock: float = 0.25,
) -> Problem:
    """Prices of a shop, set before the day's demand is known, with no more to sell than the stock.

    x is the price of each product as a multiple of its list price, from a half up to where nobody may want it, and f is minus the expected
    revenue of a day, in average days at list prices. g is, for each product, the expected sales of the day less the day's share of its
    stock, in average days' sales at list prices.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, how many products. Values: a whole number, 1 or above. Unit: products.
    elasticity
        By how many percent sales fall when a price rises by 1 percent, at list prices on average. Values: above 0.
        Unit: percent per percent.
    substitution
        By how many percent, at most, sales rise when all other prices rise by 1 percent. Values: 0 or above; how
        far above depends on elasticity. Unit: percent per percent.
    stock
        A day's share of the stock, in average days' sales at list prices. Values: above 0. Unit: days of sales.
    season
        How far demand swings over a week, as a share of it. Values: 0 or above and below 1. Unit: share.
    shock
        How far the level of demand may be off in a month, as a share of it. Values: 0 or above and below 1. Unit:
        share.
    """
    d, share = validate.whole("dim", dim), validate.positive("stock", stock)
    own, c = validate.positive("elasticity", elasticity), validate.nonnegative("substitution", substitution)
    swing, jump = validate.nonnegative("season", season), validate.nonnegative("shock", shock)
    quiet, busy = traffic_range(swing, jump)
    least, most = 1.0 - 2.0 * TASTE, 1.0 + 2.0 * TASTE  # of tastes
    room = min((1.0 - APART) * own, least / (1.0 - LOWEST))
    if c >= room:
        raise InputError(f"substitution must be below {room:g} where elasticity is {own:g}, not {c:g}")
    rng = np.random.default_rng([seed, 1])
    w = rng.uniform(2.0, 4.0, d)
    w /= w.sum()
    e, peak = own * rng.uniform(1.0 - APART, 1.0 + APART, d), rng.random(d)
    S = np.diag(e + c * w) - c * w
    low, high = np.full(d, LOWEST), np.full(d, 1.0 + (least - c * (1.0 - LOWEST)) / ((1.0 + APART) * own))
    # S has the e on its diagonal and nothing above 0 beside it: S x is extreme where each price is at one end and the others at the other.
    beside = c * w - np.diag(c * w)
    top, bottom = e * high - beside @ low, e * low - beside @ high
    slopes = np.maximum(2.0 * top - least - S.sum(axis=1), most + S.sum(axis=1) - 2.0 * bottom)
    G = busy * max(float(np.linalg.norm(w * slopes)), float(np.linalg.norm(S, axis=1).max()))
    F = max(share, busy * float((most + S.sum(axis=1) - bottom).max()) - share)
    domain = domains.Box(low, high)
    modulus = quiet * float(np.linalg.eigvalsh(curvature(w, S))[0])
    constants = constants_of(domain, lipschitz=G, bound=F, modulus=modulus, constraints=d)
    margin = share - busy * float((most + S @ (1.0 - high)).max())  # on the busiest day at the highest prices
    if margin >= 0.0:
        constants |= {"feasible": high, "slater": margin or None}
    return Problem(domain, ComputedRounds(Shop(float(seed), w, S, peak, share, swing, jump)), constants)


class Exposure(NamedTuple):
    """Who is limited together, and to what part of all attention: m of d providers to at least m/d `least` and at most m/d `most`."""

    members: Array  # (groups, d), 1 for who is in a group
    floor: Array  # (groups,)
    cap: Array  # (groups,)

    def rounds(self, r: Array, v: Array) -> Round:
        """Rounds with the clicks r in 100 places and the attention v a place: clicks are the gain, shares of attention have limits."""
        together, everybody = v[:, None, :] * self.members, v[:, None, :]
        shares = np.concatenate([self.floor[:, None] * everybody - together, together - self.cap[:, None] * everybody], axis=1)
        return Round(AffineFunction(-r, np.zeros(len(r))), (AffineRows(shares, np.zeros(shares.shape[:2])),))

    @property
    def steepest(self) -> float:
        """The longest row where every v is 1, which no longer row has while every v is at most 1."""
        d, m = self.members.shape[1], self.members.sum(axis=1)
        return max(float(np.hypot(np.sqrt(m) * (1.0 - share), share * np.sqrt(d - m)).max()) for share in (self.floor, self.cap))

    @property
    def largest(self) -> float:
        """The largest entry of a row, up or down, where every v is 1: what a limit comes to in a corner of the simplex."""
        return max(1.0 - float(self.floor.min()), float(self.cap.max()))

    def margin(self, low: float, high: float) -> float:
        """What every limit has to spare with equal shares and every v from low to high: a group gets least and all others most, or so."""
        d, m = self.members.shape[1], self.members.sum(axis=1)
        below = m * low - self.floor * (m * low + (d - m) * high)
        above = self.cap * (m * high + (d - m) * low) - m * high
        return float(np.minimum(below, above).min() / d)


def exposure(d: int, groups: int | None, least: float, most: float) -> Exposure:
    """The limits of d providers that stand in so many groups, as even in size as can be, each of neighbours; without `groups` each alone.

    >>> exposure(5, 2, 0.5, 1.5).members.sum(axis=1).tolist()
    [3.0, 2.0]
    """
    fewest, highest = validate.nonnegative("least", least), validate.positive("most", most)
    if fewest > 1.0:
        raise InputError(f"least must be at most 1, an even share, not {fewest:g}")
    if highest < 1.0:
        raise InputError(f"most must be 1, an even share, or above, not {highest:g}")
    number = d if groups is None else validate.whole("groups", groups, 2)
    if number > d:
        raise InputError(f"groups must be at most {d}, the providers there are, not {number}")
    members = np.zeros((number, d))
    for group, providers in enumerate(np.array_split(np.arange(d), number)):
        members[group, providers] = 1.0
    sizes = members.sum(axis=1)
    return Exposure(members, sizes * (fewest / d), np.minimum(1.0, sizes * (highest / d)))


class Page(NamedTuple):
    """Places on a page for d providers, of which each gets the share x_i.

    In an hour 100 places of provider i would get r_i clicks, and each place v_i of attention, by where it is and who comes. So
    f(x) = -<r, x>, the attention is v_i x_i, and the limits are  least <v, x> - v_i x_i  and  v_i x_i - most <v, x>; of a group of
    providers, with the sum of its v_i x_i in the place of v_i x_i, and its own least and most.
    """

    seed: float
    rate: Array  # (d,), clicks in 100 places on average
    peak: Array  # (d,), when in the day its readers come, 0 to 1
    limits: Exposure

    @property
    def length(self) -> int:
        return HOURS

    def period(self, number: int) -> Round:
        """The hours of a day."""
        rng, d = np.random.default_rng([int(self.seed), 4, number]), len(self.rate)
        hour = np.cos(2.0 * np.pi * (np.arange(HOURS)[:, None] / HOURS - self.peak))
        r = self.rate * (1.0 + NEWS * rng.uniform(-1.0, 1.0, d)) * (1.0 + SWING * hour)
        v = 1.0 + PRESENT * hour + WANDER * rng.uniform(-1.0, 1.0, (HOURS, d))
        return self.limits.rounds(r, v)


@registered
def recommendation(
    horizon: int,
    seed: int = 0,
    dim: int = 6,
    least: float = 0.4,
    most: float = 2.4,
    data: str = "simulated",
    groups: int | None = None,
) -> Problem:
    """Places on a page for several providers, whose exposure may be neither too small nor too large.

    x is the share of the places that each provider gets, and f is minus the expected clicks in 100 places; with `data=ratings`, of each of
    six eras of films, and how many of 100 were liked. The first half of the g are how far a provider's attention in the round, which
    depends on who comes, lies below `least` times an even share of all attention, and the others how far it lies above `most` times that;
    with `groups`, the attention of a group of providers, and its members' even shares together.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    dim
        d, how many providers. Values: a whole number, 2 or above. Unit: providers.
    least
        Attention that a provider must get, as a multiple of an even share. Values: between 0 and 1. Unit: even
        shares.
    most
        Attention that a provider may get, as a multiple of an even share. Values: 1 or above. Unit: even shares.
    data
        Which data to use. Values: simulated or ratings.
    groups
        How many groups the providers stand in, neighbours together, each limited as a whole. Default: every
        provider alone. Values: a whole number, 2 or above and at most the providers. Unit: groups.
    """
    d = validate.whole("dim", dim, 2)
    limits = exposure(d, groups, least, most)
    if validate.one_of("data", data, ("simulated", "ratings")) == "ratings":
        if d != len(DECADES) + 1:
            raise InputError(f"dim must be {len(DECADES) + 1}, the eras of films, where data is ratings, not {d}")
        return _films(horizon, seed, limits)
    rng = np.random.default_rng([seed, 1])
    rate, peak = rng.uniform(*CLICKS, d), rng.random(d)
    domain = domains.Simplex(d)
    low, high = 1.0 - PRESENT - WANDER, 1.0 + PRESENT + WANDER  # of attention
    G = max((1.0 + NEWS) * (1.0 + SWING) * float(np.linalg.norm(rate)), high * limits.steepest)
    count = 2 * len(limits.members)
    constants = constants_of(domain, lipschitz=G, bound=high * limits.largest, constraints=count)
    margin = limits.margin(low, high)
    if margin >= 0.0:
        constants |= {"feasible": domain.center(), "slater": margin or None}
    return Problem(domain, ComputedRounds(Page(float(seed), rate, peak, limits)), constants)


def _films(horizon: int, seed: int, limits: Exposure) -> Problem:
    """The ratings as rounds; of these the constants are exact."""
    rounds, domain = limits.rounds(*_ratings()), domains.Simplex(len(DECADES) + 1)
    A = np.asarray(rounds.constraints[0].grad(domain.center()))
    G = max(float(np.linalg.norm(rounds.cost.grad(domain.center()), axis=-1).max()), float(np.linalg.norm(A, axis=-1).max()))
    # A linear function on the simplex is largest, and smallest, at a corner: an entry of its row.
    constants = constants_of(domain, lipschitz=G, bound=float(abs(A).max()), constraints=A.shape[1])
    return recorded_problem("recommendation on ratings", domain, rounds, constants, horizon, seed)


@lru_cache(maxsize=1)
def _ratings() -> tuple[Array, Array]:
    """How many of 100 films of each era were liked, and how much they were asked for (1 on average over the eras), round by round.

    Where nobody rated a film of an era, it is taken to be liked as the round's films are together.
    """
    from bridle.data import load

    ratings, films = load("ratings"), load("films")
    years = [float(name) if name.isdigit() else DECADES[2] for name in films.categories["release_year"]]  # of two films it is not known
    released = dict(zip(films["item_id"], np.array(years)[films["release_year"].astype(int)], strict=True))
    order = np.argsort(ratings["timestamp"], kind="stable")
    era = np.searchsorted(DECADES, [released[film] for film in ratings["item_id"][order]], side="right").reshape(-1, TOGETHER)
    liked = (ratings["rating"][order] >= LIKED).reshape(-1, TOGETHER)
    each = era[:, :, None] == np.arange(len(DECADES) + 1)
    asked, loved = each.sum(axis=1), (each & liked[:, :, None]).sum(axis=1)
    together = liked.mean(axis=1, keepdims=True)
    return 100.0 * np.where(asked > 0, loved / np.maximum(asked, 1), together), each.shape[2] / TOGETHER * asked
