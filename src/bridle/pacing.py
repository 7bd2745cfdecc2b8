"""What money costs while a budget lasts: how the price mu of a `bridle.Pacer` follows the spending. Numbers only: no files, no locks.

Each round takes the offer with the largest  f_t(x) - mu_t b_t(x)  among those that fit, none at all being worth 0. Two forms of the price:

`LearnedPrice`, which is told nothing. With v the mean of the first 20 values, rho_t = money left / rounds ahead (times the plan's weight),
rho what that was in the beginning, and b_t what was spent,

    mu_t = m_t sqrt(rho / rho_t), between m_t/2 and 2 m_t
    m_2 = v / rho,      m_{t+1} = m_t (1 + c g_t / sqrt(1 + g_2^2 + ... + g_t^2)),      g_t = b_t / rho_t - 1,      c = 1/4

so that at first a usual offer is worth one round's share of the money. No factor is outside (1 - c, 1 + c), however large a payment is,
and none depends on the units of value or of money. A round that spent less because the money did not suffice does not lower the price,
so that it stays where it was once the money is out. A price that is given, m_1, is trusted as if g had squares of 300 behind it: without
that the first steps, the largest, forget it within a few rounds, and even the best price of the period itself is hardly a better start
than v / rho.

`DescentPrice`, which is told the largest value fb and the largest spend bb of a round:

    mu_1 = 0,      mu_{t+1} = clip(mu_t - eps (rho_t - b_t), 0, fb/rho),      eps = fb / (rho bb sqrt(T)),      rho = budget / T

with rho_t = rho if the plan is even. Its prices are those of the worst case, which is rarely what happens.

Guarantee: for offers drawn independently from one distribution, let OPT be what the best choice of offers within a budget of rho a round is
    worth on average over the rounds whose price was known before they came (with `LearnedPrice` all but the first).

    Observed, for every rule whose price is known before the round, so for both:   OPT - E reward <= E charge,
        charge = sum of mu_t (rho - b_t) + sum over rounds in which money did not suffice of what it held back, f - mu b of what was
        wanted less f - mu b of what was taken. It is a number that the pacer has (`Pacer.certified_loss`).
    In advance, for `DescentPrice` with an even plan:   OPT - E reward <= (fb bb/rho)(1 + sqrt(T))   (`pacing_bound`).
Reference: dual descent of Balseiro, Lu, Mirrokni 2020; steps of the size of AdaGrad's on the logarithm of the price; both proofs are below.

Proof. Let f*_t(mu) = max_x f_t(x) - mu b_t(x), whatever money is left, and D(mu) = rho mu + E f*_t(mu). Leaving the budget out and
charging mu for what exceeds it only adds to what can be had: OPT <= T D(mu) for every mu >= 0, and so OPT <= E sum D(mu_t). A price that is
known before round t is independent of that round's offers, so E D(mu_t) = E [rho mu_t + f*_t(mu_t)]. Where the money does not hold an
offer back, f*_t(mu_t) = f_t(x_t) - mu_t b_t; where it does, that and what was held back. Sum up: the first claim.

For `DescentPrice` let rho <= bb (else the budget never binds, mu stays 0, and nothing is lost), and let tau count the rounds before the
first that begins with less than bb left: until then nothing is held back. OPT <= E [tau D(mean of mu_t) + (T - tau) fb] because D is
convex and OPT <= T fb, and as above

    OPT - E reward <= E [sum_{t<=tau} mu_t (rho - b_t) + (T - tau) fb].

Descent on mu has  sum (mu_t - m)(rho - b_t) <= M^2/(2 eps) + eps tau bb^2/2 <= M bb sqrt(T)  for every m in [0, M], M = fb/rho. If tau = T
take m = 0. Else more than rho T - bb was spent by then, and m = M gives  sum mu_t (rho - b_t) <= M (rho tau - rho T + bb) + M bb sqrt(T),
where M rho (T - tau) = fb (T - tau). (Amounts are taken as counted, in whole units.)

>>> plan = SpendPlan([1.0])
>>> pace = LearnedPrice().spread(plan, Pace(rounds=100), left=50.0)
>>> pace = LearnedPrice().after(plan, pace, Asked(worth=2.0), left=50.0, paid=0.0)
>>> pace.price  # a value of 2 for half a unit of money a round
4.0
>>> pace = LearnedPrice().after(plan, pace, Asked(worth=2.0), left=50.0, paid=2.0)  # four times the share
>>> round(pace.price, 3)
4.947
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from bridle import validate
from bridle.core import InputError

STEP = 0.25
"""c: chosen among 0.05 to 0.9 on streams that the figures of `benchmarks/pacing.py` leave out; 0.15 to 0.5 are within 1 percent of it."""

VALUES = 20
"""How many values make the first price."""

TRUST = 300.0
"""The squares that stand behind a price that is given, or that a new budget finds: its steps begin at c / sqrt(300), 1.4 percent."""

PULL = 4.0
"""How far the money that is left may be from the plan before the price leans no further."""

RANGE = 1e6
"""A price stays within this factor of its start: from next to nothing, or from far beyond, no factors lead back in time."""

LARGEST, FARTHEST = 1e13, 1e150
"""The largest ratio of a payment to its share, and of value to money, that is reckoned with: what follows stays finite."""


class SpendPlan(NamedTuple):
    """The weights of equally long parts of the time: round t is in part t * parts // rounds."""

    weights: Sequence[float]

    def last(self, part: int, rounds: int) -> int:
        """How many rounds there are up to the end of this part."""
        return -(-(part + 1) * rounds // len(self.weights))

    def weight(self, pace: Pace) -> float:
        """The weight of the coming round."""
        return self._each(pace.played * len(self.weights) // pace.rounds, pace.rounds)

    def ahead(self, pace: Pace) -> float:
        """The weight of all rounds that are left."""
        rounds, played = pace.rounds, pace.played
        if len(self.weights) == 1:
            return self._each(0, rounds) * max(rounds - played, 0)
        counts = (self.last(p, rounds) - max(self.last(p - 1, rounds), played) for p in range(len(self.weights)))
        return sum(self._each(p, rounds) * max(count, 0) for p, count in enumerate(counts))

    def _each(self, part: int, rounds: int) -> float:
        return self.weights[part] / (self.last(part, rounds) - self.last(part - 1, rounds))


class Pace(NamedTuple):
    """Where a pacer stands: what changes every round, and what a new budget changes.

    `base` was left, `rest` the weight of the rounds ahead and `planned` what the plan had had, when the budget was last set. `charge` is
    None where it is not known. `step` belongs to `DescentPrice`, and `squares`, `scale` (the mean of `seen` values) and `lowest` to
    `LearnedPrice`.
    """

    rounds: int
    played: int = 0
    price: float = 0.0
    charge: float | None = 0.0
    squares: float = 0.0
    planned: float = 0.0
    base: float = 0.0
    rest: float = 0.0
    step: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0
    scale: float = 0.0
    seen: int = 0
    edited: bool = False


class Asked(NamedTuple):
    """What was offered in a round: the largest value, and how much of f - mu b the money held back, in any case or if nothing is spent."""

    worth: float = 0.0
    missed: float = 0.0
    missed_if_lost: float = 0.0

    def held_back(self, paid: float) -> float:
        """What the money held back in a round that spent so much."""
        return self.missed + (self.missed_if_lost if paid == 0.0 else 0.0)


class DescentPrice(NamedTuple):
    """Gradient descent on the dual, for values up to `value` and spends up to `spend`."""

    value: float
    spend: float

    def spread(self, plan: SpendPlan, pace: Pace, left: float) -> Pace:
        """Plan what is left for the rounds that are left."""
        pace, ahead = _spread(plan, pace, left), pace.rounds - pace.played
        if left <= 0.0 or ahead <= 0:  # the price does not matter any more, and stays
            return pace._replace(highest=LARGEST, step=0.0)
        highest = self.value / (left / ahead)
        return pace._replace(highest=highest, step=highest / (self.spend * sqrt(ahead)), price=min(pace.price, highest))

    def share(self, plan: SpendPlan, pace: Pace, left: float) -> float:
        """What the plan has for the coming round: of what there was when the budget was set."""
        return pace.base * plan.weight(pace) / pace.rest if pace.played < pace.rounds and pace.rest > 0.0 else 0.0

    def quote(self, plan: SpendPlan, pace: Pace, left: float, worth: float) -> float:
        """The price to decide by."""
        return pace.price

    def most(self, pace: Pace, left: float) -> float:
        """The most to spend in the coming round."""
        return left

    def after(self, plan: SpendPlan, pace: Pace, asked: Asked, left: float, paid: float) -> Pace:
        """The pace after a round that began with so much left."""
        price = min(max(pace.price - pace.step * (self.share(plan, pace, left) - paid), 0.0), pace.highest)
        return pace._replace(played=pace.played + 1, price=price, charge=_charge(pace, pace.price, asked, paid))


class LearnedPrice(NamedTuple):
    """The price in factors; `value` is the size of values and `start` the first price, where they are known."""

    value: float | None = None
    start: float | None = None

    def spread(self, plan: SpendPlan, pace: Pace, left: float) -> Pace:
        """Plan what is left for the rounds that are left; the price that there is stays, and is trusted as one that is given."""
        pace = _spread(plan, pace, left)
        if pace.edited:
            return pace._replace(squares=min(pace.squares, TRUST)) if pace.price > 0.0 else self._begin(pace, left)
        if self.value is not None:
            pace = pace._replace(scale=self.value, seen=VALUES)
        if self.start is not None:
            pace = pace._replace(price=self.start, lowest=self.start / RANGE, highest=self.start * RANGE, squares=TRUST)
        return self._begin(pace, left)

    def share(self, plan: SpendPlan, pace: Pace, left: float) -> float:
        """What the plan has for the coming round: of what is left now."""
        if pace.played >= pace.rounds:
            return 0.0
        if len(plan.weights) == 1:
            return left / (pace.rounds - pace.played)
        ahead = plan.ahead(pace)
        return left * plan.weight(pace) / ahead if ahead > 0.0 else 0.0

    def quote(self, plan: SpendPlan, pace: Pace, left: float, worth: float) -> float:
        """The price to decide by: higher where less is left than was planned, and lower where more is.

        Before there is one it is that at which this offer is worth a round's part of the money.
        """
        if pace.price == 0.0:
            return _first(pace, left, worth)
        planned = pace.base * plan.ahead(pace)
        return pace.price * (sqrt(min(max(planned / (left * pace.rest), 1.0 / PULL), PULL)) if left > 0.0 and planned > 0.0 else 1.0)

    def most(self, pace: Pace, left: float) -> float:
        """The most to spend in the coming round: while values are few, not so much that a first price that is far off costs everything."""
        if pace.seen >= VALUES or self.start is not None:
            return left
        return min(left, max(left / VALUES, 2.0 * left / max(pace.rounds - pace.played, 1)))

    def after(self, plan: SpendPlan, pace: Pace, asked: Asked, left: float, paid: float) -> Pace:
        """The pace after a round that began with so much left."""
        learned, share = self._learn(pace, asked.worth, left), self.share(plan, pace, left)
        played, price, squares = pace.played + 1, learned.price, pace.squares
        if pace.price == 0.0:  # there was none in this round
            return learned._replace(played=played)
        if share > 0.0 and (paid >= share or asked.held_back(paid) == 0.0):
            surplus = min(paid / share, LARGEST) - 1.0
            squares += surplus * surplus
            price = min(max(price * (1.0 + STEP * surplus / sqrt(1.0 + squares)), learned.lowest), learned.highest)
        return learned._replace(
            played=played, price=price, squares=squares, charge=_charge(pace, self.quote(plan, pace, left, 0.0), asked, paid)
        )

    def _learn(self, pace: Pace, worth: float, left: float) -> Pace:
        """One more value in the mean of the first: a price that came from it moves along."""
        if pace.seen >= VALUES or worth <= 0.0:
            return pace
        seen = pace.seen + 1
        scale = pace.scale + (worth - pace.scale) / seen
        if pace.price > 0.0 and self.start is None:
            factor = scale / pace.scale
            low, high = pace.lowest * factor, pace.highest * factor
            return pace._replace(scale=scale, seen=seen, price=pace.price * factor, lowest=low, highest=high)
        return self._begin(pace._replace(scale=scale, seen=seen), left)

    def _begin(self, pace: Pace, left: float) -> Pace:
        """The first price, where there are values and money for it; beside one that was given it only widens the range."""
        first = _first(pace, left, pace.scale)
        if first == 0.0:
            return pace
        if pace.price > 0.0:
            return pace._replace(lowest=min(pace.lowest, first / RANGE), highest=max(pace.highest, first * RANGE))
        return pace._replace(price=first, lowest=first / RANGE, highest=first * RANGE)


def _first(pace: Pace, left: float, worth: float) -> float:
    """The price at which this much worth is a round's part of the money; 0 where there is no round or no money left."""
    ahead = pace.rounds - pace.played
    return min(worth * ahead / left, FARTHEST) if left > 0.0 and ahead > 0 else 0.0


def _spread(plan: SpendPlan, pace: Pace, left: float) -> Pace:
    return pace._replace(base=left, rest=plan.ahead(pace))


def planned(plan: SpendPlan, pace: Pace) -> float:
    """What the plan had for the rounds that are over."""
    return pace.planned + (pace.base * (1.0 - plan.ahead(pace) / pace.rest) if pace.rest > 0.0 else 0.0)


def _charge(pace: Pace, price: float, asked: Asked, paid: float) -> float | None:
    """The charge after a round at this price: an even share of what was there when the budget was set, whatever the plan is."""
    if pace.charge is None:
        return None
    rate = pace.base / pace.rounds
    return pace.charge + price * (rate - paid) + asked.held_back(paid)


def pacing_bound(budget: float, rounds: int, value: float, spend: float) -> float:
    """The most that a `Pacer` of form "descent" with an even plan loses, on average, against the best choice of offers.

    Parameters
    ----------
    budget : float
        What may be spent in all, above 0, in money.
    rounds : int
        How many rounds the budget is for, 1 or above.
    value : float
        The most that one round can bring, above 0, in units of value.
    spend : float
        The most that one round can cost, above 0, in money.

    Examples
    --------
    >>> round(pacing_bound(budget=2000.0, rounds=10_000, value=1.0, spend=1.0))
    505
    """
    B, T = validate.positive("budget", budget), validate.whole("rounds", rounds)
    most, cost = validate.positive("value", value), validate.positive("spend", spend)
    return 0.0 if cost * T <= B else min(most * cost * T / B * (1.0 + sqrt(T)), most * T)


def weights_of(plan: str | Sequence[float], rounds: int) -> list[float]:
    """The weights of the parts of a plan."""
    if isinstance(plan, str):
        if plan != "even":
            raise validate.unknown("plan", plan, ("even",))
        return [1.0]
    weights = validate.vector("plan", plan)
    if (weights < 0.0).any() or not weights.any():
        raise validate.refused("plan must be weights of 0 or above, not all of them 0", plan)
    if len(weights) > rounds:
        raise InputError(f"plan must have no more parts than there are rounds, {rounds}, not {len(weights)}")
    return [float(weight) for weight in weights / weights.max()]
