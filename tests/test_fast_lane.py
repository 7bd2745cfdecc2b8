"""`pytest --fast` leaves out what is marked, and fails what compiles without a mark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.extent import covering
from helpers.fast_lane import names_engine

TESTS = """
import pytest

def build_with_jax():
    import jax
    return jax.jit(lambda x: x + 1.0)(1.0)

def build_with_llvm():
    from bridle.engines import machine
    return machine.loaded(machine.compiled("define void @run() { ret void }"))

def test_plain(): pass
def test_jax(): build_with_jax()
def test_llvm(): build_with_llvm()
def test_caught():
    try:
        build_with_llvm()
    except BaseException:
        pass

@pytest.mark.compiles
def test_marked(): build_with_jax()

@pytest.mark.slow
def test_slow(): raise AssertionError

@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_engines(engine): assert engine == "python"
"""


@pytest.mark.compiles  # in a process of its own
def test_what_compiles_without_a_mark_fails(tmp_path):
    """Also where the test catches its own failure; a parameter that names an engine is a mark."""
    pytest.importorskip("jax")
    pytest.importorskip("llvmlite")
    (tmp_path / "test_these.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = compiles\n    slow\n")
    command = [sys.executable, "-m", "pytest", "-p", "helpers.fast_lane", "--fast", "-rA", "-p", "no:cacheprovider", "test_these.py"]
    places = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    setting = {**os.environ, "PYTHONPATH": places}
    ran = subprocess.run(command, cwd=tmp_path, env=setting, capture_output=True, text=True)
    outcomes = {line.split("::")[1].split(" ")[0]: line.split(" ")[0] for line in ran.stdout.splitlines() if "test_these.py::" in line}
    assert outcomes == {
        "test_plain": "PASSED", "test_jax": "FAILED", "test_llvm": "FAILED", "test_caught": "FAILED", "test_engines[python]": "PASSED",
    }  # fmt: skip
    assert "this test makes JAX compile: mark it with @pytest.mark.compiles" in ran.stdout
    assert "this test makes LLVM compile: mark it with @pytest.mark.compiles" in ran.stdout
    assert "3 deselected" in ran.stdout


def test_engines_are_found_inside_parameters():
    assert names_engine("jax")
    assert names_engine(("sinha2024", {"engine": "compiled"}))
    assert not names_engine("jaxx")
    assert not names_engine({"engine": "python"})


def test_what_covers_has_every_value_as_often_as_asked_and_far_fewer_cases():
    cases = {f"t[{a}-{b}-{c}]": {"a": a, "b": b, "c": c} for a in range(20) for b in "uvwxyz" for c in (True, False)}
    for times in (1, 3):
        kept = covering(cases, times)
        assert kept <= set(cases)
        for parameter, values in (("a", range(20)), ("b", "uvwxyz"), ("c", (True, False))):
            assert all(sum(cases[name][parameter] == value for name in kept) >= times for value in values)
        assert len(kept) < 0.5 * len(cases)
        assert kept == covering(dict(reversed(cases.items())), times), "whatever the order"
    assert covering(cases, 12) == set(cases)
