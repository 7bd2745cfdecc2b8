"""Hard budgets: a gate that cannot be overspent, and a pacer that spreads what is in it over the rounds.

The gate counts whole units (cents by default) and adds up no floats: a budget is rounded down to units, every payment up, and a payment
that does not fit is refused before anything changes. It knows nothing of who spends.

The pacer sees an offer first and decides then. Each unit spent costs it mu ("price") on top, and mu follows the spending:

    take the offer with the largest  f_t(x) - mu b_t(x)   that the gate lets through; none at all is worth 0
    mu <- clip(mu - eps (rho_t - b_t), 0, fb/rho),     eps = fb / (rho bb sqrt(T)),     rho = budget / T

for values f up to fb (`value`) and spends b up to bb (`spend`); rho_t is what the plan has for the round, rho if it is even. In auctions
where the winner pays the second highest bid that rule is a bid of v / (1 + mu) for profit v - b, and of v / mu for value v alone.

Guarantee: `pacing_bound`: for offers drawn independently from one distribution, and an even plan, what the best choice of offers within the
    budget is worth on average is at most (fb bb/rho)(1 + sqrt(T)) more than what the pacer gets. The budget is never exceeded, whatever
    comes. Uneven plans, and budgets that were changed on the way, are experimental: no bound is known to us; the gate holds all the same.
Reference: dual descent of Balseiro, Lu, Mirrokni 2020; the bound is proved here for exactly this update.

Proof. Let rho <= bb (else the budget never binds, mu stays 0, and nothing is lost), f*_t(mu) = max_x f_t(x) - mu b_t(x) and
D(mu) = rho mu + E f*_t(mu). For every mu >= 0, OPT <= T D(mu), because leaving the budget out and charging mu for what exceeds it only adds
to what can be had; and OPT <= T fb. Let tau count the rounds before the first that begins with less than bb left: until then the gate lets
everything through, and f_t(x_t) = f*_t(mu_t) + mu_t b_t. Both mu_t and whether t <= tau are settled before round t, so that
E sum_{t<=tau} f*_t(mu_t) = E sum_{t<=tau} (D(mu_t) - rho mu_t); D is convex, and OPT <= E [tau D(mean of mu_t) + (T - tau) fb]. Together

    OPT - E reward <= E [sum_{t<=tau} mu_t (rho - b_t) + (T - tau) fb].

Descent on mu has  sum (mu_t - m)(rho - b_t) <= M^2/(2 eps) + eps tau bb^2/2 <= M bb sqrt(T)  for every m in [0, M], M = fb/rho. If tau = T
take m = 0. Else more than rho T - bb was spent by then, and m = M gives  sum mu_t (rho - b_t) <= M (rho tau - rho T + bb) + M bb sqrt(T),
where M rho (T - tau) = fb (T - tau). (Amounts are taken as counted, in whole units.)

>>> pacer = Pacer(budget=1.00, rounds=4, value=1.0, spend=1.0)
>>> pacer.bid(0.60)
0.6
>>> pacer.pay(0.40)  # won, at the second highest bid
>>> pacer.left, round(pacer.bid(0.60), 4)
(0.6, 0.4615)
>>> pacer.pay()  # lost
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from math import ceil, floor, inf, sqrt
from os import PathLike
from typing import TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridle import storage, validate
from bridle.core import InputError
from bridle.ops import Array

MOST_UNITS = 10**13
"""The largest budget, in units: beyond it a float does not tell one unit from the next."""

CLOSE, RELATIVE = 1e-9, 1e-15
"""Floats are not exact decimals: an amount above a whole number of units by at most CLOSE units and RELATIVE of itself is that number.

