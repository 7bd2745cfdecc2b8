"""Games that compiled engines can play, and what they compile run as plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

import bridle
from bridle import policies
from bridle.engines import machine
from bridle.engines.codegen.python_source import PythonSource
from bridle.engines.compiled import object_code
from bridle.engines.round import check_compiled
from bridle.ops import Array
from bridle.policies.registry import record_of
from helpers.extent import WHOLE
from helpers.instances import make_domain

PLACES = ("ball", "box", "simplex", "l1", "halfspace", "cut-box", "product", "spectrahedron")


def run_both_ways(
    source: PythonSource, rounds: int, count: int, given: tuple[Array, ...], shapes: Sequence[tuple[int, ...]]
) -> list[Array]:
    """What the function `run` of a source makes of these arrays: as plain Python, and to the bit the same as machine code."""
    results = []
    for run in (source.interpreted(), machine.rounds_of(object_code(source))):
        made = tuple(np.full(shape, np.nan) for shape in shapes)
        run(rounds, count, np.zeros(0, int), given, made)
        results.append(made)
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two, err_msg=source.function())
    return list(results[0])


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


@cache
def _places_of(name: str, counts: tuple[tuple[str, tuple[int, ...]], ...]) -> list[str]:
    return [place for place, ks in counts if any(compilable_game(name, place, k, 4) for k in ks)]


def games_at(place: str, counts: Mapping[str, tuple[int, ...]], rounds: int, turn: int) -> Iterator[tuple[str, Any, Any]]:
    """Policies that are played at this place, each at every fifth of the places where it can be; `turn` says from which on.

    `counts` are the places, and the numbers of constraints that each is played with. Yields names, policies and problems.
    """
    for i, name in enumerate(policies.names()):
        places = _places_of(name, tuple(counts.items()))
        if place in (places if WHOLE else places[(i + turn) % min(5, len(places) or 1) :: 5]):
            yield from ((name, *game) for k in counts[place] if (game := compilable_game(name, place, k, rounds)))
