"""Who lives: locks on files beside a SQLite database, which the system lets go when a process ends, however it ends.

A store has a name of its own and a lock on `DATABASE.NAME.lock` while it is open. A session belongs to a name, and may be taken over as
soon as nobody has the lock of that name: after `kill -9` at once, without waiting for any clock. The database file itself is never
opened here, because closing it would drop SQLite's own locks on it.

`DATABASE.writing` lets one store write at a time: every store has a lock on it for as long as a commit takes. The mark of a database
(`mark`) needs that, and so does SQLite before 3.51.3, where two connections that write or checkpoint at the same instant can damage a
database. Windows has no such lock: let one process write there.
"""

from __future__ import annotations

import errno
import glob
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from weakref import WeakSet

from bridle import storage
from bridle.core import InputError
from bridle.database.rows import StoreError
from bridle.storage import Disk, StrPath, reason, take_over

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PAUSES = (0.001, 0.01, 0.03)
"""Seconds between attempts to have a lock: a process that only looks whether it is held has it for a moment."""

PATIENCE = 5.0
"""Seconds to wait for another process that writes."""


class OwnerLock:
    """The lock that says that the owner of this name lives, and the turn to write."""

    def __init__(self, database: str, owner: str) -> None:
        self._database, self._path, self._process = database, f"{database}.{owner}", os.getpid()
        self._lock = self._turn = -1
        self._lock = take_lock(self._path, f"{database} as {owner}", "name of an owner")
        _open.add(self)
        try:
            if sys.platform != "win32":
                self._turn = Disk.open(f"{database}.writing", os.O_RDWR | os.O_CREAT, 0o666)
                if os.path.exists(database) and os.fstat(self._turn).st_uid == os.geteuid():
                    take_over(self._turn, os.stat(database))  # else nobody but root could write after a command of root's
        except OSError as problem:
            self.close()
            raise StoreError(f"cannot open {database}: {database}.writing cannot be had: {reason(problem)}") from None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Be the only store that writes."""
        if self._turn < 0:
            yield
            return
        self.begin()
        try:
            yield
        finally:
            self.end()

    def try_begin(self) -> bool:
        """Begin, if no other store writes."""
        if self._turn >= 0 and sys.platform != "win32":
            try:
                fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
        return True

    def begin(self) -> None:
        """Wait until no other store writes."""
        if not self.try_begin():
            self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + PATIENCE
        while sys.platform != "win32":
            try:
                fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as problem:
                if time.monotonic() > until:
                    why = "another process writes to it, and does not stop" if isinstance(problem, BlockingIOError) else reason(problem)
                    raise StoreError(f"cannot write {self._database}: {why}") from None
            time.sleep(0.0005)

    def end(self) -> None:
        """Let others write."""
        if self._turn >= 0 and sys.platform != "win32":
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def close(self) -> None:
        """Live no longer."""
        if self._lock >= 0 and self._process == os.getpid():
            clear_lock(self._path, self._lock)
        self.drop()

    def drop(self) -> None:
        """Close the files, without a word to others."""
        lock, self._lock = self._lock, -1
        turn, self._turn = self._turn, -1
        for handle in (lock, turn):
            if handle >= 0:
                with suppress(OSError):
                    os.close(handle)


def lives(database: str, owner: str) -> bool:
    """Whether somebody has the lock of this name; one that cannot be looked at, such as another user's, counts as had."""
    try:
        refuse_held(f"{database}.{owner}", "")
    except InputError:
        return True
    return False


def sweep(database: str) -> None:
    """Remove the locks that killed processes have left behind."""
    for place in glob.glob(f"{glob.escape(database)}.*.lock"):
        path = place.removesuffix(".lock")
        with suppress(InputError):  # it is held
            handle = take_lock(path, path, "name of an owner", pauses=())
            clear_lock(path, handle)
            os.close(handle)


_open: WeakSet[OwnerLock] = WeakSet()


def _drop_in_a_child() -> None:
    """A forked process lets go of its copies, so that an owner ends with the process that is one."""
    for lock in list(_open):
        lock.drop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_in_a_child)


# --- the lock ------------------------------------------------------------------------------------------------------------------------


def refuse_held(path: StrPath, saying: str) -> None:
    """One error where somebody holds the file at `path`, or where nobody can tell: its lock may be a file of another user."""
    place, handle, free = _lock_name(os.path.realpath(storage.named(path))), -1, False
    try:
        try:
            handle = os.open(place, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        except PermissionError:  # to read it is enough to see whether it is held
            handle = os.open(place, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        free = _locked(handle)
        holder = "" if free else f"{_holder(handle)} holds it"
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return  # nobody ever held it, or nobody does
    except OSError as problem:
        holder = f"its lock {place} cannot be had ({storage.reason(problem)}), so that somebody may hold it"
    finally:
        if handle >= 0:
            os.close(handle)
    if not free:
        raise InputError(f"{saying}: {holder}")


def take_lock(path: str, name: str, kind: str, pauses: Sequence[float] = PAUSES) -> int:
    """The lock that says who holds a file, as an open file; one error that says who, where it is somebody else after these pauses."""
    place = _lock_name(path)
    while True:
        handle = -1
        try:
            handle = Disk.open(place, os.O_RDWR | os.O_CREAT, 0o666)
            if not _locked(handle, pauses):
                raise InputError(f"cannot open {name}: {_holder(handle)} holds it, and a {kind} has one holder at a time")
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(place)):  # its last holder may have removed it just before
                    os.ftruncate(handle, 0)
                    since = time.strftime("%Y-%m-%d %H:%M:%S")
                    Disk.write(handle, f"process {os.getpid()} on {socket.gethostname()}, since {since},".encode())
                    return handle
            os.close(handle)
        except BaseException as problem:
            if handle >= 0:
                os.close(handle)
            if isinstance(problem, OSError):
                raise InputError(f"cannot open {name}: its lock {place} cannot be had: {storage.reason(problem)}") from None
            raise


def clear_lock(path: str, handle: int) -> None:
    """Remove the file of a lock that this process has and is about to close."""
    if sys.platform != "win32":
        with suppress(OSError):
            if os.path.samestat(os.fstat(handle), os.stat(_lock_name(path))):
                Disk.remove(_lock_name(path))  # while it is locked: who opens it now sees that it is gone


def _locked(handle: int, pauses: Sequence[float] = ()) -> bool:
    """Take the system's lock on an open file, at once or after these pauses; False where somebody else has it."""
    for pause in pauses:
        if _locked(handle):
            return True
        time.sleep(pause)
    try:
        if sys.platform == "win32":
            os.lseek(handle, 1 << 20, os.SEEK_SET)  # behind the text, which others may read
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            os.lseek(handle, 0, os.SEEK_SET)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        if problem.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def _holder(handle: int) -> str:
    """Who says to have the lock."""
    with suppress(OSError):
        os.lseek(handle, 0, os.SEEK_SET)
        text = os.read(handle, 200).decode(errors="replace").strip(" ,")
        if text:
            mine = text.startswith(f"process {os.getpid()} on {socket.gethostname()},")
            return f"this process ({text})" if mine else text
    return "another process"


def _lock_name(path: str) -> str:
    return f"{path}.lock"
