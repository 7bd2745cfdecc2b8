"""The parts of a session, and what they say of the run: the policy's own proof, its theorem, and the certificate."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, isinf, isnan
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from bridle import validate
from bridle.core import (
    Alarm,
    Bound,
    Certifies,
    CertifiesSquares,
    Constants,
    CountsRates,
    Domain,
    Policy,
    TriesPoints,
    alarm_of,
    capability,
)
from bridle.game.totals import RunningTotals
from bridle.ops import Array
from bridle.policies.common import constants_from
from bridle.policies.registry import Configured
from bridle.session.certificate import Certificate, Charge, Conflict
from bridle.session.late_feedback import Copy, PendingRounds
from bridle.session.ledger import Ledger
from bridle.session.rates import RateLimit, rates_of

DECLARED = ("modulus", "slater", "bound", "smoothness")
"""What a session cannot observe: the theorem takes the policy's parameters for it."""


RELATIVE = 1e-6
"""What is allowed for rounding where a run is held against the policy's own proof."""

RegretBounds: TypeAlias = tuple[float | None, float | None, str]
"""As `Ledger.regret` gives them."""


class Absurd(NamedTuple):
    """How a run contradicts the policy's own proof: in words, and the figures."""

    text: str
    figures: dict[str, float]


class SessionParts(NamedTuple):
    """What a session consists of; without a ledger it is not certified. `configured` is None for a policy that is not registered.

    `names` are those of the limits, where the user has given some.
    """

    configured: Configured | None
    record: Policy[object]
    domain: Domain | None
    pending: PendingRounds
    ledger: Ledger | None
    names: tuple[str, ...] = ()

    def complete(self) -> SessionParts:
        """The parts with a ledger that has read every round, and has found what the sums and the bound on regret prove."""
        return self._concluded()[0]

    def _concluded(self) -> tuple[SessionParts, RegretBounds]:
        """`complete` and the bounds on regret, as one question: whatever is said of this run agrees with them."""
        if self.ledger is None:
            return self, (None, None, "")
        ledger = self.ledger.complete()
        if not self.apart:
            ledger.search_through(self.pending.begun)
        bounds = ledger.regret(self.pending.begun, apart=self.apart)
        return self._replace(ledger=ledger), bounds

    def parameter(self, name: str) -> float | None:
        """A number that the policy was given as a parameter; None where it was not."""
        return None if self.configured is None else cast("float | None", self.configured.parameters.get(name))

    @property
    def _certifies(self) -> Certifies | None:
        return capability(self.record, Certifies)

    @property
    def _only_limits(self) -> bool:
        """Whether what the policy was told of `lipschitz` is about the constraints alone."""
        return self.configured is not None and self.configured.entry.only_limits

    @property
    def apart(self) -> str:
        """Why the constraints seen need not agree with each other, in words; empty where they must."""
        if self.moving:
            return "the feasible action may move (drift), and no single one is compared with"
        if self.sometimes:
            return "the limits are on how often, and no action that keeps them always is compared with"
        return "constraint values are noisy, so that no single one proves anything" if self.noisy else ""

    @property
    def moving(self) -> bool:
        """Whether the policy was told that the feasible action may move."""
        return _above_zero(self.parameter("drift"))

    @property
    def sometimes(self) -> bool:
        """Whether a limit need not hold in every round."""
        return capability(self.record, CountsRates) is not None

    @property
    def noisy(self) -> bool:
        """Whether the policy was told that constraint values have errors."""
        return _above_zero(self.parameter("noise"))

    @property
    def conflict(self) -> Conflict | None:
        """The proof that no action is feasible: values with errors prove nothing."""
        return None if self.ledger is None or self.noisy or self.sometimes else self.ledger.conflict

    @property
    def alarms(self) -> list[Alarm]:
        """What the copies of the policy themselves say of assumptions that did not hold."""
        raised = (alarm_of(self.record, copy.state) for copy in self.pending.copies)
        return [alarm for alarm in raised if alarm is not None]

    @property
    def broken(self) -> str:
        """What the policy itself says of an assumption that did not hold, where that ends its bounds; empty where nothing did."""
        return next((alarm.text for alarm in self.alarms if alarm.voids_bound), "")

    @property
    def played(self) -> list[Copy]:
        """The copies of the policy that have been fed."""
        return [copy for copy in self.pending.copies if copy.updates]

    @property
    def longest_gradient(self) -> float | None:
        """The longest gradient seen of what `lipschitz` is about: a policy may have been told about its constraints alone."""
        if self.ledger is None:
            return None
        sums = self.ledger.counted.sums
        return sums.constraint if self._only_limits else max(sums.cost, sums.constraint)

    def price(self) -> Array | None:
        """What one more unit of each limit seems to be worth, where the policy keeps such prices."""
        price = None if self._certifies is None else self._certifies.price(self.pending.ready.state)
        return None if price is None else np.array(price, dtype=float)

    def rates(self) -> tuple[RateLimit, ...]:
        """The limits on how often that the policy keeps."""
        return rates_of(self.record, [copy.state for copy in self.pending.copies], len(self.pending.waiting), self.names)

    def certificate(self, rounds: int, totals: RunningTotals, constraints: int, alarms: dict[str, int]) -> Certificate | None:
        """What the observations prove; None where no ledger is kept."""
        parts, (regret, every, why) = self._concluded()
        ledger, price = parts.ledger, self.price()
        if ledger is None:
            return None
        own, squares = parts.own_proof()
        return Certificate(
            rounds=rounds,
            cost=float(totals.cost),
            ccv=float(totals.hard.max()),
            regret=regret,
            regret_any=every,
            regret_algorithm=own,
            why=why,
            violated=int(ledger.counted.limits.violated),
            above=ledger.above(),
            squared=ledger.counted.limits.distances,
            squared_bound=squares,
            conflict=parts.conflict,
            witness=None if self.noisy or self.sometimes else ledger.met(),
            pending=len(self.pending.waiting),
            dropped=self.pending.lost,
            charge=parts.charge(),
            bound=parts.bound(totals, constraints),
            alarms=tuple(alarms.items()),
            price=price,
            balance=None if price is None else np.array(totals.signed),
            rates=self.rates(),
            names=self.names,
            violations=np.array(totals.hard),
        )

    def own_regret(self) -> float | None:
        """The policy's own proof with what was observed, over all copies; None where it has none."""
        certifies = self._certifies
        if certifies is None or self.broken or self.noisy:
            return None
        return _total([certifies.certified_regret(copy.state) for copy in self.played])

    def own_proof(self) -> tuple[float | None, float | None]:
        """What the policy's own proof says of regret and of squared violation; None where it says nothing, or the run contradicts it."""
        ledger = self.ledger
        if ledger is None or self.conflict is not None or self.absurd():
            return None, None
        return self.own_regret(), self.squared_bound(ledger)

    def absurd(self, *, squares_too: bool = True) -> Absurd | None:
        """Where the run contradicts the policy's own proof, so that something it assumes is not so; None where all is well.

        What it says of squared violation costs as much as all the rest, and is left out unless `squares_too`.
        """
        ledger = self.ledger
        if ledger is None:
            return None
        own = self.own_regret()
        if own is not None and own < ledger.behind():  # else the middle of the domain alone shows that all is well
            gain = self.gain(ledger)
            if isfinite(gain) and own < -gain - RELATIVE * (abs(own) + abs(gain)):
                text = f"by the policy's own proof regret is at most {own:.6g}, while no action can have lost more than {gain:.6g}"
                return Absurd(f"{text}: {self._assumed}", {"regret": own, "least": -gain})
        squares, seen = self.squared_bound(ledger) if squares_too else None, ledger.counted.limits.distances
        if squares is not None and not seen <= squares + RELATIVE * (seen + abs(squares)):
            most = "no number at all" if isinf(squares) else f"at most {squares:.6g}"
            text = f"by the policy's own proof squared distances add up to {most}, while they are {seen:.6g}"
            return Absurd(f"{text}: {self._assumed}", {"squared": seen, "most": squares})
        return None

    @property
    def _assumed(self) -> str:
        """What a proof of the policy may have assumed wrongly, in words."""
        given = "the diameter or the drift" if self.moving else "the diameter"
        return f"no action satisfies every constraint, values or gradients are wrong or noisy, or {given} given is too small"

    def gain(self, ledger: Ledger) -> float:
        """The most that any action loses against what was played in the rounds that the policy was fed with.

        An action that moves may lose as much as the gradient's length times D in every round.
        """
        return ledger.counted.sums.lengths * ledger.domain.diameter if self.moving else ledger.gain()

    def squared_bound(self, ledger: Ledger) -> float | None:
        """The most that squared violation can be by the policy's proof, over all copies; minus infinity where no run could go like this."""
        certifies = capability(self.record, CertifiesSquares)
        if self.broken or certifies is None:
            return None
        sums, D = ledger.counted.sums, ledger.domain.diameter
        # What one copy's rounds gain may be more than what all of them gain together.
        gain = self.gain(ledger) if len(self.played) == 1 else sums.lengths * D
        if not isfinite(gain):
            return None
        with np.errstate(all="ignore"):
            total = _total([certifies.certified_squares(copy.state, sums.squares, gain) for copy in self.played])
        if total is None or isnan(total):
            return None if total is None else -inf
        return total + self.pending.lost * D * D  # a lost round may have been as far outside as that

    def charge(self) -> Charge:
        """What dropped rounds may add to regret and violation."""
        lost = self.pending.lost
        if self.ledger is None or not lost:
            return Charge()
        declared, D, sums = self.parameter("lipschitz"), self.ledger.domain.diameter, self.ledger.counted.sums
        of_costs = None if self._only_limits else declared
        cost, limit = max(sums.cost, of_costs or 0.0), max(sums.constraint, declared or 0.0)
        return Charge(lost * cost * D, lost * limit * D, of_costs is not None and declared is not None)

    def bound(self, totals: RunningTotals, constraints: int) -> Bound:
        """`promise`, unless the totals are beyond what it allows: then an assumption is broken, and it says nothing of this run."""
        allowed = self.promise(constraints)
        return self._contradicted(totals, allowed) or allowed

    def promise(self, constraints: int) -> Bound:
        """The theorem: the sum over the copies of the policy's bound after as many rounds as each has had, and the charge."""
        why = self._void()
        if why or self.ledger is None or self.configured is None or self.domain is None:
            return Bound(why=why)
        parameters = self.configured.parameters
        facts = cast("Constants", {name: parameters[name] for name in DECLARED if name in parameters})
        facts["diameter"], facts["feasible"], facts["constraints"] = self.domain.diameter(), self.domain.center(), constraints
        facts["time_varying"] = self.configured.entry.time_varying  # what the policy is for is taken for granted
        if "bound" in facts and not self.noisy:  # the values seen are the constraints' own
            facts["bound"] = max(facts["bound"], self.ledger.largest)
        sums = self.ledger.counted.sums
        facts["lipschitz"] = max(sums.cost, sums.constraint)
        bounds = [
            self.configured.bound(cast("Constants", {**facts, **self._shown(copy), **constants_from(copy.state)}), float(copy.updates))
            for copy in self.played
        ]
        charge = self.charge()
        regret, ccv, soft = (_total([getattr(each, name) for each in bounds]) for name in ("regret", "ccv", "soft"))
        return Bound(
            None if regret is None else regret + charge.regret,
            None if ccv is None else ccv + charge.ccv,
            soft=None if soft is None else soft + charge.ccv,
            why=next((each.why for each in bounds if each.why), ""),
        )

    def _shown(self, copy: Copy) -> Constants:
        """What a copy has seen of the curvature of its costs, where the policy was told something of it."""
        return {} if self.pending.modulus is None else {"curvature": copy.costs.curvature(copy.updates)}

    def _contradicted(self, totals: RunningTotals, allowed: Bound) -> Bound | None:
        """No bound, where the violation so far is already above the one that was promised."""
        if self.ledger is None or self.noisy:  # what is proved of noisy values is about their means
            return None
        ccv, balance = float(totals.hard.max()), float(totals.signed.max())
        rounding = self.ledger.domain.tolerance * (ccv + self.ledger.counted.sums.scale * self.ledger.counted.sums.rounds)
        for measured, most in ((ccv, allowed.ccv), (balance, allowed.soft)):
            if most is not None and measured > most + rounding:
                return Bound(why=f"the violation so far, {measured:.6g}, is more than the theorem allows: an assumption does not hold")
        return None

    def _void(self) -> str:
        """Why the theorem says nothing of this run; empty where it does."""
        if capability(self.record, TriesPoints):
            return "values alone do not show how steep functions are: policy.bound(constants, t) is the theorem, in expectation"
        if self.configured is None:
            return "the policy is not registered"
        if self.ledger is None:
            return "no certificates are kept, so the longest gradient is not known"
        if self.conflict is not None:
            return "no action satisfies every constraint"
        if self.broken:
            return self.broken
        absurd = self.absurd()
        return "" if absurd is None else absurd.text


def checked_names(names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of limits, checked."""
    if names is None:
        return ()
    listed = isinstance(names, Sequence) and not isinstance(names, (str, bytes))
    if not (listed and names and all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)):
        raise validate.refused("names must be a list of names that differ, one for each constraint", names)
    return tuple(map(str, names))


def _above_zero(setting: float | None) -> bool:
    return setting is not None and bool(np.any(np.asarray(setting) > 0.0))


def _total(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return float(sum(known)) if len(known) == len(parts) else None
