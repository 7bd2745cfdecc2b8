"""A policy against a problem over a horizon, and what it was worth."""

from bridle.game.play import Trace, play, policy_for

__all__ = ["Trace", "play", "policy_for"]
