"""What a session checks after a round, and what it warns of, each kind at most once; when each is due is said in `clocks`."""

from __future__ import annotations

import numpy as np

from bridle.core import (
    AssumptionWarning,
    EmptyPromiseWarning,
    HorizonWarning,
    InfeasibleWarning,
    LipschitzWarning,
    OutlierWarning,
    StuckWarning,
)
from bridle.ops import Array
from bridle.session.certificates import clocks
from bridle.session.certificates.certificate import Conflict
from bridle.session.certificates.clocks import CROWDED, Due
from bridle.session.certificates.ledger import Ledger
from bridle.session.proof import Proof
from bridle.session.state import WarningLog, Watch

OUTLIER = 1e6
"""A record that is this many times larger than all before the last check is reported."""

LONG_VIOLATED = 256
"""A limit that was violated whenever it was looked at, for so many rounds and half of all rounds, is held against the moves since."""

TOWARDS = 0.1
"""Moves that have lowered a limit by less than this part of what it is still violated by are none towards it."""

PROMISED_AFTER = 256
"""From this round on, and from a quarter of the horizon on, a bound on regret is held against what could be lost at all."""

TOLD = ("lipschitz", "bound", "slater", "horizon")
"""What a policy may be told that sets the size of its bound on regret. Told none of it, a bound is no larger than it must be."""

MEASURED = ("a gradient of a cost", "a gradient of a constraint", "a constraint value")


def search_witness(proof: Proof, log: WarningLog, t: int, due: Due) -> bool:
    """Search for an action that meets every halfspace after t observed rounds, cheaply; whether to `check_assumptions` now."""
    ledger, horizon = proof.ledger, proof.parameter("horizon")
    if due.witness:
        if ledger is not None and due.contradiction:
            ledger.close()
        if due.assumptions:
            return True
        if ledger is not None and ledger.stirred and not proof.apart:
            # Before old halfspaces make way for new ones, and often enough for the rest.
            ledger.repair_witness()
            if due.contradiction or ledger.halfspaces.fresh > CROWDED:
                return True
    if ledger is not None and ledger.busy and not proof.apart:
        return True
    return horizon is not None and t > horizon and log.fresh(HorizonWarning)


def next_check(proof: Proof, log: WarningLog, t: int) -> float:
    """The next round after which to `search_witness`, after t observed rounds; sooner if a batch of rounds was read."""
    ledger, horizon = proof.ledger, proof.parameter("horizon")
    if ledger is None:
        ahead = clocks.next_check(t, unread=0, batch=0, stirred=False, certified=False)
    elif ledger.busy and not proof.apart:
        ahead = t + 1
    else:
        ahead = clocks.next_check(t, unread=ledger.open, batch=len(ledger.rows), stirred=ledger.stirred, certified=True)
    return ahead if horizon is None or not log.fresh(HorizonWarning) else min(ahead, horizon + 1)


def check_assumptions(proof: Proof, log: WarningLog, t: int, now: int, due: Due) -> None:
    """Warn, once each, of what a user should know after t observed rounds, in round `now`; never stop.

    Unless assumptions are due, the states of the policy do not matter.
    """
    ledger, horizon, copies = proof.ledger, proof.parameter("horizon"), proof.state.copies
    if horizon is not None and t > horizon and log.fresh(HorizonWarning) and max(copy.updates for copy in copies) > horizon:
        message = f"round {t} is past the policy's horizon of {horizon:g}: it goes on, but its bounds do not hold any more"
        log.warn(HorizonWarning, message, t, horizon=horizon)
    if ledger is not None and due.assumptions and not proof.apart:
        ledger.repair_witness()
    if ledger is not None:
        conflict, looks = None, due.contradiction or (ledger.halfspaces.fresh > CROWDED and due.witness)
        if looks:
            # One round may prove it by itself, also where the action moves.
            conflict = proof.conflict if proof.apart else ledger.search(now, ranking=due.ranking)
        elif ledger.busy and not proof.apart:
            conflict = ledger.go_on(now)
        if conflict is not None:
            _warn_infeasible(log, conflict, proof.names)
        ledger.told = ledger.conflict is not None and (looks or ledger.told)
    if not due.assumptions:
        return
    alarm = next(iter(proof.alarms), None)
    if alarm is not None and not (alarm.infeasible and proof.conflict is not None):  # else the proof above says the same
        log.warn(AssumptionWarning, alarm.text, now)
    if ledger is not None:
        _check_figures(proof, ledger, log, now, due)
        _check_moves(proof, ledger, log, now)
        if due.ranking:
            _check_promise(proof, ledger, log, t, now)