So N payments can come to N 1e-9 + 0.01 units more than was counted: less than one unit for the first 900 million.
"""

GOALS = ("profit", "value")


class GateFacts(TypedDict):
    """A gate as its file has it; budget and spent in units."""

    unit: float
    budget: int
    spent: int


class PacerFacts(TypedDict):
    """A pacer as its file has it."""

    gate: GateFacts
    rounds: int
    played: int
    value: float
    spend: float
    plan: list[float]
    goal: str
    price: float
    planned: float
    base: float
    rest: float
    step: float
    highest: float
    edited: bool


class Gate:
    """A budget that cannot be exceeded by one unit; amounts are rounded up to whole units, the budget down.

    >>> gate = Gate(1.00)
    >>> for _ in range(10):
    ...     counted = gate.pay(0.10)  # ten of these floats add up to less than 1, and a hundred of 0.01 to more
    >>> gate.left, gate.allows(0.001), gate.allows(0.0)
    (0.0, False, True)
    """

    def __init__(self, budget: float, unit: float = 0.01) -> None:
        self._unit = validate.positive("unit", unit)
        if self._unit < 1e-300:  # a whole number of which is no float
            raise InputError(f"unit must be at least 1e-300, not {validate.show(unit)}")
        self._many, self._of = Fraction(repr(self._unit)).as_integer_ratio()  # as it is written: 0.01 is a hundredth
        self._budget, self._spent = self._whole(budget), 0

    @property
    def unit(self) -> float:
        """The smallest amount of money that is counted."""
        return self._unit

    @property
    def budget(self) -> float:
        """What may be spent in all."""
        return self._money(self._budget)

    @property
    def spent(self) -> float:
        """What has been spent, every payment rounded up to units."""
        return self._money(self._spent)

    @property
    def left(self) -> float:
        """What may still be spent: never below 0."""
        return self._money(max(self._budget - self._spent, 0))

    def allows(self, amount: float) -> bool:
        """Whether a payment of this amount would be let through."""
        return self._count("amount", amount) <= max(self._budget - self._spent, 0)

    def pay(self, amount: float) -> float:
        """Count a payment and return what was counted. A payment above what is left is refused, and nothing changes."""
        units = self._count("amount", amount)
        if units > max(self._budget - self._spent, 0):
            raise InputError(f"amount must be at most {self.left:.15g}, which is what is left of the budget, not {validate.show(amount)}")
        self._spent += units
        return self._money(units)

    def rounded(self, amount: float) -> float:
        """What a payment of this amount counts as: whole units, rounded up."""
        return self._money(self._count("amount", amount))

    def set_budget(self, budget: float) -> None:
        """Change what may be spent in all. What has been spent stays; a budget below that lets nothing more through."""
        self._budget = self._whole(budget)

    def fits(self, amounts: Array) -> NDArray[np.bool_]:
        """Which of these amounts, each by itself, would be let through."""
        return np.asarray(
            np.ceil(validate.array("amounts", amounts) * self._of / self._many * (1.0 - RELATIVE) - CLOSE)
            <= max(self._budget - self._spent, 0)
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a file, atomically."""
        _write(path, "gate", self.facts())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Gate:
        """The gate that was saved."""
        return cls._from(cast(GateFacts, _read(path, "gate")), storage.named(path))

    def facts(self) -> GateFacts:
        """The whole state, in units, as it is written to JSON."""
        return {"unit": self._unit, "budget": self._budget, "spent": self._spent}

    @classmethod
    def _from(cls, facts: GateFacts, where: str) -> Gate:
        with _checking(where):
            gate = cls(0.0, facts["unit"])
            gate._budget, gate._spent = validate.whole("budget", facts["budget"], 0), validate.whole("spent", facts["spent"], 0)
            if max(gate._budget, gate._spent) > MOST_UNITS:
                raise InputError(f"no more than {MOST_UNITS:g} units can be counted")
        return gate

    def _count(self, name: str, amount: float) -> int:
        """An amount in units, rounded up."""
        if type(amount) is not float or not 0.0 <= amount < inf:
            amount = validate.nonnegative(name, amount)
        units = amount * self._of / self._many
        return ceil(units * (1.0 - RELATIVE) - CLOSE) if units <= 2 * MOST_UNITS else 2 * MOST_UNITS

    def _whole(self, budget: float) -> int:
        """A budget in units, rounded down."""
        units = validate.nonnegative("budget", budget) * self._of / self._many
        if not units <= MOST_UNITS:
            raise InputError(f"budget must be at most {MOST_UNITS:g} units of {self._unit:g}, not {validate.show(budget)}")
        return floor(units * (1.0 + RELATIVE) + CLOSE)

    def _money(self, units: int) -> float:
        return units * self._many / self._of  # whole numbers: the nearest float there is


