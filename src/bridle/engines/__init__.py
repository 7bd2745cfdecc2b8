"""Engines: each advances a game by a block of rounds, by repeating `game.turn`. The only files that import compilers."""
