"""Random little functions, written out as loops for one run or several, over several rounds: the same numbers as JAX gives."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from jax import numpy as jnp

from bridle.engines.codegen.llvm import SIDE_BY_SIDE
from bridle.engines.codegen.loops import lower
from bridle.engines.codegen.trace import trace_of, trace_runs
from bridle.engines.runs import LeafShape
from helpers.compiled_games import run_both_ways
from helpers.extent import examples

N, M, ROUNDS = 4, 3, 3
CONSTANTS, STATES, DRAWS = ((N,), ()), ((N,), (), (M, N)), ((N,), ())


def vec(v):
    return v if v.ndim == 1 else v.sum(0) if v.ndim == 2 else jnp.full(N, 1.0) * v


def mat(v):
    return v if v.ndim == 2 else jnp.outer(jnp.arange(1.0, M + 1), vec(v))


def num(v):
    return v if v.ndim == 0 else v.reshape(-1)[1]


def place(v):
    return jnp.floor(jnp.abs(v) * 7 + 0.13).astype(int) % N


def swap(a, b, c):
    return lax.fori_loop(0, 3, lambda i, s: (s[1], s[0]), (vec(a), vec(b)))[0]


def coupled(a, b, c):
    def step(i, s):
        return s[1] * 0.5 + s[0][i], s[0] + vec(b) * s[2], s[2] * 0.5 + s[1].sum() * 0.1

    return lax.fori_loop(0, 3, step, (vec(a), vec(b), num(c)))[0]


def until(a, b, c):
    """Runs leave this loop at different times."""
    return lax.while_loop(
        lambda s: (s[0] < 5) & (s[1].sum() < num(c) + 2),
        lambda s: (s[0] + 1, s[1] + jnp.roll(jnp.abs(s[1]), 1) * 0.3 + 0.1 * vec(b)),
        (place(num(a)), vec(a)),
    )[1]


def nested(a, b, c):
    return lax.fori_loop(0, 2, lambda i, s: lax.fori_loop(0, 2, lambda j, r: r[place(vec(b))] * 0.7 + s * 0.2, s + i), vec(a))


STEPS = [
    lambda a, b, c: vec(a) + vec(b) * 0.5,
    lambda a, b, c: jnp.sin(vec(a)) * num(b),
    lambda a, b, c: mat(a) - vec(b),
    lambda a, b, c: mat(a).sum(0) * 0.3,
    lambda a, b, c: mat(a).sum(1)[0] + num(b),
    lambda a, b, c: jnp.tanh(vec(a)).sum(),
    lambda a, b, c: vec(a).max() - vec(b).min(),
    lambda a, b, c: vec(a)[::-1] * 0.9,
    lambda a, b, c: jnp.roll(vec(a), 1) + vec(b),
    lambda a, b, c: vec(a)[place(vec(b))],
    lambda a, b, c: mat(a)[:, place(vec(b))],
    lambda a, b, c: vec(a)[place(num(b))],
    lambda a, b, c: vec(a).at[place(num(b))].set(num(c)),
    lambda a, b, c: vec(a).at[place(vec(b))].add(vec(c) * 0.3),
    lambda a, b, c: vec(a).at[place(vec(b))].set(0.25),
    lambda a, b, c: mat(a).at[place(num(b)) % M].set(vec(c)),
    lambda a, b, c: lax.dynamic_update_slice(vec(a), vec(b)[:2] + 1.0, (place(num(c)),)),
    lambda a, b, c: lax.dynamic_update_slice(mat(a), mat(b)[:2, 1:] * 0.5, (place(num(c)) - 1, place(num(b)))),
    lambda a, b, c: lax.dynamic_slice(mat(a), (place(num(b)) - 2, 0), (1, N))[0],
    lambda a, b, c: jnp.where(vec(a) > vec(b), vec(c), -vec(a)),
    lambda a, b, c: jnp.where(num(a) > 0, vec(b), vec(c)),
    lambda a, b, c: jnp.cumsum(vec(a)) * 0.3,
    lambda a, b, c: jnp.cumsum(mat(a), axis=0) * 0.3,
    lambda a, b, c: lax.cummax(vec(a)),
    lambda a, b, c: jnp.sort(vec(a)),
    lambda a, b, c: jnp.argmax(vec(a)) * 0.1 + vec(b),
    lambda a, b, c: jnp.pad(mat(a) @ vec(b) * 0.2, (0, 1)),
    lambda a, b, c: (mat(a) @ mat(b).T).sum() * 0.05,
    lambda a, b, c: jnp.concatenate([vec(a)[1:], num(b)[None]]),
    lambda a, b, c: jnp.concatenate([mat(a)[1:], vec(b)[None]]),
    lambda a, b, c: jnp.pad(vec(a)[:2], (1, 1)) + 0.1,
    lambda a, b, c: lax.scan(lambda s, v: (s * 0.5 + v, jnp.cumsum(s)[1] + v), vec(a), mat(b))[0],
    lambda a, b, c: lax.scan(lambda s, v: (s * 0.5 + v, s[::-1] + v * 0.2), vec(a), mat(b))[1],
    lambda a, b, c: lax.scan(lambda s, v: (s * 0.5 + v.mean(), s + v.sum()), num(a), mat(b), reverse=True)[1].sum() * 0.1,
    lambda a, b, c: lax.cond(num(a) > 0.2, lambda u, v: u * 0.5 + v.sum(), lambda u, v: jnp.cumsum(v), vec(b), vec(c)),
    lambda a, b, c: lax.fori_loop(0, M, lambda i, s: s.at[i].set(s[(i + 1) % M] + vec(b)), mat(a)),
    lambda a, b, c: (vec(a) - vec(a).mean()) / (1.0 + jnp.abs(vec(b)).sum()),
    lambda a, b, c: jnp.exp(-jnp.abs(mat(a))),
    lambda a, b, c: mat(a).T.reshape(-1)[:N],
    lambda a, b, c: jnp.maximum(mat(a), mat(b)).T.reshape(M, N),
    lambda a, b, c: vec(a).reshape(2, 2).sum(1)[0] + vec(b).reshape(2, 2).T.reshape(-1),
    swap,
    coupled,
    until,
    nested,
]


def function_of(program):
    """A round: each step takes three of the values before it, the last ones are the new states and what is kept."""

    def one(constants, states, draw):
        made = [*constants, *states, *draw]
        for step, *operands in program:
            made.append(STEPS[step](*(made[-1 - i % len(made)] for i in operands)))
        new = jnp.sin(vec(made[-3]) * 0.7 + 0.1), jnp.sin(num(made[-2]) * 0.7), jnp.sin(mat(made[-1]) * 0.7)
        return new, (made[-1], made[-2], made[len(made) // 2])

    return one


def played(one, constants, states, draws):
    """What JAX makes of a run: the last states, and what is kept of each round."""
    kept = []
    with jax.enable_x64(True), jax.disable_jit():
        constants, states = (tuple(map(jnp.asarray, part)) for part in (constants, states))
        for t in range(ROUNDS):
            states, seen = one(constants, states, tuple(jnp.asarray(draw[t]) for draw in draws))
            kept.append(seen)
        return [np.asarray(part, dtype=float) for part in (*states, *(jnp.stack(parts) for parts in zip(*kept, strict=True)))]


def agrees(one, runs: int, own, seed: int) -> None:
    """`runs` is 0 for one run by itself; `own` says which constants and draws differ between runs."""
    rng, count = np.random.default_rng(seed), max(runs, 1)
    flags = (own[:2], (True,) * len(STATES), own[2:])
    parts = [
        [rng.normal(size=(*lead, *shape, count if mine else 1)) + np.zeros(count) for shape, mine in zip(part, mine_all, strict=True)]
        for part, mine_all, lead in zip((CONSTANTS, STATES, DRAWS), flags, ((), (), (ROUNDS,)), strict=True)
    ]

    def expected(factor):
        each = (played(one, *[[factor * a[..., r] for a in part] for part in parts]) for r in range(count))
        return [np.stack(runs_of, -1) for runs_of in zip(*each, strict=True)]

    # A random function may make much of a rounding: what it makes of another in its inputs says how much.
    want, near = expected(1.0), expected(1.0 + 1e-14)
    shapes = tuple(tuple(LeafShape(*shape) for shape in part) for part in (CONSTANTS, STATES, DRAWS))
    if runs:
        source = lower(trace_runs(one, shapes, flags), len(CONSTANTS), len(STATES), wide=8)
        given = [
            a if mine else a[..., 0].copy() for part, flag in zip(parts, flags, strict=True) for a, mine in zip(part, flag, strict=True)
        ]
    else:
        source = lower(trace_of(one, *shapes)[0], len(CONSTANTS), len(STATES))
        given = [a[..., 0].copy() for part in parts for a in part]
        want, near = ([a[..., 0] for a in made] for made in (want, near))
    if runs:  # machine code has them in eights: the last one is played again
        wide = -(-count // SIDE_BY_SIDE) * SIDE_BY_SIDE
        same = [flag for part in flags for flag in part]
        given = [np.concatenate([a, *[a[..., -1:]] * (wide - count)], -1) if mine else a for a, mine in zip(given, same, strict=True)]
        made = [a[..., :count] for a in run_both_ways(source, ROUNDS, wide, tuple(given), [(*a.shape[:-1], wide) for a in want])]
    else:
        made = run_both_ways(source, ROUNDS, 1, tuple(given), [a.shape for a in want])
    for a, b, c in zip(made, want, near, strict=True):
        loose = 1e-9 * max(1.0, np.abs(b).max()) + 100.0 * np.abs(b - c).max()
        np.testing.assert_allclose(a, b, rtol=0.0, atol=loose, err_msg=source.function())


OPERAND = st.integers(0, 8)


@pytest.mark.compiles
@settings(max_examples=examples(8, 40))
@given(
    st.lists(st.tuples(st.integers(0, len(STEPS) - 1), OPERAND, OPERAND, OPERAND), min_size=1, max_size=8),
    st.sampled_from([0, 1, 3]),
    st.tuples(*[st.booleans()] * 4),
    st.integers(0, 99),
)
def test_random_functions_are_written_out_right(program, runs, own, seed):
    agrees(function_of(program), runs, own, seed)


@pytest.mark.compiles
@pytest.mark.parametrize("runs", [0, 3])
def test_a_part_of_a_constant_at_a_constant_place_is_found_before_the_rounds(runs):
    """The place used to be looked up in the rounds, after the part had been read."""

    def one(constants, states, draw):
        part = lax.dynamic_slice(constants[0], (place(constants[1]),), (2,)) * 2.0
        return states, (jnp.outer(part, part) + draw[1], part.sum() + draw[1])

    agrees(one, runs, (False, False, True, True), 5)


@pytest.mark.compiles
@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("runs", [0, 5])
def test_a_window_that_reaches_outside_is_moved_in_or_dropped_as_a_whole(mode, runs):
    numbers = lax.ScatterDimensionNumbers(update_window_dims=(0,), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,))
    how = lax.GatherScatterMode.CLIP if mode == "clip" else lax.GatherScatterMode.FILL_OR_DROP

    def one(constants, states, draw):
        at = jnp.floor(draw[1] * 3.0 + 0.13).astype(int)
        put = lax.scatter(states[0], at[None], draw[0][:3], numbers, mode=how)
        added = lax.scatter_add(states[0], at[None], draw[0][:3], numbers, mode=how)
        moved = lax.dynamic_update_slice(states[0], draw[0][1:], (at,))
        return (put, states[1], states[2]), (put, added, moved)

    for seed in range(4):
        agrees(one, runs, (True, True, True, True), seed)
