"""Where a session stands, as one value: `step` makes the next one of it, and nothing in it is changed in place.

(Rows of the ledger's open batch are written beyond those that a state counts: nobody reads them before a state does.)

`Plan` is what a session is made with; no round changes it. `SessionState` is the rest, in two parts: what every round changes, and what
changes now and then.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from bridle import records
from bridle.core import BridleWarning, CountsRates, Curvature, Domain, Feedback, LearnsLate, Policy, SharesCuts, capability
from bridle.game.totals import RunningTotals
from bridle.ops import Array
from bridle.policies.registry import Configured, learns_constraints
from bridle.policies.round_maps import RoundTerms, RuleMixture
from bridle.session.certificates.certificate import UNMOVED, Moved
from bridle.session.certificates.ledger import Ledger
from bridle.session.feedback import Limits
from bridle.storage import Facts

put: Any = tuple.__new__
"""Makes a NamedTuple in half the time."""


class UnlikeTold(NamedTuple):
    """How the costs of a copy's rounds differ from what the policy was told of their strong convexity; moduli in units of that one.

    `blank`: rounds without a cost; `struck`: those of them that violate a constraint. `lacking`: how far the moduli, the first counted as
    at least 1, add up to less than the number of costs. `short` and `share` are those of `Curvature`. Other rounds change none of it.
    """

    blank: float = 0.0
    struck: float = 0.0
    lacking: float = 0.0
    short: float = 0.0
    share: float = 1.0

    def after(self, updates: int, modulus: float, violated: bool, cost: bool) -> UnlikeTold:
        """With one more round, after `updates` of them, whose cost has this modulus; without a cost it is 0."""
        blank, costs = self.blank + (not cost), updates - self.blank + cost
        moduli = updates - self.blank - self.lacking + modulus if updates else max(modulus, 1.0)
        # The sum for each cost is least now, or after the next round that is as told, and then grows towards 1.
        least = min(moduli / costs if cost else 1.0, (moduli + 1.0) / (costs + 1.0))
        return UnlikeTold(
            blank, self.struck + (violated and not cost), costs - moduli, self.short + max(0.0, 1.0 - modulus), min(self.share, least)
        )

    def curvature(self, updates: int) -> Curvature:
        """What `updates` rounds have shown."""
        costs = updates - self.blank
        return Curvature(costs, self.struck, costs - self.lacking, self.short, self.share)


AS_TOLD = UnlikeTold()
"""Every cost so far was as strongly convex as the policy was told."""


class Copy(NamedTuple):
    """One copy of the policy: its state and next decision, how many updates it had, and how many shared halfspaces it knows of.

    `costs` says how its costs differ from what the policy was told of their curvature.
    """

    state: Any
    x: Array
    updates: int
    steered: int
    costs: UnlikeTold = AS_TOLD


class Shared(NamedTuple):
    """The halfspace that a copy has found in a round."""

    number: int
    copy: int
    normal: Array
    level: float


class Waiting(NamedTuple):
    """A round that waits for feedback: its decision, and the copy that played it.

    `terms` is what the map is made of through which it is played, where it is; `action` what is played in place of the decision; `made`
    what the decision was made of, where the policy must be told again.
    """

    x: Array
    copy: int
    terms: Array | None = None
    action: Array | None = None
    made: object | None = None


class Late(NamedTuple):
    """The copies of the policy beyond the first, and the rounds that wait, by the numbers of their tickets.

    `idle` are the copies that wait for nothing, ascending: the first plays next. `lost` counts rounds whose feedback will never come.
    `shared` are the halfspaces that copies have found, by their rounds, and `ever_shared` how many there ever were. Tickets carry the name
    of the `run`; their numbers are those of the rounds plus `offset`, which was drawn after `since` rounds were begun.
    """

    others: tuple[Copy, ...] = ()
    idle: tuple[int, ...] = (0,)
    waiting: Mapping[int, Waiting] = {}
    lost: int = 0
    shared: tuple[Shared, ...] = ()
    ever_shared: int = 0
    run: str = ""
    offset: int = 0
    since: int = 0


class Said(NamedTuple):
    """What was said before the round that comes after `begun` others.

    `terms` is what its map is made of; `action` what is played in place of the decision, where that does not keep the limits that are known
    and the policy's state cannot move. Where the state was changed, `at` is the decision that it has since, and `before` what it was, so
    that the last word on a round counts: as long as it is the same copy (`front`) that plays next, and no feedback has come since `turn`.
    """

    begun: int
    terms: Array | None = None
    action: Array | None = None
    at: Array | None = None
    before: object = None
    turn: int = -1
    front: int = 0


Past: TypeAlias = tuple[Feedback, ...]
"""The last observations, as they came, the newest last."""


class Memory(NamedTuple):
    """What observations leave beside the policy's state: what is charged for actions that were not the decision, the last observations,
    the states of policies that are rules, and the largest size of every feature. What nobody needs is left empty.
    """

    moved: Moved = UNMOVED
    past: Past = ()
    states: tuple[object, ...] = ()
    scale: Array | None = None


class Changes(NamedTuple):
    """The offset of each limit that was moved, and a list of what was changed when."""

    offsets: tuple[float, ...] = ()
    listed: tuple[Facts, ...] = ()


class Watch(NamedTuple):
    """A stretch in which some limits were violated whenever somebody looked: since which round, where the action was, and which limits."""

    since: int
    x: Array
    limits: Array  # 1 or 0 for each


class WarningLog:
    """Which kinds of warning a session has given, by name, and in which round; `alarms` are these warnings, since it was made
    or read.

    `sizes`: the longest gradient of a cost and of a constraint, and the largest constraint value, when assumptions were last checked.
    `watch`: limits that have been violated for some time.
    """

    def __init__(self) -> None:
        self.rounds: dict[str, int] = {}
        self.alarms: tuple[BridleWarning, ...] = ()
        self.sizes = (0.0, 0.0, 0.0)
        self.watch: Watch | None = None

    def clone(self) -> WarningLog:
        """A log of its own that begins like this one."""
        other = copy(self)
        other.rounds = self.rounds.copy()
        return other

    def fresh(self, kind: type[BridleWarning]) -> bool:
        """Whether no warning of this kind was given yet."""
        return kind.__name__ not in self.rounds

    def warn(self, kind: type[BridleWarning], message: str, round: int, **figures: object) -> None:
        """Note a warning, unless one of this kind was given before."""
        if self.fresh(kind):
            self.rounds[kind.__name__] = round
            self.alarms += (kind(message, round, **figures),)


class RoundState(NamedTuple):
    """What every round changes: the first copy of the policy, how many rounds were begun, the totals, and how many were observed."""

    copy: Copy
    begun: int
    totals: RunningTotals
    rounds: int


class SlowState(NamedTuple):
    """What changes now and then.

    `start` is the first decision, and `first` how many constraints the first record had, 0 before it: rounds of so many are compiled.
    `known`: whether limits were known before acting, in some round. `next_check` is the round after which to look around at the latest,
    `next_tick` the one after which to ask whether to do so before.
    """

    late: Late
    ledger: Ledger | None
    log: WarningLog
    limits: Limits
    start: Array
    first: int = 0
    memory: Memory = Memory()
    said: Said | None = None
    known: bool = False
    changes: Changes = Changes()
    next_check: float = 0.0
    next_tick: float = 0.0


class SessionState(NamedTuple):
    """Where a session stands."""

    now: RoundState
    slow: SlowState

    @property
    def copies(self) -> tuple[Copy, ...]:
        """The copies of the policy."""
        return (self.now.copy, *self.slow.late.others)

    @property
    def alone(self) -> bool:
        """Whether one copy of the policy plays every round, and none waits."""
        return not self.slow.late.others and not self.slow.late.waiting

    @property
    def most_seen(self) -> int | None:
        """The most constraints that a record has had so far; None before the first."""
        return len(self.now.totals.hard) if self.now.rounds else None

    def with_copy(self, at: int, copy: Copy) -> SessionState:
        """With this copy of the policy at a place, which may be the next free one."""
        if not at:
            return SessionState(self.now._replace(copy=copy), self.slow)
        others = self.slow.late.others
        return self.with_late(others=(*others[: at - 1], copy, *others[at:]))

    def with_late(self, **changed: Any) -> SessionState:
        """With other rounds that wait."""
        return SessionState(self.now, self.slow._replace(late=self.slow.late._replace(**changed)))

    def with_slow(self, **changed: Any) -> SessionState:
        """With something else that changes now and then."""
        return SessionState(self.now, self.slow._replace(**changed))

    def ledger(self) -> Ledger | None:
        """The ledger with its open rows counted; the caller's own."""
        if self.slow.ledger is None:
            return None
        ledger = self.slow.ledger.clone()
        ledger.open = self.now.rounds - ledger.rounds_read
        return ledger


