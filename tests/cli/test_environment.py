"""The command line where the world around it fails: the disk, paths, streams, variables, memory. Each is one line and exit status 2."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bridle
from bridle import cli
from bridle.cli import output
from bridle.core import InputError

LONG = "x" * 400
COMMANDS: dict[str, list[str]] = {
    "help": ["--help"],
    "version": ["--version"],
    "policies": ["policies"],
    "policies as JSON": ["policies", "--json", "-"],
    "problems": ["problems"],
    "play": ["play", "fixed", "--horizon", "20"],
    "play as JSON": ["play", "fixed", "--horizon", "20", "--json", "-"],
    "advise": ["advise", "--constraints", "fixed"],
    "data list": ["data", "list"],
    "demo": ["demo", "--horizon", "10"],
}
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="shells and devices of POSIX")


def program(arguments: list[str], redirect: str = "", **environment: str | None) -> tuple[int, str, str]:
    """The program as a shell runs it: exit status, standard output, standard error."""
    there = {**os.environ, **environment}
    words = " ".join(f"'{word}'" for word in (sys.executable, "-m", "bridle", *arguments))
    ran = subprocess.run(
        ["bash", "-c", f"{words} {redirect}"], capture_output=True, text=True, errors="replace", timeout=300,
        env={name: value for name, value in there.items() if value is not None},
    )  # fmt: skip
    return ran.returncode, ran.stdout, ran.stderr


def one_line(err: str) -> str:
    assert err.startswith("bridle: "), err
    assert err.count("\n") == 1, err
    return err


@POSIX
@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_under_standard_output(command):
    status, _, err = program(COMMANDS[command], ">/dev/full")
    assert (status, one_line(err)) == (2, "bridle: standard output: No space left on device\n")


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize("command", ["version", "policies", "play as JSON"])
def test_closed_streams(command):
    """Without standard output there is something to tell; without standard error there is nowhere to tell it; a reader may go."""
    status, _, err = program(COMMANDS[command], ">&-")
    assert (status, one_line(err)) == (2, "bridle: standard output: Bad file descriptor\n")
    assert program(COMMANDS[command], "2>&-")[::2] == (0, "")
    assert program(COMMANDS[command], ">&- 2>&-")[0] == 2
    status, out, err = program(COMMANDS[command], "| true")
    assert (status, out, err) == (0, "", "")


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full"])
def test_a_mistake_that_cannot_be_told_is_still_a_status(redirect):
    assert program(["nosuch"], redirect)[0] == 2


TWICE = """
from bridle.cli import main

for arguments in (["policies"], ["play", "fixed", "--horizon", "20"]):
    try:
        main(arguments)
    except SystemExit as ended:
        print(f"ended {ended.code or 0}", flush=True)
"""
"""A listing and a game in one process: what a variable does, it does to both."""


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"COLUMNS": "abc", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "XDG_CACHE_HOME": "relative"},
        {"COLUMNS": "-3", "TERM": "", "PYTHONIOENCODING": "ascii", "BRIDLE_DATA": ""},
        {"COLUMNS": "", "LANG": "nosuch", "HOME": None, "TERM": "nosuchterm"},
        {"COLUMNS": "1", "BRIDLE_COMPILED": "~nosuchuser", "BRIDLE_INTERPRET": "perhaps"},
    ],
    ids=lambda changes: "-".join(changes),
)  # fmt: skip
def test_strange_variables_do_no_harm(changes):
    """Several in one process, none of which keeps another from being read."""
    there = {**os.environ, **changes}
    ran = subprocess.run(
        [sys.executable, "-c", TWICE], capture_output=True, text=True, errors="replace", timeout=300,
        env={name: value for name, value in there.items() if value is not None},
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    listing, game, rest = ran.stdout.split("ended 0\n")
    assert listing.strip()
    assert game.strip()
    assert rest == ""


def bad_paths(tmp_path: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Commands that cannot do with a path, and the variables that they are run with."""
    (tmp_path / "a file").write_text("")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "text.npz").write_text("text")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe\x00")
    play = ["play", "fixed", "--horizon", "20"]
    return {
        "no such user": (["data", "list"], {"BRIDLE_DATA": "~nosuchuser"}),
        "no such user to fetch into": (["data", "fetch", "djia"], {"BRIDLE_DATA": "~nosuchuser/x"}),
        "no such user's file": (["data", "fetch", "djia", "--data", "~nosuchuser/x"], {}),
        "a long name to fetch": (["data", "fetch", "djia", "--data", LONG], {}),
        "a folder to fetch": (["data", "fetch", "djia", "--data", str(tmp_path)], {}),
        "a long cache": (["data", "fetch", "djia"], {"BRIDLE_DATA": str(tmp_path / LONG)}),
        "a file as cache": (["data", "fetch", "djia"], {"BRIDLE_DATA": str(tmp_path / "a file")}),
        "below a file as cache": (["data", "fetch", "djia"], {"BRIDLE_DATA": str(tmp_path / "a file" / "x")}),
        "a long problem": (["play", LONG + ".npz"], {}),
        "a long Python problem": (["play", LONG + ".py"], {}),
        "a folder as problem": (["play", str(tmp_path / "folder.npz")], {}),
        "a folder as Python problem": (["play", str(tmp_path / "folder.py")], {}),
        "text as problem": (["play", str(tmp_path / "text.npz")], {}),
        "bytes as Python problem": (["play", str(tmp_path / "bytes.py")], {}),
        "JSON to a long name": ([*play, "--json", LONG], {}),
        "JSON to a folder": ([*play, "--json", str(tmp_path)], {}),
        "JSON below a file": ([*play, "--json", str(tmp_path / "a file" / "x")], {}),
        "JSON to a full disk": ([*play, "--json", "/dev/full"], {}),
        "results below a file": (["compare", "fixed", "--horizons", "20", "--out", str(tmp_path / "a file" / "x")], {}),
        "results in a long name": (["compare", "fixed", "--horizons", "20", "--out", str(tmp_path / LONG)], {}),
    }


