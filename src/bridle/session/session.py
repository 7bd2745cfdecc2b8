"""A policy driven round by round by a caller: decide, observe, save, resume; and what the run proves about itself."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Never, Self, TypeVar, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from bridle import database, records, validate
from bridle.core import Bound, Domain, Feedback, InputError, LearnsLate, Policy, S, TriesPoints, capability
from bridle.domains.closed_form import BallSet
from bridle.engines import check_name
from bridle.engines.mirror import require_compiler
from bridle.engines.round import check_compiled
from bridle.ops import Array
from bridle.policies.registry import Configured, domain_of, for_constraints, playing_record
from bridle.policies.round_maps import RuleMixture
from bridle.session import report_text, savefile
from bridle.session.boundary import Boundary, Memory
from bridle.session.certificate import Certificate
from bridle.session.durable import DurableCore, Embedded, JournaledBudget, open_core
from bridle.session.events import Key
from bridle.session.feasibility import TOLERANCE
from bridle.session.feedback import LARGEST, Limits, Numbers, is_sound, refuse_gone
from bridle.session.late_feedback import LATE_FORMS, PendingRounds, Ticket, TicketGiven
from bridle.session.ledger import FAILURES, LEVELS, Ledger
from bridle.session.parts import SessionParts, checked_names
from bridle.session.prior import Prior
from bridle.session.purse import Budgets
from bridle.session.rates import RateLimit
from bridle.session.rounds import HistoryEntry, Listener
from bridle.session.standing import Played, Standing
from bridle.session.tried_points import as_asked, refuse_extras, values_at
from bridle.session.verbs import SessionVerbs, observed_at, refuse_other_constraints
from bridle.showing import count, later, number, short
from bridle.showing.marks import QUANTITIES
from bridle.storage import Facts, StrPath

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bridle.database.store import EventStore

T = TypeVar("T")
"""What is read of a durable session."""

ENGINES_OF_SESSIONS = ("python", "compiled")
"""What can play a session's rounds, one at a time."""


