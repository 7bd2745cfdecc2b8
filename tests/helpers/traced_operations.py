"""Traced operations, each with numbers of its own: what a back end of the lowering must write out right."""

from __future__ import annotations

import jax
import numpy as np
from jax import numpy as jnp

RNG = np.random.default_rng(0)
A, B, x, row = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 4)), RNG.normal(size=3), RNG.normal(size=6)
LONG = 3.0 * np.random.default_rng(1).normal(size=100)

OPERATIONS = [
    lambda: (jnp.asarray(A) @ jnp.asarray(x), jnp.asarray(x) @ jnp.asarray(B)),
    lambda: jnp.einsum("ij,kj->ik", A, A),
    lambda: jnp.einsum("bij,bjk->bik", A.reshape(2, 2, 3), B.reshape(2, 3, 2)),
    lambda: (jnp.sort(jnp.asarray(row)), jnp.argsort(jnp.asarray(row)), jnp.sort(jnp.asarray(A), axis=-1)),
    lambda: (jnp.sort(LONG), jnp.argsort(np.round(LONG)), jax.lax.sort((np.round(LONG), jnp.arange(100.0)), num_keys=1)),
    lambda: jnp.linalg.eigvalsh(LONG.reshape(10, 10)),
    lambda: (jnp.cumsum(jnp.asarray(A), axis=0), jnp.cumsum(jnp.asarray(row)[::-1]), jax.lax.cumsum(jnp.asarray(row), reverse=True)),
    lambda: (jnp.argmax(jnp.asarray(A), axis=0), jnp.argmin(jnp.asarray(A), axis=1), jnp.argmax(jnp.asarray(row))),
    lambda: jnp.take_along_axis(jnp.asarray(A), jnp.argmax(jnp.asarray(A), axis=1)[:, None], axis=1),
    lambda: (jnp.asarray(A)[2], jnp.asarray(A)[1:, ::2], jnp.asarray(A).T.reshape(2, 6), jnp.asarray(A).reshape(-1)),
    lambda: jnp.concatenate([jnp.asarray(A), jnp.asarray(B).T, jnp.ones((1, 3))], axis=0),
    lambda: jnp.pad(jnp.asarray(x), (1, 2)),
    lambda: jnp.asarray(A).at[jnp.argmax(jnp.asarray(x)) + 1].set(jnp.asarray(x)),
    lambda: jnp.asarray(row).at[jnp.argsort(jnp.asarray(x))].add(1.0),
    lambda: jax.lax.dynamic_slice(jnp.asarray(row), (jnp.argmax(jnp.asarray(row)),), (3,)),
    lambda: jax.lax.scan(lambda c, v: (c + v, c * v), 0.5, jnp.asarray(row)),
    lambda: jax.lax.scan(lambda c, v: (c @ c.T, v), jnp.eye(3), jnp.asarray(A), reverse=True),
    lambda: jax.lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, jnp.sin(s[1]) + s[1][::-1]), (0, jnp.asarray(x))),
    lambda: jax.lax.cond(jnp.asarray(x)[0] > 0.0, lambda v: v * 2.0, lambda v: -v, jnp.asarray(x)),
    lambda: jnp.copysign(jnp.asarray(row), -1.0),
    lambda: (jnp.where(jnp.asarray(row) > 0, jnp.sqrt(jnp.abs(row)), jnp.expm1(row)), jax.nn.sigmoid(jnp.asarray(row))),
    lambda: (jnp.logaddexp(jnp.asarray(row), 0.0), jnp.tanh(jnp.asarray(A)) ** 3),
    lambda: (jnp.floor(jnp.asarray(row)), jnp.sign(jnp.asarray(row))),
    lambda: jnp.maximum(jnp.asarray(row), jnp.nan),
    lambda: (jnp.prod(jnp.asarray(A), axis=1), jnp.max(jnp.asarray(A), axis=(0, 1)), jnp.all(jnp.asarray(A) > 0, axis=0) * 1.0),
    lambda: jnp.abs(jnp.linalg.eigh(jnp.asarray(A).T @ jnp.asarray(A))[1]),
    lambda: jnp.clip(jnp.asarray(row), -0.5, 0.5) + (jnp.arange(6.0) == 2.0),
]  # fmt: skip
