"""The limits that a linear classifier can be held to, by name; each becomes one constraint or two of every round.

A limit is a record. `start(dim)` is what it remembers before the first row, and ``reveal(memory, a, sign, group)`` gives what it remembers
after a row and the constraint of that row's round; `a` are the features (the intercept's 1 among them), `sign` is +1 or -1 for the class.
Where all of these have a leading time axis, the constraint is a sequence. Held on average (`averages`), a limit counts the rows for which
``speaks(sign)`` is 1, or all of them where it has no such method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from bridle import ops, validate
from bridle.core import Function, InputError
from bridle.functions import AffineFunction, AffineRows, Excess, LogisticLoss, RoundQuadratic
from bridle.ops import Array, Scalar

M = TypeVar("M")
"""What a limit remembers of the rows so far."""


class Limit(Protocol[M]):
    """A limit that a linear classifier is held to."""

    def bind(self, classes: Sequence[object]) -> Limit[M]:
        """The limit for an estimator with these two classes."""
        ...

    def start(self, dim: int) -> M:
        """What it remembers before the first row."""
        ...

    def reveal(self, memory: M, a: Array, sign: Scalar, group: Scalar | None) -> tuple[M, Function]:
        """What it remembers after a row, and the constraint of that row's round."""
        ...


class MissLossLimit(NamedTuple):
    """The log-loss of each row of class `label` is at most `at_most`; a row of the other class satisfies it by that much."""

    label: object
    at_most: float
    sign: float = 1.0

    def bind(self, classes: Sequence[object]) -> MissLossLimit:
        """The limit, knowing whether its class is the first or the second of `classes`."""
        signs = [sign for sign, name in zip((-1.0, 1.0), classes, strict=True) if name == self.label]
        if not signs:
            raise InputError(f"MissLoss: label must be one of the classes {validate.show(list(classes))}, not {validate.show(self.label)}")
        return self._replace(sign=signs[0])

    def start(self, dim: int) -> tuple[()]:
        return ()

    def reveal(self, memory: tuple[()], a: Array, sign: Scalar, group: Scalar | None) -> tuple[tuple[()], Function]:
        counts = sign == self.sign
        if counts is False:  # one row of the other class: what `Excess` gives, without a logarithm
            return memory, AffineFunction(0.0 * a, -self.at_most)
        return memory, Excess(LogisticLoss(a, sign, 1.0 * counts), self.at_most + 0.0 * sign)

    def speaks(self, sign: Scalar) -> Scalar:
        """Only rows of its class count."""
        return ops.where(sign == self.sign, 1.0, 0.0)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"label": self.label, "at_most": self.at_most}

    def set_params(self, **changes: object) -> MissLossLimit:
        return changed(MissLoss, self, changes)

    def __repr__(self) -> str:
        return written(MissLoss, self)


class Groups(NamedTuple):
    """How many rows of the one group and of the other were seen, and their mean features: over the last rows, fading into the past."""

    seen: Array  # (2,)
    means: Array  # (2, d)


class GroupGapLimit(NamedTuple):
    """The mean score (log-odds) of one group is within `at_most` of the other's: two constraints, one for each sign.

    Means are over about the last `lookback` rows of each group: plain ones at first, then each new row weighs 1 / lookback. A row's group
    is the one or the other as its number is above 0 or not; a row whose group is None or nan is of neither.
    """

    at_most: float
    lookback: float

    def bind(self, classes: Sequence[object]) -> GroupGapLimit:
        return self

    def start(self, dim: int) -> Groups:
        return Groups(np.zeros(2), np.zeros((2, dim)))

    def reveal(self, memory: Groups, a: Array, sign: Scalar, group: Scalar | None) -> tuple[Groups, AffineRows]:
        if group is None:
            raise InputError("groups must be given with GroupGap: a number for each row, above 0 for the one group, else 0")
        if a.ndim > 1:
            slopes = []
            for row, one in zip(a, cast("Array", group), strict=True):
                memory, gap = self.reveal(memory, row, 1.0, one)
                slopes.append(gap.A)
            return memory, AffineRows(np.array(slopes), np.full((len(a), 2), -self.at_most))
        member = ops.columns(1.0 * (group <= 0.0), 1.0 * (group > 0.0))  # type: ignore[arg-type]  # of neither if it is nan
        seen = memory.seen + member
        share = member / ops.minimum(ops.maximum(seen, 1.0), self.lookback)
        means = memory.means + share[:, None] * (a - memory.means)
        apart = (means[1] - means[0]) * (1.0 * (seen[0] * seen[1] > 0.0))
        xp = ops.namespace(apart)
        return Groups(seen, means), AffineRows(xp.stack([apart, -apart]), xp.full(2, -self.at_most))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"at_most": self.at_most, "lookback": self.lookback}

    def set_params(self, **changes: object) -> GroupGapLimit:
        return changed(GroupGap, self, changes)

    def __repr__(self) -> str:
        return written(GroupGap, self)


