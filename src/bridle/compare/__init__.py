"""Grids of games: run, store, rank, show."""

from bridle.compare.run import compare

__all__ = ["compare"]
