"""Records: every structural operation against its inverse or against a loop, on nested records of any shape."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle import records


class Pair(NamedTuple):
    first: Any
    second: Any


class Triple(NamedTuple):
    x: Any
    y: Any
    z: Any


class Nothing(NamedTuple):
    """A record without parts, as a parameter-free potential is."""


SHAPES = ((), (1,), (2,), (3,), (2, 3), (3, 1))
skeletons = st.recursive(
    st.sampled_from([None, Nothing, (), *SHAPES[1:], "scalar"]),
    lambda inner: st.one_of(
        st.tuples(st.just(Pair), inner, inner), st.tuples(st.just(Triple), inner, inner, inner), st.tuples(st.just(tuple), inner, inner)
    ),
    max_leaves=8,
)


def build(skeleton: Any, rng: np.random.Generator) -> Any:
    """A record of this structure with random leaves: floats and arrays."""
    if skeleton is None:
        return None
    if skeleton is Nothing:
        return Nothing()
    if skeleton == "scalar":
        return float(rng.standard_normal())
    if skeleton and isinstance(skeleton[0], type):
        parts = [build(part, rng) for part in skeleton[1:]]
        return tuple(parts) if skeleton[0] is tuple else skeleton[0](*parts)
    return rng.standard_normal(skeleton) if skeleton else ()


cases = st.tuples(skeletons, st.integers(0, 2**32 - 1), st.integers(1, 4))


def several(case) -> tuple[list[Any], np.random.Generator]:
    skeleton, seed, count = case
    rng = np.random.default_rng(seed)
    return [build(skeleton, rng) for _ in range(count)], rng


def same(a: Any, b: Any) -> None:
    """Equal in structure, types of records, shapes and numbers; a scalar is a float, nothing else."""
    assert type(a) is type(b)
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for p, q in zip(a, b, strict=True):
            same(p, q)
    elif isinstance(a, np.ndarray):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b


def flat(record: Any) -> list[Any]:
    """The leaves in order, by a walk of our own."""
    if isinstance(record, tuple):
        return [leaf for part in record for leaf in flat(part)]
    return [] if record is None else [record]


@given(cases)
def test_leaves_name_every_leaf_in_order(case):
    (record, *_), _ = several(case)
    found = records.leaves(record, "top")
    assert [id(leaf) for leaf in found.values()] == [id(leaf) for leaf in flat(record)]
    for name, leaf in found.items():
        start, *path = name.split(".")
        assert start == "top"
        assert reduce(lambda node, part: node[int(part)] if part.isdigit() else getattr(node, part), path, record) is leaf
    bare = records.leaves(record)
    assert list(bare) == [name.removeprefix("top").removeprefix(".") for name in found]


@given(cases)
def test_transform_keeps_the_structure_and_lines_leaves_up(case):
    made, _ = several(case)
    same(records.transform(lambda leaf: leaf, made[0]), made[0])
    seen = []
    records.transform(lambda *parts: seen.append(parts), *made)
    assert [tuple(map(id, parts)) for parts in seen] == [tuple(map(id, parts)) for parts in zip(*map(flat, made), strict=True)]
    same(records.rebuild(made[0], made[0]) if isinstance(made[0], tuple) else made[0], made[0])


@given(cases)
def test_nodes_are_all_records_inside(case):
    (record, *_), _ = several(case)

    def count(node: Any) -> int:
        return 1 + sum(map(count, node)) if isinstance(node, tuple) else 0

    found = list(records.nodes(record))
    assert len(found) == count(record)
    assert not found or found[0] is record


def test_transform_refuses_other_structures():
    with pytest.raises(ValueError, match="argument 2"):
        records.transform(lambda a, b: a + b, (1.0, 2.0), (1.0, 2.0, 3.0))


@settings(max_examples=200)
@given(cases)
def test_stack_take_and_unstack_undo_each_other(case):
    made, _ = several(case)
    tall = records.stack(made)
    for i, record in enumerate(made):
        same(records.take(tall, float(i)), record)
    for got, record in zip(records.unstack(tall, len(made)), made, strict=True):
        same(got, record)
    for leaf, parts in zip(flat(tall), zip(*map(flat, made), strict=True), strict=True):
        np.testing.assert_array_equal(leaf, np.array(parts))


@given(cases)
def test_stack_along_another_axis(case):
    """axis=1 is for runs beside each other in sequences over time: every leaf has a time axis first."""
    made, _ = several(case)
    sequences = [records.stack([record, record]) for record in made]
    wide = records.stack(sequences, axis=1)
    for leaf, parts in zip(flat(wide), zip(*map(flat, sequences), strict=True), strict=True):
        assert leaf.shape == (2, len(made), *parts[0].shape[1:])
        for r, part in enumerate(parts):
            np.testing.assert_array_equal(leaf[:, r], part)


@given(cases, st.integers(0, 4), st.integers(0, 4))
def test_cut_and_join_undo_each_other(case, i, j):
    made, _ = several(case)
    tall = records.stack(made)
    i, j = sorted((min(i, len(made)), min(j, len(made))))
    parts = [records.cut(tall, 0, i), records.cut(tall, i, j), records.cut(tall, j, len(made))]
    same(records.join(parts), tall)


@given(cases)
def test_widen_gives_scalars_of_each_run_a_last_axis(case):
    made, _ = several(case)
    tall = records.stack(made)
    wide = records.widen(tall, 1)
    for before, after in zip(flat(tall), flat(wide), strict=True):
        assert after.shape == ((len(made), 1) if before.ndim == 1 else before.shape)
        np.testing.assert_array_equal(after.reshape(before.shape), before)
    # Over time and runs, a scalar has both axes and gets its third.
    deep = records.widen(records.stack([tall, tall], axis=1), 2)
    for before, after in zip(flat(tall), flat(deep), strict=True):
        assert after.shape == (len(made), 2, *(before.shape[1:] or (1,)))


@given(cases, st.integers(1, 4))
def test_spread_is_that_many_equal_runs(case, runs):
    (record, *_), _ = several(case)
    wide = records.spread(record, runs)
    same(wide, records.widen(records.stack([record] * runs), 1))
    for leaf, before in zip(flat(wide), flat(record), strict=True):
        kept = np.array(before)
        leaf += 1.0  # its own memory: no two runs, and not the record, share it
        np.testing.assert_array_equal(leaf, np.broadcast_to(kept + 1.0, leaf.shape))
        np.testing.assert_array_equal(before, kept)


@given(cases)
def test_choose_takes_whole_records_or_run_by_run(case):
    made, rng = several(case)
    a, b = made[0], records.transform(lambda leaf: leaf + 1.0, made[0])
    for flag, expected in ((True, a), (False, b), (np.True_, a), (np.False_, b)):
        assert records.choose(flag, a, b) is expected
    runs = 3
    flags = rng.random((runs, 1)) < 0.5
    tall = [records.transform(lambda leaf: leaf.reshape(runs, -1), records.spread(record, runs)) for record in (a, b)]
    chosen = records.choose(flags, *tall)
    for leaf, p, q in zip(flat(chosen), *map(flat, tall), strict=True):
        for r in range(runs):
            np.testing.assert_array_equal(leaf[r], p[r] if flags[r, 0] else q[r])


@pytest.mark.compiles
def test_jax_takes_and_chooses_inside_a_trace():
    jax = pytest.importorskip("jax")
    pytest.importorskip("bridle.engines.jax")  # makes JAX's arrays known
    jnp = jax.numpy
    made = [Pair(float(i), Triple(np.arange(3.0) + i, None, (np.full((2, 2), float(i)),))) for i in range(4)]
    tall = records.stack(made)
    with jax.enable_x64(True):
        traced = records.transform(jnp.asarray, tall)
        take = jax.jit(lambda record, i: records.take(record, i))
        choose = jax.jit(lambda record, i: records.choose(i > 1.0, records.take(record, i), records.take(record, 0.0 * i)))
        for i in range(4):
            for got, expected in ((take(traced, float(i)), made[i]), (choose(traced, float(i)), made[i if i > 1 else 0])):
                assert type(got) is Pair
                for leaf, part in zip(flat(got), flat(expected), strict=True):
                    np.testing.assert_array_equal(leaf, part)
