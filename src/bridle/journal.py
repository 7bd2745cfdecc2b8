"""A few facts in a file with one holder at a time, where every change is on the disk before the call that made it returns.

The file is one line of JSON, the facts, with a digest; and, while it is held, slots of a fixed size behind it, which are there from the
beginning. A change of those facts that change often is written into the next free slot, with a checksum, and synced: one sync a change.
When the slots are used up, or another fact changes, the file is replaced as a whole. A reader takes the facts with the last slot's numbers:

    a slot of zeros            is free
    a slot that ends in zero   was being written when the process died: its call had not returned, so it does not count
    any other                  must be what was written, bit for bit, or the file is damaged

A holder has the system's lock on a file beside it, named like it with `.lock`, which the system lets go when the process ends, however it
ends. Where locks fail, or somebody removed that file, there is a second line: a new holder replaces the file, and an old one looks before
and after each write whether the file is still the one that it has open; if not, its change is refused, and so is every later one. The new
holder then reads the old file once more, so that no change is lost that was acknowledged in between.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any, Self, TypeAlias, cast
from weakref import WeakSet

from bridle import showing, storage
from bridle.core import InputError
from bridle.storage import Disk

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

SLOT, SLOTS, SECTOR = 128, 64, 512
"""Bytes of a slot, and how many there are. They begin where a disk's sector does, so that none lies in two sectors."""

LARGEST = 1 << 24
"""The most bytes of such a file that are read."""

PAUSES = (0.001, 0.01, 0.03)
"""Seconds between attempts to have a lock: who only looks whether a file is held has it for a moment."""

Facts: TypeAlias = dict[str, Any]
"""What can be JSON, under names."""


# --- the file -------------------------------------------------------------------------------------------------------------------------


