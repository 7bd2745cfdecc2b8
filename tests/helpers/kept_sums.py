"""Sums of two games beside each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def kept(one: Iterable[Any], two: Iterable[Any]) -> list[tuple[Any, Any]]:
    """The pairs of sums that both games have; all but how far decisions moved, which is kept where somebody asks for it."""
    pairs = list(zip(one, two, strict=True))
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    assert len(pairs) - len(both) <= len(pairs) // 9
    return both
