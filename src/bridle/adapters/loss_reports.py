"""What became of limits on losses: of those held on average at a price, and of those that a policy keeps round by round.

A limit may make several constraints of a round (both signs of a gap): the worst of them is reported. Whatever keeps a limit, `measured` is
the mean over the rows that it counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bridle import ops
from bridle.adapters import limits
from bridle.adapters.levels import BLOCK, TOLERANCE, Recent, make_recent
from bridle.adapters.limit_report import LimitReport, short
from bridle.adapters.limit_words import rates_seen
from bridle.adapters.limits import GroupGapLimit, Limit, MissLossLimit, WeightLimit
from bridle.ops import Array, Scalar


class LossTally(NamedTuple):
    """How many rows there were; of every constraint the rows that it counts, its values there added up, how many were above 0, recent
    sums, and the last row at which its mean was above 0 by more than a tenth of the limit."""

    rows: Scalar
    counted: Array
    total: Array
    above: Array
    recent: tuple[Recent, ...]
    broken: Array

    def add(self, g: Array, counts: Array, allowed: Array) -> LossTally:
        """With one row more; `allowed` is what each limit asks for."""
        rows, counted, total = self.rows + 1.0, self.counted + counts, self.total + counts * g
        recent = tuple(each.mark(counted[..., i], ops.columns(total[..., i]), counts[..., i] > 0.0) for i, each in enumerate(self.recent))
        broken = ops.where((counts > 0.0) & (total > TOLERANCE * allowed * counted), rows + 0.0 * total, self.broken)
        return LossTally(rows, counted, total, self.above + counts * (g > 0.0), recent, broken)

    def add_many(self, g: Array, counts: Array, allowed: Array) -> LossTally:
        """With many rows more, one after the other."""
        rows = self.rows + 1.0 + np.arange(len(g))
        counted, total = self.counted + np.cumsum(counts, axis=0), self.total + np.cumsum(counts * g, axis=0)
        recent = []
        for i, each in enumerate(self.recent):
            full = np.flatnonzero((counts[:, i] > 0.0) & (counted[:, i] % BLOCK == 0.0))
            marks = each.marks.copy()
            for at in full[-len(marks) :]:
                marks[int(counted[at, i] / BLOCK) % len(marks)] = total[at, i]
            recent.append(Recent(marks))
        late = np.where((counts > 0.0) & (total > TOLERANCE * allowed * counted), rows[:, None], 0.0).max(axis=0)
        above = self.above + (counts * (g > 0.0)).sum(axis=0)
        return LossTally(float(rows[-1]), counted[-1], total[-1], above, tuple(recent), np.maximum(self.broken, late))


def no_losses(constraints: int) -> LossTally:
    """Nothing counted yet, of so many constraints."""
    none = np.zeros(constraints)
    return LossTally(0.0, none, none, none, tuple(make_recent(1) for _ in range(constraints)), none)


def allowances(each: tuple[object, ...]) -> Array:
    """What the limit of each constraint asks for; 0 where it has no such number."""
    return np.array([float(getattr(limit, "at_most", 0.0)) for limit in each for _ in range(limits.count((limit,)))])


def counted(each: tuple[Limit[Any], ...], sign: Scalar) -> Array:
    """For each constraint, whether its limit speaks of a row of this class: 1 or 0."""
    parts: list[Scalar] = []
    for limit in each:
        speaks = getattr(limit, "speaks", None)
        parts.extend([1.0 + 0.0 * sign if speaks is None else speaks(sign)] * limits.count((limit,)))
    return ops.columns(*parts)


class LossProof(NamedTuple):
    """What is known of the constraints beside their tally: the most that their values add up to, what they weigh; or why neither is."""

    most: Array | None
    price: Array | None
    why: str


def loss_report(limit: object, first: int, tally: LossTally, proof: LossProof, table: tuple[Scalar, ...] | None = None) -> LimitReport:
    """What became of one limit, whose constraints begin at place `first`; `table` is what was predicted meanwhile, where it is known."""
    places = range(first, first + limits.count((limit,)))
    asked, name, words = getattr(limit, "at_most", 0.0), loss_name(limit), "no row that it speaks of has come"
    n = int(tally.counted[first])
    measured = recent = proved = price = None
    seen: dict[str, float | None] = {}
    if n:
        worst = max(places, key=lambda i: float(tally.total[i]))
        measured = asked + float(tally.total[worst]) / n
        length, marks = tally.recent[worst].since(float(n))
        recent = asked + float(tally.total[worst] - marks[0]) / length
        if proof.most is not None:
            proved = (float(-np.inf) if measured < 0.0 else 0.0, asked + max(float(proof.most[i]) for i in places) / n)
        words = f"{short(float(max(tally.above[i] for i in places)) / n)} of the rows that it counts were above it"
        if table is not None:
            seen = rates_seen(tuple(float(cell) for cell in table))
            words += "; seen: " + ", ".join(f"{key} {short(value)}" for key, value in seen.items())
    if proof.price is not None:
        price = float(max(proof.price[i] for i in places))
    broken = max(int(tally.broken[i]) for i in places)
    holds = bool(n) and all(tally.total[i] <= TOLERANCE * asked * n for i in places)
    return LimitReport(
        name, "at most", asked, measured, recent, proved, "" if proved else proof.why if n else words, price,
        "cost of a row for one unit of the limit", broken + 1 if holds else None, n, 0, words, seen,
    )  # fmt: skip


def loss_name(limit: object) -> str:
    """What a limit is called."""
    if isinstance(limit, MissLossLimit):
        return f"mean loss of {limit.label!r}"
    if isinstance(limit, GroupGapLimit):
        return "gap of mean scores"
    if isinstance(limit, WeightLimit):
        return "weights"
    return str(getattr(limit, "name", type(limit).__name__))
