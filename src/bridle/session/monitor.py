"""Where a run stands: what its policy's theorem and its certificates say of it, and what is to be warned of."""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from bridle.core import Alarm, AssumptionWarning, Bound, DelayWarning, HorizonWarning, InfeasibleWarning, LipschitzWarning
from bridle.policies.common import constants_from
from bridle.session.alarms import Alarms
from bridle.session.feasibility import RECENT
from bridle.session.late_feedback import Copy, Desk
from bridle.session.ledger import Charge, Conflict, Ledger

LOOK = 64
"""Every so many rounds it is looked at whether the policy's assumptions still hold."""

GLANCE = 8
"""Every so many rounds it is seen whether an action that meets the new halfspaces is near at hand."""

CHECK = 32
"""Every so many rounds the halfspaces kept are searched for a contradiction, if new ones have come."""


class Run(NamedTuple):
    """What a session consists of; without a ledger it is not certified."""

    policy: Any
    record: Any
    domain: Any
    desk: Desk
    ledger: Ledger | None

    def settled(self) -> Run:
        """The same with a ledger that has read every round."""
        return self if self.ledger is None else self._replace(ledger=self.ledger.settled())

    @property
    def told(self) -> dict[str, Any]:
        """The parameters that the policy was given."""
        return getattr(self.policy, "parameters", {})

    @property
    def apart(self) -> str:
        """Why the constraints seen need not agree with each other, in words; empty where they must."""
        if _above_zero(self.told.get("drift")):
            return "the feasible action may move (drift), and no single one is compared with"
        return "constraint values are noisy, so that no single one proves anything" if self.noisy else ""

    @property
    def noisy(self) -> bool:
        """Whether the policy was told that constraint values have errors."""
        return _above_zero(self.told.get("noise"))

    @property
    def conflict(self) -> Conflict | None:
        """The proof that no action is feasible: values with errors prove nothing."""
        return None if self.ledger is None or self.noisy else self.ledger.conflict

    @property
    def alarms(self) -> list[Alarm]:
        """What the copies of the policy themselves say of assumptions that did not hold."""
        raised = [self.record.alarm(copy.state) for copy in self.desk.copies] if hasattr(self.record, "alarm") else []
        return [alarm for alarm in raised if alarm is not None]

    @property
    def broken(self) -> str:
        """What the policy itself says of an assumption that did not hold, where that ends its bounds; empty where nothing did."""
        return next((alarm.text for alarm in self.alarms if alarm.voids_bound), "")

    @property
    def played(self) -> list[Copy]:
        """The copies of the policy that have been fed."""
        return [copy for copy in self.desk.copies if copy.updates]

    def proved(self, ledger: Ledger) -> dict[str, Any]:
        """What the observations prove, as the fields of a certificate."""
        regret, every, why = ledger.regret(apart=self.apart)
        whole = self.conflict is None and not ledger.since
        return {
            "since": ledger.since, "regret": regret, "regret_any": every, "why": why,
            "regret_algorithm": self.own_regret() if whole else None, "violated": int(ledger.limits.violated), "above": ledger.above(),
            "squared": ledger.limits.distances, "squared_bound": self.squared_bound(ledger) if whole else None,
            "conflict": self.conflict, "witness": None if self.noisy else ledger.met(), "charge": self.charge(),
        }  # fmt: skip

    def own_regret(self) -> float | None:
        """The policy's own proof with what was observed, over all copies; None where it has none, or feedback came out of order."""
        if self.desk.astray or not hasattr(self.record, "certified_regret") or self.broken:
            return None
        return _total([self.record.certified_regret(copy.state) for copy in self.played])

    def gain(self, ledger: Ledger) -> float:
        """The most that any action loses against what was played in the rounds that the policy was fed with.

        The ledger also has the costs of rounds that wait for their constraints, each of which may hide as much as its gradient times D.
        """
        ahead = [each.cost.df for each in self.desk.waiting.values() if each.cost is not None] if self.desk.late == "copies" else []
        return ledger.gain() + ledger.place.diameter * sum(float(np.linalg.norm(df)) for df in ahead)

    def squared_bound(self, ledger: Ledger) -> float | None:
        """The most that squared violation can be by the policy's proof, over all copies."""
        if self.desk.astray or not hasattr(self.record, "certified_squares"):
            return None
        # What one copy's rounds gain may be more than what all of them gain together.
        gain = self.gain(ledger) if len(self.played) == 1 else ledger.sums.lengths * ledger.place.diameter
        if not isfinite(gain):
            return None
        return _total([self.record.certified_squares(copy.state, ledger.sums.squares, gain) for copy in self.played])

    def charge(self) -> Charge:
        """What dropped rounds may add to regret and violation."""
        costs, limits = self.desk.lost
        if self.ledger is None or not (costs or limits):
            return Charge()
        declared, D, sums = self.told.get("lipschitz"), self.ledger.place.diameter, self.ledger.sums
        of_costs = None if getattr(self.record, "only_limits", False) else declared
        cost, limit = max(sums.cost, of_costs or 0.0), max(sums.constraint, declared or 0.0)
        return Charge(costs * cost * D, limits * limit * D, not ((costs and of_costs is None) or (limits and declared is None)))

    def bound(self, constraints: int, ccv: float, balance: float | None) -> Bound:
        """The theorem: the sum over the copies of the policy's bound after as many rounds as each has had, and the charge.

        `ccv` and `balance` are the violation so far and the largest sum of a constraint's values. More than the theorem allows contradicts
        it, and then it says nothing of this run.
        """
        why = self._void()
        if why or self.ledger is None:
            return Bound(why=why)
        facts = {"diameter": self.domain.diameter(), "feasible": self.domain.center(), "constraints": constraints}
        facts |= {name: self.told[name] for name in ("modulus", "slater", "bound", "smoothness") if name in self.told}
        facts["time_varying"] = self.policy.entry.time_varying  # what the policy is for is taken for granted
        if "bound" in facts and not self.noisy:  # the values seen are the constraints' own
            facts["bound"] = max(facts["bound"], self.ledger.largest)
        facts["lipschitz"] = max(self.ledger.sums.cost, self.ledger.sums.constraint)
        parts = [self.policy.bound({**facts, **constants_from(copy.state)}, float(copy.updates)) for copy in self.played]
        regret, hard, soft = (_total([getattr(part, name) for part in parts]) for name in ("regret", "ccv", "soft"))
        charge = self.charge()
        added = charge.ccv + self._ahead()
        allowed = Bound(
            None if regret is None else regret + charge.regret,
            None if hard is None else hard + added,
            soft=None if soft is None else soft + added,
            why=next((part.why for part in parts if part.why), ""),
        )
        rounding = self.ledger.place.tolerance * (ccv + self.ledger.sums.scale * self.ledger.sums.rounds)
        for measured, most in ((ccv, allowed.ccv), (balance, allowed.soft)):
            if measured is not None and most is not None and not self.noisy and measured > most + rounding:
                return Bound(why=f"the violation so far, {measured:.6g}, is more than the theorem allows: an assumption does not hold")
        return allowed

    def _ahead(self) -> float:
        """The violation of rounds whose constraints were counted while the policy still waits for their costs."""
        parts = [each.limits for each in self.desk.waiting.values() if each.limits is not None] if self.desk.late == "copies" else []
        return sum(max(0.0, float(part.g.max())) for part in parts)

    def _void(self) -> str:
        """Why the theorem says nothing of this run; empty where it does."""
        desk, ledger = self.desk, self.ledger
        if not hasattr(self.policy, "bound"):
            return "the policy is not registered"
        if ledger is None or ledger.since:
            return "not every round was certified, so the longest gradient is not known"
        if self.conflict is not None:
            return "no action satisfies every constraint"
        if self.broken:
            return self.broken
        if not desk.astray:
            return ""
        if "delay" not in self.told:
            return "feedback came late, and the policy was not made for that (give it delay=, or use late='copies')"
        allowed = self.told["delay"]
        late = f"{desk.outstanding} other rounds were waiting, and the policy was made for {allowed:g}"
        return late if desk.outstanding > allowed else ""


