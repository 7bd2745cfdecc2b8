"""A policy driven round by round by a caller: decide, observe, save, resume; and what the run proves about itself."""

from __future__ import annotations

import secrets
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cache
from threading import get_ident
from typing import TYPE_CHECKING, Any, Never, NotRequired, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from bridle import records, validate
from bridle.core import (
    Ask,
    Bound,
    BridleWarning,
    ChangeLimit,
    Command,
    Decide,
    Domain,
    Feedback,
    Forget,
    InputError,
    LearnsLate,
    Observation,
    Policy,
    Prior,
    S,
    Tried,
    capability,
    outside,
)
from bridle.domains.closed_form import BallSet
from bridle.engines import AUTO, check_name
from bridle.engines.mirror import require_compiler
from bridle.engines.round import check_compiled
from bridle.ops import Array
from bridle.policies.registry import Configured, domain_of, for_constraints, playing_record
from bridle.session import savefile
from bridle.session.actions import is_outdated, mapped, unsaid, valid
from bridle.session.certificates import text as report_text
from bridle.session.certificates.certificate import Certificate
from bridle.session.certificates.feasibility import TOLERANCE
from bridle.session.certificates.ledger import FAILURES, LEVELS, Ledger
from bridle.session.changes import changed
from bridle.session.feedback import LARGEST, Limits, Numbers, evaluate, is_sound, refuse_gone
from bridle.session.late import LATE_FORMS, Ticket, TicketGiven, ready, reborn
from bridle.session.prior import HintGiven, Known
from bridle.session.proof import Proof, added, parts_mixed, violations, weights
from bridle.session.rates import RateLimit
from bridle.session.state import Plan, SessionState, put
from bridle.session.step import PlayedRound, points_to_try
from bridle.session.stepper import QUIET, CompiledStepper, Outcome, stepper_for
from bridle.session.tried_points import as_asked, points_of, refuse_extras, values_at
from bridle.showing import count, later, number, short
from bridle.showing.marks import QUANTITIES
from bridle.storage import StrPath

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bridle.durable.session import DurableSession

T = TypeVar("T")
"""What is read of a session."""

ENGINES_OF_SESSIONS = ("auto", "python", "compiled")
"""What can play a session's rounds, one at a time."""


class HistoryEntry(TypedDict):
    """What `history` is told of a round; `ticket` where it has one."""

    round: int
    x: Array
    f: float
    g: Array
    violation: Array
    cost: float
    ccv: float
    ticket: NotRequired[int]


Listener: TypeAlias = Callable[[HistoryEntry], object] | None
"""Whoever is told of every round, if anybody is."""


class Decides(Protocol):
    """What a session is to whoever uses it, wherever it lives: in memory, in a database, behind a service."""

    def decide(self, *, rules: Numbers = None, features: Numbers = None, known: Any = None, hint: HintGiven = None) -> Array: ...

    def observe(
        self, f: ArrayLike = 0.0, df: Numbers = None, g: Numbers = None, dg: Numbers = None, modulus: Numbers = None, *,
        ticket: TicketGiven = None, played: Numbers = None,
    ) -> None: ...  # fmt: skip

    def step(self, cost: object, constraints: Sequence[object] = ()) -> Array: ...

    def ask(
        self, *, rules: Numbers = None, features: Numbers = None, known: Any = None, hint: HintGiven = None, points: int | None = None
    ) -> Ticket: ...

    def forget(self, ticket: Ticket | int) -> None: ...

    def change_limit(self, limit: str | int, *, offset: float | None = None, at_most: float | None = None) -> None: ...

    def certificate(self) -> Certificate: ...

    def report(self) -> str: ...

    @property
    def rounds(self) -> int: ...

    @property
    def cost(self) -> float: ...

    @property
    def ccv(self) -> float: ...

    @property
    def violations(self) -> Array: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def pending(self) -> int: ...

    @property
    def dropped(self) -> int: ...

    @property
    def weights(self) -> Array: ...

    @property
    def rates(self) -> tuple[RateLimit, ...]: ...

    @property
    def price(self) -> Array: ...


