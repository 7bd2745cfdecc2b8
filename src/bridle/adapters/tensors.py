"""A network's weights as one decision, what a step of it is given, and its limits; what the records need to compute with PyTorch's tensors.

`MissLoss(label, at_most)` is the mean log-loss of the batch's rows of that class, `GroupGap(at_most)` the difference of the mean outputs of
two groups in the batch, both signs. A batch without such rows says nothing of the limit. Limits of your own are scalar tensors that you
compute, called by a name or by their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bridle import domains, ops, validate
from bridle.adapters import missing
from bridle.adapters.duals import StepWeights
from bridle.adapters.limits import GroupGap, MissLoss, Settings
from bridle.adapters.losses import count
from bridle.adapters.reports import loss_name
from bridle.core import Domain, Feedback, InputError, Surrogate, capability
from bridle.ops import Array

try:
    import torch as torch  # the one place that asks whether it is there
except ModuleNotFoundError as trouble:
    raise missing("torch", trouble) from None


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


# --- what a step is given -----------------------------------------------------------------------------------------------------------------


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
        raise validate.refused("step takes scalar tensors", values) from None
    if any(tensor.dtype == torch.bool or tensor.is_complex() for tensor in tensors):
        raise validate.refused("step takes scalar tensors of real numbers", values)
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


# --- limits on batches --------------------------------------------------------------------------------------------------------------------


class OwnValue(NamedTuple):
    """A constraint that its user computes: it should be 0 or below."""

    name: str
    at_most: float = 0.0


NetworkLimit: TypeAlias = MissLoss | GroupGap | OwnValue
"""A limit on batches."""


def network_limits(constraints: object) -> tuple[NetworkLimit, ...]:
    """From a number of constraints, or a list of limits and names.

    >>> value_names(network_limits([MissLoss(label=1, at_most=0.3), GroupGap(0.1), "latency"]))  # a gap is two, one for each sign
    ('mean loss of 1', 'gap of mean scores', 'gap of mean scores', 'latency')
    """
    if isinstance(constraints, (str, Settings)) or hasattr(constraints, "_fields"):
        return network_limits([constraints])
    if not isinstance(constraints, (list, tuple)):
        return tuple(OwnValue(f"constraints[{i}]") for i in range(validate.whole("constraints", constraints)))
    limits = tuple(_named(limit) for limit in constraints)
    names = [loss_name(limit) for limit in limits]
    if not limits or len(set(names)) < len(names):
        raise validate.refused("constraints must hold limits or names that differ, at least one", constraints)
    return limits


def _named(limit: object) -> NetworkLimit:
    if isinstance(limit, str) and limit:
        return OwnValue(limit)
    if isinstance(limit, (MissLoss, GroupGap)):
        return limit
    if hasattr(limit, "levels"):
        raise InputError(
            f"{validate.show(limit)} is a limit on a rate, which no gradient can hold: keep it by a threshold on the network's outputs, "
            "RateLimiter([Recall(at_least=0.9)]), beside the optimiser"
        )
    raise validate.refused("constraints must be a number, or hold limits such as MissLoss(label=1, at_most=0.3) and names", limit)


def value_names(limits: Sequence[NetworkLimit]) -> tuple[str, ...]:
    """What the constraints of a step are called."""
    return tuple(loss_name(limit) for limit in limits for _ in range(count([limit])))


def on_batch(
    limits: Sequence[NetworkLimit], logits: object, labels: object, groups: object, own: Mapping[str, object]
) -> list[torch.Tensor | None]:
    """The constraints of a step whose batch has these outputs and labels; None for what it says nothing of.

    `logits` are log-odds of the second of two classes, or (for `MissLoss`) a row of outputs for each of several classes.
    """
    names = [limit.name for limit in limits if isinstance(limit, OwnValue)]
    if own.keys() != set(names):
        raise InputError(
            f"measure must be given the constraints of your own by name: {', '.join(names) or 'none'}; not {', '.join(own) or 'none'}"
        )
    out = torch.as_tensor(logits)
    out = out[:, 0] if out.ndim == 2 and out.shape[1] == 1 else out
    of = torch.as_tensor(labels, device=out.device)
    if out.ndim not in (1, 2) or of.shape != out.shape[:1]:
        raise InputError(f"measure takes an output or a row of outputs for each label, not {tuple(out.shape)} for labels {tuple(of.shape)}")
    values: list[torch.Tensor | None] = []
    for limit in limits:
        if isinstance(limit, MissLoss):
            values.append(_miss(limit, out, of))
        elif isinstance(limit, GroupGap):
            values += _gap(limit, out, groups)
        else:
            values.append(own[limit.name])  # checked by the step
    return values


def _miss(limit: MissLoss, out: torch.Tensor, labels: torch.Tensor) -> torch.Tensor | None:
    if out.ndim == 2:
        classes = list(range(out.shape[1]))
        if limit.label not in classes:
            raise validate.refused(f"MissLoss: label must be one of the classes {validate.show(classes)}", limit.label)
        rows = labels == int(limit.label)
        return torch.nn.functional.cross_entropy(out[rows], labels[rows].long()) - limit.at_most if rows.any() else None
    sign = limit.bind((0, 1)).sign
    rows = (labels > 0.5) == (sign > 0.0)
    return torch.nn.functional.softplus(-sign * out[rows]).mean() - limit.at_most if rows.any() else None


def _gap(limit: GroupGap, out: torch.Tensor, groups: object) -> list[torch.Tensor | None]:
    if groups is None:
        raise InputError("groups must be given with GroupGap: a number for each row, above 0 for the one group, else 0")
    if out.ndim == 2:
        raise InputError(
            "GroupGap compares one output a row; of several classes, give the one that it is about as a constraint of your own"
        )
    of = torch.as_tensor(groups, device=out.device)
    if of.shape != out.shape:
        raise InputError(f"groups must be a number for each of the {len(out)} rows, not of shape {tuple(of.shape)}")
    one, other = of > 0, of <= 0
    if not (one.any() and other.any()):
        return [None, None]
    apart = out[one].mean() - out[other].mean()
    return [apart - limit.at_most, -apart - limit.at_most]
