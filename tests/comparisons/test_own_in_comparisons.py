"""Policies of a user's own in comparisons: in processes, on Dask, resumed, edited, and blamed for their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridle.comparisons import analysis, compare
from bridle.comparisons import run as comparison
from bridle.comparisons.cell import perform, work
from bridle.comparisons.executors import executor
from bridle.comparisons.spec import grid
from bridle.core import InputError, Unavailable
from bridle.policies import own, registry
from helpers.own_policy_files import ONE, TWO

GRID = {"problems": ["fixed", "halfspaces:dim=3"], "policies": ["ogd", "./mine.py:price=2"], "horizons": [60], "seeds": 2}


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_LOADED", {})
    monkeypatch.chdir(tmp_path)
    path = Path("mine.py")
    path.write_text(ONE)
    return path


def timeless(rows):
    return [{key: value for key, value in row.items() if key not in ("us_per_round", "seconds")} for row in rows]


@pytest.mark.slow
def test_processes_and_dask_give_the_numbers_of_one_process(file):
    from distributed import LocalCluster

    alone = compare(**GRID, out="alone", jobs=1)
    assert {row["label"] for row in alone} == {"ogd", "shy price=2"}
    assert all(row["does_not_apply"] is None and row["ccv"] is not None for row in alone)
    assert timeless(compare(**GRID, out="two", jobs=2)) == timeless(alone)
    plan = grid(**GRID)
    file.unlink()  # workers are sent its text, and need no copy
    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0") as cluster:
        store = comparison.open_store(plan, "dask")
        assert timeless(comparison.run(plan, store, lambda: executor(dask=cluster.scheduler_address))) == timeless(alone)


def test_a_comparison_goes_on_and_an_edited_policy_is_played_again(file, monkeypatch):
    played = []
    monkeypatch.setattr(comparison, "work", lambda items, best: played.extend(items) or work(items, best))
    first = compare(**GRID, out="kept", jobs=1)
    assert played
    played.clear()
    assert compare(**GRID, out="kept", jobs=1) == first
    assert not played
    file.rename("moved.py")  # the text counts, not where it lies
    assert compare(**{**GRID, "policies": ["ogd", "./moved.py:price=2"]}, out="kept", jobs=1) == first
    assert not played
    file.write_text(ONE.replace("self.step * (", "2.0 * self.step * ("))
    second = compare(**GRID, out="kept", jobs=1)
    assert {cell.policy for cell in played} == {"shy"}
    changed = [one["label"] for one, two in zip(first, second, strict=True) if one["cost"] != two["cost"]]
    assert set(changed) == {"shy price=2"}


def test_a_file_of_several_is_all_of_them_and_settings_are_swept(file):
    file.write_text(TWO)
    rows = compare(["fixed"], ["./mine.py"], [30], 1, "several", sweep={"step": [0.1, 0.5]}, jobs=1)
    assert [row["label"] for row in rows] == ["shy step=0.1", "shy step=0.5", "bold step=0.1", "bold step=0.5"]
    assert {row["label"] for row in analysis.ranking(rows)} == {row["label"] for row in rows}


def test_an_error_in_the_middle_of_a_comparison_names_file_and_game(file):
    file.write_text(ONE.replace("g, dg =", "calls.append(0); assert len(calls) < 40, 'too late'\n        g, dg =") + "calls = []\n")
    with pytest.raises(
        InputError,
        match=r"^shy price=2 on (fixed|halfspaces dim=3), horizon 60, seed \d, engine python: mine.py, line 22: AssertionError: too",
    ):
        compare(**GRID, out="broken", jobs=1)


LEAVES = """
from typing import Any, NamedTuple


class State(NamedTuple):
    x: Any
    t: Any


class Leaves(NamedTuple):
    domain: Any

    def init(self, x1):
        return State(x1, 0.0 * x1[0])

    def decide(self, state):
        return state.x

    def update(self, state, feedback):
        return State(state.x - 10.0 * (state.t >= 149.0) * feedback.df, state.t + 1.0)


def policy(domain):
    return Leaves(domain)
"""


def test_a_policy_that_leaves_the_domain_late_has_no_numbers(file):
    file.write_text(LEAVES)
    (row,) = compare("fixed", "./mine.py", horizons=300, seeds=1)
    assert row["does_not_apply"] == "a decision must be in the domain, and that of round 151 of the game is not"
    assert row["regret"] is None


def test_a_worker_notices_another_policy_of_the_same_name(file, monkeypatch):
    (cell,) = [cell for cell in grid(**{**GRID, "problems": ["fixed"], "seeds": 1}).cells if cell.own]
    file.write_text(ONE.replace("5.0", "9.0"))
    (other,) = own.load("./mine.py")
    using = own.OwnPolicy.use

    def overtaken(self):
        mine = using(self)
        using(other)
        return mine

    monkeypatch.setattr(own.OwnPolicy, "use", overtaken)
    with pytest.raises(Unavailable, match="another comparison has another policy shy on this worker"):
        perform(cell)


def test_a_policy_that_is_only_registered_says_how_to_be_sent(file):
    file.write_text(ONE + "import bridle\nbridle.register(ENTRY)\n")
    try:
        own.load("./mine.py")
        registry._LOADED.clear()
        with pytest.raises(InputError, match=r"registered in this process alone.*jobs=1; or name its file in place of it, as in ./mine.py"):
            compare(["fixed"], ["shy"], [30], 1, "other", jobs=2)
    finally:
        registry._ENTRIES.pop("shy", None)
