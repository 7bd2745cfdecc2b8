"""Processes that are killed while they save and pay: two hundred and fifty here, ten thousand in `make soak`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from helpers import kills
from helpers.scripts import ROOT

KINDS = [pytest.param(kind, marks=pytest.mark.compiles) if kind.startswith("compiled") else kind for kind in kills.TRADES]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_acknowledged_is_lost_and_nothing_is_left_behind(kind):
    command = [sys.executable, str(ROOT / "tests" / "helpers" / "kills.py"), "--kind", kind, "--kills", "50"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stdout, ran.stderr
    found = json.loads(ran.stdout)[kind]
    assert found["what"] == [], ran.stderr
    assert ran.returncode == 0
    assert found["kills"] == 50
    assert found["acknowledged"] > 10, "they were killed before they had done anything"
