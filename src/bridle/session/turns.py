"""One call at a time: what keeps two threads, and a call inside a call, from meeting in a session; and what an exception tells.

A session's flag `_inside` says that a call is at work. Python's lock is what makes it safe: between the test of the flag and its setting
there is no call and no jump back, and only there may CPython turn to another thread or to a signal's handler. (A lock of its own would cost
7 % of a compiled round.) Another thread waits; this one, in a handler or a function that was called from the session, may read what stands
and change nothing.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress

from bridle.core import InputError

COUNTED = "(the round was counted: do not give it again)"
NOT_COUNTED = "(the round was not counted: it can be given again)"

PAUSE = 2e-5
"""How many seconds a thread sleeps before it looks again whether the session is free."""


def wait(session: object, entrances: frozenset[str], reading: bool) -> bool:
    """Another call is at work in this session: give it time. True where it is this thread's own, and only `reading` is asked for."""
    frame, asking = sys._getframe(1), True  # a call that waits to come in is not at work
    while frame is not None:
        if frame.f_code.co_name in entrances and frame.f_locals.get("self") is session and not asking:
            if reading:
                return True
            raise InputError(
                "this session is in the middle of another call of this thread (a signal handler, or a function that the session calls, "
                "has called it): observe, ask and forget must wait until that has ended"
            )
        asking, frame = frame.f_code is wait.__code__, frame.f_back  # type: ignore[assignment]
    if threading.active_count() == 1:  # the call was torn out of its frame, as only a debugger can
        session._inside = False
    else:
        time.sleep(PAUSE)
    return False


def mark(wrong: BaseException, counted: bool) -> None:
    """Say on an exception that leaves a session whether the call had counted."""
    with suppress(AttributeError):  # an exception may have no room for it
        wrong.counted = counted  # type: ignore[attr-defined]
        notes = [note for note in getattr(wrong, "__notes__", ()) if note not in (COUNTED, NOT_COUNTED)]
        if counted or not isinstance(wrong, InputError):
            notes.append(COUNTED if counted else NOT_COUNTED)
        if notes or hasattr(wrong, "__notes__"):
            wrong.__notes__ = notes
