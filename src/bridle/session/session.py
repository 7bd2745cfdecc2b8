"""A policy driven round by round by a caller: decide, observe, save, resume; and what the run proves about itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from os import PathLike
from typing import Any, NotRequired, TypedDict, cast

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
from bridle.session.alarms import COST, Answer, Contexts, Subject, WarningLog, ask_again
from bridle.session.certificate import Certificate
from bridle.session.compiled_round import PLAYED_CHECK_NOW, REFUSED, WRONG_TYPES, CompiledRound, PlayOutcome
from bridle.session.feasibility import TOLERANCE
from bridle.session.feedback import Numbers, checked_feedback, evaluate, is_sound
from bridle.session.late_feedback import LATE_FORMS, PendingRounds, Ticket
from bridle.session.ledger import LEVELS, Ledger
from bridle.session.monitor import check_assumptions, next_check, search_witness
from bridle.session.parts import SessionParts
from bridle.session.warm_up import load_solvers, rehearse, use_domain

ENGINES_OF_SESSIONS = ("python", "numba")
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


class Session:
    """One policy and its state; totals of what was observed; certificates and alarms; rounds whose feedback comes late.

    `history`, if given, is called after every round with a dict: round, x, f, g, violation, cost and ccv (and ticket, where there is one).
    `certify=False` leaves out certificates and the alarms that rest on them; `levels` are the violations whose number is counted;
    `tolerance` is how exact constraint values and gradients are (1e-6 for single precision). `late` says how rounds begun by `ask` are
    played: "copies" (each by a copy of the policy that waits for nothing) or "pool" (one policy fed whatever arrives). At most `pending`
    rounds wait; one that has waited for more than `timeout` further rounds is dropped, and charged.

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
        with np.errstate(over="ignore", invalid="ignore"):
            sound = rounds.ready.x.shape == start.shape and is_sound(rounds.ready.x, rounds.ready.state)
        if not sound:
            raise InputError(
                f"policy must start with numbers and a finite decision of shape {start.shape}; {validate.show(record)} does not"
            )
        precision = validate.positive("tolerance", tolerance)
        ledger = Ledger(domain, len(start), _ascending(levels), precision) if certify else None
        configured = policy if isinstance(policy, Configured) else None
        self._parts = SessionParts(configured, record, domain, rounds, ledger)  # compiled rounds leave it behind: see `_settled`
        self._start = start
        each, declared = getattr(record, "each", None), self._parts.parameter("constraints")
        self._k: int | None = len(each) if each is not None else None if declared is None else int(declared)
        self._rounds, self._totals = 0, RunningTotals(0.0, np.zeros(self._k or 1), np.zeros(self._k or 1))
        self._log, self._contexts = WarningLog(), Contexts()
        horizon = self._parts.parameter("horizon")
        self._horizon = inf if horizon is None else float(horizon)
        self._next_check = 0.0  # the round after which to look around at the latest
        self._next_tick = 0  # the round after which to ask whether to look around before
        self._compiled: CompiledRound | None = None
        # Compiled rounds have a cost, of the modulus that the policy was told, where it was told one.
        told_of = (getattr(node, "modulus", None) for node in records.nodes(record))
        self._curved = any(modulus is not None and np.any(modulus) for modulus in told_of)
        if engine == "numba":
            check_compiled(record)
            require_compiler()  # if it is missing, now is the time to say so

    # --- the round -------------------------------------------------------------------------------------------------------------------

    @property
    def rounds(self) -> int:
        """How many rounds have been observed."""
        return self._rounds

    @property
    def cost(self) -> float:
        """The total cost so far."""
        fast = self._compiled
        return float(fast.cost if fast is not None and fast.ahead else self._totals.cost)

    @property
    def ccv(self) -> float:
        """The cumulative constraint violation so far: of the constraint that has been violated most."""
        return float(self._hard.max())

    @property
    def _hard(self) -> Array:
        fast = self._compiled
        return np.asarray(fast.hard if fast is not None and fast.ahead else self._totals.hard)

    @property
    def violations(self) -> Array:
        """The cumulative violation of every constraint."""
        return self._hard.copy()

    @property
    def balances(self) -> Array:
        """The sum of every constraint's values with their signs: 0 or below where the limit was held on average."""
        self._settled()
        signed = self._totals.signed
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
        price = self._settled().price()
        if price is None:
            name = getattr(self.policy, "name", type(self._parts.record).__name__)
            raise InputError(f"policy {name} keeps no price here; policies with queues do, such as soft (without clip)")
        return price

    @property
    def state(self) -> Any:
        """The policy's state, a plain record; a copy, so that nothing done to it reaches the session."""
        state = self._settled().pending.ready.state
        return records.transform(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, state)

    def decide(self) -> Array:
        """The decision of this round; the same until `observe` is called."""
        fast = self._compiled
        return self._parts.pending.ready.x.copy() if fast is None or not fast.ahead else fast.x.copy()

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
        plain = ticket is None and modulus is None and context is None and not partial
        if self.engine != "python" and plain and not (df is None and self._curved):
            fast = self._compiled
            outcome = fast.play(f, df, g, dg) if fast is not None and fast.ahead else WRONG_TYPES  # type: ignore[arg-type]
            if outcome is WRONG_TYPES:
                outcome = self._play(f, df, g, dg)
            if outcome is not REFUSED:
                self._rounds = t = self._rounds + 1
                if outcome is PLAYED_CHECK_NOW or t >= self._next_check:
                    self._look_around()
                if self.history is not None and self._compiled is not None:
                    self._tell(self.history, self._compiled.feedback(), None)
                return
        pending = self._settled().pending
        number, waiting = (None, None) if ticket is None else pending.find(ticket)
        if partial and waiting is None:
            raise InputError("partial must be given with a ticket: a round of decide and observe is observed at once")
        name = None if context is None else _context(context)
        copy = pending.ready
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is looked at
            feedback = checked_feedback(copy.x if waiting is None else waiting.x, self._k, f, df, g, dg, modulus)
            after = pending.advance(copy, feedback) if waiting is None else None
        if after is not None:
            self._count(feedback, pending.go_on(*after, feedback))
            self._finish(feedback, None)
        elif number is not None and waiting is not None:
            whole = pending.receive(number, feedback, (df is not None, g is not None), partial)
            self._count(feedback, number)
            if whole is not None:
                self._finish(whole, number)
        if name is not None and (doubt := self._contexts.meet(name, feedback, df is not None, g is not None)) is not None:
            doubt.warn(self._log, pending.begun if number is None else number)

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
        x = self.decide()
        f, df = evaluate("cost", cost, x, several=False)
        answers = [Answer(COST, cost, f, df)]
        for i, constraint in enumerate(constraints):
            value, grad = evaluate(f"constraints[{i}]", constraint, x, several=True)
            answers.append(Answer(Subject(f"constraints[{i}]"), constraint, value, grad))
        limits = answers[1:]
        if not limits:
            self.observe(f=f.item(), df=df)
        else:
            values, rows = [each.value.reshape(-1) for each in limits], [each.grad.reshape(-1, len(x)) for each in limits]
            self.observe(f=f.item(), df=df, g=np.concatenate(values), dg=np.concatenate(rows))
        if self._parts.ledger is not None and self._parts.domain is not None and clocks.due(self._rounds).assumptions:
            turn = self._rounds // clocks.ASSUMPTIONS_EVERY
            for doubt in ask_again(answers, x, self._parts.domain, turn):
                doubt.warn(self._log, self._rounds)
        return x

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
        parts = self._settled()
        if parts.ledger is not None:
            load_solvers()
        use_domain(parts)
        if parts.configured is not None:  # a policy of the user's own may take notice
            other = Session(parts.configured, self._start, domain=parts.domain, certify=False)
            rehearse(other.decide, other.observe, k or 1)
        if compiles and k is not None:
            self._compiled = self._compile(k)

    # --- feedback that comes late ----------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """How many rounds wait for feedback."""
        return len(self._parts.pending.waiting)  # none while rounds are compiled

    @property
    def dropped(self) -> tuple[int, int]:
        """How many costs, and the constraints of how many rounds, were forgotten or dropped."""
        costs, limits = self._parts.pending.lost
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
        pending = self._settled().pending
        for number in pending.overdue():
            why = "too many rounds were waiting" if pending.timeout is None else "it waited too long, or too many did"
            message = f"ticket {number} was dropped: {why}; it is charged to the bounds, and so will be others"
            self._log.warn(DroppedWarning, message, pending.begun, ticket=number)  # first: it may be made an error
            self._forget(number)
        return pending.ask()

    def forget(self, ticket: Ticket | int) -> None:
        """Give a round up: what has not come of its feedback never will, and is charged to the bounds."""
        number, _ = self._settled().pending.find(ticket)
        self._forget(number)

    def _forget(self, number: int) -> None:
        if self._parts.pending.give_up(number):
            self._rounds += 1
            self._look_around()

    # --- what the run proves ---------------------------------------------------------------------------------------------------------

    def certificate(self) -> Certificate:
        """What the observations prove: bounds on regret, counts of violations, whether any action is feasible at all.

        >>> import bridle
        >>> session = Session(bridle.policy("anytime", bridle.Ball(2)))
        >>> for _ in range(100):
        ...     x = session.step(cost=bridle.Affine([-1.0, 0.0]), constraints=[bridle.Affine([1.0, 0.0], -0.5)])
        >>> round(session.certificate().regret, 2)  # the best feasible action has x_1 = 1/2
        0.5
        """
        certificate = self._settled().certificate(self._rounds, self._totals, self._k or len(self._totals.hard), self._log.rounds)
        if certificate is None:
            raise InputError("certify was False: this session keeps no certificates")
        return certificate

    def report(self) -> str:
        """The certificate in plain sentences."""
        return report_text.report(self.certificate()) + (report_text.UNCHECKED if self.unchecked else "")

    def bound(self) -> Bound:
        """The policy's theorem for this run: with the longest gradient seen, over all copies, plus what dropped rounds may add.

        It takes for granted what a theorem does and no run can show: convexity, and that some action is feasible where none is disproved.
        """
        return self._settled().complete().bound(self._totals, self._k or len(self._totals.hard))

    # --- saving ----------------------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on to one `.npz` file, atomically."""
        savefile.save(path, self._snapshot())

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
        restored = saved.restore(session._snapshot())
        session._rounds, session._totals = restored.rounds, restored.totals
        if session.engine != "python" and restored.compiled is not None:
            with saved.checking():
                session._compiled = session._compile(restored.compiled)
        return session

    def _snapshot(self) -> savefile.Snapshot:
        parts, compiled = self._settled(), None if self._compiled is None else self._compiled.k
        return savefile.Snapshot(parts, self._start, self._rounds, self._totals, self._log, self._contexts, self.engine, compiled)

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: what was compiled stays behind, and is made again in the next round."""
        self._settled()
        return {**vars(self), "_compiled": None}

    # --- inside ----------------------------------------------------------------------------------------------------------------------

    def _settled(self) -> SessionParts:
        """The parts of this session as they stand: compiled rounds leave theirs in the memory until somebody asks."""
        if self._compiled is not None and self._compiled.ahead:
            self._totals = self._compiled.hand_back()
        return self._parts

    def _compile(self, k: int) -> CompiledRound:
        return CompiledRound(self._parts.pending, self._parts.ledger, self._totals, k)

    def _play(self, f: ArrayLike, df: Numbers, g: Numbers, dg: Numbers) -> PlayOutcome:
        """Play a round of decide and observe in compiled code, in whatever form the numbers come."""
        fast = self._compiled
        if fast is None:
            feedback = self._checked(self._parts.pending.ready.x, f, df, g, dg)
            self._compiled = fast = self._compile(len(feedback.g))
        if not fast.ahead and not fast.fits(self._totals):
            return REFUSED
        outcome = fast.play(f, df, g, dg)  # type: ignore[arg-type]
        if outcome is WRONG_TYPES:
            feedback = self._checked(fast.x, f, df, g, dg)
            if not self._rounds and len(feedback.g) != fast.k:  # the first round decides, whatever `warm_up` was told
                self._compiled = fast = self._compile(len(feedback.g))
                fast.fits(self._totals)
            outcome = fast.play(float(feedback.f), feedback.df, feedback.g, feedback.dg)
        return REFUSED if outcome is WRONG_TYPES else outcome

    def _checked(self, x: Array, f: ArrayLike, df: Numbers, g: Numbers, dg: Numbers) -> Feedback:
        with np.errstate(over="ignore", invalid="ignore"):
            return checked_feedback(x, self._k, f, df, g, dg)

    def _count(self, feedback: Feedback, number: int) -> None:
        """Add an observation to the totals and the certificates."""
        totals, g, ledger = self._totals, feedback.g, self._parts.ledger  # compiled rounds have been settled by now
        if len(totals.hard) != len(g):
            totals, g = totals.padded(len(g)), np.pad(g, (0, max(0, len(totals.hard) - len(g))))
        self._totals = totals.add(feedback.f, g)
        if ledger is not None:
            ledger.take(feedback, number)

    def _finish(self, feedback: Feedback, number: int | None) -> None:
        """A round is complete: count it, look around if that is due, and tell."""
        self._rounds = t = self._rounds + 1
        if t >= self._next_check:
            self._look_around()
        elif t >= self._next_tick:
            due, ledger = clocks.due(t), self._parts.ledger
            self._next_tick = clocks.next_multiple(t, clocks.WITNESS_EVERY)
            if due.contradiction or (due.witness and ledger is not None and ledger.stirred):
                self._look_around()
        if self._compiled is not None:
            self._next_check = 0.0  # batches may be out of step: the next compiled round sees
        if self.history is not None:
            self._tell(self.history, feedback, number)

    def _tell(self, history: Callable[[HistoryEntry], object], feedback: Feedback, number: int | None) -> None:
        entry: HistoryEntry = {
            "round": self._rounds,
            "x": np.array(feedback.x),
            "f": feedback.f,  # type: ignore[typeddict-item]
            "g": feedback.g.copy(),
            "violation": np.maximum(feedback.g, 0.0),
            "cost": self.cost,
            "ccv": self.ccv,
        }
        if number is not None:
            entry["ticket"] = number
        history(entry)

    def _look_around(self) -> None:
        """Search for a witness, check assumptions where that is due, and say when to look around next."""
        parts, fast, t = self._parts, self._compiled, self._rounds
        fast = None if fast is None or not fast.ahead else fast
        due, now = clocks.due(t), parts.pending.begun + (0 if fast is None else fast.ahead)
        if fast is not None:
            fast.note()
        try:  # a warning may be made an error
            check = search_witness(parts, self._log, t, due)
            if fast is not None:
                fast.resume()  # a batch may have been read
            if check:
                check_assumptions(self._settled() if due.assumptions or t > self._horizon else parts, self._log, t, now, due)
        finally:
            if fast is not None:
                fast.resume()
            self._next_check = next_check(parts, self._log, t)


def _ascending(levels: Sequence[float]) -> list[float]:
    numbers = validate.array("levels", levels)
    if numbers.ndim != 1 or (numbers <= 0.0).any() or (np.diff(numbers) <= 0.0).any():
        raise InputError(f"levels must be numbers above 0 in ascending order, not {validate.show(levels)}")
    return numbers.tolist()  # type: ignore[no-any-return]


def _context(name: object) -> str:
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        raise InputError(f"context must be a name or a whole number, not {validate.show(name)}")
    return str(name)
