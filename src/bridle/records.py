"""Records: the NamedTuples of numbers that algorithms, states and functions are made of.

Everything here maps over the leaves of a record: naming them, rebuilding a record from them, and the few structural operations
(pick a time step, stack runs, choose between two states) that engines and wrappers share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np

from bridle import ops
from bridle.ops import Array, Flag, Scalar

R = TypeVar("R")
"""A record: what comes out is one of the same type as what went in, with other leaves."""


Arrays: TypeAlias = dict[str, Array]
"""Arrays under names: the leaves of records, the columns of a table."""


def is_record(value: object) -> TypeGuard[tuple[object, ...]]:
    """Whether `value` is a NamedTuple or a plain tuple, that is, a node and not a leaf."""
    return isinstance(value, tuple)


def children(record: tuple[object, ...]) -> list[tuple[str, object]]:
    """The parts of a record under their names; positions name the parts of a plain tuple."""
    names = getattr(record, "_fields", None) or [str(i) for i in range(len(record))]
    return list(zip(names, record, strict=True))


def rebuild(record: R, parts: Sequence[object]) -> R:
    """A record of the same type as `record` with other parts."""
    return record._make(parts) if hasattr(record, "_make") else tuple(parts)  # type: ignore[return-value]


def transform(function: Callable[..., object], record: R, *others: Any) -> R:
    """`function` applied to every leaf of `record`, with the leaves of `others` at the same places; None stays None.

    >>> transform(lambda a, b: a + b, (1.0, (2.0, None)), (10.0, (20.0, None)))
    (11.0, (22.0, None))
    """
    if is_record(record):
        return rebuild(record, [transform(function, *parts) for parts in zip(record, *others, strict=True)])  # type: ignore[return-value]
    return None if record is None else function(record, *others)  # type: ignore[return-value]


def unflatten(record: R) -> tuple[Callable[[Array, memoryview], R], int]:
    """A function that builds a record like this one from its leaves one after the other in a flat array, and how long that is.

    It is given the array, of which the record's arrays are then parts, and its `data`, from which single numbers are faster to get.

    >>> build, size = unflatten((1.0, (np.zeros(2), None)))
    >>> flat = np.array([5.0, 6.0, 7.0])
    >>> build(flat, flat.data), size
    ((5.0, (array([6., 7.]), None)), 3)
    """

    def builder(part: object, at: int) -> tuple[Callable[[Array, memoryview], object], int]:
        if is_record(part):
            makers = []
            for each in part:
                maker, at = builder(each, at)
                makers.append(maker)
            make = getattr(part, "_make", tuple)
            return (lambda array, numbers: make([maker(array, numbers) for maker in makers])), at
        if part is None:
            return (lambda array, numbers: None), at
        leaf = cast(Scalar, part)
        shape, end = np.shape(leaf), at + int(np.size(leaf))
        if not shape:
            return (lambda array, numbers: numbers[at]), end
        return (lambda array, numbers: array[at:end]) if len(shape) == 1 else (lambda array, numbers: array[at:end].reshape(shape)), end

    return cast("tuple[Callable[[Array, memoryview], R], int]", builder(record, 0))


def leaves(record: object, prefix: str = "") -> dict[str, Any]:
    """The leaves of a record under their dotted names, without the Nones.

    >>> leaves((1.0, (2.0, None)))
    {'0': 1.0, '1.0': 2.0}
    """
    if not is_record(record):
        return {} if record is None else {prefix: record}
    named: dict[str, Any] = {}
    for name, part in children(record):
        named |= leaves(part, f"{prefix}.{name}" if prefix else name)
    return named


def filled(record: R, named: dict[str, Any], prefix: str = "") -> R:
    """A record like this one with the leaves of these dotted names, the inverse of `leaves`; ValueError where one has another shape.

    >>> filled((1.0, (2.0, None)), {"a.0": 5.0, "a.1.0": 6.0}, "a")
    (5.0, (6.0, None))
    """
    if is_record(record):
        start = f"{prefix}." if prefix else ""
        return rebuild(record, [filled(part, named, start + name) for name, part in children(record)])  # type: ignore[return-value]
    if record is None:
        return record
    leaf = named[prefix]
    if np.shape(leaf) != np.shape(cast(Scalar, record)):
        raise ValueError(prefix)
    return cast(R, leaf if np.ndim(leaf) else float(leaf))


def under(prefix: str, named: Arrays) -> Arrays:
    """The leaves whose names begin like this, without it.

    >>> under("a.", {"a.0": 5.0, "b": 6.0})
    {'0': 5.0}
    """
    return {name.removeprefix(prefix): value for name, value in named.items() if name.startswith(prefix)}


def same(a: object, b: object) -> bool:
    """Whether two records are of one type and hold equal numbers throughout.

    >>> same((1.0, (2.0,)), (1.0, (2.0,))), same((1.0,), (2.0,))
    (True, False)
    """
    if a is b:
        return True
    if is_record(a) and is_record(b):
        return type(a) is type(b) and len(a) == len(b) and all(same(p, q) for p, q in zip(a, b, strict=True))
    return not (is_record(a) or is_record(b)) and bool(np.array_equal(cast(Scalar, a), cast(Scalar, b)))


def nodes(record: object) -> Iterator[tuple[object, ...]]:
    """The record itself and every record inside it."""
    if is_record(record):
        yield record
        for part in record:
            yield from nodes(part)


def choose(flag: Flag, a: R, b: R) -> R:
    """The record `a` where `flag` holds, else `b`."""
    if isinstance(flag, (bool, np.bool_)):
        return a if flag else b
    return transform(lambda p, q: ops.where(flag, p, q), a, b)


def take(record: R, i: Scalar) -> R:
    """Element `i` (a whole number, held as a float) of every leaf's first axis."""

    def pick(leaf: Array) -> Scalar:
        if isinstance(i, float) and isinstance(leaf, np.ndarray):
            part = leaf[int(i)]
            return float(part) if part.ndim == 0 else part
        return cast(Array, leaf[ops.namespace(i, leaf).asarray(i, dtype="int32")])

    return transform(pick, record)