class SessionVerbs(ABC):
    """What a caller does with a session, round by round, and reads of it: written once, on `apply` and `read`."""

    policy: Any

    @abstractmethod
    def apply(self, command: Command) -> Any:
        """Let something happen; its answer."""

    @abstractmethod
    def read(self, what: Callable[[Plan, SessionState], T]) -> T:
        """What is read of the session where it stands, while nothing happens to it."""

    @abstractmethod
    def _decision(self) -> Array:
        """The decision of this round, where nothing is said before it."""

    plan: Plan
    """What the session is made with."""

    # --- rounds ---------------------------------------------------------------------------------------------------------------------------

    def decide(self, *, rules: Numbers = None, features: Numbers = None, known: Known = None, hint: HintGiven = None) -> Array:
        """The decision of this round; it stays the same until `observe` is called.

        The last word on a round counts: a second call with other arguments replaces the first.

        Parameters
        ----------
        rules : array_like of shape (rules, d), optional
            For a policy made with ``rules=``: what each rule proposes in this round, one a row, but for those that the session asks itself.
            A row of
            NaN is a rule that has nothing to say. The decision is a mixture of the others.
        features : array_like of shape (features,), optional
            For a policy made with ``features=``: the numbers that are known of this round. The decision is an affine function of them.
        known : tuple (A, b) or sequence of Function, optional
            Limits of this round that are known before acting, and are kept: ``A x <= b``, or convex functions that must not be above 0. The
            decision
            is the nearest action to what the policy wants. Where the policy's state can move there too (`anytime`, `soft`, `ons`, OGD,
            AdaGrad), its
            theorem stays as it is for the actions that keep these limits; elsewhere the way there is charged, as with `played`.
        hint : array_like of shape (d,) or dict, optional
            For a policy that takes predictions (`optimistic`): the gradient of the cost that is expected, or a dict with some of `df`, `g`
            and `dg` as for
            `observe`, and `x`, the action at which `g` is expected where that is not the decision. A wrong one costs little.

        Examples
        --------
        >>> import bridle
        >>> session = bridle.Session(bridle.policy("anytime", bridle.Box(0.0, 1.0, dim=2)))
        >>> session.decide(known=([[1.0, 1.0]], [0.5]))
        array([0.25, 0.25])
        """
        if rules is None and features is None and known is None and hint is None and not self.plan.asks:
            return self._decision()
        return cast(Array, self.apply(Decide(Prior(rules, features, known, hint))))

    def observe(
        self,
        f: ArrayLike = 0.0,
        df: Numbers = None,
        g: Numbers = None,
        dg: Numbers = None,
        modulus: Numbers = None,
        *,
        ticket: TicketGiven = None,
        played: Numbers = None,
        **gone: Never,
    ) -> None:
        """Take in what was revealed at the decision: values and gradients of the cost and the constraints.

        A round without a cost leaves out `f` and `df`; one without a constraint leaves out `g` and `dg`.

        Parameters
        ----------
        f : float, default 0.0
            The cost at the decision.
        df : array_like of shape (d,), optional
            A subgradient of the cost there. A policy that sees values alone (`bandit1`, `bandit2`) takes none. Where it tries n points a
            round, `f` holds n numbers and `g` n rows, one for each point, and the round is charged their averages.
        g : float or array_like of shape (k,), optional
            The constraints' values there; above 0 is a violation. k may change from round to round, unless the policy was made for a
            certain number
            or has learned it (`soft`).
        dg : array_like of shape (d,) or (k, d), optional
            A subgradient of each constraint there.
        modulus : float, optional
            The strong convexity of this round's cost, 0 or above, in cost per squared unit of action, where it is not what the policy was
            told.
        ticket : Ticket or int, optional
            What `ask` gave: this is the feedback of that round.
        played : array_like of shape (d,), optional
            The action that was played in place of the decision. Values and gradients are then those at it, and so are all totals and
            certificates.
            What the difference may have cost is charged to what is proved (`Certificate.moved`).

        Warns
        -----
        BridleWarning
            Something is wrong with the stream or the policy's assumptions; the round counts all the same.

        Examples
        --------
        >>> import bridle
        >>> session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> x = session.decide()
        >>> session.observe(f=0.3, df=[1.0, 0.0], g=[0.1, -1.0], dg=[[0.0, 1.0], [1.0, 0.0]])
        >>> session.rounds, session.violations
        (1, array([0.1, 0. ]))
        """
        if gone:
            refuse_gone(gone)
        self.apply(put(Observation, (f, df, g, dg, modulus, played, ticket)))

    def step(
        self,
        cost: object,
        constraints: Iterable[object] = (),
        *,
        rules: Numbers = None,
        features: Numbers = None,
        known: Known = None,
        hint: HintGiven = None,
    ) -> Array:
        """One whole round from functions: decide, evaluate, observe.

        `bridle.checks.check_functions` tests, before the first round, whether values and gradients of your own functions fit together.

        Returns the decision that was played; ``(n, d)`` of a policy that tries n points a round, which is asked for
        values alone.

        Parameters
        ----------
        cost : Function, tuple or callable
            The cost: a `Function`, a pair (value, gradient) of callables, or one callable, whose gradient JAX then takes.
        constraints : iterable of Function, tuple or callable, default ()
            The constraints, likewise; a `Function` may hold several.
        rules : array_like of shape (rules, d), optional
            As for `decide`.
        features : array_like of shape (features,), optional
            As for `decide`.
        known : tuple (A, b) or sequence of Function, optional
            As for `decide`.
        hint : array_like of shape (d,) or dict, optional
            As for `decide`.

        Examples
        --------
        >>> import bridle
        >>> session = bridle.Session(bridle.policy("sinha2024", bridle.Ball(2), horizon=100, lipschitz=1.0))
        >>> session.step(cost=bridle.Affine([1.0, 0.0]), constraints=[(lambda x: x[1] - 0.5, lambda x: [0.0, 1.0])])
        array([0., 0.])
        """
        refuse_other_constraints(constraints)
        rounds = None
        try:
            if self.plan.tries:
                refuse_extras(self.plan.called, rules=rules, features=features, known=known, hint=hint)
                points = self.read(points_to_try)
                x, (f, g) = as_asked(points), values_at(points, cost, tuple(constraints))
                said: dict[str, Any] = {"f": f, "g": g}
            else:
                x = self.decide(rules=rules, features=features, known=known, hint=hint)
                said = observed_at(x, cost, constraints)
            rounds = self.rounds
            self.observe(**said)
        except BaseException as wrong:
            mark(wrong, rounds is not None and getattr(wrong, "counted", self.rounds > rounds))
            raise
        return x

    def ask(
        self, *, rules: Numbers = None, features: Numbers = None, known: Known = None, hint: HintGiven = None, points: int | None = None
    ) -> Ticket:
        """Begin a round whose feedback comes later.

        Returns the round's `id`, for `observe` and `forget`, and its decision `x`, or the points to be tried, one a
        row.

        Parameters
        ----------
        rules : array_like of shape (rules, d), optional
            As for `decide`.
        features : array_like of shape (features,), optional
            As for `decide`.
        known : tuple (A, b) or sequence of Function, optional
            As for `decide`.
        hint : array_like of shape (d,) or dict, optional
            As for `decide`.
        points : int, optional
            How many points are tried in the round: 2 for `bandit2`, whose rounds begin in no other way; 1 for every other policy. A policy
            that sees values alone plays one round at a time. Default: 1.

        Warns
        -----
        DroppedWarning
            Too many rounds wait, and the oldest was given up.

        Examples
        --------
        >>> import bridle
        >>> session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> first, second = session.ask(), session.ask()
        >>> session.observe(f=0.3, df=[1.0, 0.0], ticket=second)
        >>> session.forget(first)
        >>> session.rounds, session.pending, session.dropped
        (1, 0, 1)
        >>> session = bridle.Session(bridle.policy("bandit2", bridle.Ball(2), horizon=100, lipschitz=1.0))
        >>> ticket = session.ask(points=2)
        >>> session.observe(f=ticket.x @ [1.0, 0.0], g=ticket.x @ [0.0, 1.0] - 0.5, ticket=ticket)
        >>> ticket.x.shape, session.rounds
        ((2, 2), 1)
        """
        self.refuse_other_points(points)
        return cast(Ticket, self.apply(Ask(Prior(rules, features, known, hint), secrets.token_hex(8))))

    def refuse_other_points(self, points: int | None) -> None:
        """Refuse to begin a round with another number of points than the policy tries."""
        plan = self.plan
        wanted, tries = 1 if points is None else validate.whole("points", points), plan.tries or 1
        if wanted != tries:
            tried = f"tries {tries} point{'s' if tries > 1 else ''} a round" if plan.tries else "plays its decision"
            raise InputError(f"points must be {tries} for policy {plan.called}, which {tried}, not {wanted}")

    def forget(self, ticket: Ticket | int) -> None:
        """Give a round up: what has not come of its feedback never will, and is charged to the bounds.

        Parameters
        ----------
        ticket : Ticket or int
            What `ask` gave.

        Examples
        --------
        >>> import bridle
        >>> session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> session.forget(session.ask())
        >>> session.pending, session.dropped
        (0, 1)
        """
        self.apply(Forget(ticket))

    def change_limit(self, limit: str | int, *, offset: float | None = None, at_most: float | None = None) -> None:
        """Change a limit, by its name or its place, for all feedback from now on.

        What is proved then, and which policies allow it, is in `bridle.session.changes`.

        Parameters
        ----------
        limit : str or int
            The limit.
        offset : float, optional
            Is added to the limit's values: above 0 it is stricter than its functions say, 0 is as they say.
        at_most : float, optional
            For policy `rate`: the share of rounds that may violate it.

        Examples
        --------
        >>> import bridle
        >>> session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> session.change_limit(0, offset=0.5)
        >>> session.observe(f=0.3, df=[1.0, 0.0], g=0.1, dg=[0.0, 1.0])
        >>> session.ccv
        0.6
        """
        self.apply(change_command(limit, offset, at_most))

    # --- where it stands -----------------------------------------------------------------------------------------------------------------

    @property
    def rounds(self) -> int:
        """How many rounds have been observed."""
        return self.read(lambda _, state: state.now.rounds)

    @property
    def cost(self) -> float:
        """The total cost so far."""
        return self.read(lambda _, state: float(state.now.totals.cost) + state.slow.memory.moved.cost)

    @property
    def ccv(self) -> float:
        """The cumulative constraint violation so far: of the constraint that has been violated most."""
        return float(self.violations.max())

    @property
    def violations(self) -> Array:
        """The cumulative violation of every constraint."""
        return self.read(lambda _, state: violations(state.now.totals.hard, state.slow.memory.moved))

    @property
    def balances(self) -> Array:
        """The sum of every constraint's values with their signs: 0 or below where the limit was held on average."""
        return self.read(lambda _, state: added(state.now.totals.signed, state.slow.memory.moved.signed))

    @property
    def engine(self) -> str:
        """What plays the rounds."""
        return self.plan.engine

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the limits, as they were given; empty where none were."""
        return self.plan.names

    @property
    def pending(self) -> int:
        """How many rounds wait for feedback."""
        return self.read(lambda _, state: len(state.slow.late.waiting))

    @property
    def dropped(self) -> int:
        """How many rounds were forgotten or dropped: their feedback never came."""
        return self.read(lambda _, state: state.slow.late.lost)

    @property
    def changes(self) -> tuple[Mapping[str, Any], ...]:
        """What was changed on the way: in which round, which limit, and how; for a limit on how often also what was counted before."""
        return self.read(lambda _, state: state.slow.changes.listed)

    @property
    def alarms(self) -> dict[str, int]:
        """Which kinds of warning were given, and in which round."""
        return self.read(lambda _, state: dict(state.slow.log.rounds))

    @property
    def dim(self) -> int:
        """How many coordinates an action has."""
        return self.read(lambda plan, state: plan.dim(state))

    @property
    def price(self) -> Array:
        """What one more unit of each limit seems to be worth at present, in cost per unit of constraint: 0 or above; an estimate.

        Policies with queues have one (`soft`, `neely2017`, `liakopoulos2019`, `yu2020`; not where they clip). On a stream that stays the
        same it comes near the limit's multiplier; nothing is proved of it.

        Examples
        --------
        >>> import bridle
        >>> session = Session(bridle.policy("soft", bridle.Ball(2)))
        >>> session.price
        array([0.])
        """
        price = self.read(lambda plan, state: Proof.of(plan, state).price())
        if price is None:
            raise InputError(f"policy {self.plan.called} keeps no price here; policies with queues do, such as soft (without clip)")
        return price

    @property
    def rates(self) -> tuple[RateLimit, ...]:
        """The limits on how often, one record each: what was asked, what came out, and what is proved.

        >>> import bridle
        >>> session = Session(bridle.policy("rate", bridle.Box(0.0, 40.0, dim=1), at_most=0.05, safe=[40.0]))
        >>> session.observe(f=20.0, df=[1.0], g=-5.0, dg=[-1.0])
        >>> session.rates[0].at_most, session.rates[0].measured, session.rates[0].counted
        (0.05, 0.0, 1)
        """
        rates = self.read(lambda plan, state: Proof.of(plan, state).rates())
        if not rates:
            raise InputError(f"policy {self.plan.called} keeps no limits on how often; policy rate does")
        return rates

    @property
    def state(self) -> Any:
        """The policy's state, a plain record; a copy, so that nothing done to it reaches the session."""
        state = self.read(lambda plan, state: ready(plan, state).state)
        return records.transform(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, state)

    @property
    def weights(self) -> Array:
        """What each rule is worth; of every coordinate, one block after the other, where each has a mixture of its own."""
        if not parts_mixed(self.plan):
            mapped(self.plan, "weights")
        return self.read(weights)

    @property
    def proposals(self) -> Array:
        """What each rule proposes in this round, ``(rules, dim)``, those that the session asks itself too; NaN for one that sleeps."""
        mapped(self.plan, "proposals")
        if self.plan.rules is None:
            raise InputError("proposals: the policy of this session was made with features=, and has no rules")
        if self.read(unsaid):
            self.decide()  # all rules are the session's own: they are asked first
        said = self.read(valid)
        assert said is not None
        assert said.terms is not None
        return said.terms.copy()

    # --- what the run proves ---------------------------------------------------------------------------------------------------------

    @validate.undisturbed
    def certificate(self) -> Certificate:
        """What the observations prove: bounds on regret, counts of violations, and whether any action is feasible at all.

        Examples
        --------
        >>> import bridle
        >>> session = Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> for _ in range(100):
        ...     x = session.step(cost=bridle.Affine([-1.0, 0.0]), constraints=[bridle.Affine([1.0, 0.0], -0.5)])
        >>> round(session.certificate().regret, 2)  # the best feasible action has x_1 = 1/2
        0.5
        """
        certificate = self.read(lambda plan, state: Proof.of(plan, state).certificate())
        if certificate is None:
            plan = self.plan
            why = f"policy {plan.called} sees values alone, and no gradients" if plan.tries else "certify was False"
            raise InputError(f"{why}: this session keeps no certificates")
        return certificate

    @validate.undisturbed
    def report(self) -> str:
        """The certificate in plain sentences.

        Examples
        --------
        >>> import bridle
        >>> session = Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> session.observe(f=0.3, df=[1.0, 0.0], g=0.1, dg=[0.0, 1.0])
        >>> session.report().splitlines()[0].startswith("1 round")
        True
        """
        return report_text.report(self.certificate())

    @validate.undisturbed
    def bound(self) -> Bound:
        """The policy's theorem for this run, with the longest gradient seen, plus what dropped rounds may add.

        It takes for granted what a theorem does and no run can show: that functions are convex, and that some action is feasible where
        none is disproved.

        Returns bounds on regret and violation; None, with the reason in `why`, where nothing is proved.
        """

        def bound(plan: Plan, state: SessionState) -> Bound:
            proof = Proof.of(plan, state)
            return proof.bound_as_played(proof.complete().bound())

        return self.read(bound)

    def save(self, path: StrPath) -> None:
        """Write everything needed to go on to one ``.npz`` file, atomically.

        Parameters
        ----------
        path : str or path
            The file; it is replaced as a whole, or not at all.

        Examples
        --------
        >>> import bridle
        >>> session = Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> session.observe(f=0.3, df=[1.0, 0.0], g=0.1, dg=[0.0, 1.0])
        >>> session.save("run.npz")
        >>> Session.load("run.npz").cost
        0.3
        """
        self.read(lambda plan, state: savefile.save(path, plan, state))

    # --- how it shows itself ---------------------------------------------------------------------------------------------------------

    def _looked_at(self) -> tuple[str, SessionVerbs, str]:
        """By which name it is shown, the session in memory, and whether it can go on."""
        return type(self).__name__, self, "ready"

    def __repr__(self) -> str:
        called, session, stands = self._looked_at()
        waiting = [f"{session.pending:,} pending"] if session.pending else []
        figures = [count(session.rounds, "round"), f"cost {number(session.cost)}", f"CCV {number(session.ccv)}", *waiting, stands]
        return f"{called}: {short(self.policy)}\n  {', '.join(figures)}"

    def plot(
        self,
        what: str | Sequence[str] = QUANTITIES,
        *,
        rounds: Sequence[HistoryEntry] | None = None,
        ax: object = None,
        width: str | None = None,
    ) -> Figure:
        """Certified regret and CCV so far, beside what the theorem allows, as a figure.

        A session keeps totals, not rounds. Both are drawn against the round where it has a journal (`Session.open`), which is replayed for
        that; CCV is, where its history was kept. What is known of the present alone is drawn as bars.

        Returns the figure. It is not shown, pyplot does not know it, and its ``savefig`` writes PDF with TrueType
        fonts.

        Parameters
        ----------
        what : {"regret", "ccv"} or a list of them, default ("regret", "ccv")
            Which of the two is drawn; each has axes of its own.
        rounds : list of dict, optional
            What `history` was told. Default: the list of which `history` is the ``append``, as in ``Session(policy, history=log.append)``.
        ax : axes of matplotlib, or a list of them, optional
            Draw on these, one for each chart. Default: on a new figure.
        width : {"column", "page"}, optional
            As wide as the column (3.35 inches) or the page (7 inches) of a journal. Default: for slides and screens.

        Examples
        --------
        >>> import bridle
        >>> log = []
        >>> session = bridle.Session(bridle.policy("anytime", bridle.Ball(2)), history=log.append)
        >>> for _ in range(20):
        ...     x = session.step(cost=bridle.Affine([-1.0, 0.0]), constraints=[bridle.Affine([1.0, 0.0], -0.5)])
        >>> [panel.get_title(loc="left") for panel in session.plot().axes]
        ['Regret after 20 rounds', 'CCV against t']
        """
        pictures, (_, session, _) = later("bridle.session.pictures"), self._looked_at()
        told = self._told_rounds() if rounds is None else rounds
        curve = self._curve(pictures) if told is None else pictures.from_history(told)
        drawn: Figure = pictures.plot_session(session, curve, what, ax, width)
        return drawn

    def _curve(self, pictures: Any) -> Any:
        """What is known of it round by round, without a history."""
        return None

    def _told_rounds(self) -> Sequence[HistoryEntry] | None:
        """What `history` was told, where that is the `append` of a list that holds something."""
        listener = getattr(self._looked_at()[1], "history", None)
        kept = getattr(listener, "__self__", None)
        return kept if isinstance(kept, list) and getattr(listener, "__name__", "") == "append" and kept else None

    def _repr_html_(self) -> str:
        return str(later("bridle.session.pictures").session_card(*self._looked_at(), self._told_rounds()))


