"""The power fails: only what was synced is on the disk. What had returned is there all the same, and the file can be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import bridle
from bridle.storage import Disk
from helpers.file_kinds import GATE, KINDS, PACER

pytestmark = pytest.mark.slow

NAMES = tuple(name for name in vars(Disk) if not name.startswith("_"))


class Platter:
    """What is on the disk for certain, of one folder: names since the folder was last synced, contents since each file was.

    The system may have written more by itself. `worst_cases` are the two ends: names and contents as synced, and the latest names with
    contents as synced (a new file may then be empty).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names, self.contents = self.now(), {os.stat(path).st_ino: path.read_bytes() for path in folder.iterdir()}

    def now(self) -> dict[str, int]:
        return {path.name: os.stat(path).st_ino for path in self.folder.iterdir()}

    def created(self, handle: int) -> None:
        """A new file may have the number of one that is gone."""
        self.contents.setdefault(os.fstat(handle).st_ino, b"")
        if os.fstat(handle).st_size == 0:
            self.contents[os.fstat(handle).st_ino] = b""

    def synced(self, handle: int) -> None:
        number, now = os.fstat(handle).st_ino, self.now()
        if number == os.stat(self.folder).st_ino:
            self.names = now
        for name, own in now.items():
            if own == number:
                self.contents[number] = (self.folder / name).read_bytes()

    def worst_cases(self) -> list[dict[str, bytes]]:
        """And what a mere kill leaves: everything."""
        now = self.now()
        synced = [{name: self.contents.get(number, b"") for name, number in names.items()} for names in (self.names, now)]
        return [*synced, {name: (self.folder / name).read_bytes() for name in now}]


@contextmanager
def watched(folder: Path, cut: Callable[[Platter], None]) -> Iterator[Platter]:
    """Tell a platter of every file operation, and cut the power before and after each."""
    platter, real = Platter(folder), {name: vars(Disk)[name] for name in NAMES}

    def watching(name: str) -> Callable[..., Any]:
        call = real[name].__func__

        def operation(*arguments: Any, **more: Any) -> Any:
            cut(platter)
            result = call(*arguments, **more)
            if name == "open":
                platter.created(result)
            if name.startswith("sync"):
                platter.synced(arguments[0])
            cut(platter)
            return result

        return operation

    for name in NAMES:
        setattr(Disk, name, staticmethod(watching(name)))
    try:
        yield platter
    finally:
        for name, value in real.items():
            setattr(Disk, name, value)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "session"])  # a plain one is written in the same steps
@pytest.mark.parametrize("there", [True, False], ids=["an old file", "no file"])
def test_a_save_survives_the_power_at_every_step(kind, there, tmp_path):
    make, save, load, seen, _ = KINDS[kind]
    folder, scratch = tmp_path / "folder", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    path, old, new = folder / "file", make(3), make(4)
    was, becomes = seen(old), seen(new)
    if there:
        save(old, path)
    cuts = []

    def found(files: dict[str, bytes]) -> Any:
        if "file" not in files:
            return None
        (scratch / "file").write_bytes(files["file"])
        return seen(load(scratch / "file"))

    def cut(platter: Platter) -> None:
        allowed = [was if there else None, becomes]
        for files in platter.worst_cases():
            cuts.append(found(files))
            assert cuts[-1] in allowed, "neither the old file nor the new one"

    with watched(folder, cut) as platter:
        save(new, path)
    assert [found(files) for files in platter.worst_cases()] == [becomes] * 3, "it had returned"
    assert (was if there else None) in cuts
    assert becomes in cuts


@pytest.mark.parametrize(("kind", "opening"), [(bridle.Gate, GATE), (bridle.Pacer, PACER)], ids=["gate", "pacer"])
def test_a_payment_survives_the_power_at_every_step(kind, opening, tmp_path):
    """Through more payments than a file has room for, so that it is written anew on the way; and through closing and opening."""
    folder, scratch, paid = tmp_path / "folder", tmp_path / "scratch", 0
    folder.mkdir()
    scratch.mkdir()

    def spent(files: dict[str, bytes]) -> int:
        if "file" not in files:
            return 0
        (scratch / "file").write_bytes(files["file"])
        return round(kind.load(scratch / "file").spent * 100)

    def cut(platter: Platter) -> None:
        for files in platter.worst_cases():
            assert spent(files) in (paid, paid + 1), "what was acknowledged is lost, or more was counted than was asked for"

    with watched(folder, cut) as platter:
        for payments in (66, 4):
            with kind.open(folder / "file", **opening) as held:
                for _ in range(payments):
                    held.pay(0.01)
                    paid += 1
                    assert {spent(files) for files in platter.worst_cases()} == {paid}, "it had returned"
    assert paid == 70
