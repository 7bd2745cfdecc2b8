"""What both kinds of `bridle.adapters.torch.ConstrainedOptimizer` have in common: their limits, totals and reports."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from bridle import records
from bridle.adapters.batch_limits import NetworkLimit, network_limits, on_batch, value_names
from bridle.adapters.limit_report import LimitTable
from bridle.adapters.limits import count
from bridle.adapters.loss_reports import LossProof, LossTally, allowances, loss_report, no_losses
from bridle.adapters.tensors import torch
from bridle.core import InputError
from bridle.ops import Array

R = TypeVar("R")


class LimitedOptimizer(torch.optim.Optimizer):
    """An optimiser with limits: how many steps there were, the total cost, and the total violation of each constraint."""

    rounds: int
    cost: float
    violations: list[float]
    _limits: tuple[NetworkLimit, ...]
    _names: tuple[str, ...]
    _tally: LossTally

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
        firsts = [0, *accumulate(count((limit,)) for limit in self._limits)]
        return LimitTable(loss_report(limit, i, self._tally, self._proof()) for limit, i in zip(self._limits, firsts, strict=False))

    def _proof(self) -> LossProof:
        return LossProof(None, None, "a network is not convex, so no theorem about the policy applies")

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


def loaded(record: R, plain: Mapping[str, Any]) -> R:
    """The record with its leaves as they were saved, by name, as numbers and lists of them."""
    mine = records.leaves(record)
    if plain.keys() != mine.keys() or any(np.shape(plain[name]) != np.shape(leaf) for name, leaf in mine.items()):
        raise InputError("state_dict must be that of a ConstrainedOptimizer of the same kind, with the same constraints")
    values = iter([np.array(plain[name], dtype=float) if np.ndim(leaf) else float(plain[name]) for name, leaf in mine.items()])
    return records.transform(lambda _: next(values), record)
