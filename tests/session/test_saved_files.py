"""Save files that an earlier version wrote: they load, and go on as that version did."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import bridle

SAVED = Path(__file__).parent / "saved"
EXPECTED = json.loads((SAVED / "expected.json").read_text())


@pytest.mark.compiles
@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_of_an_earlier_version_loads_and_goes_on(name):
    if name.endswith("numba"):
        pytest.importorskip("numba")
    expected, rng = EXPECTED[name], np.random.default_rng(100 + list(EXPECTED).index(name))
    with pytest.warns(bridle.UncheckedWarning, match="has no digest") as warned:
        session = bridle.Session.load(SAVED / f"{name}.npz")
    assert [each.filename for each in warned] == [__file__]  # once, and it points here
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {"rounds": session.rounds, "cost": session.cost, "ccv": session.ccv, "pending": session.pending}
        assert found == {fact: expected[fact] for fact in found}
        for _ in range(20):
            x = session.decide()
            a, A = rng.standard_normal(len(x)), rng.standard_normal((1, len(x)))
            session.observe(f=float(a @ x), df=a, g=A @ x - 0.3, dg=A)
    np.testing.assert_allclose(session.decide(), expected["decisions"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(session.ccv, expected["ccv_after"], rtol=1e-9)
    assert session.unchecked
    *told, last = session.report().splitlines()
    assert last.startswith("File: it was loaded from a file of an earlier version, without a digest")
    feasible = [line for line in told if line.startswith("Feasible: ")]  # it may be found sooner than it was
    assert [line for line in told if line not in feasible] == [
        line for line in expected["report"].splitlines() if not line.startswith("Feasible: ")
    ]
    assert len(feasible) >= expected["report"].count("Feasible: ")


# --- other kinds of files, as version 0.1.0 wrote them --------------------------------------------------------------------------------

WRITTEN = SAVED / "0.1.0"


def test_a_comparison_of_0_1_0_loads_and_is_ranked():
    result = bridle.Comparison.load(WRITTEN / "results.parquet")
    assert {row["bridle_version"] for row in result} == {"0.1.0"}
    assert [(row["rank"], row["label"]) for row in result.ranking()] == [(1, "anytime"), (2, "ogd")]
