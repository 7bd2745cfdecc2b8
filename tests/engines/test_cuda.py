"""The cuda engine: kernels written from a trace compute what it says, whatever the lanes, and the engine agrees with the Python engine.

Without a GPU the CUDA C is compiled for this machine's processor (`fake_gpu`), where lanes take turns only when the kernel makes them
wait. The last tests are for a GPU alone.
"""

from __future__ import annotations

import ctypes
import importlib
import re
import sys
import warnings

import jax
import numpy as np
import pytest

import bridle
from bridle import records
from bridle.core import Unavailable
from bridle.engines import load
from bridle.engines.codegen import cuda_draws, cuda_kernel, cuda_layout, cuda_math
from bridle.engines.codegen.cuda_code import Element, Own, Var, code, written
from bridle.engines.codegen.cuda_memory import KernelArray, homes_of, spelled, synchronised
from bridle.engines.codegen.cuda_schedule import Choice, Declaration, Unit, hoisted, sunk
from bridle.engines.codegen.trace import shapes, trace
from bridle.engines.round import Collect, RunBatch, SingleRun
from bridle.engines.runs import layout_of, layout_of_one
from bridle.fraud import paper_model
from bridle.game.schedule import first_record
from bridle.game.totals import Summing
from bridle.policies.registry import record_of
from bridle.problems.dealing import deal_blocks, player
from bridle.problems.recorded import Recorded
from helpers import fake_gpu
from helpers.compiled_games import PLACES, games_at
from helpers.instances import make_domain
from helpers.kept_sums import kept
from helpers.traced_operations import OPERATIONS

compiled = pytest.mark.skipif(fake_gpu.COMPILER is None, reason="no C++ compiler here to stand in for a GPU's")


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """The engine on a GPU that this machine plays, with a given number of lanes to a run."""
    monkeypatch.setitem(sys.modules, "cupy", fake_gpu.cupy(tmp_path))
    monkeypatch.delitem(sys.modules, "bridle.engines.cuda", raising=False)
    engine = importlib.import_module("bridle.engines.cuda")

    def with_lanes(lanes: int):
        monkeypatch.setattr(engine, "lanes_for", lambda *_: lanes)
        return engine

    yield with_lanes
    sys.modules.pop("bridle.engines.cuda", None)


def agree(policy, problem, rounds: int, tolerance: float = 1e-12, **settings) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = bridle.play(policy, problem, horizon=rounds, keep="decisions", **settings)
        two = bridle.play(policy, problem, horizon=rounds, keep="decisions", engine="cuda", **settings)
        three = bridle.play(policy, problem, horizon=rounds, engine="cuda", **settings)
    for name in ("decisions", "costs", "values"):
        a, b = getattr(one, name), getattr(two, name)
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= tolerance * max(np.abs(a).max(), problem.domain.diameter()), name
    for part in ("totals", "curve"):
        for a, b in kept(getattr(one, part), getattr(three, part)):
            assert np.shape(a) == np.shape(b), part
            assert np.abs(np.asarray(a) - np.asarray(b)).max() <= 10 * tolerance * rounds * max(1.0, problem.domain.diameter()), part
    for a, b in zip(records.leaves(one.state).values(), records.leaves(three.state).values(), strict=True):
        np.testing.assert_allclose(np.broadcast_to(a, np.shape(b)), b, rtol=1e-9, atol=1e-9)


GAMES = [
    ("sinha2024", "ball", 1, {"lam": [1e-3, 1e-2, 1e-1]}, 4),
    ("sinha2024", "ball", 1, {"lam": [1e-3, 1e-2, 1e-1]}, 1),
    ("sinha2024", "simplex", 3, {"learner": "adaftrl"}, 4),
    ("sinha2024", "box", 2, {"learner": "ftpl", "samples": 20}, 8),
    ("anytime", "box", 1, {"V": [0.1, 1.0]}, 2),
    ("anytime", "ball", 3, {}, 32),
    ("sinha2024-ocs", "l1", 2, {}, 4),
    ("neely2017", "halfspace", 2, {}, 1),
    ("guo2022", "box", 1, {}, 2),
    ("yu2020", "cut-box", 1, {}, 4),
]


def game(name, place, constraints, more, rounds):
    domain = make_domain(place, 5, 1.0, np.random.default_rng(7))
    problem = bridle.problem("halfspaces", horizon=rounds, domain=domain, constraints=constraints, seed=3)
    return bridle.policy_for(name, problem, **more), problem


