"""The game: a policy against an adversary, round by round or over a whole horizon.

`turn` is one round, and the only place where the two sides meet; every engine repeats it. `play` deals the adversary's draws in blocks,
lets an engine advance block by block, and keeps running totals, so memory does not grow with the horizon unless more is asked for.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bridle import policies, records, validate
from bridle.core import BridleWarning, DoesNotApply, InputError, Round
from bridle.engines.round import ENGINES, Block, block_length, check_compiled, gather
from bridle.functions import AFFINE
from bridle.game.schedule import MEMORY, Match, Opening, bytes_of, first_round, one_of, tried
from bridle.game.totals import Totals, accumulate, curve_rounds, empty
from bridle.policies.registry import domain_of, record_of
from bridle.problems import Problem, needs, problem, takes
from bridle.problems.dealing import deal_blocks

KEEP = ("totals", "rounds", "decisions")

_NOTHING = empty((), 0)


@dataclass(frozen=True)
class Trace:
    """What happened in a game: totals, the same at log-spaced rounds, and the recipe to replay the stream.

    `seconds` is the time it took, `pace` the microseconds a round once running (a first block, in which an engine may compile, is left out
    where there are others). `costs`, `values` (of the constraints) and `decisions` are there, round by round, where `play` was asked to
    keep them. `groups` is how many groups of runs were played one after the other, so as not to take more than `memory` bytes.
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
    memory: int = MEMORY
    groups: int = 1

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
        at, group = run or 0, 0
        groups = self.match().split(self.groups)  # as they were played, so that the adversary meets the very same decisions
        while at >= (groups[group].runs or 1):
            at, group = at - (groups[group].runs or 1), group + 1
        for _, _, block in groups[group].advance("round", self.memory):
            if self.runs is None:
                yield from block.round
                continue
            alone = first_round(source, self.x1 if self.x1.ndim == 1 else self.x1[run or 0]).round
            for part in block.round:
                check_compiled(part)  # which run's is which cannot be told of a callable
                # What the adversary tells apart by runs has an axis more than in a single run, and a number of a run is one alone.
                yield records.transform(lambda leaf, one: _of_run(leaf, np.shape(one), at), part, alone)

    def match(self, opening: Opening | None = None) -> Match:
        """The two sides of the game, at its start."""
        record = record_of(self.policy)
        alone = one_of(self.policy, record, self.runs, self.problem)
        opening = opening or first_round(self.problem, self.x1 if self.x1.ndim == 1 else self.x1[0])
        return Match(record, alone, self.problem, opening, self.seeds, self.x1, self.runs, self.rounds, self.engine)

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
    memory: int | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trace:
    """Play the policy on the problem and give the trace.

    A list of seeds, or a policy made with lists of parameters, plays that many games in one call. `keep` is "totals" (memory does not
    grow with the horizon), "rounds" (also every round's cost and constraint values) or "decisions" (also every decision). `memory` is
    about how much the game may take, in bytes or as in "500MB" (1 GiB if nothing is said, or what one run needs): where all runs together
    would take more, they are played in groups, one after the other, with the same result.

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
    opening = first_round(source, start if start.ndim == 1 else start[0])
    source = _opened(source, opening.round)
    game = Trace(policy, source, rounds, seeds, runs, engine, start)
    match = game.match(opening)
    collect = "x" if keep == "decisions" else "sums" if keep == "totals" and match.sums else ""
    limit = max(MEMORY, match.least(collect)) if memory is None else bytes_of(memory)  # what nobody said refuses nothing
    kept = 0 if memory is None or keep == "totals" else _check_room(match, keep, limit)
    groups = match.groups(limit, collect, kept)
    limit -= kept
    _compile(groups[0], collect, limit)
    parts = []
    for n, group in enumerate(groups):
        tell = None if progress is None else lambda done, n=n: progress((n * rounds + done) // len(groups), rounds)
        parts.append(_play(group, collect, keep, limit, tell))
    played = parts[0] if len(parts) == 1 else _side_by_side(parts, match.alone.init(match.start))
    notes = _notes(policy, record, played.state, source, rounds)
    for note in notes:
        warnings.warn(note, BridleWarning, stacklevel=2)
    return replace(game, **played._asdict(), warnings=tuple(notes), memory=limit + kept, groups=len(groups))


def _compile(match: Match, collect: str, memory: int) -> None:
    """Play one round outside the clock, in which an engine may compile, where there will be no second block to time and none was before."""
    if match.engine == "python" or match.rounds > match.blocks_at_once(memory, collect) * block_length(match.problem.domain.dim):
        return
    parts = (match.record, match.problem.adversary, match.opening.round)
    kind = (
        match.engine, collect, match.runs, len(match.seeds), match.x1.shape,
        *(type(node) for part in parts for node in records.nodes(part)),
        *(np.shape(leaf) for part in parts for leaf in records.leaves(part).values()),
    )  # fmt: skip
    if kind not in _PLAYED:
        next(iter(replace(match, rounds=1).advance(collect, memory)))
        _PLAYED.add(kind)


_PLAYED: set[Any] = set()


class Played(NamedTuple):
    """What comes of playing some runs: the fields of a trace."""

    totals: Totals
    curve: Totals
    state: Any
    seconds: float
    pace: float
    costs: np.ndarray | None
    values: np.ndarray | None
    decisions: np.ndarray | None


def _play(match: Match, collect: str, keep: str, memory: int, tell: Callable[[int], None] | None) -> Played:
    """Play and add up."""
    shape, rounds = () if match.runs is None else (match.runs,), match.rounds
    marks = curve_rounds(rounds)
    totals, state = empty(shape, 0), None
    curve: list[Totals] = []
    kept: list[Block] = []
    clock = [(0, time.perf_counter())]
    for done, after, block in match.advance(collect, memory):
        _check_finite(block, done)
        running = block.sums or accumulate(totals if curve else empty(shape, block.g.shape[-1]), block.f, block.g)
        passed = marks[(marks > clock[-1][0]) & (marks <= done)]
        hit = np.searchsorted(running.rounds, passed)  # where they are: all of them are there
        curve.append(records.transform(lambda leaf, hit=hit: leaf[hit], running))
        totals, state = records.transform(lambda leaf: leaf[-1].copy(), running), after  # a view would hold the whole block
        if keep != "totals":
            kept.append(block)
        clock.append((done, time.perf_counter()))
        if tell is not None:
            tell(done)
    first = clock[1] if len(clock) > 2 else clock[0]  # an engine may compile in the first block
    return Played(
        totals,
        records.join(curve),
        state,
        clock[-1][1] - clock[0][1],
        1e6 * (clock[-1][1] - first[1]) / (rounds - first[0]),
        np.concatenate([block.f for block in kept]) if kept else None,
        np.concatenate([block.g for block in kept]) if kept else None,
        np.concatenate([block.x for block in kept]) if keep == "decisions" else None,
    )


def _side_by_side(parts: list[Played], begun: Any) -> Played:
    """Groups of runs as all of them; `begun` is the state of a single run, which tells what runs have of their own."""

    def runs(axis: int, *fields: Any) -> Any:
        return records.transform(lambda *leaves: np.concatenate(leaves, axis=axis) if np.ndim(leaves[0]) > axis else leaves[0], *fields)

    def states(one: Any, *leaves: Any) -> Any:
        return leaves[0] if np.shape(leaves[0]) == np.shape(one) else np.concatenate(leaves)

    totals, curve, state, seconds, pace, *kept = zip(*parts, strict=True)
    after = records.transform(states, begun, *state)
    return Played(runs(0, *totals), runs(1, *curve), after, sum(seconds), sum(pace), *(runs(1, *each) for each in kept))


def _of_run(leaf: np.ndarray, shape: tuple[int, ...], run: int) -> np.ndarray:
    """What is one run's of the rounds of several; `shape` is that of a round of a single run."""
    return leaf if leaf.shape[1:] == shape else leaf[:, run].reshape(len(leaf), *shape)


