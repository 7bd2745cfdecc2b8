"""What a step of a network is given: a cost and constraints as scalar tensors, checked, and how long their gradients are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bridle import validate
from bridle.adapters.duals import StepWeights
from bridle.adapters.tensors import torch
from bridle.core import InputError
from bridle.ops import Array


def scalars(values: object) -> list[torch.Tensor]:
    """The entries of a vector, a number, or a sequence of scalars, as scalar tensors that know where they come from.

    >>> scalars(torch.tensor([1.0, 2.0])), scalars(None)
    ([tensor(1.), tensor(2.)], [])
    """
    if values is None:
        return []
    try:
        if isinstance(values, torch.Tensor):
            tensors = list(values.reshape(-1).unbind())
        else:
            each = [values] if isinstance(values, (int, float, str, bytes, bytearray)) else list(values)  # type: ignore[call-overload]
            tensors = [_scalar(value) for value in each]
    except Exception:  # whatever torch, or an object of somebody else's, raises
        raise InputError(f"step takes scalar tensors, not {validate.show(values)}") from None
    if any(tensor.dtype == torch.bool or tensor.is_complex() for tensor in tensors):
        raise InputError(f"step takes scalar tensors of real numbers, not {validate.show(values)}")
    return tensors


def _scalar(value: object) -> torch.Tensor:
    """A scalar tensor as it is, and a number as one."""
    if isinstance(value, torch.Tensor):
        return value.reshape(())
    return torch.as_tensor(validate.floats("a value of step", value, "a number")).reshape(())


class Functions(NamedTuple):
    """The cost and the constraints of a step, as tensors and as numbers; None and nan for one that the step says nothing of."""

    cost: torch.Tensor
    limits: list[torch.Tensor | None]
    f: float
    g: Array

    def weighted(self, weights: StepWeights) -> torch.Tensor:
        """The weighted sum; the cost itself where nothing else weighs."""
        total = self.cost if weights.cost == 1.0 else weights.cost * self.cost
        for weight, limit in zip(weights.limits.tolist(), self.limits, strict=True):
            if weight != 0.0 and limit is not None:
                total = total + weight * limit
        return total


def functions(cost: object, constraints: object, names: Sequence[str], like: torch.Tensor | None = None) -> Functions:
    """What a step was given: one cost and a constraint for each name, all of them finite, or None for one it says nothing of.

    The numbers are rounded as `like` is, if it is given.
    """
    costs, limits = scalars(cost), _spoken(constraints)
    if len(costs) != 1 or len(limits) != len(names):
        k = len(names)
        raise InputError(f"step takes one cost and {k} constraint{'s' if k > 1 else ''}, not {len(costs)} and {len(limits)}")
    if like is None:
        like = costs[0].detach().to(torch.promote_types(costs[0].dtype, torch.float32))
    f, *values = torch.stack([value.detach().to(like) for value in (costs[0], *limits) if value is not None]).tolist()
    validate.number("cost", f)
    given = iter(values)
    g = [math.nan if limit is None else validate.number(name, next(given)) for name, limit in zip(names, limits, strict=True)]
    return Functions(costs[0], limits, f, np.array(g))


def _spoken(constraints: object) -> list[torch.Tensor | None]:
    """The constraints of a step as scalar tensors; in a list or a tuple, None for one that it says nothing of."""
    if not isinstance(constraints, (list, tuple)):
        return [*scalars(constraints)]
    told = iter(scalars([value for value in constraints if value is not None]))
    return [None if value is None else next(told) for value in constraints]


def length(tensors: Sequence[torch.Tensor]) -> float:
    """The length of all tensors as one vector."""
    parts = [tensor.coalesce().values() if tensor.is_sparse else tensor for tensor in tensors]
    parts = [part.float() if part.dtype in (torch.float16, torch.bfloat16) else part for part in parts]  # whose squares are out of range
    if not parts:
        return 0.0
    like = parts[0].new_zeros(())
    return float(torch.linalg.vector_norm(torch.stack([norm.to(like) for norm in torch._foreach_norm(parts)])))


def slope(value: torch.Tensor | None, weights: Sequence[torch.Tensor]) -> float:
    """How long the gradient of a scalar is in all the weights, by a backward pass after which another may follow."""
    if value is None or not value.requires_grad:
        return 0.0
    parts = torch.autograd.grad(value, weights, retain_graph=True, allow_unused=True)
    return length([part for part in parts if part is not None])
