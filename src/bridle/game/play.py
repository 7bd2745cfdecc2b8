"""The game: a policy against an adversary over a whole horizon.

The round itself is `bridle.engines.round.turn`, which every engine repeats. `play` deals the adversary's draws in blocks, lets an engine
advance block by block, and keeps running totals, so memory does not grow with the horizon unless more is asked for.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike

from bridle import policies, problems, records, showing, validate
from bridle.core import Adversary, BridleWarning, Constants, DoesNotApply, Domain, InputError, Policy, Round, S, alarm_of
from bridle.engines import AUTO, ENGINES, CannotCompile, check_name, fastest
from bridle.engines.round import (
    BlockRounds,
    BlockTotals,
    BlockValues,
    Collect,
    F,
    answer,
    block_length,
    check_compiled,
    gather,
)
from bridle.functions import AFFINE_FUNCTIONS
from bridle.game.schedule import DEFAULT_MEMORY, Schedule, bytes_of, schedule, trial_decision
from bridle.game.totals import Totals, accumulate, curve_rounds, empty, moves
from bridle.ops import Array, Scalar
from bridle.policies.common import exp_concavity_of
from bridle.policies.registry import domain_of, playing_record
from bridle.policies.round_maps import record_of
from bridle.problems import Problem
from bridle.problems.dealing import deal_blocks, first_round
from bridle.records import R
from bridle.showing.marks import QUANTITIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEEP = ("totals", "movement", "rounds", "decisions")

_NOTHING = empty((), 0)


@dataclass(frozen=True)
class Trace:
    """What happened in a game: totals at the end and at log-spaced rounds, and the recipe to play the stream again.

    Parameters
    ----------
    policy : Policy
        What played.
    problem : Problem
        What it was played on.
    rounds : int
        How many rounds were played.
    seeds : tuple of int
        The seed of each run's stream.
    runs : int or None
        How many runs were played side by side; None for one.
    engine : str
        What computed it: python, jax or compiled.
    x1 : array
        The first decision.
    totals : Totals
        Cost, violations and their kin, summed over all rounds; of a problem with a price of moving, that is in the cost.
    curve : Totals
        The same sums after log-spaced rounds, along the first axis.
    state : object
        The policy's last state.
    seconds : float
        How long it took.
    pace : float
        Microseconds a round once running. A first block, in which an engine may compile, is left out where there are others.
    warnings : tuple of str
        What a user should know of the game.
    costs : array of shape (T,), optional
        The cost of every round, where `play` was asked to keep it.
    values : array of shape (T, k), optional
        The constraints' values in every round, where `play` was asked to keep them; ``(T, n, k)`` for a policy that tries n points a round.
    decisions : array of shape (T, d), optional
        Every decision, where `play` was asked to keep them; the average of its points for a policy that tries several.
    memory : int
        About how many bytes the game was allowed.
    groups : int
        In how many groups the runs were played, one after the other, so as not to take more memory.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "fixed", horizon=50)
    >>> trace.rounds, trace.runs, trace.warnings
    (50, None, ())
    """

    policy: Any
    problem: Problem
    rounds: int
    seeds: tuple[int, ...]
    runs: int | None
    engine: str
    x1: Array
    totals: Totals = _NOTHING
    curve: Totals = _NOTHING
    state: Any = None
    seconds: float = 0.0
    pace: float = 0.0
    warnings: tuple[str, ...] = ()
    costs: Array | None = None
    values: Array | None = None
    decisions: Array | None = None
    memory: int = DEFAULT_MEMORY
    groups: int = 1

    def __repr__(self) -> str:
        names = f"{getattr(self.policy, 'name', type(self.policy).__name__)} on {self.problem.name or 'a problem without a name'}"
        many = "" if self.runs is None else f", {showing.count(self.runs, 'run')}"
        seeds = showing.short(list(self.seeds)).strip("[]")
        what = f"Trace: {names}, {showing.count(self.rounds, 'round')}{many}, seed {seeds} ({self.engine})"
        if not self.totals.hard.shape[-1]:
            return f"{what}; not played"
        totals = f"cost {showing.spread(self.totals.cost)}, CCV {showing.spread(self.totals.hard.max(axis=-1))}"
        best = self.problem.constants.get("optimal_cost") if self.shared_stream and self.rounds == self.problem.horizon else None
        regret = "" if best is None else f", regret {showing.spread(self.totals.cost - best)}"
        return f"{what}\n  {totals}{regret}; {showing.number(self.pace)} us a round"

    def plot(self, what: str | Sequence[str] = QUANTITIES, *, ax: object = None, width: str | None = None) -> Figure:
        """Regret and CCV against the round, with the bounds that are proved, as a figure.

        A few runs have a line each; of more than six the median is drawn, with a band from the 10 % to the 90 % quantile. Bounds are drawn
        for a single run.

        Returns the figure. It is not shown, pyplot does not know it, and its ``savefig`` writes PDF with TrueType
        fonts.

        Parameters
        ----------
        what : {"regret", "ccv"} or a list of them, default ("regret", "ccv")
            Which of the two is drawn; each has axes of its own.
        ax : axes of matplotlib, or a list of them, optional
            Draw on these, one for each chart. Default: on a new figure.
        width : {"column", "page"}, optional
            As wide as the column (3.35 inches) or the page (7 inches) of a journal. Default: for slides and screens.

        Examples
        --------
        >>> import bridle
        >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "fixed", horizon=100)
        >>> [panel.get_title(loc="left") for panel in trace.plot().axes]
        ['Regret against t', 'CCV against t']
        """
        drawn: Figure = showing.later("bridle.game.pictures").plot_trace(self, what, ax, width)
        return drawn

    def _repr_html_(self) -> str:
        return str(showing.later("bridle.game.pictures").trace_card(self))

    def blocks(self, run: int | None = None) -> Iterator[Round]:
        """The rounds of the stream again, block by block.

        Returns rounds with a leading time axis. Rounds made of Python callables cannot be stacked, and come one by
        one.

        Parameters
        ----------
        run : int, optional
            Which of several runs, counted from 0.
        """
        seed = self.seeds[run or 0] if len(self.seeds) > 1 else self.seeds[0]
        source = self.problem.with_seed(seed) if seed != self.problem.seed else self.problem
        if getattr(source.adversary, "oblivious", False):
            yield from _rounds_unplayed(source.adversary, seed, self.rounds, source.domain)
            return
        at, group = run or 0, 0
        groups = self.schedule().split(self.groups)  # as they were played, so that the adversary meets the very same decisions
        while at >= (groups[group].runs or 1):
            at, group = at - (groups[group].runs or 1), group + 1
        for _, _, block in groups[group].advance(Collect.ROUNDS, self.memory):
            rounds = cast(BlockRounds, block).rounds
            if self.runs is None:
                yield from rounds
                continue
            alone = first_round(source.adversary, source.seed, self.x1 if self.x1.ndim == 1 else self.x1[run or 0]).round
            for part in rounds:
                check_compiled(part)  # which run's is which cannot be told of a callable
                # What the adversary tells apart by runs has an axis more than in a single run, and a number of a run is one alone.
                yield records.transform(lambda leaf, one: _of_run(leaf, np.shape(one), at), part, alone)

    def run(self, run: int) -> Trace:
        """One of several runs, as a game of its own; its time is its share of the time of all.

        Parameters
        ----------
        run : int
            Which, counted from 0. Rounds must not depend on the decisions: those of an adversary that adapts come with all runs.

        Examples
        --------
        >>> import bridle
        >>> problem = bridle.problem("halfspaces", horizon=50, dim=2)
        >>> both = bridle.play(bridle.policy("anytime", problem.domain), problem, seed=[4, 7])
        >>> alone = both.run(1)
        >>> alone.seeds, alone.runs, bool(alone.totals.cost == both.totals.cost[1])
        ((7,), None, True)
        """
        if self.runs is None or validate.whole("run", run, 0) >= self.runs:
            raise InputError(f"run must be one of the {self.runs or 0} runs, counted from 0, not {validate.show(run)}")
        if not getattr(self.problem.adversary, "oblivious", False):
            raise InputError(
                f"problem {self.problem.name or '(unnamed)'} has no stream for each run: its adversary adapts to the decisions"
            )
        several = getattr(self.policy, "runs", None) is not None
        if self._first_state is None or (not several and _runs_of(record_of(self.policy), self.problem) is not None):
            raise InputError("the policy's parameters of one run cannot be told from the others': make it with bridle.policy")
        policy = self.policy.run(run) if several else self.policy
        seed = self.seeds[run] if len(self.seeds) > 1 else self.seeds[0]
        source = self.problem
        if seed != source.seed:
            kinds = cast(Constants, {name: source.constants[name] for name in ("convex", "affine")})
            drawn = source.with_seed(seed)
            source = replace(drawn, constants={**drawn.constants, **kinds})

        def own(part: R, before: int = 0) -> R:
            """This run of a record or an array whose runs axis comes after so many others."""
            return records.transform(lambda leaf: leaf[(slice(None),) * before + (run,)] if np.ndim(leaf) > before else leaf, part)

        state = records.transform(lambda leaf, one: _state_of_run(leaf, one, run), self.state, self._first_state)
        return replace(
            self, policy=policy, problem=source, seeds=(seed,), runs=None, x1=self.x1 if self.x1.ndim == 1 else self.x1[run],
            totals=own(self.totals), curve=own(self.curve, 1), state=state, seconds=self.seconds / self.runs, pace=self.pace / self.runs,
            warnings=tuple(_notes(policy, record_of(policy), state, source, self.rounds)),
            costs=own(self.costs, 1), values=own(self.values, 1), decisions=own(self.decisions, 1), groups=1,
        )  # fmt: skip

    @cached_property
    def _first_state(self) -> object:
        """The policy's state at the start of the first run; None where the runs cannot be told apart."""
        game = self.schedule()
        return None if game.alone is None else game.alone.init(game.start)

    def schedule(self) -> Schedule:
        """What was played, from its start."""
        return schedule(self.policy, self.problem, self.rounds, self.seeds, self.runs, self.engine, self.x1)

    @property
    def shared_stream(self) -> bool:
        """Whether every run saw the same rounds."""
        return self.runs is None or (len(self.seeds) == 1 and getattr(self.problem.adversary, "oblivious", False))


