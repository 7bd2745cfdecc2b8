"""The vocabulary: who plays, what is revealed, what comes out.

Each round a policy picks a decision in a domain; an adversary answers with a round (one cost, k constraints); what the round is worth at
the decision is the feedback. The two sides meet nowhere else: a policy sees feedback, never functions; an adversary sees decisions,
never a policy.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeAlias, TypedDict, TypeVar, cast, runtime_checkable

from bridle import ops
from bridle.ops import Array, Scalar

S = TypeVar("S")
"""The state of an algorithm: a record of numbers that only the algorithm itself reads."""
S_co = TypeVar("S_co", covariant=True)


class InputError(ValueError):
    """What the caller gave cannot be used. The message names the argument and the value, and nothing has changed.

    Examples
    --------
    >>> import bridle
    >>> bridle.Ball(2, radius=-1.0)
    Traceback (most recent call last):
    ...
    bridle.core.InputError: radius must be above 0, not -1.0
    """


class Unavailable(InputError):
    """Something that is not here but may be elsewhere: a package, a file, a download. Not a property of what was asked for."""


class DoesNotApply(InputError):
    """A policy is not for this problem.

    `reason` says why and names the problem; `general` says it of any problem, so that tables can merge equal reasons. `reason` is given
    with ``{problem}`` where the problem is named.
    """

    def __init__(self, policy: str, reason: str, problem: str = "") -> None:
        super().__init__(policy, reason, problem)
        self.policy = policy
        self.reason = reason.format(problem=f"problem {problem or '(unnamed)'}")
        self.general = reason.format(problem="the problem")

    def __str__(self) -> str:
        return f"policy {self.policy} does not apply: {self.reason}"


class Interrupted(Exception):
    """The user stopped a long run; the message says what was kept and how to go on."""


class BridleWarning(UserWarning):
    """Something a user should know about a run that goes on all the same.

    Parameters
    ----------
    message : str, default ""
        What happened, in a sentence.
    round : int, optional
        The round in which it was noticed, counted from 1.
    **figures : object
        The numbers behind it; each is an attribute of the warning too.

    Attributes
    ----------
    round : int or None
        The round in which it was noticed.
    figures : dict
        The numbers behind it, by name.

    Examples
    --------
    >>> warning = BridleWarning("too long", round=3, declared=1.0, observed=2.0)
    >>> warning.round, warning.figures["observed"], warning.observed
    (3, 2.0, 2.0)
    """

    def __init__(self, message: str = "", round: int | None = None, **figures: object) -> None:
        super().__init__(message)
        self.round, self.figures = round, figures
        vars(self).update(figures)


class HorizonWarning(BridleWarning):
    """The policy's horizon is over: it goes on without a bound.

    Attributes
    ----------
    horizon : float
        How many rounds the policy was made for.
    """

    horizon: float


class LipschitzWarning(BridleWarning):
    """A gradient is longer than the `lipschitz` that the policy was told: its bound is about a gentler stream.

    Attributes
    ----------
    declared : float
        What the policy was told, in cost or constraint per unit of action.
    observed : float
        The length of the gradient.
    """

    declared: float
    observed: float


class OutlierWarning(BridleWarning):
    """A record is far beyond all before it. It was taken in; ``Session(largest=...)`` would refuse it.

    Attributes
    ----------
    before : float
        The largest size before.
    observed : float
        The size now.
    """

    before: float
    observed: float


class InfeasibleWarning(BridleWarning):
    """It is proved that no action satisfies the constraints of some rounds.

    Attributes
    ----------
    rounds : tuple of int
        The rounds whose constraints contradict each other.
    margin : float
        Every action is at least this far away from one of these constraints, in units of action.
    """

    rounds: tuple[int, ...]
    margin: float


class AssumptionWarning(BridleWarning):
    """What has happened contradicts the policy's theorem, so one of its assumptions does not hold."""


