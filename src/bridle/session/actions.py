"""What is played, between the policy's decision and the caller: actions that are mixtures of rules, and actions that somebody else chose.

The policy, the ledger and the totals are about the policy's decisions w_t, each read at w_t itself. Every observation is translated to
that once, before anything else looks at it:

map      Where rounds are played through a map (`bridle.policies.round_maps`), y = B w + b stands for w, and gradients are pulled back, B'p.
played   Where x was played in place of y, values and gradients at x are read at y as affine functions: f + <df, y - x>, g + <dg, y - x>.
         These are below the costs and the limits, so an action that keeps the limits keeps what is read, and everything that is proved of
         the decisions holds for it. What the difference adds, to cost and to each limit, is charged (`Moved`): the sum of <df, x - y>,
         and what was violated at x beyond what was read at y. Everything that a caller sees has it added.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from bridle import validate
from bridle.core import Domain, Feedback, Hint, Hintable, InputError, Movable, Observation, Policy, Prior, S, capability
from bridle.ops import Array
from bridle.policies.round_maps import AffineFeatures, OwnMixture, RoundReading, RoundTerms, RuleMixture
from bridle.session import late
from bridle.session.certificates.feasibility import FLOOR
from bridle.session.certificates.ledger import Ledger
from bridle.session.feedback import Numbers, checked_feedback
from bridle.session.prior import KnownLimits, checked_hint, known_limits, nearest_kept, projector, refusal
from bridle.session.state import Memory, Plan, Said, SessionState
from bridle.session.tried_points import refuse_extras
from bridle.solvers.nearest_point import CutProjector

REMEMBERED = 1000
"""How many observations rules that are functions of the past are shown."""

OUTDATED = "known and rules must be given again, and so must a hint: since they were, feedback has come that changed the decision"


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


# --- what was said ------------------------------------------------------------------------------------------------------------------------


def of_this_round(state: SessionState) -> Said | None:
    """The last that was said, where it was said of this round."""
    said = state.slow.said
    return said if said is not None and said.begun == state.now.begun else None


def is_outdated(plan: Plan, state: SessionState) -> bool:
    """Whether something was said of this round, and feedback has come since that changed the decision."""
    said = of_this_round(state)
    return said is not None and said.at is not None and not same_decision(said.at, late.ready(plan, state).x)


def valid(plan: Plan, state: SessionState) -> Said | None:
    """What was said of this round; None where nothing was, and nothing had to be."""
    said = of_this_round(state)
    if said is None:
        if plan.through is not None:
            raise InputError(plan.through.wanted)
        return None
    if is_outdated(plan, state):
        raise InputError(OUTDATED)
    return said


def unsaid(plan: Plan, state: SessionState) -> bool:
    """Whether nothing was said of this round, and nobody but the session's own rules has to."""
    return plan.asks and of_this_round(state) is None


def is_silent(prior: Prior) -> bool:
    """Whether it says nothing."""
    return prior.rules is None and prior.features is None and prior.known is None and prior.hint is None


def says_terms_alone(plan: Plan, state: SessionState, prior: Prior) -> bool:
    """Whether this changes nothing of the policy: it says what the map of the round is made of, and no more."""
    said = of_this_round(state)
    touched = (said is not None and said.at is not None) or (plan.free and not state.now.begun)
    own = plan.through is None or isinstance(plan.through, OwnMixture)
    return not own and not touched and prior.known is None and prior.hint is None


def stands_for(plan: Plan, w: Array, terms: Array | None, action: Array | None = None) -> Array:
    """The action that a decision stands for, or what is played in place of it."""
    if action is not None:
        return action
    return w if plan.through is None or terms is None else plan.through.action(terms, w)


def action(plan: Plan, state: SessionState) -> Array:
    """What is to be played in this round."""
    said = valid(plan, state)
    w = late.ready(plan, state).x
    return w if said is None else stands_for(plan, w, said.terms, said.action)


# --- before acting --------------------------------------------------------------------------------------------------------------------


