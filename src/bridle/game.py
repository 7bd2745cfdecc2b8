"""The game: a policy against an adversary, round by round or over a whole horizon.

`turn` is one round, and the only place where the two sides meet; every engine repeats it. `play` deals the adversary's draws in blocks,
lets an engine advance block by block, and keeps running totals, so memory does not grow with the horizon unless more is asked for.
"""

from __future__ import annotations

import importlib
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bridle import policies, records, validate
from bridle.adversaries import block_length, deal_blocks, player
from bridle.core import BridleWarning, Feedback, InputError, Round, Unavailable
from bridle.functions import AFFINE
from bridle.ops import Array, maximum, pos, scalar, vector
from bridle.problems import Problem, needs, problem, takes

ENGINES = {"python": "", "jax": "jax", "numba": "numba", "cuda": "cuda"}
"""The engines, and the extra each one needs."""

ALONE = ("numba",)
"""The engines that are fastest with one run at a time, and play several in threads."""

FEW = 2**21
"""How many numbers of a stream are dealt at a time, about, for engines that are handed several blocks."""

KEEP = ("totals", "rounds", "decisions")

SUMMING = {"cuda": 2**28}
"""Engines that add up the totals themselves where no round is kept, and how many bytes they may be handed at a time.

They are given many blocks at once; the stream is the same. Bringing every round of many runs home costs more than playing them.
"""


def turn(policy: Any, adversary: Any, state: Any, foe: Any, draw: Any) -> tuple[Any, Any, Feedback]:
    """One round: the policy decides, the adversary answers, the policy updates on what is revealed."""
    x = policy.decide(state)
    foe, chosen = adversary.answer(foe, x) if draw is None else adversary.answer(foe, x, draw)
    feedback = chosen.reveal(x)
    return policy.update(state, feedback), foe, feedback


class Block(NamedTuple):
    """What an engine hands back of a block of rounds, with a leading time axis; `x` and a list of rounds where they were asked for."""

    f: Any
    g: Any
    x: Any = None
    round: Any = None
    sums: Any = None  # the totals at the rounds asked for, in place of f and g, where the engine adds up


class Totals(NamedTuple):
    """Running sums after so many rounds. Shapes: ``()`` and ``(k,)`` for one run, ``(B,)`` and ``(B, k)`` for B runs.

    Over the rounds so far: `cost` of f; `hard` of (g_i)^+; `soft` of g_i; `squared` of ((g_i)^+)^2; `worst` of (max_i g_i)^+. `queue` is
    the largest sum of g_i over an interval that ends now, `interval` over any interval (the empty one counts 0).
    """

    rounds: Any
    cost: Any
    hard: Any
    soft: Any
    squared: Any
    worst: Any
    queue: Any
    interval: Any


def accumulate(before: Totals, f: np.ndarray, g: np.ndarray) -> Totals:
    """The totals after every round of a block, given those before it: each field with a leading time axis."""

    def sums(start: Any, terms: np.ndarray) -> np.ndarray:
        terms = terms.copy()
        terms[0] += start
        return np.cumsum(terms, axis=0)

    hard, drift = np.maximum(g, 0.0), np.cumsum(g, axis=0)
    # Lindley's recursion Q_t = (Q_{t-1} + g_t)^+ in closed form.
    queue = drift + np.maximum(before.queue, np.maximum.accumulate(-drift, axis=0))
    return Totals(
        before.rounds + np.arange(1.0, len(f) + 1.0),
        sums(before.cost, f),
        sums(before.hard, hard),
        sums(before.soft, g),
        sums(before.squared, hard * hard),
        sums(before.worst, hard.max(axis=-1)),
        queue,
        np.maximum(before.interval, np.maximum.accumulate(queue, axis=0)),
    )


class Summed(NamedTuple):
    """The state of a policy, and the totals of its game."""

    policy: Any
    sums: Totals


