"""One rate for every group: a debt for each group moves its threshold against a common target.

Of the counted rows of group g (all of them; the positives; the negatives) a share is alarms, and the shares of any two groups should be
within `gap`. Let r_g be the share that the common threshold th would give (a running mean of about 1,000 rows) and m the middle between the
largest and the smallest. While they are within gap of each other nothing is done: the target of a row is what th says of it. Else

    tau_g = c + min(max(r_g - m, -gap/2), gap/2)                                                   within [0, 1]
    th_g  = th + sp_g eta (D_g + O_g),   D_g <- D_g + alarm - tau_g;    D_g + O_g >= 4/eta: no alarm in g;    <= -4/eta: alarms only
    c    <- c + .03 sum_g pi_g k(sig(th_g - th)),     pi_g the share of the counted rows that are of g;   of the first 100: their mean

Whatever c is, the groups come out alike; the best c balances what each group's threshold gives away, the stationarity condition of the
constrained optimum, with k(p) = p - 1/2 for all rows, 1 - 1/(2p) for the positives and (p - 1/2)/(1 - p) for the negatives, kept within
[-1, 1]. O_g are the rows of g whose labels have not come (`levels`).

Guarantee: share of g = (mean of tau_g) + D_g/n_g, exactly, hence the gap of two groups is at most that of their mean targets plus
    |D_g|/n_g of each: all are reported. Where nothing overrules the groups, |D_g| <= 4/eta + 1 + open on every stream (`most_gap_debt`), so
    that a gap of x needs some (4/eta + 1)/x counted rows of each group before it means much.
Reference: bridle (this file); M. Hardt, E. Price, N. Srebro, NeurIPS 2016, for thresholds by group.

Proof of the bound: as in `levels`, with v = 1 for an alarm and tau_g in [0, 1] for eps.

>>> level, = DemographicParity(0.1).levels((0, 1), False, False)
>>> state, rng = level.start(), np.random.default_rng(0)
>>> for row in range(3000):
...     group = float(row % 2)
...     score = float(rng.normal(group, 1.0))
...     alarm = 1.0 * (score > level.offset(state, group))
...     state, _ = level.look(state, Seen(score, alarm, group), 1.0 * (score > 0.0), row)
>>> shares = state.alarms / state.counted
>>> bool(abs(shares[1] - shares[0]) < 0.12), bool(abs(state.alarms - state.targets - level.debts(state)).max() == 0.0)
(True, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Annotated, ClassVar, NamedTuple, cast

import numpy as np

from bridle import ops, validate
from bridle.limits.debts import ETA, TOLERANCE, TOP, Recent, Seen, Unlabelled, make_recent
from bridle.limits.rates import Spread
from bridle.limits.report import LimitReport, Overall, short
from bridle.limits.settings import Settings, Step, up_to
from bridle.ops import Array, Scalar, absolute, along, columns, maximum, minimum, ratio, sigmoid, where
from bridle.policies.levels import zero_or_one

CENTRE_STEP, FIRST = 0.03, 100.0
"""How fast the common centre of the targets moves, and from how many counted rows on: before, it is the share that th gives."""

LOOKBACK = 1000.0
"""About how many counted rows of a group its untreated share remembers."""

TIE = 1e-9
"""Shares this near to the gap are at it: whether something is done must not hang on a rounding error."""


ALL_ROWS, POSITIVES, NEGATIVES = (1.0, 1.0, None), (1.0, 0.0, 1.0), (0.0, 1.0, 1.0)
"""What can count: positives, negatives, or both; the last is None where no label is needed."""

GAP_NAMES = {ALL_ROWS: "demographic parity", POSITIVES: "equal opportunity", NEGATIVES: "false positive gap"}


class GapState(NamedTuple):
    """For each group: alarms among the counted rows, the sum of targets, the untreated share, the scores' spread; the rows that wait.

    And the centre, recent counts, the last row at which the gap did not hold, and how many counted rows were overruled at the top.
    """

    alarms: Array
    targets: Array
    untreated: Array
    spread: Spread
    waiting: Unlabelled
    centre: Scalar
    recent: Recent
    broken: Scalar
    overruled: Array

    @property
    def counted(self) -> Array:
        """How many rows of each group counted."""
        return cast("Array", self.spread.weight)


def most_gap_debt(eta: float, open: float = 0.0) -> float:
    """4/eta + 1 + open: the most that the debt of a group can be, either way, where at most `open` of its rows wait for their labels.

    >>> most_gap_debt(0.05)
    81.0
    """
    return TOP / eta + 1.0 + open


class Looked(NamedTuple):
    """What is wanted back when the label of a row comes: whether it would have been an alarm without this limit, and what it was worth."""

    plain: Scalar
    due: Scalar


class GapLevel(NamedTuple):
    """One limit on the gap between groups; a row is of group i where its number is `values[i]`, or where `values` is None of the second of
    two where it is above 0 and of the first where it is not; a row whose number is nan is of none."""

    positives: float
    negatives: float
    labels: float | None
    gap: float
    eta: float
    values: Array | None
    each: Array  # zeros, as many as there are groups

    def start(self) -> GapState:
        zero = self.each
        half = zero + 0.5
        recent = make_recent(2 * len(zero))
        return GapState(zero, zero, half, Spread(zero, zero, zero + 1.0), Unlabelled(zero, zero, zero), 0.5, recent, 0.0, zero)

    def members(self, group: Scalar) -> Array:
        """1 for the group that a row is of, 0 for the others."""
        return (
            columns(where(group <= 0.0, 1.0, 0.0), where(group > 0.0, 1.0, 0.0))
            if self.values is None
            else zero_or_one(self.values == group, self.each)
        )

    def debts(self, state: GapState) -> Array:
        """D_g."""
        return state.alarms - state.targets

    def offsets(self, state: GapState) -> Array:
        """How far each group's threshold is above the common one; infinite from the top on."""
        debt = self.debts(state) + state.waiting.due
        moved = state.spread.size * self.eta * debt
        return where(debt >= TOP / self.eta, moved + inf, where(debt <= -TOP / self.eta, moved - inf, moved))

    def offset(self, state: GapState, group: Scalar) -> Scalar:
        """That of one row's group, or of each of many rows; 0 for a row of none."""
        each = self.offsets(state)
        total: Scalar = where(group == group, 0.0 * group, 0.0)
        for i in range(len(self.each)):
            here = (group > 0.0 if i else group <= 0.0) if self.values is None else group == self.values[i]
            total = where(here, each[i], total)
        return total

    def apart(self, state: GapState) -> tuple[Array, Scalar]:
        """By how much each untreated share is above the middle of all, and how far the largest is above the smallest; 0 where none came."""
        came = state.counted > 0.0
        high, low = along(where(came, state.untreated, self.each - 1.0), "max"), along(where(came, state.untreated, self.each + 2.0), "min")
        any_came = high >= low
        middle = where(any_came, 0.5 * (high + low), 0.0 * state.centre)
        return where(came, state.untreated - middle, self.each), where(any_came, high - low, 0.0 * state.centre)

    def target(self, state: GapState, plain: Scalar) -> Array:
        """tau of each group for a row of which the common threshold says `plain` (1: an alarm)."""
        above, gap = self.apart(state)
        tau = state.centre + minimum(maximum(above, -0.5 * self.gap), 0.5 * self.gap)
        return where(gap > self.gap + TIE, minimum(maximum(tau, 0.0), 1.0), plain + self.each)

    def look(self, state: GapState, seen: Seen, plain: Scalar, row: Scalar) -> tuple[GapState, Looked]:
        """After a row was scored and acted upon; `plain` is 1 where it would be an alarm without this limit."""
        member = self.members(seen.group)
        if self.labels is None:
            return self._move(state, seen, plain, member, row), Looked(plain, 0.0 * seen.score)
        chance = sigmoid(seen.score)
        q = self.positives * chance + self.negatives * (1.0 - chance)
        due = q * (seen.alarm - along(member * self.target(state, plain), "sum"))
        return state._replace(waiting=state.waiting.begin(due, member)), Looked(plain, due)

    def settle(self, state: GapState, seen: Seen, looked: Looked, sign: Scalar, row: Scalar) -> GapState:
        """After the label of a row came, which was looked at before."""
        if self.labels is None:
            return state
        state, counts = self.drop(state, seen, looked), where(sign > 0.0, self.positives, self.negatives)
        if (counts > 0.0) is False:  # what the line below would come to
            return state
        return self._move(state, seen, looked.plain, self.members(seen.group) * counts, row)

    def drop(self, state: GapState, seen: Seen, looked: Looked) -> GapState:
        """After it is known that the label of a row will never come."""
        if self.labels is None:
            return state
        return state._replace(waiting=state.waiting.end(looked.due, self.members(seen.group)))

    def together(self, state: GapState, rows: float) -> GapState:
        return state

    def _move(self, state: GapState, seen: Seen, plain: Scalar, member: Array, row: Scalar) -> GapState:
        """After a row that counts for the group of which `member` is 1."""
        tau, alarm, spread = self.target(state, plain), seen.alarm, state.spread.learn(seen.score, member)
        counted, alarms, debts = state.counted + member, state.alarms + alarm * member, self.debts(state)
        weight = member * maximum(ratio(1.0, counted), 1.0 / LOOKBACK)
        moved, total = along(member, "sum"), maximum(along(counted, "sum"), 1.0)
        drift = CENTRE_STEP * self._gain(state)
        excess = self._gap(counted, alarms) - (1.0 + TOLERANCE) * self.gap
        pushed = where(debts > 0.0, alarm + self.each, 1.0 - alarm + self.each)
        return GapState(
            alarms,
            state.targets + tau * member,
            state.untreated + weight * (plain - state.untreated),
            spread,
            state.waiting,
            minimum(maximum(state.centre + moved * where(total <= FIRST, (plain - state.centre) / total, drift), 0.0), 1.0),
            state.recent.mark(total, ops.join([counted, alarms], -1), moved > 0.0),
            where((moved > 0.0) & (excess > 0.0), row + 1.0, state.broken),
            state.overruled + member * (absolute(debts) >= TOP / self.eta) * pushed,
        )

    def _gain(self, state: GapState) -> Scalar:
        """What more alarms for all would gain, by how far the groups' thresholds are from the common one."""
        p = sigmoid(minimum(maximum(self.offsets(state), -30.0), 30.0))
        both = self.positives * self.negatives
        gain = both * (p - 0.5) + self.positives * (1.0 - both) * (1.0 - 0.5 / p) + self.negatives * (1.0 - both) * (p - 0.5) / (1.0 - p)
        share = ratio(state.counted, along(state.counted, "sum") + self.each)
        return along(share * minimum(maximum(gain, -1.0), 1.0), "sum")

    def _gap(self, counted: Array, alarms: Array) -> Scalar:
        """The largest share of alarms less the smallest, among groups that came."""
        share, came = ratio(alarms, counted), counted > 0.0
        return along(where(came, share, self.each - 1.0), "max") - along(where(came, share, self.each + 2.0), "min")

    def report(self, state: GapState, overall: Overall) -> LimitReport:
        """What became of it."""
        counted, alarms, debts, targets = (np.asarray(each) for each in (state.counted, state.alarms, self.debts(state), state.targets))
        came, total, overruled = counted > 0.0, float(counted.sum()), np.asarray(state.overruled)
        shares, means = (np.divide(part, counted, out=np.zeros(len(counted)), where=came) for part in (alarms, targets))
        names = [f"{value:g}" for value in (range(len(counted)) if self.values is None else self.values)]
        each = zip(names, counted.tolist(), shares.tolist(), means.tolist(), debts.tolist(), strict=True)
        groups = {key: dict(zip(("counted", "share", "target", "debt"), facts, strict=True)) for key, *facts in each}
        report = LimitReport(
            GAP_NAMES[self[:3]],
            "at most",
            self.gap,
            counted=int(total),
            open=int(np.sum(state.waiting.now)),
            seen={"groups": groups, **overall.rates, "overruled": float(overruled.sum())},
        )
        if not came.all():
            absent = " and ".join(key for key, here in zip(names, came, strict=True) if not here)
            words = f"no counted row of group {absent} has come, so that nothing can be said of the gap"
            return replace(report, why=words, words=words)
        measured = float(shares.max() - shares.min())
        latest, latest_alarms = np.split(np.concatenate([counted, alarms]) - state.recent.since(total)[1], 2)
        most = most_gap_debt(self.eta, float(np.max(state.waiting.most)))
        unsure = np.minimum(1.0, (most + overruled) / counted)
        apart = (means + unsure)[:, None] - means + unsure
        np.fill_diagonal(apart, 0.0)
        offsets = np.asarray(self.offsets(state))
        return replace(
            report,
            measured=measured,
            recent=float(np.ptp(latest_alarms / latest)) if (latest > 0.0).all() else None,
            proved=(0.0, min(1.0, float(apart.max()))),
            price=float(np.max(np.abs(offsets))) if np.isfinite(offsets).all() else None,
            price_of="log-odds between a group's threshold and the common one",
            since=int(state.broken) + 1 if measured <= 1.1 * self.gap else None,
            words=(
                f"group shares are {', '.join(f'{key}: {short(share)}' for key, share in zip(names, shares.tolist(), strict=True))}; their "
                f"debts account for at most {short(float(np.max(np.abs(debts) / counted)))} each; a promise within {short(self.gap)} needs "
                f"{int(most / self.gap):,} counted rows of each group, and the smallest has {int(counted.min()):,}"
            ),
        )


