"""Hard budgets: a gate that cannot be overspent, and a pacer that spreads what is in it over the rounds.

The gate counts whole units (cents by default) and adds up no floats: a budget is rounded down to units, every payment up, and a payment
that does not fit is refused before anything changes. It knows nothing of who spends.

The pacer sees an offer first and decides then: each unit spent costs it mu ("price") on top, and mu follows the spending, as
`bridle.pacing` says. In auctions where the winner pays the second highest bid that is a bid of v / (1 + mu) for profit v - b, and of v / mu
for value v alone.

Guarantee: `pacing_bound`: the budget is never exceeded, whatever comes. For offers drawn independently from one distribution, what the best
    choice of offers within the budget is worth on average is at most `Pacer.certified_loss` more than what the pacer gets, also on average:
    a number that is known while it runs. Before it runs there is a bound for form="descent" and an even plan, (fb bb/rho)(1 + sqrt(T)) for
    values up to fb and spends up to bb. Elsewhere, and for budgets that were changed on the way, no bound is known to us.
Reference: dual descent of Balseiro, Lu, Mirrokni 2020; the proofs are in `bridle.pacing`.

>>> pacer = Pacer(budget=100.0, rounds=1000)
>>> pacer.bid(0.60)  # nothing is known yet: as much of it as a tenth of a unit a round can pay
0.08571428571428572
>>> pacer.pay()  # lost
>>> pacer.price, round(pacer.bid(0.30), 4)
(6.0, 0.0429)
>>> pacer.pay(0.04)  # won, at the second highest bid
>>> pacer.left, round(pacer.price, 2)
(99.96, 3.92)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from math import ceil, floor, inf
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridle import showing, storage, validate
from bridle.core import InputError
from bridle.fact_file import Keeping
from bridle.ops import Array
from bridle.pacing import Asked, DescentPrice, LearnedPrice, Pace, SpendPlan, pacing_bound, planned, weights_of
from bridle.storage import Facts, StrPath

MOST_UNITS = 10**13
"""The largest budget, in units: beyond it a float does not tell one unit from the next."""

CLOSE, RELATIVE = 1e-9, 1e-15
"""Floats are not exact decimals: an amount above a whole number of units by at most CLOSE units and RELATIVE of itself is that number.