class Summing(NamedTuple):
    """A policy that also keeps the totals of its game, for an engine that brings no rounds home."""

    policy: Any
    each: Array  # (k,)

    def init(self, x1: Array) -> Summed:
        zero, each = scalar(x1), vector(x1, self.each)
        return Summed(self.policy.init(x1), Totals(zero, zero, each, each, each, zero, each, each))

    def decide(self, state: Summed) -> Array:
        return self.policy.decide(state.policy)

    def update(self, state: Summed, feedback: Feedback) -> Summed:
        sums, f, g = state.sums, feedback.f, feedback.g
        hard, queue = pos(g), pos(sums.queue + g)
        cost, soft = sums.cost + f, sums.soft + g
        # A sum that is not finite stays so: what is counted are the rounds before that.
        fine = 0.0 * (cost + soft.sum(axis=-1, keepdims=soft.ndim > 1)) == 0.0
        after = Totals(
            sums.rounds + fine * 1.0,
            cost,
            sums.hard + hard,
            soft,
            sums.squared + hard * hard,
            sums.worst + hard.max(axis=-1, keepdims=hard.ndim > 1),
            queue,
            maximum(sums.interval, queue),
        )
        return Summed(self.policy.update(state.policy, feedback), after)


def _empty(shape: tuple[int, ...], k: int) -> Totals:
    zero, each = np.zeros(shape), np.zeros((*shape, k))
    return Totals(0.0, zero, each, each, each, zero, each, each)


_NOTHING = _empty((), 0)


@dataclass(frozen=True)
class Trace:
    """What happened in a game: totals, the same at log-spaced rounds, and the recipe to replay the stream.

    `seconds` is the time it took, `pace` the microseconds a round once running (a first block, in which an engine may compile, is left out
    where there are others). `costs`, `values` (of the constraints) and `decisions` are there, round by round, where `play` was asked to
    keep them.
    """

    policy: Any
    problem: Problem
    rounds: int
    seeds: tuple[int, ...]
    runs: int | None
    engine: str
    x1: np.ndarray
    totals: Totals = _NOTHING
    curve: Totals = _NOTHING
    state: Any = None
    seconds: float = 0.0
    pace: float = 0.0
    warnings: tuple[str, ...] = ()
    costs: np.ndarray | None = None
    values: np.ndarray | None = None
    decisions: np.ndarray | None = None

    def blocks(self, run: int | None = None) -> Iterator[Round]:
        """The rounds of the stream again, block by block, each a Round with a leading time axis; `run` names one of several.

        Rounds made of Python callables cannot be stacked, and come one by one.
        """
        seed = self.seeds[run or 0] if len(self.seeds) > 1 else self.seeds[0]
        source = self.problem.with_seed(seed) if seed != self.problem.seed else self.problem
        adversary = source.adversary
        if getattr(adversary, "oblivious", False):
            yield from _oblivious(adversary, seed, self.rounds, source.domain)
            return
        for _, _, block in _advance(self, self.engine, "round"):
            if self.runs is None:
                yield from block.round
                continue
            alone = _first_round(source, self.x1 if self.x1.ndim == 1 else self.x1[run or 0])
            for part in block.round:
                check_compiled(part)  # which run's is which cannot be told of a callable
                # What the adversary tells apart by runs has an axis more than in a single run.
                yield records.transform(lambda leaf, one: leaf if leaf.shape[1:] == np.shape(one) else leaf[:, run or 0], part, alone)

    @property
    def shared_stream(self) -> bool:
        """Whether every run saw the same rounds."""
        return self.runs is None or (len(self.seeds) == 1 and getattr(self.problem.adversary, "oblivious", False))


