"""What several learners share: a state, what a factory takes, and how learners on a simplex play on several side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from bridle import validate
from bridle.core import Domain, InputError, Movable, S, capability
from bridle.domains.closed_form import ProductSet, SimplexSet
from bridle.ops import Array, Scalar
from bridle.records import same

Setting: TypeAlias = float | Sequence[float] | Array
"""A hyper-parameter as a caller gives it: a number, or one for each of several runs."""


L = TypeVar("L")
"""A learner on one simplex."""


class Iterate(NamedTuple):
    """The state of a learner that remembers its decision and one scalar (rounds, sum of squares or sum of moduli)."""

    x: Array
    seen: Scalar


def moved(learner: object, state: S, x: Array) -> S | None:
    """The learner's state with x in place of its next decision; None where it cannot be replaced.

    Where a learner has `move`, its proof measures progress by the distance to the comparator: it stays as it is where x is nearer to that.
    """
    movable = capability(learner, Movable)
    return None if movable is None else cast("S | None", movable.move(state, x))


def diameter_or_own(domain: Domain, diameter: Setting | None) -> Scalar:
    """The diameter that a caller gives, checked; by default the domain's own, which must be above 0."""
    if diameter is not None:
        return validate.setting("diameter", diameter)
    own = domain.diameter()
    if own == 0.0:
        raise InputError("domain must hold more than one point; its diameter is 0")
    return validate.setting("diameter", own)


# --- learners on a simplex ------------------------------------------------------------------------------------------------------------

VANISHED = 1e-300
"""What is below this is taken for 0, so that what is divided by it stays finite."""


def on_simplices(name: str, domain: Domain, make: Callable[[SimplexSet], L]) -> L | Grouped:
    """The learner of this name on a simplex, made by `make`, or one on each of equal simplices side by side."""
    parts = domain.domains if isinstance(domain, ProductSet) else (domain,)
    first = parts[0]
    if not isinstance(first, SimplexSet) or not all(same(first, part) for part in parts):
        raise validate.refused(f"domain must be a simplex for {name}, such as bridle.Simplex(3), or equal simplices side by side", domain)
    return Grouped(domain, make(first)) if isinstance(domain, ProductSet) else make(first)


def prior_of(simplex: SimplexSet, prior: ArrayLike | None) -> Array:
    """What each of its corners weighs before anything is known, in all 1."""
    if prior is None:
        return np.full(simplex.dim, 1.0 / simplex.dim)
    weights = validate.vector("prior", prior, simplex.dim)
    if not (weights > 0.0).all():
        raise validate.refused("prior must be above 0 for every corner", prior)
    return np.asarray(weights / weights.sum())


class Grouped(NamedTuple):
    """A learner of its own on each of equal simplices side by side: to `inner` they are runs of its own.

    Their regrets add up. Where each has a bound c D sqrt(S), the sum is at most c D sqrt(S) with the diameter and the squares of all, by
    Cauchy and Schwarz. What `inner` does not offer, this does not.
    """

    domain: ProductSet
    inner: Any  # a learner on one simplex

    @property
    def scale_free(self) -> bool:
        return bool(self.inner.scale_free)

    def init(self, x1: Array) -> object:
        return self.inner.init(self.apart(x1))

    def decide(self, state: object) -> Array:
        x: Array = self.inner.decide(state)
        return x.reshape((*x.shape[:-2], self.domain.dim))

    def step(self, state: object, grad: Array, modulus: Scalar | None = None) -> object:
        return self.inner.step(state, self.apart(grad))

    @property
    def step_at(self) -> Callable[[object, Array, Array], object]:
        """The state after a gradient that belongs to the decision `x`, which may be an earlier one."""
        of_each: Callable[[object, Array, Array], object] = self.inner.step_at
        return lambda state, grad, x: of_each(state, self.apart(grad), self.apart(x))

    def rescale(self, state: object, factor: Scalar) -> object:
        return self.inner.rescale(state, factor if np.ndim(factor) == 0 else factor[..., None])  # type: ignore[index]

    def certified(self, state: object) -> Scalar:
        """The sum of what is proved of each."""
        return over_groups(self.inner.certified(state))

    @property
    def adaptivity(self) -> Callable[[Scalar], Scalar]:
        constant: Callable[[Scalar], Scalar] = self.inner.adaptivity
        return constant

    @property
    def squares(self) -> Callable[[object], Scalar]:
        """The sum over the simplices."""
        of_each: Callable[[object], Array] = self.inner.squares
        return lambda state: over_groups(of_each(state))

    def tilted(self, state: object, losses: Array) -> object:
        """The state with these losses added and charged at the decision after them."""
        return self.inner.tilted(state, self.apart(losses))

    def apart(self, x: Array) -> Array:
        """What belongs to each simplex, along an axis of its own."""
        groups = len(self.domain.domains)
        return x.reshape((*x.shape[:-1], groups, self.domain.dim // groups))


def over_groups(values: Array) -> Scalar:
    """The sum over simplices of a scalar of each, as a scalar of all."""
    total: Scalar = values.sum(axis=-2)
    return total[0] if np.ndim(total) == 1 else total  # type: ignore[index]
