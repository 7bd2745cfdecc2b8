"""Warnings, each kind at most once in a session, and the checks that find values and gradients which do not fit together.

What can be told for certain. A convex function with value v and gradient p at x is nowhere below v + <p, . - x>. So two records of one
function must not contradict each other; a contradiction at one decision, or between equal gradients, can only be noise in the values.
Records of different functions can never contradict each other like this: the session must be told that a context has come back
(`observe(context=...)`), or be given the functions themselves (`step`), which it then asks again now and then, at the decision and near it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from math import sqrt
from typing import NamedTuple

import numpy as np

from bridle.core import BridleWarning, Domain, Feedback, GradientWarning, NoiseWarning, outside
from bridle.ops import Array
from bridle.session.feedback import value_alone

RELATIVE = 1e-6
"""Values are taken to be right to this, relative to all that went into them."""

REMEMBERED = 64
"""At most this many contexts are remembered, each with its last record."""

STEP = 1e-2
"""How far from the decision a function is asked again, as a part of the domain's diameter."""


class Watch(NamedTuple):
    """A stretch in which some limits were violated whenever somebody looked: since which round, where the action was, and which limits."""

    since: int
    x: Array
    limits: Array  # 1 or 0 for each


class WarningLog:
    """Which kinds of warning a session has given, by name, and in which round; `unsent` are those that nobody has heard of yet.

    A warning may be made an error. So it is sent only when all that led to it is done with, and the round is counted. `sizes`: the longest
    gradient of a cost and of a constraint, and the largest constraint value, when assumptions were last checked. `watch`: limits that have
    been violated for some time. A log that is `quiet` keeps its warnings until somebody takes them.
    """

    def __init__(self) -> None:
        self.rounds: dict[str, int] = {}
        self.unsent: list[BridleWarning] = []
        self.sizes = (0.0, 0.0, 0.0)
        self.watch: Watch | None = None
        self.quiet = False

    def clone(self) -> WarningLog:
        """A log of its own that begins like this one."""
        other = WarningLog()
        other.rounds, other.unsent, other.sizes, other.watch = self.rounds.copy(), self.unsent.copy(), self.sizes, self.watch
        other.quiet = self.quiet
        return other

    def fresh(self, kind: type[BridleWarning]) -> bool:
        """Whether no warning of this kind was given yet."""
        return kind.__name__ not in self.rounds

    def warn(self, kind: type[BridleWarning], message: str, round: int, **figures: object) -> None:
        """Note a warning, unless one of this kind was given before."""
        if self.fresh(kind):
            self.rounds[kind.__name__] = round
            self.unsent.append(kind(message, round, **figures))

    def send(self) -> None:
        """Give the warnings that were noted; each points at the caller's line. One that is made an error leaves the others for later."""
        while self.unsent and not self.quiet:
            warnings.warn(self.unsent.pop(0), stacklevel=outside())


class Subject(NamedTuple):
    """What a value is of: its name in messages, and whether it is the cost."""

    name: str
    is_cost: bool = False


COST = Subject("the cost", is_cost=True)


class Doubt(NamedTuple):
    """Two records that cannot both be right: of what, whether the values alone are to blame, the least it should be, and what it is."""

    subject: Subject
    noise: bool
    expected: float
    observed: float

    def warn(self, log: WarningLog, t: int) -> None:
        """Warn of it in round t."""
        what = self.subject.name
        if self.noise:
            message = f"{what} has two values in the same place, {self.expected:.6g} and {self.observed:.6g} (round {t}): it is noisy"
            if not self.subject.is_cost:
                message += ", and no policy keeps hard limits on noisy constraint values; use limits that hold on average (policy soft)"
            log.warn(NoiseWarning, message, t, first=self.expected, second=self.observed)
        else:
            message = (
                f"{what} is {self.observed:.6g} where another of its values and the gradient there say {self.expected:.6g} or more "
                f"(round {t}): the gradient is wrong, it is not convex, or it is noisy; no guarantee holds until that is settled"
            )
            log.warn(GradientWarning, message, t, expected=self.expected, observed=self.observed)