def glance(run: Run, alarms: Alarms, t: int) -> bool:
    """What is seen in passing after t observed rounds, from the halfspaces alone; whether it is time to `look` at the whole run."""
    ledger, horizon = run.ledger, run.told.get("horizon")
    if t % GLANCE == 0:
        if ledger is not None and t % CHECK == 0:
            ledger.close()
        if t % LOOK == 0:
            return True
        if ledger is not None and (ledger.cuts.fresh or ledger.conflict is not None) and not run.apart:
            # Before old halfspaces make way for new ones, and often enough for the rest.
            ledger.glance()
            if t % CHECK == 0 or ledger.cuts.fresh > RECENT // 2:
                return True
    return horizon is not None and t > horizon and alarms.fresh(HorizonWarning)


def due(run: Run, alarms: Alarms, t: int) -> float:
    """The next round after which to glance, after t observed rounds; sooner if a batch of rounds was read."""
    ledger, horizon = run.ledger, run.told.get("horizon")
    every = LOOK
    if ledger is not None and ledger.stirred:
        every = GLANCE
    elif ledger is not None and not (len(ledger.rows) and (t - ledger.open) % len(ledger.rows) == 0):
        every = CHECK  # the batch is not going to end there by itself
    ahead = t - t % every + every
    return ahead if horizon is None or not alarms.fresh(HorizonWarning) else min(ahead, horizon + 1)