class StuckWarning(BridleWarning):
    """A limit has been violated for long, and moving the action has hardly helped.

    Attributes
    ----------
    limit : int
        Which limit, counted from 0.
    since : int
        The first round of the violation.
    violation : float
        By how much it is violated of late, in units of the constraint.
    gained : float
        By how much moves of the action have lowered it.
    """

    limit: int
    since: int
    violation: float
    gained: float


class EmptyPromiseWarning(BridleWarning):
    """The policy's theorem promises nothing: no action can have lost more than the bound allows.

    Attributes
    ----------
    promised : float
        The bound on regret, in units of cost.
    most : float
        The most that any action can have lost.
    """

    promised: float
    most: float


class DroppedWarning(BridleWarning):
    """A round was given up: its feedback did not come in time, or too many rounds were waiting.

    Attributes
    ----------
    ticket : int
        The number of the round's ticket.
    """

    ticket: int


class NotKeptWarning(BridleWarning):
    """There is no folder to keep compiled code in, so that every process compiles anew."""


def outside() -> int:
    """How many frames up the stack the caller of this library is: where a warning points."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] == __name__.split(".")[0]:
        level, frame = level + 1, frame.f_back
    return level


@runtime_checkable
class Domain(Protocol):
    """A closed, bounded, convex set of admissible decisions.

    It may offer more, which solvers then use: ``facets()`` is the set as inequalities, ``halfspaces()`` as half-spaces alone, ``corners()``
    its corners, ``peeled()`` the set without the half-spaces that cut it, and these; ``compiled`` is False where projecting calls a solver.
    """

    @property
    def dim(self) -> int:
        """How many coordinates a decision has."""
        ...

    def project(self, x: Array) -> Array:
        """The nearest point of the set, along the last axis."""
        ...

    def diameter(self) -> float:
        """The largest distance between two of its points, or a certified upper bound."""
        ...

    def center(self) -> Array:
        """A point well inside the set; where sessions start unless told otherwise."""
        ...

    def contains(self, x: Array, tolerance: float = 1e-9) -> bool:
        """Whether every row of `x` is in the set, up to `tolerance` times the set's scale."""
        ...

    def linear_min(self, v: Array) -> Scalar:
        """The minimum of <v, x> over the set."""
        ...

    def linear_argmin(self, v: Array) -> Array:
        """A point of the set that attains `linear_min`."""
        ...


@runtime_checkable
class Function(Protocol):
    """A function of the decision; its arrays may carry a leading time axis, and then it is a sequence of functions.

    It may offer more: ``several`` is True where it holds k functions; ``total()`` is the sum of a sequence as one function.
    """

    @property
    def convex(self) -> bool:
        """Whether it is convex: where it is not, no theorem applies and results say so."""
        ...

    def value(self, x: Array) -> Scalar:
        """The value at x: a scalar of each run, or ``(..., k)`` for a record that holds k functions."""
        ...

    def grad(self, x: Array) -> Array:
        """A subgradient at x: shaped as x, or ``(..., k, d)`` for a record that holds k functions."""
        ...


class Learner(Protocol[S]):
    """An algorithm for online convex optimisation: it steps on the gradient of each loss.

    It may offer more, which bounds then use: ``adaptivity(diameter)`` is c of a regret bound c sqrt(sum of squared gradients) for every
    sequence, ``steadiness(diameter)`` c of the weaker c sqrt(t) max |gradient| (``power`` is the exponent of t where it is not 1/2);
    ``squares(state)`` is that sum so far; ``certified(state)`` is the upper bound on regret that its proof gives for what has happened; a
    scale-free one has ``rescale(state, factor)``, the state had every gradient so far been multiplied by `factor`; ``step_at(state, grad,
    x)`` is the step for a gradient taken at another decision.
    """

    @property
    def domain(self) -> Domain: ...

    @property
    def scale_free(self) -> bool:
        """Whether multiplying every gradient by one constant leaves the decisions as they are; then it has `rescale`."""
        ...

    def init(self, x1: Array) -> S: ...

    def decide(self, state: S) -> Array: ...

    def step(self, state: S, grad: Array, modulus: Scalar | None = None) -> S:
        """The state after a loss with gradient `grad`; `modulus` is its strong convexity where the caller knows it."""
        ...


