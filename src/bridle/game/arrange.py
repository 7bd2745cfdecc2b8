"""What is asked of a game, checked and settled: the problem, how many rounds, which seeds, how many runs, and where they start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike

from bridle import problems, validate
from bridle.core import Domain, InputError, Policy
from bridle.game.schedule import trial_decision
from bridle.ops import Array, Scalar
from bridle.policies.registry import domain_of, playing_record
from bridle.problems import Problem


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
        raise InputError(f"problem must be a Problem or a name, not {validate.show(source)}")
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
