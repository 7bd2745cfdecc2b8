"""A policy driven round by round by a caller: decide, observe, save, resume; and what the run proves about itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial as bind
from math import inf, isfinite
from os import PathLike
from typing import Any

import numpy as np

from bridle import records, validate
from bridle.core import Bound, DroppedWarning, Feedback, InputError
from bridle.engines.round import check_compiled
from bridle.policies.registry import constraints_of, domain_of, record_of
from bridle.session import feedback as intake
from bridle.session import report_text, savefile
from bridle.session.alarms import Alarms, Contexts, spot_check
from bridle.session.compiled_round import Compiled, Tally
from bridle.session.compiled_round import engine as compiler
from bridle.session.feasibility import TOLERANCE
from bridle.session.late_feedback import FORMS, Copy, Desk, Ticket, Waiting
from bridle.session.ledger import LEVELS, Certificate, Ledger
from bridle.session.monitor import CHECK, GLANCE, LOOK, Run, due, glance, look

ENGINES = ("python", "numba")
"""What can play a session's rounds, one at a time."""


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
        policy: Any,
        x1: Any = None,
        *,
        domain: Any = None,
        history: Callable[[dict[str, Any]], Any] | None = None,
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
        if getattr(policy, "runs", None) is not None:
            raise InputError(f"policy stands for {policy.runs} runs; a session drives one: give every parameter as a number")
        if history is not None and not callable(history):
            raise InputError(f"history must be callable, not {validate.show(history)}")
        if late not in FORMS:
            raise validate.unknown("late", late, FORMS)
        if engine not in ENGINES:
            raise validate.unknown("engine", engine, ENGINES)
        domain = domain_of(policy) if domain is None else domain
        if domain is None and x1 is None:
            raise InputError("x1 must be given: the policy does not say what its domain is")
        start = validate.vector("x1", domain.center() if x1 is None else x1, None if domain is None else domain.dim)
        if domain is not None and not domain.contains(start):
            raise InputError(f"x1 must lie in the domain; {validate.show(start)} does not")
        self.policy, self.history = policy, history
        self._record, self._domain, self._start = record, domain, start
        limit = validate.whole("pending", pending)
        desk = Desk(record, start, late, limit, None if timeout is None else validate.whole("timeout", timeout, 0))
        with np.errstate(over="ignore", invalid="ignore"):
            sound = desk.ready.x.shape == start.shape and _sound(desk.ready.x, desk.ready.state)
        if not sound:
            raise InputError(
                f"policy must start with numbers and a finite decision of shape {start.shape}; {validate.show(record)} does not"
            )
        own = constraints_of(record)
        told = getattr(policy, "parameters", {}).get("constraints")
        self._k: int | None = own if own is not None else None if told is None else int(told)
        self._rounds, self._tally = 0, Tally(0.0, np.zeros(self._k or 1), np.zeros(self._k or 1))
        precision = validate.positive("tolerance", tolerance)
        ledger = Ledger(domain, len(start), _ascending(levels), precision) if certify else None
        self._kept = Run(policy, record, domain, desk, ledger)  # for `_run`: compiled rounds leave it behind
        self._alarms, self._contexts = Alarms(), Contexts()
        horizon = self._kept.told.get("horizon")
        self._horizon = inf if horizon is None else float(horizon)
        self._due = 0.0  # the next round after which to look around
        self.engine = engine
        self._compiled: Compiled | None = None
        if engine == "numba":
            check_compiled(record)
            compiler()  # if it is missing, now is the time to say so

    # --- the round -------------------------------------------------------------------------------------------------------------------

    @property
    def rounds(self) -> int:
        """How many rounds have been observed."""
        return self._rounds

    @property
    def cost(self) -> float:
        """The total cost so far."""
        fast = self._compiled
        return float(fast.cost if fast is not None and fast.ahead else self._tally.cost)

    @property
    def ccv(self) -> float:
        """The cumulative constraint violation so far: of the constraint that has been violated most."""
        return float(self._hard.max())

    @property
    def _hard(self) -> np.ndarray:
        fast = self._compiled
        return np.asarray(fast.hard if fast is not None and fast.ahead else self._tally.hard)

    @property
    def violations(self) -> np.ndarray:
        """The cumulative violation of every constraint."""
        return self._hard.copy()

    @property
    def balances(self) -> np.ndarray:
        """The sum of every constraint's values, signs and all: 0 or below where the limit was held on average."""
        signed = self._totals.signed
        if signed is None:
            raise InputError("the file that this session was loaded from is older than balances are: they are not known")
        return np.array(signed)

    @property
    def price(self) -> np.ndarray:
        """What one more unit of each limit seems to be worth at present, in units of cost a round: 0 or above; an estimate.

        Policies with queues have one (`soft`, `neely2017`, `liakopoulos2019`, `yu2020`; not where they clip). It is in the units given:
        cost per unit of constraint. On a stream that stays the same it comes near the limit's multiplier; nothing is proved of it.

        >>> import bridle
        >>> session = Session(bridle.policy("soft", bridle.Ball(2), lipschitz=1.0, bound=2.0))
        >>> session.price
        array([0.])
        """
        found = self._price()
        if found is None:
            name = getattr(self.policy, "name", type(self._record).__name__)
            raise InputError(f"policy {name} keeps no price here; policies with queues do, such as soft (without clip)")
        return found

    def _price(self) -> np.ndarray | None:
        found = self._record.price(self._desk.ready.state) if hasattr(self._record, "price") else None
        return None if found is None else np.array(found, dtype=float)

    @property
    def state(self) -> Any:
        """The policy's state, a plain record; a copy, so that nothing done to it reaches the session."""
        return records.transform(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, self._desk.ready.state)

    def decide(self) -> np.ndarray:
        """The decision of this round; the same until `observe` is called."""
        fast = self._compiled
        return self._kept.desk.ready.x.copy() if fast is None or not fast.ahead else fast.x.copy()

    def observe(
        self,
        f: Any = 0.0,
        df: Any = None,
        g: Any = None,
        dg: Any = None,
        modulus: Any = None,
        *,
        ticket: Any = None,
        partial: bool = False,
        context: Any = None,
    ) -> None:
        """Take in what was revealed at the decision: cost and constraint values and their gradients.

        `g` is a number or ``(k,)``, `dg` is ``(dim,)`` or ``(k, dim)``; `modulus` is the strong convexity of this round's cost, where
        it is known. A round without a cost leaves out f and df, one without a constraint g and dg. k may change from round to round
        unless the policy was made for a certain number of constraints.

        With a `ticket` from `ask` it is the feedback of that round; `partial=True` says that its other half, the cost or the constraints,
        comes later. `context` names what the round was about: where the same name comes again, the same functions must have been meant,
        and values and gradients that cannot be of one convex function raise an alarm.
        """
        if self.engine != "python" and ticket is None and modulus is None and context is None and not partial:
            fast = self._compiled
            played = fast.play(f, df, g, dg) if fast is not None and fast.ahead else -1
            if played < 0:
                played = self._play(f, df, g, dg)
            if played > 0:
                self._rounds = t = self._rounds + 1
                if played > 1 or t >= self._due:
                    self._look()
                if self.history is not None and self._compiled is not None:
                    self._tell(self.history, self._compiled.feedback(), None)
                return
        desk = self._desk
        number, waiting = (None, None) if ticket is None else desk.find(ticket)
        if partial and waiting is None:
            raise InputError("partial must be given with a ticket: a round of decide and observe is observed at once")
        name = None if context is None else _context(context)
        copy = desk.ready
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is looked at
            feedback = intake.feedback(copy.x if waiting is None else waiting.x, self._k, f, df, g, dg, modulus)
            after = self._advance(copy, feedback) if waiting is None else None
        if after is not None:
            self._count(feedback, desk.go_on(*after, feedback))
            self._finish(feedback, None)
        elif number is not None and waiting is not None:
            self._late(number, waiting, feedback, (df is not None, g is not None), partial)
        if name is not None and (doubt := self._contexts.meet(name, feedback, df is not None, g is not None)) is not None:
            doubt.raise_at(self._alarms, desk.begun if number is None else number)

    def step(self, cost: Any, constraints: Iterable[Any] = ()) -> np.ndarray:
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
        f, df = intake.evaluate("cost", cost, x)
        asked = [("the cost", cost, f, df)]
        values, rows = [], []
        for i, constraint in enumerate(constraints):
            value, grad = intake.evaluate(f"constraints[{i}]", constraint, x)
            asked.append((f"constraints[{i}]", constraint, value, grad))
            values.append(value.reshape(-1))
            rows.append(grad.reshape(-1, len(x)))
        if not values:
            self.observe(f=f.item(), df=df)
        else:
            self.observe(f=f.item(), df=df, g=np.concatenate(values), dg=np.concatenate(rows))
        if self._ledger is not None and self._domain is not None and self._rounds % LOOK == 0:
            self._ask_again(asked, x)
        return x

    # --- feedback that comes late ----------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """How many rounds wait for feedback."""
        return len(self._desk.waiting)

    @property
    def dropped(self) -> tuple[int, int]:
        """How many costs, and the constraints of how many rounds, were forgotten or dropped."""
        return self._desk.lost[0], self._desk.lost[1]

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
        for number in self._desk.overdue():
            why = "too many rounds were waiting" if self._desk.timeout is None else "it waited too long, or too many did"
            message = f"ticket {number} was dropped: {why}; it is charged to the bounds, and so will be others"
            self._alarms.warn(DroppedWarning, message, self._desk.begun, ticket=number)  # first: it may be made an error
            self._forget(number)
        return self._desk.ask()

    def forget(self, ticket: Any) -> None:
        """Give a round up: what has not come of its feedback never will, and is charged to the bounds."""
        number, _ = self._desk.find(ticket)
        self._forget(number)

    def _late(self, number: int, waiting: Waiting, feedback: Feedback, given: tuple[bool, bool], partial: bool) -> None:
        """The feedback of a round that waited, or a part of it."""
        for name, new, missing in zip(("the cost", "the constraints"), given, waiting.missing(), strict=True):
            if new and not missing:
                raise InputError(f"ticket {number} has had {name} already")
        if partial and not any(given):
            raise InputError(f"partial must come with a cost (f and df) or constraints (g and dg) for ticket {number}")
        whole = waiting.seen(feedback)
        done = not partial or not any(left and not new for left, new in zip(waiting.missing(), given, strict=True))
        desk, copy = self._desk, self._desk.copies[waiting.copy]
        told = whole if desk.late == "copies" else feedback
        fed = done if desk.late == "copies" else any(given) or all(waiting.missing())
        with np.errstate(over="ignore", invalid="ignore"):
            state, x = self._advance(copy, told) if fed else (None, None)
        if fed and x is not None:
            others = len(desk.waiting) - 1 + (not done)
            desk.most, desk.split = max(desk.most, others), desk.split or (desk.late == "pool" and partial)
            desk.astray += desk.late == "pool" and not np.array_equal(waiting.x, copy.x)
            desk.feed(number, waiting.copy, state, x, told)
        if given[0]:
            waiting.cost = feedback
        if given[1]:
            waiting.limits = feedback
        if done:
            desk.close(number)
        self._count(feedback, number)
        if done:
            self._finish(whole, number)

    def _forget(self, number: int) -> None:
        desk, waiting = self._desk, self._desk.waiting[number]
        part, missing = waiting.cost or waiting.limits, waiting.missing()
        if part is not None and desk.late == "copies":
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    state, x = self._advance(desk.copies[waiting.copy], part)
                desk.feed(number, waiting.copy, state, x, part)
            except InputError:
                missing = (True, True)  # the policy cannot use it
        desk.close(number)
        desk.lost = [desk.lost[0] + missing[0], desk.lost[1] + missing[1]]
        if not all(missing):
            self._rounds += 1
            self._look()

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
        run = self._run.settled()
        if run.ledger is None:
            raise InputError("certify was False: this session keeps no certificates")
        proved, price = run.proved(run.ledger), self._price()
        signed = self._tally.signed
        balance = None if price is None or signed is None else np.array(signed)
        return Certificate(
            rounds=self._rounds, cost=self.cost, ccv=self.ccv, pending=self.pending, dropped=self.dropped, bound=self.bound(),
            alarms=tuple(self._alarms.given.items()), price=price, balance=balance, **proved,
        )  # fmt: skip

    def report(self) -> str:
        """The certificate in plain sentences."""
        return report_text.report(self.certificate())

    def bound(self) -> Bound:
        """The policy's theorem for this run: with the longest gradient seen, over all copies, plus what dropped rounds may add.

        It takes for granted what a theorem does and no run can show: convexity, and that some action is feasible where none is disproved.
        """
        signed = self._totals.signed
        return self._run.settled().bound(self._k or len(self._hard), self.ccv, None if signed is None else float(np.max(signed)))

    # --- saving ----------------------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on to one `.npz` file, atomically."""
        totals = {"rounds": float(self._rounds), **records.leaves(self._totals)}
        first, *others = self._desk.copies
        states = [records.leaves(copy.state) for copy in others]
        arrays = {f"copies.{key}": np.stack([np.asarray(state[key], dtype=float) for state in states]) for key in (states or [{}])[0]}
        arrays |= {f"desk.{key}": value for key, value in self._desk.arrays().items()}
        facts = {
            "late": self._desk.late, "pending": self._desk.pending, "timeout": self._desk.timeout, "alarms": self._alarms.given,
            "contexts": list(self._contexts.last), "engine": self.engine, "compiled": self._compiled and self._compiled.k,
        }  # fmt: skip
        for i, seen in enumerate(self._contexts.last.values()):
            values = {"x": seen.x, "f": seen.f, "df": seen.df, "g": seen.g, "dg": seen.dg}
            arrays |= {f"contexts.{i}.{key}": value for key, value in values.items()}
        if self._ledger is not None:
            more, noted = self._ledger.saved()
            arrays |= {f"ledger.{key}": value for key, value in more.items()}
            facts["ledger"] = noted
        savefile.write(path, self.policy, self._start, first.state, totals, arrays, facts)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        policy: Any = None,
        history: Callable[[dict[str, Any]], Any] | None = None,
        engine: str | None = None,
    ) -> Session:
        """The session that was saved, bit for bit; `policy` is needed where the one that was saved is not registered.

        `engine` is the one it was saved with, unless another is named.
        """
        saved = savefile.read(path)
        policy = saved.make_policy() if policy is None else policy
        facts = saved.facts
        ledger = facts.get("ledger", {} if saved.old else None)
        kept = {name: ledger[name] for name in ("levels", "tolerance") if name in ledger} if isinstance(ledger, dict) else {}
        try:
            session = cls(
                policy, saved.start, history=history, certify=ledger is not None, **kept,
                late=facts.get("late", "copies"), pending=facts.get("pending", 1000), timeout=facts.get("timeout"),
                engine=facts.get("engine", "python") if engine is None else engine,
            )  # fmt: skip
        except InputError as wrong:
            raise InputError(f"cannot load {saved.path}: {wrong}") from None
        template = session._desk.ready.state
        state = saved.fill(template)
        session._rounds, cost, hard = saved.totals
        session._tally = Tally(cost, hard, saved.arrays.get("totals.signed"))
        desk = saved.part("desk.")
        if saved.old:
            session._desk.copies = [Copy(state, np.asarray(session._record.decide(state), dtype=float), session._rounds, 0)]
            session._desk.begun = session._rounds
            if session._ledger is not None:
                session._ledger.since = session._rounds
            return session
        with saved.checking():
            states = [state, *(saved.fill(template, "copies.", i) for i in range(len(desk["copies"]) - 1))]
            session._desk.restore(desk, states)
            session._alarms.given = {str(kind): int(t) for kind, t in facts["alarms"].items()}
            for i, name in enumerate(facts["contexts"]):
                part = saved.part(f"contexts.{i}.")
                session._contexts.last[str(name)] = Feedback(part["x"], float(part["f"]), part["df"], part["g"], part["dg"])
            if session._ledger is not None:
                session._ledger.restore(saved.part("ledger."), facts["ledger"])
            if session.engine != "python" and facts.get("compiled") is not None:
                session._compiled = session._compile(int(facts["compiled"]))
        return session

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: what was compiled stays behind, and is made again in the next round."""
        _ = self._run
        return {**vars(self), "_compiled": None}

    # --- inside ----------------------------------------------------------------------------------------------------------------------

    @property
    def _run(self) -> Run:
        """The records of this session as they stand: compiled rounds leave theirs in the memory until somebody asks."""
        if self._compiled is not None and self._compiled.ahead:
            self._tally = self._compiled.settle()
        return self._kept

    @property
    def _desk(self) -> Desk:
        return self._run.desk

    @property
    def _ledger(self) -> Ledger | None:
        return self._run.ledger

    @property
    def _totals(self) -> Tally:
        _ = self._run
        return self._tally

    def _compile(self, k: int) -> Compiled:
        return Compiled(self._kept.desk, self._kept.ledger, self._tally, k)

    def _play(self, f: Any, df: Any, g: Any, dg: Any) -> int:
        """Play a round of decide and observe in compiled code, as `Compiled.play` does; 0 where that is left to Python."""
        fast = self._compiled
        if fast is None:
            feedback = self._checked(self._desk.ready.x, f, df, g, dg)
            self._compiled = fast = self._compile(len(feedback.g))
        if not fast.ahead and not fast.fits(self._tally):
            return 0
        played = fast.play(f, df, g, dg)
        if played < 0:
            feedback = self._checked(fast.x, f, df, g, dg)
            played = fast.play(feedback.f, feedback.df, feedback.g, feedback.dg)
        return max(played, 0)  # where it is 0, Python finds out what is wrong, or copes

    def _checked(self, x: np.ndarray, f: Any, df: Any, g: Any, dg: Any) -> Feedback:
        with np.errstate(over="ignore", invalid="ignore"):
            return intake.feedback(x, self._k, f, df, g, dg, None)

    def _advance(self, copy: Copy, feedback: Feedback) -> tuple[Any, np.ndarray]:
        """The state and the decision after this feedback; nothing is changed. To be called where NumPy does not warn of overflow."""
        try:
            state = self._record.update(copy.state, feedback)
            x = np.asarray(self._record.decide(state), dtype=float)
            if x.shape != copy.x.shape or not _sound(x, state):
                raise OverflowError(f"shape {x.shape}, values {validate.show(x)}")
        except OverflowError as wrong:
            raise InputError(f"the policy's next decision cannot be used ({wrong}); nothing was changed") from None
        return state, x

    def _count(self, feedback: Feedback, number: int) -> None:
        """Add a record to the totals and the certificates."""
        tally, g, ledger = self._tally, feedback.g, self._kept.ledger  # compiled rounds have been settled by now
        if len(tally.hard) != len(g):
            tally, g = tally.padded(len(g)), np.pad(g, (0, max(0, len(tally.hard) - len(g))))
        self._tally = tally.add(feedback.f, g)
        if ledger is not None:
            ledger.take(feedback, number)

    def _finish(self, feedback: Feedback, number: int | None) -> None:
        """A round is complete: count it, look around, and tell."""
        self._rounds += 1
        ledger = self._kept.ledger
        if self._rounds >= self._due or (
            self._rounds % GLANCE == 0 and (self._rounds % CHECK == 0 or (ledger is not None and ledger.stirred))
        ):
            self._look()
        if self._compiled is not None:
            self._due = 0.0  # batches may be out of step: the next compiled round sees
        if self.history is not None:
            self._tell(self.history, feedback, number)

    def _tell(self, history: Callable[[dict[str, Any]], Any], feedback: Feedback, number: int | None) -> None:
        entry = {
            "round": self._rounds, "x": np.array(feedback.x), "f": feedback.f, "g": feedback.g.copy(),
            "violation": np.maximum(feedback.g, 0.0), "cost": self.cost, "ccv": self.ccv,
        }  # fmt: skip
        history(entry if number is None else {**entry, "ticket": number})

    def _look(self) -> None:
        kept, fast, t = self._kept, self._compiled, self._rounds
        fast = None if fast is None or not fast.ahead else fast
        now = kept.desk.begun + (0 if fast is None else fast.ahead)
        if fast is not None:
            fast.note()
        try:  # a warning may be made an error
            seen = glance(kept, self._alarms, t)
            if fast is not None:
                fast.resume()  # a batch may have been read
            if seen:
                look(self._run if t % LOOK == 0 or t > self._horizon else kept, self._alarms, t, now)
        finally:
            if fast is not None:
                fast.resume()
            self._due = due(kept, self._alarms, t)

    def _ask_again(self, asked: list[tuple[str, Any, np.ndarray, np.ndarray]], x: np.ndarray) -> None:
        for what, function, value, grad in asked:
            if not getattr(function, "convex", True):
                continue  # it says so itself
            ask = bind(intake.value, "cost" if what == "the cost" else what, function)
            doubt = spot_check(what, ask, x, value, grad, self._domain, self._rounds // LOOK)
            if doubt is not None:
                doubt.raise_at(self._alarms, self._rounds)


def _sound(x: np.ndarray, state: Any) -> bool:
    """Whether a decision is finite and its state holds no NaN; sums of squares say so, and may overflow."""
    return (isfinite(x.dot(x)) or bool(np.isfinite(x).all())) and not _tainted(state, x)


def _tainted(part: Any, sound: np.ndarray) -> bool:
    """Whether there is a NaN in a record; `sound` has none."""
    if isinstance(part, float):
        return part != part
    if isinstance(part, tuple):
        for inner in part:  # noqa: SIM110 (a generator costs as much as all the rest)
            if _tainted(inner, sound):
                return True
        return False
    if part is None or part is sound:
        return False
    if type(part) is np.ndarray and part.ndim == 1 and part.dtype.kind == "f":
        square = part.dot(part)
        return bool(square != square)
    return bool(np.isnan(part).any())


def _ascending(levels: Any) -> list[float]:
    given = validate.array("levels", levels)
    if given.ndim != 1 or (given <= 0.0).any() or (np.diff(given) <= 0.0).any():
        raise InputError(f"levels must be numbers above 0 in ascending order, not {validate.show(levels)}")
    return given.tolist()  # type: ignore[no-any-return]


def _context(given: Any) -> str:
    if not isinstance(given, (str, int)) or isinstance(given, bool):
        raise InputError(f"context must be a name or a whole number, not {validate.show(given)}")
    return str(given)
