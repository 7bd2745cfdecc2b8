"""A benchmark at toy size: ``--toy`` runs it once, small, and writes to a folder that is thrown away; a test does so with every one."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

TOY = "--toy" in sys.argv
if TOY:
    sys.argv.remove("--toy")


def size(full: T, toy: T) -> T:
    """How large something is: as it is measured, or just large enough to run."""
    return toy if TOY else full


def target(path: Path) -> Path:
    """Where results go: `path` itself, or at toy size a copy of it that nobody keeps."""
    if not TOY:
        return path
    folder = Path(tempfile.mkdtemp(prefix="bridle-toy-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = folder / path.name
    if path.is_file():
        shutil.copy(path, place)
    return place
