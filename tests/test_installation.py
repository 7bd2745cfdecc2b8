"""What happens where the other project called `bridle` is installed beside this one: it is said, at import and on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bridle

PACKAGE = Path(bridle.__file__).parent


@pytest.fixture
def place(tmp_path):
    """A folder of installed packages with this one in it."""
    (tmp_path / "bridle").symlink_to(PACKAGE)
    (tmp_path / f"bridle_oco-{bridle.__version__}.dist-info").mkdir()
    return tmp_path


def python(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    there = {**os.environ, "PYTHONPATH": str(place)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=there, cwd=place)


@pytest.mark.slow
def test_another_bridle_in_the_same_folder_is_said(place):
    quiet = python(place, "-c", "import bridle; print(bridle.__path__[0])")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, f"{place}/bridle\n", "")
    (place / "bridle-3.1.dist-info").mkdir()
    told = python(place, "-c", "import bridle; print(bridle.policies.names()[0])")
    assert told.returncode == 0
    assert told.stdout.strip()
    assert f"another distribution called 'bridle' (bridle-3.1.dist-info) is installed in {place}" in told.stderr
    assert "pip uninstall bridle bridle-oco, then pip install bridle-oco" in told.stderr


@pytest.mark.slow
@pytest.mark.parametrize("theirs", ["horses = 1\n", ""], ids=["overwritten", "emptied"])
def test_a_package_that_is_no_longer_ours_is_one_line(tmp_path, theirs):
    """The other's installation has replaced `__init__.py`."""
    (tmp_path / "bridle").mkdir()
    for path in PACKAGE.iterdir():
        if path.name != "__init__.py":
            (tmp_path / "bridle" / path.name).symlink_to(path)
    (tmp_path / "bridle" / "__init__.py").write_text(theirs)
    for command in (["-m", "bridle", "policies"], ["-c", "from bridle.__main__ import main; main()"]):
        ran = python(tmp_path, *command)
        assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
        assert "another distribution called 'bridle' has overwritten or removed its files" in ran.stderr