class Potential(Protocol):
    """A Lyapunov function of the accumulated violation: non-decreasing, convex, zero at zero."""

    def value(self, q: Scalar) -> Scalar: ...

    def slope(self, q: Scalar) -> Scalar: ...


class Policy(Protocol[S]):
    """An algorithm for constrained online convex optimisation: it updates on the feedback of each round.

    What else it can do is said by the protocols below it, such as `Certifies`; `capability` asks. A record may also have ``compiled``,
    False if it runs on the Python engine only, and ``each``, an array as long as a round must have constraints, or None if the first
    feedback with some says how many, which ``learned(state)`` then tells.
    """

    def init(self, x1: Array) -> S: ...

    def decide(self, state: S) -> Array: ...

    def update(self, state: S, feedback: Feedback) -> S: ...


class Certifies(Protocol):
    """What the state of a policy says of the rounds so far."""

    def alarm(self, state: Any) -> Alarm | str | None:
        """Which assumption the state shows to be broken; a bare text voids every bound."""
        return None

    def certified_regret(self, state: Any) -> float | None:
        """The most that regret can be after these rounds, by the policy's own proof."""
        return None

    def price(self, state: Any) -> Array | None:
        """What one more unit of each limit seems to be worth in cost."""
        return None


class CertifiesSquares(Protocol):
    """A policy whose own proof bounds squared violation."""

    @abstractmethod
    def certified_squares(self, state: Any, squares: float, gain: float) -> float | None:
        """The most that it can be: `squares` are those of cost gradients, `gain` the most that an action can gain."""


class Hintable(Protocol):
    """A policy that uses predictions of the round."""

    @abstractmethod
    def hinted(self, state: Any, hint: Hint) -> Any:
        """The state before its next decision, told what to expect."""


class TriesPoints(Protocol):
    """A policy that sees values alone, at points that it tries: its `update` takes a `Tried`."""

    @abstractmethod
    def points(self, state: Any) -> Array:
        """The n points that are tried in the round, ``(..., n, d)``; the adversary knows `decide(state)`, and not the points."""

    def passed_over(self, state: Any) -> Any:
        """The state after a round that was played and whose values will never come."""
        return state


class CountsRates(Policy[Any], Protocol):
    """A policy whose limits are on how often: they need not hold in every round."""

    @abstractmethod
    def tally(self, state: Any) -> Any:
        """What its limits have counted, a `bridle.policies.levels.Tally`."""

    def update_played(self, state: Any, feedback: Feedback, played: Array) -> Any:
        """The state after a round in which something else was played: `played` are the limits' values there, which are what counts."""
        return self.update(state, feedback)


class LearnsLate(Protocol):
    """A policy that is itself fed with feedback that comes late, where others play in copies."""

    @abstractmethod
    def made(self, state: Any) -> Any:
        """What the next decision is made of, as a record."""

    @property
    @abstractmethod
    def update_late(self) -> Callable[..., Any]:
        """``update_late(state, feedback, made, others)``: feedback on a decision made earlier, while `others` more rounds wait."""


class MixesParts(Protocol):
    """A policy that plays a mixture of named parts of its own."""

    @property
    @abstractmethod
    def mixed(self) -> tuple[str, ...]:
        """The names of the parts."""

    @abstractmethod
    def weights(self, state: Any) -> Array:
        """What each of them is worth at present."""


class Movable(Protocol):
    """A policy or a learner whose proof measures progress by the distance to the comparator, so that its decision may be moved."""

    @abstractmethod
    def move(self, state: Any, x: Array) -> Any:
        """The state with x in place of its next decision, no farther from any action that counts; None if that cannot be."""

    def metric(self, state: Any) -> Array | None:
        """The matrix of the norm of that distance; None for the Euclidean one."""
        return None


