"""What a problem is, and what opponents share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, Unpack

import numpy as np

from bridle import showing
from bridle.core import Adversary, Constants, Domain, Round
from bridle.ops import Array

HELP = {
    "horizon": "T, how many rounds",
    "seed": "seed of the instance and of its stream",
    "dim": "d, coordinates of a decision",
    "modulus": "0: linear costs; above 0: quadratic costs with this strong convexity",
    "constraints": "k, constraints a round reveals",
    "slater": "by how much one action satisfies every constraint",
    "family": "m, how many linear costs the adversary chooses from",
    "domain": "ball, box, simplex, l1, or a domain",
    "data": "name of a data set that `bridle data list` shows, or a file of your own where the problem takes one",
    "installed": "how much there is of each resource of a file, one number or one for each; twice its peak unless given",
    "lookback": "how many of the latest rows of the data a limit is computed from",
    "risk": "allowed variance, as a multiple of that of an equal share in every asset",
    "known": "limits are told before each decision, and kept",
    "relatives": "the file has price relatives, not prices",
    "budget": "share of what it costs on average to bid what impressions are worth",
    "share": "what may be spent, as a share of what all auctions would cost together",
    "auction": "second: the winner pays the others' highest bid; first: its own",
    "levels": "how many multipliers of the value there are, that of no bid included",
    "tolerance": "largest covariance of score and sex that is allowed",
    "radius": "largest length of the weights",
    "elasticity": "by how many percent sales fall when a price rises by 1 percent, at list prices on average",
    "substitution": "by how many percent, at most, sales rise when all other prices rise by 1 percent",
    "stock": "a day's share of the stock, in average days' sales at list prices",
    "season": "how far demand swings over a week, as a share of it",
    "shock": "how far the level of demand may lie off in a month, up or down, as a share of it",
    "least": "attention that a provider must get, as a multiple of an even share",
    "most": "attention that a provider may get, as a multiple of an even share",
    "window": "S: over every so many rounds in a row, and over no fewer, an action satisfies the constraints in total",
    "level": "by how much the best action violates a constraint in a bad round",
    "P_T": "what the best action violates over its worst interval, in units of F (the largest |g|); below the horizon",
    "conflict": "0: one weight vector serves all tasks; above 0: by how much every one fails a task in every round",
    "period": "rounds between one change of sides, or one constraint, and the next",
    "noise": "largest error of a constraint's value",
    "adaptive": "0: scales are drawn at random; 1: the farther a decision is from the feasible action, the larger they are",
}

UNITS = {
    "horizon": "rounds",
    "seed": "none",
    "dim": "coordinates",
    "modulus": "cost per squared unit of action",
    "constraints": "constraints",
    "slater": "constraint",
    "family": "costs",
    "domain": "a name or a domain",
    "data": "a name",
    "lookback": "rows",
    "risk": "none",
    "budget": "share, between 0 and 1",
    "tolerance": "covariance",
    "radius": "weights",
    "window": "rounds",
    "level": "constraint",
    "P_T": "the largest constraint value",
    "conflict": "constraint",
    "period": "rounds",
    "noise": "constraint",
    "adaptive": "0 or 1",
    "installed": "action",
    "elasticity": "percent per percent",
    "substitution": "percent per percent",
    "stock": "days of sales",
    "season": "share, between 0 and 1",
    "shock": "share, between 0 and 1",
    "least": "even shares",
    "most": "even shares",
    "known": "yes or no",
    "relatives": "yes or no",
    "share": "share, between 0 and 1",
    "auction": "a name",
    "levels": "multipliers",
}
"""In which unit each parameter is."""


Measures: TypeAlias = Callable[[Round, Array, Array, Array], dict[str, float]]
"""What a game is worth, by name: a function of its rounds, decisions, costs and constraint values."""


@dataclass(frozen=True)
class Problem:
    """A domain, an adversary, and constants under the parameter names.

    `lipschitz`, `diameter`, `bound`, `modulus` and `constraints` are numbers that hold for every round; `convex` and `affine` (which `play`
    reads off the first round) and `time_varying` say of what kind the functions are; `feasible` is an action that satisfies every
    constraint (None where it is known that there is none), and `slater` a margin by which some action does; `safe` is the action to fall
    back on, which keeps every limit whatever comes, as far as one does, and which is known before the first round; `optimum` is the best
    feasible action over the whole horizon and `optimal_cost` its total cost, where they are known in advance; `least_regret` is what no
    policy can do better than; `rounds` is how many rounds there are at most. Where no action is feasible, `benchmark` is the one that comes
    closest: over every `window` rounds in a row its constraints sum to 0 or less, and over any interval to `excess` or less; no action has
    a smaller window or a smaller excess. `factory`, called with `parameters`, makes the problem again. `measures` says what a game is
    worth in the problem's own terms, by name, given all rounds, the decisions (T, d), the costs (T,) and the constraints' values (T, k).
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


def constants_of(domain: Domain, **known: Unpack[Constants]) -> Constants:
    """The constants of a problem: what is usually so, unless `known` says otherwise."""
    usual: Constants = {"diameter": domain.diameter(), "convex": True, "affine": True}
    return usual | known


NoState: TypeAlias = tuple[()]
"""The state of an opponent that remembers nothing."""

Kind = TypeVar("Kind", bound=type)


def oblivious(opponent: Kind) -> Kind:
    """Class decorator: the rounds of this opponent do not depend on the decisions, so they can be dealt again without a policy."""
    opponent.oblivious = True  # type: ignore[attr-defined]
    return opponent


def adaptive(opponent: Kind) -> Kind:
    """Class decorator: the rounds of this opponent depend on the decisions it sees."""
    opponent.oblivious = False  # type: ignore[attr-defined]
    return opponent


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