class WeightLimit(NamedTuple):
    """Half the squared length of the weights, the intercept among them, is at most `at_most`."""

    at_most: float

    def bind(self, classes: Sequence[object]) -> WeightLimit:
        return self

    def start(self, dim: int) -> tuple[()]:
        return ()

    def reveal(self, memory: tuple[()], a: Array, sign: Scalar, group: Scalar | None) -> tuple[tuple[()], Function]:
        nowhere = 0.0 * a
        return memory, RoundQuadratic(1.0 + 0.0 * sign, nowhere, nowhere, 0.0 * sign - self.at_most)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"at_most": self.at_most}

    def set_params(self, **changes: object) -> WeightLimit:
        return changed(WeightBudget, self, changes)

    def __repr__(self) -> str:
        return written(WeightBudget, self)


L = TypeVar("L")
"""A limit."""

ASKED = ("at_least", "at_most", "gap", "level", "beyond")
"""What the number that a limit asks for may be called."""


def written(factory: Callable[..., Any], limit: Any) -> str:
    """A limit as its user would write it: what it asks, and every setting that is not the usual one."""
    usual = {name: parameter.default for name, parameter in signature(factory).parameters.items()}
    settings = limit.get_params().items()
    told = [(name, value) for name, value in settings if name in ASKED or value != usual[name] or (name == "label" and value is not None)]
    return f"{factory.__name__}({', '.join(f'{name}={_short(value)}' for name, value in told)})"


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_short, value))}]"
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def changed(factory: Callable[..., L], limit: Any, changes: Mapping[str, object]) -> L:
    """What the factory makes of a limit's settings with some of them changed."""
    settings = limit.get_params()
    for name in changes:
        if name not in settings:
            raise validate.unknown(f"parameter of {factory.__name__}", name, list(settings))
    return factory(**{**settings, **changes})


def MissLoss(label: object = 1, at_most: float = 0.1) -> MissLossLimit:
    """A limit: at most this log-loss on every row of a class, so that it is not missed.

    Parameters
    ----------
    label : object, default 1
        The class.
    at_most : float, default 0.1
        The log-loss, above 0, in nats: 0.1 asks for a probability of e^-0.1 = 0.90. No finite weights could meet 0.

    Examples
    --------
    >>> MissLoss(label="fraud", at_most=0.2).bind(["fine", "fraud"]).sign
    1.0
    """
    return MissLossLimit(label, validate.positive("at_most", at_most))


def GroupGap(at_most: float = 0.1, lookback: int = 1000) -> GroupGapLimit:
    """A limit: at most this difference between two groups' mean scores.

    Parameters
    ----------
    at_most : float, default 0.1
        The difference, above 0, in log-odds.
    lookback : int, default 1000
        Over about how many of the last rows of each group, 1 or above.

    Examples
    --------
    >>> limit = GroupGap(at_most=0.5)
    >>> memory, _ = limit.reveal(limit.start(2), np.array([1.0, 3.0]), 1.0, 0)
    >>> memory, gap = limit.reveal(memory, np.array([1.0, 5.0]), 1.0, 1)
    >>> gap.value(np.array([9.0, 1.0]))
    array([ 1.5, -2.5])
    """
    return GroupGapLimit(validate.positive("at_most", at_most), float(validate.whole("lookback", lookback)))


def WeightBudget(at_most: float = 1.0) -> WeightLimit:
    """A limit: at most this much of half the squared length of the weights, the intercept among them.

    Parameters
    ----------
    at_most : float, default 1.0
        The amount, above 0, in squared weights.

    Examples
    --------
    >>> WeightBudget(2.0).reveal((), np.ones(2), 1.0, None)[1].value(np.array([2.0, 2.0]))
    2.0
    """
    return WeightLimit(validate.positive("at_most", at_most))


def bind_all(limits: object, classes: Sequence[object]) -> tuple[Limit[object], ...]:
    """The limits that an estimator was given, bound to its two classes."""
    if limits is None:
        return ()
    several = isinstance(limits, (list, tuple)) and not hasattr(limits, "reveal")
    each = tuple(cast("Sequence[Limit[object]]", limits) if several else (cast("Limit[object]", limits),))
    for limit in each:
        if not hasattr(limit, "reveal"):
            raise InputError(
                f"constraints must hold limits such as Recall(at_least=0.9) or MissLoss(label=1, at_most=0.1), not {validate.show(limit)}"
            )
    return tuple(limit.bind(classes) for limit in each)


def count(limits: tuple[object, ...]) -> int:
    """How many constraints a round has; at least one, if only an idle one."""
    return sum(2 if isinstance(limit, GroupGapLimit) else 1 for limit in limits) or 1
