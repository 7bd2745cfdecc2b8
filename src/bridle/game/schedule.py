"""Who plays whom: the two sides of a game, handed to an engine in blocks of rounds and groups of runs that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

import numpy as np

from bridle import policies, records, validate
from bridle.core import Feedback, InputError, Round
from bridle.engines.round import Block, Several, block_length, load_engine, load_engine_of_many
from bridle.game.totals import Summing, Totals, curve_rounds
from bridle.problems import Problem
from bridle.problems.dealing import deal_blocks, player

MEMORY = 2**30
"""How many bytes the rounds of a game may take at a time where nobody says otherwise."""

SUMMING = {"jax": 2, "numba": 1, "cuda": 1}
"""The engines that add up the totals themselves where no round is kept, and from how many runs on: bringing every round home would cost
more."""

MOST = {"jax": 2**24, "numba": 2**24, "cuda": 2**28}
"""How many bytes of rounds the engines that take several blocks at a time are handed: what is done for every call then hardly counts.

Python is handed one. More than fits into a processor's cache would make those that run there slower.
"""

COPIES = {"python": 3, "jax": 6, "numba": 3, "cuda": 3}
"""How often a round's numbers are in memory at a time, at most: dealt, laid side by side, handed over."""

ADDING = 12
"""How many numbers adding up takes for every cost and constraint value of a round that is brought home."""


class Opening(NamedTuple):
    """The first round of a game, and how many numbers the adversary was dealt for it."""

    round: Round
    dealt: int


class Sizes(NamedTuple):
    """How many numbers there are to a round: dealt, in the adversary's answer, constraints; and in a state of the policy."""

    dealt: int
    answer: int
    constraints: int
    state: int