# --- in the user's words ------------------------------------------------------------------------------------------------------------------


def _groups(name: str, value: object) -> tuple[float, ...] | None:
    if value is None:
        return None
    numbers = tuple(validate.vector(name, value).tolist())
    if len(numbers) < 2 or len(set(numbers)) < len(numbers):
        raise validate.refused(f"{name} must be the different numbers of two groups or more", value)
    return numbers


@dataclass(frozen=True, repr=False)
class GapLimit(Settings):
    """A limit on the gap between groups."""

    gap: Annotated[float, up_to(1.0, "a difference of shares above 0 and at most 1")] = 0.05
    groups: Annotated[Sequence[float] | None, _groups] = None
    eta: Step = ETA
    kinds: ClassVar[tuple[tuple[float, float, float | None], ...]]

    def levels(self, classes: Sequence[object], several: bool, yields: bool) -> tuple[GapLevel, ...]:
        """The levels that keep it."""
        values = None if self.groups is None else np.array(self.groups)
        each = np.zeros(2) if values is None else 0.0 * values
        return tuple(GapLevel(*kind, self.gap, self.eta, values, each) for kind in self.kinds)


class EqualOpportunity(GapLimit):
    """A limit: the shares of the second class that are found differ by at most `gap` between groups.

    Parameters
    ----------
    gap : float, default 0.05
        The largest difference of two shares, above 0 and below 1.
    groups : sequence of float, optional
        The groups' numbers. Default: two groups, rows whose number is above 0, and the others.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.

    Examples
    --------
    >>> EqualOpportunity(gap=0.05, groups=[0, 1, 2])
    EqualOpportunity(gap=0.05, groups=[0, 1, 2])
    """

    kinds = (POSITIVES,)


class DemographicParity(GapLimit):
    """A limit: the shares of alarms differ by at most `gap` between groups.

    Parameters
    ----------
    gap : float, default 0.05
        The largest difference of two shares, above 0 and below 1.
    groups : sequence of float, optional
        The groups' numbers. Default: two groups, rows whose number is above 0, and the others.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.

    Examples
    --------
    >>> DemographicParity(gap=0.1).gap
    0.1
    """

    kinds = (ALL_ROWS,)


class EqualizedOdds(GapLimit):
    """A limit: the shares found, and the shares of false alarms, differ by at most `gap` between groups.

    Parameters
    ----------
    gap : float, default 0.05
        The largest difference of two shares, above 0 and below 1.
    groups : sequence of float, optional
        The groups' numbers. Default: two groups, rows whose number is above 0, and the others.
    eta : float, default 0.05
        How far one violation moves the level of caution, above 0; smaller is steadier and slower.

    Examples
    --------
    >>> EqualizedOdds(gap=0.1).gap
    0.1
    """

    kinds = (POSITIVES, NEGATIVES)