class LookedAt(NamedTuple):
    """What is shown of a session: what it is and by which name, the plain session that holds the figures, and whether it can go on."""

    called: str
    session: Any
    stands: str


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
    engine : {"python", "compiled"}, default "python"
        "compiled" compiles the round from the policy's own source: several times faster, with the same decisions up to rounding. The first
        round
        then takes seconds where nothing was compiled before.
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
        engine: str = "python",
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
        limit = validate.whole("pending", pending)
        told = policy.parameters.get("modulus") if isinstance(policy, Configured) else None
        rounds = PendingRounds(record, start, late, limit, None if timeout is None else validate.whole("timeout", timeout, 0), told)
        with np.errstate(all="ignore"):
            sound = rounds.ready.x.shape == start.shape and is_sound(rounds.ready.x, rounds.ready.state)
        if not sound:
            raise InputError(
                f"policy must start with numbers and a finite decision of shape {start.shape}; {validate.show(record)} does not"
            )
        precision = validate.positive("tolerance", tolerance)
        certify = certify and not capability(record, TriesPoints)  # certificates are made of gradients, and there are none
        ledger = Ledger(domain, len(start), _ascending(levels), precision) if certify else None
        size = LARGEST if largest is None else validate.positive("largest", largest)
        if size > LARGEST:
            raise InputError(f"largest must be at most {LARGEST:g}, not {size:g}")
        most = None if most_constraints is None else validate.whole("most_constraints", most_constraints)
        configured = policy if isinstance(policy, Configured) else None
        super().__init__(SessionParts(configured, record, domain, rounds, ledger, called), start, Limits(size, None, most), history, engine)
        self.policy = policy
        self._boundary = None
        through = None if configured is None else configured.through
        if through is not None and configured is not None:
            entropic = configured.parameters.get("mirror") == "entropic"  # a weight of 0 would stay there
            rules = isinstance(through, RuleMixture)
            memory = Memory(states=through.states if isinstance(through, RuleMixture) else ())
            self._boundary = Boundary(through, free=rules and x1 is None and not entropic, before=memory, after=memory)
        if engine == "compiled":
            if self._tries:
                raise InputError(f"engine must be 'python' in a session of policy {self._called}, which sees values alone")
            check_compiled(record)
            require_compiler()  # if it is missing, now is the time to say so

    # --- where it stands -----------------------------------------------------------------------------------------------------------------

    @property
    def cost(self) -> float:
        """The total cost so far."""
        fast = self._live
        cost = float(self._now.played.totals.cost if fast is None else fast.cost)
        return cost if self._boundary is None else cost + self._charge().cost

    @property
    def ccv(self) -> float:
        """The cumulative constraint violation so far: of the constraint that has been violated most."""
        return float(self.violations.max())

    @property
    def violations(self) -> Array:
        """The cumulative violation of every constraint."""
        return self._read(lambda _: self._violations())

    @property
    def balances(self) -> Array:
        """The sum of every constraint's values with their signs: 0 or below where the limit was held on average."""
        return self._read(self._balances)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the limits, as they were given; empty where none were."""
        return self._parts.names

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
        price = self._read(lambda nested: self._settled(nested).price())
        if price is None:
            raise InputError(f"policy {self._called} keeps no price here; policies with queues do, such as soft (without clip)")
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
        rates = self._read(lambda nested: self._settled(nested).rates())
        if not rates:
            raise InputError(f"policy {self._called} keeps no limits on how often; policy rate does")
        return rates

    @property
    def state(self) -> Any:
        """The policy's state, a plain record; a copy, so that nothing done to it reaches the session."""
        state = self._read(lambda nested: self._settled(nested).pending.ready.state)
        return records.transform(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, state)

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
        k = self._k if constraints is None else validate.whole("constraints", constraints)
        if self._k is not None and k != self._k:
            raise validate.refused(f"constraints must be {self._k}, as the policy was made for", constraints)
        compiles = self.engine != "python" and self._compiled is None
        if compiles and k is None:
            raise InputError("constraints must be given: how many a round has is not known before the first, and the round is compiled")
        parts = self._read(self._settled)
        if parts.ledger is not None:
            load_solvers()
        use_domain(parts)
        if parts.configured is not None and not self._tries:  # a policy of the user's own may take notice
            other = Session(replace(parts.configured, through=None), self._start, domain=parts.domain, certify=False)
            rehearse(other.decide, other.observe, k or 1)
        if compiles and k is not None:
            self._compile(k)

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
        certificate = self._read(self._certificate)
        if certificate is None:
            why = f"policy {self._called} sees values alone, and no gradients" if self._tries else "certify was False"
            raise InputError(f"{why}: this session keeps no certificates")
        return certificate

    def _certificate(self, nested: bool) -> Certificate | None:
        (_, _, totals, rounds, _), kept = now = self._stand(nested)
        proof = self._parts_of(now).certificate(rounds, totals, self._k or len(totals.hard), kept.log.rounds)
        return None if proof is None else self._as_played(proof, now)

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
        return self._read(self._bound)

    def _bound(self, nested: bool) -> Bound:
        now = self._stand(nested)
        totals = now.played.totals
        return self._bound_as_played(self._parts_of(now).complete().bound(totals, self._k or len(totals.hard)))

    # --- saving ----------------------------------------------------------------------------------------------------------------------

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
        self._read(lambda nested: savefile.save(path, self._image(nested)))

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
        engine : {"python", "compiled"}, optional
            What plays the rounds from now on. Default: what it was saved with.
        """
        session = cls._restored(savefile.read(path), policy, history, engine)
        session._now.kept.pending.reborn()
        return session

    @classmethod
    def _restored(
        cls,
        saved: savefile.Saved,
        policy: Configured | Policy[S] | None = None,
        history: Listener = None,
        engine: str | None = None,
    ) -> Session:
        """The session in a save file, whose tickets go on with the numbers that they have."""
        chosen = cast("Configured | Policy[object]", saved.make_policy() if policy is None else policy)
        options = saved.options
        if engine is not None:
            options["engine"] = engine
        try:
            session = cls(chosen, saved.start, history=history, **options)  # type: ignore[arg-type]
        except InputError as wrong:
            raise InputError(f"cannot load {saved.path}: {wrong}") from None
        restored = saved.restore(session._image(False))
        pending, kept = session._parts.pending, session._now.kept
        session._now = Standing(Played(pending.copies[0], pending.begun, restored.totals, restored.rounds), kept)
        edge = session._boundary = restored.boundary
        if edge is not None and edge.said is not None:
            session._boundary = edge._replace(said=edge.said._replace(turn=session.rounds, front=pending.front))
        if session.engine != "python" and restored.compiled is not None:
            with saved.checking():
                session._compile(restored.compiled)
        return session

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
        gates: Budgets = None,
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
        if "commit" in options:
            raise InputError("commit is no longer an argument: each call is committed; for grouped commits, use the service (bridle serve)")
        if history is not None and not callable(history):
            raise validate.refused("history must be callable", history)
        store = database.open_store(url)
        try:
            core = cls.core(store, name, policy, x1, snapshot_every=snapshot_every, gates=gates, wait=wait, **options)
        except BaseException:
            store.close()
            raise
        return DurableSession(Embedded(core, history))

    @classmethod
    def core(
        cls,
        store: EventStore,
        name: str,
        policy: Configured | Policy[S] | None = None,
        x1: ArrayLike | None = None,
        *,
        snapshot_every: int | None = None,
        gates: Budgets = None,
        wait: float = 0.0,
        replayed: Listener = None,
        **options: Unpack[savefile.SessionOptions],
    ) -> DurableCore:
        """What `open` drives, for a program that commits the events of many sessions itself: see `bridle.session.durable`.

        Parameters
        ----------
        store : EventStore
            The database.
        name : str
            What the session is called there.
        policy : Configured or Policy, optional
            What decides; must be given for a new session.
        x1 : array_like of shape (d,), optional
            The first decision.
        snapshot_every : int, optional
            After how many events a snapshot is put. Default: 10,000.
        gates : dict of str to Gate or Pacer, optional
            Budgets that are paid in the same journal, by name.
        wait : float, default 0.0
            How long to wait for another owner, 0 or above, in seconds.
        replayed : callable, optional
            Is told of every round that is replayed what `history` was told of it.
        **options : object
            The other arguments of `Session`.
        """
        return open_core(Session, Session._restored, store, name, policy, x1, snapshot_every, gates, wait, replayed, options)

    # --- how it shows itself ---------------------------------------------------------------------------------------------------------

    def _looked_at(self) -> LookedAt:
        return LookedAt(type(self).__name__, self, "ready")

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
        pictures, looked = later("bridle.session.pictures"), self._looked_at()
        told = self._told_rounds() if rounds is None else rounds
        curve = self._curve(pictures) if told is None else pictures.from_history(told)
        drawn: Figure = pictures.plot_session(looked.session, curve, what, ax, width)
        return drawn

    def _curve(self, pictures: ModuleType) -> Any:
        """What is known of it round by round, without a history."""
        return None

    def _told_rounds(self) -> Sequence[HistoryEntry] | None:
        """What `history` was told, where that is the `append` of a list that holds something."""
        listener = getattr(self._looked_at().session, "history", None)
        kept = getattr(listener, "__self__", None)
        return kept if isinstance(kept, list) and getattr(listener, "__name__", "") == "append" and kept else None

    def _repr_html_(self) -> str:
        return str(later("bridle.session.pictures").session_card(*self._looked_at(), self._told_rounds()))

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: what was compiled stays behind, and is made again in the next round."""
        now = self._read(self._stand)
        kept = now.kept._replace(pending=now.own_pending(), ledger=copy(now.ledger()), log=now.kept.log.clone())
        own: dict[str, object] = {
            "_now": Standing(now.played, kept),
            "_compiled": None,
            "_live": None,
            "_check_at": 0.0,
            "_inside": False,
            "_projectors": {},
        }
        return {**vars(self), **own}

    def __setstate__(self, state: dict[str, object]) -> None:
        """What a copy or a pickle becomes: a session whose tickets have numbers of their own."""
        vars(self).update(state)
        self._now.kept.pending.reborn()


