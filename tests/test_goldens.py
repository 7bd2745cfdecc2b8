"""Every policy still decides, proves and reports what it did when the goldens were recorded: `helpers.goldens` says how to record again.

Of what the generated source does, a third of the cases is tried; all of them with BRIDLE_SOAK=1.
"""

from __future__ import annotations

import json
from zlib import crc32

import pytest

from bridle import policies
from helpers.extent import WHOLE
from helpers.goldens import PATH, cases, machine, recorded

EXACT = ("decisions", "certificate", "report", "last", "certificate in full", "report in full", "bodies")
"""What depends on the last bit of a number."""


@pytest.fixture(scope="module")
def goldens():
    return json.loads(PATH.read_text(encoding="utf-8"))


@pytest.mark.compiles  # every policy has cases of both engines
@pytest.mark.parametrize("group", [*policies.names(), "compare", "http"])
def test_nothing_has_changed(goldens, group):
    same_machine, changed = goldens["machine"] == machine(), {}
    for name, case in cases().items():
        if name.split()[0] != group or not (WHOLE or name.split()[-1] != "compiled" or crc32(name.encode()) % 3 == 0):
            continue
        now, before = recorded(case), dict(goldens[name])
        if not same_machine:
            now, before = ({key: value for key, value in each.items() if key not in EXACT} for each in (now, before))
        sums, kept = now.pop("sums", []), before.pop("sums", [])
        if json.loads(json.dumps(now)) != before or sums != pytest.approx(kept, rel=1e-6, abs=1e-6):
            changed[name] = [key for key in {*now, *before} if json.loads(json.dumps(now)).get(key) != before.get(key)] or ["sums"]
    assert changed == {}


def test_every_case_is_recorded_and_few_policies_refuse_a_way(goldens):
    found = cases()
    assert {*goldens} - {"machine"} == {*found}
    driven = [name for name in found if " hints " not in name and "bandit" not in name and name.endswith("python")]
    assert sum("refused" in goldens[name] for name in driven) <= 10
