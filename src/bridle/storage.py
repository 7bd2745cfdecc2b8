"""Files that are written whole, so that a reader sees the new one or the old one, never a part of it; and the folder of the cache."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bridle.core import InputError


def named(path: object) -> str:
    """The path of a file as text."""
    try:
        return os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"path must be the path of a file, not {path!r}") from None


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `path` at the end of the block; where the block fails, `path` stays as it was.

    >>> from pathlib import Path
    >>> with replacing("notes.txt") as file:
    ...     size = file.write(b"all or nothing")
    >>> Path("notes.txt").read_text()
    'all or nothing'
    """
    name = named(path)
    try:
        target = os.path.realpath(name)  # a link stays a link
        temporary = os.path.join(os.path.dirname(target), f".bridle-{secrets.token_hex(8)}.tmp")
        file = open(temporary, "xb")  # noqa: SIM115  (closed below; opened here to tell what is wrong with the path from what fails later)
    except (OSError, ValueError) as problem:
        raise InputError(f"cannot write {name}: {getattr(problem, 'strerror', None) or problem}") from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as problem:
        raise InputError(f"cannot write {name}: {problem.strerror or problem}") from None
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def cache_folder() -> Path:
    """The cache: the folder that the environment variable BRIDLE_DATA names, else bridle's own in the user's cache folder."""
    own = os.environ.get("BRIDLE_DATA")
    if own:
        return Path(own).expanduser()
    try:
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return (Path(local) if local else Path.home() / "AppData" / "Local") / "bridle" / "Cache"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "bridle"
        base = os.environ.get("XDG_CACHE_HOME", "")
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "bridle"
    except RuntimeError:
        raise InputError("there is no home folder to keep data in: set BRIDLE_DATA to a folder") from None
