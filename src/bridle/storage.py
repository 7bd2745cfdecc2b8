"""Files that are written whole and read whole: a reader sees the new one or the old one, or hears that it is damaged; the cache folder.

Writing (`replacing`): a temporary file beside the target, with the target's mode, synced, renamed over it, and the folder synced, so that
what has returned survives a crash of the process and, where the system's sync is true, of the machine. What a killed process leaves behind
is swept by the next (`sweep`). Only regular files are replaced; a link stays a link.

Reading (`read_whole`, `unpack`, `parse`, `check`): no more than a file may have, nothing compressed, and one digest over all of it. The
digest tells damage, not malice: whoever can write the file can write its digest.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import secrets
import socket
import stat
import sys
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from bridle.core import InputError

if sys.platform == "darwin":
    import fcntl

Facts: TypeAlias = dict[str, Any]
"""What can be JSON, under names."""

StrPath: TypeAlias = str | os.PathLike[str]
"""The path of a file as a caller gives it."""

TEMPORARY = re.compile(r"\.bridle-([0-9a-f]{12})-(\d+)-(\d+)-[0-9a-f]{16}\.tmp")
"""The name of a temporary file: where its process runs, its number and when it began."""

ABANDONED = 24 * 3600.0
"""Seconds after which an untouched temporary file is taken to be left behind, where nobody here can tell whether its process lives."""

SWEPT_EVERY = 60.0
"""Seconds for which a folder that was swept is not looked through again by this process."""

LARGEST = 1 << 30
"""The most bytes of a file that are read into memory."""

LONGEST = 10_000
"""The most bytes that an array's description may have."""

UNSOUND_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""What comes of reading a zip archive that is damaged, cut off, packed in a way nobody knows here, or locked by a password."""

NO_SYNC = (errno.EACCES, errno.EPERM, errno.EISDIR, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
"""What a system answers that does not sync folders, or not this one."""

_swept: dict[str, float] = {}  # folder -> when, by the monotonic clock


class Disk:
    """Whatever changes a file goes through these names, so that a test can let each of them fail, or be the last thing a process does."""

    @staticmethod
    def open(path: StrPath, flags: int, mode: int = 0o666) -> int:
        return os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), mode)

    @staticmethod
    def write(handle: int, data: bytes | memoryview) -> int:
        return os.write(handle, data)

    @staticmethod
    def sync(handle: int) -> None:
        if sys.platform == "darwin":
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # there, fsync leaves it in the drive's own memory
        else:
            os.fsync(handle)

    @staticmethod
    def sync_data(handle: int) -> None:
        """Sync a file whose size does not change."""
        if sys.platform == "linux":
            os.fdatasync(handle)
        else:
            Disk.sync(handle)

    @staticmethod
    def replace(source: StrPath, target: StrPath) -> None:
        os.replace(source, target)

    @staticmethod
    def remove(path: StrPath) -> None:
        os.remove(path)


class _Written(io.FileIO):
    """A file whose bytes go through `Disk.write`."""

    def write(self, data: object) -> int:
        return Disk.write(self.fileno(), data)  # type: ignore[arg-type]


def named(path: object) -> str:
    """The path of a file as text."""
    try:
        return os.fsdecode(path)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"path must be the path of a file, not {path!r}") from None


def reason(problem: BaseException) -> str:
    """What went wrong with a file, in one line."""
    return getattr(problem, "strerror", None) or " ".join(str(problem).split()) or type(problem).__name__


# --- writing -----------------------------------------------------------------------------------------------------------------------------


@contextmanager
def replacing(path: StrPath) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `path` at the end of the block; where the block fails, `path` stays as it was.

    >>> from pathlib import Path
    >>> with replacing("notes.txt") as file:
    ...     size = file.write(b"all or nothing")
    >>> Path("notes.txt").read_text()
    'all or nothing'
    """
    name, temporary, moving = named(path), None, False
    try:
        try:
            target = os.path.realpath(name)  # a link stays a link
        except ValueError as problem:  # what no path can have inside
            raise InputError(f"cannot write {name}: {problem}") from None
        before, folder = _standing(target, name), os.path.dirname(target)
        _sweep_now_and_then(folder)
        temporary = os.path.join(folder, _temporary_name())
        handle = Disk.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if before is None else 0o600)
        with io.BufferedWriter(_Written(handle, "wb")) as file:
            if before is not None:
                take_over(handle, before)
            yield file
            file.flush()
            Disk.sync(handle)
        moving = True
        Disk.replace(temporary, target)
        sync_folder(folder)
        temporary = None
    except OSError as problem:
        moved = moving and temporary is not None and not os.path.lexists(temporary)
        said = "; the new file is in its place, but may not be on the disk yet" if moved else ""
        raise InputError(f"cannot write {name}: {reason(problem)}{said}") from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                Disk.remove(temporary)