def look(run: Run, alarms: Alarms, t: int, now: int) -> None:
    """Warn, once each, of what a user should know after t observed rounds, in round `now`; never stop.

    Where t is no multiple of `LOOK`, the states of the policy do not matter.
    """
    ledger, horizon = run.ledger, run.told.get("horizon")
    if horizon is not None and t > horizon and alarms.fresh(HorizonWarning) and max(copy.updates for copy in run.desk.copies) > horizon:
        message = f"round {t} is past the policy's horizon of {horizon:g}: it goes on, but its bounds do not hold any more"
        alarms.warn(HorizonWarning, message, t, horizon=horizon)
    if ledger is not None and t % LOOK == 0 and not run.apart:
        ledger.glance()
    if ledger is not None and (t % CHECK == 0 or (ledger.cuts.fresh > RECENT // 2 and t % GLANCE == 0)):
        conflict = run.conflict if run.apart else ledger.look(t, now)  # one round may prove it by itself, also where the action moves
        if conflict is not None:
            _infeasible(alarms, conflict)
    if t % LOOK:
        return
    alarm = next(iter(run.alarms), None)
    if alarm is not None and not (alarm.infeasible and run.conflict is not None):  # else the warning above says the same, with a proof
        alarms.warn(AssumptionWarning, alarm.text, now)
    if ledger is not None:
        _figures(run, ledger, alarms, now)


def _figures(run: Run, ledger: Ledger, alarms: Alarms, t: int) -> None:
    declared, desk = run.told.get("lipschitz"), run.desk
    # A policy may have been told about its constraints alone.
    seen = ledger.sums.constraint if getattr(run.record, "only_limits", False) else max(ledger.sums.cost, ledger.sums.constraint)
    if declared is not None and seen > declared * (1.0 + 1e-9):
        message = f"a gradient of length {seen:.6g} was seen by round {t}, and the policy was told lipschitz = {declared:g}"
        alarms.warn(LipschitzWarning, f"{message}: its bounds are void", t, declared=float(declared), observed=seen)
    largest = run.told.get("bound")
    if largest is not None and not run.noisy and ledger.largest > largest * (1.0 + 1e-9):
        message = f"a constraint value of size {ledger.largest:.6g} was seen by round {t}, and the policy was told bound = {largest:g}"
        alarms.warn(AssumptionWarning, message, t, declared=float(largest), observed=ledger.largest)
    delay = run.told.get("delay")
    if desk.astray and delay is not None and desk.outstanding > delay:
        message = (
            f"{desk.outstanding} other rounds were waiting by round {t}, and the policy was told delay = {delay:g}: its bounds are void"
        )
        alarms.warn(DelayWarning, message, t, declared=float(delay), observed=float(desk.outstanding))
    own = None if ledger.since or ledger.conflict is not None else run.own_regret()
    if own is None or own >= ledger.behind():  # in the second case the middle of the domain alone shows that all is well
        return
    gain = run.gain(ledger)
    if isfinite(gain) and own < -gain - 1e-6 * (abs(own) + abs(gain)):
        message = (
            f"by the policy's own proof regret is at most {own:.6g} by round {t}, while no action can have lost more than {gain:.6g}: "
            "no action satisfies every constraint, values or gradients are wrong or noisy, or the diameter given is too small"
        )
        alarms.warn(AssumptionWarning, message, t, regret=own, least=-gain)


def _infeasible(alarms: Alarms, conflict: Conflict) -> None:
    together = (
        f"the constraints of rounds {', '.join(map(str, conflict.rounds))}" if conflict.rounds else "all violated constraints together"
    )
    which = together if len(conflict.rounds) != 1 else f"the constraint of round {conflict.rounds[0]}"
    message = f"no action of the domain satisfies {which}: nothing is feasible (or values are noisy), and no bound holds"
    alarms.warn(InfeasibleWarning, message, conflict.found, rounds=conflict.rounds, margin=conflict.margin)


def _above_zero(setting: Any) -> bool:
    return setting is not None and bool(np.any(np.asarray(setting) > 0.0))


def _total(parts: list[Any]) -> float | None:
    return None if any(part is None for part in parts) else float(sum(parts))