def _check_room(match: Match, keep: str, memory: int) -> int:
    """How many bytes are kept of all rounds, where a limit leaves room for them."""
    each = 1 + match.sizes.constraints + (len(match.start) if keep == "decisions" else 0)
    needed = 2 * 8 * match.rounds * (match.runs or 1) * each  # as they come, and as one
    if needed >= memory:
        raise InputError(
            f"memory must be more than {needed} bytes to keep {keep} of this game, not {memory}; keep='totals' needs no more with time"
        )
    return needed


def unplayed(problem: Problem) -> Trace:
    """The trace of a game that nobody has played: enough to ask about a stream that does not depend on the decisions."""
    if not getattr(problem.adversary, "oblivious", False):
        raise InputError(f"problem {problem.name or '(unnamed)'} has no stream of its own: its adversary adapts to the decisions")
    start, rounds = problem.domain.center(), _length(problem, None, None)
    curve = _NOTHING._replace(rounds=curve_rounds(rounds))
    return Trace(None, _opened(problem, first_round(problem, start).round), rounds, (problem.seed,), None, "python", start, curve=curve)


def _opened(source: Problem, opening: Round) -> Problem:
    """The problem with what its first round says of its functions, which goes before what the problem claims."""
    convex = opening.convex and source.constants.get("convex", True)
    affine = all(isinstance(constraint, AFFINE) for constraint in opening.constraints)
    return replace(source, constants={**source.constants, "convex": convex, "affine": affine})


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
        raise DoesNotApply(name, "the costs of {problem} are not strongly convex (modulus 0)", problem.name)
    return policies.policy(name, problem.domain, **given)


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
    after = tried(record, domain, k)
    return len(after) if after is not None and np.ndim(after) == 2 else None


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
