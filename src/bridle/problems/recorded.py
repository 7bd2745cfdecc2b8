"""A stream that was recorded, or computed, before the game: real data, or arrays that a user brings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol, cast

import numpy as np

from bridle import records, validate
from bridle.core import Constants, Domain, InputError, Round
from bridle.networks import NetworkRound
from bridle.ops import Array
from bridle.problems.base import NoState, Problem, oblivious


@oblivious
class Dealt(NamedTuple):
    """Answers every decision with the round it is dealt: what an engine plays against where the rounds are known beforehand."""

    def init(self) -> NoState:
        return ()

    def answer(self, state: NoState, x: Array, draw: Round) -> tuple[NoState, Round]:
        return state, draw


@oblivious
class RecordedRounds(NamedTuple):
    """The rounds of a table one after the other, from row `first` on; after the last row comes row 0, and so on until all were played.

    The engine is dealt a block of the table at a time and plays against `player`, so that the table itself never travels.
    """

    table: Round | NetworkRound  # every leaf with a leading time axis
    first: float

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return len(next(iter(records.leaves(self.table).values())))

    @property
    def player(self) -> Dealt:
        return Dealt()

    def init(self) -> NoState:
        return ()

    def answer(self, state: NoState, x: Array, draw: Round) -> tuple[NoState, Round]:
        return state, draw

    def replay(self, start: int, stop: int) -> Round | NetworkRound:
        """Rounds `start` to `stop` of the game."""
        n = self.rounds
        if stop > n:
            raise InputError(f"horizon must be at most {n}, the rounds that were recorded, not {stop}")
        begin, end = int(self.first) + start, int(self.first) + stop
        if begin < n < end:
            rows = records.join([records.cut(self.table, begin, n), records.cut(self.table, 0, end - n)])
        else:
            around = n if begin >= n else 0
            rows = records.cut(self.table, begin - around, end - around)
        return cast(Round, rows)  # a NetworkRound stands in the place of one


class ForetoldDealt(Dealt):
    """Answers as `Dealt` does; the constraints of a round are known before its decision, and a game keeps them."""

    __slots__ = ()

    @property
    def foretold(self) -> bool:
        return True

    @property
    def compiled(self) -> bool:
        return False  # the nearest decision that keeps them is found by a solver


class ForetoldRounds(RecordedRounds):
    """Recorded rounds whose constraints are known before each decision."""

    __slots__ = ()

    @property
    def foretold(self) -> bool:
        return True

    @property
    def player(self) -> Dealt:
        return ForetoldDealt()


class PeriodicStream(Protocol):
    """Rounds that are computed a period at a time, each period alone."""

    @property
    def length(self) -> int:
        """How many rounds a period has."""
        ...

    def period(self, number: int) -> Round:
        """The period of this number, the first being 0, as one round with a leading time axis."""
        ...


@oblivious
class ComputedRounds(NamedTuple):
    """Plays a stream period by period: any round can be computed without those before it, and there is no last one."""

    stream: PeriodicStream

    @property
    def rounds(self) -> int:
        """How many rounds there are: as many as can be counted."""
        return 2**53

    @property
    def player(self) -> Dealt:
        return Dealt()

    def init(self) -> NoState:
        return ()

    def answer(self, state: NoState, x: Array, draw: Round) -> tuple[NoState, Round]:
        return state, draw

    def replay(self, start: int, stop: int) -> Round:
        """Rounds `start` to `stop` of the game."""
        length = self.stream.length
        first = start // length
        periods = [self.stream.period(number) for number in range(first, max(first + 1, -(-stop // length)))]
        return records.cut(records.join(periods), start - first * length, stop - first * length)


def Recorded(rounds: Round | Iterable[Round], first: int = 0) -> RecordedRounds:
    """An adversary that plays recorded rounds.

    Returns the adversary, for `bridle.Problem`.

    Parameters
    ----------
    rounds : Round or iterable of Round
        One round whose arrays have a leading time axis, or single rounds of one kind.
    first : int, default 0
        The row to begin with. After the last row the table goes on with row 0, until every row was played once.

    Examples
    --------
    >>> from bridle.functions import Affine
    >>> days = Recorded([Round(Affine([price, 1.0]), (Affine([-1.0, 0.0], demand),)) for price, demand in ((2.0, 0.5), (3.0, 0.25))])
    >>> days.rounds, days.replay(1, 2).cost.a.tolist()
    (2, [[3.0, 1.0]])
    """
    if isinstance(rounds, Round):
        table = _numbers(rounds)
    else:
        single = [_numbers(one) for one in rounds]
        if not single:
            raise InputError("rounds must hold at least one round, not none")
        kinds = {tuple(type(node) for node in records.nodes(one)) for one in single}
        shapes = {tuple(np.shape(leaf) for leaf in records.leaves(one).values()) for one in single}
        if len(kinds) > 1 or len(shapes) > 1:
            raise InputError("rounds must all be of one kind: the same functions, with arrays of the same shapes")
        table = records.stack(single)
    leaves = records.leaves(table)
    lengths = {leaf.shape[:1] for leaf in leaves.values()}
    if len(lengths) != 1 or lengths & {(), (0,)}:
        raise InputError(f"rounds must have one leading time axis on every array, not arrays of shapes {_shapes(leaves)}")
    recorded = RecordedRounds(table, 0.0)
    begin = validate.whole("first", first, 0)
    if begin >= recorded.rounds:
        raise InputError(f"first must be below {recorded.rounds}, the rounds there are, not {begin}")
    return recorded._replace(first=float(begin))


def recorded_problem(name: str, domain: Domain, table: Round, constants: Constants, horizon: int, seed: int) -> Problem:
    """The problem whose rounds are the rows of a table, from the row on that the seed picks; `name` is for messages."""
    adversary = RecordedRounds(table, 0.0)
    rounds = adversary.rounds
    if rounds < horizon:
        raise InputError(f"horizon must be at most {rounds}, the rounds that problem {name} has, not {horizon}")
    first = 0 if seed == 0 else int(np.random.default_rng([seed, 1]).integers(1, rounds)) if rounds > 1 else 0
    return Problem(domain, adversary._replace(first=float(first)), constants | {"rounds": rounds})


def _numbers(rounds: object) -> Round:
    """The round with its numbers as arrays, if it is one and holds nothing else: a Python callable cannot be laid out as a table."""
    if not isinstance(rounds, Round):
        raise validate.refused("rounds must be a Round or a sequence of them", rounds)
    for name, leaf in records.leaves(rounds).items():
        if not isinstance(leaf, (int, float, np.ndarray, np.generic)):
            raise InputError(f"rounds must hold numbers alone: {name} is a {type(leaf).__name__}")
    if not records.leaves(rounds):
        raise validate.refused("rounds must hold numbers", rounds)
    arrays = iter([validate.array(f"rounds: {name}", leaf) for name, leaf in records.leaves(rounds).items()])
    return records.transform(lambda _: next(arrays), rounds)


def _shapes(leaves: Mapping[str, Array]) -> str:
    return ", ".join(f"{name} {leaf.shape}" for name, leaf in leaves.items())