def _standing(target: str, name: str) -> os.stat_result | None:
    """The file that stands there; None where there is none. What is not a regular file is refused."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"cannot write {name}: it is {_kind(found)}, not a file that can be replaced")
    return found


def _kind(found: os.stat_result) -> str:
    """What is there, in words."""
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFREG: "a file"}
    return kinds.get(stat.S_IFMT(found.st_mode), "a device")


def create(path: str, data: bytes) -> None:
    """Write a new file whole: never seen half-written. One that stands there by then stays as it is."""
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, _temporary_name())
    try:
        try:
            handle = Disk.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with io.BufferedWriter(_Written(handle, "wb")) as file:
                file.write(data)
                file.flush()
                Disk.sync(handle)
            with suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                Disk.remove(temporary)
        sync_folder(folder)
    except OSError as problem:
        raise InputError(f"cannot write {path}: {reason(problem)}") from None


def real(name: str) -> str:
    """The path behind all links."""
    try:
        return os.path.realpath(name)
    except ValueError as problem:  # what no path can have inside
        raise InputError(f"cannot read {name}: {problem}") from None


def refuse_other_kinds(name: str) -> None:
    """One error for what is not a regular file, or not there."""
    try:
        found = os.stat(name)
    except (OSError, ValueError) as problem:
        raise InputError(f"cannot read {name}: {reason(problem)}") from None
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"cannot read {name}: it is {_kind(found)}, not a file")


def take_over(handle: int, before: os.stat_result) -> None:
    """Give a new file the owner and the mode of the one that it replaces or belongs to; never a right that somebody did not have before."""
    if sys.platform == "win32":
        return
    mode, now = stat.S_IMODE(before.st_mode), os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except OSError:  # it belongs to somebody else: its group and its set-user bits are not ours to give
            mode &= ~0o7070
    os.fchmod(handle, mode)


def sync_folder(folder: StrPath) -> None:
    """Make sure that a folder's names are on the disk too, where folders can be synced."""
    try:
        handle = Disk.open(folder, os.O_RDONLY)
        try:
            Disk.sync(handle)
        finally:
            os.close(handle)
    except OSError as problem:
        if problem.errno not in NO_SYNC:
            raise


def settle(file: StrPath, place: StrPath) -> None:
    """Move a finished file to its place: on the disk before it has its name, and never seen half-written."""
    handle = Disk.open(file, os.O_RDWR)
    try:
        Disk.sync(handle)
    finally:
        os.close(handle)
    Disk.replace(file, place)
    sync_folder(os.path.dirname(place) or ".")


# --- what killed processes leave behind ---------------------------------------------------------------------------------------------------


def sweep(folder: StrPath) -> None:
    """Remove the temporary files of processes that are dead.

    Whether a process lives is known for those of this machine since it was started. Others, of another machine or container that shares
    the folder, or from before a restart, must have been left untouched for a day.
    """
    with suppress(OSError):
        for item in list(os.scandir(folder)):
            if (made := TEMPORARY.fullmatch(item.name)) and _left_behind(item, made):
                with suppress(OSError):
                    Disk.remove(item.path)


def _sweep_now_and_then(folder: str) -> None:
    now = time.monotonic()
    if now - _swept.get(folder, -SWEPT_EVERY) >= SWEPT_EVERY:
        _swept[folder] = now
        sweep(folder)


def _left_behind(item: os.DirEntry[str], made: re.Match[str]) -> bool:
    where, process, began = made.groups()
    if where == _place():
        return not _lives(int(process), int(began))
    return time.time() - item.stat(follow_symlinks=False).st_mtime > ABANDONED


def _temporary_name() -> str:
    process = os.getpid()
    return f".bridle-{_place()}-{process}-{_began(process)}-{secrets.token_hex(8)}.tmp"


def _place() -> str:
    """Where process numbers mean what they mean here: the machine, since it was started, and the container."""
    if sys.platform == "win32":
        return _hashed("")  # os.kill would end the process it is asked about
    return _hashed(_container())


def _container() -> str:
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


@cache
def _hashed(container: str) -> str:
    boot = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    return hashlib.sha256("\0".join((socket.gethostname(), boot, container)).encode()).hexdigest()[:12]


def _lives(process: int, began: int) -> bool:
    """Whether the process with this number that began then is still there."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # somebody else's
    return _began(process) in (began, 0)


def _began(process: int) -> int:
    """When a process began, in the system's ticks; 0 where that cannot be known, -1 where it is dead and only waited for."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(errors="replace")
        fields = text.rpartition(")")[2].split()
        return -1 if fields[0] in "ZX" else int(fields[19])
    except (OSError, ValueError, IndexError):
        return 0


