"""The verbs of a session: decide, observe, step, ask and forget; each call is at work alone, and says of an error whether it counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Never
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

from bridle import validate
from bridle.core import InputError
from bridle.ops import Array
from bridle.session.actions import SessionActions
from bridle.session.compiled_round import PLAYED, PLAYED_CHECK_NOW, REFUSED, WRONG_TYPES
from bridle.session.feedback import Numbers, evaluate, refuse_gone
from bridle.session.late_feedback import Ticket, TicketGiven
from bridle.session.prior import HintGiven, Known
from bridle.session.rounds import ENTRANCES, mark, wait
from bridle.session.savefile import SessionImage
from bridle.session.tried_points import as_asked, refuse_extras, values_at


class SessionVerbs(SessionActions):
    """What a caller does with a session, round by round."""

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
        silent, nested = rules is None and known is None and features is None and hint is None, False
        if silent and self._boundary is None and not self._inside:
            fast = self._live  # one reading of what stands: nobody has to wait for it
            return self._decision() if fast is None else fast.x.copy()
        while self._inside and not nested:
            nested = wait(self, ENTRANCES, reading=silent)
        if nested:
            return self._decision() if self._boundary is None else self._action()
        self._inside = True
        try:
            if self._boundary is None and silent:
                return self._decision()
            if not silent or self._unsaid():
                self._say({"rules": rules, "features": features}, known, hint)
            return self._action()
        finally:
            self._inside = False

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
        counted = False
        before, fast, apart = None, None, False
        try:
            while self._inside:
                wait(self, ENTRANCES, reading=False)
            self._inside = True
            try:
                if self._tries:
                    refuse_extras(self._called, played=played)
                if played is not None or self._boundary is not None:
                    f, df, g, dg = self._translate(f, df, g, dg, modulus, ticket, played)
                    apart = self._counts and self._values_played() is not None
                outcome = WRONG_TYPES
                if not apart and ticket is None and modulus is None and not (df is None and self._curved):
                    fast = self._live
                    if fast is not None:
                        before = fast.numbers[fast.rounds_at]
                        if before + 1.0 < self._check_at:
                            outcome = fast.play(f, df, g, dg)  # type: ignore[arg-type]
                            if outcome is PLAYED and self.history is None:
                                counted = True
                                return
                    again = self.engine != "python" and (outcome is not REFUSED or self._step_in())
                else:
                    again = False
                entry = None
                if outcome is PLAYED_CHECK_NOW and fast is not None:
                    self._end_batch(fast)
                elif outcome is not PLAYED:
                    fast = before = None
                    before = self._begin() if again else self._hand_back()
                    outcome = self._play(f, df, g, dg) if again else REFUSED
                    if outcome is REFUSED:
                        entry = self._take(f, df, g, dg, modulus, ticket)
                if self.history is not None and outcome is not REFUSED and self._live is not None:
                    entry = self._entry(self._live.feedback(), None)
                counted = True
            except BaseException:
                counted = before is not None and (self.rounds != before if fast is None else fast.numbers[fast.rounds_at] != before)
                if not counted:
                    self._undo()
                raise
            finally:
                self._inside = False
            if entry is not None or self._now.kept.log.unsent:
                self._tell(entry)
        except BaseException as wrong:
            mark(wrong, counted)
            raise

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
        if self._tries:
            refuse_extras(self._called, rules=rules, features=features, known=known, hint=hint)
            return self._step_tried(cost, tuple(constraints))
        rounds = None
        try:
            x = self.decide(rules=rules, features=features, known=known, hint=hint)
            said = observed_at(x, cost, constraints)
            rounds = self.rounds
            self.observe(**said)
        except BaseException as wrong:
            mark(wrong, rounds is not None and getattr(wrong, "counted", self.rounds > rounds))
            raise
        return x

    def _step_tried(self, cost: object, constraints: tuple[object, ...]) -> Array:
        """`step` for a policy that sees values alone."""
        points = self._read(lambda _: self._points())
        f, g = values_at(points, cost, constraints)
        self.observe(f, g=g)
        return as_asked(points)

    # --- feedback that comes late ----------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """How many rounds wait for feedback."""
        return len(self._now.kept.pending.waiting)  # none while rounds are compiled

    @property
    def dropped(self) -> int:
        """How many rounds were forgotten or dropped: their feedback never came."""
        return self._now.kept.pending.lost

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
        counted, begun = False, None
        self._refuse_other_points(points)
        try:
            while self._inside:
                wait(self, ENTRANCES, reading=False)
            self._inside = True
            try:
                self._hand_back()
                if self._tries:
                    self._refuse_to_overlap()
                said = rules is not None or features is not None or known is not None or hint is not None or self._unsaid()
                if said:
                    self._say({"rules": rules, "features": features}, known, hint)
                self._valid()  # or what is missing
                begun, overdue = self._now.played.begun, self._now.pending().overdue()
                for number in overdue:
                    self._warn_of_dropping(number)  # first: it may be made an error
                    self._give_up(number)
                if overdue and said:
                    self._say({"rules": rules, "features": features}, known, hint)  # to the copy that plays now
                pending = self._now.own_pending()
                ticket = self._begin_waiting(pending.ask, pending.waiting)
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

    def _refuse_other_points(self, points: int | None) -> None:
        """Refuse to begin a round with another number of points than the policy tries."""
        wanted, tries = 1 if points is None else validate.whole("points", points), self._tries or 1
        if wanted != tries:
            tried = f"tries {tries} point{'s' if tries > 1 else ''} a round" if self._tries else "plays its decision"
            raise InputError(f"points must be {tries} for policy {self._called}, which {tried}, not {wanted}")

    def _last_ticket(self) -> Ticket:
        """The ticket of the round that was begun last, which still waits."""
        pending = self._now.pending()
        number = pending.offset + pending.begun
        each = pending.waiting[number]
        x = as_asked(self._stands_at()) if self._tries else self._stands_for(each.x, each.terms, each.action).copy()
        return Ticket(number, x, pending.run, crc32(each.x.tobytes()))

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
        counted, number = False, None
        try:
            while self._inside:
                wait(self, ENTRANCES, reading=False)
            self._inside = True
            try:
                self._hand_back()
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

    def _image(self, nested: bool) -> SessionImage:
        """Where this session stands, as a save file holds it."""
        (_, _, totals, rounds, _), kept = now = self._stand(nested)
        compiled = None if self._compiled is None else self._compiled.k
        return SessionImage(
            self._parts_of(now), self._start, rounds, totals, kept.log, self.engine, compiled, self._limits,
            self._boundary, self._memory(),
        )  # fmt: skip


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
