"""What a trace is worth: regret, and violation in each of the senses the literature uses.

Every function gives a float for one run and an array for several.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from bridle import records, validate
from bridle.core import CountsRates, InputError, Round, capability
from bridle.engines.round import Collect
from bridle.game.play import Trace
from bridle.game.totals import moves
from bridle.learners import adagrad_movement
from bridle.ops import Array, Scalar
from bridle.policies._anytime import Anytime
from bridle.policies._steiner import Steiner
from bridle.policies._unconstrained import Unconstrained
from bridle.policies.levels import Tally
from bridle.policies.round_maps import record_of
from bridle.solvers import hindsight
from bridle.solvers.block_stream import Blocks, NoComparator
from bridle.solvers.each_round import best_of_each_round
from bridle.solvers.hindsight import Hindsight, best_fixed, best_fixed_each, costs_after, total_cost, values_at
from bridle.solvers.paths import BestPath, length_of, path_costs
from bridle.solvers.paths import best_path as best_path_of

B = TypeVar("B")


class Comparator(NamedTuple):
    """What a run is measured against: an action, its total cost, and its cost up to each of the trace's log-spaced rounds.

    It depends on the stream alone, so runs that saw the same stream share it: see `comparator`.
    """

    x: Array
    cost: float
    costs: Array


ComparatorLike: TypeAlias = ArrayLike | Comparator | None
"""What regret is measured against: an action, a path (T, d), a comparator, or None for the best fixed feasible action."""


def ccv(trace: Trace) -> Scalar:
    """The cumulative constraint violation of a game: the sum of the violations of the constraint that was violated most.

    That is max over i of the sum over rounds of ``max(g_{t,i}(x_t), 0)``. Rounds with room to spare do not make up for others.

    It is in units of constraint, 0 or above; one number for each run where there are several.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("sinha2024", bridle.Ball(2), horizon=50, lipschitz=1.0), "fixed")
    >>> ccv(trace) == ccv_max(trace)  # one constraint
    True
    """
    return _number(trace.totals.hard.max(axis=-1))


def ccv_each(trace: Trace) -> Array:
    """The cumulative violation of every constraint of a game.

    It is in units of constraint, 0 or above.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), bridle.problem("halfspaces", horizon=50, dim=2, constraints=3))
    >>> ccv_each(trace).shape, bool(ccv_each(trace).max() == bridle.ccv(trace))
    ((3,), True)
    """
    return np.array(trace.totals.hard)


def ccv_max(trace: Trace) -> Scalar:
    """The sum over rounds of the largest violation of the round; it is at least `ccv`.

    It is in units of constraint, 0 or above.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), bridle.problem("halfspaces", horizon=50, dim=2, constraints=3))
    >>> bool(ccv_max(trace) >= bridle.ccv(trace))
    True
    """
    return _number(trace.totals.worst)


def soft_violation(trace: Trace) -> Scalar:
    """The largest sum of a constraint's values over a game, or 0: rounds with room to spare make up for others.

    It is in units of constraint, 0 or above.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("soft", bridle.Ball(2)), "halfspaces", horizon=50)
    >>> bool(soft_violation(trace) <= bridle.ccv(trace))
    True
    """
    return _number(np.maximum(trace.totals.soft.max(axis=-1), 0.0))


def interval_violation(trace: Trace) -> Scalar:
    """The largest sum of a constraint's values over any interval of rounds: what Algorithm 2 bounds.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("sinha2024-ocs", bridle.Ball(2)), "fixed", horizon=50)
    >>> bool(interval_violation(trace) <= bridle.ccv(trace))
    True
    """
    return _number(trace.totals.interval.max(axis=-1))


def squared_ccv(trace: Trace) -> Scalar:
    """The sum of squared violations of the constraint for which it is largest.

    It is in units of squared constraint, 0 or above.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "fixed", horizon=50)
    >>> bool(squared_ccv(trace) >= bridle.ccv(trace) ** 2 / 50)
    True
    """
    return _number(trace.totals.squared.max(axis=-1))


def movement(trace: Trace) -> Scalar:
    """How far the decisions of a game moved: the sum of the distances from each to the next.

    It is kept where the game was played with ``keep="movement"`` or ``"decisions"``, or the problem has a price of moving
    (`with_switching`).

    It is in units of action, 0 or above.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "fixed", horizon=50, keep="movement")
    >>> bool(movement(trace) > 0.0)
    True
    """
    if trace.totals.moved is None:
        raise InputError("movement was not kept: play the game with keep='movement'")
    return _number(trace.totals.moved)


def movement_bound(trace: Trace) -> Scalar | None:
    """The most that the decisions of a game can have moved, by the proof of its policy's steps.

    A step D / sqrt(2 S) along a gradient v, S the sum of all |v|^2 so far, and a projection move the decision by at most D |v| / sqrt(2 S).
    By Cauchy and Schwarz t of them sum up to at most sqrt(t sum D^2 |v|^2 / (2 S)) <= D sqrt((t/2) (1 + ln(S_t / S_1))), with S_1 the first
    S above 0 (`bridle.learners.adagrad_movement`). Both are those of the game. Exact Steiner points of nested bodies have a bound of their
    own (`bridle.policies._steiner.steiner_distance`).

    It is in units of action; None for a policy that takes other steps, such as onto halfspaces.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.

    Examples
    --------
    >>> import bridle
    >>> plain = bridle.policy("anytime", bridle.Ball(2), halfspace=False)
    >>> trace = bridle.play(plain, bridle.problem("halfspaces", horizon=200, dim=2), keep="movement")
    >>> bool(bridle.movement(trace) <= movement_bound(trace))
    True
    """
    record = record_of(trace.policy)
    if isinstance(record, Steiner):
        return record.most_travelled(trace.rounds)
    if not isinstance(record, (Anytime, Unconstrained)) or trace.state is None or (last := record.adagrad_steps(trace.state)) is None:
        return None
    first = _first_squares(trace, record)
    if first is None:
        return None
    most = np.asarray(adagrad_movement(last.diameter, trace.rounds, last.squares, first))
    return _number(most if trace.runs is None else np.broadcast_to(most, (trace.runs, 1))[:, 0])


def _first_squares(trace: Trace, record: Any) -> Array | None:
    """S after the first round in which it is above 0, from playing the beginning of the game again; None where runs differ in that."""
    game = trace.schedule()

    def after(rounds: int) -> Array:
        *_, (_, state, _) = replace(game, rounds=rounds).advance(Collect.VALUES, trace.memory)
        return np.asarray(record.adagrad_steps(state).squares)

    low, high = 0, 1
    while high < trace.rounds and not after(high).any():
        low, high = high, min(2 * high, trace.rounds)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if after(middle).any() else (middle, high)
    S = after(high)
    return S if S.all() or not S.any() else None


class ViolationRates(NamedTuple):
    """How often limits were violated, as shares of the counted rounds, one for each limit (and each run, where there are several).

    Parameters
    ----------
    asked : array
        The most that was asked for.
    measured : array
        What came out; NaN before a round was counted.
    proved : array
        The most that could have come out whatever the stream had done; NaN where no safe action was given.
    """

    asked: Array
    measured: Array
    proved: Array


def violation_rates(trace: Trace) -> ViolationRates | None:
    """How often the limits of policy `rate` were violated: what was asked, what was measured, and what is proved.

    Returns `asked`, `measured` and `proved`, each a share of rounds for every limit; None for any other policy.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.

    Examples
    --------
    >>> import bridle
    >>> problem = bridle.problem("noisy", horizon=500, dim=2)
    >>> trace = bridle.play(bridle.policy_for("rate", problem, at_most=0.2, safe=[-1.0, 0.0]), problem)
    >>> found = bridle.violation_rates(trace)
    >>> bool(found.measured <= found.proved), round(float(found.proved[0]), 4)
    (True, 0.3616)
    """
    record = record_of(trace.policy)
    if capability(record, CountsRates) is None:
        return None
    tally: Tally = record.tally(trace.state)
    counted = np.where(tally.counted > 0.0, tally.counted, np.nan)
    proved = np.where(np.isinf(tally.most), np.nan, np.minimum(tally.most / counted, 1.0))
    return ViolationRates(np.asarray(tally.share, dtype=float), tally.violated / counted, proved)


def measures(trace: Trace) -> dict[str, Scalar]:
    """What the game is worth in the problem's own terms, such as the wealth of a portfolio, by name; none where the problem has none.

    The game must have been played with ``keep="decisions"``.

    >>> import bridle
    >>> measures(bridle.play(bridle.policy("anytime", bridle.Ball(2)), "fixed", horizon=50))
    {}
    """
    of_rounds = trace.problem.measures
    if of_rounds is None:
        return {}
    if trace.decisions is None or trace.costs is None or trace.values is None:
        raise InputError(f"measures of problem {trace.problem.name} need the decisions: play it with keep='decisions'")
    if trace.runs is None:
        return dict(of_rounds(records.join(list(trace.blocks())), trace.decisions, trace.costs, trace.values))
    each = [
        of_rounds(records.join(list(trace.blocks(run))), trace.decisions[:, run], trace.costs[:, run], trace.values[:, run])
        for run in range(trace.runs)
    ]
    return {name: np.array([one[name] for one in each]) for name in each[0]}


def ccv_curve(trace: Trace) -> tuple[Array, Array]:
    """The cumulative constraint violation along a game, at log-spaced rounds.

    Gives `rounds : array of shape (m,)`: after how many rounds. Gives `values : array of shape (m,) or (m, runs)`: the
    violation up to then, in units of constraint.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "fixed", horizon=50)
    >>> rounds, values = ccv_curve(trace)
    >>> int(rounds[-1]), bool(values[-1] == bridle.ccv(trace))
    (50, True)
    """
    return np.asarray(trace.curve.rounds), np.asarray(trace.curve.hard.max(axis=-1))


@validate.undisturbed
def regret(trace: Trace, comparator: ComparatorLike = None) -> Scalar:
    """The regret of a game: its total cost minus that of the best fixed action that satisfies every constraint.

    It is below 0 where the policy spent less than any feasible action could. That is no win: it paid with violations, so read `ccv` beside
    it.

    Raises `NoComparator`: no action satisfies every constraint, or none can be found.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.
    comparator : array_like or Comparator, optional
        What to compare with instead: an action (d,), a path (T, d) of one action for each round, or what `bridle.game.metrics.comparator`
        found.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("sinha2024", bridle.Ball(2), horizon=50, lipschitz=1.0), "fixed")
    >>> bool(regret(trace) >= regret(trace, comparator=[0.0, 0.0]))
    True
    """
    if comparator is None:
        return _number(trace.totals.cost - _by_run(trace, _best_costs(trace)))
    return _number(trace.totals.cost - _per_run(trace, lambda run: _total(trace, comparator, run)))


@validate.undisturbed
def regret_curve(trace: Trace, comparator: ComparatorLike = None) -> tuple[Array, Array]:
    """The regret along a game, at log-spaced rounds, against one action or path for the whole horizon.

    Gives `rounds : array of shape (m,)`: after how many rounds. Gives `values : array of shape (m,) or (m, runs)`: the
    regret up to then, in units of cost. Raises `NoComparator`: no action satisfies every constraint, or none can be
    found.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.
    comparator : array_like or Comparator, optional
        What to compare with, as for `regret`. Default: the best feasible action for the horizon.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "fixed", horizon=50)
    >>> rounds, values = regret_curve(trace)
    >>> int(rounds[-1]), bool(abs(values[-1] - bridle.regret(trace)) < 1e-9)
    (50, True)
    """

    if comparator is None:
        sought = _comparators([(trace, run) for run in _distinct_runs(trace)])
        return _against(trace, _by_run(trace, [_found(each).costs for each in sought]))

    def costs(run: int | None) -> Array:
        if isinstance(comparator, Comparator):
            return comparator.costs
        given = _given(trace, comparator)
        if given.ndim == 2:
            return np.asarray(np.cumsum(path_costs(lambda: trace.blocks(run), given))[np.asarray(trace.curve.rounds, dtype=int) - 1])
        return costs_after(lambda: trace.blocks(run), given, trace.curve.rounds)

    return _against(trace, _per_run(trace, costs))


def _against(trace: Trace, costs: Array) -> tuple[Array, Array]:
    """The rounds of a game's curve, and its cost up to each of them beside these costs."""
    return np.asarray(trace.curve.rounds), np.asarray(trace.curve.cost - costs)


