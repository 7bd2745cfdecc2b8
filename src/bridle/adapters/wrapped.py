"""Constraints around somebody else's optimiser: it takes the steps, on the cost and the limits weighted by `bridle.adapters.duals`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bridle import records, validate
from bridle.adapters.duals import Duals, StepWeights
from bridle.adapters.limited import LimitedOptimizer, loaded
from bridle.adapters.loss_reports import LossProof
from bridle.adapters.step_values import Functions, functions, length, slope
from bridle.adapters.tensors import torch
from bridle.core import InputError
from bridle.ops import Array

OWN = ("wrapped", "rounds", "cost", "violations", "_limits", "_names", "_tally", "_duals", "_pending")
"""What is pickled beside what torch's optimisers have."""

SHARED = tuple(f"_optimizer_{kind}state_dict_{when}_hooks" for kind in ("", "load_") for when in ("pre", "post"))
"""Hooks around saving and loading: there is one state to save, so both optimisers have them in common."""


class Evaluated(NamedTuple):
    """Values that wait for their step, and the weights they were given."""

    f: float
    g: Array
    weights: StepWeights


class Wrapping(LimitedOptimizer):
    """What `bridle.adapters.torch.ConstrainedOptimizer` does around another optimiser, whose parameter groups and state are its own."""

    wrapped: torch.optim.Optimizer

    def _wrap(self, optimizer: torch.optim.Optimizer, constraints: object) -> None:
        for group in optimizer.param_groups:
            _check(group)
        self._limit(constraints)
        self.wrapped, self._duals = optimizer, Duals.start(len(self._names))
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
        counts = ~np.isnan(g)
        values = np.where(counts.any(axis=0), np.where(counts, g, 0.0).sum(axis=0) / np.maximum(counts.sum(axis=0), 1), np.nan)
        self._duals = self._duals.observed(values)
        self._observed(sum(part.f for part in self._pending) / len(self._pending), values)
        self._pending.clear()

    def _proof(self) -> LossProof:
        return LossProof(self._duals.multipliers.bound, self._duals.prices, "")

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
    def param_groups(self) -> Any:
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
