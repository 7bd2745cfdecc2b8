"""An optimiser for PyTorch that keeps constraints: the weights of a network are a policy's decision, and every step is a round.

`MissLoss(label, at_most)` is the mean log-loss of the batch's rows of that class, `GroupGap(at_most)` the difference of the mean outputs of
two groups in the batch, both signs. A batch without such rows says nothing of the limit. Limits of your own are scalar tensors that you
compute, called by a name or by their place.

>>> from bridle.adapters.torch import ConstrainedOptimizer
>>> model = torch.nn.Linear(1, 1, bias=False)
>>> optimizer = ConstrainedOptimizer(model.parameters(), radius=3.0)
>>> for _ in range(300):
...     weight = model.weight.sum()
...     _ = optimizer.step((weight - 2.0) ** 2, weight - 1.0)  # wants 2, may have 1
>>> bool(abs(model.weight - 1.0) < 0.2)
True
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from bridle import domains, ops, policies, records, validate
from bridle.adapters import missing
from bridle.core import Domain, Feedback, InputError, Surrogate, TriesPoints, capability
from bridle.engines.round import check_compiled
from bridle.limits import (
    AlertBudget,
    AlertRate,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FalsePositiveRate,
    GroupGap,
    MissLoss,
    Precision,
    RateLimiter,
    Recall,
)
from bridle.limits.losses import LossProof, LossTally, allowances, count, loss_name, loss_reports, no_losses
from bridle.limits.prices import Duals, StepWeights
from bridle.limits.report import LimitTable
from bridle.limits.settings import Settings
from bridle.ops import Array, Scalar

try:
    import torch
except ModuleNotFoundError as trouble:
    raise missing("torch", trouble) from None

__all__ = [
    "AlertBudget", "AlertRate", "ConstrainedOptimizer", "DemographicParity", "EqualOpportunity", "EqualizedOdds", "FalsePositiveRate",
    "GroupGap", "MissLoss", "Precision", "RateLimiter", "Recall", "WrappedOptimizer",
]  # fmt: skip

ONE_PASS = {"form": "value", "halfspace": False}
"""The form of `anytime` that needs one backward pass a step, and no halfspaces: those of a network's constraint hold nothing for sure."""

TOTALS = ("rounds", "cost", "violations", "_limits", "_names", "_tally")
"""What is pickled of every optimiser beside what torch's have."""

REACTION = 0.01
"""V times the diameter and the first cost gradient's length, where nothing is given: tried out on a small network, no theory."""


Limits: TypeAlias = Sequence[MissLoss | GroupGap | str] | MissLoss | GroupGap
"""Limits that an optimiser can be held to: those with a name of their own, and names for constraints that you compute."""


# --- what the records need to compute with tensors ----------------------------------------------------------------------------------------


