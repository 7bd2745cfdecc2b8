"""Limits on a network's batches: those that have a name are evaluated on its outputs, and all are counted and reported.

`MissLoss(label, at_most)` is the mean log-loss of the batch's rows of that class, `GroupGap(at_most)` the difference of the mean outputs of
two groups in the batch, both signs. A batch without such rows says nothing of the limit. Limits of your own are scalar tensors that you
compute, called by a name or by their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from bridle import validate
from bridle.adapters.levels import Recent, make_recent
from bridle.adapters.limit_report import LimitReport, LimitTable, short
from bridle.adapters.limits import GroupGapLimit, MissLossLimit
from bridle.adapters.tensors import torch
from bridle.core import InputError
from bridle.ops import Array

SLACK = 0.1
"""A limit is said to hold while its mean is within this share of what it allows."""


class NetworkLimit(NamedTuple):
    """A limit on batches: what it is called, what it asks, and what evaluates it, if that is known."""

    name: str
    asked: float
    least: float  # that what is measured can be
    values: int  # how many constraints of a step it is
    limit: MissLossLimit | GroupGapLimit | None


def network_limits(constraints: object) -> tuple[NetworkLimit, ...]:
    """From a number of constraints, or a list of limits and names.

    >>> from bridle.adapters.limits import GroupGap, MissLoss
    >>> [limit.name for limit in network_limits([MissLoss(label=1, at_most=0.3), GroupGap(0.1), "latency"])]
    ['loss of 1', 'gap', 'latency']
    """
    if not isinstance(constraints, (list, tuple)) or hasattr(constraints, "_fields"):
        if hasattr(constraints, "_fields") or isinstance(constraints, str):
            return network_limits([constraints])
        return tuple(NetworkLimit(f"constraints[{i}]", 0.0, -inf, 1, None) for i in range(validate.whole("constraints", constraints)))
    limits = tuple(_named(limit) for limit in constraints)
    names = [limit.name for limit in limits]
    if not limits or len(set(names)) < len(names):
        raise InputError(f"constraints must hold limits or names that differ, at least one, not {validate.show(constraints)}")
    return limits


def _named(limit: object) -> NetworkLimit:
    if isinstance(limit, str) and limit:
        return NetworkLimit(limit, 0.0, -inf, 1, None)
    if isinstance(limit, MissLossLimit):
        return NetworkLimit(f"loss of {limit.label}", limit.at_most, 0.0, 1, limit)
    if isinstance(limit, GroupGapLimit):
        return NetworkLimit("gap", limit.at_most, 0.0, 2, limit)
    if hasattr(limit, "levels"):
        raise InputError(
            f"{validate.show(limit)} is a limit on a rate, which no gradient can hold: keep it by a threshold on the network's outputs, "
            "RateLimiter([Recall(at_least=0.9)]), beside the optimiser"
        )
    raise InputError(
        f"constraints must be a number, or hold limits such as MissLoss(label=1, at_most=0.3) and names, not {validate.show(limit)}"
    )


def value_names(limits: Sequence[NetworkLimit]) -> tuple[str, ...]:
    """What the constraints of a step are called."""
    return tuple(limit.name for limit in limits for _ in range(limit.values))


def on_batch(
    limits: Sequence[NetworkLimit], logits: object, labels: object, groups: object, own: Mapping[str, object]
) -> list[torch.Tensor | None]:
    """The constraints of a step whose batch has these outputs and labels; None for what it says nothing of.

    `logits` are log-odds of the second of two classes, or (for `MissLoss`) a row of outputs for each of several classes.
    """
    names = [limit.name for limit in limits if limit.limit is None]
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
        if isinstance(limit.limit, MissLossLimit):
            values.append(_miss(limit.limit, out, of))
        elif isinstance(limit.limit, GroupGapLimit):
            values += _gap(limit.limit, out, groups)
        else:
            values.append(own[limit.name])  # checked by the step
    return values


def _miss(limit: MissLossLimit, out: torch.Tensor, labels: torch.Tensor) -> torch.Tensor | None:
    if out.ndim == 2:
        classes = list(range(out.shape[1]))
        if limit.label not in classes:
            raise InputError(f"MissLoss: label must be one of the classes {validate.show(classes)}, not {validate.show(limit.label)}")
        rows = labels == int(limit.label)
        return torch.nn.functional.cross_entropy(out[rows], labels[rows].long()) - limit.at_most if rows.any() else None
    sign = limit.bind((0, 1)).sign
    rows = (labels > 0.5) == (sign > 0.0)
    return torch.nn.functional.softplus(-sign * out[rows]).mean() - limit.at_most if rows.any() else None


def _gap(limit: GroupGapLimit, out: torch.Tensor, groups: object) -> list[torch.Tensor | None]:
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


class StepCounts(NamedTuple):
    """Of every constraint: the sum of its values, the steps that counted, the sums lately, and the last step at which it did not hold."""

    total: Array
    counted: Array
    recent: tuple[Recent, ...]
    broken: Array

    @classmethod
    def start(cls, k: int) -> StepCounts:
        """Before the first step, with k constraints."""
        return cls(np.zeros(k), np.zeros(k), tuple(make_recent(1) for _ in range(k)), np.zeros(k))

    def observed(self, g: Array, slack: Array, step: int) -> StepCounts:
        """After a step with these values; nan for one that did not count."""
        counts = ~np.isnan(g)
        total, counted = self.total + np.where(counts, g, 0.0), self.counted + counts
        recent = [each.mark(n, np.array([s]), bool(c)) for each, n, s, c in zip(self.recent, counted, total, counts, strict=True)]
        return StepCounts(total, counted, tuple(recent), np.where(total > slack * counted, float(step), self.broken))

    def plain(self) -> dict[str, Any]:
        """The same as lists of numbers."""
        marks = [each.marks.tolist() for each in self.recent]
        return {"total": self.total.tolist(), "counted": self.counted.tolist(), "recent": marks, "broken": self.broken.tolist()}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> StepCounts:
        """From what `plain` gave."""
        recent = tuple(Recent(np.array(marks)) for marks in plain["recent"])
        return cls(np.array(plain["total"]), np.array(plain["counted"]), recent, np.array(plain["broken"]))


def slacks(limits: Sequence[NetworkLimit]) -> Array:
    """How far above 0 the mean of each constraint may be while its limit is said to hold."""
    return np.array([SLACK * limit.asked for limit in limits for _ in range(limit.values)])


class Proof(NamedTuple):
    """What the values of each constraint add up to at most and what they are worth in cost, where that is known; if not, why."""

    bound: Array | None = None
    prices: Array | None = None
    why: str = ""


def limit_reports(limits: Sequence[NetworkLimit], counts: StepCounts, proof: Proof) -> LimitTable:
    """What became of every limit."""
    ends = np.cumsum([limit.values for limit in limits])
    return LimitTable(_report(limit, counts, proof, range(end - limit.values, end)) for limit, end in zip(limits, ends, strict=True))


def _report(limit: NetworkLimit, counts: StepCounts, proof: Proof, places: range) -> LimitReport:
    """What became of the limit whose constraints are at these places: a gap has two, and the worse one counts."""
    n = float(counts.counted[places[0]])
    if not n:
        words = "no step has said anything of it yet"
        return LimitReport(limit.name, "at most", limit.asked, None, None, None, words, None, PRICE, None, 0, 0, words)
    mine = slice(places[0], places[-1] + 1)
    window, _ = counts.recent[mine][0].since(n)
    before = np.array([float(each.since(n)[1][0]) for each in counts.recent[mine]])
    mean = limit.asked + float(counts.total[mine].max()) / n
    lately = limit.asked + float((counts.total[mine] - before).max()) / window
    proved = None if proof.bound is None else (limit.least, limit.asked + float(proof.bound[mine].max()) / n)
    held = mean <= limit.asked + SLACK * limit.asked
    return LimitReport(
        limit.name, "at most", limit.asked, mean, lately, proved, proof.why,
        None if proof.prices is None else float(proof.prices[mine].max()), PRICE, int(counts.broken[mine].max()) + 1 if held else None,
        int(n), 0, f"mean {short(mean)} over {int(n):,} steps, {short(lately)} over the last {int(window):,}",
    )  # fmt: skip


PRICE = "cost for one unit less of the limit"
