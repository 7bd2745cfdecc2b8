"""What every policy must satisfy.

A policy's walk through given rounds: every decision, every state, and whether anything that was handed over has changed.

Whether a policy can be played at all: its first rounds, looked at as `check_policy` looks at all of them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bridle import domains, engines, policies, records
from bridle.checks.case import MakePolicy, PolicyCase, bits, gentle_rounds, python_only, rough_rounds
from bridle.checks.sessions import check_session
from bridle.core import BridleWarning, Domain, Feedback, InputError, Policy, Round, TriesPoints, capability, revealed
from bridle.game.play import play, policy_for
from bridle.ops import Array
from bridle.policies import Configured, own
from bridle.policies.common import exp_concavity_of
from bridle.policies.own import blame
from bridle.policies.registry import constraints_of, for_constraints, source_of
from bridle.policies.round_maps import record_of
from bridle.problems import Problem, problem
from bridle.validate import show

UNITS = {"lipschitz": 1.0, "bound": 1.0, "slater": 1.0, "modulus": 1.0, "noise": 1.0, "exp_concavity": -1.0}
"""The parameters that are multiplied by a power of c when every cost and constraint is multiplied by c, and that power."""


def check_policy(
    factory: Callable[..., object] | str,
    places: Mapping[str, Domain] | None = None,
    constraints: Sequence[int] = (1, 3),
    rounds: int = 90,
    seed: int = 0,
    scale_free: bool = False,
    **settings: object,
) -> list[str]:
    """Try to refute that something is a policy, and list what was checked.

    On every domain and for every number of constraints: decisions are in the domain whatever comes (zeros, ties, functions from 1e-6 to 1e6
    times as large as promised, constraints that nothing satisfies); the same inputs give the same bits; nothing handed over is changed; a
    state holds floats and float64 arrays of constant shapes; a saved session goes on bit for bit; refused input changes nothing. Where the
    record can be compiled, many runs at once are the runs one by one to 1e-12, and the engines agree to 1e-9 (on the first domain).

    Returns what was checked; what did not apply starts with "skipped". Raises `AssertionError`: it is refuted; the
    message says how.

    Parameters
    ----------
    factory : callable or str
        ``factory(domain, constraints=k)`` gives a record or a `bridle.policy(...)`. A registered name, or a file as in ``"./mine.py"``,
        stands for that policy with what it needs to know of a problem of ``rounds / 3`` rounds, so that it plays past its horizon.
    places : dict of str to Domain, optional
        The domains, by name. Default: a ball, a box, a simplex and others.
    constraints : sequence of int, default (1, 3)
        How many constraints a round has, each 1 or above.
    rounds : int, default 90
        How many rounds are played.
    seed : int, default 0
        The seed of the rounds, 0 or above.
    scale_free : bool, default False
        Also check that costs, constraints and `lipschitz` times a constant give the same decisions; `factory` then takes `lipschitz` too.
    **settings : object
        Is handed on to `factory`.

    Examples
    --------
    >>> check_policy("sinha2024", {"disk": domains.Ball(2)}, constraints=[2])[0]
    'disk, k = 2: decisions, repetition, purity, state, session, resume, refusal, batch'
    """
    if isinstance(factory, str):
        make = _by_name(own.load_one(factory).name if own.split(factory).own else factory, settings, rounds)
    else:
        make = _by_factory(factory, settings)
    report: list[str] = []
    played = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BridleWarning)  # past its horizon, or its assumptions broken: that is meant here
        for name, domain in (_places() if places is None else places).items():
            fits = [k for k in constraints if _accepts(make, domain, k, name, report)]
            if not fits and domain.dim not in constraints:  # it may want one constraint for each coordinate
                fits = [k for k in (domain.dim,) if _accepts(make, domain, k, name, report)]
            for k in fits:
                case = PolicyCase(f"{name}, k = {k}", make, domain, k, seed)
                report.append(f"{case.name}: {', '.join(_check_case(case, rounds, report) + _check_scale(case, scale_free))}")
            if fits and not played:  # compiling takes its time: once
                report.append(_check_engines(PolicyCase(name, make, domain, fits[-1], seed)))
            played = played or bool(fits)
    if not played:
        raise AssertionError(f"the policy must accept some domain: {'; '.join(report)}")
    return report


def _places() -> dict[str, Domain]:
    return {
        "ball": domains.Ball(radius=2.0, center=[1.0, -0.5, 0.25]),
        "box": domains.Box([-1.0, 0.0], [0.5, 3.0]),
        "segment": domains.Box([-0.5], [1.0]),
        "simplex": domains.Simplex(4),
    }


def _by_factory(factory: Callable[..., object], settings: dict[str, object]) -> MakePolicy:
    def make(domain: Domain, k: int, scale: float | None = None) -> object:
        return factory(domain, constraints=k, **settings, **({} if scale is None else {"lipschitz": scale}))

    return make


def _by_name(name: str, settings: dict[str, object], rounds: int) -> MakePolicy:
    """The registered policy, which is told the constants of a problem of `rounds` / 3 rounds."""

    def make(domain: Domain, k: int, scale: float | None = None) -> object:
        source = problem(
            "halfspaces", max(1, rounds // 3), domain=domain, constraints=k, modulus=1.0 if policies.entry(name).curved else 0.0
        )
        known: dict[str, Any] = {"exp_concavity": exp_concavity_of(source.constants), **source.constants, **settings}
        units = [p.name for p in policies.parameters(name) if p.name in UNITS and (p.required or p.name in settings)]
        return policy_for(
            name, source, **{**settings, **({} if scale is None else {unit: scale ** UNITS[unit] * known[unit] for unit in units})}
        )

    return make


def _accepts(make: MakePolicy, domain: Domain, k: int, name: str, report: list[str]) -> bool:
    """Whether the policy can be made for this; a factory may refuse a domain or a k with an InputError, and with nothing else."""
    try:
        own = constraints_of(record_of(make(domain, k)))
        if own is not None and own != k:
            raise InputError(f"the policy is for {own} constraints")
    except InputError as no:
        report.append(f"skipped {name}, k = {k}: {no}")
        return False
    except Exception as error:
        raise AssertionError(f"{name}, k = {k}: the factory raised {type(error).__name__}: {error}") from error
    return True


def _check_case(case: PolicyCase, rounds: int, report: list[str]) -> list[str]:
    """Everything that concerns one policy by itself."""
    policy = case.policy()
    record = record_of(policy)
    _require_policy(case, record)
    stream = rough_rounds(case, rounds)
    middle = case.domain.center()
    corner = case.domain.linear_argmin(np.linspace(1.0, 2.0, case.domain.dim))
    path = walk(case, record, stream, middle)
    walk(case, record, stream[::-1], corner)  # other inputs, before the same are repeated
    check_same_walk(case, path, walk(case, record, stream, middle), "the same inputs must give the same decisions")
    check_same_walk(case, path, walk(case, record_of(case.policy()), stream, middle), "policies made alike must decide alike")
    for t in np.random.default_rng(case.seed).permutation(len(stream)):
        again = case.attempt("update", record.update, path.states[t], path.feedbacks[t])
        case.require(bits(again) == bits(path.states[t + 1]), f"an update repeated from round {t + 1}'s state must give what it gave then")
    done = ["decisions", "repetition", "purity", "state"]
    done += check_session(case, policy, stream, report)
    if python_only(record):
        report.append(f"skipped batch on {case.name}: {type(record).__name__} is not pure arithmetic")
        return done
    _check_batch(case, record)
    return [*done, "batch"]


def _require_policy(case: PolicyCase, record: object) -> None:
    case.require(records.is_record(record), f"a policy must be a NamedTuple, not {show(record)}")
    for method in ("init", "decide", "update"):
        case.require(hasattr(record, method), f"a policy must have the method `{method}`")


def _check_batch(case: PolicyCase, record: Policy[object]) -> None:
    """Three runs with their own starting points and functions, at once and one by one."""
    rng = np.random.default_rng([case.seed, 1])
    starts = case.domain.project(case.domain.center() + case.domain.diameter() * rng.standard_normal((3, case.domain.dim)))
    streams = [gentle_rounds(case, 40, run) for run in range(3)]
    together = [records.widen(records.stack(row), 1) for row in zip(*streams, strict=True)]
    state = case.attempt("init of 3 runs", record.init, starts.copy())
    alone = [walk(case, record, stream, start) for stream, start in zip(streams, starts, strict=True)]
    scale = case.domain.diameter() + float(np.linalg.norm(case.domain.center()))
    for t, one_round in enumerate([*together, None], 1):
        x = case.attempt("decide of 3 runs", record.decide, state)
        case.require(
            np.shape(x) == starts.shape, f"the decisions of 3 runs must have shape {starts.shape}, not {np.shape(x)}, in round {t}"
        )
        off = float(np.max(np.abs(x - np.array([path.decisions[t - 1] for path in alone]))))
        case.require(off <= 1e-12 * scale, f"3 runs at once must be the 3 runs one by one; off by {off:.3g} in round {t}")
        if one_round is not None:
            state = case.attempt(f"update of 3 runs in round {t}", record.update, state, revealed(record, state, x, one_round))


def _check_scale(case: PolicyCase, scale_free: bool) -> list[str]:
    if not scale_free:
        return []
    start, stream, size = case.domain.center(), gentle_rounds(case, 60, 5), case.domain.diameter()
    plain = walk(case, record_of(case.policy(1.0)), stream, start)
    for factor in (1000.0, 0.003):
        scaled = [records.transform(lambda leaf, factor=factor: factor * leaf, one_round) for one_round in stream]
        other = walk(case, record_of(case.policy(factor)), scaled, start)
        off = np.abs(np.array(plain.decisions) - np.array(other.decisions)).max(axis=1)
        t = int(np.argmax(off > 1e-9 * size))
        case.require(
            off[t] <= 1e-9 * size, f"functions {factor:g} times as large must not change decisions; off by {off[t]:.3g} in round {t + 1}"
        )
    return ["scale"]


def _check_engines(case: PolicyCase) -> str:
    policy = case.policy()
    if python_only(record_of(policy)):
        return f"skipped engines on {case.name}: {type(record_of(policy)).__name__} runs on engine python only"
    try:
        engines.load("jax")
    except InputError as missing:
        return f"skipped engines on {case.name}: {missing}"
    source = problem("halfspaces", 200, case.seed, domain=case.domain, constraints=case.k)
    traces = [case.attempt(f"engine {engine}", play, policy, source, engine=engine, keep="decisions") for engine in ("python", "jax")]
    decisions = [np.asarray(trace.decisions, dtype=float) for trace in traces]
    off = np.abs(decisions[0] - decisions[1]).max(axis=1)
    apart = ~(off <= 1e-9 * case.domain.diameter())
    case.require(not apart.any(), f"the engines must agree; off by {off.max():.3g}, and first in round {int(np.argmax(apart)) + 1}")
    return f"{case.name}: engines"


class Walk(NamedTuple):
    """What was decided, the states from the first to the last, and what was revealed."""

    decisions: list[Array]
    states: list[object]
    feedbacks: list[Feedback]


def walk(case: PolicyCase, record: Policy[object], stream: list[Round], x1: Array) -> Walk:
    """Play the rounds from x1, and look at every decision, every state, and whether anything that was handed over has changed."""
    own, start = bits(record), x1.copy()
    state = case.attempt("init", record.init, x1)
    shapes = {name: np.shape(leaf) for name, leaf in records.leaves(state).items()}
    raw, path = [], Walk([], [state], [])
    for t, one_round in enumerate([*stream, None], 1):
        _check_state(case, state, shapes, t)
        before = bits(state)
        x = case.attempt("decide", record.decide, state)
        case.require(isinstance(x, np.ndarray) and x.dtype == float, "a decision must be a float64 array, not {}, in round {}", x, t)
        case.require(x.shape == x1.shape, "a decision must have shape {}, not {}, in round {}", x1.shape, x.shape, t)
        case.require(np.isfinite(x).all(), "a decision must be finite, not {}, in round {}", x, t)
        case.require(case.domain.contains(x), "a decision must be in the domain, and {} of round {} is not", x, t)
        case.require(x.tobytes() == record.decide(state).tobytes(), f"decide must give the same decision when asked again, in round {t}")
        case.require(bits(state) == before, f"decide must not change the state, in round {t}")
        raw.append(x)
        path.decisions.append(x.copy())
        if one_round is None:
            break
        _check_points(case, record, state, t)
        feedback = revealed(record, state, x, one_round)
        feedback_bits = bits(feedback)
        after = case.attempt(f"update in round {t}", record.update, state, feedback)
        case.require(bits(state) == before, f"update must not change the state it is given, in round {t}")
        case.require(bits(feedback) == feedback_bits, f"update must not change the feedback, in round {t}")
        case.require(bits(record) == own, f"update must not change the policy itself, in round {t}")
        state = after
        path.states.append(state)
        path.feedbacks.append(feedback)
    for t, (x, then) in enumerate(zip(raw, path.decisions, strict=True), 1):
        case.require(x.tobytes() == then.tobytes(), f"the decision of round {t} must stay as it was, and later rounds changed it")
    case.require(np.array_equal(x1, start), "init must not change x1, and no update may")
    return path


def _check_points(case: PolicyCase, record: Policy[object], state: object, t: int) -> None:
    """What a policy that sees values alone tries is in the domain, and around its decision."""
    tries = capability(record, TriesPoints)
    if tries is None:
        return
    points, x = case.attempt("points", tries.points, state), record.decide(state)
    case.require(
        points.ndim == 2 and points.shape[1:] == x.shape, "points must have shape (n, {}), not {}, in round {}", len(x), points.shape, t
    )
    case.require(case.domain.contains(points), "points must be in the domain, and {} of round {} are not", points, t)


def check_same_walk(case: PolicyCase, one: Walk, two: Walk, message: str) -> None:
    """Require that both walks made the same decisions, bit for bit."""
    for t, (a, b) in enumerate(zip(one.decisions, two.decisions, strict=True), 1):
        case.require(a.tobytes() == b.tobytes(), message + ", bit for bit; round {} gave {} and then {}", t, a, b)


def _check_state(case: PolicyCase, state: object, shapes: dict[str, tuple[int, ...]], t: int) -> None:
    case.require(records.is_record(state), "a state must be a NamedTuple or a tuple, not {}", state)
    leaves = records.leaves(state)
    case.require(leaves.keys() == shapes.keys(), f"a state must keep its leaves {sorted(shapes)}, not have {sorted(leaves)}, in round {t}")
    for name, leaf in leaves.items():
        fine = isinstance(leaf, float) or (isinstance(leaf, np.ndarray) and leaf.dtype == float)
        kind = f"{type(leaf).__name__} {leaf.dtype}" if isinstance(leaf, np.ndarray) else type(leaf).__name__
        case.require(fine, f"a state holds floats and float64 arrays; its leaf {name!r} is of type {kind} in round {t}")
        shape = np.shape(leaf)
        case.require(shape == shapes[name], f"leaf {name!r} of the state must keep its shape {shapes[name]}, not {shape}, in round {t}")
        case.require(not np.isnan(leaf).any(), f"leaf {name!r} of the state is NaN in round {t}")


ROUNDS = 3


def check_first_rounds(policy: Configured, problem: Problem) -> None:
    """Raise an InputError where this is no policy for the problem, or its first decisions are none."""

    def make(domain: Domain, k: int, scale: float | None = None) -> object:
        return policy

    case = PolicyCase(f"policy {policy.name}", make, problem.domain, int(problem.constants.get("constraints") or 1), seed=0)
    record = for_constraints(policy.record, case.k)
    try:
        _require_policy(case, record)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BridleWarning)
            walk(case, record, gentle_rounds(case, ROUNDS, salt=0), problem.domain.center())
    except AssertionError as broken:
        cause = broken.__cause__
        message = str(broken) if cause is None else f"policy {policy.name}: {blame(os.path.relpath(source_of(policy.entry)), cause)}"
        raise InputError(" ".join(message.split())) from broken
