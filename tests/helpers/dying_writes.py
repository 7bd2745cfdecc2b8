"""File operations that fail, or that are the last thing a process does, at a chosen step; and children that are killed there.

Everything that bridle does to a file goes through the names of `bridle.storage.Disk`. Each call of one is two steps, before and after it,
and a write of more than one byte is three: the middle one comes when half of it is written. So "the n-th step" runs through every point
between two system calls.
"""

from __future__ import annotations

import errno
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from bridle.storage import Disk

NAMES = tuple(name for name in vars(Disk) if not name.startswith("_"))
KILLED = 77
"""The exit status of a child that died at its step."""


class Steps:
    """Counts steps, and does `act` at the n-th; `names` are the operations in order, each as often as it was begun."""

    def __init__(self, at: int | None, act: Callable[[], object]) -> None:
        self.at, self.act, self.taken = at, act, 0
        self.names: list[str] = []

    def step(self) -> None:
        self.taken += 1
        if self.taken == self.at:
            self.act()


@contextmanager
def at_step(n: int | None, act: Callable[[], object]) -> Iterator[Steps]:
    """Inside, `act` is called at the n-th step of all file operations, counted from 1; with None they are only counted."""
    steps, real = Steps(n, act), {name: vars(Disk)[name] for name in NAMES}

    def stepping(name: str) -> Callable[..., Any]:
        call = real[name].__func__

        def operation(*arguments: Any, **more: Any) -> Any:
            steps.names.append(name)
            steps.step()
            if name == "write" and len(memoryview(arguments[1]).cast("B")) > 1:
                handle, data = arguments[0], memoryview(arguments[1]).cast("B")
                half = call(handle, data[: len(data) // 2])
                steps.step()
                result = half + call(handle, data[half:])
            else:
                result = call(*arguments, **more)
            steps.step()
            return result

        return operation

    for name in NAMES:
        setattr(Disk, name, staticmethod(stepping(name)))
    try:
        yield steps
    finally:
        for name, value in real.items():
            setattr(Disk, name, value)


def fail(number: int = errno.EIO) -> None:
    """An act: the operation fails as the system would let it."""
    raise OSError(number, os.strerror(number))


def count_steps(work: Callable[[], object]) -> int:
    """How many steps this work takes."""
    with at_step(None, lambda: None) as steps:
        work()
    return steps.taken


class Died(NamedTuple):
    """What became of a child: whether it died at its step, and what it acknowledged before, one entry a call."""

    killed: bool
    acknowledged: list[str]


def die_at_step(n: int | None, work: Callable[[Callable[[object], None]], object], *, sigkill: bool = False) -> Died:
    """Fork a child that does `work(acknowledge)` and dies at the n-th step, without any cleaning up; wait for it.

    `work` calls `acknowledge(what)` as soon as it has been told that something is done. With `sigkill` the system kills it, as
    `kill -9` would; else it leaves by `os._exit`. A child whose work fails is an error here.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that some library has: the child does not use them
        child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)

            def acknowledge(what: object) -> None:
                os.write(writing, f"{what}\n".encode())

            def die() -> None:
                if sigkill:
                    os.kill(os.getpid(), signal.SIGKILL)
                os._exit(KILLED)

            with at_step(n, die):
                work(acknowledge)
            status = 0
        except BaseException as problem:
            os.write(2, f"a child failed: {problem!r}\n".encode())
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        said = pipe.read().splitlines()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, KILLED, -signal.SIGKILL), f"the child ended with {ended}"
    return Died(ended != 0, said)
