"""The examples run, and find what they say they find."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from bridle import data
from helpers.instances import real

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def found(monkeypatch):
    """What an example finds on so many rows; data are read once for all of them."""
    known = {name: real(name) for name in ("creditcard", "adult")}
    monkeypatch.setattr(data, "load", known.__getitem__)
    return lambda name, rows: runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fraud_sklearn", "fraud_river", "fraud_torch"])
def test_fraud_is_found(found, name):
    assert found(name, 12_000)["auc"] > 0.85


@pytest.mark.slow
def test_a_fair_classifier_is_fair_and_still_right(found):
    result = found("fair_adult", 8000)
    free, fair = result["free"], result["fair"]
    assert free["score_gap"] > 1.0
    assert abs(fair["score_gap"]) < 0.3
    assert abs(fair["rate_gap"]) < 0.5 * free["rate_gap"]
    assert fair["accuracy"] > free["accuracy"] - 0.05


def test_every_example_is_run_and_is_short():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {
        "fraud_sklearn",
        "fraud_river",
        "fraud_torch",
        "fair_adult",
        "capacity_rules",
        "portfolio",
    }  # the last two with their pages
    for path in EXAMPLES.glob("fraud_*.py"):
        main = path.read_text().split('if __name__ == "__main__"')[0]
        lines = [line for line in main.splitlines() if line.strip() and not line.startswith('"""')]
        assert len(lines) <= 28, f"{path.name} has {len(lines)} lines with its imports"