def comparators(traces: Iterable[Trace]) -> list[Comparator | NoComparator]:
    """`comparator` of each of several games of a single run, or the reason why there is none; found side by side, so sooner."""
    return list(_comparators([(trace, None) for trace in traces]))


def comparator(trace: Trace) -> Comparator:
    """The best fixed feasible action for the stream of a single run, to give to `regret` and `regret_curve` of every run that saw it.

    The game need not have been played: that of `bridle.game.unplayed` will do. Raises `NoComparator` as `regret` does.

    >>> import bridle
    >>> trace = bridle.play(bridle.policy("sinha2024", bridle.Ball(2), horizon=50, lipschitz=1.0), "halfspaces")
    >>> regret(trace, comparator(trace)) == regret(trace)
    True
    """
    if trace.runs is not None:
        raise InputError(f"trace must be of a single run, not of {trace.runs}")
    return _found(*comparators([trace]))


@validate.undisturbed
def best_action(trace: Trace, run: int | None = None) -> Hindsight:
    """The best fixed feasible action for the stream that a run saw.

    Returns the action `x`, its total `cost`, and `lower`, below which no feasible action costs. Raises `NoComparator`:
    no action satisfies every constraint, or none can be found.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.
    run : int, optional
        Which of several runs, counted from 0.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "fixed", horizon=50)
    >>> best = best_action(trace)
    >>> bool(abs(float(trace.totals.cost) - best.cost - bridle.regret(trace)) < 1e-6)
    True
    """
    _check_convex(trace)
    return best_fixed(lambda: trace.blocks(run), trace.problem.domain)