@dataclass(frozen=True, eq=False)
class Plan:
    """What a session is made with.

    `policy` is what the caller gave, `configured` the same where it is registered, and `record` what plays. `k` is the number of
    constraints, where it is fixed; `free`: the first round may choose its weights. `memo` holds what is worked out again from the plan and
    a state alone.
    """

    policy: Any
    record: Policy[Any]
    domain: Domain | None
    limits: Limits
    names: tuple[str, ...] = ()
    late: str = "copies"
    pending: int = 1000
    timeout: int | None = None
    engine: str = "python"
    free: bool = False
    tries: int = 0
    memo: dict[str, Any] = field(default_factory=dict, repr=False)
    # What follows from these, looked up once: the map of rounds, and the rules of which actions are mixtures; what the policy can do.
    through: RoundTerms | None = field(init=False)
    rules: RuleMixture | None = field(init=False)
    learns: bool = field(init=False)
    counts: CountsRates | None = field(init=False)
    shares: SharesCuts | None = field(init=False)
    remembers: LearnsLate | None = field(init=False)
    curved: bool = field(init=False)
    plain: bool = field(init=False)
    asks: bool = field(init=False)
    modulus: float | None = field(init=False)
    horizon: float = field(init=False)

    def __post_init__(self) -> None:
        told = (getattr(node, "modulus", None) for node in records.nodes(self.record))
        through = None if self.configured is None else self.configured.through
        rules = through if isinstance(through, RuleMixture) else None
        found: dict[str, object] = {
            "through": through,
            "rules": rules,
            "learns": learns_constraints(self.record),
            "counts": capability(self.record, CountsRates),
            "shares": capability(self.record, SharesCuts),
            "remembers": capability(self.record, LearnsLate) if self.late == "pool" else None,
            # A round without a cost is another than one with a cost of 0: it has no curvature.
            "curved": any(modulus is not None and bool(np.any(modulus)) for modulus in told),
            "plain": through is None and not self.tries,
            # All rules are the session's own: they are asked before each decision.
            "asks": rules is not None and not rules.callers,
            "modulus": self.parameter("modulus"),
        }
        horizon = self.parameter("horizon")
        found["horizon"] = inf if horizon is None else float(horizon)
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "memo": {}}

    def changed(self, **fields: Any) -> Plan:
        """The plan with something else."""
        return replace(self, memo={}, **fields)

    @property
    def configured(self) -> Configured | None:
        """The policy, where it is registered."""
        return self.policy if isinstance(self.policy, Configured) else None

    @property
    def called(self) -> str:
        """The policy's name."""
        configured = self.configured
        return type(self.record).__name__ if configured is None else configured.name

    @property
    def actions(self) -> Domain | None:
        """The domain of what is played."""
        return self.domain if self.through is None else self.through.outer

    def parameter(self, name: str) -> float | None:
        """A number that the policy was given as a parameter; None where it was not."""
        configured = self.configured
        return None if configured is None else cast("float | None", configured.parameters.get(name))

    def dim(self, state: SessionState) -> int:
        """How many coordinates an action has."""
        return len(state.slow.start) if self.actions is None else self.actions.dim

    def fresh(self, start: Array) -> Copy:
        """A copy of the policy before its first round."""
        state = self.record.init(start)
        return Copy(state, self.decided(state), 0, 0)

    def decided(self, state: object) -> Array:
        """What the policy decides in a state."""
        return np.asarray(self.record.decide(state), dtype=float)

    def begin(self, start: Array, ledger: Ledger | None) -> SessionState:
        """Where a session stands before its first round."""
        zeros = np.zeros(self.limits.k or 1)
        memory = Memory(states=() if self.rules is None else self.rules.states)
        slow = SlowState(Late(), ledger, WarningLog(), self.limits, start, memory=memory)
        return SessionState(RoundState(self.fresh(start), 0, RunningTotals(0.0, zeros, zeros.copy()), 0), slow)