class SharesCuts(Protocol):
    """A policy whose copies share the halfspaces that each has found."""

    @abstractmethod
    def halfspace(self, feedback: Feedback) -> tuple[Array, Any] | None:
        """A halfspace that holds every feasible action, from a round's feedback."""

    @abstractmethod
    def steer(self, state: Any, A: Array, b: Array) -> Any:
        """The state before its next decision, moved onto such halfspaces."""


class Surrogate(Protocol):
    """A policy that needs one gradient a round, that of its surrogate: an adapter then does one backward pass."""

    @property
    @abstractmethod
    def weigh(self) -> Callable[..., Any]:
        """``weigh(state, g)``: the surrogate's weights on the cost and on the constraints."""

    @property
    @abstractmethod
    def follow(self) -> Callable[..., Any]:
        """``follow(state, weights, grad)``: the state after the surrogate's gradient."""

    @property
    def one_gradient(self) -> bool:
        """Whether this record needs no more than that."""
        return True

    @property
    def violated_only(self) -> bool:
        """Whether the gradient of a satisfied constraint makes no difference."""
        return False


C = TypeVar("C")


def capability(record: object, kind: type[C]) -> C | None:
    """The record as one with this capability, or None if it does not have it.

    It has it if its type has all the abstract members; the capability itself answers for the others that it lacks.

    >>> import bridle
    >>> optimistic, adagrad = (bridle.policy(name, bridle.Ball(2)).record for name in ("optimistic", "adagrad"))
    >>> capability(optimistic, Hintable) is optimistic, capability(adagrad, Hintable)
    (True, None)
    >>> capability(adagrad, Certifies).alarm(None)  # it knows of none
    """
    lacking = _lacking(cast(Any, type(record)), cast(Any, kind))
    return None if lacking is None else cast(C, _Completed(record, kind) if lacking else record)


@cache
def _lacking(cls: Any, kind: Any) -> frozenset[str] | None:
    """The members of a capability that it answers for itself where the type does; None if the type does not have the capability."""
    members = {name for name in vars(kind) if not name.startswith("_")}
    lacking = frozenset(name for name in members if not hasattr(cls, name))
    required: frozenset[str] = vars(kind)["__abstractmethods__"]
    return None if lacking == members or lacking & required else lacking


class _Completed:
    """A record, with what a capability says where the record says nothing."""

    def __init__(self, record: object, kind: type) -> None:
        self._record, self._kind = record, kind

    def __getattr__(self, name: str) -> Any:
        record = self._record
        return getattr(record, name) if hasattr(record, name) else vars(self._kind)[name].__get__(record)


class Adversary(Protocol[S_co]):
    """An environment, which may adapt to the decisions it sees.

    One that needs random numbers also has ``deal(rng, rounds)``: the draws of the next `rounds` rounds as a record of arrays with a
    leading time axis, made by NumPy outside of any compiled loop; `answer` then gets this round's share as a third argument. One whose
    rounds are known before the game has ``replay(start, stop)`` in place of it, a number `rounds` of them, and a `player` that stands for
    it in an engine, so that the rounds are handed over block by block and never all at once.
    """

    def init(self) -> S_co: ...

    @property
    def answer(self) -> Callable[..., tuple[S_co, Round]]:
        """``answer(state, x)``, or ``answer(state, x, draw)`` for one with `deal` or `replay`: the new state, and the round."""
        ...


class Feedback(NamedTuple):
    """What is revealed of a round at the decision x.

    Parameters
    ----------
    x : array of shape (..., d)
        The decision. Late feedback and cutting planes need it.
    f : float or array
        The cost at x.
    df : array of shape (..., d)
        A subgradient of the cost at x.
    g : array of shape (..., k)
        The values of the k constraints at x; above 0 is a violation.
    dg : array of shape (..., k, d)
        A subgradient of each constraint at x.
    modulus : float, optional
        The strong convexity of this round's cost, in cost per squared unit of action, where it is known.
    round : Round, optional
        The functions themselves, for policies that need them.

    Examples
    --------
    >>> import bridle, numpy as np
    >>> seen = bridle.Round(bridle.Affine([1.0, 0.0]), (bridle.Affine([0.0, 1.0], -0.5),)).reveal(np.array([1.0, 1.0]))
    >>> seen.f, seen.g, seen.dg
    (1.0, array([0.5]), array([[0., 1.]]))
    """

    x: Array
    f: Scalar
    df: Array
    g: Array
    dg: Array
    modulus: Scalar | None = None
    round: Round | None = None


