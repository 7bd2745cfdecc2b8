"""Many runs in one call: side by side in a compiled loop, in groups that fit into memory; the same games as one by one."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import bridle
from bridle import policies, records
from bridle.engines import compiled as engine
from bridle.engines import runs
from bridle.engines.round import Collect
from bridle.game.schedule import bytes_of
from bridle.problems import problem_names
from helpers.compiled_games import PLACES, compilable_game, games_at
from helpers.instances import settings_of
from helpers.kept_sums import kept

SEEDS = [3, 0, 8]
COUNTS = {place: (1, 3) if place == "ball" else (2,) for place in PLACES if place != "cut-box"}


@pytest.fixture
def written(monkeypatch):
    """The compiled engine without its compiler, however few the runs: loops over runs are run as they stand."""
    monkeypatch.setenv("BRIDLE_INTERPRET", "1")
    monkeypatch.setattr(engine, "FEW", 1)
    monkeypatch.setattr(runs, "cores", lambda: 1)


def agree(policy, problem, name="compiled", tolerance=1e-12, **settings):
    """The same decisions, costs, values and totals as in Python, of every run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = bridle.play(policy, problem, keep="decisions", **settings)
        two = bridle.play(policy, problem, keep="decisions", engine=name, **settings)
        sums = bridle.play(policy, problem, engine=name, **settings)
    scale = problem.domain.diameter()
    for field in ("decisions", "costs", "values"):
        a, b = getattr(one, field), getattr(two, field)
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= tolerance * max(np.abs(a).max(), scale), field
    for a, b in kept(one.curve, sums.curve):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * one.rounds * scale)


@pytest.mark.slow
@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("place", PLACES)
def test_every_policy_is_written_out_right_for_many_runs(place):
    if place == "cut-box":  # most policies take minutes there as plain Python
        games = [compilable_game(name, place, 2, 8) for name in ("sinha2024", "ogd")]
    else:
        games = [game for _, *game in games_at(place, COUNTS, 8, turn=0)]
        assert len(games) >= 4
    for game in games:
        agree(*game, seed=SEEDS, tolerance=1e-9 if place == "spectrahedron" else 1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("name", [name for name in problem_names() if name != "lower-bound"])
def test_every_problem_is_written_out_right_for_many_runs(name, tmp_path):
    problem = bridle.problem(name, horizon=10, **settings_of(name, tmp_path))
    agree(bridle.policy_for("sinha2024", problem), problem, seed=SEEDS)


SWEPT = [
    ("sinha2024", "ball", 1, {"lam": np.geomspace(1e-3, 0.3, 21)}, {}),
    ("sinha2024", "simplex", 3, {"beta": np.linspace(0.1, 2.0, 16)}, {"seed": list(range(16))}),
    ("neely2017", "ball", 1, {"V": np.geomspace(0.5, 50.0, 70)}, {}),
]


@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ["compiled", "jax"])
@pytest.mark.parametrize(("name", "place", "constraints", "swept", "settings"), SWEPT)
def test_compiled_sweeps_agree(name, place, constraints, swept, settings, engine):
    policy, problem = compilable_game(name, place, constraints, 300)
    agree(bridle.policy_for(name, problem, **swept) if swept else policy, problem, engine, 1e-10, **settings)


@pytest.mark.parametrize("engine", ["python", "compiled", "jax"])
def test_a_start_for_every_run_is_where_it_starts(engine):
    problem = bridle.problem("halfspaces", horizon=50, dim=4)
    starts = np.random.default_rng(2).uniform(-0.4, 0.4, (17, 4))
    trace = bridle.play(bridle.policy_for("sinha2024", problem), problem, x1=starts, keep="decisions", engine=engine)
    np.testing.assert_array_equal(trace.decisions[0], starts)
    alone = bridle.play(bridle.policy_for("sinha2024", problem), problem, x1=starts[11], keep="decisions")
    np.testing.assert_allclose(trace.decisions[:, 11], alone.decisions, atol=1e-12)


@pytest.mark.parametrize("engine", ["compiled", "jax"])
def test_seeds_on_a_line_are_told_apart(engine):
    problem = bridle.problem("halfspaces", horizon=40, dim=1)
    agree(bridle.policy_for("sinha2024", problem), problem, engine, seed=list(range(18)))


