"""What both kinds of `bridle.adapters.torch.ConstrainedOptimizer` have in common: their limits, totals and reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bridle.adapters.batch_limits import NetworkLimit, Proof, StepCounts, limit_reports, network_limits, on_batch, slacks, value_names
from bridle.adapters.limit_report import LimitTable
from bridle.adapters.tensors import torch
from bridle.core import InputError
from bridle.ops import Array


class LimitedOptimizer(torch.optim.Optimizer):
    """An optimiser with limits: how many steps there were, the total cost, and the total violation of each constraint."""

    rounds: int
    cost: float
    violations: list[float]
    _limits: tuple[NetworkLimit, ...]
    _names: tuple[str, ...]
    _counts: StepCounts

    def _limit(self, constraints: object) -> None:
        """Begin with these limits."""
        self._limits = network_limits(constraints)
        self._names = value_names(self._limits)
        k = len(self._names)
        self.rounds, self.cost, self.violations, self._counts = 0, 0.0, [0.0] * k, StepCounts.start(k)

    def _observed(self, f: float, g: Array) -> None:
        """Count a step with this cost and these constraints, of which nan does not count."""
        self.rounds, self.cost = self.rounds + 1, self.cost + f
        self.violations = [total + max(value, 0.0) for total, value in zip(self.violations, np.nan_to_num(g).tolist(), strict=True)]
        self._counts = self._counts.observed(g, slacks(self._limits), self.rounds)

    @property
    def ccv(self) -> float:
        """The cumulative violation of the constraint that has been violated most."""
        return max(self.violations)

    def measure(self, logits: object, labels: object, groups: object = None, **own: object) -> list[torch.Tensor | None]:
        """The constraints of a step, from what the network made of a batch: for `step` or `weighted`.

        `logits` are log-odds of the second of two classes, or a row of outputs for each of several; `groups` is a number for each row,
        above 0 for the one group, nan for none. Constraints of your own that have a name are given by it.
        """
        return on_batch(self._limits, logits, labels, groups, own)

    @property
    def limits_(self) -> LimitTable:
        """What was asked of every limit, what came out, over all steps that counted and lately, and what is proved; printed, a table."""
        return limit_reports(self._limits, self._counts, self._proof())

    def _proof(self) -> Proof:
        return Proof(why="a network is not convex, so no theorem about the policy applies")

    def __repr__(self) -> str:
        return f"{super().__repr__()}\n{self.limits_!r}"

    def _totals(self) -> dict[str, Any]:
        """What is saved of it."""
        return {"rounds": self.rounds, "cost": self.cost, "violations": list(self.violations), "counts": self._counts.plain()}

    def _load_totals(self, saved: Mapping[str, Any]) -> None:
        """What `_totals` gave; an older state has no counts, and the reports begin anew."""
        k = len(self._names)
        counts = StepCounts.of(saved["counts"]) if "counts" in saved else StepCounts.start(k)
        if len(saved["violations"]) != k or len(counts.total) != k:
            raise InputError(f"state_dict must be that of a ConstrainedOptimizer with {k} constraints, not {len(saved['violations'])}")
        self.rounds, self.cost, self.violations, self._counts = saved["rounds"], saved["cost"], list(saved["violations"]), counts
