"""`make soak` at a ten-thousandth of its size: it runs, remembers what it has done, and says where."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from helpers.scripts import ROOT

PARTS = ("records", "flips")
"""What takes seconds at this size."""


@pytest.mark.slow
def test_it_goes_on_where_it_was(tmp_path):
    command = [sys.executable, str(ROOT / "tools" / "soak.py"), "--share", "0.0001", "--out", str(tmp_path)]
    kept = tmp_path / "results.json"
    for parts in (PARTS[:1], PARTS):
        ran = subprocess.run([*command, *(f"--only={part}" for part in parts)], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert ran.stdout.splitlines()[-1] == f"nothing was wrong; all of it: {kept}"
        found = json.loads(kept.read_text())
        assert list(found["parts"]) == list(parts)
        if len(parts) == 1:
            found["parts"]["records"]["1 of 1, python"]["seconds"] = -1.0
            kept.write_text(json.dumps(found))
    [(_, records)] = found["parts"]["records"].items()
    assert records["records"] == 250
    assert records["seconds"] == -1.0, "it did something twice"
    assert all(task["flips"] == task["noticed"] + task["harmless"] > 0 for task in found["parts"]["flips"].values())
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
