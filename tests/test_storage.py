"""Files are written whole, keep their mode, survive kills and leave nothing behind; what is not a file is refused."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time

import pytest

from bridle import InputError, storage
from helpers.dying_writes import at_step, count_steps, die_at_step, fail

OLD, NEW = b"the old file, every byte of it", b"the new one, longer than the old one was"


def write(path, data=NEW):
    with storage.replacing(path) as file:
        file.write(data)


def left(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".tmp"))


@pytest.mark.parametrize("sigkill", [False, True])
def test_a_kill_between_any_two_steps_leaves_the_old_or_the_new_file(tmp_path, sigkill):
    path = tmp_path / "file"

    def replace(acknowledge):
        write(path)
        acknowledge("written")

    n, outcomes, stale = 0, set(), 0
    while True:
        n += 1
        path.write_bytes(OLD)
        died = die_at_step(n, replace, sigkill=sigkill)
        found = path.read_bytes()
        assert found == NEW if died.acknowledged else found in (OLD, NEW)
        stale += len(left(tmp_path))
        storage.sweep(tmp_path)
        assert os.listdir(tmp_path) == ["file"]
        outcomes.add(found)
        if not died.killed:
            break
    assert n > 10
    assert stale > 3
    assert outcomes == {OLD, NEW}


def test_a_failure_of_any_step_is_one_error_and_leaves_a_whole_file(tmp_path):
    path = tmp_path / "file"
    for n in range(1, count_steps(lambda: write(path)) + 1):
        path.write_bytes(OLD)
        with at_step(n, fail), pytest.raises(InputError, match=r"^cannot write .*file: Input/output error") as wrong:
            write(path)
        assert path.read_bytes() == (NEW if "in its place" in str(wrong.value) else OLD)
        assert os.listdir(tmp_path) == ["file"]


def test_the_folder_is_synced_after_the_rename(tmp_path):
    with at_step(None, lambda: None) as steps:
        write(tmp_path / "file")
    assert steps.names == ["open", "write", "sync", "replace", "open", "sync"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_the_mode_of_the_file_is_kept(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    path.chmod(mode)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == NEW


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_follows_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        write(tmp_path / "file")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask


def test_nobody_can_read_a_private_file_while_it_is_written(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    path.chmod(0o600)
    seen = []

    def look():
        seen.extend(stat.S_IMODE((tmp_path / name).stat().st_mode) for name in left(tmp_path))

    for n in range(1, count_steps(lambda: write(path)) + 1):
        with at_step(n, look):
            write(path)
    assert set(seen) == {0o600}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_of_the_file_is_kept(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    os.chown(path, 65534, 65534)
    path.chmod(0o600)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (65534, 65534, 0o600)


def special(folder):
    """What a file name can stand for beside a file: name, and what it is said to be."""
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("socket")  # a short path: we are in the folder
    return {"pipe": "a pipe", "folder": "a folder", "link": "a pipe", "socket": "a socket"}


def test_what_is_not_a_file_is_refused_and_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = special(tmp_path)
    before = {name: os.lstat(name) for name in kinds}
    for name, kind in kinds.items():
        with pytest.raises(InputError, match=f"^cannot write {name}: it is {kind}, not a file"):
            write(name)
    with pytest.raises(InputError, match="it is a device"):
        write(os.devnull)
    assert {name: os.lstat(name).st_mode for name in kinds} == {name: found.st_mode for name, found in before.items()}
    assert sorted(os.listdir(tmp_path)) == sorted(kinds)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "file").write_bytes(OLD)
    for name in ("file", "not there yet"):
        (tmp_path / "link").symlink_to(name)
        write(tmp_path / "link")
        assert os.readlink(tmp_path / "link") == name
        assert (tmp_path / name).read_bytes() == NEW
        (tmp_path / "link").unlink()


def test_temporaries_of_the_living_and_of_strangers_stay(tmp_path):
    """One of this process, one of another that lives, one of another machine; the dead one's goes, a stranger's after a day."""
    here, mine = storage._place(), storage._began(os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        token = "0123456789abcdef"
        keep = [
            f".bridle-{here}-{os.getpid()}-{mine}-{token}.tmp",
            f".bridle-{here}-{other.pid}-{storage._began(other.pid)}-{token}.tmp",
            f".bridle-{'0' * 12}-{other.pid}-7-{token}.tmp",
            "somebody-else.tmp",
        ]
        gone = [f".bridle-{here}-{os.getpid()}-{mine - 1}-{token}.tmp"]  # the number was another process's before
        for name in keep + gone:
            (tmp_path / name).write_bytes(b"")
        storage.sweep(tmp_path)
        assert sorted(os.listdir(tmp_path)) == sorted(keep)
        for name in keep:
            os.utime(tmp_path / name, (time.time() - 1.01 * storage.ABANDONED,) * 2)
        storage.sweep(tmp_path)
        assert sorted(os.listdir(tmp_path)) == sorted([*keep[:2], "somebody-else.tmp"])
        other.communicate(b"\n")
    storage.sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([keep[0], "somebody-else.tmp"])
