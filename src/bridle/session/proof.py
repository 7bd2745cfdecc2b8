"""What a run proves: the policy's own proof with what was observed, its theorem, and the certificate."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite, isinf, isnan
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from bridle import records
from bridle.core import (
    Alarm,
    Bound,
    Certifies,
    CertifiesSquares,
    Constants,
    CountsRates,
    MixesParts,
    TriesPoints,
    alarm_of,
    capability,
)
from bridle.game.totals import RunningTotals
from bridle.ops import Array, Scalar
from bridle.policies.common import constants_from
from bridle.policies.registry import Configured
from bridle.policies.round_maps import OwnMixture, RuleMixture
from bridle.session import late
from bridle.session.certificates.certificate import Certificate, Charge, Conflict, Moved, padded
from bridle.session.certificates.ledger import Ledger
from bridle.session.rates import RateLimit, rates_of
from bridle.session.state import Copy, Plan, SessionState

LEANS = "something else was played than was decided, and the theorem leans on how costs are curved at the decisions"
"""Why there is no bound for a policy that was told of curvature, where its decisions were not played."""

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


class Proof(NamedTuple):
    """What is proved of a session that stands here; `ledger` is a copy of the certificates' memory with every round written down."""

    plan: Plan
    state: SessionState
    ledger: Ledger | None

    @classmethod
    def of(cls, plan: Plan, state: SessionState) -> Proof:
        """What is proved of this state."""
        return cls(plan, state, state.ledger())

    def complete(self) -> Proof:
        """The parts with a ledger that has read every round, and has found what the sums and the bound on regret prove."""
        return self._concluded()[0]

    def _concluded(self) -> tuple[Proof, RegretBounds]:
        """`complete` and the bounds on regret, as one question: whatever is said of this run agrees with them."""
        if self.ledger is None:
            return self, (None, None, "")
        ledger = self.ledger.complete()
        if not self.apart:
            ledger.search_through(self.state.now.begun)
        bounds = ledger.regret(self.state.now.begun, apart=self.apart)
        return self._replace(ledger=ledger), bounds

    def parameter(self, name: str) -> float | None:
        """A number that the policy was given as a parameter; None where it was not."""
        return self.plan.parameter(name)

    @property
    def configured(self) -> Configured | None:
        """The policy, where it is registered."""
        return self.plan.configured

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the limits, where the user has given some."""
        return self.plan.names

    @property
    def _certifies(self) -> Certifies | None:
        return capability(self.plan.record, Certifies)

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
        return capability(self.plan.record, CountsRates) is not None

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
        raised = (alarm_of(self.plan.record, copy.state) for copy in self.state.copies)
        return [alarm for alarm in raised if alarm is not None]

    @property
    def broken(self) -> str:
        """What the policy itself says of an assumption that did not hold, where that ends its bounds; empty where nothing did."""
        return next((alarm.text for alarm in self.alarms if alarm.voids_bound), "")

    @property
    def played(self) -> list[Copy]:
        """The copies of the policy that have been fed."""
        return [copy for copy in self.state.copies if copy.updates]

    @property
    def longest_gradient(self) -> float | None:
        """The longest gradient seen of what `lipschitz` is about: a policy may have been told about its constraints alone."""
        if self.ledger is None:
            return None
        sums = self.ledger.counted.sums
        return sums.constraint if self._only_limits else max(sums.cost, sums.constraint)

    def price(self) -> Array | None:
        """What one more unit of each limit seems to be worth, where the policy keeps such prices."""
        price = None if self._certifies is None else self._certifies.price(late.ready(self.plan, self.state).state)
        return None if price is None else np.array(price, dtype=float)

    def rates(self) -> tuple[RateLimit, ...]:
        """The limits on how often that the policy keeps."""
        return rates_of(self.plan.record, [copy.state for copy in self.state.copies], len(self.state.slow.late.waiting), self.names)

    def certificate(self) -> Certificate | None:
        """What the observations prove of what was played; None where no ledger is kept."""
        proof, (regret, every, why) = self._concluded()
        ledger, price = proof.ledger, self.price()
        if ledger is None:
            return None
        (_, _, totals, rounds), slow = self.state
        own, squares = proof.own_proof()
        certificate = Certificate(
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
            conflict=proof.conflict,
            witness=None if self.noisy or self.sometimes else ledger.met(),
            pending=len(slow.late.waiting),
            dropped=slow.late.lost,
            charge=proof.charge(),
            bound=proof.bound(),
            alarms=tuple(slow.log.rounds.items()),
            price=price,
            balance=None if price is None else np.array(totals.signed),
            rates=self.rates(),
            names=self.names,
            violations=np.array(totals.hard),
            known=slow.known,
        )
        return self._as_played(self._with_rules(certificate))

    def _with_rules(self, certificate: Certificate) -> Certificate:
        """With what the rules, or the parts of a policy that is a mixture, are worth."""
        through, rules = self.plan.through, self.plan.rules
        if through is not None:
            certificate = replace(certificate, compared=through.compared)
        if rules is not None:
            return replace(certificate, rules=rules.names, weights=weights(self.plan, self.state))
        return (
            replace(certificate, rules=names, weights=weights(self.plan, self.state)) if (names := parts_mixed(self.plan)) else certificate
        )

    def _as_played(self, certificate: Certificate) -> Certificate:
        """A certificate of the decisions as one of what was played in their place: with what is charged for that."""
        charge = self.state.slow.memory.moved
        if not charge.rounds:
            return certificate
        own, hard = certificate.regret_algorithm, violations(self.state.now.totals.hard, charge)
        above = tuple((level, count + int(more)) for (level, count), more in zip(certificate.above, charge.above.tolist(), strict=True))
        return replace(
            certificate,
            cost=certificate.cost + charge.cost,
            ccv=float(hard.max()),
            violations=hard,
            regret=_more(certificate.regret, charge.cost),
            regret_any=_more(certificate.regret_any, charge.cost),
            regret_algorithm=None if leans_on_curvature(self.plan.record) else _more(own, charge.cost),
            violated=certificate.violated + charge.violated,
            above=above,
            bound=self.bound_as_played(certificate.bound),
            balance=None if certificate.balance is None else added(certificate.balance, charge.signed),
            moved=charge,
        )

    def bound_as_played(self, bound: Bound) -> Bound:
        """The policy's theorem with what is charged."""
        charge = self.state.slow.memory.moved
        if not charge.rounds:
            return bound
        if leans_on_curvature(self.plan.record):
            return Bound(why=LEANS)
        hard, signed = max(0.0, float(charge.hard.max())), max(0.0, float(charge.signed.max()))
        return bound._replace(
            regret=_more(bound.regret, charge.cost),
            ccv=_more(bound.ccv, hard),
            soft=_more(bound.soft, signed),
            squared=None,
            dynamic=_more(bound.dynamic, charge.cost),
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
        certifies = capability(self.plan.record, CertifiesSquares)
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
        return total + self.state.slow.late.lost * D * D  # a lost round may have been as far outside as that

    def charge(self) -> Charge:
        """What dropped rounds may add to regret and violation."""
        lost = self.state.slow.late.lost
        if self.ledger is None or not lost:
            return Charge()
        declared, D, sums = self.parameter("lipschitz"), self.ledger.domain.diameter, self.ledger.counted.sums
        of_costs = None if self._only_limits else declared
        cost, limit = max(sums.cost, of_costs or 0.0), max(sums.constraint, declared or 0.0)
        return Charge(lost * cost * D, lost * limit * D, of_costs is not None and declared is not None)

    def bound(self) -> Bound:
        """`promise`, unless the totals are beyond what it allows: then an assumption is broken, and it says nothing of this run."""
        totals = self.state.now.totals
        allowed = self.promise(self.plan.limits.k or len(totals.hard))
        return self._contradicted(totals, allowed) or allowed

    def promise(self, constraints: int) -> Bound:
        """The theorem: the sum over the copies of the policy's bound after as many rounds as each has had, and the charge."""
        why = self._void()
        if why or self.ledger is None or self.configured is None or self.plan.domain is None:
            return Bound(why=why)
        parameters = self.configured.parameters
        facts = cast("Constants", {name: parameters[name] for name in DECLARED if name in parameters})
        facts["diameter"], facts["feasible"], facts["constraints"] = self.plan.domain.diameter(), self.plan.domain.center(), constraints
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
        return {} if self.plan.modulus is None else {"curvature": copy.costs.curvature(copy.updates)}

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
        if capability(self.plan.record, TriesPoints):
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


def leans_on_curvature(record: object) -> bool:
    """Whether a policy's proof subtracts what costs are above their tangents at its decisions: read at another point they are not."""
    told = (getattr(node, name, None) for node in records.nodes(record) for name in ("modulus", "exp_concavity"))
    return any(value is not None and bool(np.any(value)) for value in told)


def parts_mixed(plan: Plan) -> tuple[str, ...]:
    """The names of what the policy itself mixes; none where it does not, or where it mixes the caller's rules."""
    mixes = None if plan.through is not None else capability(plan.record, MixesParts)
    return () if mixes is None else mixes.mixed


def weights(plan: Plan, state: SessionState) -> Array:
    """What each rule, or part that the policy mixes, is worth; the coefficients in force, where actions are functions of features."""
    through, ready = plan.through, late.ready(plan, state)
    if through is None or isinstance(through, OwnMixture):
        own = np.asarray(cast(MixesParts, plan.record).weights(ready.state), dtype=float)
        return own if through is None else through.shaped(own)
    return through.shaped(ready.x) if isinstance(through, RuleMixture) else through.coefficients(ready.x, state.slow.memory.scale)


def violations(hard: Array, charge: Moved) -> Array:
    """The cumulative violation of every constraint by what was played, from that of the decisions."""
    return added(hard, charge.hard) if charge.rounds else np.array(hard)


def added(values: Array, more: Array) -> Array:
    """The sum of what there is of each constraint, of which there may be more in one than in the other."""
    size = max(len(values), len(more))
    return padded(values, size) + padded(more, size)


def _more(value: Scalar | None, charge: float) -> float | None:
    return None if value is None else float(value) + charge


def _above_zero(setting: float | None) -> bool:
    return setting is not None and bool(np.any(np.asarray(setting) > 0.0))


def _total(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return float(sum(known)) if len(known) == len(parts) else None