def play(
    policy: Any,
    problem: Problem | str,
    *,
    horizon: int | None = None,
    seed: int | Sequence[int] | None = None,
    engine: str = "python",
    x1: Any = None,
    keep: str = "totals",
    progress: Callable[[int, int], None] | None = None,
) -> Trace:
    """Play the policy on the problem and give the trace.

    A list of seeds, or a policy made with lists of parameters, plays that many games in one call. `keep` is "totals" (memory does not
    grow with the horizon), "rounds" (also every round's cost and constraint values) or "decisions" (also every decision).

    >>> import bridle
    >>> policy = bridle.policy("sinha2024", bridle.Ball(5), horizon=200, lipschitz=1.0)
    >>> trace = play(policy, "halfspaces")
    >>> trace.rounds, bool(bridle.ccv(trace) <= policy.bound(trace.problem.constants, 200).ccv)
    (200, True)
    """
    record, source, rounds, seeds, runs = _arrange(policy, problem, horizon, seed, x1)
    if engine not in ENGINES:
        raise validate.unknown("engine", engine, ENGINES)
    if keep not in KEEP:
        raise validate.unknown("keep", keep, KEEP)
    start = source.domain.center() if x1 is None else _start(x1, source.domain, runs)
    source = _opened(source, start if start.ndim == 1 else start[0])
    shape = () if runs is None else (runs,)
    game = Trace(policy, source, rounds, seeds, runs, engine, start)
    marks = curve_rounds(rounds)
    totals, state = _empty(shape, 0), None
    curve: list[Totals] = []
    kept: list[Block] = []
    collect = "x" if keep == "decisions" else "sums" if keep == "totals" and engine in SUMMING else ""
    if engine != "python" and rounds <= _at_once(engine, source) * block_length(source.domain.dim):
        next(iter(_advance(replace(game, rounds=1), engine, collect)))  # compile outside the clock: there is no second block to time
    clock = [(0, time.perf_counter())]
    for done, after, block in _advance(game, engine, collect):
        _check_finite(block, done)
        running = block.sums or accumulate(totals if curve else _empty(shape, block.g.shape[-1]), block.f, block.g)
        passed = marks[(marks > clock[-1][0]) & (marks <= done)]
        hit = np.searchsorted(running.rounds, passed)  # where they are: all of them are there
        curve.append(records.transform(lambda leaf, hit=hit: leaf[hit], running))
        totals, state = records.transform(lambda leaf: leaf[-1], running), after
        if keep != "totals":
            kept.append(block)
        clock.append((done, time.perf_counter()))
        if progress is not None:
            progress(done, rounds)
    notes = _notes(policy, record, state, source, rounds)
    for note in notes:
        warnings.warn(note, BridleWarning, stacklevel=2)
    first = clock[1] if len(clock) > 2 else clock[0]  # an engine may compile in the first block
    return replace(
        game,
        totals=totals,
        curve=records.join(curve),
        state=state,
        seconds=clock[-1][1] - clock[0][1],
        pace=1e6 * (clock[-1][1] - first[1]) / (rounds - first[0]),
        warnings=tuple(notes),
        costs=np.concatenate([block.f for block in kept]) if kept else None,
        values=np.concatenate([block.g for block in kept]) if kept else None,
        decisions=np.concatenate([block.x for block in kept]) if keep == "decisions" else None,
    )


def curve_rounds(rounds: int) -> np.ndarray:
    """The log-spaced rounds at which a game of so many rounds keeps its totals."""
    return np.unique(np.concatenate([[1.0, rounds], np.round(np.geomspace(1, rounds, 20 * len(str(rounds))))]))


def unplayed(problem: Problem) -> Trace:
    """The trace of a game that nobody has played: enough to ask about a stream that does not depend on the decisions."""
    if not getattr(problem.adversary, "oblivious", False):
        raise InputError(f"problem {problem.name or '(unnamed)'} has no stream of its own: its adversary adapts to the decisions")
    start, rounds = problem.domain.center(), _length(problem, None, None)
    curve = _NOTHING._replace(rounds=curve_rounds(rounds))
    return Trace(None, _opened(problem, start), rounds, (problem.seed,), None, "python", start, curve=curve)


def _opened(source: Problem, x: np.ndarray) -> Problem:
    """The problem with what its first round says of its functions, which goes before what the problem claims."""
    opening = _first_round(source, x)
    convex = opening.convex and source.constants.get("convex", True)
    affine = all(isinstance(constraint, AFFINE) for constraint in opening.constraints)
    return replace(source, constants={**source.constants, "convex": convex, "affine": affine})


def _first_round(source: Problem, x: np.ndarray) -> Round:
    """The round that the problem's adversary would answer x with, at the start of a single run."""
    adversary = source.adversary
    draws = next(iter(deal_blocks(adversary, source.seed, 1, source.domain.dim)))
    draw = next(iter(records.unstack(draws, 1)))
    chosen: Round = (adversary.answer(adversary.init(), x) if draw is None else adversary.answer(adversary.init(), x, draw))[1]
    return chosen


