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

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from math import ceil, floor, inf, sqrt
from os import PathLike
from typing import Any, NamedTuple, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridle import storage, validate
from bridle.core import InputError
from bridle.journal import Held, Keeping
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


class Pace(NamedTuple):
    """Where a pacer stands: what changes every round, and what a new budget changes."""

    rounds: int
    played: int
    price: float
    planned: float
    base: float
    rest: float
    step: float
    highest: float
    edited: bool


class Account(NamedTuple):
    """Where a gate stands, in units, and the pacer that it belongs to, if any: replaced by one assignment, so that it is never half."""

    budget: int
    spent: int
    pace: Pace | None = None

    @property
    def left(self) -> int:
        return max(self.budget - self.spent, 0)


class Gate(Held):
    """A budget that cannot be exceeded by one unit; amounts are rounded up to whole units, the budget down.

    Threads may share a gate. So that no crash and no second process gives money back, `Gate.open` it on a file. What is made here, or by
    `load`, lives in memory: it knows what was paid before the last `save`, and nothing of who else has loaded the same file.

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
        self._account = Account(self._whole(budget), 0)
        self._attach()

    def _attach(self) -> None:
        self._owner = self._kept = Keeping("gate", ("spent",), self._facts)  # a pacer is the owner of its gate

    @classmethod
    def open(cls, path: str | PathLike[str], budget: float | None = None, unit: float | None = None) -> Gate:
        """The gate in a file, or a new one where there is none; this process alone holds it until `close`, or until it ends.

        Every payment is on the disk before `pay` returns: pay first, then spend, and nothing that was paid is ever free again, whenever the
        process dies. A second holder is refused. `budget` and `unit` (0.01) are those of a new file; where there is one, they must be its.

        >>> with Gate.open("march.json", budget=500.0) as gate:
        ...     counted = gate.pay(120.0)
        >>> with Gate.open("march.json") as gate:
        ...     gate.left
        380.0
        """

        def fresh() -> GateFacts:
            return cls(cast(float, budget), 0.01 if unit is None else unit).facts()

        gate = cls(0.0)

        def take(facts: dict[str, Any]) -> None:
            gate._become(facts, storage.named(path))
            wanted = None if budget is None else gate._money(gate._whole(budget))
            _agree(path, {"unit": unit, "budget": wanted}, {"unit": gate.unit, "budget": gate.budget})

        gate._kept.open(path, None if budget is None else fresh, take)
        return gate

    @property
    def unit(self) -> float:
        """The smallest amount of money that is counted."""
        return self._unit

    @property
    def budget(self) -> float:
        """What may be spent in all."""
        return self._money(self._account.budget)

    @property
    def spent(self) -> float:
        """What has been spent, every payment rounded up to units."""
        return self._money(self._account.spent)

    @property
    def left(self) -> float:
        """What may still be spent: never below 0."""
        return self._money(self._account.left)

    def allows(self, amount: float) -> bool:
        """Whether a payment of this amount would be let through; another thread may be faster, so that only `pay` is sure."""
        return self._count("amount", amount) <= self._account.left

    def pay(self, amount: float) -> float:
        """Count a payment and return what was counted. A payment above what is left is refused, and nothing changes.

        Of a gate that was opened on a file it is on the disk when this returns. Where this raises, do not spend: a refused or failed
        payment is not counted; of one that was interrupted, a note on the exception says whether it is.
        """
        units = self._count("amount", amount)
        counted = self._money(units)
        with self._owner.lock:
            self._take(units, amount, self._account.pace)
            return counted

    def _take(self, units: int, amount: object, pace: Pace | None) -> None:
        """Count so many units, with the pace after them; to be called by who has the lock."""
        account = self._account
        if units > account.left:
            raise InputError(
                f"amount must be at most {self._money(account.left):.15g}, which is what is left of the budget, not {validate.show(amount)}"
            )
        self._commit(Account(account.budget, account.spent + units, pace), "payment", amount)

    def _commit(self, account: Account, what: str, amount: object) -> None:
        """Stand here from now on; on the disk first, where there is a file. To be called by who has the lock."""
        before, journal = self._account, self._owner.journal
        try:
            if journal is not None:
                journal.check()
            self._account = account  # whatever interrupts what follows, it is counted: money that may be gone is not given back
            if journal is not None:
                self._owner.put()
        except InputError:  # it was not written, and who asked is told so
            self._account = before
            raise
        except BaseException as problem:
            problem.add_note(f"the {what} of {validate.show(amount)} {'is' if self._account is account else 'is not'} counted")
            raise

    def rounded(self, amount: float) -> float:
        """What a payment of this amount counts as: whole units, rounded up."""
        return self._money(self._count("amount", amount))

    def set_budget(self, budget: float) -> None:
        """Change what may be spent in all. What has been spent stays; a budget below that lets nothing more through."""
        with self._owner.lock:
            self._commit(self._account._replace(budget=self._whole(budget)), "budget", budget)

    @validate.undisturbed
    def fits(self, amounts: Array) -> NDArray[np.bool_]:
        """Which of these amounts, each by itself, would be let through."""
        given = validate.array("amounts", amounts)
        return np.asarray(np.ceil(given * self._of / self._many * (1.0 - RELATIVE) - CLOSE) <= self._account.left)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a copy to a file, atomically. A file that somebody holds, or has written since this gate was there, is refused.

        What is paid afterwards is not in it. A gate that was opened on a file needs no saving.
        """
        with self._owner.lock:
            self._kept.save(path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Gate:
        """The gate that was saved, in memory: whoever else loads the file has its money too, and `open` gives it to one holder alone.

        A file that is held is refused.
        """
        gate = cls(0.0)
        gate._kept.load(path, lambda facts: gate._become(facts, storage.named(path)))
        return gate

    def facts(self) -> GateFacts:
        """The whole state, in units, as it is written to JSON."""
        account = self._account
        return {"unit": self._unit, "budget": account.budget, "spent": account.spent}

    def _facts(self) -> dict[str, Any]:
        return {**self.facts()}

    def _become(self, facts: Mapping[str, Any], where: str, pace: Pace | None = None) -> None:
        """Stand where the facts of a file say."""
        with _checking(where):
            found = Gate(0.0, facts["unit"])
            account = Account(validate.whole("budget", facts["budget"], 0), validate.whole("spent", facts["spent"], 0), pace)
            if max(account.budget, account.spent) > MOST_UNITS:
                raise InputError(f"no more than {MOST_UNITS:g} units can be counted")
        self._unit, self._many, self._of, self._account = found._unit, found._many, found._of, account

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles, each of which has the money that is left; a gate on a file has one holder."""
        self._kept.refuse_copies()
        return {name: value for name, value in vars(self).items() if name not in ("_kept", "_owner")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._attach()

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


class Pacer(Held):
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
        total = validate.whole("rounds", rounds)
        self._value, self._spend = validate.positive("value", value), validate.positive("spend", spend)
        validate.one_of("goal", goal, GOALS)
        self._goal, self._plan = goal, _plan(plan, total)
        pace = self._spread(Pace(total, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False), self.gate.left)
        self.gate._account = self.gate._account._replace(pace=pace)
        self._attach()

    def _attach(self) -> None:
        self._kept = self.gate._owner = Keeping("pacer", ("gate.spent", "played", "price", "planned"), self.facts)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        budget: float | None = None,
        rounds: int | None = None,
        value: float | None = None,
        spend: float | None = None,
        plan: str | Sequence[float] | None = None,
        goal: str | None = None,
        unit: float | None = None,
    ) -> Pacer:
        """The pacer in a file, or a new one where there is none: `Gate.open` says what that promises; every `pay` is on the disk.

        The arguments are those of a new pacer; where there is a file, they must be its, or be left out.

        >>> with Pacer.open("march.json", budget=50.0, rounds=100, value=2.0, spend=1.0) as pacer:
        ...     pacer.pay(0.9)
        >>> with Pacer.open("march.json") as pacer:
        ...     pacer.played, pacer.left
        (1, 49.1)
        """
        given = {"budget": budget, "rounds": rounds, "value": value, "spend": spend, "plan": plan, "goal": goal, "unit": unit}
        given = {name: each for name, each in given.items() if each is not None}
        pacer = cls(0.0, 1, 1.0, 1.0)

        def fresh() -> dict[str, Any]:
            missing = [name for name in ("rounds", "value", "spend") if name not in given]
            if missing:
                raise InputError(f"{missing[0]} must be given: there is no pacer at {storage.named(path)} yet")
            return cls(**given).facts()  # type: ignore[arg-type]

        def take(facts: dict[str, Any]) -> None:
            pacer._become(facts, storage.named(path))
            own, gate = {**facts, "unit": pacer.gate.unit, "budget": pacer.budget}, pacer.gate
            same = given | ({} if budget is None else {"budget": gate._money(gate._whole(budget))})
            _agree(path, same | ({} if plan is None else {"plan": _plan(plan, pacer.rounds)}), own)

        pacer._kept.open(path, None if budget is None else fresh, take)
        return pacer

    @property
    def _pace(self) -> Pace:
        return cast(Pace, self.gate._account.pace)

    @property
    def rounds(self) -> int:
        """How many rounds the budget is for."""
        return self._pace.rounds

    @property
    def played(self) -> int:
        """How many rounds are over."""
        return self._pace.played

    @property
    def price(self) -> float:
        """mu: what a unit of money costs on top of itself, in units of value, because it will be missed later."""
        return self._pace.price

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
        return self._pace.planned

    @property
    def bound(self) -> float | None:
        """`pacing_bound`; None for an uneven plan, a budget that was changed, or more rounds than it is for, where none is known."""
        pace = self._pace
        if pace.edited or len(self._plan) > 1 or not self.gate.budget or pace.played > pace.rounds:
            return None
        return pacing_bound(self.gate.budget, pace.rounds, self._value, self._counted)

    def bid(self, value: float) -> float:
        """The bid for something worth `value`, where the winner pays at most the bid; never more than what is left."""
        worth = self._within("value", value, self._value)
        weight = self.price + (self._goal == "profit")
        return min(worth / weight if weight > 0.0 else inf if worth else 0.0, self._spend, self.left)

    @validate.undisturbed
    def choose(self, values: ArrayLike, spends: ArrayLike) -> int | None:
        """The index of the offer to take, or None if no offer is worth its price; offers above what is left are passed over."""
        gain = validate.vector("values", values)
        cost = validate.vector("spends", spends, len(gain))
        if (cost < 0.0).any() or (cost > self._spend).any():
            raise InputError(f"spends must be between 0 and {self._spend:g}, as this pacer was told, not {validate.show(spends)}")
        if (gain > self._value).any():
            raise InputError(f"values must be at most {self._value:g}, as this pacer was told, not {validate.show(values)}")
        worth = np.where(self.gate.fits(cost), gain - self.price * cost, -inf)
        best = int(worth.argmax())
        return best if worth[best] > 0.0 else None

    def pay(self, amount: float = 0.0) -> None:
        """End the round with this much spent. More than is left, or than one round may cost, is refused, and nothing changes.

        What `Gate.pay` says of files, failures and interrupts is so here too, for the price and the plan as well.
        """
        gate, units = self.gate, self.gate._count("amount", self._within("amount", amount, self._spend))
        with gate._owner.lock:
            pace = self._pace
            counted, share = gate._money(units), self._share(pace)
            rounds, played, price, planned, base, rest, step, highest, edited = pace
            price = min(max(price - step * (share - counted), 0.0), highest)
            gate._take(units, amount, Pace(rounds, played + 1, price, planned + share, base, rest, step, highest, edited))

    @property
    def share(self) -> float:
        """What the plan has for the coming round; 0 after the last."""
        return self._share(self._pace)

    def _share(self, pace: Pace) -> float:
        if pace.played >= pace.rounds or pace.rest <= 0.0:
            return 0.0
        return pace.base * self._weight(pace.played * len(self._plan) // pace.rounds, pace.rounds) / pace.rest

    def set_budget(self, budget: float, rounds: int | None = None) -> None:
        """Change the budget, and how many rounds it is for: the plan is stretched to them, and what is left is spread over the rest."""
        gate = self.gate
        with gate._owner.lock:
            pace = self._pace
            total = pace.rounds if rounds is None else validate.whole("rounds", rounds, max(pace.played, len(self._plan)))
            account = Account(gate._whole(budget), gate._account.spent)
            pace = self._spread(pace._replace(rounds=total, edited=True), gate._money(account.left))
            gate._commit(account._replace(pace=pace), "budget", budget)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a copy, with everything needed to go on, to a JSON file, atomically; see `Gate.save`."""
        with self._kept.lock:
            self._kept.save(path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Pacer:
        """The pacer that was saved, bit for bit, in memory; see `Gate.load`."""
        pacer = cls(0.0, 1, 1.0, 1.0)
        pacer._kept.load(path, lambda facts: pacer._become(facts, storage.named(path)))
        return pacer

    def facts(self) -> dict[str, Any]:
        """The whole state, as it is written to JSON."""
        pace = self._pace._asdict()
        own: dict[str, Any] = {"value": self._value, "spend": self._spend, "plan": self._plan, "goal": self._goal}
        return {"gate": self.gate.facts(), **{name: (pace | own)[name] for name in SAVED_FIELDS}}

    def _become(self, facts: Mapping[str, Any], where: str) -> None:
        """Stand where the facts of a file say."""
        with _checking(where):
            like = Pacer(0.0, facts["rounds"], facts["value"], facts["spend"], facts["plan"], facts["goal"], facts["gate"]["unit"])
            numbers = {name: validate.nonnegative(name, facts[name]) for name in ("price", "planned", "base", "rest", "step", "highest")}
            pace = Pace(like.rounds, validate.whole("played", facts["played"], 0), **numbers, edited=bool(facts["edited"]))
        self.gate._become(facts["gate"], where, pace)
        self._value, self._spend, self._plan, self._goal = like._value, like._spend, like._plan, like._goal

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: see `Gate`."""
        self._kept.refuse_copies()
        return {name: value for name, value in vars(self).items() if name != "_kept"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._attach()

    def _spread(self, pace: Pace, left: float) -> Pace:
        """Plan what is left for the rounds that are left."""
        ahead, parts = pace.rounds - pace.played, range(len(self._plan))
        counts = [_last(p, len(parts), pace.rounds) - max(_last(p - 1, len(parts), pace.rounds), pace.played) for p in parts]
        rest = sum(self._weight(p, pace.rounds) * max(count, 0) for p, count in zip(parts, counts, strict=True))
        rate = left / ahead if ahead else 0.0
        # With nothing left the price does not matter any more, and stays.
        highest = self._value / rate if rate > 0.0 else MOST_UNITS
        step = highest / (self._counted * sqrt(ahead)) if rate > 0.0 else 0.0
        return pace._replace(base=left, rest=rest, highest=highest, step=step, price=min(pace.price, highest))

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

    def _weight(self, part: int, rounds: int) -> float:
        """The weight of one round in this part of the plan."""
        parts = len(self._plan)
        return self._plan[part] / (_last(part, parts, rounds) - _last(part - 1, parts, rounds))


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


def _agree(path: str | PathLike[str], given: Mapping[str, object], found: Mapping[str, object]) -> None:
    """Refuse to open a file that says something else than the caller."""
    for name, wanted in given.items():
        if wanted is not None and wanted != found[name]:
            its, mine = validate.show(found[name]), validate.show(wanted)
            raise InputError(f"cannot open {storage.named(path)}: its {name} is {its}, not {mine}; leave {name} out to go on with it")


@contextmanager
def _checking(where: str) -> Iterator[None]:
    """Any error inside means that the file is damaged."""
    try:
        yield
    except MemoryError:  # not the file's fault
        raise
    except Exception as wrong:
        raise InputError(f"cannot load {where}: it is damaged ({validate.show(str(wrong))})") from None
