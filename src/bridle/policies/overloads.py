"""`policy` with one overload for every registered name (overloads.pyi): editors complete parameters, type checkers refuse others."""

from bridle.policies.registry import policy

__all__ = ["policy"]
