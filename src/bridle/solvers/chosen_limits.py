"""The constraints of a stream that matter: chosen as they are found to be violated, in the form that programs take."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridle import records
from bridle.core import Domain, Function
from bridle.functions import AffineFunction, AffineRows
from bridle.ops import Array
from bridle.solvers.block_stream import BlockStream, SingleFunction
from bridle.solvers.program import AFFINE_PIECES, Pieces, pieces, shares


class ChosenLimits:
    """The constraints that have been chosen from a stream, in the form programs take."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.parts: Pieces = ()
        # Rounds often repeat a constraint. Its value at some odd point tells whether it has been chosen already.
        self.chosen, self.mark = np.zeros(0), domain.center() + domain.diameter() * np.random.default_rng(0).standard_normal(domain.dim)

    def scan(self, stream: BlockStream, x: Array, many: int, floor: float) -> float:
        """The largest share of its range by which any constraint of the stream is violated at x.

        Where it is above `floor`, the `many` highest of each constraint are chosen: next to those that are violated, those that nearly are,
        which are likely to be next.
        """
        candidates: dict[tuple[int, int], list[tuple[Pieces, Array, Array]]] = {}  # of each constraint: pieces, shares and marks
        worst = 0.0
        for block in stream:
            for which, constraint in enumerate(block.constraints):
                values = np.asarray(constraint.value(x))
                for i, column in enumerate(values.T):
                    least = np.partition(column, -many)[-many] if len(column) > many else -np.inf
                    parts, exact = _pick(constraint, np.flatnonzero(column >= min(least, 0.0)), i, x)
                    share = np.max([shares(part, x, self.domain) for part in parts], axis=0)
                    worst = max(worst, float(share.max()))
                    marks = np.sum([j * np.asarray(part.value(self.mark))[:, 0] for j, part in enumerate(parts, 1)], axis=0)
                    heights = share if exact else np.where(share > 0.0, share, -np.inf)
                    candidates.setdefault((which, i), []).append((parts, heights, marks))
        for group in candidates.values() if worst > floor else ():
            heights = np.concatenate([entry[1] for entry in group])
            marks = np.concatenate([entry[2] for entry in group])
            order = np.argsort(-heights, kind="stable")
            order = order[np.isfinite(heights[order]) & ~np.isin(marks[order], self.chosen)]
            order = order[np.sort(np.unique(marks[order], return_index=True)[1])][:many]
            self.chosen, at = np.concatenate([self.chosen, marks[order]]), 0
            for parts, share, _ in group:
                some = order[(order >= at) & (order < at + len(share))] - at
                self._add([_some(part, some) for part in parts] if len(some) else [])
                at += len(share)
        return worst

    def excess(self, x: Array) -> float:
        """The largest share of its range by which a chosen constraint is violated at x."""
        return max([float(shares(part, x, self.domain).max()) for part in self.parts], default=0.0)

    def _add(self, parts: list[Function]) -> None:
        by_type: dict[type, Function] = {type(part): part for part in self.parts}
        for part in parts:
            if isinstance(part, AFFINE_PIECES):
                part = AffineFunction(np.asarray(part.grad(self.mark)), np.asarray(part.value(0.0 * self.mark)))
            by_type[type(part)] = records.join([by_type[type(part)], part]) if type(part) in by_type else part
        self.parts = tuple(by_type.values())


def _some(sequence: Function, which: NDArray[np.intp]) -> Function:
    """Some functions of a sequence."""
    return records.transform(lambda leaf: leaf[which], sequence)


def _pick(constraint: Function, rounds: NDArray[np.intp], i: int, x: Array) -> tuple[Pieces, bool]:
    """The i-th constraint of some rounds in smooth pieces; where these are not known its tangents at x, and then False."""
    if isinstance(constraint, AffineRows):
        return (AffineFunction(constraint.A[rounds, i], constraint.b[rounds, i][:, None]),), True
    some = constraint if isinstance(constraint, SingleFunction) else _some(constraint, rounds)
    parts = pieces(some)
    if parts is not None:
        return parts, True
    values, rows = np.asarray(some.value(x))[:, i : i + 1], np.asarray(some.grad(x))
    rows = rows[:, i] if rows.ndim == 3 else rows
    return (AffineFunction(rows, values - (rows @ x)[:, None]),), False
