"""Exceptions at every place of a call where one can come up: a stand-in for signals, which come when they like.

`interrupted_everywhere` makes a call again and again, and each time an exception is raised one bytecode later inside the library.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

import bridle

INSIDE = os.path.dirname(bridle.__file__) + os.sep


class Interrupt(BaseException):
    """What is raised: nothing catches it by accident."""


@contextmanager
def alarms(error: type[BaseException] = Interrupt) -> Iterator[Callable[[float], object]]:
    """A function that sets a timer, in seconds, whose signal raises an error wherever the program is then; 0 stops it.

    Garbage is not collected meanwhile: libraries have callbacks for that, and an error in those is reported and not raised.
    """

    def ring(*_: object) -> None:
        raise error

    collects = gc.isenabled()
    gc.disable()
    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield partial(signal.setitimer, signal.ITIMER_REAL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if collects:
            gc.enable()


class Tripwire:
    """Raises an `Interrupt` at the n-th bytecode inside the library; `steps` is how many there were."""

    def __init__(self, n: int) -> None:
        self.n, self.steps = n, 0

    def __call__(self, call: Callable[[], object]) -> BaseException | None:
        """Make the call; what was raised, if it came to that."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            call()
        except Interrupt as raised:
            return raised
        finally:
            sys.settrace(before)
        return None

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(INSIDE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            self.steps += 1
            if self.steps == self.n:
                raise Interrupt
        return self._step


class Broken(NamedTuple):
    """A subject whose call was broken off after `step` of `steps`, and what was raised."""

    subject: Any
    raised: BaseException
    step: int
    steps: int


def interrupted_everywhere(make: Callable[[], Any], call: Callable[[Any], object], *, every: int = 1) -> Iterator[Broken]:
    """Subjects whose call was interrupted at step 1, 1 + `every`, ... up to the last."""
    unhurt = Tripwire(0)
    unhurt(partial(call, make()))
    for n in range(1, unhurt.steps + 1, every):
        subject, tripwire = make(), Tripwire(n)
        raised = tripwire(partial(call, subject))
        if tripwire.steps < n:  # a step fewer: something was known already
            assert n > 0.9 * unhurt.steps
            return
        assert raised is not None, f"the exception of step {n} was swallowed"
        yield Broken(subject, raised, n, unhurt.steps)
