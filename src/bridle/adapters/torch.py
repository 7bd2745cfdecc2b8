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

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from bridle import policies, records, validate
from bridle.adapters.tensors import Joined, domain_of, gradient, one_pass, scalars, torch, updated
from bridle.core import InputError
from bridle.engines.round import check_compiled
from bridle.ops import Scalar

ONE_PASS = {"form": "value", "halfspace": False}
"""The form of `anytime` that needs one backward pass a step, and no halfspaces: those of a network's constraint hold nothing for sure."""

REACTION = 0.01
"""V times the diameter and the first cost gradient's length, where nothing is given: tried out on a small network, no theory."""


class ConstrainedOptimizer(torch.optim.Optimizer):
    """``step(cost, constraints)``, or ``step(closure)`` with a closure that returns both: one round of `policy`.

    `constraints` (of a step) are scalar tensors, or one vector, that should be 0 or below; `constraints=` says how many. The weights stay
    within `radius` of where they started, or with ``around="origin"`` of 0; a parameter group may have a radius of its own. Parameters
    that need no gradient when the optimiser is made are left alone. `parameters` are the policy's settings; with none, `anytime` weighs
    constraints by their values, with its scales V and lipschitz taken from the gradients of the first step.
    """

    def __init__(
        self,
        params: torch.optim.optimizer.ParamsT,
        radius: float,
        policy: str = "anytime",
        parameters: Mapping[str, object] | None = None,
        constraints: int = 1,
        around: str = "start",
    ) -> None:
        super().__init__(params, {"radius": validate.positive("radius", radius)})
        weights, self._domain = domain_of(self.param_groups, around)
        self._joined = Joined(weights)
        self._tuned = policy == "anytime" and parameters is None
        settings = {**ONE_PASS, "V": 1.0, "lipschitz": 1.0} if self._tuned else dict(parameters or {})
        if any(parameter.name == "constraints" for parameter in policies.parameters(policy)):
            settings.setdefault("constraints", constraints)
        self.rounds, self.cost, self.violations = 0, 0.0, [0.0] * validate.whole("constraints", constraints)
        self._begin(policies.policy(policy, self._domain, **settings))

    def _begin(self, policy: policies.Configured) -> None:
        check_compiled(policy.record)  # what solves a program in NumPy cannot run on tensors
        self.policy, self._record = policy, records.transform(self._here, policy.record)
        with self._placed():
            self._state = records.transform(self._here, self._record.init(self._joined.vector.clone()))

    @property
    def ccv(self) -> float:
        """The cumulative violation of the constraint that has been violated most."""
        return max(self.violations)

    def _placed(self) -> AbstractContextManager[object]:
        """A context in which new tensors are made where the weights are."""
        return nullcontext() if self._joined.memory.device.type == "cpu" else self._joined.memory.device

    def _here(self, leaf: Scalar | torch.Tensor) -> float | torch.Tensor:
        """A leaf of a record as it is computed with: arrays as tensors beside the weights, numbers as they are."""
        vector = np.ndim(leaf) > 0
        return torch.as_tensor(leaf).to(self._joined.memory if vector else self._joined.memory.device) if hasattr(leaf, "ndim") else leaf

    def step(self, cost: object = None, constraints: object = None) -> torch.Tensor:
        """One round at the present weights; gives the cost back. Nothing changes where a value or a gradient is not finite."""
        with torch.enable_grad():
            if constraints is None and callable(cost) and not isinstance(cost, torch.Tensor):
                cost, constraints = cost()
            costs, limits, k = scalars(cost), scalars(constraints), len(self.violations)
        if len(costs) != 1 or len(limits) != k:
            raise InputError(f"step takes one cost and {k} constraint{'s' if k > 1 else ''}, not {len(costs)} and {len(limits)}")
        now = self._joined.vector
        f, *g = torch.stack([value.detach().to(now) for value in (*costs, *limits)]).tolist()
        for i, value in enumerate((f, *g)):
            validate.number(f"constraints[{i - 1}]" if i else "cost", value)
        with torch.no_grad(), self._placed():
            if self._tuned and self.rounds == 0:
                self._tune(costs[0], limits)
            # The decision is what the weights are, also where the module was edited; `now` itself is about to change.
            x = now if one_pass(self._record) and self.rounds else now.clone()
            state = updated(self._record, self._decided(self._state, x), x, self._joined.weights, (costs[0], *limits), f, g)
            now.copy_(self._record.decide(state))
            self._state = self._decided(state, now)
        self.rounds, self.cost = self.rounds + 1, self.cost + f
        self.violations = [total + max(value, 0.0) for total, value in zip(self.violations, g, strict=True)]
        return costs[0].detach()

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
        """As torch's, and under "bridle" all numbers of the policy and its state but the weights, which the module saves itself."""
        x = self._record.decide(self._state)
        leaves = {name: leaf for name, leaf in records.leaves((self._record, self._state)).items() if leaf is not x}
        kept = {name: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for name, leaf in leaves.items()}
        totals = {"rounds": self.rounds, "cost": self.cost, "violations": list(self.violations)}
        return {**super().state_dict(), "bridle": {"policy": self.policy.name, "leaves": kept, **totals}}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """What `state_dict` gave; the module's own state is to be loaded too, before or after."""
        saved = state_dict.get("bridle", {"policy": None, "leaves": {}})
        x, mine, kept = self._record.decide(self._state), records.leaves((self._record, self._state)), saved["leaves"]
        fits = all(np.shape(kept[name]) == np.shape(leaf) if name in kept else leaf is x for name, leaf in mine.items())
        if saved["policy"] != self.policy.name or not fits or kept.keys() - mine.keys():
            raise InputError(f"state_dict must be that of a ConstrainedOptimizer with policy {self.policy.name!r} for the same weights")
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "bridle"})
        values = iter([self._here(kept.get(name, leaf)) for name, leaf in mine.items()])
        self._record, self._state = records.transform(lambda _: next(values), (self._record, self._state))
        self.rounds, self.cost, self.violations = saved["rounds"], saved["cost"], list(saved["violations"])

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Only while the optimiser is made: a decision keeps its dimension."""
        if hasattr(self, "_record"):
            raise InputError("parameter groups cannot be added later: make a new ConstrainedOptimizer with all of them")
        super().add_param_group(param_group)

    def __getstate__(self) -> dict[str, Any]:
        own = ("policy", "rounds", "cost", "violations", "_joined", "_domain", "_tuned", "_record", "_state")
        return {**super().__getstate__(), **{name: vars(self)[name] for name in own}}