@validate.undisturbed
def play(
    policy: Policy[S],
    problem: Problem | str,
    *,
    horizon: int | None = None,
    seed: int | Sequence[int] | None = None,
    engine: str = AUTO,
    x1: ArrayLike | None = None,
    keep: str = "totals",
    memory: int | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trace:
    """Play a policy on a problem and return the trace.

    Returns what happened; `bridle.regret`, `bridle.ccv` and their kin read it.

    Parameters
    ----------
    policy : Policy
        What plays: from `bridle.policy` or `bridle.policy_for`, or an object with ``init``, ``decide`` and ``update``. One made with lists
        of
        parameters plays as many games in one call.
    problem : Problem or str
        What it is played on: a problem, or the name of a registered one.
    horizon : int, optional
        How many rounds, 1 or above. Default: the problem's, else the policy's.
    seed : int or sequence of int, optional
        The seed of the stream, 0 or above; a list plays one game for each. Default: the problem's.
    engine : {"auto", "python", "jax", "compiled"}, default "auto"
        What computes it. "auto" is "compiled" from 20,000 rounds on, where the extra ``compiled`` is installed, and policy
        and problem are bridle's own and call no solver; else it is "python".
    x1 : array_like of shape (d,), optional
        The first decision. Default: the domain's centre.
    keep : {"totals", "movement", "rounds", "decisions"}, default "totals"
        What is kept: totals alone (memory does not grow with the horizon); also how far decisions moved; or every round's cost and
        constraint values; or these and every decision.
    memory : int or str, optional
        About how much the game may take, in bytes or as in "500MB". Default: 1 GiB, or what one run needs. Where all runs together would
        take
        more, they are played in groups, with the same result.
    progress : callable, optional
        Is called with how many rounds are done, and of how many.

    Examples
    --------
    >>> import bridle
    >>> policy = bridle.policy("sinha2024", bridle.Ball(5), horizon=200, lipschitz=1.0)
    >>> trace = play(policy, "halfspaces")
    >>> trace.rounds, bool(bridle.ccv(trace) <= policy.bound(trace.problem.constants, 200).ccv)
    (200, True)
    """
    record, source, rounds, seeds, runs = arrange(policy, problem, horizon, seed, x1)
    engine = check_name(engine, (AUTO, *ENGINES))
    validate.one_of("keep", keep, KEEP)
    start = start_points(x1, source.domain, runs)
    first = first_round(source.adversary, source.seed, start if start.ndim == 1 else start[0])
    source = _with_kinds(source, first.round)
    game = schedule(policy, source, rounds, seeds, runs, engine, start, first)
    watched = keep in ("movement", "decisions") or "switching" in source.constants
    if engine == AUTO:
        game = _on_the_fastest(game, watched, keep)
        engine = game.engine
    collect = _collected(game, watched, keep)
    limit = max(DEFAULT_MEMORY, game.least_bytes(collect)) if memory is None else bytes_of(memory)  # what nobody said refuses nothing
    reserved = 0 if memory is None or keep in ("totals", "movement") else _bytes_to_keep(game, keep, limit)
    groups = game.groups_within(limit, collect, reserved)
    _compile(groups[0], collect, limit - reserved)
    results = []
    for n, group in enumerate(groups):
        tell = None if progress is None else lambda done, n=n: progress((n * rounds + done) // len(groups), rounds)
        results.append(_play_group(group, collect, keep, limit - reserved, tell))
    result = results[0] if len(results) == 1 else _join_groups(results, game)
    notes = _notes(policy, record, result.state, source, rounds)
    for note in notes:
        warnings.warn(note, BridleWarning, stacklevel=2)
    return Trace(
        policy, source, rounds, seeds, runs, engine, start, **result._asdict(), warnings=tuple(notes), memory=limit, groups=len(groups)
    )


def unplayed(problem: Problem) -> Trace:
    """The trace of a game that nobody has played: enough to ask about a stream that does not depend on the decisions."""
    if not getattr(problem.adversary, "oblivious", False):
        raise InputError(f"problem {problem.name or '(unnamed)'} has no stream of its own: its adversary adapts to the decisions")
    start, rounds = problem.domain.center(), count_rounds(problem, None, None)
    curve = _NOTHING._replace(rounds=curve_rounds(rounds))
    source = _with_kinds(problem, first_round(problem.adversary, problem.seed, start).round)
    return Trace(None, source, rounds, (problem.seed,), None, "python", start, curve=curve)


@validate.undisturbed
def policy_for(name: str, problem: Problem, **parameters: object) -> policies.Configured:
    """The policy of this name for a problem: what it must know is taken from the problem's constants.

    Parameters
    ----------
    name : str
        A name that `bridle policies` lists.
    problem : Problem
        Its constants say what the policy is not told here: horizon, lipschitz, modulus, bound; its seed is that of a policy that draws.
    **parameters : object
        Parameters of the policy; they go before the problem's constants. ``bridle policies NAME`` lists them with meaning, unit and range.

    Examples
    --------
    >>> import bridle
    >>> policy_for("sinha2024", bridle.problem("halfspaces", horizon=100, dim=3)).parameters["horizon"]
    100
    """
    if not isinstance(problem, Problem):
        raise validate.refused("problem must be a Problem such as bridle.problem('fixed', horizon=100)", problem)
    facts, item = (
        {"horizon": problem.horizon, "seed": problem.seed, "exp_concavity": exp_concavity_of(problem.constants), **problem.constants},
        policies.entry(name),
    )
    needed = (
        "constraints",
        "safe",
        *(["seed"] * item.with_settings(parameters).randomised),
        *(need for need in item.with_settings(parameters).needs if need not in item.needs),
    )
    for parameter in policies.parameters(name):
        wanted = parameter.required or parameter.name in needed
        if wanted and parameter.name not in parameters and facts.get(parameter.name) is not None:
            parameters[parameter.name] = facts[parameter.name]
    if item.strongly_convex and np.all(np.asarray(parameters.get("modulus", 1.0)) == 0.0):
        raise DoesNotApply(name, "the costs of {problem} are not strongly convex (modulus 0)", problem.name)
    return policies.policy(name, problem.domain, **parameters)


def _collected(game: Schedule, watched: bool, keep: str) -> Collect:
    """What the engine returns of every round."""
    return Collect.DECISIONS if watched else Collect.TOTALS if keep == "totals" and game.engine_sums else Collect.VALUES


def _on_the_fastest(game: Schedule, watched: bool, keep: str) -> Schedule:
    """The game on the engine that "auto" stands for."""
    alike = game.runs is None or game.alone is not None
    name = fastest(game.rounds, game.record, game.problem.adversary) if alike else "python"
    chosen = replace(game, engine=name)
    try:
        _compile(chosen, _collected(chosen, watched, keep), DEFAULT_MEMORY, always=True)
    except CannotCompile:
        return replace(game, engine="python")
    return chosen


def _compile(game: Schedule, collect: Collect, memory: int, always: bool = False) -> None:
    """Play one round outside the clock, in which an engine may compile, where there will be no second block to time and none was before."""
    if game.engine == "python":
        return
    if not always and game.rounds > game.blocks_at_once(memory, collect) * block_length(game.problem.domain.dim):
        return
    parts = (game.record, game.problem.adversary, game.first.round)
    kind = (
        game.engine, collect, game.runs, len(game.seeds), game.x1.shape,
        *(type(node) for part in parts for node in records.nodes(part)),
        *(np.shape(leaf) for part in parts for leaf in records.leaves(part).values()),
    )  # fmt: skip
    if kind not in _COMPILED_KINDS:
        next(replace(game, rounds=1).advance(collect, memory))
        _COMPILED_KINDS.add(kind)


_COMPILED_KINDS: set[tuple[object, ...]] = set()
"""The kinds of games that an engine has compiled."""


class GroupResult(NamedTuple):
    """What comes of playing a group of runs: the fields of a trace."""

    totals: Totals
    curve: Totals
    state: object
    seconds: float
    pace: float
    costs: Array | None
    values: Array | None
    decisions: Array | None


def _play_group(game: Schedule, collect: Collect, keep: str, memory: int, tell: Callable[[int], None] | None) -> GroupResult:
    """Play a group of runs, and add up its rounds."""
    shape, rounds = () if game.runs is None else (game.runs,), game.rounds
    marks = curve_rounds(rounds)
    totals, state, last = empty(shape, 0), None, None
    price = game.problem.constants.get("switching", 0.0)
    curve: list[Totals] = []
    blocks: list[BlockValues] = []
    clock = [(0, time.perf_counter())]
    for done, after, block in game.advance(collect, memory):
        if isinstance(block, BlockTotals):
            running = cast(Totals, block.sums)
        else:
            values = cast(BlockValues, block)
            _check_finite(values, done)
            steps = None if values.x is None else moves(values.x, last)
            running = accumulate(totals if curve else empty(shape, values.g.shape[-1]), values.f, values.g, steps, price)
            last = None if values.x is None else values.x[-1].copy()
            if keep in ("rounds", "decisions"):
                blocks.append(values)
        passed = marks[(marks > clock[-1][0]) & (marks <= done)]
        at = np.searchsorted(running.rounds, passed)  # all of them are there
        curve.append(records.transform(lambda leaf, at=at: leaf[at], running))
        totals, state = records.transform(lambda leaf: leaf[-1].copy(), running), after  # a view would hold the whole block
        clock.append((done, time.perf_counter()))
        if tell is not None:
            tell(done)
    first = clock[1] if len(clock) > 2 else clock[0]  # an engine may compile in the first block
    return GroupResult(
        totals,
        records.join(curve),
        state,
        clock[-1][1] - clock[0][1],
        1e6 * (clock[-1][1] - first[1]) / (rounds - first[0]),
        np.concatenate([block.f for block in blocks]) if blocks else None,
        np.concatenate([block.g for block in blocks]) if blocks else None,
        np.concatenate([block.x for block in blocks if block.x is not None]) if keep == "decisions" else None,
    )


def _join_groups(results: list[GroupResult], game: Schedule) -> GroupResult:
    """The results of groups of runs as one of all runs."""

    def runs(axis: int, *fields: R) -> R:
        def joined(*leaves: Array) -> Array:
            return np.concatenate(leaves, axis=axis) if np.ndim(leaves[0]) > axis else leaves[0]

        return records.transform(joined, *fields)

    def states(one: Array, *leaves: Array) -> Array:
        return leaves[0] if np.shape(leaves[0]) == np.shape(one) else np.concatenate(leaves)

    assert game.alone is not None  # else there is one group
    totals, curve, state, seconds, pace, *by_round = zip(*results, strict=True)
    after = records.transform(states, game.alone.init(game.start), *state)  # a single run's state tells what runs have of their own
    return GroupResult(runs(0, *totals), runs(1, *curve), after, sum(seconds), sum(pace), *(runs(1, *each) for each in by_round))


def _bytes_to_keep(game: Schedule, keep: str, memory: int) -> int:
    """How many bytes all rounds take that are kept; an error where a limit leaves no room for them."""
    each = 1 + game.sizes.constraints + (len(game.start) if keep == "decisions" else 0)
    needed = 2 * 8 * game.rounds * (game.runs or 1) * each  # as they come, and as one
    if needed >= memory:
        raise InputError(
            f"memory must be more than {needed} bytes to keep {keep} of this game, not {memory}; keep='totals' needs no more with time"
        )
    return needed


def _check_finite(block: BlockValues, done: int) -> None:
    finite_f, finite_g = (np.isfinite(part).reshape(len(part), -1).all(axis=1) for part in (block.f, block.g))
    fine = np.asarray(finite_f & finite_g)
    if not fine.all():
        raise InputError(f"the cost or a constraint is not finite in round {done - len(fine) + int(np.argmin(fine)) + 1} of the game")


def _with_kinds(problem: Problem, first: Round) -> Problem:
    """The problem with what its first round says of its functions, which goes before what the problem claims."""
    convex = first.convex and problem.constants.get("convex", True)
    affine = all(isinstance(constraint, AFFINE_FUNCTIONS) for constraint in first.constraints)
    return replace(problem, constants={**problem.constants, "convex": convex, "affine": affine})


def _notes(policy: object, record: Policy[object], state: object, problem: Problem, rounds: int) -> list[str]:
    """What a user should know about a finished game."""
    notes = []
    domain = domain_of(policy)
    if domain is not None and not records.same(domain, problem.domain):
        notes.append("the policy's domain is not the problem's: decisions keep to the former, bounds and regret are about the latter")
    if isinstance(policy, policies.Configured):
        notes += policy.outside(problem.constants)
    own = own_horizon(policy)
    if own is not None and np.any(rounds > np.asarray(own)):
        notes.append(f"the policy was made for {np.min(own):g} rounds and played {rounds}: past its horizon its bounds do not hold")
    alarm = alarm_of(record, state)
    return [*notes, *([alarm.text] if alarm else []), *_false_parameters(policy, problem)]


def _false_parameters(policy: object, problem: Problem) -> list[str]:
    """Where a parameter of the policy claims something of the problem that is not so."""
    parameters, notes = getattr(policy, "parameters", {}), []
    G, alpha = problem.constants.get("lipschitz"), problem.constants.get("modulus")
    if G is not None and np.any(np.asarray(parameters.get("lipschitz", G)) < G * (1.0 - 1e-9)):
        notes.append(f"the policy was told a Lipschitz constant of {np.min(parameters['lipschitz']):g}; the problem's is {G:g}")
    if alpha is not None and np.any(np.asarray(parameters.get("modulus", alpha)) > alpha * (1.0 + 1e-9)):
        notes.append(f"the policy was told that costs have modulus {np.max(parameters['modulus']):g}; the problem's have {alpha:g}")
    return notes


def _of_run(leaf: Array, shape: tuple[int, ...], run: int) -> Array:
    """What is one run's of the rounds of several; `shape` is that of a round of a single run."""
    return leaf if leaf.shape[1:] == shape else leaf[:, run].reshape(len(leaf), *shape)


def _state_of_run(leaf: Scalar, one: Scalar, run: int) -> Scalar:
    """What is one run's of a state of several; `one` is of the state of a single run."""
    if np.shape(leaf) == np.shape(one):
        return leaf
    mine = cast(Array, leaf)[run].reshape(np.shape(one))
    return mine if mine.ndim else float(mine)


def _rounds_unplayed(adversary: Adversary[F], seed: int, rounds: int, domain: Domain) -> Iterator[Round]:
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
            foe, chosen = answer(adversary, foe, x, draw)
            answers.append(chosen)
        yield from gather(answers)


# --- what is asked of a game, checked and settled -----------------------------------------------------------------------------------


class GameSetup(NamedTuple):
    """A policy's record and a problem, for so many rounds, with a seed for all runs or one for each; `runs` is None for a single one."""

    record: Policy[object]
    problem: Problem
    rounds: int
    seeds: tuple[int, ...]
    runs: int | None


def arrange(
    policy: object, problem: Problem | str, horizon: int | None, seed: int | Sequence[int] | None, x1: ArrayLike | None
) -> GameSetup:
    """Check what was asked for, and find the problem, the rounds, the seeds and the number of runs."""
    record = _playing_record(policy)
    own = own_horizon(policy)
    longest = None if own is None else cast(int, np.max(own))  # a sweep plays its longest
    horizon = None if horizon is None else validate.whole("horizon", horizon)
    point = None if x1 is None else validate.array("x1", x1)
    source = _named(problem, policy, horizon if horizon is not None else longest, seed) if isinstance(problem, str) else problem
    if not isinstance(source, Problem):
        raise validate.refused("problem must be a Problem or a name", source)
    rounds = count_rounds(source, horizon, longest)
    _check_dimensions(policy, source)
    seeds = _seeds(seed, source)
    runs = _count_runs(
        sweep=policy.runs if hasattr(policy, "runs") else _runs_of(record, source),
        seeds=len(seeds) if _is_list(seed) else None,
        starts=len(point) if point is not None and point.ndim == 2 else None,
    )
    if seeds[0] != source.seed:
        source = source.with_seed(seeds[0])
    _check_constraints(record, source)
    return GameSetup(record, source, rounds, seeds, runs)


def own_horizon(policy: object) -> Scalar | None:
    """The horizon that the policy was made for, or one for each run; None where it needs none."""
    horizon: Scalar | None = getattr(policy, "parameters", {}).get("horizon")
    return horizon


def count_rounds(problem: Problem, horizon: int | None, own: int | None) -> int:
    """How many rounds to play: as many as asked for, else the problem's, else the policy's own."""
    length = horizon if horizon is not None else problem.horizon if problem.horizon is not None else own
    if length is None:
        raise InputError("horizon must be given: neither the problem nor the policy says how many rounds to play")
    rounds = validate.whole("horizon", length)
    recorded: int = getattr(problem.adversary, "rounds", rounds) if hasattr(problem.adversary, "replay") else rounds
    most = min(problem.constants.get("rounds", rounds), recorded)
    if rounds > most:
        raise InputError(f"horizon must be at most {most}, the rounds that problem {problem.name or '(unnamed)'} has, not {rounds}")
    return rounds


def start_points(x1: ArrayLike | None, domain: Domain, runs: int | None) -> Array:
    """Where all runs start, or where each of them does; the domain's centre unless something is given."""
    if x1 is None:
        return domain.center()
    point = validate.array("x1", x1)
    if point.shape not in ((domain.dim,), (runs, domain.dim)):
        raise InputError(f"x1 must have shape ({domain.dim},), not {point.shape}")
    if not domain.contains(point):
        raise InputError(f"x1 must lie in the domain; {validate.show(point)} does not")
    return point


def _playing_record(policy: object) -> Policy[object]:
    """The record that plays, with the methods of a policy."""
    if getattr(policy, "through", None) is not None:
        raise InputError("policy decides on weights (rules): somebody must say in every round what they stand for, as a Session is told")
    return playing_record(policy)


def _named(name: str, policy: object, horizon: int | None, seed: int | Sequence[int] | None) -> Problem:
    """The problem of this name, on the policy's domain where it can be."""
    if horizon is None and problems.needs(name, "horizon"):
        raise InputError("horizon must be given: neither the policy nor the call says how many rounds to play")
    first = next(iter(seed), 0) if _is_list(seed) else seed
    domain = domain_of(policy)
    shape = {"domain": domain} if domain is not None and problems.takes(name, "domain") else {}
    return problems.problem(name, horizon, 0 if first is None else cast(int, first), **shape)


def _check_dimensions(policy: object, problem: Problem) -> None:
    domain = domain_of(policy)
    if domain is not None and domain.dim != problem.domain.dim:
        raise InputError(f"policy decides in {domain.dim} dimensions, the problem in {problem.domain.dim}")


def _is_list(seed: int | Sequence[int] | None) -> TypeGuard[Sequence[int]]:
    """Whether there are several seeds, however many."""
    if isinstance(seed, Sequence):
        return not isinstance(seed, (str, bytes, bytearray))
    return hasattr(type(seed), "__array__") and getattr(seed, "ndim", 0) > 0


def _seeds(seed: int | Sequence[int] | None, problem: Problem) -> tuple[int, ...]:
    """The seeds of the runs: the given ones, else the problem's."""
    several = [problem.seed] if seed is None else list(seed) if _is_list(seed) else [seed]
    seeds = tuple(validate.whole("seed", each, 0) for each in several)
    if not seeds:
        raise InputError("seed must hold at least one seed, not an empty list")
    return seeds


def _count_runs(sweep: int | None, seeds: int | None, starts: int | None) -> int | None:
    """How many runs there are by the sweep's parameters, the seeds and the starting points, which must agree; None for a single one."""
    sizes = {size for size in (sweep, starts, seeds) if size is not None}
    if len(sizes) > 1:
        raise InputError(f"the sweep's parameters ({sweep}), seeds ({seeds}) and starting points ({starts}) must be equally many")
    return sizes.pop() if sizes else None


def _runs_of(record: Policy[object], problem: Problem) -> int | None:
    """How many runs a record stands for that does not come from the registry: seen from what one update makes of its state."""
    x = trial_decision(record, problem)
    return len(x) if x is not None and np.ndim(x) == 2 else None


def _check_constraints(record: Policy[object], problem: Problem) -> None:
    each = getattr(record, "each", None)
    if each is not None and problem.constants.get("constraints", len(each)) != len(each):
        raise InputError(f"constraints: the policy was made for {len(each)}, the problem reveals {problem.constants['constraints']}")
