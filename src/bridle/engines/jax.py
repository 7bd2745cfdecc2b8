"""The JAX engine: `round.turn` inside one compiled loop, compiled once per kind of policy and adversary.

Records are pytrees to JAX as they are, and their numbers are arguments of the compiled function, so other parameter values do not compile
again. Everything runs in 64-bit floats under JAX's context manager; the global setting is left alone.

Several runs are one run mapped over a first axis (`jax.vmap`). On a processor every core has its share of them, a hundred or so at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from types import SimpleNamespace
from typing import TypeAlias, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from bridle import ops, records
from bridle.core import Adversary, InputError, Policy, S
from bridle.engines import runs
from bridle.engines.round import Block, Collect, F, Marks, RunBatch, SingleRun, block_length, block_of, check_compiled, row_of, turn_for
from bridle.ops import Array, Flag, Scalar

T = TypeVar("T")

Sides: TypeAlias = tuple[Policy[S], Adversary[F]]
States: TypeAlias = tuple[S, F]


def _loop(count: int, body: Callable[[T], T], state: T, done: Callable[[T], Flag]) -> T:
    def going_on(at: tuple[int, T]) -> jax.Array:
        return (at[0] < count) & ~jnp.all(done(at[1]))

    return jax.lax.while_loop(going_on, lambda at: (at[0] + 1, body(at[1])), (0, state))[1]


ROLLED = ContextVar("ROLLED", default=False)
"""Whether a loop over few rows is traced as a loop: XLA is faster where it is written out, other compilers where it is not."""


def _each(count: int, body: Callable[[int, T], T], state: T) -> T:
    if ROLLED.get():
        return jax.lax.fori_loop(0, count, body, state)  # type: ignore[no-any-return]
    for i in range(count):
        state = body(i, state)
    return state


ops.register(jax.Array, SimpleNamespace(**{name: getattr(jnp, name) for name in dir(jnp)}, bridle_loop=_loop, bridle_each=_each))


def one_round(collect: Collect) -> Callable[[Sides[S, F], States[S, F], object], tuple[States[S, F], object]]:
    """`turn` as a function of constants (policy, adversary), states (of both) and a draw: the new states, and what is kept of the round."""

    def one(constants: Sides[S, F], states: States[S, F], draw: object) -> tuple[States[S, F], object]:
        (policy, adversary), (state, foe) = constants, states
        state, foe, feedback = turn_for(policy, adversary)(policy, adversary, state, foe, draw)
        return (state, foe), row_of(collect, state, feedback)

    return one


def _run(
    constants: object, states: T, draws: object, stops: Marks | None, count: int, rows: int, collect: Collect, own: runs.Parts | None = None
) -> tuple[T, object]:
    """Play `count` rounds and keep of each what is collected, in so many rows; or, for totals, play on to that many stops.

    How many there are is an argument like any other, so that a shorter last block is not compiled anew. `own` says which leaves have a
    first axis of several runs; None where there is a single one.
    """
    one: Callable[..., tuple[T, object]] = one_round(collect)  # type: ignore[assignment]
    if own is not None:
        one = jax.vmap(one, in_axes=records.transform(lambda mine: 0 if mine else None, own))

    def here(states: T, i: int) -> tuple[T, object]:
        draw = records.transform(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, i, 0, keepdims=False), draws)
        return one(constants, states, draw)

    def body(n: int, carry: tuple[T, object]) -> tuple[T, object]:
        states, room = carry
        if stops is not None:  # the totals are a part of the states
            first = jnp.where(n > 0, stops[n - 1], 0)
            states = jax.lax.fori_loop(first, stops[n], lambda i, states: here(states, i)[0], states)
            row = states[0].sums
        else:
            states, row = here(states, n)
        return states, records.transform(lambda all_, now: jax.lax.dynamic_update_index_in_dim(all_, now, n, 0), room, row)

    like = jax.eval_shape(here, states, 0)[1]
    room = records.transform(lambda leaf: jnp.zeros((rows, *leaf.shape)), like)
    return jax.lax.fori_loop(0, count, body, (states, room))  # type: ignore[no-any-return]


OPTIONS = {"xla_backend_optimization_level": 2, "xla_cpu_prefer_vector_width": 512}
"""Options of XLA on a processor: with them loops over about a hundred numbers take a third less time."""


@cache
def _compiled(platform: str) -> Callable[..., tuple[object, object]]:
    """`_run`, compiled for the devices of this platform."""
    fixed = ("rows", "collect", "own")
    if platform == "cpu":
        try:  # which options there are is a matter of XLA's version
            jax.jit(lambda x: x + 1.0, compiler_options=OPTIONS)(0.0)
            return jax.jit(_run, static_argnames=fixed, compiler_options=OPTIONS)
        except (TypeError, ValueError, RuntimeError):
            pass
    return jax.jit(_run, static_argnames=fixed)


def _device() -> jax.Device:
    """Where JAX puts arrays: a GPU where it sees one, unless the caller has set another default."""
    (device,) = jax.device_put(0.0).devices()
    return device


def advance(run: SingleRun[S, F], rounds: int, collect: Collect, marks: Marks | None = None) -> tuple[S, F, Block]:
    """See `Engine.advance`."""
    policy, adversary, state, foe, draws = run
    check_compiled(policy, adversary, draws)
    length = _length((policy, adversary, state), draws, rounds, policy.decide(state).shape[-1])
    (state, foe), rows = _played(_device(), (policy, adversary), (state, foe), draws, rounds, length, collect, marks=marks)
    return state, foe, block_of(rows, collect)


def advance_many(batch: RunBatch, rounds: int, collect: Collect, marks: Marks | None = None) -> tuple[object, object, Block]:
    """See `PlaysManyRuns.advance_many`."""
    layout, dim = runs.layout_of(batch), batch.policy.decide(batch.state).shape[-1]
    length = _length((batch.policy, batch.players[0], batch.state), batch.draws[0], rounds, dim)
    device = _device()  # threads do not inherit the caller's default
    # A GPU takes all runs at once; a core's share should be worth its while.
    ends = runs.group_ends(layout.runs, *SHARE) if device.platform == "cpu" else [0, layout.runs]

    def work(begin: int, end: int) -> tuple[tuple[object, object], object]:
        arrays = runs.arrays_of(layout, batch, range(begin, end))
        parts = tuple(runs.filled(like, part) for like, part in zip(layout.single, arrays, strict=True))
        return _played(device, *cast(runs.Parts, parts), rounds, length, collect, layout.own, marks)

    groups = runs.in_threads(work, ends)
    state, foe = runs.joined(groups[0][0], [records.leaves(states).values() for states, _ in groups], 0)
    rows = runs.joined(groups[0][1], [records.leaves(rows).values() for _, rows in groups], 1)
    return state, foe, block_of(rows, collect)


SHARE = (128, 8)
"""How many runs are played at a time, at most and at least: more do not fit into the cache, fewer are not worth a thread of their own."""


def _length(constants: object, draws: object, rounds: int, dim: int) -> int:
    """How many rounds a program is compiled for: no fewer than one of its kind was, so that a shorter last part is not compiled anew."""
    key = (
        tuple(type(node) for node in records.nodes((constants, draws))),
        tuple(np.shape(leaf) for leaf in records.leaves(constants).values()),
    )
    length = block_length(dim)
    while length < rounds:
        length *= 2  # few kinds of lengths, so few programs
    _LENGTHS[key] = max(length, _LENGTHS.get(key, 0))
    return _LENGTHS[key]


_LENGTHS: dict[tuple[tuple[type, ...], tuple[tuple[int, ...], ...]], int] = {}


def _played(
    device: jax.Device,
    constants: object,
    states: T,
    draws: object,
    rounds: int,
    length: int,
    collect: Collect,
    own: runs.Parts | None = None,
    marks: Marks | None = None,
) -> tuple[T, object]:
    """The states, and what is kept of so many rounds or of those that are marked, back in NumPy."""
    count = rounds if marks is None else len(marks)
    rows = length if marks is None else -(-count // ROWS) * ROWS
    with jax.enable_x64(True), jax.default_device(device):
        arrays = records.transform(lambda leaf: jnp.asarray(leaf, dtype=float), (constants, states))
        padded = records.transform(lambda leaf: jnp.asarray(_pad(leaf, length), dtype=float), draws)
        stops = None if marks is None else jnp.asarray(np.append(marks, np.full(rows - count, rounds)))
        played = _compiled(device.platform)(*arrays, padded, stops, count, rows=rows, collect=collect, own=own)
        after, kept_rows = records.transform(_home, jax.device_get(played))  # all leaves are on their way before the first is waited for
    return cast(T, after), records.cut(kept_rows, 0, count)


ROWS = 128
"""Rows for the rounds that are marked come in such numbers, so that not every block is compiled anew."""


def _pad(leaf: Array, length: int) -> Array:
    return leaf if len(leaf) == length else np.concatenate([leaf, np.zeros((length - len(leaf), *leaf.shape[1:]))])


def _home(leaf: Scalar) -> Scalar:
    """A leaf back in NumPy; a scalar as a float, as the Python engine has it."""
    array = np.asarray(leaf)
    return float(array) if array.ndim == 0 else array


def value_and_gradient(name: str, function: Callable[[Array], object], x: Array) -> tuple[float, Array]:
    """See `Differentiates.value_and_gradient`: automatic differentiation."""
    try:
        with jax.enable_x64(True):
            value, grad = jax.value_and_grad(lambda point: jnp.asarray(function(point), dtype=float).reshape(()))(
                jnp.asarray(x, dtype=float)
            )
            return float(value), np.asarray(grad)
    except TypeError as trouble:  # JAX's own complaints about what it cannot trace are TypeErrors
        reason = str(trouble).splitlines()[0]
        raise InputError(f"JAX cannot differentiate {name} ({reason}); write it with jax.numpy, or give a pair (value, gradient)") from None
