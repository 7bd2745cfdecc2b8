"""Several runs side by side: the arrays of some of them, as an engine wants them, and back.

Records of several runs come with a runs axis in front, and ``(runs, 1)`` for a number of each. A leaf of the policy is a run's own where
its shape is not that of a single run's; states always are; the adversary and its draws are where there are several of them. An engine has
the runs along the first axis, or along the last, where neighbours in memory are neighbours in the innermost loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bridle import records
from bridle.core import InputError
from bridle.engines.round import Several, check_compiled, cores


class Seats(NamedTuple):
    """The records of a single run: (policy, adversary), (states of both), draws; and records that say which of their leaves are its own."""

    single: tuple[Any, Any, Any]
    own: tuple[Any, Any, Any]
    runs: int = 1


def seats(given: Several) -> Seats:
    """What a single run is made of, and what of it is its own."""
    policy, alone, players, state, _, draws = given
    check_compiled(policy, *players[:1], *draws[:1])
    x = np.asarray(policy.decide(state))
    single = ((alone, players[0]), (alone.init(x[0]), players[0].init()), draws[0])
    mine = records.transform(lambda leaf, lone: np.shape(leaf) != np.shape(lone), policy, alone)
    theirs = records.transform(lambda _: len(players) > 1, players[0])
    dealt = records.transform(lambda _: len(draws) > 1, draws[0])
    return Seats(single, ((mine, theirs), records.transform(lambda _: True, single[1]), dealt), len(x))


def alone(constants: Any, states: Any, draws: Any) -> Seats:
    """The same for a run that stands alone: nothing is told from other runs, but its states are its own."""
    single = (constants, states, draws)
    return Seats(single, tuple(records.transform(lambda _, mine=part is states: mine, part) for part in single))


class Group(NamedTuple):
    """The arrays of some neighbouring runs, with a runs axis where they are a run's own: constants, states and draws."""

    constants: list[np.ndarray]
    states: list[np.ndarray]
    draws: list[np.ndarray]


def group(where: Seats, given: Several, who: Sequence[int], last: bool = False) -> Group:
    """The arrays of these runs, with the runs along the first axis (of draws: after time) or along the last."""
    policy, players, states, draws = given.policy, given.players, (given.state, given.foe), given.draws
    runs, axis = len(who), -1 if last else 0

    def leaves(part: Any) -> list[Any]:
        return list(records.leaves(part).values())

    def part(leaf: Any, one: Any, own: bool) -> np.ndarray:
        if not own:
            return plain(leaf)
        shape = np.shape(one)
        mine = np.broadcast_to(leaf, (runs, *shape)) if np.shape(leaf) == shape else leaf[list(who)]
        if mine.size != runs * int(np.prod(shape)):
            raise InputError(f"a leaf of shape {np.shape(leaf)} is not one of shape {shape} for every run; use engine 'python'")
        return np.ascontiguousarray(np.moveaxis(np.reshape(mine, (runs, *shape)), 0, axis), dtype=float)

    (lone, _), begun, _ = where.single
    constants = [part(*each) for each in zip(leaves(policy), leaves(lone), leaves(where.own[0][0]), strict=True)]
    constants += _beside([leaves(each) for each in (players if len(players) == 1 else [players[i] for i in who])], axis)
    held = [part(*each) for each in zip(leaves(states), leaves(begun), leaves(where.own[1]), strict=True)]
    dealt = _beside([leaves(each) for each in (draws if len(draws) == 1 else [draws[i] for i in who])], -1 if last else 1)
    return Group(constants, held, dealt)


def plain(leaf: Any) -> np.ndarray:
    """A leaf as an array of floats; a number as one without axes."""
    return np.ascontiguousarray(leaf, dtype=float) if np.ndim(leaf) else np.array(leaf, dtype=float)


def _beside(several: list[list[Any]], axis: int) -> list[np.ndarray]:
    """The leaves of one record as they are, or those of several records side by side."""
    if len(several) == 1:
        return [plain(leaf) for leaf in several[0]]
    return [np.stack([np.asarray(leaf, dtype=float) for leaf in leaves], axis=axis) for leaves in zip(*several, strict=True)]


def record(like: Any, arrays: list[np.ndarray]) -> Any:
    """A record of these arrays."""
    left = iter(arrays)
    return records.transform(lambda _: next(left), like)


def whole(like: Any, groups: Sequence[Any], lead: int, last: bool = False) -> Any:
    """The arrays of all groups as a record with the runs axis after `lead` others, and numbers as ``(runs, 1)``."""
    together = [np.concatenate(arrays, axis=-1 if last else lead) for arrays in zip(*groups, strict=True)]

    def home(array: np.ndarray) -> np.ndarray:
        array = np.moveaxis(array, -1, lead) if last else array
        return array if array.ndim > lead + 1 else array[..., None]

    return record(like, [home(array) for array in together])


def in_threads(work: Callable[[int, int], Any], ends: list[int]) -> list[Any]:
    """`work` on every group of runs between two of these ends, as many at a time as there are cores."""
    groups = list(pairwise(ends))
    if len(groups) == 1:
        return [work(*groups[0])]
    with ThreadPoolExecutor(min(len(groups), cores())) as pool:
        return list(pool.map(lambda both: work(*both), groups))


def shares(runs: int, most: int, least: int) -> list[int]:
    """Where groups of at most so many runs begin and end: as many as keep all cores busy, unless they would be smaller than `least`."""
    busy, needed = cores(), -(-runs // most)
    count = max(1, min(busy, runs // least), -(-needed // busy) * busy if needed > 1 else 1)
    return [runs * n // count for n in range(count + 1)]
