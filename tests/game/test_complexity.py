"""A round costs the same however many came before it: calls, lines and bytes are counted, and no clock is read."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import bridle
from bridle.engines import compiled as engine
from bridle.engines.codegen.python_source import PythonSource

POLICIES = ("sinha2024", "anytime", "ogd")
MOST_CALLS = {"play": 400, "session": 600}
"""Far above what a round takes (some 140 and 220 calls of Algorithm 1): a loop over dimensions or over the past would be above it."""


def made(name: str, rounds: int, dim: int = 5, **given: Any) -> tuple[Any, bridle.Problem]:
    problem = bridle.problem("halfspaces", horizon=rounds, dim=dim)
    return bridle.policy_for(name, problem, **given), problem


def calls(run: Callable[[], Any]) -> int:
    """How many functions, Python's and C's, are called."""
    count, before = 0, sys.getprofile()

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def each_round(session: bridle.Session, rounds: int, dim: int) -> Callable[[], None]:
    """So many rounds in which the constraint is violated now and then."""
    rng = np.random.default_rng(session.rounds)
    costs, normals = rng.uniform(-1.0, 1.0, (2, rounds, dim)) / dim**0.5

    def run() -> None:
        for c, a in zip(costs, normals, strict=True):
            x = session.decide()
            session.observe(float(c @ x), c, float(a @ x - 0.05), a)

    return run


@pytest.mark.parametrize("name", POLICIES)
def test_a_game_makes_as_many_calls_for_every_round(name):
    spent = []
    for rounds in (1024, 2048, 4096):  # whole blocks
        policy, problem = made(name, rounds)
        bridle.play(policy, problem, horizon=32)  # what is looked up only once
        spent.append(calls(lambda policy=policy, problem=problem: bridle.play(policy, problem, engine="python")))
    first, second = ((b - a) / n for (a, b), n in zip(pairwise(spent), (1024, 2048), strict=True))
    assert second <= 1.1 * first
    assert second <= MOST_CALLS["play"]


@pytest.mark.parametrize("dims", [(3, 300)])
def test_a_game_makes_as_many_calls_in_every_dimension(dims):
    low, high = (calls(lambda d=d: bridle.play(*made("sinha2024", 512, d), engine="python")) for d in dims)
    assert high <= 1.1 * low


@pytest.mark.parametrize("certify", [True, False])
@pytest.mark.parametrize("name", POLICIES)
def test_a_session_makes_as_many_calls_in_a_late_round_as_in_an_early_one(name, certify):
    policy, _ = made(name, 10_000)
    session = bridle.Session(policy, certify=certify)
    each_round(session, 300, 5)()  # until the stores of cuts are full
    early = calls(each_round(session, 300, 5)) / 300
    each_round(session, 2_000, 5)()
    late = calls(each_round(session, 300, 5)) / 300
    assert late <= 1.1 * early
    assert late <= MOST_CALLS["session"]


@pytest.mark.slow
@pytest.mark.parametrize("certify", [True, False])
def test_a_session_keeps_no_more_after_many_rounds(certify):
    dim, policy = 20, made("sinha2024", 10_000, 20)[0]
    each_round(bridle.Session(policy, certify=certify), 100, dim)()  # imports what it needs
    session, kept = bridle.Session(policy, certify=certify), []
    tracemalloc.start()
    try:
        for rounds in (400, 2_000):  # the store of cuts is full after some hundred
            each_round(session, rounds, dim)()
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert session.rounds == 2_400
    assert kept[1] - kept[0] <= 2_000 * 4  # bytes: not even one number a round


@pytest.fixture
def written(monkeypatch) -> Callable[..., int]:
    """How many lines the compiled engine writes to be compiled for a game; nothing is compiled."""

    class Enough(Exception):
        pass

    def length(name: str, rounds: int, dim: int) -> int:
        with pytest.raises(Enough) as told:
            bridle.play(*made(name, rounds, dim), engine="compiled")
        return len(told.value.args[0].text().splitlines())

    def stop(source: PythonSource) -> Any:
        raise Enough(source)

    monkeypatch.setenv("BRIDLE_INTERPRET", "1")
    monkeypatch.setattr(PythonSource, "interpreted", stop)
    monkeypatch.setattr(engine, "_COMPILED", {})
    return length


@pytest.mark.parametrize("name", POLICIES)
def test_compiled_code_is_as_long_for_every_horizon_and_dimension(written, name):
    assert len({written(name, rounds, dim) for rounds, dim in ((100, 16), (100, 64), (100, 1_000), (100_000, 16))}) == 1
