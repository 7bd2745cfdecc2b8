"""The JAX engine: the same turn inside one compiled loop, compiled once per kind of policy and adversary.

Records are pytrees to JAX as they are, and their numbers are arguments of the compiled function, so other parameter values do not compile
again. Everything runs in 64-bit floats under JAX's context manager; the global setting is left alone.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bridle import ops, records
from bridle.adversaries import block_length
from bridle.core import InputError
from bridle.game import Block, check_compiled, turn


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


@partial(jax.jit, static_argnames=("length", "collect"))
def _run(policy: Any, adversary: Any, state: Any, foe: Any, draws: Any, rounds: Any, length: int, collect: str) -> Any:
    """Up to `length` rounds; how many is an argument like any other, so a shorter last block is not compiled anew."""

    def one(state: Any, foe: Any, i: Any) -> Any:
        draw = records.transform(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, i, 0, keepdims=False), draws)
        state, foe, feedback = turn(policy, adversary, state, foe, draw)
        return state, foe, (feedback.f, feedback.g, {"x": feedback.x, "round": feedback.round}.get(collect))

    def body(i: Any, carry: Any) -> Any:
        state, foe, seen = one(carry[0], carry[1], i)
        return state, foe, records.transform(lambda all_, now: jax.lax.dynamic_update_index_in_dim(all_, now, i, 0), carry[2], seen)

    seen = jax.eval_shape(one, state, foe, 0)[2]
    room = records.transform(lambda leaf: jnp.zeros((length, *leaf.shape)), seen)
    return jax.lax.fori_loop(0, rounds, body, (state, foe, room))


def advance(policy: Any, adversary: Any, state: Any, foe: Any, draws: Any, rounds: int, collect: str) -> tuple[Any, Any, Block]:
    """`rounds` rounds of the game; `collect` is "x" to keep the decisions, "round" to keep the rounds, or empty."""
    check_compiled(policy, adversary, draws)
    length = max(rounds, block_length(policy.decide(state).shape[-1]))
    with jax.enable_x64(True):
        given = records.transform(lambda leaf: jnp.asarray(leaf, dtype=float), (policy, adversary, state, foe))
        padded = records.transform(lambda leaf: jnp.asarray(_pad(leaf, length), dtype=float), draws)
        state, foe, (f, g, kept) = _run(*given, padded, rounds, length=length, collect=collect)
    state, foe, f, g, kept = records.transform(_home, (state, foe, f, g, kept))
    f, g, kept = records.cut((f, g, kept), 0, rounds)
    return state, foe, Block(f, g, kept if collect == "x" else None, [kept] if collect == "round" else None)


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