def say(plan: Plan, state: SessionState, prior: Prior) -> SessionState:
    """With what is said of this round; what was said of it before is forgotten."""
    (now, slow), through = state, plan.through
    if plan.tries:
        refuse_extras(plan.called, known=prior.known)
    last = of_this_round(state)
    terms = None if last is None else last.terms
    for keyword in ("rules", "features"):
        if getattr(prior, keyword) is not None and (made := mapped(plan, keyword).keyword) != keyword:
            raise InputError(f"{keyword} cannot be given: the policy was made with {made}=")
    if through is not None and (terms is None or getattr(prior, through.keyword) is not None):
        terms = made_terms(through, getattr(prior, through.keyword), slow.memory)
    limits = None if prior.known is None else known_limits(prior.known, plan.dim(state))
    expected = None if prior.hint is None else checked(plan, state, prior.hint)
    first, own = plan.free and not now.begun, isinstance(through, OwnMixture)
    if limits is None and expected is None and not first and (last is None or last.at is None) and not own:
        return state.with_slow(said=Said(now.begun, terms))
    turn, front = now.rounds, late.front(plan, state)
    untouched = last is not None and last.before is not None and (last.turn, last.front) == (turn, front)
    if last is not None and untouched and same_decision(last.at, late.ready(plan, state).x):
        state = late.told(plan, state, last.before)
    before, start = late.ready(plan, state).state, slow.start
    if isinstance(through, OwnMixture) and terms is not None:
        record = cast("MixingPolicy[Any]", plan.record)
        begun = record.begin(before, through.first(terms)) if first else before
        state = late.told(plan, state, record.propose(begun, through.awake(terms, record.weights(begun))[0]))
    elif isinstance(through, RuleMixture) and terms is not None and first:
        start = through.first(terms)
        state = state.with_copy(0, plan.fresh(start))
        before = state.now.copy.state
    if expected is not None:
        state = late.told(plan, state, cast(Hintable, plan.record).hinted(late.ready(plan, state).state, expected))
    instead = None
    if limits is not None:
        state, instead = keep(plan, state, limits, terms)
    ready = late.ready(plan, state)
    at, before = (None, None) if limits is None and ready.state is before else (ready.x, before)
    said = Said(now.begun, terms, instead, at, before, turn, front)
    return state.with_slow(said=said, start=start, known=slow.known or limits is not None)


def mapped(plan: Plan, what: str) -> RoundTerms:
    """The map of a session's rounds, of which `what` is asked or said."""
    if plan.through is None:
        keyword = what if what in ("rules", "features") else "rules= and features="
        raise InputError(f"{what}: the policy of this session was made without {keyword.rstrip('=')}=, and plays its decisions as they are")
    return plan.through


def checked(plan: Plan, state: SessionState, hint: object) -> Hint:
    """A hint, checked; refused where the policy takes none."""
    if capability(plan.record, Hintable) is None:
        raise InputError(f"hint cannot be given: policy {plan.called} takes no predictions (`optimistic` does)")
    if plan.through is not None:
        raise InputError(f"hint cannot be given with {plan.through.keyword}: it would be about weights, not about actions")
    return checked_hint(cast(Any, hint), plan.dim(state), state.slow.limits.largest)


def made_terms(through: RoundTerms, given: object, memory: Memory) -> Array:
    """What the map of this round is made of: what the caller gives, and what rules say that are asked."""
    if isinstance(through, AffineFeatures):
        if given is None:
            raise InputError(through.wanted)
        return through.scaled(given, memory.scale)
    if given is None and through.callers:
        raise InputError(through.wanted)
    return through.checked(given, through.ask(memory.past, memory.states))


def keep(plan: Plan, state: SessionState, limits: KnownLimits, terms: Array | None) -> tuple[SessionState, Array | None]:
    """The policy's state moved onto the limits that are known, where it can be; else what to play in place of its decision.

    With rules that is a mixture of them, where one keeps the limits.
    """
    through, domain, outer, ready = plan.through, plan.domain, plan.actions, late.ready(plan, state)
    if domain is None or outer is None:
        raise InputError("known cannot be used: the policy does not say what its domain is")
    map = None if through is None or terms is None else through.read(terms, ready.x).map
    if map is not None and limits.functions and through is not None:
        raise InputError(f"known must be halfspaces (A, b) with {through.keyword}, not functions")
    rows = (limits.A, limits.b) if map is None else map.limits(limits.A, limits.b)
    movable = capability(plan.record, Movable)
    mixed, w = isinstance(through, RuleMixture) and map is not None, None
    if mixed or movable is not None:
        metric = None if movable is None else movable.metric(ready.state)
        w = nearest_kept(domain, *rows, ready.x, nearest_to(plan, "decisions", domain), limits.functions, metric)
    if movable is not None and w is not None and (w != ready.x).any():
        moved = movable.move(ready.state, w)
        if moved is not None:
            state = late.told(plan, state, moved)
            ready = late.ready(plan, state)
    if limits.kept_by(stands_for(plan, ready.x, terms), outer):
        return state, None
    if mixed and w is not None and limits.kept_by(mixture := stands_for(plan, w, terms), outer):
        return state, mixture
    y = ready.x if map is None else map.at(ready.x)
    x = nearest_kept(outer, limits.A, limits.b, y, nearest_to(plan, "actions", outer), limits.functions)
    if x is None:
        raise refusal(outer, limits)
    return state, x


