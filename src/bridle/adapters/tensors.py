"""What the records need to compute with PyTorch's tensors, and a network's weights as one decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from bridle import domains, ops, validate
from bridle.adapters import missing
from bridle.adapters.duals import StepWeights
from bridle.core import Domain, Feedback, InputError
from bridle.ops import Array

try:
    import torch
except ModuleNotFoundError as trouble:
    raise missing("torch", trouble) from None

__all__ = [
    "NAMESPACE", "Functions", "Joined", "domain_of", "flat", "functions", "gradient", "length", "one_pass", "scalars", "slope", "torch",
    "updated",
]  # fmt: skip


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
    return hasattr(record, "weigh") and bool(getattr(record, "one_gradient", True))


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
    if one_pass(record):
        if hasattr(record, "each"):  # every constraint has a weight of its own
            shares = record.weigh(state, values)
            parts = [(shares.cost, cost), *zip(shares.constraint.tolist(), limits, strict=True)]
        else:  # the worst counts, the first of equals
            worst = max(range(len(g)), key=g.__getitem__)
            shares = record.weigh(state, g[worst])
            parts = [(shares.cost, cost), (shares.constraint, limits[worst])]
        with torch.enable_grad():
            surrogate = sum(weight * part for weight, part in parts if weight != 0.0)
        return record.follow(state, shares, gradient("the weighted cost and constraints", surrogate, weights, last=True))
    needed = [i for i, value in enumerate(g) if value > 0.0 or not getattr(record, "violated_only", False)]
    df, dg = gradient("cost", cost, weights, last=not needed), x.new_zeros((len(g), len(x)))
    for i in needed:
        dg[i] = gradient(f"constraints[{i}]", limits[i], weights, last=i == needed[-1])
    return record.update(state, Feedback(x, f, df, values, dg))
