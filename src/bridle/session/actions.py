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

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from bridle import records, validate
from bridle.core import Bound, Domain, Feedback, Hint, Hintable, InputError, MixesParts, Movable, Policy, S, capability
from bridle.ops import Array, Scalar
from bridle.policies.round_maps import KEYWORDS, AffineFeatures, OwnMixture, RoundReading, RoundTerms, RuleMixture
from bridle.session.boundary import REMEMBERED, Boundary, Memory, Said, frozen
from bridle.session.certificate import Certificate, Moved, padded
from bridle.session.feasibility import FLOOR
from bridle.session.feedback import Numbers, checked_feedback
from bridle.session.late_feedback import PendingRounds, Ticket, TicketGiven, Waiting
from bridle.session.prior import HintGiven, KnownLimits, checked_hint, known_limits, nearest_kept, projector, refusal
from bridle.session.rounds import HistoryEntry, SessionRounds
from bridle.session.standing import Standing
from bridle.session.tried_points import refuse_extras
from bridle.solvers.nearest_point import CutProjector

LEANS = "something else was played than was decided, and the theorem leans on how costs are curved at the decisions"
"""Why there is no bound for a policy that was told of curvature, where its decisions were not played."""


class MixingPolicy(Policy[S], Protocol[S]):
    """A policy that mixes the rules of a session itself."""

    def begin(self, state: S, weights: Array) -> S:
        """The state before the first round, with these weights to begin with."""
        ...

    def weights(self, state: S) -> Array:
        """What each rule is worth; of every coordinate, one block after the other, where each has a mixture of its own."""
        ...

    def propose(self, state: S, proposals: Array) -> S:
        """The state before its next decision, told what each rule proposes, one a row."""
        ...


