"""The JAX engine: the same turn inside one compiled loop, compiled once per kind of policy and adversary.

Records are pytrees to JAX as they are, and their numbers are arguments of the compiled function, so other parameter values do not compile
again. Everything runs in 64-bit floats under JAX's context manager; the global setting is left alone.

Several runs are one run mapped over a first axis (`jax.vmap`). On a processor every core has its share of them, a hundred or so at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bridle import ops, records
from bridle.core import InputError
from bridle.engines import runs
from bridle.engines.round import Block, Several, block_length, block_of, check_compiled, turn


def _loop(count: int, body: Any, state: Any, done: Any) -> Any:
    def going_on(at: Any) -> Any:
        return (at[0] < count) & ~jnp.all(done(at[1]))

    return jax.lax.while_loop(going_on, lambda at: (at[0] + 1, body(at[1])), (0, state))[1]


ROLLED = ContextVar("ROLLED", default=False)
"""Whether a loop over few rows is traced as a loop: XLA is faster where it is written out, other compilers where it is not."""


def _each(count: int, body: Any, state: Any) -> Any:
    if ROLLED.get():
        return jax.lax.fori_loop(0, count, body, state)
    for i in range(count):
        state = body(i, state)
    return state


ops.register(jax.Array, SimpleNamespace(**{name: getattr(jnp, name) for name in dir(jnp)}, bridle_loop=_loop, bridle_each=_each))


def one_round(collect: str) -> Callable[[Any, Any, Any], Any]:
    """`turn` as a function of constants (policy, adversary), states (of both) and a draw: the new states, and what is kept of the round.

    That is its cost, its constraint values, and with `collect` "x" the decision or "round" the round; with "sums" it is the totals of a
    policy that sums alone.
    """

    def one(constants: Any, states: Any, draw: Any) -> Any:
        (policy, adversary), (state, foe) = constants, states
        state, foe, feedback = turn(policy, adversary, state, foe, draw)
        if collect == "sums":
            return (state, foe), state.sums
        return (state, foe), (feedback.f, feedback.g, {"x": feedback.x, "round": feedback.round}.get(collect))

    return one


def _run(constants: Any, states: Any, draws: Any, stops: Any, count: Any, rows: int, collect: str, own: Any = None) -> Any:
    """Play `count` rounds and keep of each what is to be kept, in so many rows; or, with "sums", play on to that many stops.

    How many there are is an argument like any other, so that a shorter last block is not compiled anew. `own` says which leaves have a
    first axis of several runs; None where there is a single one.
    """
    one = one_round(collect)
    if own is not None:
        one = jax.vmap(one, in_axes=records.transform(lambda mine: 0 if mine else None, own))

    def here(states: Any, i: Any) -> Any:
        draw = records.transform(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, i, 0, keepdims=False), draws)
        return one(constants, states, draw)

    def body(n: Any, carry: Any) -> Any:
        states, room = carry
        if collect == "sums":  # which are a part of the states
            first = jnp.where(n > 0, stops[n - 1], 0)
            states = jax.lax.fori_loop(first, stops[n], lambda i, states: here(states, i)[0], states)
            seen = states[0].sums
        else:
            states, seen = here(states, n)
        return states, records.transform(lambda all_, now: jax.lax.dynamic_update_index_in_dim(all_, now, n, 0), room, seen)

    seen = jax.eval_shape(here, states, 0)[1]
    room = records.transform(lambda leaf: jnp.zeros((rows, *leaf.shape)), seen)
    return jax.lax.fori_loop(0, count, body, (states, room))


OPTIONS = {"xla_backend_optimization_level": 2, "xla_cpu_prefer_vector_width": 512}
"""What XLA is told for a processor: loops over a hundred numbers or so take a third less time than as it is by itself."""


@cache
def _compiled() -> Any:
    """`_run`, compiled for where it will run."""
    fixed = ("rows", "collect", "own")
    if jax.default_backend() == "cpu":
        try:  # which options there are is a matter of XLA's version
            jax.jit(lambda x: x + 1.0, compiler_options=OPTIONS)(0.0)
            return jax.jit(_run, static_argnames=fixed, compiler_options=OPTIONS)
        except (TypeError, ValueError, RuntimeError):
            pass
    return jax.jit(_run, static_argnames=fixed)


def advance(
    policy: Any, adversary: Any, state: Any, foe: Any, draws: Any, rounds: int, collect: str, wanted: Any = None
) -> tuple[Any, Any, Block]:
    """`rounds` rounds of the game; `collect` is "x" to keep the decisions, "round" to keep the rounds, or empty.

    With "sums" the policy sums alone (`totals.Summing`), and its totals after each of the rounds `wanted` come back in place of every
    round's cost and constraint values.
    """
    check_compiled(policy, adversary, draws)
    length = _length((policy, adversary, state), draws, rounds, policy.decide(state).shape[-1])
    (state, foe), seen = _played((policy, adversary), (state, foe), draws, rounds, length, collect, wanted=wanted)
    return state, foe, block_of(seen, collect)


def advance_many(given: Several, rounds: int, collect: str, wanted: Any = None) -> tuple[Any, Any, Block]:
    """The same for several runs."""
    where, dim = runs.seats(given), given.policy.decide(given.state).shape[-1]
    length = _length((given.policy, given.players[0], given.state), given.draws[0], rounds, dim)
    # A GPU takes all runs at once; a core's share should be worth its while.
    ends = runs.shares(where.runs, *SHARE) if jax.default_backend() == "cpu" else [0, where.runs]

    def work(begin: int, end: int) -> Any:
        mine = runs.group(where, given, range(begin, end))
        constants, states, dealt = (runs.record(like, arrays) for like, arrays in zip(where.single, mine, strict=True))
        return _played(constants, states, dealt, rounds, length, collect, where.own, wanted)

    made = runs.in_threads(work, ends)
    (state, foe), seen = (runs.whole(made[0][n], [records.leaves(part[n]).values() for part in made], n) for n in (0, 1))
    return state, foe, block_of(seen, collect)


SHARE = (128, 8)
"""How many runs are played at a time, at most and at least: more do not fit into the cache, fewer are not worth a thread of their own."""


def _length(constants: Any, draws: Any, rounds: int, dim: int) -> int:
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


_LENGTHS: dict[Any, int] = {}


def _played(
    constants: Any, states: Any, draws: Any, rounds: int, length: int, collect: str, own: Any = None, wanted: Any = None
) -> tuple[Any, Any]:
    """The states, and what is kept of so many rounds or of those that are wanted, back in NumPy."""
    count = rounds if wanted is None else len(wanted)
    rows = length if wanted is None else -(-count // ROWS) * ROWS
    with jax.enable_x64(True):
        given = records.transform(lambda leaf: jnp.asarray(leaf, dtype=float), (constants, states))
        padded = records.transform(lambda leaf: jnp.asarray(_pad(leaf, length), dtype=float), draws)
        stops = None if wanted is None else jnp.asarray(np.append(wanted, np.full(rows - count, rounds)))
        states, seen = records.transform(_home, _compiled()(*given, padded, stops, count, rows=rows, collect=collect, own=own))
    return states, records.cut(seen, 0, count)


ROWS = 128
"""Rows for the rounds that are wanted come in such numbers, so that not every block is compiled anew."""


def _pad(leaf: np.ndarray, length: int) -> np.ndarray:
    return leaf if len(leaf) == length else np.concatenate([leaf, np.zeros((length - len(leaf), *leaf.shape[1:]))])


def _home(leaf: Any) -> Any:
    """A leaf back in NumPy; a scalar as a float, as the Python engine has it."""
    array = np.asarray(leaf)
    return float(array) if array.ndim == 0 else array


def value_and_gradient(name: str, function: Any, x: np.ndarray) -> tuple[float, np.ndarray]:
    """The value of a Python function at x, and its gradient by automatic differentiation."""
    try:
        with jax.enable_x64(True):
            value, grad = jax.value_and_grad(lambda point: jnp.asarray(function(point), dtype=float).reshape(()))(
                jnp.asarray(x, dtype=float)
            )
            return float(value), np.asarray(grad)
    except TypeError as trouble:  # JAX's own complaints about what it cannot trace are TypeErrors
        reason = str(trouble).splitlines()[0]
        raise InputError(f"JAX cannot differentiate {name} ({reason}); write it with jax.numpy, or give a pair (value, gradient)") from None
