"""The shop of `make serve-demo`: its server is killed, and the shop goes on."""

from __future__ import annotations

import pytest

from helpers.scripts import ROOT, script

pytestmark = pytest.mark.slow


def test_the_shop_loses_nothing_while_its_server_is_killed(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    found = script("examples/service_shop.py").main(slots=60, kill=True, pause=0.02, every=0.3, most=2)
    assert found["kills"] + found["stops"] >= 1
    assert (found["lost"], found["doubled"], found["same"], found["journal"]) == (0, 0, True, (60, 60))