class Values(NamedTuple):
    """What is revealed of a round at one of the points that were tried: the cost's value and the constraints', and no gradients."""

    x: Array
    f: Scalar
    g: Array


class Tried(NamedTuple):
    """What a policy that `TriesPoints` is shown of a round: values at the points that it tried, one after the other.

    All of them were played: the round is charged the average of its costs, and of its violations. So `f` is the average cost, `x` the
    average of the points, and `g` has one row for each point, unless there is one point alone.
    """

    each: tuple[Values, ...]
    round: Round | None = None

    @property
    def x(self) -> Array:
        first, *others = self.each
        return sum((each.x for each in others), first.x) / len(self.each) if others else first.x

    @property
    def f(self) -> Scalar:
        first, *others = self.each
        return sum((each.f for each in others), first.f) / len(self.each) if others else first.f

    @property
    def modulus(self) -> None:
        """Values say nothing of strong convexity."""

    @property
    def g(self) -> Array:
        """``(..., k)`` of one point, ``(..., n, k)`` of n points."""
        first, *others = self.each
        return ops.join([each.g[..., None, :] for each in self.each], -2) if others else first.g


class Hint(NamedTuple):
    """What somebody expects of a round before it is decided; None for what is left open.

    Parameters
    ----------
    df : array of shape (..., d), optional
        The gradient of the cost at the decision.
    g : array of shape (..., k), optional
        The values of constraints there, or at `x`; above 0 is a violation. Only together with `dg`.
    dg : array of shape (..., k, d), optional
        Their gradients there.
    x : array of shape (..., d), optional
        The action at which `g` is expected, where that is not the decision: it is then read as affine at what would be decided.

    Examples
    --------
    >>> import bridle, numpy as np
    >>> policy = bridle.policy("optimistic", bridle.Ball(2)).record
    >>> policy.hinted(policy.init(np.zeros(2)), Hint(df=np.array([1.0, 0.0]))).df
    array([1., 0.])
    """

    df: Array | None = None
    g: Array | None = None
    dg: Array | None = None
    x: Array | None = None


class Observation(NamedTuple):
    """What is revealed of a round: at the decision, or at what was `played` in its place.

    `f` holds n numbers and `g` n rows where a policy tried n points. `ticket` says which round it is of, where its feedback came late.
    """

    f: Any = 0.0
    df: Any = None
    g: Any = None
    dg: Any = None
    modulus: Any = None
    played: Any = None
    ticket: Any = None


class Prior(NamedTuple):
    """What is said before a decision; said again of the same round it replaces what was said."""

    rules: Any = None
    features: Any = None
    known: Any = None
    hint: Any = None


class Decide(NamedTuple):
    """Decide on the present round, of which this is known."""

    prior: Prior = Prior()


class Ask(NamedTuple):
    """Begin a round whose feedback comes late. `run` is a name for the run, drawn by whoever asks: it counts with the first ticket."""

    prior: Prior = Prior()
    run: str = ""


class Forget(NamedTuple):
    """Give up the round of a ticket."""

    ticket: Any


class ChangeLimit(NamedTuple):
    """Move a limit by an offset that is added to its values, or change the share of rounds that may violate it, from now on."""

    limit: str | int
    offset: float | None = None
    at_most: float | None = None


class Pay(NamedTuple):
    """Count a payment from a budget; `asked` is what its pacer had been asked of this payment."""

    name: str
    amount: float = 0.0
    asked: tuple[float, ...] = ()


class SetBudget(NamedTuple):
    """Change what may be spent from a budget in all, and of a pacer in how many rounds."""

    name: str
    budget: float
    rounds: int | None = None


Command: TypeAlias = Observation | Decide | Ask | Forget | ChangeLimit | Pay | SetBudget
"""Whatever can happen to a session: what a request carries, a journal keeps and a replay does again."""


