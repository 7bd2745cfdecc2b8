"""A store of results that survives a crash and that several processes, on one machine or many, may use at once.

It is a folder. Every process appends to a file of its own, one line per entry, and reads everybody's; nothing is ever changed or
deleted. So no lock is needed, also not on a network file system, and what a killed process leaves is at worst one unfinished last line.
A line is a JSON array of a checksum and an entry: ``{"key": ..., "row": {...}}``, ``{"key": ..., "comparator": {...}}``, or
``{"claim": [keys]}``, which says that a process is about to do these and others may do better to begin elsewhere.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
import zlib
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from bridle.core import InputError
from bridle.storage import Disk, StrPath, parse, sync_folder

ComparatorFacts: TypeAlias = dict[str, Any]
"""The best fixed action of a stream (`x`, None where it is long), its `cost`, its `costs` at log-spaced rounds, or `why` there is none."""

StoreEntry: TypeAlias = dict[str, Any]
"""A line of a store: a `key` with its `row` or `comparator` and the seconds `spent` on it; or a `claim`; or what the store is."""

OPENING: StoreEntry = {"store": "bridle", "schema": 1}
"""The first line of every file of a store."""


class Store:
    """The entries of a folder under their keys, those that are `wanted`; the first of several with one key counts."""

    def __init__(self, folder: StrPath, wanted: Container[str] | None = None) -> None:
        self.folder, self.wanted = Path(folder), wanted
        self.entries: dict[str, StoreEntry] = {}
        self.claimed: set[str] = set()
        """What other processes have said they are doing."""
        self._own: tuple[str, int] | None = None
        self._read: dict[str, tuple[int, int]] = {}  # how far each file has been read: bytes and lines
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise InputError(f"cannot write {self.folder}: {getattr(error, 'strerror', None) or error}") from None
        self.refresh()

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def __getitem__(self, key: str) -> StoreEntry:
        return self.entries[key]

    def refresh(self) -> list[str]:
        """Read what was written since the last time, by whichever process: the keys that are new."""
        try:
            files = sorted((item.name, item.stat().st_size) for item in os.scandir(self.folder) if item.name.endswith(".jsonl"))
        except OSError as error:
            raise InputError(f"cannot read {self.folder}: {error.strerror}") from None
        mine = self._own[0] if self._own else ""
        return [key for name, size in files if name != mine and size > self._read.get(name, (0, 0))[0] for key in self._more(name)]

    def add(self, entries: Iterable[StoreEntry]) -> None:
        """Append entries, and return when they are on the disk."""
        entries = list(entries)
        self._append(entries, durable=True)
        for entry in entries:
            self.entries.setdefault(entry["key"], entry)

    def claim(self, keys: Iterable[str]) -> None:
        """Tell other processes what this one is about to do. They may still do it: a claim is a hint, so nobody waits for the dead."""
        self._append([{"claim": list(keys)}], durable=False)

    def close(self) -> None:
        """Let go of the file; the next entry goes to a new one."""
        if self._own is not None:
            os.close(self._own[1])
            self._own = None

    def _append(self, entries: list[StoreEntry], durable: bool) -> None:
        try:
            if self._own is None:
                name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
                self._own = name, Disk.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
                sync_folder(self.folder)
                entries = [OPENING, *entries]
            data = b"".join(_line(entry) for entry in entries)
            written = Disk.write(self._own[1], data)
            if durable:
                Disk.sync(self._own[1])
        except OSError as error:
            self._abandon()
            raise InputError(f"cannot write to {self.folder}: {error.strerror}") from None
        if written < len(data):
            self._abandon()
            raise InputError(f"cannot write to {self.folder}: there is no room left")

    def _abandon(self) -> None:
        """What is in the file may end in the middle of a line, after which nothing must come."""
        if self._own is not None:
            self._read.pop(self._own[0], None)
            os.close(self._own[1])
            self._own = None

    def _more(self, name: str) -> list[str]:
        """Read the complete lines of one file from where the last reading stopped."""
        start, line = self._read.get(name, (0, 0))
        entries, size = self._complete(self.folder / name, start, line)
        new = []
        for entry in entries:
            if "claim" in entry:
                self.claimed |= set(entry["claim"])
            elif "key" in entry and entry["key"] not in self.entries and (self.wanted is None or entry["key"] in self.wanted):
                self.entries[entry["key"]] = entry
                new.append(entry["key"])
        self._read[name] = start + size, line + len(entries)
        return new

    def _complete(self, path: Path, start: int, line: int) -> tuple[list[StoreEntry], int]:
        """The entries from byte `start`, where line `line` has ended, and how many bytes they take."""
        for pause in (0.05, 0.2, 1.0, None):
            try:
                with open(path, "rb") as file:
                    file.seek(start)
                    data = file.read()
            except OSError as error:
                raise InputError(f"cannot read {path}: {error.strerror}") from None
            whole = data[: data.rfind(b"\n") + 1]  # a line without its end is being written, or will never be finished
            entries = [_entry(text) for text in whole.split(b"\n")[:-1]]
            if line == 0 and not _opens(data):
                entries = [None]
            if None not in entries:
                return [entry for entry in entries if entry is not None], len(whole)
            if pause is not None:
                time.sleep(pause)  # a network file system may show the end of what is being written before its middle
        number = line + 1 + entries.index(None)
        raise InputError(f"the store is damaged: line {number} of {path} is not an entry; move the file away to go on without it")


def _line(entry: StoreEntry) -> bytes:
    """An entry as a line: its checksum finds what is still JSON but no longer what was written."""
    text = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode()
    return b'["%08x",%b]\n' % (zlib.crc32(text), text)


def _opens(data: bytes) -> bool:
    """Whether a file begins as a store's file does, or, unfinished, may yet."""
    opening = _line(OPENING)
    return opening.startswith(data[: len(opening)])


def _entry(line: bytes) -> StoreEntry | None:
    """The entry of a line; None where it is damaged."""
    if line[:2] != b'["' or line[10:12] != b'",' or line[-1:] != b"]":
        return None
    text = line[12:-1]
    try:
        if int(line[2:10], 16) != zlib.crc32(text):
            return None
        entry = parse(text)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
