"""Adversaries: environments that answer a decision with a round, and may adapt to what they see.

An adversary is a record. `init()` is its state before round 1 and `answer(state, x)` its reply. One that needs random numbers has
`deal(rng, rounds)`, which draws a block of rounds ahead with NumPy (so that every engine sees the same numbers), and is handed this round's
share as a third argument. One whose rounds were there before the game has `replay(start, stop)` instead, and a `player`
that stands for it in an engine. Its `oblivious` says that its rounds do not depend on the decisions; the class decorators `oblivious` and
`adaptive` set it.
"""

from bridle.engines.round import block_length
from bridle.problems._paper import CoinPerCoordinate, Fixed, Minimax, RandomHalfspaces
from bridle.problems.base import adaptive, oblivious
from bridle.problems.dealing import deal_blocks, player
from bridle.problems.recorded import Recorded

__all__ = [
    "CoinPerCoordinate",
    "Fixed",
    "Minimax",
    "RandomHalfspaces",
    "Recorded",
    "adaptive",
    "block_length",
    "deal_blocks",
    "oblivious",
    "player",
]
