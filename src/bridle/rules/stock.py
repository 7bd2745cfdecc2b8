"""Rules for a capacity that is chosen before the demand for it is known: what people run today, ready to be mixed.

Each is a policy on a box in which more is safer, so that a session asks it and keeps its memory (``bridle.policy(..., rules=[...])``,
docs/rules.md). h is the demand of a round: the action nearest to the one played at which the round's limits, linearised, hold with
equality. All that a rule knows are the h of earlier rounds.

    Ewma          m + k s          m, s running mean and mean deviation of h
    SameSlot      m_j + k s        m_j the running mean of h in the same slot j of the day or the week, s the mean deviation from them;
                                   in the first period, before any slot comes again, the mean of all that was seen in place of m_j;
                                   with `moved`, m_j + r: r the running mean of the last errors h - m_j, how far today is off
    LastQuantile  the smallest h that a share q of the last N did not exceed
    Autoscaler    max(h of the last N) / u: a utilisation u of what was needed last, and no scaling down for N rounds
    Everything    all there is: the safe action

k = 1.25 is about one standard deviation where errors are normal. Before its first demand a rule proposes all there is. Rounds without a
limit tell nothing of demand; a season goes on through them.

>>> import bridle
>>> box = bridle.Box(0.0, 50.0, dim=1)
>>> session = bridle.Session(bridle.policy("rate", box, at_most=0.05, safe=box.high, rules=demand_rules(box, day=24)))
>>> rng = np.random.default_rng(0)
>>> for hour in range(800):
...     x = session.decide()
...     demand = 10.0 + 6.0 * np.sin(2 * np.pi * hour / 24) + rng.standard_normal()
...     session.observe(f=float(x[0]), df=[1.0], g=float(demand - x[0]), dg=[-1.0])
>>> bool(abs(session.rates[0].measured - 0.05) < 0.01)
True
>>> print(session.report().splitlines()[2].partition(" of ")[0])
Rules: same slot
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from bridle import validate
from bridle.core import Domain, Feedback, InputError
from bridle.ops import Array
from bridle.rules.last_demands import STAYS, Autoscaler, Everything, LastQuantile, autoscaler, everything, last_quantile
from bridle.rules.running_means import SLOW, Ewma, SameSlot, ewma, same_slot

FAST = 0.3
"""The weight of a new demand in the faster running means."""

MULTIPLES = (2.0, 0.0, 1.0, 4.0, 8.0)
"""How many mean deviations of room; the usual number first."""

QUANTILES = (0.9, 0.95, 0.99, 1.0)
TARGETS = (0.5, 0.7, 0.9)

DemandRule: TypeAlias = Ewma | SameSlot | LastQuantile | Autoscaler | Everything


def demand_rules(domain: Domain, day: int | None = None, week: int | None = None) -> list[DemandRule]:
    """A stock of rules to mix where nobody has better ones: 21 of them, and 10 more for each season that is told.

    In the first round all propose the same, all there is. A session then begins with the first rule in the list, a running mean with room.

    Parameters
    ----------
    domain : Domain
        Where actions lie.
    day : int, optional
        How many rounds a day has, 1 or above. Default: no daily rules.
    week : int, optional
        How many rounds a week has, above `day`. Default: no weekly rules.

    Examples
    --------
    >>> import bridle
    >>> [rule.name for rule in demand_rules(bridle.Box(0.0, 1.0, dim=2), day=288)][-7::6]
    ['same slot of 288 + 8 deviations', 'everything']
    """
    rules: list[DemandRule] = [ewma(domain, multiple, memory) for memory in (SLOW, FAST) for multiple in MULTIPLES]
    rules += [last_quantile(domain, share) for share in QUANTILES]
    rules += [autoscaler(domain, target, last) for last in STAYS for target in TARGETS]
    seasons = {"day": day, "week": week}
    for name, period in seasons.items():
        if period is not None:
            slots = validate.whole(name, period, 2)
            rules += [same_slot(domain, slots, multiple, moved=moved) for moved in (False, True) for multiple in MULTIPLES]
    if day is not None and day == week:
        raise validate.refused("week must be longer than day", week)
    return [*rules, everything(domain)]


def propose(rules: Sequence[DemandRule], demands: Array) -> Array:
    """What each rule would have proposed before each demand of a record: for looking back.

    Parameters
    ----------
    rules : sequence of DemandRule
        The rules.
    demands : array_like of shape (rounds, d)
        The record.

    Examples
    --------
    >>> import bridle
    >>> rules = [autoscaler(bridle.Box(0.0, 10.0, dim=1), target=0.5, last=1)]
    >>> propose(rules, [[1.0], [2.0], [9.0]])[:, 0, 0].tolist()
    [10.0, 2.0, 4.0]
    """
    record = validate.array("demands", demands)
    if record.ndim != 2 or not rules or record.shape[1] != rules[0].domain.dim:
        raise InputError(f"demands must be (rounds, {rules[0].domain.dim if rules else 'dim'}), not of shape {record.shape}")
    d = record.shape[1]
    away, zero = -np.eye(d), np.zeros(d)
    proposed = np.empty((len(record), len(rules), d))
    for i, rule in enumerate(rules):
        state = rule.init(rule.domain.center())
        for t, h in enumerate(record):
            proposed[t, i] = rule.decide(state)  # type: ignore[arg-type]
            state = rule.update(state, Feedback(h, 0.0, zero, zero, away))  # type: ignore[arg-type]
    return proposed