def cut(record: R, start: int, stop: int) -> R:
    """The part of a sequence of records from `start` to `stop` along the first axis."""
    return transform(lambda leaf: leaf[start:stop], record)


def stack(records: Sequence[R], axis: int = 0) -> R:
    """Records of one structure as one record with a new axis, on NumPy arrays."""
    return transform(lambda *parts: np.stack([np.asarray(part, dtype=float) for part in parts], axis=axis), records[0], *records[1:])


def join(records: Sequence[R]) -> R:
    """Sequences of records one after the other along the first axis."""
    return transform(lambda *parts: np.concatenate(parts, axis=0), records[0], *records[1:])


def unstack(record: R, length: int) -> Iterator[R]:
    """The records of a sequence, one after the other; scalars come out as Python floats."""
    return cast("Iterator[R]", _unstacked(record, length))


def _unstacked(record: object, length: int) -> Iterator[object]:
    if record is None:
        yield from [None] * length
    elif is_record(record):
        for parts in zip(*(_unstacked(part, length) for part in record), strict=True):
            yield rebuild(record, parts)
        if not record:
            yield from [record] * length
    elif (leaf := cast(Array, record)).ndim == 1:
        yield from np.asarray(leaf).tolist()
    else:
        yield from leaf


def widen(record: R, outer: int) -> R:
    """Give per-run scalars their trailing axis: a leaf with only `outer` leading axes becomes ``(..., 1)``.

    With `outer` = 1 a sequence of records over time becomes a batch that can be evaluated at one decision in one call.
    """
    return transform(lambda leaf: leaf[..., None] if leaf.ndim == outer else leaf, record)


def spread(record: R, runs: int) -> R:
    """The record of one run as that of `runs` equal runs: ``()`` becomes ``(runs, 1)``, any other leaf gets a leading axis."""

    def widened(leaf: Scalar) -> Array:
        leaf = np.asarray(leaf, dtype=float)
        return np.full((runs, 1), leaf) if leaf.ndim == 0 else np.broadcast_to(leaf, (runs, *leaf.shape)).copy()

    return transform(widened, record)
