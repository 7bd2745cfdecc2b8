"""Compiled code on disk: what is run must be what this user's bridle wrote, and where that cannot be known it is compiled in memory."""

from __future__ import annotations

import os
import pickle
import stat
import sys
import warnings
from pathlib import Path

import pytest

import bridle
from bridle.core import InputError
from bridle.engines import kept_code

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes are those of POSIX")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder that BRIDLE_COMPILED names, not yet made; a process that has not complained yet."""
    monkeypatch.setenv("BRIDLE_COMPILED", str(tmp_path / "above" / "code"))
    monkeypatch.setattr(kept_code, "_told", False)
    return tmp_path / "above" / "code"


def made(place: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folder = kept_code.folder()
    assert folder == place
    return place


def refused(match: str) -> None:
    """There is no folder, and one warning says why: in the life of the process, not again."""
    with pytest.warns(bridle.NotKeptWarning, match=match) as told:
        folders = [kept_code.folder() for _ in range(2)]
    assert folders == [None, None]
    assert len(told) == 1
    assert "\n" not in str(told[0].message)


def as_if(monkeypatch, path: Path, **changes: int) -> None:
    """The path has another owner or mode, as `os` tells it: for those who cannot make it so."""
    look, known = os.lstat, os.path.realpath(path)

    def changed(other, **options):
        status = look(other, **options)
        if os.path.abspath(other) != known:
            return status
        fields = list(status)
        for name, value in changes.items():
            fields[getattr(stat, name.upper())] = value
        return os.stat_result(fields)

    monkeypatch.setattr(kept_code.os, "lstat", changed)


def test_the_folder_is_made_for_this_user_alone(place):
    old = os.umask(0)
    try:
        made(place)
    finally:
        os.umask(old)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_what_is_written_is_read_and_only_for_this_user(place):
    made(place)
    old = os.umask(0)
    try:
        kept_code.write(place, "one", b"code")
    finally:
        os.umask(old)
    assert kept_code.read(place, "one") == b"code"
    assert kept_code.read(place, "two") is None
    assert stat.S_IMODE((place / "one").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o720, 0o1777])
def test_a_folder_that_others_can_write_to_is_not_used(place, mode):
    made(place).chmod(mode)
    refused(f"other users can write to {place}")
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o707])
def test_nor_one_inside_a_folder_that_others_can_write_to(place, mode):
    made(place).parent.chmod(mode)
    refused(f"other users can write to the folder {place.parent}")


def test_where_only_ones_own_files_can_be_removed_it_is_used(place):
    made(place).parent.chmod(0o1777)
    made(place)


@pytest.mark.parametrize("part", ["folder", "parent"])
def test_a_folder_of_another_user_is_not_used(place, monkeypatch, part):
    path = made(place) if part == "folder" else made(place).parent
    as_if(monkeypatch, path, st_uid=os.getuid() + 1)
    refused("belongs to another user")


def test_the_folder_above_may_be_roots(place, monkeypatch):
    as_if(monkeypatch, made(place).parent, st_uid=0)
    made(place)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("part", ["folder", "parent", "file"])
def test_what_was_really_given_to_another_user_is_not_used(place, part):
    made(place)
    kept_code.write(place, "one", b"code")
    os.chown({"folder": place, "parent": place.parent, "file": place / "one"}[part], 65534, 65534)
    with pytest.warns(bridle.NotKeptWarning, match="belongs to another user"):
        assert (kept_code.folder() if part != "file" else kept_code.read(place, "one")) is None


@pytest.mark.parametrize(("mode", "name", "members", "used"), [
    (0o775, "me", [], True), (0o775, "me", ["me"], True), (0o775, "me", ["me", "other"], False), (0o775, "staff", [], False),
    (0o777, "me", [], False),
])  # fmt: skip
def test_a_group_of_the_users_own_is_no_other_user(place, monkeypatch, mode, name, members, used):
    import grp
    import pwd

    made(place).parent.chmod(mode)
    gid = place.parent.stat().st_gid
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd(("me", "x", uid, gid, "", "", "")))
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((name, "x", gid, members)))
    if used:
        made(place)
    else:
        refused("other users can write to")


