"""What the registry knows of a policy, as data, and what a theorem sees of one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from bridle.core import Bound, Constants, Domain, Policy
from bridle.ops import Array

Setting: TypeAlias = float | Sequence[float] | Array
"""What a user gives for a number: the number, or a list of one number for each run of a sweep."""

R_co = TypeVar("R_co", covariant=True)
"""The type of a policy's record."""


class Configuration(Protocol[R_co]):
    """A policy with its parameters, as a theorem sees it: what it was told, and the record that plays."""

    @property
    def domain(self) -> Domain: ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the caller gave, by name."""
        ...

    @property
    def record(self) -> R_co: ...


Theorem: TypeAlias = Callable[[Configuration[Any], Constants, float], Bound]
"""``bound(policy, constants, t)``: what is proved of the policy after t rounds of a problem with these constants."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a policy or a problem: of its function's signature, in the words of its docstring.

    `default` is None where there is none, or where it is computed: then `absent` says how. `values` says which values it takes, `unit` in
    what it is measured, and `type` is its annotation.
    """

    name: str
    required: bool
    default: object
    help: str = ""
    absent: str = ""
    values: str = ""
    unit: str = ""
    type: str = ""


PARTS = {"Default": "absent", "Values": "values", "Unit": "unit"}
"""The sentences of a parameter's description that stand for themselves, and the fields of `Parameter` that they fill."""


def described(function: object) -> dict[str, dict[str, str]]:
    """What the section Parameters of a docstring says of each parameter, as fields of `Parameter`.

    >>> def paced(domain, step=0.1):
    ...     '''A policy.
    ...
    ...     Parameters
    ...     ----------
    ...     step : float
    ...         The step size. Values: above 0. Unit: action.
    ...     '''
    >>> described(paced)
    {'step': {'help': 'The step size', 'values': 'above 0', 'unit': 'action'}}
    """
    section = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n|\Z)", inspect.getdoc(function) or "", re.MULTILINE | re.DOTALL)
    found = {}
    for text in re.split(r"\n(?=\S)", section[1]) if section else []:
        name, _, words = text.partition("\n")
        what, *parts = re.split(r"(?:^| )(Default|Values|Unit): ", " ".join(words.split()).removesuffix("."))
        fields = {"help": what} | {PARTS[part]: said for part, said in zip(parts[::2], parts[1::2], strict=True)}
        found[name.partition(" ")[0]] = {key: said.removesuffix(".") for key, said in fields.items()}
    return found


def title_of(function: object) -> str:
    """The first line of a function's docstring, without the full stop."""
    return (inspect.getdoc(function) or "").partition("\n")[0].removesuffix(".")


@cache
def parameters_of(function: Callable[..., object]) -> list[Parameter]:
    """The parameters of a function that makes a policy or a problem, less those of any name."""
    words = described(function)
    return [
        Parameter(p.name, p.default is p.empty, None if p.default is p.empty else p.default, **_typed(p) | words.get(p.name, {}))
        for p in inspect.signature(function).parameters.values()
        if p.kind is not p.VAR_KEYWORD
    ]


def _typed(p: inspect.Parameter) -> dict[str, str]:
    """What the annotation says."""
    kind = "" if p.annotation is p.empty else str(p.annotation)
    return {"type": kind, "values": "True or False" if kind == "bool" else ""}


def _none(policy: Configuration[object], constants: Constants, t: float) -> Bound:
    return Bound(why="no bound is stated")


def _order_only(policy: Configuration[object], constants: Constants, t: float) -> Bound:
    return Bound(why="only its order is quoted, see `bridle policies`")


GIVEN = "given"
"""The value of a `Variant` that stands for every value of a parameter which has none unless it is given."""


@dataclass(frozen=True)
class Variant:
    """How a policy's entry changes if `parameter` is `value`: new values for fields of `Entry`, by name."""

    parameter: str
    value: object
    changes: Mapping[str, Any]

    def holds(self, settings: Mapping[str, object]) -> bool:
        """Whether these settings are the variant's. A sweep over the parameter is not, unless any value is."""
        value = settings.get(self.parameter)
        if self.value is GIVEN:
            return value is not None
        return not isinstance(value, np.ndarray) and bool(value == self.value)


CLIPPED = Variant("clip", True, {"metric": "ccv", "slater": "no"})
"""With `clip` the policy sees positive parts only: the bound is on hard violation, and no Slater point can help."""

READ_AS_AFFINE = Variant("form", "affine", {"affine": True})
"""With `form="affine"` a constraint is read from its value and gradient, and the theorem needs it to be affine."""


