"""What an engine makes of a game, to be read: its source, with the leaf behind every argument and the line behind every statement.

Nothing of this is in what is compiled: a line that moves must not change the name that compiled code is kept under.

>>> import bridle
>>> problem = bridle.problem("halfspaces", horizon=100, dim=3)
>>> text = explain(bridle.policy_for("sinha2024", problem), problem)
>>> print(*[line for line in text.splitlines() if "Lyapunov.weigh" in line][:1])  # doctest: +ELLIPSIS
        v... = ...  # policies/_sinha2024.py:... (Lyapunov.weigh)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bridle import records
from bridle.core import InputError, Policy
from bridle.engines.round import Collect, check_compiled
from bridle.policies.registry import Configured
from bridle.policies.round_maps import record_of

if TYPE_CHECKING:  # `import bridle` brings this module, and is to bring no compiler
    from bridle.engines.codegen.equations import Equation, Equations, Traced, Variable
    from bridle.engines.codegen.statements import Origin


class _TracedGame(NamedTuple):
    """The equations of a round, what its arguments are called, and how many of them are constants and states."""

    traced: Traced
    leaves: list[str]
    constants: int
    states: int


def explain(policy: Policy[object] | Configured, problem: Any, engine: str = "compiled") -> str:
    """The source that an engine makes of one run of a game, with what every argument is and which line every statement comes from.

    Parameters
    ----------
    policy : Policy
        What plays; of a sweep, the first run.
    problem : Problem
        What it is played on.
    engine : {"compiled", "jax"}, default "compiled"
        For "compiled" it is the function that is compiled, for "jax" the traced equations.

    Examples
    --------
    >>> import bridle
    >>> from bridle.engines import explain
    >>> explain(bridle.policy("anytime", bridle.Ball(2)), bridle.problem("fixed", horizon=5, dim=2), engine="python")
    Traceback (most recent call last):
    ...
    bridle.core.InputError: engine 'python' makes nothing of a game that could be shown: it calls the policy's own methods
    """
    from bridle.engines import check_name

    if engine == "python":
        raise InputError("engine 'python' makes nothing of a game that could be shown: it calls the policy's own methods")
    engine = check_name(engine, ("compiled", "jax"))
    one = policy.run(0) if isinstance(policy, Configured) and policy.runs is not None else policy
    game = _traced(record_of(one), problem, rolled=engine != "jax")
    if engine == "jax":
        return "\n".join(_listing(game)) + "\n"
    from bridle.engines.codegen.equations import line_of
    from bridle.engines.codegen.loops import lower

    def note(origin: Origin) -> str:
        if isinstance(origin, int):
            return game.leaves[origin]
        return "" if origin is None else line_of(origin)

    return lower(game.traced, game.constants, game.states).function(note)


def _traced(record: Policy[object], problem: Any, rolled: bool) -> _TracedGame:
    from bridle.engines import load

    load("jax")  # where it is missing, this says what to install
    from bridle.engines.codegen.trace import trace_of
    from bridle.engines.jax import one_round
    from bridle.engines.runs import shapes

    adversary = problem.adversary
    if hasattr(adversary, "replay"):
        draws = adversary.replay(0, 1)
    else:
        draws = adversary.deal(np.random.default_rng(0), 1) if hasattr(adversary, "deal") else None
    player = getattr(adversary, "player", adversary)
    constants = {"policy": record, "adversary": player}
    states = {"state.policy": record.init(problem.domain.center()), "state.adversary": adversary.init()}
    check_compiled(*constants.values(), draws)
    parts = shapes(tuple(constants.values())), shapes(tuple(states.values())), shapes(draws, 1)
    traced, _ = trace_of(one_round(Collect.VALUES), *parts, rolled=rolled)
    names = [_names(group) for group in (constants, states, {"draw": draws})]
    return _TracedGame(traced, [name for group in names for name in group], len(names[0]), len(names[1]))


def _names(parts: Mapping[str, object]) -> list[str]:
    """What the leaves are called."""
    return [f"{part}.{leaf}".rstrip(".") for part, record in parts.items() for leaf in records.leaves(record)]


def _listing(game: _TracedGame) -> Iterator[str]:
    """The equations, one to a line."""
    names: dict[Variable, str] = {}
    for n, (var, leaf) in enumerate(zip(game.traced.jaxpr.invars, game.leaves, strict=True)):
        names[var] = f"a{n}"
        yield f"a{n}: {_kind(var)}  # {leaf}"
    yield from _equations(game.traced.jaxpr, names, "")
    yield f"return {', '.join(_name(var, names) for var in game.traced.jaxpr.outvars)}"


def _equations(jaxpr: Equations, names: dict[Variable, str], margin: str, outer: str = "") -> Iterator[str]:
    from bridle.engines.codegen.equations import line_of
    from bridle.engines.codegen.writer import NESTED

    for equation in jaxpr.eqns:
        operands = ", ".join(_name(var, names) for var in equation.invars)
        results = ", ".join(f"{_name(var, names)}: {_kind(var)}" for var in equation.outvars)
        line = outer or line_of(equation)
        yield f"{margin}{results} = {equation.primitive.name}({operands}){f'  # {line}' if line else ''}"
        for inner in _inside(equation):
            yield f"{margin}    with {', '.join(f'{_name(var, names)}: {_kind(var)}' for var in [*inner.constvars, *inner.invars])}"
            yield from _equations(inner, names, margin + "    ", line if equation.primitive.name in NESTED else "")
            yield f"{margin}    return {', '.join(_name(var, names) for var in inner.outvars)}"


def _inside(equation: Equation) -> Iterator[Equations]:
    """The traced functions that an equation holds."""
    for value in equation.params.values():
        for each in value if isinstance(value, (tuple, list)) else (value,):
            inner: Equations | None = getattr(each, "jaxpr", each)
            if inner is not None and hasattr(inner, "eqns"):
                yield inner


def _name(var: Variable, names: dict[Variable, str]) -> str:
    return str(var.val) if hasattr(var, "val") else names.setdefault(var, f"v{len(names)}")


def _kind(var: Variable) -> str:
    return f"{np.dtype(var.aval.dtype).name}[{','.join(map(str, var.aval.shape))}]"