@POSIX
def test_bad_paths_are_one_line(run, tmp_path, monkeypatch):
    for case, (arguments, variables) in bad_paths(tmp_path).items():
        with monkeypatch.context() as changed:
            for name, value in variables.items():
                changed.setenv(name, value)
            status, out, err = run(*arguments)
        assert (status, out) == (2, ""), case
        assert one_line(err), case


FAILURES: dict[str, tuple[BaseException, str]] = {
    "full disk": (OSError(28, "No space left on device", "results/x"), "results/x: No space left on device"),
    "full disk without a name": (OSError(28, "No space left on device"), "No space left on device"),
    "read-only": (PermissionError(13, "Permission denied", b"a\xff"), "Permission denied"),
    "too many files": (OSError(24, "Too many open files"), "Too many open files"),
    "no process": (BlockingIOError(11, "Resource temporarily unavailable"), "Resource temporarily unavailable"),
    "no memory": (MemoryError("Unable to allocate 8 EiB"), "too large or too small to compute: Unable to allocate 8 EiB"),
    "overflow": (OverflowError("too large"), "too large or too small to compute: too large"),
    "too deep": (RecursionError("maximum recursion depth exceeded"), "nested too deeply: maximum recursion depth exceeded"),
    "encoding": (UnicodeEncodeError("ascii", "caf\xe9", 3, 4, "ordinal not in range"), r"cannot write '\xe9' in the encoding ascii"),
    "bad input": (InputError("dim must be\nabove 0"), "dim must be above 0"),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("place", ["listing", "playing", "printing"])
def test_every_failure_is_one_line_wherever_it_comes_from(run, monkeypatch, failure, place):
    error, said = FAILURES[failure]

    def fail(*arguments: object, **options: object) -> None:
        raise error

    if place == "listing":
        monkeypatch.setattr(bridle.policies.registry, "names", fail)
        monkeypatch.setattr(bridle.policies, "names", fail)
    elif place == "playing":
        monkeypatch.setattr(bridle.game, "play", fail)
    else:
        monkeypatch.setattr(output, "show", fail)
    status, out, err = run(*(["play", "fixed", "--horizon", 20] if place == "playing" else ["policies"]))
    assert (status, out) == (2, "")
    assert said in one_line(err)


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (BrokenPipeError(32, "Broken pipe"), 141)])
def test_who_stops_it_is_not_told_what_failed(run, monkeypatch, error, status):
    def stop(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(output, "show", stop)
    got, out, err = run("policies")
    assert got in (status, 1)
    assert out == ""
    assert err in ("", "bridle: interrupted; nothing was written\n")
    assert (got == 130) == (err != "")


def test_a_mistake_in_bridle_keeps_its_traceback(monkeypatch):
    def wrong(*arguments: object) -> None:
        raise AttributeError("a mistake")

    monkeypatch.setattr(output, "show", wrong)
    before = sys.stdout, sys.stderr
    with pytest.raises(AttributeError, match="a mistake"):
        cli.main(["policies"])
    assert (sys.stdout, sys.stderr) == before


TELLING = """
import signal, sys
from bridle import game
from bridle.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)
play, told = game.play, []


def tell(done, of):
    if not told:
        print("it plays", file=sys.stderr, flush=True)
    told.append(done)


game.play = lambda *arguments, progress, **settings: play(*arguments, progress=tell, **settings)
main()
"""
"""The command line as a process that takes notice of Ctrl-C, and says that it has played some rounds."""


@POSIX
@pytest.mark.slow
def test_an_interrupt_from_the_keyboard_is_one_line():
    with subprocess.Popen(
        [sys.executable, "-c", TELLING, "play", "fixed", "--horizon", "100000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr.readline() == "it plays\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "bridle: interrupted; nothing was written\n")


@POSIX
@pytest.mark.compiles
def test_code_that_cannot_be_kept_is_one_line(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    arguments = ["play", "fixed", "--policy", "ogd", "--horizon", "20", "--engine", "compiled", "--json", "-"]
    status, out, err = program(arguments, BRIDLE_COMPILED=str(shared))
    assert status == 0
    assert out.startswith("{")
    assert one_line(err) == (
        f"bridle: compiled code is not kept on disk: other users can write to {shared} (BRIDLE_COMPILED can name another folder)\n"
    )
    assert list(shared.iterdir()) == []