@validate.undisturbed
def dynamic_regret(trace: Trace, length: float | None = None) -> Scalar:
    """The regret of a game against the best path of actions: the best of each round, or one that moves no farther than `length` in all.

    The path keeps every round's constraints, each in its own round. With length 0 this is `regret`. Regret against a path of your own is
    ``regret(trace, path)``.

    Raises `NoComparator`: there is no such path, none can be found, or with a length T times the dimension is above
    2,000.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.
    length : float, optional
        The most that the path may move in all, 0 or above, in units of action. Default: any length, so that every round is compared with
        the best action that it allows.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "halfspaces", horizon=40)
    >>> bool(regret(trace) <= dynamic_regret(trace, 1.0) <= dynamic_regret(trace, 2.0) <= dynamic_regret(trace))
    True
    """

    def cost(run: int | None) -> Array:
        known = _constant(trace, run, "path_cost") if length is None else None
        return np.asarray(best_path(trace, length, run).cost if known is None else known)

    return _number(trace.totals.cost - _per_run(trace, cost))


@validate.undisturbed
def best_path(trace: Trace, length: float | None = None, run: int | None = None) -> BestPath:
    """The best path of actions for the stream that a run saw: the best of each round, or one of at most this length.

    Returns the `path` (T, d), its `cost` and its `length`. Raises `NoComparator`: there is no such path, none can be
    found, or with a length T times the dimension is above 2,000.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.
    length : float, optional
        The most that the path may move in all, 0 or above, in units of action. Default: any length. Where several actions of a round are
        equally good, it is then one of them.
    run : int, optional
        Which of several runs, counted from 0.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("anytime", bridle.Ball(2)), "halfspaces", horizon=40)
    >>> found = best_path(trace, length=1.0)
    >>> found.path.shape, bool(found.length <= 1.0 + 1e-6 < best_path(trace).length)
    ((40, 2), True)
    """
    _check_convex(trace)
    if length is None:
        return best_of_each_round(lambda: trace.blocks(run), trace.problem.domain)
    return best_path_of(lambda: trace.blocks(run), trace.problem.domain, length)


