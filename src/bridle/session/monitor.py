"""What a session checks after a round, and what it warns of; when each is due is said in `clocks`."""

from __future__ import annotations

from bridle.core import AssumptionWarning, DelayWarning, HorizonWarning, InfeasibleWarning, LipschitzWarning, OutlierWarning
from bridle.session import clocks
from bridle.session.alarms import WarningLog
from bridle.session.certificate import Conflict
from bridle.session.clocks import CROWDED, Due
from bridle.session.ledger import Ledger
from bridle.session.parts import SessionParts

OUTLIER = 1e6
"""A record that is this many times larger than all before the last check is reported."""

MEASURED = ("a gradient of a cost", "a gradient of a constraint", "a constraint value")


def search_witness(parts: SessionParts, log: WarningLog, t: int, due: Due) -> bool:
    """Search for an action that meets every halfspace after t observed rounds, cheaply; whether to `check_assumptions` now."""
    ledger, horizon = parts.ledger, parts.parameter("horizon")
    if due.witness:
        if ledger is not None and due.contradiction:
            ledger.close()
        if due.assumptions:
            return True
        if ledger is not None and ledger.stirred and not parts.apart:
            # Before old halfspaces make way for new ones, and often enough for the rest.
            ledger.repair_witness()
            if due.contradiction or ledger.halfspaces.fresh > CROWDED:
                return True
    if ledger is not None and ledger.busy and not parts.apart:
        return True
    return horizon is not None and t > horizon and log.fresh(HorizonWarning)


def next_check(parts: SessionParts, log: WarningLog, t: int) -> float:
    """The next round after which to `search_witness`, after t observed rounds; sooner if a batch of rounds was read."""
    ledger, horizon = parts.ledger, parts.parameter("horizon")
    if ledger is None:
        ahead = clocks.next_check(t, unread=0, batch=0, stirred=False, certified=False)
    elif ledger.busy and not parts.apart:
        ahead = t + 1
    else:
        ahead = clocks.next_check(t, unread=ledger.open, batch=len(ledger.rows), stirred=ledger.stirred, certified=True)
    return ahead if horizon is None or not log.fresh(HorizonWarning) else min(ahead, horizon + 1)


def check_assumptions(parts: SessionParts, log: WarningLog, t: int, now: int, due: Due) -> None:
    """Warn, once each, of what a user should know after t observed rounds, in round `now`; never stop.

    Unless assumptions are due, the states of the policy do not matter.
    """
    ledger, horizon, pending = parts.ledger, parts.parameter("horizon"), parts.pending
    if horizon is not None and t > horizon and log.fresh(HorizonWarning) and max(copy.updates for copy in pending.copies) > horizon:
        message = f"round {t} is past the policy's horizon of {horizon:g}: it goes on, but its bounds do not hold any more"
        log.warn(HorizonWarning, message, t, horizon=horizon)
    if ledger is not None and due.assumptions and not parts.apart:
        ledger.repair_witness()
    if ledger is not None:
        conflict, looks = None, due.contradiction or (ledger.halfspaces.fresh > CROWDED and due.witness)
        if looks:
            # One round may prove it by itself, also where the action moves.
            conflict = parts.conflict if parts.apart else ledger.search(now, ranking=due.ranking)
        elif ledger.busy and not parts.apart:
            conflict = ledger.go_on(now)
        if conflict is not None:
            _warn_infeasible(log, conflict)
        ledger.told = ledger.conflict is not None and (looks or ledger.told)
    if not due.assumptions:
        return
    alarm = next(iter(parts.alarms), None)
    if alarm is not None and not (alarm.infeasible and parts.conflict is not None):  # else the proof above says the same
        log.warn(AssumptionWarning, alarm.text, now)
    if ledger is not None:
        _check_figures(parts, ledger, log, now, due)


def _check_figures(parts: SessionParts, ledger: Ledger, log: WarningLog, t: int, due: Due) -> None:
    """Compare what the policy was told, and what its proof gives, with what was observed."""
    declared, pending, seen = parts.parameter("lipschitz"), parts.pending, parts.longest_gradient
    if declared is not None and seen is not None and seen > declared * (1.0 + 1e-9):
        message = f"a gradient of length {seen:.6g} was seen by round {t}, and the policy was told lipschitz = {declared:g}"
        log.warn(LipschitzWarning, f"{message}: its bounds are void", t, declared=float(declared), observed=seen)
    largest = parts.parameter("bound")
    if largest is not None and not parts.noisy and ledger.largest > largest * (1.0 + 1e-9):
        message = f"a constraint value of size {ledger.largest:.6g} was seen by round {t}, and the policy was told bound = {largest:g}"
        log.warn(AssumptionWarning, message, t, declared=float(largest), observed=ledger.largest)
    _check_sizes(ledger, log, t)
    delay = parts.parameter("delay")
    if pending.astray and delay is not None and pending.outstanding > delay:
        message = (
            f"{pending.outstanding} other rounds were waiting by round {t}, and the policy was told delay = {delay:g}: its bounds are void"
        )
        log.warn(DelayWarning, message, t, declared=float(delay), observed=float(pending.outstanding))
    absurd = None if ledger.conflict is not None else parts.absurd(squares_too=due.ranking)
    if absurd is not None:
        log.warn(AssumptionWarning, f"by round {t} {absurd.text}", t, **absurd.figures)


def _check_sizes(ledger: Ledger, log: WarningLog, t: int) -> None:
    """Report a record that is far beyond all that came before the last check."""
    sums = ledger.counted.sums
    sizes = (float(sums.cost), float(sums.constraint), ledger.largest)
    for what, before, now in zip(MEASURED, log.sizes, sizes, strict=True):
        if now > OUTLIER * before > 0.0:
            message = f"{what} of size {now:.3g} was seen by round {t}, {now / before:.3g} times the largest before"
            taken = "it was taken in, and whatever adapts to the scale of the stream now adapts to it"
            advice = "if a source is broken, Session(largest=...) refuses such records"
            log.warn(OutlierWarning, f"{message}: {taken}; {advice}", t, before=before, observed=now)
    log.sizes = sizes


def _warn_infeasible(log: WarningLog, conflict: Conflict) -> None:
    together = (
        f"the constraints of rounds {', '.join(map(str, conflict.rounds))}" if conflict.rounds else "all violated constraints together"
    )
    which = together if len(conflict.rounds) != 1 else f"the constraint of round {conflict.rounds[0]}"
    message = f"no action of the domain satisfies {which}: nothing is feasible (or values are noisy), and no bound holds"
    log.warn(InfeasibleWarning, message, conflict.found, rounds=conflict.rounds, margin=conflict.margin)
