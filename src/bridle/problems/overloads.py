"""`problem` with one overload for every registered name (overloads.pyi): editors complete parameters, type checkers refuse others."""

from bridle.problems import problem

__all__ = ["problem"]
