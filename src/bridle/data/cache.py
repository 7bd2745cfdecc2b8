"""Where raw files are kept, and how one gets there: downloaded beside its place, verified, and moved there in one step."""

from __future__ import annotations

import errno
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bridle import storage
from bridle.core import InputError

WORK = ".fetch-"
"""How the names of folders begin in which a download is under way."""


def matches(path: Path, size: int, sha256: str) -> bool:
    """Whether the file is there and is the one with this size and hash."""
    try:
        return path.stat().st_size == size and storage.sha256(path) == sha256
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise InputError(f"cannot read {path}: {storage.reason(error)}") from None


@contextmanager
def workspace(root: Path) -> Iterator[Path]:
    """A folder inside the cache for a download under way: on the same disk, so that the last step is a rename; gone afterwards."""
    folder: str | None = None
    try:
        try:
            root.mkdir(parents=True, exist_ok=True)
            _sweep(root)
            folder = tempfile.mkdtemp(prefix=WORK, dir=root)
        except OSError as error:
            raise unwritable(root, error) from None
        yield Path(folder)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def keep(file: Path, place: Path) -> None:
    """Move a finished, verified file to its place: on disk before it has its name, and never seen half-written."""
    try:
        storage.settle(file, place)
    except OSError as error:
        raise unwritable(place.parent, error) from None


def unwritable(root: Path, error: OSError) -> InputError:
    """The error for a cache that does not take a file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(f"no space left in {root}: make room, or set BRIDLE_DATA to a folder on another disk; nothing was kept")
    return InputError(f"cannot write to {root} ({storage.reason(error)}): set BRIDLE_DATA to a folder that can be written")


def _sweep(root: Path) -> None:
    """Remove what a killed process left long ago; one that is still downloading keeps its folder."""
    for left in root.glob(WORK + "*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > storage.ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
