"""What users of other libraries write today: Algorithm 1 in PyTorch and in the manner of optax, and the constrained optimisers of PyTorch.

`SAME` are sides that compute Algorithm 1, `OTHERS` have an algorithm of their own and are there for their cost alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parts.stream import arrays, constants

STEP = 0.01


def by_torch(problem: Any, policy: Any) -> Callable[[int], np.ndarray]:
    """Algorithm 1 with PyTorch's autograd."""
    import torch

    torch.set_num_threads(1)
    lam, beta, V, diameter = constants(policy)

    def run(n: int) -> np.ndarray:
        rows, Q, S = [torch.from_numpy(part) for part in arrays(problem, n)], 0.0, 0.0
        x = torch.zeros(problem.domain.dim, dtype=torch.float64, requires_grad=True)
        for c, a, b in zip(*rows, strict=True):
            f, g = c @ x, a @ x + b
            Q += beta * max(g.item(), 0.0)
            x.grad = None
            (V * beta * f + lam * np.exp(lam * Q) * beta * torch.relu(g)).backward()
            with torch.no_grad():
                S += (x.grad @ x.grad).item()
                x -= diameter / np.sqrt(2.0 * S) * x.grad
                length = torch.linalg.vector_norm(x).item()
                if length > 1.0:
                    x /= length
        return x.detach().numpy()

    return run


def by_optax(problem: Any, policy: Any) -> Callable[[int], np.ndarray]:
    """Algorithm 1 in the manner of optax: a gradient transformation, and one jitted call a round."""
    import jax
    import optax
    from jax import numpy as jnp

    lam, beta, V, diameter = constants(policy)

    def update(grads, S, params=None):
        S = S + grads @ grads
        return -diameter / jnp.sqrt(2.0 * S) * grads, S

    adagrad = optax.GradientTransformation(lambda params: jnp.zeros(()), update)

    @jax.jit
    def step(x, Q, S, c, a, b):
        g, slope = jax.value_and_grad(lambda x: a @ x + b)(x)
        Q = Q + beta * jnp.maximum(g, 0.0)
        updates, S = adagrad.update(V * beta * c + jnp.where(g > 0.0, lam * jnp.exp(lam * Q) * beta, 0.0) * slope, S)
        return optax.projections.projection_l2_ball(optax.apply_updates(x, updates)), Q, S

    def run(n: int) -> np.ndarray:
        with jax.enable_x64(True):
            x, Q = jnp.zeros(problem.domain.dim), jnp.zeros(())
            S = adagrad.init(x)
            for c, a, b in zip(*arrays(problem, n), strict=True):
                x, Q, S = step(x, Q, S, c, a, b)
            return np.asarray(x)

    return run


def by_cooper(problem: Any, n: int) -> Callable[[], np.ndarray]:
    """Cooper's Lagrangian, primal and dual gradient steps by `roll`, and the projection."""
    import cooper
    import torch

    torch.set_num_threads(1)

    class Rounds(cooper.ConstrainedMinimizationProblem):
        def __init__(self) -> None:
            super().__init__()
            multiplier = cooper.multipliers.DenseMultiplier(num_constraints=1, dtype=torch.float64)
            self.halfspace = cooper.Constraint(
                constraint_type=cooper.ConstraintType.INEQUALITY, formulation_type=cooper.formulations.Lagrangian, multiplier=multiplier
            )

        def compute_cmp_state(self, x, c, a, b):
            return cooper.CMPState(loss=c @ x, observed_constraints={self.halfspace: cooper.ConstraintState(violation=(a @ x + b)[None])})

    def run() -> np.ndarray:
        x = torch.nn.Parameter(torch.zeros(problem.domain.dim, dtype=torch.float64))
        game = Rounds()
        dual = torch.optim.SGD(game.dual_parameters(), lr=STEP, maximize=True)
        optimizer = cooper.optim.SimultaneousOptimizer(game, primal_optimizers=torch.optim.SGD([x], lr=STEP), dual_optimizers=dual)
        for c, a, b in zip(*(torch.from_numpy(part) for part in arrays(problem, n)), strict=True):
            optimizer.roll(compute_cmp_state_kwargs={"x": x, "c": c, "a": a, "b": b})
            into_ball(x)
        return x.detach().numpy()

    return run


def by_humancompatible(problem: Any, n: int) -> Callable[[], np.ndarray]:
    """humancompatible-train's augmented Lagrangian, with SGD, and the projection."""
    import torch
    from humancompatible.train.dual_optim import ALM

    torch.set_num_threads(1)

    def run() -> np.ndarray:
        x = torch.nn.Parameter(torch.zeros(problem.domain.dim, dtype=torch.float64))
        optimizer, dual = torch.optim.SGD([x], lr=STEP), ALM(m=1, lr=STEP, penalty=1.0, is_ineq=True)
        for c, a, b in zip(*(torch.from_numpy(part) for part in arrays(problem, n)), strict=True):
            optimizer.zero_grad()
            dual.forward_update(c @ x, (a @ x + b)[None]).backward()
            optimizer.step()
            into_ball(x)
        return x.detach().numpy()

    return run


def into_ball(x: Any) -> None:
    """The parameter projected onto the unit ball, in place."""
    length = x.data.norm().item()
    if length > 1.0:
        x.data /= length


SAME = {"PyTorch autograd loop": by_torch, "optax, one jitted call a round": by_optax}
NOTES = {"PyTorch autograd loop": "one backward pass a round", "optax, one jitted call a round": "no totals"}
OTHERS = {"Cooper, roll": by_cooper, "humancompatible-train, ALM": by_humancompatible}
