"""A policy driven round by round by a caller: decide, observe, save, resume; and what the run proves about itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from math import inf
from os import PathLike
from typing import Any, NotRequired, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from bridle import records, validate
from bridle.core import Bound, Domain, DroppedWarning, Feedback, InputError, Policy, S
from bridle.engines.mirror import require_compiler
from bridle.engines.round import check_compiled
from bridle.game.totals import RunningTotals
from bridle.ops import Array
from bridle.policies.registry import Configured, domain_of, record_of
from bridle.session import clocks, report_text, savefile
from bridle.session.alarms import COST, Answer, Contexts, Doubt, Subject, WarningLog, ask_again
from bridle.session.batch_sums import BatchMemory
from bridle.session.certificate import Certificate
from bridle.session.clocks import Due
from bridle.session.compiled_round import PLAYED, PLAYED_CHECK_NOW, REFUSED, WRONG_TYPES, CompiledRound, PlayOutcome
from bridle.session.feasibility import TOLERANCE
from bridle.session.feedback import LARGEST, Limits, Numbers, checked_feedback, evaluate, is_sound
from bridle.session.late_feedback import LATE_FORMS, Copy, PendingRounds, Ticket, round_of
from bridle.session.ledger import LEVELS, Ledger
from bridle.session.monitor import check_assumptions, search_witness
from bridle.session.monitor import next_check as next_check_after
from bridle.session.parts import SessionParts
from bridle.session.standing import LOOK, NOTHING, READ, Kept, Played, Standing
from bridle.session.turns import mark, wait
from bridle.session.warm_up import load_solvers, rehearse, use_domain

ENGINES_OF_SESSIONS = ("python", "numba")
"""What can play a session's rounds, one at a time."""

ENTRANCES = frozenset({"observe", "ask", "forget", "decide", "_read"})
"""The calls that are at work in a session one at a time."""

T = TypeVar("T")
"""What is read of a session."""


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


