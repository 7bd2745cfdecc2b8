"""Policies for constrained online convex optimisation, one file a paper, and the registry that knows them by name."""

from typing import TYPE_CHECKING

from bridle.policies.registry import (
    PARAMETER_HELP,
    Configuration,
    Configured,
    Entry,
    Parameter,
    Setting,
    Variant,
    entry,
    known,
    names,
    parameters,
    register,
    shared_parameters,
)

if TYPE_CHECKING:  # one overload for every registered name, so that editors know the parameters and type checkers refuse others
    from bridle.policies.overloads import policy as policy
else:
    from bridle.policies.registry import policy

__all__ = [
    "PARAMETER_HELP",
    "Configuration",
    "Configured",
    "Entry",
    "Parameter",
    "Setting",
    "Variant",
    "entry",
    "known",
    "names",
    "parameters",
    "policy",
    "register",
    "shared_parameters",
]
