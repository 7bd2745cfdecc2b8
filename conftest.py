"""Documentation examples run as tests, each in a folder of its own; no test leaves a file in the repository or a name in the registry."""

import gc
import os
from pathlib import Path

import pytest
from _pytest.doctest import DoctestItem

from bridle.policies import registry

BUILD = Path(__file__).parent / "build"
KEPT = {
    "BRIDLE_COMPILED": str(BUILD / "compiled"),
    "JAX_COMPILATION_CACHE_DIR": str(BUILD / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
"""What is compiled is kept between runs, and shared by the processes of one: most of the suite's time is compilers."""
for name, value in KEPT.items():
    os.environ.setdefault(name, value)

pytest_plugins = ["helpers.fast_lane", "helpers.extent"]
collect_ignore = ["docs/conf.py"]  # Sphinx reads it


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """All that is imported and collected stays: to look for garbage in it, again and again while it grows, took half of the time.

    From then on garbage is collected, but not looked for in what was there before the first test.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _leave_nothing_behind(request, monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    if isinstance(request.node, DoctestItem):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