So N payments can come to N 1e-9 + 0.01 units more than was counted: less than one unit for the first 900 million.
"""

ANY = sys.float_info.max
"""The most that may be spent or had in a round where nobody said a limit."""

GOALS, FORMS, AUCTIONS = ("profit", "value"), ("learned", "descent"), ("second", "first")


class Account(NamedTuple):
    """Where a gate stands, in units, and the pacer that it belongs to, if any: replaced by one assignment, so that it is never half."""

    budget: int
    spent: int
    pace: Pace | None = None

    @property
    def left(self) -> int:
        return max(self.budget - self.spent, 0)


class Gate:
    """A budget that cannot be exceeded by one unit; amounts are rounded up to whole units, the budget down.

    Threads may share a gate. So that no crash and no second process gives money back, `Gate.open` it on a file. What is made here, or by
    `load`, lives in memory: it knows what was paid before the last `save`, and nothing of who else has loaded the same file.

    Parameters
    ----------
    budget : float
        What may be spent in all, 0 or above, in money.
    unit : float, default 0.01
        The smallest amount of money that is counted, 1e-300 or above.

    Examples
    --------
    >>> gate = Gate(1.00)
    >>> for _ in range(10):
    ...     counted = gate.pay(0.10)  # ten of these floats add up to less than 1, and a hundred of 0.01 to more
    >>> gate.left, gate.allows(0.001), gate.allows(0.0)
    (0.0, False, True)
    """

    _kind: ClassVar = "gate"
    _least: ClassVar[tuple[Any, ...]] = (0.0,)
    """Arguments for one that is about to stand where a file says."""

    def __init__(self, budget: float, unit: float = 0.01) -> None:
        self._unit = validate.positive("unit", unit)
        if self._unit < 1e-300:  # a whole number of which is no float
            raise validate.refused("unit must be at least 1e-300", unit)
        self._many, self._of = Fraction(repr(self._unit)).as_integer_ratio()  # as it is written: 0.01 is a hundredth
        self._account = Account(self._whole(budget), 0)
        self._attach()

    def _attach(self) -> None:
        self._kept = Keeping(self._kind, self.facts)

    @classmethod
    def open(cls, path: StrPath, budget: float | None = None, unit: float | None = None) -> Gate:
        """The gate in a file, or a new one where there is none; this process alone holds it until `close`, or until it ends.

        Every payment is on the disk before `pay` returns: pay first, then spend, and nothing that was paid is ever free again, whenever
        the process dies.

        Use it in a ``with`` statement, or `close` it.

        Parameters
        ----------
        path : str or path
            The file.
        budget : float, optional
            What may be spent in all, in money. Must be given for a new file; where there is one, it must be its.
        unit : float, optional
            The smallest amount that is counted. Default: 0.01; where there is a file, it must be its.

        Examples
        --------
        >>> with Gate.open("march.db", budget=500.0) as gate:
        ...     counted = gate.pay(120.0)
        >>> with Gate.open("march.db") as gate:
        ...     gate.left
        380.0
        """

        wanted = {"unit": unit, "budget": budget}
        return cls._opened(path, wanted, None if budget is None else lambda: cls(budget, 0.01 if unit is None else unit))

    @classmethod
    def _opened(cls, path: StrPath, wanted: Mapping[str, Any], fresh: Callable[[], Self] | None) -> Self:
        """The one in a file, or a new one where there is none; it must have been made with what is `wanted`, where that is not None."""
        held = cls(*cls._least)

        def take(facts: Facts) -> None:
            held._become(facts, storage.named(path))
            found = held._settings()
            for name, value in wanted.items():
                if value is not None and (mine := held._as_kept(name, value)) != found[name]:
                    its, given = validate.show(found[name]), validate.show(mine)
                    raise InputError(
                        f"cannot open {storage.named(path)}: its {name} is {its}, not {given}; leave {name} out to go on with it"
                    )

        held._kept.open(path, None if fresh is None else lambda: fresh().facts(), take)
        return held

    def _settings(self) -> dict[str, object]:
        """With which arguments it was made."""
        return {"unit": self.unit, "budget": self.budget}

    def _as_kept(self, name: str, value: Any) -> object:
        """An argument as this one would have it in its file."""
        return self._money(self._whole(value)) if name == "budget" else value

    def close(self) -> None:
        """Let go of the file that it was opened on, for others to hold. It can still be asked, and changes no more."""
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __repr__(self) -> str:
        figures = {name: getattr(self, name) for name in ("budget", "rounds", "played", "spent", "left", "price") if hasattr(self, name)}
        return showing.call(type(self).__name__, **figures)

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
        """Whether a payment of this amount would be let through; another thread may be faster, so that only `pay` is sure.

        Parameters
        ----------
        amount : float
            The amount, 0 or above, in money.
        """
        return self._count("amount", amount) <= self._account.left

    def pay(self, amount: float) -> float:
        """Count a payment. One above what is left is refused, and nothing changes.

        Of a gate that was opened on a file, it is on the disk when this returns. Where this raises, do not spend: a refused or failed
        payment is not counted; of one that was interrupted, a note on the exception says whether it is.

        Returns what was counted: the amount, rounded up to whole units.

        Parameters
        ----------
        amount : float
            The amount, 0 or above, in money.
        """
        units = self._count("amount", amount)
        counted = self._money(units)
        with self._kept.lock:
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
        before, file = self._account, self._kept.file
        try:
            if file is not None:
                file.check()
                file.behind = True  # until it is written; closing does that where something interrupts what follows
            self._account = account  # whatever interrupts what follows, it is counted: money that may be gone is not given back
            if file is not None:
                self._kept.put()
        except InputError:  # it was not written, and who asked is told so
            self._account = before
            raise
        except BaseException as problem:
            problem.add_note(f"the {what} of {validate.show(amount)} {'is' if self._account is account else 'is not'} counted")
            raise

    def rounded(self, amount: float) -> float:
        """What a payment of this amount counts as.

        Returns whole units, rounded up.

        Parameters
        ----------
        amount : float
            The amount, 0 or above, in money.
        """
        return self._money(self._count("amount", amount))

    def set_budget(self, budget: float) -> None:
        """Change what may be spent in all. What has been spent stays; a budget below that lets nothing more through.

        Parameters
        ----------
        budget : float
            The new budget, 0 or above, in money.
        """
        with self._kept.lock:
            self._commit(self._account._replace(budget=self._whole(budget)), "budget", budget)

    @validate.undisturbed
    def fits(self, amounts: Array) -> NDArray[np.bool_]:
        """Which of these amounts, each by itself, would be let through.

        Returns True where one would be.
        """
        given = validate.array("amounts", amounts)
        return np.asarray(np.ceil(given * self._of / self._many * (1.0 - RELATIVE) - CLOSE) <= self._account.left)

    def save(self, path: StrPath) -> None:
        """Write a copy to a file, atomically, with everything needed to continue. What is paid afterwards is not in it.

        What was opened on a file needs no saving.
        """
        with self._kept.lock:
            self._kept.save(path)

    @classmethod
    def load(cls, path: StrPath) -> Self:
        """What was saved, bit for bit, in memory: whoever else loads the file has its money too.

        `open` gives a file to one holder alone.
        """
        held = cls(*cls._least)
        held._kept.load(path, lambda facts: held._become(facts, storage.named(path)))
        return held

    def facts(self) -> Facts:
        """The whole state, in units, as its file has it."""
        account = self._account
        return {"unit": self._unit, "budget": account.budget, "spent": account.spent}

    def _become(self, facts: Facts, where: str) -> None:
        """Stand where the facts of a file say."""
        with _checking(where):
            found = Gate(0.0, facts["unit"])
            account = Account(validate.whole("budget", facts["budget"], 0), validate.whole("spent", facts["spent"], 0))
            if max(account.budget, account.spent) > MOST_UNITS:
                raise InputError(f"no more than {MOST_UNITS:g} units can be counted")
        self._unit, self._many, self._of, self._account = found._unit, found._many, found._of, account

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles, each of which has the money that is left; a gate on a file has one holder."""
        self._kept.refuse_copies()
        return {name: value for name, value in vars(self).items() if name != "_kept"}

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
            raise validate.refused(f"budget must be at most {MOST_UNITS:g} units of {self._unit:g}", budget)
        return floor(units * (1.0 + RELATIVE) + CLOSE)

    def _money(self, units: int) -> float:
        return units * self._many / self._of  # whole numbers: the nearest float there is