class Session:
    """One policy and its state; totals of what was observed; certificates and alarms; rounds whose feedback comes late.

    `history`, if given, is called after every round with a dict: round, x, f, g, violation, cost and ccv (and ticket, where there is one).
    `certify=False` leaves out certificates and the alarms that rest on them; `levels` are the violations whose number is counted;
    `tolerance` is how exact constraint values and gradients are (1e-6 for single precision). `late` says how rounds begun by `ask` are
    played: "copies" (each by a copy of the policy that waits for nothing) or "pool" (one policy fed whatever arrives). At most `pending`
    rounds wait; one that has waited for more than `timeout` further rounds is dropped, and charged. A record with a number above `largest`
    in size (1e70 unless told), or with more than `most_constraints` (1000, or ten times the most so far), is refused.

    ``engine="numba"`` compiles the round from the policy's own source: several times faster, the same decisions up to rounding. The first
    round takes seconds where nothing was compiled before. Rounds that wait for feedback, or whose number of constraints is not that of
    the first, are played in Python all the same.

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
        history: Callable[[HistoryEntry], object] | None = None,
        certify: bool = True,
        levels: Sequence[float] = LEVELS,
        tolerance: float = TOLERANCE,
        late: str = "copies",
        pending: int = 1000,
        timeout: int | None = None,
        engine: str = "python",
        largest: float | None = None,
        most_constraints: int | None = None,
    ) -> None:
        record = record_of(policy)
        for method in ("init", "decide", "update"):
            if not hasattr(record, method):
                raise InputError(f"policy must have a method `{method}`; {validate.show(policy)} has none")
        if isinstance(policy, Configured) and policy.runs is not None:
            raise InputError(f"policy stands for {policy.runs} runs; a session drives one: give every parameter as a number")
        if history is not None and not callable(history):
            raise InputError(f"history must be callable, not {validate.show(history)}")
        validate.one_of("late", late, LATE_FORMS)
        validate.one_of("engine", engine, ENGINES_OF_SESSIONS)
        domain = domain_of(policy) if domain is None else domain
        if domain is None and x1 is None:
            raise InputError("x1 must be given: the policy does not say what its domain is")
        first = x1 if domain is None or x1 is not None else domain.center()
        start = validate.vector("x1", first, None if domain is None else domain.dim)
        if domain is not None and not domain.contains(start):
            raise InputError(f"x1 must lie in the domain; {validate.show(start)} does not")
        self.policy, self.history, self.engine = policy, history, engine
        self.unchecked = False
        """Whether it was loaded from a file without a digest, of which nothing could tell whether it was still what had been written."""
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
        ledger = Ledger(domain, len(start), _ascending(levels), precision) if certify else None
        configured = policy if isinstance(policy, Configured) else None
        self._parts = SessionParts(configured, record, domain, rounds, ledger)  # as they were at the start: see `_settled`
        self._start = start
        each, declared = getattr(record, "each", None), self._parts.parameter("constraints")
        self._k: int | None = len(each) if each is not None else None if declared is None else int(declared)
        size = LARGEST if largest is None else validate.positive("largest", largest)
        if size > LARGEST:
            raise InputError(f"largest must be at most {LARGEST:g}, not {size:g}")
        self._limits = Limits(size, self._k, None if most_constraints is None else validate.whole("most_constraints", most_constraints))
        horizon = self._parts.parameter("horizon")
        self._horizon = inf if horizon is None else float(horizon)
        totals = RunningTotals(0.0, np.zeros(self._k or 1), np.zeros(self._k or 1))
        self._now = Standing(Played(rounds.copies[0], 0, totals, 0, 0), Kept(rounds, ledger, WarningLog(), Contexts()))
        self._compiled: CompiledRound | None = None
        # Compiled rounds have a cost, of the modulus that the policy was told, where it was told one.
        told_of = (getattr(node, "modulus", None) for node in records.nodes(record))
        self._curved = any(modulus is not None and np.any(modulus) for modulus in told_of)
        self._live: CompiledRound | None = None  # the compiled rounds, while they are ahead of `_now`, or equal to it
        self._check_at = 0.0  # up to this round nothing is due after compiled ones; never above `next_check`
        self._failed = -1  # the last turn after which a look failed
        self._inside = False  # whether a call is at work: see `turns`
        if engine == "numba":
            check_compiled(record)
            require_compiler()  # if it is missing, now is the time to say so

    # --- the round -------------------------------------------------------------------------------------------------------------------

    @property
    def rounds(self) -> int:
        """How many rounds have been observed."""
        fast = self._live
        return self._now.played.rounds if fast is None else fast.rounds

    @property
    def cost(self) -> float:
        """The total cost so far."""
        fast = self._live
        return float(self._now.played.totals.cost if fast is None else fast.cost)

    @property
    def ccv(self) -> float:
        """The cumulative constraint violation so far: of the constraint that has been violated most."""
        return float(self.violations.max())

    @property
    def violations(self) -> Array:
        """The cumulative violation of every constraint."""
        return self._read(lambda _: np.array(self._now.played.totals.hard if self._live is None else self._live.hard))

    @property
    def balances(self) -> Array:
        """The sum of every constraint's values with their signs: 0 or below where the limit was held on average."""
        signed = self._read(self._stand).played.totals.signed
        if signed is None:
            raise InputError("the file that this session was loaded from is older than balances are: they are not known")
        return np.array(signed)

    @property
    def price(self) -> Array:
        """What one more unit of each limit seems to be worth at present, in units of cost a round: 0 or above; an estimate.

        Policies with queues have one (`soft`, `neely2017`, `liakopoulos2019`, `yu2020`; not where they clip). It is in the units given:
        cost per unit of constraint. On a stream that stays the same it comes near the limit's multiplier; nothing is proved of it.

        >>> import bridle
        >>> session = Session(bridle.policy("soft", bridle.Ball(2), lipschitz=1.0, bound=2.0))
        >>> session.price
        array([0.])
        """
        price = self._read(lambda nested: self._settled(nested).price())
        if price is None:
            name = getattr(self.policy, "name", type(self._parts.record).__name__)
            raise InputError(f"policy {name} keeps no price here; policies with queues do, such as soft (without clip)")
        return price

    @property
    def state(self) -> Any:
        """The policy's state, a plain record; a copy, so that nothing done to it reaches the session."""
        state = self._read(lambda nested: self._settled(nested).pending.ready.state)
        return records.transform(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, state)

    def decide(self) -> Array:
        """The decision of this round; the same until `observe` is called."""
        nested = False
        while self._inside and not nested:
            nested = wait(self, ENTRANCES, reading=True)
        if nested:
            return self._decision()
        self._inside = True
        try:
            return self._decision()
        finally:
            self._inside = False

    def _decision(self) -> Array:
        fast, now = self._live, self._now
        x = fast.x if fast is not None else now.played.copy.x if now.alone else now.pending().ready.x
        return x.copy()

    def observe(
        self,
        f: ArrayLike = 0.0,
        df: Numbers = None,
        g: Numbers = None,
        dg: Numbers = None,
        modulus: Numbers = None,
        *,
        ticket: Ticket | int | None = None,
        partial: bool = False,
        context: str | int | None = None,
    ) -> None:
        """Take in what was revealed at the decision: cost and constraint values and their gradients.

        `g` is a number or ``(k,)``, `dg` is ``(dim,)`` or ``(k, dim)``; `modulus` is the strong convexity of this round's cost, 0 or
        above, where it is not what the policy was told. A round without a cost leaves out f and df, and has none; one without a constraint
        leaves out g and dg. k may change from round to round unless the policy was made for a certain number of constraints.

        With a `ticket` from `ask` it is the feedback of that round; `partial=True` says that its other half, the cost or the constraints,
        comes later. `context` names what the round was about: where the same name comes again, the same functions must have been meant,
        and values and gradients that cannot be of one convex function raise an alarm.
        """
        counted = False
        before = fast = None
        try:
            while self._inside:
                wait(self, ENTRANCES, reading=False)
            self._inside = True
            try:
                outcome = WRONG_TYPES
                if ticket is None and modulus is None and context is None and partial is False and not (df is None and self._curved):
                    fast = self._live
                    if fast is not None:
                        before = fast.numbers[fast.rounds_at]
                        if before + 1.0 < self._check_at:
                            outcome = fast.play(f, df, g, dg)  # type: ignore[arg-type]
                            if outcome is PLAYED and self.history is None:
                                counted = True
                                return
                    again = self.engine != "python" and (outcome is not REFUSED or self._out_of_step())
                else:
                    again = False
                entry = None
                if outcome is PLAYED_CHECK_NOW and fast is not None:
                    self._end_batch(fast)
                elif outcome is not PLAYED:
                    fast = before = None
                    before = self._begin(handing_back=not again)
                    outcome = self._play(f, df, g, dg) if again else REFUSED
                    if outcome is REFUSED:
                        entry = self._take(f, df, g, dg, modulus, ticket, partial, context)
                if self.history is not None and outcome is not REFUSED and self._live is not None:
                    entry = self._entry(self._live.feedback(), None)
                counted = True
            except BaseException:
                counted = before is not None and (self._turn() != before if fast is None else fast.numbers[fast.rounds_at] != before)
                raise
            finally:
                self._inside = False
            if entry is not None or self._now.kept.log.unsent:
                self._tell(entry)
        except BaseException as wrong:
            mark(wrong, counted)
            raise

    def step(self, cost: object, constraints: Iterable[object] = ()) -> Array:
        """One whole round from functions: decide, evaluate, observe; gives the decision that was played.

        Each function is a `Function` (a constraint may hold several), a pair (value, gradient) of callables, or one callable, whose
        gradient JAX then takes. Now and then they are asked again, at the decision and near it, to see whether their values and gradients
        fit together (not with ``certify=False``).

        >>> import bridle
        >>> session = Session(bridle.policy("sinha2024", bridle.Ball(2), horizon=100, lipschitz=1.0))
        >>> session.step(cost=bridle.Affine([1.0, 0.0]), constraints=[(lambda x: x[1] - 0.5, lambda x: [0.0, 1.0])])
        array([0., 0.])
        """
        if callable(constraints) or hasattr(constraints, "value") or not isinstance(constraints, Iterable):
            raise InputError(f"constraints must be a list of functions, not {validate.show(constraints)}")
        counted, rounds = False, None
        try:
            x = self.decide()
            f, df = evaluate("cost", cost, x, several=False)
            answers = [Answer(COST, cost, f, df)]
            for i, constraint in enumerate(constraints):
                value, grad = evaluate(f"constraints[{i}]", constraint, x, several=True)
                answers.append(Answer(Subject(f"constraints[{i}]"), constraint, value, grad))
            limits: dict[str, Array] = {}
            if len(answers) > 1:
                limits["g"] = np.concatenate([each.value.reshape(-1) for each in answers[1:]])
                limits["dg"] = np.concatenate([each.grad.reshape(-1, len(x)) for each in answers[1:]])
            rounds = self.rounds
            self.observe(f=f.item(), df=df, **limits)  # type: ignore[arg-type]
            counted, t = True, self.rounds
            if self._parts.ledger is not None and self._parts.domain is not None and clocks.due(t).assumptions:
                doubts = ask_again(answers, x, self._parts.domain, t // clocks.ASSUMPTIONS_EVERY)
                self._read(lambda _: self._note_doubts(doubts, t))
                self._tell(None)
        except BaseException as wrong:
            mark(wrong, counted or (rounds is not None and getattr(wrong, "counted", self.rounds > rounds)))
            raise
        return x

    def _note_doubts(self, doubts: list[Doubt], t: int) -> None:
        now = self._now
        log = now.kept.log.clone()
        for doubt in doubts:
            doubt.warn(log, t)
        self._now = Standing(now.played, now.kept._replace(log=log))

    def warm_up(self, constraints: int | None = None) -> None:
        """Do now what the first rounds would pay for: load every solver, and with ``engine="numba"`` compile the round.

        `constraints` is how many a round will have; compiled rounds need to be told, unless the policy was made for a certain number.
        Nothing changes: decisions, certificates and files are what they are without it. A second call has nothing left to do.

        >>> import bridle
        >>> session = Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> session.warm_up()
        >>> session.rounds, session.decide()
        (0, array([0., 0.]))
        """
        k = self._k if constraints is None else validate.whole("constraints", constraints)
        if self._k is not None and k != self._k:
            raise InputError(f"constraints must be {self._k}, as the policy was made for, not {validate.show(constraints)}")
        compiles = self.engine != "python" and self._compiled is None
        if compiles and k is None:
            raise InputError("constraints must be given: how many a round has is not known before the first, and the round is compiled")
        parts = self._read(self._settled)
        if parts.ledger is not None:
            load_solvers()
        use_domain(parts)
        if parts.configured is not None:  # a policy of the user's own may take notice
            other = Session(parts.configured, self._start, domain=parts.domain, certify=False)
            rehearse(other.decide, other.observe, k or 1)
        if compiles and k is not None:
            self._compile(k)

    # --- feedback that comes late ----------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """How many rounds wait for feedback."""
        return len(self._now.kept.pending.waiting)  # none while rounds are compiled

    @property
    def dropped(self) -> tuple[int, int]:
        """How many costs, and the constraints of how many rounds, were forgotten or dropped."""
        costs, limits = self._now.kept.pending.lost
        return costs, limits

    def ask(self) -> Ticket:
        """Begin a round whose feedback comes later: its ticket, with an `id` and the decision `x`.

        >>> import bridle
        >>> session = Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> first, second = session.ask(), session.ask()
        >>> session.observe(f=0.3, df=[1.0, 0.0], ticket=second)
        >>> session.forget(first)
        >>> session.rounds, session.pending, session.dropped
        (1, 0, (1, 1))
        """
        counted, begun = False, None
        try:
            while self._inside:
                wait(self, ENTRANCES, reading=False)
            self._inside = True
            try:
                self._begin(handing_back=True)
                begun = self._now.played.begun
                for number in self._now.pending().overdue():
                    self._warn_of_dropping(number)  # first: it may be made an error
                    self._give_up(number)
                pending = self._now.own_pending()
                ticket = pending.ask()
                self._put(pending)
                counted = True
            except BaseException:
                counted = begun is not None and self._now.played.begun != begun
                raise
            finally:
                self._inside = False
            self._tell(None)
        except BaseException as wrong:
            mark(wrong, counted)
            raise
        return ticket

    def forget(self, ticket: Ticket | int) -> None:
        """Give a round up: what has not come of its feedback never will, and is charged to the bounds."""
        counted, number = False, None
        try:
            while self._inside:
                wait(self, ENTRANCES, reading=False)
            self._inside = True
            try:
                self._begin(handing_back=True)
                number, _ = self._now.pending().find(ticket)
                self._give_up(number)
                counted = True
            except BaseException:
                counted = number is not None and number not in self._now.kept.pending.waiting
                raise
            finally:
                self._inside = False
            self._tell(None)
        except BaseException as wrong:
            mark(wrong, counted)
            raise

    def _warn_of_dropping(self, number: int) -> None:
        now = self._now
        pending = now.pending()
        if now.kept.log.fresh(DroppedWarning):
            why = "too many rounds were waiting" if pending.timeout is None else "it waited too long, or too many did"
            message = f"ticket {number} was dropped: {why}; it is charged to the bounds, and so will be others"
            log = now.kept.log.clone()
            log.warn(DroppedWarning, message, pending.begun, ticket=number)
            self._now = Standing(now.played, now.kept._replace(log=log))
            log.send()

    def _give_up(self, number: int) -> None:
        """Give a round up, and look around if a part of it had come: then it counts as observed."""
        pending = self._now.own_pending()
        observed = pending.give_up(number)
        self._put(pending, observed)
        if observed:
            self._follow_up()

    def _put(self, pending: PendingRounds, observed: bool = False) -> None:
        """Stand with these pending rounds, of which one more was `observed`."""
        (_, _, totals, rounds, taken, due), kept = self._now
        kept = kept._replace(pending=pending, next_check=0.0 if observed else kept.next_check)
        played = Played(pending.copies[0], pending.begun, totals, rounds + observed, taken, LOOK if observed else due)
        self._now = Standing(played, kept)

    # --- what the run proves ---------------------------------------------------------------------------------------------------------

    @validate.undisturbed
    def certificate(self) -> Certificate:
        """What the observations prove: bounds on regret, counts of violations, whether any action is feasible at all.

        >>> import bridle
        >>> session = Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> for _ in range(100):
        ...     x = session.step(cost=bridle.Affine([-1.0, 0.0]), constraints=[bridle.Affine([1.0, 0.0], -0.5)])
        >>> round(session.certificate().regret, 2)  # the best feasible action has x_1 = 1/2
        0.5
        """
        certificate = self._read(self._certificate)
        if certificate is None:
            raise InputError("certify was False: this session keeps no certificates")
        return certificate

    def _certificate(self, nested: bool) -> Certificate | None:
        (_, _, totals, rounds, _, _), kept = now = self._stand(nested)
        return self._parts_of(now).certificate(rounds, totals, self._k or len(totals.hard), kept.log.rounds)

    @validate.undisturbed
    def report(self) -> str:
        """The certificate in plain sentences."""
        return report_text.report(self.certificate()) + (report_text.UNCHECKED if self.unchecked else "")

    @validate.undisturbed
    def bound(self) -> Bound:
        """The policy's theorem for this run: with the longest gradient seen, over all copies, plus what dropped rounds may add.

        It takes for granted what a theorem does and no run can show: convexity, and that some action is feasible where none is disproved.
        """
        return self._read(self._bound)

    def _bound(self, nested: bool) -> Bound:
        now = self._stand(nested)
        totals = now.played.totals
        return self._parts_of(now).complete().bound(totals, self._k or len(totals.hard))

    # --- saving ----------------------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on to one `.npz` file, atomically."""
        self._read(lambda nested: savefile.save(path, self._snapshot(nested)))

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        policy: Configured | Policy[S] | None = None,
        history: Callable[[HistoryEntry], object] | None = None,
        engine: str | None = None,
    ) -> Session:
        """The session that was saved, bit for bit; `policy` is needed where the one that was saved is not registered.

        `engine` is the one it was saved with, unless another is named.
        """
        saved = savefile.read(path)
        chosen = cast("Configured | Policy[object]", saved.make_policy() if policy is None else policy)
        options = saved.options
        if engine is not None:
            options["engine"] = engine
        try:
            session = cls(chosen, saved.start, history=history, **options)  # type: ignore[arg-type]
        except InputError as wrong:
            raise InputError(f"cannot load {saved.path}: {wrong}") from None
        session.unchecked = not saved.checked
        restored = saved.restore(session._snapshot(False))
        pending, ledger, kept = session._parts.pending, session._parts.ledger, session._now.kept
        pending.reborn()
        taken = 0 if ledger is None else ledger.open
        session._now = Standing(Played(pending.copies[0], pending.begun, restored.totals, restored.rounds, taken), kept)
        if session.engine != "python" and restored.compiled is not None:
            with saved.checking():
                session._compile(restored.compiled)
        return session

    def _snapshot(self, nested: bool) -> savefile.Snapshot:
        (_, _, totals, rounds, _, _), kept = now = self._stand(nested)
        compiled = None if self._compiled is None else self._compiled.k
        return savefile.Snapshot(
            self._parts_of(now), self._start, rounds, totals, kept.log, kept.contexts, self.engine, compiled, self._limits
        )

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: what was compiled stays behind, and is made again in the next round."""
        now = self._read(self._stand)
        kept = now.kept._replace(
            pending=now.own_pending(), ledger=copy(now.ledger()), log=now.kept.log.clone(), contexts=now.kept.contexts.clone()
        )
        return {**vars(self), "_now": Standing(now.played, kept), "_compiled": None, "_live": None, "_check_at": 0.0, "_inside": False}

    def __setstate__(self, state: dict[str, object]) -> None:
        """What a copy or a pickle becomes: a session whose tickets have numbers of their own."""
        vars(self).update(state)
        self._now.kept.pending.reborn()

    # --- inside ----------------------------------------------------------------------------------------------------------------------

    def _read(self, what: Callable[[bool], T]) -> T:
        """What is read of this session, while no other call is at work; it is told whether it is inside of a call of this thread."""
        nested = False
        while self._inside and not nested:
            nested = wait(self, ENTRANCES, reading=True)
        if nested:
            return what(True)
        self._inside = True
        try:
            return what(False)
        finally:
            self._inside = False

    @property
    def _log(self) -> WarningLog:
        return self._now.kept.log

    @property
    def _contexts(self) -> Contexts:
        return self._now.kept.contexts

    def _turn(self) -> int:
        """A number that grows with every observation."""
        played, fast = self._now.played, self._live
        return played.turn if fast is None else played.turn + 2 * (fast.rounds - played.rounds)

    def _begin(self, handing_back: bool) -> int:
        """Do first what an earlier call was broken off in, and warn of what nobody has heard of; the turn after which the call begins."""
        if handing_back:
            played, kept = self._now
            if self._live is None and played.due is NOTHING and not kept.log.unsent:
                return played.rounds + played.taken
            self._stand()
        elif self._broken_off():
            self._follow_up()
        log = self._now.kept.log
        if log.unsent:
            log.send()
        return self._turn()

    def _stand(self, nested: bool = False) -> Standing:
        """Where this session stands: with what compiled rounds have played, and with nothing left to do.

        Inside of another call nothing is done to the session itself: what that call is about to do is done to a standing of its own.
        """
        fast = self._live
        if nested:
            now = self._now
            if self._broken_off():
                now = Standing(now.played, self._what_is_due(now, fast, clocks.due(self.rounds), apart=True))
            return now if fast is None else Standing(fast.played(now.played, now.kept.ledger), now.kept)
        if self._broken_off():
            self._follow_up()
        if fast is not None:
            self._now = Standing(fast.played(self._now.played, self._now.kept.ledger), self._now.kept)
            self._live = None
        return self._now

    def _settled(self, nested: bool = False) -> SessionParts:
        """The parts of this session as it stands."""
        return self._parts_of(self._stand(nested))

    def _parts_of(self, now: Standing) -> SessionParts:
        _, record, domain, *_ = self._parts
        ledger = now.kept.ledger
        if ledger is not None and ledger.open != now.played.taken - ledger.rounds_read:
            ledger = now.ledger()
        return SessionParts(self._parts.configured, record, domain, now.pending(), ledger)

    def _compile(self, k: int) -> CompiledRound:
        (copy, _, totals, *_), kept = now = self._now
        fast = CompiledRound(self._parts.record, copy, kept.ledger, totals, k, self._limits.largest)
        ledger = now.ledger()
        if ledger is not None:
            ledger.read_with(fast.reader)  # also batches that Python ends
            self._now = Standing(now.played, kept._replace(ledger=ledger))
        self._compiled = fast
        return fast

    def _play(self, f: ArrayLike, df: Numbers, g: Numbers, dg: Numbers) -> PlayOutcome:
        """Play a round of decide and observe in compiled code, in whatever form the numbers come."""
        fast = self._live
        if fast is None:
            fast = self._compiled
            if fast is None:
                feedback = self._checked(self._decision(), f, df, g, dg)
                fast = self._compile(len(feedback.g))
            now = self._now
            if not fast.fits(now):
                return REFUSED
            ledger = fast.follow(now)
            if ledger is not now.kept.ledger:
                self._now = Standing(now.played, now.kept._replace(ledger=ledger))
            self._check_at, self._live = now.kept.next_check, fast
        outcome = fast.play(f, df, g, dg)  # type: ignore[arg-type]
        if outcome is WRONG_TYPES:
            feedback = self._checked(fast.x, f, df, g, dg)
            if not self.rounds and len(feedback.g) != fast.k:  # the first round decides, whatever `warm_up` was told
                fast = self._compile(len(feedback.g))
                self._live = None
                return self._play(f, df, g, dg)
            outcome = fast.play(float(feedback.f), feedback.df, feedback.g, feedback.dg)
        if outcome is PLAYED and fast.rounds >= self._now.kept.next_check:
            self._follow_up()
            return PLAYED_CHECK_NOW
        if outcome is PLAYED_CHECK_NOW:
            self._end_batch(fast)
            return PLAYED_CHECK_NOW
        if outcome is PLAYED:
            return PLAYED
        self._stand()
        return REFUSED

    def _checked(self, x: Array, f: ArrayLike, df: Numbers, g: Numbers, dg: Numbers) -> Feedback:
        with np.errstate(all="ignore"):
            return checked_feedback(x, self._limits, f, df, g, dg, seen=self._most_seen())

    def _most_seen(self) -> int | None:
        """The most constraints that a record has had so far; None before the first."""
        played = self._now.played
        return len(played.totals.hard) if played.taken or self._live is not None else None

    def _take(
        self,
        f: ArrayLike,
        df: Numbers,
        g: Numbers,
        dg: Numbers,
        modulus: Numbers,
        ticket: Ticket | int | None,
        partial: bool,
        context: str | int | None,
    ) -> HistoryEntry | None:
        """Take in an observation; what `history` is to be told where that ends a round."""
        now = self._now
        (copy, begun, totals, rounds, taken, _), (pending, ledger, log, contexts, next_check, next_tick, done) = now
        number, waiting = (None, None) if ticket is None else now.pending().find(ticket)
        if not isinstance(partial, (bool, np.bool_)):
            raise InputError(f"partial must be True or False, not {validate.show(partial)}")
        if partial and waiting is None:
            raise InputError("partial must be given with a ticket: a round of decide and observe is observed at once")
        seen = len(totals.hard) if rounds or taken else None
        name, alone = None if context is None else _context(context), len(pending.copies) == 1 and not pending.waiting
        with np.errstate(all="ignore"):  # what comes of it is looked at
            if alone:
                feedback = whole = checked_feedback(copy.x, self._limits, f, df, g, dg, modulus, seen=seen)
                state, x = pending.advance(copy, feedback)
                costs = copy.costs if feedback.modulus is None else pending.costs(copy, feedback)
                copy, begun = Copy(state, x, copy.updates + 1, copy.steered, costs), begun + 1
            else:
                pending = now.own_pending()
                if number is None or waiting is None:
                    ready = pending.ready
                    feedback = whole = checked_feedback(ready.x, self._limits, f, df, g, dg, modulus, seen=seen)
                    pending.go_on(*pending.advance(ready, feedback), feedback)
                else:
                    feedback = checked_feedback(waiting.x, self._limits, f, df, g, dg, modulus, seen=seen)
                    whole = pending.receive(number, feedback, (df is not None, g is not None), partial)
                copy, begun = pending.copies[0], pending.begun
        t, at, full = rounds + (whole is not None), begun if number is None else round_of(number), False
        values = feedback.g
        if len(totals.hard) != len(values):
            totals, values = totals.padded(len(values)), np.pad(values, (0, max(0, len(totals.hard) - len(values))))
        if ledger is not None:
            if not ledger.fits(len(feedback.g)):
                ledger = now.ledger()
                assert ledger is not None
                ledger.begin(len(feedback.g))
            row = taken - ledger.rounds_read
            ledger.write(row, feedback, at)
            full = row + 1 == len(ledger.rows)
        if name is not None:
            contexts = contexts.clone()
            doubt = contexts.meet(name, feedback, df is not None, g is not None)
            if doubt is not None:
                log = log.clone()
                doubt.warn(log, at)
        if name is not None or not alone or ledger is not now.kept.ledger:
            kept = Kept(pending, ledger, log, contexts, next_check, next_tick, done)
        else:
            kept = now.kept
        clock = whole is not None and (t >= next_check or t >= next_tick or self._compiled is not None)
        due = LOOK if clock else READ if full else NOTHING
        self._now = Standing(Played(copy, begun, totals.add(feedback.f, values), t, taken + 1, due), kept)
        if due:
            self._follow_up()
        return None if self.history is None or whole is None else self._entry(whole, number)

    def _broken_off(self) -> bool:
        """Whether what was due after the last observation is still to be done."""
        now, fast = self._now, self._live
        if fast is None:
            return now.unfinished
        (_, _, _, rounds, taken, _), (_, ledger, _, _, next_check, _, done) = now
        n = fast.rounds
        if n < next_check and (ledger is None or taken + n - rounds - ledger.rounds_read != len(ledger.rows)):
            return False
        return done != rounds + taken + 2 * (n - rounds)

    def _out_of_step(self) -> bool:
        """Whether the compiled rounds have no row to write in, because the end of a batch was broken off; they have one then."""
        (_, _, _, rounds, taken, _), (_, ledger, *_), fast = *self._now, self._live
        if fast is None or ledger is None or self._broken_off():
            return fast is not None and ledger is not None
        row = taken + fast.rounds - rounds - ledger.rounds_read
        if fast.row == row:
            return False
        fast.resume(row)
        return True

    def _end_batch(self, fast: CompiledRound) -> None:
        """A compiled round has filled a batch: read it, and look around if that is due."""
        ledger, read = self._now.kept.ledger, None
        if ledger is not None and not ledger.stirred:
            done, read = ledger.pass_over(functools.partial(fast.note, ledger, self._now.played))
            if done and fast.rounds < self._now.kept.next_check:
                fast.resume(0)
                return
        self._follow_up(read)

    def _follow_up(self, read: BatchMemory | None = None) -> None:
        """Do what is due after the last observation; the session stands with it, or as before. `read`: what was made of a full batch.

        A look that fails is repeated before the next observation, and given up if it fails again.
        """
        fast, now = self._live, self._now
        t = now.played.rounds if fast is None else fast.rounds
        due = clocks.due(t)
        if fast is not None and (due.assumptions or t > self._horizon):
            self._now = now = Standing(fast.played(now.played, now.kept.ledger), now.kept)
        try:
            kept = self._what_is_due(now, fast, due, read)
        except Exception:
            if self._failed != self._turn():
                self._failed = self._turn()
                raise
            kept = self._what_is_due(now, fast, due, giving_up=True)
        self._check_at = 0.0
        self._now = Standing(now.played, kept)
        if fast is not None:
            if kept.ledger is not None:
                fast.resume(now.played.taken + t - now.played.rounds - kept.ledger.rounds_read)
            self._check_at = kept.next_check

    def _what_is_due(
        self,
        now: Standing,
        fast: CompiledRound | None,
        due: Due,
        read: BatchMemory | None = None,
        *,
        apart: bool = False,
        giving_up: bool = False,
    ) -> Kept:
        """What is kept once everything is done that is due after the last observation: a full batch is read, assumptions are checked.

        `fast` has played rounds beyond `now`. `read` is what was made of a full batch. `apart`: nothing of the session's own memory may be
        used; `giving_up`: without a look.
        """
        (_, _, _, t, taken, to_do), (pending, ledger, log, contexts, next_check, next_tick, _) = now
        ahead, look = 0 if fast is None else fast.rounds - t, False
        t, taken = t + ahead, taken + ahead
        if ledger is not None and not (ledger.rounds_read == taken and ledger.at_rest):
            ledger = now.ledger(ahead)
            assert ledger is not None
            if fast is not None and ahead:
                fast.note(ledger, now.played)
            if apart:
                ledger.read_with(None)
            if 0 < ledger.open == len(ledger.rows):
                ledger.close(read)
                look = fast is not None and ledger.stirred
        if fast is not None or to_do is LOOK:
            if t >= next_check:
                look = True
            elif fast is None and t >= next_tick:
                next_tick = clocks.next_multiple(t, clocks.WITNESS_EVERY)
                look = due.contradiction or (due.witness and ledger is not None and ledger.stirred)
        if look and giving_up:
            next_check = clocks.next_multiple(t, clocks.ASSUMPTIONS_EVERY)
        elif look:
            log, (configured, record, domain, _, _) = log.clone(), self._parts
            parts = SessionParts(configured, record, domain, now.pending(), ledger)
            if search_witness(parts, log, t, due):
                check_assumptions(parts, log, t, now.played.begun + ahead, due)
            next_check = next_check_after(parts, log, t)
        if fast is None and self._compiled is not None and to_do is LOOK:
            next_check = 0.0  # batches may be out of step: the next compiled round sees
        return Kept(pending, ledger, log, contexts, next_check, next_tick, t + taken)

    def _entry(self, feedback: Feedback, number: int | None) -> HistoryEntry:
        """What `history` is told of a round."""
        fast = self._live
        cost, _, hard = (self._now.played.totals.cost, None, self._now.played.totals.hard) if fast is None else (fast.cost, None, fast.hard)
        entry: HistoryEntry = {
            "round": self.rounds,
            "x": np.array(feedback.x),
            "f": feedback.f,  # type: ignore[typeddict-item]
            "g": feedback.g.copy(),
            "violation": np.maximum(feedback.g, 0.0),
            "cost": float(cost),
            "ccv": float(hard.max()),
        }
        if number is not None:
            entry["ticket"] = number
        return entry

    def _tell(self, entry: HistoryEntry | None) -> None:
        """Warn of what was found, and tell of the round: it is counted, and the session is free."""
        self._now.kept.log.send()
        if entry is not None and self.history is not None:
            self.history(entry)


def _ascending(levels: Sequence[float]) -> list[float]:
    numbers = validate.array("levels", levels)
    if numbers.ndim != 1 or (numbers <= 0.0).any() or (np.diff(numbers) <= 0.0).any():
        raise InputError(f"levels must be numbers above 0 in ascending order, not {validate.show(levels)}")
    return numbers.tolist()  # type: ignore[no-any-return]


def _context(name: object) -> str:
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        raise InputError(f"context must be a name or a whole number, not {validate.show(name)}")
    try:
        return str(name)
    except ValueError:  # it has thousands of digits
        raise InputError(f"context must be a name or a whole number of fewer digits, not {validate.show(name)}") from None
