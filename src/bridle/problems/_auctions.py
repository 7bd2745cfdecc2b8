"""Auctions that were recorded: what each was worth, what the others bid, and a budget for all of them.

| what | how |
|---|---|
| `AuctionLog` | the record itself, from a file; the best choice in hindsight; a `Pacer` played through it |
| problem `auctions` | the record as a problem for policies: traffic is split between multipliers of the value |

A bid of b wins where the others' highest bid is at most b. The winner pays that ("second" price), or his own bid ("first").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from bridle import domains, validate
from bridle.core import InputError, Round
from bridle.functions import AffineFunction
from bridle.ops import Array
from bridle.problems.base import Problem, constants_of
from bridle.problems.own_tables import OwnTable, is_own_file, read_table
from bridle.problems.recorded import recorded_problem
from bridle.problems.registry import registered
from bridle.storage import StrPath

KINDS = ("second", "first")
"""What the winner pays: the others' highest bid, or his own."""

FINEST = 1e-4
"""In what part of the mean price money should be counted."""


class Bidder(Protocol):
    """Who bids in recorded auctions, as `bridle.Pacer` does; its facts say of which kind they are."""

    @property
    def price(self) -> float: ...
    @property
    def spent(self) -> float: ...
    @property
    def left(self) -> float: ...

    def allows(self, amount: float) -> bool: ...
    def bid(self, value: float) -> float: ...
    def pay(self, amount: float = 0.0) -> None: ...
    def facts(self) -> dict[str, Any]: ...


class Paced(NamedTuple):
    """What a pacer made of a record: the value that it won, what it paid, how many auctions it won, and the best choice's value.

    `share` is value over best: with the same money, and everything known in advance. `prices` is what a unit of money cost after each
    auction, `spent` what had been paid by then.
    """

    value: float
    paid: float
    won: int
    best: float
    prices: Array
    spent: Array

    @property
    def share(self) -> float:
        return self.value / self.best if self.best > 0.0 else 1.0


@dataclass(frozen=True, eq=False)
class AuctionLog:
    """Recorded auctions in the order in which they came: the value of each, and the highest bid of the others.

    >>> log = AuctionLog([4.0, 1.0, 3.0], [2.0, 1.0, 1.0])
    >>> log.best(budget=2.0)                         # the third, and half of the first
    5.0
    >>> import bridle
    >>> log.play(bridle.Pacer(budget=2.0, rounds=log.rounds, goal="value", price=2.0)).won
    1
    """

    values: Array
    prices: Array

    def __post_init__(self) -> None:
        values = validate.vector("values", self.values)
        prices = validate.vector("prices", self.prices, len(values))
        for name, column in (("values", values), ("prices", prices)):
            if (column < 0.0).any():
                at = int(np.argmax(column < 0.0))
                raise InputError(f"{name} must be 0 or above, not {column[at]:g} in auction {at + 1}")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "prices", prices)

    @classmethod
    def read(cls, path: StrPath, argument: str = "path") -> AuctionLog:
        """The record in a file, .csv or .npz, with columns `value` and `price`; a column `time`, if there is one, must not go back."""
        table = read_table(argument, path)
        values, prices = table.need(argument, ("value", "price"))
        _check_order(argument, table)
        try:
            return cls(values, prices)
        except InputError as error:
            raise InputError(f"{argument}: {table.path}: {error}") from None

    @property
    def rounds(self) -> int:
        """How many auctions there are."""
        return len(self.values)

    @property
    def cost(self) -> float:
        """What all of them together would cost at the others' bids."""
        return float(self.prices.sum())

    def best(self, budget: float) -> float:
        """The value of the best choice of auctions within the budget, at the others' bids, a part of the last one included."""
        money, value = validate.nonnegative("budget", budget), float(self.values[self.prices == 0.0].sum())
        paid = self.prices > 0.0
        values, prices = self.values[paid], self.prices[paid]
        order = np.argsort(-values / prices, kind="stable")
        values, prices = values[order], prices[order]
        sums = np.cumsum(prices)
        whole = int(np.searchsorted(sums, money, side="right"))
        value += float(values[:whole].sum())
        if whole == len(values):
            return value
        return value + float(values[whole]) * (money - (float(sums[whole - 1]) if whole else 0.0)) / float(prices[whole])

    @property
    def unit(self) -> float:
        """Money to count in that is fine enough for these prices: for ``bridle.Pacer(..., unit=log.unit)``."""
        return FINEST * self.cost / self.rounds if self.cost > 0.0 else FINEST

    def play(self, pacer: Bidder) -> Paced:
        """Let a pacer bid in every auction, first- or second-price as it was made for; who wins at more than is left does not buy."""
        first, won, value = pacer.facts()["auction"] == "first", 0, 0.0
        before, budget, prices, spent = pacer.spent, pacer.left, np.empty(self.rounds), np.empty(self.rounds)
        for t, (worth, others) in enumerate(zip(self.values.tolist(), self.prices.tolist(), strict=True)):
            bid = pacer.bid(worth)
            price = bid if first else others
            if others <= bid and bid > 0.0 and pacer.allows(price):
                won, value = won + 1, value + worth
                pacer.pay(price)
            else:
                pacer.pay()
            prices[t], spent[t] = pacer.price, pacer.spent
        return Paced(value, pacer.spent - before, won, self.best(budget), prices, spent)

    def multipliers(self, levels: int) -> Array:
        """Multipliers of the value, from 0 on, such that bids with each win about equally many auctions more than with the one before."""
        steps = validate.whole("levels", levels, 2)
        ratios = np.sort(self.prices[self.values > 0.0] / self.values[self.values > 0.0])
        if not len(ratios):
            raise InputError("values must be above 0 in some auction, and are 0 in all")
        places = np.ceil(np.arange(1, steps) * len(ratios) / (steps - 1)).astype(int) - 1
        # The next float up wins also where value times ratio is rounded to just below the price.
        return np.concatenate([[0.0], np.nextafter(ratios[places], np.inf)])


