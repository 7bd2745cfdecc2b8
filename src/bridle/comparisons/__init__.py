"""Grids of games: run, store, rank, show."""

from bridle.comparisons.comparison import Comparison
from bridle.comparisons.run import compare

__all__ = ["Comparison", "compare"]
