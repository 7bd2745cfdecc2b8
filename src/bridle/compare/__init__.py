"""Grids of games: run, store, rank, show. The room itself can be called: ``bridle.compare(...)`` is ``bridle.compare.compare(...)``."""

import inspect
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from bridle.compare.comparison import Comparison
from bridle.compare.run import compare

__all__ = ["Comparison", "compare"]

__signature__ = inspect.signature(compare)  # what editors and `help` show of the call


class CallableRoom(ModuleType):
    """A module that can be called, as the function that it is named after."""

    def __call__(self, *given: Any, **named: Any) -> Comparison:
        return compare(*given, **named)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """A worker that is sent a function which mentions the room finds it by name, as any module."""
        return import_module, (self.__name__,)


CallableRoom.__call__.__doc__ = compare.__doc__
sys.modules[__name__].__class__ = CallableRoom
