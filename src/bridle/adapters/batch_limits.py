"""Limits on a network's batches: those that have a name are evaluated on its outputs.

`MissLoss(label, at_most)` is the mean log-loss of the batch's rows of that class, `GroupGap(at_most)` the difference of the mean outputs of
two groups in the batch, both signs. A batch without such rows says nothing of the limit. Limits of your own are scalar tensors that you
compute, called by a name or by their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from bridle import validate
from bridle.adapters.limits import GroupGapLimit, MissLossLimit, count
from bridle.adapters.loss_reports import loss_name
from bridle.adapters.tensors import torch
from bridle.core import InputError


class OwnValue(NamedTuple):
    """A constraint that its user computes: it should be 0 or below."""

    name: str
    at_most: float = 0.0


NetworkLimit: TypeAlias = MissLossLimit | GroupGapLimit | OwnValue
"""A limit on batches."""


def network_limits(constraints: object) -> tuple[NetworkLimit, ...]:
    """From a number of constraints, or a list of limits and names.

    >>> from bridle.adapters.limits import GroupGap, MissLoss
    >>> value_names(network_limits([MissLoss(label=1, at_most=0.3), GroupGap(0.1), "latency"]))  # a gap is two, one for each sign
    ('mean loss of 1', 'gap of mean scores', 'gap of mean scores', 'latency')
    """
    if not isinstance(constraints, (list, tuple)) or hasattr(constraints, "_fields"):
        if hasattr(constraints, "_fields") or isinstance(constraints, str):
            return network_limits([constraints])
        return tuple(OwnValue(f"constraints[{i}]") for i in range(validate.whole("constraints", constraints)))
    limits = tuple(_named(limit) for limit in constraints)
    names = [loss_name(limit) for limit in limits]
    if not limits or len(set(names)) < len(names):
        raise InputError(f"constraints must hold limits or names that differ, at least one, not {validate.show(constraints)}")
    return limits


def _named(limit: object) -> NetworkLimit:
    if isinstance(limit, str) and limit:
        return OwnValue(limit)
    if isinstance(limit, (MissLossLimit, GroupGapLimit)):
        return limit
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
    return tuple(loss_name(limit) for limit in limits for _ in range(count((limit,))))


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
        if isinstance(limit, MissLossLimit):
            values.append(_miss(limit, out, of))
        elif isinstance(limit, GroupGapLimit):
            values += _gap(limit, out, groups)
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