class Session(SessionVerbs):
    """One policy at work on your own stream: decide, observe, and know what is proved.

    A session keeps the policy's state, totals of what was observed, certificates, alarms, and rounds whose feedback comes late. It lives in
    memory: `save` writes it to a file, and `Session.open` keeps it in a database where every call survives ``kill -9``.

    Parameters
    ----------
    policy : Configured or Policy
        What decides: from `bridle.policy`, or an object with ``init``, ``decide`` and ``update``.
    x1 : array_like of shape (d,), optional
        The first decision, an action of the domain. Default: the domain's centre.
    domain : Domain, optional
        Where decisions are made, for a policy that does not say.
    history : callable, optional
        Is called after every round with a dict: round, x, f, g, violation, cost and ccv, and ticket where there is one.
    certify : bool, default True
        Keep certificates and the alarms that rest on them.
    levels : sequence of float
        Violations above each of these are counted, in units of constraint; above 0 and ascending. Default: powers of ten from 1e-6 to 1e3.
    tolerance : float
        How exact constraint values and gradients are, relative to their size: 1e-6 for single precision, for instance.
    late : {"copies", "pool"}, optional
        How rounds begun by `ask` are played: each by a copy of the policy that waits for nothing, or by one policy that is fed whatever
        arrives, as only policies can be that are made for late feedback (`rate`, and `adagrad` with `delay`). Default: "pool" for these,
        else "copies".
    pending : int, default 1000
        The most rounds that may wait for feedback, 1 or above.
    timeout : int, optional
        After how many further rounds a waiting round is dropped and charged. Default: never.
    engine : {"auto", "python", "compiled"}, default "auto"
        "compiled" compiles the round from the policy's own source: several times faster, with the same decisions up to rounding. The first
        round then takes a second or two where nothing was compiled before. "auto" is "python" for 255 rounds and "compiled" from then on,
        for bridle's own policies and where the extra ``compiled`` is installed.
    largest : float, optional
        A record with a larger number than this is refused. Default: 1e70.
    most_constraints : int, optional
        A record with more constraints than this is refused. Default: 1000, or ten times the most so far.
    names : sequence of str, optional
        The names of the limits, one for each value of g. Reports, alarms, rates and JSON use them, and records must have as many values.

    Examples
    --------
    >>> import bridle
    >>> session = Session(bridle.policy("sinha2024", bridle.Ball(2), horizon=100, lipschitz=1.0))
    >>> session.decide()
    array([0., 0.])
    >>> session.observe(f=0.3, df=[1.0, 0.0], g=0.1, dg=[0.0, 1.0])
    >>> session.rounds, session.cost, session.ccv
    (1, 0.3, 0.1)
    """

    def __init__(
        self,
        policy: Configured | Policy[S],
        x1: ArrayLike | None = None,
        *,
        domain: Domain | None = None,
        history: Listener = None,
        certify: bool = True,
        levels: Sequence[float] = LEVELS,
        tolerance: float = TOLERANCE,
        late: str | None = None,
        pending: int = 1000,
        timeout: int | None = None,
        engine: str = "auto",
        largest: float | None = None,
        most_constraints: int | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        record = playing_record(policy)
        if isinstance(policy, Configured) and policy.runs is not None:
            raise InputError(f"policy stands for {policy.runs} runs; a session drives one: give every parameter as a number")
        if history is not None and not callable(history):
            raise validate.refused("history must be callable", history)
        called = checked_names(names)
        k = constraints_declared(policy, record)
        if called and k not in (None, len(called)):
            many = f"{k} constraint{'s' if k != 1 else ''}"
            raise validate.refused(f"names must hold one name for each of the {many} of the policy", called)
        record = for_constraints(record, len(called)) if called else record
        learns_late = capability(record, LearnsLate)
        late = ("pool" if learns_late else "copies") if late is None else validate.one_of("late", late, LATE_FORMS)
        if late == "pool" and not learns_late:
            raise InputError(
                f"late must be 'copies', not 'pool': {validate.show(record)} is not made for late feedback (rate, adagrad with delay are)"
            )
        engine = check_name(engine, ENGINES_OF_SESSIONS)
        domain = domain_of(policy) if domain is None else domain
        if domain is None and x1 is None:
            raise InputError("x1 must be given: the policy does not say what its domain is")
        first = x1 if domain is None or x1 is not None else domain.center()
        start = validate.vector("x1", first, None if domain is None else domain.dim)
        if domain is not None and not domain.contains(start):
            raise InputError(f"x1 must lie in the domain; {validate.show(start)} does not")
        most = validate.whole("pending", pending)
        longest = None if timeout is None else validate.whole("timeout", timeout, 0)
        with np.errstate(all="ignore"):
            before = record.init(start)
            decided = np.asarray(record.decide(before), dtype=float)
            sound = decided.shape == start.shape and is_sound(decided, before)
        if not sound:
            raise InputError(
                f"policy must start with numbers and a finite decision of shape {start.shape}; {validate.show(record)} does not"
            )
        precision, tried = validate.positive("tolerance", tolerance), points_of(record, before)
        # Certificates are made of gradients, and a policy that tries points has none.
        ledger = Ledger(domain, len(start), _ascending(levels), precision) if certify and tried is None else None
        size = LARGEST if largest is None else validate.positive("largest", largest)
        if size > LARGEST:
            raise InputError(f"largest must be at most {LARGEST:g}, not {size:g}")
        largest_k = None if most_constraints is None else validate.whole("most_constraints", most_constraints)
        limits = Limits(size, len(called) or k, largest_k, called)
        plan = Plan(policy, record, domain, limits, called, late, most, longest, engine, tries=0 if tried is None else len(tried))
        if plan.rules is not None and x1 is None and plan.configured is not None:
            plan = plan.changed(free=plan.configured.parameters.get("mirror") != "entropic")  # a weight of 0 would stay there
        if engine == "compiled":
            if plan.tries:
                raise InputError(f"engine must be 'python' in a session of policy {plan.called}, which sees values alone")
            check_compiled(record)
            require_compiler()  # if it is missing, now is the time to say so
        self._begin(plan, plan.begin(start, ledger), history)

    def _begin(self, plan: Plan, state: SessionState, history: Listener = None) -> None:
        """Stand here."""
        self.policy, self.plan, self._stepper = plan.policy, plan, stepper_for(plan, state)
        self._lock, self._owner, self._heard = threading.RLock(), 0, len(state.slow.log.alarms)
        self._telling: set[int] = set()  # the threads that are telling `history`
        self.quiet = False
        """Whether alarms wait until they are asked for (`unheard`), and a failed look in `failure`."""
        self.failure: Exception | None = None
        self.history = history

    # --- one call at a time -----------------------------------------------------------------------------------------------------------

    def apply(self, command: Command) -> Any:
        """Let something happen: it has once the stepper stands elsewhere. Then alarms are given and `history` is told."""
        me, counted, entry = get_ident(), False, None
        if me in self._telling or (self._owner == me and self._lock._is_owned()):  # type: ignore[attr-defined]
            raise InputError(NESTED)
        try:
            with self._lock:
                stepper, before = self._stepper, None
                try:
                    self._owner = me
                    before = stepper.mark()
                    outcome = stepper.step(command) if command.__class__ is not ChangeLimit else self._change(command)
                    counted = True
                    if self._history is not None and outcome[0].__class__ is PlayedRound:
                        entry = self._entry(outcome[0])
                except BaseException as wrong:
                    passed = before is not None and (self._stepper is not stepper or stepper.passed(before, command))
                    counted = passed and not isinstance(wrong, InputError)
                    raise
                finally:
                    self._owner = 0
            if outcome is QUIET:
                return None
            answer = self._tell(*outcome)
            if entry is not None:
                self._told(entry)
            return answer
        except BaseException as wrong:
            mark(wrong, counted)
            raise

    def _change(self, command: ChangeLimit) -> Outcome:
        """Go on with a limit that is changed, and perhaps another policy."""
        stepper = self._stepper
        alarms = stepper.settle()
        plan, state = changed(stepper.plan, stepper.flush(), command)
        after = stepper_for(plan, state)
        after.telling = stepper.telling
        self._stepper = after  # this makes it happen
        self.plan, self.policy = plan, plan.policy
        return None, alarms

    def _tell(self, answer: Any, alarms: Sequence[Exception]) -> Any:
        """Give the alarms that nobody has heard: what they are about has happened, and the session is free."""
        if not self.quiet:
            for alarm in self.unheard():
                warnings.warn(alarm, stacklevel=outside())
        if alarms and not isinstance(failure := alarms[-1], BridleWarning):
            if not self.quiet:
                raise failure
            self.failure = failure
        return answer

    def unheard(self) -> Iterable[BridleWarning]:
        """The alarms that nobody has heard; each counts as heard once it is taken: one made an error leaves the others."""
        while (heard := self._heard) < len(every := self._stepper.base.slow.log.alarms):
            self._heard = heard + 1
            yield every[heard]

    def next_decision(self) -> Array | None:
        """The decision of this round, where nothing has to be said first, and nothing again."""
        plan, base = self.plan, self._stepper.base
        outdated = base.slow.said is not None and self.read(is_outdated)
        if plan.through is not None or outdated or (plan.tries and (plan.tries > 1 or base.slow.late.waiting)):
            return None
        return self._stepper.decision()

    def hush(self) -> None:
        """Count every alarm as heard."""
        self._heard = len(self._stepper.base.slow.log.alarms)

    def standing(self) -> bytes:
        """What the session stands at, in bytes: the decision before any map, or the points that are tried."""
        return self._stepper.standing().tobytes()

    def _entry(self, answer: PlayedRound) -> HistoryEntry:
        """What `history` is told of the round that was just played, before another thread plays the next."""
        seen, ticket = answer
        g, memory = seen.g, self._stepper.memory
        points = seen.each if isinstance(seen, Tried) and len(seen.each) > 1 else None
        hard = violations(self._stepper.totals.hard, memory.moved)
        entry: HistoryEntry = {
            "round": self._stepper.rounds,
            "x": np.array(seen.x) if points is None else np.array([each.x for each in points]),
            "f": cast(float, seen.f),
            "g": g.copy(),
            "violation": np.maximum(g, 0.0),
            "cost": float(self._stepper.totals.cost) + memory.moved.cost,
            "ccv": float(hard.max()),
        }
        if ticket is not None:
            entry["ticket"] = ticket
        return entry

    def _told(self, entry: HistoryEntry) -> None:
        """Tell `history` of a round; a call from there of what changes the session is refused."""
        assert self._history is not None
        me = get_ident()
        try:
            self._telling.add(me)
            self._history(entry)
        finally:
            self._telling.discard(me)

    def read(self, what: Callable[[Plan, SessionState], T]) -> T:
        """What is read of the session where it stands; inside of a call of this thread, of where it stood before that call."""
        me = get_ident()
        if self._owner == me and self._lock._is_owned():  # type: ignore[attr-defined]
            return what(self._stepper.plan, self._stepper.flush())
        with self._lock:
            try:
                self._owner = me
                settled = self._stepper.settle()
                found = what(self._stepper.plan, self._stepper.flush())
            finally:
                self._owner = 0
        if settled:
            self._tell(None, settled)
        return found

    def _decision(self) -> Array:
        return self._stepper.decision()  # one reading of what stands: nobody has to wait for it

    # What is asked often is read of what stands, without making a state of it.

    @property
    def rounds(self) -> int:
        """How many rounds have been observed."""
        return self._stepper.rounds

    @property
    def cost(self) -> float:
        """The total cost so far."""
        return float(self._stepper.totals.cost) + self._stepper.memory.moved.cost

    @property
    def violations(self) -> Array:
        """The cumulative violation of every constraint."""
        return violations(self._stepper.totals.hard, self._stepper.memory.moved)

    @property
    def pending(self) -> int:
        """How many rounds wait for feedback."""
        return len(self._stepper.base.slow.late.waiting)

    @property
    def dropped(self) -> int:
        """How many rounds were forgotten or dropped: their feedback never came."""
        return self._stepper.base.slow.late.lost

    @property
    def history(self) -> Listener:
        """What is called after every round, if anything."""
        return self._history

    @history.setter
    def history(self, listener: Listener) -> None:
        self._history = listener
        self._stepper.telling = listener is not None

    def warm_up(self, constraints: int | None = None) -> None:
        """Do now what the first rounds would pay for: load every solver, and with ``engine="compiled"`` compile the round.

        Nothing changes: decisions, certificates and files are what they are without it. A second call has nothing left to do.

        Parameters
        ----------
        constraints : int, optional
            How many constraints a round will have, 0 or above. Compiled rounds need to be told, unless the policy was made for a certain
            number.

        Examples
        --------
        >>> import bridle
        >>> session = Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> session.warm_up()
        >>> session.rounds, session.decide()
        (0, array([0., 0.]))
        """
        plan, stepper = self.plan, self._stepper
        k, first = self.read(lambda _, state: (state.slow.limits.k, state.slow.first))
        wanted = k or first or None if constraints is None else validate.whole("constraints", constraints)
        if k is not None and wanted != k:
            raise validate.refused(f"constraints must be {k}, as the policy was made for", constraints)
        compiles = isinstance(stepper, CompiledStepper) and stepper.compiled is None
        if compiles and wanted is None and plan.engine != AUTO:
            raise InputError("constraints must be given: how many a round has is not known before the first, and the round is compiled")
        ledger = self.read(lambda _, state: state.ledger())
        if ledger is not None:
            load_solvers()
            use_domain(plan.domain, ledger)
        if plan.configured is not None and not plan.tries:  # a policy of the user's own may take notice
            rehearse(plan, wanted or 1)
        if compiles and wanted is not None:
            self.read(lambda *_: cast(CompiledStepper, stepper).compile(k or first or wanted))

    # --- files and databases ----------------------------------------------------------------------------------------------------------

    @classmethod
    def load(
        cls,
        path: StrPath,
        policy: Configured | Policy[S] | None = None,
        history: Listener = None,
        engine: str | None = None,
    ) -> Session:
        """The session that was saved, bit for bit.

        Returns it goes on where the other one was.

        Parameters
        ----------
        path : str or path
            The file that `save` wrote.
        policy : Configured or Policy, optional
            The policy, where the one that was saved is not registered.
        history : callable, optional
            Is called after every round, as for `Session`.
        engine : {"auto", "python", "compiled"}, optional
            What plays the rounds from now on. Default: what it was saved with.
        """
        session = cls.restored(savefile.read(path), policy, engine)
        session.number_tickets(*reborn(session.read(lambda _, state: state.now.begun)))
        session.history = history
        return session

    @classmethod
    def restored(cls, saved: savefile.Saved, policy: Any = None, engine: str | None = None) -> Session:
        """The session in a save file, whose tickets go on with the numbers that they have."""
        options = saved.options
        if engine is not None:
            options["engine"] = engine
        chosen = saved.make_policy() if policy is None else policy
        try:
            fresh = cls(chosen, saved.start, **options)
        except InputError as wrong:
            raise InputError(f"cannot load {saved.path}: {wrong}") from None
        session = cls.__new__(cls)
        session._begin(*saved.restore(*fresh.read(lambda plan, state: (plan, state))))
        return session

    def number_tickets(self, offset: int, since: int) -> None:
        """Number tickets from here on by adding this to the numbers of their rounds; so many were begun when it was drawn."""
        plan, state = self.read(lambda plan, state: (plan, state))
        self._begin(plan, state.with_late(offset=offset, since=since), self.history)

    @classmethod
    def open(
        cls,
        url: str,
        name: str,
        policy: Configured | Policy[S] | None = None,
        x1: ArrayLike | None = None,
        *,
        history: Listener = None,
        snapshot_every: int | None = None,
        gates: Any = None,
        wait: float = 0.0,
        **options: Unpack[savefile.SessionOptions],
    ) -> DurableSession:
        """The session of this name in a database, made or resumed, where every acknowledged call survives ``kill -9``.

        Each event (ask, observe, forget, a decision with something said before it, a changed limit, a payment) is in the session's
        journal, committed, before the call returns. Opening replays the journal since the last snapshot and proves that every decision is
        the same, bit for bit. One process owns a session at a time. Where the session is there already, whatever is given must be what it
        was made with.

        Parameters
        ----------
        url : str
            The database: ``sqlite:///FILE`` or ``postgresql://USER@HOST/DATABASE``.
        name : str
            What the session is called there.
        policy : Configured or Policy, optional
            What decides; must be given for a new session.
        x1 : array_like of shape (d,), optional
            The first decision, an action of the domain.
        history : callable, optional
            Is called after every round, as for `Session`.
        snapshot_every : int, optional
            After how many events a snapshot is put. Default: 10,000; there is one too when the session is closed.
        gates : dict of str to Gate or Pacer, optional
            Budgets that are paid in the same journal, by name.
        wait : float, default 0.0
            How long to wait for another process that owns the session, 0 or above, in seconds.
        **options : object
            The other arguments of `Session`: certify, levels, tolerance, late, pending, timeout, engine, largest, most_constraints, names.

        Examples
        --------
        >>> import bridle
        >>> policy = bridle.policy("anytime", bridle.Ball(2))
        >>> with Session.open("sqlite:///run.db", "shop-17", policy=policy) as session:
        ...     session.observe(f=0.3, df=[1.0, 0.0], g=0.1, dg=[0.0, 1.0], key="order 1")
        >>> with Session.open("sqlite:///run.db", "shop-17") as session:
        ...     session.observe(f=0.3, df=[1.0, 0.0], g=0.1, dg=[0.0, 1.0], key="order 1")  # it has had that one
        ...     session.rounds, session.cost
        (1, 0.3)
        """
        return cast(
            "DurableSession",
            later("bridle.durable.session").open_session(url, name, policy, x1, history, snapshot_every, gates, wait, options),
        )

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: what was compiled stays behind, and is made again when it is needed."""
        plan, state = self.read(lambda plan, state: (plan, state.with_slow(ledger=copy(state.ledger()), log=state.slow.log.clone())))
        return {"plan": plan, "state": state, "history": self.history, "heard": self._heard}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """What a copy or a pickle becomes: a session whose tickets have numbers of their own."""
        plan, state = kept["plan"], kept["state"]
        offset, since = reborn(state.now.begun)
        self._begin(plan, state.with_late(offset=offset, since=since), kept["history"])
        self._heard = kept["heard"]


def _ascending(levels: Sequence[float]) -> list[float]:
    numbers = validate.array("levels", levels)
    if numbers.ndim != 1 or (numbers <= 0.0).any() or (np.diff(numbers) <= 0.0).any():
        raise validate.refused("levels must be numbers above 0 in ascending order", levels)
    return numbers.tolist()  # type: ignore[no-any-return]


def checked_names(names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of limits, checked."""
    if names is None:
        return ()
    listed = isinstance(names, Sequence) and not isinstance(names, (str, bytes))
    if not (listed and names and all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)):
        raise validate.refused("names must be a list of names that differ, one for each constraint", names)
    return tuple(map(str, names))


