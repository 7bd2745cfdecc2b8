"""What the commands `bridle policies` and `bridle problems` tell, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from bridle.problems import ParameterFacts


class VariantFacts(TypedDict):
    """What differs where a parameter has this value."""

    parameter: str
    value: object
    changes: dict[str, object]


class PolicyFacts(TypedDict):
    """What `bridle policies` tells about a policy."""

    name: str
    title: str
    reference: str
    regret: str
    violation: str
    metric: str
    constraints: str
    time_varying: bool
    paper_constraints: str
    several_constraints: str
    strongly_convex: bool
    affine: bool
    rewards: bool
    slater: str
    domains: list[str]
    assumes: list[str]
    feedback: str
    per_round: str
    needs: list[str]
    variants: list[VariantFacts]
    parameters: list[ParameterFacts]


class FullPolicyFacts(PolicyFacts):
    """What `bridle policies NAME` tells: also its theory, what every policy can be told, what sessions can say to it, and how to use it.

    `theory` is its update and its guarantee as formulas. `maps` are parameters of `bridle.policy` that say through what rounds are played,
    `session` the words of `decide` and `observe`. `python` makes it, and `command` plays it.
    """

    theory: str
    maps: list[ParameterFacts]
    session: list[ParameterFacts]
    python: list[str]
    command: str


class FullProblemFacts(TypedDict):
    """What `bridle problems NAME` tells: also how to make it in Python and how to play it."""

    name: str
    summary: str
    about: str
    parameters: list[ParameterFacts]
    python: list[str]
    command: str
