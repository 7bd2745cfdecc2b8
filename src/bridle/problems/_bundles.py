"""A combinatorial auction in which the auctioneer learns the limits of an allocation one by one.

| problem | adversary | what it does |
|---|---|---|
| `bundle-auctions` | `Proposals` | computes what the bidders answer to any proposal, every limit once in a period |

Bidders bid for bundles of items. Whoever allots the bundles must sell no item twice, give nobody more than one bundle, and take from nobody
more than a budget. These limits are many, each is known to one party alone, and there is no room to send them all at once: in each round
the auctioneer proposes an allocation in fractions, and a few of the parties answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import backends, domains, validate
from bridle.core import InputError, Round
from bridle.functions import AffineFunction, AffineRows
from bridle.ops import Array, Scalar
from bridle.problems.base import Problem, constants_of
from bridle.problems.recorded import ComputedRounds
from bridle.problems.registry import registered

WORTH, TASTE, SYNERGY = (1.0, 2.0), (0.5, 1.5), 0.2
"""The value of an item alone, what a bidder's taste multiplies it by, and what each further item of a bundle adds to the value of all."""

FURTHER = 0.5
"""How likely a bundle is to have one item more."""


class Proposals(NamedTuple):
    """Values of d bundles and m limits on them, of which `each` answer in a round.

    f(x) = -<v, x> with the values v as they are reported in the round, which are off by a factor of up to 1 +- noise. The limits are
    A x <= 1: of an item, the bundles that hold it; of a bidder, all bundles asked for; of a budget, their prices in budgets. In a period
    every limit answers once; where the last round would have too few, the period's first ones answer again.
    """

    seed: float
    value: Array  # (d,)
    A: Array  # (m, d)
    noise: Scalar
    each: Scalar

    @property
    def length(self) -> int:
        return -(-len(self.A) // int(self.each))

    def period(self, number: int) -> Round:
        """The rounds of a period."""
        rng, k, d = np.random.default_rng([int(self.seed), 7, number]), int(self.each), len(self.value)
        order = np.resize(rng.permutation(len(self.A)), self.length * k)
        reported = self.value * (1.0 + self.noise * rng.uniform(-1.0, 1.0, (self.length, d)))
        limits = AffineRows(self.A[order].reshape(self.length, k, d), np.full((self.length, k), -1.0))
        return Round(AffineFunction(-reported, np.zeros(self.length)), (limits,))


@registered
def bundle_auctions(
    horizon: int,
    seed: int = 0,
    bidders: int = 6,
    items: int = 8,
    bundles: int = 4,
    budget: float = 0.8,
    noise: float = 0.2,
    constraints: int = 2,
) -> Problem:
    """A combinatorial auction: bundles are allotted in fractions, and a few of its limits answer each proposal.

    x is the fraction of each bundle that is allotted to the bidder who asked for it, and f is minus the value of that as it is reported in
    the round, where a bundle is worth 1 on average. The g are `constraints` of the auction's limits, every one of which answers once in a
    period: how much more of an item is allotted than there is, how many bundles more than one a bidder gets, or how much more than the
    `budget` a bidder pays, in budgets.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    bidders
        n, who bids. Values: a whole number, 1 or above. Unit: bidders.
    items
        m, what is sold, one of each. Values: a whole number, 1 or above. Unit: items.
    bundles
        How many bundles each bidder bids for. Values: a whole number, 1 or above and below 2 to the power of the
        items. Unit: bundles.
    budget
        What a bidder may pay, as a share of the dearest bundle bid for. Values: above 0. Unit: share.
    noise
        By what share a reported value may be off; 0: values are reported as they are. Values: 0 or above and below
        1. Unit: share.
    constraints
        k, limits that answer a proposal. Values: a whole number, 1 or above. Unit: limits.
    """
    n, m, each = validate.whole("bidders", bidders), validate.whole("items", items), validate.whole("bundles", bundles)
    k = validate.whole("constraints", constraints)
    share, off = validate.positive("budget", budget), validate.nonnegative("noise", noise)
    if each > 2**m - 1:
        raise InputError(f"bundles must be at most {2**m - 1} where there are {m} items, not {each}")
    if off >= 1.0:
        raise InputError(f"noise must be below 1, not {off:g}: a bundle could be worth nothing")
    if k > m + 2 * n:
        raise InputError(f"constraints must be at most {m + 2 * n}, the limits there are, not {k}")
    rng = np.random.default_rng([seed, 1])
    worth, taste = rng.uniform(*WORTH, m), rng.uniform(*TASTE, (n, m))
    holds = np.concatenate([_bundles(rng, m, each) for _ in range(n)])  # (d, m)
    owner = np.repeat(np.eye(n), each, axis=1)  # (n, d)
    value = (holds * (owner.T @ taste) * worth).sum(axis=1) * (1.0 + SYNERGY * (holds.sum(axis=1) - 1.0))
    value /= value.mean()
    money = share * (owner * value).max(axis=1)
    A = np.concatenate([holds.T, owner, owner * value / money[:, None]])
    domain, nothing = domains.Box(0.0, 1.0, dim=n * each), np.zeros(n * each)
    G = max((1.0 + off) * float(np.linalg.norm(value)), float(np.linalg.norm(A, axis=1).max()))
    F = max(1.0, float(A.sum(axis=1).max()) - 1.0)
    known = constants_of(domain, lipschitz=G, bound=F, constraints=k, feasible=nothing, slater=1.0, safe=nothing)
    proposals = Proposals(float(seed), value, A, off, float(k))
    if off == 0.0 and proposals.length <= horizon:  # then the values are the same in every round, and every limit has answered
        best = backends.linear_program(-value, A, np.ones(len(A)), (0.0, 1.0))
        assert best is not None
        known |= {"optimum": best.x, "optimal_cost": -horizon * float(value @ best.x)}
    return Problem(domain, ComputedRounds(proposals), known)


def _bundles(rng: np.random.Generator, items: int, count: int) -> Array:
    """So many different bundles, (count, items): 1 for each item in one."""
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        size = min(items, int(rng.geometric(FURTHER)))
        found[tuple(sorted(rng.choice(items, size, replace=False).tolist()))] = None
    return np.array([np.isin(np.arange(items), bundle) for bundle in found], dtype=float)
