"""Engines: each advances a game by a block of rounds, by repeating `game.turn`. The only files that import compilers."""

from bridle.engines.explain import explain

__all__ = ["explain"]