def _ascending(levels: Sequence[float]) -> list[float]:
    numbers = validate.array("levels", levels)
    if numbers.ndim != 1 or (numbers <= 0.0).any() or (np.diff(numbers) <= 0.0).any():
        raise validate.refused("levels must be numbers above 0 in ascending order", levels)
    return numbers.tolist()  # type: ignore[no-any-return]


class DurableSession(Session):
    """A session in a database, as `Session.open` gives it: the same verbs, each with an identity (`key`) where the caller wants one.

    What is told twice under one key, or with one ticket, is answered with the first answer; other numbers under the same key are refused.
    A call that raises `bridle.database.StoreError` did not happen, or nobody knows (it says which): ask again with the same key.
    """

    def __init__(self, embedded: Embedded) -> None:
        self._embedded, self._core = embedded, embedded.core
        self.policy = self._plain(self._core).policy

    @staticmethod
    def _plain(core: DurableCore) -> Session:
        return cast("Session", core.session)

    def _of(self, what: Callable[[Session], T]) -> T:
        return self._embedded.read(lambda core: what(self._plain(core)))

    # --- the verbs -----------------------------------------------------------------------------------------------------------------------

    def decide(self, **said: Unpack[Prior]) -> Array:
        return self._embedded.do(self._core.decide, **said)  # type: ignore[no-any-return]

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
        key: Key = None,
        pay: Mapping[str, float] | None = None,
        **gone: Never,
    ) -> None:
        """As `Session.observe`; `pay` are payments from this session's budgets that happen together with it, or not at all."""
        if gone:
            refuse_gone(gone)
        self._embedded.do(
            self._core.observe, f, df, g, dg, modulus,
            ticket=ticket, played=played, key=key, pay=pay,
        )  # fmt: skip

    def ask(self, *, points: int | None = None, key: Key = None, **said: Unpack[Prior]) -> Ticket:
        return self._embedded.do(self._core.ask, points=points, key=key, **said)  # type: ignore[no-any-return]

    def forget(self, ticket: Ticket | int) -> None:
        self._embedded.do(self._core.forget, ticket)

    def step(self, cost: object, constraints: Iterable[object] = (), **said: Unpack[Prior]) -> Array:
        refuse_other_constraints(constraints)
        if self._core.session._tries:
            refuse_extras(self._core.session._called, **said)
            points = self._of(lambda session: session._points())
            costs, values = values_at(points, cost, tuple(constraints))
            self.observe(costs, g=values)
            return as_asked(points)
        x = self.decide(**said)
        self.observe(**observed_at(x, cost, constraints))
        return x

    def warm_up(self, constraints: int | None = None) -> None:
        self._embedded.do(self._core.warm_up, constraints)

    def change_limit(self, limit: str | int, *, offset: float | None = None, at_most: float | None = None, key: Key = None) -> None:
        """Change a limit, by its name or its place, for all feedback from now on.

        `offset` is added to the limit's values: above 0 it is stricter than its functions say, 0 is as they say. `at_most` is for policy
        `rate`: the share of rounds that may violate it. What is proved then, and which policies allow it, is in `bridle.session.replay`.
        """
        self._embedded.do(self._core.change_limit, limit, offset=offset, at_most=at_most, key=key)

    def gate(self, name: str) -> JournaledBudget:
        """The budget of this name: pay, and ask what is left."""
        self._embedded.read(lambda core: core.purse.find(name))
        return JournaledBudget(self._embedded, name)

    def close(self) -> None:
        """Put a snapshot and let the session go, for others to open."""
        self._embedded.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    # --- what it says of itself ----------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name in the database."""
        return self._core.name

    def _looked_at(self) -> LookedAt:
        stands = self._embedded.ended.removeprefix("is ") or ("to be rebuilt from its journal" if self._core.stale else "open")
        return LookedAt(f"DurableSession {self._core.name!r}", self._plain(self._core), stands)

    def _curve(self, pictures: ModuleType) -> Any:
        return self._embedded.read(lambda core: pictures.from_journal(core, Session._restored) if self._plain(core).rounds else None)

    @property
    def proposals(self) -> Array:
        if self._of(lambda session: session._unsaid()):
            self.decide()  # asking them is an event
        return self._of(lambda session: session.proposals)

    @property
    def durable(self) -> tuple[int, int]:
        """How many events are on the disk, and how many there are."""
        return self._core.durable, self._core.seq

    @property
    def changes(self) -> tuple[Facts, ...]:
        """What was changed on the way: in which round, which limit, and how; for a limit on how often also what was counted before."""
        return self._embedded.read(lambda core: core.changes.listed)

    def __getstate__(self) -> dict[str, object]:
        raise InputError(f"a session that is opened on a database cannot be copied or pickled: {self._core.name!r} has one owner; save it")


