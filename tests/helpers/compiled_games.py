"""Games that compiled engines can play, and what they compile run as plain Python."""

from __future__ import annotations

import numpy as np

import bridle
from bridle import policies
from bridle.engines.codegen.python_source import PythonSource
from bridle.engines.round import check_compiled
from bridle.policies.registry import record_of
from helpers.instances import make_domain

PLACES = ("ball", "box", "simplex", "l1", "halfspace", "cut-box", "product", "spectrahedron")


def interpreted(source: PythonSource):
    """The function `run` of a source as plain Python: the same loops, without a compiler."""
    return source.interpreted()


def compilable_game(name: str, place: str, constraints: int, rounds: int, dim: int = 5):
    """A game that the policy can play, or None where it does not apply or calls a solver."""
    curved = {"modulus": 0.5} if policies.entry(name).strongly_convex else {}
    try:
        domain = make_domain(place, dim, 1.0, np.random.default_rng(7))
        problem = bridle.problem("halfspaces", horizon=rounds, domain=domain, constraints=constraints, **curved)
        policy = bridle.policy_for(name, problem)
        check_compiled(record_of(policy))
    except bridle.InputError:
        return None
    if len(getattr(record_of(policy), "each", range(constraints))) != constraints:
        return None  # it has constraints of its own, one for every coordinate
    return policy, problem
