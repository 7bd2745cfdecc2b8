"""Recorded auctions, and what others pace them by: values and the highest bids of the others, heavy-tailed and drifting, from a seed.

What a rule is worth is the value that it wins, over that of the best choice of auctions within the budget in hindsight (a fraction of the
last one included), which pays the others' highest bid and no more, in first-price auctions too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import bridle
from bridle.problems._auctions import AuctionLog

Array: TypeAlias = NDArray[np.float64]

SHARE = 1.0 / 32.0
"""The budget, of all prices."""


class Auctions(NamedTuple):
    """What each is worth, and what the others bid."""

    values: Array
    prices: Array

    @property
    def budget(self) -> float:
        return float(self.prices.sum()) * SHARE

    def best(self) -> float:
        """The value of the best choice within the budget, in hindsight."""
        return AuctionLog(self.values, self.prices).best(self.budget)

    def episodes(self, rounds: int) -> list[Auctions]:
        """The same, cut into equally long ones, each with a budget of its own."""
        starts = range(0, len(self.values), rounds)
        return [Auctions(self.values[i : i + rounds], self.prices[i : i + rounds]) for i in starts]


def _still(rng: np.random.Generator, t: Array) -> Auctions:
    """One distribution."""
    z = rng.standard_normal(len(t))
    return Auctions(np.exp(z), np.exp(0.5 * z + 0.7 * rng.standard_normal(len(t))) * (rng.pareto(2.2, len(t)) + 0.3))


def _daily(rng: np.random.Generator, t: Array) -> Auctions:
    """Seven days, in which prices peak before values do."""
    z, wave = rng.standard_normal(len(t)), 2.0 * np.pi * 7.0 * t
    tail = rng.pareto(1.8, len(t)) + 0.2
    return Auctions(np.exp(0.8 * z) * (1.0 + 0.6 * np.sin(wave)), np.exp(0.4 * z) * tail * (1.0 + 0.5 * np.sin(wave + 1.0)))


def _walk(rng: np.random.Generator, t: Array) -> Auctions:
    """Levels of values and prices that wander."""
    z, places = rng.standard_normal(len(t)), (t * 200).astype(int)
    level = np.cumsum(0.12 * rng.standard_normal((201, 2)), axis=0)[places]
    prices = np.exp(0.5 * z + 0.8 * rng.standard_normal(len(t)) + level[:, 1]) * (rng.pareto(2.5, len(t)) + 0.3)
    return Auctions(np.exp(z + level[:, 0]), prices)


def _jumps(rng: np.random.Generator, t: Array) -> Auctions:
    """Levels that jump five times."""
    z, places = rng.standard_normal(len(t)), (t * 6).astype(int)
    level = rng.normal(0.0, (0.7, 0.5), (7, 2))[places]
    return Auctions(np.exp(0.7 * z + level[:, 0]), np.exp(0.3 * z + level[:, 1]) * (rng.pareto(2.0, len(t)) + 0.25))


def _clicks(rng: np.random.Generator, t: Array) -> Auctions:
    """Chances of a click times what a click is worth, three advertisers; prices that hardly know, one in a hundred enormous."""
    chance = rng.beta(0.4, 40.0, len(t)) * (1.0 + 0.5 * np.sin(6.0 * np.pi * t))
    values = chance * rng.choice([20.0, 60.0, 150.0], len(t), p=[0.6, 0.3, 0.1]) + 1e-6
    return Auctions(values, np.exp(rng.normal(-1.0, 1.1, len(t))) * (1.0 + (rng.random(len(t)) < 0.01) * 20.0 * rng.pareto(1.6, len(t))))


STREAMS: dict[str, Callable[[np.random.Generator, Array], Auctions]] = {
    "still": _still, "daily": _daily, "walk": _walk, "jumps": _jumps, "clicks": _clicks,
}  # fmt: skip


def recorded(kind: str, rounds: int, seed: int) -> Auctions:
    """A stream by its kind."""
    return STREAMS[kind](np.random.default_rng([seed, list(STREAMS).index(kind)]), np.arange(rounds) / rounds)


# --- the pacer ------------------------------------------------------------------------------------------------------------------------


def paced(auctions: Auctions, auction: str, units: float = 1.0, price: float | None = None) -> tuple[float, bridle.Pacer]:
    """The value that a `Pacer` wins, and the pacer at the end; with all money and all values in other units."""
    budget, rounds = auctions.budget * units, len(auctions.values)
    unit = 1e-4 * units * float(auctions.prices.mean())
    pacer = bridle.Pacer(budget, rounds, goal="value", unit=unit, auction=auction, price=price)
    won, first = 0.0, auction == "first"
    for value, others in zip((auctions.values * units).tolist(), (auctions.prices * units).tolist(), strict=True):
        bid = pacer.bid(value)
        if others <= bid and pacer.gate.allows(cost := bid if first else others):
            won += value
            pacer.pay(cost)
        else:
            pacer.pay()
    return won / units, pacer


# --- the others: all knobs and all streams at once ------------------------------------------------------------------------------------

Step: TypeAlias = Callable[[Array, Array, Array], Array]
"""The next price, from the price, what was paid over the even share of the budget, and the sum of the latter less 1 a round."""


def gradient(steps: Array, start: Array) -> Step:
    """Dual gradient descent, its step a part of the starting price."""
    return lambda price, spent, total: np.maximum(price + steps * start * (spent - 1.0), 0.0)


def multiplicative(steps: Array, start: Array) -> Step:
    """Multiplicative dual descent."""
    return lambda price, spent, total: price * np.exp(np.minimum(steps * (spent - 1.0), 3.0))


def pid(proportional: Array, integral: Array, start: Array) -> Step:
    """A controller of the logarithm of the price, by the last error and their sum."""
    return lambda price, spent, total: start * np.exp(np.clip(proportional * (spent - 1.0) + integral * total, -20.0, 20.0))


STARTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
STEPS = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
GAINS = ((1e-3, 1e-4), (1e-2, 1e-4), (1e-2, 1e-3), (1e-2, 1e-2), (1e-1, 1e-3), (1e-1, 1e-2), (1e-1, 1e-1))
"""Starting prices over the ratio of the mean value to the mean price; steps; gains: every pair is tried."""


def tuned(streams: list[Auctions], auction: str) -> dict[str, tuple[float, str]]:
    """What each of the others wins of the best choices of all streams together, with the knobs that are best for that, and these knobs."""
    rows = np.stack([stream.values for stream in streams], axis=1)[:, :, None]
    prices = np.stack([stream.prices for stream in streams], axis=1)[:, :, None]
    best = sum(stream.best() for stream in streams)
    start, knobs = np.meshgrid(STARTS, np.arange(len(STEPS)), indexing="ij")
    start, knobs = start.reshape(1, -1), knobs.reshape(-1)
    steps, gains = np.array(STEPS)[knobs][None], np.array(GAINS)[knobs].T
    found: dict[str, tuple[float, str]] = {}
    ratio = rows.mean(axis=0) / prices.mean(axis=0)
    for name, make in (
        ("dual gradient descent", lambda at: gradient(steps, at)),
        ("multiplicative dual", lambda at: multiplicative(steps, at)),
        ("PID", lambda at: pid(gains[0][None], gains[1][None], at)),
    ):
        won = _won(rows, prices, make(start * ratio), start * ratio, auction == "first").sum(axis=0)
        top = int(won.argmax())
        knob = f"gains {GAINS[knobs[top]]}" if name == "PID" else f"step {STEPS[knobs[top]]:g}"
        found[name] = float(won[top]) / best, f"start {start[0, top]:g}, {knob}"
    return found


def _won(values: Array, prices: Array, step: Step, price: Array, first: bool) -> Array:
    """The value that each knob wins on each stream: bids of value over price, within what is left."""
    rounds = len(values)
    left = prices.sum(axis=0) * SHARE + 0.0 * price
    share, won, total = left / rounds, np.zeros_like(price), np.zeros_like(price)
    with np.errstate(divide="ignore", over="ignore"):
        for value, others in zip(values, prices, strict=True):
            bid = np.minimum(value / price, left)
            wins = others <= bid
            paid = wins * (bid if first else others)
            won, left = won + wins * value, left - paid
            spent = paid / share
            total += spent - 1.0
            price = step(price, spent, total)
    return won