@pytest.mark.parametrize(
    ("name", "engine", "settings"),
    [
        ("halfspaces", "python", {"seed": list(range(9))}),
        ("halfspaces", "compiled", {"seed": list(range(40))}),
        ("minimax", "jax", {"seed": list(range(9))}),
        ("halfspaces", "compiled", {}),
    ],
)
def test_groups_that_fit_into_memory_are_the_same_games(name, engine, settings):
    problem = bridle.problem(name, horizon=1_500)
    swept = {} if settings else {"lam": np.geomspace(1e-3, 0.1, 40)}
    policy = bridle.policy_for("sinha2024", problem, **swept)
    whole = bridle.play(policy, problem, engine=engine, keep="rounds", **settings)
    schedule = whole.schedule()
    limit = schedule.block_bytes(Collect.TOTALS if schedule.engine_sums else Collect.VALUES, runs=3)
    parts = bridle.play(policy, problem, engine=engine, memory=limit, **settings)
    assert whole.groups == 1
    assert parts.groups > 1
    for a, b in kept((*whole.totals, *whole.curve), (*parts.totals, *parts.curve)):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(policy.decide(whole.state), policy.decide(parts.state), atol=1e-9)
    assert bridle.regret(parts, comparator=problem.domain.center()) == pytest.approx(
        bridle.regret(whole, comparator=problem.domain.center()), rel=1e-6, abs=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "count", "dim"), [("python", 60, 10), ("compiled", 60, 10), ("compiled", 160, 40)])