def _check_finite(block: Block, done: int) -> None:
    if block.sums is not None:
        return  # seen to where the counts of the runs are
    fine = np.isfinite(block.f).reshape(len(block.f), -1).all(axis=1) & np.isfinite(block.g).reshape(len(block.g), -1).all(axis=1)
    if not fine.all():
        raise InputError(f"the cost or a constraint is not finite in round {done - len(fine) + int(np.argmin(fine)) + 1} of the game")


def policy_for(name: str, problem: Problem, **given: Any) -> Any:
    """The policy of this name for the problem: what it must know is taken from the problem's constants unless it is given.

    >>> import bridle
    >>> policy_for("sinha2024", bridle.problem("halfspaces", horizon=100, dim=3)).parameters["horizon"]
    100
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem must be a Problem such as bridle.problem('fixed', horizon=100), not {validate.show(problem)}")
    known = {"horizon": problem.horizon, **problem.constants}
    for parameter in policies.parameters(name):
        wanted = parameter.required or parameter.name == "constraints"
        if wanted and parameter.name not in given and known.get(parameter.name) is not None:
            given[parameter.name] = known[parameter.name]
    if policies.entry(name).strongly_convex and np.all(np.asarray(given.get("modulus", 1.0)) == 0.0):
        raise InputError(
            f"policy {name} does not apply: the costs of problem {problem.name or '(unnamed)'} are not strongly convex (modulus 0)"
        )
    return policies.policy(name, problem.domain, **given)


def record_of(policy: Any) -> Any:
    """The record that plays, whether or not it comes from the registry."""
    return getattr(policy, "record", policy)


def domain_of(policy: Any) -> Any:
    """The policy's domain, where it tells."""
    return getattr(policy, "domain", None)


def _arrange(policy: Any, source: Any, horizon: Any, seed: Any, x1: Any) -> tuple[Any, Problem, int, tuple[int, ...], int | None]:
    """Check what was asked for, and settle the problem, the rounds, the seeds and the number of runs."""
    record = record_of(policy)
    for method in ("init", "decide", "update"):
        if not hasattr(record, method):
            raise InputError(f"policy must have a method `{method}`; {validate.show(policy)} has none")
    own = getattr(policy, "parameters", {}).get("horizon")
    own = None if own is None else np.max(own)  # a sweep plays its longest
    horizon = None if horizon is None else validate.whole("horizon", horizon)
    point = None if x1 is None else validate.array("x1", x1)
    if isinstance(source, str):
        length = horizon if horizon is not None else own
        if length is None and needs(source, "horizon"):
            raise InputError("horizon must be given: neither the policy nor the call says how many rounds to play")
        first = seed if seed is None or np.ndim(seed) == 0 else next(iter(seed), 0)
        domain = domain_of(policy)
        shape = {"domain": domain} if domain is not None and takes(source, "domain") else {}
        source = problem(source, length, 0 if first is None else first, **shape)
    if not isinstance(source, Problem):
        raise InputError(f"problem must be a Problem or a name, not {validate.show(source)}")
    rounds = _length(source, horizon, own)
    mine, theirs = domain_of(policy), source.domain
    if mine is not None and mine.dim != theirs.dim:
        raise InputError(f"policy decides in {mine.dim} dimensions, the problem in {theirs.dim}")
    given = [source.seed] if seed is None else [seed] if np.ndim(seed) == 0 else list(seed)
    seeds = tuple(validate.whole("seed", s, 0) for s in given)
    if not seeds:
        raise InputError("seed must hold at least one seed, not an empty list")
    sweep = policy.runs if hasattr(policy, "runs") else _runs_of(record, theirs, source.constants.get("constraints", 1))
    wide = len(point) if point is not None and point.ndim == 2 else None
    several = len(seeds) if seed is not None and np.ndim(seed) == 1 else None
    sizes = {size for size in (sweep, wide, several) if size is not None}
    if len(sizes) > 1:
        raise InputError(f"the sweep's parameters ({sweep}), seeds ({several}) and starting points ({wide}) must be equally many")
    runs = sizes.pop() if sizes else None
    if seeds[0] != source.seed:
        source = source.with_seed(seeds[0])
    k = getattr(record, "each", None)
    if k is not None and source.constants.get("constraints", len(k)) != len(k):
        raise InputError(f"constraints: the policy was made for {len(k)}, the problem reveals {source.constants['constraints']}")
    return record, source, rounds, seeds, runs


