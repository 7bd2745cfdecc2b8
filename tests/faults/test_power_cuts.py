"""The power fails: only what was synced is on the disk. What had returned is there all the same, and the file can be read."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import bridle
from bridle import fact_file
from bridle.storage import Disk
from helpers.file_kinds import GATE, KINDS, PACER
from helpers.forgetful_disk import ForgetfulDisk

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


@pytest.mark.parametrize(("kind", "there"), [("plain session", True), ("plain session", False), ("gate", False), ("pacer", False)])
def test_a_save_survives_the_power_at_every_step(kind, there, tmp_path):
    """Of a gate or a pacer, which are SQLite files once they are there: the first time that one is saved."""
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


def lost_at_a_cut(kind, opening, folder, monkeypatch, level) -> list[str]:
    """Cut the power before and after every write and sync of payments: what was acknowledged and is not in the file."""
    disk, rng, lost, paid, cuts = ForgetfulDisk(), random.Random(3), [], 0, 0
    (folder / "cut").mkdir()

    def cut() -> None:
        nonlocal cuts
        for image in disk.images(rng):
            cuts += 1
            for old in (folder / "cut").iterdir():
                old.unlink()
            for path, data in image.items():
                (folder / "cut" / Path(path).name).write_bytes(data)
            with monkeypatch.context() as real:
                real.setattr(fact_file, "connect", connect)
                try:
                    spent = round(kind.load(folder / "cut" / "file").spent * 100)
                except bridle.InputError as wrong:
                    lost.append(str(wrong))
                else:
                    lost.extend([] if spent in (paid, paid + 1) else [f"{spent} of {paid}"])

    def leveled(path: str) -> Any:
        connection = disk.connect(path, "rw")
        execute = connection.execute
        monkeypatch.setattr(connection, "execute", lambda text, *given: execute(text.replace("= FULL", f"= {level}"), *given))
        return connection

    connect = fact_file.connect
    kind.open(folder / "file", **opening).close()
    monkeypatch.setattr(fact_file, "connect", leveled)
    try:
        for _ in range(2):
            with kind.open(folder / "file") as held:
                disk.when = cut
                for _ in range(4):
                    held.pay(0.01)
                    paid += 1
                    cut()
                disk.when = lambda: None
    finally:
        disk.close()
    assert cuts > 100
    return lost


OPENINGS = pytest.mark.parametrize(("kind", "opening"), [(bridle.Gate, GATE), (bridle.Pacer, PACER)], ids=["gate", "pacer"])


@OPENINGS
def test_a_payment_survives_the_power_at_every_step(kind, opening, tmp_path, monkeypatch):
    assert lost_at_a_cut(kind, opening, tmp_path, monkeypatch, "FULL") == []


@OPENINGS
def test_without_its_syncs_a_payment_would_not(kind, opening, tmp_path, monkeypatch):
    """Which proves that the test above can fail."""
    assert lost_at_a_cut(kind, opening, tmp_path, monkeypatch, "OFF")