@dataclass(frozen=True)
class Entry:
    """A policy's name, how to make it, its theorem, and what it assumes.

    `bound(configured, constants, t)` is the sharpest proved form, `paper` the paper's own. `reduces` says how k constraints are treated:
    "max" (the worst one), "max-distance" or "all". `time_varying`, `slater` and `strongly_convex` are what `bound` is proved for;
    `paper_constraints` is what the paper itself proves, "time-varying" or "fixed". `domains` names the kinds of domain the policy is for
    ("simplex", "box", ...), where it is not for all. `vectors` names the parameters for which a list is one value: they are not swept;
    `actions` those that are actions of the domain.
    """

    name: str
    factory: Callable[..., Policy[Any]]
    title: str
    reference: str
    regret: str
    violation: str
    bound: Theorem = _none
    paper: Theorem = _order_only
    reduces: str = "max"
    metric: str = "ccv"
    time_varying: bool = True
    paper_constraints: str = "time-varying"
    affine: bool = False
    strongly_convex: bool = False
    only_limits: bool = False  # its parameter `lipschitz` is about the constraints alone
    randomised: bool = False  # it draws with its parameter `seed`, which is the problem's where nobody says otherwise
    rewards: bool = False  # costs -<r, x> and constraints lam_i - r_i x_i, as the problem's constant `rewards` says
    slater: str = "no"  # or "sharper" (the violation bound improves with a Slater point) or "required"
    domains: tuple[str, ...] = ()
    feedback: str = "value and gradient"
    cost: str = "1 projection"
    needs: tuple[str, ...] = field(default_factory=tuple)
    variants: tuple[Variant, ...] = ()
    vectors: tuple[str, ...] = ()  # parameters for which a list is one value, not a sweep
    actions: tuple[str, ...] = ()  # parameters that are actions
    dropped: Mapping[str, str] = field(default_factory=dict)  # parameters that there were, and what to use instead
    mixed: Callable[..., Policy[Any]] | None = None  # mixed(domain, through, **settings): it is handed what the user's rules propose

    @property
    def constraints(self) -> str:
        """Whether constraints may change between rounds: in the proof here, and in the paper if that differs."""
        here = "time-varying" if self.time_varying else "fixed"
        return here if here == self.paper_constraints else f"{self.paper_constraints} in the paper, {here} here"

    @property
    def tries_points(self) -> bool:
        """Whether it sees values alone, at points that it tries around its decision."""
        return self.feedback.startswith("values at")

    @property
    def curved(self) -> bool:
        """Whether it is for costs that are more than convex: strongly convex, or exp-concave."""
        return self.strongly_convex or "exp_concavity" in self.needs

    def with_settings(self, settings: Mapping[str, object]) -> Entry:
        """The entry of the policy with these parameters."""
        changes: dict[str, Any] = {}
        for variant in self.variants:
            if variant.holds(settings):
                changes |= variant.changes
        return replace(self, variants=(), **changes)

    def assumptions(self) -> list[str]:
        """The assumptions beyond a feasible action, in words; those of a variant alone come with its setting."""
        texts = [text for holds, text in self._assumed() if holds]
        texts += [f"domain: {' or '.join(self.domains)}"] * bool(self.domains)
        for variant in self.variants:
            there = self.with_settings({variant.parameter: variant.value})
            more = ["fixed constraints"] * (self.time_varying and not there.time_varying)
            more += [text for text in there.assumptions() if text not in texts]
            texts += [f"{', '.join(more)} ({variant.parameter}={variant.value})"] * bool(more)
        return texts

    def _assumed(self) -> tuple[tuple[bool, str], ...]:
        return (
            (self.strongly_convex, "strongly convex costs"),
            (self.affine, "affine constraints"),
            (self.rewards, "rewards with a rate for each arm"),
            (self.slater == "required", "Slater"),
        )

    def outside(self, settings: Mapping[str, object], constants: Constants) -> list[str]:
        """The assumptions of the policy with these settings that a problem with these constants breaks, as sentences for the results."""
        always, now = self._broken(constants), self.with_settings(settings)._broken(constants)
        in_force = [variant.parameter for variant in self.variants if variant.holds(settings)]
        this = f"this {' and '.join(in_force)} of policy {self.name}"
        return [f"{f'policy {self.name}' if text in always else this} {text}" for text in now]

    def _broken(self, constants: Constants) -> list[str]:
        rules = (
            (
                not self.time_varying and constants.get("time_varying"),
                "is for constraints that stay the same; this problem's change, so its bounds do not apply",
            ),
            (
                self.affine and constants.get("affine") is False,
                "is for affine constraints; this problem's are not, so its bounds do not apply",
            ),
            (
                self.slater == "required" and not constants.get("slater"),
                "assumes an action that satisfies every constraint with room to spare; none is known here",
            ),
            (
                self.rewards and constants.get("rewards") is None,
                "is for costs -<r, x> and constraints lam_i - r_i x_i; this problem is not known to have them, so its bounds do not apply",
            ),
        )
        return [text for broken, text in rules if broken]