# --- reading and digests ------------------------------------------------------------------------------------------------------------------


def read_whole(path: StrPath, most: int = LARGEST) -> bytes:
    """The bytes of a regular file of at most so many; anything else is one error, before a byte of it is read."""
    name = named(path)
    try:
        # A pipe must not keep anybody waiting for its other end.
        handle = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"cannot read {name}: it is {_kind(found)}, not a file")
            if found.st_size > most:
                raise InputError(f"cannot read {name}: it has {found.st_size:,} bytes, and at most {most:,} are read")
            with open(handle, "rb", closefd=False) as file:
                data = file.read(found.st_size)
        finally:
            os.close(handle)
    except InputError:
        raise
    except (OSError, ValueError) as problem:
        raise InputError(f"cannot read {name}: {reason(problem)}") from None
    _sweep_now_and_then(os.path.dirname(os.path.realpath(name)))
    return data


def unpack(data: bytes) -> dict[str, NDArray[np.generic]]:
    """The arrays of an `.npz` as `numpy.savez` writes it, of numbers and text; ValueError for any other bytes.

    Nothing in it is compressed, so that it never takes more memory than the file has bytes, whatever sizes it declares.
    """
    arrays: dict[str, NDArray[np.generic]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED for member in members) or sum(each.file_size for each in members) > len(data):
                raise ValueError("it is compressed, or declares more than it holds")
            for member in members:
                name = member.filename.removesuffix(".npy")
                if name == member.filename or name in arrays:
                    raise ValueError(f"it holds {member.filename!r}, or holds it twice")
                arrays[name] = _array(archive.read(member))
    except (ValueError, MemoryError):
        raise
    except Exception as problem:  # bytes that are no archive can make the reader fail in any way
        raise ValueError(f"it is not an archive: {problem}") from None
    return arrays


def _array(data: bytes) -> NDArray[np.generic]:
    """The array of one member; its declared size must be the one it has."""
    start = 10 + int.from_bytes(data[8:10], "little") if data[6:7] == b"\1" else 12 + int.from_bytes(data[8:12], "little")
    shape, by_columns, kind = _described(data[: min(start, LONGEST)])
    count = prod(shape)
    if start + count * kind.itemsize != len(data) or count < 0:
        raise ValueError("it has another size than it declares")
    values = np.frombuffer(data, kind, count, start) if count else np.empty(0, kind)
    return values.reshape(shape, order="F" if by_columns else "C")


@lru_cache(maxsize=256)  # members are alike
def _described(head: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is by columns, and type of an array whose member begins like this."""
    stream = io.BytesIO(head)
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, kind = read_header(stream)
    if kind.kind not in "fiubcU" or version > (2, 0):
        raise ValueError(f"it holds {kind}")
    return shape, by_columns, kind


def parse(text: str | bytes) -> object:
    """JSON, or one ValueError: also where it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def digest(facts: Mapping[str, object], arrays: Mapping[str, NDArray[np.generic]] | None = None) -> str:
    """The SHA-256 over facts that can be JSON, and over arrays: their names, types, shapes and bytes; in hexadecimal.

    >>> digest({"a": 1.5})[:12], digest({"a": 1.5}, {"x": np.zeros(2)})[:12]
    ('3b1cb40b2293', '824930e0e324')
    """
    try:
        total = hashlib.sha256(canonical(facts).encode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    for name in sorted(arrays or {}):
        value = np.asarray(arrays[name])  # type: ignore[index]
        total.update(f"\n{canonical([name, value.dtype.str, list(value.shape)])}\n".encode())
        total.update(value.tobytes())
    return total.hexdigest()


def canonical(value: object, finite: bool = False) -> str:
    """The one JSON text of a value; `finite` refuses numbers that JSON does not have."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=not finite)


def sealed(facts: Mapping[str, object], arrays: Mapping[str, NDArray[np.generic]] | None = None) -> str:
    """Facts as JSON on one line, with a digest over them as they will be read, and over arrays that are kept with them."""
    text = json.dumps(facts)
    whole = cast("dict[str, object]", json.loads(text))  # names that are numbers become text
    return json.dumps({**whole, "digest": digest(whole, arrays)})


def check(facts: Facts, arrays: Mapping[str, NDArray[np.generic]] | None = None) -> None:
    """Take the digest out of facts; ValueError if it is not theirs."""
    if facts.pop("digest", None) != digest(facts, arrays):
        raise ValueError("it is not what was written: its digest does not fit")


# --- hashes and the cache ----------------------------------------------------------------------------------------------------------------


def sha256(path: StrPath) -> str:
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
