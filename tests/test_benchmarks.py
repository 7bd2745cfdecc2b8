"""Every benchmark runs at toy size, and leaves what is published as it was."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest

from helpers import fake_gpu
from helpers.scripts import ROOT, script

pytestmark = pytest.mark.compiles  # in processes of their own

FOLDER = ROOT / "benchmarks"
MODULES = ("results",)
"""Files that are not run but imported."""
SHORT = {"peers": ("--quick", "--only", "inside,starting")}
"""How a benchmark is made short where that is not `--toy`."""
SAYS = {"gpu": "The fraud network of 311 weights"} if fake_gpu.COMPILER else {}
"""What must be in the output of a benchmark."""
PUBLISHED = [*ROOT.glob("*.md"), *(ROOT / "docs").iterdir(), *FOLDER.glob("*.json"), *FOLDER.glob("*.md")]
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))


def has_main(name: str) -> bool:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    return any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body)


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_runs_at_toy_size_and_writes_nothing_here(name, tmp_path):
    if name in MODULES:
        assert not has_main(name)
        return
    assert has_main(name)
    before = {path: path.stat().st_mtime_ns for path in PUBLISHED}
    beside = set(FOLDER.iterdir()) - {FOLDER / "__pycache__"}
    command = [sys.executable, FOLDER / f"{name}.py", *SHORT.get(name, ("--toy",))]
    setting = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(tmp_path)}
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=setting)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()
    assert SAYS.get(name, "") in ran.stdout
    assert {path: path.stat().st_mtime_ns for path in PUBLISHED} == before
    assert set(FOLDER.iterdir()) - {FOLDER / "__pycache__"} == beside
    assert list(tmp_path.glob("bridle-toy-*")) == [], "what a toy run wrote is thrown away"


def test_the_parts_of_peers_are_there():
    peers = script("benchmarks/peers.py")
    for module, function, _ in peers.PARTS.values():
        tree = ast.parse((FOLDER / "parts" / f"{module}.py").read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
