"""What a check of a policy plays: a domain, a number of constraints, and rounds that are gentle or rough."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np

from bridle import records
from bridle.core import Domain, Policy, Round
from bridle.functions import AffineFunction
from bridle.ops import Array
from bridle.validate import show

Result = TypeVar("Result")

SIZES = (1.0, 1e-6, 1.0, 1e6, 1e3, 1e-3)
"""How many times larger than promised the functions are, round by round."""


class MakePolicy(Protocol):
    """How to make the policy for a domain and k constraints, with its units scaled where a scale is given."""

    def __call__(self, domain: Domain, k: int, scale: float | None = None) -> object: ...


class PolicyCase(NamedTuple):
    """One domain and one number of constraints, and how to make policies for them; `name` begins the messages."""

    name: str
    make: MakePolicy
    domain: Domain
    k: int
    seed: int

    def policy(self, scale: float | None = None) -> Policy[object]:
        """A policy for this case; that the factory raises anything is a failure."""
        return cast(Policy[object], self.attempt("the factory", self.make, self.domain, self.k, scale))

    def require(self, holds: object, message: str, *values: object) -> None:
        """Raise an AssertionError with this message, the values put into it, unless `holds`."""
        if not holds:  # the values go into the message here only: printing arrays takes longer than checking them
            raise AssertionError(f"{self.name}: {message.format(*map(show, values)) if values else message}")

    def attempt(self, what: str, call: Callable[..., Result], *arguments: object, **named: object) -> Result:
        """What the call gives; that it raises anything is a failure."""
        try:
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                return call(*arguments, **named)
        except Exception as error:
            raise AssertionError(f"{self.name}: {what} raised {type(error).__name__}: {error}") from error


def gentle_rounds(case: PolicyCase, rounds: int, salt: int) -> list[Round]:
    """Fresh affine functions that keep the promises: unit gradients, and one point satisfies every constraint."""
    rng = np.random.default_rng([case.seed, 2, salt])
    d = case.domain.dim
    point = case.domain.project(case.domain.center() + 0.3 * case.domain.diameter() * rng.standard_normal(d))

    def unit() -> Array:
        a = rng.standard_normal(d)
        return np.asarray(a / np.linalg.norm(a))

    def constraint(a: Array) -> AffineFunction:
        return AffineFunction(a, -float(a @ point) - 0.1 * float(rng.exponential()))

    return [Round(AffineFunction(unit(), float(rng.normal())), tuple(constraint(unit()) for _ in range(case.k))) for _ in range(rounds)]


def rough_rounds(case: PolicyCase, rounds: int) -> list[Round]:
    """Affine functions of all sizes, with zeros and ties; first nothing at all, then what nobody can satisfy among the rest."""
    zero = AffineFunction(np.zeros(case.domain.dim), 0.0)
    stream = []
    for t, one_round in enumerate(gentle_rounds(case, rounds, 3)):
        size = SIZES[t % len(SIZES)]
        cost, rows = records.transform(lambda leaf, size=size: size * leaf, one_round)
        kind = "nothing" if t < 2 else ("all", "all", "no cost", "no constraints", "tied", "all", "flat", "level", "all", "nothing")[t % 10]
        if kind in ("nothing", "no cost"):
            cost = zero
        if kind in ("nothing", "no constraints"):
            rows = (zero,) * case.k
        if kind == "tied":
            rows = (rows[0],) * case.k
        if kind == "flat":  # violated everywhere, and no direction helps
            rows = tuple(AffineFunction(zero.a, size) for _ in rows)
        if kind == "level":  # satisfied everywhere
            rows = tuple(AffineFunction(zero.a, -size) for _ in rows)
        stream.append(Round(cost, rows))
    return stream


def bits(record: object) -> dict[str, object]:
    """The leaves of a record as bytes; what holds no numbers as itself."""
    return {
        name: np.asarray(leaf).tobytes() if isinstance(leaf, (float, int, np.ndarray, np.generic)) else leaf
        for name, leaf in records.leaves(record).items()
    }


def python_only(record: object) -> bool:
    """Whether a part of the record is not pure arithmetic, so that the Python engine alone can run it."""
    return any(not getattr(node, "compiled", True) for node in records.nodes(record))
