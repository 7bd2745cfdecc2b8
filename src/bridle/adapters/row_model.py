"""A model that learns row after row: what it holds, on which engine a row or a table of rows is learned, and room for more features."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np

from bridle import engines, records, validate
from bridle.adapters.compiled_rows import CompiledRows
from bridle.adapters.row_rules import DealtRow, H, K, ModelPlan, RowPlayer, W, learn
from bridle.core import InputError
from bridle.engines import check_name
from bridle.engines.mirror import require_compiler
from bridle.engines.round import Collect, SingleRun, block_length, check_compiled
from bridle.ops import Array, Scalar
from bridle.problems.recorded import Dealt
from bridle.session.feedback import LARGEST

ENGINES_OF_ROWS = ("python", "numba")
"""What can learn from one row at a time."""

L = TypeVar("L")


def numbers_of(rules: L) -> L:
    """The rules for a compiler, which has no use for names."""
    return records.transform(lambda leaf: leaf if isinstance(leaf, (float, int, np.ndarray, np.number, np.bool_)) else None, rules)


def demand_sizes(rows: Array) -> None:
    """Refuse features whose squares cannot be added up."""
    if rows.size and np.abs(rows).max() > LARGEST**0.5:
        raise InputError(f"X must be at most {LARGEST**0.5:g} in size, not {np.abs(rows).max():.3g}")


class RowModel(Generic[K, H, W]):
    """What was learned from rows, by the rules of a plan.

    Where features are scaled it is by the rows learned before: a row is learned, and scored, as the past sees it, and its own numbers count
    from the next one on.
    """

    def __init__(self, features: int, plan: ModelPlan[K, H], engine: str = "python") -> None:
        validate.one_of("engine", engine, ENGINES_OF_ROWS)
        self.plan, self.features, self.engine = plan, features, engine
        self.rules, start = plan.made(features)
        if engine == "numba":
            check_compiled(numbers_of(self.rules))
            require_compiler()  # if it is missing, now is the time to say so
        self._held = self._blank = start
        self._compiled: CompiledRows[H] | None = None  # the one in use
        self._known: dict[object, CompiledRows[H]] = {}

    @property
    def held(self) -> H:
        """What was learned; compiled rows leave it in their memory until somebody asks."""
        if self._compiled is not None and self._compiled.ahead:
            self._held = self._compiled.settle()
        return self._held

    @property
    def blank(self) -> bool:
        """Whether nothing was learned so far."""
        return self.held is self._blank

    @property
    def weights(self) -> Array:
        """The decision: the intercept, then a weight for every feature."""
        return np.asarray(self._held.weights if self._compiled is None or not self._compiled.ahead else self._compiled.weights)

    def scores(self, row: Array) -> Scalar:
        """The weights' products with the features, scaled as rows are now, of one row or of many."""
        scale = self._held.scale if self._compiled is None or not self._compiled.ahead else self._compiled.scale()
        weights = self.weights
        with np.errstate(all="ignore"):
            scores: Scalar = (row if scale is None else scale.apply(row)) @ weights[1:] + weights[0]
        return scores

    def take(self, row: W) -> None:
        """One round: learn from one row."""
        if self.engine == "numba" and self.features and self._fast(row).learn(self._held, row):
            return
        try:
            self._held = learn(self.rules, self.held, row)
        except FloatingPointError:  # the caller has told NumPy to raise; nothing has changed so far
            with np.errstate(all="ignore"):
                self._held = learn(self.rules, self.held, row)

    def _fast(self, row: W) -> CompiledRows[H]:
        """The compiled code for rows of this kind, which says how things stand from now on."""
        kind = tuple(None if part is None else 0 for part in row)  # type: ignore[attr-defined]  # a row is a record
        fast = self._known.get(kind)
        if fast is None:
            fast = self._known[kind] = CompiledRows(numbers_of(self.rules), self.held, row)
        if fast is not self._compiled:
            self._held, self._compiled = self.held, fast
        return fast

    def take_many(self, rows: W, engine: str = "python") -> None:
        """As many rounds as there are rows (every part of them has a leading axis), one after the other, on this engine."""
        check_name(engine)
        demand_sizes(rows.features)
        player = RowPlayer(self.rules if engine == "python" else numbers_of(self.rules))
        state, count, length = self.held, len(rows.features), block_length(self.features + 1)
        advance = engines.load(engine).advance
        for start in range(0, count, length):
            part = DealtRow(records.cut(rows, start, start + length))
            state, _, _ = advance(SingleRun(player, Dealt(), state, (), part), min(length, count - start), Collect.VALUES)  # type: ignore[arg-type]
        self._held = state

    def grow(self, features: int) -> None:
        """Make room for more features, which count as 0 in every row so far."""
        wide = type(self)(features, self.plan, self.engine)
        wide._held = self.plan.widened(self.rules, self.held, wide.rules, wide._held)
        vars(self).update(vars(wide))

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: what was compiled stays behind."""
        return {**vars(self), "_held": self.held, "_compiled": None, "_known": {}}


def padded(leaf: Scalar, room: Scalar) -> Scalar:
    """A leaf in the shape of a wider one, with 0 where it has nothing."""
    if np.shape(leaf) == np.shape(room):
        return leaf
    wide = np.zeros(np.shape(room))
    wide[tuple(slice(length) for length in np.shape(leaf))] = leaf
    return wide