def path_length(path: ArrayLike) -> float:
    """How far a path of actions moves: the sum of its steps.

    It is in units of action, 0 or above.

    Parameters
    ----------
    path : array_like of shape (T, d)
        One action for each round.

    Examples
    --------
    >>> path_length([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]])
    5.0
    """
    actions = validate.array("path", path)
    if actions.ndim != 2:
        raise InputError(f"path must have a row for each round, not {validate.show(path)}")
    return length_of(actions)


class MovingBest(NamedTuple):
    """What a game comes to against the best action of each round, as far as the problem knows it.

    Parameters
    ----------
    regret : float or array or None
        The dynamic regret; None where the problem does not say what is best in each round.
    length : float or array or None
        How far these actions move in all.
    why : str
        Why there is none, else empty.
    """

    regret: Scalar | None
    length: Scalar | None
    why: str


NOT_TOLD = "the problem does not say what is best in each round (bridle.dynamic_regret finds it where it can)"


def against_the_known_path(trace: Trace) -> MovingBest:
    """Dynamic regret and path length where the problem knows them in advance: no stream is read.

    >>> import bridle
    >>> trace = bridle.play(bridle.policy("dynamic", bridle.Ball(2)), "jumping-limits", horizon=40)
    >>> found = against_the_known_path(trace)
    >>> bool(abs(found.regret - bridle.dynamic_regret(trace)) < 1e-9), against_the_known_path(trace).why
    (True, '')
    """
    runs = range(trace.runs or 1) if trace.runs is not None and not trace.shared_stream else (None,)
    known = [(_constant(trace, run, "path_cost"), _constant(trace, run, "path")) for run in runs]
    if any(cost is None or length is None for cost, length in known):
        why = NOT_TOLD if "path" not in trace.problem.constants else "the problem was made for another number of rounds"
        return MovingBest(None, None, why)
    costs, lengths = (np.array(part) if len(known) > 1 else np.asarray(part[0]) for part in zip(*known, strict=True))
    return MovingBest(_number(trace.totals.cost - costs), _number(lengths + 0.0 * trace.totals.cost), "")


