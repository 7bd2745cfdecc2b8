"""`import bridle` loads nothing, and every public name is there when it is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import bridle


def declared() -> dict[str, str]:
    """The public names that type checkers see, with the modules they come from."""
    body = ast.parse(Path(bridle.__file__).read_text(encoding="utf-8")).body
    (block,) = [node for node in body if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: node.module or "" for node in imports for alias in node.names}


def test_what_is_loaded_is_what_type_checkers_see():
    modules = {name: home for name, home in declared().items() if home == "bridle"}
    assert set(modules) == {"adversaries", "rules"}
    assert declared() == {**bridle._HOMES, **modules}
    assert sorted(bridle.__all__) == sorted(bridle._HOMES)


@pytest.mark.parametrize("name", bridle.__all__)
def test_every_name_is_there(name):
    assert getattr(bridle, name) is getattr(import_module(bridle._HOMES[name]), name)


def test_importing_bridle_loads_nothing():
    code = (
        "import sys, bridle; print(*[name for name in sys.modules if name.startswith(('bridle.', 'numpy'))]); print(bridle.core.__name__)"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.splitlines() == ["", "bridle.core"]


def test_a_name_that_is_not_there_is_an_attribute_error():
    for name in ("comparison", "_nothing"):
        with pytest.raises(AttributeError, match=f"module 'bridle' has no attribute '{name}'"):
            getattr(bridle, name)
