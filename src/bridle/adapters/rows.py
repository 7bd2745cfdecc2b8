"""A model that learns row after row: what it holds, on which engine a row or a table of rows is learned, and room for more features.

A model has rules that do not change, what is held, and one step, `learn`, that every engine repeats. Compiled rows are ahead of what a
model holds until somebody asks.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from bridle import engines, ops, records
from bridle.adapters.scaling import RunningScale
from bridle.core import Feedback, InputError
from bridle.engines import check_name
from bridle.engines.mirror import Mirror, require_compiler
from bridle.engines.round import Collect, SingleRun, block_length, check_compiled
from bridle.ops import Array, Scalar
from bridle.problems.recorded import Dealt
from bridle.session.feedback import LARGEST

ENGINES_OF_ROWS = ("python", "compiled")
"""What can learn from one row at a time."""


class Holds(Protocol):
    """What rows change: at least weights, the intercept's first, and the scale of the features."""

    @property
    def weights(self) -> Array: ...

    @property
    def scale(self) -> RunningScale | None: ...


class HasFeatures(Protocol):
    """A row: at least its features."""

    @property
    def features(self) -> Array: ...


H = TypeVar("H", bound=Holds)
W = TypeVar("W", bound=HasFeatures)


def learn(rules: Any, before: Any, row: Any) -> Any:
    """What is held after a row: the one step that engines repeat."""
    return rules.learn(before, row)


class RowPlayer(NamedTuple):
    """The rules as a policy, whose state is all that is held: so any engine can go through a table of rows."""

    rules: Any

    def decide(self, state: Any) -> Array:
        weights: Array = state.weights
        return weights

    def update(self, state: Any, feedback: Feedback) -> Any:
        return learn(self.rules, state, feedback.round)  # the row, see `DealtRow`


class DealtRow(NamedTuple):
    """A row as the round that it is: nothing of it is evaluated, the rules do that."""

    row: Any

    def reveal(self, x: Array) -> Feedback:
        nothing = 0.0 * x[..., :1]
        return Feedback(x, 0.0 * ops.dot(x, x), 0.0 * x, nothing, nothing, None, self.row)


class CompiledRows(Mirror[H]):
    """`learn` in compiled code for rows of one kind, ahead of what the model holds."""

    def __init__(self, rules: Any, before: H, row: HasFeatures) -> None:
        super().__init__(learn, rules, before, row, before, LARGEST**0.5)
        self.write(before)
        self.features, self.weights = self.views["given.features"], self.views["states.weights"]
        names = [name for name in self.views if name.startswith("given.")]
        assert names[0] == "given.features"
        self._places = [self.views[name] for name in names[1:]]
        self._scale = None if before.scale is None else [self.views[f"states.scale.{name}"] for name in RunningScale._fields]
        self._make_scale = type(before.scale)

    def learn(self, before: H, row: HasFeatures) -> bool:
        """Learn from a row; where that is left to Python, nothing has changed."""
        if row.features.shape != self.features.shape:
            return False
        if not self.ahead and before is not self.equal_to:
            self.write(before)
        self.features[...] = row.features
        for place, number in zip(self._places, _rest(row), strict=True):
            place[...] = number
        return self.run()

    def scale(self) -> RunningScale | None:
        """The scale of the features as the memory has it."""
        if self._scale is None:
            return None
        rows, *rest = self._scale
        return self._make_scale(float(rows), *rest)  # type: ignore[misc]


def _rest(row: Any) -> list[Any]:
    """The leaves of a row after its features."""
    rest: list[Any] = []
    for part in row[1:]:
        if isinstance(part, tuple):
            rest.extend(records.leaves(part).values())
        elif part is not None:
            rest.append(part)
    return rest


L = TypeVar("L")


def numbers_of(rules: L) -> L:
    """The rules for a compiler, which has no use for names."""
    return records.transform(lambda leaf: leaf if isinstance(leaf, (float, int, np.ndarray, np.number, np.bool_)) else None, rules)


def demand_sizes(rows: Array) -> None:
    """Refuse features whose squares cannot be added up."""
    if rows.size and np.abs(rows).max() > LARGEST**0.5:
        raise InputError(f"X must be at most {LARGEST**0.5:g} in size, not {np.abs(rows).max():.3g}")


class RowModel(Generic[H, W]):
    """What was learned from rows, by the rules of a plan.

    ``plan.made(features)`` gives the rules for so many features and what is held before the first row; ``rules.learn(held, row)`` what is
    held after a row; ``plan.widened(rules, held, wide, start)`` what is held with room for more features, which were 0 in every row so far,
    by the rules `wide`, which begin with `start`.

    Where features are scaled it is by the rows learned before: a row is learned, and scored, as the past sees it, and its own numbers count
    from the next one on.
    """

    def __init__(self, features: int, plan: Any, engine: str = "python") -> None:
        engine = check_name(engine, ENGINES_OF_ROWS)
        self.plan, self.features, self.engine = plan, features, engine
        self.rules, start = plan.made(features)
        if engine == "compiled":
            check_compiled(numbers_of(self.rules))
            require_compiler()  # if it is missing, now is the time to say so
        self._held: H = start
        self._blank = start
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
        if self.engine == "compiled" and self.features and self._fast(row).learn(self._held, row):
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
        engine = check_name(engine)
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
    """A leaf in the shape of a wider one, with what that has where it has nothing."""
    if np.shape(leaf) == np.shape(room):
        return leaf
    wide = np.array(room)
    wide[tuple(slice(length) for length in np.shape(leaf))] = leaf
    return wide