@dataclass(frozen=True)
class Match:
    """A policy against a problem for so many rounds: one run, or several, each with its own parameters, start or stream.

    `record` stands for all runs, `alone` for the first; None where the runs cannot be told apart.
    """

    record: Any
    alone: Any
    problem: Problem
    opening: Opening
    seeds: tuple[int, ...]
    x1: np.ndarray
    runs: int | None
    rounds: int
    engine: str

    @property
    def sums(self) -> bool:
        """Whether the engine can add up the totals itself."""
        return self.alone is not None and (self.runs or 1) >= SUMMING.get(self.engine, inf)

    def part(self, begin: int, end: int) -> Match:
        """The same for some of the runs."""
        record = records.transform(lambda leaf, one: leaf if np.shape(leaf) == np.shape(one) else leaf[begin:end], self.record, self.alone)
        seeds = self.seeds[begin:end] if len(self.seeds) > 1 else self.seeds
        return replace(self, record=record, seeds=seeds, x1=self.x1 if self.x1.ndim == 1 else self.x1[begin:end], runs=end - begin)

    def groups(self, memory: int, collect: str, kept: int = 0) -> list[Match]:
        """As few groups of runs as fit into so many bytes beside those that are kept, to be played one after the other."""
        runs, least, room = self.runs or 1, self.least(collect), memory - kept
        if self.size(collect) <= room:
            return [self]
        if least > room:
            what = (
                "this game" if runs == 1 else "one run of this game" if self.alone is not None else "this game, whose runs belong together"
            )
            raise InputError(f"memory must be at least {least + kept} bytes for a block of {what}, not {memory}")
        each = self.size(collect, runs=2) - least
        return self.split(-(-runs // (1 + (room - least) // each)))

    def least(self, collect: str) -> int:
        """How many bytes the smallest group of runs takes: one, or all where they cannot be told apart."""
        return self.size(collect, runs=None if self.alone is None else 1)

    def split(self, groups: int) -> list[Match]:
        """So many groups of about as many runs each."""
        if groups == 1:
            return [self]
        ends = [(self.runs or 1) * n // groups for n in range(groups + 1)]
        return [self.part(begin, end) for begin, end in pairwise(ends)]

    def size(self, collect: str, runs: int | None = None) -> int:
        """About how many bytes a block takes, of all runs or of so many, with what comes of it until it is added up."""
        known, runs = self.sizes, runs or self.runs or 1
        streams = runs if len(self.seeds) > 1 else 1
        brought = ADDING * (1 + known.constraints)
        kept = {"sums": 0, "": brought, "x": brought + 2 * len(self.start), "round": 2 * (1 + known.constraints) + 3 * known.answer}[
            collect
        ]
        rounds = block_length(self.problem.domain.dim)
        return 8 * (rounds * (COPIES[self.engine] * known.dealt * streams + kept * runs) + 4 * known.state * runs)

    @cached_property
    def sizes(self) -> Sizes:
        """How large a round and a state are, as seen in the first round of the first run."""
        state = count(self.record.init(self._starts())) // (self.runs or 1) if self.alone is None else count(self.alone.init(self.start))
        return Sizes(self.opening.dealt, count(self.opening.round), len(self.opening.round.reveal(self.start).g), state)

    def _starts(self) -> np.ndarray:
        return self.x1 if self.runs is None else np.broadcast_to(self.x1, (self.runs, self.x1.shape[-1])).copy()

    @property
    def start(self) -> np.ndarray:
        """Where the first run starts."""
        return self.x1 if self.x1.ndim == 1 else self.x1[0]

    def blocks_at_once(self, memory: int, collect: str) -> int:
        """How many blocks the engine is handed at a time."""
        room = min(memory, MOST.get(self.engine, 0))
        return max(1, room // self.size(collect)) if room else 1

    def advance(self, collect: str, memory: int) -> Iterator[tuple[int, Any, Block]]:
        """Play from the start, block by block: the rounds done, the policy's state, and the block."""
        many = self.blocks_at_once(memory, collect)
        length = many * block_length(self.problem.domain.dim)
        marks, done = curve_rounds(self.rounds), 0
        record, alone = self.record, self.alone
        if collect == "sums":
            each = np.zeros(self.sizes.constraints)
            record, alone = Summing(record, each), Summing(alone, each)
        adversaries = [
            self.problem.with_seed(seed).adversary if seed != self.problem.seed else self.problem.adversary for seed in self.seeds
        ]
        dealt = [deal_blocks(a, seed, self.rounds, self.problem.domain.dim, many) for a, seed in zip(adversaries, self.seeds, strict=True)]
        state = record.init(self._starts())
        run_block, foe = self._seated(record, alone, [player(adversary) for adversary in adversaries])
        while done < self.rounds:
            size, draws = min(length, self.rounds - done), tuple(next(stream) for stream in dealt)
            wanted = np.union1d(marks[(marks > done) & (marks <= done + size)] - done, size).astype(int) if collect == "sums" else None
            try:
                state, foe, block = run_block(state, foe, draws, size, collect, *([] if wanted is None else [wanted]))
            except OverflowError as wrong:
                raise InputError(f"a number is too large for a float between rounds {done + 1} and {done + size}: {wrong}") from None
            del draws  # before the next ones are there
            if wanted is not None:
                yield done + size, state.policy, block._replace(sums=_brought_home(block.sums, done + wanted, self.runs))
            elif self.runs is not None:
                yield done + size, state, _across(block, size, self.runs)
            else:
                yield done + size, state, block
            done += size

    def _seated(self, record: Any, alone: Any, players: list[Any]) -> tuple[Any, Any]:
        """What advances a block, given states and draws, and the adversary's state at the start."""
        several = None if self.runs is None or self.alone is None else load_engine_of_many(self.engine)
        if several is not None:
            runs = self.runs or 1
            foe = records.spread(players[0].init(), runs) if len(players) == 1 else _side_by_side([p.init() for p in players])
            return lambda state, foe, draws, *rest: several(Several(record, alone, players, state, foe, draws), *rest), foe
        advance = load_engine(self.engine)
        adversary, foe = players[0], players[0].init()
        if self.runs is not None:
            foe = records.spread(foe, self.runs)
            if len(players) > 1:
                # One adversary for all runs: its own arrays get the run axis, as the draws do below.
                adversary = _side_by_side(players)

        def run_block(state: Any, foe: Any, draws: tuple[Any, ...], *rest: Any) -> Any:
            dealt = draws[0] if len(draws) == 1 else records.widen(records.stack(draws, axis=1), 2)
            return advance(record, adversary, state, foe, dealt, *rest)

        return run_block, foe


def count(part: Any) -> int:
    """How many numbers a record holds."""
    return sum(int(np.size(leaf)) for leaf in records.leaves(part).values())


def _side_by_side(parts: list[Any]) -> Any:
    """Records of single runs as one of several."""
    return records.widen(records.stack([records.transform(np.asarray, part) for part in parts]), 1)


def tried(record: Any, domain: Any, k: int) -> Any:
    """What a record that does not come from the registry decides after one update; None where it cannot be tried like that."""
    x, d = domain.center(), domain.dim
    k = len(getattr(record, "each", np.zeros(k)))
    try:
        return record.decide(record.update(record.init(x), Feedback(x, 1.0, np.ones(d), np.ones(k), np.ones((k, d)))))
    except (TypeError, ValueError, AttributeError):
        return None  # it wants something else of a feedback; the game itself will tell


def one_of(policy: Any, record: Any, runs: int | None, problem: Problem) -> Any:
    """The record of the first of several runs; None where it cannot be told from the others."""
    if isinstance(policy, policies.Configured):
        return record if policy.runs is None else policy.run(0).record
    if runs is None or np.ndim(tried(record, problem.domain, problem.constants.get("constraints", 1))) == 1:
        return record  # of a single run, whatever shapes its parts happen to have: the runs differ in their streams or starts
    if not records.is_record(record):
        return None
    return records.transform(lambda leaf: float(leaf[0, 0]) if np.shape(leaf) == (runs, 1) else leaf, record)


def first_round(problem: Problem, x: np.ndarray) -> Opening:
    """The round that the problem's adversary would answer x with, at the start of a single run."""
    adversary = problem.adversary
    draws = next(iter(deal_blocks(adversary, problem.seed, 1, problem.domain.dim)))
    draw = next(iter(records.unstack(draws, 1)))
    chosen: Round = (adversary.answer(adversary.init(), x) if draw is None else adversary.answer(adversary.init(), x, draw))[1]
    return Opening(chosen, count(draws))


def _brought_home(sums: Totals, rounds: np.ndarray, runs: int | None) -> Totals:
    """The totals that an engine kept at these rounds, as `accumulate` gives them."""
    short = np.asarray(sums.rounds).reshape(len(rounds), -1).min(axis=1) < rounds
    if short.any():
        first = int(np.asarray(sums.rounds)[-1].min())
        raise InputError(f"the cost or a constraint is not finite in round {first + 1} of the game")
    home = sums if runs is None else sums._replace(cost=sums.cost[..., 0], worst=sums.worst[..., 0])
    return home._replace(rounds=rounds.astype(float))


def _across(block: Block, size: int, runs: int) -> Block:
    """The block of several runs with every axis spelled out, also where all runs saw the same number."""
    f = np.broadcast_to(block.f, (size, runs, 1))[..., 0]
    g = np.broadcast_to(block.g if block.g.ndim == 3 else block.g[:, None], (size, runs, block.g.shape[-1]))
    return Block(f, g, block.x, block.round)


def bytes_of(memory: Any) -> int:
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
        raise InputError(f"memory must be a number of bytes such as 500MB or 2GiB, not {validate.show(memory)}")
    return validate.whole("memory", memory)