@pytest.mark.compiles
@compiled
@pytest.mark.parametrize(("name", "place", "constraints", "more", "lanes"), GAMES)
def test_games_agree_whatever_the_lanes(gpu, name, place, constraints, more, lanes):
    gpu(lanes)
    agree(*game(name, place, constraints, more, 150), 150, 1e-9 if name == "guo2022" else 1e-12)


@pytest.mark.compiles
@compiled
def test_runs_that_see_streams_of_their_own_agree(gpu):
    gpu(2)
    problem = bridle.problem("violation-seeking", horizon=100, dim=4)
    agree(bridle.policy_for("sinha2024", problem), problem, 100, seed=[1, 2, 5])
    problem = bridle.problem("halfspaces", horizon=100, dim=4, constraints=2)
    agree(bridle.policy_for("sinha2024", problem, lam=[1e-2] * 40), problem, 100, seed=list(range(40)))
    problem = bridle.problem("halfspaces", horizon=40, dim=1)  # where a vector of every run looks like a number of every run
    agree(bridle.policy_for("sinha2024", problem), problem, 40, seed=[4, 0])


@pytest.mark.compiles
@compiled
@pytest.mark.parametrize("lanes", [1, 16, 32])
def test_the_fraud_network_agrees(gpu, lanes):
    gpu(lanes)
    rng = np.random.default_rng(1)
    rows = paper_model.PaperRows(rng.standard_normal((120, 29)), (rng.random(120) < 0.2).astype(float))
    problem, start = paper_model.arrange(rows, "code", 0)
    agree(paper_model.policy_of(problem, "code", [0.002, 0.1, 1.0]), problem, 120, x1=start)


@pytest.mark.compiles
@compiled
def test_blocks_that_are_played_together_are_the_same_stream(gpu, monkeypatch):
    gpu(4)
    policy, problem = game("sinha2024", "ball", 1, {"lam": [1e-3, 1e-2]}, 2_500)
    whole = bridle.play(policy, problem, engine="cuda", horizon=2_500)
    monkeypatch.setattr("bridle.game.schedule.MOST", {"cuda": 1})  # one block at a time
    apart = bridle.play(policy, problem, engine="cuda", horizon=2_500)
    assert whole.totals.rounds == 2_500
    for a, b in kept(whole.curve, apart.curve):
        np.testing.assert_array_equal(a, b)


@pytest.mark.compiles
@compiled
def test_the_rounds_of_an_adaptive_game_can_be_seen_again(gpu):
    gpu(2)
    problem = bridle.problem("violation-seeking", horizon=60, dim=3)
    policy = bridle.policy_for("sinha2024", problem, lam=[1e-3, 1e-1])
    seen = [bridle.play(policy, problem, engine=engine) for engine in ("python", "cuda")]
    first, second = (records.join(list(trace.blocks(1))) for trace in seen)
    for a, b in zip(records.leaves(first).values(), records.leaves(second).values(), strict=True):
        # A number that all runs share has no runs axis in Python; here every run has its own.
        np.testing.assert_allclose(a, np.reshape(b, np.shape(a)), rtol=1e-12, atol=1e-12)


@pytest.mark.compiles
@compiled
def test_a_cost_that_is_not_finite_is_said_with_its_round(gpu):
    gpu(1)
    values = np.ones((50, 2))
    values[30] = 1.7e308  # times a decision of 2 or more in every coordinate
    table = bridle.Round(
        bridle.Affine(np.zeros(2))._replace(a=values, b=np.zeros(50)),
        (bridle.Affine(np.ones(2))._replace(a=np.ones((50, 2)), b=np.zeros(50)),),
    )
    problem = bridle.Problem(bridle.Ball(2, center=[3.0, 3.0]), Recorded(table), {"constraints": 1}, "huge", {"horizon": 50})
    policy = bridle.policy("ogd", problem.domain, horizon=50, lipschitz=1.0)
    for engine in ("python", "cuda"):
        with np.errstate(all="ignore"), pytest.raises(bridle.InputError, match="not finite in round 31 of the game"):
            bridle.play(policy, problem, engine=engine)


