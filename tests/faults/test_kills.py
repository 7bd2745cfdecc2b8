"""Processes that are killed while they save, pay or write a journal: eighty here, twenty thousand in `make soak`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from helpers import kills
from helpers.scripts import ROOT

KILLS = dict.fromkeys(kills.TRADES, 12) | {"durable session": 12, "compiled durable session": 8}
KINDS = [pytest.param(kind, marks=pytest.mark.compiles) if kind.startswith("compiled") else kind for kind in KILLS]


def killed(kind, count):
    command = [sys.executable, str(ROOT / "tests" / "helpers" / "kills.py"), "--kind", kind, "--kills", str(count)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout)[kind], ran


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_acknowledged_is_lost_and_nothing_is_left_behind(kind):
    found, ran = killed(kind, KILLS[kind])
    assert found["what"] == [], ran.stderr
    assert ran.returncode == 0
    assert found["kills"] == KILLS[kind]
    assert found["acknowledged"] > KILLS[kind] // 3, "they were killed before they had done anything"


def test_every_kind_is_tried():
    assert set(KILLS) == {*kills.TRADES, *kills.DURABLE}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_who_acknowledges_before_the_commit_is_found_out():
    found, ran = killed("hasty session", 12)
    assert found["wrong"] > 0
    assert any("were acknowledged, and the file has" in what for what in found["what"])
    assert ran.returncode == 1
