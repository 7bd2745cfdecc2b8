"""What a problem is, and what adversaries share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, Unpack

import numpy as np

from bridle import showing, validate
from bridle.core import Adversary, Constants, Domain, Round
from bridle.ops import Array

Measures: TypeAlias = Callable[[Round, Array, Array, Array], dict[str, float]]
"""What a game is worth, by name: a function of its rounds, decisions, costs and constraint values."""


@dataclass(frozen=True)
class Problem:
    """What is played on: a domain, an adversary, and constants that are true of them.

    Parameters
    ----------
    domain : Domain
        Where decisions are made.
    adversary : Adversary
        Answers every decision with a round.
    constants : dict, optional
        What is known of every round, under the names of policies' parameters; see the notes.
    name : str, default ""
        What it is called.
    parameters : dict, optional
        What it was made with.
    factory : callable, optional
        Called with `parameters`, it makes the problem again.
    measures : callable, optional
        What a game is worth in the problem's own terms, by name, given all rounds, the decisions (T, d), the costs (T,) and the
        constraints'
        values (T, k).

    Notes
    -----
    The constants `lipschitz`, `diameter`, `bound`, `modulus` and `constraints` are numbers that hold for every round. `convex`, `affine`
    and
    `time_varying` say of what kind the functions are; `play` reads the first two off the first round. `feasible` is an action that
    satisfies
    every constraint, None where it is known that there is none. `slater` is a margin by which some action does. `safe` is an action to fall
    back
    on, known before the first round, which keeps every limit whatever comes. `optimum` is the best feasible action over the horizon and
    `optimal_cost` its total cost, where they are known in advance. `path` is how far the best action of each round moves in all, and
    `path_cost` what these actions cost. `least_regret` is what no policy can do better than. `rounds` is how
    many
    rounds there are at most.

    Where no action is feasible, `benchmark` is the one that comes closest: over every `window` rounds in a row its constraints sum to 0
    or less, and over any interval to `excess` or less.

    Examples
    --------
    >>> import bridle
    >>> chosen = bridle.Round(bridle.Affine([1.0, 0.0]), (bridle.Affine([0.0, 1.0], -0.5),))
    >>> problem = bridle.Problem(bridle.Ball(2), bridle.adversaries.Fixed(chosen), {"lipschitz": 1.0})
    >>> bridle.play(bridle.policy_for("ogd", problem), problem, horizon=20).rounds
    20
    """

    domain: Domain
    adversary: Adversary[object]
    constants: Constants = field(default_factory=Constants)
    name: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    factory: Callable[..., Problem] | None = None
    measures: Measures | None = None

    def __repr__(self) -> str:
        if not self.name:
            return showing.call("Problem", self.domain, showing.type_name(self.adversary))
        return showing.call("problem", self.name, **self.parameters)

    def _repr_html_(self) -> str:
        return str(showing.later("bridle.problems.pictures").problem_card(self))

    @property
    def horizon(self) -> int | None:
        """How many rounds the problem was made for, if it was."""
        return self.parameters.get("horizon")

    @property
    def seed(self) -> int:
        """The seed of the instance, 0 where none was given."""
        return int(self.parameters.get("seed", 0))

    def with_seed(self, seed: int) -> Problem:
        """This problem drawn from another seed; without a factory only its stream is drawn anew."""
        parameters = {**self.parameters, "seed": seed}
        if self.factory is None:
            return replace(self, parameters=parameters)
        drawn = self.factory(**parameters)
        return replace(drawn, name=self.name, parameters=parameters, factory=self.factory)


def with_switching(problem: Problem, switching: float) -> Problem:
    """A problem in which moving has a price: from round to round, `switching` times the distance between two decisions.

    The price is in the cost of a game, and so in its regret: an action that stays where it is pays none. Policies are not told.

    Parameters
    ----------
    problem : Problem
        The problem, whose rounds stay as they are.
    switching : float
        What it costs to move by one unit of action, 0 or above. With 0 the movement is kept, and costs nothing.

    Examples
    --------
    >>> import bridle
    >>> problem = bridle.problem("halfspaces", horizon=100, dim=2)
    >>> policy = bridle.policy("adagrad", problem.domain)
    >>> free, priced = (bridle.play(policy, bridle.with_switching(problem, price)) for price in (0.0, 2.0))
    >>> bool(abs(bridle.regret(priced) - bridle.regret(free) - 2.0 * bridle.movement(free)) < 1e-9)
    True
    """
    if not isinstance(problem, Problem):
        raise validate.refused("problem must be a Problem, such as bridle.problem('halfspaces', horizon=100)", problem)
    price = validate.nonnegative("switching", switching)
    constants: Constants = {**problem.constants, "switching": price}
    again = None if problem.factory is None else partial(_priced, problem.factory, price)
    return replace(problem, constants=constants, name="", factory=again)


def _priced(make: Callable[..., Problem], price: float, **parameters: object) -> Problem:
    return with_switching(make(**parameters), price)


def constants_of(domain: Domain, **known: Unpack[Constants]) -> Constants:
    """The constants of a problem: what is usually so, unless `known` says otherwise."""
    usual: Constants = {
        "diameter": domain.diameter(), "convex": True, "affine": True, "modulus": 0.0, "constraints": 1, "time_varying": True,
    }  # fmt: skip
    return usual | known


NoState: TypeAlias = tuple[()]
"""The state of an adversary that remembers nothing."""

Kind = TypeVar("Kind", bound=type)


def oblivious(adversary: Kind) -> Kind:
    """Class decorator: the rounds of this adversary do not depend on the decisions, so they can be dealt again without a policy.

    Returns the class, with ``oblivious`` True.

    Parameters
    ----------
    adversary : type
        The adversary's class.

    Examples
    --------
    >>> @oblivious
    ... class Silent:
    ...     pass
    >>> Silent.oblivious
    True
    """
    adversary.oblivious = True  # type: ignore[attr-defined]
    return adversary


def adaptive(adversary: Kind) -> Kind:
    """Class decorator: the rounds of this adversary depend on the decisions it sees.

    Returns the class, with ``oblivious`` False.

    Parameters
    ----------
    adversary : type
        The adversary's class.

    Examples
    --------
    >>> @adaptive
    ... class Spiteful:
    ...     pass
    >>> Spiteful.oblivious
    False
    """
    adversary.oblivious = False  # type: ignore[attr-defined]
    return adversary


class RandomStream(Protocol):
    """Rounds that are drawn at random and depend on no decision."""

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        """The next rounds, as one with a leading time axis."""
        ...


@oblivious
class StreamOpponent(NamedTuple):
    """Plays a random stream: it answers every decision with the round that the stream has dealt."""

    stream: RandomStream

    def init(self) -> NoState:
        return ()

    def deal(self, rng: np.random.Generator, rounds: int) -> Round:
        return self.stream.deal(rng, rounds)

    def answer(self, state: NoState, x: Array, draw: Round) -> tuple[NoState, Round]:
        return state, draw