def _check_figures(proof: Proof, ledger: Ledger, log: WarningLog, t: int, due: Due) -> None:
    """Compare what the policy was told, and what its proof gives, with what was observed."""
    declared, seen = proof.parameter("lipschitz"), proof.longest_gradient
    if declared is not None and seen is not None and seen > declared * (1.0 + 1e-9):
        message = f"a gradient of length {seen:.6g} was seen by round {t}, and the policy was told lipschitz = {declared:g}"
        log.warn(LipschitzWarning, f"{message}: its bounds are void", t, declared=float(declared), observed=seen)
    largest = proof.parameter("bound")
    if largest is not None and not proof.noisy and ledger.largest > largest * (1.0 + 1e-9):
        message = f"a constraint value of size {ledger.largest:.6g} was seen by round {t}, and the policy was told bound = {largest:g}"
        log.warn(AssumptionWarning, message, t, declared=float(largest), observed=ledger.largest)
    _check_sizes(ledger, log, t)
    absurd = None if ledger.conflict is not None else proof.absurd(squares_too=due.ranking)
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


def _check_moves(proof: Proof, ledger: Ledger, log: WarningLog, t: int) -> None:
    """Warn where a limit has been violated for long and the action does not move towards it.

    Not where nothing is feasible, where the policy promises nothing of limits, or where copies of it play in turn.
    """
    if not log.fresh(StuckWarning) or not ledger.closed:
        return
    values, rounding = ledger.recent_values, ledger.domain.tolerance * ledger.counted.sums.scale
    if np.maximum.reduce(values[-1]) <= rounding:  # as mostly: the last round settles it
        log.watch = None
        return
    if proof.conflict is not None or len(proof.state.copies) > 1:
        return
    violated: Array = 1.0 * (np.minimum.reduce(values) > rounding)
    watch = log.watch
    if watch is None or len(watch.limits) != len(violated) or not (watch.limits * violated).any():
        log.watch = Watch(t, ledger.recent[0][-1].copy(), violated) if violated.any() else None
        return
    log.watch = watch = watch._replace(limits=watch.limits * violated)
    if t < max(watch.since + LONG_VIOLATED, 2 * watch.since) or (proof.configured and proof.configured.entry.violation == "-"):
        return
    x, _, g, dg = ledger.recent
    still, gained = g.mean(axis=0), np.einsum("nkd,nd->k", dg, watch.x - x) / len(x)
    stuck = watch.limits * (gained < TOWARDS * still) * still
    if stuck.any():
        i = int(stuck.argmax())
        name = proof.names[i] if proof.names else f"limit {i}"
        message = (
            f"{name} was violated whenever it was looked at from round {watch.since} to {t}, of late by {still[i]:.4g}, and moves of "
            f"the action have lowered it by {gained[i]:.4g} only: the policy does not react at this scale; a domain, constants or a "
            "horizon far too large make it slow (policy soft needs no constants)"
        )
        log.warn(StuckWarning, message, t, limit=i, name=name, since=watch.since, violation=float(still[i]), gained=float(gained[i]))
    log.watch = Watch(t, x[-1].copy(), violated)


def _check_promise(proof: Proof, ledger: Ledger, log: WarningLog, rounds: int, t: int) -> None:
    """Warn where the bound on regret, as the policy was told things, is no less than what any action can have lost.

    Not where the gradients of the costs die out, as they do on the way to the best action: then little is left to lose.
    """
    horizon = proof.parameter("horizon")
    early = rounds < max(PROMISED_AFTER, 0.0 if horizon is None else 0.25 * horizon)
    if early or not log.fresh(EmptyPromiseWarning) or all(proof.parameter(name) is None for name in TOLD):
        return
    sums, slopes = ledger.counted.sums, ledger.recent[1]
    if not ledger.closed or float(np.linalg.norm(slopes, axis=1).mean()) < 0.5 * sums.lengths / sums.rounds:
        return
    promised, most = proof.promise(ledger.k).regret, ledger.domain.diameter * sums.lengths
    if promised is not None and most > 0.0 and promised >= most * (1.0 - 1e-9):
        message = (
            f"after {rounds} rounds the policy's theorem says that regret is at most {promised:.4g}, while no action can have lost more "
            f"than {most:.4g} (the diameter times the lengths of the cost gradients): that promises nothing; the domain, or what the "
            "policy was told, is far too large"
        )
        log.warn(EmptyPromiseWarning, message, t, promised=float(promised), most=most)


def _warn_infeasible(log: WarningLog, conflict: Conflict, names: tuple[str, ...]) -> None:
    which = conflict.culprits(names) if conflict.rounds else "all violated constraints together"
    message = f"no action of the domain satisfies {which}: nothing is feasible (or values are noisy), and no bound holds"
    log.warn(InfeasibleWarning, message, conflict.found, rounds=conflict.rounds, margin=conflict.margin)
