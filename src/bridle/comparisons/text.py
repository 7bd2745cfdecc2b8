"""Numbers and lists as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from bridle.showing.brief import count as count
from bridle.showing.numbers import NumberStyle as NumberStyle
from bridle.showing.numbers import number as number


def listing(names: Sequence[str]) -> str:
    """Names as a sentence lists them.

    >>> listing(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def seed_range(seeds: Sequence[int]) -> str:
    """Seeds in words: from the first to the last where none is missing, else one by one.

    >>> seed_range([0, 1, 2, 3]), seed_range([0, 2])
    ('0 to 3', '0, 2')
    """
    whole = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))
