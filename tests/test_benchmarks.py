"""Every benchmark runs at toy size, and leaves what is published as it was."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys

import pytest

from helpers.scripts import ROOT, script

pytestmark = pytest.mark.compiles  # in processes of their own

FOLDER = ROOT / "benchmarks"
MODULES = ("results",)
"""Files that are not run but imported."""
SHORT = {"peers": ("--quick", "--only", "inside,starting")}
"""How a benchmark is made short where that is not `--toy`."""
PUBLISHED = [*ROOT.glob("*.md"), *(ROOT / "docs").iterdir(), *FOLDER.glob("*.json"), *FOLDER.glob("*.md")]
PLACES = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))


def has_main(name: str) -> bool:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    return any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body)


RUN_THEM = """
import contextlib, io, json, runpy, sys, traceback

ended = {}
for name, path, *arguments in json.loads(sys.argv[1]):
    sys.argv, wrong, printed = [path, *arguments], "", io.StringIO()
    sys.modules.pop("parts.toy", None)  # it reads the arguments when it is imported
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        wrong = f"exit status {end.code}" if end.code else ""
    except BaseException:
        wrong = traceback.format_exc()
    ended[name] = [wrong, printed.getvalue()]
print(json.dumps(ended))
"""
"""Scripts one after the other in one process, which imports and compiles what they share once: what went wrong and was printed, by name."""

ALONE = ("durable", "peers", "service")
"""They start processes from themselves, or a server."""
TOGETHER = [name for name in SCRIPTS if name not in (*ALONE, *MODULES)]
GROUPS = [*((name,) for name in ALONE), *(tuple(TOGETHER[i::2]) for i in range(2))]


@pytest.mark.parametrize("names", GROUPS, ids=" ".join)
def test_they_run_at_toy_size_and_write_nothing_here(names, tmp_path):
    assert all(map(has_main, names))
    before = {path: path.stat().st_mtime_ns for path in PUBLISHED}
    beside = set(FOLDER.iterdir()) - {FOLDER / "__pycache__"}
    scripts = [(name, str(FOLDER / f"{name}.py"), *SHORT.get(name, ("--toy",))) for name in names]
    # What the engines write is run as it stands, which other tests show to be what is compiled: to compile it would take most of the time.
    setting = {
        **os.environ,
        "BRIDLE_INTERPRET": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(FOLDER), *PLACES]),
    }
    ran = subprocess.run([sys.executable, "-c", RUN_THEM, json.dumps(scripts)], capture_output=True, text=True, cwd=tmp_path, env=setting)
    assert ran.returncode == 0, ran.stderr
    ended = json.loads(ran.stdout.splitlines()[-1])
    assert list(ended) == list(names)
    for name, (wrong, printed) in ended.items():
        assert not wrong, f"{name}: {wrong}\n{ran.stderr}"
        assert printed.strip(), name
    assert {path: path.stat().st_mtime_ns for path in PUBLISHED} == before
    assert set(FOLDER.iterdir()) - {FOLDER / "__pycache__"} == beside
    assert list(tmp_path.glob("bridle-toy-*")) == [], "what a toy run wrote is thrown away"


def test_what_is_only_imported_runs_nothing():
    assert not any(map(has_main, MODULES))


def test_the_parts_of_peers_are_there():
    peers = script("benchmarks/peers.py")
    for module, function, _ in peers.PARTS.values():
        tree = ast.parse((FOLDER / "parts" / f"{module}.py").read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