@pytest.mark.compiles
@compiled
@pytest.mark.parametrize("lanes", [1, 4])
def test_operations_are_written_out_right(tmp_path, lanes):
    """All of them in one kernel, in the rounds and before them."""
    with jax.enable_x64(True):
        bodies = [body for body in OPERATIONS if "eigh" not in str(jax.make_jaxpr(body)())]
    assert len(bodies) == len(OPERATIONS) - 1

    def everything(one, two):
        return [part + 0.0 * factor for body in bodies for factor in (one, two) for part in jax.tree.leaves(body())]

    with jax.enable_x64(True):
        trace = jax.make_jaxpr(everything)(1.0, 1.0)
        expected = [np.asarray(part) for part in everything(1.0, 1.0)]
    program = cuda_kernel.write(trace, [False], 0, [False], lanes, 32 // lanes)
    kernel = type("Module", (fake_gpu.RawModule,), {"folder": tmp_path})(program.source, ()).get_function("play")
    kernel.max_dynamic_shared_size_bytes = 8 * program.words
    made = [np.full((2, 3, *part.shape), np.nan) for part in expected]
    kernel((-(-3 // program.runs),), (program.threads,), (np.int32(2), np.int32(3), np.ones(1), np.ones(2), *made), 8 * program.words)
    for got, want in zip(made, expected, strict=True):
        np.testing.assert_allclose(got, np.broadcast_to(want, got.shape), rtol=1e-13, atol=1e-13)


@pytest.mark.compiles
@compiled
def test_arithmetic_is_right_to_the_last_places(tmp_path):
    """Without branches, and for numbers of any size: what is below the smallest normal one counts as zero."""
    source = "\n".join([
        fake_gpu.SHIM, cuda_math.PREAMBLE, 'extern "C" void all(int n, const double* a, const double* b, double* made) {',
        "for (int i = 0; i < n; ++i) { double* m = made + 5 * i;",
        "m[0] = _over(a[i], b[i]); m[1] = _root(a[i]); m[2] = _exp(a[i]); m[3] = _log1p(a[i]); m[4] = _over_root(b[i], a[i]); } }",
    ])  # fmt: skip
    library = fake_gpu.compiled(source, tmp_path / "arithmetic")
    rng = np.random.default_rng(3)
    spread = np.exp(rng.uniform(-300.0, 300.0, 4_000))
    odd = [0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 710.0, -746.0, -2.0]
    a = np.concatenate([spread, -spread, rng.uniform(-700.0, 700.0, 4_000), rng.uniform(-1.0, 1.0, 4_000), np.repeat(odd, len(odd))])
    b = np.concatenate([rng.permutation(spread), rng.uniform(-9.0, 9.0, len(a) - len(spread) - len(odd) ** 2), np.tile(odd, len(odd))])
    made = np.empty((len(a), 5))
    library.all(len(a), *(ctypes.c_void_p(array.ctypes.data) for array in (a, b, made)))
    with np.errstate(all="ignore"):
        for got, want in zip(made.T, (a / b, np.sqrt(a), np.exp(a), np.log1p(a), b / np.sqrt(a)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-15, atol=np.finfo(float).tiny)


@pytest.mark.compiles
@compiled
def test_a_matrix_that_is_part_of_the_state_is_held_by_rows(tmp_path):
    """Whatever comes after it, and whether or not its columns and its rows fill the lanes."""
    rng = np.random.default_rng(5)
    for rows, columns, more, lanes in ((5, 7, 3, 16), (5, 7, 40, 16), (4, 8, 0, 8), (3, 4, 1, 2), (10, 29, 21, 32)):
        size = rows * columns

        def turn(x, a, rows=rows, columns=columns, size=size):
            u = jax.numpy.tanh(x[:size].reshape(rows, columns) @ a)
            parts = [(u[:, None] * a).reshape(size), *([u[:1] * x[size:]] if len(x) > size else [])]
            moved = 0.9 * x + jax.numpy.concatenate(parts)
            return moved, (u, (moved * moved).sum())

        with jax.enable_x64(True):
            traced = jax.make_jaxpr(turn)(np.zeros(size + more), np.zeros(columns))
        assert (cuda_layout.grid_of(traced, lanes) is None) == (rows > lanes)
        program = cuda_kernel.write(traced, [], 1, [False], lanes, 32 // lanes)
        kernel = type("Module", (fake_gpu.RawModule,), {"folder": tmp_path})(program.source, ()).get_function("play")
        kernel.max_dynamic_shared_size_bytes = 8 * program.words
        runs, rounds = 3, 5
        x, a = rng.standard_normal((runs, size + more)), rng.standard_normal((rounds, columns))
        state, units, squares = x.copy(), np.full((rounds, runs, rows), np.nan), np.full((rounds, runs), np.nan)
        blocks = -(-runs // program.runs)
        kernel((blocks,), (program.threads,), (np.int32(rounds), np.int32(runs), state, a, units, squares), 8 * program.words)
        for i in range(runs):
            now = x[i]
            for t in range(rounds):
                with jax.enable_x64(True):
                    now, (u, total) = turn(now, a[t])
                np.testing.assert_allclose(units[t, i], u, rtol=1e-12)
                np.testing.assert_allclose(squares[t, i], total, rtol=1e-12)
            np.testing.assert_allclose(state[i], now, rtol=1e-12)


def kernel_of(policy, problem, lanes: int, runs: int | None = None):
    """The program for a game of several runs, or for one that stands alone."""
    each, foe, x = np.zeros(problem.constants["constraints"]), player(problem.adversary), problem.domain.center()
    record, alone = Summing(record_of(policy), each), Summing(first_record(policy, runs, problem), each)
    draws = next(iter(deal_blocks(problem.adversary, problem.seed, 3, len(x))))
    if runs is None:
        where = layout_of_one(SingleRun(record, foe, record.init(x), foe.init(), draws))
    else:
        where = layout_of(RunBatch(record, alone, [foe], record.init(np.broadcast_to(x, (runs, len(x))).copy()), foe.init(), (draws,)))
    constants, states, draws = where.single
    traced, _ = trace(shapes(constants), shapes(states), shapes(draws, 1), Collect.TOTALS)
    own_constants, _, own_draws = (list(records.leaves(part).values()) for part in where.own)
    return cuda_kernel.write(traced, own_constants, len(records.leaves(states)), own_draws, lanes, 32 // lanes, marked=True)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_every_policy_has_a_kernel(place):
    written = 0
    for name, *found in games_at(place, dict.fromkeys(PLACES, (2,)), 20, turn=2):
        if name == "rate" and place not in ("box", "spectrahedron"):  # by far the longest kernel
            continue
        if place == "spectrahedron":
            with pytest.raises(bridle.InputError, match=r"the cuda engine does not know the operation 'eigh'.*use engine 'jax'"):
                kernel_of(*found, 32)
        else:
            programs = [kernel_of(*found, lanes) for lanes in (32, 1)]
            assert programs == [kernel_of(*found, lanes) for lanes in (32, 1)], "the text is not always the same"
            assert programs[1].words <= 2 * cuda_draws.STAGE // 8  # nothing but draws
            assert not re.search("Code|Element|@", programs[0].source + programs[1].source), "code that was not spelled"
        written += 1
    assert written >= 4


def test_state_that_only_its_owner_reads_stays_in_registers():
    policy, problem = game("sinha2024", "ball", 1, {"lam": [1e-3, 1e-2]}, 20)
    program = kernel_of(policy, problem, 8, runs=2)
    assert "__syncwarp" not in program.source
    assert "__syncwarp" in kernel_of(*game("sinha2024", "ball", 3, {}, 20), 8).source


def test_what_long_functions_make_of_the_state_is_remembered():
    """And what a draw of 0 multiplies is not waited for: both in one branch, whose test is known when the round begins."""
    rng = np.random.default_rng(1)
    rows = paper_model.PaperRows(rng.standard_normal((50, 29)), (rng.random(50) < 0.2).astype(float))
    problem, _ = paper_model.arrange(rows, "code", 0)
    source = kernel_of(paper_model.policy_of(problem, "code", [0.1, 1.0]), problem, 32, runs=2).source
    round_ = source[source.index("for (; t < stop") :]
    flag = re.search(r"(v[0-9]+k) = _any\(u1 != 0.0 \|\|", round_)[1]
    branch = round_[round_.index(f"if ({flag}) {{") :]
    assert branch[: branch.index("k = ")].count("_exp(") == 4  # three of the state, and that of the loss
    plain = kernel_of(*game("sinha2024", "ball", 1, {"lam": [1e-3, 1e-2]}, 20), 8, runs=2).source
    assert "if (_any(" in plain  # the potential's


def test_a_kernel_to_be_read_names_the_lines_that_it_comes_from():
    policy, problem = game("sinha2024", "ball", 1, {}, 20)
    lines = bridle.engines.explain(policy, problem, engine="cuda").splitlines()
    at = next(i for i, line in enumerate(lines) if "_max(v" in line and "double v" in line)
    assert re.search(r"// policies/sinha2024.py:[0-9]+ \(Lyapunov.weigh\)", lines[at - 1])
    assert ".py:" not in kernel_of(policy, problem, 1).source, "a line that moves would change what is compiled"


def declaration(name: str, *inputs: str) -> Declaration:
    return Declaration(name, "f", code("f(", *(Var(each) for each in inputs), ")"))


def test_statements_are_hoisted_in_the_order_of_the_code():
    """And not in that of a set of names, which is another one in every process."""
    inputs = [f"v{n}" for n in range(20, 50)]
    units = [declaration("v1"), *map(declaration, inputs), declaration("v60", *inputs)]
    assert [unit.declares for unit in hoisted(units, "v60")] == [*reversed(inputs), "v60", "v1"]


def test_what_reads_an_array_stays_where_it_is():
    element = code(Element("b1", code("0")))
    units = [declaration("v1"), Unit("write"), Declaration("v2", "f", element), declaration("v3", "v2")]
    assert hoisted(units, "v2") == units
    assert [unit.declares for unit in hoisted(units, "v3")] == ["v1", "", "v2", "v3"]


def test_what_one_side_of_a_choice_needs_is_done_there():
    sides = ([code("x = ", Var("v2"), ";")], [code("x = ", Var("v1"), ";")])
    units = [declaration("v1"), declaration("v2", "v1"), declaration("v3", "v1"), Choice(code(Var("v3"), " > 0"), sides)]
    declared = [unit.declares for unit in sunk(units)]
    assert declared == ["v1", "v3", ""], "v1 is needed by the test and by both sides, v2 by the first side alone"
    assert [name for line in sides[0] for name in line.names()] == ["v2", "v1", "v2"]


def test_lanes_wait_between_a_write_and_the_reads_of_others():
    arrays = {"b1": KernelArray("buffer", 8, "f")}
    mine, other = (code(Element("b1", place)) for place in (Own("all"), code("e + 1")))
    write, own_read, read = (Unit(line) for line in (code(written(mine), " = 1;"), code("x = ", mine, ";"), code("x = ", other, ";")))
    for statements, barriers in (([write, own_read], 0), ([write, read], 2), ([write, own_read, read], 2)):
        homes = homes_of(arrays, statements, 4, None)
        assert homes["b1"].high == (8 if read in statements else 0), "only what others read is in shared memory"
        lines = spelled(synchronised(statements, arrays, homes, 4), homes)
        assert lines.count("__syncwarp(mask);") == barriers
    assert lines == ["b1[s] = mb1[e] = 1;", "x = b1[s];", "__syncwarp(mask);", "x = mb1[e + 1];", "__syncwarp(mask);", ""]


def test_lanes_are_as_many_as_arrays_need_and_fewer_where_runs_are_many():
    assert [cuda_layout.lanes_for(runs, 30, 132) for runs in (1, 256, 2_048, 16_384, 65_536)] == [2, 2, 2, 1, 1]
    assert [cuda_layout.lanes_for(runs, 300, 132) for runs in (1, 65_536)] == [16, 16]
    assert [cuda_layout.lanes_for(runs, 311, 132, matrix=True) for runs in (30, 2_112)] == [32, 16]
    assert [cuda_layout.lanes_for(1, widest, 132) for widest in (1, 20, 21, 640, 10_000)] == [1, 1, 2, 32, 32]
    assert cuda_layout.runs_of_block(30, 32, 132) == 1
    assert cuda_layout.runs_of_block(65_536, 1, 132) == 128


def test_without_cupy_the_engine_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "bridle.engines.cuda", raising=False)
    with pytest.raises(Unavailable, match=re.escape("engine 'cuda' needs the package cupy: pip install 'bridle-oco[cuda]'")):
        load("cuda")


def has_gpu() -> bool:
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:
        return False


@pytest.mark.skipif(
    not has_gpu(), reason="needs a GPU and CuPy; on machines without, the tests above run the same kernels on the processor"
)
@pytest.mark.parametrize(("name", "place", "constraints", "more", "lanes"), GAMES)
def test_games_agree_on_a_gpu(monkeypatch, name, place, constraints, more, lanes):
    for these in {lanes, 32, 1}:
        monkeypatch.setattr("bridle.engines.cuda.lanes_for", lambda *_, these=these: these)
        agree(*game(name, place, constraints, more, 2_000), 2_000, 1e-8 if name == "guo2022" else 1e-12)
