"""Compiled code on disk: a folder that nobody else can write to, and in it files that are checked before they are used.

What is read back is run, so it must be what this user's bridle wrote. The folder is `bridle-code` in the user's cache folder, or the one
that the environment variable BRIDLE_COMPILED names; it has nothing to do with that of the data, which may well be shared. It is made with
mode 0700, and used only if it is no link, belongs to this user, and neither it nor a folder above it can be changed by another. A file is
used only if all that is so of the file too and its digest fits its content and its name. Where there is no such folder, or it cannot be
written to, everything is compiled in memory, and one warning in the life of a process says why.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import warnings
from contextlib import suppress
from pathlib import Path

from bridle import storage
from bridle.core import InputError, NotKeptWarning

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MARK = b"bridle code 1\n"
"""What a file begins with; its digest and its content follow."""

_told = False


class Untrusted(Exception):
    """A folder or a file that is not to be used; the message says why."""


def folder() -> Path | None:
    """The folder to keep compiled code in, made and checked; None where there is none to be trusted, which is said once."""
    try:
        wanted = named_folder()
        return None if wanted is None else trusted(wanted)
    except RuntimeError:
        tell("there is no home folder")
    except (Untrusted, InputError, OSError, ValueError) as problem:
        tell(problem)
    return None


def named_folder() -> Path | None:
    """The folder that is meant; None where BRIDLE_COMPILED is 0, which means that nothing is to be kept."""
    own = os.environ.get("BRIDLE_COMPILED")
    if own == "0":
        return None
    return storage.expanded("BRIDLE_COMPILED", own) if own else storage.user_cache("bridle-code", "Code")


def trusted(wanted: Path) -> Path:
    """The folder without links on the way to it, made where it was not there; Untrusted where another could change it."""
    wanted = Path(os.path.abspath(wanted))
    for each in (*reversed(wanted.parents), wanted):
        if not os.path.isdir(each):
            with suppress(FileExistsError):  # another process was faster, or it is no folder
                os.mkdir(each, 0o700)
    if not stat.S_ISDIR(os.lstat(wanted).st_mode):
        raise Untrusted(f"{wanted} is a link or a file, not a folder")
    place = Path(os.path.realpath(wanted))
    if not _has_owners():
        return place
    _demand_own(place, os.lstat(place))
    for above in place.parents:
        status = os.lstat(above)
        if status.st_uid not in (0, os.getuid()):
            raise Untrusted(f"the folder {above} belongs to another user")
        if status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX and not _only_own_group(status):
            raise Untrusted(f"other users can write to the folder {above}")
    if not os.access(place, os.W_OK | os.X_OK):
        raise Untrusted(f"{place} cannot be written to")
    return place


def read(place: Path, name: str) -> bytes | None:
    """What was kept under this name; None where there is nothing, or nothing to be trusted."""
    path = place / name
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    except OSError as problem:
        tell(problem)
        return None
    try:
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise Untrusted(f"{path} is not a file")
            if _has_owners():
                _demand_own(path, status)
            data = file.read()
    except (Untrusted, OSError) as problem:
        tell(problem)
        return None
    start = MARK + _digest(name, data[len(MARK) + 32 :])
    return data[len(start) :] if data.startswith(start) else None  # what is broken is written anew


def write(place: Path, name: str, content: bytes) -> None:
    """Keep something under this name; where that fails it is said once, and nothing is lost but time."""
    try:
        with storage.replacing(place / name) as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)
            file.write(MARK + _digest(name, content) + content)
    except (InputError, OSError) as problem:
        tell(problem)


def tell(why: object) -> None:
    """Say, once in the life of a process, why compiled code is not kept."""
    global _told
    if not _told:
        _told = True
        text = " ".join(str(why).split())
        warnings.warn(NotKeptWarning(f"compiled code is not kept on disk: {text} (BRIDLE_COMPILED can name another folder)"), stacklevel=2)


def _digest(name: str, content: bytes) -> bytes:
    """What tells that a file is whole and has the name it was written under."""
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def _has_owners() -> bool:
    """Whether the system has owners and modes; on Windows the rights of the user's own folders are all there is."""
    return sys.platform != "win32"


def _demand_own(path: Path, status: os.stat_result) -> None:
    """Untrusted unless it belongs to this user and nobody else can write to it."""
    if status.st_uid != os.getuid():
        raise Untrusted(f"{path} belongs to another user")
    if status.st_mode & OTHERS_WRITE:
        raise Untrusted(f"other users can write to {path}")


def _only_own_group(status: os.stat_result) -> bool:
    """Whether it is a group that can write, and that is this user's own: of the same name, with no other members."""
    if status.st_mode & stat.S_IWOTH:
        return False
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    return user.pw_gid == group.gr_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
