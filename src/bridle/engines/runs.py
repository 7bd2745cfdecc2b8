"""Several runs side by side: the arrays of some of them, as an engine wants them, and back.

Records of several runs come with a runs axis in front, and ``(runs, 1)`` for a number of each. A leaf of the policy is a run's own where
its shape is not that of a single run's; states always are; the adversary and its draws are where there are several of them. An engine has
the runs along the first axis, or along the last, where neighbours in memory are neighbours in the innermost loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from bridle import records
from bridle.core import InputError
from bridle.engines.round import RunBatch, check_compiled, cores
from bridle.ops import Array, Scalar
from bridle.records import R

T = TypeVar("T")

Parts: TypeAlias = tuple[tuple[object, object], tuple[object, object], object]
"""The records that a round is made of: constants (policy, adversary), states of both, and draws."""


class RunLayout(NamedTuple):
    """How several runs are laid out: the parts of a `single` run, and parts of flags that say which leaves are a run's `own`."""

    single: Parts
    own: Parts
    runs: int


class RunArrays(NamedTuple):
    """The arrays of some neighbouring runs, with a runs axis where they are a run's own: constants, states and draws."""

    constants: list[Array]
    states: list[Array]
    draws: list[Array]


def layout_of(batch: RunBatch) -> RunLayout:
    """How the runs of a batch are laid out."""
    policy, alone, players, state, _, draws = batch
    check_compiled(policy, *players[:1], *draws[:1])
    x = np.asarray(policy.decide(state))
    single = ((alone, players[0]), (alone.init(x[0]), players[0].init()), draws[0])
    own_policy = records.transform(lambda leaf, lone: np.shape(leaf) != np.shape(lone), policy, alone)
    own_adversary = records.transform(lambda _: len(players) > 1, players[0])
    own_draws = records.transform(lambda _: len(draws) > 1, draws[0])
    return RunLayout(single, ((own_policy, own_adversary), records.transform(lambda _: True, single[1]), own_draws), len(x))


def arrays_of(layout: RunLayout, batch: RunBatch, which: Sequence[int], last: bool = False) -> RunArrays:
    """The arrays of these runs, with the runs along the first axis (of draws: after time) or along the last."""
    runs, axis = len(which), -1 if last else 0

    def leaves(part: object) -> list[Scalar]:
        return list(records.leaves(part).values())

    def of_runs(leaf: Scalar, one: Scalar, own: object) -> Array:
        if not own:
            return contiguous(leaf)
        shape = np.shape(one)
        chosen = np.broadcast_to(leaf, (runs, *shape)) if np.shape(leaf) == shape else np.asarray(leaf)[list(which)]
        if chosen.size != runs * int(np.prod(shape)):
            raise InputError(f"a leaf of shape {np.shape(leaf)} is not one of shape {shape} for every run; use engine 'python'")
        return np.ascontiguousarray(np.moveaxis(np.reshape(chosen, (runs, *shape)), 0, axis), dtype=float)

    def of_each(several: Sequence[object], axis: int) -> list[Array]:
        """The leaves of one record as they are, or those of one record for each run side by side."""
        if len(several) == 1:
            return [contiguous(leaf) for leaf in leaves(several[0])]
        columns = zip(*(leaves(several[i]) for i in which), strict=True)
        return [np.stack([np.asarray(leaf, dtype=float) for leaf in column], axis=axis) for column in columns]

    (alone, _), begun, _ = layout.single
    (own_policy, _), own_states, _ = layout.own
    policy = [of_runs(*each) for each in zip(leaves(batch.policy), leaves(alone), leaves(own_policy), strict=True)]
    states = [of_runs(*each) for each in zip(leaves((batch.state, batch.foe)), leaves(begun), leaves(own_states), strict=True)]
    return RunArrays([*policy, *of_each(batch.players, axis)], states, of_each(batch.draws, -1 if last else 1))


def contiguous(leaf: Scalar) -> Array:
    """A leaf as an array of floats in C order; a number as one without axes."""
    return np.ascontiguousarray(leaf, dtype=float) if np.ndim(leaf) else np.array(leaf, dtype=float)


def filled(like: R, arrays: Iterable[object]) -> R:
    """A record like this one, of these leaves."""
    left = iter(arrays)
    return records.transform(lambda _: next(left), like)


def joined(like: R, groups: Iterable[Iterable[Array]], lead: int, last: bool = False) -> R:
    """The arrays of all groups as a record with the runs axis after `lead` others, and numbers as ``(runs, 1)``."""
    together = [np.concatenate(arrays, axis=-1 if last else lead) for arrays in zip(*groups, strict=True)]

    def home(array: Array) -> Array:
        array = np.moveaxis(array, -1, lead) if last else array
        return array if array.ndim > lead + 1 else array[..., None]

    return filled(like, [home(array) for array in together])


def in_threads(work: Callable[[int, int], T], ends: list[int]) -> list[T]:
    """`work` on every group of runs between two of these ends, as many at a time as there are cores."""
    groups = list(pairwise(ends))
    if len(groups) == 1:
        return [work(*groups[0])]
    with ThreadPoolExecutor(min(len(groups), cores())) as pool:
        return list(pool.map(lambda both: work(*both), groups))


def group_ends(runs: int, most: int, least: int) -> list[int]:
    """Where groups of at most so many runs begin and end: as many as keep all cores busy, unless they would be smaller than `least`."""
    busy, needed = cores(), -(-runs // most)
    count = max(1, min(busy, runs // least), -(-needed // busy) * busy if needed > 1 else 1)
    return [runs * n // count for n in range(count + 1)]


class LeafShape:
    """The shape of a leaf; no tuple, which would be a record."""

    def __init__(self, *axes: int) -> None:
        self.axes = axes


def shapes(part: R, skip: int = 0) -> R:
    """A record of the shapes of the leaves, without so many leading axes."""
    return records.transform(lambda leaf: LeafShape(*np.shape(leaf)[skip:]), part)