class Pacer(Gate):
    """Spread a hard budget over rounds: bid or choose, then pay, once a round.

    Nothing else has to be told: what money is worth is learned. Told both `value` and `spend`, and no price, the pacer takes them for the
    most that one round can bring and cost, and has form "descent", unless "learned" is asked for: that has a bound in advance, and learns
    more slowly.

    Parameters
    ----------
    budget : float
        What may be spent in all, above 0, in money.
    rounds : int
        How many rounds it is for, 1 or above.
    value : float, optional
        The size of values, above 0, in units of value; it is good for the first rounds.
    spend : float, optional
        The most that one round may cost, above 0, in money.
    plan : str or sequence of float, default "even"
        "even", or weights for equally long parts of the time: [1, 2, 1] plans half of the budget for the middle third.
    goal : {"profit", "value"}, default "profit"
        What bids are for: value less price, or value.
    unit : float, default 0.01
        The smallest amount of money that is counted, above 0.
    price : float, optional
        The price of money to start from, 0 or above: that of the last period, for instance.
    form : {"learned", "descent"}, optional
        How the price is found. Default: by what is told, as above.
    auction : {"second", "first"}, default "second"
        Whether a winner pays the others' highest bid or its own. No loss is certified for "first".

    Examples
    --------
    >>> pacer = Pacer(budget=50.0, rounds=100, value=1.0)
    >>> pacer.choose(values=[1.0, 1.8], spends=[0.2, 0.9])
    0
    >>> pacer.pay(0.2)
    >>> pacer.spent, pacer.left, round(pacer.price, 3)
    (0.2, 49.8, 1.743)
    """

    _kind = "pacer"
    _least = (0.0, 1)

    def __init__(
        self,
        budget: float,
        rounds: int,
        value: float | None = None,
        spend: float | None = None,
        plan: str | Sequence[float] = "even",
        goal: str = "profit",
        unit: float = 0.01,
        price: float | None = None,
        form: str | None = None,
        auction: str = "second",
    ) -> None:
        super().__init__(budget, unit)
        total = validate.whole("rounds", rounds)
        form = form or ("learned" if value is None or spend is None or price is not None else "descent")
        self._told = _Told(
            None if value is None else validate.positive("value", value),
            None if spend is None else validate.positive("spend", spend),
            None if price is None else validate.positive("price", price),
            weights_of(plan, total), goal, form, auction,
        )  # fmt: skip
        validate.one_of("goal", goal, GOALS)
        validate.one_of("form", form, FORMS)
        validate.one_of("auction", auction, AUCTIONS)
        self._arrange()
        self._account = self._account._replace(pace=self._form.spread(self._plan, Pace(total), self.left))

    def _arrange(self) -> None:
        """What follows from what was told."""
        told = self._told
        self._plan, self._asked = SpendPlan(told.plan), Asked()
        self._most, self._largest = ANY if told.spend is None else told.spend, ANY
        if told.form == "learned":
            self._form: DescentPrice | LearnedPrice = LearnedPrice(told.value, told.start)
            return
        for name, given in (("value", told.value), ("spend", told.spend)):
            if given is None:
                raise InputError(f'{name} must be given for form="descent": it is the most that one round can {BRINGS[name]}')
        if told.start is not None:
            raise validate.refused('price is for form="learned": the other one starts from 0', told.start)
        # The most that one round can cost, rounded up to units as every payment is.
        self._largest = cast(float, told.value)
        self._form = DescentPrice(self._largest, self.rounded(self._most))

    @property
    def gate(self) -> Gate:
        """The gate that stops what would exceed the budget: itself."""
        return self

    @classmethod
    def open(  # type: ignore[override]  # it has arguments of its own
        cls,
        path: StrPath,
        budget: float | None = None,
        rounds: int | None = None,
        value: float | None = None,
        spend: float | None = None,
        plan: str | Sequence[float] | None = None,
        goal: str | None = None,
        unit: float | None = None,
        price: float | None = None,
        form: str | None = None,
        auction: str | None = None,
    ) -> Pacer:
        """The pacer in a file, or a new one where there is none; every `pay` is on the disk when it returns, as with `Gate.open`.

        Use it in a ``with`` statement, or `close` it.

        Parameters
        ----------
        path : str or path
            The file.
        budget : float, optional
            As for `Pacer`. It must be given for a new file; where there is one, all arguments must be its, or be left out.
        rounds : int, optional
            As for `Pacer`; must be given for a new file.
        value : float, optional
            As for `Pacer`.
        spend : float, optional
            As for `Pacer`.
        plan : str or sequence of float, optional
            As for `Pacer`.
        goal : {"profit", "value"}, optional
            As for `Pacer`.
        unit : float, optional
            As for `Pacer`.
        price : float, optional
            As for `Pacer`.
        form : {"learned", "descent"}, optional
            As for `Pacer`.
        auction : {"second", "first"}, optional
            As for `Pacer`.

        Examples
        --------
        >>> with Pacer.open("march.db", budget=50.0, rounds=100) as pacer:
        ...     pacer.pay(0.9)
        >>> with Pacer.open("march.db") as pacer:
        ...     pacer.played, pacer.left
        (1, 49.1)
        """
        given: dict[str, Any] = {
            "budget": budget, "rounds": rounds, "value": value, "spend": spend, "plan": plan, "goal": goal, "unit": unit, "price": price,
            "form": form, "auction": auction,
        }  # fmt: skip
        given = {name: each for name, each in given.items() if each is not None}

        def fresh() -> Pacer:
            if rounds is None:
                raise InputError(f"rounds must be given: there is no pacer at {storage.named(path)} yet")
            return cls(**given)

        return cls._opened(path, given, None if budget is None else fresh)

    def _settings(self) -> dict[str, object]:
        return {**super()._settings(), **self._told._asdict(), "price": self._told.start, "rounds": self.rounds}

    def _as_kept(self, name: str, value: Any) -> object:
        return weights_of(value, self.rounds) if name == "plan" else super()._as_kept(name, value)

    @property
    def _pace(self) -> Pace:
        return cast(Pace, self._account.pace)

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
        """What a unit of money costs on top of itself, in units of value, because it will be missed later; 0 until a value is known.

        Give it to the pacer of the next period. Bids lean from it, by a factor of 2 at most, where more or less is left than was planned.
        """
        return self._pace.price

    @property
    def planned(self) -> float:
        """What the plan had for the rounds that are over."""
        return planned(self._plan, self._pace)

    @property
    def bound(self) -> float | None:
        """`pacing_bound`, for form="descent"; None for an uneven plan, a changed budget, or more rounds than it is for: none is known."""
        if not isinstance(self._form, DescentPrice) or len(self._plan.weights) > 1 or not self.budget or not self._as_begun:
            return None
        return pacing_bound(self.budget, self.rounds, self._form.value, self._form.spend)

    @property
    def certified_loss(self) -> float | None:
        """What the best choice of offers may have been worth more so far, on average, were the rounds independent draws: `bridle.pacing`.

        Against choices that spend no more than the budget's even share of these rounds, with every offer seen and bid for as this pacer
        says. None in first-price auctions, for a changed budget, for more rounds than it is for, and where a file does not know it.
        """
        return self._pace.charge if self._as_begun and self._told.auction == "second" else None

    @property
    def _as_begun(self) -> bool:
        """Whether the budget is still what it was, and for rounds that it was for."""
        return not self._pace.edited and self._pace.played <= self._pace.rounds

    def bid(self, value: float) -> float:
        """The bid for something, where the winner pays at most the bid; never more than what is left.

        Where the winner pays the bid itself, profit takes more than a budget to bid for: give what you would bid if money were no matter.

        Parameters
        ----------
        value : float
            What it is worth, 0 or above, in units of value.
        """
        worth, pace, left = self._within("value", value, self._largest), self._pace, self.left
        weight = self._form.quote(self._plan, pace, left, worth) + (self._told.goal == "profit")
        want = min(worth / weight if weight > 0.0 else inf if worth else 0.0, self._most)
        most = self._form.most(pace, left)
        self._asked = Asked(worth, 0.0, worth - weight * most if want > most else 0.0)
        return min(want, most)

    @validate.undisturbed
    def choose(self, values: ArrayLike, spends: ArrayLike) -> int | None:
        """Which offer to take; offers above what is left are passed over.

        Returns the offer's index; None where no offer is worth its price.

        Parameters
        ----------
        values : array_like of shape (m,)
            What each offer is worth, in units of value.
        spends : array_like of shape (m,)
            What each offer costs, 0 or above, in money.
        """
        gain = validate.vector("values", values)
        cost = validate.vector("spends", spends, len(gain))
        if (cost < 0.0).any() or (cost > self._most).any():
            limits = "0 or above" if self._most == ANY else f"between 0 and {self._most:g}, as this pacer was told"
            raise validate.refused(f"spends must be {limits}", spends)
        if (gain > self._largest).any():
            raise validate.refused(f"values must be at most {self._largest:g}, as this pacer was told", values)
        pace, left, largest = self._pace, self.left, float(gain.max(initial=0.0))
        worth, most = gain - self._form.quote(self._plan, pace, left, largest) * cost, self._form.most(pace, left)
        fitting = np.where(self.fits(cost) & ((cost <= most) | (most >= left)), worth, -inf)
        best = int(fitting.argmax())
        had = max(float(fitting[best]), 0.0)
        self._asked = Asked(largest, max(float(worth.max()), 0.0) - had)
        return best if had > 0.0 else None

    def pay(self, amount: float = 0.0) -> None:  # type: ignore[override]  # a gate says what it has counted
        """End the round with this much spent. More than is left, or than one round may cost, is refused, and nothing changes.

        What `Gate.pay` says of files, failures and interrupts holds here too, for the price and the plan as well.

        Parameters
        ----------
        amount : float, default 0.0
            What was spent, 0 or above, in money.
        """
        units = self._count("amount", self._within("amount", amount, self._most))
        with self._kept.lock:
            self._take(units, amount, self._form.after(self._plan, self._pace, self._asked, self.left, self._money(units)))
            self._asked = Asked()

    @property
    def share(self) -> float:
        """What the plan has for the coming round; 0 after the last."""
        return self._form.share(self._plan, self._pace, self.left)

    def set_budget(self, budget: float, rounds: int | None = None) -> None:
        """Change the budget, and how many rounds it is for: the plan is stretched to them, and what is left is spread over the rest.

        Parameters
        ----------
        budget : float
            The new budget, 0 or above, in money.
        rounds : int, optional
            How many rounds in all, those that are over included. Default: as before.
        """
        with self._kept.lock:
            pace = self._pace
            total = pace.rounds if rounds is None else validate.whole("rounds", rounds, max(pace.played, len(self._plan.weights)))
            account = Account(self._whole(budget), self._account.spent)
            pace = self._form.spread(self._plan, pace._replace(rounds=total, planned=self.planned, edited=True), self._money(account.left))
            self._commit(account._replace(pace=pace), "budget", budget)

    def facts(self) -> Facts:
        """The whole state, as its file has it."""
        return {"gate": super().facts(), **self._told._asdict(), **self._pace._asdict()}

    def _become(self, facts: Facts, where: str) -> None:
        """Stand where the facts of a file say."""
        with _checking(where):
            told = {name: facts[name] for name in _Told._fields}
            like = Pacer(0.0, facts["rounds"], price=told.pop("start"), unit=facts["gate"]["unit"], **told)
            charge = None if facts["charge"] is None else validate.number("charge", facts["charge"])
            sizes = {name: validate.nonnegative(name, facts[name]) for name in SIZES}
            pace = Pace(like.rounds, validate.whole("played", facts["played"], 0), charge=charge, edited=bool(facts["edited"]))
            pace = pace._replace(seen=validate.whole("seen", facts["seen"], 0), **sizes)  # type: ignore[arg-type]
        super()._become(facts["gate"], where)
        self._account, self._told = self._account._replace(pace=pace), like._told
        self._arrange()

    def _within(self, name: str, amount: float, most: float) -> float:
        """The amount, if it is between 0 and the most that this pacer was told."""
        if type(amount) is float and 0.0 <= amount <= most:
            return amount
        number = validate.nonnegative(name, amount)
        if number > most:
            raise validate.refused(f"{name} must be at most {most:g}, as this pacer was told", amount)
        return number


class _Told(NamedTuple):
    """What a pacer was told, as its file has it."""

    value: float | None
    spend: float | None
    start: float | None
    plan: list[float]
    goal: str
    form: str
    auction: str


BRINGS = {"value": "bring", "spend": "cost"}
SIZES = ("price", "squares", "planned", "base", "rest", "step", "lowest", "highest", "scale")
"""The numbers of a pace that are 0 or above."""


@contextmanager
def _checking(where: str) -> Iterator[None]:
    """Any error inside means that the file is damaged."""
    try:
        yield
    except MemoryError:  # not the file's fault
        raise
    except Exception as wrong:
        raise InputError(f"cannot load {where}: it is damaged ({validate.show(str(wrong))})") from None