def _read_through(name: str) -> property:
    """What a plain session says under this name, once all that it rests on is durable."""
    return property(lambda self: self._of(lambda session: getattr(session, name)), doc=getattr(Session, name, None).__doc__)


def _ask_through(name: str) -> Callable[..., object]:
    """What a plain session answers under this name, once all that it rests on is durable."""

    @functools.wraps(getattr(Session, name))
    def ask(self: DurableSession, *given: Any, **named: Any) -> object:
        return self._of(lambda session: getattr(session, name)(*given, **named))

    return ask


for _name in (
    "balances", "ccv", "cost", "dropped", "engine", "history", "names", "pending", "price", "rates", "rounds", "state",
    "violations", "weights",
):  # fmt: skip
    setattr(DurableSession, _name, _read_through(_name))
for _name in ("bound", "certificate", "report", "save"):
    setattr(DurableSession, _name, _ask_through(_name))


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


def use_domain(parts: SessionParts) -> None:
    """Call the session's domain once in each way that a look after a round does: it may have a solver of its own."""
    if parts.ledger is not None and parts.ledger.domain.known and parts.domain is not None:
        where, axis = parts.ledger.domain, np.eye(1, len(parts.ledger.domain.middle))[0]
        with suppress(*FAILURES):
            where.least(axis)
            parts.domain.project(where.middle + where.diameter * axis)


def rehearse(decide: Callable[[], Array], observe: Callable[..., None], constraints: int) -> None:
    """Play some rounds, each with violated constraints, of a session that is then thrown away."""
    with warnings.catch_warnings(), suppress(*FAILURES):
        warnings.simplefilter("ignore")
        for _ in range(REHEARSED):
            axis = np.eye(1, len(decide()))
            observe(f=0.0, df=axis[0], g=np.full(constraints, 1e-3), dg=np.repeat(axis, constraints, axis=0))
