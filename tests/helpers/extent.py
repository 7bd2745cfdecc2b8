"""How far tests go: enough of every product to find what the whole finds, and all of it where BRIDLE_SOAK is set.

A test marked ``covering(n)`` runs so many of its cases that each value of each of its parameters comes up at least n times, in company
that differs: every policy, every problem, every engine, but not each with each. Cases are picked by the hash of their names, so that
they stay the same from run to run and from process to process. ``make soak`` and ``BRIDLE_SOAK=1 make test`` run them all.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict

import pytest

WHOLE = bool(os.environ.get("BRIDLE_SOAK"))
"""Whether everything is to be tried."""


def examples(usual: int, whole: int) -> int:
    """How many examples hypothesis draws."""
    return whole if WHOLE else usual


def covering(cases: dict[str, dict[str, object]], times: int) -> set[str]:
    """Names of cases that together have each value of each parameter at least so many times, as far as it comes up at all."""
    kept, seen = set(), Counter()
    for name in sorted(cases, key=lambda name: hashlib.md5(name.encode()).digest()):
        values = [(parameter, repr(value)) for parameter, value in cases[name].items()]
        if any(seen[value] < times for value in values):
            kept.add(name)
            seen.update(values)
    return kept


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if WHOLE or any("::" in argument for argument in config.args):  # who names a case wants that one
        return
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("covering"):
            tests[item.nodeid.partition("[")[0]].append(item)
    left_out = set()
    for cases in tests.values():
        times = cases[0].get_closest_marker("covering").args[0]
        kept = covering({item.nodeid: item.callspec.params for item in cases}, times)
        left_out |= {item.nodeid for item in cases} - kept
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]
