"""The examples run, and what they print is what happened: all four sides of a limit, beside the baselines."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from bridle import data
from helpers.instances import real

EXAMPLES = Path(__file__).parents[2] / "examples"
RATES = {"recall", "precision", "false alarms", "accuracy"}


@pytest.fixture
def example(monkeypatch):
    """An example's module; data are read once for all of them."""
    known = {name: real(name) for name in ("creditcard", "adult")}
    monkeypatch.setattr(data, "load", known.__getitem__)
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module


def figures(found):
    """The figures of ours, of the weighted baseline and of the threshold chosen afterwards; each with all four rates, over time too."""
    for name, each in found.items():
        assert each.keys() >= RATES | {"recall by window", "false alarms by window"}, name
        assert all(0.0 <= each[rate] <= 1.0 for rate in RATES)
        assert len(each["recall by window"]) == len(each["false alarms by window"]) == 4
    return list(found.values())


@pytest.mark.slow
def test_recall_with_scikit_learn(example, capsys):
    ours, weighted, afterwards = figures(example("fraud_sklearn").main(8000, 500, "python"))
    assert "recall  at least 0.9" in capsys.readouterr().out
    assert ours["recall"] > 0.8  # of some 30 frauds
    assert afterwards["recall"] == pytest.approx(0.9, abs=0.03)
    assert weighted["recall"] > 0.5


@pytest.mark.slow
def test_false_alarms_with_river(example, capsys):
    ours, _, afterwards = figures(example("fraud_river").main(4000, "python"))
    assert "false positive rate  at most 0.01" in capsys.readouterr().out
    assert ours["false alarms"] == pytest.approx(0.01, abs=81 / 3900)
    assert max(ours["false alarms by window"]) < 0.03
    assert afterwards["recall"] >= ours["recall"]


@pytest.mark.slow
def test_false_alarms_beside_a_network(example, capsys):
    torch.set_num_threads(1)  # small batches: more threads only wait for each other
    ours, weighted, _ = figures(example("fraud_torch").main(8000))
    out = capsys.readouterr().out
    assert "mean loss of 1  at most 1" in out
    assert "false positive rate  at most 0.01" in out
    assert ours["false alarms"] == pytest.approx(0.01, abs=(81 + 100) / 7900)
    assert ours["recall"] > 0.7
    assert weighted["accuracy"] > 0.9


@pytest.mark.slow
def test_equal_opportunity_on_the_census(example):
    fair, free, _, afterwards = figures(example("fair_adult").main(4000, "python"))
    assert abs(fair["gap"]) < free["gap"]
    assert abs(afterwards["gap"]) < 0.03
    assert fair["accuracy"] > free["accuracy"] - 0.01


def test_rates_are_counted_as_their_names_say(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    shown = importlib.import_module("figures")
    labels, alarms = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]
    assert shown.rates(labels, alarms) == {"recall": 0.75, "precision": 0.6, "false alarms": 2 / 6, "accuracy": 0.7}
    assert math.isnan(shown.rates([0, 0], [0, 0])["recall"])
    over = shown.over_time([1, 0, 1, 0, 0, 1, 0, 1, 0], [1, 0, 1, 1, 0, 0, 0, 0, 1], windows=2)  # a window ends before the next positive
    assert over["recall by window"] == [1.0, 0.0]
    assert over["false alarms by window"] == [1 / 3, 1 / 2]
    scores = np.array([0.9, 0.8, 0.1, 0.5, 0.95])
    assert shown.in_hindsight([1, 1, 1, 0, 0], scores, 0.5).tolist() == [True, True, False, False, True]


def test_every_example_is_run_and_is_short():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    # figures is what the first four print; the next two are run with their pages, and the shop with the service.
    assert names == {"fraud_sklearn", "fraud_river", "fraud_torch", "fair_adult", "figures", "capacity_rules", "portfolio", "service_shop"}
    for path in EXAMPLES.glob("fraud_*.py"):
        main = path.read_text().split('if __name__ == "__main__"')[0]
        lines = [line for line in main.splitlines() if line.strip() and not line.startswith('"""')]
        assert len(lines) <= 36, f"{path.name} has {len(lines)} lines with its imports"