def _length(source: Problem, horizon: Any, own: Any) -> int:
    """How many rounds to play: as many as asked for, else the problem's, else the policy's own."""
    length = horizon if horizon is not None else source.horizon if source.horizon is not None else own
    if length is None:
        raise InputError("horizon must be given: neither the problem nor the policy says how many rounds to play")
    rounds = validate.whole("horizon", length)
    recorded = source.adversary.rounds if hasattr(source.adversary, "replay") else rounds
    most = min(source.constants.get("rounds", rounds), recorded)
    if rounds > most:
        raise InputError(f"horizon must be at most {most}, the rounds that problem {source.name or '(unnamed)'} has, not {rounds}")
    return rounds


def _runs_of(record: Any, domain: Any, k: int) -> int | None:
    """How many runs a record stands for that does not come from the registry: seen from what one update makes of its state."""
    x, d = domain.center(), domain.dim
    k = len(getattr(record, "each", np.zeros(k)))
    try:
        after = record.decide(record.update(record.init(x), Feedback(x, 1.0, np.ones(d), np.ones(k), np.ones((k, d)))))
    except (TypeError, ValueError, AttributeError):
        return None  # it wants something else of a feedback; the game itself will tell
    return len(after) if np.ndim(after) == 2 else None


def _start(x1: Any, domain: Any, runs: int | None) -> np.ndarray:
    point = validate.array("x1", x1)
    if point.shape not in ((domain.dim,), (runs, domain.dim)):
        raise InputError(f"x1 must have shape ({domain.dim},), not {point.shape}")
    if not domain.contains(point):
        raise InputError(f"x1 must lie in the domain; {validate.show(point)} does not")
    return point


def _notes(policy: Any, record: Any, state: Any, source: Problem, rounds: int) -> list[str]:
    """What a user should know about a finished game."""
    notes = []
    mine = domain_of(policy)
    if mine is not None and not records.same(mine, source.domain):
        notes.append("the policy's domain is not the problem's: decisions keep to the former, bounds and regret are about the latter")
    if isinstance(policy, policies.Configured):
        notes += policy.outside(source.constants)
    own = getattr(policy, "parameters", {}).get("horizon")
    if own is not None and np.any(rounds > np.asarray(own)):
        notes.append(f"the policy was made for {np.min(own):g} rounds and played {rounds}: past its horizon its bounds do not hold")
    alarm = record.alarm(state) if hasattr(record, "alarm") else ""
    return [*notes, *([alarm] if alarm else []), *_misled(policy, source)]


def _misled(policy: Any, source: Problem) -> list[str]:
    """Where the policy was told something that is not so."""
    told, known, notes = getattr(policy, "parameters", {}), source.constants, []
    G, alpha = known.get("lipschitz"), known.get("modulus")
    if G is not None and np.any(np.asarray(told.get("lipschitz", G)) < G * (1.0 - 1e-9)):
        notes.append(f"the policy was told a Lipschitz constant of {np.min(told['lipschitz']):g}; the problem's is {G:g}")
    if alpha is not None and np.any(np.asarray(told.get("modulus", alpha)) > alpha * (1.0 + 1e-9)):
        notes.append(f"the policy was told that costs have modulus {np.max(told['modulus']):g}; the problem's have {alpha:g}")
    return notes