class Round(NamedTuple):
    """What the adversary chose: one cost, and a tuple of constraints.

    Parameters
    ----------
    cost : Function
        The cost f_t.
    constraints : tuple of Function
        The constraints g_t; each is a function, or a record that holds several. An action is feasible where all are 0 or below.

    Examples
    --------
    >>> import bridle, numpy as np
    >>> chosen = Round(bridle.Affine([1.0]), (bridle.Affine([-1.0], 0.5),))
    >>> chosen.reveal(np.array([2.0])).g, chosen.convex
    (array([-1.5]), True)
    """

    cost: Function
    constraints: tuple[Function, ...]

    def reveal(self, x: Array) -> Feedback:
        """The feedback of this round at a decision.

        Returns values and gradients at `x`.
        """
        values, rows = [], []
        for constraint in self.constraints:
            grad = constraint.grad(x)
            values.append(_row(constraint.value(x), grad))
            rows.append(grad if _holds_several(constraint) else grad[..., None, :])
        if len(rows) > 1 and len({row.ndim for row in rows}) > 1:  # some constraints differ between runs, some do not
            lead = max((row.shape[:-2] for row in rows), key=len)
            rows = [ops.namespace(row).broadcast_to(row, (*lead, *row.shape[-2:])) for row in rows]
        return Feedback(x, self.cost.value(x), self.cost.grad(x), ops.join(values, -1), ops.join(rows, -2), None, self)

    def tried_at(self, points: Array) -> Tried:
        """The values of this round at points that are tried, and nothing else.

        Returns the values at each of them.
        """
        return Tried(tuple(self._values(points[..., i, :]) for i in range(points.shape[-2])), self)

    def _values(self, x: Array) -> Values:
        g = ops.join([_row(constraint.value(x), x) for constraint in self.constraints], -1)
        return Values(x, self.cost.value(x), g if g.ndim == x.ndim else ops.namespace(x).broadcast_to(g, (*x.shape[:-1], g.shape[-1])))

    @property
    def convex(self) -> bool:
        """Whether the cost and every constraint are convex."""
        return bool(self.cost.convex and all(constraint.convex for constraint in self.constraints))


def _row(value: Scalar, like: Array) -> Array:
    """The values of a constraint along a last axis, also where it holds one alone."""
    if isinstance(value, float):
        return cast(Array, ops.namespace(like).full((1,), value))
    return value[None] if value.ndim == 0 else value


def _holds_several(function: Function) -> bool:
    return bool(getattr(function, "several", False))


def revealed(policy: Policy[S], state: S, x: Array, chosen: Round) -> Feedback:
    """What a policy is shown of a round: its feedback at the decision x, or a `Tried` if it `TriesPoints`.

    The adversary knows x when it chooses. Where a policy tries points around x at random, it does not know these. Who passes it on asks
    both kinds for `x`, `f`, `g`, `modulus` and `round` alone.
    """
    tries = capability(policy, TriesPoints)
    return chosen.reveal(x) if tries is None else cast(Feedback, chosen.tried_at(tries.points(state)))


def tried(feedback: Feedback | Tried) -> tuple[Values, ...]:
    """The values at the points that a policy with ``points`` tried."""
    if isinstance(feedback, Tried):
        return feedback.each
    raise InputError("the policy sees values at the points that it tries, as Round.tried_at gives them, not a feedback at its decision")


