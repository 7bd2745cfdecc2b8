"""Warnings, each kind at most once in a session."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from bridle.core import BridleWarning, outside
from bridle.ops import Array


class Watch(NamedTuple):
    """A stretch in which some limits were violated whenever somebody looked: since which round, where the action was, and which limits."""

    since: int
    x: Array
    limits: Array  # 1 or 0 for each


class WarningLog:
    """Which kinds of warning a session has given, by name, and in which round; `unsent` are those that nobody has heard of yet.

    A warning may be made an error. So it is sent only when all that led to it is done with, and the round is counted. `sizes`: the longest
    gradient of a cost and of a constraint, and the largest constraint value, when assumptions were last checked. `watch`: limits that have
    been violated for some time. A log that is `quiet` keeps its warnings until somebody takes them.
    """

    def __init__(self) -> None:
        self.rounds: dict[str, int] = {}
        self.unsent: list[BridleWarning] = []
        self.sizes = (0.0, 0.0, 0.0)
        self.watch: Watch | None = None
        self.quiet = False

    def clone(self) -> WarningLog:
        """A log of its own that begins like this one."""
        other = WarningLog()
        other.rounds, other.unsent, other.sizes, other.watch = self.rounds.copy(), self.unsent.copy(), self.sizes, self.watch
        other.quiet = self.quiet
        return other

    def fresh(self, kind: type[BridleWarning]) -> bool:
        """Whether no warning of this kind was given yet."""
        return kind.__name__ not in self.rounds

    def warn(self, kind: type[BridleWarning], message: str, round: int, **figures: object) -> None:
        """Note a warning, unless one of this kind was given before."""
        if self.fresh(kind):
            self.rounds[kind.__name__] = round
            self.unsent.append(kind(message, round, **figures))

    def send(self) -> None:
        """Give the warnings that were noted; each points at the caller's line. One that is made an error leaves the others for later."""
        while self.unsent and not self.quiet:
            warnings.warn(self.unsent.pop(0), stacklevel=outside())
