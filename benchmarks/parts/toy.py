"""A benchmark at toy size: ``--toy`` runs it once, small, and writes to a folder that is thrown away; a test does so with every one."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from bridle.data import Data

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


def transactions() -> Data:
    """The real card transactions, or at toy size a few that are drawn in their layout."""
    if not TOY:
        from bridle import data

        return data.load("creditcard")
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
    from helpers.transactions import invented

    return invented()
