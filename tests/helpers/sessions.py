"""A session to drive: a policy of the paper, a random stream, what can be wrong with a record, and comparison bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

import bridle
from bridle import records

DIM = 3


def make_policy(name: str = "sinha2024", domain: Any = None, **more: Any) -> Any:
    """A policy of the paper, on a small ball unless told otherwise."""
    domain = bridle.Ball(DIM) if domain is None else domain
    needs = {
        "sinha2024": {"horizon": 500, "lipschitz": 1.0},
        "sinha2024-strong": {"horizon": 500, "lipschitz": 1.0, "modulus": 0.5},
        "sinha2024-ocs": {},
    }[name]
    return bridle.policy(name, domain, **{**needs, **more})


def play_random_stream(session: bridle.Session, rounds: int, k: int = 1, seed: int = 0, start: int = 0) -> list[np.ndarray]:
    """Feed rounds start .. start + rounds of a random stream that depends on the decisions; gives the decisions."""
    seen = []
    for t in range(start, start + rounds):
        rng = np.random.default_rng([seed, t])
        x = session.decide()
        df, A = rng.standard_normal(len(x)), rng.standard_normal((k, len(x)))
        df, A = df / np.linalg.norm(df), A / np.linalg.norm(A, axis=1, keepdims=True)
        session.observe(f=float(df @ x), df=df, g=A @ x + 0.3 * rng.standard_normal(k), dg=A)
        seen.append(x)
    return seen


def snapshot(session: bridle.Session) -> dict[str, Any]:
    """Everything that an observation may change, under names."""
    leaves = {f"state.{name}": np.array(leaf) for name, leaf in records.leaves(session.state).items()}
    return leaves | {
        "x": session.decide(), "rounds": session.rounds, "cost": session.cost, "ccv": session.ccv, "violations": session.violations,
    }  # fmt: skip


def assert_identical(a: dict[str, Any], b: dict[str, Any]) -> None:
    """Every leaf and total, bit for bit: also the sign of zero."""
    assert a.keys() == b.keys()
    for name in a:
        p, q = np.asarray(a[name], dtype=float), np.asarray(b[name], dtype=float)
        assert p.shape == q.shape
        assert p.tobytes() == q.tobytes(), f"{name}: {p} became {q}"


GOOD_RECORD: dict[str, Any] = {"f": 0.3, "df": [1.0, 0.0, 0.0], "g": [0.1, -0.2], "dg": [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}
NOT_NUMBERS = [
    None, "abc", 1j, {}, ..., np.nan, np.inf, -np.inf, [], [[]], [np.nan], ["a", "b"], [None, 0.0, 0.0], [[1.0], [2.0, 3.0]],
]  # fmt: skip
BAD_NUMBERS = (
    [(name, value) for name in GOOD_RECORD for value in NOT_NUMBERS]
    + [("f", value) for value in ([1.0], [1.0, 2.0], np.ones((1, 1)))]
    + [("df", value) for value in (1.0, [1.0, 2.0], np.ones((1, DIM)), np.ones(DIM + 1), [0.0, np.nan, 0.0], [0.0, -np.inf, 0.0])]
    + [("g", value) for value in (0.1, [0.1], np.ones(3), np.ones((2, 1)), [0.1, np.nan], [np.inf, 0.0])]
    + [("dg", value) for value in (1.0, np.ones(DIM), np.ones((1, DIM)), np.ones((3, DIM)), np.ones((2, 2)), np.full((2, DIM), np.inf))]
    + [("modulus", value) for value in (-1.0, np.nan, np.inf, "abc", [1.0], 1j)]
)
"""What no argument may be: each with the argument that it is given as."""

STRANGE_NUMBERS = [
    *[(name, 10**400) for name in (*GOOD_RECORD, "modulus")], ("df", [10**400, 0.0, 0.0]), ("f", "0.3"), ("f", b"1"),
    ("df", ["1", "2", "3"]), ("g", ["0.1", "0.2"]), ("modulus", "1.0"), ("f", np.complex128(1 + 1j)), ("df", np.array([1j, 0.0, 0.0])),
    ("g", np.array([1j, 0.0])), ("dg", np.ones((2, DIM)) * 1j),
]  # fmt: skip
"""Strings, complex numbers and huge integers: each with the argument that it is given as."""