def smallest_window(trace: Trace, action: ArrayLike) -> int | None:
    """The smallest S for which a stream is S-feasible at an action: every constraint sums to 0 or less over every S rounds in a row.

    Returns s, in rounds; None where there is none up to the horizon.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.
    action : array_like of shape (d,)
        The action.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("sinha2024-ocs", bridle.Ball(2)), "fixed", horizon=50)
    >>> smallest_window(trace, [0.0, 0.0])
    1
    """
    _, g = values_at(trace.blocks, _action(trace, action))
    return hindsight.smallest_window(g)


def static_violation(trace: Trace, action: ArrayLike | None = None) -> float:
    """P_T of a stream: the largest violation of one fixed action over an interval, in units of F, the largest constraint value.

    Returns 0 or above; 0 where the action satisfies every constraint.

    Parameters
    ----------
    trace : Trace
        A game, as `play` gives it.
    action : array_like of shape (d,), optional
        The action. Default: the best one.

    Examples
    --------
    >>> import bridle
    >>> trace = bridle.play(bridle.policy("sinha2024-ocs", bridle.Ball(2)), "fixed", horizon=50)
    >>> static_violation(trace, [0.0, 0.0])
    0.0
    """
    F = trace.problem.constants.get("bound")
    if F is None:
        raise InputError("the problem's constants do not say what `bound`, the largest |g|, is")
    if action is None:
        return float(hindsight.static_violation(trace.blocks, trace.problem.domain, F)[0])
    _, g = values_at(trace.blocks, _action(trace, action))
    return hindsight.interval_excess(g) / float(F)


def _check_convex(trace: Trace) -> None:
    if not trace.problem.constants.get("convex", True):
        raise NoComparator("a cost or a constraint is not convex")


Side: TypeAlias = tuple[Trace, int | None]
"""A game and one of its runs, whose stream is asked about; None where there is a single one."""