@pytest.mark.parametrize("target", ["folder", "nothing", "file"])
def test_a_link_or_a_file_in_place_of_the_folder_is_not_used(place, tmp_path, target):
    made(place).rmdir()
    if target == "file":
        place.write_text("")
    else:
        place.symlink_to(tmp_path / target)
        if target == "folder":
            (tmp_path / target).mkdir(0o700)
    refused("is a link or a file, not a folder")


def test_links_on_the_way_are_followed_once(place, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(made(place).parent)
    monkeypatch.setenv("BRIDLE_COMPILED", str(tmp_path / "link" / "code"))
    made(place)


def test_a_folder_that_cannot_be_made_is_not_used(place):
    place.parent.write_text("a file")
    refused(str(place.parent))


def test_a_folder_that_cannot_be_written_to_is_not_used(place, monkeypatch):
    made(place)
    monkeypatch.setattr(kept_code.os, "access", lambda path, mode: False)
    refused("cannot be written to")


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(28, "No space left on device"), OSError(30, "Read-only")]
)
def test_a_file_that_cannot_be_written_is_said_once(place, monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    made(place)
    monkeypatch.setattr(kept_code.storage, "replacing", fail)
    with pytest.warns(bridle.NotKeptWarning, match=error.strerror) as told:
        assert [kept_code.write(place, name, b"code") for name in ("one", "two")] == [None, None]
    assert len(told) == 1


def test_without_a_home_nothing_is_kept(place, monkeypatch):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("BRIDLE_COMPILED", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    refused("there is no home folder")


def test_a_home_that_does_not_exist_is_refused_in_words(place, monkeypatch):
    monkeypatch.setenv("BRIDLE_COMPILED", "~nosuchuser/code")
    refused("BRIDLE_COMPILED must be a path: there is no home folder for '~nosuchuser/code'")


def test_the_folder_of_the_data_is_another(tmp_path, monkeypatch):
    for name, value in {"XDG_CACHE_HOME": tmp_path / "cache", "BRIDLE_DATA": tmp_path / "data", "BRIDLE_COMPILED": ""}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(sys, "platform", "linux")
    assert kept_code.named_folder() == tmp_path / "cache" / "bridle-code"
    monkeypatch.setenv("BRIDLE_COMPILED", "0")
    assert kept_code.named_folder() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kept_code.folder() is None, "nobody is told of what was asked for"


def test_every_flipped_bit_is_noticed(place):
    made(place)
    kept_code.write(place, "one", b"some code")
    whole = (place / "one").read_bytes()
    for i in range(8 * len(whole)):
        broken = bytearray(whole)
        broken[i // 8] ^= 1 << i % 8
        (place / "one").write_bytes(broken)
        assert kept_code.read(place, "one") is None
    for size in range(len(whole)):
        (place / "one").write_bytes(whole[:size])
        assert kept_code.read(place, "one") is None
    (place / "one").write_bytes(whole)
    assert kept_code.read(place, "one") == b"some code"
    (place / "one").rename(place / "two")
    assert kept_code.read(place, "two") is None, "it was written under another name"


@pytest.mark.parametrize("trick", ["link", "pipe", "folder", "mode"])
def test_what_is_not_a_file_of_ones_own_is_not_read(place, tmp_path, trick):
    made(place)
    kept_code.write(place, "one", b"code")
    (place / "one").rename(tmp_path / "elsewhere")
    if trick == "link":
        (place / "one").symlink_to(tmp_path / "elsewhere")
    elif trick == "pipe":
        os.mkfifo(place / "one", 0o600)
    elif trick == "folder":
        (place / "one").mkdir(0o700)
    else:
        (tmp_path / "elsewhere").rename(place / "one")
        (place / "one").chmod(0o666)
    with pytest.warns(bridle.NotKeptWarning):
        assert kept_code.read(place, "one") is None


# --- the compiled engine ---------------------------------------------------------------------------------------------------------------


class Evil:
    """Whoever reads its pickle leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self):
        return open, (self.mark, "w")


def game(monkeypatch):
    """A small game, for which nothing is compiled yet in this process, and what it costs in Python.

    Playing it gives the cost, and how often something was compiled for it.
    """
    pytest.importorskip("llvmlite")
    from bridle.engines import compiled as engine
    from bridle.engines import machine

    monkeypatch.setattr(engine, "_COMPILED", {})
    compilations: list[str] = []
    really = machine.compiled
    monkeypatch.setattr(machine, "compiled", lambda text: compilations.append(text) or really(text))
    problem = bridle.problem("fixed", horizon=30, dim=2)
    policy = bridle.policy_for("ogd", problem)

    def play() -> tuple[float, int]:
        engine._COMPILED.clear()
        before = len(compilations)
        cost = bridle.play(policy, problem, engine="compiled").totals.cost
        return float(cost), len(compilations) - before

    return play, float(bridle.play(policy, problem).totals.cost)


@pytest.mark.compiles
def test_a_second_process_loads_what_the_first_has_kept(place, monkeypatch):
    play, cost = game(monkeypatch)
    assert [compiled for _, compiled in (play(), play())] == [1, 0]
    value, compiled = play()
    assert value == pytest.approx(cost, rel=1e-12)
    assert compiled == 0
    assert len(list(place.glob("*.code"))) == 1


@pytest.mark.compiles
def test_what_is_kept_is_played_without_tracing(place, monkeypatch):
    """Not for records of one's own: only their trace tells whether they are what they were."""
    play, cost = game(monkeypatch)
    play()
    monkeypatch.setattr("bridle.engines.codegen.trace.trace", None)
    value, _ = play()
    assert value == pytest.approx(cost, rel=1e-12)

    class Mine(type(bridle.policy("ogd", bridle.Ball(2), lipschitz=1.0).record)):
        __slots__ = ()

    from bridle.engines import compiled as engine

    assert engine._name("key", bridle.policy("ogd", bridle.Ball(2), lipschitz=1.0).record) is not None
    assert engine._name("key", Mine(*bridle.policy("ogd", bridle.Ball(2), lipschitz=1.0).record)) is None


@pytest.mark.compiles
def test_no_other_folder_has_code_in_it(place, tmp_path, monkeypatch):
    play, _ = game(monkeypatch)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv("BRIDLE_DATA", str(elsewhere))
    play()
    assert list(elsewhere.rglob("*")) == []
    assert list(place.glob("*.code"))


@pytest.mark.compiles
@pytest.mark.parametrize("why", ["writable", "link", "content"])
def test_what_another_has_put_there_is_never_run(place, tmp_path, monkeypatch, why):
    """Whatever lies under the names that will be looked for, as Python or as a pickle."""
    play, cost = game(monkeypatch)
    play()
    mark = tmp_path / "mark"
    evil = pickle.dumps(Evil(mark))
    for path in [path for path in place.rglob("*") if path.is_file()]:
        if path.suffix == ".py":
            path.write_text(f"open({str(mark)!r}, 'w')\n" + path.read_text())
        elif why == "content":
            path.write_bytes(evil)
        else:  # whoever writes there can write a digest, too
            path.write_bytes(kept_code.MARK + kept_code._digest(path.name, evil) + evil)
    if why == "writable":
        place.chmod(0o777)
    elif why == "link":
        place.rename(tmp_path / "theirs")
        place.symlink_to(tmp_path / "theirs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bridle.NotKeptWarning)
        value, _ = play()
    assert not mark.exists()
    assert value == pytest.approx(cost, rel=1e-12)


@pytest.mark.compiles
@pytest.mark.parametrize("obstacle", ["no home", "unwritable", "full"])
def test_a_game_is_played_where_nothing_can_be_kept(place, monkeypatch, obstacle):
    play, cost = game(monkeypatch)
    if obstacle == "no home":
        monkeypatch.delenv("BRIDLE_COMPILED")
        monkeypatch.setattr(kept_code.storage, "user_cache", lambda *names: Path("~nosuchuser").expanduser())
    elif obstacle == "unwritable":
        made(place)
        monkeypatch.setattr(kept_code.os, "access", lambda path, mode: False)
    else:

        def full(path):
            raise InputError(f"cannot write {path}: No space left on device")

        monkeypatch.setattr(kept_code.storage, "replacing", full)
    with pytest.warns(bridle.NotKeptWarning) as told:
        values = [play()[0], play()[0]]
    assert values == pytest.approx([cost, cost], rel=1e-12)
    assert len(told) == 1
