"""`policy_for` with one overload for every registered name (overloads.pyi): editors complete parameters, type checkers refuse others."""

from bridle.game.play import policy_for

__all__ = ["policy_for"]
