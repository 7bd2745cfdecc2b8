"""What an engine is to play: blocks of rounds and groups of runs that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from bridle import engines, policies, records, validate
from bridle.core import Adversary, Feedback, InputError, Policy, S
from bridle.engines.round import Block, BlockTotals, BlockValues, Collect, Marks, RunBatch, SingleRun, block_length
from bridle.game.totals import SummingState, Totals, curve_rounds, summing
from bridle.ops import Array
from bridle.policies.registry import constraints_of, for_constraints, learns_constraints
from bridle.policies.round_maps import record_of
from bridle.problems import Problem
from bridle.problems.dealing import FirstRound, count_numbers, deal_blocks, first_round, player
from bridle.problems.recorded import RecordedRounds
from bridle.records import R

DEFAULT_MEMORY = 2**30
"""How many bytes the rounds of a game may take at a time where nobody says otherwise."""

SUMMING = {"jax": 2, "compiled": 1}
"""From how many runs on each engine sums the totals on its own side, instead of returning every round."""

MOST, MOST_SUMMED = 2**24, 2**26
"""How many bytes of rounds a compiled engine is given at a time, so that what every call costs hardly counts.

The second is for compiled loops where they sum the totals themselves. The Python engine is given one block.
"""

COPIES = {"python": 3, "jax": 6, "compiled": 3}
"""How often a round's numbers are in memory at a time, at most: dealt, laid side by side, given to the engine."""

ADDING = 12
"""How many numbers adding up takes for every cost and constraint value of a round that an engine returns."""

PlayBlock: TypeAlias = Callable[[object, object, tuple[object, ...], int, Collect, Marks | None], tuple[object, object, Block]]
"""Plays a block from both states on, with these draws (one for all runs or one for each): both states after it, and the block."""


class RoundSizes(NamedTuple):
    """How many numbers there are to a round: dealt, in the adversary's answer, constraints; and in a state of the policy."""

    dealt: int
    answer: int
    constraints: int
    state: int


