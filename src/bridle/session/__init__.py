"""A policy driven by a caller, round by round, for months."""

from bridle.session.session import Session

__all__ = ["Session"]
