"""Policies for constrained online convex optimisation, one file a paper, and the registry that knows them by name."""

from bridle.policies.registry import PARAMETERS, Configured, Entry, Parameter, Variant, entry, names, parameters, policy, register

__all__ = ["PARAMETERS", "Configured", "Entry", "Parameter", "Variant", "entry", "names", "parameters", "policy", "register"]