def constraints_declared(policy: object, record: object) -> int | None:
    """How many constraints a policy was made for; None where any number will do."""
    each, declared = getattr(record, "each", None), policy.parameters.get("constraints") if isinstance(policy, Configured) else None
    return len(each) if each is not None else None if declared is None else int(declared)


def change_command(limit: str | int, offset: float | None, at_most: float | None) -> ChangeLimit:
    """A changed limit, of numbers that were checked."""
    place = limit if isinstance(limit, str) else validate.whole("limit", limit, 0)
    moved, share = (None if value is None else validate.number(name, value) for name, value in (("offset", offset), ("at_most", at_most)))
    return ChangeLimit(place, moved, share)


def observed_at(x: Array, cost: object, constraints: Iterable[object]) -> dict[str, Any]:
    """What the functions of a round say at x, as `observe` takes it."""
    f, df = evaluate("cost", cost, x, several=False)
    said: dict[str, Any] = {"f": f.item(), "df": df}
    answers = [evaluate(f"constraints[{i}]", constraint, x, several=True) for i, constraint in enumerate(constraints)]
    if answers:
        said["g"] = np.concatenate([value.reshape(-1) for value, _ in answers])
        said["dg"] = np.concatenate([grad.reshape(-1, len(x)) for _, grad in answers])
    return said


