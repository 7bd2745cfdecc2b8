"""A policy's walk through given rounds: every decision, every state, and whether anything that was handed over has changed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bridle import records
from bridle.checks.case import PolicyCase, bits
from bridle.core import Feedback, Policy, Round, TriesPoints, capability, revealed
from bridle.ops import Array


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
