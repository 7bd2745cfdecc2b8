"""Policies for constrained online convex optimisation, one file a paper, and the registry that knows them by name."""

from bridle.policies.overloads import policy
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