def test_a_game_stays_within_its_memory(engine, count, dim):
    problem = bridle.problem("halfspaces", horizon=3_000, dim=dim)
    policy = bridle.policy_for("sinha2024", problem)
    limit, seeds = 12_000_000, list(range(count))
    bridle.play(policy, problem, engine=engine, seed=seeds, horizon=2, memory=limit)  # what is compiled stays
    tracemalloc.start()
    try:
        bridle.play(policy, problem, engine=engine, seed=seeds, memory=limit)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert limit / 20 < taken < limit


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("memory", "settings", "message"),
    [
        (1000, {}, "memory must be at least .* bytes for a block of one run of this game, not 1000"),
        ("a lot", {}, "memory must be a number of bytes such as 500MB or 2GiB, not 'a lot'"),
        (0, {}, "memory must be 1 or above, not 0"),
        ("6.5MB", {"keep": "rounds"}, "memory must be at least .* bytes for a block of one run of this game, not 6500000"),
        ("1MB", {"keep": "rounds", "horizon": 100_000}, "memory must be more than .* bytes to keep rounds of this game, not 1000000"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_one_clear_error(memory, settings, message):
    problem = bridle.problem("halfspaces", horizon=100_000)
    with pytest.raises(bridle.InputError, match=message):
        bridle.play(bridle.policy_for("sinha2024", problem), problem, seed=[0, 1], memory=memory, **settings)


def test_memory_is_read_with_its_unit():
    assert [bytes_of(text) for text in ("1000", "2kb", "1.5 MiB", "3GB")] == [1000, 2000, 1572864, 3_000_000_000]


class Drag(NamedTuple):
    """A policy of somebody's own, with rows that have the shape of a number for every run, and a state that runs share."""

    rows: np.ndarray
    shrink: np.ndarray  # as many as there are runs

    def init(self, x1):
        return x1, self.rows[:, 0] * 0.0

    def decide(self, state):
        return state[0]

    def update(self, state, feedback):
        x, seen = state
        return self.shrink[3] * x - 0.01 * self.rows.sum() * feedback.df, seen + self.rows[:, 0]


@pytest.mark.parametrize("engine", ["python", "compiled", "jax"])
@pytest.mark.parametrize("memory", [None, 3])
def test_what_only_looks_like_a_number_for_every_run_is_none(engine, memory):
    problem = bridle.problem("halfspaces", horizon=1_100, dim=1)
    policy = Drag(np.linspace(0.1, 0.9, 9)[:, None], np.linspace(0.5, 0.9, 9))
    seeds = list(range(9))
    whole = bridle.play(policy, problem, engine=engine, seed=seeds)
    schedule = whole.schedule()
    limit = None if memory is None else schedule.block_bytes(Collect.TOTALS if schedule.engine_sums else Collect.VALUES, runs=memory)
    trace = bridle.play(policy, problem, engine=engine, seed=seeds, memory=limit)
    assert (trace.groups > 1) == (memory is not None)
    for seed in (0, 8):
        alone = bridle.play(policy, problem, seed=seed)
        assert trace.totals.cost[seed] == pytest.approx(alone.totals.cost, abs=1e-9)
        np.testing.assert_allclose(policy.decide(trace.state)[seed], policy.decide(alone.state), atol=1e-12)
    if engine == "python":
        np.testing.assert_array_equal(trace.state[1], whole.state[1])


class Stubborn:
    """A policy that is no record: which run has which step only it can tell."""

    def __init__(self, steps):
        self.steps = steps

    def init(self, x1):
        return x1

    def decide(self, state):
        return state

    def update(self, state, feedback):
        return 0.9 * state - self.steps * feedback.df


def test_runs_that_cannot_be_told_apart_are_played_together_or_not_at_all():
    problem = bridle.problem("halfspaces", horizon=1_100, dim=3)
    policy, seeds = Stubborn(np.linspace(0.01, 0.1, 5)[:, None]), list(range(5))
    assert bridle.play(policy, problem, seed=seeds).groups == 1
    with pytest.raises(
        bridle.InputError, match=r"memory must be at least .* for a block of this game, whose runs belong together, not 90000"
    ):
        bridle.play(policy, problem, seed=seeds, memory=90_000)
    apart = bridle.play(Stubborn(0.05), problem, seed=seeds, memory=600_000)
    assert apart.groups > 1
    assert apart.totals.cost == pytest.approx(bridle.play(Stubborn(0.05), problem, seed=seeds).totals.cost, abs=1e-9)


def test_a_large_block_is_refused_only_where_a_limit_was_given(monkeypatch):
    problem = bridle.problem("halfspaces", horizon=1_100, dim=3)
    policy = bridle.policy_for("sinha2024", problem)
    monkeypatch.setattr(sys.modules["bridle.game.play"], "DEFAULT_MEMORY", 1_000)
    trace = bridle.play(policy, problem, seed=[0, 1, 2])
    assert trace.groups == 3
    assert len(list(trace.blocks(2))) == 2
    with pytest.raises(bridle.InputError, match="a block of one run"):
        bridle.play(policy, problem, seed=[0, 1, 2], memory=1_000)


@pytest.mark.parametrize("engine", ["python", "compiled", "jax"])
def test_a_replay_in_groups_is_the_stream_of_each_run_alone(engine):
    """The adversary adapts; runs differ in parameters, starts and seeds at once."""
    problem = bridle.problem("violation-seeking", horizon=1_100, dim=3)
    starts = np.random.default_rng(0).uniform(-0.2, 0.2, (5, 3))
    policy = bridle.policy_for("sinha2024", problem, lam=np.geomspace(1e-3, 0.1, 5))
    sums = Collect.TOTALS if engine != "python" else Collect.VALUES
    told: list[tuple[int, int]] = []
    whole = bridle.play(policy, problem, engine=engine, seed=list(range(5)), x1=starts)
    limit = whole.schedule().block_bytes(sums, runs=2)
    trace = bridle.play(policy, problem, engine=engine, seed=list(range(5)), x1=starts, memory=limit, progress=lambda *at: told.append(at))
    assert trace.groups == 3
    assert told == sorted(told)
    assert told[-1] == (1_100, 1_100)
    for run in (0, 2, 4):
        alone = bridle.play(policy.run(run), problem, seed=run, x1=starts[run])
        assert trace.totals.cost[run] == pytest.approx(alone.totals.cost, abs=1e-8)
        for one, another in zip(
            *(records.leaves(records.join(list(part))).values() for part in (trace.blocks(run), alone.blocks())), strict=True
        ):
            assert one.shape == another.shape
            np.testing.assert_allclose(one, another, atol=1e-8)


NAMES = [(name, each.name) for name in policies.names() for each in policies.parameters(name) if isinstance(each.default, str)]


@pytest.mark.parametrize(("name", "parameter"), [*NAMES, ("sinha2024-strong", "learner")])
def test_only_numbers_can_be_swept(name, parameter):
    """A list where a name belongs is refused as such, whatever the policy."""
    curved = {"modulus": 0.5} if policies.entry(name).strongly_convex else {}
    problem = bridle.problem("halfspaces", horizon=10, domain=bridle.Simplex(3), **curved)
    with pytest.raises(bridle.InputError, match=f"{parameter} must be one name for all runs, not"):
        bridle.policy_for(name, problem, **{parameter: [1.0, 2.0]})


@pytest.mark.compiles
def test_jax_plays_where_the_caller_says_in_every_thread():
    """Two devices stand for a processor and a GPU: nothing may go back to the first one, also where groups of runs have threads."""
    ran = subprocess.run(
        [sys.executable, "-c", ON_THE_SECOND_DEVICE],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
    )
    assert (ran.returncode, ran.stdout.split()) == (0, ["[1]", "True"]), ran.stderr


ON_THE_SECOND_DEVICE = """
import bridle, jax, numpy as np
from bridle.engines import jax as engine

compiled, used = engine._compiled, set()

def watched(platform):
    def run(*arguments, **settings):
        played = compiled(platform)(*arguments, **settings)
        used.update(device.id for leaf in jax.tree.leaves(played) for device in leaf.devices())
        return played
    return run

engine._compiled = watched
problem = bridle.problem("halfspaces", horizon=20, dim=3)
sweep = bridle.policy_for("sinha2024", problem, lam=list(np.geomspace(1e-3, 1e-1, 40)))
with jax.default_device(jax.devices()[1]):
    there = bridle.play(sweep, problem, engine="jax")
print(sorted(used), np.allclose(there.totals.cost, bridle.play(sweep, problem).totals.cost))
"""
