"""An optimiser for PyTorch that keeps constraints: the weights of a network are a policy's decision, and every step is a round.

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

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias, cast

import numpy as np

from bridle import policies, records, validate
from bridle.adapters.limited import LimitedOptimizer
from bridle.adapters.limiter import RateLimiter
from bridle.adapters.limits import GroupGap, GroupGapLimit, MissLoss, MissLossLimit
from bridle.adapters.rate_limits import (
    AlertBudget,
    AlertRate,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FalsePositiveRate,
    Precision,
    Recall,
)
from bridle.adapters.step_values import functions
from bridle.adapters.tensors import Joined, domain_of, gradient, one_pass, torch, updated
from bridle.adapters.wrapped import Wrapping, both
from bridle.core import InputError, TriesPoints, capability
from bridle.engines.round import check_compiled
from bridle.ops import Scalar

__all__ = [
    "AlertBudget", "AlertRate", "ConstrainedOptimizer", "DemographicParity", "EqualOpportunity", "EqualizedOdds", "FalsePositiveRate",
    "GroupGap", "MissLoss", "Precision", "RateLimiter", "Recall", "WrappedOptimizer",
]  # fmt: skip

ONE_PASS = {"form": "value", "halfspace": False}
"""The form of `anytime` that needs one backward pass a step, and no halfspaces: those of a network's constraint hold nothing for sure."""

REACTION = 0.01
"""V times the diameter and the first cost gradient's length, where nothing is given: tried out on a small network, no theory."""


Limits: TypeAlias = Sequence[MissLossLimit | GroupGapLimit | str] | MissLossLimit | GroupGapLimit
"""Limits that an optimiser can be held to: those with a name of their own, and names for constraints that you compute."""


class OwnGroup(dict[str, Any]):
    """A parameter group of a policy: it says what to do where a schedule asks for a learning rate."""

    def __missing__(self, key: str) -> object:
        if key == "lr":
            raise InputError(
                "a policy has no learning rate to schedule: radius takes its place. To schedule one, put the constraints around "
                "an optimiser of torch's: ConstrainedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), constraints=1)"
            )
        raise KeyError(key)


class ConstrainedOptimizer(LimitedOptimizer):
    """Constraints around an optimiser of PyTorch, or bridle's own policies as an optimiser.

    ``ConstrainedOptimizer(torch.optim.Adam(model.parameters()), constraints=2)`` is a `WrappedOptimizer`: Adam takes the steps, on the
    cost and constraints as `bridle.adapters.duals` weighs them, so that they hold on average.

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
        totals = ("rounds", "cost", "violations", "_limits", "_names", "_tally")
        own = ("policy", *totals, "_joined", "_domain", "_tuned", "_record", "_state")
        return {**super().__getstate__(), **{name: vars(self)[name] for name in own}}


class WrappedOptimizer(Wrapping, ConstrainedOptimizer):  # type: ignore[override]  # its parameter groups are the wrapped one's
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
        self._wrap(params, constraints)
