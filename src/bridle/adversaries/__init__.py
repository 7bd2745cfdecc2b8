"""Opponents: environments that answer a decision with a round, and may adapt to what they see.

An adversary is a record. `init()` is its state before round 1 and `answer(state, x)` its reply. One that needs random numbers has
`deal(rng, rounds)`, which draws a block of rounds ahead with NumPy (so that every engine sees the same numbers), and is handed this round's
share as a third argument. `oblivious` says that its rounds do not depend on the decisions.
"""

from bridle.adversaries.basic import CoinPerCoordinate, Fixed, Minimax, RandomHalfspaces
from bridle.adversaries.dealing import block_length, deal_blocks

__all__ = ["CoinPerCoordinate", "Fixed", "Minimax", "RandomHalfspaces", "block_length", "deal_blocks"]