def _advance(game: Trace, engine: str, collect: str) -> Iterator[tuple[int, Any, Block]]:
    """Play a game from its start, block by block: the rounds done, the policy's state, and the block."""
    run_block = load_engine(engine)
    if game.runs is not None and engine in ALONE and (alone := _apart(game.policy, game.runs)):
        yield from _side_by_side(game, engine, alone, collect)
        return
    record, source, runs = record_of(game.policy), game.problem, game.runs
    adversaries = _opponents(game)
    x1 = game.x1 if runs is None else np.broadcast_to(game.x1, (runs, game.x1.shape[-1])).copy()
    players = [player(a) for a in adversaries]
    state, foe, adversary = record.init(x1), players[0].init(), players[0]
    if runs is not None:
        foe = records.spread(foe, runs)
        if len(players) > 1:
            # One adversary for all runs: its own arrays get the run axis, as the draws do below.
            adversary = records.widen(records.stack([records.transform(np.asarray, a) for a in players]), 1)
    many, marks, k = _at_once(engine, source), curve_rounds(game.rounds), 0
    if engine in SUMMING:
        k = len(_first_round(source, game.x1 if game.x1.ndim == 1 else game.x1[0]).reveal(source.domain.center()).g)
        many = _blocks_at_once(game, SUMMING[engine], collect, k)
    if collect == "sums":
        record = Summing(record, np.zeros(k))
        state = record.init(x1)
    done, length = 0, many * block_length(source.domain.dim)
    for draws in _dealt(game, adversaries, many):
        size = min(length, game.rounds - done)
        dealt = draws[0] if len(draws) == 1 else records.widen(records.stack(draws, axis=1), 2)
        wanted = np.union1d(marks[(marks > done) & (marks <= done + size)] - done, size) if collect == "sums" else None
        try:
            state, foe, block = run_block(
                record, adversary, state, foe, dealt, size, collect, *([] if wanted is None else [wanted.astype(int)])
            )
        except OverflowError as wrong:
            raise InputError(f"a number is too large for a float between rounds {done + 1} and {done + size}: {wrong}") from None
        if wanted is not None:
            yield done + size, state.policy, block._replace(sums=_brought_home(block.sums, done + wanted, runs))
        elif runs is not None:
            yield done + size, state, _across(block, size, runs, source.domain.dim)
        else:
            yield done + size, state, block
        done += size


def _opponents(game: Trace) -> list[Any]:
    """The adversary of every seed."""
    source = game.problem
    return [source.with_seed(seed).adversary if seed != source.seed else source.adversary for seed in game.seeds]


def _dealt(game: Trace, adversaries: list[Any], many: int) -> Iterator[tuple[Any, ...]]:
    """What each of them is dealt, so many blocks at a time."""
    dim = game.problem.domain.dim
    return zip(*(deal_blocks(a, seed, game.rounds, dim, many) for a, seed in zip(adversaries, game.seeds, strict=True)), strict=True)


