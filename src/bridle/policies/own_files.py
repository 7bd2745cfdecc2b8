"""Python files of the user's own: run once for each text they have had, and blamed for what goes wrong in them.

Problems and policies come from such files. A file is known by its text: who edits it gets what it says now, and engines compile the record
types of a file that has not changed only once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from threading import RLock
from types import ModuleType

from bridle.core import InputError, Unavailable


class BrokenFile(Unavailable):
    """A file of the user's own raised an error of its own. No problem and no setting is to blame for it."""


_MODULES: dict[str, ModuleType] = {}
"""Files that were run, by the names of their modules, which are made of their paths and texts."""

_RUNNING = RLock()
"""One file is run at a time: two threads that need the same one must get the same record types."""


def require(path: str) -> str:
    """The path of a file that must be there."""
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}" if not os.path.exists(path) else f"{path} is not a file")
    return path


def read(path: str) -> bytes:
    """The text of a file that must be there."""
    try:
        with open(require(path), "rb") as file:
            return file.read()
    except OSError as error:
        raise Unavailable(f"cannot read {path}: {error.strerror}") from None


def run(path: str, text: bytes | None = None, package: str | None = None) -> ModuleType:
    """The module that a Python file is; `text` is what stands in it, where that is known, and `package` the one that it is part of."""
    text = read(path) if text is None else text
    full = os.path.abspath(path)
    name = "bridle_own_" + sha256(full.encode() + text).hexdigest()[:24]
    name = f"{package}.{name}" if package else name  # so `from . import neighbour` works
    with _RUNNING:
        if name not in _MODULES:
            spec = spec_from_file_location(name, full)
            if spec is None:
                raise InputError(f"{path} cannot be read as Python")
            module = module_from_spec(spec)
            sys.modules[name] = module  # where dataclasses and pickle look for what the file defines
            try:
                with blamed(path):
                    exec(compile(text, full, "exec", dont_inherit=True), module.__dict__)
            except InputError:
                del sys.modules[name]
                raise
            _MODULES[name] = module
        return _MODULES[name]


@contextmanager
def blamed(path: str, doing: str = "") -> Iterator[None]:
    """Run a file's code, which may import its neighbours; whatever it raises is an InputError that says where.

    What it prints goes to standard error: standard output is for results.
    """
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:
        raise InputError(blame(path, error, doing)) from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def blame(path: str, error: BaseException, doing: str = "") -> str:
    """What went wrong in a file and on which of its lines, on one line."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{path}{_line(path, error)}: {doing}{type(error).__name__}: {' '.join(text.split())}"


def _line(path: str, error: BaseException) -> str:
    """The last line of the file that the error passed through."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}" if error.lineno and os.path.abspath(str(error.filename)) == os.path.abspath(path) else ""
    step, line = error.__traceback__, 0
    while step is not None:
        if os.path.abspath(step.tb_frame.f_code.co_filename) == os.path.abspath(path):
            line = step.tb_lineno
        step = step.tb_next
    return f", line {line}" if line else ""