class Pacer:
    """Spread a hard budget over `rounds` rounds: bid or choose, then pay; one `pay` a round, of 0 where nothing was spent.

    `value` and `spend` are the most that one round can bring and cost. `goal` is what bids are for: "profit" (value less price) or "value".
    `plan` is "even", or a list of weights for equally long parts of the time (experimental, without a bound): [1, 2, 1] plans half of the
    budget for the middle third.

    >>> pacer = Pacer(budget=50.0, rounds=100, value=2.0, spend=1.0)
    >>> pacer.choose(values=[1.0, 1.8], spends=[0.2, 0.9])
    1
    >>> pacer.pay(0.9)
    >>> pacer.spent, pacer.left, round(pacer.price, 3)
    (0.9, 49.1, 0.16)
    """

    def __init__(
        self,
        budget: float,
        rounds: int,
        value: float,
        spend: float,
        plan: str | Sequence[float] = "even",
        goal: str = "profit",
        unit: float = 0.01,
    ) -> None:
        self.gate = Gate(budget, unit)
        self._rounds, self._played = validate.whole("rounds", rounds), 0
        self._value, self._spend = validate.positive("value", value), validate.positive("spend", spend)
        validate.one_of("goal", goal, GOALS)
        self._goal, self._plan = goal, _plan(plan, self._rounds)
        self._price, self._planned, self._edited = 0.0, 0.0, False
        self._begin()

    @property
    def rounds(self) -> int:
        """How many rounds the budget is for."""
        return self._rounds

    @property
    def played(self) -> int:
        """How many rounds are over."""
        return self._played

    @property
    def price(self) -> float:
        """mu: what a unit of money costs on top of itself, in units of value, because it will be missed later."""
        return self._price

    @property
    def budget(self) -> float:
        """What may be spent in all."""
        return self.gate.budget

    @property
    def spent(self) -> float:
        """What has been spent."""
        return self.gate.spent

    @property
    def left(self) -> float:
        """What may still be spent."""
        return self.gate.left

    @property
    def planned(self) -> float:
        """What the plan had for the rounds that are over."""
        return self._planned

    @property
    def bound(self) -> float | None:
        """`pacing_bound`; None for an uneven plan, a budget that was changed, or more rounds than it is for, where none is known."""
        if self._edited or len(self._plan) > 1 or not self.gate.budget or self._played > self._rounds:
            return None
        return pacing_bound(self.gate.budget, self._rounds, self._value, self._counted)

    def bid(self, value: float) -> float:
        """The bid for something worth `value`, where the winner pays at most the bid; never more than what is left."""
        worth = self._within("value", value, self._value)
        weight = self._price + (self._goal == "profit")
        return min(worth / weight if weight > 0.0 else inf if worth else 0.0, self._spend, self.left)

    def choose(self, values: ArrayLike, spends: ArrayLike) -> int | None:
        """The index of the offer to take, or None if no offer is worth its price; offers above what is left are passed over."""
        gain = validate.vector("values", values)
        cost = validate.vector("spends", spends, len(gain))
        if (cost < 0.0).any() or (cost > self._spend).any():
            raise InputError(f"spends must be between 0 and {self._spend:g}, as this pacer was told, not {validate.show(spends)}")
        if (gain > self._value).any():
            raise InputError(f"values must be at most {self._value:g}, as this pacer was told, not {validate.show(values)}")
        worth = np.where(self.gate.fits(cost), gain - self._price * cost, -inf)
        best = int(worth.argmax())
        return best if worth[best] > 0.0 else None

    def pay(self, amount: float = 0.0) -> None:
        """End the round with this much spent. More than is left, or than one round may cost, is refused, and nothing changes."""
        counted, share = self.gate.pay(self._within("amount", amount, self._spend)), self.share
        self._price = min(max(self._price - self._step * (share - counted), 0.0), self._highest)
        self._planned += share
        self._played += 1

    @property
    def share(self) -> float:
        """What the plan has for the coming round; 0 after the last."""
        if self._played >= self._rounds or self._rest <= 0.0:
            return 0.0
        return self._base * self._weight(self._played * len(self._plan) // self._rounds) / self._rest

    def set_budget(self, budget: float, rounds: int | None = None) -> None:
        """Change the budget, and how many rounds it is for: the plan is stretched to them, and what is left is spread over the rest."""
        total = self._rounds if rounds is None else validate.whole("rounds", rounds, max(self._played, len(self._plan)))
        self.gate.set_budget(budget)
        self._rounds, self._edited = total, True
        self._begin()

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on to a JSON file, atomically."""
        _write(path, "pacer", {"gate": self.gate.facts(), **{name: getattr(self, f"_{name}") for name in SAVED_FIELDS}})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Pacer:
        """The pacer that was saved, bit for bit."""
        where = storage.named(path)
        facts = cast(PacerFacts, _read(path, "pacer"))
        with _checking(where):
            pacer = cls(0.0, facts["rounds"], facts["value"], facts["spend"], facts["plan"], facts["goal"], facts["gate"]["unit"])
            pacer.gate = Gate._from(facts["gate"], where)
            pacer._played = validate.whole("played", facts["played"], 0)
            for name in ("price", "planned", "base", "rest", "step", "highest"):
                setattr(pacer, f"_{name}", validate.nonnegative(name, facts[name]))
            pacer._edited = bool(facts["edited"])
        return pacer

    def _begin(self) -> None:
        """Plan what is left for the rounds that are left."""
        ahead, parts = self._rounds - self._played, range(len(self._plan))
        counts = [_last(p, len(parts), self._rounds) - max(_last(p - 1, len(parts), self._rounds), self._played) for p in parts]
        self._base = self.left
        self._rest = sum(self._weight(p) * max(count, 0) for p, count in zip(parts, counts, strict=True))
        rate = self._base / ahead if ahead else 0.0
        # With nothing left the price does not matter any more, and stays.
        self._highest = self._value / rate if rate > 0.0 else MOST_UNITS
        self._step = self._highest / (self._counted * sqrt(ahead)) if rate > 0.0 else 0.0
        self._price = min(self._price, self._highest)

    @property
    def _counted(self) -> float:
        """The most that one round can cost, rounded up to units as every payment is."""
        return self.gate.rounded(self._spend)

    def _within(self, name: str, amount: float, most: float) -> float:
        """The amount, if it is between 0 and the most that this pacer was told."""
        if type(amount) is float and 0.0 <= amount <= most:
            return amount
        number = validate.nonnegative(name, amount)
        if number > most:
            raise InputError(f"{name} must be at most {most:g}, as this pacer was told, not {validate.show(amount)}")
        return number

    def _weight(self, part: int) -> float:
        """The weight of one round in this part of the plan."""
        parts = len(self._plan)
        return self._plan[part] / (_last(part, parts, self._rounds) - _last(part - 1, parts, self._rounds))


SAVED_FIELDS = ("rounds", "played", "value", "spend", "plan", "goal", "price", "planned", "base", "rest", "step", "highest", "edited")


def pacing_bound(budget: float, rounds: int, value: float, spend: float) -> float:
    """The most that a `Pacer` with an even plan loses, on average, against the best choice of offers: see the module's proof.

    >>> round(pacing_bound(budget=2000.0, rounds=10_000, value=1.0, spend=1.0))
    505
    """
    B, T = validate.positive("budget", budget), validate.whole("rounds", rounds)
    most, cost = validate.positive("value", value), validate.positive("spend", spend)
    return 0.0 if cost * T <= B else min(most * cost * T / B * (1.0 + sqrt(T)), most * T)


def _plan(plan: str | Sequence[float], rounds: int) -> list[float]:
    """The weights of the parts of a plan."""
    if isinstance(plan, str):
        if plan != "even":
            raise validate.unknown("plan", plan, ("even",))
        return [1.0]
    weights = validate.vector("plan", plan)
    if (weights < 0.0).any() or not weights.any():
        raise InputError(f"plan must be weights of 0 or above, not all of them 0, not {validate.show(plan)}")
    if len(weights) > rounds:
        raise InputError(f"plan must have no more parts than there are rounds, {rounds}, not {len(weights)}")
    return [float(weight) for weight in weights / weights.max()]


def _last(part: int, parts: int, rounds: int) -> int:
    """How many rounds there are up to the end of this part, where round t is in part t * parts // rounds."""
    return -(-(part + 1) * rounds // parts)


@contextmanager
def _checking(where: str) -> Iterator[None]:
    """Any error inside means that the file is damaged."""
    try:
        yield
    except Exception as wrong:
        raise InputError(f"cannot load {where}: it is damaged ({validate.show(str(wrong))})") from None


def _write(path: str | PathLike[str], kind: str, facts: Mapping[str, object]) -> None:
    with storage.replacing(path) as file:
        file.write(json.dumps({"library": "bridle", "kind": kind, "schema": 1, **facts}, indent=1).encode())


def _read(path: str | PathLike[str], kind: str) -> dict[str, object]:
    where = storage.named(path)
    try:
        with open(path, "rb") as file:
            facts = json.load(file)
        fine = facts["library"] == "bridle" and facts["kind"] == kind and facts["schema"] == 1
    except OSError as problem:
        raise InputError(f"cannot read {where}: {problem.strerror or problem}") from None
    except (ValueError, KeyError, TypeError):
        fine = False
    if not fine:
        raise InputError(f"cannot read {where}: it does not hold a {kind} that this version of bridle knows")
    return dict(facts)
