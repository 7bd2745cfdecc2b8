"""The one stream that every side of a benchmark is given: linear costs and halfspaces, recorded as arrays before anything is timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import bridle
from bridle import records
from bridle.game.play import unplayed
from bridle.problems.base import oblivious
from bridle.problems.recorded import Dealt, Recorded


@oblivious
class Around(NamedTuple):
    """Recorded rounds over and over again, so that a long game needs no long table."""

    table: Any
    rounds: int

    @property
    def player(self) -> Dealt:
        return Dealt()

    def init(self) -> tuple[()]:
        return ()

    def answer(self, state: Any, x: Any, draw: Any) -> tuple[Any, Any]:
        return state, draw

    def replay(self, start: int, stop: int) -> Any:
        rows = np.arange(start, stop) % len(self.table.cost.a)
        if rows[-1] - rows[0] == len(rows) - 1:
            return records.cut(self.table, int(rows[0]), int(rows[-1]) + 1)
        return records.transform(lambda leaf: leaf[rows], self.table)


def recorded(rounds: int, dim: int, constraints: int = 1) -> bridle.Problem:
    """The problem `halfspaces` on the L2 ball with its rounds drawn in advance."""
    source = bridle.problem("halfspaces", horizon=rounds, dim=dim, constraints=constraints)
    return replace(source, adversary=Recorded(records.join(list(unplayed(source).blocks()))), factory=None)


def shortened(problem: bridle.Problem, rounds: int) -> bridle.Problem:
    """The same stream, of which only the first rounds are played."""
    return replace(problem, parameters={**problem.parameters, "horizon": rounds})


def repeated(problem: bridle.Problem, rounds: int) -> bridle.Problem:
    """The same stream over and over again for so many rounds."""
    return replace(shortened(problem, rounds), adversary=Around(problem.adversary.table, rounds))


def constants(policy: Any) -> tuple[float, float, float, float]:
    """lambda, beta, V and the diameter of the policy's steps."""
    record = policy.record
    return record.potential.lam, record.beta, record.V, record.learner.diameter


def arrays(problem: bridle.Problem, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The costs' slopes, the halfspaces' normals and levels of the first n rounds."""
    table = problem.adversary.table
    return table.cost.a[:n], table.constraints[0].a[:n], table.constraints[0].b[:n]
