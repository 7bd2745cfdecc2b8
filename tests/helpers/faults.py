"""Faults on purpose: at the n-th point of an operation where something can go wrong, it does.

A point is where the interpreter itself says so, whatever the code looks like: before a call that touches a file, after one, before any
call at all or any line of this library (where memory may run out), after any call (where a signal's handler may raise). `sweep` makes an
operation fail at its first point, its second, and so on, until it passes.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import bridle

PACKAGE = str(Path(bridle.__file__).parent)
W = TypeVar("W")

MOST_POINTS = None if os.environ.get("BRIDLE_SOAK") == "1.0" else 16
"""Of the points of an operation, which may be thousands, so many are tried in a test; `make soak` tries all."""


class Point(Enum):
    """Where an operation can be made to fail."""

    BEFORE_FILES = "before a file operation, which then never happened"
    AFTER_FILES = "after a file operation, which did happen"
    BEFORE_CALLS = "before any call of a compiled function"
    AFTER_CALLS = "at the start of a Python function, or after a compiled one: where a signal is noticed"
    LINES = "before a line of this library"


def full_disk() -> OSError:
    """No room on the disk."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def broken_disk() -> OSError:
    """A disk that does not answer."""
    return OSError(errno.EIO, os.strerror(errno.EIO))


NO_FILE = {
    "fspath", "getpid", "getuid", "geteuid", "urandom", "umask", "_path_normpath", "cpu_count", "uname", "fork", "waitpid", "kill", "_exit",
}  # fmt: skip
"""Functions of the operating system that touch no file."""
ON_DISK = (io.FileIO, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)
"""The kinds of open files."""


def touches_files(function: Any) -> bool:
    """Whether a compiled function is an operation on files: one of the operating system's, or a method of an open file or database."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, io.IOBase):
        return isinstance(owner, ON_DISK)
    if isinstance(owner, (sqlite3.Connection, sqlite3.Cursor)):
        return True
    module = getattr(function, "__module__", None) or getattr(owner, "__name__", None)
    return module in ("posix", "nt", "io", "_io", "fcntl", "msvcrt") and function.__name__ not in NO_FILE


class Fault:
    """Do something at point number `at` of a kind while the block runs: `strike` raises, or ends the process.

    `seen` counts the points that were passed, `struck` says whether the one was among them.
    """

    def __init__(self, point: Point, at: int, strike: Callable[[], BaseException]) -> None:
        self.point, self.at, self.strike = point, at, strike
        self.seen, self.struck = 0, False

    def __enter__(self) -> Fault:
        self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        if self.point is Point.LINES:
            sys.settrace(self._trace)
        else:
            sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        sys.settrace(None)
        sys.unraisablehook = self._hook

    def _unraisable(self, lost: Any) -> None:
        """What strikes while a generator is closed cannot go anywhere: as with a real signal, the operation passes."""
        if not self.struck:
            self._hook(lost)

    def _pass(self) -> None:
        self.seen += 1
        if self.seen == self.at:
            self.struck = True
            raise self.strike()

    def _profile(self, frame: FrameType, event: str, function: Any) -> None:
        if self.struck or frame.f_code.co_filename == __file__:
            return
        if self.point is Point.BEFORE_CALLS:
            if event == "c_call":
                self._pass()
        elif self.point is Point.AFTER_CALLS:
            if event in ("call", "c_return"):
                self._pass()
        elif event in ("c_call", "c_return") and touches_files(function):
            # A file that cannot be closed is closed all the same.
            late = self.point is Point.AFTER_FILES or function.__name__ in ("close", "__exit__")
            if event == ("c_return" if late else "c_call"):
                self._pass()

    def _trace(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        return self._lines if event == "call" and frame.f_code.co_filename.startswith(PACKAGE) else None

    def _lines(self, _frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        if event == "line" and not self.struck:
            self._pass()
        return self._lines


def forget(raised: BaseException | None) -> None:
    """Let go of what the frames of an exception still hold, such as files that were half open."""
    while raised is not None:
        traceback.clear_frames(raised.__traceback__)
        raised = raised.__context__
    gc.collect()


def sweep(
    point: Point,
    strike: Callable[[], BaseException],
    prepare: Callable[[], W],
    operate: Callable[[W], object],
    most: int | None = None,
) -> Iterator[tuple[int, W, BaseException | None]]:
    """Make an operation fail at its first point, at its second, and so on, until it passes; at about `most` of them where they are more.

    Yields the number of the point, what `prepare` had made for this time, and what the operation raised, if anything: a fault may be
    one that it copes with.
    """
    world = prepare()
    with Fault(point, 0, strike) as counted:
        operate(world)
    if not counted.seen:
        raise AssertionError(f"the operation has no point {point.value}")
    gc.freeze()  # `forget` collects after every point: what is there by now, such as all of JAX, is not to be looked through each time
    every = 1.0 if most is None else max(1.0, counted.seen / most)
    at, step = 1, 0
    while True:
        world = prepare()
        raised: BaseException | None = None
        fault = Fault(point, at, strike)
        try:
            with fault:
                operate(world)
        except BaseException as problem:
            raised = problem
        if not fault.struck:
            if raised is not None:
                raise raised
            return
        forget(raised)
        outcome = [(at, world, raised)]
        world = raised = None  # type: ignore[assignment]
        yield outcome.pop()  # what was raised holds on to what was half done: it must be the caller's alone
        step += 1
        at = max(at + 1, 1 + round(step * every))