def encode(facts: Mapping[str, object], kind: str, changing: Sequence[str] = (), slots: int = 0) -> bytes:
    """Facts as a file; with slots, for the facts named in `changing`: "a.b" is b inside a."""
    head: Facts = {"library": "bridle", "kind": kind, "schema": 1, **facts}
    if slots:
        head |= {"changing": list(changing), "slots": slots, "writing": secrets.token_hex(8)}
    line = storage.sealed(head).encode()
    return line + b"\n" if not slots else line.ljust(-(-(len(line) + 1) // SECTOR) * SECTOR - 1) + b"\n" + bytes(slots * SLOT)


def decode(data: bytes, kind: str, name: str) -> tuple[Facts, bool]:
    """The facts of a file with those of its last slot, and whether it had a digest; one error that names the file where it has none."""
    line, _, rest = data.partition(b"\n")
    try:
        try:
            head = storage.parse(line)
        except ValueError:
            head, rest = storage.parse(data), b""  # earlier versions wrote several lines
        facts = cast(Facts, head)
        fine = facts["library"] == "bridle" and facts["kind"] == kind and facts["schema"] == 1
    except (ValueError, KeyError, TypeError):
        fine = False
    if not fine:
        raise InputError(f"cannot read {name}: it does not hold a {kind} that this version of bridle knows")
    facts = dict(facts)
    try:
        seal = facts.get("digest")
        checked = storage.checked(facts)
        slots, changing = facts.pop("slots", 0), facts.pop("changing", ())
        if len(rest) != slots * SLOT or (slots and not checked):
            raise ValueError("it is truncated, or longer than it was")
        last = _last_slot(rest, str(seal))
        for place, number in zip(changing, last or (), strict=last is not None):
            _inside(facts, place)[place.rpartition(".")[2]] = number
    except (ValueError, TypeError, KeyError) as wrong:
        raise InputError(f"cannot load {name}: {wrong}") from None
    for extra in ("library", "kind", "schema", "writing"):
        facts.pop(extra, None)
    return facts, checked


def _inside(facts: Facts, place: str) -> Facts:
    for part in place.split(".")[:-1]:
        facts[part] = dict(facts[part])  # not what the caller has
        facts = facts[part]
    return facts


def _slot(numbers: Sequence[object], index: int, seal: str) -> bytes:
    """One change; the seal of the file and the place of the slot are in its checksum, so that it means nothing elsewhere."""
    text = json.dumps(numbers, separators=(",", ":"), allow_nan=False)
    checksum = hashlib.sha256(f"{seal} {index} {text}".encode()).hexdigest()[:16]
    slot = f"{checksum} {text}".encode().ljust(SLOT - 1) + b"\n"
    if len(slot) != SLOT:
        raise ValueError(f"{text} is too long for a slot")
    return slot


def _last_slot(data: bytes, seal: str) -> list[object] | None:
    """The numbers of the last change; ValueError where the slots are not what was written."""
    last: list[object] | None = None
    for index in range(len(data) // SLOT):
        slot = data[index * SLOT : (index + 1) * SLOT]
        if slot[-1] == 0:  # free, or never finished: then everything behind it is free
            if data[(index + 1) * SLOT :].strip(b"\0"):
                raise ValueError("it is not what was written: there is something behind its last entry")
            break
        numbers = storage.parse(slot[17:])
        if not isinstance(numbers, list) or _slot(numbers, index, seal) != slot:
            raise ValueError("it is not what was written: an entry does not fit its checksum")
        last = numbers
    return last


# --- the holder -------------------------------------------------------------------------------------------------------------------------


class Journal:
    """The facts in a file, held by this process until `close`; `facts` are those in the file, and `check` refuses what makes no sense.

    Where there is no file, `fresh` gives the facts of a new one.
    """

    _file = _lock = -1
    unchecked = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        kind: str,
        changing: Sequence[str],
        fresh: Callable[[], Mapping[str, object]] | None,
        check: Callable[[Facts], object],
    ) -> None:
        self.name, self.kind, self.changing = storage.named(path), kind, tuple(changing)
        self._process, self._ended, self._torn, self._next, self._seal = os.getpid(), "", False, 0, ""
        try:
            self.path = os.path.realpath(self.name)
        except ValueError as problem:
            raise InputError(f"cannot read {self.name}: {problem}") from None
        self._lock = take_lock(self.path, self.name, kind)
        try:
            self.facts = self._begin(fresh, check)
        except BaseException as problem:
            self.close()
            if isinstance(problem, OSError):
                raise InputError(f"cannot open {self.name}: {storage.reason(problem)}") from None
            raise
        _held.add(self)

    def _begin(self, fresh: Callable[[], Mapping[str, object]] | None, check: Callable[[Facts], object]) -> Facts:
        if fresh is not None and not os.path.lexists(self.path):
            facts = dict(fresh())
            check(facts)
            self._replace(facts)
            return facts
        storage.read_whole(self.path, LARGEST)  # or say why it cannot be read
        before: bytes | None = None
        with open(self.path, "rb", buffering=0) as old:
            while (now := old.readall()) != before:
                before = now
                old.seek(0)
                facts, checked = decode(before, self.kind, self.name)
                check(facts)
                if not checked:
                    self.unchecked = True
                    storage.warn_unchecked(self.name)
                self._replace(facts)  # from now on an old holder, if there is one, sees that it has lost the file
        return facts

    def put(self, facts: Facts) -> None:
        """Make these the facts; they are on the disk when this returns. Where it fails, the next call writes the whole file anew."""
        self.check()
        whole = self._torn or self._next == SLOTS or self._still(facts) != self._still(self.facts)
        self._torn = True
        try:
            self._fence()
            if whole:
                self._replace(facts)
            else:
                self._append([_inside(dict(facts), place)[place.rpartition(".")[2]] for place in self.changing])
                self._fence()
        except OSError as problem:
            raise InputError(f"cannot write {self.name}: {storage.reason(problem)}") from None
        self.facts, self._torn = facts, False

    @property
    def behind(self) -> bool:
        """Whether a change did not get through, so that the file may have it or not."""
        return self._torn and not self._ended

    def check(self) -> None:
        """Refuse where this process does not hold the file."""
        if self._process != os.getpid():
            self._ended = f"it was opened by process {self._process}, and this is process {os.getpid()}: each must open a file of its own"
        if self._ended:
            raise InputError(f"cannot write {self.name}: {self._ended}")

    def close(self) -> None:
        """Let go of the file, for others to hold; where that is interrupted, to be called again."""
        self._ended = self._ended or "it is closed"
        if self._lock >= 0 and self._process == os.getpid():
            clear_lock(self.path, self._lock)
        file, self._file = self._file, -1  # between this and the closing no signal is noticed: neither is left open, or closed twice
        try:
            if file >= 0:
                os.close(file)
        except OSError:  # what was acknowledged is on the disk
            pass
        lock, self._lock = self._lock, -1
        try:
            if lock >= 0:
                os.close(lock)
        except OSError:
            pass

    def __del__(self) -> None:
        if self._lock >= 0:
            self.close()

    def _still(self, facts: Facts) -> Facts:
        """The facts that slots do not hold."""
        facts = dict(facts)
        for place in self.changing:
            _inside(facts, place).pop(place.rpartition(".")[2])
        return facts

    def _append(self, numbers: Sequence[object]) -> None:
        data, written = _slot(numbers, self._next, self._seal), 0
        os.lseek(self._file, -(SLOTS - self._next) * SLOT, os.SEEK_END)
        while written < SLOT:
            written += Disk.write(self._file, data[written:])
        Disk.sync_data(self._file)
        self._next += 1

    def _replace(self, facts: Facts) -> None:
        data, new, done = encode(facts, self.kind, self.changing, SLOTS), -1, False
        if sys.platform == "win32" and self._file >= 0:  # where an open file cannot be replaced
            os.close(self._file)
            self._file = -1
        try:
            with storage.replacing(self.path) as file:
                file.write(data)
                new = os.dup(file.fileno()) if sys.platform != "win32" else -1
            done = True
        finally:
            if sys.platform == "win32":
                with suppress(OSError):
                    new = Disk.open(self.path, os.O_RDWR)
            with suppress(OSError):
                done = done or self._stands(new)  # something may have failed after it had its name
            if new >= 0 and done:
                new, self._file = self._file, new
                self._seal, self._next = cast(Facts, storage.parse(data.partition(b"\n")[0]))["digest"], 0
            if new >= 0:
                os.close(new)

    def _stands(self, handle: int) -> bool:
        """Whether this open file is the one that stands in its place."""
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self.path))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _fence(self) -> None:
        """Refuse, now and for ever, where the file is no longer the one that this holder has open."""
        if not self._stands(self._file):
            self._ended = "another process has taken it over, or it was moved or removed, while this one held it; open it again to go on"
            self.check()