@dataclass(frozen=True)
class Schedule:
    """A policy against a problem for so many rounds: one run, or several, each with its own parameters, start or stream.

    `record` is the policy of all runs, `alone` that of the first; None where the runs cannot be told apart.
    """

    record: Policy[object]
    alone: Policy[object] | None
    problem: Problem
    first: FirstRound
    seeds: tuple[int, ...]
    x1: Array
    runs: int | None
    rounds: int
    engine: str

    @property
    def start(self) -> Array:
        """Where the first run starts."""
        return self.x1 if self.x1.ndim == 1 else self.x1[0]

    @property
    def engine_sums(self) -> bool:
        """Whether the engine sums the totals on its own side, where nothing of single rounds is kept."""
        return self.alone is not None and (self.runs or 1) >= SUMMING.get(self.engine, inf)

    @cached_property
    def sizes(self) -> RoundSizes:
        """How large a round and a state are, as seen in the first round of the first run."""
        if self.alone is None:
            state = count_numbers(self.record.init(self._starts())) // (self.runs or 1)
        else:
            state = count_numbers(self.alone.init(self.start))
        return RoundSizes(self.first.dealt, count_numbers(self.first.round), len(self.first.round.reveal(self.start).g), state)

    def block_bytes(self, collect: Collect, runs: int | None = None) -> int:
        """About how many bytes a block takes, of all runs or of so many, with what comes of it until it is added up."""
        sizes, runs = self.sizes, runs or self.runs or 1
        streams = runs if len(self.seeds) > 1 else 1
        values = 1 + sizes.constraints
        collected = {
            Collect.TOTALS: 0,
            Collect.VALUES: ADDING * values,
            Collect.DECISIONS: ADDING * values + 2 * len(self.start),
            Collect.ROUNDS: 2 * values + 3 * sizes.answer,
        }
        rounds = block_length(self.problem.domain.dim)
        return 8 * (rounds * (COPIES[self.engine] * sizes.dealt * streams + collected[collect] * runs) + 4 * sizes.state * runs)

    def least_bytes(self, collect: Collect) -> int:
        """How many bytes the smallest group of runs takes: one run, or all where they cannot be told apart."""
        return self.block_bytes(collect, runs=None if self.alone is None else 1)

    def groups_within(self, memory: int, collect: Collect, reserved: int = 0) -> list[Schedule]:
        """As few groups of runs as fit into so many bytes, less those `reserved`, to be played one after the other."""
        runs, least, room = self.runs or 1, self.least_bytes(collect), memory - reserved
        if self.block_bytes(collect) <= room:
            return [self]
        if least > room:
            one = "one run of this game" if self.alone is not None else "this game, whose runs belong together"
            whose = "this game" if runs == 1 else one
            raise InputError(f"memory must be at least {least + reserved} bytes for a block of {whose}, not {memory}")
        more = self.block_bytes(collect, runs=2) - least
        return self.split(-(-runs // (1 + (room - least) // more)))

    def split(self, groups: int) -> list[Schedule]:
        """So many groups of about as many runs each."""
        if groups == 1:
            return [self]
        ends = [(self.runs or 1) * n // groups for n in range(groups + 1)]
        return [self._part(begin, end) for begin, end in pairwise(ends)]

    def _part(self, begin: int, end: int) -> Schedule:
        """The schedule of the runs from `begin` to `end`."""
        record = records.transform(lambda leaf, one: leaf if np.shape(leaf) == np.shape(one) else leaf[begin:end], self.record, self.alone)
        seeds = self.seeds[begin:end] if len(self.seeds) > 1 else self.seeds
        return replace(self, record=record, seeds=seeds, x1=self.x1 if self.x1.ndim == 1 else self.x1[begin:end], runs=end - begin)

    def blocks_at_once(self, memory: int, collect: Collect) -> int:
        """How many blocks the engine is given at a time."""
        if self.engine == "python":
            return 1
        room = MOST
        if self.engine == "compiled" and collect is Collect.TOTALS:
            in_memory = len(self.seeds) == 1 and isinstance(self.problem.adversary, RecordedRounds)  # as views, which take no room
            room = memory if in_memory else MOST_SUMMED
        return max(1, min(memory, room) // self.block_bytes(collect))

    def advance(self, collect: Collect, memory: int) -> Iterator[tuple[int, object, Block]]:
        """Play from the start, block by block: the rounds done, the policy's state, and the block."""
        many, dim = self.blocks_at_once(memory, collect), self.problem.domain.dim
        length, marks, done = many * block_length(dim), curve_rounds(self.rounds), 0
        sources = [self.problem.with_seed(seed) if seed != self.problem.seed else self.problem for seed in self.seeds]
        streams = [deal_blocks(source.adversary, seed, self.rounds, dim, many) for source, seed in zip(sources, self.seeds, strict=True)]
        record, alone = self._policies(collect)
        state = record.init(self._starts())
        play_block, foe = self._opponents(record, alone, [player(source.adversary) for source in sources])
        while done < self.rounds:
            size, draws = min(length, self.rounds - done), tuple(next(stream) for stream in streams)
            marked = None
            if collect is Collect.TOTALS:
                marked = np.union1d(marks[(marks > done) & (marks <= done + size)] - done, size).astype(int)
            try:
                state, foe, block = play_block(state, foe, draws, size, collect, marked)
            except OverflowError as wrong:
                raise InputError(f"a number is too large for a float between rounds {done + 1} and {done + size}: {wrong}") from None
            del draws  # before the next ones are there
            after = state
            if isinstance(block, BlockTotals) and marked is not None:
                after = cast(SummingState[object], state).policy
                block = BlockTotals(_as_accumulated(cast(Totals, block.sums), done + marked, self.runs))
            elif isinstance(block, BlockValues) and self.runs is not None:
                block = _across_runs(block, size, self.runs)
            done += size
            yield done, after, block

    def _starts(self) -> Array:
        return self.x1 if self.runs is None else np.broadcast_to(self.x1, (self.runs, self.x1.shape[-1])).copy()

    def _policies(self, collect: Collect) -> tuple[Policy[object], Policy[object] | None]:
        """The policy of all runs and that of the first, which also sum where totals are collected."""
        if collect is not Collect.TOTALS:
            return self.record, self.alone
        each = np.zeros(self.sizes.constraints)
        alone = None if self.alone is None else summing(self.alone, each)
        return cast(Policy[object], summing(self.record, each)), cast(Policy[object] | None, alone)

    def _opponents(
        self, record: Policy[object], alone: Policy[object] | None, players: list[Adversary[object]]
    ) -> tuple[PlayBlock, object]:
        """What plays a block of the policy against the adversaries, one for all runs or one for each; and their state at the start."""
        engine = engines.load(self.engine)
        if self.runs is not None and alone is not None and isinstance(engine, engines.PlaysManyRuns):
            several = engine.advance_many
            foe = records.spread(players[0].init(), self.runs) if len(players) == 1 else _stack_runs([each.init() for each in players])
            return lambda state, foe, draws, *rest: several(RunBatch(record, alone, players, state, foe, draws), *rest), foe
        adversary, foe = players[0], players[0].init()
        if self.runs is not None:
            foe = records.spread(foe, self.runs)
            if len(players) > 1:
                # One adversary for all runs: its own arrays get the run axis, as the draws do below.
                adversary = _stack_runs(players)

        def play_block(
            state: object, foe: object, draws: tuple[object, ...], rounds: int, collect: Collect, marks: Marks | None
        ) -> tuple[object, object, Block]:
            dealt = draws[0] if len(draws) == 1 else records.widen(records.stack(draws, axis=1), 2)
            return engine.advance(SingleRun(record, adversary, state, foe, dealt), rounds, collect, marks)

        return play_block, foe


def schedule(
    policy: object,
    problem: Problem,
    rounds: int,
    seeds: tuple[int, ...],
    runs: int | None,
    engine: str,
    x1: Array,
    first: FirstRound | None = None,
) -> Schedule:
    """The schedule of a game at its start; `first` is its first round, where it was played already."""
    start = x1 if x1.ndim == 1 else x1[0]
    first = first or first_round(problem.adversary, problem.seed, start)
    record, alone = record_of(policy), first_record(policy, runs, problem)
    if learns_constraints(record):
        k = len(first.round.reveal(start).g)
        record, alone = for_constraints(record, k), for_constraints(alone, k)
    return Schedule(record, alone, problem, first, seeds, x1, runs, rounds, engine)


def first_record(policy: object, runs: int | None, problem: Problem) -> Policy[object] | None:
    """The policy record of run 0 of a sweep; None if its own leaves cannot be identified."""
    record: Policy[object] = record_of(policy)
    if isinstance(policy, policies.Configured):
        return record if policy.runs is None else cast(Policy[object], policy.run(0).record)
    if runs is None or ((x := trial_decision(record, problem)) is not None and np.ndim(x) == 1):
        return record  # of a single run, whatever shapes its parts happen to have: the runs differ in their streams or starts
    if not records.is_record(record):
        return None
    one = records.transform(lambda leaf: float(leaf[0, 0]) if np.shape(leaf) == (runs, 1) else leaf, record)
    return cast(Policy[object], one)


def trial_decision(record: Policy[S], problem: Problem) -> Array | None:
    """What a record that does not come from the registry decides after one update; None where it cannot be tried like that."""
    x, d = problem.domain.center(), problem.domain.dim
    k = constraints_of(record) or problem.constants.get("constraints", 1)
    try:
        return record.decide(record.update(record.init(x), Feedback(x, 1.0, np.ones(d), np.ones(k), np.ones((k, d)))))
    except (TypeError, ValueError, AttributeError):
        return None  # it wants something else of a feedback; the game itself will tell


def _stack_runs(parts: list[R]) -> R:
    """Records of single runs as one of several."""
    return records.widen(records.stack([records.transform(np.asarray, part) for part in parts]), 1)


def _as_accumulated(sums: Totals, rounds: Marks, runs: int | None) -> Totals:
    """The totals that an engine kept at these rounds, as `accumulate` gives them."""
    counted = sums.rounds
    if (counted.reshape(len(rounds), -1).min(axis=1) < rounds).any():
        raise InputError(f"the cost or a constraint is not finite in round {int(counted[-1].min()) + 1} of the game")
    if runs is not None:
        sums = sums._replace(cost=sums.cost[..., 0], worst=sums.worst[..., 0])
    return sums._replace(rounds=rounds.astype(float))


def _across_runs(block: BlockValues, size: int, runs: int) -> BlockValues:
    """The block of several runs with every axis spelled out, also where all runs saw the same number."""
    f = np.broadcast_to(block.f, (size, runs, 1))[..., 0]
    own = block.g if block.g.ndim > 2 else block.g[:, None]
    g = np.broadcast_to(own, (size, runs, *own.shape[2:]))
    return BlockValues(f, g, block.x)


def bytes_of(memory: object) -> int:
    """How many bytes a limit on memory stands for: a number of bytes, or one with a unit.

    >>> bytes_of(1_000_000), bytes_of("500MB"), bytes_of("1.5 GiB")
    (1000000, 500000000, 1610612736)
    """
    units = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
    if isinstance(memory, str):
        text = memory.strip().upper()
        number = text.rstrip("BIKMG").strip()
        unit = text[len(number) :].strip()
        if unit in units and number.replace(".", "", 1).isdigit():
            return validate.whole("memory", int(float(number) * units[unit]))
        raise validate.refused("memory must be a number of bytes such as 500MB or 2GiB", memory)
    return validate.whole("memory", memory)
