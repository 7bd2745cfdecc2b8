"""What is played, between the policy's decision and the caller: actions that are mixtures of rules, and actions that somebody else chose.

The policy, the ledger and the totals live in one world: that of the policy's decisions w_t, each read at w_t itself. At its boundary every
observation is translated, once, before anything else looks at it:

map      Where rounds are played through a map (`bridle.policies.round_maps`), y = B w + b stands for w, and gradients are pulled back, B'p.
played   Where x was played in place of y, values and gradients at x are read at y as affine functions: f + <df, y - x>, g + <dg, y - x>.
         These are below the costs and the limits, so an action that keeps the limits keeps what is read, and everything that is proved of
         the decisions holds for it. What the difference adds, to cost and to each limit, is charged (`Moved`): the sum of <df, x - y>,
         and what was violated at x beyond what was read at y. Everything that a caller sees has it added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from bridle import validate
from bridle.core import Bound, Domain, Feedback, InputError, Policy, S
from bridle.ops import Array, Scalar
from bridle.policies.round_maps import OwnMixture, RuleMixture
from bridle.session.certificate import UNMOVED, Certificate, Moved, padded
from bridle.session.feasibility import FLOOR
from bridle.session.feedback import Numbers, checked_feedback
from bridle.session.late_feedback import Ticket, Waiting, unwritten, written
from bridle.session.rounds import HistoryEntry, SessionRounds
from bridle.session.standing import Standing


class MixingPolicy(Policy[S], Protocol[S]):
    """A policy that mixes the rules of a session itself."""

    def begin(self, state: S, weights: Array) -> S: ...

    def weights(self, state: S) -> Array: ...

    def propose(self, state: S, proposals: Array) -> S: ...


class Said(NamedTuple):
    """What was said before the round that comes after `begun` others: what the map is made of."""

    begun: int
    terms: Array


class Boundary(NamedTuple):
    """Where a session's world ends: the map of its rounds, what was said of this one, and what is charged.

    `free`: the first round may still choose its weights. `seen` is the last observation as it came. The charge is `after` as soon as the
    session's turn is no longer `turn`, that is, once that observation is counted; so a round that is broken off charges nothing.
    """

    through: RuleMixture | None
    free: bool = False
    said: Said | None = None
    seen: Feedback | None = None
    turn: int = -1
    before: Moved = UNMOVED
    after: Moved = UNMOVED

    def saved(self, charge: Moved) -> dict[str, Scalar]:
        """What a file holds of it, as arrays; with what is charged."""
        rounds, cost, hard, signed, violated, above = charge
        begun = -1.0 if self.said is None else float(self.said.begun)
        arrays: dict[str, Scalar] = {"numbers": np.array([float(self.free), begun, rounds, cost, violated])}
        arrays |= {"hard": hard, "signed": signed, "above": above}
        return arrays if self.said is None else arrays | {"terms": written(self.said.terms)}

    def restored(self, saved: dict[str, Array]) -> Boundary:
        """With what a file holds."""
        free, begun, rounds, cost, violated = saved["numbers"].tolist()
        charge = Moved(int(rounds), cost, saved["hard"], saved["signed"], int(violated), saved["above"])
        said = Said(int(begun), self.through.checked(unwritten(saved["terms"]))) if self.through is not None and "terms" in saved else None
        return Boundary(self.through, bool(free), said, before=charge, after=charge)


class SessionActions(SessionRounds):
    """A session's rounds, with what is said before them and played in them; `_boundary` is None where decisions are played as they are."""

    _boundary: Boundary | None = None

    @property
    def _actions(self) -> Domain | None:
        """The domain of what is played."""
        boundary = self._boundary
        return self._parts.domain if boundary is None or boundary.through is None else boundary.through.outer

    @property
    def weights(self) -> Array:
        """What each rule is worth at present: one weight for each, or ``(rules, dim)`` with ``rules_per="coordinate"``.

        >>> import bridle
        >>> bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2), rules=2)).weights
        array([0.5, 0.5])
        """
        through = self._through("weights")
        return self._read(lambda nested: self._weights(through, self._stand(nested)))

    def _weights(self, through: RuleMixture, now: Standing) -> Array:
        ready = now.pending().ready
        return through.shaped(
            cast("MixingPolicy[object]", self._parts.record).weights(ready.state) if isinstance(through, OwnMixture) else ready.x
        )

    def _through(self, what: str) -> RuleMixture:
        through = None if self._boundary is None else self._boundary.through
        if through is None:
            raise InputError(f"{what}: the policy of this session was made without rules=, and plays its decisions as they are")
        return through

    def _begun(self) -> int:
        """How many rounds were begun."""
        played, fast = self._now.played, self._live
        return played.begun if fast is None else played.begun + fast.rounds - played.rounds

    # --- before acting ---------------------------------------------------------------------------------------------------------------

    def _say(self, rules: object) -> None:
        """Take in what is said before a round; what was said of the same round before is forgotten."""
        through = self._through("rules")
        terms = through.checked(rules)
        boundary, begun = self._boundary, self._begun()
        assert boundary is not None
        if isinstance(through, OwnMixture):
            self._hand_over(through, terms, first=boundary.free and not begun)
        elif boundary.free and not begun:
            self._stand()
            self._start = through.first(terms)
            pending = self._now.own_pending()
            pending.begin_at(self._start)
            self._put(pending)
        self._boundary = boundary._replace(said=Said(begun, terms))

    def _hand_over(self, through: OwnMixture, terms: Array, first: bool) -> None:
        """Tell a policy that mixes its rules itself what they propose; in the `first` round it begins with the medoid."""
        record = cast("MixingPolicy[object]", self._parts.record)

        def told(state: object) -> object:
            state = record.begin(state, through.first(terms)) if first else state
            return record.propose(state, through.awake(terms, record.weights(state))[0])

        self._stand()
        pending = self._now.own_pending()
        pending.tell(told)
        self._put(pending)

    def _terms(self) -> Array:
        """What the map of this round is made of."""
        boundary = self._boundary
        assert boundary is not None
        if boundary.said is None or boundary.said.begun != self._begun():
            assert boundary.through is not None
            raise InputError(boundary.through.wanted)
        return boundary.said.terms

    def _action(self) -> Array:
        """What is to be played in this round."""
        through = None if self._boundary is None else self._boundary.through
        return self._decision() if through is None else through.action(self._terms(), self._decision())

    def _begin_waiting(self, begin: Callable[[], Ticket], waiting: dict[int, Waiting]) -> Ticket:
        """Begin a round that waits, with its map where it has one."""
        boundary = self._boundary
        if boundary is None or boundary.through is None:
            return begin()
        terms = self._terms()
        ticket = begin()
        waiting[ticket.id] = replace(waiting[ticket.id], terms=terms)
        return replace(ticket, x=boundary.through.action(terms, waiting[ticket.id].x))

    # --- after it --------------------------------------------------------------------------------------------------------------------

    def _translate(
        self,
        f: ArrayLike,
        df: Numbers,
        g: Numbers,
        dg: Numbers,
        modulus: Numbers,
        ticket: Ticket | int | None,
        partial: object,
        played: Numbers,
    ) -> tuple[ArrayLike, Numbers, Numbers, Numbers]:
        """An observation in the world of decisions; what it is charged is noted, and counts once the observation does."""
        boundary = self._boundary or Boundary(None)
        through, waiting = boundary.through, None if ticket is None else self._now.pending().find(ticket)[1]
        w = self._decision() if waiting is None else waiting.x
        if through is None:
            y, map = w, None
        else:
            if modulus is not None:
                raise InputError(f"modulus cannot be given with {through.keyword}: a cost is not strongly convex in the weights")
            terms = self._terms() if waiting is None else waiting.terms
            if terms is None:
                raise InputError(
                    f"ticket {validate.show(ticket)} began without {through.keyword}: its round cannot be told from its weights"
                )
            y, map = through.action(terms, w), through.map(terms, w)
        x = y if played is None else self._admissible(played)
        with np.errstate(all="ignore"):
            seen = checked_feedback(x, self._limits, f, df, g, dg, modulus, seen=self._most_seen())
            moved = bool((x != y).any())
            read = seen
            if moved:
                if partial is not False:
                    raise InputError("partial cannot be given where something else was played than was decided: give the round as a whole")
                read = seen._replace(x=y, f=float(seen.f) + float(seen.df @ (y - x)), g=seen.g + seen.dg @ (y - x))
            if map is not None:
                read = read._replace(x=w, df=map.pull(read.df), dg=map.pull(read.dg))
        charge = self._charge()
        after = charge.after(seen, read, *self._scales(seen)) if moved else charge
        self._boundary = boundary._replace(seen=seen, turn=self._turn(), before=charge, after=after)
        cost = (0.0, None) if df is None else (float(read.f), read.df)
        return (*cost, None, None) if g is None else (*cost, read.g, read.dg)

    def _admissible(self, played: Numbers) -> Array:
        """What was played, an action of the domain: that is what all is compared with."""
        domain = self._actions
        x = validate.vector("played", played, len(self._start) if domain is None else domain.dim)
        if domain is not None and not domain.contains(x):
            raise InputError(f"played must lie in the domain, as every action that it is compared with; {validate.show(x)} does not")
        return x

    def _scales(self, seen: Feedback) -> tuple[Array, float]:
        """The levels whose violations are counted, and what of a constraint's value is rounding."""
        ledger = self._parts.ledger
        if ledger is None:
            return np.zeros(0), 0.0
        steepest = float(np.sqrt((seen.dg * seen.dg).sum(axis=1)).max()) * float(np.abs(seen.x).max(initial=1.0))
        return np.asarray(ledger.levels), FLOOR * ledger.domain.tolerance * max(float(np.abs(seen.g).max()), steepest)

    def _charge(self) -> Moved:
        """What is charged for what was played in place of decisions."""
        boundary = self._boundary
        if boundary is None:
            return UNMOVED
        return boundary.before if boundary.turn == self._turn() else boundary.after

    # --- what is said of it ----------------------------------------------------------------------------------------------------------

    def _as_seen(self, feedback: Feedback) -> Feedback:
        """An observation as it came, in the caller's own terms."""
        boundary = self._boundary
        return feedback if boundary is None or boundary.seen is None else boundary.seen

    def _entry(self, feedback: Feedback, number: int | None) -> HistoryEntry:
        """What `history` is told of a round: what was played."""
        entry = super()._entry(feedback, number)
        boundary, charge = self._boundary, self._charge()
        if boundary is not None and boundary.seen is not None:
            entry["x"] = boundary.seen.x.copy()
            if boundary.after is not boundary.before:
                entry["f"], entry["g"] = float(boundary.seen.f), boundary.seen.g.copy()
                entry["violation"] = np.maximum(entry["g"], 0.0)
            entry["cost"] += charge.cost
            entry["ccv"] = float(self._violations().max())
        return entry

    def _violations(self) -> Array:
        """The cumulative violation of every constraint."""
        hard = self._now.played.totals.hard if self._live is None else self._live.hard
        return np.array(hard) if self._boundary is None else _sum(hard, self._charge().hard)

    def _balances(self, nested: bool) -> Array | None:
        """The sum of every constraint's values; None where an old file did not say."""
        signed = self._stand(nested).played.totals.signed
        return None if signed is None else _sum(signed, self._charge().signed)

    def _as_played(self, proof: Certificate, now: Standing) -> Certificate:
        """A certificate of the decisions as one of what was played: with what is charged, and what the rules are worth."""
        boundary, charge = self._boundary, self._charge()
        if boundary is None:
            return proof
        if boundary.through is not None:
            proof = replace(proof, rules=boundary.through.names, weights=self._weights(boundary.through, now))
        if not charge.rounds:
            return proof
        above = tuple((level, count + int(more)) for (level, count), more in zip(proof.above, charge.above.tolist(), strict=True))
        return replace(
            proof,
            cost=proof.cost + charge.cost,
            ccv=float(_sum(now.played.totals.hard, charge.hard).max()),
            regret=_more(proof.regret, charge.cost),
            regret_any=_more(proof.regret_any, charge.cost),
            regret_algorithm=_more(proof.regret_algorithm, charge.cost),
            violated=proof.violated + charge.violated,
            above=above,
            bound=self._bound_as_played(proof.bound),
            balance=None if proof.balance is None else _sum(proof.balance, charge.signed),
            moved=charge,
        )

    def _bound_as_played(self, bound: Bound) -> Bound:
        """The policy's theorem with what is charged."""
        charge = self._charge()
        if not charge.rounds:
            return bound
        hard, signed = max(0.0, float(charge.hard.max())), max(0.0, float(charge.signed.max()))
        return bound._replace(
            regret=_more(bound.regret, charge.cost), ccv=_more(bound.ccv, hard), soft=_more(bound.soft, signed), squared=None
        )


def _more(value: Scalar | None, charge: float) -> float | None:
    return None if value is None else float(value) + charge


def _sum(values: Array, more: Array) -> Array:
    """The sum of what there is of each constraint, of which there may be more in one than in the other."""
    size = max(len(values), len(more))
    return padded(values, size) + padded(more, size)
