"""Policies for constrained online convex optimisation, one file a paper, and the registry that knows them by name."""

from bridle.policies.registry import (
    PARAMETER_HELP,
    Configuration,
    Configured,
    Entry,
    Parameter,
    Setting,
    Variant,
    entry,
    names,
    parameters,
    policy,
    register,
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
    "names",
    "parameters",
    "policy",
    "register",
]
