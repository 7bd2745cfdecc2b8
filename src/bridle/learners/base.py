"""What several learners share: a state, and what a factory takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from bridle import validate
from bridle.core import Domain, InputError, S
from bridle.ops import Array, Scalar

Setting: TypeAlias = float | Sequence[float] | Array
"""A hyper-parameter as a caller gives it: a number, or one for each of several runs."""


class Iterate(NamedTuple):
    """The state of a learner that remembers its decision and one scalar (rounds, sum of squares or sum of moduli)."""

    x: Array
    seen: Scalar


def moved(learner: object, state: S, x: Array) -> S | None:
    """The learner's state with x in place of its next decision; None where it cannot be replaced.

    Where a learner has `move`, its proof measures progress by the distance to the comparator: it stays as it is where x is nearer to that.
    """
    move: Callable[[S, Array], S] | None = getattr(learner, "move", None)
    return None if move is None else move(state, x)


def diameter_or_own(domain: Domain, diameter: Setting | None) -> Scalar:
    """The diameter that a caller gives, checked; by default the domain's own, which must be above 0."""
    if diameter is not None:
        return validate.setting("diameter", diameter)
    own = domain.diameter()
    if own == 0.0:
        raise InputError("domain must hold more than one point; its diameter is 0")
    return validate.setting("diameter", own)