def compare(what: Subject, x: Array, v: float, p: Array, y: Array, w: float, q: Array) -> Doubt | None:
    """Whether value v with gradient p at x, and w with q at y, can be of one convex function."""
    step = y - x
    above, below = v + float(p.dot(step)), w - float(q.dot(step))
    tolerance = RELATIVE * (abs(v) + abs(w) + _length(p) * (_length(x) + _length(y)) + _length(q) * (_length(x) + _length(y)))
    if not step.any() or np.array_equal(p, q):  # then both bounds must hold with equality
        return Doubt(what, True, above, w) if abs(w - above) > tolerance else None
    if w < above - tolerance:
        return Doubt(what, False, above, w)
    return Doubt(what, False, below, v) if v < below - tolerance else None


def _length(v: Array) -> float:
    return sqrt(float(v.dot(v)))


class Contexts:
    """The last record of each context that the caller has named."""

    def __init__(self) -> None:
        self.last: dict[str, Feedback] = {}

    def clone(self) -> Contexts:
        """Contexts of their own that begin like these."""
        other = Contexts()
        other.last = self.last.copy()
        return other

    def meet(self, context: str, new: Feedback, cost: bool, limits: bool, names: Sequence[str] = ()) -> Doubt | None:
        """Compare a record with the last one of its context, and remember it; `cost` and `limits` say which of them it has.

        `names` are those of the limits, where they have some.
        """
        old = self.last.pop(context, None)
        self.last[context] = new
        if len(self.last) > REMEMBERED:
            del self.last[next(iter(self.last))]
        if old is None:
            return None
        doubt = compare(COST, old.x, float(old.f), old.df, new.x, float(new.f), new.df) if cost else None
        if doubt is None and limits and len(old.g) == len(new.g):
            pairs = zip(old.g.tolist(), old.dg, new.g.tolist(), new.dg, strict=True)
            called = names or [f"constraint {i}" for i in range(len(new.g))]
            doubts = (compare(Subject(called[i]), old.x, v, p, new.x, w, q) for i, (v, p, w, q) in enumerate(pairs))
            doubt = next((each for each in doubts if each is not None), None)
        return doubt


def spot_check(what: Subject, ask: Callable[[Array], object], x: Array, value: Array, grad: Array, domain: Domain, t: int) -> Doubt | None:
    """Ask a function again where it was asked and at three other actions; `value` and `grad` are what it said at x."""
    j, h = t % len(x), STEP * float(domain.diameter())
    aside = h * np.eye(1, len(x), j)[0]
    points = [x, *(np.asarray(domain.project(p), dtype=float) for p in (x + aside, x - aside)), np.asarray(domain.center(), dtype=float)]
    try:
        answers = [np.asarray(ask(point.copy()), dtype=float).reshape(-1) for point in points]
    except Exception:  # a function need not be willing to be asked elsewhere
        return None
    values, rows = value.reshape(-1), grad.reshape(-1, len(x))
    if any(answer.shape != values.shape or not np.isfinite(answer).all() for answer in answers):
        return None
    for i, (v, p) in enumerate(zip(values.tolist(), rows, strict=True)):
        subject = what if value.ndim == 0 else what._replace(name=f"{what.name}[{i}]")
        for point, answer in zip(points, answers, strict=True):
            w, least = float(answer[i]), v + float(p.dot(point - x))
            tolerance = RELATIVE * (abs(v) + abs(w) + _length(p) * (_length(x) + _length(point)))
            if point is x and abs(w - v) > tolerance:
                return Doubt(subject, True, v, w)
            if w < least - tolerance:
                return Doubt(subject, False, least, w)
    return None


class Answer(NamedTuple):
    """What a function has said at the decision."""

    subject: Subject
    function: object
    value: Array
    grad: Array


def ask_again(answers: list[Answer], x: Array, domain: Domain, turn: int) -> list[Doubt]:
    """Ask functions again at the decision and near it: one doubt for each whose values and gradients do not fit together."""
    convex = [answer for answer in answers if getattr(answer.function, "convex", True)]  # the others say themselves that they are not
    doubts = [
        spot_check(subject, partial(value_alone, subject.name, function), x, value, grad, domain, turn)
        for subject, function, value, grad in convex
    ]
    return [doubt for doubt in doubts if doubt is not None]