class SessionActions(SessionRounds):
    """A session's rounds, with what is said before them and played in them; `_boundary` is None where decisions are played as they are."""

    _boundary: Boundary | None = None
    _projectors: Mapping[str, CutProjector | None] = {}

    @property
    def _actions(self) -> Domain | None:
        """The domain of what is played."""
        boundary = self._boundary
        return self._parts.domain if boundary is None or boundary.through is None else boundary.through.outer

    @property
    def weights(self) -> Array:
        """What each rule is worth at present: one weight for each, or ``(rules, dim)`` with ``rules_per="coordinate"``.

        With ``features=`` the coefficients in force, ``(1 + features, dim)``: those of 1, and of each feature in its own unit. Where the
        policy itself is a mixture (of memories: `anytime` with ``window="auto"``), what each part is worth.

        >>> import bridle
        >>> bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2), rules=2)).weights
        array([0.5, 0.5])
        """
        if self._parts_mixed():
            return self._read(lambda nested: self._own_weights(self._stand(nested)))
        through = self._through("weights")
        return self._read(lambda nested: self._weights(through, self._stand(nested)))

    def _parts_mixed(self) -> tuple[str, ...]:
        """The names of what the policy itself mixes; none where it does not, or where it mixes the caller's rules."""
        mapped = self._boundary is not None and self._boundary.through is not None
        names: tuple[str, ...] = () if mapped or (mixes := capability(self._parts.record, MixesParts)) is None else mixes.mixed
        return names

    def _own_weights(self, now: Standing) -> Array:
        """What each of the parts that the policy mixes is worth."""
        return np.asarray(cast(MixesParts, self._parts.record).weights(now.pending().ready.state), dtype=float)

    @property
    def proposals(self) -> Array:
        """What each rule proposes in this round, ``(rules, dim)``, those that the session asks itself too; NaN for one that sleeps."""
        if not isinstance(self._through("proposals"), RuleMixture):
            raise InputError("proposals: the policy of this session was made with features=, and has no rules")
        said = self._read(self._asked)
        assert said is not None
        assert said.terms is not None
        return said.terms.copy()

    def _asked(self, nested: bool) -> Said | None:
        """What is said of this round; where all rules are the session's own, they are asked first."""
        if not nested and self._unsaid():
            self._say({}, None)
        return self._valid()

    def _weights(self, through: RoundTerms, now: Standing) -> Array:
        ready = now.pending().ready
        if isinstance(through, OwnMixture):
            return through.shaped(self._own_weights(now))
        return through.shaped(ready.x) if isinstance(through, RuleMixture) else through.coefficients(ready.x, self._memory().scale)

    def _through(self, what: str) -> RoundTerms:
        through = None if self._boundary is None else self._boundary.through
        if through is None:
            keyword = what if what in KEYWORDS else " and ".join(f"{each}=" for each in KEYWORDS)
            raise InputError(
                f"{what}: the policy of this session was made without {keyword.rstrip('=')}=, and plays its decisions as they are"
            )
        return through

    def _begun(self) -> int:
        """How many rounds were begun."""
        played, fast = self._now.played, self._live
        return played.begun if fast is None else played.begun + fast.rounds - played.rounds

    # --- before acting ---------------------------------------------------------------------------------------------------------------

    def _say(self, given: Mapping[str, object], known: object, hint: HintGiven = None) -> None:
        """Take in what is said before a round, or refuse it; what was said of the same round before is forgotten.

        `given` is what maps are made of, by the name under which the caller gives it; a `hint` is what the policy may expect.
        """
        if self._tries:
            refuse_extras(self._called, known=known)
        boundary, begun = self._boundary or Boundary(None), self._begun()
        through, last = boundary.through, self._of_this_round()
        terms = None if last is None else last.terms
        for keyword in (name for name, value in given.items() if value is not None):
            if self._through(keyword).keyword != keyword:
                raise InputError(f"{keyword} cannot be given: the policy was made with {self._through(keyword).keyword}=")
        if through is not None and (terms is None or given.get(through.keyword) is not None):
            terms = self._made_terms(through, given.get(through.keyword))
        limits = None if known is None else known_limits(known, self._dim)
        expected = None if hint is None else self._expected(hint, through)
        first, own = boundary.free and not begun, isinstance(through, OwnMixture)
        if limits is None and expected is None and not first and (last is None or last.at is None) and not own:
            self._boundary = boundary._replace(said=Said(begun, terms))
            return
        self._stand()
        pending = self._now.own_pending()
        turn, front = self.rounds, pending.front
        if (
            last is not None
            and last.before is not None
            and (last.turn, last.front) == (turn, front)
            and same_decision(last.at, pending.ready.x)
        ):
            pending.tell(lambda _: last.before)
        before, start = pending.ready.state, self._start
        if isinstance(through, OwnMixture) and terms is not None:
            self._hand_over(through, terms, pending, first)
        elif isinstance(through, RuleMixture) and terms is not None and first:
            start = through.first(terms)
            pending.begin_at(start)
            before = pending.ready.state
        if expected is not None:
            pending.tell(lambda state: cast(Hintable, self._parts.record).hinted(state, expected))
        action = None if limits is None else self._keep(limits, pending, terms)
        ready = pending.ready
        at, before = (None, None) if limits is None and ready.state is before else (ready.x, before)
        self._start = start
        self._put(pending)
        self._boundary = boundary._replace(
            said=Said(begun, terms, action, at, before, turn, front), known=boundary.known or limits is not None
        )

    def _expected(self, hint: HintGiven, through: RoundTerms | None) -> Hint:
        """A hint, checked; refused where the policy takes none."""
        if capability(self._parts.record, Hintable) is None:
            raise InputError(f"hint cannot be given: policy {self._called} takes no predictions (`optimistic` does)")
        if through is not None:
            raise InputError(f"hint cannot be given with {through.keyword}: it would be about weights, not about actions")
        return checked_hint(hint, self._dim, self._limits.largest)

    def _made_terms(self, through: RoundTerms, given: object) -> Array:
        """What this round's map is made of: what the caller gives, and what rules say that are asked."""
        memory = self._memory()
        if isinstance(through, AffineFeatures):
            if given is None:
                raise InputError(through.wanted)
            return through.scaled(given, memory.scale)
        if given is None and through.callers:
            raise InputError(through.wanted)
        return through.checked(given, through.ask(memory.past, memory.states))

    def _unsaid(self) -> bool:
        """Whether nothing was said of this round, and nobody but the session's own rules has to."""
        boundary = self._boundary
        if boundary is None or not isinstance(boundary.through, RuleMixture) or boundary.through.callers:
            return False
        return boundary.said is None or boundary.said.begun != self._begun()

    def _is_outdated(self) -> bool:
        """Whether something was said of this round, and feedback has come since that changed the decision."""
        said = self._of_this_round()
        return said is not None and said.at is not None and not same_decision(said.at, self._decision())

    def _of_this_round(self) -> Said | None:
        """The last that was said, where it was said of this round."""
        said = None if self._boundary is None else self._boundary.said
        return said if said is not None and said.begun == self._begun() else None

    def _hand_over(self, through: OwnMixture, terms: Array, pending: PendingRounds, first: bool) -> None:
        """Tell a policy that mixes its rules itself what they propose; in the `first` round it begins with the medoid."""
        record = cast("MixingPolicy[object]", self._parts.record)

        def told(state: object) -> object:
            state = record.begin(state, through.first(terms)) if first else state
            return record.propose(state, through.awake(terms, record.weights(state))[0])

        pending.tell(told)

    def _keep(self, limits: KnownLimits, pending: PendingRounds, terms: Array | None) -> Array | None:
        """Move the state onto the limits that are known, where it can be; else what to play in place of its decision, None for itself.

        With rules that is a mixture of them, where one keeps the limits.
        """
        boundary, record = self._boundary or Boundary(None), self._parts.record
        through, domain, outer = boundary.through, self._parts.domain, self._actions
        if domain is None or outer is None:
            raise InputError("known cannot be used: the policy does not say what its domain is")
        map = None if through is None or terms is None else through.read(terms, pending.ready.x).map
        if map is not None and limits.functions and through is not None:
            raise InputError(f"known must be halfspaces (A, b) with {through.keyword}, not functions")
        rows = (limits.A, limits.b) if map is None else map.limits(limits.A, limits.b)
        movable = capability(record, Movable)
        mixed, w = isinstance(through, RuleMixture) and map is not None, None
        if mixed or movable is not None:
            metric = None if movable is None else movable.metric(pending.ready.state)
            projector = self._projector("decisions", domain)
            w = nearest_kept(domain, *rows, pending.ready.x, projector, limits.functions, metric)
        if movable is not None and w is not None and (w != pending.ready.x).any():
            state = movable.move(pending.ready.state, w)
            if state is not None:
                pending.tell(lambda _: state)
        if limits.kept_by(self._stands_for(pending.ready.x, terms), outer):
            return None
        if mixed and w is not None and limits.kept_by(mixture := self._stands_for(w, terms), outer):
            return mixture
        y = pending.ready.x if map is None else map.at(pending.ready.x)
        x = nearest_kept(outer, limits.A, limits.b, y, self._projector("actions", outer), limits.functions)
        if x is None:
            raise refusal(outer, limits)
        return x

    def _projector(self, of: str, domain: Domain) -> CutProjector | None:
        """What finds the nearest points of the domain of decisions or of actions; None where nothing but its projection does."""
        if of not in self._projectors:
            self._projectors = {**self._projectors, of: projector(domain)}
        return self._projectors[of]

    @property
    def _dim(self) -> int:
        """How many coordinates an action has."""
        domain = self._actions
        return len(self._start) if domain is None else domain.dim

    def _valid(self) -> Said | None:
        """What was said of this round; None where nothing was, and nothing had to be."""
        boundary = self._boundary
        if boundary is None:
            return None
        said = self._of_this_round()
        if said is not None:
            if self._is_outdated():
                raise InputError(
                    "known and rules must be given again, and so must a hint: since they were, feedback has come that changed the decision"
                )
            return said
        if boundary.through is not None:
            raise InputError(boundary.through.wanted)
        return None

    def _action(self) -> Array:
        """What is to be played in this round."""
        said = self._valid()
        return self._stands_for(self._decision(), None if said is None else said.terms, None if said is None else said.action)

    def _stands_for(self, w: Array, terms: Array | None, action: Array | None = None) -> Array:
        """The action that a decision stands for, or what is played in place of it."""
        through = None if self._boundary is None else self._boundary.through
        if action is not None:
            return action.copy()
        return w if through is None or terms is None else through.action(terms, w)

    def _begin_waiting(self, begin: Callable[[], Ticket], waiting: dict[int, Waiting]) -> Ticket:
        """Begin a round that waits, with what was said of it."""
        said = self._valid()
        ticket = begin()
        if said is None:
            return ticket
        each = waiting[ticket.id] = replace(waiting[ticket.id], terms=said.terms, action=said.action)
        return replace(ticket, x=self._stands_for(each.x, said.terms, said.action).copy())

    # --- after it --------------------------------------------------------------------------------------------------------------------

    def _translate(
        self,
        f: ArrayLike,
        df: Numbers,
        g: Numbers,
        dg: Numbers,
        modulus: Numbers,
        ticket: TicketGiven,
        played: Numbers,
    ) -> tuple[ArrayLike, Numbers, Numbers, Numbers]:
        """An observation in the world of decisions; what it is charged is noted, and counts once the observation does."""
        boundary = self._boundary or Boundary(None)
        through, waiting = boundary.through, None if ticket is None else self._now.pending().find(ticket)[1]
        if through is not None and not isinstance(through, OwnMixture) and modulus is not None:
            raise InputError(f"modulus cannot be given with {through.keyword}: a cost is not strongly convex in the weights")
        w, said = (self._decision(), self._valid()) if waiting is None else (waiting.x, waiting)
        terms, action = (None, None) if said is None else (said.terms, said.action)
        map, y, x = RoundReading(None, w, w) if through is None or terms is None else through.read(terms, w)
        x = self._admissible(played) if played is not None else x if action is None else action
        with np.errstate(all="ignore"):
            seen = checked_feedback(x, self._limits, f, df, g, dg, modulus, seen=self._most_seen())
            moved = x is not y and bool((x != y).any())
            read = seen
            if moved:
                read = seen._replace(x=y, f=float(seen.f) + float(seen.df @ (y - x)), g=seen.g + seen.dg @ (y - x))
            if map is not None:
                read = read._replace(x=w, df=map.pull(read.df), dg=map.pull(read.dg))
        memory = self._memory()
        after = memory._replace(moved=memory.moved.after(seen, read, *self._scales(seen))) if moved else memory
        if terms is not None and isinstance(through, RuleMixture) and through.asked:
            after = after._replace(past=(*memory.past, frozen(seen))[-REMEMBERED:], states=through.learn(memory.states, terms, seen))
        elif terms is not None and isinstance(through, AffineFeatures):
            after = after._replace(scale=through.scale_of(terms, memory.scale))
        self._boundary = boundary._replace(seen=seen, turn=self.rounds, before=memory, after=after)
        cost = (0.0, None) if df is None else (float(read.f), read.df)
        return (*cost, None, None) if g is None else (*cost, read.g, read.dg)

    def _admissible(self, played: Numbers) -> Array:
        """What was played, an action of the domain: that is what all is compared with."""
        domain = self._actions
        x = validate.vector("played", played, self._dim)
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

    def _memory(self) -> Memory:
        """What the observations so far have left."""
        boundary = self._boundary
        if boundary is None:
            return Memory()
        return boundary.before if boundary.turn == self.rounds else boundary.after

    def _undo(self) -> None:
        """Forget an observation that was refused."""
        if self._boundary is not None and self._boundary.turn == self.rounds:
            self._boundary = self._boundary._replace(after=self._boundary.before)

    def _charge(self) -> Moved:
        """What is charged for what was played in place of decisions."""
        return self._memory().moved

    # --- what is said of it ----------------------------------------------------------------------------------------------------------

    def _values_played(self) -> Array | None:
        """The values of the limits at what was played in the round that is being observed, where that was not the decision."""
        boundary = self._boundary
        if boundary is None or boundary.seen is None or boundary.after.moved is boundary.before.moved:
            return None
        return boundary.seen.g

    def _entry(self, feedback: Feedback, number: int | None) -> HistoryEntry:
        """What `history` is told of a round: what was played."""
        entry = super()._entry(feedback, number)
        boundary, charge = self._boundary, self._charge()
        if boundary is not None and boundary.seen is not None:
            entry["x"] = boundary.seen.x.copy()
            if boundary.after.moved is not boundary.before.moved:
                entry["f"], entry["g"] = float(boundary.seen.f), boundary.seen.g.copy()
                entry["violation"] = np.maximum(entry["g"], 0.0)
            entry["cost"] += charge.cost
            entry["ccv"] = float(self._violations().max())
        return entry

    def _violations(self) -> Array:
        """The cumulative violation of every constraint."""
        hard = self._now.played.totals.hard if self._live is None else self._live.hard
        return np.array(hard) if self._boundary is None else _sum(hard, self._charge().hard)

    def _balances(self, nested: bool) -> Array:
        """The sum of every constraint's values."""
        return _sum(self._stand(nested).played.totals.signed, self._charge().signed)

    def _as_played(self, proof: Certificate, now: Standing) -> Certificate:
        """A certificate of the decisions as one of what was played: with what is charged, and what the rules are worth."""
        boundary, charge = self._boundary, self._charge()
        if names := self._parts_mixed():
            proof = replace(proof, rules=names, weights=self._own_weights(now))
        if boundary is None:
            return proof
        proof = replace(proof, known=boundary.known)
        if boundary.through is not None:
            proof = replace(proof, compared=boundary.through.compared)
        if isinstance(boundary.through, RuleMixture):
            proof = replace(proof, rules=boundary.through.names, weights=self._weights(boundary.through, now))
        if not charge.rounds:
            return proof
        above = tuple((level, count + int(more)) for (level, count), more in zip(proof.above, charge.above.tolist(), strict=True))
        return replace(
            proof,
            cost=proof.cost + charge.cost,
            ccv=float(_sum(now.played.totals.hard, charge.hard).max()),
            violations=_sum(now.played.totals.hard, charge.hard),
            regret=_more(proof.regret, charge.cost),
            regret_any=_more(proof.regret_any, charge.cost),
            regret_algorithm=None if self._leans_on_curvature else _more(proof.regret_algorithm, charge.cost),
            violated=proof.violated + charge.violated,
            above=above,
            bound=self._bound_as_played(proof.bound),
            balance=None if proof.balance is None else _sum(proof.balance, charge.signed),
            moved=charge,
        )

    @property
    def _leans_on_curvature(self) -> bool:
        """Whether the policy's proof subtracts what costs are above their tangents at its decisions: read at another point they are not."""
        told = (getattr(node, name, None) for node in records.nodes(self._parts.record) for name in ("modulus", "exp_concavity"))
        return any(value is not None and bool(np.any(value)) for value in told)

    def _bound_as_played(self, bound: Bound) -> Bound:
        """The policy's theorem with what is charged."""
        charge = self._charge()
        if not charge.rounds:
            return bound
        if self._leans_on_curvature:
            return Bound(why=LEANS)
        hard, signed = max(0.0, float(charge.hard.max())), max(0.0, float(charge.signed.max()))
        return bound._replace(
            regret=_more(bound.regret, charge.cost),
            ccv=_more(bound.ccv, hard),
            soft=_more(bound.soft, signed),
            squared=None,
            dynamic=_more(bound.dynamic, charge.cost),
        )


def same_decision(one: Array | None, other: Array) -> bool:
    """Whether these are the same numbers."""
    return one is not None and one.shape == other.shape and not (one != other).any()


def _more(value: Scalar | None, charge: float) -> float | None:
    return None if value is None else float(value) + charge


def _sum(values: Array, more: Array) -> Array:
    """The sum of what there is of each constraint, of which there may be more in one than in the other."""
    size = max(len(values), len(more))
    return padded(values, size) + padded(more, size)
