"""Files that are written whole, so that a reader sees the new one or the old one, never a part of it; and the folder of the cache."""

from __future__ import annotations

import hashlib
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


def sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_folder() -> Path:
    """The cache of data: the folder that the environment variable BRIDLE_DATA names, else bridle's own in the user's cache folder."""
    own = os.environ.get("BRIDLE_DATA")
    try:
        return expanded("BRIDLE_DATA", own) if own else user_cache("bridle", "Cache")
    except RuntimeError:
        raise InputError("there is no home folder to keep data in: set BRIDLE_DATA to a folder") from None


def expanded(name: str, path: str) -> Path:
    """The path that an argument or an environment variable gives, with the home folder in place of ``~``."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"{name} must be a path: there is no home folder for {path!r}") from None


def user_cache(name: str, windows: str) -> Path:
    """A folder of bridle's own in the user's cache folder: `name` there, or `windows` in bridle's folder on Windows; RuntimeError where
    the user has no home folder.
    """
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "bridle" / windows
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / name
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / name