def _comparators(sides: Sequence[Side]) -> Iterator[Comparator | NoComparator]:
    """The best action of each stream: what the problem knows of it, and the rest from replaying the stream once."""
    known = [(_constant(*side, "optimal_cost"), _constant(*side, "optimum")) for side in sides]
    searched = _best_each(side for side, (cost, x) in zip(sides, known, strict=True) if cost is None or x is None)
    for (trace, run), (cost, x) in zip(sides, known, strict=True):
        stream: Blocks = partial(trace.blocks, run)
        if cost is None or x is None:
            stream, best = next(searched)
            if isinstance(best, NoComparator):
                yield best
                continue
            cost, x = best.cost if cost is None else cost, best.x if x is None else x
        costs = costs_after(stream, x, trace.curve.rounds)
        costs[-1] = cost  # the same number as in `regret`, to the last digit
        yield Comparator(np.asarray(x, dtype=float), float(cost), costs)


def _best_costs(trace: Trace) -> list[float]:
    """What the best action of each run costs."""
    runs = _distinct_runs(trace)
    known = [_constant(trace, run, "optimal_cost") for run in runs]
    searched = _best_each((trace, run) for run, cost in zip(runs, known, strict=True) if cost is None)
    return [_found(next(searched)[1]).cost if cost is None else cost for cost in known]


def _best_each(sides: Iterable[Side]) -> Iterator[tuple[Blocks, Hindsight | NoComparator]]:
    """The streams, each with its best action: those of neighbours on one domain are sought side by side."""
    left = deque(sides)
    while left:
        domain, some = left[0][0].problem.domain, []
        while left and records.same(left[0][0].problem.domain, domain):
            some.append(left.popleft())
        yield from best_fixed_each((_convex_stream(*side) for side in some), domain)


def _convex_stream(trace: Trace, run: int | None) -> Blocks:
    def blocks() -> Iterator[Round]:
        _check_convex(trace)
        yield from trace.blocks(run)

    return blocks


def _found(best: B | NoComparator) -> B:
    """What was found, or the reason why there is nothing as an error."""
    if isinstance(best, NoComparator):
        raise best
    return best


def _total(trace: Trace, comparator: ArrayLike | Comparator, run: int | None) -> Array:
    if isinstance(comparator, Comparator):
        return np.asarray(comparator.cost)
    given = _given(trace, comparator)
    if given.ndim == 2:
        switched = trace.problem.constants.get("switching", 0.0) * moves(given, None).sum()  # a path moves, too
        return np.asarray(path_costs(lambda: trace.blocks(run), given).sum() + switched)
    return np.asarray(total_cost(lambda: trace.blocks(run), given))


def _constant(trace: Trace, run: int | None, name: Literal["optimal_cost", "optimum", "path", "path_cost"]) -> Any:
    """What the problem knows in advance about the best action, or that of each round, for the whole of its horizon; else None."""
    known = trace.problem.constants.get(name) if trace.rounds == trace.problem.horizon else None
    if known is None or run is None or len(trace.seeds) == 1:  # what is not known for one seed is not for another
        return known
    return trace.problem.with_seed(trace.seeds[run]).constants.get(name)


def _distinct_runs(trace: Trace) -> list[int | None]:
    """The runs that saw streams of their own; one of them where all saw the same, and None for a single run."""
    if trace.runs is None:
        return [None]
    return [0] if trace.shared_stream else list(range(trace.runs))


def _per_run(trace: Trace, compute: Callable[[int | None], Array]) -> Array:
    """What `compute` gives for each run, with the run axis last; computed once where every run saw the same stream."""
    return _by_run(trace, [compute(run) for run in _distinct_runs(trace)])


def _by_run(trace: Trace, values: Sequence[Scalar]) -> Array:
    """The values of the distinct runs, with the run axis last."""
    return np.asarray(values[0]) if trace.runs is None else np.stack(values, axis=-1)


def _action(trace: Trace, comparator: ArrayLike) -> Array:
    return validate.vector("comparator", comparator, trace.problem.domain.dim)


def _given(trace: Trace, comparator: ArrayLike) -> Array:
    """What regret is measured against: an action, or a path of one for each round."""
    if validate.array("comparator", comparator).ndim == 2:
        return validate.array("comparator", comparator, (trace.rounds, trace.problem.domain.dim))
    return _action(trace, comparator)


def _number(value: Scalar) -> Scalar:
    return float(value) if np.ndim(value) == 0 else np.asarray(value)
