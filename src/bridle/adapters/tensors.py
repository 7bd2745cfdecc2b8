"""What the records need to compute with PyTorch's tensors, and a network's weights as one decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from bridle import domains, ops, validate
from bridle.adapters import missing
from bridle.core import Domain, Feedback, InputError, Surrogate, capability

try:
    import torch
except ModuleNotFoundError as trouble:
    raise missing("torch", trouble) from None

__all__ = ["NAMESPACE", "Joined", "domain_of", "flat", "gradient", "one_pass", "torch", "updated"]


def _on_tensors(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A function of tensors, for tensors and numbers."""

    def call(*parts: torch.Tensor | float) -> torch.Tensor:
        like = next(part for part in parts if isinstance(part, torch.Tensor))
        return function(*(p if isinstance(p, torch.Tensor) else torch.as_tensor(p, dtype=like.dtype, device=like.device) for p in parts))

    return call


NAMESPACE = SimpleNamespace(
    **{
        name: getattr(torch, name)
        for name in ("sqrt", "exp", "log", "floor", "where", "argmax", "broadcast_to", "zeros", "arange", "stack", "swapaxes")
    },
    **{name: _on_tensors(getattr(torch, name)) for name in ("maximum", "minimum", "logaddexp")},
    **{
        name: lambda x, axis, keepdims, reduce=reduce: reduce(x, dim=axis, keepdim=keepdims)
        for name, reduce in (("sum", torch.sum), ("max", torch.amax), ("min", torch.amin))
    },
    concatenate=torch.cat,
    full=lambda shape, value: torch.full(shape, float(value)),
    take_along_axis=lambda array, places, axis: torch.take_along_dim(array, places, dim=axis),
    bridle_dot=torch.dot,
    bridle_concrete=lambda flag: bool(flag) if flag.ndim == 0 and flag.device.type == "cpu" else flag,
    bridle_descend=lambda x, step, grad: x.add(grad, alpha=-float(step)) if x.ndim == 1 and x.device.type == "cpu" else x - step * grad,
)
"""NumPy's names for what the records do with tensors."""

ops.register(torch.Tensor, NAMESPACE)


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The entries of all tensors as one vector, apart from any graph."""
    with torch.no_grad():
        return torch.cat([tensor.reshape(-1) for tensor in tensors])


class Joined:
    """Weights that share the memory of one vector, so that reading and writing all of them is reading and writing it."""

    def __init__(self, weights: list[torch.Tensor]) -> None:
        self.weights = weights
        torch.empty(31 * 2**18)  # its release tells glibc to keep freed memory of this size, not to map fresh pages for every step
        self._join()

    def _join(self) -> None:
        self.memory = flat(self.weights)
        pieces = self.memory.split([weight.numel() for weight in self.weights])
        for weight, piece in zip(self.weights, pieces, strict=True):
            weight.data = piece.view_as(weight)
        self.places = [weight.data_ptr() for weight in self.weights]

    @property
    def vector(self) -> torch.Tensor:
        """What the weights are now; where they were moved to other memory since, they are joined again."""
        if [weight.data_ptr() for weight in self.weights] != self.places:
            self._join()
        return self.memory


def gradient(name: str, value: object, weights: Sequence[torch.Tensor], last: bool) -> torch.Tensor:
    """The gradient of a scalar in all the weights as one vector, by one backward pass; `last` frees what it went through."""
    if not (isinstance(value, torch.Tensor) and value.requires_grad):
        return 0.0 * flat(weights)
    parts = torch.autograd.grad(value, weights, retain_graph=not last, allow_unused=True)
    grad = flat([torch.zeros_like(weight) if part is None else part for part, weight in zip(parts, weights, strict=True)])
    if not math.isfinite(float(grad.dot(grad))):
        raise InputError(f"the gradient of {name} must be finite: nothing was changed")
    return grad


def domain_of(groups: Sequence[dict[str, Any]], around: str) -> tuple[list[torch.Tensor], Domain]:
    """The weights of parameter groups that need a gradient, and where they may be: in a ball for each group, of its own radius."""
    validate.one_of("around", around, ("start", "origin"))
    parts = [(group["radius"], [p for p in group["params"] if p.requires_grad]) for group in groups]
    weights = [p for _, mine in parts for p in mine]
    if len({(p.dtype, p.device) for p in weights}) != 1 or not weights[0].is_floating_point():
        raise InputError("params must hold real weights that need a gradient, all of one dtype and on one device")
    starts = [(validate.positive("radius", radius), flat(mine).double().cpu().numpy()) for radius, mine in parts if mine]
    balls = [domains.Ball(radius=radius, center=start if around == "start" else 0.0 * start) for radius, start in starts]
    domain: Domain = balls[0] if len(balls) == 1 else domains.Product(*balls)
    if not domain.contains(np.concatenate([start for _, start in starts])):
        long = max(float(np.linalg.norm(start)) for _, start in starts)
        raise InputError(f"radius must be larger than the weights are long at the start ({long:.4g}), not {starts[0][0]:g}")
    return weights, domain


def one_pass(record: object) -> bool:
    """Whether a round of the policy needs no gradient but the weighted surrogate's."""
    return (surrogate := capability(record, Surrogate)) is not None and bool(surrogate.one_gradient)


def updated(
    record: Any,
    state: object,
    x: torch.Tensor,
    weights: list[torch.Tensor],
    functions: tuple[torch.Tensor, ...],
    f: float,
    g: list[float],
) -> object:
    """The policy's state after a round at `x`: by one backward pass where that will do, else by one for each function that counts."""
    (cost, *limits), values = functions, torch.tensor(g).to(x)
    surrogate = capability(record, Surrogate)
    if surrogate is not None and surrogate.one_gradient:
        if hasattr(record, "each"):  # every constraint has a weight of its own
            shares = record.weigh(state, values)
            parts = [(shares.cost, cost), *zip(shares.constraint.tolist(), limits, strict=True)]
        else:  # the worst counts, the first of equals
            worst = max(range(len(g)), key=g.__getitem__)
            shares = record.weigh(state, g[worst])
            parts = [(shares.cost, cost), (shares.constraint, limits[worst])]
        with torch.enable_grad():
            weighted = sum(weight * part for weight, part in parts if weight != 0.0)
        return record.follow(state, shares, gradient("the weighted cost and constraints", weighted, weights, last=True))
    only = surrogate is not None and surrogate.violated_only
    needed = [i for i, value in enumerate(g) if value > 0.0 or not only]
    df, dg = gradient("cost", cost, weights, last=not needed), x.new_zeros((len(g), len(x)))
    for i in needed:
        dg[i] = gradient(f"constraints[{i}]", limits[i], weights, last=i == needed[-1])
    return record.update(state, Feedback(x, f, df, values, dg))
