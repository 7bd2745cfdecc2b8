"""Rows learned in compiled code, which is ahead of what a model holds until somebody asks."""

from __future__ import annotations

from typing import Any

from bridle import records
from bridle.adapters.row_rules import H, LearnsRows, W, learn
from bridle.adapters.scaling import RunningScale
from bridle.engines.mirror import Mirror
from bridle.session.feedback import LARGEST


class CompiledRows(Mirror[H]):
    """`learn` in compiled code for rows of one kind, ahead of what the model holds."""

    def __init__(self, rules: LearnsRows[H, W], before: H, row: W) -> None:
        super().__init__(learn, rules, before, row, before, LARGEST**0.5)
        self.write(before)
        self.features, self.weights = self.views["given.features"], self.views["states.weights"]
        names = [name for name in self.views if name.startswith("given.")]
        assert names[0] == "given.features"
        self._places = [self.views[name] for name in names[1:]]
        self._scale = None if before.scale is None else [self.views[f"states.scale.{name}"] for name in RunningScale._fields]
        self._make_scale = type(before.scale)

    def learn(self, before: H, row: W) -> bool:
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