class Keeping:
    """How an object is kept in files: copies of it that are saved and loaded, and the one that it is opened on, if any.

    `facts` gives its facts as they are; those named in `changing` change often.
    """

    def __init__(self, kind: str, changing: Sequence[str], facts: Callable[[], Facts]) -> None:
        self.kind, self.changing, self._facts = kind, changing, facts
        self.unchecked = False
        self.lock = RLock()
        """Who reads and changes the facts in several steps has it; closing waits for it."""
        self.journal: Journal | None = None
        self._left: tuple[str, bytes] | None = None  # where it was last loaded from or saved to, and what was there then

    def open(
        self, path: str | os.PathLike[str], fresh: Callable[[], Mapping[str, object]] | None, check: Callable[[Facts], object]
    ) -> None:
        """Hold the file at `path` from now on."""
        self.journal = Journal(path, self.kind, self.changing, fresh, check)
        self.unchecked = self.journal.unchecked

    def put(self) -> None:
        """Bring the file up to date, where there is one; it is on the disk when this returns."""
        if self.journal is not None:
            self.journal.put(self._facts())

    def close(self) -> None:
        """Let go of the file, and bring it up to date before where a change was interrupted."""
        with self.lock:
            if self.journal is not None:
                if self.journal.behind:
                    with suppress(InputError):
                        self.put()
                self.journal.close()

    def load(self, path: str | os.PathLike[str], take: Callable[[Facts], object]) -> None:
        """Take the facts of a copy."""
        name, place = storage.named(path), os.path.realpath(storage.named(path))
        refuse_held(path, f"cannot load {name}")
        data = storage.read_whole(path, LARGEST)
        facts, checked = decode(data, self.kind, name)
        take(facts)
        if not checked:
            storage.warn_unchecked(name)
        self.unchecked, self._left = not checked, (place, data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy, unless somebody else holds the file or has written it since this object was there."""
        name = storage.named(path)
        place = os.path.realpath(name)
        if self.journal is not None and self.journal.path == place:
            self.put()
            return
        refuse_held(path, f"cannot write {name}")
        if self._left is not None and self._left[0] == place and os.path.isfile(place) and storage.read_whole(place) != self._left[1]:
            raise InputError(
                f"cannot write {name}: another {self.kind} was saved there since this one was, and what it has paid would be lost; "
                "`open` the file, which lets in one holder at a time"
            )
        data = encode(self._facts(), self.kind)
        with storage.replacing(path) as file:
            file.write(data)
        self._left = place, data

    def refuse_copies(self) -> None:
        """One error where this is opened on a file, which has one holder."""
        if self.journal is not None:
            raise InputError(f"a {self.kind} that is opened on a file cannot be copied or pickled: {self.journal.name} has one holder")


class Held:
    """What can be opened on a file, and holds it until it is closed, at the latest at the end of its `with`."""

    _kept: Keeping

    def __repr__(self) -> str:
        figures = {name: getattr(self, name) for name in ("budget", "rounds", "played", "spent", "left", "price") if hasattr(self, name)}
        return showing.call(type(self).__name__, **figures)

    @property
    def unchecked(self) -> bool:
        """Whether it came from a file without a digest, of which nothing could tell whether it was still what had been written."""
        return self._kept.unchecked

    def close(self) -> None:
        """Let go of the file that it was opened on, for others to hold. It can still be asked, and changes no more."""
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


_held: WeakSet[Journal] = WeakSet()


def _let_go_in_a_child() -> None:
    """A forked process has copies of what its parent holds: it lets go of them, so that they end with the parent."""
    for journal in list(_held):
        file, lock = journal._file, journal._lock
        journal._file = journal._lock = -1
        for handle in (file, lock):
            with suppress(OSError):
                os.close(handle)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_a_child)


# --- the lock ---------------------------------------------------------------------------------------------------------------------------


def refuse_held(path: str | os.PathLike[str], saying: str) -> None:
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
