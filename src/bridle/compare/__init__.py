"""Grids of games: run, store, rank, show. The room itself can be called: ``bridle.compare(...)`` is ``bridle.compare.compare(...)``."""

import sys
from types import ModuleType
from typing import Any

from bridle.compare.comparison import Comparison
from bridle.compare.run import compare

__all__ = ["Comparison", "compare"]


class CallableRoom(ModuleType):
    """A module that can be called, as the function that it is named after."""

    def __call__(self, *given: Any, **named: Any) -> Comparison:
        return compare(*given, **named)


sys.modules[__name__].__class__ = CallableRoom