def _on_tensors(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A function of tensors, for tensors and numbers."""

    def call(*parts: torch.Tensor | float) -> torch.Tensor:
        like = next(part for part in parts if isinstance(part, torch.Tensor))
        return function(*(p if isinstance(p, torch.Tensor) else like.new_tensor(p) for p in parts))

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


def gradients(value: object, weights: Sequence[torch.Tensor], last: bool = False) -> list[torch.Tensor | None]:
    """The gradients of a scalar in the weights by one backward pass, None where it is 0; `last` frees what it went through."""
    if not (isinstance(value, torch.Tensor) and value.requires_grad):
        return [None] * len(weights)
    return list(torch.autograd.grad(value, weights, retain_graph=not last, allow_unused=True))


def gradient(name: str, value: object, weights: Sequence[torch.Tensor], last: bool) -> torch.Tensor:
    """The gradient of a scalar in all the weights as one vector."""
    parts = zip(gradients(value, weights, last), weights, strict=True)
    grad = flat([torch.zeros_like(weight) if part is None else part for part, weight in parts])
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
            worst = g.index(max(g))
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
    return length([part for part in gradients(value, weights) if part is not None])


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
    for limit in constraints:
        if hasattr(limit, "levels"):
            raise InputError(
                f"{validate.show(limit)} is a limit on a rate, which no gradient can hold: keep it by a threshold on the network's "
                "outputs, RateLimiter([Recall(at_least=0.9)]), beside the optimiser"
            )
        if not isinstance(limit, (str, MissLoss, GroupGap)) or limit == "":
            wanted = "constraints must be a number, or hold limits such as MissLoss(label=1, at_most=0.3) and names"
            raise validate.refused(wanted, limit)
    limits = tuple(OwnValue(limit) if isinstance(limit, str) else limit for limit in constraints)
    names = [loss_name(limit) for limit in limits]
    if not limits or len(set(names)) < len(names):
        raise validate.refused("constraints must hold limits or names that differ, at least one", constraints)
    return limits


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


# --- a policy as an optimiser -------------------------------------------------------------------------------------------------------------


class OwnGroup(dict[str, Any]):
    """A parameter group of a policy: it says what to do where a schedule asks for a learning rate."""

    def __missing__(self, key: str) -> object:
        if key == "lr":
            raise InputError(
                "a policy has no learning rate to schedule: radius takes its place. To schedule one, put the constraints around "
                "an optimiser of torch's: ConstrainedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), constraints=1)"
            )
        raise KeyError(key)


class ConstrainedOptimizer(torch.optim.Optimizer):
    """Constraints around an optimiser of PyTorch, or bridle's own policies as an optimiser.

    ``ConstrainedOptimizer(torch.optim.Adam(model.parameters()), constraints=2)`` is a `WrappedOptimizer`: Adam takes the steps, on the
    cost and constraints as `bridle.limits.prices` weighs them, so that they hold on average.

    ``ConstrainedOptimizer(model.parameters(), radius=3.0)`` makes each ``step(cost, constraints)``, or ``step(closure)`` with a closure
    that returns both, one round of a policy. Parameters that need no gradient when the optimiser is made are left alone. A network is not
    convex, so no theorem applies.

    Parameters
    ----------
    params : iterable of Tensor or dict, or torch.optim.Optimizer
        The weights, or an optimiser to wrap. A parameter group may have a radius of its own.
    radius : float, optional
        How far the weights may go from where they started, above 0; must be given without an optimiser.
    policy : str, default "anytime"
        The registered name of the policy.
    parameters : dict, optional
        The policy's parameters. Default: `anytime` weighs constraints by their values, with V and lipschitz taken from the gradients of the
        first step.
    constraints : int, str or sequence of limits, default 1
        How many constraints a step has, or which: `MissLoss` and `GroupGap`, which `measure` evaluates, and names of your own.
    around : {"start", "origin"}, default "start"
        Whether the ball is around the first weights or around 0.

    Examples
    --------
    >>> import torch
    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> optimizer = ConstrainedOptimizer([w], radius=1.0)
    >>> for _ in range(50):
    ...     cost = optimizer.step(-w.sum(), [w[0] - 0.25])
    >>> bool(w[0] < 0.3), optimizer.rounds
    (True, 50)
    """

    param_groups: list[dict[str, Any]]
    rounds: int
    cost: float
    violations: list[float]
    _limits: tuple[NetworkLimit, ...]
    _names: tuple[str, ...]
    _tally: LossTally

    def __new__(cls, params: object = None, *arguments: object, **settings: object) -> ConstrainedOptimizer:
        """A `WrappedOptimizer` where `params` is an optimiser; unpickling gives none."""
        wraps = cls is ConstrainedOptimizer and isinstance(params, torch.optim.Optimizer)
        return cast("ConstrainedOptimizer", super().__new__(WrappedOptimizer if wraps else cls))

    def __init__(
        self,
        params: torch.optim.optimizer.ParamsT,
        radius: float | None = None,
        policy: str = "anytime",
        parameters: Mapping[str, object] | None = None,
        constraints: int | str | Limits = 1,
        around: str = "start",
    ) -> None:
        if radius is None:
            raise InputError(
                "radius must be given with parameters: how far the weights may go. Or put the constraints around an optimiser: "
                "ConstrainedOptimizer(torch.optim.Adam(model.parameters()), constraints=1)"
            )
        super().__init__(params, {"radius": validate.positive("radius", radius)})
        weights, self._domain = domain_of(self.param_groups, around)
        self._joined = Joined(weights)
        self._tuned = policy == "anytime" and parameters is None
        settings = {**ONE_PASS, "V": 1.0, "lipschitz": 1.0} if self._tuned else dict(parameters or {})
        self._limit(constraints)
        if any(parameter.name == "constraints" for parameter in policies.parameters(policy)):
            settings.setdefault("constraints", len(self._names))
        self._begin(policies.policy(policy, self._domain, **settings))

    def _begin(self, policy: policies.Configured) -> None:
        if capability(policy.record, TriesPoints):
            raise InputError(f"policy {policy.name} sees values alone, at points that it tries itself: an optimizer has gradients")
        check_compiled(policy.record)  # what solves a program in NumPy cannot run on tensors
        self.policy, self._record = policy, records.transform(self._here, policy.record)
        with self._placed():
            self._state = records.transform(self._here, self._record.init(self._joined.vector.clone()))

    def _placed(self) -> AbstractContextManager[object]:
        """A context in which new tensors are made where the weights are."""
        return nullcontext() if self._joined.memory.device.type == "cpu" else self._joined.memory.device

    def _here(self, leaf: Scalar | torch.Tensor) -> float | torch.Tensor:
        """A leaf of a record as it is computed with: arrays as tensors beside the weights, numbers as they are."""
        vector = np.ndim(leaf) > 0
        return torch.as_tensor(leaf).to(self._joined.memory if vector else self._joined.memory.device) if hasattr(leaf, "ndim") else leaf

    def step(self, cost: object = None, constraints: object = None) -> torch.Tensor | None:
        """One round at the present weights. Nothing changes where a value or a gradient is not finite.

        Parameters
        ----------
        cost : Tensor or callable
            The cost, or a closure that returns the cost and the constraints.
        constraints : Tensor or sequence of Tensor, optional
            Scalars, or one vector, that should be 0 or below; None is one that this step says nothing of.
        """
        if cost is None and constraints is None:
            raise InputError(
                "step() needs the cost and the constraints: step(cost, constraints) takes the gradients itself, so no backward() comes "
                "before it. For a loop with backward() (GradScaler, clipping, accumulation) put the constraints around an optimiser of "
                "torch's: ConstrainedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), constraints=1)"
            )
        with torch.enable_grad():
            if constraints is None and callable(cost) and not isinstance(cost, torch.Tensor):
                cost, constraints = both(cost())
            now = self._joined.vector
            given = functions(cost, constraints, self._names, now)
        f, g = given.f, np.nan_to_num(given.g).tolist()
        costs, limits = given.cost, [now.new_zeros(()) if limit is None else limit for limit in given.limits]
        with torch.no_grad(), self._placed():
            if self._tuned and self.rounds == 0:
                self._tune(costs, limits)
            # The decision is what the weights are, also where the module was edited; `now` itself is about to change.
            x = now if one_pass(self._record) and self.rounds else now.clone()
            state = updated(self._record, self._decided(self._state, x), x, self._joined.weights, (costs, *limits), f, g)
            now.copy_(self._record.decide(state))
            self._state = self._decided(state, now)
        self._observed(f, given.g)
        return costs.detach()

    def _tune(self, cost: torch.Tensor, limits: list[torch.Tensor]) -> None:
        """Take the policy's scales from the first gradients; one that is 0 says nothing, and 1 stands for it."""
        named = {"cost": cost, **{f"constraints[{i}]": limit for i, limit in enumerate(limits)}}
        first, *others = (gradient(name, value, self._joined.weights, last=False).norm().item() for name, value in named.items())
        first, steepest = first or 1.0, max(others)
        settings = {**self.policy.parameters, "lipschitz": steepest or first, "V": REACTION / (self._domain.diameter() * first)}
        self._begin(policies.policy(self.policy.name, self._domain, **settings))

    def _decided(self, state: object, x: torch.Tensor) -> object:
        """The state with its decision held in `x`."""
        before = self._record.decide(state)
        return records.transform(lambda leaf: x if leaf is before else leaf, state)

    # --- what became of the limits --------------------------------------------------------------------------------------------------------

    def _limit(self, constraints: object) -> None:
        """Begin with these limits."""
        self._limits = network_limits(constraints)
        self._names = value_names(self._limits)
        k = len(self._names)
        self.rounds, self.cost, self.violations, self._tally = 0, 0.0, [0.0] * k, no_losses(k)

    def _observed(self, f: float, g: Array) -> None:
        """Count a step with this cost and these constraints, of which nan does not count."""
        self.rounds, self.cost = self.rounds + 1, self.cost + f
        self.violations = [total + max(value, 0.0) for total, value in zip(self.violations, np.nan_to_num(g).tolist(), strict=True)]
        self._tally = self._tally.add(np.nan_to_num(g), 1.0 * ~np.isnan(g), allowances(self._limits))

    @property
    def ccv(self) -> float:
        """The cumulative violation of the constraint that has been violated most."""
        return max(self.violations)

    def measure(self, logits: object, labels: object, groups: object = None, **own: object) -> list[torch.Tensor | None]:
        """The constraints of a step, from what the network made of a batch: for `step` or `weighted`.

        Returns one value for each constraint; None for one that this batch says nothing of.

        Parameters
        ----------
        logits : Tensor of shape (rows,) or (rows, classes)
            Log-odds of the second of two classes, or a row of outputs for each of several.
        labels : Tensor of shape (rows,)
            The classes.
        groups : Tensor of shape (rows,), optional
            A number for each row, above 0 for the one group, nan for none.
        **own : Tensor
            Constraints of your own that have a name, by it.
        """
        return on_batch(self._limits, logits, labels, groups, own)

    @property
    def limits_(self) -> LimitTable:
        """What was asked of every limit, what came out, over all steps that counted and lately, and what is proved; printed, a table.

        What it calls rows are steps here.
        """
        return LimitTable(loss_reports(self._limits, self._tally, self._proof()))

    def _proof(self) -> LossProof:
        return LossProof(why="a network is not convex, so no theorem about the policy applies")

    def __repr__(self) -> str:
        return f"{super().__repr__()}\n{self.limits_!r}"

    def _totals(self) -> dict[str, Any]:
        """What is saved of it."""
        tally = {name: np.asarray(values).tolist() for name, values in records.leaves(self._tally).items()}
        return {"rounds": self.rounds, "cost": self.cost, "violations": list(self.violations), "tally": tally}

    def _load_totals(self, saved: Mapping[str, Any]) -> None:
        """What `_totals` gave; an older state has no tally, and the reports begin anew."""
        tally, k = no_losses(len(self._names)), len(self._names)
        if len(saved["violations"]) != k:
            raise InputError(f"state_dict must be that of a ConstrainedOptimizer with {k} constraints, not {len(saved['violations'])}")
        if "tally" in saved:
            tally = loaded(tally, saved["tally"])
        self.rounds, self.cost, self.violations, self._tally = saved["rounds"], saved["cost"], list(saved["violations"]), tally

    # --- saving, and what else torch may ask of an optimiser --------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state, as PyTorch's; under "bridle" are all numbers of the policy but the weights, which the module saves itself.

        Returns what `load_state_dict` takes.
        """
        x = self._record.decide(self._state)
        leaves = {name: leaf for name, leaf in records.leaves((self._record, self._state)).items() if leaf is not x}
        kept = {name: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for name, leaf in leaves.items()}
        return {**super().state_dict(), "bridle": {"policy": self.policy.name, "leaves": kept, **self._totals()}}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave; load the module's own state too, before or after.

        Parameters
        ----------
        state_dict : dict
            What `state_dict` gave.
        """
        saved = state_dict.get("bridle", {"policy": None, "leaves": {}})
        x, mine, kept = self._record.decide(self._state), records.leaves((self._record, self._state)), saved["leaves"]
        fits = all(np.shape(kept[name]) == np.shape(leaf) if name in kept else leaf is x for name, leaf in mine.items())
        if saved["policy"] != self.policy.name or not fits or kept.keys() - mine.keys():
            raise InputError(f"state_dict must be that of a ConstrainedOptimizer with policy {self.policy.name!r} for the same weights")
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "bridle"})
        values = iter([self._here(kept.get(name, leaf)) for name, leaf in mine.items()])
        self._record, self._state = records.transform(lambda _: next(values), (self._record, self._state))
        self._load_totals(saved)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Is refused once the optimiser is made: a decision keeps its dimension."""
        if hasattr(self, "_record"):
            raise InputError("parameter groups cannot be added later: make a new ConstrainedOptimizer with all of them")
        super().add_param_group(param_group)
        self.param_groups[-1] = OwnGroup(self.param_groups[-1])

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.param_groups = [OwnGroup(group) for group in self.param_groups]

    def __getstate__(self) -> dict[str, Any]:
        own = ("policy", *TOTALS, "_joined", "_domain", "_tuned", "_record", "_state")
        return {**super().__getstate__(), **{name: vars(self)[name] for name in own}}


OWN = ("wrapped", *TOTALS, "_duals", "_pending")
"""What is pickled of a wrapped one."""

SHARED = tuple(f"_optimizer_{kind}state_dict_{when}_hooks" for kind in ("", "load_") for when in ("pre", "post"))
"""Hooks around saving and loading: there is one state to save, so both optimisers have them in common."""


class Evaluated(NamedTuple):
    """Values that wait for their step, and the weights they were given."""

    f: float
    g: Array
    weights: StepWeights


class WrappedOptimizer(ConstrainedOptimizer):
    """Constraints around an optimiser of PyTorch: its parameter groups, learning rates and state show here, so schedules see them.

    ``ConstrainedOptimizer(optimizer, constraints=...)`` makes it.

    Parameters
    ----------
    params : torch.optim.Optimizer
        The optimiser that takes the steps.
    *own : object
        Nothing: what is for a policy is refused.
    constraints : int, str or sequence of limits, default 1
        How many constraints a step has, or which.
    **settings : object
        Nothing: what is for a policy is refused.

    Examples
    --------
    >>> import torch
    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> optimizer = WrappedOptimizer(torch.optim.SGD([w], lr=0.1), constraints=1)
    >>> cost = optimizer.step(-w.sum(), [w[0] - 0.25])
    >>> optimizer.rounds, optimizer.param_groups[0]["lr"]
    (1, 0.1)
    """

    def __init__(self, params: torch.optim.Optimizer, *own: object, constraints: int | str | Limits = 1, **settings: object) -> None:
        if own or settings:
            raise InputError(
                "radius, policy, parameters and around are settings of bridle's own steps; around an optimiser, which takes its own, give "
                f"constraints= alone, not {', '.join(settings) or 'more'}"
            )
        for group in params.param_groups:
            _check(group)
        self._limit(constraints)
        self.wrapped, self._duals = params, Duals.start(len(self._names))
        self._pending: list[Evaluated] = []
        self.__setstate__({})

    # --- a step ---------------------------------------------------------------------------------------------------------------------------

    def step(self, cost: object = None, constraints: object = None) -> torch.Tensor | None:
        """One step of the wrapped optimiser on the weighted cost.

        ``step(cost, constraints)`` and ``step(closure)``, whose closure returns both, take the gradients themselves. ``step()`` comes after
        ``weighted(cost, constraints).backward()``, once or for several parts of a batch.

        Returns the cost; None for ``step()``.

        Parameters
        ----------
        cost : Tensor or callable, optional
            The cost, or a closure that returns the cost and the constraints.
        constraints : Tensor or sequence of Tensor, optional
            Scalars, or one vector, that should be 0 or below.
        """
        if cost is None and constraints is None:
            self._finish(self.wrapped.step)
            return None
        closure = cost if constraints is None and callable(cost) and not isinstance(cost, torch.Tensor) else None
        if closure is None and _asks_again(self.wrapped):
            kind = type(self.wrapped).__name__
            raise InputError(
                f"{kind} evaluates the cost several times a step: give step a function that returns the cost and the constraints"
            )
        self._pending.clear()
        with torch.enable_grad():
            if closure is not None:
                cost, constraints = both(closure())
            first = self.weighted(cost, constraints)
            self.wrapped.zero_grad()
            if first.requires_grad:
                first.backward()
        if closure is None or not _asks_again(self.wrapped):
            self._finish(self.wrapped.step)
        else:
            self._finish(lambda: self.wrapped.step(self._again(closure, first)))
        return cost.detach() if isinstance(cost, torch.Tensor) else torch.as_tensor(cost)

    def weighted(self, cost: object, constraints: object) -> torch.Tensor:
        """The weighted cost, whose ``backward()`` gives the gradients of the coming ``step()``: scaled, clipped or added up as you like.

        Called several times before a step, once for each part of a batch, the weights are those of the first, and the values count as their
        mean.

        Parameters
        ----------
        cost : Tensor
            The cost.
        constraints : Tensor or sequence of Tensor
            Scalars, or one vector, that should be 0 or below.
        """
        with torch.enable_grad():
            now = functions(cost, constraints, self._names)
            self._measure(now)
            self._pending.append(Evaluated(now.f, now.g, self._pending[0].weights if self._pending else self._duals.weigh(now.g)))
            return now.weighted(self._pending[0].weights)

    @property
    def weights(self) -> StepWeights:
        """What the cost and every constraint weigh in the coming step: as `weighted` said, or where nothing is known of it yet."""
        return self._pending[0].weights if self._pending else self._duals.weigh(np.zeros(len(self._names)))

    def _again(self, closure: Callable[[], object], first: torch.Tensor) -> Callable[[], torch.Tensor]:
        """A closure for an optimiser that evaluates several times a step: with the same weights, and the first time what is known."""
        known = [first]

        def evaluate() -> torch.Tensor:
            if known:
                return known.pop()
            with torch.enable_grad():
                self.wrapped.zero_grad()
                total = functions(*both(closure()), self._names).weighted(self.weights)
                total.backward()
            return total

        return evaluate

    def _finish(self, step: Callable[[], object]) -> None:
        """The wrapped optimiser's step, then the multipliers'."""
        if not self._pending:
            raise InputError(
                "step() knows neither the cost nor the constraints: call step(cost, constraints), or "
                "optimizer.weighted(cost, constraints).backward() before step(), in place of cost.backward()"
            )
        if not math.isfinite(length([p.grad for p in self._parameters() if p.grad is not None])):
            self._pending.clear()
            raise InputError("the gradient of the weighted cost and constraints must be finite: nothing was changed")
        step()
        g = np.array([part.g for part in self._pending])
        with np.errstate(invalid="ignore"):  # nan of a limit that no part says anything of
            values = np.nan_to_num(g).sum(axis=0) / (~np.isnan(g)).sum(axis=0)
        self._duals = self._duals.observed(values)
        self._observed(sum(part.f for part in self._pending) / len(self._pending), values)
        self._pending.clear()

    def _proof(self) -> LossProof:
        return LossProof(self._duals.multipliers.bound, self._duals.prices)

    def _parameters(self) -> list[torch.Tensor]:
        return [p for group in self.wrapped.param_groups for p in group["params"] if p.requires_grad]

    def _measure(self, now: Functions) -> None:
        """The lengths of the gradients of the cost and of the limits that are due: rarely, so that a step takes one backward pass."""
        due = self._duals.due(now.g) & np.array([value is not None and value.requires_grad for value in now.limits])
        if due.any():
            parameters, lengths = self._parameters(), np.zeros(len(due))
            for i in np.flatnonzero(due):
                lengths[i] = slope(now.limits[i], parameters)
            self._duals = self._duals.measured(due, slope(now.cost, parameters) ** 2, lengths**2)

    # --- what torch asks of an optimiser ------------------------------------------------------------------------------------------------

    @property
    def param_groups(self) -> Any:  # type: ignore[override]
        """Those of the wrapped optimiser: a schedule of its learning rates sees them here."""
        return self.wrapped.param_groups

    @property
    def state(self) -> Any:
        """That of the wrapped optimiser."""
        return self.wrapped.state

    @property
    def defaults(self) -> Any:
        """Those of the wrapped optimiser."""
        return self.wrapped.defaults

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget gradients, as the wrapped optimiser does; values that wait for their step are left out with them.

        Parameters
        ----------
        set_to_none : bool, default True
            As PyTorch's.
        """
        self._pending.clear()
        self.wrapped.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a parameter group to the wrapped optimiser."""
        _check(param_group)
        self.wrapped.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimiser's state, and under "bridle" the multipliers and totals.

        Returns what `load_state_dict` takes.
        """
        duals = {name: np.asarray(values).tolist() for name, values in records.leaves(self._duals).items()}
        return {**self.wrapped.state_dict(), "bridle": {"duals": duals, **self._totals()}}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave.

        Parameters
        ----------
        state_dict : dict
            What `state_dict` gave.
        """
        saved = state_dict.get("bridle", {})
        if "duals" not in saved:
            raise InputError(
                "state_dict must be that of a ConstrainedOptimizer around another optimiser; one that was saved without constraints goes "
                "into optimizer.wrapped.load_state_dict"
            )
        duals = loaded(self._duals, saved["duals"])
        self.wrapped.load_state_dict({key: value for key, value in state_dict.items() if key != "bridle"})
        self._load_totals(saved)
        self._duals, self._pending = duals, []

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in OWN}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: state[name] for name in OWN if name in state})
        torch.optim.Optimizer.__setstate__(self, {})  # its hooks
        self.__dict__.update({name: vars(self.wrapped)[name] for name in SHARED})


def both(found: object) -> tuple[object, object]:
    """The cost and the constraints that a closure returned."""
    if not (isinstance(found, tuple) and len(found) == 2):
        raise InputError(
            "the function given to step must return the cost and the constraints, and not call backward(); "
            f"it returned {validate.show(found)}"
        )
    return found


def _asks_again(optimizer: torch.optim.Optimizer) -> bool:
    """Whether the optimiser's step must be given a closure."""
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty


def _check(group: Mapping[str, Any]) -> None:
    if group.get("maximize"):
        raise InputError(
            "maximize=True cannot be wrapped: limits would be weighed the wrong way round; give the negative of it as the cost"
        )


R = TypeVar("R")


def loaded(record: R, plain: Mapping[str, Any]) -> R:
    """The record with its leaves as they were saved, by name, as numbers and lists of them."""
    try:
        if plain.keys() == records.leaves(record).keys():
            return records.filled(record, {name: np.array(values, dtype=float) for name, values in plain.items()})
    except ValueError:
        pass
    raise InputError("state_dict must be that of a ConstrainedOptimizer of the same kind, with the same constraints")