class Bound(NamedTuple):
    """The right-hand side of a theorem, as numbers; None for what the theorem does not bound.

    Parameters
    ----------
    regret : float, optional
        The most regret, in units of cost.
    ccv : float, optional
        The most cumulative constraint violation, in units of constraint.
    interval : float, optional
        The largest sum of a constraint's values over any interval of rounds.
    soft : float, optional
        The largest sum of a constraint's values over all rounds.
    squared : float, optional
        The largest sum of squared violations.
    dynamic : float, optional
        The most regret against the path of the best actions of each round, where its length is known, in units of cost.
    why : str, default ""
        Why there is no bound, where the theorem does not apply.

    Examples
    --------
    >>> import bridle
    >>> problem = bridle.problem("halfspaces", horizon=100, dim=2)
    >>> bound = bridle.policy_for("sinha2024", problem).bound(problem.constants, 100)
    >>> round(bound.regret, 1), bound.why
    (29.7, '')
    """

    regret: Scalar | None = None
    ccv: Scalar | None = None
    interval: Scalar | None = None
    soft: Scalar | None = None
    squared: Scalar | None = None
    dynamic: Scalar | None = None
    why: str = ""


class Alarm(NamedTuple):
    """An assumption of a policy that its own state shows to be broken.

    `text` says so to a user. `voids_bound`: the theorem's bounds, and the policy's own proof, say nothing of this run any more.
    `infeasible`: the state proves that no action satisfies every constraint, and the text says no more than that.
    """

    text: str
    voids_bound: bool
    infeasible: bool = False


def alarm_of(policy: object, state: object) -> Alarm | None:
    """What a policy says of a broken assumption; None if it says nothing.

    A policy that answers with bare text does not say which bounds survive: none is promised.
    """
    certifies = capability(policy, Certifies)
    answer = None if certifies is None else certifies.alarm(state)
    if isinstance(answer, Alarm):
        return answer
    return Alarm(str(answer), voids_bound=True) if answer else None


class Curvature(NamedTuple):
    """What a run has shown of its costs, for a policy that was told a modulus of strong convexity; moduli are in units of that one.

    `costs`: how many rounds had a cost. `struck`: how many of the others violated a constraint. `moduli`: what all moduli add up to, the
    first counted as at least 1. `short`: what they lack of 1 a round. `share`: at every time they added up to at least this much for each
    cost, and 1 where they always did.
    """

    costs: float
    struck: float
    moduli: float
    short: float
    share: float

    @property
    def regular(self) -> bool:
        """Whether every round had a cost of at least the modulus that the policy was told."""
        return self.short == 0.0


class Constants(TypedDict, total=False):
    """True facts of a problem, under the names of the parameters; and what a game has found, where a bound is about it."""

    lipschitz: float  # the largest |gradient| of cost or constraint
    diameter: float
    bound: float  # the largest |g|
    modulus: float  # strong convexity of the costs
    exp_concavity: float  # alpha such that exp(-alpha f) is concave for every cost f
    smoothness: float
    constraints: int  # k
    slater: float | None  # a margin by which one action satisfies every constraint
    window: float
    switching: float  # what it costs to move the decision by one unit from one round to the next
    rounds: int  # how many rounds there are at most
    convex: bool
    affine: bool
    time_varying: bool
    feasible: Array | None  # an action that satisfies every constraint; None where it is known that there is none
    safe: Array  # an action to fall back on, known beforehand, that keeps every limit whatever comes, as far as one does
    optimum: Array
    optimal_cost: float
    benchmark: Array
    path: float  # how far the best action of each round moves in all, and what these actions cost
    path_cost: float
    excess: float
    rewards: float  # the largest reward, where costs are -<r, x> and constraints lam_i - r_i x_i
    regret: Scalar | None  # of the game so far
    least_regret: float
    V: Scalar
    H: Scalar
    first: Scalar
    unseen: Scalar
    Psi: Scalar
    shortfall: Scalar
    spread: float  # on a simplex: the most that a cost or a constraint differs between two corners
    below: Scalar  # on a simplex: how far one corner is below 0 in a constraint that another violates, over what that one violates it by
    observed_rounds: Scalar  # what a policy's own proof says of a game so far, and after how many rounds
    observed_regret: Scalar
    observed_violation: Scalar
    cost_error: Scalar  # summed squared errors of predicted gradients of costs, and of predicted normals of violated constraints
    limit_error: Scalar
    observed_cost: Scalar  # the largest |f| that a policy has seen, whose theorem is about it
    curvature: Curvature  # of a session: `lipschitz` is then the longest gradient at a decision, not on the whole domain