def refuse_other_constraints(constraints: object) -> None:
    """One error where constraints are not a list."""
    if callable(constraints) or hasattr(constraints, "value") or not isinstance(constraints, Iterable):
        raise validate.refused("constraints must be a list of functions", constraints)


COUNTED = "(the round was counted: do not give it again)"
NOT_COUNTED = "(the round was not counted: it can be given again)"

NESTED = (
    "this session is in the middle of another call of this thread (a signal handler, or a function that the session calls, has called it): "
    "wait until that has ended"
)


def mark(wrong: BaseException, counted: bool) -> None:
    """Say on an exception that leaves a session whether the call had counted."""
    with suppress(AttributeError):  # an exception may have no room for it
        wrong.counted = counted  # type: ignore[attr-defined]
        notes = [note for note in getattr(wrong, "__notes__", ()) if note not in (COUNTED, NOT_COUNTED)]
        if counted or not isinstance(wrong, InputError):
            notes.append(COUNTED if counted else NOT_COUNTED)
        if notes or hasattr(wrong, "__notes__"):
            wrong.__notes__ = notes


REHEARSED = 3
"""How many rounds of a session of the same kind are played beforehand."""


@cache
def load_solvers() -> None:
    """Load what certificates solve programs with, and prove a small contradiction; once in a process."""
    ledger, axis = Ledger(BallSet(np.zeros(2), 1.0), 2), np.eye(1, 2)
    for t in (1, 2):
        ledger.take(Feedback(np.zeros(2), 0.0, axis[0], np.array([0.1]), axis if t == 1 else -axis), t)
    ledger.complete().regret()
    while ledger.search(2, ranking=True) is None or ledger.busy:
        pass


def use_domain(domain: Domain | None, ledger: Ledger) -> None:
    """Call a session's domain once in each way that a look after a round does: it may have a solver of its own."""
    if ledger.domain.known and domain is not None:
        where, axis = ledger.domain, np.eye(1, len(ledger.domain.middle))[0]
        with suppress(*FAILURES):
            where.least(axis)
            domain.project(where.middle + where.diameter * axis)


def rehearse(plan: Plan, constraints: int) -> None:
    """Play some rounds in Python, each with violated constraints, of a session that is then thrown away."""
    assert plan.configured is not None
    other = Session(replace(plan.configured, through=None), domain=plan.domain, certify=False)
    with warnings.catch_warnings(), suppress(*FAILURES):
        warnings.simplefilter("ignore")
        for _ in range(REHEARSED):
            axis = np.eye(1, len(other.decide()))
            other.observe(f=0.0, df=axis[0], g=np.full(constraints, 1e-3), dg=np.repeat(axis, constraints, axis=0))
