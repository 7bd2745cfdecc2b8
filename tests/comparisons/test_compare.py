"""Comparisons: the same numbers wherever they are played, nothing played twice, and nothing lost however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet
import pytest

import bridle
from bridle.comparisons import cell as cells
from bridle.comparisons import executors, task_queue
from bridle.comparisons import run as compare
from bridle.comparisons.cell import Cell
from bridle.comparisons.executors import executor
from bridle.comparisons.rows import COLUMNS, FACT_COLUMNS, general_reason_of, reason_of
from bridle.comparisons.spec import grid
from bridle.comparisons.store import Store
from bridle.core import DoesNotApply, InputError, Unavailable
from bridle.game import metrics
from bridle.game.summary import BOUNDED, summary
from helpers import comparison_rows
from helpers.instances import PROGRAM, strict

Rows = list[dict[str, Any]]
TIMES = ("us_per_round", "seconds")
GRID: dict[str, Any] = {
    "problems": ["halfspaces", "minimax"], "policies": ["sinha2024", "ogd", "sinha2024-strong"], "horizons": [2000, 300], "seeds": 3,
}  # fmt: skip
COMMAND = (
    "compare", "halfspaces", "minimax", "--policies", "sinha2024,ogd,sinha2024-strong", "--horizons", "2000,300", "--seeds", "3",
)  # fmt: skip


def timeless(rows: Rows) -> Rows:
    """Rows without what differs from run to run."""
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


def entries(folder: Path) -> Rows:
    """Every complete entry of a store, in whichever file, in no order."""
    lines = [line for path in folder.glob("store/*.jsonl") for line in path.read_text().split("\n")[:-1]]
    return [json.loads(line)[1] for line in lines]


def played(folder: Path) -> list[str]:
    """The keys of the rows in a store, as often as they are there."""
    return [entry["key"] for entry in entries(folder) if "row" in entry]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Rows:
    """The rows of the grid, played without interruption in this process."""
    return compare.compare(**GRID, out=tmp_path_factory.mktemp("whole"), jobs=1)


# --- rows -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("row", range(8))
def test_a_row_says_what_the_summary_of_its_game_says(whole, row):
    row = [one for one in whole if one["does_not_apply"] is None][3 * row]
    problem = bridle.problem(row["problem"], horizon=row["horizon"], seed=row["seed"])
    policy = bridle.policy_for(row["policy"], problem)
    alone = bridle.play(policy, problem)
    # Streams that do not depend on the decisions are played as several runs, also where there is one; sums may differ in their last bit.
    trace = bridle.play(policy, problem, seed=[row["seed"]]).run(0) if row["problem"] == "halfspaces" else alone
    facts, numbers = summary(trace), summary(alone)
    same = [name for name in FACT_COLUMNS if name not in (*TIMES, "measures")]
    assert {name: row[name] for name in same} == {name: facts[name] for name in same}
    for name in same:
        assert row[name] == (pytest.approx(numbers[name], rel=1e-9, abs=1e-9) if isinstance(numbers[name], float) else numbers[name])
    assert json.loads(row["measures"] or "{}") == facts["measures"]
    rounds, regrets = metrics.regret_curve(trace)
    at = [list(rounds).index(t) for t in row["curve_rounds"]]
    assert at[0] == 0
    assert at[-1] == len(rounds) - 1
    assert len(at) == min(len(rounds), cells.POINTS)
    assert row["curve_regret"] == regrets[at].tolist()
    assert row["curve_cost"] == trace.curve.cost[at].tolist()
    assert row["curve_ccv"] == metrics.ccv_curve(trace)[1][at].tolist()
    assert row["curve_regret"][-1] == row["regret"]
    assert row["curve_ccv"][-1] == row["ccv"]
    for name in ("regret", "ccv"):
        curve = row[f"curve_{name}_bound"]
        assert len(curve) == len(at)
        assert curve[-1] == row[f"{name}_bound"]
        known = [(measured, bound) for measured, bound in zip(row[f"curve_{name}"], curve, strict=True) if bound is not None]
        assert all(measured <= bound for measured, bound in known)


def test_every_fact_of_a_row_is_one_of_the_game_s(whole):
    problem = bridle.problem("fixed", horizon=20)
    assert set(FACT_COLUMNS) <= set(summary(bridle.play(bridle.policy_for("ogd", problem), problem)))
    assert {bound for _, bound in BOUNDED} <= set(FACT_COLUMNS)


def test_rows_are_plain_json_with_every_column(whole):
    assert all(list(row) == list(COLUMNS) for row in whole)
    strict(json.dumps(whole, allow_nan=False))
    assert len({row["key"] for row in whole}) == len(whole) == 2 * 3 * 2 * 3
    assert {row["bridle_version"] for row in whole} == {bridle.__version__}


def test_the_best_action_is_found_once_for_a_stream_that_all_policies_see(tmp_path):
    compare.compare(["halfspaces", "minimax"], ["sinha2024", "ogd"], [100], 2, tmp_path, jobs=1)
    found = [entry for entry in entries(tmp_path) if "comparator" in entry]
    assert len(found) == 2  # of halfspaces, for two seeds; the minimax adversary answers each policy with another stream
    for entry in found:
        assert len(entry["comparator"]["x"]) == 10
        assert entry["comparator"]["why"] is None


def test_a_policy_that_does_not_apply_is_a_row_that_says_why(tmp_path):
    rows = compare.compare(["fixed", "lower-bound"], ["sinha2024-strong", "banditq", "ogd", "steiner"], [50], 1, tmp_path, jobs=1)
    reasons = {(row["problem"], row["policy"]): row["does_not_apply"] for row in rows}
    assert "not strongly convex" in reasons["fixed", "sinha2024-strong"]
    assert "simplex" in reasons["fixed", "banditq"]
    assert reasons["fixed", "ogd"] is None
    for row in rows:
        if row["does_not_apply"]:
            assert (row["cost"], row["curve_rounds"], row["curve_regret"], row["warnings"]) == (None, [], None, [])
    engines = compare.compare(["halfspaces:dim=1"], ["steiner"], [20], 1, tmp_path, engine="jax", jobs=1)
    assert "engine 'python' only" in engines[0]["does_not_apply"]


def test_a_row_s_reason_is_that_of_the_refusal():
    """A row holds the whole message: what is cut from it for tables must be what the error says as data."""
    problem = bridle.problem("fixed", horizon=20)
    with pytest.raises(DoesNotApply) as refused:
        bridle.policy_for("sinha2024-strong", problem)
    row = comparison_rows.row("fixed", "sinha2024-strong", 20, 0)
    assert row["does_not_apply"] == str(refused.value)
    assert reason_of(row) == refused.value.reason
    assert general_reason_of(row) == refused.value.general != refused.value.reason


def test_a_game_that_blows_up_is_a_row_that_says_where(tmp_path, monkeypatch):
    rows = compare.compare(["halfspaces"], ["sinha2024:beta=1e300"], [200], 1, tmp_path, jobs=1)
    assert rows[0]["does_not_apply"] == "the cost or a constraint is not finite in round 9 of the game"
    monkeypatch.setattr(cells, "play", lambda *a, **k: 1.0 / 0.0)
    rows = compare.compare(["fixed"], ["adagrad"], [30], 1, tmp_path, jobs=1)
    assert rows[0]["does_not_apply"].startswith("too large or too small to compute: ")


def test_a_mistake_in_a_game_is_not_taken_for_a_result(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "play", lambda *a, **k: {}["missing"])
    with pytest.raises(RuntimeError, match="ogd on fixed, horizon 30, seed 0, engine python: KeyError: 'missing'"):
        compare.compare(["fixed"], ["ogd"], [30], 1, tmp_path, jobs=1)
    assert played(tmp_path) == []
    monkeypatch.setattr(cells, "policy_for", lambda *a, **k: (_ for _ in ()).throw(Unavailable("needs a package")))
    with pytest.raises(Unavailable):
        compare.compare(["fixed"], ["ogd"], [30], 1, tmp_path, jobs=1)
    assert played(tmp_path) == []  # it may be there tomorrow


# --- games side by side ---------------------------------------------------------------------------------------------------------------


def test_games_that_differ_in_the_seed_alone_are_played_as_one(monkeypatch):
    asked: list[Any] = []
    real = cells.play
    monkeypatch.setattr(cells, "play", lambda *given, **more: asked.append(more.get("seed")) or real(*given, **more))
    compare.compare(["halfspaces"], ["anytime", "ogd"], [40, 60], 3)
    assert asked == [[0, 1, 2]] * 4
    asked.clear()
    compare.compare(["minimax"], ["anytime"], [40], 2)
    assert asked == [None, None], "the adversary of minimax adapts: no stream can be told apart from the others'"
    asked.clear()
    compare.compare(["halfspaces"], ["bandit1"], [40], 2)
    assert asked == [[0], [1]], "a policy that draws is another one for each seed"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bridle.BridleWarning")
def test_a_row_does_not_depend_on_the_games_beside_it():
    """To the last bit; and to rounding it is the game played alone. Every policy."""
    several = compare.compare(["halfspaces:dim=3"], ["all"], [80], 3, jobs=1)
    lone = compare.compare(["halfspaces:dim=3"], ["all"], [80], [2], jobs=1)
    assert timeless([row for row in several if row["seed"] == 2]) == timeless(lone)
    problem = bridle.problem("halfspaces", 80, 2, dim=3)
    for row in lone:
        if row["does_not_apply"] is None:
            facts = summary(bridle.play(bridle.policy_for(row["policy"], problem), problem))
            for name in ("cost", "regret", "ccv", "regret_bound", "ccv_bound", "warnings"):
                assert row[name] == (pytest.approx(facts[name], rel=1e-6, abs=1e-9) if isinstance(facts[name], float) else facts[name]), row


def test_a_game_that_blows_up_is_told_apart_from_those_beside_it():
    rows = compare.compare(["halfspaces"], ["sinha2024:beta=1e300"], [200], 3)
    alone = [compare.compare(["halfspaces"], ["sinha2024:beta=1e300"], [200], [seed])[0] for seed in range(3)]
    assert [row["does_not_apply"] for row in rows] == [row["does_not_apply"] for row in alone]
    assert len({row["does_not_apply"] for row in rows}) > 1


# --- workers --------------------------------------------------------------------------------------------------------------------------


def test_other_processes_are_started_once_they_are_worth_it(monkeypatch):
    started: list[int] = []

    class Counted(executors.Executor):
        def __init__(self, jobs: int) -> None:
            started.append(jobs)

    monkeypatch.setattr(executors, "Processes", Counted)
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    few = compare.compare(["fixed"], ["ogd", "adagrad"], [5000, 50], 2)
    assert started == []
    monkeypatch.setattr(executors, "WORTHWHILE", 0.0)
    assert timeless(compare.compare(["fixed"], ["ogd", "adagrad"], [5000, 50], 2)) == timeless(few)
    assert started == [2], "once, after the first task"
    compare.compare(["fixed"], ["ogd"], [50], 1, jobs=2)
    assert started == [2, 2], "at once where it is asked for"


@pytest.mark.slow
def test_two_processes_give_the_same_numbers_also_where_one_is_killed(tmp_path, whole):
    plan = grid(**GRID)
    store = compare.open_store(plan, tmp_path)
    killed: list[int] = []
    pool = executor(jobs=2)
    assert isinstance(pool, executors.Processes)

    def kill(done: float, total: float, cells: int, of: int) -> None:
        if cells and not killed:
            killed.append(next(iter(pool.pool._processes)))
            os.kill(killed[0], signal.SIGKILL)

    rows = compare.run(plan, store, lambda: pool, kill)
    assert len(killed) == 1
    assert not psutil.pid_exists(killed[0])
    assert timeless(rows) == timeless(whole)
    assert len(played(tmp_path)) == len(whole)  # what was stored before is not played again


@pytest.mark.slow
def test_closing_a_pool_right_after_handing_out_a_task_is_silent(monkeypatch):
    errors: list[object] = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    for _ in range(5):
        pool = executor(jobs=2)
        futures = [pool.submit(time.sleep, 60.0) for _ in range(3)]
        while not all(future.running() for future in futures):
            time.sleep(0.01)
        workers = [psutil.Process(pid) for pid in pool.pool._processes]
        futures.append(pool.submit(time.sleep, 60.0))
        pool.close()
        assert errors == []
        assert not [worker for worker in workers if worker.is_running()]
        assert all(future.exception(timeout=0) for future in futures)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_a_pool_closes_while_its_workers_send_large_results(number):
    pool = executor(jobs=2)
    futures = [pool.submit(bytes, 50_000_000) for _ in range(4)]
    while not futures[number % 2].done():
        time.sleep(0.001)
    time.sleep(0.005 * number)
    closing = threading.Thread(target=pool.close, daemon=True)
    closing.start()
    closing.join(60.0)
    assert not closing.is_alive()


def in_its_own_process(lines):
    """The exit status and what was said; the first pool of a process starts more than its workers."""
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=120)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.slow
def test_ctrl_c_does_not_reach_a_worker_that_is_still_starting():
    lines = (
        "import os, signal",
        "from bridle.comparisons.executors import executor",
        "pool = executor(jobs=2)",
        "future = pool.submit(sum, [1, 2])",
        "for pid in pool.pool._processes: os.kill(pid, signal.SIGINT)",
        "print(future.result())",
        "pool.close()",
    )
    assert in_its_own_process(lines) == (0, "3\n", "")


@pytest.mark.slow
def test_a_pool_is_closed_once_its_semaphores_are_gone():
    """Its last thread removes one: a process that ends meanwhile gets a warning of leaked semaphores."""
    lines = (
        "import importlib, threading, time",
        "from joblib.externals.loky.backend import queues",
        "synchronize = importlib.import_module('joblib.externals.loky.backend.synchronize')  # not the package's name of another module",
        "from bridle.comparisons.executors import executor",
        "feed, unlink = queues.Queue._feed, synchronize.sem_unlink",
        "def slow_feed(*given):",
        "    feed(*given)",
        "    time.sleep(0.3)",
        "def slow_unlink(name):",
        "    unlink(name)",
        "    time.sleep(1.0 if threading.current_thread().name == 'QueueFeederThread' else 0.0)",
        "queues.Queue._feed, synchronize.sem_unlink = staticmethod(slow_feed), slow_unlink",
        "pool = executor(jobs=2)",
        "print(pool.submit(sum, [1, 2]).result())",
        "pool.close()",
        "del pool",
        "time.sleep(0.6)",
    )
    assert in_its_own_process(lines) == (0, "3\n", "")


@pytest.mark.slow
def test_dask_gives_the_same_numbers_also_where_a_worker_is_killed(tmp_path, whole):
    from distributed import Client, LocalCluster

    plan = grid(**GRID)
    killed: list[int] = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster, Client(cluster) as client:

        def kill(done: float, total: float, cells: int, of: int) -> None:
            if cells and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        store = compare.open_store(plan, tmp_path)
        rows = compare.run(plan, store, lambda: executor(dask=cluster.scheduler_address), kill)
    assert len(killed) == 1
    assert timeless(rows) == timeless(whole)


def test_a_cluster_can_be_named_by_the_file_of_its_scheduler(tmp_path):
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        (tmp_path / "scheduler.json").write_text(json.dumps({"address": cluster.scheduler_address}))
        pool = executor(dask=str(tmp_path / "scheduler.json"))
        assert pool.submit(sum, [1, 2]).result() == 3
        pool.close()
        with pytest.raises(InputError, match=r"the Dask cluster at .*scheduler.json is gone"):
            pool.submit(sum, [1, 2])


def test_a_cluster_that_is_not_there_is_one_line(monkeypatch):
    with pytest.raises(InputError, match="cannot reach a Dask scheduler at nowhere"):
        executor(dask="nowhere")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"this needs the package distributed: pip install 'bridle-oco\[dask\]'"):
        executor(dask="tcp://127.0.0.1:1")
    with pytest.raises(Unavailable, match=r"this needs the package joblib: pip install 'bridle-oco\[report\]'"):
        executor(jobs=2)


def die(items: Any, comparators: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def other_sources(items: Any, comparators: Any) -> tuple[str, list[Any]]:
    return "other", []


@pytest.mark.slow
def test_workers_that_keep_dying_are_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "work", die)
    with pytest.raises(InputError, match="workers were lost 3 times in a row"):
        compare.compare(["fixed"], ["ogd"], [50], 2, tmp_path, jobs=2)


def test_a_worker_with_other_sources_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "work", other_sources)
    with pytest.raises(InputError, match="other sources of bridle"):
        compare.compare(["fixed"], ["ogd"], [50], 2, tmp_path, jobs=1)


def test_what_another_process_is_at_comes_last(tmp_path, monkeypatch):
    """What that process finishes meanwhile is not played."""
    plan = grid(["fixed"], ["ogd", "adagrad", "sinha2024"], [5000], 2)  # a task each
    keys = [cell.key for cell in plan.cells]
    other, store = Store(tmp_path / "store"), compare.open_store(plan, tmp_path)
    other.claim([keys[0], keys[1]])
    order: list[str] = []
    real = cells.perform

    def perform(cell: Cell, *found: Any) -> dict[str, Any]:
        order.append(cell.key)
        if len(order) == 4:
            other.add([real(plan.cells[0], found[0])])
        return real(cell, *found)

    monkeypatch.setattr(cells, "perform", perform)
    rows = compare.run(plan, store, lambda: executor(jobs=1))
    assert [row["key"] for row in rows] == keys
    assert set(order[:4]) == set(keys[2:])
    assert order[4:] == [keys[1]]


@pytest.mark.compiles
def test_jax_gives_the_same_numbers_and_compiles_a_program_once(tmp_path):
    policies_ = ["sinha2024", "ogd"]
    plain = compare.compare(["halfspaces"], policies_, [300, 1100], 4, tmp_path, jobs=1)
    plan = grid(["halfspaces"], policies_, [300, 1100], 4, engine="jax")
    tasks = list(task_queue._cell_parts(plan.cells, workers=2))
    assert len(tasks) == 2  # one program each, every horizon and seed of it
    assert all(len({cell.policy for cell in task}) == 1 for task in tasks)
    from bridle.engines import jax as engine

    before = engine._compiled("cpu")._cache_size()
    fast = compare.compare(["halfspaces"], policies_, [300, 1100], 4, tmp_path, engine="jax", jobs=1)
    assert engine._compiled("cpu")._cache_size() <= before + 4  # one for games of a block, one for longer ones
    for one, two in zip(plain, fast, strict=True):
        assert two["engine"] == "jax"
        assert one["key"] != two["key"]
        assert two["ccv"] == pytest.approx(one["ccv"], rel=1e-9)
        assert two["regret"] == pytest.approx(one["regret"], rel=1e-9)


# --- the command ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_writes_a_table_a_file_and_a_page(run, tmp_path):
    out = tmp_path / "results"
    arguments = ("compare", "fixed", "halfspaces:dim=3", "--policies", "ogd,sinha2024:preset=practice,banditq", "--horizons", "60,1e2",
                 "--seeds", 2, "--out", out, "--jobs", 1)  # fmt: skip
    status, text, err = run(*arguments, "--json", tmp_path / "rows.json")
    assert (status, err) == (0, "")
    for shown in ("sinha2024 preset=practice", "fixed, T = 60", "halfspaces dim=3, T = 100", "does not apply", "report.html"):
        assert shown in text
    rows = strict((tmp_path / "rows.json").read_text())
    table = pyarrow.parquet.read_table(out / "results.parquet")
    assert table.column_names == list(COLUMNS)
    assert str(table.schema.field("curve_regret").type) == "list<element: double>"
    assert str(table.schema.field("regret_bound_holds").type) == "bool"
    assert table.to_pylist() == rows
    assert len(rows) == 2 * 3 * 2 * 2
    assert [(row["problem"], row["horizon"]) for row in rows[::6]] == [
        ("fixed", 60),
        ("fixed", 100),
        ("halfspaces", 60),
        ("halfspaces", 100),
    ]
    assert "<html" in (out / "report.html").read_text()
    before = played(out)
    status, again, err = run(*arguments)
    assert (status, err) == (0, "")
    assert f"{len(rows)} of {len(rows)} cells were there already" in again
    assert again.splitlines()[:20] == text.splitlines()[:20]
    assert played(out) == before
    status, text, err = run(*arguments, "--json", "-", "--figures")
    assert (status, err) == (0, "")
    assert strict(text) == rows
    assert {path.suffix for path in (out / "figures").iterdir()} == {".png", ".svg"}


def test_a_swept_parameter_is_in_the_labels(run, tmp_path):
    status, text, _ = run("compare", "fixed", "--policies", "sinha2024,ogd", "--horizons", 30, "--seeds", 1, "--jobs", 1, "--out",
                          tmp_path, "--set", "V=1,2", "--set", "modulus=0,1", "--json", "-")  # fmt: skip
    assert status == 0
    rows = strict(text)
    assert {row["label"] for row in rows} == {"sinha2024 V=1", "sinha2024 V=2", "ogd"}
    assert {row["problem_label"] for row in rows} == {"fixed", "fixed modulus=1"}


def test_reasons_and_warnings_are_told_once_for_all_that_they_are_true_of(run, tmp_path):
    status, text, _ = run("compare", "halfspaces", "fixed", "--policies", "sinha2024-strong,guo2022-strong,yi2021,banditq",
                          "--horizons", "20,30", "--seeds", 1, "--jobs", 1, "--out", tmp_path, "--set", "dim=2")  # fmt: skip
    assert status == 0
    notes = [line for line in text.splitlines() if line.startswith(("does not apply", "warning"))]
    assert notes[0] == (
        "does not apply: sinha2024-strong, guo2022-strong on halfspaces dim=2, fixed dim=2: "
        "the costs of the problem are not strongly convex (modulus 0)"
    )
    assert notes[1].startswith("does not apply: banditq on halfspaces dim=2, fixed dim=2: domain must be a simplex")
    assert notes[2].startswith("warning: yi2021 on halfspaces dim=2: policy yi2021 is for constraints that stay the same")
    assert len(notes) == 3


@pytest.mark.parametrize(("arguments", "message"), [
    (["halfspace"], "unknown problem 'halfspace'; did you mean halfspaces"),
    (["fixed", "--policies", "sinha2042"], "did you mean sinha2024"),
    (["fixed", "--policies", ","], "--policies must name at least one"),
    (["fixed", "--horizons", "0"], "horizon must be 1 or above, not 0"),
    (["fixed", "--horizons", "many"], "horizon must be a number, not 'many'"),
    (["fixed", "--seeds", "0"], "seeds must be 1 or above"),
    (["fixed", "--set", "V"], "--set takes NAME=VALUE or NAME=V1,V2, not 'V'"),
    (["fixed", "--set", "V=1", "--set", "V=2"], "--set gives V twice"),
    (["fixed", "--set", "W=1"], "unknown parameter of these problems and policies 'W'"),
    (["fixed", "--jobs", "0"], "jobs must be 1 or above"),
    (["fixed", "--engine", "jaxx"], "did you mean jax"),
    (["fixed", "--dask", "nowhere"], "cannot reach a Dask scheduler at nowhere"),
    (["no/such/file.py"], "file.py"),
    ([], "PROBLEM"),
])  # fmt: skip
def test_bad_input_is_one_line_and_nothing_is_lost(run, tmp_path, arguments, message):
    kept = tmp_path / "out" / "store"
    Store(kept).add([{"key": "a", "row": {}}])
    before = {path: path.read_bytes() for path in kept.iterdir()}
    status, out, err = run("compare", *arguments, "--out", tmp_path / "out")
    assert (status, out) == (2, "")
    assert err.startswith("bridle: ")
    assert err.count("\n") == 1
    assert message in err
    assert {path: path.read_bytes() for path in kept.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "horizon=2"), "horizon cannot be swept"),
        (("--policies", "ogd:"), "a policy's settings follow its name as in ogd:step=0.1, not 'ogd:'"),
        (("--out", ""), "--out must name a folder"),
    ],
)
def test_odd_requests_are_refused(run, tmp_path, options, message):
    status, out, err = run(
        "compare", "fixed", "--policies", "ogd", "--horizons", 20, "--seeds", 1, "--jobs", 1, "--out", tmp_path, *options
    )
    assert (status, out) == (2, "")
    assert message in err


def test_a_damaged_store_is_one_line_and_stays_as_it_is(run, tmp_path):
    arguments = ("compare", "fixed", "--policies", "ogd", "--horizons", 20, "--seeds", 1, "--jobs", 1, "--out", tmp_path)
    assert run(*arguments)[0] == 0
    (path,) = (tmp_path / "store").iterdir()
    damaged = path.read_bytes().replace(b"ogd", b"odg", 1)
    path.write_bytes(damaged)
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"bridle: the store is damaged: line 5 of {path} is not an entry")
    assert path.read_bytes() == damaged
    path.write_bytes(damaged[:-10].replace(b"odg", b"ogd"))  # only the end is missing
    assert run(*arguments)[0] == 0


def test_a_missing_package_is_one_line_at_the_start(run, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pyarrow" else name)
    assert run("compare", "fixed", "--out", tmp_path / "x") == (
        2,
        "",
        "bridle: this needs the package pyarrow: pip install 'bridle-oco[report]'\n",
    )
    assert not (tmp_path / "x").exists()


def start(out: Path, *more: str) -> subprocess.Popen[str]:
    """The command in a process and a group of its own."""
    return subprocess.Popen(
        [*PROGRAM, *COMMAND, "--out", str(out), *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def until_some_are_done(out: Path, process: subprocess.Popen[str]) -> list[str]:
    """Wait until a few rows are stored: which."""
    while not (done := played(out)):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return done


def final(out: Path) -> Rows:
    return pyarrow.parquet.read_table(out / "results.parquet").to_pylist()


@pytest.mark.slow
def test_kill_9_and_the_same_command_again_end_as_if_nothing_had_happened(tmp_path, whole):
    first = start(tmp_path, "--jobs", "2")
    until_some_are_done(tmp_path, first)
    children = psutil.Process(first.pid).children(recursive=True)
    first.kill()
    first.communicate()
    psutil.wait_procs(children, timeout=10)
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    done = played(tmp_path)
    assert 0 < len(done) < len(whole)
    assert not (tmp_path / "results.parquet").exists()
    second = start(tmp_path, "--jobs", "1")
    out, err = second.communicate()
    assert (second.returncode, err) == (0, "")
    assert f"{len(done)} of {len(whole)} cells were there already" in out
    assert timeless(final(tmp_path)) == timeless(whole)
    assert sorted(played(tmp_path)) == sorted(row["key"] for row in whole)  # each once: what was done is not done again


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path, whole):
    process = start(tmp_path, "--jobs", "2")
    until_some_are_done(tmp_path, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    out, err = process.communicate()
    done = len(played(tmp_path))
    assert (process.returncode, out) == (130, "")
    assert err == (
        f"bridle: interrupted; {done} of {len(whole)} cells are done and kept in {tmp_path}; to go on: bridle {' '.join(COMMAND)} "
        f"--out {tmp_path} --jobs 2\n"
    )
    assert 0 < done < len(whole)


@pytest.mark.slow
def test_two_commands_at_once_share_the_work_and_lose_nothing(tmp_path, whole):
    both = [start(tmp_path, "--jobs", "1") for _ in range(2)]
    ends = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], ends
    assert timeless(final(tmp_path)) == timeless(whole)
    keys = played(tmp_path)
    assert set(keys) == {row["key"] for row in whole}
    assert len(keys) - len(whole) <= len(whole) // 2  # at worst what the other was at when there was nothing else left
