"""The fast lane, ``pytest --fast``: two cases of each test that neither compiles nor is slow; one that compiles all the same fails.

A test compiles where JAX or LLVM builds a program for it. It bears the mark `compiles`: by hand, or by itself where one of its
parameters is a compiling engine, and for examples in documents where their text names one. A test that compiles nothing bears the mark
`slow` where a case takes more than a second, or all its cases take more than three. Only this process is watched: a test that starts
another one, which compiles, must be marked by hand.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from _pytest.doctest import DoctestItem

ENGINES = ("jax", "compiled")
LEFT_OUT = ("compiles", "slow")
CASES = 2
"""How many cases of a test the fast lane runs."""

COMPILING_EXAMPLE = re.compile(r"\b(jax|compiled|check_policy|check_learner)\b")
"""Words in an example's source that make it compile."""


def names_engine(parameter: object) -> bool:
    """Whether a parameter of a test is the name of an engine that compiles, or holds one."""
    if isinstance(parameter, (tuple, list, set, frozenset)):
        return any(map(names_engine, parameter))
    if isinstance(parameter, dict):
        return any(map(names_engine, parameter.values()))
    return isinstance(parameter, str) and parameter in ENGINES


def compiles(item: pytest.Item) -> bool:
    """Whether a test shows by its parameters or its text that it compiles."""
    if isinstance(item, DoctestItem):
        return any(COMPILING_EXAMPLE.search(example.source) for example in item.dtest.examples)
    return hasattr(item, "callspec") and any(map(names_engine, item.callspec.params.values()))


class Guard:
    """Makes every attempt to compile fail the test that makes it, also where the attempt's own failure is caught."""

    def __init__(self) -> None:
        self.attempts: list[str] = []
        self.watching = False

    def refuse(self, compiler: str) -> None:
        """Fail the running test."""
        if self.watching:
            self.attempts.append(compiler)
            pytest.fail(self.message(compiler))

    def message(self, compiler: str) -> str:
        return f"this test makes {compiler} compile: mark it with @pytest.mark.compiles, which leaves it out of the fast lane"

    def watch_jax(self) -> None:
        """Hear of every program that JAX builds."""
        import jax

        def heard(event: str, _duration: float, **_more: Any) -> None:
            if "backend_compile" in event:
                self.refuse("JAX")

        jax.monitoring.register_event_duration_secs_listener(heard)

    def watch_llvm(self) -> None:
        """Stand before LLVM, and before what it has stored on disk, as that need not be there."""
        from bridle.engines import machine

        machine.loaded = self.before(machine.loaded, "LLVM")

    def before(self, compile: Callable[..., Any], compiler: str) -> Callable[..., Any]:
        def guarded(*arguments: Any, **settings: Any) -> Any:
            self.refuse(compiler)
            return compile(*arguments, **settings)

        return guarded

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.attempts.clear()
        self.watching = True
        outcome = yield
        self.watching = False
        return outcome

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Any:
        outcome = yield
        if self.attempts:  # the test caught its own failure
            pytest.fail(self.message(self.attempts[0]))
        return outcome


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fast", action="store_true", help="two cases of each test that neither compiles nor is slow; one that compiles all the same fails"
    )


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--fast"):
        return
    guard = Guard()
    for watch in (guard.watch_jax, guard.watch_llvm):
        try:
            watch()
        except ImportError:
            continue  # what is not installed compiles nothing
    config.pluginmanager.register(guard, "fast lane's guard")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if compiles(item):
            item.add_marker("compiles")
    if config.getoption("--fast"):
        cases: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            if not any(item.get_closest_marker(name) for name in LEFT_OUT):
                cases[item.nodeid.partition("[")[0]].append(item)
        kept = {item.nodeid for each in cases.values() for item in sorted(each, key=_draw)[:CASES]}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
        items[:] = [item for item in items if item.nodeid in kept]


def _draw(item: pytest.Item) -> bytes:
    """The place of a case in an order that is the same from run to run and favours none."""
    return hashlib.md5(item.nodeid.encode()).digest()