@registered
def auctions(
    horizon: int, seed: int = 0, data: str | None = None, share: float = 0.1, auction: str = "second", levels: int = 16
) -> Problem:
    """Pacing of a budget over auctions that were recorded, given as a file.

    x is a probability for each multiplier of the value (how much of the traffic is bid on with it; the first one bids nothing), and f is
    minus the value that is won in an auction. g is what that costs, less an auction's part of the budget, which is `share` of all prices.

    Parameters
    ----------
    horizon
        T, how many rounds. Values: a whole number, 1 or above. Unit: rounds.
    seed
        The seed of the instance and of its stream. Values: a whole number, 0 or above.
    data
        The recorded auctions. Default: an error: there are no auctions to play. Values: a .csv or .npz with columns
        value and price.
    share
        What may be spent, as a share of what all auctions would cost together. Values: above 0. Unit: share.
    auction
        What the winner pays. Values: second (the others' highest bid) or first (its own).
    levels
        How many multipliers of the value there are, that of no bid included. Values: a whole number, 2 or above.
        Unit: multipliers.
    """
    if data is None or not is_own_file(data):
        raise validate.refused("data must be a file of recorded auctions, .csv or .npz, with columns value and price", data)
    log = AuctionLog.read(data, "data")
    validate.one_of("auction", auction, KINDS)
    part = validate.positive("share", share)
    for name, column in (("value", log.values), ("price", log.prices)):
        if not column.any():
            raise InputError(f"data: {data}: {name} must be above 0 in some auction")
    rate, bids = part * log.cost / log.rounds, log.values[:, None] * log.multipliers(levels)
    wins = (log.prices[:, None] <= bids) & (bids > 0.0)
    gained = np.where(wins, log.values[:, None], 0.0)
    paid = np.where(wins, bids if auction == "first" else log.prices[:, None], 0.0)
    domain = domains.Simplex(bids.shape[1])
    stream = Round(AffineFunction(-gained, np.zeros(log.rounds)), (AffineFunction(paid, np.full(log.rounds, -rate)),))
    steepest = max(float(np.linalg.norm(rows, axis=1).max()) for rows in (gained, paid))
    nothing = np.eye(bids.shape[1])[0]
    constants = constants_of(
        domain, lipschitz=steepest, bound=max(rate, float(paid.max()) - rate), feasible=nothing, slater=rate, safe=nothing
    )
    return recorded_problem(f"auctions on {data}", domain, stream, constants, horizon, seed)


def _check_order(argument: str, table: OwnTable) -> None:
    """Refuse a record whose times go back."""
    for name, fields in table.times.items():
        try:
            times: list[float] | list[str] = [float(field) for field in fields]
        except ValueError:
            times = fields
        for i in range(1, len(times)):
            if times[i] < times[i - 1]:  # type: ignore[operator]
                raise InputError(f"{argument}: {table.path}: {name} must not go back, as from {times[i - 1]} to {times[i]} in row {i + 1}")