def nearest_to(plan: Plan, of: str, domain: Domain) -> CutProjector | None:
    """What finds the nearest points of the domain of decisions or of actions; None where nothing but its projection does."""
    if of not in plan.memo:
        plan.memo[of] = projector(domain)
    return cast("CutProjector | None", plan.memo[of])


# --- after it ---------------------------------------------------------------------------------------------------------------------------


class Reading(NamedTuple):
    """An observation as it came; f, df, g and dg as they are read at the decision; what it leaves behind; and whether something else was
    played than what the decision stands for.
    """

    seen: Feedback
    read: tuple[Any, Any, Any, Any]
    memory: Memory
    moved: bool


def read(plan: Plan, state: SessionState, o: Observation, number: int | None) -> Reading:
    """An observation at what was played, read at the decision: that of the round, or of a ticket's number."""
    through, slow = plan.through, state.slow
    if through is not None and not isinstance(through, OwnMixture) and o.modulus is not None:
        raise InputError(f"modulus cannot be given with {through.keyword}: a cost is not strongly convex in the weights")
    if number is None:
        w, said = late.ready(plan, state).x, valid(plan, state)
        terms, instead = (None, None) if said is None else (said.terms, said.action)
    else:
        waits = slow.late.waiting[number]
        w, terms, instead = waits.x, waits.terms, waits.action
    map, y, x = RoundReading(None, w, w) if through is None or terms is None else through.read(terms, w)
    x = admissible(plan, state, o.played) if o.played is not None else x if instead is None else instead
    with np.errstate(all="ignore"):
        seen = checked_feedback(x, slow.limits, o.f, o.df, o.g, o.dg, o.modulus, seen=state.most_seen)
        at, moved = seen, x is not y and bool((x != y).any())
        if moved:
            at = seen._replace(x=y, f=float(seen.f) + float(seen.df @ (y - x)), g=seen.g + seen.dg @ (y - x))
        if map is not None:
            at = at._replace(x=w, df=map.pull(at.df), dg=map.pull(at.dg))
    memory = slow.memory
    if moved:
        memory = memory._replace(moved=memory.moved.after(seen, at, *scales(slow.ledger, seen)))
    if terms is not None and isinstance(through, RuleMixture) and through.asked:
        memory = memory._replace(past=(*memory.past, frozen(seen))[-REMEMBERED:], states=through.learn(memory.states, terms, seen))
    elif terms is not None and isinstance(through, AffineFeatures):
        memory = memory._replace(scale=through.scale_of(terms, memory.scale))
    cost = (0.0, None) if o.df is None else (float(at.f), at.df)
    return Reading(seen, (*cost, None, None) if o.g is None else (*cost, at.g, at.dg), memory, moved)


def admissible(plan: Plan, state: SessionState, played: Numbers) -> Array:
    """What was played, an action of the domain: that is what all is compared with."""
    x = validate.vector("played", played, plan.dim(state))
    if plan.actions is not None and not plan.actions.contains(x):
        raise InputError(f"played must lie in the domain, as every action that it is compared with; {validate.show(x)} does not")
    return x


def scales(ledger: Ledger | None, seen: Feedback) -> tuple[Array, float]:
    """The levels whose violations are counted, and what of a constraint's value is rounding."""
    if ledger is None:
        return np.zeros(0), 0.0
    steepest = float(np.sqrt((seen.dg * seen.dg).sum(axis=1)).max()) * float(np.abs(seen.x).max(initial=1.0))
    return np.asarray(ledger.levels), FLOOR * ledger.domain.tolerance * max(float(np.abs(seen.g).max()), steepest)


def frozen(seen: Feedback) -> Feedback:
    """An observation whose arrays nobody can change: rules are shown them again and again."""
    copied = seen._replace(x=seen.x.copy(), df=seen.df.copy(), g=seen.g.copy(), dg=seen.dg.copy())
    for leaf in (copied.x, copied.df, copied.g, copied.dg):
        leaf.flags.writeable = False
    return copied


def same_decision(one: Array | None, other: Array) -> bool:
    """Whether these are the same numbers."""
    return one is not None and one.shape == other.shape and not (one != other).any()