def _at_once(engine: str, source: Problem) -> int:
    """How many blocks an engine is handed at a time: where a round takes less than a microsecond, what is done for every block tells."""
    dim, functions = source.domain.dim, 1 + int(source.constants.get("constraints", 1))
    return max(1, FEW // (dim * functions * block_length(dim))) if engine in ALONE else 1


def _blocks_at_once(game: Trace, room: int, collect: str, k: int) -> int:
    """How many blocks fit into so many bytes, with what is kept of them."""
    d, runs = int(game.problem.domain.dim), game.runs or 1
    kept = 0 if collect == "sums" else runs * (1 + k + (d if collect == "x" else 3 * d if collect == "round" else 0))
    return max(1, room // (8 * block_length(d) * ((k + 2) * d * len(game.seeds) + kept)))


def _brought_home(sums: Totals, rounds: np.ndarray, runs: int | None) -> Totals:
    """The totals that an engine kept at these rounds, as `accumulate` gives them."""
    short = np.asarray(sums.rounds).reshape(len(rounds), -1).min(axis=1) < rounds
    if short.any():
        first = int(np.asarray(sums.rounds)[-1].min())
        raise InputError(f"the cost or a constraint is not finite in round {first + 1} of the game")
    home = sums if runs is None else sums._replace(cost=sums.cost[..., 0], worst=sums.worst[..., 0])
    return home._replace(rounds=rounds.astype(float))


def _apart(policy: Any, runs: int) -> list[Any]:
    """The records of the runs, each as that of a single one; none where they cannot be told apart."""
    if isinstance(policy, policies.Configured):
        return [policy.record if policy.runs is None else policy.run(i).record for i in range(runs)]
    return []


def _side_by_side(game: Trace, engine: str, alone: list[Any], collect: str) -> Iterator[tuple[int, Any, Block]]:
    """Several runs, each a game of its own, in as many threads as there are cores: for engines that let go of Python's lock."""
    run_block, source, runs, adversaries = load_engine(engine), game.problem, len(alone), _opponents(game)
    x1 = np.broadcast_to(game.x1, (runs, game.x1.shape[-1]))
    players = [player(adversary) for adversary in adversaries]
    at = [(alone[i].init(x1[i].copy()), players[i % len(players)].init()) for i in range(runs)]
    many = max(1, min(_at_once(engine, source), FEW // (4 * runs * block_length(source.domain.dim))))
    done, length = 0, many * block_length(source.domain.dim)
    with ThreadPoolExecutor(min(runs, cores())) as pool:
        for draws in _dealt(game, adversaries, many):
            size = min(length, game.rounds - done)

            def one(i: int, at: Any = at, draws: Any = draws, size: int = size) -> tuple[Any, Any, Block]:
                return run_block(alone[i], players[i % len(players)], *at[i], draws[i % len(draws)], size, collect)

            # The first run compiles; the others then find what it made.
            made = [one(0), *pool.map(one, range(1, runs))]
            at = [(state, foe) for state, foe, _ in made]
            done += size
            blocks = [block for _, _, block in made]
            f, g = (np.stack(parts, axis=1) for parts in zip(*((block.f, block.g) for block in blocks), strict=True))
            x = np.stack([block.x for block in blocks], axis=1) if collect == "x" else None
            rounds = [records.widen(records.stack([block.round[0] for block in blocks], axis=1), 2)] if collect == "round" else None
            yield done, records.widen(records.stack([state for state, _ in at]), 1), Block(f, g, x, rounds)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _across(block: Block, size: int, runs: int, dim: int) -> Block:
    """The block of several runs with every axis spelled out, also where all runs saw the same number."""
    f = np.broadcast_to(block.f, (size, runs, 1))[..., 0]
    g = np.broadcast_to(block.g if block.g.ndim == 3 else block.g[:, None], (size, runs, block.g.shape[-1]))
    return Block(f, g, block.x, block.round)


def _oblivious(adversary: Any, seed: int, rounds: int, domain: Any) -> Iterator[Round]:
    """The rounds of an adversary that does not look at decisions, without playing."""
    foe, x, done, length = adversary.init(), domain.center(), 0, block_length(domain.dim)
    for dealt in deal_blocks(adversary, seed, rounds, domain.dim):
        size = min(length, rounds - done)
        done += size
        if isinstance(dealt, Round):
            yield dealt
            continue
        answers = []
        for draw in records.unstack(dealt, size):
            foe, chosen = adversary.answer(foe, x) if draw is None else adversary.answer(foe, x, draw)
            answers.append(chosen)
        yield from gather(answers)


def gather(rounds: list[Round]) -> list[Round]:
    """Rounds as one sequence where they can be stacked, else as they are."""
    if all(getattr(node, "compiled", True) for part in rounds[0] for node in records.nodes(part)):
        return [records.stack(rounds)]
    return rounds


def load_engine(name: str) -> Callable[..., tuple[Any, Any, Block]]:
    """The function that advances a block of rounds. Engines are found by name, so that the game depends on no compiler."""
    try:
        module = importlib.import_module(f"bridle.engines.{name}")
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("bridle"):
            raise
        raise Unavailable(f"engine {name!r} needs the package {missing.name}: pip install 'bridle[{ENGINES[name]}]'") from None
    return module.advance  # type: ignore[no-any-return]


def check_compiled(*parts: Array) -> None:
    """Refuse what no compiler can run: records that call a solver or Python functions."""
    for part in parts:
        for node in records.nodes(part):
            if not getattr(node, "compiled", True):
                raise InputError(f"{type(node).__name__} runs on engine 'python' only: it calls a solver or a Python function every round")
        for name, leaf in records.leaves(part).items():
            if not isinstance(leaf, (int, float, np.ndarray, np.generic)):
                raise InputError(f"a compiled engine needs records of numbers: {name or 'a part'} is a {type(leaf).__name__}")
